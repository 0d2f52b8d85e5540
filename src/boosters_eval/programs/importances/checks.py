"""Does a library keep to its own definition? Judged by the numbers alone: a library's name decides nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from boosters_eval.programs.importances.findings import CheckFinding
from boosters_eval.programs.importances.records import KINDS
from boosters_eval.reports.numbers import number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from boosters_eval.programs.importances.findings import CheckName
    from boosters_eval.programs.importances.records import Explanation, Kind
    from boosters_eval.programs.importances.results import Explanations

# Of the spread of the raw scores, and not of their size: an offset of all targets must not hide a fault.
TOLERANCE = 1e-4  # of numbers in single precision, in which attributions have some six digits
TOLERANCE_DOUBLE = 1e-8
_COARSEST = (
    0.1  # the share of the spread that rounding may take: where it takes more, a sum that is right proves nothing
)
LABELS = {"permutation": "permutation", "gain": "gain", "split": "split count", "shap": "SHAP"}
_LARGE = 1e5  # from here on, a rough number has an exponent
_TREES = 1000  # where a library does not tell how many it has
_WHAT = {"local accuracy": "attributions", "interactions": "sums of interactions"}


def rough(value: float) -> str:
    """A number to two digits; zeros that stand for unknown digits are not written."""
    return f"{value:.1e}" if abs(value) >= _LARGE else number(value, 2)


def check_library(explanations: Explanations, results: Sequence[Explanation]) -> tuple[CheckFinding, ...]:
    """All checks on the cells of one library; the worst cell decides."""
    return (_local_accuracy(explanations, results), *_constant_columns(explanations, results), _interactions(results))


def _local_accuracy(explanations: Explanations, results: Sequence[Explanation]) -> CheckFinding:
    """A row's attributions and the base value add up to its raw score.

    The models that are compared decide, on all measured rows. A small extra model whose sums are wrong is told beside.
    """
    if (fault := _fault_of(results, "shap")) is not None:
        return _unusable(results, "local accuracy", "shap", fault)
    own = [sums for one in results if (sums := _sums_of(explanations, one)) is not None]
    probes = [one.probe.additivity for one in results if one.probe is not None]
    extra = [_Sums(sums.error, sums.scale) for sums in probes if sums is not None]
    reason = next((one.kinds["shap"].reason for one in results if "shap" in one.kinds and one.kinds["shap"].reason), "")
    found = _summed("local accuracy", results, own or extra, reason or "")
    worst = max(extra, key=lambda sums: sums.excess, default=_Sums(0.0, 0.0))
    if own and found.verdict == "holds" and not worst.right:
        return found.replace(text=f"{found.text}; those of a small extra model do not: {worst.off}")
    return found


def _fault_of(results: Sequence[Explanation], kind: Kind) -> str | None:
    return next((one.kinds[kind].fault for one in results if kind in one.kinds and one.kinds[kind].fault), None)


def _unusable(results: Sequence[Explanation], check: CheckName, kind: Kind, fault: str) -> CheckFinding:
    """What cannot be used keeps to no definition."""
    what = "interactions" if check == "interactions" else f"values by {LABELS[kind]}"
    text = f"its {what} cannot be used. {fault.rstrip('.')}"
    return CheckFinding(library=results[0].library, check=check, kind=kind, verdict="fails", text=text)


@dataclass(frozen=True)
class _Sums:
    """How far sums are from what they must be, and how far rounding alone may lead."""

    error: float
    scale: float  # what the error is judged by
    tolerance: float = TOLERANCE  # of the scale
    rounding: float = 0.0  # in the unit of the error: what sums of numbers of this size and precision may lose
    beside: str = "raw scores reach"  # what the scale is

    @property
    def allowed(self) -> float:
        return self.tolerance * self.scale + self.rounding

    @property
    def right(self) -> bool:
        return self.excess <= 1

    @property
    def excess(self) -> float:
        """The error over what is allowed; what is no number is the worst of all."""
        if not math.isfinite(self.error) or not math.isfinite(self.allowed):
            return math.inf
        return self.error / self.allowed if self.allowed > 0 else (math.inf if self.error > 0 else 0.0)

    @property
    def coarse(self) -> bool:
        """Whether rounding is so large that sums would be taken for right without attributions too."""
        return self.rounding > _COARSEST * self.scale > 0

    @property
    def off(self) -> str:
        if not math.isfinite(self.error):
            return "not numbers"
        return f"off by {rough(self.error)} where {self.beside} {rough(self.scale)}"


def _sums_of(explanations: Explanations, result: Explanation) -> _Sums | None:
    """The sums of a cell's attributions. Whether they are in single precision, the raw scores tell."""
    attributions = explanations.measured(result, "shap")
    if attributions is None or result.raw is None:
        return None
    raw = explanations.array(result.raw)
    single = bool((raw == raw.astype(np.float32)).all())
    spread, size = float(np.ptp(raw, axis=0).max()), float(np.abs(raw).max())
    additions = (result.n_trees_trained or _TREES) + attributions.shape[1]
    return _Sums(
        error=float(np.abs(attributions.sum(axis=1) - raw).max()),
        scale=spread,
        tolerance=TOLERANCE if single else TOLERANCE_DOUBLE,
        rounding=additions * size * (2.0**-24 if single else 2.0**-53),
        beside="raw scores differ by up to",
    )


def _interactions(results: Sequence[Explanation]) -> CheckFinding:
    """The interactions of a feature add up to its attribution."""
    if fault := next((one.interactions_fault for one in results if one.interactions_fault), None):
        return _unusable(results, "interactions", "shap", fault)
    measured = [one.interactions for one in results if one.interactions is not None]
    found = [_Sums(sums.error, sums.scale, beside="attributions reach") for sums in measured]
    reason = next((one.no_interactions for one in results if one.no_interactions), "")
    return _summed("interactions", results, found, reason)


def _summed(check: CheckName, results: Sequence[Explanation], found: Sequence[_Sums], reason: str) -> CheckFinding:
    library = results[0].library
    if not found:
        verdict = "not offered" if reason else "not checked"
        return CheckFinding(library=library, check=check, kind="shap", verdict=verdict, text=reason or "not measured")
    worst = max(found, key=lambda sums: sums.excess)
    coarse = worst.right and any(sums.coarse for sums in found)
    words = f"add up ({worst.off})" if worst.right else f"do not add up: {worst.off}"
    unknown = f"cannot be checked: raw scores differ by {rough(worst.scale)} and are rounded by as much"
    return CheckFinding(
        library=library,
        check=check,
        kind="shap",
        error=worst.error if math.isfinite(worst.error) else None,
        scale=worst.scale if math.isfinite(worst.scale) else None,
        tolerance=worst.allowed / worst.scale if worst.scale > 0 and math.isfinite(worst.allowed) else worst.tolerance,
        verdict="not checked" if coarse else "holds" if worst.right else "fails",
        text=f"{_WHAT[check]} {unknown if coarse else words}",
    )


def _constant_columns(explanations: Explanations, results: Sequence[Explanation]) -> Iterator[CheckFinding]:
    """A column with one and the same value cannot matter: nothing may be attributed to it."""
    for kind in KINDS:
        asked = [one.kinds[kind] for one in results if kind in one.kinds]
        if not asked:
            continue
        if kind != "shap" and (fault := _fault_of(results, kind)) is not None:  # that of SHAP is told by its sums
            yield _unusable(results, "constant column", kind, fault)
            continue
        found = [value for one in results for value in _given_to_constants(explanations, one, kind)]
        reason = next((one.reason for one in asked if one.reason), "") or ""
        library = results[0].library
        if not found:
            absent = next((one.no_probe for one in results if one.no_probe), None)
            verdict = "not offered" if reason else "not checked"
            text = reason or absent or "not measured"
            yield CheckFinding(library=library, check="constant column", kind=kind, verdict=verdict, text=text)
            continue
        worst = max(found, key=lambda value: math.inf if math.isnan(value) else value)
        name = LABELS[kind]
        yield CheckFinding(
            library=library,
            check="constant column",
            kind=kind,
            error=worst if math.isfinite(worst) else None,
            tolerance=0.0,
            verdict="holds" if worst == 0 else "fails",
            text=f"a constant column gets {rough(worst) if math.isfinite(worst) else 'no number'} by {name}",
        )


def _given_to_constants(explanations: Explanations, result: Explanation, kind: Kind) -> Iterable[float]:
    """What the constant column of the small extra fit gets, and those of the data itself."""
    if result.probe is not None and kind in result.probe.constant:
        yield result.probe.constant[kind]
    values = explanations.measured(result, kind) if result.constant else None
    if values is None:
        return
    if kind == "permutation":
        columns = [i for i, unit in enumerate(result.units) if set(unit.columns) <= set(result.constant)]
    else:
        columns = list(result.constant)
    if columns:
        yield float(np.abs(values.take(columns, axis=min(1, values.ndim - 1))).max(initial=0.0))
