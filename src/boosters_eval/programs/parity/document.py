"""The report on parity laid out: the cells as matrices and as tables, the backends, and what does not simply agree."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from math import isfinite
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from boosters_eval.core.files import write_atomically
from boosters_eval.core.findings import Findings
from boosters_eval.core.text import clean_lines, clean_message, count_of, group_digits, join_words
from boosters_eval.engine.journal import pause_collection
from boosters_eval.programs.parity.catalog import list_declared, register_files
from boosters_eval.programs.parity.findings import QUIET, WORDS, build_parity_report, name_oracle, reproduce_parts
from boosters_eval.programs.parity.rows import merge, read_rows
from boosters_eval.programs.parity.verdicts import BindingStatus, ParityVerdict
from boosters_eval.reports.document import (
    Block,
    Card,
    Document,
    Fact,
    MarkedCell,
    Matrix,
    Notes,
    Paragraph,
    PlainTable,
    Section,
)
from boosters_eval.reports.numbers import MISSING, number, percent

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from boosters_eval.core.findings import Screen
    from boosters_eval.programs.parity.findings import MethodAxes, ParityCell, ParityReport
    from boosters_eval.programs.parity.request import ParityRenderRequest

_LEGEND = (
    "Each cell: verdict against the oracle, time, and speed-up over the oracle at the same size and threads. "
    f"{BindingStatus.TIMEOUT.mark} timed out, {BindingStatus.FAILED.mark} failed, "
    f"{BindingStatus.NOT_RUN.mark} was not run; the reasons are under Findings."
)
_MAX_FINDINGS = 1000
_ISO = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\d\+00:00")


def render_results(request: ParityRenderRequest) -> RenderedParity:
    """The file's name says how: as Markdown, as a page of one file, or as JSON."""
    register_files(request.registry)
    with pause_collection():
        rows = merge(*map(read_rows, request.csv))
        report = build_parity_report(rows, list_declared(rows))
        render = {".md": report.to_markdown, ".html": report.to_html, ".json": report.to_json}
        write_atomically(request.out, render[request.out.suffix.lower()]())
    return RenderedParity(report, request.out)


@dataclass(frozen=True)
class RenderedParity(Findings):
    """A report, and the file that it was written to."""

    report: ParityReport
    out: Path

    def show(self, screen: Screen) -> None:
        """Nothing: the file is the result."""

    def conclude(self, screen: Screen) -> None:
        if not screen.quiet:
            screen.note(f"Written: {self.out}")


def lay_out_report(report: ParityReport) -> Document:
    """The matrices with everything about a cell, then the same cells by backend and by how much they matter."""
    measured = _say_dates(report)
    counts = (*report.totals.items(), ("all", len(report.cells)))
    totals = PlainTable("Totals", ("Result", "Cells"), counts)
    sections = (
        Section("totals", "Totals", (totals,) if report.cells else (), only="text", preface=True),
        Section("matrices", "Methods", _lay_out_cells(report), short="Matrices"),
        _lay_out_backends(report),
        _lay_out_findings(report),
        Section("notes", "Notes", (Notes(report.notes),) if report.notes else ()),
        Section("environment", "Environment", (_list_facts(report, measured),)),
    )
    lead = (
        "The same method on the same bytes, carried out by each backend, compared with a declared oracle, and timed. "
        f"Measured {measured}."
    )
    return Document("Cross-binding parity", _answer(report), lead, _count_cells(report), sections=sections)


def _answer(report: ParityReport) -> tuple[str, ...]:
    """Whether the predictions agree, and how many cells have none."""
    ran = [cell.row for cell in report.cells if not cell.mark]
    if not ran:
        return ("No cell has a result." if report.cells else "No results.",)
    said, of_all = [], f"of {count_of(len(ran), 'prediction')}"
    for word, against in (("verdict", "the oracle"), ("binding_verdict", "the canonical binding")):
        apart = [clean_message(row.backend) for row in ran if getattr(row, word) is ParityVerdict.DIVERGENT]
        if apart:
            verb = "diverges" if len(apart) == 1 else "diverge"
            names = join_words(dict.fromkeys(apart), most=5)
            said.append(f"{group_digits(len(apart))} {of_all} {verb} from {against}: {names}.")
    if not said:
        said.append(f"None {of_all} diverges from its reference.")
    if lost := sum(row.verdict is ParityVerdict.ORACLE_MISSING for row in ran):
        said.append(f"{group_digits(lost)} {of_all} could not be compared: the oracle is missing.")
    if failed := sum(cell.failed for cell in report.cells):
        said.append(f"{count_of(failed, 'cell')} failed.")
    return tuple(said)


def _count_cells(report: ParityReport) -> tuple[Fact, ...]:
    divergent = report.totals.get(ParityVerdict.DIVERGENT.value, 0)
    failed = sum(cell.failed for cell in report.cells)
    ran = sum(not cell.mark for cell in report.cells)
    return (
        Fact("Methods", group_digits(len(report.methods))),
        Fact("Backends", group_digits(len(report.scores))),
        Fact("Cells with a result", group_digits(ran)),
        Fact("Divergent", group_digits(divergent), alarm=divergent > 0),
        Fact("Failed", group_digits(failed), alarm=failed > 0),
        Fact(f"Not run ({BindingStatus.NOT_RUN.mark})", group_digits(len(report.cells) - ran - failed)),
    )


def _lay_out_cells(report: ParityReport) -> tuple[Block, ...]:
    if not report.cells:
        return ()
    by_method = groupby(report.cells, lambda cell: cell.row.method)
    cards = (_lay_out_method(method, cells) for method, (_, cells) in zip(report.methods, by_method, strict=True))
    counts = tuple((word, n, WORDS[word].meaning) for word, n in report.totals.items())
    return (Matrix(counts, partial(pack_cells, report), "Find a method or backend", (Paragraph(_LEGEND), *cards)),)


def _lay_out_method(method: MethodAxes, cells: Iterable[ParityCell]) -> Card:
    """The cells stand in the order of backend, size and threads, as the table has them."""
    columns = [f"{size}, {count_of(threads, 'thread')}" for size in method.sizes for threads in method.threads]
    shown = list(map(_show_cell, cells))
    rows = tuple(
        (clean_message(backend), *shown[at * len(columns) : (at + 1) * len(columns)])
        for at, backend in enumerate(method.backends)
    )
    about = f"Oracle: {clean_message(method.oracle)}, within {method.tolerance} ({clean_message(method.metric)})."
    table = PlainTable(clean_message(method.name), ("Backend", *columns), rows)
    return Card(clean_message(method.name), (Paragraph(about), table) if method.oracle else (table,))


def _show_cell(cell: ParityCell) -> str:
    if cell.mark:
        return cell.mark
    binding = " (binding divergent)" if cell.row.binding_verdict is ParityVerdict.DIVERGENT else ""
    speed = "" if cell.speedup is None else f", {_format_ratio(cell.speedup)}"
    return f"{cell.word}{binding} {_format_ms(cell.row.reported_ms)}{speed}"


def _explain(cell: ParityCell) -> str:
    """Why a cell is not simply in agreement, in one line; '' if it is."""
    row, told = cell.row, []
    if cell.mark:
        return cell.reason or WORDS[cell.word].meaning
    if row.verdict not in QUIET and row.divergence is not None:
        off = percent(row.rows_off or 0.0, sign=False)
        far = f"{_format(row.divergence)} ({row.divergence_metric}), max abs {_format(row.max_abs)}, {off} of rows off"
        told.append(f"{far}: {cell.reason.rstrip('.')}" if cell.reason else far)
    elif row.verdict not in QUIET:
        told.append(cell.reason or WORDS[cell.word].meaning)
    if row.binding_verdict is ParityVerdict.DIVERGENT:
        told.append(f"{_format(row.binding_max_abs)} (max abs) from the canonical binding")
    return "; ".join(told)


def _lay_out_backends(report: ParityReport) -> Section:
    rows = []
    for score in report.scores:
        words = ", ".join(f"{n} {word}" for word, n in score.words.items())
        own = f"; {score.binding_divergent} divergent from the canonical binding" if score.binding_divergent else ""
        kind = f"{'own' if score.own else 'external'}{f', {score.language}' if score.language else ''}"
        speed = MISSING if score.median_speedup is None else _format_ratio(score.median_speedup)
        failed = MarkedCell(str(score.n_failed), "worse", score.n_failed) if score.n_failed else 0
        median = MarkedCell(speed, value=score.median_speedup)
        rows.append((clean_message(score.backend), clean_message(kind), score.n_cells, words + own, failed, median))
    headings = ("Backend", "Kind", "Cells", "Results", "Failed", "Median speed-up")
    blocks = (PlainTable("Backends", headings, tuple(rows)),) if rows else ()
    return Section("backends", "Backends", blocks, preface=True)


def _lay_out_findings(report: ParityReport) -> Section:
    """One row per backend and reason. What fails a gate comes first, then failures; what was not run comes last."""
    found: dict[tuple[str, str, str, str], list[ParityCell]] = {}
    for cell in report.cells:
        if told := _explain(cell):
            found.setdefault((cell.word, cell.row.method, cell.row.backend, told), []).append(cell)
    rows = []
    ranked = sorted(found.items(), key=lambda item: _rank(item[1][0]))
    for (word, method, backend, told), cells in ranked[:_MAX_FINDINGS]:
        places = [f"{cell.row.n}x{cell.row.p} @{cell.row.threads}" for cell in cells]
        mark = MarkedCell(word, f"word v-{word}", title=WORDS[word].meaning)
        rows.append(
            (mark, clean_message(method), clean_message(backend), join_words(places, most=4), clean_message(told))
        )
    headings = ("Result", "Method", "Backend", "Cells", "What was found")
    blocks: tuple[Block, ...] = (PlainTable("Findings", headings, tuple(rows), keys=4),) if rows else ()
    if (hidden := len(ranked) - len(rows)) > 0:
        blocks += (Paragraph(f"{group_digits(hidden)} more are in the matrices and in the JSON file."),)
    return Section("findings", "Findings", blocks, search="Filter findings", preface=True)


def _rank(cell: ParityCell) -> int:
    if not cell.notable:
        return 3
    if any(word is not None and not word.agrees for word in (cell.row.verdict, cell.row.binding_verdict)):
        return 0
    return 1 if cell.failed else 2


def _list_facts(report: ParityReport, measured: str) -> PlainTable:
    hosts = [", ".join(f"{name} {value}" for name, value in host.items()) for host in report.hosts] or ["not recorded"]
    pairs = [*(("Host", host) for host in hosts), ("Measured", measured)]
    pairs += [(name, ", ".join(found)) for name, found in report.versions.items()]
    rows = tuple((MarkedCell(clean_message(name), "name"), clean_message(value)) for name, value in pairs)
    return PlainTable("Environment", ("Property", "Value"), rows)


def _say_dates(report: ParityReport) -> str:
    first, last = (_ISO.sub(r"\1 \2 UTC", clean_message(at)) for at in (report.first_measured, report.last_measured))
    return (first if first == last else f"{first} to {last}") or "not recorded"


def _format_ratio(ratio: float) -> str:
    return f"{number(ratio, 2 if ratio < 100 else 3)}\u00d7"


def _format_ms(value: float | None) -> str:
    if value is None:
        return MISSING
    return f"{_format(value / 1000)} s" if value >= 10_000 else f"{_format(value)} ms"


def _format(value: float | None) -> str:
    if value is None:
        return MISSING
    return number(value, 3) if isfinite(value) else str(value)


# What the script of the page draws. Each text is there once, by number, and cells have no names.
_TEXTS = (
    *("signal", "message", "convention", "oracle", "divergence_metric", "timing_statistic", "timing_schema"),
    *("stop_reason", "versions_json", "host_json", "run_id", "measured_at", "parameters_digest", "data_digest"),
)
_NUMBERS = (
    *("reported_ms", "load_ms", "prepare_ms", "fit_ms", "predict_ms", "divergence", "tolerance", "max_abs"),
    *("relative_rmse", "rows_off", "binding_max_abs", "n_runs", "total_runs", "threads_observed"),
)


def pack_cells(report: ParityReport) -> dict[str, Any]:
    """The whole report in columns. The cells stand in the order of method, backend, size and threads."""
    texts: dict[str, int] = {"": 0}
    columns = _pack_columns(report.cells, texts)
    places = {method.name: position for position, method in enumerate(report.methods)}
    return {
        "words": list(WORDS),
        "marks": [getattr(word, "mark", "") for word in WORDS.values()],
        "meanings": [word.meaning for word in WORDS.values()],
        "methods": [
            {
                "name": clean_lines(method.name),
                "backends": [clean_lines(name) for name in method.backends],
                "sizes": [str(size) for size in method.sizes],
                "threads": method.threads,
                "oracle": clean_lines(method.oracle),
                "oracleBackend": clean_lines(name_oracle(method.oracle)),
                "metric": method.metric,
                "tolerance": method.tolerance,
            }
            for method in report.methods
        ],
        "matrices": [[places[name] for name in matrix] for matrix in report.matrices],
        "texts": [clean_lines(text) for text in texts],
        "cells": columns,
    }


def _pack_columns(cells: Sequence[ParityCell], texts: dict[str, int]) -> dict[str, list[Any]]:
    def intern(found: Iterable[str | None]) -> list[int]:
        return [texts.setdefault(text or "", len(texts)) for text in found]

    rows = [cell.row for cell in cells]
    numbers = {word: position for position, word in enumerate(WORDS)}
    commands = [reproduce_parts(row) for row in rows]
    # The nanoseconds in which the smallest sample has four digits, which is all that a chart can show.
    units = [int(10 ** max(0, len(str(min(row.samples_ns, default=0))) - 4)) for row in rows]
    return {
        "word": [numbers[cell.word] for cell in cells],
        "binding": [-1 if row.binding_verdict is None else numbers[row.binding_verdict.value] for row in rows],
        "speedup": [_shorten(cell.speedup) for cell in cells],
        "repeatable": [None if row.repeatable is None else int(row.repeatable) for row in rows],
        "what": intern(what for what, _ in commands),
        "how": intern(how for _, how in commands),
        "unit": units,
        "samples": [
            [(sample + unit // 2) // unit for sample in row.samples_ns] for row, unit in zip(rows, units, strict=True)
        ],
        **{name: list(map(_shorten, map(attrgetter(name), rows))) for name in _NUMBERS},
        **{name: intern(map(attrgetter(name), rows)) for name in _TEXTS},
    }


def _shorten(value: float | None) -> int | float | str | None:
    """A number in few digits, but enough to be rounded once more; one that JSON cannot hold is a word."""
    if value is None or isinstance(value, int):
        return value
    if not isfinite(value):
        return str(value)
    rounded = float(f"{value:.9g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded
