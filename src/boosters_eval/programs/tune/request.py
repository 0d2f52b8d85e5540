"""What `tune` is asked for."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.request import RUN, OutputOptions, Request, anything, choice, count, number, parameter, text
from boosters_eval.core.terms import given, named, the
from boosters_eval.programs.benchmark.request import (
    BUILDS,
    DEFAULT_SEEDS,
    SPLIT,
    Margined,
    Settings,
    TargetParameters,
    Tolerant,
    TrainingParameters,
    check_splits,
    libraries_parameter,
    names_parameter,
    seeds_parameter,
    splits_parameter,
)

MOST_TRIALS = 1000


class TuneRequest(Settings, Tolerant, Margined, OutputOptions, TrainingParameters, TargetParameters, Request):
    command: ClassVar = "tune"
    help: ClassVar = """Tune libraries with the same budget: which is best then, and what tuning is worth.

    Every library tries the same configurations. What is chosen on a part of the training rows is scored on the test
    rows, which nothing was chosen by.
    """
    program: ClassVar = "boosters_eval.programs.tune.judge:tune"
    formats: ClassVar = ("markdown", "json", "html")

    datasets: Any = names_parameter(
        ("diabetes",),
        "data sets",
        "Data sets by name, or FILE.csv:TARGET. Default: diabetes.",
        option="--dataset",
        short="-d",
        separator=None,
    )
    libraries: Any = libraries_parameter(f"Libraries{BUILDS} Default: all that are installed.")
    trials: int = parameter(
        15, short="-n", kind=count(1, MOST_TRIALS), help="How many configurations each library tries."
    )
    space: Literal["common", "own"] = parameter(
        "common",
        kind=choice("common", "own"),
        help="What is searched: common (the same configurations for all, in canonical terms) or own (each library's own"
        " parameters).",
    )
    sampler: Literal["random", "sobol"] = parameter(
        "random", kind=choice("random", "sobol"), help="How configurations are drawn: random or sobol."
    )
    inner: int = parameter(
        1, kind=count(1, 5), help="How many parts of the training rows, a fifth each, configurations are chosen by."
    )
    early_stopping: int | None = parameter(
        None, kind=count(1), help="Stop each trial after so many rounds without a gain, all libraries alike."
    )
    metric: Any = parameter(
        None,
        short="-m",
        kind=anything("the name of a metric", metavar="NAME"),
        help="The metric that is chosen and judged by. Default: the task's first.",
    )
    seeds: int | None = seeds_parameter(f"Number of splits. {DEFAULT_SEEDS}")
    cv: str | int | None = parameter(
        None,
        kind=anything("folds or folds x repeats, such as 5 or 5x10", str, int, metavar="FOLDS[xREPEATS]"),
        help="Folds, or folds x repeats, instead of seeds: 5 or 5x10.",
    )
    splits: Literal["balanced", "random"] = splits_parameter()
    split: str | None = parameter(
        None, kind=text("random, time, time:COLUMN or group:COLUMN", "random|time[:COLUMN]|group:COLUMN"), help=SPLIT
    )
    budget: str | float | None = parameter(
        None,
        kind=anything("a time such as 90s, 10m or 1h", str, int, float, metavar="TIME"),
        help="Time limit for all trials, 90s, 10m, 1h: what does not fit is left out for all libraries alike."
        " Default: none.",
    )
    cpu_budget: float | None = parameter(
        None,
        kind=number("seconds above 0", above=0, metavar="SECONDS"),
        help="CPU seconds that the fits of one library may take; trials beyond are left out for all alike."
        " Default: none.",
    )
    reuse: bool = parameter(
        False, panel=RUN, help="Take over finished cells of earlier runs with the same build, data and split."
    )

    @property
    def takes_over(self) -> bool:
        return self.reuse

    def check(self) -> None:
        super().check()
        check_splits(self)
        if self.space == "own" and self.early_stopping is not None:
            raise ConfigError(
                f"{the('early_stopping')} needs {given('space', 'common')}: libraries stop in their own ways."
            )
        for name in ("training", "param", "growth") if self.space == "own" else ():
            if getattr(self, name):
                raise ConfigError(f"{the(name)} is canonical: use {given('space', 'common')}.")
        for name in ("timing_mode", "measure_memory", "cpu_budget"):
            if self.reuse and getattr(self, name):
                raise ConfigError(f"Use either {named('reuse')} or {named(name)}, not both: what is measured must run.")
