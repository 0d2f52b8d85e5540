"""A library that fails in every way a native library can; `max_depth` chooses how."""

import contextlib
import ctypes
import os
import time
from pathlib import Path

import numpy as np

from boosters_eval.runners.base import ModelFacts, Runner, Translation

FAULTS = {
    1: "none",
    2: "segfault",
    3: "exit",
    4: "hang",
    5: "allocate",
    6: "unpicklable",
    7: "noise",
    8: "nan",
    9: "shape",
    10: "abort",
    11: "kill",
    12: "base_exception",
    13: "slow",
    14: "text",
    15: "rust_panic",
    16: "realtime",
}
WARM_UP = 2  # rounds
BY_NAME = {name: number for number, name in FAULTS.items()}


class UnpicklableError(Exception):
    def __init__(self, socket):
        super().__init__("cannot be pickled")
        self.socket = socket

    def __reduce__(self):
        raise TypeError("no")


class PanicError(BaseException):
    """What pyo3 raises for a Rust panic is not an Exception either."""


def hang():
    while True:
        time.sleep(60)


def noise():
    os.write(1, b"native noise on stdout\n")
    os.write(2, b"native noise on stderr\n")


def abort():
    os.write(2, b"terminate called: last words\n")
    os.abort()


def raise_unpicklable():
    raise UnpicklableError(None)


def panic():
    raise PanicError("index out of bounds")


def rust_panic():
    """A label beyond the classes panics inside boosters itself."""
    import boosters

    x = np.random.default_rng(0).standard_normal((50, 2)).astype(np.float32)
    config = boosters.GBDTConfig(n_estimators=1, objective=boosters.Objective.softmax(3))
    boosters.GBDTModel.train(boosters.Dataset(x, np.full(50, 99, dtype=np.float32)), config=config, n_threads=1)


def slow():
    """Takes FAULTY_MOMENT seconds; for as long as the file named by FAULTY_BROKEN exists, it crashes.

    Where FAULTY_TURNSTILE names a folder, five cells get through at once and the others never.
    """
    if Path(os.environ.get("FAULTY_BROKEN", "/nowhere")).exists():
        ctypes.string_at(0)
    folder = os.environ.get("FAULTY_TURNSTILE")
    if folder is None:
        time.sleep(float(os.environ.get("FAULTY_MOMENT", "0.05")))
        return
    for number in range(5):
        with contextlib.suppress(FileExistsError):
            Path(folder, str(number)).touch(exist_ok=False)
            return
    hang()


HAPPENS = {
    "slow": slow,
    "segfault": lambda: ctypes.string_at(0),
    "exit": lambda: os._exit(3),
    "hang": hang,
    "allocate": lambda: np.ones(2**25),  # 256 MB
    "unpicklable": raise_unpicklable,
    "noise": noise,
    "abort": abort,
    "kill": lambda: os.kill(os.getpid(), 9),
    "base_exception": panic,
    "rust_panic": rust_panic,
    "realtime": lambda: os.kill(os.getpid(), 40),
}


class FaultyRunner(Runner):
    name = "faulty"
    module = "faulty_runner"
    distributions = ("faulty-runner",)
    install = "faulty-runner"

    @classmethod
    def unsupported(cls, request):
        return "it has no linear booster" if request.booster_type.value != "gbdt" else None

    @classmethod
    def translate(cls, request):
        # The warm-up works, so that what happens next happens in the phase that a test is about.
        fault = "none" if request.training.n_estimators == WARM_UP else FAULTS[request.training.max_depth]
        return Translation(request, {"fault": fault, "seed": request.seed})

    @classmethod
    def build(cls, translation, data):
        return data

    @classmethod
    def fit(cls, translation, dataset):
        HAPPENS.get(translation.native["fault"], lambda: None)()
        return float(dataset.y.mean())

    @classmethod
    def predict(cls, translation, model, x):
        out = np.full(len(x), model) + np.nan_to_num(x[:, 0]) * (translation.native["seed"] % 7) * 1e-3
        return {
            "nan": np.where(np.arange(len(x)) == 5, np.nan, out),
            "shape": out[:-1],
            "text": out.astype(str),
        }.get(translation.native["fault"], out)

    @classmethod
    def inspect(cls, model):
        return ModelFacts(n_trees=1, n_leaves=1, n_bytes=len(repr(model)))


class BrokenImportRunner(FaultyRunner):
    name = "broken_import"

    @classmethod
    def load(cls):
        raise ImportError("libfoo.so.1: cannot open shared object file")


class ColdRunner(FaultyRunner):
    """Only its warm-up fails: it panics, or crashes where a fit of the library above would."""

    name = "cold"

    @classmethod
    def translate(cls, request):
        first = request.training.n_estimators == WARM_UP
        crash = FAULTS[request.training.max_depth] == "segfault"
        fault = ("segfault" if crash else "base_exception") if first else "none"
        return Translation(request, {"fault": fault, "seed": request.seed})
