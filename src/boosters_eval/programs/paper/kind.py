"""Runs of a paper's targets, as trackers are told of them."""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from boosters_eval.core.text import escape_json
from boosters_eval.programs.benchmark.fit import Fit
from boosters_eval.programs.benchmark.kind import BenchmarkKind
from boosters_eval.programs.paper.evaluate import Evaluate, EvaluateOutcome, EvaluateSpec

if TYPE_CHECKING:
    from boosters_eval.engine.kinds import Competing
    from boosters_eval.engine.outcome import Outcome


class PaperKind(BenchmarkKind):
    """What was measured of each target, trained here or not. What the paper printed is in its specification alone."""

    workloads: ClassVar[frozenset[str]] = frozenset({Fit.name, Evaluate.name})

    @cached_property
    def findings(self) -> Any:
        """All values of each target, by metric."""
        return {
            cells.spec.name: {
                name: [value for numbers in found if (value := numbers.get(name)) is not None]
                for name in dict.fromkeys(name for numbers in found for name in numbers)
            }
            for cells in self.competing()
            if (found := [self.numbers(result) for result in cells.results])
        }

    def parameters(self, cells: Competing) -> dict[str, Any]:
        """Those of a fit with the paper's protocol, or what returned the metrics."""
        spec = cells.spec
        if not isinstance(spec, EvaluateSpec):
            return {**super().parameters(cells), **spec.model_dump(mode="json", include={"protocol"})}
        told = spec.model_dump(
            mode="json", include={"table", "row", "metrics", "binding", "model", "format", "n_threads"}
        )
        return {**told, "dataset": spec.dataset.name}

    def facts(self, cells: Competing) -> dict[str, Any]:
        """The digests of data, models and functions."""
        digests = cells.spec.digests if isinstance(cells.spec, EvaluateSpec) else {}
        return {**super().facts(cells), **{f"digest.{name}": digest for name, digest in digests.items()}}

    def numbers(self, result: Outcome) -> dict[str, float | None]:
        """Metrics and times."""
        if not isinstance(result, EvaluateOutcome):
            return super().numbers(result)
        return {"seconds": result.seconds, "n_test": result.n_test, **result.metrics}

    def files(self) -> dict[str, str]:
        """All values; the comparison with the paper needs its specification."""
        return {"measured.json": escape_json(json.dumps(self.findings, indent=1)) + "\n"}
