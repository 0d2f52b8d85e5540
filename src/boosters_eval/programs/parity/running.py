"""From a request to rows: plan the cells, run them through the engine, and judge what they predicted."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING

from boosters_eval.core.errors import BoostersEvalError, ConfigError
from boosters_eval.core.home import home as home_folder
from boosters_eval.engine.execute import Mode, execute
from boosters_eval.engine.executor import EXECUTORS, Executor, Limits
from boosters_eval.engine.facts import now
from boosters_eval.engine.journal import read
from boosters_eval.engine.plan import CellRef, Exclusion, Plan
from boosters_eval.engine.runs import check_name, folder_of, run_folders
from boosters_eval.programs.parity.backend import BACKENDS, BrokenBackendError, availability
from boosters_eval.programs.parity.binding import BindingSpec
from boosters_eval.programs.parity.data import GENERATORS, ensure_data
from boosters_eval.programs.parity.judging import Judge, base_row
from boosters_eval.programs.parity.method import BASE_SEED, METHODS, MethodSpec, Size
from boosters_eval.programs.parity.references import ReferenceStore
from boosters_eval.programs.parity.rows import ParityRow, RowKey, merge, read_rows, write_rows
from boosters_eval.programs.parity.verdicts import BindingStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from boosters_eval.engine.cell import Cell
    from boosters_eval.engine.folder import Run
    from boosters_eval.engine.observer import Observer

GUARD_S = 24 * 3600.0  # a cell ends by the protocol; this only catches what hangs


@dataclass(frozen=True)
class ParityRequest:
    """What is to be compared; an empty choice means all."""

    methods: tuple[str, ...] = ()
    backends: tuple[str, ...] = ()
    sizes: tuple[Size, ...] = ()
    registry_cells: bool = False  # only the first size of each method
    threads: tuple[int, ...] = (1,)
    max_runs: int = 40
    max_cells: int | None = None  # how many cells are run now; the others are deferred
    budget_s: float | None = None
    timeout_s: float = GUARD_S
    resume: bool = False
    rerun_failed: bool = False
    force: bool = False
    home: Path | None = None
    out_csv: Path | None = None
    oracles: Path | None = None  # the folder of stored references
    command: tuple[str, ...] = ()
    registry: tuple[str, ...] = ()  # the files that were registered, for the record
    name: str | None = None  # by which the run can be found again

    @property
    def root(self) -> Path:
        """Where data, arrays and references are kept."""
        return home_folder(self.home).absolute() / "parity"

    @property
    def store(self) -> ReferenceStore:
        """The stored references."""
        return ReferenceStore(self.oracles or self.root / "oracles")


@dataclass(frozen=True)
class ParityPlan:
    """The cells to run, and the rows that are known without running anything."""

    plan: Plan
    absent: tuple[ParityRow, ...] = ()  # not implemented, not available here, or deferred
    kept: tuple[ParityRow, ...] = ()  # of an earlier run
    specs: Mapping[str, BindingSpec] = field(default_factory=dict)
    keys: tuple[RowKey, ...] = ()  # of all rows, as they were asked for

    def spec_of(self, row: ParityRow) -> BindingSpec:
        """The spec of a row's cell."""
        return self.specs[spec_name(row.method, Size(row.n, row.p), row.threads)]

    @property
    def unavailable(self) -> tuple[Exclusion, ...]:
        """What was asked for but is not here, for the record of the run."""
        gone = (row for row in self.absent if row.status is BindingStatus.NOT_AVAILABLE)
        return tuple(
            Exclusion(
                spec=spec_name(row.method, Size(row.n, row.p), row.threads), target=row.backend, reason=row.message
            )
            for row in gone
        )


def spec_name(method: str, size: Size, threads: int) -> str:
    """The name of a spec: what is done on how much data, with how many threads."""
    return f"{method}/{size}@{threads}"


def plan_parity(request: ParityRequest) -> ParityPlan:
    """Resolve names, write the shared data, and leave out what cannot run here or need not run again."""
    if request.force and (request.resume or request.rerun_failed):
        raise ConfigError("Use --force to run everything again, or --resume and --rerun-failed to keep results.")
    wanted = [BACKENDS[name].name for name in dict.fromkeys(request.backends)]
    specs: list[BindingSpec] = []
    refs: list[CellRef] = []
    absent: list[ParityRow] = []
    keys: list[RowKey] = []
    for method in [METHODS[name] for name in dict.fromkeys(request.methods or METHODS)]:
        for size in _sizes(method, request):
            reason = GENERATORS[method.data].missing(method)
            digest = "" if reason else _data_digest(request, method, size)
            for threads in request.threads:
                position = len(specs)
                specs.append(_spec(request, method, size, threads, digest))
                for backend in wanted or method.backends:
                    row = _row_without_run(specs[-1], backend, reason)
                    keys.append(base_row(specs[-1], backend, BindingStatus.NOT_RUN).key)
                    if row is None:
                        refs.append(CellRef(position, backend, BASE_SEED, None))
                    else:
                        absent.append(row)
    return _reduced(request, ParityPlan(Plan.of("parity", specs, refs), tuple(absent), keys=tuple(keys)))


def _spec(request: ParityRequest, method: MethodSpec, size: Size, threads: int, digest: str) -> BindingSpec:
    return BindingSpec(
        name=spec_name(method.name, size, threads),
        n_threads=threads,
        method=method,
        size=size,
        data_digest=digest,
        max_runs=request.max_runs,
        budget_s=request.budget_s,
    )


def _data_digest(request: ParityRequest, method: MethodSpec, size: Size) -> str:
    try:
        return ensure_data(request.root / "data", method, size)[1]
    except BoostersEvalError:
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {error}".rstrip(".")
        raise ConfigError(f"The method '{method.name}' has no data of size {size} (--sizes): {what}.") from error


def _reduced(request: ParityRequest, whole: ParityPlan) -> ParityPlan:
    """Without the cells that have a row already, and without those beyond the number that is run now."""
    plan = whole.plan
    specs = {spec.name: spec for spec in plan.specs if isinstance(spec, BindingSpec)}
    known = _known_rows(request, plan, specs)
    kept: list[ParityRow] = []
    deferred: list[ParityRow] = []
    refs: list[CellRef] = []
    for ref, cell in zip(plan.refs, plan.cells, strict=True):
        fresh = base_row(specs[cell.spec.name], cell.target, BindingStatus.NOT_RUN)
        earlier = known.get(fresh.key)
        if earlier is not None and not _must_run(earlier, request):
            kept.append(earlier)
        elif request.max_cells is not None and len(refs) >= request.max_cells:
            told = f"put off by --max-cells {request.max_cells}: --resume runs it"
            deferred.append(fresh.model_copy(update={"status": BindingStatus.DEFERRED, "message": told}))
        else:
            refs.append(ref)
    if len(refs) < len(plan.refs):
        plan = Plan.of("parity", plan.specs, refs)
    return ParityPlan(plan, (*whole.absent, *deferred), tuple(kept), specs, whole.keys)


def _unfinished(plan: Plan, home: Path | None) -> Run | None:
    """The run of the whole plan, if it was interrupted."""
    folder = folder_of(plan, home)
    if folder is None or read(folder.journal_path(folder.attempts()[-1])).sealed:
        return None
    return folder.load()


def _sizes(method: MethodSpec, request: ParityRequest) -> Iterable[Size]:
    if request.sizes:
        return dict.fromkeys(request.sizes)
    return method.sizes[:1] if request.registry_cells else method.sizes


def _known_rows(request: ParityRequest, plan: Plan, specs: Mapping[str, BindingSpec]) -> dict[RowKey, ParityRow]:
    """The rows that may be kept: none, unless earlier results are asked for.

    A run of the whole plan that was interrupted is continued, whatever rows an older run left. If only some of its
    cells are to be run now, or were since, then what it finished is kept as rows.
    """
    if not (request.resume or request.rerun_failed):
        return {}
    rows = read_rows(request.out_csv) if request.out_csv is not None and request.out_csv.exists() else []
    run = _unfinished(plan, request.home)
    if run is not None:
        folders = takewhile(lambda folder: folder.run_id != run.plan.run_id, run_folders(request.home))
        since = {folder.run_id for folder in folders}
        rows = [row for row in rows if row.run_id in since]
        if request.max_cells is None and not rows:
            return {}
        rows += Judge(request.store, request.root).rows(run, specs)
    return {row.key: row for row in merge(rows)}


def _must_run(row: ParityRow, request: ParityRequest) -> bool:
    """Whether a cell that has a row is run again: failures on request, and whatever is stale."""
    if row.status is not BindingStatus.OK:
        return request.rerun_failed or row.status in _NEVER_RUN
    return _is_cut_short(row, request) or json.loads(row.versions_json or "{}") != BACKENDS[row.backend].versions()


def _is_cut_short(row: ParityRow, request: ParityRequest) -> bool:
    """Whether its time rests on fewer runs than this request would make."""
    capped = row.stop_reason == "max_runs" and (row.total_runs or 0) < request.max_runs
    return capped or (row.stop_reason == "budget" and request.budget_s is None)


_NEVER_RUN = (BindingStatus.NOT_RUN, BindingStatus.NOT_AVAILABLE, BindingStatus.DEFERRED, BindingStatus.NOT_IMPLEMENTED)


def _row_without_run(spec: BindingSpec, backend: str, no_data: str | None) -> ParityRow | None:
    if backend not in spec.method.backends:
        return base_row(spec, backend, BindingStatus.NOT_IMPLEMENTED, message=f"{backend} does not have this method")
    try:
        reason = availability(BACKENDS[backend])[0] or no_data
    except BrokenBackendError as error:
        return base_row(spec, backend, BindingStatus.FAILED, message=str(error), measured_at=now())
    return base_row(spec, backend, BindingStatus.NOT_AVAILABLE, message=reason) if reason else None


def run_parity(
    request: ParityRequest, observer: Observer | None = None, *, executor: Executor | str = "local"
) -> list[ParityRow]:
    """All rows of the request: run, kept and absent ones. The CSV file is written whole, after the last cell."""
    if request.out_csv is not None and request.out_csv.exists():
        read_rows(request.out_csv)  # a file that cannot be added to is refused now, not after the last cell
    planned = plan_parity(request)
    judge = Judge(request.store, request.root)
    judged: list[ParityRow] = []
    if planned.plan.refs:
        with contextlib.ExitStack() as stack:
            used = stack.enter_context(EXECUTORS[executor](1)) if isinstance(executor, str) else executor
            try:
                run = execute(
                    planned.plan,
                    used,
                    locate=_Inputs(request.root),
                    mode=_mode(request),
                    limits=Limits(timeout_s=request.timeout_s),
                    home=request.home,
                    observer=observer,
                    facts={
                        "command": request.command,
                        "kind": "parity",
                        "unavailable": planned.unavailable,
                        **({"name": check_name(request.name)} if request.name else {}),
                    },
                )
            except KeyboardInterrupt:
                _write_what_there_is(request, planned, judge)
                raise
        judged = judge.rows(run, planned.specs)
    return _written(request, planned, judge, judged)


def _written(request: ParityRequest, planned: ParityPlan, judge: Judge, judged: list[ParityRow]) -> list[ParityRow]:
    """All rows, the kept ones judged anew: an oracle may have come, or a tolerance changed, since then."""
    kept = [judge.again(row, planned.spec_of(row)) for row in planned.kept]
    files = {"registry_json": json.dumps(request.registry) if request.registry else ""}
    fresh = [row.model_copy(update=files) for row in (*planned.absent, *judged)]
    found = {row.key: row for row in merge(kept, fresh)}
    rows = [found[key] for key in planned.keys]
    if request.out_csv is not None:
        before = read_rows(request.out_csv) if request.out_csv.exists() else []
        write_rows(request.out_csv, merge(before, rows))
    return rows


def _write_what_there_is(request: ParityRequest, planned: ParityPlan, judge: Judge) -> None:
    """After an interruption: the cells that finished, and the others as not run."""
    folder = folder_of(planned.plan, request.home)
    with contextlib.suppress(BoostersEvalError):
        if folder is not None:
            _written(request, planned, judge, judge.rows(folder.load(), planned.specs))


def _mode(request: ParityRequest) -> Mode:
    if request.rerun_failed:
        return Mode.RERUN_FAILED
    return Mode.RESUME if request.resume else Mode.NEW


@dataclass(frozen=True)
class _Inputs:
    """Where every cell finds the shared data, and puts its prediction."""

    root: Path

    def __call__(self, cell: Cell, scratch: Path) -> dict[str, str]:
        del cell, scratch
        return {"data": str(self.root / "data"), "artifacts": str(self.root / "arrays")}


def selected(names: Sequence[str]) -> tuple[str, ...]:
    """The methods of a choice in which `all` may stand for every one."""
    return () if "all" in names else tuple(names)
