"""Numbers that are written as text: currencies, percents, separated thousands, decimal commas."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

# The marks of decimals and of thousands, the likeliest first: of two that fit equally well the first is taken.
NOTATIONS: tuple[tuple[str, str | None], ...] = (
    (".", None),
    (".", ","),
    (",", None),
    (",", "."),
    (".", " "),
    (",", " "),
    (".", "'"),
)
LOOKED_AT = 2000  # distinct texts by which the notation is chosen
_CURRENCY = r"[$€£¥₹]|USD|EUR|GBP|CHF|JPY"
_SPACES = "\u00a0\u202f\u2009"  # not to be broken, narrow, thin: all separate thousands somewhere
_AFFIXES = re.compile(rf"(?P<sign>[-+]?)\s*(?:{_CURRENCY})?\s*(?P<core>.*?)\s*(?P<unit>%|{_CURRENCY})?", re.DOTALL)


@dataclass(frozen=True)
class Numerals:
    """The values of a column, NaN where there is no number, and how they were written."""

    numbers: NDArray[np.float64]
    notation: str  # such as "',' separates thousands, '$' is left out"
    read: int  # texts that are numbers
    plain: int  # those among them that need no reading of their own


def parse_numerals(column: pd.Series[Any], decimal: str | None = None, thousands: str | None = None) -> Numerals:
    """The texts of a column as numbers, in the one notation that most of them have."""
    import pandas as pd  # noqa: PLC0415 (a column is here, so pandas is loaded)

    codes, distinct = pd.factorize(column)
    texts = [str(value).strip() for value in distinct]
    weights = np.bincount(codes[codes >= 0], minlength=len(texts))
    plain = np.isfinite(pd.to_numeric(pd.Series(texts, dtype=object), errors="coerce").to_numpy(dtype=np.float64))
    cores, marks = zip(*map(_core, texts), strict=True) if texts else ((), ())
    fitting = [n for n in NOTATIONS if decimal in (None, n[0]) and (thousands is None or n[1] == thousands)]
    fitting = fitting or [(decimal or ("," if thousands == "." else "."), thousands)]
    mark, group = max(fitting, key=lambda notation: int((~np.isnan(_values(cores[:LOOKED_AT], notation))).sum()))
    values = _values(cores, (mark, group))
    read = ~np.isnan(values)
    used = {char for core, good in zip(cores, read, strict=True) if good for char in core}
    told = [f"'{group}' separates thousands"] if group and group in used else []
    told += ["',' is the decimal mark"] if mark == "," and "," in used else []
    left_out = sorted({each for found, good in zip(marks, read, strict=True) if good for each in found})
    told += [f"{' and '.join(map(repr, left_out))} left out"] if left_out else []
    every = np.append(values, np.nan)[codes]
    return Numerals(every, ", ".join(told), int(weights[read].sum()), int(weights[plain].sum()))


def _core(text: str) -> tuple[str, tuple[str, ...]]:
    """The digits and their separators, and the signs around them that are left out."""
    found = _AFFIXES.fullmatch(text)
    if found is None:  # never: everything in it is optional
        return text, ()
    core = found["sign"] + found["core"].translate(dict.fromkeys(map(ord, _SPACES), " "))
    outside = text[: found.start("core")] + text[found.end("core") :]
    return core, tuple(re.findall(rf"%|{_CURRENCY}", outside))


def _values(cores: tuple[str, ...], notation: tuple[str, str | None]) -> NDArray[np.float64]:
    decimal, thousands = notation
    whole = r"\d+" if thousands is None else rf"(?:\d{{1,3}}(?:{re.escape(thousands)}\d{{3}})+|\d+)"
    mark = re.escape(decimal)
    pattern = re.compile(rf"[-+]?(?:{whole}(?:{mark}\d*)?|{mark}\d+)(?:[eE][-+]?\d+)?", re.ASCII)
    out = np.full(len(cores), np.nan)
    for position, core in enumerate(cores):
        if pattern.fullmatch(core):
            digits = core if thousands is None else core.replace(thousands, "")
            out[position] = float(digits.replace(decimal, "."))
    return np.where(np.isinf(out), np.nan, out)
