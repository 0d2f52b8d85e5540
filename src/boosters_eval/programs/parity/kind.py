"""Runs of a method across backends, as trackers are told of them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from boosters_eval.engine.kinds import RunKind
from boosters_eval.programs.parity.binding import BindingOutcome, BindingSpec, BindingWorkload
from boosters_eval.programs.parity.data import GENERATORS
from boosters_eval.programs.parity.judging import Judge, times_of
from boosters_eval.programs.parity.references import ReferenceStore
from boosters_eval.programs.parity.rows import render_rows

if TYPE_CHECKING:
    from boosters_eval.engine.kinds import Competing
    from boosters_eval.engine.outcome import Outcome
    from boosters_eval.programs.parity.rows import ParityRow

_TIMES = ("reported_ms", "load_ms", "prepare_ms", "fit_ms", "predict_ms", "n_runs", "total_runs")
_DISTANCES = ("divergence", "max_abs", "relative_rmse", "rows_off", "binding_max_abs")
_WORDS = {
    *("verdict", "binding_verdict", "oracle", "divergence_metric", "convention", "message"),
    *("language", "timing_statistic", "stop_reason", "repeatable"),
}


class ParityKind(RunKind):
    """How far each backend is from its references, and how long it takes."""

    workloads: ClassVar[frozenset[str]] = frozenset({BindingWorkload.name})

    @cached_property
    def _rows(self) -> dict[str, ParityRow]:
        """The row of each cell, by its key, judged without storing anything: the program itself does that.

        Data of a generator that only the program knows, from a file of `--registry`, have no rows here.
        """
        specs = {
            spec.name: spec
            for spec in self.run.plan.specs
            if isinstance(spec, BindingSpec) and spec.method.data in GENERATORS
        }
        root = self.folder.path.parent.parent / "parity"
        rows = Judge(ReferenceStore(root / "oracles"), root, stores=False).rows(self.run, specs)
        cells = [cell.key for cell in self.run.plan.cells if cell.spec.name in specs]
        return dict(zip(cells, rows, strict=True))

    @cached_property
    def findings(self) -> Any:
        """The rows, as `parity run` writes them."""
        return list(self._rows.values())

    def parameters(self, cells: Competing) -> dict[str, Any]:
        """The method, the size of its data, and what counts as agreement."""
        spec = cells.spec
        if not isinstance(spec, BindingSpec):
            raise TypeError(f"{spec.name} is not a method.")
        method = spec.method
        return {
            "method": method.name,
            "size": str(spec.size),
            "n_threads": spec.n_threads,
            **{f"parameter.{name}": value for name, value in method.parameters.items()},
            **method.model_dump(
                mode="json", include={"canonical", "metric", "tolerance", "binding_tolerance", "timed"}
            ),
            "oracle": f"{method.oracle.backend} {method.oracle.version}" if method.oracle else None,
            "max_runs": spec.max_runs,
            "budget_s": spec.budget_s,
        }

    def facts(self, cells: Competing) -> dict[str, Any]:
        """The verdicts, and what they rest on."""
        rows = [self._rows[result.key] for result in cells.results if result.key in self._rows]  # one, or none
        told = {name: value for row in rows for name, value in row.model_dump(mode="json", include=_WORDS).items()}
        return {**cells.spec.model_dump(include={"data_digest"}), **told}

    def numbers(self, result: Outcome) -> dict[str, float | None]:
        """Times, and distances from the oracle and the canonical binding."""
        times = times_of(result) if isinstance(result, BindingOutcome) else {}
        row = self._rows.get(result.key)
        return {
            **{name: getattr(row, name, None) for name in _DISTANCES},
            **{name: times.get(name) for name in _TIMES},
        }

    def files(self) -> dict[str, str]:
        """The dashboard, the report, and the rows for `parity gate` and `parity render`."""
        from boosters_eval.programs.parity.dashboard import render_dashboard  # noqa: PLC0415 (only at the end)
        from boosters_eval.programs.parity.rendering import declared_backends, render_parity_json  # noqa: PLC0415
        from boosters_eval.programs.parity.report import build_parity_report  # noqa: PLC0415

        report = build_parity_report(self.findings, declared_backends(self.findings))
        return {
            "report.html": render_dashboard(report),
            "results.json": render_parity_json(report),
            "rows.csv": render_rows(self.findings),
        }
