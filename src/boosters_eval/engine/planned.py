"""What a dry run shows: the cells that would run, and how long they would take."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from boosters_eval.core.errors import ExitCode
from boosters_eval.core.findings import Findings
from boosters_eval.core.text import count_of
from boosters_eval.engine.execute import Mode, cells_to_run, jobs_for
from boosters_eval.engine.folder import read_to_continue
from boosters_eval.engine.progress import duration
from boosters_eval.engine.runs import folder_of
from boosters_eval.engine.session import expected_seconds, mode_of, tell_of_earlier

if TYPE_CHECKING:
    from boosters_eval.core.findings import Screen
    from boosters_eval.engine.cell import Cell
    from boosters_eval.engine.plan import Plan
    from boosters_eval.engine.settings import RunSettings


@dataclass(frozen=True)
class PlannedRun(Findings):
    """A plan that nothing was run of."""

    plan: Plan
    cells: tuple[Cell, ...]  # that would run: what an earlier attempt has done is not done again
    jobs: int
    seconds: float  # that the history expects; 0: it does not know
    notes: tuple[str, ...] = ()
    refusal: str = ""  # why it would not run as it is

    @classmethod
    def of(cls, plan: Plan, settings: RunSettings, notes: tuple[str, ...] = (), refusal: str = "") -> Self:
        """A plan with how it would be carried out."""
        tell_of_earlier(plan, settings)
        cells, expected = _cells_left(plan, settings), expected_seconds(plan, settings)
        seconds = sum(expected.get(cell.key, 0.0) for cell in cells)
        return cls(plan, tuple(cells), jobs_for(plan, settings.jobs), seconds, notes, refusal)

    @property
    def exit_code(self) -> int:
        """A plan without cells would fail."""
        return ExitCode.SUCCESS if self.plan.cells and not self.refusal else ExitCode.EXECUTION_ERROR

    def show(self, screen: Screen) -> None:
        """One line per spec and target."""
        plan = self.plan
        for sentence in self.notes:
            screen.note(f"Note: {sentence}")
        about = f", about {duration(self.seconds / min(self.jobs, len(self.cells)))}" if self.seconds else ""
        done = len(plan.cells) - len(self.cells)
        kept = f"; {done} of {len(plan.cells)} kept" if done else ""
        screen.say(f"run {plan.run_id}: {count_of(len(self.cells), 'cell')}, {self.jobs} at a time{about}{kept}")
        lines = Counter(f"{cell.spec.name} {cell.target} ({cell.target.build.version})" for cell in self.cells)
        for line, count in lines.items():
            screen.say(f"  {line} x {count}")
        for entry in plan.excluded:
            screen.say(f"  {entry.spec} {entry.target}: unsupported: {entry.reason}")

    def conclude(self, screen: Screen) -> None:
        """Why it would not run, if so."""
        if self.refusal:
            screen.note(f"Error: {self.refusal}")


def _cells_left(plan: Plan, settings: RunSettings) -> list[Cell]:
    """The cells that an earlier attempt leaves to run, if one is continued."""
    folder = None if mode_of(settings) is Mode.NEW else folder_of(plan, settings.home)
    if folder is None:
        return list(plan.cells)
    earlier = read_to_continue(folder.journal_path(folder.attempts()[-1]))
    left = {cell.key for cell in cells_to_run(plan, earlier.outcomes, mode_of(settings))}
    return [cell for cell in plan.cells if cell.key in left]
