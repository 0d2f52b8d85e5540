"""Where a report comes from. This is the only part of a report that may differ between two renderings."""

from __future__ import annotations

import contextlib
import platform
import shutil
import subprocess
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from boosters_eval import __version__
from boosters_eval.core.errors import ConfigError
from boosters_eval.core.machine import MachineInfo
from boosters_eval.core.model import Model

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from boosters_eval.benchmark.results import ResultCollection

NO_GIT = "nogit"


class Environment(Model):
    """Commit, time, machine and versions."""

    git_sha: str
    git_branch: str | None
    timestamp: datetime  # of the report
    measured_at: str | None  # of the run
    machine: MachineInfo
    machine_digest: str
    machine_is_of_run: bool  # False: the results do not say where they were measured, so this machine is shown
    rust_version: str | None
    python_version: str
    boosters_eval_version: str
    boosters_version: str | None

    @classmethod
    def collect(
        cls, results: ResultCollection, *, now: datetime | None = None, where: Path | None = None
    ) -> Environment:
        """What the run recorded; what it did not, from here and now."""
        recorded = results.metadata.facts.recorded()
        machine = _recorded_machine(recorded)
        versions = library_versions(results)
        shown = machine or MachineInfo.collect(load_blas=True)
        return cls(
            git_sha=_command("git", "rev-parse", "--short=7", "HEAD", where=where) or NO_GIT,
            git_branch=_command("git", "rev-parse", "--abbrev-ref", "HEAD", where=where),
            timestamp=(now or datetime.now(UTC)).astimezone(UTC).replace(microsecond=0),
            measured_at=recorded.get("started_at"),
            machine=shown,
            machine_digest=shown.digest,
            machine_is_of_run=machine is not None,
            rust_version=(_command("rustc", "--version") or "").removeprefix("rustc ") or None,
            python_version=recorded.get("python") or platform.python_version(),
            boosters_eval_version=recorded.get("boosters_eval") or __version__,
            boosters_version=versions.get("boosters"),
        )

    def rows(self) -> list[tuple[str, str]]:
        """The environment table."""
        machine = self.machine
        here = "" if self.machine_is_of_run else " (of this report: the results do not name theirs)"
        commit = self.git_sha + (f" ({self.git_branch})" if self.git_branch else "")
        cpus = "" if machine.cpus_available is None else f", {machine.cpus_available} usable"
        found = [
            ("Commit", commit),
            ("Date", self.timestamp.strftime("%Y-%m-%d %H:%M:%S UTC")),
            ("Measured", self.measured_at),
            ("Machine", f"{machine.cpu_model}{here}"),
            ("Processors", f"{machine.cpu_cores} cores, {machine.cpu_threads} threads{cpus}"),
            ("Memory", f"{machine.memory_gb:.1f} GB"),
            ("System", machine.os),
            ("BLAS", machine.blas_backend),
            ("Build type", machine.build_type),
            ("Fingerprint", self.machine_digest),
            ("Rust", self.rust_version),
            ("Python", self.python_version),
            ("boosters-eval", self.boosters_eval_version),
            ("boosters", self.boosters_version),
        ]
        return [(name, value) for name, value in found if value]


def library_versions(results: ResultCollection) -> dict[str, str]:
    """Each library's version as its results say; several where they differ."""
    found: dict[str, dict[str, None]] = {}
    for result in results.results:
        if result.library_version:
            found.setdefault(result.library, {})[result.library_version] = None
    return {library: ", ".join(versions) for library, versions in found.items()}


def _recorded_machine(recorded: Mapping[str, Any]) -> MachineInfo | None:
    facts = dict(recorded.get("machine") or {})
    facts.pop("digest", None)
    with contextlib.suppress(ConfigError):  # a file from elsewhere may say anything here
        return MachineInfo(**facts) if facts else None
    return None


def _command(program: str, *arguments: str, where: Path | None = None) -> str | None:
    """The first line that a program prints, or None where it is missing or fails."""
    path = shutil.which(program)
    if path is None:
        return None
    try:
        done = subprocess.run(  # noqa: S603 (fixed arguments)
            [path, *arguments], capture_output=True, text=True, check=False, timeout=10, cwd=where
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip().partition("\n")[0] or None if done.returncode == 0 else None
