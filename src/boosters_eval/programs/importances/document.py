"""The report on explanations: the generic document, with the findings as typed data beside it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Literal

from boosters_eval.core.text import clean, count_of, group_digits
from boosters_eval.programs.benchmark.tables import notes as benchmark_notes
from boosters_eval.programs.benchmark.tables.data import AbsentPair, FailedCell, list_absent, list_failed
from boosters_eval.programs.benchmark.tables.document import ReportDocument
from boosters_eval.programs.benchmark.tables.environment import Environment, list_builds, list_commands, list_versions
from boosters_eval.programs.benchmark.tables.sections import show_errors
from boosters_eval.programs.importances.checks import TOLERANCE, TOLERANCE_DOUBLE
from boosters_eval.programs.importances.judge import read_findings
from boosters_eval.programs.importances.records import (
    KINDS,
    BenchmarkFindings,
)
from boosters_eval.programs.importances.tables import build_tables
from boosters_eval.programs.importances.wording import QUESTION, absences, answer, mark_notes
from boosters_eval.reports.document import Fact
from boosters_eval.reports.numbers import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from boosters_eval.programs.importances.results import Explanations
    from boosters_eval.reports.document import Document, Section

DEFAULT_TOP = 10
_MOST_PAIRS = 10  # of correlated columns that are named


class ImportancesDocument(ReportDocument):
    """A report on importances: the JSON file has the findings under `findings`."""

    kind: Literal["boosters-eval importances"] = "boosters-eval importances"
    run_id: str | None = None
    top: int = DEFAULT_TOP
    findings: tuple[BenchmarkFindings, ...]
    failed: tuple[FailedCell, ...] = ()
    unsupported: tuple[AbsentPair, ...] = ()
    unavailable: tuple[AbsentPair, ...] = ()

    def document(self) -> Document:
        """Its layout."""
        from boosters_eval.programs.importances.page import lay_out  # noqa: PLC0415 (loads what draws)

        return lay_out(self)

    def errors(self) -> Iterator[Section]:
        """What failed, and what was not tried."""
        found = show_errors(self.failed, self.unsupported, self.unavailable)
        yield from () if found is None else (found,)


def build_document(
    explanations: Explanations, top: int = DEFAULT_TOP, *, now: datetime | None = None
) -> ImportancesDocument:
    """Everything that is told of a run."""
    findings = read_findings(explanations, top)
    results = explanations.collection
    environment = Environment.collect(results, now=now)
    versions = list_versions(results)
    measured = environment.measured_at
    return ImportancesDocument(
        title=f"{f'{measured[:10]}: ' if measured else ''}Importances",
        lead=", ".join(f"{name} {version}" for name, version in versions.items()),
        headline=tuple(_headline(findings, explanations)),
        facts=tuple(_facts(findings, explanations)),
        environment=environment.rows(versions, list_builds(results)),
        configuration=tuple(_configuration(findings, explanations)),
        tables=tuple(table for one in findings for table in build_tables(one, top)),
        notes=tuple(_notes(findings, explanations)),
        reproduce=_commands(explanations),
        run_id=explanations.run_id,
        top=top,
        findings=findings,
        failed=list_failed(results),
        unsupported=list_absent(results.unsupported),
        unavailable=list_absent(results.unavailable),
    )


def _commands(explanations: Explanations) -> tuple[str, ...]:
    """As for a comparison, of which a run from Python is told with the name of this command."""
    found = list_commands(explanations.collection)
    if explanations.metadata.facts.command or not explanations.results:
        return found
    first = found[0].replace("boosters-eval compare", "boosters-eval importances", 1)
    kinds = ",".join(explanations.results[0].kinds)
    return (f"{first} --kinds {kinds}", *found[1:])


def _headline(findings: Sequence[BenchmarkFindings], explanations: Explanations) -> Iterator[str]:
    found = {one.benchmark: one for one in findings}
    benchmarks = dict.fromkeys([*found, *(error.config_name for error in explanations.errors)])
    if explanations.errors and not findings:
        yield f"{QUESTION} That cannot be said: no cell finished."
    for benchmark in benchmarks:
        where = f"{benchmark}: " if len(benchmarks) > 1 else ""
        yield from (f"{where}{text}" for text in _told(found.get(benchmark), benchmark, explanations))


def _told(one: BenchmarkFindings | None, benchmark: str, explanations: Explanations) -> Iterator[str]:
    """The answer on a benchmark, and what casts doubt on it."""
    if one is not None:
        yield answer(one)
        yield from (note.removeprefix("* ") for note in mark_notes(one))
    errors = [error for error in explanations.errors if error.config_name == benchmark]
    finished = Counter(cell.library for cell in explanations.results if cell.config_name == benchmark)
    for library in dict.fromkeys(error.library for error in errors):
        failed = [error for error in errors if error.library == library]
        yield clean(benchmark_notes.tell_failure(library, failed, finished[library]))
    if one is not None and one.correlated:
        yield one.correlated[0].text


def _facts(findings: Sequence[BenchmarkFindings], explanations: Explanations) -> Iterator[Fact]:
    failed = {(one.benchmark, check.library) for one in findings for check in one.checks if check.verdict == "fails"}
    yield Fact(label="Libraries", value=group_digits(len({name for one in findings for name in one.libraries})))
    yield Fact(label="Seeds", value=group_digits(len({seed for one in findings for seed in one.seeds})))
    yield Fact(label="Features", value=", ".join(group_digits(one.n_features) for one in findings) or MISSING)
    yield Fact(label="Rows measured", value=", ".join(group_digits(one.n_rows) for one in findings) or MISSING)
    broken = {name for _, name in failed}
    yield Fact(label="Libraries that fail a check", value=group_digits(len(broken)), alarm=bool(broken))
    yield Fact(label="Cells failed", value=group_digits(len(explanations.errors)), alarm=bool(explanations.errors))


def _configuration(findings: Sequence[BenchmarkFindings], explanations: Explanations) -> Iterator[tuple[str, str]]:
    for one in findings:
        rows = f"{group_digits(one.n_rows)} rows, {group_digits(one.n_features)} features"
        yield one.benchmark, f"{', '.join(one.libraries)}; {count_of(len(one.seeds), 'seed')}; {rows}"
    if explanations.run_id:
        yield "Run", explanations.run_id


def _notes(findings: Sequence[BenchmarkFindings], explanations: Explanations) -> Iterator[str]:
    for one in findings:
        where = f"{one.benchmark}: " if len(findings) > 1 else ""
        yield from (f"{where}{note}" for note in one.notes)
        yield from (f"{where}{pair.text}" for pair in one.correlated[:_MOST_PAIRS])
        if len(one.correlated) > _MOST_PAIRS:
            more = len(one.correlated) - _MOST_PAIRS
            yield f"{where}{count_of(more, 'further pair')} of columns as correlated; the JSON has all."
        tabled = {found.kind for found in one.importances}  # what a table has, it tells itself
        yield from (f"{where}{text}" for kind in KINDS if kind not in tabled for text in absences(one, kind))
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
