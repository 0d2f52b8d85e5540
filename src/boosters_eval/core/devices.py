"""Which CUDA devices there are, and whether a shared library has code for them; no library is imported for it."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from boosters_eval.core.text import clean

if TYPE_CHECKING:
    from pathlib import Path

_VISIBLE = "CUDA_VISIBLE_DEVICES"
_TIMEOUT = 30.0  # seconds; a driver that is loaded for the first time may take some
_MOST = 64  # devices, and characters of what the driver says of each

# The driver is asked in another process: here it would start threads, and a forked process could not use it any more.
_PROBE = """
import ctypes, json, sys

name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
try:
    cuda = ctypes.CDLL(name)
except OSError:
    sys.exit(print(json.dumps({"fault": f"the driver's library {name} was not found"})))

def call(function, *arguments):
    code = getattr(cuda, function)(*arguments)
    if code:
        text = ctypes.c_char_p()
        cuda.cuGetErrorString(code, ctypes.byref(text))
        said = (text.value or b"unknown").decode("utf-8", "replace")
        sys.exit(print(json.dumps({"fault": f"{function} of the driver failed with error {code} ({said})"})))

call("cuInit", 0)
count, version = ctypes.c_int(), ctypes.c_int()
call("cuDeviceGetCount", ctypes.byref(count))
call("cuDriverGetVersion", ctypes.byref(version))
names = []
for index in range(min(count.value, 64)):
    device, text = ctypes.c_int(), ctypes.create_string_buffer(256)
    call("cuDeviceGet", ctypes.byref(device), index)
    call("cuDeviceGetName", text, 256, device)
    names.append(text.value.decode("utf-8", "replace"))
print(json.dumps({"names": names, "version": version.value}))
"""


@dataclass(frozen=True)
class CudaDevices:
    """The devices that a process started now would see, the first of which is used; or why there is none."""

    names: tuple[str, ...] = ()
    version: str = ""  # of CUDA, that the driver supports at most
    fault: str = ""


def cuda_devices() -> CudaDevices:
    """Ask the driver; the answer is kept for as long as the environment hides the same devices. Never raises."""
    if sys.platform == "darwin":
        return CudaDevices(fault="CUDA does not exist on macOS")
    visible = os.environ.get(_VISIBLE)
    if visible is not None and visible.strip() in ("", "-1"):
        return CudaDevices(fault=f"the variable {_VISIBLE} hides every device")
    return _asked(visible, os.environ.get("CUDA_DEVICE_ORDER"), os.environ.get("LD_LIBRARY_PATH"))


@lru_cache(maxsize=8)
def _asked(visible: str | None, *_: str | None) -> CudaDevices:
    found = _answer()
    names, fault = found.get("names"), found.get("fault")
    if isinstance(names, list) and names and all(isinstance(name, str) for name in names):
        version = found.get("version")
        number = version if isinstance(version, int) and version > 0 else None
        return CudaDevices(
            names=tuple(clean(name)[:_MOST] or "unnamed" for name in names[:_MOST]),
            version="" if number is None else f"{number // 1000}.{number % 1000 // 10}",
        )
    hidden = "" if visible is None else f" (the variable {_VISIBLE} is '{clean(visible)[:_MOST]}')"
    if names == []:
        return CudaDevices(fault=f"the driver knows of none{hidden}")
    said = fault if isinstance(fault, str) and fault else "the driver's answer makes no sense"
    return CudaDevices(fault=f"{clean(' '.join(said.split()))[:200]}{hidden}")


def _answer() -> dict[str, Any]:
    """What the probe says; whatever happens to it is an answer too."""
    try:
        done = subprocess.run(  # noqa: S603 (this interpreter with a fixed program)
            [sys.executable, "-I", "-S", "-c", _PROBE],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_TIMEOUT,
        )
        found = json.loads(done.stdout or b"null")
    except subprocess.TimeoutExpired:
        return {"fault": f"the driver did not answer within {_TIMEOUT:.0f} seconds"}
    except (OSError, ValueError, RecursionError):
        return {}
    if done.returncode < 0:
        return {"fault": f"the driver crashed with signal {-done.returncode}"}
    return found if isinstance(found, dict) and done.returncode == 0 else {}


def has_cuda_code(file: Path) -> bool | None:
    """Whether a shared library has code for CUDA devices, which its compiler puts into a section; None: not known."""
    try:
        with file.open("rb") as stream:
            head = stream.read(4096)
            if head[:2] == b"MZ":  # Windows: names are cut to eight characters
                return b".nv_fatb" in head
            if head[:4] != b"\x7fELF" or head[4:6] != b"\x02\x01":  # not of 64 bits, or not little-endian
                return None
            offset = struct.unpack_from("<Q", head, 0x28)[0]
            size, count, names = struct.unpack_from("<HHH", head, 0x3A)
            if not offset or size < 64 or names >= count:
                return None
            stream.seek(offset + names * size)
            start, length = struct.unpack_from("<QQ", stream.read(size), 0x18)
            stream.seek(start)
            return b".nv_fatbin\0" in stream.read(min(length, 2**20))
    except (OSError, struct.error, OverflowError, ValueError):  # an offset that no file has is a ValueError
        return None
