"""Commands on what earlier runs left: verify."""

from pathlib import Path
from typing import Annotated

import typer

from boosters_eval.cli.output import note
from boosters_eval.core.errors import ConfigError, ExitCode


def verify(
    run: Annotated[str, typer.Argument(help="A run id, its beginning, 'last', or the file of a gate's decision.")],
    *,
    baseline: Annotated[Path | None, typer.Option("--baseline", help="The baseline that a decision quotes.")] = None,
    scores: Annotated[Path | None, typer.Option("--scores", help="The scores file that a decision quotes.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only the exit code.")] = False,
) -> int:
    """Tell a complete, untouched journal from a damaged one; compute a gate's decision again."""
    from boosters_eval import gate
    from boosters_eval.api import verify_run

    file = Path(run)
    if file.is_file():
        if not gate.is_decision(file):
            raise ConfigError(f"{file} is not a decision of the gate.")
        fault = gate.verify_decision(file, baseline=baseline, scores=scores)
        if not quiet:
            against = gate.verified_against(file, baseline=baseline, scores=scores)
            note(f"{file}: {fault or f'computed again, with the same bytes ({against})'}")
        return ExitCode.EXECUTION_ERROR if fault else ExitCode.SUCCESS
    if baseline is not None or scores is not None:
        raise ConfigError("The '--baseline' and '--scores' options are for the file of a gate's decision.")
    good = True
    for name, fault in verify_run(run):
        good = good and not fault
        if not quiet:
            note(f"{name}: {fault or 'complete and untouched'}")
    return ExitCode.SUCCESS if good else ExitCode.EXECUTION_ERROR


def register(app: typer.Typer) -> None:
    """Make these commands part of the program."""
    app.command()(verify)
