"""How far two sets of predictions are apart: in their own steps, and in standard deviations."""

import math

import numpy as np
import pytest

from boosters_eval.programs.upgrade.judge import Drift


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_step_of_the_predictions_own_precision_is_an_ulp(kind):
    old = np.array([1.0, -2.0, 0.1], dtype=kind)
    new = np.nextafter(old, kind(10))
    found = Drift.of(old.astype(np.float64), new.astype(np.float64))
    assert found.ulps == 1
    assert found.state(1e-6) == "drift"
    assert found.state(0.0) == "changed"


def test_steps_are_counted_across_zero():
    tiny = np.nextafter(0.0, 1.0)
    assert Drift.of(np.array([-tiny, 1.0]), np.array([tiny, 1.0])).ulps == 2


def test_the_same_predictions_are_identical_and_negative_zero_is_zero():
    assert Drift.of(np.array([0.0, 1.0]), np.array([-0.0, 1.0])).state(0.0) == "identical"


def test_a_difference_is_in_standard_deviations_of_its_column():
    old = np.array([[0.0, 0.0], [2.0, 2000.0]])
    found = Drift.of(old, old + np.array([0.5, 1.0]))
    assert found.deviations == pytest.approx(0.5)
    assert found.largest == 1.0


def test_any_difference_of_predictions_that_are_all_alike_is_a_change():
    assert Drift.of(np.ones(3), np.ones(3) + 1e-12).state(1e-6) == "changed"


def test_another_shape_is_a_change():
    assert Drift.of(np.ones((3, 2)), np.ones(3)).state(1e9) == "changed"


def test_the_worst_of_several_splits_is_told():
    found = Drift.worst([Drift(), Drift(0.5, 3, 0.1), Drift(0.2, 9, 0.01)])
    assert (found.largest, found.ulps, found.deviations) == (0.5, 9, 0.1)
    assert Drift.worst([Drift(), Drift(0.5, 3, None)]).state(1e9) == "changed"


@pytest.mark.parametrize(
    ("old", "new", "state"),
    [
        ([1.0, math.nan], [1.0, math.nan], "identical"),
        ([1.0, math.inf], [1.0, math.inf], "identical"),
        ([1.0, math.nan], [1.0, 2.0], "changed"),
        ([1.0, 2.0], [1.0, -math.inf], "changed"),
        ([1.0, 2.0], [1.0], "changed"),
        ([1.0, 2.0], [1.0, 2.0 + 1e-9], "drift"),
    ],
)
def test_what_is_no_number_differs_from_every_number(old, new, state):
    drift = Drift.of(np.array(old), np.array(new))
    assert drift.state(1e-6) == state
    assert all(value is None or math.isfinite(value) for value in drift.fields.values())
