"""Devices on the command line: one sentence and exit 2 where there is none."""

import pytest


@pytest.fixture(autouse=True)
def _hidden(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "--suite", "ablation-device"),
        ("run", "--suite", "ablation-device", "--library", "xgboost", "--timing-mode"),
        ("compare", "-d", "iris", "-l", "xgboost", "--device", "cuda"),
        ("compare", "-d", "iris", "-l", "xgboost", "--variants", "cpu:", "gpu:device=cuda"),
        ("compare", "-d", "iris", "-l", "lightgbm", "--device", "cuda", "--profile", "defaults"),
        ("compare", "-d", "iris", "-l", "xgboost", "-p", "device=cuda", "early_stopping_rounds=3", "--seeds", "auto"),
        ("baseline", "record", "--suite", "ablation-device", "-o", "b.json"),
    ],
)
def test_without_a_device_nothing_runs_and_one_sentence_says_why(boosters_eval, place, arguments):
    done = boosters_eval(*arguments, check=2)
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("Error:")]
    assert line.startswith("Error: Nothing runs, because no library can train ")
    assert "there is no CUDA device here: the variable CUDA_VISIBLE_DEVICES hides every device" in line
    assert not done.stdout.strip()
    assert not (place / "b.json").exists()


def test_dry_run_names_each_cell_that_is_unsupported(boosters_eval):
    done = boosters_eval("run", "--suite", "ablation-device", "--dry-run", check=2)
    assert "gbdt-gpu catboost: unsupported: there is no CUDA device here" in done.stdout
    assert "gbdt-gpu boosters: unsupported: the library trains on CPUs only" in done.stdout
    assert "gbdt-cpu xgboost" in done.stdout
    assert "Error: Nothing runs" in done.stderr


def test_cpu_by_name_is_the_same_run(boosters_eval):
    named, unnamed = (
        boosters_eval("compare", "-d", "iris", "-l", "sklearn", "--dry-run", *more, check=0).stdout
        for more in ((), ("--device", "cpu"))
    )
    assert named == unnamed
