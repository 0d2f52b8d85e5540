"""The check behind --against in words, for people, for GitHub and, as JSON, for programs."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Literal, Self

from annotated_types import Ge

from boosters_eval.core.files import FORMAT, Format
from boosters_eval.core.model import Model
from boosters_eval.core.text import clean, count_of, escape_json, join_words, lower_initial
from boosters_eval.programs.benchmark.against import AgainstOutcome
from boosters_eval.reports.document import Document, PlainTable, Section
from boosters_eval.reports.markdown import annotate, render_markdown
from boosters_eval.reports.numbers import MISSING, name_error, number, p_value, percent

if TYPE_CHECKING:
    from boosters_eval.programs.benchmark.against import AgainstCheck, RivalFinding

_ALONE = "worse on its own only"
_TITLES = {
    _ALONE: "⚠ Worse on its own, but with so many comparisons that may be chance:",
    "cannot say": "⚠ Cannot say:",
    "not worse": "Not worse by more than the margin:",
    "equivalent": "Equivalent:",
    "better": "Better:",
}
_LISTED = 12  # findings of one verdict that does not fail; further ones are only counted
_HEADINGS = ("Benchmark", "Competitor", "Quantity", "Change", "Interval", "p", "n", "Verdict")


def tell_verdict(check: AgainstCheck) -> str:
    """The answer in a line, with what holds over all data sets together."""
    said = _tell_verdict(check)
    if not check.general:
        return said
    return f"{said.removesuffix(':')}; {check.general}{':' if said.endswith(':') else ''}"


def _tell_verdict(check: AgainstCheck) -> str:
    if check.regressions:
        names = list(dict.fromkeys(finding.rival for finding in check.regressions))
        verb = "is" if len(names) == 1 else "are"
        found = f"{len(check.regressions)} of {count_of(len(check.compared) or len(check.findings), 'comparison')}"
        risk = f"at most a {_share(check.alpha)} risk of a false alarm"
        return f"❌ {join_words(names)} {verb} worse than {check.against} in {found} ({risk}):"
    if not check.is_answered:
        what = count_of(len(check.unanswered) + len(check.problems), "reason")
        return f"❌ Not checked against {check.against}: " + (
            f"{what} why there is no answer:" if check.unanswered or check.problems else "nothing was compared."
        )
    tally = Counter(_verdict(finding) for finding in check.compared)
    told = ", ".join(f"{tally[verdict]} {verdict}" for verdict in _TITLES if tally[verdict] and verdict != "cannot say")
    all_ = count_of(len(check.compared), "comparison")
    margins = {check.margins.find(finding.metric).in_words for finding in check.compared}
    margin = margins.pop() if len(margins) == 1 else "its margin"
    scores = [one.comparison for one in check.compared if one.comparison is not None and one.comparison.ratio is None]
    if scores and all(pair.note.startswith("Identical predictions") for pair in scores):
        told += ", all predictions identical"
    if check.proven:
        return f"✅ Nothing is worse than {check.against} by more than {margin} in {all_} ({told})"
    names = list(dict.fromkeys(finding.rival for finding in check.unproven))
    worst = max(check.unproven, key=lambda finding: math.inf if finding.loss is None else finding.loss)
    asked = f"{join_words(names)} {'is' if len(names) == 1 else 'are'} worse than {check.against} by more than {margin}"
    rest = f" ({told})" if told else ""
    sign = "❌" if check.require_proof else "⚠"
    return f"{sign} Cannot say whether {asked} in {len(check.unproven)} of {all_}{rest}: {_tell_loss(worst)}"


def list_findings(check: AgainstCheck) -> list[str]:
    """The whole verdict as text: first what fails, then what is only worth knowing."""
    out = [tell_verdict(check), *(f"  {tell_finding(check, finding)}" for finding in check.regressions)]
    if check.regressions and (check.unanswered or check.problems):
        out.append("❌ Without an answer:")
    out += [f"  {tell_finding(check, finding)}" for finding in check.unanswered if not finding.fails]
    out += [f"  {problem}" for problem in check.problems]
    calm = [finding for finding in check.compared if not finding.fails]
    for verdict, title in _TITLES.items():
        found = [finding for finding in calm if _verdict(finding) == verdict]
        if found:
            out.append(title)
            out += [f"  {tell_finding(check, finding)}" for finding in found[:_LISTED]]
        if len(found) > _LISTED:
            out.append(f"  and {len(found) - _LISTED} more")
    if check.skipped:
        out += ["Not compared, because no competitor supports it:", *(f"  {text}" for text in check.skipped)]
    return [clean(line) for line in out]


def tell_finding(check: AgainstCheck, finding: RivalFinding) -> str:
    """One comparison with its numbers, or why there is none."""
    where = f"{finding.benchmark} {finding.rival}"
    what = lower_initial(finding.quantity)
    pair = finding.comparison
    if pair is None or pair.mean_a is None or pair.mean_b is None:
        return f"{where}: {f'{what}: ' if what else ''}{finding.missing}"
    text = f"{where}: {what} {number(pair.mean_a)} against {number(pair.mean_b)} ({', '.join(_numbers(finding))})"
    if finding.missing:
        return f"{text}: {finding.missing}"
    if finding.alone:
        return f"{text}: worse on its own, but not among {count_of(check.n_tests, 'comparison')}"
    return f"{text}: {_tell_loss(finding)}" if finding.outcome == "cannot say" else text


def _tell_loss(finding: RivalFinding) -> str:
    """How large a loss the evidence leaves possible, in the unit of the margin."""
    pair = finding.comparison
    if pair is None or finding.loss is None:
        return "no loss can be excluded"
    if pair.margin is not None:
        return f"a loss of up to {number(finding.loss * (pair.error_b or 0.0), 2)} cannot be excluded"
    lost = f"{percent(finding.loss, sign=False)}{name_error(finding.quantity, pair.best, ' of ')}"
    return f"a loss of up to {lost} cannot be excluded"


def render_verdict(check: AgainstCheck) -> str:
    rows = tuple(_row(finding, proof=check.require_proof) for finding in check.findings)
    table = PlainTable("Comparisons", _HEADINGS, rows, keys=3)
    section = Section("comparisons", "", (table,) if table.rows else ())
    return render_markdown(Document("", tuple(list_findings(check)), sections=(section,)))


def annotate_verdict(check: AgainstCheck) -> list[str]:
    """GitHub's annotations: an error for what fails, a warning for what was not shown to be as good."""
    found = [("error", "Worse", tell_finding(check, finding)) for finding in check.regressions]
    found += [("error", "Not checked", tell_finding(check, f)) for f in check.unanswered if not f.fails]
    found += [("error", "Not checked", problem) for problem in check.problems]
    if not found and not check.is_answered:
        found.append(("error", "Not checked", tell_verdict(check)))
    level = "error" if check.require_proof else "warning"
    titles = {finding: "Suspicious" if finding.alone else "Cannot say" for finding in check.unproven}
    found += [(level, title, tell_finding(check, finding)) for finding, title in titles.items()]
    return annotate(found)


class ComparedRival(Model):
    """One comparison."""

    benchmark: str
    competitor: str
    metric: str
    verdict: Literal["worse", "inconclusive", "equivalent", "better", "unanswered"]
    outcome: AgainstOutcome
    fails: bool  # whether it alone makes the exit code 1
    mean: float | None  # over the shared splits
    mean_against: float | None
    change: float | None  # relative to the error of the other one
    low: float | None  # of the interval of the change, as the verdict was read off it
    high: float | None
    loss: float | None  # the largest that cannot be excluded, in the same terms
    p_value: float | None
    p_family: float | None  # corrected by Holm over all comparisons
    n: Annotated[int, Ge(0)]
    test: str  # what decided: that of the check, or one by splits where rows could not
    note: str

    @classmethod
    def of(cls, finding: RivalFinding, *, fails: bool) -> Self:
        pair = finding.comparison
        low, high = finding.interval or (None, None)
        return cls(
            benchmark=finding.benchmark,
            competitor=finding.rival,
            metric=finding.metric,
            verdict=finding.verdict,
            outcome=finding.outcome,
            fails=fails,
            mean=pair.mean_a if pair else None,
            mean_against=pair.mean_b if pair else None,
            change=finding.change,
            low=low,
            high=high,
            loss=finding.loss,
            p_value=pair.p_value if pair else None,
            p_family=finding.p_family,
            n=pair.n if pair else 0,
            test=pair.test if pair else "",
            note="; ".join(filter(None, (finding.missing or (pair.note if pair else ""), finding.lack))),
        )


class AgainstDocument(Model):
    """A whole check, as --verdict writes it."""

    schema_version: Format = FORMAT
    kind: Literal["boosters-eval comparison verdict"] = "boosters-eval comparison verdict"
    against: str
    run_id: str | None
    exit_code: int
    answer: str
    outcome: AgainstOutcome  # of all comparisons together
    test: str  # that decided on scores
    alpha: float
    margin: tuple[str, ...]  # as one asks for it
    require_proof: bool
    n_tests: int
    problems: tuple[str, ...]
    skipped: tuple[str, ...] = ()
    comparisons: tuple[ComparedRival, ...]

    @classmethod
    def of(cls, check: AgainstCheck, run_id: str | None) -> Self:
        return cls(
            against=check.against,
            run_id=run_id,
            exit_code=int(check.exit_code),
            answer=clean(tell_verdict(check).lstrip("❌✅⚠ ").rstrip(":")),
            outcome=check.outcome,
            test=check.decided_by,
            alpha=check.alpha,
            margin=check.margins.spelled,
            require_proof=check.require_proof,
            n_tests=check.n_tests,
            problems=check.problems,
            skipped=check.skipped,
            comparisons=tuple(ComparedRival.of(one, fails=check.is_failing(one)) for one in check.findings),
        )

    def to_json(self) -> str:
        return escape_json(self.model_dump_json(indent=1)) + "\n"


def _numbers(finding: RivalFinding) -> list[str]:
    pair = finding.comparison
    if pair is None:
        return []
    out = [_change(finding)] if finding.change is not None else []
    if finding.interval is not None and pair.p_value is not None:
        out.append(f"interval {_interval(finding)}")
    if finding.p_family is not None:
        out.append(f"p {p_value(finding.p_family)}")
    apart = [f"{count_of(finding.apart, 'pair')} on two machines left out"] if finding.apart else []
    return [*out, count_of(pair.n, "split"), *apart, *filter(None, [finding.lack])]


def _row(finding: RivalFinding, *, proof: bool) -> tuple[str, ...]:
    open_sign = "❌" if proof else "⚠"
    sign = {"not worse": "✅", "cannot say": open_sign}.get(finding.outcome, "❌")
    return (
        finding.benchmark,
        finding.rival,
        finding.quantity or MISSING,
        _change(finding),
        _interval(finding),
        MISSING if finding.p_family is None else p_value(finding.p_family),
        "0" if finding.comparison is None else str(finding.comparison.n),
        f"{sign} {_verdict(finding)}",
    )


def _verdict(finding: RivalFinding) -> str:
    """The verdict in the terms of this check, which asks in one direction only."""
    if finding.alone:
        return _ALONE
    named = finding.verdict in ("better", "equivalent") and finding.proven
    return finding.verdict if named else finding.outcome


def _change(finding: RivalFinding) -> str:
    if finding.change is None:
        return MISSING
    best = 0.0 if finding.comparison is None else finding.comparison.best
    of_error = name_error(finding.quantity, best, " of ") if finding.change else ""
    return f"{percent(finding.change) if finding.change else '0 %'}{of_error}"


def _interval(finding: RivalFinding) -> str:
    return MISSING if finding.interval is None else " to ".join(map(percent, finding.interval))


def _share(alpha: float) -> str:
    return f"{100 * alpha:.3g} %"
