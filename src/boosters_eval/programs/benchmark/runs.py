"""From a prepared run to its results, and the results of earlier runs."""

from __future__ import annotations

import contextlib
import time
import warnings
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from boosters_eval.core import machine
from boosters_eval.core.errors import BoostersEvalWarning, ConfigError, RunError
from boosters_eval.core.machine import MachineInfo
from boosters_eval.core.terms import tell
from boosters_eval.core.text import add_article, count_of
from boosters_eval.datasets.config import DataAudit
from boosters_eval.engine.cell import Failure
from boosters_eval.engine.execute import Mode
from boosters_eval.engine.facts import format_now
from boosters_eval.engine.journal import pause_collection
from boosters_eval.engine.observer import Observer
from boosters_eval.engine.runs import RunKind, find_folder, find_run, load_verified
from boosters_eval.engine.session import KnownOutcomes, choose_mode, is_elsewhere, open_session
from boosters_eval.metrics.catalog import RESOURCES
from boosters_eval.programs.benchmark.fit import Fit
from boosters_eval.programs.benchmark.planning import check_devices, fit_specs, prepare_seeds
from boosters_eval.programs.benchmark.records import BenchmarkError, RunMetadata, Unavailable, Unsupported
from boosters_eval.programs.benchmark.results import ResultCollection
from boosters_eval.programs.benchmark.reuse import digest_program, find_finished
from boosters_eval.programs.benchmark.seeds import grow
from boosters_eval.programs.benchmark.spec import FitSpec, identity_of
from boosters_eval.runners.result import BenchmarkResult, as_result

if TYPE_CHECKING:
    from pathlib import Path

    from boosters_eval.core.machine import Disturbance
    from boosters_eval.engine.cell import Outcome
    from boosters_eval.engine.folder import Run
    from boosters_eval.engine.observer import PhaseStarted
    from boosters_eval.engine.runs import Competing
    from boosters_eval.engine.session import Session
    from boosters_eval.programs.benchmark.planning import PreparedRun


BENCHMARK = "benchmark"  # what these runs are read as
_NAMED = {"spec", "target"}  # by other fields in the error of a benchmark


def execute_prepared(prepared: PreparedRun) -> ResultCollection:
    check_devices(prepared.plan)
    timed_here = prepared.settings.timing_mode and not is_elsewhere(prepared.settings)
    found = machine.find_disturbances() if timed_here else ()
    for item in found:
        warnings.warn(item.warning, BoostersEvalWarning, stacklevel=3)
    with open_session(prepared.settings, prepared.plan) as session:
        growth = prepared.growth
        if growth is None:
            return _judge_by(prepared, collect(run_once(session, prepared, found)))

        begin, first = format_now(), _FirstCell()
        looks: list[Run] = []  # each has the outcomes of those before it

        def look(seeds: int) -> ResultCollection:
            following = prepare_seeds(prepared.benchmarks, seeds, prepared.settings)
            before = looks[-1] if looks else None
            known = KnownOutcomes()
            if before is not None:
                origin = None if before.facts.started_at >= begin else before.facts
                known = KnownOutcomes(before.outcomes, before.machines, origin, before.kept_in)
            run = run_once(
                session,
                following,
                found,
                known=known,
                alpha=growth.rule.level,
                rule=growth.sentence,
                extends="" if before is None else before.plan.run_id,
                observer=first,
            )
            looks.append(run)
            return _judge_by(prepared, collect(run))

        return grow(look, growth.rule, budget_s=growth.budget_s, pairs=growth.pairs, say=tell, began=first.began)


def _judge_by(prepared: PreparedRun, results: ResultCollection) -> ResultCollection:
    """The results with the margin that was asked for now; an earlier attempt may have had another."""
    asked = {"margin": getattr(prepared.settings, "margin", ()) or None}
    results.metadata = results.metadata.model_copy(update=asked)
    return results


class _FirstCell(Observer):
    """When the first cell of a run began: before that, nothing but imports happens."""

    def __init__(self) -> None:
        self._at: float | None = None

    def phase(self, event: PhaseStarted) -> None:  # noqa: ARG002 (any cell)
        self._at = self._at or time.monotonic()

    def began(self) -> float:
        return self._at or time.monotonic()


def run_once(
    session: Session,
    prepared: PreparedRun,
    disturbances: tuple[Disturbance, ...] = (),
    *,
    known: KnownOutcomes | None = None,
    alpha: float | None = None,
    rule: str = "",
    extends: str = "",
    kind: str = BENCHMARK,
    observer: Observer | None = None,
) -> Run:
    """Carry out exactly this plan; what is `known` of its cells, from a run with the same inputs, is copied."""
    settings, plan, new = prepared.settings, prepared.plan, False
    found: dict[str, Any] = {
        "disturbances": disturbances,
        "extends": extends,
        "unavailable": prepared.benchmarks.unavailable,
        "margin": getattr(settings, "margin", ()),
        "audits": {name: it.model_dump(mode="json", exclude_defaults=True) for name, it in prepared.audits.items()},
    }
    facts = {"program": digest_program(), **{name: value for name, value in found.items() if value}}
    if alpha is not None:
        facts |= {"alpha": alpha, "seeds_rule": rule}
    earlier = find_folder(plan, settings.home) if choose_mode(settings) is not Mode.NEW else None
    if earlier is not None and (judged := earlier.facts(earlier.attempts()[-1])).alpha != alpha:
        # That attempt was judged at another level and its record is never rewritten, so its outcomes are copied.
        loaded, given = earlier.load(), known or KnownOutcomes()
        machines = {**loaded.machines, **given.machines}
        known = KnownOutcomes({**loaded.outcomes, **given.outcomes}, machines, judged, given.kept_in)
        new = True
    if getattr(settings, "takes_over", False) and choose_mode(settings) is Mode.NEW:
        known = _take_finished(prepared, known or KnownOutcomes())
    return session.run(
        plan,
        kind,
        prepared.inputs,
        known=known,
        facts=facts,
        new=new,
        observer=observer,
        predictions=settings.predictions,
    )


def _take_finished(prepared: PreparedRun, known: KnownOutcomes) -> KnownOutcomes:
    """What is known, and what earlier runs with the same content finished; that is said."""
    settings, plan = prepared.settings, prepared.plan
    if settings.timing_mode or settings.measure_memory or settings.executor not in (None, "local"):
        return known
    apart = frozenset(getattr(prepared.inputs, "splitters", ()))
    found = find_finished(plan, settings.home, predictions=settings.predictions, apart=apart)
    taken = {key: outcome for key, outcome in found.outcomes.items() if key not in known.outcomes}
    if not taken:
        return known
    tell(
        f"Note: {len(taken)} of {count_of(len(plan.cells), 'cell')} are taken over from earlier runs with the same"
        f" build, data and split{settings.how_fresh}."
    )
    outcomes = {**taken, **known.outcomes}
    return KnownOutcomes(outcomes, known.machines, known.origin, (*known.kept_in, *found.kept_in))


def load_run(reference: str, home: Path | None = None, *, verified: bool = False) -> ResultCollection:
    """A run by its id, the beginning of its id, its name, or `last`; a changed one is refused.

    Of several attempts it is the latest finished one. `verified` refuses a run whose latest attempt is unfinished, as
    anybody must who decides on it.
    """
    folder = find_run(reference, home, kind=BENCHMARK)
    if verified:
        return collect(load_verified(folder))
    shown, latest = folder.shown(), folder.attempts()[-1]
    unfinished = latest if folder.attempt is None and shown != latest else None
    with pause_collection():
        return collect(folder.load(shown), unfinished=unfinished)


def collect(run: Run, *, unfinished: int | None = None) -> ResultCollection:
    """The results of a run, in the plan's order; `unfinished` is a later attempt that was interrupted."""
    plan = run.plan
    other = next((spec for spec in plan.specs if not isinstance(spec, FitSpec) or spec.workload != Fit.name), None)
    if other is not None or any(spec.inner for spec in fit_specs(plan).values()):
        kind = run.facts.kind
        raise RunError(
            f"Run {plan.run_id} has no benchmark results: it is {add_article(kind)} run, which has reports of its own."
        )
    if any(spec.protocol is not None for spec in fit_specs(plan).values()):  # a baseline would lose how they came about
        raise RunError(
            f"Run {plan.run_id} has no benchmark results: it follows a paper; see 'boosters-eval paper compare'."
        )
    return collect_fits(run, unfinished=unfinished)


def collect_fits(run: Run, *, unfinished: int | None = None) -> ResultCollection:
    """The same of any run whose cells are fits, whatever else they are."""
    plan = run.plan
    specs = fit_specs(plan)
    identities = {name: identity_of(spec) for name, spec in specs.items()}
    found = [outcome for key in plan.keys if (outcome := run.outcomes.get(key)) is not None]
    machines = _machines(run)
    if machines:
        here = run.facts.machine.get("digest")
        found = [one if one.machine else one.model_copy(update={"machine": here}) for one in found]
    return ResultCollection(
        (outcome for outcome in found if isinstance(outcome, BenchmarkResult)),
        (
            BenchmarkError(**identities[failure.spec], library=failure.target, **failure.model_dump(exclude=_NAMED))
            for failure in found
            if isinstance(failure, Failure)
        ),
        unsupported=(
            Unsupported(**identities[item.spec], library=item.target, reason=item.reason) for item in plan.excluded
        ),
        unavailable=(
            Unavailable(**identities[item.spec], library=item.target, reason=item.reason)
            for item in run.facts.unavailable
            if item.spec in identities
        ),
        run_id=plan.run_id,
        suite=plan.name,
        metadata=RunMetadata(
            attempt=run.attempt,
            begin=run.begin,
            environment=run.facts.without_audits(),
            n_cells=len(plan.refs),
            n_missing=len(plan.refs) - len(found),
            unfinished_attempt=unfinished,
            configs={name: _describe_parameters(spec) for name, spec in specs.items()},
            user_metrics={metric.name: metric.higher_is_better for s in specs.values() for metric in s.user_metrics},
            alpha=run.facts.alpha,
            seeds_rule=run.facts.seeds_rule or None,
            margin=run.facts.margin,
            audits={name: DataAudit.model_validate(audit) for name, audit in run.facts.audits.items()},
            machines=machines,
        ),
        folder=run.folder,
    )


def _machines(run: Run) -> dict[str, MachineInfo]:
    """The machines of a run whose outcomes name any, with that of its beginning if it ran a cell; else none."""
    named = {outcome.machine for outcome in run.outcomes.values()}
    if named <= {None}:
        return {}
    found = {digest: machine for digest, machine in run.machines.items() if digest in named}
    here = {name: value for name, value in run.facts.machine.items() if name != "digest"}
    if None in named:
        with contextlib.suppress(ConfigError):  # another version of the program may have recorded something else
            found[str(run.facts.machine.get("digest"))] = MachineInfo.model_validate(here)
    return found


def _describe_parameters(spec: FitSpec) -> dict[str, Any]:
    split, training = spec.split, spec.training.model_dump(mode="json")
    found = {**training, "n_threads": spec.n_threads, "folds": split.folds}
    return found if split.kind == "random" else {**found, "split": f"{split.kind}:{split.column}"}


_COUNTS = ("n_trees_trained", "n_leaves_total")


class BenchmarkKind(RunKind):
    """Runs of benchmarks as trackers are told of them: scores, times and sizes of fits."""

    workloads: ClassVar[frozenset[str]] = frozenset({Fit.name})

    @cached_property
    def findings(self) -> Any:
        return collect(self.run)

    def parameters(self, cells: Competing) -> dict[str, Any]:
        """The canonical ones, what the library was given, and where that is not what was asked for."""
        spec = cells.spec
        if not isinstance(spec, FitSpec):
            raise TypeError(f"{spec.name} is not a fit.")
        parameters = {
            "dataset": spec.dataset,
            "task": spec.task.value,
            "booster": spec.booster_type.value,
            "variant": spec.variant,
            "profile": spec.profile.value,
            "primary_metric": spec.primary_metric,
            **spec.training.model_dump(mode="json"),
            "n_threads": spec.n_threads,  # resolved: -1 has become a number
            "timing_mode": spec.alone,
            **{f"split.{name}": value for name, value in spec.split.model_dump(mode="json").items()},
            **(_mapped(as_result(cells.results[0])) if cells.results else {}),
        }
        parameters.pop("seed", None)  # each cell has its own
        return parameters

    def facts(self, cells: Competing) -> dict[str, Any]:
        first = next(iter(cells.results), None)
        return {
            "data_digest": getattr(cells.spec, "data_digest", None),
            "nondeterministic": getattr(first, "nondeterministic", None),
        }

    def numbers(self, result: Outcome) -> dict[str, float | None]:
        found = as_result(result)
        return {**found.metrics, **{name: getattr(found, name) for name in (*RESOURCES, *_COUNTS)}}

    def files(self) -> dict[str, str]:
        from boosters_eval.programs.benchmark.tables.document import build_document  # noqa: PLC0415 (only at the end)

        page = build_document(self.findings, "comparison").to_html()
        return {"report.html": page, "results.json": self.findings.to_json()}


def _mapped(result: BenchmarkResult) -> dict[str, Any]:
    """What the library was given, without the cell's own seed, and where that is not what was asked for."""
    native = {name: value for name, value in (result.native_params or {}).items() if value != result.model_seed}
    return {
        **{f"native.{name}": value for name, value in native.items()},
        **{
            f"mark.{mark.parameter}": f"{mark.kind}: {mark.reason}" if mark.reason else mark.kind
            for mark in result.marks
        },
    }
