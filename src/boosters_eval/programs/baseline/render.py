"""A check in words: the RFC's lines for people, annotations and a summary for GitHub, JUnit for other CI systems."""

from __future__ import annotations

import math
from collections import Counter
from shlex import quote
from typing import TYPE_CHECKING, Literal
from xml.etree import ElementTree as ET

from boosters_eval.core.terms import given, named
from boosters_eval.core.text import clean, count_of, lower_initial
from boosters_eval.metrics import label
from boosters_eval.programs.baseline.findings import UNNAMED, Status
from boosters_eval.programs.baseline.model import HOME_LIBRARY
from boosters_eval.reports.markdown import annotate, annotation, escape, markdown_table
from boosters_eval.reports.numbers import MISSING, estimate, number, percent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from boosters_eval.programs.baseline.findings import Check, Finding

HEADINGS = ("Config", "Library", "Metric", "Baseline", "Now", "Change", "Tolerance", "Verdict")
MARKS = {
    Status.REGRESSION: "❌",
    Status.CRASHED: "❌",
    Status.NOT_FINITE: "❌",
    Status.SKIPPED: "❌",
    Status.UNLIKE: "❌",
    Status.SUSPECTED: "❌",
    Status.DRIFT: "⚠",
    Status.IMPROVED: "✅",
    Status.WITHIN: "✅",
    Status.SAME: "✅",
    Status.NEW: "🆕",
}
_FEW_DIGITS, _MANY_DIGITS = 4, 9
_FEW_CELLS = 3


def headline(check: Check) -> str:
    if check.regressions:
        return f"❌ Regression detected in {count_of(len({f.config for f in check.regressions}), 'config')}:"
    if check.suspected:
        return _suspicion(check)
    if check.unanswered:
        return f"❌ Not checked against {check.name}: {count_of(len(check.unanswered), 'pair')} without an answer:"
    rule = f"tolerance {_share(check.rules.tolerance)}" + (", paired test" if check.rules.statistical else "")
    if not check.counted:
        what = f"name what does with {named('libraries_under_test')}"
        return f"❌ Nothing that counts was compared with {check.name}; {what}"
    held = f"o regression against {check.name}: {count_of(len(check.counted), 'pair')} compared ({rule})"
    wrong = [*([_failed(check)] if check.errors else []), *([_flaky(check)] if check.too_flaky else [])]
    return f"❌ {', '.join(wrong)}; n{held}" if wrong else f"✅ N{held}"


def lines(check: Check) -> list[str]:
    out = [headline(check)]
    out += [f"  {sentence(finding)}" for finding in check.regressions]
    if check.regressions and check.suspected:
        out.append(_suspicion(check))
    out += [f"  {sentence(finding)}" for finding in check.suspected]
    if (check.regressions or check.suspected) and check.unanswered:
        out.append(f"❌ {count_of(len(check.unanswered), 'pair')} without an answer:")
    out += [f"  {sentence(finding)}" for finding in check.unanswered]
    if check.broken or check.not_run:
        if check.regressions or check.suspected or check.unanswered or not check.counted:
            out.append(f"❌ {_failed(check)}:")
        out += [f"  {line}" for line in _failures(check)]
    if check.flaky:
        out.append(f"{'❌' if check.too_flaky else '⚠'} {_flaky(check)} ({_allowance(check)}):")
        out += [f"  {f.config} {f.library}: {flakiness(f)}" for f in check.flaky]
    for title, findings in _sections(check):
        out.append(title)
        out += [f"  {sentence(finding)}" for finding in findings]
    out += _other_versions(check)
    out += [f"Note: {note}" for note in [*check.notes, *_advice(check)]]
    return [clean(line) for line in out]


def sentence(finding: Finding) -> str:
    """One pair: how it compares, and what happened to its cells."""
    return _compared(finding) + (f"; flaky: {flakiness(finding)}" if finding.flaky else "")


def flakiness(finding: Finding) -> str:
    """Which cells finished only after failing, and how often they failed."""
    cells = [f"{cell} after {count_of(tries, 'failure')}" for cell, tries in finding.flaky.items()]
    more = f" and {len(cells) - _FEW_CELLS} more" if len(cells) > _FEW_CELLS else ""
    word = "cell" if len(cells) == 1 else "cells"
    return f"{word} {', '.join(cells[:_FEW_CELLS])}{more}"


def _compared(finding: Finding) -> str:
    """The RFC's form: both values, the change, the tolerance."""
    where = f"{finding.config} {finding.library}"
    note = f" ({finding.note})" if finding.note else ""
    if (
        finding.baseline is None
        or finding.current is None
        or finding.change is None
        or finding.status is Status.SKIPPED
    ):
        return f"{where}: {finding.status.value}, {finding.note}{_then(finding)}"
    before, after = finding.baseline.mean, finding.current.mean
    sign = ">" if after > before else "<" if after < before else "="
    new, old = apart(after, before)
    relative = f"{_change(finding.change, finding.tolerance)}, tolerance {_share(finding.tolerance)}"
    verdict = "" if finding.status is Status.REGRESSION else f" {finding.status.value}:"
    return f"{where}:{verdict} {label(finding.metric)} {new} {sign} baseline {old} ({relative}){note}"


def rows(check: Check, *, everything: bool = True) -> list[list[str]]:
    """One row per pair under HEADINGS; without `everything` only those that changed."""
    shown = [f for f in check.findings if everything or f.flaky or f.status not in (Status.SAME, Status.WITHIN)]
    return [
        [
            clean(f.config),
            clean(f.library),
            clean(label(f.metric)) if f.metric else MISSING,
            MISSING if f.baseline is None else estimate(f.baseline.mean, f.baseline.std),
            MISSING if f.current is None else estimate(f.current.mean, f.current.std),
            MISSING if f.change is None else _change(f.change, f.tolerance),
            MISSING if f.status is Status.NEW else _share(f.tolerance),
            _verdict(f, too_flaky=check.too_flaky),
        ]
        for f in shown
    ]


def markdown(check: Check) -> str:
    text, *rest = lines(check)
    parts = [f"### {escape(text)}\n\n"]
    for line in rest:
        finding = line.startswith("  ")
        parts.append(f"- {escape(line.strip())}\n" if finding else f"\n**{escape(line)}**\n\n")
    return "".join([*parts, "\n", table(rows(check))])


def table(body: list[list[str]]) -> str:
    return markdown_table(HEADINGS, [[escape(cell) for cell in row] for row in body])


def workflow_commands(check: Check) -> list[str]:
    """GitHub's workflow commands; what does not fail the job is not an error there."""
    level = "error" if check.rules.fail_on_regression else "warning"
    found = [(level, "Regression", f) for f in check.regressions]
    found += [(level, "Suspected", f) for f in check.suspected]
    found += [("error", "Not checked", f) for f in check.unanswered]
    found += [("error", "Failed", f) for f in check.broken]
    told = [finding for _, _, finding in found]
    unstable = "error" if check.too_flaky else "warning"
    found += [(unstable, "Flaky", f) for f in check.flaky if f not in told]
    found += [("warning", "Drift", f) for f in check.findings if f.counts and f.status is Status.DRIFT]
    out = annotate([(kind, title, sentence(finding)) for kind, title, finding in found])
    for library, (old, new) in check.upgrades.items():
        if library != HOME_LIBRARY:
            out.append(annotation("notice", "Version", f"{library} {old} → {new}"))
    return out


def junit(check: Check) -> str:
    failed = Counter(_outcome(finding, check) for finding in check.findings)
    totals = {
        "name": clean(check.name),
        "tests": str(len(check.findings)),
        "failures": str(failed["failure"]),
        "errors": str(failed["error"]),
        "skipped": str(failed["skipped"]),
    }
    root = ET.Element("testsuites", {**totals, "name": "boosters-eval"})
    suite = ET.SubElement(root, "testsuite", totals)
    for finding in check.findings:
        names = {"classname": clean(finding.config), "name": clean(finding.library)}
        case = ET.SubElement(suite, "testcase", names)
        outcome, message = _outcome(finding, check), clean(sentence(finding))
        if outcome == "skipped":
            ET.SubElement(case, outcome, {"message": message})
        elif outcome:
            kind = finding.status.value if finding.fails or finding.failed_cells else "flaky"
            ET.SubElement(case, outcome, {"type": kind, "message": message}).text = message
        else:
            ET.SubElement(case, "system-out").text = message if finding.counts else f"{message} (not under test)"
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def outcome(check: Check, config: str, library: str) -> tuple[Literal["passed", "failed", "skipped"], str]:
    """What became of a pair, and why; of one that passed without a baseline there is nothing to say."""
    found = next((f for f in check.findings if (f.config, f.library) == (config, library)), None)
    if found is None:
        return "failed", f"{config} {library}: it was not run"
    kind = _outcome(found, check)
    if kind in ("failure", "error"):
        return "failed", sentence(found)
    if not check.counted:
        return "failed", headline(check)
    if kind == "skipped":
        return "skipped", sentence(found)
    return "passed", sentence(found) if check.name or found.flaky else ""


def _outcome(finding: Finding, check: Check) -> str:
    if finding.is_regression or finding.is_suspected:
        return "failure"
    if finding.is_error or finding.failed_cells or (finding.flaky and check.too_flaky):
        return "error"
    return "skipped" if finding.status in (Status.SKIPPED, Status.NEW) else ""


def _sections(check: Check) -> Iterable[tuple[str, list[Finding]]]:
    """What does not fail but should be known. Libraries whose version changed have a heading of their own."""
    ours = [f for f in check.findings if f.counts or not _upgraded(f)]
    titles = {
        Status.DRIFT: "⚠ Drift, within tolerance but significantly worse:",
        Status.IMPROVED: "✅ Improved beyond tolerance:",
    }
    for status, title in titles.items():
        if found := [f for f in ours if f.counts and f.status is status]:
            yield title, found
    still = (Status.SAME, Status.WITHIN, Status.SKIPPED, Status.NEW)
    others = [f for f in ours if not f.counts and not f.failed_cells]
    if found := [f for f in others if f.status not in still]:
        yield "Not under test, so only for information:", found
    if found := [f for f in others if f.status is Status.SKIPPED]:
        yield "Skipped:", found
    if found := [f for f in check.findings if f.note and f.status in (Status.SAME, Status.WITHIN)]:
        yield "Within tolerance, with a remark:", found
    if found := [f for f in check.findings if f.status is Status.NEW]:
        yield "New, without a baseline:", found


def _upgraded(finding: Finding) -> bool:
    return finding.upgrade is not None


def _other_versions(check: Check) -> list[str]:
    """Libraries whose version changed: listed apart, so that nobody hunts for a bug of their own."""
    out = []
    for library, (old, new) in check.upgrades.items():
        mine = [f for f in check.findings if f.library == library]
        if any(f.counts for f in mine):
            out.append(f"{library} {old} → {new} is under test: every change of it counts.")
            continue
        calm = (Status.SAME, Status.WITHIN, Status.NEW)
        moved = [f for f in mine if f.status not in calm and not f.failed_cells]
        out += [f"  {f.config}: {library} {old} → {new} {_moved(f)}: not your library" for f in moved]
        still = len([f for f in mine if f.status in (Status.SAME, Status.WITHIN)])
        if still:
            out.append(f"  {library} {old} → {new} stayed within tolerance in {count_of(still, 'config')}")
    apart = any(line.startswith("  ") for line in out)
    first = [line for line in out if not line.startswith("  ")]
    rest = [line for line in out if line.startswith("  ")]
    return [*first, *(["Libraries whose version differs from the recorded one:"] if apart else []), *rest]


def _moved(finding: Finding) -> str:
    if finding.change is None:
        return f"{finding.status.value} ({finding.note})"
    size = percent(finding.change) if math.isfinite(finding.change) else "from 0"
    note = f" ({finding.note})" if finding.status is Status.UNLIKE else ""
    return f"moved {lower_initial(label(finding.metric))} by {size}{note}"


def _suspicion(check: Check) -> str:
    return f"❌ Regression suspected in {count_of(len({f.config for f in check.suspected}), 'config')}:"


def _advice(check: Check) -> list[str]:
    """How to decide what is only suspected."""
    file = "FILE" if check.name == UNNAMED else quote(check.name)
    if any(f.n_seeds < f.n_recorded for f in check.suspected):
        command = f"boosters-eval baseline check {file} --statistical --seeds auto"
        return [f"'{command}' adds recorded seeds until it is decided."]
    wanted = [f.seeds_needed for f in check.suspected if f.seeds_needed]
    if not wanted:
        return []
    needed, recorded = max(wanted), max(f.n_recorded for f in check.suspected)
    suite = f" --suite {quote(check.suite)}" if check.suite else ""
    command = f"boosters-eval baseline record {file}{suite} --seeds {needed}"
    have = f"{check.name} has {count_of(recorded, 'seed')}, and {needed} would decide"
    return [f"{have}; with the recorded versions installed, run '{command}'."]


def _flaky(check: Check) -> str:
    return count_of(check.n_flaky, "flaky cell")


def _allowance(check: Check) -> str:
    accept = f"; {given('allow_flaky', check.n_flaky)} accepts them" if check.too_flaky else ""
    return f"{check.rules.allow_flaky} allowed{accept}"


def _failed(check: Check) -> str:
    cells = sum(finding.failed_cells for finding in check.broken) + check.not_run
    return f"{count_of(cells, 'cell')} failed or did not run"


def _failures(check: Check) -> list[str]:
    """What failed without counting as a regression: the run is not what it was meant to be."""
    told = [f"{sentence(f)}{_not_ours(f)}" for f in check.broken]
    return [*told, *([f"{count_of(check.not_run, 'cell')} of the plan without an outcome"] if check.not_run else [])]


def _not_ours(finding: Finding) -> str:
    return f" ({finding.library} {' → '.join(finding.upgrade)}: not your library)" if finding.upgrade else ""


def _verdict(finding: Finding, *, too_flaky: bool) -> str:
    mark = MARKS[finding.status] if finding.counts or finding.status is Status.NEW else "·"
    mark = "❌" if finding.flaky and too_flaky else mark
    suffix = "" if finding.counts or finding.status in (Status.NEW, Status.SKIPPED) else ", not under test"
    if finding.upgrade and not finding.counts:
        suffix = f", {finding.upgrade[0]} → {finding.upgrade[1]}"
    return f"{mark} {finding.status.value}{', flaky' if finding.flaky else ''}{suffix}"


def _then(finding: Finding) -> str:
    if finding.baseline is None:
        return ""
    return f" (baseline {label(finding.metric)} {number(finding.baseline.mean)})"


def apart(after: float, before: float) -> tuple[str, str]:
    """Both numbers with as many digits as it takes to see that they differ."""
    for digits in range(_FEW_DIGITS, _MANY_DIGITS):
        texts = number(after, digits), number(before, digits)
        if texts[0] != texts[1]:
            break
    return texts if after != before else (number(after), number(before))


def _change(change: float, tolerance: float) -> str:
    """The RFC writes the sign against the number: +6.6%; with the digits it takes to tell it from the tolerance."""
    if not math.isfinite(change):
        return "from 0"
    for digits in range(1, _MANY_DIGITS):
        if f"{100 * abs(change):.{digits}f}" != f"{100 * tolerance:.{digits}f}":
            break
    else:
        digits = 1  # the change equals the tolerance
    usual = percent(change).replace(" ", "") if change else "0%"
    return usual if digits <= len(usual.partition(".")[2]) - 1 or digits == 1 else f"{100 * change:+.{digits}f}%"


def _share(tolerance: float) -> str:
    return f"{100 * tolerance:.6g}%"
