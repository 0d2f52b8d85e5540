"""The workload `binding`: one method, carried out by one backend on data that all backends share."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import Ge
from pydantic import Field

from boosters_eval.core.errors import BoostersEvalError, describe_error
from boosters_eval.core.files import compute_digest, dump_canonical
from boosters_eval.core.modules import address_of, load_address
from boosters_eval.engine.artifacts import save_array
from boosters_eval.engine.cell import Build, Cell, CellOutcome, Lane, Outcome, Sighting, Spec, Target
from boosters_eval.engine.clock import SECOND, time_adaptively
from boosters_eval.engine.facts import format_now
from boosters_eval.engine.workload import Workload
from boosters_eval.programs.parity.backend import BACKENDS, Backend, BackendSession, TimedStep
from boosters_eval.programs.parity.method import BASE_SEED, GENERATORS, MethodSpec, Size, ensure_data
from boosters_eval.programs.parity.probes import change_inputs, lay_out_inputs, read_input

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray


_PHASES = ("prepare", "fit", "predict")
_JUDGING = {  # what only judges an outcome of a method
    *("description", "canonical", "oracle", "backends", "sizes", "metric", "tolerance", "binding_tolerance"),
    *("transformer", "conventions", "defects", "probes", "stochastic"),
}
COMPARED = 2  # further data sets on which predictions are compared, unless all are
_ROUND_RUNS = 5  # of each further round, the warm start included
_PROBED_NS = 2 * SECOND  # a reference that takes longer is not asked for what might be wrong with others


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
    compared: Annotated[int, Ge(0)] = COMPARED

    def identity(self) -> dict[str, Any]:
        """Without what only judges an outcome: another tolerance makes no measurement stale."""
        variants = [self.method.transforms, sorted(self.method.variants)]
        return {**self.model_dump(mode="json", exclude={"method": _JUDGING}), "variants": variants}

    @property
    def preload(self) -> tuple[str, ...]:
        """The generator, as a lane finds it: later runs use data that may have to be made first."""
        return (json.dumps(address_of(GENERATORS[self.method.data], "data generator"), sort_keys=True),)


class BindingOutcome(CellOutcome):
    """The predictions by their digests, and every time that was taken."""

    predictions: tuple[str, ...]  # the digests of the arrays in the artifacts, of the base data and of further ones
    shape: tuple[int, ...]
    n_sets: int  # unlike data sets that it was run on
    n_answers: int  # unlike predictions on them
    variants: dict[str, tuple[str, ...]] = Field(default_factory=dict)  # of the reference, by name
    untold: dict[str, str] = Field(default_factory=dict)  # why it has no prediction of a variant
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
        """Load, prepare, fit and predict, as often as the protocol wants; then predict what is compared besides.

        A further round takes a few more times in a process of its own.
        """
        spec = cell.spec
        if not isinstance(spec, BindingSpec):
            raise TypeError(f"{cell} is not a cell of the workload 'binding'.")
        phase("start")
        later = bool(cell.repeat.fold)
        session = loaded.session(spec.method, spec.method.parameters, spec.n_threads)
        try:
            work = _Work(spec, session, Path(inputs["data"]), phase)
            budget = None if spec.budget_s is None else round(spec.budget_s * 1e9)
            runs = min(spec.max_runs, _ROUND_RUNS) if later else spec.max_runs
            timing = time_adaptively(work, max_runs=runs, budget_ns=budget)
            times = {name: tuple(taken) for name, taken in work.times.items()}
            predicted = [work.predict(offset) for offset in range(1 if later else 1 + spec.compared)]
        except RefusedError as error:
            raise RefusedError(str(error)) from error  # a failure is known by its type's name, not by a subclass
        finally:
            session.close()
        store = partial(save_array, Path(inputs["artifacts"]))
        variants: dict[str, tuple[str, ...]] = {}
        untold: dict[str, str] = {}
        if not later and cell.target.name == spec.method.transforms and spec.n_threads == 1:
            phase("variants")
            probed = timing.samples_ns[-1] <= _PROBED_NS
            for name, predict in _list_variants(spec, loaded, Path(inputs["data"]), probed=probed):
                try:
                    variants[name] = tuple(map(store, predict()))
                except Exception as error:  # noqa: BLE001 (what it is asked for may be nonsense to it)
                    untold[name] = describe_error(error)
        return BindingOutcome.of(
            cell,
            predictions=tuple(map(store, predicted)),
            shape=predicted[0].shape,
            n_sets=len(set(work.data.values())),
            n_answers=len(set(work.answers.values())),
            variants=variants,
            untold=untold,
            repeatable=work.repeatable,
            protocol=timing.protocol,
            reported_ms=timing.reported_ms,
            timing_statistic=timing.statistic,
            n_runs=timing.n_runs,
            total_runs=timing.total_runs,
            stop_reason=timing.stop_reason,
            samples_ns=timing.samples_ns,
            phases_ns=times,
            versions=loaded.versions(),
            measured_at=format_now(),
        )


def _list_variants(
    spec: BindingSpec, backend: type[Backend], root: Path, *, probed: bool
) -> Iterator[tuple[str, Callable[[], list[NDArray[np.float64]]]]]:
    """What the reference predicts with other parameters, and from inputs that are changed; each in its own session."""
    method = spec.method
    places = [ensure_data(root, method, spec.size, BASE_SEED + offset)[0] for offset in range(1 + spec.compared)]
    for name, variant in method.variants.items():
        yield name, partial(_predict, spec, backend, places, {**method.parameters, **variant.changes})
    x = read_input(places[0]) if probed else None
    for name, changed in () if x is None else change_inputs(x):

        def predict(changed: NDArray[np.float64] = changed) -> list[NDArray[np.float64]]:
            with lay_out_inputs(places[0], changed) as place:
                return _predict(spec, backend, [place], method.parameters)

        yield name, predict


def _predict(
    spec: BindingSpec, backend: type[Backend], places: Sequence[Path], parameters: Mapping[str, Any]
) -> list[NDArray[np.float64]]:
    session = backend.session(spec.method, parameters, spec.n_threads)
    try:
        found = []
        for place in places:
            session.load(place)
            session.prepare()
            session.fit()
            found.append(_checked(session.predict().prediction))
        return found
    finally:
        session.close()


class _Work:
    """The runs of a cell. The first predictions on the data that are compared are kept, and of all others a digest."""

    def __init__(self, spec: BindingSpec, session: BackendSession, root: Path, phase: Callable[[str], None]) -> None:
        self.spec = spec
        self.session = session
        self.root = root
        self.phase = phase
        self.times: dict[str, list[int]] = {name: [] for name in ("load", *_PHASES)}
        self.predictions: dict[int, NDArray[np.float64]] = {}
        self.data: dict[int, str] = {}
        self.answers: dict[int, str] = {}
        self.repeatable: bool | None = None

    def predict(self, offset: int) -> NDArray[np.float64]:
        """What was predicted from the data of the base seed plus the offset, if need be now."""
        if offset not in self.predictions:
            self(offset)
        return self.predictions[offset]

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
        first = self.predictions.setdefault(0, prediction)
        if prediction.shape != first.shape:
            shapes = f"shape {first.shape} in each run. Got {prediction.shape} instead"
            raise InvalidPredictionError(f"A prediction must have {shapes}.")
        if offset in self.data and self.repeatable is None:
            self.repeatable = prediction.tobytes() == first.tobytes()
        if offset <= self.spec.compared:
            self.predictions.setdefault(offset, prediction)
        self.data[offset], self.answers[offset] = digest, compute_digest(prediction.tobytes(), 32)
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
