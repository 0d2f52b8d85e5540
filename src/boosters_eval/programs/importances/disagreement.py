"""The rows on which libraries differ most, with their values, so that a person can look."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from boosters_eval.core.text import clean
from boosters_eval.programs.importances.findings import DisputedRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from boosters_eval.programs.importances.records import Explanation
    from boosters_eval.programs.importances.results import Explanations
    from boosters_eval.stats.inference import FloatArray


MOST_ROWS = 10  # of each way to differ
_MOST_ATTRIBUTIONS = 5  # of each library, which are shown of all


@dataclass(frozen=True)
class _Differences:
    """For each row, the largest difference of one number between two sides, and the output that it is of."""

    sizes: FloatArray
    outputs: NDArray[np.int64]

    @classmethod
    def of(cls, sides: Sequence[FloatArray]) -> _Differences:
        """Sides are (n,), or end with outputs: (n, outputs) or (n, units, outputs)."""
        n, outputs = len(sides[0]), 1 if sides[0].ndim == 1 else sides[0].shape[-1]
        found = np.zeros((n, outputs))
        for a, b in combinations(sides, 2):
            found = np.maximum(found, np.abs(a - b).reshape(n, -1, outputs).max(axis=1))
        return cls(found.max(axis=1), found.argmax(axis=1))


def disputed_rows(
    explanations: Explanations, cells: Mapping[str, Explanation], attributions: Mapping[str, FloatArray]
) -> list[DisputedRow]:
    """The rows of one split on which predictions, and attributions of sound libraries, differ most."""
    if len(cells) < 2:
        return []
    first = next(iter(cells.values()))
    predictions = {name: explanations.array(cell.predictions) for name, cell in cells.items()}
    shown = _Rows(explanations, first, predictions, attributions)
    out = shown.most("predictions", _Differences.of(list(predictions.values())))
    if len(attributions) > 1:
        out += shown.most("attributions", _Differences.of(list(attributions.values())))
    return out


class _Rows:
    """The rows of one split, and what is told of each."""

    def __init__(
        self,
        explanations: Explanations,
        cell: Explanation,
        predictions: Mapping[str, FloatArray],
        attributions: Mapping[str, FloatArray],
    ) -> None:
        self.cell, self.predictions, self.attributions = cell, predictions, attributions
        self.names = explanations.category_names(cell)
        self.rows, self.x, self.y = (explanations.array(digest) for digest in (cell.rows, cell.x, cell.y))

    def most(self, by: str, found: _Differences) -> list[DisputedRow]:
        order = np.argsort(-found.sizes, kind="stable")[:MOST_ROWS]
        return [self._row(by, int(index), found) for index in order if found.sizes[index] > 0]

    def _row(self, by: str, index: int, differences: _Differences) -> DisputedRow:
        several = next(iter(self.predictions.values())).ndim > 1
        output = int(differences.outputs[index])
        return DisputedRow.model_validate(
            {
                "by": by,
                "row": int(self.rows[index]),
                "seed": self.cell.seed,
                "fold": self.cell.fold,
                "difference": float(differences.sizes[index]),
                "output": output if several else None,
                "target": _finite(self.y[index]),
                "predictions": {
                    name: tuple(map(_finite, np.atleast_1d(found[index]))) for name, found in self.predictions.items()
                },
                "values": {
                    name: self._value(name, value)
                    for name, value in zip(self.cell.feature_names, self.x[index], strict=True)
                },
                "attributions": self._largest(index, output),
            }
        )

    def _value(self, column: str, value: np.float32) -> float | str | None:
        """A category by its name. A number as the data has it: 0.1 is no 0.10000000149 for having become single."""
        names = self.names.get(column, ())
        if not np.isfinite(value):
            return None
        return clean(names[int(value)]) if 0 <= value < len(names) else float(str(value))

    def _largest(self, index: int, output: int) -> dict[str, dict[str, float]]:
        """The largest attributions of each library in a row, and what the others attribute to the same features."""
        values = {name: found[index, :, output] for name, found in self.attributions.items()}
        sizes = {name: np.abs(found) for name, found in values.items()}
        top = {int(i) for size in sizes.values() for i in _order(size)[:_MOST_ATTRIBUTIONS] if size[i] > 0}
        shown = [i for i in _order(np.stack([*sizes.values()]).max(axis=0)) if i in top] if top else []
        return {name: {self.cell.units[i].name: float(found[i]) for i in shown} for name, found in values.items()}


def _order(sizes: FloatArray) -> NDArray[np.int64]:
    """The places of the largest first."""
    return np.argsort(-sizes, kind="stable")


def most_disputed(found: Iterable[DisputedRow]) -> tuple[DisputedRow, ...]:
    """The rows that differ most over all splits, each once for each way to differ."""
    out: list[DisputedRow] = []
    ordered = sorted(found, key=lambda row: (row.by == "attributions", -row.difference, row.row))
    for by in ("predictions", "attributions"):
        rows = {row.row: row for row in reversed(ordered) if row.by == by}  # of the same row, the largest difference
        out += sorted(rows.values(), key=lambda row: (-row.difference, row.row))[:MOST_ROWS]
    return tuple(out)


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
