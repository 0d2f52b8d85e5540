"""The cells of a report as the dashboard's script reads them: columns, not objects, and every text once."""

from __future__ import annotations

from math import isfinite
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from boosters_eval.core.text import clean_lines
from boosters_eval.programs.parity.report import MARKS, WORDS, oracle_backend, reproduce_parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from boosters_eval.programs.parity.report import ParityCell, ParityReport

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
        "words": WORDS,
        "marks": [MARKS.get(word, "") for word in WORDS],
        "meanings": [meanings[word] for word in WORDS],
        "methods": [
            {
                "name": clean_lines(method.name),
                "backends": [clean_lines(name) for name in method.backends],
                "sizes": [str(size) for size in method.sizes],
                "threads": method.threads,
                "oracle": clean_lines(method.oracle),
                "oracleBackend": clean_lines(oracle_backend(method.oracle)),
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
