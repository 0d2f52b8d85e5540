"""How a plan is carried out: the settings that every program with cells has, with the same meaning in all of them."""

from __future__ import annotations

import re
from pathlib import Path  # noqa: TC003 (a dataclass keeps its annotations)
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.request import (
    OUTPUT,
    RUN,
    Accepted,
    InHome,
    anything,
    count,
    number,
    parameter,
    path,
    quiet_option,
    text,
)
from boosters_eval.core.terms import given, named, the

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boosters_eval.engine.execute import Executor
    from boosters_eval.engine.observer import Observer

DASK = "dask"
_PLACES = ("address", "scheduler_file", "workers")  # of a cluster; a run has one
_NAME = re.compile(r"[^\W_][\w.+-]{0,63}")


def _run_name(value: Any) -> str:
    """Refuse a name that could be taken for something else wherever a run is asked for."""
    if not isinstance(value, str) or not _NAME.fullmatch(value) or value == "last" or re.fullmatch("[0-9a-f]+", value):
        raise ValueError
    return value


RUN_NAME = Accepted(
    "up to 64 letters, digits and the signs . + - _, and neither 'last' nor like a run's id, of digits and a to f"
    " alone",
    _run_name,
    _run_name,
    "NAME",
)

RUN_REFERENCE = text("a run's id, the beginning of one, its name, or 'last'", "RUN")


def run_parameter(told: str) -> Any:
    """An earlier run; `told` says what is done with it."""
    return parameter(None, kind=RUN_REFERENCE, help=f"{told}: its id, the beginning of it, its name, or 'last'.")


class RunSettings(InHome):
    """How cells run, what is done with earlier attempts, and who hears of it."""

    panel: ClassVar = RUN

    jobs: int | None = parameter(
        None, short="-j", kind=count(1, 4096), help="Cells at a time. Default: as many as the cores allow."
    )
    timeout: float | None = parameter(
        None,
        kind=number("seconds above 0", above=0, metavar="SECONDS"),
        help="Seconds after which a cell is killed. Default: never.",
    )
    memory_limit: float | None = parameter(
        None,
        kind=number("megabytes above 0", above=0, most=2**30, metavar="MB"),
        help="Megabytes that a cell may allocate. Default: no limit.",
    )
    resume: bool = parameter(False, help="Continue an interrupted run of the same plan.")
    rerun_failed: bool = parameter(False, help="Run only the missing and the failed cells of the same plan.")
    executor: Executor | str | None = parameter(
        None,
        kind=anything("a name or an Executor", metavar="NAME"),
        help="What runs the cells: local, dask (a cluster), or one of your own. Default: local.",
    )
    address: str | None = parameter(
        None,
        kind=text("an address such as tcp://HOST:PORT", "tcp://HOST:PORT"),
        help="With --executor dask: the scheduler. Default: dask's own configuration, else a local cluster.",
    )
    scheduler_file: Path | None = parameter(
        None, kind=path(), help="With --executor dask: the file in which the scheduler has written its address."
    )
    workers: int | None = parameter(
        None, kind=count(1), help="With --executor dask: start a local cluster with N processes."
    )
    observer: Sequence[Observer | str] = parameter(
        (),
        kind=anything("names or Observers", metavar="NAME"),
        help="Observers of the run's progress, by name. Default: bar on a terminal, else lines.",
    )
    track: Sequence[Any] = parameter(
        (),
        kind=anything("names or Tracker classes", metavar="NAME"),
        help="Send the run to trackers: mlflow, wandb, or one of your own. Default: nothing is sent.",
    )
    name: str | None = parameter(None, kind=RUN_NAME, help="A name for the run, which --run accepts.")
    dry_run: bool = parameter(False, panel=OUTPUT, door="options", help="Show what would run, but run nothing.")
    verbose: bool = parameter(False, short="-v", panel=OUTPUT, help="Print more.")
    quiet: bool = quiet_option("Print only the result.")
    command_line: Sequence[str] = parameter(
        (), door="python", help="The command that asks for the run, for its record."
    )

    def check(self) -> None:
        super().check()
        for first, second in (("verbose", "quiet"), ("resume", "rerun_failed")):
            if getattr(self, first) and getattr(self, second):
                raise ConfigError(f"Use either {named(first)} or {named(second)}, not both.")
        places = [name for name in _PLACES if getattr(self, name) is not None]
        if places and self.executor != DASK:
            raise ConfigError(f"{the(places[0])} needs {given('executor', DASK)}. Got {self.executor!r} instead.")
        if len(places) > 1:
            raise ConfigError(f"Use either {named(places[0])} or {named(places[1])}, not both: a run has one cluster.")
        if self.executor == DASK and self.jobs is not None:
            raise ConfigError(
                f"Use either {named('jobs')} or {given('executor', DASK)}, not both: the threads of its workers say how"
                " many run."
            )
        if not isinstance(self.executor, (str, type(None))) and self.jobs is not None:
            raise ConfigError(f"{the('jobs')} is of the executor: pass either it or an executor, not both.")

    @property
    def places(self) -> dict[str, Any]:
        return {name: value for name in _PLACES if (value := getattr(self, name)) is not None}


class RunOptions(TypedDict, total=False):
    """The fields of `RunSettings` as keyword arguments, so that editors can complete them."""

    jobs: int | None
    timeout: float | None
    memory_limit: float | None
    resume: bool
    rerun_failed: bool
    executor: Executor | str | None
    address: str | None
    scheduler_file: str | Path | None
    workers: int | None
    observer: Observer | str | Sequence[Observer | str] | None
    track: Any  # a name, a Tracker class, or several of them
    name: str | None
    verbose: bool
    home: str | Path | None
    command_line: Sequence[str]
