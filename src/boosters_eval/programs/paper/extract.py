"""The tables of results of a paper, cell by cell, with the digits as printed and a list of what was not read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import Field

from boosters_eval.core.errors import ConfigError, ExitCode, UnknownNameError
from boosters_eval.core.files import FORMAT, Format, write_atomically
from boosters_eval.core.findings import Findings
from boosters_eval.core.model import Model
from boosters_eval.core.terms import named, the
from boosters_eval.programs.paper.lexicon import Better
from boosters_eval.programs.paper.specification import StdOver
from boosters_eval.programs.paper.values import looks_like_result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boosters_eval.core.findings import Screen
    from boosters_eval.programs.paper.request import ExtractPaperRequest

_LISTED = 50  # of what was not read; the file has all of it


class Unread(Model):
    """Something that was not read, or not entirely, and where it is."""

    line: int
    row: str = ""
    column: str = ""
    text: str = ""
    why: str

    @property
    def place(self) -> str:
        """Where it is."""
        parts = [
            f"line {self.line}",
            f"row '{self.row}'" if self.row else "",
            f"column '{self.column}'" if self.column else "",
        ]
        return ", ".join(part for part in parts if part)

    def __str__(self) -> str:
        return f"{self.place}: {f'{self.text!r}: ' if self.text else ''}{self.why}"


class BenchmarkEntry(Model):
    """What a table prints for a model on a data set."""

    table_id: str
    model_name: str
    group: str = ""  # the group of rows that it is in; the same model may be in several
    dataset: str
    metrics: dict[str, float]
    printed: dict[str, str]  # the digits of each metric, and of its deviation as `<metric>_std`
    metric_units: dict[str, str] = Field(default_factory=dict)
    counts: dict[str, int] = Field(default_factory=dict)  # whole numbers in parentheses, by metric
    emphasized: tuple[str, ...] = ()  # metrics printed in bold, italics or underlined
    hardware: str | None = None
    batch_size: int | None = None
    sequence_length: int | None = None
    num_params: int | None = None
    notes: tuple[str, ...] = ()
    is_baseline: bool = False
    std_values: dict[str, float] = Field(default_factory=dict)
    has_std: bool = False
    line: int


class BenchmarkTable(Model):
    """A table of results of a paper."""

    schema_version: Format = FORMAT
    table_id: str
    title: str
    description: str
    columns: tuple[str, ...]
    row_groups: dict[str, tuple[str, ...]]
    entries: tuple[BenchmarkEntry, ...]
    datasets_used: tuple[str, ...]
    models_compared: tuple[str, ...]
    primary_metric: str
    our_model_row: str = ""
    baseline_rows: tuple[str, ...] = ()
    directions: dict[str, Better] = Field(default_factory=dict)
    std_over: StdOver | None = None
    layout: tuple[str, ...] = ()  # what rows and columns were taken for, and why
    notes: tuple[str, ...] = ()
    unread: tuple[Unread, ...] = ()
    line: int
    rows: int
    cells: int  # with something printed in them
    values: int  # that were read


class ExtractedPaper(Model):
    """All tables of a document. Those without a single value are in `without_values`, their numbers in `unread`."""

    schema_version: Format = FORMAT
    paper: str
    arxiv_id: str | None = None
    source: str
    tables: tuple[BenchmarkTable, ...]
    without_values: tuple[str, ...] = ()
    unread: tuple[Unread, ...] = ()  # what belongs to none of the tables


def extract(request: ExtractPaperRequest) -> Extraction:
    """Read the tables of a document; what has any is written where the user wants it."""
    from boosters_eval.programs.paper.writing import specification_text  # noqa: PLC0415 (it writes what is declared here)

    out = request.out
    if out is not None and out.is_file() and not request.force:
        raise ConfigError(f"{the('out')} must name a new file, or be given with {named('force')}. {out} exists.")
    found = Extraction(extract_benchmarks(request), request)
    if out is not None and not found.fault:
        write_atomically(out, specification_text(found.paper))
    return found


def extract_benchmarks(request: ExtractPaperRequest) -> ExtractedPaper:
    """Read the tables of results of a Markdown, HTML or LaTeX document."""
    from boosters_eval.programs.paper.assembly import assemble  # noqa: PLC0415 (it builds what is declared here)
    from boosters_eval.programs.paper.documents import read_document  # noqa: PLC0415

    document = read_document(request.document)
    wanted = _wanted([table.id for table in document.tables], request.tables)
    about = {table.id: f"{table.title}. {table.description}" for table in document.tables}
    read = [assemble(table, about, request) for table in document.tables if table.id in wanted]
    return ExtractedPaper(
        paper=document.title,
        arxiv_id=document.arxiv_id,
        source=request.document.name,
        tables=tuple(table for table in read if table.values),
        without_values=tuple(f"{table.table_id} (line {table.line})" for table in read if not table.values),
        unread=(
            *(Unread(line=fault.line, why=fault.what) for fault in document.faults),
            *(cell for table in read if not table.values for cell in table.unread if looks_like_result(cell.text)),
        ),
    )


def _wanted(ids: Sequence[str], given: Sequence[str]) -> set[str]:
    """The tables that the user names: by id, or by number alone. The parts of a table come with it."""
    if not given:
        return set(ids)
    found: set[str] = set()
    for name in given:
        squeezed = " ".join(name.split()).lower()
        hits = {
            each
            for each in ids
            if each.lower().partition(", part")[0] in {squeezed, f"table {squeezed}"} or each.lower() == squeezed
        }
        if not hits:
            raise UnknownNameError("table", name, ids)
        found |= hits
    return found


@dataclass(frozen=True)
class Extraction(Findings):
    """What was found in a document, and how it is shown."""

    paper: ExtractedPaper
    request: ExtractPaperRequest

    @property
    def fault(self) -> str:
        """Why there is nothing to go on with, or nothing."""
        return "" if self.paper.tables else f"{self.request.document} has no table of results that can be read."

    @property
    def exit_code(self) -> int:
        """A document without results is a bad file."""
        return ExitCode.CONFIGURATION_ERROR if self.fault else ExitCode.SUCCESS

    def show(self, screen: Screen) -> None:
        """The tables, value by value if some were named, and what was not read."""
        found, with_values = self.paper, bool(self.request.tables) and self.request.out is None
        if found.tables:
            screen.rows(
                ("table", "title", "line", "rows x columns", "read", "not read"),
                [_summary(each) for each in found.tables],
            )
        for each in found.tables if with_values else ():
            for line in each.layout:
                screen.say(f"{each.table_id}: {line}")
            screen.rows(("row", "data set", "metric", "value", "line"), _values(each), keys=3)
        self._show_unread(screen)
        if found.without_values:
            names = ", ".join(found.without_values[:_LISTED])
            screen.say(f"Without values: {names}{' ...' if len(found.without_values) > _LISTED else ''}")

    def _show_unread(self, screen: Screen) -> None:
        unread = [f"  {fault}" for fault in self.paper.unread]
        unread += [f"  {each.table_id}, {fault}" for each in self.paper.tables for fault in each.unread]
        if unread:
            screen.say("Not read:")
        for line in unread[:_LISTED]:
            screen.say(line)
        if len(unread) > _LISTED:
            screen.say(f"  and {len(unread) - _LISTED} more, which the file of {named('out')} lists")

    def conclude(self, screen: Screen) -> None:
        """Where the specification is, or why there is none."""
        if self.fault:
            screen.note(f"Error: {self.fault}")
        elif self.request.out is not None:
            screen.note(f"Written: {self.request.out}")


def _summary(table: BenchmarkTable) -> tuple[str, ...]:
    size = f"{table.rows} x {len(table.columns)}"
    return table.table_id, table.title, str(table.line), size, str(table.values), str(len(table.unread))


def _values(table: BenchmarkTable) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for entry in table.entries:
        for name in entry.metrics:
            std = f" ± {entry.printed[f'{name}_std']}" if name in entry.std_values else ""
            unit = f" {entry.metric_units[name]}" if name in entry.metric_units else ""
            row = f"{entry.group} / {entry.model_name}" if entry.group else entry.model_name
            rows.append((row, entry.dataset, name, f"{entry.printed[name]}{std}{unit}", str(entry.line)))
    return rows
