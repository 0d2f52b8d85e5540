"""The hunt for false marks: libraries that claim to be exact in everything must agree on every row they learnt from.

Columns hold at most as many values as there are bins, so that borders are no confounder. Sampling, linear leaves,
quantiles and ranking are left out: there no two libraries claim to agree, or their random numbers differ.
"""

import itertools
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from boosters_eval.datasets.checks import find_coarse_step
from boosters_eval.metrics.task import Task
from boosters_eval.runners import RUNNERS, FitRequest, TrainData
from boosters_eval.runners.parameters import BoosterType, GrowthStrategy, TrainingConfig

LIBRARIES = ("boosters", "xgboost", "lightgbm", "catboost", "sklearn")
ROWS, HELD_OUT = 600, 200
SHARE, WITHIN = 0.99, 1e-3  # so many rows agree within so many standard deviations of the target
LIMITS = (
    *(("l2", 1.0), ("l2", 20.0), ("l1", 3.0), ("min_gain", 2.0), ("min_gain", 1e-6)),
    *(("min_child_weight", least) for least in (0.0, 1.0, 7.0)),
    *(("min_samples_leaf", least) for least in (5, 30)),
)
CLASSES = {Task.BINARY: 2, Task.MULTICLASS: 4}


@dataclass(frozen=True)
class Case:
    task: Task
    training: TrainingConfig
    booster: BoosterType = BoosterType.GBDT
    values: int = 16  # distinct ones in a column
    low: int = 0  # the smallest
    skew: float = 1.0
    weighted: bool = False
    missing: bool = False
    constant: bool = False  # one column
    offset: float = 0.0  # of the targets
    spread: float = 0.0  # decades that weights span
    sparse: float = 0.0  # the share of values that are the smallest
    categories: int = 0  # columns that hold some

    @property
    def request(self):
        return FitRequest(
            task=self.task,
            training=self.training,
            booster_type=self.booster,
            n_classes=CLASSES.get(self.task),
            has_missing=self.missing,
            weighted=self.weighted,
            categorical=tuple(range(self.categories)),
            max_categories=self.values if self.categories else 0,
        )

    def data(self, seed):
        rng = np.random.default_rng(seed)
        rows = ROWS + HELD_OUT
        x = np.floor(self.values * rng.random((rows, 4)) ** self.skew).astype(np.float32)
        x[rng.random(x.shape) < self.sparse] = 0
        x[: self.values] = np.arange(self.values)[:, None]
        if self.constant:
            x[:, 2] = self.values // 2
        z = x / self.values
        y = 3 * z[:, 0] + 2 * np.sin(6 * z[:, 1]) + 3 * z[:, 2] * z[:, 3] - 2 * z[:, 3] ** 2
        y += 0.5 * rng.standard_normal(rows)
        if self.task is not Task.REGRESSION:
            y = np.digitize(y, np.quantile(y, np.linspace(0, 1, CLASSES[self.task] + 1)[1:-1])).astype(np.float64)
        x += self.low
        if self.booster is BoosterType.GBLINEAR:
            x /= self.values
        if self.missing:
            x[rng.random(x.shape) < 0.1] = np.nan
        y = y.astype(np.float64) + (self.offset if self.task is Task.REGRESSION else 0)
        if find_coarse_step(y) is not None:  # as every program does
            y -= y[:ROWS].mean()
        weights = rng.uniform(0.05, 3, rows) if self.weighted else None
        if weights is not None and self.spread:
            weights = 10.0 ** rng.uniform(-self.spread, 0, rows)
        whole = TrainData(x=x, y=y, weights=weights)
        train, valid = whole.take(np.arange(ROWS)), whole.take(np.arange(ROWS, rows))
        return TrainData(train.x, train.y, train.weights, valid=valid if self.training.early_stopping_rounds else None)

    @property
    def harmless(self):
        """Marks whose reasons do not apply to these rows: nothing is small, and zero is the smallest value."""
        marks = set() if self.weighted and self.spread else {("xgboost", "min_gain")}
        if not self.constant:
            marks.add(("boosters", "missing"))
        if self.low == 0 and self.values + 2 * self.missing <= self.training.max_bins:
            marks.add(("lightgbm", "max_bins"))
        return marks

    @property
    def exact(self):
        """The libraries that claim to do exactly what is asked for."""
        request = self.request
        able = [name for name in LIBRARIES if not RUNNERS[name].missing() and not RUNNERS[name].unsupported(request)]
        return [
            name
            for name in able
            if all(
                m.kind == "exact" or (name, m.parameter) in self.harmless
                for m in RUNNERS[name].translate(request).marks
            )
        ]

    def shares(self, seed, libraries):
        """The share of rows on which each pair agrees."""
        data = self.data(seed)
        predictions = {name: predict(name, self.request, data) for name in libraries}
        scale = data.y.std() if self.task is Task.REGRESSION else 1.0
        return {
            (a, b): float(np.mean(np.abs(predictions[a] - predictions[b]).max(axis=1) < WITHIN * scale))
            for a, b in itertools.combinations(predictions, 2)
        }


def predict(library, request, data, **native):
    """Predictions of the training rows, one column per output; `native` overrides the table."""
    runner = RUNNERS[library]
    translation = runner.translate(request)
    translation.native.update(native)
    model = runner.fit(translation, runner.build(translation, data))
    return np.asarray(runner.predict(translation, model, data.x), dtype=np.float64).reshape(len(data.x), -1)


def false_marks(case):
    """How many pairs were compared, and those that disagree more than once: equal gains are an accident of the rows."""
    found = case.shares(1, case.exact)
    if all(share >= SHARE for share in found.values()):
        return len(found), {}
    again = Counter(
        pair for seed in (2, 3, 4) for pair, share in case.shares(seed, case.exact).items() if share < SHARE
    )
    return len(found), {pair: times for pair, times in again.items() if times > 1}


@st.composite
def cases(draw):
    """The whole space, with the values at which most libraries are exact drawn more often."""

    def often(value, *others):
        return draw(st.sampled_from((value, value, value, *others)))

    task = often(Task.REGRESSION, Task.BINARY, Task.MULTICLASS)
    booster = often(BoosterType.GBDT, BoosterType.GBDT, BoosterType.GBLINEAR)
    values = draw(st.sampled_from((8, 16, 60)))
    low = often(0, 1, -values // 2, -values)
    deep = task is Task.REGRESSION  # few labels and few rows in a node make equal gains
    rounds = often(1, 3) if deep or booster is BoosterType.GBLINEAR else 1
    training = TrainingConfig(
        n_estimators=rounds,
        learning_rate=draw(st.sampled_from((1.0, 0.3))),
        growth_strategy=draw(st.sampled_from(GrowthStrategy)),
        max_depth=draw(st.sampled_from((1, 2, 3, 6, 16) if deep else (1, 2, 3))),
        n_leaves=draw(st.sampled_from((2, 5, 12, 30) if deep else (2, 4, 6))),
        max_bins=draw(st.sampled_from((values, values, values, values + 1, values + 2, 255, 300))),
        early_stopping_rounds=often(None, 1, 2) if rounds > 1 else None,
        **({"l2": 0.0} | dict(draw(st.lists(st.sampled_from(LIMITS), max_size=2)))),
    )
    return Case(
        task,
        training,
        booster,
        values,
        low=low,
        skew=often(1.0, 4.0),
        weighted=often(False, True),
        missing=often(False, True),
        constant=often(False, False, True),
        offset=often(0.0, 1e3, 1e5, 1.7e9),
        spread=often(0.0, 3.0, 8.0),
        sparse=often(0.0, 0.9),
        categories=0 if low else often(0, 0, 1, 4),  # whose codes count from 0
    )


PLAIN = TrainingConfig(n_estimators=1, learning_rate=1.0, l2=0.0)


@settings(max_examples=50, derandomize=True, database=None)
@given(case=cases())
@example(case=Case(Task.REGRESSION, PLAIN.replace(max_depth=8, min_child_weight=0.0), values=32, weighted=True))
@example(case=Case(Task.REGRESSION, PLAIN.replace(max_depth=5, max_bins=8), values=8, low=-8))
def test_libraries_that_claim_to_be_exact_agree_row_by_row(case):
    assert not false_marks(case)[1], case.exact


@pytest.mark.slow
def test_no_mark_is_false_in_the_whole_parameter_space(simulated):
    compared = []

    @settings(max_examples=5_000, database=None)
    @given(case=cases())
    def hunt(case):
        pairs, wrong = false_marks(case)
        compared.append(pairs)
        assert not wrong, wrong

    hunt()
    claim = f"pairs of libraries marked exact that disagree, in {len(compared)} random requests"
    assert simulated("Parameter mapping", claim, 0, sum(compared), "0") == 0


def test_nobody_claims_to_treat_categories_quantiles_or_queries_like_another():
    asked = [FitRequest(Task.REGRESSION, TrainingConfig(), categorical=(0,), max_categories=3)]
    asked += [FitRequest(Task.QUANTILE, TrainingConfig(), quantiles=(0.5,)), FitRequest(Task.RANKING, TrainingConfig())]
    for request in asked:
        for runner in RUNNERS.values():
            if runner.unsupported(request) is None:
                kinds = {mark.parameter: mark.kind for mark in runner.translate(request).marks}
                assert {"own", "approximated"} & {kinds["objective"], kinds.get("categorical")}


@pytest.mark.parametrize("library", LIBRARIES)
def test_no_library_is_told_how_to_treat_categories_but_only_which_columns_they_are(library):
    plain = FitRequest(Task.REGRESSION, TrainingConfig(), has_missing=True)
    one, other = (RUNNERS[library].translate(request).native for request in (plain, replace(plain, categorical=(0,))))
    assert {name: value for name, value in other.items() if one.get(name) != value} in (
        {},
        {"categorical_features": [0]},
    )


# What the hunt has found so far, each with the smallest request that shows it.


def mark(library, case, parameter):
    return {mark.parameter: mark for mark in RUNNERS[library].translate(case.request).marks}[parameter]


@pytest.mark.parametrize("task", [Task.REGRESSION, Task.BINARY])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("l2", [0.0, 1e-3])
def test_lightgbm_does_not_abort_without_a_least_hessian_and_is_marked_where_it_differs(task, weighted, l2):
    training = PLAIN.replace(n_estimators=10, max_depth=8, min_child_weight=0.0, l2=l2)
    case = Case(task, training, values=32, weighted=weighted)
    for seed in range(2):
        assert np.isfinite(predict("lightgbm", case.request, case.data(seed))).all()
    exact = task is Task.REGRESSION and not weighted
    assert (mark("lightgbm", case, "min_child_weight").kind == "exact") == exact


def test_lightgbm_chooses_its_layout_by_the_shape_and_both_give_the_same_model():
    for case in (Case(Task.REGRESSION, PLAIN.replace(n_estimators=3)), Case(Task.BINARY, PLAIN, missing=True)):
        data, request = case.data(1), replace(case.request, n_columns=4)
        assert RUNNERS["lightgbm"].translate(request).native["force_col_wise"]
        assert np.array_equal(predict("lightgbm", request, data), predict("lightgbm", case.request, data))
    many = replace(case.request, n_columns=4, n_threads=8)
    assert RUNNERS["lightgbm"].translate(many).native["force_row_wise"]


def test_lightgbm_bundles_sparse_columns_and_is_marked_for_it():
    rng = np.random.default_rng(1)
    x = np.zeros((10_000, 200), dtype=np.float32)
    for first in range(0, 200, 40):  # five columns of 40 levels each, one-hot, and a few further ones
        x[np.arange(len(x)), first + rng.integers(0, 40, len(x))] = 1
    x[rng.integers(0, len(x), 40), rng.integers(0, 200, 40)] = 1
    data = TrainData(x, x @ rng.normal(size=200) + 0.1 * rng.standard_normal(len(x)))
    case = Case(Task.REGRESSION, PLAIN.replace(learning_rate=0.3, n_estimators=30))
    found = [predict("lightgbm", case.request, data, enable_bundle=bundled) for bundled in (True, False)]
    assert np.abs(found[0] - found[1]).max() > WITHIN * data.y.std(), "the mark of LightGBM's bundles is out of date"
    assert "bundled" in mark("lightgbm", case, "max_bins").reason


def test_lightgbm_counts_no_rows_of_weighted_data_where_one_row_is_enough():
    case = Case(Task.REGRESSION, PLAIN.replace(max_depth=8), values=32, weighted=True)
    assert RUNNERS["lightgbm"].translate(case.request).native["min_data_in_leaf"] == 0
    for seed in range(3):
        data = case.data(seed)
        one, other = (predict("lightgbm", case.request, data, min_data_in_leaf=least) for least in (0, 1))
        exact = predict("xgboost", case.request, data)
        assert np.mean(np.abs(one - exact) < 1e-3) >= 0.99 > np.mean(np.abs(other - exact) < 1e-3)


@pytest.mark.parametrize("task", [Task.BINARY, Task.MULTICLASS])
def test_after_the_first_round_lightgbm_refuses_leaves_of_single_rows_in_classification_and_is_marked(task):
    for rounds, same in ((1, True), (20, False)):
        case = Case(task, PLAIN.replace(max_depth=6, n_estimators=rounds, learning_rate=0.3))
        data = case.data(1)
        one, none = (predict("lightgbm", case.request, data, min_data_in_leaf=least) for least in (1, 0))
        assert np.array_equal(one, none) == same == (mark("lightgbm", case, "min_samples_leaf").kind == "exact")


@pytest.mark.parametrize("low", [-8, -4, 1])
def test_lightgbm_merges_values_though_there_are_enough_bins_and_is_marked_for_it(low):
    case = Case(Task.REGRESSION, PLAIN.replace(max_depth=5, max_bins=8), values=8, low=low)
    found = [case.shares(seed, ["xgboost", "boosters", "lightgbm"]) for seed in range(1, 5)]
    lowest = {pair: min(shares[pair] for shares in found) for pair in found[0]}
    assert {pair for pair, share in lowest.items() if share < SHARE} == {p for p in lowest if "lightgbm" in p}
    assert "may merge values" in mark("lightgbm", case, "max_bins").reason


def test_a_leaf_with_exactly_the_least_hessian_is_built_by_lightgbm_too():
    case = Case(Task.REGRESSION, PLAIN.replace(min_child_weight=7.0), values=60, skew=4.0)
    plain = {"min_sum_hessian_in_leaf": 7.0}
    differs = []
    for seed in range(1, 5):
        data = case.data(seed)
        exact = predict("xgboost", case.request, data)
        assert np.abs(predict("lightgbm", case.request, data) - exact).max() < 1e-3
        differs.append(np.abs(predict("lightgbm", case.request, data, **plain) - exact).max() > 1e-3)
    assert any(differs), "the correction of LightGBM's least hessian is out of date"


def test_xgboost_cuts_trees_of_small_targets_short_and_is_marked_unless_a_larger_gain_is_asked_for():
    case = Case(Task.REGRESSION, PLAIN)
    leaves = {}
    for scale in (1.0, 1e-4):
        data = case.data(1)
        data = TrainData(data.x, data.y * scale)
        leaves[scale] = [len(np.unique(predict(name, case.request, data))) for name in ("xgboost", "sklearn")]
    assert leaves[1.0][0] == leaves[1.0][1] == leaves[1e-4][1] > 10 * leaves[1e-4][0]
    assert "0.000001" in mark("xgboost", case, "min_gain").reason
    assert mark("xgboost", Case(Task.REGRESSION, PLAIN.replace(min_gain=1e-6)), "min_gain").kind == "exact"


def test_xgboost_cuts_trees_of_light_rows_short_and_is_marked_unless_all_rows_weigh_more():
    case = Case(Task.REGRESSION, PLAIN.replace(max_depth=16, max_bins=8), values=8, weighted=True, spread=3.0)
    shares = {1.0: [], 1e6: []}
    for seed, scale in itertools.product(range(1, 5), shares):
        data = case.data(seed)
        data = TrainData(data.x, data.y, data.weights * scale)
        request = replace(case.request, training=case.training.replace(min_child_weight=1e-3 * scale))
        one, other = (predict(name, request, data) for name in ("xgboost", "sklearn"))
        shares[scale].append(np.mean(np.abs(one - other) < WITHIN * data.y.std()))
    assert min(shares[1e6]) >= SHARE > min(shares[1.0]), "the mark of XGBoost's least gain is out of date"
    assert "rows of little weight" in mark("xgboost", case, "min_gain").reason


def test_boosters_ignores_a_column_with_one_value_besides_missing_ones_and_is_marked_for_it():
    case = Case(Task.REGRESSION, PLAIN.replace(max_depth=1), missing=True)
    rng = np.random.default_rng(0)
    x = rng.integers(0, 8, (1_000, 2)).astype(np.float32)
    x[:, 0] = np.where(rng.random(1_000) < 0.3, np.nan, 3)
    data = TrainData(x, np.isnan(x[:, 0]).astype(np.float64))
    errors = {name: np.abs(predict(name, case.request, data)[:, 0] - data.y).max() for name in LIBRARIES}
    assert [name for name, error in errors.items() if error > 0.1] == ["boosters"]
    assert "single value" in mark("boosters", case, "missing").reason


def test_boosters_loses_leaves_of_next_to_no_weight_and_is_marked_for_it():
    training = PLAIN.replace(min_child_weight=0.0, growth_strategy=GrowthStrategy.LEAFWISE, n_leaves=12)
    case = Case(Task.REGRESSION, training, low=-8, weighted=True, spread=8.0)
    shares = [case.shares(seed, ["boosters", "xgboost"])["boosters", "xgboost"] for seed in (2, 3, 4)]
    assert min(shares) < SHARE, "the mark of boosters' least hessian is out of date"
    assert "lost by rounding" in mark("boosters", case, "min_child_weight").reason
    assert mark("boosters", replace(case, weighted=False), "min_child_weight").kind == "exact"
