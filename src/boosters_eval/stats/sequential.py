"""When are there enough seeds? A rule that keeps its error rate even though it looks more than once.

The looks are fixed before the first seed runs, and each uses alpha divided by their number (the Bonferroni bound
over looks). However the looks depend on each other, the chance that any of them gives a wrong verdict is at most
alpha. Tests for independent increments would not be valid here, because splits of one data set share rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scipy.special import stdtrit

from boosters_eval.stats.inference import MOST_FREEDOM, StatisticsInputError, StudentT, freedom
from boosters_eval.stats.power import detectable_errors
from boosters_eval.stats.significance import DEFAULT_ALPHA, DEFAULT_ROPE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from boosters_eval.stats.inference import Design
    from boosters_eval.stats.significance import Comparison

FIRST_LOOK = 5
DEFAULT_MAX_SEEDS = 50
_MANY_SPLITS = 1000  # beyond these, further splits add nothing: the rows that they share limit the test


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do after a look."""

    stop: bool
    undecided: int  # pairs that further seeds could decide
    reason: str
    seeds: int = 0  # of the next look


@dataclass(frozen=True, slots=True)
class SequentialRule:
    """`compare --seeds auto`: run `schedule[0]` seeds, look, and continue to the next count until `decide` says stop.

    Every table of a look is judged with alpha=`level`, and so is the final report.
    """

    max_seeds: int = DEFAULT_MAX_SEEDS
    alpha: float = DEFAULT_ALPHA
    rope: float = DEFAULT_ROPE

    def __post_init__(self) -> None:
        """Refuse a rule that could never decide anything."""
        if self.max_seeds < 2:
            raise StatisticsInputError(f"The 'max_seeds' parameter must be at least 2. Got {self.max_seeds} instead.")

    @property
    def schedule(self) -> tuple[int, ...]:
        """The numbers of seeds at which to look: 5, 10, 20, ... and the maximum."""
        counts = []
        count = FIRST_LOOK
        while 4 * count <= 3 * self.max_seeds:  # a look just before the last one would waste part of the level
            counts.append(count)
            count *= 2
        return (*counts, self.max_seeds)

    @property
    def level(self) -> float:
        """The alpha of each look."""
        return self.alpha / len(self.schedule)

    def decide(
        self,
        look: int,
        comparisons: Iterable[Comparison],
        *,
        budget_left: bool = True,
        affordable: Callable[[int], int] | None = None,
    ) -> Decision:
        """Whether to stop after look number `look` (0 is the first), given every pair of every table.

        `affordable` says how many of the seeds of the next look the budget is enough for. A look that the budget
        brings forward takes the place of the next scheduled one.
        """
        pairs = list(comparisons)
        if any(pair.alpha != self.level for pair in pairs):
            raise StatisticsInputError(f"Each look must be judged with alpha={self.level}, the rule's level.")
        open_pairs = [pair for pair in pairs if pair.verdict == "inconclusive" and pair.n > 0]
        if not open_pairs:
            refused = sum(pair.n == 0 for pair in pairs)
            text = f"; {refused} cannot be compared" if refused else ""
            return Decision(stop=True, undecided=0, reason=f"every pair has a verdict{text}")
        if look + 1 >= len(self.schedule):
            return Decision(stop=True, undecided=len(open_pairs), reason="no more are allowed")
        if not budget_left:
            return Decision(stop=True, undecided=len(open_pairs), reason="the time budget is used up")
        following = self.schedule[look + 1]
        within = following if affordable is None else affordable(following)
        if not within:
            return Decision(stop=True, undecided=len(open_pairs), reason="the time budget is used up")
        few = "" if within == following else ", for which the time budget is enough"
        are = "is" if len(open_pairs) == 1 else "are"
        pairs_ = f"{len(open_pairs)} of {len(pairs)} pair{'' if len(pairs) == 1 else 's'} {are} inconclusive"
        reason = f"{pairs_}; continuing to {within} seeds{few}"
        return Decision(stop=False, undecided=len(open_pairs), reason=reason, seeds=within)


def splits_to_decide(
    found: Comparison,
    overlap: float,
    level: Callable[[int], float] | None = None,
    design: Design | None = None,
) -> int | None:
    """How many splits make a difference significant that stays as large and as variable as the one observed.

    `overlap` is n_test / n_train of the corrected test, `level` the alpha of a test with so many splits, by default
    that of the comparison. None if no number of splits is enough, because the rows that
    they share limit the test, or if the comparison has no interval from which the variation is known.
    """
    if found.interval is None or found.difference is None or found.n < 2:
        return None
    most = MOST_FREEDOM if design is None else design.most_freedom
    half = (found.interval[1] - found.interval[0]) / 2
    critical = float(stdtrit(freedom(found.n, overlap, most), 1 - found.alpha / 2))
    spread = half / critical / math.sqrt(1 / found.n + overlap)
    size = abs(found.difference)

    def significant(count: int) -> bool:
        fitted = StudentT(size, spread * math.sqrt(1 / count + overlap), freedom(count, overlap, most))
        return 2 * fitted.greater(0.0) <= (found.alpha if level is None else level(count))

    return next(filter(significant, range(found.n + 1, _MANY_SPLITS + 1)), None)


def detectable_with(splits: int, shown: float, n: int, *, level: float, overlap: float) -> float:
    """The difference that so many splits would show in four out of five runs, if `n` splits could show `shown`.

    How much the splits vary is known from those n only. `level` is the alpha of the test, `overlap` n_test / n_train
    of the corrected test and 0 of others. More splits of the same rows show less and less.
    """

    def errors(count: int) -> float:
        critical = float(stdtrit(freedom(count, overlap), 1 - level / 2))
        return detectable_errors(critical, count - 1, n - 1) * math.sqrt(1 / count + overlap)

    return shown * errors(splits) / errors(n)
