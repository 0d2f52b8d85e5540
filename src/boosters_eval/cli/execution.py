"""The commands that run cells: compare and run."""

import shlex
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Any

import typer

from boosters_eval.cli import against
from boosters_eval.cli.options import (
    AgainstOptions,
    DataOptions,
    Execution,
    Presentation,
    check_cluster,
    data_of,
    executor_of,
    settings_of,
    typed,
    with_options,
)
from boosters_eval.cli.output import check_output, choose_format, console, emit, note, say
from boosters_eval.cli.training import (
    BUILDS,
    BoostersOption,
    CvOption,
    DatasetsOption,
    DeviceOption,
    GrowthOption,
    LibrariesOption,
    ParamOption,
    ProfileOption,
    SplitOption,
    TaskOption,
    training_of,
)
from boosters_eval.cli.wording import as_options
from boosters_eval.core.errors import ConfigError, ExitCode
from boosters_eval.core.text import counted

_FEW_DATASETS, _FEW_FINDINGS = 3, 6  # whose findings are printed before a run, and of each how many
_SEEDS = "Number of random splits, or auto to add seeds until every pair has a verdict."


@with_options(data=DataOptions, execution=Execution, presentation=Presentation, check=AgainstOptions)
def compare(
    data: DataOptions,
    execution: Execution,
    presentation: Presentation,
    check: AgainstOptions,
    dataset: DatasetsOption = None,
    library: LibrariesOption = None,
    booster: BoostersOption = None,
    seeds: Annotated[
        str | None,
        typer.Option("--seeds", "-s", help=f"{_SEEDS} Default: 5, or the variable BOOSTERS_EVAL_SEEDS."),
    ] = None,
    max_seeds: Annotated[
        int | None, typer.Option("--max-seeds", min=2, help="The most seeds that --seeds auto may use. Default: 50.")
    ] = None,
    budget: Annotated[
        str | None, typer.Option("--budget", help="Time limit for --seeds auto: 90s, 10m, 1h. Default: none.")
    ] = None,
    cv: CvOption = None,
    split: SplitOption = None,
    task: TaskOption = None,
    growth: GrowthOption = None,
    device: DeviceOption = None,
    param: ParamOption = None,
    variants: Annotated[
        list[str] | None,
        typer.Option("--variants", help="Variants to compare, one row each: 'deep:max_depth=8' 'flat:max_depth=3'."),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric", "-m", help="Further metrics besides those of the task: f1@0.3, ndcg@5, file.py:function."
        ),
    ] = None,
    profile: ProfileOption = "parity",
) -> int:
    """Compare libraries on data sets."""
    from boosters_eval.preparing import prepare_comparison
    from boosters_eval.programs.benchmark.suites import parse_variants

    _check_presentation(presentation)
    against.check_options(check, execution, presentation)
    base = training_of(param, growth, device)
    prepared = prepare_comparison(
        dataset or ["california"],
        library or None,
        booster or ["gbdt"],
        seeds,
        training=base,
        variants=parse_variants(variants, base) if variants else None,
        metrics=metric or (),
        cv=cv,
        task=task,
        data=data_of(data),
        split=split,
        profile=profile,
        max_seeds=max_seeds,
        budget=budget,
        **settings_of(execution),
    )
    return _finish(prepared, execution, presentation, check)


@with_options(execution=Execution, presentation=Presentation, check=AgainstOptions)
def run(
    execution: Execution,
    presentation: Presentation,
    check: AgainstOptions,
    suite: Annotated[str, typer.Option("--suite", help="A suite by name, or path/to/file.py:SUITE.")] = "quick",
    library: Annotated[
        list[str] | None,
        typer.Option("--library", "-l", help=f"Run only these libraries{BUILDS} Default: all of the suite."),
    ] = None,
    seeds: Annotated[
        str | None,
        typer.Option("--seeds", "-s", help=f"{_SEEDS} Default: those that the suite or its configs name."),
    ] = None,
    cv: CvOption = None,
    metric: Annotated[
        list[str] | None, typer.Option("--metric", "-m", help="Further metrics besides those of the suite.")
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile", help="parity (mapped by meaning) or defaults (each library's own). Default: the suite's."
        ),
    ] = None,
) -> int:
    """Run a suite."""
    from boosters_eval.preparing import prepare_suite

    _check_presentation(presentation)
    against.check_options(check, execution, presentation)
    prepared = prepare_suite(
        suite, seeds, library or None, metrics=metric or (), cv=cv, profile=profile, **settings_of(execution)
    )
    return _finish(prepared, execution, presentation, check)


def _check_presentation(presentation: Presentation) -> None:
    """Refuse before the run what could not be shown after it."""
    from boosters_eval.programs.benchmark.tables import check_test

    if presentation.verbose and presentation.quiet:
        raise ConfigError("Use either --verbose or --quiet, not both.")
    choose_format(presentation.format, presentation.output)
    check_test(presentation.test)
    if not presentation.dry_run:
        check_output(presentation.output)


def _finish(prepared: Any, execution: Execution, presentation: Presentation, check: AgainstOptions) -> int:
    """Run the plan, show the result, and return the exit code."""
    if check.against is None:
        results = carry_out(prepared, execution, presentation)
        show(results, presentation)
        return exit_code(results, continue_on_error=execution.continue_on_error)
    against.check_plan(check.against, prepared)
    results = carry_out(prepared, execution, presentation)
    verdict = results.regressions(check.against, test=presentation.test)
    show(results, presentation, verdict)
    against.tell(verdict, results, check, presentation)
    return verdict.exit_code or exit_code(results, continue_on_error=False)


def _complain(results: Any) -> None:
    """Say why a run is no success, even if it is quiet: its output may not show it."""
    errors, total = results.errors, results.metadata.n_cells or len(results.results) + len(results.errors)
    if results.metadata.unfinished_attempt:
        note(f"Error: attempt {results.metadata.unfinished_attempt} of run {results.run_id} is unfinished.")
    elif errors:
        first = errors[0]
        text = f"{first.error_type}: {first.error_message}".partition("\n")[0].rstrip(".")
        where = f"{first.config_name} {first.library}, {first.repeat}"
        note(f"Error: {len(errors)} of {total} cells failed; the first, {where}: {text}.")
    else:
        note(f"Error: {results.metadata.n_missing or total} of {total} cells have no outcome.")


def carry_out(prepared: Any, execution: Execution, presentation: Presentation) -> Any:
    """Run the plan of a comparison and show its progress."""
    from boosters_eval.running import run_prepared

    tell = (lambda _: None) if presentation.quiet else note
    return carried_out(prepared, execution, presentation, partial(run_prepared, say=tell, track=execution.track))


def carried_out(prepared: Any, execution: Execution, presentation: Presentation, run_plan: Callable[..., Any]) -> Any:
    """Run a plan and show its progress. A dry run or an interruption ends the command here."""
    from boosters_eval.running import check_names

    check_cluster(execution)
    check_names(observer=execution.observer, track=execution.track)
    tell = (lambda _: None) if presentation.quiet else note
    for sentence in prepared.notes:
        tell(f"Note: {as_options(sentence)}")
    for line in audit_lines(prepared.audits, verbose=presentation.verbose):
        tell(line)
    if presentation.verbose:
        _show_parameters(prepared)
    if presentation.dry_run:
        raise typer.Exit(_show_plan(prepared))
    if execution.resume or execution.rerun_failed:
        _check_earlier(prepared)
    watchers = observers(execution, prepared, quiet=presentation.quiet, verbose=presentation.verbose)
    with resumable(), executor_of(execution) as executor:
        return run_plan(prepared, observer=watchers, executor=executor)


def audit_lines(audits: Any, *, verbose: bool) -> Iterator[str]:
    """What was found in the data: of a few data sets the gravest findings, of many only how many have any.

    A user's own file is described even if there is nothing to find; its task was given or inferred for a reason.
    """
    found = [audit for audit in audits.values() if audit.findings or audit.reason]
    if len(found) > _FEW_DATASETS and not verbose:
        suspicious = sum(bool(audit.findings) for audit in found)
        yield f"Data: {suspicious} of {len(audits)} data sets have findings; --verbose shows them."
        return
    for audit in found:
        shown = audit.findings if verbose else audit.findings[:_FEW_FINDINGS]
        yield f"Data: {audit.headline}"
        yield from (f"  {finding}" for finding in shown)
        if len(shown) < len(audit.findings):
            yield f"  and {len(audit.findings) - len(shown)} more; --verbose shows them."


def _show_parameters(prepared: Any) -> None:
    """The native parameters of each library, as `explain` shows them, before anything runs."""
    from boosters_eval.programs.benchmark.planning import native_parameters

    for spec, target, native in native_parameters(prepared.plan):
        note(f"{spec} {target}: {', '.join(f'{name}={value}' for name, value in native.items()) or 'its defaults'}")


def _check_earlier(prepared: Any) -> None:
    """Note if there is no attempt to continue, and name a run with the same cells if there is one."""
    from boosters_eval.programs.benchmark.running import has_attempt, similar_run

    if has_attempt(prepared):
        return
    note("Note: there is no earlier attempt at this plan, so everything runs.")
    other = similar_run(prepared)
    if other is not None:
        note(
            f"Note: run {other} has the same cells, but it was made by another version of this program, with other"
            " builds, or on other data, so it cannot be continued."
        )


@contextmanager
def resumable(without: tuple[str, ...] = ()) -> Iterator[None]:
    """On an interruption, by Ctrl-C or a signal, print the command that continues the run.

    `without` names options that would begin it anew.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        note("Stopped. Finished cells are kept; continue with:")
        words = [word for word in typed() if word not in (*without, "--resume")]
        note(f"  boosters-eval {shlex.join([*words, '--resume'])}")
        raise typer.Exit(ExitCode.INTERRUPTED) from None


def observers(execution: Execution, prepared: Any = None, *, quiet: bool, verbose: bool) -> list[Any]:
    """A bar on a terminal, lines elsewhere, neither if quiet; and the observers that were named, each only once."""
    from boosters_eval.running import progress

    named = execution.observer or []
    shown = quiet or {"bar", "lines"} & set(named)
    return [*([] if shown else [progress(every_cell=verbose, prepared=prepared)]), *named]


def show(results: Any, presentation: Presentation, verdict: Any = None) -> None:
    """Print the result in the requested format, or as a table by default; Markdown begins with the verdict, if any."""
    from boosters_eval import reports
    from boosters_eval.programs.benchmark import tables

    test = tables.check_test(presentation.test)
    chosen = choose_format(presentation.format, presentation.output)
    if chosen == "json":
        emit(results.to_json(), presentation.output, quiet=presentation.quiet)
    elif chosen == "csv":
        emit(results.to_csv(), presentation.output, quiet=presentation.quiet)
    elif chosen == "html":
        document = against.with_answer(tables.build_document(results, "comparison", test=test), verdict)
        emit(reports.render_page(document), presentation.output, quiet=presentation.quiet)
    else:
        report = tables.build_tables(results, test=test, require_significance=presentation.highlight_significant)
        if chosen is None and sys.stdout.isatty():
            again = f", or boosters-eval report --run {results.run_id} --dry-run" if results.run_id else ""
            reports.print_report(report, console(), every_note=presentation.verbose, how=f"-v{again}")
        else:
            text = against.as_markdown(verdict) + reports.render_markdown(report)
            emit(text, presentation.output, quiet=presentation.quiet)
    if not presentation.quiet and results.run_id:
        note(
            f"Run {results.run_id}: {counted(len(results.results), 'result')}, {counted(len(results.errors), 'error')}."
        )


def exit_code(results: Any, *, continue_on_error: bool) -> int:
    """A run with errors is not a success unless the user accepts errors; a run without results never is."""
    whole = results.results and not results.metadata.n_missing and not results.metadata.unfinished_attempt
    if whole and (continue_on_error or not results.errors):
        return ExitCode.SUCCESS
    _complain(results)
    return ExitCode.EXECUTION_ERROR


def _show_plan(prepared: Any) -> int:
    from boosters_eval.engine.progress import duration
    from boosters_eval.programs.benchmark.planning import check_devices
    from boosters_eval.programs.benchmark.running import jobs_of
    from boosters_eval.running import expected_seconds

    plan = prepared.plan
    if prepared.growth is not None:
        schedule = prepared.growth.rule.schedule
        first, most = schedule[0], schedule[-1]
        note(f"Note: --seeds auto begins with the {first} seeds shown here, and adds more, up to {most}, as needed.")
    counts = Counter((cell.spec, cell.target) for cell in plan.cells)
    jobs, seconds = jobs_of(prepared), sum(expected_seconds(plan, prepared.settings.home).values())
    about = f", about {duration(seconds / min(jobs, len(plan.cells)))}" if seconds else ""
    say(f"run {plan.run_id}: {counted(len(plan.cells), 'cell')}, {jobs} at a time{about}")
    for (spec, target), count in counts.items():
        version = plan.builds[spec.workload][target].version
        say(f"  {spec.name} {target} ({version}) x {count}")
    for entry in plan.excluded:
        say(f"  {entry.spec} {entry.target}: unsupported: {entry.reason}")
    check_devices(plan)
    return ExitCode.SUCCESS if plan.cells else ExitCode.EXECUTION_ERROR


def register(app: typer.Typer) -> None:
    """Add these commands to the program."""
    app.command()(compare)
    app.command()(run)
