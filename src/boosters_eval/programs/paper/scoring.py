"""How a saved model is scored: on the rows and by the metrics that a fit would be scored on."""

from __future__ import annotations

import math
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from boosters_eval.core.errors import BoostersEvalError, MetricInputError
from boosters_eval.datasets import open_stored
from boosters_eval.metrics import compute_metrics
from boosters_eval.metrics.task import Task
from boosters_eval.programs.benchmark.paper_protocol import (
    Prepared,
    Protocol,
    ProtocolSplit,
    prepare_rows,
    split_by_protocol,
)
from boosters_eval.runners import RUNNERS
from boosters_eval.runners.base import FitRequest, Translation
from boosters_eval.runners.measure import check_predictions
from boosters_eval.runners.parameters import TrainingConfig

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from boosters_eval.datasets import Table
    from boosters_eval.programs.paper.evaluate import Scoring


class ModelFileError(BoostersEvalError):
    """A saved model that cannot be opened, or does not predict what its task needs."""


def open_model(form: str, path: Path) -> Any:
    """The model in a file. A pickle is opened only where the plan says so, because the user allows it."""
    try:
        return _OPENERS[form](path)
    except Exception as error:
        raise ModelFileError(f"{path.name} cannot be opened as a model of {form}: {error}") from error


def predict(form: str, model: Any, request: FitRequest, x: NDArray[np.float32]) -> NDArray[Any]:
    """Values, scores or probabilities of class 1; (n, k) for classes and quantiles."""
    if form in RUNNERS:
        return RUNNERS[form].predict(Translation(request, native={}), model, x)
    outputs = _run_onnx(model, x) if form == "onnx" else _call_estimator(model, request, x)
    array = np.asarray(outputs)
    return array[:, 1] if request.task is Task.BINARY and array.ndim == 2 and array.shape[1] == 2 else array


def _open_catboost(path: Path) -> Any:
    form = "json" if path.suffix.lower() == ".json" else "cbm"
    return [import_module("catboost").CatBoost().load_model(str(path), format=form)]


def _open_boosters(path: Path) -> Any:
    """Its binary form tells what model it holds; its JSON form is tried as trees, then as a linear model."""
    boosters = import_module("boosters")
    content = path.read_bytes()
    if not content.lstrip().startswith(b"{"):
        return boosters.Model.load_from_bytes(content), {}
    try:
        return boosters.GBDTModel.from_json_bytes(content), {}
    except Exception:  # noqa: BLE001 (its errors have no common type)
        return boosters.GBLinearModel.from_json_bytes(content), {}


def _open_onnx(path: Path) -> Any:
    runtime = import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _open_pickle(path: Path) -> Any:
    if path.suffix.lower() == ".joblib":
        return import_module("joblib").load(path)
    import pickle  # noqa: PLC0415 (only where the user allows it)

    with path.open("rb") as file:
        return pickle.load(file)  # noqa: S301 (only where the user allows it)


_OPENERS: dict[str, Callable[[Path], Any]] = {
    "xgboost": lambda path: import_module("xgboost").Booster(model_file=str(path)),
    "lightgbm": lambda path: [import_module("lightgbm").Booster(model_file=str(path))],
    "catboost": _open_catboost,
    "boosters": _open_boosters,
    "onnx": _open_onnx,
    "pickle": _open_pickle,
}


def _run_onnx(session: Any, x: NDArray[np.float32]) -> Any:
    """The last output: converters put the classes first and their probabilities last, some as a map per row."""
    found = session.run(None, {session.get_inputs()[0].name: x})[-1]
    if isinstance(found, list) and found and isinstance(found[0], dict):
        return [[row[label] for label in sorted(row)] for row in found]
    return found


def _call_estimator(model: Any, request: FitRequest, x: NDArray[np.float32]) -> Any:
    classes = request.task.is_classification
    method = "predict_proba" if classes else "predict"
    if not hasattr(model, method):
        what = "model of classes needs 'predict_proba'" if classes else "model needs the method 'predict'"
        raise ModelFileError(f"A {what}, which {type(model).__name__} has not.")
    return getattr(model, method)(x)


def score_model(
    scoring: Scoring, form: str, path: Path, data: Path, seed: int, n_threads: int, phase: Callable[[str], None]
) -> tuple[dict[str, float], int]:
    """The metrics, and on how many rows."""
    phase("load")
    table = open_stored(data)
    rows, prepared = _prepare(table, scoring, seed)
    request = FitRequest(
        task=scoring.task,
        training=TrainingConfig(),
        n_classes=scoring.n_classes,
        quantiles=scoring.quantiles,
        categorical=prepared.test.categorical,
        max_categories=scoring.max_categories,
        n_threads=n_threads,
        seed=seed,
    )
    model = open_model(form, path)
    phase("predict")
    predictions = check_predictions(predict(form, model, request, prepared.test.x), request, len(rows))
    phase("score")

    def part(column: Any) -> Any:
        return None if column is None else np.asarray(column[rows])

    metrics = compute_metrics(
        scoring.task,
        part(table.y),
        prepared.restore(predictions),
        scoring.n_classes,
        part(table.weights),
        groups=part(table.groups),
        sensitive=part(table.sensitive),
        quantiles=scoring.quantiles,
        metrics=scoring.metrics,
    )
    for name, value in metrics.items():
        if not math.isfinite(value):
            raise MetricInputError(f"The metric '{name}' must be finite. Got {value} instead.")
    return metrics, len(rows)


def _prepare(table: Table, scoring: Scoring, seed: int) -> tuple[Any, Prepared]:
    """The rows of the protocol's test, or all of them as they are."""
    if scoring.protocol is None:
        every = np.arange(len(table.y))
        return every, prepare_rows(table, ProtocolSplit(every[:0], every[:0], every), Protocol(), seed)
    split = split_by_protocol(table, scoring.task, scoring.protocol, seed, stopping=False)
    return split.test, prepare_rows(table, split, scoring.protocol, seed)
