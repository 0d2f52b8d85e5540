"""The programs `baseline record`, `baseline check`, `quick` and `full`: from a request to a baseline or a verdict."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import ConfigError, ExitCode, OtherVersionError, pick
from boosters_eval.core.files import check_writable
from boosters_eval.core.terms import given, named, tell, the
from boosters_eval.core.text import count_of
from boosters_eval.engine.session import check_names
from boosters_eval.programs.baseline.advice import follow_up
from boosters_eval.programs.baseline.check import check, make_rules, match_rules
from boosters_eval.programs.baseline.document import CheckFindings, describe_size
from boosters_eval.programs.baseline.evidence import RecordedSide
from boosters_eval.programs.baseline.model import Baseline, load_baseline, save_baseline
from boosters_eval.programs.baseline.power import describe_power, find_power
from boosters_eval.programs.baseline.request import CheckRequest, RecordRequest, Selection
from boosters_eval.programs.baseline.sidecar import RunRows, save_sidecar
from boosters_eval.programs.baseline.snapshot import Snapshot, are_same_outcomes, make_baseline, take_baseline
from boosters_eval.programs.baseline.update import merge_baselines, refuse_damage
from boosters_eval.programs.benchmark.benchmarks import find_competitors, make_benchmarks
from boosters_eval.programs.benchmark.compare import ComparisonFindings, announce, describe_plan, prepare_suite
from boosters_eval.programs.benchmark.planning import prepare
from boosters_eval.programs.benchmark.request import SuiteRequest, Tolerant
from boosters_eval.programs.benchmark.results import ResultCollection
from boosters_eval.programs.benchmark.runs import execute_prepared, load_run
from boosters_eval.programs.benchmark.seeds import count_seeds
from boosters_eval.programs.benchmark.suites import SUITES, resolve_suite
from boosters_eval.reports.findings import ReportedFindings
from boosters_eval.runners import RUNNERS
from boosters_eval.runners.builds.reference import label_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from boosters_eval.core.findings import Findings, Screen
    from boosters_eval.engine.cell import Build
    from boosters_eval.programs.baseline.findings import Check, CheckRules, Finding
    from boosters_eval.programs.baseline.power import PairPower
    from boosters_eval.programs.baseline.request import (
        CheckSuiteRequest,
        FullRequest,
        QuickRequest,
        ResultsOf,
        UpdateRequest,
    )
    from boosters_eval.programs.baseline.sidecar import RowStore
    from boosters_eval.programs.baseline.snapshot import TakenBaseline
    from boosters_eval.programs.benchmark.benchmarks import Benchmarks
    from boosters_eval.programs.benchmark.planning import PreparedRun
    from boosters_eval.programs.benchmark.suites import BenchmarkSuite
    from boosters_eval.reports.document import Document
    from boosters_eval.runners.base import Runner
    from boosters_eval.stats.sequential import SequentialRule
    from boosters_eval.stats.significance import Comparison, Verdict


def find_default_path(name: str = "baseline") -> Path:
    """The default place for a baseline: tests/baselines here, or BOOSTERS_EVAL_BASELINE_DIR."""
    return Path(os.environ.get("BOOSTERS_EVAL_BASELINE_DIR") or "tests/baselines") / f"{name}.json"


def find_shipped(suite: str) -> Path | None:
    """The baseline that an installed version of this program brings along; a checkout has its own."""
    path = Path(__file__).parents[2] / "baselines" / f"{suite}.json"
    return path if path.is_file() and not os.environ.get("BOOSTERS_EVAL_BASELINE_DIR") else None


def count_wanted_seeds(seeds: int | str | None) -> int | None:
    """How many seeds the user asks for, here or in the environment; `auto` says so only with a plan."""
    asked = seeds is not None or os.environ.get("BOOSTERS_EVAL_SEEDS")
    return count_seeds(seeds, default=1) if asked and seeds != "auto" else None


def plan_run(
    request: RecordRequest | CheckRequest | UpdateRequest,
    baseline: Baseline | None = None,
    *,
    recorded_only: bool = False,
) -> tuple[PreparedRun, dict[str, Any]]:
    """The plan, and the rules that follow from what of the baseline the user left out on purpose.

    With `recorded_only`, the suite's libraries that the baseline was not recorded with are left out.
    """
    check_names(request)
    recorded = baseline.config.suite if baseline else None
    usual = recorded or "full"
    if request.suite is None and usual not in SUITES:  # a path in a data file must not choose what is executed
        raise ConfigError(
            f"The suite '{usual}' of the baseline is not known here; name it, as in"
            f" {given('suite', 'path/to/file.py:SUITE')}, or check a run of the same comparison with {named('run')}."
        )
    chosen = SUITES[usual] if request.suite is None else request.suite
    suite, runners = resolve_suite(chosen, builds=request.libraries is None, home=request.home)
    libraries = find_competitors(request.libraries, request.home)
    if baseline is not None and recorded_only and suite.name == recorded:
        suite = _with_recorded(suite, baseline)
    benchmarks = make_benchmarks(suite, libraries, runners)
    if baseline is not None and recorded_only and request.libraries is None:
        benchmarks = _recorded_only(benchmarks, baseline)
    if baseline is not None and baseline.config.splits == "random":
        configs = tuple(config.replace(splits="random") for config in benchmarks.configs)
        benchmarks = replace(benchmarks, configs=configs)
    if baseline is not None:
        notes = _recorded_builds(baseline) if libraries is None else _unrecorded_builds(baseline, libraries)
        benchmarks = replace(benchmarks, notes=(*benchmarks.notes, *notes))
    n_seeds, most = count_wanted_seeds(request.seeds), None
    if isinstance(request, CheckRequest) and request.seeds == "auto":
        recorded_seeds = _usable_seeds(baseline)
        most = min(request.max_seeds or recorded_seeds, recorded_seeds)
    if baseline and baseline.config.seeds and n_seeds is None:
        benchmarks = replace(benchmarks, default_seeds=len(baseline.config.seeds))  # configs may name their own
    prepared = prepare(benchmarks, request.seeds, request, max_seeds=most)
    other = request.suite is not None and benchmarks.name != recorded
    # All that the suite has, installed or not: what is not installed is missing, not left out.
    pairs = frozenset((config.name, library) for config in suite.configs for library in config.libraries)
    return prepared, {
        "only_libraries": None if libraries is None else tuple(libraries),
        "only_pairs": pairs if other else None,
        "seeds": prepared.growth.rule.schedule[0] if prepared.growth else n_seeds,
    }


def _with_recorded(suite: BenchmarkSuite, baseline: Baseline) -> BenchmarkSuite:
    """The suite with the installable libraries that were named for the baseline besides its own."""
    named = {config.name: dict.fromkeys(config.libraries) for config in suite.configs}
    for config, library in (result.key for result in baseline.results):
        if config in named and library in RUNNERS:
            named[config][library] = None
    configs = (config.replace(libraries=tuple(named[config.name])) for config in suite.configs)
    return suite.replace(configs=tuple(configs))


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


def grow_until_decided(prepared: PreparedRun, taken: TakenBaseline, rules: CheckRules) -> PreparedRun:
    """The run, which with `auto` adds seeds until every pair that counts is decided against the baseline."""
    if prepared.growth is None:
        return prepared
    before = taken.snapshot

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


def record_baseline(request: RecordRequest) -> Findings:
    """Run a suite, or take an earlier run, and record its results."""
    path = request.file or request.output or find_default_path()
    if not request.dry_run:
        check_writable(path)
    old = _read_replaced(path)
    results = _read_results(request)
    if results is None:
        prepared, _ = plan_run(request)
        announce(prepared)
        if request.dry_run:
            return describe_plan(prepared)
        results = execute_prepared(prepared)
    elif request.libraries is not None:
        results, _ = _choose(results, request.libraries)
    made = make_baseline(results, allow_flaky=request.allow_flaky, continue_on_error=request.continue_on_error)
    damage = ""
    if isinstance(old, Baseline):
        damage = refuse_damage(old, made, path, results.reference if results.folder else None, force=request.force)
    if not request.dry_run:
        write_baseline(made, path, results)
    power = () if results.folder is None else tuple(_find_powers(made, RunRows(results.folder.predictions)))
    return RecordFindings(made, path, _describe_replaced(old), damage, dry=request.dry_run, power=power)


def _find_powers(baseline: Baseline, store: RowStore) -> Iterator[PairPower]:
    found = (find_power(RecordedSide(result, store)) for result in baseline.results)
    return (power for power in found if power is not None)


def update_baseline(request: UpdateRequest) -> Findings:
    """Merge the pairs of a run into a baseline, where nothing gets worse or somebody says why."""
    path = request.file or find_default_path()
    taken = take_baseline(path, "file")
    results = _read_results(request)
    if results is None:
        prepared, _ = plan_run(request, taken.baseline, recorded_only=True)
        announce(prepared)
        if request.dry_run:
            return describe_plan(prepared)
        results = execute_prepared(prepared)
    made = make_baseline(results, allow_flaky=request.allow_flaky)
    names = {"libraries": _labels(request.libraries) or (), "datasets": request.datasets}
    found = merge_baselines(taken.baseline, made, **names, accept=request.accept.strip())
    if found.refused or request.dry_run:
        return found
    write_baseline(found.baseline, path, results, *([taken.store] if taken.store is not None else []))
    return replace(found, path=path)


def write_baseline(baseline: Baseline, path: Path, results: ResultCollection, *others: RowStore) -> None:
    """The file, and beside it what the recorded fits predicted; `others` have the predictions of earlier ones."""
    stores = [RunRows(results.folder.predictions)] if results.folder is not None else []
    if not path.is_relative_to("/dev"):
        save_sidecar(baseline, path, [*stores, *others])
    save_baseline(baseline, path)


@dataclass(frozen=True)
class RecordFindings(ReportedFindings):
    """A baseline, where it was recorded, and which one it replaces there."""

    baseline: Baseline
    path: Path
    replaced: str = ""
    damage: str = ""  # which pairs it makes worse or drops, by force
    dry: bool = False
    power: tuple[PairPower, ...] = ()  # of the pairs whose rows were kept

    def document(self) -> Document:
        return replace(self.baseline.document(), answer=(self._answer(),))

    def to_model(self) -> Baseline:
        return self.baseline

    def show(self, screen: Screen) -> None:
        """Where it is, and what it lacks or makes worse, even if quiet."""
        if not screen.quiet:
            screen.note(self._answer())
            if self.replaced:
                screen.note(f"Note: it {'would replace' if self.dry else 'replaces'} {self.replaced}.")
            if not self.dry:
                how = "" if self.baseline.config.suite in SUITES else " --run RUN"  # another run of the same comparison
                screen.note(f"To check a later version: boosters-eval baseline check {quote(str(self.path))}{how}")
            for line in describe_power(list(self.power)):
                screen.note(f"Power: {line}.")
        if self.damage:
            screen.note(f"Warning: by {named('force')}, {self.damage}; reasons for that are kept by 'baseline update'.")
        for item in self.baseline.absent:
            screen.note(f"Warning: the baseline lacks {item.library} on {item.config}: {item.reason}")

    def _answer(self) -> str:
        return f"{'Would record' if self.dry else 'Recorded'}: {self.path} ({describe_size(self.baseline)})"


def _read_replaced(path: Path) -> Baseline | str:
    """The baseline that is about to be replaced, or what it is; a file that is something else is not replaced."""
    if not path.is_file() or path.is_relative_to("/dev"):
        return ""
    try:
        return load_baseline(path)
    except OtherVersionError:
        return "one of another version of boosters-eval"
    except ConfigError as error:
        raise ConfigError(f"{path} exists and is no baseline, so it is not replaced: {error}") from None


def _describe_replaced(old: Baseline | str) -> str:
    if isinstance(old, str):
        return old
    held = f"{count_of(len(old.results), 'pair')}, {count_of(len(old.config.seeds), 'seed')}"
    return f"the one of {old.recorded_at:%Y-%m-%d %H:%M} ({held})"


@dataclass(frozen=True)
class PreparedCheck:
    """A check that is ready to run, and what it is judged by."""

    run: PreparedRun
    rules: CheckRules
    taken: TakenBaseline | None = None  # None: only whether every cell works is checked

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Every (config, library) pair that will run, and every one of the baseline."""
        found = [(cell.spec.name, cell.target.name) for cell in self.run.plan.cells]
        recorded = [result.key for result in self.taken.baseline.results] if self.taken else []
        return list(dict.fromkeys([*found, *recorded]))

    def judge(self, results: ResultCollection) -> Check:
        """The verdict on its results: without a baseline, against themselves, which finds only failures."""
        if self.taken is not None:
            return _judge(self.taken, results, self.rules)
        after = Snapshot.of_run(results)
        return check(after, after, self.rules, "")


def prepare_check(request: CheckRequest) -> PreparedCheck:
    """The check of a suite, all of whose libraries run; if a baseline is named, against it."""
    if request.is_read:
        source = "run" if request.run is not None else "results"
        raise ConfigError(f"{the(source)} leaves nothing to prepare: check_baseline() checks it.")
    return _prepare(request, None if request.baseline is None else take_baseline(request.baseline, "baseline"))


def check_baseline(request: CheckRequest) -> Findings:
    """Run the baseline's suite again, or take an earlier run, and compare."""
    given = request.file or request.baseline or find_default_path()
    before = take_baseline(given, "baseline")
    results = _read_results(request)
    if results is not None:
        results, named = _choose(results, request.libraries)
        rules = make_rules(request, only_libraries=named, seeds=count_wanted_seeds(request.seeds))
        return _conclude(_judge(before, results, rules), before, request, results)
    prepared = _prepare(request, before, recorded_only=True)
    announce(prepared.run)
    if request.dry_run:
        return describe_plan(prepared.run)
    results = execute_prepared(prepared.run)
    return _conclude(prepared.judge(results), before, request, results)


def check_suite(request: QuickRequest | FullRequest | CheckSuiteRequest) -> Findings:
    """Run a suite and check its baseline; without one, say so, show the results and that nothing was checked."""
    path = find_default_path(request.suite)
    if request.record:
        names = (*Selection.parameters, "allow_flaky", "continue_on_error")
        given_ = {name: getattr(request, name) for name in names}
        return record_baseline(RecordRequest(**given_, suite=request.suite, file=path))
    known = path if path.exists() else find_shipped(request.suite)
    if known is not None:
        same = {name: value for name, value in vars(request).items() if name != "record"}
        return check_baseline(CheckRequest(**same, suite=request.suite, baseline=known))
    shared = {name: getattr(request, name) for name in (*Selection.parameters, *Tolerant.parameters, "output")}
    asked = SuiteRequest(**shared, suite=request.suite)
    prepared = prepare_suite(asked)
    tell(f"Note: no baseline at {path}, so nothing will be checked (exit 3); {named('record')} makes one of this run.")
    announce(prepared)
    return (
        describe_plan(prepared) if request.dry_run else UncheckedFindings(execute_prepared(prepared), asked, path=path)
    )


@dataclass(frozen=True)
class UncheckedFindings(ComparisonFindings):
    """The results of a suite that has no baseline."""

    request: SuiteRequest
    path: Path = field(kw_only=True)  # where it would be

    @property
    def exit_code(self) -> int:
        """Nothing passes that was not checked."""
        return super().exit_code or ExitCode.CONFIGURATION_ERROR

    def conclude(self, screen: Screen) -> None:
        """That nothing was checked, and what can be done about it."""
        request = self.request
        if request.output is not None and not screen.quiet:
            self.show(screen)  # they are in a file, and are shown all the same
        super().conclude(screen)
        run = f" --run {self.results.reference}" if self.results.run_id else ""
        screen.note(
            f"No baseline at {self.path}: nothing was checked. To make one of this run: 'boosters-eval baseline"
            f" record{run} {quote(str(self.path))}'."
        )


def _prepare(request: CheckRequest, taken: TakenBaseline | None, *, recorded_only: bool = False) -> PreparedCheck:
    """The plan, with the rules that it restricts; mistakes in them are told before the run, not after it."""
    prepared, restriction = plan_run(request, taken.baseline if taken else None, recorded_only=recorded_only)
    rules = make_rules(request, **restriction)
    if taken is None:
        return PreparedCheck(prepared, rules)
    pairs = [(cell.spec.name, cell.target.name) for cell in prepared.plan.cells]
    rules = match_rules(taken.snapshot, pairs, rules)
    return PreparedCheck(grow_until_decided(prepared, taken, rules), rules, taken)


def _judge(taken: TakenBaseline, results: ResultCollection, rules: CheckRules) -> Check:
    sides = taken.snapshot, Snapshot.of_run(results)
    if are_same_outcomes(*sides):
        raise ConfigError(
            f"{taken.name} was recorded from this very run ({results.run_id}): comparing it with itself proves nothing."
            " Run it again."
        )
    return check(*sides, rules, taken.name)


def _conclude(found: Check, taken: TakenBaseline | None, request: CheckRequest, results: ResultCollection) -> Findings:
    if taken is not None:
        found = follow_up(found, taken, results, request.home)
    return CheckFindings(found, request, results)


def _read_results(request: ResultsOf) -> ResultCollection | None:
    """The results that the request names, or None if a run is needed."""
    if request.run is not None:
        return load_run(request.run, request.home, verified=True)  # a baseline decides
    given = request.results
    if given is None or isinstance(given, ResultCollection):
        return given
    if isinstance(given, Path):
        return ResultCollection.load_partial(given)
    raise ConfigError(f"{the('results')} must be a file or a ResultCollection. Got {given!r} instead.")


def _labels(libraries: Any) -> tuple[str, ...] | None:
    """The names that outcomes have: a build may be named by what it was installed from."""
    if libraries is None:
        return None
    given = [libraries] if isinstance(libraries, str) or not isinstance(libraries, Iterable) else libraries
    return tuple(label_of(item) if isinstance(item, str) else getattr(item, "name", str(item)) for item in given)


def _choose(results: ResultCollection, libraries: Any) -> tuple[ResultCollection, tuple[str, ...] | None]:
    """The outcomes of the libraries that are asked for, as if no others had run, and their names."""
    asked = _labels(libraries)
    if asked is None:
        return results, None
    known = [outcome.library for outcome in (*results.results, *results.errors)]
    chosen = tuple(pick("library of the results", name, known) for name in asked)
    every = {name: getattr(results, name) for name in ("results", "errors", "unsupported", "unavailable")}
    kept = {name: [item for item in items if item.library in chosen] for name, items in every.items()}
    only = ResultCollection(
        **kept, run_id=results.run_id, suite=results.suite, metadata=results.metadata, folder=results.folder
    )
    return only, chosen
