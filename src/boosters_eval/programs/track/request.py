"""What `track` is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from boosters_eval.core.request import FLAG, REQUIRED, InHome, Request, anything, number, parameter
from boosters_eval.engine.settings import RUN_REFERENCE

if TYPE_CHECKING:
    from collections.abc import Callable


class TrackRequest(InHome, Request):
    """An earlier run, for trackers."""

    command: ClassVar = "track"
    help: ClassVar = """\
Send an earlier run to MLflow, W&B or another tracker.

What the tracker has already is not sent again. docs/tracking.md lists what is sent, and the variables that say where
to."""
    program: ClassVar = "boosters_eval.programs.track.sending:send"

    reference: str = parameter(
        "last",
        kind=RUN_REFERENCE,
        typed=REQUIRED,
        argument=True,
        help="A run id, the beginning of one, a name given with --name, or 'last'.",
    )
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
    quiet: bool = parameter(False, short="-q", kind=FLAG, door="options", help="Print only errors.")
    say: Callable[[str], None] | None = parameter(
        None, kind=anything("a function"), door="python", help="Is called with each sentence about what is sent."
    )
