"""The commands that run cells: compare and run."""

import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from boosters_eval.cli.options import Execution, Showing, settings_of, typed, with_options
from boosters_eval.cli.output import check_output, choose_format, console, emit, note
from boosters_eval.core.errors import ConfigError, ExitCode


@with_options(execution=Execution, showing=Showing)
def compare(
    execution: Execution,
    showing: Showing,
    dataset: Annotated[
        list[str] | None,
        typer.Option("--dataset", "-d", help="Data sets by name, or FILE.csv:TARGET. Default: california."),
    ] = None,
    library: Annotated[
        list[str] | None, typer.Option("--library", "-l", help="Libraries. Default: all that are installed.")
    ] = None,
    booster: Annotated[list[str] | None, typer.Option("--booster", "-b", help="gbdt, gblinear, linear_trees.")] = None,
    seeds: Annotated[
        str | None,
        typer.Option("--seeds", "-s", help="Number of random splits, or auto: until every pair has a verdict."),
    ] = None,
    max_seeds: Annotated[int, typer.Option("--max-seeds", min=2, help="The most that --seeds auto may use.")] = 50,
    budget: Annotated[str | None, typer.Option("--budget", help="Time for --seeds auto: 90s, 10m, 1h.")] = None,
    cv: Annotated[
        str | None, typer.Option("--cv", help="Folds, or folds x repeats, instead of random splits: 5, 5x10.")
    ] = None,
    task: Annotated[str | None, typer.Option("--task", help="What a FILE is for; inferred otherwise.")] = None,
    growth: Annotated[str | None, typer.Option("--growth", help="depthwise or leafwise.")] = None,
    param: Annotated[
        list[str] | None, typer.Option("--param", "-p", help="A canonical parameter: --param max_depth=4.")
    ] = None,
    variants: Annotated[
        list[str] | None,
        typer.Option("--variants", help="Rows to compare: 'deep:max_depth=8' 'flat:max_depth=3'."),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", "-m", help="Further metrics: f1@0.3, ndcg@5, file.py:function."),
    ] = None,
    profile: Annotated[
        str, typer.Option("--profile", help="parity (mapped by meaning) or defaults (as each comes).")
    ] = "parity",
) -> int:
    """Compare libraries on data sets."""
    from boosters_eval.api import Settings, comparison_configs, prepare, run_auto
    from boosters_eval.benchmark.suites import parse_parameters, parse_variants
    from boosters_eval.runners.parameters import TrainingConfig

    settings = Settings(**settings_of(execution))
    base = parse_parameters([*(param or []), *([f"growth={growth}"] if growth else [])], TrainingConfig())
    configs, notes = comparison_configs(
        dataset or ["california"],
        library or None,
        booster or ["gbdt"],
        training=base,
        variants=parse_variants(variants, base) if variants else None,
        metrics=metric or (),
        cv=cv,
        task=task,
        profile=profile,
    )
    _check_showing(showing)
    if seeds is not None and cv is not None:
        raise ConfigError("Use either --cv or --seeds, not both: FOLDSxREPEATS says how often folds are drawn anew.")
    if budget is not None and seeds != "auto":
        raise ConfigError("The '--budget' option needs --seeds auto.")
    if seeds == "auto" and not showing.dry_run:
        say = note if not showing.quiet else lambda _: None
        for sentence in notes:
            say(f"Note: {sentence}")
        watcher = observer(quiet=showing.quiet, verbose=showing.verbose)
        with resumable():
            results = run_auto(configs, settings, watcher, max_seeds=max_seeds, budget=budget, say=say)
        return _conclude(results, execution, showing)
    if seeds == "auto":
        note("Note: --seeds auto begins with what is shown here and adds seeds until every pair has a verdict.")
    count = None if seeds == "auto" else seeds
    return _finish(prepare("compare", configs, count, settings, notes=notes), settings, execution, showing)


@with_options(execution=Execution, showing=Showing)
def run(
    execution: Execution,
    showing: Showing,
    suite: Annotated[str, typer.Option("--suite", help="A suite by name, or path/to/file.py:SUITE.")] = "quick",
    library: Annotated[list[str] | None, typer.Option("--library", "-l", help="Only these libraries.")] = None,
    seeds: Annotated[str | None, typer.Option("--seeds", "-s", help="Number of random splits.")] = None,
    metric: Annotated[list[str] | None, typer.Option("--metric", "-m", help="Further metrics.")] = None,
    profile: Annotated[str | None, typer.Option("--profile", help="parity or defaults.")] = None,
) -> int:
    """Run a suite."""
    from boosters_eval.api import Settings, prepare, suite_configs

    settings = Settings(**settings_of(execution))
    name, configs, notes, default = suite_configs(suite, library or None, metrics=metric or (), profile=profile)
    _check_showing(showing)
    prepared = prepare(name, configs, seeds, settings, default_seeds=default, notes=notes)
    return _finish(prepared, settings, execution, showing)


def _check_showing(showing: Showing) -> None:
    """Refuse before the work what could not be shown after it."""
    from boosters_eval.benchmark.tables.generate import check_test

    if showing.verbose and showing.quiet:
        raise ConfigError("Use either --verbose or --quiet, not both.")
    choose_format(showing.format, showing.output)
    check_test(showing.test)
    if not showing.dry_run:
        check_output(showing.output)


def _finish(prepared: Any, settings: Any, execution: Execution, showing: Showing) -> int:
    """Run the plan, show the result, and say by the exit code how it went."""
    return _conclude(carry_out(prepared, settings, showing), execution, showing)


def _conclude(results: Any, execution: Execution, showing: Showing) -> int:
    show(results, showing)
    return exit_code(results, continue_on_error=execution.continue_on_error)


def carry_out(prepared: Any, settings: Any, showing: Showing) -> Any:
    """Run the plan under the user's eyes; a dry run or an interruption ends the command here."""
    from boosters_eval.api import run_prepared
    from boosters_eval.engine.journal import has_attempt

    if not showing.quiet:
        for sentence in prepared.notes:
            note(f"Note: {sentence}")
    if showing.dry_run:
        raise typer.Exit(_show_plan(prepared.plan, settings))
    if (settings.resume or settings.rerun_failed) and not has_attempt(prepared.plan, settings.home):
        note("Note: there is no earlier attempt of this plan, so everything runs.")
    with resumable():
        return run_prepared(prepared, settings, observer(quiet=showing.quiet, verbose=showing.verbose))


@contextmanager
def resumable() -> Iterator[None]:
    """An interruption, by Ctrl-C or from outside, ends with the command that goes on."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        note("Stopped. What is finished is kept; go on with:")
        note(f"  boosters-eval {shlex.join([*typed(), '--resume'])}")
        raise typer.Exit(ExitCode.INTERRUPTED) from None


def observer(*, quiet: bool, verbose: bool) -> Any:
    """A bar on a terminal, lines elsewhere, nothing when quiet."""
    from boosters_eval.engine.execute import Nobody
    from boosters_eval.engine.progress import PlainLines, ProgressBar

    if quiet:
        return Nobody()
    return ProgressBar() if sys.stderr.isatty() else PlainLines(each=verbose)


def show(results: Any, showing: Showing) -> None:
    """The result in the format asked for; a table for people where none was."""
    from boosters_eval import reports
    from boosters_eval.benchmark import tables

    chosen = choose_format(showing.format, showing.output)
    if chosen == "json":
        emit(results.to_json(), showing.output, quiet=showing.quiet)
    elif chosen == "csv":
        emit(results.to_csv(), showing.output, quiet=showing.quiet)
    elif chosen == "html":
        document = tables.build_document(results, "comparison", test=showing.test)
        emit(reports.render_page(document), showing.output, quiet=showing.quiet)
    else:
        report = tables.build_tables(results, test=showing.test, require_significance=showing.highlight_significant)
        if chosen is None and sys.stdout.isatty():
            reports.print_report(report, console())
        else:
            emit(reports.render_markdown(report), showing.output, quiet=showing.quiet)
    if not showing.quiet and results.run_id:
        note(f"Run {results.run_id}: {len(results.results)} results, {len(results.errors)} errors.")


def exit_code(results: Any, *, continue_on_error: bool) -> int:
    """A run with errors is not a success, unless that was asked for; a run without results never is."""
    if not results.results or results.metadata.get("n_missing"):
        return ExitCode.EXECUTION_ERROR
    return ExitCode.EXECUTION_ERROR if results.errors and not continue_on_error else ExitCode.SUCCESS


def _show_plan(plan: Any, settings: Any) -> int:
    from boosters_eval.engine.execute import jobs_for

    counts: dict[tuple[str, str], int] = {}
    for cell in plan.cells:
        counts[cell.config.name, cell.library] = counts.get((cell.config.name, cell.library), 0) + 1
    sys.stdout.write(f"run {plan.run_id}: {len(plan.cells)} cells, {jobs_for(plan, settings.jobs)} at a time\n")
    for (config, library), count in counts.items():
        sys.stdout.write(f"  {config} {library} ({plan.libraries[library].version}) x {count}\n")
    for entry in plan.unsupported:
        sys.stdout.write(f"  {entry.config_name} {entry.library}: unsupported: {entry.reason}\n")
    return ExitCode.SUCCESS if plan.cells else ExitCode.EXECUTION_ERROR


def register(app: typer.Typer) -> None:
    """Make these commands part of the program."""
    app.command()(compare)
    app.command()(run)
