"""What `where` concludes: slices with their differences, and the rows on which one library loses most."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from boosters_eval.core.files import FORMAT, Format
from boosters_eval.core.model import Model
from boosters_eval.metrics.task import Task
from boosters_eval.reports.findings import ReportedFindings

if TYPE_CHECKING:
    from boosters_eval.core.findings import Screen
    from boosters_eval.reports.document import Document


class ConditionFound(Model):
    """What a column is: a value, within inclusive bounds, or missing if none of them is given."""

    column: str
    low: float | None = None
    high: float | None = None
    value: float | str | None = None


class ErrorGap(Model):
    """Both libraries in one metric; the difference is that of their errors, positive where the first one loses."""

    a: float
    b: float
    difference: float
    low: float | None = None
    high: float | None = None
    percent: float | None = None  # of the second one's error; None if it has none
    percent_low: float | None = None
    percent_high: float | None = None


class LosingSlice(Model):
    """A part of the data on which the first library loses to the second."""

    conditions: tuple[ConditionFound, ...]
    rows: int  # of all that were tested
    share: float
    gap: ErrorGap  # on the half of the rows that it was not found on
    elsewhere: ErrorGap  # on all other rows


class LostRow(Model):
    """A row, or a query by its first one, on which the first library loses much."""

    row: int
    target: float | None
    said_a: float  # a prediction, the probability of the row's class, or the score of a query
    said_b: float
    error_a: float
    error_b: float
    values: Mapping[str, float | str | None]


class FoundSlices(ReportedFindings, Model):
    """Where one library loses to another."""

    schema_version: Format = FORMAT
    kind: Literal["boosters-eval slices"] = "boosters-eval slices"
    run: str
    dataset: str
    config: str
    task: Task
    metric: str
    label: str
    best: float | None
    higher_is_better: bool
    a: str  # who loses
    b: str
    noun: Literal["row", "query"]
    rows: int  # that were tested
    units: int  # groups, or rows
    splits: int
    alpha: float
    tested: int | None  # slices; None: there are too few units to look for any
    overall: ErrorGap
    detectable: float | None  # percent of the error, in a slice of a tenth of the rows
    slices: tuple[LosingSlice, ...] = ()
    worst: tuple[LostRow, ...] = ()
    remarks: tuple[str, ...] = ()

    def document(self) -> Document:
        from boosters_eval.programs.where.document import lay_out  # noqa: PLC0415 (only what is shown is laid out)

        return lay_out(self)

    def show(self, screen: Screen) -> None:
        """The document; quietly, only the answer."""
        if screen.quiet:
            from boosters_eval.reports.terminal import print_document  # noqa: PLC0415 (loads rich)

            print_document(replace(self.document(), title="", sections=()), screen.console())
        else:
            super().show(screen)
