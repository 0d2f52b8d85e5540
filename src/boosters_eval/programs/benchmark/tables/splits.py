"""How a benchmark was split, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.core.text import clean, count_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from boosters_eval.runners.result import BenchmarkResult


def described(results: Iterable[BenchmarkResult]) -> str:
    """The splits of a benchmark in words: "5 seeds", "1 seed x 5 folds", "5 windows of time by date"."""
    found = list(results)
    seeds, folds = len({r.seed for r in found}), len({r.fold for r in found if r.fold is not None})
    split = next((result.split for result in found if result.split is not None), None)
    if split is not None and split.kind == "time":
        windows = f"{count_of(folds, 'window')} of time by {clean(split.column)}"
        return windows if seeds == 1 else f"{windows} x {seeds} model seeds"
    text = count_of(seeds, "seed") + (f" x {count_of(folds, 'fold')}" if folds else "")
    return text if split is None else f"{text}, groups of {clean(split.column)} kept whole"


def in_words(split: str) -> str:
    """A split that is not random, for people who did not choose it."""
    kind, _, column = split.partition(":")
    if kind == "time":
        return f"by time ({column}): trained on the rows before each window, validated on it"
    return f"by group ({column}): no group is on both sides"
