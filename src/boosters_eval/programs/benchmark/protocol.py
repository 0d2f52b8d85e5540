"""How a paper splits and prepares its data and sets a library up, where that is not our way; part of a fit's spec."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from annotated_types import Ge, Gt, Lt
from pydantic import Field

from boosters_eval.core.model import Model
from boosters_eval.core.modules import address_of, at_address
from boosters_eval.core.registry import Registry, must_extend
from boosters_eval.runners.parameters import Mark

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from boosters_eval.metrics.task import Task
    from boosters_eval.runners.base import Translation


class Protocol(Model):
    """What a fit does in another way than ours. The fields that are left out keep our way."""

    preprocessing: tuple[str, ...] = ()  # steps in their order, by the names in STEPS
    sources: dict[str, str] = Field(default_factory=dict)  # digests of the files of steps that are not our own
    train: Annotated[int, Ge(1)] | None = None  # rows; None: all that are left
    validation: Annotated[int, Ge(1)] | None = None  # rows to stop early on; None: a fifth of the others if needed
    test: Annotated[int, Ge(1)] | Annotated[float, Gt(0), Lt(1)] | Literal["official"] = 0.2
    native: dict[str, Any] = Field(default_factory=dict)  # the library's own parameters, which win; None takes one away

    @property
    def encodes_categories(self) -> bool:
        """Whether no categorical column is left after the steps."""
        return any(STEPS[name].encodes for name in self.preprocessing)

    def unsupported(self, task: Task) -> str | None:
        """Why this cannot be done for a task, or None."""
        if task.value == "ranking" and (self.train or self.validation or isinstance(self.test, int)):
            return "sizes in rows would cut the queries of a ranking data set"
        reasons = ((name, STEPS[name].unsupported(task)) for name in self.preprocessing)
        return next((f"the step '{name}' {reason}" for name, reason in reasons if reason), None)


@dataclass(frozen=True)
class StepRows:
    """Rows on their way through the steps. Categorical columns hold codes 0, 1, ...; NaN is missing."""

    x: NDArray[np.float32]
    y: NDArray[np.float64]
    categorical: tuple[int, ...] = ()
    names: tuple[str, ...] = ()


class Step(ABC):
    """One step of preprocessing: fitted on the training rows only, then applied to the others. One object per cell."""

    encodes: ClassVar[bool] = False  # leaves no categorical column

    @classmethod
    def unsupported(cls, task: Task) -> str | None:  # noqa: ARG003 (most steps suit every task)
        """Why the step makes no sense for a task ("needs ..."), or None. Imports nothing."""
        return None

    @abstractmethod
    def fit(self, rows: StepRows, seed: int) -> StepRows:
        """Learn from the training rows, and return them as the library shall see them."""

    @abstractmethod
    def apply(self, rows: StepRows) -> StepRows:
        """Other rows, with what was learned."""

    def restore(self, predictions: NDArray[Any]) -> NDArray[Any]:
        """Predictions in the units of the original target."""
        return predictions


def _own() -> dict[str, type[Step]]:
    from boosters_eval.programs.benchmark import preprocessing  # noqa: PLC0415 (its classes extend Step)

    return preprocessing.OWN


STEPS: Registry[type[Step]] = Registry(
    "preprocessing step", group="boosters_eval.preprocessing", builtin=_own, fault=must_extend(Step)
)


def step_addresses(names: tuple[str, ...]) -> dict[str, str]:
    """Where the process of a cell finds the steps: a script may have registered one that it does not know."""
    found = {name: address_of(STEPS[name], "preprocessing step") for name in names}
    return {"steps": json.dumps(found)} if found else {}


def load_steps(inputs: Mapping[str, str]) -> None:
    """Register what `step_addresses` described."""
    for name, address in json.loads(inputs.get("steps", "{}")).items():
        STEPS.register(name, at_address(address), replace=True)


def overridden(translation: Translation, protocol: Protocol | None) -> Translation:
    """The translation with the protocol's native parameters in it, each with a mark."""
    if protocol is None or not protocol.native:
        return translation
    marks = tuple(
        Mark(parameter=name, kind="approximated", reason=_told(value, translation.native.get(name)))
        for name, value in protocol.native.items()
        if value != translation.native.get(name)
    )
    merged = {**translation.native, **protocol.native}
    return replace(
        translation,
        native={name: value for name, value in merged.items() if value is not None},
        marks=(*translation.marks, *marks),
        origins={**translation.origins, **dict.fromkeys(protocol.native, "the protocol")},
    )


def _told(value: Any, before: Any) -> str:
    instead = "" if before is None else f" instead of {before}"
    return f"the protocol leaves it to the library{instead}" if value is None else f"the protocol sets {value}{instead}"
