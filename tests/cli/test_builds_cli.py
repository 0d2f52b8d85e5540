"""The commands on builds, and a build as a competitor on the command line."""

import json
import os
import sys

import pytest

from boosters_eval.cli.app import show_progress
from boosters_eval.core.terms import tell
from boosters_eval.runners import RUNNERS
from toys import write_runner, write_wheel


@pytest.fixture
def toy(place):
    yield write_runner(place)
    if "toy" in RUNNERS:
        RUNNERS.unregister("toy")


def test_a_build_is_added_listed_shown_used_and_removed(boosters_eval, toy, place):
    assert "there are no builds" in boosters_eval("builds", "list", check=0).stderr
    text = f"{toy}@{write_wheel(place)}"
    added = boosters_eval("builds", "add", text, check=0)
    assert added.stderr.startswith(f"Installing {text} ...\nInstalled {text}: toybooster 1.0, ")
    build = added.stdout.split()[0]
    listed = json.loads(boosters_eval("builds", "list", "--json", check=0).stdout)
    assert [(item["build_id"], item["version"], item["origin"]) for item in listed] == [(build, "1.0", "wheel")]
    assert build in boosters_eval("builds", "list", check=0).stdout
    assert "as they were installed" in boosters_eval("builds", "show", build[:6], check=0).stdout
    assert json.loads(boosters_eval("builds", "show", text, "--json", check=0).stdout)["whole"]

    shown = boosters_eval("compare", "-d", "california", "-s", "1", "-l", text, "--dry-run", check=0)
    assert "california/gbdt toy@1.0 (1.0) x 1" in shown.stdout
    assert "Installing" not in shown.stderr
    explained = boosters_eval("explain", "-l", text, "--json", check=0)
    assert '"1.0"' in explained.stdout

    (place / "home" / "builds" / build / "site" / "toybooster" / "__init__.py").write_text("SHIFT = 9")
    assert "changed since" in boosters_eval("builds", "show", build, check=2).stdout
    assert "--yes" in boosters_eval("builds", "remove", build, check=3).stderr
    assert "nothing to remove" in boosters_eval("builds", "prune", check=0).stderr
    os.utime(place / "home" / "builds" / build / "used", (1, 1))
    assert build in boosters_eval("builds", "prune", "--dry-run", check=0).stdout
    assert "Removed: 1 of 1 builds." in boosters_eval("builds", "prune", "--yes", check=0).stderr
    assert json.loads(boosters_eval("builds", "list", "--json", check=0).stdout) == []
    assert "There is no build" in boosters_eval("builds", "show", build, check=3).stderr


def test_wheel_that_is_a_pipe_is_one_sentence_and_keeps_nobody_waiting(boosters_eval, toy, place):
    pipe = place / "toybooster-1.0-py3-none-any.whl"
    os.mkfifo(pipe)
    assert (
        f"Cannot read {pipe}: it is no regular file." in boosters_eval("builds", "add", f"{toy}@{pipe}", check=3).stderr
    )


def test_build_whose_record_was_lost_is_told(boosters_eval, place):
    (place / "home" / "builds" / "0123456789abcdef").mkdir(parents=True)
    done = boosters_eval("builds", "list", "--json", check=0)
    assert "Warning: 0123456789abcdef cannot be read: it is damaged or unfinished" in done.stderr


def test_the_wheels_of_commits_are_listed_and_pruned(boosters_eval, place):
    """A bisection leaves them in the home, where nothing else would ever remove them."""
    wheel = place / "home" / "wheels" / "0123456789abcdef" / "toybooster-1.0-py3-none-any.whl"
    wheel.parent.mkdir(parents=True)
    wheel.write_bytes(b"x" * 2000)
    assert "1 wheel of commits, 2 kB, in" in boosters_eval("builds", "list", check=0).stderr
    assert "nothing to remove" in boosters_eval("builds", "prune", "--yes", check=0).stderr
    os.utime(wheel.parent, (1, 1))
    assert "0123456789abcdef  wheel of a commit" in boosters_eval("builds", "prune", "--yes", check=0).stdout
    assert not wheel.parent.exists()


def test_a_build_that_cannot_be_installed_ends_the_command_before_any_cell(boosters_eval, toy, place):
    text = f"{toy}@{write_wheel(place, tag='cp27-cp27m-win32')}"
    done = boosters_eval("compare", "-d", "california", "-l", text, "sklearn", check=2)
    lines = done.stderr.splitlines()
    assert lines[1] == f"Error: {text} cannot be installed; pip says:"
    assert "not a supported wheel" in lines[2]
    assert not (place / "home" / "runs").exists()
    assert boosters_eval("compare", "-d", "california", "-l", text, "-q", check=2).stderr.startswith("Error: ")


def test_an_interrupted_installation_says_that_nothing_is_kept(boosters_eval, toy, place, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("boosters_eval.runners.builds.install.run_pip", interrupted)
    text = f"{toy}@{write_wheel(place)}"
    done = boosters_eval("builds", "add", text, check=130)
    assert done.stderr == f"Installing {text} ...\nStopped. Nothing of {text} is kept.\n"
    assert [path.name for path in (place / "home" / "builds").iterdir()] == [".locks"]


@pytest.mark.parametrize("words", [("add",), ("show",), ("remove",), ("prune", "--older-than", "soon")])
def test_a_command_without_what_it_needs_is_refused_in_one_sentence(words, boosters_eval):
    done = boosters_eval("builds", *words, check=3)
    assert done.stderr.count("\n") == 1


def test_on_a_terminal_the_seconds_of_an_installation_are_counted(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with show_progress(quiet=False):
        tell("Installing xgboost==3.0.5 ...")
        tell("Installed xgboost==3.0.5.")
    shown = capsys.readouterr().err
    assert "Installing xgboost==3.0.5 ... 0 s" in shown
    assert shown.endswith("\r\x1b[2KInstalled xgboost==3.0.5.\n")
