"""From the cells of a run to findings: what is important, whether it can be believed, and how far libraries agree."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from boosters_eval.programs.importances.agreement import (
    RowsAgreement,
    add_readings,
    compare_rankings,
    find_disputed_rows,
    finite_or_none,
    observe,
    pick_most_disputed,
)
from boosters_eval.programs.importances.checks import check_library, find_correlated_columns
from boosters_eval.programs.importances.records import KINDS, BenchmarkFindings, FeatureImportance, SwarmFeature
from boosters_eval.reports.numbers import mean_and_std
from boosters_eval.stats.inference import doubled_ranks
from boosters_eval.stats.ranks import resampled_interval

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from boosters_eval.core.request import Repeat
    from boosters_eval.programs.importances.agreement import Cells
    from boosters_eval.programs.importances.records import DisputedRow, Explanation, Kind
    from boosters_eval.programs.importances.results import Explanations
    from boosters_eval.stats.inference import FloatArray

    Values = dict[str, dict[Repeat, FloatArray]]  # by library and repeat, one number per feature


MOST_POINTS = 150  # rows in the picture of attributions: 5 libraries with 10 features each are 7500 points
_SWARM = 20170707  # of the rows that are drawn there, the same for every run


def read_findings(explanations: Explanations, top: int = 10) -> tuple[BenchmarkFindings, ...]:
    """The findings on each benchmark of a run, in the order of the plan."""
    by_benchmark: dict[str, dict[str, dict[Repeat, Explanation]]] = {}
    for cell in explanations.results:
        by_benchmark.setdefault(cell.config_name, {}).setdefault(cell.library, {})[cell.repeat] = cell
    return tuple(_read_benchmark(explanations, name, cells, top) for name, cells in by_benchmark.items())


def _read_benchmark(explanations: Explanations, name: str, cells: Cells, top: int) -> BenchmarkFindings:
    every = [cell for by_repeat in cells.values() for cell in by_repeat.values()]
    first = every[0]
    repeats = list(dict.fromkeys(cell.repeat for cell in every))
    checks = [check for found in cells.values() for check in check_library(explanations, list(found.values()))]
    broken = {(check.library, check.kind) for check in checks if check.verdict == "fails"}
    values = {kind: _values(explanations, cells, kind) for kind in KINDS}
    importances = [one for kind in KINDS for one in _importances(kind, values[kind], cells)]
    sound = {
        kind: {library: found for library, found in values[kind].items() if (library, kind) not in broken}
        for kind in KINDS
    }
    rows = RowsAgreement(explanations, cells, list(sound["shap"]))
    disputed: list[DisputedRow] = []
    swarm: tuple[SwarmFeature, ...] = ()
    shown = _shown_features(importances, sound["shap"], first, top)
    for repeat in repeats:
        loaded = {
            name: explanations.attributions(cells[name][repeat]) for name in sound["shap"] if repeat in cells[name]
        }
        attributions = {name: found for name, found in loaded.items() if found is not None}
        rows.of_split(repeat, attributions)
        present = {library: found[repeat] for library, found in cells.items() if repeat in found}
        disputed += find_disputed_rows(explanations, present, attributions)
        swarm = swarm or _swarm(explanations, present, attributions, shown)
    for library in cells:
        rows.of_library(library)
    agreement = [rows.complete(one) for kind in KINDS for one in compare_rankings(kind, sound[kind], cells, top)]
    x = explanations.array(first.x)
    columns = {unit.name: tuple(first.feature_names[column] for column in unit.columns) for unit in first.units}
    return BenchmarkFindings(
        benchmark=name,
        dataset=first.dataset_name,
        libraries=tuple(cells),
        seeds=tuple(sorted({cell.seed for cell in every})),
        n_rows=first.n_rows,
        n_features=len(first.units),
        groups={name: members for name, members in columns.items() if members != (name,)},
        classes=first.task.is_classification,
        outputs=_outputs(explanations, first),
        metric=first.primary_metric,
        checks=tuple(checks),
        importances=tuple(importances),
        agreement=(*add_readings(agreement), *rows.of_predictions()),
        correlated=find_correlated_columns(x, first.feature_names, first.categorical),
        disputed=pick_most_disputed(disputed),
        swarm=swarm,
        n_swarm=len(swarm[0].values) if swarm else 0,
        not_offered=_not_offered(cells),
        notes=tuple(_notes(every, first)),
    )


def _values(explanations: Explanations, cells: Cells, kind: Kind) -> Values:
    found: Values = {}
    for library, by_repeat in cells.items():
        for repeat, cell in by_repeat.items():
            values = explanations.importances(cell, kind)
            if values is not None:
                found.setdefault(library, {})[repeat] = values
    return found


def _importances(kind: Kind, values: Values, cells: Cells) -> Iterator[FeatureImportance]:
    for library, by_repeat in values.items():
        stacked = np.stack(list(by_repeat.values()))
        shares = stacked if kind == "permutation" else _shares(stacked)
        ranks = np.stack([_ranks(row) for row in stacked])
        names = [unit.name for unit in next(iter(cells[library].values())).units]
        for place, feature in enumerate(names):
            drawn = {
                repeat: observe(cells[library][repeat], float(share))
                for repeat, share in zip(by_repeat, shares[:, place], strict=True)
            }
            bounds = resampled_interval(drawn) if np.isfinite(shares[:, place]).all() else None
            if bounds and kind != "permutation":
                bounds = min(max(bounds[0], 0.0), 1.0), min(max(bounds[1], 0.0), 1.0)  # a share is never beyond
            mean, std = mean_and_std(stacked[:, place].tolist())
            share = fmean(shares[:, place].tolist())
            yield FeatureImportance(
                kind=kind,
                library=library,
                feature=feature,
                mean=finite_or_none(mean),
                std=finite_or_none(std),
                share=None if kind == "permutation" else finite_or_none(share),
                low=finite_or_none(bounds[0] if bounds else None),
                high=finite_or_none(bounds[1] if bounds else None),
                rank=fmean(ranks[:, place].tolist()),
                n=len(stacked),
            )


def _shares(values: FloatArray) -> FloatArray:
    """Each row over its sum; a model that uses nothing has no shares."""
    sums = values.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(values, sums, out=np.full(values.shape, np.nan), where=sums > 0))


def _ranks(values: FloatArray) -> FloatArray:
    """1 for the largest; equal values share the mean of their ranks, and what is no number comes last."""
    return np.asarray(doubled_ranks(-np.where(np.isfinite(values), values, -np.inf)) / 2)


def _shown_features(
    importances: Sequence[FeatureImportance], sound: Mapping[str, object], first: Explanation, top: int
) -> list[int]:
    """The features with the best mean rank by SHAP over the sound libraries."""
    order = order_features([one for one in importances if one.kind == "shap" and one.library in sound])
    names = [unit.name for unit in first.units]
    return [names.index(name) for name in order[:top]]


def order_features(importances: Sequence[FeatureImportance]) -> list[str]:
    """Features by their mean rank over the libraries, the most important first."""
    ranks: dict[str, list[float]] = {}
    for one in importances:
        ranks.setdefault(one.feature, []).append(one.rank)
    return sorted(ranks, key=lambda name: fmean(ranks[name]))


def _swarm(
    explanations: Explanations,
    cells: Mapping[str, Explanation],
    attributions: Mapping[str, FloatArray],
    features: Sequence[int],
) -> tuple[SwarmFeature, ...]:
    """Some rows of a split: the attributions of each library, of several outputs their sum of sizes."""
    if not attributions or not features:
        return ()
    cell = cells[next(iter(attributions))]
    x, n = explanations.array(cell.x), cell.n_rows
    rows = np.sort(np.random.default_rng(_SWARM).choice(n, min(n, MOST_POINTS), replace=False))
    out = []
    for place in features:
        unit = cell.units[place]
        single = len(unit.columns) == 1
        values = x[rows, unit.columns[0]] if single else np.full(len(rows), np.nan)
        out.append(
            SwarmFeature(
                feature=unit.name,
                categorical=not single or unit.columns[0] in cell.categorical,
                values=tuple(map(finite_or_none, values.tolist())),
                attributions={name: tuple(_join(found[rows, place])) for name, found in attributions.items()},
            )
        )
    return tuple(out)


def _join(values: FloatArray) -> list[float]:
    """The attribution to the only output, or the sum of sizes over several."""
    found: list[float] = (values[:, 0] if values.shape[1] == 1 else np.abs(values).sum(axis=1)).tolist()
    return found


def _outputs(explanations: Explanations, cell: Explanation) -> tuple[str, ...]:
    predictions = explanations.array(cell.predictions)
    if predictions.ndim < 2:
        return ()
    noun, first = ("class", 0) if cell.task.is_classification else ("output", 1)
    return tuple(f"{noun} {place + first}" for place in range(predictions.shape[1]))


def _not_offered(cells: Cells) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for library, by_repeat in cells.items():
        for cell in by_repeat.values():
            for kind, measured in cell.kinds.items():
                if measured.reason:
                    found.setdefault(library, {})[kind] = measured.reason
    return found


def _notes(cells: Sequence[Explanation], first: Explanation) -> Iterator[str]:
    for text in dict.fromkeys(cell.sampled for cell in cells if cell.sampled):
        yield f"{text[:1].upper()}{text[1:].rstrip('.')}."
    if len(first.units) < len(first.feature_names):
        grouped = [unit.name for unit in first.units if len(unit.columns) > 1]
        yield f"Columns that belong together are ranked as one: {', '.join(grouped)}."
    if len(first.units) < 3:
        yield f"A ranking of {len(first.units)} features can hardly differ: no agreement of ranks is computed."
