"""From the cells of a run to findings: what is important, whether it can be believed, and how far libraries agree."""

from __future__ import annotations

import math
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from boosters_eval.programs.importances.agreement import (
    RowsAgreement,
    attributions_of,
    observed,
    rankings_agree,
    with_readings,
)
from boosters_eval.programs.importances.checks import check_library
from boosters_eval.programs.importances.disagreement import disputed_rows, most_disputed
from boosters_eval.programs.importances.findings import (
    BenchmarkFindings,
    CorrelatedColumns,
    FeatureImportance,
    SwarmFeature,
)
from boosters_eval.programs.importances.records import KINDS
from boosters_eval.reports.numbers import mean_and_std
from boosters_eval.stats.inference import doubled_ranks
from boosters_eval.stats.ranks import resampled_interval

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from boosters_eval.core.request import Repeat
    from boosters_eval.programs.importances.agreement import Cells
    from boosters_eval.programs.importances.findings import DisputedRow
    from boosters_eval.programs.importances.records import Explanation, Kind
    from boosters_eval.programs.importances.results import Explanations
    from boosters_eval.stats.inference import FloatArray

    Values = dict[str, dict[Repeat, FloatArray]]  # by library and repeat, one number a feature
    from numpy.typing import NDArray


ALIKE = 0.95  # from which two columns are told to be correlated
_MOST_CATEGORICAL = 60  # columns between which Cramér's V is computed
# Rows in which a column must differ from its most frequent value. Where two columns are 0 in all rows but one or two,
# these alone decide, and they may coincide by chance; that ten do, chance does not explain.
FEWEST_VARIED = 10


def correlated_columns(
    x: FloatArray, names: Sequence[str], categorical: Sequence[int] = ()
) -> tuple[CorrelatedColumns, ...]:
    """Pairs of columns, the most alike first: numbers by Spearman's correlation, categories by Cramér's V.

    Trees see the order of numbers alone, so ranks are what is compared. A missing value counts as one in the middle. A
    number and a category are not compared, nor is a column that hardly varies.
    """
    chosen = set(categorical)
    varied = [column for column in range(x.shape[1]) if _n_varied(x[:, column]) >= FEWEST_VARIED]
    numbers = [column for column in varied if column not in chosen]
    categories = [column for column in varied if column in chosen]
    found = [*_numbers(x, numbers, names), *_categories(x, categories[:_MOST_CATEGORICAL], names)]
    return tuple(sorted(found, key=lambda pair: -abs(pair.value)))


def _n_varied(values: FloatArray) -> int:
    """The rows in which a column differs from its most frequent value; missing is a value."""
    _, counts = np.unique(values, return_counts=True)
    return len(values) - int(counts.max(initial=0))


def _numbers(x: FloatArray, columns: Sequence[int], names: Sequence[str]) -> Iterator[CorrelatedColumns]:
    ranked = [_centered_ranks(np.asarray(x[:, column], dtype=np.float64)) for column in columns]
    kept = [(column, ranks) for column, ranks in zip(columns, ranked, strict=True) if ranks is not None]
    if len(kept) < 2:
        return
    matrix = np.column_stack([ranks for _, ranks in kept])
    correlations = matrix.T @ matrix
    for i, j in zip(*np.nonzero(np.triu(np.abs(correlations) >= ALIKE, 1)), strict=True):
        value = float(np.clip(correlations[i, j], -1, 1))
        yield _pair(names, kept[i][0], kept[j][0], value, "Spearman's correlation")


def _centered_ranks(values: FloatArray) -> FloatArray | None:
    """Ranks around 0 with the length 1; None of a constant column."""
    present = ~np.isnan(values)
    ranks = np.zeros(len(values))
    if present.any():
        found = doubled_ranks(values[present])
        ranks[present] = found - found.mean()
    size = float(np.linalg.norm(ranks))
    return ranks / size if size > 0 else None


def _categories(x: FloatArray, columns: Sequence[int], names: Sequence[str]) -> Iterator[CorrelatedColumns]:
    codes = {column: np.unique(x[:, column], return_inverse=True)[1] for column in columns}
    for place, i in enumerate(columns):
        for j in columns[place + 1 :]:
            value = _cramers_v(codes[i], codes[j])
            if value is not None and value >= ALIKE:
                yield _pair(names, i, j, value, "Cramér's V")


def _cramers_v(a: NDArray[np.int64], b: NDArray[np.int64]) -> float | None:
    rows, columns = int(a.max(initial=0)) + 1, int(b.max(initial=0)) + 1
    if min(rows, columns) < 2 or rows * columns > 10 * len(a):  # one category, or hardly two rows in a cell
        return None
    table = np.bincount(a * columns + b, minlength=rows * columns).reshape(rows, columns).astype(np.float64)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / len(a)
    chi2 = float(((table - expected) ** 2 / expected).sum())
    return float(min(np.sqrt(chi2 / len(a) / (min(rows, columns) - 1)), 1.0))


def _pair(names: Sequence[str], i: int, j: int, value: float, measure: str) -> CorrelatedColumns:
    return CorrelatedColumns.model_validate({"a": names[i], "b": names[j], "value": value, "measure": measure})


MOST_POINTS = 150  # rows in the picture of attributions: 5 libraries with 10 features each are 7500 points
_SWARM = 20170707  # of the rows that are drawn there, the same for every run


def read_findings(explanations: Explanations, top: int = 10) -> tuple[BenchmarkFindings, ...]:
    """The findings on each benchmark of a run, in the order of the plan."""
    by_benchmark: dict[str, dict[str, dict[Repeat, Explanation]]] = {}
    for cell in explanations.results:
        by_benchmark.setdefault(cell.config_name, {}).setdefault(cell.library, {})[cell.repeat] = cell
    return tuple(_benchmark(explanations, name, cells, top) for name, cells in by_benchmark.items())


def _benchmark(explanations: Explanations, name: str, cells: Cells, top: int) -> BenchmarkFindings:
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
        attributions = _attributions(explanations, cells, list(sound["shap"]), repeat)
        rows.of_split(repeat, attributions)
        present = {library: found[repeat] for library, found in cells.items() if repeat in found}
        disputed += disputed_rows(explanations, present, attributions)
        swarm = swarm or _swarm(explanations, present, attributions, shown)
    for library in cells:
        rows.of_library(library)
    agreement = [one for kind in KINDS for one in rankings_agree(kind, sound[kind], cells, top)]
    agreement = [rows.added_to(one) if one.kind == "shap" else one for one in agreement]
    x = explanations.array(first.x)
    return BenchmarkFindings(
        benchmark=name,
        dataset=first.dataset_name,
        libraries=tuple(cells),
        seeds=tuple(sorted({cell.seed for cell in every})),
        n_rows=first.n_rows,
        n_features=len(first.units),
        groups=_groups(first),
        classes=first.task.is_classification,
        outputs=_outputs(explanations, first),
        metric=first.primary_metric,
        checks=tuple(checks),
        importances=tuple(importances),
        agreement=(*with_readings(agreement), *rows.predictions()),
        correlated=correlated_columns(x, first.feature_names, first.categorical),
        disputed=most_disputed(disputed),
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
                repeat: observed(cells[library][repeat], float(share))
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
                mean=_finite(mean),
                std=_finite(std),
                share=None if kind == "permutation" else _finite(share),
                low=_finite(bounds[0] if bounds else None),
                high=_finite(bounds[1] if bounds else None),
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
    order = feature_order([one for one in importances if one.kind == "shap" and one.library in sound])
    names = [unit.name for unit in first.units]
    return [names.index(name) for name in order[:top]]


def feature_order(importances: Sequence[FeatureImportance]) -> list[str]:
    """Features by their mean rank over the libraries, the most important first."""
    ranks: dict[str, list[float]] = {}
    for one in importances:
        ranks.setdefault(one.feature, []).append(one.rank)
    return sorted(ranks, key=lambda name: fmean(ranks[name]))


def _attributions(
    explanations: Explanations, cells: Cells, sound: Sequence[str], repeat: Repeat
) -> dict[str, FloatArray]:
    found = {name: attributions_of(explanations, cells[name][repeat]) for name in sound if repeat in cells[name]}
    return {name: values for name, values in found.items() if values is not None}


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
                values=tuple(map(_finite, values.tolist())),
                attributions={
                    name: tuple(_over_outputs(found[rows, place]).tolist()) for name, found in attributions.items()
                },
            )
        )
    return tuple(out)


def _over_outputs(values: FloatArray) -> FloatArray:
    return values[:, 0] if values.shape[1] == 1 else np.asarray(np.abs(values).sum(axis=1))


def _outputs(explanations: Explanations, cell: Explanation) -> tuple[str, ...]:
    predictions = explanations.array(cell.predictions)
    if predictions.ndim < 2:
        return ()
    noun, first = ("class", 0) if cell.task.is_classification else ("output", 1)
    return tuple(f"{noun} {place + first}" for place in range(predictions.shape[1]))


def _groups(cell: Explanation) -> dict[str, tuple[str, ...]]:
    columns = {unit.name: tuple(cell.feature_names[column] for column in unit.columns) for unit in cell.units}
    return {name: members for name, members in columns.items() if members != (name,)}


def _not_offered(cells: Cells) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for library, by_repeat in cells.items():
        for cell in by_repeat.values():
            for kind, measured in cell.kinds.items():
                if measured.reason:
                    found.setdefault(library, {})[kind] = measured.reason
    return found


def _notes(cells: Sequence[Explanation], first: Explanation) -> Iterator[str]:
    yield from dict.fromkeys(_sentence(cell.sampled) for cell in cells if cell.sampled)
    if len(first.units) < len(first.feature_names):
        grouped = [unit.name for unit in first.units if len(unit.columns) > 1]
        yield f"Columns that belong together are ranked as one: {', '.join(grouped)}."
    if len(first.units) < 3:
        yield f"A ranking of {len(first.units)} features can hardly differ: no agreement of ranks is computed."


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def _finite(value: float | None) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None
