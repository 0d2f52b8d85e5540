"""The workload `importances`: train as `fit` does, and ask the model what it relies on."""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import Ge, MinLen

from boosters_eval.core.errors import UnsupportedError
from boosters_eval.datasets.generated import Stream
from boosters_eval.engine.artifacts import save_array
from boosters_eval.engine.lane import get_message
from boosters_eval.metrics import MetricWarning, get
from boosters_eval.metrics.rows import quantile_columns
from boosters_eval.metrics.task import Task
from boosters_eval.programs.benchmark.fit import Fit, Fitted, fit_cell, take_rows
from boosters_eval.programs.benchmark.spec import FitSpec
from boosters_eval.programs.importances.records import (
    KINDS,
    Additivity,
    Explanation,
    FeatureUnit,
    Kind,
    MeasuredKind,
    Probe,
)
from boosters_eval.runners.explanations import (
    InvalidExplanationError,
    add_constant,
    compute_attributions,
    compute_importances,
    compute_interactions,
    compute_raw_scores,
    count_outputs,
    load_explaining,
)
from boosters_eval.runners.measure import ROUNDS, check_predictions, few_rows, small_request

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from boosters_eval.datasets import Table
    from boosters_eval.engine.cell import Cell, Lane, Outcome, Spec, Target
    from boosters_eval.runners.base import Runner, TrainData, Translation

    _Predict = Callable[[NDArray[np.float32]], NDArray[Any]]
    _Score = Callable[[NDArray[Any]], float]


_SHUFFLES, _SAMPLE = 6, 7  # keep these uses of a split apart from each other
_MAX_BYTES = 2**28  # of the shuffled copies that are predicted at once


def make_score(metric: str, task: Task, quantiles: tuple[float, ...], y: Any, **rows: Any) -> _Score:
    """The score of predictions by one metric, with the `weights`, `groups` and `sensitive` of the rows."""
    wanted = get(metric)

    def score(predictions: NDArray[Any]) -> float:
        chosen, columns = wanted, predictions
        if task is Task.QUANTILE:
            found = quantile_columns(predictions, quantiles)(wanted, optional=False)
            chosen, columns = found if found is not None else (wanted, predictions)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MetricWarning)  # said of the score itself already
            return chosen.compute(columns, y, **rows)

    return score


def permutation_importance(
    predict: _Predict,
    score: _Score,
    x: NDArray[np.float32],
    units: Sequence[FeatureUnit],
    *,
    repeats: int,
    split_digest: str,
    higher_is_better: bool,
    baseline: float,
) -> NDArray[np.float64]:
    """(repeats, units): how much worse the score is than the baseline when the columns of a unit are shuffled together.

    Of a ranking, rows are shuffled across all queries: within a query a column that tells queries apart would be lost.
    """
    found = np.empty((repeats, len(units)))
    count = max(1, min(repeats, _MAX_BYTES // max(1, x.nbytes)))
    copies = np.tile(x, (count, 1))
    for place, unit in enumerate(units):
        columns = list(unit.columns)
        for first in range(0, repeats, count):
            some = range(first, min(first + count, repeats))
            for slot, repeat in enumerate(some):
                order = shuffle(split_digest, columns[0], repeat, len(x))
                copies[slot * len(x) : (slot + 1) * len(x), columns] = x[np.ix_(order, columns)]
            predictions = predict(copies[: len(some) * len(x)])
            for slot, repeat in enumerate(some):
                worse = score(predictions[slot * len(x) : (slot + 1) * len(x)]) - baseline
                found[repeat, place] = -worse if higher_is_better else worse
        copies.reshape(count, *x.shape)[:, :, columns] = x[:, columns]
    return found + 0.0  # no -0.0


def shuffle(split_digest: str, column: int, repeat: int, n_rows: int) -> NDArray[np.int64]:
    return Stream(_SHUFFLES, _number(split_digest), column, repeat).order(n_rows)


def choose_rows(n_valid: int, most: int, split_digest: str, groups: NDArray[Any] | None = None) -> NDArray[np.int64]:
    """The places of the validation rows that are measured: all, or a sample that depends on the split alone.

    Of a ranking, whole queries are taken, at least one.
    """
    if n_valid <= most:
        return np.arange(n_valid)
    stream = Stream(_SAMPLE, _number(split_digest))
    if groups is None:
        return np.sort(stream.order(n_valid)[:most])
    query = np.cumsum(np.diff(groups, prepend=groups[0]) != 0)
    sizes = np.bincount(query)
    order = stream.order(len(sizes))
    chosen = order[: max(1, int(np.searchsorted(np.cumsum(sizes[order]), most, side="right")))]
    return np.flatnonzero(np.isin(query, chosen))


def _number(split_digest: str) -> int:
    return int.from_bytes(hashlib.sha256(split_digest.encode()).digest()[:8])


MAX_ROWS = 10_000
PERMUTATIONS = 5
_MAX_VALUES = 2**24  # of the attributions of a cell: 128 MB
_INTERACTION_ROWS = 8
_INTERACTION_COLUMNS = 32  # of more, a library may need longer than for everything else: the probe's model is asked
_ATTRIBUTIONS = "attributions"  # tells a lane that it must load what explains a model


class ImportancesSpec(FitSpec):
    """A fit, and what is asked of its model."""

    workload: Literal["importances"] = "importances"  # type: ignore[assignment]  # everything else is as in a fit
    kinds: Annotated[tuple[Kind, ...], MinLen(1)] = KINDS
    permutations: Annotated[int, Ge(1)] = PERMUTATIONS
    max_rows: Annotated[int, Ge(1)] = MAX_ROWS
    groups: tuple[FeatureUnit, ...] = ()  # columns that are permuted and ranked together

    @property
    def preload(self) -> tuple[str, ...]:
        """The files with the user's own metrics, and whether attributions are asked for."""
        return (*super().preload, *([_ATTRIBUTIONS] if "shap" in self.kinds else []))


class Importances(Fit):
    """The workload whose targets are libraries, as those of a fit."""

    name: ClassVar[str] = "importances"
    spec_type: ClassVar[type[Spec]] = ImportancesSpec
    outcome_type: ClassVar[type[Outcome]] = Explanation  # type: ignore[assignment]

    @classmethod
    def imports(cls, target: Target) -> tuple[str, ...]:
        return ("boosters_eval.programs.importances.workload", *super().imports(target))

    @classmethod
    def load(cls, lane: Lane, address: Mapping[str, Any]) -> type[Runner]:
        """Import what explains a model too. Where that is not installed, the runner gives the reason."""
        own = lane._replace(preload=tuple(text for text in lane.preload if text != _ATTRIBUTIONS))
        runner = super().load(own, address)
        if _ATTRIBUTIONS in lane.preload:
            load_explaining(runner)
        return runner

    @classmethod
    def run(
        cls, cell: Cell, loaded: type[Runner], inputs: Mapping[str, str], phase: Callable[[str], None]
    ) -> Explanation:
        """Fit, measure every kind on the validation rows, and try a constant column."""
        began = time.perf_counter()
        spec = cell.spec
        if not isinstance(spec, ImportancesSpec):
            raise TypeError(f"{cell} is not a cell of the workload 'importances'.")
        fitted = fit_cell(cell, loaded, inputs, phase)
        subject = _Subject(spec, loaded, fitted, Path(inputs["artifacts"]), phase)
        fields = {**fitted.fields, **subject.facts(), **subject.explain()}
        phase("done")
        return Explanation(
            **fields,
            seconds=subject.seconds,
            library_seconds=sum(seconds for part, seconds in subject.seconds.items() if part != "probe"),
            cell_seconds=time.perf_counter() - began,
        )


class _Subject:
    """A trained model with the rows that it is asked about, and the clock of all calls into its library."""

    def __init__(
        self, spec: ImportancesSpec, runner: type[Runner], fitted: Fitted, folder: Path, phase: Callable[[str], None]
    ) -> None:
        self.spec, self.runner, self.fitted, self.folder, self.phase = spec, runner, fitted, folder, phase
        self.translation = fitted.translation
        self.predictions = fitted.data.restore(fitted.done.predictions)
        self.asked = (runner, fitted.translation, fitted.done.model)
        self.seconds = {"fit": fitted.done.train_s, "predict": fitted.done.predict_s}
        split, table, x = fitted.data.split, fitted.table, fitted.data.x_valid
        groups = take_rows(table.groups, split.valid)
        self.places = choose_rows(len(x), limit_rows(spec, x.shape[1]), split.digest, groups)
        self.rows = np.asarray(split.valid)[self.places]
        self.x = x if len(self.places) == len(x) else np.ascontiguousarray(x[self.places])
        self.units = list_units(name_columns(fitted.table), spec.groups)

    def facts(self) -> dict[str, Any]:
        fitted, n_valid = self.fitted, len(self.fitted.data.x_valid)
        share = f"measured on {len(self.rows)} of the {n_valid} validation rows, the same for every library"
        return {
            "rows": self.saved(self.rows.astype(np.int64)),
            "x": self.saved(self.x),
            "y": self.saved(np.asarray(fitted.table.y[self.rows], dtype=np.float64)),
            "predictions": self.saved(self.predictions[self.places].astype(np.float64)),
            "n_rows": len(self.rows),
            "sampled": share if len(self.rows) < n_valid else None,
            "feature_names": name_columns(fitted.table),
            "categorical": fitted.data.request.categorical,
            "category_names": self.category_names(),
            "constant": _constant_columns(fitted.data.train.x),
            "units": self.units,
            "permutations": self.spec.permutations,
            "higher_is_better": get(self.spec.primary_metric).higher_is_better,
        }

    def category_names(self) -> str | None:
        """The names of the data, so that a person can read its rows: the same array for every cell, so stored once."""
        names = self.fitted.table.category_names
        return self.saved(np.frombuffer(json.dumps(names).encode(), dtype=np.uint8)) if names else None

    def explain(self) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        kinds: dict[Kind, MeasuredKind] = {}
        for kind in self.spec.kinds:
            self.phase({"permutation": kind, "shap": "attributions"}.get(kind, "importances"))
            if kind == "permutation":
                kinds[kind] = self.permutation(fields)
            elif kind == "shap":
                kinds[kind] = self.attributions(fields)
            else:
                kinds[kind] = self.own(kind)
        self.phase("probe")
        return {**fields, "kinds": kinds, **self.probe()}

    def permutation(self, fields: dict[str, Any]) -> MeasuredKind:
        spec, table = self.spec, self.fitted.table
        rows = {name: take_rows(getattr(table, name), self.rows) for name in ("weights", "groups", "sensitive")}
        score = make_score(spec.primary_metric, spec.task, spec.quantiles, np.asarray(table.y[self.rows]), **rows)
        fields["measured_score"] = baseline = score(self.predictions[self.places])

        def predict(x: NDArray[np.float32]) -> NDArray[Any]:
            found = self.timed("permutation", lambda: self.runner.predict(*self.asked[1:], x))
            return self.fitted.data.restore(check_predictions(found, self.translation.request, len(x)))

        found = permutation_importance(
            predict,
            score,
            self.x,
            self.units,
            repeats=spec.permutations,
            split_digest=self.fitted.data.split.digest,
            higher_is_better=get(spec.primary_metric).higher_is_better,
            baseline=baseline,
        )
        return MeasuredKind(array=self.saved(found))

    def own(self, kind: Literal["gain", "split"]) -> MeasuredKind:
        try:
            found = self.timed(kind, lambda: compute_importances(*self.asked, self.x.shape[1], kind))
        except UnsupportedError as error:
            return MeasuredKind(reason=str(error))
        except InvalidExplanationError as error:  # the other kinds are not to blame
            return MeasuredKind(fault=str(error))
        return MeasuredKind(array=self.saved(found))

    def attributions(self, fields: dict[str, Any]) -> MeasuredKind:
        """Attributions with the raw scores that they must add up to, and their interactions where there are any."""
        try:
            found = self.timed("shap", lambda: compute_attributions(*self.asked, self.x))
            raw = self.timed("raw", lambda: compute_raw_scores(*self.asked, self.x))
        except UnsupportedError as error:
            fields["no_interactions"] = str(error)
            return MeasuredKind(reason=str(error))
        except InvalidExplanationError as error:
            return MeasuredKind(fault=str(error))
        fields["raw"] = self.saved(raw)
        if self.x.shape[1] <= _INTERACTION_COLUMNS:
            fields |= self.timed("interactions", lambda: check_interactions(*self.asked, self.x, found))
        return MeasuredKind(array=self.saved(found))

    def probe(self) -> Any:
        """A small fit with a constant column. That it cannot be made is told, and no fault of the cell."""
        train, kinds = self.fitted.data.train, self.spec.kinds
        try:
            wide = self.x.shape[1] > _INTERACTION_COLUMNS
            return self.timed("probe", lambda: probe(self.runner, self.translation, train, kinds, sums=wide))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 (a Rust panic is no Exception)
            return {"no_probe": f"{type(error).__name__}: {get_message(error)}"}

    def timed(self, part: str, call: Callable[[], Any]) -> Any:
        began = time.perf_counter()
        try:
            return call()
        finally:
            self.seconds[part] = self.seconds.get(part, 0.0) + time.perf_counter() - began

    def saved(self, array: NDArray[Any]) -> str:
        return save_array(self.folder, array)


def compare_sums(sums: NDArray[np.float64], expected: NDArray[np.float64]) -> Additivity:
    error, scale = np.abs(sums - expected).max(initial=0.0), np.abs(expected).max(initial=0.0)
    return Additivity(error=float(error), scale=float(scale), n_rows=len(expected))


def check_interactions(
    runner: type[Runner], translation: Translation, model: Any, x: NDArray[np.float32], found: NDArray[np.float64]
) -> dict[str, Any]:
    """Whether the interactions of a few rows add up to their attributions, why there are none, or their fault."""
    few = x[:_INTERACTION_ROWS]
    try:
        together = compute_interactions(runner, translation, model, few)
    except UnsupportedError as error:
        return {"no_interactions": str(error)}
    except InvalidExplanationError as error:
        return {"interactions_fault": str(error)}
    return {"interactions": compare_sums(together.sum(axis=2), found[: len(few), :-1])}


def probe(
    runner: type[Runner], translation: Translation, train: TrainData, kinds: tuple[Kind, ...], *, sums: bool
) -> dict[str, Any]:
    """What a small model, trained with a constant column, gives to that column, and whether its rows add up."""
    small = runner.translate(small_request(translation.request, stopping=train.valid is not None))
    few = add_constant(few_rows(train, translation.request.task))
    model = runner.fit(small, runner.build(small, few))
    constant: dict[Kind, float] = {}
    for kind in ("gain", "split"):
        if kind in kinds:
            with suppress(UnsupportedError, InvalidExplanationError):  # the kind itself says so
                constant[kind] = abs(float(compute_importances(runner, small, model, few.x.shape[1], kind)[-1]))
    adds_up, fields = None, {}
    if "shap" in kinds:
        with suppress(UnsupportedError, InvalidExplanationError):
            found, raw = (
                compute_attributions(runner, small, model, few.x),
                compute_raw_scores(runner, small, model, few.x),
            )
            constant["shap"] = float(np.abs(found[:, -2]).max())
            adds_up = compare_sums(found.sum(axis=1), raw)
            fields = check_interactions(runner, small, model, few.x, found) if sums else {}
    return {**fields, "probe": Probe(n_rows=len(few.y), n_rounds=ROUNDS, constant=constant, additivity=adds_up)}


def _constant_columns(x: NDArray[np.float32]) -> tuple[int, ...]:
    same = (x == x[0]).all(axis=0) | np.isnan(x).all(axis=0)
    return tuple(map(int, np.flatnonzero(same)))


def limit_rows(spec: ImportancesSpec, n_columns: int) -> int:
    """How many rows are measured at most: as asked for, or as many as have attributions that can be stored."""
    return max(1, min(spec.max_rows, _MAX_VALUES // ((n_columns + 1) * count_outputs(spec.request(0)))))


def name_columns(table: Table) -> tuple[str, ...]:
    return table.feature_names or tuple(f"column {column}" for column in range(table.x.shape[1]))


def list_units(names: tuple[str, ...], groups: tuple[FeatureUnit, ...]) -> tuple[FeatureUnit, ...]:
    """What is ranked: every column that is in no group, then the groups."""
    taken = {column for group in groups for column in group.columns}
    alone = (FeatureUnit(name=name, columns=(column,)) for column, name in enumerate(names) if column not in taken)
    return (*alone, *groups)
