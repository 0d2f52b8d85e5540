"""The options of the commands on baselines, declared once."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from boosters_eval.cli.options import Presentation
from boosters_eval.cli.training import BUILDS
from boosters_eval.core.errors import ConfigError

_RULES = "What counts"
_OUT = "Output"

FlakyOption = Annotated[
    int,
    typer.Option(
        "--allow-flaky",
        min=0,
        metavar="N",
        help="Accept up to N cells that finished only after failing.",
        rich_help_panel=_RULES,
    ),
]


@dataclass(frozen=True)
class CheckOptions:
    """The rules of the check, and what is done with the verdict."""

    tolerance: Annotated[
        float,
        typer.Option(
            "--tolerance", help="How much worse the primary metric may be: 0.02 is 2 %.", rich_help_panel=_RULES
        ),
    ] = 0.02
    tolerance_for: Annotated[
        list[str] | None,
        typer.Option("--tolerance-for", help="Single tolerances, as METRIC=X or CONFIG=X.", rich_help_panel=_RULES),
    ] = None
    statistical: Annotated[
        bool,
        typer.Option(
            "--statistical",
            help="Test each change: beyond tolerance but undecided is suspected (exit 1), within it but significantly"
            " worse is drift (exit 0).",
            rich_help_panel=_RULES,
        ),
    ] = False
    libraries_under_test: Annotated[
        list[str] | None,
        typer.Option(
            "--libraries-under-test",
            help="Only these can fail. Default: boosters, and all libraries at their recorded version.",
            rich_help_panel=_RULES,
        ),
    ] = None
    fail_on_regression: Annotated[
        bool,
        typer.Option(
            "--fail-on-regression/--no-fail-on-regression",
            help="Exit 1 on a regression, or a suspected one.",
            rich_help_panel=_RULES,
        ),
    ] = True
    allow_flaky: FlakyOption = 0
    junit: Annotated[
        Path | None, typer.Option("--junit", help="Write the verdict as JUnit XML.", rich_help_panel=_OUT)
    ] = None
    verdict: Annotated[
        Path | None, typer.Option("--verdict", help="Write the verdict as JSON.", rich_help_panel=_OUT)
    ] = None


@dataclass(frozen=True)
class Verbosity:
    """How much is printed about a run."""

    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would run, but run nothing.", rich_help_panel=_OUT)
    ] = False
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print more.", rich_help_panel=_OUT)] = False
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only the verdict.", rich_help_panel=_OUT)] = False

    def presentation(self) -> Presentation:
        """The same, in the form that the functions that run a plan expect."""
        if self.verbose and self.quiet:
            raise ConfigError("Use either --verbose or --quiet, not both.")
        return Presentation(**asdict(self))


@dataclass(frozen=True)
class Source:
    """Where results come from if nothing is to be run."""

    run: Annotated[
        str | None, typer.Option("--run", help="Use an earlier run: its id, the beginning of it, its name, or 'last'.")
    ] = None
    results: Annotated[Path | None, typer.Option("--results", help="Use a results file.")] = None

    def load(self) -> Any:
        """The results, or None if a run is needed."""
        from boosters_eval.api import load_results, load_run

        if self.run is not None and self.results is not None:
            raise ConfigError("Use either --run or --results, not both.")
        if self.run is not None:
            return load_run(self.run, verified=True)  # a baseline decides
        return None if self.results is None else load_results(self.results)


SuiteOption = Annotated[str | None, typer.Option("--suite", help="A suite by name, or path/to/file.py:SUITE.")]
LibraryOption = Annotated[
    list[str] | None,
    typer.Option("--library", "-l", help=f"Only these libraries{BUILDS} Default: all of the suite or baseline."),
]
SeedsOption = Annotated[
    int | None, typer.Option("--seeds", "-s", help="Number of random splits. Default: the suite's.")
]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="File for the results: .json, .csv, .html, .md or .txt (both Markdown).",
        rich_help_panel=_OUT,
    ),
]
