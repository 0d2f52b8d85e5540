"""`baseline update`: a run is merged into a baseline, pair by pair; what gets worse or disappears needs a reason."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from boosters_eval.core.errors import ConfigError, ExitCode, pick
from boosters_eval.core.terms import given, named
from boosters_eval.core.text import clean, count_of, join_words
from boosters_eval.metrics import higher_is_better, label
from boosters_eval.programs.baseline.model import Acceptance, digest_mapping
from boosters_eval.reports.document import Document, MarkedCell, PlainTable, Section
from boosters_eval.reports.findings import ReportedFindings
from boosters_eval.reports.numbers import estimate, percent

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

    from boosters_eval.core.findings import Screen
    from boosters_eval.programs.baseline.model import Baseline, BaselineResult
    from boosters_eval.reports.document import PlainCell

Became = Literal["worse", "gone", "better", "same", "new"]
_ORDER: tuple[Became, ...] = ("new", "better", "worse", "gone", "same")
_NOISE = 1e-9  # relative: a smaller loss is rounding
_TOLD = 5  # pairs in a sentence


@dataclass(frozen=True)
class PairChange:
    """What becomes of one pair of a baseline."""

    before: BaselineResult | None
    after: BaselineResult | None

    @property
    def pair(self) -> str:
        one = self.after or self.before
        return "" if one is None else f"{one.config} {one.library}"

    @property
    def change(self) -> float | None:
        """Relative to the recorded mean, in the metric's own direction."""
        if self.before is None or self.after is None or self.before.primary_metric not in self.after.metrics:
            return None
        then, now = self.before.primary.mean, self.after.metrics[self.before.primary_metric].mean
        return (now - then) / abs(then) if then else math.copysign(math.inf, now) if now else 0.0

    @property
    def became(self) -> Became:
        if self.before is None:
            return "new"
        change = self.change
        if self.after is None or change is None:  # without its metric, nothing of it could ever fail again
            return "gone"
        stated = self.before.higher_is_better
        higher = higher_is_better(self.before.primary_metric) if stated is None else stated
        gained = change if higher else -change
        return "same" if abs(gained) <= _NOISE else "better" if gained > 0 else "worse"

    @property
    def needs_reason(self) -> bool:
        return self.became in ("worse", "gone")

    def describe(self) -> str:
        change = self.change
        size = f" ({percent(change)})" if change is not None and math.isfinite(change) and change else ""
        return f"{self.pair}: {self.became}{size}"


def compare_pairs(before: Iterable[BaselineResult], after: Iterable[BaselineResult]) -> list[PairChange]:
    """What becomes of each pair when one set of results takes the place of another."""
    old, new = ({result.key: result for result in results} for results in (before, after))
    return [PairChange(old.get(key), new.get(key)) for key in dict.fromkeys([*old, *new])]


def tell_damage(changes: Iterable[PairChange]) -> str:
    """The pairs that get worse or disappear, in words; empty if none does."""
    found = list(changes)
    parts = [
        f"{count_of(len(mine), 'pair')} {verb if len(mine) > 1 else one}"
        f" ({join_words((change.pair for change in mine), most=_TOLD)})"
        for became, verb, one in (("worse", "would get worse", "would get worse"), ("gone", "would go", "would go"))
        if (mine := [change for change in found if change.became == became])
    ]
    return " and ".join(parts)


def merge_baselines(
    old: Baseline, new: Baseline, *, libraries: Collection[str] = (), datasets: Collection[str] = (), accept: str = ""
) -> UpdatedBaseline:
    """The old baseline with the pairs of the new one that are asked for, by library or data set.

    Of a run of the whole suite, the pairs that it has no more are gone; any other leaves what it does not have.
    """
    libraries = [pick("library of the run", name, [result.library for result in new.results]) for name in libraries]
    known = [name for result in (*old.results, *new.results) for name in _names(result)]
    datasets = [pick("data set or config", name, known) for name in datasets]
    if old.config.seeds and set(old.config.seeds) != set(new.config.seeds):
        have, got = count_of(len(old.config.seeds), "seed"), count_of(len(new.config.seeds), "seed")
        raise ConfigError(f"A baseline is updated with its own seeds: it has {have}, and the run {got}, or others.")
    if old.config.splits != new.config.splits:
        raise ConfigError(f"The baseline has {old.config.splits} splits, and the run {new.config.splits} ones.")

    def is_asked(result: BaselineResult) -> bool:
        return (not libraries or result.library in libraries) and (
            not datasets or not {*_names(result)}.isdisjoint(datasets)
        )

    ran = {result.library for result in new.results if is_asked(result)}
    whole = old.config.suite is not None and old.config.suite == new.config.suite
    chosen = [result for result in new.results if is_asked(result)]
    touched = [
        result
        for result in old.results
        if is_asked(result) and (result.key in {one.key for one in chosen} or (whole and result.library in ran))
    ]
    changes = compare_pairs(touched, chosen)
    taken = {change.before.key: change for change in changes if change.before is not None}
    kept = [taken[one.key].after if one.key in taken else _without_times(one, old, new) for one in old.results]
    added = [change.after for change in changes if change.before is None]
    results = tuple(result for result in (*kept, *added) if result is not None)
    if not results:
        raise ConfigError("Nothing would be left of the baseline.")
    damage = [change.describe() for change in changes if change.needs_reason]
    reason = (Acceptance(at=new.recorded_at, reason=accept, pairs=tuple(damage)),) if accept and damage else ()
    sources = {**old.sources, **new.sources}
    present = {result.key for result in results}
    update = {
        "config": old.config,
        "libraries": {**old.libraries, **{name: new.libraries[name] for name in ran if name in new.libraries}},
        "mapping_digest": digest_mapping(results),
        "absent": tuple(item for item in old.absent if (item.config, item.library) not in present),
        "sources": {name: sources[name] for name in sources if name in {result.source for result in results}},
        "accepted": (*old.accepted, *reason),
        "results": results,
    }
    return UpdatedBaseline(new.model_copy(update=update), tuple(changes), refused=bool(damage) and not accept)


def _without_times(result: BaselineResult, old: Baseline, new: Baseline) -> BaselineResult:
    """Times are of one machine, which the baseline names once."""
    same = old.machine.get("digest") == new.machine.get("digest")
    return result if same or not result.times else result.model_copy(update={"times": {}})


def _names(result: BaselineResult) -> tuple[str, str]:
    """A config, and its data set."""
    return result.config, result.dataset or result.config.partition("/")[0]


@dataclass(frozen=True)
class UpdatedBaseline(ReportedFindings):
    """A baseline after a merge, and what became of its pairs."""

    baseline: Baseline
    changes: tuple[PairChange, ...]
    refused: bool = False  # pairs get worse or disappear, and nobody said why
    path: Path | None = None  # where it was written; None: nowhere

    @property
    def exit_code(self) -> int:
        return ExitCode.CONFIGURATION_ERROR if self.refused else ExitCode.SUCCESS

    def to_model(self) -> Baseline:
        return self.baseline

    def document(self) -> Document:
        rows = tuple(map(_row, self.changes))
        headings = ("Config", "Library", "Metric", "Before", "After", "Change", "Became")
        return Document(
            "Update",
            (self._answer(),),
            sections=(Section("pairs", "", (PlainTable("Pairs", headings, rows, keys=2, measured=True),)),),
        )

    def _answer(self) -> str:
        if self.refused:
            return clean(f"Not updated: {tell_damage(self.changes)}; say why with {given('accept', 'REASON')}.")
        counts = Counter(change.became for change in self.changes)
        told = ", ".join(f"{counts[became]} {became}" for became in _ORDER if counts[became])
        done = f"Updated: {self.path}" if self.path is not None else "Would update it"
        return clean(f"{done} ({count_of(len(self.changes), 'pair')}: {told or 'nothing'}).")

    def show(self, screen: Screen) -> None:
        """What was done, and the table of what became of each pair unless quiet."""
        if screen.quiet:
            screen.say(self._answer())
        else:
            super().show(screen)


def _row(change: PairChange) -> tuple[PlainCell, ...]:
    one = change.after or change.before
    sides = (
        None if side is None else MarkedCell(estimate(side.primary.mean, side.primary.std), value=side.primary.mean)
        for side in (change.before, change.after)
    )
    size, became = change.change, change.became
    mark = {"worse": "worse", "gone": "worse", "better": "better"}.get(became, "")
    return (
        clean(one.config) if one else "",
        clean(one.library) if one else "",
        clean(label(one.primary_metric)) if one else "",
        *sides,
        None if size is None or not math.isfinite(size) else MarkedCell(percent(size) if size else "0 %", value=size),
        MarkedCell(became, mark),
    )


def refuse_damage(old: Baseline, new: Baseline, path: Path, run_id: str | None, *, force: bool) -> str:
    """Do not let a baseline be replaced by one in which pairs are worse or gone, unless that is forced: then say it."""
    damage = tell_damage(compare_pairs(old.results, new.results))
    if not damage or force:
        return damage
    again = f" The run is kept: {given('run', run_id)}." if run_id else ""
    raise ConfigError(
        f"{path} is not replaced: {damage}. Say {named('force')}, or merge the run into it with 'boosters-eval baseline"
        f" update'.{again}"
    )
