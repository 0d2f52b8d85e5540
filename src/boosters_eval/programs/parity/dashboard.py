"""The parity report as a page of one file: matrices that a script draws from compact data, and static tables."""

from __future__ import annotations

from math import isfinite
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from boosters_eval.core.text import clean_lines, clean_message, group_digits
from boosters_eval.programs.parity.findings import MARKS, NOT_RUN_MARK, WORDS, name_oracle, reproduce_parts
from boosters_eval.programs.parity.markdown import explanation, milliseconds, run_dates, times
from boosters_eval.programs.parity.verdicts import BindingStatus, ParityVerdict
from boosters_eval.reports.document import Fact
from boosters_eval.reports.html import old
from boosters_eval.reports.html.markup import grid, list_notes, numeric, scroll, search_field, text
from boosters_eval.reports.html.old import asset, page, plain
from boosters_eval.reports.numbers import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from boosters_eval.programs.parity.findings import BackendScore, ParityCell, ParityReport


_TEXTS = {  # the row's field, by the name of its column
    "signal": "signal",
    "message": "message",
    "convention": "convention",
    "oracle": "oracle",
    "metric": "divergence_metric",
    "statistic": "timing_statistic",
    "protocol": "timing_schema",
    "stop": "stop_reason",
    "versions": "versions_json",
    "host": "host_json",
    "run": "run_id",
    "at": "measured_at",
    "parameters": "parameters_digest",
    "data": "data_digest",
}
_NUMBERS = {
    "ms": "reported_ms",
    "load": "load_ms",
    "prepare": "prepare_ms",
    "fit": "fit_ms",
    "predict": "predict_ms",
    "divergence": "divergence",
    "tolerance": "tolerance",
    "maxAbs": "max_abs",
    "relative": "relative_rmse",
    "rowsOff": "rows_off",
    "bindingMaxAbs": "binding_max_abs",
    "runs": "n_runs",
    "totalRuns": "total_runs",
    "observed": "threads_observed",
}


class _Texts:
    """Each text once, by number; 0 is the empty one."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {"": 0}

    def __call__(self, texts: Iterable[str | None]) -> list[int]:
        numbers = self.numbers
        return [numbers.setdefault(text or "", len(numbers)) for text in texts]

    @property
    def all(self) -> list[str]:
        return [clean_lines(text) for text in self.numbers]


def compact(report: ParityReport, meanings: Mapping[str, str]) -> dict[str, Any]:
    """The whole report. Cells have no names: they stand in the order of method, backend, size and threads."""
    names = {method.name: position for position, method in enumerate(report.methods)}
    texts = _Texts()
    columns = _columns(report.cells, texts)
    return {
        "words": list(WORDS),
        "marks": [MARKS.get(word, "") for word in WORDS],
        "meanings": [meanings[word] for word in WORDS],
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
        "matrices": [[names[name] for name in matrix] for matrix in report.matrices],
        "texts": texts.all,
        "cells": columns,
    }


def _columns(cells: Sequence[ParityCell], texts: _Texts) -> dict[str, list[Any]]:
    rows = [cell.row for cell in cells]
    numbers = {word: position for position, word in enumerate(WORDS)}
    parts = [reproduce_parts(row) for row in rows]
    units = [_unit(row.samples_ns) for row in rows]
    return {
        "word": [numbers[cell.word] for cell in cells],
        "binding": [-1 if row.binding_verdict is None else numbers[row.binding_verdict.value] for row in rows],
        "speedup": [_short(cell.speedup) for cell in cells],
        "repeatable": [None if row.repeatable is None else int(row.repeatable) for row in rows],
        "what": texts(what for what, _ in parts),
        "how": texts(how for _, how in parts),
        "unit": units,
        "samples": [
            [(sample + unit // 2) // unit for sample in row.samples_ns] for row, unit in zip(rows, units, strict=True)
        ],
        **{name: list(map(_short, map(attrgetter(field), rows))) for name, field in _NUMBERS.items()},
        **{name: texts(map(attrgetter(field), rows)) for name, field in _TEXTS.items()},
    }


def _unit(samples_ns: tuple[int, ...]) -> int:
    """The nanoseconds in which the smallest sample has four digits, which is all that a chart can show."""
    return int(10 ** max(0, len(str(min(samples_ns, default=0))) - 4))


def _short(value: float | None) -> int | float | str | None:
    """A number in few digits, but enough to be rounded once more; one that JSON cannot hold is a word."""
    if value is None or isinstance(value, int):
        return value
    if not isfinite(value):
        return str(value)
    rounded = float(f"{value:.9g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


_MAX_FINDINGS = 300  # rows of the static table; the matrices, the Markdown and the JSON have all
MEANINGS = {
    ParityVerdict.BIT_EXACT.value: "The same bits as the oracle.",
    ParityVerdict.ROUNDING.value: "Every row is within the tolerance.",
    ParityVerdict.BOUNDARY.value: "Few rows are off, and far: they sit on the edge of a decision.",
    ParityVerdict.CONVENTION.value: "A documented difference, as large as it was measured to be.",
    ParityVerdict.CROSS_CHECK.value: "Both are stochastic, and cannot agree.",
    ParityVerdict.DIVERGENT.value: "The predictions differ.",
    ParityVerdict.NO_ORACLE.value: "The method declares no oracle.",
    ParityVerdict.ORACLE_MISSING.value: "The oracle was neither run nor stored: nothing was compared.",
    BindingStatus.NOT_IMPLEMENTED.value: "The backend does not have the method.",
    BindingStatus.NOT_AVAILABLE.value: "The backend is not installed where this was run.",
    BindingStatus.NOT_RUN.value: "There is no outcome.",
    BindingStatus.DEFERRED.value: "Put off by the budget of the run.",
    BindingStatus.TIMEOUT.value: "Stopped by the guard.",
    BindingStatus.CRASHED.value: "The process died.",
    BindingStatus.REFUSED.value: "The backend declined.",
    BindingStatus.FAILED.value: "The run failed, or returned no valid prediction.",
}
_PANEL = '<dialog id="panel" aria-labelledby="panel-title"></dialog>'
_NO_SCRIPT = (
    "<noscript><p>The matrices are drawn by the script of this page. Without scripts, all cells are in the Markdown"
    " and JSON renderings of the same results.</p></noscript>"
)


def render_dashboard(report: ParityReport) -> str:
    """The whole page."""
    findings = sorted((cell for cell in report.cells if cell.notable), key=_severity)
    parts = [
        ("matrices", "Matrices", _matrices(report)),
        ("backends", "Backends", _scores(report)),
        ("findings", "Findings", _findings(findings)),
        ("environment", "Environment", _environment(report)),
    ]
    lead = (
        "The same method on the same bytes, carried out by each backend, compared with a declared oracle, and timed. "
        f"Measured {clean_message(run_dates(report))}."
    )
    return page(
        "Cross-binding parity",
        lead,
        old.facts(_facts(report)),
        parts,
        style=asset("boosters_eval.reports.html", "matrix.css"),
        script=asset("boosters_eval.reports.html", "matrix.js"),
        data=compact(report, MEANINGS),
    )


def _facts(report: ParityReport) -> tuple[Fact, ...]:
    divergent = report.totals.get(ParityVerdict.DIVERGENT.value, 0)
    failed = sum(cell.failed for cell in report.cells)
    ran = sum(not cell.mark for cell in report.cells)
    not_run = len(report.cells) - ran - failed
    return (
        Fact(label="Methods", value=group_digits(len(report.methods))),
        Fact(label="Backends", value=group_digits(len(report.scores))),
        Fact(label="Cells with a result", value=group_digits(ran)),
        Fact(label="Divergent", value=group_digits(divergent), alarm=divergent > 0),
        Fact(label="Failed", value=group_digits(failed), alarm=failed > 0),
        Fact(label=f"Not run ({NOT_RUN_MARK})", value=group_digits(not_run)),
    )


def _matrices(report: ParityReport) -> str:
    if not report.cells:
        return "<p>No results.</p>"
    chips = "".join(
        f'<li><button type="button" class="chip v-{word}" data-word="{word}" aria-pressed="false" '
        f'title="{text(MEANINGS[word])}">{word} <b>{group_digits(n)}</b></button></li>'
        for word, n in report.totals.items()
    )
    return (
        f'{_NO_SCRIPT}<div id="controls" hidden><label class="find">Find a method or backend '
        f'<input type="search" id="find"></label><ul class="chips" aria-label="Highlight a result">{chips}</ul></div>'
        f'<div id="drawn"></div>{_PANEL}{list_notes(report.notes)}'
    )


def _scores(report: ParityReport) -> str:
    return f'<div class="scores">{"".join(map(_score, report.scores))}</div>' if report.scores else ""


def _score(score: BackendScore) -> str:
    kind = f"{'own binding' if score.own else 'external'}{f', {score.language}' if score.language else ''}"
    bar = "".join(f'<i class="v-{word}" data-share="{n / score.n_cells:.4f}"></i>' for word, n in score.words.items())
    words = "".join(
        f'<li><span class="swatch v-{word}"></span>{word}<b>{group_digits(n)}</b></li>'
        for word, n in score.words.items()
    )
    speed = MISSING if score.median_speedup is None else times(score.median_speedup)
    own = ""
    if score.binding_divergent:
        own = f'<p class="mark">{group_digits(score.binding_divergent)} divergent from the canonical binding</p>'
    name, sort = text(clean_message(score.backend)), text(clean_message(kind))
    return (
        f'<article class="card score"><h4>{name}<small>{sort}</small></h4>'
        f'<div class="bar" aria-hidden="true">{bar}</div><ul class="counts">{words}</ul>{own}'
        f"<dl><div><dt>Cells</dt><dd>{group_digits(score.n_cells)}</dd></div>"
        f"<div{' class=alarm' if score.n_failed else ''}><dt>Failed</dt><dd>{group_digits(score.n_failed)}</dd></div>"
        f"<div><dt>Median speed-up</dt><dd>{speed}</dd></div></dl></article>"
    )


def _severity(cell: ParityCell) -> int:
    """What fails a gate or has no result comes first; documented differences come last."""
    if cell.row.verdict is not None and not cell.row.verdict.agrees:
        return 0
    return 1 if cell.failed else 2


def _findings(cells: list[ParityCell]) -> str:
    if not cells:
        return ""
    rows = [
        [
            f'<td><span class="word v-{cell.word}">{cell.word}</span></td>',
            *(plain(clean_message(name)) for name in (cell.row.method, cell.row.backend, f"{cell.row.n}x{cell.row.p}")),
            numeric(str(cell.row.threads), cell.row.threads),
            numeric(milliseconds(cell.row.reported_ms), cell.row.reported_ms),
            plain(clean_message(explanation(cell))),
        ]
        for cell in cells[:_MAX_FINDINGS]
    ]
    table = grid(
        ("Result", "Method", "Backend", "Size", "Threads", "Time", "What was found"), rows, kind="sortable wide"
    )
    hidden = len(cells) - _MAX_FINDINGS
    more = f"<p>The first {_MAX_FINDINGS}; {group_digits(hidden)} more are in the matrices.</p>" if hidden > 0 else ""
    search = search_field("Filter findings", "#findings tbody tr")
    return f'{search}<div class="card">{scroll(table, "Findings")}</div>{more}'


def _environment(report: ParityReport) -> str:
    hosts = [", ".join(f"{name} {value}" for name, value in host.items()) for host in report.hosts] or ["not recorded"]
    pairs = [("Host", host) for host in hosts]
    pairs += [("Measured", run_dates(report))]
    pairs += [(name, ", ".join(found)) for name, found in report.versions.items()]
    return old.environment(tuple((clean_message(name), clean_message(value)) for name, value in pairs))
