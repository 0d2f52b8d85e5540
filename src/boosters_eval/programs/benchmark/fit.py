"""The workload `fit`: train a library on a split, predict, and score."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from boosters_eval.core.modules import address_of, at_address
from boosters_eval.engine.workload import Workload
from boosters_eval.metrics.compute import load_implementations
from boosters_eval.programs.benchmark.fitting import fit_cell
from boosters_eval.programs.benchmark.records import BenchmarkResult
from boosters_eval.programs.benchmark.spec import FitSpec
from boosters_eval.programs.benchmark.usermetrics import UserMetric
from boosters_eval.runners import RUNNERS
from boosters_eval.runners.builds.importing import foreign
from boosters_eval.runners.builds.store import changed_since
from boosters_eval.runners.installation import Installation
from boosters_eval.runners.installed import installed_build
from boosters_eval.runners.targets import known_as, runner_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from boosters_eval.engine.cell import Build, Cell, Lane, Spec
    from boosters_eval.runners.base import Runner


# What numpy imports only when a table is opened and split, and a few rows are chosen.
_OWN_IMPORTS = ("mmap", "numpy.ma", "numpy.random")


class Fit(Workload):
    """The workload whose targets are libraries, each accessed through the runner of that name."""

    name: ClassVar[str] = "fit"
    spec_type: ClassVar[type[Spec]] = FitSpec
    outcome_type: ClassVar[type[BenchmarkResult]] = BenchmarkResult

    @classmethod
    def build(cls, target: str) -> Build:
        """The library's files, together with the adapter that maps parameters to it."""
        return installed_build(runner_of(target))

    @classmethod
    def address(cls, target: str) -> dict[str, Any]:
        """Where the runner's class is defined: a script may register one that other processes do not know by name.

        Of a build also where its files are.
        """
        runner = runner_of(target)
        installation = runner.installation
        return {
            **address_of(runner, "runner"),
            **({} if installation is None else {"installation": installation.model_dump(mode="json")}),
        }

    @classmethod
    def path(cls, target: str) -> tuple[str, ...]:
        """The folders of a build."""
        installation = runner_of(target).installation
        return () if installation is None else installation.path

    @classmethod
    def isolated(cls, target: str) -> bool:
        """Whether a build has an environment of its own."""
        installation = runner_of(target).installation
        return installation is not None and installation.isolated

    @classmethod
    def imports(cls, target: str) -> tuple[str, ...]:
        """This module, and the large packages that the library imports as well."""
        return ("boosters_eval.programs.benchmark.fit", *runner_of(target).dependencies)

    @classmethod
    def load(cls, lane: Lane, address: Mapping[str, Any]) -> type[Runner]:
        """Import the library and everything needed to score its predictions."""
        runner: type[Runner] = at_address(address)
        metrics = [UserMetric.model_validate_json(text) for text in lane.preload]
        for metric in metrics:
            metric.find()  # all files run before anything is registered here, which they may register themselves
        runner = _registered(lane.target, runner, address)
        runner.load()
        runner.version()  # imports the standard library's reader of package metadata
        _check_build(runner, address)
        for metric in metrics:
            metric.load()
        load_implementations()
        for name in _OWN_IMPORTS:
            import_module(name)
        return runner

    @classmethod
    def run(
        cls, cell: Cell, loaded: type[Runner], inputs: Mapping[str, str], phase: Callable[[str], None]
    ) -> BenchmarkResult:
        """One fit: load, warm-up, build, fit, predict, score."""
        fitted = fit_cell(cell, loaded, inputs, phase)
        phase("done")
        return BenchmarkResult(**fitted.fields)


def _registered(target: str, runner: type[Runner], address: Mapping[str, Any]) -> type[Runner]:
    """The runner, known in this process by the target's name; of a build, the one that uses its files."""
    if "installation" not in address:
        return RUNNERS.register(target, runner, replace=True)
    build = runner.at(target, Installation.model_validate(address["installation"]))
    known_as(target, build)
    return build


def _check_build(runner: type[Runner], address: Mapping[str, Any]) -> None:
    """Refuse a build that is not the plan's, that was imported from elsewhere than its folder, or that was edited."""
    installation = runner.installation
    if installation is None and address["build"].get("library") is None:
        return
    planned, found = address["build"]["digest"], installed_build(runner).digest
    fault = "" if planned == found else f"the plan has the build {planned} of {runner.name}, but {found} is known now"
    if installation is not None:
        fault = fault or foreign(runner.module, installation.path) or changed_since(installation)
    if fault:
        raise ImportError(f"{fault}.")
