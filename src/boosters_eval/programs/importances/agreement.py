"""How far libraries agree, and, beside it, each library with itself over seeds.

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

from boosters_eval.programs.benchmark.comparisons import split_fields
from boosters_eval.programs.importances.findings import PairAgreement
from boosters_eval.programs.importances.results import of_units
from boosters_eval.stats.observations import Observation
from boosters_eval.stats.ranks import (
    FEWEST_SPLITS,
    correlation,
    cosine,
    kendall_tau,
    own_tau_interval,
    row_distances,
    split_shares,
    tau_interval,
    top_overlap,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from boosters_eval.core.request import Repeat
    from boosters_eval.programs.importances.findings import AgreementReading
    from boosters_eval.programs.importances.records import Explanation, Kind
    from boosters_eval.programs.importances.results import Explanations
    from boosters_eval.stats.inference import FloatArray

    Cells = Mapping[str, Mapping[Repeat, Explanation]]  # by library and repeat

MARGIN = 0.15  # in tau: of 100 pairs of features, 7 or 8 are in another order. Less than that is as much
FEWEST_ROWS = 20  # that two seeds must have measured both, so that a library is compared with itself in them


def top_of(wanted: int, count: int) -> int:
    """How many features are the top: as many as are shown, but at most half of them, so that it can be missed."""
    return max(1, min(wanted, count // 2))


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
        """Keep the largest difference and its row."""
        by_row = differences.reshape(len(differences), -1).max(axis=1)
        place = int(by_row.argmax())
        if math.isfinite(by_row[place]) and (self.largest is None or by_row[place] > self.largest[0]):
            self.largest = float(by_row[place]), int(rows[place])


def rankings_agree(
    kind: Kind, values: Mapping[str, Mapping[Repeat, FloatArray]], cells: Cells, wanted: int
) -> Iterator[PairAgreement]:
    """The agreement of the rankings by one kind: of each pair of libraries, then of each library with itself."""
    for a, b, tally, count in _pairs(values, wanted):
        bounds = _interval(tally, cells[a], count, own=a == b)
        yield PairAgreement(
            kind=kind,
            a=a,
            b=b,
            n=tally.n,
            tau=_mean(list(tally.taus.values())),
            low=bounds[0] if bounds else None,
            high=bounds[1] if bounds else None,
            overlap=_mean(tally.overlaps),
            top=top_of(wanted, count),
            cosine=_mean(tally.cosines) if kind == "shap" else None,
            reason=_reason(tally, count, own=a == b),
        )


def _pairs(values: Mapping[str, Mapping[Repeat, FloatArray]], wanted: int) -> Iterator[tuple[str, str, _Tally, int]]:
    count = next((len(found) for side in values.values() for found in side.values()), 0)
    for a, b in (*combinations(values, 2), *zip(values, values, strict=True)):
        tally = _Tally()
        for first, second in _matched(values[a], values[b], own=a == b):
            tally.n += 1
            sides = values[a][first], values[b][second]
            tau = kendall_tau(*sides)
            if tau is not None:
                tally.taus[first, second] = tau
            tally.overlaps += _known(top_overlap(*sides, top_of(wanted, count)))
            tally.cosines += _known(cosine(*sides))
        yield a, b, tally, count


def _interval(
    tally: _Tally, cells: Mapping[Repeat, Explanation], count: int, *, own: bool
) -> tuple[float, float] | None:
    """The interval of the mean tau: over splits, or, of a library with itself, over pairs of them."""
    values = split_shares(tally.taus) if own else {repeat: tau for (repeat, _), tau in tally.taus.items()}
    seen = {repeat: observed(cells[repeat], value) for repeat, value in values.items()}
    if len(seen) < 2:
        return None
    return own_tau_interval(seen, count) if own else tau_interval(seen, count)


def _matched(a: Iterable[Repeat], b: Iterable[Repeat], *, own: bool) -> list[tuple[Repeat, Repeat]]:
    """The same split on both sides, or, of one library, every two different ones."""
    return list(combinations(a, 2)) if own else [(repeat, repeat) for repeat in a if repeat in set(b)]


def observed(cell: Explanation, value: float) -> Observation:
    """A number that one cell tells, with its split."""
    return Observation(value, cell.split_digest, cell.n_train, cell.n_valid, **split_fields(cell.split))


def _reason(tally: _Tally, count: int, *, own: bool) -> str:
    if not tally.n:
        return "only one split" if own else "no split in common"
    if tally.taus:
        return ""
    return "fewer than three features" if count < 3 else "all features equally important"


def attributions_of(explanations: Explanations, cell: Explanation) -> FloatArray | None:
    """The attributions by unit, (n, units, outputs), without the base value."""
    found = explanations.measured(cell, "shap")
    return None if found is None else of_units(cell, found[:, :-1])


class RowsAgreement:
    """Collects, split by split, how far predictions and attributions agree in the same rows.

    Arrays of one split, or of one library, are held at a time: those of all cells would fill the memory.
    """

    def __init__(self, explanations: Explanations, cells: Cells, sound: Sequence[str]) -> None:
        """`sound` are the libraries whose attributions are used."""
        self.explanations, self.cells, self.sound = explanations, cells, sound
        self.tallies: dict[tuple[str, str, str], _Tally] = {}

    def of_split(self, repeat: Repeat, attributions: Mapping[str, FloatArray]) -> None:
        """Add what two libraries each say of the rows of a split."""
        present = {name: by_repeat[repeat] for name, by_repeat in self.cells.items() if repeat in by_repeat}
        predictions = {name: self.explanations.array(cell.predictions) for name, cell in present.items()}
        rows = self.explanations.array(next(iter(present.values())).rows)
        for a, b in combinations(present, 2):
            self._predictions(a, b, predictions[a], predictions[b], rows)
            if a in attributions and b in attributions:
                self._attributions(a, b, attributions[a], attributions[b], rows)

    def of_library(self, name: str) -> None:
        """Add what a library says of the rows that two of its splits both measured."""
        kept = []
        for cell in self.cells[name].values():
            found = attributions_of(self.explanations, cell) if name in self.sound else None
            kept.append((self.explanations.array(cell.rows), self.explanations.array(cell.predictions), found))
        for (rows, first, mine), (others, second, yours) in combinations(kept, 2):
            common, here, there = np.intersect1d(rows, others, assume_unique=True, return_indices=True)
            if len(common) < FEWEST_ROWS:
                continue
            self._predictions(name, name, first[here], second[there], common)
            if mine is not None and yours is not None:
                self._attributions(name, name, mine[here], yours[there], common)

    def _predictions(self, a: str, b: str, first: FloatArray, second: FloatArray, rows: NDArray[np.int64]) -> None:
        tally = self.tallies.setdefault(("predictions", a, b), _Tally())
        tally.n += 1
        tally.correlations += _known(correlation(first, second))
        tally.note_largest(np.abs(first - second), rows)

    def _attributions(self, a: str, b: str, first: FloatArray, second: FloatArray, rows: NDArray[np.int64]) -> None:
        tally = self.tallies.setdefault(("shap", a, b), _Tally())
        tally.n += 1
        distances = row_distances(first, second)
        kept = distances[np.isfinite(distances)]
        tally.distances += [float(np.median(kept))] if len(kept) else []
        tally.note_largest(np.abs(first - second), rows)

    def predictions(self) -> Iterator[PairAgreement]:
        """The agreement of predictions."""
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

    def added_to(self, found: PairAgreement) -> PairAgreement:
        """The agreement of a ranking by SHAP, with that of the rows."""
        tally = self.tallies.get(("shap", found.a, found.b))
        if tally is None:
            return found
        largest, row = tally.largest or (None, None)
        return found.replace(distance=_mean(tally.distances), largest=largest, row=row)


def with_readings(found: Sequence[PairAgreement]) -> list[PairAgreement]:
    """Each pair held against what its libraries are to themselves over seeds: the interval of its tau decides."""
    own: dict[tuple[str, str], float | None] = {(one.kind, one.a): one.tau for one in found if one.own}
    return [one if one.own else one.replace(reading=_reading(one, own)) for one in found]


def _reading(pair: PairAgreement, own: Mapping[tuple[str, str], float | None]) -> AgreementReading:
    """Both verdicts need evidence: what an interval leaves open cannot be told."""
    selves = [tau for name in (pair.a, pair.b) if (tau := own.get((pair.kind, name))) is not None]
    if len(selves) < 2 or pair.tau is None:
        return ""
    if pair.low is None or pair.high is None or pair.n < FEWEST_SPLITS:
        return "cannot be told"
    if pair.high < min(selves):
        return "less"
    return "as much" if pair.low >= min(selves) - MARGIN else "cannot be told"


def _known(value: float | None) -> list[float]:
    return [] if value is None else [value]


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None
