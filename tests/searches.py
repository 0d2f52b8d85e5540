"""Searches over simulated versions: sequences of numbers whose changes are known, with noise as real splits have it."""

from __future__ import annotations

import math

import numpy as np

from boosters_eval.core.request import Repeat
from boosters_eval.programs.bisect.versions import Located, locate
from boosters_eval.stats.observations import Observation, Side
from boosters_eval.stats.sequential import SearchRule, Yardstick, find_shift, place

SCORES = Yardstick("rmse", higher_is_better=False, as_ratio=False, tolerance=0.01)
TIMES = Yardstick("train_time_s", higher_is_better=False, as_ratio=True, tolerance=0.05)
_ALIKE = 0.2  # the correlation of differences between 80/20 splits, which share rows: what the corrected test assumes


class Versions:
    """Versions with these means. Scores are drawn once per version and split, times anew in every step."""

    def __init__(self, rng, means, noise, yardstick=SCORES, max_seeds=50):
        self.rng, self.means, self.noise, self.yardstick = rng, means, noise, yardstick
        self.rule = SearchRule(len(means), max_seeds=max_seeds)
        self.looks = 0
        own = math.sqrt(_ALIKE) * rng.standard_normal((len(means), 1))
        self.scores = own + math.sqrt(1 - _ALIKE) * rng.standard_normal((len(means), max_seeds))
        self.splits = rng.standard_normal(max_seeds)  # how hard a split is, which all versions share

    def search(self):
        """What the ends are found to be, and where the change is, as a bisection does it."""
        last = len(self.means) - 1
        self.ends = self._until(
            (0, last),
            lambda sides: find_shift(
                *sides, self.yardstick, alpha=self.rule.seeds.level, equal_alpha=self.rule.equal_alpha
            ),
            lambda shift: shift.outcome != "undecided",
        )
        if self.ends.outcome != "changed":
            return self.ends.outcome, Located(0, last)
        found = locate(len(self.means), self._judge, self.rule.tries)
        return "changed" if found.high - found.low == 1 else "narrowed", found

    def _judge(self, low, candidate, high):
        margin = self.yardstick.margin(self.ends.comparison.mean_b)
        return self._until(
            (low, candidate, high),
            lambda sides: place(
                *sides, self.yardstick, rising=self.ends.size > 0, level=self.rule.seeds.level, margin=margin
            ),
            lambda placed: placed.settled,
        ).likeness

    def _until(self, positions, judge, settled):
        values = [self._values(position) for position in positions]
        for seeds in self.rule.seeds.schedule:
            self.looks += 1
            found = judge([_side(row[:seeds]) for row in values])
            if settled(found):
                break
        return found

    def _values(self, position):
        count = self.rule.max_seeds
        if self.yardstick.as_ratio:
            return self.means[position] * np.exp(self.noise * self.rng.standard_normal(count))
        return self.means[position] + self.noise * (self.scores[position] + 3 * self.splits)


def _side(values):
    return Side(
        (Repeat(seed), Observation(float(value), f"s{seed}", 800, 200, resolution=0.0))
        for seed, value in enumerate(values)
    )


def step(count, at, size=0.05):
    """One change, at a known place."""
    return [1.0] * at + [1.0 + size] * (count - at)
