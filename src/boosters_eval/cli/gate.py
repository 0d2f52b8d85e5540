"""The command `gate`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from boosters_eval.cli.output import check_output, note, print_json, say
from boosters_eval.core.errors import ConfigError, ExitCode

if TYPE_CHECKING:
    from boosters_eval.programs.gate import BenchRunReport, GateDecision


def gate(
    *,
    run: Annotated[
        str | None, typer.Option("--run", help="A finished run: its id, the beginning of it, its name, or 'last'.")
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option("--baseline", help="The baseline or results file that the run is compared with.")
    ] = None,
    scores: Annotated[
        Path | None,
        typer.Option("--scores", help="Instead of a run: a JSON or CSV file with case_id, score[, class, dataset]."),
    ] = None,
    library: Annotated[str, typer.Option("--library", "-l", help="The library under test.")] = "boosters",
    tier: Annotated[str, typer.Option("--tier", help="bronze (10 data sets), silver (30) or gold (100).")] = "bronze",
    threshold: Annotated[
        float, typer.Option("--threshold", help="The value that the lower bound must reach: above 0, at most 1.")
    ],
    min_cases: Annotated[
        int | None, typer.Option("--min-cases", help="The minimum number of data sets, if more than the tier's.")
    ] = None,
    held_out: Annotated[
        list[str] | None, typer.Option("--held-out", help="Data sets or configs of the run that are held out.")
    ] = None,
    no_held_out: Annotated[bool, typer.Option("--no-held-out", help="Require no held-out data sets.")] = False,
    allow_changed_parameters: Annotated[
        bool,
        typer.Option("--allow-changed-parameters", help="Accept parameters that differ from the baseline's."),
    ] = False,
    allow_low_coverage: Annotated[
        bool,
        typer.Option("--allow-low-coverage", help="Accept a threshold that so few data sets cover at less than 90 %."),
    ] = False,
    allow_flaky: Annotated[
        int, typer.Option("--allow-flaky", help="How many cells may have failed before they finished.")
    ] = 0,
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
    import logging

    from boosters_eval.programs import gate as program
    from boosters_eval.runners.builds.reference import label_of

    # The warnings of the bound are in the report's notes; without a handler, logging would print them again.
    logging.getLogger("boosters_eval").addHandler(logging.NullHandler())
    check_output(output)
    _check_numbers(tier, threshold, min_cases, allow_flaky)
    if no_held_out and held_out:
        raise ConfigError("Use either --held-out or --no-held-out, not both.")
    rules = program.GateRules(
        tier=tier,
        threshold=threshold,
        min_cases=min_cases,
        held_out=not no_held_out,
        changed_parameters=allow_changed_parameters,
        low_coverage=allow_low_coverage,
        flaky=allow_flaky,
    )
    if scores is not None:
        if run is not None or baseline is not None or held_out:
            raise ConfigError("Use either --scores, or --run with --baseline (and --held-out), not both.")
        decision = program.decide_scores(scores, rules)
    elif run is None or baseline is None:
        raise ConfigError("The gate needs --run with --baseline, or --scores.")
    else:
        decision = program.decide_run(run, baseline, rules, library=label_of(library), held_out=held_out or ())
    path = output or program.default_path(decision)
    program.write_decision(decision, path)
    if json:
        print_json(decision.model_dump(mode="json"))
    elif not quiet:
        _print(decision)
    if not quiet:
        note(f"Written: {path}")
    return ExitCode.SUCCESS if decision.promoted else ExitCode.REGRESSION


def _check_numbers(tier: str, threshold: float, min_cases: int | None, allow_flaky: int) -> None:
    """Refuse what the rules would refuse too, with messages that name this command's options."""
    from boosters_eval.programs.gate.model import TIERS

    if not 0 < threshold <= 1:
        raise ConfigError(f"The '--threshold' option must be above 0 and at most 1. Got {threshold} instead.")
    least = TIERS.get(tier, 0)
    if min_cases is not None and min_cases < least:
        raise ConfigError(
            f"The '--min-cases' option must be at least {least}, which tier {tier} needs. Got {min_cases} instead."
        )
    if allow_flaky < 0:
        raise ConfigError(f"The '--allow-flaky' option must be at least 0. Got {allow_flaky} instead.")


def _print(decision: "GateDecision") -> None:
    from boosters_eval.programs.baseline.render import apart
    from boosters_eval.reports.numbers import number

    report, rules = decision.report, decision.rules
    spread = "" if report.stddev is None else f", standard deviation {number(report.stddev)}"
    held_out, level = report.lower_bound_95_held_out, decision.coverage.level
    alike, noun = report.intraclass_correlation, report.unit_noun
    lines = {
        "lower bound (95 %)": f"{apart(report.lower_bound_95, rules.threshold)[0]} on {_counted(report)}",
        "of the held-out": "none"
        if held_out is None
        else f"{apart(held_out, rules.threshold)[0]} ({report.n_held_out} of {report.n_units} {noun}s)",
        "threshold covered": "-" if level is None else f"at {100 * level:.0f} %",
        "intraclass correlation": "-" if alike is None else f"{alike:.2f}",
        "flaky cells": f"{report.n_flaky} ({rules.flaky} allowed)" if report.n_flaky else "none",
        "for people only": f"mean {number(report.mean_score)}{spread}",
    }
    say(f"{'PROMOTED' if decision.promoted else 'HELD'}: tier {rules.tier}, threshold {rules.threshold}")
    for label, value in lines.items():
        say(f"  {label:<24}{value}")
    for sentence in decision.objections:
        say(f"  {sentence}")
    worst = sorted((case for case in report.per_case if case.score < rules.threshold), key=lambda case: case.score)
    for case in worst[:10]:
        say(f"  {case.case_id}: {number(case.score)}{f' ({case.reason})' if case.reason else ''}")
    if len(worst) > 10:
        say(f"  and {len(worst) - 10} more cases below the threshold")
    for sentence in report.notes:
        note(sentence)


def _counted(report: "BenchRunReport") -> str:
    counted = f"{report.n_units} {report.unit_noun}" + ("" if report.n_units == 1 else "s")
    return counted if report.n_cases == report.n_units else f"{counted} ({report.n_cases} cases)"


def register(app: typer.Typer) -> None:
    """Add this command to the program."""
    app.command()(gate)
