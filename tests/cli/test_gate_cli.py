import json

import pytest

from boosters_eval import compare, gate
from boosters_eval.cli.app import run
from boosters_eval.runners.parameters import TrainingConfig

LIBRARY = "boosters"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Two real runs: the one under test has a quarter of the trees."""
    home = tmp_path_factory.mktemp("home")
    made = {}
    for name, trees in (("good", 8), ("poor", 2)):
        training = TrainingConfig(n_estimators=trees)
        found = compare("synthetic_reg_small", LIBRARY, seeds=10, training=training, home=home / name)
        found.to_json(home / f"{name}.json")
        made[name] = found.run_id
    return home, made


@pytest.fixture
def at(finished, tmp_path, monkeypatch):
    """Commands that run in a folder of their own, on one of the two homes."""
    home, made = finished
    monkeypatch.chdir(tmp_path)

    def call(name, *arguments):
        monkeypatch.setenv("BOOSTERS_EVAL_HOME", str(home / name))
        base = ("gate", "--run", made[name][:6], "--baseline", str(home / "good.json"), "--library", LIBRARY)
        return run([*base, "--threshold", "0.98", *arguments])

    return call


def test_an_unchanged_run_is_promoted_and_its_decision_verifies(at, tmp_path, capsys):
    assert at("good", "--no-held-out", "-o", "out/decision.json") == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("PROMOTED: tier bronze, threshold 0.98\n")
    assert "for people only         mean 1" in captured.out
    assert "Written: out/decision.json" in captured.err
    assert gate.verify_decision(tmp_path / "out" / "decision.json") == ""


def test_a_worse_run_is_held_with_its_worst_cases(at, capsys):
    assert at("poor", "--no-held-out") == 1
    out = capsys.readouterr().out
    assert out.startswith("HELD: tier bronze")
    assert "is below the threshold 0.98." in out
    assert "There is 1 config with other parameters than the baseline's" in out
    assert "synthetic_reg_small/gbdt|42: 0." in out


def test_other_parameters_are_named_and_can_be_allowed(at, capsys):
    assert at("poor", "--no-held-out", "--threshold", "0") == 1
    assert "parameters changed: " in capsys.readouterr().err
    assert at("poor", "--no-held-out", "--threshold", "0", "--allow-changed-parameters") == 0
    assert "parameters changed: " in capsys.readouterr().err


def test_without_held_out_cases_it_is_held(at, capsys):
    assert at("good") == 1
    assert "0 held-out cases; 5 are needed" in capsys.readouterr().out
    assert at("good", "--held-out", "synthetic_reg_small") == 0
    assert "(10 of 10 cases)" in capsys.readouterr().out


def test_a_tier_wants_its_cases(at, capsys):
    assert at("good", "--no-held-out", "--tier", "gold") == 1
    assert "There are 10 cases; tier gold needs 100." in capsys.readouterr().out
    assert at("good", "--no-held-out", "--tier", "gold", "--min-cases", "10") == 0


def test_the_decision_goes_to_the_home_unless_told_and_to_stdout_as_json(at, finished, capsys):
    home, made = finished
    assert at("good", "--no-held-out", "--json") == 0
    path = home / "good" / "gate" / f"{made['good'][:16]}-{LIBRARY}-bronze.json"
    assert json.loads(capsys.readouterr().out) == json.loads(path.read_text(encoding="utf-8"))
    assert at("good", "--no-held-out", "-q") == 0
    assert capsys.readouterr().out == ""


def test_scores_from_a_file_are_judged_alike(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"c{i:02},{0.95 + i / 1000},held_out\n" for i in range(20))
    (tmp_path / "scores.csv").write_text(f"case_id,score,class\n{rows}", encoding="utf-8")
    assert run(["gate", "--scores", "scores.csv", "--threshold", "0.95"]) == 0
    assert run(["gate", "--scores", "scores.csv", "--threshold", "0.96"]) == 1
    assert "c00: 0.95" in capsys.readouterr().out
    assert len(list((tmp_path / ".boosters-eval" / "gate").iterdir())) == 1


def test_many_bad_cases_are_counted_not_listed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.json").write_text(json.dumps({f"c{i}": 0.5 for i in range(14)}), encoding="utf-8")
    assert run(["gate", "--scores", "s.json", "--threshold", "0.9", "--no-held-out"]) == 1
    assert "and 4 more cases below the threshold" in capsys.readouterr().out


def test_what_cannot_be_computed_is_2(at, finished, tmp_path, capsys):
    home, _ = finished
    raw = json.loads((home / "good.json").read_text(encoding="utf-8"))
    for result in raw["results"]:
        result["split_digest"] = "0" * 64
    (tmp_path / "other.json").write_text(json.dumps(raw), encoding="utf-8")
    assert at("good", "--baseline", "other.json", "--no-held-out") == 2
    assert "differs from the baseline's" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--run", "no-such-run"], "No run 'no-such-run'"),
        (["--baseline", "nowhere.json"], "nowhere.json does not exist"),
        (["--library", "lightgbm"], "has no results for 'lightgbm', only for boosters"),
        (["--tier", "golt"], "Did you mean 'gold'"),
        (["--threshold", "2"], "The '--threshold' option must be from 0 to 1. Got 2.0 instead."),
        (["--threshold", "much"], "--threshold"),
        (["--min-cases", "3"], "The '--min-cases' option must be at least 10. Got 3 instead."),
        (["--held-out", "nothing"], "Unknown held-out config or data set 'nothing'"),
        (["--scores", "s.json"], "Use either --scores, or --run"),
        (["--output", "."], "it is a directory"),
    ],
)
def test_bad_input_is_3_in_one_sentence(at, capsys, arguments, message):
    assert at("good", *arguments) == 3
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_a_gate_without_a_source_is_3(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(["gate", "--threshold", "0.9"]) == 3
    assert run(["gate", "--run", "abc", "--threshold", "0.9"]) == 3
    assert run(["gate", "--scores", "s.json"]) == 3
    assert "Missing option '--threshold'" in capsys.readouterr().err
