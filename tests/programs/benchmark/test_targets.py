"""Several targets: each library learns all of them, scores are means with those of each target, rows are evidence."""

import json

import numpy as np
import pandas as pd
import pytest

from boosters_eval import (
    DatasetConfig,
    ResultCollection,
    Task,
    TrainingConfig,
    check_baseline,
    compare,
    importances,
    record_baseline,
    rescore,
)
from boosters_eval.core.errors import BoostersEvalWarning, ConfigError
from boosters_eval.metrics import get
from boosters_eval.programs.benchmark.tables.build import build_tables
from boosters_eval.programs.benchmark.tables.diagrams import collect_diagrams
from boosters_eval.programs.benchmark.tables.document import build_document
from boosters_eval.programs.benchmark.targets import AllTogether, OfCatBoost, OneOfEach, for_targets
from boosters_eval.runners import RUNNERS, FitRequest, TrainData
from boosters_eval.runners.config import SeveralTargets
from boosters_eval.runners.measure import measure
from tiny import FEW, shared_pool

LIBRARIES = ["boosters", "xgboost", "lightgbm", "catboost", "sklearn"]


@pytest.fixture
def frame():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(300, 3))
    found = pd.DataFrame(x, columns=list("abc"))
    found["height"] = 170 + 8 * x[:, 0] + rng.normal(size=300)
    found["weight"] = 70 + 5 * x[:, 1] + rng.normal(size=300)
    return found


def run(data, target=("height", "weight"), libraries=("sklearn", "lightgbm"), **options):
    defaults = {"executor": shared_pool(), "seeds": 2, "training": FEW}
    return compare(data, list(libraries), target=list(target), **{**defaults, **options})


def rows_of(frame):
    return np.ascontiguousarray(frame[list("abc")], np.float32), frame[["height", "weight"]].to_numpy()


def fit(runner, request, x, y):
    return measure(runner, runner.translate(request), TrainData(x=x, y=y), x)


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_library_learns_all_targets(home, frame, library):
    (result,) = run(frame, libraries=[library], seeds=1, training=TrainingConfig(n_estimators=30)).results
    assert result.metrics["r2[height]"] > 0.6
    assert result.metrics["r2[weight]"] > 0.6
    marks = {mark.parameter: mark for mark in result.marks}
    if library == "xgboost":
        assert "targets" not in marks  # exact marks are not in results
    elif library == "catboost":
        assert marks["targets"].kind == "approximated"
        assert result.native_params["loss_function"] == "MultiRMSE"
    else:
        assert marks["targets"].kind == "own"
        assert marks["targets"].reason.startswith("one model per target")
        assert result.n_trees_trained == 60
    assert result.n_rounds_trained == 30


@pytest.mark.parametrize("library", ["boosters", "xgboost", "lightgbm", "sklearn"])
def test_predictions_are_those_of_a_model_of_each_target(frame, library):
    """For XGBoost this is why its mark is exact: a round has a tree for each target."""
    x, y = rows_of(frame)
    RUNNERS[library].load()
    training = TrainingConfig(n_estimators=10)
    request = SeveralTargets(task=Task.REGRESSION, training=training, n_columns=3)
    together = fit(for_targets(RUNNERS[library], request, 2), request, x, y)
    alone = FitRequest(task=Task.REGRESSION, training=training, n_columns=3)
    each = [fit(RUNNERS[library], alone, x, np.ascontiguousarray(y[:, k])) for k in (0, 1)]
    assert np.array_equal(together.predictions, np.column_stack([one.predictions for one in each]))
    assert together.facts.n_trees == sum(one.facts.n_trees for one in each)
    assert together.facts.n_leaves == sum(one.facts.n_leaves for one in each)


def test_ways_are_chosen_by_what_a_library_has():
    trees = SeveralTargets(task=Task.REGRESSION, training=FEW)
    linear = SeveralTargets(task=Task.REGRESSION, training=FEW, booster_type="gblinear")
    found = {name: for_targets(RUNNERS[name], trees, 2).__mro__[1] for name in LIBRARIES}
    assert found == {
        "boosters": OneOfEach,
        "xgboost": AllTogether,
        "lightgbm": OneOfEach,
        "catboost": OfCatBoost,
        "sklearn": OneOfEach,
    }
    assert for_targets(RUNNERS["xgboost"], linear, 2).__mro__[1] is OneOfEach
    assert for_targets(RUNNERS["xgboost"], trees, 1) is RUNNERS["xgboost"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_early_stopping_watches_all_targets(home, frame, library):
    training = TrainingConfig(n_estimators=60, learning_rate=0.5, early_stopping_rounds=2)
    (result,) = run(frame, libraries=[library], seeds=1, training=training).results
    assert result.n_trees_trained < 120
    marks = {mark.parameter: mark.reason for mark in result.marks}
    together = "all targets stop at the same round" in marks.get("early_stopping_rounds", "")
    assert together == (library in ("xgboost", "catboost"))


def test_scores_are_means_of_those_of_each_target(home, frame):
    found = run(frame, metrics=["mape"])
    for result in found.results:
        fitted = found.evidence.of(result)
        for name in ("rmse", "mae", "r2", "mape"):
            parts = [result.metrics[f"{name}[{target}]"] for target in ("height", "weight")]
            alone = [get(name).compute(fitted.predictions[:, k], fitted.split.y_true[:, k]) for k in (0, 1)]
            assert parts == pytest.approx(alone)
            assert result.metrics[name] == pytest.approx(np.mean(parts))
        assert result.trivial["mean"]["rmse[height]"] == pytest.approx(frame["height"].std(), rel=0.2)


def test_a_row_contributes_the_mean_over_targets(home, frame):
    found = run(frame, seeds=5)
    for result in found.results:
        whole = found.evidence.score(result, "mae")
        parts = [found.evidence.score(result, f"mae[{target}]") for target in ("height", "weight")]
        assert whole.contributions == pytest.approx(np.mean([part.contributions for part in parts], axis=0))
        assert whole.value == pytest.approx(result.metrics["mae"])
        assert parts[1].value == pytest.approx(result.metrics["mae[weight]"])
    pairs = {pair.metric: pair.test for table in build_document(found).tables for pair in table.pairs}
    assert pairs["rmse"] == pairs["rmse[height]"] == pairs["rmse[weight]"] == "rows"


def test_reports_show_the_deciding_metric_of_each_target(home, frame):
    found = run(frame)
    text = found.to_markdown()
    assert "| RMSE ↓" in text
    assert "| RMSE of height ↓ | RMSE of weight ↓ |" in text
    assert "MAE of" not in text
    assert "RMSE, MAE and R² are means over 2 targets, height and weight." in text
    assert "rmse[height]" in found.to_dataframe().columns
    assert "mae[weight]" in found.to_csv().splitlines()[0]
    assert json.loads(found.to_json())["results"][0]["metrics"].keys() >= {"r2[height]", "r2[weight]"}


def test_a_target_that_outweighs_the_others_is_named(home, frame):
    frame["weight"] *= 1000
    found = run(frame)
    lines = build_tables(found).answer
    assert "The target weight decides alone: it makes up 100 % of the RMSE." in lines[1]
    assert lines[-1] == f"Next: weigh all targets alike: boosters-eval rescore {found.run_id} --metric r2"
    assert "decides alone" not in " ".join(build_tables(rescore(found.run_id, "r2")).answer)
    frame["weight"] /= 1000
    assert "decides alone" not in " ".join(build_tables(run(frame)).answer)


def test_columns_that_libraries_treat_in_their_own_ways_are_found_for_any_target(home, frame, tmp_path):
    frame["a"] = np.where(frame["a"] > 1, np.nan, frame["a"])
    frame["kind"] = np.where(frame["height"] > 170, "tall", "small")
    frame.to_csv(tmp_path / "sizes.csv", index=False)
    found = compare(f"{tmp_path / 'sizes.csv'}:height,weight", ["xgboost", "catboost"], seeds=2, training=FEW)
    assert "'a' and 'kind' each in its own way" in found.to_markdown()


def test_each_target_has_its_residuals(home, frame):
    found = run(frame)
    drawn = collect_diagrams(found).drawn
    assert [(diagram.kind, diagram.target) for diagram in drawn] == [("residuals", "height"), ("residuals", "weight")]
    page = build_document(found, "comparison").to_html()
    assert all(figure.svg() in page for figure in found.plot("residuals").figures)


def test_rescore_gives_each_target_its_score_too(home, frame):
    run(frame, name="two")
    found = rescore("two", "median_ae")
    assert {"median_ae", "median_ae[height]", "median_ae[weight]"} <= found.results[0].metrics.keys()
    assert found.results[0].primary_metric == "median_ae"


def test_files_name_several_targets_by_commas(home, frame, tmp_path):
    file = tmp_path / "two.csv"
    frame.to_csv(file, index=False)
    by_file = compare(f"{file}:height,weight", "sklearn", seeds=1, training=FEW, executor=shared_pool())
    by_frame = run(frame, libraries=["sklearn"], seeds=1)
    assert by_file.results[0].dataset_name == "two.height+weight"
    assert by_file.results[0].metrics == by_frame.results[0].metrics


def test_arrays_may_have_a_matrix_of_targets(home, frame):
    x, y = rows_of(frame)
    (result,) = compare((x, y), "sklearn", seeds=1, training=FEW, executor=shared_pool()).results
    assert "rmse[target2]" in result.metrics


def test_a_loader_may_return_a_matrix_of_targets(home, frame):
    x, y = rows_of(frame)
    data = DatasetConfig(name="own", task=Task.REGRESSION, loader=lambda: (x, y), targets=("tall", "heavy"))
    (result,) = compare(data, "sklearn", seeds=1, training=FEW, executor=shared_pool()).results
    assert {"rmse[tall]", "rmse[heavy]"} <= result.metrics.keys()


def test_names_with_commas_are_columns_first(home, frame):
    frame = frame.rename(columns={"height": "height, cm"})
    assert "rmse[height, cm]" in run(frame, ("height, cm", "weight"), ["sklearn"], seeds=1).results[0].metrics
    one = run(frame.drop(columns="weight"), ("height, cm",), ["sklearn"], seeds=1).results[0]
    assert "rmse[height, cm]" not in one.metrics


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"target": ("height", "wieght")}, "has no column 'wieght'. Did you mean 'weight'?"),
        ({"target": ("height", "height")}, "The target 'height' is named twice."),
        ({"target": ()}, "must be the name of a column, or of several. Got \\[\\] instead."),
        ({"task": "quantile"}, "Several targets are for the task regression: name one target for quantile."),
        ({"metrics": ["pinball"]}, "The metric 'pinball' is for one target. Got 2 in data.height\\+weight instead."),
        ({"metrics": ["rmse[height]"]}, "'rmse' comes with that of each target"),
        ({"drop": None}, None),
    ],
)
def test_a_mistake_gets_one_sentence(home, frame, options, sentence):
    if sentence is None:
        frame["weight"] = ["heavy", "light"] * 150
        options, sentence = {}, "must be finite numbers for regression. Got 'heavy' in row 1 instead"
    with pytest.raises(ConfigError, match=sentence):
        run(frame, **options)


def test_models_of_several_targets_are_not_explained(home, frame):
    with pytest.raises(ConfigError, match=r"explain models of one target\. Got 2 in data"):
        importances(frame, "lightgbm", target=["height", "weight"], seeds=1)


def test_a_leak_of_any_target_is_found(home, frame):
    frame["copy"] = frame["weight"] * 2
    with pytest.warns(BoostersEvalWarning, match="'copy' alone predicts 'weight'"):
        audit = run(frame, libraries=["sklearn"], seeds=1).audits["data.height+weight"]
    (leak,) = [finding for finding in audit.findings if finding.kind == "leak"]
    assert leak.text.startswith("'copy' alone predicts 'weight'")


def test_targets_that_float32_would_blur_are_learned_less_their_means(home, frame):
    frame["weight"] += 1e9
    (result,) = run(frame, libraries=["lightgbm"], seeds=1, training=TrainingConfig(n_estimators=30)).results
    assert result.target_offset[1] == pytest.approx(1e9, rel=1e-3)
    assert result.metrics["r2[weight]"] > 0.6


def test_results_are_read_back_from_their_file(home, frame):
    found = run(frame, seeds=1)
    again = ResultCollection.from_json(found.to_json())
    assert again.to_markdown().splitlines()[4:8] == found.to_markdown().splitlines()[4:8]
    assert "RMSE of weight" in again.to_markdown()


def test_a_baseline_knows_the_targets_and_notices_a_loss(home, frame, tmp_path):
    good = run(frame, libraries=["lightgbm"], seeds=5, training=TrainingConfig(n_estimators=40))
    file = tmp_path / "baseline.json"
    (recorded,) = record_baseline(file, results=good).results
    assert recorded.targets == ("height", "weight")
    assert {"rmse", "rmse[height]", "rmse[weight]"} <= recorded.metrics.keys()
    worse = run(frame, libraries=["lightgbm"], seeds=5, training=TrainingConfig(n_estimators=8))
    assert check_baseline(file, results=worse, statistical=True).exit_code == 1


def test_users_metrics_see_the_matrix_and_have_one_value(home, frame, tmp_path):
    file = tmp_path / "own.py"
    file.write_text("def worst(predictions, labels):\n    return abs(labels - predictions).max(axis=0).sum()\n")
    (result,) = run(frame, libraries=["sklearn"], seeds=1, metrics=[f"{file}:worst:lower"]).results
    assert result.metrics["worst"] > 0
    assert "worst[height]" not in result.metrics
