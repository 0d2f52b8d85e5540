"""What the history knows of runs: plain data, read from the rows of the index without any scientific package."""

from __future__ import annotations

import json
import math
import struct
from dataclasses import asdict, dataclass, field, fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from boosters_eval.core.terms import named
from boosters_eval.core.text import clean
from boosters_eval.reports.document import PlainTable, show_cell
from boosters_eval.reports.findings import ReportedFindings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from boosters_eval.core.findings import Screen
    from boosters_eval.reports.document import Document

Origin = Literal["run", "import"]
_SHORT_SHA = 8
IndexedPlace = tuple[Origin, str]  # what is read as a whole: a run's folder, or an imported file


@dataclass(frozen=True)
class RunEntry:
    """One attempt at a run of this home, or a results file that was imported."""

    key: str  # unique: two machines may run one plan, so its run id alone is not
    run_id: str
    attempt: int
    origin: Origin
    source: str  # the run's folder, or the imported file
    started_at: str
    kind: str  # benchmark, paper, parity, or the name of another workload
    title: str  # of its plan: the suite, or compare
    name: str
    git_sha: str
    git_branch: str
    git_dirty: bool | None
    machine: str  # its digest
    machine_label: str
    state: str  # finished, unfinished, running, not begun, or unreadable
    fault: str  # what is wrong with an unreadable one
    done: int
    failed: int
    missing: int | None  # None: unknown
    versions: Mapping[str, str] = field(default_factory=dict)  # of each competitor
    extends: str = ""  # the id of the run whose seeds it added to
    superseded: bool = False  # a later run added seeds to it: what it measured is in that one too

    @property
    def reference(self) -> str:
        """The run as the commands take it."""
        return f"{self.run_id}/{self.attempt}" if self.attempt > 1 else self.run_id

    @property
    def commit(self) -> str:
        """The short commit, with * if files had changed; several if the run was resumed at another one."""
        commits = "+".join(clean(sha)[:_SHORT_SHA] for sha in self.git_sha.split("+") if sha)
        return f"{commits}*" if commits and self.git_dirty else commits


@dataclass(frozen=True)
class RepeatValue:
    """What one repeat of a benchmark gave, with what a test must know of its split."""

    seed: int
    fold: int | None
    value: float
    split_digest: str | None = None
    n_train: int | None = None
    n_valid: int | None = None
    predictions_digest: str | None = None
    split: str = "random"  # or time, or group
    n_train_groups: int | None = None
    n_valid_groups: int | None = None
    fair: bool = True  # a time: whether it was taken in timing mode, on a machine that was not busy


@dataclass(frozen=True)
class MetricSeries:
    """All repeats of one metric or measurement, of one competitor on one benchmark in one run."""

    entry: RunEntry
    config: str
    dataset: str
    target: str
    library: str
    version: str
    metric: str
    higher_is_better: bool | None  # None: not known, of a metric of the user's own
    primary: bool
    data_digest: str
    settings: str  # a digest of what must be equal for two numbers to be comparable
    failed: int  # cells that gave no number
    mean: float
    n: int
    observations: tuple[RepeatValue, ...]
    left_out: int = 0  # earlier runs of its line that were not read, if it is the first that was


@dataclass(frozen=True)
class Change:
    """One competitor's metric on one benchmark against the run before on the same machine."""

    config: str
    dataset: str
    target: str
    library: str
    version: str
    metric: str  # empty: all cells failed, so there is no number
    primary: bool
    mean: float
    n: int
    failed: int
    # better, worse, equivalent, inconclusive, not comparable; failed; first: there is none before; '': not judged
    verdict: str
    before: str  # the run's key; empty if there is none
    before_mean: float | None = None


@dataclass(frozen=True)
class HistoryRun(ReportedFindings):
    """A run, and what it measured against the run before on the same machine."""

    entry: RunEntry
    changes: tuple[Change, ...]
    data: str = ""  # its data sets, if no change names them

    @property
    def remark(self) -> str:
        """Which run is the one before."""
        before = next((change.before for change in self.changes if change.before), "")
        if not before:
            return ""
        run_id, attempt, started, _ = before.rsplit("/", 3)
        return f"the run before is {run_id}/{attempt}, of {started}."

    def document(self) -> Document:
        from boosters_eval.programs.history.document import lay_out_run  # noqa: PLC0415 (it reads this)

        return lay_out_run(self)

    def show(self, screen: Screen) -> None:
        """The facts, then the numbers."""
        facts, *numbers = (block for block in self.document().blocks() if isinstance(block, PlainTable))
        for name, value in facts.rows:
            screen.say(f"{name:<10}{value}")
        for table in numbers:
            screen.say("")
            screen.rows(table.headings, [[*map(show_cell, row)] for row in table.rows], keys=table.keys)
        if self.remark:
            screen.note(f"Note: {self.remark}")

    def to_model(self) -> dict[str, Any]:
        """The run as plain data; a mean that is not there is null."""
        changes = [{**asdict(change), "mean": change.mean if change.n else None} for change in self.changes]
        return {**asdict(self.entry), "versions": dict(self.entry.versions), "changes": changes}


@dataclass(frozen=True)
class HistoryListing(ReportedFindings):
    """Runs, the latest first."""

    runs: tuple[HistoryRun, ...]
    count: int  # without the limit
    nothing: str = ""  # why there is none

    @property
    def remark(self) -> str:
        """What is not listed."""
        if self.nothing or self.count <= len(self.runs):
            return self.nothing
        return f"these are the latest {len(self.runs)} of {self.count} runs; {named('limit')} shows more."

    def document(self) -> Document:
        from boosters_eval.programs.history.document import lay_out_listing  # noqa: PLC0415 (it reads this)

        return lay_out_listing(self)

    def show(self, screen: Screen) -> None:
        """A row per run."""
        for table in self.document().blocks():
            if isinstance(table, PlainTable):
                screen.rows(table.headings, [[*map(show_cell, row)] for row in table.rows])

    def to_model(self) -> list[dict[str, Any]]:
        return [run.to_model() for run in self.runs]

    def conclude(self, screen: Screen) -> None:
        if self.remark:
            screen.note(f"Note: {self.remark}")


@dataclass(frozen=True)
class HistoryFilter:
    """Which runs and series are meant; by default all."""

    suite: str | None = None  # the title of the run: a suite, or compare
    datasets: Sequence[str] = ()  # any of these
    libraries: Sequence[str] = ()  # libraries, or the names of builds of them
    metrics: Sequence[str] = ()
    machine: str | None = None  # the beginning of its digest, or part of its label
    since: str | None = None  # a time as runs record it
    limit: int | None = None  # only the latest so many runs


_ENTRY = [one.name for one in fields(RunEntry)]
RUN = ", ".join(f"r.{name}" for name in ("id", *_ENTRY)).replace("r.source", "r.place")
SERIES = (
    "s.line, s.at, s.run, l.config, l.dataset, l.target, l.library, l.settings, n.text, p.text, s.marks, s.numbers,"
    " s.failed, s.before, s.verdicts"
)
JOINED = "series s JOIN lines l ON l.id = s.line JOIN texts n ON n.id = s.names JOIN texts p ON p.id = s.repeats"
COUNTED = "r.state = 'finished' AND NOT r.shadowed AND NOT r.superseded"  # what is a point of a line
OPEN = (  # what is not judged yet, with the run before it
    f"SELECT {SERIES}, CASE WHEN {COUNTED} THEN"  # noqa: S608 (our names)
    " (SELECT e.run FROM series e CROSS JOIN runs x ON x.id = e.run WHERE e.line = s.line AND e.at < s.at"
    f" AND {COUNTED.replace('r.', 'x.')} ORDER BY e.at DESC LIMIT 1) END"
    f" FROM {JOINED} JOIN runs r ON r.id = s.run WHERE s.before IS NULL ORDER BY s.line, s.at LIMIT ?"
)
ROWS_AT_A_TIME = 2000  # that are judged in one transaction, for which others wait less than a second
PER_SECOND = 1_000_000  # steps of the column `at`, which orders runs in time
NOT_COMPARABLE = "not comparable"
_CODES = {"better": "b", "worse": "w", "equivalent": "e", "inconclusive": "i", NOT_COMPARABLE: "n"}
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
    verdicts: str  # as `encode_verdicts` writes them

    def measures(self) -> list[tuple[str, bool | None, bool, str]]:
        """The name, direction, importance and digest of each metric."""
        found: list[tuple[str, bool | None, bool, str]] = load_shared(self.names)
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
        from boosters_eval.metrics.catalog import RESOURCES  # noqa: PLC0415 (keeps listing fast)

        names = self.measures()
        index = next((number for number, (name, *_) in enumerate(names) if name == wanted), None)
        if index is None:
            return None
        _, higher, primary, digest = names[index]
        data, repeats = load_shared(self.repeats)
        predictions, fair = json.loads(self.marks)
        if wanted in RESOURCES:
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


def encode_verdicts(measures: Iterable[tuple[str, bool | None, bool, str]], verdicts: Mapping[str, str]) -> str:
    """Verdicts as the index keeps them: a letter per metric, and a dot for what is not judged."""
    return "".join(_CODES.get(verdicts.get(name, ""), ".") for name, *_ in measures)


@lru_cache(maxsize=4096)
def load_shared(text: str) -> Any:
    """JSON that many runs share, and nobody changes."""
    return json.loads(text)


def read_entry(row: tuple[Any, ...]) -> RunEntry:
    """A run, from the columns of RUN."""
    known = dict(zip(_ENTRY, row[1:], strict=True))
    known["git_dirty"] = None if known["git_dirty"] is None else bool(known["git_dirty"])
    known["versions"] = load_shared(known["versions"])
    return RunEntry(**{**known, "superseded": bool(known["superseded"])})
