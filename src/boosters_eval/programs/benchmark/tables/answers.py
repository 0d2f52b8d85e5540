"""The answer of a table in one sentence: who is best, by how much, on how many splits, and what to do next.

It says what the verdicts say: nothing is computed here but what more splits would show.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from boosters_eval.core.terms import given
from boosters_eval.core.text import count_of, join_words, lower_initial
from boosters_eval.programs.benchmark.tables.verdicts import Judgment, find_deciding, find_scale
from boosters_eval.reports.numbers import name_error, number, percent
from boosters_eval.stats.sequential import detectable_with

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from boosters_eval.reports.tables import Column, PairVerdict, ReportTable
    from boosters_eval.stats.rows import RowTest

_LADDER = (5, 10, 20, 50, 100)  # numbers of seeds to advise; hardly anybody would wait for more
# What is detected in four of five runs; a gap of half that size in about one of three.
_CHANCES = {1.0: "would probably", 0.5: "might"}
_LISTED = 4  # names; further ones are only counted
_LEAST_SHARE = 5e-5  # below which a share would be written as 0


@dataclass(frozen=True)
class MoreSplits:
    """How a run could have more splits."""

    overlap: float  # n_test / n_train of the corrected test, 0 of others
    folds: int = 0  # of each repeat; 0: each seed is one split
    option: bool = True  # whether it is known that the command takes seeds

    def said(self, seeds: int) -> str:
        """The parameter that asks for so many seeds, or their number in words."""
        if not self.option:
            return count_of(seeds, "seed")
        return given("cv", f"{self.folds}x{seeds}") if self.folds else given("seeds", seeds)

    def ladder(self, n: int) -> dict[int, int]:
        """The numbers of seeds to try after `n` splits, each with the splits that it gives."""
        splits = {seeds: max(self.folds, 1) * seeds for seeds in _LADDER}
        return {seeds: count for seeds, count in splits.items() if count > n}


def write_answer(
    table: ReportTable,
    judged: Mapping[str, Judgment],
    *,
    more: MoreSplits | None = None,
    unbeaten: Mapping[str, str] | None = None,
    remarks: Sequence[str] = (),
) -> str:
    """The sentence. `judged` has the judgment of each column, `remarks` what else a reader must know.

    `unbeaten` names, for each row that is not better than it, the trivial rule in the column that decides.
    """
    column, rules = find_deciding(table.columns), unbeaten or {}
    lead = _lead(table, column, judged, more, rules)
    extra = (*_absences(table), *_fastest(table, column, judged), *remarks)
    lost: dict[str, list[str]] = {}
    for name, rule in rules.items():
        if rule not in lead:
            lost.setdefault(rule, []).append(name)
    told = [f"{_name_some(names)} {_are(names)} not better than {rule}" for rule, names in lost.items()]
    return "; ".join([lead, *told, *extra]) + "."


def _lead(
    table: ReportTable,
    column: Column | None,
    judged: Mapping[str, Judgment],
    more: MoreSplits | None,
    unbeaten: Mapping[str, str],
) -> str:
    finished = [row for row in table.rows if row.n]
    if not finished:
        return "No result: every cell failed" if any(row.failed for row in table.rows) else "No result"
    if column is None:
        return f"No verdict: {_unjudged(table)}"
    decided = judged.get(column.name, Judgment())
    if decided.tied:
        return _Contest.of(table, column, decided, more, unbeaten).said(won=bool(decided.winners))
    position = table.columns.index(column)
    scored = [(row, row.cells[position]) for row in finished if row.cells[position].mean is not None]
    if not scored:
        return f"No verdict: no {lower_initial(column.label)} was measured"
    if len(scored) > 1:
        return f"No verdict on {lower_initial(column.quantity or column.label)}: no split was run on one machine by all"
    row, cell = scored[0]
    known = f"{column.label} {cell.text} on {_splits([cell.n])}"
    return f"Only {row.label} has results, so there is nothing to compare: {known}"


def _unjudged(table: ReportTable) -> str:
    unknown = [column.label for column in table.columns if column.higher_is_better is None]
    if unknown:
        return f"whether a higher or a lower {unknown[0]} is better is not known here"
    return next((column.caveat for column in table.columns if column.caveat), "nothing was measured")


def _absences(table: ReportTable) -> Iterator[str]:
    """Whoever failed or did not take part: an answer about the others must say so."""
    finished = any(row.n for row in table.rows)
    for row in table.rows:
        if row.failed and finished:
            total = row.failed + (row.n or 0)
            yield (
                f"{row.failed} of {total} cells of {row.label} failed" if row.n else f"{row.label} failed in every cell"
            )
    for status in ("unsupported", "unavailable"):
        names = [row.label for row in table.rows if row.cells and all(cell.status == status for cell in row.cells)]
        if names:
            yield f"{_name_some(names)} {_are(names)} {status}"


def _fastest(table: ReportTable, deciding: Column | None, judged: Mapping[str, Judgment]) -> Iterator[str]:
    """Who costs least, if that was judged and is not the question itself."""
    for column in table.columns:
        decided = judged.get(column.name)
        if column.cost and column is not deciding and decided and decided.winners:
            yield f"{decided.tied[0]} has the lowest {lower_initial(column.quantity or column.label)}"


@dataclass(frozen=True)
class _Contest:
    """The leader of a column against the others, as the verdicts have it."""

    table: ReportTable
    column: Column
    leader: str
    pairs: dict[str, PairVerdict]  # of the leader, by the other row
    tied: tuple[str, ...]  # the others that were not shown to be worse
    tests: Mapping[tuple[str, str], RowTest]
    more: MoreSplits | None
    unbeaten: Mapping[str, str]

    @classmethod
    def of(
        cls,
        table: ReportTable,
        column: Column,
        decided: Judgment,
        more: MoreSplits | None,
        unbeaten: Mapping[str, str],
    ) -> _Contest:
        leader, *tied = decided.tied
        pairs = [pair for pair in table.pairs if pair.metric == column.name and leader in (pair.a, pair.b)]
        others = {(pair.b if pair.a == leader else pair.a): pair for pair in pairs}
        return cls(table, column, leader, others, tuple(tied), decided.tests, more, unbeaten)

    @property
    def what(self) -> str:
        return lower_initial(self.column.quantity or self.column.label)

    def said(self, *, won: bool) -> str:
        if lost := self._lost():
            return lost
        if won:
            return self._won()
        return self._single() if max(pair.n for pair in self.pairs.values()) == 1 else self._open()

    def _lost(self) -> str:
        """The leader, if it is no better than a rule that takes no skill: then it has won nothing."""
        rule = self.unbeaten.get(self.leader)
        if rule is None:
            return ""
        position = self.table.columns.index(self.column)
        ours = next((row.cells[position].text for row in self.table.rows if row.label == self.leader), "")
        if all(name in self.unbeaten for name in self.pairs):
            return f"Nothing is better than {rule}: {self.leader} comes nearest, with {self.what} {ours}"
        return f"{self.leader} has the best {self.what} ({ours}), but is not better than {rule}"

    def _won(self) -> str:
        other, pair = self._nearest()
        lead = " ".join(self._apart(other, pair))
        on = _splits([pair.n for pair in self.pairs.values()])
        if len(self.pairs) == 1:
            text = f"{self.leader} is better than {other}: {lead} on {on}"
        else:
            text = f"{self.leader} is best: {lead} than {other}, the next, on {on}"
        risk = (
            "" if pair.alpha is None else f", a lead that chance alone gives in at most {100 * pair.alpha:g} % of cases"
        )
        return text + risk

    def _single(self) -> str:
        other, pair = self._nearest()
        text = f"No clear winner on a single split: {self.leader} has the best {self.what}"
        if pair.difference:
            what, lead = self._apart(other, pair)
            text += f", {'' if what == self.what else f'with {what} '}{lead} than {other}, which may be chance"
        alone = self.more is not None and not any((row.n or 0) > 1 for row in self.table.rows)
        return f"{text}; {self.more.said(5)} would tell more" if self.more and alone else text

    def _open(self) -> str:
        """Nobody is better than all others: some are equivalent to the leader, or cannot be told apart from it."""
        alike = [name for name in self.tied if self.pairs[name].verdict == "equivalent"]
        refused = [name for name in self.tied if not self.pairs[name].n]
        ahead = [name for name in self.tied if self._is_ahead(name)]
        unclear = [name for name in self.tied if name not in (*alike, *refused, *ahead)]
        beaten = [name for name in self.pairs if name not in self.tied]
        if len(refused) == len(self.pairs):
            return f"No clear winner in {self.what}: no two can be compared (see the notes)"
        if alike and not unclear and not ahead:
            text = self._level(alike)
        else:
            text = f"No clear winner in {self.what}: {self.leader} leads"
            text += self._doubt(unclear) if unclear else ""
            text += f", but {_name_some(ahead)} {_are(ahead)} better on the splits that both have" if ahead else ""
            text += f"; {_name_some(alike)} {_are(alike)} as good as {self.leader} in practice" if alike else ""
        text += f"; {self.leader} is better than {_name_some(beaten)}" if beaten else ""
        return text + (f"; {_name_some(refused)} cannot be compared with {self.leader}" if refused else "")

    def _level(self, alike: Sequence[str]) -> str:
        """The leader and its equals: nobody is best where all scores are the same."""
        on = _splits([self.pairs[name].n for name in alike])
        if all(self.pairs[name].difference == 0 for name in alike):
            return f"{_name_some([self.leader, *alike])} have the same {self.what} on {on}"
        equals = f"{_name_some(alike)} {_are(alike)} as good in practice"
        margin = self.pairs[alike[0]].margin
        within = f"{margin}{self.column.of_error}" if margin.endswith("%") else margin
        return f"{self.leader} has the best {self.what}, but {equals}: within {within} on {on}"

    def _is_ahead(self, other: str) -> bool:
        """Whether another row was shown to be better: where splits are missing, three rows may beat each other."""
        pair = self.pairs[other]
        return pair.verdict == ("better" if pair.a == other else "worse")

    def _doubt(self, names: Sequence[str]) -> str:
        """How small the lead is, what the splits can detect, and whether more of them would settle it."""
        pairs = [self.pairs[name] for name in names]
        sizes = [size for name in names if (size := self._size(name, self.pairs[name])) is not None]
        known = len(sizes) == len(names)
        text = f" {_name_some(names)}{f' by {_range(sizes)}{self.column.of_error}' if known else ''}"
        splits, now = _splits([pair.n for pair in pairs]), self._detectable(pairs)
        if now is None:
            return f"{text}, which {splits} cannot settle{self._reason(pairs)}{self._advice(pairs, [])}"
        limit = f"can only detect gaps above about {_share(now)}" if now < 1 else "are far too few to detect such gaps"
        return f"{text}, which may be chance: {splits} {limit}{self._advice(pairs, sizes if known else [])}"

    @staticmethod
    def _reason(pairs: Sequence[PairVerdict]) -> str:
        notes = {pair.note for pair in pairs}
        note = notes.pop() if len(notes) == 1 else ""
        return f" ({lower_initial(note.rstrip('.')).replace('. ', '; ')})" if note else ""

    def _advice(self, pairs: Sequence[PairVerdict], gaps: Sequence[float]) -> str:
        """How many seeds would detect one of the gaps; nothing where more seeds are not more splits."""
        results = {row.label: row.n or 0 for row in self.table.rows}
        if self.more is None or any(pair.n < min(results.get(pair.a, 0), results.get(pair.b, 0)) for pair in pairs):
            return ""
        ladder = self.more.ladder(max(pair.n for pair in pairs))
        if not gaps:
            return f"; {self.more.said(min(ladder))} would tell more" if ladder else ""
        what = "decide it" if len(pairs) == 1 else "tell some of them apart"
        shown = {seeds: [self._detectable([pair], splits) for pair in pairs] for seeds, splits in ladder.items()}
        for share, chance in _CHANCES.items():
            for seeds, found in shown.items():
                if any(then is not None and share * then <= gap for then, gap in zip(found, gaps, strict=True)):
                    return f"; {self.more.said(seeds)} {chance} {what}"
        return ", and probably no practical number of seeds would confirm this lead; more data might"

    def _detectable(self, pairs: Sequence[PairVerdict], splits: int | None = None) -> float | None:
        """The largest difference, as a share, that any of the pairs needs to be shown, now or with so many splits."""
        tests = [pair for pair in self.table.pairs if pair.metric == self.column.name and pair.p is not None]
        found = []
        for pair in pairs:
            shown, scale = pair.detectable, find_scale(pair)
            if shown is None or not scale or pair.alpha is None:
                return None
            test = self.tests.get((pair.a, pair.b))
            if splits is not None and test is not None:
                shown *= test.error_with(splits) / test.error
            elif splits is not None and self.more is not None:
                level = pair.alpha / len(tests)  # which the pairs of a column share
                size = shown if pair.ratio is None else math.log1p(shown)
                size = detectable_with(splits, size, pair.n, level=level, overlap=self.more.overlap)
                shown = size if pair.ratio is None else math.expm1(size)
            found.append(shown if pair.ratio is not None else shown / scale)
        return max(found)

    def _nearest(self) -> tuple[str, PairVerdict]:
        return min(
            self.pairs.items(), key=lambda item: math.inf if item[1].difference is None else abs(item[1].difference)
        )

    def _size(self, other: str, pair: PairVerdict) -> float | None:
        """How far the leader is from another row, as a share of that row's error."""
        if pair.ratio is not None:
            return abs((pair.ratio if pair.a == self.leader else 1 / pair.ratio) - 1)
        scale = find_scale(pair)
        if pair.difference is None or scale is None:
            return 0.0 if pair.difference == 0 else None
        ours, theirs = (self._mean(name) - self.column.best for name in (self.leader, other))
        if ours * theirs < 0:  # a gain of 0.2 is not "119 % higher" than one of -1.1
            return None
        if pair.b != other:  # the percentages of a pair refer to b
            scale = abs((-scale if ours < 0 else scale) + pair.difference)
        return abs(pair.difference) / scale if scale else None

    def _mean(self, name: str) -> float:
        position = self.table.columns.index(self.column)
        return next((row.cells[position].mean or 0.0 for row in self.table.rows if row.label == name), 0.0)

    def _apart(self, other: str, pair: PairVerdict) -> tuple[str, str]:
        """What is how much higher or lower; of a metric that is best at 1, a share is of what is lacking."""
        size, error = self._size(other, pair), name_error(self.column.label, self.column.best)
        if size is not None and error:
            return error, f"{_share(size)} lower"
        word = "higher" if self.column.higher_is_better else "lower"
        return self.what, f"{number(abs(pair.difference or 0.0), 2) if size is None else _share(size)} {word}"


def _share(share: float) -> str:
    return "less than 0.01 %" if 0 < share < _LEAST_SHARE else percent(share, sign=False)


def _range(shares: Collection[float]) -> str:
    low, high = _share(min(shares)), _share(max(shares))
    return low if low == high else f"{low} to {high}"


def _splits(counts: Collection[int]) -> str:
    low, high = min(counts), max(counts)
    return count_of(high, "split") if low == high else f"{low} to {high} splits"


def _are(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _name_some(names: Sequence[str]) -> str:
    return join_words(names, most=_LISTED)
