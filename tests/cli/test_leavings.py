"""Everything temporary is in one folder per program; what a killed one leaves is gone after the next command."""

import os
import signal
import socket
import subprocess
import time

import pytest

from processes import PLUGINS, PROGRAM, environment

PATIENCE = 60


@pytest.fixture
def temporary(place):
    (place / "tmp").mkdir()
    return place / "tmp"


@pytest.fixture
def start(place, temporary):
    started = []

    def begin(*words, **changes):
        env = environment(PLUGINS, **{"TMPDIR": str(temporary), "BOOSTERS_EVAL_CACHE": str(place / "cache"), **changes})
        output = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen([*PROGRAM, *words], cwd=place, env=env, start_new_session=True, **output)
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.wait()


def until(found, what):
    deadline = time.monotonic() + PATIENCE
    while not (thing := found()):
        assert time.monotonic() < deadline, f"there never was {what}"
        time.sleep(0.02)
    return thing


def assert_cleared_by_the_next_command(start, temporary):
    assert start("runs", "list").wait() == 0
    assert list(temporary.iterdir()) == []


QUICK = ("compare", "-d", "diabetes", "-l", "faulty", "-s", "1", "-p", "max_depth=1", "-q")
SLOW = ("compare", "-d", "diabetes", "-l", "faulty", "-s", "1", "-p", "max_depth=13", "-q")


def test_killed_run_leaves_one_folder_that_the_next_command_clears(start, temporary):
    process = start(*SLOW)
    until(lambda: list(temporary.glob("*/*")), "a folder of the run")
    process.kill()
    process.wait()
    assert len(list(temporary.iterdir())) == 1
    assert_cleared_by_the_next_command(start, temporary)


def test_killed_cluster_leaves_one_folder_that_the_next_command_clears(start, temporary):
    process = start(*SLOW, "--executor", "dask", "--workers", "1")
    until(lambda: list(temporary.glob("*/dask-scratch-space/*/*")), "dask's scratch")
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert len(list(temporary.iterdir())) == 1
    assert_cleared_by_the_next_command(start, temporary)


@pytest.mark.parametrize("words", [("builds", "add", "xgboost==1.6.1"), ("datasets", "fetch", "yacht")])
def test_killed_pip_leaves_one_folder_that_the_next_command_clears(start, temporary, place, words):
    """The index takes the connection and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as index:
        address = f"http://127.0.0.1:{index.getsockname()[1]}/simple"
        pip = {"PIP_INDEX_URL": address, "PIP_NO_INDEX": "0", "PIP_CONFIG_FILE": "/dev/null", "PIP_FIND_LINKS": None}
        process = start(*words, **pip)
        index.accept()[0].close()
        until(lambda: list(temporary.glob("*/pip-*")), "a folder of pip")
        process.kill()
        process.wait()
    assert len(list(temporary.iterdir())) == 1
    assert_cleared_by_the_next_command(start, temporary)


def test_command_that_ends_leaves_nothing(start, temporary):
    assert start(*QUICK, "--executor", "dask", "--workers", "1").wait() == 0
    assert list(temporary.iterdir()) == []
