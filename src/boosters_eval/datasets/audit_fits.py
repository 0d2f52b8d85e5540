"""What scores would lose if a split respected groups or time: measured by a quick fit, not guessed from names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from boosters_eval.datasets.audit_columns import tells_time
from boosters_eval.datasets.audit_relations import rank_values
from boosters_eval.datasets.generated import Stream

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from boosters_eval.datasets.audit_columns import RowNumbers, SampledColumn, Subject

    _Floats = NDArray[np.float64]
    _Codes = NDArray[np.int64]
    _Matrix = NDArray[np.float32]  # a row for each column

ROWS, COLUMNS = 5_000, 50  # that a quick fit sees
_FEWEST_ROWS = 100
FEWEST_GROUPS = 20  # fewer are levels of a category
_ALIKE = 0.1  # the share of the target's variance that lies between groups, from which a fit is worth its time
_ORDERED = 0.5  # the correlation of neighboring levels' means from which a number is a quantity, not an id
_WORTH = 0.2  # the score on random splits below which there is nothing to lose
_LOST = 0.5  # the share of the score that must be lost
_MOST_CLASSES = 5
_TREES, _DEPTH, _LEAF = 10, 12, 2
_LEAST_TRIED = 8  # cuts of each node
_STRETCHES = 20  # of rows that follow one another
_IN_ORDER = 0.99  # the share of steps that must not go back
LATER, _FAR = "if it is to predict later rows", "far from the rows that it has seen"
_STREAM = 7  # keeps this use of the stream apart from its others


@dataclass(frozen=True)
class Loss:
    """What a model explains of rows drawn at random, and of rows of new groups, or later ones."""

    random: float
    apart: float
    noise: float  # the standard error of their difference

    @property
    def matters(self) -> bool:
        least = max(_LOST * self.random, 3 * self.noise)
        return self.random >= _WORTH and self.random - self.apart >= least

    def __str__(self) -> str:
        return f"from {self.random:.2f} to {max(self.apart, -9.99):.2f}"


def choose_group_rows(column: SampledColumn, target: _Floats) -> RowNumbers | None:
    """Rows in which the levels of a column are whole groups, if these are worth a fit: alike within, in no order."""
    values = column.whole
    every = -(-len(values) // ROWS)
    if every == 1:
        rows = np.arange(len(values))
    else:  # whole groups, chosen by a hash of their key
        mixed = np.nan_to_num(values).astype(np.int64).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        rows = np.flatnonzero(mixed < np.uint64(2**64 // every))
        if not _FEWEST_ROWS <= len(rows) <= 4 * ROWS:
            rows = np.flatnonzero(_drawn(len(values), ROWS))
    keys = values[rows]
    known = ~np.isnan(keys)
    rows, keys = rows[known], keys[known]
    _, codes, sizes = np.unique(keys, return_inverse=True, return_counts=True)
    if len(rows) < _FEWEST_ROWS or not FEWEST_GROUPS <= len(sizes) <= len(rows) / 2:
        return None
    means, alike = _between(rank_values(target[rows]), codes, sizes)
    if alike < _ALIKE or (not column.categorical and _follow(means) > _ORDERED):
        return None
    return rows


def measure_groups(columns: Sequence[SampledColumn], keys: _Floats, subject: Subject, rows: RowNumbers) -> Loss | None:
    """What is lost where groups are kept whole; None if there are too few rows or columns to tell."""
    _, codes = np.unique(keys, return_inverse=True)
    order = Stream(0, _STREAM, len(codes)).order(int(codes.max()) + 1)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return _measure(columns, subject, rows, place[codes] % 2 == 0, both=True)


def measure_time(
    columns: Sequence[SampledColumn], times: _Floats, subject: Subject, rows: RowNumbers | None
) -> Loss | None:
    """What is lost where later rows are predicted from earlier ones."""
    every = np.arange(len(subject.y)) if rows is None else rows
    return _measure(columns, subject, every, rank_values(times) < 0.5, both=False)


def choose_stretches(target: _Floats) -> RowNumbers | None:
    """Rows that follow one another, in stretches over the whole table, if the targets of neighbors are alike."""
    size = min(len(target), ROWS) // _STRETCHES
    starts = np.linspace(0, len(target) - size, _STRETCHES).astype(np.int64)
    rows = (starts[:, None] + np.arange(size)).ravel()
    return rows if len(rows) >= _FEWEST_ROWS and _follow(rank_values(target[rows])) >= _ALIKE else None


def measure_order(
    columns: Sequence[SampledColumn], counters: Sequence[SampledColumn], subject: Subject, rows: RowNumbers
) -> tuple[str, Loss] | None:
    """Where more than half is lost if the order of the rows is respected: in later rows, or in whole stretches.

    Rows that were sorted by the target say nothing, nor do those sorted by a column of later ones, unless it tells the
    time. Counters of the rows are features of such a model too.
    """
    place = np.arange(len(rows))
    if _is_sorted(subject.y[rows]):
        return None
    if not any(_is_sorted(c.numbers) for c in columns if c.name not in subject.dates and not tells_time(c)):
        later = _measure([*counters, *columns], subject, rows, place < len(rows) // 2, both=False)
        if later is not None and later.matters:
            return LATER, later
    apart = _measure(columns, subject, rows, place * _STRETCHES // len(rows) % 2 == 0, both=True)
    return (_FAR, apart) if apart is not None and apart.matters else None


def _is_sorted(values: _Floats) -> bool:
    """Whether values hardly ever go back, or come in runs of equal ones; a constant is in no order."""
    steps = np.diff(values[~np.isnan(values)])
    changes, distinct = int((steps != 0).sum()), len(np.unique(values))
    runs = distinct <= len(values) / 5 and changes < 2 * distinct
    return changes > 0 and (runs or bool(max((steps >= 0).mean(), (steps <= 0).mean()) >= _IN_ORDER))


def _measure(
    columns: Sequence[SampledColumn], subject: Subject, rows: RowNumbers, first: NDArray[np.bool_], *, both: bool
) -> Loss | None:
    features = columns[:COLUMNS]
    some = np.flatnonzero(_drawn(len(rows), ROWS))
    first = first[some]
    least = len(some) // 10
    if not features or len(some) < _FEWEST_ROWS or not least <= first.sum() <= len(some) - least:
        return None
    x = np.stack([_filled(column.numbers[some]) for column in features])
    y = _targets(subject.y[rows[some]], classes=subject.task.is_classification)
    mixed = Stream(1, _STREAM, len(some)).uniform(len(some)) < first.mean()
    drawn, apart = (_missed(x, y, side, both=both) for side in (mixed, first))
    noise = float(np.hypot(drawn.std() / drawn.size**0.5, apart.std() / apart.size**0.5))
    return Loss(1 - float(drawn.mean()), 1 - float(apart.mean()), noise)


def _missed(x: _Matrix, y: _Floats, first: NDArray[np.bool_], *, both: bool) -> _Floats:
    """The squared error of each row by a model of the other half, in variances of the target."""
    sides = [first, ~first] if both else [first]
    errors = [((_predict(x[:, side], y[side], x[:, ~side]) - y[~side]) ** 2).sum(axis=1) for side in sides]
    found: _Floats = np.concatenate(errors) / (y.var(axis=0).sum() or 1.0)
    return found


def _predict(x: _Matrix, y: _Floats, others: _Matrix) -> _Floats:
    """What a small forest says of other rows. Half a second, while importing a library takes two."""
    found = np.zeros((others.shape[1], y.shape[1]))
    for tree in range(_TREES):
        stream = Stream(3, _STREAM, tree)
        order = stream.order(x.shape[1])
        found += _grow(x[:, order], y[order], others, stream)
    return found / _TREES


def _grow(x: _Matrix, y: _Floats, others: _Matrix, stream: Stream) -> _Floats:
    """A tree of random cuts: each node takes the best of some, through the values of rows in it."""
    tried = max(_LEAST_TRIED, len(x) // 4)
    node, place = np.zeros(x.shape[1], dtype=np.int64), np.zeros(others.shape[1], dtype=np.int64)
    for _ in range(_DEPTH):
        columns = (stream.uniform(tried) * len(x)).astype(np.int64)
        sizes = np.bincount(node)
        members = np.argsort(node, kind="stable")[
            (np.cumsum(sizes) - sizes) + (stream.uniform(tried)[:, None] * sizes).astype(np.int64)
        ]
        cuts = x[columns[:, None], members]  # by what is tried, and by node
        gains = _gain(x[columns] > cuts[:, node], y, node, sizes)
        best = np.argmax(gains, axis=0)
        every = np.arange(len(sizes))
        column, cut = columns[best], np.where(gains[best, every] > 0, cuts[best, every], np.inf)
        node, place = (
            2 * at + (rows[column[at], np.arange(rows.shape[1])] > cut[at]) for rows, at in ((x, node), (others, place))
        )
        kept, node = np.unique(node, return_inverse=True)
        place = np.searchsorted(kept, place)
    sums = np.stack([np.bincount(node, weights=column) for column in y.T], axis=1)
    found: _Floats = (sums / np.bincount(node)[:, None])[place]
    return found


def _gain(right: NDArray[np.bool_], y: _Floats, node: _Codes, sizes: _Codes) -> _Floats:
    """How much of the variance each cut of each node explains; nothing if it leaves a side with too few rows."""
    tried, nodes = len(right), len(sizes)
    cell = (np.arange(tried)[:, None] * nodes + node)[right]
    count = np.bincount(cell, minlength=tried * nodes).reshape(tried, nodes)
    rest = sizes - count
    possible = (count >= _LEAF) & (rest >= _LEAF)
    found = np.zeros((tried, nodes))
    for column in y.T:
        whole = np.bincount(node, weights=column, minlength=nodes)
        weights = np.broadcast_to(column, right.shape)[right]
        part = np.bincount(cell, weights=weights, minlength=tried * nodes).reshape(tried, nodes)
        means = part / np.maximum(count, 1) - (whole - part) / np.maximum(rest, 1)
        found += means**2
    gains: _Floats = np.where(possible, found * count * rest / sizes, 0.0)
    return gains


def _targets(y: _Floats, *, classes: bool) -> _Floats:
    if not classes:
        return (y - y.mean()).reshape(-1, 1)
    labels, counts = np.unique(y, return_counts=True)
    kept = labels[np.argsort(-counts, kind="stable")[:_MOST_CLASSES]]
    found: _Floats = (y[:, None] == kept[None, :]).astype(np.float64)
    return found


def _filled(numbers: _Floats) -> NDArray[np.float32]:
    """A missing value is lower than all others."""
    lowest = float(np.nanmin(numbers, initial=0.0))
    found: NDArray[Any] = np.where(np.isnan(numbers), lowest - 1 - abs(lowest), numbers)
    return found.astype(np.float32)


def _drawn(total: int, count: int) -> NDArray[np.bool_]:
    return Stream(2, _STREAM, total).uniform(total) < count / max(total, 1)


def _between(y: _Floats, codes: _Codes, sizes: _Codes) -> tuple[_Floats, float]:
    """The mean of each group, and the share of the variance between groups beyond what chance gives."""
    means = np.bincount(codes, weights=y) / sizes
    within = float(((y - means[codes]) ** 2).sum()) / max(len(y) - len(sizes), 1)
    between = float((sizes * (means - y.mean()) ** 2).sum()) / (len(sizes) - 1)
    typical = len(y) / len(sizes)
    return means, (between - within) / (between + (typical - 1) * within or 1.0)


def _follow(means: _Floats) -> float:
    """The correlation between the means of neighboring levels."""
    a, b = means[1:] - means.mean(), means[:-1] - means.mean()
    return float(a @ b / np.sqrt((a @ a) * (b @ b) or 1.0))
