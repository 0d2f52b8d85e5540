"""Where output goes: results to stdout, everything else to stderr."""

from __future__ import annotations

import errno
import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from boosters_eval.core.errors import ConfigError, suggest
from boosters_eval.core.files import write_atomically
from boosters_eval.core.findings import Screen
from boosters_eval.core.terms import named, the
from boosters_eval.core.text import (
    clean,
    clean_lines,
    clean_message,
    clean_output,
    count_of,
    dump_json,
    join_words,
    terminal_width,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from boosters_eval.core.findings import Removal
    from boosters_eval.core.request import Request


_USUAL_HEIGHT = 25  # of a terminal; it is not used


def say(text: str) -> None:
    """Print lines of the result. Whatever came from outside is cleaned here, so that no terminal obeys it.

    On a terminal, lines are broken at words; elsewhere they stay whole.
    """
    cleaned = _fitted(clean_lines(text), sys.stdout)
    sys.stdout.write(cleaned + ("\n\n" if text.endswith("\n") else "\n"))


def note(text: str) -> None:
    """Print a line for the user, which is never part of the result."""
    sys.stderr.write(f"{_fitted(clean_message(text), sys.stderr)}\n")


def _fitted(text: str, stream: TextIO) -> str:
    """Lines broken at words, as wide as the terminal; elsewhere they stay whole."""
    if not stream.isatty():
        return text
    from boosters_eval.reports.layout import wrapped_with_indent

    width = terminal_width(stream)
    return "\n".join(part for line in text.split("\n") for part in wrapped_with_indent(line, width))


_SUFFIXES = {
    **dict.fromkeys(("", ".md", ".markdown", ".txt"), "markdown"),
    **dict.fromkeys((".yaml", ".yml"), "yaml"),
    **dict.fromkeys((".html", ".htm"), "html"),
    ".json": "json",
    ".csv": "csv",
    ".tex": "latex",
}
_ENDINGS = {
    "markdown": (".md", ".txt"),
    "json": (".json",),
    "csv": (".csv",),
    "html": (".html",),
    "latex": (".tex",),
    "yaml": (".yaml",),
}
_SPELT = {"md": "markdown", "yml": "yaml", "tex": "latex"}


def choose_format(request: Request) -> str | None:
    """The requested format, or that of the file's extension, or None for whatever is shown to a person."""
    formats: tuple[str, ...] = request.formats
    if not formats or getattr(request, "json", False):
        return "json" if formats else None
    given, output = getattr(request, "format", None), getattr(request, "output", None)
    if given is not None:
        name = _SPELT.get(given, given)
        if name not in formats:
            known = join_words(formats, "or")
            raise ConfigError(f"{the('format')} must be {known}. Got '{given}' instead.{suggest(given, formats)}")
        return None if name == "table" else name
    if output is None:
        return None
    found = _SUFFIXES.get(output.suffix.lower())
    if found not in formats and output.parent != Path("/dev/fd"):
        endings = join_words((end for name in formats for end in _ENDINGS.get(name, ())), "or")
        unless = f" unless {named('format')} is given" if "format" in request.parameters else ""
        raise ConfigError(f"{the('output')} must end in {endings}{unless}. Got '{output}' instead.")
    return found or "markdown"


def is_agreed(removal: Removal) -> bool:
    """Ask whether to remove what was shown; where nobody can be asked, a user has to say so before."""
    noun, count = removal.noun, len(removal.things)
    if not sys.stdin.isatty():
        raise ConfigError(f"{the('yes')} is needed to remove {noun}s where nobody can be asked.")
    what = f"this {noun}" if count == 1 else f"these {count_of(count, noun)}"
    return click.confirm(f"Remove {what}?", err=True)


class Terminal(Screen):
    """The standard streams, as findings see them."""

    def __init__(self, *, verbose: bool = False, quiet: bool = False) -> None:
        self.verbose, self.quiet = verbose, quiet
        self.is_terminal = sys.stdout.isatty()
        self.has_data, self.has_markdown = False, not self.is_terminal and not quiet

    def emit(self, text: str, form: str, output: Path | None) -> None:
        self.is_terminal = False  # no result is laid out there
        self.has_data = output is None and form != "markdown"
        self.has_markdown = output is None and form == "markdown"
        if output is None:
            sys.stdout.write(text)
            return
        write_atomically(output, text)
        if not self.quiet:
            note(f"Written: {output}")

    say, note = staticmethod(say), staticmethod(note)

    def write(self, text: str) -> None:
        sys.stdout.write(text)

    def json(self, value: Any) -> None:
        sys.stdout.write(dump_json(value))

    def rows(self, columns: Sequence[str], rows: Sequence[Sequence[str]], *, keys: int = 1) -> None:
        """Print a table, fitted to the terminal; in a pipe, one line per row."""
        from boosters_eval.reports.layout import Grid, Span, print_grid

        tidy = clean_lines if sys.stdout.isatty() else lambda text: clean(" ".join(text.split("\n")))
        cells = tuple(tuple(Span(tidy(cell)) for cell in row) for row in rows)
        print_grid(Grid(tuple(map(clean, columns)), cells, keys=keys), self.console())
        sys.stdout.write("\n")

    def console(self) -> Console:
        """Rich, as wide as the terminal is, even a dumb one."""
        from rich.console import Console

        size = {"width": terminal_width(sys.stdout), "height": _USUAL_HEIGHT} if sys.stdout.isatty() else {}
        return Console(**size, highlight=False)  # type: ignore[arg-type]

    def annotate(self, commands: Sequence[str], summary: str) -> None:
        """Print GitHub's commands, and append to the summary of its job; if that fails, it is only noted."""
        if os.environ.get("GITHUB_ACTIONS") != "true":
            return
        stream = sys.stderr if self.has_data else sys.stdout
        stream.writelines(f"{line}\n" for line in commands)
        path = os.environ.get("GITHUB_STEP_SUMMARY")
        if path and summary:
            try:
                with Path(path).open("a", encoding="utf-8") as file:
                    file.write(summary + "\n")
            except OSError as error:
                note(f"Note: the job summary {path} cannot be written: {error.strerror}.")


class SteadyStream(io.TextIOWrapper):
    """The one way out to a standard stream. A failure is told once, and whatever is written afterwards is dropped."""

    failed = False  # whether something could not be written, though whoever reads it had not left
    cleaned = styled = False  # whether what a terminal would obey is taken out, all of it or all but colors

    def write(self, text: str) -> int:
        try:
            super().write(clean_output(text, styled=self.styled) if self.cleaned else text)
        except OSError as error:
            self._give_up(error)
        return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        """From now on, write to nowhere. A closed pipe needs no words: its reader has had enough."""
        with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 (a device)
            os.dup2(nowhere.fileno(), self.fileno())
        if error.errno in (errno.EPIPE, errno.ECONNRESET):
            return
        self.failed = True
        if self is sys.stdout:
            reason = "it is closed" if error.errno == errno.EBADF else error.strerror
            sys.stderr.write(f"Error: Cannot write to standard output: {reason}.\n")


def make_steady(stream: TextIO, *, cleaned: bool = False) -> SteadyStream:
    """The same stream, made steady; what cannot be encoded is replaced."""
    assert isinstance(stream, io.TextIOWrapper)  # noqa: S101 (what a program starts with)
    encoding, lines, styled = stream.encoding, stream.line_buffering, stream.isatty()
    steady = SteadyStream(stream.detach(), encoding=encoding, errors="replace", line_buffering=lines)
    steady.cleaned, steady.styled = cleaned, styled
    return steady
