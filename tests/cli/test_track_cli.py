"""The options and the command of trackers, as typed."""

import random

import pytest

from processes import PLUGINS


@pytest.fixture(autouse=True)
def _nothing_installed(monkeypatch):
    monkeypatch.setattr("boosters_eval.tracking.tracker.find_spec", lambda _: None)


QUICK = ("compare", "-d", "iris", "-l", "faulty", "-s", "1", "-p", "max_depth=1")


@pytest.mark.parametrize(
    "command",
    [
        QUICK,
        ("importances", "-d", "iris", "-l", "faulty", "-s", "1", "-p", "max_depth=1"),
        ("parity", "run", "--max-cells", "1"),
        ("paper", "run", "--spec", "benchmarks.yaml"),
    ],
)
def test_missing_extra_is_told_before_any_cell_runs(boosters_eval, place, command):
    done = boosters_eval(*command, "--track", "mlflow", check=2)
    assert done.stderr.splitlines()[-1] == (
        "Error: The tracker 'mlflow' needs mlflow: pip install 'boosters-eval[tracking]'."
    )
    assert not list(place.glob("home/runs/*"))


def test_unknown_tracker_gets_the_nearest_name(boosters_eval):
    done = boosters_eval(*QUICK, "--track", "mlflow,wandbb", check=3)
    assert "Error: Unknown tracker 'wandbb'. Did you mean 'wandb'?" in done.stderr


def test_earlier_run_is_sent_by_a_command_of_its_own(boosters_eval):
    done = boosters_eval("report", "--run", "last", "--track", "mlflow", check=3)
    assert "Use either --track or an earlier run, not both" in done.stderr
    assert "needs mlflow: pip install" in boosters_eval("track", "last", "--to", "mlflow", check=2).stderr
    assert "The '--to' option is required" in boosters_eval("track", "last", check=3).stderr
    refused = boosters_eval("track", "last", "--timeout", "0", check=3).stderr
    assert refused == "Error: The '--timeout' option must be a number of seconds above 0. Got '0' instead.\n"


def test_dry_run_lists_what_would_be_sent_without_the_tracker(boosters_eval):
    words = [*QUICK, "-q"]
    words[words.index("iris")] = "diabetes"
    boosters_eval(*words, check=0)
    done = boosters_eval("track", "last", "--to", "mlflow", "--dry-run", check=0)
    facts = [line.split(maxsplit=1) for line in done.stdout.splitlines() if line]
    assert ["command", " ".join(words)] in facts
    assert ["competitor", "diabetes/gbdt faulty"] in facts
    assert ["n_estimators", "100"] in facts
    assert facts[-1] == ["files", "report.html, results.json, journal.jsonl"]


def read_all(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_no_record_or_report_has_a_path_through_the_users_home(boosters_eval, place, monkeypatch):
    monkeypatch.setenv("HOME", str(place))
    random.seed(1)
    (place / "data").mkdir()
    rows = [f"{value},{2 * value}" for value in (random.random() for _ in range(100))]
    (place / "data" / "d.csv").write_text("\n".join(["a,y", *rows]))
    words = ["compare", "-d", f"{place}/data/d.csv:y", "-l", "sklearn", "-s", "1", "-q"]
    for name in ("out.html", "out.json", "out.md"):
        boosters_eval(*words, "--resume", "-o", f"{place}/{name}", check=0)
    command = "compare -d data/d.csv:y -l sklearn -s 1 -q -o out.html"
    assert command in boosters_eval("track", "last", "--to", "wandb", "--dry-run", check=0).stdout
    assert command in boosters_eval("runs", "show", "last", check=0).stdout
    found = {**read_all(place / "home" / "runs"), **{file: file.read_bytes() for file in place.glob("out.*")}}
    assert len(found) > 6
    assert not [path for path, content in found.items() if str(place).encode() in content]


def test_traceback_of_a_cell_has_no_path_through_the_users_home(program, place):
    home = PLUGINS.parents[1]
    env = {"HOME": str(home), "XDG_CACHE_HOME": str(place / "cache")}
    program("compare", "-d", "iris", "-l", "faulty", "-s", "1", "-p", "max_depth=12", "-q", env=env)
    (journal,) = place.glob("home/runs/*/journal.jsonl")
    assert "~/tests/plugins/faulty_runner.py" in journal.read_text()
    assert str(home) not in journal.read_text()
