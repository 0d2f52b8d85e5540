"""What was measured for a paper's targets, in a file of its own, so that comparing needs no engine."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from boosters_eval.core.model import Model
from boosters_eval.programs.paper.specification import StdOver

TargetStatus = Literal[
    "ok",
    "failed",  # some repeat failed: what is left is shown, but proves nothing
    "not_runnable",  # no binding, a library or a file that is not here
]


class Measured(Model):
    """The measurements of one target: a row of a table on a data set."""

    table: str
    row: str  # the row's key
    dataset: str
    primary: bool
    status: TargetStatus
    reason: str = ""  # why it is not ok
    values: dict[str, tuple[float, ...]] = Field(
        default_factory=dict
    )  # by metric, one per finished repeat that returned it
    std_over: StdOver | None = None  # what the repeats differ in
    seeds: tuple[int, ...] = ()
    planned: int = 0  # repeats, finished or not
    versions: dict[str, str] = Field(default_factory=dict)  # of what produced the values
    conditions: dict[str, str] = Field(
        default_factory=dict
    )  # how they came about: data set, split sizes, preprocessing, parameters
    warnings: tuple[str, ...] = ()


class PaperResults(Model):
    """The content of `results.json`."""

    schema_version: Literal[1] = 1
    kind: Literal["boosters-eval paper results"] = "boosters-eval paper results"
    paper: str
    specification_digest: str
    run_id: str | None  # None: nothing could be run
    only: tuple[str, ...] = ()  # what the run was restricted to; other targets are not missing then
    environment: dict[str, str] = Field(
        default_factory=dict
    )  # commit, versions, machine, command: of the time when it ran
    targets: tuple[Measured, ...]
