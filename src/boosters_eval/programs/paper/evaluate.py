"""The workload `evaluate`: a saved model, a function, a program or a language model returns metrics."""

from __future__ import annotations

import inspect
import json
import math
import numbers
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from boosters_eval.core.distributions import installed_version
from boosters_eval.core.errors import BoostersEvalError
from boosters_eval.engine.cell import Build, Cell, CellOutcome, Lane, Spec, Target
from boosters_eval.engine.workload import Workload
from boosters_eval.metrics.task import Task
from boosters_eval.programs.paper.rows import PaperRows, Scoring, ask, open_rows
from boosters_eval.programs.paper.specification import (
    BoundRun,
    CallableRun,
    CommandRun,
    EstimatorRun,
    EvaluatorRun,
    ModelRun,
    PaperDataset,
)
from boosters_eval.runners import RUNNERS
from boosters_eval.runners.base import FitRequest, Translation, lazy_module
from boosters_eval.runners.installed import target_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

else:
    np = lazy_module("numpy")


# What carries a target out, besides Python; those that are not listed are evaluators of language models.
_PACKAGES: dict[str, tuple[str, ...]] = {
    "callable": (),
    "command": (),
    "estimator": (),
    "onnx": ("onnxruntime",),
    "pickle": ("scikit-learn",),
}
_TAIL = 2**20  # bytes at the end of what a program prints, in which its metrics are looked for


class EvaluationError(BoostersEvalError):
    """What was to return metrics returned something else, or nothing."""


class EvaluateSpec(Spec):
    """A target of a paper that is not trained here. Where its files are is not part of it: only their content is."""

    workload: Literal["evaluate"] = "evaluate"
    table: str
    row: str
    dataset: PaperDataset
    metrics: tuple[str, ...]  # as the paper names them
    binding: BoundRun
    model: str | None = None  # the name of its file, or of a language model
    format: str | None = None  # of a saved model; `estimator` for one that is fitted here
    digests: dict[str, str] = Field(default_factory=dict)  # of the model's file and the function's
    scoring: Scoring | None = None  # None: what runs it has data of its own


class EvaluateOutcome(CellOutcome):
    metrics: dict[str, float]
    seconds: float
    n_test: int | None = None

    def summary(self) -> str:
        return ", ".join(f"{name} {value:.6g}" for name, value in self.metrics.items())


class Evaluate(Workload):
    """The workload whose targets are the ways to get metrics without training: `callable`, `command`, a format, ..."""

    name: ClassVar[str] = "evaluate"
    spec_type: ClassVar[type[Spec]] = EvaluateSpec
    outcome_type: ClassVar[type[EvaluateOutcome]] = EvaluateOutcome

    @classmethod
    def target(cls, name: str) -> Target:
        """The library that opens the model, or the versions of what runs it."""
        if name in RUNNERS:
            return target_of(RUNNERS[name])
        packages = _PACKAGES.get(name, ("torch", "transformers", "datasets"))
        found = [f"{name} {version}" for name in packages if (version := installed_version(name))]
        text = ", ".join([*found, f"Python {platform.python_version()}"])
        return Target(name=name, build=Build(version=text, digest=text))

    @classmethod
    def imports(cls, target: Target) -> tuple[str, ...]:
        """This module; a saved model needs its library's dependencies too."""
        return (__name__, *(RUNNERS[target.name].dependencies if target.name in RUNNERS else ()))

    @classmethod
    def bound_here(cls, cell: Cell, inputs: Mapping[str, str]) -> str | None:  # noqa: ARG003 (all of a target are alike)
        """A function, a program or an evaluator runs in the folder of the specification, whatever it finds there."""
        return f"it runs in the folder {inputs['root']} of this machine" if "root" in inputs else None

    @classmethod
    def load(cls, lane: Lane, address: Mapping[str, Any]) -> None:  # noqa: ARG003 (a target is known by its name)
        """The library of a saved model. What the user named is imported by the cell alone."""
        if lane.target.name in RUNNERS:
            RUNNERS[lane.target.name].load()

    @classmethod
    def run(cls, cell: Cell, loaded: None, inputs: Mapping[str, str], phase: Callable[[str], None]) -> EvaluateOutcome:  # noqa: ARG003
        spec = cell.spec
        if not isinstance(spec, EvaluateSpec):
            raise TypeError(f"{cell} is not a cell of the workload 'evaluate'.")
        start = time.perf_counter()
        rows = None
        match spec.binding:
            case CallableRun() as run:
                ask(spec.dataset.name, cell.repeat.seed, spec.scoring, inputs)
                found = _call(run, _describe(spec, cell, inputs), Path(inputs["root"]), phase)
            case CommandRun() as run:
                phase("run")
                found = _execute(run, _describe(spec, cell, inputs), inputs["root"])
            case ModelRun() | EstimatorRun():
                found, rows = _score(spec, cell, inputs, phase)
            case EvaluatorRun() as run:
                phase("evaluate")
                from boosters_eval.programs.paper.lm import evaluate  # noqa: PLC0415 (only for this binding)

                found = evaluate(
                    run.evaluator,
                    inputs["model"],
                    spec.dataset,
                    run.arguments,
                    cell.repeat.seed,
                    root=Path(inputs["root"]),
                    allow_pickle="allow_pickle" in inputs,
                )
            case _:
                raise EvaluationError(f"The workload 'evaluate' cannot run {type(spec.binding).__name__}.")
        metrics = check_metrics(found, spec.metrics)
        phase("done")
        return EvaluateOutcome.of(cell, metrics=metrics, seconds=time.perf_counter() - start, n_test=rows)


def check_metrics(found: Any, wanted: tuple[str, ...]) -> dict[str, float]:
    """Finite numbers by name. A number alone is the paper's one metric."""
    if isinstance(found, numbers.Real) and not isinstance(found, bool) and len(wanted) == 1:
        found = {wanted[0]: found}
    if not isinstance(found, Mapping) or not found:
        raise EvaluationError(
            f"Metrics must be numbers by name, such as {{'accuracy': 0.9}}. Got {found!r:.200} instead."
        )
    metrics: dict[str, float] = {}
    for name, value in found.items():
        item = value.item() if hasattr(value, "item") and getattr(value, "size", 1) == 1 else value
        if not isinstance(name, str) or isinstance(item, bool) or not isinstance(item, numbers.Real):
            raise EvaluationError(f"The metric {name!r:.100} must be a number. Got {value!r:.100} instead.")
        if not math.isfinite(item):
            raise EvaluationError(f"The metric '{name}' must be finite. Got {item} instead.")
        metrics[name] = float(item)
    return metrics


def _describe(spec: EvaluateSpec, cell: Cell, inputs: Mapping[str, str]) -> dict[str, Any]:
    return {
        "table": spec.table,
        "row": spec.row,
        "dataset": spec.dataset.name,
        "split": spec.dataset.split,
        "metrics": list(spec.metrics),
        "seed": cell.repeat.seed,
        "model": inputs.get("model"),
    }


def _call(run: CallableRun, request: dict[str, Any], root: Path, phase: Callable[[str], None]) -> Any:
    """The user's function, with the arguments of the specification, and whatever of the request it has a name for."""
    phase("import")
    function = _import(run.callable, root)
    phase("call")
    return function(**_choose(function, request) | run.arguments)


def _import(address: str, root: Path) -> Any:
    """The function of `module:function`, from the folder of the specification or from what is installed."""
    sys.path.insert(0, str(root))
    os.chdir(root)
    module, _, name = address.partition(":")
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise EvaluationError(f"The module '{module}' has no function '{name}'.")
    return found


def _choose(function: Any, offered: Mapping[str, Any]) -> dict[str, Any]:
    """What is offered that the function has a parameter for."""
    parameters = inspect.signature(function).parameters.values()
    every = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    named = {parameter.name for parameter in parameters if parameter.kind is not parameter.POSITIONAL_ONLY}
    return {key: value for key, value in offered.items() if every or key in named}


def _execute(run: CommandRun, request: dict[str, Any], root: str) -> Any:
    """The JSON object on the last line that a program prints. There is no shell: each word is one argument."""
    words = list(run.command)
    for name in ("dataset", "seed", "model"):
        value = "" if request[name] is None else str(request[name])
        words = [word.replace(f"{{{name}}}", value) for word in words]
    with tempfile.TemporaryFile() as printed:
        try:
            done = subprocess.run(  # noqa: S603 (the user named it, and no shell reads it)
                words, input=json.dumps(request).encode(), stdout=printed, cwd=root, check=False
            )
        except OSError as error:
            raise EvaluationError(f"The program '{words[0]}' cannot be started: {error.strerror}.") from None
        size = printed.seek(0, os.SEEK_END)
        printed.seek(max(0, size - _TAIL))
        lines = printed.read().decode(errors="replace").split("\n")
    if done.returncode:
        raise EvaluationError(f"The program '{words[0]}' ended with exit code {done.returncode}.")
    last = next((line for line in reversed(lines) if line.strip()), None)
    if last is None:
        raise EvaluationError(f"The program '{words[0]}' must print a JSON object of metrics. It printed nothing.")
    try:
        found = json.loads(last, parse_constant=_refuse, object_pairs_hook=_check_distinct)
    except (ValueError, RecursionError) as error:
        raise EvaluationError(
            f"The last line that '{words[0]}' prints must be a JSON object of metrics. Got '{last:.200}': {error}."
        ) from None
    nested = isinstance(found, dict) and isinstance(found.get("metrics"), dict)
    return found["metrics"] if nested else found


def _check_distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose names are all different; of two values of a metric neither is more right."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is there twice")
    return found


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no number of JSON")


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


def _score(
    spec: EvaluateSpec, cell: Cell, inputs: Mapping[str, str], phase: Callable[[str], None]
) -> tuple[dict[str, float], int]:
    """The metrics of a saved model or of an estimator, by the code that scores every fit, and on how many rows."""
    if spec.scoring is None or spec.format is None:
        raise EvaluationError("It needs data to be scored on.")
    phase("load")
    rows = open_rows(spec.scoring, inputs, cell.repeat.seed)
    if isinstance(spec.binding, EstimatorRun):
        model = _fit(spec.binding, rows, Path(inputs["root"]), phase)
    else:
        model = open_model(spec.format, Path(inputs["model"]))
    phase("predict")
    predictions = predict(spec.format, model, rows.make_request(spec.n_threads), rows.x_test)
    phase("score")
    return rows.score(predictions), len(rows.test)


def _fit(run: EstimatorRun, rows: PaperRows, root: Path, phase: Callable[[str], None]) -> Any:
    """What the user's factory makes, after it has learned from the training rows."""
    phase("import")
    factory = _import(run.estimator, root)
    estimator = factory(**_choose(factory, {"seed": rows.seed}), **run.arguments)
    if not callable(getattr(estimator, "fit", None)):
        raise EvaluationError(f"What '{run.estimator}' returns must have the method 'fit', which a "
                              f"{type(estimator).__name__} has not.")  # fmt: skip
    phase("fit")
    estimator.fit(rows.x_train, rows.y_train)
    return estimator
