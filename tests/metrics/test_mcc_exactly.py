"""MCC with weights over 16 orders of magnitude: against exact arithmetic, since scikit-learn loses digits there."""

import warnings
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
from sklearn.metrics import matthews_corrcoef

from boosters_eval.metrics import get


def exact_mcc(labels, predictions, weights):
    sums = dict.fromkeys(((0, 0), (0, 1), (1, 0), (1, 1)), Fraction(0))
    for label, prediction, weight in zip(labels, predictions, weights, strict=True):
        sums[int(label), int(prediction)] += Fraction(float(weight))
    (tn, fp), (fn, tp) = (sums[0, 0], sums[0, 1]), (sums[1, 0], sums[1, 1])
    below = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    if not below:
        return 0.0
    above = tp * tn - fp * fn
    with localcontext() as context:
        context.prec = 60
        root = (Decimal(below.numerator) / Decimal(below.denominator)).sqrt()
        return float(Decimal(above.numerator) / Decimal(above.denominator) / root)


def test_mcc_agrees_with_exact_arithmetic_where_scikit_learn_does_not():
    rng = np.random.default_rng(0)
    theirs = 0
    for _ in range(500):
        rows = int(rng.integers(2, 12))
        labels, predictions = rng.integers(0, 2, rows), rng.integers(0, 2, rows)
        weights = 10.0 ** rng.uniform(-8, 8, rows)
        exact = exact_mcc(labels, predictions, weights)
        assert abs(get("mcc").compute(predictions.astype(float), labels, weights) - exact) < 1e-9
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs += abs(matthews_corrcoef(labels, predictions, sample_weight=weights) - exact) > 1e-9
    assert theirs, "scikit-learn is exact now: compare with it"
