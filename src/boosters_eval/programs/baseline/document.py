"""Checks and baselines as documents, and a check as CI systems read it: annotations of GitHub, JUnit of others."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from shlex import quote
from typing import TYPE_CHECKING, Literal
from xml.etree import ElementTree as ET

from boosters_eval.core.files import write_atomically
from boosters_eval.core.terms import given, named
from boosters_eval.core.text import clean, count_of, join_words, lower_initial
from boosters_eval.metrics import label
from boosters_eval.programs.baseline.findings import UNNAMED, Status
from boosters_eval.programs.baseline.model import HOME_LIBRARY
from boosters_eval.reports.document import Document, Fact, Listing, MarkedCell, Notes, PlainTable, Section
from boosters_eval.reports.findings import ReportedFindings
from boosters_eval.reports.markdown import annotate, annotation, render_markdown
from boosters_eval.reports.numbers import estimate, number, percent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boosters_eval.core.findings import Screen
    from boosters_eval.programs.baseline.findings import Check, Finding
    from boosters_eval.programs.baseline.model import Baseline
    from boosters_eval.programs.baseline.request import Checking, DiffRequest
    from boosters_eval.programs.benchmark.results import ResultCollection
    from boosters_eval.reports.document import PlainCell
    from boosters_eval.reports.findings import Reported

_HEADINGS = ("Config", "Library", "Metric", "Baseline", "Now", "Change", "Tolerance", "Verdict")
_CALM = (Status.SAME, Status.WITHIN)
_MARKS = {**dict.fromkeys((*_CALM, Status.IMPROVED), "✅"), Status.DRIFT: "⚠", Status.NEW: "🆕"}  # of others ❌
_KINDS = {"✅": "better", "⚠": "warn", "❌": "worse"}
_FEW_DIGITS, _MANY_DIGITS = 4, 9
_FEW_CELLS = 3
_PASSING = 6  # lines that a check prints that passes
_NAMED = 5  # pairs in a sentence


def lay_out_check(check: Check, *, everything: bool = True) -> Document:
    """What fails and why, every pair, then what is only worth knowing; `everything` includes pairs without a change."""
    shown = [f for f in check.findings if everything or f.flaky or f.status not in _CALM]
    table = PlainTable(
        "Pairs", _HEADINGS, tuple(_row(f, too_flaky=check.too_flaky) for f in shown), keys=2, measured=True
    )
    counts = {
        "Regressions": len(check.regressions),
        "Undecided": len(check.undecided),
        "Without an answer": len(check.unanswered),
        "Failed cells": check.errors,
        "Flaky cells": check.n_flaky,
    }
    following = (f"Next: {command}" for command in check.next)
    notes = tuple(map(clean, (*_describe_home(check), *check.notes, *_advise(check), *following)))
    return Document(
        clean(f"Check against {check.name}" if check.name else "Check for failures"),
        tuple(map(clean, _answer(check))),
        facts=(
            Fact("Pairs compared", str(len(check.counted))),
            Fact("Judged by", _name_evidence(check)),
            *(Fact(name, str(count), alarm=bool(count)) for name, count in counts.items()),
        ),
        sections=(
            Section("pairs", "", (table,) if shown else (), short="Pairs", search="Filter pairs"),
            *(Section(anchor, title, (Listing.of(*map(clean, lines)),)) for anchor, title, lines in _remarks(check)),
            Section("about", "Notes", (Notes(notes),) if notes else ()),
        ),
    )


def describe_check(check: Check) -> list[str]:
    """The document without its table, as lines of text in the RFC's form."""
    document = lay_out_check(check)
    out = list(document.answer)
    for section in document.sections:
        for block in section.blocks:
            if isinstance(block, Listing):
                out += [f"{section.title}:", *(f"  {item.text}" for item in block.items)]
            elif isinstance(block, Notes):
                out += [f"Note: {note}" for note in block.texts]
    return out


def summarize_check(check: Check) -> list[str]:
    """What a person must know, the verdict first: what fails and why, what did not move, and the next command.

    Of a check that passes these are a few lines; `describe_check` tells everything.
    """
    lines = [*_answer(check), *(f"⚠ {describe_pair(finding)}" for finding in _list_doubtful(check))]
    improved = [f for f in check.findings if f.counts and f.status is Status.IMPROVED]
    if improved:
        lines.append(f"✅ Improved beyond tolerance: {join_words(f'{f.config} {f.library}' for f in improved)}.")
    lines += [f"{text}." for text in _describe_upgrades(check)]
    if not check.passed:
        lines += _tell_unmoved(check)
    lines += [f"Note: {note}" for note in (*_tell_without(check), *check.notes, *_advise(check))]
    lines += [f"Next: {command}" for command in check.next]
    if check.passed and len(lines) > _PASSING:
        hidden = len(lines) - _PASSING + 1
        lines = [*lines[: _PASSING - 1], f"{named('verbose')} shows {count_of(hidden, 'further remark')}."]
    return [clean(line) for line in lines]


def verdict_line(check: Check) -> str:
    """The verdict alone, with the pairs that it is about and what moved there."""
    told = [f for f in check.findings if f.fails] or (_list_doubtful(check) if check.passed else [])
    head = clean(_headline(check).rstrip(":"))
    other = [f for f in told if check.regressions and f.status is not Status.REGRESSION]  # than the head speaks of
    known = ((f, (*([f.status.value] if f in other else []), *f.cause)) for f in told)
    pairs = (f"{f.config} {f.library}" + (f" ({'; '.join(said)})" if said else "") for f, said in known)
    return f"{head}: {clean(join_words(pairs, most=_NAMED))}" if told else head


def _list_doubtful(check: Check) -> list[Finding]:
    """What passes, although rows show that it is worse, or the mean is beyond tolerance."""
    return [f for f in check.findings if f.counts and not f.fails and f.status in (Status.DRIFT, Status.UNDECIDED)]


def _tell_passed(check: Check) -> str:
    """How many pairs pass in spite of what is known of them."""
    found = Counter(finding.status for finding in _list_doubtful(check))
    told = {Status.DRIFT: "shown to be worse, within tolerance", Status.UNDECIDED: "beyond tolerance, but undecided"}
    return join_words(f"{count_of(found[status], 'pair')} {text}" for status, text in told.items() if found[status])


def _tell_without(check: Check) -> Iterator[str]:
    if check.without and check.name and any(finding.change is not None for finding in check.findings):
        have = "have" if " and " in check.without else "has"
        what = "Splits were tested" if _tested(check) else "Only means were compared"
        yield f"{what}: {check.without} {have} no predictions, so no row could be tested."


def _name_evidence(check: Check) -> str:
    return "means and rows" if not check.without else "means and splits" if _tested(check) else "means"


def _tested(check: Check) -> bool:
    return any(finding.p_value is not None for finding in check.findings)


def _tell_unmoved(check: Check) -> Iterator[str]:
    """What predicts the same as it did: nothing changed there."""
    mine = [f for f in check.findings if f.identical]
    recorded = [f for f in check.findings if f.baseline is not None]
    whole = [
        name
        for name in dict.fromkeys(f.library for f in recorded)
        if all(f.identical for f in recorded if f.library == name)
    ]
    if whole:
        pairs = sum(finding.library in whole for finding in mine)
        yield f"Did not move: {join_words(whole)}, with bit-identical predictions in {count_of(pairs, 'pair')}."
    rest = [f for f in mine if f.library not in whole]
    if rest:
        told = join_words((f"{f.config} {f.library}" for f in rest), most=_NAMED)
        yield f"Did not move{' either' if whole else ''}: {told}, with bit-identical predictions."


def _headline(check: Check) -> str:
    if check.regressions:
        return f"❌ Regression detected in {count_of(len({f.config for f in check.regressions}), 'config')}:"
    if check.undecided:
        return _suspicion(check)
    if check.unanswered:
        return f"❌ Not checked against {check.name}: {count_of(len(check.unanswered), 'pair')} without an answer:"
    if not check.counted:
        what = f"name what does with {named('libraries_under_test')}"
        return f"❌ Nothing that counts was compared with {check.name}; {what}"
    rule = f"tolerance {_share(check.rules.tolerance)}"
    if check.rules.statistical:
        rule += (
            ", only what rows show fails" if any(f.by_rows or f.identical for f in check.counted) else ", paired test"
        )
    same = len([f for f in check.counted if f.identical])
    equal = "" if not same else ", all bit-identical" if same == len(check.counted) else f", {same} bit-identical"
    held = f"o regression against {check.name}: {count_of(len(check.counted), 'pair')} compared ({rule}){equal}"
    wrong = [*([_failed(check)] if check.errors else []), *([_flaky(check)] if check.too_flaky else [])]
    if wrong:
        return f"❌ {', '.join(wrong)}; n{held}"
    return f"⚠ {_tell_passed(check)}; n{held}" if _list_doubtful(check) else f"✅ N{held}"


def _answer(check: Check) -> Iterator[str]:
    """The headline, and below each reason the pairs that it is about."""
    yield _headline(check)
    yield from _indent(check.regressions)
    if check.regressions and check.undecided:
        yield _suspicion(check)
    yield from _indent(check.undecided, headed=True)
    if (check.regressions or check.undecided) and check.unanswered:
        yield f"❌ {count_of(len(check.unanswered), 'pair')} without an answer:"
    yield from _indent(check.unanswered)
    if check.broken or check.not_run:
        if check.regressions or check.undecided or check.unanswered or not check.counted:
            yield f"❌ {_failed(check)}:"
        for finding in check.broken:  # the run is not what it was meant to be
            upgrade = " → ".join(finding.upgrade) if finding.upgrade else ""
            theirs = f" ({finding.library} {upgrade}: not your library)" if upgrade else ""
            yield f"  {describe_pair(finding)}{theirs}"
        if check.not_run:
            yield f"  {count_of(check.not_run, 'cell')} of the plan without an outcome"
    if check.flaky:
        accept = f"; {given('allow_flaky', check.n_flaky)} accepts them" if check.too_flaky else ""
        told = [*check.regressions, *check.undecided, *check.unanswered, *check.broken]  # with what was flaky
        rest = [finding for finding in check.flaky if finding not in told]
        end = ":" if rest else ""
        yield f"{'❌' if check.too_flaky else '⚠'} {_flaky(check)} ({check.rules.allow_flaky} allowed{accept}){end}"
        yield from (f"  {finding.config} {finding.library}: {_flakiness(finding)}" for finding in rest)


def _indent(findings: list[Finding], *, headed: bool = False) -> Iterator[str]:
    return (f"  {describe_pair(finding, headed=headed)}" for finding in findings)


def _suspicion(check: Check) -> str:
    return f"❌ Beyond tolerance, but undecided in {count_of(len({f.config for f in check.undecided}), 'config')}:"


def _failed(check: Check) -> str:
    cells = sum(finding.failed_cells for finding in check.broken) + check.not_run
    return f"{count_of(cells, 'cell')} failed or did not run"


def _flaky(check: Check) -> str:
    return count_of(check.n_flaky, "flaky cell")


def describe_pair(finding: Finding, *, headed: bool = False) -> str:
    """How a pair compares, in the RFC's form, and which of its cells are flaky; the status may stand in a heading."""
    where = f"{finding.config} {finding.library}"
    flaky = f"; flaky: {_flakiness(finding)}" if finding.flaky else ""
    then, now, change = finding.baseline, finding.current, finding.change
    if then is None or now is None or change is None or finding.status is Status.SKIPPED:
        recorded = "" if then is None else f" (baseline {label(finding.metric)} {number(then.mean)})"
        status = "" if headed else f"{finding.status.value}, "
        return f"{where}: {status}{finding.note}{recorded}{flaky}"
    sign = ">" if now.mean > then.mean else "<" if now.mean < then.mean else "="
    new, old = tell_apart(now.mean, then.mean)
    relative = f"{_change(change, finding.tolerance)}, tolerance {_share(finding.tolerance)}"
    verdict = "" if headed or finding.status is Status.REGRESSION else f" {finding.status.value}:"
    note = f" ({finding.note})" if finding.note else ""
    moved = f"; moved: {'; '.join(finding.cause)}" if finding.cause else ""
    since = f"; {finding.since}" if finding.since else ""
    return (
        f"{where}:{verdict} {label(finding.metric)} {new} {sign} baseline {old} ({relative}){note}{moved}{since}{flaky}"
    )


def _flakiness(finding: Finding) -> str:
    """Which cells finished only after failing, and how often they failed."""
    cells = [f"{cell} after {count_of(tries, 'failure')}" for cell, tries in finding.flaky.items()]
    more = f" and {len(cells) - _FEW_CELLS} more" if len(cells) > _FEW_CELLS else ""
    word = "cell" if len(cells) == 1 else "cells"
    return f"{word} {', '.join(cells[:_FEW_CELLS])}{more}"


def _row(finding: Finding, *, too_flaky: bool) -> tuple[PlainCell, ...]:
    change, status = finding.change, finding.status
    mark = _MARKS.get(status, "❌") if finding.counts or status is Status.NEW else "·"
    mark = "❌" if finding.flaky and too_flaky else mark
    suffix = "" if finding.counts or status in (Status.NEW, Status.SKIPPED) else ", not under test"
    if finding.upgrade and not finding.counts:
        suffix = f", {' → '.join(finding.upgrade)}"
    verdict = f"{mark} {status.value}{', flaky' if finding.flaky else ''}{suffix}"
    sides = (
        None if s is None else MarkedCell(estimate(s.mean, s.std), value=s.mean)
        for s in (finding.baseline, finding.current)
    )
    return (
        clean(finding.config),
        clean(finding.library),
        clean(label(finding.metric)) if finding.metric else None,
        *sides,
        None if change is None else MarkedCell(_change(change, finding.tolerance), value=change),
        None if status is Status.NEW else MarkedCell(_share(finding.tolerance), value=finding.tolerance),
        MarkedCell(clean(verdict), "" if status in _CALM else _KINDS.get(mark, ""), title=clean(finding.note)),
    )


def _remarks(check: Check) -> Iterator[tuple[str, str, list[str]]]:
    """What does not fail but should be known. Libraries whose version changed have a heading of their own."""
    ours = [f for f in check.findings if f.counts or f.upgrade is None]
    others = [f for f in ours if not f.counts and not f.failed_cells]
    still = (*_CALM, Status.SKIPPED, Status.NEW)
    found = {
        ("drift", "⚠ Drift, within tolerance but significantly worse"): [
            f for f in ours if f.counts and f.status is Status.DRIFT
        ],
        ("improved", "✅ Improved beyond tolerance"): [f for f in ours if f.counts and f.status is Status.IMPROVED],
        ("others", "Not under test, so only for information"): [f for f in others if f.status not in still],
        ("skipped", "Skipped"): [f for f in others if f.status is Status.SKIPPED],
        ("remarks", "Within tolerance, with a remark"): [f for f in check.findings if f.note and f.status in _CALM],
        ("new", "New"): [f for f in check.findings if f.status is Status.NEW],
    }
    for (anchor, title), findings in found.items():
        if findings:
            headed = anchor not in ("others", "remarks")
            yield anchor, title, [describe_pair(finding, headed=headed) for finding in findings]
    if versions := list(_describe_upgrades(check)):
        yield "versions", "Libraries whose version differs from the recorded one", versions


def _describe_upgrades(check: Check) -> Iterator[str]:
    """What other versions did, apart from the rest, so that nobody hunts for a bug of their own."""
    for library, versions in check.upgrades.items():
        mine = [f for f in check.findings if f.library == library]
        if any(f.counts for f in mine):
            continue
        upgraded = f"{library} {' → '.join(versions)}"
        for finding in mine:
            if finding.status not in (*_CALM, Status.NEW) and not finding.failed_cells:
                yield f"{finding.config}: {upgraded} {_describe_move(finding)}: not your library"
        still = len([f for f in mine if f.status in _CALM])
        if still:
            yield f"{upgraded} stayed within tolerance in {count_of(still, 'config')}"


def _describe_move(finding: Finding) -> str:
    if finding.change is None:
        return f"{finding.status.value} ({finding.note})"
    size = percent(finding.change) if math.isfinite(finding.change) else "from 0"
    note = f" ({finding.note})" if finding.status is Status.UNLIKE else ""
    return f"moved {lower_initial(label(finding.metric))} by {size}{note}"


def _describe_home(check: Check) -> Iterator[str]:
    for library, versions in check.upgrades.items():
        if any(f.counts for f in check.findings if f.library == library):
            yield f"{library} {' → '.join(versions)} is under test: every change of it counts."


def _advise(check: Check) -> Iterator[str]:
    """The next step where something fails."""
    file = "FILE" if check.name == UNNAMED else quote(check.name)
    record = f"boosters-eval baseline record {file}" + (f" --suite {quote(check.suite)}" if check.suite else "")
    if any(f.status is Status.SKIPPED for f in check.unanswered):
        yield f"To check only some libraries, name them with {named('libraries')}."
    if any(f.status is Status.UNLIKE for f in check.unanswered):
        yield f"Where data or splits have changed on purpose, record a new baseline: '{record}'."
    wanted = [f.seeds_needed for f in check.undecided if f.seeds_needed]
    if any(f.n_seeds < f.n_recorded for f in check.undecided):
        command = f"boosters-eval baseline check {file} --statistical --seeds auto"
        yield f"'{command}' adds recorded seeds until it is decided."
    elif wanted:
        needed, recorded = max(wanted), max(f.n_recorded for f in check.undecided)
        have = f"{check.name} has {count_of(recorded, 'seed')}, and {needed} would decide"
        yield f"{have}; with the recorded versions installed, run '{record} --seeds {needed}'."


def tell_apart(after: float, before: float) -> tuple[str, str]:
    """Both numbers with as many digits as it takes to see that they differ."""
    for digits in range(_FEW_DIGITS, _MANY_DIGITS):
        texts = number(after, digits), number(before, digits)
        if texts[0] != texts[1]:
            break
    return texts if after != before else (number(after), number(before))


def _change(change: float, tolerance: float) -> str:
    """With the digits it takes to tell it from the tolerance."""
    if not math.isfinite(change):
        return "from 0"
    for digits in range(1, _MANY_DIGITS):
        if f"{100 * abs(change):.{digits}f}" != f"{100 * tolerance:.{digits}f}":
            break
    else:
        digits = 1  # the change equals the tolerance
    usual = percent(change) if change else "0 %"
    return usual if digits <= len(usual.partition(".")[2]) - 2 or digits == 1 else f"{100 * change:+.{digits}f} %"


def _share(tolerance: float) -> str:
    return f"{100 * tolerance:.6g} %"


def annotate_check(check: Check) -> list[str]:
    """GitHub's workflow commands; what does not fail the job is not an error there."""
    level = "error" if check.rules.fail_on_regression else "warning"
    found = [(level, "Regression", f) for f in check.regressions]
    found += [(level, "Undecided", f) for f in check.undecided]
    found += [("error", "Not checked", f) for f in check.unanswered]
    found += [("error", "Failed", f) for f in check.broken]
    told = [finding for _, _, finding in found]
    unstable = "error" if check.too_flaky else "warning"
    found += [(unstable, "Flaky", f) for f in check.flaky if f not in told]
    found += [("warning", "Drift", f) for f in check.findings if f.counts and f.status is Status.DRIFT]
    headed = ("Undecided", "Drift")
    out = annotate([(kind, title, describe_pair(one, headed=title in headed)) for kind, title, one in found])
    for library, versions in check.upgrades.items():
        if library != HOME_LIBRARY:
            out.append(annotation("notice", "Version", f"{library} {' → '.join(versions)}"))
    return out


def render_junit(check: Check) -> str:
    """A test suite with one case per pair."""
    outcomes = Counter(_judge(finding, check) for finding in check.findings)
    totals = {
        "name": clean(check.name),
        "tests": str(len(check.findings)),
        "failures": str(outcomes["failure"]),
        "errors": str(outcomes["error"]),
        "skipped": str(outcomes["skipped"]),
    }
    root = ET.Element("testsuites", {**totals, "name": "boosters-eval"})
    suite = ET.SubElement(root, "testsuite", totals)
    for finding in check.findings:
        names = {"classname": clean(finding.config), "name": clean(finding.library)}
        case = ET.SubElement(suite, "testcase", names)
        outcome, message = _judge(finding, check), clean(describe_pair(finding))
        if outcome == "skipped":
            ET.SubElement(case, outcome, {"message": message})
        elif outcome:
            kind = finding.status.value if finding.fails or finding.failed_cells else "flaky"
            ET.SubElement(case, outcome, {"type": kind, "message": message}).text = message
        else:
            ET.SubElement(case, "system-out").text = message if finding.counts else f"{message} (not under test)"
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def judge_pair(check: Check, config: str, library: str) -> tuple[Literal["passed", "failed", "skipped"], str]:
    """What became of a pair, and why; of one that passed without a baseline there is nothing to say."""
    found = next((f for f in check.findings if (f.config, f.library) == (config, library)), None)
    if found is None:
        return "failed", f"{config} {library}: it was not run"
    kind = _judge(found, check)
    if kind in ("failure", "error"):
        return "failed", describe_pair(found)
    if not check.counted:
        return "failed", _headline(check)
    if kind == "skipped":
        return "skipped", describe_pair(found)
    return "passed", describe_pair(found) if check.name or found.flaky else ""


def _judge(finding: Finding, check: Check) -> str:
    if finding.failure in ("regression", "undecided"):
        return "failure"
    if finding.fails or finding.failed_cells or (finding.flaky and check.too_flaky):
        return "error"
    return "skipped" if finding.status in (Status.SKIPPED, Status.NEW) else ""


def lay_out_baseline(baseline: Baseline) -> Document:
    """What a baseline holds, pair by pair, and what it lacks."""
    rows = tuple(
        (
            clean(result.config),
            clean(result.library),
            clean(label(result.primary_metric)),
            MarkedCell(estimate(result.primary.mean, result.primary.std), value=result.primary.mean),
            result.primary.n,
        )
        for result in baseline.results
    )
    versions = [f"{name} {build.version}" for name, build in baseline.libraries.items()]
    lacks = [f"The baseline lacks {item.library} on {item.config}: {item.reason}" for item in baseline.absent]
    return Document(
        clean(f"Baseline of {baseline.config.suite or 'a run'}"),
        (
            clean(
                f"{describe_size(baseline)}, recorded {baseline.recorded_at:%Y-%m-%d %H:%M} with {', '.join(versions)}."
            ),
        ),
        sections=(
            Section(
                "pairs",
                "",
                (PlainTable("Pairs", ("Config", "Library", "Metric", "Value", "Cells"), rows, keys=2, measured=True),),
                short="Pairs",
                search="Filter pairs",
            ),
            Section("notes", "Notes", (Notes(tuple(map(clean, lacks))),) if lacks else ()),
        ),
    )


def describe_size(baseline: Baseline) -> str:
    """How much a baseline holds."""
    pairs, seeds = len(baseline.results), len(baseline.config.seeds)
    return f"{count_of(pairs, 'pair')} of config and library, {count_of(seeds, 'seed')}"


@dataclass(frozen=True)
class CheckFindings(ReportedFindings):
    """A check, as its request wants it shown, with the results that were checked."""

    check: Check
    request: Checking | DiffRequest
    results: ResultCollection | None = None  # None: two baselines were compared

    @property
    def exit_code(self) -> int:
        return self.check.exit_code

    def document(self) -> Document:
        """The verdict, then the report on the run."""
        from boosters_eval.programs.benchmark.tables.document import build_document  # noqa: PLC0415 (loads scipy)

        verdict = self.check.document()
        return verdict if self.results is None else _join(verdict, build_document(self.results, "comparison"))

    def show(self, screen: Screen) -> None:
        """What a person must know; if quiet only the verdict, if verbose all tables, outside a terminal in Markdown."""
        if screen.quiet:
            screen.say(verdict_line(self.check))
            return
        if not screen.verbose:
            for line in summarize_check(self.check):
                screen.say(line)
            return
        document = self._lay_out_text(everything=True)
        if screen.is_terminal:
            from boosters_eval.reports.terminal import print_document  # noqa: PLC0415 (loads rich)

            print_document(document, screen.console(), every_note=True)
            return
        screen.say(str(self.check))
        tables = tuple(
            part for part in document.sections if part.blocks and part.anchor in ("pairs", "results", "notes")
        )
        if tables:
            screen.write(f"\n{render_markdown(replace(document, title='', answer=(), sections=tables))}")

    def render(self, form: str) -> str:
        """The results as data, or both as a report."""
        if form == "html" or self.results is None:
            return super().render(form)
        if form == "markdown":
            return render_markdown(self._lay_out_text(everything=True))
        return self.results.to_json() if form == "json" else self.results.to_csv()

    def conclude(self, screen: Screen) -> None:
        """Where things are, and what CI systems read."""
        request, dry = self.request, getattr(self.request, "dry_run", False)
        if getattr(request, "output", None) is not None and not dry:
            self.show(screen)  # the results are in a file, and are shown all the same
        if self.results is not None and self.results.run_id and not screen.quiet:
            from boosters_eval.programs.benchmark.compare import describe_run  # noqa: PLC0415 (loads what runs)

            screen.note(describe_run(self.results))
        if request.junit is not None and not dry:
            write_atomically(request.junit, render_junit(self.check))
        if request.verdict is not None and not dry:
            write_atomically(request.verdict, self.check.to_json())
        screen.annotate(annotate_check(self.check), "" if dry else self.check.to_markdown())

    def _lay_out_text(self, *, everything: bool) -> Document:
        verdict = lay_out_check(self.check, everything=everything)
        if self.results is None:
            return verdict
        from boosters_eval.programs.benchmark.tables.build import build_tables  # noqa: PLC0415 (loads scipy)

        return _join(verdict, build_tables(self.results))


def _join(verdict: Document, results: Reported) -> Document:
    """A document that begins with the verdict, and goes on with the results."""
    document = results.document()
    return replace(verdict, leaderboard=document.leaderboard, sections=(*verdict.sections, *document.sections))
