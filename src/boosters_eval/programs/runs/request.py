"""What `runs list|show|open|remove|prune`, `verify` and `track` are asked for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.request import (
    REQUIRED,
    SPAN,
    InHome,
    JsonOption,
    RemovalOptions,
    Request,
    anything,
    count,
    number,
    parameter,
    path,
    quiet_option,
    text,
)
from boosters_eval.core.terms import named
from boosters_eval.engine.settings import RUN_REFERENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import timedelta


_REFERENCE = "A run id, the beginning of one, a name given with --name, or 'last'."


class ListRunsRequest(InHome, JsonOption, Request):
    command: ClassVar = "runs list"
    help: ClassVar = "List the runs in this home, the latest first; unreadable ones too."
    program: ClassVar = "boosters_eval.programs.runs.manage:list_runs"

    wide: bool = parameter(False, door="options", help="Show attempts, sizes and commands too, as in a pipe.")
    limit: int | None = parameter(None, short="-n", kind=count(1), help="Only the latest so many. Default: all.")


class ShowRunRequest(InHome, JsonOption, Request):
    command: ClassVar = "runs show"
    help: ClassVar = "Show what is known of a run: its facts, its attempts, and the commands that go on from it."
    program: ClassVar = "boosters_eval.programs.runs.manage:show_run"

    reference: str = parameter(kind=RUN_REFERENCE, argument=True, help=_REFERENCE)


class ChosenRuns(InHome, RemovalOptions):
    """Which runs are meant."""

    references: str | Sequence[str] = parameter(
        (), kind=text(RUN_REFERENCE.words, "RUN..."), argument=True, help=_REFERENCE
    )
    older_than: timedelta | None = parameter(
        None, kind=SPAN, help="All runs last written to before so long: 12h, 30d, 8w."
    )


class RemoveRunsRequest(ChosenRuns, Request):
    command: ClassVar = "runs remove"
    help: ClassVar = """\
Remove runs, with all their attempts. One that is being executed stays.

What was written elsewhere stays: baselines, reports, and gate decisions, which can no longer be verified."""
    program: ClassVar = "boosters_eval.programs.runs.manage:choose_runs"

    def check(self) -> None:
        super().check()
        if bool(self.references) == (self.older_than is not None):
            raise ConfigError(f"Use either {named('references')} or {named('older_than')} to choose what to remove.")


class PruneRunsRequest(ChosenRuns, Request):
    command: ClassVar = "runs prune"
    help: ClassVar = """\
Remove what runs can do without, from all runs unless some are named. Their results stay.

Without its predictions, the verdicts of a run come from its splits alone."""
    program: ClassVar = "boosters_eval.programs.runs.manage:choose_predictions"

    predictions: bool = parameter(False, help="Remove what models predicted for each row.")

    def check(self) -> None:
        super().check()
        if not self.predictions:
            raise ConfigError(f"Say what to remove: use {named('predictions')}.")
        if self.references and self.older_than is not None:
            raise ConfigError(f"Use either {named('references')} or {named('older_than')}, not both.")


class VerifyRequest(InHome, Request):
    command: ClassVar = "verify"
    help: ClassVar = (
        "Verify a run's journal, a baseline, or recompute a gate decision.\n\n"
        "A journal must be complete and unchanged, a baseline what its run measured; a decision must be reproduced byte"
        " for byte. What could not be checked is said."
    )
    program: ClassVar = "boosters_eval.programs.runs.manage:verify"

    reference: str | Path = parameter(
        kind=anything("a run's id, the beginning of one, its name, 'last', or a path", str, Path, metavar="RUN"),
        argument=True,
        help="A run id, the beginning of one, its name, 'last', a run's folder, a baseline, or a gate decision.",
    )
    baseline: Path | None = parameter(None, kind=path(), help="The baseline that the decision quotes.")
    scores: Path | None = parameter(None, kind=path(), help="The scores file that the decision quotes.")
    quiet: bool = quiet_option("Print nothing; only set the exit code.")


class TrackRequest(InHome, Request):
    command: ClassVar = "track"
    help: ClassVar = """\
Send an earlier run to MLflow, W&B or another tracker.

What the tracker has already is not sent again. docs/tracking.md lists what is sent, and the variables that say where
to."""
    program: ClassVar = "boosters_eval.programs.runs.manage:track_run"

    reference: str = parameter("last", kind=RUN_REFERENCE, typed=REQUIRED, argument=True, help=_REFERENCE)
    to: Any = parameter(
        "mlflow",
        kind=anything("names or Tracker classes", metavar="NAME"),
        several=True,
        raw=True,
        typed=REQUIRED,
        help="The trackers: mlflow, wandb, or one of your own by its name.",
    )
    timeout: float = parameter(
        600.0,
        kind=number("a number of seconds above 0", above=0, metavar="SECONDS"),
        help="Seconds after which sending is given up.",
    )
    dry_run: bool = parameter(False, door="options", help="List what would be sent, and send nothing.")
    quiet: bool = quiet_option()
    say: Callable[[str], None] | None = parameter(
        None, kind=anything("a function"), door="python", help="Is called with each sentence about what is sent."
    )
