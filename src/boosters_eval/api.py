"""The Python API: compare libraries, run suites, and load earlier runs. The CLI calls the same functions."""

from __future__ import annotations

import inspect
import sys
import warnings
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from boosters_eval.core.errors import BoostersEvalWarning, ConfigError, RunError, require, suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from typing import Unpack

    from boosters_eval.benchmark.config import BenchmarkSuite
    from boosters_eval.benchmark.planning import PreparedRun
    from boosters_eval.benchmark.requests import Libraries
    from boosters_eval.benchmark.results import ResultCollection
    from boosters_eval.benchmark.settings import RunOptions, Settings
    from boosters_eval.bisection.model import Bisection
    from boosters_eval.bisection.request import BisectionOptions
    from boosters_eval.bisection.running import Bisector
    from boosters_eval.datasets.config import DatasetConfig, DataSettings
    from boosters_eval.engine.executor import Executor
    from boosters_eval.engine.observer import Observer
    from boosters_eval.engine.plan import Plan
    from boosters_eval.explanations.results import Explanations
    from boosters_eval.metrics import Metric
    from boosters_eval.metrics.task import Task
    from boosters_eval.runners.parameters import BoosterType, Profile, TrainingConfig
    from boosters_eval.tracking import Tracker

    BoosterName = BoosterType | Literal["gbdt", "gblinear", "linear_trees"]
    ProfileName = Profile | Literal["parity", "defaults"]
    TaskName = Task | Literal["regression", "binary", "multiclass", "quantile", "ranking"]
    Seeds = int | Literal["auto"]
    # A name, 'path:column', a pandas or polars data frame, arrays (X, y), or a dict that names frames and arrays.
    Data = str | DatasetConfig | Any
    Trackers = str | type[Tracker] | Sequence[str | type[Tracker]] | None
    MetricLike = str | Metric | Callable[..., Any]  # a function says which way is better: its `higher_is_better`


def compare(
    datasets: Data | Sequence[Data] = ("california",),
    libraries: Libraries = None,
    booster: BoosterName | Sequence[BoosterName] = "gbdt",
    seeds: Seeds | None = None,
    *,
    training: TrainingConfig | None = None,
    variants: Mapping[str, TrainingConfig] | None = None,
    metrics: MetricLike | Sequence[MetricLike] = (),
    cv: str | int | None = None,
    task: TaskName | None = None,
    data: DataSettings | Mapping[str, Any] | None = None,
    target: str | None = None,
    split: str | None = None,
    profile: ProfileName = "parity",
    max_seeds: int | None = None,
    budget: str | float | None = None,
    verbose: bool = False,
    observer: Observer | str | Sequence[Observer | str] | None = None,
    executor: Executor | str | None = None,
    track: Trackers = None,
    **settings: Unpack[RunOptions],
) -> ResultCollection:
    """Compare libraries on data sets. `data` says how the columns of files are read and used.

    `split` is random, time:COLUMN (validate on later rows than learned from, in windows; `cv` is their number) or
    group:COLUMN (no group on both sides).
    With seeds="auto", seeds are added until every pair has a verdict, or `max_seeds` or the budget is used up. The
    libraries stay loaded for the next call, for some minutes. An executor given by name is created for this run and
    closed after it; one that you created yourself stays open. `track` names trackers that the run is sent to, such as
    "mlflow"; one that fails or hangs is a BoostersEvalWarning.
    A run in which every cell failed is a RunError; if some failed, a BoostersEvalWarning counts them.
    """
    with _heard(verbose=verbose):
        prepared = prepare_comparison(
            datasets,
            libraries,
            booster,
            seeds,
            training=training,
            variants=variants,
            metrics=metrics,
            cv=cv,
            task=task,
            data=data,
            target=target,
            split=split,
            profile=profile,
            max_seeds=max_seeds,
            budget=budget,
            **_placed(settings, executor),
        )
    _warn_of_data(prepared)
    return _checked(run_prepared(prepared, observer=observer, verbose=verbose, executor=executor, track=track))


def run_suite(
    suite: str | BenchmarkSuite,
    seeds: int | None = None,
    libraries: Libraries = None,
    *,
    metrics: MetricLike | Sequence[MetricLike] = (),
    cv: str | int | None = None,
    profile: ProfileName | None = None,
    verbose: bool = False,
    observer: Observer | str | Sequence[Observer | str] | None = None,
    executor: Executor | str | None = None,
    track: Trackers = None,
    **settings: Unpack[RunOptions],
) -> ResultCollection:
    """Run a suite by name, by `path.py:NAME`, or as an object; `seeds` and `cv` come before what it says itself."""
    with _heard(verbose=verbose):
        prepared = prepare_suite(
            suite, seeds, libraries, metrics=metrics, cv=cv, profile=profile, **_placed(settings, executor)
        )
    _warn_of_data(prepared)
    return _checked(run_prepared(prepared, observer=observer, verbose=verbose, executor=executor, track=track))


def _placed(settings: RunOptions, executor: Executor | str | None) -> RunOptions:
    """The settings of a run on this machine, or of one on others."""
    from boosters_eval.engine.executor import EXECUTORS  # noqa: PLC0415 (keeps start-up fast)

    check_names(executor)
    known = EXECUTORS[executor] if isinstance(executor, str) else executor
    return settings if known is None or known.local else {**settings, "elsewhere": True}


def bisect(library: str, **options: Unpack[BisectionOptions]) -> Bisection:
    """The version of a library with which a number changed, by as few runs as the noise allows.

    The versions are the releases `versions="4.3..4.7"` (or a list of them), `wheels` in order, or the `commits`
    "GOOD..BAD" of a `folder`, each built by pip or by `build_command`. The number is the `metric` (a time or `memory`
    too) on the `dataset`, and `tolerance` is the smallest relative change that counts. Each step adds seeds, up to
    `max_seeds`, until it is decided; a wrong version is named with a chance of at most `alpha`. `on_step` is called
    after each step. A version that cannot be installed or trained is passed over. All other options are those of
    `compare`.
    """
    return prepare_bisection(library, **options).run()


def importances(
    datasets: Data | Sequence[Data] = ("california",),
    libraries: Libraries = None,
    booster: BoosterName | Sequence[BoosterName] = "gbdt",
    seeds: int | None = None,
    *,
    kinds: str | Sequence[str] = ("permutation", "gain", "split", "shap"),
    permutations: int = 5,
    max_rows: int = 10_000,
    groups: Mapping[str, Sequence[str | int]] | None = None,
    training: TrainingConfig | None = None,
    cv: str | int | None = None,
    task: TaskName | None = None,
    data: DataSettings | Mapping[str, Any] | None = None,
    target: str | None = None,
    split: str | None = None,
    profile: ProfileName = "parity",
    verbose: bool = False,
    observer: Observer | str | Sequence[Observer | str] | None = None,
    executor: Executor | str | None = None,
    **settings: Unpack[RunOptions],
) -> Explanations:
    """What the model of each library relies on, and each library with itself over seeds.

    Every cell trains the model that `compare` scores, once, and measures all `kinds` on at most `max_rows` of its
    validation rows. Each column is shuffled `permutations` times; those of one of the `groups` are shuffled and ranked
    together. All other parameters are those of `compare`. A run in which every cell failed is a RunError; if some
    failed, a BoostersEvalWarning counts them.
    """
    with _heard(verbose=verbose):
        prepared = prepare_importances(
            datasets,
            libraries,
            booster,
            seeds,
            kinds=kinds,
            permutations=permutations,
            max_rows=max_rows,
            groups=groups,
            training=training,
            cv=cv,
            task=task,
            data=data,
            target=target,
            split=split,
            profile=profile,
            **settings,
        )
    _warn_of_data(prepared)
    found = run_importances(prepared, observer=observer, verbose=verbose, executor=executor)
    _checked(found.collection)
    return found


def prepare_importances(
    datasets: Data | Sequence[Data] = ("california",),
    libraries: Libraries = None,
    booster: BoosterName | str | Sequence[BoosterName | str] = "gbdt",
    seeds: int | str | None = None,
    *,
    kinds: str | Sequence[str] = ("permutation", "gain", "split", "shap"),
    permutations: int = 5,
    max_rows: int = 10_000,
    groups: Mapping[str, Sequence[str | int]] | None = None,
    training: TrainingConfig | None = None,
    cv: str | int | None = None,
    task: TaskName | str | None = None,
    data: DataSettings | Mapping[str, Any] | None = None,
    target: str | None = None,
    split: str | None = None,
    profile: ProfileName | str = "parity",
    **settings: Unpack[RunOptions],
) -> PreparedRun:
    """The plan of `importances`, ready to execute with `run_importances`."""
    from boosters_eval.explanations.planning import explained  # noqa: PLC0415 (keeps start-up fast)

    _settings(importances, settings)  # a mistake is told with the name of this function
    prepared = prepare_comparison(
        datasets,
        libraries,
        booster,
        seeds,
        training=training,
        cv=cv,
        task=task,
        data=data,
        target=target,
        split=split,
        profile=profile,
        **settings,
    )
    return explained(prepared, kinds=kinds, permutations=permutations, max_rows=max_rows, groups=groups)


def run_importances(
    prepared: PreparedRun,
    *,
    observer: Observer | str | Sequence[Observer | str] | None = None,
    verbose: bool = False,
    executor: Executor | str | None = None,
) -> Explanations:
    """Execute what `prepare_importances` gives. Finished cells are kept, whatever happens; failed ones are `errors`."""
    from boosters_eval.benchmark.planning import PreparedRun  # noqa: PLC0415 (keeps start-up fast)
    from boosters_eval.explanations.running import run_explained  # noqa: PLC0415
    from boosters_eval.history.hook import recording  # noqa: PLC0415

    require("prepared", prepared, PreparedRun, "what prepare_importances() gives")
    check_names(executor, observer)
    watching = _observer(observer, verbose=verbose, prepared=prepared)
    with recording(prepared.settings.home):
        return run_explained(prepared, watching, executor=executor)


def load_importances(reference: str = "last", home: str | Path | None = None) -> Explanations:
    """The explanations of a run by its id, the beginning of its id, its name, or `last`; a changed one is refused."""
    from boosters_eval.explanations.running import load_explanations  # noqa: PLC0415 (keeps start-up fast)

    return load_explanations(_reference(reference), _path(home))


def prepare_bisection(library: str, **options: Unpack[BisectionOptions]) -> Bisector:
    """A bisection that is ready to run: the versions, the data and the metric are known, but nothing is installed."""
    from boosters_eval.bisection.request import read_request  # noqa: PLC0415 (keeps start-up fast)
    from boosters_eval.bisection.running import make_bisector  # noqa: PLC0415

    check_names(options.get("executor"), options.get("observer"))
    request, candidates = read_request(library, options)
    return make_bisector(
        request,
        candidates,
        observer=_observer(options.get("observer"), verbose=options.get("verbose", False)),
        executor=options.get("executor"),
        say=options.get("say"),
        on_step=options.get("on_step"),
    )


def _checked(results: ResultCollection) -> ResultCollection:
    """Refuse an answer that is empty because every cell failed, and warn about one that lacks some."""
    if not results.errors:
        return results
    first, failed, total = results.errors[0], len(results.errors), len(results.errors) + len(results.results)
    seed = first.seed if first.fold is None else f"{first.seed}, fold {first.fold}"
    why = " ".join(f"{first.error_type}: {first.error_message}".split()).rstrip(".")
    which = f"{first.library} on {first.config_name} (seed {seed}) failed in phase '{first.phase}' with {why}"
    if failed == total:
        every = "The only cell" if total == 1 else f"Each of the {total} cells"
        raise RunError(f"{every} of run {results.run_id} failed; load_run('{results.run_id}') has them. {which}.")
    text = f"{failed} of {total} cells failed, so some results are missing; see results.errors. The first: {which}."
    warnings.warn(text, BoostersEvalWarning, stacklevel=3)
    return results


def _warn_of_data(prepared: PreparedRun) -> None:
    """A warning for each finding with which scores are too good; the others are in `results.audits`."""
    for name, audit in prepared.audits.items():
        for finding in audit.severe:
            warnings.warn(f"{name}: {finding.text}; see results.audits", BoostersEvalWarning, stacklevel=3)


def prepare_builds(
    libraries: Libraries,
    *,
    isolated: bool = False,
    home: str | Path | None = None,
    say: Callable[[str], None] | None = None,
) -> list[str]:
    """Install the builds among these libraries, such as 'xgboost==3.0.5', and give what each is named by from then on.

    That is a build's own name; one that takes the place of its library is named as before, as only this tells it apart.
    An isolated build has dependencies of its own, and is used so until it is removed; `say` hears of the progress.
    """
    from boosters_eval.builds.install import install_reference  # noqa: PLC0415
    from boosters_eval.builds.reference import is_reference, parse_reference  # noqa: PLC0415 (keeps start-up fast)
    from boosters_eval.builds.resolve import competitors_by_text  # noqa: PLC0415
    from boosters_eval.builds.saying import listening  # noqa: PLC0415
    from boosters_eval.runners import RUNNERS  # noqa: PLC0415

    given: list[Any] = list(libraries) if isinstance(libraries, (list, tuple)) else [libraries]
    with nullcontext() if say is None else listening(say):
        for reference in [parse_reference(item) for item in given if isolated and is_reference(item)]:
            install_reference(reference, home=_path(home), isolated=True)
        names = competitors_by_text(given, _path(home))
    return list(dict.fromkeys(item if is_reference(item) and name in RUNNERS else name for item, name in names.items()))


def _heard(*, verbose: bool) -> AbstractContextManager[None]:
    """Let a verbose call tell that a build is being installed."""
    from boosters_eval.builds.saying import listening  # noqa: PLC0415 (keeps start-up fast)

    return listening(lambda text: print(text, file=sys.stderr)) if verbose else nullcontext()  # noqa: T201 (asked for)


def prepare_comparison(
    datasets: Data | Sequence[Data] = ("california",),
    libraries: Libraries = None,
    booster: BoosterName | str | Sequence[BoosterName | str] = "gbdt",
    seeds: Seeds | str | None = None,
    *,
    training: TrainingConfig | None = None,
    variants: Mapping[str, TrainingConfig] | None = None,
    metrics: MetricLike | Sequence[MetricLike] = (),
    cv: str | int | None = None,
    task: TaskName | str | None = None,
    data: DataSettings | Mapping[str, Any] | None = None,
    target: str | None = None,
    split: str | None = None,
    profile: ProfileName | str = "parity",
    max_seeds: int | None = None,
    budget: str | float | None = None,
    **settings: Unpack[RunOptions],
) -> PreparedRun:
    """The plan of a comparison, ready to execute: data, libraries and threads are resolved, but nothing has run."""
    from boosters_eval.benchmark.planning import prepare  # noqa: PLC0415 (keeps start-up fast)
    from boosters_eval.benchmark.requests import comparison  # noqa: PLC0415
    from boosters_eval.benchmark.usermetrics import metric_names  # noqa: PLC0415

    _check_cv(cv, seeds)
    chosen = _settings(compare, settings)
    benchmarks = comparison(
        datasets,
        libraries,
        booster,
        training=training,
        variants=variants,
        metrics=metric_names(_several(metrics)),
        cv=cv,
        task=task,
        data=data,
        target=target,
        split=split,
        profile=profile,
        home=chosen.home,
    )
    return prepare(benchmarks, seeds, chosen, max_seeds=max_seeds, budget=budget)


def prepare_suite(
    suite: str | BenchmarkSuite,
    seeds: int | str | None = None,
    libraries: Libraries = None,
    *,
    metrics: MetricLike | Sequence[MetricLike] = (),
    cv: str | int | None = None,
    profile: ProfileName | str | None = None,
    **settings: Unpack[RunOptions],
) -> PreparedRun:
    """The plan of a suite, ready to execute."""
    from boosters_eval.benchmark.planning import prepare  # noqa: PLC0415 (keeps start-up fast)
    from boosters_eval.benchmark.requests import suite_benchmarks  # noqa: PLC0415
    from boosters_eval.benchmark.usermetrics import metric_names  # noqa: PLC0415

    _check_cv(cv, seeds)
    chosen = _settings(run_suite, settings)
    return prepare(
        suite_benchmarks(
            suite, libraries, metrics=metric_names(_several(metrics)), cv=cv, profile=profile, home=chosen.home
        ),
        seeds,
        chosen,
    )


def _check_cv(cv: str | int | None, seeds: int | str | None) -> None:
    if cv is not None and seeds is not None:
        raise ConfigError("Use either 'cv' or 'seeds', not both: FOLDSxREPEATS redraws the folds REPEATS times.")


def _settings(function: Callable[..., Any], given: RunOptions) -> Settings:
    """The settings of a call; an unknown name gets the nearest setting or parameter of the function as a hint."""
    from boosters_eval.benchmark.settings import Settings  # noqa: PLC0415 (keeps start-up fast)

    for name in given.keys() - Settings.model_fields:
        known = [*inspect.signature(function).parameters, *Settings.model_fields]
        raise ConfigError(f"{function.__name__}() has no parameter '{name}'.{suggest(name, known)}")
    return Settings(**given)


def run_prepared(
    prepared: PreparedRun,
    *,
    observer: Observer | str | Sequence[Observer | str] | None = None,
    verbose: bool = False,
    executor: Executor | str | None = None,
    say: Callable[[str], None] = lambda _: None,
    track: Trackers = None,
) -> ResultCollection:
    """Execute a prepared run. Finished cells are kept, whatever happens; failed ones are in `errors`, even if all."""
    from boosters_eval.benchmark import running  # noqa: PLC0415 (keeps start-up fast)
    from boosters_eval.benchmark.planning import PreparedRun  # noqa: PLC0415 (keeps start-up fast)
    from boosters_eval.history.hook import recording  # noqa: PLC0415 (keeps start-up fast)

    require("prepared", prepared, PreparedRun, "what prepare_comparison() or prepare_suite() gives")
    check_names(executor, observer, track)
    watching = _observer(observer, verbose=verbose, prepared=prepared)
    with ExitStack() as stack:
        if track:
            from boosters_eval.engine.observer import Observers  # noqa: PLC0415 (keeps start-up fast)
            from boosters_eval.tracking import TrackingObserver, chosen_trackers  # noqa: PLC0415

            tracking = TrackingObserver(chosen_trackers(track), prepared.settings.home, say=say)
            watching = Observers(watching, stack.enter_context(tracking))
        stack.enter_context(recording(prepared.settings.home))
        return running.run_prepared(prepared, watching, executor=executor, say=say)


def track_run(
    reference: str = "last",
    to: Trackers = "mlflow",
    home: str | Path | None = None,
    *,
    timeout: float = 600.0,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Send an earlier run to trackers. What they have already is not sent again; `timeout` is in seconds."""
    from boosters_eval.tracking import chosen_trackers, send_run  # noqa: PLC0415 (keeps start-up fast)

    require("timeout", timeout, (int, float), "a number of seconds")
    if not 0 < timeout < float("inf"):
        raise ConfigError(f"The 'timeout' parameter must be a number of seconds above 0. Got {timeout!r} instead.")
    send_run(_reference(reference), chosen_trackers(to, "to"), _path(home), timeout=timeout, say=say)


def load_run(reference: str = "last", home: str | Path | None = None, *, verified: bool = False) -> ResultCollection:
    """A run by its id, the beginning of its id, its name, or `last`; a changed one is refused.

    Of several attempts it is the latest finished one; `verified` refuses a run whose latest attempt is unfinished.
    """
    from boosters_eval.benchmark import running  # noqa: PLC0415 (keeps start-up fast)

    return running.load_run(_reference(reference), _path(home), verified=verified)


def load_results(path: str | Path) -> ResultCollection:
    """A results file, as `ResultCollection.to_json` and `--format json` write it."""
    from boosters_eval.benchmark.results import ResultCollection  # noqa: PLC0415 (keeps start-up fast)

    return ResultCollection.load_partial(path)


def verify_run(reference: str = "last", home: str | Path | None = None) -> Iterator[tuple[str, str]]:
    """For each file of a run that is checked, its name and what is wrong with it; '' if nothing is.

    The reference may also be the path of a run's folder, wherever it is.
    """
    from boosters_eval.engine.folder import RunFolder  # noqa: PLC0415 (keeps start-up fast)
    from boosters_eval.engine.runs import find_run, verify  # noqa: PLC0415

    given = Path(_reference(reference))
    # A folder is meant only where it is named as one: a run of that name comes first.
    if given.is_dir() and (len(given.parts) > 1 or given.is_absolute()):
        folder = RunFolder(given.resolve())
        if not folder.attempts():
            raise ConfigError(f"{given} is a folder, but not that of a run.")
    else:
        folder = find_run(reference, _path(home))
    for name, fault in verify(folder):
        yield f"{folder.run_id}/{name}", fault


def progress(*, every_cell: bool = False, prepared: PreparedRun | None = None) -> Observer:
    """A bar on a terminal or in a notebook, plain lines elsewhere: one every few seconds, or one per cell.

    Of a prepared run whose cells the history knows, it shows how long it takes from the start.
    """
    from boosters_eval.engine.progress import Expectation, progress_for  # noqa: PLC0415 (keeps start-up fast)

    if prepared is None:
        return progress_for(sys.stderr, every_cell=every_cell)
    from boosters_eval.benchmark.running import jobs_of  # noqa: PLC0415 (keeps start-up fast)

    home = prepared.settings.home
    expected = Expectation(lambda plan: expected_seconds(plan, home), jobs_of(prepared))
    return progress_for(sys.stderr, every_cell=every_cell, expected=expected)


def expected_seconds(plan: Plan, home: str | Path | None = None) -> dict[str, float]:
    """The seconds that each cell of a plan will take, by its key, as the history of this machine has it.

    Empty unless it knows half of the cells.
    """
    from boosters_eval.benchmark.estimates import costs_by_key, seconds_by_key  # noqa: PLC0415 (keeps start-up fast)
    from boosters_eval.history.query import seconds_by_cell  # noqa: PLC0415

    try:
        return seconds_by_key(plan.cells, costs_by_key(seconds_by_cell(_path(home))))
    except Exception:  # noqa: BLE001 (an estimate must never harm a run)
        return {}


def _reference(given: str) -> str:
    require("reference", given, str, "a run's id, the beginning of one, its name, or 'last'")
    return given


def _path(home: str | Path | None) -> Path | None:
    require("home", home, (str, Path, type(None)), "a path")
    return None if home is None else Path(home)


def check_names(executor: Any = None, observer: Any = None, track: Any = None) -> None:
    """Refuse an executor, an observer or a tracker that does not exist or cannot be used, before any work is done."""
    from boosters_eval.engine.executor import EXECUTORS, Executor  # noqa: PLC0415 (keeps start-up fast)
    from boosters_eval.engine.observer import OBSERVERS, Observer  # noqa: PLC0415

    if isinstance(executor, str):
        EXECUTORS[executor]
    elif executor is not None and not isinstance(executor, Executor):
        raise ConfigError(f"The 'executor' parameter must be a name or an Executor. Got {executor!r} instead.")
    for item in _several(observer):
        if isinstance(item, str):
            OBSERVERS[item]
        elif not isinstance(item, Observer):
            raise ConfigError(f"The 'observer' parameter must be names or Observers. Got {item!r} instead.")
    if track:
        from boosters_eval.tracking import chosen_trackers  # noqa: PLC0415

        chosen_trackers(track)


def _observer(given: Any, *, verbose: bool = False, prepared: PreparedRun | None = None) -> Observer:
    """One observer, whatever was asked for: objects, names, several of them, or none."""
    from boosters_eval.engine.observer import OBSERVERS, Observers  # noqa: PLC0415 (keeps start-up fast)

    wanted = _several(given) or ([progress(prepared=prepared)] if verbose else [])
    return Observers(*(OBSERVERS[item]() if isinstance(item, str) else item for item in wanted))


def _several(given: Any) -> list[Any]:
    if given is None:
        return []
    return list(given) if isinstance(given, (list, tuple)) else [given]
