"""Which rows are learned from and which are scored: by seed and fold, or by a column of times or groups."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from boosters_eval.core.errors import DataFileError, DatasetError, suggest
from boosters_eval.core.request import Part
from boosters_eval.core.terms import given
from boosters_eval.core.text import count_of
from boosters_eval.datasets.config import ROW_ORDER, SplitSpec, parse_split
from boosters_eval.datasets.generated import Stream
from boosters_eval.datasets.texts import parse_dates
from boosters_eval.metrics.task import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from boosters_eval.core.request import SplitKind
    from boosters_eval.datasets.config import DatasetConfig, SplitBy, Table

    _Rows = NDArray[np.int64]

_SPLIT, _FOLDS, _SUBSAMPLE, _GROUPS = 1, 2, 3, 5  # keep the uses of one seed apart; a protocol has the fourth
HELD_OUT = 0.2  # of the training rows, for early stopping, or to choose by
MOST_INNER = 5  # disjoint parts of that size
_WITHIN = 1  # keeps the seeds of splits of training rows apart from those of splits
_SPLIT_BY = ("y", "groups", "split_by")  # the columns that decide on a split


@dataclass(frozen=True)
class Split:
    """Row numbers in the order in which they are used, and a digest of both lists."""

    train: NDArray[np.int64]
    valid: NDArray[np.int64]
    digest: str


def split_rows(
    table: Table,
    task: Task,
    spec: SplitSpec,
    seed: int,
    fold: int | None,
    splitter: Callable[..., Any] | None = None,
    part: Part | None = None,
) -> Split:
    """One split: classes keep their shares, queries stay whole, and a data set's own splitter takes precedence.

    By time, the fold is the window, and the seed changes nothing. By group, no group is on both sides. A balanced
    split is the part of the rows that its repeat is due; how the rows are dealt is up to the part's own seed.
    """
    if splitter is not None:
        return _checked(table, task, splitter(table, seed, fold))
    if spec.kind == "time":
        return _window(table, spec, fold)
    if spec.folds is not None:
        part = Part(seed, -1 if fold is None else fold)
    if spec.kind == "group":
        return _by_group(table, spec, seed, part)
    if part is None:
        in_valid, order = _random(table, task, spec.validation_fraction, seed)
    else:
        in_valid, order = _take_part(table, task, spec, part)
    return _finish(order[~in_valid[order]], order[in_valid[order]])


def place_repeats(seeds: Sequence[int], fraction: float) -> list[Part]:
    """The part that each repeat tests on: with a fifth of the rows, five share one deal, the next five another."""
    count = count_parts(fraction)
    return [Part(seeds[place - place % count], place % count) for place in range(len(seeds))]


def count_parts(fraction: float) -> int:
    """How many disjoint test sets of this size there are."""
    return int(1 / _as_ratio(fraction))


def _as_ratio(fraction: float) -> Fraction:
    return Fraction(fraction).limit_denominator(1000)


def hold_out_rows(table: Table, task: Task, kind: SplitKind, seed: int) -> Split:
    """The rows to stop early on, a fifth: the latest ones, or whole groups, as those that are scored on."""
    if kind == "time":
        order, starts = _in_time(table)
        if not len(starts):
            raise DatasetError("Early stopping needs training rows of two different times at least. Got one.")
        edge = _nearest(starts, np.array([(1 - HELD_OUT) * len(order)]))[0]
        return _finish(order[:edge], order[edge:])
    return split_rows(table, task, SplitSpec(validation_fraction=HELD_OUT, kind=kind), seed, None)


def split_within(table: Table, task: Task, kind: SplitKind, outer: Split, seed: int, number: int) -> Split:
    """Both sides from the training rows alone: what is chosen by them has not seen the rows that it is scored on.

    As the outer split: the latest rows, whole groups, or a part of a deal. Parts 1 to 5 are disjoint; of time there
    is one.
    """
    rows = outer.train
    own: dict[str, Any] = {
        name: None if (column := getattr(table, name)) is None else np.asarray(column[rows]) for name in _SPLIT_BY
    }
    within = replace(table, x=table.x[:0], **own)
    if kind == "time":
        found = hold_out_rows(within, task, kind, seed)
    else:
        spec = SplitSpec(validation_fraction=HELD_OUT, kind=kind, balanced=True)
        found = split_rows(within, task, spec, seed, None, part=Part(seed + _WITHIN, number - 1))
    return _finish(rows[found.train], rows[found.valid])


def official_split(table: Table, seed: int, fold: int | None) -> tuple[Any, Any]:  # noqa: ARG001 (a splitter's signature)
    """A splitter that follows the split which the data set was published with."""
    if table.split is None:
        raise DatasetError("This data set has no official split.")
    split = np.asarray(table.split)
    return np.flatnonzero(split == 0), np.flatnonzero(split == 1)


def subsample_rows(table: Table, task: Task, count: int) -> _Rows:
    """About `count` rows, always the same, in their original order: a share of each class, or whole queries."""
    rows = len(table.y)
    stream = Stream(0, _SUBSAMPLE, rows)
    if task is Task.RANKING:
        starts, sizes, queries = _queries(table)
        order = stream.order(len(starts))
        kept = max(2, int(np.searchsorted(np.cumsum(sizes[order]), count, side="right")))
        return np.flatnonzero(np.isin(queries, order[:kept]))
    order = stream.order(rows)
    if not task.is_classification:
        return np.sort(order[:count])
    labels = _labels(table)
    quota = np.clip(np.floor(np.bincount(labels) * (count / rows) + 0.5).astype(int), 2, None)
    ranks = _rank_in_class(labels, order)
    return np.flatnonzero(ranks < quota[labels])


def _labels(table: Table) -> _Rows:
    return np.asarray(table.y).astype(np.int64)


def _rank_in_class(labels: _Rows, order: _Rows) -> _Rows:
    """For each row, its position among the rows of its class in the given order: 0, 1, ..."""
    grouped = order[np.argsort(labels[order], kind="stable")]
    counts = np.bincount(labels)
    starts = np.cumsum(counts) - counts
    ranks = np.empty(len(labels), dtype=np.int64)
    ranks[grouped] = np.arange(len(labels)) - np.repeat(starts, counts)
    return ranks


def _queries(table: Table) -> tuple[_Rows, _Rows, _Rows]:
    """Where each query starts, how many rows it has, and for each row its query's position."""
    if table.groups is None:
        raise DatasetError("Ranking needs groups: a query id per row.")
    groups = np.asarray(table.groups)
    starts = np.concatenate([[0], np.flatnonzero(np.diff(groups)) + 1]).astype(np.int64)
    sizes = np.diff(np.append(starts, len(groups)))
    return starts, sizes, np.repeat(np.arange(len(starts)), sizes)


def _query_order(table: Table, order: _Rows) -> _Rows:
    """Rows query by query: the queries in the given order, the rows of each in theirs."""
    starts, sizes, _ = _queries(table)
    first = np.repeat(starts[order], sizes[order])
    ends = np.cumsum(sizes[order])
    return first + np.arange(len(first)) - np.repeat(ends - sizes[order], sizes[order])


def _split_by(table: Table) -> NDArray[Any]:
    if table.split_by is None:
        raise DatasetError("This data set has no column of times or groups to be split by.")
    return np.asarray(table.split_by)


def _in_time(table: Table) -> tuple[_Rows, _Rows]:
    """The rows in the order of time, and the positions, but the first, at which a new time begins."""
    times = _split_by(table)
    order = np.argsort(times, kind="stable").astype(np.int64)
    return order, np.flatnonzero(np.diff(times[order])).astype(np.int64) + 1


def _nearest(starts: _Rows, wanted: NDArray[np.floating[Any]]) -> _Rows:
    """For each wanted position, the nearest at which a new time begins: equal times stay on one side."""
    after = np.clip(np.searchsorted(starts, wanted), 0, len(starts) - 1)
    before = np.maximum(after - 1, 0)
    return np.where(np.abs(starts[before] - wanted) < np.abs(starts[after] - wanted), starts[before], starts[after])


def _window(table: Table, spec: SplitSpec, fold: int | None) -> Split:
    """The first half of the rows is only learned from; the second is cut into windows, each validated on in turn."""
    windows = spec.folds or 1
    if fold is None or not 0 <= fold < windows:
        raise DatasetError(f"The window must be a number from 0 to {windows - 1}. Got {fold} instead.")
    order, starts = _in_time(table)
    rows = len(order)
    if not len(starts):
        raise DatasetError(f"All rows have the same time in '{spec.column}': none is before another.")
    edges = _nearest(starts, rows / 2 + rows / (2 * windows) * np.arange(windows, dtype=np.float64))
    if len(np.unique(edges)) < windows:
        raise DatasetError(
            f"The {len(starts) + 1} different times in '{spec.column}' cannot be cut into {windows} windows:"
            f" use fewer windows, such as {given('cv', max(2, len(np.unique(edges))))}."
        )
    ends = [*edges.tolist(), rows]
    return _finish(order[: ends[fold]], order[ends[fold] : ends[fold + 1]])


def _by_group(table: Table, spec: SplitSpec, seed: int, part: Part | None) -> Split:
    """Whole groups, drawn at random. Rows keep their order, so that equal groups on a side are one split."""
    groups = _split_by(table)
    _, codes = np.unique(groups, return_inverse=True)
    count = int(codes.max()) + 1
    if count < 2:
        raise DatasetError("A split by groups needs rows of at least 2 groups. Got 1 instead.")
    order = Stream(seed if part is None else part.seed, _GROUPS).order(count)
    chosen = np.zeros(count, dtype=bool)
    if part is None:
        chosen[order[: _share(count, spec.validation_fraction)]] = True
    else:
        chosen[order[_deal(count, spec, part.number, "groups")]] = True
    return _finish(np.flatnonzero(~chosen[codes]), np.flatnonzero(chosen[codes]))


def _random(table: Table, task: Task, fraction: float, seed: int) -> tuple[Any, _Rows]:
    stream = Stream(seed, _SPLIT)
    if task is Task.RANKING:
        starts, _, queries = _queries(table)
        order = stream.order(len(starts))
        return np.isin(queries, order[: _share(len(starts), fraction)]), _query_order(table, order)
    rows = len(table.y)
    order = stream.order(rows)
    if task.is_classification:
        labels = _labels(table)
        counts = np.bincount(labels)
        # Every class with two rows or more is on both sides; a class with one row is learned from.
        quota = np.clip(np.floor(counts * fraction + 0.5).astype(int), 1, np.maximum(counts - 1, 0))
        quota = np.where(counts < 2, 0, quota)
        return _rank_in_class(labels, order) < quota[labels], order
    in_valid = np.zeros(rows, dtype=bool)
    in_valid[order[: _share(rows, fraction)]] = True
    return in_valid, order


def _share(count: int, fraction: float) -> int:
    if count < 2:
        raise DatasetError(f"A split needs at least 2 rows (or queries). Got {count} instead.")
    return min(max(ceil(round(count * fraction, 9)), 1), count - 1)


def _take_part(table: Table, task: Task, spec: SplitSpec, part: Part) -> tuple[Any, _Rows]:
    queries = _queries(table)[2] if task is Task.RANKING else None
    units = len(table.y) if queries is None else int(queries[-1]) + 1
    taken = _deal(units, spec, part.number, "rows" if queries is None else "queries")
    order = Stream(part.seed, _FOLDS).order(units)
    in_valid = np.empty(units, dtype=bool)
    in_valid[order] = taken
    if queries is not None:
        return in_valid[queries], _query_order(table, order)
    if not task.is_classification:
        return in_valid, order
    labels = _labels(table)
    in_valid[order[np.argsort(labels[order], kind="stable")]] = taken
    alone = np.bincount(labels)[labels] < 2  # never left without a row to learn the class from
    return in_valid & ~alone, order


def _deal(units: int, spec: SplitSpec, number: int, what: str) -> NDArray[np.bool_]:
    """Which units, in the order of a deal, go to this part; the counts of any two parts differ by at most one."""
    if units < 2:
        raise DatasetError(f"A split needs at least 2 rows (or queries). Got {units} instead.")
    share = Fraction(1, spec.folds) if spec.folds else _as_ratio(spec.validation_fraction)
    parts = int(1 / share)
    if not 0 <= number < parts:
        got = None if number < 0 else number
        raise DatasetError(f"The fold must be a number from 0 to {parts - 1}. Got {got} instead.")
    if parts > units:
        if spec.folds:
            raise DatasetError(f"{parts} folds need at least {parts} {what}. Got {units} instead.")
        share, number = Fraction(1, units), number % units  # too few for all repeats, so they take turns
    taken: NDArray[np.bool_] = np.arange(units) * share.numerator % share.denominator // share.numerator == number
    return taken


def _finish(train: Any, valid: Any) -> Split:
    train, valid = np.ascontiguousarray(train, dtype="<i8"), np.ascontiguousarray(valid, dtype="<i8")
    if not len(train) or not len(valid):
        raise DatasetError(f"The split has {len(train)} training and {len(valid)} validation rows; both need some.")
    digest = hashlib.sha256(f"{len(train)} {len(valid)} ".encode())
    digest.update(train.data)
    digest.update(valid.data)
    return Split(train, valid, digest.hexdigest())


def _checked(table: Table, task: Task, parts: Any) -> Split:
    """What a splitter gave: row numbers, no row twice, no query cut."""
    try:
        train, valid = (np.asarray(part) for part in parts)
    except (TypeError, ValueError):
        raise DatasetError(f"A splitter must return (train, valid). Got {type(parts).__name__} instead.") from None
    for rows in (train, valid):
        if rows.ndim != 1 or rows.dtype.kind not in "iu":
            raise DatasetError("A splitter must return two lists of row numbers.")
    split = _finish(train, valid)
    both = np.concatenate([split.train, split.valid])
    if both.min() < 0 or both.max() >= len(table.y):
        raise DatasetError(f"A splitter must return row numbers from 0 to {len(table.y) - 1}.")
    if len(np.unique(both)) != len(both):
        raise DatasetError("A splitter must not use a row twice.")
    if task is Task.RANKING:
        sides = [_queries(table)[2][rows] for rows in (split.train, split.valid)]
        seen = np.concatenate([side[np.flatnonzero(np.diff(side, prepend=-1))] for side in sides])
        if len(np.unique(seen)) != len(seen):
            raise DatasetError("A splitter must keep the rows of a query together and on one side.")
    return split


_WHOLE = re.compile(r"^(-?\d+)\.0*$")


def follow_split(config: DatasetConfig, table: Table) -> Table:
    """The table with the column that its data set is split by: groups are no feature any more, times stay one."""
    by = parse_split(config.split_by)
    if by is None:
        return replace(table, split_by=None, split_column="")
    if table.split_by is not None and table.split_column == by.column:
        values: Any = table.split_by
    elif by.column == ROW_ORDER and by.column not in table.feature_names:
        values = number_rows(len(table.y), table.groups)
    else:
        position = _position(config.name, table, by)
        if by.kind == "time" and position in table.categorical:
            raise DataFileError(f"Column '{by.column}' of data set '{config.name}' has categories, not times.")
        values = table.x[:, position]
        table = table if by.kind == "time" else _without(config.name, table, position)
    found = read_split_values(config.name, by, values)
    _check_queries(config.name, by, table, found)
    return replace(table, split_by=found, split_column=by.column)


def number_rows(rows: int, queries: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """The order of the rows as times: a number for each, or for each query."""
    return np.arange(rows) if queries is None else np.cumsum(np.diff(queries, prepend=queries[0]) != 0)


def read_split_values(source: str, by: SplitBy, column: Any) -> NDArray[Any]:
    """Times as numbers of their own order, groups as codes 0, 1, ...; a value that is missing is refused."""
    return _times(source, by.column, column) if by.kind == "time" else _groups(source, by.column, column)


def _times(source: str, name: str, column: Any) -> NDArray[Any]:
    kind = getattr(getattr(column, "dtype", None), "kind", "O")
    if kind == "f":
        numbers = np.asarray(column, dtype=np.float64)
        _refuse_missing(source, "time", name, ~np.isfinite(numbers))
        return numbers
    if kind in "biu":
        if hasattr(column, "isna"):  # pandas has integers and booleans that may be missing
            _refuse_missing(source, "time", name, np.asarray(column.isna(), dtype=bool))
        values = np.asarray(column)
        # Numbers that int64 cannot hold become places in their order, which is all that matters.
        whole = kind != "u" or int(values.max(initial=0)) <= np.iinfo(np.int64).max
        return values.astype(np.int64) if whole else np.unique(values, return_inverse=True)[1].astype(np.int64)
    import pandas as pd  # noqa: PLC0415 (slow to import, and numbers do not need it)

    texts = pd.Series(column)
    _refuse_missing(source, "time", name, texts.isna().to_numpy())
    found = parse_dates(texts)
    lost = np.ones(len(texts), dtype=bool) if found is None else found.moments.isna().to_numpy()
    what = f"The time column '{name}' of {source}"
    if found is None or lost.any():
        others = f"'{texts[lost].iloc[0]}' and {int(lost.sum()) - 1} other such rows"
        raise DataFileError(f"{what} must hold dates or numbers. Got {others} instead.")
    if found.ambiguous:
        either = f"can be read with the day or the month first ('{texts.iloc[0]}')"
        raise DataFileError(f"{what} {either}: write it as year-month-day.")
    moments = found.moments.to_numpy()
    try:
        return moments.astype("datetime64[ns]").astype(np.int64)
    except OverflowError:  # centuries ago, or ahead
        return moments.astype("datetime64[us]").astype(np.int64)


def _groups(source: str, name: str, column: Any) -> NDArray[np.int64]:
    values = np.asarray(column)
    if values.dtype.kind in "biuf":
        _refuse_missing(source, "group", name, np.isnan(values))
        return np.unique(values, return_inverse=True)[1].astype(np.int64)
    import pandas as pd  # noqa: PLC0415 (slow to import, and numbers do not need it)

    codes, names = pd.factorize(pd.Series(column))
    _refuse_missing(source, "group", name, codes < 0)
    # 7, "7", "7.0" and " 7" are surely one group, which must not be on both sides of a split.
    texts = [_WHOLE.sub(r"\1", str(name).strip()) for name in names]
    merged = pd.factorize(pd.Series(texts, dtype=object))[0]
    return merged[codes].astype(np.int64)


def _refuse_missing(source: str, kind: str, name: str, missing: NDArray[np.bool_]) -> None:
    if missing.any():
        what, rows = f"The {kind} column '{name}' of {source}", count_of(int(missing.sum()), "row")
        raise DataFileError(f"{what} must have a value in every row. It is missing in {rows}.")


def _position(source: str, table: Table, by: SplitBy) -> int:
    names = [*table.feature_names, *filter(None, [table.split_column])]
    if by.column not in table.feature_names:
        known = "" if names else " Its columns have no names."
        raise DataFileError(f"Data set '{source}' has no column '{by.column}'.{suggest(by.column, names)}{known}")
    return table.feature_names.index(by.column)


def _without(source: str, table: Table, position: int) -> Table:
    name = table.feature_names[position]
    if table.x.shape[1] == 1:
        raise DataFileError(f"Data set '{source}' has no column besides '{name}' to learn from.")
    return replace(
        table,
        x=np.ascontiguousarray(np.delete(table.x, position, axis=1)),
        categorical=tuple(other - (other > position) for other in table.categorical if other != position),
        feature_names=tuple(other for other in table.feature_names if other != name),
        category_names={k: v for k, v in (table.category_names or {}).items() if k != name} or None,
    )


def _check_queries(source: str, by: SplitBy, table: Table, values: NDArray[Any]) -> None:
    """A query is never cut, so all of its rows must have one time, or be of one group."""
    if table.groups is None:
        return
    same_query = table.groups[1:] == table.groups[:-1]
    if (same_query & (values[1:] != values[:-1])).any():
        raise DataFileError(f"All rows of a query of {source} must have the same {by.kind} '{by.column}'.")
