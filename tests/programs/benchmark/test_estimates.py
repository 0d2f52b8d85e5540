"""How long a plan takes, from what its cells took before."""

import pytest

from boosters_eval.programs.benchmark.estimates import costs_by_key, seconds_by_key
from boosters_eval.programs.benchmark.suites import cost_key
from boosters_eval.programs.history.hook import HistoryObserver
from boosters_eval.runners.parameters import BoosterType, TrainingConfig
from tiny import plan_of, tiny_config

pytestmark = pytest.mark.usefixtures("faulty")


def costs(fault, seconds):
    training = tiny_config(fault).training
    return {cost_key("tiny", BoosterType.GBDT, training, "faulty"): seconds}


def test_a_cell_takes_what_such_cells_took_and_an_unknown_one_the_mean():
    plan = plan_of(tiny_config(), tiny_config("nan"), seeds=2)
    found = seconds_by_key(plan.cells, costs("none", 3.0))
    assert found == dict.fromkeys((cell.key for cell in plan.cells), 3.0)


def test_nothing_is_estimated_if_less_than_half_is_known():
    plan = plan_of(tiny_config(), tiny_config("nan"), tiny_config("hang"), seeds=2)
    assert seconds_by_key(plan.cells, costs("none", 3.0)) == {}
    assert seconds_by_key(plan.cells, {}) == {}


def test_parameters_that_this_version_does_not_know_are_skipped():
    training = TrainingConfig().model_dump_json()
    found = costs_by_key({("a", "gbdt", "x", training): 1.0, ("a", "gbdt", "y", '{"odd": 1}'): 2.0})
    assert list(found.values()) == [1.0]


def test_a_history_that_cannot_be_read_harms_no_run(monkeypatch):
    def broken(_home):
        raise OSError("damaged")

    monkeypatch.setattr("boosters_eval.programs.history.query.seconds_by_cell", broken)
    assert HistoryObserver.expected_seconds(plan_of(tiny_config()), None) == {}
