"""Backends that are programs: what they print, announce or die of is their cell's affair."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest

from boosters_eval.programs.parity.backend import ProcessBackend, WorkerError

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import json, os, signal, struct, sys
for line in sys.stdin:
    q = json.loads(line)
    if q["op"] == "versions":
        print('@@parity {"versions": {"my_program": "1.2"}}', flush=True)
    elif q["op"] == "fit":
        FIT
        print('@@parity {"elapsed_s": 0.25}', flush=True)
    elif q["op"] == "predict":
        open(q["out"], "wb").write(struct.pack("<6d", *range(6)))
        print('@@parity ' + json.dumps(ANSWER), flush=True)
    else:
        print('@@parity {"elapsed_s": 0}', flush=True)
"""
ANSWER = '{"elapsed_s": 1, "rows": 3, "columns": 2}'


def backend(fit: str = "pass", answer: str = ANSWER, program: str = PROGRAM) -> type[ProcessBackend]:
    class Program(ProcessBackend):
        name = "program"
        program = sys.executable
        install = "apt-get install it"
        options: ClassVar[dict[str, Any]] = {"scale": False}
        source: ClassVar[str]

        @classmethod
        def command(cls) -> tuple[str, ...]:
            return (sys.executable, "-c", cls.source)

    Program.source = program.replace("FIT", fit).replace("ANSWER", answer)
    return Program


def predicted(made: type[ProcessBackend], tmp_path: Path) -> Any:
    session = made.session(None, {"n_components": 2}, 1)  # type: ignore[arg-type]
    try:
        session.load(tmp_path)
        session.prepare()
        assert session.fit().elapsed_ns == 250_000_000, "the program times itself"
        return session.predict().prediction
    finally:
        session.close()


def test_numbers_come_row_by_row_and_whatever_else_is_printed_is_no_answer(tmp_path: Path) -> None:
    made = backend("print('{}'); print('\\x00 @@parity', flush=True)")
    assert np.array_equal(predicted(made, tmp_path), np.arange(6.0).reshape(3, 2))
    assert made.versions() == {"my program": "1.2"}
    assert made.missing() is None


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (backend("sys.exit(3)"), "ended with exit status 3 when asked to fit"),
        (backend("print('@@parity {', flush=True)"), "gave an answer that is not JSON"),
        (backend("print('@@parity 7', flush=True)"), "gave an answer that is no JSON object"),
        (backend("print('@@parity {}', flush=True)"), "must tell the seconds that it took. Got None"),
        (backend("print('x\\n' * 20000, flush=True)"), "printed 10000 lines instead of an answer"),
        (backend("print('x' * 2**21, flush=True)"), "printed a line of more than 1048576 characters"),
        (backend(answer='{"elapsed_s": 1}'), "must tell its rows and columns. Got None and None"),
        (backend(answer='{"elapsed_s": 1, "rows": 2, "columns": 2}'), "2 x 2 numbers were announced. Got 6"),
        (backend(answer='{"elapsed_s": -1, "rows": 3, "columns": 2}'), "must tell the seconds that it took. Got -1"),
    ],
)
def test_a_program_that_does_not_answer_is_an_error_with_a_sentence(
    made: type[ProcessBackend], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(WorkerError) as caught:
        predicted(made, tmp_path)
    assert sentence in str(caught.value)


def test_a_program_that_died_of_a_signal_takes_its_cell_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    monkeypatch.setattr(os, "kill", lambda _, number: sent.append(number))
    with pytest.raises(WorkerError):
        predicted(backend("os.kill(os.getpid(), signal.SIGKILL)"), tmp_path)
    assert sent == [9]


@pytest.mark.parametrize("program", ["", "print('@@parity {')", "print('@@parity [1]')", "import no_such_module"])
def test_a_program_that_lacks_what_it_needs_is_not_available(program: str) -> None:
    assert backend(program=program).missing() == f"{sys.executable} cannot run this backend: apt-get install it"
