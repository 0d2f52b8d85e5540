"""The failures of processes: what the system reports of an end without an answer, as a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from boosters_eval.engine import memory
from boosters_eval.engine.outcome import Failure, ImportFailure
from boosters_eval.engine.processes import end_name, signal_name

if TYPE_CHECKING:
    from boosters_eval.engine.cell import Cell
    from boosters_eval.engine.channel import LaneEvent
    from boosters_eval.engine.executor import Limits


def import_failure(cell: Cell, failed: dict[str, Any]) -> ImportFailure:
    """The failure of a cell whose lane could not load its target."""
    return ImportFailure.of(
        cell,
        error_type=failed["failed"],
        error_message=f"{cell.target} could not be imported: {failed['message']}",
        traceback=failed.get("traceback"),
    )


def death(cell: Cell, event: LaneEvent, limits: Limits) -> Failure:
    """The failure of a process that ended without an answer, with the cause as far as the system reports it."""
    code = event.exit or 0
    name = signal_name(-code) if code < 0 else None
    if event.ended == "timeout":
        kind, message = "Timeout", f"not finished after {limits.timeout_s:g} s; the process was killed"
    elif limits.memory_mb is not None and memory.looks_exhausted(event.stderr):
        kind, message = "MemoryLimit", _limit_sentence(limits, f"the process ended with {end_name(code)}")
    elif name == "SIGKILL":
        kind, message = "Killed", "killed by SIGKILL: probably the system ran out of memory"
    elif name is not None:
        under = f", under a memory limit of {limits.memory_mb:g} MB" if limits.memory_mb is not None else ""
        kind, message = "Crash", f"the process died of {name}{under}"
    else:
        kind, message = "Exit", f"the process ended by itself with exit status {code}"
    return Failure.of(
        cell,
        error_type=kind,
        error_message=message,
        phase=event.phase,
        signal=name,
        stderr_tail=event.stderr,
    )


def within_limits(failure: Failure, limits: Limits) -> Failure:
    """The same failure, named as one of the memory limit where that is its cause."""
    if limits.memory_mb is None or not memory.looks_exhausted(
        failure.error_type, failure.error_message, failure.stderr_tail
    ):
        return failure
    sentence = _limit_sentence(limits, failure.error_message)
    return failure.model_copy(update={"error_type": "MemoryLimit", "error_message": sentence})


def _limit_sentence(limits: Limits, detail: str) -> str:
    return f"needed more than the {limits.memory_mb:g} MB that a cell may allocate ({detail})"
