"""From a request to the plan: both builds, and a cell per build for each thing that a version must go on doing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import BuildImportError, ConfigError, MissingLibraryError
from boosters_eval.core.files import check_regular, find_home, load_json, read_text
from boosters_eval.core.terms import tell, the
from boosters_eval.core.text import clean, join_words
from boosters_eval.datasets import materialize
from boosters_eval.datasets.resolve import resolve_dataset
from boosters_eval.engine.folder import RunFolder
from boosters_eval.engine.plan import CellRef, Exclusion, Plan
from boosters_eval.engine.session import check_names
from boosters_eval.engine.settings import RunSettings
from boosters_eval.programs.benchmark.benchmarks import Benchmarks, make_comparison
from boosters_eval.programs.benchmark.compare import read_data_settings, several
from boosters_eval.programs.benchmark.paper_protocol import canonicalize_native, list_thread_names
from boosters_eval.programs.benchmark.planning import FitInputs, fit_specs, prepare_seeds
from boosters_eval.programs.benchmark.request import Settings
from boosters_eval.programs.benchmark.spec import FitSpec
from boosters_eval.programs.benchmark.suites import resolve_suite
from boosters_eval.programs.upgrade.matrix import UpgradeCase, list_matrix, vary
from boosters_eval.programs.upgrade.workload import SAVED, UpgradeSpec, as_asked
from boosters_eval.runners import RUNNERS
from boosters_eval.runners.builds.install import resolve_build
from boosters_eval.runners.builds.reference import is_version, library_name
from boosters_eval.runners.config import BenchmarkConfig, derive_seeds
from boosters_eval.runners.installed import target_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boosters_eval.datasets import Stored
    from boosters_eval.engine.cell import Cell, Target
    from boosters_eval.programs.upgrade.request import UpgradeRequest
    from boosters_eval.runners.base import Runner

UPGRADE = "upgrade"  # what these runs are read as
OLD, NEW = "old", "new"
INSTALLED = "installed"
_NAMED = 5  # files in a sentence
# What every model that a library writes as text has in it: others have the same endings.
_SIGNS = {
    "xgboost": b'"learner"',
    "lightgbm": b"num_tree_per_iteration=",
    "catboost": b'"model_info"',
    "boosters": b'"model_type"',
}
_TEXT = (".json", ".txt", ".lgb")
_ANY_LIBRARY = "sklearn"  # is always installed; the two builds take its place


@dataclass(frozen=True)
class UpgradeInputs(FitInputs):
    """Locates the data of each cell, and where it puts its model."""

    arrays: Path = Path()

    def __call__(self, cell: Cell, scratch: Path) -> dict[str, str]:
        return {**super().__call__(cell, scratch), "artifacts": str(self.arrays)}


@dataclass(frozen=True)
class PreparedUpgrade:
    """A plan that is ready to run."""

    request: UpgradeRequest
    plan: Plan
    inputs: UpgradeInputs
    targets: Mapping[str, Target]  # by side
    library: str
    distribution: str  # as a pin names it
    models: Mapping[str, Path] = field(default_factory=dict)  # of the user, by name
    rows: Stored | None = None  # that these are asked about
    notes: tuple[str, ...] = field(default=())

    def locate(self, plan: Plan) -> UpgradeInputs:
        """The same data for another plan, which has a folder of its own."""
        return replace(self.inputs, arrays=locate_arrays(self.request, plan))


def prepare_upgrade(request: UpgradeRequest) -> PreparedUpgrade:
    check_names(request)
    library = RUNNERS[library_name(request.library)].name
    cells, notes = choose_cells(request, library)
    native, left_out = read_native(request, library)
    models, rows, passed = find_models(request, library)
    runners = {side: _find_side(request, side) for side in (OLD, NEW)}
    settings = Settings(
        **{name: getattr(request, name) for name in RunSettings.parameters}, timing_mode=True, measure_memory=True
    ).replace(threads=1, warmup=0)
    configs = tuple(_configure(cell, request.seeds) for cell in cells)
    prepared = prepare_seeds(Benchmarks(UPGRADE, configs, runners=runners), request.seeds, settings)
    by_name = {cell.name: cell for cell in cells}
    edition = runners[OLD].version() or ""
    specs = [
        _specify(spec, by_name[spec.name], library, edition=edition, native=native)
        for spec in fit_specs(prepared.plan).values()
    ]
    targets = {side: target_of(runner) for side, runner in runners.items()}
    plan = _leave_out_chance(prepared.plan, specs, runners[OLD], list(targets.values()))
    inputs = UpgradeInputs(prepared.inputs.stored, prepared.inputs.splitters, locate_arrays(request, plan))
    known = RUNNERS[library].distributions
    distribution = library if library in known else known[0]
    return PreparedUpgrade(
        request,
        plan,
        inputs,
        targets,
        library,
        distribution,
        models,
        rows,
        (*notes, *left_out, *passed),
    )


def _leave_out_chance(
    found: Plan, specs: Sequence[UpgradeSpec], runner: type[Runner], targets: Sequence[Target]
) -> Plan:
    """The plan without cells in which a library says itself that the same seed gives another model."""
    chance = {spec.name: as_asked(runner, spec).translate(spec.request(0)).nondeterministic for spec in specs}
    refs = [ref for ref in found.refs if not chance[found.specs[ref.spec].name]]
    excluded = [Exclusion(spec=name, target=OLD, reason=why) for name, why in chance.items() if why]
    return Plan.of(UPGRADE, specs, refs, (*found.excluded, *excluded), targets)


def choose_cells(request: UpgradeRequest, library: str) -> tuple[list[UpgradeCase], tuple[str, ...]]:
    """The matrix, the benchmarks of a suite, or what the matrix does, on data of the user."""
    if request.suite is not None:
        suite, _ = resolve_suite(request.suite, builds=False, home=request.home)
        return [_of_suite(config) for config in suite.configs], ()
    if not request.datasets:
        every = list_matrix(library)
        return (_only_data(every) if request.params is not None else every), ()
    found = make_comparison(
        several(request.datasets),
        _ANY_LIBRARY,
        task=request.task,
        data=read_data_settings(request),
        target=request.target,
        home=request.home,
    )
    every = [cell for config in found.configs for cell in vary(config.dataset)]
    return (_only_data(every) if request.params is not None else every), found.notes


def _only_data(cells: Sequence[UpgradeCase]) -> list[UpgradeCase]:
    """Where the user brings the parameters, only the data differ."""
    return [cell for cell in cells if not cell.asked and not cell.native and cell.booster.value == "gbdt"]


def read_native(request: UpgradeRequest, library: str) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    """The native parameters of the user, by the names of our tables; seeds and threads are each cell's own."""
    if request.params is None:
        return None, ()
    given = request.params if isinstance(request.params, Mapping) else _read_params(Path(request.params))
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise ConfigError(f"{the('params')} must be a JSON object of names and values. Got {json.dumps(given):.60}.")
    threads = [name for name in given if name in list_thread_names(library)]
    found = canonicalize_native(library, {name: value for name, value in given.items() if name not in threads})
    seeds = [name for name in ("seed", "random_seed", "random_state") if name in found]
    notes = [f"The parameter '{name}' is left out: each cell has its own." for name in (*threads, *seeds)]
    return {name: value for name, value in found.items() if name not in seeds}, tuple(notes)


def find_models(request: UpgradeRequest, library: str) -> tuple[dict[str, Path], Stored | None, tuple[str, ...]]:
    """The saved models of the user by their paths in the folder, the rows, and what is no model that can be opened."""
    if request.models is None or request.rows is None:
        return {}, None, ()
    if library not in SAVED:
        raise ConfigError(f"{the('models')} cannot be used with {library}, whose models are saved by pickle alone.")
    endings = SAVED[library][0]
    files = sorted(path for path in request.models.rglob("*") if path.is_file())
    names = {path: clean(str(path.relative_to(request.models))) for path in files}
    found = {names[path]: path for path in files if path.suffix.lower() in endings and _is_model(path, library)}
    if not found:
        known = join_words(endings, "or")
        raise ConfigError(f"{the('models')} must be a folder with models of {library} ({known}). Got none instead.")
    dataset = resolve_dataset(request.rows, request.task, read_data_settings(request))
    left_out = join_words((names[path] for path in files if names[path] not in found), most=_NAMED)
    note = (f"Left out as no model of {library} in a format of its own: {left_out}.",) if left_out else ()
    return found, materialize(dataset), note


def _is_model(path: Path, library: str) -> bool:
    """Whether a file is a model of this library, as far as its text tells."""
    if path.suffix.lower() not in _TEXT:
        return True
    check_regular(path)
    content = path.read_bytes()
    return not content or _SIGNS[library] in content  # an empty file was to be one


def _read_params(path: Path) -> Any:
    return load_json(read_text(path), str(path))


def _find_side(request: UpgradeRequest, side: str) -> type[Runner]:
    """The adapter of one build under the name of its side; it is installed on first use."""
    text, runner = getattr(request, side), RUNNERS[library_name(request.library)]
    if text != INSTALLED:
        if not is_version(text) and not Path(text).expanduser().exists():
            name = side.upper()
            raise ConfigError(
                f"{name} must be a version such as 1.2.3, a wheel, a source folder, or '{INSTALLED}'. Got '{text}'"
                " instead: there is no file or folder of that name."
            )
        sign = "==" if is_version(text) else "@"
        reference, install = f"{side}={request.library}{sign}{text}", partial(resolve_build, home=request.home)
        try:
            return install(reference, isolated=request.isolated)
        except BuildImportError:
            if request.isolated or not is_version(text):
                raise
            tell(
                f"{request.library} {text} does not work with what is installed here: it gets dependencies of its own."
            )
            return install(reference, isolated=True)
    missing = runner.missing()
    if missing:
        raise MissingLibraryError(f"{runner.name}: {missing}.")
    return runner.under(side)


def _of_suite(config: BenchmarkConfig) -> UpgradeCase:
    return UpgradeCase(config.name, config.dataset, booster=config.booster_type, config=config)


def _configure(cell: UpgradeCase, seeds: int) -> BenchmarkConfig:
    about: dict[str, Any] = {"libraries": (OLD, NEW), "seeds": derive_seeds(seeds)}
    if cell.config is not None:
        return cell.config.replace(**about, variant=None)
    return BenchmarkConfig(
        name=cell.name,
        dataset=cell.dataset,
        task=cell.dataset.task,
        booster_type=cell.booster,
        training=cell.training,
        **about,
    )


def _specify(
    spec: FitSpec, cell: UpgradeCase, library: str, *, edition: str, native: dict[str, Any] | None
) -> UpgradeSpec:
    fields = {name: getattr(spec, name) for name in FitSpec.model_fields if name not in ("workload", "centered")}
    own = dict(cell.native.get(library, {}))
    return UpgradeSpec(
        **fields,
        edition=edition,
        asked=cell.names if cell.config is None else None,
        passed=own if native is None else native,
        only_native=native is not None,
        saves=derive_seeds(1)[0],
    )


def locate_arrays(request: UpgradeRequest, plan: Plan) -> Path:
    return RunFolder(find_home(request.home).absolute() / "runs" / plan.run_id).arrays


def plan_again(
    prepared: PreparedUpgrade, names: Sequence[str], sides: Sequence[str], native: Mapping[str, Any] | None = None
) -> Plan:
    """Some cells once more, perhaps with further native parameters; a spec keeps its name, and so its models' seeds."""
    chosen = [spec for spec in prepared.plan.specs if isinstance(spec, UpgradeSpec) and spec.name in names]
    specs = [spec.replace(saves=None, passed={**spec.passed, **(native or {})}) for spec in chosen]
    place = {spec.name: at for at, spec in enumerate(specs)}
    refs = [
        CellRef(place[name], *ref[1:])
        for ref in prepared.plan.refs
        if (name := prepared.plan.specs[ref.spec].name) in place and ref.target in sides
    ]
    return Plan.of(UPGRADE, specs, refs, (), [prepared.targets[side] for side in sides])
