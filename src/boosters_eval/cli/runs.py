"""Commands on earlier runs: verify, and runs list, show, open and remove."""

import os
import shlex
import sys
import tempfile
import time
import webbrowser
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from boosters_eval.cli.output import note, print_json, print_rows, say
from boosters_eval.cli.removing import confirm_removal, sized, span_seconds
from boosters_eval.core.errors import BoostersEvalError, ConfigError, ExitCode, RunError
from boosters_eval.core.text import counted

if TYPE_CHECKING:
    from boosters_eval.engine.folder import RunFolder
    from boosters_eval.engine.summaries import RunSummary

runs = typer.Typer(
    name="runs", help="The runs in this home: list, show, open, remove.", no_args_is_help=True, rich_markup_mode=None
)
_REFERENCE = "A run id, the beginning of one, a name given with --name, or 'last'."


def verify(
    run: Annotated[
        str,
        typer.Argument(
            help="A run id, the beginning of one, its name, 'last', a run's folder, or the file of a gate decision."
        ),
    ],
    *,
    baseline: Annotated[Path | None, typer.Option("--baseline", help="The baseline that the decision quotes.")] = None,
    scores: Annotated[Path | None, typer.Option("--scores", help="The scores file that the decision quotes.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing; only set the exit code.")] = False,
) -> int:
    """Verify a run's journal, or recompute a gate decision.

    A journal must be complete and unchanged; a decision must be reproduced byte for byte.
    """
    from boosters_eval.api import verify_run
    from boosters_eval.programs import gate

    file = Path(run)
    if file.is_file():
        if not gate.is_decision(file):
            raise ConfigError(f"{file} is not a gate decision.")
        fault = gate.verify_decision(file, baseline=baseline, scores=scores)
        if not quiet:
            against = gate.verified_against(file, baseline=baseline, scores=scores)
            say(f"{file}: {fault or f'computed again, with the same bytes ({against})'}")
        return ExitCode.EXECUTION_ERROR if fault else ExitCode.SUCCESS
    if baseline is not None or scores is not None:
        raise ConfigError("The '--baseline' and '--scores' options are only for the file of a gate decision.")
    good = True
    for name, fault in verify_run(run):
        good = good and not fault
        if not quiet:
            say(f"{name}: {fault or 'complete and untouched'}")
    return ExitCode.SUCCESS if good else ExitCode.EXECUTION_ERROR


@runs.command("list")
def list_runs(
    *,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    wide: Annotated[bool, typer.Option("--wide", help="Show attempts, sizes and commands too, as in a pipe.")] = False,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=1, help="Only the latest so many. Default: all.")
    ] = None,
) -> int:
    """List the runs in this home, the latest first; damaged ones too."""
    from boosters_eval.core.home import home
    from boosters_eval.engine.runs import all_folders
    from boosters_eval.engine.summaries import summarise

    found = sorted(map(summarise, all_folders()), key=lambda run: run.written, reverse=True)[:limit]
    if json:
        print_json([_record(run) for run in found])
    elif not found:
        note(f"Note: there are no runs in {home() / 'runs'}.")
    else:
        _print_runs(found, wide=wide or not sys.stdout.isatty())
    return ExitCode.SUCCESS


def _print_runs(found: "list[RunSummary]", *, wide: bool) -> None:
    rows = [(run.run_id, _name(run) or "-", _when(run), run.kind or "-", _cells(run)) for run in found]
    columns: tuple[str, ...] = ("run", "name", "started", "kind", "cells")
    if not wide:
        print_rows(columns, rows)
        return
    more = [(str(run.attempts), sized(run.size), _command(run)) for run in found]
    print_rows((*columns, "attempts", "size", "command"), [(*row, *rest) for row, rest in zip(rows, more, strict=True)])


@runs.command()
def show(
    reference: Annotated[str, typer.Argument(metavar="RUN", help=_REFERENCE)],
    *,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Show what is known of a run: its facts, its attempts, and the commands that go on from it."""
    from boosters_eval.engine.summaries import summarise

    folder = _find(reference)
    run = summarise(folder)
    attempts = [_attempt(folder, number) for number in folder.attempts()]
    if json:
        print_json({**_record(run), "attempts": attempts, "next": _next(run)})
        return ExitCode.SUCCESS
    facts = run.facts
    machine = facts.machine if facts else {}
    commit = "" if facts is None or not facts.git_sha else facts.git_sha + (" (changed)" if facts.git_dirty else "")
    lines = {
        "run": run.run_id,
        "name": _name(run),
        "kind": kind_text(run.kind, run.title),
        "data": data_sets(folder, folder.attempts()[-1]) if attempts else "",
        "state": run.state + (f": {run.fault}" if run.fault else ""),
        "started": _when(run),
        "cells": _cells(run),
        "targets": ", ".join(f"{name} {build.version}" for name, build in (facts.targets if facts else {}).items()),
        "commit": commit,
        "machine": _machines(folder) or ", ".join(str(machine[key]) for key in ("cpu_model", "os") if machine.get(key)),
        "extends": facts.extends if facts else "",
        "folder": f"{run.path} ({sized(run.size)})",
        "command": _command(run),
    }
    for label, value in lines.items():
        if value:
            say(f"{label:<10}{value}")
    for attempt in attempts:
        told = ", ".join(str(attempt[key]) for key in ("started_at", "name", "state") if attempt[key])
        say(f"{'attempt':<10}{attempt['attempt']}: {told}")
    for label, command in _next(run).items():
        say(f"{label:<10}{command}")
    return ExitCode.SUCCESS


def kind_text(kind: str, title: str) -> str:
    """What kind of run it is, and of what, unless that is the same word."""
    return " ".join(filter(None, [kind, f"({title})" if title not in ("", kind) else ""]))


def data_sets(folder: "RunFolder", attempt: int) -> str:
    """The data sets of a run's plan, as far as it can be read and its benchmarks have any."""
    from boosters_eval.core.files import MAX_RESULTS, load_json, read_text

    path = folder.plan_path(attempt)
    try:
        specs = load_json(read_text(path, limit=MAX_RESULTS), str(path))["specs"]
        return ", ".join(dict.fromkeys(str(spec["dataset"]) for spec in specs if spec.get("dataset")))
    except (BoostersEvalError, OSError, LookupError, TypeError, AttributeError):  # the state tells of it
        return ""


def _machines(folder: "RunFolder") -> str:
    """The machines of the latest attempt, if its outcomes name any, and how many cells each has run."""
    from boosters_eval.engine.journal import read

    try:
        found = read(folder.journal_path(folder.attempts()[-1]))
    except (BoostersEvalError, OSError, IndexError):  # the state tells of it
        return ""
    cells = Counter(outcome.machine for outcome in found.outcomes.values())
    if not found.machines or cells.keys() <= {None}:
        return ""
    told = []
    for digest, count in cells.items():
        machine = found.machines.get(digest or "")
        name = "where the run began" if machine is None else machine.cpu_model
        node = f", node {machine.node}" if machine is not None and machine.node else ""
        told.append(f"{name}{node} ({counted(count, 'cell')})")
    return "; ".join(told)


def _attempt(folder: "RunFolder", number: int) -> dict[str, Any]:
    """One line about an attempt; what cannot be read is its state."""
    from boosters_eval.engine.summaries import is_running, sealed_outcomes

    started = name = ""
    try:
        facts = folder.facts(number)
        started, name = facts.started_at, facts.known_as
        open_ = sealed_outcomes(folder.journal_path(number)) is None
        latest = number == folder.attempts()[-1]
        state = ("running" if latest and is_running(folder.path) else "unfinished") if open_ else "finished"
    except OSError as error:
        state = f"damaged: {error.strerror}"
    except BoostersEvalError as error:
        state = f"damaged: {error}"
    return {"attempt": number, "started_at": started, "name": name, "state": state}


def _next(run: "RunSummary") -> dict[str, str]:
    """The commands that continue, report and verify a run."""
    words = list(run.facts.command) if run.facts else []
    found = {}
    if words and run.state == "unfinished":
        found["resume"] = shlex.join(["boosters-eval", *words, "--resume"])
    if words and run.state == "finished" and run.failed:
        found["retry"] = shlex.join(["boosters-eval", *words, "--rerun-failed"])
    if run.kind in ("benchmark", "importances") and run.state != "damaged" and run.done + run.failed:
        found["report"] = f"boosters-eval runs open {run.run_id}"
    return {**found, "verify": f"boosters-eval verify {run.run_id}"}


@runs.command("open")
def open_run(
    reference: Annotated[str, typer.Argument(metavar="RUN", help=_REFERENCE)] = "last",
    *,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only write the page, and print its path.")] = False,
) -> int:
    """Write the HTML report of a run into its folder, and open it in the browser.

    Without a display, only the path is printed.
    """
    from boosters_eval.core.files import write_atomically
    from boosters_eval.programs.importances.running import is_explained

    run_id, page = _explained_page(reference) if is_explained(reference) else _benchmark_page(reference)
    path = _find(run_id or reference).path / "report.html"
    try:
        write_atomically(path, page, own=True)
    except BoostersEvalError:  # a home that may only be read
        path = Path(tempfile.mkdtemp(prefix="boosters-eval-")) / "report.html"
        write_atomically(path, page)
    say(str(path.resolve()))
    if not no_browser and _has_display():
        webbrowser.open(path.resolve().as_uri())
    return ExitCode.SUCCESS


def _benchmark_page(reference: str) -> tuple[str | None, str]:
    from boosters_eval import reports
    from boosters_eval.api import load_run
    from boosters_eval.programs.benchmark import tables

    results = load_run(reference)
    if not results.results and not results.errors:
        raise RunError("There is nothing to report: no cell has an outcome.")
    return results.run_id, reports.render_page(tables.build_document(results, "comparison"))


def _explained_page(reference: str) -> tuple[str | None, str]:
    from boosters_eval.api import load_importances

    found = load_importances(reference)
    if not found.results:
        raise RunError("There is nothing to report: no cell has an outcome.")
    return found.collection.run_id, found.report("html")


def _has_display() -> bool:
    """Whether a browser has somewhere to open; without, Python would start one inside the terminal."""
    wanted = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    return not sys.platform.startswith("linux") or any(os.environ.get(name) for name in wanted)


@runs.command()
def remove(
    references: Annotated[list[str] | None, typer.Argument(metavar="RUN", help=_REFERENCE)] = None,
    *,
    older_than: Annotated[
        str | None,
        typer.Option("--older-than", metavar="TIME", help="All runs last written to before so long: 12h, 30d, 8w."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be removed, but remove nothing.")] = False,
) -> int:
    """Remove runs, with all their attempts. One that is being executed stays.

    What was written elsewhere stays: baselines, reports, and gate decisions, which can no longer be verified.
    """
    from boosters_eval.engine import removal
    from boosters_eval.engine.runs import all_folders
    from boosters_eval.engine.summaries import summarise

    if bool(references) == (older_than is not None):
        raise ConfigError("Use either RUN... or --older-than to choose what to remove.")
    if older_than is not None:
        limit = time.time() - span_seconds(older_than)
        chosen = [run for run in map(summarise, all_folders()) if run.written < limit and run.state != "running"]
    else:
        folders = {folder.run_id: folder for folder in map(_find, references or ())}
        chosen = list(map(summarise, folders.values()))
    for run in chosen:
        say(f"{run.run_id}  {_when(run)}  {_name(run) or run.title or '-'}  {_cells(run)}  {sized(run.size)}")
    if not chosen:
        note("Note: there is nothing to remove.")
    if dry_run or not chosen:
        return ExitCode.SUCCESS
    confirm_removal(len(chosen), "run", yes=yes)
    removal.clear_leftovers()
    failed = 0
    for folder in [folder for folder in all_folders() if folder.run_id in {run.run_id for run in chosen}]:
        try:
            removal.remove(folder)
        except RunError as error:
            failed += 1
            note(f"Error: {error}")
    note(f"Removed: {len(chosen) - failed} of {len(chosen)} runs.")
    return ExitCode.EXECUTION_ERROR if failed else ExitCode.SUCCESS


def _find(reference: str) -> "RunFolder":
    """A run of any kind, one without any attempt or with unreadable files too, by its whole id."""
    from boosters_eval.engine.runs import all_folders, find_run

    for folder in all_folders():
        if folder.run_id == reference:
            return folder
    return find_run(reference)


def _record(run: "RunSummary") -> dict[str, Any]:
    """A run as plain data, the same in `list` and `show`."""
    return {
        "run_id": run.run_id,
        "name": _name(run),
        "kind": run.kind,
        "title": run.title,
        "state": run.state,
        "fault": run.fault,
        "started_at": run.facts.started_at if run.facts else "",
        "written_at": datetime.fromtimestamp(run.written, UTC).isoformat(timespec="seconds"),
        "done": run.done,
        "failed": run.failed,
        "missing": run.missing,
        "attempts": run.attempts,
        "bytes": run.size,
        "command": list(run.facts.command) if run.facts else [],
        "path": str(run.path),
    }


def _name(run: "RunSummary") -> str:
    return run.facts.known_as if run.facts else ""


def _when(run: "RunSummary") -> str:
    """When it started, or was last written to where that is not known, in local time."""
    try:
        started = datetime.fromisoformat(run.facts.started_at if run.facts else "")
    except ValueError:
        started = datetime.fromtimestamp(run.written, UTC)
    return f"{started.astimezone():%Y-%m-%d %H:%M}"


def _cells(run: "RunSummary") -> str:
    if run.state == "damaged":
        return f"damaged: {run.fault}"
    if run.state == "not begun":
        return run.state
    parts = [f"{run.done} done"]
    parts += [f"{run.failed} failed"] if run.failed else []
    parts += [f"{run.missing} missing"] if run.missing else []
    parts += ["running"] if run.state == "running" else []
    parts += ["not sealed"] if run.state == "unfinished" and not run.missing else []
    return ", ".join(parts)


def _command(run: "RunSummary") -> str:
    words = run.facts.command if run.facts else ()
    return shlex.join(["boosters-eval", *words]) if words else "(Python)" if run.facts else "-"


def register(app: typer.Typer) -> None:
    """Add these commands to the program."""
    app.command()(verify)
    app.add_typer(runs)
