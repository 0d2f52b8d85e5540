"""What is to be found out: the options of a bisection, read and checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import ConfigError, require, suggest
from boosters_eval.programs.benchmark.looks import Growth
from boosters_eval.programs.benchmark.settings import RunOptions, Settings
from boosters_eval.programs.bisect.candidates import candidates_of
from boosters_eval.runners import RUNNERS
from boosters_eval.runners.resolve import library_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from boosters_eval.programs.bisect.model import BisectionStep, Candidate

_SOURCE = ("versions", "wheels", "folder", "commits", "build_command", "isolated")
_BENCHMARK = ("booster", "training", "task", "data", "target", "split", "profile")
_EVEN = 0.5  # an even chance of being wrong is no answer
_CHANCE = f"a chance above 0 and below {_EVEN}"
_SHARE = "a share from 0 to below 1"
_SEARCH = ("metric", "tolerance", "alpha", "max_seeds")


class BisectionOptions(RunOptions, total=False):
    """The keyword arguments of `bisect`, so that editors can complete them."""

    versions: str | Sequence[str] | None
    wheels: Sequence[str | Path] | None
    folder: str | Path | None
    commits: str | None
    build_command: str | None
    isolated: bool
    dataset: Any  # as in compare(): a name, 'path:column', a data frame; california by default
    metric: Any  # a name, a time, 'memory' or a function; by default what decides by the data set or the task
    tolerance: float | None
    alpha: float
    max_seeds: int
    booster: Any
    training: Any
    task: Any
    data: Any
    target: str | None
    split: str | None
    profile: Any
    verbose: bool
    observer: Any
    executor: Any
    say: Callable[[str], None] | None
    on_step: Callable[[BisectionStep], None] | None


@dataclass(frozen=True)
class BisectionRequest:
    """What is to be found out, besides the versions."""

    library: str
    dataset: Any
    settings: Settings
    metric: Any = None
    tolerance: float | None = None  # None: the default of the metric's kind
    alpha: float = 0.05
    max_seeds: int = 50
    benchmark: Mapping[str, Any] = field(default_factory=dict)  # further arguments of `comparison`

    def __post_init__(self) -> None:
        """Refuse what no search could be made with."""
        tolerance, alpha = self.tolerance, self.alpha
        require("alpha", alpha, Real, _CHANCE)
        if not 0 < alpha < _EVEN:
            raise ConfigError(f"The 'alpha' parameter must be {_CHANCE}. Got {alpha} instead.")
        if tolerance is not None:
            require("tolerance", tolerance, Real, _SHARE)
            if not 0 <= tolerance < 1:
                raise ConfigError(f"The 'tolerance' parameter must be {_SHARE}. Got {tolerance} instead.")
        Growth.of(self.max_seeds)  # refuses a number of seeds that no run can have


def read_request(library: str, options: BisectionOptions) -> tuple[BisectionRequest, list[Candidate]]:
    """The request and the versions, from the keyword arguments of `bisect`."""
    given: dict[str, Any] = dict(options)
    for name in given.keys() - BisectionOptions.__annotations__.keys() - Settings.model_fields.keys():
        raise ConfigError(f"bisect() has no parameter '{name}'.{suggest(name, BisectionOptions.__annotations__)}")
    require("library", library, str, "the name of a library")
    name = RUNNERS[library_name(library)].name
    settings = Settings(**{name: value for name, value in given.items() if name in Settings.model_fields})
    request = BisectionRequest(
        name,
        given.get("dataset", "california"),
        settings,
        **{name: given[name] for name in _SEARCH if name in given},
        benchmark={name: given[name] for name in _BENCHMARK if name in given},
    )
    source = {name: given[name] for name in _SOURCE if name in given}
    return request, candidates_of(library, **source, home=settings.home)
