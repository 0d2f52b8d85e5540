"""Whatever happens to a run, what it reports in the end is what an uninterrupted one reports."""

import json
import os
import random
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from boosters_eval import BoostersEvalWarning, Observer, execute, load_run, run_prepared
from boosters_eval.core.errors import RunError
from boosters_eval.engine.facts import RunFacts
from boosters_eval.engine.journal import read_journal
from boosters_eval.engine.plan import Exclusion
from boosters_eval.engine.runs import find_run, load_verified, verify
from boosters_eval.programs.benchmark.compare import is_success
from boosters_eval.programs.benchmark.results import ResultCollection
from boosters_eval.programs.benchmark.tables.build import build_tables
from boosters_eval.programs.benchmark.tables.document import build_document
from boosters_eval.runners.result import VOLATILE
from tiny import prepare_tiny, run_tiny, shared_pool, tiny_config


def lasting(collection):
    """Everything of a collection but its times, byte for byte."""
    kept = [
        json.dumps({k: v for k, v in r.model_dump(mode="json").items() if k not in VOLATILE})
        for r in collection.results
    ]
    return kept, [e.model_dump_json(exclude={"traceback", *VOLATILE}) for e in collection.errors]


class Stop(Observer):
    """Interrupts the run after some outcomes."""

    def __init__(self, after):
        self.left = after

    def begin(self, event):
        self.todo = event.todo

    def outcome(self, event):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


def interrupted(configs, after, **settings):
    with pytest.raises(KeyboardInterrupt):
        run_tiny(*configs, observer=Stop(after), **settings)


def test_resume_repeats_no_finished_cell_and_reports_the_same(faulty, home):
    configs = [tiny_config("none"), tiny_config("segfault")]
    whole = run_tiny(*configs, seeds=4)
    interrupted(configs, 3, seeds=4)
    with pytest.warns(
        BoostersEvalWarning, match=r"Attempt 2 of run \w+ is unfinished, so attempt 1, the latest finished"
    ):
        shown = load_run("last")
    assert lasting(shown) == lasting(whole)  # an interrupted attempt does not hide a finished one
    assert shown.metadata.unfinished_attempt == 2
    assert not is_success(shown, continue_on_error=True)
    assert "Attempt 2 of the run is unfinished; this is attempt 1." in build_tables(shown).notes
    assert len(find_run("last").load().outcomes) == 3
    watcher = Stop(-1)
    resumed = run_tiny(*configs, seeds=4, resume=True, observer=watcher)
    assert watcher.todo == 5
    assert lasting(resumed) == lasting(whole)
    assert find_run("last").attempts() == [1, 2]


def test_resume_of_a_finished_run_runs_nothing(faulty, home):
    first = run_tiny(tiny_config("none"))
    watcher = Stop(-1)
    again = run_tiny(tiny_config("none"), resume=True, observer=watcher)
    assert watcher.todo == 0
    assert again.results == first.results


def test_without_resume_a_new_attempt_is_kept_beside_the_first(faulty, home):
    run_tiny(tiny_config("none"))
    before = find_run("last").journal_path(1).read_bytes()
    run_tiny(tiny_config("none"))
    assert find_run("last").attempts() == [1, 2]
    assert find_run("last").journal_path(1).read_bytes() == before


def test_rerun_failed_repeats_only_errors(faulty, home):
    configs = [tiny_config("none"), tiny_config("segfault")]
    run_tiny(*configs, seeds=3)
    watcher = Stop(-1)
    again = run_tiny(*configs, seeds=3, rerun_failed=True, observer=watcher)
    assert watcher.todo == 3
    assert (len(again.results), len(again.errors)) == (3, 3)
    assert len(read_journal(find_run("last").journal_path(1)).outcomes) == 6


@pytest.fixture
def broken(home, tmp_path, monkeypatch):
    """A file: while it exists, the library crashes."""
    path = tmp_path / "broken"
    path.touch()
    monkeypatch.setenv("FAULTY_BROKEN", str(path))
    return path


def run_anew(*configs, observer=None, **settings):
    """With a pool of its own, whose processes see the environment of this moment."""
    return run_prepared(prepare_tiny(*configs, **settings), observer=observer)


def test_cell_that_failed_before_it_finished_stays_marked_however_it_is_run_again(faulty, broken):
    configs = [tiny_config("slow", "tiny/broken"), tiny_config("none")]
    assert [error.failed_before for error in run_anew(*configs, seeds=2).errors] == [0, 0]
    assert [error.failed_before for error in run_anew(*configs, seeds=2, rerun_failed=True).errors] == [1, 1]
    broken.unlink()
    mended = run_anew(*configs, seeds=2, rerun_failed=True)
    assert [(result.config_name, result.failed_before) for result in mended.flaky] == [("tiny/broken", 2)] * 2
    fresh = run_anew(*configs, seeds=2)
    assert [result.failed_before for result in fresh.results] == [2, 2, 0, 0]
    loaded = ResultCollection.from_json(load_run("last").to_json())
    assert [result.failed_before for result in loaded.results] == [2, 2, 0, 0]


@pytest.fixture
def lasting_moment(monkeypatch):
    """A slow cell never ends before a lane, on a busy machine, looks at its timeout."""
    monkeypatch.setenv("FAULTY_MOMENT", "2")


def test_a_cell_that_only_lacked_time_is_not_flaky_once_it_has_more(faulty, home, lasting_moment):
    config = tiny_config("slow")
    assert [error.error_type for error in run_anew(config, seeds=1, timeout=0.01).errors] == ["Timeout"]
    longer = run_anew(config, seeds=1, timeout=60, rerun_failed=True)
    assert [result.failed_before for result in longer.results] == [0]
    assert longer.flaky == []


def test_a_cell_that_had_as_much_time_before_is_flaky(faulty, home, lasting_moment):
    config = tiny_config("slow")
    run_anew(config, seeds=1, timeout=0.01)
    again = run_anew(config, seeds=1, timeout=0.01, rerun_failed=True)
    assert [error.failed_before for error in again.errors] == [1]


def test_failure_in_an_unfinished_attempt_counts_too(faulty, broken):
    configs = [tiny_config("slow", "tiny/broken")]
    with pytest.raises(KeyboardInterrupt):
        run_anew(*configs, seeds=4, jobs=1, observer=Stop(2))
    broken.unlink()
    assert [r.failed_before for r in run_anew(*configs, seeds=4, rerun_failed=True).results].count(1) == 2


def test_no_report_is_silent_about_a_flaky_cell(faulty, broken):
    run_anew(tiny_config("slow", "tiny/broken"), seeds=2)
    broken.unlink()
    mended = run_anew(tiny_config("slow", "tiny/broken"), seeds=2, rerun_failed=True)
    sentence = "tiny/broken: faulty is flaky: 2 of its cells finished only after failing (2 failed tries in all)."
    assert sentence in mended.to_markdown()
    assert mended.to_csv().count(",flaky,it failed once before it finished\n") == 2
    report = build_document(mended, "comparison")
    assert "2 finished, 0 failed, 2 flaky (finished only after failing)" in report.to_markdown()
    assert "Cells flaky" in report.to_html()


def test_session_that_continues_a_run_records_its_own_facts(faulty, home, monkeypatch):
    configs = [tiny_config("none")]
    interrupted(configs, 2, seeds=4, command_line=("first",))
    first = load_run("last").metadata.facts
    assert first.resumed == ()
    at = {"git_sha": "abcdef1234567", "git_branch": "other", "git_dirty": True}
    collected = RunFacts.collect
    monkeypatch.setattr(RunFacts, "collect", lambda plan, **known: collected(plan, **known).model_copy(update=at))
    run_tiny(*configs, seeds=4, resume=True, command_line=("second", "--resume"))
    facts = load_run("last").metadata.facts
    assert facts.model_copy(update={"resumed": ()}) == first
    assert [session.command for session in facts.resumed] == [("second", "--resume")]
    page = build_document(load_run("last"), "comparison").to_markdown()
    moment = facts.resumed[0].started_at.partition(".")[0].replace("T", " ") + " UTC"
    assert f"{moment} at abcdef1 (other, with changes)" in page
    run_tiny(*configs, seeds=4, resume=True)
    assert load_run("last").metadata.facts == facts


def at_commit(monkeypatch, sha):
    collected = RunFacts.collect.__func__

    def collect(cls, plan, **known):
        return collected(cls, plan, **known).model_copy(update={"git_sha": sha, "started_at": f"2026-{sha[:2]}"})

    monkeypatch.setattr(RunFacts, "collect", classmethod(collect))


def test_rerun_of_failed_cells_at_another_commit_keeps_the_commit_of_the_others(faulty, home, monkeypatch):
    configs = [tiny_config("none"), tiny_config("segfault")]
    with monkeypatch.context() as patched:
        at_commit(patched, "01aaaaa")
        run_tiny(*configs, seeds=2)
    with monkeypatch.context() as patched:
        at_commit(patched, "02bbbbb")
        facts = run_tiny(*configs, seeds=2, rerun_failed=True).metadata.facts
    assert (facts.git_sha, [session.git_sha for session in facts.resumed]) == ("01aaaaa", ["02bbbbb"])
    page = build_document(load_run("last"), "comparison").to_markdown()
    assert "01aaaaa" in page
    assert "2026-02 at 02bbbbb" in page


def test_rerun_without_a_failed_cell_leaves_everything_as_it_is(faulty, home):
    first = run_tiny(tiny_config("none"), seeds=2)
    again = run_tiny(tiny_config("none"), seeds=2, rerun_failed=True)
    assert again.metadata == first.metadata
    assert find_run("last").attempts() == [1]


def test_mode_may_be_given_by_its_value_but_not_by_another_word(faulty, home):
    prepared = prepare_tiny(tiny_config("none"))

    def attempt(mode):
        return execute(prepared.plan, shared_pool(), locate=prepared.inputs, mode=mode).attempt

    assert [attempt("new"), attempt("resume"), attempt("new")] == [1, 1, 2]
    with pytest.raises(ValueError, match="'again' is not a valid Mode"):
        attempt("again")


def test_metrics_are_the_same_for_any_number_of_jobs(faulty, home):
    configs = [tiny_config("none"), tiny_config("slow"), tiny_config("exit")]
    assert lasting(run_tiny(*configs, seeds=4, jobs=1)) == lasting(run_tiny(*configs, seeds=4, jobs=3))


SUITE = """
import numpy as np
from boosters_eval import BenchmarkConfig, BenchmarkSuite, DatasetConfig, Task, TrainingConfig

def load():
    rng = np.random.default_rng(7)
    x = rng.standard_normal((60, 3)).astype(np.float32)
    return x, x[:, 0].astype(np.float64) + 2.0

TINY = DatasetConfig(name="tiny", task=Task.REGRESSION, loader=load)
SUITE = BenchmarkSuite(name="mine", configs=[
    BenchmarkConfig(name=f"tiny/{d}", dataset=TINY, task=Task.REGRESSION,
                    training=TrainingConfig(max_depth=d), libraries=["faulty"])
    for d in (13, 1, 2)
], default_seeds=6)
"""


def test_sigkill_at_random_moments_then_resume_equals_an_uninterrupted_run(program, home, tmp_path):
    command, env = program
    suite = tmp_path / "suite.py"
    suite.write_text(SUITE)
    run = [*command, "run", "--suite", f"{suite}:SUITE", "--jobs", "2", "--continue-on-error", "-q", "-f", "json"]
    whole = subprocess.run(run, env=env, capture_output=True, text=True, check=True)
    uninterrupted = load_run("last")

    rng = random.Random(0)
    other = {**env, "BOOSTERS_EVAL_HOME": str(tmp_path / "other")}
    for _ in range(8):
        process = subprocess.Popen([*run, "--resume"], env=other, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.2, 1.4))
        process.send_signal(signal.SIGKILL)
        process.wait()
    done = subprocess.run([*run, "--resume"], env=other, capture_output=True, text=True, check=True)
    resumed = load_run("last", tmp_path / "other")
    assert lasting(resumed) == lasting(uninterrupted)
    assert len(resumed.results) == 12
    assert len(resumed.errors) == 6
    assert find_run("last", tmp_path / "other").attempts() == [1]
    strip = lambda text: [r["metrics"] for r in json.loads(text)["results"]]  # noqa: E731 (used twice, right here)
    assert strip(done.stdout) == strip(whole.stdout)


def test_killing_the_program_leaves_no_process_behind(program, home, tmp_path):
    command, env = program
    suite = tmp_path / "suite.py"
    suite.write_text(SUITE.replace("(13, 1, 2)", "(4,)"))
    mark = f"mark-{os.getpid()}-{time.time_ns()}"
    process = subprocess.Popen(
        [*command, "run", "--suite", f"{suite}:SUITE", "-q"],
        env={**env, "BOOSTERS_EVAL_TEST_MARK": mark},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 30
    while len(marked(mark)) < 3 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert len(marked(mark)) >= 3, "the program, a worker and a cell should be running"
    process.kill()
    process.wait()
    while marked(mark) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert marked(mark) == []


def marked(mark):
    """The processes that were started with this mark in their environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def excluding(reason, **settings):
    """The plan of a run that differs from others only in what it has no cells for."""
    prepared = prepare_tiny(tiny_config("none"), seeds=2, **settings)
    excluded = [Exclusion(spec="tiny/none", target="other", reason=reason)] if reason else []
    return replace(prepared, plan=prepared.plan.replace(excluded=tuple(excluded)))


def reasons(collection):
    return [item.reason for item in collection.unsupported]


@pytest.mark.parametrize(("first", "second"), [("", "it cannot"), ("it cannot", "nor now")])
def test_attempt_keeps_what_its_own_plan_excludes(faulty, home, first, second):
    """A run id does not depend on exclusions, so plan.json may be that of another attempt."""
    for text in (first, second):
        run_prepared(excluding(text), executor=shared_pool())
        assert reasons(load_run("last")) == reasons(load_run("last", verified=True)) == ([text] if text else [])
    folder = find_run("last")
    assert {fault for _, fault in verify(folder)} == {""}
    assert [item.reason for item in folder.load(1).plan.excluded] == ([first] if first else [])
    (folder.path / "plan-2.json").unlink()
    with pytest.raises(RunError, match=r"plan\.json: is not what it was when the attempt began"):
        load_run("last")


def test_attempt_at_another_plan_is_not_continued_but_taken_over(faulty, home):
    with pytest.raises(KeyboardInterrupt):
        run_prepared(excluding(""), observer=Stop(1), executor=shared_pool(1))
    watcher = Stop(-1)
    run_prepared(excluding("it cannot", resume=True), observer=watcher, executor=shared_pool(1))
    assert watcher.todo == 1
    assert find_run("last").attempts() == [1, 2]
    assert reasons(load_run("last", verified=True)) == ["it cannot"]
    again = run_prepared(excluding("it cannot", resume=True), executor=shared_pool(1))
    assert (find_run("last").attempts(), reasons(again)) == ([1, 2], ["it cannot"])


def test_plan_of_an_attempt_that_was_killed_before_it_began_is_not_mistaken_for_the_next(faulty, home):
    run_prepared(excluding(""), executor=shared_pool())
    folder = find_run("last")
    folder.journal_path(2).touch()
    folder.keep_plan(excluding("it cannot").plan, 2)
    assert (folder.path / "plan-2.json").exists()
    run_prepared(excluding("", resume=True), executor=shared_pool())
    assert folder.attempts() == [1, 2]
    assert reasons(load_run("last", verified=True)) == []


def test_an_attempt_whose_journal_was_deleted_is_damage_and_no_earlier_one_takes_its_place(faulty, home):
    run_tiny(tiny_config("none"))
    run_tiny(tiny_config("none"))
    folder = find_run("last")
    folder.journal_path(2).unlink()
    assert find_run("last").attempts() == [1, 2]
    assert dict(verify(folder))["journal-2.jsonl"] == "damaged: the file is missing"
    for use in (folder.load, lambda: load_verified(folder), lambda: run_tiny(tiny_config("none"), resume=True)):
        with pytest.raises(RunError, match=r"journal-2\.jsonl.*the file is missing"):
            use()
    assert run_tiny(tiny_config("none")).results
    assert load_verified(folder).attempt == 3


def test_a_run_whose_only_journal_was_deleted_is_still_the_last_one(faulty, home):
    run_tiny(tiny_config("none"))
    later = run_tiny(tiny_config("segfault"))
    folder = find_run(later.run_id)
    folder.journal_path(1).unlink()
    assert find_run("last").run_id == later.run_id
    with pytest.raises(RunError, match="the file is missing"):
        load_run("last")
