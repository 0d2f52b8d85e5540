"""Which lanes a pool starts for work that it does not know in advance, and what they contain."""

import sys
from importlib import import_module
from pathlib import Path

import pytest

from boosters_eval import WORKLOADS, LocalPool, Plan, Repeat, Spec, Work
from boosters_eval.engine.feed import Feed
from boosters_eval.engine.lanes import identities
from shells import plan_of


@pytest.fixture
def sharing(monkeypatch):
    """Makes plans with one cell per target."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "plugins"))
    module = import_module("sharing_workload")
    WORKLOADS.register("sharing", module.Sharing, replace=True)
    yield lambda *targets: Plan.grid("x", [Spec(workload="sharing", name="x")], targets, [Repeat(1)])
    WORKLOADS.unregister("sharing")
    sys.modules.pop("sharing_workload", None)


def served(pool, plan, sent=None):
    """The outcomes of cells that come one by one, each after the one before it has ended."""
    works = [Work(cell, plan.build_of(cell)) for cell in plan.cells]
    feed, found, coming = Feed(), [], iter(works[:sent])
    feed.put(next(coming))
    for outcome in pool.serve(feed, identities(works), None, lambda *_: None):
        found.append(outcome)
        following = next(coming, None)
        if following is None:
            feed.end()
        else:
            feed.put(following)
    feed.close()
    return found


@pytest.mark.parametrize("order", [("many", "more", "few"), ("few", "many", "more")])
def test_lane_contains_no_more_than_it_needs_in_whatever_order_cells_come(sharing, order):
    plan = sharing(*order)
    with LocalPool(1) as pool:
        found = {outcome.target: outcome.modules for outcome in served(pool, plan)}
    everything = ("csv", "xml.dom.minidom", "sqlite3")
    assert found == {"few": ("csv",), "many": everything, "more": everything}


def test_lane_of_which_no_cell_comes_is_not_started(shell):
    plan = plan_of(shell, {"x": "echo 1"}, seeds=(1,), targets=("sh", "bash"))
    with LocalPool(1) as pool:
        (outcome,) = served(pool, plan, sent=1)
        assert [process.lane.target for process in pool._lanes] == [outcome.target]
