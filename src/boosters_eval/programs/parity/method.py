"""What is compared across backends, as data: methods, their oracle, tolerances and documented conventions."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Literal, NamedTuple, Self

from annotated_types import Ge, Gt, MinLen
from pydantic import Field, model_validator

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.model import Model
from boosters_eval.core.registry import Registry, must_be

BASE_SEED = 1_234_567_890  # a whole number that R and Octave hold exactly, and that fits 32 bits
BINDING_TOLERANCE = 1e-6

ParameterValue = str | int | float | bool
DifferenceMetric = Literal["relative_rmse", "max_abs", "jaccard"]


class Size(NamedTuple):
    """Rows and columns of a cell's data."""

    n: int
    p: int

    def __str__(self) -> str:
        return f"{self.n}x{self.p}"


class Convention(Model):
    """A documented way in which a backend means something else, and how far apart that was measured to be.

    Outside the measured band it is no convention any more, but a divergence.
    """

    backend: Annotated[str, MinLen(1)]
    sentence: Annotated[str, MinLen(1)]
    low: Annotated[float, Ge(0)]  # of the method's metric
    high: Annotated[float, Gt(0)]

    @model_validator(mode="after")
    def _band_is_ordered(self) -> Self:
        if self.low > self.high:
            raise ConfigError(f"The band of a convention must have low <= high. Got {self.low} and {self.high}.")
        return self


class Oracle(Model):
    """The reference of a method: one backend in one version, never whatever happens to be installed."""

    backend: Annotated[str, MinLen(1)]
    version: Annotated[str, MinLen(1)]  # a requirement such as ">=1.5,<2" or "==1.9.0"


class MethodSpec(Model):
    """A method: what is computed, on which data, by whom, and what counts as agreement."""

    name: Annotated[str, MinLen(1)]
    description: str = ""
    canonical: Annotated[str, MinLen(1)]  # the backend with which the project's own bindings must agree
    oracle: Oracle | None = None
    backends: Annotated[tuple[str, ...], MinLen(1)]
    data: Annotated[str, MinLen(1)]  # who makes the data: a name in GENERATORS
    parameters: dict[str, ParameterValue] = Field(default_factory=dict)
    sizes: Annotated[tuple[Size, ...], MinLen(1)]  # the default sweep; the first is the registry cell
    timed: tuple[Literal["prepare", "fit", "predict"], ...] = ("fit", "predict")
    metric: DifferenceMetric = "relative_rmse"
    tolerance: Annotated[float, Ge(0)] = 1e-9  # of the oracle
    binding_tolerance: Annotated[float, Ge(0)] = BINDING_TOLERANCE  # of the canonical binding, max abs
    conventions: tuple[Convention, ...] = ()
    jumps: str = ""  # where predictions jump, so that few rows may be far off; else such rows are a divergence
    stochastic: str = ""  # why no two implementations can agree; a mismatch is then a cross-check

    @model_validator(mode="after")
    def _names_are_backends(self) -> Self:
        named = [
            self.canonical,
            *([self.oracle.backend] if self.oracle else []),
            *(c.backend for c in self.conventions),
        ]
        unknown = next((name for name in named if name not in self.backends), None)
        if unknown:
            raise ConfigError(
                f"The method '{self.name}' names the backend '{unknown}', which is not among its backends."
            )
        return self

    @property
    def parameters_digest(self) -> str:
        """Of everything that changes what is computed or timed, apart from the data."""
        content = json.dumps([self.name, self.parameters, self.timed], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def convention(self, backend: str) -> Convention | None:
        """The documented convention of a backend, if it has one."""
        return next((item for item in self.conventions if item.backend == backend), None)


def _shipped() -> dict[str, MethodSpec]:
    from boosters_eval.programs.parity.families import shipped  # noqa: PLC0415 (the families know this module)

    return shipped(MethodSpec)


METHODS: Registry[MethodSpec] = Registry(
    "method", group="boosters_eval.methods", builtin=_shipped, fault=must_be(MethodSpec)
)
