"""Programs that are run to their end, and stopped with whoever waits."""

import os
import signal
import subprocess
import sys

import psutil
import pytest

from boosters_eval.core import commands
from boosters_eval.core.commands import run_command, without_current_folder


def test_code_and_output_of_both_streams():
    code = "import sys; print('one'); sys.stdout.flush(); print('two', file=sys.stderr); sys.exit(3)"
    assert run_command([sys.executable, "-c", code], env=os.environ) == (3, "one\ntwo\n")


def test_interruption_while_a_program_starts_leaves_nothing(monkeypatch):
    started, before = [], signal.getsignal(signal.SIGINT)

    def interrupted(*words, **options):
        started.append(subprocess.Popen(*words, **options))
        signal.raise_signal(signal.SIGINT)
        return started[0]

    monkeypatch.setattr(commands, "subprocess", type("Other", (), {**vars(subprocess), "Popen": interrupted}))
    with pytest.raises(KeyboardInterrupt):
        run_command(["sleep", "600"], env=os.environ)
    assert not psutil.pid_exists(started[0].pid)
    assert signal.getsignal(signal.SIGINT) is before


def test_timeout_ends_what_the_program_started_too(tmp_path):
    with pytest.raises(subprocess.TimeoutExpired):
        run_command(["sh", "-c", f"sleep 600 & echo $! > {tmp_path}/pid; wait"], env=os.environ, timeout=1)
    left = int((tmp_path / "pid").read_text())
    assert not psutil.pid_exists(left) or psutil.Process(left).status() == psutil.STATUS_ZOMBIE


def test_only_absolute_folders_stay_on_the_path():
    assert without_current_folder({"A": "1", "PYTHONPATH": ":.:/a:b:/c"}) == {"A": "1", "PYTHONPATH": "/a:/c"}
    assert without_current_folder({"A": "1", "PYTHONPATH": ""}) == {"A": "1"}
