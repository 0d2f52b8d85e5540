"""A table on a terminal, without any report around it; it loads no models, so that a listing is quick."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.reports.layout import NARROWEST, lay_out

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console
    from rich.text import Text

    from boosters_eval.reports.layout import Grid


def print_grid(grid: Grid, console: Console) -> None:
    """Print a table; outside a terminal, one line per row."""
    print_lines(console, [lay_out(grid, width_of(console))])


def width_of(console: Console) -> int | None:
    """The width to keep to; outside a terminal there is none."""
    return max(console.width, NARROWEST) if console.is_terminal else None


def print_lines(console: Console, blocks: Iterable[Iterable[Text]]) -> None:
    """Lines that are fitted already: Rich must neither wrap nor crop them."""
    for block in blocks:
        for line in block:
            console.print(line, no_wrap=True, overflow="ignore", crop=False, soft_wrap=True)
