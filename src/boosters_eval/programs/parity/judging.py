"""From outcomes to rows: every prediction against the canonical binding and against the oracle."""

from __future__ import annotations

import contextlib
import json
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion

from boosters_eval.core.errors import ConfigError, FileFormatError, RunError
from boosters_eval.engine.artifacts import load_array
from boosters_eval.engine.outcome import Failure
from boosters_eval.programs.parity.backend import BACKENDS
from boosters_eval.programs.parity.binding import BindingOutcome, RefusedError
from boosters_eval.programs.parity.data import ensure_data, read_csv
from boosters_eval.programs.parity.process import WorkerError
from boosters_eval.programs.parity.references import StoredReference
from boosters_eval.programs.parity.rows import ParityRow
from boosters_eval.programs.parity.verdicts import BindingStatus, IncomparableError, ParityVerdict, difference, verdict

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from boosters_eval.engine.folder import Run
    from boosters_eval.engine.outcome import Outcome
    from boosters_eval.programs.parity.binding import BindingSpec
    from boosters_eval.programs.parity.method import Oracle
    from boosters_eval.programs.parity.references import ReferenceRole, ReferenceStore


_JUDGED_NUMBERS = (
    "binding_verdict",
    "binding_max_abs",
    "verdict",
    "divergence",
    "tolerance",
    "max_abs",
    "relative_rmse",
    "rows_off",
)
_PRINTED = 300  # characters of what a process printed before it ended
_JUDGED_WORDS = ("message", "oracle", "divergence_metric", "convention")


class _Known(NamedTuple):
    """A reference with its array."""

    reference: StoredReference
    array: NDArray[np.float64]


class Judge:
    """Judges the outcomes of a run. A reference that the run itself measured is used, and stored unless only told."""

    def __init__(self, store: ReferenceStore, root: Path, *, stores: bool = True) -> None:
        self.store, self.stores = store, stores
        self.root = root  # with the shared data and the arrays
        self._found: dict[tuple[ReferenceRole, str], _Known | None] = {}
        self._faults: dict[tuple[ReferenceRole, str], str] = {}
        self._marks: dict[str, NDArray[np.bool_] | None] = {}

    def rows(self, run: Run, specs: Mapping[str, BindingSpec]) -> list[ParityRow]:
        """One row per cell of the plan, in its order, that has one of these specs."""
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
            judged = self._judged(spec, row.backend, load_array(self.root / "arrays", row.prediction))
        except IncomparableError as error:
            judged = {"status": BindingStatus.FAILED, "message": str(error)}
        except RunError:
            return row
        return row.model_copy(update={**dict.fromkeys(_JUDGED_NUMBERS), **dict.fromkeys(_JUDGED_WORDS, ""), **judged})

    def _keep(self, spec: BindingSpec, backend: str, outcome: BindingOutcome) -> None:
        """Take what the canonical binding or the oracle predicted with one thread for a reference."""
        method = spec.method
        roles: list[ReferenceRole] = ["canonical"] if backend == method.canonical else []
        if (
            method.oracle is not None
            and backend == method.oracle.backend
            and is_oracle(method.oracle, outcome.versions)
        ):
            roles.append("oracle")
        for role in roles:
            reference = StoredReference(
                role=role,
                method=method.name,
                backend=backend,
                size=spec.size,
                parameters=method.parameters,
                parameters_digest=method.parameters_digest,
                data_digest=spec.data_digest,
                versions=outcome.versions,
                prediction=outcome.prediction,
                shape=outcome.shape,
                measured_at=outcome.measured_at,
            )
            known = _Known(reference, load_array(self.root / "arrays", outcome.prediction))
            if self.stores:
                self.store.save(*known)
            self._found[_place(role, spec)] = known

    def _row(self, run: Run, spec: BindingSpec, backend: str, outcome: Any) -> ParityRow:
        at = "" if outcome is None else getattr(outcome, "measured_at", "") or _last_session(run)
        facts = {"run_id": run.plan.run_id, "measured_at": at, "host_json": _host(run, outcome)}
        if outcome is None:
            return base_row(spec, backend, BindingStatus.NOT_RUN, **facts)
        if isinstance(outcome, Failure):
            return base_row(spec, backend, _status(outcome), signal=outcome.signal, message=_told(outcome), **facts)
        try:
            judged = self._judged(spec, backend, load_array(self.root / "arrays", outcome.prediction))
        except (IncomparableError, RunError) as error:
            return base_row(spec, backend, BindingStatus.FAILED, message=str(error), **facts)
        return base_row(spec, backend, BindingStatus.OK, **times_of(outcome), **judged, **facts)

    def _judged(self, spec: BindingSpec, backend: str, prediction: NDArray[np.float64]) -> dict[str, Any]:
        marked = self._marked(spec)
        return {
            **self._against_canonical(spec, backend, prediction, marked),
            **self._against_oracle(spec, backend, prediction, marked),
        }

    def _against_canonical(
        self, spec: BindingSpec, backend: str, prediction: NDArray[np.float64], marked: NDArray[np.bool_] | None
    ) -> dict[str, Any]:
        """Gate 1, for the project's own bindings: the largest absolute difference, unless a convention explains it."""
        if not _is_own(backend) and backend != spec.method.canonical:
            return {}
        known = self._reference("canonical", spec)
        if known is None:
            return {"binding_verdict": ParityVerdict.ORACLE_MISSING, "message": self._fault("canonical", spec)}
        method, limit = spec.method, spec.method.binding_tolerance
        found = difference(
            known.array, prediction, "jaccard" if method.metric == "jaccard" else "max_abs", limit, marked
        )
        word = verdict(
            found,
            "max_abs",
            limit,
            marked_rows=marked is not None,
            jumps=bool(method.jumps),
            convention=method.convention(backend),
            band_metric=method.metric,
        )
        return {"binding_verdict": word, "binding_max_abs": found.max_abs}

    def _against_oracle(
        self, spec: BindingSpec, backend: str, prediction: NDArray[np.float64], marked: NDArray[np.bool_] | None
    ) -> dict[str, Any]:
        """Gate 2, for everybody: the method's own metric and tolerance."""
        method = spec.method
        if method.oracle is None:
            return {"verdict": ParityVerdict.NO_ORACLE}
        known = self._reference("oracle", spec)
        if known is None:
            wanted = f"No reference of {method.oracle.backend} {method.oracle.version}: run it with one thread."
            return {"verdict": ParityVerdict.ORACLE_MISSING, "message": self._fault("oracle", spec) or wanted}
        found = difference(known.array, prediction, method.metric, method.tolerance, marked)
        convention = method.convention(backend)
        word = verdict(
            found,
            method.metric,
            method.tolerance,
            marked_rows=marked is not None,
            jumps=bool(method.jumps),
            convention=convention,
            stochastic=bool(method.stochastic),
        )
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

    def _reference(self, role: ReferenceRole, spec: BindingSpec) -> _Known | None:
        """The reference, looked up once. One that is damaged costs the cells that need it, and no others."""
        place = _place(role, spec)
        if place not in self._found:
            try:
                self._found[place] = self._stored(role, spec)
            except (FileFormatError, RunError) as error:
                self._found[place], self._faults[place] = None, str(error)
        return self._found[place]

    def _stored(self, role: ReferenceRole, spec: BindingSpec) -> _Known | None:
        method = spec.method
        found = self.store.find(role, method.name, spec.size, method.parameters_digest, spec.data_digest)
        if found is not None and role == "oracle" and method.oracle is not None:
            wanted = found.backend == method.oracle.backend and is_oracle(method.oracle, found.versions)
            found = found if wanted else None
        return None if found is None else _Known(found, self.store.array(found))

    def _fault(self, role: ReferenceRole, spec: BindingSpec) -> str:
        return self._faults.get(_place(role, spec), "")

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


def _place(role: ReferenceRole, spec: BindingSpec) -> tuple[ReferenceRole, str]:
    return role, f"{spec.method.name} {spec.size} {spec.data_digest}"


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


def _last_session(run: Run) -> str:
    """When the run was last continued: a failure has no time of its own, and must not look older than it may be."""
    return (run.facts.resumed or (run.facts,))[-1].started_at


def _told(failure: Failure) -> str:
    """What went wrong. A process that ended, its own or that of a program, said why on stderr if at all."""
    told = f"{failure.error_type}: {failure.error_message} (in {failure.phase})"
    printed = " ".join(failure.stderr_tail.split())
    ended = failure.traceback is None or failure.error_type == WorkerError.__name__
    return f"{told}. It printed: {printed[-_PRINTED:]}" if printed and ended else told


def _status(failure: Failure) -> BindingStatus:
    if failure.error_type == "Timeout" and failure.traceback is None:  # not an error of that name in the backend
        return BindingStatus.TIMEOUT
    if failure.signal is not None:
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


def times_of(outcome: BindingOutcome) -> dict[str, Any]:
    """What a row tells of a cell that finished, whatever it is judged to be."""
    phases = {f"{name}_ms": median(times) / 1e6 for name, times in outcome.phases_ns.items() if times}
    return {
        **phases,
        "reported_ms": outcome.reported_ms,
        "median_ms": outcome.reported_ms,
        "timing_statistic": outcome.timing_statistic,
        "timing_schema": outcome.protocol,
        "n_runs": outcome.n_runs,
        "total_runs": outcome.total_runs,
        "stop_reason": outcome.stop_reason,
        "samples_ns": outcome.samples_ns,
        "threads_observed": outcome.threads_observed,
        "repeatable": outcome.repeatable,
        "prediction": outcome.prediction,
        "versions_json": json.dumps(outcome.versions),
    }


def base_row(spec: BindingSpec, backend: str, status: BindingStatus, **facts: Any) -> ParityRow:
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
