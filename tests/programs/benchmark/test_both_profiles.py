"""Both profiles in one run of real libraries: what is trained, and what the answer says of categories."""

import re

import numpy as np
import pytest
from scipy.stats import ttest_rel

import boosters_eval as be
from boosters_eval.programs.benchmark.tables.build import build_tables
from own_categories import TABLES, OwnCategories

LIBRARIES = ["xgboost", "lightgbm", "catboost"]


def answer(results):
    return "\n".join(build_tables(results).tables[0].answer)


@pytest.mark.filterwarnings("ignore::boosters_eval.BoostersEvalWarning")
def test_the_parity_half_is_the_parity_run_to_the_last_bit_and_the_other_half_runs_by_defaults():
    frame = TABLES["missing"][:200]
    both, alone = (
        be.compare({"toy": frame}, ["xgboost", "lightgbm"], target="y", seeds=2, profile=profile)
        for profile in ("both", "parity")
    )
    halves = {profile: [r for r in both.results if r.profile == profile] for profile in ("parity", "defaults")}
    assert [r.metrics for r in halves["parity"]] == [r.metrics for r in alone.results]
    assert len(halves["defaults"]) == 4
    assert all("max_depth" not in result.native_params for result in halves["defaults"])
    by_split = {profile: {r.split_digest for r in half} for profile, half in halves.items()}
    assert by_split["parity"] == by_split["defaults"]  # so that rows can tell what the profile changes
    kinds = [finding.kind for finding in alone.audits["toy.y"].findings]
    assert "own-treatment" in kinds
    assert "own-treatment" not in [finding.kind for finding in both.audits["toy.y"].findings]


def errors_by_row(results, library, profile):
    """The mean squared error of each row, over the splits that tested it."""
    found = {}
    for result in results.results:
        if (result.library, result.profile) == (library, profile):
            fit = results.evidence.of(result)
            for row, error in zip(fit.split.rows, (fit.predictions.ravel() - fit.split.y_true) ** 2, strict=True):
                found.setdefault(int(row), []).append(error)
    return np.array([np.mean(found[row]) for row in sorted(found)])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::boosters_eval.BoostersEvalWarning")
def test_a_library_that_categories_cost_by_meaning_is_named_in_the_answer():
    named, unnamed = [], []
    for name, frame in TABLES.items():
        both = be.compare({name: frame}, LIBRARIES, target="y", seeds=20, profile="both")
        clause = re.search(r"([^;:]*) do(?:es)? better with (?:its|their) own defaults", answer(both))
        better = set(re.split(r", | and ", clause[1].strip())) if clause else set()
        for library in LIBRARIES:
            meant, own = (errors_by_row(both, library, profile) for profile in ("parity", "defaults"))
            test = ttest_rel(meant, own)
            if test.statistic > 0 and test.pvalue < 1e-4:
                assert library in better, (name, library, test)
            if test.statistic < 0 or test.pvalue > 0.2:
                assert library not in better, (name, library, test)
            (named if library in better else unnamed).append((name, library))
    assert named
    assert unnamed


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::boosters_eval.BoostersEvalWarning")
def test_no_library_is_worse_by_meaning_than_with_its_own_treatment_of_categories():
    for name, frame in TABLES.items():
        results = be.compare({name: frame}, ["lightgbm", OwnCategories], target="y", seeds=20)
        (table,) = build_tables(results).tables
        (pair,) = [pair for pair in table.pairs if pair.metric == "rmse"]
        worse = "worse" if pair.a == "lightgbm" else "better"
        assert pair.verdict != worse, (name, pair.text)
