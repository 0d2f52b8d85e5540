"""The commands `paper ...`: from a paper's table to a verdict."""

from pathlib import Path
from typing import Annotated

import typer

from boosters_eval.cli.output import print_rows
from boosters_eval.cli.paper_extract import extract

paper = typer.Typer(
    name="paper",
    help="Extract the tables of a paper, reproduce their rows, and compare.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
paper.command("extract")(extract)


@paper.command("list")
def list_targets(
    files: Annotated[list[Path], typer.Argument(metavar="SPEC...", help="Specification files (benchmarks.yaml).")],
) -> None:
    """List the targets of specifications."""
    from boosters_eval.paper.specification import read_specification

    rows = []
    for file in files:
        spec = read_specification(file)
        for kind in ("primary", "secondary"):
            for target in getattr(spec.reproduction_targets, kind):
                rows.append((spec.paper, kind, target.table, ", ".join(target.rows), ", ".join(target.datasets)))
    print_rows(("paper", "kind", "table", "rows", "data sets"), rows)


def register(app: typer.Typer) -> None:
    """Add these commands to the program."""
    app.add_typer(paper)
