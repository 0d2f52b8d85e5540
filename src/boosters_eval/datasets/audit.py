"""What a careful colleague would say about a table before anything is trained on it: the words, as data."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from boosters_eval.core.model import Model
from boosters_eval.metrics.task import Task

ColumnRole = Literal["target", "numeric", "categorical", "date", "constant", "id", "group", "time", "dropped"]

# The kinds of findings, the gravest first; that is the order in which they are told.
KINDS = (
    "leak",
    "missing-target",
    "target-as-text",
    "duplicate-rows",
    "id",
    "number-as-text",
    "date",
    "time-order",
    "duplicate-columns",
    "rare-class",
    "imbalance",
    "repeated-target",
    "missing",
    "constant",
    "almost-constant",
)
SEVERE = frozenset({"leak", "duplicate-rows"})  # with these, scores are better than they would be on new rows


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

    def __str__(self) -> str:
        """The sentence, with the option in brackets."""
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
        """The audit for a split into folds: what classes lack then, unless it is said already."""
        short = sorted((count, name) for name, count in self.classes.items() if count < (folds or 0))
        if not short or any(finding.kind == "rare-class" for finding in self.findings):
            return self
        count, name = short[0]
        text = f"class '{name}' has {count} rows: some of the {folds} folds have none of them to test on"
        found = AuditFinding(kind="rare-class", text=text, option=f"--cv {max(2, count)}")
        findings = sorted((*self.findings, found), key=lambda finding: KINDS.index(finding.kind))
        return self.replace(findings=tuple(findings))

    def by_role(self) -> dict[str, list[str]]:
        """The names of the columns by what is done with them; one that is no feature counts as not used."""
        found: dict[str, list[str]] = {}
        for column in self.columns:
            plain = column.used or column.role in ("target", "dropped", "group", "time")
            found.setdefault(column.role if plain else f"{column.role}, not used", []).append(column.name)
        return found

    @property
    def headline(self) -> str:
        """The data set in one line."""
        why = f" ({self.reason})" if self.reason else ""
        classes = f", {self.n_classes} classes" if self.n_classes else ""
        roles = ", ".join(f"{len(names)} {role}" for role, names in self.by_role().items() if role != "target")
        counts = ((self.sampled, "rows"), (self.sampled_columns, "columns"))
        parts = [f"{count} {what}" for count, what in counts if count is not None]
        looked = f"; {' and '.join(parts)} were looked at" if parts else ""
        read = f"; read with {self.reading}" if self.reading else ""
        columns = f"{self.n_columns} column" + ("" if self.n_columns == 1 else "s")
        return f"{self.dataset}: {self.task.value}{why}, {self.rows} rows{classes}, {columns} ({roles}){looked}{read}"

    def __str__(self) -> str:
        """The headline, and a line for each finding."""
        return "\n".join([self.headline, *(f"  {finding}" for finding in self.findings)])

    def __repr__(self) -> str:
        """Short: what it is about, and the kinds of its findings."""
        kinds = ", ".join(dict.fromkeys(finding.kind for finding in self.findings)) or "nothing suspicious"
        return f"DataAudit({self.dataset!r}, {self.rows} rows: {kinds})"
