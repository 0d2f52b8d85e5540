"""The workload `binding`: one method, carried out by one backend on data that all backends share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import Ge
from pydantic import Field

from boosters_eval.core.errors import BoostersEvalError
from boosters_eval.core.files import compute_digest, dump_canonical
from boosters_eval.core.modules import address_of, load_address
from boosters_eval.engine.artifacts import save_array
from boosters_eval.engine.cell import Build, Cell, CellOutcome, Lane, Outcome, Sighting, Spec, Target
from boosters_eval.engine.clock import time_adaptively
from boosters_eval.engine.facts import format_now
from boosters_eval.engine.workload import Workload
from boosters_eval.programs.parity.backend import BACKENDS, Backend, BackendSession, TimedStep
from boosters_eval.programs.parity.method import BASE_SEED, GENERATORS, MethodSpec, Size, ensure_data

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray


_PHASES = ("prepare", "fit", "predict")
_JUDGING = {  # what only judges an outcome of a method
    *("description", "canonical", "oracle", "backends", "sizes", "metric", "tolerance", "binding_tolerance"),
    *("conventions", "jumps", "stochastic"),
}


class RefusedError(BoostersEvalError):
    """A backend that says, in a sentence, that it will not do what is asked."""


class InvalidPredictionError(BoostersEvalError):
    """A backend returned something that is not a prediction."""


class BindingSpec(Spec):
    """A method on data of one size, with everything that its outcome depends on but the backend."""

    workload: Literal["binding"] = "binding"
    alone: bool = True  # times are worth nothing beside other cells
    method: MethodSpec
    size: Size
    data_digest: str
    max_runs: Annotated[int, Ge(1)] = 40
    budget_s: float | None = None

    def identity(self) -> dict[str, Any]:
        """Without what only judges an outcome: another tolerance makes no measurement stale."""
        return self.model_dump(mode="json", exclude={"method": _JUDGING})

    @property
    def preload(self) -> tuple[str, ...]:
        """The generator, as a lane finds it: later runs use data that may have to be made first."""
        return (json.dumps(address_of(GENERATORS[self.method.data], "data generator"), sort_keys=True),)


class BindingOutcome(CellOutcome):
    """The prediction by its digest, and every time that was taken."""

    prediction: str  # the digest of the array in the artifacts
    shape: tuple[int, ...]
    repeatable: bool | None  # whether a second run on the same data gave the same bits; None: there was none
    protocol: str
    reported_ms: float
    timing_statistic: str
    n_runs: int
    total_runs: int
    stop_reason: str
    samples_ns: tuple[int, ...]
    phases_ns: dict[str, tuple[int, ...]]  # load, prepare, fit, predict: of every run
    versions: dict[str, str] = Field(default_factory=dict)
    threads_observed: int | None = None
    measured_at: str = ""  # of this cell: a run may be continued days later

    def with_sighting(self, sighting: Sighting) -> BindingOutcome:
        """The same, with the number of threads that were seen from outside."""
        return self.model_copy(update={"threads_observed": sighting.threads})

    def summary(self) -> str:
        return f"{self.reported_ms:.3g} ms ({self.timing_statistic} of {self.n_runs})"


class BindingWorkload(Workload):
    """The workload whose targets are backends."""

    name: ClassVar[str] = "binding"
    spec_type: ClassVar[type[Spec]] = BindingSpec
    outcome_type: ClassVar[type[Outcome]] = BindingOutcome
    makes: ClassVar[frozenset[str]] = frozenset({"data"})  # the same bytes everywhere, compared with the plan's digest

    @classmethod
    def target(cls, name: str) -> Target:
        """The backend with the versions of all that it stands on."""
        versions = BACKENDS[name].versions()
        digest = compute_digest(dump_canonical(versions), 16)
        return Target(name=name, build=Build(version=next(iter(versions.values()), ""), digest=digest))

    @classmethod
    def address(cls, target: Target) -> dict[str, Any]:
        return address_of(BACKENDS[target.name], "backend")

    @classmethod
    def imports(cls, target: Target) -> tuple[str, ...]:
        """This module; what the backend needs is imported by its own lane."""
        del target
        return ("boosters_eval.programs.parity.binding",)

    @classmethod
    def load(cls, lane: Lane, address: Mapping[str, Any]) -> type[Backend]:
        for text in lane.preload:
            generator = load_address(json.loads(text))
            GENERATORS.register(generator.name, generator, replace=True)
        backend: type[Backend] = load_address(address)
        backend.load()
        return backend

    @classmethod
    def run(
        cls, cell: Cell, loaded: type[Backend], inputs: Mapping[str, str], phase: Callable[[str], None]
    ) -> BindingOutcome:
        """Load, prepare, fit and predict, as often as the protocol wants; the first prediction is the one compared."""
        spec = cell.spec
        if not isinstance(spec, BindingSpec):
            raise TypeError(f"{cell} is not a cell of the workload 'binding'.")
        phase("start")
        session = loaded.session(spec.method, spec.method.parameters, spec.n_threads)
        try:
            work = _Work(spec, session, Path(inputs["data"]), phase)
            budget = None if spec.budget_s is None else round(spec.budget_s * 1e9)
            timing = time_adaptively(work, max_runs=spec.max_runs, budget_ns=budget)
        except RefusedError as error:
            raise RefusedError(str(error)) from error  # a failure is known by its type's name, not by a subclass
        finally:
            session.close()
        first, *others = work.predictions
        return BindingOutcome.of(
            cell,
            prediction=save_array(Path(inputs["artifacts"]), first),
            shape=first.shape,
            repeatable=others[0].tobytes() == first.tobytes() if others else None,
            protocol=timing.protocol,
            reported_ms=timing.reported_ms,
            timing_statistic=timing.statistic,
            n_runs=timing.n_runs,
            total_runs=timing.total_runs,
            stop_reason=timing.stop_reason,
            samples_ns=timing.samples_ns,
            phases_ns={name: tuple(times) for name, times in work.times.items()},
            versions=loaded.versions(),
            measured_at=format_now(),
        )


class _Work:
    """The runs of a cell. Predictions on the base data are kept; of the others only the times count."""

    def __init__(self, spec: BindingSpec, session: BackendSession, root: Path, phase: Callable[[str], None]) -> None:
        self.spec = spec
        self.session = session
        self.root = root
        self.phase = phase
        self.times: dict[str, list[int]] = {name: [] for name in ("load", *_PHASES)}
        self.predictions: list[NDArray[np.float64]] = []

    def __call__(self, offset: int) -> int:
        """One run on the data of the base seed plus the offset; the time of the phases that the method counts."""
        place, digest = ensure_data(self.root, self.spec.method, self.spec.size, BASE_SEED + offset)
        if offset == 0 and digest != self.spec.data_digest:
            raise RuntimeError(f"The data in {place} are not those of the plan.")
        self._step("load", lambda: self.session.load(place))
        taken = 0
        for name in _PHASES:
            step = self._step(name, getattr(self.session, name))
            taken += step.elapsed_ns if name in self.spec.method.timed else 0
        prediction = _checked(step.prediction)
        if self.predictions and prediction.shape != self.predictions[0].shape:
            shapes = f"shape {self.predictions[0].shape} in each run. Got {prediction.shape} instead"
            raise InvalidPredictionError(f"A prediction must have {shapes}.")
        if offset == 0:
            self.predictions.append(prediction)
        return taken

    def _step(self, name: str, do: Callable[[], TimedStep]) -> TimedStep:
        if len(self.times[name]) < 2:  # later runs repeat what is known to work
            self.phase(name)
        step = do()
        self.times[name].append(step.elapsed_ns)
        return step


def _checked(prediction: Any) -> NDArray[np.float64]:
    """The prediction as it is, if it is one: numbers, at least one, all finite. Nothing is reshaped."""
    array = np.asarray(prediction)
    if array.dtype.kind not in "fiub" or not array.size or not array.ndim:
        raise InvalidPredictionError(f"A prediction must be numbers. Got {array.dtype} of shape {array.shape} instead.")
    array = array.astype(np.float64)
    if not np.isfinite(array).all():
        raise InvalidPredictionError(f"A prediction must be finite. {int((~np.isfinite(array)).sum())} values are not.")
    return array
