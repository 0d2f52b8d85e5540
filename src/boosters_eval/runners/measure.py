"""One fit under the clock: the only code that times a library, the same for all of them."""

from __future__ import annotations

import hashlib
import sys
from dataclasses import dataclass, field, replace
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from boosters_eval.core.errors import BoostersEvalError, UnsupportedError
from boosters_eval.datasets import Table, hold_out_rows
from boosters_eval.engine.clock import Clock, measure_taken, time_adaptively, time_fixed
from boosters_eval.engine.lane import get_message
from boosters_eval.metrics import compute_metrics, primary_metric
from boosters_eval.metrics.task import Task
from boosters_eval.metrics.trivial import trivial_scores
from boosters_eval.runners.base import FitRequest, TrainData, cannot_run
from boosters_eval.runners.config import SeveralTargets
from boosters_eval.runners.parameters import Device, Profile
from boosters_eval.runners.result import BenchmarkResult

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from boosters_eval.core.request import SplitKind
    from boosters_eval.engine.clock import AdaptiveTiming, FixedTiming, Sample
    from boosters_eval.runners.base import ModelFacts, Runner, Translation
    from boosters_eval.runners.config import BenchmarkConfig


ROUNDS = 2
_ROWS = 64
_QUERIES = 8


def fit_once(runner: type[Runner], translation: Translation, train: TrainData, x: NDArray[np.float32]) -> None:
    runner.predict(translation, runner.fit(translation, runner.build(translation, train)), x)


def warm_up(runner: type[Runner], translation: Translation, train: TrainData) -> tuple[str, ...]:
    """Fit once on a few rows. An error is only a warning: if it was not due to the few rows, the fit will fail too.

    On a device it is not: the first error tells what is wrong with it, those after it only that there was one.
    """
    try:
        small = runner.translate(small_request(translation.request, stopping=train.valid is not None))
        few = few_rows(train, translation.request.task)
        fit_once(runner, small, few, few.x)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a Rust panic is no Exception
        if translation.request.training.device is not Device.CPU:
            raise
        reason = f"{type(error).__name__}: {get_message(error)}"
        return (f"the warm-up failed, so times and memory include the library's first use ({reason})",)
    return ()


def small_request(request: FitRequest, *, stopping: bool) -> FitRequest:
    """The same task with few rounds, and without the limits that would leave a few rows unsplit or unsampled.

    A library with its own defaults would train all of its rounds, so it is warmed up with mapped parameters as well.
    """
    training = request.training.replace(
        n_estimators=ROUNDS,
        min_samples_leaf=1,
        min_child_weight=1e-3,
        min_gain=0.0,
        subsample=max(request.training.subsample, 0.5),
        early_stopping_rounds=request.training.early_stopping_rounds if stopping else None,
    )
    return replace(request, training=training, profile=Profile.PARITY, native={})


def few_rows(data: TrainData, task: Task) -> TrainData:
    """Rows that any library can train on if it can train on all of them."""
    valid = None if data.valid is None else few_rows(data.valid, task)
    return replace(data.take(_chosen(data, task)), valid=valid)


def _chosen(data: TrainData, task: Task) -> NDArray[np.int64]:
    """Rows with a weight, from all over the data; every class and unequal targets; whole queries' first rows."""
    usable = np.arange(len(data.y))
    if data.weights is not None and (data.weights > 0).any():
        usable = np.flatnonzero(data.weights > 0)
    y = data.y[usable]
    parts: list[Any] = [_spread(len(usable), _ROWS), np.ravel([y.argmin(axis=0), y.argmax(axis=0)])]
    if task.is_classification:
        parts.append(np.unique(y, return_index=True)[1])
    if data.groups is not None:
        starts = np.flatnonzero(np.diff(data.groups[usable], prepend=data.groups[usable[0]] - 1))
        ends = np.append(starts[1:], len(usable))
        parts[0] = np.concatenate(
            [np.arange(starts[i], min(ends[i], starts[i] + _ROWS // _QUERIES)) for i in _spread(len(starts), _QUERIES)]
        )
    rows: NDArray[np.int64] = usable[np.unique(np.concatenate(parts))]
    if not (data.x[rows] != data.x[rows[0]]).any():  # CatBoost refuses data in which no column varies
        other = np.flatnonzero((data.x != data.x[rows[0]]).any(axis=1))[:1]
        rows = np.union1d(rows, other)
    return rows


def _spread(total: int, count: int) -> NDArray[np.int64]:
    return np.linspace(0, total - 1, min(total, count)).astype(np.int64)


_LONG_ENOUGH = 0.1  # seconds below which the clock alone cannot tell


class InvalidPredictionsError(BoostersEvalError):
    """A model returned something that is not a prediction."""


@dataclass(frozen=True)
class Measurement:
    """The result of one fit, and its cost in seconds and bytes."""

    predictions: NDArray[Any]
    facts: ModelFacts
    build_s: float
    fit_s: float
    train_s: float  # both, of the same runs
    predict_s: float
    cpu_s: float
    cpu_taken: float | None  # the share of its CPUs that other programs used
    samples_ns: dict[str, tuple[int, ...]] = field(default_factory=dict)  # under the protocol adaptive-v1, all of them
    model: Any = None  # the one that predicted


def measure(
    runner: type[Runner],
    translation: Translation,
    train: TrainData,
    x_valid: NDArray[np.float32],
    *,
    warmup: int = 0,
    predict_runs: int = 1,
    adaptive: bool = False,
    phase: Callable[[str], None] = lambda _: None,
    clock: Clock = Clock(),  # noqa: B008 (frozen)
) -> Measurement:
    """Warm up outside the clock, then build, fit and predict under it. Model facts and size are taken afterwards.

    The protocol adaptive-v1 repeats building and fitting together, since a data set that was used before may keep
    what a first fit made of it; the model that predicts is the first one.
    """
    before = clock.use()
    for _ in range(warmup):
        phase("warm-up")
        fit_once(runner, translation, train, x_valid)
    builds, fits, predicts = _Runs(clock), _Runs(clock), _Runs(clock)

    def train_once(_: int) -> int:
        phase("build")
        dataset = builds.take(lambda: runner.build(translation, train))
        phase("fit")
        fits.take(lambda: runner.fit(translation, dataset))
        return builds.all_ns[-1] + fits.all_ns[-1]

    def predict_once(_: int) -> int:
        predicts.take(lambda: runner.predict(translation, fits.first, x_valid))
        return predicts.all_ns[-1]

    def repeat(run: Callable[[int], int], count: int) -> AdaptiveTiming | FixedTiming:
        return time_adaptively(run) if adaptive else time_fixed(run, count)

    trained = repeat(train_once, 1)
    phase("predict")
    predicted = repeat(predict_once, predict_runs)
    samples = (*builds.samples, *fits.samples, *predicts.samples)
    share = measure_taken(before, clock.use(), samples)
    predictions = check_predictions(predicts.first, translation.request, len(x_valid))
    return Measurement(
        predictions=predictions,
        facts=runner.inspect(fits.first),
        build_s=trained.summarized(builds.all_ns) / 1e9,
        fit_s=trained.summarized(fits.all_ns) / 1e9,
        train_s=trained.reported_ms / 1e3,
        predict_s=predicted.reported_ms / 1e3,
        cpu_s=median(build.cpu + fit.cpu for build, fit in zip(builds.samples, fits.samples, strict=True)),
        cpu_taken=_shared([*builds.samples, *fits.samples], translation.request.n_threads) if share is None else share,
        samples_ns={"train": trained.samples_ns, "predict": predicted.samples_ns} if adaptive else {},
        model=fits.first,
    )


class _Runs:
    """The repeated runs of one step: their samples, and what the first one returned."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.samples: list[Sample] = []
        self.first: Any = None

    def take(self, work: Callable[[], Any]) -> Any:
        done = self._clock.time(work)
        if not self.samples:
            self.first = done.value
        self.samples += done.samples
        return done.value

    @property
    def all_ns(self) -> tuple[int, ...]:
        return tuple(round(sample.wall * 1e9) for sample in self.samples)


def _shared(samples: Sequence[Sample], n_threads: int) -> float | None:
    """Where the kernel does not tell, the share of the time in which a single thread was not on its CPU."""
    cpu, wall = sum(sample.cpu for sample in samples), sum(sample.wall for sample in samples)
    return max(0.0, 1 - cpu / wall) if n_threads == 1 and wall > _LONG_ENOUGH else None


def check_predictions(predictions: Any, request: FitRequest, n_rows: int) -> NDArray[Any]:
    """The predictions as an array of the shape that the task requires, all finite. Anything else is an error."""
    array = np.asarray(predictions)
    columns = {Task.MULTICLASS: request.n_classes, Task.QUANTILE: len(request.quantiles)}.get(request.task)
    columns = request.n_targets if isinstance(request, SeveralTargets) else columns
    expected = (n_rows,) if columns is None else (n_rows, columns)
    if array.shape == (n_rows, 1) and columns in (None, 1):
        array = array.reshape(expected)
    if array.shape != expected:
        raise InvalidPredictionsError(f"Predictions must have shape {expected}. Got {array.shape} instead.")
    if array.dtype.kind not in "fiu":
        raise InvalidPredictionsError(f"Predictions must be numbers. Got dtype {array.dtype} instead.")
    finite = np.isfinite(array)
    if not finite.all():
        row = int(np.argwhere(~finite)[0][0])
        count = int((~finite).sum())
        raise InvalidPredictionsError(f"Predictions must be finite. Got {array[row]} in row {row} ({count} in all).")
    return array


def digest_predictions(predictions: NDArray[Any]) -> str:
    """Two models with the same digest predict the same, which equal scores do not prove."""
    content = hashlib.blake2b(f"{predictions.dtype.str} {predictions.shape}".encode(), digest_size=8)
    content.update(np.ascontiguousarray(predictions).data)
    return content.hexdigest()


def hold_out(
    data: TrainData, request: FitRequest, seed: int, kind: SplitKind = "random", split_by: NDArray[Any] | None = None
) -> TrainData:
    """For early stopping: hold out a fifth of the training rows, the same rows for every library.

    They are chosen as the rows that are scored on: where `split_by` has times, the latest; where groups, whole ones.
    """
    if request.training.early_stopping_rounds is None or request.profile is not Profile.PARITY:
        return data
    table = Table(x=data.x, y=data.y, weights=data.weights, groups=data.groups, split_by=split_by)
    split = hold_out_rows(table, request.task, kind, seed)
    return replace(data.take(split.train), valid=data.take(split.valid))


def request_for(config: BenchmarkConfig, *, n_threads: int = 1, seed: int = 42) -> FitRequest:
    """What can be said about a benchmark before its data is opened."""
    dataset = config.dataset
    named = [c if isinstance(c, int) else dataset.feature_names.index(c) for c in dataset.categorical]
    return FitRequest(
        task=config.task,
        training=config.training,
        booster_type=config.booster_type,
        profile=config.profile,
        n_classes=dataset.n_classes,
        quantiles=dataset.quantiles,
        categorical=tuple(named),
        has_missing=bool(dataset.has_missing),
        n_columns=dataset.n_features or 0,
        n_threads=n_threads,
        seed=seed,
    )


def run_once(
    runner: type[Runner],
    config: BenchmarkConfig,
    x_train: NDArray[np.float32],
    y_train: NDArray[Any],
    x_valid: NDArray[np.float32],
    y_valid: NDArray[Any],
    seed: int,
) -> BenchmarkResult:
    """The RFC's Runner.run: one fit in this process, on rows that are already split."""
    request = request_for(config, n_threads=max(1, config.training.n_threads), seed=seed)
    if request.n_classes is None and config.task.is_classification:
        request = replace(request, n_classes=int(max(np.max(y_train), np.max(y_valid), 1)) + 1)
    if config.task is Task.RANKING:
        raise UnsupportedError("Runner.run does not accept query groups: run a ranking data set through compare().")
    reason = cannot_run(runner, request)
    if reason is not None:
        raise UnsupportedError(f"{runner.name} cannot run {config.name}: {reason}.")
    translation = runner.translate(request)
    train = TrainData(
        x=np.ascontiguousarray(x_train, dtype=np.float32),
        y=np.asarray(y_train, dtype=np.float64),
        feature_names=config.dataset.feature_names,
    )
    train = hold_out(train, request, seed)
    runner.load()
    before = set(sys.modules)
    cold = warm_up(runner, translation, train)
    done = measure(runner, translation, train, np.ascontiguousarray(x_valid, dtype=np.float32))
    late = late_imports(before)
    y_test = np.asarray(y_valid, dtype=np.float64)
    scored: dict[str, Any] = {
        "n_classes": request.n_classes,
        "quantiles": request.quantiles,
        "metrics": config.metrics,
    }
    trivial = trivial_scores(config.task, (np.asarray(y_train, dtype=np.float64), None), y_test, **scored)
    return BenchmarkResult(
        config_name=config.name,
        library=runner.name,
        seed=seed,
        task=config.task,
        booster_type=config.booster_type.value,
        dataset_name=config.dataset.name,
        variant=config.variant,
        profile=config.profile.value,
        metrics=compute_metrics(config.task, y_test, done.predictions, **scored),
        primary_metric=config.dataset.primary_metric or primary_metric(config.task),
        trivial=trivial or None,
        **measured_fields(runner, translation, done),
        n_train=len(x_train),
        n_valid=len(x_valid),
        model_seed=seed,
        n_threads=request.n_threads,
        warnings=(*cold, *late),
    )


def late_imports(before: set[str]) -> tuple[str, ...]:
    """A warning about modules that the runner's dependencies lack: nothing may be imported while a cell is measured."""
    late = sorted({name.partition(".")[0] for name in sys.modules.keys() - before})
    return (f"modules were imported while the cell ran: {', '.join(late)}",) if late else ()


def measured_fields(runner: type[Runner], translation: Translation, done: Measurement) -> dict[str, Any]:
    return {
        "train_time_s": done.train_s,
        "build_time_s": done.build_s,
        "fit_time_s": done.fit_s,
        "predict_time_s": done.predict_s,
        "cpu_time_s": done.cpu_s,
        "samples_ns": done.samples_ns,
        "model_size_mb": None if done.facts.n_bytes is None else done.facts.n_bytes / 2**20,
        "native_params": translation.native,
        "marks": tuple(mark for mark in translation.marks if mark.kind != "exact"),
        "predictions_digest": digest_predictions(done.predictions),
        "nondeterministic": translation.nondeterministic,
        "n_trees_trained": done.facts.n_trees,
        "n_leaves_total": done.facts.n_leaves,
        "library_version": runner.version(),
    }
