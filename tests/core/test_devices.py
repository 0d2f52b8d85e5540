"""The driver is asked for devices in another process, whatever it does; shared libraries are only read."""

import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from boosters_eval.core import devices
from boosters_eval.core.devices import CudaDevices, cuda_devices, has_cuda_code
from boosters_eval.runners import RUNNERS

DRIVER = """
#include <string.h>
int cuInit(unsigned flags) { return %(init)s; }
int cuDeviceGetCount(int *count) { *count = %(count)s; return 0; }
int cuDriverGetVersion(int *version) { *version = 12040; return 0; }
int cuDeviceGet(int *device, int index) { *device = index; return 0; }
int cuDeviceGetName(char *name, int size, int device) { strncpy(name, "Test GPU", size); return 0; }
int cuGetErrorString(int code, const char **text) { *text = "no CUDA-capable\\n device"; return 0; }
"""


@pytest.fixture(autouse=True)
def _asked_anew(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    devices._asked.cache_clear()
    yield
    devices._asked.cache_clear()


@pytest.fixture
def driver(tmp_path, monkeypatch):
    """A driver of the test's own, as the first that is found."""
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("needs a C compiler on Linux")

    def make(text):
        source = tmp_path / "cuda.c"
        source.write_text(text)
        subprocess.run([compiler, "-shared", "-fPIC", "-o", tmp_path / "libcuda.so.1", source], check=True)
        monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
        return cuda_devices()

    return make


def test_devices_of_a_driver_are_named(driver):
    found = driver(DRIVER % {"init": "0", "count": "2"})
    assert found == CudaDevices(names=("Test GPU", "Test GPU"), version="12.4")


def test_driver_without_a_device_says_why(driver, monkeypatch):
    assert driver(DRIVER % {"init": "0", "count": "0"}).fault == "the driver knows of none"
    devices._asked.cache_clear()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    assert driver(DRIVER % {"init": "100", "count": "0"}) == CudaDevices(
        fault="cuInit of the driver failed with error 100 (no CUDA-capable device)"
        " (the variable CUDA_VISIBLE_DEVICES is '7')"
    )


def test_what_is_no_driver_is_no_device(driver):
    assert driver("int nothing;").fault == "the driver's answer makes no sense"


def test_driver_that_crashes_is_no_device(driver):
    text = DRIVER.replace("#include <string.h>", "#include <string.h>\n#include <signal.h>")
    assert driver(text % {"init": "raise(SIGSEGV)", "count": "1"}).fault == "the driver crashed with signal 11"


def test_a_file_that_is_no_library_is_no_driver(tmp_path, monkeypatch):
    (tmp_path / "libcuda.so.1").write_text("not a library")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    assert not cuda_devices().names
    assert cuda_devices().fault


@pytest.mark.parametrize(
    "program",
    [
        "print('nonsense')",
        "print('[1]')",
        "print('{}')",
        "print('{\"names\": [1]}')",
        'print(\'{"names": "GPU"}\')',
        "raise SystemExit(3)",
        "print('[' * 100_000)",
        'import sys; print(\'{"names": ["GPU"]}\'); sys.exit(1)',
        "import sys; sys.stdout.buffer.write(bytes([255, 254]))",
    ],
)
def test_an_answer_that_makes_no_sense_is_no_device(monkeypatch, program):
    monkeypatch.setattr(devices, "_PROBE", program)
    assert cuda_devices() == CudaDevices(fault="the driver's answer makes no sense")


def test_driver_that_hangs_is_no_device(monkeypatch):
    monkeypatch.setattr(devices, "_PROBE", "import time; time.sleep(60)")
    monkeypatch.setattr(devices, "_TIMEOUT", 0.2)
    assert cuda_devices().fault.startswith("the driver did not answer")


@pytest.mark.parametrize("executable", ["", "/nowhere/python"])
def test_without_an_interpreter_to_ask_with_there_is_no_device(monkeypatch, executable):
    monkeypatch.setattr(sys, "executable", executable)
    assert not cuda_devices().names


@pytest.mark.parametrize("value", ["", " ", "-1"])
def test_variable_that_hides_every_device_is_told_without_asking(monkeypatch, value):
    monkeypatch.setattr(devices, "_answer", lambda: pytest.fail("asked"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    assert cuda_devices().fault == "the variable CUDA_VISIBLE_DEVICES hides every device"


def test_whatever_the_driver_and_the_environment_say_can_be_printed_and_stored(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "\udcff\x1b[31m" + "9" * 5_000)
    for answer in ({}, {"names": []}, {"fault": "bad\n\x1b]0;title\x07 " * 100}):
        devices._asked.cache_clear()
        monkeypatch.setattr(devices, "_answer", lambda answer=answer: answer)
        fault = cuda_devices().fault
        assert fault.isprintable()
        assert len(fault.encode()) < 500
    devices._asked.cache_clear()
    monkeypatch.setattr(devices, "_answer", lambda: {"names": ["\x1b[1m" * 99, ""], "version": True})
    assert [name.isprintable() and 0 < len(name) <= 64 for name in cuda_devices().names] == [True, True]


def test_the_driver_is_asked_once_for_each_environment(monkeypatch):
    asked = []
    monkeypatch.setattr(devices, "_answer", lambda: asked.append(os.environ.get("CUDA_VISIBLE_DEVICES")) or {})
    for value in ("0", "0", "1", "0"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
        cuda_devices()
    assert asked == ["0", "1"]


def test_asking_loads_no_driver_and_no_library_into_this_process():
    code = (
        "import sys; from boosters_eval.core.devices import cuda_devices; cuda_devices();"
        "assert 'ctypes' not in sys.modules and 'numpy' not in sys.modules;"
        "sys.exit('libcuda' in open('/proc/self/maps').read() if sys.platform == 'linux' else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def elf(*sections):
    """The least that a shared library of 64 bits has: a header, the names of its sections, and their headers."""
    names = b"\0" + b"".join(name + b"\0" for name in (b".shstrtab", *sections))
    head = bytearray(64)
    head[:6] = b"\x7fELF\x02\x01"
    struct.pack_into("<Q", head, 0x28, 64 + len(names))
    struct.pack_into("<HHH", head, 0x3A, 64, 1, 0)
    header = bytearray(64)
    struct.pack_into("<QQ", header, 0x18, 64, len(names))
    return bytes(head) + names + bytes(header)


def test_sections_of_a_shared_library_tell_whether_it_has_code_for_devices(tmp_path):
    file = tmp_path / "lib.so"
    for content, code in (
        (elf(b".text", b".nv_fatbin"), True),
        (elf(b".text", b".nv_fatbin_not"), False),
        (b"MZ" + bytes(100) + b".nv_fatb" + bytes(100), True),
        (b"MZ" + bytes(100), False),
        (b"\xcf\xfa\xed\xfe", None),
        (b"/* a linker script */", None),
        (b"", None),
    ):
        file.write_bytes(content)
        assert has_cuda_code(file) is code
    assert has_cuda_code(tmp_path / "missing.so") is None
    assert has_cuda_code(tmp_path) is None


@settings(max_examples=60, deadline=None)
@given(place=st.integers(0, 90), byte=st.integers(0, 255), length=st.integers(0, 200))
@example(place=47, byte=128, length=64)
def test_damaged_library_is_unknown_but_never_an_error(tmp_path_factory, place, byte, length):
    content = bytearray(elf(b".nv_fatbin"))
    content[place] = byte
    file = tmp_path_factory.getbasetemp() / "damaged.so"
    file.write_bytes(content[:length])
    assert has_cuda_code(file) in (True, False, None)


@pytest.mark.parametrize(("library", "code"), [("catboost", True), ("lightgbm", False), ("xgboost", False)])
def test_installed_libraries_are_what_their_wheels_are(library, code):
    from importlib.util import find_spec

    if RUNNERS[library].missing() or sys.platform != "linux":
        pytest.skip("not installed")
    folder = Path(find_spec(library).origin).parent
    assert any(has_cuda_code(path) for path in folder.rglob("*.so")) is code
