"""The report on parity laid out: the cells as matrices and as tables, the backends, and what does not simply agree."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from math import isfinite
from typing import TYPE_CHECKING

from boosters_eval.core.files import write_atomically
from boosters_eval.core.findings import Findings, Screen
from boosters_eval.core.text import clean_message, count_of, group_digits, join_words
from boosters_eval.engine.journal import pause_collection
from boosters_eval.programs.parity import findings
from boosters_eval.programs.parity.catalog import list_declared, register_files
from boosters_eval.programs.parity.rows import ParityRow, merge, read_rows
from boosters_eval.programs.parity.verdicts import BindingStatus, ParityVerdict, Word
from boosters_eval.reports import document as doc
from boosters_eval.reports.numbers import MISSING, number, percent

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from boosters_eval.programs.parity.request import ParityRenderRequest

_LEGEND = (
    "Each cell is one method on one backend: how its predictions compare with the reference, its time, and its speed-up"
    " over the reference at the same size and threads. "
    f"{BindingStatus.TIMEOUT.mark} timed out, {BindingStatus.FAILED.mark} failed, "
    f"{BindingStatus.NOT_RUN.mark} was not run; the reasons are under Findings."
)
_MAX_FINDINGS = 1000
_ISO = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\d\+00:00")


def render_results(request: ParityRenderRequest) -> RenderedParity:
    register_files(request.registry)
    with pause_collection():
        rows = merge(*map(read_rows, request.csv))
        report = findings.build_parity_report(rows, list_declared(rows))
        render = {".md": report.to_markdown, ".html": report.to_html, ".json": report.to_json}
        write_atomically(request.out, render[request.out.suffix.lower()]())
    return RenderedParity(report, request.out)


@dataclass(frozen=True)
class RenderedParity(Findings):
    """A report, and the file that it was written to."""

    report: findings.ParityReport
    out: Path

    def show(self, screen: Screen) -> None:
        """Nothing: the file is the result."""

    def conclude(self, screen: Screen) -> None:
        if not screen.quiet:
            screen.note(f"Written: {self.out}")


def lay_out_report(report: findings.ParityReport) -> doc.Document:
    """The matrices with everything about a cell, then the same cells by backend and by how much they matter."""
    measured = _say_dates(report)
    counts = (*report.totals.items(), ("all", len(report.cells)))
    totals = doc.PlainTable("Totals", ("Result", "Cells"), counts)
    cells = (doc.Paragraph(_LEGEND), _lay_out_matrix(report)) if report.cells else ()
    sections = (
        doc.Section("totals", "Totals", (totals,) if report.cells else (), only="text", preface=True),
        doc.Section("matrices", "Methods", cells, short="Matrices"),
        _lay_out_backends(report),
        _lay_out_findings(report),
        doc.Section("notes", "Notes", (doc.Notes(report.notes),) if report.notes else ()),
        doc.Section("environment", "Environment", (_list_facts(report, measured),)),
    )
    lead = (
        "Each method runs on the same data in every backend. Its predictions are compared with those of the method's"
        " reference implementation (its oracle), and its runs are timed. "
        f"Measured {measured}."
    )
    return doc.Document("Cross-binding parity", _answer(report), lead, _count_cells(report), sections=sections)


def _answer(report: findings.ParityReport) -> tuple[str, ...]:
    ran = [cell.row for cell in report.cells if not cell.mark]
    if not ran:
        return ("No cell has a result." if report.cells else "No results.",)
    said, of_all = [], f"of {count_of(len(ran), 'prediction')}"
    for word, against in (("verdict", "the reference"), ("binding_verdict", findings.MAIN)):
        apart = [clean_message(row.backend) for row in ran if getattr(row, word) is ParityVerdict.DIVERGENT]
        if apart:
            verb = "differs" if len(apart) == 1 else "differ"
            names = join_words(dict.fromkeys(apart), most=5)
            said.append(f"{group_digits(len(apart))} {of_all} {verb} from {against}: {names}.")
    if not said:
        said.append(f"None {of_all} differs from its reference.")
    if lost := sum(row.verdict is ParityVerdict.ORACLE_MISSING for row in ran):
        said.append(f"{group_digits(lost)} {of_all} could not be compared: the reference has no stored predictions.")
    if known := sum(row.verdict is ParityVerdict.KNOWN_DEFECT for row in ran):
        said.append(f"{group_digits(known)} {of_all} {'differs' if known == 1 else 'differ'} by a known defect.")
    if failed := sum(cell.failed for cell in report.cells):
        said.append(f"{count_of(failed, 'cell')} failed.")
    return tuple(said)


def _count_cells(report: findings.ParityReport) -> tuple[doc.Fact, ...]:
    divergent = report.totals.get(ParityVerdict.DIVERGENT.value, 0)
    failed = sum(cell.failed for cell in report.cells)
    ran = sum(not cell.mark for cell in report.cells)
    return (
        doc.Fact("Methods", group_digits(len(report.methods))),
        doc.Fact("Backends", group_digits(len(report.scores))),
        doc.Fact("Cells with a result", group_digits(ran)),
        doc.Fact("Divergent", group_digits(divergent), alarm=divergent > 0),
        doc.Fact("Failed", group_digits(failed), alarm=failed > 0),
        doc.Fact(f"Not run ({BindingStatus.NOT_RUN.mark})", group_digits(len(report.cells) - ran - failed)),
    )


def _explain(cell: findings.ParityCell) -> str:
    """Why a cell is not simply in agreement, in one line; '' if it is."""
    row, told = cell.row, []
    if cell.mark:
        return cell.reason or findings.WORDS[cell.word].meaning
    if row.verdict not in findings.QUIET and row.divergence is not None:
        off = percent(row.rows_off or 0.0, sign=False)
        far = f"{_format(row.divergence)} ({row.divergence_metric}), max abs {_format(row.max_abs)}, {off} of rows off"
        why = "; ".join(text.rstrip(".") for text in (row.diagnosis, cell.reason) if text)
        told.append(f"{far}: {why}" if why else far)
    elif row.verdict not in findings.QUIET:
        told.append(cell.reason or findings.WORDS[cell.word].meaning)
    if row.binding_verdict in findings.APART:
        told.append(f"{_format(row.binding_max_abs)} (max abs) from {findings.MAIN}")
    return "; ".join(told)


def _lay_out_backends(report: findings.ParityReport) -> doc.Section:
    rows = []
    for score in report.scores:
        words = ", ".join(f"{n} {word}" for word, n in score.words.items())
        own = f"; {score.binding_divergent} divergent from {findings.MAIN}" if score.binding_divergent else ""
        kind = f"{findings.name_kind(score.own)}{f', {score.language}' if score.language else ''}"
        speed = MISSING if score.median_speedup is None else _format_ratio(score.median_speedup)
        failed = doc.MarkedCell(str(score.n_failed), "worse", score.n_failed) if score.n_failed else 0
        median = doc.MarkedCell(speed, value=score.median_speedup)
        rows.append((clean_message(score.backend), clean_message(kind), score.n_cells, words + own, failed, median))
    headings = ("Backend", "Kind", "Cells", "Results", "Failed", "Median speed-up")
    blocks = (doc.PlainTable("Backends", headings, tuple(rows)),) if rows else ()
    return doc.Section("backends", "Backends", blocks, preface=True)


def _lay_out_findings(report: findings.ParityReport) -> doc.Section:
    """One row per backend and reason. What fails a gate comes first, then failures; what was not run comes last."""
    found: dict[tuple[str, str, str, str], list[findings.ParityCell]] = {}
    for cell in report.cells:
        if told := _explain(cell):
            found.setdefault((cell.word, cell.row.method, cell.row.backend, told), []).append(cell)
    rows = []
    ranked = sorted(found.items(), key=lambda item: _rank(item[1][0]))
    for (word, method, backend, told), cells in ranked[:_MAX_FINDINGS]:
        places = [f"{cell.row.n}x{cell.row.p} @{cell.row.threads}" for cell in cells]
        mark = doc.MarkedCell(word, f"word v-{_find_tone(findings.WORDS[word])}", title=findings.WORDS[word].meaning)
        rows.append(
            (mark, clean_message(method), clean_message(backend), join_words(places, most=4), clean_message(told))
        )
    headings = ("Result", "Method", "Backend", "Cells", "What was found")
    blocks: tuple[doc.Block, ...] = (doc.PlainTable("Findings", headings, tuple(rows), keys=4),) if rows else ()
    if (hidden := len(ranked) - len(rows)) > 0:
        blocks += (doc.Paragraph(f"{group_digits(hidden)} more are in the matrices and in the JSON file."),)
    return doc.Section("findings", "Findings", blocks, search="Filter findings", preface=True)


def _rank(cell: findings.ParityCell) -> int:
    if not cell.notable:
        return 3
    if any(word is not None and not word.agrees for word in (cell.row.verdict, cell.row.binding_verdict)):
        return 0
    return 1 if cell.failed else 2


def _list_facts(report: findings.ParityReport, measured: str) -> doc.PlainTable:
    hosts = [", ".join(f"{name} {value}" for name, value in host.items()) for host in report.hosts] or ["not recorded"]
    pairs = [*(("Host", host) for host in hosts), ("Measured", measured)]
    pairs += [(name, ", ".join(found)) for name, found in report.versions.items()]
    rows = tuple((doc.MarkedCell(clean_message(name), "name"), clean_message(value)) for name, value in pairs)
    return doc.PlainTable("Environment", ("Property", "Value"), rows)


def _say_dates(report: findings.ParityReport) -> str:
    first, last = (_ISO.sub(r"\1 \2 UTC", clean_message(at)) for at in (report.first_measured, report.last_measured))
    return (first if first == last else f"{first} to {last}") or "not recorded"


def _format_ratio(ratio: float) -> str:
    return f"{number(ratio, 2 if ratio < 100 else 3)}\u00d7"


def _format_speedup(cell: findings.ParityCell) -> str:
    """With its interval; one that covers 1 tells nothing apart."""
    if cell.speedup is None:
        return MISSING
    if cell.speedup_low is None or cell.speedup_high is None:
        return _format_ratio(cell.speedup)
    between = f"{_format_ratio(cell.speedup_low)} to {_format_ratio(cell.speedup_high)}"
    return f"{_format_ratio(cell.speedup)} ({between})" if cell.told_apart else f"not told apart ({between})"


def _format_ms(value: float | None) -> str:
    if value is None:
        return MISSING
    return f"{_format(value / 1000)} s" if value >= 10_000 else f"{_format(value)} ms"


def _format(value: float | None) -> str:
    if value is None:
        return MISSING
    return number(value, 3) if isfinite(value) else str(value)


_TONES: dict[Word, str] = {
    ParityVerdict.BIT_EXACT: "exact",
    ParityVerdict.ROUNDING: "near",
    ParityVerdict.KNOWN_DEFECT: "edge",
    ParityVerdict.CONVENTION: "habit",
    ParityVerdict.CROSS_CHECK: "chance",
    ParityVerdict.DIVERGENT: "apart",
    ParityVerdict.ORACLE_MISSING: "apart",
    ParityVerdict.NO_ORACLE: "none",
}


def _find_tone(word: Word) -> str:
    """The color of a verdict; a cell that was tried and has none is lost, one that was not tried is gray."""
    return _TONES.get(word) or ("lost" if getattr(word, "started", False) else "none")


def _lay_out_matrix(report: findings.ParityReport) -> doc.Matrix:
    places = {method.name: position for position, method in enumerate(report.methods)}
    return doc.Matrix(
        nouns=("method", "backend"),
        statuses=tuple(
            doc.MatrixStatus(
                name, word.meaning, _find_tone(word), getattr(word, "mark", ""), report.totals.get(name, 0)
            )
            for name, word in findings.WORDS.items()
        ),
        absent=BindingStatus.NOT_RUN.value,
        groups=partial(_group_cells, report),
        shared=tuple(tuple(places[name] for name in matrix) for matrix in report.matrices),
        samples="Time per run (ms)",
        search="Find a method or backend",
    )


def _group_cells(report: findings.ParityReport) -> Iterator[doc.MatrixGroup]:
    """The cells stand in the order of method, backend, size and threads."""
    by_name = groupby(report.cells, lambda cell: cell.row.method)
    for method, (_, cells) in zip(report.methods, by_name, strict=True):
        limit = "" if method.tolerance is None else f", within {method.tolerance:g} ({clean_message(method.metric)})"
        threads = tuple(count_of(threads, "thread") for threads in method.threads)
        yield doc.MatrixGroup(
            name=clean_message(method.name),
            items=tuple(map(clean_message, method.backends)),
            choices=(("Size", tuple(map(str, method.sizes))), ("Threads", threads)),
            cells=map(_describe_cell, cells),
            about=f"reference {clean_message(method.oracle)}{limit}" if method.oracle else "",
            reference=clean_message(findings.name_oracle(method.oracle)),
        )


def _describe_cell(cell: findings.ParityCell) -> doc.MatrixCell:
    """What is seen of a cell, and everything that is known of it."""
    row = cell.row
    aside = "" if cell.speedup is None else _format_speedup(cell)
    if row.verdict is ParityVerdict.CROSS_CHECK:
        aside = f"BD J {_format(row.divergence)}"
    apart = row.binding_verdict in findings.APART
    facts = {
        "Differences": _list_differences(row),
        "Time": _list_times(cell),
        "Versions": tuple(findings.read_facts(row.versions_json).items()),
        "Run": (
            *findings.read_facts(row.host_json).items(),
            *(("Measured", row.measured_at), ("Run", row.run_id)),
            *(("Parameters", row.parameters_digest), ("Data", row.data_digest)),
        ),
    }
    known = {heading: tuple((name, text) for name, text in pairs if text) for heading, pairs in facts.items()}
    return doc.MatrixCell(
        status=cell.word,
        shown=(row.signal or cell.word).replace("_", " ") if cell.mark else _format_ms(row.reported_ms),
        aside="" if cell.mark else "reference" if row.backend == findings.name_oracle(row.oracle) else aside,
        warning="\u2260 main binding" if apart and not cell.mark else "",
        sentence=row.convention,
        output=": ".join(part for part in (row.signal, row.message) if part),
        facts=tuple((heading, pairs) for heading, pairs in known.items() if pairs),
        command=findings.reproduce_parts(row),
        samples=tuple(sample / 1e6 for sample in row.samples_ns),
        level=row.reported_ms if isfinite(row.reported_ms or 0.0) else None,
    )


def _list_differences(row: ParityRow) -> Iterator[tuple[str, str]]:
    yield "Reference", row.oracle
    if row.divergence is not None:
        limit = "" if row.tolerance is None else f", tolerance {row.tolerance:g}"
        yield "Judged by", f"{row.divergence_metric} {_format(row.divergence)}{limit}"
    for name, value in (("Max abs", row.max_abs), ("Relative RMSE", row.relative_rmse)):
        yield name, "" if value is None else _format(value)
    yield "What it looks like", row.diagnosis
    yield "Data sets compared", "" if row.n_compared is None else str(row.n_compared)
    yield "Rows off", "" if row.rows_off is None else percent(row.rows_off, sign=False)
    if row.binding_verdict is not None:
        far = "" if row.binding_max_abs is None else f", max abs {_format(row.binding_max_abs)}"
        yield "Main binding", f"{row.binding_verdict.value}{far}"


def _list_times(cell: findings.ParityCell) -> Iterator[tuple[str, str]]:
    row = cell.row
    if row.reported_ms is not None:
        yield "Reported", _format_ms(row.reported_ms)
    if row.n_runs is not None:
        how = f"{row.timing_schema}, ended by: {row.stop_reason.replace('_', ' ')}"
        runs = f"{row.timing_statistic} of {count_of(row.n_runs, 'run')}, {row.total_runs} with the warm start ({how})"
        yield "Statistic", runs
    if cell.speedup is not None:
        yield "Speed-up over the reference", _format_speedup(cell)
    phases = {
        "Load (not counted)": row.load_ms,
        "Prepare": row.prepare_ms,
        "Fit": row.fit_ms,
        "Predict": row.predict_ms,
    }
    for name, value in phases.items():
        yield name, "" if value is None else _format_ms(value)
    if row.threads_observed is not None:
        yield "Threads", f"{row.threads} asked for, {row.threads_observed} observed"
    if row.repeatable is not None:
        yield (
            "Repeatable",
            f"{'yes: a second run gave the same' if row.repeatable else 'no: a second run gave other'} bits",
        )
