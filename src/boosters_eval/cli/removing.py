"""What commands that remove things have in common: how long ago, how large, and whether the user means it."""

import re
import sys

import typer

from boosters_eval.core.errors import ConfigError, ExitCode
from boosters_eval.core.text import counted

_SPANS = {"h": 3600, "d": 86400, "w": 7 * 86400}


def confirm_removal(count: int, noun: str, *, yes: bool) -> None:
    """Ask, unless the user has said yes; where nobody can be asked, that is needed."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise ConfigError(f"The '--yes' option is needed to remove {noun}s where nobody can be asked.")
    what = f"this {noun}" if count == 1 else f"these {counted(count, noun)}"
    if not typer.confirm(f"Remove {what}?", err=True):
        raise typer.Exit(ExitCode.SUCCESS)


def span_seconds(text: str) -> float:
    """The seconds of a time such as 12h, 30d or 8w."""
    match = re.fullmatch(r"(\d{1,6})([hdw])", text)
    if match is None:
        raise ConfigError(f"The '--older-than' option must be a time such as 12h, 30d or 8w. Got '{text}' instead.")
    return float(int(match[1]) * _SPANS[match[2]])


def sized(count: int) -> str:
    """A number of bytes in the largest unit that it reaches."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} B"
