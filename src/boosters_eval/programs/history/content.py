"""What the files of a run say, read as plain JSON: models would cost ten times as much for thousands of runs.

The chain of a journal, its seal, its cells and the digests of the files beside it are checked. Whether each value is
what its model allows, and whether the plan gives the run id, is checked when somebody loads the run.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json

from boosters_eval.core.files import FORMAT, MAX_RESULTS, MAX_TEXT, check_regular, compute_digest, other_format
from boosters_eval.engine.cell import cell_key
from boosters_eval.engine.lines import LINE, START, line_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from boosters_eval.engine.folder import RunFolder

_UNKNOWN = "\0"  # begins what stands for the key of a cell whose outcome does not name it
Raw = dict[str, Any]


class DamagedError(ValueError):
    """What is wrong with a file, in a few words that follow its name."""


@dataclass
class Content:
    """One attempt at a run, or a results file."""

    run_id: str
    attempt: int
    facts: Raw = field(default_factory=dict)
    title: str = ""
    kind: str = ""
    state: str = "unreadable"
    fault: str = ""
    missing: int | None = None
    specs: dict[str, Raw] = field(default_factory=dict)  # by name, as plans have them
    cells: dict[tuple[str, str], int] = field(default_factory=dict)  # planned, by spec and target
    results: list[Raw] = field(default_factory=list)  # in the order of the plan
    failures: list[tuple[str, str]] = field(default_factory=list)  # their specs and targets
    done: int = 0
    builds: dict[str, Raw] = field(default_factory=dict)  # by target
    machines: dict[str, Raw] = field(default_factory=dict)  # that outcomes name, by digest
    placed: set[str] = field(default_factory=set)  # the machines of the outcomes; empty if none names any


def read_attempt(folder: RunFolder, attempt: int) -> Content:
    """One attempt of a run's folder; whatever cannot be read is its fault."""
    content = Content(folder.run_id, attempt)
    with _faults_told(content):
        _fill(content, folder)
    return content


@contextlib.contextmanager
def _faults_told(content: Content) -> Iterator[None]:
    """Whatever goes wrong while the content is filled is its fault, and nothing of it counts."""
    try:
        yield
    except OSError as error:
        content.fault = f"cannot be read: {error.strerror}"
    except DamagedError as error:
        content.fault = str(error)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        content.fault = f"has content that cannot be read ({type(error).__name__})"
    if content.fault:
        content.state, content.results, content.missing = "unreadable", [], None


def _fill(content: Content, folder: RunFolder) -> None:
    facts_path = folder.facts_path(content.attempt)
    facts = _bytes(facts_path) if os.path.lexists(facts_path) else None
    if facts is not None:
        content.facts = _object(facts, facts_path)
        _check_format(content.facts, facts_path, "a record of a run")
    plan_path = folder.plan_path(content.attempt)
    plan = _bytes(plan_path)
    order = _take_plan(content, _object(plan, plan_path), plan_path)
    journal = read_journal(folder.journal_path(content.attempt))
    _check_beside(journal.begin, plan, facts, plan_path.name, facts_path.name, content.facts)
    _take_outcomes(content, journal, order)
    content.machines = journal.begin.get("machines") or {}
    _place(content, journal.outcomes.values())
    name = folder.journal_path(content.attempt).name
    if journal.begin and journal.begin.get("run_id") != content.run_id:
        raise DamagedError(f"{name}: does not begin with this run's id")
    if journal.sealed and content.missing:
        raise DamagedError(f"{name}: incomplete: {content.missing} cells have no outcome")
    content.state = "finished" if journal.sealed else "unfinished"


def _take_plan(content: Content, plan: Raw, path: Path) -> dict[str, int]:
    """Take what the plan says, and return the position of each cell by its key."""
    _check_format(plan, path, "a plan")
    content.title, content.kind = str(plan["name"]), str(content.facts.get("kind") or "")
    names = [spec["name"] for spec in plan["specs"]]
    content.specs = dict(zip(names, plan["specs"], strict=True))
    for index, target, _, _ in plan["refs"]:
        pair = names[index], target
        content.cells[pair] = content.cells.get(pair, 0) + 1
    content.builds = {target: build for known in plan["builds"].values() for target, build in known.items()}
    return {cell_key(names[index], *rest): number for number, (index, *rest) in enumerate(plan["refs"])}


def _check_format(raw: Raw, path: Path, what: str) -> None:
    version = raw.get("schema_version")
    if version != FORMAT:
        raise DamagedError(f"{path.name}: is {what} {other_format(version)}")


def _take_outcomes(content: Content, journal: JournalContent, order: dict[str, int]) -> None:
    foreign = next((key for key in journal.outcomes if key not in order and key[0] != _UNKNOWN), None)
    if foreign is not None:
        raise DamagedError(f"has a cell that is not in the plan: {foreign}")
    content.missing = len(order) - len(journal.outcomes)
    for key in sorted(journal.outcomes, key=lambda key: order.get(key, 0)):
        outcome = journal.outcomes[key]
        if key in journal.failed:
            content.failures.append(_pair(outcome))
        else:
            content.done += 1
            content.results.append(outcome)


def _place(content: Content, outcomes: Iterable[Raw]) -> None:
    """Note which machines ran the cells; one that names none ran where the run began."""
    named = {outcome.get("machine") for outcome in outcomes}
    if named - {None}:
        content.placed = {str(digest or (content.facts.get("machine") or {}).get("digest") or "") for digest in named}


def _check_beside(begin: Raw, plan: bytes, facts: bytes | None, plan_name: str, facts_name: str, known: Raw) -> None:
    """The files beside the journal must be what they were when it began, if it has."""
    if not begin:
        return
    own = {name: value for name, value in known.items() if name != "resumed"}  # which later sessions add
    found = {
        plan_name: (begin.get("plan"), plan),
        facts_name: (begin.get("facts"), None if facts is None else json.dumps(own, sort_keys=True).encode()),
    }
    for name, (digest, data) in found.items():
        if data is None or compute_digest(data, 32) != digest:
            raise DamagedError(f"{name}: is not what it was when the attempt began")


@dataclass
class JournalContent:
    """The latest outcome of each cell, by its key."""

    begin: Raw = field(default_factory=dict)
    outcomes: dict[str, Raw] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)
    sealed: bool = False
    common: dict[str, Raw] = field(default_factory=dict)


def read_journal(path: Path) -> JournalContent:
    """A journal whose chain holds; an incomplete last line is ignored."""
    found = JournalContent()
    previous = START
    if not os.path.lexists(path):
        raise DamagedError(f"{path.name}: the file is missing")
    check_regular(path)
    with path.open("rb") as file:
        for number, line in enumerate(iter(partial(file.readline, MAX_TEXT), b""), 1):
            if not line.endswith(b"\n"):
                if len(line) >= MAX_TEXT:
                    raise DamagedError(f"{path.name}: line {number} is longer than any line of a journal")
                break
            match = LINE.fullmatch(line)
            if match is None:
                raise DamagedError(f"{path.name}: line {number} is not a line of a journal")
            if match[1].decode() != previous:
                raise DamagedError(f"{path.name}: line {number} does not follow the line before it")
            try:
                _take_line(found, match[3], match[4], match[5])
            except DamagedError as error:
                raise DamagedError(f"{path.name}: line {number} {error}") from None
            except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
                raise DamagedError(f"{path.name}: line {number} has content that cannot be read") from None
            previous = line_digest(line)
    return found


def _take_line(found: JournalContent, common: bytes | None, kind: bytes, text: bytes) -> None:
    raw = _parsed(text, _DECODER.decode, inf=False)
    found.sealed = False
    if kind == b"result":
        if common is not None:
            raw["data_digest"] = found.common[common.decode()].get("data_digest")
        _keep(found, raw, failed=False)
    elif kind == b"failure":
        _keep(found, raw, failed=True)
    elif kind == b"common":
        found.common[line_digest(text)[:16]] = {"data_digest": raw.get("data_digest")}
    elif kind == b"begin":
        found.begin = raw
        version = raw.get("schema_version")
        if version != FORMAT:
            raise DamagedError(f"begins a journal {other_format(version)}")
    else:
        found.sealed = True
        if raw != {"outcomes": len(found.outcomes)}:
            raise DamagedError("does not count the outcomes before it")


def _keep(found: JournalContent, raw: Raw, *, failed: bool) -> None:
    """The last outcome of a cell counts. What a plug-in names in its own way is counted, but not recognized."""
    named = "spec" in raw or "config_name" in raw
    key = cell_key(*_pair(raw), raw["seed"], raw.get("fold")) if named else f"{_UNKNOWN}{len(found.outcomes)}"
    found.outcomes[key] = raw
    if failed:
        found.failed.add(key)
    else:
        found.failed.discard(key)


def _pair(raw: Raw) -> tuple[str, str]:
    """The spec and target of an outcome; those of benchmarks call them otherwise."""
    return raw.get("spec") or raw["config_name"], raw.get("target") or raw["library"]


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number that this program writes")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def _parsed(text: bytes, decode: Callable[[str], Any], *, inf: bool) -> Any:
    """JSON, by the parser of pydantic, which is faster; what that refuses (half a surrogate) may still be JSON."""
    try:
        return from_json(text, allow_inf_nan=inf)
    except ValueError:
        return decode(text.decode())


def _bytes(path: Path) -> bytes:
    size = check_regular(path)
    if size > MAX_RESULTS:
        raise DamagedError(f"{path.name}: is larger than any file of this program")
    return path.read_bytes()


def _object(data: bytes, path: Path) -> Raw:
    try:
        found = _parsed(data, json.loads, inf=True)
    except (ValueError, RecursionError):
        raise DamagedError(f"{path.name}: is not JSON") from None
    if not isinstance(found, dict):
        raise DamagedError(f"{path.name}: is not an object of JSON")
    return found


def read_results(path: Path) -> Content:
    """An imported results file, which bears the digest of its content as its name."""
    content = Content("", 1)
    with _faults_told(content):
        _take_results(content, _object(_imported(path), path))
    content.run_id = content.run_id or path.name.partition(".")[0][:16]
    return content


def _imported(path: Path) -> bytes:
    data = _bytes(path)
    if compute_digest(data, 32) != path.name.partition(".")[0]:
        raise DamagedError("is not what was imported")
    return data


def _take_results(content: Content, raw: Raw) -> None:
    metadata = raw.get("metadata", {})
    facts = metadata.get("environment", {})
    content.run_id, content.attempt = str(raw.get("run_id") or ""), int(metadata.get("attempt") or 1)
    content.title, content.kind, content.facts = str(raw.get("suite") or ""), "benchmark", facts
    content.results, errors = raw.get("results", []), raw.get("errors", [])
    content.done, content.failures = len(content.results), [_pair(error) for error in errors]
    content.builds = facts.get("targets") or {}
    content.machines = metadata.get("machines") or {}
    _place(content, [*content.results, *errors])
    for outcome in (*content.results, *errors):
        pair = _pair(outcome)
        content.cells[pair] = content.cells.get(pair, 0) + 1
        if pair[0] not in content.specs:
            content.specs[pair[0]] = _spec_of(outcome, metadata)
    cells = metadata.get("n_cells")
    content.missing = None if cells is None else max(0, cells - content.done - len(errors))
    content.state = "unfinished" if content.missing else "finished"


def _spec_of(outcome: Raw, metadata: Raw) -> Raw:
    """What a plan would say of the benchmark, as far as a results file knows it."""
    parameters = dict(metadata.get("configs", {}).get(outcome["config_name"]) or {})
    kind, _, column = (parameters.pop("split", None) or "random:").partition(":")
    folds = parameters.pop("folds", None)
    users = metadata.get("user_metrics", {})
    return {
        "name": outcome["config_name"],
        "dataset": outcome.get("dataset_name", ""),
        "booster_type": outcome.get("booster_type", "gbdt"),
        "task": outcome.get("task"),
        "profile": outcome.get("profile", "parity"),
        "variant": outcome.get("variant"),
        "training": parameters or None,
        "n_threads": parameters.get("n_threads", outcome.get("n_threads", 1)),
        "split": {"folds": folds, "kind": kind, "column": column},
        "timing": {"timed": outcome.get("timing_mode", False)},
        "primary_metric": outcome.get("primary_metric"),
        "user_metrics": [{"name": name, "higher_is_better": more, "digest": ""} for name, more in users.items()],
    }
