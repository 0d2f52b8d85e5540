"""What is read from explanations, as data: every table, page and JSON file is made from these."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from boosters_eval.core.model import Model
from boosters_eval.programs.importances.records import Kind

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
        """Whether it is of a library with itself."""
        return self.a == self.b


class CorrelatedColumns(Model):
    """Two columns that tell the same: ranks among them mean little."""

    a: str
    b: str
    value: float
    measure: Literal["Spearman's correlation", "Cramér's V"]

    @property
    def text(self) -> str:
        """In one sentence."""
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
        """What one of several outputs is."""
        return "class" if self.classes else "output"

    @property
    def all_outputs(self) -> str:
        """How many outputs there are."""
        return f"{len(self.outputs)} {'classes' if self.classes else 'outputs'}"

    def failed(self, library: str) -> tuple[CheckFinding, ...]:
        """The checks that a library fails."""
        return tuple(check for check in self.checks if check.library == library and check.verdict == "fails")

    def sound(self, kind: str) -> tuple[str, ...]:
        """The libraries that offer a kind and fail no check of it."""
        offered = {found.library for found in self.importances if found.kind == kind}
        broken = {check.library for check in self.checks if check.kind == kind and check.verdict == "fails"}
        return tuple(name for name in self.libraries if name in offered - broken)
