"""Outcomes name the machine that they were computed on, and its record is on disk before the first of them."""

import json
import re

import pytest

from boosters_eval import LocalPool, Mode, Observer, RunError, execute
from boosters_eval.core.errors import ConfigError
from boosters_eval.core.machine import MachineInfo
from boosters_eval.engine.cell import Failure
from boosters_eval.engine.facts import RunFacts
from boosters_eval.engine.journal import Journal, read_journal
from boosters_eval.engine.runs import find_run, load_verified, verify
from shells import plan_of, run
from stamping import FAST, SLOW, Stamping, by_seed


@pytest.fixture
def plan(shell):
    return plan_of(shell, {"x": 'if [ "$SEED" = 3 ]; then exit 1; else echo "$SEED"; fi'}, seeds=(1, 2, 3))


class StopAfter(Observer):
    """Interrupts the run after some outcomes."""

    def __init__(self, outcomes):
        self.left = outcomes

    def outcome(self, event):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


def stamped(plan, place=by_seed, **options):
    with Stamping(place=place) as executor:
        return execute(plan, executor, **options)


def placed(run):
    return {key: outcome.machine for key, outcome in run.outcomes.items()}


def lines(plan):
    return find_run(plan.run_id).journal_path(1).read_bytes().splitlines(keepends=True)


def kinds(plan):
    return [re.search(rb'"(begin|result|failure|end)":', line)[1].decode() for line in lines(plan)]


def test_outcomes_and_failures_come_back_with_their_machines_and_the_records_of_these(plan):
    done = stamped(plan)
    assert placed(done) == {cell.key: by_seed(cell).digest for cell in plan.cells}
    assert {type(outcome) is Failure for outcome in done.outcomes.values()} == {True, False}
    found = load_verified(find_run(plan.run_id))
    assert found.machines == done.machines == {machine.digest: machine for machine in (SLOW, FAST)}
    assert placed(found) == placed(done)
    assert found.begin == done.begin
    assert [fault for _, fault in verify(find_run(plan.run_id))] == [""]


def test_a_machine_is_told_of_before_the_first_outcome_that_names_it(plan):
    stamped(plan)
    told = set()
    for line in lines(plan):
        raw = json.loads(line)
        told |= raw.get("begin", {}).get("machines", {}).keys()
        named = (raw.get("result") or raw.get("failure") or {}).get("machine")
        assert named is None or named in told
    assert kinds(plan).count("begin") == 3  # the first line, and one per machine


def test_run_of_the_local_pool_says_nothing_of_machines(plan):
    done = run(plan)
    text = b"".join(lines(plan))
    assert b'"machine' not in text
    assert done.machines == {}
    assert set(placed(done).values()) == {None}


def test_kill_between_the_record_of_a_machine_and_its_outcome_loses_neither(plan, monkeypatch):
    class Killed(BaseException):
        """Nothing handles it, as nothing handles a kill."""

    def die(*_):
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(Journal, "append", die)
        with pytest.raises(Killed):
            stamped(plan)
    assert kinds(plan) == ["begin", "begin"]
    assert len(find_run(plan.run_id).load().machines) == 1
    done = stamped(plan, mode=Mode.RESUME)
    assert done.missing == 0
    assert kinds(plan).count("begin") == 3  # the machine that was known is not told of again
    assert [fault for _, fault in verify(find_run(plan.run_id))] == [""]


@pytest.mark.parametrize("cut", [1, 40, 200])
def test_record_of_a_machine_that_was_half_written_is_written_again(plan, cut):
    with pytest.raises(KeyboardInterrupt):
        stamped(plan, lambda _: SLOW, observer=StopAfter(1))
    path = find_run(plan.run_id).journal_path(1)
    first, told, _ = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + told[:-cut])
    done = stamped(plan, lambda _: SLOW, mode=Mode.RESUME)
    assert set(placed(done).values()) == {SLOW.digest}
    assert [fault for _, fault in verify(find_run(plan.run_id))] == [""]


def test_run_of_nodes_that_is_resumed_here_tells_its_own_outcomes_from_theirs(plan):
    with pytest.raises(KeyboardInterrupt):
        stamped(plan, observer=StopAfter(2))
    before = placed(find_run(plan.run_id).load())
    done = run(plan, mode=Mode.RESUME)
    assert None not in before.values()
    assert placed(done) == {cell.key: before.get(cell.key) for cell in plan.cells}


def on(monkeypatch, machine):
    collected = RunFacts.collect.__func__

    def collect(cls, plan, **known):
        return collected(cls, plan, **known).model_copy(update={"machine": machine.recorded()})

    monkeypatch.setattr(RunFacts, "collect", classmethod(collect))


def test_session_on_another_machine_than_the_first_names_its_own(plan, monkeypatch):
    with pytest.raises(KeyboardInterrupt):
        run(plan, observer=StopAfter(2))
    before = set(placed(find_run(plan.run_id).load()))
    on(monkeypatch, FAST)
    done = run(plan, mode=Mode.RESUME)
    assert placed(done) == {cell.key: None if cell.key in before else FAST.digest for cell in plan.cells}
    assert done.machines == {FAST.digest: FAST}


def test_failed_cells_that_run_again_on_another_machine_name_it(plan, monkeypatch):
    failed = {failure.key for failure in run(plan).failures}
    on(monkeypatch, FAST)
    done = run(plan, mode=Mode.RERUN_FAILED)
    assert placed(done) == {cell.key: FAST.digest if cell.key in failed else None for cell in plan.cells}


def test_attempt_that_takes_over_outcomes_takes_over_their_machines(plan):
    first = stamped(plan)
    again = stamped(plan, lambda _: FAST, mode=Mode.RERUN_FAILED)
    assert again.attempt == 2
    expected = {key: FAST.digest if isinstance(one, Failure) else one.machine for key, one in first.outcomes.items()}
    assert placed(again) == expected
    assert load_verified(find_run(plan.run_id)).machines == {FAST.digest: FAST, SLOW.digest: SLOW}


@pytest.mark.parametrize("change", [(b'"cpu_cores": 4', b'"cpu_cores": 8'), (b"Slow CPU", b"Fast CPU")])
def test_verify_finds_an_edited_record_of_a_machine(plan, change):
    stamped(plan)
    path = find_run(plan.run_id).journal_path(1)
    content = path.read_bytes()
    assert change[0] in content
    path.write_bytes(content.replace(*change))
    ((name, fault),) = verify(find_run(plan.run_id))
    assert (name, fault.partition(":")[0]) == ("journal.jsonl", "damaged")
    with pytest.raises(RunError, match="is damaged"):
        find_run(plan.run_id).load()


@pytest.mark.parametrize("told", [{}, {SLOW.digest: FAST, FAST.digest: SLOW}])
def test_executor_that_names_a_machine_it_does_not_know_is_named(plan, told):
    class Forgetful(Stamping):
        def machines(self):
            return told

    with Forgetful() as executor, pytest.raises(RunError) as caught:
        execute(plan, executor)
    assert str(caught.value).startswith("The executor Forgetful yielded an outcome of the machine ")


def test_outcome_of_a_machine_that_no_line_tells_of_is_damage(plan):
    done = stamped(plan)
    folder = find_run(plan.run_id)
    journal, _ = folder.open(new=True)
    journal.begin({"run_id": plan.run_id})
    journal.append(done.results[0], "shell")
    journal.close()
    assert "no line before it tells of the machine" in read_journal(folder.journal_path(2)).damage


def test_record_of_a_machine_whose_digest_is_another_is_refused():
    with pytest.raises(ConfigError, match="has the digest"):
        MachineInfo.of_record({**SLOW.recorded(), "digest": FAST.digest})


def test_machine_comes_back_from_its_record():
    assert MachineInfo.of_record(SLOW.recorded()) == SLOW


def test_local_pool_tells_of_no_machine():
    with LocalPool(1) as pool:
        assert pool.machines() == {}
