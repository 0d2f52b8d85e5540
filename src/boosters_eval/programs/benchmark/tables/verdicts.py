"""The verdicts of the statistics on a column, in the table model's terms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from boosters_eval.programs.benchmark.comparisons import compare_rows, value_of
from boosters_eval.programs.benchmark.margins import Margin
from boosters_eval.programs.benchmark.tables.contenders import group_by_name
from boosters_eval.reports.numbers import number, percent
from boosters_eval.reports.tables import PairVerdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boosters_eval.programs.benchmark.margins import Margins
    from boosters_eval.programs.benchmark.tables.contenders import Contender
    from boosters_eval.reports.tables import Column
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
