"""Real versions of real libraries, as pip finds them; where no index can be reached, there is nothing to test."""

import pytest

from boosters_eval import prepare_comparison, run_prepared
from boosters_eval.programs.benchmark.tables.build import build_tables
from boosters_eval.runners import RUNNERS
from boosters_eval.runners.builds.install import list_versions, resolve_competitors, run_pip
from boosters_eval.runners.installed import installed_build

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def _index():
    """Whether there is an index tells what every index has: that it lacks a name of ours must fail, not skip."""
    asked = run_pip("index", "versions", "pip")
    if asked.code != 0:
        pytest.skip(f"pip can reach no index here: {asked.last_lines}")


def test_a_released_version_is_compared_with_the_one_that_is_installed(home):
    prepared = prepare_comparison("california", ["xgboost==3.0.5", "xgboost"], seeds=1)
    results = run_prepared(prepared)
    assert {result.library: result.library_version for result in results.results} == {
        "xgboost==3.0.5": "3.0.5",
        "xgboost": RUNNERS["xgboost"].version(),
    }
    assert not results.errors
    text = build_tables(results).to_markdown()
    assert "| xgboost==3.0.5 " in text
    assert "| xgboost " in text


@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "boosters"])
def test_the_version_that_is_installed_is_the_same_build(library, home):
    version = RUNNERS[library].version()
    found = resolve_competitors([library, f"{library}=={version}"])
    assert len(found) == 2
    assert len({installed_build(runner).digest for runner in found.values()}) == 1


def test_released_versions_are_in_order_and_final():
    found = list_versions("lightgbm")
    assert found.index("4.3.0") < found.index("4.5.0")
    assert not [version for version in found if "rc" in version]
