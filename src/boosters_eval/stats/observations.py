"""The input of the statistics: what was observed on each side, by repeat, and how the splits depend on each other."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from boosters_eval.core.request import Part, Repeat, SplitKind
from boosters_eval.stats.inference import MOST_FREEDOM, Design
from boosters_eval.stats.rows import find_overlap

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from boosters_eval.stats.rows import RowScores
    from boosters_eval.stats.significance import TestName

ASSUMED_RATIO = 0.25  # n_test / n_train of the default split, for observations without sizes


class Observation(NamedTuple):
    """One value, and what decides whether another value may be compared with it.

    A report over 20 000 results makes hundreds of thousands of them, four times as fast as of a frozen dataclass.
    """

    value: float
    split_digest: str | None = None
    n_train: int | None = None
    n_valid: int | None = None
    data_digest: str | None = None
    predictions_digest: str | None = None  # of what was scored: identical predictions need no test
    resolution: float | None = None  # what one test row changes in the value: 0 if any number, None if unknown
    kind: SplitKind = "random"
    part: Part | None = None  # of a partition, whose test sets are disjoint; None: drawn by itself
    n_train_groups: int | None = None  # where groups are kept whole
    n_valid_groups: int | None = None
    machine: str | None = None  # of a value that depends on it: others of the same machine may be compared with it
    rows: RowScores | None = None  # what each row contributed to the value; None: only the split tells


class Side(dict[Repeat, Observation]):
    """One side's observations by repeat. It remembers whether a repeat was given twice."""

    def __init__(self, pairs: Iterable[tuple[Repeat, Observation | None]]) -> None:
        """Collect the pairs; None means that the repeat was run but has no value."""
        listed = list(pairs)
        super().__init__((repeat, observation) for repeat, observation in listed if observation is not None)
        self.repeated = len(dict(listed)) < len(listed)  # so no pair can be trusted

    def without(self, repeats: Collection[Repeat]) -> Side:
        return Side((repeat, one) for repeat, one in self.items() if repeat not in repeats)


AnySide = Mapping[Repeat, Observation]  # a Side, or what nobody asks whether a repeat was given twice
Observations = Mapping[str, AnySide]


def by_split(side: AnySide) -> list[list[Repeat]]:
    """The repeats grouped by split. Repeats on the same split (an official one, for example) are one observation."""
    groups: dict[str | Repeat, list[Repeat]] = {}
    for repeat, observation in side.items():
        groups.setdefault(observation.split_digest or repeat, []).append(repeat)
    return list(groups.values())


def same_predictions(pairs: Iterable[tuple[Observation, Observation]]) -> bool:
    """Whether both sides are known to have predicted the same in every split."""
    return all(a.predictions_digest is not None and a.predictions_digest == b.predictions_digest for a, b in pairs)


def coarsest_resolution(observations: Iterable[Observation]) -> float | None:
    """The largest resolution, or None if one is unknown."""
    found = [one.resolution for one in observations]
    known = [resolution for resolution in found if resolution is not None]
    return max(known) if known and len(known) == len(found) else None


def split_ratio(observations: Iterable[Observation]) -> float | None:
    """The overlap of the splits: their mean n_test / n_train, or less if they are the disjoint parts of a partition.

    Where groups are kept whole, they are what is drawn; a few large ones share more than their number says, so the
    larger of the two ratios, of groups and of rows, counts. None if an observation lacks its sizes.
    """
    ratios, parts = [], []
    for one in observations:
        parts.append(one.part)
        if not one.n_train or not one.n_valid or one.n_train < 0 or one.n_valid < 0:
            return None
        groups = one.n_valid_groups / one.n_train_groups if one.n_valid_groups and one.n_train_groups else 0.0
        ratios.append(max(one.n_valid / one.n_train, groups))
    if not ratios:
        return None
    ratio = math.fsum(ratios) / len(ratios)
    known = [part for part in parts if part is not None]
    disjoint = find_overlap(known, 1 + 1 / ratio) if len(known) == len(parts) else None
    return ratio if disjoint is None else min(ratio, disjoint)


LEAST_WINDOWS = 3  # of time: two cannot show whether neighbors are alike
# Few groups cannot show that their differences are skewed. Drawn again and again, they look surer than they are.
LEAST_GROUPS = 20
LEAST_GROUPS_IN_FOLDS = 10  # with folds, in which each group is validated on once


def in_order(side: AnySide) -> list[Repeat]:
    """The repeats; windows of time in the order of time, since neighbors may be alike."""
    if any(one.kind == "time" for one in side.values()):
        return sorted(side, key=lambda repeat: (repeat.fold or 0, repeat.seed))
    return list(side)


def find_design(side: AnySide, test: TestName) -> Design | None:
    """How the splits of a side depend on each other; None where they are random."""
    first = next(iter(side.values()), None)
    if first is None or first.kind == "random":
        return None
    what = "windows of time" if first.kind == "time" else "splits by group"
    if test != "corrected":
        return Design(refusal=f"The test '{test}' treats splits as independent, which {what} are not.")
    if first.kind == "group":
        return _groups(side)
    count = len(by_split(side))
    too_few = f"{count} windows of time are too few for a test: {LEAST_WINDOWS} are needed."
    return Design(ordered=True, refusal=too_few if count < LEAST_WINDOWS else "")


def _groups(side: AnySide) -> Design:
    """Splits that share groups tell the spread no better than the groups themselves could."""
    count = min((one.n_train_groups or 0) + (one.n_valid_groups or 0) for one in side.values())
    folded = all(repeat.fold is not None for repeat in side) and len({repeat.seed for repeat in side}) == 1
    least = LEAST_GROUPS_IN_FOLDS if folded else LEAST_GROUPS
    refusal = ""
    if count < least:
        folds = "" if folded else f", or {LEAST_GROUPS_IN_FOLDS} with each of them validated on once (--cv 5)"
        refusal = f"{count} groups are too few for a test: {least} are needed{folds}."
    return Design(most_freedom=min(MOST_FREEDOM, max(count - 1, 1)), refusal=refusal)
