"""What `check-export` concludes: of each format and runtime, whether it predicts the same, and what is different."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from boosters_eval.core.errors import ExitCode
from boosters_eval.core.files import FORMAT, Format
from boosters_eval.core.model import Model
from boosters_eval.programs.export.saved import ModelKind
from boosters_eval.reports.findings import ReportedFindings

if TYPE_CHECKING:
    from boosters_eval.core.findings import Screen
    from boosters_eval.reports.document import Document

ExportState = Literal[
    "identical", "agrees", "differs", "changes decisions", "cannot be exported", "failed", "not installed"
]
COMPARED = ("identical", "agrees", "differs", "changes decisions")


class ExportPart(Model):
    """How many rows of a kind are off."""

    name: str
    rows: int
    off: int
    decisions: int = 0


class ExportPlace(Model):
    """A threshold on which an export goes another way."""

    column: str
    threshold: float
    rows: int


class CheckedExport(Model):
    """A format or runtime, and how far its predictions are from the model's."""

    name: str
    version: str = ""
    state: ExportState
    judged: bool = True  # whether the exit code depends on it: it was asked for, or could be compared
    rows: int = 0
    off: int = 0  # rows by more than what is allowed
    decisions: int = 0  # rows of another class
    largest: float | None = None  # the largest difference; None: a prediction is no number
    deviations: float | None = None  # in standard deviations of the predictions
    cause: str = ""
    diagnosis: str = ""
    reference: str = ""  # where a known difference is described
    parts: tuple[ExportPart, ...] = ()
    places: tuple[ExportPlace, ...] = ()
    refused: tuple[str, ...] = ()  # values that it does not take, with reasons
    reason: str = ""  # why there are no predictions


class ExportFindings(ReportedFindings, Model):
    """Whether the exports of a model predict what it predicts."""

    schema_version: Format = FORMAT
    kind: Literal["boosters-eval check-export"] = "boosters-eval check-export"
    run: str
    model: str
    library: str
    version: str
    task: ModelKind
    rows: int
    thresholds: int
    allowed: float  # how far a value may be off
    tolerance: float
    judges_values: bool  # whether values are judged, or decisions alone
    exports: tuple[CheckedExport, ...]
    notes: tuple[str, ...] = ()

    @property
    def failing(self) -> list[CheckedExport]:
        """The exports that decide otherwise, or whose values are too far off."""
        states = ("differs", "changes decisions") if self.judges_values else ("changes decisions",)
        return [one for one in self.exports if one.state in states]

    @property
    def exit_code(self) -> int:
        if self.failing:
            return ExitCode.REGRESSION
        compared = any(one.state in COMPARED for one in self.exports)
        lost = any(one.judged and (one.state not in COMPARED or one.refused) for one in self.exports)
        return ExitCode.SUCCESS if compared and not lost else ExitCode.EXECUTION_ERROR

    def document(self) -> Document:
        from boosters_eval.programs.export.document import lay_out  # noqa: PLC0415 (only what is shown is laid out)

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
            screen.note(f"Run {self.run}.")
