"""The commands `baseline record|check|diff`, and their shortcuts `quick` and `full`."""

import re
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from boosters_eval.cli.checks import (
    CheckOptions,
    FlakyOption,
    LibraryOption,
    OutputOption,
    SeedsOption,
    Source,
    SuiteOption,
    Verbosity,
)
from boosters_eval.cli.execution import carry_out, exit_code, show
from boosters_eval.cli.options import Execution, Presentation, refuse_tracking, settings_of, with_options
from boosters_eval.cli.output import check_output, note, print_rows, say
from boosters_eval.cli.workflow import in_workflow, summarise
from boosters_eval.core.errors import ConfigError, ExitCode, UnknownNameError
from boosters_eval.core.text import counted

baselines = typer.Typer(
    name="baseline",
    help="Record results, and check later results against them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
_SHOWN = 40  # pairs up to which all are listed, even if nothing changed


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
    allow_flaky: FlakyOption = 0,
) -> int:
    """Run a suite and record its results.

    The default suite is full. A run with errors, or with cells that finished only after failing, is refused.
    """
    from boosters_eval.programs.baseline import make_baseline, save_baseline
    from boosters_eval.programs.baseline.plan import Request, default_path, plan_run
    from boosters_eval.programs.benchmark.settings import Settings

    path = _one_of(file, output, "--output") or default_path()
    if not verbosity.dry_run:
        check_output(path)
    replaced = _replaced(path)
    presentation = verbosity.presentation()
    results = source.load()
    if results is None:
        settings = Settings(**settings_of(execution))
        prepared, _ = plan_run(Request(suite, tuple(library) if library else None, seeds), settings)
        results = carry_out(prepared, execution, presentation)
    else:
        refuse_tracking(execution)
    made = make_baseline(results, allow_flaky=allow_flaky, continue_on_error=execution.continue_on_error)
    if not verbosity.dry_run:
        save_baseline(made, path)
    if not verbosity.quiet:
        done = "Would record" if verbosity.dry_run else "Recorded"
        pairs, seeds_ = counted(len(made.results), "pair"), counted(len(made.config.seeds), "seed")
        note(f"{done}: {path} ({pairs} of config and library, {seeds_})")
        if replaced:
            note(f"Note: it {'would replace' if verbosity.dry_run else 'replaces'} {replaced}.")
    for item in made.absent:
        note(f"Warning: the baseline lacks {item.library} on {item.config}: {item.reason}")
    return ExitCode.SUCCESS


def _replaced(path: Path) -> str:
    """The baseline that is about to be replaced, in words; a file that is something else is not replaced."""
    from boosters_eval.programs.baseline import load_baseline

    if not path.is_file() or path.is_relative_to("/dev"):
        return ""
    try:
        old = load_baseline(path)
    except ConfigError as error:
        raise ConfigError(f"{path} exists and is no baseline, so it is not replaced: {error}") from None
    return f"the one of {old.recorded_at:%Y-%m-%d %H:%M} ({len(old.results)} pairs, {len(old.config.seeds)} seeds)"


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
    seeds: Annotated[
        str | None,
        typer.Option(
            "--seeds",
            "-s",
            help="Number of random splits, or auto (with --statistical): as many of the recorded ones as it takes to"
            " decide.",
        ),
    ] = None,
    max_seeds: Annotated[
        int | None,
        typer.Option("--max-seeds", min=2, help="The most seeds that --seeds auto may use. Default: all recorded."),
    ] = None,
    output: OutputOption = None,
) -> int:
    """Run the baseline's suite again and compare.

    Exit 0 if there is no regression, 1 if there is one or one is suspected, 2 if the run or the comparison failed or
    cells are flaky, 3 for bad input.
    """
    from boosters_eval.programs.baseline.plan import Request, default_path

    path = _one_of(file, baseline, "--baseline") or default_path()
    if not path.exists():
        raise ConfigError(f"{path} does not exist; record it with 'boosters-eval baseline record {quote(str(path))}'.")
    request = Request(suite, tuple(library) if library else None, _seeds(seeds), max_seeds)
    return _check(path, request, source, options, execution, verbosity, output)


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
    from boosters_eval.programs.baseline import Snapshot, read_baseline
    from boosters_eval.programs.baseline import check as compare

    rules = _rules(options)
    for file in (options.junit, options.verdict):
        check_output(file)
    old, new = read_baseline(before), read_baseline(after)
    found = compare(Snapshot.of_baseline(old), Snapshot.of_baseline(new), rules)
    return _tell(found, str(before), options, Verbosity(quiet=quiet))


def _check(
    path: Path,
    request: Any,
    source: Source,
    options: CheckOptions,
    execution: Execution,
    verbosity: Verbosity,
    output: Path | None,
) -> int:
    from boosters_eval.programs.baseline import Snapshot, are_same_outcomes, read_baseline
    from boosters_eval.programs.baseline import check as compare
    from boosters_eval.programs.baseline.check import check_names
    from boosters_eval.programs.baseline.plan import plan_run, until_decided
    from boosters_eval.programs.benchmark.settings import Settings

    rules, presentation = _rules(options), verbosity.presentation()
    if verbosity.dry_run:
        options, output = replace(options, junit=None, verdict=None), None
    for file in (output, options.junit, options.verdict):
        check_output(file)
    _check_auto(request, source, options)
    before = read_baseline(path)
    results = source.load()
    if results is None:
        settings = Settings(**settings_of(execution))
        prepared, restriction = plan_run(replace(request, recorded_only=True), settings, before)
        rules = rules.replace(**asdict(restriction))
        planned = [(cell.spec.name, cell.target) for cell in prepared.plan.cells]
        check_names(Snapshot.of_baseline(before), planned, rules)  # before the run, not after it
        results = carry_out(until_decided(prepared, before, rules), execution, presentation)
    else:
        named = _labels(request.libraries)
        results = _only(results, named)
        rules = rules.replace(only_libraries=named, seeds=request.n_seeds)
    sides = Snapshot.of_baseline(before), Snapshot.of_run(results)
    if are_same_outcomes(*sides):
        raise ConfigError(
            f"{path} was recorded from this very run ({results.run_id}): comparing it with itself proves nothing."
            " Run it again."
        )
    if output is not None:
        show(results, Presentation(output=output, quiet=True))
    found = compare(*sides, rules)
    if not verbosity.quiet:
        show(results, presentation)
    return _tell(found, str(path), options, verbosity, continue_on_error=execution.continue_on_error)


def _seeds(text: str | None) -> Any:
    if text is None or text == "auto":
        return text
    if not re.fullmatch("[1-9][0-9]{0,8}", text):
        raise ConfigError(f"The '--seeds' option must be a count of at least 1, or auto. Got '{text}' instead.")
    return int(text)


def _check_auto(request: Any, source: Source, options: CheckOptions) -> None:
    """Refuse what --seeds auto cannot be combined with; --max-seeds is checked with the plan."""
    if request.seeds == "auto" and not options.statistical:
        raise ConfigError(
            "The '--seeds auto' option needs --statistical: without a test, the tolerance decides at once."
        )
    if (request.seeds == "auto" or request.max_seeds) and (source.run or source.results):
        raise ConfigError("Use either --seeds auto or the results of an earlier run, not both: it must run something.")


def _labels(libraries: Sequence[str] | None) -> tuple[str, ...] | None:
    """The names that outcomes have: a build may be named by what it was installed from."""
    from boosters_eval.runners.builds.reference import label_of

    return tuple(map(label_of, libraries)) if libraries else None


def _only(results: Any, libraries: tuple[str, ...] | None) -> Any:
    """The outcomes of these libraries, as if no others had run."""
    from boosters_eval.programs.benchmark.results import ResultCollection

    if libraries is None:
        return results
    known = {outcome.library for outcome in [*results.results, *results.errors]}
    for name in libraries:
        if name not in known:
            raise UnknownNameError("library of the results", name, known)
    return ResultCollection(
        (result for result in results.results if result.library in libraries),
        (error for error in results.errors if error.library in libraries),
        unsupported=(item for item in results.unsupported if item.library in libraries),
        unavailable=(item for item in results.unavailable if item.library in libraries),
        run_id=results.run_id,
        suite=results.suite,
        metadata=results.metadata,
    )


def _one_of(argument: Path | None, option: Path | None, name: str) -> Path | None:
    if argument is not None and option is not None and argument != option:
        raise ConfigError(f"Give the file once: as an argument or with {name}. Got {argument} and {option} instead.")
    return argument or option


def _rules(options: CheckOptions) -> Any:
    from boosters_eval.programs.baseline import CheckRules

    if not 0 <= options.tolerance < 1:
        raise ConfigError(
            f"The '--tolerance' option must be a share from 0 to below 1, such as 0.02 for 2 %. "
            f"Got {options.tolerance} instead."
        )
    return CheckRules(
        tolerance=options.tolerance,
        tolerance_for=dict(_named_tolerance(text) for text in options.tolerance_for or []),
        statistical=options.statistical,
        under_test=_labels(options.libraries_under_test),
        allow_flaky=options.allow_flaky,
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


def _tell(
    found: Any, name: str, options: CheckOptions, verbosity: Verbosity, *, continue_on_error: bool = False
) -> int:
    """Print the verdict and give its exit code: a table for people, the RFC's lines, and what CI systems read."""
    from boosters_eval.core.files import write_atomically
    from boosters_eval.programs.baseline import render
    from boosters_eval.programs.baseline.document import CheckDocument

    code: int = found.exit_code(fail_on_regression=options.fail_on_regression, continue_on_error=continue_on_error)
    if not verbosity.quiet:
        rows = render.rows(found, everything=verbosity.verbose or len(found.findings) <= _SHOWN)
        if rows and sys.stdout.isatty():
            print_rows(render.HEADINGS, rows, keys=2)
        elif rows:
            say(render.table(rows))
    say("\n".join(render.lines(found, name)))
    if options.junit is not None:
        write_atomically(options.junit, render.junit(found, name))
    if options.verdict is not None:
        write_atomically(options.verdict, CheckDocument.of(found, name, code).to_json())
    if in_workflow():
        commands = render.workflow_commands(found, failing=options.fail_on_regression)
        sys.stdout.writelines(f"{line}\n" for line in commands)
        if not verbosity.dry_run:
            summarise(render.markdown(found, name))
    return code


def _shortcut(
    suite: str,
    libraries: list[str] | None,
    options: CheckOptions,
    execution: Execution,
    verbosity: Verbosity,
    output: Path | None,
) -> int:
    from boosters_eval.programs.baseline.plan import Request, default_path, plan_run
    from boosters_eval.programs.benchmark.settings import Settings

    path, request = default_path(suite), Request(suite, tuple(libraries) if libraries else None)
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
    only = "".join(f" --library {quote(name)}" for name in libraries or ())
    note(
        f"No baseline at {path}: nothing was checked. "
        f"Record one with 'boosters-eval baseline record --suite {suite}{only} {quote(str(path))}'."
    )
    failed = exit_code(results, continue_on_error=execution.continue_on_error)
    return failed or ExitCode.CONFIGURATION_ERROR


@with_options(options=CheckOptions, execution=Execution, verbosity=Verbosity)
def quick(
    options: CheckOptions,
    execution: Execution,
    verbosity: Verbosity,
    library: LibraryOption = None,
    output: OutputOption = None,
) -> int:
    """Run the quick suite and check its baseline (half a minute)."""
    return _shortcut("quick", library, options, execution, verbosity, output)


@with_options(options=CheckOptions, execution=Execution, verbosity=Verbosity)
def full(
    options: CheckOptions,
    execution: Execution,
    verbosity: Verbosity,
    library: LibraryOption = None,
    output: OutputOption = None,
) -> int:
    """Run the full suite and check its baseline (several minutes)."""
    return _shortcut("full", library, options, execution, verbosity, output)


def register(app: typer.Typer) -> None:
    """Add these commands to the program."""
    app.command()(quick)
    app.command()(full)
    app.add_typer(baselines)
