"""`runs list|show|open|remove`: every run is seen, and only what was asked for is removed."""

import json
import sys
import time
import webbrowser
from importlib import import_module

import pytest

from boosters_eval import WORKLOADS
from boosters_eval.cli.app import run
from boosters_eval.engine import runs as engine_runs
from boosters_eval.engine.folder import RunFolder
from processes import PLUGINS
from scripted import failing, interrupted, made_run


@pytest.fixture
def shell(place, monkeypatch):
    monkeypatch.syspath_prepend(str(PLUGINS))
    module = import_module("shell_workload")
    WORKLOADS.register("shell", module.Shell, replace=True)
    yield module
    WORKLOADS.unregister("shell")
    sys.modules.pop("shell_workload", None)


@pytest.fixture
def call(place, capsys):
    def call(*arguments, code=0):
        capsys.readouterr()
        assert run(["runs", *arguments]) == code, capsys.readouterr()
        return capsys.readouterr()

    return call


@pytest.fixture
def runs(place):
    return place / "home" / "runs"


def ids(printed):
    return [line.split()[0] for line in printed.out.splitlines()[2:] if line]


def test_list_shows_the_latest_first_with_all_that_is_known(shell, call):
    one = made_run(shell, "a", at=1, name="first", command=("compare", "-d", "my file.csv:y"))
    two = failing(shell, "b", at=2)
    three = interrupted(shell, "c", at=3)
    printed = call("list")
    assert ids(printed) == [three.run_id, two.run_id, one.run_id]
    assert "shell" in printed.out
    assert "1 done, 1 missing" in printed.out
    assert "0 done, 2 failed" in printed.out
    assert "boosters-eval compare -d 'my file.csv:y'" in printed.out
    assert ids(call("list", "-n", "1")) == [three.run_id]
    found = json.loads(call("list", "--json").out)
    assert [(r["name"], r["state"], r["done"], r["failed"], r["missing"]) for r in found] == [
        ("", "unfinished", 1, 0, 1),
        ("", "finished", 0, 2, 0),
        ("first", "finished", 2, 0, 0),
    ]
    assert found[2]["command"] == ["compare", "-d", "my file.csv:y"]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_list_cuts_nothing_however_narrow(shell, call, monkeypatch, width):
    made_run(shell, "a", name="a-rather-long-name-for-a-run", command=("compare", "-d", "california"))
    assert "boosters-eval compare -d california" in call("list").out
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    for arguments, shown in (((), False), (("--wide",), True)):
        out = call("list", *arguments).out
        assert "a-rather-long-name-for-a-run" in out
        assert max(map(len, out.splitlines())) <= width
        assert ("california" in out) is shown


def test_list_of_an_empty_home_says_so(call):
    assert "there are no runs" in call("list").err


def test_unreadable_runs_are_listed_and_shown_as_such(shell, call, runs):
    plan = made_run(shell, "a")
    (runs / plan.run_id / "environment.json").write_text("{")
    assert "unreadable: " in call("list").out
    assert "state      unreadable: " in call("show", plan.run_id).out
    (runs / plan.run_id / "journal.jsonl").unlink()
    assert json.loads(call("list", "--json").out)[0]["state"] == "unreadable"


def test_damaged_run_is_shown_as_damaged(shell, call, runs):
    """Its journal ends as it should, so a look at the end is not enough."""
    plan = made_run(shell, "a")
    assert "state      finished" in call("show", plan.run_id).out
    journal = runs / plan.run_id / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    lines[1] = lines[1].replace('"result"', '"resulT"')
    journal.write_text("".join(lines))
    assert "state      damaged: journal.jsonl: line" in call("show", plan.run_id).out
    assert json.loads(call("show", plan.run_id, "--json").out)["state"] == "damaged"


def test_show_has_the_facts_the_attempts_and_what_to_do_next(shell, call):
    plan = made_run(shell, "a", name="first", command=("compare", "--name", "first"))
    interrupted(shell, "a", command=("compare", "-s", "3"))
    out = call("show", "first").out
    assert f"run        {plan.run_id}" in out
    assert "resume     boosters-eval compare -s 3 --resume" in out
    assert "attempt 1  " in out
    assert "first, finished" in out
    assert "attempt 2  " in out
    assert "unfinished" in out
    shown = json.loads(call("show", plan.run_id[:6], "--json").out)
    assert [attempt["state"] for attempt in shown["attempts"]] == ["finished", "unfinished"]
    assert shown["next"]["resume"].endswith("--resume")


def test_open_writes_the_report_into_the_run_and_opens_it_where_there_is_a_display(boosters_eval, runs, monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    for variable in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(variable, raising=False)
    arguments = ("-d", "diabetes", "-l", "faulty", "-s", "1", "-p", "max_depth=1", "-q", "--name", "mine")
    boosters_eval("compare", *arguments, check=0)
    [folder] = runs.iterdir()
    path = folder / "report.html"
    assert boosters_eval("runs", "open", "mine", check=0).stdout == f"{path}\n"
    assert path.read_text().startswith("<!doctype html>")
    assert opened == []
    monkeypatch.setenv("DISPLAY", ":0")
    boosters_eval("runs", "open", "--no-browser", check=0)
    assert opened == []
    boosters_eval("runs", "open", check=0)
    assert opened == [path.as_uri()]
    assert boosters_eval("verify", "mine", check=0).stdout.endswith("complete and untouched\n")
    assert boosters_eval("verify", str(folder), check=0).stdout.endswith("complete and untouched\n")
    assert "is a folder, but not that of a run" in boosters_eval("verify", str(runs), check=3).stderr
    assert "mine" in boosters_eval("report", "--run", "mine", "--dry-run", "-f", "json", check=0).stdout


def test_open_of_another_kind_of_run_is_one_sentence(shell, call):
    plan = made_run(shell, "a", kind="parity")
    assert f"Run {plan.run_id} has no benchmark results: it is a parity run" in call("open", plan.run_id, code=2).err


def test_remove_needs_yes_where_nobody_can_be_asked(shell, call, runs, monkeypatch):
    plan = made_run(shell, "a", name="old")
    assert "'--yes' option is needed" in call("remove", "old", code=3).err
    assert plan.run_id in call("remove", "old", "--dry-run").out
    assert (runs / plan.run_id).is_dir()
    call("remove", "old", "--yes")
    assert not list(runs.iterdir())


def test_remove_asks_on_a_terminal(shell, call, runs, monkeypatch):
    made_run(shell, "a", name="old")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("click.confirm", lambda *_, **__: False)
    call("remove", "old")
    assert len(list(runs.iterdir())) == 1
    monkeypatch.setattr("click.confirm", lambda *_, **__: True)
    call("remove", "old")
    assert not list(runs.iterdir())


def test_remove_by_age_takes_only_the_old_ones(shell, call, runs):
    old, new = made_run(shell, "a", at=time.time() - 40 * 86400), made_run(shell, "b")
    assert ids(call("remove", "--older-than", "6w", "--dry-run")) == []
    call("remove", "--older-than", "30d", "--yes")
    assert [path.name for path in runs.iterdir()] == [new.run_id] != [old.run_id]
    assert "must be a time such as 12h, 30d or 8w. Got '3y' instead" in call("remove", "--older-than", "3y", code=3).err
    assert "Use either RUN... or --older-than" in call("remove", code=3).err
    assert "Use either RUN... or --older-than" in call("remove", "last", "--older-than", "1d", code=3).err


def test_run_that_is_being_executed_stays(shell, call, runs):
    plan, other = interrupted(shell, "a"), made_run(shell, "b")
    journal, _ = RunFolder(runs / plan.run_id).open(new=False)
    assert (
        "is being executed, so nothing of it was removed" in call("remove", plan.run_id, other.run_id, "-y", code=2).err
    )
    journal.close()
    assert [path.name for path in runs.iterdir()] == [plan.run_id]


def test_remove_follows_no_links_and_leaves_the_folder_of_the_runs(shell, call, runs, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").touch()
    plan = made_run(shell, "a")
    (runs / plan.run_id / "link").symlink_to(outside)
    (runs / "linked").symlink_to(outside)
    for reference in ("../../outside", str(outside), ".", ""):
        call("remove", reference, "--yes", code=3)
    call("remove", "linked", plan.run_id, "--yes")
    assert (outside / "precious").exists()
    assert not list(runs.iterdir())


def test_damaged_run_and_what_a_killed_removal_left_can_be_removed(shell, call, runs):
    plan = made_run(shell, "a")
    (runs / plan.run_id / "environment.json").write_text("{")
    left = runs / f"{engine_runs._LEAVING}0123-abc"
    left.mkdir()
    assert left.name not in call("list").out
    call("remove", plan.run_id, "--yes")
    assert not list(runs.iterdir())
