"""A run on a dask cluster gives what a run on this machine gives, with the same limits and the same isolation."""

import collections
import shutil
import time
import warnings

import numpy as np
import psutil
import pytest
from dask import config as dask_config
from distributed import Client, Security

import toys
from boosters_eval import (
    RUNNERS,
    BoostersEvalWarning,
    ConfigError,
    DaskExecutor,
    Failure,
    Limits,
    Plan,
    Repeat,
    RunError,
    TrainingConfig,
    UnsupportedError,
    Work,
    compare,
    execute,
    importances,
    load_run,
    prepare_bisection,
    prepare_comparison,
    run_parity,
)
from boosters_eval.cluster.link import Link
from boosters_eval.core.machine import MachineInfo
from boosters_eval.engine.artifacts import load_array
from boosters_eval.engine.runs import find_run, verify
from boosters_eval.engine.session import is_elsewhere
from boosters_eval.programs.benchmark.evidence import FitEvidence, read_evidence
from boosters_eval.programs.benchmark.tables.build import build_tables
from boosters_eval.programs.parity.verdicts import BindingStatus
from dask_clusters import children, until
from scripted import Scripted
from shells import plan_of

ANCESTOR = "p=$PPID; for i in 1 2 3; do p=$(cut -d' ' -f4 /proc/$p/stat); done"  # the pid of the dask worker


def with_workers(count, folder, script):
    """The script, which waits until cells have begun on so many workers."""
    begun = f"{folder}/begun"
    every = f"until [ $(ls {begun} | wc -l) -ge {count} ]; do sleep 0.05; done"
    return f"{ANCESTOR}; mkdir -p {begun}; touch {begun}/$p; {every}; {script}"


def works_of(plan, **fields):
    return [Work(cell, **fields) for cell in plan.cells]


@pytest.mark.parametrize(
    "libraries",
    [["boosters"], pytest.param(["xgboost", "lightgbm", "catboost", "sklearn"], marks=pytest.mark.slow)],
)
def test_metrics_are_those_of_the_local_run_bit_for_bit(home, dask, libraries):
    asked = {"datasets": "iris", "libraries": libraries, "seeds": 3}
    here, there = compare(**asked), compare(**asked, executor=dask)
    values = [
        {(item.library, item.seed): (item.metrics, item.predictions_digest, item.kept) for item in found.results}
        for found in (here, there)
    ]
    assert len(values[0]) == 3 * len(libraries)
    assert values[0] == values[1]
    assert {item.machine for item in there.results} == {MachineInfo.collect().digest}
    assert there.run_id == here.run_id  # the same plan, so that one can continue the other
    folder = find_run(there.run_id)
    assert all(fault == "" for _, fault in verify(folder))
    shutil.rmtree(folder.path)  # so that the arrays are only brought home
    again = compare(**asked, executor=dask)
    evidence = read_evidence(again)
    assert all(isinstance(evidence.of(item), FitEvidence) for item in again.results)
    assert all(fault == "" for _, fault in verify(folder))
    with pytest.raises(RunError, match="failed in phase"):  # the limit of memory holds there too
        compare("iris", libraries[:1], seeds=1, executor=dask, memory_limit=1)


def test_verdicts_are_the_same_whatever_runs_the_cells(home, dask):
    asked = {"datasets": "breast_cancer", "libraries": ["boosters", "lightgbm"], "seeds": 5}

    def verdicts(results):
        (table,) = build_tables(results).tables
        return [(pair.a, pair.b, pair.verdict, pair.test, pair.percent, pair.low, pair.high) for pair in table.pairs]

    one = verdicts(compare(**asked, jobs=1, name="one"))
    assert {pair[3] for pair in one} == {"rows"}
    assert verdicts(compare(**asked, jobs=2)) == one
    assert verdicts(compare(**asked, executor=dask)) == one
    assert verdicts(compare(**asked, resume=True)) == one
    assert verdicts(load_run("last")) == one


def test_cells_share_the_workers_and_lanes_outlive_their_tasks(shell, dask, tmp_path):
    plan = plan_of(shell, {"x": f"{ANCESTOR}; echo $p", "lane": "echo $(cut -d' ' -f4 /proc/$PPID/stat)"})
    run = execute(plan_of(shell, {"w": with_workers(2, tmp_path, "echo $p")}, seeds=range(6)), dask)
    assert len({outcome.value for outcome in run.results}) == 2
    first = {outcome.value for outcome in execute(plan, dask).results if outcome.spec == "lane"}
    second = {outcome.value for outcome in execute(plan, dask).results if outcome.spec == "lane"}
    assert len(first | second) <= 4  # a lane for each of two shells on each of two nodes


def test_limits_and_crashes_are_those_of_their_cell_alone(shell, dask):
    scripts = {
        "hangs": "sleep 600",
        "crashes": "kill -SEGV $PPID; sleep 600",
        "fails": "echo no >&2; exit 3",
        "fine": "echo 7",
    }
    plan = plan_of(shell, scripts, targets=("sh",), seeds=(1,))
    run = execute(plan, dask, limits=Limits(timeout_s=1.0))
    found = {outcome.spec: outcome for outcome in run.outcomes.values()}
    assert {name: getattr(item, "error_type", "fine") for name, item in found.items()} == {
        "hangs": "Timeout",
        "crashes": "Crash",
        "fails": "ShellError",
        "fine": "fine",
    }
    assert found["hangs"].phase == "answer"
    assert found["crashes"].signal == "SIGSEGV"


def test_what_cells_store_is_brought_home_and_what_they_need_goes_to_a_machine_once(storing, cluster, tmp_path):
    data, artifacts, made = tmp_path / "data", tmp_path / "arrays", tmp_path / "made"
    (data / "folder").mkdir(parents=True)
    (data / "folder" / "file.txt").write_text("content")
    (data / "empty.txt").touch()
    made.mkdir()
    inputs = {"data": str(data), "artifacts": str(artifacts), "made": str(made), "told": "as it is"}
    plan = Plan.grid("store", [storing.StoringSpec(name="x")], ["a"], [Repeat(seed) for seed in range(1, 6)])
    with DaskExecutor(address=cluster.address) as dask:
        run = execute(plan, dask, locate=lambda cell, scratch: inputs)
        assert list(dask.sent.values()) == [1]  # two workers, five cells
    assert [outcome.seed for outcome in run.results if outcome.read == "content"] == [1, 2, 3, 4, 5]
    assert {outcome.told for outcome in run.results} == {"as it is"}
    for outcome in run.results:
        np.testing.assert_array_equal(load_array(artifacts, outcome.array), np.arange(outcome.seed * 1000))
    assert list(made.iterdir()) == []
    assert 1 <= sum(not outcome.made_before for outcome in run.results) <= 2  # once for each node
    with DaskExecutor(address=cluster.address) as another:
        execute(plan, another, locate=lambda cell, scratch: inputs)
        assert another.sent == {}


def test_cell_that_only_this_machine_can_run_is_refused_before_any_runs(storing, dask):
    plan = Plan.grid("store", [storing.StoringSpec(name="x", bound=True)], ["a"], [Repeat(1)])
    with pytest.raises(UnsupportedError, match=r"^x a seed 1 cannot run on the nodes .* only this machine has\.$"):
        execute(plan, dask)
    with pytest.raises(UnsupportedError):
        execute(plan, dask)  # not because it would be busy


def other_bash(folder):
    """A folder with a bash that is another build."""
    folder.mkdir()
    (folder / "bash").write_text('#!/bin/sh\nexec /bin/bash "$@"\n')
    (folder / "bash").chmod(0o755)
    return folder


def test_worker_with_another_build_is_refused_in_a_sentence_that_names_both(shell, cluster, tmp_path, monkeypatch):
    told = []

    def show(message, *_, **__):
        told.append(str(message))
        (tmp_path / "told").touch()

    plan = plan_of(shell, {"x": f"until [ -e {tmp_path}/told ]; do sleep 0.05; done; {ANCESTOR}; echo $p"})
    odd = cluster.add(PATH=f"{other_bash(tmp_path / 'bin')}:/usr/bin:/bin")
    with DaskExecutor(address=cluster.address) as dask, warnings.catch_warnings():
        warnings.simplefilter("always", BoostersEvalWarning)
        monkeypatch.setattr(warnings, "showwarning", show)
        run = execute(plan, dask)
    (sentence,) = told
    ours, theirs = shell.Shell.target("bash").build.digest, sentence.rpartition("(")[2].rstrip(").")
    assert "is not used" in sentence
    assert f"the plan has bash bash ({ours}), the node bash ({theirs})" in sentence
    assert ours != theirs
    assert odd.pid not in {outcome.value for outcome in run.results}


@pytest.mark.deaths
def test_cluster_of_which_every_worker_has_another_build_is_refused(shell, cluster, tmp_path):
    cluster.add(PATH=f"{other_bash(tmp_path / 'bin')}:/usr/bin:/bin")
    for worker in cluster.workers[:-1]:
        cluster.kill(worker)
    plan = plan_of(shell, {"x": "echo 1"})
    with (
        DaskExecutor(address=cluster.address) as dask,
        pytest.raises(RunError, match=r"No worker of the cluster can run this plan\. The worker tcp:.* is not used"),
    ):
        execute(plan, dask)


def test_library_that_one_worker_cannot_load_runs_on_the_others(shell, cluster, tmp_path):
    odd = cluster.add(BROKEN_SHELL="bash")
    plan = plan_of(shell, {"x": with_workers(3, tmp_path, "echo $p")}, targets=("bash", "sh"), seeds=range(10))
    with DaskExecutor(address=cluster.address) as dask:
        with pytest.warns(BoostersEvalWarning, match="gets no more cells of bash: bash could not be imported") as told:
            run = execute(plan, dask)
        assert len(told) == 1
        assert len(run.results) == 20
        assert {outcome.target for outcome in run.results if outcome.value == odd.pid} == {"sh"}


@pytest.mark.deaths
def test_library_that_no_worker_can_load_fails(shell, cluster):
    cluster.add(BROKEN_SHELL="bash")
    for worker in cluster.workers[:-1]:
        cluster.kill(worker)
    plan = plan_of(shell, {"x": "echo 1"}, targets=("sh", "bash"), seeds=range(3))
    with DaskExecutor(address=cluster.address) as dask:
        run = execute(plan, dask)
    assert {outcome.target for outcome in run.results} == {"sh"}
    assert {failure.error_message for failure in run.failures} == {"bash could not be imported: libshell.so is missing"}
    assert len(run.failures) == 3


def test_module_that_was_edited_between_two_runs_is_loaded_again(loading, cluster):
    spec = loading.LoadingSpec(name="spec", modules=("of_a_lane",))
    plan = Plan.grid("loading", [spec], ["one"], [Repeat(seed) for seed in range(4)])  # of which each worker has two
    (cluster.modules / "shared_by_lanes.py").write_text("VALUE = 0.0\n")
    found = []
    with DaskExecutor(address=cluster.address) as dask:
        for value in (1.0, 1000.0):  # files of two sizes: Python tells compiled files apart by second and size
            (cluster.modules / "of_a_lane.py").write_text(f"VALUE = {value}\n")
            found += [outcome.values[0] for outcome in dask.run(works_of(plan), lambda *_: None)]
    assert found == [1.0] * 4 + [1000.0] * 4


@pytest.mark.parametrize("raised", [True, False])
@pytest.mark.parametrize("call", ["has_parcel", "receive", "complete"])
def test_input_whose_way_is_interrupted_is_sent_again(shell, cluster, monkeypatch, tmp_path, call, raised):
    failed = collections.Counter()
    real = Link._answer

    async def answer(self, address, act, *arguments):
        failed[address, arguments[0]] += 1
        if arguments[0] == call and failed[address, call] == 1:
            error = TimeoutError("Timed out during handshake")
            if raised:
                raise error
            return error
        return await real(self, address, act, *arguments)

    monkeypatch.setattr(Link, "_answer", answer)
    data = tmp_path / "data.txt"
    data.write_text(str(time.time_ns()))  # which no worker has
    plan = plan_of(shell, {"x": "cat $data"}, targets=("sh",), seeds=range(4))
    with DaskExecutor(address=cluster.address) as dask:
        found = list(dask.run(works_of(plan, inputs={"data": str(data)}), lambda *_: None))
    assert [outcome.value for outcome in found] == [float(data.read_text())] * 4
    assert max(count for (_, name), count in failed.items() if name == call) > 1


@pytest.mark.deaths
def test_worker_that_is_retired_takes_no_other_with_it(shell, cluster, tmp_path):
    log = tmp_path / "log"
    plan = plan_of(shell, {"x": f"echo $SEED >> {log}; sleep 3; echo 1"}, targets=("sh",), seeds=range(6))
    with DaskExecutor(address=cluster.address) as dask, Client(cluster.address, set_as_default=False) as client:
        running = dask.run(works_of(plan), lambda *_: None)
        first = next(running)
        client.retire_workers([next(iter(client.nthreads()))])
        rest = list(running)
    assert sorted(outcome.seed for outcome in (first, *rest)) == list(range(6))
    assert not any(isinstance(outcome, Failure) for outcome in rest)
    again = collections.Counter(log.read_text().split())
    assert sum(again.values()) - len(again) <= 1  # that of the worker that left


def test_workers_that_are_started_here_have_its_devices_whatever_cluster_is_configured(home, dask, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    assert not dask.local
    training = TrainingConfig(n_estimators=2, device="cuda")
    configured = dask_config.set({"scheduler-address": "tcp://127.0.0.1:1"})
    with (
        configured,
        DaskExecutor(workers=1) as here,
        pytest.raises(UnsupportedError, match="there is no CUDA device here"),
    ):
        compare("iris", "lightgbm", seeds=1, training=training, executor=here)


def test_worker_that_joins_late_is_used(shell, cluster):
    for worker in cluster.workers[1:]:
        cluster.kill(worker)
    plan = plan_of(shell, {"x": f"sleep 0.2; {ANCESTOR}; echo $p"}, targets=("sh",), seeds=range(1000))
    with DaskExecutor(address=cluster.address) as dask:
        running = dask.run(works_of(plan), lambda *_: None)
        first = next(running)
        late = cluster.add()
        values = {first.value}
        until(lambda: late.pid in values or values.add(next(running).value), "the late worker")
        running.close()
    assert len(values) == 2


def sleeps(pid):
    try:
        return "sleep" in psutil.Process(pid).cmdline()
    except psutil.Error:
        return False


def test_run_that_is_interrupted_stops_its_cells_and_leaves_only_lanes(shell, cluster):
    plan = plan_of(shell, {"x": "sleep 600"}, targets=("sh",))
    before = set().union(*map(children, cluster.workers))
    begun = []

    def started(cell, phase):
        begun.append(cell)
        if len(begun) == len(plan.cells):
            raise InterruptedError

    with DaskExecutor(address=cluster.address) as dask:
        with pytest.raises(InterruptedError):
            list(dask.run(works_of(plan), started))
        quick = plan_of(shell, {"y": "echo 1"}, targets=("sh",))
        assert execute(quick, dask).missing == 0  # at once, although the others would have taken ten minutes
    started_there = set().union(*map(children, cluster.workers)) - before
    assert started_there
    until(lambda: not any(map(sleeps, started_there)), "the end of the cells")


def test_next_program_finds_the_lanes_of_the_one_before(shell, cluster):
    plan = plan_of(shell, {"x": "cut -d' ' -f4 /proc/$PPID/stat"}, targets=("sh",), seeds=range(4))
    lanes = []
    for _ in range(2):
        with DaskExecutor(address=cluster.address) as dask:
            lanes.append({outcome.value for outcome in dask.run(works_of(plan), lambda *_: None)})
    assert lanes[0] & lanes[1]


def test_cells_that_run_alone_are_alone_on_their_machine(shell, dask, tmp_path):
    log = tmp_path / "log"
    script = f"echo in >> {log}; sleep 0.05; echo out >> {log}; echo 1"
    run = execute(plan_of(shell, {"x": script}, targets=("sh",), seeds=range(6), alone=True), dask)
    assert run.missing == 0
    assert log.read_text().split() == ["in", "out"] * 6


def test_timed_cells_of_a_repeat_run_on_one_of_two_machines_with_equal_hardware(shell, cluster, tmp_path):
    (tmp_path / "elsewhere.py").write_text(
        "from boosters_eval.cluster import node as i\ni.identify_host = lambda: 'elsewhere'\n"
    )
    cluster.add(DASK_DISTRIBUTED__WORKER__PRELOAD=str([str(tmp_path / "elsewhere.py")]))
    plan = plan_of(shell, {"x": with_workers(2, tmp_path, "echo 1")}, seeds=range(4), alone=True)
    with DaskExecutor(address=cluster.address) as dask:
        run = execute(plan, dask)
    by_repeat = collections.defaultdict(set)
    for outcome in run.results:
        by_repeat[outcome.seed].add(outcome.machine)
    assert [len(machines) for machines in by_repeat.values()] == [1] * 4
    assert len(set.union(*by_repeat.values())) == 2
    named = {machine.node: machine for machine in run.machines.values()}
    assert len(named) == 2
    assert named.pop(None).digest == MachineInfo.collect().digest  # as in a run on that one alone
    (other,) = named.values()
    assert other.digest != MachineInfo.collect().digest
    assert {fault for _, fault in verify(find_run(plan.run_id))} == {""}


def test_each_worker_of_a_machine_has_cpus_of_its_own(shell, dask, tmp_path):
    script = "grep Cpus_allowed: /proc/self/status | cut -f2 | { read x; echo $((16#$x)); }"
    plan = plan_of(shell, {"x": with_workers(2, tmp_path, script)}, targets=("bash",), seeds=range(8))
    found = collections.Counter(outcome.value for outcome in execute(plan, dask).results)
    cpus = MachineInfo.collect().cpus_available
    assert len(found) == 2 or cpus < 2


def test_answer_that_is_no_outcome_of_the_cell_is_a_failure_of_it(shell, dask, monkeypatch):
    plan = plan_of(shell, {"x": "echo 1"}, targets=("sh",), seeds=(1,))
    other = plan_of(shell, {"y": "echo 1"}, targets=("sh",), seeds=(1,)).cells[0]
    answer = shell.ShellOutcome.of(other, value=1)
    monkeypatch.setattr(shell.ShellOutcome, "model_validate_json", classmethod(lambda cls, text: answer))
    (outcome,) = execute(plan, dask).outcomes.values()
    assert isinstance(outcome, Failure)
    assert outcome.error_type == "InvalidAnswer"


def test_run_is_sealed_and_its_journal_in_order(shell, dask):
    plan = plan_of(shell, {"x": "echo $SEED"}, seeds=range(5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        execute(plan, dask)
    assert {fault for _, fault in verify(find_run(plan.run_id))} == {""}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"address": "tcp://x:1", "workers": 2}, "The 'address' and 'workers' parameters exclude each other: name one"),
        ({"workers": 0}, "The 'workers' parameter must be at least 1. Got 0 instead."),
        ({"address": "nowhere"}, "such as tcp://host:8786. Got 'nowhere' instead."),
        ({"address": "htp://host:80"}, "such as tcp://host:8786. Got 'htp://host:80' instead."),
    ],
)
def test_cluster_that_cannot_be_meant_is_refused(given, sentence):
    with pytest.raises(ConfigError) as caught:
        DaskExecutor(**given)
    assert sentence in str(caught.value)


def test_certificates_that_are_missing_are_named(tmp_path):
    with pytest.raises(ConfigError, match=r"^The address tls://127.* needs certificates: set distributed\.comm\.tls"):
        DaskExecutor(address="tls://127.0.0.1:1")
    nowhere = str(tmp_path / "cert.pem")
    security = Security(tls_ca_file=nowhere, tls_client_cert=nowhere, tls_client_key=nowhere)
    with pytest.raises(
        ConfigError, match=r"^The certificates for tls://.* cannot be used \(No such file or directory\)"
    ):
        DaskExecutor(address="tls://127.0.0.1:1", security=security)


def test_closed_executor_says_so(cluster):
    dask = DaskExecutor(address=cluster.address)
    dask.close()
    dask.close()
    with pytest.raises(RunError, match="This executor is closed"):
        next(dask.run([], lambda *_: None))


METRIC = """
def closeness(y_true, y_pred, weights=None):
    return float(abs(y_true - y_pred).max())
closeness.higher_is_better = False
"""


@pytest.fixture
def _no_toy_is_left():
    yield
    RUNNERS.unregister("toy")


@pytest.mark.slow
@pytest.mark.usefixtures("_no_toy_is_left")
def test_files_and_builds_of_the_user_are_used_where_the_node_has_them(home, dask, tmp_path):
    (tmp_path / "metric.py").write_text(METRIC)
    runner = toys.write_runner(tmp_path)
    old, new = toys.write_wheel(tmp_path, "1.0"), toys.write_wheel(tmp_path, "1.1", shift=0.5)
    builds = [f"old={runner}@{old}", f"new={runner}@{new}"]
    metric = f"{tmp_path / 'metric.py'}:closeness"
    asked = {"libraries": builds, "metrics": [metric], "seeds": 2}
    here, there = compare("synthetic_reg_small", **asked), compare("synthetic_reg_small", **asked, executor=dask)
    found = [
        {(item.library, item.seed): item.metrics for item in results.results if "closeness" in item.metrics}
        for results in (here, there)
    ]
    assert len(found[0]) == len(here.results) == 4
    assert found[0] == found[1]


@pytest.mark.slow
def test_parity_runs_on_nodes_and_its_predictions_come_home(home, dask):
    (row,) = run_parity("pls", "sklearn", registry_cells=True, max_runs=3, executor=dask).rows
    assert row.status is BindingStatus.OK
    assert len(list((home / "parity" / "arrays").rglob("*.npy"))) == 3


@pytest.mark.slow
def test_importances_are_those_of_the_local_run_with_their_arrays(home, dask):
    asked = {"libraries": ["xgboost", "lightgbm"], "seeds": 2}
    here = importances("iris", **asked)
    stored = contents(here.arrays)
    shutil.rmtree(find_run(here.run_id).path)
    there = importances("iris", **asked, executor=dask)
    assert [(found.key, found.digests) for found in there.results] == [
        (found.key, found.digests) for found in here.results
    ]
    folder = find_run(there.run_id)
    assert contents(there.arrays) == stored
    assert len(stored) > 4
    assert {fault for _, fault in verify(folder)} == {""}


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.npy")}


def test_plan_for_a_device_that_only_nodes_have_is_made_here(home, monkeypatch):
    monkeypatch.setattr("boosters_eval.runners.base.has_cuda_code", lambda file: True)
    asked = {"datasets": "iris", "libraries": ["xgboost"], "seeds": 1, "training": TrainingConfig(device="cuda")}
    assert prepare_comparison(**asked).plan.cells == ()
    assert len(prepare_comparison(**asked, executor="dask").plan.cells) == 1


class Away(Scripted):
    """Cells that would run on another machine, where each fails."""

    local = False


@pytest.mark.parametrize("ask", [compare, importances])
def test_device_of_this_machine_does_not_count_where_an_executor_runs_cells_on_others(home, monkeypatch, ask):
    monkeypatch.setattr("boosters_eval.runners.base.has_cuda_code", lambda file: True)
    with pytest.raises(RunError, match=r"The only cell of run \w+ failed"):
        ask("iris", "xgboost", seeds=1, training=TrainingConfig(device="cuda"), executor=Away(None, "failure"))


def test_bisection_on_other_machines_makes_plans_for_those(home):
    bisector = prepare_bisection("xgboost", versions=["2.0.0", "2.1.0"], executor=Away(None, "failure"))
    assert is_elsewhere(bisector.request)
