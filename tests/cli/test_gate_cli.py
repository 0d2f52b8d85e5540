import json
import re
import shlex
from pathlib import Path

import pytest

from boosters_eval import compare
from boosters_eval.cli.app import run
from boosters_eval.datasets import catalog
from boosters_eval.programs.benchmark.suites import GATE_SUITE
from boosters_eval.programs.gate.decision import verify_decision
from boosters_eval.runners.parameters import TrainingConfig
from tiny import shared_pool

LIBRARY = "boosters"


DATASETS = [f"problem_{signal}_few" for signal in catalog.SIGNALS]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Real runs: of the released version, of the same with one more data set, and of one with fewer trees."""
    home = tmp_path_factory.mktemp("home")
    made = {}
    for name, trees, more in (("released", 8, []), ("good", 8, ["iris"]), ("poor", 2, [])):
        training = TrainingConfig(n_estimators=trees)
        asked = {"seeds": 1, "training": training, "home": home / name, "executor": shared_pool()}
        found = compare(DATASETS + more, LIBRARY, **asked)
        found.to_json(home / f"{name}.json")
        made[name] = found.run_id
    return home, made


@pytest.fixture
def at(finished, tmp_path, monkeypatch):
    """Commands that run in a folder of their own, on one of the homes."""
    home, made = finished
    monkeypatch.chdir(tmp_path)

    def call(name, *arguments):
        monkeypatch.setenv("BOOSTERS_EVAL_HOME", str(home / name))
        base = ("gate", "--run", made[name][:6], "--baseline", str(home / "released.json"), "--library", LIBRARY)
        return run([*base, "--threshold", "0.79", *arguments])

    return call


def test_an_unchanged_run_is_promoted_and_its_decision_verifies(at, tmp_path, capsys):
    assert at("good", "--no-held-out", "-o", "out/decision.json") == 0
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert lines[:11] == [
        "PROMOTED: tier bronze, threshold 0.79.",
        "  The lower bound 1.000 on 10 data sets reaches the threshold.",
        "",
        "lower bound (95 %)      1.000 on 10 data sets",
        "of the held-out         none",
        "threshold covered       at 91 %",
        "intraclass correlation  -",
        "flaky cells             none",
        "mean (not judged)       1.000, standard deviation 0",
        "terms                   chosen after the run: tier, threshold, held-out data sets",
        "",
    ]
    assert [line.partition(":")[0] for line in lines[11:]] == ["Note", "Note", "Note"]
    assert "Not checked of the baseline: it is a results file" in captured.out
    assert "Written: out/decision.json" in captured.err
    assert verify_decision(tmp_path / "out" / "decision.json") == ""


def test_a_worse_run_is_held_with_its_worst_cases(at, capsys):
    assert at("poor", "--no-held-out", "--threshold", "0.98") == 1
    out = capsys.readouterr().out
    assert out.startswith("HELD: tier bronze, threshold 0.98.\n  The lower bound ")
    assert "is below the threshold 0.98." in out
    assert "There are 10 configs with other parameters than the baseline's" in out
    assert re.search(r"problem_bowl_few/gbdt\|42 +0\.", out)


def test_other_parameters_are_named_and_can_be_allowed(at, capsys):
    assert at("poor", "--no-held-out", "--threshold", "0.1") == 1
    assert "parameters changed: " in capsys.readouterr().out
    assert at("poor", "--no-held-out", "--threshold", "0.1", "--allow-changed-parameters") == 0
    assert "parameters changed: " in capsys.readouterr().out


def test_without_held_out_data_sets_it_is_held(at, capsys):
    assert at("good") == 1
    assert "0 held-out data sets; 5 are needed" in capsys.readouterr().out
    assert at("good", "--held-out", *DATASETS[:5]) == 0
    assert "1.000 (5 of 10 data sets)" in capsys.readouterr().out


def test_a_tier_wants_its_data_sets(at, capsys):
    assert at("good", "--no-held-out", "--tier", "gold") == 1
    assert "There are 10 data sets; tier gold needs 100." in capsys.readouterr().out


def test_a_threshold_that_is_hardly_covered_is_held_unless_allowed(at, capsys):
    assert at("good", "--no-held-out", "--threshold", "0.98") == 1
    assert "The threshold 0.98 is too high for so few data sets" in capsys.readouterr().out
    assert at("good", "--no-held-out", "--threshold", "0.98", "--allow-low-coverage") == 0
    assert "threshold covered       at 18 %" in capsys.readouterr().out


def test_the_baseline_of_the_run_itself_is_held(at, finished, capsys):
    home, _ = finished
    assert at("good", "--no-held-out", "--baseline", str(home / "good.json")) == 1
    assert "The baseline was recorded from this very run" in capsys.readouterr().out


def test_the_decision_goes_to_the_home_unless_told_and_to_stdout_as_json(at, finished, capsys):
    home, made = finished
    assert at("good", "--no-held-out", "--json") == 0
    path = home / "good" / "gate" / f"{made['good'][:16]}-{LIBRARY}-bronze.json"
    assert json.loads(capsys.readouterr().out) == json.loads(path.read_text(encoding="utf-8"))
    assert at("good", "--no-held-out", "-q") == 0
    assert capsys.readouterr().out == ""


def test_scores_from_a_file_are_judged_alike(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"c{i:02},{0.95 + i / 1000},{'held_out' if i % 2 else 'dev'}\n" for i in range(20))
    (tmp_path / "scores.csv").write_text(f"case_id,score,class\n{rows}", encoding="utf-8")
    assert run(["gate", "--scores", "scores.csv", "--threshold", "0.85"]) == 0
    assert run(["gate", "--scores", "scores.csv", "--threshold", "0.95"]) == 1
    assert run(["gate", "--scores", "scores.csv", "--threshold", "0.95", "--allow-low-coverage"]) == 0
    assert run(["gate", "--scores", "scores.csv", "--threshold", "0.96"]) == 1
    assert "c00   0.95" in capsys.readouterr().out
    assert len(list((tmp_path / ".boosters-eval" / "gate").iterdir())) == 1


def test_many_bad_cases_are_counted_not_listed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.json").write_text(json.dumps({f"c{i}": 0.5 for i in range(14)}), encoding="utf-8")
    assert run(["gate", "--scores", "s.json", "--threshold", "0.9", "--no-held-out"]) == 1
    assert "and 4 more cases below the threshold" in capsys.readouterr().out


def test_what_cannot_be_computed_is_2(at, finished, tmp_path, capsys):
    home, _ = finished
    raw = json.loads((home / "released.json").read_text(encoding="utf-8"))
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
        (["--threshold", "2"], "The '--threshold' option must be above 0 and at most 1. Got '2' instead."),
        (["--threshold", "0"], "The '--threshold' option must be above 0 and at most 1. Got '0' instead."),
        (["--threshold", "much"], "--threshold"),
        (["--min-cases", "3"], "The '--min-cases' option must be at least 10, which tier bronze needs. Got 3 instead."),
        (["--tier", "gold", "--min-cases", "10"], "must be at least 100, which tier gold needs. Got 10 instead."),
        (["--allow-flaky", "-1"], "The '--allow-flaky' option must be a count of at least 0. Got '-1' instead."),
        (["--held-out", *DATASETS], "Some data sets must not be held out"),
        (["--held-out", DATASETS[0], "--no-held-out"], "Use either --held-out or --no-held-out"),
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
    told = "is required: the share of the quality that must be kept for certain. A good one is 0.79 for tier bronze"
    assert f"The '--threshold' option {told}" in capsys.readouterr().err


def test_a_decision_is_verified_by_its_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.json").write_text(json.dumps({f"c{i}": 1.0 for i in range(10)}), encoding="utf-8")
    assert run(["gate", "--scores", "s.json", "--threshold", "0.5", "--no-held-out", "-o", "d.json", "-q"]) == 0
    assert run(["verify", "d.json"]) == 0
    rules = "tier bronze, threshold 0.5, held-out data sets not required"
    same = f"rules ({rules}) and versions of tools as quoted; compared with s.json"
    assert capsys.readouterr().out == f"d.json: computed again, with the same bytes ({same})\n"
    (tmp_path / "t.json").write_text(json.dumps({f"c{i}": 0.9 for i in range(10)}), encoding="utf-8")
    assert run(["verify", "d.json", "--scores", "t.json"]) == 2
    assert capsys.readouterr().out == "d.json: what it quotes is not what t.json holds\n"
    assert run(["verify", "d.json", "--scores", "t.json", "-q"]) == 2
    assert run(["verify", "s.json"]) == 3
    assert run(["verify", "last", "--scores", "t.json"]) == 3
    assert capsys.readouterr().err.splitlines() == [
        "Error: s.json is not a gate decision.",
        "Error: --baseline and --scores are only for the file of a gate decision.",
    ]


PAGE = Path(__file__).parents[2] / "docs" / "gate.md"
TYPED = re.compile(r"^    boosters-eval (.*released\.json.*|run --suite gate)$", re.MULTILINE)
COMMANDS = [shlex.split(line) for line in TYPED.findall(PAGE.read_text(encoding="utf-8"))]


def test_the_commands_of_the_page_name_what_exists(at, tmp_path, capsys):
    record, execute, decide = COMMANDS
    assert (record[:4], execute) == (["baseline", "record", "--suite", "gate"], ["run", "--suite", "gate"])
    names = decide[decide.index("--held-out") + 1 :]
    assert len(names) >= 5
    assert set(names) <= {config.dataset.name for config in GATE_SUITE.configs}
    assert run(decide) == 3  # every option is known: only the file is missing
    assert "released.json does not exist" in capsys.readouterr().err


@pytest.mark.slow
def test_the_commands_of_the_page_work_as_typed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BOOSTERS_EVAL_HOME", str(tmp_path / "home"))
    record, execute, decide = COMMANDS
    assert run(record) == 0
    assert run(decide) == 1
    assert "The baseline was recorded from this very run" in capsys.readouterr().out
    assert run(execute) == 0
    capsys.readouterr()
    assert run(decide) == 0
    assert capsys.readouterr().out.startswith("PROMOTED: tier gold, threshold 0.97\n")
