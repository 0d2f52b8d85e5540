"""What `baseline record|check|diff` and the shortcuts `quick` and `full` are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.request import (
    MAX_SEEDS,
    OUTPUT,
    RUN,
    Accepted,
    Declared,
    Request,
    anything,
    count,
    number,
    output_option,
    parameter,
    path,
    quiet_option,
    text,
)
from boosters_eval.core.terms import given, named, the
from boosters_eval.engine.settings import run_parameter
from boosters_eval.programs.benchmark.request import (
    BEFORE_A_LIBRARY,
    BUILDS,
    Settings,
    Tolerant,
    libraries_parameter,
    seeds_parameter,
    suite_parameter,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

RULES = "What counts"  # a panel of the help
DEFAULT_TOLERANCE = 0.02
_SHARE = number("a share from 0 to below 1, such as 0.02 for 2 %", least=0, below=1)


def _file_or(model: str, metavar: str = "FILE") -> Accepted:
    """A file, or from Python what it would hold, which the program itself recognizes."""
    words = f"a file or a {model}"
    return Accepted(words, lambda value: Path(value) if isinstance(value, str) else value, Path, metavar)


def _named_share(word: str) -> tuple[str, float]:
    name, _, value = word.rpartition("=")
    if not name:
        raise ValueError
    return name, _SHARE.read(value)


def _named_shares(value: Any) -> dict[str, float]:
    try:
        pairs = dict(value.items() if isinstance(value, Mapping) else value)
    except TypeError:
        raise ValueError from None
    if not all(isinstance(name, str) and name for name in pairs):
        raise ValueError
    return {name: _SHARE.of(share) for name, share in pairs.items()}


class Allowance(Declared):
    """What is accepted of cells that were run again."""

    panel: ClassVar = RULES

    allow_flaky: int = parameter(0, kind=count(0), help="Accept up to N cells that finished only after failing.")


class Judging(Allowance):
    """The rules of a check, and what is done with its verdict."""

    panel: ClassVar = RULES

    tolerance: float = parameter(
        DEFAULT_TOLERANCE, kind=_SHARE, help="How much worse the primary metric may be: 0.02 is 2 %."
    )
    tolerance_for: Mapping[str, float] | None = parameter(
        None,
        kind=Accepted("METRIC=X or CONFIG=X, X a share from 0 to below 1", _named_shares, _named_share, "NAME=X"),
        several=True,
        raw=True,
        help="Single tolerances, as METRIC=X or CONFIG=X.",
    )
    statistical: bool = parameter(
        False,
        help="Fail only what the rows show to be worse: beyond tolerance but undecided is marked (exit 0). Without"
        " predictions, the tolerance decides.",
    )
    libraries_under_test: Sequence[str] = parameter(
        (),
        kind=anything("names of libraries", str, metavar="NAME"),
        separator=BEFORE_A_LIBRARY,
        help="Only these can fail. Default: boosters, and all libraries at their recorded version.",
    )
    fail_on_regression: bool = parameter(
        True, negative="--no-fail-on-regression", door="options", help="Exit 1 on a regression, or if one is undecided."
    )
    junit: Path | None = parameter(
        None, kind=path(), panel=OUTPUT, door="options", written=True, help="Write the verdict as JUnit XML."
    )
    verdict: Path | None = parameter(
        None, kind=path(), panel=OUTPUT, door="options", written=True, help="Write the verdict as JSON."
    )


class Selection(Settings):
    """Of which libraries there will be results, and how they are run."""

    libraries: Any = libraries_parameter(f"Only these libraries{BUILDS} Default: all of the suite or baseline.")


class ResultsOf(Selection):
    """Where results come from: a suite that is run, or an earlier run."""

    suite: Any = suite_parameter(None, "A suite by name, or path/to/file.py:SUITE.")
    run: str | None = run_parameter("Use an earlier run")
    results: Any = parameter(None, kind=_file_or("ResultCollection"), help="Use a results file.")

    def check(self) -> None:
        super().check()
        if self.run is not None and self.results is not None:
            raise ConfigError(f"Use either {named('run')} or {named('results')}, not both.")
        if self.track and self.is_read:
            raise ConfigError(
                f"Use either {named('track')} or an earlier run, not both: 'boosters-eval track RUN --to' sends that."
            )
        if self.is_read:
            self.refuse_settings()

    @property
    def is_read(self) -> bool:
        return self.run is not None or self.results is not None


class RecordRequest(ResultsOf, Allowance, Request):
    command: ClassVar = "baseline record"
    help: ClassVar = (
        "Run a suite and record its results.\n\n"
        "The default suite is full. A run with errors, or with cells that finished only after failing, is refused."
    )
    program: ClassVar = "boosters_eval.programs.baseline.commands:record_baseline"

    file: Path | None = parameter(None, kind=path(), argument=True, help="The file to record to; the same as --output.")
    output: Path | None = parameter(
        None,
        short="-o",
        kind=path(),
        door="options",
        help="The file to record to. Default: tests/baselines/baseline.json.",
    )
    seeds: int | None = seeds_parameter("Number of splits. Default: the suite's.")
    continue_on_error: bool = parameter(
        False, panel=RUN, help="Record without the (config, library) pairs in which a cell failed."
    )
    force: bool = parameter(False, door="options", help="Replace a baseline although pairs get worse or disappear.")

    def check(self) -> None:
        super().check()
        _check_once(self.file, self.output, "output")
        for name in ("suite", "seeds"):
            if self.is_read and getattr(self, name) is not None:
                raise ConfigError(f"Use either {named(name)} or an earlier run, not both: it is recorded as it is.")


class UpdateRequest(ResultsOf, Allowance, Request):
    command: ClassVar = "baseline update"
    help: ClassVar = (
        "Merge a run into a baseline, by library or data set.\n\n"
        "Other pairs stay as they are. Without a run, the baseline's suite runs. What gets worse or disappears needs a"
        " reason, which the file keeps; without one nothing is written (exit 3)."
    )
    program: ClassVar = "boosters_eval.programs.baseline.commands:update_baseline"

    file: Path | None = parameter(
        None, kind=path(), argument=True, help="The baseline. Default: tests/baselines/baseline.json."
    )
    datasets: Sequence[str] = parameter(
        (),
        option="--dataset",
        short="-d",
        kind=text("names of data sets or configs", "NAME"),
        help="Only the pairs of these data sets or configs. Default: all of the run.",
    )
    accept: str = parameter(
        "", kind=text("a reason", "REASON"), help="Why pairs may get worse or disappear; the file keeps it."
    )
    seeds: ClassVar[None] = None

    def check(self) -> None:
        super().check()
        if self.is_read and self.suite is not None:
            raise ConfigError(f"Use either {named('suite')} or an earlier run, not both: it is recorded as it is.")


class Checking(Selection, Tolerant, Judging):
    """A run that is checked, and where its results go."""

    formats: ClassVar[tuple[str, ...]] = ("markdown", "json", "csv", "html")

    output: Path | None = output_option("File for the results: .json, .csv, .html, .md or .txt (both Markdown).")
    fresh: bool = parameter(
        False,
        panel=RUN,
        help="Train every cell. Otherwise finished cells of earlier runs with the same build, data and split are taken"
        " over.",
    )

    @property
    def takes_over(self) -> bool:
        return not self.fresh

    @property
    def how_fresh(self) -> str:
        return f"; {named('fresh')} trains them anew"


class CheckRequest(Checking, ResultsOf, Request):
    command: ClassVar = "baseline check"
    help: ClassVar = (
        "Run the baseline's suite again and compare.\n\n"
        "Exit 0 if there is no regression, 1 if there is one or one is undecided, 2 if the run or the comparison failed"
        " or cells are flaky, 3 for bad input."
    )
    program: ClassVar = "boosters_eval.programs.baseline.commands:check_baseline"

    file: Path | None = parameter(
        None, kind=path(), argument=True, door="options", help="The baseline; the same as --baseline."
    )
    baseline: Any = parameter(
        None, kind=_file_or("Baseline"), help="The baseline. Default: tests/baselines/baseline.json."
    )
    seeds: int | str | None = seeds_parameter(
        "Number of splits, or auto (with --statistical): as many of the recorded ones as it takes to decide."
        " Default: all recorded.",
        auto=True,
    )
    max_seeds: int | None = parameter(
        None, kind=count(2, MAX_SEEDS), help="The most seeds that --seeds auto may use. Default: all recorded."
    )

    def check(self) -> None:
        super().check()
        _check_once(self.file, self.baseline, "baseline")
        auto = given("seeds", "auto")
        if self.seeds == "auto" and not self.statistical:
            raise ConfigError(f"{auto} needs {named('statistical')}: without a test, the tolerance decides at once.")
        if (self.seeds == "auto" or self.max_seeds) and self.is_read:
            raise ConfigError(f"Use either {auto} or the results of an earlier run, not both: it must run something.")
        if self.max_seeds is not None and self.seeds != "auto":
            raise ConfigError(f"{the('max_seeds')} needs {auto}.")


class Recording(Declared):
    """What is done where there is no baseline yet, or the run shall become one."""

    record: bool = parameter(
        False, panel=RULES, help="Check nothing: make this run the suite's baseline, in tests/baselines."
    )


class QuickRequest(Checking, Recording, Request):
    command: ClassVar = "quick"
    help: ClassVar = "Run the quick suite and check its baseline (half a minute)."
    program: ClassVar = "boosters_eval.programs.baseline.commands:check_suite"
    suite: ClassVar = "quick"


class CheckSuiteRequest(Checking, Recording, Request):
    command: ClassVar = "check"
    help: ClassVar = (
        "Run the check suite and check its baseline (a minute): for pull requests.\n\n"
        "Its data are so large that a harmless change passes and a loss of 5 % fails."
    )
    program: ClassVar = QuickRequest.program
    suite: ClassVar = "check"


class FullRequest(Checking, Recording, Request):
    command: ClassVar = "full"
    help: ClassVar = "Run the full suite and check its baseline (several minutes)."
    program: ClassVar = QuickRequest.program
    suite: ClassVar = "full"


class DiffRequest(Judging, Request):
    command: ClassVar = "baseline diff"
    help: ClassVar = "Compare two baselines without running anything.\n\nThe exit codes are those of 'baseline check'."
    program: ClassVar = "boosters_eval.programs.baseline.check:diff_baselines"

    before: Any = parameter(kind=_file_or("Baseline", "A.json"), argument=True, help="The earlier baseline.")
    after: Any = parameter(kind=_file_or("Baseline", "B.json"), argument=True, help="The later baseline.")
    verbose: bool = parameter(False, short="-v", panel=OUTPUT, door="options", help="Print the tables too.")
    quiet: bool = quiet_option("Print only the verdict.")

    def check(self) -> None:
        super().check()
        if self.verbose and self.quiet:
            raise ConfigError(f"Use either {named('verbose')} or {named('quiet')}, not both.")


def _check_once(argument: Path | None, option: Any, name: str) -> None:
    if argument is not None and option is not None and argument != option:
        raise ConfigError(
            f"Give the file once: as an argument or with {named(name)}. Got {argument} and {option} instead."
        )
