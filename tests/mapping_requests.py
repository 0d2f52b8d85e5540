"""Requests of every kind, and all tables that must answer them."""

from hypothesis import strategies as st

from boosters_eval.metrics.task import Task
from boosters_eval.runners import RUNNERS, FitRequest
from boosters_eval.runners.parameters import BoosterType, Device, GrowthStrategy, Profile, TrainingConfig

MAPPING = {name: RUNNERS[name].editions for name in ("boosters", "xgboost", "lightgbm", "catboost", "sklearn")}
EDITIONS = [edition for editions in MAPPING.values() for edition in editions]
IDS = [f"{edition.library}-{edition.since}" for edition in EDITIONS]

trainings = st.builds(
    TrainingConfig,
    n_estimators=st.integers(1, 1000),
    learning_rate=st.floats(0.001, 10),
    max_depth=st.integers(1, 16),
    n_leaves=st.integers(2, 131_072),
    min_samples_leaf=st.integers(1, 100),
    min_child_weight=st.floats(0, 100),
    l1=st.floats(0, 100),
    l2=st.floats(0, 100),
    min_gain=st.floats(0, 100),
    max_bins=st.integers(2, 65_535),
    subsample=st.floats(0.01, 1),
    colsample=st.floats(0.01, 1),
    growth_strategy=st.sampled_from(GrowthStrategy),
    early_stopping_rounds=st.none() | st.integers(1, 50),
    device=st.sampled_from(Device),
)
requests = st.builds(
    FitRequest,
    task=st.sampled_from(Task),
    training=trainings,
    booster_type=st.sampled_from(BoosterType),
    profile=st.sampled_from(Profile),
    n_classes=st.integers(2, 20),
    quantiles=st.just((0.1, 0.9)),
    categorical=st.sampled_from([(), (0, 3)]),
    has_missing=st.booleans(),
    weighted=st.booleans(),
    n_threads=st.integers(1, 64),
    seed=st.integers(0, 2**31 - 1),
)
