"""The options and the command of trackers, as typed."""

import pytest


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
