"""CatBoost. Symmetric trees, row sampling and random scores are switched off: they have no counterpart elsewhere."""

from __future__ import annotations

from boosters_eval.runners.rules import Edition, Pin, Refusal, Rule
from boosters_eval.runners.tables.common import (
    CUDA,
    NO_GBLINEAR,
    NO_LINEAR_TREES,
    ON_CPU,
    OWN_LAMBDAS,
    OWN_QUANTILE,
    SILENT,
    common,
    stopping,
)

_GRADIENT_SCORES = "splits are scored with gradients alone, not with hessians; the leaves are Newton steps"

_RULES = (
    Rule("objective", {"loss_function": "RMSE"}, where="task == 'regression'"),
    Rule("objective", {"loss_function": "Logloss"}, "approximated", _GRADIENT_SCORES, "task == 'binary'"),
    Rule(
        "objective",
        {"loss_function": "MultiClass", "classes_count": "=n_classes"},
        "approximated",
        "one tree per round with a vector in each leaf, not one tree per class; " + _GRADIENT_SCORES,
        "task == 'multiclass'",
    ),
    Rule(
        "objective",
        {"loss_function": "Quantile", "alpha": "=list(quantiles)"},
        "approximated",
        OWN_QUANTILE,
        "task == 'quantile'",
    ),
    Rule("objective", {"loss_function": "YetiRank"}, "approximated", OWN_LAMBDAS, "task == 'ranking'"),
    *common("iterations", "learning_rate", "random_seed"),
    Rule(
        "n_threads",
        {"thread_count": "=n_threads"},
        "approximated",
        "training uses one thread for the device; the others only prepare the data",
        CUDA,
    ),
    Rule("n_threads", {"thread_count": "=n_threads"}),
    ON_CPU,
    # Left to itself it would use all devices, where the other libraries use one.
    Rule(
        "device",
        {"task_type": "GPU", "devices": "0"},
        "approximated",
        "the order of sums is not fixed; predictions are made on the CPU",
    ),
    Rule("growth_strategy", {"grow_policy": "Depthwise"}, where="growth == 'depthwise'"),
    Rule("growth_strategy", {"grow_policy": "Lossguide"}, where="growth == 'leafwise'"),
    Rule("max_depth", {"depth": "=max_depth"}, where="growth == 'depthwise'"),
    Rule(
        "n_leaves",
        {"max_leaves": "=n_leaves", "depth": 8},
        "approximated",
        "in ranking on the device, no leaf is deeper than 8",
        f"growth == 'leafwise' and task == 'ranking' and {CUDA}",
        "n_leaves <= 9",
    ),
    Rule(
        "n_leaves",
        {"max_leaves": "=n_leaves", "depth": 16},
        "approximated",
        "no leaf is deeper than 16",
        "growth == 'leafwise'",
        "n_leaves <= 17",
    ),
    Rule(
        "min_child_weight",
        {},
        "unsupported",
        "there is no minimal sum of hessians",
        exact_if="min_child_weight == 0 or min_child_weight <= 1 and task in ('regression', 'quantile') "
        "and not weighted",
    ),
    Rule(
        "min_samples_leaf",
        {"min_data_in_leaf": "=min_samples_leaf"},
        "approximated",
        "it is the smallest number of rows at which a node is split, not the smallest in a leaf",
        exact_if="min_samples_leaf == 1",
    ),
    Rule("l1", {}, "unsupported", "there is no L1 penalty", exact_if="l1 == 0"),
    Rule(
        "l2",
        {"l2_leaf_reg": "=l2"},
        "approximated",
        "the penalty is multiplied by the mean weight of a row",
        exact_if="not weighted or l2 == 0",
    ),
    Rule("min_gain", {}, "unsupported", "there is no minimal gain", exact_if="min_gain == 0"),
    Rule(
        "max_bins",
        {"border_count": "=min(max_bins if has_missing else max_bins - 1, 255)"},
        "approximated",
        "on the device a column has at most 255 borders; one with missing values spends one bin on them, and to make "
        "up for it a column without them gets one more",
        CUDA,
        "not has_missing and max_bins <= 256",
    ),
    Rule(
        "max_bins",
        {"border_count": "=max_bins if has_missing else max_bins - 1"},
        "approximated",
        "a column with missing values spends one bin on them; to make up for it a column without them gets one more",
        exact_if="not has_missing",
    ),
    Rule("subsample", {"bootstrap_type": "No"}, where="subsample == 1"),
    # On the device rows are always drawn once per tree.
    Rule("subsample", {"bootstrap_type": "Bernoulli", "subsample": "=subsample"}, where=CUDA),
    Rule("subsample", {"bootstrap_type": "Bernoulli", "subsample": "=subsample", "sampling_frequency": "PerTree"}),
    Rule("colsample", {}, "unsupported", "columns are not sampled on the device", CUDA, "colsample == 1"),
    Rule(
        "colsample",
        {"rsm": "=colsample"},
        "approximated",
        "columns are drawn anew for every split, not for every tree",
        exact_if="colsample == 1",
    ),
    *stopping("od_wait", joint=False),
    Rule(
        "base_score",
        {},
        "approximated",
        "multiclass starts from equal probabilities, not from the class priors",
        "task == 'multiclass'",
    ),
    Rule("base_score", {"boost_from_average": True}, where="task != 'ranking'"),
    Rule(
        "missing",
        {"nan_mode": "Min"},
        "approximated",
        "missing values go with the smallest ones; the other libraries learn at every split where they go",
        "has_missing",
    ),
    Rule(
        "categorical",
        {"one_hot_max_size": 4},
        "approximated",
        "categories with more than 4 values become statistics of the target, on the device others than on the CPU",
        f"categorical and {CUDA}",
    ),
    Rule(
        "categorical",
        {"one_hot_max_size": 4},
        "approximated",
        "categories with more than 4 values become statistics of the target",
        "categorical",
    ),
    Rule("weights", where="weighted"),
)

EDITIONS = (
    Edition(
        library="catboost",
        since="1.2.5",
        until="1.3",
        rules=_RULES,
        pins=(
            Pin({"random_strength": 0.0}, "no random term in the scores of splits"),
            Pin({"boosting_type": "Plain"}, "ordered boosting has no counterpart elsewhere"),
            Pin({"score_function": "L2"}, "the gain of the other libraries; the default is a cosine"),
            Pin(
                {"leaf_estimation_method": "Newton", "leaf_estimation_iterations": 1},
                "one Newton step per leaf",
                "task != 'quantile'",
            ),
            Pin(
                {"leaf_estimation_method": "Exact", "leaf_estimation_iterations": 1},
                "a leaf is the quantile of its rows",
                "task == 'quantile'",
            ),
            Pin({"use_best_model": False}, "all rounds are kept", "early_stopping_rounds is None"),
            Pin(
                {"od_type": "Iter", "use_best_model": True},
                "stops like the others",
                "early_stopping_rounds is not None",
            ),
            Pin({"allow_writing_files": False, "logging_level": "Silent"}, SILENT),
        ),
        refusals=(
            NO_GBLINEAR,
            NO_LINEAR_TREES,
            Refusal("task == 'ranking' and weighted", "ranking takes weights of queries, not of rows"),
            Refusal(
                f"task == 'ranking' and {CUDA} and profile == 'parity' and growth == 'depthwise' and max_depth > 8",
                "in ranking on the device, trees are at most 8 deep",
            ),
        ),
        defaults=(Pin({"allow_writing_files": False, "logging_level": "Silent"}, SILENT),),
        nondeterministic=(Refusal(CUDA, "the order of sums on the device is not fixed"),),
    ),
)
