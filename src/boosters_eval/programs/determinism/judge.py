"""From a request to the matrix: a cell for each library, data set, setting and probe, compared with the plain one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from boosters_eval.core.errors import UnsupportedError
from boosters_eval.core.files import find_home
from boosters_eval.core.machine import count_cores, list_cpus
from boosters_eval.core.terms import tell
from boosters_eval.core.text import clean
from boosters_eval.datasets.catalog import BUILTIN
from boosters_eval.engine.artifacts import load_array
from boosters_eval.engine.folder import RunFolder
from boosters_eval.engine.plan import CellRef, Plan
from boosters_eval.engine.session import PlannedRun, check_names, open_session
from boosters_eval.engine.settings import RunSettings
from boosters_eval.programs.benchmark.benchmarks import make_comparison
from boosters_eval.programs.benchmark.compare import read_data_settings, several
from boosters_eval.programs.benchmark.planning import prepare_seeds
from boosters_eval.programs.benchmark.request import Settings
from boosters_eval.programs.determinism.findings import (
    ALONE,
    DeterminismFindings,
    ProbeFinding,
    ProbeQuestion,
    Sameness,
)
from boosters_eval.programs.determinism.workload import ProbedOutcome, ProbedSpec, ProbeName
from boosters_eval.runners.config import derive_seeds
from boosters_eval.runners.parameters import TrainingConfig

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from boosters_eval.core.findings import Findings
    from boosters_eval.engine.cell import Cell
    from boosters_eval.engine.folder import Run
    from boosters_eval.programs.benchmark.planning import PreparedRun
    from boosters_eval.programs.determinism.request import DeterminismRequest

DETERMINISM = "determinism"  # what these runs are read as
_DATA = ("california", "breast_cancer", "wine", "synthetic_quantile_small", "synthetic_rank_small")
_ROWS = 1_000
_BASE = TrainingConfig(n_estimators=20)
# From the smallest on: the first that shows a difference is told.
SETTINGS = {
    "nothing more": _BASE,
    "row sampling": _BASE.replace(subsample=0.7),
    "column sampling": _BASE.replace(colsample=0.7),
}
_EQUAL = 1e-12
# What each question compares: what was changed, and what it must be equal to.
PAIRS: dict[ProbeQuestion, tuple[ProbeName, ProbeName]] = {
    "again": ("again", "once"),
    "process": ("process", "once"),
    "threads again": ("threads again", "threads"),
    "threads": ("threads", "once"),
    "all threads": ("all threads", "once"),
    "rows": ("rows", "once"),
    "columns": ("columns", "once"),
    "repeated": ("repeated", "weights"),
}


def determinism(request: DeterminismRequest) -> Findings:
    prepared = prepare_probes(request)
    plan = make_plan(prepared)
    for note in prepared.notes:
        tell(f"Note: {note}")
    if request.dry_run:
        return PlannedRun.of(plan, request)
    folder = RunFolder(find_home(request.home).absolute() / "runs" / plan.run_id)

    def locate(cell: Cell, scratch: Path) -> Mapping[str, str]:
        return {**prepared.inputs(cell, scratch), "artifacts": str(folder.arrays)}

    with open_session(request, plan) as session:
        run = session.run(plan, DETERMINISM, locate)
    return DeterminismFindings(
        run=plan.run_id,
        versions={target.name: target.build.version for target in plan.targets},
        threads=count_threads(),
        probes=tuple(judge(plan, run, folder.arrays)),
        unsupported=tuple(
            dict.fromkeys(f"{it.target} on {it.spec.partition('/')[0]}: {it.reason}" for it in plan.excluded)
        ),
    )


def count_threads() -> int:
    """All of this machine's; two where it has one, so that there is something to compare."""
    return max(2, min(count_cores(), len(list_cpus())))


def prepare_probes(request: DeterminismRequest) -> PreparedRun:
    check_names(request)
    usual = [BUILTIN[name] for name in _DATA]
    small = [one.replace(subsample=_ROWS) if (one.n_samples or 0) > _ROWS else one for one in usual]
    benchmarks = make_comparison(
        several(request.datasets) if request.datasets else small,
        several(request.libraries) if request.libraries else None,
        variants=SETTINGS,
        task=request.task,
        data=read_data_settings(request),
        target=request.target,
        home=request.home,
    )
    settings = Settings(**{name: getattr(request, name) for name in RunSettings.parameters}, threads=1)
    # Variants that come out the same would be joined, and each is a setting of its own here.
    configs = tuple(config.replace(variant=None, seeds=derive_seeds(1)) for config in benchmarks.configs)
    return prepare_seeds(replace(benchmarks, name=DETERMINISM, configs=configs), 1, settings)


def make_plan(prepared: PreparedRun) -> Plan:
    """Each benchmark once for every probe."""
    every, found = count_threads(), prepared.plan
    threads: dict[ProbeName, int] = {"threads": 2, "threads again": 2, "all threads": every}
    probes = list(dict.fromkeys(probe for pair in PAIRS.values() for probe in pair))
    specs: list[ProbedSpec] = []
    refs: list[CellRef] = []
    for place, spec in enumerate(found.specs):
        fields = {name: getattr(spec, name) for name in type(spec).model_fields if name not in ("workload", "name")}
        for probe in probes:
            if probe == "all threads" and every == threads["threads"]:  # asked already
                continue
            about: dict[str, Any] = {**fields, "n_threads": threads.get(probe, 1), "probe": probe, "centered": False}
            refs += [ref._replace(spec=len(specs)) for ref in found.refs if ref.spec == place]
            specs.append(ProbedSpec(name=f"{spec.name}|{probe}", **about))
    return Plan.of(DETERMINISM, specs, refs, found.excluded, found.targets)


def judge(plan: Plan, run: Run, arrays: Path) -> Iterator[ProbeFinding]:
    """For each library, data set and question, the first setting that shows a difference."""
    ended: dict[tuple[str, str, str], dict[tuple[str, ProbeName], Any]] = {}
    names = {training.model_dump_json(): name for name, training in SETTINGS.items()}
    for ref, key in zip(plan.refs, plan.keys, strict=True):
        spec = cast("ProbedSpec", plan.specs[ref.spec])
        setting = names[spec.training.model_dump_json()]
        where = ended.setdefault((ref.target, spec.dataset, spec.task.value), {})
        where[setting, spec.probe] = run.outcomes.get(key)
    for (library, dataset, task), outcomes in ended.items():
        chance: set[str] = set()  # the settings whose model is another one anyway: no change can be told from that
        for question, (changed, plain) in PAIRS.items():
            about: dict[str, Any] = {"library": library, "dataset": dataset, "task": task, "question": question}
            found = [
                _compare(about, setting, outcomes[setting, changed], outcomes[setting, plain], arrays)
                for setting in SETTINGS
                if (setting, changed) in outcomes and (question in ALONE or setting not in chance)
            ]
            if question in ALONE:
                chance |= {one.setting for one in found if one.outcome == "different"}
            if found:
                yield min(found, key=lambda one: _ORDER.index(one.outcome))
            elif (next(iter(SETTINGS)), changed) in outcomes:
                yield ProbeFinding(**about, outcome="not supported", reason="the same seed gives another model anyway")


_ORDER: tuple[Sameness, ...] = ("different", "failed", "equal to 1e-12", "not supported", "identical")


def _compare(about: Mapping[str, Any], setting: str, changed: Any, plain: Any, arrays: Path) -> ProbeFinding:
    for one in (plain, changed):
        if not isinstance(one, ProbedOutcome):
            reason = "it has no outcome" if one is None else clean(f"{one.error_type}: {one.error_message}")
            unknown = one is not None and one.error_type == UnsupportedError.__name__
            return ProbeFinding(**about, outcome="not supported" if unknown else "failed", reason=reason)
    first, second = (load_array(arrays, one.predictions).astype(np.float64) for one in (plain, changed))
    largest, scale = float(np.abs(first - second).max()), float(np.abs(first).max())
    if not largest:
        return ProbeFinding(**about, outcome="identical")
    outcome: Sameness = "equal to 1e-12" if largest <= _EQUAL * scale else "different"
    relative = largest / scale if scale else None
    return ProbeFinding(**about, outcome=outcome, setting=setting, largest=largest, relative=relative)
