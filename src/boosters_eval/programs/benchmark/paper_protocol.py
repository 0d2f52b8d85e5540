"""How a paper splits and prepares its data and sets a library up, where that is not our way; part of a fit's spec."""

from __future__ import annotations

import hashlib
import re
import warnings
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Literal

from annotated_types import Ge, Gt, Lt
from pydantic import Field

from boosters_eval.core.errors import ConfigError, DatasetError, suggest
from boosters_eval.core.model import Model
from boosters_eval.datasets.config import SplitSpec
from boosters_eval.programs.benchmark.preprocessing import STEPS, StepRows
from boosters_eval.runners.base import TrainData, lazy_module
from boosters_eval.runners.rules import override

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from boosters_eval.datasets import Split, Table
    from boosters_eval.metrics.task import Task
    from boosters_eval.runners.base import FitRequest, Translation
else:
    np = lazy_module("numpy")

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
_PROTOCOL = 4  # keeps this use of a seed apart from its others
_THREADS = frozenset({"nthread", "num_threads", "thread_count", "n_threads"})


class Protocol(Model):
    """What a fit does in another way than ours. The fields that are left out keep our way."""

    preprocessing: tuple[str, ...] = ()  # steps in their order, by the names in STEPS
    sources: dict[str, str] = Field(default_factory=dict)  # digests of the files of steps that are not our own
    train: Annotated[int, Ge(1)] | None = None  # rows; None: all that are left
    validation: Annotated[int, Ge(1)] | None = None  # rows to stop early on; None: a fifth of the others if needed
    test: Annotated[int, Ge(1)] | Annotated[float, Gt(0), Lt(1)] | Literal["official"] = 0.2
    native: dict[str, Any] = Field(default_factory=dict)  # the library's own parameters, which win; None takes one away

    @property
    def encodes_categories(self) -> bool:
        """Whether no categorical column is left after the steps."""
        return any(STEPS[name].encodes for name in self.preprocessing)

    def unsupported(self, task: Task) -> str | None:
        """Why this cannot be done for a task, or None."""
        if task.value == "ranking" and (self.train or self.validation or isinstance(self.test, int)):
            return "sizes in rows would cut the queries of a ranking data set"
        reasons = ((name, STEPS[name].unsupported(task)) for name in self.preprocessing)
        return next((f"the step '{name}' {reason}" for name, reason in reasons if reason), None)


def override_natives(translation: Translation, protocol: Protocol | None) -> Translation:
    if protocol is None or not protocol.native:
        return translation
    return override(translation, protocol.native, "the protocol")


def canonicalize_native(library: str, native: dict[str, Any]) -> dict[str, Any]:
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


def list_thread_names(library: str) -> set[str]:
    """What a library calls its number of threads, which is each cell's own."""
    aliases = _ALIASES.get(library, {})
    return {alias for name in _THREADS for alias in (name, *aliases.get(name, ()))}


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
        known = _list_lightgbm_names()
        ignored = set(names) - known if known else set()
    elif library == "xgboost" and names:
        ignored = _find_ignored_by_xgboost(translation.native) & set(names)
    for name in sorted(ignored):
        raise ConfigError(f"The native parameter '{name}' has no effect in {library}.{suggest(name, known)}")


def _list_lightgbm_names() -> set[str]:
    """All names that the installed version tells; none where it tells nothing."""
    aliases = getattr(import_module("lightgbm").basic, "_ConfigAliases", None)
    tell = getattr(aliases, "_get_all_param_aliases", None)
    found: Mapping[str, Iterable[str]] = tell() if tell is not None else {}
    return {name for main, others in found.items() for name in (main, *others)}


def _find_ignored_by_xgboost(native: Mapping[str, Any]) -> set[str]:
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


@dataclass(frozen=True)
class ProtocolSplit:
    """The rows that a protocol learns from, stops early on, and is scored on."""

    train: NDArray[np.int64]
    stop: NDArray[np.int64]
    test: NDArray[np.int64]

    def as_split(self) -> Split:
        """For the record of a fit. The digest covers the rows to stop on too."""
        from boosters_eval.datasets import Split  # noqa: PLC0415 (loads numpy)

        content = hashlib.sha256(f"{len(self.train)} {len(self.stop)} {len(self.test)} ".encode())
        for rows in (self.train, self.stop, self.test):
            content.update(np.ascontiguousarray(rows, dtype="<i8").data)
        return Split(self.train, self.test, content.hexdigest())


@dataclass(frozen=True)
class Prepared:
    """Rows as a library or a saved model sees them, and the way back to the target's own units."""

    train: StepRows
    stop: StepRows
    test: StepRows
    restore: Callable[[NDArray[Any]], NDArray[Any]]


def split_by_protocol(table: Table, task: Task, protocol: Protocol, seed: int, *, stopping: bool) -> ProtocolSplit:
    """The split of a seed. A fraction keeps the shares of classes and whole queries; counted rows are drawn at random.

    The rows to stop on are those that the protocol counts, or a fifth of the others where a library is to stop early.
    """
    rest, test = _take_tested(table, task, protocol, seed)
    count = protocol.validation or (max(1, len(rest) // 5) if stopping else 0)
    wanted = (protocol.train or 1) + count
    if wanted > len(rest):
        raise DatasetError(
            f"The split needs {wanted} rows besides the {len(test)} that are tested on. Got {len(rest)} instead."
        )
    last = len(rest) if protocol.train is None else count + protocol.train
    return ProtocolSplit(train=rest[count:last], stop=rest[:count], test=test)


def _take_tested(table: Table, task: Task, protocol: Protocol, seed: int) -> tuple[Any, Any]:
    from boosters_eval.datasets.generated import Stream  # noqa: PLC0415 (loads numpy)

    if protocol.test == "official":
        if table.split is None:
            raise DatasetError("The data set has no official test rows: give their number, or a fraction.")
        official = np.asarray(table.split)
        rest = np.flatnonzero(official == 0)
        return rest[Stream(seed, _PROTOCOL).order(len(rest))], np.flatnonzero(official == 1)
    if isinstance(protocol.test, float):
        from boosters_eval.datasets import split_rows  # noqa: PLC0415 (loads numpy)

        split = split_rows(table, task, SplitSpec(validation_fraction=protocol.test), seed, None)
        return split.train, split.valid
    order = Stream(seed, _PROTOCOL).order(len(table.y))
    return order[protocol.test :], order[: protocol.test]


def prepare_rows(table: Table, split: ProtocolSplit, protocol: Protocol, seed: int) -> Prepared:
    train, stop, test = (_take_rows(table, rows) for rows in (split.train, split.stop, split.test))
    steps = [STEPS[name]() for name in protocol.preprocessing]
    for step in steps:
        train, test = step.fit(train, seed), step.apply(test)
        stop = step.apply(stop) if len(stop.y) else stop  # no step need know what to do with no rows

    def restore(predictions: NDArray[Any]) -> NDArray[Any]:
        for step in reversed(steps):
            predictions = step.restore(predictions)
        return predictions

    return Prepared(train, stop, test, restore)


def _take_rows(table: Table, rows: Any) -> StepRows:
    return StepRows(
        x=np.ascontiguousarray(table.x[rows]),
        y=np.asarray(table.y[rows]),
        categorical=table.categorical,
        names=table.feature_names,
    )


@dataclass(frozen=True)
class FitData:
    """What a cell trains on and predicts, as its library sees it."""

    split: Split
    request: FitRequest
    train: TrainData
    x_valid: NDArray[np.float32]
    undo: Callable[[NDArray[Any]], NDArray[Any]] = lambda predictions: predictions
    offset: NDArray[np.float64] | None = None  # of each target, taken from it in float64
    unit: NDArray[np.float64] | None = None  # of each target, after that

    def restore(self, predictions: NDArray[Any]) -> NDArray[Any]:
        """Predictions in the target's own units."""
        return self.move_back(self.undo(predictions))

    def move_back(self, found: NDArray[Any]) -> NDArray[Any]:
        if self.offset is None:
            return found
        return found.astype(np.float64) * (1.0 if self.unit is None else self.unit) + self.offset


def prepare_data(protocol: Protocol, table: Table, request: FitRequest, seed: int) -> FitData:
    stopping = request.training.early_stopping_rounds is not None
    split = split_by_protocol(table, request.task, protocol, seed, stopping=stopping)
    found = prepare_rows(table, split, protocol, seed)
    has_missing = any(bool(np.isnan(part.x).any()) for part in (found.train, found.stop, found.test))
    train = _train_data(found.train, table, split.train)
    return FitData(
        split=split.as_split(),
        request=replace(request, categorical=found.train.categorical, has_missing=has_missing),
        train=replace(train, valid=_train_data(found.stop, table, split.stop)) if stopping else train,
        x_valid=np.ascontiguousarray(found.test.x),
        undo=found.restore,
    )


def _train_data(part: StepRows, table: Table, rows: Any) -> TrainData:
    return TrainData(
        x=np.ascontiguousarray(part.x),
        y=part.y,
        weights=None if table.weights is None else np.asarray(table.weights[rows]),
        groups=None if table.groups is None else np.asarray(table.groups[rows]),
        feature_names=part.names,
    )
