"""What `upgrade-check` is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.request import MAX_SEEDS, OutputOptions, Request, anything, count, number, parameter, path, text
from boosters_eval.core.terms import named, the
from boosters_eval.engine.settings import RunSettings
from boosters_eval.programs.benchmark.request import TargetParameters, names_parameter, suite_parameter

if TYPE_CHECKING:
    from collections.abc import Mapping

_SIDE = "a version, a wheel, a source folder, or 'installed'"


def _side(name: str, told: str) -> Any:
    return parameter(kind=text(_SIDE, name), argument=True, help=f"{told}: {_SIDE}.")


class UpgradeRequest(RunSettings, OutputOptions, TargetParameters, Request):
    command: ClassVar = "upgrade-check"
    help: ClassVar = """Check whether a newer version of a library may be used: what changes, by how much, at what cost.

    Both versions train the same models with the same parameters, interleaved. Exit 0 if it is safe, 1 if something
    changed by more than --tolerance or fails, 2 if that could not be answered.
    """
    program: ClassVar = "boosters_eval.programs.upgrade.judge:check_upgrade"
    formats: ClassVar = ("markdown", "json", "html")

    library: str = parameter(
        kind=text("the name of a library", "LIBRARY"), argument=True, help="A library, or path/to/file.py:Class."
    )
    old: str = _side("OLD", "What is used now")
    new: str = _side("NEW", "What may take its place")
    suite: Any = suite_parameter(None, "A suite instead of the matrix, by name or path/to/file.py:SUITE.")
    datasets: Any = names_parameter(
        (),
        "data sets",
        "Data of your own instead of the matrix: data sets by name, or FILE.csv:TARGET.",
        option="--dataset",
        short="-d",
        separator=None,
    )
    params: Path | Mapping[str, Any] | None = parameter(
        None,
        kind=anything("a JSON file or a dict of native parameters", Path, str, dict, metavar="FILE"),
        help="A JSON file with the native parameters of your project, for an answer on your configuration.",
    )
    tolerance: float = parameter(
        1e-6,
        kind=number("standard deviations of the predictions, 0 or more", least=0),
        help="How far predictions may drift, in standard deviations of the predictions. Default: 0.000001.",
    )
    seeds: int = parameter(3, short="-s", kind=count(2, MAX_SEEDS), help="How many splits each cell is trained on.")
    models: Path | None = parameter(
        None, kind=path("a folder", "DIR"), help="A folder of saved models, which both versions load; with --rows."
    )
    rows: str | None = parameter(
        None,
        kind=text("FILE.csv:TARGET or the name of a data set", "FILE.csv:TARGET"),
        help="The rows that saved models of --models are asked about; the target is left out.",
    )
    isolated: bool = parameter(False, help="Install each version with dependencies of its own.")

    def check(self) -> None:
        super().check()
        if self.suite is not None and self.datasets:
            raise ConfigError(f"Use either {named('suite')} or {named('datasets')}, not both.")
        if (self.models is None) != (self.rows is None):
            first, second = ("models", "rows") if self.rows is None else ("rows", "models")
            raise ConfigError(f"{the(first)} needs {named(second)} too.")
        if self.models is not None and not self.models.is_dir():
            raise ConfigError(f"{the('models')} must be a folder. Got '{self.models}' instead.")
