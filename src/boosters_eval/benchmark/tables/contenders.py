"""Which outcomes share a table, and which share a row."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from boosters_eval.benchmark.observations import value_of
from boosters_eval.core.text import clean
from boosters_eval.metrics.catalog import OF_MACHINE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from boosters_eval.benchmark.records import Absence, BenchmarkError, BenchmarkResult
    from boosters_eval.benchmark.results import ResultCollection
    from boosters_eval.core.repeat import Repeat
    from boosters_eval.reports.model import Column


@dataclass
class Contender:
    """The outcomes that share a row."""

    library: str
    variant: str | None
    results: list[BenchmarkResult] = field(default_factory=list)
    errors: list[BenchmarkError] = field(default_factory=list)
    apart: frozenset[Repeat] = frozenset()  # what the rows of its table ran on different machines

    @property
    def name(self) -> str:
        """The label of the row."""
        return clean(self.library if self.variant is None else f"{self.library} {self.variant}")

    def aligned(self, column: Column) -> list[float | None]:
        """The measured values, one per result; None where a result has no such value, or none to be compared."""
        apart = self._apart(column)
        return [None if result.repeat in apart else value_of(result, column.name) for result in self.results]

    def shown(self, column: Column) -> list[BenchmarkResult]:
        """The results that a column is about: where it is judged, none that other rows ran on another machine."""
        apart = self._apart(column)
        return [result for result in self.results if result.repeat not in apart]

    def _apart(self, column: Column) -> frozenset[Repeat]:
        return frozenset() if column.indicative or column.name not in OF_MACHINE else self.apart

    def values(self, column: Column) -> list[float]:
        """The measured values, without gaps."""
        return [value for value in self.aligned(column) if value is not None]


Group = dict[tuple[str, str | None], Contender]


def group(collection: ResultCollection) -> dict[str, Group]:
    """Outcomes by table, then by row, in the order of first appearance."""
    outcomes: list[BenchmarkResult | BenchmarkError] = [*collection.results, *collection.errors]
    shared = _shared_names(outcomes)
    groups: dict[str, Group] = {}
    for result in collection.results:
        _contender(groups, shared, result).results.append(result)
    for error in collection.errors:
        _contender(groups, shared, error).errors.append(error)
    return groups


def absences(collection: ResultCollection) -> dict[str, list[Absence]]:
    """The libraries that each table lacks, because they do not support its config or are not available."""
    shared = _shared_names([*collection.results, *collection.errors])
    found: dict[str, list[Absence]] = {}
    for absence in (*collection.unsupported, *collection.unavailable):
        found.setdefault(shared.get(absence.config_name, absence.config_name), []).append(absence)
    return found


def results_by_name(contenders: Iterable[Contender]) -> dict[str, list[BenchmarkResult]]:
    """The results of each row. Rows with the same name are merged, and cannot be compared."""
    rows: dict[str, list[BenchmarkResult]] = {}
    for contender in contenders:
        rows.setdefault(contender.name, []).extend(contender.results)
    return rows


def machines_apart(contenders: Iterable[Contender]) -> frozenset[Repeat]:
    """The repeats that not all rows of a table ran on one and the same machine."""
    machines: dict[Repeat, set[str | None]] = {}
    for contender in contenders:
        for result in contender.results:
            machines.setdefault(result.repeat, set()).add(result.machine)
    return frozenset(repeat for repeat, found in machines.items() if len(found) > 1)


def _contender(
    groups: dict[str, Group], shared: dict[str, str], outcome: BenchmarkResult | BenchmarkError
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
