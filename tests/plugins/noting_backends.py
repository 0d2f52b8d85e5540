"""A method whose backends note each of their runs in a file, and take their time."""

import os
import time
from pathlib import Path

import numpy as np

from boosters_eval.programs.parity.backend import PythonBackend
from boosters_eval.programs.parity.method import GeneratedData, Generator, MethodSpec, Oracle, Size


class Rows(Generator):
    name = "my-rows"
    recipe = "1"

    @classmethod
    def missing(cls, method):
        return None

    @classmethod
    def generate(cls, method, size, seed, shared):
        return GeneratedData({"X": np.arange(size.n * size.p, dtype=float).reshape(size.n, size.p)})


class Slow(PythonBackend):
    name = "b0"
    own = True
    imports = ("numpy",)
    distributions = ("numpy",)

    @classmethod
    def fit(cls, session, prepared):
        with Path(os.environ["NOTES"]).open("a") as notes:
            notes.write(cls.name + "\n")
        time.sleep(0.05)
        return prepared["X"]

    @classmethod
    def predict(cls, session, fitted):
        return fitted.sum(axis=1)


class B1(Slow):
    name = "b1"


class B2(Slow):
    name = "b2"


METHOD = MethodSpec(
    name="my-sum",
    canonical="b0",
    oracle=Oracle(backend="b0", version=">=1"),
    backends=("b0", "b1", "b2"),
    data="my-rows",
    sizes=(Size(4, 2), Size(5, 2), Size(6, 2)),
)
