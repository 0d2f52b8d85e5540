"""Real versions of real libraries, as pip finds them; where no index can be reached, there is nothing to test."""

import pytest

from boosters_eval import BuildError, ConfigError, prepare_comparison, run_prepared
from boosters_eval.benchmark import tables
from boosters_eval.builds.install import released_versions
from boosters_eval.builds.resolve import competitor_names
from boosters_eval.reports import render_markdown
from boosters_eval.runners import RUNNERS

pytestmark = pytest.mark.slow


def available(function, *arguments, **options):
    try:
        return function(*arguments, **options)
    except BuildError as error:
        if "cannot be reached" in str(error) or "No matching distribution" in str(error):
            pytest.skip(f"pip finds no versions here: {error}")
        raise


def test_a_released_version_is_compared_with_the_one_that_is_installed(home):
    prepared = available(prepare_comparison, "california", ["xgboost==3.0.5", "xgboost"], seeds=1)
    results = run_prepared(prepared)
    assert {result.library: result.library_version for result in results.results} == {
        "xgboost==3.0.5": "3.0.5",
        "xgboost": RUNNERS["xgboost"].version(),
    }
    assert not results.errors
    text = render_markdown(tables.build_tables(results))
    assert "| xgboost==3.0.5 " in text
    assert "| xgboost " in text


@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "boosters"])
def test_the_version_that_is_installed_is_the_same_build(library, home):
    version = RUNNERS[library].version()
    with pytest.raises(ConfigError, match="are the same build"):
        available(competitor_names, [library, f"{library}=={version}"])


def test_released_versions_are_in_order_and_final():
    found = available(released_versions, "lightgbm")
    assert found.index("4.3.0") < found.index("4.5.0")
    assert not [version for version in found if "rc" in version]
