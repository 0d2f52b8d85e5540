"""Constructed observations: nothing here was measured."""

import numpy as np
import pytest

from boosters_eval.core.request import Repeat
from boosters_eval.stats.observations import Observation

BASE = np.array([0.50, 0.53, 0.47, 0.51, 0.49, 0.52])
NOISE = {
    "a": np.array([1, -2, 0, 3, -1, 2]) * 1e-4,
    "b": np.array([0, 1, -3, 1, 2, -2]) * 1e-4,
    "c": np.array([2, 0, 1, -1, 0, -3]) * 1e-4,
}


def observation(seed, value, **fields):
    """On a random split of 1000 rows."""
    usual = {"n_train": 800, "n_valid": 200, "split_digest": f"split{seed}", "data_digest": "data"}
    return Observation(value, **{**usual, **fields})


def side_of(values, **fields):
    """{repeat: observation} of one value per seed."""
    return {Repeat(seed): observation(seed, float(value), **fields) for seed, value in enumerate(values)}


def named_side(name, shift=0.0, count=6, **fields):
    """One of three sides, a, b and c, which differ by little more than rounding."""
    return side_of((BASE + NOISE[name] + shift)[:count], **fields)


@pytest.fixture
def make():
    """The builders as one object, since test modules cannot import this file."""

    class Make:
        pass

    Make.observation, Make.side, Make.named = map(staticmethod, (observation, side_of, named_side))
    return Make
