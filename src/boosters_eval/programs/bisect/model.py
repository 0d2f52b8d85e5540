"""What a bisection is asked for and what it answers: versions in order, the steps taken, and the result."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from boosters_eval.core.errors import ExitCode
from boosters_eval.core.files import FORMAT, Format
from boosters_eval.core.findings import Findings
from boosters_eval.core.model import Model

if TYPE_CHECKING:
    from collections.abc import Callable

    from boosters_eval.core.findings import Screen
    from boosters_eval.runners.base import Runner

StepAnswer = Literal["changed", "unchanged", "undecided", "earlier", "later", "unusable"]


@dataclass(frozen=True)
class Candidate:
    """One version of the library: what it is called, and how it becomes a competitor."""

    name: str  # in the answer: "4.5.0", or a commit
    resolve: Callable[[], type[Runner]]  # builds and installs it
    detail: str = ""  # the first line of a commit's message


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


class Bisection(Findings, Model):
    """The answer of a bisection."""

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

    def show(self, screen: Screen) -> None:
        """The answer, and the steps unless they are on the screen already."""
        from boosters_eval.programs.bisect.wording import COLUMNS, row, skipped_sentence  # noqa: PLC0415 (loads rich)

        screen.say(self.answer)
        if self.unusable:
            screen.say(skipped_sentence(self.unusable))
        if not screen.is_terminal or screen.quiet or not sys.stderr.isatty():
            screen.rows(COLUMNS, [row(number, step) for number, step in enumerate(self.steps, 1)], keys=2)

    def render(self, form: str) -> str:
        """The same as JSON, or as Markdown."""
        from boosters_eval.programs.bisect.wording import render_markdown  # noqa: PLC0415 (loads rich)

        return self.model_dump_json(indent=2) + "\n" if form == "json" else render_markdown(self)
