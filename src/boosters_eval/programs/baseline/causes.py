"""What moved where a pair got worse: the parameters, the trees, the training, or what was predicted, and for whom.

Each clause is a fact that both sides recorded, the most telling first; none is a guess at the line of code.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from boosters_eval.core.text import count_of, join_words
from boosters_eval.metrics import find, label
from boosters_eval.metrics.task import Task
from boosters_eval.programs.baseline.snapshot import describe_changed_parameters
from boosters_eval.reports.numbers import number, percent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from boosters_eval.metrics.rows import Floats
    from boosters_eval.programs.baseline.evidence import PairOfSides

_FEW_LEAVES, _MANY_LEAVES = 0.02, 0.1  # a smaller change of their number is not told, or needs no limit
_LITTLE = 0.002  # and of the score on training rows
_MOST = 0.8  # of the loss: then it is of one class or slice
_STEADY, _BIASED = 2.0, 0.1  # standard deviations that a common shift has at least, and a bias of large samples
_SLICES = 4  # of the target
_NAMED = 5  # classes in a sentence
_FEW_ROWS, _SURELY = 20, 3.0  # of a part of the rows; standard errors that its mean loss is away from 0
_UNMOVED = 0.02  # of the rows, predicted as before to the last bit: no training leaves so many
_COMMON = 1.2  # how much less, or more, than the mean the rows of a quarter may move where all move for one reason
_MIDDLE = 0.2  # and the row in the middle
_EXACT = 0.05  # what a factor may leave of what moved
_RELATED = 0.5  # correlation of predictions that changed places
_SELDOM = 0.25  # of the rows of a class: if fewer are predicted now, it is hardly learned
_TINY = 1e-12


def explain_change(sides: PairOfSides, metric: str, *, only_weighted: bool = True) -> tuple[str, ...]:
    """What moved, in clauses; none if nothing that was recorded did, or nothing was recorded.

    Lost weights change only data that have weights: `only_weighted` says that the library moved nowhere else.
    """
    then, now = sides.then.record, sides.now.record
    told = describe_changed_parameters(then.parameters, now.parameters)
    moved = _Moved.read(sides, metric)
    data = (
        moved.describe_data(only_weighted=only_weighted) if moved is not None else ""
    )  # lost classes and weights change the leaves too
    built = [clause for clause in _list_built(sides) if not data or clause.startswith("trees")]
    whole = data  # what explains worse training scores too
    whose = part = ""
    if moved is not None and not (data or built):
        leaves = _means(sides, "leaves")
        part = moved.describe_part(
            rebuilt=leaves is not None and leaves[0] != leaves[1]
        )  # what moves all predictions leaves none as it was
        whole = part or moved.describe_shift()
        whose = "" if whole and not part else moved.describe_class() or moved.describe_slice()
    few = any(clause.startswith("trees") for clause in built)
    learned = "" if whole or few else _describe_training(sides, metric, concluding=not whose)
    closer = moved.describe_shrinking() if moved is not None and not (built or whole or whose or learned) else ""
    clauses = [clause for clause in (told, *built, whose, whole, learned, closer) if clause]
    if clauses:
        return tuple(clauses)
    if _builds_are_equal(sides):
        return ("the same build predicts something else: training is not deterministic, or the machine is another one",)
    trees = _means(sides, "trees")
    return ("as many trees and leaves: what it predicts moved",) if trees is not None and not sides.identical else ()


def _builds_are_equal(sides: PairOfSides) -> bool:
    then, now = sides.then.record, sides.now.record
    known = all(fit.predictions for side in (then, now) for fit in side.fits.values())
    return known and then.build is not None and bool(then.build.digest) and then.build == now.build


def _means(sides: PairOfSides, name: str) -> tuple[float, float] | None:
    """What both sides recorded of the fits, on average; None where one did not."""
    both = []
    for side in (sides.then, sides.now):
        values = [getattr(fit, name) if (fit := side.record.fits.get(cell)) else None for cell in sides.cells]
        known = [value for value in values if value is not None]
        if not known or len(known) < len(values):
            return None
        both.append(fmean(known))
    return both[0], both[1]


def _list_built(sides: PairOfSides) -> Iterator[str]:
    """What is different about the models themselves."""
    trees, leaves, rounds = (_means(sides, name) for name in ("trees", "leaves", "rounds"))
    if trees is not None and trees[0] != trees[1]:
        several = rounds is not None and rounds != trees
        yield f"trees {_count(trees)}" + (f" (rounds {_count(rounds)})" if several and rounds else "")
    elif leaves is not None and abs(leaves[1] - leaves[0]) > _FEW_LEAVES * leaves[0]:
        limit = ": a limit on their growth" if abs(leaves[1] - leaves[0]) > _MANY_LEAVES * leaves[0] else ""
        yield f"leaves {_count(leaves)} with as many trees{limit}"


def _describe_training(sides: PairOfSides, metric: str, *, concluding: bool) -> str:
    """Whether models fit the rows that they learned as they did; not `concluding`, only the numbers."""
    training, known = _means(sides, "training"), find(metric)
    if training is None:
        return ""
    scale = abs(training[0] - ((known.best if known else None) or 0.0)) or 1.0
    change = (training[1] - training[0]) / scale
    worse = -change if known and known.higher_is_better else change
    told = f"on training rows {label(metric)} {number(training[0])} → {number(training[1])} ({percent(change)})"
    if not concluding:
        return told if abs(worse) > _LITTLE else ""
    if worse > _LITTLE:
        return f"{told}: each tree learns less (learning rate, regularization, bins, rows or columns left out)"
    if worse < -_LITTLE:
        return f"{told}: it learns its training rows better than before, and others worse"
    return "as many trees, and as good on training rows: what it predicts for other rows moved"


def _count(both: tuple[float, float]) -> str:
    return f"{both[0]:.10g} → {both[1]:.10g}" if both[0].is_integer() else f"{both[0]:.1f} → {both[1]:.1f}"


@dataclass(frozen=True)
class _Moved:
    """What both sides predicted for the same rows, and how much worse each row became."""

    task: Task
    y: Floats
    then: Floats  # (n,), or (n, classes or quantiles)
    now: Floats
    worse: Floats  # how much each row is
    weights: Floats  # of the rows; ones where they have none

    @classmethod
    def read(cls, sides: PairOfSides, metric: str) -> _Moved | None:
        """Over all common cells; None where rows were not kept, or do not make the metric."""
        known = find(metric)
        sign = -1.0 if known is not None and known.higher_is_better else 1.0
        parts = []
        for cell in sides.cells:
            kept = sides.then.read(cell), sides.now.read(cell)
            scores = sides.then.score(cell, metric), sides.now.score(cell, metric)
            if kept[0] is None or kept[1] is None or scores[0] is None or scores[1] is None:
                return None
            if kept[0].predictions.shape != kept[1].predictions.shape or len(scores[0].rows) != len(kept[0].split.rows):
                return None
            worse = sign * (scores[1].contributions - scores[0].contributions)
            split = kept[0].split
            weights = np.ones(len(worse)) if split.weights is None else split.weights
            parts.append((split.y_true, kept[0].predictions, kept[1].predictions, worse, weights))
        if not parts:
            return None
        return cls(sides.then.record.task, *(np.concatenate(column) for column in zip(*parts, strict=True)))

    @property
    def loss(self) -> Floats:
        """What each row adds to the loss of the pair."""
        return self.weights * self.worse

    def describe_data(self, *, only_weighted: bool) -> str:
        """What of the training rows was not learned, if that can be told from what is predicted."""
        told = self._describe_weights() if only_weighted else ""  # without which labels may seem to be others
        return told or self._describe_exchange() or self._describe_lost_class()

    def describe_part(self, *, rebuilt: bool) -> str:
        """Whether only some rows moved, as where the same model, not one `rebuilt`, reads or bounds these otherwise."""
        moved = (self.then != self.now).reshape(len(self.y), -1).any(axis=1)
        if moved.mean() > 1 - _UNMOVED or int((~moved).sum()) < _FEW_ROWS:
            return ""
        said = f"only {_share(moved.mean())} of the predictions moved, the others are bit-identical"
        return (
            said
            if rebuilt
            else f"{said}: not the model, but how it reads these rows (missing values, categories) or bounds them"
        )

    def _describe_exchange(self) -> str:
        """Whether predictions changed places: those of rows, of classes, or of high and low values."""
        if len(self.y) < _FEW_ROWS or np.array_equal(self.then, self.now):
            return ""
        if np.array_equal(np.sort(self.then, axis=0), np.sort(self.now, axis=0)):
            return "the same predictions, but for other rows: their order"
        if self.then.ndim > 1:
            return self._describe_swap() if self.task.is_classification else ""
        if _correlate(*(_link(side, self.task) for side in (self.then, self.now))) > -_RELATED:
            return ""
        what = "classes 0 and 1" if self.task is Task.BINARY else "high and low predictions"
        return f"{what} changed places: the labels"

    def _describe_swap(self) -> str:
        """Which classes are predicted as others were."""
        then, now = (np.log(np.clip(side, 1e-9, 1)) for side in (self.then, self.now))
        alike = np.array([[_correlate(one, other) for other in now.T] for one in then.T])
        place = alike.argmax(axis=1)
        swapped = [f"{one} → {other}" for one, other in enumerate(place) if one != other]
        if not swapped or len(set(place)) < len(place) or alike.max(axis=1).min() < _RELATED:
            return ""
        return f"classes changed places ({join_words(swapped, most=_NAMED)}): the labels"

    def _describe_lost_class(self) -> str:
        if not self.task.is_classification:
            return ""
        chosen = [side.argmax(axis=1) if side.ndim > 1 else side > 0.5 for side in (self.then, self.now)]
        seldom = ""
        for one in np.unique(self.y).astype(np.int64):
            before, after = (int((side == one).sum()) for side in chosen)
            if before and not after:
                return f"class {one} is never predicted any more ({count_of(before, 'row')} before)"
            if before - after >= _FEW_ROWS and after <= _SELDOM * before:
                seldom = (
                    seldom or f"class {one} is hardly predicted any more ({count_of(after, 'row')}, {before} before)"
                )
        return seldom

    def _describe_weights(self) -> str:
        """Whether rows gained that weigh little, and those lost that weigh much."""
        light = self.weights < self.weights.mean()
        sides = (self.worse[light], self.worse[~light])
        if min(map(len, sides)) < _FEW_ROWS:
            return ""
        gained, lost = (float(one.mean() / (one.std() or _TINY) * math.sqrt(len(one))) for one in sides)
        if gained > -_SURELY or lost < _SURELY:
            return ""
        return "rows that weigh little are predicted better, and those that weigh much worse: the weights"

    def describe_class(self) -> str:
        """Whether one class bears the loss alone."""
        if not self.task.is_classification:
            return ""
        classes = np.unique(self.y)
        top, share = self._find_bearer([self.y == one for one in classes])
        size = float((self.y == classes[top]).mean())
        if share < max(_MOST, 1.5 * size):
            return ""
        return f"{_share(share)} of the loss is in the rows of class {classes[top]:g}, which are {_share(size)} of all"

    def _find_bearer(self, parts: list[NDArray[np.bool_]]) -> tuple[int, float]:
        """Which part lost most, and its share of what was lost; what others gained makes it no larger."""
        lost = [float(self.loss[part].sum()) for part in parts]
        top, whole = int(np.argmax(lost)), math.fsum(max(one, 0.0) for one in lost)
        return top, lost[top] / whole if math.fsum(lost) > 0 else 0.0

    def describe_shift(self) -> str:
        """Whether all predictions moved together, as a base score moves them."""
        if self.then.ndim > 1 and self.task is not Task.QUANTILE:
            return ""
        then, now = (_link(side, self.task) for side in (self.then, self.now))
        moved = now - then
        mean, spread = float(moved.mean()), float(moved.std())
        where = "log odds" if self.task is Task.BINARY else "predictions"
        if abs(mean) > max(_STEADY * spread, _TINY):
            factor = _find_factor(then, now)
            told = f"moved alike, by {mean:+.3g} on average: the base score"
            return f"all {where} {told if factor is None else f'were multiplied by {factor:.4g}'}"
        if self.then.ndim > 1 or self.task is Task.RANKING or not _is_common(moved, then):
            return ""
        if abs(mean) > (_BIASED + 4 / math.sqrt(len(moved))) * spread:  # other causes move as many up as down
            by = float((self.now - self.then).mean())
            return f"predictions are {number(abs(by))} {'higher' if by > 0 else 'lower'} on average: the base score"
        return ""

    def describe_slice(self) -> str:
        """Whether the loss is among the rows with low, middle or high targets, or with few rows."""
        if self.task.is_classification or len(self.y) < 10 * _SLICES or self.loss.sum() <= 0:
            return ""
        few = max(1, len(self.loss) // 100)
        worst = float(np.sort(self.loss)[-few:].sum())
        if worst >= _MOST * float(np.abs(self.loss).sum()):
            return f"nearly all of the loss is in {count_of(few, 'row')} of {len(self.loss)}"
        edges = np.quantile(self.y, np.linspace(0, 1, _SLICES + 1)[1:-1])
        place = np.searchsorted(edges, self.y, side="right")
        top, share = self._find_bearer([place == one for one in range(_SLICES)])
        if share < _MOST:
            return ""
        names = ("lowest", "second", "third", "highest")
        return f"{_share(share)} of the loss is in the {names[top]} quarter of the target"

    def describe_shrinking(self) -> str:
        """Whether predictions are closer to their mean, or farther from it."""
        if self.then.ndim > 1:
            return ""
        then, now = (_link(side, self.task) for side in (self.then, self.now))
        away, moved = then - then.mean(), now - now.mean()
        spread = float(away @ away)
        slope = float(away @ moved) / spread if spread else 1.0
        left = moved - slope * away
        if not spread or float(left @ left) > (1 - slope) ** 2 * spread:  # it explains less than half of what moved
            return ""
        return f"predictions are {'closer to' if slope < 1 else 'farther from'} their mean (x {slope:.3f})"


def _share(value: float) -> str:
    return f"{100 * value:.2g} %" if value < _UNMOVED else f"{100 * value:.0f} %"


def _is_common(moved: Floats, then: Floats) -> bool:
    """Whether low and high predictions moved about as far, and the middle row as far as the mean."""
    place = np.searchsorted(np.quantile(then, np.linspace(0, 1, _SLICES + 1)[1:-1]), then, side="right")
    parts = [float(moved[place == one].mean()) for one in np.unique(place)]
    ratios = np.array([*parts, float(np.median(moved))]) / float(moved.mean())
    return bool((np.abs(ratios[:-1] - 1) < _COMMON).all() and abs(ratios[-1] - 1) < _MIDDLE)


def _find_factor(then: Floats, now: Floats) -> float | None:
    """What all were multiplied by; None where something else happened."""
    whole = float(then.ravel() @ then.ravel())
    factor = float(then.ravel() @ now.ravel()) / whole if whole else 1.0
    left = float(np.square(now - factor * then).sum())
    return factor if left <= _EXACT**2 * (factor - 1) ** 2 * whole else None


def _correlate(one: Floats, other: Floats) -> float:
    """0 where one of them does not vary."""
    spreads = float(one.std() * other.std())
    return float(((one - one.mean()) * (other - other.mean())).mean()) / spreads if spreads > _TINY else 0.0


def _link(values: Floats, task: Task) -> Floats:
    """Predictions on the scale on which trees add up."""
    if task is not Task.BINARY:
        return values
    kept = np.clip(values, 1e-6, 1 - 1e-6)
    odds: Floats = np.log(kept / (1 - kept))
    return odds
