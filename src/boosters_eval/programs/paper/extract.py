"""The tables of results of a paper, cell by cell, with the digits as printed and a list of what was not read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from boosters_eval.core.errors import ConfigError, UnknownNameError
from boosters_eval.core.model import Model
from boosters_eval.programs.paper.layout import ROLES, Role
from boosters_eval.programs.paper.lexicon import Better
from boosters_eval.programs.paper.specification import StdOver
from boosters_eval.programs.paper.values import DECIMALS, PARENTHESES, Decimal, Parentheses, looks_like_result

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SCHEMA_VERSION = 1


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
    emphasised: tuple[str, ...] = ()  # metrics printed in bold, italics or underlined
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

    schema_version: int = SCHEMA_VERSION
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

    schema_version: int = SCHEMA_VERSION
    paper: str
    arxiv_id: str | None = None
    source: str
    tables: tuple[BenchmarkTable, ...]
    without_values: tuple[str, ...] = ()
    unread: tuple[Unread, ...] = ()  # what belongs to none of the tables


class ExtractionOptions(Model):
    """What the user says where the document does not."""

    tables: tuple[str, ...] = ()  # ids; none: all
    columns: Role | None = None
    parentheses: Parentheses | None = None
    decimal: Decimal = "point"
    metric: str | None = None
    dataset: str | None = None
    model: str | None = None


def checked_choice(option: str, given: str | None, valid: Sequence[str]) -> str | None:
    """One of the words that an option accepts."""
    if given is not None and given not in valid:
        raise ConfigError(
            f"The '{option}' option must be {', '.join(valid[:-1])} or {valid[-1]}. Got '{given}' instead."
        )
    return given


CHOICES = {"--columns": ROLES, "--parentheses": PARENTHESES, "--decimal": DECIMALS}


def extract_benchmarks(context_doc: Path, options: ExtractionOptions | None = None) -> ExtractedPaper:
    """Read the tables of results of a Markdown, HTML or LaTeX document."""
    from boosters_eval.programs.paper.assembly import assemble  # noqa: PLC0415 (it builds what is declared here)
    from boosters_eval.programs.paper.documents import read_document  # noqa: PLC0415

    options = options or ExtractionOptions()
    document = read_document(context_doc)
    wanted = _wanted([table.id for table in document.tables], options.tables)
    about = {table.id: f"{table.title}. {table.description}" for table in document.tables}
    read = [assemble(table, about, options) for table in document.tables if table.id in wanted]
    return ExtractedPaper(
        paper=document.title,
        arxiv_id=document.arxiv_id,
        source=context_doc.name,
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
