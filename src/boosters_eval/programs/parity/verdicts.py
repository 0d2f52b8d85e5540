"""One status and one verdict per cell: the CSV, the gate, every rendering and the exit code use these alone."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Self

import numpy as np

from boosters_eval.core.errors import BoostersEvalError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from boosters_eval.programs.parity.method import DifferenceMetric


class Word(Enum):
    """A word for how a cell ended or compares, and what it tells a reader."""

    meaning: str

    def __new__(cls, word: str, meaning: str) -> Self:
        made = object.__new__(cls)
        made._value_, made.meaning = word, meaning
        return made


class BindingStatus(Word):
    """How a cell ended."""

    OK = "ok", "There is a prediction."
    NOT_IMPLEMENTED = "not_implemented", "The backend does not have the method."
    NOT_AVAILABLE = "not_available", "The backend is not installed where this was run."
    NOT_RUN = "not_run", "It was not run at this size and number of threads."
    DEFERRED = "deferred", "Put off: this run was limited to fewer cells."
    TIMEOUT = "timeout", "Stopped at the time limit."
    CRASHED = "crashed", "The process died."
    REFUSED = "refused", "The backend declined."
    FAILED = "failed", "The run failed, or returned no valid prediction."
    STALE = "stale", "The answer does not depend on the input: other data got the same bits."

    @property
    def absent(self) -> bool:
        """Whether the backend could not even be asked."""
        return self in (BindingStatus.NOT_IMPLEMENTED, BindingStatus.NOT_AVAILABLE)

    @property
    def started(self) -> bool:
        """Whether the backend got to work, well or badly."""
        return not self.absent and self not in (BindingStatus.NOT_RUN, BindingStatus.DEFERRED)

    @property
    def mark(self) -> str:
        """The specification's sign for a cell without a result; '' for one with a result."""
        if self in (BindingStatus.OK, BindingStatus.TIMEOUT):
            return "" if self is BindingStatus.OK else "⏳"
        return "—" if self.started else "NR"


class ParityVerdict(Word):
    """How a prediction compares with its reference."""

    BIT_EXACT = "bit_exact", "The same bits as the reference."
    ROUNDING = "rounding", "Every row is within the tolerance."
    CONVENTION = "convention", "It agrees with the reference once that follows the backend's documented convention."
    KNOWN_DEFECT = "known_defect", "It differs by a known fault, which the reference reproduces."
    CROSS_CHECK = "cross_check", "Both selections are stochastic, and cannot agree."
    DIVERGENT = "divergent", "The predictions differ."
    NO_ORACLE = "no_oracle", "The method has no reference implementation (oracle), so nothing was compared."
    ORACLE_MISSING = (
        "oracle_missing",
        "The reference implementation (oracle) was neither run nor stored, so nothing was compared.",
    )

    @property
    def agrees(self) -> bool:
        """Whether the gate lets it pass. The absence of a reference is no agreement, but no divergence either."""
        return self not in (ParityVerdict.DIVERGENT, ParityVerdict.KNOWN_DEFECT, ParityVerdict.ORACLE_MISSING)


class IncomparableError(BoostersEvalError):
    """A prediction that cannot be compared with its reference at all. One of another shape is never reshaped."""


@dataclass(frozen=True)
class Difference:
    """How far a prediction is from its reference."""

    max_abs: float
    relative_rmse: float
    rows_off: float  # the share of rows that are off by more than the tolerance
    excess: float  # the largest gap, in units of what the tolerance allows
    jaccard: float | None = None  # the distance of two selections; None: these are no selections

    def of(self, metric: DifferenceMetric) -> float:
        """The difference in the method's own metric."""
        if metric == "jaccard":
            return self.max_abs if self.jaccard is None else self.jaccard
        return self.max_abs if metric == "max_abs" else self.relative_rmse

    def within(self, metric: DifferenceMetric, tolerance: float) -> bool:
        """Whether every row, or the selection, is within the tolerance."""
        return self.of(metric) <= tolerance if metric == "jaccard" else self.rows_off == 0


def measure_difference(
    reference: NDArray[np.float64],
    prediction: NDArray[np.float64],
    metric: DifferenceMetric,
    tolerance: float,
) -> Difference:
    """Compare element by element. The tolerance is of the root mean square of the reference, unless it is absolute."""
    if prediction.shape != reference.shape:
        raise IncomparableError(f"The prediction must have shape {reference.shape}. Got {prediction.shape} instead.")
    if metric == "jaccard":
        return _measure_selections(reference, prediction)
    with np.errstate(over="ignore"):  # a gap that is too large for a number is infinite, and off
        gaps = np.abs(prediction - reference)
    scale, rmse, largest = _root_mean_square(reference), _root_mean_square(gaps), float(gaps.max(initial=0.0))
    allowed = allow_gap(reference, metric, tolerance)
    off = (gaps > allowed).reshape(len(gaps), -1).any(axis=1)
    return Difference(
        max_abs=largest,
        relative_rmse=_ratio(rmse, scale),
        rows_off=float(off.mean()) if len(off) else 0.0,
        excess=_ratio(largest, allowed),
    )


def allow_gap(reference: NDArray[np.float64], metric: DifferenceMetric, tolerance: float) -> float:
    """How far a number may be off."""
    return tolerance if metric == "max_abs" else tolerance * _root_mean_square(reference)


def _root_mean_square(values: NDArray[np.float64]) -> float:
    """Without squaring what is too large or too small for it: an infinite scale would forgive everything."""
    largest = float(np.abs(values).max(initial=0.0))
    if largest == 0 or not np.isfinite(largest):
        return largest
    return largest * float(np.sqrt(np.mean((values / largest) ** 2)))


def _ratio(part: float, whole: float) -> float:
    if part == 0:
        return 0.0
    with np.errstate(over="ignore"):
        return float(np.float64(part) / whole) if whole else float("inf")


def _measure_selections(reference: NDArray[np.float64], prediction: NDArray[np.float64]) -> Difference:
    for selection in (reference, prediction):
        if not np.isin(selection, (0.0, 1.0)).all():  # positions would all count as chosen
            raise IncomparableError("A selection must be a mask: 1 for what is chosen, 0 for what is not.")
    chosen, wanted = prediction != 0, reference != 0
    union = int((chosen | wanted).sum())
    distance = 1 - int((chosen & wanted).sum()) / union if union else 0.0
    unlike = chosen != wanted
    return Difference(
        max_abs=float(unlike.any()),
        relative_rmse=float(unlike.mean()),
        rows_off=float(unlike.mean()),
        excess=float("inf") if unlike.any() else 0.0,
        jaccard=distance,
    )


def decide_verdict(
    found: Sequence[Difference],
    metric: DifferenceMetric,
    tolerance: float,
    *,
    explained: ParityVerdict | None = None,
    stochastic: bool = False,
) -> ParityVerdict:
    """The one place in which differences, one for each data set, become a word. No rule depends on a name or a size.

    `explained` is what the reference reproduced: a convention, or a known defect.
    """
    if all(one.max_abs == 0 for one in found):
        return ParityVerdict.BIT_EXACT
    if all(one.within(metric, tolerance) for one in found):
        return ParityVerdict.ROUNDING
    return explained or (ParityVerdict.CROSS_CHECK if stochastic else ParityVerdict.DIVERGENT)
