"""The findings in sentences: what a reader is told first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.explanations.checks import LABELS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from boosters_eval.explanations.findings import BenchmarkFindings, PairAgreement

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


def answer(findings: BenchmarkFindings) -> str:
    """Whether the libraries agree for the same reasons, in one or two sentences."""
    kind = next((kind for kind in _PREFERRED if len(findings.sound(kind)) > 1), None)
    if kind is None:
        few = "only one library was measured" if len(findings.libraries) < 2 else "no two libraries have sound values"
        return f"{QUESTION} That cannot be said: {few}."
    said = " ".join([QUESTION, _verdict(findings, kind), *_predictions(findings)])
    left = [name for name in findings.libraries if any(check.kind == kind for check in findings.failed(name))]
    out = f" Left out because of a failed check: {', '.join(left)}." if left else ""
    return said + out


def _verdict(findings: BenchmarkFindings, kind: str) -> str:
    pairs = pairs_of(findings, kind)
    readings = {pair.reading for pair in pairs}
    first = "Yes:" if readings <= {"more", "as much"} else "Not all of them:" if "less" in readings else "Not judged:"
    return f"{first} {reading_sentence(findings, kind)}"


def _predictions(findings: BenchmarkFindings) -> Iterator[str]:
    found = [p.correlation for p in findings.agreement if p.kind == "predictions" and not p.own]
    known = [value for value in found if value is not None]
    if known:
        yield f"Their predictions correlate by {_span(known, 3)}."


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
    span = f"tau {_span(taus)}"
    less = [pair for pair in pairs if pair.reading == "less"]
    if not own:
        return f"by {label}, {span} between libraries; there is one split only, so nothing to hold it against."
    beside = f"({span}; with themselves {_span(own)})"
    if not any(pair.reading for pair in pairs):
        return f"by {label}, too little is known to hold libraries against themselves {beside}."
    if less:
        named = ", ".join(_less(findings, pair) for pair in less[:_MOST_NAMED])
        more = ", ..." if len(less) > _MOST_NAMED else ""
        every = f"{len(less)} of {len(pairs)} pairs" if len(pairs) > 1 else "the two"
        return f"by {label}, {every} rank the features less alike than each does with itself over seeds: {named}{more}."
    if len(pairs) == 1:
        pair = pairs[0]
        selves = ", ".join(f"{tau:.2f}" for tau in own)
        how = "more than" if pair.reading == "more" else "about as much as"
        who = f"{pair.a} and {pair.b} agree on the ranking by {label} ({span})"
        return f"{who} {how} each does with itself over seeds ({selves})."
    alike = (
        "more alike than" if all(pair.reading == "more" for pair in pairs) else "about as much alike as, or more than,"
    )
    return f"by {label}, all {len(pairs)} pairs rank the features {alike} each does with itself over seeds {beside}."


def _less(findings: BenchmarkFindings, pair: PairAgreement) -> str:
    selves = [own_of(findings, pair.kind, name) for name in (pair.a, pair.b)]
    taus = " and ".join(f"{one.tau:.2f}" for one in selves if one is not None and one.tau is not None)
    return f"{pair.a} and {pair.b} (tau {pair.tau or 0.0:.2f} against {taus})"


def _span(values: Sequence[float], decimals: int = 2) -> str:
    low, high = (f"{value:.{decimals}f}" for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"
