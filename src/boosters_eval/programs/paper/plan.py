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
from boosters_eval.programs.benchmark.paper_protocol import (
    STEPS,
    STOPPING_METRIC,
    Protocol,
    canonicalize_native,
    locate_steps,
)
from boosters_eval.programs.benchmark.spec import FitSpec, Timing
from boosters_eval.programs.paper.evaluate import EvaluateSpec, Scoring
from boosters_eval.programs.paper.specification import CallableRun, CommandRun, EvaluatorRun, LibraryRun, ModelRun
from boosters_eval.programs.paper.targets import data_of, format_of, known_metrics, locate_module, obstacle
from boosters_eval.runners.builds.install import resolve_competitors
from boosters_eval.runners.config import derive_seeds
from boosters_eval.runners.devices import cannot_run
from boosters_eval.runners.installed import target_of
from boosters_eval.runners.parameters import BoosterType, Device, Profile, TrainingConfig

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boosters_eval.datasets import Stored
    from boosters_eval.engine.cell import Cell, Spec, Target
    from boosters_eval.programs.paper.specification import Binding, StdOver
    from boosters_eval.programs.paper.targets import PaperTarget
    from boosters_eval.runners.base import Runner

_MOST_READ = 2**20
_MEMORY = frozenset({"peak_memory_mb", "first_use_mb"})


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
    planned = tuple(_planned(target, seeds, n_threads, allow_pickle=allow_pickle) for target in targets)
    specs: list[Spec] = []
    refs: list[CellRef] = []
    for found in planned:
        if found.spec is not None:
            refs += [CellRef(len(specs), found.carrier, seed, None) for seed in derive_seeds(found.repeats)]
            specs.append(found.spec)
    excluded = [
        Exclusion(spec=found.target.name, target=found.carrier or "none", reason=found.reason)
        for found in planned
        if found.spec is None
    ]
    known = [found.engine_target for found in planned if found.engine_target is not None]
    return PaperPlan(planned, Plan.of(name, specs, refs, excluded, known))


def _planned(target: PaperTarget, seeds: int, n_threads: int | None, *, allow_pickle: bool) -> PlannedTarget:
    try:
        reason = obstacle(target, allow_pickle=allow_pickle)
        if reason is not None:
            return PlannedTarget(target, reason)
        match target.binding:
            case LibraryRun() as run:
                return _fit(target, run, seeds, n_threads)
            case ModelRun() as run:
                return _saved(target, run, seeds, n_threads)
            case CallableRun() | CommandRun() | EvaluatorRun() as run:
                return _evaluated(target, run, seeds, n_threads, allow_pickle=allow_pickle)
            case _:
                return PlannedTarget(target, "Nothing is bound to this row.")
    except BoostersEvalError as error:
        return PlannedTarget(target, " ".join(str(error).split()))


def _fit(target: PaperTarget, run: LibraryRun, seeds: int, n_threads: int | None) -> PlannedTarget:
    """A row that a library reproduces: a cell of the workload `fit`, with a protocol."""
    config, data = _data(target)
    (runner,) = resolve_competitors([run.library]).values()
    training = TrainingConfig(**_plain(run.parameters))
    native = canonicalize_native(run.known_as, _plain(run.native))
    stopping = run.early_stopping
    if stopping is not None:
        training = training.replace(early_stopping_rounds=int(stopping.rounds))
        if stopping.metric:
            native.setdefault(STOPPING_METRIC[run.known_as], stopping.metric)
    protocol = _protocol(target, run.preprocessing, native)
    metrics = known_metrics(target, data.task)
    wanted = set(metrics.values())
    timed = any(name.endswith("_time_s") for name in wanted & set(RESOURCES))  # a time is worth nothing beside others
    spec = FitSpec(
        name=target.name,
        alone=timed or training.device is not Device.CPU,
        n_threads=resolve_threads(n_threads if n_threads is not None else training.n_threads),
        dataset=config.name,
        data_digest=data.digest,
        task=data.task,
        booster_type=BoosterType(run.booster),
        training=training,
        profile=Profile.PARITY,
        variant=None,
        n_classes=data.n_classes,
        quantiles=config.quantiles,
        categorical=data.categorical,
        has_missing=data.has_missing,
        weighted=data.weighted,
        max_categories=data.max_categories,
        split=SplitSpec(),
        metrics=tuple(dict.fromkeys(ours for ours in metrics.values() if ours not in RESOURCES)),
        primary_metric=next((ours for ours in metrics.values() if ours not in RESOURCES), primary_metric(data.task)),
        timing=Timing(timed=timed, warmup=int(timed), predict_runs=3 if timed else 1, memory=bool(_MEMORY & wanted)),
        protocol=protocol,
    )
    if run.profile == "defaults":
        left = dict.fromkeys(_left_to_library(runner, spec, run.parameters))
        spec = spec.replace(protocol=protocol.replace(native={**left, **native}))
    reason = protocol.unsupported(data.task) or cannot_run(runner, spec.request(0))
    if reason:
        return PlannedTarget(target, f"{run.library} cannot run this: {reason}.")
    stops = {} if stopping is None else {"early stopping": f"{stopping.rounds} rounds" + _on(stopping.metric)}
    device = {"device": training.device.value} if spec.uses_device else {}
    return PlannedTarget(
        target,
        spec=spec,
        carrier=runner.name,
        engine_target=target_of(runner),
        metrics=metrics,
        std_over="splits",
        conditions={**_data_conditions(config.name, data, protocol), **stops, "threads": str(spec.n_threads), **device},
        inputs={"data": str(data.path), **locate_steps(run.preprocessing)},
        repeats=seeds,
        warnings=_unknown_metrics(target, metrics),
    )


# What a library needs to stop early as told, besides the number of rounds.
_STOPPING = frozenset({"od_type", "use_best_model"})


def _left_to_library(runner: type[Runner], spec: FitSpec, given: Mapping[str, Any]) -> list[str]:
    """The native parameters that the mapping would pass although the specification does not give them."""
    request = spec.request(0)
    mapped = runner.translate(request)
    always = runner.translate(replace(request, profile=Profile.DEFAULTS)).native
    wanted = {*given, "early_stopping_rounds"}
    return [
        name
        for name, origin in mapped.origins.items()
        if name not in always and name not in _STOPPING and origin not in wanted
    ]


def _saved(target: PaperTarget, run: ModelRun, seeds: int, n_threads: int | None) -> PlannedTarget:
    """A row that a saved model reproduces. Without sizes it is scored on all rows, once: nothing would differ."""
    config, data = _data(target)
    sizes = target.dataset.sizes if target.dataset else None
    if run.preprocessing and sizes is None:
        raise ConfigError("Preprocessing is fitted on training rows: give the data set its 'sizes'.")
    protocol = None if sizes is None else _protocol(target, run.preprocessing, {})
    reason = protocol.unsupported(data.task) if protocol else None
    if reason:
        return PlannedTarget(target, f"The model cannot be scored: {reason}.")
    path = target.path_of_model()
    form = format_of(run, path)
    metrics = known_metrics(target, data.task)
    fixed = sizes is None or (sizes.test == "official" and not run.preprocessing)
    spec = EvaluateSpec(
        **_named(target),
        binding=run.model_copy(update={"model": path.name}),
        n_threads=resolve_threads(n_threads or 1),
        model=path.name,
        format=form,
        digests={"model": _digest(path)},
        scoring=Scoring(
            dataset=config.name,
            data_digest=data.digest,
            task=data.task,
            n_classes=data.n_classes,
            quantiles=config.quantiles,
            max_categories=data.max_categories,
            metrics=tuple(dict.fromkeys(ours for ours in metrics.values() if ours not in RESOURCES)),
            protocol=protocol,
        ),
    )
    drawn = (
        () if fixed else ("the model may have been trained on rows that it is tested on: these are drawn at random",)
    )
    return PlannedTarget(
        target,
        spec=spec,
        carrier=form,
        metrics=metrics,
        std_over=None if fixed else "splits",
        conditions={"model": path.name, **_data_conditions(config.name, data, protocol)},
        inputs={"data": str(data.path), "model": str(path.resolve()), **locate_steps(run.preprocessing)},
        repeats=1 if fixed else seeds,
        warnings=(*drawn, *_unknown_metrics(target, metrics)),
    )


def _evaluated(
    target: PaperTarget,
    run: CallableRun | CommandRun | EvaluatorRun,
    seeds: int,
    n_threads: int | None,
    *,
    allow_pickle: bool,
) -> PlannedTarget:
    """A row whose metrics something else returns, under the paper's names. A language model gets all cores."""
    model, digests = None, {}
    conditions = {"data set": target.dataset_name}
    if isinstance(run, EvaluatorRun):
        model = target.source_of_model()
        run = run.model_copy(update={"model": None})
    elif target.model is not None:
        model = str(Path(target.model).resolve())
    if model is not None:
        path = Path(model)
        conditions["model"] = path.name if path.exists() else model
        digests = {"model": _digest(path)} if path.exists() else {}
    if isinstance(run, CallableRun):
        file = locate_module(run.callable.partition(":")[0], target.root)
        digests |= {"function": _digest(file)} if file else {}
        conditions["callable"] = run.callable
    elif isinstance(run, CommandRun):
        digests |= {word: _digest(target.root / word) for word in run.command if (target.root / word).is_file()}
        conditions["command"] = " ".join(run.command)
    else:
        conditions["evaluator"] = run.evaluator
        text = target.root / ((target.dataset.use if target.dataset else None) or "")
        digests |= {"text": _digest(text)} if text.is_file() else {}
        seeds = 1 if run.evaluator == "perplexity" else seeds  # nothing in it is random
    spec = EvaluateSpec(
        **_named(target),
        n_threads=resolve_threads(n_threads or (-1 if isinstance(run, EvaluatorRun) else 1)),
        binding=run,
        model=conditions.get("model"),
        digests=digests,
    )
    return PlannedTarget(
        target,
        spec=spec,
        carrier=_carrier(run),
        metrics={name: name for name in spec.metrics},
        std_over="seeds",
        conditions=conditions,
        inputs={
            "root": str(target.root.resolve()),
            **({"model": model} if model else {}),
            **({"allow_pickle": "yes"} if allow_pickle else {}),
        },
        repeats=seeds,
    )


def _carrier(run: Binding) -> str:
    if isinstance(run, EvaluatorRun):
        return run.evaluator
    return "callable" if isinstance(run, CallableRun) else "command"


def _named(target: PaperTarget) -> dict[str, Any]:
    return {
        "name": target.name,
        "table": target.table.id,
        "row": target.row,
        "dataset": target.dataset,
        "metrics": tuple(target.result.values) if target.result else (),
    }


def _data(target: PaperTarget) -> tuple[Any, Stored]:
    config = resolve_dataset(data_of(target))
    return config, materialize(config)


def _protocol(target: PaperTarget, steps: tuple[str, ...], native: dict[str, Any]) -> Protocol:
    sizes = target.dataset.sizes if target.dataset else None
    given = {} if sizes is None else _plain(sizes.model_dump(include={"train", "validation", "test"}))
    return Protocol(preprocessing=steps, sources=_sources(steps), native=native, **given)


def _sources(steps: tuple[str, ...]) -> dict[str, str]:
    """Digests of the files of steps that are not our own: what they do is part of what a result depends on."""
    modules = {name: STEPS[name].__module__ for name in steps}
    files = {
        name: getattr(sys.modules.get(module), "__file__", None)
        for name, module in modules.items()
        if not module.startswith("boosters_eval.")
    }
    return {name: _digest(Path(file)) for name, file in files.items() if file}


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


def _data_conditions(name: str, data: Stored, protocol: Protocol | None) -> dict[str, str]:
    if protocol is None:
        return {"data set": name, "test rows": f"all {data.n_samples}"}
    sizes = {"training rows": protocol.train, "validation rows": protocol.validation, "test rows": protocol.test}
    told = {what: str(count) for what, count in sizes.items() if count is not None}
    steps = {"preprocessing": ", ".join(protocol.preprocessing)} if protocol.preprocessing else {}
    return {"data set": name, **told, **steps}


def _on(metric: str | None) -> str:
    return f" on {metric}" if metric else ""


def _unknown_metrics(target: PaperTarget, metrics: Mapping[str, str]) -> tuple[str, ...]:
    reported = target.result.values if target.result else {}
    return tuple(f"the metric '{name}' is not computed here" for name in reported if name not in metrics)
