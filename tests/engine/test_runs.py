"""A run is found by its id, the beginning of it, its name or `last`; summaries count without parsing."""

import os
import re
import shutil
import warnings

import pytest

from boosters_eval import BoostersEvalWarning, ConfigError, Mode, RunError, Settings, execute
from boosters_eval.engine import summaries
from boosters_eval.engine.folder import RunFolder
from boosters_eval.engine.runs import find_run, list_folders, load_verified
from boosters_eval.engine.summaries import summarize
from scripted import Scripted, failing, interrupted, made_run


def test_run_is_found_by_id_prefix_name_and_last(shell, home):
    one, other = made_run(shell, "a", at=1, name="first"), made_run(shell, "b", at=2)
    assert find_run(one.run_id).run_id == one.run_id
    assert find_run(one.run_id[:9]).run_id == one.run_id
    assert find_run("first").run_id == one.run_id
    assert find_run("last").run_id == other.run_id


def test_an_attempt_is_found_by_its_number(shell, home):
    plan = made_run(shell, "a", at=1)
    assert find_run(f"{plan.run_id[:9]}/1").attempt == 1
    with pytest.raises(ConfigError, match=rf"^Run {plan.run_id} has no attempt '3', only attempt 1\.$"):
        find_run(f"{plan.run_id}/3")


def test_ambiguity_lists_the_candidates_with_their_names(shell, home):
    one, other = made_run(shell, "a", at=1, name="first"), made_run(shell, "b", at=2)
    for plan, twin in ((one, "abc1"), (other, "abc2")):
        (home / "runs" / plan.run_id).rename(home / "runs" / twin)
    with pytest.raises(ConfigError, match=r"The run id 'abc' is ambiguous: abc2 and abc1 \(first\)\."):
        find_run("abc")


def test_unknown_reference_gets_the_nearest_name_or_the_list(shell, home):
    with pytest.raises(ConfigError, match=r"No run 'x' in .*runs: there are none yet\."):
        find_run("x")
    made_run(shell, "a", name="night-build")
    with pytest.raises(ConfigError, match="Did you mean 'night-build'"):
        find_run("nightbuild")
    with pytest.raises(ConfigError, match="See 'boosters-eval runs list'"):
        find_run("x")


def test_last_is_the_latest_of_the_kind_and_says_if_another_is_later(shell, home):
    mine, other = made_run(shell, "a", at=1, kind="benchmark"), made_run(shell, "b", at=2, kind="parity")
    with pytest.warns(BoostersEvalWarning) as said:
        assert find_run("last", kind="benchmark").run_id == mine.run_id
    assert [str(item.message) for item in said] == [
        f"'last' is {mine.run_id}, the latest benchmark run; {other.run_id} is later, but a parity run."
    ]
    assert find_run("last", kind="parity").run_id == other.run_id
    with pytest.raises(ConfigError, match=r"There is no paper run in .*, only others"):
        find_run("last", kind="paper")


def test_latest_of_several_runs_of_one_name_is_found_and_said(shell, home):
    one, other = made_run(shell, "a", at=1, name="same"), made_run(shell, "b", at=2, name="same")
    with pytest.warns(
        BoostersEvalWarning, match=f"'same' is {other.run_id}, the latest run of that name.*{one.run_id}"
    ):
        assert find_run("same").run_id == other.run_id


def test_latest_of_one_name_is_the_latest_attempt_of_that_name_not_of_its_run(shell, home):
    one, other = made_run(shell, "a", at=1, name="same"), made_run(shell, "b", at=2, name="same")
    made_run(shell, "a", at=3, name="another")
    os.utime(home / "runs" / one.run_id / "journal.jsonl", (1, 1))  # of its first attempt
    with pytest.warns(BoostersEvalWarning, match=f"'same' is {other.run_id}, the latest run of that name"):
        assert find_run("same").run_id == other.run_id


def test_of_many_runs_a_few_are_listed(shell, home):
    plan = made_run(shell, "a", name="nightly")
    for number in range(8):
        shutil.copytree(home / "runs" / plan.run_id, home / "runs" / f"beef{number}")
    with pytest.raises(ConfigError, match=r"ambiguous: beef(\d \(nightly\), beef){4}\d \(nightly\) and 3 others\.$"):
        find_run("beef")
    with pytest.warns(BoostersEvalWarning, match=r"others are (\w+, ){4}\w+ and 3 others\.$"):
        find_run("nightly")


def test_looks_of_one_run_share_its_name_without_a_word(shell, home):
    one = made_run(shell, "a", at=1, name="auto")
    two = made_run(shell, "b", at=2, name="auto", extends=one.run_id)
    three = made_run(shell, "c", at=3, name="auto", extends=two.run_id)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert find_run("auto").run_id == three.run_id


def test_name_means_the_attempt_that_has_it(shell, home):
    plan = made_run(shell, "a", name="first")
    made_run(shell, "a", name="second")
    assert find_run("first").attempt == 1
    assert load_verified(find_run("first")).attempt == 1
    assert load_verified(find_run("second")).attempt == 2
    assert load_verified(find_run(plan.run_id)).attempt == 2


def test_name_is_no_part_of_the_plan_and_resuming_keeps_it(shell, home):
    plan = interrupted(shell, "a", name="long-one")
    assert execute(plan, Scripted(shell), mode=Mode.RESUME).facts.display_name == "long-one"
    assert find_run("long-one").attempts() == [1]
    again = interrupted(shell, "b", name="x1")
    execute(again, Scripted(shell), mode=Mode.RESUME, facts={"name": "renamed"})
    assert find_run("renamed").run_id == again.run_id
    with pytest.raises(ConfigError, match="No run 'x1'"):
        find_run("x1")


@pytest.mark.parametrize("name", ["last", "12ab", "cafe", "", "-x", "a b", "../x", "x" * 65, "a/b", "\udcff"])
def test_name_that_could_be_taken_for_something_else_is_refused(name):
    told = f"^The 'name' parameter must be up to 64 letters, .* Got {re.escape(repr(name))} instead\\.$"
    with pytest.raises(ConfigError, match=told):
        Settings(name=name)


@pytest.mark.parametrize("name", ["nightly", "2026-11-16", "v1.2", "lgbm_deep", "x" * 64, "größer"])
def test_name_may_be_what_people_write(name):
    assert Settings(name=name).name == name


def test_unfinished_attempt_hides_no_finished_one_from_whoever_is_shown_it(shell, home):
    plan = made_run(shell, "a")
    interrupted(shell, "a")
    folder = find_run(plan.run_id)
    with pytest.warns(
        BoostersEvalWarning, match="Attempt 2 of run .* is unfinished, so attempt 1, the latest finished"
    ):
        assert folder.shown() == 1
    with pytest.raises(RunError, match="incomplete"):  # whoever decides is told
        load_verified(folder)
    text = folder.journal_path(2).read_text()
    folder.journal_path(2).write_text(text.replace('"', "'", 1))  # that is damage, and no interruption
    with pytest.raises(RunError, match="is damaged"):
        folder.shown()
    folder.journal_path(2).unlink()  # so is this
    assert folder.shown() == 2


def test_summary_counts_what_is_done_failed_and_missing(shell, home):
    finished = summarize(find_run(made_run(shell, "a", name="n").run_id))
    assert (finished.state, finished.done, finished.failed, finished.missing) == ("finished", 2, 0, 0)
    assert (finished.kind, finished.title, finished.facts.display_name, finished.attempts) == (
        "shell",
        "shells",
        "n",
        1,
    )
    assert finished.size > 500
    open_ = summarize(find_run(interrupted(shell, "b").run_id))
    assert (open_.state, open_.done, open_.failed, open_.missing) == ("unfinished", 1, 0, 1)
    failed = summarize(find_run(failing(shell, "c").run_id))
    assert (failed.state, failed.done, failed.failed, failed.missing) == ("finished", 0, 2, 0)


def test_cell_that_failed_and_ran_again_counts_once(shell, home):
    plan = interrupted(shell, "a", answer="failure")
    with pytest.raises(RunError):
        execute(plan, Scripted(shell, stop_after=1), mode=Mode.RERUN_FAILED)
    found = summarize(find_run(plan.run_id))
    assert (found.done, found.failed, found.missing) == (1, 0, 1)


def test_older_runs_that_did_not_record_their_cells_are_counted_from_the_plan(shell, home, monkeypatch):
    plan = interrupted(shell, "a")
    journal = find_run(plan.run_id).journal_path(1)
    journal.write_bytes(journal.read_bytes().replace(b'"cells": 2, ', b""))
    assert summarize(find_run(plan.run_id)).missing == 1


@pytest.mark.parametrize(
    ("file", "content"), [("environment.json", "{"), ("plan.json", "nothing"), ("journal.jsonl", None)]
)
def test_damaged_run_is_summarized_as_such(shell, home, file, content):
    path = home / "runs" / made_run(shell, "a").run_id / file
    if content is None:
        path.unlink()
    else:
        path.write_text(content)
    [found] = map(summarize, list_folders())
    assert found.state == "unreadable"
    assert found.fault
    assert found.size > 0


def test_folder_without_an_attempt_and_a_stray_file_are_not_hidden(shell, home):
    (home / "runs" / "empty").mkdir(parents=True)
    (home / "runs" / "stray").touch()
    states = {found.run_id: found.state for found in map(summarize, list_folders())}
    assert states == {"empty": "not begun", "stray": "unreadable"}


def test_run_that_is_being_executed_is_seen_without_disturbing_it(shell, home):
    folder = RunFolder(home / "runs" / interrupted(shell, "a").run_id)
    assert not summaries.is_running(folder.path)
    journal, _ = folder.open(new=False)
    assert summarize(folder).state == "running"
    journal.close()
    assert not summaries.is_running(folder.path)
    (folder.path / "lock").unlink()
    os.mkfifo(folder.path / "lock")  # is not waited for
    assert not summaries.is_running(folder.path)
    (folder.path / "lock").unlink()
    assert not summaries.is_running(folder.path)
    assert not (folder.path / "lock").exists()
