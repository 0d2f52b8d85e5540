"""Runs that no process has executed: their outcomes are made up, so that thousands take no time."""

import os
from unittest import mock

import pytest

from boosters_eval import Executor, RunError, execute
from boosters_eval.core.files import find_home
from boosters_eval.engine import facts as facts_module
from boosters_eval.engine.cell import Failure
from shells import plan_of


class Scripted(Executor):
    """An outcome for each cell, or a failure; nothing more after so many."""

    def __init__(self, module, answer="outcome", stop_after=None):
        super().__init__(1)
        self.module, self.answer, self.stop_after = module, answer, stop_after

    def run(self, works, started):
        for work in works[: self.stop_after]:
            if self.answer == "failure":
                yield Failure.of(work.cell, error_type="Crash", error_message="", phase="fit")
            else:
                yield self.module.ShellOutcome.of(work.cell, value=1)

    def close(self):
        pass


def _made(module, script, executor, at=None, **facts):
    plan = plan_of(module, {script: f"echo {script}"}, targets=("sh",))
    try:
        with mock.patch.object(facts_module, "_first_line", return_value=None):  # four programs per run are slow
            execute(plan, executor, facts=facts)
    finally:
        folder = find_home() / "runs" / plan.run_id
        for path in folder.glob("*.json*") if at is not None else ():
            os.utime(path, (at, at))
    return plan


def made_run(module, script, *, at=None, **facts):
    """A finished run of two cells, last written to at this time, with these facts."""
    return _made(module, script, Scripted(module), at, **facts)


def failing(module, script, **facts):
    """A finished run in which both cells failed."""
    return _made(module, script, Scripted(module, "failure"), **facts)


def interrupted(module, script, *, answer="outcome", **facts):
    """A run that stopped after one of its two cells."""
    with pytest.raises(RunError, match="yielded no outcome"):
        _made(module, script, Scripted(module, answer, 1), **facts)
    return plan_of(module, {script: f"echo {script}"}, targets=("sh",))
