"""The Python API: compare libraries, run suites, and load earlier runs. The CLI calls what these functions call."""

from __future__ import annotations

import sys
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import BoostersEvalWarning, ConfigError, RunError, require
from boosters_eval.core.home import given_home
from boosters_eval.preparing import (
    prepare_bisection,
    prepare_comparison,
    prepare_importances,
    prepare_suite,
    read_settings,
)
from boosters_eval.running import is_elsewhere, run_importances, run_prepared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from typing import Unpack

    from boosters_eval.datasets.config import DataSettings
    from boosters_eval.engine.executor import Executor
    from boosters_eval.engine.observer import Observer
    from boosters_eval.preparing import BoosterName, Data, MetricLike, ProfileName, Seeds, TaskName
    from boosters_eval.programs.benchmark.config import BenchmarkSuite
    from boosters_eval.programs.benchmark.planning import PreparedRun
    from boosters_eval.programs.benchmark.requests import Libraries
    from boosters_eval.programs.benchmark.results import ResultCollection
    from boosters_eval.programs.benchmark.settings import RunOptions
    from boosters_eval.programs.bisect.model import Bisection
    from boosters_eval.programs.bisect.request import BisectionOptions
    from boosters_eval.programs.importances.results import Explanations
    from boosters_eval.runners.parameters import TrainingConfig
    from boosters_eval.running import Trackers


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
            **_placed(compare, settings, executor),
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
            suite, seeds, libraries, metrics=metrics, cv=cv, profile=profile, **_placed(run_suite, settings, executor)
        )
    _warn_of_data(prepared)
    return _checked(run_prepared(prepared, observer=observer, verbose=verbose, executor=executor, track=track))


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
    track: Trackers = None,
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
            **_placed(importances, settings, executor),
        )
    _warn_of_data(prepared)
    found = run_importances(prepared, observer=observer, verbose=verbose, executor=executor, track=track)
    _checked(found.collection)
    return found


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


def load_run(reference: str = "last", home: str | Path | None = None, *, verified: bool = False) -> ResultCollection:
    """A run by its id, the beginning of its id, its name, or `last`; a changed one is refused.

    Of several attempts it is the latest finished one; `verified` refuses a run whose latest attempt is unfinished.
    """
    from boosters_eval.programs.benchmark import running  # noqa: PLC0415 (keeps start-up fast)

    return running.load_run(_reference(reference), given_home(home), verified=verified)


def load_results(path: str | Path) -> ResultCollection:
    """A results file, as `ResultCollection.to_json` and `--format json` write it."""
    from boosters_eval.programs.benchmark.results import ResultCollection  # noqa: PLC0415 (keeps start-up fast)

    return ResultCollection.load_partial(path)


def load_importances(reference: str = "last", home: str | Path | None = None) -> Explanations:
    """The explanations of a run by its id, the beginning of its id, its name, or `last`; a changed one is refused."""
    from boosters_eval.programs.importances.running import load_explanations  # noqa: PLC0415 (keeps start-up fast)

    return load_explanations(_reference(reference), given_home(home))


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
        folder = find_run(reference, given_home(home))
    for name, fault in verify(folder):
        yield f"{folder.run_id}/{name}", fault


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
    send_run(_reference(reference), chosen_trackers(to, "to"), given_home(home), timeout=timeout, say=say)


def _placed(function: Callable[..., Any], settings: RunOptions, executor: Executor | str | None) -> RunOptions:
    """The settings of a run on this machine, or of one on others; a mistake is told with the name of the function."""
    read_settings(function, settings)
    return {**settings, "elsewhere": True} if is_elsewhere(executor) else settings


def _heard(*, verbose: bool) -> AbstractContextManager[None]:
    """Let a verbose call tell that a build is being installed."""
    from boosters_eval.runners.builds.saying import listening  # noqa: PLC0415 (keeps start-up fast)

    return listening(lambda text: print(text, file=sys.stderr)) if verbose else nullcontext()  # noqa: T201 (asked for)


def _warn_of_data(prepared: PreparedRun) -> None:
    """A warning for each finding with which scores are too good; the others are in `results.audits`."""
    for name, audit in prepared.audits.items():
        for finding in audit.severe:
            warnings.warn(f"{name}: {finding.text}; see results.audits", BoostersEvalWarning, stacklevel=3)


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


def _reference(given: str) -> str:
    require("reference", given, str, "a run's id, the beginning of one, its name, or 'last'")
    return given
