"""Whether a library, as it is installed, can train on a device of this machine; nothing is imported for it."""

from __future__ import annotations

from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from boosters_eval.core.devices import cuda_devices, has_cuda_code
from boosters_eval.runners.parameters import Device

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boosters_eval.runners.base import FitRequest, Runner

_LIBRARIES = (".so", ".pyd", ".dll", ".dylib")


def cannot_run(runner: type[Runner], request: FitRequest, *, elsewhere: bool = False) -> str | None:
    """Why a library cannot do here what is asked: it never could, or the device is missing; None if it can.

    The device may be `elsewhere`: the machine that runs the cells looks for it itself.
    """
    return runner.unsupported(request) or device_fault(runner, request.training.device, elsewhere=elsewhere)


def device_fault(runner: type[Runner], device: Device, *, elsewhere: bool = False) -> str | None:
    """Why a library cannot use a device here, or None. Asked first, because some would use the CPU in silence."""
    if device is Device.CPU:
        return None
    if not runner.cuda_build:
        return "its runner knows no device but the CPU"
    found = cuda_devices()
    if not found.names and not elsewhere:
        return f"there is no CUDA device here: {found.fault}"
    code = [has_cuda_code(file) for file in _shared_libraries(runner)]
    if code and all(known is False for known in code):
        return f"this build of it has no code for CUDA devices: {runner.cuda_build}"
    return None


def _shared_libraries(runner: type[Runner]) -> Iterator[Path]:
    """The shared libraries of the package; none where they lie elsewhere, as conda puts them."""
    package = runner.module.partition(".")[0]
    build = runner.installation
    spec = find_spec(package) if build is None else PathFinder.find_spec(package, list(build.path))
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        yield from (path for path in Path(folder).rglob("*") if path.suffix in _LIBRARIES and path.is_file())
