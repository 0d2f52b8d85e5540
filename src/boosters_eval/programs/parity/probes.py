"""Faults of the input that a divergence may come from: what the reference predicts from data that are changed so."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from boosters_eval.core.files import write_atomically
from boosters_eval.programs.parity.method import SHARED, read_arrays, to_csv

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    InputRows = NDArray[np.float64]

MOST_NUMBERS = 200_000  # of an input: larger ones take longer to write than they tell


def _round_to(kind: type[np.floating]) -> Callable[[InputRows], InputRows]:
    return lambda x: x.astype(kind).astype(np.float64)


def _step(kind: type[np.floating], to: float) -> Callable[[InputRows], InputRows]:
    return lambda x: np.nextafter(x.astype(kind), kind(to)).astype(np.float64)


def _replace_missing(by: float) -> Callable[[InputRows], InputRows]:
    return lambda x: np.where(np.isnan(x), by, x)


def _by_name(x: InputRows) -> InputRows:
    """The columns as text would be sorted: 0, 1, 10, 11, 2."""
    return x[:, sorted(range(x.shape[1]), key=str)]


def _swap_first(x: InputRows) -> InputRows:
    return x[:, [1, 0, *range(2, x.shape[1])]] if x.shape[1] > 1 else x


def _scale(x: InputRows) -> InputRows:
    spread = x.std(axis=0, ddof=1)
    return x / np.where(spread > 0, spread, 1)


# What is told of a prediction that is the reference's for the changed input. The first that fits is told.
INPUT_PROBES: dict[str, tuple[str, Callable[[InputRows], InputRows]]] = {
    "input_float32": ("agrees after rounding the inputs to float32", _round_to(np.float32)),
    "input_float16": ("agrees after rounding the inputs to float16", _round_to(np.float16)),
    "missing_as_zero": ("agrees if missing values are taken for 0", _replace_missing(0.0)),
    "missing_low": ("agrees if missing values are below every threshold", _replace_missing(-1e30)),
    "missing_high": ("agrees if missing values are above every threshold", _replace_missing(1e30)),
    "zero_as_missing": ("agrees if 0 is taken for a missing value", lambda x: np.where(x == 0, np.nan, x)),
    "threshold_above": (
        "agrees if every input is the next larger number: a value on a threshold goes the other way",
        _step(np.float64, np.inf),
    ),
    "threshold_below": (
        "agrees if every input is the next smaller number: a value on a threshold goes the other way",
        _step(np.float64, -np.inf),
    ),
    "threshold_above_float32": (
        "agrees if every input is the next larger float32: a value on a threshold goes the other way",
        _step(np.float32, np.inf),
    ),
    "threshold_below_float32": (
        "agrees if every input is the next smaller float32: a value on a threshold goes the other way",
        _step(np.float32, -np.inf),
    ),
    "input_columns_reversed": ("agrees if the columns of the input are reversed", lambda x: x[:, ::-1]),
    "input_columns_rotated": ("agrees if the columns of the input are shifted by one", lambda x: np.roll(x, 1, axis=1)),
    "input_columns_rotated_back": (
        "agrees if the columns of the input are shifted back by one",
        lambda x: np.roll(x, -1, axis=1),
    ),
    "input_columns_by_name": ("agrees if the columns of the input are sorted as text: 0, 1, 10, 2", _by_name),
    "input_columns_swapped": ("agrees if the first two columns of the input are swapped", _swap_first),
    "input_scaled": ("agrees if the columns of the input are scaled to unit variance", _scale),
    "input_standardized": (
        "agrees if the columns of the input are centered and scaled to unit variance",
        lambda x: _scale(x - x.mean(axis=0)),
    ),
    "input_rows_reversed": ("agrees if the rows of the input are reversed", lambda x: x[::-1]),
}


def change_inputs(x: InputRows) -> Iterator[tuple[str, InputRows]]:
    """The inputs that differ from what they are made of, by the name of the fault."""
    if x.ndim != 2 or x.size > MOST_NUMBERS:
        return
    for name, (_, change) in INPUT_PROBES.items():
        with np.errstate(all="ignore"):
            changed = change(x)
        if not np.array_equal(changed, x, equal_nan=True):
            yield name, changed


@contextmanager
def lay_out_inputs(place: Path, x: InputRows) -> Iterator[Path]:
    """A folder as that of a seed, with another input."""
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root) / place.name
        shutil.copytree(place, folder)
        write_atomically(folder / "X.csv", to_csv(x))
        (Path(root) / SHARED).symlink_to((place.parent / SHARED).absolute(), target_is_directory=True)
        yield folder


def read_input(place: Path) -> InputRows | None:
    return read_arrays(place).get("X")
