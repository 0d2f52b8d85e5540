"""What users ask for as plans that are ready to run: nothing has run yet, but every mistake is told."""

from __future__ import annotations

import inspect
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Literal

from boosters_eval.core.errors import ConfigError, suggest
from boosters_eval.core.home import given_home
from boosters_eval.running import check_names, is_elsewhere, observer_of, several

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from typing import Unpack

    from boosters_eval.datasets.config import DatasetConfig, DataSettings
    from boosters_eval.metrics import Metric
    from boosters_eval.metrics.task import Task
    from boosters_eval.programs.benchmark.planning import PreparedRun
    from boosters_eval.programs.benchmark.requests import Libraries
    from boosters_eval.programs.benchmark.settings import RunOptions, Settings
    from boosters_eval.programs.benchmark.suites import BenchmarkSuite
    from boosters_eval.programs.bisect.request import BisectionOptions
    from boosters_eval.programs.bisect.running import Bisector
    from boosters_eval.runners.parameters import BoosterType, Profile, TrainingConfig

    BoosterName = BoosterType | Literal["gbdt", "gblinear", "linear_trees"]
    ProfileName = Profile | Literal["parity", "defaults"]
    TaskName = Task | Literal["regression", "binary", "multiclass", "quantile", "ranking"]
    Seeds = int | Literal["auto"]
    # A name, 'path:column', a pandas or polars data frame, arrays (X, y), or a dict that names frames and arrays.
    Data = str | DatasetConfig | Any
    MetricLike = str | Metric | Callable[..., Any]  # a function says which way is better: its `higher_is_better`


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
    from boosters_eval.programs.benchmark.planning import prepare  # noqa: PLC0415 (keeps start-up fast)
    from boosters_eval.programs.benchmark.requests import comparison  # noqa: PLC0415
    from boosters_eval.programs.benchmark.usermetrics import metric_names  # noqa: PLC0415

    _check_cv(cv, seeds)
    chosen = read_settings(prepare_comparison, settings)
    benchmarks = comparison(
        datasets,
        libraries,
        booster,
        training=training,
        variants=variants,
        metrics=metric_names(several(metrics)),
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
    from boosters_eval.programs.benchmark.planning import prepare  # noqa: PLC0415 (keeps start-up fast)
    from boosters_eval.programs.benchmark.requests import suite_benchmarks  # noqa: PLC0415
    from boosters_eval.programs.benchmark.usermetrics import metric_names  # noqa: PLC0415

    _check_cv(cv, seeds)
    chosen = read_settings(prepare_suite, settings)
    return prepare(
        suite_benchmarks(
            suite, libraries, metrics=metric_names(several(metrics)), cv=cv, profile=profile, home=chosen.home
        ),
        seeds,
        chosen,
    )


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
    from boosters_eval.programs.benchmark.planning import seed_count  # noqa: PLC0415 (keeps start-up fast)
    from boosters_eval.programs.importances.planning import explained  # noqa: PLC0415

    read_settings(prepare_importances, settings)  # a mistake is told with the name of this function
    if seeds is not None and seeds != "auto":  # which is refused for itself
        seed_count(seeds, default=1)
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


def prepare_bisection(library: str, **options: Unpack[BisectionOptions]) -> Bisector:
    """A bisection that is ready to run: the versions, the data and the metric are known, but nothing is installed."""
    from boosters_eval.programs.bisect.request import read_request  # noqa: PLC0415 (keeps start-up fast)
    from boosters_eval.programs.bisect.running import make_bisector  # noqa: PLC0415

    check_names(options.get("executor"), options.get("observer"))
    if is_elsewhere(options.get("executor")):
        options = {**options, "elsewhere": True}
    request, candidates = read_request(library, options)
    return make_bisector(
        request,
        candidates,
        observer=observer_of(options.get("observer"), verbose=options.get("verbose", False)),
        executor=options.get("executor"),
        say=options.get("say"),
        on_step=options.get("on_step"),
    )


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
    from boosters_eval.runners import RUNNERS  # noqa: PLC0415
    from boosters_eval.runners.builds.install import install_reference  # noqa: PLC0415
    from boosters_eval.runners.builds.reference import is_reference, parse_reference  # noqa: PLC0415 (keeps start-up fast)
    from boosters_eval.runners.builds.resolve import competitors_by_text  # noqa: PLC0415
    from boosters_eval.runners.builds.saying import listening  # noqa: PLC0415

    given: list[Any] = list(libraries) if isinstance(libraries, (list, tuple)) else [libraries]
    with nullcontext() if say is None else listening(say):
        for reference in [parse_reference(item) for item in given if isolated and is_reference(item)]:
            install_reference(reference, home=given_home(home), isolated=True)
        names = competitors_by_text(given, given_home(home))
    return list(dict.fromkeys(item if is_reference(item) and name in RUNNERS else name for item, name in names.items()))


def read_settings(function: Callable[..., Any], given: RunOptions) -> Settings:
    """The settings of a call; an unknown name gets the nearest setting or parameter of the function as a hint."""
    from boosters_eval.programs.benchmark.settings import Settings  # noqa: PLC0415 (keeps start-up fast)

    for name in given.keys() - Settings.model_fields:
        known = [*inspect.signature(function).parameters, *Settings.model_fields]
        raise ConfigError(f"{function.__name__}() has no parameter '{name}'.{suggest(name, known)}")
    return Settings(**given)


def _check_cv(cv: str | int | None, seeds: int | str | None) -> None:
    if cv is not None and seeds is not None:
        raise ConfigError("Use either 'cv' or 'seeds', not both: FOLDSxREPEATS redraws the folds REPEATS times.")
