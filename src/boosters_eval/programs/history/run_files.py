"""What the files of a run say, as rows of the index. They are read as plain JSON: models would cost ten times as much.

The chain of a journal, its seal, its cells and the digests of the files beside it are checked. Whether each value is
what its model allows, and whether the plan gives the run id, is checked when somebody loads the run.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import struct
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, lru_cache, partial
from statistics import median
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json

from boosters_eval.core.files import FORMAT, MAX_RESULTS, MAX_TEXT, check_regular, compute_digest, describe_format
from boosters_eval.engine.cell import make_key
from boosters_eval.engine.plain import LINE, START, digest_line
from boosters_eval.metrics import find
from boosters_eval.metrics.catalog import RESOURCES
from boosters_eval.programs.history.model import PER_SECOND
from boosters_eval.programs.history.store import IndexGroup, IndexLine, IndexRows
from boosters_eval.runners.parameters import TrainingConfig
from boosters_eval.runners.result import BUSY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from boosters_eval.engine.folder import RunFolder
    from boosters_eval.programs.history.model import Origin

Raw = dict[str, Any]
SCORES, MEASURED = "scores", "resources"  # what is measured on the same splits, and what depends on the machine too
_UNKNOWN = "\0"  # begins what stands for the key of a cell whose outcome does not name it
_OVERHEAD = 0.05  # seconds per cell in addition to building, training and predicting
_MOST = 2**63
_DIGEST = 16  # digits that are enough to tell predictions apart
_UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, RecursionError)  # of JSON whose types nobody checked


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
    cells: Counter[tuple[str, str]] = field(default_factory=Counter)  # planned, by spec and target
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
        _take_files(content, folder)
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
    except _UNREADABLE as error:
        content.fault = _name_fault(error)
    if content.fault:
        content.state, content.results, content.missing = "unreadable", [], None


def _name_fault(error: Exception) -> str:
    return f"has content that cannot be read ({type(error).__name__})"


def _take_files(content: Content, folder: RunFolder) -> None:
    facts_path = folder.facts_path(content.attempt)
    facts = _read(facts_path) if os.path.lexists(facts_path) else None
    if facts is not None:
        content.facts = _parse_object(facts, facts_path)
        _check_format(content.facts, f"{facts_path.name}: is a record of a run")
    plan_path = folder.plan_path(content.attempt)
    plan = _read(plan_path)
    order = _take_plan(content, _parse_object(plan, plan_path), plan_path)
    path = folder.journal_path(content.attempt)
    journal = _read_journal(path)
    own = {name: value for name, value in content.facts.items() if name != "resumed"}  # which later sessions add
    known = None if facts is None else json.dumps(own, sort_keys=True).encode()
    for name, file, data in (("plan", plan_path, plan), ("facts", facts_path, known)) if journal.begin else ():
        if data is None or compute_digest(data, 32) != journal.begin.get(name):
            raise DamagedError(f"{file.name}: is not what it was when the attempt began")
    _take_outcomes(content, journal, order)
    content.machines = journal.begin.get("machines") or {}
    _place(content, (outcome for outcome, _ in journal.outcomes.values()))
    if journal.begin and journal.begin.get("run_id") != content.run_id:
        raise DamagedError(f"{path.name}: does not begin with this run's id")
    if journal.sealed and content.missing:
        raise DamagedError(f"{path.name}: incomplete: {content.missing} cells have no outcome")
    content.state = "finished" if journal.sealed else "unfinished"


def _take_plan(content: Content, plan: Raw, path: Path) -> dict[str, int]:
    """Take what the plan says, and return the position of each cell by its key."""
    _check_format(plan, f"{path.name}: is a plan")
    content.title, content.kind = str(plan["name"]), str(content.facts.get("kind") or "")
    names = [spec["name"] for spec in plan["specs"]]
    content.specs = dict(zip(names, plan["specs"], strict=True))
    content.cells = Counter((names[index], target) for index, target, _, _ in plan["refs"])
    content.builds = {target: build for known in plan["builds"].values() for target, build in known.items()}
    return {make_key(names[index], *rest): number for number, (index, *rest) in enumerate(plan["refs"])}


def _check_format(raw: Raw, what: str) -> None:
    version = raw.get("schema_version")
    if version != FORMAT:
        raise DamagedError(f"{what} {describe_format(version)}")


def _take_outcomes(content: Content, journal: JournalContent, order: dict[str, int]) -> None:
    foreign = next((key for key in journal.outcomes if key not in order and key[0] != _UNKNOWN), None)
    if foreign is not None:
        raise DamagedError(f"has a cell that is not in the plan: {foreign}")
    content.missing = len(order) - len(journal.outcomes)
    for key in sorted(journal.outcomes, key=lambda key: order.get(key, 0)):
        outcome, failed = journal.outcomes[key]
        if failed:
            content.failures.append(_pair(outcome))
        else:
            content.done += 1
            content.results.append(outcome)


def _place(content: Content, outcomes: Iterable[Raw]) -> None:
    """Note which machines ran the cells; one that names none ran where the run began."""
    named = {outcome.get("machine") for outcome in outcomes}
    if named - {None}:
        content.placed = {str(digest or (content.facts.get("machine") or {}).get("digest") or "") for digest in named}


@dataclass
class JournalContent:
    """The latest outcome of each cell, by its key."""

    begin: Raw = field(default_factory=dict)
    outcomes: dict[str, tuple[Raw, bool]] = field(default_factory=dict)  # and whether it failed
    sealed: bool = False
    data_digests: dict[str, Any] = field(default_factory=dict)  # by the digest of the line that several results share


def _read_journal(path: Path) -> JournalContent:
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
            except _UNREADABLE:
                raise DamagedError(f"{path.name}: line {number} has content that cannot be read") from None
            previous = digest_line(line)
    return found


def _take_line(found: JournalContent, common: bytes | None, kind: bytes, text: bytes) -> None:
    raw = _parse(text, _DECODER.decode, inf=False)
    found.sealed = False
    if kind in (b"result", b"failure"):
        if kind == b"result" and common is not None:
            raw["data_digest"] = found.data_digests[common.decode()]
        # The last outcome of a cell counts. What a plug-in names in its own way is count_of, but not recognized.
        named = "spec" in raw or "config_name" in raw
        key = make_key(*_pair(raw), raw["seed"], raw.get("fold")) if named else f"{_UNKNOWN}{len(found.outcomes)}"
        found.outcomes[key] = raw, kind == b"failure"
    elif kind == b"common":
        found.data_digests[digest_line(text)[:16]] = raw.get("data_digest")
    elif kind == b"begin":
        found.begin = raw
        _check_format(raw, "begins a journal")
    else:
        found.sealed = True
        if raw != {"outcomes": len(found.outcomes)}:
            raise DamagedError("does not count the outcomes before it")


def _pair(raw: Raw) -> tuple[str, str]:
    """The spec and target of an outcome; those of benchmarks call them otherwise."""
    return raw.get("spec") or raw["config_name"], raw.get("target") or raw["library"]


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number that this program writes")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def _parse(text: bytes, decode: Callable[[str], Any], *, inf: bool) -> Any:
    """JSON, by the parser of pydantic, which is faster; what that refuses (half a surrogate) may still be JSON."""
    try:
        return from_json(text, allow_inf_nan=inf)
    except ValueError:
        return decode(text.decode())


def _read(path: Path) -> bytes:
    if check_regular(path) > MAX_RESULTS:
        raise DamagedError(f"{path.name}: is larger than any file of this program")
    return path.read_bytes()


def _parse_object(data: bytes, path: Path) -> Raw:
    try:
        found = _parse(data, json.loads, inf=True)
    except (ValueError, RecursionError):
        raise DamagedError(f"{path.name}: is not JSON") from None
    if not isinstance(found, dict):
        raise DamagedError(f"{path.name}: is not an object of JSON")
    return found


def read_results(path: Path) -> Content:
    """An imported results file, which bears the digest of its content as its name."""
    content = Content("", 1)
    with _faults_told(content):
        data = _read(path)
        if compute_digest(data, 32) != path.name.partition(".")[0]:
            raise DamagedError("is not what was imported")
        _take_results(content, _parse_object(data, path))
    content.run_id = content.run_id or path.name.partition(".")[0][:16]
    return content


def _take_results(content: Content, raw: Raw) -> None:
    metadata = raw.get("metadata", {})
    facts = metadata.get("environment", {})
    content.run_id, content.attempt = str(raw.get("run_id") or ""), int(metadata.get("attempt") or 1)
    content.title, content.kind, content.facts = str(raw.get("suite") or ""), "benchmark", facts
    content.results, errors = raw.get("results", []), raw.get("errors", [])
    content.done, content.failures = len(content.results), [_pair(error) for error in errors]
    content.builds = facts.get("targets") or {}
    content.machines = metadata.get("machines") or {}
    outcomes = [*content.results, *errors]
    _place(content, outcomes)
    content.cells = Counter(map(_pair, outcomes))
    firsts = {_pair(outcome)[0]: outcome for outcome in reversed(outcomes)}
    content.specs = {name: _restore_spec(outcome, metadata) for name, outcome in firsts.items()}
    cells = metadata.get("n_cells")
    content.missing = None if cells is None else max(0, cells - content.done - len(errors))
    content.state = "unfinished" if content.missing else "finished"


def _restore_spec(outcome: Raw, metadata: Raw) -> Raw:
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


def make_rows(content: Content, origin: Origin, written: float) -> IndexRows:
    """The rows of one attempt or results file; `written` stands in for a start that was not recorded.

    The content is plain JSON, whose types nobody has checked: what does not fit is damage, and must not stop the rest.
    """
    try:
        rows = _make_rows(content, origin, written)
        _check_storable(rows)
    except (*_UNREADABLE, ArithmeticError, struct.error) as error:
        run_id = content.run_id.encode(errors="replace").decode()
        damaged = Content(run_id, min(content.attempt, _MOST - 1), fault=_name_fault(error))
        return _make_rows(damaged, origin, written)
    return rows


def _check_storable(rows: IndexRows) -> None:
    """Refuse what the index cannot hold: half a surrogate, a number beyond 64 bits, a list where a text should be."""
    texts = [group.names + group.repeats + group.marks + group.line.settings for group in rows.groups]
    for value in (*rows.run.values(), *texts, *(one for row in (*rows.parts, *rows.costs) for one in row)):
        if isinstance(value, str):
            value.encode()
        elif isinstance(value, int):
            value.to_bytes(8, signed=True)
        elif value is not None and not isinstance(value, float):
            raise TypeError(f"{type(value).__name__} instead of a text or a number")


def _make_rows(content: Content, origin: Origin, written: float) -> IndexRows:
    facts = content.facts
    sessions = [facts, *(facts.get("resumed") or ())]
    began = {str((session.get("machine") or {}).get("digest") or "") for session in sessions}
    machine = "+".join(sorted(content.placed or began))
    started = str(facts.get("started_at") or "")
    key = f"{content.run_id}/{content.attempt}/{started}/{machine}"
    names = [str(session["name"]) for session in sessions if session.get("name")]
    commits = list(dict.fromkeys(str(session["git_sha"]) for session in sessions if session.get("git_sha")))
    dirty = [session["git_dirty"] for session in sessions if session.get("git_dirty") is not None]
    rows = IndexRows(
        {
            "key": key,
            "run_id": content.run_id,
            "attempt": content.attempt,
            "origin": origin,
            "started_at": started or datetime.fromtimestamp(written, UTC).isoformat(timespec="seconds"),
            "at": _order_in_time(started, written, content.attempt, key),
            "kind": content.kind,
            "title": content.title,
            "name": names[-1] if names else "",
            "git_sha": "+".join(commits),
            "git_branch": str(facts.get("git_branch") or ""),
            "git_dirty": any(dirty) if dirty else None,
            "machine": machine,
            "machine_label": _label_machines(content),
            "state": content.state,
            "fault": content.fault,
            "done": content.done,
            "failed": len(content.failures),
            "missing": content.missing,
            "versions": json.dumps({name: str(build.get("version", "")) for name, build in content.builds.items()}),
            "extends": str(facts.get("extends") or ""),
        }
    )
    if content.state != "unreadable":
        _measure(content, sessions, rows)
    return rows


def _measure(content: Content, sessions: list[Raw], rows: IndexRows) -> None:
    found: dict[tuple[str, str], list[Raw]] = {}
    done: Counter[tuple[str, str]] = Counter()
    failures = Counter(content.failures)
    for result in content.results:
        pair = str(result.get("spec") or result.get("config_name")), str(result.get("target") or result.get("library"))
        done[pair] += 1
        if content.kind == "benchmark" and "metrics" in result:
            found.setdefault(pair, []).append(result)
    several = len(content.placed) > 1  # what was measured on several machines belongs to no line of any
    disturbed = any(not item.get("judged") for session in sessions for item in session.get("disturbances") or ())
    settings = {name: _digest_settings(spec) for name, spec in content.specs.items()} if found else {}
    trainings = {name: json.dumps(spec.get("training"), sort_keys=True) for name, spec in content.specs.items()}
    for (config, target), cells in content.cells.items():
        spec, results = content.specs.get(config, {}), found.get((config, target))
        finished, failed = done[config, target], failures[config, target]
        library = str((content.builds.get(target) or {}).get("library") or target)
        dataset = str(spec.get("dataset") or "")
        rows.parts.append((config, dataset, target, library, finished, failed, cells - finished - failed))
        if results:
            for own, measures, made in _make_groups(spec, settings[config], results, disturbed=disturbed):
                if measures == SCORES or not several:
                    line = IndexLine(config, dataset, target, library, own, measures)
                    rows.groups.append(IndexGroup(line, *made, failed))
            if not several and (cost := _estimate_cost(dataset, library, trainings[config], spec, results)):
                rows.costs.append(cost)


def _make_groups(
    spec: Raw, settings: str, results: list[Raw], *, disturbed: bool
) -> Iterator[tuple[str, str, tuple[str, str, str, bytes]]]:
    """The settings, the kind, and the columns of the scores and of the resources."""
    shared = _dump_repeats(spec, results), _dump_marks(results, disturbed=disturbed)
    scores = list(dict.fromkeys(name for result in results for name in result["metrics"]))
    users = {metric["name"]: metric for metric in spec.get("user_metrics") or ()}
    primary = spec.get("primary_metric")
    known = []
    for name in scores:
        user = users.get(name, {})
        direction = bool(user["higher_is_better"]) if user else _find_direction(name)
        known.append((name, direction, name == primary, user.get("digest", "")))
    values = _pack([[result["metrics"].get(name) for result in results] for name in scores])
    yield settings, SCORES, (_dump_names(tuple(known)), *shared, values)
    columns = {name: [result.get(name) for result in results] for name in RESOURCES}
    resources = {name: column for name, column in columns.items() if column.count(None) < len(column)}
    if resources:
        timed = _digest_shared((settings, spec.get("n_threads", 1), bool((spec.get("timing") or {}).get("timed"))))
        names = _dump_names(tuple((name, False, False, "") for name in resources))
        yield timed, MEASURED, (names, *shared, _pack(list(resources.values())))


@cache
def _find_direction(name: str) -> bool | None:
    metric = find(name)
    return None if metric is None else metric.higher_is_better


def _dump_repeats(spec: Raw, results: list[Raw]) -> str:
    data = next((result["data_digest"] for result in results if result.get("data_digest")), spec.get("data_digest"))
    found = []
    for result in results:
        split = result.get("split") or {}
        own = [result.get(name) for name in ("fold", "split_digest", "n_train", "n_valid")]
        groups = [split.get(name) for name in ("n_train_groups", "n_valid_groups")]
        found.append([result["seed"], *own, split.get("kind", "random"), *groups])
    text = json.dumps([data or "", found])
    _check_repeats(text)
    return text


@lru_cache(maxsize=256)
def _check_repeats(text: str) -> None:
    """Refuse what no test could be made of; most runs share this text."""
    data, found = json.loads(text)
    for seed, fold, split, *sizes, kind, n_train_groups, n_valid_groups in found:
        numbers = [value for value in (fold, *sizes, n_train_groups, n_valid_groups) if value is not None]
        if type(seed) is not int or any(type(value) is not int or not 0 <= value < _MOST for value in numbers):
            raise TypeError("a size or seed that is no number")
        if not all(isinstance(value, str) for value in (data, split or "", kind)):
            raise TypeError("a digest that is no text")


def _dump_marks(results: list[Raw], *, disturbed: bool) -> str:
    predictions = [str(result.get("predictions_digest") or "")[:_DIGEST] for result in results]
    fair = [
        not disturbed and bool(result.get("timing_mode")) and (result.get("cpu_taken") or 0.0) <= BUSY
        for result in results
    ]
    return json.dumps([predictions, fair])


def _pack(values: list[list[float | None]]) -> bytes:
    """Row by row; what is not there is NaN, which no value is."""
    flat = [math.nan if value is None else float(value) for row in values for value in row]
    return struct.pack(f"<{len(flat)}d", *flat)


def _digest_settings(spec: Raw) -> str:
    """What scores depend on besides library, data and splits.

    A parameter with its default counts as not given: one that a later version adds must not make earlier runs differ.
    """
    training = spec.get("training")
    split = spec.get("split") or {}
    kind = split.get("kind", "random")
    given = None
    if training is not None:
        defaults = _training_defaults()
        given = {
            name: value
            for name, value in training.items()
            if name != "n_threads" and (name not in defaults or value != defaults[name])
        }
    named = [spec.get(name) for name in ("profile", "booster_type", "task", "variant", "protocol")]
    return _digest([given, *named, split.get("folds"), kind, split.get("column", "") if kind != "random" else ""])


@cache
def _training_defaults() -> dict[str, Any]:
    return TrainingConfig().model_dump(mode="json")


def _digest(content: Any) -> str:
    return compute_digest(json.dumps(content, sort_keys=True), _DIGEST)


_digest_shared = lru_cache(maxsize=256)(_digest)
_dump_names = lru_cache(maxsize=256)(json.dumps)


def _estimate_cost(dataset: str, library: str, training: str, spec: Raw, results: list[Raw]) -> tuple[Any, ...] | None:
    """What a cell took, for estimates; a paper's way costs what no suite would."""
    times = [r["train_time_s"] + (r.get("predict_time_s") or 0.0) for r in results if r.get("train_time_s") is not None]
    if not times or spec.get("training") is None or spec.get("protocol") is not None:
        return None
    return dataset, str(spec.get("booster_type", "gbdt")), library, training, median(times) + _OVERHEAD, len(times)


def _label_machines(content: Content) -> str:
    here = content.facts.get("machine") or {}
    known = {**content.machines, str(here.get("digest") or ""): here}
    return " + ".join(_label(known.get(digest) or {}) for digest in sorted(content.placed)) or _label(here)


def _label(machine: Raw) -> str:
    """A machine as a person tells it from others."""
    cpus = machine.get("cpus_available") or machine.get("cpu_threads")
    parts = [str(machine.get("cpu_model") or ""), f"{cpus} CPUs" if cpus else "", str(machine.get("gpu") or "")]
    return ", ".join(filter(None, parts))


def _order_in_time(started: str, written: float, attempt: int, key: str) -> int:
    """The place in time. Within a second: by attempt, then in an order that is the same each time."""
    try:
        seconds = int(datetime.fromisoformat(started).timestamp())
    except (ValueError, OverflowError):
        seconds = int(written)
    tie = int(compute_digest(key, 8), 16) % 1000
    return seconds * PER_SECOND + min(attempt, 999) * 1_000 + tie
