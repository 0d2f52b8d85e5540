"""The report in Markdown, in the order of the specification's sample. The same comparison gives the same bytes."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from boosters_eval import metrics
from boosters_eval.core.text import clean, clean_lines, count_of
from boosters_eval.programs.paper.comparison import exact, half_digit
from boosters_eval.programs.paper.tolerances import canonicalize
from boosters_eval.reports.document import (
    Block,
    Charts,
    Details,
    Document,
    Fact,
    Group,
    Listing,
    Notes,
    Paragraph,
    PlainTable,
    Results,
    Section,
)
from boosters_eval.reports.html.page import render_page
from boosters_eval.reports.html.tradeoff import draw_table
from boosters_eval.reports.markdown import escape, markdown_list, markdown_table
from boosters_eval.reports.numbers import MISSING, estimate, number, percent
from boosters_eval.reports.tables import Column, ReportTable, Row, TableCell

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from boosters_eval.programs.paper.comparison import (
        ComparisonStatus,
        ConditionDifference,
        Confidence,
        MetricComparison,
        PaperComparison,
        PaperVerdict,
        TargetComparison,
    )
    from boosters_eval.reports.tables import CellStatus


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
    return metrics.label(canonicalize(name)) if metrics.find(canonicalize(name)) and name == name.lower() else name


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
    parts = [f"{found.within} of {count_of(found.comparisons, 'primary comparison')} {verb} within tolerance"]
    outside = found.comparisons - found.within - found.missing
    if outside:
        favor = outside - found.worse
        parts.append(f"{outside} outside" + (f" ({favor} of them in our favor)" if favor else ""))
    if found.missing:
        parts.append(f"{found.missing} missing")
    if not found.comparisons:
        parts = ["There is no primary target to compare"]
    rest = f" {count_of(found.unfinished, 'secondary comparison')} could not be made." if found.unfinished else ""
    return ", ".join(parts) + "." + rest


def confidence_reason(comparison: PaperComparison) -> str:
    """Why the confidence is what it is, by the rule of the documentation."""
    found = comparison.primary_counts
    counts = (
        f"{count_of(found.comparisons, 'primary comparison')}: {found.matched} matched or close within tolerance, "
        f"{found.missing} missing, at least {count_of(found.repeats, 'repeat')} of each."
    )
    rule = (
        "High needs a verdict of 'reproduced' from at least 3 primary comparisons of at least 3 repeats each, of which "
        "80 % match or are close, in a run of all targets; low is 'not reproduced' or 'incomplete'; medium is the rest."
    )
    return f"{counts} {rule}"


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


def render_html(comparison: PaperComparison) -> str:
    """The report as one HTML file."""
    return render_page(document_of(comparison))


def document_of(comparison: PaperComparison) -> Document:
    """The report for the page."""
    when = f" Run {comparison.run_id}" if comparison.run_id else " Nothing was run"
    when += f" of {comparison.date}" if comparison.date else ""
    when += f" on {comparison.hardware}." if comparison.hardware else "."
    groups: dict[str, list[Block]] = {}
    for table in tables_of(comparison):
        drawn = Charts(partial(draw_table, table, {}, 0.05))
        groups.setdefault(table.keys["table"], []).append(Results(table, drawn))
    results = tuple(Group(title, tuple(blocks)) for title, blocks in groups.items())
    several = sum(map(len, groups.values())) > 1
    environment = PlainTable("Environment", ("Property", "Value"), tuple(comparison.environment.items()))
    return Document(
        f"{OVERALL[comparison.verdict][1]}: {paper_name(comparison)}",
        lead=f"{overall(comparison)}{when}",
        facts=tuple(_facts(comparison)),
        sections=(
            Section(
                "results",
                "Results",
                results or (Paragraph("There is nothing to compare."),),
                search="Filter comparisons" if several else "",
            ),
            Section("notes", "Notes", (Notes(comparison.notes),) if comparison.notes else ()),
            *_sections(comparison),
            Section("environment", "Environment", (environment,) if environment.rows else (), detail=True),
        ),
    )


def _facts(comparison: PaperComparison) -> Iterator[Fact]:
    yield Fact(label="Confidence", value=comparison.confidence.capitalize(), alarm=comparison.confidence == "low")
    for status, count in comparison.counts.items():
        mark, name, _ = MARKS[status]
        alarming = status in ("deviation", "significant_deviation", "missing")
        yield Fact(label=f"{mark} {name}", value=str(count), alarm=alarming and count > 0)


def tables_of(comparison: PaperComparison) -> Iterator[ReportTable]:
    """A table per data set and metric of each of the paper's tables, so that its values share an axis."""
    for title, datasets in by_table(comparison).items():
        for dataset, targets in datasets.items():
            names = dict.fromkeys(metric.metric_name for target in targets for metric in target.metrics)
            for name in names or ("",):
                yield _table(title, dataset, name, targets)


def _table(title: str, dataset: str, name: str, targets: Iterable[TargetComparison]) -> ReportTable:
    pairs = [(t, metric) for t in targets for metric in t.metrics if metric.metric_name == name]
    label = metric_label(name)
    units = {metric.unit for _, metric in pairs if metric.unit and metric.unit not in label}
    quantity = f"{label} ({units.pop()})" if len(units) == 1 else label
    higher = next((metric.higher_is_better for _, metric in pairs), None)
    columns = (
        Column("paper", "Paper", None, kind="reference"),
        Column("ours", "Ours", None, kind="measured", quantity=_with_arrow(quantity, higher_is_better=higher)),
        Column("difference", "Difference", None),
        Column("tolerance", "Tolerance", None),
        Column("z", "z", None),
        Column("status", "Status", None),
    )
    rows = [Row((row_name(target),), _cells(metric), n=metric.n) for target, metric in pairs]
    rows += [Row((row_name(target),), _nothing()) for target in targets if not target.metrics]
    mine = [_only(target, name) for target in targets]
    return ReportTable(
        name=f"{dataset}: {label}" if dataset and label else dataset or label or title,
        row_names=("Model",),
        columns=columns,
        rows=tuple(rows),
        keys={"table": title, "data set": dataset, "metric": name},
        notes=tuple(notes_of([target for target in mine if target is not None], brief=True)),
    )


def _with_arrow(text: str, *, higher_is_better: bool | None) -> str:
    return Column("", text, higher_is_better).heading


def _only(target: TargetComparison, name: str) -> TargetComparison | None:
    """The target with one of its metrics."""
    if not target.metrics:
        return target
    kept = tuple(metric for metric in target.metrics if metric.metric_name == name)
    return target.replace(metrics=kept) if kept else None


def _cells(metric: MetricComparison) -> tuple[TableCell, ...]:
    low, high = accepted_range(metric)
    compared = metric.status != "missing"
    ours = TableCell(mean=metric.our_value, std=metric.our_std, n=metric.n, text=our_text(metric))
    return (
        TableCell(mean=metric.paper_value, std=metric.paper_std, n=1, text=paper_text(metric), low=low, high=high),
        ours if compared else TableCell(mean=None, std=None, n=metric.n, text=ours.text, status="missing"),
        _text_cell(difference_text(metric), metric.relative_diff),
        _text_cell(tolerance_text(metric)),
        _text_cell(MISSING if metric.z_score is None else number(metric.z_score, 2), metric.z_score),
        _text_cell(status_text(metric) if compared else MARKS["missing"][0], status=_judged(metric)),
    )


def _judged(metric: MetricComparison) -> CellStatus:
    if metric.status == "missing":
        return "missing"
    return "pass" if metric.within_tolerance else "fail"


def _nothing() -> tuple[TableCell, ...]:
    return (*(_text_cell(MISSING) for _ in range(5)), _text_cell(MARKS["missing"][0], status="missing"))


def _text_cell(shown: str, value: float | None = None, status: CellStatus = "ok") -> TableCell:
    return TableCell(mean=value, std=None, n=0, text=shown, status=status)


def _sections(comparison: PaperComparison) -> Iterator[Section]:
    found = list(unexplained(comparison))
    deviations = [
        Details(title=title, blocks=(_listing(reasons(comparison, target, metric)),)) for title, target, metric in found
    ]
    nothing = Paragraph(text="All comparisons are within tolerance.")
    yield Section(
        anchor="deviations", title="Deviations Explained", short="Deviations", blocks=tuple(deviations) or (nothing,)
    )
    if comparison.differences:
        rows = tuple(difference_row(item) for item in comparison.differences)
        table = PlainTable(name="Differences", headings=DIFFERENCE_HEADINGS, rows=rows)
        yield Section(
            anchor="differences", title="Differences from the Paper's Conditions", short="Differences", blocks=(table,)
        )
    stated = (_listing(comparison.conditions),) if comparison.conditions else ()
    conditions = (*stated, *_condition_tables(comparison))
    if conditions:
        yield Section(anchor="conditions", title="Conditions", blocks=conditions)
    reason = f"{CONFIDENCE[comparison.confidence]}: {confidence_reason(comparison)}"
    yield Section(
        anchor="confidence", title="Reproduction Confidence", short="Confidence", blocks=(Paragraph(text=reason),)
    )
    files = _listing(files_of(comparison, ".html", "this page"))
    yield Section(anchor="files", title="Files Generated", short="Files", blocks=(files,))


def _condition_tables(comparison: PaperComparison) -> Iterator[Details]:
    for target in comparison.targets:
        names = dict.fromkeys([*target.paper_conditions, *target.our_conditions])
        rows = [
            (name.replace("_", " "), target.paper_conditions.get(name), target.our_conditions.get(name))
            for name in names
        ]
        rows += [(f"version of {name}", None, version) for name, version in target.versions.items()]
        if target.seeds:
            rows.append(("seeds", None, ", ".join(map(str, target.seeds))))
        if rows:
            table = PlainTable(name="Conditions", headings=("Condition", "Paper", "Ours"), rows=tuple(rows))
            yield Details(title=f"{target.table}: {target.row}", aside=target.dataset, blocks=(table,))


def _listing(texts: Iterable[str]) -> Listing:
    return Listing.of(*texts)
