"""Generated problems that differ in what must be learned and in what makes it hard, for suites that count data sets.

Every signal meets every difficulty once, so no two of them are one problem with another seed. The task rotates over the
grid. Only names and facts are here: the tables are made by `problem_tables`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from boosters_eval.datasets.config import DatasetConfig
from boosters_eval.metrics.task import Task

SIGNALS = {
    "lines": "a sum of lines",
    "steps": "a sum of steps",
    "products": "products of pairs of columns",
    "parity": "the parity of two thresholds, invisible in any single column",
    "bowl": "a bowl around a point",
    "ridge": "a ridge across a sum of columns",
    "corner": "one corner of the space that differs from the rest",
    "maximum": "the largest of several columns",
    "ratio": "a ratio of two columns",
    "waves": "waves along one column",
}
DIFFICULTIES = {
    "plain": "nothing else",
    "noisy": "as much noise as signal",
    "missing": "a fifth of the values missing",
    "categories": "two columns as categories in no order",
    "rounded": "five distinct values per column",
    "skewed": "columns with a long tail",
    "scaled": "columns of very different scales and signs",
    "redundant": "columns that nearly repeat others",
    "wide": "fifty columns, most without influence",
    "rare": "rare outliers, or a rare class",
    "few": "few rows",
}
_TASKS = (Task.REGRESSION, Task.BINARY, Task.MULTICLASS)
_CLASSES = {Task.REGRESSION: None, Task.BINARY: 2, Task.MULTICLASS: 3}
_REVISION = "1"


@dataclass(frozen=True)
class Problem:
    """One cell of the grid."""

    signal: str
    difficulty: str

    @property
    def name(self) -> str:
        """The name of its data set."""
        return f"problem_{self.signal}_{self.difficulty}"

    @property
    def key(self) -> tuple[int, int]:
        """Its place in the grid, from which its random stream and its task follow."""
        return list(SIGNALS).index(self.signal), list(DIFFICULTIES).index(self.difficulty)

    @property
    def task(self) -> Task:
        """The task, in turn."""
        return _TASKS[sum(self.key) % len(_TASKS)]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return 300 if self.difficulty == "few" else 1_000, 50 if self.difficulty == "wide" else 8

    @property
    def categorical(self) -> tuple[int, ...]:
        """The positions of categorical columns."""
        return (0, 1) if self.difficulty == "categories" else ()


PROBLEMS = {
    problem.name: problem
    for problem in (Problem(signal, difficulty) for signal in SIGNALS for difficulty in DIFFICULTIES)
}


def _load(problem: Problem) -> Any:
    from boosters_eval.datasets import problem_tables  # noqa: PLC0415 (numpy is for loading, not for listing)

    return problem_tables.generate_problem(problem)


def problem_configs() -> list[DatasetConfig]:
    """The data sets of the grid."""
    return [
        DatasetConfig(
            name=name,
            task=problem.task,
            loader=partial(_load, problem),
            n_classes=_CLASSES[problem.task],
            n_samples=problem.shape[0],
            n_features=problem.shape[1],
            description=f"generated: {SIGNALS[problem.signal]}; {DIFFICULTIES[problem.difficulty]}",
            source="generated",
            license="none needed",
            categorical=problem.categorical,
            has_missing=problem.difficulty == "missing",
            recipe=f"problem-{_REVISION}",
        )
        for name, problem in PROBLEMS.items()
    ]
