"""What is said about data before it is used: a few lines on stderr, all of it on request, nothing if quiet."""

import json

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def fair(place):
    """A file with much to say about: more findings than fit a screen."""
    rng = np.random.default_rng(0)
    affairs = np.where(rng.random(300) < 0.3, rng.integers(1, 12, 300), 0)
    frame = pd.DataFrame(
        {
            "Unnamed: 0": np.arange(300),
            "key": rng.integers(10**18, 9 * 10**18, 300),
            "age": rng.integers(18, 60, 300),
            "code": [f"person {i}" for i in range(300)],
            "when": pd.date_range("2020-01-01", periods=300).strftime("%Y-%m-%d"),
            "one": 1,
            "affairs": affairs,
            "again": affairs * 2.0,
            "affair": (affairs > 0).astype(int),
        }
    )
    frame.to_csv(place / "fair.csv", index=False)
    return "fair.csv:affair"


def data_lines(done):
    lines = done.stderr.splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("Data: "))
    return [lines[start], *(line for line in lines[start + 1 :] if line.startswith("  "))]


def test_findings_are_said_before_the_run_the_gravest_first(fair, boosters_eval):
    done = boosters_eval("compare", "-d", fair, "-l", "faulty", "-s", "1", "-p", "max_depth=1", "--dry-run", check=0)
    lines = data_lines(done)
    assert lines[0].startswith("Data: fair.affair: binary (2 distinct values in 'affair', classes 0, 1), 300 rows,")
    assert lines[1] == "  leak: 'affairs' alone predicts 'affair': AUC 1.0000, out of sample [--drop affairs]"
    assert lines[-1] == "  and 2 more; --verbose shows them."
    assert len(lines) == 8
    assert "Data" not in done.stdout


def test_of_several_data_sets_only_what_is_grave_is_said(fair, boosters_eval):
    options = ("-l", "faulty", "-s", "1", "-p", "max_depth=1", "--dry-run")
    done = boosters_eval("compare", "-d", fair, "fair.csv:again", *options, check=0)
    told = [line for line in done.stderr.splitlines() if line.startswith(("Data: ", "  "))]
    assert told[0].startswith("Data: fair.affair: binary, 300 rows, 2 classes,")
    assert told[1] == "  'affairs' alone predicts 'affair' (--drop affairs)"
    assert all(line.startswith("Data: ") or "alone predicts" in line for line in told)


def test_all_of_them_are_said_on_request_and_none_if_quiet(fair, boosters_eval):
    command = ["compare", "-d", fair, "-l", "faulty", "-s", "1", "-p", "max_depth=1", "--dry-run"]
    lines = data_lines(boosters_eval(*command, "-v", check=0))
    assert [line.split(":")[0].strip() for line in lines[1:9]] == [
        *("leak", "leak", "id", "id", "id", "time-order", "duplicate-columns", "constant")
    ]
    assert "Data" not in boosters_eval(*command, "-q", check=0).stderr


def test_what_the_options_say_is_no_longer_said(fair, boosters_eval):
    drop = ["--drop", "affairs", "again", "Unnamed: 0", "key", "code", "one", "when"]
    lines = data_lines(boosters_eval("compare", "-d", fair, "-l", "faulty", "-s", "1", *drop, "--dry-run", check=0))
    assert len(lines) == 1
    assert "8 columns (7 dropped, 1 numeric)" in lines[0]


def test_nothing_is_said_of_a_bundled_data_set_without_findings_and_little_of_many(boosters_eval):
    quiet = boosters_eval("compare", "-d", "iris", "-l", "faulty", "-s", "1", "--dry-run", check=0)
    assert "Data" not in quiet.stderr
    said = boosters_eval("compare", "-d", "digits", "-l", "faulty", "-s", "1", "--dry-run", check=0)
    assert "Data: digits: multiclass, 1797 rows, 10 classes, 64 columns (3 constant, 61 numeric)" in said.stderr


def test_show_has_the_audit_in_full(fair, boosters_eval):
    text = boosters_eval("datasets", "show", fair, check=0).stdout
    assert "\n- id: Unnamed: 0, key, code\n" in text
    assert "\n- ! constant: 'one' is always 1 [--drop one]\n" in text
    shown = json.loads(boosters_eval("datasets", "show", fair, "--json", check=0).stdout)
    assert shown["audit"]["findings"][0] == {
        "kind": "leak",
        "text": "'affairs' alone predicts 'affair': AUC 1.0000, out of sample",
        "column": "affairs",
        "option": "--drop affairs",
    }
    assert "nothing suspicious" in boosters_eval("datasets", "show", "iris", check=0).stdout


def test_a_name_that_a_terminal_would_obey_is_harmless(place, boosters_eval):
    pd.DataFrame({"\u202ered": 1, "a": np.arange(40) % 7, "y": np.arange(40) % 2}).to_csv("evil.csv", index=False)
    done = boosters_eval("compare", "-d", "evil.csv:y", "-l", "faulty", "-s", "1", "--dry-run", check=0)
    assert "'\ufffdred' is always 1" in done.stderr
    assert "\u202e" not in done.stderr + boosters_eval("datasets", "show", "evil.csv:y", check=0).stdout
