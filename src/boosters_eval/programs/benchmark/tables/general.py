"""Over all data sets: average ranks, mean differences, and which competitor is better in general."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from boosters_eval.core.text import count_of, join_words
from boosters_eval.programs.benchmark.tables.answers import tell_be, tell_ends
from boosters_eval.programs.benchmark.tables.verdicts import find_scale
from boosters_eval.reports.document import PlainTable
from boosters_eval.reports.html.charts import by_point
from boosters_eval.reports.numbers import percent
from boosters_eval.reports.tables import RankingPair, RankingTable
from boosters_eval.stats.inference import StatisticsInputError
from boosters_eval.stats.pooled import Effect, pool
from boosters_eval.stats.ranks import rank_splits
from boosters_eval.stats.significance import DEFAULT_ROPE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from boosters_eval.datasets.config import DataAudit
    from boosters_eval.reports.tables import Column, PairVerdict, ReportTable
    from boosters_eval.stats.ranks import RankedPair, Ranking

    Effects = dict[tuple[str, str], Effect]

_OVER = "data sets"
_NAMED = 3  # data sets; more are only counted
_LEAST_OF_KIND = 3  # data sets of a kind, of which a mean rank is told
_SMALL, _LARGE = 3_000, 20_000  # rows
_WIDE = 50  # columns


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
        _rank(f"{booster}, {profile}" if several else booster, members, alpha, leaking)
        for (booster, profile, _), members in groups.items()
    )
    return tuple(ranking for ranking in found if ranking is not None)


def _rank(booster: str, tables: Sequence[ReportTable], alpha: float, leaking: Collection[str]) -> RankingTable | None:
    scores: dict[str, dict[str, dict[Any, float]]] = {}
    better: dict[str, bool] = {}
    level: dict[str, set[frozenset[str]]] = {}
    effects: dict[str, Effects] = {}
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
        pairs = [pair for pair in table.pairs if pair.metric == column.name]
        level[dataset] = {frozenset((pair.a, pair.b)) for pair in pairs if pair.verdict == "equivalent"}
        effects[dataset] = _measure_effects(pairs, column, alpha)
    if len(scores) < 2:
        return None
    try:
        found = rank_splits(scores, higher_is_better=better, alpha=alpha, equivalent=level)
    except StatisticsInputError:  # one library, or no data set that all of them have
        return None
    column = tables[0].columns[_measure(tables[0]) or 0]
    whole = {dataset: each for dataset, each in effects.items() if dataset not in found.left_out}
    return RankingTable(
        name=booster,
        heading=tables[0].row_names[0],
        measure="primary metric" if column.primary else column.label,
        over=_OVER,
        ranks=tuple(found.average_ranks.items()),
        pairs=tuple(_compare(a, b, pair, whole, alpha / len(found.pairs)) for (a, b), pair in found.pairs.items()),
        groups=tuple(group for group in found.groups if len(group) > 1),
        n=found.n,
        descriptive=bool(found.note),
        left_out=(*left_out, *found.left_out),
        partial=tuple(found.partial.items()),
        notes=tuple(_notes(found, left_out)),
    )


def _compare(a: str, b: str, pair: RankedPair, effects: Mapping[str, Effects], level: float) -> RankingPair:
    found = {dataset: each[a, b] for dataset, each in effects.items() if (a, b) in each}
    pooled = pool(found, level=level, rope=DEFAULT_ROPE)
    counted = (a, b, pair.wins, pair.losses, pair.ties, pair.p_adjusted)
    if pooled is None:
        return RankingPair(*counted)
    return RankingPair(
        *counted,
        share=pooled.share,
        low=pooled.interval[0],
        high=pooled.interval[1],
        verdict=pooled.conclude(DEFAULT_ROPE),
        hinges=pooled.hinges,
    )


def _measure_effects(pairs: Sequence[PairVerdict], column: Column, alpha: float) -> Effects:
    """Both ways round. A pair with an error of zero, or without a difference, has none."""
    tested = sum(pair.p is not None for pair in pairs)
    critical = NormalDist().inv_cdf(1 - alpha / 2 / max(tested, 1))
    found: Effects = {}
    for pair in pairs:
        effect = _measure_effect(pair, column, critical)
        if effect is not None:
            found[pair.a, pair.b] = effect
            found[pair.b, pair.a] = Effect(-effect.size, effect.error)
    return found


def _measure_effect(pair: PairVerdict, column: Column, critical: float) -> Effect | None:
    if pair.difference == 0:
        return Effect(0.0)
    if pair.percent is None:
        return None
    ratio = 1 + pair.percent / 100 * (-1 if column.higher_is_better else 1)
    scale = find_scale(pair)
    if ratio <= 0:
        return None
    if pair.low is None or pair.high is None or not scale:
        return Effect(math.log(ratio))
    return Effect(math.log(ratio), (pair.high - pair.low) / 2 / critical / scale / ratio)


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


def _find_leader(ranking: RankingTable) -> tuple[str, dict[str, RankingPair]] | None:
    """The competitor with the least error on average, and its pairs from its own point of view; None if untested."""
    pairs = {(pair.a, pair.b): pair for pair in ranking.pairs}
    if not pairs or any(pair.share is None for pair in pairs.values()):
        return None
    every = pairs | {(b, a): pair.flipped() for (a, b), pair in pairs.items()}
    names = [name for name, _ in ranking.ranks]
    total = {
        name: sum(math.log1p(every[name, other].share or 0.0) for other in names if other != name) for name in names
    }
    leader = min(names, key=lambda name: total[name])
    return leader, {other: every[leader, other] for other in names if other != leader}


def tell_in_general(ranking: RankingTable) -> str:
    """Which competitor is better over the data sets together; empty with too few of them to say."""
    found = _find_leader(ranking)
    if found is None:
        return ""
    leader, pairs = found
    over = f"over {count_of(ranking.n, 'data set')}"
    by = {verdict: [name for name, pair in pairs.items() if pair.verdict == verdict] for verdict in _VERDICTS}
    near = min(pairs, key=lambda name: -(pairs[name].share or 0.0))
    if not by["equivalent"] and not by["inconclusive"]:
        return f"in general {leader}: {over}, its error is {_tell_size(pairs[near])} than that of {near}, the next"
    known = [f"It is better than {join_words(by['better'])}"] if by["better"] else []
    if by["equivalent"]:
        known.insert(0, f"{join_words(by['equivalent'])} {tell_be(by['equivalent'])} as good as {leader}")
    if not by["inconclusive"]:
        return f"in general any of {join_words([leader, *by['equivalent']])}, {over}. {'. '.join(known[1:])}".rstrip(
            ". "
        )
    others = [pairs[name].flipped() for name in by["inconclusive"]]
    may = " or ".join(tell_ends({one.a: (one.low or 0.0, one.high or 0.0) for one in others}))
    said = f"{leader} has the lowest mean error, but {join_words(by['inconclusive'])} may be up to {may}"
    return ". ".join([f"cannot say in general, {over}", said, *known])


_VERDICTS = ("better", "equivalent", "inconclusive", "worse")


def _tell_size(pair: RankingPair) -> str:
    low, high = (percent(-(bound or 0.0), sign=False) for bound in (pair.high, pair.low))
    return f"{percent(-(pair.share or 0.0), sign=False)} lower ({low} to {high})"


def tell_hinges(ranking: RankingTable) -> str:
    """The data sets that the verdict of the leader hangs on; empty if on none."""
    found = _find_leader(ranking)
    hinges = dict.fromkeys(name for pair in (found[1].values() if found else ()) for name in pair.hinges)
    if not hinges:
        return ""
    return f"It hangs on {join_words(hinges, most=_NAMED)}: without one of them another answer would be given"


def compare_kinds(tables: Sequence[ReportTable], audits: Mapping[str, DataAudit], *, alpha: float) -> PlainTable | None:
    """Who has the best average rank on which kind of data; None with too few data sets of any."""
    kinds: dict[str, list[ReportTable]] = {}
    for table in tables:
        audit = audits.get(table.keys["dataset"])
        for kind in (table.keys.get("task", ""), *(_kinds_of(audit) if audit is not None else ())):
            kinds.setdefault(kind, []).append(table)
    rows = []
    for kind, members in kinds.items():
        rankings = rank_over_datasets(members, alpha=alpha) if len(members) < len(tables) else ()
        if len(members) >= _LEAST_OF_KIND and len(rankings) == 1:
            ranks = ", ".join(f"{name} {rank:.1f}" for name, rank in rankings[0].ranks)
            rows.append((kind, rankings[0].n, ranks))
    headings = ("Kind of data", "Data sets", "Average ranks, the best first")
    return PlainTable("Average ranks by kind of data, descriptive", headings, tuple(rows)) if rows else None


def _kinds_of(audit: DataAudit) -> Iterator[str]:
    size = f"below {_SMALL} rows" if audit.rows < _SMALL else f"{_LARGE} rows and more" if audit.rows >= _LARGE else ""
    yield size or f"{_SMALL} to {_LARGE} rows"
    if audit.n_columns >= _WIDE:
        yield f"{_WIDE} columns and more"
    roles = {column.role for column in audit.columns if column.used}
    yield "with categories" if "categorical" in roles else "without categories"
    if any(finding.kind == "missing" for finding in audit.findings):
        yield "with missing values"
