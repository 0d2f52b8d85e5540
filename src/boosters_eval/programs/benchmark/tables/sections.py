"""What was found in the data before it was used, as a section of a report and as notes."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from boosters_eval.core.text import clean, clean_lines, count_of, group_digits, join_words
from boosters_eval.datasets.config import NOTED
from boosters_eval.programs.benchmark.tables.answers import Doubt
from boosters_eval.reports.document import Block, Code, Details, Listing, ListItem, Paragraph, PlainTable, Section
from boosters_eval.reports.numbers import number
from boosters_eval.runners.result import BenchmarkResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boosters_eval.datasets.config import AuditFinding, DataAudit
    from boosters_eval.programs.benchmark.records import BenchmarkError
    from boosters_eval.programs.benchmark.results import ResultCollection, ResultsDocument
    from boosters_eval.programs.benchmark.tables.data import AbsentPair, FailedCell

    _Cell = BenchmarkResult | BenchmarkError


_NAMED = 30  # columns of a role; further ones are only counted


def select_audits(results: ResultCollection | ResultsDocument) -> dict[str, DataAudit]:
    """The audits of the data sets that a collection has outcomes of, or libraries without any."""
    there: set[str | None] = {item.dataset_name for item in (*results.results, *results.errors)}
    there |= {item.dataset_name for item in results.unsupported}
    return {name: audit for name, audit in results.metadata.audits.items() if name in there}


def show_data(results: ResultsDocument) -> Section | None:
    """Each data set with its task and size, what is suspicious about it, and the columns that were used."""
    audits = select_audits(results)
    if not audits:
        return None
    columns: dict[str, list[str | int | None]] = {
        "Data set": [clean(name) for name in audits],
        "Task": [audit.task.value for audit in audits.values()],
        "Why": [clean(audit.reason) or None for audit in audits.values()],
        "Rows": [audit.rows for audit in audits.values()],
        "Classes": [audit.n_classes for audit in audits.values()],
        "Columns": [audit.n_columns for audit in audits.values()],
        "Rows looked at": [audit.sampled or "all" for audit in audits.values()],
        "Findings": [len(audit.findings) for audit in audits.values()],
    }
    told = {name: values for name, values in columns.items() if any(value is not None for value in values)}
    table = PlainTable(name="Data sets", headings=tuple(told), rows=tuple(zip(*told.values(), strict=True)))
    blocks: list[Block] = [table]
    findings = tuple(
        ListItem(f"{clean(name)}: ", finding.kind, clean(f": {finding.text}{_advice(finding.option)}."))
        for name, audit in audits.items()
        for finding in audit.findings
    )
    blocks += [Listing(findings)] if findings else []
    blocks += [_columns(audit) for audit in audits.values()]
    return Section(
        anchor="data",
        title="Data",
        detail=True,
        search="Filter data sets" if len(audits) > 10 else "",
        blocks=tuple(blocks),
    )


def note_findings(results: ResultCollection) -> list[str]:
    """A sentence for each finding that changes the answer."""
    return [
        clean(f"{name}: {finding.text}{_advice(finding.option)}.")
        for name, audit in select_audits(results).items()
        for finding in audit.findings
        if finding.kind in NOTED
    ]


def tell_suspicions(results: ResultCollection) -> dict[str, str]:
    """For each data set whose scores cannot be trusted, why and what to do, in a few words for an answer."""
    found = select_audits(results)
    return {name: join_words(map(_shorten, audit.severe)) for name, audit in found.items() if audit.severe}


_RESERVED = {  # kinds of findings that are no reason for suspicion, and yet change what an answer means
    "id": "a column names rows",
    "many-categories": "a column names rows",
    "own-treatment": "libraries treat columns each in its own way",
    "time-order": "rows are in order of time",
}


def tell_reservations(results: ResultCollection) -> dict[str, tuple[Doubt, ...]]:
    """For each data set, which columns name rows, order them, or are treated in several ways, for an answer."""
    return {
        name: tuple(
            Doubt(_begin(_shorten(one)), _RESERVED[one.kind]) for one in audit.findings if one.kind in _RESERVED
        )
        for name, audit in select_audits(results).items()
    }


def _begin(text: str) -> str:
    return text[:1].upper() + text[1:]


def _shorten(finding: AuditFinding) -> str:
    return clean(finding.summary)


def _advice(option: str) -> str:
    return f" ({option})" if option else ""


def _columns(audit: DataAudit) -> Details:
    items = []
    for role, names in audit.by_role().items():
        shown = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
        items.append(ListItem(text="", mark=role, rest=clean(f" ({len(names)}): {shown}")))
    if audit.classes:
        classes = ", ".join(f"{label} ({count})" for label, count in list(audit.classes.items())[:_NAMED])
        more = (audit.n_classes or 0) - min(len(audit.classes), _NAMED)
        items.append(ListItem(text="rows per class: ", rest=clean(classes + (f" and {more} more" if more > 0 else ""))))
    if audit.reading:
        items.append(ListItem(text="read with ", rest=clean(audit.reading)))
    columns = count_of(audit.n_columns, "column")
    return Details(title=f"Columns of {clean(audit.dataset)}", aside=columns, blocks=(Listing(items=tuple(items)),))


def show_errors(
    errors: Sequence[FailedCell], unsupported: Sequence[AbsentPair], unavailable: Sequence[AbsentPair]
) -> Section | None:
    blocks: list[Block] = []
    if errors:
        rows = tuple((e.config, _who(e), _repeat(e), e.phase, e.error_type, e.message) for e in errors)
        headings = ("Config", "Library", "Seed", "Phase", "Type", "Message")
        blocks.append(PlainTable(name="Errors", headings=headings, rows=rows))
        blocks += [details for error in errors if (details := _trace(error)) is not None]
    for title, pairs in (("Not supported", unsupported), ("Unavailable", unavailable)):
        if pairs:
            refused = tuple((pair.config, pair.library, pair.reason) for pair in pairs)
            blocks.append(PlainTable(name=title, headings=(title, "Library", "Reason"), rows=refused))
    return Section("errors", "Errors", tuple(blocks), detail=True) if blocks else None


def _trace(error: FailedCell) -> Details | None:
    parts = [error.traceback or ""]
    parts += [f"Signal: {error.signal}"] if error.signal else []
    parts += [f"stderr:\n{error.stderr_tail}"] if error.stderr_tail else []
    text = "\n".join(part for part in parts if part)
    if not text:
        return None
    title = f"{error.config}, {_who(error)}, seed {_repeat(error)}"
    return Details(title=title, aside=f"{error.error_type} in {error.phase}", blocks=(Code(text=text),), long=True)


def _who(error: FailedCell) -> str:
    return error.library if error.variant is None else f"{error.library} {error.variant}"


def _repeat(error: FailedCell) -> str:
    return str(error.seed) if error.fold is None else f"{error.seed}, fold {error.fold}"


MAX_CELLS = 3_000  # on the page; with more, the first folds that fit are shown
_DIGITS = 12  # of a digest

# What is shown of a result besides its metrics, by heading.
_FIELDS = {
    "Train (s)": "train_time_s",
    "Build (s)": "build_time_s",
    "Fit (s)": "fit_time_s",
    "Predict (s)": "predict_time_s",
    "CPU (s)": "cpu_time_s",
    "CPU taken by others": "cpu_taken",
    "Peak memory (MB)": "peak_memory_mb",
    "First use (MB)": "first_use_mb",
    "Model (MB)": "model_size_mb",
    "Trees": "n_trees_trained",
    "Leaves": "n_leaves_total",
    "Train rows": "n_train",
    "Test rows": "n_valid",
    "Split": "split_digest",
    "Data": "data_digest",
    "Predictions": "predictions_digest",
    "Model seed": "model_seed",
    "Threads": "n_threads",
    "Threads seen": "threads_observed",
    "Version": "library_version",
    "Machine": "machine",
    "Failed before": "failed_before",
}
_OWN = ("Seed", "Fold")  # never said only once


def show_cells(results: ResultsDocument) -> Section | None:
    """A section that can be searched; None if there is no cell."""
    folds: dict[tuple[str, str, str], list[_Cell]] = {}
    outcomes: list[_Cell] = [*results.results, *results.errors]
    for outcome in outcomes:
        key = (outcome.config_name, outcome.library, outcome.variant or "")
        folds.setdefault(key, []).append(outcome)
    total, shown, blocks = len(outcomes), 0, list[Block]()
    for key, members in folds.items():
        if shown + len(members) > MAX_CELLS:
            continue
        shown += len(members)
        blocks.append(_fold(" ".join(filter(None, key)), members))
    if shown < total:
        some = f"{group_digits(shown)} of {group_digits(total)} cells"
        blocks.insert(0, Paragraph(f"{some} are shown here, to keep the page light; the JSON report has all."))
    return Section("cells", "Cells", tuple(blocks), search="Filter cells", only="page") if blocks else None


def _fold(title: str, outcomes: list[_Cell]) -> Details:
    results = [outcome for outcome in outcomes if isinstance(outcome, BenchmarkResult)]
    rows = [_row(outcome) for outcome in outcomes]
    names = list(dict.fromkeys(name for row in rows for name in row))
    last = ("Warnings", "Failure")
    scores = [name for name in names if name not in (*_OWN, *_FIELDS, *last)]
    order = [name for name in (*_OWN, *scores, *_FIELDS, *last) if name in names]
    finished = [row for row in rows if "Failure" not in row]
    common = {
        name: finished[0][name]
        for name in order
        if name not in _OWN and len(finished) > 1 and len({row.get(name) for row in finished}) == 1
        if name in finished[0]
    }
    kept = {name: [row.get(name) for row in rows] for name in order if name not in common}
    table = PlainTable(name=f"Cells of {title}", headings=tuple(kept), rows=tuple(zip(*kept.values(), strict=True)))
    texts = {name: number(value) if isinstance(value, float) else str(value) for name, value in common.items()}
    said = ", ".join(f"{name} {text}" for name, text in texts.items())
    that = "" if len(finished) == len(rows) else " that finished"
    blocks: list[Block] = [Paragraph(text=f"In all cells{that}: {said}.")] if said else []
    blocks.append(table)
    if given := _parameters(results):
        blocks.append(Code(text=given))
    return Details(title=clean(title), aside=_aside(outcomes, results), blocks=tuple(blocks))


def _row(outcome: _Cell) -> dict[str, str | int | float | None]:
    row: dict[str, str | int | float | None] = {"Seed": str(outcome.seed)}
    if outcome.fold is not None:
        row["Fold"] = outcome.fold
    if not isinstance(outcome, BenchmarkResult):
        if outcome.machine is not None:
            row["Machine"] = _known(outcome.machine)
        row["Failure"] = clean(f"{outcome.error_type} in {outcome.phase}: {outcome.error_message}")
        return row
    row |= {clean(name): _known(value) for name, value in outcome.metrics.items()}
    measured = {heading: getattr(outcome, field) for heading, field in _FIELDS.items()}
    measured["Model seed"] = None if outcome.model_seed is None else str(outcome.model_seed)  # no grouping
    measured["Failed before"] = outcome.failed_before or None
    measured["Killed from outside"] = outcome.killed_before or None
    row |= {heading: _known(value) for heading, value in measured.items() if value is not None}
    if outcome.warnings:
        row["Warnings"] = clean("; ".join(outcome.warnings))
    return row


def _known(value: str | float) -> str | int | float:
    """A value for a cell: a number that is none is said in words, and a digest is shortened."""
    if not isinstance(value, str):
        return value if math.isfinite(value) else "not finite"
    return clean(value[:_DIGITS] if len(value) >= 2 * _DIGITS else value)


def _parameters(results: Sequence[BenchmarkResult]) -> str:
    """The native parameters, each on a line; those that hold the model's own seed differ by cell."""
    given: list[dict[str, Any]] = [result.native_params or {} for result in results]
    lines = []
    for name in sorted({name for params in given for name in params}):
        values = {json.dumps(params.get(name), sort_keys=True, default=str) for params in given}
        lines.append(f"{name} = {values.pop() if len(values) == 1 else '(differs by seed)'}")
    return clean_lines("\n".join(lines))


def _aside(outcomes: Sequence[_Cell], results: Sequence[BenchmarkResult]) -> str:
    failed, warned = len(outcomes) - len(results), sum(bool(result.warnings) for result in results)
    parts = [count_of(len(outcomes), "cell")]
    parts += [f"{failed} failed"] if failed else []
    parts += [f"{warned} with warnings"] if warned else []
    return ", ".join(parts)
