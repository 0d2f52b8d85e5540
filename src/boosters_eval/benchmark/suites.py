"""The built-in suites, and how users create, register and vary their own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from boosters_eval.benchmark.config import BenchmarkConfig, BenchmarkSuite
from boosters_eval.core.errors import ConfigError, suggest
from boosters_eval.core.modules import named_in
from boosters_eval.core.registry import Registry
from boosters_eval.datasets.catalog import BUILTIN, DATASETS
from boosters_eval.runners.parameters import BoosterType, GrowthStrategy, TrainingConfig

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from boosters_eval.datasets.config import DatasetConfig

ALL_LIBRARIES = ("boosters", "xgboost", "lightgbm", "catboost", "sklearn")
# Which libraries have which booster at all; other limitations are found when the plan is made.
LIBRARIES = {
    BoosterType.GBDT: ALL_LIBRARIES,
    BoosterType.GBLINEAR: ("boosters", "xgboost"),
    BoosterType.LINEAR_TREES: ("boosters", "lightgbm"),
}
QUICK_DATASETS = ("california", "breast_cancer")
FULL_DATASETS = (
    *("california", "synthetic_reg_small", "synthetic_reg_medium"),
    *("breast_cancer", "synthetic_bin_small", "synthetic_bin_medium"),
    *("iris", "synthetic_multi_small", "synthetic_multi_medium"),
)


def _plain(
    dataset: str,
    training: TrainingConfig,
    libraries: Sequence[str],
    booster: BoosterType = BoosterType.GBDT,
) -> BenchmarkConfig:
    config = BUILTIN[dataset]
    return BenchmarkConfig(
        name=f"{dataset}/{booster.value}",
        dataset=config,
        task=config.task,
        booster_type=booster,
        training=training,
        libraries=tuple(libraries),
    )


def create_ablation_suite(
    name: str,
    dataset: str | DatasetConfig,
    library: str,
    variants: Mapping[str, TrainingConfig],
    *,
    booster_type: BoosterType = BoosterType.GBDT,
    seeds: int = 5,
    description: str = "",
) -> BenchmarkSuite:
    """Compare a library with itself: each variant is a separate config, and a separate row in every table."""
    if not variants:
        raise ConfigError("The 'variants' parameter of create_ablation_suite must name at least one variant.")
    data = DATASETS[dataset] if isinstance(dataset, str) else dataset
    configs = tuple(
        BenchmarkConfig(
            name=f"{data.name}/{library}-{variant}",
            dataset=data,
            task=data.task,
            booster_type=booster_type,
            training=training,
            libraries=(library,),
            variant=variant,
        )
        for variant, training in variants.items()
    )
    return BenchmarkSuite(name=name, configs=configs, default_seeds=seeds, description=description)


_REDUCED = TrainingConfig(n_estimators=50, max_depth=4)
_USUAL = TrainingConfig(n_estimators=100, max_depth=6)
# The l2 of a linear model is multiplied by the number of rows; at 1 the model would learn almost nothing.
_LINEAR = _USUAL.replace(l2=0.0)
_LEAFWISE = TrainingConfig(n_estimators=100, growth_strategy=GrowthStrategy.LEAFWISE, n_leaves=31)

MINIMAL_SUITE = BenchmarkSuite(
    name="minimal",
    configs=tuple(_plain(name, _REDUCED, ("boosters",)) for name in QUICK_DATASETS),
    default_seeds=1,
    description="a smoke test: boosters alone",
)
QUICK_SUITE = BenchmarkSuite(
    name="quick",
    configs=tuple(_plain(name, _REDUCED, ALL_LIBRARIES) for name in QUICK_DATASETS),
    default_seeds=3,
    description="a check during development: 50 trees of depth 4",
)
FULL_SUITE = BenchmarkSuite(
    name="full",
    configs=tuple(
        _plain(name, _LINEAR if booster is BoosterType.GBLINEAR else _USUAL, libraries, booster)
        for name in FULL_DATASETS
        for booster, libraries in LIBRARIES.items()
    ),
    default_seeds=5,
    description="a check before a release: nine data sets, every booster, 100 trees of depth 6",
)
COMPARISON_DEPTHWISE = BenchmarkSuite(
    name="comparison-depthwise",
    configs=tuple(_plain(name, _USUAL, ALL_LIBRARIES) for name in FULL_DATASETS),
    description="all libraries, trees grown level by level",
)
COMPARISON_LEAFWISE = BenchmarkSuite(
    name="comparison-leafwise",
    configs=tuple(_plain(name, _LEAFWISE, ALL_LIBRARIES) for name in FULL_DATASETS),
    description="all libraries, trees grown best leaf first, 31 leaves",
)
ABLATION_GROWTH_SUITE = create_ablation_suite(
    "ablation-growth",
    BUILTIN["california"],
    "boosters",
    {"depthwise": TrainingConfig(), "leafwise": TrainingConfig(growth_strategy=GrowthStrategy.LEAFWISE)},
    description="boosters: depth-wise against leaf-wise trees",
)
ABLATION_THREADING = create_ablation_suite(
    "ablation-threading",
    BUILTIN["california"],
    "boosters",
    {
        "single": TrainingConfig(n_threads=1),
        "multi-4": TrainingConfig(n_threads=4),
        "multi-auto": TrainingConfig(n_threads=-1),
    },
    description="boosters: one, four and all threads (never more than there are cores)",
)


def _builtin() -> dict[str, BenchmarkSuite]:
    suites = (
        *(MINIMAL_SUITE, QUICK_SUITE, FULL_SUITE, COMPARISON_DEPTHWISE, COMPARISON_LEAFWISE),
        *(ABLATION_GROWTH_SUITE, ABLATION_THREADING),
    )
    return {suite.name: suite for suite in suites}


SUITES: Registry[BenchmarkSuite] = Registry(
    "suite",
    group="boosters_eval.suites",
    builtin=_builtin,
    accepts=lambda item: isinstance(item, BenchmarkSuite),
)


def register_suite(suite: BenchmarkSuite, *, replace: bool = False) -> BenchmarkSuite:
    """Register a suite under its name, in this process."""
    return SUITES.register(suite.name, suite, replace=replace)


def resolve_suite(suite: str | BenchmarkSuite) -> BenchmarkSuite:
    """A suite by name, or from a Python file: `path/to/my_suite.py:SUITE`."""
    if isinstance(suite, BenchmarkSuite):
        return suite
    path, _, attribute = suite.partition(".py:")
    if suite.endswith(".py"):
        path, attribute = suite.removesuffix(".py"), "SUITE"
    if not attribute:
        return SUITES[suite]
    file = Path(path + ".py")
    found = named_in(file.resolve(), attribute, "suite")
    if not isinstance(found, BenchmarkSuite):
        got = type(found).__name__
        raise ConfigError(f"'{attribute}' in {file} must be a BenchmarkSuite. Got {got} instead.")
    return found


ALIASES = {
    "bins": "max_bins",
    "depth": "max_depth",
    "growth": "growth_strategy",
    "leaves": "n_leaves",
    "lr": "learning_rate",
    "threads": "n_threads",
    "trees": "n_estimators",
}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")


def parse_parameters(texts: list[str], base: TrainingConfig) -> TrainingConfig:
    """The parameters set by `--param name=value`; all others are as in the base."""
    return _vary("The '--param' option", ",".join(texts), base)


def parse_variants(texts: Iterable[str], base: TrainingConfig) -> dict[str, TrainingConfig]:
    """Variants written `name:parameter=value,...`; what a variant does not name is as in the base."""
    variants: dict[str, TrainingConfig] = {}
    for text in texts:
        name, colon, rest = text.partition(":")
        if not colon or not _NAME.fullmatch(name):
            raise ConfigError(f"A variant must be written 'name:parameter=value,...'. Got '{text}' instead.")
        if name in variants:
            raise ConfigError(f"The names of variants must be unique. Got '{name}' twice.")
        variants[name] = _vary(f"Variant '{name}'", rest, base)
    return variants


def _vary(who: str, text: str, base: TrainingConfig) -> TrainingConfig:
    changes: dict[str, str | None] = {}
    for part in filter(None, text.split(",")):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        parameter = ALIASES.get(key, key)
        if parameter not in TrainingConfig.model_fields:
            known = [*TrainingConfig.model_fields, *ALIASES]
            raise ConfigError(
                f"{who} names an unknown parameter '{key}'.{suggest(key, known)} Known: {', '.join(known)}."
            )
        if not equals or not value or parameter in changes:
            raise ConfigError(f"{who} must give '{key}' one value, as in '{key}=value'. Got '{text}' instead.")
        changes[parameter] = None if value.lower() == "none" else value
    try:
        return base.replace(**changes)
    except ConfigError as error:
        raise ConfigError(f"{who}: {error}") from None


def count_cells(suite: BenchmarkSuite) -> int:
    """How many cells the suite has if every library supports all of it."""
    return sum(len(config.libraries) * _repeats(suite, config) for config in suite.configs)


def _repeats(suite: BenchmarkSuite, config: BenchmarkConfig) -> int:
    return (len(config.seeds) or suite.default_seeds) * (config.folds or 1)


def cost_key(dataset: str, booster: BoosterType, training: TrainingConfig, library: str) -> str:
    """What the time of a cell mainly depends on: the key into the history of times."""
    return "|".join((dataset, booster.value, library, training.model_dump_json(exclude={"seed"})))


def estimate_seconds(suite: BenchmarkSuite, history: Mapping[str, float], *, jobs: int = 1) -> float | None:
    """The time a run would take, from the seconds per cell by `cost_key`; None unless half of its cells are known."""
    known, cells, total = 0, 0, 0.0
    for config in suite.configs:
        for library in config.libraries:
            seconds = history.get(cost_key(config.dataset.name, config.booster_type, config.training, library))
            repeats = _repeats(suite, config)
            cells += repeats
            if seconds is not None:
                known += repeats
                total += seconds * repeats
    return total / known * cells / jobs if 2 * known >= cells > 0 else None
