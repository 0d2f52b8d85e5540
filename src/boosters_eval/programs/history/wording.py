"""How steps are said, the same on the page, in Markdown and in a chart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.core.text import count_of
from boosters_eval.reports.numbers import MISSING, number, percent
from boosters_eval.stats.changepoints import fewest_for_any_step

if TYPE_CHECKING:
    from boosters_eval.programs.history.report import HistoryReport, HistoryStep


def level_texts(before: float, after: float) -> tuple[str, str]:
    """Two numbers with as many digits as it takes to tell them apart, four at least."""
    for digits in range(4, 17):
        shown = number(before, digits), number(after, digits)
        if shown[0] != shown[1]:
            return shown
    return number(before, 17), number(after, 17)


def percent_text(share: float | None) -> str:
    """A change in percent; one too small for two decimals is not written as none."""
    if share is None:
        return MISSING
    if not share:
        return "0 %"
    return f"{share:+.1e} %" if abs(share) < 0.005 else percent(share / 100)


def change_text(step: HistoryStep) -> str:
    """The two levels, and the change in percent."""
    before, after = level_texts(step.before, step.after)
    return f"{before} → {after} ({percent_text(step.percent)})"


def step_sentence(step: HistoryStep) -> str:
    """The step for a tooltip and for screen readers."""
    commits = f", after {step.last_commit}" if step.last_commit and step.last_commit != step.commit else ""
    return f"{step.verdict.capitalize()} since {step.name}{commits}: {change_text(step)}"


def without_steps(report: HistoryReport) -> str:
    """Why there is no step: none was found, or none could be."""
    least = fewest_for_any_step(alpha=report.alpha)
    longest = max((line.n_searched for line in report.lines), default=0)
    if longest < least:
        return f"Nothing could be found yet: a step takes {least} comparable runs, and no line has more than {longest}."
    short = sum(line.n_searched < least for line in report.lines)
    rest = f" {count_of(short, 'line')} with fewer than {least} comparable runs could not have any." if short else ""
    return f"No step was found in any line.{rest}"


def versions_text(step: HistoryStep) -> str:
    """The versions on both sides."""
    if step.version_before == step.version_after:
        return step.version_after
    return f"{step.version_before} → {step.version_after}"
