"""Two calls in one process share their lanes, unless something changed; nothing lives longer than it should."""

import subprocess
import sys
import time
from importlib import import_module
from types import SimpleNamespace

import psutil
import pytest

from boosters_eval import WORKLOADS, Observer, Plan, Repeat, execute, run_prepared
from boosters_eval.engine import session, warm
from processes import PLUGINS, environment
from tiny import prepare_tiny, shared_pool, tiny_config


@pytest.fixture(autouse=True)
def _closed():
    warm.close_kept()
    yield
    warm.close_kept()


def lanes():
    """The process ids of the lanes that are alive."""
    pool = warm._kept.pool
    ancestors = pool._lanes._ancestors.values() if pool else ()
    return {lane.pid for found in ancestors for lane in psutil.Process(found.process.pid).children()}


@pytest.fixture
def user(home, tmp_path, monkeypatch):
    """A user's two modules, and calls whose cells tell what their lanes have loaded of them."""
    monkeypatch.syspath_prepend(str(PLUGINS))
    monkeypatch.syspath_prepend(str(tmp_path))
    module = import_module("loading_workload")
    WORKLOADS.register("loading", module.Loading, replace=True)

    def write(name, value):  # with another size: Python takes the compiled file for one of the same second and size
        (tmp_path / f"{name}.py").write_text(f"VALUE = {value}{'0' * int(value)}\n")

    def call(*targets, jobs=1, seeds=1, observer=None, **fields):
        spec = module.LoadingSpec(name="spec", modules=("of_a_lane",), **fields)
        plan = Plan.grid("loading", [spec], targets, [Repeat(seed) for seed in range(seeds)])
        with warm.borrow_pool(jobs) as pool:
            run = execute(plan, pool, observer=observer)
        assert not run.failures
        return {tuple(outcome.values) for outcome in run.results}

    write("of_a_lane", 1.0)
    write("shared_by_lanes", 1.0)
    yield SimpleNamespace(write=write, call=call)
    WORKLOADS.unregister("loading")
    sys.modules.pop("loading_workload", None)


class Stop(Observer):
    def phase(self, event):
        raise KeyboardInterrupt


def test_comparisons_use_the_pool_of_the_process(faulty, home, monkeypatch):
    entered = []

    class Kept:
        def __init__(self, jobs):
            entered.append(jobs)

        def __enter__(self):
            return shared_pool()

        def __exit__(self, *_):
            entered.append("left")

    monkeypatch.setattr(session, "borrow_pool", Kept)
    assert len(run_prepared(prepare_tiny(tiny_config("none"), seeds=2, jobs=2)).results) == 2
    assert entered == [2, "left"]


def test_lanes_serve_the_next_call_until_a_file_that_they_have_loaded_changes(user):
    assert user.call("a") == {(1.0, 1.0)}
    first = lanes()
    assert len(first) == 1
    user.call("a", seeds=3, jobs=2)  # the number of cells at a time may change
    assert lanes() == first
    user.write("of_a_lane", 2.0)
    assert user.call("a") == {(2.0, 1.0)}
    second = lanes()
    assert second
    assert not any(map(psutil.pid_exists, first))
    with pytest.raises(KeyboardInterrupt):
        user.call("a", seeds=2, observer=Stop())
    assert not any(map(psutil.pid_exists, second))


def test_what_lanes_share_is_loaded_anew_for_a_lane_that_did_not_exist_yet(user):
    assert user.call("a", "b") == {(1.0, 1.0)}
    user.write("shared_by_lanes", 2.5)
    user.write("of_a_lane", 3.5)
    assert user.call("c") == {(3.5, 2.5)}


def test_lane_with_other_metrics_takes_the_place_of_the_one_before(user):
    for digest in ("one", "two", "three"):
        user.call("a", digest=digest)
        assert len(list(warm._kept.pool._lanes)) == 1
    deadline = time.monotonic() + 30
    while len(lanes()) > 1 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(lanes()) == 1


def test_changed_environment_gets_a_new_pool(monkeypatch):
    with warm.borrow_pool(1) as one:
        pass
    monkeypatch.setenv("SOMETHING_A_LIBRARY_READS", "1")
    with warm.borrow_pool(1) as other:
        assert other is not one


def test_idle_pool_is_closed(monkeypatch):
    monkeypatch.setattr(warm, "IDLE", 0.05)
    with warm.borrow_pool(1):
        time.sleep(0.1)
        assert warm._kept.pool is not None
    deadline = time.monotonic() + 30
    while warm._kept.pool is not None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert warm._kept.pool is None


def test_call_that_outlives_the_main_thread_ends_well(monkeypatch):
    def start(_):
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(warm.threading.Timer, "start", start)
    with warm.borrow_pool(1) as pool:
        assert warm._kept.pool is pool
    assert warm._kept.pool is None


def test_whoever_calls_meanwhile_has_a_pool_of_its_own():
    with warm.borrow_pool(1) as one, warm.borrow_pool(1) as other:
        assert one is not other
    with warm.borrow_pool(1) as again:
        assert again is one


_SCRIPT = """
import os, sys
sys.path.insert(0, {plugins!r})
import psutil, shell_workload
from boosters_eval import WORKLOADS, Plan, Repeat, execute
from boosters_eval.engine import session, warm

WORKLOADS.register("shell", shell_workload.Shell, replace=True)
spec = shell_workload.ShellSpec(name="one", script="echo 1")
with warm.borrow_pool(1) as pool:
    execute(Plan.grid("shells", [spec], ["sh"], [Repeat(1)]), pool)
print(*(child.pid for child in psutil.Process().children(recursive=True)))
sys.stdout.flush()
if os.fork() == 0:  # it outlives its parent, and must not keep the lanes alive
    print("kept" if warm._kept.pool else "forgotten")
    sys.stdout.flush()
    os.close(1), os.close(2)
    import time
    time.sleep(3)
    os._exit(0)
"""


def test_nothing_lives_after_the_program(home, tmp_path):
    script = tmp_path / "program.py"
    script.write_text(_SCRIPT.format(plugins=str(PLUGINS)))
    done = subprocess.run(
        [sys.executable, script], env=environment(), capture_output=True, text=True, check=True, timeout=120
    )
    pids, forked = done.stdout.splitlines()
    assert forked == "forgotten"
    assert len(pids.split()) in (2, 3)  # the ancestor, a lane, and the cell if it has answered but not ended
    deadline = time.monotonic() + 30
    while any(psutil.pid_exists(int(pid)) for pid in pids.split()) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(psutil.pid_exists(int(pid)) for pid in pids.split())
