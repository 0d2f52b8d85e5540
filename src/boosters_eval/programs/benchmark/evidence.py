"""What each fit said of each row: packed without loss where it is kept, and read back for the statistics of a run."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from boosters_eval.core.errors import RunError
from boosters_eval.core.request import Part
from boosters_eval.engine.artifacts import load_array, locate_array, save_array
from boosters_eval.engine.predictions import PredictionsRecord
from boosters_eval.runners.result import KeptRows

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from numpy.typing import NDArray

    from boosters_eval.metrics.task import Task
    from boosters_eval.programs.benchmark.results import ResultCollection
    from boosters_eval.programs.benchmark.spec import FitSpec
    from boosters_eval.runners.result import BenchmarkResult
    from boosters_eval.stats.rows import RowScores

_REALS = ("<f4", "<f8")
_LABELS = ("|u1", *_REALS)  # classes and grades are few
_CODES = ("|u1", "<u2", "<u4", "<i8")


@dataclass(frozen=True)
class SplitRows:
    """The validation rows of a split, in the order in which they are predicted. All libraries share them."""

    rows: NDArray[np.int64]  # their numbers in the data set
    y_true: NDArray[np.float64]
    weights: NDArray[np.float64] | None = None
    queries: NDArray[np.int64] | None = None  # of ranking: equal numbers are adjacent
    groups: NDArray[np.int64] | None = None  # of a split by group, which are wholly on one side of it
    sensitive: NDArray[np.int64] | None = None  # what the fairness metrics compare

    @property
    def units(self) -> NDArray[np.int64] | None:
        """What is drawn independently, where that is not the row: the group, else the query."""
        return self.queries if self.groups is None else self.groups


@dataclass(frozen=True)
class FitEvidence:
    """What one fit predicted, and the rows that it predicted."""

    result: BenchmarkResult
    spec: FitSpec
    split: SplitRows
    predictions: NDArray[np.float64]  # (n,), or (n, classes, quantiles or targets): as they are scored

    def score(self, metric: str) -> RowScores | None:
        """What each row, or query, contributed to a metric; None where rows do not make it."""
        result = self.result
        part = result.part or Part(result.seed, result.fold or 0)
        by = (result.task, metric, self.split, self.predictions)
        about: Any = {"quantiles": self.spec.quantiles, "targets": self.spec.targets}
        return score_split(*by, part=part, n_train=result.n_train, **about)


def score_split(
    task: Task,
    metric: str,
    split: SplitRows,
    predictions: NDArray[np.float64],
    *,
    part: Part,
    n_train: int | None,
    quantiles: tuple[float, ...] = (),
    targets: tuple[str, ...] = (),
) -> RowScores | None:
    """What each row, or query, of a split contributed to a metric; None where rows do not make it."""
    from boosters_eval.metrics import get  # noqa: PLC0415 (cells store rows, and score none)
    from boosters_eval.metrics.catalog import gather_warnings  # noqa: PLC0415
    from boosters_eval.metrics.linear import linearize  # noqa: PLC0415
    from boosters_eval.stats.rows import RowScores  # noqa: PLC0415 (loads scipy)

    y, known = split.y_true, get(metric)
    if known.target and known.target not in targets:
        return None
    if known.target:
        place = targets.index(known.target)
        y, predictions = y[:, place], predictions[:, place]
    by = (task, known.whole, y, predictions, split.weights)
    with gather_warnings():  # the cell has warned of it, and its outcome says so
        found = linearize(*by, groups=split.queries, quantiles=quantiles)
    if found is None:
        return None
    n_valid = len(split.rows)
    return RowScores(
        block=part.seed,
        fold=part.number,
        folds=((n_train or 0) + n_valid) / n_valid,
        rows=split.rows[found.at],
        value=found.value,
        contributions=found.contributions,
        units=None if split.groups is None else split.groups[found.at],
        weights=found.weights,
    )


@dataclass(frozen=True)
class NoEvidence:
    """Why what a fit predicted cannot be read."""

    kind: Literal["left out", "removed", "lost", "elsewhere", "unknown"]
    reason: str  # in words, as in "it ..."


def keep_rows(folder: Path, split: SplitRows, predictions: NDArray[Any]) -> KeptRows:
    """Store what a fit predicted, and the rows of its split if nobody has yet."""
    packed = {"predictions": pack(predictions, _REALS), "rows": pack_rows(split)}
    return KeptRows(**{name: save_array(folder, array, synced=False) for name, array in packed.items()})


def pack(values: NDArray[Any], types: tuple[str, ...]) -> NDArray[Any]:
    """Values in the first type that holds each of them exactly."""
    with np.errstate(over="ignore", invalid="ignore"):  # what a type cannot hold is not equal afterwards
        found = (values.astype(kind) for kind in types[:-1])
        return next((narrow for narrow in found if np.array_equal(narrow, values)), values.astype(types[-1]))


def pack_rows(split: SplitRows) -> NDArray[Any]:
    """The columns that a split has, as one array with named fields."""
    kinds = {"y_true": _LABELS, "weights": _LABELS}
    given = {item.name: value for item in fields(split) if (value := getattr(split, item.name)) is not None}
    columns = {name: pack(np.asarray(value), kinds.get(name, _CODES)) for name, value in given.items()}
    types = [(name, column.dtype.str, column.shape[1:]) for name, column in columns.items()]  # targets may be several
    packed = np.empty(len(split.rows), dtype=types)
    for name, column in columns.items():
        packed[name] = column
    return packed


def unpack_rows(packed: NDArray[Any]) -> SplitRows:
    """What `pack_rows` made; another array, under whatever digest, is an error."""
    reals, names = ("y_true", "weights"), packed.dtype.names or ()
    columns = {name: packed[name] for name in names}
    known = {"rows", "y_true"} <= columns.keys() <= {item.name for item in fields(SplitRows)}
    plain = all(
        column.dtype.kind in ("uif" if name in reals else "ui") and column.ndim <= 1 + (name == "y_true")
        for name, column in columns.items()
    )
    if not known or not plain or packed.ndim != 1 or not len(packed):
        raise RunError("What was kept of a split is not its rows.")
    return SplitRows(**{name: column.astype("<f8" if name in reals else "<i8") for name, column in columns.items()})


def unpack_predictions(packed: NDArray[Any], split: SplitRows) -> NDArray[np.float64]:
    """One or several numbers per row of the split."""
    if packed.dtype.kind not in "uif" or packed.ndim not in (1, 2) or len(packed) != len(split.rows):
        raise RunError("What was kept of a fit is not one prediction per row of its split.")
    return packed.astype("<f8")


class RowEvidence:
    """What the fits of a run predicted, read when it is asked for."""

    def __init__(self, results: ResultCollection) -> None:
        self._folder, self._attempt = results.folder, results.metadata.attempt or 1
        self._splits: dict[str, SplitRows] = {}  # of which libraries share each
        self._scores: dict[tuple[str, str, str], RowScores | None] = {}

    def of(self, result: BenchmarkResult) -> FitEvidence | NoEvidence:
        """What one fit predicted. An array that was changed is no evidence, and `verify` says so too."""
        folder, kept = self._folder, result.kept
        if kept is None and folder is None:
            return NoEvidence("unknown", "its predictions are not known")
        if kept is None:
            return NoEvidence("left out", "its predictions were not kept")
        if folder is None:
            return NoEvidence("elsewhere", "its predictions are where it ran, and these are results from a file")
        try:
            if kept.rows not in self._splits:
                self._splits[kept.rows] = unpack_rows(load_array(folder.predictions, kept.rows))
            split = self._splits[kept.rows]
            predictions = unpack_predictions(load_array(folder.predictions, kept.predictions), split)
        except RunError as error:
            gone = [it for it in result.kept_digests if not locate_array(folder.predictions, it).exists()]
            if gone and self._removed.issuperset(gone):
                return NoEvidence("removed", "its predictions were removed")
            return NoEvidence("lost", str(error))
        return FitEvidence(result, self.specs[result.config_name], split, predictions)

    def score(self, result: BenchmarkResult, metric: str) -> RowScores | None:
        """What each row contributed to a metric; None where rows do not make it, or are not there."""
        if result.kept is None:
            return None
        place = result.key, metric, result.predictions_digest or ""
        if place not in self._scores:
            found = None if _is_by_time(result) else self.of(result)
            self._scores[place] = found.score(metric) if isinstance(found, FitEvidence) else None
        return self._scores[place]

    def tell_lack(self, results: Iterable[BenchmarkResult], metric: str) -> str:
        """That splits decided, and why rows could not; nothing where nobody knows of predictions."""
        from boosters_eval.metrics import find  # noqa: PLC0415 (as above)

        known, lacking = find(metric), next((one for one in results if self.score(one, metric) is None), None)
        found = None if lacking is None else self.of(lacking)
        if isinstance(found, NoEvidence) and found.kind == "unknown":
            return ""
        if lacking is not None and _is_by_time(lacking):
            why = "windows of time that follow each other may be alike"
        elif isinstance(found, NoEvidence):
            why = found.reason.rstrip(".")
        elif known is None or known.info.by_rows is None:
            why = "this metric is not computed row by row"
        else:
            why = "its rows are too few" if found is None else "a class has too few rows"
        return f"judged by splits, not by rows: {why}"

    @cached_property
    def specs(self) -> dict[str, FitSpec]:
        """What was planned, by config; none for results from a file."""
        plan = None if self._folder is None else self._folder.plan(self._attempt)
        return {} if plan is None else {spec.name: cast("FitSpec", spec) for spec in plan.specs}

    @cached_property
    def _removed(self) -> frozenset[str]:
        record = None if self._folder is None else PredictionsRecord.read(self._folder)
        return frozenset(record.removed if record else ())


def _is_by_time(result: BenchmarkResult) -> bool:
    """Whether it was scored on a window of time, whose neighbors may be alike."""
    return result.split is not None and result.split.kind == "time"


def read_evidence(results: ResultCollection) -> RowEvidence:
    """What the fits of a run predicted: `of(result)` gives the arrays of one, or why there are none."""
    return RowEvidence(results)
