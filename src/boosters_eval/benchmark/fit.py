"""The workload `fit`: train a library on a split, predict, and score."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import sys
import warnings
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from pydantic import SerializerFunctionWrapHandler, model_serializer

from boosters_eval.benchmark.measure import hold_out, late_imports, measure, measured_fields
from boosters_eval.benchmark.natives import refuse_ignored
from boosters_eval.benchmark.preparing import FitData, protocol_data
from boosters_eval.benchmark.protocol import Protocol, load_steps, overridden
from boosters_eval.benchmark.records import BUSY, BUSY_CELL, BenchmarkResult, SplitFacts
from boosters_eval.benchmark.trivial import trivial_scores
from boosters_eval.benchmark.usermetrics import UserMetric
from boosters_eval.benchmark.warmup import fit_once, warm_up
from boosters_eval.builds.importing import foreign
from boosters_eval.builds.store import changed_since
from boosters_eval.core.errors import MetricInputError, UnsupportedError
from boosters_eval.core.model import Model
from boosters_eval.core.modules import address_of, at_address
from boosters_eval.core.repeat import Repeat
from boosters_eval.datasets import Split, open_stored, split_rows
from boosters_eval.datasets.config import SplitSpec
from boosters_eval.engine import memory
from boosters_eval.engine.cell import Build, Cell, Spec
from boosters_eval.engine.child import message_of
from boosters_eval.engine.plan import CellRef, Exclusion, Plan, canonical, digest
from boosters_eval.engine.processes import die_with_parent
from boosters_eval.engine.workload import Workload
from boosters_eval.metrics import MetricWarning, compute_metrics
from boosters_eval.metrics.compute import load_implementations
from boosters_eval.metrics.task import Task
from boosters_eval.runners import RUNNERS
from boosters_eval.runners.base import FitRequest, TrainData
from boosters_eval.runners.devices import device_fault
from boosters_eval.runners.installation import Installation
from boosters_eval.runners.installed import installed_build
from boosters_eval.runners.parameters import BoosterType, Device, Profile, TrainingConfig
from boosters_eval.runners.targets import known_as, library_of, runner_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from boosters_eval.benchmark.measure import Measurement
    from boosters_eval.benchmark.trivial import Scores
    from boosters_eval.datasets import Table
    from boosters_eval.engine.cell import Lane
    from boosters_eval.runners.base import Runner, Translation


class Timing(Model):
    """How a fit is measured."""

    timed: bool = False
    warmup: int = 0
    predict_runs: int = 1
    memory: bool = False
    adaptive: bool = False  # repeated by the protocol adaptive-v1

    @model_serializer(mode="wrap")
    def _without_default(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A fit that is not timed adaptively is the same as before there was a choice: its identity, its run."""
        content: dict[str, Any] = handler(self)
        if not self.adaptive:
            content.pop("adaptive", None)
        return content


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


class FitSpec(Spec):
    """A benchmark with everything resolved that its result depends on, except library and repeat."""

    workload: Literal["fit"] = "fit"
    dataset: str
    data_digest: str
    task: Task
    booster_type: BoosterType
    training: TrainingConfig
    profile: Profile
    variant: str | None
    n_classes: int | None
    quantiles: tuple[float, ...]
    categorical: tuple[int, ...]
    has_missing: bool
    weighted: bool
    max_categories: int
    split: SplitSpec
    metrics: tuple[str, ...]
    primary_metric: str
    timing: Timing
    user_metrics: tuple[UserMetric, ...] = ()
    protocol: Protocol | None = None  # None: our own way

    @model_serializer(mode="wrap")
    def _without_protocol(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A spec without a protocol is the same as before there were any: its identity, its plan, its run."""
        content: dict[str, Any] = handler(self)
        if self.protocol is None:
            content.pop("protocol", None)
        return content

    @property
    def uses_device(self) -> bool:
        """Whether it trains on a CUDA device."""
        return self.training.device is not Device.CPU

    @property
    def is_paired(self) -> bool:
        """Whether its times are compared."""
        return self.timing.timed

    @property
    def preload(self) -> tuple[str, ...]:
        """The files with the user's own metrics."""
        return tuple(metric.model_dump_json() for metric in self.user_metrics)

    def identity(self) -> dict[str, Any]:
        """The identity without the location of a metric's file: only its content matters."""
        content = self.model_dump(mode="json", exclude={"user_metrics"})
        users = sorted((metric.name, metric.higher_is_better, metric.digest) for metric in self.user_metrics)
        return {**content, "user_metrics": users}

    def request(self, seed: int) -> FitRequest:
        """The request that a runner receives."""
        encoded = self.protocol is not None and self.protocol.encodes_categories
        return FitRequest(
            task=self.task,
            training=self.training,
            booster_type=self.booster_type,
            profile=self.profile,
            n_classes=self.n_classes,
            quantiles=self.quantiles,
            categorical=() if encoded else self.categorical,
            has_missing=self.has_missing,
            weighted=self.weighted,
            max_categories=0 if encoded else self.max_categories,
            n_threads=self.n_threads,
            seed=seed,
        )


def spec_of(cell: Cell) -> FitSpec:
    """The spec of a cell of this workload."""
    if not isinstance(cell.spec, FitSpec):
        raise TypeError(f"{cell} is not a cell of the workload 'fit'.")
    return cell.spec


def model_seed(cell: Cell) -> int:
    """The model's seed, which differs by spec and library but is the same in every process and for every build."""
    text = f"{cell.repeat.seed}|{spec_of(cell).training.seed}|{cell.spec.name}|{library_of(cell.target)}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) & 0x7FFF_FFFF


def identity_of(spec: FitSpec) -> dict[str, Any]:
    """The fields that every record of a spec's cells contains."""
    return {
        "config_name": spec.name,
        "task": spec.task,
        "booster_type": spec.booster_type.value,
        "dataset_name": spec.dataset,
        "variant": spec.variant,
        "profile": spec.profile.value,
    }


# What numpy imports only when a table is opened and split, and a few rows are chosen.
_OWN_IMPORTS = ("mmap", "numpy.ma", "numpy.random")


class Fit(Workload):
    """The workload whose targets are libraries, each accessed through the runner of that name."""

    name: ClassVar[str] = "fit"
    spec_type: ClassVar[type[Spec]] = FitSpec
    outcome_type: ClassVar[type[BenchmarkResult]] = BenchmarkResult

    @classmethod
    def build(cls, target: str) -> Build:
        """The library's files, together with the adapter that maps parameters to it."""
        return installed_build(runner_of(target))

    @classmethod
    def address(cls, target: str) -> dict[str, Any]:
        """Where the runner's class is defined: a script may register one that other processes do not know by name.

        Of a build also where its files are.
        """
        runner = runner_of(target)
        installation = runner.installation
        return {
            **address_of(runner, "runner"),
            **({} if installation is None else {"installation": installation.model_dump(mode="json")}),
        }

    @classmethod
    def path(cls, target: str) -> tuple[str, ...]:
        """The folders of a build."""
        installation = runner_of(target).installation
        return () if installation is None else installation.path

    @classmethod
    def isolated(cls, target: str) -> bool:
        """Whether a build has an environment of its own."""
        installation = runner_of(target).installation
        return installation is not None and installation.isolated

    @classmethod
    def imports(cls, target: str) -> tuple[str, ...]:
        """This module, and the large packages that the library imports as well."""
        return ("boosters_eval.benchmark.fit", *runner_of(target).dependencies)

    @classmethod
    def load(cls, lane: Lane, address: Mapping[str, Any]) -> type[Runner]:
        """Import the library and everything needed to score its predictions."""
        runner: type[Runner] = at_address(address)
        metrics = [UserMetric.model_validate_json(text) for text in lane.preload]
        for metric in metrics:
            metric.find()  # all files run before anything is registered here, which they may register themselves
        runner = _registered(lane.target, runner, address)
        runner.load()
        runner.version()  # imports the standard library's reader of package metadata
        _check_build(runner, address)
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

    @classmethod
    def upgraded_plan(cls, raw: dict[str, Any]) -> Plan:
        """Schema version 1 had fits only: configs, libraries and the user's own metrics."""
        users = raw.get("user_metrics", [])
        specs = [_upgraded_spec(config, users) for config in raw["configs"]]
        content = {
            "schema_version": 1,
            "configs": sorted(map(canonical, raw["configs"])),
            "cells": sorted(
                Cell(specs[config], library, Repeat(seed, fold)).key for config, library, seed, fold in raw["refs"]
            ),
            "libraries": raw["libraries"],
            "user_metrics": sorted((m["name"], m["higher_is_better"], m["digest"]) for m in users),
        }
        return Plan.upgraded(
            digest(content),
            name=raw["suite"],
            specs=tuple(specs),
            refs=tuple(CellRef(*ref) for ref in raw["refs"]),
            builds={cls.name: raw["libraries"]},
            excluded=tuple(
                Exclusion(spec=item["config_name"], target=item["library"], reason=item["reason"])
                for item in raw.get("unsupported", [])
            ),
        )


def fit_cell(cell: Cell, loaded: type[Runner], inputs: Mapping[str, str], phase: Callable[[str], None]) -> Fitted:
    """Train, predict and score what a cell says; workloads that ask more of the same model begin with it."""
    phase("load")
    spec = spec_of(cell)
    fault = device_fault(loaded, spec.training.device)  # another machine may have made the plan
    if fault is not None:
        raise UnsupportedError(f"{cell.target} cannot train on {spec.training.device.value}: {fault}.")
    before = set(sys.modules)
    table = open_stored(Path(inputs["data"]))
    data = _data(cell, table, inputs)
    split, train, x_valid = data.split, data.train, data.x_valid
    translation = overridden(loaded.translate(data.request), spec.protocol)
    if spec.protocol is not None:
        refuse_ignored(cell.target, spec.protocol.native, translation)
        before |= set(sys.modules)  # none of this is timed
    needed = _memory_of(loaded, translation, train, x_valid) if spec.timing.memory else MemoryNeed()
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
    metrics, said = _score(spec, table, split, data.restore(done.predictions))
    late = late_imports(before)
    trivial = _trivial(spec, table, split) if spec.protocol is None else {}
    fields = {
        **identity_of(spec),
        "library": cell.target,
        "seed": cell.repeat.seed,
        "fold": cell.repeat.fold,
        "metrics": metrics,
        "primary_metric": spec.primary_metric,
        "trivial": trivial or None,
        **measured_fields(loaded, translation, done),
        "peak_memory_mb": needed.peak_mb,
        "first_use_mb": needed.first_use_mb,
        "memory_method": None if needed.peak_mb is None else memory.METHOD,
        "n_train": len(split.train),
        "n_valid": len(split.valid),
        "split_digest": split.digest,
        "split": _split_facts(spec, table, split),
        "data_digest": spec.data_digest,
        "model_seed": model_seed(cell),
        "n_threads": spec.n_threads,
        "timing_mode": spec.timing.timed,
        "cpu_taken": done.cpu_taken if spec.timing.timed else None,
        "warnings": (*said, *needed.warnings, *cold, *late, *_contention(spec, done)),
    }
    return Fitted(table, data, translation, done, fields)


def _registered(target: str, runner: type[Runner], address: Mapping[str, Any]) -> type[Runner]:
    """The runner, known in this process by the target's name; of a build, the one that uses its files."""
    if "installation" not in address:
        return RUNNERS.register(target, runner, replace=True)
    build = runner.at(target, Installation.model_validate(address["installation"]))
    known_as(target, build)
    return build


def _check_build(runner: type[Runner], address: Mapping[str, Any]) -> None:
    """Refuse a build that is not the plan's, that was imported from elsewhere than its folder, or that was edited."""
    installation = runner.installation
    if installation is None and address["build"].get("library") is None:
        return
    planned, found = address["build"]["digest"], installed_build(runner).digest
    fault = "" if planned == found else f"the plan has the build {planned} of {runner.name}, but {found} is known now"
    if installation is not None:
        fault = fault or foreign(runner.module, installation.path) or changed_since(installation)
    if fault:
        raise ImportError(f"{fault}.")


def _upgraded_spec(config: dict[str, Any], users: list[dict[str, Any]]) -> FitSpec:
    own = [metric for metric in users if metric["name"] in config["metrics"]]
    return FitSpec.model_validate({**config, "alone": config["timing"]["timed"], "user_metrics": own})


def _score(
    spec: FitSpec, table: Table, split: Split, predictions: NDArray[Any]
) -> tuple[dict[str, float], tuple[str, ...]]:
    """All metrics, and their warnings, so that a score of little meaning is recognisable as such."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        metrics = compute_metrics(
            spec.task,
            np.asarray(table.y[split.valid]),
            predictions,
            spec.n_classes,
            taken_rows(table.weights, split.valid),
            groups=taken_rows(table.groups, split.valid),
            sensitive=taken_rows(table.sensitive, split.valid),
            quantiles=spec.quantiles,
            metrics=spec.metrics,
        )
    for name, value in metrics.items():
        if not math.isfinite(value):
            raise MetricInputError(f"The metric '{name}' must be finite. Got {value} instead.")
    return metrics, tuple(str(warning.message) for warning in caught if issubclass(warning.category, MetricWarning))


def _trivial(spec: FitSpec, table: Table, split: Split) -> Scores:
    """What the trivial rules of the task score on the same rows. A paper has its own references instead."""
    return trivial_scores(
        spec.task,
        (np.asarray(table.y[split.train]), taken_rows(table.weights, split.train)),
        np.asarray(table.y[split.valid]),
        n_classes=spec.n_classes,
        weights=taken_rows(table.weights, split.valid),
        groups=taken_rows(table.groups, split.valid),
        sensitive=taken_rows(table.sensitive, split.valid),
        quantiles=spec.quantiles,
        metrics=spec.metrics,
    )


def _data(cell: Cell, table: Table, inputs: Mapping[str, str]) -> FitData:
    """The rows as they are, or as the protocol prepares them."""
    spec = spec_of(cell)
    request = spec.request(model_seed(cell))
    if spec.protocol is not None:
        load_steps(inputs)
        return protocol_data(spec.protocol, table, request, cell.repeat.seed)
    split = _split(cell, table, inputs.get("split"))
    split_by = taken_rows(table.split_by, split.train)
    train = hold_out(_train_data(table, split), request, cell.repeat.seed, spec.split.kind, split_by)
    return FitData(split, request, train, np.ascontiguousarray(table.x[split.valid]))


def _split(cell: Cell, table: Table, split_file: str | None) -> Split:
    """The split. A data set's own splitter cannot be passed between processes, so its rows come in a file."""
    spec = spec_of(cell)
    if split_file is None:
        return split_rows(table, spec.task, spec.split, cell.repeat.seed, cell.repeat.fold)
    with np.load(split_file, allow_pickle=False) as stored:
        return Split(train=stored["train"], valid=stored["valid"], digest=str(stored["digest"]))


def _split_facts(spec: FitSpec, table: Table, split: Split) -> SplitFacts | None:
    """What the statistics must know of a split that is not random."""
    kind, column = spec.split.kind, spec.split.column
    if kind == "random" or spec.protocol is not None:
        return None
    if kind == "time":
        return SplitFacts(kind=kind, column=column)
    groups = [len(np.unique(taken_rows(table.split_by, rows))) for rows in (split.train, split.valid)]
    return SplitFacts(kind=kind, column=column, n_train_groups=groups[0], n_valid_groups=groups[1])


def taken_rows(column: Any, rows: Any) -> Any:
    """These rows of a column of the table, or None where it has none."""
    return None if column is None else np.asarray(column[rows])


def _train_data(table: Table, split: Split) -> TrainData:
    rows = split.train
    return TrainData(
        x=np.ascontiguousarray(table.x[rows]),
        y=np.asarray(table.y[rows]),
        weights=taken_rows(table.weights, rows),
        groups=taken_rows(table.groups, rows),
        feature_names=table.feature_names,
    )


def _memory_of(runner: type[Runner], translation: Translation, train: TrainData, x_valid: Any) -> MemoryNeed:
    """The memory of a fit, in a separate process forked before any parallel region, apart from the timed run."""
    reader, writer = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        die_with_parent(parent)
        try:
            answer = _fit_for_memory(runner, translation, train, x_valid)
        except BaseException as error:  # noqa: BLE001 (the process ends right after)
            answer = {"failed": f"{type(error).__name__}: {message_of(error)}"}
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
    unused = memory.start_peak()
    warm_up(runner, translation, train)
    start = memory.start_peak()
    fit_once(runner, translation, train, x_valid)
    return {"peak_mb": memory.peak_since(start) / 2**20, "first_use_mb": max(0, start - unused) / 2**20}


def _contention(spec: FitSpec, done: Measurement) -> tuple[str, ...]:
    """A warning about times that were taken while other programs used the CPUs; in tens, so that equal ones add up."""
    if not spec.timing.timed or done.cpu_taken is None or done.cpu_taken <= BUSY:
        return ()
    share = f"about {round(10 * done.cpu_taken)}0 %"
    return (f"{BUSY_CELL}: other programs used {share} of the cell's CPUs, so its times are not judged",)
