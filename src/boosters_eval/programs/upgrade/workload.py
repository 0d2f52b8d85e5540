"""The workload `upgrade`: train as `fit` does, with one table's parameters in both builds, and save the model."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import warnings
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from boosters_eval.core.errors import UnsupportedError
from boosters_eval.core.text import clean
from boosters_eval.engine.artifacts import save_array
from boosters_eval.engine.cell import CellOutcome, Outcome, Spec
from boosters_eval.metrics.task import Task
from boosters_eval.programs.benchmark.fit import Fit, fit_cell
from boosters_eval.programs.benchmark.spec import FitSpec
from boosters_eval.programs.paper.evaluate import open_model
from boosters_eval.runners import rules
from boosters_eval.runners.base import FitRequest, Translation
from boosters_eval.runners.catboost_runner import save_booster
from boosters_eval.runners.measure import few_rows, fit_once, small_request
from boosters_eval.runners.parameters import BoosterType, TrainingConfig
from boosters_eval.runners.result import BenchmarkResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    from boosters_eval.engine.cell import Cell, Target
    from boosters_eval.programs.benchmark.fit import Fitted
    from boosters_eval.runners.base import Runner

_SUMS_TO_ONE = 1e-3  # probabilities of half precision do
_MOST_LINES, _LONGEST = 10, 300  # of what a library says
# What our tables set for the sake of other libraries: a project leaves it to the version.
_LEFT_FREE = frozenset(
    {
        *("boost_from_average", "boosting_type", "feature_pre_filter", "leaf_estimation_iterations"),
        *("leaf_estimation_method", "nan_mode", "random_strength", "score_function", "sparsity_threshold"),
        *("lambdarank_num_pair_per_sample", "lambdarank_pair_method", "tree_method"),
    }
)
_NEEDED = frozenset({"tree_method"})  # by XGBoost before 2.0, for categories and for leaf-wise growth
_COMPLAINT = re.compile(r"warn|deprecat|ignor|unknown|unrecogni|not used|renamed|removed", re.IGNORECASE)
_OF_FEW_ROWS = re.compile(r"No further splits|no meaningful features|Stopped training|Only contains one class")
_STAMP = re.compile(r"\[\d+:\d+:\d+\]\s*(WARNING:\s*)?|\S*/\S+\.(cc|cpp|cu|cuh|h|hpp|py):\d+:\s*")


class UpgradeSpec(FitSpec):
    """A fit whose parameters are those of one version's table, in whichever build it runs."""

    workload: Literal["upgrade"] = "upgrade"  # type: ignore[assignment]  # everything else is as in a fit
    edition: str  # the version whose table translates
    asked: tuple[str, ...] | None = None  # the canonical parameters that are passed; None: all of them
    passed: dict[str, Any] = Field(default_factory=dict)  # native parameters, which win; None takes one away
    only_native: bool = False  # whether nothing else is passed but the task, the seed and the threads
    saves: int | None = None  # the seed whose model is saved


class UpgradeResult(BenchmarkResult):
    """What a fit gave, its saved model, and what the library said of its parameters."""

    models: tuple[str, ...] = ()  # digests of arrays of bytes: a library may have a model for each quantile
    unsaved: str = ""  # why there are none
    said: tuple[str, ...] = ()
    effective: dict[str, str] = Field(default_factory=dict)  # the parameters that the saved model was trained with

    @property
    def digests(self) -> tuple[str, ...]:
        return self.models


class Upgrade(Fit):
    """The workload whose targets are two builds of one library."""

    name: ClassVar[str] = "upgrade"
    spec_type: ClassVar[type[Spec]] = UpgradeSpec
    outcome_type: ClassVar[type[Outcome]] = UpgradeResult  # type: ignore[assignment]

    @classmethod
    def imports(cls, target: Target) -> tuple[str, ...]:
        return (__name__, *super().imports(target))

    @classmethod
    def run(
        cls, cell: Cell, loaded: type[Runner], inputs: Mapping[str, str], phase: Callable[[str], None]
    ) -> UpgradeResult:
        spec = cell.spec
        if not isinstance(spec, UpgradeSpec):
            raise TypeError(f"{cell} is not a cell of the workload 'upgrade'.")
        runner = as_asked(loaded, spec)
        fitted = fit_cell(cell, runner, inputs, phase)
        phase("probe")
        about: dict[str, Any] = {}
        if cell.repeat.seed == spec.saves:
            about["models"], about["unsaved"] = _save(runner, fitted, Path(inputs["artifacts"]))
            about["said"], about["effective"] = _listen(runner, fitted), _tell_effective(runner, fitted)
        phase("done")
        return UpgradeResult(**fitted.fields, **about)


def as_asked(runner: type[Runner], spec: UpgradeSpec) -> type[Runner]:
    """The adapter, which passes what the spec says; the table is that of one version for both builds."""

    def translate(_: type[Runner], request: FitRequest) -> Translation:
        return select_native(runner, request, spec)

    def predict(_: type[Runner], translation: Translation, model: Any, x: NDArray[np.float32]) -> NDArray[Any]:
        return _share(runner.predict(translation, model, x), translation.request.task)

    own = {
        "__doc__": runner.__doc__,
        "__module__": runner.__module__,
        "__qualname__": runner.__qualname__,
        "translate": classmethod(translate),
        "predict": classmethod(predict),
    }
    return type(runner.__name__, (runner,), own)


def _share(said: NDArray[Any], task: Task) -> NDArray[Any]:
    """Scores of one class against the rest are no distribution, which metrics ask for, until they are shares."""
    if task is not Task.MULTICLASS or said.ndim != 2 or not ((said >= 0) & (said <= 1)).all():
        return said
    sums = said.sum(axis=1, keepdims=True)
    return said if (np.abs(sums - 1) < _SUMS_TO_ONE).all() or not sums.all() else said / sums


def select_native(runner: type[Runner], request: FitRequest, spec: UpgradeSpec) -> Translation:
    """What a fit passes: the task, what was asked for, and what keeps the library quiet and repeatable."""
    by_table: type[Runner] = type(runner.__name__, (runner,), {"version": classmethod(lambda _: spec.edition)})
    found = by_table.translate(request)
    native = found.native
    if spec.asked is not None:
        own = {name for name in TrainingConfig.model_fields if name not in (*spec.asked, *rules.ALWAYS)}
        left_free = _LEFT_FREE - (_NEEDED if request.categorical or "n_leaves" in spec.asked else frozenset())
        free = (name for name in native if found.origins.get(name) not in own and name not in left_free)
        native = {name: native[name] for name in free}
    if spec.only_native:
        kept = (*rules.ALWAYS, "n_estimators", "early_stopping_rounds", rules.SILENT)
        native = {name: value for name, value in native.items() if found.origins.get(name, "objective") in kept}
    merged = {**native, **spec.passed}
    return replace(
        found,
        native={name: value for name, value in merged.items() if value is not None},
        marks=(),
        origins={**found.origins, **dict.fromkeys(spec.passed, "what was asked for")},
    )


def _save(runner: type[Runner], fitted: Fitted, folder: Path) -> tuple[tuple[str, ...], str]:
    """The model as the library writes it to a file, or why there is none."""
    library, model = runner.library(), fitted.done.model
    if library not in SAVED:
        return (), "its models are saved by pickle alone"
    try:
        parts = SAVED[library][1](model)
    except Exception as error:  # noqa: BLE001 (a fit is good without)
        return (), f"it cannot be saved: {clean(str(error))[:_LONGEST]}"
    return tuple(save_array(folder, np.frombuffer(part, dtype=np.uint8)) for part in parts), ""


# By library: the endings of its files, of which the first is that of what is saved here, and what writes them.
SAVED: dict[str, tuple[tuple[str, ...], Callable[[Any], list[bytes]]]] = {
    "xgboost": ((".json", ".ubj"), lambda model: [bytes(model.save_raw("json"))]),
    "lightgbm": ((".txt", ".lgb"), lambda model: [booster.model_to_string().encode() for booster in model]),
    "catboost": ((".cbm", ".json"), lambda model: [save_booster(booster, "cbm") for booster in model]),
    "boosters": ((".bstr", ".json"), lambda model: [model[0].to_bytes()]),
}


def _tell_effective(runner: type[Runner], fitted: Fitted) -> dict[str, str]:
    """The parameters that the model says it was trained with, as JSON has them."""
    found: dict[str, Any] = {}
    with suppress(Exception):  # a fit is good without
        found = runner.effective(fitted.done.model)
    texts = {name: json.dumps(value, default=str) for name, value in found.items()}
    return {name: text for name, text in texts.items() if len(text) <= _LONGEST}


def _listen(runner: type[Runner], fitted: Fitted) -> tuple[str, ...]:
    """What the library complains of when it is not silenced, on a few rows."""
    request, train = fitted.translation.request, fitted.data.train
    found: list[str] = []
    with suppress(Exception), _caught(found):
        translation = runner.translate(small_request(request, stopping=train.valid is not None))
        few = few_rows(train, request.task)
        fit_once(runner, replace(translation, native=_unsilence(translation)), few, few.x)
    heard = (line for line in found if _COMPLAINT.search(line) and not _OF_FEW_ROWS.search(line))
    lines = (unstamp(line)[:_LONGEST] for line in heard)
    return tuple(dict.fromkeys(filter(None, lines)))[:_MOST_LINES]


def unstamp(line: str) -> str:
    """What a library says, without the time and the place in its code."""
    return " ".join(_STAMP.sub("", clean(line)).split())


def _unsilence(translation: Translation) -> dict[str, Any]:
    """The parameters without what silences: a level that was set once stays set in a process until another is."""
    spoken = {name: v for name, v in translation.native.items() if translation.origins.get(name) != rules.SILENT}
    return spoken | ({"verbosity": 1} if isinstance(translation.native.get("verbosity"), int) else {})


@contextmanager
def _caught(lines: list[str]) -> Iterator[None]:
    """Gather what is printed, by Python or below it, and the warnings of Python."""
    sys.stdout.flush()
    sys.stderr.flush()
    with tempfile.TemporaryFile() as file, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        kept = [os.dup(number) for number in (1, 2)]
        try:
            for number in (1, 2):
                os.dup2(file.fileno(), number)
            yield
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for number, copy in zip((1, 2), kept, strict=True):
                os.dup2(copy, number)
                os.close(copy)
            file.seek(0)
            lines += file.read(2**20).decode(errors="replace").splitlines()
            lines += [f"warning: {' '.join(str(each.message).split())}" for each in warned]


class ReloadSpec(Spec):
    """Saved models, and the rows that they are asked about; both are inputs."""

    workload: Literal["reload"] = "reload"
    endings: tuple[str, ...]
    models: tuple[str, ...]  # digests
    rows: str  # digest
    task: Task = Task.REGRESSION
    n_classes: int | None = None
    quantiles: tuple[float, ...] = ()
    categorical: tuple[int, ...] = ()
    booster_type: BoosterType = BoosterType.GBDT


class ReloadOutcome(CellOutcome):
    """What a loaded model says of the rows."""

    predictions: str  # digest

    @property
    def digests(self) -> tuple[str, ...]:
        return (self.predictions,)


class Reload(Fit):
    """The workload that loads saved models in a build of their library, and asks them about rows."""

    name: ClassVar[str] = "reload"
    spec_type: ClassVar[type[Spec]] = ReloadSpec
    outcome_type: ClassVar[type[Outcome]] = ReloadOutcome  # type: ignore[assignment]

    @classmethod
    def imports(cls, target: Target) -> tuple[str, ...]:
        return (__name__, *super().imports(target))

    @classmethod
    def run(  # type: ignore[override]
        cls, cell: Cell, loaded: type[Runner], inputs: Mapping[str, str], phase: Callable[[str], None]
    ) -> ReloadOutcome:
        spec = cell.spec
        if not isinstance(spec, ReloadSpec):
            raise TypeError(f"{cell} is not a cell of the workload 'reload'.")
        phase("load")
        arrays = Path(inputs["artifacts"])
        parts = [_open(loaded.library(), np.load(inputs[f"model{at}"]), end) for at, end in enumerate(spec.endings)]
        # A library that has a model for each quantile opens each as a list of one.
        model = [one for part in parts for one in part] if isinstance(parts[0], list) else parts[0]
        phase("predict")
        request = FitRequest(
            task=spec.task,
            training=TrainingConfig(),
            n_classes=spec.n_classes,
            quantiles=spec.quantiles,
            categorical=_find_categorical(loaded, model, spec),
            booster_type=spec.booster_type,
        )
        native = loaded.effective(model)  # a linear model of the user predicts in another way
        said = loaded.predict(Translation(request, native=native), model, np.load(inputs["rows"]))
        predictions = np.asarray(said)
        if predictions.dtype.kind not in "fiu" or not len(predictions):
            raise UnsupportedError("The model predicts no numbers.")
        phase("done")
        return ReloadOutcome.of(cell, predictions=save_array(arrays, predictions))


def _find_categorical(runner: type[Runner], model: Any, spec: ReloadSpec) -> tuple[int, ...]:
    """The columns that a model takes for categories; CatBoost refuses rows that have others."""
    return tuple(model[0].get_cat_feature_indices()) if runner.library() == "catboost" else spec.categorical


def _open(library: str, content: Any, ending: str) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"model{ending}")
        path.write_bytes(content.tobytes())
        return open_model(library, path)
