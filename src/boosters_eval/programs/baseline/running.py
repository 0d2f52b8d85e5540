"""The programs `baseline record`, `baseline check`, `quick` and `full`: from a request to a baseline or a verdict."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import ConfigError, ExitCode, OtherVersionError, UnknownNameError
from boosters_eval.core.files import check_writable
from boosters_eval.core.findings import Findings
from boosters_eval.core.terms import the
from boosters_eval.core.text import counted
from boosters_eval.programs.baseline.check import check, check_names
from boosters_eval.programs.baseline.model import load_baseline, save_baseline
from boosters_eval.programs.baseline.plan import default_path, plan_run, until_decided, wanted_seeds
from boosters_eval.programs.baseline.request import CheckRequest, Selection
from boosters_eval.programs.baseline.snapshot import Snapshot, are_same_outcomes, make_baseline
from boosters_eval.programs.baseline.sources import given_baseline
from boosters_eval.programs.baseline.verdict import CheckFindings, rules_of
from boosters_eval.programs.benchmark.compare import ComparisonFindings, announce, planned, prepare_suite
from boosters_eval.programs.benchmark.request import SuiteRequest, Tolerant
from boosters_eval.programs.benchmark.results import ResultCollection
from boosters_eval.programs.benchmark.runs import load_run, run_prepared
from boosters_eval.runners.builds.reference import label_of

if TYPE_CHECKING:
    from boosters_eval.core.findings import Screen
    from boosters_eval.programs.baseline.findings import Check, CheckRules
    from boosters_eval.programs.baseline.model import Baseline
    from boosters_eval.programs.baseline.request import FullRequest, QuickRequest, RecordRequest, ResultsOf
    from boosters_eval.programs.benchmark.planning import PreparedRun


def record_baseline(request: RecordRequest) -> Findings:
    """Run a suite, or take an earlier run, and record its results."""
    path = request.file or request.output or default_path()
    if not request.dry_run:
        check_writable(path)
    replaced = _replaced(path)
    results = _read_results(request)
    if results is None:
        prepared, _ = plan_run(request)
        announce(prepared)
        if request.dry_run:
            return planned(prepared)
        results = run_prepared(prepared)
    made = make_baseline(results, allow_flaky=request.allow_flaky, continue_on_error=request.continue_on_error)
    if not request.dry_run:
        save_baseline(made, path)
    return RecordFindings(made, path, replaced, dry=request.dry_run)


@dataclass(frozen=True)
class RecordFindings(Findings):
    """A baseline, where it was recorded, and which one it replaces there."""

    baseline: Baseline
    path: Path
    replaced: str = ""
    dry: bool = False

    def show(self, screen: Screen) -> None:
        """Where it is, and what it lacks, even if quiet."""
        made = self.baseline
        if not screen.quiet:
            pairs, seeds = counted(len(made.results), "pair"), counted(len(made.config.seeds), "seed")
            done = "Would record" if self.dry else "Recorded"
            screen.note(f"{done}: {self.path} ({pairs} of config and library, {seeds})")
            if self.replaced:
                screen.note(f"Note: it {'would replace' if self.dry else 'replaces'} {self.replaced}.")
        for item in made.absent:
            screen.note(f"Warning: the baseline lacks {item.library} on {item.config}: {item.reason}")


def _replaced(path: Path) -> str:
    """The baseline that is about to be replaced, in words; a file that is something else is not replaced."""
    if not path.is_file() or path.is_relative_to("/dev"):
        return ""
    try:
        old = load_baseline(path)
    except OtherVersionError:
        return "one of another version of boosters-eval"
    except ConfigError as error:
        raise ConfigError(f"{path} exists and is no baseline, so it is not replaced: {error}") from None
    held = f"{counted(len(old.results), 'pair')}, {counted(len(old.config.seeds), 'seed')}"
    return f"the one of {old.recorded_at:%Y-%m-%d %H:%M} ({held})"


@dataclass(frozen=True)
class PreparedCheck:
    """A check that is ready to run, and what it is judged by."""

    run: PreparedRun
    rules: CheckRules
    baseline: Baseline | None = None  # None: only whether every cell works is checked
    name: str = ""  # of the baseline

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Every (config, library) pair that will run, and every one of the baseline."""
        found = [(cell.spec.name, cell.target.name) for cell in self.run.plan.cells]
        recorded = [result.key for result in self.baseline.results] if self.baseline else []
        return list(dict.fromkeys([*found, *recorded]))

    def judge(self, results: ResultCollection) -> Check:
        """The verdict on its results: without a baseline, against themselves, which finds only failures."""
        if self.baseline is not None:
            return _judge(self.baseline, results, self.rules, self.name)
        after = Snapshot.of_run(results)
        return check(after, after, self.rules, self.name)


def prepare_check(request: CheckRequest) -> PreparedCheck:
    """The check of a suite, all of whose libraries run; if a baseline is named, against it."""
    if request.is_read:
        source = "run" if request.run is not None else "results"
        raise ConfigError(f"{the(source)} leaves nothing to prepare: check_baseline() checks it.")
    if request.baseline is None:
        return _prepare(request, None, "")
    return _prepare(request, *given_baseline(request.baseline, "baseline"))


def check_baseline(request: CheckRequest) -> Findings:
    """Run the baseline's suite again, or take an earlier run, and compare."""
    given = request.file or request.baseline or default_path()
    if isinstance(given, Path) and not given.exists():
        raise ConfigError(
            f"{given} does not exist; record it with 'boosters-eval baseline record {quote(str(given))}'."
        )
    before, name = given_baseline(given, "baseline")
    results = _read_results(request)
    if results is not None:
        named = _labels(request.libraries)
        results = _only(results, named)
        rules = rules_of(request, only_libraries=named, seeds=wanted_seeds(request.seeds))
        return CheckFindings(_judge(before, results, rules, name), request, results)
    prepared = _prepare(request, before, name, recorded_only=True)
    announce(prepared.run)
    if request.dry_run:
        return planned(prepared.run)
    results = run_prepared(prepared.run)
    return CheckFindings(prepared.judge(results), request, results)


def check_suite(request: QuickRequest | FullRequest) -> Findings:
    """Run a suite and check its baseline; without one, show the results and say that nothing was checked."""
    path = default_path(request.suite)
    if path.exists():
        return check_baseline(CheckRequest(**vars(request), suite=request.suite, baseline=path))
    shared = {name: getattr(request, name) for name in (*Selection.parameters, *Tolerant.parameters, "output")}
    asked = SuiteRequest(**shared, suite=request.suite)
    prepared = prepare_suite(asked)
    announce(prepared)
    return planned(prepared) if request.dry_run else UncheckedFindings(run_prepared(prepared), asked, path=path)


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
        only = "".join(f" --library {quote(name)}" for name in request.libraries or ())
        screen.note(
            f"No baseline at {self.path}: nothing was checked. Record one with 'boosters-eval baseline record --suite"
            f" {request.suite}{only} {quote(str(self.path))}'."
        )


def _prepare(
    request: CheckRequest, baseline: Baseline | None, name: str, *, recorded_only: bool = False
) -> PreparedCheck:
    """The plan, with the rules that it restricts; mistakes in them are told before the run, not after it."""
    prepared, restriction = plan_run(request, baseline, recorded_only=recorded_only)
    rules = rules_of(request, **asdict(restriction))
    if baseline is None:
        return PreparedCheck(prepared, rules)
    pairs = [(cell.spec.name, cell.target.name) for cell in prepared.plan.cells]
    check_names(Snapshot.of_baseline(baseline), pairs, rules)
    return PreparedCheck(until_decided(prepared, baseline, rules), rules, baseline, name)


def _judge(before: Baseline, results: ResultCollection, rules: CheckRules, name: str) -> Check:
    sides = Snapshot.of_baseline(before), Snapshot.of_run(results)
    if are_same_outcomes(*sides):
        raise ConfigError(
            f"{name} was recorded from this very run ({results.run_id}): comparing it with itself proves nothing."
            " Run it again."
        )
    return check(*sides, rules, name)


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


def _only(results: ResultCollection, libraries: tuple[str, ...] | None) -> ResultCollection:
    """The outcomes of these libraries, as if no others had run."""
    if libraries is None:
        return results
    known = {outcome.library for outcome in [*results.results, *results.errors]}
    for name in libraries:
        if name not in known:
            raise UnknownNameError("library of the results", name, known)
    return ResultCollection(
        (result for result in results.results if result.library in libraries),
        (error for error in results.errors if error.library in libraries),
        unsupported=(item for item in results.unsupported if item.library in libraries),
        unavailable=(item for item in results.unavailable if item.library in libraries),
        run_id=results.run_id,
        suite=results.suite,
        metadata=results.metadata,
    )
