"""The command `importances`: what the models of each library rely on."""

import sys
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

import typer

from boosters_eval.cli.execution import carried_out, exit_code
from boosters_eval.cli.options import DataOptions, Execution, Presentation, data_of, settings_of, with_options
from boosters_eval.cli.output import check_output, choose_format, console, emit, note
from boosters_eval.cli.training import (
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
from boosters_eval.core.errors import ConfigError
from boosters_eval.core.text import counted


@with_options(
    data=DataOptions,
    execution=Execution,
    presentation=Presentation,
    without=("test", "highlight_significant", "format"),
)
def importances(
    data: DataOptions,
    execution: Execution,
    presentation: Presentation,
    dataset: DatasetsOption = None,
    library: LibrariesOption = None,
    booster: BoostersOption = None,
    kinds: Annotated[
        str, typer.Option("--kinds", help="Kinds of importances, separated by commas.")
    ] = "permutation,gain,split,shap",
    seeds: Annotated[
        str | None,
        typer.Option("--seeds", "-s", help="Number of random splits. Default: 5, or the variable BOOSTERS_EVAL_SEEDS."),
    ] = None,
    permutations: Annotated[int, typer.Option("--permutations", min=1, help="How often a column is shuffled.")] = 5,
    max_rows: Annotated[
        int, typer.Option("--max-rows", min=1, help="The most validation rows that are measured.")
    ] = 10_000,
    group: Annotated[
        list[str] | None,
        typer.Option("--group", help="Columns that are shuffled and ranked together: --group place=lat,lon size=a,b."),
    ] = None,
    top: Annotated[int, typer.Option("--top", min=1, help="How many columns are shown.")] = 10,
    cv: CvOption = None,
    split: SplitOption = None,
    task: TaskOption = None,
    growth: GrowthOption = None,
    device: DeviceOption = None,
    param: ParamOption = None,
    profile: ProfileOption = "parity",
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            help="markdown (or md), json, csv, html, or table, which is for a terminal. Default: by the ending of"
            " --output.",
        ),
    ] = None,
) -> int:
    """Compare what the models of libraries rely on: importances, attributions and predictions."""
    from boosters_eval.preparing import prepare_importances
    from boosters_eval.running import run_importances

    presentation = replace(presentation, format=format_)
    if presentation.verbose and presentation.quiet:
        raise ConfigError("Use either --verbose or --quiet, not both.")
    _format(presentation)
    if not presentation.dry_run:
        check_output(presentation.output)
    prepared = prepare_importances(
        dataset or ["california"],
        library or None,
        booster or ["gbdt"],
        seeds,
        kinds=kinds,
        permutations=permutations,
        max_rows=max_rows,
        groups=_groups(group or []),
        training=training_of(param, growth, device),
        cv=cv,
        task=task,
        data=data_of(data),
        split=split,
        profile=profile,
        **settings_of(execution),
    )
    tell = (lambda _: None) if presentation.quiet else note
    run_plan = partial(run_importances, say=tell, track=execution.track)
    found = carried_out(prepared, execution, presentation, run_plan)
    show(found, presentation, top)
    return exit_code(found.collection, continue_on_error=execution.continue_on_error)


def _groups(given: list[str]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for text in given:
        name, equals, columns = text.partition("=")
        members = [column.strip() for column in columns.split(",") if column.strip()]
        if not (name.strip() and equals and members) or name.strip() in groups:
            raise ConfigError(f"The --group option must be a new NAME=COLUMN,COLUMN. Got '{text}' instead.")
        groups[name.strip()] = members
    return groups


def show(found: Any, presentation: Presentation, top: int) -> None:
    """Print the report in the requested format, or as tables by default."""
    from boosters_eval.programs.importances.rendering import print_importances, render

    chosen = _format(presentation)
    document = found.document(top)
    if chosen == "table" or (chosen is None and sys.stdout.isatty()):
        print_importances(document, console(), every=presentation.verbose)
    else:
        emit(render(document, chosen or "markdown"), presentation.output, quiet=presentation.quiet)
    if not presentation.quiet and found.run_id:
        note(f"Run {found.run_id}: {counted(len(found.results), 'result')}, {counted(len(found.errors), 'error')}.")


def _format(presentation: Presentation) -> Any:
    """The format, which may also be the table of a terminal."""
    if presentation.format == "table" and presentation.output is not None:
        raise ConfigError("Use either --format table, which is for a terminal, or --output, not both.")
    return choose_format(presentation.format, presentation.output, more=("table",))


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command()(importances)
