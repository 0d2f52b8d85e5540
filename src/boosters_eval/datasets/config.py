"""Data sets as data: what one is, how it is read and split, and what an audit says. Nothing scientific is imported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from annotated_types import Ge, Gt, Lt, MinLen
from pydantic import AfterValidator, BeforeValidator, Field

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.model import Model
from boosters_eval.core.request import SplitKind
from boosters_eval.core.terms import the
from boosters_eval.core.text import join_words
from boosters_eval.metrics.task import Task

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ColumnRole = Literal["target", "numeric", "categorical", "date", "constant", "id", "group", "time", "dropped"]

# The kinds of findings, the gravest first; that is the order in which they are told.
KINDS = (
    "leak",
    "drift",
    "groups",
    "float32-target",
    "target-scale",
    "target-as-text",
    "duplicate-rows",
    "id",
    "many-categories",
    "own-treatment",
    "number-as-text",
    "date",
    "time-order",
    "duplicate-columns",
    "float32-feature",
    "centered-target",
    "rare-class",
    "imbalance",
    "repeated-target",
    "missing",
    "constant",
    "almost-constant",
)
# With these, scores do not say what they seem to.
SEVERE = frozenset({"leak", "drift", "groups", "float32-target", "target-scale", "duplicate-rows"})
RARE_IN_GENERAL = "; a split may have too few of them to test on, and cross-validation needs a row per fold"
NOTED = SEVERE | {
    "centered-target",
    "id",
    "many-categories",
    "float32-feature",
    "own-treatment",
    "rare-class",
    "time-order",
}  # what every report tells, since it changes the answer


class AuditedColumn(Model):
    """What is done with a column, and why."""

    name: str
    role: ColumnRole
    used: bool = True  # as a feature
    note: str = ""


class AuditFinding(Model):
    """Something suspicious: where, how much, and the option that acts on it."""

    kind: str  # one of KINDS
    text: str  # a sentence with the column and the number
    column: str | None = None  # None: it concerns several, or the rows
    option: str = ""  # such as "--drop affairs"

    @property
    def severe(self) -> bool:
        """Whether scores cannot be trusted before it is looked at."""
        return self.kind in SEVERE

    @property
    def summary(self) -> str:
        """Without how it is known, which follows the last colon, and with the first of the options."""
        text, option = self.text.rpartition(": ")[0] or self.text, self.option.partition(";")[0]
        return f"{text} ({option})" if option else text

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}" + (f" [{self.option}]" if self.option else "")


class DataAudit(Model):
    """The audit of one data set."""

    dataset: str
    task: Task
    reason: str = ""  # for the task
    reading: str = ""  # how a file was read: "separator ';', encoding latin-1"
    rows: int
    classes: dict[str, int] = Field(default_factory=dict)  # with the number of rows of each
    n_classes: int | None = None
    columns: tuple[AuditedColumn, ...] = ()  # of very many, those with something to say come first
    n_columns: int = 0  # without the target
    findings: tuple[AuditFinding, ...] = ()
    sampled: int | None = None  # the rows that were looked at; None: all of them
    sampled_columns: int | None = None

    @property
    def severe(self) -> tuple[AuditFinding, ...]:
        """The findings because of which scores cannot be trusted."""
        return tuple(finding for finding in self.findings if finding.severe)

    def for_folds(self, folds: int | None) -> DataAudit:
        """The audit for so many disjoint test sets: what classes lack then, unless it is said already."""
        short = sorted((count, name) for name, count in self.classes.items() if count < (folds or 0))
        if not short:
            return self
        known = next((finding for finding in self.findings if finding.kind == "rare-class"), None)
        rest = self.replace(findings=tuple(finding for finding in self.findings if finding is not known))
        count, name = short[0]
        begun = f"class '{name}' has {count} rows" if known is None else known.text.removesuffix(RARE_IN_GENERAL)
        # A row that is alone is only learned from.
        absent = "all" if count == 1 else f"at least {(folds or 0) - count} of the"
        others = ", and other small classes from some" if len(short) > 1 else ""
        text = f"{begun}; '{name}' is absent from {absent} {folds} test sets{others}"
        option = f"--cv {count}" if count > 1 else ""
        return rest.with_finding(AuditFinding(kind="rare-class", text=text, option=option))

    def with_finding(self, found: AuditFinding) -> DataAudit:
        return self.replace(
            findings=tuple(sorted((*self.findings, found), key=lambda finding: KINDS.index(finding.kind)))
        )

    def for_centered(self, *, partly: bool = False) -> DataAudit:
        """The audit where all libraries learn the target less its mean: what float32 would lose is mended.

        Partly it is if they are also left to their own defaults.
        """
        how = {"float32-target": "less its mean", "target-scale": "in units of its own size"}
        ending = "and predictions are moved back"
        ending += "; with its own defaults, each learns it as it is" if partly else ""
        option = "" if partly else "--profile both"
        found = [
            AuditFinding(
                kind="centered-target",
                text=f"{finding.text}: all libraries learn it {how[finding.kind]}, {ending}",
                option=option,
            )
            if finding.kind in how
            else finding
            for finding in self.findings
        ]
        return self.replace(findings=tuple(sorted(found, key=lambda finding: KINDS.index(finding.kind))))

    def for_judged(self) -> DataAudit:
        """The audit where how a library handles its target is what is measured: there is nothing to mend."""
        handled = ("float32-target", "target-scale")
        kept = (one.replace(option="") if one.kind in handled else one for one in self.findings)
        return self.replace(findings=tuple(kept))

    def by_role(self) -> dict[str, list[str]]:
        """The names of the columns by what is done with them; one that is no feature counts as not used."""
        found: dict[str, list[str]] = {}
        for column in self.columns:
            plain = column.used or column.role in ("target", "dropped", "group", "time")
            found.setdefault(column.role if plain else f"{column.role}, not used", []).append(column.name)
        return found

    @property
    def headline(self) -> str:
        why = f" ({self.reason})" if self.reason else ""
        classes = f", {self.n_classes} classes" if self.n_classes else ""
        roles = ", ".join(f"{len(names)} {role}" for role, names in self.by_role().items() if role != "target")
        counts = ((self.sampled, "rows"), (self.sampled_columns, "columns"))
        parts = [f"{count} {what}" for count, what in counts if count is not None]
        looked = f"; {join_words(parts)} were looked at" if parts else ""
        read = f"; read with {self.reading}" if self.reading else ""
        columns = f"{self.n_columns} column" + ("" if self.n_columns == 1 else "s")
        return f"{self.dataset}: {self.task.value}{why}, {self.rows} rows{classes}, {columns} ({roles}){looked}{read}"

    def __str__(self) -> str:
        return "\n".join([self.headline, *(f"  {finding}" for finding in self.findings)])

    def __repr__(self) -> str:
        """Short: what it is about, and the kinds of its findings."""
        kinds = ", ".join(dict.fromkeys(finding.kind for finding in self.findings)) or "nothing suspicious"
        return f"DataAudit({self.dataset!r}, {self.rows} rows: {kinds})"


ROW_ORDER = "row order"  # what `--split time` follows without a column


class SplitBy(NamedTuple):
    """A split that follows a column: later rows are validated on, or groups are kept whole."""

    kind: Literal["time", "group"]
    column: str


def parse_split(text: str | None) -> SplitBy | None:
    """`time:COLUMN`, `time` for the order of the rows, or `group:COLUMN`; None where rows are split at random."""
    kind, _, column = (text or "random").partition(":")
    if kind == "random" and not column:
        return None
    if kind == "time" and text != "time:":
        return SplitBy("time", column or ROW_ORDER)
    if kind == "group" and column:
        return SplitBy("group", column)
    raise ConfigError(f"{the('split')} must be random, time, time:COLUMN or group:COLUMN. Got '{text}' instead.")


def _checked_split(text: str) -> str:
    parse_split(text)
    return text


SplitText = Annotated[str, AfterValidator(_checked_split)]


class DatasetConfig(Model):
    """A data set: what it is, and how to get it.

    The loader is called once, in the parent process. It returns (x, y) or a `boosters_eval.datasets.Table`.
    """

    name: Annotated[str, MinLen(1)]
    task: Task
    loader: Callable[[], Any]
    n_classes: int | None = None
    n_features: int | None = None
    n_samples: int | None = None
    subsample: Annotated[int, Ge(1)] | None = None
    description: str = ""
    source: str = ""
    license: str = ""
    citation: str = ""
    changed: str = ""  # what is not as it was published
    categorical: tuple[str | int, ...] = ()  # names or positions of categorical columns
    feature_names: tuple[str, ...] = ()
    has_missing: bool | None = None
    quantiles: tuple[Annotated[float, Gt(0), Lt(1)], ...] = ()
    targets: tuple[str, ...] = ()  # the names of several, as the loader's y has columns; of one it is not needed
    primary_metric: str | None = None
    splitter: Callable[..., Any] | None = None
    split_by: SplitText | None = None  # time:COLUMN or group:COLUMN, unless a benchmark says otherwise
    recipe: str | None = None  # changes whenever a built-in loader's data would; None: never trusted from the cache
    table_digest: str | None = None  # of the whole table, where it is known: no other one is taken from the cache
    notes: tuple[str, ...] = ()  # sentences on how a user's file or frame was read
    audit: DataAudit | None = None  # of a user's file or frame; other data sets are audited when they are used
    available: Callable[[], str | None] | None = None  # None, or one sentence on why it is not here


Names = Annotated[tuple[str, ...], BeforeValidator(lambda given: (given,) if isinstance(given, str) else given)]


COLUMN_SETTINGS = ("drop", "keep", "categorical", "numeric", "date")  # those that name columns


class DataSettings(Model):
    """How a user's table is read and used; columns are given by name. What is not set is detected from the data."""

    drop: Names = ()
    keep: Names = ()  # as features, although they look like ids or are constant; others stay as they are
    categorical: Names = ()
    numeric: Names = ()
    date: Names = ()  # each becomes year, month, day, weekday and hour
    drop_missing_target: bool = False
    sep: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None


class SplitSpec(Model):
    """How rows become training and validation rows; the seed and the fold complete it."""

    validation_fraction: Annotated[float, Gt(0), Lt(1)] = 0.2
    folds: Annotated[int, Ge(2)] | None = None  # None: one random split per seed; of time, the number of windows
    kind: SplitKind = "random"
    column: str = ""  # of the times or the groups
    balanced: bool = False  # the test sets of consecutive repeats are disjoint until the rows are used up


@dataclass(frozen=True)
class Table:
    """Rows to learn from and to be scored on.

    `y` has a column for each of several targets. Categorical columns hold codes 0, 1, ...; a missing value is NaN.
    `groups` holds a query id per row, equal ids adjacent. `sensitive` holds a group label per row for the fairness
    metrics. `split_by` holds the times or the groups that `--split` may follow, under the name `split_column`; it is no
    feature.
    """

    x: NDArray[np.float32]
    y: NDArray[np.float64]
    weights: NDArray[np.float64] | None = None
    groups: NDArray[np.int64] | None = None
    sensitive: NDArray[np.int64] | None = None
    categorical: tuple[int, ...] = ()
    feature_names: tuple[str, ...] = ()
    category_names: dict[str, list[str]] | None = None
    split: NDArray[np.int8] | None = None  # an official split: 0 training, 1 test
    meta: dict[str, Any] | None = None
    split_by: NDArray[Any] | None = None
    split_column: str = ""


@dataclass(frozen=True)
class FileReading:
    """How a file was read; what is None does not matter for this kind of file, or is as usual."""

    text: str = ""  # in a few words; empty if there is nothing to be said
    notes: tuple[str, ...] = ()
    sep: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None


@dataclass(frozen=True)
class Examined:
    """A table of the user's, and all that is to be said about it."""

    table: Table
    task: Task
    reason: str  # for the task
    columns: tuple[AuditedColumn, ...]  # in the order of the file
    audit: DataAudit
    notes: tuple[str, ...] = ()
    reading: FileReading | None = None  # None: it came as a data frame
    split: SplitBy | None = None  # the column that rows are split by
    targets: tuple[str, ...] = ()
