"""Generated data: the same bits everywhere, and worth learning from."""

import hashlib

import numpy as np
import pytest

from boosters_eval.datasets.streams import Stream
from boosters_eval.datasets.synthetic import generate
from boosters_eval.metrics.task import Task

# The first values, the mean of the target, and a digest of all bits.
GOLDEN = {
    Task.REGRESSION: (
        [0.464917809, 0.865135431, 0.052861553, 21.699014304, 24.138068559, 9.602326641, 15.069564842, 14.630529617],
        "3a4a2a8ec5e96ed7",
    ),
    Task.BINARY: ([0.500142813, 0.931200206, 0.457743287, 1, 0, 1, 1, 0.53], "af6c2013a1850464"),
    Task.MULTICLASS: ([0.563120842, 0.319317192, 0.56842804, 3, 4, 1, 1, 2.115], "3fd48fe808e8da82"),
    Task.QUANTILE: (
        [0.451925248, 0.775864005, 0.432252586, 25.810974289, 6.870738051, 10.718915404, 16.208032064, 15.056238735],
        "95ca4ef9fc0e6601",
    ),
    Task.RANKING: ([0.390038729, 0.398819894, 0.093441956, 1, 2, 3, 0, 1.355], "1b7ed379162e9e76"),
}


def fingerprint(table):
    return hashlib.sha256(table.x.tobytes() + table.y.tobytes()).hexdigest()[:16]


@pytest.mark.parametrize("task", list(Task))
def test_generated_data_is_the_same_everywhere(task):
    table = generate(task, 1000, 10, 5)
    values, digest = GOLDEN[task]
    assert [*table.x[0, :3].tolist(), *table.y[:4].tolist(), table.y.mean()] == pytest.approx(values, abs=1e-6)
    assert fingerprint(table) == digest


def test_the_stream_is_the_raw_stream_of_pcg64():
    assert Stream(42).words(2).tolist() == [14276969152011380360, 8095878257575067585]
    assert Stream(42).uniform(1)[0] == 0.7739560485559633  # what default_rng(42).random() is known for


def test_uniforms_and_noise_have_their_moments():
    uniform, noise = Stream(1).uniform(50_000), Stream(2).noise(50_000)
    assert 0 <= uniform.min() < uniform.max() < 1
    assert uniform.mean() == pytest.approx(0.5, abs=0.01)
    assert noise.mean() == pytest.approx(0, abs=0.02)
    assert noise.std() == pytest.approx(1, abs=0.02)
    assert sorted(Stream(3).order(100)) == list(range(100))


def test_the_signal_dominates_the_noise():
    assert generate(Task.REGRESSION, 10_000, 20, 0).y.var() > 20  # noise has variance 1


def test_a_linear_model_leaves_something_to_trees():
    from sklearn.ensemble import GradientBoostingRegressor
    from sklearn.linear_model import LinearRegression

    table = generate(Task.REGRESSION, 4000, 10, 0)
    half = slice(0, 2000), slice(2000, None)
    scores = [
        model.fit(table.x[half[0]], table.y[half[0]]).score(table.x[half[1]], table.y[half[1]])
        for model in (LinearRegression(), GradientBoostingRegressor(max_depth=4, random_state=0))
    ]
    assert scores[0] < 0.8 < 0.9 < scores[1]


def test_classes_are_balanced():
    for task, classes in ((Task.BINARY, 2), (Task.MULTICLASS, 5)):
        counts = np.bincount(generate(task, 10_000, 20, classes).y.astype(int), minlength=classes)
        assert counts.min() > 0.8 * counts.max()


def test_queries_have_10_to_30_rows_and_the_better_grades_are_the_rarer():
    table = generate(Task.RANKING, 10_000, 20, 0)
    sizes = np.bincount(table.groups)
    assert (sizes.min(), sizes.max(), sizes.sum()) == (10, 30, 10_000)
    assert np.unique(table.y).tolist() == [0, 1, 2, 3, 4]
    counts = np.bincount(table.y.astype(int))
    assert counts[4] < counts[3] < counts[2]
    assert all(len(np.unique(table.x[table.groups == query, 0])) == 1 for query in range(5))


def test_quantile_data_spreads_with_one_column():
    table = generate(Task.QUANTILE, 20_000, 20, 0)
    regression = generate(Task.REGRESSION, 20_000, 20, 0)
    assert table.y.var() > regression.y.var()
