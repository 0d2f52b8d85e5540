"""What a bisection answers: the steps that it took, what they showed, and the sentences that say it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field

from boosters_eval.core.errors import ExitCode
from boosters_eval.core.files import FORMAT, Format
from boosters_eval.core.model import Model
from boosters_eval.core.terms import given
from boosters_eval.core.text import clean, count_of, join_words, terminal_width
from boosters_eval.reports import numbers
from boosters_eval.reports.document import Document, Notes, PlainTable, Section
from boosters_eval.reports.findings import ReportedFindings
from boosters_eval.reports.layout import Grid, Span, stack, wrapped

if TYPE_CHECKING:
    from boosters_eval.core.findings import Screen
    from boosters_eval.stats.sequential import Placement, Shift

StepAnswer = Literal["changed", "unchanged", "undecided", "earlier", "later", "unusable"]
_COLUMNS = ("Step", "Candidate", "Between", "Value", "Seeds", "Answer")
_WHOLE = (0.8, 1.25)  # shares of the whole difference that need no remark
_FEW = 3  # names that are listed
_WIDTHS = (4, 12, 24, 16, 5)  # of the columns of the table that grows, except the last
_NARROWEST_ANSWER = 20  # columns for the last one


class BisectionStep(Model):
    """A candidate between two versions that differ; the first step compares the ends themselves."""

    earlier: str
    candidate: str
    later: str
    answer: StepAnswer
    reason: str
    seeds: int = 0
    values: Mapping[str, float] = Field(default_factory=dict)  # the means, by version
    runs: tuple[str, ...] = ()  # the ids of its runs, one per look


class NumberShift(Model):
    """The number before and after the version that was found, or at the two ends."""

    before: float
    after: float
    percent: float | None
    percent_low: float | None = None
    percent_high: float | None = None

    @classmethod
    def of(cls, shift: Shift) -> Self | None:
        """None where nothing was measured."""
        found = shift.comparison
        if found is None or found.mean_a is None or found.mean_b is None:
            return None
        low, high = found.percent_interval or (None, None)
        return cls(before=found.mean_b, after=found.mean_a, percent=found.percent, percent_low=low, percent_high=high)


class Bisection(ReportedFindings, Model):
    """The answer of a bisection."""

    plain: ClassVar[bool] = True
    schema_version: Format = FORMAT
    answer: str
    state: Literal["found", "unchanged", "undecided"]
    library: str
    dataset: str
    metric: str
    tolerance: float
    alpha: float
    max_seeds: int
    versions: tuple[str, ...]
    earlier: str  # the last version before the change, as far as it is known
    later: str  # the first version after it
    shift: NumberShift | None = None
    share: float | None = None  # of the whole difference between the ends
    unusable: Mapping[str, str] = Field(default_factory=dict)  # the versions that were skipped, with the reason
    undecided: tuple[str, ...] = ()
    details: Mapping[str, str] = Field(default_factory=dict)  # the first line of each commit's message
    steps: tuple[BisectionStep, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 if it is known where the number changed, or that it did not; 1 if it cannot be told."""
        return int(ExitCode.REGRESSION if self.state == "undecided" else ExitCode.SUCCESS)

    def document(self) -> Document:
        """The answer, the versions that were skipped, and the steps."""
        skipped = (f"{name} was skipped: {reason.rstrip('.')}." for name, reason in self.unusable.items())
        rows = tuple(tuple(map(clean, make_row(number, step))) for number, step in enumerate(self.steps, 1))
        tolerance = numbers.percent(self.tolerance, sign=False)
        rule = f"Tolerance {tolerance}; the chance of a wrong version is at most {self.alpha:g}."
        return Document(
            clean(f"Bisection of {self.library}"),
            tuple(map(clean, (self.answer, *skipped))),
            sections=(
                Section("steps", "", (PlainTable("Steps", _COLUMNS, rows, keys=2),), short="Steps"),
                Section("notes", "Notes", (Notes((rule,)),)),
            ),
        )

    def show(self, screen: Screen) -> None:
        """The answer, and the steps unless they are on the screen already."""
        if screen.is_terminal and not screen.quiet and sys.stderr.isatty():
            for sentence in self.document().answer:
                screen.say(sentence)
        else:
            super().show(screen)


def make_row(number: int, step: BisectionStep) -> tuple[str, ...]:
    ends = step.candidate in (step.earlier, step.later)
    values = [step.values.get(name) for name in ((step.earlier, step.later) if ends else (step.candidate,))]
    return (
        str(number),
        "both ends" if ends else step.candidate,
        f"{step.earlier} .. {step.later}",
        ", ".join(numbers.MISSING if value is None else numbers.number(value) for value in values),
        str(step.seeds or numbers.MISSING),
        step.reason,
    )


def render_step(number: int, step: BisectionStep) -> list[str]:
    """A step as it ends: below a heading, or as a record where a terminal has no room for the columns."""
    width = terminal_width(sys.stderr) if sys.stderr.isatty() else None
    headings = _table_lines(_COLUMNS, width) if number == 1 else []
    cells = make_row(number, step)
    if table := _table_lines(cells, width):
        return [*headings, *table]
    record = Grid(_COLUMNS, (tuple(map(Span, cells)),), keys=2)  # as other tables show a row on a narrow terminal
    return [line.plain for line in stack(record, width or sum(_WIDTHS))]


def _table_lines(cells: tuple[str, ...], width: int | None) -> list[str]:
    """A row of the table that grows, its last cell broken into lines; none if there is no room for it."""
    start = "".join(f"{cell:<{room}}  " for cell, room in zip(cells, _WIDTHS, strict=False))
    if width is None:
        return [start + cells[-1]]
    if width - len(start) < _NARROWEST_ANSWER:
        return []
    first, *rest = wrapped(cells[-1], width - len(start))
    return [start + first, *(" " * len(start) + line for line in rest)]


def describe_ends(shift: Shift, tolerance: float) -> str:
    words = {"changed": "changed", "unchanged": "unchanged within", "undecided": "neither within nor beyond"}
    text = words[shift.outcome]
    if shift.outcome != "changed":
        text += f" {numbers.percent(tolerance, sign=False)}"
    return f"{text}: {describe_shift(shift)}"


def describe_place(found: Placement, candidate: str, earlier: str, later: str) -> str:
    if found.identical:
        return f"predicts the same as {earlier if found.likeness == 'earlier' else later}"
    if found.likeness == "later":
        return f"like {later}: {describe_shift(found.before)} since {earlier}"
    if found.likeness == "earlier":
        return f"like {earlier}: {describe_shift(found.after)} from {candidate} to {later}"
    why = "within the tolerance of both" if found.settled else "undecided"
    return f"{why}: {describe_shift(found.before)} since {earlier}, {describe_shift(found.after)} to {later}"


def describe_shift(shift: Shift) -> str:
    found = shift.comparison
    if found is None or found.percent is None:
        return found.note.rstrip(".") if found is not None and found.note else "not comparable"
    bounds = found.percent_interval
    if bounds is None:
        return numbers.percent(found.percent / 100)
    low, high = (numbers.percent(bound / 100) for bound in bounds)
    return f"{numbers.percent(found.percent / 100)} ({low} to {high})"


def describe_found(
    subject: str,
    shift: NumberShift | None,
    *,
    earlier: str,
    later: str,
    unusable: Sequence[str],
    undecided: Sequence[str],
    unknown: Sequence[str],
    detail: str = "",
) -> str:
    called = f' "{detail}"' if detail else ""
    text = f"{subject} changed"
    if shift is not None:
        text += f" from {numbers.number(shift.before)} to {numbers.number(shift.after)}"
        text += "" if shift.percent is None else f" ({numbers.percent(shift.percent / 100)})"
    if not unusable and not undecided and not unknown:
        return f"{text} with {later}{called} ({earlier} is the last before)."
    reasons = [
        f"{join_words(names, most=_FEW)} {what}"
        for names, what in (
            (unusable, "could not be used"),
            (undecided, "could not be told from either"),
            (unknown, "was not tried" if len(unknown) == 1 else "were not tried"),
        )
        if names
    ]
    return f"{text} after {earlier} and not later than with {later}{called}: {', '.join(reasons)}."


def describe_share(share: float | None, *, ends: tuple[str, str], found: tuple[str, str]) -> str:
    """A remark if the change that was found is not the whole difference between the ends."""
    if share is None or found == ends or _WHOLE[0] <= share <= _WHOLE[1]:
        return ""
    rest = [f"{a}..{b}" for a, b in ((ends[0], found[0]), (found[1], ends[1])) if a != b]
    if share > 1:
        return f" It changed back in part elsewhere: the ends differ by less; bisect {join_words(rest)} for that."
    part = numbers.percent(share, sign=False)
    return f" That is {part} of the difference between the ends; bisect {join_words(rest)} for the rest."


def describe_unchanged(subject: str, shift: Shift, tolerance: float, ends: tuple[str, str], seeds: int) -> str:
    between = f"between {ends[0]} and {ends[1]}"
    if shift.comparison is None:
        return f"{subject} did not change {between}: they have the same code."
    if shift.bounds == (0.0, 0.0):
        return f"{subject} did not change {between}: the values are identical with {count_of(seeds, 'seed')}."
    text = (
        f"{subject} did not change by more than {numbers.percent(tolerance, sign=False)} {between}:"
        f" {describe_shift(shift)} with {count_of(seeds, 'seed')}."
    )
    if shift.bounds is not None and not shift.bounds[0] <= 0 <= shift.bounds[1]:
        text += " There is a smaller change: use a smaller tolerance to find it."
    return text


def describe_undecided(subject: str, shift: Shift, tolerance: float, ends: tuple[str, str], seeds: int) -> str:
    return (
        f"It cannot be told whether {subject} changed by more than {numbers.percent(tolerance, sign=False)} between"
        f" {ends[0]} and {ends[1]}: {describe_shift(shift)} with {count_of(seeds, 'seed')}."
        f" Use more seeds, such as {given('max_seeds', 2 * seeds)}, or another tolerance."
    )


def describe_left_out(count: int) -> str:
    were = "time was" if count == 1 else "times were"
    return f"{count} {were} left out: other programs used the CPUs."
