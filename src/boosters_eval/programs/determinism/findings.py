"""What `determinism` concludes: by library, task and probe, whether the model was the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from boosters_eval.core.errors import ExitCode
from boosters_eval.core.files import FORMAT, Format
from boosters_eval.core.model import Model
from boosters_eval.reports.findings import ReportedFindings

if TYPE_CHECKING:
    from boosters_eval.core.findings import Screen
    from boosters_eval.reports.document import Document

Sameness = Literal["identical", "equal to 1e-12", "different", "failed", "not supported"]
ProbeQuestion = Literal["again", "process", "threads again", "threads", "all threads", "rows", "columns", "repeated"]
QUESTIONS: tuple[ProbeQuestion, ...] = get_args(ProbeQuestion)
ALONE: tuple[ProbeQuestion, ...] = ("again", "process")  # the same seed twice, on one thread
REPEATS: tuple[ProbeQuestion, ...] = (*ALONE, "threads again")  # and on two: what differs here is a fault


class ProbeFinding(Model):
    """Whether one change left the model as it was."""

    library: str
    dataset: str
    task: str
    question: ProbeQuestion
    outcome: Sameness
    setting: str = ""  # the smallest setting that shows a difference
    largest: float | None = None  # the largest difference of a prediction
    relative: float | None = None  # in that of the largest prediction
    reason: str = ""  # why there is no answer


class DeterminismFindings(ReportedFindings, Model):
    """What makes the same training give another model."""

    schema_version: Format = FORMAT
    kind: Literal["boosters-eval determinism"] = "boosters-eval determinism"
    run: str
    versions: dict[str, str]
    threads: int  # all of this machine's
    probes: tuple[ProbeFinding, ...]
    unsupported: tuple[str, ...] = ()  # what a library cannot do at all, with reasons

    @property
    def libraries(self) -> list[str]:
        return list(dict.fromkeys(one.library for one in self.probes))

    def differing(self, library: str, *questions: ProbeQuestion) -> list[ProbeFinding]:
        """Where a library's model is another one."""
        return [
            one
            for one in self.probes
            if one.library == library and one.outcome == "different" and one.question in questions
        ]

    @property
    def exit_code(self) -> int:
        if any(one.outcome == "different" and one.question in REPEATS for one in self.probes):
            return ExitCode.REGRESSION
        answered = [one for one in self.probes if one.outcome not in ("failed", "not supported")]
        failed = any(one.outcome == "failed" for one in self.probes)
        return ExitCode.EXECUTION_ERROR if failed or not answered else ExitCode.SUCCESS

    def document(self) -> Document:
        from boosters_eval.programs.determinism.document import lay_out  # noqa: PLC0415 (only what is shown is laid out)

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
