"""What a tracker is told about a run, and the interface that MLflow, W&B and your own tracker implement."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

from boosters_eval.core.files import compute_digest
from boosters_eval.core.registry import Registry, must_extend
from boosters_eval.core.text import join_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


def short_digest(value: Any) -> str:
    """Twelve digits that differ where the values, as JSON, do."""
    return compute_digest(json.dumps(value), 12)


class TrackingStatus(StrEnum):
    """How far a run, or one competitor of it, has come."""

    RUNNING = "running"
    FINISHED = "finished"  # every cell has a result
    FAILED = "failed"  # every cell has an outcome, and some failed
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class TrackedRun:
    """A run as a whole: the parent of its competitors."""

    key: str  # the same however often, from wherever and in how many sessions the run is sent
    name: str
    started: float  # seconds since 1970
    facts: Mapping[str, str]  # ids, versions, commit, machine, command
    content: str  # a digest of all that there is to send; '' while the run goes on

    def id_of(self, competitor: str) -> str:
        """Identifies a competitor, given by its key, among all that are ever sent: letters, digits and a dash."""
        return f"{self.key}-{short_digest(competitor)}"


@dataclass(frozen=True)
class TrackedCompetitor:
    """One library, or build of it, on one benchmark: a child of the run."""

    benchmark: str
    competitor: str
    parameters: Mapping[str, str]  # canonical ones, native.NAME, and mark.NAME where the mapping is not exact
    facts: Mapping[str, str]

    @property
    def key(self) -> str:
        return f"{self.benchmark}|{self.competitor}"

    @property
    def name(self) -> str:
        return f"{self.benchmark} {self.competitor}"


@dataclass(frozen=True)
class TrackedCell:
    """The numbers of one cell that finished. Its step is its seed, or its place among the seeds and folds."""

    key: str
    step: int
    seed: int
    fold: int | None
    metrics: Mapping[str, float]


@dataclass(frozen=True)
class CompetitorEnd:
    """How one competitor ended: the means over its cells, and what failed."""

    status: TrackingStatus
    cells: int
    means: Mapping[str, float]
    failures: Mapping[str, str] = field(default_factory=dict)  # by repeat, such as "seed 3"


@dataclass(frozen=True)
class TrackedEnd:
    """How the run ended."""

    status: TrackingStatus
    ended: float  # seconds since 1970
    competitors: Mapping[str, CompetitorEnd]  # by the key of the competitor
    files: Mapping[str, Path]  # the artifacts, by name; none of a run that was interrupted


class Tracker(ABC):
    """Where runs are sent to. It lives in a process of its own, which calls one method at a time.

    Any method may be called again with what it was told before, in this process or a later one, and must then change
    nothing: that is how an interrupted run is continued, and an error repaired. Whatever a method raises is a warning.
    """

    modules: ClassVar[tuple[str, ...]] = ()  # what must be installed
    install: ClassVar[str] = ""  # how, as a command

    def __init__(self, state: Path) -> None:
        self.state = state  # a file of this tracker and this run, for what it must know the next time

    @classmethod
    def missing(cls) -> str:
        """Why it cannot be used here, as a sentence; '' if it can. Asked before any cell runs, so it must be quick."""
        gone = [name for name in cls.modules if find_spec(name) is None]
        how = f": {cls.install}" if cls.install else ""
        return f"needs {join_words(gone)}{how}." if gone else ""

    def holds(self, run: TrackedRun) -> bool:  # noqa: ARG002 (a tracker that cannot tell is sent everything)
        """Whether it already has all of this content, so that nothing is to be sent."""
        return False

    @abstractmethod
    def begin(self, run: TrackedRun) -> str:
        """Find the run by its key, or create it, as a running one. Returns where it can be seen."""

    @abstractmethod
    def describe(self, competitor: TrackedCompetitor) -> None:
        """Find or create a child of the run; called again when more is known of it."""

    @abstractmethod
    def log(self, competitor: TrackedCompetitor, cells: Sequence[TrackedCell]) -> None:
        """Add the numbers of cells of a competitor that was described, except for those that are there."""

    @abstractmethod
    def end(self, run: TrackedRun, ending: TrackedEnd) -> None:
        """Everything was sent: add the files and the means, and mark the run and its competitors as ended."""


def _builtin() -> dict[str, type[Tracker]]:
    from boosters_eval.tracking.builtin import MlflowTracker, WandbTracker  # noqa: PLC0415 (it imports this module)

    return {"mlflow": MlflowTracker, "wandb": WandbTracker}


TRACKERS: Registry[type[Tracker]] = Registry(
    "tracker", group="boosters_eval.trackers", builtin=_builtin, fault=must_extend(Tracker)
)
