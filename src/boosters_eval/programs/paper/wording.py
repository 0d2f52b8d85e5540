"""How a comparison is put into words and numbers, the same in every rendering."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from boosters_eval import metrics
from boosters_eval.core.text import clean
from boosters_eval.programs.paper.comparison import exact, half_digit
from boosters_eval.programs.paper.units import canonical
from boosters_eval.reports.numbers import MISSING, estimate, number, percent

if TYPE_CHECKING:
    from boosters_eval.programs.paper.comparison import (
        ComparisonStatus,
        Confidence,
        MetricComparison,
        PaperComparison,
        PaperVerdict,
    )

MARKS: dict[ComparisonStatus, tuple[str, str, str]] = {  # mark, name, and what it means in a summary
    "match": ("✓", "Match", "<1% diff"),
    "close": ("~", "Close", "<3% diff"),
    "within_tolerance": ("○", "Within Tolerance", ""),
    "better": ("▲", "Better", "≥3% diff, in our favor"),
    "deviation": ("⚠", "Deviation", ""),
    "significant_deviation": ("✗", "Significant", ""),
    "missing": ("?", "Missing", ""),
}
OVERALL: dict[PaperVerdict, tuple[str, str]] = {
    "reproduced": ("✓", "Reproduction Successful"),
    "reproduced with deviations": ("⚠", "Reproduced with Deviations"),
    "not reproduced": ("✗", "Not Reproduced"),
    "incomplete": ("?", "Incomplete"),
}
CONFIDENCE: dict[Confidence, str] = {
    "high": "High Confidence",
    "medium": "Medium Confidence",
    "low": "Low Confidence",
}


def paper_name(comparison: PaperComparison) -> str:
    """The paper with its number on arXiv."""
    return f"{comparison.paper} (arXiv:{comparison.arxiv_id})" if comparison.arxiv_id else comparison.paper


def status_text(metric: MetricComparison) -> str:
    """The mark and the name; a label never hides that the value is outside the tolerance."""
    mark, name, _ = MARKS[metric.status]
    said = metric.status in ("match", "close", "better") and not metric.within_tolerance
    return f"{mark} {name}{', outside tolerance' if said else ''}"


def metric_label(name: str) -> str:
    """As a person reads it."""
    return metrics.label(canonical(name)) if metrics.find(canonical(name)) and name == name.lower() else name


def paper_text(metric: MetricComparison) -> str:
    """The printed digits, with the deviation and the unit."""
    std = "" if metric.paper_std is None else f" ± {metric.paper_std_printed or f'{metric.paper_std:g}'}"
    return f"{metric.paper_printed}{std}{unit_text(metric.unit)}"


def our_text(metric: MetricComparison) -> str:
    """Our mean, at least to the digit after the paper's last one."""
    value = metric.our_value
    if value is None:
        return MISSING
    decimals = min(max(metric.paper_decimals + 1, 0), 12)
    if metric.our_std:
        shown = estimate(value, metric.our_std)
    elif abs(value) < 1e15 and float(f"{value:.{decimals}f}"):
        shown = f"{value:.{decimals}f}"
        shown = shown if metric.our_std is None else f"{shown} ± 0"
    else:
        shown = number(value)
    return f"{shown}{unit_text(metric.unit)}"


def unit_text(unit: str) -> str:
    """A unit after its number."""
    return f" {clean(unit)}" if unit and unit != "1" else ""


def difference_text(metric: MetricComparison) -> str:
    """The difference with its sign, in percent where the paper's value is not 0."""
    difference = metric.difference
    if difference is None or metric.status == "missing":
        return MISSING
    if not difference:
        return "0 %"
    if metric.relative_diff is None:
        return f"{'+' if difference > 0 else ''}{number(difference, 3)}{unit_text(metric.unit)}"
    return percent(math.copysign(metric.relative_diff / 100, difference))


def tolerance_text(metric: MetricComparison) -> str:
    """Both tolerances; within either is within tolerance."""
    parts = []
    if metric.tolerance_absolute is not None:
        unit = " points" if metric.unit == "%" else unit_text(metric.unit)
        parts.append(f"± {metric.tolerance_absolute:g}{unit}")
    if metric.tolerance_relative is not None:
        parts.append(f"± {metric.tolerance_relative:g} %")
    return " or ".join(parts)


def accepted_range(metric: MetricComparison) -> tuple[float, float]:
    """Everything that is within tolerance: what rounds to the printed digits, and what either tolerance allows."""
    paper = exact(metric.paper_value)
    sizes = [half_digit(metric.paper_decimals)]
    if metric.tolerance_absolute is not None:
        sizes.append(exact(metric.tolerance_absolute))
    if metric.tolerance_relative is not None:
        sizes.append(abs(paper) * exact(metric.tolerance_relative) / 100)
    return float(paper - max(sizes)), float(paper + max(sizes))


def overall(comparison: PaperComparison) -> str:
    """The counts that the verdict follows from, as a sentence."""
    found = comparison.primary_counts
    verb = "is" if 1 in (found.within, found.comparisons) else "are"
    parts = [f"{found.within} of {_counted(found.comparisons, 'primary comparison')} {verb} within tolerance"]
    outside = found.comparisons - found.within - found.missing
    if outside:
        favor = outside - found.worse
        parts.append(f"{outside} outside" + (f" ({favor} of them in our favor)" if favor else ""))
    if found.missing:
        parts.append(f"{found.missing} missing")
    if not found.comparisons:
        parts = ["There is no primary target to compare"]
    rest = f" {_counted(found.unfinished, 'secondary comparison')} could not be made." if found.unfinished else ""
    return ", ".join(parts) + "." + rest


def confidence_reason(comparison: PaperComparison) -> str:
    """Why the confidence is what it is, by the rule of the documentation."""
    found = comparison.primary_counts
    counts = (
        f"{_counted(found.comparisons, 'primary comparison')}: {found.matched} matched or close within tolerance, "
        f"{found.missing} missing, at least {_counted(found.repeats, 'repeat')} of each."
    )
    rule = (
        "High needs a verdict of 'reproduced' from at least 3 primary comparisons of at least 3 repeats each, of which "
        "80 % match or are close, in a run of all targets; low is 'not reproduced' or 'incomplete'; medium is the rest."
    )
    return f"{counts} {rule}"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
