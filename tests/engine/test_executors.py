"""Whatever an executor does, a run is sealed only when each of its cells has exactly one outcome."""

import pytest

from boosters_eval import Executor, Mode, RunError, execute
from boosters_eval.engine.outcome import Failure
from boosters_eval.engine.runs import find_run, verify
from shells import plan_of, run


class Scripted(Executor):
    """Yields what it was told to, for each piece of work."""

    def __init__(self, answer):
        super().__init__(1)
        self.answer = answer

    def run(self, works, started):
        for work in works:
            yield from self.answer(work.cell)

    def close(self):
        pass


def answers(module):
    def outcome(cell):
        return module.ShellOutcome.of(cell, value=1)

    return {
        "never": lambda cell: [outcome(cell)] if cell.repeat.seed == 1 else [],
        "twice": lambda cell: [outcome(cell), outcome(cell)],
        "foreign": lambda cell: [outcome(cell).model_copy(update={"target": "zsh"})],
        "nothing": lambda cell: [None],
    }


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("never", "The executor Scripted yielded no outcome for 1 of 2 cells."),
        ("twice", "The executor Scripted yielded something that is not an outcome of an open cell."),
        ("foreign", "The executor Scripted yielded something that is not an outcome of an open cell."),
        ("nothing", "The executor Scripted yielded something that is not an outcome of an open cell."),
    ],
)
def test_executor_that_breaks_its_promise_is_named_and_the_run_can_go_on(shell, kind, sentence):
    plan = plan_of(shell, {"x": "echo 1"}, targets=("sh",))
    with pytest.raises(RunError) as caught:
        execute(plan, Scripted(answers(shell)[kind]))
    assert str(caught.value) == sentence
    assert [fault.partition(":")[0] for _, fault in verify(find_run(plan.run_id))] == ["incomplete"]
    assert run(plan, mode=Mode.RESUME).missing == 0
    assert find_run(plan.run_id).attempts() == [1]


def test_failure_is_remembered_across_an_attempt_that_did_not_reach_its_cell(shell):
    plan = plan_of(shell, {"x": "echo 1"}, targets=("sh",))

    def crash(cell):
        return [Failure.of(cell, error_type="Crash", error_message="", phase="fit")]

    execute(plan, Scripted(crash))
    with pytest.raises(RunError):
        execute(plan, Scripted(answers(shell)["never"]))
    again = execute(plan, Scripted(lambda cell: [shell.ShellOutcome.of(cell, value=1)]))
    assert [outcome.failed_before for outcome in again.results] == [1, 1]
