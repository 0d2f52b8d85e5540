"""What was measured for a paper's targets, in a file of its own, so that comparing needs no engine."""

from __future__ import annotations

from statistics import fmean, stdev
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from boosters_eval.core.errors import ExitCode
from boosters_eval.core.files import FORMAT, Format
from boosters_eval.core.findings import Findings
from boosters_eval.core.model import Model
from boosters_eval.programs.paper.specification import StdOver, target_name

if TYPE_CHECKING:
    from boosters_eval.core.findings import Screen

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

    @property
    def name(self) -> str:
        """As `only` names it."""
        return target_name(self.table, self.row, self.dataset)


class PaperResults(Findings, Model):
    """The content of `results.json`."""

    schema_version: Format = FORMAT
    kind: Literal["boosters-eval paper results"] = "boosters-eval paper results"
    paper: str
    specification_digest: str
    run_id: str | None  # None: nothing could be run
    only: tuple[str, ...] = ()  # what the run was restricted to; other targets are not missing then
    environment: dict[str, str] = Field(
        default_factory=dict
    )  # commit, versions, machine, command: of the time when it ran
    targets: tuple[Measured, ...]

    @property
    def exit_code(self) -> int:
        """A target that did not run is no success."""
        good = all(found.status == "ok" for found in self.targets)
        return ExitCode.SUCCESS if good else ExitCode.EXECUTION_ERROR

    def to_json(self) -> str:
        """The file."""
        return self.model_dump_json(indent=1) + "\n"

    def show(self, screen: Screen) -> None:
        """What was measured, target by target."""
        if not screen.quiet:
            rows = [_shown(found) for found in self.targets]
            screen.rows(("table", "row", "data set", "status", "measured"), rows, keys=3)

    def conclude(self, screen: Screen) -> None:
        """What did not run and what it warned of is told, even if quiet."""
        for found in self.targets:
            if found.status != "ok":
                screen.note(f"Error: {found.name}: {found.status.replace('_', ' ')}: {found.reason}")
            for text in found.warnings:
                screen.note(f"Warning: {found.name}: {text}")


def _shown(found: Measured) -> tuple[str, ...]:
    values = "; ".join(f"{name} {_spread(numbers)}" for name, numbers in found.values.items())
    return found.table, found.row, found.dataset, found.status.replace("_", " "), values or "-"


def _spread(numbers: tuple[float, ...]) -> str:
    mean = f"{fmean(numbers):.6g}"
    return f"{mean} ± {stdev(numbers):.2g} (n = {len(numbers)})" if len(numbers) > 1 else mean
