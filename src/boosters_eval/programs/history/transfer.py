"""Results that come from elsewhere and go elsewhere: imported files are kept, so that the index can be made anew."""

from __future__ import annotations

import csv
import io
import json
import warnings
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import BoostersEvalError, BoostersEvalWarning, ExitCode, FileFormatError, RunError
from boosters_eval.core.files import (
    FORMAT,
    MAX_RESULTS,
    check_format,
    check_regular,
    check_writable,
    compute_digest,
    load_json,
    open_atomically,
    read_text,
    write_atomically,
)
from boosters_eval.core.files import find_home as home_of
from boosters_eval.core.findings import Findings, Screen
from boosters_eval.core.text import add_article, clean_csv_cell, count_of, escape_json
from boosters_eval.engine.folder import RunFolder
from boosters_eval.programs.benchmark.results import ResultCollection
from boosters_eval.programs.benchmark.runs import collect
from boosters_eval.programs.history import query
from boosters_eval.programs.history.index import IMPORTS, record_runs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from boosters_eval.programs.history.model import HistoryFilter, RunEntry
    from boosters_eval.programs.history.request import ExportHistoryRequest, ImportHistoryRequest

KIND = "boosters-eval history"
_HEAD = f'{{"schema_version": {FORMAT}, "kind": "{KIND}", "runs": [\n'
_NEXT, _TAIL = ",\n", "]}\n"
COLUMNS = (
    "run_id", "attempt", "origin", "started_at", "suite", "name", "commit", "branch", "dirty", "machine",
    "machine_label", "state", "config", "dataset", "competitor", "library", "version", "metric", "primary", "n",
    "failed", "mean", "verdict", "before",
)  # fmt: skip
_get_run = attrgetter(
    "run_id", "attempt", "origin", "started_at", "title", "name", "git_sha", "git_branch", "git_dirty", "machine",
    "machine_label", "state",
)  # fmt: skip
_get_change = attrgetter("config", "dataset", "target", "library", "version", "metric", "primary", "n", "failed")


@dataclass(frozen=True)
class Imported:
    """What came of one file."""

    file: Path
    added: int = 0
    known: int = 0  # runs that had been imported before
    fault: str = ""


@dataclass(frozen=True)
class HistoryImport(Findings):
    """What came of each file."""

    files: tuple[Imported, ...]

    @property
    def exit_code(self) -> int:
        """A file that holds no results is a mistake of the user."""
        return ExitCode.CONFIGURATION_ERROR if any(one.fault for one in self.files) else ExitCode.SUCCESS

    def show(self, screen: Screen) -> None:
        """A line per file; one of which only a part could be read has two."""
        for one in self.files:
            if one.added or one.known or not one.fault:
                known = f", {one.known} known already" if one.known else ""
                screen.note(f"{one.file}: {one.added} imported{known}.")
            if one.fault:
                screen.note(f"Error: {one.fault}")


def import_files(request: ImportHistoryRequest) -> HistoryImport:
    """Add results of other machines to the history."""
    found = HistoryImport(tuple(import_file(file, request.home) for file in request.files))
    record_runs(request.home)
    return found


def import_file(file: Path, home: Path | None = None) -> Imported:
    """Keep the results of a file of `--format json`, or of `history export`. Once is enough: twice is harmless."""
    added = known = 0
    try:
        for text, source in _documents(file):
            if _keep(text, source, home_of(home)):
                added += 1
            else:
                known += 1
    except BoostersEvalError as error:
        return Imported(file, added, known, str(error))
    return Imported(file, added, known)


def _documents(file: Path) -> Iterator[tuple[str, str]]:
    """The results files in a file, as text, with what to call them: itself, or the lines of an export."""
    try:
        check_regular(file)  # a pipe would be waited for
        with file.open(encoding="utf-8") as lines:
            if lines.readline(len(_HEAD) + 1) == _HEAD:
                yield from _lines(lines, file)
                return
    except UnicodeDecodeError:
        raise FileFormatError(f"{file} is not a text file.") from None
    except OSError:
        pass  # read_text says what is wrong
    text = read_text(file, limit=MAX_RESULTS)
    raw = load_json(text, str(file))
    if isinstance(raw, dict) and raw.get("kind") == KIND:
        yield from _whole(raw, file)
    else:
        yield text, str(file)


def _lines(lines: Any, file: Path) -> Iterator[tuple[str, str]]:
    """One run per line, as it was written: a history is larger than memory should be."""
    for number, line in enumerate(iter(lambda: lines.readline(MAX_RESULTS), ""), 2):
        if line == _TAIL:
            return
        yield line.rstrip().rstrip(","), f"line {number} of {file}"
    raise FileFormatError(f"{file} ends too early: what it has was imported, the rest is lost.")


def _whole(raw: dict[str, Any], file: Path) -> Iterator[tuple[str, str]]:
    """An export that somebody formatted anew."""
    check_format(raw.get("schema_version"), str(file), "a history")
    runs = raw.get("runs")
    if not isinstance(runs, list):
        raise FileFormatError(f"{file} is a history without runs.")
    for number, document in enumerate(runs, 1):
        yield json.dumps(document), f"run {number} of {file}"


def _keep(text: str, source: str, home: Path) -> bool:
    """Write one results file under the name of its content; False if it was there."""
    results = ResultCollection.from_json(text, source=source)
    if not results.results and not results.errors:
        raise FileFormatError(f"{source} has no results.")
    facts = results.metadata.facts
    if not _is_time(facts.started_at) or not facts.machine.get("digest"):
        raise FileFormatError(f"{source} does not say when and on which machine it ran: write it with its metadata.")
    cells = Counter((one.config_name, one.library, one.seed, one.fold) for one in (*results.results, *results.errors))
    config, library, seed, _ = max(cells, key=lambda cell: cells[cell])
    if max(cells.values()) > 1:
        raise FileFormatError(f"{source} has more than one result of {library} on {config} for seed {seed}.")
    content = results.to_json().encode()
    path = home / IMPORTS / f"{compute_digest(content, 32)}.json"
    if path.exists() and path.read_bytes() == content:
        return False
    write_atomically(path, content, own=True)
    return True


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        return False
    return True


@dataclass
class HistoryExport(Findings):
    """The runs that are meant. They are read while they are written: a history is larger than memory should be."""

    wanted: HistoryFilter
    format: str
    output: Path | None = None  # None: nothing was written yet
    home: Path | None = None
    count: int = 0  # runs that were written
    left_out: list[str] = field(default_factory=list)  # with the reasons

    @property
    def exit_code(self) -> int:
        """A run that cannot be read is missing from the export."""
        lacking = any("cannot be read" in reason for reason in self.left_out)
        return ExitCode.EXECUTION_ERROR if lacking else ExitCode.SUCCESS

    def pour(self, write: Callable[[str], object]) -> None:
        """Write all runs, the oldest first."""
        self.count, self.left_out = 0, []
        if self.format == "csv":
            self._pour_csv(write)
        else:
            self._pour_json(write)

    def _pour_json(self, write: Callable[[str], object]) -> None:
        """Whole benchmark runs, one per line."""
        write(_HEAD)
        for entry in reversed(query.list_runs(self.wanted, self.home)):
            try:
                document = _load(entry).document().model_dump_json(exclude_none=True)
            except BoostersEvalError as error:
                self.left_out.append(f"{entry.run_id} {str(error).rstrip('.')}")
                continue
            write(f"{_NEXT if self.count else ''}{escape_json(document)}")
            self.count += 1
        write(f"\n{_TAIL}" if self.count else _TAIL)

    def _pour_csv(self, write: Callable[[str], object]) -> None:
        """A line per run, benchmark, competitor and metric; a competitor without any number has one too."""
        buffer = io.StringIO()
        rows = csv.writer(buffer, lineterminator="\n")
        rows.writerow(COLUMNS)
        for entry, changes in query.walk_runs(self.wanted, self.home):
            if entry.state == "unreadable":
                self.left_out.append(f"{entry.run_id} cannot be read: {entry.fault}")
                continue
            self.count += 1
            for change in changes:
                mean = "" if change.mean is None else repr(change.mean)
                values = (*_get_run(entry), *_get_change(change), mean, change.verdict, change.before)
                rows.writerow(map(clean_csv_cell, values))
            write(buffer.getvalue())
            buffer.seek(0)
            buffer.truncate()
        write(buffer.getvalue())

    def show(self, screen: Screen) -> None:
        """Everything, unless it is in a file."""
        if self.output is None:
            self.pour(screen.write)

    def conclude(self, screen: Screen) -> None:
        """Where it is, and what it lacks."""
        if self.output is not None:
            screen.note(f"Written: {self.output} ({count_of(self.count, 'run')})")
        for reason in self.left_out:
            screen.note(f"Note: left out: {reason}.")


def export_runs(request: ExportHistoryRequest) -> HistoryExport:
    """Write the benchmark runs of the history to a file, if one is named."""
    output = request.output
    by_ending = "csv" if output is not None and output.suffix.lower() == ".csv" else "json"
    found = HistoryExport(query.make_filter(request), request.format or by_ending, output, request.home)
    if output is not None:
        check_writable(output)
        with open_atomically(output) as file:
            found.pour(file.write)
    return found


def _load(entry: RunEntry) -> ResultCollection:
    """The results of a run, or what follows its id in a sentence that tells why it is left out."""
    if entry.state == "unreadable":
        raise RunError(f"cannot be read: {entry.fault}")
    if entry.state == "not begun":
        raise RunError("has not begun")
    if entry.kind != "benchmark":
        raise RunError(f"is {add_article(entry.kind)} run, which has reports of its own")
    path = Path(entry.source)
    try:
        if entry.origin == "import":
            return ResultCollection.load_partial(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BoostersEvalWarning)  # that a run is not sealed is in its count of cells
            return collect(RunFolder(path).load(entry.attempt))
    except BoostersEvalError as error:
        raise RunError(f"cannot be read: {error}") from None
