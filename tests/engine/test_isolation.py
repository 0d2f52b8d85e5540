"""A cell can harm nobody but itself, and nothing of a run outlives it."""

import os
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import pytest

from boosters_eval import WORKLOADS, Limits, Plan
from boosters_eval.engine import lanes
from boosters_eval.engine.plan import CellRef
from boosters_eval.engine.runs import find_run, verify
from shells import plan_of, run, run_afresh

DOUBLE = "echo $((SEED * 2))"
WAIT = 30  # seconds; far more than anything here takes


def alive(pid):
    """Whether a process exists and is more than an entry that nobody has read yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def written(path):
    """The number in a file, once it is there."""
    deadline = time.monotonic() + WAIT
    while time.monotonic() < deadline:
        if path.exists() and path.read_text().endswith("\n"):
            return int(path.read_text())
        time.sleep(0.01)
    raise AssertionError(f"{path} was not written")


def assert_dies(pid):
    deadline = time.monotonic() + WAIT
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not alive(pid)


def parent_of(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def detached(folder, then="echo 1"):
    """A script that leaves a process in a session of its own, which no process group reaches."""
    return f"setsid sleep 300 >/dev/null 2>&1 </dev/null & echo $! > {folder}/pid; {then}"


def test_process_that_left_the_group_of_its_cell_ends_with_the_cell(shell, tmp_path):
    done = run_afresh(plan_of(shell, {"leave": detached(tmp_path)}, seeds=(1,), targets=("sh",)))
    assert [outcome.value for outcome in done.results] == [1.0]
    assert_dies(written(tmp_path / "pid"))


def test_cells_do_not_end_the_processes_of_other_cells(shell, tmp_path):
    """A daemon of a running cell is not one that an ended cell left behind."""
    wait = f"while [ ! -e {tmp_path}/go ]; do sleep 0.01; done; kill -0 $(cat {tmp_path}/pid) && echo 7"
    daemon = f"(setsid sleep 300 >/dev/null 2>&1 </dev/null & echo $! > {tmp_path}/pid); {wait}"
    others = f"while [ ! -e {tmp_path}/pid ]; do sleep 0.01; done; {DOUBLE}; [ $SEED != 3 ] || touch {tmp_path}/go"
    specs = [shell.ShellSpec(name="daemon", script=daemon), shell.ShellSpec(name="short", script=others)]
    refs = [CellRef(0, "sh", 9, None), *(CellRef(1, "sh", seed, None) for seed in (1, 2, 3))]
    done = run_afresh(Plan.of("shells", specs, refs), limits=Limits(timeout_s=WAIT))
    assert sorted(outcome.value for outcome in done.results) == [2.0, 4.0, 6.0, 7.0]


PROGRAM = """
import sys
from boosters_eval import WORKLOADS, LocalPool, execute
from shells import plan_of
import shell_workload

if __name__ == "__main__":
    WORKLOADS.register("shell", shell_workload.Shell, replace=True)
    with LocalPool(1) as pool:
        execute(plan_of(shell_workload, {"leave": sys.argv[1]}, seeds=(1,), targets=("sh",)), pool)
"""


@pytest.mark.parametrize("victim", ["program", "ancestor", "lane", "cell"])
def test_whoever_is_killed_no_process_survives(home, tmp_path, victim):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    tests = Path(__file__).parents[1]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tests), str(tests / "plugins"), *sys.path])}
    leave = detached(tmp_path, then=f"echo $$ > {tmp_path}/shell; sleep 300")
    program = subprocess.Popen([sys.executable, script, leave], env=env, stderr=subprocess.DEVNULL)
    try:
        shell = written(tmp_path / "shell")
        chain = [written(tmp_path / "pid"), shell]
        while chain[-1] != program.pid:
            chain.append(parent_of(chain[-1]))
        _, _, cell, lane, ancestor, _ = chain
        os.kill({"program": program.pid, "ancestor": ancestor, "lane": lane, "cell": cell}[victim], signal.SIGKILL)
        for pid in chain[:3]:
            assert_dies(pid)
    finally:
        program.kill()
        program.wait()
    for pid in chain:
        assert_dies(pid)


def with_load(shell, monkeypatch, folder, body):
    """The shell workload, in a module of its own whose `load` does something else."""
    (folder / "other_shell.py").write_text(
        "import os, time\n"
        "from pathlib import Path\n"
        "from shell_workload import Shell\n"
        "class Other(Shell):\n"
        "    @classmethod\n"
        "    def load(cls, lane, address):\n"
        f"        {body}\n"
    )
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "other_shell", raising=False)
    WORKLOADS.register("shell", import_module("other_shell").Other, replace=True)


def test_import_that_hangs_is_ended_and_fails_its_cells_only(shell, tmp_path, monkeypatch):
    with_load(shell, monkeypatch, tmp_path, "time.sleep(300) if lane.target.name == 'bash' else None")
    monkeypatch.setattr(lanes, "_SHORTEST_IMPORT", 3.0)
    done = run_afresh(plan_of(shell, {"double": DOUBLE}), limits=Limits(timeout_s=2.0))
    assert [(f.target, f.error_type) for f in done.failures] == [("bash", "Timeout")] * 2
    assert done.failures[0].error_message == "bash could not be imported: not finished after 3 s"
    assert [outcome.target for outcome in done.results] == ["sh", "sh"]


def test_broken_message_from_a_lane_costs_its_cells_only(shell, tmp_path, monkeypatch):
    body = (
        "[os.write(number, b'garbage\\n') for number in range(3, 64)"
        " if lane.target.name == 'bash' and 'socket' in os.path.realpath(f'/proc/self/fd/{number}')]"
    )
    with_load(shell, monkeypatch, tmp_path, body)
    done = run_afresh(plan_of(shell, {"double": DOUBLE}))
    assert {(f.target, f.error_type) for f in done.failures} == {("bash", "WorkerDied")}
    assert "a message that cannot be read" in done.failures[0].error_message
    assert [outcome.target for outcome in done.results] == ["sh", "sh"]


def test_modules_in_the_current_folder_are_not_run(shell, tmp_path, monkeypatch):
    for name in ("json", "types", "random", "numpy", "pydantic"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write({name!r})\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    done = run_afresh(plan_of(shell, {"double": DOUBLE}, seeds=(1,)))
    assert [outcome.value for outcome in done.results] == [2.0, 2.0]
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_spec_may_be_larger_than_a_command_line(shell, monkeypatch, method):
    monkeypatch.setenv("BOOSTERS_EVAL_START_METHOD", method)
    long = plan_of(shell, {"double": DOUBLE}, seeds=(2,), targets=("sh",), note="x" * 300_000)
    assert [outcome.value for outcome in run_afresh(long).results] == [4.0]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_cell_collects_garbage_though_its_imports_did_not(shell, monkeypatch, method):
    monkeypatch.setenv("BOOSTERS_EVAL_START_METHOD", method)
    (outcome,) = run(plan_of(shell, {"x": "echo 1"}, targets=("sh",), seeds=(1,))).results
    assert outcome.collects


def test_damaged_plan_is_written_anew_by_the_next_run(shell):
    plan = plan_of(shell, {"double": DOUBLE}, seeds=(1,), targets=("sh",))
    run(plan)
    path = find_run("last").path / "plan.json"
    whole = path.read_text()
    for damage in ("", "{", whole.replace("SEED", "SEEED"), "[]"):
        path.write_text(damage)
        run(plan)
        assert path.read_text() == whole
    path.unlink()
    os.mkfifo(path)  # to which nobody would ever listen
    run(plan)
    assert path.read_text() == whole
    assert {fault for _, fault in verify(find_run("last"))} == {""}


PRINTING = """
import os, time
from shell_workload import Shell, ShellOutcome

class Printing(Shell):
    @classmethod
    def run(cls, cell, loaded, inputs, phase):
        largest = 0
        for _ in range(40):
            os.write(2, b"x" * 2_000_000)
            time.sleep(0.02)
            largest = max(largest, os.fstat(2).st_size)
        os.write(2, b"the end")
        if cell.repeat.seed == 2:
            raise ValueError("no")
        return ShellOutcome.of(cell, value=largest / 2**20)
"""


def test_cell_that_prints_endlessly_does_not_fill_the_disk(shell, tmp_path, monkeypatch):
    """Of 80 MB only the end is kept, and the cell may go on."""
    (tmp_path / "printing_shell.py").write_text(PRINTING)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "printing_shell", raising=False)
    WORKLOADS.register("shell", import_module("printing_shell").Printing, replace=True)
    done = run_afresh(plan_of(shell, {"print": ""}, targets=("sh",)))
    assert 0 < done.results[0].value < 40
    assert done.failures[0].stderr_tail == "x" * 3_993 + "the end"
