"""The findings in sentences: what a reader is told first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.core.text import count_of, join_words
from boosters_eval.programs.importances.checks import LABELS
from boosters_eval.stats.ranks import FEWEST_SPLITS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from boosters_eval.programs.importances.records import BenchmarkFindings, PairAgreement

QUESTION = "Do they agree for the same reasons?"
_MOST_NAMED = 3
_PREFERRED = ("shap", "permutation", "gain", "split")


def marked(findings: BenchmarkFindings, library: str) -> str:
    """A library's name, with an asterisk if it fails a check."""
    return f"{library} *" if findings.failed(library) else library


def mark_notes(findings: BenchmarkFindings) -> tuple[str, ...]:
    """What the asterisks stand for: each library that fails a check, and by how much."""
    return tuple(
        f"* {name}: {'; '.join(dict.fromkeys(check.text for check in failed))}."
        for name in findings.libraries
        if (failed := findings.failed(name))
    )


def absences(findings: BenchmarkFindings, kind: str) -> tuple[str, ...]:
    """Why libraries have no importances of a kind."""
    return tuple(
        f"{library} has no {LABELS[kind]} importance: {reasons[kind].rstrip('.')}."
        for library, reasons in findings.not_offered.items()
        if kind in reasons
    )


def answer(findings: BenchmarkFindings) -> str:
    """Whether the libraries agree for the same reasons, in one or two sentences."""
    kind = next((kind for kind in _PREFERRED if len(findings.sound(kind)) > 1), None)
    if kind is None:
        return f"{QUESTION} That cannot be said: {_incomparable(findings)}"
    said = " ".join([QUESTION, _verdict(findings, kind), *_predictions(findings, kind)])
    left = broken_in(findings, kind)
    out = f" Left out because of a failed check: {', '.join(left)}." if left else ""
    return said + out


def _incomparable(findings: BenchmarkFindings) -> str:
    """Why there are no two libraries to compare."""
    if not findings.importances:
        return " ".join(["no importance was measured.", *(t for kind in _PREFERRED for t in absences(findings, kind))])
    if len(findings.libraries) < 2:
        return "only one library was measured."
    reasons = [f"by {LABELS[kind]}, {why}" for kind in _PREFERRED if (why := join_words(_lacking(findings, kind)))]
    return f"no two libraries have values that can be compared: {'; '.join(reasons)}."


def _lacking(findings: BenchmarkFindings, kind: str) -> Iterator[str]:
    """The libraries without a kind, and those whose values are not sound."""
    absent = [name for name, reasons in findings.not_offered.items() if kind in reasons]
    if absent:
        yield f"{', '.join(absent)} {'has' if len(absent) == 1 else 'have'} none"
    if broken := broken_in(findings, kind):
        yield f"{', '.join(broken)} {'fails' if len(broken) == 1 else 'fail'} a check"


def broken_in(findings: BenchmarkFindings, kind: str) -> list[str]:
    """The libraries that fail a check of a kind."""
    return [name for name in findings.libraries if any(check.kind == kind for check in findings.failed(name))]


def _verdict(findings: BenchmarkFindings, kind: str) -> str:
    readings = {pair.reading for pair in pairs_of(findings, kind)}
    first = "No:" if readings == {"less"} else "Not all of them:" if "less" in readings else "That cannot be told:"
    return f"{'Yes:' if readings == {'as much'} else first} {reading_sentence(findings, kind)}"


def _predictions(findings: BenchmarkFindings, kind: str) -> Iterator[str]:
    found = [p.correlation for p in findings.agreement if p.kind == "predictions" and not p.own]
    known = [value for value in found if value is not None]
    if known:
        every = len(findings.libraries)
        whose = "Their predictions" if len(findings.sound(kind)) == every else f"The predictions of all {every}"
        yield f"{whose} correlate by {_span(known, 3)}."


def pairs_of(findings: BenchmarkFindings, kind: str) -> list[PairAgreement]:
    """The pairs of libraries by one kind."""
    return [pair for pair in findings.agreement if pair.kind == kind and not pair.own]


def own_of(findings: BenchmarkFindings, kind: str, library: str) -> PairAgreement | None:
    """The agreement of a library with itself."""
    return next((p for p in findings.agreement if p.own and (p.kind, p.a) == (kind, library)), None)


def reading_sentence(findings: BenchmarkFindings, kind: str) -> str:
    """How the agreement of pairs stands beside that of each library with itself."""
    pairs = pairs_of(findings, kind)
    taus = [pair.tau for pair in pairs if pair.tau is not None]
    label = LABELS.get(kind, kind)
    if not taus:
        why = next((pair.reason for pair in pairs if pair.reason), "nothing to compare")
        return f"the agreement of rankings by {label} is not defined ({why})."
    own = [one.tau for name in findings.libraries if (one := own_of(findings, kind, name)) and one.tau is not None]
    if not own:
        return (
            f"by {label}, tau {_span(taus)} between libraries; there is one split only, so nothing to hold it against."
            f" {_MORE_SPLITS}"
        )
    readings = [reading for reading in _READINGS if any(pair.reading == reading for pair in pairs)]
    found = "; ".join(_group(findings, pairs, reading) for reading in readings)
    beside = f"; with themselves, tau {_span(own)}"  # of several groups, each has its own range already
    if len(readings) == 1:
        beside = f" (tau {_span(taus)}; with themselves {_span(own)})"
    return f"by {label}, {found}{beside}.{_advice(pairs)}"


_MORE_SPLITS = "More splits may tell (--seeds, or --cv with repeats)."
_READINGS = ("less", "as much", "cannot be told", "")
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
        known = (
            f"{count_of(n, 'split')} {'does' if n == 1 else 'do'} not tell"
            if reading
            else "too little is defined to tell"
        )
        return f"{known} whether {count} {rank} the features as much alike as each does with itself over seeds{span}"
    named = ", ".join(_less(findings, pair) for pair in group[:_MOST_NAMED]) if reading == "less" else ""
    more = ", ..." if reading == "less" and len(group) > _MOST_NAMED else ""
    return f"{count} {rank} the features {_SAID[reading]}{span}{': ' if named else ''}{named}{more}"


def _advice(pairs: Sequence[PairAgreement]) -> str:
    """What would help where something cannot be told."""
    open_ = [pair for pair in pairs if pair.reading == "cannot be told"]
    if not open_:
        return ""
    few = min(pair.n for pair in open_) < FEWEST_SPLITS
    return f" At least {FEWEST_SPLITS} splits are needed (--seeds)." if few else f" {_MORE_SPLITS}"


def _less(findings: BenchmarkFindings, pair: PairAgreement) -> str:
    selves = [own_of(findings, pair.kind, name) for name in (pair.a, pair.b)]
    taus = join_words(f"{one.tau:.2f}" for one in selves if one is not None and one.tau is not None)
    return f"{pair.a} and {pair.b} (tau {pair.tau or 0.0:.2f} against {taus})"


def _span(values: Sequence[float], decimals: int = 2) -> str:
    low, high = (f"{value:.{decimals}f}" for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"
