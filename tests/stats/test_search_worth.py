"""What a search is said to be worth, simulated: nothing on noise, and no winner between equals."""

import numpy as np
import pytest

from boosters_eval.core.request import Part, Repeat
from boosters_eval.stats.best_of import SearchedTrials
from boosters_eval.stats.observations import Observation
from boosters_eval.stats.rows import RowScores
from boosters_eval.stats.significance import Criteria
from boosters_eval.stats.tables import compare_sides

FOLDS, COLUMNS, TRIALS = 5, 12, 10
CRITERIA = Criteria(higher_is_better=False, test="rows", alpha=0.05)


def fit_ridges(x, y, penalties):
    """The coefficients of a ridge regression for each penalty, or for each penalty by column."""
    gram, moments = x.T @ x, x.T @ y
    return np.array([np.linalg.solve(gram + np.diag(np.broadcast_to(each, x.shape[1])), moments) for each in penalties])


def search(x, y, fold, penalties, seed):
    """Ridge regressions with these penalties, the first by default; each is chosen and valued as `tune` does it."""
    rng = np.random.default_rng(seed)
    losses, outer, models = [], [], []
    for at in range(FOLDS):
        train, test = np.flatnonzero(fold != at), np.flatnonzero(fold == at)
        order = rng.permutation(train)
        held, kept = order[: len(order) // 5], order[len(order) // 5 :]
        chosen_by = fit_ridges(x[kept], y[kept], penalties)
        losses.append(((y[held] - chosen_by @ x[held].T) ** 2).mean(axis=1))
        models.append(fit_ridges(x[train], y[train], penalties))
        errors = (y[test] - models[-1] @ x[test].T) ** 2
        about = {"split_digest": f"{at}", "n_train": len(train), "n_valid": len(test), "resolution": 0.0}
        rows = [RowScores(0, at, float(FOLDS), test, each.mean(), each) for each in errors]
        outer.append([Observation(one.value, rows=one, part=Part(0, at), **about) for one in rows])
    return SearchedTrials([Repeat(at) for at in range(FOLDS)], np.array(losses), outer), np.array(models)


def draw(seed, rows, signal):
    rng = np.random.default_rng([seed, rows])
    x = rng.normal(size=(rows, COLUMNS))
    y = signal * x[:, :3].sum(axis=1) + rng.normal(size=rows)
    fold = rng.permutation(np.arange(rows) % FOLDS)
    return rng, x, y, fold


def compare(one, other):
    return compare_sides(one, other, metric="mse", criteria=CRITERIA).verdict


def test_noise_gives_no_gain_and_what_was_chosen_is_valued_without_a_bias():
    """Each trial learns from other columns, none of which tells anything; its risk is known from its coefficients."""
    inner, outer, told = [], [], []
    for seed in range(200):
        rng, x, y, fold = draw(seed, 150, 0.0)
        penalties = np.where(rng.random((TRIALS + 1, COLUMNS)) < 0.5, 1.0, 1e6)
        found, models = search(x, y, fold, penalties, seed)
        chosen = [(at, trial) for at, trial in enumerate(found.choices)]
        risks = [1 + (models[each] ** 2).sum() for each in chosen]
        inner.append(np.mean([found.losses[each] for each in chosen]) - np.mean(risks))
        outer.append(found.expect(TRIALS) - np.mean(risks))
        told.append(compare(found.observe(TRIALS), found.observe(0)))
    error = np.std(outer) / np.sqrt(len(outer))
    assert np.mean(inner) < -5 * error  # what is chosen by looks better than it is
    assert abs(np.mean(outer)) < 3 * error  # what it is valued by does not
    assert told.count("better") <= 0.05 * 200


def test_one_learner_under_two_names_is_not_told_apart():
    told = 0
    for seed in range(100):
        rng, x, y, fold = draw(seed, 200, 0.5)
        penalties = np.exp(rng.uniform(-2, 6, TRIALS + 1))
        twins = [x + 0.3 * rng.normal(size=x.shape) for _ in range(2)]  # each sees its own noisy copy of the columns
        sides = [search(twin, y, fold, penalties, [seed, at])[0].observe(TRIALS) for at, twin in enumerate(twins)]
        told += compare(*sides) in ("better", "worse")
    assert told <= 10


def seed_search(truth, noise, fold, biases, rng):
    """Models of the same few configurations, which only a seed makes different: a choice between them is luck."""
    y = truth + noise
    losses, outer = [], []
    for at in range(FOLDS):
        test = np.flatnonzero(fold == at)
        held = rng.choice(np.flatnonzero(fold != at), len(test), replace=False)
        said = truth + biases + 0.3 * rng.normal(size=biases.shape)
        losses.append(((y - said)[:, held] ** 2).mean(axis=1))
        errors = (y - said)[:, test] ** 2
        about = {"split_digest": f"{at}", "n_train": 4 * len(test), "n_valid": len(test), "resolution": 0.0}
        rows = [RowScores(0, at, float(FOLDS), test, each.mean(), each) for each in errors]
        outer.append([Observation(one.value, rows=one, part=Part(0, at), **about) for one in rows])
    return SearchedTrials([Repeat(at) for at in range(FOLDS)], np.array(losses), outer)


def test_twins_that_choose_differently_by_the_luck_of_their_seeds_are_not_told_apart():
    told = 0
    for seed in range(100):
        rng = np.random.default_rng([seed, 7])
        truth, noise = rng.normal(size=300), rng.normal(size=300)
        fold = rng.permutation(np.arange(300) % FOLDS)
        biases = 0.5 * rng.normal(size=(4, 300)) * rng.uniform(0.5, 1, (4, 1))
        sides = [seed_search(truth, noise, fold, biases, rng).observe(3) for _ in range(2)]
        told += compare(*sides) in ("better", "worse")
    assert told <= 10


@pytest.mark.parametrize("k", [1, 3, TRIALS])
def test_a_planted_better_trial_is_found_at_the_predicted_k(k):
    """One trial is better on inner and outer rows alike: the best of k has k / n of its lead."""
    _, x, y, fold = draw(1, 300, 2.0)
    penalties = np.array([3000.0, *np.full(TRIALS - 1, 3000.0), 1.0])
    found, _ = search(x, y, fold, penalties, 1)
    low, high = found.expect(TRIALS), found.expect(0)
    assert low < 0.5 * high
    assert found.expect(k) == pytest.approx(high - (high - low) * k / TRIALS)


def test_a_gain_that_is_there_is_told():
    _, x, y, fold = draw(2, 300, 1.0)
    found, _ = search(x, y, fold, np.array([1000.0, *np.geomspace(1, 300, TRIALS)]), 2)
    assert compare(found.observe(TRIALS), found.observe(0)) == "better"


def test_a_trial_that_failed_is_drawn_but_never_chosen():
    _, x, y, fold = draw(3, 200, 1.0)
    found, _ = search(x, y, fold, np.array([500.0, 1.0, 50.0]), 3)
    found.losses[:, 1] = np.inf
    for split in found.outer:
        split[1] = None
    assert found.find_chances(1)[:, 1].tolist() == [0.0] * FOLDS
    assert found.find_chances(1).sum(axis=1) == pytest.approx(1.0)
    assert found.find_chances(1)[:, 0] == pytest.approx(0.5)  # where it is drawn, the default is what is left
