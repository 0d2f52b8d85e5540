"""The whole report on a benchmark: typed data for programs, and its layout as a document."""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import partial
from importlib import resources
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from pydantic import ConfigDict

from boosters_eval.core.errors import ConfigError, pick, require
from boosters_eval.core.files import FORMAT, Format, write_atomically
from boosters_eval.core.model import Model
from boosters_eval.core.text import format_share, group_digits, join_words
from boosters_eval.programs.benchmark.margins import Margins
from boosters_eval.programs.benchmark.results import ResultCollection, ResultsDocument
from boosters_eval.programs.benchmark.tables.build import build_tables
from boosters_eval.programs.benchmark.tables.data import BenchmarkData, ReportType, collect_data, spell_split
from boosters_eval.programs.benchmark.tables.diagrams import Diagrams, collect_diagrams
from boosters_eval.programs.benchmark.tables.environment import list_commands
from boosters_eval.programs.benchmark.tables.sections import show_cells, show_data, show_errors
from boosters_eval.programs.benchmark.tables.verdicts import SECONDARY_SHARE
from boosters_eval.reports.document import (
    Block,
    Card,
    Charts,
    Code,
    Details,
    Document,
    Fact,
    Group,
    Listing,
    ListItem,
    MarkedCell,
    Notes,
    Pairs,
    Paragraph,
    PlainTable,
    Results,
    Section,
    show_cell,
)
from boosters_eval.reports.findings import Reported
from boosters_eval.reports.html.charts import draw_others, draw_table, rank_chart, ratio_chart
from boosters_eval.reports.html.diagrams import Diagram, draw_diagrams
from boosters_eval.reports.html.svg import Figure, series_of
from boosters_eval.reports.numbers import MISSING, number, p_value, percent
from boosters_eval.reports.tables import (
    PairVerdict,
    RankingPair,
    RankingTable,
    ReportTable,
    gather_notes,
    list_verdicts,
    strip_tables,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from boosters_eval.programs.benchmark.tables.data import EffectiveParameters
    from boosters_eval.reports.tables import Report
    from boosters_eval.stats.significance import TestName


TESTS = {
    "rows": "paired test by rows, with the luck of the training",
    "corrected": "paired t-test, corrected for the rows that splits share",
    "paired": "paired t-test",
    "welch": "Welch's t-test and non-overlapping intervals",
    "wilcoxon": "Wilcoxon's signed-rank test",
}
_DISJOINT = "paired t-test by splits, with the luck of the training"  # the corrected one, where test sets share no row
_REFERENCE = "boosters"  # the library that the others are compared with, if it takes part


class ReportDocument(Reported, Model):
    """What a report says, as its JSON file holds it; the renderings are made from its layout."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)

    schema_version: Format = FORMAT
    kind: str = "boosters-eval report"
    title: str
    lead: str = ""
    answer: tuple[str, ...] = ()  # in a few lines, the most important first
    leaderboard: PlainTable | None = None  # how the competitors stand over all tables
    facts: tuple[Fact, ...] = ()
    environment: Pairs = ()
    configuration: Pairs = ()
    tables: tuple[ReportTable, ...]
    reference: str | None = None  # the competitor that costs are compared with; None: the first one
    rankings: tuple[RankingTable, ...] = ()
    kinds: PlainTable | None = None  # how the competitors rank on which kind of data
    alpha: float = 0.05  # of intervals and verdicts
    notes: tuple[str, ...] = ()
    reproduce: tuple[str, ...] = ()
    file_name: str = ""  # of the report, without its ending

    @property
    def run(self) -> str | None:
        """The run that it is on, if it is on one."""
        return None

    def to_model(self) -> Model:
        return self

    def ending(self) -> Iterator[Section]:
        table = PlainTable("Environment", ("Property", "Value"), self.environment)
        yield Section("environment", "Environment", (table,) if table.rows else (), detail=True, preface=True)
        lines = Listing(tuple(ListItem("", name, f": {value}") for name, value in self.configuration))
        blocks = (lines,) if self.configuration else ()
        yield Section("configuration", "Configuration", blocks, only="text", detail=True, preface=True)
        code = (Code("\n".join(self.reproduce), "bash"),) if self.reproduce else ()
        yield Section("reproduce", "Reproducing", code, short="Reproduce", detail=True)


class BenchmarkDocument(ReportDocument):
    """A report on benchmarks: the JSON file has the facts under `data`, typed."""

    kind: Literal["boosters-eval report"] = "boosters-eval report"
    data: BenchmarkData
    diagrams: tuple[Diagram, ...] = ()  # what was predicted against what was found
    undrawn: tuple[str, ...] = ()  # why there are no further ones
    results: ResultsDocument  # whole, so that the file serves as --results, and as a baseline

    @property
    def run(self) -> str | None:
        return self.data.run_id

    def document(self) -> Document:
        """The answer, a card per table, the verdicts, then all that the numbers rest on."""
        series = series_of(self.tables, self.rankings)
        given: tuple[Block, ...] = tuple(map(_library_parameters, self.data.parameters))
        if any(item.marks for item in self.data.parameters):
            given = (Paragraph("What is not mapped exactly, and why, is among the notes."), *given)
        found = (
            show_data(self.results),
            _benchmarks(self.data),
            Section("parameters", "Effective Parameters", given, short="Parameters", detail=True) if given else None,
            show_errors(self.data.errors, self.data.unsupported, self.data.unavailable),
            show_cells(self.results),
        )
        return Document(
            self.title,
            self.answer,
            self.lead,
            self.facts,
            self.leaderboard,
            sections=(
                self._results(series),
                self._calibration(series),
                self._across(series),
                _tests(self),
                gather_notes(self.notes, self.tables),
                *(section for section in found if section is not None),
                *self.ending(),
            ),
        )

    def _results(self, series: Mapping[str, int]) -> Section:
        groups: dict[str, list[Block]] = {}
        for table in strip_tables(self.tables):
            groups.setdefault(table.keys.get("task", ""), []).append(lay_out_table(table, series, self.alpha))
        blocks = tuple(Group(name.upper(), tuple(found)) for name, found in groups.items())
        search = "Filter benchmarks" if len(self.tables) > 1 else ""
        return Section("results", "Results", blocks or (Paragraph("No cell finished."),), search=search)

    def _calibration(self, series: Mapping[str, int]) -> Section:
        """The diagrams of all tables; they are on the page, and among the files of `figures`."""
        blocks: list[Block] = list(map(Paragraph, self.undrawn))
        blocks += [Charts(partial(draw_diagrams, self.diagrams, series, named=True))] if self.diagrams else []
        title = "Calibration and Residuals"
        return Section("calibration", title, tuple(blocks), short="Calibration", only="page")

    def _across(self, series: Mapping[str, int]) -> Section:
        drawn = Charts(partial(_across_figures, self, series))
        cards = tuple(_ranking(ranking, ranked=self.leaderboard is not None) for ranking in self.rankings)
        over = self.rankings[0].over if self.rankings else "data sets"
        return Section(
            "across",
            f"Across {over.title()}",
            (drawn, *cards, *((self.kinds,) if self.kinds is not None else ())),
            short=f"Across {over}",
            only="" if cards else "page",
            detail=True,
        )


def lay_out_table(table: ReportTable, series: Mapping[str, int], alpha: float = 0.05) -> Results:
    return Results(
        table,
        Charts(partial(draw_table, table, series, alpha)),
        Charts(partial(draw_others, table)),
        "Differences in other columns",
    )


def _across_figures(report: ReportDocument, series: Mapping[str, int]) -> list[Figure]:
    ranks = (rank_chart(ranking, series) for ranking in report.rankings)
    found = [*ranks, ratio_chart(report.tables, series, report.reference)]
    return [figure for figure in found if figure is not None]


def _ranking(ranking: RankingTable, *, ranked: bool) -> Card:
    """The ranks, unless the leaderboard has them, and how often one is ahead of another."""
    ranks = tuple((name, MarkedCell(f"{rank:.2f}", value=rank)) for name, rank in ranking.ranks)
    pairs = tuple(
        (*(one.a, one.b, one.wins, one.ties, one.losses, _p(one.p)), *_mean_difference(one)) for one in ranking.pairs
    )
    headings = ("A", "B", "A wins", "Ties", "A loses", "p (Wilcoxon, Holm)", "A's error", "Interval", "A is")
    blocks: list[Block] = [] if ranked else [PlainTable("Average ranks", (ranking.heading, "Rank"), ranks)]
    blocks += [PlainTable(ranking.title, headings, pairs, keys=2)] if pairs else []
    blocks += [Notes(ranking.notes)] if ranking.notes else []
    return Card(ranking.title, tuple(blocks))


def _mean_difference(pair: RankingPair) -> tuple[MarkedCell, str, str]:
    """How much larger or smaller the error of the first is, in the mean over the data sets."""
    if pair.share is None or pair.low is None or pair.high is None:
        return MarkedCell(MISSING), MISSING, "too few to say"
    hinges = f" (hangs on {join_words(pair.hinges)})" if pair.hinges else ""
    interval = f"{percent(pair.low)} to {percent(pair.high)}"
    return MarkedCell(percent(pair.share), value=pair.share), interval, f"{pair.verdict}{hinges}"


def _p(value: float | None) -> MarkedCell:
    return MarkedCell(MISSING if value is None else p_value(value), value=value)


def _tests(report: ReportDocument) -> Section:
    """The verdict on every pair, on the primary metric."""
    level = f"{format_share(1 - report.alpha)} interval (all pairs)"
    headings = ("Benchmark", "Metric", "A", "B", "A - B", level, "p (all pairs)", "n", "A is")
    errors = {(table.name, column.name): column.of_error for table in report.tables for column in table.columns}
    rows = tuple(_verdict_row(item, errors[item.table, item.metric]) for item in list_verdicts(report.tables))
    blocks = (PlainTable("Statistical tests", headings, rows, keys=4),) if rows else ()
    search = "Filter pairs" if len(rows) > 1 else ""
    return Section("tests", "Statistical Tests", blocks, short="Statistical tests", search=search, detail=True)


def _verdict_row(item: PairVerdict, of_error: str) -> tuple[str | int | MarkedCell, ...]:
    if item.ratio is not None:
        size = f"x {number(item.ratio, 3)}"
    elif item.difference is None:
        size = MISSING
    else:
        share = "" if item.percent is None else f" ({percent(item.percent / 100)}{of_error})"
        size = f"{number(item.difference, 3)}{share}"
    bounds = MISSING if item.low is None or item.high is None else f"{number(item.low, 3)} to {number(item.high, 3)}"
    value = item.percent if item.percent is not None else item.difference
    verdict = MarkedCell(item.verdict, item.verdict, title=item.text)
    named = (item.table, item.label, item.a, item.b)
    return (*named, MarkedCell(size, value=value), MarkedCell(bounds, value=item.low), _p(item.p), item.n, verdict)


def build_document(
    results: ResultCollection,
    report_type: ReportType = "quality",
    *,
    test: TestName = "rows",
    alpha: float | None = None,
    margin: Any = None,
    now: datetime | None = None,
) -> BenchmarkDocument:
    """`quality` shows metrics, `performance` shows times and memory, `comparison` shows both."""
    report = build_tables(
        results,
        metrics=() if report_type == "performance" else None,
        times=report_type != "quality",
        test=test,
        alpha=alpha,
        margin=margin,
    )
    data = collect_data(results, report_type, test=report.test, alpha=report.alpha, margin=report.margin, now=now)
    diagrams = Diagrams() if report_type == "performance" else collect_diagrams(results)
    return BenchmarkDocument(
        title=_title(data, report.title),
        lead=_lead(data),
        answer=report.answer,
        leaderboard=report.leaderboard,
        facts=_facts(data, report),
        environment=data.environment.rows(data.libraries, data.builds),
        configuration=_configuration(data),
        tables=report.tables,
        reference=_REFERENCE,
        rankings=report.rankings,
        kinds=report.kinds,
        alpha=report.alpha,
        notes=(*report.notes, _judging(data)),
        reproduce=list_commands(results, results.metadata.margins(margin).words),
        file_name=data.environment.name_report(_subject(data)),
        data=data,
        diagrams=diagrams.drawn,
        undrawn=diagrams.missing,
        results=results.document(),
    )


def _subject(data: BenchmarkData) -> str:
    """What the name of a report tells it by: its suite, if it is on one, and its type."""
    suite = "" if data.suite in (None, "compare") else re.sub(r"[^A-Za-z0-9.]+", "-", str(data.suite)).strip("-.")
    return f"{suite}-{data.report_type}" if suite else data.report_type


def _title(data: BenchmarkData, compared: str) -> str:
    """The title, with the day of the run if it is known; the day of the report says nothing about the results."""
    measured = data.environment.measured_at
    day = f", {measured[:10]}" if measured else ""
    return f"{data.report_type.capitalize()} report{f': {compared}' if compared else ''}{day}"


def _lead(data: BenchmarkData) -> str:
    failed = f"{', '.join(dict.fromkeys(error.library for error in data.errors))} (no results)"
    return f"{_libraries(data) or failed}."


def _judging(data: BenchmarkData) -> str:
    return f"Highlighted where the {_name_test(data)} says so ({_level(data)})."


def _name_test(data: BenchmarkData) -> str:
    return _DISJOINT if data.test == "corrected" and data.disjoint else TESTS.get(data.test, data.test)


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
    verdicts = list_verdicts(report.tables)
    counted = Counter("better" if item.verdict == "worse" else item.verdict for item in verdicts)
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
        Fact(label="Pairs: one is better", value=group_digits(counted["better"])),
        Fact(label="Pairs: as good", value=group_digits(counted["equivalent"])),
        Fact(label="Pairs: cannot say", value=group_digits(counted["inconclusive"])),
    )


def _configuration(data: BenchmarkData) -> tuple[tuple[str, str], ...]:
    flaky = f", {data.n_flaky} flaky (finished only after failing)" if data.n_flaky else ""
    found = [
        ("Seeds", f"{len(data.seeds)} ({', '.join(map(str, data.seeds))})"),
        ("Folds", str(data.folds) if data.folds else None),
        ("Split", "; ".join(map(spell_split, data.splits)) or None),
        ("Growth strategy", data.growth_strategy),
        ("Suite", data.suite),
        ("Libraries", _libraries(data) or MISSING),
        ("Cells", f"{data.n_results} finished, {data.n_failed} failed{flaky}"),
        ("Test", _name_test(data)),
        ("Equivalent", Margins.of(data.margin).tell()),
        ("Run", data.run_id),
    ]
    return tuple((name, value) for name, value in found if value)


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
    said = ", ".join(f"{name.lower()} {show_cell(value)}" for name, value in common.items() if value is not None)
    table = PlainTable(name="Benchmarks", headings=tuple(columns), rows=tuple(zip(*columns.values(), strict=True)))
    everywhere = "" if len(data.configs) == 1 else "In all configs: "
    intro = Paragraph(text=f"{everywhere or said[:1].upper()}{said if everywhere else said[1:]}.")
    return Section(
        anchor="benchmarks",
        title="Benchmark Configuration",
        short="Benchmarks",
        detail=True,
        search="Filter configs" if len(data.configs) > 1 else "",
        blocks=(intro, table) if said else (table,),
    )


def _library_parameters(item: EffectiveParameters) -> Details:
    title = f"{item.library} {item.version or ''}".strip()
    where = item.configs[0] if len(item.configs) == 1 else f"{len(item.configs)} configs"
    native = PlainTable(
        name=f"Parameters of {title}", headings=("Native parameter", "Value"), rows=tuple(item.native.items())
    )
    inexact = f", {len(item.marks)} not exact" if item.marks else ""
    blocks = (Paragraph(text=f"Used in {', '.join(item.configs)}."), native)
    return Details(title=title, aside=where + inexact, blocks=blocks)


OUTPUT_DIR = Path("docs/benchmarks")
ReportFormat = Literal["md", "json", "html", "tex"]
_RENDERINGS = {"md": "markdown", "tex": "latex"}  # by the ending of a file
FORMATS = get_args(ReportFormat)


def generate_report(
    results: ResultCollection,
    report_type: ReportType = "quality",
    output_dir: str | Path = OUTPUT_DIR,
    formats: Sequence[ReportFormat] = ("md", "json"),
    *,
    test: TestName = "rows",
    alpha: float | None = None,
    margin: Any = None,
    now: datetime | None = None,
) -> tuple[Path, ...]:
    """Write the report and return its paths, one per format, in the requested order."""
    require("results", results, ResultCollection, "a ResultCollection")
    require("output_dir", output_dir, (str, Path), "a folder")
    report_type, formats, test = check_request(report_type, formats, test)
    report = build_document(results, report_type, test=test, alpha=alpha, margin=margin, now=now)
    files = render_files(report, Path(output_dir), formats)
    for path, text in files.items():
        write_atomically(path, text)
    return tuple(files)


def render_files(report: ReportDocument, folder: Path, formats: Sequence[str]) -> dict[Path, str]:
    """The report's files by path; the report of another run that has its name already is kept."""
    texts = {name: report.render(_RENDERINGS.get(name, name)) for name in formats}
    for nth in count(1):
        stem = report.file_name if nth == 1 else f"{report.file_name}-{nth}"
        files = {folder / f"{stem}.{name}": text for name, text in texts.items()}
        if all(_is_free(path, text, report.run) for path, text in files.items()):
            break
    return files


def _is_free(path: Path, text: str, run_id: str | None) -> bool:
    """Whether a file may be written: there is none, or it is of the same run."""
    if not path.exists():
        return True
    found = path.read_text(encoding="utf-8", errors="replace")
    return found == text or (run_id is not None and run_id in found)


def check_request(
    report_type: str, formats: Sequence[str], test: str
) -> tuple[ReportType, list[ReportFormat], TestName]:
    """What is meant; what cannot be rendered is refused before any work is done."""
    if not formats:
        raise ConfigError(
            f"The 'formats' parameter must name at least one of {', '.join(FORMATS)}. Got nothing instead."
        )
    return (
        cast("ReportType", pick("report type", report_type, get_args(ReportType))),
        [cast("ReportFormat", pick("report format", name, FORMATS)) for name in formats],
        cast("TestName", pick("test", test, TESTS)),
    )


def report_schema() -> dict[str, Any]:
    """The JSON schema of a report's JSON file, as this package carries it."""
    text = resources.files(__package__).joinpath("report.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
