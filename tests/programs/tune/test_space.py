"""The space that is searched, and what is drawn from it."""

from pathlib import Path

import numpy as np
import pytest

from boosters_eval import RUNNERS, TrainingConfig
from boosters_eval.core.errors import ConfigError
from boosters_eval.programs.tune.space import COMMON, OWN, SearchRange, choose_axes, draw


@pytest.mark.parametrize("sampler", ["random", "sobol"])
@pytest.mark.parametrize("axes", [COMMON, *OWN.values()])
def test_values_lie_in_their_ranges_and_more_trials_begin_with_those_of_fewer(sampler, axes):
    drawn = draw(axes, 40, sampler)
    for axis in axes:
        values = [each[axis.name] for each in drawn]
        assert all(axis.low <= value <= axis.high for value in values)
        assert all(isinstance(value, int) for value in values) == axis.whole
    assert draw(axes, 7, sampler) == drawn[:7]
    assert len({tuple(each.values()) for each in drawn}) == 40


def test_a_logarithmic_axis_has_as_much_below_its_geometric_mean_as_above():
    values = [each["a"] for each in draw((SearchRange("a", 0.01, 100, "log"),), 1000, "random")]
    assert np.mean(np.array(values) < 1) == pytest.approx(0.5, abs=0.05)


def test_each_whole_number_has_the_same_share():
    values = [each["a"] for each in draw((SearchRange("a", 2, 9, whole=True),), 4000, "random")]
    assert np.bincount(values)[2:] == pytest.approx(np.full(8, 500), abs=100)


def test_each_axis_of_the_common_space_is_a_canonical_parameter_and_holds_its_default():
    usual = TrainingConfig()
    for axis in COMMON:
        assert axis.low <= getattr(usual, axis.name) <= axis.high


def test_what_is_fixed_and_what_does_not_limit_trees_is_not_searched():
    assert [axis.name for axis in choose_axes("depthwise", {"l2"})] == [
        axis.name for axis in COMMON if axis.name not in ("l2", "n_leaves")
    ]
    assert "max_depth" not in [axis.name for axis in choose_axes("leafwise", ())]
    with pytest.raises(ConfigError, match="nothing is left to search"):
        choose_axes("depthwise", {axis.name for axis in COMMON})


def test_every_library_has_a_space_of_its_own():
    assert set(OWN) == set(RUNNERS)


def test_the_page_tells_what_is_searched():
    page = (Path(__file__).parents[3] / "docs" / "tune.md").read_text(encoding="utf-8")
    common, own = page.partition("<!-- space: common -->")[2].split("<!-- space: own -->")
    listed = [f"| `{it.name}` | {it.low:g} | {it.high:g} | {it.scale} |" for it in COMMON]
    assert [line for line in common.splitlines() if line.startswith("| `")] == listed
    listed = [
        f"| {name} | `{it.name}` | {it.low:g} | {it.high:g} | {it.scale} |" for name, axes in OWN.items() for it in axes
    ]
    assert [line for line in own.splitlines() if "| `" in line] == listed
