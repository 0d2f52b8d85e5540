"""Backends and data for tests: one that is right, and one for every way to be wrong."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any, ClassVar

import numpy as np

from boosters_eval.datasets.generated import Stream
from boosters_eval.programs.parity.backend import PythonBackend
from boosters_eval.programs.parity.binding import RefusedError
from boosters_eval.programs.parity.method import GeneratedData, Generator, MethodSpec, Oracle, Size


class Rows(Generator):
    """A few columns of noise."""

    name = "rows"
    recipe = "1"

    @classmethod
    def missing(cls, method: MethodSpec) -> str | None:
        return None

    @classmethod
    def generate(cls, method: MethodSpec, size: Size, seed: int, shared: dict[str, bytes]) -> GeneratedData:
        return GeneratedData({"X": Stream(seed).noise(size.n * size.p).reshape(size.n, size.p)})


class Sums(PythonBackend):
    """The sum of each row: the reference."""

    name = "sums"
    imports = ("numpy",)
    distributions = ("numpy",)
    install = "pip install numpy"
    own: ClassVar[bool] = True

    @classmethod
    def fit(cls, session: Any, prepared: Any) -> Any:
        return prepared["X"]

    @classmethod
    def predict(cls, session: Any, fitted: Any) -> Any:
        return fitted.sum(axis=1) * session.parameters.get("factor", 1)


class Close(Sums):
    """Off by a rounding."""

    name = "close"

    @classmethod
    def predict(cls, session: Any, fitted: Any) -> Any:
        return fitted.sum(axis=1) * (1 + 1e-14)


class Wrong(Sums):
    """Somewhere else entirely, and somebody else's."""

    name = "wrong"
    own = False

    @classmethod
    def predict(cls, session: Any, fitted: Any) -> Any:
        return fitted.sum(axis=1) + 1


class Scaled(Wrong):
    """Twice as much, by convention."""

    name = "scaled"

    @classmethod
    def predict(cls, session: Any, fitted: Any) -> Any:
        return 2 * fitted.sum(axis=1)


class OwnScaled(Sums):
    """A binding of the project's own that doubles."""

    name = "own-scaled"

    @classmethod
    def predict(cls, session: Any, fitted: Any) -> Any:
        return 2 * fitted.sum(axis=1)


class Absent(Sums):
    """Not installed."""

    name = "absent"
    imports = ("no_such_module_at_all",)
    own = False


class Segfault(Wrong):
    name = "segfault"

    @classmethod
    def fit(cls, session: Any, prepared: Any) -> Any:
        os.write(2, b"free():\ninvalid pointer\n")
        os.kill(os.getpid(), signal.SIGSEGV)


class Hang(Wrong):
    name = "hang"

    @classmethod
    def fit(cls, session: Any, prepared: Any) -> Any:
        time.sleep(600)


class Garbage(Wrong):
    """Prints as much as it likes; its answer is right."""

    name = "garbage"

    @classmethod
    def predict(cls, session: Any, fitted: Any) -> Any:
        sys.stdout.write('{"result": 1}\n' * 1000)
        os.write(1, b"\x00\xff result {}\n" * 1000)
        return fitted.sum(axis=1)


class NotANumber(Wrong):
    name = "nan"

    @classmethod
    def predict(cls, session: Any, fitted: Any) -> Any:
        return np.where(np.arange(len(fitted)) == 3, np.nan, fitted.sum(axis=1))


class TooShort(Wrong):
    name = "short"

    @classmethod
    def predict(cls, session: Any, fitted: Any) -> Any:
        return fitted.sum(axis=1)[:-1]


class Column(Wrong):
    """The right numbers in another shape."""

    name = "column"

    @classmethod
    def predict(cls, session: Any, fitted: Any) -> Any:
        return fitted.sum(axis=1)[:, None]


class Scalar(Wrong):
    """One number, without rows."""

    name = "scalar"

    @classmethod
    def predict(cls, session: Any, fitted: Any) -> Any:
        return 3.0


class ShortLater(Wrong):
    """Loses a row from the third run on."""

    name = "short-later"
    runs: ClassVar[int] = 0

    @classmethod
    def predict(cls, session: Any, fitted: Any) -> Any:
        cls.runs += 1
        return fitted.sum(axis=1)[: -1 if cls.runs > 2 else None]


class Unknowing(Wrong):
    """Cannot even tell its version."""

    name = "unknowing"

    @classmethod
    def versions(cls) -> dict[str, str]:
        raise OSError("libsum.so: cannot open")


class NoSumsError(RefusedError):
    """A refusal of a kind of its own."""


class Refuses(Wrong):
    name = "refuses"

    @classmethod
    def fit(cls, session: Any, prepared: Any) -> Any:
        raise NoSumsError("It does not do sums.")


class Timeout(Exception):  # noqa: N818 (some libraries call theirs so)
    """An error that has the name of a status."""


class LosesConnection(Wrong):
    name = "connection"

    @classmethod
    def fit(cls, session: Any, prepared: Any) -> Any:
        raise Timeout("no answer")


class HalfWay(Wrong):
    """Dies in a later run, when part of the work is done."""

    name = "half-way"
    runs: ClassVar[int] = 0

    @classmethod
    def fit(cls, session: Any, prepared: Any) -> Any:
        cls.runs += 1
        if cls.runs == 3:
            os._exit(0)
        return prepared["X"]


BAD = (
    *(Segfault, Hang, Garbage, NotANumber, TooShort, Column, Refuses, LosesConnection, HalfWay),
    *(Scalar, ShortLater, Unknowing),
)
GOOD = (Close, Wrong, Scaled, OwnScaled, Absent)
ALL = (Sums, *GOOD, *BAD)


def method(*backends: type[PythonBackend], **changes: Any) -> MethodSpec:
    """A method of the sums, with these backends beside its reference."""
    names = ("sums", *(backend.name for backend in backends if backend is not Sums))
    given = {"name": "sum", "canonical": "sums", "data": "rows", "sizes": (Size(20, 3),), "tolerance": 1e-12}
    return MethodSpec(**{**given, "backends": names, "oracle": Oracle(backend="sums", version=">=1"), **changes})
