"""What is searched, as data: parameters with their ranges, and the configurations that are drawn from them.

`common` has canonical parameters, so that a trial is the same configuration in every library. `own` has each library's
own names, for what has no common meaning; there only the number of trials is the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.terms import given, the
from boosters_eval.datasets.generated import Stream

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray

_STREAM = 42  # keeps these draws apart from other uses of a stream
_DIGITS = 3  # of a drawn value: it can be typed, and is the same on every machine


@dataclass(frozen=True)
class SearchRange:
    """A parameter that is searched, from `low` to `high`."""

    name: str
    low: float
    high: float
    scale: Literal["linear", "log"] = "linear"
    whole: bool = False

    def place(self, share: float) -> int | float:
        """The value at a share of the range; of whole numbers each has the same share, or that of its logarithm."""
        low, high = (self.low - 0.5, self.high + 0.5) if self.whole else (self.low, self.high)
        value = low + share * (high - low) if self.scale == "linear" else low * math.exp(share * math.log(high / low))
        if self.whole:
            return int(min(max(round(value), self.low), self.high))
        return min(max(float(f"{value:.{_DIGITS}g}"), self.low), self.high)


_RATE = SearchRange("learning_rate", 0.02, 0.3, "log")
COMMON = (
    _RATE,
    SearchRange("n_estimators", 50, 300, "log", whole=True),
    SearchRange("max_depth", 2, 9, whole=True),
    SearchRange("n_leaves", 4, 127, "log", whole=True),
    SearchRange("min_child_weight", 0.001, 30, "log"),
    SearchRange("l2", 0.1, 30, "log"),
    SearchRange("subsample", 0.5, 1),
    SearchRange("colsample", 0.5, 1),
)
IDLE = {"depthwise": "n_leaves", "leafwise": "max_depth"}  # what does not limit trees that grow so
OWN: Mapping[str, tuple[SearchRange, ...]] = {
    "boosters": (
        _RATE,
        SearchRange("n_estimators", 50, 300, "log", whole=True),
        SearchRange("max_depth", 2, 9, whole=True),
        SearchRange("min_child_weight", 0.1, 30, "log"),
        SearchRange("l2", 0.1, 30, "log"),
        SearchRange("min_gain_to_split", 0.001, 1, "log"),
        SearchRange("subsample", 0.5, 1),
        SearchRange("colsample_bytree", 0.5, 1),
    ),
    "xgboost": (
        SearchRange("eta", 0.02, 0.3, "log"),
        SearchRange("num_boost_round", 50, 300, "log", whole=True),
        SearchRange("max_depth", 2, 9, whole=True),
        SearchRange("min_child_weight", 0.1, 30, "log"),
        SearchRange("lambda", 0.1, 30, "log"),
        SearchRange("alpha", 0.001, 10, "log"),
        SearchRange("subsample", 0.5, 1),
        SearchRange("colsample_bytree", 0.5, 1),
    ),
    "lightgbm": (
        _RATE,
        SearchRange("num_iterations", 50, 300, "log", whole=True),
        SearchRange("num_leaves", 4, 127, "log", whole=True),
        SearchRange("min_data_in_leaf", 1, 100, "log", whole=True),
        SearchRange("lambda_l2", 0.001, 30, "log"),
        SearchRange("path_smooth", 0.001, 30, "log"),
        SearchRange("bagging_fraction", 0.5, 1),
        SearchRange("feature_fraction", 0.5, 1),
    ),
    "catboost": (
        _RATE,
        SearchRange("iterations", 50, 300, "log", whole=True),
        SearchRange("depth", 2, 9, whole=True),
        SearchRange("l2_leaf_reg", 0.3, 30, "log"),
        SearchRange("random_strength", 0.1, 10, "log"),
        SearchRange("subsample", 0.5, 1),
        SearchRange("rsm", 0.5, 1),
    ),
    "sklearn": (
        _RATE,
        SearchRange("max_iter", 50, 300, "log", whole=True),
        SearchRange("max_leaf_nodes", 4, 127, "log", whole=True),
        SearchRange("min_samples_leaf", 1, 100, "log", whole=True),
        SearchRange("l2_regularization", 0.001, 30, "log"),
        SearchRange("max_features", 0.5, 1),
    ),
}
# What a library must be told besides, or it would ignore what is searched.
BESIDES: Mapping[str, Mapping[str, Any]] = {
    "lightgbm": {"bagging_freq": 1},
    "catboost": {"bootstrap_type": "Bernoulli"},
}


def choose_axes(growth: str, fixed: Collection[str]) -> tuple[SearchRange, ...]:
    """The common space without what was fixed, and without what does not limit trees that grow so."""
    axes = tuple(axis for axis in COMMON if axis.name not in fixed and axis.name != IDLE[growth])
    if not axes:
        raise ConfigError(f"{the('param')} fixes every parameter of the space: nothing is left to search.")
    return axes


def find_own(library: str) -> tuple[SearchRange, ...]:
    if library not in OWN:
        raise ConfigError(f"{library} has no space of its own: use {given('space', 'common')}.")
    return OWN[library]


@cache
def draw(axes: tuple[SearchRange, ...], trials: int, sampler: str) -> tuple[Mapping[str, Any], ...]:
    """The configurations, always the same; more trials begin with those of fewer."""
    points = _draw_sobol(len(axes), trials) if sampler == "sobol" else _draw_at_random(len(axes), trials)
    return tuple({axis.name: axis.place(float(at)) for axis, at in zip(axes, point, strict=True)} for point in points)


def _draw_at_random(width: int, trials: int) -> NDArray[np.float64]:
    return Stream(_STREAM).uniform(width * trials).reshape(trials, width)


def _draw_sobol(width: int, trials: int) -> NDArray[np.float64]:
    from scipy.stats import qmc  # noqa: PLC0415 (takes a second)

    points = qmc.Sobol(width, scramble=True, rng=np.random.default_rng(_STREAM)).random_base2(
        max(trials - 1, 1).bit_length()
    )
    return np.asarray(points[:trials])
