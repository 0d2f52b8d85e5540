"""From a request to the plan: both builds, and a cell per build for each thing that a version must go on doing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import BuildImportError, ConfigError, MissingLibraryError
from boosters_eval.core.files import find_home
from boosters_eval.core.terms import named, tell, the
from boosters_eval.core.text import join_words
from boosters_eval.engine.folder import RunFolder
from boosters_eval.engine.plan import CellRef, Exclusion, Plan
from boosters_eval.engine.session import check_names
from boosters_eval.engine.settings import RunSettings
from boosters_eval.metrics.task import Task
from boosters_eval.programs.benchmark.benchmarks import Benchmarks, make_comparison
from boosters_eval.programs.benchmark.compare import read_data_settings, several
from boosters_eval.programs.benchmark.planning import FitInputs, fit_specs, prepare_seeds
from boosters_eval.programs.benchmark.request import Settings
from boosters_eval.programs.benchmark.spec import FitSpec
from boosters_eval.programs.benchmark.suites import resolve_suite
from boosters_eval.programs.upgrade.matrix import UpgradeCase, list_matrix, vary
from boosters_eval.programs.upgrade.project import Project, read_project
from boosters_eval.programs.upgrade.workload import UpgradeSpec, as_asked
from boosters_eval.runners import RUNNERS
from boosters_eval.runners.builds.install import resolve_build
from boosters_eval.runners.builds.reference import is_version, library_name
from boosters_eval.runners.config import BenchmarkConfig, derive_seeds
from boosters_eval.runners.installed import target_of
from boosters_eval.runners.parameters import BoosterType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boosters_eval.engine.cell import Cell, Target
    from boosters_eval.programs.upgrade.request import UpgradeRequest
    from boosters_eval.runners.base import Runner

UPGRADE = "upgrade"  # what these runs are read as
OLD, NEW = "old", "new"
INSTALLED = "installed"
FIRST = derive_seeds(1)[0]  # the split whose models are saved, and which is trained again where something changed
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
    project: Project
    notes: tuple[str, ...] = ()

    def locate(self, plan: Plan) -> UpgradeInputs:
        """The same data for another plan, which has a folder of its own."""
        return replace(self.inputs, arrays=locate_arrays(self.request, plan))


def prepare_upgrade(request: UpgradeRequest) -> PreparedUpgrade:
    check_names(request)
    library = RUNNERS[library_name(request.library)].name
    project = read_project(request, library)
    cells, notes = choose_cells(request, library, project)
    runners = {side: _find_side(request, side) for side in (OLD, NEW)}
    settings = Settings(
        **{name: getattr(request, name) for name in RunSettings.parameters}, timing_mode=True, measure_memory=True
    ).replace(threads=1, warmup=0)
    configs = tuple(_configure(cell, request.seeds) for cell in cells)
    prepared = prepare_seeds(Benchmarks(UPGRADE, configs, runners=runners), request.seeds, settings)
    by_name = {cell.name: cell for cell in cells}
    edition = runners[OLD].version() or ""
    specs = [
        _specify(spec, by_name[spec.name], library, edition=edition, native=project.native)
        for spec in fit_specs(prepared.plan).values()
    ]
    targets = {side: target_of(runner) for side, runner in runners.items()}
    plan = _leave_out_idle(prepared.plan, specs, runners[OLD], list(targets.values()))
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
        project,
        (*notes, *project.notes),
    )


def _leave_out_idle(found: Plan, specs: Sequence[UpgradeSpec], runner: type[Runner], targets: Sequence[Target]) -> Plan:
    """The plan without cells that show nothing: the seed does not decide, or what they ask for has no effect."""
    reasons = {spec.name: _find_idle(runner, spec) for spec in specs}
    refs = [ref for ref in found.refs if not reasons[found.specs[ref.spec].name]]
    excluded = [Exclusion(spec=name, target=OLD, reason=why) for name, why in reasons.items() if why]
    return Plan.of(UPGRADE, specs, refs, (*found.excluded, *excluded), targets)


def _find_idle(runner: type[Runner], spec: UpgradeSpec) -> str | None:
    """What a library says itself of the same seed, or of a parameter that it does not have."""
    request = spec.request(0)
    marks = runner.translate(request).marks
    idle = (mark.reason for mark in marks if mark.kind == "unsupported" and mark.parameter in (spec.asked or ()))
    return as_asked(runner, spec).translate(request).nondeterministic or next(idle, None)


def choose_cells(request: UpgradeRequest, library: str, project: Project) -> tuple[list[UpgradeCase], tuple[str, ...]]:
    """The matrix, the benchmarks of a suite, or what the matrix does, on data of the user."""
    notes: tuple[str, ...] = ()
    if request.suite is not None:
        suite, _ = resolve_suite(request.suite, builds=False, home=request.home)
        cells = [_of_suite(config) for config in suite.configs]
    elif request.datasets:
        found = make_comparison(
            several(request.datasets),
            _ANY_LIBRARY,
            task=request.task,
            data=read_data_settings(request),
            target=request.target,
            home=request.home,
        )
        cells, notes = [cell for config in found.configs for cell in vary(config.dataset)], found.notes
    else:
        cells = list_matrix(library)
    if project.native is None:
        return cells, notes
    if request.suite is None:  # only the data differ
        cells = [cell for cell in cells if not cell.asked and not cell.native and cell.booster is BoosterType.GBDT]
    fitting = [cell for cell in cells if cell.dataset.task in project.tasks]
    if request.datasets and len(fitting) < len(cells):
        wrong = next(cell.dataset for cell in cells if cell not in fitting)
        words = join_words((task.value for task in Task if task in project.tasks), "or")
        raise ConfigError(
            f"{the('params')} must have an objective for the data: '{project.objective}' is for {words}, and"
            f" {wrong.name} is taken for {wrong.task.value}, which {named('task')} can change."
        )
    if not fitting:
        raise ConfigError(f"{the('params')} must have an objective for some of the data. Got '{project.objective}'.")
    if project.stopping is not None:
        stopping = {"early_stopping_rounds": project.stopping}
        fitting = [replace(cell, asked={**cell.asked, **stopping}) for cell in fitting]
    return fitting, notes


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
    spec: FitSpec, cell: UpgradeCase, library: str, *, edition: str, native: Mapping[str, Any] | None
) -> UpgradeSpec:
    fields = {name: getattr(spec, name) for name in FitSpec.model_fields if name not in ("workload", "centered")}
    own = dict(cell.native.get(library, {}))
    return UpgradeSpec(
        **fields,
        edition=edition,
        asked=cell.names if cell.config is None else None,
        passed=own if native is None else dict(native),
        only_native=native is not None,
        saves=FIRST,
    )


def locate_arrays(request: UpgradeRequest, plan: Plan) -> Path:
    return RunFolder(find_home(request.home).absolute() / "runs" / plan.run_id).arrays


def plan_again(prepared: PreparedUpgrade, native: Mapping[str, Mapping[str, Any]], sides: Sequence[str]) -> Plan:
    """The first split of some cells once more, with further native parameters by the cell's name, which it keeps."""
    chosen = [spec for spec in prepared.plan.specs if isinstance(spec, UpgradeSpec) and spec.name in native]
    specs = [spec.replace(saves=None, passed={**spec.passed, **native[spec.name]}) for spec in chosen]
    place = {spec.name: at for at, spec in enumerate(specs)}
    refs = [
        CellRef(place[name], *ref[1:])
        for ref in prepared.plan.refs
        if (name := prepared.plan.specs[ref.spec].name) in place and ref.target in sides and ref.seed == FIRST
    ]
    return Plan.of(UPGRADE, specs, refs, (), [prepared.targets[side] for side in sides])
