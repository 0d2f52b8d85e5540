"""A whole report as data: what the Markdown and HTML files are written from, and what the JSON file holds.

A package with its own results builds one, and may add typed data for programs in a subclass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import ConfigDict, Field, StringConstraints, field_validator

from boosters_eval.core.files import FORMAT, Format
from boosters_eval.core.model import Model
from boosters_eval.reports.model import PairVerdict, RankingTable, ReportTable

if TYPE_CHECKING:
    from collections.abc import Iterable

_OWN = (
    "summary",
    "results",
    "across",
    "tests",
    "notes",
    "environment",
    "reproduce",
    "theme",
)  # ids used by the page itself

Anchor = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]*$")]
Pairs = tuple[tuple[str, str], ...]


class Fact(Model):
    """A number at the top of the page."""

    label: str
    value: str
    alarm: bool = False


class Paragraph(Model):
    """Plain text."""

    kind: Literal["paragraph"] = "paragraph"
    text: str


class Code(Model):
    """Text whose lines and spaces are kept."""

    kind: Literal["code"] = "code"
    text: str


class PlainTable(Model):
    """A small table. Numbers are sorted by value, digits of whole numbers are grouped, and None is a dash."""

    kind: Literal["table"] = "table"
    name: str  # for screen readers
    headings: tuple[str, ...]
    rows: tuple[tuple[str | int | float | None, ...], ...]


class ListItem(Model):
    """A line of a list; `mark` is a word in it to be emphasized."""

    text: str
    mark: str = ""
    rest: str = ""


class Listing(Model):
    """A list of lines."""

    kind: Literal["list"] = "list"
    items: tuple[ListItem, ...]


Block = Annotated[Paragraph | Code | PlainTable | Listing, Field(discriminator="kind")]


class Details(Model):
    """Details for some readers: folded on the page, and in Markdown if long."""

    kind: Literal["details"] = "details"
    title: str
    aside: str = ""  # next to the title of a fold
    blocks: tuple[Block, ...]
    long: bool = False


class Section(Model):
    """A titled part of a report besides its tables."""

    anchor: Anchor
    title: str
    short: str = ""  # on the page and in its navigation; if empty, the title is used
    search: str = ""  # the label of a field that filters table rows; if empty, there is no such field
    blocks: tuple[Annotated[Paragraph | Code | PlainTable | Listing | Details, Field(discriminator="kind")], ...]


class ReportDocument(Model):
    """Everything in a report. The page shows `lead` and `facts` instead of Markdown's `configuration`."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)

    schema_version: Format = FORMAT
    kind: str = "boosters-eval report"
    title: str
    lead: str = ""
    headline: tuple[str, ...] = ()  # the answer in whole sentences, the most important first
    leaderboard: PlainTable | None = None  # how the competitors stand over all tables
    facts: tuple[Fact, ...] = ()
    environment: Pairs = ()
    configuration: Pairs = ()
    tables: tuple[ReportTable, ...]
    group_by: str | None = None  # the key whose values are the headings above the tables
    table_noun: str = "table"  # what a table is called, such as "benchmark"
    empty: str = "No results."  # shown if there is no table
    reference: str | None = None  # the competitor that costs are compared with; None: the first one
    rankings: tuple[RankingTable, ...] = ()
    alpha: float = 0.05  # of intervals and verdicts
    notes: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()
    reproduce: tuple[str, ...] = ()

    @field_validator("sections")
    @classmethod
    def _anchors_are_unique(cls, sections: tuple[Section, ...]) -> tuple[Section, ...]:
        anchors = [*_OWN, *(section.anchor for section in sections)]
        doubled = next((anchor for anchor in anchors if anchors.count(anchor) > 1), None)
        if doubled:
            raise ValueError(f"sections with different anchors ('{doubled}' is taken)")
        return sections

    def drill_down(self) -> tuple[Section, ...]:
        """Sections for the page alone, because they show what the JSON file has as data."""
        return ()

    def groups(self) -> list[tuple[str, list[ReportTable]]]:
        """The tables grouped by the value of `group_by`, in the order of first appearance."""
        found: dict[str, list[ReportTable]] = {}
        for table in self.tables:
            found.setdefault(table.keys.get(self.group_by or "", ""), []).append(table)
        return list(found.items())


def shown_verdicts(tables: Iterable[ReportTable]) -> list[PairVerdict]:
    """The pairs that are shown: on the primary columns, or on the cost column of a table without one."""
    out = []
    for table in tables:
        primary = {column.name for column in table.columns if column.primary}
        names = primary or {column.name for column in table.columns if column.cost}
        out += [pair for pair in table.pairs if pair.metric in names]
    return out
