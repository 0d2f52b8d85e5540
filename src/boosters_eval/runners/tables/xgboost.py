"""XGBoost. Up to 3.4 its softmax hessian is 2p(1-p); its start scores and its quantile loss changed with versions."""

from __future__ import annotations

from boosters_eval.runners.rules import Edition, Pin, Refusal, Rule
from boosters_eval.runners.tables.common import (
    CUDA,
    DEPTHWISE,
    KEEPS_ROUNDS,
    LEAFWISE,
    NO_LINEAR_TREES,
    NO_ROWS_IN_LEAF,
    NO_SAMPLING,
    ON_CPU,
    OWN_CATEGORIES,
    OWN_LAMBDAS,
    OWN_QUANTILE,
    SILENT,
    TREES,
    UNIT_HESSIAN,
    common,
    stopping,
)

_RULES = (
    Rule("objective", {"objective": "reg:squarederror"}, where="task == 'regression'"),
    Rule("objective", {"objective": "binary:logistic"}, where="task == 'binary'"),
    Rule("objective", {"objective": "multi:softprob", "num_class": "=n_classes"}, where="task == 'multiclass'"),
    Rule(
        "objective",
        {"objective": "rank:ndcg", "lambdarank_pair_method": "topk", "lambdarank_num_pair_per_sample": 30},
        "approximated",
        OWN_LAMBDAS,
        "task == 'ranking'",
    ),
    Rule(
        "learning_rate",
        {"eta": "=learning_rate * c"},
        "approximated",
        "the step is corrected for the hessian 2p(1-p), but the residuals within a round cannot be: "
        "the optimum is the same, the path to it is not",
        "booster == 'gblinear' and task == 'multiclass'",
    ),
    *common("num_boost_round", "eta", "seed"),
    Rule("n_threads", {"nthread": "=n_threads"}),
    ON_CPU,
    Rule(
        "device",
        {"device": "cuda"},
        "approximated",
        "bins are those of the CPU, but gradients are rounded before they are summed, so that their order does not "
        "matter: of splits that gain nearly the same, another one may win",
    ),
    Rule("growth_strategy", {"grow_policy": "depthwise"}, where=DEPTHWISE),
    Rule("growth_strategy", {"grow_policy": "lossguide"}, where=LEAFWISE),
    Rule("max_depth", {"max_depth": "=max_depth", "max_leaves": 0}, where=DEPTHWISE),
    Rule("n_leaves", {"max_leaves": "=n_leaves", "max_depth": 0}, where=LEAFWISE),
    Rule("min_child_weight", {"min_child_weight": "=min_child_weight * c"}, where=TREES),
    Rule("l1", {"alpha": "=l1"}),
    Rule("l2", {"lambda": "=l2 * c"}, where=TREES),
    Rule("l2", {"lambda": "=l2"}),
    Rule(
        "min_gain",
        {"gamma": "=min_gain / c"},
        "approximated",
        "no split may gain less than 0.000001: targets or residuals below about 0.01 are cut short",
        TREES,
        "min_gain / c >= 0.000001",
    ),
    Rule("max_bins", {"max_bin": "=max_bins"}, where=TREES),
    Rule("subsample", {"subsample": "=subsample"}, where=TREES),
    Rule("colsample", {"colsample_bytree": "=colsample"}, where=TREES),
    *NO_SAMPLING,
    Rule(
        "early_stopping_rounds",
        {"early_stopping_rounds": "=early_stopping_rounds"},
        "approximated",
        KEEPS_ROUNDS,
        "early_stopping_rounds is not None and booster == 'gblinear'",
    ),
    *stopping("early_stopping_rounds", joint=True),
    Rule("missing", where="has_missing"),
    Rule("categorical", {"max_cat_to_onehot": 4}, "approximated", OWN_CATEGORIES, "categorical"),
    Rule("weights", where="weighted"),
)
_PINS = (
    Pin({"booster": "gbtree", "tree_method": "hist"}, "histogram trees, as in the other libraries", TREES),
    Pin(
        {"booster": "gblinear", "updater": "coord_descent", "feature_selector": "cyclic"},
        "coordinate descent in the order of the columns: the shotgun updater is not repeatable",
        "booster == 'gblinear'",
    ),
    Pin({"verbosity": 0}, SILENT),
)
_DEFAULTS = (
    Pin({"num_boost_round": 100}, "the default of its estimators; its train function has 10"),
    Pin({"booster": "gblinear", "updater": "coord_descent"}, "repeatable", "booster == 'gblinear'"),
    Pin({"verbosity": 0}, SILENT),
)
_REFUSALS = (
    NO_LINEAR_TREES,
    Refusal("booster == 'gblinear' and task == 'quantile'", "its linear models learn nothing from the quantile loss"),
    Refusal(f"booster == 'gblinear' and {CUDA}", "its linear models are trained on CPUs only"),
    Refusal("booster == 'gblinear' and categorical", "a linear model would take categories as numbers"),
    Refusal("task == 'ranking' and weighted", "ranking takes weights of queries, not of rows"),
)


_ROWS = {"min_child_weight": "=max(min_child_weight, min_samples_leaf)"}
_NO_ROWS = Rule("min_samples_leaf", {}, "unsupported", NO_ROWS_IN_LEAF, TREES, "min_samples_leaf == 1")
_PINBALL = {"objective": "reg:quantileerror", "quantile_alpha": "=list(quantiles)"}

# Up to 3.3 a leaf of the quantile loss is the quantile of its rows, and every row's hessian is 1.
_EXACT_QUANTILE = (
    Rule("objective", _PINBALL, "approximated", OWN_QUANTILE, "task == 'quantile'"),
    Rule("min_samples_leaf", _ROWS, where=UNIT_HESSIAN),
    _NO_ROWS,
)
_SMOOTH_QUANTILE = (
    Rule(
        "objective",
        _PINBALL,
        "approximated",
        "from 3.4 on a leaf is a Newton step of a smoothed loss, while elsewhere it is the quantile of its rows: "
        "it needs several times as many rounds",
        "task == 'quantile'",
    ),
    Rule("min_samples_leaf", _ROWS, where=f"task == 'regression' and {UNIT_HESSIAN}"),
    _NO_ROWS,
)


def _start(reason: str, exact_if: str) -> Rule:
    """The start score is the mean, the log odds or the quantile; that of several outputs came in steps."""
    return Rule("base_score", {}, "approximated", reason, "task != 'ranking'", exact_if)


def _edition(since: str, until: str, *rules: Rule) -> Edition:
    return Edition(
        library="xgboost",
        since=since,
        until=until,
        rules=(*_RULES, *rules),
        pins=_PINS,
        refusals=_REFUSALS,
        defaults=_DEFAULTS,
        hessian="=2 if task == 'multiclass' else 1",
    )


_PRIORS = Rule("base_score", where="task != 'ranking'")

EDITIONS = (
    _edition(
        "3.0",
        "3.1",
        *_EXACT_QUANTILE,
        _start(
            "all outputs start alike: from equal probabilities, or from the mean of the quantiles",
            "task in ('regression', 'binary') or task == 'quantile' and n_quantiles == 1",
        ),
    ),
    _edition(
        "3.1",
        "3.2",
        *_EXACT_QUANTILE,
        _start("multiclass starts one Newton step towards the class priors", "task != 'multiclass'"),
    ),
    _edition("3.2", "3.4", *_EXACT_QUANTILE, _PRIORS),
    _edition("3.4", "3.5", *_SMOOTH_QUANTILE, _PRIORS),
)
