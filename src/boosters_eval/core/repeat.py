"""Which repetition of a piece of work: the seed, and the fold where there are folds. Spelt here and nowhere else."""

from __future__ import annotations

from typing import NamedTuple, Self


class Repeat(NamedTuple):
    """One repetition."""

    seed: int
    fold: int | None = None

    @property
    def name(self) -> str:
        """As files spell it: "42", or "42/0" where there are folds."""
        return f"{self.seed}" if self.fold is None else f"{self.seed}/{self.fold}"

    @classmethod
    def parse(cls, name: str) -> Self:
        """Read `name` back."""
        seed, slash, fold = name.partition("/")
        return cls(int(seed), int(fold) if slash else None)

    def __str__(self) -> str:
        return f"seed {self.seed}" if self.fold is None else f"seed {self.seed}, fold {self.fold}"
