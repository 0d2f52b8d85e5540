"""A user's data frame into a table: all of its problems are found before any is reported."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from boosters_eval.core.errors import DataFileError, DatasetError, suggest
from boosters_eval.core.terms import given
from boosters_eval.core.text import count_of
from boosters_eval.datasets import checks
from boosters_eval.datasets.auditing import audit_frame, join_audits
from boosters_eval.datasets.checks import is_text, table_from_frame
from boosters_eval.datasets.columns import find_name_problems, read_target, split_targets, use_column
from boosters_eval.datasets.config import ROW_ORDER, AuditedColumn, Examined
from boosters_eval.datasets.splits import number_rows, read_split_values
from boosters_eval.datasets.texts import spread_times
from boosters_eval.metrics.task import Task

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from boosters_eval.datasets.columns import Use
    from boosters_eval.datasets.config import ColumnRole, DataSettings, SplitBy

GROUP_COLUMN = "qid"
MOST_SAID = 20
MIN_ROWS = 10  # fewer cannot be split into rows to train on and rows to judge by


@dataclass(frozen=True)
class Examination:
    """What is asked of a table, and what is found in it: problems stop it in the end, notes are told."""

    source: str
    target: str  # a column, or several by commas
    task: Task | None
    settings: DataSettings
    split: SplitBy | None = None
    targets: list[str] = field(default_factory=list)  # which these are, once the names of the columns are known
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def examine(self, frame: pd.DataFrame) -> Examined:
        """Use each column as the settings ask for, or as what it is found to be.

        The groups of a split are not a feature, unless the settings keep them; times are, unless they are dropped.
        """
        frame = self._keep_rows(self._name_columns(frame))
        groups = None
        if self.task is Task.RANKING:
            frame, groups = self._sort_by_query(frame)
        split_by = self._read_split(frame, groups)
        apart = self._find_apart(grouped=groups is not None)
        columns, features = self._read_features(frame, apart, timed=split_by is not None)
        if not features:
            self.problems.append(f"{self.source} has no column besides the target '{self.target}'.")
        y, task, reason = self._read_targets(frame)
        self._stop_if(bool(self.problems))
        table = table_from_frame(pd.DataFrame(features, copy=False), y, groups)
        table = replace(table, split_by=split_by, split_column=self.split.column if self.split else "")
        # The audit sees columns as they were read, except for those whose texts are used as numbers.
        read = [column.name for column in columns if column.role == "numeric" and is_text(frame[column.name])]
        columns_of_y = dict(zip(self.targets, np.atleast_2d(y.T), strict=True))
        changed = {name: features[name] for name in read} | ({} if task.is_classification else columns_of_y)
        asked = {
            name for setting in ("keep", "categorical", "numeric", "date") for name in getattr(self.settings, setting)
        }
        shown = frame.assign(**changed)
        about: Any = {"name": self.source, "reason": reason, "asked": asked, "split": self.split, "split_by": split_by}
        audit = join_audits([audit_frame(shown, target, task, columns, **about) for target in self.targets])
        notes, names = tuple(_first(self.notes)), tuple(self.targets)
        return Examined(table, task, reason, columns, audit, notes, split=self.split, targets=names)

    def _stop_if(self, stop: bool) -> None:
        if stop and len(self.problems) == 1:
            raise DataFileError(self.problems[0])
        if stop:
            count = len(self.problems)
            raise DataFileError(f"{self.source} cannot be used as it is, for {count} reasons:", _first(self.problems))

    def _name_columns(self, frame: pd.DataFrame) -> pd.DataFrame:
        names = [str(label) for label in frame.columns]
        if len(frame) * len(names) > checks.MAX_CELLS:
            raise DataFileError(f"{self.source} has {len(frame)} x {len(names)} cells: more than 2**31.")
        self.targets.extend(split_targets(self.target, names))
        self.problems.extend(find_name_problems(self.source, names, self.targets, self.settings))
        if not len(frame):
            self.problems.append(f"{self.source} has a header but no rows.")
        self._stop_if(
            not len(frame) or not set(self.targets) <= set(names) or len(set(self.targets)) < len(self.targets)
        )
        frame = frame.set_axis(names, axis=1).reset_index(drop=True)
        return frame if frame.columns.is_unique else frame.loc[:, ~frame.columns.duplicated()]

    def _keep_rows(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The rows that have all targets. The index keeps their numbers in the file."""
        for target in self.targets:
            if target in self.settings.numeric:  # a row in which it is not a number is a row without a target
                frame = frame.assign(**self._use(target, frame[target]).columns)
        missing = frame[self.targets].isna().any(axis=1)
        count = int(missing.sum())
        if count and not self.settings.drop_missing_target:
            self.problems.append(
                f"The target '{self.target}' of {self.source} is missing in {count_of(count, 'row')}:"
                f" {given('drop_missing_target')} leaves {'it' if count == 1 else 'them'} out."
            )
        elif count:
            self.notes.append(f"{count_of(count, 'row')} without a target left out, {len(frame) - count} kept")
        kept = frame[~missing] if count else frame
        if len(kept) < MIN_ROWS:
            what = count_of(len(kept), "row") if not count else f"a target in {count_of(len(kept), 'row')} only"
            self.problems.append(f"{self.source} has {what}: at least {MIN_ROWS} are needed.")
        self._stop_if(len(kept) < MIN_ROWS)  # nothing more can be said
        return kept

    def _use(self, name: str, column: pd.Series[Any]) -> Use:
        use = use_column(name, column, self.settings)
        self.problems.extend(filter(None, [use.problem]))
        self.notes.extend(filter(None, [use.note]))
        return use

    def _sort_by_query(self, frame: pd.DataFrame) -> tuple[pd.DataFrame, Any]:
        if GROUP_COLUMN not in frame.columns:
            self.problems.append(
                f"Ranking needs a column '{GROUP_COLUMN}' with a query id per row; {self.source} has none."
            )
            return frame, None
        missing = int(frame[GROUP_COLUMN].isna().sum())
        if missing:
            rows = count_of(missing, "row")
            self.problems.append(f"The query id '{GROUP_COLUMN}' of {self.source} is missing in {rows}.")
        codes = frame[GROUP_COLUMN].factorize()[0]
        order = np.argsort(codes, kind="stable")
        return frame.iloc[order], codes[order].astype(np.int64)

    def _find_apart(self, *, grouped: bool) -> dict[str, AuditedColumn]:
        """The columns that are not features unless they are kept."""
        found = [AuditedColumn(name=GROUP_COLUMN, role="group", used=False, note="the queries")] if grouped else []
        if self.split is not None:
            note = "rows are split by it"
            found.append(AuditedColumn(name=self.split.column, role=self.split.kind, used=False, note=note))
        return {column.name: column for column in found}

    def _read_split(self, frame: pd.DataFrame, queries: NDArray[np.int64] | None) -> NDArray[Any] | None:
        split = self.split
        if split is None:
            return None
        if split.column == ROW_ORDER and split.column not in frame.columns:
            self.notes.append("rows are split in their order")
            return number_rows(len(frame), queries)
        if split.column not in frame.columns or split.column in self.targets:
            what = "is the target" if split.column in self.targets else f"is not a column of {self.source}"
            others = [str(name) for name in frame.columns if name not in self.targets]
            self.problems.append(f"The {split.kind} column '{split.column}' {what}.{suggest(split.column, others)}")
            return None
        try:
            return read_split_values(self.source, split, frame[split.column])
        except DatasetError as error:
            self.problems.append(str(error))
            return None

    def _read_features(
        self, frame: pd.DataFrame, apart: dict[str, AuditedColumn], *, timed: bool
    ) -> tuple[tuple[AuditedColumn, ...], dict[str, pd.Series[Any]]]:
        columns: list[AuditedColumn] = []
        features: dict[str, pd.Series[Any]] = {}
        for name in frame.columns:
            if name in self.targets or name in self.settings.drop:
                role: ColumnRole = "target" if name in self.targets else "dropped"
                columns.append(AuditedColumn(name=name, role=role, used=False))
            elif name in apart and apart[name].role == "time":
                parts = spread_times(name, frame[name]) if timed else {}
                columns.append(apart[name].replace(used=True))
                features |= self._without_clash(name, parts, frame)
                self.notes.append(f"rows are split by '{name}', which models see as {', '.join(parts)}")
            elif name in apart and name not in self.settings.keep:
                columns.append(apart[name])
            else:
                use = self._use(name, frame[name])
                columns.append(AuditedColumn(name=name, role=use.role, note=use.note))
                features |= self._without_clash(name, use.columns, frame)
        return tuple(columns), features

    def _without_clash(
        self, name: str, parts: dict[str, pd.Series[Any]], frame: pd.DataFrame
    ) -> dict[str, pd.Series[Any]]:
        taken = [part for part in parts if part != name and part in frame.columns]
        if taken:
            self.problems.append(f"The date '{name}' would become '{taken[0]}', but there is such a column: rename it.")
        return parts

    def _read_targets(self, frame: pd.DataFrame) -> tuple[Any, Task, str]:
        """One target is what it is found to be; several are numbers, each a column."""
        if len(self.targets) == 1:
            return self._read_target(self.targets[0], frame[self.targets[0]].dropna(), self.task)
        if self.task not in (None, Task.REGRESSION):
            got = "" if self.task is None else self.task.value
            self.problems.append(f"Several targets are for the task regression: name one target for {got}.")
        found = [self._read_target(name, frame[name].dropna(), Task.REGRESSION)[0] for name in self.targets]
        y = None if any(column is None for column in found) else np.stack(found, axis=1)
        return y, Task.REGRESSION, f"{len(self.targets)} targets"

    def _read_target(self, name: str, column: pd.Series[Any], task: Task | None) -> tuple[Any, Task, str]:
        try:
            y, task, reason, note = read_target(self.source, name, column, task, self.settings)
        except DatasetError as error:
            self.problems.append(str(error))
            return None, task or Task.REGRESSION, ""
        self.notes.extend(filter(None, [note]))
        return y, task, reason


def _first(sentences: list[str]) -> list[str]:
    """A table of thousands of columns may have as many sentences."""
    more = len(sentences) - MOST_SAID
    return sentences if more < 2 else [*sentences[:MOST_SAID], f"and {more} more of this kind"]
