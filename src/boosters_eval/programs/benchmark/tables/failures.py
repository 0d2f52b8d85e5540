"""What failed, and what was not tried, as a section of a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.reports.document import Block, Code, Details, PlainTable, Section

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boosters_eval.programs.benchmark.tables.data import AbsentPair, FailedCell


def errors_section(
    errors: Sequence[FailedCell], unsupported: Sequence[AbsentPair], unavailable: Sequence[AbsentPair]
) -> Section | None:
    """Failed cells with their tracebacks, and what was not tried because it is unsupported or unavailable."""
    blocks: list[Block] = []
    if errors:
        rows = tuple((e.config, _who(e), _repeat(e), e.phase, e.error_type, e.message) for e in errors)
        headings = ("Config", "Library", "Seed", "Phase", "Type", "Message")
        blocks.append(PlainTable(name="Errors", headings=headings, rows=rows))
        blocks += [details for error in errors if (details := _trace(error)) is not None]
    for title, pairs in (("Not supported", unsupported), ("Unavailable", unavailable)):
        if pairs:
            refused = tuple((pair.config, pair.library, pair.reason) for pair in pairs)
            blocks.append(PlainTable(name=title, headings=(title, "Library", "Reason"), rows=refused))
    return Section("errors", "Errors", tuple(blocks), detail=True) if blocks else None


def _trace(error: FailedCell) -> Details | None:
    """Traceback, signal and the end of stderr in one text."""
    parts = [error.traceback or ""]
    parts += [f"Signal: {error.signal}"] if error.signal else []
    parts += [f"stderr:\n{error.stderr_tail}"] if error.stderr_tail else []
    text = "\n".join(part for part in parts if part)
    if not text:
        return None
    title = f"{error.config}, {_who(error)}, seed {_repeat(error)}"
    return Details(title=title, aside=f"{error.error_type} in {error.phase}", blocks=(Code(text=text),), long=True)


def _who(error: FailedCell) -> str:
    return error.library if error.variant is None else f"{error.library} {error.variant}"


def _repeat(error: FailedCell) -> str:
    return str(error.seed) if error.fold is None else f"{error.seed}, fold {error.fold}"
