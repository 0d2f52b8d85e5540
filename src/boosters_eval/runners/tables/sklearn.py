"""scikit-learn's HistGradientBoosting. From 1.7 on it can stop early on rows that it is given."""

from __future__ import annotations

from boosters_eval.runners.rules import Edition, Pin, Refusal, Rule
from boosters_eval.runners.tables.common import (
    DEPTHWISE,
    KEEPS_ROUNDS,
    LEAFWISE,
    NO_DEVICE,
    NO_GBLINEAR,
    NO_LINEAR_TREES,
    NO_RANKING,
    ON_CPU,
    OWN_CATEGORIES,
    OWN_QUANTILE,
    SILENT,
    STOPPING,
    common,
)

_RULES = (
    Rule("objective", {"loss": "squared_error"}, where="task == 'regression'"),
    Rule("objective", {"loss": "log_loss"}, where="task in ('binary', 'multiclass')"),
    Rule(
        "objective",
        {"loss": "quantile", "quantile": "=list(quantiles)"},
        "approximated",
        OWN_QUANTILE,
        "task == 'quantile'",
    ),
    *common("max_iter", "learning_rate", "random_state"),
    Rule("n_threads"),
    ON_CPU,
    Rule("growth_strategy"),
    Rule("max_depth", {"max_depth": "=max_depth", "max_leaf_nodes": None}, where=DEPTHWISE),
    Rule("n_leaves", {"max_leaf_nodes": "=n_leaves", "max_depth": None}, where=LEAFWISE),
    Rule(
        "min_child_weight",
        {},
        "unsupported",
        "the minimal sum of hessians is fixed at 0.001",
        exact_if="min_child_weight == 0.001 or min_child_weight <= 1 and task in ('regression', 'quantile') "
        "and not weighted",
    ),
    Rule("min_samples_leaf", {"min_samples_leaf": "=min_samples_leaf"}),
    Rule("l1", {}, "unsupported", "there is no L1 penalty", exact_if="l1 == 0"),
    Rule("l2", {"l2_regularization": "=l2"}),
    Rule("min_gain", {}, "unsupported", "there is no minimal gain", exact_if="min_gain == 0"),
    Rule(
        "max_bins",
        {"max_bins": "=min(max_bins, 255)"},
        "approximated",
        "255 is the maximum",
        exact_if="max_bins <= 255",
    ),
    Rule("subsample", {}, "unsupported", "there is no row sampling", exact_if="subsample == 1"),
    Rule(
        "colsample",
        {"max_features": "=colsample"},
        "approximated",
        "columns are drawn anew for every node, not for every tree",
        exact_if="colsample == 1",
    ),
    Rule("base_score"),
    Rule("missing", where="has_missing"),
    Rule("categorical", {"categorical_features": "=list(categorical)"}, "approximated", OWN_CATEGORIES, "categorical"),
    Rule("weights", where="weighted"),
)
_KEEPS = Rule(
    "early_stopping_rounds",
    {"early_stopping": True, "n_iter_no_change": "=early_stopping_rounds", "tol": 0.0, "scoring": "loss"},
    "approximated",
    KEEPS_ROUNDS,
    STOPPING,
)
_CANNOT = Rule(
    "early_stopping_rounds",
    {"early_stopping": False},
    "unsupported",
    "before version 1.7 it cannot watch rows that it is given",
    STOPPING,
)


def _edition(since: str, until: str, early_stopping: Rule) -> Edition:
    return Edition(
        library="sklearn",
        since=since,
        until=until,
        rules=(*_RULES, early_stopping),
        pins=(
            Pin(
                {"early_stopping": False},
                "otherwise it holds out rows and stops by itself above 10 000 rows",
                "early_stopping_rounds is None",
            ),
            Pin({"categorical_features": None}, "no guess from the types of columns", "not categorical"),
            Pin({"verbose": 0}, SILENT),
        ),
        refusals=(
            NO_GBLINEAR,
            NO_LINEAR_TREES,
            NO_RANKING,
            NO_DEVICE,
            Refusal(
                "categorical and max_categories > (255 if profile == 'defaults' else min(max_bins, 255))",
                "a column may have no more categories than max_bins, and no more than 255",
            ),
        ),
        defaults=(
            Pin({"categorical_features": "=list(categorical)"}, "what the data says", "categorical"),
            Pin({"verbose": 0}, SILENT),
        ),
    )


EDITIONS = (_edition("1.5", "1.7", _CANNOT), _edition("1.7", "1.10", _KEEPS))
