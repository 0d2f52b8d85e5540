"""Randomness that is the same on every platform and in every version of numpy.

Only the raw stream of PCG64 is promised to stay; what numpy's Generator makes of it is not. So uniforms,
noise and orders are made here from raw words by exact operations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WORDS_IN_NOISE = 12


class Stream:
    """A stream of random words that depends on nothing but its key."""

    def __init__(self, *key: int) -> None:
        self._bits = np.random.PCG64(np.random.SeedSequence(key))

    def words(self, count: int) -> NDArray[np.uint64]:
        """Raw 64-bit words."""
        return np.asarray(self._bits.random_raw(count), dtype=np.uint64)

    def uniform(self, count: int) -> NDArray[np.float64]:
        """Numbers in [0, 1)."""
        return (self.words(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def noise(self, count: int) -> NDArray[np.float64]:
        """Nearly normal numbers of variance 1: twelve uniforms, added exactly, without a transcendental function."""
        total = np.zeros(count)
        for _ in range(_WORDS_IN_NOISE):
            total += self.uniform(count)
        return total - _WORDS_IN_NOISE / 2

    def order(self, count: int) -> NDArray[np.int64]:
        """A permutation of 0 .. count-1."""
        return np.argsort(self.words(count), kind="stable").astype(np.int64)
