"""From a request to the plan of a comparison whose models are asked what they rely on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import ConfigError, UnknownNameError, require
from boosters_eval.core.files import find_home
from boosters_eval.core.terms import the
from boosters_eval.datasets import open_stored
from boosters_eval.engine.folder import RunFolder
from boosters_eval.engine.plan import Plan
from boosters_eval.engine.session import check_names
from boosters_eval.programs.benchmark.benchmarks import make_comparison
from boosters_eval.programs.benchmark.compare import collect_arguments
from boosters_eval.programs.benchmark.planning import FitInputs, PreparedRun, check_devices, fit_specs, prepare
from boosters_eval.programs.benchmark.spec import FitSpec
from boosters_eval.programs.importances.records import KINDS, FeatureUnit, Kind
from boosters_eval.programs.importances.workload import ImportancesSpec, name_columns

if TYPE_CHECKING:
    from boosters_eval.engine.cell import Cell
    from boosters_eval.programs.importances.request import ImportancesRequest

    Groups = Mapping[str, Sequence[str | int]]

IMPORTANCES = "importances"  # what these runs are read as


@dataclass(frozen=True)
class ExplanationInputs(FitInputs):
    """Locates the data of each cell, and where it puts its arrays."""

    arrays: Path = Path()

    def __call__(self, cell: Cell, scratch: Path) -> dict[str, str]:
        return {**super().__call__(cell, scratch), "artifacts": str(self.arrays)}


def prepare_importances(request: ImportancesRequest) -> PreparedRun:
    """A comparison whose models are asked what they rely on."""
    check_names(request)
    prepared = prepare(make_comparison(**collect_arguments(request)), request.seeds, request)
    if prepared.growth is not None:
        raise ConfigError("The 'seeds' parameter of importances must be a count. Got 'auto' instead.")
    check_devices(prepared.plan)
    for spec in fit_specs(prepared.plan).values():
        if spec.targets:
            several = f"Got {len(spec.targets)} in {spec.dataset}"
            raise ConfigError(
                f"importances explain models of one target. {several}: name one, such as {spec.targets[0]}."
            )
    kinds, groups, found = choose_kinds(request.kinds), request.units, prepared.inputs
    specs = [
        ImportancesSpec(
            **{name: getattr(spec, name) for name in FitSpec.model_fields if name != "workload"},
            kinds=kinds,
            permutations=request.permutations,
            max_rows=request.max_rows,
            groups=_units(groups, name_columns(open_stored(found.stored[spec.dataset].path)), spec.dataset),
        )
        for spec in fit_specs(prepared.plan).values()
    ]
    plan = Plan.of(IMPORTANCES, specs, prepared.plan.refs, prepared.plan.excluded, prepared.plan.targets)
    arrays = RunFolder(find_home(prepared.settings.home).absolute() / "runs" / plan.run_id).arrays
    return replace(prepared, plan=plan, inputs=ExplanationInputs(found.stored, found.splitters, arrays))


def choose_kinds(given: str | Iterable[str]) -> tuple[Kind, ...]:
    """The kinds by their names, in the order in which they are reported."""
    names = given.split(",") if isinstance(given, str) else given
    require("kinds", names, Iterable, "names of importances")
    asked = [text for name in names if (text := str(name).strip())]
    for name in asked:
        if name not in KINDS:
            raise UnknownNameError("kind", name, list(KINDS))
    if not asked:
        raise ConfigError(f"{the('kinds')} must name one of {', '.join(KINDS)}. Got none instead.")
    return tuple(kind for kind in KINDS if kind in asked)


def _units(groups: Groups, names: tuple[str, ...], dataset: str) -> tuple[FeatureUnit, ...]:
    """The groups by the numbers of their columns. No column may be in two, and none may be named like a column."""
    require("groups", groups, Mapping, "a dict of names and columns")
    taken: dict[int, str] = {}
    units = []
    for group, members in groups.items():
        if group in names:
            raise ConfigError(f"The group '{group}' has the name of a column of {dataset}: choose another.")
        columns = [_column(member, names) for member in ([members] if isinstance(members, str) else members)]
        if not columns:
            raise ConfigError(f"The group '{group}' must have columns. Got none instead.")
        for column in columns:
            if column in taken:
                raise ConfigError(f"The column '{names[column]}' is in the groups '{taken[column]}' and '{group}'.")
            taken[column] = group
        units.append(FeatureUnit(name=group, columns=tuple(sorted(columns))))
    return tuple(units)


def _column(given: Any, names: tuple[str, ...]) -> int:
    if isinstance(given, int) and not isinstance(given, bool) and 0 <= given < len(names):
        return given
    if given not in names:
        raise UnknownNameError("column", str(given), list(names))
    return names.index(given)
