"""From a request to rows: plan the cells, run them through the engine, and judge what they predicted."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import takewhile
from shlex import quote
from typing import TYPE_CHECKING

from boosters_eval.core.errors import BoostersEvalError, ConfigError, ExitCode, describe_error
from boosters_eval.core.files import write_atomically
from boosters_eval.core.terms import given, named, tell
from boosters_eval.core.text import shorten_paths
from boosters_eval.engine.facts import format_now
from boosters_eval.engine.journal import read_journal
from boosters_eval.engine.plan import CellRef, Exclusion, Plan
from boosters_eval.engine.runs import find_folder, list_run_folders
from boosters_eval.engine.session import PlannedRun, check_names, continue_settings, open_session
from boosters_eval.programs.parity.backend import BACKENDS, BrokenBackendError, find_versions
from boosters_eval.programs.parity.binding import COMPARED, BindingSpec
from boosters_eval.programs.parity.catalog import list_declared, register_files
from boosters_eval.programs.parity.findings import WORDS, ParityReport, build_parity_report, read_facts
from boosters_eval.programs.parity.judge import Judge, make_row
from boosters_eval.programs.parity.method import BASE_SEED, GENERATORS, METHODS, MethodSpec, Size, ensure_data
from boosters_eval.programs.parity.references import find_root, open_store
from boosters_eval.programs.parity.request import OraclesRefreshRequest, ParityRequest
from boosters_eval.programs.parity.rows import ParityRow, RowKey, merge, read_rows, render_rows, write_rows
from boosters_eval.programs.parity.verdicts import BindingStatus, ParityVerdict
from boosters_eval.reports.findings import ReportedFindings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from boosters_eval.core.findings import Findings, Screen
    from boosters_eval.engine.cell import Cell
    from boosters_eval.engine.settings import RunSettings
    from boosters_eval.reports.document import Document

PARITY = "parity"  # what these runs are read as
ROUNDS = 5  # in which the backends of a method take turns, unless told
SWEEP = (1, 3, 10)  # threads of the full matrix
FEW_RUNS = 2  # which measure no time worth a second round
_NEVER_RUN = (BindingStatus.NOT_RUN, BindingStatus.NOT_AVAILABLE, BindingStatus.DEFERRED, BindingStatus.NOT_IMPLEMENTED)


def run_parity(request: ParityRequest) -> Findings:
    register_files(request.registry)
    check_names(request)
    if request.out_csv is not None and request.out_csv.exists():
        read_rows(request.out_csv)  # a file that cannot be added to is refused now, not after the last cell
    planned = plan_parity(request)
    if request.dry_run:
        return PlannedParity.of_rows(planned, request)
    return ParityRun(tuple(_execute_plan(request, planned)), request.out_csv)


def refresh_oracles(request: OraclesRefreshRequest) -> Findings:
    """Run the oracle and the canonical binding of each method, whose predictions are stored when they are judged."""
    register_files(request.registry)
    check_names(request)
    backends: dict[str, tuple[str, ...]] = {}
    for method in [METHODS[name] for name in _select(request.methods) or METHODS]:
        if method.oracle is None:
            tell(f"{method.name} has no reference implementation (oracle).")
        else:
            backends[method.name] = (method.oracle.backend, method.canonical, method.transforms)
    if not backends:
        return RefreshedOracles(())
    whole = ParityRequest(**{**vars(request), "methods": tuple(backends), "max_runs": 1, "rounds": 1})
    planned = plan_parity(whole, backends)
    if request.dry_run:
        return PlannedParity.of_rows(planned, request)
    return RefreshedOracles(tuple(_execute_plan(whole, planned)))


@dataclass(frozen=True)
class ParityRun(ReportedFindings):
    """A row for each cell that was asked for: run, kept or absent."""

    rows: tuple[ParityRow, ...]
    out_csv: Path | None = None  # where they were written

    @property
    def exit_code(self) -> int:
        """Whether they agree is the gate's question."""
        fine = (BindingStatus.OK, BindingStatus.DEFERRED)
        whole = self.rows and all(row.status in fine or row.status.absent for row in self.rows)
        return ExitCode.SUCCESS if whole else ExitCode.EXECUTION_ERROR

    def document(self) -> Document:
        return self.to_model().document()

    def to_model(self) -> ParityReport:
        """The report that `parity render` writes."""
        return build_parity_report(self.rows, list_declared(self.rows))

    def show(self, screen: Screen) -> None:
        """The answer, then a line per cell."""
        for sentence in self.document().answer:
            screen.say(sentence)
        shown = []
        for row in self.rows:
            ending = row.status.value + (f" ({row.signal})" if row.signal else "")
            word = row.verdict.value if row.verdict else ending
            far = "-" if row.divergence is None else f"{row.divergence:.2g}"
            time = "-" if row.reported_ms is None else f"{row.reported_ms:.3g}"
            shown.append((row.method, row.backend, f"{row.n}x{row.p}", str(row.threads), word, far, time))
        screen.rows(("method", "backend", "size", "threads", "result", "difference", "ms"), shown, keys=4)
        for word in dict.fromkeys(line[4] for line in shown if line[4] in WORDS):
            screen.note(f"{word}: {WORDS[word].meaning}")
        for row in self.rows:
            told = row.message if row.status.started and row.status is not BindingStatus.OK else _say_cause(row)
            if told:
                screen.note(f"{row.spec} {row.backend}: {told}")

    def conclude(self, screen: Screen) -> None:
        if self.out_csv is not None and not screen.quiet:
            screen.note(f"Written: {self.out_csv}")
            screen.note(f"To gate a release on it: boosters-eval parity gate --csv {quote(str(self.out_csv))}")


def _say_cause(row: ParityRow) -> str:
    """What a difference looks like; '' where there is none that matters."""
    apart = any(word is not None and not word.agrees for word in (row.verdict, row.binding_verdict))
    return "; ".join(filter(None, (row.diagnosis, row.convention, row.message))) if apart else ""


class RefreshedOracles(ParityRun):
    """The rows of the backends whose predictions are references."""

    @property
    def stored(self) -> tuple[ParityRow, ...]:
        """Those that are references now."""
        lacking = (None, ParityVerdict.ORACLE_MISSING)
        return tuple(row for row in self.rows if row.status is BindingStatus.OK and row.verdict not in lacking)

    @property
    def exit_code(self) -> int:
        """One that is not stored is missing later."""
        whole = self.rows and self.stored == self.rows
        return ExitCode.SUCCESS if whole else ExitCode.EXECUTION_ERROR

    def conclude(self, screen: Screen) -> None:
        """How many were not stored, and why the first was not."""
        if self.exit_code == ExitCode.SUCCESS:
            return
        stored, told = self.stored, ""
        first = next((row for row in self.rows if row not in stored), None)
        if first:
            told = f", the first of them {first.method} of {first.backend}: {first.message or first.status.value}"
        screen.note(f"Error: {len(self.rows) - len(stored)} of {len(self.rows)} references were not stored{told}.")


@dataclass(frozen=True)
class PlannedParity(PlannedRun):
    """The cells that would run, and what is known of the others."""

    known: tuple[str, ...] = ()

    @classmethod
    def of_rows(cls, planned: ParityPlan, settings: RunSettings) -> PlannedParity:
        kept = [f"{row.spec} {row.backend}: kept" for row in planned.kept]
        absent = [f"{row.spec} {row.backend}: {row.status.value}: {row.message}" for row in planned.absent]
        return replace(cls.of(planned.plan, continue_settings(settings, planned.plan)), known=(*kept, *absent))

    @property
    def exit_code(self) -> int:
        """Nothing need be left to run."""
        return ExitCode.SUCCESS if self.known else super().exit_code

    def show(self, screen: Screen) -> None:
        super().show(screen)
        for line in self.known:
            screen.say(f"  {line}")


@dataclass(frozen=True)
class ParityPlan:
    """The cells to run, and the rows that are known without running anything."""

    plan: Plan
    absent: tuple[ParityRow, ...] = ()  # not implemented, not available here, or deferred
    kept: tuple[ParityRow, ...] = ()  # of an earlier run
    specs: Mapping[str, BindingSpec] = field(default_factory=dict)
    keys: tuple[RowKey, ...] = ()  # of all rows, as they were asked for

    @property
    def unavailable(self) -> tuple[Exclusion, ...]:
        """What was asked for but is not here, for the record of the run."""
        gone = (row for row in self.absent if row.status is BindingStatus.NOT_AVAILABLE)
        return tuple(Exclusion(spec=row.spec, target=row.backend, reason=row.message) for row in gone)


def plan_parity(request: ParityRequest, backends: Mapping[str, Sequence[str]] | None = None) -> ParityPlan:
    """Resolve names, write the shared data, and leave out what cannot run here or need not run again.

    `backends` are those of each method, where they are not the same for all.
    """
    n_rounds = request.rounds or (ROUNDS if request.max_runs > FEW_RUNS else 1)
    wanted = [BACKENDS[name].name for name in dict.fromkeys(_select(request.backends))]
    specs: list[BindingSpec] = []
    refs: list[CellRef] = []
    absent: list[ParityRow] = []
    keys: list[RowKey] = []
    for method in [METHODS[name] for name in dict.fromkeys(_select(request.methods) or METHODS)]:
        chosen = dict.fromkeys((backends or {}).get(method.name) or wanted or method.backends)
        sizes = method.sizes[:1] if request.registry_cells else method.sizes
        for size in dict.fromkeys(Size(*size) for size in request.sizes) or sizes:
            reason = GENERATORS[method.data].missing(method)
            digest = "" if reason else _data_digest(request, method, size)
            for threads in dict.fromkeys(request.threads or (SWEEP if request.full_matrix else SWEEP[:1])):
                position = len(specs)
                spec = BindingSpec(
                    name=f"{method.name}/{size}@{threads}",
                    n_threads=threads,
                    method=method,
                    size=size,
                    data_digest=digest,
                    max_runs=request.max_runs,
                    budget_s=request.budget,
                    compared=max(COMPARED, request.max_runs - 2) if request.compare_all else COMPARED,
                )
                specs.append(spec)
                for backend in chosen:
                    row = _row_without_run(spec, backend, reason)
                    keys.append(make_row(spec, backend, BindingStatus.NOT_RUN).key)
                    if row is None:
                        rounds = (CellRef(position, backend, BASE_SEED, number or None) for number in range(n_rounds))
                        refs.extend(rounds)
                    else:
                        absent.append(row)
    return _reduce(request, ParityPlan(Plan.of(PARITY, specs, refs), tuple(absent), keys=tuple(keys)))


def _data_digest(request: ParityRequest, method: MethodSpec, size: Size) -> str:
    try:
        return ensure_data(find_root(request) / "data", method, size)[1]
    except BoostersEvalError:
        raise
    except Exception as error:
        what = describe_error(error).rstrip(".")
        raise ConfigError(
            f"The method '{method.name}' has no data of size {size} ({named('sizes')}): {what}."
        ) from error


def _reduce(request: ParityRequest, whole: ParityPlan) -> ParityPlan:
    """Without the cells that have a row already, and without those beyond the number that is run now."""
    plan = whole.plan
    specs = {spec.name: spec for spec in plan.specs if isinstance(spec, BindingSpec)}
    known = _known_rows(request, plan, specs)
    kept: list[ParityRow] = []
    deferred: list[ParityRow] = []
    chosen: list[tuple[int, str]] = []
    for ref, cell in zip(plan.refs, plan.cells, strict=True):
        if ref.fold is not None:  # a further round of a cell
            continue
        fresh = make_row(specs[cell.spec.name], cell.target.name, BindingStatus.NOT_RUN)
        earlier = known.get(fresh.key)
        if earlier is not None and not _must_run(earlier, request):
            kept.append(earlier)
        elif request.max_cells is not None and len(chosen) >= request.max_cells:
            told = f"put off by {given('max_cells', request.max_cells)}: {given('resume')} runs it"
            deferred.append(fresh.model_copy(update={"status": BindingStatus.DEFERRED, "message": told}))
        else:
            chosen.append((ref.spec, ref.target))
    refs = [ref for ref in plan.refs if (ref.spec, ref.target) in chosen]
    if len(refs) < len(plan.refs):
        plan = Plan.of(PARITY, plan.specs, refs)
    return ParityPlan(plan, (*whole.absent, *deferred), tuple(kept), specs, whole.keys)


def _known_rows(request: ParityRequest, plan: Plan, specs: Mapping[str, BindingSpec]) -> dict[RowKey, ParityRow]:
    """The rows that may be kept: none, unless earlier results are asked for.

    A run of the whole plan that was interrupted is continued, whatever rows an older run left. If only some of its
    cells are to be run now, or were since, then what it finished is kept as rows.
    """
    if not (request.resume or request.rerun_failed):
        return {}
    rows = read_rows(request.out_csv) if request.out_csv is not None and request.out_csv.exists() else []
    folder = find_folder(plan, request.home)
    if folder is not None and not read_journal(folder.journal_path(folder.attempts()[-1])).sealed:
        run = folder.load()
        since = {
            later.run_id for later in takewhile(lambda each: each.run_id != plan.run_id, list_run_folders(request.home))
        }
        rows = [row for row in rows if row.run_id in since]
        if request.max_cells is None and not rows:
            return {}
        rows += _judge(request).rows(run, specs).values()
    return {row.key: row for row in merge(rows)}


def _must_run(row: ParityRow, request: ParityRequest) -> bool:
    """Whether a cell that has a row is run again: failures on request, and whatever is stale."""
    if row.status is not BindingStatus.OK:
        return request.rerun_failed or row.status in _NEVER_RUN
    capped = row.stop_reason == "max_runs" and (row.total_runs or 0) < request.max_runs
    cut_short = capped or (row.stop_reason == "budget" and request.budget is None)
    return cut_short or read_facts(row.versions_json) != BACKENDS[row.backend].versions()


def _row_without_run(spec: BindingSpec, backend: str, no_data: str | None) -> ParityRow | None:
    if backend not in spec.method.backends:
        return make_row(spec, backend, BindingStatus.NOT_IMPLEMENTED, message=f"{backend} does not have this method")
    try:
        reason = find_versions(BACKENDS[backend])[0] or no_data
    except BrokenBackendError as error:
        return make_row(spec, backend, BindingStatus.FAILED, message=str(error), measured_at=format_now())
    return make_row(spec, backend, BindingStatus.NOT_AVAILABLE, message=reason) if reason else None


def _execute_plan(request: ParityRequest, planned: ParityPlan) -> list[ParityRow]:
    """All rows of the request: run, kept and absent ones. The CSV file is written whole, after the last cell."""
    judge = _judge(request)
    judged: list[ParityRow] = []
    if planned.plan.refs:
        part = planned.kept or request.max_cells is not None
        settings = continue_settings(request, planned.plan) if part else request
        with open_session(settings, planned.plan) as session:
            try:
                facts = {"unavailable": planned.unavailable}
                run = session.run(planned.plan, PARITY, partial(_inputs, find_root(request)), facts=facts)
            except KeyboardInterrupt:
                folder = find_folder(planned.plan, request.home)
                with contextlib.suppress(BoostersEvalError):  # the cells that finished, and the others as not run
                    if folder is not None:
                        _write(request, planned, judge, list(judge.rows(folder.load(), planned.specs).values()))
                raise
        judged = list(judge.rows(run, planned.specs).values())
    return _write(request, planned, judge, judged)


def _judge(request: ParityRequest) -> Judge:
    return Judge(open_store(request), find_root(request))


def _write(request: ParityRequest, planned: ParityPlan, judge: Judge, judged: list[ParityRow]) -> list[ParityRow]:
    """All rows, the kept ones judged anew: an oracle may have come, or a tolerance changed, since then."""
    kept = [judge.again(row, planned.specs[row.spec]) for row in planned.kept]
    files = {
        "registry_json": json.dumps([shorten_paths(str(file)) for file in request.registry]) if request.registry else ""
    }
    fresh = [row.model_copy(update=files) for row in (*planned.absent, *judged)]
    found = {row.key: row for row in merge(kept, fresh)}
    rows = [found[key] for key in planned.keys]
    whole = rows
    if request.out_csv is not None:
        whole = merge(read_rows(request.out_csv) if request.out_csv.exists() else [], rows)
        write_rows(request.out_csv, whole)
    if request.publish is not None:
        publish(whole, request.publish)
    return rows


def publish(rows: Sequence[ParityRow], folder: Path) -> None:
    """Static pages, for any web server: the dashboard is the index."""
    report = build_parity_report(rows, list_declared(rows))
    pages = {
        "index.html": report.to_html(),
        "parity.md": report.to_markdown(),
        "parity.json": report.to_json(),
        "parity.csv": render_rows(rows),
    }
    for name, content in pages.items():
        write_atomically(folder / name, content)


def _inputs(root: Path, cell: Cell, scratch: Path) -> dict[str, str]:  # noqa: ARG001 (all cells share them)
    """Where every cell finds the shared data, and puts its prediction."""
    return {"data": str(root / "data"), "artifacts": str(root / "arrays")}


def _select(names: Sequence[str]) -> tuple[str, ...]:
    """The names of a choice in which `all` may stand for every one."""
    return () if "all" in names else tuple(names)
