"""Runs that explain models, as trackers are told of them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from boosters_eval.programs.benchmark.runs import BenchmarkKind
from boosters_eval.programs.importances.planning import IMPORTANCES
from boosters_eval.programs.importances.records import KINDS, Explanation
from boosters_eval.programs.importances.running import explanations_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boosters_eval.engine.runs import Competing
    from boosters_eval.programs.importances.records import Kind

_TOP = 10  # features of each kind


class ImportancesKind(BenchmarkKind):
    """The scores of the fits, and what their models hold to be most important."""

    workloads: ClassVar[frozenset[str]] = frozenset({IMPORTANCES})

    @cached_property
    def findings(self) -> Any:
        """The explanations, as `load_importances` gives them."""
        return explanations_of(self.run, self.folder.arrays)

    def parameters(self, cells: Competing) -> dict[str, Any]:
        """Those of a fit, and how importances were measured."""
        asked = cells.spec.model_dump(mode="json", include={"kinds", "permutations", "max_rows", "groups"})
        return {**super().parameters(cells), **asked}

    def summary(self, cells: Competing) -> dict[str, float | None]:
        """The mean importances of the most important features, by kind."""
        found = [result for result in cells.results if isinstance(result, Explanation)]
        return {f"{kind}.{feature}": value for kind in KINDS for feature, value in self._top(found, kind)}

    def _top(self, cells: list[Explanation], kind: Kind) -> Iterator[tuple[str, float]]:
        values = [found for cell in cells if (found := self.findings.importances(cell, kind)) is not None]
        if values:
            means = np.mean(values, axis=0)
            for place in np.argsort(-means, kind="stable")[:_TOP]:
                yield cells[0].units[place].name, float(means[place])

    def files(self) -> dict[str, str]:
        """The report, and all findings."""
        from boosters_eval.programs.importances.rendering import render  # noqa: PLC0415 (only at the end)

        document = self.findings.document()
        return {"report.html": render(document, "html"), "results.json": render(document, "json")}
