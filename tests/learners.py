"""Learners whose true difference is known, scored on random 80/20 splits that share rows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

ROWS, TEST, FEATURES = 200, 40, 4
RATIO = TEST / (ROWS - TEST)


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _log_loss(logits, sign):
    return np.logaddexp(0, -sign * logits).mean(axis=1)


def random_splits(rng, splits, rows=ROWS):
    """The training and the test rows of each split."""
    order = rng.permuted(np.tile(np.arange(rows), (splits, 1)), axis=1)
    return order[:, rows // 5 :], order[:, : rows // 5]


def equal_regressions(rng, splits, learners=2):
    """Scores of least squares on disjoint, exchangeable features: equal in the population, never in a sample.

    {metric: one array of scores per learner}. Each call draws new data.
    """
    x = rng.normal(size=(ROWS, learners * FEATURES))
    y = x.sum(axis=1) + 2 * rng.normal(size=ROWS)
    train, test = random_splits(rng, splits)
    scores = {"rmse": [], "mae": [], "median_ae": []}
    for learner in range(learners):
        mine = x[:, learner * FEATURES : (learner + 1) * FEATURES]
        fit, held = mine[train], mine[test]
        gram = fit.transpose(0, 2, 1) @ fit
        weights = np.linalg.solve(gram, fit.transpose(0, 2, 1) @ y[train][..., None])
        residual = y[test] - (held @ weights)[..., 0]
        scores["rmse"].append(np.sqrt((residual**2).mean(axis=1)))
        scores["mae"].append(np.abs(residual).mean(axis=1))
        scores["median_ae"].append(np.median(np.abs(residual), axis=1))
    return scores


def equal_classifiers(rng, splits):
    """The log loss of two logistic regressions on disjoint, exchangeable features."""
    x = rng.normal(size=(ROWS, 2 * FEATURES))
    y = (rng.random(ROWS) < _sigmoid(x.sum(axis=1))).astype(float)
    train, test = random_splits(rng, splits)
    return [_logistic(x[:, side], y, train, test) for side in (slice(FEATURES), slice(FEATURES, None))]


def _logistic(x, y, train, test):
    fit, weights = x[train], np.zeros((len(train), FEATURES))
    for _ in range(6):  # Newton's method
        p = _sigmoid((fit @ weights[..., None])[..., 0])
        slope = ((y[train] - p)[:, None, :] @ fit)[:, 0] - 0.01 * weights
        curve = (fit * (p * (1 - p))[..., None]).transpose(0, 2, 1) @ fit + 0.01 * np.eye(FEATURES)
        weights = weights + np.linalg.solve(curve, slope[..., None])[..., 0]
    return _log_loss((x[test] @ weights[..., None])[..., 0], 2 * y[test] - 1)


STEEPNESS, CAUTION = 3.0, 0.5


def _expected_loss(factor):
    x = np.linspace(-8, 8, 20001)
    density = np.exp(-(x**2) / 2) * (x[1] - x[0]) / np.sqrt(2 * np.pi)
    right = _sigmoid(STEEPNESS * x)
    return float((density * (right * np.logaddexp(0, -factor * x) + (1 - right) * np.logaddexp(0, factor * x))).sum())


def _as_bad_as_caution():
    low, high = STEEPNESS, 40 * STEEPNESS
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _expected_loss(middle) < _expected_loss(CAUTION) else (low, middle)
    return high


CONFIDENCE = _as_bad_as_caution()


def bold_and_cautious(rng, splits):
    """The log loss of two fixed models that are equally good: one errs a little everywhere, one rarely but badly.

    The differences of their rows are skewed: a sample without one of the rare rows has a low mean and a low spread.
    """
    x = rng.normal(size=ROWS)
    sign = np.where(rng.random(ROWS) < _sigmoid(STEEPNESS * x), 1.0, -1.0)
    _, test = random_splits(rng, splits)
    return [np.logaddexp(0, -sign * factor * x)[test].mean(axis=1) for factor in (CONFIDENCE, CAUTION)]


def nearly_equal_accuracies(rng, splits, rows, *, only_a, only_b):
    """Accuracies of two fixed classifiers; `only_a` and `only_b` are the shares of rows that only one gets right."""
    kind = rng.choice(4, size=5 * rows, p=[only_a, only_b, 0.1, 0.9 - only_a - only_b])
    _, test = random_splits(rng, splits, 5 * rows)
    return [np.isin(kind, right)[test].mean(axis=1) for right in ((0, 3), (1, 3))]


def noisy_sides(rng, splits, sides):
    """Scores of equal sides around 1, whose splits correlate as the corrected test assumes for 80/20."""
    shared = np.sqrt(0.2) * rng.normal(size=(sides, 1))
    return 1 + 0.02 * (shared + np.sqrt(0.8) * rng.normal(size=(sides, splits)))


def autocorrelated(rng, rows, columns, memory):
    """Noise of variance 1 that forgets itself over about `memory` rows; 0 for independent rows."""
    noise = rng.normal(size=(rows, columns))
    if not memory:
        return noise
    keep = np.exp(-1 / memory)
    fresh = np.sqrt(1 - keep * keep)
    for row in range(1, rows):
        noise[row] = keep * noise[row - 1] + fresh * noise[row]
    return noise


def in_time(rng, edges, repetitions, *, memory=0.0, drift=0.0, lead=0.0):
    """RMSE of two learners in windows of time that begin and end at `edges`: (2, repetitions, windows).

    Least squares on disjoint, exchangeable features, refitted on all rows before each window. Features and noise are
    autocorrelated; with `drift`, the true weights wander. `lead` makes the first learner the better one.
    """
    rows = edges[-1]
    noise = autocorrelated(rng, rows, repetitions * 7, memory).reshape(rows, repetitions, 7)
    x, weights = noise[..., :6], np.array([1 + lead] * 3 + [1.0] * 3)
    if drift:
        weights = weights + np.cumsum(rng.normal(size=x.shape) * drift / np.sqrt(rows), axis=0)
    y = (x * weights).sum(axis=-1) + 2 * noise[..., 6]
    scores = np.empty((2, repetitions, len(edges) - 1))
    for window, (begin, end) in enumerate(pairwise(edges)):
        for side in range(2):
            mine = x[..., 3 * side : 3 * side + 3]
            fit = mine[:begin].transpose(1, 2, 0)
            solved = np.linalg.solve(fit @ fit.transpose(0, 2, 1), (fit @ y[:begin].T[..., None]))
            residual = y[begin:end].T - (mine[begin:end].transpose(1, 0, 2) @ solved)[..., 0]
            scores[side, :, window] = np.sqrt((residual**2).mean(axis=1))
    return scores


def of_groups(rng, sizes, sides, *, lead=0.0):
    """RMSE of two learners, given for each split whether a group is validated on: (2, splits).

    Least squares on disjoint, exchangeable features; their means, their weights and the level differ by group.
    """
    group = np.repeat(np.arange(len(sizes)), sizes)
    x = rng.normal(size=(len(group), 6)) + 0.7 * rng.normal(size=(len(sizes), 6))[group]
    weights = np.array([1 + lead] * 3 + [1.0] * 3) + 0.7 * rng.normal(size=(len(sizes), 6))
    y = (x * weights[group]).sum(axis=1) + 2 * rng.normal(size=len(group)) + 0.7 * rng.normal(size=len(sizes))[group]
    scores = np.empty((2, len(sides)))
    for position, chosen in enumerate(sides):
        valid = chosen[group]
        for side in range(2):
            mine = x[:, 3 * side : 3 * side + 3]
            fit = mine[~valid]
            solved = np.linalg.solve(fit.T @ fit, fit.T @ y[~valid])
            scores[side, position] = np.sqrt(((y[valid] - mine[valid] @ solved) ** 2).mean())
    return scores


def odd_groups(rng, sizes, sides):
    """Scores of two fixed models that are equal on average, but differ by group, exponentially: (2, splits)."""
    differences = rng.exponential(size=len(sizes)) - 1
    return np.array(
        [[10 + np.average(differences[chosen], weights=sizes[chosen]) for chosen in sides], [10.0] * len(sides)]
    )
