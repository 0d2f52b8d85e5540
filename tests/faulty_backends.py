"""One small model in three languages, right and wrong: each wrong one has the name of what must be found of it."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import tempfile
from functools import cache
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from boosters_eval.datasets.generated import Stream
from boosters_eval.programs.parity.backend import ProcessBackend, PythonBackend
from boosters_eval.programs.parity.method import (
    Convention,
    Defect,
    GeneratedData,
    Generator,
    MethodSpec,
    Oracle,
    Size,
    Variant,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

SIZE = Size(60, 6)
STEP = 0.25  # where the model jumps
NAN = 0.5  # what a missing value counts as


class Points(Generator):
    """Noise; the last third of the rows lies on the model's step or next to it, and some values are missing."""

    name = "points"
    recipe = "1"

    @classmethod
    def generate(cls, method: MethodSpec, size: Size, seed: int, shared: dict[str, bytes]) -> GeneratedData:
        x = Stream(seed).noise(size.n * size.p).reshape(size.n, size.p)
        marked = np.arange(size.n) >= 2 * size.n // 3
        x[marked, 0] = STEP
        x[-6:-3, 0], x[-3:, 0] = np.nextafter(STEP, 1), np.nextafter(STEP, -1)
        x[3::7, 2] = np.nan
        return GeneratedData({"X": x, "marked": marked.astype(np.float64)})


def model(x: Numbers, parameters: Any = None) -> Numbers:
    """Weighted columns, and a step."""
    options = parameters or {}
    x = x[:, ::-1] if options.get("columns") == "reversed" else x
    count = x.shape[1] - int(options.get("leave_out", 0))
    filled = np.where(np.isnan(x), NAN, x)[:, :count]
    return np.asarray((filled / np.arange(1, count + 1)).sum(axis=1) + 3.0 * (x[:, 0] < STEP))


class Right(PythonBackend):
    """The reference."""

    name = "right"
    imports = ("numpy",)
    distributions = ("numpy",)
    install = "pip install numpy"
    own = True

    @classmethod
    def fit(cls, session: Any, prepared: Any) -> Any:
        return session.parameters

    @classmethod
    def predict(cls, session: Any, fitted: Any) -> Any:
        return model(session.arrays["X"], fitted)


def put(values: Numbers, where: Any, by: Any) -> Numbers:
    changed = values.copy()
    changed[where] = by
    return changed


def swap(values: Numbers) -> Numbers:
    return put(values, [3, 4], values[[4, 3]])


def noise(values: Numbers) -> Numbers:
    return values + Stream(1).noise(len(values))


PYTHON: dict[str, Callable[[Numbers], Numbers]] = {
    "rows_swapped": lambda x: swap(model(x)),
    "one_row_sign": lambda x: put(model(x), 5, -model(x)[5]),
    "one_row": lambda x: put(model(x), 5, model(x)[5] + 1),
    "block_shifted": lambda x: put(model(x), slice(20, 40), model(x)[20:40] + 0.01),
    "scaled": lambda x: 1.001 * model(x),
    "rows_sorted": lambda x: np.sort(model(x)),
    "output_float32": lambda x: model(x).astype(np.float32),
    "input_float32": lambda x: model(x.astype(np.float32).astype(np.float64)),
    "missing_as_zero": lambda x: model(np.where(np.isnan(x), 0, x)),
    "constant": lambda x: np.full(len(x), model(x).mean()) + 0 * x[:, 1],
    "unexplained": lambda x: noise(model(x)),
    "input_columns_swapped": lambda x: model(x[:, [1, 0, 2, 3, 4, 5]]),
    "column_above_zero": lambda x: np.where(x[:, 4] > 0.3, 0, model(x)),
    "missing_shifted": lambda x: model(x) + 0.1 * np.isnan(x).any(axis=1),
}
HARMLESS: dict[str, tuple[str, Callable[[Numbers], Numbers]]] = {
    "backwards": ("summation", lambda x: model_of(x, range(5, -1, -1))),
    "odd-first": ("summation", lambda x: model_of(x, (1, 3, 5, 0, 2, 4))),
    "exact-sum": ("summation", lambda x: np.array([fsum(row) for row in terms(x)])),
    "longer": ("summation", lambda x: terms(x).astype(np.longdouble).sum(axis=1).astype(np.float64)),
    "up": ("last_bits", lambda x: np.nextafter(model(x), np.inf)),
    "down": ("last_bits", lambda x: np.nextafter(model(x), -np.inf)),
    "some-up": ("last_bits", lambda x: put(model(x), 7, np.nextafter(model(x)[7], np.inf))),
    "many-parts": ("summation", lambda x: model(x) + 1e3 - 1e3),
    "there-and-back": ("summation", lambda x: np.log(np.exp(model(x) + 9)) - 9),
    "other-zero": ("", lambda x: model(x) + 0.0),
}


def terms(x: Numbers) -> Numbers:
    columns = np.where(np.isnan(x), NAN, x) / np.arange(1, 7)
    return np.column_stack([columns, 3.0 * (x[:, 0] < STEP)])


def model_of(x: Numbers, order: Any) -> Numbers:
    total = np.zeros(len(x))
    for column in order:
        total += terms(x)[:, column]
    return total + terms(x)[:, 6]


def backend(name: str, predict: Callable[[Numbers], Numbers]) -> type[PythonBackend]:
    def carry_out(_: Any, session: Any, fitted: Any) -> Any:
        return predict(session.arrays["X"])

    return type(name, (Right,), {"name": name, "predict": classmethod(carry_out), "__module__": __name__})


class Stale(Right):
    """Its first answer for ever."""

    name = "stale"
    first: ClassVar[Any] = None

    @classmethod
    def predict(cls, session: Any, fitted: Any) -> Any:
        if cls.first is None:
            cls.first = model(session.arrays["X"])
        return cls.first


class Lagging(Right):
    """The answer to the question before."""

    name = "lagging"
    last: ClassVar[Any] = None

    @classmethod
    def predict(cls, session: Any, fitted: Any) -> Any:
        found = model(session.arrays["X"])
        answer, cls.last = found if cls.last is None else cls.last, found
        return answer


class Backwards(Right):
    """It reads the columns from the last to the first, as it says."""

    name = "documented"

    @classmethod
    def predict(cls, session: Any, fitted: Any) -> Any:
        return model(session.arrays["X"][:, ::-1])


class Hiding(Right):
    """It hides a factor behind what it documents."""

    name = "hiding"

    @classmethod
    def predict(cls, session: Any, fitted: Any) -> Any:
        return 1.001 * model(session.arrays["X"][:, ::-1])


class Known(Right):
    """Somebody else's, which leaves out the last column, as is known."""

    name = "known"
    own = False

    @classmethod
    def predict(cls, session: Any, fitted: Any) -> Any:
        return model(session.arrays["X"], {"leave_out": 1})


PERL = r"""
$| = 1; my ($fault) = @ARGV; my @x;
while (my $line = <STDIN>) {
  my ($op) = $line =~ /"op": "(\w+)"/;
  if ($op eq "versions") { print "\@\@parity {\"versions\": {\"perl\": \"$^V\"}}\n"; next; }
  if ($op eq "load") {
    my ($file) = $line =~ /"x": "([^"]+)"/; open(my $in, "<", $file); @x = map { chomp; [split /,/] } <$in>;
  }
  if ($op eq "predict") {
    my @p = map {
      my @r = @$_; @r = reverse @r if $fault eq "input_columns_reversed"; my $s = $r[0] < 0.25 ? 3 : 0;
      for my $j (0 .. $#r) { $s += ($r[$j] =~ /nan/i ? 0.5 : $r[$j]) / ($j + 1); } $s
    } @x;
    @p = map { $_ + 0.125 } @p if $fault eq "shifted";
    @p = map { 2 * $_ - 1 } @p if $fault eq "affine";
    @p = reverse @p if $fault eq "rows_reversed";
    @p = (@p[1 .. $#p], $p[0]) if $fault eq "rows_shifted";
    @p = map { sprintf("%.3f", $_) } @p if $fault eq "output_decimals";
    my ($out) = $line =~ /"out": "([^"]+)"/; open(my $o, ">:raw", $out); print $o pack("d<*", @p); close($o);
    my $n = @p; print "\@\@parity {\"elapsed_s\": 0, \"rows\": $n, \"columns\": 1}\n"; next;
  }
  print "\@\@parity {\"elapsed_s\": 0}\n";
}
"""
IN_PERL = ("rows_reversed", "shifted", "affine", "input_columns_reversed", "rows_shifted", "output_decimals")


class Perl(ProcessBackend):
    """The same in Perl, as a program."""

    language = "perl"
    program = "perl"
    install = "apt-get install perl"
    fault: ClassVar[str]

    @classmethod
    def command(cls) -> tuple[str, ...]:
        return ("perl", "-e", PERL, cls.fault)


C = r"""
#include <math.h>
#include <string.h>
void predict(const double *x, int n, int p, const char *fault, double *out) {
  for (int i = 0; i < n; i++) {
    const double *r = x + i * p;
    int to = p - (strcmp(fault, "leave_out=1") == 0);
    double s = (strcmp(fault, "threshold_below") == 0 ? r[0] <= 0.25 : r[0] < 0.25) ? 3 : 0;
    float f = (float)s;
    for (int j = 0; j < to; j++) {
      double v = isnan(r[j]) ? (strcmp(fault, "missing_high") == 0 ? 1e30 : 0.5) : r[j];
      s += v / (j + 1); f += (float)v / (float)(j + 1);
    }
    if (strcmp(fault, "sign") == 0) s = -s;
    if (strcmp(fault, "link_logistic") == 0) s = 1 / (1 + exp(-s));
    if (strcmp(fault, "absolute") == 0) s = fabs(s);
    if (strcmp(fault, "every_nth_zero") == 0 && i % 10 == 4) s = 0;
    out[i] = strcmp(fault, "single_precision") == 0 ? f : s;
  }
}
"""
IN_C = (
    *("leave_out=1", "threshold_below", "missing_high", "sign", "link_logistic", "absolute", "every_nth_zero"),
    "single_precision",
)


@cache
def compile_c() -> Any:
    folder = Path(tempfile.mkdtemp())
    (folder / "model.c").write_text(C)
    library = folder / "model.so"
    subprocess.run(["gcc", "-O0", "-shared", "-fPIC", "-o", str(library), str(folder / "model.c"), "-lm"], check=True)
    return ctypes.CDLL(str(library)).predict


class InC(Right):
    """The same in C, in the cell's own process."""

    language = "c"
    fault: ClassVar[str]

    @classmethod
    def predict(cls, session: Any, fitted: Any) -> Any:
        x = np.ascontiguousarray(session.arrays["X"])
        out = np.empty(len(x))
        address = ctypes.POINTER(ctypes.c_double)
        compile_c()(
            x.ctypes.data_as(address), *map(ctypes.c_int, x.shape), cls.fault.encode(), out.ctypes.data_as(address)
        )
        return out


def _make(base: type, language: str, fault: str) -> Any:
    fields = {"name": f"{language}.{fault}", "fault": fault, "own": True, "__module__": __name__}
    return type(f"{language}_{fault.partition('=')[0]}", (base,), fields)


FAULTS = {name: backend(name, predict) for name, predict in PYTHON.items()}
FAULTS |= {f"perl.{fault}": _make(Perl, "perl", fault) for fault in IN_PERL}
FAULTS |= {f"c.{fault}": _make(InC, "c", fault) for fault in IN_C}
GOOD = {name: backend(name, predict) for name, (_, predict) in HARMLESS.items()}
GOOD |= {"perl.right": _make(Perl, "perl", "right"), "c.right": _make(InC, "c", "right")}
for made in (*FAULTS.values(), *GOOD.values()):  # a lane finds them by their names
    setattr(sys.modules[__name__], made.__name__, made)
ALL: tuple[Any, ...] = (Right, Stale, Lagging, Backwards, Hiding, Known, *FAULTS.values(), *GOOD.values())
METHOD = MethodSpec(
    name="weights",
    canonical="right",
    oracle=Oracle(backend="right", version=">=1"),
    backends=tuple(one.name for one in ALL),
    data="points",
    sizes=(SIZE,),
    tolerance=1e-12,
    binding_tolerance=1e-12,
    conventions=tuple(
        Convention(backend=name, sentence="It reads the columns backwards.", changes={"columns": "reversed"})
        for name in ("documented", "hiding", "scaled", "one_row_sign", "block_shifted")
    ),
    defects=(
        Defect(
            backend="known",
            sentence="It leaves out the last column.",
            changes={"leave_out": 1},
            reference="https://example.org/7",
        ),
        Defect(backend="c.leave_out=1", sentence="So does mine.", changes={"leave_out": 1}, reference="mine.md"),
    ),
    probes=(Variant(sentence="agrees without the last column", changes={"leave_out": 1}),),
)
