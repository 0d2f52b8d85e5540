"""A bisection by real runs: a step is a benchmark of a candidate and of the two versions that it lies between."""

from __future__ import annotations

import contextlib
import re
import warnings
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from packaging.version import InvalidVersion, Version

from boosters_eval.core import disturbance
from boosters_eval.core.errors import (
    BoostersEvalError,
    BoostersEvalWarning,
    BuildError,
    ConfigError,
    InterruptedRunError,
    RunError,
)
from boosters_eval.core.findings import Findings
from boosters_eval.core.saying import is_heard, tell
from boosters_eval.core.terms import the
from boosters_eval.core.text import counted
from boosters_eval.engine.session import KnownOutcomes, check_names, continuing, is_elsewhere, opened
from boosters_eval.metrics import for_task, higher_is_better, primary_metric, task_metrics
from boosters_eval.metrics.catalog import RESOURCES
from boosters_eval.programs.benchmark.benchmarks import comparison
from boosters_eval.programs.benchmark.compare import data_of, training_of
from boosters_eval.programs.benchmark.observations import observe
from boosters_eval.programs.benchmark.planning import fit_specs, prepare_seeds
from boosters_eval.programs.benchmark.running import collect, run_once
from boosters_eval.programs.benchmark.splitting import check_growth
from boosters_eval.programs.benchmark.usermetrics import from_spec, metric_names
from boosters_eval.programs.bisect import wording
from boosters_eval.programs.bisect.model import Bisection, BisectionStep, Candidate, NumberShift
from boosters_eval.runners import RUNNERS
from boosters_eval.runners.builds.commits import build_commit, commits_between
from boosters_eval.runners.builds.install import released_versions
from boosters_eval.runners.builds.reference import parse_reference, wheel_parts
from boosters_eval.runners.builds.resolve import resolve_build
from boosters_eval.runners.installed import installed_build
from boosters_eval.runners.resolve import library_name
from boosters_eval.stats.sequential import SearchRule, Shift, Yardstick, find_shift, place

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from boosters_eval.core.disturbance import Disturbance
    from boosters_eval.core.findings import Screen
    from boosters_eval.core.machine import MachineInfo
    from boosters_eval.engine.folder import Run
    from boosters_eval.engine.outcome import Failure, Outcome
    from boosters_eval.engine.session import Session
    from boosters_eval.programs.benchmark.benchmarks import Benchmarks
    from boosters_eval.programs.benchmark.planning import PreparedRun
    from boosters_eval.programs.bisect.model import StepAnswer
    from boosters_eval.programs.bisect.request import BisectRequest
    from boosters_eval.runners.base import Runner
    from boosters_eval.stats.observations import Side
    from boosters_eval.stats.sequential import Likeness

    CandidateAnswer = Literal["earlier", "later", "undecided", "unusable"]
    from collections.abc import Iterable


def candidates_of(request: BisectRequest) -> list[Candidate]:
    """The candidates of the one source that was given."""
    library = RUNNERS[library_name(request.library)].name  # a file is registered, and known by its name from then on

    def install(reference: str) -> type[Runner]:
        return resolve_build(reference, home=request.home, isolated=request.isolated)

    if request.versions:
        return _releases(library, request.versions, install)
    return _of_wheels(library, request.wheels, install) if request.wheels else _of_commits(library, request, install)


def _releases(library: str, versions: str | Sequence[str], install: Callable[[str], type[Runner]]) -> list[Candidate]:
    """The released versions from A to B, both included, or exactly those that are listed."""
    if isinstance(versions, str):
        low, high = _ends(versions)
        known = released_versions(library)
        chosen = [version for version in known if low <= Version(version) <= high]
        if len(chosen) < 2:
            there = f"pip finds {known[0]} to {known[-1]}" if known else "pip finds none"
            raise ConfigError(
                f"{the('versions')} must include at least two released versions of {library}. Got '{versions}' instead;"
                f" {there}."
            )
    else:
        chosen = [str(version) for version in versions]
        for version in chosen:
            parse_reference(f"{library}=={version}")  # refuses what is no exact version
    return [Candidate(version, partial(install, f"{library}=={version}")) for version in _once(chosen)]


def _of_wheels(library: str, wheels: Sequence[Path], install: Callable[[str], type[Runner]]) -> list[Candidate]:
    """The wheels in the order that they are given in; each is called by its version or its file."""
    paths = [wheel.expanduser().absolute() for wheel in wheels]
    for path in paths:
        parse_reference(f"{library}@{path}")  # refuses what is no wheel of this library
    versions = [wheel_parts(path)[1] for path in paths]
    if len(set(versions)) == len(versions):
        return [
            Candidate(version, partial(install, f"{library}@{path}"))
            for version, path in zip(versions, paths, strict=True)
        ]
    return [
        Candidate(name, partial(install, f"{_label(library, name)}={library}@{path}"))
        for name, path in zip(_file_names(paths), paths, strict=True)
    ]


def _of_commits(library: str, request: BisectRequest, install: Callable[[str], type[Runner]]) -> list[Candidate]:
    """The commits from GOOD to BAD, each built when it is needed."""
    folder = Path(request.folder or "").expanduser().absolute()

    def resolve(sha: str, short: str) -> type[Runner]:
        wheel = build_commit(folder, sha, request.build_command, home=request.home)
        return install(f"{_label(library, short)}={library}@{wheel}")

    return [
        Candidate(commit.short, partial(resolve, commit.sha, commit.short), commit.subject)
        for commit in commits_between(folder, request.commits or "")
    ]


def _label(library: str, name: str) -> str:
    """A name that a build may have."""
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", f"{library}-{name}")[:64]


def _file_names(paths: list[Path]) -> list[str]:
    """What tells files apart: their folders, where their names are the same."""
    if len({path.name for path in paths}) == len(paths):
        return [path.name.removesuffix(".whl") for path in paths]
    return [f"{number}-{wheel_parts(path)[1]}" for number, path in enumerate(paths, 1)]


def _once(names: Iterable[str]) -> list[str]:
    found = list(names)
    doubled = next((name for name in found if found.count(name) > 1), None)
    if doubled is not None:
        raise ConfigError(f"The versions of a bisection must differ. Got '{doubled}' twice.")
    return found


def _ends(text: str) -> tuple[Version, Version]:
    first, _, last = text.partition("..")
    try:
        low, high = Version(first), Version(last)
    except InvalidVersion:
        raise ConfigError(f"{the('versions')} must be A..B, such as 4.3..4.7. Got '{text}' instead.") from None
    if low >= high:
        raise ConfigError(f"{the('versions')} must be A..B with A before B. Got '{text}' instead.")
    return low, high


@dataclass(frozen=True, slots=True)
class Located:
    """The number changed after position `low`, and not later than at position `high`."""

    low: int
    high: int
    unusable: tuple[int, ...] = ()  # of all positions that were tried
    undecided: tuple[int, ...] = ()

    @property
    def between(self) -> range:
        """The positions of which nothing is known."""
        return range(self.low + 1, self.high)


def locate(count: int, judge: Callable[[int, int, int], CandidateAnswer], tries: int) -> Located:
    """Halve the positions 0 to count - 1, whose ends are known to differ.

    `judge(low, candidate, high)` says which of the two the candidate is like. One that is unusable or undecided is
    passed over; `tries` limits how many are judged, not how many turn out to be unusable.
    """
    low, high = 0, count - 1
    unusable: list[int] = []
    undecided: list[int] = []
    while tries > 0 and (candidate := choose(low, high, {*unusable, *undecided})) is not None:
        answer = judge(low, candidate, high)
        tries -= answer != "unusable"
        if answer == "earlier":
            low = candidate
        elif answer == "later":
            high = candidate
        else:
            (unusable if answer == "unusable" else undecided).append(candidate)
    return Located(low, high, tuple(sorted(unusable)), tuple(sorted(undecided)))


def choose(low: int, high: int, passed: Collection[int]) -> int | None:
    """The candidate nearest to the middle; the more are passed over, the farther from it: broken ones are adjacent."""
    inside = range(low + 1, high)
    open_ = [position for position in inside if position not in passed]
    if not open_:
        return None
    middle = (low + high) / 2
    reach = 2 ** sum(position in passed for position in inside) / 2 - 0.5
    far = [position for position in open_ if abs(position - middle) >= reach]
    return min(far or open_, key=lambda position: abs(position - middle))


Found = TypeVar("Found")
DEFAULT_TOLERANCE = 0.01
DEFAULT_TIME_TOLERANCE = 0.05  # times vary with the layout of memory, which is not what anybody looks for
MEMORY = "peak_memory_mb"
TIMES = tuple(name for name in RESOURCES if name.endswith("_time_s"))
_ALIASES = {"memory": MEMORY}
_NUMBERS = (*TIMES, MEMORY, "model_size_mb")  # besides the metrics; what the first use takes is measured only once
_ANY_LIBRARY = "sklearn"  # is always installed; the versions take its place


def bisect(request: BisectRequest) -> Findings:
    """Find the version of a library with which a number changed."""
    bisector = prepare_bisection(request)
    if request.dry_run:
        return PlannedBisection(bisector)
    tell(bisector.sentence)
    found = bisector.run()
    if request.output is not None:
        tell(found.answer)
    return found


def prepare_bisection(request: BisectRequest) -> Bisector:
    """A search that is ready to run: the versions, the data and the metric are known, but nothing is installed."""
    check_names(request)
    name = RUNNERS[library_name(request.library)].name
    return make_bisector(request.replace(library=name), candidates_of(request))


@dataclass(frozen=True)
class PlannedBisection(Findings):
    """A search of which nothing was run."""

    bisector: Bisector

    def show(self, screen: Screen) -> None:
        """The versions, and how many steps they take at most."""
        screen.say(self.bisector.sentence)
        for candidate in self.bisector.candidates:
            screen.say(f"  {candidate.name} {candidate.detail}".rstrip())


class _UnusableError(BoostersEvalError):
    """A version that cannot be built, installed, imported or trained."""


@dataclass(frozen=True)
class _Look:
    """What the runs of a step have shown so far."""

    sides: list[Side]
    seeds: int
    runs: tuple[str, ...]
    left_out: int = 0  # times taken while other programs used the CPUs


@dataclass
class Bisector:
    """Judges versions by runs, and keeps what they showed."""

    request: BisectRequest
    candidates: Sequence[Candidate]
    benchmarks: Benchmarks
    yardstick: Yardstick
    disturbances: tuple[Disturbance, ...] = ()
    steps: list[BisectionStep] = field(default_factory=list)
    unusable: dict[str, str] = field(default_factory=dict)
    _runners: dict[int, type[Runner]] = field(default_factory=dict)
    _known: dict[str, Outcome | Failure] = field(default_factory=dict)
    _machines: dict[str, MachineInfo] = field(default_factory=dict)  # that these name
    _margin: float = 0.0
    _rising: bool = True
    _evidence: dict[tuple[int, int], Shift] = field(default_factory=dict)  # of the two versions around the change

    @property
    def rule(self) -> SearchRule:
        """How the error rate is shared."""
        return SearchRule(len(self.candidates), self.request.alpha, self.request.max_seeds)

    @property
    def sentence(self) -> str:
        """What it is going to do."""
        names = [candidate.name for candidate in self.candidates]
        looks = ", ".join(map(str, self.rule.seeds.schedule))
        return (
            f"{counted(len(names), 'version')} of {self.request.library} from {names[0]} to {names[-1]}: at most"
            f" {counted(1 + self.rule.tries, 'step')}, each decided with {looks} seeds."
        )

    def run(self) -> Bisection:
        """Compare the ends; if they differ, search between them."""
        self._look_at_machine()
        last = len(self.candidates) - 1
        try:
            whole, seeds = self._ends(0, last)
            found = Located(0, last)
            if whole.outcome == "changed":
                found = locate(len(self.candidates), self._judge, self.rule.tries)
        except KeyboardInterrupt:
            raise InterruptedRunError from None  # between two runs too: what is installed and has run is kept
        return self._answer(whole, seeds, found)

    def _look_at_machine(self) -> None:
        """Refuse to take times that nobody could judge, before a version is installed."""
        here = self.request.timing_mode and not is_elsewhere(self.request)
        self.disturbances = disturbance.disturbances() if here else ()
        for item in self.disturbances:
            if self.yardstick.metric in TIMES and not item.judged:
                raise RunError(f"Times cannot be judged on this machine now: {item.text}; {item.remedy}.")
            warnings.warn(item.warning, BoostersEvalWarning, stacklevel=4)

    def _ends(self, first: int, last: int) -> tuple[Shift, int]:
        for position in (first, last):
            try:
                self._runner(position)
            except BuildError as error:
                which = f"{self._name(position)}, an end of the search, cannot be used"
                raise BuildError(f"{which}: {error.sentence}", error.said) from error
        if self._same_code(first, last):
            same = Shift("unchanged", None, (0.0, 0.0))
            self._evidence[first, last] = same
            self._keep(first, last, last, "unchanged", f"the same code as {self._name(first)}")
            return same, 0
        level, equal, tolerance = self.rule.seeds.level, self.rule.equal_alpha, self.yardstick.tolerance
        shift, look = self._look_until(
            lambda sides: find_shift(sides[0], sides[1], self.yardstick, alpha=level, equal_alpha=equal),
            lambda found: found.outcome != "undecided",
            (first, last),
        )
        if shift.comparison is None or shift.comparison.mean_b is None:
            why = f" {wording.left_out_sentence(look.left_out)}" if look.left_out else ""
            why += f" {shift.comparison.note}" if shift.comparison is not None and shift.comparison.note else ""
            names = f"{self._name(first)} and {self._name(last)}"
            raise RunError(f"The runs of {names} have no '{self.yardstick.metric}' to compare.{why}")
        self._margin = self.yardstick.margin(shift.comparison.mean_b)
        self._rising = shift.size > 0
        self._evidence[first, last] = shift
        self._keep(first, last, last, shift.outcome, wording.end_reason(shift, tolerance), look)
        return shift, look.seeds

    def _judge(self, low: int, candidate: int, high: int) -> CandidateAnswer:
        names = self._name(candidate), self._name(low), self._name(high)
        try:
            self._runner(candidate)
            likeness: Likeness | None = (
                "earlier" if self._same_code(candidate, low) else "later" if self._same_code(candidate, high) else None
            )
            if likeness is not None:
                same = names[1] if likeness == "earlier" else names[2]
                self._keep(low, candidate, high, likeness, f"the same code as {same}")
                return self._inherit(low, candidate, high, likeness)
            found, look = self._look_until(
                lambda sides: place(
                    sides[0],
                    sides[1],
                    sides[2],
                    self.yardstick,
                    rising=self._rising,
                    level=self.rule.seeds.level,
                    margin=self._margin,
                ),
                lambda placed: placed.settled,
                (low, candidate, high),
            )
        except RunError:  # of a version that worked before, so the search cannot go on
            raise
        except BoostersEvalError as error:
            self.unusable[names[0]] = " ".join(str(error).split())
            self._keep(low, candidate, high, "unusable", f"skipped: {error.lines[0]}")
            return "unusable"
        self._keep(low, candidate, high, found.likeness, wording.place_reason(found, *names), look)
        if found.identical:
            return self._inherit(low, candidate, high, found.likeness)
        if found.likeness == "earlier":
            self._evidence[candidate, high] = found.after
        elif found.likeness == "later":
            self._evidence[low, candidate] = found.before
        return found.likeness

    def _inherit(self, low: int, candidate: int, high: int, likeness: Likeness) -> Likeness:
        """What is known of one version holds for another that is identical."""
        where = (candidate, high) if likeness == "earlier" else (low, candidate)
        self._evidence[where] = self._evidence[low, high]
        return likeness

    def _same_code(self, a: int, b: int) -> bool:
        return installed_build(self._runner(a)).digest == installed_build(self._runner(b)).digest

    def _look_until(
        self, judge: Callable[[list[Side]], Found], settled: Callable[[Found], bool], positions: tuple[int, ...]
    ) -> tuple[Found, _Look]:
        """Add seeds until the step is decided, or no more are allowed."""
        runners = {runner.name: runner for runner in map(self._runner, positions)}
        labels = list(runners)
        is_time = self.yardstick.metric in TIMES
        known = {} if is_time else self._known  # a time belongs to its minute
        runs: tuple[str, ...] = ()
        schedule = self.rule.seeds.schedule
        with contextlib.ExitStack() as stack:
            session: Session | None = None
            for seeds in schedule:
                prepared = self._prepared(runners, seeds)
                if session is None:
                    settings = continuing(self.request, prepared.plan) if self.steps else self.request
                    session = stack.enter_context(opened(settings, prepared.plan))
                run = self._run(session, prepared, known, runs[-1] if runs else "")
                if run.failures:
                    break
                results = collect(run)
                fair = [result for result in results.results if result.fairly_timed or not is_time]
                by_label = [[result for result in fair if result.library == label] for label in labels]
                sides = [observe(found, self.yardstick.metric) for found in by_label]
                runs = (*runs, results.run_id or "")
                left_out = len(results.results) - len(fair)
                found = judge(sides)
                if settled(found) or seeds == schedule[-1]:
                    return found, _Look(sides, seeds, runs, left_out)
        raise _failed(run.failures[0], labels)

    def _prepared(self, runners: Mapping[str, type[Runner]], seeds: int) -> PreparedRun:
        configs = tuple(config.replace(libraries=tuple(runners)) for config in self.benchmarks.configs)
        prepared = prepare_seeds(replace(self.benchmarks, configs=configs, runners=runners), seeds, self.request)
        check_growth(fit_specs(prepared.plan).values(), dict(prepared.inputs.stored))
        for item in prepared.plan.excluded:
            raise _UnusableError(f"{item.target} cannot do this: {item.reason}")
        return prepared

    def _run(self, session: Session, prepared: PreparedRun, known: dict[str, Outcome | Failure], extends: str) -> Run:
        rule = self.rule.seeds
        run = run_once(
            session,
            prepared,
            self.disturbances,
            known=KnownOutcomes(dict(known), dict(self._machines)),
            alpha=rule.level,
            rule=f"seeds were added by a bisection, each look at alpha = {rule.level:.2g}",
            extends=extends,
        )
        known.update(run.outcomes)
        self._machines.update(run.machines)
        return run

    def _runner(self, position: int) -> type[Runner]:
        """The competitor; the version is installed on first use."""
        if position not in self._runners:
            self._runners[position] = self.candidates[position].resolve()
        return self._runners[position]

    def _name(self, position: int) -> str:
        return self.candidates[position].name

    def _keep(
        self, low: int, candidate: int, high: int, answer: StepAnswer, reason: str, look: _Look | None = None
    ) -> None:
        if look is not None and look.left_out:
            reason = f"{reason}. {wording.left_out_sentence(look.left_out)}"
        positions = dict.fromkeys((low, candidate, high))
        sides = [] if look is None else look.sides
        values = {
            self._name(position): sum(one.value for one in side.values()) / len(side)
            for position, side in zip(positions, sides, strict=False)
            if side
        }
        self._end(
            BisectionStep(
                earlier=self._name(low),
                candidate=self._name(candidate),
                later=self._name(high),
                answer=answer,
                reason=reason,
                seeds=0 if look is None else look.seeds,
                values=values,
                runs=() if look is None else look.runs,
            )
        )

    def _end(self, step: BisectionStep) -> None:
        """Keep a step, and tell of it."""
        self.steps.append(step)
        if is_heard():
            for line in wording.step_lines(len(self.steps), step):
                tell(line)
        if self.request.on_step is not None:
            self.request.on_step(step)

    def _answer(self, whole: Shift, seeds: int, found: Located) -> Bisection:
        names = [candidate.name for candidate in self.candidates]
        ends, here = (names[0], names[-1]), (names[found.low], names[found.high])
        subject = f"{self.yardstick.metric} of {self.request.library} on {self.benchmarks.configs[0].dataset.name}"
        shift = self._evidence[found.low, found.high]
        number = _number(shift)
        share = shift.size / whole.size if whole.size else None
        undecided = [names[position] for position in found.between if position in found.undecided]
        unusable = [names[position] for position in found.between if position in found.unusable]
        unknown = [name for name in (names[p] for p in found.between) if name not in (*undecided, *unusable)]
        tolerance = self.yardstick.tolerance
        if whole.outcome == "unchanged":
            state, sentence = "unchanged", wording.unchanged_sentence(subject, shift, tolerance, ends, seeds)
        elif whole.outcome == "undecided":
            state, sentence = "undecided", wording.undecided_sentence(subject, shift, tolerance, ends, seeds)
        else:
            state = "undecided" if undecided or unknown else "found"
            sentence = wording.found_sentence(
                subject,
                number,
                earlier=here[0],
                later=here[1],
                unusable=unusable,
                undecided=undecided,
                unknown=unknown,
                detail=self.candidates[found.high].detail,
            ) + wording.share_sentence(share, ends=ends, found=here)
        return Bisection(
            answer=sentence,
            state=state,
            library=self.request.library,
            dataset=self.benchmarks.configs[0].dataset.name,
            metric=self.yardstick.metric,
            tolerance=tolerance,
            alpha=self.request.alpha,
            max_seeds=self.request.max_seeds,
            versions=tuple(names),
            earlier=here[0],
            later=here[1],
            shift=number,
            share=share if state != "unchanged" else None,
            unusable=self.unusable,
            undecided=tuple(undecided),
            details={candidate.name: candidate.detail for candidate in self.candidates if candidate.detail},
            steps=tuple(self.steps),
        )


def _failed(failure: Failure, labels: list[str]) -> BoostersEvalError:
    """A candidate that fails is passed over; one that worked before ends the search."""
    text = " ".join(f"{failure.error_type}: {failure.error_message}".split()).rstrip(".")
    sentence = f"{failure.target} failed in phase '{failure.phase}' with {text}."
    return (RunError if failure.target in (labels[0], labels[-1]) else _UnusableError)(sentence)


def _number(shift: Shift) -> NumberShift | None:
    found = shift.comparison
    if found is None or found.mean_a is None or found.mean_b is None:
        return None
    low, high = found.percent_interval or (None, None)
    return NumberShift(
        before=found.mean_b, after=found.mean_a, percent=found.percent, percent_low=low, percent_high=high
    )


def make_bisector(request: BisectRequest, candidates: Sequence[Candidate]) -> Bisector:
    """Everything that can be refused is refused here, before a version is installed."""
    if len(candidates) < 2:
        raise ConfigError(f"A bisection needs at least two versions. Got {len(candidates)}.")
    named = _metric_name(request.metric)
    extra = [] if named is None or named in _NUMBERS else [named]
    benchmarks = comparison(
        request.dataset,
        _ANY_LIBRARY,
        request.booster,
        training=training_of(request),
        metrics=extra,
        task=request.task,
        data=data_of(request),
        target=request.target,
        split=request.split,
        profile=request.profile,
        home=request.home,
    )
    if len(benchmarks.configs) != 1:
        raise ConfigError(f"A bisection is on one data set and one booster. Got {len(benchmarks.configs)} of them.")
    config = benchmarks.configs[0]
    if config.is_by_time:
        raise ConfigError("A bisection cannot use a split by time: its windows are fixed, so no seeds can be added.")
    metric = named or config.dataset.primary_metric or primary_metric(config.task)
    if metric in _NUMBERS:
        better = False
    else:
        user = from_spec(metric)
        metric = user.name if user is not None else for_task(metric, config.task).spec
        usual = [item.spec for item in task_metrics(config.task)]
        if metric in usual:
            benchmarks = replace(benchmarks, configs=(config.replace(metrics=()),))
        better = user.higher_is_better if user is not None else higher_is_better(metric)
    measured = request.replace(
        timing_mode=metric in TIMES or metric == MEMORY or request.timing_mode,
        measure_memory=request.measure_memory or metric == MEMORY,
    )
    usual_tolerance = DEFAULT_TIME_TOLERANCE if metric in TIMES else DEFAULT_TOLERANCE
    tolerance = usual_tolerance if request.tolerance is None else request.tolerance
    yardstick = Yardstick(metric, better, metric in _NUMBERS, tolerance)
    return Bisector(measured, candidates, replace(benchmarks, name="bisect"), yardstick)


def _metric_name(given: Any) -> str | None:
    if given is None:
        return None
    return _ALIASES.get(given, given) if isinstance(given, str) else metric_names([given])[0]
