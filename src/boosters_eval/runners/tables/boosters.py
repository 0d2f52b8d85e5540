"""boosters 0.1. Depth-wise growth knows only a depth, leaf-wise growth only a number of leaves.

Its min_samples_leaf counts occupied bins and forbids, even at 1, leaves that the other libraries build: with 0 all
four agree on every row. Rows are counted by min_child_weight wherever a row's hessian is 1.
"""

from __future__ import annotations

from boosters_eval.runners.rules import Edition, Pin, Refusal, Rule
from boosters_eval.runners.tables.common import (
    DEPTHWISE,
    LEAFWISE,
    NO_DEVICE,
    NO_RANKING,
    NO_ROWS_IN_LEAF,
    NO_SAMPLING,
    ON_CPU,
    OWN_CATEGORIES,
    OWN_LINES,
    OWN_QUANTILE,
    SILENT,
    TREES,
    UNIT_HESSIAN,
    common,
    stopping,
)

_PINBALL = {"objective": "pinball", "quantiles": "=list(quantiles)"}

_RULES = (
    Rule("objective", {"objective": "squared"}, where="task == 'regression'"),
    Rule("objective", {"objective": "logistic"}, where="task == 'binary'"),
    Rule("objective", {"objective": "softmax", "n_classes": "=n_classes"}, where="task == 'multiclass'"),
    Rule(
        "objective",
        _PINBALL,
        "approximated",
        "a linear model steps by the sign of the error: it needs several times the rounds of the other losses, "
        "and until then its outer quantiles lie too far out",
        "task == 'quantile' and booster == 'gblinear'",
    ),
    Rule("objective", _PINBALL, "approximated", OWN_QUANTILE, "task == 'quantile'"),
    *common("n_estimators", "learning_rate", "seed"),
    Rule("n_threads", {"n_threads": "=n_threads"}),
    ON_CPU,
    Rule("growth_strategy", {"growth_strategy": "Depthwise"}, where=DEPTHWISE),
    Rule("growth_strategy", {"growth_strategy": "Leafwise"}, where=LEAFWISE),
    Rule("max_depth", {"max_depth": "=max_depth"}, where=DEPTHWISE),
    Rule("n_leaves", {"n_leaves": "=n_leaves"}, where=LEAFWISE),
    Rule("min_child_weight", {"min_child_weight": "=min_child_weight"}, where=TREES),
    Rule(
        "min_samples_leaf",
        {"min_child_weight": "=max(min_child_weight, min_samples_leaf)", "min_samples_leaf": 0},
        where=UNIT_HESSIAN,
    ),
    Rule("min_samples_leaf", {"min_samples_leaf": 0}, "unsupported", NO_ROWS_IN_LEAF, TREES, "min_samples_leaf == 1"),
    Rule(
        "l1",
        {"l1": "=l1"},
        "approximated",
        "it shrinks the values of leaves, but the gain of a split ignores it",
        TREES,
        "l1 == 0",
    ),
    Rule("l1", {"l1": "=l1"}),
    Rule("l2", {"l2": "=l2"}),
    Rule("min_gain", {"min_gain_to_split": "=min_gain / 4"}, where=TREES),
    Rule("max_bins", {"max_bins": "=max_bins"}, where=TREES),
    Rule("subsample", {"subsample": "=subsample"}, where=TREES),
    Rule("colsample", {"colsample_bytree": "=colsample"}, where=TREES),
    *NO_SAMPLING,
    *stopping("early_stopping_rounds", joint=True),
    Rule("base_score"),
    Rule(
        "missing",
        {},
        "approximated",
        "a column with a single value besides missing ones is ignored",
        f"has_missing and {TREES}",
    ),
    Rule("missing", where="has_missing"),
    Rule("categorical", {"max_onehot_cats": 4}, "approximated", OWN_CATEGORIES, "categorical"),
    Rule("weights", where="weighted"),
    Rule(
        "linear_leaves",
        {"linear_leaves": True, "linear_l2": 0.01},
        "approximated",
        OWN_LINES,
        "booster == 'linear_trees'",
    ),
)

EDITIONS = (
    Edition(
        library="boosters",
        since="0.1",
        until="0.2",
        rules=_RULES,
        pins=(
            Pin(
                {"update_strategy": "Sequential"},
                "coordinate descent in the order of the columns, as in XGBoost",
                "booster == 'gblinear'",
            ),
            Pin(
                {"sparsity_threshold": 1.0},
                "columns that are mostly zero are kept dense: version 0.1 trains sparse ones wrongly",
                TREES,
            ),
            Pin({"verbosity": "Silent"}, SILENT),
        ),
        refusals=(
            NO_RANKING,
            NO_DEVICE,
            Refusal(
                "categorical and (profile == 'defaults' or max_bins <= 256) "
                "and max_categories > (255 if has_missing else 256)",
                "more than 256 categories, missing being one, are trained wrongly unless max_bins is above 256",
            ),
            Refusal("booster == 'gblinear' and categorical", "a linear model would take categories as numbers"),
        ),
        defaults=(
            Pin({"linear_leaves": True}, "what was asked for", "booster == 'linear_trees'"),
            Pin({"verbosity": "Silent"}, SILENT),
        ),
        nondeterministic=(
            Refusal(
                "colsample < 1 and booster != 'gblinear' and profile == 'parity'",
                "column sampling ignores the seed",
            ),
        ),
    ),
)
