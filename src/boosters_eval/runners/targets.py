"""Targets whose work is to fit: a library as it is installed here, or a build of one with a label of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.engine.cell import Target
from boosters_eval.runners import RUNNERS
from boosters_eval.runners.installed import installed_build

if TYPE_CHECKING:
    from boosters_eval.runners.base import Runner


def target_of(runner: type[Runner]) -> Target:
    """The library or build that an adapter stands for."""
    return Target(name=runner.name, build=installed_build(runner), installation=runner.installation)


def runner_for(target: Target) -> type[Runner]:
    """The adapter of a target; of a build, the one that uses its files."""
    runner = RUNNERS[target.library]
    return runner if target.installation is None else runner.at(target.name, target.installation)
