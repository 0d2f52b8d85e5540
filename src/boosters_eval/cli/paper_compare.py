"""The commands `paper compare|report|validate`: what was measured against what the paper prints."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from boosters_eval.cli.options import Execution, check_cluster, with_options
from boosters_eval.cli.output import check_output, emit, note, print_rows, say
from boosters_eval.cli.paper_run import (
    PAPER_LEAVES_OUT,
    PaperModelOption,
    PaperOnlyOption,
    PaperOutputOption,
    PaperPickleOption,
    PaperQuietOption,
    PaperSeedsOption,
    PaperSpecOption,
    PaperThreadsOption,
    run_targets,
)
from boosters_eval.core.errors import ConfigError, ExitCode, suggest

if TYPE_CHECKING:
    from boosters_eval.programs.paper.comparison import PaperComparison

FORMATS = ("yaml", "json", "markdown", "html")
_SUFFIXES = {
    **dict.fromkeys((".yaml", ".yml"), "yaml"),
    ".json": "json",
    **dict.fromkeys((".md", ".markdown", ".txt"), "markdown"),
    **dict.fromkeys((".html", ".htm"), "html"),
}
_FORMAT_HELP = "yaml, json, markdown (or md) or html. Default: by the ending of --output."
PaperFormatOption = Annotated[str | None, typer.Option("--format", "-f", help=_FORMAT_HELP)]
_REPORTS = ("comparison.yaml", "benchmark_report.md", "benchmark_report.html", "benchmark_report.json")


def compare(
    *,
    results: Annotated[Path, typer.Option("--results", help="The results that 'paper run' wrote.")],
    paper: Annotated[Path, typer.Option("--paper", help="The paper's specification (benchmarks.yaml).")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File for the comparison: .yaml, .json, .md or .html.")
    ] = None,
    format_: PaperFormatOption = None,
    quiet: PaperQuietOption = False,
) -> int:
    """Compare results with the values of a paper.

    Exit 0 if every primary target is within tolerance, 1 if one is not, 2 if something could not run, 3 for a bad file.
    """
    from boosters_eval.programs.paper.compare import compare_results
    from boosters_eval.programs.paper.files import digest_of, read_results
    from boosters_eval.programs.paper.reading import read_specification

    kind = _format(format_, output)
    check_output(output)
    files = tuple(str(path) for path in (results, output) if path is not None)
    found = compare_results(read_specification(paper), read_results(results), digest=digest_of(paper), files=files)
    if kind is not None:
        emit(_rendered(found, kind), output, quiet=quiet)
    if not quiet and (output is not None or kind is None):
        _print(found)
    return _complain(found)


def report(
    *,
    comparison: Annotated[Path, typer.Option("--comparison", help="The comparison that 'paper compare' wrote.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File for the report: .md, .html, .json or .yaml.")
    ] = None,
    format_: PaperFormatOption = None,
    quiet: PaperQuietOption = False,
) -> int:
    """Write the report of a comparison.

    The same comparison always gives the same bytes. Exit 0 if the report was written, whatever its verdict.
    """
    from boosters_eval.programs.paper.files import read_comparison

    kind = _format(format_, output) or "markdown"
    check_output(output)
    found = read_comparison(comparison)
    emit(_rendered(found, kind), output, quiet=quiet)
    return ExitCode.SUCCESS


@with_options(execution=Execution, without=PAPER_LEAVES_OUT)
def validate(
    *,
    execution: Execution,
    spec: PaperSpecOption,
    model: PaperModelOption = None,
    only: PaperOnlyOption = None,
    output: PaperOutputOption = Path("results"),
    seeds: PaperSeedsOption = None,
    threads: PaperThreadsOption = None,
    allow_pickle: PaperPickleOption = False,
    quiet: PaperQuietOption = False,
) -> int:
    """Run the reproduction targets, compare them with the paper, and write the reports.

    Functions and programs that the specification names are executed: run only what you trust.
    Exit 0 if every primary target is within tolerance, 1 if one is not, 2 if something could not run, 3 for a bad file.
    """
    from boosters_eval.programs.paper.compare import compare_results
    from boosters_eval.programs.paper.files import digest_of
    from boosters_eval.programs.paper.reading import read_specification
    from boosters_eval.programs.paper.running import RESULTS

    check_cluster(execution)
    declared, digest = read_specification(spec), digest_of(spec)  # it may be edited while the targets run
    for name in _REPORTS:
        check_output(output / name)
    results = run_targets(
        spec,
        output,
        execution,
        quiet=quiet,
        model=model,
        only=only or (),
        seeds=seeds,
        threads=threads,
        allow_pickle=allow_pickle,
    )
    files = [str(output / name) for name in (RESULTS, *_REPORTS)]
    found = compare_results(declared, results, digest=digest, files=files)
    for name in _REPORTS:
        emit(_rendered(found, _SUFFIXES[Path(name).suffix]), output / name, quiet=quiet)
    if not quiet:
        _print(found)
    return _complain(found)


def _format(given: str | None, output: Path | None) -> str | None:
    """The requested format, or that of the file's extension."""
    if given is not None:
        name = {"md": "markdown", "yml": "yaml"}.get(given, given)
        if name not in FORMATS:
            raise ConfigError(
                f"The '--format' option must be {', '.join(FORMATS[:-1])} or {FORMATS[-1]}."
                f" Got '{given}' instead.{suggest(given, FORMATS)}"
            )
        return name
    if output is None:
        return None
    if output.suffix.lower() not in _SUFFIXES:
        raise ConfigError(
            "The '--output' option must end in .yaml, .json, .md or .html unless --format is given."
            f" Got '{output}' instead."
        )
    return _SUFFIXES[output.suffix.lower()]


def _rendered(found: "PaperComparison", kind: str) -> str:
    from boosters_eval.programs.paper import files, page, report

    render = {
        "yaml": files.to_yaml,
        "json": files.to_json,
        "markdown": report.render_markdown,
        "html": page.render_html,
    }
    return render[kind](found)


def _print(found: "PaperComparison") -> None:
    """The comparisons and the verdict, for a person; the reports have the details."""
    from boosters_eval.programs.paper.report import reasons, row_name, unexplained
    from boosters_eval.programs.paper.wording import (
        CONFIDENCE,
        OVERALL,
        difference_text,
        metric_label,
        our_text,
        overall,
        paper_text,
        status_text,
    )

    rows = []
    for target in found.targets:
        for metric in target.metrics:
            numbers = paper_text(metric), our_text(metric), difference_text(metric)
            name = metric_label(metric.metric_name)
            rows.append((target.table, row_name(target), target.dataset, name, *numbers, status_text(metric)))
    print_rows(("table", "row", "data set", "metric", "paper", "ours", "diff", "status"), rows, keys=4)
    for place, target, deviating in unexplained(found):
        if deviating is not None and deviating.status != "missing":
            say(f"{place}: {' '.join(reasons(found, target, deviating))}")
    for text in found.notes:
        say(f"Note: {text}")
    mark, verdict = OVERALL[found.verdict]
    say(f"{mark} {verdict} ({CONFIDENCE[found.confidence].lower()}): {overall(found)}")


def _complain(found: "PaperComparison") -> int:
    """Say what could not be compared, even if quiet, and give the exit code."""
    from boosters_eval.programs.paper.report import reasons, unexplained

    for place, target, metric in unexplained(found):
        if metric is None or metric.status == "missing":
            note(f"Error: {place}: {' '.join(reasons(found, target, metric))}")
    return found.exit_code


def register(app: typer.Typer) -> None:
    """Add these commands to `paper`."""
    app.command()(compare)
    app.command()(report)
    app.command()(validate)
