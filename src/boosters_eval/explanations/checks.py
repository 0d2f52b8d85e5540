"""Does a library keep to its own definition? Judged by the numbers alone: a library's name decides nothing."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from boosters_eval.explanations.findings import CheckFinding
from boosters_eval.explanations.records import KINDS
from boosters_eval.reports.numbers import number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from boosters_eval.explanations.findings import CheckName
    from boosters_eval.explanations.records import Explanation, Kind
    from boosters_eval.explanations.results import Explanations

# Of the largest raw score. Sums in double precision are off by 1e-13, those in single precision by 1e-6 with a hundred
# trees and by 1e-5 with thousands; what is attributed to a wrong feature is off by its size.
TOLERANCE = 1e-4
LABELS = {"permutation": "permutation", "gain": "gain", "split": "split count", "shap": "SHAP"}
_WHAT = {"local accuracy": "attributions", "interactions": "sums of interactions"}


def check_library(explanations: Explanations, results: Sequence[Explanation]) -> tuple[CheckFinding, ...]:
    """All checks on the cells of one library; the worst cell decides."""
    return (_local_accuracy(explanations, results), *_constant_columns(explanations, results), _interactions(results))


def _local_accuracy(explanations: Explanations, results: Sequence[Explanation]) -> CheckFinding:
    """A row's attributions and the base value add up to its raw score.

    The models that are compared decide, on all measured rows. A small extra model whose sums are wrong is told beside.
    """
    own = []
    for one in results:
        attributions = explanations.measured(one, "shap")
        if attributions is not None and one.raw is not None:
            raw = explanations.array(one.raw)
            error = np.abs(attributions.sum(axis=1) - raw).max(initial=0.0)
            own.append((float(error), float(np.abs(raw).max(initial=0.0))))
    probes = [one.probe.additivity for one in results if one.probe is not None]
    extra = [(sums.error, sums.scale) for sums in probes if sums is not None]
    reason = next((one.kinds["shap"].reason for one in results if "shap" in one.kinds and one.kinds["shap"].reason), "")
    found = _summed("local accuracy", results, own or extra, reason or "")
    worst = max(extra, key=_relative, default=(0.0, 0.0))
    if own and found.verdict == "holds" and _relative(worst) > TOLERANCE:
        return found.replace(text=f"{found.text}; those of a small extra model do not: {_off(*worst)}")
    return found


def _interactions(results: Sequence[Explanation]) -> CheckFinding:
    """The interactions of a feature add up to its attribution."""
    found = [(one.interactions.error, one.interactions.scale) for one in results if one.interactions is not None]
    reason = next((one.no_interactions for one in results if one.no_interactions), "")
    return _summed("interactions", results, found, reason)


def _summed(
    check: CheckName, results: Sequence[Explanation], found: Sequence[tuple[float, float]], reason: str
) -> CheckFinding:
    library = results[0].library
    if not found:
        verdict = "not offered" if reason else "not checked"
        return CheckFinding(library=library, check=check, kind="shap", verdict=verdict, text=reason or "not measured")
    error, scale = max(found, key=_relative)
    holds = _relative((error, scale)) <= TOLERANCE
    off = _off(error, scale)
    words = f"add up ({off})" if holds else f"do not add up: {off}"
    return CheckFinding(
        library=library,
        check=check,
        kind="shap",
        error=error if math.isfinite(error) else None,
        scale=scale if math.isfinite(scale) else None,
        tolerance=TOLERANCE,
        verdict="holds" if holds else "fails",
        text=f"{_WHAT[check]} {words}",
    )


def _off(error: float, scale: float) -> str:
    if not math.isfinite(error):
        return "not numbers"
    return f"off by {number(error, 2)} where raw scores reach {number(scale, 2)}"


def _relative(found: tuple[float, float]) -> float:
    """The error over the scale; what is no number is the worst of all."""
    error, scale = found
    if not math.isfinite(error) or not math.isfinite(scale):
        return math.inf
    return error / scale if scale > 0 else (math.inf if error > 0 else 0.0)


def _constant_columns(explanations: Explanations, results: Sequence[Explanation]) -> Iterator[CheckFinding]:
    """A column with one and the same value cannot matter: nothing may be attributed to it."""
    for kind in KINDS:
        asked = [one.kinds[kind] for one in results if kind in one.kinds]
        if not asked:
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
            text=f"a constant column gets {number(worst, 2) if math.isfinite(worst) else 'no number'} by {name}",
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
