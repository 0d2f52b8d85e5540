"""The history: list and show runs, import and export results, make the index anew."""

import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from boosters_eval.cli.history_filters import RunFilters, RunLimit, nothing
from boosters_eval.cli.options import with_options
from boosters_eval.cli.output import check_output, note, print_json, print_rows, say
from boosters_eval.core.errors import ConfigError, ExitCode, suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from boosters_eval.programs.history.model import Change, RunEntry

history = typer.Typer(
    name="history",
    help="The history of this home: every run, with its verdict against the run before on the same machine.\n\n"
    "Without a command, the runs are listed, the latest first.",
    invoke_without_command=True,
    rich_markup_mode=None,
)
REFERENCE = "A run id, the beginning of one, a name, or 'last'; with /ATTEMPT or @MACHINE where several have it."
_LATEST = 30
_ORDER = ("worse", "failed", "better", "equivalent", "inconclusive", "not comparable", "first")


@history.callback()
@with_options(filters=RunFilters)
def list_history(
    context: typer.Context,
    filters: RunFilters,
    *,
    limit: RunLimit = _LATEST,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """List the runs."""
    wanted = filters.chosen(limit)
    if context.invoked_subcommand is not None:
        if filters != RunFilters() or json or limit != _LATEST:
            raise ConfigError(f"Give the options after '{context.invoked_subcommand}', not before it.")
        return ExitCode.SUCCESS
    from boosters_eval.programs.history import query

    found, count = query.listing(wanted)
    if json:
        print_json([{**_record(entry), "changes": [_change(change) for change in changes]} for entry, changes in found])
    elif found:
        columns = ("run", "started", "suite", "commit", "versions", "machine", "cells", "against the run before")
        print_rows(columns, [_row(entry, changes) for entry, changes in found])
    if not found:
        note(f"Note: {nothing(wanted)}")
    elif count > len(found):
        note(f"Note: these are the latest {len(found)} of {count} runs; --limit shows more.")
    return ExitCode.SUCCESS


@history.command()
def show(
    reference: Annotated[str, typer.Argument(metavar="RUN", help=REFERENCE)],
    *,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Show one run: what it measured, and every number against the run before on the same machine."""
    from boosters_eval.cli.runs import kind_text
    from boosters_eval.programs.history import query

    entry = query.find(reference)
    changes = query.changes(entry, look=False)
    if json:
        print_json({**_record(entry), "changes": [_change(change) for change in changes]})
        return ExitCode.SUCCESS
    commit = _commit(entry)
    lines = {
        "run": f"{entry.run_id}, attempt {entry.attempt}",
        "name": entry.name,
        "kind": kind_text(entry.kind, entry.title),
        "data": "" if changes else _data(entry),  # the table of changes names its benchmarks
        "state": entry.state + (f": {entry.fault}" if entry.fault else ""),
        "started": _when(entry),
        "cells": _cells(entry),
        "versions": _versions(entry),
        "commit": f"{commit} on {entry.git_branch}" if commit and entry.git_branch else commit,
        "machine": " ".join(filter(None, [entry.machine_label, f"({entry.machine})" if entry.machine else ""])),
        "grown": "a later run added seeds to it" if entry.superseded else "",
        "extends": entry.extends,
        "imported" if entry.origin == "import" else "folder": entry.source,
    }
    for label, value in lines.items():
        if value:
            say(f"{label:<10}{value}")
    if changes:
        say("")
        columns = ("benchmark", "competitor", "metric", "mean", "n", "before", "verdict")
        print_rows(columns, [_numbers(change) for change in changes], keys=2)
        before = next((change.before for change in changes if change.before), "")
        if before:
            run_id, attempt, started, _ = before.rsplit("/", 3)
            note(f"Note: the run before is {run_id}/{attempt}, of {started}.")
    return ExitCode.SUCCESS


def _data(entry: "RunEntry") -> str:
    """The data sets of a run of which the history has no numbers."""
    from boosters_eval.cli.runs import data_sets
    from boosters_eval.engine.folder import RunFolder

    return data_sets(RunFolder(Path(entry.source)), entry.attempt) if entry.origin == "run" else ""


@history.command("import")
def import_files(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Results of --format json, or what 'history export' wrote.")
    ],
) -> int:
    """Add results of other machines to the history. Importing a file twice is harmless.

    A file that holds no results is told, and the others are still imported; the exit code is then 3.
    """
    from boosters_eval.programs.history.transfer import import_file

    good = True
    for file in files:
        found = import_file(file)
        if found.added or found.known or not found.fault:
            known = f", {found.known} known already" if found.known else ""
            note(f"{file}: {found.added} imported{known}.")
        if found.fault:
            good = False
            note(f"Error: {found.fault}")
    from boosters_eval.programs.history.hook import record_runs

    record_runs()
    return ExitCode.SUCCESS if good else ExitCode.CONFIGURATION_ERROR


@history.command()
@with_options(filters=RunFilters)
def export(
    filters: RunFilters,
    *,
    limit: RunLimit = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to a file.")] = None,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format", "-f", help="json: whole runs, which can be imported elsewhere; csv: one line per number."
        ),
    ] = None,
) -> int:
    """Write the benchmark runs of the history to a file or to stdout.

    The filters choose runs for json, and numbers for csv. A run that cannot be read is told, and the exit code is 2.
    """
    from boosters_eval.programs.history.transfer import export_csv, export_json

    wanted = filters.chosen(limit)
    kind = _export_format(format_, output)
    check_output(output)
    left_out: list[str] = []

    def pour(write: "Callable[[str], object]") -> int:
        if kind == "csv":
            return export_csv(wanted, write)
        count, others = export_json(wanted, write)
        left_out.extend(others)
        return count

    if output is None:
        pour(sys.stdout.write)
    else:
        from boosters_eval.core.files import writing_atomically

        with writing_atomically(output) as file:
            count = pour(file.write)
        note(f"Written: {output} ({count} run{'' if count == 1 else 's'})")
    for reason in left_out:
        note(f"Note: left out: {reason}.")
    return ExitCode.EXECUTION_ERROR if any("cannot be read" in reason for reason in left_out) else ExitCode.SUCCESS


@history.command()
def reindex() -> int:
    """Read all runs and imported files anew. Nothing but time is lost with the index: it only repeats what they say."""
    from boosters_eval.programs.history.index import reindex as read_anew

    with _progress() as tell:
        count = read_anew(tell=tell)
    note(f"Indexed: {count} run{'' if count == 1 else 's'}.")
    return ExitCode.SUCCESS


def _export_format(given: str | None, output: Path | None) -> str:
    if given is None:
        suffix = "" if output is None else output.suffix.lower()
        if suffix not in ("", ".json", ".csv"):
            raise ConfigError(
                f"The '--output' option must end in .json or .csv unless --format is given. Got '{output}' instead."
            )
        return "csv" if suffix == ".csv" else "json"
    if given not in ("json", "csv"):
        raise ConfigError(
            f"The '--format' option must be json or csv. Got '{given}' instead.{suggest(given, ('json', 'csv'))}"
        )
    return given


class _progress:  # noqa: N801 (used like a function)
    """Say how far the reading is, on a terminal only."""

    def __enter__(self) -> "Callable[[int, int], None]":
        self._bar: Any = None
        if not sys.stderr.isatty():
            return lambda _done, _all: None
        from rich.console import Console
        from rich.progress import Progress

        self._bar = Progress(console=Console(stderr=True), transient=True)
        self._bar.start()
        task = self._bar.add_task("Reading runs", total=None)
        return lambda done, count: self._bar.update(task, completed=done, total=count)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()


def _row(entry: "RunEntry", changes: "Sequence[Change]") -> tuple[str, ...]:
    run = entry.run_id if entry.attempt <= 1 else f"{entry.run_id}/{entry.attempt}"
    return (
        run + (f" ({entry.name})" if entry.name else ""),
        _when(entry),
        entry.title if entry.kind in ("benchmark", "", entry.title) else f"{entry.kind}: {entry.title}",
        _commit(entry) or "-",
        _versions(entry) or "-",
        _machine(entry),
        _cells(entry),
        _verdict(entry, changes),
    )


def _verdict(entry: "RunEntry", changes: "Sequence[Change]") -> str:
    """What changed, in a few words, the worst first; what is worse is named."""
    if entry.superseded:
        return "continued by a later run"
    counts: dict[str, list[Change]] = {}
    for change in changes:
        if change.verdict:
            counts.setdefault(change.verdict, []).append(change)
    if not counts:
        return "-"
    if set(counts) == {"first"}:
        return "first"
    parts = []
    for verdict in sorted(counts, key=lambda name: _ORDER.index(name) if name in _ORDER else len(_ORDER)):
        group = counts[verdict]
        named = f" ({_where(group[0])})" if verdict in ("worse", "failed", "better") and len(group) == 1 else ""
        parts.append(f"{len(group)} {verdict}{named}")
    return ", ".join(parts)


def _where(change: "Change") -> str:
    return " ".join(filter(None, [change.target, change.metric, "on", change.config]))


def _numbers(change: "Change") -> tuple[str, ...]:
    mean = "-" if not change.n else f"{change.mean:.6g}"
    failed = f" ({change.failed} failed)" if change.failed else ""
    before = "-" if change.before_mean is None else f"{change.before_mean:.6g}"
    target = " ".join(filter(None, [change.target, change.version]))
    return change.config, target, change.metric or "-", mean, f"{change.n}{failed}", before, change.verdict or "-"


def _cells(entry: "RunEntry") -> str:
    if entry.state == "damaged":
        return f"damaged: {entry.fault}"
    if entry.state == "not begun":
        return entry.state
    parts = [f"{entry.done} done"]
    parts += [f"{entry.failed} failed"] if entry.failed else []
    parts += [f"{entry.missing} missing"] if entry.missing else []
    parts += ["running"] if entry.state == "running" else []
    parts += ["not sealed"] if entry.state == "unfinished" and not entry.missing else []
    return ", ".join(parts)


def _commit(entry: "RunEntry") -> str:
    return entry.git_sha + ("*" if entry.git_dirty else "") if entry.git_sha else ""


def _machine(entry: "RunEntry") -> str:
    return " ".join(filter(None, [entry.machine_label, entry.machine[:6]])) or "-"


def _versions(entry: "RunEntry") -> str:
    return ", ".join(f"{name} {version}".rstrip() for name, version in entry.versions.items())


def _when(entry: "RunEntry") -> str:
    try:
        return f"{datetime.fromisoformat(entry.started_at).astimezone():%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError):
        return entry.started_at or "-"


def _record(entry: "RunEntry") -> dict[str, Any]:
    """A run as plain data."""
    from dataclasses import asdict

    return {**asdict(entry), "versions": dict(entry.versions)}


def _change(change: "Change") -> dict[str, Any]:
    """A change as plain data; a mean that is not there is null."""
    from dataclasses import asdict

    return {**asdict(change), "mean": change.mean if change.n else None}
