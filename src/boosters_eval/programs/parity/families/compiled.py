"""A model that was exported as source code, compiled and called."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from boosters_eval.core.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

_LOOP = """
extern "C" void predict_rows(const float* x, long n, long p, double* out) {
    for (long i = 0; i < n; ++i)
        out[i] = ApplyCatboostModel(std::vector<float>(x + i * p, x + (i + 1) * p));
}
"""


def compiler() -> str | None:
    """The C++ compiler, if there is one."""
    return shutil.which("g++")


def compile_catboost(model: Any, n_columns: int) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """CatBoost's exported source with a loop over rows, as a function of an array."""
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "model.cpp", Path(folder) / "model.so"
        model.save_model(str(source), format="cpp")
        source.write_text(source.read_text() + _LOOP)
        command = [str(compiler()), "-O2", "-std=c++17", "-shared", "-fPIC", "-o", str(library), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 (our own command)
        if done.returncode:
            raise RunError(f"The exported model cannot be compiled: {done.stderr.strip()[-500:]}")
        call = ctypes.CDLL(str(library)).predict_rows

    def predict(x: NDArray[np.float64]) -> NDArray[np.float64]:
        rows = np.ascontiguousarray(x, dtype=np.float32)
        out = np.empty(len(rows))
        call(
            rows.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_long(len(rows)),
            ctypes.c_long(n_columns),
            out.ctypes.data_as(ctypes.c_void_p),
        )
        return out

    return predict
