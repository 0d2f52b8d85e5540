"""Generated data: the same bits everywhere, and worth learning from."""

import hashlib
from itertools import combinations

import numpy as np
import pytest

from boosters_eval.datasets import DATASETS
from boosters_eval.datasets.catalog import DIFFICULTIES, PROBLEMS, SIGNALS
from boosters_eval.datasets.generated import Stream, generate_problem, generate_task
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
    table = generate_task(task, 1000, 10, 5)
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
    assert generate_task(Task.REGRESSION, 10_000, 20, 0).y.var() > 20  # noise has variance 1


def test_a_linear_model_leaves_something_to_trees():
    from sklearn.ensemble import GradientBoostingRegressor
    from sklearn.linear_model import LinearRegression

    table = generate_task(Task.REGRESSION, 4000, 10, 0)
    half = slice(0, 2000), slice(2000, None)
    scores = [
        model.fit(table.x[half[0]], table.y[half[0]]).score(table.x[half[1]], table.y[half[1]])
        for model in (LinearRegression(), GradientBoostingRegressor(max_depth=4, random_state=0))
    ]
    assert scores[0] < 0.8 < 0.9 < scores[1]


def test_classes_are_balanced():
    for task, classes in ((Task.BINARY, 2), (Task.MULTICLASS, 5)):
        counts = np.bincount(generate_task(task, 10_000, 20, classes).y.astype(int), minlength=classes)
        assert counts.min() > 0.8 * counts.max()


def test_queries_have_10_to_30_rows_and_the_better_grades_are_the_rarer():
    table = generate_task(Task.RANKING, 10_000, 20, 0)
    sizes = np.bincount(table.groups)
    assert (sizes.min(), sizes.max(), sizes.sum()) == (10, 30, 10_000)
    assert np.unique(table.y).tolist() == [0, 1, 2, 3, 4]
    counts = np.bincount(table.y.astype(int))
    assert counts[4] < counts[3] < counts[2]
    assert all(len(np.unique(table.x[table.groups == query, 0])) == 1 for query in range(5))


def test_quantile_data_spreads_with_one_column():
    table = generate_task(Task.QUANTILE, 20_000, 20, 0)
    regression = generate_task(Task.REGRESSION, 20_000, 20, 0)
    assert table.y.var() > regression.y.var()


@pytest.fixture(scope="module")
def tables():
    return {name: generate_problem(problem) for name, problem in PROBLEMS.items()}


def test_every_signal_meets_every_difficulty_once():
    assert len(PROBLEMS) == len(SIGNALS) * len(DIFFICULTIES) == 110
    descriptions = [DATASETS[name].description for name in PROBLEMS]
    assert len(set(descriptions)) == 110
    tasks = [problem.task for problem in PROBLEMS.values()]
    assert min(map(tasks.count, (Task.REGRESSION, Task.BINARY, Task.MULTICLASS))) >= 36


def test_the_tables_are_the_same_everywhere(tables):
    content = hashlib.sha256()
    for table in tables.values():
        content.update(np.nan_to_num(table.x, nan=-1.0).tobytes() + table.y.tobytes())
    assert content.hexdigest()[:16] == "6ad1bc5c9a61899a"


def test_every_declared_fact_is_true(tables):
    for name, table in tables.items():
        config = DATASETS[name]
        assert table.x.shape == (config.n_samples, config.n_features)
        assert bool(np.isnan(table.x).any()) is config.has_missing
        assert table.categorical == config.categorical
        if config.n_classes:
            assert np.unique(table.y).tolist() == list(range(config.n_classes))
            assert np.bincount(table.y.astype(int)).min() >= 0.07 * config.n_samples
        for position in table.categorical:
            assert np.unique(table.x[:, position]).tolist() == list(range(8))


def test_no_two_tables_share_their_columns(tables):
    first = {name: table.x[:, -1].tobytes() for name, table in tables.items()}
    assert all(first[one] != first[other] for one, other in combinations(first, 2))


def test_difficulties_are_what_they_are_called(tables):
    rounded, wide, few = (tables[f"problem_lines_{name}"] for name in ("rounded", "wide", "few"))
    assert {len(np.unique(column)) for column in rounded.x.T} == {5}
    assert (wide.x.shape, few.x.shape) == ((1000, 50), (300, 8))
    redundant = tables["problem_lines_redundant"].x
    assert np.corrcoef(redundant[:, 0], redundant[:, 4])[0, 1] > 0.95
    skewed = tables["problem_lines_skewed"].x[:, 0]
    assert skewed.mean() > 3 * np.median(skewed)
    assert np.abs(tables["problem_lines_scaled"].x).max() > 1e5


def test_the_signals_can_be_learned(tables):
    """By a single small tree, better than by always saying the most common answer."""
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    chance = {Task.REGRESSION: 0.0, Task.BINARY: 0.5, Task.MULTICLASS: 0.35}
    for signal in SIGNALS:
        problem, table = PROBLEMS[f"problem_{signal}_plain"], tables[f"problem_{signal}_plain"]
        kind = DecisionTreeRegressor if problem.task is Task.REGRESSION else DecisionTreeClassifier
        tree = kind(max_depth=6, random_state=0).fit(table.x[:800], table.y[:800])
        assert tree.score(table.x[800:], table.y[800:]) > chance[problem.task] + 0.1, signal
