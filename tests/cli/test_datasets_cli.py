"""`datasets fetch` and `datasets show`, through the program's own entry."""

import json
import os

import numpy as np
import pandas as pd
import pytest

from boosters_eval.cli.app import run
from boosters_eval.datasets import DATASETS, materialize


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache of the test's own, and a pip that knows no index."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("BOOSTERS_EVAL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_show_tells_the_facts_and_plots_the_target(capsys):
    assert run(["datasets", "show", "iris"]) == 0
    lines = capsys.readouterr().out.splitlines()
    facts = dict(line.split(maxsplit=1) for line in lines[:4])
    assert facts == {"name": "iris", "task": "multiclass", "rows": "150", "columns": "4"}
    assert lines[-3:] == [f"{label}  50  {'#' * 40}" for label in range(3)]


def test_show_plots_numbers_in_ten_bins_that_hold_every_row(capsys):
    assert run(["datasets", "show", "california", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    counts = [bar["count"] for bar in shown["target distribution"]]
    assert len(counts) == 10
    assert sum(counts) == shown["rows"] == 20640
    assert shown["target"]["mean"] == pytest.approx(2.068558, abs=5e-7)
    assert shown["digest"] == materialize(DATASETS["california"]).digest


def test_show_names_categories_missing_values_and_queries(capsys):
    assert run(["datasets", "show", "adult"]) == 0
    text = capsys.readouterr().out
    assert "missing values  6465" in text
    assert "categorical     workclass, education" in text
    assert "official split  yes" in text
    assert run(["datasets", "show", "synthetic_rank_small"]) == 0
    assert "queries         50" in capsys.readouterr().out


def test_show_names_the_classes_and_says_nothing_twice(tmp_path, capsys):
    path = tmp_path / "mine.csv"
    days = pd.date_range("2000", periods=50)
    texts = {"when": np.random.default_rng(1).permutation(days).astype(str), "y": ["no", "yes"] * 25}
    pd.DataFrame(texts).to_csv(path, index=False)
    assert run(["datasets", "show", f"{path}:y"]) == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines()[-2:] == [f"{name:>3}  25  {'#' * 40}" for name in ("no", "yes")]
    assert (shown.out + shown.err).count("is read as dates") == 1
    assert run(["datasets", "show", f"{path}:y", "--json"]) == 0
    assert capsys.readouterr().err.count("is read as dates") == 1


def test_show_reads_a_users_file_and_says_what_it_inferred(tmp_path, capsys):
    path = tmp_path / "mine.csv"
    pd.DataFrame({"a": np.arange(50), "y": [f"c{i % 25:02}" for i in range(50)]}).to_csv(path, index=False)
    assert run(["datasets", "show", f"{path}:y"]) == 0
    text = capsys.readouterr().out
    assert "task inferred: multiclass (25 distinct values in 'y', which are text" in text
    assert text.splitlines()[-1].split()[:2] == ["others", "10"]
    assert run(["datasets", "show", f"{path}:a", "--task", "quantile"]) == 0
    assert "quantiles       0.1, 0.5, 0.9" in capsys.readouterr().out


def test_fetch_offline_is_one_sentence_and_exit_code_2(cache, capsys):
    assert run(["datasets", "fetch", "covertype"]) == 2
    told, error = capsys.readouterr().err.splitlines()
    assert told == "Downloading scikit-multiflow==0.4.1 (16 MB), which has the data."
    assert error.startswith("Error: Cannot download scikit-multiflow==0.4.1 through pip")
    assert not [path for path in cache.rglob("*") if path.is_file()]


def test_what_is_not_downloaded_names_the_command_and_exits_2(capsys):
    assert run(["datasets", "show", "covertype"]) == 2
    assert "run 'boosters-eval datasets fetch covertype'" in capsys.readouterr().err


def test_fetch_of_bundled_data_has_nothing_to_do(capsys):
    assert run(["datasets", "fetch", "iris"]) == 0
    assert capsys.readouterr().err == "iris needs no download.\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["fetch", "covertyp"], "Did you mean 'covertype'"),
        (["show", "irris"], "Did you mean 'iris'"),
        (["show", "iris", "--task", "multi"], "The '--task' option must be regression, binary"),
        (["show", "nowhere.csv:y"], "does not exist"),
    ],
)
def test_mistakes_are_one_sentence_and_exit_code_3(arguments, sentence, capsys):
    assert run(["datasets", *arguments]) == 3
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
