"""The RFC's report template in Markdown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from boosters_eval.reports.numbers import MISSING, count, number, p_value, percent
from boosters_eval.reports.text import escape, markdown_section, markdown_table

if TYPE_CHECKING:
    from boosters_eval.benchmark.tables.document import Failure, Parameters, ReportDocument
    from boosters_eval.reports.model import Comparison, Ranking

TESTS = {
    "corrected": "paired t-test with Nadeau and Bengio's correction for overlapping splits",
    "paired": "paired t-test",
    "welch": "Welch's t-test and non-overlapping intervals",
    "wilcoxon": "Wilcoxon's signed-rank test",
}
BENCHMARK_HEADINGS = (
    "Config",
    "Data set",
    "Task",
    "Booster",
    "Variant",
    "Profile",
    "Train rows",
    "Test rows",
    "Threads",
    "Canonical parameters",
)


def render_report(document: ReportDocument) -> str:
    """All sections, in the RFC's order."""
    sections = [
        f"# {escape(document.title)}\n",
        "## Environment\n\n" + _pairs("Property", document.environment.rows()),
        "## Configuration\n\n" + _configuration(document),
        "## Results\n",
        *_results(document),
        *_rankings(document),
        _tests(document),
        _notes(document),
        _benchmarks(document),
        _parameters(document.parameters),
        _errors(document),
        _reproducing(document),
    ]
    return "\n".join(section for section in sections if section)


def _pairs(heading: str, rows: list[tuple[str, str]]) -> str:
    return markdown_table([heading, "Value"], [[escape(name), escape(value)] for name, value in rows])


def _configuration(document: ReportDocument) -> str:
    seeds = ", ".join(map(str, document.seeds))
    lines = [f"**Seeds**: {len(document.seeds)} ({seeds})"]
    if document.folds:
        lines.append(f"**Folds**: {document.folds}")
    if document.suite:
        lines.append(f"**Suite**: {escape(document.suite)}")
    versions = ", ".join(f"{escape(name)} {escape(version)}" for name, version in document.libraries.items())
    lines.append(f"**Libraries**: {versions or MISSING}")
    lines.append(f"**Cells**: {document.n_results} finished, {document.n_failed} failed")
    lines.append(f"**Test**: {TESTS.get(document.test, document.test)}, alpha = {document.alpha:g}")
    if document.run_id:
        lines.append(f"**Run**: {escape(document.run_id)}")
    return "  \n".join(lines) + "\n"


def _results(document: ReportDocument) -> list[str]:
    out = []
    for task in dict.fromkeys(table.task for table in document.tables):
        out.append(f"### {task.upper()}\n")
        out += [markdown_section(table, level=4) for table in document.tables if table.task == task]
    return out or ["No cell finished.\n"]


def shown_comparisons(document: ReportDocument) -> list[Comparison]:
    """The pairs that a reader is shown: on the primary metric, or on training time where there is none."""
    out = []
    for table in document.tables:
        names = {column.name for column in table.columns if column.primary} or {"train_time_s"}
        out += [comparison for comparison in table.comparisons if comparison.metric in names]
    return out


def comparison_cells(item: Comparison) -> tuple[str, str, str]:
    """Difference (or ratio), interval and p-value as text."""
    if item.ratio is not None:
        size = f"x {number(item.ratio, 3)}"
    elif item.difference is None:
        size = MISSING
    else:
        share = "" if item.percent is None else f" ({percent(item.percent / 100)})"
        size = f"{number(item.difference, 3)}{share}"
    bounds = MISSING if item.low is None or item.high is None else f"{number(item.low, 3)} to {number(item.high, 3)}"
    return size, bounds, MISSING if item.p is None else p_value(item.p)


def _tests(document: ReportDocument) -> str:
    rows = []
    for item in shown_comparisons(document):
        size, bounds, p = comparison_cells(item)
        names = [escape(text) for text in (item.table, item.label, item.a, item.b)]
        rows.append([*names, size, bounds, p, str(item.n), item.verdict])
    return "## Statistical Tests\n\n" + markdown_table(verdict_headings(document), rows) if rows else ""


def verdict_headings(document: ReportDocument) -> list[str]:
    """The columns of the verdicts."""
    level = f"{100 * (1 - document.alpha):g} % interval"
    return ["Config", "Metric", "A", "B", "A - B", level, "p (Holm)", "n", "A is"]


def ranking_title(ranking: Ranking) -> str:
    """What is ranked, and on how many data sets."""
    return f"{ranking.booster}: average rank by {ranking.measure} over {ranking.n} data sets"


def ranking_notes(ranking: Ranking) -> list[str]:
    """What limits a ranking."""
    out = [ranking.note] if ranking.note else []
    if ranking.left_out:
        out.append(f"Left out, because no split there has a result of every library: {', '.join(ranking.left_out)}.")
    if ranking.partial:
        shown = ", ".join(f"{dataset} ({splits})" for dataset, splits in ranking.partial)
        out.append(f"Ranked only by the splits that every library has: {shown}.")
    return out


def _rankings(document: ReportDocument) -> list[str]:
    out = []
    for ranking in document.rankings:
        rows = [[escape(name), f"{rank:.2f}"] for name, rank in ranking.ranks]
        pairs = [
            [escape(p.a), escape(p.b), f"{p.wins} / {p.ties} / {p.losses}", MISSING if p.p is None else p_value(p.p)]
            for p in ranking.pairs
        ]
        out.append(f"### {escape(ranking_title(ranking))}\n\n" + markdown_table(["Library", "Rank"], rows))
        out.append(markdown_table(["A", "B", "A wins / ties / loses", "p (Wilcoxon, Holm)"], pairs))
        out += [f"{escape(note)}\n" for note in ranking_notes(ranking)]
    return ["## Across Data Sets\n", *out] if out else []


def _notes(document: ReportDocument) -> str:
    if not document.notes:
        return ""
    return "## Notes\n\n" + "".join(f"- {escape(note)}\n" for note in document.notes)


def _benchmarks(document: ReportDocument) -> str:
    rows = [
        [
            escape(facts.config),
            escape(facts.dataset),
            facts.task,
            escape(facts.booster),
            escape(facts.variant or MISSING),
            facts.profile,
            MISSING if facts.n_train is None else count(facts.n_train),
            MISSING if facts.n_valid is None else count(facts.n_valid),
            str(facts.threads),
            escape(facts.canonical or MISSING),
        ]
        for facts in document.configs
    ]
    return "## Benchmark Configuration\n\n" + markdown_table(BENCHMARK_HEADINGS, rows) if rows else ""


def _parameters(found: tuple[Parameters, ...]) -> str:
    parts = ["## Effective Parameters\n"] if found else []
    for item in found:
        version = f" {escape(item.version)}" if item.version else ""
        parts.append(f"### {escape(item.library)}{version}\n\nUsed in {escape(', '.join(item.configs))}.\n")
        parts.append(_pairs("Native parameter", list(item.native.items())))
        for mark in item.marks:
            reason = f": {escape(mark.reason)}" if mark.reason else ""
            parts.append(f"- {escape(mark.parameter)} is **{mark.kind}**{reason}\n")
    return "\n".join(parts)


def _errors(document: ReportDocument) -> str:
    if not document.errors and not document.unsupported:
        return ""
    parts = ["## Errors\n"]
    if document.errors:
        rows = [
            [escape(e.config), escape(_who(e)), str(e.seed), e.phase, escape(e.error_type), escape(e.message)]
            for e in document.errors
        ]
        parts.append(markdown_table(["Config", "Library", "Seed", "Phase", "Type", "Message"], rows))
        for error in document.errors:
            if detail := details_of(error):
                title = f"{escape(error.config)}, {escape(_who(error))}, seed {error.seed}"
                parts.append(f"<details><summary>{title}</summary>\n\n{_fenced(detail)}\n</details>\n")
    if document.unsupported:
        rows = [[escape(u.config), escape(u.library), escape(u.reason)] for u in document.unsupported]
        parts.append(markdown_table(["Not supported", "Library", "Reason"], rows))
    return "\n".join(parts)


def _who(error: Failure) -> str:
    return error.library if error.variant is None else f"{error.library} {error.variant}"


def details_of(error: Failure) -> str:
    """Traceback, signal and the end of stderr in one text."""
    parts = [error.traceback or ""]
    parts += [f"Signal: {error.signal}"] if error.signal else []
    parts += [f"stderr:\n{error.stderr_tail}"] if error.stderr_tail else []
    return "\n".join(part for part in parts if part)


def _fenced(text: str, kind: str = "text") -> str:
    """A code block that no content can close."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{kind}\n{text}\n{fence}\n"


def _reproducing(document: ReportDocument) -> str:
    if not document.reproduce:
        return ""
    return "## Reproducing\n\n" + _fenced("\n".join(document.reproduce), "bash")
