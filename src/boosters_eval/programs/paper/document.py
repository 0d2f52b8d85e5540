"""How results and comparisons are put into words, numbers and documents. The same comparison gives the same bytes."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from boosters_eval import metrics
from boosters_eval.core.text import clean, count_of
from boosters_eval.programs.paper.comparison import NOT_RECORDED, NOT_STATED, halve_last_digit, to_decimal
from boosters_eval.programs.paper.tolerances import canonicalize
from boosters_eval.reports import document as doc
from boosters_eval.reports.html.charts import draw_table
from boosters_eval.reports.numbers import MISSING, estimate, number, percent
from boosters_eval.reports.tables import Column, ReportTable, Row, TableCell

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from boosters_eval.programs.paper.comparison import (
        ComparisonStatus,
        MetricComparison,
        PaperComparison,
        PaperResults,
        PaperVerdict,
        TargetComparison,
    )
    from boosters_eval.reports.tables import CellStatus

MARKS: dict[ComparisonStatus, tuple[str, str]] = {  # with what it means in a summary
    "match": ("✓ Match", " (<1% diff)"),
    "close": ("~ Close", " (<3% diff)"),
    "within_tolerance": ("○ Within Tolerance", ""),
    "better": ("▲ Better", " (≥3% diff, in our favor)"),
    "deviation": ("⚠ Deviation", ""),
    "significant_deviation": ("✗ Significant", ""),
    "missing": ("? Missing", ""),
}
OVERALL: dict[PaperVerdict, str] = {
    "reproduced": "✓ Reproduction Successful",
    "reproduced with deviations": "⚠ Reproduced with Deviations, so not fully reproduced",
    "not reproduced": "✗ Not Reproduced",
    "incomplete": "? Incomplete, so nothing is decided",
}
_MOST_DECIMALS = 12


def lay_out_results(results: PaperResults) -> doc.Document:
    rows = tuple(
        (found.table, found.row, found.dataset, found.status.replace("_", " "), found.summary() or "-")
        for found in results.targets
    )
    table = doc.PlainTable("Measured", ("table", "row", "data set", "status", "measured"), rows, keys=3)
    done = sum(found.status == "ok" for found in results.targets)
    answer = f"{done} of {count_of(len(rows), 'target')} ran."
    return doc.Document(f"Results: {results.paper}", (answer,), sections=(doc.Section("results", "", (table,)),))


def lay_out_comparison(comparison: PaperComparison) -> doc.Document:
    """The report, in the order of the specification's sample. The page has charts instead of the printed tables."""
    when = f"Run {comparison.run_id}" if comparison.run_id else "Nothing was run"
    when += f" of {comparison.date}" if comparison.date else ""
    when += f" on {comparison.hardware}." if comparison.hardware else "."
    alarming = ("deviation", "significant_deviation", "missing")
    facts = [doc.Fact("Confidence", comparison.confidence.capitalize(), alarm=comparison.confidence == "low")]
    for status, count in comparison.counts.items():
        facts.append(doc.Fact(MARKS[status][0], str(count), alarm=status in alarming and count > 0))
    return doc.Document(
        "Benchmark Validation Report",
        answer=tuple(conclude(comparison)),
        lead=f"{_name_paper(comparison)}. {when}",
        facts=tuple(facts),
        sections=(_summarize(comparison), *_lay_out_tables(comparison), *_explain(comparison)),
    )


def conclude(comparison: PaperComparison) -> Iterator[str]:
    """The verdict with the counts and the exit code that it gives; then how sure it is; then what else is missing."""
    found = comparison.primary_counts
    outside = found.comparisons - found.within - found.missing
    far, favor = found.significant, outside - found.worse
    apart = f", {_count_some(far, outside)}by 10 % or more" if far else ""
    apart += f", {_count_some(favor, outside)}in our favor" if favor else ""
    counts = {
        "within tolerance of the paper's": found.within,
        f"outside tolerance{apart}": outside,
        "missing": found.missing,
    }
    parts = [f"{count} {'is' if count == 1 else 'are'} {what}" for what, count in counts.items() if count]
    told = "; ".join(parts) or "the specification names no primary target"
    of_all = f" of {count_of(found.comparisons, 'primary value')} " if parts else " "
    verdict = OVERALL[comparison.verdict]
    yield f"{verdict}: {told.replace(' ', of_all, 1)} (exit code {comparison.exit_code})."
    yield f"{comparison.confidence.capitalize()} confidence: {_explain_confidence(comparison)}."
    if found.unfinished:
        why = ", which is why the exit code is 2" if not (outside or found.missing) else ""
        yield f"{count_of(found.unfinished, 'secondary value')} could not be compared{why}."


def _count_some(count: int, total: int) -> str:
    return "" if count == total else f"{count} of them "


def _explain_confidence(comparison: PaperComparison) -> str:
    """What keeps the confidence from being higher, by the rule of the documentation."""
    found = comparison.primary_counts
    if comparison.confidence == "low":
        return "the run contradicts the paper" if comparison.verdict == "not reproduced" else "the run is incomplete"
    reasons = {
        "a primary value is outside tolerance": found.within < found.comparisons,
        f"only {count_of(found.comparisons, 'primary value')} compared, and 3 are needed": found.comparisons < 3,
        f"only {count_of(found.repeats, 'observation')} of a value, and 3 are needed": found.repeats < 3,
        "fewer than 80 % of the values match or are close": 5 * found.matched < 4 * found.comparisons,
        "the run was restricted to some targets": found.restricted,
    }
    missed = [text for text, applies in reasons.items() if applies]
    return "; ".join(missed) or f"at least 80 % of the values match or are close, over {found.repeats} repeats or more"


def _name_paper(comparison: PaperComparison) -> str:
    return f"{comparison.paper} (arXiv:{comparison.arxiv_id})" if comparison.arxiv_id else comparison.paper


def _name_row(target: TargetComparison) -> str:
    """The row, and whether it decides nothing."""
    name = target.row or "all rows"
    return name if target.primary else f"{name} (secondary)"


def _label_metric(name: str) -> str:
    known = canonicalize(name)
    return metrics.label(known) if metrics.find(known) and name == name.lower() else name


class ShownMetric(NamedTuple):
    """A comparison of two numbers, in words and digits."""

    paper: str  # the printed digits, with the deviation and the unit
    ours: str
    difference: str  # with its sign, in percent where the paper's value is not 0
    tolerance: str  # both: within either is within tolerance
    z: str
    status: str  # a label never hides that the value is outside the tolerance


def show_metric(metric: MetricComparison) -> ShownMetric:
    unit = f" {clean(metric.unit)}" if metric.unit and metric.unit != "1" else ""
    std = "" if metric.paper_std is None else f" ± {metric.paper_std_printed or f'{metric.paper_std:g}'}"
    difference = None if metric.status == "missing" else metric.difference
    if difference is None:
        change = MISSING
    elif not difference:
        change = "0 %"
    elif metric.relative_diff is None:
        change = f"{'+' if difference > 0 else ''}{number(difference, 3)}{unit}"
    else:
        change = percent(math.copysign(metric.relative_diff / 100, difference))
    tolerances = []
    if metric.tolerance_absolute is not None:
        tolerances.append(f"± {metric.tolerance_absolute:g}{' points' if metric.unit == '%' else unit}")
    if metric.tolerance_relative is not None:
        tolerances.append(f"± {metric.tolerance_relative:g} %")
    status = MARKS[metric.status][0]
    if metric.status in ("match", "close", "better") and not metric.within_tolerance:
        status += ", outside tolerance"
    elif metric.equal_as_printed and (metric.relative_diff is None or metric.relative_diff >= 1) and difference:
        status += f", rounds to {metric.paper_printed}"  # though the difference looks larger than a match
    return ShownMetric(
        f"{metric.paper_printed}{std}{unit}",
        MISSING if metric.our_value is None else f"{_show_digits(metric, metric.our_value)}{unit}",
        change,
        " or ".join(tolerances),
        MISSING if metric.z_score is None else number(metric.z_score, 2),
        status,
    )


def _show_digits(metric: MetricComparison, value: float) -> str:
    """Our mean, with the digit after the paper's last one and as many as it takes to be judged as it was."""
    spread = "" if metric.our_std is None else " ± 0"
    if metric.our_std:
        shown = estimate(value, metric.our_std)
        mean, plus_minus, std = shown.partition(" ± ")
        if "(" in mean or (metric.judges_alike(float(mean)) and (metric.paper_value or _is_exact(mean, value))):
            return shown
        spread = f"{plus_minus}{std}"
    for decimals in range(min(max(metric.paper_decimals + 1, 0), _MOST_DECIMALS), _MOST_DECIMALS + 1):
        rounded = f"{value:.{decimals}f}"
        if abs(value) < 1e15 and _is_exact(rounded, value) and metric.judges_alike(float(rounded)):
            return f"{rounded}{spread}"
    return number(value)


def _is_exact(rounded: str, value: float) -> bool:
    """Whether rounding takes away half of the third digit at most."""
    return abs(float(rounded) - value) <= abs(value) / 200


def list_deviations(
    comparison: PaperComparison, *, missing: bool | None = None
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What is not within tolerance, and why, as far as a program can say: facts, not guesses.

    Only what is `missing`, or only what is not; None for both.
    """
    for target in comparison.targets:
        where = f"{target.table}, {_name_row(target)}, {target.dataset}".rstrip(", ")
        for metric in target.metrics:
            if not metric.within_tolerance and missing in (None, metric.status == "missing"):
                title = f"{where}: {_label_metric(metric.metric_name)} ({show_metric(metric).status})"
                yield title, _explain_deviation(comparison, target, metric)
        if not target.metrics and missing is not False:
            yield f"{where} (missing)", (target.reason,)


def _explain_deviation(
    comparison: PaperComparison, target: TargetComparison, metric: MetricComparison
) -> tuple[str, ...]:
    if metric.status == "missing":
        return (metric.explanation or "It is missing.",)
    known = [item for item in comparison.differences if not item.where or {target.table, target.place} & {*item.where}]
    differing = [it for it in known if it.paper != NOT_STATED and it.ours != NOT_RECORDED]
    unknown = ", ".join(it.what for it in known if it not in differing)
    told = "; ".join(f"{it.what}: {it.paper} in the paper, {it.ours} here" for it in differing)
    same = f"What was not the same: {told}." if told else "No condition is known to differ."
    open_to_doubt = f"Stated only by one side: {unknown}." if unknown else ""
    return tuple(filter(None, (metric.explanation, *metric.notes, same, open_to_doubt, *target.notes)))


def _summarize(comparison: PaperComparison) -> doc.Section:
    head = {
        "Paper": _name_paper(comparison),
        "Source": comparison.source,
        "Date": comparison.date or "not recorded",
        "Hardware": comparison.hardware or "not recorded",
        "Run": comparison.run_id or "nothing was run",
        "Only": ", ".join(comparison.only),
    }
    counts = [(f"{name}{meaning}", comparison.counts[status]) for status, (name, meaning) in MARKS.items()]
    blocks = (
        doc.Listing(tuple(doc.ListItem("", f"{name}:", f" {text}") for name, text in head.items() if text)),
        doc.PlainTable("Summary", ("Status", "Count"), tuple(counts)),
        doc.Listing((doc.ListItem("", "Overall:", f" {OVERALL[comparison.verdict]}"),)),
    )
    return doc.Section("counts", "Summary", blocks, only="text", detail=True)


def _lay_out_tables(comparison: PaperComparison) -> Iterator[doc.Section]:
    """The paper's tables: in text as it prints them, one per data set; on the page one per metric, beside a chart."""
    grouped: dict[str, dict[str, list[TargetComparison]]] = {}
    for target in comparison.targets:
        title = f"{target.table}: {target.title}" if target.title else target.table
        grouped.setdefault(title, {}).setdefault(target.dataset, []).append(target)
    headings = ("Model", "Metric", "Paper", "Ours", "Diff", "Status", "Tolerance", "z", "n")
    pages: list[doc.Block] = []
    cards = 0
    for i, (title, datasets) in enumerate(grouped.items()):
        printed: list[doc.Block] = []
        drawn: list[doc.Block] = []
        for dataset, targets in datasets.items():
            rows = tuple(row for target in targets for row in _print_rows(target))
            printed.append(doc.Group(dataset, (doc.PlainTable(f"{title}, {dataset}", headings, rows, keys=2),)))
            names = dict.fromkeys(metric.metric_name for target in targets for metric in target.metrics)
            tables = [_make_table(title, dataset, name, targets) for name in names or ("",)]
            drawn += [doc.Results(table, doc.Charts(partial(draw_table, table, {}, 0.05))) for table in tables]
        cards += len(drawn)
        every = [target for targets in datasets.values() for target in targets]
        conditions = tuple(_list_conditions(every))
        about = [doc.Details("Conditions", (doc.Listing.of(*conditions),))] if conditions else []
        notes = tuple(_list_notes(every))
        told = [doc.Details("Notes", (doc.Notes(notes),))] if notes else []
        pages.append(doc.Group(title, (*drawn, *about)))
        yield doc.Section(f"table-{i}", title, tuple(printed), only="text")
        yield doc.Section(f"about-{i}", f"About {every[0].table}", (*about, *told), only="text", detail=True)
    search = "Filter comparisons" if cards > 1 else ""
    nothing = (doc.Paragraph("There is nothing to compare."),)
    yield doc.Section("results", "Results", tuple(pages) or nothing, search=search, only="page")
    yield doc.Section("notes", "Notes", (doc.Notes(comparison.notes),) if comparison.notes else ())


def _print_rows(target: TargetComparison) -> Iterator[tuple[str | int | doc.MarkedCell, ...]]:
    name = _name_row(target)
    for metric in target.metrics:
        paper, ours, difference, tolerance, z, status = show_metric(metric)
        values = paper, ours, difference, doc.MarkedCell(status, _judge(metric)), tolerance, z
        yield (name, _label_metric(metric.metric_name), *values, metric.n)
    if not target.metrics:
        yield (name, *[MISSING] * 4, doc.MarkedCell(MARKS["missing"][0], "missing"), *[MISSING] * 3)


def _judge(metric: MetricComparison) -> CellStatus:
    return "missing" if metric.status == "missing" else "pass" if metric.within_tolerance else "fail"


def _list_conditions(targets: Sequence[TargetComparison]) -> Iterator[str]:
    """Each condition once, with the rows that share it."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for target in targets:
        seeds = {"seeds": ", ".join(map(str, target.seeds))} if target.seeds else {}
        versions = {f"version of {name}": version for name, version in target.versions.items()}
        for side, conditions in (
            ("paper", target.paper_conditions),
            ("ours", target.our_conditions | versions | seeds),
        ):
            for name, value in conditions.items():
                found.setdefault((name, value, side), []).append(f"{target.row} on {target.dataset}")
    for (name, value, side), where in found.items():
        who = "" if len(where) == len(targets) else f"; {', '.join(where)}"
        yield f"{name.replace('_', ' ')} ({side}{who}): {value}"


def _list_notes(targets: Sequence[TargetComparison], only: str | None = None) -> Iterator[str]:
    """What is known of these rows, of all metrics or of one under its own heading. Deviations have their own place."""
    for target in targets:
        chosen = [metric for metric in target.metrics if only in (None, metric.metric_name)]
        if target.metrics and not chosen:
            continue
        where = target.row or "all rows"
        where = f"{where}, {target.dataset}" if only is None and target.dataset else where
        yield from dict.fromkeys(f"{where}: {note}" for note in (*target.notes, *target.warnings))
        for metric in chosen:
            name = f", {_label_metric(metric.metric_name)}" if only is None else ""
            said = " ".join(filter(None, (metric.explanation, *metric.notes)))
            if said and metric.within_tolerance:
                yield f"{where}{name}: {said}"


def _make_table(title: str, dataset: str, name: str, targets: Sequence[TargetComparison]) -> ReportTable:
    pairs = [(target, metric) for target in targets for metric in target.metrics if metric.metric_name == name]
    label = _label_metric(name)
    units = {metric.unit for _, metric in pairs if metric.unit and metric.unit not in label}
    quantity = f"{label} ({units.pop()})" if len(units) == 1 else label
    higher = next((metric.higher_is_better for _, metric in pairs), None)
    columns = (
        Column("paper", "Paper", None, kind="reference"),
        Column("ours", "Ours", None, kind="measured", quantity=Column("", quantity, higher).heading),
        *(Column(shown.lower(), shown, None) for shown in ("Difference", "Tolerance", "z", "Status")),
    )
    nothing = (*(_text_cell(MISSING) for _ in range(5)), _text_cell("?", status="missing"))
    rows = [Row((_name_row(target),), _make_cells(metric), n=metric.n) for target, metric in pairs]
    rows += [Row((_name_row(target),), nothing) for target in targets if not target.metrics]
    return ReportTable(
        name=f"{dataset}: {label}" if dataset and label else dataset or label or title,
        row_names=("Model",),
        columns=columns,
        rows=tuple(rows),
        keys={"table": title, "data set": dataset, "metric": name},
        notes=tuple(_list_notes(targets, name)),
    )


def _make_cells(metric: MetricComparison) -> tuple[TableCell, ...]:
    shown = show_metric(metric)
    paper = to_decimal(metric.paper_value)
    # All that is within tolerance: what rounds to the printed digits, and what either tolerance allows.
    sizes = [halve_last_digit(metric.paper_decimals)]
    if metric.tolerance_absolute is not None:
        sizes.append(to_decimal(metric.tolerance_absolute))
    if metric.tolerance_relative is not None:
        sizes.append(abs(paper) * to_decimal(metric.tolerance_relative) / 100)
    low, high = float(paper - max(sizes)), float(paper + max(sizes))
    missing = metric.status == "missing"
    value, std = (None, None) if missing else (metric.our_value, metric.our_std)
    return (
        TableCell(metric.paper_value, metric.paper_std, 1, shown.paper, low=low, high=high),
        TableCell(value, std, metric.n, shown.ours, status="missing" if missing else "ok"),
        _text_cell(shown.difference, metric.relative_diff),
        _text_cell(shown.tolerance),
        _text_cell(shown.z, metric.z_score),
        _text_cell("?" if missing else shown.status, status=_judge(metric)),
    )


def _text_cell(shown: str, value: float | None = None, status: CellStatus = "ok") -> TableCell:
    return TableCell(mean=value, std=None, n=0, text=shown, status=status)


def _explain(comparison: PaperComparison) -> Iterator[doc.Section]:
    stated = (doc.Listing.of(*comparison.conditions),) if comparison.conditions else ()
    yield doc.Section("stated", "The Paper's Conditions", stated, short="Conditions", detail=True)
    rows = tuple((it.what, it.paper, it.ours, "; ".join(it.where) or "everywhere") for it in comparison.differences)
    table = doc.PlainTable("Differences", ("Condition", "Paper", "Ours", "Where"), rows)
    title = "Differences from the Paper's Conditions"
    yield doc.Section("differences", title, (table,) if rows else (), short="Differences", detail=True)
    deviations = [doc.Details(title, (doc.Listing.of(*why),)) for title, why in list_deviations(comparison)]
    nothing = doc.Group("None", (doc.Paragraph("All comparisons are within tolerance."),))
    blocks, title = tuple(deviations) or (nothing,), "Deviations Explained"
    yield doc.Section("deviations", title, blocks, short="Deviations", detail=not deviations)
    confidence = doc.ListItem(
        "", f"{comparison.confidence.capitalize()} Confidence", f" - {_explain_confidence(comparison)}."
    )
    yield doc.Section(
        "confidence", "Reproduction Confidence", (doc.Listing((confidence,)),), short="Confidence", detail=True
    )
    listed = any(name.endswith((".md", ".html")) for name in comparison.files)
    files = doc.Listing.of(*comparison.files, *([] if listed else ["this report"]))
    yield doc.Section("files", "Files Generated", (files,), short="Files", detail=True)
    environment = doc.PlainTable("Environment", ("Property", "Value"), tuple(comparison.environment.items()))
    yield doc.Section("environment", "Environment", (environment,) if environment.rows else (), detail=True)
