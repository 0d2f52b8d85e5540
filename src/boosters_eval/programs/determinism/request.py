"""What `determinism` is asked for."""

from __future__ import annotations

from typing import Any, ClassVar

from boosters_eval.core.request import OutputOptions, Request
from boosters_eval.engine.settings import RunSettings
from boosters_eval.programs.benchmark.request import BEFORE_A_LIBRARY, BUILDS, TargetParameters, names_parameter


class DeterminismRequest(RunSettings, OutputOptions, TargetParameters, Request):
    command: ClassVar = "determinism"
    help: ClassVar = """Show whether the same training gives the same model, and what makes it another one.

    Again, in another process, with more threads, with rows or columns in another order, with weights or repeated rows.
    Exit 1 if a library trains another model with the same seed, 2 if that could not be answered.
    """
    program: ClassVar = "boosters_eval.programs.determinism.judge:determinism"
    formats: ClassVar = ("markdown", "json", "html")

    libraries: Any = names_parameter(
        None,
        "libraries",
        f"Libraries{BUILDS} Default: all that are installed.",
        argument=True,
        separator=BEFORE_A_LIBRARY,
    )
    datasets: Any = names_parameter(
        (),
        "data sets",
        "Data sets by name, or FILE.csv:TARGET. Default: a small one of each task.",
        option="--dataset",
        short="-d",
        separator=None,
        spread=False,
    )
