"""The process of one cell, from isolation to the outcome."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import traceback
from typing import TYPE_CHECKING, Any, NoReturn

from boosters_eval.core.repeat import Repeat
from boosters_eval.core.text import encodable
from boosters_eval.engine import memory
from boosters_eval.engine.cell import Cell, Target
from boosters_eval.engine.outcome import Failure
from boosters_eval.engine.processes import adopt_orphans
from boosters_eval.engine.threads import pin

if TYPE_CHECKING:
    from collections.abc import Callable

    from boosters_eval.engine.workload import Workload

RESULT, FAILURE = "result", "failure"  # the first word of an answer
_TRACEBACK = 8_000  # characters
_MESSAGE = 2_000


class _Phases:
    """The current phase. Each is reported to the lane, which needs it if this process dies."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self.now = "start"

    def __call__(self, phase: str) -> None:
        self.now = " ".join(encodable(phase).split())  # a line break would end the message, and begin another
        _write(self._pipe, f"phase {self.now}\n")


def run_child(
    workload: type[Workload], load: Callable[[], Any], request: dict[str, Any], pipe: int, capture: int
) -> NoReturn:
    """Run the cell and send its outcome. This process always ends here."""
    try:
        _isolate(request["cpus"], capture)
        spec = workload.spec_type.model_validate(request["spec"])
        cell = Cell(spec, Target.model_validate(request["target"]), Repeat(*request["repeat"]))
        _write(pipe, _answer(workload, load, cell, request, _Phases(pipe)))
        os._exit(0)
    except BaseException:  # noqa: BLE001 (sending the outcome failed too: report on stderr and exit)
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(70)


def _answer(
    workload: type[Workload], load: Callable[[], Any], cell: Cell, request: dict[str, Any], phases: _Phases
) -> str:
    """The outcome or the failure, as a line. A Rust panic is a BaseException, so everything is caught."""
    what = f"{cell.target} could not be imported: "
    try:
        loaded = load()
        what = ""
        if request["memory_limit"] is not None:
            memory.limit(request["memory_limit"])
        outcome = workload.run(cell, loaded, request["inputs"], phases)
        _check(workload, cell, outcome)
        text = outcome.model_dump_json()
        workload.outcome_type.model_validate_json(text)  # a NaN, say, is written as null, which no reader would accept
    except BaseException as error:  # noqa: BLE001 (see above; the process ends right after)
        failure = Failure.of(
            cell,
            phase=phases.now,
            error_type=type(error).__name__,
            error_message=what + message_of(error),
            traceback=encodable(traceback.format_exc()[-_TRACEBACK:]),
        )
        return f"{FAILURE} {failure.model_dump_json()}\n"
    return f"{RESULT} {text}\n"


def _check(workload: type[Workload], cell: Cell, outcome: Any) -> None:
    wanted = workload.outcome_type
    if not isinstance(outcome, wanted) or outcome.key != cell.key:
        raise TypeError(f"The workload '{workload.name}' must return the {wanted.__name__} of {cell.key}.")


def message_of(error: BaseException) -> str:
    """The text of an exception, which may fail to produce one."""
    try:
        return encodable(str(error)[:_MESSAGE])
    except Exception:  # noqa: BLE001 (see above)
        return "(no message)"


def _write(pipe: int, text: str) -> None:
    data = text.encode()
    while data:
        data = data[os.write(pipe, data) :]


def _isolate(cpus: list[int], capture: int) -> None:
    """Give this process its own process group, CPUs and output."""
    with contextlib.suppress(OSError):  # the parent may have done it already
        os.setpgid(0, 0)
    for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    pin(cpus)
    adopt_orphans()  # a daemon of this cell must not be taken for one that an ended cell left to the lane
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(capture, 1)
    os.dup2(capture, 2)
