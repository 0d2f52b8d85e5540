"""What users ask for. A program declares each parameter once: options, error sentences and tables follow from it.

Requests are plain dataclasses, so that the command line starts without pydantic.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self, dataclass_transform

from boosters_eval.core.errors import ConfigError, match, suggest
from boosters_eval.core.registry import Registry, must_extend
from boosters_eval.core.terms import the
from boosters_eval.core.text import join_words, parse_size

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from boosters_eval.core.findings import Findings


SplitKind = Literal["random", "time", "group"]  # how the rows of a repeat are divided

_NAME = re.compile(r"(-?\d+)(?:/(\d+))?")


MAX_SEEDS = 10_000  # of one spec


class Repeat(NamedTuple):
    """A seed, and the fold where the split has folds."""

    seed: int
    fold: int | None = None

    def __str__(self) -> str:
        """As a person reads it: "seed 42" or "seed 42, fold 1"."""
        return f"seed {self.seed}" if self.fold is None else f"seed {self.seed}, fold {self.fold}"

    @property
    def name(self) -> str:
        """As files spell it: "42" or "42/1"."""
        return f"{self.seed}" if self.fold is None else f"{self.seed}/{self.fold}"

    @classmethod
    def parse(cls, name: str) -> Self:
        match = _NAME.fullmatch(name)
        if match is None:
            raise ConfigError(
                f"A repeat must be a seed, with its fold where there is one, such as 42 or 42/1. Got {name!r} instead."
            )
        return cls(int(match[1]), None if match[2] is None else int(match[2]))


class Part(NamedTuple):
    """One of the disjoint test sets into which a seed deals the rows; consecutive repeats take one after another."""

    seed: int
    number: int


REQUIRED: Any = object()


@dataclass(frozen=True)
class Accepted:
    """What a parameter takes. `of` makes it from a value of Python, `read` from a word; a ValueError refuses it."""

    words: str  # as in "must be a count of at least 1"
    of: Callable[[Any], Any]
    read: Callable[[str], Any]
    metavar: str = "TEXT"


def anything(words: str, *types: type, metavar: str = "TEXT") -> Accepted:
    """What only the program itself can judge; of some types, if any are named."""

    def of(value: Any) -> Any:
        if types and not isinstance(value, types):
            raise ValueError
        return value

    return Accepted(words, of, str, metavar)


def text(words: str = "text", metavar: str = "TEXT") -> Accepted:
    return anything(words, str, metavar=metavar)


def choice(*names: str) -> Accepted:
    def of(value: Any) -> str:
        chosen = str(getattr(value, "value", value))
        meant = match(chosen, names)
        if meant is None:
            raise ValueError(suggest(chosen, names))
        return meant

    *others, last = names
    return Accepted(f"{', '.join(others)} or {last}" if others else last, of, of, "|".join(names))


def count(least: int = 1, most: int | None = None, *, other: tuple[str | int, ...] = ()) -> Accepted:
    """A whole number, or one of the `other` words and numbers."""

    def of(value: Any) -> Any:
        if value in other:
            return value
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise ValueError
        if not least <= int(value) <= (math.inf if most is None else most):
            raise ValueError
        return int(value)

    def read(word: str) -> Any:
        digits = word.removeprefix("-")
        return of(int(word) if digits.isascii() and digits.isdecimal() else word)

    words = f"a count of at least {least}" if most is None else f"a count from {least} to {most}"
    others = [str(each) for each in other]
    return Accepted(", or ".join((words, *others)), of, read, "|".join(("N", *others)))


def number(
    words: str,
    *,
    above: float = -math.inf,
    least: float = -math.inf,
    below: float = math.inf,
    most: float = math.inf,
    metavar: str = "X",
) -> Accepted:
    """A finite number within bounds, which the words tell."""

    def of(value: Any) -> float:
        if isinstance(value, (bool, str)):
            raise ValueError  # noqa: TRY004 (the request makes the sentence)
        try:
            found = float(value)
        except TypeError:
            raise ValueError from None
        if not (above < found < below and least <= found <= most):
            raise ValueError
        return found

    return Accepted(words, of, lambda word: of(float(word)), metavar)


def path(words: str = "a path", metavar: str = "FILE") -> Accepted:
    def of(value: Any) -> Path:
        if not isinstance(value, (str, Path)) or value == "":
            raise ValueError
        return Path(value)

    return Accepted(words, of, of, metavar)


def _span(value: Any) -> timedelta:
    match = re.fullmatch(r"(\d{1,6})([hdw])", value) if isinstance(value, str) else None
    if match is not None:
        return timedelta(**{_SPANS[match[2]]: int(match[1])})
    if not isinstance(value, timedelta):
        raise ValueError  # noqa: TRY004 (the request makes the sentence)
    return value


_SPANS = {"h": "hours", "d": "days", "w": "weeks"}
SPAN = Accepted("a time such as 12h, 30d or 8w", _span, _span, "TIME")
LEAST_TO_READ = 200_000_000  # bytes of memory: less does not hold the libraries that read files
READ_LIMIT = Accepted(
    "a size of at least 200MB, such as 4GB", anything("", int).of, lambda word: parse_size(word, LEAST_TO_READ), "SIZE"
)
FLAG = Accepted("True or False", anything("", bool).of, bool, "")
TEXT = text()

Door = Literal["both", "python", "options"]  # where a parameter can be given
RUN, OUTPUT = "How to run", "Output"  # panels of the help
# How the help spells a format, and the endings of its files.
_FORMATS = {"markdown": "markdown (or md)", "table": "table (for a terminal)"}
_ENDINGS = {
    "markdown": ".md or .txt (both Markdown)",
    "json": ".json",
    "csv": ".csv",
    "html": ".html",
    "latex": ".tex",
    "yaml": ".yaml",
}


@dataclass(eq=False)
class Parameter:
    """One parameter of a program, as it is declared; the class that declares it gives it its name."""

    help: str
    kind: Accepted = TEXT
    name: str = ""
    default: Any = REQUIRED
    typed: Any = None  # the default of a command line, where that is another; REQUIRED: it has none
    option: str = ""  # like the name, unless said otherwise
    short: str = ""
    negative: str = ""  # of a flag: the option that turns it off
    several: bool = False
    raw: bool = False  # from Python, one or several of anything, which the program itself takes apart
    separator: str | None = ","  # of several values in one word, as a regular expression; None: a word is one value
    spread: bool = True  # whether several words may follow the option; False: it is repeated, as before an argument
    argument: bool = False  # given by its position
    panel: str = ""
    door: Door = "both"
    written: bool = False  # a file that the program writes, so that it is tried before any work is done

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        self.option = self.option or f"--{name.replace('_', '-')}"
        self.panel = self.panel or vars(owner).get("panel", "")
        self.door = vars(owner).get("door", "both") if self.door == "both" else self.door

    @property
    def required(self) -> bool:
        return self.default is REQUIRED

    @property
    def said(self) -> str:
        return self.kind.metavar if self.argument else self.option

    def check(self, value: Any) -> Any:
        """The value as the program gets it; what it does not take is refused in one sentence."""
        if not self.required and (value is None or value is self.default):
            return self.default
        if not self.several or self.raw:
            return self._one(value, self.kind.of)
        given = value if isinstance(value, (list, tuple)) else [value]
        if self.required and not given:
            raise ConfigError(f"{the(self.name)} must be {self.kind.words}, or several. Got {value!r} instead.")
        return tuple(self._one(item, self.kind.of) for item in given)

    def read(self, word: str) -> Any:
        return self._one(word, self.kind.read)

    def _one(self, value: Any, convert: Callable[[Any], Any]) -> Any:
        try:
            return convert(value)
        except ValueError as error:
            if isinstance(error, ConfigError):
                raise
            hint = str(error) if str(error).startswith(" Did you mean") else ""
            raise ConfigError(f"{the(self.name)} must be {self.kind.words}. Got {value!r} instead.{hint}") from None


def parameter(default: Any = REQUIRED, *, help: str, kind: Accepted | None = None, **more: Any) -> Any:  # noqa: A002 (as it reads)
    """Declare a parameter; `more` are further fields of Parameter.

    True or False is the default of a flag, and a tuple that of several values, which are kept as one.
    """
    kind = kind or (FLAG if isinstance(default, bool) else TEXT)
    return Parameter(help=help, kind=kind, default=default, **{"several": isinstance(default, tuple), **more})


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(parameter,))
class Declared:
    """A base of requests: parameters that several programs have in common. What is made is checked, and frozen.

    It is like a dataclass, but without the code that each of those compiles: half of a start.
    """

    parameters: ClassVar[Mapping[str, Parameter]] = {}
    panel: ClassVar[str] = ""  # of the parameters that a class declares, unless one says otherwise
    door: ClassVar[Door] = "both"  # and where they can be given

    def __init_subclass__(cls, **options: Any) -> None:
        """Collect what is declared here and in the bases."""
        super().__init_subclass__(**options)
        every = (pair for base in reversed(cls.__mro__) for pair in vars(base).items())
        cls.parameters = {name: value for name, value in every if isinstance(value, Parameter)}

    def __init__(self, **given: Any) -> None:
        for name in given.keys() - self.parameters.keys():
            raise ConfigError(f"{type(self).__name__} has no parameter '{name}'.{suggest(name, self.parameters)}")
        for name, declared in self.parameters.items():
            if declared.required and name not in given:
                raise ConfigError(f"{the(name)} is required.")
            vars(self)[name] = declared.check(given[name]) if name in given else declared.default
        self.check()

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse: a request stays what it was."""
        raise AttributeError(f"{type(self).__name__} is frozen: use replace({name}={value!r}).")

    def __repr__(self) -> str:
        given = {name: value for name, value in vars(self).items() if value is not self.parameters[name].default}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in given.items())})"

    def check(self) -> None:
        """Refuse parameters that contradict each other; each base adds to it."""

    def replace(self, **changes: Any) -> Self:
        return type(self)(**{**vars(self), **changes})


class Request(Declared):
    """What a user asks one program for."""

    command: ClassVar[str]  # as it is typed: "compare", "baseline check"
    help: ClassVar[str]  # a sentence; more may follow after an empty line
    program: ClassVar[str | Callable[..., Findings]]  # what answers it: a function, or "module:function"
    formats: ClassVar[tuple[str, ...]] = ()  # in which the findings can be written, besides what a terminal shows

    @classmethod
    def of(cls, function: str, given: Mapping[str, Any]) -> Self:
        """The request that the arguments of a Python function make."""
        known = {each.name for each in cls.parameters.values() if each.door != "options"}
        for name in given.keys() - known:
            raise ConfigError(f"{function}() has no parameter '{name}'.{suggest(name, known)}")
        return cls(**given)


def output_option(told: str) -> Any:
    return parameter(None, short="-o", kind=path(), panel=OUTPUT, door="options", written=True, help=told)


def format_option(door: Door = "options") -> Any:
    told = "{formats}. Default: by the ending of --output."  # OutputOptions fills it in
    return parameter(None, short="-f", panel=OUTPUT, door=door, help=told)


def quiet_option(told: str = "Print only errors.") -> Any:
    return parameter(False, short="-q", panel=OUTPUT, door="options", help=told)


def read_limit_option() -> Any:
    told = "Memory that reading a file may take, such as 8GB. Default: 4GB, or the variable BOOSTERS_EVAL_READ_LIMIT."
    return parameter(None, kind=READ_LIMIT, door="options", help=told)


class OutputOptions(Declared):
    """Where the findings go, and in which of the request's formats; the help of both options names these."""

    formats: ClassVar[tuple[str, ...]] = ("markdown", "json", "csv", "html", "latex")

    output: Path | None = output_option("File for the result: {endings}. Default: stdout.")
    format: str | None = format_option()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        said = {
            "formats": join_words((_FORMATS.get(name, name) for name in cls.formats), "or"),
            "endings": join_words((_ENDINGS[name] for name in cls.formats if name in _ENDINGS), "or"),
        }
        both = {name: cls.parameters[name] for name in ("output", "format")}
        told = {name: replace(each, help=each.help.format(**said)) for name, each in both.items()}
        cls.parameters = {**cls.parameters, **told}


class JsonOption(Declared):
    """Whether a program reads the findings."""

    formats: ClassVar[tuple[str, ...]] = ("json",)

    json: bool = parameter(False, door="options", help="Print JSON.")


class RemovalOptions(Declared):
    """Whether what is shown is removed."""

    yes: bool = parameter(False, short="-y", door="options", help="Do not ask.")
    dry_run: bool = parameter(False, help="Show what would be removed, but remove nothing.")


class InHome(Declared):
    """Whose runs are meant."""

    home: Path | None = parameter(None, kind=path(), door="python", help="Where runs are kept.")


def list_options(request: type[Declared]) -> list[Parameter]:
    """What a command line can give, panel by panel; what has none comes first."""
    found = [each for each in request.parameters.values() if each.door != "python"]
    panels = list(dict.fromkeys(each.panel for each in found))
    return sorted(found, key=lambda each: (each.panel != "", panels.index(each.panel)))


# The commands of this package: the program and the name of each request, and the function of the API that makes one.
COMMANDS = {
    "quick": ("baseline", "QuickRequest", ""),
    "check": ("baseline", "CheckSuiteRequest", ""),
    "full": ("baseline", "FullRequest", ""),
    "baseline record": ("baseline", "RecordRequest", "record_baseline"),
    "baseline check": ("baseline", "CheckRequest", "check_baseline"),
    "baseline update": ("baseline", "UpdateRequest", "update_baseline"),
    "baseline diff": ("baseline", "DiffRequest", "diff_baselines"),
    "compare": ("benchmark", "CompareRequest", "compare"),
    "run": ("benchmark", "SuiteRequest", "run_suite"),
    "rescore": ("benchmark", "RescoreRequest", "rescore"),
    "where": ("where", "WhereRequest", "find_slices"),
    "builds add": ("catalog", "AddBuildsRequest", "add_builds"),
    "builds list": ("catalog", "ListBuildsRequest", "list_builds"),
    "builds show": ("catalog", "ShowBuildRequest", "show_build"),
    "builds remove": ("catalog", "RemoveBuildsRequest", "remove_builds"),
    "builds prune": ("catalog", "PruneBuildsRequest", "prune_builds"),
    "datasets fetch": ("catalog", "FetchRequest", "fetch_datasets"),
    "datasets show": ("catalog", "ShowDatasetRequest", "show_dataset"),
    "datasets init": ("catalog", "InitDatasetRequest", "init_dataset"),
    "explain": ("catalog", "ExplainRequest", "explain_mapping"),
    "gate": ("gate", "GateRequest", "decide_gate"),
    "bisect": ("bisect", "BisectRequest", "bisect"),
    "determinism": ("determinism", "DeterminismRequest", "determinism"),
    "check-export": ("export", "ExportRequest", "check_export"),
    "tune": ("tune", "TuneRequest", "tune"),
    "upgrade-check": ("upgrade", "UpgradeRequest", "check_upgrade"),
    "importances": ("importances", "ImportancesRequest", "importances"),
    "verify": ("runs", "VerifyRequest", "verify_decision"),
    "paper extract": ("paper", "ExtractPaperRequest", "extract_paper"),
    "paper run": ("paper", "RunPaperRequest", "run_paper"),
    "paper list": ("paper", "ListPaperRequest", "list_paper_targets"),
    "paper compare": ("paper", "ComparePaperRequest", "compare_paper"),
    "paper results init": ("paper", "InitResultsRequest", "init_paper_results"),
    "paper report": ("paper", "ReportPaperRequest", "report_paper"),
    "paper validate": ("paper", "ValidatePaperRequest", "validate_paper"),
    "parity run": ("parity", "ParityRequest", "run_parity"),
    "parity gate": ("parity", "ParityGateRequest", "decide_parity_gate"),
    "parity init": ("parity", "ParityInitRequest", "init_parity"),
    "parity render": ("parity", "ParityRenderRequest", "render_parity"),
    "parity list": ("parity", "ParityListRequest", "list_parity"),
    "parity oracles list": ("parity", "OraclesListRequest", "list_oracles"),
    "parity oracles verify": ("parity", "OraclesVerifyRequest", "verify_oracles"),
    "parity oracles refresh": ("parity", "OraclesRefreshRequest", "refresh_oracles"),
    "runs list": ("runs", "ListRunsRequest", "list_runs"),
    "runs show": ("runs", "ShowRunRequest", "show_run"),
    "runs open": ("report", "OpenRunRequest", "open_run"),
    "runs remove": ("runs", "RemoveRunsRequest", "remove_runs"),
    "runs prune": ("runs", "PruneRunsRequest", "prune_runs"),
    "history": ("history", "ListHistoryRequest", "list_history"),
    "history show": ("history", "ShowHistoryRequest", "show_history"),
    "history import": ("history", "ImportHistoryRequest", "import_history"),
    "history export": ("history", "ExportHistoryRequest", "export_history"),
    "history reindex": ("history", "ReindexRequest", "reindex_history"),
    "history diff": ("history", "DiffRunsRequest", "diff_runs"),
    "history report": ("history", "ReportHistoryRequest", "report_history"),
    "list libraries": ("catalog", "LibrariesRequest", "list_libraries"),
    "list datasets": ("catalog", "DatasetsRequest", "list_datasets"),
    "list suites": ("catalog", "SuitesRequest", "list_suites"),
    "list metrics": ("catalog", "MetricsRequest", "list_metrics"),
    "report": ("report", "ReportRequest", "write_report"),
    "figures": ("report", "FiguresRequest", "draw_figures"),
    "track": ("runs", "TrackRequest", "track_run"),
}
# Those of other packages.
PROGRAMS: Registry[type[Request]] = Registry("program", group="boosters_eval.programs", fault=must_extend(Request))


def load_request(command: str) -> type[Request]:
    """The request of a command of this package, which is imported only now."""
    program, name, _ = COMMANDS[command]
    found: type[Request] = getattr(import_module(f"boosters_eval.programs.{program}.request"), name)
    return found
