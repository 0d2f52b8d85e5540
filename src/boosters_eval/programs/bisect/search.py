"""The search itself, over positions: which candidate is judged next, and what is known in the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    CandidateAnswer = Literal["earlier", "later", "undecided", "unusable"]


@dataclass(frozen=True, slots=True)
class Located:
    """The number changed after position `low`, and not later than at position `high`."""

    low: int
    high: int
    unusable: tuple[int, ...] = ()  # of all positions that were tried
    undecided: tuple[int, ...] = ()

    @property
    def between(self) -> range:
        """The positions of which nothing is known."""
        return range(self.low + 1, self.high)


def locate(count: int, judge: Callable[[int, int, int], CandidateAnswer], tries: int) -> Located:
    """Halve the positions 0 to count - 1, whose ends are known to differ.

    `judge(low, candidate, high)` says which of the two the candidate is like. One that is unusable or undecided is
    passed over; `tries` limits how many are judged, not how many turn out to be unusable.
    """
    low, high = 0, count - 1
    unusable: list[int] = []
    undecided: list[int] = []
    while tries > 0 and (candidate := choose(low, high, {*unusable, *undecided})) is not None:
        answer = judge(low, candidate, high)
        tries -= answer != "unusable"
        if answer == "earlier":
            low = candidate
        elif answer == "later":
            high = candidate
        else:
            (unusable if answer == "unusable" else undecided).append(candidate)
    return Located(low, high, tuple(sorted(unusable)), tuple(sorted(undecided)))


def choose(low: int, high: int, passed: Collection[int]) -> int | None:
    """The candidate nearest to the middle; the more are passed over, the farther from it: broken ones are adjacent."""
    inside = range(low + 1, high)
    open_ = [position for position in inside if position not in passed]
    if not open_:
        return None
    middle = (low + high) / 2
    reach = 2 ** sum(position in passed for position in inside) / 2 - 0.5
    far = [position for position in open_ if abs(position - middle) >= reach]
    return min(far or open_, key=lambda position: abs(position - middle))
