"""The report as a page, and as tables for the terminal: the paper's values beside ours, through the table model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.programs.paper.report import (
    DIFFERENCE_HEADINGS,
    by_table,
    difference_row,
    files_of,
    notes_of,
    reasons,
    row_name,
    unexplained,
)
from boosters_eval.programs.paper.wording import (
    CONFIDENCE,
    MARKS,
    OVERALL,
    accepted_range,
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
from boosters_eval.reports import (
    Column,
    Details,
    Fact,
    Listing,
    ListItem,
    Paragraph,
    PlainTable,
    ReportDocument,
    ReportTable,
    Row,
    Section,
    TableCell,
    render_page,
)
from boosters_eval.reports.numbers import MISSING, number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from boosters_eval.programs.paper.comparison import MetricComparison, PaperComparison, TargetComparison
    from boosters_eval.reports import CellStatus


def render_html(comparison: PaperComparison) -> str:
    """The report as one HTML file."""
    return render_page(document_of(comparison))


def document_of(comparison: PaperComparison) -> ReportDocument:
    """The report for the page."""
    when = f" Run {comparison.run_id}" if comparison.run_id else " Nothing was run"
    when += f" of {comparison.date}" if comparison.date else ""
    when += f" on {comparison.hardware}." if comparison.hardware else "."
    lead = f"{overall(comparison)}{when}"
    return ReportDocument(
        title=f"{OVERALL[comparison.verdict][1]}: {paper_name(comparison)}",
        lead=lead,
        facts=tuple(_facts(comparison)),
        environment=tuple(comparison.environment.items()),
        tables=tuple(tables_of(comparison)),
        group_by="table",
        table_noun="comparison",
        empty="There is nothing to compare.",
        notes=comparison.notes,
        sections=tuple(_sections(comparison)),
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
        _text(difference_text(metric), metric.relative_diff),
        _text(tolerance_text(metric)),
        _text(MISSING if metric.z_score is None else number(metric.z_score, 2), metric.z_score),
        _text(status_text(metric) if compared else MARKS["missing"][0], status=_judged(metric)),
    )


def _judged(metric: MetricComparison) -> CellStatus:
    if metric.status == "missing":
        return "missing"
    return "pass" if metric.within_tolerance else "fail"


def _nothing() -> tuple[TableCell, ...]:
    return (*(_text(MISSING) for _ in range(5)), _text(MARKS["missing"][0], status="missing"))


def _text(shown: str, value: float | None = None, status: CellStatus = "ok") -> TableCell:
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
    conditions = (*stated, *_conditions(comparison))
    if conditions:
        yield Section(anchor="conditions", title="Conditions", blocks=conditions)
    reason = f"{CONFIDENCE[comparison.confidence]}: {confidence_reason(comparison)}"
    yield Section(
        anchor="confidence", title="Reproduction Confidence", short="Confidence", blocks=(Paragraph(text=reason),)
    )
    files = _listing(files_of(comparison, ".html", "this page"))
    yield Section(anchor="files", title="Files Generated", short="Files", blocks=(files,))


def _conditions(comparison: PaperComparison) -> Iterator[Details]:
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
    return Listing(items=tuple(ListItem(text=text) for text in texts))
