"""The one table model that every rendering reads. It holds plain text and numbers, and no markup.

What a table is about (a benchmark, a paper, the bindings of a model) is data here: keys, row names and statuses.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping  # noqa: TC003 (read when a report is validated)
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal

from boosters_eval.core.text import clean_csv_cell
from boosters_eval.reports.document import Charts, Details, Document, Notes, PlainTable, Results, Section, split_line
from boosters_eval.reports.findings import Reported
from boosters_eval.reports.numbers import MISSING, name_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pydantic import ConfigDict

    from boosters_eval.reports.html.svg import Figure

CellStatus = Literal[
    "ok",  # a value without an expectation
    "pass",  # as expected
    "warn",  # as expected, with a reservation
    "fail",  # not as expected
    "skipped",  # left out on purpose
    "unsupported",  # known to be impossible, so it was not tried
    "unavailable",  # what it needs is not installed, so it could not be tried
    "missing",  # it should exist but does not
    "error",  # it was tried but gave no usable value
]


class Strict:
    """Refuses undeclared keys when read from a file."""

    __slots__ = ()
    __pydantic_config__: ClassVar[ConfigDict] = {"extra": "forbid"}


@dataclass(frozen=True, slots=True)
class Column(Strict):
    """What is measured in a column."""

    name: str  # as in the results: "rmse", "train_time_s"
    label: str  # as a person reads it: "RMSE", "Train time (s)"
    higher_is_better: bool | None  # None: neither direction is
    kind: str = "metric"  # or "time", "memory"; "reference" and "measured" are drawn against each other
    primary: bool = False  # the column that decides the table
    cost: bool = False  # weighed against the primary column; summed up in Markdown
    quantity: str = ""  # in a caption, such as "Training time"; if empty, the label is used
    unit: str = ""
    floor: float | None = None  # no value can be below it
    ceiling: float | None = None  # or above it
    caveat: str = ""  # why the values are shown but not judged

    @property
    def indicative(self) -> bool:
        """Whether the values are shown but not judged."""
        return bool(self.caveat)

    @property
    def best(self) -> float:
        """The value without any error: percentages are of the distance from it."""
        return (self.ceiling if self.higher_is_better else self.floor) or 0.0

    @property
    def error(self) -> str:
        """What percentages are of: the metric, or what it lacks."""
        return name_error(self.label, self.best) or self.quantity or self.label

    @property
    def of_error(self) -> str:
        """What a percentage is of, where that is not the value itself: of 1 minus R², in signs."""
        return name_error(self.label, self.best, " of ")

    @property
    def heading(self) -> str:
        """The label with an arrow for the better direction."""
        if self.higher_is_better is None:
            return self.label
        return f"{self.label} {'↑' if self.higher_is_better else '↓'}"


@dataclass(frozen=True, slots=True)
class TableCell(Strict):
    """A number with its uncertainty, ready to print."""

    mean: float | None
    std: float | None
    n: int
    text: str
    best: bool = False
    low: float | None = (
        None  # the interval of the mean, corrected as the table's test; of a reference, what is accepted
    )
    high: float | None = None
    values: tuple[float | None, ...] = ()  # one for each of Row.points; None: missing or not finite
    status: CellStatus = "ok"

    @property
    def shown(self) -> str:
        """The text with its status, or the status alone if there is no value."""
        if self.status == "ok":
            return self.text or MISSING
        return self.status if self.text in ("", MISSING) else f"{self.text} ({self.status})"


@dataclass(frozen=True, slots=True)
class Row(Strict):
    """One competitor, named by as many parts as the table has row names."""

    names: tuple[str, ...]  # parts that do not apply are empty
    cells: tuple[TableCell, ...]
    n: int | None = None  # number of repeats; None: not counted
    failed: int = 0  # repeats that failed
    points: tuple[str, ...] = ()  # the repeat of each value: "seed 42", "seed 42, fold 1"
    facts: tuple[str, ...] = ()  # one for each of the table's row_facts
    standing: str = ""  # against the leader of the column that decides: "as good: -0.20 to +0.94 %"

    @property
    def label(self) -> str:
        return " ".join(name for name in self.names if name)

    @property
    def count(self) -> str:
        n = MISSING if self.n is None else str(self.n)
        return f"{n} ({self.failed} failed)" if self.failed else n


@dataclass(frozen=True, slots=True)
class PairVerdict(Strict):
    """The verdict on two competitors in one metric."""

    table: str
    metric: str
    label: str
    a: str
    b: str
    verdict: str  # of a against b: better, worse, equivalent, inconclusive
    difference: float | None  # mean of a minus mean of b
    percent: float | None  # the same in percent of b's error
    ratio: float | None  # a over b, for times and memory
    low: float | None  # the interval, of the ratio where there is one; all of a column hold together at 1 - alpha
    high: float | None
    p: float | None  # corrected for the other pairs of the column
    n: int  # splits that both have
    detectable: float | None
    note: str
    text: str  # the verdict as a sentence
    alpha: float | None = None  # the level of the column, shared by its pairs
    test: str = ""  # what decided: that of the table, or one by splits where rows could not
    margin: str = ""  # what counts as equivalent: a share of the error, or a difference in the metric's unit


@dataclass(frozen=True, slots=True)
class ReportTable(Strict):
    """Competitors by measurements."""

    name: str  # "california/gbdt"
    row_names: tuple[str, ...]  # the headings of the rows' names: ("Library", "Variant")
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    keys: Mapping[str, str] = field(default_factory=dict)  # to group, search and export by: {"task": "regression"}
    details: tuple[str, ...] = ()  # after the name in the title, such as "5 seeds"
    notes: tuple[str, ...] = ()
    pairs: tuple[PairVerdict, ...] = ()
    answer: tuple[str, ...] = ()  # in a few lines: who is best, how sure that is, and what it costs
    row_facts: tuple[str, ...] = ()  # what is known of each row besides its name, by heading: ("Version",)
    trivial: tuple[Row, ...] = ()  # what takes no skill, shown below the rows; never ranked, judged or drawn with them
    unbeaten: tuple[str, ...] = ()  # the rows that are no better than these in the column that decides
    plain: bool = False  # whether a terminal draws no frame around it

    @property
    def title(self) -> str:
        return f"{self.name} ({', '.join(self.details)})" if self.details else self.name

    def beginning(self, row: Row) -> tuple[str, ...]:
        """A row's cells before its values: its names and facts, as many as there are headings."""
        return (*row.names, *(row.facts or ("",) * len(self.row_facts)))

    @property
    def is_counted(self) -> bool:
        return any(row.n is not None for row in self.rows)

    @property
    def headings(self) -> tuple[str, ...]:
        first = (*self.row_names, *self.row_facts)
        return (*first, *(column.heading for column in self.columns), *(("n",) if self.is_counted else ()))

    @property
    def cost(self) -> int | None:
        return next((position for position, column in enumerate(self.columns) if column.cost), None)


@dataclass(frozen=True, slots=True)
class RankingPair(Strict):
    """Two competitors compared over everything on which they were ranked."""

    a: str
    b: str
    wins: int  # of a
    losses: int
    ties: int
    p: float | None  # Wilcoxon's, corrected by Holm; None: too few to test
    share: float | None = None  # how much larger a's error is in the mean, as a share of b's; None: too few to tell
    low: float | None = None  # its interval; those of all pairs hold together
    high: float | None = None
    verdict: str = ""  # of a, in general: better, worse, equivalent, inconclusive
    hinges: tuple[str, ...] = ()  # without any of these the verdict would be another

    def flipped(self) -> RankingPair:
        """The same pair from b's point of view."""
        turned = {"better": "worse", "worse": "better"}.get(self.verdict, self.verdict)
        share, low, high = (None if one is None else 1 / (1 + one) - 1 for one in (self.share, self.high, self.low))
        return RankingPair(
            *(self.b, self.a, self.losses, self.wins, self.ties, self.p, share, low, high), turned, self.hinges
        )


@dataclass(frozen=True, slots=True)
class RankingTable(Strict):
    """Average ranks; 1 is best."""

    name: str  # what the competitors have in common: "gbdt"
    heading: str  # what a competitor is: "Library"
    measure: str  # what they are ranked by
    over: str  # what the ranks are averaged over: "data sets"
    ranks: tuple[tuple[str, float], ...]  # best first
    pairs: tuple[RankingPair, ...]
    groups: tuple[tuple[str, ...], ...]  # neighbors that cannot be told apart
    n: int
    descriptive: bool = False  # too few to test
    left_out: tuple[str, ...] = ()  # what has no repeat shared by all competitors
    partial: tuple[tuple[str, str], ...] = ()  # where some repeats failed, with the share that was used: "3 of 5"
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return f"{self.name}: average rank by {self.measure} over {self.n} {self.over}"


@dataclass(frozen=True, slots=True)
class Report(Strict, Reported):
    """Tables, what they say together, and the notes on them."""

    tables: tuple[ReportTable, ...]
    notes: tuple[str, ...] = ()
    test: str = "rows"
    alpha: float = 0.05
    margin: tuple[str, ...] = ("1%",)  # what counts as equivalent, as one asks for it
    title: str = ""
    answer: tuple[str, ...] = ()
    leaderboard: PlainTable | None = None
    rankings: tuple[RankingTable, ...] = ()
    kinds: PlainTable | None = None  # how the competitors rank on which kind of data

    def document(self) -> Document:
        """The tables; what is said of them once if there is an answer, and below each of them otherwise."""
        shown = strip_tables(self.tables) if self.answer else self.tables
        results = tuple(Results(table, Charts(partial(self._draw, table))) for table in shown)
        plain = Section("notes", "Notes", (Notes(self.notes),) if self.notes else ())
        return Document(
            self.title,
            self.answer,
            leaderboard=self.leaderboard,
            sections=(Section("results", "", results), gather_notes(self.notes, self.tables) if self.answer else plain),
        )

    def summary(self) -> Document:
        """The answer alone."""
        return Document("", self.answer)

    def _draw(self, table: ReportTable) -> list[Figure]:
        from boosters_eval.reports.html.charts import draw_table  # noqa: PLC0415
        from boosters_eval.reports.html.svg import series_of  # noqa: PLC0415 (only what is shown is drawn)

        return draw_table(table, series_of(self.tables, ()), self.alpha)


def strip_tables(tables: Sequence[ReportTable]) -> list[ReportTable]:
    """Tables without what the document has once: the notes, of two tables the answers, and of more the costs."""
    kept = {1: lambda _: True, 2: lambda _: False}.get(len(tables), lambda line: split_line(line).label != "Cost: ")
    return [replace(table, notes=(), answer=tuple(filter(kept, table.answer))) for table in tables]


def gather_notes(notes: Sequence[str], tables: Sequence[ReportTable]) -> Section:
    """All notes of a run in one place that can be folded; those on a table begin with its name."""
    named = len(tables) > 1
    own = (f"{table.name}: {note}" if named else note for table in tables for note in table.notes)
    found = (*notes, *own)
    blocks = (Details(f"How this was judged and measured ({len(found)})", (Notes(found),), long=True),)
    return Section("notes", "Notes", blocks if found else (), detail=True)


def list_verdicts(tables: Iterable[ReportTable]) -> list[PairVerdict]:
    """The pairs that are shown: on the primary columns, or on the cost column of a table without one."""
    out = []
    for table in tables:
        primary = {column.name for column in table.columns if column.primary}
        names = primary or {column.name for column in table.columns if column.cost}
        out += [pair for pair in table.pairs if pair.metric in names]
    return out


def render_csv(tables: Sequence[ReportTable]) -> str:
    """One line per cell: full numbers for programs, the text for people. Trivial rows have a status of their own."""
    keys = list(dict.fromkeys(key for table in tables for key in table.keys))
    names = list(dict.fromkeys(name for table in tables for name in (*table.row_names, *table.row_facts)))
    identity = [key.lower().replace(" ", "_") for key in (*keys, *names)]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    headings = ["table", *identity, "column", "mean", "std", "n", "failed", "status", "text", "best"]
    writer.writerow(map(clean_csv_cell, _unique(headings)))
    for table in tables:
        for row, status in (*((row, "") for row in table.rows), *((row, "trivial") for row in table.trivial)):
            named = dict(zip((*table.row_names, *table.row_facts), table.beginning(row), strict=True))
            start = [table.name, *(table.keys.get(key) for key in keys), *(named.get(name) for name in names)]
            for column, cell in zip(table.columns, row.cells, strict=True):
                numbers = (cell.mean, cell.std, cell.n, row.failed)
                line = (*start, column.name, *numbers, status or cell.status, cell.text, str(cell.best).lower())
                writer.writerow(map(clean_csv_cell, line))
    return buffer.getvalue()


def _unique(names: list[str]) -> list[str]:
    """Unique headings: a second "model" becomes "model_2"."""
    return [name if (n := names[:i].count(name)) == 0 else f"{name}_{n + 1}" for i, name in enumerate(names)]
