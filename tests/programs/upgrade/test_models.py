"""Saved models in both versions: those of the cells, and those of the user."""

import numpy as np
import pytest

from boosters_eval import check_upgrade
from boosters_eval.core.errors import ConfigError

lightgbm = pytest.importorskip("lightgbm")


@pytest.fixture
def models(tmp_path):
    """A folder with a model of LightGBM, one that is cut off, a file that is none, and a pickle."""
    x, y = np.random.default_rng(0).random((60, 4)), np.arange(60.0)
    booster = lightgbm.train({"verbosity": -1, "num_threads": 1}, lightgbm.Dataset(x, y), num_boost_round=3)
    folder = tmp_path / "models"
    (folder / "deep").mkdir(parents=True)
    booster.save_model(folder / "deep" / "mine.txt")
    (folder / "broken.txt").write_text("tree\nversion=v4\nnum_tree_per_iteration=1\n")
    (folder / "notes.txt").write_text("no model")
    (folder / "old.pkl").write_bytes(b"")
    return folder


def check(home, **options):
    few = {"params": {"num_leaves": 3, "num_iterations": 4}, "datasets": "iris", "seeds": 2}
    return check_upgrade("lightgbm", "installed", "installed", home=home, **few, **options)


def test_models_of_the_cells_and_of_the_user_are_loaded_in_both_versions(home, kept_pool, models):
    found = check(home, models=models, rows="iris")
    states = {(model.name, model.saved_by): model.state for model in found.models}
    assert states == {
        ("iris", "old"): "identical",
        ("iris", "new"): "identical",
        ("deep/mine.txt", "user"): "identical",
        ("broken.txt", "user"): "fails in both",
    }
    assert found.exit_code == 2  # a model that nobody can load is no proof
    assert any("notes.txt and old.pkl" in note for note in found.notes)
    (models / "broken.txt").unlink()
    assert check(home, models=models, rows="iris").exit_code == 0


def test_models_with_named_columns_categories_and_other_boosters_are_loaded(home, kept_pool, tmp_path):
    import catboost
    import pandas as pd
    import xgboost

    frame = pd.DataFrame({"size": np.linspace(0, 1, 60), "color": ["red", "green", "blue"] * 20})
    frame.assign(price=frame["size"] ** 2).to_csv(tmp_path / "own.csv", index=False)
    own, folders = f"{tmp_path / 'own.csv'}:price", {name: tmp_path / name for name in ("xgboost", "catboost")}
    for folder in folders.values():
        folder.mkdir()
    numbers = frame.assign(color=frame["color"].astype("category").cat.codes)
    for booster in ("gbtree", "gblinear"):
        data = xgboost.DMatrix(numbers, label=frame["size"])
        xgboost.train({"booster": booster, "nthread": 1, "verbosity": 0}, data, 3).save_model(
            folders["xgboost"] / f"{booster}.json"
        )
    quiet = {"iterations": 3, "allow_writing_files": False, "silent": True, "thread_count": 1}
    model = catboost.CatBoostRegressor(**quiet).fit(frame, frame["size"], cat_features=["color"])
    model.save_model(str(folders["catboost"] / "named.cbm"))
    model = catboost.CatBoostRegressor(**quiet).fit(numbers, frame["size"])
    model.save_model(str(folders["catboost"] / "numbers.json"), format="json")
    for library, folder in folders.items():
        about = {"datasets": own, "params": {"max_depth": 2}, "models": folder, "rows": own, "seeds": 2, "home": home}
        found = check_upgrade(library, "installed", "installed", **about)
        assert len([one for one in found.models if one.saved_by == "user"]) == 2
        assert {(one.state, one.reason) for one in found.models} == {("identical", "")}


def test_a_folder_without_models_is_refused(home, tmp_path):
    with pytest.raises(ConfigError, match="must be a folder with models of lightgbm"):
        check(home, models=tmp_path, rows="iris")
