"""From outcomes to rows: every prediction against the canonical binding and against the oracle."""

from __future__ import annotations

import contextlib
import json
from functools import cached_property
from statistics import median
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion

from boosters_eval.core.errors import ConfigError, FileFormatError, RunError
from boosters_eval.engine.artifacts import load_array
from boosters_eval.engine.cell import Failure, Outcome
from boosters_eval.engine.runs import Competing, RunKind
from boosters_eval.programs.parity.backend import BACKENDS, WorkerError
from boosters_eval.programs.parity.binding import BindingOutcome, BindingSpec, BindingWorkload, RefusedError
from boosters_eval.programs.parity.method import GENERATORS, DifferenceMetric, Oracle, ensure_data, read_csv
from boosters_eval.programs.parity.references import ReferenceKey, ReferenceRole, ReferenceStore, StoredReference
from boosters_eval.programs.parity.rows import ParityRow, render_rows
from boosters_eval.programs.parity.verdicts import (
    BindingStatus,
    IncomparableError,
    ParityVerdict,
    decide_verdict,
    measure_difference,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from boosters_eval.engine.folder import Run

_JUDGED = (
    *("binding_verdict", "binding_max_abs", "verdict", "divergence", "tolerance", "max_abs", "relative_rmse"),
    *("rows_off", "message", "oracle", "divergence_metric", "convention"),
)
_MEASURED = {
    *("reported_ms", "timing_statistic", "n_runs", "total_runs", "stop_reason", "samples_ns"),
    *("threads_observed", "repeatable", "prediction"),
}
_PRINTED = 300  # characters of what a process printed before it ended


class _Known(NamedTuple):
    """A reference with its array."""

    reference: StoredReference
    array: NDArray[np.float64]


class Judge:
    """Judges the outcomes of a run. A reference that the run itself measured is used, and stored unless only told."""

    def __init__(self, store: ReferenceStore, root: Path, *, stores: bool = True) -> None:
        self.store, self.stores = store, stores
        self.root = root  # with the shared data and the arrays
        self._found: dict[ReferenceKey, _Known | str] = {}  # a text: why there is none
        self._marks: dict[str, NDArray[np.bool_] | None] = {}

    def rows(self, run: Run, specs: Mapping[str, BindingSpec]) -> list[ParityRow]:
        cells = [cell for cell in run.plan.cells if cell.spec.name in specs]
        for cell in cells:
            outcome = run.outcomes.get(cell.key)
            if isinstance(outcome, BindingOutcome) and specs[cell.spec.name].n_threads == 1:
                with contextlib.suppress(RunError):  # its array is gone: its own row says so
                    self._keep(specs[cell.spec.name], cell.target.name, outcome)
        return [self._row(run, specs[cell.spec.name], cell.target.name, run.outcomes.get(cell.key)) for cell in cells]

    def again(self, row: ParityRow, spec: BindingSpec) -> ParityRow:
        """A row of an earlier run under today's references, tolerances and conventions.

        One whose array is not here was measured elsewhere, and keeps the verdict that it got there.
        """
        if row.status is not BindingStatus.OK:
            return row
        try:
            judged = self._judge(spec, row.backend, row.prediction)
        except IncomparableError as error:
            judged = {"status": BindingStatus.FAILED, "message": str(error)}
        except RunError:
            return row
        return row.model_copy(update={**{name: ParityRow.model_fields[name].default for name in _JUDGED}, **judged})

    def _keep(self, spec: BindingSpec, backend: str, outcome: BindingOutcome) -> None:
        """Take what the canonical binding or the oracle predicted with one thread for a reference."""
        method, oracle = spec.method, spec.method.oracle
        roles: list[ReferenceRole] = ["canonical"] if backend == method.canonical else []
        if oracle is not None and backend == oracle.backend and is_oracle(oracle, outcome.versions):
            roles.append("oracle")
        for role in roles:
            key = _name_reference(role, spec)
            told = outcome.model_dump(include={"versions", "prediction", "shape", "measured_at"})
            reference = StoredReference(**key._asdict(), backend=backend, parameters=method.parameters, **told)
            known = _Known(reference, load_array(self.root / "arrays", outcome.prediction))
            if self.stores:
                self.store.save(*known)
            self._found[key] = known

    def _row(self, run: Run, spec: BindingSpec, backend: str, outcome: Any) -> ParityRow:
        """A failure has no time of its own, and must not look older than it may be: that of the last session."""
        last = (run.facts.resumed or (run.facts,))[-1].started_at
        at = "" if outcome is None else getattr(outcome, "measured_at", "") or last
        facts = {"run_id": run.plan.run_id, "measured_at": at, "host_json": _host(run, outcome)}
        if outcome is None:
            return make_row(spec, backend, BindingStatus.NOT_RUN, **facts)
        if isinstance(outcome, Failure):
            status = _status(outcome)
            signal = outcome.signal if status is BindingStatus.CRASHED else None
            return make_row(spec, backend, status, signal=signal, message=_told(outcome), **facts)
        try:
            judged = self._judge(spec, backend, outcome.prediction)
        except (IncomparableError, RunError) as error:
            return make_row(spec, backend, BindingStatus.FAILED, message=str(error), **facts)
        return make_row(spec, backend, BindingStatus.OK, **_times(outcome), **judged, **facts)

    def _judge(self, spec: BindingSpec, backend: str, digest: str) -> dict[str, Any]:
        prediction, method = load_array(self.root / "arrays", digest), spec.method
        rules = {
            "marked_rows": self._marked(spec) is not None,
            "jumps": bool(method.jumps),
            "convention": method.convention(backend),
        }
        own = _is_own(backend) or backend == method.canonical
        judged = self._against_canonical(spec, prediction, rules) if own else {}
        return judged | self._against_oracle(spec, prediction, rules)

    def _against_canonical(
        self, spec: BindingSpec, prediction: NDArray[np.float64], rules: dict[str, Any]
    ) -> dict[str, Any]:
        """Gate 1, for the project's own bindings: the largest absolute difference, unless a convention explains it."""
        known = self._reference("canonical", spec)
        if isinstance(known, str):
            return {"binding_verdict": ParityVerdict.ORACLE_MISSING, "message": known}
        method, limit = spec.method, spec.method.binding_tolerance
        metric: DifferenceMetric = "jaccard" if method.metric == "jaccard" else "max_abs"
        found = measure_difference(known.array, prediction, metric, limit, self._marked(spec))
        word = decide_verdict(found, "max_abs", limit, band_metric=method.metric, **rules)
        return {"binding_verdict": word, "binding_max_abs": found.max_abs}

    def _against_oracle(
        self, spec: BindingSpec, prediction: NDArray[np.float64], rules: dict[str, Any]
    ) -> dict[str, Any]:
        """Gate 2, for everybody: the method's own metric and tolerance."""
        method, convention = spec.method, rules["convention"]
        if method.oracle is None:
            return {"verdict": ParityVerdict.NO_ORACLE}
        known = self._reference("oracle", spec)
        if isinstance(known, str):
            wanted = f"No reference of {method.oracle.backend} {method.oracle.version}: run it with one thread."
            return {"verdict": ParityVerdict.ORACLE_MISSING, "message": known or wanted}
        found = measure_difference(known.array, prediction, method.metric, method.tolerance, self._marked(spec))
        word = decide_verdict(found, method.metric, method.tolerance, stochastic=bool(method.stochastic), **rules)
        explained = {
            ParityVerdict.CONVENTION: convention.sentence if convention else "",
            ParityVerdict.BOUNDARY: method.jumps,
            ParityVerdict.CROSS_CHECK: method.stochastic,
        }
        return {
            "verdict": word,
            "oracle": f"{known.reference.backend} {known.reference.version}",
            "divergence_metric": method.metric,
            "divergence": found.of(method.metric),
            "tolerance": method.tolerance,
            "max_abs": found.max_abs,
            "relative_rmse": found.relative_rmse,
            "rows_off": found.rows_off,
            "convention": explained.get(word, ""),
        }

    def _reference(self, role: ReferenceRole, spec: BindingSpec) -> _Known | str:
        """The reference, looked up once, or what is wrong with it. A damaged one costs only the cells that need it."""
        key, oracle = _name_reference(role, spec), spec.method.oracle
        if key not in self._found:
            try:
                found = self.store.find(key)
                if found is not None and role == "oracle" and oracle is not None:
                    wanted = found.backend == oracle.backend and is_oracle(oracle, found.versions)
                    found = found if wanted else None
                self._found[key] = "" if found is None else _Known(found, self.store.array(found))
            except (FileFormatError, RunError) as error:
                self._found[key] = str(error)
        return self._found[key]

    def _marked(self, spec: BindingSpec) -> NDArray[np.bool_] | None:
        """The rows that were put on a boundary, if the data have such rows."""
        if spec.data_digest not in self._marks:
            file = ensure_data(self.root / "data", spec.method, spec.size)[0] / "marked.csv"
            self._marks[spec.data_digest] = read_csv(file) != 0 if file.exists() else None
        return self._marks[spec.data_digest]


def _is_own(backend: str) -> bool:
    """Whether it is a binding of the project under test; one that only another process knows is not."""
    found = BACKENDS.get(backend)
    return found is not None and found.own


def _name_reference(role: ReferenceRole, spec: BindingSpec) -> ReferenceKey:
    return ReferenceKey(role, spec.method.name, spec.size, spec.method.parameters_digest, spec.data_digest)


def is_oracle(oracle: Oracle, versions: Mapping[str, str]) -> bool:
    """Whether what ran is the declared version of the oracle; another version is no oracle."""
    try:
        return SpecifierSet(oracle.version).contains(next(iter(versions.values()), ""), prereleases=True)
    except InvalidSpecifier:
        raise ConfigError(
            f"The oracle's version must be a requirement such as '>=1.5'. Got '{oracle.version}'."
        ) from None
    except InvalidVersion:
        return False


def _told(failure: Failure) -> str:
    """What went wrong. A process that ended, its own or that of a program, said why on stderr if at all."""
    told = f"{failure.error_type}: {failure.error_message} (in {failure.phase})"
    printed = " ".join(failure.stderr_tail.split())
    ended = failure.traceback is None or failure.error_type == WorkerError.__name__
    return f"{told}. It printed: {printed[-_PRINTED:]}" if printed and ended else told


def _status(failure: Failure) -> BindingStatus:
    if failure.error_type == "Timeout" and failure.traceback is None:  # not an error of that name in the backend
        return BindingStatus.TIMEOUT
    if failure.signal is not None and failure.error_type != "MemoryLimit":  # which is no fault of the backend
        return BindingStatus.CRASHED
    return BindingStatus.REFUSED if failure.error_type == RefusedError.__name__ else BindingStatus.FAILED


def _host(run: Run, outcome: Outcome | Failure | None) -> str:
    """The machine that the outcome names, or as it was when the run began."""
    facts, named = run.facts, None if outcome is None else outcome.machine
    machine = facts.machine if named is None else run.machines[named].recorded()
    known = {
        "system": machine.get("os"),
        "architecture": machine.get("architecture"),
        "processor": machine.get("cpu_model"),
        "processors": machine.get("cpus_available"),
        "BLAS": machine.get("blas_backend"),
        "Python": facts.python,
        "boosters-eval": facts.boosters_eval,
        "commit": facts.git_sha,
    }
    return json.dumps({name: str(value) for name, value in known.items() if value})


def _times(outcome: BindingOutcome) -> dict[str, Any]:
    return {
        **{f"{name}_ms": median(times) / 1e6 for name, times in outcome.phases_ns.items() if times},
        **outcome.model_dump(include=_MEASURED),
        "median_ms": outcome.reported_ms,
        "timing_schema": outcome.protocol,
        "versions_json": json.dumps(outcome.versions),
    }


def make_row(spec: BindingSpec, backend: str, status: BindingStatus, **facts: Any) -> ParityRow:
    """A row with what is known of a cell before it runs."""
    found = BACKENDS.get(backend)
    return ParityRow(
        method=spec.method.name,
        backend=backend,
        n=spec.size.n,
        p=spec.size.p,
        threads=spec.n_threads,
        parameters_digest=spec.method.parameters_digest,
        data_digest=spec.data_digest,
        language=found.language if found is not None else "",
        own=_is_own(backend),
        status=status,
        **facts,
    )


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
        return list(self._rows.values())

    def parameters(self, cells: Competing) -> dict[str, Any]:
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
        rows = [self._rows[result.key] for result in cells.results if result.key in self._rows]  # one, or none
        told = {name: value for row in rows for name, value in row.model_dump(mode="json", include=_WORDS).items()}
        return {**cells.spec.model_dump(include={"data_digest"}), **told}

    def numbers(self, result: Outcome) -> dict[str, float | None]:
        times = _times(result) if isinstance(result, BindingOutcome) else {}
        row = self._rows.get(result.key)
        return {**{name: getattr(row, name, None) for name in _DISTANCES}, **{name: times.get(name) for name in _TIMES}}

    def files(self) -> dict[str, str]:
        """The page, the report as data, and the rows for `parity gate` and `parity render`."""
        from boosters_eval.programs.parity.catalog import list_declared  # noqa: PLC0415 (only at the end)
        from boosters_eval.programs.parity.findings import build_parity_report  # noqa: PLC0415

        report = build_parity_report(self.findings, list_declared(self.findings))
        return {
            "report.html": report.to_html(),
            "results.json": report.to_json(),
            "rows.csv": render_rows(self.findings),
        }
