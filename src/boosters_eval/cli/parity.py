"""The commands `parity ...`: the same method across bindings, languages and references."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from boosters_eval.cli.execution import resumable
from boosters_eval.cli.options import (
    CLUSTER,
    Execution,
    all_but,
    check_cluster,
    executor_of,
    typed,
    with_options,
)
from boosters_eval.cli.output import check_output, emit, note, print_rows, say
from boosters_eval.core.errors import ConfigError, ExitCode

if TYPE_CHECKING:
    from boosters_eval.programs.parity.rows import ParityRow

parity = typer.Typer(
    name="parity",
    help="Compare a method across bindings, languages and a reference, and time each.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
oracles = typer.Typer(
    name="oracles", help="The stored predictions of oracles.", no_args_is_help=True, rich_markup_mode=None
)
parity.add_typer(oracles)

RegistryOption = Annotated[
    list[Path] | None,
    typer.Option("--registry", help="Python files that define further methods, backends and data generators."),
]
OraclesOption = Annotated[
    Path | None,
    typer.Option("--oracles", help="The folder of the stored oracles. Default: in the home of the runs."),
]


@parity.command()
@with_options(execution=Execution, without=all_but(Execution, *CLUSTER, "track"))
def run(
    *,
    execution: Execution,
    methods: Annotated[list[str] | None, typer.Option("--methods", help="Methods, or all. Default: all.")] = None,
    backends: Annotated[list[str] | None, typer.Option("--backends", "--only", help="Backends. Default: all.")] = None,
    sizes: Annotated[
        list[str] | None, typer.Option("--sizes", help="Rows x columns: 1000x50. Default: those of each method.")
    ] = None,
    registry_cells: Annotated[
        bool, typer.Option("--registry-cells", help="Only the canonical size of each method.")
    ] = False,
    threads: Annotated[list[int] | None, typer.Option("--threads", min=1, help="Thread counts. Default: 1.")] = None,
    max_runs: Annotated[int, typer.Option("--max-runs", min=1, help="The most runs per cell.")] = 40,
    max_cells: Annotated[
        int | None, typer.Option("--max-cells", min=1, help="Run only so many cells now, and defer the others.")
    ] = None,
    budget: Annotated[
        float | None, typer.Option("--budget", help="Seconds after which a cell begins no further run.")
    ] = None,
    timeout: Annotated[float, typer.Option("--timeout", help="Seconds after which a cell is killed.")] = 24 * 3600.0,
    resume: Annotated[bool, typer.Option("--resume", help="Run only what has no result yet.")] = False,
    rerun_failed: Annotated[bool, typer.Option("--rerun-failed", help="Run failed cells again as well.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Run everything again.")] = False,
    out_csv: Annotated[Path, typer.Option("--out-csv", help="The file of all results.")] = Path("parity.csv"),
    oracles: OraclesOption = None,
    registry: RegistryOption = None,
    name: Annotated[
        str | None, typer.Option("--name", help="A name for the run, for 'runs show' and the like.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress.")] = False,
) -> int:
    """Run methods on backends, and write one row per cell.

    Exit 0 if every cell that could run has a result, 2 if one failed. Whether they agree is the gate's question.
    """
    from boosters_eval.engine.observer import ObserverSettings, watching
    from boosters_eval.engine.runs import check_name
    from boosters_eval.programs.parity.running import ParityRequest, run_parity, selected
    from boosters_eval.running import progress

    check_cluster(execution)
    load_registries(registry)
    for option, seconds in (("--timeout", timeout), ("--budget", budget)):
        if seconds is not None and not 0 < seconds < float("inf"):
            raise ConfigError(f"The '{option}' option must be seconds above 0. Got {seconds:g} instead.")
    check_output(out_csv)
    request = ParityRequest(
        methods=selected(_spread(methods)),
        backends=selected(_spread(backends)),
        sizes=tuple(_size(text) for text in _spread(sizes)),
        registry_cells=registry_cells,
        threads=tuple(dict.fromkeys(threads or [1])),
        max_runs=max_runs,
        max_cells=max_cells,
        budget_s=budget,
        timeout_s=timeout,
        resume=resume,
        rerun_failed=rerun_failed,
        force=force,
        out_csv=out_csv,
        oracles=oracles,
        command=tuple(typed()),
        name=None if name is None else check_name(name),
        registry=tuple(map(str, registry or ())),
    )
    tell = (lambda _: None) if quiet else note
    watched = watching([] if quiet else [progress()], ObserverSettings(say=tell, track=execution.track))
    with watched as observer, resumable(without=("--force",)), executor_of(execution) as executor:
        rows = run_parity(request, observer, executor=executor)
    _show(rows)
    if not quiet:
        note(f"Written: {out_csv}")
    failed = [row for row in rows if row.status.value in ("failed", "crashed", "timeout", "refused", "not_run")]
    return ExitCode.EXECUTION_ERROR if failed or not rows else ExitCode.SUCCESS


def _show(rows: "list[ParityRow]") -> None:
    print_rows(
        ("method", "backend", "size", "threads", "result", "difference", "ms"),
        [
            (
                row.method,
                row.backend,
                f"{row.n}x{row.p}",
                str(row.threads),
                row.verdict.value if row.verdict else row.status.value + (f" ({row.signal})" if row.signal else ""),
                "-" if row.divergence is None else f"{row.divergence:.2g}",
                "-" if row.reported_ms is None else f"{row.reported_ms:.3g}",
            )
            for row in rows
        ],
        keys=4,
    )


@parity.command()
def gate(
    *,
    csv: Annotated[list[Path], typer.Option("--csv", help="Files of results; of equal cells, the newest counts.")],
    strict_external: Annotated[
        bool, typer.Option("--strict-external", help="Fail on divergent external backends as well.")
    ] = False,
    own: Annotated[
        list[str] | None, typer.Option("--own", help="Backends that count as own, instead of the declared ones.")
    ] = None,
    allow_absent: Annotated[
        bool, typer.Option("--allow-absent", help="Accept own bindings that are not installed here.")
    ] = False,
) -> int:
    """Exit 1 if one of the project's own bindings diverges, 2 if one of them has no result."""
    from boosters_eval.programs.parity.gate import decide
    from boosters_eval.programs.parity.rows import merge, read_rows

    rows = merge(*(read_rows(path) for path in csv))
    decision = decide(rows, strict_external=strict_external, own=tuple(own or ()), allow_absent=allow_absent)
    for sentence in decision.objections:
        say(sentence)
    say(decision.summary)
    return decision.exit_code


@parity.command()
def render(
    *,
    csv: Annotated[list[Path], typer.Option("--csv", help="Files of results; of equal cells, the newest counts.")],
    out: Annotated[Path, typer.Option("--out", help="The file to write: .md, .html (the dashboard) or .json.")],
    registry: RegistryOption = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Do not say what was written.")] = False,
) -> None:
    """Render results as Markdown, as a dashboard of one HTML file, or as JSON."""
    from boosters_eval.engine.journal import no_collection
    from boosters_eval.programs.parity.rendering import declared_backends, renderer_for
    from boosters_eval.programs.parity.report import build_parity_report
    from boosters_eval.programs.parity.rows import merge, read_rows

    rendered = renderer_for(out)
    check_output(out)
    load_registries(registry)
    with no_collection():
        rows = merge(*(read_rows(path) for path in csv))
        text = rendered(build_parity_report(rows, declared_backends(rows)))
    emit(text, out, quiet=quiet)


@parity.command("list")
def list_methods(*, registry: RegistryOption = None) -> None:
    """List methods and backends, and what is available here."""
    from boosters_eval.programs.parity.backend import BACKENDS, BrokenBackendError, availability
    from boosters_eval.programs.parity.method import METHODS

    load_registries(registry)
    print_rows(
        ("method", "oracle", "tolerance", "sizes", "backends", "description"),
        [
            (
                name,
                f"{method.oracle.backend} {method.oracle.version}" if method.oracle else "none",
                f"{method.tolerance:g} ({method.metric})",
                ", ".join(map(str, method.sizes)),
                ", ".join(method.backends),
                method.description,
            )
            for name, method in METHODS.items()
        ],
    )
    rows = []
    for name, backend in BACKENDS.items():
        try:
            missing, versions = availability(backend)
        except BrokenBackendError as error:
            missing, versions = str(error), {}
        found = ", ".join(f"{k} {v}" for k, v in versions.items())
        rows.append((name, backend.language, "own" if backend.own else "external", missing or f"yes ({found})"))
    print_rows(("backend", "language", "kind", "available"), rows)


@oracles.command("list")
def list_oracles(*, folder: OraclesOption = None) -> None:
    """List the stored references."""
    rows = [
        (found.method, str(found.size), found.role, f"{found.backend} {found.version}", found.measured_at)
        for found in _store(folder).all()
    ]
    print_rows(("method", "size", "role", "backend", "measured"), rows, keys=3)


@oracles.command()
def verify(*, folder: OraclesOption = None) -> int:
    """Check every stored reference against its digest."""
    checked = list(_store(folder).verify())
    for name, fault in checked:
        say(f"{name}: {fault or 'unchanged'}")
    if not checked:
        note("Error: No reference is stored, so nothing was verified.")
    return ExitCode.SUCCESS if checked and not any(fault for _, fault in checked) else ExitCode.EXECUTION_ERROR


@oracles.command()
def refresh(
    *,
    methods: Annotated[list[str] | None, typer.Option("--methods", help="Methods. Default: all.")] = None,
    folder: OraclesOption = None,
    registry: RegistryOption = None,
) -> int:
    """Run the oracle and the canonical binding of each method on its sizes, and store what they predict."""
    from boosters_eval.engine.observer import watching
    from boosters_eval.programs.parity.method import METHODS
    from boosters_eval.programs.parity.running import ParityRequest, run_parity, selected
    from boosters_eval.running import progress

    load_registries(registry)
    rows: list[Any] = []
    for name in selected(_spread(methods)) or METHODS:
        oracle = METHODS[name].oracle
        if oracle is None:
            note(f"{name} declares no oracle.")
            continue
        backends = (oracle.backend, METHODS[name].canonical)
        request = ParityRequest(methods=(name,), backends=backends, max_runs=1, force=True, oracles=folder)
        with watching([progress()]) as observer:
            rows += run_parity(request, observer)
    _show(rows)
    stored = [row for row in rows if row.status.value == "ok" and row.verdict and row.verdict.value != "oracle_missing"]
    if rows and len(stored) == len(rows):
        return ExitCode.SUCCESS
    first = next((row for row in rows if row not in stored), None)
    told = (
        f", the first of them {first.method} of {first.backend}: {first.message or first.status.value}" if first else ""
    )
    note(f"Error: {len(rows) - len(stored)} of {len(rows)} references were not stored{told}.")
    return ExitCode.EXECUTION_ERROR


def load_registries(files: list[Path] | None) -> None:
    """The methods, backends and generators that the user's files define; the files are the user's own code."""
    from boosters_eval.programs.parity.registration import register_file

    for file in files or ():
        register_file(file)


def _store(folder: Path | None) -> Any:
    from boosters_eval.programs.parity.running import ParityRequest

    if folder is not None and not folder.is_dir():
        raise ConfigError(f"The '--oracles' option must be a folder that exists. Got '{folder}' instead.")
    return ParityRequest(oracles=folder).store


def _spread(given: list[str] | None) -> list[str]:
    return [name for text in given or () for name in text.split(",") if name]


def _size(text: str) -> Any:
    from boosters_eval.programs.parity.method import Size

    match = re.fullmatch(r"([1-9]\d{0,8})x([1-9]\d{0,6})", text)
    if match is None:
        raise ConfigError(f"The '--sizes' option must be rows x columns, such as 1000x50. Got '{text}' instead.")
    return Size(int(match[1]), int(match[2]))


def register(app: typer.Typer) -> None:
    """Add these commands to the program."""
    app.add_typer(parity)
