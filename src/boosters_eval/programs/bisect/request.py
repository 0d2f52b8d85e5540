"""What `bisect` is asked for."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 (a dataclass keeps its annotations)
from typing import TYPE_CHECKING, Any, ClassVar

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.request import (
    MAX_SEEDS,
    REQUIRED,
    Accepted,
    OutputOptions,
    Request,
    anything,
    count,
    number,
    parameter,
    path,
    text,
)
from boosters_eval.core.terms import named, the
from boosters_eval.core.text import join_words
from boosters_eval.programs.benchmark.request import (
    BEFORE_A_LIBRARY,
    BEFORE_A_NAME,
    MeasuringOptions,
    Settings,
    TargetParameters,
    TrainingParameters,
    profile_parameter,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from boosters_eval.programs.bisect.answer import BisectionStep

_SOURCES = ("versions", "wheels", "folder")


def _single(
    name: str, words: str, told: str, default: Any = REQUIRED, types: tuple[type, ...] = (), **more: Any
) -> Any:
    """A parameter with which other programs take several."""
    single = anything(words, *types)

    def of(value: Any) -> Any:
        if not isinstance(value, tuple) or not all(isinstance(word, str) for word in value):
            return single.of(value)
        if len(value) != 1:
            raise ConfigError(f"{the(name)} of bisect must be a single one. Got {', '.join(value)} instead.")
        return single.of(value[0])

    kind = Accepted(words, of, str, "NAME")
    return parameter(default, kind=kind, short=f"-{name[0]}", several=True, raw=True, help=told, **more)


def _versions(value: Any) -> str | Sequence[str]:
    if isinstance(value, tuple) and len(value) == 1:  # as a command line gives it
        return str(value[0])
    if not isinstance(value, (str, list, tuple)):
        raise ValueError  # noqa: TRY004 (the request makes the sentence)
    return value


class BisectRequest(Settings, OutputOptions, TrainingParameters, TargetParameters, Request):
    command: ClassVar = "bisect"
    help: ClassVar = """Find the version of a library with which a number changed.

    The two ends are compared first; then the version in the middle is compared with both, and so on. Each step adds
    seeds until it is decided. Exit 0 if the version was found or nothing changed, 1 if it cannot be told.
    """
    program: ClassVar = "boosters_eval.programs.bisect.search:bisect"
    formats: ClassVar = ("markdown", "json", "html")

    library: str = _single(
        "library",
        "the name of a library",
        "The library, or path/to/file.py:Class.",
        types=(str,),
        separator=BEFORE_A_LIBRARY,
    )
    versions: str | Sequence[str] | None = parameter(
        None,
        kind=Accepted("A..B, such as 4.3..4.7, or versions in order", _versions, str, "A..B"),
        several=True,
        raw=True,
        help="Released versions: A..B, both included, or a list in order.",
    )
    wheels: Sequence[Path] = parameter((), kind=path("wheels"), separator=None, help="Wheels of the library, in order.")
    folder: Path | None = parameter(
        None, kind=path("a folder of a git repository", "FOLDER"), help="A folder of a git repository, with --commits."
    )
    commits: str | None = parameter(
        None,
        kind=text("GOOD..BAD, such as v1.2..main", "GOOD..BAD"),
        help="The commits of --folder; of merges only the first parents.",
    )
    build_command: str | None = parameter(
        None,
        kind=text("a command", "COMMAND"),
        help="What builds a wheel of a commit, in a shell; {wheels} is a folder for it. Default: pip wheel.",
    )
    isolated: bool = parameter(False, help="Install each version with dependencies of its own.")
    dataset: Any = _single("dataset", "a data set", "A data set by name, or FILE.csv:TARGET.", "california")
    metric: Any = _single(
        "metric",
        "a metric",
        "The number: a metric, train_time_s, predict_time_s or another time (with --timing-mode), or memory."
        " Default: the metric that decides by the task.",
        None,
        separator=BEFORE_A_NAME,
    )
    tolerance: float | None = parameter(
        None,
        kind=number("a share from 0 to below 1", least=0, below=1),
        help="The smallest change that counts, relative to the error (1 - AUC). Default: 0.01, and 0.05 for times.",
    )
    alpha: float = parameter(
        0.05,
        kind=number("a chance above 0 and below 0.5", above=0, below=0.5),  # an even chance of being wrong is no answer
        help="The chance, at most, of naming a wrong version.",
    )
    max_seeds: int = parameter(50, kind=count(2, MAX_SEEDS), help="The most seeds that a step may use.")
    booster: Any = _single("booster", "a booster", "The booster: gbdt, gblinear or linear_trees.", "gbdt")
    split: str | None = parameter(
        None,
        kind=text("random or group:COLUMN", "random|group:COLUMN"),
        help="How rows are split: random, or group:COLUMN (no group on both sides).",
    )
    profile: Any = profile_parameter("parity")
    on_step: Callable[[BisectionStep], None] | None = parameter(
        None, kind=anything("a function"), door="python", help="Is called with each step when it has ended."
    )

    def check(self) -> None:
        super().check()
        given = [name for name in _SOURCES if getattr(self, name)]
        if len(given) != 1:
            first, second, third = map(named, _SOURCES)
            got = join_words(map(named, given)) or "none of them"
            raise ConfigError(f"Use either {first}, {second} or {third} to say which versions to search. Got {got}.")
        for name in ("commits", "build_command"):
            if self.folder is None and getattr(self, name) is not None:
                raise ConfigError(f"{the(name)} must come with a folder of a git repository. Got none.")
        if self.folder is not None and self.commits is None:
            raise ConfigError(f"{the('commits')} must be GOOD..BAD, such as v1.2..main. Got none.")


class BisectionOptions(MeasuringOptions, total=False):
    """The keyword arguments of `bisect`, so that editors can complete them."""

    versions: str | Sequence[str] | None
    wheels: str | Path | Sequence[str | Path]
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
    on_step: Callable[[BisectionStep], None] | None
