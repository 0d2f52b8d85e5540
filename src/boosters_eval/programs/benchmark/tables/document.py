"""The whole report on a benchmark: the generic document, with the benchmark's facts as data and as sections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from boosters_eval.core.text import group_digits
from boosters_eval.programs.benchmark.results import ResultsDocument  # noqa: TC001 (read when a report is validated)
from boosters_eval.programs.benchmark.tables import reproduce
from boosters_eval.programs.benchmark.tables.audit import data_section
from boosters_eval.programs.benchmark.tables.build import build_tables
from boosters_eval.programs.benchmark.tables.cells import cells
from boosters_eval.programs.benchmark.tables.data import BenchmarkData, ReportType, collect_data
from boosters_eval.programs.benchmark.tables.failures import errors_section
from boosters_eval.programs.benchmark.tables.headline import headline, leaderboard
from boosters_eval.programs.benchmark.tables.ranking import over_datasets
from boosters_eval.programs.benchmark.tables.splits import in_words
from boosters_eval.programs.benchmark.tables.verdicts import SECONDARY_SHARE
from boosters_eval.reports.document import (
    Block,
    Details,
    Fact,
    Listing,
    ListItem,
    Paragraph,
    PlainTable,
    ReportDocument,
    Section,
    shown_verdicts,
)
from boosters_eval.reports.full_markdown import plain_text
from boosters_eval.reports.numbers import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from boosters_eval.programs.benchmark.results import ResultCollection
    from boosters_eval.programs.benchmark.tables.data import EffectiveParameters
    from boosters_eval.reports.model import Report
    from boosters_eval.runners.parameters import Mark
    from boosters_eval.stats.significance import TestName

TESTS = {
    "corrected": "paired t-test with Nadeau and Bengio's correction for overlapping splits",
    "paired": "paired t-test",
    "welch": "Welch's t-test and non-overlapping intervals",
    "wilcoxon": "Wilcoxon's signed-rank test",
}
_REFERENCE = "boosters"  # the library that the others are compared with, if it takes part


class BenchmarkDocument(ReportDocument):
    """A report on benchmarks: the JSON file has the facts under `data`, typed."""

    kind: Literal["boosters-eval report"] = "boosters-eval report"
    data: BenchmarkData
    results: ResultsDocument  # whole, so that the file serves as --results, and as a baseline

    def drill_down(self) -> tuple[Section, ...]:
        """Every cell with its scores, times, split and warnings."""
        found = cells(self.results)
        return () if found is None else (found,)


def build_document(
    results: ResultCollection,
    report_type: ReportType = "quality",
    *,
    test: TestName = "corrected",
    alpha: float | None = None,
    now: datetime | None = None,
) -> BenchmarkDocument:
    """`quality` shows metrics, `performance` shows times and memory, `comparison` shows both."""
    report = build_tables(
        results,
        metrics=() if report_type == "performance" else None,
        times=report_type != "quality",
        test=test,
        alpha=alpha,
    )
    rankings = over_datasets(report.tables, alpha=report.alpha)
    data = collect_data(results, report_type, test=test, alpha=report.alpha, now=now)
    return BenchmarkDocument(
        title=_title(data),
        lead=_lead(data),
        headline=headline(report.tables, rankings, results, alpha=report.alpha),
        leaderboard=leaderboard(report.tables, rankings, alpha=report.alpha),
        facts=_facts(data, report),
        environment=data.environment.rows(data.libraries, data.builds),
        configuration=_configuration(data),
        tables=report.tables,
        group_by="task",
        table_noun="benchmark",
        empty="No cell finished.",
        reference=_REFERENCE,
        rankings=rankings,
        alpha=report.alpha,
        notes=report.notes,
        sections=tuple(_sections(results, data)),
        reproduce=reproduce.commands(results),
        data=data,
        results=results.document(),
    )


def _sections(results: ResultCollection, data: BenchmarkData) -> Iterator[Section]:
    failed = errors_section(data.errors, data.unsupported, data.unavailable)
    found = data_section(results), _benchmarks(data), _parameters(data), failed
    yield from (section for section in found if section is not None)


def _title(data: BenchmarkData) -> str:
    """The title, with the day of the run if it is known; the day of the report says nothing about the results."""
    measured = data.environment.measured_at
    day = f"{measured[:10]}: " if measured else ""
    suite = f", {data.suite} suite" if data.suite not in (None, "compare") else ""
    return f"{day}{data.report_type.capitalize()} report{suite}"


def _lead(data: BenchmarkData) -> str:
    test = TESTS.get(data.test, data.test)
    failed = f"{', '.join(dict.fromkeys(error.library for error in data.errors))} (no results)"
    return f"{_libraries(data) or failed}. Highlighted where the {test} says so ({_level(data)})."


def _level(data: BenchmarkData) -> str:
    """The level of the columns that decide, and of the others, as the notes have it."""
    others = "" if data.test == "welch" else f"; {SECONDARY_SHARE * data.alpha:g} for all other columns together"
    return f"alpha = {data.alpha:g}{others}"


def _libraries(data: BenchmarkData) -> str:
    return ", ".join(_with_version(data, name, version) for name, version in data.libraries.items())


def _with_version(data: BenchmarkData, name: str, version: str) -> str:
    """A library with its version; of a build also what it is a build of, unless its label says it all."""
    library = data.builds[name].library if name in data.builds else name
    if name in (library, f"{library}=={version}", f"{library}@{version}"):
        return f"{name} {version}" if name == library else name
    return f"{name} ({library} {version})"


def _facts(data: BenchmarkData, report: Report) -> tuple[Fact, ...]:
    verdicts = shown_verdicts(report.tables)
    decided = sum(item.verdict != "inconclusive" for item in verdicts)
    seeds = len(data.seeds or {error.seed for error in data.errors})
    parts = "windows" if data.splits and all(split.startswith("time:") for split in data.splits) else "folds"
    return (
        Fact(label="Benchmarks", value=group_digits(len(report.tables))),
        Fact(label="Libraries", value=group_digits(len({*data.libraries, *(error.library for error in data.errors)}))),
        Fact(
            label=f"Seeds x {parts}" if data.folds else "Seeds",
            value=f"{seeds} x {data.folds}" if data.folds else str(seeds),
        ),
        Fact(label="Cells finished", value=group_digits(data.n_results)),
        Fact(label="Cells failed", value=group_digits(data.n_failed), alarm=data.n_failed > 0),
        *((Fact(label="Cells flaky", value=group_digits(data.n_flaky), alarm=True),) if data.n_flaky else ()),
        Fact(label="Pairs decided", value=f"{decided} of {len(verdicts)}"),
    )


def _configuration(data: BenchmarkData) -> tuple[tuple[str, str], ...]:
    found = [
        ("Seeds", f"{len(data.seeds)} ({', '.join(map(str, data.seeds))})"),
        ("Folds", str(data.folds) if data.folds else None),
        ("Split", "; ".join(map(in_words, data.splits)) or None),
        ("Growth strategy", data.growth_strategy),
        ("Suite", data.suite),
        ("Libraries", _libraries(data) or MISSING),
        ("Cells", _cells(data)),
        ("Test", f"{TESTS.get(data.test, data.test)}, {_level(data)}"),
        ("Run", data.run_id),
    ]
    return tuple((name, value) for name, value in found if value)


def _cells(data: BenchmarkData) -> str:
    flaky = f", {data.n_flaky} flaky (finished only after failing)" if data.n_flaky else ""
    return f"{data.n_results} finished, {data.n_failed} failed{flaky}"


def _benchmarks(data: BenchmarkData) -> Section | None:
    """The configs; what is the same in all of them is said once, so that the table stays narrow."""
    if not data.configs:
        return None
    expanding = any(split.startswith("time:") for split in data.splits)
    columns: dict[str, list[str | int | None]] = {
        "Config": [facts.config for facts in data.configs],
        "Data set": [facts.dataset for facts in data.configs],
        "Task": [facts.task for facts in data.configs],
        "Booster": [facts.booster for facts in data.configs],
        "Variant": [facts.variant for facts in data.configs],
        "Profile": [facts.profile for facts in data.configs],
        "Train rows (first window)" if expanding else "Train rows": [facts.n_train for facts in data.configs],
        "Test rows": [facts.n_valid for facts in data.configs],
        "Threads": [facts.threads for facts in data.configs],
        "Canonical parameters": [facts.canonical or None for facts in data.configs],
    }
    if all(facts.config == f"{facts.dataset}/{facts.booster}" for facts in data.configs):
        del columns["Data set"], columns["Booster"]
    if len(data.configs) == 1:
        common = {name: columns.pop(name)[0] for name in ("Profile", "Threads")}
    else:
        same = [name for name, values in columns.items() if name != "Config" and len(set(values)) == 1]
        common = {name: columns.pop(name)[0] for name in same}
    columns = {name: values for name, values in columns.items() if any(value is not None for value in values)}
    said = ", ".join(f"{name.lower()} {plain_text(value)}" for name, value in common.items() if value is not None)
    table = PlainTable(name="Benchmarks", headings=tuple(columns), rows=tuple(zip(*columns.values(), strict=True)))
    everywhere = "" if len(data.configs) == 1 else "In all configs: "
    intro = Paragraph(text=f"{everywhere or said[:1].upper()}{said if everywhere else said[1:]}.")
    return Section(
        anchor="benchmarks",
        title="Benchmark Configuration",
        short="Benchmarks",
        search="Filter configs" if len(data.configs) > 1 else "",
        blocks=(intro, table) if said else (table,),
    )


def _parameters(data: BenchmarkData) -> Section | None:
    if not data.parameters:
        return None
    blocks = tuple(map(_library_parameters, data.parameters))
    return Section(anchor="parameters", title="Effective Parameters", short="Parameters", blocks=blocks)


def _library_parameters(item: EffectiveParameters) -> Details:
    title = f"{item.library} {item.version or ''}".strip()
    where = item.configs[0] if len(item.configs) == 1 else f"{len(item.configs)} configs"
    native = PlainTable(
        name=f"Parameters of {title}", headings=("Native parameter", "Value"), rows=tuple(item.native.items())
    )
    blocks: list[Block] = [Paragraph(text=f"Used in {', '.join(item.configs)}."), native]
    if item.marks:
        blocks.append(Listing(items=tuple(map(_mark, item.marks))))
    inexact = f", {len(item.marks)} not exact" if item.marks else ""
    return Details(title=title, aside=where + inexact, blocks=tuple(blocks))


def _mark(mark: Mark) -> ListItem:
    return ListItem(text=f"{mark.parameter} is ", mark=mark.kind, rest=f": {mark.reason}" if mark.reason else "")
