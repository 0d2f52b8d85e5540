"""A conformance suite for runners, built in or a third party's.

    from boosters_eval.runners.conformance import check_runner

    def test_my_runner():
        check_runner(MyRunner)

Every combination of booster and task is tried, with sampling, weights, missing values, categories and early
stopping: the runner must either refuse it with a reason, or do it right.

Importances and attributions are optional. Of those that are offered, wrong shapes, values that are not finite, and two
answers to one question break the contract. Attributions that do not add up are the library's fault, not the runner's:
they are reported, in `unsound`.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import BoostersEvalError, ConfigError
from boosters_eval.metrics.task import Task
from boosters_eval.runners.base import FitRequest, Runner, TrainData, Translation, lazy_module
from boosters_eval.runners.parameters import BoosterType, GrowthStrategy, TrainingConfig

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from boosters_eval.runners import explanations
else:
    np = lazy_module("numpy")
    explanations = lazy_module("boosters_eval.runners.explanations")

_ROWS, _VALID, _TEST = 240, 80, 120
_CLASSES, _QUANTILES = 3, (0.2, 0.8)
_TRAINING = TrainingConfig(n_estimators=8, learning_rate=0.3, max_depth=3, n_leaves=6)

# What is asked for besides the plain case: changes of the training parameters, and of the request.
_VARIANTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": ({}, {}),
    "leafwise": ({"growth_strategy": GrowthStrategy.LEAFWISE}, {}),
    "sampled": ({"subsample": 0.6, "colsample": 0.6}, {}),
    "stopping": ({"early_stopping_rounds": 2}, {}),
    "weighted": ({}, {"weighted": True}),
    "missing": ({}, {"has_missing": True}),
    "categorical": ({}, {"categorical": (0,)}),
    "two threads": ({}, {"n_threads": 2}),
}

# Where chance could come in: these must be repeatable in a fresh process.
_REPEATED = ("plain", "sampled", "categorical", "two threads")


class ConformanceError(BoostersEvalError, AssertionError):
    """A runner that breaks the contract, with everything that was found."""


@dataclass(frozen=True)
class Conformance:
    """What was tried, and what the runner refused and why."""

    runner: str
    passed: tuple[str, ...]
    refused: dict[str, str]
    unsound: dict[str, str] = field(default_factory=dict)  # by case: where attributions break their own definition


@dataclass(frozen=True)
class ConformanceCase:
    """One request and the rows for it."""

    name: str
    request: FitRequest
    train: TrainData
    x_test: NDArray[np.float32]
    y_test: NDArray[np.float64]


def check_runner(runner: type[Runner]) -> Conformance:
    """Raise ConformanceError unless a runner keeps the whole contract."""
    if not isinstance(runner, type) or not hasattr(runner, "missing"):
        raise ConfigError(f"The 'runner' parameter must be a subclass of Runner. Got {runner!r} instead.")
    if (reason := runner.missing()) is not None:
        raise ConformanceError(f"{runner.name} cannot be checked: {reason}.")
    runner.load()  # what an import changes is not the runner's doing
    explanations.load_explaining(runner)
    unsound: dict[str, str] = {}
    refused: dict[str, str] = {}
    passed: list[str] = []
    faults = [f"class: {fault}" for fault in (*_check_class(runner), *_check_import(runner))]
    for case in _cases():
        try:
            reason = runner.unsupported(case.request)
        except Exception as error:  # noqa: BLE001 (a broken runner may raise anything)
            faults.append(f"{case.name}: unsupported() raised {error!r}")
            continue
        if reason is not None:
            refused[case.name] = reason
            if not isinstance(reason, str) or not reason.strip() or "\n" in reason:
                faults.append(f"{case.name}: refused without a reason in one line")
            continue
        if case.request.n_threads > 1:
            continue  # tried in the fresh process, where waiting threads sleep
        found = _check_case(runner, case, unsound)
        faults += [f"{case.name}: {fault}" for fault in found]
        passed += [] if found else [case.name]
    if not passed and not faults:
        faults.append("nothing at all is supported")
    faults += [] if faults else _check_fresh_process(runner)
    if faults:
        listed = "\n  ".join(faults)
        raise ConformanceError(f"{runner.name} breaks the runner contract in {len(faults)} ways:\n  {listed}")
    return Conformance(runner.name, tuple(passed), refused, unsound)


def _check_class(runner: type[Runner]) -> Iterator[str]:
    for attribute, kind in (("name", str), ("module", str), ("distributions", tuple), ("install", str)):
        if not isinstance(getattr(runner, attribute, None), kind):
            yield f"'{attribute}' must be a {kind.__name__}"


def _check_import(runner: type[Runner]) -> Iterator[str]:
    code = f"import sys, {runner.__module__}; sys.exit('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], env=_environment("0"), capture_output=True, check=False)  # noqa: S603
    if done.returncode:
        yield f"the module '{runner.__module__}' cannot be imported without numpy, or not at all"


def _check_case(runner: type[Runner], case: ConformanceCase, unsound: dict[str, str]) -> list[str]:
    faults: list[str] = []
    with tempfile.TemporaryDirectory() as folder, _watched(folder, faults):
        try:
            faults += _check_behavior(runner, case, unsound)
        except Exception as error:  # noqa: BLE001 (what was not refused must not fail)
            faults.append(f"not refused, but raised {type(error).__name__}: {str(error)[:200]}")
    return faults


def _check_behavior(runner: type[Runner], case: ConformanceCase, unsound: dict[str, str]) -> Iterator[str]:
    translation = runner.translate(case.request)
    yield from _check_translation(runner, case, translation)
    model = runner.fit(translation, runner.build(translation, case.train))
    predictions = np.asarray(runner.predict(translation, model, case.x_test))
    wrong = _check_predictions(case, predictions)
    if wrong is not None:
        yield wrong
        return
    if not np.array_equal(predictions[:7], runner.predict(translation, model, case.x_test[:7].copy())):
        yield "the prediction of a row depends on the other rows"
    other = replace(case.train, y=case.train.y[::-1].copy())
    second = runner.fit(translation, runner.build(translation, other))
    if not np.array_equal(predictions, runner.predict(translation, model, case.x_test)):
        yield "a model changes when another one is trained"
    if np.array_equal(predictions, runner.predict(translation, second, case.x_test)):
        yield "the labels have no effect"
    if case.request.weighted and not _weights_matter(runner, case, predictions):
        yield "weights have no effect"
    yield from _check_facts(runner, case, model)
    yield from explanations.check_explanations(runner, translation, model, case, unsound)


def _check_translation(runner: type[Runner], case: ConformanceCase, translation: Translation) -> Iterator[str]:
    if translation.request != case.request:
        yield "the translation must carry the request it is for"
    try:
        first, second = (
            json.dumps(given.native, allow_nan=False) for given in (translation, runner.translate(case.request))
        )
    except (TypeError, ValueError):
        yield "native parameters must be plain JSON values"
    else:
        if first != second:
            yield "translate() gives two answers to one request"
    marked = {mark.parameter for mark in translation.marks}
    yield from (f"'{name}' is asked for and has no mark" for name in sorted(_asked(case.request) - marked))
    for mark in translation.marks:
        if mark.kind != "exact" and not mark.reason:
            yield f"'{mark.parameter}' is {mark.kind} without a reason"


def _asked(request: FitRequest) -> set[str]:
    """What a case changes: a runner must say how faithfully it honors that, even if not at all."""
    changed = {
        name for name in TrainingConfig.model_fields if getattr(request.training, name) != getattr(_TRAINING, name)
    }
    if request.booster_type is BoosterType.GBLINEAR:
        changed.discard("growth_strategy")  # there is no tree to grow
    data = {"weights": request.weighted, "missing": request.has_missing, "categorical": bool(request.categorical)}
    return changed | {name for name, there in data.items() if there}


def _check_predictions(case: ConformanceCase, predictions: NDArray[Any]) -> str | None:
    task = case.request.task
    columns = {Task.MULTICLASS: _CLASSES, Task.QUANTILE: len(_QUANTILES)}.get(task)
    expected = (_TEST,) if columns is None else (_TEST, columns)
    if predictions.shape != expected:
        return f"predictions must have shape {expected}, got {predictions.shape}"
    if predictions.dtype.kind != "f" or not np.isfinite(predictions).all():
        return "predictions must be finite numbers"
    if task.is_classification and not ((predictions >= 0) & (predictions <= 1)).all():
        return "probabilities must lie between 0 and 1"
    if task is Task.MULTICLASS and not np.allclose(predictions.sum(axis=1), 1, atol=1e-5):
        return "the probabilities of a row must add up to 1"
    loss, constant = _losses(task, case.y_test, case.train.y, predictions)
    if not loss < constant:
        return f"nothing is learnt: loss {loss:.4f}, a constant has {constant:.4f}"
    return None


def _losses(
    task: Task, y: NDArray[np.float64], y_train: NDArray[np.float64], predictions: NDArray[Any]
) -> tuple[float, float]:
    """A proper loss of the predictions and of the best constant, or the share of pairs in the wrong order."""
    if task is Task.QUANTILE:
        levels = np.array(_QUANTILES)

        def pinball(values: Any) -> float:
            error = y[:, None] - values
            return float(np.maximum(levels * error, (levels - 1) * error).mean())

        return pinball(predictions), pinball(np.quantile(y_train, levels))
    if task is Task.RANKING:
        higher = y[:, None] > y[None, :]
        return float((predictions[:, None] <= predictions[None, :])[higher].mean()), 0.5
    if task is Task.MULTICLASS:
        truth = np.eye(_CLASSES)[y.astype(int)]
        prior = np.bincount(y_train.astype(int), minlength=_CLASSES) / len(y_train)
        return float(((predictions - truth) ** 2).mean()), float(((prior - truth) ** 2).mean())
    return float(((predictions - y) ** 2).mean()), float(((y_train.mean() - y) ** 2).mean())


def _weights_matter(runner: type[Runner], case: ConformanceCase, predictions: NDArray[Any]) -> bool:
    request = replace(case.request, weighted=False)
    translation = runner.translate(request)
    model = runner.fit(translation, runner.build(translation, replace(case.train, weights=None)))
    return not np.array_equal(predictions, runner.predict(translation, model, case.x_test))


def _check_facts(runner: type[Runner], case: ConformanceCase, model: Any) -> Iterator[str]:
    facts = runner.inspect(model)
    for name, count in (("n_trees", facts.n_trees), ("n_leaves", facts.n_leaves), ("n_bytes", facts.n_bytes)):
        if count is not None and (not isinstance(count, int) or count < 0):
            yield f"inspect() must give {name} as a whole number, got {count!r}"
    rounds = case.request.training.n_estimators * max(_CLASSES, len(_QUANTILES))
    if facts.n_trees is not None and facts.n_trees > rounds:
        yield f"{facts.n_trees} trees are more than were asked for"
    if facts.n_bytes == 0:
        yield "inspect() must give n_bytes, the size of the serialized model, as more than 0 or as None"


def _check_fresh_process(runner: type[Runner]) -> list[str]:
    """The same seed gives the same bits in a process that shares nothing with this one, not even the order of a set."""
    command = [sys.executable, "-m", "boosters_eval.runners.conformance", runner.__module__, runner.__qualname__]
    hash_seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    done = subprocess.run(command, env=_environment(hash_seed), capture_output=True, check=False)  # noqa: S603
    if done.returncode:
        return [f"fails in a fresh process: {done.stderr.decode(errors='replace')[-300:]}"]
    there, again, late = json.loads(done.stdout)
    repeated = {**fingerprints(runner, n_threads=1), **again}
    faults = [
        f"{name}: two fits disagree, and the translation does not say so"
        for name in there
        if there[name] != repeated[name]
    ]
    # Only a fresh process can tell: in this one, somebody else may have imported them.
    names = ", ".join(late)
    return faults + ([f"imports {names} inside the clock: name them in 'dependencies'"] if late else [])


def fingerprints(runner: type[Runner], *, n_threads: int) -> dict[str, str]:
    """A digest of the predictions for every booster and task, wherever the translation promises the same bits."""
    digests = {}
    for case in _cases():
        if not case.name.endswith(_REPEATED) or case.request.n_threads != n_threads:
            continue
        if runner.unsupported(case.request) is not None:
            continue
        translation = runner.translate(case.request)
        if translation.nondeterministic is None:
            model = runner.fit(translation, runner.build(translation, case.train))
            predictions = np.ascontiguousarray(runner.predict(translation, model, case.x_test))
            digests[case.name] = hashlib.sha256(predictions.tobytes()).hexdigest()
    return digests


def _environment(hash_seed: str) -> dict[str, str]:
    path = os.pathsep.join(filter(None, sys.path))
    return {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": path, "OMP_WAIT_POLICY": "PASSIVE"}


@contextlib.contextmanager
def _watched(folder: str, faults: list[str]) -> Iterator[None]:
    """Note whatever is printed, warned of, left behind or changed for the rest of the process."""
    here, before, words = Path.cwd(), _global_state(), io.StringIO()
    os.chdir(folder)
    with tempfile.TemporaryFile() as file, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        saved = [(number, os.dup(number)) for number in (1, 2)]
        try:
            for number, _ in saved:
                os.dup2(file.fileno(), number)
            with contextlib.redirect_stdout(words), contextlib.redirect_stderr(words):
                yield
        finally:
            for number, copy in saved:
                os.dup2(copy, number)
                os.close(copy)
            os.chdir(here)
        printed = file.seek(0, os.SEEK_END) or words.tell()
    if printed:
        faults.append("something is printed")
    faults += [f"a warning is given: {str(warning.message)[:120]}" for warning in caught]
    faults += [f"the file {path.name} is left behind" for path in Path(folder).iterdir()]
    after = _global_state()
    faults += [f"{name} is changed for the whole process" for name in before if before[name] != after[name]]


def _global_state() -> dict[str, Any]:
    return {
        "the environment": dict(os.environ),
        "Python's random state": random.getstate(),
        "numpy's random state": [np.asarray(part).tobytes() for part in np.random.get_state()],
        "numpy's error handling": np.geterr(),
        "the list of warning filters": len(warnings.filters),
        "the exception hook": sys.excepthook,
    }


def _cases() -> Iterator[ConformanceCase]:
    for booster in BoosterType:
        for task in Task:
            for name, (training, request) in _VARIANTS.items():
                if name == "two threads" and task is not Task.REGRESSION:
                    continue  # waiting threads make small fits slow, and the task does not matter to them
                asked = FitRequest(
                    task=task,
                    training=_TRAINING.replace(**training),
                    booster_type=booster,
                    n_classes={Task.BINARY: 2, Task.MULTICLASS: _CLASSES}.get(task),
                    quantiles=_QUANTILES if task is Task.QUANTILE else (),
                    **request,
                )
                yield _case(f"{booster.value} {task.value} {name}", asked)


def _case(name: str, request: FitRequest) -> ConformanceCase:
    """Rows that any method can learn from: a linear part, a bend, and six categories with effects of their own."""
    rng = np.random.default_rng(7)
    total = _ROWS + _VALID + _TEST
    x = rng.standard_normal((total, 5)).astype(np.float32)
    score = 2 * x[:, 1] + np.abs(x[:, 2]) + 0.1 * rng.standard_normal(total)
    if request.categorical:
        # Category 0 is never seen in training, and one code is never seen at all: codes need not be dense.
        x[:, 0] = rng.choice([1, 2, 3, 5, 6], total)
        score += np.array([0, 4, -3, 2, 0, -5, 3])[x[:, 0].astype(int)]
        x[-1, 0] = 0
    if request.has_missing:
        x[rng.random((total, 5)) < 0.1] = np.nan
        x[~np.isfinite(x).any(axis=1), 1] = 0
    y = score
    if request.task is Task.BINARY:
        y = (score > np.median(score)).astype(np.float64)
    elif request.task in (Task.MULTICLASS, Task.RANKING):
        y = np.digitize(score, np.quantile(score, [1 / 3, 2 / 3])).astype(np.float64)
    weights = np.where(x[:, 3] > 0, 5.0, 0.2) if request.weighted else None
    groups = np.repeat(np.arange(total // 20), 20) if request.task is Task.RANKING else None

    def part(rows: slice) -> TrainData:
        columns: dict[str, Any] = {"x": x, "y": y, "weights": weights, "groups": groups}
        given = {name: column[rows].copy() for name, column in columns.items() if column is not None}
        for column in given.values():
            column.setflags(write=False)  # a runner that writes into its input fails
        return TrainData(**given)

    stopping = request.training.early_stopping_rounds is not None
    train = replace(part(slice(_ROWS)), valid=part(slice(_ROWS, _ROWS + _VALID)) if stopping else None)
    test = part(slice(_ROWS + _VALID, total))
    return ConformanceCase(name, request, train, test.x, test.y)


def _main(module: str, name: str) -> None:
    runner = importlib.import_module(module)
    for part in name.split("."):
        runner = getattr(runner, part)
    runner.load()
    runner.version()  # as a lane does; it imports the reader of package metadata
    list(_cases())  # imports what making rows needs
    before = set(sys.modules)
    one, two, again = (fingerprints(runner, n_threads=count) for count in (1, 2, 2))  # type: ignore[arg-type]
    late = sorted({name.partition(".")[0] for name in sys.modules.keys() - before})
    sys.stdout.write(json.dumps([one | two, again, late]))


if __name__ == "__main__":
    _main(*sys.argv[1:])
