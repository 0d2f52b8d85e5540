"""The whole report as data: what the Markdown, JSON and HTML files are written from."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any, Literal

from boosters_eval.benchmark.tables.build import build_tables
from boosters_eval.benchmark.tables.contenders import clean
from boosters_eval.benchmark.tables.environment import Environment, library_versions
from boosters_eval.benchmark.tables.ranking import over_datasets
from boosters_eval.core.model import Model
from boosters_eval.reports.model import Ranking, Table
from boosters_eval.runners.parameters import Mark, TrainingConfig

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from pathlib import Path

    from boosters_eval.benchmark.results import BenchmarkResult, ResultCollection

SCHEMA_VERSION = 1
ReportType = Literal["quality", "performance", "comparison"]


class ConfigFacts(Model):
    """One benchmark as it was run."""

    config: str
    dataset: str
    task: str
    booster: str
    profile: str
    variant: str | None
    libraries: tuple[str, ...]
    n_train: int | None
    n_valid: int | None
    threads: int
    canonical: str = ""  # the canonical parameters, in words


class Parameters(Model):
    """What one library was given, and where."""

    library: str
    version: str | None
    configs: tuple[str, ...]
    native: dict[str, str]
    marks: tuple[Mark, ...]


class Failure(Model):
    """A cell that failed, with everything needed to find out why."""

    config: str
    library: str
    variant: str | None
    seed: int
    fold: int | None
    phase: str
    error_type: str
    message: str
    signal: str | None
    traceback: str | None
    stderr_tail: str


class Refusal(Model):
    """A combination that a library cannot do."""

    config: str
    library: str
    reason: str


class ReportDocument(Model):
    """Everything in a report; `environment` alone depends on where and when it is made."""

    schema_version: int = SCHEMA_VERSION
    kind: Literal["boosters-eval report"] = "boosters-eval report"
    report_type: ReportType
    title: str
    environment: Environment
    suite: str | None
    run_id: str | None
    seeds: tuple[int, ...]
    folds: int
    libraries: dict[str, str]
    test: str
    alpha: float
    n_results: int
    n_failed: int
    tables: tuple[Table, ...]
    rankings: tuple[Ranking, ...]
    configs: tuple[ConfigFacts, ...]
    parameters: tuple[Parameters, ...]
    errors: tuple[Failure, ...]
    unsupported: tuple[Refusal, ...]
    notes: tuple[str, ...]
    reproduce: tuple[str, ...]


def build_document(
    results: ResultCollection,
    report_type: ReportType = "quality",
    *,
    test: str = "corrected",
    alpha: float | None = None,
    now: datetime | None = None,
    where: Path | None = None,
) -> ReportDocument:
    """Quality shows metrics, performance times and memory, comparison both."""
    tables = build_tables(
        results,
        metrics=() if report_type == "performance" else None,
        times=report_type != "quality",
        test=test,
        alpha=alpha,
    )
    ours = results.results
    suite = None if results.suite is None else clean(results.suite)
    environment = Environment.collect(results, now=now, where=where)
    return ReportDocument(
        report_type=report_type,
        title=_title(report_type, suite, environment),
        environment=environment,
        suite=suite,
        run_id=results.run_id,
        seeds=tuple(dict.fromkeys(result.seed for result in ours)),
        folds=len({result.fold for result in ours if result.fold is not None}),
        libraries=dict(sorted((clean(k), clean(v)) for k, v in library_versions(results).items())),
        test=test,
        alpha=tables.alpha,
        n_results=len(ours),
        n_failed=len(results.errors),
        tables=tables.tables,
        rankings=over_datasets(tables.tables, alpha=tables.alpha),
        configs=_configs(ours, results.metadata.configs),
        parameters=_parameters(ours),
        errors=_errors(results),
        unsupported=tuple(
            Refusal(config=clean(u.config_name), library=clean(u.library), reason=clean(u.reason))
            for u in results.unsupported
        ),
        notes=tables.notes,
        reproduce=_reproduce(results),
    )


def _title(report_type: str, suite: str | None, environment: Environment) -> str:
    """With the day of the run where that is known: the day of the report is no property of the results."""
    day = f"{environment.measured_at[:10]}: " if environment.measured_at else ""
    return f"{day}{report_type.capitalize()} report" + (f", {suite} suite" if suite not in (None, "compare") else "")


def _canonical(training: dict[str, Any], booster: str) -> str:
    """What was asked of every library: the growth with its own limit, then what differs from the defaults."""
    if not training:
        return ""
    leafwise = training["growth_strategy"] == "leafwise"
    limit = f"{training['n_leaves']} leaves" if leafwise else f"depth {training['max_depth']}"
    trees = "" if booster == "gblinear" else f"{training['growth_strategy']}, {limit}, "
    said = ("growth_strategy", "n_leaves", "max_depth", "n_estimators", "learning_rate", "n_threads", "seed")
    usual = TrainingConfig().model_dump(mode="json")
    others = [f"{k}={v}" for k, v in training.items() if k in usual and k not in said and v != usual[k]]
    start = f"{trees}{training['n_estimators']} rounds, learning rate {training['learning_rate']:g}"
    return clean(", ".join([start, *others]))


def _configs(results: Iterable[BenchmarkResult], training: dict[str, dict[str, Any]]) -> tuple[ConfigFacts, ...]:
    groups: dict[str, list[BenchmarkResult]] = {}
    for result in results:
        groups.setdefault(result.config_name, []).append(result)
    return tuple(
        ConfigFacts(
            config=clean(name),
            dataset=clean(group[0].dataset_name),
            task=group[0].task.value,
            booster=clean(group[0].booster_type),
            profile=group[0].profile,
            variant=None if group[0].variant is None else clean(group[0].variant),
            libraries=tuple(dict.fromkeys(clean(result.library) for result in group)),
            n_train=group[0].n_train,
            n_valid=group[0].n_valid,
            threads=max(result.n_threads for result in group),
            canonical=_canonical(training.get(name, {}), group[0].booster_type),
        )
        for name, group in groups.items()
    )


def _parameters(results: Iterable[BenchmarkResult]) -> tuple[Parameters, ...]:
    """Configs that gave a library the same parameters are told together."""
    cells: dict[tuple[str, str], list[BenchmarkResult]] = {}
    for result in results:
        cells.setdefault((result.library, result.config_name), []).append(result)
    told: dict[str, dict[str, Any]] = {}
    for (library, config), group in cells.items():
        facts = {
            "library": clean(library),
            "version": group[0].library_version,
            "native": _merged([result.native_params or {} for result in group]),
            "marks": list(dict.fromkeys(mark for result in group for mark in result.marks)),
        }
        key = json.dumps(facts, default=repr)
        told.setdefault(key, {**facts, "configs": []})["configs"].append(clean(config))
    return tuple(Parameters(**facts) for facts in sorted(told.values(), key=lambda facts: str(facts["library"])))


def _merged(dicts: list[dict[str, Any]]) -> dict[str, str]:
    """Parameters as text; one that is not the same for all seeds (the seed itself, say) says so."""
    out: dict[str, str] = {}
    for name in sorted({name for given in dicts for name in given}):
        values = {json.dumps(given.get(name), sort_keys=True, default=str) for given in dicts}
        out[clean(name)] = clean(values.pop()) if len(values) == 1 else "varies by seed"
    return out


def _errors(results: ResultCollection) -> tuple[Failure, ...]:
    return tuple(
        Failure(
            config=clean(error.config_name),
            library=clean(error.library),
            variant=None if error.variant is None else clean(error.variant),
            seed=error.seed,
            fold=error.fold,
            phase=error.phase,
            error_type=clean(error.error_type),
            message=clean_lines(error.error_message),
            signal=error.signal,
            traceback=None if error.traceback is None else clean_lines(error.traceback),
            stderr_tail=clean_lines(error.stderr_tail),
        )
        for error in results.errors
    )


def clean_lines(text: str) -> str:
    """Like `clean`, but the text keeps its lines."""
    return "\n".join(clean(line.replace("\t", "    ")) for line in text.splitlines())


def _reproduce(results: ResultCollection) -> tuple[str, ...]:
    """The command that was typed; for a run from Python one that does the same, as far as the results tell it."""
    ours = results.results
    if not ours:
        return ()
    typed = results.metadata.facts.command
    words = ["boosters-eval", *(typed or _derived(results))]
    again = [f"boosters-eval report --run {results.run_id}"] if results.run_id else []
    return (" ".join(shlex.quote(clean(word)) for word in words), *again)


def _derived(results: ResultCollection) -> list[str]:
    ours = results.results
    seeds = len(dict.fromkeys(result.seed for result in ours))
    folds = len({result.fold for result in ours if result.fold is not None})
    timed = any(result.timing_mode for result in ours)
    if results.suite in (None, "compare"):
        words = ["compare", "--dataset", *dict.fromkeys(result.dataset_name for result in ours)]
        words += ["--booster", *dict.fromkeys(result.booster_type for result in ours)]
        words += _training_options(list(results.metadata.configs.values()), timed=timed)
    else:
        words = ["run", "--suite", str(results.suite)]
    words += ["--library", *dict.fromkeys(outcome.library for outcome in (*ours, *results.errors))]
    words += ["--cv", f"{folds}x{seeds}"] if folds else ["--seeds", str(seeds)]
    words += ["--timing-mode"] if timed else []
    words += ["--measure-memory"] if any(result.peak_memory_mb is not None for result in ours) else []
    words += ["--profile", "defaults"] if all(result.profile == "defaults" for result in ours) else []
    return words


def _training_options(configs: list[dict[str, Any]], *, timed: bool) -> list[str]:
    """The canonical parameters that all configs have and that are not the defaults."""
    words = []
    for name, usual in TrainingConfig().model_dump(mode="json").items():
        values = [training.get(name, usual) for training in configs]
        if not values or values[0] == usual or any(value != values[0] for value in values):
            continue
        if name == "growth_strategy":
            words += ["--growth", str(values[0])]
        elif name == "n_threads":
            words += [] if timed else ["--threads", str(values[0])]  # timing mode takes all cores anyway
        elif name != "seed":
            words += ["--param", f"{name}={values[0]}"]
    return words
