"""What a program concludes, as whoever asked meets it: shown to a person, written in a format, with an exit code."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

from boosters_eval.core.errors import BoostersEvalError, ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console


class Screen(Protocol):
    """Where findings are shown. Results go to standard output, notes to standard error."""

    is_terminal: bool  # whether results are laid out on one
    has_data: bool  # whether the result was written there as data, beside which nothing may be printed
    has_markdown: bool  # whether it was written there as Markdown
    verbose: bool
    quiet: bool

    def say(self, text: str) -> None:
        """Print lines of the result, broken at words on a terminal."""

    def note(self, text: str) -> None:
        """Print a line beside the result."""

    def write(self, text: str) -> None:
        """Print text as it is."""

    def rows(self, columns: Sequence[str], rows: Sequence[Sequence[str]], *, keys: int = 1) -> None:
        """Print a table; the first `keys` columns name a row."""

    def json(self, value: Any) -> None:
        """Print plain data as JSON."""

    def annotate(self, commands: Sequence[str], summary: str) -> None:
        """Tell a job of GitHub Actions, if this is one, by its commands and in its summary."""

    def console(self) -> Console:
        """Rich, on standard output."""


class Findings:
    """The base of what programs return to their callers."""

    @property
    def exit_code(self) -> int:
        """What a process says of them to its caller."""
        return ExitCode.SUCCESS

    def show(self, screen: Screen) -> None:
        """Show them to a person."""
        screen.write(self.render("markdown"))

    def render(self, form: str) -> str:
        """The same as text, in one of the formats that the request names."""
        raise NotImplementedError(form)

    def conclude(self, screen: Screen) -> None:
        """What is said once they were shown or written: where things are, and what went wrong."""


class Removable(NamedTuple):
    """One of the things that are to be removed."""

    name: str
    line: str  # what is told of it
    remove: Callable[[], object]


@dataclass(frozen=True)
class Removal(Findings):
    """What is to be removed: it is shown first, and goes once whoever asked has agreed."""

    noun: str
    things: tuple[Removable, ...]
    removed: tuple[str, ...] = ()  # the names of those that are gone
    faults: tuple[str, ...] = ()  # why others stay

    @property
    def exit_code(self) -> int:
        """What stays, although it was to go, is an error."""
        return ExitCode.EXECUTION_ERROR if self.faults else ExitCode.SUCCESS

    def remove_things(self) -> Self:
        removed, faults = [], []
        for thing in self.things:
            try:
                thing.remove()
                removed.append(thing.name)
            except BoostersEvalError as error:
                faults.append(str(error))
        return replace(self, removed=tuple(removed), faults=tuple(faults))

    def show(self, screen: Screen) -> None:
        for thing in self.things:
            screen.say(thing.line)
        if not self.things:
            screen.note("Note: there is nothing to remove.")

    def conclude(self, screen: Screen) -> None:
        for fault in self.faults:
            screen.note(f"Error: {fault}")
        if self.removed or self.faults:
            screen.note(f"Removed: {len(self.removed)} of {len(self.things)} {self.noun}s.")
