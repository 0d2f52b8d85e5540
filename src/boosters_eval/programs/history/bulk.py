"""Verdicts on many series at once: the pairs of runs with the same repeats, as most nightly runs have.

`compare.against` judges one pair, and everything that is unusual; the answers are the same, a hundred times as fast.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from boosters_eval.metrics.catalog import RESOURCES
from boosters_eval.programs.benchmark.comparisons import resolution_of
from boosters_eval.programs.history.compare import ALPHA, NOT_COMPARABLE
from boosters_eval.programs.history.records import loaded
from boosters_eval.stats.observations import ASSUMED_RATIO, Observation, split_ratio
from boosters_eval.stats.significance import Criteria, verdicts_of_scores, verdicts_of_times

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from boosters_eval.programs.history.records import SeriesRow
    from boosters_eval.stats.significance import Verdict

Pair = tuple["SeriesRow", "SeriesRow"]


class SplitsKnown(NamedTuple):
    """What the repeats of a row, which many rows share, mean for a test."""

    ratio: float
    n_valid: tuple[int | None, ...]


def judge_alike(pairs: Sequence[Pair]) -> dict[tuple[int, int], dict[str, str]]:
    """The verdicts on rows against the rows before them, by line and run and then metric, where that is certain."""
    groups: dict[tuple[str, str], list[Pair]] = defaultdict(list)
    for row, before in pairs:
        if row.names == before.names and row.repeats == before.repeats and row.failed <= before.failed:
            groups[row.names, row.repeats].append((row, before))
    found: dict[tuple[int, int], dict[str, str]] = {(row.line, row.run): {} for row, _ in pairs}
    for group in groups.values():
        splits = _splits(group[0][0].repeats)
        if splits is not None:
            _judge(group, splits, found)
    return found


def _judge(group: list[Pair], splits: SplitsKnown, found: dict[tuple[int, int], dict[str, str]]) -> None:
    names = group[0][0].measures()
    shape = (len(group), len(names), len(splits.n_valid))
    after, before = (
        np.frombuffer(b"".join(pair[side].numbers for pair in group), dtype="<f8").reshape(shape) for side in (0, 1)
    )
    identical = np.array([_same_predictions(*pair) for pair in group])
    fair = np.array([row.is_fair() and old.is_fair() for row, old in group])
    for index, (name, higher, _, _) in enumerate(names):
        if higher is None:
            continue
        a, b = after[:, index], before[:, index]
        made = _verdicts(name, a, b, splits, identical, higher=higher)
        if name.endswith("_time_s"):
            whole = ~(np.isnan(a) | np.isnan(b)).any(axis=1)
            for place in np.flatnonzero(~fair):
                made[place] = NOT_COMPARABLE if whole[place] else None
        for (row, _), verdict in zip(group, made, strict=True):
            if verdict is not None:
                found[row.line, row.run][name] = verdict


def _verdicts(
    name: str,
    a: NDArray[np.float64],
    b: NDArray[np.float64],
    splits: SplitsKnown,
    identical: NDArray[np.bool_],
    *,
    higher: bool,
) -> list[str | None]:
    made: Sequence[Verdict | None]
    if name in RESOURCES:
        made = verdicts_of_times(a, b, Criteria(higher, "paired", ALPHA))
    else:
        steps = [resolution_of(name, rows) for rows in set(splits.n_valid)]
        known = [step for step in steps if step is not None]
        made = verdicts_of_scores(
            a,
            b,
            Criteria(higher, alpha=ALPHA),
            test_train_ratio=splits.ratio,
            resolution=max(known) if len(known) == len(steps) else None,
            identical=identical,
        )
    return list(made)


def _same_predictions(row: SeriesRow, before: SeriesRow) -> bool:
    return row.predictions() != "" and row.predictions() == before.predictions()


@lru_cache(maxsize=256)
def _splits(text: str) -> SplitsKnown | None:
    """None if the splits are not random, not recorded, or the same for several seeds."""
    _, repeats = loaded(text)
    observations = [
        Observation(0.0, split, n_train, n_valid)
        for _, _, split, n_train, n_valid, kind, *_ in repeats
        if split and kind == "random"
    ]
    distinct = {one.split_digest for one in observations}, {(seed, fold) for seed, fold, *_ in repeats}
    if len(repeats) < 2 or any(len(one) < len(repeats) for one in distinct):
        return None
    return SplitsKnown(split_ratio(observations) or ASSUMED_RATIO, tuple(one.n_valid for one in observations))
