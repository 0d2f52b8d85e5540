"""Whether a build can be imported: tried in a process of its own, on the import path that its lanes will have."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boosters_eval.core.files import compute_digest
from boosters_eval.core.modules import address_of, at_address
from boosters_eval.core.text import encodable
from boosters_eval.engine.processes import ImportPath, end_name, prefer, worker_command

if TYPE_CHECKING:
    from boosters_eval.engine.cell import Installation
    from boosters_eval.runners.base import Runner

_SECONDS = 300
_ANSWER = "boosters-eval-import: "


def import_fault(runner: type[Runner], installation: Installation) -> str:
    """Why the build cannot be imported; '' if it can."""
    path = ImportPath(installation.path, installation.isolated)
    setup = {**path.setup(), "main": __name__, "address": address_of(runner, "runner"), "module": runner.module}
    command, file = worker_command(setup)
    with file:
        try:
            done = subprocess.run(  # noqa: S603 (this interpreter)
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=_SECONDS,
                pass_fds=[file.fileno()],
                env={**os.environ, **path.environment()},
            )
        except subprocess.TimeoutExpired:
            return f"importing it took more than {_SECONDS} s"
    text = done.stdout.decode(errors="replace")
    answer = next((line for line in reversed(text.splitlines()) if line.startswith(_ANSWER)), None)
    if answer is None:
        said = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        return ": ".join([f"the process that imported it ended by {end_name(done.returncode)}", *said])
    return str(json.loads(answer.removeprefix(_ANSWER)))


def main(setup: dict[str, Any]) -> None:
    """In the other process: import the library, and see that it is this build of it."""
    prefer(setup["first"])
    fault = ""
    try:
        at_address(setup["address"]).load()
        fault = foreign(setup["module"], setup["first"])
    except BaseException as error:  # noqa: BLE001 (an import may fail in any way)
        fault = " ".join(f"{type(error).__name__}: {encodable(str(error))}".split())[:600]
    sys.stdout.write(f"\n{_ANSWER}{json.dumps(fault)}\n")
    sys.stdout.flush()


def foreign(module: str, folders: tuple[str, ...] | list[str]) -> str:
    """How a module that was imported in this process is not one of these folders; '' if it is."""
    package = sys.modules.get(module.partition(".")[0])
    places = [getattr(package, "__file__", None), *getattr(package, "__path__", ())]
    place = next((Path(place) for place in places if place), None)
    if place is None or not any(place.resolve().is_relative_to(Path(folder).resolve()) for folder in folders):
        return f"{module} was imported from {place} and not from the build's folder"
    return ""


def surroundings(installation: Installation) -> str:
    """What else decides whether it can be imported: this interpreter and the packages of the environment."""
    found = [sys.version, sys.prefix]
    for entry in [] if installation.isolated else sys.path:
        with contextlib.suppress(OSError):  # an archive, or a folder that is not there
            names = sorted(os.listdir(entry or "."))  # noqa: PTH208 (names alone)
            found += [name for name in names if name.endswith((".dist-info", ".egg-info"))]
    return compute_digest("\n".join(found).encode("utf-8", "surrogateescape"))
