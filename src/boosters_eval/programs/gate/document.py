"""A decision as a document: promoted or held and why, then the numbers that it rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.core.text import clean, count_of
from boosters_eval.programs.baseline.document import tell_apart
from boosters_eval.programs.gate.model import RunSource
from boosters_eval.reports.document import Document, Mark, Notes, Paragraph, PlainTable, Section
from boosters_eval.reports.numbers import number

if TYPE_CHECKING:
    from boosters_eval.programs.gate.model import BenchRunReport, Case, GateDecision
    from boosters_eval.reports.document import Cell

_WORST = 10  # cases below the threshold that are listed in text


def lay_out_decision(decision: GateDecision) -> Document:
    """The answer in the caller's terms: what a file holds speaks of options, whoever asked."""
    report, rules = decision.report, decision.rules
    answer = f"{'PROMOTED' if decision.promoted else 'HELD'}: tier {rules.tier}, threshold {rules.threshold}."
    reasons = rules.objections(report, decision.coverage)
    if decision.promoted:
        bound, _ = tell_apart(report.lower_bound_95, rules.threshold)
        reasons = (f"The lower bound {bound} on {_size(report)} reaches the threshold.",)
    worst = sorted((case for case in report.per_case if case.score < rules.threshold), key=lambda case: case.score)
    more = len(worst) - _WORST
    return Document(
        clean(f"Gate: {report.library or 'scores'}"),
        (answer, *(f"  {clean(reason)}" for reason in reasons)),
        sections=(
            Section("evidence", "", (_evidence(decision),), short="Evidence"),
            Section(
                "worst",
                "Below the Threshold" if worst else "",
                (
                    PlainTable(
                        "Cases below the threshold", ("Case", "Score", "Reason"), tuple(map(_row, worst[:_WORST]))
                    ),
                    *([Paragraph(f"and {more} more cases below the threshold")] if more > 0 else []),
                )
                if worst
                else (),
                only="text",
            ),
            Section(
                "cases",
                "Cases",
                (PlainTable("Cases", ("Case", "Score", "Reason"), tuple(map(_row, report.per_case)), measured=True),),
                search="Filter cases",
                only="page",
            ),
            Section("notes", "Notes", (Notes(tuple(map(clean, report.notes))),) if report.notes else ()),
            Section("source", "Source", (PlainTable.of_facts("Source", _source(decision)),), detail=True),
        ),
    )


def _row(case: Case) -> tuple[Cell, ...]:
    return clean(case.case_id), Mark(number(case.score), value=case.score), clean(case.reason) or None


def _evidence(decision: GateDecision) -> PlainTable:
    report, rules = decision.report, decision.rules
    held_out, level, alike = report.lower_bound_95_held_out, decision.coverage.level, report.intraclass_correlation
    spread = "" if report.stddev is None else f", standard deviation {number(report.stddev)}"
    if held_out is not None:
        bound, _ = tell_apart(held_out, rules.threshold)
        shown = f"{bound} ({report.n_held_out} of {report.n_units} {report.unit_noun}s)"
    facts = {
        "lower bound (95 %)": f"{tell_apart(report.lower_bound_95, rules.threshold)[0]} on {_size(report)}",
        "of the held-out": "none" if held_out is None else shown,
        "threshold covered": "-" if level is None else f"at {100 * level:.0f} %",
        "intraclass correlation": "-" if alike is None else f"{alike:.2f}",
        "flaky cells": f"{report.n_flaky} ({rules.flaky} allowed)" if report.n_flaky else "none",
        "mean (not judged)": f"{number(report.mean_score)}{spread}",
    }
    return PlainTable.of_facts("Evidence", facts)


def _size(report: BenchRunReport) -> str:
    units = count_of(report.n_units, report.unit_noun)
    return units if report.n_cases == report.n_units else f"{units} ({report.n_cases} cases)"


def _source(decision: GateDecision) -> dict[str, Cell]:
    source = decision.source
    if isinstance(source, RunSource):
        told = {"run": source.run_id, "journal": source.journal_digest, "baseline": clean(source.baseline)}
        told["baseline's digest"] = source.baseline_sha256
    else:
        told = {"scores": clean(source.file), "digest": source.file_sha256}
    versions = (f"{name} {version}" for name, version in decision.report.versions.items())
    return {**told, "versions": clean(", ".join(versions))}
