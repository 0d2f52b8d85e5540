"""The one table model that every rendering reads. It holds plain text and numbers, and no markup."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pydantic import ConfigDict


class _Strict:
    """What is read back from a file may have no key that is not declared."""

    __slots__ = ()
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class Column(_Strict):
    """What is measured in a column."""

    name: str  # as in the results: "rmse", "train_time_s"
    label: str  # as a person reads it: "RMSE", "Train time (s)"
    higher_is_better: bool | None  # None: neither is
    kind: str = "metric"  # or "time", "memory"
    primary: bool = False
    floor: float | None = None  # what no value can be below
    indicative: bool = False  # taken without timing mode: shown, but never judged

    @property
    def heading(self) -> str:
        """The label with the arrow that says which way is better."""
        if self.higher_is_better is None:
            return self.label
        return f"{self.label} {'↑' if self.higher_is_better else '↓'}"


@dataclass(frozen=True, slots=True)
class Cell(_Strict):
    """A number with its uncertainty, ready to print."""

    mean: float | None
    std: float | None
    n: int
    text: str
    best: bool = False
    low: float | None = None  # the interval of the mean, with the correction of the table's test
    high: float | None = None
    values: tuple[float | None, ...] = ()  # one for each of Row.points; None: missing or not finite


@dataclass(frozen=True, slots=True)
class Row(_Strict):
    """One competitor: a library, or a variant of one."""

    library: str
    variant: str | None
    n: int
    failed: int
    cells: tuple[Cell, ...]
    points: tuple[str, ...] = ()  # what each value belongs to: "seed 42", "seed 42, fold 1"

    @property
    def label(self) -> str:
        """Library and variant in one name."""
        return self.library if self.variant is None else f"{self.library} {self.variant}"


@dataclass(frozen=True, slots=True)
class Comparison(_Strict):
    """What the test says of two competitors on one metric."""

    table: str
    metric: str
    label: str
    a: str
    b: str
    verdict: str  # of a against b: better, worse, equivalent, inconclusive
    difference: float | None  # mean of a minus mean of b
    percent: float | None  # the same in percent of b
    ratio: float | None  # a over b, for times and memory
    low: float | None  # the interval, of the ratio where there is one
    high: float | None
    p: float | None  # corrected for the table's other comparisons
    n: int  # splits that both have
    detectable: float | None
    note: str
    text: str  # the verdict in words


@dataclass(frozen=True, slots=True)
class Table(_Strict):
    """One benchmark: competitors by measurements."""

    name: str  # "california/gbdt"
    task: str
    dataset: str
    booster: str
    splits: str  # "5 seeds", "3 seeds x 5 folds"
    profile: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    comparisons: tuple[Comparison, ...] = ()

    @property
    def title(self) -> str:
        """Name, sample size and, where it is not the usual one, the profile."""
        label = ", library defaults" if self.profile == "defaults" else ""
        return f"{self.name} ({self.splits}{label})"

    @property
    def has_variants(self) -> bool:
        """Whether a column for variants is needed."""
        return any(row.variant is not None for row in self.rows)


@dataclass(frozen=True, slots=True)
class RankedPair(_Strict):
    """Two competitors over the data sets."""

    a: str
    b: str
    wins: int  # of a
    losses: int
    ties: int
    p: float | None  # Wilcoxon's, corrected by Holm; None: too few data sets


@dataclass(frozen=True, slots=True)
class Ranking(_Strict):
    """Average ranks over the data sets; 1 is best."""

    booster: str
    measure: str
    ranks: tuple[tuple[str, float], ...]  # best first
    pairs: tuple[RankedPair, ...]
    groups: tuple[tuple[str, ...], ...]  # neighbours that cannot be told apart
    n: int
    left_out: tuple[str, ...]  # data sets without a split that every competitor has
    note: str
    partial: tuple[tuple[str, str], ...] = ()  # data sets with failures, and how many splits entered: "3 of 5"


@dataclass(frozen=True, slots=True)
class Report(_Strict):
    """All tables of a run and what must be said about them."""

    tables: tuple[Table, ...]
    notes: tuple[str, ...] = ()
    test: str = "corrected"
    alpha: float = 0.05
