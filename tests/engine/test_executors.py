"""Whatever an executor does, a run is sealed only when each of its cells has exactly one outcome."""

import threading

import pytest

from boosters_eval import Executor, LocalPool, Mode, Observer, RunError, Work, execute
from boosters_eval.engine.cell import Failure
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


class Closing(Observer):
    """Closes the pool as soon as a cell has begun, from another thread."""

    def __init__(self, pool):
        self.pool = pool

    def phase(self, event):
        threading.Thread(target=self.pool.close).start()


def test_pool_that_is_closed_by_another_thread_ends_its_run(shell):
    plan = plan_of(shell, {"x": "sleep 600"}, targets=("sh",))
    pool = LocalPool(1)
    caught = []

    def hangs():
        try:
            execute(plan, pool, observer=Closing(pool))
        except RunError as error:
            caught.append(str(error))

    thread = threading.Thread(target=hangs, daemon=True)
    thread.start()
    thread.join(60)
    assert caught == ["The pool was closed during the run. Finished cells are kept; resume it to run the others."]
    folder = find_run(plan.run_id)
    assert [fault for _, fault in verify(folder)] == ["incomplete: 2 of 2 cells have no outcome"]
    with pool:  # it can be used again
        assert execute(plan_of(shell, {"y": "echo 1"}, targets=("sh",)), pool).missing == 0


def test_pool_that_is_closed_between_two_outcomes_ends_its_run(shell):
    plan = plan_of(shell, {"x": "echo 1"}, targets=("sh",))
    pool = LocalPool(1)
    outcomes = pool.run([Work(cell) for cell in plan.cells], lambda *_: None)
    next(outcomes)
    pool.close()
    with pytest.raises(RunError, match="was closed during the run"):
        next(outcomes)
