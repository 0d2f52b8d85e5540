"""LightGBM: its table and its runner.

It always grows the best leaf first; a depth cap with room for 2**depth leaves is depth-wise growth.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import UnsupportedError
from boosters_eval.metrics.task import Task
from boosters_eval.runners import rules
from boosters_eval.runners.base import ModelFacts, lazy_module
from boosters_eval.runners.parameters import BoosterType
from boosters_eval.runners.rules import Edition, Pin, Refusal, Rule, TableRunner, approximated, find_stopping_rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from boosters_eval.runners.base import ImportanceKind, TrainData, Translation
else:
    np = lazy_module("numpy")

lightgbm = lazy_module("lightgbm")

_LEAVES = re.compile(r"^num_leaves=(\d+)$", re.MULTILINE)
_PARAMETERS = re.compile(r"^\[(\w+): (.*)\]$", re.MULTILINE)
# What is passed to the training function and not to the booster.
_TRAIN_ARGUMENTS = ("num_iterations", "early_stopping_rounds")

_OWN_COUNT = (
    "the rows of a leaf are estimated from their hessians: where these differ, a leaf may have fewer rows, or be "
    "refused although it has enough"
)

_RULES = (
    Rule("objective", {"objective": "regression"}, where="task == 'regression'"),
    Rule("objective", {"objective": "binary"}, where="task == 'binary'"),
    Rule("objective", {"objective": "multiclass", "num_class": "=n_classes"}, where="task == 'multiclass'"),
    approximated(
        "objective", {"objective": "quantile", "alpha": "=list(quantiles)"}, rules.OWN_QUANTILE, "task == 'quantile'"
    ),
    approximated(
        "objective",
        {"objective": "lambdarank", "lambdarank_truncation_level": 30},
        rules.OWN_LAMBDAS,
        "task == 'ranking'",
    ),
    *rules.common_rules("num_iterations", "learning_rate", "seed"),
    Rule("n_threads", {"num_threads": "=n_threads"}),
    rules.ON_CPU,
    approximated(
        "device",
        {"device_type": "cuda"},
        "bins are those of the CPU, but the order of sums is not fixed; predictions are made on the CPU",
    ),
    approximated(
        "growth_strategy",
        {},
        "a column in which no split of a node gains enough is not tried again below that node",
        exact_if="l1 == 0 and l2 == 0 and min_gain == 0",
    ),
    Rule("max_depth", {"max_depth": "=max_depth", "num_leaves": "=2 ** max_depth"}, where=rules.DEPTHWISE),
    Rule("n_leaves", {"num_leaves": "=n_leaves", "max_depth": -1}, where=rules.LEAFWISE),
    approximated(
        "min_child_weight",
        {"min_sum_hessian_in_leaf": 1e-6},
        "below 0.000001 it aborts, since by rounding it meets leaves without rows",
        "min_child_weight * c < 0.000001",
        "task in ('regression', 'quantile') and not weighted",
    ),
    # A hair less than asked for: by rounding, a leaf that has exactly as much as asked for would seem to have less.
    Rule(
        "min_child_weight",
        {"min_sum_hessian_in_leaf": "=min_child_weight * c * (1 - 1e-9)"},
        where="min_child_weight > 0.001",
    ),
    Rule("min_child_weight", {"min_sum_hessian_in_leaf": "=min_child_weight * c"}),
    # A minimum of 1 would refuse leaves of light rows, which it counts as 0.
    approximated(
        "min_samples_leaf",
        {"min_data_in_leaf": 0},
        _OWN_COUNT,
        "weighted and min_samples_leaf == 1 and task in ('regression', 'quantile')",
    ),
    approximated(
        "min_samples_leaf",
        {"min_data_in_leaf": "=min_samples_leaf"},
        _OWN_COUNT,
        exact_if="not weighted and (task in ('regression', 'quantile') or task != 'ranking' and n_estimators == 1)",
    ),
    Rule("l1", {"lambda_l1": "=l1"}),
    Rule("l2", {"lambda_l2": "=l2 * c"}),
    Rule("min_gain", {"min_gain_to_split": "=min_gain / c"}),
    approximated(
        "max_bins",
        {"max_bin": "=max_bins + 1 if has_missing else max_bins", "min_data_in_bin": 1},
        "one bin is kept for zero and one for missing values, and the others are shared between negative and positive "
        "values by their numbers of rows: it may merge values although there are enough bins; columns that are hardly "
        "ever both different from zero are bundled, which loses a few of their values",
    ),
    Rule("subsample", {"bagging_fraction": "=subsample", "bagging_freq": "=1 if subsample < 1 else 0"}),
    Rule("colsample", {"feature_fraction": "=colsample"}),
    *rules.stopping_rules("early_stopping_rounds", joint=False),
    Rule("base_score", {"boost_from_average": True}, where="task != 'ranking'"),
    Rule("missing", where="has_missing"),
    rules.own_categories(
        "more than 4 categories are sorted by their gradients, smoothed (cat_smooth 10, cat_l2 10), and to split them "
        "takes 100 rows on each side (min_data_per_group)"
    ),
    Rule("weights", where="weighted"),
    approximated(
        "linear_leaves", {"linear_tree": True, "linear_lambda": 0.01}, rules.OWN_LINES, "booster == 'linear_trees'"
    ),
)

_EDITIONS = (
    Edition(
        library="lightgbm",
        since="4.3",
        until="4.8",
        rules=_RULES,
        pins=(
            Pin({"boosting": "gbdt"}, "plain boosting; it has nothing to do with how trees grow"),
            Pin({"deterministic": True}, "the same seed gives the same model", "device == 'cpu'"),
            # Left to itself it tries both under the clock. Both give the same model.
            Pin(
                {"force_col_wise": True},
                "with at least as many columns as threads, the layout by columns is the faster one",
                "device == 'cpu' and n_columns >= n_threads",
            ),
            Pin(
                {"force_row_wise": True},
                "the layout by rows is for fewer columns than threads, or an unknown number",
                "device == 'cpu' and n_columns < n_threads",
            ),
            Pin({"gpu_use_dp": True}, "sums are of double precision, as on the CPU", rules.CUDA),
            Pin({"feature_pre_filter": False}, "no column is dropped before training"),
            Pin({"verbosity": -1}, rules.SILENT),
        ),
        refusals=(
            rules.NO_GBLINEAR,
            Refusal(
                "booster == 'linear_trees' and task in ('quantile', 'ranking')",
                "leaves of this loss are not fitted by linear models",
            ),
            # It would train on the CPU instead, and say so only in a log that is silenced.
            Refusal(
                f"booster == 'linear_trees' and {rules.CUDA}", "its linear models in leaves are fitted on CPUs only"
            ),
        ),
        defaults=(
            Pin({"num_iterations": 100}, "its default"),
            Pin({"linear_tree": True}, "what was asked for", "booster == 'linear_trees'"),
            Pin({"verbosity": -1}, rules.SILENT),
        ),
        hessian="=n_classes / (n_classes - 1) if task == 'multiclass' else 1",
        nondeterministic=(
            Refusal(rules.CUDA, "the order of sums on the device is not fixed"),
            Refusal("profile == 'defaults'", "by default it chooses by timing how histograms are built"),
        ),
    ),
)


class LightGBMRunner(TableRunner):
    """Leaf-wise histogram trees, with constant or linear leaves. A model is a list: one booster per quantile."""

    name = "lightgbm"
    module = "lightgbm"
    distributions = ("lightgbm",)
    dependencies = ("numpy", "pandas", "scipy.sparse", "sklearn.model_selection")
    install = "lightgbm"
    cuda_build = "pip install --no-binary lightgbm --config-settings=cmake.define.USE_CUDA=ON lightgbm"
    editions = _EDITIONS

    @classmethod
    def build(cls, translation: Translation, data: TrainData) -> Any:
        """A constructed data set: left to itself the library would bin inside training."""
        valid = find_stopping_rows(translation, data)
        train = _dataset(translation, data)
        return train, None if valid is None else _dataset(translation, valid, train)

    @classmethod
    def fit(cls, translation: Translation, dataset: Any) -> Any:
        """One booster, or one for each quantile."""
        alphas = translation.native.get("alpha")
        each = [{"alpha": alpha} for alpha in alphas] if isinstance(alphas, (list, tuple)) else [{}]
        return [_train(translation, dataset, extra) for extra in each]

    @classmethod
    def predict(cls, translation: Translation, model: Any, x: NDArray[np.float32]) -> NDArray[Any]:
        """Probabilities, scores or quantiles; the best round is the last that is used."""
        request = translation.request
        outputs = [booster.predict(x, num_threads=request.n_threads) for booster in model]
        return np.column_stack(outputs) if request.task is Task.QUANTILE else outputs[0]

    @classmethod
    def raw(cls, translation: Translation, model: Any, x: NDArray[np.float32]) -> NDArray[Any]:
        """Raw scores, up to the best round."""
        threads = translation.request.n_threads
        return np.column_stack([booster.predict(x, raw_score=True, num_threads=threads) for booster in model])

    @classmethod
    def importances(cls, translation: Translation, model: Any, kind: ImportanceKind) -> NDArray[Any]:  # noqa: ARG003
        """Total gain, or the number of splits, up to the best round."""
        return np.asarray(sum(np.asarray(booster.feature_importance(kind), dtype=np.float64) for booster in model))

    @classmethod
    def attributions(cls, translation: Translation, model: Any, x: NDArray[np.float32]) -> NDArray[Any]:
        """Its own, up to the best round: for each class the columns and the base value, one class after another."""
        request = translation.request
        if request.booster_type is BoosterType.LINEAR_TREES:
            raise UnsupportedError("LightGBM does not attribute the predictions of linear trees")
        parts = [booster.predict(x, pred_contrib=True, num_threads=request.n_threads) for booster in model]
        found = np.concatenate([part.reshape(len(x), -1, x.shape[1] + 1) for part in parts], axis=1)
        return np.moveaxis(found, 1, 2)

    @classmethod
    def interactions(cls, translation: Translation, model: Any, x: NDArray[np.float32]) -> NDArray[Any]:  # noqa: ARG003
        raise UnsupportedError("LightGBM has no interactions of attributions")

    @classmethod
    def inspect(cls, model: Any) -> ModelFacts:
        """Leaves and size from the text form of the model, its own format, up to the best round."""
        text = "".join(booster.model_to_string() for booster in model)
        leaves = [int(count) for count in _LEAVES.findall(text)]
        return ModelFacts(n_trees=len(leaves), n_leaves=sum(leaves), n_bytes=len(text.encode()))

    @classmethod
    def effective(cls, model: Any) -> dict[str, Any]:
        """The parameters at the end of the model's text."""
        return dict(_PARAMETERS.findall(model[0].model_to_string()))


def _params(translation: Translation) -> dict[str, Any]:
    """What the booster is passed; a list of alphas has a booster for each."""
    given = {name: value for name, value in translation.native.items() if name not in _TRAIN_ARGUMENTS}
    return {name: value for name, value in given.items() if name != "alpha" or not isinstance(value, (list, tuple))}


def _dataset(translation: Translation, data: TrainData, reference: Any = None) -> Any:
    sizes = None
    if data.groups is not None:
        starts = np.flatnonzero(np.diff(data.groups)) + 1
        sizes = np.diff(np.concatenate(([0], starts, [len(data.groups)])))
    dataset = lightgbm.Dataset(
        data.x,
        label=data.y,
        weight=data.weights,
        group=sizes,
        categorical_feature=list(translation.request.categorical),
        params=_params(translation),
        reference=reference,
        free_raw_data=False,  # versions before 4.6 look at it again when they train; the rows are kept anyway
    )
    return dataset.construct()


def _train(translation: Translation, dataset: Any, extra: dict[str, Any]) -> Any:
    train, valid = dataset
    rounds = translation.native.get("early_stopping_rounds")
    return lightgbm.train(
        _params(translation) | extra,
        train,
        num_boost_round=translation.native["num_iterations"],
        valid_sets=None if valid is None else [valid],
        callbacks=[lightgbm.early_stopping(rounds, verbose=False)] if rounds else None,
    )
