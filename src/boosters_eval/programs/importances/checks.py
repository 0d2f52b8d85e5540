"""What casts doubt on rankings: libraries that break their own definition, and columns that tell the same.

Numbers alone decide: a library's name does not matter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd
from scipy.stats.contingency import association, crosstab

from boosters_eval.programs.importances.records import KINDS, CheckFinding, CorrelatedColumns
from boosters_eval.reports.numbers import number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from boosters_eval.programs.importances.records import CheckName, Explanation, Kind
    from boosters_eval.programs.importances.results import Explanations
    from boosters_eval.stats.inference import FloatArray

# Of the spread of the raw scores, and not of their size: an offset of all targets must not hide a fault.
TOLERANCE = 1e-4  # of numbers in single precision, in which attributions have some six digits
TOLERANCE_DOUBLE = 1e-8
_COARSEST = 0.1  # of the spread: where rounding may take more than this share, a sum that is right proves nothing
LABELS = {"permutation": "permutation", "gain": "gain", "split": "split count", "shap": "SHAP"}
_LARGE = 1e5  # from here on, a rough number has an exponent
_TREES = 1000  # where a library does not tell how many it has
_WHAT = {"local accuracy": "attributions", "interactions": "sums of interactions"}


def format_roughly(value: float) -> str:
    """A number to two digits; zeros that stand for unknown digits are not written."""
    return f"{value:.1e}" if abs(value) >= _LARGE else number(value, 2)


def check_library(explanations: Explanations, results: Sequence[Explanation]) -> tuple[CheckFinding, ...]:
    """All checks on the cells of one library; the worst cell decides."""
    return (
        _check_local_accuracy(explanations, results),
        *_check_constant_columns(explanations, results),
        _check_interactions(results),
    )


def _check_local_accuracy(explanations: Explanations, results: Sequence[Explanation]) -> CheckFinding:
    """A row's attributions and the base value add up to its raw score.

    The models that are compared decide, on all measured rows. A small extra model whose sums are wrong is told beside.
    """
    if (fault := _first(results, "shap", "fault")) is not None:
        return _unusable(results, "local accuracy", "shap", fault)
    own = [sums for one in results if (sums := _sums_of(explanations, one)) is not None]
    probes = [one.probe.additivity for one in results if one.probe is not None]
    extra = [_Sums(sums.error, sums.scale) for sums in probes if sums is not None]
    found = _judge_sums("local accuracy", results, own or extra, _first(results, "shap", "reason") or "")
    worst = max(extra, key=lambda sums: sums.excess, default=_Sums(0.0, 0.0))
    if own and found.verdict == "holds" and not worst.right:
        return found.replace(text=f"{found.text}; those of a small extra model do not: {worst.off}")
    return found


def _first(results: Sequence[Explanation], kind: Kind, name: Literal["fault", "reason"]) -> str | None:
    """What the first cell with a fault, or a reason, says of a kind."""
    return next((said for one in results if kind in one.kinds and (said := getattr(one.kinds[kind], name))), None)


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
        return f"off by {format_roughly(self.error)} where {self.beside} {format_roughly(self.scale)}"


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


def _check_interactions(results: Sequence[Explanation]) -> CheckFinding:
    """The interactions of a feature add up to its attribution."""
    if fault := next((one.interactions_fault for one in results if one.interactions_fault), None):
        return _unusable(results, "interactions", "shap", fault)
    measured = [one.interactions for one in results if one.interactions is not None]
    found = [_Sums(sums.error, sums.scale, beside="attributions reach") for sums in measured]
    reason = next((one.no_interactions for one in results if one.no_interactions), "")
    return _judge_sums("interactions", results, found, reason)


def _judge_sums(check: CheckName, results: Sequence[Explanation], found: Sequence[_Sums], reason: str) -> CheckFinding:
    library = results[0].library
    if not found:
        verdict = "not offered" if reason else "not checked"
        return CheckFinding(library=library, check=check, kind="shap", verdict=verdict, text=reason or "not measured")
    worst = max(found, key=lambda sums: sums.excess)
    coarse = worst.right and any(sums.coarse for sums in found)
    words = f"add up ({worst.off})" if worst.right else f"do not add up: {worst.off}"
    unknown = f"cannot be checked: raw scores differ by {format_roughly(worst.scale)} and are rounded by as much"
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


def _check_constant_columns(explanations: Explanations, results: Sequence[Explanation]) -> Iterator[CheckFinding]:
    """A column with one and the same value cannot matter: nothing may be attributed to it."""
    for kind in KINDS:
        if not any(kind in one.kinds for one in results):
            continue
        if kind != "shap" and (fault := _first(results, kind, "fault")) is not None:  # that of SHAP is told by its sums
            yield _unusable(results, "constant column", kind, fault)
            continue
        found = [value for one in results for value in _given_to_constants(explanations, one, kind)]
        reason = _first(results, kind, "reason")
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
            text=f"a constant column gets {format_roughly(worst) if math.isfinite(worst) else 'no number'} by {name}",
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


ALIKE = 0.95  # from which two columns are told to be correlated
_MOST_CATEGORICAL = 60  # columns between which Cramér's V is computed
# Rows in which a column must differ from its most frequent value. Where two columns are 0 in all rows but one or two,
# these alone decide, and they may coincide by chance; that ten do, chance does not explain.
FEWEST_VARIED = 10


def find_correlated_columns(
    x: FloatArray, names: Sequence[str], categorical: Sequence[int] = ()
) -> tuple[CorrelatedColumns, ...]:
    """Pairs of columns, the most alike first: numbers by Spearman's correlation, categories by Cramér's V.

    Trees see the order of numbers alone, so ranks are what is compared. A missing value counts as one in the middle. A
    number and a category are not compared, nor is a column that hardly varies.
    """
    varied = [column for column in range(x.shape[1]) if _count_varied(x[:, column]) >= FEWEST_VARIED]
    numbers = [column for column in varied if column not in categorical]
    categories = [column for column in varied if column in categorical][:_MOST_CATEGORICAL]
    found = [*_compare_numbers(x, numbers, names), *_compare_categories(x, categories, names)]
    return tuple(sorted(found, key=lambda pair: -abs(pair.value)))


def _count_varied(values: FloatArray) -> int:
    """The rows in which a column differs from its most frequent value; missing is a value."""
    _, counts = np.unique(values, return_counts=True)
    return len(values) - int(counts.max(initial=0))


def _compare_numbers(x: FloatArray, columns: Sequence[int], names: Sequence[str]) -> Iterator[CorrelatedColumns]:
    if len(columns) < 2:
        return
    ranks = pd.DataFrame(x[:, columns]).rank()
    with np.errstate(invalid="ignore"):  # of a column whose only value is sometimes missing
        found = np.corrcoef(ranks.fillna(ranks.mean()), rowvar=False)
    for i, j in zip(*np.nonzero(np.triu(np.abs(found) >= ALIKE, 1)), strict=True):
        a, b, value = names[columns[i]], names[columns[j]], float(np.clip(found[i, j], -1, 1))
        yield CorrelatedColumns(a=a, b=b, value=value, measure="Spearman's correlation")


def _compare_categories(x: FloatArray, columns: Sequence[int], names: Sequence[str]) -> Iterator[CorrelatedColumns]:
    for i, j in combinations(columns, 2):
        table = crosstab(x[:, i], x[:, j]).count
        if min(table.shape) < 2 or table.size > 10 * len(x):  # one category, or hardly two rows in a cell
            continue
        value = float(association(table, method="cramer"))
        if value >= ALIKE:
            yield CorrelatedColumns(a=names[i], b=names[j], value=value, measure="Cramér's V")
