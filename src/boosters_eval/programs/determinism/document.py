"""What makes the same training give another model, laid out: a line per library, and a matrix of tasks and probes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.core.text import join_words
from boosters_eval.programs.determinism.findings import ALONE, REPEATS
from boosters_eval.reports.document import Document, MarkedCell, Notes, PlainTable, Section
from boosters_eval.reports.numbers import MISSING, number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boosters_eval.programs.determinism.findings import DeterminismFindings, ProbeFinding, ProbeQuestion
    from boosters_eval.reports.document import PlainCell

_QUESTIONS: dict[ProbeQuestion, str] = {
    "again": "Again",
    "process": "Another process",
    "threads again": "Again on 2 threads",
    "threads": "2 threads",
    "all threads": "All threads",
    "rows": "Rows reordered",
    "columns": "Columns reordered",
    "repeated": "Rows repeated, not weighted",
}
_TONES = {
    "different": "changed",
    "failed": "worse",
    "not supported": "",
    "equal to 1e-12": "better",
    "identical": "better",
}
# What the documentation of a library says, by question.
_STABLE = "'deterministic' should ensure stable results with the same data and parameters, whatever the threads"
_SUMS = "slightly different results between runs could happen, due to the order of sums and to threads"
_RANDOM = "an int as random_state gives reproducible output across multiple function calls"
PROMISES: dict[str, dict[ProbeQuestion, str]] = {
    "lightgbm": {
        "again": _STABLE,
        "process": _STABLE,
        "threads again": _STABLE,
        "threads": _STABLE,
        "all threads": _STABLE,
    },
    "xgboost": {"again": _SUMS, "process": _SUMS, "threads again": _SUMS, "threads": _SUMS, "all threads": _SUMS},
    "sklearn": {"again": _RANDOM, "process": _RANDOM, "threads again": _RANDOM},
}


def lay_out(found: DeterminismFindings) -> Document:
    questions = [name for name in _QUESTIONS if any(one.question == name for one in found.probes)]
    tables = tuple(_tabulate(found, library, questions) for library in found.libraries)
    promises = tuple(
        (library, _QUESTIONS[question], text, _kept(found, library, question))
        for library in found.libraries
        for question, text in PROMISES.get(library.partition("=")[0].partition("@")[0], {}).items()
        if question in questions
    )
    named = ", ".join(f"{name} {version}" for name, version in found.versions.items())
    return Document(
        f"Determinism of {named}",
        tuple(_answer(found)),
        sections=(
            Section("matrix", "Is the model the same?", tables),
            Section(
                "promises",
                "What the documentation says",
                (PlainTable("Promises", ("Library", "Question", "It says", "Here"), promises, keys=2),)
                if promises
                else (),
            ),
            Section("notes", "Notes", (Notes(tuple(_notes(found))),)),
        ),
    )


def _answer(found: DeterminismFindings) -> Iterator[str]:
    if not found.probes:
        yield "Nothing could be compared."
    for library in found.libraries:
        faults = found.differing(library, *REPEATS)
        others = list(dict.fromkeys(one.question for one in found.differing(library, *_QUESTIONS)))
        failed = [one for one in found.probes if one.library == library and one.outcome == "failed"]
        if faults:
            where = join_words(dict.fromkeys(map(_locate, faults)), most=3)
            yield f"{library} trains another model with the same seed: {where}."
            others = [name for name in others if name not in REPEATS]
        elif not failed:
            yield f"{library} trains the same model again, bit for bit."
        if failed:
            yield f"{library} cannot be answered for whole: {failed[0].task} failed ({failed[0].reason})."
        if others:
            told = join_words(_QUESTIONS[name].lower() for name in others)
            yield f"Its model is another one with: {told}."


def _locate(one: ProbeFinding) -> str:
    return f"{one.task} with {one.setting}{'' if one.question in ALONE else ' on 2 threads'}"


def _tabulate(found: DeterminismFindings, library: str, questions: list[ProbeQuestion]) -> PlainTable:
    cells = {(one.dataset, one.question): one for one in found.probes if one.library == library}
    tasks = {one.dataset: one.task for one in found.probes if one.library == library}
    rows = tuple(
        (f"{library}: {task} ({dataset})", *(_tell(cells.get((dataset, name))) for name in questions))
        for dataset, task in tasks.items()
    )
    return PlainTable(library, ("Task", *(_QUESTIONS[name] for name in questions)), rows)


def _tell(one: ProbeFinding | None) -> PlainCell:
    if one is None:
        return None
    text: str = one.outcome
    if one.outcome == "different":
        size = MISSING if one.relative is None else number(one.relative, 2)
        with_ = "" if one.setting == "nothing more" else f", with {one.setting}"
        text = f"different by {size}{with_}"
    return MarkedCell(text, _TONES[one.outcome], title=one.reason)


def _kept(found: DeterminismFindings, library: str, question: ProbeQuestion) -> str:
    differing = found.differing(library, question)
    return f"different in {join_words(one.task for one in differing)}" if differing else "the same"


def _notes(found: DeterminismFindings) -> Iterator[str]:
    yield (
        "Each model is trained on one thread but where threads are asked about, with the parameters of parity; a"
        " difference is that of the predictions of test rows, in the largest of them, with the smallest setting that"
        " shows it: nothing more, row sampling, or column sampling."
    )
    yield "Repeated rows are compared with whole weights; a smallest number of rows in a leaf may count them otherwise."
    if found.unsupported:
        yield f"Not supported: {'; '.join(found.unsupported)}."
