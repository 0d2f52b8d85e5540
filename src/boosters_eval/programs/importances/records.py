"""What one cell explains of its model: small numbers here, and arrays by their digest in the folder of the run.

An array lies in `<home>/runs/<run_id>/arrays`, by `engine.artifacts`; `Explanations` (results.py) loads it.
Throughout, n are the rows that were measured, p the columns of the data, and outputs the raw scores of a row: one, or
one for each class or quantile.
"""

from __future__ import annotations

from typing import Annotated, Literal

from annotated_types import Ge, MinLen
from pydantic import ConfigDict, Field

from boosters_eval.core.model import FileModel, Model
from boosters_eval.runners.result import BenchmarkResult

Kind = Literal["permutation", "gain", "split", "shap"]
KINDS: tuple[Kind, ...] = ("permutation", "gain", "split", "shap")


class _Part(FileModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class MeasuredKind(_Part):
    """One kind of importance: the digest of its float64 array, why the library does not offer it, or its fault.

    permutation (repeats, units): how much worse the primary metric is on the measured rows when the columns of a unit
        are shuffled; larger is more important, whichever way the metric is better.
    gain (p,): the sum of the gains of a column's splits, in the library's own unit.
    split (p,): how many splits use a column.
    shap (n, p + 1, outputs): attributions to the raw score, the base value last. A row adds up to `Explanation.raw`.
    """

    array: str | None = None
    reason: str | None = None
    fault: str | None = None  # what is wrong with what the library gave: it cannot be used, and its check fails


class FeatureUnit(_Part):
    """What is ranked: a column, or columns that belong together. Gains, splits and attributions of a unit add up."""

    name: str
    columns: Annotated[tuple[Annotated[int, Ge(0)], ...], MinLen(1)]


class Additivity(_Part):
    """How far sums are from what they must be: the largest absolute difference, and what it is to be judged by."""

    error: Annotated[float, Ge(0)]
    scale: Annotated[float, Ge(0)]  # the largest absolute value of what the sums must be
    n_rows: Annotated[int, Ge(1)]


class Probe(_Part):
    """A small extra fit on some training rows, with one constant column appended, which nothing may be attributed to.

    The model of the cell itself is not touched by it: there, a further column could change what is subsampled.
    """

    n_rows: Annotated[int, Ge(1)]
    n_rounds: Annotated[int, Ge(1)]
    # The largest absolute value that each kind gives to the constant column; exactly 0 in a sound library.
    constant: dict[Kind, Annotated[float, Ge(0)]] = Field(default_factory=dict)
    additivity: Additivity | None = None  # base and attributions against the raw scores of the same small model


class Explanation(BenchmarkResult):
    """The result of a fit, the very one that `compare` scores, and what its model holds to be important."""

    kinds: dict[Kind, MeasuredKind]  # those that were asked for
    # On the measured rows, all of them arrays:
    rows: str  # int64 (n,): their numbers in the data set
    x: str  # float32 (n, p): their values; categories as codes, missing values as NaN
    y: str  # float64 (n,): their targets
    predictions: str  # float64 (n,), or (n, classes or quantiles): as they are scored
    raw: str | None = None  # float64 (n, outputs): raw scores; None: shap was not asked for, or is not offered
    n_rows: Annotated[int, Ge(1)]  # n
    sampled: str | None = None  # a sentence, where n is less than n_valid

    feature_names: tuple[str, ...]  # of the p columns
    categorical: tuple[int, ...] = ()
    category_names: str | None = None  # uint8: the names by column, as JSON; None: there are none
    constant: tuple[int, ...] = ()  # columns with one and the same value in all training rows
    units: tuple[FeatureUnit, ...]  # what permutation shuffles, and what is ranked: every column is in one

    permutations: Annotated[int, Ge(1)]  # how often each unit is shuffled
    measured_score: float | None = None  # the primary metric on the measured rows, before anything is shuffled
    higher_is_better: bool  # of the primary metric

    # Of each attribution with the sum of its interactions, on a few rows; of more than 32 columns by the probe's model.
    interactions: Additivity | None = None
    no_interactions: str | None = None  # why there are none
    interactions_fault: str | None = None  # what is wrong with those that the library gave
    probe: Probe | None = None
    no_probe: str | None = None

    seconds: dict[str, Annotated[float, Ge(0)]] = Field(default_factory=dict)  # by part: fit, permutation, shap, ...
    library_seconds: Annotated[float, Ge(0)] = 0.0  # of all calls into the library, without those of the probe
    cell_seconds: Annotated[float, Ge(0)] = 0.0  # of the cell from first to last, those calls included

    @property
    def digests(self) -> tuple[str, ...]:
        measured = (found.array for found in self.kinds.values())
        every = (self.rows, self.x, self.y, self.predictions, self.raw, self.category_names, *measured)
        return tuple(digest for digest in every if digest is not None)


CheckName = Literal["local accuracy", "constant column", "interactions"]
CheckVerdict = Literal["holds", "fails", "not offered", "not checked"]
AgreementReading = Literal["as much", "less", "cannot be told", ""]


class CheckFinding(Model):
    """Whether a library keeps to its own definition of a kind of importance, over all its cells of a benchmark."""

    library: str
    check: CheckName
    kind: Kind  # the kind whose values a failure casts out
    error: float | None = None  # the largest; None: there is none, or it is not a number
    scale: float | None = None  # what the error is judged by; None: it must be 0
    tolerance: float | None = None  # of the error over the scale, or of the error itself
    verdict: CheckVerdict
    text: str  # in words


class FeatureImportance(Model):
    """How important a library holds a feature to be, over the seeds."""

    kind: Kind
    library: str
    feature: str
    mean: float | None  # in the library's unit; of permutation, how much worse the metric gets. None: not finite
    std: float | None = None
    share: float | None = None  # of the sum over the features, for display alone; None of permutation
    low: float | None = None  # the interval of the share, or of permutation's mean
    high: float | None = None
    rank: float  # the mean over the seeds; 1 is the most important
    n: int


class PairAgreement(Model):
    """How far two libraries agree on each split, or, where `a` is `b`, one library with itself over pairs of seeds."""

    kind: Kind | Literal["predictions"]
    a: str
    b: str
    n: int  # splits, or pairs of them
    tau: float | None = None  # means over the splits; None: not defined
    low: float | None = None  # the 95 % interval of tau
    high: float | None = None
    overlap: float | None = None  # of the `top` most important features
    top: int | None = None
    cosine: float | None = None  # of mean |SHAP|
    distance: float | None = None  # the median over the rows of the distance of attributions
    correlation: float | None = None  # of predictions
    largest: float | None = None  # the largest difference of an attribution or a prediction, in its unit
    row: int | None = None  # where that is, in the data set
    reading: AgreementReading = ""  # held against the agreement of each with itself; empty: there is nothing to hold
    reason: str = ""  # why there is no number

    @property
    def own(self) -> bool:
        return self.a == self.b


class CorrelatedColumns(Model):
    """Two columns that tell the same: ranks among them mean little."""

    a: str
    b: str
    value: float
    measure: Literal["Spearman's correlation", "Cramér's V"]

    @property
    def text(self) -> str:
        return f"{self.a} is {abs(self.value):.3f} correlated with {self.b}: ranks among them mean little."


class DisputedRow(Model):
    """A row on which libraries differ most."""

    by: Literal["predictions", "attributions"]
    row: int  # its number in the data set
    seed: int
    fold: int | None = None
    difference: float  # of one prediction or attribution, between the two libraries that differ most
    output: int | None = None  # of several classes or quantiles, the one that the difference is of
    target: float | None
    predictions: dict[str, tuple[float | None, ...]]
    values: dict[str, float | str | None]  # of every column; a category is its name, or its code where it has none
    # By library, of the same features: those among the largest of any library; of several outputs, to `output`
    attributions: dict[str, dict[str, float]]


class SwarmFeature(Model):
    """A feature's attributions in some rows of the first split, by library."""

    feature: str
    categorical: bool
    values: tuple[float | None, ...]
    attributions: dict[str, tuple[float, ...]]


class BenchmarkFindings(Model):
    """All findings on one benchmark."""

    benchmark: str
    dataset: str
    libraries: tuple[str, ...]
    seeds: tuple[int, ...]
    n_rows: int
    n_features: int
    groups: dict[str, tuple[str, ...]] = Field(default_factory=dict)  # columns that are ranked together, by their name
    classes: bool = False  # whether targets are classes
    outputs: tuple[str, ...] = ()  # the names of several outputs, such as "class 0"; empty where there is one
    metric: str | None
    checks: tuple[CheckFinding, ...]
    importances: tuple[FeatureImportance, ...]
    agreement: tuple[PairAgreement, ...]
    correlated: tuple[CorrelatedColumns, ...]
    disputed: tuple[DisputedRow, ...]
    swarm: tuple[SwarmFeature, ...]
    n_swarm: int  # rows of the swarm
    not_offered: dict[str, dict[str, str]]  # by library and kind, why
    notes: tuple[str, ...]

    @property
    def output_noun(self) -> str:
        return "class" if self.classes else "output"

    @property
    def all_outputs(self) -> str:
        return f"{len(self.outputs)} {'classes' if self.classes else 'outputs'}"

    def failed(self, library: str) -> tuple[CheckFinding, ...]:
        return tuple(check for check in self.checks if check.library == library and check.verdict == "fails")

    def broken(self, kind: str) -> list[str]:
        """The libraries that fail a check of a kind."""
        return [name for name in self.libraries if any(check.kind == kind for check in self.failed(name))]

    def sound(self, kind: str) -> tuple[str, ...]:
        """The libraries that offer a kind and fail no check of it."""
        offered = {found.library for found in self.importances if found.kind == kind}
        return tuple(name for name in self.libraries if name in offered.difference(self.broken(kind)))

    def pairs(self, kind: str) -> list[PairAgreement]:
        """The agreement of each two libraries by one kind."""
        return [pair for pair in self.agreement if pair.kind == kind and not pair.own]

    def own(self, kind: str, library: str) -> PairAgreement | None:
        return next((pair for pair in self.agreement if pair.own and (pair.kind, pair.a) == (kind, library)), None)

    def marked(self, library: str) -> str:
        """A library's name, with an asterisk if it fails a check."""
        return f"{library} *" if self.failed(library) else library
