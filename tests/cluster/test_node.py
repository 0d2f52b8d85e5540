"""A node by itself, in this process: its pool outlives the cells, and it always answers."""

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import psutil
import pytest

import boosters_eval
from boosters_eval import Limits, Work
from boosters_eval.cluster import node as nodes
from boosters_eval.cluster.executor import CellRequests
from boosters_eval.cluster.messages import CellReply, Introduction, Order, Parcels, Post, name_lease, name_task
from boosters_eval.cluster.node import Node, introduce
from boosters_eval.engine import warm
from boosters_eval.engine.processes import ImportPath
from dask_clusters import until
from shells import plan_of

ONE = Post(jobs=1, cpus=None)


class LoneWorker:
    """What a node uses of a dask worker."""

    def __init__(self, folder):
        self.address = "tcp://lone:1"
        self.local_directory = str(folder)
        self.plugins = {}
        self.state = SimpleNamespace(tasks={})
        self.loop = self

    def add_callback(self, act):
        threading.Thread(target=apart, args=(act(),)).start()

    async def plugin_add(self, plugin, name):
        self.plugins[name] = plugin
        plugin.setup(self)

    async def plugin_remove(self, name):
        self.plugins.pop(name).teardown(self)


@pytest.fixture
def node(tmp_path):
    worker = LoneWorker(tmp_path)
    made = Node("session", str(tmp_path))
    apart(worker.plugin_add(made, made.name))
    yield made
    apart(made.part())
    assert not worker.plugins
    assert not made.scratch.exists()


def requests_of(shell, scripts, seeds=(1,), limits=Limits(), **fields):  # noqa: B008 (frozen)
    plan = plan_of(shell, scripts, targets=("sh",), seeds=seeds, **fields)
    works = [Work(cell, limits=limits) for cell in plan.cells]
    packed = CellRequests(works, Parcels())
    return packed, [Order.model_validate_json(packed.order(work)) for work in works]


def apart(work):
    """Run a coroutine in a thread: that of the tests may have a loop already, of a browser."""
    with ThreadPoolExecutor(1) as one:
        return one.submit(asyncio.run, work).result()


def run(node, order):
    return apart(node.run(order))


def run_in_time(node, packed, order):
    """Run a cell before the node rests, which on a busy machine may take another try."""
    replies = []

    def tried():
        node.begin(packed.question, ONE)
        replies.append(run(node, order))
        return replies[-1].kind == "result"

    until(tried, "a result")
    return replies[-1]


def told_by(worker, question):
    return Introduction.model_validate_json(
        apart(nodes.meet("session", question.model_dump_json(), dask_worker=worker))
    )


def fault_of(question, **changes):
    return introduce(question.replace(**changes).model_dump_json()).faults


def lane_pid(reply):
    return float(reply.text.partition('"value":')[2].partition(",")[0])


def test_cells_of_a_node_are_forked_from_the_same_lane(shell, node):
    packed, orders = requests_of(shell, {"x": "cut -d' ' -f4 /proc/$PPID/stat"}, seeds=(1, 2))
    node.begin(packed.question, ONE)
    replies = [run(node, order) for order in orders]
    assert [reply.kind for reply in replies] == ["result", "result"]
    node.begin(packed.question, ONE)  # the next run of the program
    replies.append(run(node, orders[0]))
    assert len(set(map(lane_pid, replies))) == 1


def test_next_plan_keeps_the_lanes_that_it_needs_too(shell, node):
    first, orders = requests_of(shell, {"x": "cut -d' ' -f4 /proc/$PPID/stat"})
    second, others = requests_of(shell, {"x": "cut -d' ' -f4 /proc/$PPID/stat"}, limits=Limits(timeout_s=60.0))
    node.begin(first.question, ONE)
    before = run(node, orders[0])
    node.begin(second.question, ONE)
    assert lane_pid(run(node, others[0])) == lane_pid(before)


def test_node_that_is_stopped_answers_for_its_cells_and_can_begin_again(shell, node, tmp_path):
    packed, (order,) = requests_of(shell, {"x": f"touch {tmp_path}/begun; sleep 600"})
    quick, (other,) = requests_of(shell, {"y": "echo 1"})
    replies = []
    node.begin(packed.question, ONE)
    running = threading.Thread(target=lambda: replies.append(run(node, order)))
    running.start()
    until((tmp_path / "begun").exists, "the cell")
    node.stop()
    running.join()
    assert [reply.kind for reply in replies] == ["unready"]
    assert run(node, order).text == "RuntimeError: the node has no pool"
    node.begin(quick.question, ONE)
    assert run(node, other).kind == "result"


def test_cell_that_came_back_while_it_runs_has_an_answer_for_each(shell, node):
    packed, (order,) = requests_of(shell, {"x": "sleep 0.1; echo 1"})
    node.begin(packed.question, Post(jobs=2, cpus=None))
    replies = []
    threads = [threading.Thread(target=lambda: replies.append(run(node, order).kind)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert replies == ["result", "result"]


def test_node_without_cells_gives_its_memory_back(shell, node, monkeypatch):
    packed, (order,) = requests_of(shell, {"x": "cut -d' ' -f4 /proc/$PPID/stat"})
    monkeypatch.setattr(nodes, "_IDLE", 1.0)
    lane = int(lane_pid(run_in_time(node, packed, order)))
    until(lambda: not psutil.pid_exists(lane), "the end of its lane")
    assert run(node, order).kind == "unready"
    until(lambda: not warm._kept.in_use, "its pool to be given back")
    until(lambda: not node.scratch.exists(), "the end of its folder")


def test_node_that_never_gets_a_cell_goes_away(shell, tmp_path, monkeypatch):
    monkeypatch.setattr(nodes, "_IDLE", 0.1)
    packed, _ = requests_of(shell, {"x": "echo 1"})
    worker = LoneWorker(tmp_path)
    assert told_by(worker, packed.question).faults == ()
    until(lambda: not worker.plugins and not list(tmp_path.iterdir()), "its end")


def test_node_that_a_program_holds_stays_there_when_it_rests(shell, node, monkeypatch):
    monkeypatch.setattr(nodes, "_IDLE", 0.3)
    packed, (order,) = requests_of(shell, {"x": "echo 1"})
    node.transition(name_lease("session", node._worker.address) + "1", "executing", "memory")
    node.store.receive("half", "a", 0, b"1")
    run_in_time(node, packed, order)
    until(lambda: not warm._kept.in_use, "its rest")
    assert node.name in node._worker.plugins
    assert node.scratch.exists()
    node.store.receive("half", "a", 1, b"2")
    assert run_in_time(node, packed, order).kind == "result"


def test_node_that_is_met_anew_knows_that_its_program_holds_it(tmp_path):
    worker = LoneWorker(tmp_path)
    worker.state.tasks = {name_lease("session", worker.address) + "1": None}
    made = Node("session", str(tmp_path))
    apart(worker.plugin_add(made, made.name))
    assert made._leased
    apart(made.part())


def test_cell_that_was_taken_back_before_it_began_never_begins(shell, node, tmp_path, monkeypatch):
    packed, (order,) = requests_of(shell, {"x": f"touch {tmp_path}/begun; echo 1"})
    node.begin(packed.question, ONE)
    worker = node._worker
    states = {1: "executing", 2: "ready", 3: "memory"}
    worker.state.tasks = {name_task("session", number): SimpleNamespace(state=states[number]) for number in states}
    del worker.plugins[node.name]  # it has parted, and is met anew before the task begins
    assert apart(nodes.recall("session", "1 2 3 4", dask_worker=worker)) == "2 4"
    worker.plugins[node.name] = node
    monkeypatch.setattr(nodes, "get_worker", lambda: worker)
    text = order.model_dump_json()
    kinds = [CellReply.model_validate_json(apart(nodes.run_cell("session", n, text))).kind for n in (2, 4)]
    assert kinds == ["unready", "unready"]
    assert not (tmp_path / "begun").exists()
    assert CellReply.model_validate_json(apart(nodes.run_cell("session", 5, text))).kind == "result"


def test_worker_that_is_asked_twice_at_once_becomes_one_node(shell, tmp_path):
    packed, _ = requests_of(shell, {"x": "echo 1"})
    worker = LoneWorker(tmp_path)

    async def twice():
        text = packed.question.model_dump_json()
        return await asyncio.gather(*(nodes.meet("s", text, dask_worker=worker) for _ in range(2)))

    assert [Introduction.model_validate_json(text).faults for text in apart(twice())] == [(), ()]
    (made,) = worker.plugins.values()
    assert list(tmp_path.iterdir()) == [made.scratch]
    apart(made.part())


def test_worker_whose_folder_is_gone_becomes_no_node(shell, tmp_path):
    packed, _ = requests_of(shell, {"x": "echo 1"})
    worker = LoneWorker(tmp_path / "gone")
    (fault,) = told_by(worker, packed.question).faults
    assert fault == f"it cannot write to its folder {tmp_path}/gone: No such file or directory"
    assert not worker.plugins


def test_cell_that_lasts_longer_than_a_node_may_rest_is_not_stopped(shell, node, monkeypatch):
    packed, (order,) = requests_of(shell, {"x": "sleep 0.5; echo 1"})
    monkeypatch.setattr(nodes, "_IDLE", 0.1)
    assert run_in_time(node, packed, order).kind == "result"


def test_cell_whose_task_is_cancelled_leaves_the_node_able_to_run_the_next(shell, node, tmp_path):
    packed, (order,) = requests_of(shell, {"x": f"touch {tmp_path}/begun; sleep 0.2; echo 1"})
    node.begin(packed.question, ONE)

    async def cancelled():
        task = asyncio.create_task(node.run(order))
        await asyncio.to_thread(until, (tmp_path / "begun").exists, "the cell")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    apart(cancelled())
    assert run(node, order).kind == "result"


@pytest.mark.parametrize(("value", "seen"), [("65536", 1.0), ("70000", 70000.0)])
def test_cells_do_not_inherit_what_dask_sets_for_its_workers(shell, node, monkeypatch, value, seen):
    packed, (order,) = requests_of(shell, {"x": "echo ${MALLOC_TRIM_THRESHOLD_-1}"})
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", value)
    node.begin(packed.question, ONE)
    assert json.loads(run(node, order).text)["value"] == seen


def test_cell_that_nobody_waits_for_does_not_keep_the_next_run_waiting(shell, node, tmp_path):
    packed, (order,) = requests_of(shell, {"x": f"touch {tmp_path}/begun; sleep 600"})
    following, (other,) = requests_of(shell, {"y": "echo 1"})
    node.begin(packed.question, ONE)
    running = threading.Thread(target=run, args=(node, order))
    running.start()
    until((tmp_path / "begun").exists, "the cell")
    node.begin(following.question, ONE)
    running.join()
    assert run(node, other).kind == "result"


def test_node_whose_pool_broke_gets_a_new_one_for_the_same_run(shell, node):
    packed, (order,) = requests_of(shell, {"x": "echo 1"})
    node.begin(packed.question, ONE)
    assert run(node, order).kind == "result"
    node._pool.close()
    until(lambda: run(node, order).kind == "unready", "the end of its pool")
    node.begin(packed.question, ONE)
    assert run(node, order).kind == "result"


def test_input_that_is_not_there_is_told(shell, node):
    packed, (order,) = requests_of(shell, {"x": "echo 1"})
    node.begin(packed.question, ONE)
    lacking = order.replace(inputs={"data": {"kind": "parcel", "text": "0" * 32}})
    assert run(node, lacking).text == "RuntimeError: the input data is not there"


def test_question_of_another_version_is_answered_whatever_it_asks():
    (fault,) = introduce('{"version": "9.0", "priority": 1}').faults
    assert fault == f"the plan is of boosters-eval 9.0, the node has {boosters_eval.__version__}"
    (fault,) = introduce(f'{{"version": "{boosters_eval.__version__}"}}').faults
    assert fault.startswith("it cannot say what it has: ConfigError: The 'run' parameter of Question is required")


def test_node_introduces_itself_and_names_both_builds(shell):
    packed, _ = requests_of(shell, {"x": "echo 1"})
    told = introduce(packed.question.model_dump_json())
    assert told.faults == ()
    assert told.cpus
    ((lane, identity),) = packed.question.lanes
    build = lane.target.build
    other = lane._replace(target=lane.target.replace(build={"version": "other", "digest": "1"}))
    (fault,) = fault_of(packed.question, lanes=((other, identity),))
    assert fault == f"the plan has sh other (1), the node {build.version} ({build.digest})"
    gone = identity._replace(path=ImportPath(("/nowhere",)))
    (fault,) = fault_of(packed.question, lanes=((lane, gone),))
    assert fault.endswith("the node has none, because it has no folder /nowhere")
    unknown = identity._replace(workload={"module": "no_such_module", "name": "X", "file": None})
    (fault,) = fault_of(packed.question, lanes=((lane, unknown),))
    assert "the node has none: ModuleNotFoundError: No module named 'no_such_module'" in fault
