"""The tables of results of a paper, cell by cell, with the digits as printed and a list of what was not read."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from boosters_eval.core.errors import ConfigError, ExitCode, FileFormatError, UnknownNameError
from boosters_eval.core.files import FORMAT, Format, write_atomically
from boosters_eval.core.model import Model
from boosters_eval.core.terms import named, the
from boosters_eval.core.text import count_of
from boosters_eval.programs.paper.assembly import UNNAMED, BenchmarkEntry, BenchmarkTable, assemble
from boosters_eval.programs.paper.documents import read_document
from boosters_eval.programs.paper.documents.grid import Unread
from boosters_eval.programs.paper.layout import lay_out, split_sections
from boosters_eval.programs.paper.roles import KnownNames
from boosters_eval.programs.paper.source import MAX_NODES
from boosters_eval.programs.paper.specification import make_row_key
from boosters_eval.programs.paper.values import looks_like_result
from boosters_eval.reports.document import Document, Listing, Paragraph, PlainTable, Section
from boosters_eval.reports.findings import ReportedFindings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from boosters_eval.core.findings import Screen
    from boosters_eval.programs.paper.request import ExtractPaperRequest


_LISTED = 50  # of what is doubtful or was not read; the file has all of it


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
    out = request.out
    if out is not None and out.is_file() and not request.force:
        raise ConfigError(f"{the('out')} must name a new file, or be given with {named('force')}. {out} exists.")
    found = Extraction(extract_benchmarks(request), request)
    if out is not None and not found.fault:
        write_atomically(out, write_specification(found.paper))
    return found


def extract_benchmarks(request: ExtractPaperRequest) -> ExtractedPaper:
    """Read the tables of results of a Markdown, HTML or LaTeX document."""
    document = read_document(request.document)
    wanted = _choose_tables([table.id for table in document.tables], request.tables)
    about = {table.id: f"{table.title}. {table.description}" for table in document.tables}
    known = KnownNames.of((lay_out(each), about[it.id]) for it in document.tables for each in split_sections(it.table))
    read = [assemble(table, about, request, known) for table in document.tables if table.id in wanted]
    return ExtractedPaper(
        paper=document.title,
        arxiv_id=document.arxiv_id,
        source=request.document.name,
        tables=tuple(table for table in read if table.values),
        without_values=tuple(f"{table.table_id} (line {table.line})" for table in read if not table.values),
        unread=(
            *document.faults,
            *(cell for table in read if not table.values for cell in table.unread if looks_like_result(cell.text)),
        ),
    )


def _choose_tables(ids: Sequence[str], given: Sequence[str]) -> set[str]:
    """The tables that the user names: by id, or by number alone. The parts of a table come with it."""
    if not given:
        return set(ids)
    found: set[str] = set()
    for name in given:
        squeezed = " ".join(name.split()).lower()
        whole = {squeezed, f"table {squeezed}"}
        hits = {one for one in ids if one.lower().partition(", part")[0] in whole or one.lower() == squeezed}
        if not hits:
            raise UnknownNameError("table", name, ids)
        found |= hits
    return found


@dataclass(frozen=True)
class Extraction(ReportedFindings):
    """What was found in a document, and how it is shown."""

    plain: ClassVar[bool] = True
    paper: ExtractedPaper
    request: ExtractPaperRequest

    @property
    def fault(self) -> str:
        """Why there is nothing to go on with, or nothing."""
        return "" if self.paper.tables else f"{self.request.document} has no table of results that can be read."

    @property
    def exit_code(self) -> int:
        return ExitCode.CONFIGURATION_ERROR if self.fault else ExitCode.SUCCESS

    def document(self) -> Document:
        """The tables, value by value if some were named, and what was not read."""
        headings = ("table", "title", "line", "rows x columns", "read", "doubtful", "not read")
        rows = []
        for one in self.paper.tables:
            size = f"{one.rows} x {len(one.columns)}"
            counts = (str(one.values), str(len(one.doubtful)), str(len(one.unread)))
            rows.append((one.table_id, one.title, str(one.line), size, *counts))
        tables = Section("tables", "", (PlainTable("Tables", headings, tuple(rows)),) if rows else ())
        with_values = bool(self.request.tables) and self.request.out is None
        values = [_lay_out_values(i, each) for i, each in enumerate(self.paper.tables if with_values else ())]
        left = self.paper.without_values
        names = f"{', '.join(left[:_LISTED])}{' ...' if len(left) > _LISTED else ''}"
        without = Section("without", "", (Paragraph(f"Without values: {names}"),) if left else ())
        count = sum(one.values for one in self.paper.tables)
        answer = f"{count_of(count, 'value')} read in {count_of(len(rows), 'table')}." if rows else ""
        doubtful = [f"{each.table_id}, {fault}" for each in self.paper.tables for fault in each.doubtful]
        unread = [str(fault) for fault in self.paper.unread]
        unread += [f"{each.table_id}, {fault}" for each in self.paper.tables for fault in each.unread]
        faults = (_list("doubtful", "Doubtful", doubtful), _list("unread", "Not read", unread))
        sections = (tables, *values, *faults, without)
        return Document(f"Tables: {self.paper.paper}", (answer,) if answer else (), sections=sections)

    def to_model(self) -> ExtractedPaper:
        return self.paper

    def conclude(self, screen: Screen) -> None:
        """Where the specification is, or why there is none."""
        if self.fault:
            screen.note(f"Error: {self.fault}")
        elif self.request.out is not None:
            screen.note(f"Written: {self.request.out}")


def _list(name: str, title: str, faults: Sequence[str]) -> Section:
    """The first of them; the file has all."""
    shown = list(faults[:_LISTED])
    if len(faults) > _LISTED:
        shown.append(f"and {len(faults) - _LISTED} more, which the file of {named('out')} lists")
    return Section(name, title, (Listing.of(*shown),) if shown else ())


def _lay_out_values(i: int, table: BenchmarkTable) -> Section:
    rows = []
    for entry in table.entries:
        for name in entry.metrics:
            std = f" ± {entry.printed[f'{name}_std']}" if name in entry.std_values else ""
            unit = f" {entry.metric_units[name]}" if name in entry.metric_units else ""
            row = make_row_key(entry.group, entry.model_name)
            rows.append((row, entry.dataset, name, f"{entry.printed[name]}{std}{unit}", str(entry.line)))
    values = PlainTable(table.table_id, ("row", "data set", "metric", "value", "line"), tuple(rows), keys=3)
    return Section(f"values-{i}", "", (*(Paragraph(f"{table.table_id}: {line}") for line in table.layout), values))


# What YAML does not allow between quotation marks, takes for the end of a line, or nobody sees.
_UNPRINTABLE = re.compile(
    "[^\n\x20-\x7e\xa0-\u200a\u2010-\u2027\u202f-\u205f\u2070-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
_EMPTY: tuple[Any, ...] = (None, "", (), {})
_HEAD = """\
# Extracted by `boosters-eval paper extract`. To be completed:
#  - check each value against the paper, above all what is listed as doubtful or not read;
#  - name what runs a row:   run: {library: xgboost, parameters: {...}};
#  - name what stands for a data set here:   use: adult;
#  - name what is to be reproduced, under reproduction_targets.
"""


def _quote(value: Any) -> str:
    """A value on one line: strings between double quotation marks, so that nothing can misread them."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_quote(name)}: {_quote(part)}' for name, part in value.items())}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_quote, value))}]"
    text = value.encode(errors="replace").decode() if isinstance(value, str) else value
    return _UNPRINTABLE.sub(lambda match: f"\\U{ord(match[0]):08x}", json.dumps(text, ensure_ascii=False))


def _pairs(indent: int, **values: Any) -> Iterator[str]:
    """A line for each value that is not empty."""
    yield from (f"{' ' * indent}{name}: {_quote(value)}" for name, value in values.items() if value not in _EMPTY)


def write_specification(paper: ExtractedPaper) -> str:
    """The file. What was not read stands in it as comments."""
    nodes = sum(12 + 4 * len(entry.printed) for table in paper.tables for entry in table.entries)
    if nodes > MAX_NODES:
        raise FileFormatError(
            f"The document has more results than a specification can hold. Choose one with {named('tables')}."
        )
    return "\n".join(_write_paper(paper)) + "\n"


def _write_paper(paper: ExtractedPaper) -> Iterator[str]:
    yield _HEAD.rstrip("\n")
    yield from _pairs(0, schema_version=1, paper=paper.paper, arxiv_id=paper.arxiv_id, source=paper.source)
    yield from _comments("", (f"not read: {each}" for each in paper.unread))
    yield from _comments("", (f"without values: {each}" for each in paper.without_values))
    yield "tables:"
    for table in paper.tables:
        yield ""
        yield from _write_table(table)
    ours = [table for table in paper.tables if table.our_model_row]
    yield from ("", "reproduction_targets:", "  primary:" if ours else "  primary: []")
    for table in ours:
        yield f"    - {{table: {_quote(table.table_id)}, rows: [{_quote(table.our_model_row)}]}}"


def _write_table(table: BenchmarkTable) -> Iterator[str]:
    yield f"  - id: {_quote(table.table_id)}  # line {table.line}"
    yield f"    title: {_quote(table.title)}"
    yield from _pairs(4, description=table.description)
    yield from _comments("    ", table.layout)
    if UNNAMED in table.datasets_used:
        yield f"    # to be completed: neither the table nor an option ({named('dataset')}) names the data set"
    if any(name.startswith(UNNAMED) for entry in table.entries for name in entry.metrics):
        option = named("metric")
        yield f"    # to be completed: neither the table nor its caption nor an option ({option}) names the metric"
    directions = dict(table.directions)
    primary = directions.pop(table.primary_metric, None)
    yield from _pairs(4, primary_metric=table.primary_metric, lower_is_better=primary and primary == "lower")
    yield from _pairs(4, directions=directions, std_over=table.std_over, notes=table.notes)
    yield from _comments("    ", (f"doubtful: {each}" for each in table.doubtful))
    yield from _comments("    ", (f"not read: {each}" for each in table.unread))
    yield "    datasets:"
    yield from (f"      - name: {_quote(name)}" for name in table.datasets_used)
    yield "    models:"
    for group, name in dict.fromkeys((entry.group, entry.model_name) for entry in table.entries):
        key = make_row_key(group, name)
        ours, baseline = key == table.our_model_row or None, key in table.baseline_rows or None
        yield f"      - name: {_quote(name)}"
        yield from _pairs(8, group=group, is_ours=ours, is_baseline=baseline)
    yield "    results:"
    for entry in table.entries:
        yield from _write_result(entry)


def _write_result(entry: BenchmarkEntry) -> Iterator[str]:
    yield f"      - model: {_quote(entry.model_name)}  # line {entry.line}"
    yield from _pairs(8, group=entry.group, dataset=entry.dataset)
    yield "        metrics:"
    for name in entry.metrics:
        mark = "  # emphasized" if name in entry.emphasized else ""
        yield f"          {_quote(name)}: {entry.printed[name]}{mark}"
        if name in entry.std_values:
            yield f"          {_quote(f'{name}_std')}: {entry.printed[f'{name}_std']}"
    conditions = {
        "batch_size": entry.batch_size,
        "context_length": entry.sequence_length,
        "num_params": entry.num_params,
        **{f"{name}_count": count for name, count in entry.counts.items()},
    }
    stated = {name: value for name, value in conditions.items() if value is not None} | entry.conditions
    yield from _pairs(8, units=entry.metric_units, conditions=stated, hardware=entry.hardware, notes=entry.notes)


def _comments(indent: str, texts: Iterable[str]) -> Iterator[str]:
    """Lines that a YAML reader skips, whatever they contain."""
    for text in texts:
        clean = _UNPRINTABLE.sub("\ufffd", text.encode(errors="replace").decode().replace("\n", " "))
        yield f"{indent}# {clean}"
