"""The program `verify`: whether a run's journal is complete and untouched, or a decision can be computed again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from boosters_eval.core.errors import ConfigError, ExitCode
from boosters_eval.core.findings import Findings
from boosters_eval.core.terms import named
from boosters_eval.engine.folder import RunFolder
from boosters_eval.engine.runs import find_run
from boosters_eval.engine.runs import verify as verify_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boosters_eval.core.findings import Screen
    from boosters_eval.programs.runs.request import VerifyRequest


@dataclass(frozen=True)
class Verification(Findings):
    """Each file that was verified, with what is wrong with it; '' if nothing is."""

    files: tuple[tuple[str, str], ...]
    good: str  # what is said of a file without a fault

    @property
    def is_good(self) -> bool:
        """Whether nothing is wrong."""
        return not any(fault for _, fault in self.files)

    @property
    def exit_code(self) -> int:
        """A fault is an error."""
        return ExitCode.SUCCESS if self.is_good else ExitCode.EXECUTION_ERROR

    def show(self, screen: Screen) -> None:
        """One line per file."""
        for name, fault in () if screen.quiet else self.files:
            screen.say(f"{name}: {fault or self.good}")


def verify(request: VerifyRequest) -> Verification:
    """Verify a run's journal, or recompute a gate decision."""
    if Path(request.reference).is_file():
        return verify_decision(request)
    if request.baseline is not None or request.scores is not None:
        raise ConfigError(f"{named('baseline')} and {named('scores')} are only for the file of a gate decision.")
    return Verification(tuple(verified_files(str(request.reference), request.home)), "complete and untouched")


def verify_decision(request: VerifyRequest) -> Verification:
    """Compute a gate decision again, from the journal and the files that it quotes."""
    from boosters_eval.programs.gate import decision  # noqa: PLC0415 (a journal is verified without it)

    file, quoted = Path(request.reference), {"baseline": request.baseline, "scores": request.scores}
    if file.is_file() and not decision.is_decision(file):
        raise ConfigError(f"{file} is not a gate decision.")
    fault = decision.verify_decision(file, home=request.home, **quoted)
    against = decision.verified_against(file, **quoted)
    return Verification(((str(file), fault),), f"computed again, with the same bytes ({against})")


def verified_files(reference: str, home: Path | None) -> Iterator[tuple[str, str]]:
    """For each file of a run that is checked, its name and what is wrong with it; '' if nothing is."""
    given = Path(reference)
    # A folder is meant only where it is named as one: a run of that name comes first.
    if given.is_dir() and (len(given.parts) > 1 or given.is_absolute()):
        folder = RunFolder(given.resolve())
        if not folder.attempts():
            raise ConfigError(f"{given} is a folder, but not that of a run.")
    else:
        folder = find_run(reference, home)
    for name, fault in verify_folder(folder):
        yield f"{folder.run_id}/{name}", fault
