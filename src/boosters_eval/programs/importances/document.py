"""The report on explanations: typed data for programs, and its layout as a document.

The answer comes first, then the checks, what is important, who agrees, and the rows on which libraries differ most.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from boosters_eval.core.text import clean, count_of, group_digits, lower_initial
from boosters_eval.metrics import label as metric_label
from boosters_eval.programs.benchmark.tables import notes as benchmark_notes
from boosters_eval.programs.benchmark.tables.data import AbsentPair, FailedCell, list_absent, list_failed
from boosters_eval.programs.benchmark.tables.document import ReportDocument
from boosters_eval.programs.benchmark.tables.environment import Environment, list_builds, list_commands, list_versions
from boosters_eval.programs.benchmark.tables.sections import show_errors
from boosters_eval.programs.importances.checks import LABELS, TOLERANCE, TOLERANCE_DOUBLE
from boosters_eval.programs.importances.judge import read_findings
from boosters_eval.programs.importances.records import KINDS, BenchmarkFindings, DisputedRow, Kind, SwarmFeature
from boosters_eval.programs.importances.tables import (
    QUESTION,
    build_tables,
    explain_absences,
    explain_marks,
    order_shown,
    write_answer,
)
from boosters_eval.reports import document as doc
from boosters_eval.reports.html.features import Bees, Dot, bee_charts, dot_charts, heat_chart
from boosters_eval.reports.numbers import MISSING, as_given, number
from boosters_eval.stats.inference import doubled_ranks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from boosters_eval.programs.importances.results import Explanations
    from boosters_eval.reports.html.svg import Figure
    from boosters_eval.reports.tables import ReportTable

DEFAULT_TOP = 10
_MOST_PAIRS = 10  # of correlated columns that are named
_LONGEST = 60  # characters of a category's name; the JSON has it whole
_VALUES = 6  # features whose values are shown in one line; a fold has those of all that matter, and the JSON all


class ImportancesDocument(ReportDocument):
    """A report on importances: the JSON file has the findings under `findings`."""

    kind: Literal["boosters-eval importances"] = "boosters-eval importances"
    run_id: str | None = None
    top: int = DEFAULT_TOP
    findings: tuple[BenchmarkFindings, ...]
    failed: tuple[FailedCell, ...] = ()
    unsupported: tuple[AbsentPair, ...] = ()
    unavailable: tuple[AbsentPair, ...] = ()

    @property
    def run(self) -> str | None:
        return self.run_id

    def document(self) -> doc.Document:
        """The answer, a card per table with its charts, then all that the numbers rest on."""
        failed = show_errors(self.failed, self.unsupported, self.unavailable)
        swarms = tuple(_swarm(one, self.top) for one in self.findings if one.swarm)
        nothing = (doc.Paragraph("No cell finished."),)
        return doc.Document(
            self.title,
            self.answer,
            self.lead,
            self.facts,
            sections=(
                doc.Section("checks", "Checks", self._results("checks") if self.tables else nothing),
                doc.Section("importances", "Importances", self._results("importance")),
                doc.Section("agreement", "Agreement", self._results("agreement")),
                doc.Section("predictions", "Predictions", self._results("predictions")),
                doc.Section("attributions", "Attributions", swarms, only="page"),
                *(part for one in self.findings if one.disputed for part in _disputed_sections(one, self.findings)),
                *(() if failed is None else (failed,)),
                doc.Section("notes", "Notes", (doc.Notes(self.notes),) if self.notes else ()),
                *self.ending(),
            ),
        )

    def _results(self, about: str) -> tuple[doc.Results, ...]:
        """The tables of one subject, each with its sentence and its pictures."""
        return tuple(doc.Results(table, self._charts(table)) for table in self.tables if table.keys["about"] == about)

    def _charts(self, table: ReportTable) -> doc.Charts | None:
        kind = next((kind for kind in KINDS if kind == table.keys.get("kind")), None)
        if kind is None:
            return None
        one = next(found for found in self.findings if found.benchmark == table.keys["benchmark"])
        if table.keys["about"] == "agreement":
            return doc.Charts(partial(_draw_heat, one, kind))
        names = dict.fromkeys(name for found in self.findings for name in found.libraries)
        series = {one.marked(name): place for place, name in enumerate(names)}
        return doc.Charts(partial(_draw_dots, one, kind, self.top, series))


def build_document(
    explanations: Explanations, top: int = DEFAULT_TOP, *, now: datetime | None = None
) -> ImportancesDocument:
    findings = read_findings(explanations, top)
    results = explanations.collection
    environment = Environment.collect(results, now=now)
    versions = list_versions(results)
    measured = environment.measured_at
    return ImportancesDocument(
        title=f"{f'{measured[:10]}: ' if measured else ''}Importances",
        lead=", ".join(f"{name} {version}" for name, version in versions.items()),
        answer=tuple(_write_headline(findings, explanations)),
        facts=tuple(_list_facts(findings, explanations)),
        environment=environment.rows(versions, list_builds(results)),
        configuration=tuple(_describe(findings, explanations)),
        tables=tuple(table for one in findings for table in build_tables(one, top)),
        notes=tuple(_write_notes(findings, explanations)),
        reproduce=_list_commands(explanations),
        file_name=environment.name_report("importances"),
        run_id=explanations.run_id,
        top=top,
        findings=findings,
        failed=list_failed(results),
        unsupported=list_absent(results.unsupported),
        unavailable=list_absent(results.unavailable),
    )


def _list_commands(explanations: Explanations) -> tuple[str, ...]:
    """As for a comparison, of which a run from Python is told with the name of this command."""
    found = list_commands(explanations.collection)
    if explanations.metadata.facts.command or not explanations.results:
        return found
    first = found[0].replace("boosters-eval compare", "boosters-eval importances", 1)
    kinds = ",".join(explanations.results[0].kinds)
    return (f"{first} --kinds {kinds}", *found[1:])


def _write_headline(findings: Sequence[BenchmarkFindings], explanations: Explanations) -> Iterator[str]:
    found = {one.benchmark: one for one in findings}
    benchmarks = dict.fromkeys([*found, *(error.config_name for error in explanations.errors)])
    if explanations.errors and not findings:
        yield f"{QUESTION} No answer: no cell finished."
    for benchmark in benchmarks:
        where = f"{benchmark}: " if len(benchmarks) > 1 else ""
        yield from (f"{where}{text}" for text in _tell_benchmark(found.get(benchmark), benchmark, explanations))


def _tell_benchmark(one: BenchmarkFindings | None, benchmark: str, explanations: Explanations) -> Iterator[str]:
    """The answer on a benchmark, and what casts doubt on it."""
    if one is not None:
        yield write_answer(one)
        yield from (note.removeprefix("* ") for note in explain_marks(one))
    errors = [error for error in explanations.errors if error.config_name == benchmark]
    finished = Counter(cell.library for cell in explanations.results if cell.config_name == benchmark)
    for library in dict.fromkeys(error.library for error in errors):
        failed = [error for error in errors if error.library == library]
        yield clean(benchmark_notes.tell_failure(library, failed, finished[library]))
    if one is not None and one.correlated:
        yield one.correlated[0].text


def _list_facts(findings: Sequence[BenchmarkFindings], explanations: Explanations) -> Iterator[doc.Fact]:
    failed = {(one.benchmark, check.library) for one in findings for check in one.checks if check.verdict == "fails"}
    yield doc.Fact(label="Libraries", value=group_digits(len({name for one in findings for name in one.libraries})))
    yield doc.Fact(label="Seeds", value=group_digits(len({seed for one in findings for seed in one.seeds})))
    yield doc.Fact(label="Features", value=", ".join(group_digits(one.n_features) for one in findings) or MISSING)
    yield doc.Fact(label="Rows measured", value=", ".join(group_digits(one.n_rows) for one in findings) or MISSING)
    broken = {name for _, name in failed}
    yield doc.Fact(label="Libraries that fail a check", value=group_digits(len(broken)), alarm=bool(broken))
    yield doc.Fact(label="Cells failed", value=group_digits(len(explanations.errors)), alarm=bool(explanations.errors))


def _describe(findings: Sequence[BenchmarkFindings], explanations: Explanations) -> Iterator[tuple[str, str]]:
    for one in findings:
        rows = f"{group_digits(one.n_rows)} rows, {group_digits(one.n_features)} features"
        yield one.benchmark, f"{', '.join(one.libraries)}; {count_of(len(one.seeds), 'seed')}; {rows}"
    if explanations.run_id:
        yield "Run", explanations.run_id


def _write_notes(findings: Sequence[BenchmarkFindings], explanations: Explanations) -> Iterator[str]:
    for one in findings:
        where = f"{one.benchmark}: " if len(findings) > 1 else ""
        yield from (f"{where}{note}" for note in one.notes)
        yield from (f"{where}{pair.text}" for pair in one.correlated[:_MOST_PAIRS])
        if len(one.correlated) > _MOST_PAIRS:
            more = len(one.correlated) - _MOST_PAIRS
            yield f"{where}{count_of(more, 'further pair')} of columns as correlated; the JSON has all."
        tabled = {found.kind for found in one.importances}  # what a table has, it tells itself
        yield from (f"{where}{text}" for kind in KINDS if kind not in tabled for text in explain_absences(one, kind))
        if one.n_swarm and one.n_swarm < one.n_rows:
            drawn = f"{one.n_swarm} of {group_digits(one.n_rows)} rows of the first split, drawn at random"
            yield f"{where}The picture of attributions shows {drawn}."
    if findings:
        yield (
            "Tau is Kendall's tau-b of two rankings: 1 for the same order, 0 for no relation. Between libraries it is"
            " the mean over the splits, on each of which they have the same rows; of a library with itself, over all"
            " pairs of seeds."
        )
    if any(check.check == "local accuracy" and check.error is not None for one in findings for check in one.checks):
        yield (
            f"Sums count as right if they are off by at most {TOLERANCE:g} of the spread of the raw scores in single"
            f" precision, {TOLERANCE_DOUBLE:g} in double precision, and by what rounding takes."
        )
    yield from benchmark_notes.note_report(explanations.collection, times=False)


def _draw_dots(one: BenchmarkFindings, kind: Kind, top: int, series: Mapping[str, int]) -> list[Figure]:
    order = order_shown(one, kind)[:top]
    panels: dict[str, dict[str, Dot]] = {}
    for found in one.importances:
        value = found.mean if kind == "permutation" else found.share
        if found.kind == kind and value is not None:
            panels.setdefault(one.marked(found.library), {})[found.feature] = Dot(value, found.low, found.high)
    metric = lower_initial(metric_label(one.metric)) if one.metric else "the metric"
    axis = f"how much worse {metric} gets" if kind == "permutation" else "share of the sum"
    interval = any(dot.low is not None for dots in panels.values() for dot in dots.values())
    note = "the mean over the seeds" + (", with its 95 % interval" if interval else "")
    what = f"Importance by {LABELS[kind]} on {one.benchmark}"
    return dot_charts(what, axis, order, panels, series, note)


def _draw_heat(one: BenchmarkFindings, kind: Kind) -> list[Figure]:
    pairs = [pair for pair in one.agreement if pair.kind == kind]
    values = {(one.marked(pair.a), one.marked(pair.b)): pair.tau for pair in pairs}
    names = [name for library in one.libraries if ((name := one.marked(library)), name) in values]
    told = (
        "Kendall's tau: darker is closer to 1, by the same shades for every kind. On the diagonal, each library"
        " with itself over seeds"
    )
    figure = heat_chart(f"Agreement by {LABELS[kind]} on {one.benchmark}", names, values, told)
    return [figure] if figure is not None and len(names) > 1 else []


def _draw_bees(one: BenchmarkFindings, top: int) -> list[Figure]:
    """The attributions of each sound library in the same rows, on one scale."""
    features = one.swarm[:top]
    libraries = [name for name in one.libraries if name in features[0].attributions]
    panels = {
        one.marked(name): {f.feature: Bees(f.attributions[name], _shades(f)) for f in features} for name in libraries
    }
    axis = f"size of attributions, summed over {one.all_outputs}" if one.outputs else "attribution to the raw score"
    names = [feature.feature for feature in features]
    return bee_charts(f"Attributions on {one.benchmark}", axis, names, panels, ("low value", "high"))


def _swarm(one: BenchmarkFindings, top: int) -> doc.Card:
    points = (
        f"Each point is one of {one.n_swarm} rows of the first split, the same for every library. Its color is the"
        " rank of the feature's value among them; missing values and categories are gray."
    )
    left_out = one.broken("shap")
    notes = (points, *([f"Not drawn, because a check fails: {', '.join(left_out)}."] if left_out else ()))
    return doc.Card(one.benchmark, (doc.Charts(partial(_draw_bees, one, top)), doc.Notes(notes)))


def _shades(feature: SwarmFeature) -> list[float | None]:
    """From 0 for the lowest value to 1 for the highest; a category has no place in between."""
    if feature.categorical:
        return [None] * len(feature.values)
    known = np.array([value for value in feature.values if value is not None])
    ranks = iter((doubled_ranks(known) / 2 / max(len(known), 1)).tolist() if len(known) else [])
    return [None if value is None else next(ranks) for value in feature.values]


def _disputed_sections(findings: BenchmarkFindings, every: Sequence[BenchmarkFindings]) -> Iterator[doc.Section]:
    """The rows by predictions and by attributions: on the page with a fold for each row, in text with long lines."""
    place = [one.benchmark for one in every].index(findings.benchmark)
    where = f" on {findings.benchmark}" if len(every) > 1 else ""
    for only in ("page", "text"):
        blocks: list[doc.Block] = []
        for by, among in (("predictions", ""), ("attributions", ", among libraries that fail no check of them")):
            rows = [row for row in findings.disputed if row.by == by]
            if rows:
                about = " ".join([f"Where the {by} of two libraries differ most{among}.", *_define(findings, by)])
                blocks += [
                    doc.Paragraph(about),
                    _list_rows(findings, rows, f"Rows by {by}{where}", folded=only == "page"),
                ]
                blocks += [_fold(findings, row) for row in rows] if only == "page" else []
        title, anchor = f"Rows of most disagreement{where}", f"rows-{place}" if place else "rows"
        yield doc.Section(anchor, title, tuple(blocks), short=f"Rows{where}", only=only, detail=True)


def _list_rows(findings: BenchmarkFindings, rows: Sequence[DisputedRow], name: str, *, folded: bool) -> doc.PlainTable:
    libraries = [library for library in findings.libraries if any(library in row.predictions for row in rows)]
    explained = any(row.attributions for row in rows)
    cells = [
        (
            str(row.row),
            str(row.seed),
            _value(row.target, whole=findings.classes),
            row.difference,
            *(() if row.output is None else (findings.outputs[row.output],)),
            *(_outputs(findings, row.predictions.get(library, ())) for library in libraries),
            *(() if folded else (_values(findings, row), *((_largest(row),) if explained else ()))),
        )
        for row in rows
    ]
    of = ("Of",) if findings.outputs else ()
    further = () if folded else ("Values", *(("Largest attributions",) if explained else ()))
    return doc.PlainTable(
        name=name,
        headings=(
            "Row",
            "Seed",
            "Target",
            "Difference",
            *of,
            *(findings.marked(name) for name in libraries),
            *further,
        ),
        rows=tuple(cells),
    )


def _fold(findings: BenchmarkFindings, row: DisputedRow) -> doc.Details:
    """A row's values and what each library attributes to them; of features that matter little, the values alone."""
    libraries = list(row.attributions)
    cells = [
        (name, _value_of(findings, row, name), *(row.attributions[library].get(name, "") for library in libraries))
        for name in _features(findings, row)
    ]
    title = f"Row {row.row}"
    table = doc.PlainTable(name=f"{title} by {row.by}", headings=("Feature", "Value", *libraries), rows=tuple(cells))
    to = "" if row.output is None else f" to {findings.outputs[row.output]}"
    aside = f"values, and the largest attributions{to}" if libraries else "values"
    return doc.Details(title=title, aside=aside, blocks=(table,), long=True)


def _features(findings: BenchmarkFindings, row: DisputedRow) -> list[str]:
    """Those that matter most in the row, then the others; a group stands for its columns."""
    named = dict.fromkeys(name for found in row.attributions.values() for name in found)
    grouped = {column for columns in findings.groups.values() for column in columns}
    alone = [name for name in row.values if name not in grouped]
    return [*named, *(name for name in (*alone, *findings.groups) if name not in named)]


def _define(findings: BenchmarkFindings, by: str) -> Iterator[str]:
    what = "one attribution to the raw score" if by == "attributions" else "one prediction"
    what = "the probability" if by == "predictions" and findings.classes else what
    if noun := findings.output_noun if findings.outputs else "":
        told = f"; attributions are to the same {noun}" if any(row.attributions for row in findings.disputed) else ""
        yield f"The difference is that of {what} of one {noun}, named beside it{told}."
    elif by == "attributions":
        yield f"The difference is that of {what}."
    if findings.classes:
        shown = "the class that it predicts, with its probability" if findings.outputs else "the probability of class 1"
        yield f"Shown of each library: {shown}."


def _outputs(findings: BenchmarkFindings, values: Sequence[float | None]) -> str | float | None:
    if len(values) == 1:
        return values[0]
    known = [-math.inf if value is None else value for value in values]
    if findings.classes and known:
        return f"{known.index(max(known))} ({max(known):.2f})"
    return " / ".join(MISSING if value is None else number(value, 2) for value in values) or None


def _values(findings: BenchmarkFindings, row: DisputedRow) -> str:
    members = [column for name in _features(findings, row)[:_VALUES] for column in findings.groups.get(name, (name,))]
    return ", ".join(f"{column} {_value(row.values[column])}" for column in members)


def _value_of(findings: BenchmarkFindings, row: DisputedRow, name: str) -> str:
    if name not in findings.groups:
        return _value(row.values[name])
    return ", ".join(f"{column} {_value(row.values[column])}" for column in findings.groups[name])


def _value(value: float | str | None, *, whole: bool = False) -> str:
    """A value as the data has it; a class is a whole number."""
    if value is None:
        return MISSING
    if isinstance(value, str):
        shown = value if len(value) <= _LONGEST else f"{value[:_LONGEST]}..."
        return f"'{shown}'" if "," in shown else shown  # values are listed with commas between them
    return str(round(value)) if whole else as_given(value)


def _largest(row: DisputedRow) -> str:
    """The two that matter most to each library, of all libraries."""
    top = {name for found in row.attributions.values() for name in sorted(found, key=lambda n: -abs(found[n]))[:2]}
    parts = []
    for library, found in row.attributions.items():
        shown = ", ".join(f"{name} {value:+.2g}" for name, value in found.items() if name in top)
        parts.append(f"{library}: {shown}")
    return "; ".join(parts)
