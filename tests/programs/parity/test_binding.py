"""A cell of parity in this process: which of its steps count, and what makes two cells the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import fake_backends as fakes
from boosters_eval.core.request import Repeat
from boosters_eval.engine.cell import Build, Cell, Target
from boosters_eval.programs.parity.backend import BackendSession, TimedStep
from boosters_eval.programs.parity.binding import BindingOutcome, BindingSpec, BindingWorkload
from boosters_eval.programs.parity.method import BASE_SEED, BINDING_TOLERANCE, GENERATORS, ensure_data
from boosters_eval.programs.parity.request import ParityRequest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    GENERATORS.register("rows", fakes.Rows)
    yield
    GENERATORS.unregister("rows")


class Told(BackendSession):
    """Steps that tell their time, each in another digit."""

    def load(self, data: Path) -> TimedStep:
        return TimedStep(1000)

    def prepare(self) -> TimedStep:
        return TimedStep(100)

    def fit(self) -> TimedStep:
        return TimedStep(10)

    def predict(self) -> TimedStep:
        return TimedStep(1, np.ones(20))


class Telling(fakes.Sums):
    @classmethod
    def session(cls, *_: Any) -> BackendSession:  # type: ignore[override]
        return Told()


@pytest.mark.parametrize(
    ("timed", "sample"), [(("fit", "predict"), 11), (("predict",), 1), (("prepare", "fit", "predict"), 111)]
)
def test_only_the_phases_that_the_method_names_count_and_loading_never_does(
    tmp_path: Path, timed: tuple[str, ...], sample: int
) -> None:
    method = fakes.method(timed=timed)
    digest = ensure_data(tmp_path, method, fakes.Size(20, 3))[1]
    spec = BindingSpec(name="sum", n_threads=1, method=method, size=fakes.Size(20, 3), data_digest=digest, max_runs=3)
    inputs = {"data": str(tmp_path), "artifacts": str(tmp_path / "arrays")}
    outcome = BindingWorkload.run(
        Cell(spec, Target(name="sums", build=Build(version="1", digest="1")), Repeat(BASE_SEED, None)),
        Telling,
        inputs,
        lambda _: None,
    )
    assert isinstance(outcome, BindingOutcome)
    assert outcome.samples_ns == (sample,) * 3
    assert outcome.phases_ns == {"load": (1000,) * 3, "prepare": (100,) * 3, "fit": (10,) * 3, "predict": (1,) * 3}


def test_other_parameters_make_another_cell() -> None:
    digests = {fakes.method(parameters=given).parameters_digest for given in ({}, {"a": 1}, {"a": 2}, {"a": "1"})}
    assert len(digests) == 4


def test_the_defaults_are_those_of_the_methodology() -> None:
    assert BASE_SEED == 1_234_567_890
    assert fakes.method().binding_tolerance == BINDING_TOLERANCE == 1e-6
    assert ParityRequest().timeout == 24 * 3600
    assert ParityRequest().max_runs == 40
