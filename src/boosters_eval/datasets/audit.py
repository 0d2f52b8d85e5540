"""What a careful colleague would say about a table before anything is trained on it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from boosters_eval.core.model import Model
from boosters_eval.metrics.task import Task

ColumnRole = Literal["target", "numeric", "categorical", "date", "constant", "id", "group", "time", "dropped"]


class AuditedColumn(Model):
    """What is done with a column, and why."""

    name: str
    role: ColumnRole
    used: bool = True  # as a feature
    note: str = ""


class AuditFinding(Model):
    """Something suspicious: where, how much, and the option that acts on it."""

    kind: str  # "leak", "id", "duplicate-rows", ...
    text: str  # a sentence with the column and the number
    column: str | None = None
    option: str = ""  # such as "--drop affairs"


class DataAudit(Model):
    """The audit of one data set."""

    dataset: str
    task: Task
    reason: str = ""  # for the task
    reading: str = ""  # how a file was read: "separator ';', encoding latin-1"
    rows: int
    classes: dict[str, int] = Field(default_factory=dict)  # with the number of rows of each
    columns: tuple[AuditedColumn, ...] = ()
    findings: tuple[AuditFinding, ...] = ()
    sampled: int | None = None  # the rows that were looked at; None: all of them
