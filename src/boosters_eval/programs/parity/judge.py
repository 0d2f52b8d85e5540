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
from boosters_eval.programs.parity.diagnosis import CellEvidence, Diagnosis, describe_agreement, diagnose
from boosters_eval.programs.parity.method import (
    BASE_SEED,
    GENERATORS,
    Convention,
    Defect,
    DifferenceMetric,
    MethodSpec,
    Oracle,
    ensure_data,
    read_arrays,
)
from boosters_eval.programs.parity.probes import INPUT_PROBES
from boosters_eval.programs.parity.references import ReferenceKey, ReferenceRole, ReferenceStore, StoredReference
from boosters_eval.programs.parity.rows import ParityRow, render_rows
from boosters_eval.programs.parity.verdicts import (
    BindingStatus,
    Difference,
    IncomparableError,
    ParityVerdict,
    allow_gap,
    decide_verdict,
    measure_difference,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from boosters_eval.engine.cell import Cell
    from boosters_eval.engine.folder import Run

    Arrays = tuple[NDArray[np.float64], ...]

_JUDGED = (
    *("binding_verdict", "binding_max_abs", "verdict", "divergence", "tolerance", "max_abs", "relative_rmse"),
    *("rows_off", "n_compared", "message", "oracle", "divergence_metric", "convention", "cause", "diagnosis"),
)
_MEASURED = {
    *("reported_ms", "timing_statistic", "n_runs", "total_runs", "stop_reason", "samples_ns"),
    *("threads_observed", "repeatable", "predictions"),
}
_VARIANTS = {"variants", "untold"}  # of a reference that others are compared with under their conventions
_REFERENCE = {"versions", "predictions", "shape", "measured_at", "n_sets", "n_answers", *_VARIANTS}
_PRINTED = 300  # characters of what a process printed before it ended


class _Known(NamedTuple):
    """A reference with its predictions: for the base data, and for further ones."""

    reference: StoredReference
    arrays: Arrays
    folder: Path  # with the arrays of its variants

    def variant(self, name: str) -> Arrays:
        return tuple(load_array(self.folder, digest) for digest in self.reference.variants.get(name, ()))


class _Comparison(NamedTuple):
    """How far the predictions for each data set are from those of a reference."""

    known: _Known
    predictions: tuple[NDArray[np.float64], ...]
    metric: DifferenceMetric
    tolerance: float
    found: tuple[Difference, ...]

    @classmethod
    def of(cls, known: _Known, predictions: Arrays, metric: DifferenceMetric, tolerance: float) -> _Comparison:
        """Of as many data sets as both have."""
        pairs = list(zip(known.arrays, predictions, strict=False))
        found = tuple(measure_difference(*pair, metric, tolerance) for pair in pairs)
        return cls(known, tuple(one for _, one in pairs), metric, tolerance, found)

    @property
    def agrees(self) -> bool:
        return all(one.within(self.metric, self.tolerance) for one in self.found)

    @property
    def worst(self) -> int:
        """The data set that is farthest off."""
        return max(range(len(self.found)), key=lambda position: (self.found[position].excess, -position))


class Judge:
    """Judges the outcomes of a run. A reference that the run itself measured is used, and stored unless only told."""

    def __init__(self, store: ReferenceStore, root: Path, *, stores: bool = True) -> None:
        self.store, self.stores = store, stores
        self.root = root  # with the shared data and the arrays
        self._found: dict[ReferenceKey, _Known | str] = {}  # a text: why there is none

    def rows(self, run: Run, specs: Mapping[str, BindingSpec]) -> dict[str, ParityRow]:
        """A row for each cell of the first round, by its key."""
        cells: dict[tuple[str, str], list[Cell]] = {}
        for cell in run.plan.cells:
            if cell.spec.name in specs:
                cells.setdefault((cell.spec.name, cell.target.name), []).append(cell)
        for (name, target), rounds in cells.items():
            outcome = run.outcomes.get(rounds[0].key)
            if isinstance(outcome, BindingOutcome) and specs[name].n_threads == 1:
                with contextlib.suppress(RunError):  # its array is gone: its own row says so
                    self._keep(specs[name], target, outcome)
        return {
            rounds[0].key: self._row(run, specs[name], target, [run.outcomes.get(cell.key) for cell in rounds])
            for (name, target), rounds in cells.items()
        }

    def again(self, row: ParityRow, spec: BindingSpec) -> ParityRow:
        """A row of an earlier run under today's references, tolerances and conventions.

        One whose array is not here was measured elsewhere, and keeps the verdict that it got there.
        """
        if row.status is not BindingStatus.OK:
            return row
        try:
            judged = self._judge(spec, row.backend, row)
        except IncomparableError as error:
            judged = {"status": BindingStatus.FAILED, "message": str(error)}
        except RunError:
            return row
        return row.model_copy(update={**{name: ParityRow.model_fields[name].default for name in _JUDGED}, **judged})

    def _keep(self, spec: BindingSpec, backend: str, outcome: BindingOutcome) -> None:
        """Take what the canonical binding, the oracle, or who computes variants predicted with one thread."""
        method, oracle = spec.method, spec.method.oracle
        roles: list[ReferenceRole] = ["canonical"] if backend == method.canonical else []
        if oracle is not None and backend == oracle.backend and is_oracle(oracle, outcome.versions):
            roles.append("oracle")
        if backend == method.transforms and (oracle is None or backend != oracle.backend or "oracle" in roles):
            roles.append("transformed")
        for role in roles:
            key = _name_reference(role, spec)
            told = outcome.model_dump(include=_REFERENCE if role == "transformed" else _REFERENCE - _VARIANTS)
            reference = StoredReference(**key._asdict(), backend=backend, parameters=method.parameters, **told)
            if self.stores:
                self.store.save(reference, self._load(reference.digests))
            self._found[key] = _Known(reference, self._load(outcome.predictions), self.root / "arrays")

    def _row(self, run: Run, spec: BindingSpec, backend: str, rounds: list[Any]) -> ParityRow:
        """The row of all rounds. One that failed counts: what crashes now and then is no agreement.

        A failure has no time of its own, and must not look older than it may be: that of the last session.
        """
        last = (run.facts.resumed or (run.facts,))[-1].started_at
        outcome = next((one for one in rounds if isinstance(one, Failure)), rounds[0])
        at = "" if outcome is None else getattr(outcome, "measured_at", "") or last
        facts = {"run_id": run.plan.run_id, "measured_at": at, "host_json": _host(run, outcome)}
        if outcome is None:
            return make_row(spec, backend, BindingStatus.NOT_RUN, **facts)
        if isinstance(outcome, Failure):
            status = _status(outcome)
            signal = outcome.signal if status is BindingStatus.CRASHED else None
            which = f" In round {rounds.index(outcome) + 1} of {len(rounds)}." if outcome is not rounds[0] else ""
            return make_row(spec, backend, status, signal=signal, message=_told(outcome) + which, **facts)
        if self._is_stale(spec, backend, outcome):
            told = f"{outcome.n_sets} unlike data sets got {outcome.n_answers} unlike predictions."
            return make_row(spec, backend, BindingStatus.STALE, cause="stale", diagnosis=told, message=told, **facts)
        later = [one for one in rounds[1:] if isinstance(one, BindingOutcome)]
        if any(one.predictions != outcome.predictions[:1] for one in later):
            outcome = outcome.model_copy(update={"repeatable": False})
        try:
            judged = self._judge(spec, backend, outcome)
        except (IncomparableError, RunError) as error:
            return make_row(spec, backend, BindingStatus.FAILED, message=str(error), **facts)
        facts["rounds_ns"] = tuple(one.samples_ns for one in later)
        return make_row(spec, backend, BindingStatus.OK, **_times(outcome), **judged, **facts)

    def _is_stale(self, spec: BindingSpec, backend: str, outcome: BindingOutcome) -> bool:
        """Whether unlike data got the same prediction, although those of the reference are unlike.

        The reference itself is stale if all of its predictions are the same; a selection may well be.
        """
        if outcome.n_answers >= outcome.n_sets:
            return False
        oracle = spec.method.oracle
        reference = oracle.backend if oracle else spec.method.canonical
        known = self._reference("oracle" if oracle else "canonical", spec)
        if backend == reference or isinstance(known, str):
            return outcome.n_answers == 1 and spec.method.metric != "jaccard"
        return known.reference.n_answers >= known.reference.n_sets

    def _judge(self, spec: BindingSpec, backend: str, outcome: BindingOutcome | ParityRow) -> dict[str, Any]:
        predictions, method = self._load(outcome.predictions), spec.method
        own = _is_own(backend) or backend == method.canonical
        metric: DifferenceMetric = "jaccard" if method.metric == "jaccard" else "max_abs"
        main = self._compare("canonical", spec, predictions, metric, method.binding_tolerance) if own else None
        first = self._compare("oracle", spec, predictions, method.metric, method.tolerance) if method.oracle else None
        judging = main if isinstance(main, _Comparison) and not main.agrees else first
        judging = first if isinstance(first, _Comparison) and not first.agrees else judging
        excepted, untold = None, ""
        if isinstance(judging, _Comparison) and not judging.agrees:
            excepted, untold = self._find_exception(spec, backend, predictions, judging)
        told: dict[str, Any] = {"message": untold} if untold else {}
        explained = None
        if excepted is not None:
            explained = ParityVerdict.KNOWN_DEFECT if isinstance(excepted, Defect) else ParityVerdict.CONVENTION
        if isinstance(main, _Comparison):
            told["binding_verdict"] = decide_verdict(main.found, metric, method.binding_tolerance, explained=explained)
            told["binding_max_abs"] = max(one.max_abs for one in main.found)
        elif main is not None:
            told |= {"binding_verdict": ParityVerdict.ORACLE_MISSING, "message": main}
        if method.oracle is None:
            told["verdict"] = ParityVerdict.NO_ORACLE
        elif isinstance(first, _Comparison):
            told |= _tell_difference(first, method, explained)
        else:
            wanted = f"No reference of {method.oracle.backend} {method.oracle.version}: run it with one thread."
            told |= {"verdict": ParityVerdict.ORACLE_MISSING, "message": first or wanted}
        if excepted is not None:
            link = f" ({excepted.reference})" if isinstance(excepted, Defect) else ""
            told |= {"convention": excepted.sentence + link, "cause": excepted.name}
            told["diagnosis"] = f"agrees with {excepted.name}"
        elif isinstance(judging, _Comparison) and method.metric != "jaccard":
            found = self._diagnose(spec, judging, outcome.repeatable)
            told |= {"cause": found.name, "diagnosis": found.sentence} if found else {}
        elif told.get("verdict") is ParityVerdict.CROSS_CHECK:
            told["convention"] = method.stochastic
        return told

    def _load(self, digests: Iterable[str]) -> Arrays:
        return tuple(load_array(self.root / "arrays", digest) for digest in digests)

    def _compare(
        self, role: ReferenceRole, spec: BindingSpec, predictions: Arrays, metric: DifferenceMetric, tolerance: float
    ) -> _Comparison | str:
        """Against a reference; or why there is none."""
        known = self._reference(role, spec)
        return known if isinstance(known, str) else _Comparison.of(known, predictions, metric, tolerance)

    def _find_exception(
        self, spec: BindingSpec, backend: str, predictions: Arrays, judging: _Comparison
    ) -> tuple[Convention | None, str]:
        """What is declared of the backend, if the reference predicts the same by it; or why that is not known."""
        untold = ""
        for exception in spec.method.exceptions(backend):
            known = self._reference("transformed", spec)
            if isinstance(known, str):
                untold = known or f"No variants of {spec.method.transforms} are stored: run it with one thread."
                break
            base = _Comparison.of(judging.known, known.arrays, judging.metric, judging.tolerance)
            if not base.agrees:
                untold = f"{spec.method.transforms}, which computes the conventions, is itself off the reference."
                break
            arrays = known.variant(exception.name)
            if not arrays:
                reason = known.reference.untold.get(exception.name, "it was not asked for: run it again")
                untold = f"{spec.method.transforms} did not predict with {exception.name}: {reason}"
                continue
            changed = known._replace(arrays=arrays)
            variant = _Comparison.of(changed, predictions, judging.metric, judging.tolerance)
            if variant.agrees and len(variant.found) == len(judging.found):
                return exception, ""
        return None, untold

    def _diagnose(self, spec: BindingSpec, judging: _Comparison, repeatable: bool | None) -> Diagnosis | None:
        """What the difference looks like, on the data set that is farthest off."""
        worst, references = judging.worst, judging.known.arrays
        if judging.agrees:
            return describe_agreement(references[worst], judging.predictions[worst])
        variants: dict[str, tuple[str, NDArray[np.float64]]] = {}
        known = self._reference("transformed", spec)
        if not isinstance(known, str):
            sentences = {name: sentence for name, (sentence, _) in INPUT_PROBES.items()}
            sentences |= {name: variant.sentence for name, variant in spec.method.variants.items()}
            if not judging.found[0].within(judging.metric, judging.tolerance):
                worst = 0  # of which the reference predicted all variants
            for name in sentences:
                arrays_of = known.variant(name)
                if len(arrays_of) > worst:
                    variants[name] = sentences[name], arrays_of[worst]
        place = ensure_data(self.root / "data", spec.method, spec.size, BASE_SEED + worst)[0]
        arrays = read_arrays(place)
        marked = arrays.get("marked")
        reference = references[worst]
        evidence = CellEvidence(
            allowed=allow_gap(reference, judging.metric, judging.tolerance),
            x=arrays.get("X"),
            marked=None if marked is None or marked.shape != reference.shape[:1] else marked != 0,
            others=[other for position, other in enumerate(references) if position != worst],
            variants=variants,
            repeatable=repeatable,
        )
        return diagnose(reference, judging.predictions[worst], evidence)

    def _reference(self, role: ReferenceRole, spec: BindingSpec) -> _Known | str:
        """The reference, looked up once, or what is wrong with it. A damaged one costs only the cells that need it."""
        key, oracle = _name_reference(role, spec), spec.method.oracle
        if key not in self._found:
            try:
                found = self.store.find(key)
                if found is not None and role == "oracle" and oracle is not None:
                    wanted = found.backend == oracle.backend and is_oracle(oracle, found.versions)
                    found = found if wanted else None
                self._found[key] = (
                    "" if found is None else _Known(found, self.store.predictions(found), self.store.arrays)
                )
            except (FileFormatError, RunError) as error:
                self._found[key] = str(error)
        return self._found[key]


def _tell_difference(found: _Comparison, method: MethodSpec, explained: ParityVerdict | None) -> dict[str, Any]:
    """Gate 2, for everybody: the method's own metric and tolerance, on the data set that is farthest off."""
    worst = found.found[found.worst]
    stochastic = bool(method.stochastic)
    verdict = decide_verdict(found.found, method.metric, method.tolerance, explained=explained, stochastic=stochastic)
    return {
        "verdict": verdict,
        "oracle": f"{found.known.reference.backend} {found.known.reference.version}",
        "divergence_metric": method.metric,
        "divergence": worst.of(method.metric),
        "tolerance": method.tolerance,
        "max_abs": worst.max_abs,
        "relative_rmse": worst.relative_rmse,
        "rows_off": worst.rows_off,
        "n_compared": len(found.found),
    }


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
        return Judge(ReferenceStore(root / "oracles"), root, stores=False).rows(self.run, specs)

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
