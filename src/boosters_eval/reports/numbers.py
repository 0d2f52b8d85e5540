"""How numbers are formatted. This is the only place that writes "mean ± std"."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from boosters_eval.core.text import lower_initial

if TYPE_CHECKING:
    from collections.abc import Sequence

MISSING = "\u2013"
_LONE_DIGITS = 4  # for a number whose uncertainty is unknown
_EXACT_DIGITS = 6  # for a number that did not vary at all
_ROUNDING = 1e-12  # of the mean: variation below it is that of the last bits, and its digits say nothing
_FACTOR = 1e4  # percent from which a change is written as a factor
_MOST_POWER = 1024  # of 2, from which a standard deviation may be too large for a float
_EXACT_WHOLE = 1e15  # below it, a whole number is written with all its digits
_SMALL, _LARGE = 1e-4, 1e7  # beyond these a number is written with an exponent


def mean_and_std(values: Sequence[float]) -> tuple[float | None, float | None]:
    """Mean and standard deviation (ddof 1); None if there are too few values."""
    if not values:
        return None, None
    if not all(map(math.isfinite, values)):
        return math.nan, None
    if len(values) == 1:
        return values[0], None
    if min(values) == max(values):  # the mean's own rounding must not look like variation
        return values[0], 0.0
    _, power = math.frexp(max(map(abs, values)))  # of the largest numbers, neither squares nor sums are numbers
    scaled = [math.ldexp(value, -power) for value in values]
    mean = math.fsum(scaled) / len(scaled)
    std = math.sqrt(math.fsum((value - mean) ** 2 for value in scaled) / (len(scaled) - 1))
    return math.ldexp(mean, power), math.ldexp(std, power) if power < _MOST_POWER else None


def estimate(mean: float | None, std: float | None) -> str:
    """A mean to the precision of its standard deviation, which is given to two digits."""
    if mean is None:
        return MISSING
    if not math.isfinite(mean):
        return "not finite"
    if std is None:
        return number(mean)
    size = max(abs(mean), std)
    scale = _exponent(size, 3) if size and not _SMALL <= size < _LARGE else 0
    mean, std = _scaled(mean, scale), _scaled(std, scale)
    if std < _ROUNDING * abs(mean) or std == 0:
        text = f"{_significant(mean, _EXACT_DIGITS)} ± {f'{std:.0e}' if std else '0'}"
    else:
        decimals = 1 - _exponent(std, 2)
        text = f"{_fixed(mean, decimals)} ± {_fixed(std, decimals)}"
    return f"({text})e{scale:+03d}" if scale else text


def number(value: float, digits: int = _LONE_DIGITS) -> str:
    """A number whose uncertainty is not known."""
    size = abs(value)
    if size and not _SMALL <= size < _LARGE:
        return f"{value:.{digits - 1}e}"
    return _significant(value, digits)


def as_given(value: float) -> str:
    """A value of the data, with the digits by which it is recognized there: whole, or to single precision."""
    return str(round(value)) if value.is_integer() and abs(value) < _EXACT_WHOLE else f"{value:.7g}"


def percent(share: float, *, sign: bool = True) -> str:
    """A relative change such as "+2.6 %"; a hundredfold change or more is written as a factor."""
    size = abs(share) * 100
    if size >= _FACTOR:
        return f"x {number(1 + share, 2)}"
    return f"{share * 100:{'+' if sign else ''}.{0 if size >= 100 else 1 if size >= 1 else 2}f} %"


def name_error(label: str, best: float, before: str = "") -> str:
    """What a metric that is best at 1 lacks, "1 minus R²" in signs; nothing where the metric is itself an error."""
    return f"{before}{best:g} \N{MINUS SIGN} {lower_initial(label)}" if best else ""


def percent_change(change: float | None) -> str:
    """A change in percent; one too small for two decimals is not written as none."""
    if change is None:
        return MISSING
    if not change:
        return "0 %"
    return f"{change:+.1e} %" if abs(change) < 0.005 else percent(change / 100)


def tell_apart(before: float, after: float) -> tuple[str, str]:
    """Two numbers with as many digits as it takes to tell them apart, four at least."""
    for digits in range(4, 17):
        shown = number(before, digits), number(after, digits)
        if shown[0] != shown[1]:
            return shown
    return number(before, 17), number(after, 17)


def p_value(p: float) -> str:
    """A p-value; below 0.001 no digits are given."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _scaled(value: float, scale: int) -> float:
    """Divided by a power of ten, in two steps: the power of the smallest numbers is no number itself."""
    return value / 10.0 ** (scale // 2) / 10.0 ** (scale - scale // 2)


def _exponent(value: float, digits: int) -> int:
    """The power of ten of the leading digit, after rounding to `digits`."""
    return int(f"{value:.{digits - 1}e}".partition("e")[2])


def _fixed(value: float, decimals: int) -> str:
    rounded = round(value, decimals)
    return f"{rounded + 0.0:.{max(decimals, 0)}f}"  # + 0.0: no "-0"


def _significant(value: float, digits: int) -> str:
    if value == 0:
        return "0"
    return _fixed(value, digits - 1 - _exponent(abs(value), digits))
