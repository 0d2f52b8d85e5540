"""The assertions of the pytest plug-in."""

import pytest

from boosters_eval.core.errors import ConfigError
from boosters_eval.pytest_plugin import assert_deterministic, assert_same_predictions


def test_versions_that_predict_the_same_pass_and_others_fail_with_the_answer(shelf, kept_pool):
    options = {"datasets": "diabetes", "seeds": 2, "home": shelf.home}
    old = f"{shelf.library}@{shelf.old}"
    assert assert_same_predictions(old, old, **options).answer == "safe"
    new = f"{shelf.library}@{shelf.wheel('regression', '1.3', fewer={'regression': 1})}"
    with pytest.raises(pytest.fail.Exception, match="Changes results: diabetes changes"):
        assert_same_predictions(old, new, **options)


def test_two_libraries_are_no_upgrade():
    with pytest.raises(ConfigError, match="compares two versions of one library"):
        assert_same_predictions("xgboost==1.0", "lightgbm")


def test_a_library_that_trains_another_model_fails(shelf, kept_pool):
    options = {"datasets": "diabetes", "home": shelf.home}
    assert_deterministic(f"{shelf.library}@{shelf.old}", **options)
    luck = f"luck={shelf.library}@{shelf.wheel('luck', chance=['regression'])}"
    with pytest.raises(pytest.fail.Exception, match="luck, regression, again: different nothing more"):
        assert_deterministic(luck, **options)
    with pytest.raises(ConfigError, match="Did you mean 'again'"):
        assert_deterministic(luck, "agian")
