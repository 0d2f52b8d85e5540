"""The command `gate`."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from boosters_eval.cli.output import check_output, note, print_json
from boosters_eval.core.errors import ConfigError, ExitCode

if TYPE_CHECKING:
    from boosters_eval.gate import GateDecision


def gate(
    *,
    run: Annotated[
        str | None, typer.Option("--run", help="A finished run: its id, the beginning of its id, or 'last'.")
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option("--baseline", help="The baseline or results file that the run is compared with.")
    ] = None,
    scores: Annotated[
        Path | None, typer.Option("--scores", help="Instead of a run: a JSON or CSV file with case_id, score[, class].")
    ] = None,
    library: Annotated[str, typer.Option("--library", "-l", help="The library under test.")] = "boosters",
    tier: Annotated[str, typer.Option("--tier", help="bronze (10 cases), silver (30) or gold (100).")] = "bronze",
    threshold: Annotated[
        float, typer.Option("--threshold", help="The value that the lower bound must reach, from 0 to 1.")
    ],
    min_cases: Annotated[
        int | None, typer.Option("--min-cases", help="The minimum number of cases, instead of the tier's; at least 10.")
    ] = None,
    held_out: Annotated[
        list[str] | None, typer.Option("--held-out", help="Data sets or configs of the run that are held out.")
    ] = None,
    no_held_out: Annotated[bool, typer.Option("--no-held-out", help="Do not require five held-out cases.")] = False,
    allow_changed_parameters: Annotated[
        bool,
        typer.Option("--allow-changed-parameters", help="Accept parameters that differ from the baseline's."),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File for the decision. Default: in gate/ under the home of the runs."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the decision as JSON.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print nothing; only write the file and set the exit code.")
    ] = False,
) -> int:
    """Decide whether a version may be released.

    It is promoted only if the 95 % lower bound of the quality that it retains reaches the threshold, on enough cases.
    Exit 0 if it is promoted, 1 if it is held, 2 if nothing could be computed, 3 for bad input.
    """
    from boosters_eval import gate as program

    # The warnings of the bound are in the report's notes; without a handler, logging would print them again.
    logging.getLogger("boosters_eval").addHandler(logging.NullHandler())
    check_output(output)
    _check_numbers(threshold, min_cases)
    rules = program.GateRules(
        tier=tier,
        threshold=threshold,
        min_cases=min_cases,
        held_out=not no_held_out,
        changed_parameters=allow_changed_parameters,
    )
    if scores is not None:
        if run is not None or baseline is not None or held_out:
            raise ConfigError("Use either --scores, or --run with --baseline (and --held-out), not both.")
        decision = program.decide_scores(scores, rules)
    elif run is None or baseline is None:
        raise ConfigError("The gate needs --run with --baseline, or --scores.")
    else:
        decision = program.decide_run(run, baseline, rules, library=library, held_out=held_out or ())
    path = output or program.default_path(decision)
    program.write_decision(decision, path)
    if json:
        print_json(decision.model_dump(mode="json"))
    elif not quiet:
        _print(decision)
    if not quiet:
        note(f"Written: {path}")
    return ExitCode.SUCCESS if decision.promoted else ExitCode.REGRESSION


def _check_numbers(threshold: float, min_cases: int | None) -> None:
    """Refuse what the rules would refuse too, with messages that name this command's options."""
    from boosters_eval.gate.model import LOWEST_MIN_CASES

    if not 0 <= threshold <= 1:
        raise ConfigError(f"The '--threshold' option must be from 0 to 1. Got {threshold} instead.")
    if min_cases is not None and min_cases < LOWEST_MIN_CASES:
        raise ConfigError(f"The '--min-cases' option must be at least {LOWEST_MIN_CASES}. Got {min_cases} instead.")


def _print(decision: "GateDecision") -> None:
    from boosters_eval.baseline.render import apart
    from boosters_eval.reports.numbers import number

    report, rules = decision.report, decision.rules
    spread = "" if report.stddev is None else f", standard deviation {number(report.stddev)}"
    held = "none" if report.lower_bound_95_held_out is None else number(report.lower_bound_95_held_out)
    typer.echo(f"{'PROMOTED' if decision.promoted else 'HELD'}: tier {rules.tier}, threshold {rules.threshold}")
    typer.echo(f"  lower bound (95 %)      {apart(report.lower_bound_95, rules.threshold)[0]}")
    typer.echo(f"  of the held-out cases   {held} ({report.n_held_out} of {report.n_cases} cases)")
    typer.echo(f"  for people only         mean {number(report.mean_score)}{spread}")
    for sentence in decision.objections:
        typer.echo(f"  {sentence}")
    worst = sorted((case for case in report.per_case if case.score < rules.threshold), key=lambda case: case.score)
    for case in worst[:10]:
        typer.echo(f"  {case.case_id}: {number(case.score)}{f' ({case.reason})' if case.reason else ''}")
    if len(worst) > 10:
        typer.echo(f"  and {len(worst) - 10} more cases below the threshold")
    for sentence in report.notes:
        note(sentence)


def register(app: typer.Typer) -> None:
    """Add this command to the program."""
    app.command()(gate)
