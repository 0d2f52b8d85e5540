"""The verdicts of the statistics on a column, in the table model's terms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from boosters_eval.programs.benchmark.comparisons import compare_rows, value_of
from boosters_eval.programs.benchmark.margins import Margin
from boosters_eval.programs.benchmark.tables.contenders import group_by_name
from boosters_eval.reports.html.charts import by_point
from boosters_eval.reports.numbers import number, percent
from boosters_eval.reports.tables import PairVerdict, RankingPair, RankingTable
from boosters_eval.stats.inference import StatisticsInputError
from boosters_eval.stats.ranks import rank_splits

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from boosters_eval.programs.benchmark.margins import Margins
    from boosters_eval.programs.benchmark.tables.contenders import Contender
    from boosters_eval.reports.tables import Column, ReportTable
    from boosters_eval.stats.ranks import Ranking
    from boosters_eval.stats.significance import Comparison as Pair
    from boosters_eval.stats.significance import TestName
    from boosters_eval.stats.tables import ComparisonTable


SECONDARY_SHARE = 0.1  # of alpha, for all columns together that do not decide the table


@dataclass(frozen=True)
class Judgment:
    """Which rows may be called best (by position), and the verdict on every pair."""

    winners: tuple[int, ...] = ()
    leaders: tuple[int, ...] = ()  # the best means over the splits that all have, whatever their uncertainty
    comparisons: tuple[PairVerdict, ...] = ()
    found: ComparisonTable | None = None  # what they are read off


def share_levels(columns: Sequence[Column], *, test: TestName, alpha: float) -> dict[str, float]:
    """The level at which each column is judged, by its name; columns that are not judged are left out.

    The primary column (or else the first that is judged) decides and keeps alpha. The others share a tenth of it, so
    that a table with many columns is hardly more often wrong than one with a single column. By the RFC's rule
    (Welch's test) each column stands alone.
    """
    judged = _judged(columns)
    deciding = find_deciding(columns)
    if test == "welch":
        return {column.name: alpha for column in judged}
    shared = SECONDARY_SHARE * alpha / max(len(judged) - 1, 1)
    return {column.name: alpha if column is deciding else shared for column in judged}


def find_deciding(columns: Sequence[Column]) -> Column | None:
    """The column that decides a table: the primary one, or else the first that is judged."""
    judged = _judged(columns)
    return next((column for column in judged if column.primary), next(iter(judged), None))


def _judged(columns: Sequence[Column]) -> list[Column]:
    return [column for column in columns if column.higher_is_better is not None and not column.indicative]


def judge(
    table: str,
    column: Column,
    contenders: Sequence[Contender],
    *,
    test: TestName,
    alpha: float,
    margins: Margins | None = None,
) -> Judgment:
    """Judge all pairs of one column, which must have a known direction."""
    measured = (value_of(result, column.name) for contender in contenders for result in contender.results)
    if column.higher_is_better is None or all(value is None for value in measured):
        return Judgment()
    row_of = {contender.name: index for index, contender in enumerate(contenders)}
    sides = {one.name: one.observe(column.name, by_rows=test == "rows") for one in contenders}
    found = compare_rows(
        sides if len(sides) == len(contenders) else group_by_name(contenders),
        column.name,
        higher_is_better=column.higher_is_better,
        test=test,
        alpha=alpha,
        evidence=contenders[0].evidence,
        margins=margins,
    )
    return Judgment(
        winners=() if found.winner is None else (row_of[found.winner],),
        leaders=tuple(row_of[name] for name in found.leaders) if found.pairs else (),
        comparisons=tuple(_comparison(table, column, a, b, found.ruled(a, b)) for a, b in found.pairs),
        found=found,
    )


def _comparison(table: str, column: Column, a: str, b: str, pair: Pair) -> PairVerdict:
    low, high = pair.interval or (None, None)
    return PairVerdict(
        table=table,
        metric=column.name,
        label=column.label,
        a=a,
        b=b,
        verdict=pair.verdict,
        difference=pair.difference,
        percent=pair.percent,
        ratio=pair.ratio,
        low=low,
        high=high,
        p=pair.p_adjusted,
        n=pair.n,
        detectable=pair.min_detectable,
        alpha=pair.alpha,
        test=pair.test,
        margin=tell_margin(pair),
        note=pair.note,
        text=_sentence(column, a, b, pair),
    )


def _sentence(column: Column, a: str, b: str, pair: Pair) -> str:
    """The verdict as a sentence; for "inconclusive", with the smallest difference that could have been shown."""
    size = "" if pair.percent is None else f" by {percent(abs(pair.percent) / 100, sign=False)}{column.of_error}"
    note = f" {pair.note}" if pair.note else ""
    if pair.verdict in ("better", "worse"):
        return f"{column.label}: {a} is {pair.verdict} than {b}{size} (n = {pair.n}).{note}"
    if pair.verdict == "equivalent":
        of = column.of_error if pair.margin is None else ""
        return f"{column.label}: {a} and {b} are equivalent (within {tell_margin(pair)}{of}, n = {pair.n}).{note}"
    shown = ""
    if pair.min_detectable is not None:
        share = pair.min_detectable_percent
        relative = "" if share is None else f" ({percent(share / 100, sign=False)}{column.of_error})"
        absolute = "" if pair.ratio is not None else f" {number(pair.min_detectable, 2)}"
        shown = f" {pair.n} splits could have shown a difference of{absolute}{relative}."
    return f"{column.label}: inconclusive between {a} and {b}.{shown}{note}"


def tell_margin(pair: Pair) -> str:
    return (Margin(pair.rope) if pair.margin is None else Margin(pair.margin, is_share=False)).in_words


def find_scale(pair: PairVerdict) -> float | None:
    """The size of the value that the percentages of a pair refer to."""
    if pair.ratio is not None:
        return 1.0
    return abs(100 * pair.difference / pair.percent) if pair.difference and pair.percent else None


_OVER = "data sets"


def rank_over_datasets(
    tables: Iterable[ReportTable], *, alpha: float, leaking: Collection[str] = ()
) -> tuple[RankingTable, ...]:
    """One ranking per booster and profile: two on the same data set are not independent evidence.

    Data sets with a leak are left out, since everybody finds it.
    """
    groups: dict[tuple[str, str, tuple[str, ...]], list[ReportTable]] = {}
    for table in tables:
        groups.setdefault((table.keys["booster"], table.keys["profile"], table.row_names), []).append(table)
    several = len({profile for _, profile, _ in groups}) > 1
    found = (
        _ranking(f"{booster}, {profile}" if several else booster, members, alpha, leaking)
        for (booster, profile, _), members in groups.items()
    )
    return tuple(ranking for ranking in found if ranking is not None)


def _ranking(
    booster: str, tables: Sequence[ReportTable], alpha: float, leaking: Collection[str]
) -> RankingTable | None:
    scores: dict[str, dict[str, dict[Any, float]]] = {}
    better: dict[str, bool] = {}
    level: dict[str, set[frozenset[str]]] = {}
    left_out = [table.keys["dataset"] for table in tables if table.keys["dataset"] in leaking]
    for table in tables:
        if table.keys["dataset"] in leaking:
            continue
        position, dataset = _measure(table), table.keys["dataset"]
        if position is None or dataset in scores:
            return None
        rows = [row for row in table.rows if row.cells[position].mean is not None]
        scores[dataset] = {row.label: by_point(row, position) for row in rows}
        column = table.columns[position]
        better[dataset] = bool(column.higher_is_better)
        level[dataset] = {
            frozenset((pair.a, pair.b))
            for pair in table.pairs
            if pair.metric == column.name and pair.verdict == "equivalent"
        }
    if len(scores) < 2:
        return None
    try:
        found = rank_splits(scores, higher_is_better=better, alpha=alpha, equivalent=level)
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
        left_out=(*left_out, *found.left_out),
        partial=tuple(found.partial.items()),
        notes=tuple(_notes(found, left_out)),
    )


def _notes(found: Ranking, leaking: Sequence[str]) -> Iterator[str]:
    if found.note:
        yield found.note
    if leaking:
        yield f"Left out, because a column gives the target away: {', '.join(leaking)}."
    if found.left_out:
        yield f"Left out, because no split there has a result of every library: {', '.join(found.left_out)}."
    if found.partial:
        shown = ", ".join(f"{dataset} ({splits})" for dataset, splits in found.partial.items())
        yield f"Ranked only by the splits that every library has: {shown}."


def _measure(table: ReportTable) -> int | None:
    """The column to rank by: the primary metric, or else the training time if it was taken in timing mode."""
    for position, column in enumerate(table.columns):
        known = column.higher_is_better is not None and not column.indicative
        if known and (column.primary or column.cost):
            return position
    return None
