"""Runs without their models: the form of a journal's lines, and a run in words."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from boosters_eval.core.errors import BoostersEvalError
from boosters_eval.core.files import MAX_RESULTS, compute_digest, load_json, read_text

if TYPE_CHECKING:
    from boosters_eval.engine.folder import RunFolder


START = "0" * 32  # what the first line follows
LINE = re.compile(
    rb'\{"prev":"([0-9a-f]{32})",(?:"of":"([\w.-]+)",)?(?:"with":"([0-9a-f]{16})",)?'
    rb'"(begin|common|result|failure|end)":(.*)\}\n',
    re.DOTALL,
)


def digest_line(line: bytes) -> str:
    return compute_digest(line, 32)


class CountedRun(Protocol):
    """A run whose cells are counted."""

    @property
    def state(self) -> str: ...
    @property
    def fault(self) -> str: ...
    @property
    def done(self) -> int: ...
    @property
    def failed(self) -> int: ...
    @property
    def missing(self) -> int | None: ...


def describe_cells(run: CountedRun) -> str:
    """How many cells of each kind it has, or why that cannot be told."""
    if run.state == "unreadable":
        return f"unreadable: {run.fault}"
    if run.state == "not begun":
        return run.state
    parts = [f"{run.done} done"]
    parts += [f"{run.failed} failed"] if run.failed else []
    parts += [f"{run.missing} missing"] if run.missing else []
    parts += ["running"] if run.state == "running" else []
    parts += ["not sealed"] if run.state == "unfinished" and not run.missing else []
    return ", ".join(parts)


def describe_kind(kind: str, title: str) -> str:
    """What kind of run it is, and of what, unless that is the same word."""
    return " ".join(filter(None, [kind, f"({title})" if title not in ("", kind) else ""]))


def format_local_time(recorded: str, written: float | None = None) -> str:
    """A time as runs record it, in local time; where that is not known, when the run was last written to."""
    try:
        found = datetime.fromisoformat(recorded)
        return f"{found.astimezone():%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError):
        if written is None:
            return recorded or "-"
        return f"{datetime.fromtimestamp(written, UTC).astimezone():%Y-%m-%d %H:%M}"


def list_data_sets(folder: RunFolder, attempt: int) -> str:
    """The data sets of a run's plan, as far as it can be read and its benchmarks have any."""
    path = folder.plan_path(attempt)
    try:
        specs = load_json(read_text(path, limit=MAX_RESULTS), str(path))["specs"]
        return ", ".join(dict.fromkeys(str(spec["dataset"]) for spec in specs if spec.get("dataset")))
    except (BoostersEvalError, OSError, LookupError, TypeError, AttributeError):  # the state tells of it
        return ""
