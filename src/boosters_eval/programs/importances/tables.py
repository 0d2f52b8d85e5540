"""The findings as tables: checks, importances by kind, agreement by kind, predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.core.text import lower_initial
from boosters_eval.metrics import label as metric_label
from boosters_eval.programs.importances.checks import LABELS, format_roughly
from boosters_eval.programs.importances.judge import order_features
from boosters_eval.programs.importances.records import KINDS
from boosters_eval.programs.importances.wording import (
    absences,
    broken_in,
    mark_notes,
    marked,
    own_of,
    pairs_of,
    reading_sentence,
)
from boosters_eval.reports.numbers import MISSING, estimate, number
from boosters_eval.reports.tables import Column, ReportTable, Row, TableCell

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from boosters_eval.programs.importances.records import (
        BenchmarkFindings,
        CheckFinding,
        FeatureImportance,
        Kind,
        PairAgreement,
    )
    from boosters_eval.reports.tables import CellStatus

_STATUS: dict[str, CellStatus] = {
    "holds": "pass",
    "fails": "fail",
    "not offered": "unsupported",
    "not checked": "skipped",
}
RANKS = "In brackets: the mean rank over the seeds, which is all that is compared between libraries."


def build_tables(findings: BenchmarkFindings, top: int) -> tuple[ReportTable, ...]:
    """All tables of a benchmark that are not empty."""
    found = [_checks(findings)]
    found += [_importances(findings, kind, top) for kind in KINDS if any(i.kind == kind for i in findings.importances)]
    kinds = [kind for kind in KINDS if any(pair.kind == kind for pair in findings.agreement)]
    found += [_agreement(findings, kind) for kind in kinds]
    return (*found, *([_predictions(findings)] if len(findings.libraries) > 1 else ()))


def _checks(findings: BenchmarkFindings) -> ReportTable:
    tried = [check for check in findings.checks if check.verdict != "not checked"]
    keys = list(dict.fromkeys((check.check, check.kind) for check in tried))
    columns = tuple(_column(f"{check} {kind}", _check_label(check, kind)) for check, kind in keys)
    by_key = {(check.library, check.check, check.kind): check for check in findings.checks}
    rows = tuple(
        Row((marked(findings, name),), tuple(_check_cell(by_key.get((name, *key))) for key in keys))
        for name in findings.libraries
    )
    broken = [name for name in findings.libraries if findings.failed(name)]
    what = "what fails a check is not used for agreement" if broken else "no check fails"
    named = broken or [name for name in findings.libraries if _holds(findings, name)]  # of others nothing is known
    said = f"{', '.join(named)}: {what}." if named else "Nothing could be checked."
    return _table(findings, "checks", ("Library",), columns, rows, said, notes=(*mark_notes(findings),))


def _holds(findings: BenchmarkFindings, library: str) -> bool:
    return any(check.library == library and check.verdict == "holds" for check in findings.checks)


def _check_label(check: str, kind: str) -> str:
    return f"Constant column, {LABELS[kind]}" if check == "constant column" else check.capitalize()


def _check_cell(check: CheckFinding | None) -> TableCell:
    if check is None:
        return TableCell(None, None, 0, MISSING, status="skipped")
    error = check.error
    value = error / check.scale if error is not None and check.scale else error
    shown = (
        MISSING
        if check.verdict in ("not offered", "not checked")
        else "unusable"
        if value is None
        else format_roughly(value)
    )
    return TableCell(value, None, 1, shown, status=_STATUS[check.verdict])


def _importances(findings: BenchmarkFindings, kind: Kind, top: int) -> ReportTable:
    found = {(one.feature, one.library): one for one in findings.importances if one.kind == kind}
    order = shown_order(findings, kind)
    libraries = [name for name in findings.libraries if any(library == name for _, library in found)]
    columns = tuple(_column(name, marked(findings, name)) for name in libraries)
    decimals = 0 if all(one.rank.is_integer() for one in found.values()) else 1
    rows = tuple(
        Row((feature,), tuple(_importance_cell(found.get((feature, name)), decimals) for name in libraries))
        for feature in order[:top]
    )
    metric = lower_initial(metric_label(findings.metric)) if findings.metric else "the metric"
    what = (
        f"How much worse {metric} gets when a feature is shuffled, ± its spread over the seeds."
        if kind == "permutation"
        else "The share of the sum over all features; libraries have other units, so only ranks are compared."
    )
    hidden = len(order) - len(rows)
    more = (f"The {top} most important of {len(order)} features; the JSON has all.",) if hidden > 0 else ()
    return _table(
        findings, f"importance by {LABELS[kind]}", ("Feature",), columns, rows, "",
        kind=kind,
        notes=(what, *_summed(findings, kind), RANKS, *more, *absences(findings, kind), *mark_notes(findings)),
    )  # fmt: skip


def _summed(findings: BenchmarkFindings, kind: Kind) -> Iterator[str]:
    if kind == "shap" and findings.outputs:
        yield f"Attributions to the raw scores of all {findings.all_outputs} are added up by size."


def _of_one(findings: BenchmarkFindings, what: str) -> Iterator[str]:
    """What the largest difference is of, where there are several outputs."""
    if findings.outputs:
        yield f"The largest difference is that of {what} of one {findings.output_noun}."


def shown_order(findings: BenchmarkFindings, kind: Kind) -> list[str]:
    """The features by their mean rank over the sound libraries, or over all if none is sound."""
    every = [one for one in findings.importances if one.kind == kind]
    sound = set(findings.sound(kind))
    return order_features([one for one in every if one.library in sound] or every)


def _importance_cell(found: FeatureImportance | None, decimals: int) -> TableCell:
    if found is None:
        return TableCell(None, None, 0, MISSING, status="missing")
    value = found.mean if found.share is None else found.share
    shown = estimate(found.mean, found.std) if found.share is None else f"{found.share:.3f}"
    shown = shown if value is not None else "not finite"
    return TableCell(value, found.std, found.n, f"{shown} ({found.rank:.{decimals}f})", low=found.low, high=found.high)


def _agreement(findings: BenchmarkFindings, kind: Kind) -> ReportTable:
    pairs = pairs_of(findings, kind)
    alone = [pair for pair in findings.agreement if pair.kind == kind and pair.own]
    shown = _aligned([pair.largest for pair in (*pairs, *alone)])
    rows = tuple(_pair_row(findings, pair, largest) for pair, largest in zip((*pairs, *alone), shown, strict=True))
    top = next((pair.top for pair in pairs or alone), None)
    columns = [
        _column("tau", "Tau (95 % interval)"),
        _column("own_a", "A with itself"),
        _column("own_b", "B with itself"),
        _column("reading", "Alike"),
        _column("overlap", f"Top {top} in common"),
    ]
    if kind == "shap":
        columns += [
            _column("cosine", "Cosine of mean |SHAP|"),
            _column("distance", "Distance of rows"),
            _column("largest", "Largest difference"),
        ]
    said = reading_sentence(findings, kind) if pairs else ""
    said = f"{said[0].upper()}{said[1:]}" if said.startswith(("by ", "the ")) else said  # a name stays as it is
    out = broken_in(findings, kind)
    notes = [f"Left out because of a failed check: {', '.join(out)}."] if out else []
    notes += _of_one(findings, "one attribution to the raw score") if kind == "shap" and pairs else ()
    return _table(
        findings, f"agreement by {LABELS[kind]}", ("A", "B"), tuple(columns), rows, said,
        notes=(*notes, *mark_notes(findings)), kind=kind,
    )  # fmt: skip


def _pair_row(findings: BenchmarkFindings, pair: PairAgreement, largest: str) -> Row:
    cells = [
        TableCell(pair.tau, None, pair.n, _with_interval(pair), low=pair.low, high=pair.high),
        *(_number(one, "tau") for one in _selves(findings, pair)),
        TableCell(None, None, pair.n, _READINGS[pair.reading]),
        _number(pair, "overlap"),
    ]
    if pair.kind == "shap":
        cells += [_number(pair, "cosine", 3), _number(pair, "distance"), _largest(pair, largest)]
    return Row(_names(findings, pair), tuple(cells), n=pair.n)


def _names(findings: BenchmarkFindings, pair: PairAgreement) -> tuple[str, str]:
    return marked(findings, pair.a), "itself" if pair.own else marked(findings, pair.b)


def _selves(findings: BenchmarkFindings, pair: PairAgreement) -> tuple[PairAgreement | None, PairAgreement | None]:
    """What each of the two is to itself; of a library with itself, that is the row already."""
    if pair.own:
        return None, None
    return own_of(findings, pair.kind, pair.a), own_of(findings, pair.kind, pair.b)


_READINGS = {
    "as much": "as much as with themselves, or more",
    "less": "less than with themselves",
    "cannot be told": "cannot be told",
    "": MISSING,
}


def _with_interval(pair: PairAgreement) -> str:
    if pair.tau is None:
        return f"not defined: {pair.reason}"
    bounds = "" if pair.low is None or pair.high is None else f" ({pair.low:.2f} to {pair.high:.2f})"
    return f"{pair.tau:.2f}{bounds}"


def _number(pair: PairAgreement | None, name: str, decimals: int = 2) -> TableCell:
    """A number between -1 and 1, with the same decimals in every row."""
    value = None if pair is None else getattr(pair, name)
    return TableCell(value, None, 0 if pair is None else pair.n, MISSING if value is None else f"{value:.{decimals}f}")


def _largest(pair: PairAgreement, shown: str) -> TableCell:
    return TableCell(pair.largest, None, pair.n, shown)


def _aligned(values: Sequence[float | None]) -> list[str]:
    """The numbers of a column, with as many decimals as the smallest needs for two digits."""
    sizes = [abs(value) for value in values if value]
    shown = [number(size, 2) for size in sizes]
    if any("e" in text for text in shown):
        return [MISSING if value is None else number(value, 2) for value in values]
    decimals = max((len(text.partition(".")[2]) for text in shown), default=0)
    return [MISSING if value is None else f"{value:.{decimals}f}" for value in values]


def _predictions(findings: BenchmarkFindings) -> ReportTable:
    columns = (
        _column("correlation", "Correlation"),
        _column("own_a", "A with itself"),
        _column("own_b", "B with itself"),
        _column("largest", "Largest difference"),
        _column("row", "In row"),
    )
    rows = []
    pairs = [pair for pair in findings.agreement if pair.kind == "predictions"]
    for pair, largest in zip(pairs, _aligned([pair.largest for pair in pairs]), strict=True):
        own = _selves(findings, pair)
        where = TableCell(
            None if pair.row is None else float(pair.row), None, pair.n, MISSING if pair.row is None else str(pair.row)
        )
        cells = (
            _number(pair, "correlation", 4),
            *(_number(one, "correlation", 4) for one in own),
            _largest(pair, largest),
            where,
        )
        rows.append(Row(_names(findings, pair), cells, n=pair.n))
    note = "A library is compared with itself in rows that two seeds both measured: models of other training rows."
    what = "the probability" if findings.classes else "the prediction"
    notes = (note, *_of_one(findings, what), *mark_notes(findings))
    return _table(findings, "predictions", ("A", "B"), columns, tuple(rows), "", notes=notes)


def _column(name: str, heading: str) -> Column:
    return Column(name, heading, None, kind="importance")


def _table(
    findings: BenchmarkFindings,
    name: str,
    row_names: tuple[str, ...],
    columns: tuple[Column, ...],
    rows: Sequence[Row],
    said: str,
    *,
    notes: Sequence[str] = (),
    kind: str = "",
) -> ReportTable:
    keys = {"benchmark": findings.benchmark, "about": name.partition(" by ")[0], **({"kind": kind} if kind else {})}
    return ReportTable(
        f"{findings.benchmark}: {name}", row_names, columns, tuple(rows), keys=keys, notes=tuple(notes), answer=said
    )


def records_of(findings: Sequence[BenchmarkFindings], name: str) -> Iterator[dict[str, object]]:
    """The findings of one name, "checks", "importances", "agreement" or "correlated", as rows of a data frame."""
    for one in findings:
        for item in getattr(one, name):
            yield {"benchmark": one.benchmark, **item.model_dump()}
