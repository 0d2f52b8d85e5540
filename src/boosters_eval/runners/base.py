"""What a library's adapter is: it translates, builds, fits and predicts, and never times, scores or prints."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from boosters_eval.core.devices import cuda_devices, has_cuda_code
from boosters_eval.core.distributions import installed_version
from boosters_eval.core.errors import UnsupportedError
from boosters_eval.runners.parameters import BoosterType, Device, Mark, Profile, TrainingConfig

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from boosters_eval.engine.cell import Installation
    from boosters_eval.metrics.task import Task
    from boosters_eval.runners.config import BenchmarkConfig
    from boosters_eval.runners.result import BenchmarkResult

ImportanceKind = Literal["gain", "split"]
_SHARED_LIBRARIES = (".so", ".pyd", ".dll", ".dylib")


class _Lazy:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)


def lazy_module(name: str) -> Any:
    """A module that is imported when it is first used: a runner is known without its library and numpy."""
    return _Lazy(name)


if not TYPE_CHECKING:
    np = lazy_module("numpy")


@dataclass(frozen=True)
class FitRequest:
    """Everything a runner must know to translate, short of the data itself."""

    task: Task
    training: TrainingConfig
    booster_type: BoosterType = BoosterType.GBDT
    profile: Profile = Profile.PARITY
    n_classes: int | None = None
    quantiles: tuple[float, ...] = ()
    categorical: tuple[int, ...] = ()
    max_categories: int = 0  # the most distinct categories of any column, not counting missing values
    has_missing: bool = False
    weighted: bool = False
    n_columns: int = 0  # 0: not known
    n_threads: int = 1
    seed: int = 42
    native: Mapping[str, Any] = field(default_factory=dict)  # the library's own parameters, which win


@dataclass(frozen=True)
class TrainData:
    """Rows to learn from. `groups` holds a query id per row, equal ids adjacent.

    `valid` are rows to stop early on, held out from the training rows and the same for every library; they
    must be there when, and only when, early_stopping_rounds is set.
    """

    x: NDArray[np.float32]
    y: NDArray[np.float64]
    weights: NDArray[np.float64] | None = None
    groups: NDArray[np.int64] | None = None
    feature_names: tuple[str, ...] = ()
    valid: TrainData | None = None

    def take(self, rows: NDArray[np.int64]) -> TrainData:
        """These rows alone."""
        return replace(
            self,
            x=np.ascontiguousarray(self.x[rows]),
            y=self.y[rows],
            weights=None if self.weights is None else self.weights[rows],
            groups=None if self.groups is None else self.groups[rows],
        )


@dataclass(frozen=True)
class Translation:
    """The native parameters that will be used, and how faithful each canonical one is."""

    request: FitRequest
    native: dict[str, Any]
    marks: tuple[Mark, ...] = ()
    nondeterministic: str | None = None  # why the same seed may give a different model
    origins: dict[str, str] = field(default_factory=dict)  # why each native parameter is there


@dataclass(frozen=True)
class ModelFacts:
    """What was actually built."""

    n_trees: int | None = None  # rounds x outputs where a tree has one output
    n_leaves: int | None = None
    n_bytes: int | None = None  # serialized
    extra: dict[str, float] = field(default_factory=dict)


class Runner(ABC):
    """A library's adapter. All methods are class methods: a runner has no state."""

    name: ClassVar[str]
    module: ClassVar[str]  # what is imported
    distributions: ClassVar[tuple[str, ...]]  # what may have installed it, the preferred first
    install: ClassVar[str]  # what `pip install` is told
    min_python: ClassVar[tuple[int, int]] = (3, 11)
    # Modules that fits use beside the library's own, those that it imports on first use included: nothing may be
    # imported inside the clock, and what several libraries have in common is imported once for all of them.
    dependencies: ClassVar[tuple[str, ...]] = ("numpy",)
    explaining: ClassVar[tuple[str, ...]] = ()  # modules that `attributions` needs besides, imported only for it
    joint: ClassVar[tuple[Task, ...]] = ()  # tasks in which one tree serves all outputs
    # How to get a build that trains on CUDA devices; empty: the library, or its runner, knows no device but the CPU.
    cuda_build: ClassVar[str] = ""
    installation: ClassVar[Installation | None] = None  # None: the library of this environment
    labeled: ClassVar[str] = ""  # the library of this environment under another name; empty: its own

    @classmethod
    @abstractmethod
    def unsupported(cls, request: FitRequest) -> str | None:
        """Why this library cannot do what is asked, or None. Imports nothing."""

    @classmethod
    @abstractmethod
    def translate(cls, request: FitRequest) -> Translation:
        """Canonical parameters to native ones, by the table in mapping.py. Imports nothing."""

    @classmethod
    @abstractmethod
    def build(cls, translation: Translation, data: TrainData) -> Any:
        """The library's own data set."""

    @classmethod
    @abstractmethod
    def fit(cls, translation: Translation, dataset: Any) -> Any:
        """A trained model."""

    @classmethod
    @abstractmethod
    def predict(cls, translation: Translation, model: Any, x: NDArray[np.float32]) -> NDArray[Any]:
        """(n,) values or probabilities of class 1 or ranking scores; (n, k) for classes and quantiles."""

    @classmethod
    def inspect(cls, model: Any) -> ModelFacts:  # noqa: ARG003 (a library that cannot tell says nothing)
        """Trees and leaves actually built, and the size of the serialized model."""
        return ModelFacts()

    @classmethod
    def effective(cls, model: Any) -> dict[str, Any]:  # noqa: ARG003
        """The parameters that a model says it was trained with, defaults included; empty where it does not tell."""
        return {}

    @classmethod
    def raw(cls, translation: Translation, model: Any, x: NDArray[np.float32]) -> NDArray[Any]:
        """(n,) or (n, outputs) raw scores, before any link function: what attributions add up to."""
        if translation.request.task.is_classification:
            raise UnsupportedError(f"the runner of {cls.library()} gives no raw scores")
        return cls.predict(translation, model, x)

    @classmethod
    def importances(cls, translation: Translation, model: Any, kind: ImportanceKind) -> NDArray[Any]:  # noqa: ARG003
        """(p,): the sum of the gains of each column's splits, or their number. UnsupportedError: why there are none."""
        raise UnsupportedError(f"the runner of {cls.library()} offers no importances")

    @classmethod
    def attributions(cls, translation: Translation, model: Any, x: NDArray[np.float32]) -> NDArray[Any]:  # noqa: ARG003
        """(n, p + 1) or (n, p + 1, outputs): SHAP values of the raw score, the base value last; or UnsupportedError."""
        raise UnsupportedError(f"the runner of {cls.library()} offers no attributions")

    @classmethod
    def interactions(cls, translation: Translation, model: Any, x: NDArray[np.float32]) -> NDArray[Any]:  # noqa: ARG003
        """(n, p, p) or (n, p, p, outputs): SHAP interactions, which add up to attributions; or UnsupportedError."""
        raise UnsupportedError(f"the runner of {cls.library()} offers no interactions")

    @classmethod
    def load(cls) -> None:
        """Import the library, and nothing else: this runs in the process that all cells are forked from."""
        for name in (cls.module, *cls.dependencies):
            import_module(name)

    @classmethod
    def missing(cls) -> str | None:
        """Why the library cannot be used here, or None; found without importing it."""
        if sys.version_info < cls.min_python:
            needed = ".".join(map(str, cls.min_python))
            return f"needs Python {needed} or newer, this is {sys.version_info.major}.{sys.version_info.minor}"
        if find_spec(cls.module.partition(".")[0]) is None:
            return f"not installed: pip install {cls.install}"
        return None

    @classmethod
    def version(cls) -> str | None:
        """The installed version, found without importing the library."""
        return next(filter(None, map(installed_version, cls.distributions)), None)

    @classmethod
    def library(cls) -> str:
        """The library's name, of a build too, whose own name is its label."""
        return (cls.labeled or cls.name) if cls.installation is None else cls.installation.library

    @classmethod
    def under(cls, label: str) -> type[Self]:
        """This adapter for the library of this environment, under another name."""
        own = {"__doc__": cls.__doc__, "__module__": cls.__module__, "__qualname__": cls.__qualname__}
        return type(cls.__name__, (cls,), {**own, "name": label, "labeled": cls.library()})

    @classmethod
    def at(cls, label: str, installation: Installation) -> type[Self]:
        """This adapter for a build of the library. Another process finds it as this class and the installation."""
        own = {
            "__doc__": cls.__doc__,
            "__module__": cls.__module__,
            "__qualname__": cls.__qualname__,
            "name": label,
            "installation": installation,
            "version": classmethod(lambda _: installation.version),  # whatever the adapter does to find its own
            "missing": classmethod(lambda _: None),  # it was imported once before it became a build
        }
        return type(cls.__name__, (cls,), own)

    @classmethod
    def supports(cls, config: BenchmarkConfig) -> bool:
        """The RFC's question, answered by `unsupported`, and by whether the device is here."""
        from boosters_eval.runners.measure import request_for  # noqa: PLC0415 (keeps numpy out of start-up)

        return cannot_run(cls, request_for(config)) is None

    @classmethod
    def run(
        cls,
        config: BenchmarkConfig,
        x_train: NDArray[np.float32],
        y_train: NDArray[Any],
        x_valid: NDArray[np.float32],
        y_valid: NDArray[Any],
        seed: int,
    ) -> BenchmarkResult:
        """Fit and score once in this process; the engine does the same in an isolated one."""
        from boosters_eval.runners.measure import run_once  # noqa: PLC0415 (keeps numpy out of start-up)

        return run_once(cls, config, x_train, y_train, x_valid, y_valid, seed)


def cannot_run(runner: type[Runner], request: FitRequest, *, elsewhere: bool = False) -> str | None:
    """Why a library cannot do here what is asked: it never could, or the device is missing; None if it can.

    The device may be `elsewhere`: the machine that runs the cells looks for it itself.
    """
    return runner.unsupported(request) or find_device_fault(runner, request.training.device, elsewhere=elsewhere)


def find_device_fault(runner: type[Runner], device: Device, *, elsewhere: bool = False) -> str | None:
    """Why a library cannot use a device here, or None. Asked first, because some would use the CPU in silence."""
    if device is Device.CPU:
        return None
    if not runner.cuda_build:
        return "its runner knows no device but the CPU"
    found = cuda_devices()
    if not found.names and not elsewhere:
        return f"there is no CUDA device here: {found.fault}"
    code = [has_cuda_code(file) for file in _shared_libraries(runner)]
    if code and all(known is False for known in code):
        return f"this build of it has no code for CUDA devices: {runner.cuda_build}"
    return None


def _shared_libraries(runner: type[Runner]) -> Iterator[Path]:
    """The shared libraries of the package; none where they lie elsewhere, as conda puts them."""
    package = runner.module.partition(".")[0]
    build = runner.installation
    spec = find_spec(package) if build is None else PathFinder.find_spec(package, list(build.path))
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        yield from (path for path in Path(folder).rglob("*") if path.suffix in _SHARED_LIBRARIES and path.is_file())
