"""What commands that remove things have in common: what is shown, whether the user means it, and what failed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import BoostersEvalError, ExitCode
from boosters_eval.core.findings import Findings
from boosters_eval.core.request import FLAG, Declared, Kind, parameter
from boosters_eval.core.text import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from boosters_eval.core.findings import Screen

_SPANS = {"h": 3600, "d": 86400, "w": 7 * 86400}


def span_seconds(words: str) -> float:
    """The seconds of a time such as 12h, 30d or 8w."""
    match = re.fullmatch(r"(\d{1,6})([hdw])", words)
    if match is None:
        raise ValueError
    return float(int(match[1]) * _SPANS[match[2]])


def _span(value: Any) -> str:
    span_seconds(str(value))
    return str(value)


SPAN = Kind("a time such as 12h, 30d or 8w", _span, _span, "TIME")


class RemovalOptions(Declared):
    """Whether the user is asked, and whether anything is removed at all."""

    yes: bool = parameter(False, short="-y", kind=FLAG, door="options", help="Do not ask.")
    dry_run: bool = parameter(False, kind=FLAG, help="Show what would be removed, but remove nothing.")


@dataclass(frozen=True)
class Removal(Findings):
    """What was chosen to be removed, a line for each; it goes when `carry_out` is called, or when the user agrees."""

    noun: str
    lines: tuple[str, ...]
    actions: tuple[Callable[[], None], ...]
    options: RemovalOptions
    faults: list[str] = field(default_factory=list)  # why some could not be removed

    @property
    def exit_code(self) -> int:
        """What could not be removed is a failure."""
        return ExitCode.EXECUTION_ERROR if self.faults else ExitCode.SUCCESS

    def carry_out(self) -> None:
        """Remove all of it; what cannot be removed stays, with the reason."""
        for action in () if self.options.dry_run else self.actions:
            try:
                action()
            except BoostersEvalError as error:
                self.faults.append(str(error))

    def show(self, screen: Screen) -> None:
        """Tell what would go, ask, and remove it."""
        for line in self.lines:
            screen.say(line)
        if not self.actions:
            screen.note("Note: there is nothing to remove.")
        if self.options.dry_run or not self.actions:
            return
        what = f"this {self.noun}" if len(self.actions) == 1 else f"these {counted(len(self.actions), self.noun)}"
        if not self.options.yes and not screen.confirm(f"Remove {what}?", f"remove {self.noun}s"):
            return
        self.carry_out()
        for fault in self.faults:
            screen.note(f"Error: {fault}")
        done = len(self.actions) - len(self.faults)
        screen.note(f"Removed: {done} of {len(self.actions)} {self.noun}s.")
