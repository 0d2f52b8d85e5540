"""What the tables share: conditions, reasons, and the parameters that mean the same everywhere."""

from __future__ import annotations

from boosters_eval.runners.rules import Refusal, Rule

TREES = "booster != 'gblinear'"
DEPTHWISE = "booster != 'gblinear' and growth == 'depthwise'"
LEAFWISE = "booster != 'gblinear' and growth == 'leafwise'"
STOPPING = "early_stopping_rounds is not None"
# Where the hessian of every row is 1, a minimal sum of hessians is a minimal number of rows.
UNIT_HESSIAN = "booster != 'gblinear' and task in ('regression', 'quantile') and not weighted"

CUDA = "device == 'cuda'"

SILENT = "nothing is printed"
OWN_LAMBDAS = "the pairs of the ranking loss, their weights and their number are the library's own"
OWN_CATEGORIES = "how categories are grouped, smoothed and limited is the library's own"
OWN_LINES = "which features enter a leaf's linear model is the library's own"
OWN_QUANTILE = (
    "the quantile of the rows of a leaf is one of them in boosters and CatBoost, lies between two of them in "
    "LightGBM and scikit-learn"
)
OWN_RANK_STOP = "the ranking metric that is watched is the library's own"
KEEPS_ROUNDS = "it stops like the others but keeps the rounds after the best one"
NO_ROWS_IN_LEAF = "the library cannot count the rows of a leaf, and a row's hessian is not 1 here"

ON_CPU = Rule("device", where="device == 'cpu'")  # every library's default
NO_DEVICE = Refusal("device != 'cpu'", "the library trains on CPUs only")
NO_GBLINEAR = Refusal("booster == 'gblinear'", "the library boosts no linear models")
NO_LINEAR_TREES = Refusal("booster == 'linear_trees'", "the library has no linear models in leaves")
NO_RANKING = Refusal("task == 'ranking'", "the library has no ranking objective")
# A linear model's rounds go over all rows and all columns.
NO_SAMPLING = tuple(
    Rule(name, {}, "unsupported", "linear models are trained on all rows and all columns", exact_if=f"{name} == 1")
    for name in ("subsample", "colsample")
)


def common(n_estimators: str, learning_rate: str, seed: str) -> tuple[Rule, ...]:
    """Three parameters that differ in name alone, and in the hessian that a step is divided by."""
    return (
        Rule("n_estimators", {n_estimators: "=n_estimators"}),
        Rule("learning_rate", {learning_rate: "=learning_rate * c"}),
        Rule("seed", {seed: "=seed"}),
    )


def stopping(native: str, *, joint: bool) -> tuple[Rule, ...]:
    """Early stopping on rows that the engine holds out, the same for every library.

    All watch their loss; where a library has one model for all quantiles, these stop together.
    """
    settings = {native: "=early_stopping_rounds"}
    ranking = Rule(
        "early_stopping_rounds", settings, "approximated", OWN_RANK_STOP, f"{STOPPING} and task == 'ranking'"
    )
    together = Rule(
        "early_stopping_rounds",
        settings,
        "approximated",
        "all quantiles stop at the same round; in other libraries each stops on its own",
        f"{STOPPING} and task == 'quantile'",
        "n_quantiles == 1",
    )
    return (*((together,) if joint else ()), ranking, Rule("early_stopping_rounds", settings, where=STOPPING))
