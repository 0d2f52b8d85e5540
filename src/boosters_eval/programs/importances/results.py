"""The explanations of a run: what each cell recorded, and its arrays, loaded when they are asked for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from boosters_eval.core.errors import ConfigError, require
from boosters_eval.engine.artifacts import load_array
from boosters_eval.programs.importances.records import Explanation

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from numpy.typing import NDArray

    from boosters_eval.datasets.config import DataAudit
    from boosters_eval.programs.benchmark.records import BenchmarkError, RunMetadata, Unavailable, Unsupported
    from boosters_eval.programs.benchmark.results import ResultCollection
    from boosters_eval.programs.importances.document import ImportancesDocument
    from boosters_eval.programs.importances.records import Kind
    from boosters_eval.programs.importances.rendering import FrameName, ReportedFormat


@dataclass(frozen=True)
class Explanations:
    """The cells of one run that finished, those that failed, and what could not run. It never runs anything."""

    collection: ResultCollection  # the same cells as results of fits: scores, errors, and what is known of the run
    arrays: Path  # the folder of the run's arrays

    @cached_property
    def results(self) -> list[Explanation]:
        """The cells that finished, in the plan's order."""
        return [result for result in self.collection.results if isinstance(result, Explanation)]

    @property
    def errors(self) -> list[BenchmarkError]:
        """The cells that failed."""
        return self.collection.errors

    @property
    def unsupported(self) -> list[Unsupported]:
        """What a library cannot do."""
        return self.collection.unsupported

    @property
    def unavailable(self) -> list[Unavailable]:
        """Libraries that were asked for, but are not here."""
        return self.collection.unavailable

    @property
    def run_id(self) -> str | None:
        """The id of the run."""
        return self.collection.run_id

    @property
    def metadata(self) -> RunMetadata:
        """What is known of the run besides its cells."""
        return self.collection.metadata

    def document(self, top: int = 10) -> ImportancesDocument:
        """Everything that is told of the run: findings, tables, notes, with at most `top` features in the tables."""
        from boosters_eval.programs.importances.document import build_document  # noqa: PLC0415 (statistics, when asked for)

        require("top", top, int, "a whole number of features")
        if top < 1:
            raise ConfigError(f"The 'top' parameter must be at least 1. Got {top} instead.")
        return build_document(self, top)

    def report(self, format: ReportedFormat = "markdown", *, top: int = 10) -> str:  # noqa: A002 (as the command has it)
        """The report as markdown, json, csv or html."""
        from boosters_eval.programs.importances.rendering import render  # noqa: PLC0415 (statistics, when asked for)

        return render(self.document(top), format)

    def frame(self, about: FrameName = "importances") -> pd.DataFrame:
        """A table as a data frame: importances, agreement, checks, or correlated columns."""
        from boosters_eval.programs.importances.rendering import frame_of  # noqa: PLC0415 (statistics, when asked for)

        return frame_of(self.document(), about)

    @property
    def audits(self) -> dict[str, DataAudit]:
        """What was found in each data set before it was used, by name."""
        return self.collection.audits

    def array(self, digest: str) -> NDArray[Any]:
        """An array by its digest. One that is missing or was changed is a RunError."""
        return load_array(self.arrays, digest)

    def category_names(self, result: Explanation) -> dict[str, list[str]]:
        """The names of categories by column, in the order of their codes; empty where the data has none."""
        return {} if result.category_names is None else json.loads(self.array(result.category_names).tobytes())

    def measured(self, result: Explanation, kind: Kind) -> NDArray[np.float64] | None:
        """The array of a kind as the cell stored it (see `MeasuredKind`), or None where there is none."""
        found = result.kinds.get(kind)
        return None if found is None or found.array is None else self.array(found.array)

    def importances(self, result: Explanation, kind: Kind) -> NDArray[np.float64] | None:
        """One number for each unit: larger is more important. None where the library does not offer the kind.

        Permutation is the mean over the shuffles, gain and split are sums over the columns of a unit. SHAP is the mean
        over the rows of the absolute attribution to the unit, added up over the outputs.
        """
        values = self.measured(result, kind)
        if values is None:
            return None
        if kind == "permutation":
            return np.asarray(values.mean(axis=0))
        if kind == "shap":
            return np.asarray(np.abs(of_units(result, values[:, :-1])).mean(axis=0).sum(axis=-1))
        return of_units(result, values)


def of_units(result: Explanation, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values by column, (p,) or (n, p, outputs), added up to values by unit."""
    axis = min(1, values.ndim - 1)
    if all(unit.columns == (i,) for i, unit in enumerate(result.units)):
        return values
    return np.stack([values.take(unit.columns, axis).sum(axis) for unit in result.units], axis)
