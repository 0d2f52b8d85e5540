"""`paper run` and `paper validate` have every setting that runs have, and `paper list` says what they would run."""

import json
from pathlib import Path

import pytest

from boosters_eval import WORKLOADS
from boosters_eval.engine.runs import find_run
from boosters_eval.programs.paper.evaluate import Evaluate

SPEC = """\
paper: A Paper
seeds: 2
tables:
  - id: T
    datasets: [{name: Iris}]
    models:
      - {name: Good, run: {callable: "mine:good"}}
      - {name: Greedy, run: {callable: "mine:greedy"}}
      - {name: Pickle, run: {model: model.pkl}}
      - {name: Unbound}
    results:
      - {model: Good, dataset: Iris, metrics: {accuracy: 0.9}}
      - {model: Greedy, dataset: Iris, metrics: {accuracy: 0.9}}
      - {model: Pickle, dataset: Iris, metrics: {accuracy: 0.9}}
      - {model: Unbound, dataset: Iris, metrics: {accuracy: 0.9}}
reproduction_targets:
  primary: [{table: T}]
"""
COMMANDS = pytest.mark.parametrize("command", ["run", "validate"])


@pytest.fixture
def paper(boosters_eval, place):
    """A command on rows that are functions of a module beside the specification."""
    WORKLOADS.register("evaluate", Evaluate, replace=True)
    (place / "mine.py").write_text(
        "def good(): return {'accuracy': 0.9}\ndef greedy(): return {'accuracy': float(len(bytearray(2**31)) > 0)}\n"
    )
    (place / "benchmarks.yaml").write_text(SPEC)
    (place / "model.pkl").write_bytes(b"")

    def call(command, *more, only="T:Good", check=None):
        return boosters_eval("paper", command, "--spec", "benchmarks.yaml", "--only", only, *more, check=check)

    return call


@COMMANDS
def test_a_dry_run_shows_the_cells_and_what_is_left_out_and_writes_nothing(paper, place, command):
    done = paper(command, "--dry-run", only="T", check=0)
    assert done.stdout.splitlines()[1].startswith("  T:Good:Iris callable (Python ")
    assert done.stdout.splitlines()[1].endswith(" x 2")
    assert "  T:Unbound:Iris none: unsupported: Nothing is bound to this row" in done.stdout
    assert "run " in paper(command, "--dry-run", only="T:Unbound", check=2).stdout
    assert not (place / "home" / "runs").exists()
    assert not (place / "results").exists()


@COMMANDS
def test_a_run_has_a_name_observers_and_more_words(paper, place, command):
    done = paper(command, "--name", "mine", "--observer", "lines", "--verbose", "--jobs", "1", check=0)
    assert "2 cells to do\n" in done.stderr
    assert "Written: results/results.json" in done.stderr
    facts = find_run("mine", place / "home").facts(1)
    assert (facts.kind, facts.jobs, facts.command[:2]) == ("paper", 1, ("paper", command))
    verbose = paper(command, "--verbose", check=0).stderr
    assert "T:Good:Iris callable seed 42: accuracy 0.9 (" in verbose


@COMMANDS
def test_a_cell_that_wants_too_much_memory_fails(paper, command):
    done = paper(command, "--memory-limit", "1000", "--seeds", "1", "-q", only="T:Greedy", check=2)
    assert "MemoryLimit: needed more than the 1000 MB that a cell may allocate" in done.stderr


@COMMANDS
def test_an_earlier_attempt_is_continued_or_run_again(paper, command):
    assert "Note: there is no earlier attempt at this plan, so everything runs.\n" in paper(command, "--resume").stderr
    assert "Note" not in paper(command, "--resume", check=0).stderr
    assert "Note" not in paper(command, "--rerun-failed", check=0).stderr
    done = paper(command, "--resume", "--rerun-failed", check=3)
    assert done.stderr == "Error: Use either --resume or --rerun-failed, not both.\n"


@COMMANDS
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--jobs", "0"], "The '--jobs' option must be a count from 1 to 4096. Got '0' instead."),
        (["--seeds", "0"], "The '--seeds' option must be a count from 1 to 10000. Got '0' instead."),
        (["--threads", "0"], "The '--threads' option must be a count of at least 1, or -1. Got '0' instead."),
        (["--only", "T:God"], "Got 'T:God' instead. Did you mean 'T:Good'?"),
        (["--track", "nobody"], "Unknown tracker 'nobody'."),
        (["--observer", "line"], "Unknown observer 'line'. Did you mean 'lines'?"),
        (["--quiet", "--verbose"], "Use either --verbose or --quiet, not both."),
    ],
)
def test_a_mistake_is_one_sentence_and_nothing_runs(paper, place, command, options, sentence):
    done = paper(command, *options, check=3)
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (place / "home" / "runs").exists()
    assert not (place / "results").exists()


def test_a_specification_is_required(boosters_eval):
    for command, option in {
        "run": "--spec",
        "validate": "--spec",
        "compare": "--results",
        "report": "--comparison",
    }.items():
        assert boosters_eval("paper", command, check=3).stderr == f"Error: The '{option}' option is required.\n"


@COMMANDS
def test_a_paper_can_be_tracked(program, paper, place, command):
    options = ("--spec", "benchmarks.yaml", "--only", "T:Good", "T:Unbound", "--track", "noting")
    done = program("paper", command, *options, env={"NOTED": str(place / "noted")}, check=2)
    assert "Warning" not in done.stderr
    told = [json.loads(line) for line in (place / "noted").read_text().splitlines()]
    assert told[0]["facts"]["suite"] == "paper A Paper"
    assert told[-1]["competitors"]["T:Good:Iris|callable"]["means"]["accuracy"] == 0.9
    assert told[-1]["sizes"].keys() == {"measured.json", "journal.jsonl"}


def test_a_list_says_what_a_model_and_trust_would_change(boosters_eval, paper):
    def reasons(*options):
        listed = json.loads(boosters_eval("paper", "list", "--json", *options, check=0).stdout)
        return {target["row"]: target["reason"] for target in listed}

    told = reasons()
    assert told["Good"] == ""
    assert told["Unbound"] == "Nothing is bound to this row: give it a 'run', or its model with --model."
    assert told["Pickle"].endswith("is a pickle, which can run any code when it is opened: pass --allow-pickle.")
    told = reasons("--model", "model.pkl", "--allow-pickle")
    assert told["Unbound"] == told["Pickle"] == ""
    assert Path("model.pkl").exists()
