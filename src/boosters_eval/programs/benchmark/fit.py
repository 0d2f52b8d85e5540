"""The workload `fit`: train a library on a split, predict, and score."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from boosters_eval.core.modules import address_of, at_address
from boosters_eval.engine.workload import Workload
from boosters_eval.metrics.metric import load_implementations
from boosters_eval.programs.benchmark.fitting import fit_cell
from boosters_eval.programs.benchmark.spec import FitSpec
from boosters_eval.programs.benchmark.usermetrics import UserMetric
from boosters_eval.runners import RUNNERS
from boosters_eval.runners.builds.importing import foreign
from boosters_eval.runners.builds.store import changed_since
from boosters_eval.runners.installed import installed_build
from boosters_eval.runners.result import BenchmarkResult
from boosters_eval.runners.targets import runner_for, target_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from boosters_eval.engine.cell import Cell, Lane, Spec, Target
    from boosters_eval.runners.base import Runner


# What numpy imports only when a table is opened and split, and a few rows are chosen.
_OWN_IMPORTS = ("mmap", "numpy.ma", "numpy.random")


class Fit(Workload):
    """The workload whose targets are libraries, each accessed through the runner of that name."""

    name: ClassVar[str] = "fit"
    spec_type: ClassVar[type[Spec]] = FitSpec
    outcome_type: ClassVar[type[BenchmarkResult]] = BenchmarkResult

    @classmethod
    def target(cls, name: str) -> Target:
        """The library's files, together with the adapter that maps parameters to it."""
        return target_of(RUNNERS[name])

    @classmethod
    def address(cls, target: Target) -> dict[str, Any]:
        """Where the runner's class is defined: a script may register one that other processes do not know by name."""
        return address_of(RUNNERS[target.library], "runner")

    @classmethod
    def path(cls, target: Target) -> tuple[str, ...]:
        """The folders of a build."""
        return () if target.installation is None else target.installation.path

    @classmethod
    def isolated(cls, target: Target) -> bool:
        """Whether a build has an environment of its own."""
        return target.installation is not None and target.installation.isolated

    @classmethod
    def imports(cls, target: Target) -> tuple[str, ...]:
        """This module, and the large packages that the library imports as well."""
        return ("boosters_eval.programs.benchmark.fit", *RUNNERS[target.library].dependencies)

    @classmethod
    def load(cls, lane: Lane, address: Mapping[str, Any]) -> type[Runner]:
        """Import the library and everything needed to score its predictions."""
        runner: type[Runner] = at_address(address)
        metrics = [UserMetric.model_validate_json(text) for text in lane.preload]
        for metric in metrics:
            metric.find()  # all files run before anything is registered here, which they may register themselves
        RUNNERS.register(lane.target.library, runner, replace=True)
        runner = runner_for(lane.target)
        runner.load()
        runner.version()  # imports the standard library's reader of package metadata
        _check_build(runner, lane.target)
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


def _check_build(runner: type[Runner], target: Target) -> None:
    """Refuse a build that is not the plan's, that was imported from elsewhere than its folder, or that was edited."""
    installation = target.installation
    if installation is None and target.build.library is None:
        return
    planned, found = target.build.digest, installed_build(runner).digest
    fault = "" if planned == found else f"the plan has the build {planned} of {runner.name}, but {found} is known now"
    if installation is not None:
        fault = fault or foreign(runner.module, installation.path) or changed_since(installation)
    if fault:
        raise ImportError(f"{fault}.")
