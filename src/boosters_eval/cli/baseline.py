"""The commands `baseline record|check|diff`, and their shortcuts `quick` and `full`."""

import os
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from boosters_eval.cli.execution import carry_out, exit_code, show
from boosters_eval.cli.options import Execution, Presentation, settings_of, with_options
from boosters_eval.cli.output import check_output, note, print_rows
from boosters_eval.core.errors import ConfigError, ExitCode, UnknownNameError

baselines = typer.Typer(
    name="baseline",
    help="Record results, and check later results against them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
_RULES = "What counts"
_OUT = "Output"
_SHOWN = 40  # pairs up to which all are listed, even if nothing changed


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
            help="A regression must also be significant; a significant change within tolerance is drift.",
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
            "--fail-on-regression/--no-fail-on-regression", help="Exit 1 on a regression.", rich_help_panel=_RULES
        ),
    ] = True
    junit: Annotated[
        Path | None, typer.Option("--junit", help="Write the verdict as JUnit XML.", rich_help_panel=_OUT)
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

    run: Annotated[str | None, typer.Option("--run", help="Use an earlier run: its id, or 'last'.")] = None
    results: Annotated[Path | None, typer.Option("--results", help="Use a results file.")] = None

    def load(self) -> Any:
        """The results, or None if a run is needed."""
        from boosters_eval.api import load_results, load_run

        if self.run is not None and self.results is not None:
            raise ConfigError("Use either --run or --results, not both.")
        if self.run is not None:
            return load_run(self.run)
        return None if self.results is None else load_results(self.results)


SuiteOption = Annotated[str | None, typer.Option("--suite", help="A suite by name, or path/to/file.py:SUITE.")]
LibraryOption = Annotated[list[str] | None, typer.Option("--library", "-l", help="Only these libraries.")]
SeedsOption = Annotated[int | None, typer.Option("--seeds", "-s", help="Number of random splits.")]


@baselines.command()
@with_options(source=Source, execution=Execution, verbosity=Verbosity)
def record(
    source: Source,
    execution: Execution,
    verbosity: Verbosity,
    file: Annotated[Path | None, typer.Argument(help="The file to record to; the same as --output.")] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The file to record to. Default: tests/baselines/baseline.json."),
    ] = None,
    suite: SuiteOption = None,
    library: LibraryOption = None,
    seeds: SeedsOption = None,
) -> int:
    """Run a suite and record its results.

    The default suite is full. A run with errors is refused.
    """
    from boosters_eval.baseline import make_baseline, save_baseline
    from boosters_eval.baseline.plan import Request, default_path, plan_run
    from boosters_eval.benchmark.settings import Settings

    path = _one_of(file, output, "--output") or default_path()
    if not verbosity.dry_run:
        check_output(path)
    presentation = verbosity.presentation()
    results = source.load()
    if results is None:
        settings = Settings(**settings_of(execution))
        prepared, _ = plan_run(Request(suite, tuple(library) if library else None, seeds), settings)
        results = carry_out(prepared, execution, presentation)
    made = make_baseline(results)
    if not verbosity.dry_run:
        save_baseline(made, path)
    if not verbosity.quiet:
        done = "Would record" if verbosity.dry_run else "Recorded"
        note(f"{done}: {path} ({len(made.results)} pairs of config and library, {len(made.config.seeds)} seeds)")
    return ExitCode.SUCCESS


@baselines.command()
@with_options(source=Source, options=CheckOptions, execution=Execution, verbosity=Verbosity)
def check(
    source: Source,
    options: CheckOptions,
    execution: Execution,
    verbosity: Verbosity,
    file: Annotated[Path | None, typer.Argument(help="The baseline; the same as --baseline.")] = None,
    baseline: Annotated[
        Path | None, typer.Option("--baseline", help="The baseline. Default: tests/baselines/baseline.json.")
    ] = None,
    suite: SuiteOption = None,
    library: LibraryOption = None,
    seeds: SeedsOption = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File for the results: .json, .csv or .md.", rich_help_panel=_OUT),
    ] = None,
) -> int:
    """Run the baseline's suite again and compare.

    Exit 0 if there is no regression, 1 if there is one, 2 if the run or the comparison failed, 3 for bad input.
    """
    from boosters_eval.baseline.plan import Request, default_path

    path = _one_of(file, baseline, "--baseline") or default_path()
    if not path.exists():
        raise ConfigError(f"{path} does not exist; record it with 'boosters-eval baseline record {path}'.")
    return _check(
        path, Request(suite, tuple(library) if library else None, seeds), source, options, execution, verbosity, output
    )


@baselines.command()
@with_options(options=CheckOptions)
def diff(
    options: CheckOptions,
    before: Annotated[Path, typer.Argument(metavar="A.json", help="The earlier baseline.")],
    after: Annotated[Path, typer.Argument(metavar="B.json", help="The later baseline.")],
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only the verdict, no table.")] = False,
) -> int:
    """Compare two baselines without running anything.

    The exit codes are those of 'baseline check'.
    """
    from boosters_eval.baseline import Snapshot, load_baseline
    from boosters_eval.baseline import check as compare

    rules = _rules(options)
    check_output(options.junit)
    old, new = load_baseline(before), load_baseline(after)
    found = compare(Snapshot.of_baseline(old), Snapshot.of_baseline(new), rules)
    _tell(found, str(before), options, Verbosity(quiet=quiet))
    return found.exit_code(fail_on_regression=options.fail_on_regression)


def _check(
    path: Path,
    request: Any,
    source: Source,
    options: CheckOptions,
    execution: Execution,
    verbosity: Verbosity,
    output: Path | None,
) -> int:
    from boosters_eval.baseline import Snapshot, load_baseline
    from boosters_eval.baseline import check as compare
    from boosters_eval.baseline.check import check_names
    from boosters_eval.baseline.plan import plan_run
    from boosters_eval.benchmark.settings import Settings

    rules, presentation = _rules(options), verbosity.presentation()
    if verbosity.dry_run:
        options, output = replace(options, junit=None), None
    for file in (output, options.junit):
        check_output(file)
    before = load_baseline(path)
    results = source.load()
    if results is None:
        settings = Settings(**settings_of(execution))
        prepared, restriction = plan_run(request, settings, before)
        rules = rules.replace(**asdict(restriction))
        planned = [(cell.spec.name, cell.target) for cell in prepared.plan.cells]
        check_names(Snapshot.of_baseline(before), planned, rules)  # before the run, not after it
        results = carry_out(prepared, execution, presentation)
    else:
        results = _only(results, request.libraries)
        rules = rules.replace(only_libraries=request.libraries, fewer_cells=request.names_seeds)
    if output is not None:
        show(results, Presentation(output=output, quiet=True))
    found = compare(Snapshot.of_baseline(before), Snapshot.of_run(results), rules)
    if not verbosity.quiet:
        show(results, presentation)
    _tell(found, str(path), options, verbosity)
    return found.exit_code(fail_on_regression=options.fail_on_regression, continue_on_error=execution.continue_on_error)


def _only(results: Any, libraries: tuple[str, ...] | None) -> Any:
    """The outcomes of these libraries, as if no others had run."""
    from boosters_eval.benchmark.results import ResultCollection

    if libraries is None:
        return results
    known = {outcome.library for outcome in [*results.results, *results.errors]}
    for name in libraries:
        if name not in known:
            raise UnknownNameError("library of the results", name, known)
    return ResultCollection(
        (result for result in results.results if result.library in libraries),
        (error for error in results.errors if error.library in libraries),
        unsupported=results.unsupported,
        run_id=results.run_id,
        suite=results.suite,
        metadata=results.metadata,
    )


def _one_of(argument: Path | None, option: Path | None, name: str) -> Path | None:
    if argument is not None and option is not None and argument != option:
        raise ConfigError(f"Give the file once: as an argument or with {name}. Got {argument} and {option} instead.")
    return argument or option


def _rules(options: CheckOptions) -> Any:
    from boosters_eval.baseline import CheckRules

    if not 0 <= options.tolerance < 1:
        raise ConfigError(
            f"The '--tolerance' option must be a share from 0 to below 1, such as 0.02 for 2 %. "
            f"Got {options.tolerance} instead."
        )
    return CheckRules(
        tolerance=options.tolerance,
        tolerance_for=dict(_named_tolerance(text) for text in options.tolerance_for or []),
        statistical=options.statistical,
        under_test=tuple(options.libraries_under_test) if options.libraries_under_test else None,
    )


def _named_tolerance(text: str) -> tuple[str, float]:
    name, _, value = text.rpartition("=")
    try:
        share = float(value)
    except ValueError:
        share = -1.0
    if not name or not 0 <= share < 1:
        raise ConfigError(
            "The '--tolerance-for' option must be METRIC=X or CONFIG=X, X a share from 0 to below 1. "
            f"Got '{text}' instead."
        )
    return name, share


def _tell(found: Any, name: str, options: CheckOptions, verbosity: Verbosity) -> None:
    """Print the verdict: a table for people, the RFC's lines, and what CI systems read."""
    from boosters_eval.baseline import render
    from boosters_eval.core.files import write_atomically

    if not verbosity.quiet:
        rows = render.rows(found, everything=verbosity.verbose or len(found.findings) <= _SHOWN)
        if rows and sys.stdout.isatty():
            print_rows(render.HEADINGS, rows)
        elif rows:
            sys.stdout.write(render.table(rows) + "\n")
    sys.stdout.write("\n".join(render.lines(found, name)) + "\n")
    if options.junit is not None:
        write_atomically(options.junit, render.junit(found, name))
    if os.environ.get("GITHUB_ACTIONS") == "true":
        commands = render.workflow_commands(found, failing=options.fail_on_regression)
        sys.stdout.writelines(f"{line}\n" for line in commands)
        if not verbosity.dry_run:
            _summarise(render.markdown(found, name))


def _summarise(text: str) -> None:
    """Append to the job summary of GitHub Actions; if that fails, it is only noted."""
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if path:
        try:
            with Path(path).open("a", encoding="utf-8") as file:
                file.write(text + "\n")
        except OSError as error:
            note(f"Note: the job summary {path} cannot be written: {error.strerror}.")


def _shortcut(
    suite: str, options: CheckOptions, execution: Execution, verbosity: Verbosity, output: Path | None
) -> int:
    from boosters_eval.baseline.plan import Request, default_path, plan_run
    from boosters_eval.benchmark.settings import Settings

    path, request = default_path(suite), Request(suite)
    if path.exists():
        return _check(path, request, Source(), options, execution, verbosity, output)
    if not verbosity.dry_run:
        check_output(output)
    settings, presentation = Settings(**settings_of(execution)), verbosity.presentation()
    prepared, _ = plan_run(request, settings)
    results = carry_out(prepared, execution, presentation)
    if output is not None:
        show(results, Presentation(output=output, quiet=True))
    show(results, presentation)
    note(
        f"No baseline at {path}: nothing was checked. "
        f"Record one with 'boosters-eval baseline record --suite {suite} {path}'."
    )
    failed = exit_code(results, continue_on_error=execution.continue_on_error)
    return failed or ExitCode.CONFIGURATION_ERROR


OutputOption = Annotated[
    Path | None, typer.Option("--output", "-o", help="File for the results: .json, .csv or .md.", rich_help_panel=_OUT)
]


@with_options(options=CheckOptions, execution=Execution, verbosity=Verbosity)
def quick(options: CheckOptions, execution: Execution, verbosity: Verbosity, output: OutputOption = None) -> int:
    """Run the quick suite and check its baseline (half a minute)."""
    return _shortcut("quick", options, execution, verbosity, output)


@with_options(options=CheckOptions, execution=Execution, verbosity=Verbosity)
def full(options: CheckOptions, execution: Execution, verbosity: Verbosity, output: OutputOption = None) -> int:
    """Run the full suite and check its baseline (several minutes)."""
    return _shortcut("full", options, execution, verbosity, output)


def register(app: typer.Typer) -> None:
    """Add these commands to the program."""
    app.command()(quick)
    app.command()(full)
    app.add_typer(baselines)
