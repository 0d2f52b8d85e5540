"""The command that sends an earlier run to trackers."""

from typing import Annotated

import typer

from boosters_eval.cli.output import note
from boosters_eval.core.errors import ExitCode


def track(
    run: Annotated[str, typer.Argument(help="A run id, the beginning of one, a name given with --name, or 'last'.")],
    *,
    to: Annotated[list[str], typer.Option("--to", help="The trackers: mlflow, wandb, or one of your own by its name.")],
    timeout: Annotated[
        float, typer.Option("--timeout", min=1, help="Seconds after which sending is given up.")
    ] = 600.0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors.")] = False,
) -> int:
    """Send an earlier run to MLflow, W&B or another tracker.

    What the tracker has already is not sent again. docs/tracking.md lists what is sent, and the variables that say
    where to.
    """
    from boosters_eval.api import track_run

    track_run(run, to, timeout=timeout, say=(lambda _: None) if quiet else note)
    return ExitCode.SUCCESS


def register(app: typer.Typer) -> None:
    """Add this command to the program."""
    app.command()(track)
