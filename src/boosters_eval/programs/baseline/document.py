"""A check as a JSON file, for programs: the verdict on every pair, and the exit code."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Literal, Self

from annotated_types import Ge
from pydantic import Field

from boosters_eval.core.files import FORMAT, Format
from boosters_eval.core.model import Model
from boosters_eval.core.text import escape_json
from boosters_eval.programs.baseline.findings import Status

if TYPE_CHECKING:
    from boosters_eval.programs.baseline.findings import Check, Finding


class CheckedPair(Model):
    """One (config, library) pair."""

    config: str
    library: str
    status: Status
    fails: bool
    under_test: bool
    metric: str
    tolerance: float
    baseline: float | None  # means over the cells that both sides have
    current: float | None
    n: Annotated[int, Ge(0)]  # of these cells
    change: float | None  # relative; None from a mean of 0
    p_value: float | None
    seeds_needed: int | None  # to decide what is suspected; None: no number would
    failed_cells: int
    flaky: dict[str, int] = Field(default_factory=dict)  # by cell, how often it failed before it finished
    note: str

    @classmethod
    def of(cls, finding: Finding) -> Self:
        """A finding as plain data."""
        change = finding.change
        return cls(
            config=finding.config,
            library=finding.library,
            status=finding.status,
            fails=finding.fails,
            under_test=finding.counts,
            metric=finding.metric,
            tolerance=finding.tolerance,
            baseline=finding.baseline.mean if finding.baseline else None,
            current=finding.current.mean if finding.current else None,
            n=finding.current.n if finding.current else 0,
            change=change if change is not None and math.isfinite(change) else None,
            p_value=finding.p_value,
            seeds_needed=finding.seeds_needed,
            failed_cells=finding.failed_cells,
            flaky=dict(finding.flaky),
            note=finding.note,
        )


class CheckDocument(Model):
    """A whole check."""

    schema_version: Format = FORMAT
    kind: Literal["boosters-eval check"] = "boosters-eval check"
    baseline: str  # the file as it was named
    exit_code: int
    statistical: bool
    alpha: float
    allow_flaky: int
    n_flaky: int
    n_not_run: int
    upgrades: dict[str, tuple[str, str]]
    notes: tuple[str, ...]
    pairs: tuple[CheckedPair, ...]

    @classmethod
    def of(cls, check: Check) -> Self:
        """A check as plain data."""
        return cls(
            baseline=check.name,
            exit_code=int(check.exit_code),
            statistical=check.rules.statistical,
            alpha=check.rules.alpha,
            allow_flaky=check.rules.allow_flaky,
            n_flaky=check.n_flaky,
            n_not_run=check.not_run,
            upgrades=check.upgrades,
            notes=check.notes,
            pairs=tuple(CheckedPair.of(finding) for finding in check.findings),
        )

    def to_json(self) -> str:
        """The content of the file."""
        return escape_json(self.model_dump_json(indent=1)) + "\n"
