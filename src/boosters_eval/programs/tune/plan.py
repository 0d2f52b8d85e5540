"""From a request to the plan: each configuration in each library, on each split, inside its training rows and outside.

A trial is an ordinary benchmark, and one of its fits an ordinary cell. The inner cells of a trial learn from a part of
the training rows and are scored on the rest of them; the outer ones learn from all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import ConfigError, DatasetError, UnsupportedError
from boosters_eval.core.terms import the
from boosters_eval.datasets import open_stored, split_rows
from boosters_eval.datasets.splits import split_within
from boosters_eval.engine.plan import CellRef, Exclusion, Plan
from boosters_eval.engine.session import check_names
from boosters_eval.programs.benchmark.benchmarks import make_comparison
from boosters_eval.programs.benchmark.compare import read_data_settings, read_training
from boosters_eval.programs.benchmark.planning import fit_specs, prepare
from boosters_eval.programs.benchmark.spec import FitSpec, metric_names
from boosters_eval.programs.tune.space import BESIDES, SearchRange, choose_axes, draw, find_own
from boosters_eval.runners.parameters import Profile, TrainingConfig

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from boosters_eval.programs.benchmark.benchmarks import Benchmarks
    from boosters_eval.programs.benchmark.planning import PreparedRun
    from boosters_eval.programs.tune.request import TuneRequest
    from boosters_eval.runners.config import BenchmarkConfig

TUNE = "tune"  # what these runs are read as
ALWAYS = ("n_threads", "seed", "device")  # of what is given, all that a library's own defaults leave
DEFAULT = 0  # the number of the trial that is each library's own defaults


@dataclass(frozen=True)
class Trial:
    """A configuration on one data set: what it sets, by library; no library has another one under this number."""

    dataset: str
    number: int  # 0: each library's own defaults
    values: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Search:
    """Everything that may be tried, and a plan for as many trials as are wanted."""

    request: TuneRequest
    base: Benchmarks  # each data set with each library's own defaults
    training: TrainingConfig  # what a trial is, apart from what is searched
    axes: Mapping[str, tuple[SearchRange, ...]]  # by library

    @classmethod
    def of(cls, request: TuneRequest) -> Search:
        check_names(request)
        training = read_training(request)
        if request.early_stopping is not None:
            training = training.replace(early_stopping_rounds=request.early_stopping)
        metric = [] if request.metric is None else metric_names([request.metric])
        base = make_comparison(
            request.datasets,
            request.libraries,
            training=TrainingConfig(**{name: getattr(training, name) for name in ALWAYS}),
            metrics=metric,
            cv=request.cv,
            task=request.task,
            data=read_data_settings(request),
            target=request.target,
            split=request.split,
            splits=request.splits,
            profile=Profile.DEFAULTS,
            home=request.home,
        )
        if metric:
            decided = (it.replace(dataset=it.dataset.replace(primary_metric=metric[0])) for it in base.configs)
            base = replace(base, configs=tuple(decided))
        if request.inner > 1 and any(config.is_by_time for config in base.configs):
            raise ConfigError(
                f"{the('inner')} must be 1 where rows are split by time: only the latest come after others."
            )
        libraries = {name: base.runner(name) for config in base.configs for name in config.libraries}
        if request.space == "own":
            axes = {name: find_own(runner.library()) for name, runner in libraries.items()}
        else:
            common = choose_axes(training.growth_strategy.value, _find_fixed(request))
            axes = dict.fromkeys(libraries, common)
        return cls(request, replace(base, name=TUNE), training, axes)

    def list_trials(self, trials: int) -> Iterator[tuple[Trial, BenchmarkConfig]]:
        """Each benchmark, with the trial that it is of; of a library's own parameters, one for each library."""
        for config in self.base.configs:
            yield Trial(config.dataset.name, DEFAULT, {name: {} for name in config.libraries}), config
            for at in range(trials):
                values = {name: self.find_values(name, at + 1, trials) for name in config.libraries}
                trial = Trial(config.dataset.name, at + 1, values)
                for name, made in self._configure(f"{config.name}-t{at + 1}", values):
                    yield trial, config.replace(**made, name=name)

    def find_values(self, library: str, number: int, trials: int) -> Mapping[str, Any]:
        """What a trial sets in a library; its own defaults set nothing."""
        if not number:
            return {}
        besides = BESIDES.get(self.base.runner(library).library(), {}) if self.request.space == "own" else {}
        return {**draw(self.axes[library], trials, self.request.sampler)[number - 1], **besides}

    def _configure(self, name: str, values: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
        if self.request.space == "common":
            training = self.training.replace(**next(iter(values.values())))
            yield name, {"training": training, "profile": Profile.PARITY}
            return
        for library, own in values.items():
            yield f"{name}-{library}", {"native": dict(own), "libraries": (library,)}

    def prepare(self, trials: int) -> PreparedRun:
        """The plan with so many trials. A library that cannot carry out all of them takes no part."""
        found = list(self.list_trials(trials))
        benchmarks = replace(self.base, configs=tuple(config for _, config in found))
        prepared = prepare(benchmarks, self.request.seeds, self.request)
        plan, names = prepared.plan, {config.name for trial, config in found if trial.number}
        lacking = {(self._dataset(one.spec), one.target): one for one in plan.excluded}
        refs = [ref for ref in plan.refs if (self._dataset(plan.specs[ref.spec].name), ref.target) not in lacking]
        if not refs:
            why = "; ".join(f"{one.target}: {one.reason}" for one in lacking.values())
            raise UnsupportedError(f"Nothing can be tuned: {why or 'no library is left'}.")
        specs = list(fit_specs(plan).values())
        self._check_inner(prepared, refs)
        every, cells = list(specs), list(refs)
        for part in range(1, self.request.inner + 1):
            cells += [ref._replace(spec=len(every) + ref.spec) for ref in refs]
            every += [spec.replace(name=f"{spec.name}~{part}", inner=part) for spec in specs]
        excluded = [Exclusion(spec=data, target=name, reason=one.reason) for (data, name), one in lacking.items()]
        notes = tuple(note for note in prepared.notes if not any(note.endswith(f" in {name}") for name in names))
        made = Plan.of(TUNE, every, cells, excluded, plan.targets)
        return replace(prepared, plan=made, notes=notes)

    def _check_inner(self, prepared: PreparedRun, refs: Sequence[CellRef]) -> None:
        """Refuse, once, training rows that cannot be split again: too few times or groups."""
        for at, spec in enumerate(prepared.plan.specs):
            if not isinstance(spec, FitSpec) or spec.split.kind == "random" or "-t" in spec.name:
                continue
            table = open_stored(prepared.inputs.stored[spec.dataset].path)
            for seed, fold, part in dict.fromkeys(ref[2:] for ref in refs if ref.spec == at):
                outer = split_rows(table, spec.task, spec.split, seed, fold, part=part)
                try:
                    for number in range(1, self.request.inner + 1):
                        split_within(table, spec.task, spec.split.kind, outer, seed, number)
                except DatasetError as error:
                    raise ConfigError(
                        f"{spec.name} cannot be tuned: its training rows must be split once more, by"
                        f" {spec.split.kind} '{spec.split.column}'. {error}"
                    ) from None

    def _dataset(self, spec: str) -> str:
        """The name of the benchmark that a trial belongs to."""
        return next(
            config.name for config in self.base.configs if spec == config.name or spec.startswith(f"{config.name}-t")
        )


def _find_fixed(request: TuneRequest) -> set[str]:
    """The parameters that were given a value, which they keep."""
    said = {part.partition("=")[0].strip() for words in request.param for part in words.split(",")}
    return said | (set() if request.training is None else request.training.model_fields_set)
