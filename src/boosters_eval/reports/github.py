"""GitHub's workflow commands, which annotate a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.core.text import clean

if TYPE_CHECKING:
    from collections.abc import Sequence

_ANNOTATIONS = 10  # GitHub shows at most this many per level and step


def capped(found: Sequence[tuple[str, str, str]]) -> list[str]:
    """Commands from (error or warning, title, message); what GitHub would not show is counted."""
    out: list[str] = []
    for level in ("error", "warning"):
        mine = [(title, message) for each, title, message in found if each == level]
        room = _ANNOTATIONS if len(mine) <= _ANNOTATIONS else _ANNOTATIONS - 1
        out += [command(level, title, message) for title, message in mine[:room]]
        if len(mine) > room:
            out.append(command(level, "More", f"{len(mine) - room} further findings are in the job summary"))
    return out


def command(level: str, title: str, message: str) -> str:
    """One annotation: error, warning or notice."""
    data = clean(message).replace("%", "%25")
    return f"::{level} title=boosters-eval {title}::{data}"
