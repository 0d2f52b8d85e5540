"""Which run a baseline is checked with: its own suite and seeds, unless the user asks for less, or for `auto`."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.terms import given, named
from boosters_eval.engine.session import check_names
from boosters_eval.programs.baseline.check import check
from boosters_eval.programs.baseline.request import CheckRequest
from boosters_eval.programs.baseline.snapshot import Snapshot
from boosters_eval.programs.benchmark.benchmarks import benchmarks_of, competing
from boosters_eval.programs.benchmark.planning import prepare, seed_count
from boosters_eval.programs.benchmark.suites import SUITES, resolve_suite

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from boosters_eval.engine.cell import Build
    from boosters_eval.programs.baseline.findings import CheckRules, Finding
    from boosters_eval.programs.baseline.model import Baseline
    from boosters_eval.programs.baseline.request import RecordRequest
    from boosters_eval.programs.benchmark.benchmarks import Benchmarks
    from boosters_eval.programs.benchmark.planning import PreparedRun
    from boosters_eval.programs.benchmark.results import ResultCollection
    from boosters_eval.programs.benchmark.suites import BenchmarkSuite
    from boosters_eval.runners.base import Runner
    from boosters_eval.stats.sequential import SequentialRule
    from boosters_eval.stats.significance import Comparison, Verdict

DEFAULT_SUITE = "full"


@dataclass(frozen=True)
class Restriction:
    """What the user restricted the run to; None: no restriction."""

    only_libraries: tuple[str, ...] | None = None
    only_pairs: frozenset[tuple[str, str]] | None = None
    seeds: int | None = None


def default_path(name: str = "baseline") -> Path:
    """The default place for a baseline: tests/baselines here, or BOOSTERS_EVAL_BASELINE_DIR."""
    return Path(os.environ.get("BOOSTERS_EVAL_BASELINE_DIR") or "tests/baselines") / f"{name}.json"


def wanted_seeds(seeds: int | str | None) -> int | None:
    """How many seeds the user asks for, here or in the environment; `auto` says so only with a plan."""
    asked = seeds is not None or os.environ.get("BOOSTERS_EVAL_SEEDS")
    return seed_count(seeds, default=1) if asked and seeds != "auto" else None


def plan_run(
    request: RecordRequest | CheckRequest, baseline: Baseline | None = None, *, recorded_only: bool = False
) -> tuple[PreparedRun, Restriction]:
    """The plan, and what of the baseline the user left out on purpose.

    With `recorded_only`, the suite's libraries that the baseline was not recorded with are left out.
    """
    check_names(request)
    recorded = baseline.config.suite if baseline else None
    chosen = _registered(recorded or DEFAULT_SUITE) if request.suite is None else request.suite
    suite, runners = resolve_suite(chosen, builds=request.libraries is None, home=request.home)
    libraries = competing(request.libraries, request.home)
    benchmarks = benchmarks_of(suite, libraries, runners)
    if baseline is not None and recorded_only and request.libraries is None:
        benchmarks = _recorded_only(benchmarks, baseline)
    if baseline is not None and request.libraries is None:
        benchmarks = replace(benchmarks, notes=(*benchmarks.notes, *_recorded_builds(baseline)))
    if baseline is not None:
        benchmarks = replace(benchmarks, notes=(*benchmarks.notes, *_unrecorded_builds(baseline, libraries or {})))
    n_seeds, most = wanted_seeds(request.seeds), None
    if isinstance(request, CheckRequest) and request.seeds == "auto":
        recorded_seeds = _usable_seeds(baseline)
        most = min(request.max_seeds or recorded_seeds, recorded_seeds)
    if baseline and baseline.config.seeds and n_seeds is None:
        benchmarks = replace(benchmarks, default_seeds=len(baseline.config.seeds))  # configs may name their own
    prepared = prepare(benchmarks, request.seeds, request, max_seeds=most)
    other = request.suite is not None and benchmarks.name != recorded
    return prepared, Restriction(
        only_libraries=None if libraries is None else tuple(libraries),
        only_pairs=_pairs(suite) if other else None,
        seeds=prepared.growth.rule.schedule[0] if prepared.growth else n_seeds,
    )


def _recorded_only(benchmarks: Benchmarks, baseline: Baseline) -> Benchmarks:
    """Without the libraries that the baseline was not recorded with: there would be nothing to compare them with."""
    recorded = {result.library for result in baseline.results} | {item.library for item in baseline.absent}
    others = sorted({name for config in benchmarks.configs for name in config.libraries} - recorded)
    configs = [
        config.replace(libraries=kept)
        for config in benchmarks.configs
        if (kept := tuple(name for name in config.libraries if name in recorded))
    ]
    if not others or not configs:
        return benchmarks
    told = f"the baseline has no {', '.join(others)}, so {'it is' if len(others) == 1 else 'they are'} not run"
    absent = tuple(item for item in benchmarks.unavailable if item.target in recorded)
    return replace(benchmarks, configs=tuple(configs), notes=(*benchmarks.notes, told), unavailable=absent)


def _recorded_builds(baseline: Baseline) -> Iterator[str]:
    """Which builds the baseline was recorded with: no suite has them, so they must be named to be compared."""
    builds = {name: build for name, build in baseline.libraries.items() if build.library not in (None, name)}
    if builds:
        again = [_named_again(name, build) for name, build in builds.items()]
        told = ", ".join(f"{name} ({build.library} {build.version})" for name, build in builds.items())
        yield (
            f"the baseline has builds that no suite has: {told}; name what takes their place, as in"
            f" {given('libraries', again)}"
        )


def _unrecorded_builds(baseline: Baseline, runners: Mapping[str, type[Runner]]) -> Iterator[str]:
    """Which builds will not be judged, although the baseline has their library: it knows them by another name."""
    recorded = {result.library for result in baseline.results}
    for name, runner in runners.items():
        library = runner.library()
        if name not in recorded and library in recorded:
            again = f"{library}={name if name.startswith(f'{library}==') else f'{library}@PATH'}"
            yield (
                f"the baseline has {library}, but not {name}, which is not judged by it; to judge it, give it that"
                f" name, as in {given('libraries', [again])}"
            )


def _named_again(label: str, build: Build) -> str:
    """How a build of this label is named: by a name of the user's own, or by its version or path."""
    if label.startswith(f"{build.library}@"):
        return f"{build.library}@PATH"
    return label if label.startswith(f"{build.library}==") else f"{label}={build.library}==VERSION"


def _registered(name: str) -> BenchmarkSuite:
    """The suite that a baseline names. A path in it is never followed: a data file must not choose what is executed."""
    if name not in SUITES:
        raise ConfigError(
            f"The suite '{name}' of the baseline is not known here; name it, as in"
            f" {given('suite', 'path/to/file.py:SUITE')}."
        )
    return SUITES[name]


def _usable_seeds(baseline: Baseline | None) -> int:
    """How many seeds a run can be paired with: those that it adds must be in the baseline too."""
    auto = given("seeds", "auto")
    if baseline is None:
        raise ConfigError(f"{auto} needs {named('baseline')}: it adds seeds until a test decides.")
    values = all(result.primary.per_seed for result in baseline.results)
    count = len(baseline.config.seeds) if values else 0
    if count < 2:
        have = f"{count} with values per seed" if count or values else "no values per seed"
        raise ConfigError(
            f"{auto} needs a baseline of at least 2 seeds. "
            f"This one has {have}; record it again, as in 'boosters-eval baseline record FILE --seeds 20'."
        )
    return count


def until_decided(prepared: PreparedRun, baseline: Baseline, rules: CheckRules) -> PreparedRun:
    """The run, which with `auto` adds seeds until every pair that counts is decided against the baseline."""
    if prepared.growth is None:
        return prepared
    before = Snapshot.of_baseline(baseline)

    def pairs(results: ResultCollection, rule: SequentialRule) -> Iterator[Comparison]:
        found = check(before, Snapshot.of_run(results), rules.replace(alpha=rule.level))
        return (_comparison(finding, rule) for finding in found.counted)

    return replace(prepared, growth=replace(prepared.growth, pairs=pairs))


def _comparison(finding: Finding, rule: SequentialRule) -> Comparison:
    """A finding in the sequential rule's words: inconclusive until it is a regression or surely within tolerance."""
    from boosters_eval.stats.significance import Comparison  # noqa: PLC0415 (loads scipy)

    verdict: Verdict = "inconclusive" if not finding.decided else "worse" if finding.fails else "equivalent"
    n = finding.current.n if finding.current else 0
    return Comparison(verdict, "corrected", n, rule.level, finding.tolerance)


def _pairs(suite: BenchmarkSuite) -> frozenset[tuple[str, str]]:
    """All that the suite has, installed or not: what is not installed is missing, not left out."""
    return frozenset((config.name, library) for config in suite.configs for library in config.libraries)
