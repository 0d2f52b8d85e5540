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


def test_a_folder_without_models_is_refused(home, tmp_path):
    with pytest.raises(ConfigError, match="must be a folder with models of lightgbm"):
        check(home, models=tmp_path, rows="iris")
