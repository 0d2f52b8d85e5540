"""The Python API: compare libraries, run suites, and load earlier runs. The CLI calls the same functions."""

from __future__ import annotations

import inspect
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from boosters_eval.core.errors import BoostersEvalWarning, ConfigError, RunError, require, suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Unpack

    from boosters_eval.benchmark.config import BenchmarkSuite
    from boosters_eval.benchmark.planning import PreparedRun
    from boosters_eval.benchmark.requests import Libraries
    from boosters_eval.benchmark.results import ResultCollection
    from boosters_eval.benchmark.settings import RunOptions, Settings
    from boosters_eval.datasets.config import DatasetConfig, DataSettings
    from boosters_eval.engine.executor import Executor
    from boosters_eval.engine.observer import Observer
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
        **settings,
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
    prepared = prepare_suite(suite, seeds, libraries, metrics=metrics, cv=cv, profile=profile, **settings)
    _warn_of_data(prepared)
    return _checked(run_prepared(prepared, observer=observer, verbose=verbose, executor=executor, track=track))


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
        suite_benchmarks(suite, libraries, metrics=metric_names(_several(metrics)), cv=cv, profile=profile),
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

    require("prepared", prepared, PreparedRun, "what prepare_comparison() or prepare_suite() gives")
    check_names(executor, observer, track)
    watching = _observer(observer, verbose=verbose)
    if not track:
        return running.run_prepared(prepared, watching, executor=executor, say=say)
    from boosters_eval.engine.observer import Observers  # noqa: PLC0415 (keeps start-up fast)
    from boosters_eval.tracking import TrackingObserver, chosen_trackers  # noqa: PLC0415

    with TrackingObserver(chosen_trackers(track), prepared.settings.home, say=say) as tracking:
        return running.run_prepared(prepared, Observers(watching, tracking), executor=executor, say=say)


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


def progress(*, every_cell: bool = False) -> Observer:
    """A bar on a terminal or in a notebook, plain lines elsewhere: one every few seconds, or one per cell."""
    from boosters_eval.engine.progress import progress_for  # noqa: PLC0415 (keeps start-up fast)

    return progress_for(sys.stderr, every_cell=every_cell)


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


def _observer(given: Any, *, verbose: bool) -> Observer:
    """One observer, whatever was asked for: objects, names, several of them, or none."""
    from boosters_eval.engine.observer import OBSERVERS, Observers  # noqa: PLC0415 (keeps start-up fast)

    wanted = _several(given) or ([progress()] if verbose else [])
    return Observers(*(OBSERVERS[item]() if isinstance(item, str) else item for item in wanted))


def _several(given: Any) -> list[Any]:
    if given is None:
        return []
    return list(given) if isinstance(given, (list, tuple)) else [given]
