"""Commands on what earlier runs left: verify."""

from typing import Annotated

import typer

from boosters_eval.cli.output import note
from boosters_eval.errors import ExitCode


def verify(
    run: Annotated[str, typer.Argument(help="A run id, its beginning, or 'last'.")],
    *,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only the exit code.")] = False,
) -> int:
    """Tell a complete, untouched journal from a damaged or incomplete one."""
    from boosters_eval.engine.journal import find_run
    from boosters_eval.engine.journal import verify as check

    folder = find_run(run)
    good = True
    for name, fault in check(folder):
        good = good and not fault
        if not quiet:
            note(f"{folder.run_id}/{name}: {fault or 'complete and untouched'}")
    return ExitCode.SUCCESS if good else ExitCode.EXECUTION_ERROR


def register(app: typer.Typer) -> None:
    """Make these commands part of the program."""
    app.command()(verify)
