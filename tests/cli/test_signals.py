"""Whoever ends the program, its exit code says how, and no process is left."""

import signal
import socket
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from processes import PLUGINS, PROGRAM, environment

SOON = 3  # seconds that a worker may outlive its program
PATIENCE = 60


@pytest.fixture
def start(place):
    started = []

    def begin(*words, env=None, first=()):
        process = subprocess.Popen(
            [*first, *PROGRAM, *words],
            cwd=place,
            env=environment(place, PLUGINS, **(env or {})),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.wait()
        process.stderr.close()


def until(found, what):
    deadline = time.monotonic() + PATIENCE
    while not (thing := found()):
        assert time.monotonic() < deadline, f"there never was {what}"
        time.sleep(0.02)
    return thing


WAITS = "import sys, time\nprint('here', file=sys.stderr, flush=True)\ntime.sleep(60)\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_exit_code_is_that_of_the_signal(place, start, number):
    """While a suite is loaded there is nothing to resume yet."""
    (place / "waits.py").write_text(WAITS)
    process = start("report", "--suite", "waits.py:SUITE")
    assert process.stderr.readline() == "here\n"
    process.send_signal(number)
    assert process.stderr.read() == "Error: Interrupted.\n"
    assert process.wait() == 128 + number


def test_what_nohup_ignores_stays_ignored(place, start):
    (place / "waits.py").write_text(WAITS)
    process = start("report", "--suite", "waits.py:SUITE", first=("sh", "-c", "trap '' HUP; exec \"$@\"", "sh"))
    assert process.stderr.readline() == "here\n"
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 143


HANGS = """
import os, pathlib, sys, time
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "boosters_eval.programs.benchmark.fit":
            pathlib.Path(os.environ["HANGS"]).write_text(str(os.getpid()))
            time.sleep(600)
if "BOOSTERS_EVAL_IN_WORKER" in os.environ:
    sys.meta_path.insert(0, Finder())
"""


def test_worker_that_imports_ends_soon_after_its_program_was_killed(place, start):
    """What two lanes need is imported by their ancestor, which reads nothing meanwhile."""
    (place / "sitecustomize.py").write_text(HANGS)
    told = place / "told"
    process = start("compare", "-d", "diabetes", "-l", "faulty", "sklearn", "-s", "1", env={"HANGS": str(told)})
    worker = psutil.Process(int(until(lambda: told.is_file() and told.read_text(), "an import")))
    family = [worker, *worker.children(recursive=True)]
    assert worker.ppid() == process.pid
    process.kill()
    _, left = psutil.wait_procs(family, timeout=SOON)
    assert not left


def test_interrupted_installation_leaves_no_pip(start):
    """The index takes the connection and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as index:
        address = f"http://127.0.0.1:{index.getsockname()[1]}/simple"
        env = {"PIP_INDEX_URL": address, "PIP_NO_INDEX": "0", "PIP_CONFIG_FILE": "/dev/null", "PIP_FIND_LINKS": None}
        process = start("builds", "add", "xgboost==1.6.1", env=env)
        connection, _ = index.accept()  # so pip is at work
        with connection:
            family = psutil.Process(process.pid).children(recursive=True)
            assert any("pip" in word for child in family for word in child.cmdline())
            process.send_signal(signal.SIGINT)
            told = process.communicate()[1]
        assert "Stopped. Nothing of xgboost==1.6.1 is kept." in told
        assert process.returncode == 130
        assert not psutil.wait_procs(family, timeout=SOON)[1]


PIP = "import pathlib\npathlib.Path(__file__).with_name('executed').touch()\n"


@pytest.mark.parametrize("words", [("datasets", "fetch", "covertype"), ("builds", "add", "xgboost==1.6.1")])
def test_folder_named_pip_is_never_executed(place, start, words):
    """Nor where Python's path has an empty entry, which stands for the current folder."""
    folder = place / "work" / "pip"
    folder.mkdir(parents=True)
    for name in ("__init__.py", "__main__.py"):
        (folder / name).write_text(PIP)
    env = environment(PIP_NO_INDEX="1", PIP_CONFIG_FILE="/dev/null", BOOSTERS_EVAL_CACHE=str(place / "cache"))
    env["PYTHONPATH"] = f":{env['PYTHONPATH']}"
    command = [PROGRAM[0], "-P", *PROGRAM[1:], *words]
    done = subprocess.run(command, cwd=folder.parent, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert not Path(folder, "executed").exists()


def test_error_without_a_reason_gets_one(place, program):
    (place / "full.py").write_text("raise MemoryError\n")
    done = program("run", "--suite", "full.py:SUITE", check=3)
    assert done.stderr == f"Error: The file {place / 'full.py'} failed: MemoryError: there is not enough memory.\n"
