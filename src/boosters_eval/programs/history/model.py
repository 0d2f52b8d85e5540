"""What the history knows of runs: plain data, read from the rows of the index without any scientific package."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from boosters_eval.core.terms import named
from boosters_eval.core.text import clean
from boosters_eval.engine.plain import format_local_time
from boosters_eval.reports.findings import ReportedFindings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boosters_eval.core.findings import Screen
    from boosters_eval.core.request import Part
    from boosters_eval.reports.document import Document

Origin = Literal["run", "import"]
NOT_COMPARABLE = "not comparable"
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
    reference: str = ""  # as the commands take it, with /ATTEMPT or @MACHINE where its id alone is not enough

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
    part: Part | None = None  # which of the disjoint test sets of a deal; None: drawn by itself, or a window of time
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
    observations: tuple[RepeatValue, ...]

    @property
    def mean(self) -> float | None:
        values = [one.value for one in self.observations]
        return math.fsum(values) / len(values) if values else None


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
    mean: float | None
    n: int
    failed: int
    # better, worse, equivalent, identical, inconclusive, not comparable; failed; first: none before; '': not judged
    verdict: str
    before: str  # the run's key; empty if there is none
    before_mean: float | None = None


class _Listed(ReportedFindings):
    """Lines of text; what is noted of them is told beside them, so that a pipe gets only the lines."""

    def show(self, screen: Screen) -> None:
        from boosters_eval.reports.terminal import print_document  # noqa: PLC0415 (loads rich)

        whole = self.document()
        tables = tuple(section for section in whole.sections if section.anchor != "notes")
        print_document(replace(whole, title="", sections=tables), screen.console())


@dataclass(frozen=True)
class HistoryRun(_Listed):
    """A run, and what it measured against the run before on the same machine."""

    entry: RunEntry
    changes: tuple[Change, ...]
    data: str = ""  # its data sets, if no change names them

    @property
    def remarks(self) -> tuple[str, ...]:
        """Which run is the one before, and why a number is not compared with it."""
        said = []
        before = next((change.before for change in self.changes if change.before), "")
        if before:
            run_id, attempt, started, _ = before.rsplit("/", 3)
            when = format_local_time(started)
            said.append(f"the numbers before are those of run {run_id}/{attempt}, which started {when}.")
        if any(change.verdict == NOT_COMPARABLE for change in self.changes):
            why = (
                "the data or the ways of splitting differ, or times were not measured in timing mode on a quiet machine"
            )
            said.append(f"{NOT_COMPARABLE} means that {why}.")
        return tuple(said)

    def document(self) -> Document:
        from boosters_eval.programs.history.document import lay_out_run  # noqa: PLC0415 (it reads this)

        return lay_out_run(self)

    def show(self, screen: Screen) -> None:
        super().show(screen)
        for remark in self.remarks:
            screen.note(f"Note: {remark}")

    def to_model(self) -> dict[str, Any]:
        return {**asdict(self.entry), "changes": [asdict(change) for change in self.changes]}


@dataclass(frozen=True)
class HistoryListing(_Listed):
    """Runs, the latest first."""

    runs: tuple[HistoryRun, ...]
    count: int  # without the limit
    nothing: str = ""  # why there is none

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is not listed."""
        if self.count > len(self.runs):
            return (f"these are the latest {len(self.runs)} of {self.count} runs; {named('limit')} shows more.",)
        return (self.nothing,) if self.nothing else ()

    def document(self) -> Document:
        from boosters_eval.programs.history.document import lay_out_listing  # noqa: PLC0415 (it reads this)

        return lay_out_listing(self)

    def to_model(self) -> list[dict[str, Any]]:
        return [run.to_model() for run in self.runs]

    def conclude(self, screen: Screen) -> None:
        for remark in self.remarks:
            screen.note(f"Note: {remark}")


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


EVERYTHING = HistoryFilter()
