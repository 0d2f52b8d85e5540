"""`tune` on the command line."""

import json
import shlex

import pytest

from boosters_eval.programs.tune import tasks

SMALL = ("tune", "-d", "diabetes", "-l", "boosters,lightgbm", "-n", "2", "-s", "2", "-p", "n_estimators=5")


def test_the_answer_comes_first_quietly_alone_and_is_written_in_any_format(boosters_eval, tmp_path):
    done = boosters_eval(*SMALL, check=0)
    head, *rest = done.stdout.split("\n## ")
    assert "Tuning on diabetes" in head
    assert rest[0].startswith("Answer")
    lines = [line for line in rest[0].splitlines() if line.startswith("- **")]
    labels = [line.removeprefix("- **").partition(":**")[0] for line in lines]
    assert labels[:2] == ["Which", "Worth it"]
    assert set(labels) <= {"Which", "Worth it", "How sure", "But", "Cost", "Next"}
    assert len(lines) <= 6
    assert "fits" in done.stderr
    quiet = boosters_eval(*SMALL, "--resume", "-q", check=0).stdout
    assert len(quiet.splitlines()) == len(lines)
    for ending in ("md", "html", "json"):
        path = tmp_path / f"tuned.{ending}"
        boosters_eval(*SMALL, "--resume", "-o", str(path), check=0)
        assert path.stat().st_size > 1000
    assert json.loads((tmp_path / "tuned.json").read_text())["kind"] == "boosters-eval tune"
    page = (tmp_path / "tuned.html").read_text()
    assert page.count("<polyline") == 4  # two libraries, by trials and by CPU time


def test_what_would_run_is_told(boosters_eval):
    done = boosters_eval(*SMALL, "--dry-run", check=0)
    assert "24 cells" in done.stdout
    assert "diabetes/gbdt-t2~1" in done.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("-n", "0"), "The '--trials' option must be a count from 1 to 1000. Got '0' instead."),
        (("--space", "wide"), "The '--space' option must be common or own. Got 'wide' instead."),
        (("--sampler", "sobal"), "Did you mean 'sobol'?"),
        (("--inner", "6"), "The '--inner' option must be a count from 1 to 5."),
        (("--budget", "soon"), "must be a time such as 90s, 10m or 1h"),
        (("--cpu-budget", "0"), "The '--cpu-budget' option must be seconds above 0."),
        (("--space", "own", "--early-stopping", "5"), "The '--early-stopping' option needs --space common"),
        (("--space", "own", "-p", "l2=3"), "The '--param' option is canonical: use --space common"),
        (("--space", "own", "--growth", "leafwise"), "The '--growth' option is canonical: use --space common"),
        (("--reuse", "--timing-mode"), "Use either --reuse or --timing-mode, not both"),
        (("-m", "auc"), "The metric 'auc_roc' does not fit the task 'regression'."),
        (("-d", "diabetis"), "Did you mean 'diabetes'?"),
        (("--split", "group:sex"), "its training rows must be split once more, by group 'sex'"),
    ],
)
def test_a_mistake_is_one_sentence(boosters_eval, words, sentence):
    done = boosters_eval("tune", "-l", "lightgbm", *words, "--dry-run")
    assert done.returncode == 3
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "thresholds", "advised"),
    [
        ((), {}, "--seeds 10"),
        ((), {"_MORE_SPLITS": 0, "_MOVING": -9}, "--trials 8"),
        (
            ("--early-stopping", "40"),
            {"_MORE_SPLITS": 0, "_MOVING": 9},
            "--param early_stopping_rounds=40,learning_rate=",
        ),
        (("--space", "own"), {"_MORE_SPLITS": 0, "_MOVING": 9}, "bagging_freq=1"),
    ],
)
def test_what_is_advised_runs_as_it_stands(boosters_eval, tmp_path, monkeypatch, words, thresholds, advised):
    for name, value in thresholds.items():
        monkeypatch.setattr(tasks, name, value)
    file = tmp_path / "tuned.json"
    boosters_eval("tune", "-d", "diabetes", "-l", "lightgbm", "-n", "4", "-s", "2", *words, "-o", str(file), check=0)
    command = json.loads(file.read_text())["tasks"][0]["command"]
    assert advised in command
    boosters_eval(*shlex.split(command)[1:], "--dry-run", check=0)
