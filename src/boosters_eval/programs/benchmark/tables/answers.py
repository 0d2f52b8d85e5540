"""The answer of a table in four lines: which library, how sure, what it costs, and what to run next.

It says what the verdicts say: nothing is computed here but what more splits would show.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from boosters_eval.core.text import count_of, format_share, group_digits, join_words, lower_initial
from boosters_eval.programs.benchmark.tables.verdicts import find_deciding, tell_margin
from boosters_eval.reports.numbers import number
from boosters_eval.stats.sequential import detectable_with

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from boosters_eval.reports.tables import Column, ReportTable
    from boosters_eval.stats.significance import Comparison
    from boosters_eval.stats.tables import ComparisonTable

WHICH, SURE, BUT, COST, NEXT = "Which", "How sure", "But", "Cost", "Next"  # what each line of an answer tells
BY_DATASET = "By data set"  # of several, whose first line is about all of them together
OUTWEIGHED = "one target outweighs the others"  # a kind of doubt
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
class Doubt:
    """What else changes an answer: a sentence, and the few words that tables of a run are counted by."""

    text: str
    kind: str


@dataclass(frozen=True)
class TableAnswer:
    """What a table says, as parts of its lines, and what was found on the way to them."""

    which: str
    sure: str = ""
    cost: str = ""
    suspicion: str = ""  # why the scores cannot be trusted
    rest: tuple[str, ...] = ()  # who failed or did not take part, and what else belongs to it: a sentence each
    doubts: tuple[Doubt, ...] = ()
    contest: Contest | None = None

    @property
    def winner(self) -> str | None:
        contest = self.contest
        return contest.leader if contest is not None and contest.won and not contest.lost else None

    @property
    def whole(self) -> str:
        """Which library, with all that changes it, in sentences. Of suspect data, rows tell what they seem to show."""
        which = f"no answer yet. The data are suspect: {self.suspicion}" if self.suspicion else self.which
        return f"{'. '.join([which, *self.rest])}."

    @property
    def confidence(self) -> str:
        """How sure that is, and what else there is to doubt, in sentences. Nothing is sure of suspect data."""
        if self.suspicion:
            return "not sure: once the data are fixed, the order may change."
        parts = [*filter(None, [self.sure]), *(doubt.text for doubt in self.doubts)]
        return f"{'. '.join(parts)}." if parts else ""

    @property
    def lines(self) -> tuple[str, ...]:
        found = {WHICH: self.whole, SURE: self.confidence, COST: self.cost}
        return tuple(f"{label}: {text}" for label, text in found.items() if text)


@dataclass(frozen=True)
class Contest:
    """The leader of the column that decides, against each of the others, as the verdicts have it."""

    column: Column
    found: ComparisonTable
    sizes: tuple[int, ...] = ()  # the rows that each split tests
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
        return lower_initial(self.column.error)

    def splits(self, names: Collection[str] = ()) -> str:
        """The evidence: "5 splits of 114 test rows"."""
        counts = [self.pairs[name].n for name in names or self.pairs]
        low, high = min(counts), max(counts)
        text = count_of(high, "split") if low == high else f"{low} to {high} splits"
        if not self.sizes:
            return text
        fewest, most = min(self.sizes), max(self.sizes)  # folds that differ by one row are of one size
        start = f"{group_digits(fewest)} to " if most - fewest > 1 else ""
        return f"{text} of {start}{group_digits(most)} test rows"

    def name_which(self) -> str:
        if self.lost:
            return self._tell_lost()
        if self.won:
            other, pair = self._nearest()
            what, lead = self._lead(pair)
            if len(self.pairs) == 1:
                return f"{self.leader} is better than {other}. Its {what} is {lead}"
            return f"{self.leader} is best. Its {what} is {lead} than that of {other}, the next"
        if self.apart and len(self.apart) == len(self.pairs):
            return f"cannot say: no two have a value of {self.what} that can be compared"
        parts = [self._tell_level()] if self.level else []
        parts += [self._tell_open()] if self.open or not self.level else []
        parts += [f"Worse than {self.leader}: {_name(self.behind)}"] if self.behind else []
        parts += [f"Not comparable with {self.leader}: {_name(self.apart)}"] if self.apart else []
        return ". ".join(parts)

    def _tell_lost(self) -> str:
        """A leader that is no better than a rule that takes no skill has won nothing."""
        rule, ours = self.unbeaten[self.leader], number(self.found.summaries[self.leader].mean)
        if all(name in self.unbeaten for name in self.pairs):
            return f"none. Nothing is better than {rule}: {self.leader} comes nearest, with {self.what} {ours}"
        return f"{self.leader} has the best {self.what} ({ours}), but is not better than {rule}"

    def _tell_level(self) -> str:
        names = self.chosen
        which = f"{'either' if len(names) == 2 else 'any'} of these {_count(names)}: {_name(names)}"
        gap, is_share = self._widest(names)
        if not gap:
            same = all(
                self.pairs[name].note.startswith("Identical predictions") for name in names if name in self.pairs
            )
            return f"{which}. Their predictions are identical" if same else f"{which}. They have the same {self.what}"
        pair = self.pairs[names[1]]
        size = _tell_below(gap, pair.rope if pair.margin is None else pair.margin, is_share=is_share)
        equal = f"less than {tell_margin(pair)} counts as equal"
        return f"{which}. No difference above {size} in {self._error} is plausible ({equal})"

    def _tell_open(self) -> str:
        """What is not known, and how far from the leader the rows may be."""
        names = self.open
        start = f"Cannot say about {_name(names)}" if self.level else "cannot say"
        leads = "" if self.level else f"{self.leader} has the best mean {self.what}, but "
        if self.single:
            return f"{start} from a single split: {self.leader} has the best {self.what}"
        if not names:
            return f"{start}: {leads}{_name(self.ahead)} {tell_be(self.ahead)} better on the splits that both have"
        known = {name: each for name in names if (each := self.bounds(name)) is not None}
        shown = [size for name in names if (size := self.detectable(name)) is not None]
        if min(len(known), len(shown)) < len(names):
            return (
                f"{start} from {self.splits(names)}: {self.leader} has the best mean {self.what}{self._reason(names)}"
            )
        near = {name: each for name, each in known.items() if min(each) > -1.0 and max(each) < 1.0}
        if min(shown) >= _LITTLE or not near:
            return f"{start}: {leads}{self.splits(names)} {_tell_little(min(shown))}"
        lost = [name for name in names if name not in near]
        rest = f", and next to nothing is known of {_name(lost)}" if lost else ""
        may = list(tell_ends(near))
        if self.level:
            who = _name(list(near)) if lost else "it" if len(names) == 1 else "they"
            return f"{start}: {who} may be up to {' or '.join(may)} than {self.leader}{rest}"
        return f"{start} from {self.splits(names)}: {leads}{_name(list(near))} may be up to {' or '.join(may)}{rest}"

    def tell_sure(self) -> str:
        sure = f"{format_share(1 - self.found.alpha)} sure"
        if self.lost:
            return f"as measured on {self.splits()}"
        if self.won:
            other, pair = self._nearest()
            return f"{sure}, from {self.splits()}{self._between(other, pair)}"
        if self.single:
            return "not sure: one split cannot tell a lead from chance"
        if self.open and self.level:
            return f"{sure} of these {_count(self.chosen)}, from {self.splits()}"
        if self.open:
            known = f". {sure} that {_name(self.behind)} {tell_be(self.behind)} worse than {self.leader}"
            return f"not sure: the best mean may be chance{known if self.behind else ''}"
        return f"{sure}, from {self.splits()}" if self.level else ""

    def bounds(self, name: str) -> tuple[float, float] | None:
        """From how much better (negative) to how much worse than the leader a row may be, of the larger error."""
        pair = self.pairs[name]
        scale = _scale(pair)
        if pair.interval is None or (pair.ratio is None and not scale):
            return None
        low, high = pair.interval
        if pair.ratio is not None:
            return 1 / high - 1, 1 - low
        low, high = sorted(
            bound / (scale or 1.0) * (1 if self.column.higher_is_better else -1) for bound in (low, high)
        )
        return max(low, -1.0), min(high, 1.0)

    def stand(self, name: str) -> str:
        """How a row stands against the leader, and between which shares its error may differ from the leader's."""
        if name in self.unbeaten:
            return "no better than a trivial rule"
        if name == self.leader:
            return "best" if self.won else "best mean"
        if name not in self.pairs or not self.pairs[name].n:
            return ""
        pair, bounds = self.pairs[name], self.bounds(name)
        words = {"better": "worse", "equivalent": "as good", "inconclusive": "cannot say", "worse": "better"}
        if bounds is None or bounds == (0.0, 0.0):
            return f"{words[pair.verdict]}{self._tell_gap(pair)}"
        turned = self.column.higher_is_better and not self.column.best
        low, high = (-bounds[1], -bounds[0]) if turned else bounds
        if max(abs(low), abs(high)) < _LEAST_SHARE:
            return f"{words[pair.verdict]}: within {_share(_LEAST_SHARE / 2)}"
        return f"{words[pair.verdict]}: {_write(low, '+')} to {_write(high, '+')} %"

    def _tell_gap(self, pair: Comparison) -> str:
        """The gap that is possible where it is no share of an error, or why none is known; nothing if there is none."""
        if pair.interval is None:
            return ": one split" if self.single else ": too few splits"
        low, high = pair.interval
        low, high = (low, high) if self.column.higher_is_better and self.column.best else (-high, -low)
        return "" if low == high == 0 else f": {number(low, 2)} to {'+' if high > 0 else ''}{number(high, 2)}"

    def _between(self, other: str, pair: Comparison) -> str:
        bounds, turn = pair.percent_interval, 1 if self.column.higher_is_better else -1
        if bounds is None or self._size(pair) is None:
            return ""
        low, high = sorted(turn * bound / 100 for bound in bounds)
        high = high if self.column.higher_is_better and not self.column.best else min(high, 1.0)
        return f". The lead over {other} is {_share(max(low, 0.0))} to {_share(high)}"

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

    def _widest(self, names: Sequence[str]) -> tuple[float | None, bool]:
        """The largest gap between rows that their intervals leave, and whether it is a share of the larger error.

        It is a number where shares mean nothing, or where the margin is a number too.
        """
        found = [self.found.get(a, b) for place, a in enumerate(names) for b in names[place + 1 :]]
        gaps, sizes = [], []
        for pair in found:
            if pair.interval is None:
                return None, False
            low, high = pair.interval
            sizes.append(max(abs(low), abs(high)))
            scale = _scale(pair)
            if pair.ratio is not None:
                gaps.append(max(1 - low, 1 - 1 / high))
            elif scale is not None and pair.margin is None:
                gaps.append(sizes[-1] / scale if scale else 0.0)
        if len(gaps) < len(found):
            return max(sizes), False
        return max(gaps), True

    def detectable(self, name: str, splits: int | None = None) -> float | None:
        """The gap to the leader that could be shown, as a share of the larger error, now or with more splits."""
        pair = self.pairs[name]
        shown, scale = self._shown(pair, splits), _scale(pair)
        if shown is None or (pair.ratio is None and not scale):
            return None
        return shown / (1 + shown) if pair.ratio is not None else shown / (scale or 1.0)

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
            least, size = self.detectable(name, splits), self._size(self.pairs[name])
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
    doubts: Sequence[Doubt] = (),
) -> TableAnswer:
    """The answer. `contest` is that of the column that decides, if at least two rows are judged by it.

    `unbeaten` names, for each row that is not better than it, the trivial rule in the column that decides; `failures`
    tells for each row that failed why.
    """
    lost: dict[str, list[str]] = {}
    if contest is None or not contest.lost:
        for name, rule in unbeaten.items():
            lost.setdefault(rule, []).append(name)
    remarks = [f"Not better than {rule}: {_name(names)}" for rule, names in lost.items()]
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
    what, mean = lower_initial(column.quantity or column.label), number(cell.mean or 0.0)
    known = f"Its {what} is {mean}, over {count_of(cell.n, 'split')}"
    return f"only {row.label} has results, so there is nothing to compare it with. {known}"


def _absences(table: ReportTable, failures: Mapping[str, str]) -> Iterator[str]:
    """Whoever failed or did not take part: an answer about the others must say so."""
    finished = any(row.n for row in table.rows)
    for row in table.rows:
        if row.failed and finished:
            total = row.failed + (row.n or 0)
            said = f"{f'{row.failed} of {total}' if row.n else 'All'} cells of {row.label} failed"
            yield f"{said} ({failures[row.label]})" if row.label in failures else said
    for status in ("unsupported", "unavailable"):
        names = [row.label for row in table.rows if row.cells and all(cell.status == status for cell in row.cells)]
        if names:
            yield f"{status.capitalize()}: {_name(names)}"


def _scale(pair: Comparison) -> float | None:
    """The larger of both errors; None where they have no common sign, as a gain and a loss."""
    if pair.mean_a is None or pair.mean_b is None:
        return None
    errors = pair.mean_a - pair.best, pair.mean_b - pair.best
    return None if errors[0] * errors[1] < 0 else max(map(abs, errors))


def tell_ends(bounds: Mapping[str, tuple[float, float]]) -> Iterator[str]:
    """How much better and how much worse some row may be; of several, which one."""
    sizes = {"better": {name: -low for name, (low, _) in bounds.items()}}
    sizes["worse"] = {name: high for name, (_, high) in bounds.items()}
    ends = [(word, *max(of.items(), key=lambda item: item[1])) for word, of in sizes.items()]
    ends = [end for end in ends if end[2] > 0]
    apart = len({name for _, name, _ in ends}) > 1
    for place, (word, name, size) in enumerate(ends, start=1):
        which = f" ({name})" if len(bounds) > 1 and (apart or place == len(ends)) else ""
        yield f"{_share(size)} {word}{which}"


def _tell_little(least: float) -> str:
    """What can be shown where it is little; a gap beyond the whole error cannot be shown at all."""
    left = 1 - least
    if left < min(_FRACTIONS) / 2:
        return "can hardly tell any two models apart"
    nearest = min(_FRACTIONS, key=lambda fraction: abs(math.log(left / fraction)))
    return f"can only tell models apart when one has about {_FRACTIONS[nearest]} the error of the other"


def _share(share: float) -> str:
    return "0.01 %" if 0 < share < _LEAST_SHARE else f"{_write(share)} %"


def _write(share: float, sign: str = "") -> str:
    """A share in percent, with the same digits in sentences and tables; two decimals, since a margin is often 1 %."""
    size = abs(100 * share)
    return f"{100 * share:{sign}.{2 if size < 9.995 else 1 if size < 99.95 else 0}f}"


def _tell_below(gap: float, margin: float, *, is_share: bool) -> str:
    """A gap with as many digits as show that it is below the margin, where it is."""
    texts = (
        [_share(gap), *(f"{100 * gap:.{n}f} %" for n in (3, 4, 5))] if is_share else [number(gap, n) for n in (2, 3, 4)]
    )
    least = 100 * margin if is_share else margin
    return next((text for text in texts if float(text.removesuffix(" %")) < least), texts[0])


def _count(names: Sequence[str]) -> str:
    return _COUNTS[len(names)] if len(names) < len(_COUNTS) else str(len(names))


def tell_be(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _name(names: Sequence[str], conjunction: str = "and") -> str:
    return join_words(names, conjunction, most=_LISTED)
