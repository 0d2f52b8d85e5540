"""From the content of a run to the rows of the index: what it measured, per benchmark and competitor."""

from __future__ import annotations

import json
import math
import struct
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, lru_cache
from statistics import median
from typing import TYPE_CHECKING, Any

from boosters_eval.core.files import compute_digest
from boosters_eval.metrics import find
from boosters_eval.metrics.catalog import RESOURCES
from boosters_eval.programs.history.records import PER_SECOND
from boosters_eval.runners.parameters import TrainingConfig
from boosters_eval.runners.result import BUSY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boosters_eval.programs.history.content import Content, Raw
    from boosters_eval.programs.history.model import Origin

_OVERHEAD = 0.05  # seconds per cell in addition to building, training and predicting
SCORES, MEASURED = "scores", "resources"  # what is measured on the same splits, and what depends on the machine too
_MOST = 2**63
_DIGEST = 16  # digits that are enough to tell predictions apart


@dataclass
class IndexGroup:
    """The scores, or the resources, of one competitor on one benchmark: a matrix of values, metric by repeat."""

    config: str
    dataset: str
    target: str
    library: str
    settings: str
    group: str
    names: str  # JSON: [name, higher is better, primary, digest] of each metric
    repeats: str  # JSON: the data's digest, and [seed, fold, split, n_train, n_valid, kind, groups...] of each repeat
    marks: str  # JSON: the predictions' digest of each repeat, and whether its times are fair
    values: bytes
    failed: int  # cells that gave no number


@dataclass
class IndexRows:
    """All that the index holds of one run."""

    run: dict[str, Any]
    parts: list[tuple[Any, ...]] = field(
        default_factory=list
    )  # config, dataset, target, library, done, failed, missing
    groups: list[IndexGroup] = field(default_factory=list)
    costs: list[tuple[Any, ...]] = field(default_factory=list)  # dataset, booster, library, training, seconds, n


def rows_of(content: Content, origin: Origin, written: float) -> IndexRows:
    """The rows of one attempt or results file; `written` stands in for a start that was not recorded.

    The content is plain JSON, whose types nobody has checked: what does not fit is damage, and must not stop the rest.
    """
    try:
        rows = _rows(content, origin, written)
        _check_storable(rows)
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, struct.error) as error:
        return _damaged_rows(content, origin, written, error)
    return rows


def _damaged_rows(content: Content, origin: Origin, written: float, error: Exception) -> IndexRows:
    """The run without anything of what it says, since something of it cannot be right."""
    fault = f"has content that cannot be read ({type(error).__name__})"
    run_id = content.run_id.encode(errors="replace").decode()
    return _rows(type(content)(run_id, min(content.attempt, _MOST - 1), fault=fault), origin, written)


def _check_storable(rows: IndexRows) -> None:
    """Refuse what the index cannot hold: half a surrogate, a number beyond 64 bits, a list where a text should be."""
    texts = [group.names + group.repeats + group.marks + group.settings for group in rows.groups]
    for value in (*rows.run.values(), *texts, *(one for row in (*rows.parts, *rows.costs) for one in row)):
        if isinstance(value, str):
            value.encode()
        elif isinstance(value, int):
            value.to_bytes(8, signed=True)
        elif value is not None and not isinstance(value, float):
            raise TypeError(f"{type(value).__name__} instead of a text or a number")


def _rows(content: Content, origin: Origin, written: float) -> IndexRows:
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
            "started_at": started or _written(written),
            "at": _order(started, written, content.attempt, key),
            "kind": content.kind,
            "title": content.title,
            "name": names[-1] if names else "",
            "git_sha": "+".join(commits),
            "git_branch": str(facts.get("git_branch") or ""),
            "git_dirty": any(dirty) if dirty else None,
            "machine": machine,
            "machine_label": _labels(content),
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
    settings = {name: _settings(spec) for name, spec in content.specs.items()} if found else {}
    trainings = {name: json.dumps(spec.get("training"), sort_keys=True) for name, spec in content.specs.items()}
    for (config, target), cells in content.cells.items():
        spec, results = content.specs.get(config, {}), found.get((config, target))
        finished, failed = done[config, target], failures[config, target]
        library = str((content.builds.get(target) or {}).get("library") or target)
        dataset = str(spec.get("dataset") or "")
        rows.parts.append((config, dataset, target, library, finished, failed, cells - finished - failed))
        if results:
            for made in _groups(spec, settings[config], results, disturbed=disturbed):
                if made[1] == SCORES or not several:
                    rows.groups.append(IndexGroup(config, dataset, target, library, *made, failed))
            if not several and (cost := _cost(dataset, library, trainings[config], spec, results)):
                rows.costs.append(cost)


def _groups(
    spec: Raw, settings: str, results: list[Raw], *, disturbed: bool
) -> Iterator[tuple[str, str, str, str, str, bytes]]:
    """The settings, the kind, the names, the repeats, the marks and the values of the scores and of the resources."""
    shared = _repeats(spec, results), _marks(results, disturbed=disturbed)
    scores = list(dict.fromkeys(name for result in results for name in result["metrics"]))
    users = {metric["name"]: metric for metric in spec.get("user_metrics") or ()}
    primary = spec.get("primary_metric")
    known = [(name, _direction(name, users), name == primary, users.get(name, {}).get("digest", "")) for name in scores]
    values = _packed([[result["metrics"].get(name) for result in results] for name in scores])
    yield settings, SCORES, _names(tuple(known)), *shared, values
    columns = {name: [result.get(name) for result in results] for name in RESOURCES}
    resources = {name: column for name, column in columns.items() if column.count(None) < len(column)}
    if resources:
        timed = _timed(settings, spec.get("n_threads", 1), bool((spec.get("timing") or {}).get("timed")))
        names = _names(tuple((name, False, False, "") for name in resources))
        values = _packed(list(resources.values()))
        yield timed, MEASURED, names, *shared, values


@lru_cache(maxsize=256)
def _names(known: tuple[tuple[str, bool | None, bool, str], ...]) -> str:
    return json.dumps(known)


@lru_cache(maxsize=256)
def _timed(*settings: object) -> str:
    return _digest(settings)


def _direction(name: str, users: dict[str, Raw]) -> bool | None:
    return bool(users[name]["higher_is_better"]) if name in users else _known_direction(name)


@cache
def _known_direction(name: str) -> bool | None:
    metric = find(name)
    return None if metric is None else metric.higher_is_better


def _repeats(spec: Raw, results: list[Raw]) -> str:
    data = next((result["data_digest"] for result in results if result.get("data_digest")), spec.get("data_digest"))
    found = []
    for result in results:
        split = result.get("split") or {}
        found.append(
            [
                result["seed"],
                result.get("fold"),
                result.get("split_digest"),
                result.get("n_train"),
                result.get("n_valid"),
                split.get("kind", "random"),
                split.get("n_train_groups"),
                split.get("n_valid_groups"),
            ]
        )
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


def _marks(results: list[Raw], *, disturbed: bool) -> str:
    predictions = [str(result.get("predictions_digest") or "")[:_DIGEST] for result in results]
    fair = [
        not disturbed and bool(result.get("timing_mode")) and (result.get("cpu_taken") or 0.0) <= BUSY
        for result in results
    ]
    return json.dumps([predictions, fair])


def _packed(values: list[list[float | None]]) -> bytes:
    """Row by row; what is not there is NaN, which no value is."""
    flat = [math.nan if value is None else float(value) for row in values for value in row]
    return struct.pack(f"<{len(flat)}d", *flat)


def _settings(spec: Raw) -> str:
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


def _cost(dataset: str, library: str, training: str, spec: Raw, results: list[Raw]) -> tuple[Any, ...] | None:
    """What a cell took, for estimates; a paper's way costs what no suite would."""
    times = [r["train_time_s"] + (r.get("predict_time_s") or 0.0) for r in results if r.get("train_time_s") is not None]
    if not times or spec.get("training") is None or spec.get("protocol") is not None:
        return None
    return dataset, str(spec.get("booster_type", "gbdt")), library, training, median(times) + _OVERHEAD, len(times)


def _labels(content: Content) -> str:
    """The machines of a run."""
    here = content.facts.get("machine") or {}
    known = {**content.machines, str(here.get("digest") or ""): here}
    return " + ".join(_label(known.get(digest) or {}) for digest in sorted(content.placed)) or _label(here)


def _label(machine: Raw) -> str:
    """A machine as a person tells it from others."""
    cpus = machine.get("cpus_available") or machine.get("cpu_threads")
    parts = [str(machine.get("cpu_model") or ""), f"{cpus} CPUs" if cpus else "", str(machine.get("gpu") or "")]
    return ", ".join(filter(None, parts))


def _written(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _order(started: str, written: float, attempt: int, key: str) -> int:
    """The place in time. Within a second: by attempt, then in an order that is the same each time."""
    try:
        seconds = int(datetime.fromisoformat(started).timestamp())
    except (ValueError, OverflowError):
        seconds = int(written)
    tie = int(compute_digest(key, 8), 16) % 1000
    return seconds * PER_SECOND + min(attempt, 999) * 1_000 + tie
