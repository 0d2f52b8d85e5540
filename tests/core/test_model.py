"""Declared data: how it is built and copied."""

import copy
import sys

import pytest
from pydantic import field_serializer

import factories
from boosters_eval import BenchmarkSuite, ConfigError, DatasetConfig, GrowthStrategy, Task, TrainingConfig
from boosters_eval.core.model import FileModel


def test_fields_may_be_given_by_position_in_the_order_of_the_rfc():
    assert TrainingConfig(50, 0.2, 4, 15, 3, 0.5, 2.0, 0.8, 0.7, 2, 7, GrowthStrategy.LEAFWISE) == TrainingConfig(
        n_estimators=50,
        learning_rate=0.2,
        max_depth=4,
        n_leaves=15,
        min_samples_leaf=3,
        l1=0.5,
        l2=2.0,
        subsample=0.8,
        colsample=0.7,
        n_threads=2,
        seed=7,
        growth_strategy=GrowthStrategy.LEAFWISE,
    )
    data = DatasetConfig("toy", Task.REGRESSION, list, None, 3, 60)
    assert (data.n_features, data.n_samples) == (3, 60)
    assert BenchmarkSuite("one", (factories.config(),), 2).default_seeds == 2


def test_a_mistake_in_a_position_is_one_sentence():
    with pytest.raises(ConfigError, match=r"TrainingConfig has 17 parameters\. Got 18 values instead"):
        TrainingConfig(*range(18))
    with pytest.raises(ConfigError, match="'n_estimators' parameter of TrainingConfig is given twice"):
        TrainingConfig(50, n_estimators=60)
    with pytest.raises(ConfigError, match="'max_depth' parameter of TrainingConfig must be"):
        TrainingConfig(50, 0.1, 99)


@pytest.mark.skipif(sys.version_info < (3, 13), reason="copy.replace is new in Python 3.13")
def test_copy_replace_validates():
    with pytest.raises(ConfigError, match="must be"):
        copy.replace(TrainingConfig(), max_depth=99)  # type: ignore[attr-defined,unused-ignore]


def test_a_copy_validates_and_leaves_defaults_alone():
    with pytest.raises(ConfigError, match="must be"):
        TrainingConfig().__replace__(max_depth=99)
    config = factories.config()
    assert config.__replace__(name="other").own_seeds == config.own_seeds == ()
    assert config.replace(seeds=(7,)).replace(name="other").own_seeds == (7,)


@pytest.mark.parametrize("write", ["model_dump", "model_dump_json"])
@pytest.mark.parametrize(("raised", "seen"), [(KeyboardInterrupt, KeyboardInterrupt), (OSError, ValueError)])
def test_interruption_while_a_model_is_written_is_one(write, raised, seen):
    class Written(FileModel):
        value: int = 1

        @field_serializer("value")
        def _of(self, value):
            raise raised

    class Around(FileModel):
        inner: Written = Written()

    for model in (Written(), Around()):
        with pytest.raises(seen):
            getattr(model, write)()
