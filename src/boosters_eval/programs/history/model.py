"""What the history knows of runs: plain data, read from an index, so that a listing loads no scientific package."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Origin = Literal["run", "import"]
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
class HistoryFilter:
    """Which runs and series are meant; by default all."""

    suite: str | None = None  # the title of the run: a suite, or compare
    datasets: tuple[str, ...] = ()  # any of these
    libraries: tuple[str, ...] = ()  # libraries, or the names of builds of them
    metrics: tuple[str, ...] = ()
    machine: str | None = None  # the beginning of its digest, or part of its label
    since: str | None = None  # a time as runs record it
    limit: int | None = None  # only the latest so many runs
