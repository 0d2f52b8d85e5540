"""Where results come from, as recorded by their run. When a report is made, only the time is looked up."""

from __future__ import annotations

import contextlib
import re
import shlex
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.machine import MachineInfo
from boosters_eval.core.model import Model
from boosters_eval.core.text import clean, count_of
from boosters_eval.runners.parameters import TrainingConfig

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boosters_eval.engine.cell import Build
    from boosters_eval.engine.facts import RunFacts
    from boosters_eval.programs.benchmark.results import ResultCollection


NOT_RECORDED = "not recorded"
_SHA = re.compile(r"[0-9a-f]{7,64}")  # a commit becomes part of a file name, so nothing else is accepted
_DIGITS = 12  # of a build's digest
_SHORT = 7  # characters of a commit in titles and file names


class MachineShare(Model):
    """One machine of a run whose cells name theirs."""

    machine: MachineInfo | None  # None: it is not recorded
    digest: str
    cells: int  # that it ran, finished or not

    @property
    def in_words(self) -> str:
        machine = self.machine
        if machine is None:
            return f"an unknown machine {self.digest}"
        node = f", node {machine.node}" if machine.node else ""
        return f"{machine.cpu_model}, {count_of(machine.cpu_cores, 'core')}, {machine.memory_gb:.1f} GB{node}"

    @property
    def whole(self) -> str:
        machine = self.machine
        known = [] if machine is None else [machine.gpu, machine.os, machine.blas_backend]
        more = [*filter(None, known), f"fingerprint {self.digest}"]
        return f"{count_of(self.cells, 'cell')} on {', '.join([self.in_words, *more])}"


class Environment(Model):
    """Commit, time, machine and versions; None where the run did not record them."""

    timestamp: datetime  # of the report; everything else is about the run
    measured_at: str | None = None
    git_sha: str | None = None
    git_branch: str | None = None
    git_dirty: bool | None = None  # whether the working copy had uncommitted changes
    machine: MachineInfo | None = None
    machine_digest: str | None = None
    rust_version: str | None = None
    python_version: str | None = None
    boosters_eval_version: str | None = None
    boosters_version: str | None = None
    resumed: tuple[str, ...] = ()  # a line per session that continued an interrupted run
    # Of a run whose cells name their machines; `machine` is then the one of all cells, or None.
    machines: tuple[MachineShare, ...] = ()

    @classmethod
    def collect(cls, results: ResultCollection, *, now: datetime | None = None) -> Environment:
        facts = results.metadata.facts
        shares = count_shares(results)
        machine = _machine(facts) if not shares else shares[0].machine if len(shares) == 1 else None
        return cls(
            timestamp=(now or datetime.now(UTC)).astimezone(UTC).replace(microsecond=0),
            measured_at=facts.started_at or None,
            git_sha=facts.git_sha if facts.git_sha and _SHA.fullmatch(facts.git_sha) else None,
            git_branch=facts.git_branch,
            git_dirty=facts.git_dirty,
            machine=machine,
            machine_digest=None if machine is None else machine.digest,
            rust_version=facts.rust,
            python_version=facts.python or None,
            boosters_eval_version=facts.boosters_eval or None,
            boosters_version=list_versions(results).get("boosters"),
            resumed=tuple(_session(facts, later) for later in facts.resumed),
            machines=shares,
        )

    @property
    def short_sha(self) -> str | None:
        """The commit as shown in titles and used in file names."""
        return None if self.git_sha is None else self.git_sha[:_SHORT]

    def name_report(self, subject: str) -> str:
        """YYYY-MM-DD-<sha>-<subject>-report, the date in UTC."""
        return f"{self.timestamp:%Y-%m-%d}-{self.short_sha or 'nogit'}-{subject}-report"

    def rows(
        self, libraries: Mapping[str, str], builds: Mapping[str, Build] | None = None
    ) -> tuple[tuple[str, str], ...]:
        """The environment table. What every run should record is shown as "not recorded" if it is missing."""
        told = {name: _build(build) for name, build in (builds or {}).items()}
        found = [
            ("Commit", self._commit_text()),
            ("Date", _moment(self.timestamp)),
            ("Measured", None if self.measured_at is None else _moment(self.measured_at)),
            ("Resumed", "; ".join(self.resumed)),
            *self._machine_rows(),
            ("Rust", self.rust_version or NOT_RECORDED),
            ("Python", self.python_version or NOT_RECORDED),
            ("boosters-eval", self.boosters_eval_version or NOT_RECORDED),
            *({**libraries, **told}).items(),
        ]
        return tuple((clean(name), clean(value)) for name, value in found if value)

    def _commit_text(self) -> str:
        if self.short_sha is None:
            return NOT_RECORDED
        return _commit(self.short_sha, self.git_branch, dirty=self.git_dirty)

    def _machine_rows(self) -> list[tuple[str, str | None]]:
        machine = self.machine
        if len(self.machines) > 1:
            return [(f"Machine {number}", share.whole) for number, share in enumerate(self.machines, 1)]
        if machine is None:
            return [("Machine", NOT_RECORDED)]
        cpus = "" if machine.cpus_available is None else f", {machine.cpus_available} usable"
        return [
            ("Machine", machine.cpu_model),
            ("Processors", f"{machine.cpu_cores} cores, {machine.cpu_threads} threads{cpus}"),
            ("Memory", f"{machine.memory_gb:.1f} GB"),
            ("GPU", machine.gpu and f"{machine.gpu}{f', CUDA {machine.cuda}' if machine.cuda else ''}"),
            ("System", machine.os),
            ("BLAS", machine.blas_backend),
            ("Build type", machine.build_type),
            ("Fingerprint", self.machine_digest),
        ]


def count_shares(results: ResultCollection) -> tuple[MachineShare, ...]:
    """The machines that the cells name, the one with most cells first."""
    known, cells = results.metadata.machines, results.cells_by_machine
    order = sorted(cells, key=lambda digest: (-cells[digest], digest))
    return tuple(MachineShare(machine=known.get(digest), digest=digest, cells=cells[digest]) for digest in order)


def list_versions(results: ResultCollection) -> dict[str, str]:
    """Each library's version according to its results; several if they differ."""
    found: dict[str, dict[str, None]] = {}
    for result in results.results:
        if result.library_version:
            found.setdefault(result.library, {})[result.library_version] = None
    return {library: ", ".join(versions) for library, versions in found.items()}


def list_builds(results: ResultCollection) -> dict[str, Build]:
    """The competitors that are builds of a library, by label: library, version and digest, as the run recorded them."""
    present = {outcome.library for outcome in (*results.results, *results.errors)}
    targets = results.metadata.facts.targets
    return {name: build for name, build in targets.items() if build.library and name in present}


def _moment(moment: datetime | str) -> str:
    """A time in UTC, to the second; text that is no time, in a file from elsewhere, stays as it is."""
    try:
        parsed = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    except ValueError:
        return str(moment)
    known = parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)
    return known.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _build(build: Build) -> str:
    own = f", with {build.packages}" if build.packages else ""
    return f"build of {build.library} {build.version}, digest {build.digest[:_DIGITS]}{own}"


def _commit(sha: str, branch: str | None, *, dirty: bool | None) -> str:
    remarks = [*([branch] if branch else []), *(["with changes"] if dirty else [])]
    return f"{sha} ({', '.join(remarks)})" if remarks else sha


def _session(first: RunFacts, later: RunFacts) -> str:
    """When a run was continued, and what was no longer as at its beginning."""
    parts = [_moment(later.started_at)]
    before, now = ((facts.git_sha, facts.git_branch, facts.git_dirty) for facts in (first, later))
    if before != now:
        known = later.git_sha if later.git_sha and _SHA.fullmatch(later.git_sha) else None
        parts.append(f"at {_commit(known[:_SHORT], now[1], dirty=now[2])}" if known else "outside a repository")
    if later.machine.get("digest") != first.machine.get("digest"):
        parts.append("on another machine")
    return " ".join(parts)


def _machine(facts: RunFacts) -> MachineInfo | None:
    known = {name: value for name, value in facts.machine.items() if name != "digest"}
    with contextlib.suppress(ConfigError):  # a file from elsewhere may contain anything here
        return MachineInfo.model_validate(known) if known else None
    return None


def list_commands(results: ResultCollection, margin: Sequence[str] = ()) -> tuple[str, ...]:
    """The command that was typed; for a run from Python, an equivalent one derived from the results."""
    typed = results.metadata.facts.command
    if not typed and not results.results:
        return ()
    judged = ["--margin", *margin] if margin else []
    lines = [["boosters-eval", *(typed or derive_command(results, margin))]]
    if results.run_id:
        lines.append(["boosters-eval", "report", "--run", results.reference or results.run_id, *judged])
    return tuple(shlex.join(map(clean, words)) for words in lines)


def derive_command(results: ResultCollection, margin: Sequence[str]) -> list[str]:
    """The words of a command that runs the same, and judges it alike."""
    ours = results.results
    seeds = len(dict.fromkeys(result.seed for result in ours))
    folds = len({result.fold for result in ours if result.fold is not None})
    timed = any(result.timing_mode for result in ours)
    if results.suite in (None, "compare"):
        words = ["compare", "--dataset", *dict.fromkeys(result.dataset_name for result in ours)]
        words += ["--booster", *dict.fromkeys(result.booster_type for result in ours)]
        words += _training_options(list(results.metadata.configs.values()), timed=timed)
    else:
        words = ["run", "--suite", str(results.suite)]
    names = dict.fromkeys(outcome.library for outcome in (*ours, *results.errors))
    words += ["--library", *(_reference(name, list_builds(results)) for name in names)]
    words += ["--cv", f"{folds}x{seeds}"] if folds else ["--seeds", str(seeds)]
    splits = {f"{result.split.kind}:{result.split.column}" for result in ours if result.split is not None}
    words += ["--split", *splits] if len(splits) == 1 and words[0] == "compare" else []
    words += [] if any(result.part for result in ours) or folds or splits else ["--splits", "random"]
    words += ["--timing-mode"] if timed else []
    words += ["--measure-memory"] if any(result.peak_memory_mb is not None for result in ours) else []
    profiles = {result.profile for result in ours}
    words += ["--profile", "both" if len(profiles) > 1 else "defaults"] if "defaults" in profiles else []
    return [*words, "--margin", *margin] if margin else words


def _reference(name: str, builds: Mapping[str, Build]) -> str:
    """A library, or a build as one asks for it: by its version, because where it came from was not recorded."""
    build = builds.get(name)
    if build is None:
        return name
    release = f"{build.library}=={build.version}"
    return release if {*"=@"} & {*name} else f"{name}={release}"


def _training_options(configs: list[dict[str, Any]], *, timed: bool) -> list[str]:
    """Options for the canonical parameters that all configs share and that differ from the defaults."""
    words = []
    for name, usual in TrainingConfig.usual().items():
        values = [training[name] for training in configs]
        if not values or values[0] == usual or any(value != values[0] for value in values):
            continue
        if name == "growth_strategy":
            words += ["--growth", str(values[0])]
        elif name == "device":
            words += ["--device", str(values[0])]
        elif name == "n_threads":
            words += [] if timed else ["--threads", str(values[0])]  # timing mode uses all cores anyway
        elif name != "seed":
            words += ["--param", f"{name}={values[0]}"]
    return words
