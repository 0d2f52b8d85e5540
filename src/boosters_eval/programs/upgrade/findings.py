"""What `upgrade-check` concludes: what became of each cell, what it costs, and whether saved models go on working."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from boosters_eval.core.errors import ExitCode
from boosters_eval.core.files import FORMAT, Format
from boosters_eval.core.model import Model
from boosters_eval.core.text import count_of
from boosters_eval.metrics.task import Task
from boosters_eval.reports.findings import ReportedFindings
from boosters_eval.reports.markdown import annotate

if TYPE_CHECKING:
    from boosters_eval.core.findings import Screen
    from boosters_eval.reports.document import Document

# Of a cell, or of a saved model; the first four are answers that nothing is wrong with.
CellState = Literal[
    "identical",
    "drift",
    "newly works",
    "works in neither",
    "changed",
    "fails",
    "not repeatable",
    "fails in both",
    "did not run",
]
UNANSWERED = ("not repeatable", "fails in both", "did not run")
_BAD = ("changed", "fails")
UpgradeAnswer = Literal["safe", "safe but", "changes", "unanswered"]
_FEW = 1 / 3  # of the cells: of more that changed, it is not safe but for some


class UpgradeCell(Model):
    """What became of one thing that people do with the library."""

    name: str
    task: Task
    state: CellState
    repeats: int = 0  # splits that both finished
    largest: float | None = None  # the largest difference of a prediction
    ulps: int | None = None  # the same, in steps of the predictions' own precision
    deviations: float | None = None  # in standard deviations of OLD's; None: they are all alike, or nothing differs
    metric: str = ""
    old: float | None = None  # means of the metric
    new: float | None = None
    verdict: Literal["better", "worse", "equivalent", "cannot say", ""] = ""  # by rows, of what changed
    percent: float | None = None  # of OLD's error, positive where NEW errs more
    percent_low: float | None = None
    percent_high: float | None = None
    cause: str = ""  # the parameter whose default explains the change
    reason: str = ""  # why it fails


class UpgradeCost(Model):
    """A time or a size of NEW, in that of OLD."""

    quantity: str
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    cells: int = 0
    told_apart: bool = False
    reason: str = ""  # why there is no number


class ReloadedModel(Model):
    """A model that was saved by one version, or by the user, loaded in both."""

    name: str
    saved_by: Literal["old", "new", "user"]
    state: CellState
    largest: float | None = None
    ulps: int | None = None
    deviations: float | None = None
    reason: str = ""


class ChangedDefault(Model):
    """A parameter that both versions know, and that has another value in the models of NEW."""

    name: str
    old: str
    new: str  # as JSON, in the first of these cells
    cells: tuple[str, ...]


class UpgradeFindings(ReportedFindings, Model):
    """Whether a newer version may be used."""

    schema_version: Format = FORMAT
    kind: Literal["boosters-eval upgrade"] = "boosters-eval upgrade"
    library: str
    old: str  # versions
    new: str
    old_name: str  # as they were asked for
    new_name: str
    same_code: bool
    pin: str  # what to write, as `pip` reads it
    tolerance: float
    seeds: int
    runs: tuple[str, ...]
    cells: tuple[UpgradeCell, ...]
    costs: tuple[UpgradeCost, ...]
    models: tuple[ReloadedModel, ...] = ()
    unsaved: str = ""  # why no models were saved
    defaults: tuple[ChangedDefault, ...] = ()
    said_by_old: tuple[str, ...] = ()  # what only this version complains of
    said_by_new: tuple[str, ...] = ()
    said_by_both: tuple[str, ...] = ()  # of parameters that the user brings: one without effect is the same in both
    unsupported: tuple[str, ...] = ()  # what is no part of the check, with reasons
    notes: tuple[str, ...] = ()

    def having(self, *states: str) -> list[UpgradeCell]:
        return [cell for cell in self.cells if cell.state in states]

    @property
    def broken_models(self) -> list[ReloadedModel]:
        """What is saved now and no longer loads, or says something else: NEW's own need not load in OLD."""
        return [model for model in self.models if model.state in _BAD and model.saved_by != "new"]

    @property
    def lost_models(self) -> list[ReloadedModel]:
        """Of which nothing can be said."""
        return [model for model in self.models if model.state in UNANSWERED and model.saved_by != "new"]

    @property
    def unanswered(self) -> bool:
        compared = len(self.cells) > len(self.having("works in neither"))
        return not compared or bool(self.lost_models) or bool(self.having(*UNANSWERED))

    @property
    def answer(self) -> UpgradeAnswer:
        bad = self.having(*_BAD)
        if bad or self.broken_models:
            return "safe but" if len(bad) <= _FEW * len(self.cells) and not self.unanswered else "changes"
        return "unanswered" if self.unanswered else "safe"

    @property
    def exit_code(self) -> int:
        codes = {"safe": ExitCode.SUCCESS, "unanswered": ExitCode.EXECUTION_ERROR}
        return codes.get(self.answer, ExitCode.REGRESSION)

    def document(self) -> Document:
        from boosters_eval.programs.upgrade.document import lay_out  # noqa: PLC0415 (only what is shown is laid out)

        return lay_out(self)

    def show(self, screen: Screen) -> None:
        """The document; quietly, only the answer."""
        if screen.quiet:
            for line in self.document().answer:
                screen.say(line)
        else:
            super().show(screen)

    def conclude(self, screen: Screen) -> None:
        """The run, and in a job of GitHub Actions the answer and its summary."""
        if not screen.quiet and self.runs:
            screen.note(f"Run {self.runs[0]}: {count_of(len(self.cells), 'cell')} in {count_of(self.seeds, 'split')}.")
        title = f"{self.library} {self.old} to {self.new}"
        told = [] if self.answer == "safe" else annotate([("error", title, self.document().answer[0])])
        screen.annotate(told, self.to_markdown())
