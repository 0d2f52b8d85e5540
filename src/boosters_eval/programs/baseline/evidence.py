"""What a recorded pair and a new one say about each other: by rows where both kept them, else by splits."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from boosters_eval.core.request import Part, Repeat
from boosters_eval.metrics import higher_is_better
from boosters_eval.programs.baseline.model import MetricStats
from boosters_eval.reports.numbers import p_value
from boosters_eval.runners.result import find_part

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from boosters_eval.programs.baseline.model import BaselineResult
    from boosters_eval.programs.baseline.sidecar import RowStore
    from boosters_eval.programs.benchmark.evidence import SplitRows
    from boosters_eval.stats.observations import AnySide, Side
    from boosters_eval.stats.rows import RowScores
    from boosters_eval.stats.significance import Comparison


@dataclass(frozen=True)
class KeptFit:
    """What one fit predicted, and the rows that it predicted."""

    split: SplitRows
    predictions: NDArray[np.float64]


@dataclass(frozen=True)
class RecordedSide:
    """One pair as one side of a check has it, and where its predictions are."""

    record: BaselineResult
    store: RowStore | None = None

    def read(self, cell: str) -> KeptFit | None:
        """What a cell predicted; None where it was not kept."""
        fit = self.record.fits.get(cell)
        if self.store is None or fit is None or fit.kept is None:
            return None
        from boosters_eval.programs.benchmark import evidence  # noqa: PLC0415 (loads what runs)

        rows, predictions = self.store.find(fit.kept.rows), self.store.find(fit.kept.predictions)
        if rows is None or predictions is None:
            return None
        split = evidence.unpack_rows(rows)
        return KeptFit(split, evidence.unpack_predictions(predictions, split))

    def score(self, cell: str, metric: str) -> RowScores | None:
        """What each row contributed to a metric; None where rows do not make it, or are not there."""
        from boosters_eval.programs.benchmark.evidence import score_split  # noqa: PLC0415 (loads what runs)

        record = self.record
        if record.split is not None and record.split.kind == "time":  # whose neighbors may be alike
            return None
        found, repeat = self.read(cell), Repeat.parse(cell)
        if found is None:
            return None
        part = record.fits[cell].part or Part(repeat.seed, repeat.fold or 0)
        by = (record.task, metric, found.split, found.predictions)
        about: Any = {"quantiles": record.quantiles, "targets": record.targets}
        return score_split(*by, part=part, n_train=record.n_train, **about)

    def observe(self, stats: MetricStats, metric: str) -> Side:
        from boosters_eval.programs.benchmark.comparisons import resolution_of, split_fields  # noqa: PLC0415 (scipy)
        from boosters_eval.stats.observations import Observation, Side  # noqa: PLC0415

        record, resolution = self.record, resolution_of(metric, self.record.n_valid)
        return Side(
            (
                Repeat.parse(cell),
                Observation(
                    value,
                    record.split_digests.get(cell),
                    record.n_train,
                    record.n_valid,
                    record.data_digest,
                    predictions_digest=fit.predictions if fit else None,
                    resolution=resolution,
                    part=find_part(Repeat.parse(cell), fit.part if fit else None, record.split),
                    rows=self.score(cell, metric),
                    **split_fields(record.split),
                ),
            )
            for cell, value in stats.per_seed.items()
            for fit in [record.fits.get(cell)]
        )


@dataclass(frozen=True)
class Evidence:
    """Both values over the cells that both have, and why they may not be comparable."""

    before: MetricStats
    after: MetricStats
    higher_is_better: bool
    obstacle: str = ""  # why it would not be comparing like with like
    remark: str = ""
    identical: bool = False  # every prediction is, to the last bit
    tested: Comparison | None = None  # now against then; None: not asked, or so few cells that no test can reject
    tested_on: AnySide = field(default_factory=dict)  # the recorded values of these cells

    @property
    def p_value(self) -> float | None:
        """Of "nothing has changed"."""
        return None if self.tested is None else self.tested.p_value

    @property
    def by_rows(self) -> bool:
        """Whether rows were tested, which tell more than splits do."""
        return self.tested is not None and self.tested.evidence is not None

    @property
    def by_time(self) -> bool:
        """Whether the splits are windows of time, which more seeds do not add to."""
        return any(one.kind == "time" for one in self.tested_on.values())

    @property
    def worse(self) -> bool | None:
        """Whether it is significantly worse; None where nothing was tested."""
        if self.tested is None or self.tested.p_value is None or self.tested.difference is None:
            return None
        wrong_way = (self.tested.difference < 0) == self.higher_is_better
        return wrong_way and self.tested.p_value <= self.tested.alpha

    @property
    def worst(self) -> float | None:
        """The worst mean that is compatible with the run: the end of the interval; None where nothing was tested."""
        if self.tested is None or self.tested.interval is None:
            return None
        low, high = self.tested.interval
        return self.before.mean + (low if self.higher_is_better else high)


@dataclass(frozen=True)
class PairOfSides:
    """A recorded pair and the same pair now."""

    then: RecordedSide
    now: RecordedSide

    @cached_property
    def cells(self) -> list[str]:
        """Those that both have."""
        metric = self.then.record.primary_metric
        if metric not in self.now.record.metrics:
            return []
        before, after = (side.record.metrics[metric].per_seed for side in (self.then, self.now))
        return [cell for cell in before if cell in after]

    @property
    def identical(self) -> bool:
        """Whether every common cell is known to predict the same, to the last bit."""
        return bool(self.cells) and all(
            (then := self.then.record.fits.get(cell)) is not None
            and (now := self.now.record.fits.get(cell)) is not None
            and then.predictions is not None
            and then.predictions == now.predictions
            for cell in self.cells
        )

    @property
    def weighted(self) -> bool | None:
        """Whether rows have weights; None: not known."""
        kept = self.then.read(self.cells[0]) if self.cells else None
        return None if kept is None else kept.split.weights is not None

    def has_rows(self) -> bool:
        """Whether both sides kept what they predicted, as far as they say themselves."""
        sides = (self.then, self.now)
        return bool(self.cells) and all(
            side.store is not None and (fit := side.record.fits.get(cell)) is not None and fit.kept is not None
            for side in sides
            for cell in self.cells
        )


def weigh_pair(sides: PairOfSides, metric: str, *, statistical: bool, alpha: float) -> Evidence:
    """The means over the common cells; tested by rows where both sides have them, else only if `statistical`."""
    then, now = sides.then.record, sides.now.record
    before, after = then.metrics[metric], now.metrics[metric]
    stated = [side.higher_is_better for side in (then, now) if side.primary_metric == metric]
    known = [direction for direction in stated if direction is not None]  # of a user's metric, only they know
    higher = known[0] if known else higher_is_better(metric)
    if len(set(known)) > 1:
        say = ("more", "less") if higher else ("less", "more")
        obstacle = f"the baseline says that {say[0]} {metric} is better, the run that {say[1]} is"
        return Evidence(before, after, higher, obstacle=obstacle)
    if not before.per_seed or not after.per_seed:
        remark = "no values per seed were recorded, so the means are compared"
        remark += f" though n is {before.n} and {after.n}" if before.n != after.n else ""
        remark += " and nothing can be tested: the tolerance alone decides" if statistical else ""
        return Evidence(before, after, higher, remark=remark if before.n != after.n or statistical else "")
    common = sides.cells
    obstacle = _find_obstacle(then, now, common)
    if obstacle:
        return Evidence(before, after, higher, obstacle=obstacle)
    remark = "" if len(common) == before.n else f"over {len(common)} of the {before.n} recorded seeds"
    before, after = (MetricStats.of({cell: side.per_seed[cell] for cell in common}) for side in (before, after))
    found = Evidence(before, after, higher, remark=remark, identical=sides.identical)
    if found.identical or not (statistical or sides.has_rows()):
        return found
    return _test(sides, found, metric, alpha, statistical=statistical)


def _find_obstacle(then: BaselineResult, now: BaselineResult, common: Sequence[str]) -> str:
    if then.data_digest and now.data_digest and then.data_digest != now.data_digest:
        return "the data is not the recorded data; record a new baseline"
    if not common:
        return "no seed is in both"
    for cell in common:
        first, second = then.split_digests.get(cell), now.split_digests.get(cell)
        if first and second and first != second:
            return f"the split of cell {cell} is not the recorded split; record a new baseline"
    return ""


def _test(sides: PairOfSides, evidence: Evidence, metric: str, alpha: float, *, statistical: bool) -> Evidence:
    """The same test as between two libraries: by rows, or paired by split and corrected for the rows they share."""
    from boosters_eval.programs.benchmark.comparisons import resolution_of  # noqa: PLC0415 (loads scipy)
    from boosters_eval.stats.significance import DEFAULT_ALPHA  # noqa: PLC0415
    from boosters_eval.stats.tables import compare_table  # noqa: PLC0415

    same = evidence.before.per_seed == evidence.after.per_seed
    if same and not resolution_of(metric, sides.now.record.n_valid):
        return evidence  # identical scores prove it, unless one row is all that a score can resolve
    observed = {
        "then": sides.then.observe(evidence.before, metric),
        "now": sides.now.observe(evidence.after, metric),
    }
    table = compare_table(observed, metric=metric, higher_is_better=evidence.higher_is_better, alpha=alpha, test="rows")
    found = table.get("now", "then")
    if found.evidence is None and not statistical:
        return evidence
    p = found.p_value
    if p is None or (p > alpha and found.interval is None):
        # Too few cells for any change to be significant: what is beyond tolerance is not merely undecided.
        remark = "too few cells for a test: the tolerance alone decides"
    else:
        evidence = replace(evidence, tested=found, tested_on=observed["then"])
        text = p_value(p)
        remark = f"p {text}" if text.startswith("<") else f"p = {text}"
        remark += " by rows" if evidence.by_rows else " by splits"
        remark += "" if alpha == DEFAULT_ALPHA else f" with {alpha:.3g} or less needed"
    return evidence if same else replace(evidence, remark=", ".join(filter(None, (evidence.remark, remark))))


def count_seeds_needed(evidence: Evidence, *, looks: bool = False) -> int | None:
    """How many seeds make the change significant if it stays as it is; None if no number does.

    With `looks`, they are added by the sequential rule, whose level falls with its number of looks.
    """
    from boosters_eval.stats.observations import ASSUMED_RATIO, find_design, split_ratio  # noqa: PLC0415 (loads scipy)
    from boosters_eval.stats.sequential import SequentialRule, splits_to_decide  # noqa: PLC0415

    if evidence.tested is None or evidence.by_time:
        return None
    level = (lambda seeds: SequentialRule(max_seeds=seeds).level) if looks else None
    overlap = split_ratio(evidence.tested_on.values()) or ASSUMED_RATIO
    splits = splits_to_decide(evidence.tested, overlap, level, find_design(evidence.tested_on, "corrected"))
    cells = [Repeat.parse(cell) for cell in evidence.before.per_seed]
    per_seed = len(cells) / len({repeat.seed for repeat in cells})  # more than one where there are folds
    return None if splits is None else math.ceil(splits / per_seed)
