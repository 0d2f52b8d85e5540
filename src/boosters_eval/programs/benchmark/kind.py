"""Runs of benchmarks, as trackers are told of them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from boosters_eval.engine.kinds import RunKind
from boosters_eval.metrics.catalog import RESOURCES
from boosters_eval.programs.benchmark.fit import Fit
from boosters_eval.programs.benchmark.running import collect
from boosters_eval.programs.benchmark.spec import FitSpec
from boosters_eval.runners.result import BenchmarkResult, as_result

if TYPE_CHECKING:
    from boosters_eval.engine.kinds import Competing
    from boosters_eval.engine.outcome import Outcome

_COUNTS = ("n_trees_trained", "n_leaves_total")


class BenchmarkKind(RunKind):
    """Scores, times and sizes of fits."""

    workloads: ClassVar[frozenset[str]] = frozenset({Fit.name})

    @cached_property
    def findings(self) -> Any:
        """The results, as `load_run` gives them."""
        return collect(self.run)

    def parameters(self, cells: Competing) -> dict[str, Any]:
        """The canonical ones, what the library was given, and where that is not what was asked for."""
        spec = cells.spec
        if not isinstance(spec, FitSpec):
            raise TypeError(f"{spec.name} is not a fit.")
        parameters = {
            "dataset": spec.dataset,
            "task": spec.task.value,
            "booster": spec.booster_type.value,
            "variant": spec.variant,
            "profile": spec.profile.value,
            "primary_metric": spec.primary_metric,
            **spec.training.model_dump(mode="json"),
            "n_threads": spec.n_threads,  # resolved: -1 has become a number
            "timing_mode": spec.alone,
            **{f"split.{name}": value for name, value in spec.split.model_dump(mode="json").items()},
            **(_mapped(as_result(cells.results[0])) if cells.results else {}),
        }
        parameters.pop("seed", None)  # each cell has its own
        return parameters

    def facts(self, cells: Competing) -> dict[str, Any]:
        """The data, and why it may give other numbers another time."""
        first = next(iter(cells.results), None)
        return {
            "data_digest": getattr(cells.spec, "data_digest", None),
            "nondeterministic": getattr(first, "nondeterministic", None),
        }

    def numbers(self, result: Outcome) -> dict[str, float | None]:
        """Metrics, times, memory, sizes."""
        found = as_result(result)
        return {**found.metrics, **{name: getattr(found, name) for name in (*RESOURCES, *_COUNTS)}}

    def files(self) -> dict[str, str]:
        """The report and the results file."""
        from boosters_eval.programs.benchmark.tables import build_document  # noqa: PLC0415 (only at the end)
        from boosters_eval.reports import render_page  # noqa: PLC0415

        page = render_page(build_document(self.findings, "comparison"))
        return {"report.html": page, "results.json": self.findings.to_json()}


def _mapped(result: BenchmarkResult) -> dict[str, Any]:
    """What the library was given, without the cell's own seed, and where that is not what was asked for."""
    native = {name: value for name, value in (result.native_params or {}).items() if value != result.model_seed}
    return {
        **{f"native.{name}": value for name, value in native.items()},
        **{
            f"mark.{mark.parameter}": f"{mark.kind}: {mark.reason}" if mark.reason else mark.kind
            for mark in result.marks
        },
    }
