"""The answer of a table in four lines: which library, how sure, what it costs, and what to run next.

It says what the verdicts say: nothing is computed here but what more splits would show.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from boosters_eval.core.text import count_of, group_digits, join_words, lower_initial
from boosters_eval.programs.benchmark.tables.verdicts import find_deciding
from boosters_eval.reports.numbers import name_error, number, percent
from boosters_eval.stats.sequential import detectable_with

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from boosters_eval.reports.tables import Column, ReportTable
    from boosters_eval.stats.significance import Comparison
    from boosters_eval.stats.tables import ComparisonTable

WHICH, SURE, BUT, COST, NEXT = "Which", "How sure", "But", "Cost", "Next"  # what each line of an answer tells
_LISTED = 5  # names; further ones are only counted
_LEAST_SHARE = 5e-5  # below which a share would be written as 0
_LITTLE = 0.3  # of the error: splits that show nothing smaller show little, which is told in other words
_COUNTS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
# How much less error a model must have where little can be shown.
_FRACTIONS = {2 / 3: "two thirds of", 1 / 2: "half", 1 / 3: "a third of", 1 / 4: "a quarter of", 1 / 10: "a tenth of"}


@dataclass(frozen=True)
class MoreSplits:
    """How a run could have more splits."""

    overlap: float  # n_test / n_train of the corrected test, 0 of others
    folds: int = 0  # of each repeat; 0: each seed is one split


@dataclass(frozen=True)
class TableAnswer:
    """What a table says, as parts of its lines, and what was found on the way to them."""

    which: str
    sure: str = ""
    cost: str = ""
    suspicion: str = ""  # why the scores cannot be trusted
    rest: tuple[str, ...] = ()  # who failed or did not take part, and what else belongs to it
    doubts: tuple[str, ...] = ()  # what else changes the answer
    contest: Contest | None = None

    @property
    def winner(self) -> str | None:
        contest = self.contest
        return contest.leader if contest is not None and contest.won and not contest.lost else None

    @property
    def whole(self) -> str:
        """Which library, with all that changes it."""
        warning = f"do not trust this yet, the data are suspect: {self.suspicion}. As it stands: "
        start = warning if self.suspicion else ""
        return f"{start}{'; '.join([self.which, *self.rest])}."

    @property
    def lines(self) -> tuple[str, ...]:
        sure = "; ".join(filter(None, (self.sure, *self.doubts)))
        found = {WHICH: self.whole, SURE: f"{sure}." if sure else "", COST: self.cost}
        return tuple(f"{label}: {text}" for label, text in found.items() if text)


@dataclass(frozen=True)
class Contest:
    """The leader of the column that decides, against each of the others, as the verdicts have it."""

    column: Column
    found: ComparisonTable
    rows: int | None = None  # that a split tests
    more: MoreSplits | None = None  # None: more seeds are not more splits
    unbeaten: Mapping[str, str] = field(default_factory=dict)  # by row that is not better than it: the trivial rule

    @cached_property
    def leader(self) -> str:
        return self.found.leader or ""

    @cached_property
    def pairs(self) -> dict[str, Comparison]:
        """The leader against each other row."""
        return {name: self.found.ruled(self.leader, name) for name in self.found.summaries if name != self.leader}

    def _with(self, *verdicts: str) -> list[str]:
        return [name for name, pair in self.pairs.items() if pair.n and pair.verdict in verdicts]

    @property
    def level(self) -> list[str]:
        """Shown to be as good as the leader."""
        return self._with("equivalent")

    @property
    def open(self) -> list[str]:
        """Neither shown to be as good nor to be worse."""
        return self._with("inconclusive")

    @property
    def behind(self) -> list[str]:
        return self._with("better")

    @property
    def ahead(self) -> list[str]:
        """Better on the splits that both have: where some are missing, three rows may beat each other."""
        return self._with("worse")

    @property
    def apart(self) -> list[str]:
        return [name for name, pair in self.pairs.items() if not pair.n]

    @property
    def won(self) -> bool:
        return self.found.winner is not None

    @property
    def lost(self) -> bool:
        """Whether the leader is no better than what takes no skill."""
        return self.leader in self.unbeaten

    @property
    def single(self) -> bool:
        return max((pair.n for pair in self.pairs.values()), default=0) == 1

    @property
    def chosen(self) -> list[str]:
        """Whom a reader may take."""
        return [self.leader, *self.level]

    @property
    def what(self) -> str:
        return lower_initial(self.column.quantity or self.column.label)

    @property
    def _error(self) -> str:
        """What percentages are of: the metric, or what it lacks."""
        return name_error(self.column.label, self.column.best) or self.what

    def splits(self, names: Collection[str] = ()) -> str:
        """The evidence: "5 splits of 114 rows"."""
        counts = [self.pairs[name].n for name in names or self.pairs]
        low, high = min(counts), max(counts)
        text = count_of(high, "split") if low == high else f"{low} to {high} splits"
        return text if self.rows is None else f"{text} of {group_digits(self.rows)} rows"

    def name_which(self) -> str:
        if self.lost:
            return self._tell_lost()
        if self.won:
            other, pair = self._nearest()
            more = len(self.pairs) > 1
            text = f"{self.leader} is {'best' if more else f'better than {other}'}: {' '.join(self._lead(pair))}"
            return f"{text} than {other}, the next" if more else text
        if self.apart and len(self.apart) == len(self.pairs):
            return f"cannot say: no two have a {self.what} that can be compared"
        parts = [self._tell_level()] if self.level else []
        parts += [self._tell_open()] if self.open or not self.level else []
        parts += [f"{_name(self.behind)} {_are(self.behind)} worse"] if self.behind else []
        parts += [f"{_name(self.apart)} cannot be compared with {self.leader}"] if self.apart else []
        return "; ".join(parts)

    def _tell_lost(self) -> str:
        """A leader that is no better than a rule that takes no skill has won nothing."""
        rule, ours = self.unbeaten[self.leader], number(self.found.summaries[self.leader].mean)
        if all(name in self.unbeaten for name in self.pairs):
            return f"none: nothing is better than {rule}; {self.leader} comes nearest, with {self.what} {ours}"
        return f"{self.leader} has the best {self.what} ({ours}), but is not better than {rule}"

    def _tell_level(self) -> str:
        names = self.chosen
        count = _COUNTS[len(names)] if len(names) < len(_COUNTS) else len(names)
        which = f"{'either' if count == 'two' else 'any'} of these {count}: {_name(names)}"
        gap = self._widest(names)
        if gap is None or gap == 0:
            return f"{which}; they have the same {self.what}"
        return f"{which}; no difference above {_size(gap)} in {self._error} is plausible"

    def _tell_open(self) -> str:
        """What is not known, and how far apart the rows may be."""
        names, start = self.open, "about " if self.level else ""
        about = f" {start}{_name(names)}" if start else ""
        lead = "" if self.level else f"{self.leader} leads, but "
        if self.single:
            return f"cannot say{about} with a single split: {self.leader} has the best {self.what}"
        if not names:
            return f"cannot say: {lead}{_name(self.ahead)} {_are(self.ahead)} better on the splits that both have"
        gap, least = self._widest([self.leader, *names], of_leader=True), self.detectable(names)
        if gap is None or least is None:
            return f"cannot say{about} with {self.splits(names)}: {self.leader} leads{self._reason(names)}"
        if least >= _LITTLE:
            leads = "" if self.level else f" ({self.leader} leads)"
            return f"cannot say{about}: {self.splits(names)} {_tell_little(least)}{leads}"
        to = "" if self.level else f" to {_name(names, 'or')}"
        splits = self.splits(names).partition(" of ")[0]
        return f"cannot say{about} with {splits}: {lead}a gap of up to {_size(gap)} in {self._error}{to} is possible"

    def tell_sure(self) -> str:
        sure = f"{100 * (1 - self.found.alpha):g} % sure"
        if self.lost and not self.won:
            return f"as measured on {self.splits()}"
        if self.won:
            other, pair = self._nearest()
            return f"{sure}, by {self.splits()}{self._between(other, pair)}"
        if self.open and not self.single:
            if self.level:
                return f"{sure} that these are as good, not sure of the others"
            known = f"; {sure} that the others are worse" if self.behind else ""
            return f"not sure: the lead may be chance{known}"
        if self.single:
            return "not sure: one split cannot tell a lead from chance"
        return f"{sure}, by {self.splits()}" if self.level else ""

    def _between(self, other: str, pair: Comparison) -> str:
        bounds, turn = pair.percent_interval, 1 if self.column.higher_is_better else -1
        if bounds is None or self._size(pair) is None:
            return ""
        low, high = sorted(turn * bound / 100 for bound in bounds)
        high = high if self.column.higher_is_better and not self.column.best else min(high, 1.0)
        return f"; the lead over {other} is {_share(max(low, 0.0))} to {_share(high)}"

    def _nearest(self) -> tuple[str, Comparison]:
        return min(self.pairs.items(), key=lambda item: abs(item[1].difference or 0.0))

    def _lead(self, pair: Comparison) -> tuple[str, str]:
        """What is how much higher or lower."""
        size = self._size(pair)
        if size is not None and self._error != self.what:
            return self._error, f"{_share(size)} lower"
        word = "higher" if self.column.higher_is_better else "lower"
        return self.what, f"{number(abs(pair.difference or 0.0), 2) if size is None else _share(size)} {word}"

    @staticmethod
    def _size(pair: Comparison) -> float | None:
        """How far the leader is from another row, as a share of that row's error; None if their signs differ."""
        if pair.difference == 0:
            return 0.0
        if pair.percent is None or (pair.ratio is None and _scale(pair) is None):
            return None
        return abs(pair.percent) / 100

    def _widest(self, names: Sequence[str], *, of_leader: bool = False) -> float | str | None:
        """The largest gap between rows that their intervals leave, as a share of the larger error, or as a number."""
        found = [
            self.found.get(a, b)
            for place, a in enumerate(names)
            for b in names[place + 1 :]
            if not of_leader or a == self.leader
        ]
        gaps, sizes = [], []
        for pair in found:
            if pair.interval is None:
                return None
            low, high = pair.interval
            sizes.append(max(abs(low), abs(high)))
            scale = _scale(pair)
            if pair.ratio is not None:
                gaps.append(max(1 - low, 1 - 1 / high))
            elif scale is not None:
                gaps.append(sizes[-1] / scale if scale else 0.0)
        if len(gaps) < len(found):
            return number(max(sizes), 2)
        return max(gaps)

    def detectable(self, names: Sequence[str], splits: int | None = None) -> float | None:
        """The gap that one of the pairs needs to be shown, as a share of the larger error, now or with more splits."""
        found = []
        for name in names:
            pair = self.pairs[name]
            shown, scale = self._shown(pair, splits), _scale(pair)
            if shown is None or (pair.ratio is None and not scale):
                return None
            found.append(shown / (1 + shown) if pair.ratio is not None else shown / (scale or 1.0))
        return max(found)

    def _shown(self, pair: Comparison, splits: int | None) -> float | None:
        shown = pair.min_detectable
        if shown is None or splits is None:
            return shown
        if pair.evidence is not None:
            return shown * pair.evidence.error_with(splits) / pair.evidence.error
        if self.more is None:
            return None
        tests = sum(other.p_value is not None for other in self.found.pairs.values())
        size = shown if pair.ratio is None else math.log1p(shown)
        size = detectable_with(splits, size, pair.n, level=pair.alpha / max(tests, 1), overlap=self.more.overlap)
        return size if pair.ratio is None else math.expm1(size)

    def chance_with(self, splits: int) -> str:
        """Whether so many splits would probably, or might, show one of the leads that are open; empty if neither.

        What is detected in four of five runs is probable; a gap of half that size is found in about one of three.
        """
        best = 0.0
        for name in self.open:
            least, size = self.detectable([name], splits), self._size(self.pairs[name])
            if least and size is not None:
                best = max(best, size / least)
        return "would probably" if best >= 1 else "might" if 2 * best >= 1 else ""

    @property
    def is_complete(self) -> bool:
        """Whether the open pairs have all splits of both rows: otherwise more splits are not what is lacking."""
        counts = {name: summary.n for name, summary in self.found.summaries.items()}
        return all(self.pairs[name].n >= min(counts[name], counts[self.leader]) for name in self.open)

    def _reason(self, names: Sequence[str]) -> str:
        """Why there is no interval; that so few splits cannot decide is told without their p-value."""
        notes = {self.pairs[name].note for name in names}
        note = notes.pop() if len(notes) == 1 else ""
        if "p-value" in note:
            note = "so few splits cannot decide"
        return f" ({lower_initial(note.rstrip('.')).replace('. ', '; ')})" if note else ""


def answer_table(
    table: ReportTable,
    contest: Contest | None,
    *,
    unbeaten: Mapping[str, str],
    failures: Mapping[str, str],
    cost: str = "",
    suspicion: str = "",
    doubts: Sequence[str] = (),
) -> TableAnswer:
    """The answer. `contest` is that of the column that decides, if at least two rows are judged by it.

    `unbeaten` names, for each row that is not better than it, the trivial rule in the column that decides; `failures`
    tells for each row that failed why.
    """
    lost: dict[str, list[str]] = {}
    if contest is None or not contest.lost:
        for name, rule in unbeaten.items():
            lost.setdefault(rule, []).append(name)
    remarks = [f"{_name(names)} {_are(names)} not better than {rule}" for rule, names in lost.items()]
    which = contest.name_which() if contest is not None else _tell_nothing(table, failures)
    sure = contest.tell_sure() if contest is not None else ""
    return TableAnswer(which, sure, cost, suspicion, (*remarks, *_absences(table, failures)), tuple(doubts), contest)


def _tell_nothing(table: ReportTable, failures: Mapping[str, str]) -> str:
    """Why there is nothing to choose from."""
    finished = [row for row in table.rows if row.n]
    if not finished:
        why = next(iter(failures.values()), "")
        return f"no answer: every cell failed{f' ({why})' if why else ''}" if failures else "no answer: no result"
    column = find_deciding(table.columns)
    if column is None:
        unknown = [one.label for one in table.columns if one.higher_is_better is None]
        why = f"whether a higher or a lower {unknown[0]} is better is not known here" if unknown else ""
        return f"no answer: {why or next((one.caveat for one in table.columns if one.caveat), 'nothing was measured')}"
    position = table.columns.index(column)
    scored = [(row, row.cells[position]) for row in finished if row.cells[position].mean is not None]
    if not scored:
        return f"no answer: no {lower_initial(column.label)} was measured"
    if len(scored) > 1:
        return f"no answer in {lower_initial(column.quantity or column.label)}: no split was run on one machine by all"
    row, cell = scored[0]
    known = f"{column.label} {cell.text} on {count_of(cell.n, 'split')}"
    return f"only {row.label} has results, so there is nothing to compare: {known}"


def _absences(table: ReportTable, failures: Mapping[str, str]) -> Iterator[str]:
    """Whoever failed or did not take part: an answer about the others must say so."""
    finished = any(row.n for row in table.rows)
    for row in table.rows:
        if row.failed and finished:
            total = row.failed + (row.n or 0)
            said = (
                f"{row.failed} of {total} cells of {row.label} failed" if row.n else f"{row.label} failed in every cell"
            )
            yield f"{said} ({failures[row.label]})" if row.label in failures else said
    for status in ("unsupported", "unavailable"):
        names = [row.label for row in table.rows if row.cells and all(cell.status == status for cell in row.cells)]
        if names:
            yield f"{_name(names)} {_are(names)} {status}"


def _scale(pair: Comparison) -> float | None:
    """The larger of both errors; None where they have no common sign, as a gain and a loss."""
    if pair.mean_a is None or pair.mean_b is None:
        return None
    errors = pair.mean_a - pair.best, pair.mean_b - pair.best
    return None if errors[0] * errors[1] < 0 else max(map(abs, errors))


def _tell_little(least: float) -> str:
    """What can be shown where it is little; a gap beyond the whole error cannot be shown at all."""
    left = 1 - least
    if left < min(_FRACTIONS) / 2:
        return "can hardly separate any two models"
    nearest = min(_FRACTIONS, key=lambda fraction: abs(math.log(left / fraction)))
    return f"can only separate models when one has about {_FRACTIONS[nearest]} the error of the other"


def _share(share: float) -> str:
    return "0.01 %" if 0 < share < _LEAST_SHARE else percent(share, sign=False)


def _size(gap: float | str) -> str:
    return gap if isinstance(gap, str) else _share(gap)


def _are(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _name(names: Sequence[str], conjunction: str = "and") -> str:
    return join_words(names, conjunction, most=_LISTED)
