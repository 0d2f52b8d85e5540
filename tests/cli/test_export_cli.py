"""`check-export` at the command line: mistakes, what is printed, exit codes."""

import json

import numpy as np
import pytest


@pytest.fixture
def model(place):
    """A model with three columns, a sample, and an export that compares by < instead of <=."""
    import lightgbm as lgb

    x = np.random.default_rng(0).normal(size=(200, 3))
    lgb.train({"verbose": -1, "num_threads": 1}, lgb.Dataset(x, x.sum(axis=1)), 5).save_model("model.txt")
    np.savetxt("rows.csv", x[:20], delimiter=",")
    (place / "mine.py").write_text(
        "import lightgbm as lgb\nimport numpy as np\n"
        "def less(x):\n    return lgb.Booster(model_file='model.txt').predict(np.nextafter(x, np.inf))\n"
    )
    (place / "model.pkl").write_bytes(b"")
    (place / "model.doc").write_bytes(b"")
    return place


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("model.pkl", "--rows", "rows.csv"), "MODEL must not be a pickle"),
        (("model.doc", "--rows", "rows.csv"), "MODEL must end in one of"),
        (("none.txt", "--rows", "rows.csv"), "MODEL must be a file."),
        (("model.txt", "--rows", "none.csv"), "The '--rows' option must be a file."),
        (("model.txt",), "--rows"),
        (("model.txt", "--rows", "rows.csv", "--runtimes", "skops"), "must take models of lightgbm. skops does not."),
        (("model.txt", "--rows", "rows.csv", "--runtimes", "txt"), "must be among"),
        (
            ("model.txt", "--rows", "rows.csv", "--export", "none.onnx"),
            "files that are there. none.onnx is none.",
        ),
    ],
)
def test_a_mistake_is_one_sentence(boosters_eval, model, arguments, sentence):
    assert sentence in boosters_eval("check-export", *arguments, check=3).stderr


def test_it_says_which_thresholds_and_fails(boosters_eval, model):
    done = boosters_eval("check-export", "model.txt", "--rows", "rows.csv", "--export", "mine.py:less", check=1)
    assert "a value on a threshold goes the other way" in done.stdout
    assert "Which thresholds" in done.stdout


def test_it_says_that_the_same_is_predicted(boosters_eval, model):
    done = boosters_eval("check-export", "model.txt", "--rows", "rows.csv", "--runtimes", "text", "-f", "json", check=0)
    assert json.loads(done.stdout)["exports"][0]["state"] == "identical"
