"""Which cell goes to which node: no cluster is needed to decide that."""

import pytest

from boosters_eval import Build, Cell, Repeat, Spec, Work
from boosters_eval.cluster.fleet import Fleet
from boosters_eval.cluster.messages import Introduction
from boosters_eval.core.machine import MachineInfo

MACHINE = MachineInfo(cpu_model="x", cpu_cores=4, cpu_threads=4, memory_gb=1, os="x").model_dump(mode="json")
BUILD = Build(version="1", digest="1")


def introduction(host="a", cpus=(0, 1, 2, 3)):
    return Introduction(version="1", python="3", machine=MACHINE, host=host, cpus=cpus)


def works(count, **fields):
    spec = Spec(workload="x", name="x", **fields)
    return [Work(Cell(spec, "t", Repeat(seed)), BUILD) for seed in range(count)]


def fleet_of(hosts, cells, threads=1, widest=1):
    """Nodes named by number, each on its host, ready for these cells."""
    fleet = Fleet()
    for node, host in zip(fleet.joined(dict.fromkeys(map(str, range(len(hosts))), threads)), hosts, strict=True):
        fleet.posted(node, introduction(host), widest)
        node.ready = True
    fleet.begin(cells)
    return fleet, {work.cell.key: () for work in cells}


def all_flights(fleet, wanted):
    flights = []
    while (flight := fleet.next_flight(wanted)) is not None:
        flights.append(flight)
    list(fleet.to_start())
    return flights


def seeds(flights):
    return [flight.work.cell.repeat.seed for flight in flights]


def test_each_node_runs_one_cell_and_has_one_behind_it():
    fleet, wanted = fleet_of("ab", works(9))
    flights = all_flights(fleet, wanted)
    assert [(flight.address, seed) for flight, seed in zip(flights, seeds(flights), strict=True)] == [
        ("0", 0),
        ("1", 1),
        ("0", 2),
        ("1", 3),
    ]
    assert [flight.started for flight in flights] == [True, True, False, False]
    fleet.landed(flights[0].number)
    assert seeds(fleet.to_start()) == [2]
    assert seeds(all_flights(fleet, wanted)) == [4]


def test_worker_with_many_threads_runs_as_many_cells_as_fit():
    fleet, wanted = fleet_of("a", works(9, n_threads=2), threads=4, widest=2)
    assert seeds(all_flights(fleet, wanted)) == [0, 1, 2]
    assert fleet.slots() == 2


@pytest.mark.parametrize(("hosts", "running"), [("aa", 1), ("ab", 2)])
def test_cells_that_run_alone_are_alone_on_their_host(hosts, running):
    fleet, wanted = fleet_of(hosts, works(5, alone=True))
    flights = all_flights(fleet, wanted)
    assert len(flights) == running
    fleet.landed(flights[0].number)
    assert len(all_flights(fleet, wanted)) == 1


def test_cell_that_runs_alone_waits_for_others_and_lets_none_pass():
    mixed = [*works(2), *works(1, alone=True), *works(3)[2:]]
    fleet, wanted = fleet_of("a", mixed)
    first, second = all_flights(fleet, wanted)
    fleet.landed(first.number)
    assert all_flights(fleet, wanted) == []
    fleet.landed(second.number)
    (alone,) = all_flights(fleet, wanted)
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


def test_cells_of_a_lost_node_run_first_and_only_those_that_ran_are_suspected():
    fleet, wanted = fleet_of("ab", works(9))
    flights = all_flights(fleet, wanted)
    numbers, guilty = fleet.lost("0")
    assert (numbers, guilty) == ([flights[0].number, flights[2].number], [])
    assert [work.cell.repeat.seed for work in list(fleet.waiting)[:3]] == [0, 2, 4]
    assert [fleet.suspect(work) for work in list(fleet.waiting)[:2]] == [True, False]
    assert fleet.landed(flights[0].number) is None  # a late answer counts no more


def test_nothing_waits_behind_a_suspect_and_the_second_death_is_its_failure():
    fleet, wanted = fleet_of("abc", works(3))
    all_flights(fleet, wanted)
    fleet.lost("0")
    assert [fleet.suspect(work) for work in fleet.waiting] == [True]
    assert all_flights(fleet, wanted) == []  # each node has a cell: a suspect never waits behind another
    fleet.waiting.extend(works(9)[5:])
    assert all_flights(fleet, wanted) == []  # and no other goes before it
    for flight in list(fleet.nodes["1"].flights):
        fleet.landed(flight.number)
    flights = all_flights(fleet, wanted | {work.cell.key: () for work in works(9)})
    assert [(flight.address, flight.work.cell.repeat.seed) for flight in flights] == [("1", 0), ("2", 5)]
    _, guilty = fleet.lost("1")
    assert [work.cell.repeat.seed for work in guilty] == [0]


def test_cell_goes_where_its_inputs_are_and_others_are_sent_for():
    cells = works(3)
    fleet, _ = fleet_of("ab", cells)
    wanted = {cell.cell.key: ("big",) for cell in cells}
    assert all_flights(fleet, wanted) == []
    assert {(node.address, digest) for node, digest in fleet.missing(wanted)} == {("0", "big"), ("1", "big")}
    assert list(fleet.missing(wanted)) == []  # it is coming
    fleet.nodes["1"].inputs.add("big")
    assert {flight.address for flight in all_flights(fleet, wanted)} == {"1"}


def test_cell_that_waits_behind_a_long_one_goes_to_a_node_that_is_idle():
    fleet, wanted = fleet_of("ab", works(2))
    fleet.nodes["1"].ready = False
    first, second = all_flights(fleet, wanted)
    assert fleet.moved(wanted) is None
    fleet.nodes["1"].ready = True
    number, flight = fleet.moved(wanted)
    assert (number, flight.address, seeds([flight])) == (second.number, "1", [1])
    assert fleet.moved(wanted) is None
    assert fleet.landed(second.number) is None  # if it had begun there just then, that counts no more
    assert fleet.landed(first.number) is first
    assert fleet.flying() == 1


def test_idle_node_gets_the_inputs_of_a_cell_that_waits_elsewhere():
    cells = works(2)
    fleet, _ = fleet_of("ab", cells)
    wanted = {cell.cell.key: ("big",) for cell in cells}
    fleet.nodes["0"].inputs.add("big")
    all_flights(fleet, wanted)
    assert fleet.moved(wanted) is None
    assert [(node.address, digest) for node, digest in fleet.missing(wanted)] == [("1", "big")]
