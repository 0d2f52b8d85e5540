"""A run that is interrupted has several sessions; the two sides of a pair of times are of one of them."""

import contextlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from boosters_eval import Executor, Mode, RunError, execute
from boosters_eval.engine import facts as facts_module
from boosters_eval.engine.cell import Failure
from shells import plan_of
from tiny import prepare_tiny, tiny_config

TARGETS = ("sh", "bash", "cat")
SEEDS = (1, 2, 3)


class Session(Executor):
    """Outcomes that tell the session that they are of; some fail, and after so many the program is killed."""

    def __init__(self, module, number, cells=None, failing=()):
        super().__init__(1)
        self.module, self.number, self.cells, self.failing = module, number, cells, failing
        self.ran = []

    def run(self, works, started):
        for work in works[: self.cells]:
            self.ran.append(work.cell.key)
            if work.cell.key in self.failing:
                yield Failure.of(work.cell, error_type="Crash", error_message="", phase="fit")
            else:
                yield self.module.ShellOutcome.of(work.cell, value=self.number)

    def close(self):
        pass


@pytest.fixture
def plan(shell, home, monkeypatch):
    """Made anew, with no run of it."""
    monkeypatch.setattr(facts_module, "_first_line", lambda *_: None)  # four programs per run are slow
    monkeypatch.setattr(shell.ShellSpec, "is_paired", property(lambda spec: spec.alone))
    numbers = iter(range(10_000))
    return lambda **fields: plan_of(
        shell, {"x": "echo 1"}, seeds=SEEDS, targets=TARGETS, **{"note": str(next(numbers)), "alone": True, **fields}
    )


def interrupted(plan, session, mode=Mode.RESUME):
    with pytest.raises(RunError, match="yielded no outcome"):
        execute(plan, session, mode=mode)


def sessions(run):
    """The sessions of each repeat."""
    found = {}
    for outcome in run.outcomes.values():
        found.setdefault(outcome.seed, set()).add(outcome.value)
    return found


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=12)
@given(stops=st.lists(st.integers(0, 8), max_size=4), failing=st.none() | st.integers(0, 8))
def test_however_often_a_run_is_interrupted_all_times_of_a_repeat_are_of_one_session(stops, failing, shell, plan):
    wanted, mode = plan(), Mode.RESUME
    if failing is not None:
        execute(wanted, Session(shell, -1, failing={wanted.keys[failing]}))
        mode = Mode.RERUN_FAILED
    for number, cells in enumerate([*stops, None]):
        with contextlib.suppress(RunError):
            done = execute(wanted, Session(shell, number, cells), mode=mode)
        mode = Mode.RESUME
    assert len(done.outcomes) == len(TARGETS) * len(SEEDS)
    assert all(len(found) == 1 for found in sessions(done).values())


def test_only_the_repeat_that_was_interrupted_is_measured_anew(shell, plan):
    wanted = plan()
    first, second = Session(shell, 1, 4), Session(shell, 2)
    interrupted(wanted, first)
    run = execute(wanted, second, mode=Mode.RESUME)
    assert sessions(run) == {1: {1}, 2: {2}, 3: {2}}
    assert len(second.ran) == 6
    assert first.ran[3] in second.ran


def test_what_is_not_timed_is_never_run_again(shell, plan):
    wanted = plan(alone=False)
    interrupted(wanted, Session(shell, 1, 4))
    second = Session(shell, 2)
    run = execute(wanted, second, mode=Mode.RESUME)
    assert len(second.ran) == 5
    assert sessions(run)[2] == {1, 2}


def test_with_a_cell_that_failed_its_repeat_is_measured_anew(shell, plan):
    wanted = plan()
    failing = wanted.keys[4]
    execute(wanted, Session(shell, 1, failing={failing}))
    second = Session(shell, 2)
    run = execute(wanted, second, mode=Mode.RERUN_FAILED)
    seed = run.outcomes[failing].seed
    assert sessions(run) == {repeat: {2 if repeat == seed else 1} for repeat in SEEDS}
    assert len(second.ran) == len(TARGETS)


def test_a_repeat_that_is_measured_anew_and_interrupted_again_is_not_taken_for_whole(shell, plan):
    wanted = plan()
    failing = wanted.in_running_order(wanted.cells)[0].key
    execute(wanted, Session(shell, 1, failing={failing}))
    interrupted(wanted, Session(shell, 2, 2), Mode.RERUN_FAILED)  # all but one of the three that belong together
    run = execute(wanted, Session(shell, 3), mode=Mode.RESUME)
    assert sessions(run)[run.outcomes[failing].seed] == {3}


def test_what_the_caller_has_measured_already_is_not_measured_again(shell, plan):
    wanted = plan()
    known = {cell.key: shell.ShellOutcome.of(cell, value=0) for cell in wanted.cells if cell.target.name != "cat"}
    session = Session(shell, 1)
    run = execute(wanted, session, known=known)
    assert len(session.ran) == 3
    assert all(found == {0, 1} for found in sessions(run).values())


def test_times_of_benchmarks_are_paired_and_their_metrics_are_not(faulty):
    for timed in (True, False):
        (spec,) = prepare_tiny(tiny_config("none"), timing_mode=timed).plan.specs
        assert spec.is_paired is timed
