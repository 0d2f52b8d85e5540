"""Variants of a library's own parameters: now against proposed, where each library keeps its own defaults."""

import json

import pytest

from boosters_eval import BoostersEvalWarning, ConfigError, compare, run_suite
from boosters_eval.cli.app import run

NOW = ("now:", "few:max_iter=5")


def trees_of(results):
    return {result.variant: result.n_trees_trained for result in results.results}


def test_variants_set_the_librarys_own_parameters_and_all_else_is_its_default(home):
    found = compare(
        "breast_cancer", libraries="sklearn", profile="defaults", variants={"now": {}, "few": {"max_iter": 5}}, seeds=2
    )
    assert trees_of(found) == {"now": 100, "few": 5}
    assert not any(result.marks for result in found.results)


@pytest.mark.parametrize(
    ("library", "name", "trees"), [("catboost", "iterations", 7), ("xgboost", "num_boost_round", 21)]
)
def test_rounds_are_counted_as_the_library_grows_its_trees(home, library, name, trees):
    """One for all three classes, or one for each."""
    (found,) = compare("iris", libraries=library, profile="defaults", variants={"few": {name: 7}}, seeds=1).results
    assert (found.n_trees_trained, found.n_rounds_trained) == (trees, 7)


def test_command_line_reads_numbers_truth_and_texts(home, tmp_path, capsys):
    out = tmp_path / "out.json"
    variants = ("now:", "other:learning_rate=0.3,early_stopping=false,max_iter=7")
    assert (
        run(
            [
                "compare",
                "-d",
                "breast_cancer",
                "-l",
                "sklearn",
                "--profile",
                "defaults",
                "--variants",
                *variants,
                "-s",
                "1",
                "-o",
                str(out),
            ]
        )
        == 0
    )
    results = json.loads(out.read_text())["results"]
    assert {one["variant"]: one["n_trees_trained"] for one in results} == {"now": 100, "other": 7}


def test_suite_is_run_once_per_variant(home):
    variants = {"now": {}, "few": {"max_iter": 5}}
    found = run_suite("quick", libraries="sklearn", profile="defaults", variants=variants, seeds=1)
    assert {(one.dataset_name, one.variant) for one in found.results} == {
        (data, variant) for data in ("california", "breast_cancer") for variant in variants
    }


def test_a_parameter_that_the_library_ignores_fails_its_cells(home):
    with pytest.warns(BoostersEvalWarning, match="1 of 2 cells failed"):
        found = compare(
            *("breast_cancer", "lightgbm"),
            profile="defaults",
            variants={"now": {}, "typo": {"leerning_rate": 0.1}},
            seeds=1,
        )
    (error,) = found.errors
    assert "has no effect in lightgbm. Did you mean 'learning_rate'?" in error.error_message


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"libraries": ["sklearn", "xgboost"], "profile": "defaults"},
            "must be for one library .* Got sklearn and xgboost",
        ),
        ({"libraries": "sklearn"}, "no parameter 'max_iter'"),
    ],
)
def test_natives_are_for_one_library_with_its_own_defaults(home, given, sentence):
    with pytest.raises(ConfigError, match=sentence):
        compare("breast_cancer", variants={"now": {}, "few": {"max_iter": 5}}, seeds=1, **given)


def test_a_suite_has_no_variants_by_meaning(home, capsys):
    assert run(["run", "--suite", "quick", "--variants", *NOW]) == 3
    assert "add --profile defaults" in capsys.readouterr().err
