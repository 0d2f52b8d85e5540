"""pip as a module of this interpreter: with the user's own configuration, and told where to install."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from boosters_eval.core.errors import BuildError
from boosters_eval.engine.processes import kill_group

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

# Settings of the user that would install elsewhere, something else, or nothing. Those of a configuration file are
# overruled by variables and options. Whatever says where packages come from is the user's.
_DROPPED = frozenset(
    f"PIP_{name}"
    for name in (
        *("TARGET", "PREFIX", "ROOT", "USER", "REQUIRE_VIRTUALENV", "PYTHON"),  # elsewhere
        *("EDITABLE", "REQUIREMENT", "NO_DEPS", "PLATFORM", "PYTHON_VERSION", "ABI", "IMPLEMENTATION"),
        *("DRY_RUN", "REPORT", "QUIET", "VERBOSE"),
    )
)
_SET = {
    "PIP_USER": "0",
    "PIP_REQUIRE_VIRTUALENV": "0",
    "PIP_DRY_RUN": "0",
    "PIP_NO_INPUT": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_NO_COLOR": "1",
    "PYTHONIOENCODING": "utf-8",
}
_SAID = 5  # lines of pip that a user is shown
_LONGEST = 400  # characters of each


@dataclass(frozen=True)
class PipResult:
    """How pip ended, and what it printed."""

    code: int
    output: str

    @property
    def is_unknown(self) -> bool:
        """Whether there is no such distribution or version, rather than no way to look for it."""
        return self.code != 0 and "No matching distribution found" in self.output and not self.is_offline

    @property
    def is_offline(self) -> bool:
        """Whether an index that pip was told to look at did not answer."""
        return self.code != 0 and "Retrying (" in self.output

    @property
    def is_full(self) -> bool:
        """Whether the disk was."""
        return self.code != 0 and "No space left on device" in self.output

    @property
    def last_lines(self) -> list[str]:
        """What pip complained of, or the end of what it printed."""
        lines = [_shortened(line.rstrip()) for line in self.output.splitlines() if line.strip()]
        errors = [line for line in lines if re.match(r"\s*(ERROR|error):", line)]
        return (errors if errors and len(lines) - lines.index(errors[-1]) <= _SAID else lines)[-_SAID:]


def _shortened(line: str) -> str:
    """Pip lists every version that there is, or every file that it could not write; some will do."""
    line = re.sub(r"\(from versions: (?:[^()]*, )?((?:[^,()]+, ){5}[^,()]+)\)", r"(from versions: ..., \1)", line)
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]} ..."


def run_pip(*words: str) -> PipResult:
    """Run pip and wait for it. It is stopped with whoever waits."""
    if find_spec("pip") is None:
        raise BuildError(
            f"Builds are installed by pip, which {sys.executable} does not have: run '{sys.executable} -m ensurepip'."
        )
    given = {name: value for name, value in os.environ.items() if name not in _DROPPED}
    with subprocess.Popen(  # noqa: S603 (this interpreter's own pip)
        [sys.executable, "-P", "-m", "pip", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**given, **_SET},
        start_new_session=True,  # so that a compiler which it started can be stopped with it
    ) as process:
        try:
            output, _ = process.communicate()
        except BaseException:
            kill_group(process.pid)
            raise
    return PipResult(process.returncode, output.decode(errors="replace"))


def install_into(folder: Path, requirements: Sequence[str], *, dependencies: bool = False) -> PipResult:
    """Install into a folder and nowhere else; without dependencies, only what is named."""
    alone = [] if dependencies else ["--no-deps"]
    return run_pip("install", "--no-user", "--prefix=", *alone, "--target", str(folder), "--", *requirements)
