"""Which outcomes share a table, and which share a row."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Self

from boosters_eval.core.text import clean
from boosters_eval.metrics.catalog import OF_MACHINE
from boosters_eval.programs.benchmark.comparisons import TrivialScore, find_unbeaten, observe, value_of
from boosters_eval.programs.benchmark.records import RULES
from boosters_eval.reports.numbers import estimate, mean_and_std
from boosters_eval.reports.tables import Row, TableCell

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from boosters_eval.core.request import Repeat
    from boosters_eval.programs.benchmark.evidence import RowEvidence
    from boosters_eval.programs.benchmark.records import Absence, BenchmarkError
    from boosters_eval.programs.benchmark.results import ResultCollection
    from boosters_eval.reports.tables import Column
    from boosters_eval.runners.result import BenchmarkResult
    from boosters_eval.stats.observations import Side


@dataclass
class Contender:
    """The outcomes that share a row."""

    library: str
    variant: str | None
    results: list[BenchmarkResult] = field(default_factory=list)
    errors: list[BenchmarkError] = field(default_factory=list)
    apart: frozenset[Repeat] = frozenset()  # whose times are left out: the rows of the table ran them on two machines
    evidence: RowEvidence | None = None  # what its fits said of each row of the data
    _sides: dict[tuple[str, bool], Side] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def name(self) -> str:
        return clean(self.library if self.variant is None else f"{self.library} {self.variant}")

    def aligned(self, column: Column) -> list[float | None]:
        """The measured values, one per result; None where a result has no such value, or none to be compared."""
        apart = self._apart(column)
        return [None if result.repeat in apart else value_of(result, column.name) for result in self.results]

    def observe(self, metric: str, *, by_rows: bool) -> Side:
        """Its side of a comparison, observed once for its cell and its verdicts."""
        if (metric, by_rows) not in self._sides:
            self._sides[metric, by_rows] = observe(self.results, metric, self.evidence if by_rows else None)
        return self._sides[metric, by_rows]

    def shown(self, column: Column, *, by_rows: bool) -> Side:
        """What a column is about: of a machine's measure, nothing that other rows ran on another machine."""
        side, apart = self.observe(column.name, by_rows=by_rows), self._apart(column)
        return side.without(apart) if apart else side

    def _apart(self, column: Column) -> frozenset[Repeat]:
        return self.apart if column.name in OF_MACHINE else frozenset()

    def values(self, column: Column) -> list[float]:
        return [value for value in self.aligned(column) if value is not None]


@dataclass(frozen=True)
class Places:
    """Where the rows of a table ran the repeats that they share."""

    repeats: frozenset[Repeat]
    apart: frozenset[Repeat]  # of a table of several machines: those that not all rows ran on one of them
    pairs: int  # of results of two rows on one repeat
    pairs_apart: int  # on two machines

    @classmethod
    def of(cls, contenders: Iterable[Contender]) -> Self:
        placed = ({result.repeat: result.machine for result in contender.results} for contender in contenders)
        rows = [row for row in placed if row]
        repeats = frozenset(repeat for row in rows for repeat in row)
        several = len({machine for row in rows for machine in row.values()}) > 1
        together = {repeat for repeat in repeats if not several or len({row.get(repeat, "") for row in rows}) == 1}
        same = [a[repeat] == b[repeat] for a, b in combinations(rows, 2) for repeat in a if repeat in b]
        return cls(repeats, repeats - together, len(same), same.count(False))


TableGroup = dict[tuple[str, str | None], Contender]


def group_results(collection: ResultCollection) -> dict[str, TableGroup]:
    """Outcomes by table, then by row, in the order of first appearance."""
    outcomes: list[BenchmarkResult | BenchmarkError] = [*collection.results, *collection.errors]
    shared = _shared_names(outcomes)
    groups: dict[str, TableGroup] = {}
    for result in collection.results:
        _contender(groups, shared, result).results.append(result)
    for error in collection.errors:
        _contender(groups, shared, error).errors.append(error)
    for contender in (contender for members in groups.values() for contender in members.values()):
        contender.evidence = collection.evidence
    return groups


def group_absences(collection: ResultCollection) -> dict[str, list[Absence]]:
    """The libraries that each table lacks, because they do not support its config or are not available."""
    shared = _shared_names([*collection.results, *collection.errors])
    found: dict[str, list[Absence]] = {}
    for absence in (*collection.unsupported, *collection.unavailable):
        found.setdefault(shared.get(absence.config_name, absence.config_name), []).append(absence)
    return found


def group_by_name(contenders: Iterable[Contender]) -> dict[str, list[BenchmarkResult]]:
    """The results of each row. Rows with the same name are merged, and cannot be compared."""
    rows: dict[str, list[BenchmarkResult]] = {}
    for contender in contenders:
        rows.setdefault(contender.name, []).extend(contender.results)
    return rows


def _contender(
    groups: dict[str, TableGroup], shared: dict[str, str], outcome: BenchmarkResult | BenchmarkError
) -> Contender:
    members = groups.setdefault(shared.get(outcome.config_name, outcome.config_name), {})
    return members.setdefault((outcome.library, outcome.variant), Contender(outcome.library, outcome.variant))


def _shared_names(outcomes: Iterable[BenchmarkResult | BenchmarkError]) -> dict[str, str]:
    """Table names by config: each variant is a separate config, but all variants of one ablation share a table.

    Boosters share a table only if they are what is varied, so that no variant occurs with two of them.
    """
    configs = {o.config_name: o for o in outcomes if o.variant is not None}
    per_dataset: dict[str, list[BenchmarkResult | BenchmarkError]] = {}
    for outcome in configs.values():
        per_dataset.setdefault(outcome.dataset_name, []).append(outcome)
    shared = {}
    for dataset, members in per_dataset.items():
        varied = {member.variant: set[str]() for member in members}
        for member in members:
            varied[member.variant].add(member.booster_type)
        boosters = {member.booster_type for member in members}
        apart = len(boosters) == 1 or any(len(found) > 1 for found in varied.values())
        for member in members:
            shared[member.config_name] = f"{dataset}/{member.booster_type}" if apart else dataset
    return shared


# By metric, and by the name of a row: the rule that the row is not better than.
Losers = dict[str, dict[str, TrivialScore]]


def list_trivial_rows(
    contenders: Sequence[Contender], columns: Sequence[Column], row_names: tuple[str, ...]
) -> tuple[Row, ...]:
    """One row per rule, below the libraries; none where no column is a metric, as in a table of times."""
    scores: dict[str, dict[Repeat, Mapping[str, float]]] = {}
    for contender in contenders:
        for result in contender.results:
            for rule, found in (result.trivial or {}).items():
                scores.setdefault(rule, {}).setdefault(result.repeat, found)
    blank = ("",) * (len(row_names) - 1)
    made = [
        Row(
            names=(clean(RULES.get(rule, (rule,))[-1]), *blank),
            cells=tuple(_cell([found.get(column.name) for found in splits.values()]) for column in columns),
            n=len(splits),
            points=tuple(map(str, splits)),
        )
        for rule, splits in scores.items()
    ]
    return tuple(row for row in made if any(cell.n for cell in row.cells))


def _cell(aligned: list[float | None]) -> TableCell:
    values = [value for value in aligned if value is not None]
    mean, std = mean_and_std(values)
    text = estimate(mean, std)
    if values and len(values) != len(aligned):
        text += f" (n = {len(values)})"
    return TableCell(mean=mean, std=std, n=len(values), text=text, values=tuple(aligned))


def find_losers(contenders: Sequence[Contender], columns: Sequence[Column]) -> Losers:
    """The rows that are not better than the best trivial rule, in each metric with a known direction."""
    found: Losers = {}
    for column in columns:
        if column.higher_is_better is None:
            continue
        for contender in contenders:
            rule = find_unbeaten(contender.results, column.name, higher_is_better=column.higher_is_better)
            if rule is not None:
                found.setdefault(column.name, {})[contender.name] = rule
    return found


def note_losers(found: Losers, columns: Sequence[Column], contenders: Sequence[Contender]) -> list[str]:
    """One sentence for each metric in which a library is not better than a rule that takes no skill."""
    out = []
    for column in columns:
        losing = found.get(column.name, {})
        if not losing:
            continue
        scored = {contender.name for contender in contenders if contender.values(column)}
        everyone = len(scored) > 1 and scored <= losing.keys()
        who = "no library is" if everyone else f"{', '.join(losing)} {'is' if len(losing) == 1 else 'are'} not"
        out.append(f"{column.label}: {who} better than {next(iter(losing.values())).text}.")
    return out
