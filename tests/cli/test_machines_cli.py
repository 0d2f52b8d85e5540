"""A run whose cells name the machines of their nodes, from the command line to every file that it writes."""

import csv
import json

import pytest

from boosters_eval.engine.execute import EXECUTORS
from stamping import FAST, SLOW, Stamping

COMPARE = ["compare", "-d", "diabetes", "-l", "sklearn", "faulty", "-s", "4", "-p", "n_estimators=5,max_depth=1"]
LINE = (
    "The cells ran on 2 machines: Slow CPU, 4 cores, 15.6 GB (4 cells), Fast CPU, 16 cores, 62.8 GB (4 cells). Times"
    " and memory are compared within one machine only."
)


@pytest.fixture
def nodes(boosters_eval):
    """The command line, whose local executor says that it ran on two machines: even seeds here, odd ones there."""
    local = EXECUTORS["local"]
    EXECUTORS.register("local", Stamping, replace=True)
    yield boosters_eval
    EXECUTORS.register("local", local, replace=True)


def test_machines_are_named_from_the_journal_to_every_report(nodes, home, tmp_path):
    done = nodes(*COMPARE, check=0)
    assert LINE in " ".join(done.stdout.split())
    run_id = done.stderr.partition("run ")[2][:16]
    nodes("verify", run_id, check=0)
    shown = nodes("runs", "show", run_id, check=0).stdout
    (machines,) = (line for line in shown.splitlines() if line.startswith("machine "))
    assert set(machines.removeprefix("machine").strip().split("; ")) == {"Slow CPU (4 cells)", "Fast CPU (4 cells)"}
    nodes("report", "--run", run_id, "--type", "comparison", "--output", "reports", check=0)
    for path in (tmp_path / "reports").iterdir():
        text = path.read_text()
        for machine in ("4 cells on Fast CPU, 16 cores, 62.8 GB", "4 cells on Slow CPU, 4 cores, 15.6 GB"):
            assert machine in text, path
    (report,) = (tmp_path / "reports").glob("*.json")
    again = nodes("report", "--results", str(report), "--type", "comparison", "--dry-run", check=0)
    assert "4 cells on Fast CPU" in again.stdout
    (entry,) = json.loads(nodes("history", "--json", check=0).stdout)
    assert entry["machine"] == "+".join(sorted([SLOW.digest, FAST.digest]))


def test_csv_has_the_machine_of_each_cell(nodes, home):
    rows = list(csv.DictReader(nodes(*COMPARE, "-q", "-f", "csv", check=0).stdout.splitlines()))
    placed = {row["seed"]: row["machine"] for row in rows if row["status"] == "ok"}
    assert placed == {seed: (SLOW if int(seed) % 2 else FAST).digest for seed in placed}
    assert set(placed.values()) == {SLOW.digest, FAST.digest}


def test_the_same_run_here_has_the_same_scores_and_says_nothing_of_machines(nodes, home):
    there = json.loads(nodes(*COMPARE, "-q", "-f", "json", check=0).stdout)
    EXECUTORS.register("local", Stamping.__base__, replace=True)
    here = json.loads(nodes(*COMPARE, "-q", "-f", "json", check=0).stdout)
    assert [result["metrics"] for result in there["results"]] == [result["metrics"] for result in here["results"]]
    assert there["metadata"]["machines"].keys() == {SLOW.digest, FAST.digest}
    assert here["metadata"]["machines"] == {}
    assert not any("machine" in result for result in here["results"])
