"""The workload `fit`: one fit in its process. Load the rows, train, predict and score; others begin in the same way."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import warnings
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from boosters_eval.core.commands import die_with_parent
from boosters_eval.core.errors import BoostersEvalError, MetricInputError, UnsupportedError
from boosters_eval.core.modules import address_of, load_address
from boosters_eval.datasets import Split, open_stored, split_rows
from boosters_eval.datasets.checks import find_unit
from boosters_eval.datasets.splits import split_within
from boosters_eval.engine.lane import get_message
from boosters_eval.engine.limits import MEMORY_METHOD, measure_peak, start_peak
from boosters_eval.engine.predictions import KEPT
from boosters_eval.engine.workload import Workload
from boosters_eval.metrics import compute_metrics
from boosters_eval.metrics.catalog import gather_warnings
from boosters_eval.metrics.metric import load_implementations
from boosters_eval.metrics.task import Task
from boosters_eval.metrics.trivial import trivial_scores
from boosters_eval.programs.benchmark.evidence import SplitRows, keep_rows
from boosters_eval.programs.benchmark.paper_protocol import FitData, override_natives, prepare_data, refuse_ignored
from boosters_eval.programs.benchmark.preprocessing import load_steps
from boosters_eval.programs.benchmark.spec import FitSpec, UserMetric, identity_of, model_seed, spec_of
from boosters_eval.programs.benchmark.targets import for_targets
from boosters_eval.runners import RUNNERS
from boosters_eval.runners.base import TrainData, find_device_fault
from boosters_eval.runners.builds.store import changed_since, find_foreign
from boosters_eval.runners.installed import installed_build, runner_for, target_of
from boosters_eval.runners.measure import (
    check_predictions,
    fit_once,
    hold_out,
    late_imports,
    measure,
    measured_fields,
    warm_up,
)
from boosters_eval.runners.result import BUSY, BUSY_CELL, TRAINING_ROWS, BenchmarkResult, SplitFacts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from boosters_eval.datasets import Table
    from boosters_eval.engine.cell import Cell, Lane, Spec, Target
    from boosters_eval.metrics.trivial import Scores
    from boosters_eval.runners.base import Runner, Translation
    from boosters_eval.runners.measure import Measurement
    from boosters_eval.runners.result import KeptRows


# What numpy imports only when a table is opened and split, and a few rows are chosen.
_OWN_IMPORTS = ("mmap", "numpy.ma", "numpy.random")


@dataclass(frozen=True)
class MemoryNeed:
    """The memory that a fit needs, apart from what the first use of the library takes once and for all."""

    peak_mb: float | None = None
    first_use_mb: float | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fitted:
    """A cell that was trained, predicted and scored: the fields of its result, and what else can be asked of it."""

    table: Table
    data: FitData
    translation: Translation
    done: Measurement
    fields: dict[str, Any]


def fit_cell(cell: Cell, loaded: type[Runner], inputs: Mapping[str, str], phase: Callable[[str], None]) -> Fitted:
    """Train, predict and score what a cell says; workloads that ask more of the same model begin with it."""
    phase("load")
    spec = spec_of(cell)
    fault = find_device_fault(loaded, spec.training.device)  # another machine may have made the plan
    if fault is not None:
        raise UnsupportedError(f"{cell.target} cannot train on {spec.training.device.value}: {fault}.")
    loaded = for_targets(loaded, spec.request(0), len(spec.targets))
    before = set(sys.modules)
    table = open_stored(Path(inputs["data"]))
    data = take_data(cell, table, inputs)
    split, train, x_valid = data.split, data.train, data.x_valid
    translation = override_natives(loaded.translate(data.request), spec.protocol)
    if spec.protocol is not None or spec.native:
        refuse_ignored(cell.target.library, spec.native if spec.protocol is None else spec.protocol.native, translation)
        before |= set(sys.modules)  # none of this is timed
    needed = _measure_memory(loaded, translation, train, x_valid) if spec.timing.memory else MemoryNeed()
    phase("warm-up")
    cold = warm_up(loaded, translation, train)
    done = measure(
        loaded,
        translation,
        train,
        x_valid,
        warmup=spec.timing.warmup,
        predict_runs=spec.timing.predict_runs,
        adaptive=spec.timing.adaptive,
        phase=phase,
    )
    phase("score")
    predictions = data.restore(done.predictions)
    metrics, said = _score(spec, table, split, predictions)
    late = late_imports(before)
    kept, unkept = _keep(inputs, spec, table, split, predictions)
    fields = {
        **identity_of(spec),
        "library": cell.target.name,
        "seed": cell.repeat.seed,
        "fold": cell.repeat.fold,
        "part": None if spec.inner else cell.part,  # the parts of training rows are no test sets
        "metrics": metrics,
        "primary_metric": spec.primary_metric,
        # A paper has its own references instead of trivial rules.
        "trivial": None if spec.protocol is not None else score_rules(spec, table, split) or None,
        **measured_fields(loaded, translation, done),
        "n_rounds_trained": _count_rounds(spec, loaded, done.facts.n_trees),
        "training_score": None if spec.protocol is not None else _score_training(spec, loaded, translation, done, data),
        "peak_memory_mb": needed.peak_mb,
        "first_use_mb": needed.first_use_mb,
        "memory_method": None if needed.peak_mb is None else MEMORY_METHOD,
        "target_offset": data.offset if data.offset is None else np.asarray(data.offset).tolist(),
        "target_unit": None if data.unit is None or (data.unit == 1).all() else data.unit.tolist(),
        "n_train": len(split.train),
        "n_valid": len(split.valid),
        "split_digest": split.digest,
        "split": _describe_split(spec, table, split),
        "data_digest": spec.data_digest,
        "kept": kept,
        "model_seed": model_seed(cell),
        "n_threads": spec.n_threads,
        "timing_mode": spec.timing.timed,
        "cpu_taken": done.cpu_taken if spec.timing.timed else None,
        "warnings": (*said, *needed.warnings, *cold, *late, *unkept, *_warn_of_others(spec, done)),
    }
    return Fitted(table, data, translation, done, fields)


def take_rows(column: Any, rows: Any) -> Any:
    """These rows of a column of the table, or None where it has none."""
    return None if column is None else np.asarray(column[rows])


def take_data(cell: Cell, table: Table, inputs: Mapping[str, str]) -> FitData:
    """The rows as they are, or as the protocol prepares them."""
    spec, repeat = spec_of(cell), cell.repeat
    request = spec.request(model_seed(cell))
    if spec.protocol is not None:
        load_steps(inputs)
        return prepare_data(spec.protocol, table, request, repeat.seed)
    if "split" in inputs:  # a data set's own splitter cannot be passed between processes, so its rows come in a file
        with np.load(inputs["split"], allow_pickle=False) as stored:
            split = Split(train=stored["train"], valid=stored["valid"], digest=str(stored["digest"]))
    else:
        split = split_rows(table, spec.task, spec.split, repeat.seed, repeat.fold, part=cell.part)
    if spec.inner:
        split = split_within(table, spec.task, spec.split.kind, split, repeat.seed, spec.inner)
    rows = split.train
    every = TrainData(
        x=np.ascontiguousarray(table.x[rows]),
        y=np.asarray(table.y[rows]),
        weights=take_rows(table.weights, rows),
        groups=take_rows(table.groups, rows),
        feature_names=table.feature_names,
    )
    offset = every.y.mean(axis=0) if spec.centered else None
    unit = find_unit(every.y) if spec.centered and spec.takes_units else None
    if offset is not None:
        every = replace(every, y=(every.y - offset) / (1.0 if unit is None else unit))
    train = hold_out(every, request, repeat.seed, spec.split.kind, take_rows(table.split_by, rows))
    return FitData(split, request, train, np.ascontiguousarray(table.x[split.valid]), offset=offset, unit=unit)


def _score(
    spec: FitSpec, table: Table, split: Split, predictions: NDArray[Any]
) -> tuple[dict[str, float], tuple[str, ...]]:
    """All metrics, and their warnings, so that a score of little meaning is recognizable as such."""
    with gather_warnings() as said:
        metrics = compute_metrics(
            spec.task,
            np.asarray(table.y[split.valid]),
            predictions,
            spec.n_classes,
            take_rows(table.weights, split.valid),
            **_scored_by(spec, table, split),
        )
    for name, value in metrics.items():
        if not math.isfinite(value):
            raise MetricInputError(f"The metric '{name}' must be finite. Got {value} instead.")
    return metrics, tuple(said)


def _count_rounds(spec: FitSpec, runner: type[Runner], trees: int | None) -> int | None:
    """The rounds of so many trees: most libraries grow one for each class, quantile or target."""
    found = {Task.MULTICLASS: spec.n_classes, Task.QUANTILE: len(spec.quantiles), Task.REGRESSION: len(spec.targets)}
    outputs = 1 if spec.task in runner.joint else found.get(spec.task) or 1
    if trees is None or trees == spec.training.n_estimators or trees % outputs:
        return trees
    return trees // outputs


def _score_training(
    spec: FitSpec, runner: type[Runner], translation: Translation, done: Measurement, data: FitData
) -> float | None:
    """The primary metric on some of the training rows, after the clock has stopped; None where it cannot be told."""
    train, name = data.train, spec.primary_metric
    if train.groups is not None or spec.user_metrics:
        return None
    rows = np.linspace(0, len(train.y) - 1, min(len(train.y), TRAINING_ROWS)).astype(np.int64)
    y, by = data.move_back(train.y[rows]), take_rows(train.weights, rows)
    scored: dict[str, Any] = {"quantiles": spec.quantiles, "metrics": (name,)}
    with contextlib.suppress(Exception), warnings.catch_warnings():  # what is only for explanation fails no cell
        warnings.simplefilter("ignore")
        said = runner.predict(translation, done.model, np.ascontiguousarray(train.x[rows]))
        predicted = data.restore(check_predictions(said, translation.request, len(rows)))
        value = compute_metrics(spec.task, y, predicted, spec.n_classes, by, **scored)[name]
        return value if math.isfinite(value) else None
    return None


def score_rules(spec: FitSpec, table: Table, split: Split) -> Scores:
    """What the trivial rules of a task score on a split."""
    return trivial_scores(
        spec.task,
        (np.asarray(table.y[split.train]), take_rows(table.weights, split.train)),
        np.asarray(table.y[split.valid]),
        n_classes=spec.n_classes,
        weights=take_rows(table.weights, split.valid),
        **_scored_by(spec, table, split),
    )


def _scored_by(spec: FitSpec, table: Table, split: Split) -> dict[str, Any]:
    groups, sensitive = (take_rows(column, split.valid) for column in (table.groups, table.sensitive))
    about = {"quantiles": spec.quantiles, "metrics": spec.metrics, "targets": spec.targets}
    return {"groups": groups, "sensitive": sensitive, **about}


def _keep(
    inputs: Mapping[str, str], spec: FitSpec, table: Table, split: Split, predictions: NDArray[Any]
) -> tuple[KeptRows | None, tuple[str, ...]]:
    """Store what was predicted, if it is to be kept. Scores are good without: a full disk or memory is a warning."""
    if KEPT not in inputs:
        return None, ()
    rows = SplitRows(
        rows=split.valid,
        y_true=np.asarray(table.y[split.valid]),
        weights=take_rows(table.weights, split.valid),
        queries=take_rows(table.groups, split.valid),
        groups=take_rows(table.split_by, split.valid) if spec.split.kind == "group" else None,
        sensitive=take_rows(table.sensitive, split.valid),
    )
    try:
        return keep_rows(Path(inputs[KEPT]), rows, predictions), ()
    except (BoostersEvalError, MemoryError) as error:
        return None, (f"its predictions were not kept: {get_message(error) or 'there is not enough memory'}",)


def _describe_split(spec: FitSpec, table: Table, split: Split) -> SplitFacts | None:
    """What the statistics must know of a split that is not random."""
    kind, column = spec.split.kind, spec.split.column
    if kind == "random" or spec.protocol is not None:
        return None
    if kind == "time":
        return SplitFacts(kind=kind, column=column)
    groups = [len(np.unique(take_rows(table.split_by, rows))) for rows in (split.train, split.valid)]
    return SplitFacts(kind=kind, column=column, n_train_groups=groups[0], n_valid_groups=groups[1])


def _measure_memory(runner: type[Runner], translation: Translation, train: TrainData, x_valid: Any) -> MemoryNeed:
    """The memory of a fit, in a separate process forked before any parallel region, apart from the timed run."""
    reader, writer = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        die_with_parent(parent)
        try:
            answer = _fit_for_memory(runner, translation, train, x_valid)
        except BaseException as error:  # noqa: BLE001 (the process ends right after)
            answer = {"failed": f"{type(error).__name__}: {get_message(error)}"}
        with contextlib.suppress(OSError):
            os.write(writer, json.dumps(answer).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    answer = json.loads(text) if text else {"failed": "the process died"}
    if "failed" in answer:
        return MemoryNeed(warnings=(f"the memory run failed: {answer['failed']}",))
    return MemoryNeed(**answer)


def _fit_for_memory(runner: type[Runner], translation: Translation, train: TrainData, x_valid: Any) -> dict[str, Any]:
    """What a small fit leaves behind, and the peak that the fit itself adds."""
    unused = start_peak()
    warm_up(runner, translation, train)
    start = start_peak()
    fit_once(runner, translation, train, x_valid)
    return {"peak_mb": measure_peak(start) / 2**20, "first_use_mb": max(0, start - unused) / 2**20}


def _warn_of_others(spec: FitSpec, done: Measurement) -> tuple[str, ...]:
    """A warning about times that were taken while other programs used the CPUs; in tens, so that equal ones add up."""
    if not spec.timing.timed or done.cpu_taken is None or done.cpu_taken <= BUSY:
        return ()
    share = f"about {round(10 * done.cpu_taken)}0 %"
    return (f"{BUSY_CELL}: other programs used {share} of the cell's CPUs, so its times are not judged",)


class Fit(Workload):
    """The workload whose targets are libraries, each accessed through the runner of that name."""

    name: ClassVar[str] = "fit"
    spec_type: ClassVar[type[Spec]] = FitSpec
    outcome_type: ClassVar[type[BenchmarkResult]] = BenchmarkResult
    stores: ClassVar[frozenset[str]] = frozenset({"artifacts", KEPT})

    @classmethod
    def target(cls, name: str) -> Target:
        return target_of(RUNNERS[name])

    @classmethod
    def address(cls, target: Target) -> dict[str, Any]:
        """Where the runner's class is defined: a script may register one that other processes do not know by name."""
        return address_of(RUNNERS[target.library], "runner")

    @classmethod
    def path(cls, target: Target) -> tuple[str, ...]:
        return () if target.installation is None else target.installation.path

    @classmethod
    def isolated(cls, target: Target) -> bool:
        return target.installation is not None and target.installation.isolated

    @classmethod
    def imports(cls, target: Target) -> tuple[str, ...]:
        """This module, and the large packages that the library imports as well."""
        return ("boosters_eval.programs.benchmark.fit", *RUNNERS[target.library].dependencies)

    @classmethod
    def load(cls, lane: Lane, address: Mapping[str, Any]) -> type[Runner]:
        """Import the library and everything needed to score its predictions."""
        runner: type[Runner] = load_address(address)
        metrics = [UserMetric.model_validate_json(text) for text in lane.preload]
        for metric in metrics:
            metric.find()  # all files run before anything is registered here, which they may register themselves
        RUNNERS.register(lane.target.library, runner, replace=True)
        runner = runner_for(lane.target)
        runner.load()
        runner.version()  # imports the standard library's reader of package metadata
        _check_build(runner, lane.target)
        for metric in metrics:
            metric.load()
        load_implementations()
        for name in _OWN_IMPORTS:
            import_module(name)
        return runner

    @classmethod
    def run(
        cls, cell: Cell, loaded: type[Runner], inputs: Mapping[str, str], phase: Callable[[str], None]
    ) -> BenchmarkResult:
        """One fit: load, warm-up, build, fit, predict, score."""
        fitted = fit_cell(cell, loaded, inputs, phase)
        phase("done")
        return BenchmarkResult(**fitted.fields)


def _check_build(runner: type[Runner], target: Target) -> None:
    """Refuse a build that is not the plan's, that was imported from elsewhere than its folder, or that was edited."""
    installation = target.installation
    if installation is None and target.build.library is None:
        return
    planned, found = target.build.digest, installed_build(runner).digest
    fault = "" if planned == found else f"the plan has the build {planned} of {runner.name}, but {found} is known now"
    if installation is not None:
        fault = fault or find_foreign(runner.module, installation.path) or changed_since(installation)
    if fault:
        raise ImportError(f"{fault}.")
