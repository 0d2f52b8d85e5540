"""The canonical parameters: one meaning for all libraries, and how faithfully each library honors them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Le
from pydantic import AfterValidator, BaseModel, ConfigDict

from boosters_eval.core.errors import Choice
from boosters_eval.core.model import Model


class BoosterType(Choice):
    """Which algorithm learns."""

    GBDT = "gbdt"
    GBLINEAR = "gblinear"
    LINEAR_TREES = "linear_trees"


class GrowthStrategy(Choice):
    """How a tree grows: level by level, or the best leaf first."""

    DEPTHWISE = "depthwise"
    LEAFWISE = "leafwise"


class Device(Choice):
    """What a model is trained on."""

    CPU = "cpu"
    CUDA = "cuda"  # the first CUDA device that is visible


class Profile(Choice):
    """How canonical parameters become native ones."""

    PARITY = "parity"  # mapped by meaning
    DEFAULTS = "defaults"  # each library with its own defaults


def _some_threads(count: int) -> int:
    if count != -1 and count < 1:
        raise ValueError("-1 (all that this process may use) or at least 1")
    return count


Threads = Annotated[int, AfterValidator(_some_threads)]
Fraction = Annotated[float, Gt(0), Le(1)]
NonNegative = Annotated[float, Ge(0)]


class TrainingConfig(Model):
    """Canonical training parameters: one meaning for all libraries.

    max_depth alone limits depth-wise growth, n_leaves alone leaf-wise growth. min_samples_leaf is 1, not the
    RFC's 20: only two of the five libraries can count rows in a leaf, and a default that three of them
    approximate would not be fair. With early_stopping_rounds a fifth of the training rows is held out for it, the
    same rows for every library. A device that cannot be used is never replaced by the CPU.
    """

    n_estimators: Annotated[int, Ge(1), Le(1_000_000)] = 100
    learning_rate: Annotated[float, Gt(0), Le(10)] = 0.1
    max_depth: Annotated[int, Ge(1), Le(16)] = 6
    n_leaves: Annotated[int, Ge(2), Le(131_072)] = 31
    min_samples_leaf: Annotated[int, Ge(1)] = 1
    l1: NonNegative = 0.0
    l2: NonNegative = 1.0
    subsample: Fraction = 1.0
    colsample: Fraction = 1.0
    n_threads: Threads = 1
    seed: Annotated[int, Ge(0)] = 42
    growth_strategy: GrowthStrategy = GrowthStrategy.DEPTHWISE
    # Up to here in the RFC's order, so that positional arguments mean the same.
    min_child_weight: NonNegative = 1e-3
    min_gain: NonNegative = 0.0
    max_bins: Annotated[int, Ge(2), Le(65_535)] = 255
    early_stopping_rounds: Annotated[int, Ge(1)] | None = None
    device: Device = Device.CPU

    @classmethod
    def usual(cls) -> dict[str, Any]:
        """The default of every parameter, as plain data."""
        return cls().model_dump(mode="json")


MarkKind = Literal["exact", "own", "approximated", "unsupported"]


class Mark(BaseModel):
    """How faithfully a library honors one canonical parameter; a plain model, since there are very many."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    parameter: str
    kind: MarkKind
    reason: str = ""
