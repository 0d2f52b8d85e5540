"""Which test holds its level on splits of each kind, and on which splits none does.

The bounds are from the simulations in docs/statistics.md: two equal learners must not be told apart in more than
about 5 % of cases.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.stats.inference import MOST_FREEDOM, Design
from boosters_eval.stats.observations import by_split

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boosters_eval.core.repeat import Repeat
    from boosters_eval.stats.observations import Observation
    from boosters_eval.stats.significance import TestName

LEAST_WINDOWS = 3  # of time: two cannot show whether neighbors are alike
# Few groups cannot show that their differences are skewed. Drawn again and again, they look surer than they are.
LEAST_GROUPS = 20
LEAST_GROUPS_IN_FOLDS = 10  # with folds, in which each group is validated on once


def in_order(side: Mapping[Repeat, Observation]) -> list[Repeat]:
    """The repeats; windows of time in the order of time, since neighbors may be alike."""
    if any(one.kind == "time" for one in side.values()):
        return sorted(side, key=lambda repeat: (repeat.fold or 0, repeat.seed))
    return list(side)


def design_of(side: Mapping[Repeat, Observation], test: TestName) -> Design | None:
    """How the splits of a side depend on each other; None where they are random."""
    first = next(iter(side.values()), None)
    if first is None or first.kind == "random":
        return None
    what = "windows of time" if first.kind == "time" else "splits by group"
    if test != "corrected":
        return Design(refusal=f"The test '{test}' takes splits for independent, which {what} are not.")
    return _windows(side) if first.kind == "time" else _groups(side)


def _windows(side: Mapping[Repeat, Observation]) -> Design:
    count = len(by_split(side))
    too_few = f"{count} windows of time are too few for a test: {LEAST_WINDOWS} are needed."
    return Design(ordered=True, refusal=too_few if count < LEAST_WINDOWS else "")


def _groups(side: Mapping[Repeat, Observation]) -> Design:
    """Splits that share groups tell the spread no better than the groups themselves could."""
    counts = {(one.n_train_groups or 0) + (one.n_valid_groups or 0) for one in side.values()}
    count = min(counts)
    folded = all(repeat.fold is not None for repeat in side) and len({repeat.seed for repeat in side}) == 1
    least = LEAST_GROUPS_IN_FOLDS if folded else LEAST_GROUPS
    refusal = ""
    if count < least:
        folds = "" if folded else f", or {LEAST_GROUPS_IN_FOLDS} with each of them validated on once (--cv 5)"
        refusal = f"{count} groups are too few for a test: {least} are needed{folds}."
    return Design(most_freedom=min(MOST_FREEDOM, max(count - 1, 1)), refusal=refusal)
