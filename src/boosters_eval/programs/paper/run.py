"""Run the targets of a specification through the engine, and write what was measured."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.files import check_writable, write_atomically
from boosters_eval.core.terms import tell, the
from boosters_eval.core.text import escape_json, join_words
from boosters_eval.engine.cell import Failure, Outcome
from boosters_eval.engine.session import PlannedRun, check_names, open_session
from boosters_eval.programs.benchmark.fit import Fit
from boosters_eval.programs.benchmark.runs import BenchmarkKind
from boosters_eval.programs.paper.comparison import Measured, PaperComparison, PaperResults
from boosters_eval.programs.paper.evaluate import Evaluate, EvaluateOutcome, EvaluateSpec
from boosters_eval.programs.paper.judge import JudgedPaper, compare_results
from boosters_eval.programs.paper.plan import PaperPlan, PlannedTarget, plan_targets
from boosters_eval.programs.paper.specification import PaperSpecification, digest_specification, read_specification
from boosters_eval.programs.paper.targets import find_targets, select_targets
from boosters_eval.programs.paper.tolerances import canonicalize
from boosters_eval.runners import RUNNERS
from boosters_eval.runners.result import BenchmarkResult

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from boosters_eval.core.findings import Findings
    from boosters_eval.engine.folder import Run
    from boosters_eval.engine.runs import Competing
    from boosters_eval.programs.paper.request import ReproductionRequest, RunPaperRequest, ValidatePaperRequest


_FILES = (".yaml", ".yml", ".json", ".md", ".html", ".txt")  # endings of files, which a folder of results does not have
PAPER = "paper"  # what these runs are read as
RESULTS = "results.json"
_REPORTS = {
    "comparison.yaml": "yaml",
    "benchmark_report.md": "markdown",
    "benchmark_report.html": "html",
    "benchmark_report.json": "json",
}


@dataclass(frozen=True)
class PreparedPaper:
    """What a request reproduces: the specification as it was read, and its targets. Nothing has run."""

    request: ReproductionRequest
    spec: PaperSpecification
    digest: str  # of the specification, which may be edited while the targets run
    planned: PaperPlan

    def run(self) -> PaperResults:
        """Run each target, repeated over seeds. Finished cells are kept whatever happens."""
        plan, run = self.planned.plan, None
        if plan.cells:
            with open_session(self.request, plan) as session:
                run = session.run(plan, PAPER, self.planned, predictions=self.request.predictions)
        return PaperResults(
            paper=self.spec.paper,
            specification_digest=self.digest,
            run_id=None if run is None else plan.run_id,
            only=self.request.only,
            environment={} if run is None else _record_environment(run),
            targets=tuple(_measure(found, run) for found in self.planned.targets),
        )

    def compare(self, results: PaperResults, files: Sequence[str] = ()) -> PaperComparison:
        return compare_results(self.spec, results, digest=self.digest, files=files)


def prepare(request: ReproductionRequest) -> PreparedPaper:
    """Bind the targets of a specification. One that cannot run here is `not_runnable`, with the reason."""
    check_names(request)
    if request.output.suffix.lower() in _FILES and not request.output.is_dir():
        raise ConfigError(
            f"{the('output')} must be a folder, into which files are written. Got '{request.output}' instead."
        )
    path = request.spec
    spec, digest = read_specification(path), digest_specification(path)
    targets = select_targets(find_targets(spec, path.parent, request.model), request.only)
    planned = plan_targets(
        f"paper {spec.paper}",
        targets,
        seeds=request.seeds or spec.seeds,
        allow_pickle=request.allow_pickle,
        n_threads=request.threads,
    )
    return PreparedPaper(request, spec, digest, planned)


def run(request: RunPaperRequest) -> Findings:
    prepared = prepare(request)
    if request.dry_run:
        return PlannedRun.of(prepared.planned.plan, request)
    check_writable(request.output / RESULTS)
    results = prepared.run()
    _write(request.output / RESULTS, results.to_json())
    return results


def validate(request: ValidatePaperRequest) -> Findings:
    prepared = prepare(request)
    if request.dry_run:
        return PlannedRun.of(prepared.planned.plan, request)
    files = [request.output / name for name in (RESULTS, *_REPORTS)]
    for file in files:
        check_writable(file)
    results = prepared.run()
    _write(files[0], results.to_json())
    found = JudgedPaper(prepared.compare(results, list(map(str, files))))
    for file in files[1:]:
        _write(file, found.render(_REPORTS[file.name]))
    return found


def _write(file: Path, text: str) -> None:
    write_atomically(file, text)
    tell(f"Written: {file}")


def _measure(planned: PlannedTarget, run: Run | None) -> Measured:
    target = planned.target
    known = {"table": target.table.id, "row": target.row, "dataset": target.dataset_name, "primary": target.primary}
    if planned.spec is None or run is None:
        return Measured(**known, status="not_runnable", reason=planned.reason)
    cells = [cell for cell in run.plan.cells if cell.spec.name == planned.spec.name]
    outcomes = [run.outcomes.get(cell.key) for cell in cells]
    done = [outcome for outcome in outcomes if isinstance(outcome, (BenchmarkResult, EvaluateOutcome))]
    values = {
        name: tuple(value for outcome in done if (value := _find_value(outcome, ours)) is not None)
        for name, ours in planned.metrics.items()
    }
    return Measured(
        **known,
        status="ok" if len(done) == len(cells) else "failed",
        reason=_explain_gaps(outcomes),
        values={name: found for name, found in values.items() if found},
        std_over=planned.std_over,
        seeds=tuple(outcome.seed for outcome in done),
        planned=len(cells),
        versions=_find_versions(planned, run),
        conditions={**planned.conditions, **_describe_fit(done)},
        warnings=tuple(dict.fromkeys([*planned.warnings, *_collect_warnings(planned, done)])),
    )


def _find_value(outcome: BenchmarkResult | EvaluateOutcome, name: str) -> float | None:
    """The value of a metric; a function or a program may spell it in its own way, `Log loss` as `logloss`."""
    if isinstance(outcome, BenchmarkResult):
        found = outcome.metrics.get(name)
        return found if found is not None else getattr(outcome, name, None)
    alike = [value for own, value in outcome.metrics.items() if canonicalize(own) == canonicalize(name)]
    return outcome.metrics.get(name, alike[0] if len(alike) == 1 else None)


def _explain_gaps(outcomes: Sequence[Outcome | Failure | None]) -> str:
    failures = [outcome for outcome in outcomes if isinstance(outcome, Failure)]
    missing = sum(outcome is None for outcome in outcomes)
    if failures:
        first = failures[0]
        text = f"{first.error_type}: {first.error_message}".partition("\n")[0].rstrip(".")
        return f"{len(failures)} of {len(outcomes)} repeats failed; the first, in the phase {first.phase}: {text}."
    return f"{missing} of {len(outcomes)} repeats have no outcome." if missing else ""


def _find_versions(planned: PlannedTarget, run: Run) -> dict[str, str]:
    """The library's, or those of what a function needs. What a program is made of is not known."""
    workload = planned.spec.workload if planned.spec else ""
    carrier = run.plan.target(workload, planned.carrier)
    version, library = carrier.build.version, carrier.library
    if library in RUNNERS:
        return {library: version}
    parts = () if planned.carrier == "command" else (part.rpartition(" ") for part in version.split(", "))
    return {name: number for name, _, number in parts}


def _describe_fit(done: Sequence[BenchmarkResult | EvaluateOutcome]) -> dict[str, str]:
    """What the library was given, and on how many rows: as the first repeat recorded it."""
    first = next(iter(done), None)
    if isinstance(first, BenchmarkResult):
        native = {name: value for name, value in (first.native_params or {}).items() if value != first.model_seed}
        told = ", ".join(f"{name}={value}" for name, value in native.items())
        return {"parameters": told, "rows": f"{first.n_train} training, {first.n_valid} test"}
    return {} if first is None or first.n_test is None else {"rows": f"{first.n_test} test"}


def _collect_warnings(planned: PlannedTarget, done: Sequence[BenchmarkResult | EvaluateOutcome]) -> Iterator[str]:
    for outcome in done:
        yield from outcome.warnings if isinstance(outcome, BenchmarkResult) else ()
        yield from (
            f"the metric '{name}' was not returned, but {', '.join(outcome.metrics) or 'nothing'}"
            for name, ours in planned.metrics.items()
            if _find_value(outcome, ours) is None
        )
    flaky = sum(outcome.failed_before > 0 for outcome in done)
    if flaky:
        yield f"{flaky} of {len(done)} repeats finished only after failing"


def _find_hardware(run: Run) -> dict[str, object]:
    """The machine that ran the cells; of several, the processors."""
    here = str(run.facts.machine.get("digest"))
    named = {outcome.machine or here for outcome in run.outcomes.values()}
    known = {here: run.facts.machine, **{digest: machine.recorded() for digest, machine in run.machines.items()}}
    if len(named) > 1:
        return {"cpu_model": join_words(str(known[digest].get("cpu_model")) for digest in sorted(named))}
    machine = known[next(iter(named), here)]
    return {name: value for name, value in machine.items() if name != "digest"}


def _record_environment(run: Run) -> dict[str, str]:
    """The run's own record, as text: nothing is looked up now."""
    facts = run.facts
    dirty = " (with uncommitted changes)" if facts.git_dirty else ""
    known: dict[str, object] = {
        "started_at": facts.started_at,
        "boosters_eval": facts.boosters_eval,
        "python": facts.python,
        "commit": f"{facts.git_sha}{dirty}" if facts.git_sha else None,
        "branch": facts.git_branch,
        **_find_hardware(run),
        "jobs": facts.jobs,
        "command": shlex.join(["boosters-eval", *facts.command]) if facts.command else None,
        "sessions": 1 + len(facts.resumed) if facts.resumed else None,
    }
    return {name: str(value) for name, value in known.items() if value is not None}


class PaperKind(BenchmarkKind):
    """What was measured of each target, trained here or not. What the paper printed is in its specification alone."""

    workloads: ClassVar[frozenset[str]] = frozenset({Fit.name, Evaluate.name})

    @cached_property
    def findings(self) -> Any:
        return {
            cells.spec.name: {
                name: [value for numbers in found if (value := numbers.get(name)) is not None]
                for name in dict.fromkeys(name for numbers in found for name in numbers)
            }
            for cells in self.competing()
            if (found := [self.numbers(result) for result in cells.results])
        }

    def parameters(self, cells: Competing) -> dict[str, Any]:
        spec = cells.spec
        if not isinstance(spec, EvaluateSpec):
            return {**super().parameters(cells), **spec.model_dump(mode="json", include={"protocol"})}
        told = spec.model_dump(
            mode="json", include={"table", "row", "metrics", "binding", "model", "format", "n_threads"}
        )
        return {**told, "dataset": spec.dataset.name}

    def facts(self, cells: Competing) -> dict[str, Any]:
        digests = cells.spec.digests if isinstance(cells.spec, EvaluateSpec) else {}
        return {**super().facts(cells), **{f"digest.{name}": digest for name, digest in digests.items()}}

    def numbers(self, result: Outcome) -> dict[str, float | None]:
        if not isinstance(result, EvaluateOutcome):
            return super().numbers(result)
        return {"seconds": result.seconds, "n_test": result.n_test, **result.metrics}

    def files(self) -> dict[str, str]:
        """All values; the comparison with the paper needs its specification."""
        return {"measured.json": escape_json(json.dumps(self.findings, indent=1)) + "\n"}
