"""Which repetition of the same work: the one spelling of a seed and its fold."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, Self

from boosters_eval.core.errors import ConfigError

SplitKind = Literal["random", "time", "group"]  # how the rows of a repeat are divided

_NAME = re.compile(r"(-?\d+)(?:/(\d+))?")


MAX_SEEDS = 10_000  # of one spec


class Repeat(NamedTuple):
    """A seed, and the fold where the split has folds."""

    seed: int
    fold: int | None = None

    def __str__(self) -> str:
        """As a person reads it: "seed 42" or "seed 42, fold 1"."""
        return f"seed {self.seed}" if self.fold is None else f"seed {self.seed}, fold {self.fold}"

    @property
    def name(self) -> str:
        """As files spell it: "42" or "42/1"."""
        return f"{self.seed}" if self.fold is None else f"{self.seed}/{self.fold}"

    @classmethod
    def parse(cls, name: str) -> Self:
        """Read a name back."""
        match = _NAME.fullmatch(name)
        if match is None:
            raise ConfigError(
                f"A repeat must be a seed, with its fold where there is one, such as 42 or 42/1. Got {name!r} instead."
            )
        return cls(int(match[1]), None if match[2] is None else int(match[2]))
