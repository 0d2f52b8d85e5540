import itertools
import math

import numpy as np
import pytest
import pytrec_eval
from catboost.utils import eval_metric
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk

from boosters_eval.core.errors import MetricInputError
from boosters_eval.metrics import get

FEW = settings(max_examples=60)
CUTS = st.sampled_from([1, 2, 3, 5, 100])


@st.composite
def problems(draw, *, ties=True, most=8):
    """Scores (tied or all different), grades, group ids with equal ones adjacent, weights of the groups."""
    sizes = draw(st.lists(st.integers(1, most), min_size=1, max_size=5))
    n = sum(sizes)
    groups = np.repeat(np.arange(len(sizes)) * 3 - 1, sizes)
    y = np.array(draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)))
    if ties:
        p = np.array(draw(st.lists(st.sampled_from([-1.0, 0.0, 0.5, 2.0]), min_size=n, max_size=n)))
    else:
        p = np.array(draw(st.permutations(range(n)))) / 7
    weights = draw(st.none() | st.lists(st.floats(0.1, 10), min_size=len(sizes), max_size=len(sizes)).map(np.array))
    return p, y, groups, weights


def by_group(score, p, y, groups, weights):
    """The definition: a score for each group, averaged."""
    ids = list(dict.fromkeys(groups))
    each = [score(p[groups == g], y[groups == g]) for g in ids]
    return np.average(each, weights=weights)


def over_orders(score):
    """The mean of a score over all orders of rows that agree with the predictions."""

    def mean(p, y):
        orders = [
            o for o in itertools.permutations(range(len(p))) if all(p[a] >= p[b] for a, b in itertools.pairwise(o))
        ]
        return math.fsum(score(y[list(o)]) for o in orders) / len(orders)

    return mean


def dcg(gains, k):
    return math.fsum(g / math.log2(i + 2) for i, g in enumerate(gains[:k]))


def ndcg(k, gain):
    def score(ranked):
        gains = [2.0**v - 1 if gain == "exp" else float(v) for v in ranked]
        best = dcg(sorted(gains, reverse=True), k)
        return dcg(gains, k) / best if best else 1.0

    return score


def average_precision(k, divisor):
    def score(ranked):
        relevant = [v > 0 for v in ranked]
        count = sum(relevant)
        if not count:
            return 0.0 if divisor == "all" else 1.0
        found = math.fsum(sum(relevant[: i + 1]) / (i + 1) for i in range(min(k, len(ranked))) if relevant[i])
        return found / (count if divisor == "all" else min(count, k))

    return score


def reciprocal_rank(k):
    return lambda ranked: next((1 / (i + 1) for i, v in enumerate(ranked[:k]) if v > 0), 0.0)


def spread(weights, groups):
    """Group weights as row weights."""
    if weights is None:
        return None
    return weights[np.unique(groups, return_inverse=True)[1]]


@FEW
@given(problems(most=5), CUTS, st.sampled_from(["exp", "linear"]), st.sampled_from(["min", "all"]))
def test_ties_are_averaged_over_all_orders(problem, k, gain, divisor):
    p, y, groups, weights = problem
    w = spread(weights, groups)
    for metric, score in (
        (get("ndcg", k=k, gain=gain), ndcg(k, gain)),
        (get("map", k=k, divisor=divisor), average_precision(k, divisor)),
        (get("mrr", k=k), reciprocal_rank(k)),
    ):
        expected = by_group(over_orders(score), p, y, groups, weights)
        assert metric.compute(p, y, w, groups=groups) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@FEW
@given(problems(), st.sampled_from([1, 3, None]))
def test_linear_ndcg_is_scikit_learns_ties_included(problem, k):
    p, y, groups, weights = problem

    def score(scores, grades):
        if not grades.any():
            return 1.0  # scikit-learn says 0
        return sk.ndcg_score([[*grades, 0]], [[*scores, -9.0]], k=k)  # it refuses groups of one

    metric = get("ndcg", k=k, gain="linear")
    got = metric.compute(p, y, spread(weights, groups), groups=groups)
    assert got == pytest.approx(by_group(score, p, y, groups, weights), rel=1e-12)


@FEW
@given(problems(ties=False), st.sampled_from([1, 3, 10]))
def test_ndcg_is_catboosts_where_every_group_has_relevant_rows(problem, k):
    p, y, groups, _ = problem
    y = y + 1  # groups without relevant rows are a convention
    for kind in ("Exp", "Base"):
        reference = eval_metric(y, p, f"NDCG:top={k};type={kind}", group_id=groups)[-1]
        gain = "exp" if kind == "Exp" else "linear"
        got = get("ndcg", k=k, gain=gain).compute(p, y, groups=groups)
        assert got == pytest.approx(reference, rel=1e-6)  # CatBoost computes in float32


@FEW
@given(problems(ties=False), st.sampled_from([1, 5, 10]))
def test_trec_forms_are_trec_evals(problem, k):
    p, y, groups, _ = problem
    names = [f"d{i:03d}" for i in range(len(p))]
    truth, run = {}, {}
    for name, score, grade, group in zip(names, p, y, groups, strict=True):
        truth.setdefault(str(group), {})[name] = int(grade)
        run.setdefault(str(group), {})[name] = float(score)
    measures = {f"map_cut_{k}", "map", "recip_rank", f"ndcg_cut_{k}"}
    found = pytrec_eval.RelevanceEvaluator(truth, measures).evaluate(run).values()

    def mean(measure):
        return np.mean([each[measure] for each in found])

    relevant = by_group(lambda _, grades: float(grades.any()), p, y, groups, None)
    assert get(f"map@{k},divisor=all").compute(p, y, groups=groups) == pytest.approx(mean(f"map_cut_{k}"), rel=1e-12)
    assert get("map@divisor=all").compute(p, y, groups=groups) == pytest.approx(mean("map"), rel=1e-12)
    assert get("mrr").compute(p, y, groups=groups) == pytest.approx(mean("recip_rank"), rel=1e-12)
    linear = get(f"ndcg@{k},gain=linear").compute(p, y, groups=groups)
    assert linear - (1 - relevant) == pytest.approx(mean(f"ndcg_cut_{k}"), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("k", [1, 3, 10])
def test_ndcg_and_map_are_xgboosts_and_lightgbms(k):
    import lightgbm as lgb
    import xgboost as xgb

    rng = np.random.default_rng(5)
    sizes = rng.integers(1, 12, 40)
    n = int(sizes.sum())
    x, groups = rng.normal(size=(n, 1)), np.repeat(np.arange(40), sizes)
    grades = rng.integers(0, 3, n) * (groups % 4 > 0)  # some groups without relevant rows
    p = np.round(x[:, 0], 9)

    def by_lightgbm(metric, y):
        data = lgb.Dataset(x, y, group=sizes, init_score=p, free_raw_data=False)
        told = {}
        options = {"objective": "lambdarank", "metric": metric, "eval_at": [k], "verbose": -1, "min_data_in_leaf": n}
        lgb.train(options, data, 1, valid_sets=[data], callbacks=[lgb.record_evaluation(told)])
        return told["training"][f"{metric}@{k}"][0]

    def by_xgboost(metric, y):
        data = xgb.DMatrix(x, y, base_margin=p)
        data.set_group(sizes)
        booster = xgb.train({"objective": "rank:ndcg", "eval_metric": f"{metric}@{k}"}, data, 0)
        return float(booster.eval_set([(data, "d")], 0).rpartition(":")[2])

    ours = get("ndcg", k=k).compute(p, grades, groups=groups)
    assert ours == pytest.approx(by_lightgbm("ndcg", grades), rel=1e-6)
    assert ours == pytest.approx(by_xgboost("ndcg", grades), rel=1e-5)
    binary = (grades > 0).astype(int)
    ours = get("map", k=k).compute(p, binary, groups=groups)
    assert ours == pytest.approx(by_lightgbm("map", binary), rel=1e-6)


def test_groups_without_relevant_rows():
    p, y, groups = [1.0, 2.0], [0, 0], [7, 7]
    assert get("ndcg@10").compute(p, y, groups=groups) == 1.0
    assert get("map@10").compute(p, y, groups=groups) == 1.0
    assert get("map@10,divisor=all").compute(p, y, groups=groups) == 0.0
    assert get("mrr").compute(p, y, groups=groups) == 0.0


@FEW
@given(problems(), st.randoms(use_true_random=False), st.sampled_from(["ndcg@3", "map@3", "mrr", "ndcg"]))
def test_equal_ids_need_not_be_adjacent(problem, random, name):
    p, y, groups, weights = problem
    w = spread(weights, groups)
    order = list(range(len(p)))
    random.shuffle(order)
    expected = get(name).compute(p, y, w, groups=groups)
    shuffled = get(name).compute(p[order], y[order], None if w is None else w[order], groups=groups[order])
    assert shuffled == pytest.approx(expected, rel=1e-12)
    names = np.array([f"query {g}" for g in groups])[order]
    named = get(name).compute(p[order], y[order], None if w is None else w[order], groups=names)
    assert named == pytest.approx(expected, rel=1e-12)


@FEW
@given(problems(), st.sampled_from(["ndcg@3", "map@3", "mrr"]))
def test_a_row_of_weight_zero_is_not_in_the_ranking(problem, name):
    p, y, groups, weights = problem
    w = np.ones(len(p)) if weights is None else spread(weights, groups)
    more = [*p, 100.0], [*y, 4], [*w, 0.0]
    with_it = get(name).compute(*more, groups=[*groups, groups[0]])
    assert with_it == get(name).compute(p, y, w, groups=groups)


def test_a_groups_weight_is_the_mean_of_its_rows():
    p, y, groups = [1.0, 2.0, 1.0, 2.0], [1, 0, 0, 1], [0, 0, 1, 1]
    assert get("mrr").compute(p, y, [1.0, 3.0, 6.0, 6.0], groups=groups) == pytest.approx((2 * 0.5 + 6 * 1) / 8)


def test_groups_of_very_different_sizes_keep_memory_small():
    rng = np.random.default_rng(2)
    sizes = np.array([40_000, *([1] * 3000), *([17] * 500)])
    rng.shuffle(sizes)
    n = int(sizes.sum())
    p, y = rng.normal(size=n).round(2), rng.integers(0, 3, n)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    import tracemalloc

    tracemalloc.start()
    got = get("ndcg@10").compute(p, y, groups=groups)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    starts = np.cumsum(sizes) - sizes
    each = [
        get("ndcg@10").compute(p[s : s + size], y[s : s + size], groups=np.zeros(size))
        for s, size in zip(starts, sizes, strict=True)
    ]
    assert got == pytest.approx(np.mean(each), rel=1e-12)
    assert peak < 20e6


def test_fractional_grades_are_allowed_and_huge_ones_refused():
    assert get("ndcg@gain=linear").compute([1.0, 2.0], [0.5, 0.25], groups=[0, 0]) < 1
    with pytest.raises(MetricInputError, match=r"'labels' .* at most 1000 where the gain is 'exp'. Got 1001 in row 1"):
        get("ndcg").compute([1.0, 2.0], [0, 1001], groups=[0, 0])
    assert get("ndcg").compute([1.0, 2.0], [0, 1000], groups=[0, 0]) == 1.0
