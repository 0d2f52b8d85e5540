"""How far libraries agree, beside it each library with itself over seeds, and the rows on which they differ most.

Two libraries are compared split by split: the same training rows, the same measured rows. A library is compared with
itself over all pairs of different splits: other training rows of the same data. The first number means something only
beside the second.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import combinations
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from boosters_eval.core.text import clean
from boosters_eval.programs.benchmark.comparisons import split_fields
from boosters_eval.programs.importances.records import AgreementReading, DisputedRow, Explanation, Kind, PairAgreement
from boosters_eval.stats import ranks
from boosters_eval.stats.observations import Observation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from boosters_eval.core.request import Repeat
    from boosters_eval.programs.importances.results import Explanations
    from boosters_eval.stats.inference import FloatArray

    Cells = Mapping[str, Mapping[Repeat, Explanation]]  # by library and repeat

MARGIN = 0.15  # in tau: of 100 pairs of features, 7 or 8 are in another order. Less than that is as much
FEWEST_ROWS = 20  # that two seeds must have measured both, so that a library is compared with itself in them


@dataclass
class _Tally:
    """The numbers of one pair, one of each for every split on which they are defined."""

    taus: dict[tuple[Repeat, Repeat], float] = field(default_factory=dict)
    overlaps: list[float] = field(default_factory=list)
    cosines: list[float] = field(default_factory=list)
    distances: list[float] = field(default_factory=list)
    correlations: list[float] = field(default_factory=list)
    largest: tuple[float, int] | None = None
    n: int = 0

    def note_largest(self, differences: FloatArray, rows: NDArray[np.int64]) -> None:
        by_row = differences.reshape(len(differences), -1).max(axis=1)
        place = int(by_row.argmax())
        if math.isfinite(by_row[place]) and (self.largest is None or by_row[place] > self.largest[0]):
            self.largest = float(by_row[place]), int(rows[place])


def compare_rankings(
    kind: Kind, values: Mapping[str, Mapping[Repeat, FloatArray]], cells: Cells, wanted: int
) -> Iterator[PairAgreement]:
    """The agreement of the rankings by one kind: of each pair of libraries, then of each library with itself."""
    count = next((len(found) for side in values.values() for found in side.values()), 0)
    top = count_top(wanted, count)
    for a, b in (*combinations(values, 2), *zip(values, values, strict=True)):
        tally = _Tally()
        same = ((repeat, repeat) for repeat in values[a] if repeat in values[b])
        for first, second in combinations(values[a], 2) if a == b else same:
            tally.n += 1
            sides = values[a][first], values[b][second]
            if (tau := ranks.kendall_tau(*sides)) is not None:
                tally.taus[first, second] = tau
            tally.overlaps += _known(ranks.top_overlap(*sides, top))
            tally.cosines += _known(ranks.cosine(*sides))
        low, high = _interval(tally, cells[a], count, own=a == b) or (None, None)
        yield PairAgreement(
            kind=kind,
            a=a,
            b=b,
            n=tally.n,
            tau=_mean(list(tally.taus.values())),
            low=low,
            high=high,
            overlap=_mean(tally.overlaps),
            top=top,
            cosine=_mean(tally.cosines) if kind == "shap" else None,
            reason=_reason(tally, count, own=a == b),
        )


def count_top(wanted: int, count: int) -> int:
    """How many features are the top: as many as are shown, but at most half of them, so that it can be missed."""
    return max(1, min(wanted, count // 2))


def _interval(
    tally: _Tally, cells: Mapping[Repeat, Explanation], count: int, *, own: bool
) -> tuple[float, float] | None:
    """The interval of the mean tau: over splits, or, of a library with itself, over pairs of them."""
    values = ranks.split_shares(tally.taus) if own else {repeat: tau for (repeat, _), tau in tally.taus.items()}
    seen = {repeat: observe(cells[repeat], value) for repeat, value in values.items()}
    if len(seen) < 2:
        return None
    return ranks.tau_interval(seen, count, of_pairs=own)


def observe(cell: Explanation, value: float) -> Observation:
    return Observation(value, cell.split_digest, cell.n_train, cell.n_valid, **split_fields(cell.split))


def _reason(tally: _Tally, count: int, *, own: bool) -> str:
    if not tally.n:
        return "only one split" if own else "no split in common"
    if tally.taus:
        return ""
    return "fewer than three features" if count < 3 else "all features equally important"


class RowsAgreement:
    """Collects, split by split, how far predictions and attributions agree in the same rows.

    Arrays of one split, or of one library, are held at a time: those of all cells would fill the memory.
    """

    def __init__(self, explanations: Explanations, cells: Cells, sound: Sequence[str]) -> None:
        """`sound` are the libraries whose attributions are used."""
        self.explanations, self.cells, self.sound = explanations, cells, sound
        self.tallies: dict[tuple[str, str, str], _Tally] = {}

    def of_split(self, repeat: Repeat, attributions: Mapping[str, FloatArray]) -> None:
        present = {name: by_repeat[repeat] for name, by_repeat in self.cells.items() if repeat in by_repeat}
        predictions = {name: self.explanations.array(cell.predictions) for name, cell in present.items()}
        rows = self.explanations.array(next(iter(present.values())).rows)
        for a, b in combinations(present, 2):
            self._compare("predictions", a, b, predictions[a], predictions[b], rows)
            if a in attributions and b in attributions:
                self._compare("shap", a, b, attributions[a], attributions[b], rows)

    def of_library(self, name: str) -> None:
        """Add what a library says of the rows that two of its splits both measured."""
        kept = []
        for cell in self.cells[name].values():
            found = self.explanations.attributions(cell) if name in self.sound else None
            kept.append((self.explanations.array(cell.rows), self.explanations.array(cell.predictions), found))
        for (rows, first, mine), (others, second, yours) in combinations(kept, 2):
            common, here, there = np.intersect1d(rows, others, assume_unique=True, return_indices=True)
            if len(common) < FEWEST_ROWS:
                continue
            self._compare("predictions", name, name, first[here], second[there], common)
            if mine is not None and yours is not None:
                self._compare("shap", name, name, mine[here], yours[there], common)

    def _compare(
        self, kind: str, a: str, b: str, first: FloatArray, second: FloatArray, rows: NDArray[np.int64]
    ) -> None:
        tally = self.tallies.setdefault((kind, a, b), _Tally())
        tally.n += 1
        tally.note_largest(np.abs(first - second), rows)
        if kind == "predictions":
            tally.correlations += _known(ranks.correlation(first, second))
        else:
            distances = ranks.row_distances(first, second)
            kept = distances[np.isfinite(distances)]
            tally.distances += [float(np.median(kept))] if len(kept) else []

    def of_predictions(self) -> Iterator[PairAgreement]:
        for a, b in (*combinations(self.cells, 2), *zip(self.cells, self.cells, strict=True)):
            tally = self.tallies.get(("predictions", a, b), _Tally())
            few = f"fewer than {FEWEST_ROWS} rows in common" if a == b else "no split in common"
            yield PairAgreement(
                kind="predictions",
                a=a,
                b=b,
                n=tally.n,
                correlation=_mean(tally.correlations),
                largest=tally.largest[0] if tally.largest else None,
                row=tally.largest[1] if tally.largest else None,
                reason="" if tally.correlations else few if not tally.n else "constant predictions",
            )

    def complete(self, found: PairAgreement) -> PairAgreement:
        """The agreement of a ranking, of one by SHAP with that of the rows."""
        tally = self.tallies.get(("shap", found.a, found.b)) if found.kind == "shap" else None
        if tally is None:
            return found
        largest, row = tally.largest or (None, None)
        return found.replace(distance=_mean(tally.distances), largest=largest, row=row)


def add_readings(found: Sequence[PairAgreement]) -> list[PairAgreement]:
    """Each pair held against what its libraries are to themselves over seeds: the interval of its tau decides."""
    own: dict[tuple[str, str], float | None] = {(one.kind, one.a): one.tau for one in found if one.own}
    return [one if one.own else one.replace(reading=_read(one, own)) for one in found]


def _read(pair: PairAgreement, own: Mapping[tuple[str, str], float | None]) -> AgreementReading:
    """Both verdicts need evidence: what an interval leaves open cannot be told."""
    selves = [tau for name in (pair.a, pair.b) if (tau := own.get((pair.kind, name))) is not None]
    if len(selves) < 2 or pair.tau is None:
        return ""
    if pair.low is None or pair.high is None or pair.n < ranks.FEWEST_SPLITS:
        return "cannot be told"
    if pair.high < min(selves):
        return "less"
    return "as much" if pair.low >= min(selves) - MARGIN else "cannot be told"


def _known(value: float | None) -> list[float]:
    return [] if value is None else [value]


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


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


def find_disputed_rows(
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
                "target": finite_or_none(self.y[index]),
                "predictions": {
                    name: tuple(map(finite_or_none, np.atleast_1d(found[index])))
                    for name, found in self.predictions.items()
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
    return np.argsort(-sizes, kind="stable")


def pick_most_disputed(found: Iterable[DisputedRow]) -> tuple[DisputedRow, ...]:
    """The rows that differ most over all splits, each once for each way to differ."""
    out: list[DisputedRow] = []
    ordered = sorted(found, key=lambda row: (row.by == "attributions", -row.difference, row.row))
    for by in ("predictions", "attributions"):
        rows = {row.row: row for row in reversed(ordered) if row.by == by}  # of the same row, the largest difference
        out += sorted(rows.values(), key=lambda row: (-row.difference, row.row))[:MOST_ROWS]
    return tuple(out)


def finite_or_none(value: float | None) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None
