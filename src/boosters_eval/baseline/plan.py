"""Which run a baseline is checked with: its own suite and seeds, unless the user asks for less."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from boosters_eval.benchmark.planning import prepare, suite_benchmarks
from boosters_eval.benchmark.suites import resolve_suite
from boosters_eval.core.errors import ConfigError, UnknownNameError

if TYPE_CHECKING:
    from boosters_eval.baseline.model import Baseline
    from boosters_eval.benchmark.planning import PreparedRun
    from boosters_eval.benchmark.settings import Settings

DEFAULT_SUITE = "full"


@dataclass(frozen=True)
class Request:
    """What to run, as far as the user has said."""

    suite: str | None = None
    libraries: tuple[str, ...] | None = None
    seeds: int | None = None

    @property
    def names_seeds(self) -> bool:
        """Whether the user says how many seeds to run, here or in the environment."""
        return self.seeds is not None or "BOOSTERS_EVAL_SEEDS" in os.environ


@dataclass(frozen=True)
class Restriction:
    """What the user restricted the run to; None: no restriction."""

    only_libraries: tuple[str, ...] | None = None
    only_pairs: frozenset[tuple[str, str]] | None = None
    fewer_cells: bool = False


def default_path(name: str = "baseline") -> Path:
    """The default place for a baseline: tests/baselines here, or BOOSTERS_EVAL_BASELINE_DIR."""
    return Path(os.environ.get("BOOSTERS_EVAL_BASELINE_DIR") or "tests/baselines") / f"{name}.json"


def plan_run(request: Request, settings: Settings, baseline: Baseline | None = None) -> tuple[PreparedRun, Restriction]:
    """The plan, and what of the baseline the user left out on purpose."""
    recorded = baseline.config.suite if baseline else None
    suite = request.suite or recorded or DEFAULT_SUITE
    try:
        benchmarks = suite_benchmarks(suite, request.libraries)
    except UnknownNameError:
        if request.suite or not recorded:
            raise
        raise ConfigError(
            f"The suite '{recorded}' of the baseline is not known here; name it, as in --suite path/to/file.py:SUITE."
        ) from None
    seeds = request.seeds
    if baseline and baseline.config.seeds and not request.names_seeds:
        seeds = len(baseline.config.seeds)
    prepared = prepare(benchmarks, seeds, settings)
    other = request.suite is not None and benchmarks.name != recorded
    return prepared, Restriction(
        only_libraries=request.libraries,
        only_pairs=_pairs(suite) if other else None,
        fewer_cells=request.names_seeds,
    )


def _pairs(suite: str) -> frozenset[tuple[str, str]]:
    """All that the suite has, installed or not: what is not installed is missing, not left out."""
    return frozenset((config.name, library) for config in resolve_suite(suite).configs for library in config.libraries)
