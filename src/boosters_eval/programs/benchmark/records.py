"""What is known of the cells of a benchmark that gave no result, and of the run that they belong to."""

from __future__ import annotations

from numbers import Real
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Lt
from pydantic import ConfigDict, Field, field_validator

from boosters_eval.core.errors import require
from boosters_eval.core.machine import MachineInfo
from boosters_eval.core.model import FileModel
from boosters_eval.datasets.audit import DataAudit
from boosters_eval.engine.facts import RunFacts
from boosters_eval.metrics.task import Task
from boosters_eval.runners.parameters import TrainingConfig
from boosters_eval.runners.result import Record

Phase = Literal[
    "start",
    "load",
    "warm-up",
    "build",
    "fit",
    "predict",
    "score",
    "permutation",
    "importances",
    "attributions",
    "probe",
    "done",
]


class BenchmarkError(Record):
    """A cell that failed: what happened, where, and everything needed to find out why."""

    task: Task | None = None  # type: ignore[assignment]  # the RFC's errors do not have it
    error_type: str
    error_message: str
    traceback: str | None = None
    phase: Phase = "start"
    signal: str | None = None
    stderr_tail: str = ""
    failed_before: int = 0  # not counting this one
    machine: str | None = None


class Absence(FileModel):
    """A library that has no cells in a config; known before anything runs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    config_name: str
    library: str
    reason: str
    task: Task
    booster_type: str = "gbdt"
    dataset_name: str = ""
    variant: str | None = None
    profile: str = "parity"


class Unsupported(Absence):
    """The library cannot do what the config asks for."""


class Unavailable(Absence):
    """The library was asked for, but it is not installed, or does not run here."""


class RunMetadata(FileModel):
    """What a collection knows about its run besides the outcomes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    attempt: int | None = None
    begin: dict[str, Any] | None = None
    environment: RunFacts | None = None
    n_cells: Annotated[int, Ge(0)] | None = None
    n_missing: Annotated[int, Ge(0)] | None = None
    unfinished_attempt: Annotated[int, Ge(1)] | None = None  # a later one than this, which was interrupted
    configs: dict[str, dict[str, Any]] = Field(default_factory=dict)  # the canonical parameters of each config
    user_metrics: dict[str, bool] = Field(default_factory=dict)  # whether more is better
    alpha: Annotated[float, Gt(0), Lt(1)] | None = None  # for a run with --seeds auto
    seeds_rule: str | None = None
    audits: dict[str, DataAudit] = Field(default_factory=dict)  # what was found in each data set when it was used
    # By digest, of a run whose cells name theirs; of any other, the environment has the one machine.
    machines: dict[str, MachineInfo] = Field(default_factory=dict)

    @property
    def unfair_times(self) -> str:
        """Why no time of the run is judged, in a few words; empty if they are, unless a cell says otherwise."""
        return ", ".join(dict.fromkeys(item.reason for item in self.facts.disturbed if not item.judged))

    @property
    def facts(self) -> RunFacts:
        """Machine, versions and commit of the run; empty where they were not recorded."""
        return self.environment or RunFacts()

    def level(self, alpha: float | None = None) -> float:
        """The given level, or that of a run with --seeds auto, or 5 %."""
        from boosters_eval.stats.significance import DEFAULT_ALPHA  # noqa: PLC0415 (loads scipy)

        require("alpha", alpha, (Real, type(None)), "a number between 0 and 1")
        return alpha if alpha is not None else self.alpha or DEFAULT_ALPHA

    @field_validator("configs")
    @classmethod
    def _whole(cls, configs: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        for name, parameters in configs.items():
            missing = TrainingConfig().model_dump().keys() - parameters.keys()
            if missing:
                raise ValueError(f"config '{name}' has no '{min(missing)}'")
        return configs
