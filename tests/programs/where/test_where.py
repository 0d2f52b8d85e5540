"""Where one library loses to another, from the predictions that a run has kept."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest

from boosters_eval import (
    DATASETS,
    DatasetConfig,
    Task,
    TrainingConfig,
    compare,
    find_slices,
    prune_runs,
    register_dataset,
)
from boosters_eval.core.errors import BoostersEvalError, ConfigError, DatasetError, RunError, UnknownNameError
from boosters_eval.datasets.fetch import cache_root
from boosters_eval.reports.html.plots import Plot
from tiny import FEW, shared_pool

DEEP, FLAT = "lightgbm deep", "lightgbm flat"


def make_frame(n=1500, seed=0):
    """Two columns matter together only where the category is 'odd': stumps cannot tell, deeper trees can."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    kind = rng.choice(["odd", "even", "plain"], size=n, p=[0.2, 0.4, 0.4])
    y = x[:, 0] + np.where(kind == "odd", 4 * np.sign(x[:, 1] * x[:, 2]), 0) + 0.3 * rng.normal(size=n)
    return pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "kind": kind, "y": y})


def run_planted(**options):
    variants = {
        "deep": TrainingConfig(n_estimators=60, max_depth=6),
        "flat": TrainingConfig(n_estimators=60, max_depth=1),
    }
    return compare(
        {"planted": make_frame()},
        ["lightgbm"],
        seeds=5,
        target="y",
        variants=variants,
        executor=shared_pool(),
        **options,
    )


def run(dataset, **options):
    return compare(dataset, ["sklearn", "lightgbm"], seeds=2, training=FEW, **{"executor": shared_pool(), **options})


def test_a_slice_by_a_category_is_found_and_told_first(home):
    run_planted()
    found = find_slices("last", [FLAT, DEEP])
    first = found.slices[0]
    assert any((one.column, one.value) == ("kind", "odd") for one in first.conditions)
    assert first.gap.a > first.gap.b
    assert first.gap.low > 0
    assert 0.05 < first.share < 0.3
    answer = found.document().answer
    assert answer[0].startswith(f"{FLAT} loses to {DEEP} most where ")
    assert "kind is 'odd'" in answer[0]
    assert len(answer) <= 4
    assert found.worst[0].model_dump()["values"]["kind"] == "odd"
    assert found.worst[0].error_a > found.worst[0].error_b


def test_without_names_the_second_best_is_asked_about(home):
    run_planted()
    found = find_slices()
    assert (found.a, found.b) == (FLAT, DEEP)
    assert find_slices("last", FLAT).b == DEEP


def test_every_format_tells_the_same_slices(home):
    run_planted()
    found = find_slices("last", [FLAT, DEEP])
    text = "kind is 'odd'"
    assert text in found.to_markdown()
    assert text.replace("'", "&#x27;") in found.to_html() or text in found.to_html()
    assert "<svg" in found.to_html()
    assert text in found.to_csv()
    assert text in found.to_latex() or "kind is" in found.to_latex()
    data = json.loads(found.to_json())
    assert data["slices"][0]["conditions"]
    assert type(found).model_validate_json(found.to_json()) == found
    assert "Plot(" in repr(Plot(tuple(found.document().figures())))


def test_values_over_all_rows_are_those_of_the_run(home):
    results = run("diabetes")
    found = find_slices("last", ["sklearn", "lightgbm"])
    squares = [one.metrics["rmse"] ** 2 for one in results.results if one.library == "sklearn"]
    assert found.overall.a == pytest.approx(np.sqrt(np.mean(squares)), rel=0.02)  # test sets are almost equally large


@pytest.mark.parametrize("dataset", ["breast_cancer", "iris", "synthetic_rank_small"])
def test_each_task_is_answered_with_rows_and_a_document(home, dataset):
    run(dataset)
    found = find_slices("last", ["sklearn", "lightgbm"]) if dataset != "synthetic_rank_small" else None
    if found is None:
        compare(dataset, ["xgboost", "lightgbm"], seeds=2, training=FEW, executor=shared_pool())
        found = find_slices("last", ["xgboost", "lightgbm"])
        assert found.noun == "query"
        assert "rows of the query" in found.worst[0].model_dump()["values"]
    assert found.worst
    assert all(row.error_a > row.error_b for row in found.worst)
    assert found.document().answer
    if dataset == "iris":  # 60 rows were tested
        assert found.tested is None
        assert "too few" in found.document().answer[0]


def test_another_metric_is_asked_of_the_same_predictions(home):
    run("breast_cancer")
    found = find_slices("last", ["sklearn", "lightgbm"], metric="accuracy")
    assert (found.metric, found.label) == ("accuracy", "Accuracy")
    assert 0 <= found.overall.a <= 1


def test_errors_that_are_all_equal_have_a_sentence_of_their_own(home):
    run("diabetes")
    found = find_slices("last", ["sklearn", "lightgbm"])
    same = found.overall.replace(a=1.0, b=1.0, difference=0.0, low=0.0, high=0.0, percent=0.0)
    answer = found.replace(overall=same, slices=(), worst=()).document().answer
    assert answer == ("sklearn and lightgbm err alike on every row of diabetes: neither loses anywhere.",)


def test_of_several_data_sets_the_one_with_the_largest_loss_is_taken_unless_one_is_named(home):
    run(["diabetes", "breast_cancer"])
    found = find_slices("last", ["sklearn", "lightgbm"])
    (remark,) = (each for each in found.remarks if "instead" in each)
    other = "breast_cancer" if found.dataset == "diabetes" else "diabetes"
    assert other in remark
    assert find_slices("last", ["sklearn", "lightgbm"], dataset=other).dataset == other
    assert find_slices("last", ["SkLearn", "lightGBM"], dataset=f"{other}/gbdt".title()).dataset == other


@pytest.mark.parametrize(
    ("asked", "error", "sentence"),
    [
        ({"libraries": ["sklearn", "lightgbn"]}, UnknownNameError, "Did you mean 'lightgbm'"),
        ({"libraries": ["sklearn", "sklearn"]}, ConfigError, "must name two different libraries"),
        ({"dataset": "diabetis"}, UnknownNameError, "Did you mean 'diabetes'"),
        ({"metric": "maee"}, UnknownNameError, "Did you mean 'mae'"),
        ({"metric": "r2"}, ConfigError, "errors that single rows have"),
        ({"metric": "logloss"}, ConfigError, "regression"),
        ({"run": "nothing"}, BoostersEvalError, "nothing"),
    ],
)
def test_a_wrong_question_is_a_sentence(home, asked, error, sentence):
    run("diabetes")
    with pytest.raises(error, match=sentence):
        find_slices(**{"libraries": ["sklearn", "lightgbm"], **asked})


def test_without_predictions_it_is_said_why(home):
    run("diabetes", predictions=False)
    with pytest.raises(RunError, match="its predictions were not kept"):
        find_slices()
    run("diabetes", name="pruned")
    prune_runs(predictions=True)
    with pytest.raises(RunError, match=r"its predictions were removed(?! to make room)"):
        find_slices("pruned")


def test_data_that_is_gone_or_has_changed_is_a_sentence(home, monkeypatch, tmp_path):
    monkeypatch.setenv("BOOSTERS_EVAL_CACHE", str(tmp_path / "cache"))
    rng = np.random.default_rng(0)
    given = [rng.normal(size=(200, 2)).astype(np.float32)]
    register_dataset(
        DatasetConfig(name="moving", task=Task.REGRESSION, loader=lambda: (given[0], given[0].sum(axis=1)))
    )
    try:
        run({"mine": make_frame(300)}, target="y", name="mine")
        run("moving", name="moving")
        shutil.rmtree(cache_root() / "tables")
        with pytest.raises(DatasetError, match=r"The rows of data set 'mine\.y' are no longer in"):
            find_slices("mine")
        assert find_slices("moving").dataset == "moving"  # loaded again, and still the same
        shutil.rmtree(cache_root() / "tables")
        given[0] = given[0] + 1
        with pytest.raises(DatasetError, match="The data set 'moving' has changed since the run"):
            find_slices("moving")
    finally:
        DATASETS.unregister("moving")
