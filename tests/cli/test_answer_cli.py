"""What a user reads first: the answer, the same in every format, and a next step that works as it stands."""

import json
import shlex

import numpy as np
import pandas as pd

from boosters_eval import compare
from boosters_eval.programs.benchmark.compare import ComparisonFindings
from boosters_eval.programs.benchmark.request import CompareRequest
from tiny import FEW, shared_pool

SMALL = ("-p", "max_depth=2,n_estimators=5")
TWO = ("compare", "-d", "iris", "-l", "sklearn", "lightgbm", "-s", "2", *SMALL)


def lines_of(text):
    return dict(line.split(": ", 1) for line in text.splitlines())


def follow(boosters_eval, line):
    """Run the command that a line ends in, as it stands."""
    program, *words = shlex.split(line[line.index("boosters-eval ") :])
    assert program == "boosters-eval"
    return boosters_eval(*words)


def test_quiet_prints_the_answer_alone_the_same_as_in_json(boosters_eval):
    said = boosters_eval(*TWO, "-q", check=0).stdout
    assert list(lines_of(said)) == ["Which", "How sure", "Cost", "Next"]
    data = json.loads(boosters_eval(*TWO, "-q", "-f", "json", check=0).stdout)
    same = ("Which", "How sure", "Next")  # times differ from run to run
    assert {label: lines_of("\n".join(data["answer"]))[label] for label in same} == {
        label: lines_of(said)[label] for label in same
    }


def test_in_a_pipe_markdown_begins_with_the_same_answer_and_folds_the_notes(boosters_eval):
    whole = boosters_eval(*TWO, check=0).stdout
    assert whole.startswith("# sklearn and lightgbm on iris\n\n## Answer\n\n- **Which:** ")
    assert whole.count("<details><summary>How this was judged and measured (") == 1
    assert whole.index("<details>") > whole.index("| Library")


def test_the_next_command_runs_as_it_stands(boosters_eval):
    said = lines_of(boosters_eval(*TWO, "-q", "--name", "mine", check=0).stdout)
    assert follow(boosters_eval, said["Next"]).returncode == 0
    single = lines_of(boosters_eval(*TWO, "-s", "1", "-q", check=0).stdout)
    assert "--seeds 5" in single["Next"]
    assert follow(boosters_eval, single["Next"]).returncode == 0


def test_following_what_is_said_of_a_leak_ends_it(place, boosters_eval):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 3))
    y = x[:, 0] + rng.normal(size=300)
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "in euro": (0.92 * y).round(4), "price": y.round(4)})
    frame.to_csv("my flats.csv", index=False)
    command = ("compare", "-d", "my flats.csv:price", "-l", "sklearn", "lightgbm", "-s", "2", *SMALL, "-q")
    said = lines_of(boosters_eval(*command, check=0).stdout)
    assert said["Which"].startswith("no answer yet. The data are suspect: 'in euro' alone predicts 'price'")
    assert said["Next"].endswith("--drop 'in euro'")
    done = follow(boosters_eval, said["Next"])
    assert done.returncode == 0
    assert "suspect" not in done.stdout


def test_a_run_from_python_has_a_command_too(boosters_eval):
    found = compare("iris", ["sklearn", "lightgbm"], seeds=2, training=FEW, executor=shared_pool())
    (line,) = [line for line in ComparisonFindings(found, CompareRequest())._tables().answer if line.startswith("Next")]
    assert follow(boosters_eval, line).returncode == 0
