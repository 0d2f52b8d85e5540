"""Which cell goes to which node: no cluster is needed to decide that."""

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boosters_eval import Build, Cell, Repeat, Spec, Target, Work
from boosters_eval.cluster import fleet as fleets
from boosters_eval.cluster.fleet import Fleet
from boosters_eval.cluster.messages import Introduction
from boosters_eval.core.machine import MachineInfo

MACHINE = MachineInfo(cpu_model="x", cpu_cores=4, cpu_threads=4, memory_gb=1, os="x").model_dump(mode="json")


def target_of(name):
    return Target(name=name, build=Build(version="1", digest="1"))


def introduction(host="a", cpus=(0, 1, 2, 3)):
    return Introduction(machine=MACHINE, host=host, cpus=cpus)


def works(count, **fields):
    spec = Spec(workload="x", name="x", **fields)
    return [Work(Cell(spec, target_of("t"), Repeat(seed))) for seed in range(count)]


def fleet_of(hosts, cells, threads=1, widest=1):
    """Nodes named by number, each on its host, ready for these cells."""
    fleet = Fleet()
    for node, host in zip(fleet.joined(dict.fromkeys(map(str, range(len(hosts))), threads)), hosts, strict=True):
        fleet.posted(node, introduction(host), widest)
        node.ready = True
    fleet.begin(cells)
    return fleet, {work.cell.key: () for work in cells}


def place_all(fleet, wanted):
    placed = list(iter(lambda: fleet.place_next(wanted), None))
    list(fleet.to_start())
    return placed


def seeds(placed):
    return [one.work.cell.repeat.seed for one in placed]


def test_each_node_runs_one_cell_and_has_one_behind_it():
    fleet, wanted = fleet_of("ab", works(9))
    placed = place_all(fleet, wanted)
    assert [(one.address, seed) for one, seed in zip(placed, seeds(placed), strict=True)] == [
        ("0", 0),
        ("1", 1),
        ("0", 2),
        ("1", 3),
    ]
    assert [one.started for one in placed] == [True, True, False, False]
    fleet.ended(placed[0].number)
    assert seeds(fleet.to_start()) == [2]
    assert seeds(place_all(fleet, wanted)) == [4]


def test_worker_with_many_threads_runs_as_many_cells_as_fit():
    fleet, wanted = fleet_of("a", works(9, n_threads=2), threads=4, widest=2)
    assert seeds(place_all(fleet, wanted)) == [0, 1, 2]
    assert [node.slots for node in fleet.nodes.values()] == [2]


@pytest.mark.parametrize(("hosts", "running"), [("aa", 1), ("ab", 2)])
def test_cells_that_run_alone_are_alone_on_their_host(hosts, running):
    fleet, wanted = fleet_of(hosts, works(5, alone=True))
    placed = place_all(fleet, wanted)
    assert len(placed) == running
    fleet.ended(placed[0].number)
    assert len(place_all(fleet, wanted)) == 1


def test_cell_that_runs_alone_waits_for_others_and_lets_none_pass():
    mixed = [*works(2), *works(1, alone=True), *works(3)[2:]]
    fleet, wanted = fleet_of("a", mixed)
    first, second = place_all(fleet, wanted)
    fleet.ended(first.number)
    assert place_all(fleet, wanted) == []
    fleet.ended(second.number)
    (alone,) = place_all(fleet, wanted)
    assert alone.work.cell.spec.alone


def test_workers_of_one_machine_get_cpus_of_their_own_until_there_are_none_left():
    fleet = Fleet()
    nodes = fleet.joined({"0": 2, "1": 1, "2": 2, "3": 2})
    told = [introduction("a"), introduction("a"), introduction("a"), introduction("b")]
    posts = [fleet.posted(node, found, 1) for node, found in zip(nodes, told, strict=True)]
    assert [(post.jobs, post.cpus) for post in posts] == [(2, (0, 1)), (1, (2,)), (2, None), (2, (0, 1))]
    fleet.lost("0")
    (late,) = fleet.joined({"4": 2})
    assert fleet.posted(late, introduction("a"), 1).cpus == (0, 1)  # what the lost one had


def test_node_is_given_up_without_news_of_it_only_when_it_is_missing_twice_in_a_row():
    fleet, _ = fleet_of("ab", ())
    looks = [{"0": 1}, {"0": 1, "1": 1}, {"0": 1}, {"0": 1}]
    assert [fleet.absent(look) for look in looks] == [[], [], [], ["1"]]


def test_cells_that_a_held_node_gives_back_run_elsewhere():
    fleet, wanted = fleet_of("ab", works(4))
    first, _, third, _ = place_all(fleet, wanted)
    (held,) = fleet.hold({"0", "unknown"})
    assert held.address == "0"
    assert fleet.recalled("0", {third.number, 99}) == [third.number]
    assert fleet.recalled("unknown", {1}) == []
    assert [work.cell.repeat.seed for work in fleet.waiting] == [2]
    assert not fleet.suspect(third.work)
    fleet.ended(first.number)
    assert place_all(fleet, wanted) == []
    assert fleet.hold(()) == []
    assert [placed.address for placed in place_all(fleet, wanted)] == ["0"]


def test_machine_that_is_held_back_keeps_its_repeat_for_a_while_and_then_another_one_has_it(monkeypatch):
    (timed,) = works(1, alone=True)
    fleet, wanted = fleet_of("ab", [timed, Work(Cell(timed.cell.spec, target_of("other"), timed.cell.repeat))])
    (first,) = place_all(fleet, wanted)
    fleet.ended(first.number)
    fleet.hold({first.address})
    assert place_all(fleet, wanted) == []
    monkeypatch.setattr(fleets, "_SOON", 0.0)
    fleet.hold({first.address})
    assert [placed.address for placed in place_all(fleet, wanted)] == [{"0": "1", "1": "0"}[first.address]]


def test_library_that_only_a_held_node_loads_is_waited_for_and_then_fails(monkeypatch):
    fleet, wanted = fleet_of("ab", works(3))
    first, second, third = place_all(fleet, wanted)
    fleet.hold({second.address})
    fleet.ended(first.number)
    assert fleet.cannot_load(fleet.nodes[first.address], first.work)
    assert place_all(fleet, wanted) == []
    monkeypatch.setattr(fleets, "_SOON", 0.0)
    assert [placed.work for placed in place_all(fleet, wanted)] == [first.work]
    fleet.ended(third.number)
    assert not fleet.cannot_load(fleet.nodes[third.address], third.work)


def test_node_that_is_asked_anew_keeps_its_cpus_for_as_long_as_it_has_cells():
    fleet, wanted = fleet_of("aa", works(9))
    crowded = introduction("a").replace(cpus=(0,))
    for node in fleet.nodes.values():
        fleet.posted(node, crowded, 1)
    first, second = fleet.nodes["0"], fleet.nodes["1"]
    place_all(fleet, wanted)
    fleet.lost("0")
    assert first.post.cpus == (0,)
    assert fleet.posted(second, crowded, 1).cpus is None  # its cells would be stopped
    fleet.begin(())
    assert fleet.posted(second, crowded, 1).cpus == (0,)


def test_cells_of_a_lost_node_run_first_and_only_those_that_ran_are_suspected():
    fleet, wanted = fleet_of("ab", works(9))
    placed = place_all(fleet, wanted)
    numbers, failed = fleet.lost("0")
    assert (numbers, failed) == ([placed[0].number, placed[2].number], [])
    assert [work.cell.repeat.seed for work in list(fleet.waiting)[:3]] == [0, 2, 4]
    assert [fleet.suspect(work) for work in list(fleet.waiting)[:2]] == [True, False]
    assert fleet.ended(placed[0].number) is None  # a late answer counts no more


def test_nothing_waits_behind_a_suspect_and_the_second_death_is_its_failure():
    fleet, wanted = fleet_of("abc", works(3))
    place_all(fleet, wanted)
    fleet.lost("0")
    assert [fleet.suspect(work) for work in fleet.waiting] == [True]
    assert place_all(fleet, wanted) == []  # each node has a cell: a suspect never waits behind another
    fleet.waiting.extend(works(9)[5:])
    assert place_all(fleet, wanted) == []  # and no other goes before it
    for one in list(fleet.nodes["1"].cells):
        fleet.ended(one.number)
    placed = place_all(fleet, wanted | {work.cell.key: () for work in works(9)})
    assert [(one.address, one.work.cell.repeat.seed) for one in placed] == [("1", 0), ("2", 5)]
    _, failed = fleet.lost("1")
    assert [work.cell.repeat.seed for work in failed] == [0]


def test_cell_goes_where_its_inputs_are_and_others_are_sent_for():
    cells = works(3)
    fleet, _ = fleet_of("ab", cells)
    wanted = {cell.cell.key: ("big",) for cell in cells}
    assert place_all(fleet, wanted) == []
    assert {(node.address, digest) for node, digest in fleet.missing(wanted)} == {("0", "big"), ("1", "big")}
    assert list(fleet.missing(wanted)) == []  # it is coming
    fleet.nodes["1"].inputs.add("big")
    assert {one.address for one in place_all(fleet, wanted)} == {"1"}


def test_cell_that_waits_behind_a_long_one_goes_to_a_node_that_is_idle():
    fleet, wanted = fleet_of("ab", works(2))
    fleet.nodes["1"].ready = False
    first, second = place_all(fleet, wanted)
    assert fleet.moved(wanted) is None
    fleet.nodes["1"].ready = True
    number, placed = fleet.moved(wanted)
    assert (number, placed.address, seeds([placed])) == (second.number, "1", [1])
    assert fleet.moved(wanted) is None
    assert fleet.ended(second.number) is None  # if it had begun there just then, that counts no more
    assert fleet.ended(first.number) is first
    assert fleet.in_flight() == 1


def test_idle_node_gets_the_inputs_of_a_cell_that_waits_elsewhere():
    cells = works(2)
    fleet, _ = fleet_of("ab", cells)
    wanted = {cell.cell.key: ("big",) for cell in cells}
    fleet.nodes["0"].inputs.add("big")
    place_all(fleet, wanted)
    assert fleet.moved(wanted) is None
    assert [(node.address, digest) for node, digest in fleet.missing(wanted)] == [("1", "big")]


def test_library_that_a_node_cannot_load_is_left_to_the_others():
    spec = Spec(workload="x", name="x")
    cells = [Work(Cell(spec, target_of(target), Repeat(seed))) for seed in range(6) for target in "tu"]
    fleet, wanted = fleet_of("ab", cells)
    broken, whole = fleet.nodes.values()
    first = place_all(fleet, wanted)[0]
    assert first.address == broken.address
    fleet.ended(first.number)
    assert fleet.cannot_load(broken, first.work)
    ran = Counter()
    while fleet.waiting or fleet.in_flight():
        place_all(fleet, wanted)
        for node in (broken, whole):
            for one in node.cells[:1]:
                fleet.ended(one.number)
                if (
                    node is not broken
                    or one.work.cell.lane not in node.lacking
                    or not fleet.cannot_load(node, one.work)
                ):
                    ran[node.address, one.work.cell.target] += 1
    assert ran[broken.address, first.work.cell.target] == 0
    assert sum(ran.values()) == len(cells)
    fleet.begin(cells)
    assert not broken.lacking  # the next run tries again


def test_cell_whose_library_no_node_can_load_fails_instead_of_waiting_for_ever():
    fleet, wanted = fleet_of("ab", works(1))
    (placed,) = place_all(fleet, wanted)
    fleet.ended(placed.number)
    assert fleet.cannot_load(fleet.nodes[placed.address], placed.work)
    (again,) = place_all(fleet, wanted)
    assert again.address != placed.address
    fleet.lost(again.address)
    (last,) = place_all(fleet, wanted)
    assert last.address == placed.address
    fleet.ended(last.number)
    assert not fleet.cannot_load(fleet.nodes[last.address], last.work)


@pytest.mark.parametrize(("waited", "left"), [(1.0, True), (1000.0, False)])
def test_node_that_is_being_asked_may_load_what_others_cannot_for_a_while(waited, left):
    fleet, wanted = fleet_of("ab", works(1))
    late = fleet.nodes["1"]
    late.pause()
    (placed,) = place_all(fleet, wanted)
    fleet.ended(placed.number)
    late.paused -= waited
    assert fleet.cannot_load(fleet.nodes["0"], placed.work) is left
    assert place_all(fleet, wanted) == []
    late.ready = True
    assert [one.address for one in place_all(fleet, wanted)] == (["1"] if left else [])


def test_cells_of_a_retired_node_are_not_suspected():
    fleet, wanted = fleet_of("ab", works(4))
    place_all(fleet, wanted)
    _, failed = fleet.lost("0", retired=True)
    assert failed == []
    assert not any(map(fleet.suspect, fleet.waiting))


def test_inputs_that_were_on_their_way_are_sent_again_in_the_next_run():
    cells = works(1)
    fleet, _ = fleet_of("a", cells)
    wanted = {cells[0].cell.key: ("big",)}
    assert len(list(fleet.missing(wanted))) == len(list(fleet.missing(wanted))) + 1
    fleet.begin(cells)
    assert len(list(fleet.missing(wanted))) == 1


def test_timed_cell_stays_with_the_others_of_its_repeat_even_if_its_library_cannot_be_loaded():
    fleet, wanted = fleet_of("ab", works(1, alone=True))
    (placed,) = place_all(fleet, wanted)
    fleet.ended(placed.number)
    assert not fleet.cannot_load(fleet.nodes[placed.address], placed.work)


def test_nothing_is_sent_to_a_machine_on_which_a_cell_runs_alone():
    cells = works(2, alone=True)
    fleet, _ = fleet_of("a", cells)
    wanted = {cells[0].cell.key: (), cells[1].cell.key: ("big",)}
    (running,) = place_all(fleet, wanted)
    assert list(fleet.missing(wanted)) == []
    fleet.ended(running.number)
    assert [digest for _, digest in fleet.missing(wanted)] == ["big"]


def timed(repeats, targets="tuvw"):
    spec = Spec(workload="x", name="x", alone=True)
    return [Work(Cell(spec, target_of(target), Repeat(seed))) for seed in range(repeats) for target in targets]


def run_all(fleet, wanted):
    """Where each cell ran, by repeat and target, if each node ends its cell in turn."""
    ran = {}
    while fleet.waiting or fleet.in_flight():
        for one in place_all(fleet, wanted):
            ran[one.work.cell.repeat.seed, one.work.cell.target] = fleet.nodes[one.address].host
        for node in fleet.nodes.values():
            for one in node.cells[:1]:
                fleet.ended(one.number)
    return ran


def hosts_by_repeat(ran):
    return [{host for (seed, _), host in ran.items() if seed == repeat} for repeat in sorted({seed for seed, _ in ran})]


@pytest.mark.parametrize("hosts", ["ab", "aabb", "abcdef"])
def test_cells_of_a_repeat_that_are_timed_run_on_one_machine_and_repeats_on_all(hosts):
    cells = timed(5)
    fleet, wanted = fleet_of(hosts, cells)
    ran = run_all(fleet, wanted)
    assert len(ran) == len(cells)
    found = hosts_by_repeat(ran)
    assert all(len(places) == 1 for places in found)
    assert len(set.union(*found)) == min(5, len(set(hosts)))


def test_repeat_that_is_longer_than_the_search_keeps_no_other_machine_idle():
    cells = timed(2, targets=[str(number) for number in range(200)])
    fleet, wanted = fleet_of("ab", cells)
    assert seeds(place_all(fleet, wanted)) == [0, 1]


@pytest.mark.parametrize("gone", ["lost", "refused"])
def test_repeat_goes_to_another_machine_only_if_its_own_has_no_node_left(gone):
    cells = timed(2)
    fleet, wanted = fleet_of("aab", cells)
    placed = place_all(fleet, wanted)
    assert [(one.address, one.work.cell.repeat.seed) for one in placed] == [("0", 0), ("2", 1)]
    leave = fleet.lost if gone == "lost" else lambda address: fleet.refuse(fleet.nodes[address], "it is broken")
    for one in placed:
        fleet.ended(one.number)
    leave("0")
    again = place_all(fleet, wanted)
    assert {(one.address, one.work.cell.repeat.seed) for one in again} == {("1", 0), ("2", 1)}
    for one in again:
        fleet.ended(one.number)
    leave("1")
    ran = run_all(fleet, wanted)
    assert set(ran.values()) == {"b"}
    assert len(ran) == 4


def test_timed_cell_that_its_node_did_not_run_is_placed_again():
    cells = timed(1, targets="t")
    fleet, wanted = fleet_of("ab", cells)
    (one,) = place_all(fleet, wanted)
    fleet.ended(one.number)
    fleet.again([one.work])
    (again,) = place_all(fleet, wanted)
    assert again.address == one.address


def test_machine_that_waits_for_a_timed_repeat_gets_the_inputs_of_its_own():
    cells = timed(2, targets="t")
    fleet, _ = fleet_of("ab", cells)
    wanted = {cells[0].cell.key: ("first",), cells[1].cell.key: ("second",)}
    fleet.nodes["0"].inputs.add("first")
    fleet.waiting.append(timed(1, targets="u")[0])
    wanted |= {fleet.waiting[2].cell.key: ("first",)}
    (one,) = place_all(fleet, wanted)
    assert one.address == "0"
    assert ("1", "second") in {(node.address, digest) for node, digest in fleet.missing(wanted)}


class Cluster:
    """Nodes that join, get inputs, end cells and die, all by chance."""

    def __init__(self, chance, cells, wanted):
        self.chance, self.wanted = chance, wanted
        self.fleet = Fleet()
        self.fleet.begin(cells)
        self.ended = Counter()
        self.sent = []
        self.names = 0

    def join(self):
        self.names += 1
        (node,) = self.fleet.joined({**dict.fromkeys(self.fleet.nodes, 1), str(self.names): self.chance.randint(1, 3)})
        node.host, node.slots, node.ready = self.chance.choice("ab"), node.threads, True

    def turn(self):
        while self.fleet.place_next(self.wanted) or self.fleet.moved(self.wanted):
            pass
        self.sent += [(node.address, digest) for node, digest in self.fleet.missing(self.wanted)]
        list(self.fleet.to_start())
        running = [one for node in self.fleet.nodes.values() for one in node.cells[: node.slots]]
        if not self.fleet.nodes or self.chance.random() < 0.05:
            self.join()
        elif self.chance.random() < 0.03:
            self.die(self.chance.choice(list(self.fleet.nodes)))
        elif self.sent and self.chance.random() < 0.5:
            self.arrive(*self.sent.pop(self.chance.randrange(len(self.sent))))
        elif running:
            self.end(self.chance.choice(running))
        else:
            assert self.sent, "nothing runs, and nothing is on its way"

    def die(self, address):
        self.sent = [(node, digest) for node, digest in self.sent if node != address]
        self.ended.update(work.cell.key for work in self.fleet.lost(address)[1])

    def arrive(self, address, digest):
        node = self.fleet.nodes[address]
        node.coming.discard(digest)
        node.inputs.add(digest)

    def end(self, placed):
        self.fleet.ended(placed.number)
        self.ended[placed.work.cell.key] += 1


@settings(max_examples=200, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 60), st.sampled_from([0, 0.2, 1]))
def test_each_cell_ends_once_whatever_becomes_of_the_nodes(chance, count, alone):
    specs = [Spec(workload="x", name=str(number), alone=chance.random() < alone) for number in range(4)]
    cells = [
        Work(Cell(chance.choice(specs), target_of(chance.choice("tuv")), Repeat(seed // 3))) for seed in range(count)
    ]
    cells = list({work.cell.key: work for work in cells}.values())
    wanted = {work.cell.key: chance.sample("xyz", chance.randint(0, 2)) for work in cells}
    cluster = Cluster(random.Random(chance.random()), cells, wanted)
    for _ in range(50 * count + 500):
        if not (cluster.fleet.waiting or cluster.fleet.in_flight()):
            break
        cluster.turn()
    assert cluster.ended == Counter(wanted.keys())
