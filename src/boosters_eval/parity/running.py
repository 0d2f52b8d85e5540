"""From a request to rows: plan the cells, run them through the engine, and judge what they predicted."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.home import home as home_folder
from boosters_eval.engine.execute import Mode, execute
from boosters_eval.engine.executor import EXECUTORS, Executor, Limits
from boosters_eval.engine.plan import CellRef, Exclusion, Plan
from boosters_eval.parity.backend import BACKENDS
from boosters_eval.parity.binding import BindingSpec
from boosters_eval.parity.data import GENERATORS, ensure_data
from boosters_eval.parity.judging import Judge, base_row
from boosters_eval.parity.method import BASE_SEED, METHODS, MethodSpec, Size
from boosters_eval.parity.references import ReferenceStore
from boosters_eval.parity.rows import ParityRow, merge, read_rows, write_rows
from boosters_eval.parity.verdicts import BindingStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from boosters_eval.engine.cell import Cell
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
    budget_s: float | None = None
    timeout_s: float = GUARD_S
    resume: bool = False
    rerun_failed: bool = False
    force: bool = False
    home: Path | None = None
    out_csv: Path | None = None
    oracles: Path | None = None  # the folder of stored references
    command: tuple[str, ...] = ()

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
    absent: tuple[ParityRow, ...] = ()  # not implemented, or not available here
    kept: tuple[ParityRow, ...] = ()  # of an earlier run
    specs: Mapping[str, BindingSpec] = field(default_factory=dict)

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
    if sum((request.resume, request.rerun_failed, request.force)) > 1:
        raise ConfigError("Use one of --resume, --rerun-failed and --force.")
    chosen = [METHODS[name] for name in request.methods or METHODS]
    wanted = [BACKENDS[name].name for name in request.backends]
    known = _known_rows(request)
    specs: list[BindingSpec] = []
    refs: list[CellRef] = []
    absent: list[ParityRow] = []
    kept: list[ParityRow] = []
    for method in chosen:
        for size in _sizes(method, request):
            reason = GENERATORS[method.data].missing(method)
            digest = "" if reason else ensure_data(request.root / "data", method, size)[1]
            for threads in request.threads:
                spec = BindingSpec(
                    name=spec_name(method.name, size, threads),
                    n_threads=threads,
                    method=method,
                    size=size,
                    data_digest=digest,
                    max_runs=request.max_runs,
                    budget_s=request.budget_s,
                )
                position = len(specs)
                specs.append(spec)
                for backend in wanted or method.backends:
                    row = _row_without_run(spec, backend, reason)
                    if row is not None:
                        absent.append(row)
                        continue
                    earlier = known.get(base_row(spec, backend, BindingStatus.NOT_RUN).key)
                    if earlier is not None and not _must_run(earlier, request):
                        kept.append(earlier)
                    else:
                        refs.append(CellRef(position, backend, BASE_SEED, None))
    plan = Plan.of("parity", specs, refs)
    return ParityPlan(plan, tuple(absent), tuple(kept), {spec.name: spec for spec in specs})


def _sizes(method: MethodSpec, request: ParityRequest) -> Iterable[Size]:
    if request.sizes:
        return request.sizes
    return method.sizes[:1] if request.registry_cells else method.sizes


def _known_rows(request: ParityRequest) -> dict[Any, ParityRow]:
    if request.force or request.out_csv is None or not request.out_csv.exists():
        return {}
    return {row.key: row for row in read_rows(request.out_csv)}


def _must_run(row: ParityRow, request: ParityRequest) -> bool:
    """Whether a cell that has a row is run again: failures on request, anything else unless it is to be resumed."""
    if not (request.resume or request.rerun_failed):
        return True
    finished = row.status is BindingStatus.OK
    return not finished and (request.rerun_failed or row.status in _NEVER_RUN)


_NEVER_RUN = (BindingStatus.NOT_RUN, BindingStatus.NOT_AVAILABLE, BindingStatus.DEFERRED, BindingStatus.NOT_IMPLEMENTED)


def _row_without_run(spec: BindingSpec, backend: str, no_data: str | None) -> ParityRow | None:
    if backend not in spec.method.backends:
        return base_row(spec, backend, BindingStatus.NOT_IMPLEMENTED, message=f"{backend} does not have this method")
    reason = BACKENDS[backend].missing() or no_data
    return base_row(spec, backend, BindingStatus.NOT_AVAILABLE, message=reason) if reason else None


def run_parity(
    request: ParityRequest, observer: Observer | None = None, *, executor: Executor | str = "local"
) -> list[ParityRow]:
    """All rows of the request: run, kept and absent ones. The CSV file is written whole, after the last cell."""
    planned = plan_parity(request)
    judged: list[ParityRow] = []
    if planned.plan.refs:
        with contextlib.ExitStack() as stack:
            used = stack.enter_context(EXECUTORS[executor](1)) if isinstance(executor, str) else executor
            run = execute(
                planned.plan,
                used,
                locate=_Inputs(request.root),
                mode=_mode(request),
                limits=Limits(timeout_s=request.timeout_s),
                home=request.home,
                observer=observer,
                facts={"command": request.command, "unavailable": planned.unavailable},
            )
        judged = Judge(request.store, request.root).rows(run, planned.specs)
    rows = merge(planned.absent, planned.kept, judged)
    if request.out_csv is not None:
        before = read_rows(request.out_csv) if request.out_csv.exists() else []
        write_rows(request.out_csv, merge(before, rows))
    return rows


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
