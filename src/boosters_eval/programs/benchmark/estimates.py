"""How long cells will take, from what such cells took before; nothing scientific is imported here."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING

from boosters_eval.core.errors import ConfigError
from boosters_eval.programs.benchmark.suites import cost_key
from boosters_eval.runners.parameters import BoosterType, TrainingConfig

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from boosters_eval.engine.cell import Cell

_ENOUGH = 0.5  # of the cells must be known, or nothing is estimated


def costs_by_key(seconds: Mapping[tuple[str, str, str, str], float]) -> dict[str, float]:
    """What the history knows (by data set, booster, library and training), by `cost_key`."""
    costs = {}
    for (dataset, booster, library, training), value in seconds.items():
        with suppress(ConfigError, ValueError):  # parameters that this version does not know are skipped
            parameters = TrainingConfig.model_validate_json(training)
            costs[cost_key(dataset, BoosterType(booster), parameters, library)] = value
    return costs


def seconds_by_key(cells: Iterable[Cell], costs: Mapping[str, float]) -> dict[str, float]:
    """The seconds that each cell will take, by its key; a cell like none before takes the mean of the others.

    Empty unless half of the cells are known. A build of which nothing is known takes as long as its library did.
    """
    kinds: dict[tuple[str, str], float | None] = {}
    keys: dict[str, tuple[str, str]] = {}
    for cell in cells:
        kind = keys[cell.key] = (cell.spec.name, cell.target.name)
        if kind not in kinds:
            kinds[kind] = _known(cell, costs)
    known = [value for kind in keys.values() if (value := kinds[kind]) is not None]
    if not known or len(known) < _ENOUGH * len(keys):
        return {}
    mean = math.fsum(known) / len(known)
    return {key: mean if (value := kinds[kind]) is None else value for key, kind in keys.items()}


def _known(cell: Cell, costs: Mapping[str, float]) -> float | None:
    from boosters_eval.programs.benchmark.fit import Fit  # noqa: PLC0415 (loads numpy)
    from boosters_eval.programs.benchmark.spec import FitSpec  # noqa: PLC0415 (loads numpy)

    spec = cell.spec
    if not isinstance(spec, FitSpec) or spec.workload != Fit.name:  # one that does more takes longer
        return None
    found = (
        costs.get(cost_key(spec.dataset, spec.booster_type, spec.training, name))
        for name in (cell.target.name, cell.target.library)
    )
    return next((value for value in found if value is not None), None)
