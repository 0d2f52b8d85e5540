"""The findings in sentences, and as tables: checks, importances by kind, agreement by kind, predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.core.text import count_of, join_words, lower_initial
from boosters_eval.metrics import label as metric_label
from boosters_eval.programs.importances.checks import LABELS, format_roughly
from boosters_eval.programs.importances.judge import order_features
from boosters_eval.programs.importances.records import (
    KINDS,
    BenchmarkFindings,
    CheckFinding,
    FeatureImportance,
    Kind,
    PairAgreement,
)
from boosters_eval.reports.numbers import MISSING, estimate, number
from boosters_eval.reports.tables import CellStatus, Column, ReportTable, Row, TableCell
from boosters_eval.stats.ranks import FEWEST_SPLITS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


QUESTION = "Do they agree for the same reasons?"
_MOST_NAMED = 3
_PREFERRED = ("shap", "permutation", "gain", "split")


def explain_marks(findings: BenchmarkFindings) -> tuple[str, ...]:
    """What the asterisks stand for: each library that fails a check, and by how much."""
    return tuple(
        f"* {name}: {'; '.join(dict.fromkeys(check.text for check in failed))}."
        for name in findings.libraries
        if (failed := findings.failed(name))
    )


def explain_absences(findings: BenchmarkFindings, kind: str) -> tuple[str, ...]:
    return tuple(
        f"{library} has no {LABELS[kind]} importance: {reasons[kind].rstrip('.')}."
        for library, reasons in findings.not_offered.items()
        if kind in reasons
    )


def write_answer(findings: BenchmarkFindings) -> str:
    """Whether the libraries agree for the same reasons, in one or two sentences."""
    kind = next((kind for kind in _PREFERRED if len(findings.sound(kind)) > 1), None)
    if kind is None:
        return f"{QUESTION} No answer: {_tell_incomparable(findings)}"
    parts = [QUESTION, _verdict(findings, kind), *_tell_predictions(findings, kind), *_tell_left_out(findings, kind)]
    return " ".join(parts)


def _tell_left_out(findings: BenchmarkFindings, kind: str) -> Iterator[str]:
    if left := findings.broken(kind):
        yield f"Left out because of a failed check: {', '.join(left)}."


def _tell_incomparable(findings: BenchmarkFindings) -> str:
    if not findings.importances:
        return " ".join(
            ["no importance was measured.", *(t for kind in _PREFERRED for t in explain_absences(findings, kind))]
        )
    if len(findings.libraries) < 2:
        return "only one library was measured."
    reasons = [f"by {LABELS[kind]}, {why}" for kind in _PREFERRED if (why := join_words(_lacking(findings, kind)))]
    return f"no two libraries have values that can be compared: {'; '.join(reasons)}."


def _lacking(findings: BenchmarkFindings, kind: str) -> Iterator[str]:
    """The libraries without a kind, and those whose values are not sound."""
    absent = [name for name, reasons in findings.not_offered.items() if kind in reasons]
    if absent:
        yield f"{', '.join(absent)} {'has' if len(absent) == 1 else 'have'} none"
    if broken := findings.broken(kind):
        yield f"{', '.join(broken)} {'fails' if len(broken) == 1 else 'fail'} a check"


def _verdict(findings: BenchmarkFindings, kind: str) -> str:
    readings = {pair.reading for pair in findings.pairs(kind)}
    first = "No:" if readings == {"less"} else "Not all of them:" if "less" in readings else "Undecided:"
    return f"{'Yes:' if readings == {'as much'} else first} {tell_reading(findings, kind)}"


def _tell_predictions(findings: BenchmarkFindings, kind: str) -> Iterator[str]:
    found = [p.correlation for p in findings.agreement if p.kind == "predictions" and not p.own]
    known = [value for value in found if value is not None]
    if known:
        every = len(findings.libraries)
        whose = "Their predictions" if len(findings.sound(kind)) == every else f"The predictions of all {every}"
        yield f"{whose} correlate by {_span(known, 3)}."


def tell_reading(findings: BenchmarkFindings, kind: str) -> str:
    """How the agreement of pairs stands beside that of each library with itself."""
    pairs = findings.pairs(kind)
    taus = [pair.tau for pair in pairs if pair.tau is not None]
    label = LABELS.get(kind, kind)
    if not taus:
        why = next((pair.reason for pair in pairs if pair.reason), "nothing to compare")
        return f"the agreement of rankings by {label} is not defined ({why})."
    own = [one.tau for name in findings.libraries if (one := findings.own(kind, name)) and one.tau is not None]
    if not own:
        lone = "there is only one split, so there is nothing to compare that with"
        return f"by {label}, tau {_span(taus)} between libraries; {lone}. {_MORE_SPLITS}"
    readings = [reading for reading in _ALIKE if any(pair.reading == reading for pair in pairs)]
    found = "; ".join(_group(findings, pairs, reading) for reading in readings)
    beside = f"; with themselves, tau {_span(own)}"  # of several groups, each has its own range already
    if len(readings) == 1:
        beside = f" (tau {_span(taus)}; with themselves {_span(own)})"
    return f"by {label}, {found}{beside}.{_advice(pairs)}"


_MORE_SPLITS = "More splits may decide it (--seeds, or --cv with repeats)."
_ALIKE = {
    "less": "less than with themselves",
    "as much": "as much as with themselves, or more",
    "cannot be told": "undecided",
    "": MISSING,
}
_SAID = {
    "as much": "as much alike as each does with itself over seeds, or more",
    "less": "less alike than each does with itself over seeds",
}


def _group(findings: BenchmarkFindings, pairs: Sequence[PairAgreement], reading: str) -> str:
    """The pairs of one reading: how many they are, and, of those that stand out, which."""
    group = [pair for pair in pairs if pair.reading == reading]
    taus = [pair.tau for pair in group if pair.tau is not None]
    span = f" (tau {_span(taus)})" if taus and len(group) < len(pairs) else ""
    share = f"all {len(pairs)}" if len(group) == len(pairs) else f"{len(group)} of {len(pairs)}"
    count = f"{group[0].a} and {group[0].b}" if len(pairs) == 1 else f"{share} pairs"
    rank = "ranks" if len(group) == 1 < len(pairs) else "rank"
    if reading not in _SAID:
        n = max(pair.n for pair in group)
        known = f"{count_of(n, 'split')} cannot show" if reading else "too few numbers are defined to tell"
        return f"{known} whether {count} {rank} the features as much alike as each does with itself over seeds{span}"
    named = ", ".join(_less(findings, pair) for pair in group[:_MOST_NAMED]) if reading == "less" else ""
    more = ", ..." if reading == "less" and len(group) > _MOST_NAMED else ""
    return f"{count} {rank} the features {_SAID[reading]}{span}{': ' if named else ''}{named}{more}"


def _advice(pairs: Sequence[PairAgreement]) -> str:
    open_ = [pair for pair in pairs if pair.reading == "cannot be told"]
    if not open_:
        return ""
    few = min(pair.n for pair in open_) < FEWEST_SPLITS
    return f" At least {FEWEST_SPLITS} splits are needed (--seeds)." if few else f" {_MORE_SPLITS}"


def _less(findings: BenchmarkFindings, pair: PairAgreement) -> str:
    selves = [findings.own(pair.kind, name) for name in (pair.a, pair.b)]
    taus = join_words(f"{one.tau:.2f}" for one in selves if one is not None and one.tau is not None)
    return f"{pair.a} and {pair.b} (tau {pair.tau or 0.0:.2f} against {taus})"


def _span(values: Sequence[float], decimals: int = 2) -> str:
    low, high = (f"{value:.{decimals}f}" for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


_STATUS: dict[str, CellStatus] = {
    "holds": "pass",
    "fails": "fail",
    "not offered": "unsupported",
    "not checked": "skipped",
}
_RANKS = "In parentheses: the mean rank over the seeds, the only thing that is compared between libraries."


def build_tables(findings: BenchmarkFindings, top: int) -> tuple[ReportTable, ...]:
    found = [_checks(findings)]
    found += [_importances(findings, kind, top) for kind in KINDS if any(i.kind == kind for i in findings.importances)]
    kinds = [kind for kind in KINDS if any(pair.kind == kind for pair in findings.agreement)]
    found += [_agreement(findings, kind) for kind in kinds]
    return (*found, *([_predictions(findings)] if len(findings.libraries) > 1 else ()))


def _checks(findings: BenchmarkFindings) -> ReportTable:
    tried = [check for check in findings.checks if check.verdict != "not checked"]
    keys = list(dict.fromkeys((check.check, check.kind) for check in tried))
    columns = {
        f"{check} {kind}": f"Constant column, {LABELS[kind]}" if check == "constant column" else check.capitalize()
        for check, kind in keys
    }
    by_key = {(check.library, check.check, check.kind): check for check in findings.checks}
    rows = tuple(
        Row((findings.marked(name),), tuple(_check_cell(by_key.get((name, *key))) for key in keys))
        for name in findings.libraries
    )
    broken = [name for name in findings.libraries if findings.failed(name)]
    what = "what fails a check is not used for agreement" if broken else "no check fails"
    holding = {check.library for check in findings.checks if check.verdict == "holds"}
    named = broken or [name for name in findings.libraries if name in holding]  # of others nothing is known
    said = f"{', '.join(named)}: {what}." if named else "Nothing could be checked."
    return _table(findings, "checks", ("Library",), columns, rows, said)


def _check_cell(check: CheckFinding | None) -> TableCell:
    if check is None:
        return TableCell(None, None, 0, MISSING, status="skipped")
    error = check.error
    value = error / check.scale if error is not None and check.scale else error
    shown = "unusable" if value is None else format_roughly(value)
    shown = shown if check.verdict in ("holds", "fails") else MISSING
    return TableCell(value, None, 1, shown, status=_STATUS[check.verdict])


def _importances(findings: BenchmarkFindings, kind: Kind, top: int) -> ReportTable:
    found = {(one.feature, one.library): one for one in findings.importances if one.kind == kind}
    order = order_shown(findings, kind)
    libraries = [name for name in findings.libraries if any(library == name for _, library in found)]
    columns = {name: findings.marked(name) for name in libraries}
    decimals = 0 if all(one.rank.is_integer() for one in found.values()) else 1
    rows = tuple(
        Row((feature,), tuple(_importance_cell(found.get((feature, name)), decimals) for name in libraries))
        for feature in order[:top]
    )
    metric = lower_initial(metric_label(findings.metric)) if findings.metric else "the metric"
    what = (
        f"How much worse {metric} gets when a feature is shuffled, ± its spread over the seeds."
        if kind == "permutation"
        else "The share of the sum over all features; libraries use different units, so only ranks are compared."
    )
    summed = f"Attributions to the raw scores of all {findings.all_outputs} are added up by size."
    several = (summed,) if kind == "shap" and findings.outputs else ()
    more = (f"The {top} most important of {len(order)} features; the JSON has all.",) if len(order) > len(rows) else ()
    notes = (what, *several, _RANKS, *more, *explain_absences(findings, kind))
    return _table(findings, f"importance by {LABELS[kind]}", ("Feature",), columns, rows, "", notes=notes, kind=kind)


def _tell_output(findings: BenchmarkFindings, what: str) -> Iterator[str]:
    """What the largest difference is of, where there are several outputs."""
    if findings.outputs:
        yield f"The largest difference is that of {what} of one {findings.output_noun}."


def order_shown(findings: BenchmarkFindings, kind: Kind) -> list[str]:
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
    pairs = findings.pairs(kind)
    alone = [pair for pair in findings.agreement if pair.kind == kind and pair.own]
    shown = _align([pair.largest for pair in (*pairs, *alone)])
    rows = tuple(_pair_row(findings, pair, largest) for pair, largest in zip((*pairs, *alone), shown, strict=True))
    top = next((pair.top for pair in pairs or alone), None)
    columns = {
        "tau": "Tau (95 % interval)",
        "own_a": "A with itself",
        "own_b": "B with itself",
        "reading": "Alike",
        "overlap": f"Top {top} in common",
    }
    if kind == "shap":
        columns |= {
            "cosine": "Cosine of mean |SHAP|",
            "distance": "Distance of rows",
            "largest": "Largest difference",
        }
    said = tell_reading(findings, kind) if pairs else ""
    said = f"{said[0].upper()}{said[1:]}" if said.startswith(("by ", "the ")) else said  # a name stays as it is
    notes = [*_tell_left_out(findings, kind)]
    notes += _tell_output(findings, "one attribution to the raw score") if kind == "shap" and pairs else ()
    return _table(findings, f"agreement by {LABELS[kind]}", ("A", "B"), columns, rows, said, notes=notes, kind=kind)


def _pair_row(findings: BenchmarkFindings, pair: PairAgreement, largest: str) -> Row:
    cells = [
        TableCell(pair.tau, None, pair.n, _with_interval(pair), low=pair.low, high=pair.high),
        *(_number(one, "tau") for one in _selves(findings, pair)),
        TableCell(None, None, pair.n, _ALIKE[pair.reading]),
        _number(pair, "overlap"),
    ]
    if pair.kind == "shap":
        cells += [_number(pair, "cosine", 3), _number(pair, "distance"), TableCell(pair.largest, None, pair.n, largest)]
    return Row(_names(findings, pair), tuple(cells), n=pair.n)


def _names(findings: BenchmarkFindings, pair: PairAgreement) -> tuple[str, str]:
    return findings.marked(pair.a), "itself" if pair.own else findings.marked(pair.b)


def _selves(findings: BenchmarkFindings, pair: PairAgreement) -> tuple[PairAgreement | None, PairAgreement | None]:
    """What each of the two is to itself; of a library with itself, that is the row already."""
    if pair.own:
        return None, None
    return findings.own(pair.kind, pair.a), findings.own(pair.kind, pair.b)


def _with_interval(pair: PairAgreement) -> str:
    if pair.tau is None:
        return f"not defined: {pair.reason}"
    bounds = "" if pair.low is None or pair.high is None else f" ({pair.low:.2f} to {pair.high:.2f})"
    return f"{pair.tau:.2f}{bounds}"


def _number(pair: PairAgreement | None, name: str, decimals: int = 2) -> TableCell:
    """A number between -1 and 1, with the same decimals in every row."""
    value = None if pair is None else getattr(pair, name)
    return TableCell(value, None, 0 if pair is None else pair.n, MISSING if value is None else f"{value:.{decimals}f}")


def _align(values: Sequence[float | None]) -> list[str]:
    """The numbers of a column, with as many decimals as the smallest needs for two digits."""
    sizes = [abs(value) for value in values if value]
    shown = [number(size, 2) for size in sizes]
    if any("e" in text for text in shown):
        return [MISSING if value is None else number(value, 2) for value in values]
    decimals = max((len(text.partition(".")[2]) for text in shown), default=0)
    return [MISSING if value is None else f"{value:.{decimals}f}" for value in values]


def _predictions(findings: BenchmarkFindings) -> ReportTable:
    columns = {
        "correlation": "Correlation",
        "own_a": "A with itself",
        "own_b": "B with itself",
        "largest": "Largest difference",
        "row": "In row",
    }
    rows = []
    pairs = [pair for pair in findings.agreement if pair.kind == "predictions"]
    for pair, largest in zip(pairs, _align([pair.largest for pair in pairs]), strict=True):
        row = None if pair.row is None else float(pair.row)
        cells = (
            *(_number(one, "correlation", 4) for one in (pair, *_selves(findings, pair))),
            TableCell(pair.largest, None, pair.n, largest),
            TableCell(row, None, pair.n, MISSING if row is None else f"{row:.0f}"),
        )
        rows.append(Row(_names(findings, pair), cells, n=pair.n))
    note = (
        "A library is compared with itself on rows that two seeds both measured, by models trained on different rows."
    )
    what = "the probability" if findings.classes else "the prediction"
    notes = (note, *_tell_output(findings, what))
    return _table(findings, "predictions", ("A", "B"), columns, tuple(rows), "", notes=notes)


def _table(
    findings: BenchmarkFindings,
    name: str,
    row_names: tuple[str, ...],
    columns: Mapping[str, str],
    rows: Sequence[Row],
    said: str,
    *,
    notes: Sequence[str] = (),
    kind: str = "",
) -> ReportTable:
    keys = {"benchmark": findings.benchmark, "about": name.partition(" by ")[0], **({"kind": kind} if kind else {})}
    title = f"{findings.benchmark}: {name}"
    measured = tuple(Column(key, heading, None, kind="importance") for key, heading in columns.items())
    return ReportTable(
        title,
        row_names,
        measured,
        tuple(rows),
        keys=keys,
        notes=(*notes, *explain_marks(findings)),
        answer=(said,) if said else (),
    )
