"""The tables that come with the package, put together from their compact files."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from boosters_eval.datasets.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray


def load(name: str) -> Table:
    """A bundled table by its name."""
    resource = files("boosters_eval.datasets") / "bundled" / f"{name}.npz"
    with resource.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        columns = {key: stored[key] for key in stored.files}
    return _BUILDERS.get(name, _plain)(columns)


def _texts(values: NDArray[Any]) -> list[str]:
    return [str(value) for value in values]


def _stack(columns: Sequence[NDArray[Any]]) -> NDArray[np.float32]:
    return np.stack([np.asarray(column, dtype=np.float64) for column in columns], axis=1).astype(np.float32)


def _plain(columns: Mapping[str, NDArray[Any]]) -> Table:
    return Table(
        columns["x"].astype(np.float32),
        columns["y"].astype(np.float64),
        feature_names=tuple(_texts(columns["names"])),
    )


def _california(columns: Mapping[str, NDArray[Any]]) -> Table:
    households = columns["households"].astype(np.float64)
    named = {
        "MedInc": columns["MedInc"] / 1e4,
        "HouseAge": columns["HouseAge"],
        "AveRooms": columns["rooms"] / households,
        "AveBedrms": columns["bedrooms"] / households,
        "Population": columns["Population"],
        "AveOccup": columns["Population"] / households,
        "Latitude": columns["Latitude"] / 100,
        "Longitude": columns["Longitude"] / 100,
    }
    return Table(_stack(list(named.values())), columns["value"] / 1e5, feature_names=tuple(named))


def _adult(columns: Mapping[str, NDArray[Any]]) -> Table:
    names = _texts(columns["columns"])
    categories = {name: _texts(columns[f"{name}.names"]) for name in names if f"{name}.names" in columns}
    values = [np.where(columns[n] < 0, np.nan, columns[n]) if n in categories else columns[n] for n in names]
    return Table(
        _stack(values),
        columns["y"].astype(np.float64),
        sensitive=columns["gender"].astype(np.int64),
        categorical=tuple(names.index(name) for name in categories),
        feature_names=tuple(names),
        category_names=categories,
        split=columns["split"].astype(np.int8),
    )


def _diamonds(columns: Mapping[str, NDArray[Any]]) -> Table:
    scales = {"carat": 100, "cut": 1, "color": 1, "clarity": 1, "depth": 10, "table": 10, "x": 100, "y": 100, "z": 100}
    names = list(scales)
    categories = {name: _texts(columns[f"{name}.names"]) for name in ("cut", "color", "clarity")}
    return Table(
        _stack([columns[name] / scale for name, scale in scales.items()]),
        columns["price"].astype(np.float64),
        categorical=tuple(names.index(name) for name in categories),
        feature_names=tuple(names),
        category_names=categories,
    )


def _covertype(columns: Mapping[str, NDArray[Any]]) -> Table:
    names = _texts(columns["columns"])
    wilderness = [columns["wilderness"] == area for area in range(4)]
    soil = [columns["soil"] == kind for kind in range(40)]
    names_of_flags = [f"Wilderness_Area{i}" for i in range(1, 5)] + [f"Soil_Type{i}" for i in range(1, 41)]
    return Table(
        _stack([*(columns[name] for name in names), *wilderness, *soil]),
        columns["y"].astype(np.float64),
        feature_names=(*names, *names_of_flags),
    )


_BUILDERS = {"california": _california, "adult": _adult, "diamonds": _diamonds, "covertype_50k": _covertype}
