"""What a bisection is asked for and what it answers: versions in order, the steps taken, and the result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from boosters_eval.core.errors import ExitCode
from boosters_eval.core.model import Model

if TYPE_CHECKING:
    from collections.abc import Callable


SCHEMA_VERSION = 1
StepAnswer = Literal["changed", "unchanged", "undecided", "earlier", "later", "unusable"]


@dataclass(frozen=True)
class Candidate:
    """One version of the library: what it is called, and how it becomes a competitor."""

    name: str  # in the answer: "4.5.0", or a commit
    resolve: Callable[[], str]  # builds and installs it; the label of the competitor
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


class Bisection(Model):
    """The answer of a bisection."""

    schema_version: int = SCHEMA_VERSION
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
