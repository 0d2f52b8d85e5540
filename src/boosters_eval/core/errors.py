"""The exception types, each with the exit code that the command line gives for it."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections import Counter
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Self, TypeVar

from boosters_eval.core.terms import the

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

T = TypeVar("T")


class ExitCode(IntEnum):
    """What the process says to its caller."""

    SUCCESS = 0
    REGRESSION = 1
    EXECUTION_ERROR = 2
    CONFIGURATION_ERROR = 3
    INTERRUPTED = 130


class BoostersEvalError(Exception):
    """Base of every error that a user can act on: one sentence, no traceback."""

    exit_code = ExitCode.EXECUTION_ERROR
    _lines: Sequence[str] = ()

    @property
    def lines(self) -> list[str]:
        return list(self._lines) or [str(self)]


class BoostersEvalWarning(UserWarning):
    """Something that a user should know, although the work goes on: one sentence."""


class ConfigError(BoostersEvalError, ValueError):
    """The user asked for something that is not valid; a ValueError, as Python users expect of a bad argument."""

    exit_code = ExitCode.CONFIGURATION_ERROR


_LISTED = 12  # names; of more than twice as many, only so many are listed
_LISTS = {"data set": "datasets --all", "library": "libraries", "metric": "metrics", "suite": "suites"}


class UnknownNameError(ConfigError):
    """A name that nothing is registered under."""

    def __init__(self, kind: str, got: object, valid: Iterable[str]) -> None:
        names = sorted(valid)
        known = ", ".join(names) or "none"
        if len(names) > 2 * _LISTED:
            where = f"; 'boosters-eval list {_LISTS[kind]}' lists them all" if kind in _LISTS else ""
            known = f"{', '.join(names[:_LISTED])} and {len(names) - _LISTED} others{where}"
        super().__init__(f"Unknown {kind} '{got}'.{suggest(str(got), names)} Known: {known}.")


class MetricInputError(ConfigError):
    """Predictions, labels or weights that have no meaningful score."""


class FileFormatError(ConfigError):
    """A file that is not what it should be: truncated, foreign, or of another format."""


class OtherVersionError(FileFormatError):
    """A file of the right kind that another version of boosters-eval wrote."""


class MissingLibraryError(BoostersEvalError):
    """A library under test, or an optional helper, that is not installed."""


class UnsupportedError(BoostersEvalError):
    """No library can do what was asked, so nothing would run."""


class DatasetError(BoostersEvalError):
    """A data set that could not be loaded, fetched or split."""


class DataFileError(ConfigError, DatasetError):
    """A file or data frame of the user that cannot be used as it is: each problem, with the option that acts on it."""

    def __init__(self, sentence: str, problems: Iterable[str] = ()) -> None:
        self.sentence, self.problems = sentence, tuple(problems)  # if there are several
        self._lines = [sentence, *(f"  - {problem}" for problem in self.problems)]
        super().__init__("\n".join(self._lines))


class BuildError(BoostersEvalError):
    """A build of a library that cannot be installed or imported: one sentence, and what its installer said last."""

    def __init__(self, sentence: str, said: Iterable[str] = ()) -> None:
        self.sentence, self.said = sentence, tuple(said)
        self._lines = [sentence, *(f"  {line}" for line in self.said)]
        super().__init__("\n".join(self._lines))


class BuildImportError(BuildError):
    """A build that is installed and cannot be imported: it may need other versions of what it is installed beside."""


class Interruption(BoostersEvalError):  # noqa: N818 (nothing went wrong)
    """The user ended a command that has a word to say about it; it is told as it is."""

    exit_code = ExitCode.INTERRUPTED


class RunError(BoostersEvalError):
    """The run could not go on: a locked or damaged journal, a disk that is full."""


class InterruptedRunError(KeyboardInterrupt):
    """A run was interrupted: its finished cells are kept, so that it can be continued."""


_WORDLESS: dict[type[BaseException], str] = {
    MemoryError: "there is not enough memory",
    AssertionError: "an assertion failed",
    NotImplementedError: "it is not implemented",
    TimeoutError: "it took too long",
}


def get_reason(error: BaseException) -> str:
    """What an exception says, in words of our own if it says nothing or fails to say it."""
    try:
        said = str(error)
    except Exception:  # noqa: BLE001 (anybody's class)
        said = ""
    return said if said.strip(" .") else _WORDLESS.get(type(error), "it gives no reason")


def describe_error(error: BaseException) -> str:
    """The kind of an exception, and its reason."""
    return f"{type(error).__name__}: {get_reason(error)}"


def require(name: str, value: object, kinds: type | tuple[type, ...], accepts: str) -> None:
    """Refuse an argument of the wrong Python type in the usual sentence. A bool is no number."""
    wanted = kinds if isinstance(kinds, tuple) else (kinds,)
    if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted):
        raise ConfigError(f"{the(name)} must be {accepts}. Got {value!r} instead.")


def find_doubled(names: Iterable[T]) -> list[T]:
    """What is there more than once, in the time of one look: a file may have a million names."""
    return [name for name, count in Counter(names).items() if count > 1]


def suggest(got: str, valid: Iterable[str]) -> str:
    """A sentence with the nearest valid name, or nothing."""
    folded = {fold(name): name for name in valid}
    close = difflib.get_close_matches(fold(got), list(folded), n=1, cutoff=0.6)
    return f" Did you mean '{folded[close[0]]}'?" if close else ""


def match(got: str, valid: Iterable[str]) -> str | None:
    """The valid name that is meant: as it is, or else the only one that differs by case and separators alone."""
    names = list(valid)
    alike = [got] if got in names else [name for name in names if fold(name) == fold(got)]
    return alike[0] if len(alike) == 1 else None


def pick(kind: str, got: str, valid: Iterable[str]) -> str:
    """The valid name that is meant; any other is refused."""
    names = list(dict.fromkeys(valid))
    meant = match(got, names)
    if meant is None:
        raise UnknownNameError(kind, got, names)
    return meant


def fold(name: str) -> str:
    """A name without case, spaces, '_' and '-': RSquared is r_squared, XGBoost xgboost, and R² r2."""
    return re.sub(r"[\s_-]", "", unicodedata.normalize("NFKC", name).casefold())


class Choice(Enum):
    """Members that are known by their value, however it is spelled: LEAFWISE and Leaf-wise are leafwise."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        meant = match(value, (str(member.value) for member in cls)) if isinstance(value, str) else None
        return None if meant is None else cls(meant)
