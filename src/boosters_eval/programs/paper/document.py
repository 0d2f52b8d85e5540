"""How results and comparisons are put into words, numbers and documents. The same comparison gives the same bytes."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from boosters_eval import metrics
from boosters_eval.core.text import clean, count_of
from boosters_eval.programs.paper.comparison import halve_last_digit, to_decimal
from boosters_eval.programs.paper.tolerances import canonicalize
from boosters_eval.reports.document import (
    Block,
    Charts,
    Details,
    Document,
    Fact,
    Group,
    Listing,
    ListItem,
    MarkedCell,
    Notes,
    Paragraph,
    PlainTable,
    Results,
    Section,
    show_cell,
    walk,
)
from boosters_eval.reports.html.charts import draw_table
from boosters_eval.reports.numbers import MISSING, estimate, number, percent
from boosters_eval.reports.tables import Column, ReportTable, Row, TableCell

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from boosters_eval.core.findings import Screen
    from boosters_eval.programs.paper.comparison import (
        ComparisonStatus,
        Confidence,
        MetricComparison,
        PaperComparison,
        PaperResults,
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


def show_plainly(document: Document, screen: Screen) -> None:
    """Tables as lines that a pipe can cut and a terminal fits, and the rest as it is."""
    for section in document.shown("text"):
        if section.title:
            screen.say(section.title)
        for block in walk(section.blocks):
            match block:
                case PlainTable():
                    rows = [[show_cell(cell) for cell in row] for row in block.rows]
                    screen.rows(block.headings, rows, keys=block.keys)
                case Paragraph():
                    screen.say(block.text)
                case Listing():
                    for item in block.items:
                        screen.say(f"  {item.text}")


def lay_out_results(results: PaperResults) -> Document:
    rows = tuple(
        (found.table, found.row, found.dataset, found.status.replace("_", " "), found.summary() or "-")
        for found in results.targets
    )
    table = PlainTable("Measured", ("table", "row", "data set", "status", "measured"), rows, keys=3)
    done = sum(found.status == "ok" for found in results.targets)
    answer = f"{done} of {count_of(len(rows), 'target')} ran."
    return Document(f"Results: {results.paper}", (answer,), sections=(Section("results", "", (table,)),))


def lay_out_comparison(comparison: PaperComparison) -> Document:
    """The report, in the order of the specification's sample. The page has charts instead of the printed tables."""
    when = f"Run {comparison.run_id}" if comparison.run_id else "Nothing was run"
    when += f" of {comparison.date}" if comparison.date else ""
    when += f" on {comparison.hardware}." if comparison.hardware else "."
    return Document(
        "Benchmark Validation Report",
        answer=(conclude(comparison),),
        lead=f"{name_paper(comparison)}. {when}",
        facts=tuple(_list_facts(comparison)),
        sections=(_summarize(comparison), *_print_tables(comparison), *_draw_tables(comparison), *_explain(comparison)),
    )


def conclude(comparison: PaperComparison) -> str:
    """The verdict, its confidence, and the counts that it follows from."""
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
    mark, verdict = OVERALL[comparison.verdict]
    return f"{mark} {verdict} ({CONFIDENCE[comparison.confidence].lower()}): {', '.join(parts)}.{rest}"


def name_paper(comparison: PaperComparison) -> str:
    """The paper with its number on arXiv."""
    return f"{comparison.paper} (arXiv:{comparison.arxiv_id})" if comparison.arxiv_id else comparison.paper


def name_row(target: TargetComparison) -> str:
    """The row, and whether it decides nothing."""
    name = target.row or "all rows"
    return name if target.primary else f"{name} (secondary)"


def label_metric(name: str) -> str:
    known = canonicalize(name)
    return metrics.label(known) if metrics.find(known) and name == name.lower() else name


def show_paper_value(metric: MetricComparison) -> str:
    """The printed digits, with the deviation and the unit."""
    std = "" if metric.paper_std is None else f" ± {metric.paper_std_printed or f'{metric.paper_std:g}'}"
    return f"{metric.paper_printed}{std}{_show_unit(metric.unit)}"


def show_our_value(metric: MetricComparison) -> str:
    """Our mean, at least to the digit after the paper's last one."""
    value = metric.our_value
    if value is None:
        return MISSING
    decimals = min(max(metric.paper_decimals + 1, 0), 12)
    if metric.our_std:
        shown = estimate(value, metric.our_std)
    elif abs(value) < 1e15 and float(f"{value:.{decimals}f}"):
        shown = f"{value:.{decimals}f}{'' if metric.our_std is None else ' ± 0'}"
    else:
        shown = number(value)
    return f"{shown}{_show_unit(metric.unit)}"


def _show_unit(unit: str) -> str:
    return f" {clean(unit)}" if unit and unit != "1" else ""


def show_difference(metric: MetricComparison) -> str:
    """The difference with its sign, in percent where the paper's value is not 0."""
    difference = metric.difference
    if difference is None or metric.status == "missing":
        return MISSING
    if not difference:
        return "0 %"
    if metric.relative_diff is None:
        return f"{'+' if difference > 0 else ''}{number(difference, 3)}{_show_unit(metric.unit)}"
    return percent(math.copysign(metric.relative_diff / 100, difference))


def show_tolerance(metric: MetricComparison) -> str:
    """Both tolerances; within either is within tolerance."""
    parts = []
    if metric.tolerance_absolute is not None:
        unit = " points" if metric.unit == "%" else _show_unit(metric.unit)
        parts.append(f"± {metric.tolerance_absolute:g}{unit}")
    if metric.tolerance_relative is not None:
        parts.append(f"± {metric.tolerance_relative:g} %")
    return " or ".join(parts)


def show_status(metric: MetricComparison) -> str:
    """The mark and the name; a label never hides that the value is outside the tolerance."""
    mark, name, _ = MARKS[metric.status]
    hides = metric.status in ("match", "close", "better") and not metric.within_tolerance
    return f"{mark} {name}{', outside tolerance' if hides else ''}"


def list_deviations(comparison: PaperComparison) -> Iterator[tuple[str, TargetComparison, MetricComparison | None]]:
    """What is not within tolerance, with its title."""
    for target in comparison.targets:
        where = f"{target.table}, {name_row(target)}, {target.dataset}".rstrip(", ")
        for metric in target.metrics:
            if not metric.within_tolerance:
                yield f"{where}: {label_metric(metric.metric_name)} ({show_status(metric)})", target, metric
        if not target.metrics:
            yield f"{where} (missing)", target, None


def explain_deviation(
    comparison: PaperComparison, target: TargetComparison, metric: MetricComparison | None
) -> list[str]:
    """Why something is not within tolerance, as far as a program can say: facts, not guesses."""
    if metric is None or metric.status == "missing":
        return [metric.explanation or "It is missing." if metric else target.reason]
    known = [item for item in comparison.differences if not item.where or {target.table, target.place} & {*item.where}]
    differing = "; ".join(f"{item.what}: {item.paper} in the paper, {item.ours} here" for item in known)
    found = [metric.explanation or "", *metric.notes]
    found.append(f"What was not the same: {differing}." if differing else "No condition is known to differ.")
    return [text for text in (*found, *target.notes) if text]


def _list_facts(comparison: PaperComparison) -> Iterator[Fact]:
    yield Fact("Confidence", comparison.confidence.capitalize(), alarm=comparison.confidence == "low")
    for status, count in comparison.counts.items():
        mark, name, _ = MARKS[status]
        alarming = status in ("deviation", "significant_deviation", "missing")
        yield Fact(f"{mark} {name}", str(count), alarm=alarming and count > 0)


def _summarize(comparison: PaperComparison) -> Section:
    head = {
        "Paper": name_paper(comparison),
        "Source": comparison.source,
        "Date": comparison.date or "not recorded",
        "Hardware": comparison.hardware or "not recorded",
        "Run": comparison.run_id or "nothing was run",
        "Only": ", ".join(comparison.only),
    }
    counts = [
        (f"{mark} {name}{f' ({meaning})' if meaning else ''}", comparison.counts[status])
        for status, (mark, name, meaning) in MARKS.items()
    ]
    blocks = (
        _list_pairs({name: text for name, text in head.items() if text}),
        PlainTable("Summary", ("Status", "Count"), tuple(counts)),
        _list_pairs({"Overall": " ".join(OVERALL[comparison.verdict])}),
    )
    return Section("counts", "Summary", blocks, only="text", detail=True)


def _list_pairs(pairs: Mapping[str, str]) -> Listing:
    return Listing(tuple(ListItem("", f"{name}:", f" {text}") for name, text in pairs.items()))


def _group_targets(comparison: PaperComparison) -> dict[str, dict[str, list[TargetComparison]]]:
    """The targets by the table's title and the data set."""
    found: dict[str, dict[str, list[TargetComparison]]] = {}
    for target in comparison.targets:
        title = f"{target.table}: {target.title}" if target.title else target.table
        found.setdefault(title, {}).setdefault(target.dataset, []).append(target)
    return found


def _print_tables(comparison: PaperComparison) -> Iterator[Section]:
    """The paper's tables as it prints them: one per data set."""
    headings = ("Model", "Metric", "Paper", "Ours", "Diff", "Tolerance", "z", "n", "Status")
    for i, (title, datasets) in enumerate(_group_targets(comparison).items()):
        blocks: list[Block] = [
            Group(dataset, (PlainTable(f"{title}, {dataset}", headings, tuple(_print_rows(targets))),))
            for dataset, targets in datasets.items()
        ]
        targets = [target for group in datasets.values() for target in group]
        if conditions := list(_list_conditions(targets)):
            blocks.append(Details("Conditions", (Listing.of(*conditions),)))
        if notes := tuple(_list_notes(targets)):
            blocks.append(Details("Notes", (Notes(notes),)))
        yield Section(f"table-{i}", title, tuple(blocks), only="text")


def _print_rows(targets: Iterable[TargetComparison]) -> Iterator[tuple[str | int | MarkedCell, ...]]:
    for target in targets:
        name = name_row(target)
        for metric in target.metrics:
            values = show_paper_value(metric), show_our_value(metric), show_difference(metric), show_tolerance(metric)
            status = MarkedCell(show_status(metric), _judge(metric))
            yield (name, label_metric(metric.metric_name), *values, _show_z(metric), metric.n, status)
        if not target.metrics:
            yield (name, *[MISSING] * 7, MarkedCell(" ".join(MARKS["missing"][:2]), "missing"))


def _show_z(metric: MetricComparison) -> str:
    return MISSING if metric.z_score is None else number(metric.z_score, 2)


def _judge(metric: MetricComparison) -> CellStatus:
    return "missing" if metric.status == "missing" else "pass" if metric.within_tolerance else "fail"


def _list_conditions(targets: Sequence[TargetComparison]) -> Iterator[str]:
    """Each condition once, with the rows that share it."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for target in targets:
        for side, conditions in (("paper", target.paper_conditions), ("ours", target.our_conditions)):
            for name, value in conditions.items():
                found.setdefault((name, value, side), []).append(f"{target.row} on {target.dataset}")
    for (name, value, side), where in found.items():
        who = "" if len(where) == len(targets) else f"; {', '.join(where)}"
        yield f"{name.replace('_', ' ')} ({side}{who}): {value}"


def _list_notes(targets: Iterable[TargetComparison], only: str | None = None) -> Iterator[str]:
    """What the paper, the run and the comparison say of these rows, of all metrics or of one under its own heading."""
    for target in targets:
        chosen = [metric for metric in target.metrics if only in (None, metric.metric_name)]
        if target.metrics and not chosen:
            continue
        where = target.row or "all rows"
        where = f"{where}, {target.dataset}" if only is None and target.dataset else where
        yield from dict.fromkeys(f"{where}: {note}" for note in (*target.notes, *target.warnings))
        if not target.metrics:
            yield f"{where}: {target.reason}"
        for metric in chosen:
            name = f", {label_metric(metric.metric_name)}" if only is None else ""
            if said := [text for text in (metric.explanation, *metric.notes) if text]:
                yield f"{where}{name}: {' '.join(said)}"


def _draw_tables(comparison: PaperComparison) -> Iterator[Section]:
    """A table per data set and metric of each of the paper's tables, so that its values share an axis."""
    groups: dict[str, list[Block]] = {}
    for title, datasets in _group_targets(comparison).items():
        for dataset, targets in datasets.items():
            names = dict.fromkeys(metric.metric_name for target in targets for metric in target.metrics)
            for name in names or ("",):
                table = _make_table(title, dataset, name, targets)
                groups.setdefault(title, []).append(Results(table, Charts(partial(draw_table, table, {}, 0.05))))
    results = tuple(Group(title, tuple(blocks)) for title, blocks in groups.items())
    search = "Filter comparisons" if sum(map(len, groups.values())) > 1 else ""
    nothing = (Paragraph("There is nothing to compare."),)
    yield Section("results", "Results", results or nothing, search=search, only="page")
    yield Section("notes", "Notes", (Notes(comparison.notes),) if comparison.notes else ())


def _make_table(title: str, dataset: str, name: str, targets: Sequence[TargetComparison]) -> ReportTable:
    pairs = [(target, metric) for target in targets for metric in target.metrics if metric.metric_name == name]
    label = label_metric(name)
    units = {metric.unit for _, metric in pairs if metric.unit and metric.unit not in label}
    quantity = f"{label} ({units.pop()})" if len(units) == 1 else label
    higher = next((metric.higher_is_better for _, metric in pairs), None)
    columns = (
        Column("paper", "Paper", None, kind="reference"),
        Column("ours", "Ours", None, kind="measured", quantity=Column("", quantity, higher).heading),
        *(Column(shown.lower(), shown, None) for shown in ("Difference", "Tolerance", "z", "Status")),
    )
    nothing = (*(_text_cell(MISSING) for _ in range(5)), _text_cell(MARKS["missing"][0], status="missing"))
    rows = [Row((name_row(target),), _make_cells(metric), n=metric.n) for target, metric in pairs]
    rows += [Row((name_row(target),), nothing) for target in targets if not target.metrics]
    return ReportTable(
        name=f"{dataset}: {label}" if dataset and label else dataset or label or title,
        row_names=("Model",),
        columns=columns,
        rows=tuple(rows),
        keys={"table": title, "data set": dataset, "metric": name},
        notes=tuple(_list_notes(targets, name)),
    )


def _make_cells(metric: MetricComparison) -> tuple[TableCell, ...]:
    low, high = _find_accepted_range(metric)
    compared = metric.status != "missing"
    ours = TableCell(metric.our_value, metric.our_std, metric.n, show_our_value(metric))
    return (
        TableCell(metric.paper_value, metric.paper_std, 1, show_paper_value(metric), low=low, high=high),
        ours if compared else TableCell(None, None, metric.n, ours.text, status="missing"),
        _text_cell(show_difference(metric), metric.relative_diff),
        _text_cell(show_tolerance(metric)),
        _text_cell(_show_z(metric), metric.z_score),
        _text_cell(show_status(metric) if compared else MARKS["missing"][0], status=_judge(metric)),
    )


def _text_cell(shown: str, value: float | None = None, status: CellStatus = "ok") -> TableCell:
    return TableCell(mean=value, std=None, n=0, text=shown, status=status)


def _find_accepted_range(metric: MetricComparison) -> tuple[float, float]:
    """Everything that is within tolerance: what rounds to the printed digits, and what either tolerance allows."""
    paper = to_decimal(metric.paper_value)
    sizes = [halve_last_digit(metric.paper_decimals)]
    if metric.tolerance_absolute is not None:
        sizes.append(to_decimal(metric.tolerance_absolute))
    if metric.tolerance_relative is not None:
        sizes.append(abs(paper) * to_decimal(metric.tolerance_relative) / 100)
    return float(paper - max(sizes)), float(paper + max(sizes))


def _explain(comparison: PaperComparison) -> Iterator[Section]:
    stated = (Listing.of(*comparison.conditions),) if comparison.conditions else ()
    yield Section("stated", "The Paper's Conditions", stated, only="text")
    rows = tuple((it.what, it.paper, it.ours, "; ".join(it.where) or "everywhere") for it in comparison.differences)
    table = PlainTable("Differences", ("Condition", "Paper", "Ours", "Where"), rows)
    title = "Differences from the Paper's Conditions"
    yield Section("differences", title, (table,) if rows else (), short="Differences")
    deviations = [
        Details(title, (Listing.of(*explain_deviation(comparison, target, metric)),))
        for title, target, metric in list_deviations(comparison)
    ]
    nothing = Group("None", (Paragraph("All comparisons are within tolerance."),))
    yield Section("deviations", "Deviations Explained", tuple(deviations) or (nothing,), short="Deviations")
    yield Section("conditions", "Conditions", (*stated, *_make_condition_tables(comparison)), only="page")
    confidence = ListItem("", CONFIDENCE[comparison.confidence], f" - {_explain_confidence(comparison)}")
    yield Section("confidence", "Reproduction Confidence", (Listing((confidence,)),), short="Confidence")
    listed = any(name.endswith((".md", ".html")) for name in comparison.files)
    files = Listing.of(*comparison.files, *([] if listed else ["this report"]))
    yield Section("files", "Files Generated", (files,), short="Files")
    environment = PlainTable("Environment", ("Property", "Value"), tuple(comparison.environment.items()))
    yield Section("environment", "Environment", (environment,) if environment.rows else (), detail=True)


def _make_condition_tables(comparison: PaperComparison) -> Iterator[Details]:
    for target in comparison.targets:
        paper, ours = target.paper_conditions, target.our_conditions
        rows = [(name.replace("_", " "), paper.get(name), ours.get(name)) for name in dict.fromkeys([*paper, *ours])]
        rows += [(f"version of {name}", None, version) for name, version in target.versions.items()]
        if target.seeds:
            rows.append(("seeds", None, ", ".join(map(str, target.seeds))))
        if rows:
            table = PlainTable("Conditions", ("Condition", "Paper", "Ours"), tuple(rows))
            yield Details(f"{target.table}: {target.row}", (table,), aside=target.dataset)


def _explain_confidence(comparison: PaperComparison) -> str:
    """Why the confidence is what it is, by the rule of the documentation."""
    found = comparison.primary_counts
    return (
        f"{count_of(found.comparisons, 'primary comparison')}: {found.matched} matched or close within tolerance, "
        f"{found.missing} missing, at least {count_of(found.repeats, 'repeat')} of each. "
        "High needs a verdict of 'reproduced' from at least 3 primary comparisons of at least 3 repeats each, of which "
        "80 % match or are close, in a run of all targets; low is 'not reproduced' or 'incomplete'; medium is the rest."
    )
