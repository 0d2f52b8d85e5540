"""From a paper's targets to a plan: each is bound to cells, or left out with the reason."""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import BoostersEvalError, ConfigError
from boosters_eval.datasets import materialize, resolve_dataset
from boosters_eval.datasets.config import SplitSpec
from boosters_eval.engine.limits import resolve_threads
from boosters_eval.engine.plan import CellRef, Exclusion, Plan
from boosters_eval.metrics import RESOURCES, primary_metric
from boosters_eval.programs.benchmark.paper_protocol import STOPPING_METRIC, Protocol, canonicalize_native
from boosters_eval.programs.benchmark.preprocessing import STEPS, locate_steps
from boosters_eval.programs.benchmark.spec import FitSpec, Timing
from boosters_eval.programs.paper.evaluate import EvaluateSpec
from boosters_eval.programs.paper.rows import Scoring, describe_data
from boosters_eval.programs.paper.specification import (
    CallableRun,
    CommandRun,
    EstimatorRun,
    EvaluatorRun,
    LibraryRun,
    ModelRun,
)
from boosters_eval.programs.paper.targets import find_format, find_obstacle, locate_data, locate_module, match_metrics
from boosters_eval.runners.base import cannot_run
from boosters_eval.runners.builds.install import resolve_competitors
from boosters_eval.runners.config import derive_seeds
from boosters_eval.runners.installed import target_of
from boosters_eval.runners.parameters import BoosterType, Device, Profile, TrainingConfig

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boosters_eval.datasets import Stored
    from boosters_eval.engine.cell import Cell, Spec, Target
    from boosters_eval.programs.paper.specification import StdOver
    from boosters_eval.programs.paper.targets import PaperTarget
    from boosters_eval.runners.base import Runner

_MOST_READ = 2**20
_MEMORY = frozenset({"peak_memory_mb", "first_use_mb"})
# What a library needs to stop early as told, besides the number of rounds.
_STOPPING = frozenset({"od_type", "use_best_model"})


@dataclass(frozen=True)
class PlannedTarget:
    """A target with the spec of its cells, or the reason why it has none."""

    target: PaperTarget
    reason: str = ""
    spec: Spec | None = None
    carrier: str = ""  # the engine's target: a library, a format, `callable`, ...
    engine_target: Target | None = None  # None: what is installed by that name
    metrics: dict[str, str] = field(default_factory=dict)  # ours by the paper's name
    std_over: StdOver | None = None
    conditions: dict[str, str] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)  # where its cells find their files
    repeats: int = 0
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class PaperPlan:
    """All targets, and the plan of those that can run, if any can."""

    targets: tuple[PlannedTarget, ...]
    plan: Plan

    def __call__(self, cell: Cell, scratch: Path) -> Mapping[str, str]:  # noqa: ARG002 (the signature of a locator)
        """The inputs of a cell."""
        return next(
            found.inputs for found in self.targets if found.spec is not None and found.spec.name == cell.spec.name
        )


def plan_targets(
    name: str,
    targets: Sequence[PaperTarget],
    *,
    seeds: int,
    allow_pickle: bool = False,
    n_threads: int | None = None,
) -> PaperPlan:
    """Bind every target. What cannot run here is left out with the reason; nothing runs yet."""
    if not targets:
        raise ConfigError("The specification has no reproduction targets: name them under 'reproduction_targets'.")
    planned = tuple(_plan_target(target, seeds, n_threads, allow_pickle=allow_pickle) for target in targets)
    specs: list[Spec] = []
    refs: list[CellRef] = []
    excluded: list[Exclusion] = []
    for found in planned:
        if found.spec is None:
            excluded.append(Exclusion(spec=found.target.name, target="none", reason=found.reason))
            continue
        refs += [CellRef(len(specs), found.carrier, seed, None) for seed in derive_seeds(found.repeats)]
        specs.append(found.spec)
    known = [found.engine_target for found in planned if found.engine_target is not None]
    return PaperPlan(planned, Plan.of(name, specs, refs, excluded, known))


def _plan_target(target: PaperTarget, seeds: int, n_threads: int | None, *, allow_pickle: bool) -> PlannedTarget:
    try:
        reason = find_obstacle(target, allow_pickle=allow_pickle)
        planned = PlannedTarget(target, reason or "Nothing is bound to this row.")
        match None if reason else target.binding:
            case LibraryRun() as run:
                planned = _plan_fit(target, run, seeds, n_threads)
            case ModelRun() as run:
                planned = _plan_saved(target, run, seeds, n_threads)
            case EstimatorRun() as run:
                planned = _plan_estimator(target, run, seeds, n_threads)
            case CallableRun() | CommandRun() | EvaluatorRun() as run:
                planned = _plan_evaluated(target, run, seeds, n_threads, allow_pickle=allow_pickle)
    except BoostersEvalError as error:
        return PlannedTarget(target, " ".join(str(error).split()))
    return planned


def _plan_fit(target: PaperTarget, run: LibraryRun, seeds: int, n_threads: int | None) -> PlannedTarget:
    """A row that a library reproduces: a cell of the workload `fit`, with a protocol."""
    config, data = _load_data(target)
    (runner,) = resolve_competitors([run.library]).values()
    training = TrainingConfig(**_plain(run.parameters))
    native = canonicalize_native(run.display_name, _plain(run.native))
    stopping = run.early_stopping
    if stopping is not None:
        training = training.replace(early_stopping_rounds=int(stopping.rounds))
        if stopping.metric:
            native.setdefault(STOPPING_METRIC[run.display_name], stopping.metric)
    protocol = _make_protocol(target, run.preprocessing, native)
    metrics = match_metrics(target, data.task)
    scores = _choose_scores(metrics)
    costs = set(metrics.values()) & set(RESOURCES)
    timed = any(name.endswith("_time_s") for name in costs)  # a time is worth nothing beside others
    spec = FitSpec(
        name=target.name,
        alone=timed or training.device is not Device.CPU,
        n_threads=resolve_threads(n_threads if n_threads is not None else training.n_threads),
        **describe_data(config, data, scores),
        booster_type=BoosterType(run.booster),
        training=training,
        profile=Profile.PARITY,
        variant=None,
        categorical=data.categorical,
        has_missing=data.has_missing,
        weighted=data.weighted,
        split=SplitSpec(),
        primary_metric=scores[0] if scores else primary_metric(data.task),
        timing=Timing(timed=timed, warmup=int(timed), predict_runs=3 if timed else 1, memory=bool(_MEMORY & costs)),
        protocol=protocol,
    )
    if run.profile == "defaults":
        left = dict.fromkeys(_list_left_to_library(runner, spec, run.parameters))
        spec = spec.replace(protocol=protocol.replace(native={**left, **native}))
    several = "the data set has several targets" if len(config.targets) > 1 else None
    reason = protocol.unsupported(data.task) or several or cannot_run(runner, spec.request(0))
    if reason:
        return PlannedTarget(target, f"{run.library} cannot run this: {reason}.")
    conditions = _describe_data(config.name, data, protocol)
    if stopping is not None:
        on = f" on {stopping.metric}" if stopping.metric else ""
        conditions["early stopping"] = f"{stopping.rounds} rounds{on}"
    conditions["threads"] = str(spec.n_threads)
    if spec.uses_device:
        conditions["device"] = training.device.value
    return PlannedTarget(
        target,
        spec=spec,
        carrier=runner.name,
        engine_target=target_of(runner),
        metrics=metrics,
        std_over="splits",
        conditions=conditions,
        inputs={"data": str(data.path), **locate_steps(run.preprocessing)},
        repeats=seeds,
        warnings=_list_unknown_metrics(target, metrics),
    )


def _list_left_to_library(runner: type[Runner], spec: FitSpec, given: Mapping[str, Any]) -> list[str]:
    """The native parameters that the mapping would pass although the specification does not give them."""
    request = spec.request(0)
    mapped = runner.translate(request)
    always = runner.translate(replace(request, profile=Profile.DEFAULTS)).native
    passed = {*always, *_STOPPING}
    wanted = {*given, "early_stopping_rounds"}
    return [name for name, origin in mapped.origins.items() if name not in passed and origin not in wanted]


def _plan_saved(target: PaperTarget, run: ModelRun, seeds: int, n_threads: int | None) -> PlannedTarget:
    """A row that a saved model reproduces. Without sizes it is scored on all rows, once: nothing would differ."""
    config, data = _load_data(target)
    sizes = target.dataset.sizes if target.dataset else None
    if run.preprocessing and sizes is None:
        raise ConfigError("Preprocessing is fitted on training rows: give the data set its 'sizes'.")
    protocol = None if sizes is None else _make_protocol(target, run.preprocessing, {})
    reason = protocol.unsupported(data.task) if protocol else None
    if reason:
        return PlannedTarget(target, f"The model cannot be scored: {reason}.")
    path = target.locate_model()
    form = find_format(run, path)
    metrics = match_metrics(target, data.task)
    fixed = sizes is None or (sizes.test == "official" and not run.preprocessing)
    spec = EvaluateSpec(
        **_identify(target),
        binding=run.model_copy(update={"model": path.name}),
        n_threads=resolve_threads(n_threads or 1),
        model=path.name,
        format=form,
        digests={"model": _digest(path)},
        scoring=Scoring(**describe_data(config, data, _choose_scores(metrics)), protocol=protocol),
    )
    warnings = list(_list_unknown_metrics(target, metrics))
    if not fixed:
        warnings.insert(0, "the model may have been trained on rows that it is tested on: these are drawn at random")
    return PlannedTarget(
        target,
        spec=spec,
        carrier=form,
        metrics=metrics,
        std_over=None if fixed else "splits",
        conditions={"model": path.name, **_describe_data(config.name, data, protocol)},
        inputs={"data": str(data.path), "model": str(path.resolve()), **locate_steps(run.preprocessing)},
        repeats=1 if fixed else seeds,
        warnings=tuple(warnings),
    )


def _plan_estimator(target: PaperTarget, run: EstimatorRun, seeds: int, n_threads: int | None) -> PlannedTarget:
    """A row that the user's own estimator reproduces, on the splits of the libraries."""
    config, data = _load_data(target)
    protocol = _make_protocol(target, run.preprocessing, {})
    reason = protocol.unsupported(data.task)
    if reason:
        return PlannedTarget(target, f"The estimator cannot be scored: {reason}.")
    metrics = match_metrics(target, data.task)
    module = locate_module(run.estimator.partition(":")[0], target.root)
    spec = EvaluateSpec(
        **_identify(target),
        binding=run,
        n_threads=resolve_threads(n_threads or 1),
        format="estimator",
        digests={"estimator": _digest(module)} if module and module.exists() else {},
        scoring=Scoring(**describe_data(config, data, _choose_scores(metrics)), protocol=protocol),
    )
    return PlannedTarget(
        target,
        spec=spec,
        carrier="estimator",
        metrics=metrics,
        std_over="splits",
        conditions={"estimator": run.estimator, **_describe_data(config.name, data, protocol)},
        inputs={"data": str(data.path), "root": str(target.root.resolve()), **locate_steps(run.preprocessing)},
        repeats=seeds,
        warnings=_list_unknown_metrics(target, metrics),
    )


def _find_scoring(target: PaperTarget) -> tuple[Scoring | None, dict[str, str]]:
    """The data for a function that asks for its rows, where the data set is one of ours, and where it is."""
    try:
        config = resolve_dataset(locate_data(target))
        if config.available is not None and config.available() is not None:
            return None, {}
        data = materialize(config)
        known = match_metrics(target, data.task)
    except BoostersEvalError:
        return None, {}
    protocol = _make_protocol(target, (), {})
    scoring = Scoring(**describe_data(config, data, _choose_scores(known)), protocol=protocol)
    return scoring, {"data": str(data.path)}


def _plan_evaluated(
    target: PaperTarget,
    run: CallableRun | CommandRun | EvaluatorRun,
    seeds: int,
    n_threads: int | None,
    *,
    allow_pickle: bool,
) -> PlannedTarget:
    """A row whose metrics something else returns, under the paper's names. A language model gets all cores."""
    model = str(Path(target.model).resolve()) if target.model is not None else None
    if isinstance(run, EvaluatorRun):
        model = target.find_model()
        run = run.model_copy(update={"model": None})
    conditions = {"data set": target.dataset_name}
    files: dict[str, Path | None] = {}  # what the metrics depend on
    scoring, data = _find_scoring(target) if isinstance(run, CallableRun) else (None, {})
    if model is not None:
        files["model"] = Path(model)
        conditions["model"] = Path(model).name if Path(model).exists() else model
    if isinstance(run, CallableRun):
        carrier = "callable"
        files["function"] = locate_module(run.callable.partition(":")[0], target.root)
        conditions["callable"] = run.callable
    elif isinstance(run, CommandRun):
        carrier = "command"
        files |= {word: file for word in run.command if (file := target.root / word).is_file()}
        conditions["command"] = " ".join(run.command)
    else:
        carrier = conditions["evaluator"] = run.evaluator
        text = target.root / ((target.dataset.use if target.dataset else None) or "")
        files["text"] = text if text.is_file() else None
        seeds = 1 if run.evaluator == "perplexity" else seeds  # nothing in it is random
    spec = EvaluateSpec(
        **_identify(target),
        n_threads=resolve_threads(n_threads or (-1 if isinstance(run, EvaluatorRun) else 1)),
        binding=run,
        model=conditions.get("model"),
        digests={name: _digest(path) for name, path in files.items() if path and path.exists()},
        scoring=scoring,
    )
    return PlannedTarget(
        target,
        spec=spec,
        carrier=carrier,
        metrics={name: name for name in spec.metrics},
        std_over="seeds",
        conditions=conditions,
        inputs={
            "root": str(target.root.resolve()),
            **data,
            **({"model": model} if model else {}),
            **({"allow_pickle": "yes"} if allow_pickle else {}),
        },
        repeats=seeds,
    )


def _identify(target: PaperTarget) -> dict[str, Any]:
    return {
        "name": target.name,
        "table": target.table.id,
        "row": target.row,
        "dataset": target.dataset,
        "metrics": tuple(target.result.values) if target.result else (),
    }


def _load_data(target: PaperTarget) -> tuple[Any, Stored]:
    config = resolve_dataset(locate_data(target))
    return config, materialize(config)


def _make_protocol(target: PaperTarget, steps: tuple[str, ...], native: dict[str, Any]) -> Protocol:
    sizes = target.dataset.sizes if target.dataset else None
    given = {} if sizes is None else _plain(sizes.model_dump(include={"train", "validation", "test"}))
    # What steps that are not our own do is part of what a result depends on.
    foreign = {name: module for name in steps if not (module := STEPS[name].__module__).startswith("boosters_eval.")}
    files = {name: getattr(sys.modules.get(module), "__file__", None) for name, module in foreign.items()}
    sources = {name: _digest(Path(file)) for name, file in files.items() if file}
    return Protocol(preprocessing=steps, sources=sources, native=native, **given)


def _digest(path: Path) -> str:
    """The content of a file, or of a folder with all that is in it."""
    content = hashlib.sha256()
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file():
            content.update(f"{file.relative_to(path)} ".encode() if path.is_dir() else b"")
            with file.open("rb") as opened:
                while block := opened.read(_MOST_READ):
                    content.update(block)
    return content.hexdigest()[:32]


def _plain(values: Any) -> Any:
    """Values of a YAML file without the digits that they were written in."""
    return json.loads(json.dumps(values))


def _describe_data(name: str, data: Stored, protocol: Protocol | None) -> dict[str, str]:
    if protocol is None:
        return {"data set": name, "test rows": f"all {data.n_samples}"}
    sizes = {"training rows": protocol.train, "validation rows": protocol.validation, "test rows": protocol.test}
    told = {what: str(count) for what, count in sizes.items() if count is not None}
    steps = {"preprocessing": ", ".join(protocol.preprocessing)} if protocol.preprocessing else {}
    return {"data set": name, **told, **steps}


def _choose_scores(metrics: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(ours for ours in metrics.values() if ours not in RESOURCES))


def _list_unknown_metrics(target: PaperTarget, metrics: Mapping[str, str]) -> tuple[str, ...]:
    reported = target.result.values if target.result else {}
    return tuple(f"the metric '{name}' is not computed here" for name in reported if name not in metrics)
