"""The grid of generated problems: the same bits everywhere, each a problem of its own, each learnable."""

import hashlib
from itertools import combinations

import numpy as np
import pytest

from boosters_eval.datasets import DATASETS
from boosters_eval.datasets.problem_tables import generate_problem
from boosters_eval.datasets.problems import DIFFICULTIES, PROBLEMS, SIGNALS
from boosters_eval.metrics.task import Task


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
