"""The command `bisect`: the version with which a number changed."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from boosters_eval.cli.execution import observers, resumable
from boosters_eval.cli.options import (
    DataOptions,
    Execution,
    Presentation,
    check_cluster,
    data_of,
    executor_of,
    settings_of,
    with_options,
)
from boosters_eval.cli.output import check_output, choose_format, emit, note, print_rows, say, terminal_width
from boosters_eval.cli.training import DeviceOption, GrowthOption, ParamOption, SplitOption, TaskOption, training_of
from boosters_eval.cli.wording import as_options
from boosters_eval.core.errors import ConfigError, ExitCode
from boosters_eval.core.text import counted

_WIDTHS = (4, 12, 24, 16, 5)  # of the columns of the table that grows, except the last
_NARROWEST_ANSWER = 20  # columns for the last one
_WHICH = "Which versions"
# A bisection decides by itself which test is used and what is a success, and its runs are found by their steps.
_LEFT_OUT = ("test", "highlight_significant", "continue_on_error", "name", "track")


@with_options(data=DataOptions, execution=Execution, presentation=Presentation, without=_LEFT_OUT)
def bisect(
    data: DataOptions,
    execution: Execution,
    presentation: Presentation,
    library: Annotated[list[str], typer.Option("--library", "-l", help="The library, or path/to/file.py:Class.")],
    versions: Annotated[
        list[str] | None,
        typer.Option(
            "--versions", help="Released versions: A..B, both included, or a list in order.", rich_help_panel=_WHICH
        ),
    ] = None,
    wheels: Annotated[
        list[Path] | None, typer.Option("--wheels", help="Wheels of the library, in order.", rich_help_panel=_WHICH)
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option("--folder", help="A folder of a git repository, with --commits.", rich_help_panel=_WHICH),
    ] = None,
    commits: Annotated[
        str | None,
        typer.Option(
            "--commits",
            metavar="GOOD..BAD",
            help="The commits of --folder; of merges only the first parents.",
            rich_help_panel=_WHICH,
        ),
    ] = None,
    build_command: Annotated[
        str | None,
        typer.Option(
            "--build-command",
            help="What builds a wheel of a commit, in a shell; {wheels} is a folder for it. Default: pip wheel.",
            rich_help_panel=_WHICH,
        ),
    ] = None,
    isolated: Annotated[
        bool,
        typer.Option("--isolated", help="Install each version with dependencies of its own.", rich_help_panel=_WHICH),
    ] = False,
    dataset: Annotated[
        list[str] | None,
        typer.Option("--dataset", "-d", help="A data set by name, or FILE.csv:TARGET. Default: california."),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            "-m",
            help="The number: a metric, train_time_s, predict_time_s or another time (with --timing-mode), or memory."
            " Default: the metric that decides by the task.",
        ),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            "--tolerance", help="The smallest relative change that counts. Default: 0.01, and 0.05 for times."
        ),
    ] = None,
    alpha: Annotated[float, typer.Option("--alpha", help="The chance, at most, of naming a wrong version.")] = 0.05,
    max_seeds: Annotated[int, typer.Option("--max-seeds", min=2, help="The most seeds that a step may use.")] = 50,
    booster: Annotated[
        list[str] | None,
        typer.Option("--booster", "-b", help="The booster: gbdt, gblinear or linear_trees. Default: gbdt."),
    ] = None,
    split: SplitOption = None,
    task: TaskOption = None,
    growth: GrowthOption = None,
    device: DeviceOption = None,
    param: ParamOption = None,
    profile: Annotated[
        str, typer.Option("--profile", help="parity (mapped by meaning) or defaults (the library's own).")
    ] = "parity",
) -> int:
    """Find the version of a library with which a number changed.

    The two ends are compared first; then the version in the middle is compared with both, and so on. Each step adds
    seeds until it is decided. Exit 0 if the version was found or nothing changed, 1 if it cannot be told.
    """
    from boosters_eval.preparing import prepare_bisection

    chosen = _format(presentation)
    tell = (lambda _: None) if presentation.quiet else note
    check_cluster(execution)
    bisector = prepare_bisection(
        _one("library", library),
        versions=_range(versions),
        wheels=wheels,
        folder=folder,
        commits=commits,
        build_command=build_command,
        isolated=isolated,
        dataset=_one("dataset", dataset) or "california",
        metric=_one("metric", metric),
        tolerance=tolerance,
        alpha=alpha,
        max_seeds=max_seeds,
        booster=_one("booster", booster) or "gbdt",
        training=training_of(param, growth, device),
        task=task,
        data=data_of(data),
        split=split,
        profile=profile,
        observer=observers(execution, quiet=presentation.quiet, verbose=presentation.verbose),
        executor=execution.executor,
        on_step=None if presentation.quiet else _GrowingTable(),
        **settings_of(execution),
    )
    if presentation.dry_run:
        return _show_plan(bisector)
    tell(_plan_sentence(bisector))
    with resumable(), executor_of(execution) as bisector.executor:
        found = bisector.run()
    _show(found, chosen, presentation)
    return int(found.exit_code)


def _one(option: str, values: list[str] | None) -> Any:
    """The value of an option that other commands take several of."""
    if values and len(values) > 1:
        got = ", ".join(values)
        raise ConfigError(f"The '--{option}' option of bisect must be a single one. Got {got} instead.")
    return values[0] if values else None


def _range(versions: list[str] | None) -> Any:
    """A range, or a list of versions."""
    return versions[0] if versions and len(versions) == 1 else versions


def _format(presentation: Presentation) -> str | None:
    """Refuse before the search what could not be shown after it."""
    if presentation.verbose and presentation.quiet:
        raise ConfigError("Use either --verbose or --quiet, not both.")
    chosen = choose_format(presentation.format, presentation.output)
    if chosen in ("csv", "html"):
        raise ConfigError(f"The '--format' option of bisect must be markdown or json. Got '{chosen}' instead.")
    if not presentation.dry_run:
        check_output(presentation.output)
    return chosen


def _plan_sentence(bisector: Any) -> str:
    rule, names = bisector.rule, [candidate.name for candidate in bisector.candidates]
    looks = ", ".join(map(str, rule.seeds.schedule))
    return (
        f"{counted(len(names), 'version')} of {bisector.request.library} from {names[0]} to {names[-1]}: at most"
        f" {counted(1 + rule.tries, 'step')}, each decided with {looks} seeds."
    )


def _show_plan(bisector: Any) -> int:
    say(_plan_sentence(bisector))
    for candidate in bisector.candidates:
        say(f"  {candidate.name} {candidate.detail}".rstrip())
    return ExitCode.SUCCESS


class _GrowingTable:
    """Prints each step as it ends: below a heading, or as a record where a terminal has no room for the columns."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, step: Any) -> None:
        """Print a step."""
        from boosters_eval.programs.bisect.wording import COLUMNS, row

        width = terminal_width(sys.stderr) if sys.stderr.isatty() else None
        headings = [] if self.count else _table_lines(COLUMNS, width)
        self.count += 1
        cells = row(self.count, step)
        for line in (*headings, *(_table_lines(cells, width) or _record_lines(COLUMNS, cells, width))):
            note(line)


def _table_lines(cells: tuple[str, ...], width: int | None) -> list[str]:
    """A row of the table that grows, its last cell broken into lines; none if there is no room for it."""
    from boosters_eval.reports.layout import wrapped

    start = "".join(f"{cell:<{room}}  " for cell, room in zip(cells, _WIDTHS, strict=False))
    if width is None:
        return [start + cells[-1]]
    if width - len(start) < _NARROWEST_ANSWER:
        return []
    first, *rest = wrapped(cells[-1], width - len(start))
    return [start + first, *(" " * len(start) + line for line in rest)]


def _record_lines(columns: tuple[str, ...], cells: tuple[str, ...], width: int | None) -> list[str]:
    """The same row as other tables show theirs on a narrow terminal."""
    from boosters_eval.reports.layout import Grid, Span, stack

    grid = Grid(columns, (tuple(map(Span, cells)),), keys=2)
    return [line.plain for line in stack(grid, width or sum(_WIDTHS))]


def _show(found: Any, chosen: str | None, presentation: Presentation) -> None:
    from boosters_eval.programs.bisect.wording import COLUMNS, render_markdown, row, skipped_sentence

    if presentation.output is not None and not presentation.quiet:
        note(as_options(found.answer))
    if chosen == "json":
        emit(found.model_dump_json(indent=2) + "\n", presentation.output, quiet=presentation.quiet)
        return
    if chosen == "markdown":
        emit(render_markdown(found), presentation.output, quiet=presentation.quiet)
        return
    say(as_options(found.answer))
    if found.unusable:
        say(skipped_sentence(found.unusable))
    if sys.stdout.isatty() and sys.stderr.isatty() and not presentation.quiet:
        return  # the steps are on the screen already
    print_rows(COLUMNS, [row(number, step) for number, step in enumerate(found.steps, 1)], keys=2)


def register(app: typer.Typer) -> None:
    """Add this command to the program."""
    app.command()(bisect)
