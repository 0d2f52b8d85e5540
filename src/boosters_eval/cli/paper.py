"""The commands `paper ...`: from a paper's table to a verdict."""

import typer

from boosters_eval.cli import paper_compare, paper_run
from boosters_eval.cli.paper_extract import extract

paper = typer.Typer(
    name="paper",
    help="Extract the tables of a paper, reproduce their rows, and compare.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
paper.command("extract")(extract)
paper_run.register(paper)
paper_compare.register(paper)


def register(app: typer.Typer) -> None:
    """Add these commands to the program."""
    app.add_typer(paper)
