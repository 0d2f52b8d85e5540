"""The command `verify`."""

from pathlib import Path
from typing import Annotated

import typer

from boosters_eval.cli.output import say
from boosters_eval.core.errors import ConfigError, ExitCode


def verify(
    run: Annotated[
        str,
        typer.Argument(
            help="A run id, the beginning of one, its name, 'last', a run's folder, or the file of a gate decision."
        ),
    ],
    *,
    baseline: Annotated[Path | None, typer.Option("--baseline", help="The baseline that the decision quotes.")] = None,
    scores: Annotated[Path | None, typer.Option("--scores", help="The scores file that the decision quotes.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing; only set the exit code.")] = False,
) -> int:
    """Verify a run's journal, or recompute a gate decision.

    A journal must be complete and unchanged; a decision must be reproduced byte for byte.
    """
    from boosters_eval.api import verify_run
    from boosters_eval.programs import gate

    file = Path(run)
    if file.is_file():
        if not gate.is_decision(file):
            raise ConfigError(f"{file} is not a gate decision.")
        fault = gate.verify_decision(file, baseline=baseline, scores=scores)
        if not quiet:
            against = gate.verified_against(file, baseline=baseline, scores=scores)
            say(f"{file}: {fault or f'computed again, with the same bytes ({against})'}")
        return ExitCode.EXECUTION_ERROR if fault else ExitCode.SUCCESS
    if baseline is not None or scores is not None:
        raise ConfigError("The '--baseline' and '--scores' options are only for the file of a gate decision.")
    good = True
    for name, fault in verify_run(run):
        good = good and not fault
        if not quiet:
            say(f"{name}: {fault or 'complete and untouched'}")
    return ExitCode.SUCCESS if good else ExitCode.EXECUTION_ERROR


def register(app: typer.Typer) -> None:
    """Add this command to the program."""
    app.command()(verify)
