"""From the rows of the index to the types of the history."""

from __future__ import annotations

import json
import math
import struct
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from boosters_eval.programs.history.model import MetricSeries, RepeatValue, RunEntry
from boosters_eval.programs.history.store import DamagedIndexError

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping

    from boosters_eval.programs.history.model import Origin

RUN = (
    "r.id, r.key, r.run_id, r.attempt, r.origin, r.place, r.started_at, r.kind, r.title, r.name, r.git_sha,"
    " r.git_branch, r.git_dirty, r.machine, r.machine_label, r.state, r.fault, r.done, r.failed, r.missing, r.versions,"
    " r.extends, r.superseded"
)
SERIES = (
    "s.line, s.at, s.run, l.config, l.dataset, l.target, l.library, l.settings, n.text, p.text, s.marks, s.numbers,"
    " s.failed, s.before, s.verdicts"
)
JOINED = "series s JOIN lines l ON l.id = s.line JOIN texts n ON n.id = s.names JOIN texts p ON p.id = s.repeats"
COUNTED = "r.state = 'finished' AND NOT r.shadowed AND NOT r.superseded"  # what is a point of a line
PER_SECOND = 1_000_000  # steps of the column `at`, which orders runs in time
_PER_RUN = 23  # columns of RUN
_CODES = {"better": "b", "worse": "w", "equivalent": "e", "inconclusive": "i", "not comparable": "n"}
_VERDICTS = {code: verdict for verdict, code in _CODES.items()}


class SeriesRow(NamedTuple):
    """The scores or the resources of one competitor on one benchmark in one run."""

    line: int
    at: int
    run: int
    config: str
    dataset: str
    target: str
    library: str
    settings: str
    names: str
    repeats: str
    marks: str
    numbers: bytes
    failed: int
    before: int | None  # the run before; 0: there is none, None: not known yet
    verdicts: str  # as `coded` makes them

    def measures(self) -> list[tuple[str, bool | None, bool, str]]:
        """The name, direction, importance and digest of each metric."""
        found: list[tuple[str, bool | None, bool, str]] = loaded(self.names)
        return found

    def usual(self) -> list[str]:
        """What is judged when a run is indexed, and listed; any other metric is judged when it is first asked for."""
        fair = self.is_fair()
        return [name for name, _, primary, _ in self.measures() if primary or (fair and name == "train_time_s")]

    def judged(self) -> dict[str, str]:
        """The verdicts so far, by metric."""
        pairs = zip(self.measures(), self.verdicts, strict=False)
        return {name: _VERDICTS[code] for (name, *_), code in pairs if code in _VERDICTS}

    def is_fair(self) -> bool:
        """Whether all its times are: taken in timing mode, on a machine that was not busy."""
        return "false" not in self.marks

    def predictions(self) -> str:
        """What was predicted, as a text to compare; empty if that is not known of every repeat."""
        text = self.marks.partition("]")[0]
        return "" if '""' in text else text

    def means(self) -> dict[str, tuple[float, int]]:
        """The mean and the number of values of each metric."""
        found = {}
        for (name, *_), values in zip(self.measures(), self._values(), strict=True):
            there = [value for value in values if not math.isnan(value)]
            if there:
                found[name] = math.fsum(there) / len(there), len(there)
        return found

    def _values(self) -> list[tuple[float, ...]]:
        count = len(self.numbers) // 8
        flat = struct.unpack(f"<{count}d", self.numbers)
        repeats = count // max(1, len(self.measures()))
        return [flat[start : start + repeats] for start in range(0, count, repeats or 1)]

    def series(self, entry: RunEntry, wanted: str) -> MetricSeries | None:
        """One metric with all its repeats, or None if there is no value."""
        names = self.measures()
        index = next((number for number, (name, *_) in enumerate(names) if name == wanted), None)
        if index is None:
            return None
        _, higher, primary, digest = names[index]
        data, repeats = loaded(self.repeats)
        predictions, fair = json.loads(self.marks)
        if _is_resource(wanted):
            predictions = [""] * len(repeats)
        if not wanted.endswith("_time_s"):
            fair = [True] * len(repeats)
        values = self._values()[index]
        observations = tuple(
            RepeatValue(seed, fold, value, split, n_train, n_valid, predicted or None, kind, train, valid, judged)
            for (seed, fold, split, n_train, n_valid, kind, train, valid), value, predicted, judged in zip(
                repeats, values, predictions, fair, strict=True
            )
            if value == value  # noqa: PLR0124 (NaN: there is none)
        )
        if not observations:
            return None
        return MetricSeries(
            entry=entry,
            config=self.config,
            dataset=self.dataset,
            target=self.target,
            library=self.library,
            version=entry.versions.get(self.target, ""),
            metric=wanted,
            higher_is_better=higher,
            primary=bool(primary),
            data_digest=data,
            settings=f"{self.settings}{digest}",
            failed=self.failed,
            mean=math.fsum(one.value for one in observations) / len(observations),
            n=len(observations),
            observations=observations,
        )


def coded(measures: Iterable[tuple[str, bool | None, bool, str]], verdicts: Mapping[str, str]) -> str:
    """Verdicts as the index keeps them: a letter per metric, and a dot for what is not judged."""
    return "".join(_CODES.get(verdicts.get(name, ""), ".") for name, *_ in measures)


def data_digest(repeats: str) -> str:
    """The digest of the data in a text of repeats, without reading the rest of it."""
    return repeats.partition(",")[0]


@lru_cache(maxsize=4096)
def loaded(text: str) -> Any:
    """JSON that many runs share, and nobody changes."""
    return json.loads(text)


def _is_resource(metric: str) -> bool:
    from boosters_eval.metrics.catalog import RESOURCES  # noqa: PLC0415 (keeps listing fast)

    return metric in RESOURCES


def entry_of(row: tuple[Any, ...]) -> RunEntry:
    """A run, from the columns of RUN."""
    (_, key, run_id, attempt, origin, place, started, kind, title, name, sha, branch, dirty, machine, label) = row[:15]
    state, fault, done, failed, missing, versions, extends, superseded = row[15:_PER_RUN]
    source: Origin = origin
    return RunEntry(
        key=key,
        run_id=run_id,
        attempt=attempt,
        origin=source,
        source=place,
        started_at=started,
        kind=kind,
        title=title,
        name=name,
        git_sha=sha,
        git_branch=branch,
        git_dirty=None if dirty is None else bool(dirty),
        machine=machine,
        machine_label=label,
        state=state,
        fault=fault,
        done=done,
        failed=failed,
        missing=missing,
        versions=loaded(versions),
        extends=extends,
        superseded=bool(superseded),
    )


def entry_by_id(connection: sqlite3.Connection, number: int) -> RunEntry:
    """A run by its number in the index."""
    found = connection.execute(f"SELECT {RUN} FROM runs r WHERE r.id = ?", (number,)).fetchone()  # noqa: S608 (our names)
    if found is None:
        raise DamagedIndexError(f"there is no run {number}")
    return entry_of(found)
