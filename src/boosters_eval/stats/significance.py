"""Is one side better than the other? One of four verdicts, from paired splits that share data.

The default test is the paired one with Nadeau and Bengio's correction: both sides share each split, and the
splits share rows. Welch's test, which the RFC specifies, is available by name.

A verdict is read off the interval that is printed: inside the region of practical equivalence, beyond zero, or neither.
The intervals of a table hold together (Bonferroni over its pairs), so no verdict can contradict its interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from boosters_eval.core.errors import UnknownNameError
from boosters_eval.stats import inference
from boosters_eval.stats.inference import StatisticsInputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boosters_eval.stats.inference import Design, FittedTest, FloatArray
    from boosters_eval.stats.rows import RowTest

    _Scores = Sequence[float] | FloatArray

TestName = Literal["rows", "corrected", "paired", "welch", "wilcoxon"]
Verdict = Literal["better", "worse", "equivalent", "inconclusive"]
DEFAULT_ALPHA = 0.05
DEFAULT_ROPE = 0.01

_OPPOSITE: dict[Verdict, Verdict] = {"better": "worse", "worse": "better"}


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of a with b. Every number is a minus b, or a over b; the verdict is from a's point of view."""

    verdict: Verdict
    test: TestName
    n: int  # splits that both have
    alpha: float
    rope: float  # region of practical equivalence, relative to the error
    p_value: float | None = None  # two-sided, of "no difference"
    p_adjusted: float | None = None  # times the number of tests in the table
    mean_a: float | None = None
    mean_b: float | None = None
    difference: float | None = None  # in the metric's unit
    percent: float | None = None  # of b's error
    # Of the difference, or of the ratio where there is one. All intervals of a table hold together at 1 - alpha.
    interval: tuple[float, float] | None = None
    ratio: float | None = None  # a over b, for times and memory
    min_detectable: float | None = None  # in the metric's unit, or a relative change where there is a ratio
    prob_better: float | None = None
    could_reject: bool = False  # whether this many splits can reach alpha at all
    note: str = ""
    best: float = 0.0  # the value without any error
    margin: float | None = None  # region of practical equivalence in the metric's unit, where it was given so
    region: float | None = None  # the same as the verdict took it; of a ratio, as a share
    evidence: RowTest | None = None  # where rows were tested: what more splits would show

    @property
    def percent_interval(self) -> tuple[float, float] | None:
        if self.interval is None or not self.error_b:
            return None
        low, high = self.interval
        if self.ratio is not None:
            return 100 * (low - 1), 100 * (high - 1)
        return 100 * low / self.error_b, 100 * high / self.error_b

    @property
    def min_detectable_percent(self) -> float | None:
        if self.min_detectable is None or not self.error_b:
            return None
        return 100 * self.min_detectable / (1.0 if self.ratio is not None else self.error_b)

    @property
    def error_b(self) -> float | None:
        """How far b is from the best value: RMSE itself, but 1 - AUC. Relative differences are relative to it."""
        return None if self.mean_b is None else abs(self.mean_b - self.best)

    def flipped(self) -> Comparison:
        """The same comparison from b's point of view."""
        ratio = None if self.ratio is None else 1 / self.ratio
        interval = self.interval
        if interval is not None:
            low, high = interval
            interval = (0.0 - high, 0.0 - low) if ratio is None else (1 / high, 1 / low)
        return replace(
            self,
            verdict=_OPPOSITE.get(self.verdict, self.verdict),
            mean_a=self.mean_b,
            mean_b=self.mean_a,
            difference=None if self.difference is None else 0.0 - self.difference,
            percent=_percent(self.mean_b, self.mean_a, self.best) if ratio is None else 100 * (ratio - 1),
            interval=interval,
            ratio=ratio,
            prob_better=None if self.prob_better is None else 1 - self.prob_better,
        )


@dataclass(frozen=True, slots=True)
class Criteria:
    higher_is_better: bool
    test: TestName = "corrected"
    alpha: float = DEFAULT_ALPHA
    rope: float = DEFAULT_ROPE
    best: float = 0.0  # the value without any error, from which errors are measured
    margin: float | None = None  # region of practical equivalence in the metric's unit, instead of `rope`

    def __post_init__(self) -> None:
        """Refuse criteria that no verdict can be based on."""
        if self.test not in get_args(TestName):
            raise UnknownNameError("test", self.test, get_args(TestName))
        if not 0 < self.alpha < 1:
            raise StatisticsInputError(f"The 'alpha' parameter must be between 0 and 1. Got {self.alpha} instead.")
        if not 0 <= self.rope < math.inf:
            raise StatisticsInputError(f"The 'rope' parameter must be 0 or more. Got {self.rope} instead.")
        if self.margin is not None and not 0 <= self.margin < math.inf:
            raise StatisticsInputError(f"The 'margin' parameter must be 0 or more. Got {self.margin} instead.")

    def region(self, mean_a: float, mean_b: float) -> float:
        """The region of practical equivalence in the metric's unit: a share of the mean error of both sides."""
        if self.margin is not None:
            return self.margin
        return self.rope * (abs(mean_a - self.best) + abs(mean_b - self.best)) / 2

    def refusal(self, note: str) -> PendingComparison:
        return PendingComparison(Comparison("inconclusive", self.test, 0, self.alpha, self.rope, note=note), self)


@dataclass(frozen=True, slots=True)
class PendingComparison:
    """A comparison before the correction for its table: the fitted test, or the reason why no test was possible."""

    blank: Comparison  # all that is known without a p-value
    criteria: Criteria
    fitted: FittedTest | None = None
    margin: float = 0.0  # the region of practical equivalence in the test's unit
    answered: bool = False  # without a test: a single split, or identical values

    def noted(self, *sentences: str) -> PendingComparison:
        """The same comparison with further notes."""
        return replace(self, blank=replace(self.blank, note=_joined(self.blank.note, *sentences)))


def compare_pair(
    a: _Scores,
    b: _Scores,
    *,
    higher_is_better: bool,
    test_train_ratio: float | None = None,
    resolution: float | None = 0.0,
    test: TestName = "corrected",
    alpha: float = DEFAULT_ALPHA,
    rope: float = DEFAULT_ROPE,
    best: float = 0.0,
    margin: float | None = None,
) -> Comparison:
    """Compare the scores of two sides; the same position is the same split (Welch's test needs no pairs).

    `test_train_ratio` is n_test / n_train of the splits; the corrected test needs it. `resolution` is what one test
    row changes in a score: 1 / n_test for accuracy, 0 for a metric that can take any value, None where it is unknown.
    `rope` is relative to the error, which is the distance from `best`; a `margin` in the metric's unit replaces it.
    """
    criteria = Criteria(higher_is_better, test, alpha, rope, best, margin)
    return conclude([prepare(a, b, criteria, test_train_ratio=test_train_ratio, resolution=resolution)])[0]


def compare_times(a: _Scores, b: _Scores, *, alpha: float = DEFAULT_ALPHA, rope: float = DEFAULT_ROPE) -> Comparison:
    """Compare interleaved measurements (seconds, megabytes; less is better) by their ratio.

    Repeated measurements do not share data as splits do, so the test is the plain paired one, on log ratios.
    """
    criteria = Criteria(higher_is_better=False, test="paired", alpha=alpha, rope=rope)
    return conclude([prepare_times(a, b, criteria)])[0]


def prepare(
    a: _Scores,
    b: _Scores,
    criteria: Criteria,
    *,
    test_train_ratio: float | None,
    resolution: float | None = 0.0,
    identical: bool = False,
    design: Design | None = None,
) -> PendingComparison:
    """Everything up to the correction for the table; `identical` says that the predictions are."""
    if criteria.test == "rows":  # which cannot serve here
        criteria = replace(criteria, test="corrected")
    if criteria.test == "corrected" and not (test_train_ratio and 0 < test_train_ratio < math.inf):
        raise StatisticsInputError(
            "The 'test_train_ratio' parameter of the corrected test must be a positive number "
            f"(n_test / n_train). Got {test_train_ratio!r} instead."
        )
    if resolution is not None and not 0 <= resolution < math.inf:
        raise StatisticsInputError(f"The 'resolution' parameter must be 0 or more. Got {resolution} instead.")
    left, right = _values(a, b, paired=criteria.test != "welch")
    begun = begin_comparison(left, right, criteria, resolution, identical=identical)
    if begun.answered:
        return begun
    blank = begun.blank
    if design is not None and design.refusal:
        return begun.noted(design.refusal)
    margin = criteria.region(float(left.mean()), float(right.mean()))
    fitted = _fit(left, right, criteria.test, test_train_ratio or 0.0, resolution or 0.0, design)
    return PendingComparison(_with_variance_note(blank, left, right, fitted), criteria, fitted, margin)


def begin_comparison(
    a: FloatArray, b: FloatArray, criteria: Criteria, resolution: float | None = 0.0, *, identical: bool = False
) -> PendingComparison:
    """What the values of each split say before any test; `answered` if that is all."""
    blank = _blank(a, b, criteria)
    known = _without_test(blank, a, b, criteria, resolution, identical=identical)
    return replace(known, answered=True) if known else PendingComparison(blank, criteria)


def prepare_times(a: _Scores, b: _Scores, criteria: Criteria) -> PendingComparison:
    """Everything up to the correction for the table, on the log ratio."""
    left, right = _values(a, b, paired=True)
    least = min(left.min(), right.min())
    if least <= 0:
        raise StatisticsInputError(
            f"The 'a' and 'b' parameters of compare_times must be positive. Got {least} instead."
        )
    logs = np.log(left) - np.log(right)
    ratio = math.exp(float(logs.mean()))
    blank = replace(_blank(left, right, criteria), ratio=ratio, percent=100 * (ratio - 1))
    known = _without_test(blank, left, right, criteria)
    if known:
        return known
    fitted: FittedTest = inference.paired(logs)
    if inference.spread_is_zero(logs, 1.0):
        fitted = inference.Constant(float(logs.mean()), inference.sign_flip_floor(len(logs)))
    noted = _with_variance_note(blank, left, right, fitted)
    return PendingComparison(noted, criteria, fitted, math.log1p(criteria.rope))


def conclude(family: Sequence[PendingComparison]) -> list[Comparison]:
    """The verdicts of one table, whose tests share alpha."""
    tests = sum(pending.fitted is not None for pending in family)
    return [pending.blank if pending.fitted is None else _verdict(pending, pending.fitted, tests) for pending in family]


def _verdict(pending: PendingComparison, fitted: FittedTest, tests: int) -> Comparison:
    blank, criteria = pending.blank, pending.criteria
    level = blank.alpha / tests
    interval = fitted.interval(level)
    p_value = min(1.0, 2 * min(fitted.greater(0.0), fitted.less(0.0)))
    above = fitted.positive()
    detectable = fitted.detectable(level)
    shown, region = interval, pending.margin
    if blank.ratio is not None:
        region = math.expm1(region)
        shown = interval and (math.exp(interval[0]), math.exp(interval[1]))
        detectable = None if detectable is None else math.expm1(detectable)
    verdict = _read(interval, pending.margin, higher_is_better=criteria.higher_is_better)
    return replace(
        blank,
        verdict=verdict,
        p_value=p_value,
        p_adjusted=min(1.0, tests * p_value),
        interval=shown,
        min_detectable=detectable,
        prob_better=above if criteria.higher_is_better else 1 - above,
        could_reject=fitted.attainable <= level,
        region=region,
        note=_joined(blank.note, _reservation(verdict, fitted, blank.n, rejected=p_value <= level, level=level)),
    )


def _read(interval: tuple[float, float] | None, margin: float, *, higher_is_better: bool) -> Verdict:
    if interval is None:
        return "inconclusive"
    low, high = interval
    if -margin <= low and high <= margin:
        return "equivalent"
    if low <= 0 <= high:
        return "inconclusive"
    return "better" if (low > 0) == higher_is_better else "worse"


def _reservation(verdict: Verdict, fitted: FittedTest, n: int, *, rejected: bool, level: float) -> str:
    """What a reader of the verdict should know besides; empty if there is nothing."""
    if verdict == "equivalent" and rejected:
        return "The difference is significant but inside the region of practical equivalence."
    if verdict == "inconclusive" and fitted.attainable > level:
        # Wilcoxon's test learns nothing from a difference of zero.
        kept = int(np.count_nonzero(fitted.differences)) if isinstance(fitted, inference.SignedRank) else n
        evidence = f"{n} splits" if kept == n else f"{kept} differences that are not zero"
        return f"n too small: the smallest p-value of {evidence} is {fitted.attainable:.3g}."
    if verdict == "inconclusive" and rejected:
        return "The p-value leaves out differences of zero; the interval, which decides, does not."
    return ""


def _joined(*sentences: str) -> str:
    return " ".join(filter(None, sentences))


def _with_variance_note(blank: Comparison, a: FloatArray, b: FloatArray, fitted: FittedTest) -> Comparison:
    if _same(a, b):
        return replace(blank, note=f"Identical scores in all {blank.n} splits, which does not prove identical models.")
    if isinstance(fitted, inference.Constant):
        return replace(blank, note="Zero variance: the difference is the same in every split.")
    return blank


def _blank(a: FloatArray, b: FloatArray, criteria: Criteria) -> Comparison:
    mean_a, mean_b = float(a.mean()), float(b.mean())
    return Comparison(
        verdict="inconclusive",
        test=criteria.test,
        n=min(len(a), len(b)),
        alpha=criteria.alpha,
        rope=criteria.rope,
        mean_a=mean_a,
        mean_b=mean_b,
        difference=mean_a - mean_b,
        percent=_percent(mean_a, mean_b, criteria.best),
        best=criteria.best,
        margin=criteria.margin,
    )


def _without_test(
    blank: Comparison,
    a: FloatArray,
    b: FloatArray,
    criteria: Criteria,
    resolution: float | None = 0.0,
    *,
    identical: bool = False,
) -> PendingComparison | None:
    """The answers that need no test: for a single split, and for scores or predictions that are identical."""
    same = _same(a, b)
    if blank.n == 1:
        note = "One split only: its variance is unknown" + (", but the scores are identical." if same else ".")
        return PendingComparison(replace(blank, note=note), criteria)
    if same and (identical or resolution == 0):
        unit = 1.0 if blank.ratio is not None else 0.0
        note = f"Identical {'predictions' if identical else 'scores'} in all {blank.n} splits."
        answer = replace(blank, verdict="equivalent", interval=(unit, unit), prob_better=0.5, note=note)
        return PendingComparison(answer, criteria)
    if same and resolution is None:
        note = (
            f"Identical scores in all {blank.n} splits, which does not prove identical models: "
            "the resolution of this metric is unknown."
        )
        return PendingComparison(replace(blank, prob_better=0.5, could_reject=True, note=note), criteria)
    return None


def _same(a: FloatArray, b: FloatArray) -> bool:
    return len(a) == len(b) and bool(np.all(np.abs(a - b) <= max(inference.SAME * _scale(a, b), inference.TINY)))


def _fit(
    a: FloatArray, b: FloatArray, test: TestName, overlap: float, resolution: float, design: Design | None
) -> FittedTest:
    scale = _scale(a, b)
    if test == "welch":
        if not resolution and inference.spread_is_zero(a, scale) and inference.spread_is_zero(b, scale):
            floor = inference.permutation_floor(len(a), len(b))
            return inference.Constant(float(a.mean() - b.mean()), floor)
        return inference.welch(a, b, resolution=resolution)
    differences = a - b
    constant = inference.spread_is_zero(differences, scale)
    if constant and not resolution:
        return inference.Constant(float(differences.mean()), inference.sign_flip_floor(len(a)))
    if test == "wilcoxon" and not constant:
        return inference.signed_rank(differences, resolution=resolution)
    overlap = overlap if test == "corrected" else 0.0
    return inference.paired(differences, overlap=overlap, resolution=resolution, design=design)


def _values(a: _Scores, b: _Scores, *, paired: bool) -> tuple[FloatArray, FloatArray]:
    left, right = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    for name, array, given in (("a", left, a), ("b", right, b)):
        if array.ndim != 1 or not array.size or not (np.abs(array) < inference.HUGE).all():
            raise StatisticsInputError(
                f"The '{name}' parameter of a comparison must hold finite numbers. Got {given!r} instead."
            )
    if paired and len(left) != len(right):
        raise StatisticsInputError(
            "The 'a' and 'b' parameters of a paired comparison must have the same length. "
            f"Got {len(left)} and {len(right)} values instead."
        )
    return left, right


def _scale(a: FloatArray, b: FloatArray) -> float:
    return float(max(np.abs(a).max(), np.abs(b).max()))


def _percent(mean_a: float | None, mean_b: float | None, best: float = 0.0) -> float | None:
    if mean_a is None or mean_b is None or mean_b == best:
        return None
    return 100 * (mean_a - mean_b) / abs(mean_b - best)
