"""How a plan is measured and executed: the settings shared by every program that runs cells."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypedDict

from annotated_types import Ge, Gt, Le
from pydantic import AfterValidator

from boosters_eval.core.model import Model
from boosters_eval.engine.runs import check_name
from boosters_eval.runners.parameters import Threads


class RunOptions(TypedDict, total=False):
    """The fields of `Settings` as keyword arguments, so that editors can complete them."""

    timing_mode: bool
    protocol: Literal["fixed", "adaptive"]
    warmup: int | None
    measure_memory: bool
    threads: int | None
    jobs: int | None
    timeout: float | None
    memory_limit: float | None
    resume: bool
    rerun_failed: bool
    home: Path | None
    command: tuple[str, ...]
    name: str | None
    elsewhere: bool


class Settings(Model):
    """How a plan is measured and executed."""

    timing_mode: bool = False
    protocol: Literal["fixed", "adaptive"] = "fixed"  # how often a fit is repeated in timing mode
    warmup: Annotated[int, Ge(0)] | None = None  # None: 1 in timing mode, otherwise 0
    measure_memory: bool = False
    threads: Threads | None = None  # None: as set in each config, or all cores in timing mode
    jobs: Annotated[int, Ge(1), Le(4096)] | None = None  # None: as many as the cores allow
    timeout: Annotated[float, Gt(0)] | None = None  # seconds per cell
    memory_limit: Annotated[float, Gt(0), Le(2**30)] | None = None  # megabytes per cell
    resume: bool = False
    rerun_failed: bool = False
    home: Path | None = None
    command: tuple[str, ...] = ()  # the command line, for the report's "Reproduce" section
    name: Annotated[str, AfterValidator(check_name)] | None = None  # by which the run can be found again
    elsewhere: bool = False  # cells run on other machines, whose devices count instead of this one's
