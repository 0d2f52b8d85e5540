"""`upgrade-check` and `determinism` at the command line: mistakes, what is printed and written, exit codes."""

import json
import re

import pytest

from boosters_eval.programs.upgrade.findings import UpgradeFindings
from boosters_eval.runners import RUNNERS
from upgrades import write_planted, write_planted_runner


@pytest.fixture(autouse=True)
def _no_planted_library_is_left():
    yield
    if "planted" in RUNNERS:
        RUNNERS.unregister("planted")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("nope", "1.0", "2.0"), "Unknown library 'nope'."),
        (("xgboost", "1.0"), "NEW"),
        (("xgboost", "nothing.whl", "2.0"), "there is no file or folder"),
        (("xgboost", "installed", "==2.0"), "NEW must be a version such as 1.2.3, a wheel, a source folder, or"),
        (("xgboost", "1", "2", "--tolerance", "-1"), "The '--tolerance' option must be standard deviations of the"),
        (("xgboost", "1", "2", "--suite", "quick", "-d", "iris"), "Use either --suite or --dataset, not both."),
        (("xgboost", "1", "2", "--models", "."), "The '--models' option needs --rows too."),
        (("xgboost", "1", "2", "--rows", "iris"), "The '--rows' option needs --models too."),
        (("xgboost", "1", "2", "--models", ".", "--rows", "iris"), "must be a folder with models of xgboost"),
        (("sklearn", "1", "2", "--models", ".", "--rows", "iris"), "saved by pickle alone"),
        (("xgboost", "1", "2", "--params", "none.json"), "none.json"),
        (("xgboost", "1", "2", "-s", "1"), "The '--seeds' option must be a count from 2"),
        (("xgboost", "1", "2", "-o", "a.csv"), "The '--output' option must end in .md, .txt, .json or .html"),
    ],
)
def test_a_mistake_is_one_sentence(boosters_eval, place, arguments, sentence):
    assert sentence in boosters_eval("upgrade-check", *arguments, check=3).stderr


def test_parameters_that_are_no_object_are_refused(boosters_eval, place):
    (place / "params.json").write_text("[1]")
    done = boosters_eval("upgrade-check", "xgboost", "1", "2", "--params", "params.json", check=3)
    assert "The '--params' option must be a JSON object of names and values. Got [1]." in done.stderr


def test_the_answer_has_four_lines_and_every_format_tells_it(boosters_eval, place):
    library, old = write_planted_runner(place), write_planted(place / "old", "1.0")
    new = write_planted(place / "new", "1.1", fewer={"multiclass": 1})
    asked = ("upgrade-check", library, str(old), str(new), "-d", "iris", "-d", "diabetes", "-s", "2")
    first, sure, cost, pin = boosters_eval(*asked, "-q", check=1).stdout.splitlines()
    assert first.startswith("Changes results: iris changes (")
    assert sure.startswith("How sure: 6 identical, 6 changed, in 2 splits each")
    assert cost.startswith("Cost: ")
    assert "training time" in cost  # first, unless other programs used the processors
    assert pin == "Pin: plantedbooster==1.0"
    again = (*asked, "--resume")
    written = boosters_eval(*again, "-f", "markdown", check=1).stdout
    assert "**Pin:** `plantedbooster==1.0`\n" in written
    boosters_eval(*again, "-o", "answer.json", check=1)
    found = UpgradeFindings.model_validate_json((place / "answer.json").read_text())
    assert (found.old, found.new, found.pin, found.answer) == ("1.0", "1.1", "plantedbooster==1.0", "changes")
    boosters_eval(*again, "-o", "answer.html", check=1)
    assert "iris, leafwise" in (place / "answer.html").read_text()


def test_what_is_installed_is_safe_to_use_in_place_of_itself(boosters_eval, place):
    (place / "params.json").write_text(json.dumps({"max_iter": 3}))
    asked = ("upgrade-check", "sklearn", "installed", "installed", "-d", "iris", "-s", "2", "--params", "params.json")
    assert boosters_eval(*asked, "-q", check=0).stdout.startswith("Safe: sklearn ")
    written = boosters_eval(*asked, "--resume", "-f", "markdown", check=0).stdout
    assert re.search(r"Pin:\*\* `scikit-learn>=[\d.]+,<[\d.]+`\n", written)  # as it is to be copied


def test_determinism_names_what_trains_another_model(boosters_eval, place):
    library = write_planted_runner(place)
    wheel = write_planted(place / "chance", "1.0", chance=["multiclass"])
    asked = ("determinism", f"chance={library}@{wheel}", "-d", "iris", "-d", "diabetes")
    done = boosters_eval(*asked, "-q", check=1)
    assert done.stdout.startswith("chance trains another model with the same seed: multiclass with nothing more.")
    boosters_eval(*asked, "--resume", "-o", "matrix.json", check=1)
    probes = json.loads((place / "matrix.json").read_text())["probes"]
    found = {(one["task"], one["question"]): one["outcome"] for one in probes}
    assert found["multiclass", "again"] == found["multiclass", "process"] == "different"
    assert found["multiclass", "rows"] == "not supported"  # of what differs anyway, nothing else can be told
    assert found["regression", "again"] == found["regression", "process"] == "identical"


def test_determinism_tells_a_race_of_threads_from_another_order_of_sums(boosters_eval, place):
    library = write_planted_runner(place)
    wheel = write_planted(place / "race", "1.0", race=["regression"])
    asked = ("determinism", f"race={library}@{wheel}", "-d", "iris", "-d", "diabetes")
    done = boosters_eval(*asked, "-q", check=1)
    assert "race trains another model with the same seed: regression with nothing more on 2 threads." in done.stdout
    boosters_eval(*asked, "--resume", "-o", "matrix.json", check=1)
    found = {
        (one["task"], one["question"]): one["outcome"]
        for one in json.loads((place / "matrix.json").read_text())["probes"]
    }
    assert found["regression", "again"] == found["regression", "process"] == "identical"
    assert found["regression", "threads again"] == "different"
    assert {found["multiclass", name] for name in ("again", "process", "threads again", "threads")} == {"identical"}


def test_a_data_set_that_nobody_knows_is_refused_by_determinism(boosters_eval, place):
    assert "Unknown data set 'nope'." in boosters_eval("determinism", "sklearn", "-d", "nope", check=3).stderr
