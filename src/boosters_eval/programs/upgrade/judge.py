"""From two builds to the answer: identical, drift, changed or failing, cell by cell; costs; and saved models."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from packaging.version import InvalidVersion, Version

from boosters_eval.core.files import check_regular
from boosters_eval.core.request import Repeat
from boosters_eval.core.terms import tell
from boosters_eval.core.text import join_words
from boosters_eval.datasets import open_stored
from boosters_eval.engine.artifacts import load_array, locate_array, save_array
from boosters_eval.engine.cell import make_key
from boosters_eval.engine.plan import CellRef, Plan
from boosters_eval.engine.session import PlannedRun, open_session
from boosters_eval.metrics import find, label
from boosters_eval.metrics.task import Task
from boosters_eval.programs.benchmark.comparisons import compare_rows
from boosters_eval.programs.benchmark.evidence import FitEvidence
from boosters_eval.programs.benchmark.planning import fit_specs
from boosters_eval.programs.benchmark.records import BenchmarkError
from boosters_eval.programs.benchmark.runs import collect_fits
from boosters_eval.programs.upgrade.findings import (
    ChangedDefault,
    ReloadedModel,
    UpgradeCell,
    UpgradeCost,
    UpgradeFindings,
)
from boosters_eval.programs.upgrade.plan import FIRST, NEW, OLD, UPGRADE, locate_arrays, plan_again, prepare_upgrade
from boosters_eval.programs.upgrade.workload import SAVED, ReloadOutcome, ReloadSpec, UpgradeResult, unstamp
from boosters_eval.runners.result import BenchmarkResult
from boosters_eval.stats.significance import compare_times

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from boosters_eval.core.findings import Findings
    from boosters_eval.engine.cell import Cell, Failure
    from boosters_eval.engine.folder import Run
    from boosters_eval.engine.session import Session
    from boosters_eval.programs.benchmark.results import ResultCollection
    from boosters_eval.programs.benchmark.spec import FitSpec
    from boosters_eval.programs.upgrade.findings import CellState
    from boosters_eval.programs.upgrade.plan import PreparedUpgrade
    from boosters_eval.programs.upgrade.request import UpgradeRequest
    from boosters_eval.programs.upgrade.workload import UpgradeSpec

    PredictedArray = NDArray[Any]
    FitEnd = BenchmarkResult | BenchmarkError

_ALPHA = 0.05
_COSTS = {
    "train_time_s": "training time",
    "predict_time_s": "prediction time",
    "peak_memory_mb": "memory",
    "model_size_mb": "model size",
}
_MATTERS = 0.05  # a ratio nearer to 1 is no difference: all cells of a side share a process, and so its chance
_LEAST = 3  # cells from which a cost is told
_LONGEST = 300  # of a reason
_NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?")
_CLOSE = 1e-5  # of numbers in texts: a start score is learned, and rounded
_ENDED_IN: dict[tuple[bool, bool], CellState] = {
    (True, True): "fails in both",
    (False, True): "fails",
    (True, False): "newly works",
}
# Ends of a cell that tell of the machine or of the limits that were set, not of the library.
_NOT_BY_LIBRARY = frozenset({"InvalidAnswer", "Killed", "MemoryError", "MemoryLimit", "Timeout", "WorkerDied"})


def check_upgrade(request: UpgradeRequest) -> Findings:
    prepared = prepare_upgrade(request)
    for note in prepared.notes:
        tell(f"Note: {note}")
    if request.dry_run:
        return PlannedRun.of(prepared.plan, request)
    return run_upgrade(prepared)


def run_upgrade(prepared: PreparedUpgrade) -> UpgradeFindings:
    request = prepared.request
    with open_session(request, prepared.plan) as session:
        judge = _Judge(prepared, session)
        cells, models = judge.judge_cells(), judge.reload_models()
    builds = {side: target.build for side, target in prepared.targets.items()}
    said = judge.said
    findings = UpgradeFindings(
        library=prepared.library,
        old=builds[OLD].version,
        new=builds[NEW].version,
        old_name=request.old,
        new_name=request.new,
        same_code=builds[OLD].digest == builds[NEW].digest,
        pin="",
        tolerance=request.tolerance,
        seeds=request.seeds,
        runs=tuple(judge.runs),
        cells=tuple(cells),
        costs=tuple(weigh_costs(judge.results)),
        models=tuple(models),
        unsaved=judge.unsaved,
        defaults=tuple(judge.list_defaults()),
        said_by_old=tuple(line for line in said[OLD] if line not in said[NEW]),
        said_by_new=tuple(line for line in said[NEW] if line not in said[OLD]),
        said_by_both=tuple(line for line in said[NEW] if line in said[OLD]) if request.params is not None else (),
        unsupported=tuple(dict.fromkeys(f"{it.spec}: {it.reason}" for it in prepared.plan.excluded)),
        notes=prepared.notes,
    )
    return findings.replace(pin=write_pin(prepared.distribution, findings))


def write_pin(distribution: str, findings: UpgradeFindings) -> str:
    """What to write where a version is pinned; empty where no pin tells the two apart, or nothing was answered.

    Where something changes it is OLD alone: of the releases between, any may be the first that does.
    """
    try:
        old, new = (Version(Version(one).public) for one in (findings.old, findings.new))  # no pin has a local part
    except InvalidVersion:
        return ""
    if findings.answer == "unanswered":
        return ""
    if findings.answer == "safe":
        most = max(old, new)
        following = f"{f'{most.epoch}!' if most.epoch else ''}{most.major}.{most.minor + 1}"
        return f"{distribution}>={min(old, new)},<{following}"
    return "" if old == new else f"{distribution}=={old}"


@dataclass(frozen=True)
class Drift:
    """How far two sets of predictions are apart."""

    largest: float = 0.0
    ulps: int = 0
    deviations: float | None = 0.0  # of the first ones; None: they are all alike, or of another shape

    @classmethod
    def of(cls, old: PredictedArray, new: PredictedArray) -> Drift:
        """In the precision that both have: that of float32 where all values fit into it."""
        if old.shape != new.shape:
            return cls(math.inf, 2**31, None)
        if np.array_equal(old, new, equal_nan=True):
            return cls()
        with np.errstate(invalid="ignore"):
            away = np.abs(new.astype(np.float64) - old.astype(np.float64))
        if not np.isfinite(away).all():  # a model of the user may say anything
            return cls(math.inf, 2**31, None)
        single = all(np.array_equal(side.astype(np.float32), side) for side in (old, new))
        kind, bits = (np.float32, np.int32) if single else (np.float64, np.int64)
        steps = [_count_steps(side.astype(kind).ravel().view(bits)) for side in (old, new)]
        ulps = max(abs(one - two) for one, two in zip(*steps, strict=True))
        spread = np.std(old.astype(np.float64), axis=0)
        return cls(float(away.max()), ulps, float((away / spread).max()) if np.all(spread > 0) else None)

    @classmethod
    def worst(cls, found: Sequence[Drift]) -> Drift:
        """The largest of several; what has no scale outweighs what has one."""
        scales = [one.deviations for one in found]
        worst = None if None in scales else max(cast("list[float]", scales))
        return cls(max(one.largest for one in found), max(one.ulps for one in found), worst)

    def state(self, tolerance: float) -> CellState:
        if not self.largest:
            return "identical"
        return "drift" if self.deviations is not None and self.deviations <= tolerance else "changed"

    @property
    def fields(self) -> dict[str, Any]:
        finite = math.isfinite(self.largest)
        return {"largest": self.largest if finite else None, "ulps": self.ulps, "deviations": self.deviations}


def _count_steps(bits: PredictedArray) -> list[int]:
    """Floats as numbers of steps from zero, in Python's integers: from one sign to the other there may be 2**64."""
    least = int(np.iinfo(bits.dtype).min)
    return [least - each if each < 0 else each for each in bits.tolist()]


class _Judge:
    """What was run for one answer, and what it shows."""

    def __init__(self, prepared: PreparedUpgrade, session: Session) -> None:
        self.prepared, self.session = prepared, session
        self.runs: list[str] = []
        self.unsaved = ""
        self.results = self._train(prepared.plan)
        self.arrays = locate_arrays(prepared.request, prepared.plan)

    def _train(self, plan: Plan) -> ResultCollection:
        run = self.session.run(plan, UPGRADE, self.prepared.locate(plan), predictions=True)
        self.runs.append(plan.run_id)
        return collect_fits(run)

    @property
    def said(self) -> dict[str, list[str]]:
        """What each version complains of."""
        found: dict[str, dict[str, None]] = {OLD: {}, NEW: {}}
        for result in self.results.results:
            if isinstance(result, UpgradeResult):
                found[result.library] |= dict.fromkeys(result.said)
        return {side: list(lines) for side, lines in found.items()}

    def judge_cells(self) -> list[UpgradeCell]:
        request = self.prepared.request
        brought = bool(request.datasets) or request.suite is not None
        cells = judge_pairs(self.prepared.plan, self.results, request.tolerance, brought=brought)
        changed = [cell.name for cell in cells if cell.state == "changed"]
        if not changed:
            return cells
        shaky = self._find_shaky(changed)
        certain = [name for name in changed if OLD not in shaky[name]]
        causes = self._find_causes([name for name in certain if not shaky[name]])
        found = []
        for cell in cells:
            if cell.name in certain:
                weighed = weigh(self.results, cell, self._spec(cell.name).primary_metric, _ALPHA / len(certain))
                reason = "the same seed gives another model each time" if shaky[cell.name] else ""
                found.append(weighed.replace(cause=causes.get(cell.name, ""), reason=reason))
            else:
                found.append(cell.replace(state="not repeatable") if cell.name in shaky else cell)
        return found

    def _spec(self, name: str) -> UpgradeSpec:
        return cast("UpgradeSpec", fit_specs(self.prepared.plan)[name])

    def _find_shaky(self, names: Sequence[str]) -> dict[str, set[str]]:
        """By cell, the sides that do not say the same when they are trained again with the same seed."""
        again = self._train(plan_again(self.prepared, {name: {} for name in names}, (OLD, NEW)))
        said = {result.key: result.predictions_digest for result in again.results}
        found: dict[str, set[str]] = {name: set() for name in names}
        for one in self.results.results:
            if one.config_name in found and one.seed == FIRST and said.get(one.key) != one.predictions_digest:
                found[one.config_name].add(one.library)
        return found

    @cached_property
    def differing(self) -> dict[str, dict[str, tuple[str, str]]]:
        """By cell, the parameters that the models of both versions tell, and that do not have the same value."""
        told: dict[str, dict[str, Mapping[str, str]]] = {}
        for one in self.results.results:
            if isinstance(one, UpgradeResult) and one.effective:
                told.setdefault(one.config_name, {})[one.library] = one.effective
        return {name: find_differing(sides[OLD], sides[NEW]) for name, sides in told.items() if len(sides) == 2}

    def list_defaults(self) -> Iterator[ChangedDefault]:
        """Each parameter that has another value, with those of the first cell where it has."""
        for parameter in dict.fromkeys(name for values in self.differing.values() for name in values):
            cells = {cell: values[parameter] for cell, values in self.differing.items() if parameter in values}
            old, new = next(iter(cells.values()))
            yield ChangedDefault(name=parameter, old=old, new=new, cells=tuple(cells))

    def _find_causes(self, names: Sequence[str]) -> dict[str, str]:
        """The defaults that explain a change: NEW with all values of OLD says the same, and not without one of them."""
        values = {
            name: {each: json.loads(old) for each, (old, _) in self.differing.get(name, {}).items() if old != "null"}
            for name in names
        }
        explained = self._explain({name: native for name, native in values.items() if native})
        needed: dict[str, list[str]] = {name: [] for name in explained}
        several = {name: values[name] for name in explained if len(values[name]) > 1}
        for parameter in dict.fromkeys(each for native in several.values() for each in native):
            without = {
                name: {each: value for each, value in native.items() if each != parameter}
                for name, native in several.items()
                if parameter in native
            }
            for name in without.keys() - self._explain(without):
                needed[name].append(parameter)
        return {name: join_words(needed[name] or values[name]) for name in explained}

    def _explain(self, native: Mapping[str, Mapping[str, Any]]) -> set[str]:
        """The cells in which NEW says the same as OLD if it is passed these parameters."""
        if not native:
            return set()
        again = self._train(plan_again(self.prepared, native, (NEW,)))
        before = {(one.config_name, one.repeat): one for one in self.results.results if one.library == OLD}
        found = set()
        for one in again.results:
            sides = [self.results.evidence.of(before[one.config_name, one.repeat]), again.evidence.of(one)]
            if all(isinstance(side, FitEvidence) for side in sides):
                drift = Drift.of(*(cast("FitEvidence", side).predictions for side in sides))
                found |= {one.config_name} if drift.state(self.prepared.request.tolerance) != "changed" else set()
        return found

    def reload_models(self) -> list[ReloadedModel]:
        """Each saved model in both versions, on the rows that its own split is tested on."""
        specs: list[ReloadSpec] = []
        saved = {
            (one.config_name, one.library): one
            for one in self.results.results
            if isinstance(one, UpgradeResult) and (one.models or one.unsaved)
        }
        for result in saved.values():
            evidence = self.results.evidence.of(result)
            self.unsaved = self.unsaved or result.unsaved
            if not result.models or not isinstance(evidence, FitEvidence):
                continue
            spec = self._spec(result.config_name)
            table = open_stored(self.prepared.inputs.stored[spec.dataset].path)
            rows = np.ascontiguousarray(table.x[evidence.split.rows])
            specs.append(
                ReloadSpec(
                    name=f"{result.config_name}|{result.library}",
                    endings=SAVED[self.prepared.library][0][:1] * len(result.models),
                    models=result.models,
                    rows=save_array(self.arrays, rows),
                    task=spec.task,
                    n_classes=spec.n_classes,
                    quantiles=spec.quantiles,
                    categorical=spec.categorical,
                    booster_type=spec.booster_type,
                )
            )
        specs += self._specify_own()
        return [*self._judge_models(specs)] if specs else []

    def _specify_own(self) -> Iterator[ReloadSpec]:
        """The models of the user, which predict as they are: numbers, or what they have for classes."""
        project = self.prepared.project
        if project.rows is None:
            return
        rows = save_array(self.arrays, np.ascontiguousarray(open_stored(project.rows.path).x))
        for name, path in project.models.items():
            check_regular(path)
            yield ReloadSpec(
                name=f"{name}|user",
                endings=(path.suffix.lower(),),
                models=(save_array(self.arrays, np.frombuffer(path.read_bytes(), dtype=np.uint8)),),
                rows=rows,
                task=Task.MULTICLASS if self.prepared.library == "boosters" else Task.REGRESSION,
                categorical=project.rows.categorical,
            )

    def _judge_models(self, specs: Sequence[ReloadSpec]) -> Iterator[ReloadedModel]:
        refs = [CellRef(place, side, FIRST, None) for place in range(len(specs)) for side in (OLD, NEW)]
        plan = Plan.of(f"{UPGRADE}-models", specs, refs, (), self.prepared.targets.values())
        arrays = locate_arrays(self.prepared.request, plan)

        def locate(cell: Cell, scratch: Path) -> Mapping[str, str]:  # noqa: ARG001 (the signature of a locator)
            spec = cast("ReloadSpec", cell.spec)
            files = {f"model{at}": digest for at, digest in enumerate(spec.models)} | {"rows": spec.rows}
            located = {name: str(locate_array(self.arrays, digest)) for name, digest in files.items()}
            return {**located, "artifacts": str(arrays)}

        run = self.session.run(plan, UPGRADE, locate)
        self.runs.append(plan.run_id)
        for spec in specs:
            yield self._judge_model(spec, run, arrays)

    def _judge_model(self, spec: ReloadSpec, run: Run, arrays: Path) -> ReloadedModel:
        name, _, saved_by = spec.name.rpartition("|")
        about: dict[str, Any] = {"name": name, "saved_by": saved_by}
        sides = (NEW, OLD) if saved_by == NEW else (OLD, NEW)  # who can read it for sure, and who should
        old, new = (run.outcomes.get(make_key(spec.name, side, FIRST, None)) for side in sides)
        if not isinstance(old, ReloadOutcome) or not isinstance(new, ReloadOutcome):
            failed = [cast("Failure | None", one) for one in (new, old) if not isinstance(one, ReloadOutcome)]
            why = "" if failed[0] is None else _explain(failed[0])
            ends = not isinstance(old, ReloadOutcome), not isinstance(new, ReloadOutcome)
            lost = any(one is None or _is_foreign(one) for one in failed)
            return ReloadedModel(**about, state="did not run" if lost else _ENDED_IN[ends], reason=why)
        drift = Drift.of(*(load_array(arrays, one.predictions) for one in (old, new)))
        return ReloadedModel(**about, state=drift.state(self.prepared.request.tolerance), **drift.fields)


def find_differing(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """The parameters that both models tell, and whose values are not the same, apart from how these are written."""
    found = {name: (value, new[name]) for name, value in old.items() if name in new}
    return {name: pair for name, pair in found.items() if pair[0] != pair[1] and not _is_alike(*pair)}


def _is_alike(first: str, second: str) -> bool:
    words = [_NUMBER.sub("", text).strip('"[]() ') for text in (first, second)]
    one, other = ([float(each) for each in _NUMBER.findall(text)] for text in (first, second))
    return words[0] == words[1] and len(one) == len(other) and np.allclose(one, other, rtol=_CLOSE)


def judge_pairs(plan: Plan, results: ResultCollection, tolerance: float, *, brought: bool) -> list[UpgradeCell]:
    """What became of each cell, before anything that changed is looked at more closely.

    What neither version can train is unanswered where the user has brought it, and no part of the matrix.
    """
    every: tuple[FitEnd, ...] = (*results.results, *results.errors)
    ended = {(one.config_name, one.library, one.repeat): one for one in every}
    specs = fit_specs(plan)
    found: dict[str, dict[str, dict[Repeat, FitEnd | None]]] = {}
    for ref in plan.refs:
        name, repeat = plan.specs[ref.spec].name, Repeat(ref.seed, ref.fold)
        found.setdefault(name, {}).setdefault(ref.target, {})[repeat] = ended.get((name, ref.target, repeat))
    return [_Pair(specs[name], sides, results).judge(tolerance, brought=brought) for name, sides in found.items()]


@dataclass(frozen=True)
class _Pair:
    """One cell of the matrix: by side and repeat, how each fit ended; None: it did not."""

    spec: FitSpec
    sides: Mapping[str, Mapping[Repeat, FitEnd | None]]
    results: ResultCollection

    def judge(self, tolerance: float, *, brought: bool) -> UpgradeCell:
        begun: dict[str, Any] = {"name": self.spec.name, "task": self.spec.task}
        if self.sides.keys() != {OLD, NEW}:
            state: CellState = "newly works" if NEW in self.sides else "fails"
            return UpgradeCell(**begun, state=state, reason="one version does not support it")
        failed = {side: self._list_failures(side) for side in (OLD, NEW)}
        if any(failed.values()):
            first = (failed[NEW] or failed[OLD])[0]
            state = _ENDED_IN[bool(failed[OLD]), bool(failed[NEW])]
            if any(map(_is_foreign, (*failed[OLD], *failed[NEW]))):
                state = "did not run"
            elif state == "fails in both" and not brought:
                state = "works in neither"
            return UpgradeCell(**begun, state=state, reason=_explain(first))
        drifts: list[Drift] = []
        for repeat, old in self.sides[OLD].items():
            said = [self._predictions(one) for one in (old, self.sides[NEW][repeat])]
            lost = next((one for one in said if isinstance(one, str)), None)
            if lost is not None:
                return UpgradeCell(**begun, state="did not run", reason=lost)
            drifts.append(Drift.of(*cast("list[PredictedArray]", said)))
        drift, metric = Drift.worst(drifts), self.spec.primary_metric
        scores = {
            side: [cast("BenchmarkResult", one).metrics[metric] for one in self.sides[side].values()]
            for side in (OLD, NEW)
        }
        means = {side: math.fsum(values) / len(values) for side, values in scores.items()}
        return UpgradeCell(
            **begun, state=drift.state(tolerance), repeats=len(drifts), **drift.fields, metric=label(metric), **means
        )

    def _list_failures(self, side: str) -> list[BenchmarkError]:
        return [one for one in self.sides[side].values() if isinstance(one, BenchmarkError)]

    def _predictions(self, ended: FitEnd | None) -> PredictedArray | str:
        """What was said of the rows, or why nobody knows."""
        if not isinstance(ended, BenchmarkResult):
            return "it has no outcome"
        found = self.results.evidence.of(ended)
        return found.predictions if isinstance(found, FitEvidence) else found.reason


def weigh(results: ResultCollection, cell: UpgradeCell, metric: str, alpha: float) -> UpgradeCell:
    """Whether what changed got better or worse, by the rows."""
    known = find(metric)
    if known is None:
        return cell.replace(verdict="cannot say")
    found = {
        side: [one for one in results.results if (one.config_name, one.library) == (cell.name, side)]
        for side in (OLD, NEW)
    }
    by: dict[str, Any] = {"higher_is_better": known.higher_is_better, "alpha": alpha, "evidence": results.evidence}
    pair = compare_rows(found, metric, **by).get(NEW, OLD)
    sign = -1 if known.higher_is_better else 1
    low, high = sorted(sign * one for one in pair.percent_interval) if pair.percent_interval else (None, None)
    return cell.replace(
        verdict="cannot say" if pair.verdict == "inconclusive" else pair.verdict,
        percent=None if pair.percent is None else sign * pair.percent,
        percent_low=low,
        percent_high=high,
    )


def weigh_costs(results: ResultCollection) -> Iterator[UpgradeCost]:
    """Times and sizes of NEW over those of OLD: a ratio per cell, and the mean of these with its interval."""
    for metric, quantity in _COSTS.items():
        logs: dict[str, list[float]] = {}
        measured = {
            (one.config_name, one.repeat, one.library): value
            for one in results.results
            if (value := getattr(one, metric)) and (not metric.endswith("time_s") or one.fairly_timed)
        }
        for (name, repeat, side), value in measured.items():
            other = measured.get((name, repeat, NEW))
            if side == OLD and other is not None:
                logs.setdefault(name, []).append(math.log(other / value))
        if len(logs) < _LEAST:
            reason = "other programs used the processors" if metric.endswith("time_s") else "too few cells have it"
            yield UpgradeCost(quantity=quantity, cells=len(logs), reason=reason)
            continue
        ratios = [math.exp(math.fsum(each) / len(each)) for each in logs.values()]
        pair = compare_times(ratios, [1.0] * len(ratios), alpha=_ALPHA / len(_COSTS))
        low, high = pair.interval or (None, None)
        least = 0.0 if metric == "model_size_mb" else _MATTERS  # a size does not depend on chance
        yield UpgradeCost(
            quantity=quantity,
            ratio=pair.ratio,
            low=low,
            high=high,
            cells=len(ratios),
            told_apart=low is not None and high is not None and (low > 1 + least or high < 1 / (1 + least)),
        )


def _is_foreign(failure: Failure | BenchmarkError) -> bool:
    """Whether a cell was ended by something else than its library, of which it says nothing."""
    before = ("start", "load") if isinstance(failure, BenchmarkError) else ("start",)
    return failure.error_type in _NOT_BY_LIBRARY or failure.phase in before


def _explain(failure: Failure | BenchmarkError) -> str:
    """The first line of what was said; a trace of calls may follow it."""
    first = next((line for line in failure.error_message.splitlines() if line.strip()), "")
    return unstamp(f"{failure.error_type}: {first}")[:_LONGEST]
