"""From results to the table model: rows, columns and cells."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from boosters_eval.core.terms import named
from boosters_eval.core.text import clean
from boosters_eval.metrics import canonical, declare_metric, find
from boosters_eval.metrics.catalog import OF_MACHINE, RESOURCES
from boosters_eval.programs.benchmark.comparisons import name_test, observe, value_of
from boosters_eval.programs.benchmark.records import OWN_DEFAULTS, Unsupported
from boosters_eval.programs.benchmark.tables import notes
from boosters_eval.programs.benchmark.tables.advice import Costs
from boosters_eval.programs.benchmark.tables.answers import Contest, Doubt, MoreSplits, TableAnswer, answer_table
from boosters_eval.programs.benchmark.tables.contenders import (
    Places,
    find_losers,
    group_absences,
    group_results,
    list_trivial_rows,
)
from boosters_eval.programs.benchmark.tables.data import describe_split
from boosters_eval.programs.benchmark.tables.environment import list_builds
from boosters_eval.programs.benchmark.tables.general import compare_kinds, rank_over_datasets
from boosters_eval.programs.benchmark.tables.headline import (
    DEFAULTS,
    SUSPECT,
    answer_run,
    build_leaderboard,
    find_leaks,
    name_comparison,
)
from boosters_eval.programs.benchmark.tables.profiles import join_profiles, name_better
from boosters_eval.programs.benchmark.tables.sections import select_audits, tell_reservations, tell_suspicions
from boosters_eval.programs.benchmark.tables.verdicts import (
    Judgment,
    find_deciding,
    judge,
    share_levels,
)
from boosters_eval.reports.numbers import estimate, mean_and_std
from boosters_eval.reports.tables import Column, Report, ReportTable, Row, TableCell
from boosters_eval.runners.result import BUSY_CELL
from boosters_eval.stats.observations import ASSUMED_RATIO, split_ratio
from boosters_eval.stats.tables import mean_interval

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boosters_eval.programs.benchmark.margins import Margins
    from boosters_eval.programs.benchmark.records import Absence
    from boosters_eval.programs.benchmark.results import ResultCollection
    from boosters_eval.programs.benchmark.tables.contenders import Contender
    from boosters_eval.reports.tables import CellStatus
    from boosters_eval.runners.result import BenchmarkResult
    from boosters_eval.stats.significance import TestName

# What is measured besides the metrics; lower is better for all of them.
MEASURES = (
    Column(
        "train_time_s",
        "Train time (s)",
        higher_is_better=False,
        kind="time",
        cost=True,
        quantity="Training time",
        unit="s",
        floor=0.0,
    ),
    Column("predict_time_s", "Predict time (s)", higher_is_better=False, kind="time", unit="s", floor=0.0),
    Column("peak_memory_mb", "Peak memory (MB)", higher_is_better=False, kind="memory", unit="MB", floor=0.0),
    Column("first_use_mb", "First use (MB)", higher_is_better=False, kind="memory", unit="MB", floor=0.0),
    Column("model_size_mb", "Model size (MB)", higher_is_better=False, kind="memory", unit="MB", floor=0.0),
)
_DISTURBED = "times are indicative only: {}"
_BUSY = _DISTURBED.format(BUSY_CELL)
_APART = "times and memory are not judged: every pair was measured on two machines"
_ONCE = "paid once per process, whatever is trained"


@dataclass(frozen=True)
class TableOptions:
    metrics: Sequence[str] | None
    times: bool
    test: TestName
    alpha: float
    margins: Margins
    highlight: bool
    require_significance: bool
    more: bool = True  # whether more seeds can be advised: not after --seeds auto, which adds them itself
    remarks: tuple[Doubt, ...] = ()  # on every table
    suspicions: Mapping[str, str] = field(default_factory=dict)  # by data set: why its scores cannot be trusted
    reservations: Mapping[str, tuple[Doubt, ...]] = field(default_factory=dict)  # by data set: what its columns do
    unfair_times: str = ""  # why no time of the run is judged
    builds: bool = False  # whether a build takes part, so that every row needs its version


def build_tables(
    collection: ResultCollection,
    *,
    metrics: Sequence[str] | None = None,
    times: bool = True,
    test: TestName = "rows",
    alpha: float | None = None,
    margin: Any = None,
    highlight: bool = True,
    require_significance: bool = True,
) -> Report:
    """One table per benchmark, and the answer. `metrics` orders the metric columns; an empty one shows none.

    Without `alpha`, the level is the run's own (--seeds auto) or 5 %; without `margin`, it is the run's own or 1 %.
    """
    for name, better in collection.metadata.user_metrics.items():
        declare_metric(name, higher_is_better=better)
    level, margins = collection.metadata.level(alpha), collection.metadata.margins(margin)
    options = TableOptions(
        metrics,
        times,
        test,
        level,
        margins,
        highlight,
        require_significance,
        more=not collection.metadata.seeds_rule,
        remarks=(Doubt("The run is incomplete", "the run is incomplete"),) if collection.metadata.n_missing else (),
        suspicions=tell_suspicions(collection),
        reservations=tell_reservations(collection),
        unfair_times=collection.metadata.unfair_times,
        builds=bool(list_builds(collection)),
    )
    absent = group_absences(collection)
    groups = {name: list(rows.values()) for name, rows in group_results(collection).items()}
    built = [_table(name, rows, absent.get(name, []), options) for name, rows in groups.items()]
    ahead = {
        clean(name): name_better(rows, own, one.table.columns, test=test, alpha=level, margins=margins)
        for (name, rows), one in zip(groups.items(), built, strict=True)
        if (own := groups.get(f"{name}{OWN_DEFAULTS}")) is not None
    }
    answers = join_profiles({one.table.name: (one.table, one.answer) for one in built}, ahead)
    tables = tuple(
        dataclasses.replace(one.table, answer=answers[one.table.name].lines if one.table.name in answers else ())
        for one in built
    )
    leaks = find_leaks(collection)
    rankings = rank_over_datasets(tables, alpha=level, leaking=leaks)
    costs = {one.table.name: one.costs for one in built if one.table.name in answers}
    return Report(
        tables,
        (*notes.note_report(collection, times=times), *notes.note_levels(tables, level, margins)),
        name_test(test, (pair for table in tables for pair in table.pairs)),
        level,
        margins.spelled,
        title=name_comparison(tables, collection),
        answer=answer_run(tables, answers, costs, rankings, collection, alpha=level),
        leaderboard=build_leaderboard(tables, rankings, alpha=level, leaks=leaks),
        rankings=rankings,
        kinds=compare_kinds(
            [table for table in tables if table.keys["dataset"] not in leaks], select_audits(collection), alpha=level
        ),
    )


@dataclass(frozen=True)
class _Built:
    """A table, what it says, and what its rows cost."""

    table: ReportTable
    answer: TableAnswer
    costs: Costs


def _table(name: str, contenders: list[Contender], absent: list[Absence], options: TableOptions) -> _Built:
    results = [result for contender in contenders for result in contender.results]
    first = results[0] if results else contenders[0].errors[0]
    places = Places.of(contenders)
    contenders = [dataclasses.replace(contender, apart=places.apart) for contender in contenders]
    columns = _columns(results, options, places)
    grid = [[_cell(contender, column, options) for column in columns] for contender in contenders]
    judged: dict[str, Judgment] = {}
    levels = share_levels(columns, test=options.test, alpha=options.alpha)
    losers = find_losers(contenders, columns)
    for position, column in enumerate(columns):
        if column.name not in levels:
            continue
        found = judge(
            clean(name), column, contenders, test=options.test, alpha=levels[column.name], margins=options.margins
        )
        judged[column.name] = found
        best = found.winners if options.require_significance else found.leaders
        beaten = losers.get(column.name, {})
        for index in best if options.highlight else ():
            if contenders[index].name in beaten:
                continue  # best among the libraries, but worse than what takes no skill
            grid[index][position] = dataclasses.replace(grid[index][position], best=True)
    pairs = [pair for found in judged.values() for pair in found.comparisons]
    row_names = ("Library", "Variant") if any(c.variant is not None for c in contenders) else ("Library",)
    row_facts = ("Version",) if options.builds else ()
    rows = [_row(c, row_names, row_facts, tuple(cells)) for c, cells in zip(contenders, grid, strict=True)]
    table = ReportTable(
        name=clean(name),
        row_names=row_names,
        columns=columns,
        rows=(*rows, *(_absent_row(item, row_names, columns) for item in absent)),
        keys={
            "task": "" if first.task is None else first.task.value,
            "dataset": clean(first.dataset_name),
            "booster": clean(first.booster_type),
            "profile": clean(first.profile),
        },
        details=(
            *((describe_split(results),) if results else ()),
            *((DEFAULTS,) if first.profile == "defaults" else ()),
            *((SUSPECT,) if first.dataset_name in options.suspicions else ()),
        ),
        notes=notes.note_table(contenders, columns, pairs, losers, places, options.test),
        pairs=tuple(pairs),
        row_facts=row_facts,
        trivial=list_trivial_rows(contenders, columns, row_names),
    )
    deciding = find_deciding(columns)
    decisive = [pair for pair in pairs if deciding and pair.metric == deciding.name]
    doubts = notes.list_doubts(contenders, columns, decisive, options.test)
    reserved = options.reservations.get(first.dataset_name, ())
    unbeaten = {name: rule.text for name, rule in losers.get(deciding.name, {}).items()} if deciding else {}
    costs = Costs.of(contenders, options.unfair_times)
    won = judged.get(MEASURES[0].name, Judgment()).winners
    contest = _contest(deciding, judged, contenders, unbeaten, options)
    if contest is not None:
        known = (dataclasses.replace(row, standing=clean(contest.stand(row.label))) for row in rows)
        table = dataclasses.replace(table, rows=(*known, *table.rows[len(rows) :]))
    answer = answer_table(
        table,
        contest,
        unbeaten=unbeaten,
        failures={one.name: notes.name_failure(one.errors) for one in contenders if one.errors},
        cost=costs.tell([contenders[index].name for index in won]),
        suspicion=options.suspicions.get(first.dataset_name, ""),
        doubts=(*doubts, *reserved, *options.remarks),
    )
    return _Built(dataclasses.replace(table, unbeaten=tuple(unbeaten)), answer, costs)


def _contest(
    deciding: Column | None,
    judged: Mapping[str, Judgment],
    contenders: Sequence[Contender],
    unbeaten: Mapping[str, str],
    options: TableOptions,
) -> Contest | None:
    """The rows against each other in the column that decides; None where there are not two to judge."""
    found = None if deciding is None else judged.get(deciding.name, Judgment()).found
    if deciding is None or found is None or not found.pairs or found.leader is None:
        return None
    return Contest(
        deciding,
        found,
        tuple(result.n_valid for one in contenders for result in one.results if result.n_valid),
        _more_splits(deciding, contenders, options),
        unbeaten,
    )


def _more_splits(column: Column, contenders: Sequence[Contender], options: TableOptions) -> MoreSplits | None:
    """How more splits could decide; None where it is not known what they would show."""
    if not options.more or options.test == "welch":
        return None
    results = [result for contender in contenders for result in contender.results]
    if any(result.split is not None for result in results):  # seeds add no windows of time, and no groups
        return None
    corrected = options.test in ("rows", "corrected") and column.name not in RESOURCES
    overlap = (split_ratio(observe(results, column.name).values()) or ASSUMED_RATIO) if corrected else 0.0
    folds = len({result.fold for result in results if result.fold is not None})
    return MoreSplits(overlap, folds)


def _columns(results: list[BenchmarkResult], options: TableOptions, places: Places) -> tuple[Column, ...]:
    present = list(dict.fromkeys(name for result in results for name in result.metrics))
    primary = next((result.primary_metric for result in results if result.primary_metric), None)
    present.sort(key=lambda name: name != primary)
    asked = present if options.metrics is None else [x if x in present else canonical(x) for x in options.metrics]
    chosen = [name for name in dict.fromkeys(asked) if name in present]
    if options.metrics is None:  # of several targets, the metric that decides is shown for each
        known = {name: find(name) for name in chosen}
        chosen = [name for name, it in known.items() if it is None or not it.target or it.whole.spec == primary]
    found = [metric_column(name, primary=name == (primary or present[0])) for name in chosen]
    memory = any(result.peak_memory_mb is not None for result in results)
    for measure in MEASURES if options.times else ():
        # A model's size is always known, but shown only if memory was measured.
        wanted = measure.kind == "time" or memory
        if wanted and any(getattr(result, measure.name) is not None for result in results):
            found.append(dataclasses.replace(measure, caveat=_caveat(measure, results, options.unfair_times, places)))
    return tuple(found)


def _caveat(measure: Column, results: list[BenchmarkResult], unfair_times: str, places: Places) -> str:
    if measure.name == "first_use_mb":
        return _ONCE
    if not all(result.timing_mode for result in results):
        return _DISTURBED.format(f"not taken with {named('timing_mode')}")
    if places.pairs and places.pairs_apart == places.pairs and measure.name in OF_MACHINE:
        return _APART
    if measure.kind == "time" and unfair_times:
        return _DISTURBED.format(unfair_times)
    return "" if measure.kind != "time" or all(result.fairly_timed for result in results) else _BUSY


def metric_column(name: str, *, primary: bool) -> Column:
    """The column of a metric. One that this process does not know has neither direction nor range."""
    metric = find(name)
    if metric is None:
        return Column(name, clean(name), None, primary=primary)
    return Column(
        name, clean(metric.label), metric.higher_is_better, primary=primary, floor=metric.low, ceiling=metric.high
    )


def _cell(contender: Contender, column: Column, options: TableOptions) -> TableCell:
    values = contender.values(column)
    mean, std = mean_and_std(values)
    text = estimate(mean, std)
    if values and len(values) != len(contender.results):
        text += f" (n = {len(values)})"
    low, high = mean_interval(
        contender.shown(column, by_rows=options.test == "rows"),
        test=options.test,
        alpha=options.alpha,
        as_ratio=column.name in RESOURCES,
    ) or (None, None)
    return TableCell(
        mean=mean if mean is not None and math.isfinite(mean) else None,
        std=std,
        n=len(values),
        text=text,
        low=low if low is None or column.floor is None else max(low, column.floor),
        high=high if high is None or column.ceiling is None else min(high, column.ceiling),
        values=tuple(v if v is not None and math.isfinite(v) else None for v in contender.aligned(column)),
        status=_status(contender, column, mean),
    )


def _status(contender: Contender, column: Column, mean: float | None) -> CellStatus:
    """A value that cannot be shown is an error if a cell failed or gave no finite number, and missing otherwise.

    Unless there are values, but none that the other rows have from the same machine.
    """
    if mean is None and any(value_of(result, column.name) is not None for result in contender.results):
        return "skipped"
    if mean is None:
        return "error" if contender.errors else "missing"
    return "ok" if math.isfinite(mean) else "error"


def _row(
    contender: Contender, row_names: tuple[str, ...], row_facts: tuple[str, ...], cells: tuple[TableCell, ...]
) -> Row:
    versions = dict.fromkeys(clean(result.library_version or "") for result in contender.results)
    names = (clean(contender.library), clean(contender.variant or ""))
    return Row(
        names=names[: len(row_names)],
        cells=cells,
        n=len(contender.results),
        failed=len(contender.errors),
        points=tuple(str(result.repeat) for result in contender.results),
        facts=(", ".join(versions),) if row_facts else (),
    )


def _absent_row(absence: Absence, row_names: tuple[str, ...], columns: tuple[Column, ...]) -> Row:
    """A library that was asked for belongs in the table, even if it has no cells there; the notes say why."""
    status: CellStatus = "unsupported" if isinstance(absence, Unsupported) else "unavailable"
    cell = TableCell(mean=None, std=None, n=0, text="", status=status)
    names = (clean(absence.library), clean(absence.variant or ""))
    return Row(names=names[: len(row_names)], cells=(cell,) * len(columns), n=0)
