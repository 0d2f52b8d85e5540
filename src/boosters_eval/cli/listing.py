"""The commands `list datasets|libraries|suites|metrics`."""

from collections.abc import Callable
from typing import Annotated, Any

import typer

from boosters_eval.cli.output import note, print_json, print_rows, say

listing = typer.Typer(
    name="list", help="List data sets, libraries, suites and metrics.", no_args_is_help=True, rich_markup_mode=None
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def _show(records: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        print_json(records)
    elif records:
        print_rows(list(records[0]), [[_text(value) for value in record.values()] for record in records])


def _note_broken(registry: Any) -> None:
    """Note the entries of installed packages that could not be loaded."""
    for name, reason in registry.broken.items():
        note(f"Note: the {registry.kind} '{name}' of an installed package {reason}")


def _text(value: Any) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}".replace(",", " ")
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "-"
    return str(value)


@listing.command()
def libraries(*, json: AsJson = False) -> None:
    """Libraries: version, boosters and tasks, or why unavailable."""
    from boosters_eval.metrics.task import Task
    from boosters_eval.runners import RUNNERS, FitRequest
    from boosters_eval.runners.parameters import BoosterType, TrainingConfig

    records = []
    for name, runner in RUNNERS.items():
        missing = runner.missing()
        can = _able(runner, FitRequest, BoosterType, Task, TrainingConfig())
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
    _note_broken(RUNNERS)
    _show(records, as_json=json)


def _able(runner: Any, request: Callable[..., Any], boosters: Any, tasks: Any, training: Any) -> dict[str, list[str]]:
    """For each booster, the tasks that a runner supports."""
    return {
        kind.value: [
            task.value
            for task in tasks
            if runner.unsupported(
                request(task=task, training=training, booster_type=kind, n_classes=3, quantiles=(0.5,))
            )
            is None
        ]
        for kind in boosters
    }


@listing.command()
def datasets(
    *,
    every: Annotated[bool, typer.Option("--all", help="Also the generated problems of the gate suite.")] = False,
    json: AsJson = False,
) -> None:
    """Data sets: task, size, classes, source and availability."""
    from boosters_eval.datasets import DATASETS
    from boosters_eval.datasets.problems import PROBLEMS

    records = []
    for name, config in DATASETS.items():
        if name in PROBLEMS and not every:
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
    _note_broken(DATASETS)
    _show(records, as_json=json)
    if not (every or json):
        say(f"And {len(PROBLEMS)} generated problems, see: boosters-eval list datasets --all")


@listing.command()
def suites(*, json: AsJson = False) -> None:
    """Suites: what each would run, and the estimated time.

    The estimate comes from the history of this machine.
    """
    from boosters_eval.core.machine import physical_cores
    from boosters_eval.programs.benchmark.estimates import costs_by_key
    from boosters_eval.programs.benchmark.suites import SUITES, count_cells, estimate_seconds
    from boosters_eval.programs.history.query import seconds_by_cell

    history = costs_by_key(seconds_by_cell())
    records = []
    for name, suite in SUITES.items():
        seconds = estimate_seconds(suite, history, jobs=physical_cores())
        records.append(
            {
                "suite": name,
                "data sets": len({config.dataset.name for config in suite.configs}),
                "libraries": list(dict.fromkeys(name for config in suite.configs for name in config.libraries)),
                "seeds": suite.default_seeds,
                "cells": count_cells(suite),
                "estimate": None
                if seconds is None
                else f"{seconds:.0f} s"
                if seconds < 90
                else f"{seconds / 60:.0f} min",
                "description": suite.description,
            }
        )
    _note_broken(SUITES)
    _show(records, as_json=json)


@listing.command()
def metrics(*, json: AsJson = False) -> None:
    """Metrics: their tasks, and which direction is better."""
    from boosters_eval.metrics import METRICS

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
    _show(records, as_json=json)


def register(app: typer.Typer) -> None:
    """Add this group to the program."""
    app.add_typer(listing)
