"""One cell from data to score, in the process that was made for it."""

from __future__ import annotations

import contextlib
import json
import math
import os
import traceback
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from boosters_eval.benchmark.measure import hold_out, measure, measured_fields
from boosters_eval.benchmark.results import BenchmarkError, BenchmarkResult
from boosters_eval.core.errors import MetricInputError
from boosters_eval.datasets import Split, open_stored, split_rows
from boosters_eval.engine import memory
from boosters_eval.engine.worker import die_with_parent
from boosters_eval.metrics import MetricWarning, compute_metrics
from boosters_eval.runners.base import TrainData

if TYPE_CHECKING:
    from collections.abc import Callable

    from boosters_eval.benchmark.measure import Measurement
    from boosters_eval.benchmark.results import Outcome
    from boosters_eval.datasets import Table
    from boosters_eval.engine.plan import Cell
    from boosters_eval.runners.base import Runner, Translation

_TRACEBACK_CHARACTERS = 8_000
_BUSY = 0.7  # below so many CPU seconds a second, a single-threaded fit did not have its core to itself
_LONG_ENOUGH = 0.1  # seconds, below which that ratio says nothing


class Phases:
    """The step under way; each is told to the parent, who needs it when the process dies."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self.now = "start"

    def __call__(self, phase: str) -> None:
        self.now = phase
        self._tell(phase)


def run_cell(cell: Cell, runner: type[Runner], data: str, split: str | None, phase: Phases) -> Outcome:
    """The cell's result, or the error that it ended in: a Rust panic is a BaseException, so all are caught."""
    try:
        return _run(cell, runner, data, split, phase)
    except BaseException as error:  # noqa: BLE001 (see above; the process ends right after)
        return error_outcome(
            cell,
            phase=phase.now,
            error_type=type(error).__name__,
            error_message=_message(error),
            traceback=traceback.format_exc()[-_TRACEBACK_CHARACTERS:].encode(errors="replace").decode(),
        )


def error_outcome(cell: Cell, **facts: Any) -> BenchmarkError:
    """A BenchmarkError that says which cell it is of."""
    return BenchmarkError(**identity(cell), **facts)


def identity(cell: Cell) -> dict[str, Any]:
    """What every outcome of a cell repeats."""
    return {
        "config_name": cell.config.name,
        "library": cell.library,
        "seed": cell.seed,
        "task": cell.config.task,
        "booster_type": cell.config.booster_type.value,
        "dataset_name": cell.config.dataset,
        "variant": cell.config.variant,
        "fold": cell.fold,
        "profile": cell.config.profile.value,
    }


def _message(error: BaseException) -> str:
    try:
        return str(error)[:2_000].encode(errors="replace").decode()
    except Exception:  # noqa: BLE001 (an exception may not even be printable)
        return "(no message)"


def _run(cell: Cell, runner: type[Runner], data: str, split_file: str | None, phase: Phases) -> BenchmarkResult:
    phase("load")
    config = cell.config
    table = open_stored(Path(data))
    split = _split(cell, table, split_file)
    translation = runner.translate(config.request(cell.model_seed))
    train = hold_out(_train_data(table, split), translation.request, cell.seed)
    x_valid = np.ascontiguousarray(table.x[split.valid])
    peak_mb: float | None = None
    troubles: tuple[str, ...] = ()
    if config.timing.memory:
        peak_mb, troubles = _peak_memory_mb(runner, translation, train, x_valid)
    done = measure(
        runner,
        translation,
        train,
        x_valid,
        warmup=config.timing.warmup,
        predict_runs=config.timing.predict_runs,
        phase=phase,
    )
    phase("score")
    metrics, said = _score(cell, table, split, done)
    phase("done")
    return BenchmarkResult(
        **identity(cell),
        metrics=metrics,
        primary_metric=config.primary_metric,
        **measured_fields(runner, translation, done),
        peak_memory_mb=peak_mb,
        memory_method=None if peak_mb is None else memory.METHOD,
        n_train=len(split.train),
        n_valid=len(split.valid),
        split_digest=split.digest,
        data_digest=config.data_digest,
        model_seed=cell.model_seed,
        n_threads=config.n_threads,
        timing_mode=config.timing.timed,
        warnings=(*said, *troubles, *_contention(cell, done)),
    )


def _score(cell: Cell, table: Table, split: Split, done: Measurement) -> tuple[dict[str, float], tuple[str, ...]]:
    """All metrics, and what they warn of: a score that means little must not look like one that does."""
    config = cell.config
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        metrics = compute_metrics(
            config.task,
            np.asarray(table.y[split.valid]),
            done.predictions,
            config.n_classes,
            _rows(table.weights, split.valid),
            groups=_rows(table.groups, split.valid),
            sensitive=_rows(table.sensitive, split.valid),
            quantiles=config.quantiles,
            metrics=config.metrics,
        )
    for name, value in metrics.items():
        if not math.isfinite(value):
            raise MetricInputError(f"The metric '{name}' must be finite. Got {value} instead.")
    return metrics, tuple(str(warning.message) for warning in caught if issubclass(warning.category, MetricWarning))


def _split(cell: Cell, table: Table, split_file: str | None) -> Split:
    """The rows; a data set's own splitter cannot cross processes, so its rows come in a file."""
    if split_file is None:
        return split_rows(table, cell.config.task, cell.config.split, cell.seed, cell.fold)
    with np.load(split_file, allow_pickle=False) as stored:
        return Split(train=stored["train"], valid=stored["valid"], digest=str(stored["digest"]))


def _rows(column: Any, rows: Any) -> Any:
    return None if column is None else np.asarray(column[rows])


def _train_data(table: Table, split: Split) -> TrainData:
    rows = split.train
    return TrainData(
        x=np.ascontiguousarray(table.x[rows]),
        y=np.asarray(table.y[rows]),
        weights=_rows(table.weights, rows),
        groups=_rows(table.groups, rows),
        feature_names=table.feature_names,
    )


def _peak_memory_mb(
    runner: type[Runner], translation: Translation, train: TrainData, x_valid: Any
) -> tuple[float | None, tuple[str, ...]]:
    """The peak of a fit in a process of its own: forked before any parallel region, apart from the timed run."""
    reader, writer = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        die_with_parent(parent)
        try:
            start = memory.start_peak()
            measure(runner, translation, train, x_valid)
            answer: dict[str, Any] = {"peak": memory.peak_since(start) / 2**20}
        except BaseException as error:  # noqa: BLE001 (the process ends right after)
            answer = {"failed": f"{type(error).__name__}: {_message(error)}"}
        with contextlib.suppress(OSError):
            os.write(writer, json.dumps(answer).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    answer = json.loads(text) if text else {"failed": "the process died"}
    if "failed" in answer:
        return None, (f"the memory run failed: {answer['failed']}",)
    return answer["peak"], ()


def _contention(cell: Cell, done: Measurement) -> tuple[str, ...]:
    wall = done.build_s + done.fit_s
    if cell.config.timing.timed and cell.config.n_threads == 1 and wall > _LONG_ENOUGH and done.cpu_s < _BUSY * wall:
        share = done.cpu_s / wall
        return (
            f"the processor was shared while training: {share:.2f} CPU seconds a second; repeat on an idle machine",
        )
    return ()
