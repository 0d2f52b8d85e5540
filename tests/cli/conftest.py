import signal
import subprocess
import sys
from typing import NamedTuple

import pytest

from boosters_eval.cli.app import run
from boosters_eval.core.commands import INTERRUPTIONS
from boosters_eval.runners import RUNNERS
from processes import PLUGINS, PROGRAM, environment


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def place(tmp_path, monkeypatch):
    """An empty directory to work in, with a home of its own, outside any CI system."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BOOSTERS_EVAL_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("BOOSTERS_EVAL_SEEDS", raising=False)
    return tmp_path


@pytest.fixture
def faulty(monkeypatch):
    """The library that fails on request, registered as a third party's would be."""
    monkeypatch.syspath_prepend(str(PLUGINS))
    import faulty_runner

    RUNNERS.register("faulty", faulty_runner.FaultyRunner, replace=True)
    yield
    RUNNERS.unregister("faulty")
    sys.modules.pop("faulty_runner", None)


@pytest.fixture
def boosters_eval(place, faulty, kept_pool, capfd, monkeypatch):
    """A command line in this process; what it writes is caught below Python, as a shell would."""

    def call(*arguments, check=None):
        monkeypatch.setattr(sys, "argv", ["boosters-eval", *arguments])
        capfd.readouterr()
        done = Done(run(arguments), *capfd.readouterr())
        if check is not None:
            assert done.returncode == check, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done

    before = {number: signal.getsignal(number) for number in INTERRUPTIONS}
    yield call
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def program(place):
    """The real program in a process of its own."""

    def call(*arguments, check=None, env=None, **options):
        done = subprocess.run(
            [*PROGRAM, *arguments],
            cwd=place,
            env=environment(PLUGINS, **(env or {})),
            capture_output=True,
            text=True,
            check=False,
            **options,
        )
        if check is not None:
            assert done.returncode == check, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done

    return call
