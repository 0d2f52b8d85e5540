import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boosters_eval.metrics import METRICS, get

FEW = settings(max_examples=15)  # for each metric
SPECS = [*METRICS, "f1@0.3", "ndcg@3", "map@3", "ece@3", "pinball@0.1", "mape@0.5"]
EVERY = pytest.mark.parametrize("spec", SPECS)
quiet = pytest.mark.filterwarnings("ignore::boosters_eval.metrics.MetricWarning")


def problem(spec, seed):
    """Rows with ties and weights for any metric: predictions, labels, weights, ids."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    name = get(spec).name
    w = rng.integers(1, 5, n) if seed % 2 else rng.random(n) + 0.01
    ids = rng.integers(0, 4, n)
    if name in ("mlogloss", "macro_f1", "top_k_accuracy"):
        p = rng.integers(1, 4, (n, 3)).astype(float)
        return p / p.sum(axis=1, keepdims=True), rng.integers(0, 3, n), w, ids
    p = np.round(rng.random(n), int(rng.integers(1, 5)))
    if "groups" in METRICS[name].needs:
        return p, rng.integers(0, 4, n), w, ids
    if METRICS[name].implementation.startswith("regression"):
        return 10 * p - 0.5, np.round(rng.normal(size=n), 1) ** 2 + 0.1, w, ids
    return p, rng.integers(0, 2, n), w, ids


def compute(spec, p, y, w, ids):
    return get(spec).compute(p, y, w, **dict.fromkeys(get(spec).info.needs, ids))


def same(a, b):
    assert a == pytest.approx(b, rel=1e-12, abs=1e-12)


@quiet
@EVERY
@FEW
@given(seed=st.integers(0, 2**32))
def test_the_order_of_rows_has_no_effect(spec, seed):
    rows = problem(spec, seed)
    order = np.random.default_rng(seed + 1).permutation(len(rows[0]))
    same(compute(spec, *(each[order] for each in rows)), compute(spec, *rows))
    p, y, _, ids = rows
    same(compute(spec, p[order], y[order], None, ids[order]), compute(spec, p, y, None, ids))


@quiet
@EVERY
@FEW
@given(seed=st.integers(0, 2**32), scale=st.sampled_from([0.25, 3.0, 1e-200, 1e200]))
def test_the_scale_of_weights_has_no_effect(spec, seed, scale):
    p, y, w, ids = problem(spec, seed)
    same(compute(spec, p, y, w * scale, ids), compute(spec, p, y, w, ids))


@quiet
@EVERY
@FEW
@given(seed=st.integers(0, 2**32))
def test_rows_of_weight_zero_have_exactly_no_effect(spec, seed):
    p, y, w, ids = problem(spec, seed)
    at = np.random.default_rng(seed + 1).integers(0, len(p) + 1, 3)
    padded = [np.insert(each, at, each[0], axis=0) for each in (p, y, ids)]
    weights = np.insert(w, at, 0)
    assert compute(spec, padded[0], padded[1], weights, padded[2]) == compute(spec, p, y, w, ids)


@quiet
@EVERY
@FEW
@given(seed=st.integers(0, 2**32))
def test_an_integer_weight_is_a_repeated_row(spec, seed):
    p, y, _, ids = problem(spec, seed)
    if "groups" in get(spec).info.needs:
        return  # there a weight belongs to the group
    w = np.random.default_rng(seed).integers(1, 4, len(p))
    same(
        compute(spec, p, y, w, ids),
        compute(spec, *(np.repeat(each, w, axis=0) for each in (p, y)), None, np.repeat(ids, w)),
    )


@quiet
@EVERY
@FEW
@given(seed=st.integers(0, 2**32))
def test_the_same_input_gives_the_same_bits(spec, seed):
    rows = problem(spec, seed)
    assert compute(spec, *rows) == compute(spec, *(each.copy() for each in rows))
