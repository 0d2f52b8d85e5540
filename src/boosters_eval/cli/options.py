"""The options shared by all commands that run cells, declared once."""

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.text import encodable

_RUN = "How to run"
_OUT = "Output"
_DATA = "Files of your own"


@dataclass(frozen=True)
class Execution:
    """How cells run, and what is done with earlier attempts."""

    timing_mode: Annotated[
        bool,
        typer.Option(
            "--timing-mode",
            help="Measure times: use all cores, a full warm-up run, and one cell at a time.",
            rich_help_panel=_RUN,
        ),
    ] = False
    protocol: Annotated[
        str,
        typer.Option(
            "--protocol",
            help="With --timing-mode: fixed (one fit, three predictions), or adaptive (adaptive-v1: the faster, the"
            " more often).",
            rich_help_panel=_RUN,
        ),
    ] = "fixed"
    warmup: Annotated[
        int | None,
        typer.Option(
            "--warmup",
            min=0,
            help="Untimed full runs before the timed one; a small one is always done. Default: 1 with --timing-mode,"
            " else 0.",
            rich_help_panel=_RUN,
        ),
    ] = None
    measure_memory: Annotated[
        bool,
        typer.Option(
            "--measure-memory",
            help="Measure the peak of native memory, and what the first use takes, in a separate fit.",
            rich_help_panel=_RUN,
        ),
    ] = False
    threads: Annotated[
        int | None,
        typer.Option(
            "--threads",
            help="Threads per cell; -1 for all cores. Default: the config's, usually 1; with --timing-mode all cores.",
            rich_help_panel=_RUN,
        ),
    ] = None
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", "-j", min=1, help="Cells at a time. Default: as many as the cores allow.", rich_help_panel=_RUN
        ),
    ] = None
    timeout: Annotated[
        float | None,
        typer.Option("--timeout", help="Seconds after which a cell is killed. Default: never.", rich_help_panel=_RUN),
    ] = None
    memory_limit: Annotated[
        float | None,
        typer.Option(
            "--memory-limit", help="Megabytes that a cell may allocate. Default: no limit.", rich_help_panel=_RUN
        ),
    ] = None
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Continue an interrupted run of the same plan.", rich_help_panel=_RUN),
    ] = False
    rerun_failed: Annotated[
        bool,
        typer.Option("--rerun-failed", help="Run only the failed cells of the same plan again.", rich_help_panel=_RUN),
    ] = False
    executor: Annotated[
        str,
        typer.Option(
            "--executor", help="What runs the cells: local, dask (a cluster), or one of your own.", rich_help_panel=_RUN
        ),
    ] = "local"
    address: Annotated[
        str | None,
        typer.Option(
            "--address",
            metavar="tcp://HOST:PORT",
            help="With --executor dask: the scheduler. Default: dask's own configuration, else a cluster started here.",
            rich_help_panel=_RUN,
        ),
    ] = None
    scheduler_file: Annotated[
        Path | None,
        typer.Option(
            "--scheduler-file",
            help="With --executor dask: the file in which the scheduler has written its address.",
            rich_help_panel=_RUN,
        ),
    ] = None
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            min=1,
            help="With --executor dask: start a cluster of so many processes here, for a try.",
            rich_help_panel=_RUN,
        ),
    ] = None
    observer: Annotated[
        list[str] | None,
        typer.Option(
            "--observer",
            help="Observers of the run's progress, by name. Default: bar on a terminal, else lines.",
            rich_help_panel=_RUN,
        ),
    ] = None
    track: Annotated[
        list[str] | None,
        typer.Option(
            "--track",
            help="Send the run to trackers: mlflow, wandb, or one of your own. Default: nothing is sent.",
            rich_help_panel=_RUN,
        ),
    ] = None
    name: Annotated[
        str | None, typer.Option("--name", help="A name for the run, which --run accepts.", rich_help_panel=_RUN)
    ] = None
    continue_on_error: Annotated[
        bool,
        typer.Option("--continue-on-error", help="Exit 0 even if some cells failed.", rich_help_panel=_RUN),
    ] = False


@dataclass(frozen=True)
class Presentation:
    """How much is printed, and where the result goes."""

    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="File for the result: .md or .txt (both Markdown), .json, .csv or .html. Default: stdout.",
            rich_help_panel=_OUT,
        ),
    ] = None
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            help="markdown (or md), json, csv or html. Default: by the ending of --output.",
            rich_help_panel=_OUT,
        ),
    ] = None
    test: Annotated[
        str,
        typer.Option(
            "--test",
            help="The test behind the highlights: corrected (paired, for overlapping splits), welch, paired, wilcoxon.",
            rich_help_panel=_OUT,
        ),
    ] = "corrected"
    highlight_significant: Annotated[
        bool,
        typer.Option(
            "--highlight-significant/--highlight-best",
            help="Highlight the best mean only if its lead is significant, or always.",
            rich_help_panel=_OUT,
        ),
    ] = True
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would run, but run nothing.", rich_help_panel=_OUT)
    ] = False
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print more.", rich_help_panel=_OUT)] = False
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only the result.", rich_help_panel=_OUT)] = False


@dataclass(frozen=True)
class AgainstOptions:
    """Whether the run is a check, and where its verdict goes."""

    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="NAME",
            help="Exit 1 if another competitor is worse than this one in a primary metric, or slower under"
            " --timing-mode; 2 if that could not be answered.",
            rich_help_panel=_OUT,
        ),
    ] = None
    verdict: Annotated[
        Path | None,
        typer.Option("--verdict", help="File for the verdict of --against as JSON.", rich_help_panel=_OUT),
    ] = None


@dataclass(frozen=True)
class DataOptions:
    """How the files of the user are read, and what their columns are used as."""

    drop: Annotated[
        list[str] | None,
        typer.Option("--drop", metavar="COLUMN", help="Columns that are left out.", rich_help_panel=_DATA),
    ] = None
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            metavar="COLUMN",
            help="Columns that are features although they look like ids, or order or group the rows.",
            rich_help_panel=_DATA,
        ),
    ] = None
    categorical: Annotated[
        list[str] | None,
        typer.Option(
            "--categorical", metavar="COLUMN", help="Columns that are categories, even numbers.", rich_help_panel=_DATA
        ),
    ] = None
    numeric: Annotated[
        list[str] | None,
        typer.Option(
            "--numeric",
            metavar="COLUMN",
            help="Columns that are numbers, even as text ($3,750, 12%); what is no number is missing.",
            rich_help_panel=_DATA,
        ),
    ] = None
    date: Annotated[
        list[str] | None,
        typer.Option(
            "--date",
            metavar="COLUMN",
            help="Columns that are dates: they become year, month, day, weekday and hour.",
            rich_help_panel=_DATA,
        ),
    ] = None
    drop_missing_target: Annotated[
        bool,
        typer.Option("--drop-missing-target", help="Leave out rows without a target.", rich_help_panel=_DATA),
    ] = False
    sep: Annotated[
        str | None,
        typer.Option(
            "--sep",
            help="The separator: one character, or comma, semicolon, tab, pipe, space, whitespace. Default: found out.",
            rich_help_panel=_DATA,
        ),
    ] = None
    decimal: Annotated[
        str | None, typer.Option("--decimal", help="The decimal mark. Default: found out.", rich_help_panel=_DATA)
    ] = None
    thousands: Annotated[
        str | None,
        typer.Option("--thousands", help="The mark between thousands. Default: found out.", rich_help_panel=_DATA),
    ] = None
    encoding: Annotated[
        str | None,
        typer.Option(
            "--encoding", help="The encoding, such as utf-8, utf-16, cp1252. Default: found out.", rich_help_panel=_DATA
        ),
    ] = None


def data_of(options: DataOptions) -> Any:
    """The settings that were given, or None if none was."""
    from boosters_eval.datasets.config import DataSettings

    given = {name: value for name, value in asdict(options).items() if value not in (None, False, [])}
    return DataSettings(**given) if given else None


def with_options(
    *, without: tuple[str, ...] = (), **groups: type
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command the options of a dataclass, which it receives as a single argument.

    Those that mean nothing to it are left out, by their name; they keep their defaults.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        own = [p for p in inspect.signature(command).parameters.values() if p.name not in groups]
        hints = get_type_hints(command, include_extras=True)
        parameters = [p.replace(annotation=hints[p.name], kind=p.KEYWORD_ONLY) for p in own]
        for group in groups.values():
            types = get_type_hints(group, include_extras=True)
            parameters += [
                inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=types[f.name])
                for f in fields(group)
                if f.name not in without
            ]

        @functools.wraps(command)
        def wrapper(**given: Any) -> Any:
            packed = {
                name: group(
                    **{f.name: given.pop(f.name) for f in fields(group) if f.name in given and f.name not in without}
                )
                for name, group in groups.items()
            }
            return command(**given, **packed)

        wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        wrapper.__annotations__ = {p.name: p.annotation for p in parameters}
        return wrapper

    return decorate


def all_but(group: type, *names: str) -> tuple[str, ...]:
    """What a command leaves out of a group, told by the few options that it takes."""
    return tuple(f.name for f in fields(group) if f.name not in names)


def settings_of(execution: Execution) -> dict[str, Any]:
    """The options that are settings of a run."""
    others = ("continue_on_error", "observer", "track", *CLUSTER)
    given = {name: value for name, value in asdict(execution).items() if name not in others}
    elsewhere = execution.executor == _DASK and execution.workers is None  # workers that are asked for start here
    return {**given, "command": tuple(typed()), "elsewhere": elsewhere}


_PLACES = ("address", "scheduler_file", "workers")
CLUSTER = ("executor", *_PLACES)  # the options of Execution that say where cells run
_DASK = "dask"


@contextlib.contextmanager
def executor_of(execution: Execution) -> Iterator[Any]:
    """The executor that the options name: a name, or one that knows its cluster and is closed in the end."""
    given = {name: value for name in _PLACES if (value := getattr(execution, name)) is not None}
    if not given:
        yield execution.executor
        return
    from boosters_eval.cluster.executor import DaskExecutor

    with DaskExecutor(**given) as executor:
        yield executor


def check_cluster(execution: Execution) -> None:
    """Refuse options that contradict each other, and an executor that does not exist, before any work is done."""
    from boosters_eval.running import check_names

    given = [f"--{name.replace('_', '-')}" for name in _PLACES if getattr(execution, name) is not None]
    if given and execution.executor != _DASK:
        raise ConfigError(f"The {given[0]} option needs --executor dask. Got '{execution.executor}' instead.")
    if len(given) > 1:
        raise ConfigError(f"Use either {given[0]} or {given[1]}, not both: a run has one cluster.")
    if execution.executor == _DASK and execution.jobs is not None:
        raise ConfigError(
            "Use either --jobs or --executor dask, not both: the threads of its workers say how many run."
        )
    check_names(execution.executor)


def refuse_tracking(execution: Execution) -> None:
    """Where an earlier run is read, nothing runs that could be tracked."""
    if execution.track:
        raise ConfigError("Use either --track or an earlier run, not both: 'boosters-eval track RUN --to' sends that.")


def typed() -> list[str]:
    """The command line, without the options that only continue an earlier run."""
    return [encodable(word) for word in sys.argv[1:] if word not in ("--resume", "--rerun-failed")]
