"""A node that dies loses only its cells in flight; a scheduler that dies ends the run, and another continues it."""

import contextlib
import os
import random
import shutil
import subprocess
import sys
import threading

import psutil
import pytest
from distributed import Client, Status

from boosters_eval import DaskExecutor, Failure, Mode, Observer, RunError, Work, execute
from boosters_eval.cluster import executor
from boosters_eval.engine.journal import read_journal
from boosters_eval.engine.runs import find_run, verify
from dask_clusters import Cluster, alive, children, until
from processes import PLUGINS, environment
from shells import plan_of, run_afresh

ANCESTOR = "p=$PPID; for i in 1 2 3; do p=$(cut -d' ' -f4 /proc/$p/stat); done"  # the pid of the dask worker


class AtOutcome(Observer):
    """Does something when so many cells have ended."""

    def __init__(self, **actions):
        self.actions = {int(name[1:]): act for name, act in actions.items()}
        self.count = 0

    def outcome(self, event):
        self.count += 1
        self.actions.get(self.count, lambda: None)()


def recorded(plan):
    """How often each cell is in the journal."""
    folder = find_run(plan.run_id)
    lines = folder.journal_path(1).read_text().splitlines()
    return sum('"result":' in line or '"failure":' in line for line in lines), folder


def test_cells_of_a_killed_worker_run_elsewhere_and_nothing_of_it_survives(shell, cluster):
    left = []

    def kill():
        left.extend(children(cluster.workers[0]))
        cluster.kill(cluster.workers[0])

    plan = plan_of(shell, {"x": "sleep 0.05; echo $SEED"}, seeds=range(10))
    with DaskExecutor(address=cluster.address) as dask:
        run = execute(plan, dask, observer=AtOutcome(_5=kill))
    assert len(run.results) == 20
    assert recorded(plan)[0] == 20
    assert {fault for _, fault in verify(find_run(plan.run_id))} == {""}
    assert left
    until(lambda: not alive(left), "the end of its processes")


def test_cell_that_kills_its_node_twice_is_a_failure_of_that_cell(shell, cluster):
    cluster.add()
    deadly = plan_of(shell, {"kills": f"{ANCESTOR}; kill -9 $p; sleep 600"}, targets=("sh",), seeds=(1,))
    with DaskExecutor(address=cluster.address) as dask:
        (found,) = execute(deadly, dask).outcomes.values()
        assert isinstance(found, Failure)
        assert found.error_type == "NodeDied"
        assert found.machine is not None
        until(lambda: sum(worker.poll() is None for worker in cluster.workers) == 1, "the two deaths")
        harmless = execute(plan_of(shell, {"fine": "echo 1"}, targets=("sh",)), dask)
    assert [outcome.value for outcome in harmless.results] == [1, 1]


@pytest.mark.deaths
def test_scheduler_that_dies_ends_the_run_and_it_is_resumed_here(shell, tmp_path):
    plan = plan_of(shell, {"x": "sleep 0.05; echo $SEED"}, seeds=range(10))
    mortal = Cluster(tmp_path, workers=1)
    try:
        with (
            DaskExecutor(address=mortal.address) as dask,
            pytest.raises(RunError, match=r"^The dask scheduler at tcp:.* is gone\. .* --resume runs the others"),
        ):
            execute(plan, dask, observer=AtOutcome(_5=mortal.scheduler.kill))
        folder = find_run(plan.run_id)
        before = len(read_journal(folder.journal_path(1)).outcomes)
        assert 5 <= before < 20
    finally:
        mortal.close()
    run = run_afresh(plan, mode=Mode.RESUME)
    assert sorted(outcome.value for outcome in run.results) == sorted([*range(10)] * 2)
    assert recorded(plan)[0] == 20
    assert run.attempt == 1


PROGRAM = """
import sys
from boosters_eval import DaskExecutor, Plan, Repeat, execute
from shell_workload import ShellSpec

plan = Plan.grid("shells", [ShellSpec(name="x", script="sleep 600")], ["sh"], [Repeat(1), Repeat(2)])
execute(plan, DaskExecutor(address=sys.argv[1]))
"""


@pytest.mark.deaths
def test_program_that_is_killed_leaves_no_cell_and_no_lane_behind(cluster, home):
    def there():
        return set().union(*map(children, cluster.workers))

    def sleeping():
        with contextlib.suppress(psutil.NoSuchProcess):
            return sum(psutil.Process(pid).name() == "sleep" for pid in there()) == 2

    before = there()
    program = subprocess.Popen([sys.executable, "-c", PROGRAM, cluster.address], env=environment(PLUGINS))
    try:
        until(sleeping, "both cells")
        left = there() - before
    finally:
        program.kill()
        program.wait()
    until(lambda: not alive(left), "the end of its processes")


@pytest.mark.deaths
def test_cluster_without_workers_is_waited_for_and_then_given_up(shell, cluster):
    for worker in list(cluster.workers):
        cluster.kill(worker)
    plan = plan_of(shell, {"x": "echo 1"}, targets=("sh",))
    with (
        DaskExecutor(address=cluster.address, patience=0.5) as dask,
        pytest.raises(RunError, match=r"has had no worker for 0\.5 s\. .* --resume"),
    ):
        execute(plan, dask)


def with_an_odd_one(cluster, others):
    """So many of the cluster's workers, and one that ends with the test."""
    for worker in cluster.workers[others:]:
        cluster.kill(worker)
    worker = cluster.add(ODD="1")
    until(lambda: cluster.size() == others + 1, "the worker")
    return worker


def hold(client, worker):
    """Have dask hold back a worker from starting tasks, as it does for lack of memory."""

    def pause(dask_worker):
        dask_worker.status = Status.paused

    (address,) = [address for address, pid in client.run(os.getpid).items() if pid == worker.pid]
    client.run(pause, workers=[address])
    return address


@pytest.mark.deaths
def test_worker_that_dask_holds_back_keeps_no_cell(shell, cluster, monkeypatch):
    monkeypatch.setattr(executor, "_LOOK", 0.2)
    worker = with_an_odd_one(cluster, 1)
    plan = plan_of(shell, {"x": f"{ANCESTOR}; sleep 0.3; echo $p"}, targets=("sh",), seeds=range(12))
    works = [Work(cell) for cell in plan.cells]
    with DaskExecutor(address=cluster.address) as dask, Client(cluster.address, set_as_default=False) as client:
        running = dask.run(works, lambda *_: None)
        found = [next(running)]
        while worker.pid not in [outcome.value for outcome in found]:
            found.append(next(running))
        hold(client, worker)  # it runs a cell, and has one behind it
        found += running
        assert sorted(outcome.seed for outcome in found) == list(range(12))
        again = [outcome.value for outcome in dask.run(works[:3], lambda *_: None)]
    assert len(again) == 3
    assert worker.pid not in again


@pytest.mark.deaths
def test_cluster_that_dask_holds_back_wholly_is_named(shell, cluster, monkeypatch):
    monkeypatch.setattr(executor, "_LOOK", 0.2)
    worker = with_an_odd_one(cluster, 0)
    plan = plan_of(shell, {"x": "echo 1"}, targets=("sh",))
    with Client(cluster.address, set_as_default=False) as client:
        address = hold(client, worker)
        with (
            DaskExecutor(address=cluster.address, patience=2.0) as dask,
            pytest.raises(RunError, match=rf"no worker for 2 s, because dask holds back {address}: see its log\. "),
        ):
            execute(plan, dask)


@pytest.mark.deaths
def test_worker_that_cannot_write_is_refused_and_nothing_of_its_place_is_removed(shell, cluster):
    with_an_odd_one(cluster, 0)
    with Client(cluster.address, set_as_default=False) as client:
        client.run(lambda dask_worker: shutil.rmtree(dask_worker.local_directory))
    plan = plan_of(shell, {"x": "echo 1"}, targets=("sh",))
    with (
        DaskExecutor(address=cluster.address) as dask,
        pytest.raises(RunError, match=r"it cannot write to its folder .*: No such file or directory\.$"),
    ):
        execute(plan, dask)
    assert cluster.file.exists()


@pytest.mark.deaths
@pytest.mark.parametrize("seed", range(10))
def test_all_cells_have_one_outcome_whenever_workers_are_killed(shell, cluster, seed):
    """Each of ten runs of 60 cells loses a worker at a random moment, and another one comes."""
    draw = random.Random(seed)
    plan = plan_of(shell, {"x": "sleep 0.05; echo $SEED"}, seeds=range(30))
    done = threading.Event()

    def kill():
        if not done.wait(draw.uniform(0, 4)):
            cluster.kill(draw.choice(cluster.workers))
            cluster.add()

    killer = threading.Thread(target=kill)
    with DaskExecutor(address=cluster.address) as dask:
        killer.start()
        run = execute(plan, dask)
        done.set()
        killer.join()
    assert len(run.results) == 60
    assert recorded(plan)[0] == 60
