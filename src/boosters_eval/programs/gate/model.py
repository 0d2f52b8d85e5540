"""What the gate reads and writes: cases, the report on them, the rules, and the decision with all that it rests on."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from annotated_types import Ge, Gt, Le, MinLen
from pydantic import ConfigDict, Field, Strict

from boosters_eval.core.errors import BoostersEvalError, ExitCode
from boosters_eval.core.files import FORMAT, Format
from boosters_eval.core.model import Model
from boosters_eval.core.terms import given
from boosters_eval.core.text import clean, count_of, escape_json, format_share
from boosters_eval.programs.baseline.document import tell_apart
from boosters_eval.programs.gate.request import TIERS
from boosters_eval.reports.document import Document, MarkedCell, Notes, Paragraph, PlainTable, Section
from boosters_eval.reports.findings import ReportedFindings
from boosters_eval.reports.numbers import number
from boosters_eval.stats.bootstrap import covered_level, units_needed, vouched_threshold

if TYPE_CHECKING:
    from boosters_eval.reports.document import PlainCell

KIND = "boosters-eval gate decision"
MIN_HELD_OUT = 5
_WORST = 10  # cases below the threshold that are listed in text
LEAST_COVERED = 0.9  # below this, a promotion must be asked for by name: docs/adr/0008

Unit = Annotated[float, Ge(0), Le(1), Strict()]
CaseClass = Literal["dev", "held_out"]
Tier = Literal["bronze", "silver", "gold"]


class GateError(BoostersEvalError):
    """The inputs are valid, but no decision can be computed from them."""


class Case(Model):
    """One case: a (data set, seed) cell of the library under test, or a line of a scores file."""

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    case_id: Annotated[str, MinLen(1)]
    score: Unit
    class_: CaseClass | None = Field(default=None, alias="class")
    reason: str = ""  # why the score is 0 although nothing was measured
    dataset: str = ""  # cases of one data set are one unit; empty: the case is a unit of its own

    @property
    def unit(self) -> str:
        """What the case is evidence about: several cases of one unit are no more evidence than one."""
        return self.dataset or self.case_id


class BenchRunReport(Model):
    """What the gate knows about a run. mean_score and stddev are for people: the gate never reads them."""

    schema_version: Format = FORMAT
    run_id: str
    library: str | None = None
    per_case: Annotated[tuple[Case, ...], MinLen(1)]  # sorted by case id
    per_unit: dict[str, float]  # the mean score of each unit
    n_cases: int
    n_units: int
    n_held_out: int  # units
    intraclass_correlation: float | None  # of the cases within units; None where it cannot be estimated
    mean_score: float  # of the units, like everything below
    stddev: float | None  # ddof 1; None for a single unit
    lower_bound_95: float
    lower_bound_95_held_out: float | None  # None without held-out units
    n_changed: int = 0  # configs whose parameters are not the baseline's; the notes say which
    n_flaky: int = 0  # cells that finished only after they had failed
    of_itself: bool = False  # the baseline was recorded from this very attempt
    versions: dict[str, str]
    notes: tuple[str, ...] = ()

    @property
    def unit_noun(self) -> str:
        return "data set" if any(case.dataset for case in self.per_case) else "case"


class GateRules(Model):
    tier: Tier = "bronze"
    threshold: Annotated[float, Gt(0), Le(1)]
    min_cases: int | None = None  # how many units; never fewer than the tier's
    held_out: bool = True  # whether at least five held-out units are needed, whose bound reaches the threshold too
    changed_parameters: bool = False  # whether the run's parameters may differ from the baseline's
    low_coverage: bool = False  # whether the threshold may be covered at less than 90 %
    flaky: Annotated[int, Ge(0)] = 0  # how many cells may have failed before they finished

    @property
    def allowed(self) -> str:
        """What is accepted beyond the usual, each with a comma before it."""
        allowed = {
            "held-out data sets not required": not self.held_out,
            "changed parameters allowed": self.changed_parameters,
            "low coverage allowed": self.low_coverage,
            f"{count_of(self.flaky, 'flaky cell')} allowed": bool(self.flaky),
            f"at least {self.needed} units": self.min_cases is not None,
        }
        return "".join(f", {text}" for text, is_so in allowed.items() if is_so)

    @property
    def needed(self) -> int:
        return max(TIERS[self.tier], self.min_cases or 0)

    def objections(self, report: BenchRunReport, coverage: Coverage) -> tuple[str, ...]:
        """Why there is no promotion, in sentences; bounds and counts are all that it may look at."""
        found = []
        noun = report.unit_noun
        if not report.lower_bound_95 >= self.threshold:
            bound, _ = tell_apart(report.lower_bound_95, self.threshold)
            found.append(f"The lower bound {bound} is below the threshold {self.threshold}.")
        elif coverage.level is not None and coverage.level < LEAST_COVERED and not self.low_coverage:
            found.append(f"{coverage.sentence(self.threshold, noun)} (or say {given('allow_low_coverage')}).")
        if report.n_units < self.needed:
            found.append(f"{_there_are(report.n_units, noun)}; tier {self.tier} needs {self.needed}.")
        if self.held_out:
            found += self._held_out_objections(report)
        if report.n_changed and not self.changed_parameters:
            have = _there_are(report.n_changed, "config")
            allow = given("allow_changed_parameters")
            found.append(f"{have} with other parameters than the baseline's (or say {allow}).")
        if report.n_flaky > self.flaky:
            have = _there_are(report.n_flaky, "flaky cell")
            allow = given("allow_flaky", report.n_flaky)
            found.append(f"{have}: trying again until it works proves nothing (or say {allow}).")
        if report.of_itself:
            found.append("The baseline was recorded from this very run: there is nothing to compare it with.")
        return tuple(found)

    def _held_out_objections(self, report: BenchRunReport) -> list[str]:
        if report.n_held_out < MIN_HELD_OUT:
            have = _there_are(report.n_held_out, f"held-out {report.unit_noun}")
            return [f"{have}; {MIN_HELD_OUT} are needed (or say {given('no_held_out')})."]
        bound = report.lower_bound_95_held_out
        if bound is None or bound >= self.threshold:
            return []
        shown, _ = tell_apart(bound, self.threshold)
        return [f"The lower bound {shown} of the held-out {report.unit_noun}s is below the threshold {self.threshold}."]


class Coverage(Model):
    """How sure a threshold that the bound reaches is, given how few units there are."""

    level: float | None  # None where the bound does not reach the threshold: nothing is claimed
    vouched: float  # the highest threshold that is covered at 90 %
    needed: int | None  # how many units with this mean would cover the threshold at 90 %

    @classmethod
    def of(cls, report: BenchRunReport, threshold: float) -> Self:
        scores = list(report.per_unit.values())
        reached = report.lower_bound_95 >= threshold
        return cls(
            level=covered_level(scores, threshold) if reached else None,
            vouched=round(vouched_threshold(scores, LEAST_COVERED), 6),  # a logarithm's last digits differ
            needed=units_needed(scores, threshold, LEAST_COVERED),
        )

    def sentence(self, threshold: float, noun: str) -> str:
        """What a low level means, without a full stop."""
        level = 0.0 if self.level is None else self.level
        vouched = int(self.vouched * 1000) / 1000  # never more than is vouched for
        more = "" if self.needed is None else f"; {self.needed} would be enough"
        covered = f"{100 * level:.0f}"
        if covered == f"{100 * LEAST_COVERED:.0f}":  # below it by less than is shown
            covered = f"{math.floor(1000 * level) / 10:.1f}"
        return (
            f"The threshold {threshold} is too high for so few {noun}s: the chance that they would show a rare total "
            f"loss is {covered} %, and must be {100 * LEAST_COVERED:.0f} %. They vouch for {vouched:.3f}{more}"
        )


def _there_are(number: int, noun: str) -> str:
    return f"There {'is' if number == 1 else 'are'} {count_of(number, noun)}"


class Reference(Model):
    """What the baseline says about the library under test in one config."""

    config: str
    metric: str
    higher_is_better: bool
    mean: float
    per_seed: dict[str, float] = Field(default_factory=dict)  # empty: the baseline has only the mean
    data_digest: str | None = None
    split_digests: dict[str, str] = Field(default_factory=dict)
    parameters: dict[str, Any] = Field(default_factory=dict)  # the effective ones; empty: not known
    profile: str | None = None
    dataset: str = ""  # empty: the baseline does not say


class RunSource(Model):
    """A finished run against a baseline."""

    kind: Literal["run"] = "run"
    run_id: str
    attempt: int
    journal_digest: str
    library: str
    held_out: tuple[str, ...]  # data sets and configs whose cells are held out
    baseline: str  # the file as it was named
    baseline_sha256: str
    references: tuple[Reference, ...]
    baseline_runs: dict[str, str | None] = Field(default_factory=dict)  # that it was recorded from, and when
    chosen_later: tuple[str, ...] = ()  # what the plan's policy did not state before the run, or states otherwise
    baseline_unchecked: tuple[str, ...] = ()  # what nobody could vouch for when it was decided


class ScoresSource(Model):
    """A file of scores; its cases are in the report, and a digest of their scores is the run id."""

    kind: Literal["scores"] = "scores"
    file: str  # as it was named
    file_sha256: str


class GateDecision(ReportedFindings, Model):
    """The decision and everything needed to compute it again."""

    plain: ClassVar[bool] = True
    schema_version: Format = FORMAT
    kind: Literal["boosters-eval gate decision"] = "boosters-eval gate decision"
    promoted: bool
    objections: tuple[str, ...]
    rules: GateRules
    min_cases: int  # units
    coverage: Coverage
    report: BenchRunReport
    source: Annotated[RunSource | ScoresSource, Field(discriminator="kind")]

    @property
    def exit_code(self) -> ExitCode:
        return ExitCode.SUCCESS if self.promoted else ExitCode.REGRESSION

    def document(self) -> Document:
        return _lay_out(self)

    def text(self) -> str:
        """The file's content, the same for the same decision."""
        return escape_json(self.model_dump_json(indent=1)) + "\n"


def _lay_out(decision: GateDecision) -> Document:
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


def _row(case: Case) -> tuple[PlainCell, ...]:
    return clean(case.case_id), MarkedCell(number(case.score), value=case.score), clean(case.reason) or None


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
        "threshold covered": "-" if level is None else f"at {format_share(level, 0)}",
        "intraclass correlation": "-" if alike is None else f"{alike:.2f}",
        "flaky cells": f"{report.n_flaky} ({rules.flaky} allowed)" if report.n_flaky else "none",
        "mean (not judged)": f"{number(report.mean_score)}{spread}",
    }
    if isinstance(decision.source, RunSource):
        later = decision.source.chosen_later
        facts["terms"] = f"chosen after the run: {', '.join(later)}" if later else "as stated before the run"
    return PlainTable.of_facts("Evidence", facts)


def _size(report: BenchRunReport) -> str:
    units = count_of(report.n_units, report.unit_noun)
    return units if report.n_cases == report.n_units else f"{units} ({report.n_cases} cases)"


def _source(decision: GateDecision) -> dict[str, PlainCell]:
    source = decision.source
    if isinstance(source, RunSource):
        told = {"run": source.run_id, "journal": source.journal_digest, "baseline": clean(source.baseline)}
        told["baseline's digest"] = source.baseline_sha256
    else:
        told = {"scores": clean(source.file), "digest": source.file_sha256}
    versions = (f"{name} {version}" for name, version in decision.report.versions.items())
    return {**told, "versions": clean(", ".join(versions))}
