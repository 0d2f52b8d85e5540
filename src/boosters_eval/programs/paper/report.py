"""The report in Markdown, in the order of the specification's sample. The same comparison gives the same bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.core.text import clean_lines
from boosters_eval.programs.paper.wording import (
    CONFIDENCE,
    MARKS,
    OVERALL,
    confidence_reason,
    difference_text,
    metric_label,
    our_text,
    overall,
    paper_name,
    paper_text,
    status_text,
    tolerance_text,
)
from boosters_eval.reports.numbers import MISSING, number
from boosters_eval.reports.text import escape, markdown_list, markdown_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from boosters_eval.programs.paper.comparison import (
        ConditionDifference,
        MetricComparison,
        PaperComparison,
        TargetComparison,
    )

HEADINGS = ("Model", "Metric", "Paper", "Ours", "Diff", "Tolerance", "z", "n", "Status")


def render_markdown(comparison: PaperComparison) -> str:
    """The whole report."""
    parts = [
        "# Benchmark Validation Report\n",
        _head(comparison),
        "## Summary\n",
        _summary(comparison),
        *_tables(comparison),
        "## The Paper's Conditions\n\n" + markdown_list(comparison.conditions) if comparison.conditions else "",
        _differences(comparison),
        *_deviations(comparison),
        "## Reproduction Confidence\n",
        f"**{CONFIDENCE[comparison.confidence]}** - {escape(confidence_reason(comparison))}\n",
        "## Files Generated\n\n" + markdown_list(files_of(comparison, ".md", "this report")),
        "## Environment\n\n" + _environment(comparison) if comparison.environment else "",
    ]
    return clean_lines("\n".join(part for part in parts if part)) + "\n"


def files_of(comparison: PaperComparison, ending: str, itself: str) -> list[str]:
    """The files that were written, and the rendering itself unless it is one of them."""
    listed = any(name.endswith(ending) for name in comparison.files)
    return [*comparison.files, *([] if listed else [itself])]


def _head(comparison: PaperComparison) -> str:
    rows = {
        "Paper": paper_name(comparison),
        "Source": comparison.source,
        "Date": comparison.date or "not recorded",
        "Hardware": comparison.hardware or "not recorded",
        "Run": comparison.run_id or "nothing was run",
        "Only": ", ".join(comparison.only),
    }
    return "  \n".join(f"**{name}:** {escape(text)}" for name, text in rows.items() if text) + "\n"


def _summary(comparison: PaperComparison) -> str:
    rows = []
    for status, count in comparison.counts.items():
        mark, name, meaning = MARKS[status]
        rows.append([escape(f"{mark} {name}{f' ({meaning})' if meaning else ''}"), str(count)])
    mark, verdict = OVERALL[comparison.verdict]
    notes = "\n" + markdown_list(comparison.notes) if comparison.notes else ""
    table = markdown_table(["Status", "Count"], rows)
    return f"{table}\n**Overall:** {mark} {verdict}\n\n{escape(overall(comparison))}\n{notes}"


def by_table(comparison: PaperComparison) -> dict[str, dict[str, list[TargetComparison]]]:
    """The targets by the table's title and the data set."""
    found: dict[str, dict[str, list[TargetComparison]]] = {}
    for target in comparison.targets:
        title = f"{target.table}: {target.title}" if target.title else target.table
        found.setdefault(title, {}).setdefault(target.dataset, []).append(target)
    return found


def _tables(comparison: PaperComparison) -> Iterator[str]:
    for title, datasets in by_table(comparison).items():
        yield f"## {escape(title)}\n"
        for dataset, targets in datasets.items():
            if dataset:
                yield f"### {escape(dataset)}\n"
            yield markdown_table(HEADINGS, [row for target in targets for row in _rows(target)])
        targets = [target for group in datasets.values() for target in group]
        conditions = list(_conditions(targets))
        yield "### Conditions\n\n" + markdown_list(conditions) if conditions else ""
        notes = list(notes_of(targets))
        yield "### Notes\n\n" + markdown_list(notes) if notes else ""


def _rows(target: TargetComparison) -> Iterator[list[str]]:
    name = escape(row_name(target))
    for metric in target.metrics:
        z = MISSING if metric.z_score is None else number(metric.z_score, 2)
        shown = (
            paper_text(metric),
            our_text(metric),
            difference_text(metric),
            tolerance_text(metric),
            z,
            str(metric.n),
        )
        yield [name, escape(metric_label(metric.metric_name)), *map(escape, shown), escape(status_text(metric))]
    if not target.metrics:
        yield [name, *[MISSING] * 7, escape(" ".join(MARKS["missing"][:2]))]


def row_name(target: TargetComparison) -> str:
    """The row, and whether it decides nothing."""
    name = target.row or "all rows"
    return name if target.primary else f"{name} (secondary)"


def _conditions(targets: Sequence[TargetComparison]) -> Iterator[str]:
    """Each condition once, with the rows that share it."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for target in targets:
        for side, conditions in (("paper", target.paper_conditions), ("ours", target.our_conditions)):
            for name, value in conditions.items():
                found.setdefault((name, value, side), []).append(f"{target.row} on {target.dataset}")
    for (name, value, side), where in found.items():
        who = "" if len(where) == len(targets) else f"; {', '.join(where)}"
        yield f"{name.replace('_', ' ')} ({side}{who}): {value}"


def notes_of(targets: Sequence[TargetComparison], *, brief: bool = False) -> Iterator[str]:
    """What the paper, the run and the comparison say of these rows; `brief` where the rest is in the heading."""
    for target in targets:
        row = target.row or "all rows"
        where = row if brief or not target.dataset else f"{row}, {target.dataset}"
        yield from dict.fromkeys(f"{where}: {note}" for note in (*target.notes, *target.warnings))
        if not target.metrics:
            yield f"{where}: {target.reason}"
        for metric in target.metrics:
            name = "" if brief else f", {metric_label(metric.metric_name)}"
            said = [*([metric.explanation] if metric.explanation else []), *metric.notes]
            if said:
                yield f"{where}{name}: {' '.join(said)}"


def _differences(comparison: PaperComparison) -> str:
    if not comparison.differences:
        return ""
    rows = [[escape(text) for text in difference_row(item)] for item in comparison.differences]
    return "## Differences from the Paper's Conditions\n\n" + markdown_table(DIFFERENCE_HEADINGS, rows)


DIFFERENCE_HEADINGS = ("Condition", "Paper", "Ours", "Where")


def difference_row(item: ConditionDifference) -> tuple[str, str, str, str]:
    """A difference as a row."""
    return item.what, item.paper, item.ours, "; ".join(item.where) or "everywhere"


def unexplained(comparison: PaperComparison) -> Iterator[tuple[str, TargetComparison, MetricComparison | None]]:
    """What is not within tolerance, with its title."""
    for target in comparison.targets:
        where = f"{target.table}, {row_name(target)}, {target.dataset}".rstrip(", ")
        for metric in target.metrics:
            if not metric.within_tolerance:
                yield f"{where}: {metric_label(metric.metric_name)} ({status_text(metric)})", target, metric
        if not target.metrics:
            yield f"{where} (missing)", target, None


def reasons(comparison: PaperComparison, target: TargetComparison, metric: MetricComparison | None) -> list[str]:
    """Why something is not within tolerance, as far as a program can say: facts, not guesses."""
    if metric is None or metric.status == "missing":
        return [metric.explanation or "It is missing." if metric else target.reason]
    known = [item for item in comparison.differences if not item.where or {target.table, target.place} & {*item.where}]
    differing = "; ".join(f"{item.what}: {item.paper} in the paper, {item.ours} here" for item in known)
    found = [metric.explanation or "", *metric.notes]
    found.append(f"What was not the same: {differing}." if differing else "No condition is known to differ.")
    return [text for text in (*found, *target.notes) if text]


def _deviations(comparison: PaperComparison) -> Iterator[str]:
    yield "## Deviations Explained\n"
    found = list(unexplained(comparison))
    if not found:
        yield "### None\n\nAll comparisons are within tolerance.\n"
    for title, target, metric in found:
        yield f"### {escape(title)}\n\n" + markdown_list(reasons(comparison, target, metric))


def _environment(comparison: PaperComparison) -> str:
    rows = [[escape(name), escape(value)] for name, value in comparison.environment.items()]
    return markdown_table(["Property", "Value"], rows)
