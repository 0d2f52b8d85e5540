"""A run judged by other metrics, from the predictions that it has kept."""

import numpy as np
import pytest

from boosters_eval import compare, prune_runs, rescore
from boosters_eval.core.errors import ConfigError, RunError, UnknownNameError
from tiny import FEW, shared_pool

EXTRA = {"diabetes": ("median_ae", "mape"), "breast_cancer": ("f1@0.3", "brier"), "iris": ("top_k_accuracy",)}


def run(dataset, **options):
    return compare(dataset, ["sklearn", "lightgbm"], seeds=2, training=FEW, **{"executor": shared_pool(), **options})


@pytest.mark.parametrize("dataset", EXTRA)
def test_values_are_those_that_the_run_itself_computes(home, dataset):
    asked = run(dataset, metrics=EXTRA[dataset], name="asked")
    plain = run(dataset, name="plain")
    found = rescore("plain", EXTRA[dataset])
    for new, old in zip(found.results, asked.results, strict=True):
        assert new.metrics == old.metrics
        assert new.trivial == old.trivial
        assert list(new.metrics)[: len(EXTRA[dataset])] == [new.primary_metric, *EXTRA[dataset][1:]]
    assert [r.predictions_digest for r in found.results] == [r.predictions_digest for r in plain.results]


def test_the_family_grows_by_what_is_asked_and_says_so(home):
    run("diabetes")
    found = rescore("last", ["mae", "mape"])
    assert found.metadata.alpha == pytest.approx(0.05 / 3)
    assert "2 metrics asked for after the run: with what it was judged by, 3 questions share" in found.to_markdown()
    assert (
        "- **But:** with what was asked after the run, 3 questions share a risk of 5 %: each is judged more strictly."
        in found.to_markdown()
    )


def test_rows_decide_an_asked_metric_too(home):
    run("diabetes")
    found = rescore("last", "mae")
    assert found.evidence.score(found.results[0], "mae") is not None


def test_a_metric_of_a_file_is_scored(home, tmp_path):
    file = tmp_path / "own.py"
    file.write_text("def worst(y_true, y_pred, sample_weight=None):\n    return abs(y_true - y_pred).max()\n")
    run("diabetes")
    found = rescore("last", f"{file}:worst:lower")
    for result in found.results:
        fit = found.evidence.of(result)
        assert result.metrics["worst"] == np.abs(fit.split.y_true - fit.predictions).max()


def test_a_metric_that_fails_on_some_data_sets_leaves_these_out_with_the_reason(home, tmp_path):
    file = tmp_path / "own.py"
    file.write_text("def worst(y_true, y_pred, sample_weight=None):\n    return abs(y_true - y_pred).max()\n")
    run(["diabetes", "iris"])
    found = rescore("last", [f"{file}:worst:lower", "mlogloss"])
    assert {result.primary_metric for result in found.results if result.dataset_name == "iris"} == {"mlogloss"}
    assert "Left out: The metric 'worst' failed with ValueError" in found.to_markdown()
    assert "(on iris/gbdt)." in found.to_markdown()
    run("iris", name="alone")
    with pytest.raises(ConfigError, match="failed with ValueError"):
        rescore("alone", f"{file}:worst:lower")


def test_what_fits_only_some_tasks_leaves_the_others_out(home):
    run(["diabetes", "iris"])
    found = rescore("last", "mae")
    assert {result.dataset_name for result in found.results} == {"diabetes"}
    assert "iris left out: no metric that was asked for fits the task." in found.to_markdown()
    assert "; left out, because no metric that was asked for can be computed there: iris.\n" in found.to_markdown()


def test_wrong_metrics_are_refused(home):
    run("diabetes")
    with pytest.raises(UnknownNameError, match="Did you mean 'mae'"):
        rescore("last", "maee")
    with pytest.raises(ConfigError, match="does not fit the task 'regression'"):
        rescore("last", "auc_roc")
    with pytest.raises(ConfigError, match="'metrics' parameter must name a metric"):
        rescore("last")


def test_a_run_without_predictions_is_refused_with_the_reason(home):
    run("diabetes", predictions=False)
    with pytest.raises(RunError, match="cannot be scored anew: its predictions were not kept"):
        rescore("last", "mae")
    run("diabetes", name="pruned")
    prune_runs(predictions=True)
    with pytest.raises(RunError, match=r"its predictions were removed(?! to make room)"):
        rescore("pruned", "mae")
