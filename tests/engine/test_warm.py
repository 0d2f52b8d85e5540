"""Two calls in one process share their lanes, unless something changed; nothing lives longer than it should."""

import subprocess
import sys
import time

import psutil
import pytest

from boosters_eval import Observer, run_prepared
from boosters_eval.engine import warm
from processes import PLUGINS, environment
from tiny import prepare_tiny, tiny_config


@pytest.fixture(autouse=True)
def _closed():
    warm.close_kept()
    yield
    warm.close_kept()


def lanes():
    """The process ids of the lanes that are alive."""
    pool = warm._kept.pool
    ancestors = pool._ancestors.values() if pool else ()
    return {lane.pid for found in ancestors for lane in psutil.Process(found.process.pid).children()}


def call(seeds=1, config=None, observer=None, **settings):
    prepared = prepare_tiny(tiny_config("none", **(config or {})), seeds=seeds, **settings)
    results = run_prepared(prepared, observer=observer)
    assert not results.errors
    assert len(results.results) == seeds
    return results


class Stop(Observer):
    def phase(self, event):
        raise KeyboardInterrupt


def test_lanes_serve_the_next_call_until_a_file_that_they_have_loaded_changes(faulty, tmp_path, monkeypatch):
    helper = tmp_path / "helper_of_a_metric.py"
    helper.write_text("SCALE = 1.0\n")
    metric = tmp_path / "own.py"
    metric.write_text("from helper_of_a_metric import SCALE\n\n\ndef scaled(y_true, y_pred, **_):\n    return SCALE\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    config = {"metrics": (f"{metric}:scaled:higher",)}
    assert call(config=config).results[0].metrics["scaled"] == 1.0
    first = lanes()
    assert len(first) == 1
    call(seeds=3, config=config, jobs=2)  # the number of cells at a time may change
    assert lanes() == first
    helper.write_text("SCALE = 2.00\n")
    assert call(config=config).results[0].metrics["scaled"] == 2.0
    second = lanes()
    assert second
    assert not any(map(psutil.pid_exists, first))
    with pytest.raises(KeyboardInterrupt):
        call(seeds=2, observer=Stop())
    assert not any(map(psutil.pid_exists, second))


def test_changed_environment_gets_a_new_pool(monkeypatch):
    with warm.kept_pool(1) as one:
        pass
    monkeypatch.setenv("SOMETHING_A_LIBRARY_READS", "1")
    with warm.kept_pool(1) as other:
        assert other is not one


def test_idle_pool_is_closed(monkeypatch):
    monkeypatch.setattr(warm, "IDLE", 0.05)
    with warm.kept_pool(1):
        time.sleep(0.1)
        assert warm._kept.pool is not None
    deadline = time.monotonic() + 30
    while warm._kept.pool is not None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert warm._kept.pool is None


def test_whoever_calls_meanwhile_has_a_pool_of_its_own():
    with warm.kept_pool(1) as one, warm.kept_pool(1) as other:
        assert one is not other
    with warm.kept_pool(1) as again:
        assert again is one


_SCRIPT = """
import os, sys
sys.path[:0] = [{tests!r}, {plugins!r}]
import faulty_runner, psutil
from boosters_eval import RUNNERS, run_prepared
from boosters_eval.engine import warm
from tiny import prepare_tiny, tiny_config

if __name__ == "__main__":
    RUNNERS.register("faulty", faulty_runner.FaultyRunner, replace=True)
    run_prepared(prepare_tiny(tiny_config("none")))
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
    script.write_text(_SCRIPT.format(tests=str(PLUGINS.parent), plugins=str(PLUGINS)))
    done = subprocess.run(
        [sys.executable, script], env=environment(), capture_output=True, text=True, check=True, timeout=120
    )
    pids, forked = done.stdout.splitlines()
    assert forked == "forgotten"
    assert len(pids.split()) == 2  # the ancestor and a lane
    deadline = time.monotonic() + 30
    while any(psutil.pid_exists(int(pid)) for pid in pids.split()) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(psutil.pid_exists(int(pid)) for pid in pids.split())
