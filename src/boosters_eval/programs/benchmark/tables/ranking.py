"""Average ranks over data sets, in the table model's terms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.reports.tables import RankingPair, RankingTable

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from boosters_eval.reports.tables import ReportTable, Row
    from boosters_eval.stats.ranks import Ranking

_OVER = "data sets"


def over_datasets(tables: Iterable[ReportTable], *, alpha: float) -> tuple[RankingTable, ...]:
    """One ranking per booster: two boosters on the same data set are not independent evidence."""
    groups: dict[tuple[str, tuple[str, ...]], list[ReportTable]] = {}
    for table in tables:
        groups.setdefault((table.keys["booster"], table.row_names), []).append(table)
    found = (_ranking(booster, members, alpha) for (booster, _), members in groups.items())
    return tuple(ranking for ranking in found if ranking is not None)


def _ranking(booster: str, tables: Sequence[ReportTable], alpha: float) -> RankingTable | None:
    from boosters_eval.stats.inference import StatisticsInputError  # noqa: PLC0415 (loads scipy)
    from boosters_eval.stats.ranks import rank_splits  # noqa: PLC0415 (loads scipy)

    scores: dict[str, dict[str, dict[Hashable, float]]] = {}
    better: dict[str, bool] = {}
    for table in tables:
        position, dataset = _measure(table), table.keys["dataset"]
        if position is None or dataset in scores:
            return None
        scores[dataset] = {
            row.label: _splits(row, position) for row in table.rows if row.cells[position].mean is not None
        }
        better[dataset] = bool(table.columns[position].higher_is_better)
    if len(scores) < 2:
        return None
    try:
        found = rank_splits(scores, higher_is_better=better, alpha=alpha)
    except StatisticsInputError:  # one library, or no data set that all of them have
        return None
    column = tables[0].columns[_measure(tables[0]) or 0]
    return RankingTable(
        name=booster,
        heading=tables[0].row_names[0],
        measure="primary metric" if column.primary else column.label,
        over=_OVER,
        ranks=tuple(found.average_ranks.items()),
        pairs=tuple(
            RankingPair(a, b, pair.wins, pair.losses, pair.ties, pair.p_adjusted)
            for (a, b), pair in found.pairs.items()
        ),
        groups=tuple(group for group in found.groups if len(group) > 1),
        n=found.n,
        descriptive=bool(found.note),
        left_out=found.left_out,
        partial=tuple(found.partial.items()),
        notes=tuple(_notes(found)),
    )


def _notes(found: Ranking) -> Iterator[str]:
    """The limitations of a ranking."""
    if found.note:
        yield found.note
    if found.left_out:
        yield f"Left out, because no split there has a result of every library: {', '.join(found.left_out)}."
    if found.partial:
        shown = ", ".join(f"{dataset} ({splits})" for dataset, splits in found.partial.items())
        yield f"Ranked only by the splits that every library has: {shown}."


def _splits(row: Row, position: int) -> dict[Hashable, float]:
    pairs = zip(row.points, row.cells[position].values, strict=True)
    return {point: value for point, value in pairs if value is not None}


def _measure(table: ReportTable) -> int | None:
    """The column to rank by: the primary metric, or else the training time if it was taken in timing mode."""
    for position, column in enumerate(table.columns):
        known = column.higher_is_better is not None and not column.indicative
        if known and (column.primary or column.cost):
            return position
    return None
