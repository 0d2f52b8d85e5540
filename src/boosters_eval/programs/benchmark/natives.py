"""The native parameters that a paper names: their other names, and those that a library would ignore in silence."""

from __future__ import annotations

import re
import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import ConfigError, suggest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from boosters_eval.runners.base import Translation

# The parameter that names the metric on which a library stops early.
STOPPING_METRIC = {"xgboost": "eval_metric", "lightgbm": "metric", "catboost": "eval_metric"}
# Native parameters have several names, and a library that is given two of them chooses one in silence.
_ALIASES: dict[str, dict[str, tuple[str, ...]]] = {
    "xgboost": {
        "num_boost_round": ("n_estimators", "num_round"),
        "eta": ("learning_rate",),
        "lambda": ("reg_lambda",),
        "alpha": ("reg_alpha",),
        "gamma": ("min_split_loss",),
        "seed": ("random_state",),
        "nthread": ("n_jobs",),
    },
    "lightgbm": {
        "num_iterations": ("n_estimators", "num_boost_round", "num_round", "num_rounds", "num_trees", "n_iter"),
        "learning_rate": ("eta", "shrinkage_rate"),
        "num_leaves": ("num_leaf", "max_leaves", "max_leaf", "max_leaf_nodes"),
        "min_data_in_leaf": ("min_data", "min_data_per_leaf", "min_child_samples", "min_samples_leaf"),
        "min_sum_hessian_in_leaf": ("min_hessian", "min_sum_hessian", "min_child_weight", "min_sum_hessian_per_leaf"),
        "lambda_l1": ("reg_alpha", "l1_regularization"),
        "lambda_l2": ("reg_lambda", "lambda", "l2_regularization"),
        "bagging_fraction": ("subsample", "sub_row", "bagging"),
        "bagging_freq": ("subsample_freq",),
        "feature_fraction": ("colsample_bytree", "sub_feature"),
        "min_gain_to_split": ("min_split_gain",),
        "max_bin": ("max_bins",),
        "seed": ("random_state", "random_seed"),
        "device_type": ("device",),
        "num_threads": ("n_jobs", "nthread", "nthreads", "num_thread"),
        "objective": ("objective_type", "app", "application", "loss"),
        "metric": ("metrics", "metric_types"),
        "verbosity": ("verbose",),
    },
    "catboost": {
        "iterations": ("n_estimators", "num_boost_round", "num_trees"),
        "learning_rate": ("eta",),
        "depth": ("max_depth",),
        "l2_leaf_reg": ("reg_lambda",),
        "border_count": ("max_bin",),
        "max_leaves": ("num_leaves",),
        "min_data_in_leaf": ("min_child_samples",),
        "rsm": ("colsample_bylevel",),
        "random_seed": ("random_state",),
        "loss_function": ("objective",),
        "logging_level": ("verbose", "verbose_eval", "silent"),
    },
}
# A device that were named natively would not be looked for, and a library without one may train on the CPU in silence.
_DEVICES = {
    "xgboost": ("device", "tree_method", "updater", "predictor", "gpu_id"),  # all but the first in older versions
    "lightgbm": ("device_type",),
    "catboost": ("task_type",),
}
_THREADS = frozenset({"nthread", "num_threads", "thread_count", "n_threads"})


def canonical_native(library: str, native: dict[str, Any]) -> dict[str, Any]:
    """Native parameters under the names that our own tables use, so that they replace what these would pass."""
    names = {alias: name for name, aliases in _ALIASES.get(library, {}).items() for alias in aliases}
    found: dict[str, Any] = {}
    for given, value in native.items():
        name = names.get(given, given)
        if name in found:
            raise ConfigError(f"The native parameter '{name}' of {library} is given twice, once as '{given}'.")
        if name in _THREADS:
            raise ConfigError(f"The native parameter '{given}' must be given as the canonical 'n_threads'.")
        if name in _DEVICES.get(library, ()) and _names_device(name, value):
            raise ConfigError(f"The native parameter '{given}' must be given as the canonical 'device'.")
        found[name] = value
    return found


def _names_device(name: str, value: Any) -> bool:
    if name in ("tree_method", "updater", "predictor"):  # gpu_hist, grow_gpu_hist, gpu_predictor
        return "gpu" in str(value).lower()
    return str(value).lower() != "cpu"


def refuse_ignored(library: str, given: Iterable[str], translation: Translation) -> None:
    """XGBoost and LightGBM ignore a parameter that they do not know, or have no use for; the others refuse it."""
    names = [name for name in given if translation.native.get(name) is not None]
    known: set[str] = set()
    ignored: set[str] = set()
    if library == "lightgbm":
        known = _lightgbm_names()
        ignored = set(names) - known if known else set()
    elif library == "xgboost" and names:
        ignored = _ignored_by_xgboost(translation.native) & set(names)
    for name in sorted(ignored):
        raise ConfigError(f"The native parameter '{name}' has no effect in {library}.{suggest(name, known)}")


def _lightgbm_names() -> set[str]:
    """All names that the installed version tells; none where it tells nothing."""
    aliases = getattr(import_module("lightgbm").basic, "_ConfigAliases", None)
    tell = getattr(aliases, "_get_all_param_aliases", None)
    found: Mapping[str, Iterable[str]] = tell() if tell is not None else {}
    return {name for main, others in found.items() for name in (main, *others)}


def _ignored_by_xgboost(native: Mapping[str, Any]) -> set[str]:
    """What it warns of when it is not silenced, on two rows; nothing for tasks that two rows are not enough for."""
    xgboost, numpy = import_module("xgboost"), import_module("numpy")
    booster = {
        name: value for name, value in native.items() if name not in ("num_boost_round", "early_stopping_rounds")
    }
    rows = xgboost.DMatrix(numpy.array([[0.0], [1.0]]), label=numpy.array([0.0, 1.0]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            xgboost.train({**booster, "verbosity": 1, "validate_parameters": True}, rows, num_boost_round=1)
        except xgboost.core.XGBoostError:
            return set()
    told = " ".join(str(warning.message) for warning in caught)
    return {
        name
        for part in re.findall(r"Parameters: \{(.*?)\} are not used", told)
        for name in re.findall(r'"(.+?)"', part)
    }
