"""LightGBM. It always grows the best leaf first; a depth cap with room for 2**depth leaves is depth-wise growth."""

from __future__ import annotations

from boosters_eval.runners.rules import Edition, Pin, Refusal, Rule
from boosters_eval.runners.tables.common import (
    CUDA,
    DEPTHWISE,
    LEAFWISE,
    NO_GBLINEAR,
    ON_CPU,
    OWN_CATEGORIES,
    OWN_LAMBDAS,
    OWN_LINES,
    OWN_QUANTILE,
    SILENT,
    common,
    stopping,
)

_OWN_COUNT = (
    "the rows of a leaf are estimated from their hessians: where these differ, a leaf may have fewer rows, or be "
    "refused although it has enough"
)

_RULES = (
    Rule("objective", {"objective": "regression"}, where="task == 'regression'"),
    Rule("objective", {"objective": "binary"}, where="task == 'binary'"),
    Rule("objective", {"objective": "multiclass", "num_class": "=n_classes"}, where="task == 'multiclass'"),
    Rule(
        "objective",
        {"objective": "quantile", "alpha": "=list(quantiles)"},
        "approximated",
        OWN_QUANTILE,
        "task == 'quantile'",
    ),
    Rule(
        "objective",
        {"objective": "lambdarank", "lambdarank_truncation_level": 30},
        "approximated",
        OWN_LAMBDAS,
        "task == 'ranking'",
    ),
    *common("num_iterations", "learning_rate", "seed"),
    Rule("n_threads", {"num_threads": "=n_threads"}),
    ON_CPU,
    Rule(
        "device",
        {"device_type": "cuda"},
        "approximated",
        "bins are those of the CPU, but the order of sums is not fixed; predictions are made on the CPU",
    ),
    Rule(
        "growth_strategy",
        {},
        "approximated",
        "a column in which no split of a node gains enough is not tried again below that node",
        exact_if="l1 == 0 and l2 == 0 and min_gain == 0",
    ),
    Rule("max_depth", {"max_depth": "=max_depth", "num_leaves": "=2 ** max_depth"}, where=DEPTHWISE),
    Rule("n_leaves", {"num_leaves": "=n_leaves", "max_depth": -1}, where=LEAFWISE),
    # A hair less than asked for: by rounding, a leaf that has exactly as much as asked for would seem to have less.
    Rule(
        "min_child_weight",
        {"min_sum_hessian_in_leaf": "=min_child_weight * c * (1 - 1e-9)"},
        where="min_child_weight > 0.001",
    ),
    Rule("min_child_weight", {"min_sum_hessian_in_leaf": "=min_child_weight * c"}),
    # A minimum of 1 would refuse leaves of light rows, which it counts as 0. Without any other limit, 0 is taken for 1.
    Rule(
        "min_samples_leaf",
        {"min_data_in_leaf": 0},
        "approximated",
        _OWN_COUNT,
        "weighted and min_samples_leaf == 1 and min_child_weight > 0 and task in ('regression', 'quantile')",
    ),
    Rule(
        "min_samples_leaf",
        {"min_data_in_leaf": "=min_samples_leaf"},
        "approximated",
        _OWN_COUNT,
        exact_if="not weighted and (task in ('regression', 'quantile') or task != 'ranking' and n_estimators == 1)",
    ),
    Rule("l1", {"lambda_l1": "=l1"}),
    Rule("l2", {"lambda_l2": "=l2 * c"}),
    Rule("min_gain", {"min_gain_to_split": "=min_gain / c"}),
    Rule(
        "max_bins",
        {"max_bin": "=max_bins + 1 if has_missing else max_bins", "min_data_in_bin": 1},
        "approximated",
        "one bin is kept for zero and one for missing values, and the others are shared between negative and positive "
        "values by their numbers of rows: it may merge values although there are enough bins",
    ),
    Rule("subsample", {"bagging_fraction": "=subsample", "bagging_freq": "=1 if subsample < 1 else 0"}),
    Rule("colsample", {"feature_fraction": "=colsample"}),
    *stopping("early_stopping_rounds", joint=False),
    Rule("base_score", {"boost_from_average": True}, where="task != 'ranking'"),
    Rule("missing", where="has_missing"),
    Rule(
        "categorical",
        {
            "max_cat_to_onehot": 4,
            "max_cat_threshold": 64,
            "cat_l2": 0.0,
            "cat_smooth": "=l2",
            "min_data_per_group": 1,
        },
        "approximated",
        OWN_CATEGORIES,
        "categorical",
    ),
    Rule("weights", where="weighted"),
    Rule(
        "linear_leaves",
        {"linear_tree": True, "linear_lambda": 0.01},
        "approximated",
        OWN_LINES,
        "booster == 'linear_trees'",
    ),
)

EDITIONS = (
    Edition(
        library="lightgbm",
        since="4.3",
        until="4.8",
        rules=_RULES,
        pins=(
            Pin({"boosting": "gbdt"}, "plain boosting; it has nothing to do with how trees grow"),
            Pin(
                {"deterministic": True, "force_row_wise": True}, "the same seed gives the same model", "device == 'cpu'"
            ),
            Pin({"gpu_use_dp": True}, "sums are of double precision, as on the CPU", CUDA),
            Pin({"feature_pre_filter": False}, "no column is dropped before training"),
            Pin({"verbosity": -1}, SILENT),
        ),
        refusals=(
            NO_GBLINEAR,
            Refusal(
                "booster == 'linear_trees' and task in ('quantile', 'ranking')",
                "leaves of this loss are not fitted by linear models",
            ),
            # It would train on the CPU instead, and say so only in a log that is silenced.
            Refusal(f"booster == 'linear_trees' and {CUDA}", "its linear models in leaves are fitted on CPUs only"),
        ),
        defaults=(
            Pin({"num_iterations": 100}, "its default"),
            Pin({"linear_tree": True}, "what was asked for", "booster == 'linear_trees'"),
            Pin({"verbosity": -1}, SILENT),
        ),
        hessian="=n_classes / (n_classes - 1) if task == 'multiclass' else 1",
        nondeterministic=(
            Refusal(CUDA, "the order of sums on the device is not fixed"),
            Refusal("profile == 'defaults'", "by default it chooses by timing how histograms are built"),
        ),
    ),
)
