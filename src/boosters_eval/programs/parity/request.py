"""What the commands `parity ...` are asked for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.request import (
    RUN,
    Accepted,
    InHome,
    Request,
    choice,
    count,
    number,
    parameter,
    path,
    quiet_option,
    text,
)
from boosters_eval.core.terms import named, the
from boosters_eval.engine.settings import RunSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

_GUARD_S = 24 * 3600.0  # a cell ends by the protocol; this only catches what hangs
_SECONDS = number("seconds above 0", above=0, metavar="SECONDS")
_SIZE = re.compile(r"([1-9][0-9]{0,8})x([1-9][0-9]{0,6})")
_RENDERED = (".md", ".html", ".json")


def _size(value: Any) -> tuple[int, int]:
    """Rows and columns, from text or a pair."""
    found = _SIZE.fullmatch("x".join(map(str, value)) if isinstance(value, tuple) else str(value))
    if found is None:
        raise ValueError
    return int(found[1]), int(found[2])


# What several of these commands have.
_METHODS = parameter((), kind=text("names of methods", "NAME"), help="Methods, or all. Default: all.")
_REGISTRY = parameter(
    (),
    kind=path("Python files"),
    separator=None,
    help="Python files that define further methods, backends and data generators.",
)
_ORACLES = parameter(
    None,
    kind=path("a folder", "FOLDER"),
    help="The folder of the stored predictions of references (oracles). Default: in the home of the runs.",
)
_CSV = parameter(
    kind=path("files of results"),
    several=True,
    separator=None,
    help="Files of results that 'parity run' wrote; of the same cell, the newest result counts.",
)


class _Timed(RunSettings):
    """Cells that end by a protocol, and have a row each."""

    timeout: float = parameter(
        _GUARD_S, kind=_SECONDS, panel=RUN, help="Seconds after which a cell is killed. Default: 86400, which is a day."
    )


class ParityRequest(_Timed, Request):
    command: ClassVar = "parity run"
    help: ClassVar = """Run methods on backends, and compare their predictions with those of a reference.

    A method, such as partial least squares, is computed by several backends: libraries, programs or bindings. Each
    combination of method, backend, size and number of threads is a cell. Its predictions are compared with those of the
    method's reference implementation (its oracle).

    Exit 0 if every cell that could run has a result, 2 if one failed. To fail on predictions that differ, use 'parity
    gate'.
    """
    program: ClassVar = "boosters_eval.programs.parity.run:run_parity"

    methods: Sequence[str] = _METHODS
    backends: Sequence[str] = parameter(
        (), short="--only", kind=text("names of backends", "NAME"), help="Backends. Default: all."
    )
    sizes: Sequence[tuple[int, int]] = parameter(
        (),
        kind=Accepted("rows x columns, such as 1000x50", _size, _size, "ROWSxCOLUMNS"),
        help="Rows x columns: 1000x50. Default: those of each method.",
    )
    registry_cells: bool = parameter(False, help="Only the first size of each method.")
    full_matrix: bool = parameter(
        False, help="All methods on all backends and sizes, with 1, 3, and 10 threads unless told otherwise."
    )
    threads: Sequence[int] = parameter(
        (), kind=count(1), help="Thread counts. Default: 1, or 1, 3, and 10 for the full matrix."
    )
    max_runs: int = parameter(40, kind=count(1), help="The most runs per cell.")
    rounds: int | None = parameter(
        None,
        kind=count(1),
        help="Rounds in which the backends of a method take turns, so that a speed-up has an interval. Default: 5, but"
        " 1 if a cell has at most two runs.",
    )
    compare_all: bool = parameter(
        False, help="Compare the predictions for all data sets of the protocol. Default: for three of them."
    )
    max_cells: int | None = parameter(
        None, kind=count(1), help="Run only so many cells now, and defer the others. Default: all."
    )
    budget: float | None = parameter(
        None, kind=_SECONDS, help="Seconds after which a cell begins no further run. Default: none."
    )
    force: bool = parameter(False, door="options", help="Run everything again.")
    out_csv: Path | None = parameter(
        None, kind=path(), typed=Path("parity.csv"), written=True, help="The file of all results."
    )
    publish: Path | None = parameter(
        None,
        kind=path("a folder", "FOLDER"),
        help="A folder for static pages of all results: the dashboard, Markdown, JSON, and CSV.",
    )
    oracles: Path | None = _ORACLES
    registry: Sequence[Path] = _REGISTRY

    def check(self) -> None:
        """Refuse what contradicts itself."""
        super().check()
        part = next((name for name in ("methods", "backends", "sizes", "registry_cells") if getattr(self, name)), None)
        if self.full_matrix and part:
            raise ConfigError(f"Use either {named('full_matrix')} or {named(part)}, not both.")
        if self.force and (self.resume or self.rerun_failed):
            raise ConfigError(
                f"Use {named('force')} to run everything again, or {named('resume')} or {named('rerun_failed')} to keep"
                " results."
            )


class ParityGateRequest(Request):
    command: ClassVar = "parity gate"
    help: ClassVar = """Fail if a backend of the project under test predicts something else.

    Its predictions are compared with those of each method's reference implementation, and with those of the project's
    main binding. Exit 1 if one differs by more than the tolerance, 2 if one has no result.
    """
    program: ClassVar = "boosters_eval.programs.parity.findings:decide_gate"

    csv: Sequence[Path] = _CSV
    strict_external: bool = parameter(False, help="Check all other backends as well.")
    own: Sequence[str] = parameter(
        (),
        kind=text("names of backends", "NAME"),
        help="Backends of the project under test. Default: those that are marked as such ('parity list' shows it).",
    )
    allow_absent: bool = parameter(False, help="Accept backends of the project that are not installed here.")
    registry: Sequence[Path] = _REGISTRY


class ParityRenderRequest(Request):
    command: ClassVar = "parity render"
    help: ClassVar = "Render results as Markdown, as a dashboard of one HTML file, or as JSON."
    program: ClassVar = "boosters_eval.programs.parity.document:render_results"

    csv: Sequence[Path] = _CSV
    out: Path = parameter(kind=path(), written=True, help="The file to write: .md, .html (the dashboard) or .json.")
    registry: Sequence[Path] = _REGISTRY
    quiet: bool = quiet_option("Do not say what was written.")

    def check(self) -> None:
        """Refuse a file whose name says nothing of its format."""
        super().check()
        if self.out.suffix.lower() not in _RENDERED:
            raise ConfigError(f"{the('out')} must end in .md, .html or .json. Got '{self.out}' instead.")


class ParityListRequest(Request):
    command: ClassVar = "parity list"
    help: ClassVar = "List methods and backends, and which backends are available here."
    program: ClassVar = "boosters_eval.programs.parity.catalog:list_available"

    registry: Sequence[Path] = _REGISTRY


class ParityInitRequest(Request):
    command: ClassVar = "parity init"
    help: ClassVar = """Write a registry of your own, with a backend in your language to replace by yours.

    It runs as it is: a method, its data, a reference in Python, and a backend that agrees with it.
    """
    program: ClassVar = "boosters_eval.programs.parity.templates:write_templates"

    folder: Path = parameter(kind=path("a folder", "FOLDER"), argument=True, help="The folder to write to.")
    language: str = parameter(
        "python",
        kind=choice("python", "command", "r", "octave", "c"),
        help="Of the backend: python, command (any program), r, octave, or c (by ctypes). Default: python.",
    )
    force: bool = parameter(False, help="Replace the files that are there.")


class OraclesListRequest(InHome, Request):
    command: ClassVar = "parity oracles list"
    help: ClassVar = "List the stored predictions with which others are compared."
    program: ClassVar = "boosters_eval.programs.parity.references:list_stored"

    oracles: Path | None = _ORACLES

    def check(self) -> None:
        """Refuse a folder that is not there: nothing in it proves nothing."""
        super().check()
        if self.oracles is not None and not self.oracles.is_dir():
            raise ConfigError(f"{the('oracles')} must be a folder that exists. Got '{self.oracles}' instead.")


class OraclesVerifyRequest(OraclesListRequest):
    command: ClassVar = "parity oracles verify"
    help: ClassVar = "Check that no stored prediction was changed or damaged."
    program: ClassVar = "boosters_eval.programs.parity.references:verify_stored"


class OraclesRefreshRequest(_Timed, Request):
    command: ClassVar = "parity oracles refresh"
    help: ClassVar = (
        "Run the reference implementation and the project's main binding of each method, and store their predictions."
    )
    program: ClassVar = "boosters_eval.programs.parity.run:refresh_oracles"

    methods: Sequence[str] = _METHODS
    oracles: Path | None = _ORACLES
    registry: Sequence[Path] = _REGISTRY
