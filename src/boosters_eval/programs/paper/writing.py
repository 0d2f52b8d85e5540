"""A `benchmarks.yaml` to be completed: numbers with their printed digits, and strings that nothing can misread."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from boosters_eval.core.errors import FileFormatError
from boosters_eval.core.terms import named
from boosters_eval.programs.paper.assembly import UNNAMED
from boosters_eval.programs.paper.source import MAX_NODES
from boosters_eval.programs.paper.specification import row_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from boosters_eval.programs.paper.extract import BenchmarkEntry, BenchmarkTable, ExtractedPaper

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
    """A string between double quotation marks."""
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
