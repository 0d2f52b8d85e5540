"""The programs `list datasets|libraries|suites|metrics`. Each imports what it lists and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from boosters_eval.core.terms import tell
from boosters_eval.reports.document import Document, Paragraph, PlainCell, PlainTable, Section
from boosters_eval.reports.findings import ReportedFindings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boosters_eval.core.registry import Registry
    from boosters_eval.programs.catalog.request import (
        DatasetsRequest,
        LibrariesRequest,
        MetricsRequest,
        SuitesRequest,
    )


@dataclass(frozen=True)
class Inventory(ReportedFindings):
    """What is listed, a record each."""

    plain: ClassVar[bool] = True
    title: str
    records: tuple[Mapping[str, Any], ...]
    more: str = ""  # a line about what is not listed

    def document(self) -> Document:
        rows = tuple(tuple(map(_cell, record.values())) for record in self.records)
        headings = tuple(self.records[0]) if self.records else ()
        more = (Paragraph(self.more),) if self.more else ()
        return Document(self.title, sections=(Section("list", "", (PlainTable(self.title, headings, rows), *more)),))

    def to_model(self) -> list[Mapping[str, Any]]:
        return list(self.records)


def _cell(value: Any) -> PlainCell:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        value = ", ".join(map(str, value))
    return None if value == "" else value if isinstance(value, int) or value is None else str(value)


def list_libraries(request: LibrariesRequest) -> Inventory:  # noqa: ARG001 (it has no parameters)
    from boosters_eval.runners import RUNNERS  # noqa: PLC0415 (keeps other lists fast)

    records = []
    for name, runner in RUNNERS.items():
        missing = runner.missing()
        can = _able(runner)
        records.append(
            {
                "library": name,
                "version": runner.version() if missing is None else None,
                "available": missing is None,
                "boosters": [kind for kind, tasks in can.items() if tasks],
                "tasks": sorted({task for tasks in can.values() for task in tasks}),
                "note": missing or "",
            }
        )
    _tell_of_broken(RUNNERS)
    return Inventory("Libraries", tuple(records))


def _able(runner: Any) -> dict[str, list[str]]:
    """For each booster, the tasks that a runner supports."""
    from boosters_eval.metrics.task import Task  # noqa: PLC0415 (keeps other lists fast)
    from boosters_eval.runners import FitRequest  # noqa: PLC0415
    from boosters_eval.runners.parameters import BoosterType, TrainingConfig  # noqa: PLC0415

    def is_able(task: Task, kind: BoosterType) -> bool:
        asked = FitRequest(task=task, training=TrainingConfig(), booster_type=kind, n_classes=3, quantiles=(0.5,))
        return runner.unsupported(asked) is None

    return {kind.value: [task.value for task in Task if is_able(task, kind)] for kind in BoosterType}


def list_datasets(request: DatasetsRequest) -> Inventory:
    from boosters_eval.datasets import DATASETS  # noqa: PLC0415 (keeps other lists fast)
    from boosters_eval.datasets.catalog import PROBLEMS  # noqa: PLC0415

    records = []
    for name, config in DATASETS.items():
        if name in PROBLEMS and not request.every:
            continue
        reason = config.available() if config.available else None
        records.append(
            {
                "data set": name,
                "task": config.task.value,
                "rows": config.n_samples,
                "columns": config.n_features,
                "classes": config.n_classes,
                "missing": config.has_missing,
                "categorical": len(config.categorical),
                "available": reason is None,
                "source": reason or config.source,
            }
        )
    _tell_of_broken(DATASETS)
    more = f"And {len(PROBLEMS)} generated problems, see: boosters-eval list datasets --all"
    return Inventory("Data sets", tuple(records), "" if request.every else more)


def list_suites(request: SuitesRequest) -> Inventory:
    from boosters_eval.core.machine import count_cores  # noqa: PLC0415 (keeps other lists fast)
    from boosters_eval.programs.benchmark.suites import (  # noqa: PLC0415
        SUITES,
        costs_by_key,
        count_cells,
        estimate_seconds,
    )
    from boosters_eval.programs.history.query import read_cell_seconds  # noqa: PLC0415

    history = costs_by_key(read_cell_seconds(request.home))
    records = []
    for name, suite in SUITES.items():
        seconds = estimate_seconds(suite, history, jobs=count_cores())
        minutes = "" if seconds is None else f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
        records.append(
            {
                "suite": name,
                "data sets": len({config.dataset.name for config in suite.configs}),
                "libraries": list(dict.fromkeys(name for config in suite.configs for name in config.libraries)),
                "seeds": suite.default_seeds,
                "cells": count_cells(suite),
                "estimate": minutes or None,
                "description": suite.description,
            }
        )
    _tell_of_broken(SUITES)
    return Inventory("Suites", tuple(records))


def list_metrics(request: MetricsRequest) -> Inventory:  # noqa: ARG001 (it has no parameters)
    from boosters_eval.metrics import METRICS  # noqa: PLC0415 (keeps other lists fast)

    records = [
        {
            "metric": name,
            "tasks": sorted(task.value for task in declared.tasks),
            "better": "higher" if declared.higher_is_better else "lower",
            "aliases": list(declared.aliases),
            "description": declared.summary,
        }
        for name, declared in METRICS.items()
    ]
    return Inventory("Metrics", tuple(records))


def _tell_of_broken(registry: Registry[Any]) -> None:
    """Note the entries of installed packages that could not be loaded."""
    for name, reason in registry.broken.items():
        tell(f"Note: the {registry.kind} '{name}' of an installed package {reason}")
