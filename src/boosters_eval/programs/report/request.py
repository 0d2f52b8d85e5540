"""What `report`, `figures` and `runs open` are asked for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.request import OUTPUT, REQUIRED, InHome, Request, choice, parameter, path, quiet_option
from boosters_eval.core.terms import is_typed, named
from boosters_eval.engine.settings import RUN_REFERENCE, run_parameter
from boosters_eval.programs.benchmark.request import (
    Margined,
    Settings,
    Tolerant,
    judging_test_parameter,
    libraries_parameter,
    seeds_parameter,
    suite_parameter,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boosters_eval.stats.significance import TestName

TYPES = ("quality", "performance", "comparison")
_RUN = "A run id, the beginning of one, a name given with --name, or 'last'."


class ReportRequest(Settings, Tolerant, Margined, Request):
    command: ClassVar = "report"
    help: ClassVar = "Write a report on a suite, an earlier run or a results file."
    program: ClassVar = "boosters_eval.programs.report.writing:write"

    suite: Any = suite_parameter(None, "Run this suite and report on it.")
    run: str | None = run_parameter("Report on an earlier run")
    results: Path | None = parameter(None, kind=path(), help="Report on a results file (JSON).")
    report_type: Literal["quality", "performance", "comparison"] = parameter(
        "quality", option="--type", kind=choice(*TYPES), help="quality, performance or comparison."
    )
    test: TestName = judging_test_parameter()
    seeds: int | None = seeds_parameter("With --suite: number of random splits. Default: the suite's.")
    libraries: Any = libraries_parameter("With --suite: only these libraries. Default: all of it.")
    output: Path = parameter(
        Path("docs/benchmarks"),
        short="-o",
        kind=path(metavar="PATH"),
        panel=OUTPUT,
        help="Directory for the files, or one file: .md, .txt, .json, .html or .tex.",
    )
    format: str | Sequence[str] = parameter(
        (),
        short="-f",
        kind=choice("md", "markdown", "json", "html", "latex", "tex"),
        separator="[, ]+",
        panel=OUTPUT,
        help="One or more of md (or markdown), json, html, latex. Default: by the file, else the first three.",
    )
    open: bool = parameter(False, panel=OUTPUT, door="options", help="Open the report after writing it.")
    dry_run: bool = parameter(
        False,
        panel=OUTPUT,
        door="options",
        help="Show the report instead of writing it; of a suite, only what would run.",
    )

    def check(self) -> None:
        """A report is on one thing, and only a suite runs, so only that can be tracked."""
        super().check()
        sources = ("suite", "run", "results")
        if sum(getattr(self, name) is not None for name in sources) != 1:
            first, second, third = map(named, sources)
            raise ConfigError(f"Use exactly one of {first}, {second} and {third} to choose what to report on.")
        if self.track and self.suite is None:
            way = "'boosters-eval track RUN --to'" if is_typed() else "track_run()"
            raise ConfigError(f"Use either {named('track')} or an earlier run, not both: {way} sends that.")
        if self.suite is None:
            self.refuse_settings("seeds", "libraries")


class FiguresRequest(InHome, Request):
    command: ClassVar = "figures"
    help: ClassVar = "Draw the charts of a run, one file each, for papers and slides."
    program: ClassVar = "boosters_eval.programs.report.writing:draw_figures"

    run: str = parameter(
        "last",
        kind=RUN_REFERENCE,
        typed=REQUIRED,
        argument=True,
        help=_RUN,
    )
    output: Path = parameter(
        Path("figures"), short="-o", kind=path(metavar="FOLDER"), help="The folder that the files go to."
    )
    format: str | Sequence[str] = parameter(
        ("svg", "pdf"),
        short="-f",
        kind=choice("svg", "pdf"),
        separator="[, ]+",
        help="svg, pdf or both. Default: both.",
    )
    quiet: bool = quiet_option()


class OpenRunRequest(InHome, Request):
    command: ClassVar = "runs open"
    help: ClassVar = """\
Write the HTML report of a run into its folder, and open it in the browser.

Without a display, only the path is printed."""
    program: ClassVar = "boosters_eval.programs.report.writing:open_run"

    reference: str = parameter("last", kind=RUN_REFERENCE, argument=True, help=_RUN)
    browser: bool = parameter(
        True, negative="--no-browser", help="Open the page, or only write it, and print its path."
    )
