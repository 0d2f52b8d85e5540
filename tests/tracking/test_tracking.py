"""What trackers are told of a run, and that none of them can cost it anything."""

import importlib
import io
import json
import os
import re
import time
from dataclasses import replace
from typing import ClassVar

import pytest
from filelock import FileLock, Timeout
from sendings import calls, send

from boosters_eval import (
    TRACKERS,
    BoostersEvalWarning,
    ConfigError,
    Observer,
    RunError,
    Tracker,
    execute,
    run_prepared,
    track_run,
)
from boosters_eval.core.errors import MissingLibraryError, UnknownNameError
from boosters_eval.core.registry import Registry, must_extend
from boosters_eval.core.terms import listen
from boosters_eval.engine.folder import RunFolder
from boosters_eval.engine.runs import find_run
from boosters_eval.runners.parameters import Mark
from boosters_eval.tracking import observer as observers
from boosters_eval.tracking.builtin import accept_names
from boosters_eval.tracking.observer import WAIT_VARIABLE, Outpost, TrackingObserver, choose_trackers, read_wait
from boosters_eval.tracking.sender import News, Sending, attend, collect_content, identify_run
from stamping import FAST, SLOW, Stamping
from tiny import prepare_tiny, run_tiny, shared_pool, tiny_config


class Stop(Observer):
    """Ctrl-C after so many cells."""

    def __init__(self, after):
        self.left = after

    def outcome(self, event):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


def test_whole_run_is_sent_with_its_parameters_marks_numbers_versions_and_files(noting):
    results = run_tiny(tiny_config("none"), tiny_config("segfault"), seeds=2)
    folder = find_run("last")
    assert send(noting, folder)[-1] == {"done": True}
    (begin,) = calls(noting, "begin")
    facts = results.metadata.facts
    assert begin["name"] == f"tiny {results.run_id[:8]}"
    assert (
        begin["facts"].items()
        >= {
            "run_id": results.run_id,
            "suite": "tiny",
            "cells": "4",
            "version.faulty": "1.0",
            "commit": facts.git_sha,
            "machine.cpu_model": facts.machine["cpu_model"],
        }.items()
    )
    first, second = calls(noting, "describe")
    assert (first["benchmark"], first["competitor"]) == ("tiny/none", "faulty")
    assert first["parameters"].items() >= {"max_depth": "1", "native.fault": "none", "dataset": "tiny"}.items()
    assert not {"seed", "native.seed"} & first["parameters"].keys()  # each cell has its own
    assert first["facts"]["version"] == "1.0"
    assert second["parameters"]["max_depth"] == "2"
    assert "native.fault" not in second["parameters"]  # no cell of it ever came to tell
    (log,) = calls(noting, "log")
    assert [(cell["step"], cell["metrics"]["rmse"]) for cell in log["cells"]] == [
        (result.seed, result.metrics["rmse"]) for result in results.results
    ]
    assert log["cells"][0]["metrics"].keys() >= {"train_time_s", "predict_time_s", "model_size_mb", "n_trees_trained"}
    (end,) = calls(noting, "end")
    assert end["status"] == "failed"
    assert end["sizes"].keys() == {"report.html", "results.json", "journal.jsonl"}
    assert end["sizes"]["journal.jsonl"] == folder.journal_path(1).stat().st_size
    good, bad = end["competitors"]["tiny/none|faulty"], end["competitors"]["tiny/segfault|faulty"]
    assert good["means"]["rmse"] == pytest.approx(sum(r.metrics["rmse"] for r in results.results) / 2)
    assert (good["status"], good["cells"], bad["status"], bad["cells"]) == ("finished", 2, "failed", 0)
    assert list(bad["failures"]) == [str(error.repeat) for error in results.errors]
    assert "SIGSEGV" in bad["failures"][str(results.errors[0].repeat)]


def test_run_on_other_machines_is_sent_with_their_names(noting):
    with Stamping() as executor:
        run_prepared(prepare_tiny(tiny_config("none"), seeds=2), executor=executor)
    send(noting, find_run("last"))
    (begin,) = calls(noting, "begin")
    facts = begin["facts"]
    assert {name: value for name, value in facts.items() if name.startswith("node.")} == {
        f"node.{machine.digest}": machine.cpu_model for machine in (SLOW, FAST)
    }


def test_marks_of_an_inexact_mapping_are_parameters(noting):
    run_tiny(tiny_config("none"))
    folder = find_run("last")
    run = folder.load()
    mark = Mark(parameter="max_bins", kind="approximated", reason="it has only 64")
    marked = {key: outcome.model_copy(update={"marks": (mark,)}) for key, outcome in run.outcomes.items()}
    content = collect_content(replace(run, outcomes=marked), folder, sealed=True, ended=True)
    assert content.competitors[0].parameters["mark.max_bins"] == "approximated: it has only 64"


def test_folds_are_steps_of_their_own(noting):
    run_tiny(tiny_config("none", folds=3))
    folder = find_run("last")
    send(noting, folder)
    (log,) = calls(noting, "log")
    seeds = [cell["seed"] for cell in log["cells"]]
    assert [(cell["step"], cell["fold"]) for cell in log["cells"]] == [(3 * seeds[0] + fold, fold) for fold in range(3)]


def test_sending_twice_changes_nothing(noting):
    run_tiny(tiny_config("none"), seeds=2)
    folder = find_run("last")
    send(noting, folder)
    before = noting.noted()
    assert send(noting, folder) == [{"done": True, "where": "nothing was sent: it has all of it already"}]
    assert noting.noted() == before


def test_what_is_sent_again_after_a_fault_is_the_same(noting, monkeypatch):
    run_tiny(tiny_config("none"), seeds=2)
    folder = find_run("last")
    said = []
    sending = Sending(lambda key: noting.NotingTracker(folder.path / f"{key}.json"), lambda **reply: said.append(reply))
    with monkeypatch.context() as patched:
        patched.setattr(noting.NotingTracker, "end", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            sending.send(folder, 1, ended=True)
    sending.send(folder, 1, ended=True)
    assert said[-1] == {"done": True}
    for what in ("begin", "describe", "log"):
        once, again = calls(noting, what)
        assert once == again


def test_interrupted_run_is_marked_and_then_continued_under_the_same_key(noting):
    config = tiny_config("none")
    with pytest.raises(KeyboardInterrupt):
        run_tiny(config, seeds=3, observer=Stop(1), jobs=1)
    folder = find_run("last")
    send(noting, folder)
    run_tiny(config, seeds=3, resume=True)
    send(noting, folder)
    marked, finished = calls(noting, "end")
    assert (marked["status"], marked["sizes"], marked["content"]) == ("interrupted", {}, "")
    assert marked["competitors"]["tiny/none|faulty"]["status"] == "interrupted"
    assert finished["status"] == "finished"
    assert len({call["key"] for call in calls(noting, "begin")}) == 1
    assert [len(call["cells"]) for call in calls(noting, "log")] == [1, 3]


def test_failed_cells_run_again_continue_the_run_but_a_new_attempt_is_another_one(noting):
    configs = [tiny_config("none"), tiny_config("segfault")]
    run_tiny(*configs)
    run_tiny(*configs, rerun_failed=True)
    run_tiny(*configs)
    folder = find_run("last")
    first, again, new = (identify_run(folder, attempt) for attempt in folder.attempts())
    assert first == again
    assert new != first


def test_looks_that_add_seeds_are_one_run(noting):
    one, two = (prepare_tiny(tiny_config("none"), seeds=n) for n in (1, 2))
    facts = {"kind": "benchmark"}
    first = execute(one.plan, shared_pool(), locate=one.inputs, facts=facts)
    more = {**facts, "extends": first.plan.run_id}
    second = execute(two.plan, shared_pool(), locate=two.inputs, known=first.outcomes, facts=more)
    folders = [find_run(run.plan.run_id) for run in (first, second)]
    said = []
    sending = Sending(lambda key: noting.NotingTracker(folders[0].path / key), lambda **reply: said.append(reply))
    sending.send(folders[0], 1, ended=False)
    sending.send(folders[1], 1, ended=True)
    assert len({call["key"] for call in calls(noting, "begin")}) == 1
    assert [len(call["cells"]) for call in calls(noting, "log")] == [1, 1]  # what is known is not sent again
    (end,) = calls(noting, "end")
    assert end["competitors"]["tiny/none|faulty"]["cells"] == 2
    assert identify_run(folders[1], 1) == identify_run(folders[0], 1)  # so that `track` finds it later


def test_running_run_is_sent_without_being_marked_as_ended(noting):
    run_tiny(tiny_config("none"))
    assert send(noting, find_run("last"), ended=False) == [{"where": f"page of tiny {find_run('last').run_id[:8]}"}]
    assert not calls(noting, "end")


def test_trackers_that_refuse_or_die_are_warnings_and_the_others_get_everything(noting, monkeypatch):
    monkeypatch.setenv(WAIT_VARIABLE, "600")  # the machine may be busy
    trackers = [noting.NotingTracker, noting.RefusingTracker, noting.DyingTracker]
    said = []
    prepared = prepare_tiny(tiny_config("none"), seeds=3)
    with pytest.warns(BoostersEvalWarning) as warned, listen(said.append):
        results = run_prepared(prepared, executor=shared_pool(), track=trackers)
    assert len(results.results) == 3
    assert said[-1] == f"NotingTracker: page of tiny {results.run_id[:8]}"
    texts = [str(each.message) for each in warned if "does not have all" in str(each.message)]
    assert [re.findall(r"'(\w+Tracker)' does not have all of run \w+: (.*)\. Send", text) for text in texts] == [
        [("RefusingTracker", "PermissionError: 401: who are you?")],
        [("DyingTracker", "its process ended with exit status 3: last words")],
    ]
    assert texts[0].endswith(f"""Send the rest with 'track_run("{results.run_id}", RefusingTracker)'.""")
    logged = [cell["key"] for call in calls(noting, "log") for cell in call["cells"]]
    assert sorted(logged) == sorted(result.key for result in results.results)
    assert calls(noting, "end")[-1]["status"] == "finished"


def test_tracker_that_hangs_is_ended_after_the_read_wait(noting, monkeypatch):
    monkeypatch.setenv(WAIT_VARIABLE, "0.1")
    with pytest.warns(BoostersEvalWarning, match=r"does not have all of run .*: it did not answer in time"):
        results = run_prepared(prepare_tiny(tiny_config("none")), executor=shared_pool(), track=noting.HangingTracker)
    assert len(results.results) == 1
    for call in calls(noting, "hang"):  # unless it was ended before it came to that
        with pytest.raises(ProcessLookupError):
            os.kill(call["pid"], 0)


class Fake:
    """Instead of a tracker's process."""

    made: ClassVar = []

    def __init__(self, name, tracker, **_):
        self.name, self.where, self.trouble, self.done = name, "there", "", True
        self.told = []
        self.made.append(self)

    def tell(self, **message):
        self.told.append(message)

    def listen(self):
        return True

    def hang_up(self):
        self.told.append("end")

    def await_end(self, deadline):
        return True

    def close(self):
        """It is gone."""


def test_ctrl_c_while_a_tracker_is_waited_for_ends_only_the_waiting(noting, monkeypatch):
    class Slow(Fake):
        def await_end(self, deadline):
            self.done = False
            raise KeyboardInterrupt

    monkeypatch.setattr(observers, "Outpost", Slow)
    with pytest.warns(BoostersEvalWarning, match="it was not waited for. Send the rest with"):
        results = run_prepared(prepare_tiny(tiny_config("none")), executor=shared_pool(), track=noting.NotingTracker)
    assert len(results.results) == 1


@pytest.mark.parametrize("timed", [False, True])
def test_nothing_runs_beside_cells_whose_times_are_measured(noting, monkeypatch, timed):
    monkeypatch.setattr(observers, "Outpost", Fake)
    monkeypatch.setattr(Fake, "made", [])
    seen = []

    class Watch(Observer):
        def outcome(self, event):
            seen.append(len(Fake.made))

    prepared = prepare_tiny(tiny_config("none"), seeds=2, timing_mode=timed, threads=1)
    with TrackingObserver({"noting": noting.NotingTracker}) as tracking:
        from boosters_eval import Observers

        run_prepared(prepared, observer=[Observers(Watch(), tracking)], executor=shared_pool())
    assert seen == ([0, 0] if timed else [1, 1])
    (outpost,) = Fake.made
    begin = {"folder": str(find_run("last").path.absolute()), "attempt": 1, "run": 0}
    assert outpost.told == ([{**begin, "ended": True}, "end"] if timed else [begin, {}, {}, "end"])


def test_end_of_the_program_however_it_comes_is_the_end_of_sending(noting):
    with pytest.raises(KeyboardInterrupt):
        run_tiny(tiny_config("none"), seeds=2, observer=Stop(1), jobs=1)
    place = {"folder": str(find_run("last").path), "attempt": 1, "run": 0}
    said = []
    sending = Sending(lambda key: noting.NotingTracker(find_run("last").path / key), lambda **_: None)
    code = attend(sending, News(io.BytesIO(json.dumps(place).encode() + b"\n{}\n")), lambda **r: said.append(r))
    assert (code, said) == (0, [{"well": True}])
    assert [call["status"] for call in calls(noting, "end")] == ["interrupted"]


def test_fault_at_the_end_is_told_and_is_the_exit_status(noting):
    run_tiny(tiny_config("none"))
    place = {"folder": str(find_run("last").path), "attempt": 1, "run": 0}
    said = []
    sending = Sending(noting.RefusingTracker, lambda **_: None)
    code = attend(sending, News(io.BytesIO(json.dumps(place).encode() + b"\n")), lambda **r: said.append(r))
    assert (code, said) == (1, [{"trouble": "PermissionError: 401: who are you?"}])


def test_tracker_of_an_installed_package_is_found_by_its_name(noting):
    importlib.invalidate_caches()
    registry = Registry("tracker", group="boosters_eval.trackers", fault=must_extend(Tracker))
    assert registry["noting"] is noting.NotingTracker


def test_missing_extra_is_one_sentence_with_its_command(monkeypatch):
    monkeypatch.setattr("boosters_eval.tracking.tracker.find_spec", lambda _: None)
    with pytest.raises(MissingLibraryError) as error:
        choose_trackers(["wandb"])
    assert str(error.value) == "The tracker 'wandb' needs wandb: pip install 'boosters-eval[tracking]'."


def test_mlflow_without_a_database_needs_a_server(monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setattr("boosters_eval.tracking.tracker.find_spec", lambda _: True)
    monkeypatch.setattr("boosters_eval.tracking.builtin.find_spec", lambda _: None)
    with pytest.raises(MissingLibraryError, match="The tracker 'mlflow' needs a server: set MLFLOW_TRACKING_URI"):
        choose_trackers("mlflow")


def test_wrong_arguments_are_refused_before_anything_runs(noting, monkeypatch):
    with pytest.raises(UnknownNameError, match=r"Unknown tracker 'mlfow'. Did you mean 'mlflow'"):
        run_prepared(prepare_tiny(tiny_config("none")), track="mlfow")
    with pytest.raises(ConfigError, match=r"The 'track' parameter must be names or Tracker classes. Got 7 instead"):
        run_prepared(prepare_tiny(tiny_config("none")), track=7)
    with pytest.raises(ConfigError, match=r"The 'to' parameter must name a tracker. Got nothing"):
        track_run("last", [])
    with pytest.raises(ConfigError, match=r"No run 'last'"):
        track_run("last", noting.NotingTracker)
    with pytest.raises(ConfigError, match=r"The 'timeout' parameter must be a number of seconds above 0. Got 0"):
        track_run("last", noting.NotingTracker, timeout=0)
    monkeypatch.setenv(WAIT_VARIABLE, "long")
    with pytest.raises(ConfigError, match=r"BOOSTERS_EVAL_TRACKING_WAIT must be seconds, from 0 to 86400. Got 'long'"):
        read_wait()


def test_run_that_is_going_on_is_not_sent_from_elsewhere(noting):
    run_tiny(tiny_config("none"))
    folder = RunFolder(find_run("last").path)
    journal, _ = folder.open(new=False)
    try:
        with pytest.raises(RunError, match="is being executed by another process"):
            track_run("last", noting.NotingTracker)
    finally:
        journal.close()


def test_process_keeps_others_from_sending_the_same_and_hanging_ends_itself_where_the_program_is_gone(noting, tmp_path):
    run_tiny(tiny_config("none"))
    folder = find_run("last")
    outpost = Outpost("HangingTracker", noting.HangingTracker, states=tmp_path, wait=0.0)
    try:
        outpost.tell(folder=str(folder.path), attempt=1, run=0)  # not the end: what hangs is a sending on the way
        while not calls(noting, "hang"):
            assert outpost.listen()
            time.sleep(0.02)
        with pytest.raises(Timeout):
            FileLock(tmp_path / "HangingTracker" / f"{identify_run(folder, 1)}.lock", timeout=0).acquire()
        outpost.hang_up()  # all that it sees of the program's death
        assert outpost.await_end(time.monotonic() + 30)
    finally:
        outpost.close()


def test_two_trackers_of_one_name_are_refused(noting):
    class NotingTracker(noting.NotingTracker):
        """Of another module, say."""

    with pytest.raises(ConfigError, match=r"must give each tracker a name of its own. Got two 'NotingTracker'"):
        choose_trackers([noting.NotingTracker, NotingTracker])


def test_tracker_that_cannot_tell_whether_it_is_missing_is_refused_with_a_sentence(noting, monkeypatch):
    monkeypatch.setattr(noting.NotingTracker, "missing", classmethod(lambda _: 1 / 0))
    with pytest.raises(MissingLibraryError, match=r"'NotingTracker' cannot tell .*: ZeroDivisionError: division by"):
        choose_trackers(noting.NotingTracker)


def test_names_that_mlflow_accepts_stay_different():
    long = "boosters_eval.unsupported." + "v" * 300
    given = ["f1@0.3", "f1_0.3", "f1#0.3", "a//b", "ok/name", f"{long}1", f"{long}2"]
    found = accept_names(given)
    assert (found["f1_0.3"], found["ok/name"], found["a//b"]) == ("f1_0.3", "ok/name", "a__b")
    assert accept_names(["f1@0.3"]) == {"f1@0.3": "f1_0.3"}
    assert len(set(found.values())) == len(given)
    assert all(re.fullmatch(r"[\w.\-/ ]{1,250}", name) for name in found.values())


def test_built_in_trackers_are_known_without_being_installed():
    assert {"mlflow", "wandb"} <= set(TRACKERS)


def test_tracker_that_its_process_could_not_find_is_refused_at_once():
    class Hidden(Tracker):
        def begin(self, run): ...
        def describe(self, competitor): ...
        def log(self, competitor, cells): ...
        def end(self, run, ending): ...

    with pytest.raises(ConfigError, match="The tracker 'Hidden' is defined inside a function"):
        choose_trackers(Hidden)


def test_process_that_cannot_be_started_costs_no_result(noting, monkeypatch):
    def refuse(*_, **__):
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(observers, "Outpost", refuse)
    with pytest.warns(BoostersEvalWarning) as warned:
        results = run_prepared(prepare_tiny(tiny_config("none")), executor=shared_pool(), track=noting.NotingTracker)
    assert len(results.results) == 1
    assert str(warned[-1].message).startswith(f"Run {results.run_id} could not be tracked: BlockingIOError")
