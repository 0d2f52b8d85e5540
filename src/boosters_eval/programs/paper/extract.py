"""The tables of results of a paper, cell by cell, with the digits as printed and a list of what was not read."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from boosters_eval.core.errors import ConfigError, ExitCode, FileFormatError, UnknownNameError
from boosters_eval.core.files import FORMAT, Format, write_atomically
from boosters_eval.core.findings import Findings
from boosters_eval.core.model import Model
from boosters_eval.core.terms import named, the
from boosters_eval.programs.paper.assembly import UNNAMED, BenchmarkEntry, BenchmarkTable, Unread, assemble
from boosters_eval.programs.paper.documents import read_document
from boosters_eval.programs.paper.source import MAX_NODES
from boosters_eval.programs.paper.specification import row_key
from boosters_eval.programs.paper.values import looks_like_result

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from boosters_eval.core.findings import Screen
    from boosters_eval.programs.paper.assembly import BenchmarkEntry
    from boosters_eval.programs.paper.request import ExtractPaperRequest


_LISTED = 50  # of what was not read; the file has all of it


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
        write_atomically(out, specification_text(found.paper))
    return found


def extract_benchmarks(request: ExtractPaperRequest) -> ExtractedPaper:
    """Read the tables of results of a Markdown, HTML or LaTeX document."""
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


# What YAML does not allow between quotation marks, or takes for the end of a line.
_UNPRINTABLE = re.compile("[^\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_HEAD = """\
# Extracted by `boosters-eval paper extract`. To be completed:
#  - check each value against the paper, above all what is listed as not read;
#  - name what runs a row:   run: {library: xgboost, parameters: {...}};
#  - name what stands for a data set here:   use: adult;
#  - name what is to be reproduced, under reproduction_targets.
"""


def quoted(text: str) -> str:
    text = text.encode(errors="replace").decode()
    return _UNPRINTABLE.sub(lambda match: f"\\U{ord(match[0]):08x}", json.dumps(text, ensure_ascii=False))


def specification_text(paper: ExtractedPaper) -> str:
    """The file. What was not read stands in it as comments."""
    nodes = sum(12 + 4 * len(entry.printed) for table in paper.tables for entry in table.entries)
    if nodes > MAX_NODES:
        raise FileFormatError(
            f"The document has more results than a specification can hold. Choose one with {named('tables')}."
        )
    return "\n".join(_lines(paper)) + "\n"


def _lines(paper: ExtractedPaper) -> Iterator[str]:
    yield _HEAD.rstrip("\n")
    yield from ("schema_version: 1", f"paper: {quoted(paper.paper)}")
    if paper.arxiv_id:
        yield f"arxiv_id: {quoted(paper.arxiv_id)}"
    yield f"source: {quoted(paper.source)}"
    yield from _comments("", (f"not read: {each}" for each in paper.unread))
    yield from _comments("", (f"without values: {each}" for each in paper.without_values))
    yield "tables:"
    for table in paper.tables:
        yield ""
        yield from _table(table)
    yield ""
    yield "reproduction_targets:"
    ours = [table for table in paper.tables if table.our_model_row]
    yield "  primary: []" if not ours else "  primary:"
    for table in ours:
        yield f"    - {{table: {quoted(table.table_id)}, rows: [{quoted(table.our_model_row)}]}}"


def _table(table: BenchmarkTable) -> Iterator[str]:
    yield f"  - id: {quoted(table.table_id)}  # line {table.line}"
    yield f"    title: {quoted(table.title)}"
    if table.description:
        yield f"    description: {quoted(table.description)}"
    yield from _comments("    ", table.layout)
    if UNNAMED in table.datasets_used:
        yield f"    # to be completed: neither the table nor an option ({named('dataset')}) names the data set"
    if any(name.startswith(UNNAMED) for entry in table.entries for name in entry.metrics):
        option = named("metric")
        yield f"    # to be completed: neither the table nor its caption nor an option ({option}) names the metric"
    if table.primary_metric:
        yield f"    primary_metric: {quoted(table.primary_metric)}"
    yield from _directions(table)
    if table.std_over:
        yield f"    std_over: {table.std_over}"
    if table.notes:
        yield f"    notes: [{', '.join(map(quoted, table.notes))}]"
    yield from _comments("    ", (f"not read: {each}" for each in table.unread))
    yield "    datasets:"
    yield from (f"      - name: {quoted(name)}" for name in table.datasets_used)
    yield from _models(table)
    yield "    results:"
    for entry in table.entries:
        yield from _result(entry)


def _directions(table: BenchmarkTable) -> Iterator[str]:
    directions = dict(table.directions)
    primary = directions.pop(table.primary_metric, None)
    if primary:
        yield f"    lower_is_better: {'true' if primary == 'lower' else 'false'}"
    if directions:
        yield f"    directions: {{{', '.join(f'{quoted(name)}: {way}' for name, way in directions.items())}}}"


def _models(table: BenchmarkTable) -> Iterator[str]:
    yield "    models:"
    for group, name in dict.fromkeys((entry.group, entry.model_name) for entry in table.entries):
        yield f"      - name: {quoted(name)}"
        if group:
            yield f"        group: {quoted(group)}"
        key = row_key(group, name)
        if key == table.our_model_row:
            yield "        is_ours: true"
        if key in table.baseline_rows:
            yield "        is_baseline: true"


def _result(entry: BenchmarkEntry) -> Iterator[str]:
    yield f"      - model: {quoted(entry.model_name)}  # line {entry.line}"
    if entry.group:
        yield f"        group: {quoted(entry.group)}"
    yield f"        dataset: {quoted(entry.dataset)}"
    yield "        metrics:"
    for name in entry.metrics:
        yield f"          {quoted(name)}: {entry.printed[name]}{'  # emphasized' if name in entry.emphasized else ''}"
        if name in entry.std_values:
            yield f"          {quoted(f'{name}_std')}: {entry.printed[f'{name}_std']}"
    if entry.metric_units:
        units = ", ".join(f"{quoted(name)}: {quoted(unit)}" for name, unit in entry.metric_units.items())
        yield f"        units: {{{units}}}"
    conditions: dict[str, int | None] = {
        "batch_size": entry.batch_size,
        "context_length": entry.sequence_length,
        "num_params": entry.num_params,
        **{f"{name}_count": count for name, count in entry.counts.items()},
    }
    given = [f"{quoted(name)}: {value}" for name, value in conditions.items() if value is not None]
    if given:
        yield f"        conditions: {{{', '.join(given)}}}"
    if entry.hardware:
        yield f"        hardware: {quoted(entry.hardware)}"
    if entry.notes:
        yield f"        notes: [{', '.join(map(quoted, entry.notes))}]"


def _comments(indent: str, texts: Iterable[str]) -> Iterator[str]:
    """Lines that a YAML reader skips, whatever they contain."""
    for text in texts:
        clean = _UNPRINTABLE.sub("\ufffd", text.encode(errors="replace").decode().replace("\n", " "))
        yield f"{indent}# {clean}"
