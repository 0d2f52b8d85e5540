"""What `compare`, `run` and `rescore` are asked for, and the parameters that they share with other programs."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 (a dataclass keeps its annotations)
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from boosters_eval.core.errors import ConfigError, pick
from boosters_eval.core.request import (
    MAX_SEEDS,
    OUTPUT,
    REQUIRED,
    RUN,
    Accepted,
    Declared,
    InHome,
    OutputOptions,
    Request,
    anything,
    choice,
    count,
    parameter,
    path,
    quiet_option,
    read_limit_option,
    text,
)
from boosters_eval.core.terms import given, named, the
from boosters_eval.engine.settings import RUN_REFERENCE, RunOptions, RunSettings
from boosters_eval.programs.benchmark.margins import MARGIN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boosters_eval.runners.parameters import TrainingConfig
    from boosters_eval.stats.significance import TestName

DATA = "Files of your own"
TRAINING = "Training"
_OF_ANY_COMMAND = ("home", "verbose", "quiet", "dry_run", "command_line", "track")
TASKS = ("regression", "binary", "multiclass", "quantile", "ranking")
# What `--library` takes besides a library's name; see docs/builds.md.
BUILDS = ", path/to/file.py:Class, or builds: LIBRARY==VERSION, NAME=LIBRARY@wheel-or-source-folder."
# For metrics, a comma separates only before what is no parameter: in `f1@0.3,mcc`, but not in `pinball@0.1,0.5` or
# `ndcg@10,gain=linear`; the path of a build may contain some too: one separates only before what can be a library.
BEFORE_A_NAME = r",(?=[A-Za-z_./~][^=,]*(?:,|$))"
BEFORE_A_LIBRARY = r",(?=[^,@=/]*(?:[@=]|(?<!\.whl)(?:,|$))|[^,@]*\.py:)"


DEFAULT_SEEDS = "Default: 5, or the variable BOOSTERS_EVAL_SEEDS."
_SEEDS = "Number of splits, or auto to add seeds until every pair has a verdict."
_CV = "folds or folds x repeats, such as 5 or 5x10"


def names_parameter(default: Any, what: str, told: str, **more: Any) -> Any:
    """One or several names; from Python, what they name as well: a class, a function or a data frame."""
    return parameter(default, kind=anything(what, metavar="NAME"), several=True, raw=True, help=told, **more)


def libraries_parameter(told: str) -> Any:
    return names_parameter(None, "libraries", told, option="--library", short="-l", separator=BEFORE_A_LIBRARY)


def boosters_parameter() -> Any:
    told = "Boosters: gbdt, gblinear, linear_trees. Default: gbdt."
    return names_parameter(("gbdt",), "boosters", told, short="-b")


def metrics_parameter(told: str) -> Any:
    return names_parameter((), "metrics", told, option="--metric", short="-m", separator=BEFORE_A_NAME)


def seeds_parameter(told: str, *, auto: bool = False) -> Any:
    kind = count(1, MAX_SEEDS, other=("auto",) if auto else ())
    return parameter(None, short="-s", kind=kind, help=told)


def suite_parameter(default: str | None, told: str) -> Any:
    kind = anything("a suite's name, path/to/file.py:SUITE or a BenchmarkSuite", metavar="NAME")
    return parameter(default, kind=kind, help=told)


def judging_test_parameter() -> Any:
    told = (
        "The test behind the highlights: rows (paired, by what was predicted for each row), or by splits: corrected"
        " (paired, for splits that share rows), welch, paired, wilcoxon."
    )
    return parameter("rows", kind=choice("rows", "corrected", "welch", "paired", "wilcoxon"), help=told)


def _cv_parameter() -> Any:
    kind = anything(_CV, str, int, metavar="FOLDS[xREPEATS]")
    return parameter(None, kind=kind, help="Folds, or folds x repeats, instead of seeds: 5 or 5x10.")


def profile_parameter(default: str | None, further: str = "", *, both: bool = False) -> Any:
    told = f"parity (mapped by meaning){',' if both else ' or'} defaults (each library's own)"
    told += " or both, where only what holds in both is called best" if both else ""
    names = ("parity", "defaults", *["both"] * both)

    def of(value: Any) -> str:
        return pick("profile", str(getattr(value, "value", value)), names)

    return parameter(default, kind=Accepted("a profile", of, of, "|".join(names)), help=f"{told}.{further}")


def _of_columns(told: str) -> Any:
    return parameter((), kind=text("names of columns", "COLUMN"), separator=None, help=told)


class Keeping(Declared):
    """Whether what models predict is kept."""

    panel: ClassVar = RUN

    predictions: bool = parameter(
        True,
        negative="--no-predictions",
        help="Keep what each model predicts for each validation row, so that verdicts can use rows.",
    )


class Measuring(Keeping):
    """How a fit is measured, and what is kept of it."""

    panel: ClassVar = RUN

    timing_mode: bool = parameter(
        False, help="Measure times: use all cores, a full warm-up run, and one cell at a time."
    )
    protocol: Literal["fixed", "adaptive"] = parameter(
        "fixed",
        kind=choice("fixed", "adaptive"),
        help="With --timing-mode: fixed (one fit, three predictions), or adaptive (adaptive-v1: the faster, the more"
        " often).",
    )
    warmup: int | None = parameter(
        None,
        kind=count(0),
        help="Untimed full runs before the timed one; a small one is always done. Default: 1 with --timing-mode, else"
        " 0.",
    )
    measure_memory: bool = parameter(
        False, help="Measure the peak of native memory, and what the first use takes, in a separate fit."
    )
    threads: int | None = parameter(
        None,
        kind=count(1, other=(-1,)),
        help="Threads per cell; -1 for all cores. Default: the config's, usually 1; with --timing-mode all cores.",
    )

    def check(self) -> None:
        super().check()
        if self.protocol == "adaptive" and not self.timing_mode:
            raise ConfigError(
                f"{the('protocol')} can be 'adaptive' only in timing mode: use {given('timing_mode')} too."
            )


class Settings(RunSettings, Measuring):
    """How fits are measured and carried out."""

    def refuse_settings(self, *further: str) -> None:
        """Where nothing runs, refuse what says how."""
        for name in (*Settings.parameters, *further):
            value = getattr(self, name)
            plain = name in _OF_ANY_COMMAND or value == self.parameters[name].default
            if not plain and (name, value) != ("executor", "local"):
                raise ConfigError(f"{the(name)} says how to run, but an earlier run is used and nothing runs.")

    @property
    def takes_over(self) -> bool:
        """Whether finished cells of earlier runs are taken over by content."""
        return False

    @property
    def how_fresh(self) -> str:
        """How to train them anew, as a clause."""
        return ""


class MeasuringOptions(RunOptions, total=False):
    """The fields of `Settings` as keyword arguments, so that editors can complete them."""

    timing_mode: bool
    protocol: Literal["fixed", "adaptive"]
    warmup: int | None
    measure_memory: bool
    threads: int | None
    predictions: bool


class Tolerant(Declared):
    """Whether failed cells make a command fail."""

    continue_on_error: bool = parameter(False, panel=RUN, door="options", help="Exit 0 even if some cells failed.")


class TrainingParameters(Declared):
    """What models are trained with: a TrainingConfig from Python, single values on the command line."""

    panel: ClassVar = TRAINING
    door: ClassVar = "options"

    training: TrainingConfig | None = parameter(
        None, kind=anything("a TrainingConfig"), door="python", help="The canonical parameters."
    )
    growth: str | None = parameter(
        None, kind=choice("depthwise", "leafwise"), help="How trees grow: depthwise or leafwise. Default: depthwise."
    )
    device: str | None = parameter(
        None, kind=choice("cpu", "cuda"), help="What models are trained on: cpu or cuda. Default: cpu."
    )
    param: Sequence[str] = parameter(
        (), short="-p", kind=text("NAME=VALUE", "NAME=VALUE"), help="Canonical parameters: --param max_depth=4."
    )

    def check(self) -> None:
        super().check()
        said = {part.partition("=")[0].strip() for words in self.param for part in words.split(",")}
        for name, also in (("growth", {"growth", "growth_strategy"}), ("device", {"device"})):
            if getattr(self, name) is not None and said & also:
                raise ConfigError(f"Use either {named(name)} or {named('param')} {name}=..., not both.")


class DataParameters(Declared):
    """How the files of the user are read: DataSettings from Python, single values on the command line."""

    panel: ClassVar = DATA
    door: ClassVar = "options"

    data: Any = parameter(
        None,
        kind=anything("a DataSettings or a dict of them"),
        door="python",
        help="How the columns of files and data frames are read and used.",
    )
    drop: Sequence[str] = _of_columns("Columns that are left out.")
    keep: Sequence[str] = _of_columns(
        "Columns that are features although they look like ids, or order or group the rows."
    )
    categorical: Sequence[str] = _of_columns("Columns that are categories, even numbers.")
    numeric: Sequence[str] = _of_columns(
        "Columns that are numbers, even as text ($3,750, 12%); what is no number is missing."
    )
    date: Sequence[str] = _of_columns("Columns that are dates: they become year, month, day, weekday and hour.")
    drop_missing_target: bool = parameter(False, help="Leave out rows without a target.")
    sep: str | None = parameter(
        None, help="The separator: one character, or comma, semicolon, tab, pipe, space, whitespace. Default: detected."
    )
    decimal: str | None = parameter(None, help="The decimal mark. Default: detected.")
    thousands: str | None = parameter(None, help="The mark between thousands. Default: detected.")
    encoding: str | None = parameter(None, help="The encoding, such as utf-8, utf-16, cp1252. Default: detected.")
    read_limit: int | None = read_limit_option()


SPLIT = (
    "How rows are split: random, time:COLUMN (train before, validate after; time alone follows the order of the rows;"
    " --cv is the number of windows, by default 5) or group:COLUMN (no group on both sides)."
)


class TargetParameters(DataParameters):
    """What is predicted, where a file or a data frame does not say it."""

    task: Any = parameter(None, kind=choice(*TASKS), help="The task of a FILE, instead of inferring it.")
    target: Any = parameter(
        None,
        kind=anything("the name of a column, or of several", str, list, tuple),
        door="python",
        help="The column of a data frame that is predicted, or several.",
    )


def splits_parameter(usual: str | None = "balanced") -> Any:
    return parameter(
        usual,
        kind=choice("balanced", "random"),
        help="How seeds share the rows: balanced (no row is tested twice before all were tested) or random (each seed"
        f" draws anew). Default: {usual or 'as the suite says'}.",
    )


class BenchmarkParameters(TrainingParameters, TargetParameters):
    """What is trained on what, and how rows are split."""

    datasets: Any = names_parameter(
        ("california",),
        "data sets",
        "Data sets by name, or FILE.csv:TARGET, or FILE.csv:TARGET,TARGET for several. Default: california.",
        option="--dataset",
        short="-d",
        separator=None,  # the program takes commas apart: those in a file's targets stay
    )
    libraries: Any = libraries_parameter(f"Libraries{BUILDS} Default: all that are installed.")
    booster: Any = boosters_parameter()
    seeds: int | str | None = seeds_parameter(f"{_SEEDS} {DEFAULT_SEEDS}", auto=True)
    cv: str | int | None = _cv_parameter()
    splits: Literal["balanced", "random"] = splits_parameter()
    split: str | None = parameter(
        None, kind=text("random, time, time:COLUMN or group:COLUMN", "random|time[:COLUMN]|group:COLUMN"), help=SPLIT
    )
    profile: Any = profile_parameter("parity")


class Margined(Declared):
    """How large a difference must be to matter."""

    panel: ClassVar = OUTPUT

    margin: Any = parameter(
        (),
        kind=MARGIN,
        raw=True,
        separator=None,
        help="What counts as equivalent: a share of the error, and for single metrics rmse=2% or auc_roc=0.002."
        " Default: 1%.",
    )


class Verdicts(Margined, OutputOptions):
    """How a comparison is judged and shown, and whether it is a check."""

    panel: ClassVar = OUTPUT
    door: ClassVar = "options"

    test: TestName = judging_test_parameter()
    highlight_significant: bool = parameter(
        True, negative="--highlight-best", help="Highlight the best mean only if its lead is significant, or always."
    )
    against: str | None = parameter(
        None,
        kind=text("the name of a competitor", "NAME"),
        help="Exit 1 if another competitor is worse than this one in a primary metric, or slower under --timing-mode; 2"
        " if that could not be answered.",
    )
    require_proof: bool = parameter(
        False, help="With --against: exit 1 also if a loss of more than --margin cannot be excluded."
    )
    verdict: Path | None = parameter(None, kind=path(), written=True, help="File for the verdict of --against as JSON.")


def variants_parameter(told: str = "") -> Any:
    return parameter(
        None,
        kind=anything("a dict of names and TrainingConfigs", metavar="NAME:PARAM=VALUE"),
        several=True,
        raw=True,
        separator=None,
        help=told
        or "Variants to compare, one row each: 'deep:max_depth=8' 'flat:max_depth=3'. With --profile defaults, by the"
        " library's own names.",
    )


class CompareRequest(Settings, Tolerant, Verdicts, BenchmarkParameters, Request):
    command: ClassVar = "compare"
    help: ClassVar = "Compare libraries on data sets."
    program: ClassVar = "boosters_eval.programs.benchmark.compare:compare"

    profile: Any = profile_parameter("parity", both=True)
    max_seeds: int | None = parameter(
        None, kind=count(2, MAX_SEEDS), help="The most seeds that --seeds auto may use. Default: 50."
    )
    budget: str | float | None = parameter(
        None,
        kind=anything("a time such as 90s, 10m or 1h", str, int, float, metavar="TIME"),
        help="Time limit for --seeds auto: 90s, 10m, 1h. Default: none.",
    )
    variants: Any = variants_parameter()
    metrics: Any = metrics_parameter("Further metrics besides those of the task: f1@0.3, ndcg@5, file.py:function.")
    reuse: bool = parameter(
        False, panel=RUN, help="Take over finished cells of earlier runs with the same build, data and split."
    )

    @property
    def takes_over(self) -> bool:
        return self.reuse

    def check(self) -> None:
        super().check()
        check_splits(self)
        for name in ("timing_mode", "measure_memory"):
            if self.reuse and getattr(self, name):
                raise ConfigError(f"Use either {named('reuse')} or {named(name)}, not both: what is measured must run.")
        for name in ("budget", "max_seeds"):
            if getattr(self, name) is not None and self.seeds != "auto":
                raise ConfigError(f"{the(name)} needs {given('seeds', 'auto')}.")
        check_verdict(self)


class RescoreRequest(Tolerant, Verdicts, InHome, Request):
    command: ClassVar = "rescore"
    help: ClassVar = """\
Judge a run by other metrics, from the predictions that it has kept: nothing is trained.

The first metric decides. Values are those that the run itself would have computed."""
    program: ClassVar = "boosters_eval.programs.benchmark.rescore:rescore"

    run: str = parameter(
        "last",
        kind=RUN_REFERENCE,
        typed=REQUIRED,
        argument=True,
        help="A run id, the beginning of one, a name given with --name, or 'last'.",
    )
    metrics: Any = metrics_parameter("Metrics, the deciding one first: mae, f1@0.3, ndcg@5, file.py:function.")
    quiet: bool = quiet_option("Print only the tables.")
    verbose: bool = parameter(False, short="-v", panel=OUTPUT, door="options", help="Print every note.")

    def check(self) -> None:
        super().check()
        check_verdict(self)


class SuiteRequest(Settings, Tolerant, Verdicts, Request):
    command: ClassVar = "run"
    help: ClassVar = "Run a suite."
    program: ClassVar = "boosters_eval.programs.benchmark.compare:run_suite"

    suite: Any = suite_parameter("quick", "A suite by name, or path/to/file.py:SUITE. Default: quick.")
    subset: int | None = parameter(
        None, kind=count(1), help="Only the first so many data sets; those of real24 are in an order that allows it."
    )
    skip_missing: bool = parameter(False, help="Run without the data sets that cannot be downloaded.")
    libraries: Any = libraries_parameter(f"Run only these libraries{BUILDS} Default: all of the suite.")
    seeds: int | str | None = seeds_parameter(
        f"{_SEEDS} Default: the variable BOOSTERS_EVAL_SEEDS, or those that the suite or its configs name.", auto=True
    )
    cv: str | int | None = _cv_parameter()
    splits: Literal["balanced", "random"] | None = splits_parameter(None)
    metrics: Any = metrics_parameter("Further metrics besides those of the suite.")
    profile: Any = profile_parameter(None, " Default: the suite's.", both=True)
    variants: Any = variants_parameter(
        "With --profile defaults, a library's own parameters to compare: 'now:' 'new:learning_rate=0.1'."
    )
    policy: Path | None = parameter(
        None,
        kind=path(),
        help="A JSON file with the tier, threshold and held_out that the gate shall decide by, stated before the run.",
    )

    def check(self) -> None:
        super().check()
        check_splits(self)
        check_verdict(self)


def check_splits(request: Any) -> None:
    """Folds decide on the number of splits too."""
    if request.cv is not None and request.seeds is not None:
        raise ConfigError(
            f"Use either {named('cv')} or {named('seeds')}, not both: FOLDSxREPEATS redraws the folds REPEATS times."
        )


def check_verdict(request: CompareRequest | SuiteRequest | RescoreRequest) -> None:
    """A verdict needs a question, and a failed cell is never a pass."""
    if request.verdict is not None and request.against is None:
        raise ConfigError(f"{the('verdict')} needs {named('against')} NAME: without it there is no verdict to write.")
    if request.require_proof and request.against is None:
        raise ConfigError(
            f"{the('require_proof')} needs {named('against')} NAME: without it there is nothing to prove."
        )
    if request.against is not None and request.continue_on_error:
        raise ConfigError(
            f"Use either {named('against')} or {named('continue_on_error')}, not both: a failed cell is never a pass."
        )
