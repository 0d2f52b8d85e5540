"""What `tune` concludes: by data set and library, what tuning is worth, and who is best after how many trials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from boosters_eval.core.errors import ExitCode
from boosters_eval.core.files import FORMAT, Format
from boosters_eval.core.model import Model
from boosters_eval.core.text import count_of
from boosters_eval.reports.findings import ReportedFindings

if TYPE_CHECKING:
    from boosters_eval.core.findings import Screen
    from boosters_eval.reports.document import Document

Worth = Literal["better", "worse", "equivalent", "inconclusive"]


class ExpectedBest(Model):
    """What the best of so many trials is expected to score, over all sets of so many of those that were drawn."""

    trials: int  # 0: the library's own defaults
    score: float
    cpu_s: float | None = None  # of one search with so many trials, and of the fit of what it chooses
    percent: float | None = None  # that the error is lower than with the defaults
    low: float | None = None
    high: float | None = None


class TunedParameter(Model):
    """How much of what trials differ by one parameter explains alone."""

    name: str
    share: float  # of the variance of the inner scores' ranks
    p: float  # corrected for the number of parameters
    best: tuple[float, float]  # between which values the best fifth of the trials lies


class TunedConfig(Model):
    """A configuration that was chosen, and on how many splits."""

    trial: int  # 0: the library's own defaults
    splits: int
    values: dict[str, Any]


class TunedLibrary(Model):
    """One library before and after the search."""

    library: str
    version: str
    trials: int
    default: float  # mean scores on the outer splits
    tuned: float
    worth: Worth  # what it is to tune it
    percent: float | None = None  # that the error is lower than with the defaults
    low: float | None = None
    high: float | None = None
    curve: tuple[ExpectedBest, ...]
    chosen: tuple[TunedConfig, ...]  # by the inner scores of each split, the most frequent first
    best: TunedConfig  # by the inner scores of all splits
    parameters: tuple[TunedParameter, ...]
    marks: dict[str, str] = Field(
        default_factory=dict
    )  # searched parameters that are not mapped exactly, with their kind
    failed: int = 0  # cells
    cpu_s: float | None = None  # of all its fits


class Overtaking(Model):
    """Who is ahead of whom from so many trials on, and was not before."""

    ahead: str
    behind: str
    trials: int
    cpu_s: float | None = None
    told_apart: bool = False  # whether they are, after all trials


class TunedTask(Model):
    """One data set."""

    dataset: str
    task: str
    metric: str
    label: str
    higher_is_better: bool
    splits: int
    rows: int  # that are tested, on average
    which: str  # the lines of the answer that the verdicts make
    sure: str
    winner: str | None = None
    default_leader: str | None = None  # with the best mean before tuning
    leader: str | None = None  # and after it
    libraries: tuple[TunedLibrary, ...]
    overtaking: tuple[Overtaking, ...] = ()
    equal_cpu_s: float | None = None  # what the cheapest search costs
    equal_cpu_leader: str | None = None  # who has the best expected score for that
    suspicion: str = ""  # why the scores cannot be trusted
    doubts: tuple[str, ...] = ()
    command: str = ""  # what to run next
    reason: str = ""  # and why


class TuneFindings(ReportedFindings, Model):
    """What tuning is worth, and which library is best after it."""

    schema_version: Format = FORMAT
    kind: Literal["boosters-eval tune"] = "boosters-eval tune"
    run: str
    space: str
    sampler: str
    trials: int
    asked: int  # how many trials were wanted
    inner: int
    axes: dict[str, dict[str, tuple[float, float, str]]]  # by library, by parameter: low, high, scale
    tasks: tuple[TunedTask, ...]
    failed: int = 0
    cells: int
    seconds: float
    excluded: tuple[str, ...] = ()  # who took no part, with reasons
    notes: tuple[str, ...] = ()
    accept_failures: bool = False

    @property
    def exit_code(self) -> int:
        if not any(task.libraries for task in self.tasks):
            return ExitCode.EXECUTION_ERROR
        return ExitCode.EXECUTION_ERROR if self.failed and not self.accept_failures else ExitCode.SUCCESS

    def document(self) -> Document:
        from boosters_eval.programs.tune.document import lay_out  # noqa: PLC0415 (only what is shown is laid out)

        return lay_out(self)

    def show(self, screen: Screen) -> None:
        """The document; quietly, only the answer."""
        if screen.quiet:
            for line in self.document().answer:
                screen.say(line)
        else:
            super().show(screen)

    def conclude(self, screen: Screen) -> None:
        if not screen.quiet:
            screen.note(f"Run {self.run}: {count_of(self.cells, 'fit')}, {count_of(self.failed, 'failure')}.")
