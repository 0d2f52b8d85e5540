"""The real libraries: one and the same model has one and the same reasons, and what breaks is found by numbers."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from boosters_eval import DatasetConfig, Task, TrainingConfig, importances
from boosters_eval.cli.app import run as program
from boosters_eval.programs.importances.tables import write_answer
from boosters_eval.runners import RUNNERS
from tiny import shared_pool

pytestmark = pytest.mark.usefixtures("kept_pool")

LIBRARIES = [name for name in ("boosters", "xgboost", "lightgbm", "catboost", "sklearn") if not RUNNERS[name].missing()]
SOUND = [name for name in LIBRARIES if name != "boosters"]  # on pre-binned columns; only for what is expected
ROUND = TrainingConfig(n_estimators=1, learning_rate=1.0, max_depth=3, n_leaves=8, l2=1.0)
REPAIRED = """
import numpy as np
from boosters_eval.runners.boosters_runner import BoostersRunner

class Repaired(BoostersRunner):
    name = "repaired"

    @classmethod
    def attributions(cls, translation, model, x):
        raw = np.asarray(cls.raw(translation, model, x), dtype=np.float64)
        found = np.zeros((len(x), x.shape[1] + 1, raw.shape[1]))
        found[:, 0] = raw
        return found
"""


def binned():
    """Few integers a column, of which no node lacks one: every library then has the same thresholds."""
    rng = np.random.default_rng(1)
    x = rng.integers(0, 12, size=(1500, 6)).astype(np.float32)
    z = x / 12
    y = 3 * z[:, 0] + 2 * np.sin(6 * z[:, 1]) + 3 * z[:, 2] * z[:, 3] + 2 * z[:, 4] - 2 * z[:, 5] ** 2
    return x, y + 0.3 * rng.standard_normal(len(x))


def dataset(loader=binned, name="binned", **changes):
    return DatasetConfig(name=name, task=Task.REGRESSION, loader=loader, **changes)


@pytest.fixture(scope="module")
def explained(tmp_path_factory):
    where = tmp_path_factory.mktemp("home")
    given = {"seeds": 2, "training": ROUND, "permutations": 2}
    return importances(dataset(), LIBRARIES, home=where, executor=shared_pool(), **given)


@pytest.fixture(scope="module")
def findings(explained):
    (found,) = explained.to_model().findings
    return found


def test_the_sound_libraries_agree_on_the_attributions_of_one_and_the_same_model(findings):
    assert set(SOUND) <= set(findings.sound("shap"))
    pairs = [one for one in findings.agreement if one.kind == "shap" and not one.own]
    among = [one for one in pairs if one.a in SOUND and one.b in SOUND]
    assert len(among) == len(SOUND) * (len(SOUND) - 1) / 2
    for one in among:
        assert one.largest <= 1e-5
        assert one.distance <= 1e-5
        assert one.tau == pytest.approx(1)
        assert one.cosine == pytest.approx(1)


@pytest.mark.skipif("boosters" not in LIBRARIES, reason="boosters is not installed")
def test_attributions_that_do_not_add_up_are_found_by_the_check(findings, explained):
    wrong = [
        np.abs(explained.measured(cell, "shap").sum(axis=1) - explained.array(cell.raw)).max()
        for cell in explained.results
        if cell.library == "boosters"
    ]
    failed = {check.check for check in findings.failed("boosters")}
    assert ("local accuracy" in failed) == (max(wrong) > 1e-3)  # the day it is repaired, nothing here need be changed
    if failed:
        assert "boosters" not in findings.sound("shap")
        assert "boosters" in findings.sound("gain")
        assert "Left out because of a failed check: boosters." in write_answer(findings)
        tables = explained.to_model().tables
        assert all(any(note.startswith("* boosters: ") for note in table.notes) for table in tables)


@pytest.mark.skipif("boosters" not in LIBRARIES, reason="boosters is not installed")
def test_the_mark_goes_when_the_attributions_are_sound(home, tmp_path):
    (tmp_path / "mended.py").write_text(REPAIRED, encoding="utf-8")
    library = f"{tmp_path / 'mended.py'}:Repaired"
    (found,) = importances(dataset(), [library, "xgboost"], seeds=1, training=ROUND, kinds="shap").to_model().findings
    assert found.failed(found.libraries[0]) == ()
    assert set(found.sound("shap")) == set(found.libraries)


WITHOUT_SHAP = """
import sys
from importlib.machinery import PathFinder

class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name == "shap" else super().find_spec(name, path, target)

sys.meta_path[:] = [Without if finder is PathFinder else finder for finder in sys.meta_path]
"""


@pytest.mark.skipif("sklearn" not in LIBRARIES, reason="scikit-learn is not installed")
def test_without_shap_one_reason_stands_for_the_attributions_and_all_else_is_measured(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_SHAP, encoding="utf-8")
    options = ["-d", "diabetes", "-l", "sklearn", "xgboost", "-s", "1", "-p", "n_estimators=3", "--kinds", "gain,shap"]
    done = subprocess.run(
        [sys.executable, "-m", "boosters_eval", "importances", *options, "--format", "json", "-q"],
        env={**os.environ, "PYTHONPATH": str(tmp_path), "BOOSTERS_EVAL_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    reason = (
        "sklearn has no SHAP importance: scikit-learn has none of its own: pip install 'boosters-eval[importances]'."
    )
    told = [table["name"] for table in document["tables"] if reason in table["notes"]]
    assert told == ["diabetes/gbdt: importance by SHAP"]
    assert reason not in document["notes"]
    found = {(one["library"], one["kind"]) for one in document["findings"][0]["importances"]}
    assert found == {("sklearn", "gain"), ("xgboost", "gain"), ("xgboost", "shap")}


def with_duplicate():
    x, y = binned()
    rng = np.random.default_rng(5)
    near = x[:, 0] + rng.normal(size=len(x)) * 0.1
    return np.column_stack([x, near]).astype(np.float32), y


def test_a_duplicated_column_and_a_sample_are_told(home):
    names = ("a", "b", "c", "d", "e", "f", "copy")
    data = dataset(with_duplicate, "doubled", feature_names=names)
    found = importances(data, ["xgboost"], seeds=1, training=ROUND, kinds="permutation", max_rows=100)
    notes = found.to_model().notes
    (told,) = [note for note in notes if "correlated" in note]
    assert re.fullmatch(r"a is (0\.99\d|1\.000) correlated with copy: ranks among them mean little\.", told)
    assert any(note.startswith("Measured on 100 of the 300 validation rows") for note in notes)


def test_the_command_writes_every_format_and_its_run_is_reported_again(home, tmp_path, capsys):
    base = ["importances", "-d", "diabetes", "-l", "xgboost", "lightgbm", "-s", "2", "-p", "n_estimators=5", "-q"]
    assert program([*base, "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["kind"] == "boosters-eval importances"
    assert document["findings"][0]["libraries"] == ["xgboost", "lightgbm"]
    assert document["answer"][0].startswith("Do they agree for the same reasons?")
    run = document["run_id"]
    assert program(["report", "--run", run, "-o", str(tmp_path / "out")]) == 0
    written = {path.suffix: path for path in (tmp_path / "out").iterdir()}
    assert set(written) == {".md", ".json", ".html"}
    again = json.loads(written[".json"].read_text(encoding="utf-8"))
    assert again["findings"] == document["findings"]
    capsys.readouterr()
    assert program([*base, "--format", "table", "--top", "3", "--resume"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Do they agree for the same reasons?")
    assert "The 3 most important of 10 features" in shown


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--format", "htm"], "'--format' option must be"),
        (["--format", "table", "-o", "x.md"], "--format table"),
        (["-q", "-v"], "--verbose or --quiet"),
        (["--test", "welch"], "--test"),
    ],
)
def test_a_mistake_in_the_presentation_is_told_before_anything_runs(home, capsys, options, words):
    assert program(["importances", "-d", "diabetes", *options]) == 3
    assert words in capsys.readouterr().err
    assert not (home / "runs").exists()
