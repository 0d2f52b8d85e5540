"""A saved model against its exports: planted faults are found and named, others pass."""

import numpy as np
import pandas as pd
import pytest

from boosters_eval import check_export
from boosters_eval.core.errors import BoostersEvalError, ConfigError

NAMES = ["age", "height", "income", "weight"]

# A file of exports: each function plants a fault in what the model's own library predicts.
EXPORTS = """
import json
import numpy as np
import lightgbm as lgb
import xgboost as xgb

lines = open({lightgbm!r}).read()
light = lgb.Booster(model_str=lines)
three = lgb.Booster(model_file={classes!r})
content = json.load(open({xgboost!r}))


def boost(found):
    model = xgb.Booster(model_file=bytearray(json.dumps(found).encode()))
    return lambda x: model.predict(xgb.DMatrix(x, feature_names={names!r}))


def right(x): return light.predict(x)
def float32_cast(x): return light.predict(x.astype(np.float32).astype(float))
def less(x): return light.predict(np.nextafter(x, np.inf))
def output_float32(x): return light.predict(x).astype(np.float32)
def missing_zero(x): return light.predict(np.nan_to_num(x, nan=0.0, posinf=np.inf, neginf=-np.inf))
def columns(x): return light.predict(x[:, ::-1])
def last_tree(x): return light.predict(x, num_iteration=light.num_trees() - 1)
def nothing(x): return np.full(len(x), np.nan)
def short(x): return light.predict(x)[:-1]
def one_row(x):
    found = light.predict(x); found[17] += 1; return found
def class_order(x): return three.predict(x)[:, [1, 0, 2]]
def classes_right(x): return three.predict(x)
def scores(x): return three.predict(x, raw_score=True)


def less_or_equal(x): return boost(content)(np.nextafter(x.astype(np.float32), np.float32(-np.inf)))


def swapped(x):
    found = json.loads(json.dumps(content))
    for tree in found["learner"]["gradient_booster"]["model"]["trees"]:
        tree["default_left"] = [1 - side for side in tree["default_left"]]
    return boost(found)(x)


def no_base(x):
    found = json.loads(json.dumps(content))
    found["learner"]["learner_model_param"]["base_score"] = "0"
    return boost(found)(x)


def refuses_missing(x):
    if np.isnan(x).any():
        raise ValueError("NaN is not taken")
    return light.predict(x)
"""


@pytest.fixture(autouse=True)
def _in_a_home(home):
    """Each test has runs of its own."""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Models of each library, a sample, and the exports."""
    import lightgbm as lgb
    import xgboost as xgb

    folder = tmp_path_factory.mktemp("exports")
    rng = np.random.default_rng(3)
    x = rng.normal(size=(300, 4))
    y = 5 * np.sin(3 * x[:, 0]) + x[:, 1] * x[:, 2] + 20
    holed = np.where(rng.random(x.shape) < 0.1, np.nan, x)
    pd.DataFrame(holed[:40], columns=NAMES).to_csv(folder / "rows.csv", index=False)
    quiet = {"verbose": -1, "num_threads": 1}
    lgb.train(quiet, lgb.Dataset(holed, y, feature_name=NAMES), 15).save_model(folder / "light.txt")
    classes = {**quiet, "objective": "multiclass", "num_class": 3}
    third = np.digitize(y, [18, 22])
    lgb.train(classes, lgb.Dataset(holed, third, feature_name=NAMES), 8).save_model(folder / "classes.txt")
    lgb.train({**quiet, "objective": "binary"}, lgb.Dataset(holed, y > 20), 8).save_model(folder / "binary.txt")
    data = xgb.DMatrix(holed, y, feature_names=NAMES)
    xgb.train({"max_depth": 3, "base_score": 20, "nthread": 1}, data, 15).save_model(folder / "boost.json")
    paths = {"lightgbm": "light.txt", "xgboost": "boost.json", "classes": "classes.txt"}
    located = {name: str(folder / file) for name, file in paths.items()}
    (folder / "mine.py").write_text(EXPORTS.format(names=NAMES, **located))
    return folder


def check(place, model, *functions, **options):
    exports = [f"{place / 'mine.py'}:{name}" for name in functions]
    found = check_export(place / model, place / "rows.csv", exports=exports, **options)
    return found, {one.name.rpartition(":")[2]: one for one in found.exports}


FAULTS = {
    "float32_cast": ("input_float32", "differs"),
    "less": ("threshold_above", "differs"),
    "missing_zero": ("missing_as_zero", "differs"),
    "columns": ("input_columns_reversed", "differs"),
    "last_tree": ("last_tree", "differs"),
    "nothing": ("not_finite", "differs"),
    "one_row": ("one_row", "differs"),
}


def test_planted_faults_are_found_and_named(place):
    found, exports = check(place, "light.txt", *FAULTS)
    assert {name: (one.cause, one.state) for name, one in exports.items()} == FAULTS
    assert found.exit_code == 1
    assert exports["nothing"].largest is None


def test_a_float32_cast_is_told_with_columns_and_thresholds(place):
    _, exports = check(place, "light.txt", "less")
    parts = {part.name: part for part in exports["less"].parts}
    assert parts["sample"].off == 0, "random rows hide it"
    assert parts["on a threshold"].off > 0
    assert {at.column for at in exports["less"].places} <= set(NAMES)


@pytest.mark.parametrize(
    ("name", "cause"),
    [("less_or_equal", "threshold_below_float32"), ("swapped", "missing_direction"), ("no_base", "base_score")],
)
def test_faults_of_xgboost_models_are_named(place, name, cause):
    found, exports = check(place, "boost.json", name)
    assert (exports[name].cause, found.exit_code) == (cause, 1)


def test_what_is_harmless_passes_with_its_own_name(place):
    found, exports = check(place, "light.txt", "right", "output_float32")
    assert (exports["right"].state, exports["output_float32"].state) == ("identical", "agrees")
    assert exports["output_float32"].cause == "output_float32"
    assert found.exit_code == 0


def test_classes_in_another_order_change_decisions(place):
    found, exports = check(place, "classes.txt", "class_order", "classes_right")
    assert exports["class_order"].state == "changes decisions"
    assert "columns 0 and 1 are swapped" in exports["class_order"].diagnosis
    assert exports["classes_right"].state == "identical"
    assert found.exit_code == 1


def test_scores_instead_of_probabilities_decide_the_same_and_are_told(place):
    found, exports = check(place, "classes.txt", "scores")
    assert (exports["scores"].state, found.exit_code) == ("differs", 0)
    assert check(place, "classes.txt", "scores", tolerance=1e-3)[0].exit_code == 1


def test_an_answer_of_another_shape_is_no_answer(place):
    found, exports = check(place, "light.txt", "short")
    assert (exports["short"].state, found.exit_code) == ("failed", 2)


def test_what_an_export_refuses_is_told_and_leaves_the_question_open(place):
    rows = place / "whole.csv"
    pd.DataFrame(np.random.default_rng(0).normal(size=(9, 4)), columns=NAMES).to_csv(rows, index=False)
    found = check_export(place / "light.txt", rows, exports=[f"{place / 'mine.py'}:refuses_missing"])
    (one,) = found.exports
    assert one.refused == ("missing: NaN is not taken",)
    assert (one.state, found.exit_code) == ("identical", 2)


def test_every_threshold_is_reached(place):
    """A model that answers otherwise on one threshold alone is found: rows are led to it."""
    import lightgbm as lgb

    from boosters_eval.programs.export.saved import open_saved
    from boosters_eval.programs.export.workload import THRESHOLD, lay_out_rows

    saved = open_saved(place / "light.txt")
    x, places, count = lay_out_rows(saved, np.zeros((1, 4)))
    on = (places[:, 0] == THRESHOLD) & (places[:, 3] == 0)
    assert on.sum() == count
    on &= np.abs(places[:, 2]) > saved.zero
    model = lgb.Booster(model_file=place / "light.txt")
    leaves, beside = model.predict(x[on], pred_leaf=True), model.predict(np.nextafter(x[on], np.inf), pred_leaf=True)
    assert (leaves != beside).any(axis=1).all()


def test_numbers_that_lightgbm_takes_for_zero_are_asked_as_zero(tmp_path):
    """Its thresholds beside 0 are numbers that it takes for 0: no runtime differs there for a user's rows."""
    import lightgbm as lgb

    from boosters_eval.programs.export.saved import open_saved
    from boosters_eval.programs.export.workload import lay_out_rows

    x = np.repeat([-1.0, 0.0, 1.0], 50)[:, None]
    lgb.train({"verbose": -1, "num_threads": 1}, lgb.Dataset(x, x[:, 0]), 2).save_model(tmp_path / "model.txt")
    saved = open_saved(tmp_path / "model.txt")
    assert any(abs(split.threshold) <= saved.zero for split in saved.splits())
    rows, _, _ = lay_out_rows(saved, x[:3])
    assert not ((np.abs(rows) <= saved.zero) & (rows != 0)).any()


def test_the_libraries_own_formats_agree(place):
    found = check_export(place / "boost.json", place / "rows.csv", runtimes=["json", "binary", "interface"])
    assert [one.state for one in found.exports] == ["identical"] * 3
    found = check_export(place / "light.txt", place / "rows.csv", runtimes="text")
    assert [one.state for one in found.exports] == ["identical"]


def test_lightgbm_in_boosters_is_named_for_what_is_known(place):
    found = check_export(place / "light.txt", place / "rows.csv", runtimes="boosters")
    (one,) = found.exports
    assert one.cause.startswith("compare_float32_below")
    assert one.reference.startswith("https://")


def test_a_sample_without_a_column_is_refused(place):
    rows = place / "lacking.csv"
    pd.DataFrame({"age": [1.0], "height": [2.0], "income": [3.0]}).to_csv(rows, index=False)
    with pytest.raises(
        BoostersEvalError, match=r"must have the 4 columns of the model\. Got 3 instead\. It lacks weight"
    ):
        check_export(place / "light.txt", rows)


def test_other_columns_of_the_sample_are_left_out(place):
    rows = place / "more.csv"
    frame = pd.read_csv(place / "rows.csv")
    frame[["weight", "age", "income", "height"]].assign(target=1).to_csv(rows, index=False)
    found = check_export(place / "light.txt", rows, runtimes="text")
    assert "Columns that the model has not are left out: target." in found.notes


def test_pickles_are_refused(place, tmp_path):
    (tmp_path / "model.pkl").write_bytes(b"")
    with pytest.raises(ConfigError, match="must not be a pickle"):
        check_export(tmp_path / "model.pkl", place / "rows.csv")


def test_categories_of_catboost_may_be_texts(tmp_path):
    import catboost

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"city": rng.choice(["Bern", "Rome", "Oslo"], 200), "size": rng.normal(size=200)})
    y = frame["size"] + (frame["city"] == "Rome")
    model = catboost.CatBoostRegressor(iterations=10, verbose=0, allow_writing_files=False, cat_features=["city"])
    model.fit(frame, y).save_model(str(tmp_path / "model.cbm"))
    frame.head(20).to_csv(tmp_path / "rows.csv", index=False)
    found = check_export(tmp_path / "model.cbm", tmp_path / "rows.csv", runtimes=["json", "binary"])
    assert {one.state for one in found.exports} <= {"identical", "agrees"}
    assert any(part.name == "unseen category" for part in found.exports[0].parts)


def test_files_of_ones_own_are_exports(place):
    found = check_export(place / "light.txt", place / "rows.csv", exports=str(place / "binary.txt"))
    assert found.exports[0].state == "differs"


@pytest.mark.filterwarnings("ignore")  # that dart is going out of fashion
def test_dart_in_boosters_lacks_its_drop_weights(place):
    import xgboost as xgb

    x = np.random.default_rng(1).normal(size=(200, 4))
    data = xgb.DMatrix(x, x[:, 0] * x[:, 1], feature_names=NAMES)
    xgb.train({"booster": "dart", "rate_drop": 0.3, "nthread": 1}, data, 20).save_model(place / "dart.json")
    (one,) = check_export(place / "dart.json", place / "rows.csv", runtimes="boosters").exports
    assert (one.state, one.cause) == ("differs", "drop_weights")
    assert one.reference


DIFFERING = {
    "light.txt": {"boosters": "compare_float32_below", "onnxruntime-onnxmltools": "compare_float32"},
    "classes.txt": {"boosters": "compare_float32_below", "onnxruntime-onnxmltools": "compare_float32"},
    "boost.json": {},
}


@pytest.mark.parity
@pytest.mark.parametrize("model", DIFFERING)
def test_unharmed_exports_differ_only_in_what_is_known(place, model):
    """In every runtime that the extra `parity` installs; a model that learned from missing values is no exception."""
    found = check_export(place / model, place / "rows.csv")
    differing = {one.name: one for one in found.exports if one.state in ("differs", "changes decisions")}
    assert {one.state for one in found.exports} <= {"identical", "agrees", "differs", "changes decisions"}
    assert differing.keys() == DIFFERING[model].keys()
    for name, cause in DIFFERING[model].items():
        assert differing[name].cause.startswith(cause)
        assert differing[name].reference
