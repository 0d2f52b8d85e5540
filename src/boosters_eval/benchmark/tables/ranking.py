"""Who is ahead over the data sets, in the table model's terms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.reports.model import RankedPair, Ranking

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from boosters_eval.reports.model import Row, Table


def over_datasets(tables: Iterable[Table], *, alpha: float) -> tuple[Ranking, ...]:
    """One ranking a booster: two boosters on the same data set are no independent evidence."""
    groups: dict[tuple[str, bool], list[Table]] = {}
    for table in tables:
        groups.setdefault((table.booster, table.has_variants), []).append(table)
    found = (_ranking(booster, members, alpha) for (booster, _), members in groups.items())
    return tuple(ranking for ranking in found if ranking is not None)


def _ranking(booster: str, tables: Sequence[Table], alpha: float) -> Ranking | None:
    from boosters_eval.stats.inference import StatisticsInputError  # noqa: PLC0415 (loads scipy)
    from boosters_eval.stats.ranks import rank_splits  # noqa: PLC0415 (loads scipy)

    scores: dict[str, dict[str, dict[Hashable, float]]] = {}
    better: dict[str, bool] = {}
    for table in tables:
        position = _measure(table)
        if position is None or table.dataset in scores:
            return None
        scores[table.dataset] = {
            row.label: _splits(row, position) for row in table.rows if row.cells[position].mean is not None
        }
        better[table.dataset] = bool(table.columns[position].higher_is_better)
    if len(scores) < 2:
        return None
    try:
        found = rank_splits(scores, higher_is_better=better, alpha=alpha)
    except StatisticsInputError:  # one library, or no data set that all have
        return None
    column = tables[0].columns[_measure(tables[0]) or 0]
    return Ranking(
        booster=booster,
        measure="primary metric" if column.primary else column.label,
        ranks=tuple(found.average_ranks.items()),
        pairs=tuple(
            RankedPair(a, b, pair.wins, pair.losses, pair.ties, pair.p_adjusted) for (a, b), pair in found.pairs.items()
        ),
        groups=tuple(group for group in found.groups if len(group) > 1),
        n=found.n,
        left_out=found.left_out,
        note=found.note,
        partial=tuple(found.partial.items()),
    )


def _splits(row: Row, position: int) -> dict[Hashable, float]:
    pairs = zip(row.points, row.cells[position].values, strict=True)
    return {point: value for point, value in pairs if value is not None}


def _measure(table: Table) -> int | None:
    """The column that is ranked by: the primary metric, else the training time where it was taken to be compared."""
    for position, column in enumerate(table.columns):
        known = column.higher_is_better is not None and not column.indicative
        if known and (column.primary or column.name == "train_time_s"):
            return position
    return None
