"""What the harness adds to the cells of a backend that does nothing: milliseconds per cell, printed as JSON."""

from __future__ import annotations

import json
import time

import numpy as np

from boosters_eval import Observer
from boosters_eval.programs.parity.backend import BACKENDS, PythonBackend
from boosters_eval.programs.parity.method import GENERATORS, METHODS, GeneratedData, Generator, MethodSpec, Size
from boosters_eval.programs.parity.run import ParityRequest, run_parity

N_SIZES = 12


class Line(Generator):
    name = "line"
    recipe = "1"

    @classmethod
    def missing(cls, method):
        del method

    @classmethod
    def generate(cls, method, size, seed, shared):
        del method, shared
        return GeneratedData({"X": np.linspace(seed, seed + 1, size.n * size.p).reshape(size.n, size.p)})


class Nothing(PythonBackend):
    """Returns a column of its data."""

    name = "nothing"
    imports = ("numpy",)
    distributions = ("numpy",)

    @classmethod
    def fit(cls, session, prepared):
        del session
        return prepared["X"]

    @classmethod
    def predict(cls, session, fitted):
        del session
        return fitted[:, 0]


class Stopwatch(Observer):
    """How long each cell took from its start to its outcome, beyond the time of the backend's own steps."""

    def __init__(self) -> None:
        self.started: dict[str, float] = {}
        self.costs: list[float] = []

    def phase(self, event) -> None:
        self.started.setdefault(event.cell.key, time.perf_counter())

    def outcome(self, event) -> None:
        whole = time.perf_counter() - self.started[event.cell.key]
        steps = sum(sum(times) for times in event.outcome.phases_ns.values())
        self.costs.append(1000 * whole - steps / 1e6)


def measured(max_runs: int) -> list[float]:
    """The second of two runs: the data are written by then."""
    watch = Stopwatch()
    for observer in ((), (watch,)):
        run_parity(ParityRequest(methods=("nothing",), max_runs=max_runs, force=True, observer=observer))
    return watch.costs


if __name__ == "__main__":
    GENERATORS.register("line", Line)
    BACKENDS.register("nothing", Nothing)
    sizes = tuple(Size(20 * (i + 1), 5) for i in range(N_SIZES))
    METHODS.register(
        "nothing", MethodSpec(name="nothing", canonical="nothing", backends=("nothing",), data="line", sizes=sizes)
    )
    print(json.dumps({str(runs): measured(runs) for runs in (1, 40)}))
