"""Where output goes: results to stdout, everything else to stderr."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import ConfigError, suggest
from boosters_eval.core.files import check_writable, write_atomically
from boosters_eval.core.text import clean, clean_lines, message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console


def say(text: str) -> None:
    """Print lines of the result. Whatever came from outside is cleaned here, so that no terminal obeys it."""
    sys.stdout.write(clean_lines(text) + ("\n\n" if text.endswith("\n") else "\n"))


def note(text: str) -> None:
    """Print a line for the user, which is never part of the result."""
    sys.stderr.write(f"{message(text)}\n")


def console() -> Console:
    """Rich on stdout; in a pipe, as wide as the table needs."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 200, soft_wrap=not sys.stdout.isatty(), highlight=False)


def print_json(value: Any) -> None:
    """Machine-readable output."""
    sys.stdout.write(json.dumps(value, indent=2, sort_keys=False) + "\n")


def print_rows(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A plain table."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(Text(clean(column)), overflow="fold")
    for row in rows:
        table.add_row(*(Text(clean_lines(cell)) for cell in row))
    console().print(table)


FORMATS = ("markdown", "json", "csv", "html")
_SUFFIXES = {
    **dict.fromkeys(("", ".md", ".markdown", ".txt"), "markdown"),
    ".json": "json",
    ".csv": "csv",
    ".html": "html",
    ".htm": "html",
}


def choose_format(given: str | None, output: Path | None) -> str | None:
    """The requested format, or that of the file's extension, or None for a table on the terminal."""
    if given is not None:
        name = {"md": "markdown"}.get(given, given)
        if name not in FORMATS:
            raise ConfigError(
                f"The '--format' option must be {', '.join(FORMATS[:-1])} or {FORMATS[-1]}."
                f" Got '{given}' instead.{suggest(given, FORMATS)}"
            )
        return name
    if output is None:
        return None
    if output.suffix.lower() not in _SUFFIXES and output.parent != Path("/dev/fd"):
        raise ConfigError(
            f"The '--output' option must end in .md, .json, .csv or .html unless --format is given."
            f" Got '{output}' instead."
        )
    return _SUFFIXES.get(output.suffix.lower(), "markdown")


def check_output(output: Path | None) -> None:
    """Fail before the run if the file could not be written after it."""
    if output is not None:
        check_writable(output)


def emit(text: str, output: Path | None, *, quiet: bool = False) -> None:
    """Write the result to its file or to stdout."""
    if output is None:
        sys.stdout.write(text)
    else:
        write_atomically(Path(output), text)
        if not quiet:
            note(f"Written: {output}")
