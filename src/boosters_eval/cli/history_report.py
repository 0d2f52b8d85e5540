"""The commands `history diff` and `history report`: what changed between two runs, and over all of them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from boosters_eval.cli.history import REFERENCE, history
from boosters_eval.cli.history_filters import RunFilters, RunLimit, nothing
from boosters_eval.cli.options import with_options
from boosters_eval.cli.output import check_output, choose_format, console, emit, say
from boosters_eval.core.errors import ConfigError, ExitCode, RunError

if TYPE_CHECKING:
    from boosters_eval.programs.history.difference import RunDifference

_PAGES = {".html": "html", ".htm": "html", ".md": "markdown", ".markdown": "markdown", ".json": "json"}

Output = Annotated[Path | None, typer.Option("--output", "-o", help="File for the result. Default: stdout.")]


@history.command()
def diff(
    before: Annotated[str, typer.Argument(metavar="BEFORE", help=REFERENCE)],
    after: Annotated[str, typer.Argument(metavar="AFTER", help=REFERENCE)],
    *,
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", "-m", metavar="NAME", help="Only these. Default: all scores, times and memory."),
    ] = None,
    output: Output = None,
    format_: Annotated[
        str | None,
        typer.Option("--format", "-f", help="markdown (or md), json, csv or html. Default: by the ending of --output."),
    ] = None,
) -> int:
    """Compare two runs number by number: paired over the splits that both have, and saying so where not.

    Other data or settings are not compared, nor are times of different machines. Exit 0 whatever the verdicts: to gate
    on them, use a baseline or 'compare --against'.
    """
    from boosters_eval.programs.history.difference import compare_runs

    wanted = choose_format(format_, output)
    check_output(output)
    found = compare_runs(before, after, metrics=RunFilters(metric=metric).chosen().metrics)
    if wanted is None:
        _show(found)
    else:
        emit(_rendered(found, wanted), output)
    return ExitCode.SUCCESS


def _show(found: "RunDifference") -> None:
    from boosters_eval.programs.history.difference import run_text, tables_of
    from boosters_eval.reports.terminal import print_report

    say(f"before: {run_text(found.before)}\nafter:  {run_text(found.after)}\n")
    print_report(tables_of(found), console())


def _rendered(found: "RunDifference", wanted: str) -> str:
    from boosters_eval.programs.history.difference import document_of, run_text, tables_of, title_of
    from boosters_eval.reports.html.page import render_page
    from boosters_eval.reports.text import escape, render_csv, render_markdown

    if wanted == "json":
        return found.model_dump_json(indent=1) + "\n"
    if wanted == "csv":
        return render_csv(tables_of(found))
    if wanted == "html":
        return render_page(document_of(found))
    head = f"# {escape(title_of(found))}\n\n"
    sides = f"- Before: {escape(run_text(found.before))}\n- After: {escape(run_text(found.after))}\n\n"
    return head + sides + render_markdown(tables_of(found))


@history.command()
@with_options(filters=RunFilters)
def report(
    filters: RunFilters,
    *,
    limit: RunLimit = None,
    output: Output = None,
    format_: Annotated[
        str | None,
        typer.Option("--format", "-f", help="html, md or json. Default: by the ending of --output, else md."),
    ] = None,
) -> int:
    """Draw every benchmark, competitor and metric over all runs, and mark where a number changed its level.

    A line without such a step gets one in at most 1 % of cases. Runs on different machines are never in one line.
    """
    from boosters_eval.programs.history import query
    from boosters_eval.programs.history.report import history_report
    from boosters_eval.programs.history.wording import kinds_of, not_judged

    kind = _page_format(format_, output)
    check_output(output)
    wanted = filters.chosen(limit)
    found = history_report(wanted)
    if not found.lines and found.failures:
        raise RunError("There is nothing to report: all cells failed in every run that is meant.")
    if not found.lines and (others := kinds_of(query.runs(wanted))):
        raise RunError(f"There is nothing to report: {not_judged(others)}")
    if not found.lines:
        raise RunError(f"There is nothing to report: {nothing(wanted)}")
    if kind == "html":
        from boosters_eval.programs.history.page import render_history_page

        text = render_history_page(found)
    elif kind == "markdown":
        from boosters_eval.programs.history.markdown import render_history_markdown

        text = render_history_markdown(found)
    else:
        text = found.model_dump_json(indent=1) + "\n"
    emit(text, output)
    return ExitCode.SUCCESS


def _page_format(given: str | None, output: Path | None) -> str:
    name = {"md": "markdown"}.get(given or "", given)
    if name is not None:
        if name not in ("html", "markdown", "json"):
            raise ConfigError(f"The '--format' option must be html, md or json. Got '{given}' instead.")
        return name
    if output is None:
        return "markdown"
    if output.suffix.lower() not in _PAGES:
        raise ConfigError(
            f"The '--output' option must end in .html, .md or .json unless --format is given. Got '{output}' instead."
        )
    return _PAGES[output.suffix.lower()]


def register(app: typer.Typer) -> None:
    """Add the group `history` to the program, with these commands."""
    app.add_typer(history)
