"""What a node is, and whether it has what a plan needs."""

from __future__ import annotations

import contextlib
import hashlib
import json
import platform
from pathlib import Path
from typing import TYPE_CHECKING

from boosters_eval.cluster.messages import Introduction, Question
from boosters_eval.cluster.parcels import digest_of
from boosters_eval.core.machine import MachineInfo, available_cpus
from boosters_eval.core.modules import at_address
from boosters_eval.core.version import __version__
from boosters_eval.engine.workload import WORKLOADS

if TYPE_CHECKING:
    from boosters_eval.cluster.messages import WantedLane
    from boosters_eval.engine.cell import Build


def introduce(question: str) -> Introduction:
    """Who this node is, and why it cannot run the plan, if it cannot."""
    version = str(json.loads(question).get("version"))
    if version != __version__:  # whose questions may be others
        return _refusal(f"the plan is of boosters-eval {version}, the node has {__version__}")
    try:
        return _introduced(Question.model_validate_json(question))
    except Exception as error:  # noqa: BLE001 (told to the program as text)
        return _refusal(f"it cannot say what it has: {type(error).__name__}: {error}")


def _introduced(question: Question) -> Introduction:
    faults = [fault for path, digest in question.files.items() if (fault := _file_fault(path, digest))]
    faults += [fault for lane in question.lanes if (fault := _lane_fault(lane))]
    return Introduction(
        version=__version__,
        python=platform.python_version(),
        machine=MachineInfo.collect(device=question.device).model_dump(mode="json"),
        host=_host(),
        cpus=tuple(available_cpus()),
        faults=tuple(dict.fromkeys(faults)),
    )


def _refusal(fault: str) -> Introduction:
    version, python = __version__, platform.python_version()
    return Introduction(version=version, python=python, machine={}, host="", cpus=(), faults=(fault,))


def _file_fault(path: str, digest: str) -> str:
    try:
        same = digest_of(Path(path)) == digest
    except OSError:
        return f"the plan uses {path}, which the node does not have"
    return "" if same else f"the node's {path} is not that of the plan"


def _lane_fault(wanted: WantedLane) -> str:
    target, planned = wanted.target, _shown(wanted.target.build)
    gone = next((folder for folder in wanted.first if not Path(folder).is_dir()), None)
    if gone is not None:
        return f"the plan has {target} {planned}, the node has none, because it has no folder {gone}"
    try:
        workload = at_address(wanted.workload_address)
        WORKLOADS.register(wanted.workload, workload, replace=True)
        if wanted.first or wanted.address.get("file"):
            return ""  # the lane itself compares what it has loaded
        found = workload.target(target.name).build
    except Exception as error:  # noqa: BLE001 (a package that is not there, or is broken)
        return f"the plan has {target} {planned}, the node has none: {type(error).__name__}: {error}"
    return "" if found == target.build else f"the plan has {target} {planned}, the node {_shown(found)}"


def _shown(build: Build) -> str:
    return f"{build.version} ({build.digest})"


def _host() -> str:
    """Equal for all processes on one machine, in containers too."""
    with contextlib.suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
        return hashlib.sha256(boot.encode()).hexdigest()[:12]
    return platform.node()
