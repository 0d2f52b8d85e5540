"""What `explain` is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.request import FLAG, Request, anything, choice, count, number, parameter
from boosters_eval.core.terms import named
from boosters_eval.programs.benchmark.request import (
    BUILDS,
    TASKS,
    TrainingParameters,
    libraries_parameter,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


class ExplainRequest(TrainingParameters, Request):
    """How parameters are mapped for each library."""

    command: ClassVar = "explain"
    help: ClassVar = """Show how parameters are mapped for each library.

    For each library: its native parameters, and whether each canonical parameter is exact, approximated or
    unsupported, with the reason.
    """
    program: ClassVar = "boosters_eval.programs.explain.mappings:explain"

    libraries: Any = libraries_parameter(f"Libraries to explain{BUILDS} Either these or --all.")
    every: bool = parameter(False, option="--all", kind=FLAG, help="One table for all libraries.")
    booster: Any = parameter(
        ("gbdt",),
        short="-b",
        kind=anything("boosters", metavar="NAME"),
        several=True,
        raw=True,
        help="Boosters: gbdt, gblinear, linear_trees. Default: gbdt.",
    )
    task: str = parameter(
        "regression", kind=choice(*TASKS), help="regression, binary, multiclass, quantile or ranking."
    )
    profile: Any = parameter(
        "parity",
        kind=anything("a profile", metavar="parity|defaults"),
        help="parity (mapped by meaning) or defaults (each library's own).",
    )
    classes: int = parameter(3, kind=count(3), help="Number of classes, for multiclass.")
    quantiles: Sequence[float] = parameter(
        (0.5,),
        option="--quantile",
        kind=number("between 0 and 1, both excluded", above=0, below=1),
        several=True,
        help="Quantiles to predict. Default: 0.5.",
    )
    threads: int = parameter(1, kind=count(1), help="Threads per cell.")
    weighted: bool = parameter(False, kind=FLAG, help="Assume that rows have weights.")
    missing: bool = parameter(False, kind=FLAG, help="Assume that some values are missing.")
    categorical: Sequence[int] = parameter((), kind=count(0), several=True, help="Positions of categorical columns.")
    json: bool = parameter(False, kind=FLAG, door="options", help="Print JSON.")

    def check(self) -> None:
        """Refuse what names no library, and what names all twice."""
        super().check()
        if self.every == bool(self.libraries):
            raise ConfigError(f"Use either {named('libraries')} or {named('every')} to choose the libraries.")
