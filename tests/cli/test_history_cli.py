"""The command `history`."""

import json
import subprocess
import sys

import pytest

from written_runs import SEEDS, results_file, written_run


@pytest.fixture
def runs(place):
    """Three nights: the second is worse, the third lost a cell."""
    home = place / "home"
    return [
        written_run(home, 1, 0.5, facts={"name": "first-night"}),
        written_run(home, 2, 0.6, version="1.1"),
        written_run(home, 3, 0.6, version="1.2", failed=SEEDS[:1]),
    ]


def test_runs_are_listed_with_commit_versions_machine_and_verdict(boosters_eval, runs):
    done = boosters_eval("history", check=0)
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[2:5]] == [folder.run_id for folder in reversed(runs)]
    assert "1 worse (boosters rmse on diabetes/gbdt)" in lines[3]
    assert all(word in lines[3] for word in ("c0ffee2", "boosters 1.1", "Test CPU, 2 CPUs aaaa00", "nightly", "6 done"))
    assert "5 done, 1 failed" in lines[2]
    assert "(first-night)" in lines[4]
    assert lines[4].rstrip().endswith("no run before")


def test_a_limit_says_how_many_there_are(boosters_eval, runs):
    done = boosters_eval("history", "--limit", "2", check=0)
    assert done.stderr == "Note: these are the latest 2 of 3 runs; --limit shows more.\n"


def test_a_limit_beyond_what_the_index_can_count_is_no_limit(boosters_eval, runs):
    assert boosters_eval("history", "--limit", "9" * 30, check=0).stdout == boosters_eval("history", check=0).stdout


@pytest.mark.parametrize("option", ["--suite", "--dataset", "--library", "--metric", "--machine"])
@pytest.mark.parametrize("name", ["\udcff", "%", "_"])
def test_a_name_that_is_no_text_or_a_pattern_is_one_that_no_run_has(boosters_eval, runs, option, name):
    done = boosters_eval("history", option, name, check=0)
    assert done.stdout == ""
    assert done.stderr.startswith("Note: no run in the history ")


@pytest.mark.parametrize("reference", ["\udcff", "last@\udcff", "last/" + "9" * 5000, "last/\u0661"])
def test_a_reference_that_nothing_can_have_is_refused_in_a_sentence(boosters_eval, runs, reference):
    assert boosters_eval("history", "show", reference, check=3).stderr.startswith("Error: ")


def test_json_has_every_change(boosters_eval, runs):
    found = json.loads(boosters_eval("history", "--json", "-l", "boosters", check=0).stdout)
    assert [run["changes"][0]["verdict"] for run in found] == ["inconclusive", "worse", "first"]
    assert found[1]["changes"][0]["before_mean"] == pytest.approx(0.5025)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            ("--dataset", "diabets"),
            "Note: no run in the history has the data set 'diabets'. Did you mean 'diabetes'?\n",
        ),
        (("--metric", "mape"), "Note: no run in the history has the metric 'mape'.\n"),
        (("--machine", "zzzz"), "Note: no run in the history meets all of these.\n"),
        (("--since", "2027-01-01"), "Note: no run in the history meets all of these.\n"),
    ],
)
def test_what_no_run_has_is_told(boosters_eval, runs, options, sentence):
    done = boosters_eval("history", *options, check=0)
    assert (done.stdout, done.stderr) == ("", sentence)


def test_wrong_arguments_get_a_sentence(boosters_eval, runs):
    for arguments, sentence in {
        (
            "--since",
            "yesterday",
        ): "The '--since' option must be a date such as 2026-01-31, or a time such as 12h, 30d or"
        " 8w. Got 'yesterday' instead.",
        ("--suite", "x", "reindex"): "Give the options after 'reindex', not before it.",
        ("show", "nothing"): "No run 'nothing' in the history of",
        ("export", "--format", "xml"): "The '--format' option must be json or csv. Got 'xml' instead.",
        ("export", "-o", "x.md"): "The '--output' option must end in .json or .csv unless --format is given.",
    }.items():
        done = boosters_eval("history", *arguments, check=3)
        assert sentence in done.stderr
        assert done.stderr.count("\n") == 1


def test_an_empty_home_is_told(boosters_eval, place):
    done = boosters_eval("history", check=0)
    assert "there are no runs in" in done.stderr
    assert not (place / "home").exists()


def test_one_run_is_shown_with_every_number(boosters_eval, runs):
    done = boosters_eval("history", "show", runs[1].run_id[:8], check=0)
    assert "c0ffee2 on main" in done.stdout
    assert done.stdout.splitlines()[-2].split() == [
        "diabetes/gbdt", "boosters", "1.1", "rmse", "0.6025", "6", "0.5025", "worse",
    ]  # fmt: skip
    assert f"the numbers before are those of run {runs[0].run_id}/1, which started 2026-01-0" in done.stderr


def test_damage_is_shown(boosters_eval, runs):
    (runs[2].path / "plan.json").write_text("{")
    assert "unreadable: plan.json is not a plan" in boosters_eval("history", check=0).stdout
    assert "unreadable: plan.json is not a plan" in boosters_eval("history", "show", runs[2].run_id, check=0).stdout
    done = boosters_eval("history", "diff", runs[1].run_id, runs[2].run_id, check=3)
    assert (
        f"The run '{runs[2].run_id}' cannot be compared, because it cannot be read: plan.json is not a plan."
        in done.stderr
    )
    for file in ("all.json", "all.csv"):
        assert "cannot be read" in boosters_eval("history", "export", "-o", file, check=2).stderr


def test_files_are_imported_although_one_of_them_is_none(boosters_eval, runs, place):
    good = results_file(place / "ci.json", written_run(place / "ci", 9, version="2"))
    bad = place / "bad.json"
    bad.write_text("{}")
    done = boosters_eval("history", "import", str(bad), str(good), str(place / "absent.json"), check=3)
    assert done.stderr.splitlines() == [
        f"Error: {bad} is not a boosters-eval results file.",
        f"{good}: 1 imported.",
        f"Error: {place / 'absent.json'} does not exist.",
    ]
    assert "1 imported" not in boosters_eval("history", "import", str(good), check=0).stderr
    assert len(boosters_eval("history", check=0).stdout.splitlines()) == 7


def test_export_and_reindex(boosters_eval, runs, place):
    assert (
        boosters_eval("history", "export", "-o", "out/all.json", check=0).stderr == "Written: out/all.json (3 runs)\n"
    )
    assert (
        boosters_eval("history", "export", "--limit", "1", check=0).stdout.count('"kind":"boosters-eval results"') == 1
    )
    assert len(boosters_eval("history", "export", "-f", "csv", check=0).stdout.splitlines()) == 4
    (place / "home" / "history.sqlite").write_text("nonsense")
    assert boosters_eval("history", "reindex", check=0).stderr == "Indexed: 3 runs.\n"


def test_a_run_enters_the_history_when_it_ends_and_leaves_it_when_it_is_removed(boosters_eval, place):
    boosters_eval("compare", "-d", "iris", "-l", "lightgbm", "-s", "2", "-p", "trees=2", "-q", check=0)
    assert (place / "home" / "history.sqlite").is_file()
    (run,) = json.loads(boosters_eval("history", "--json", check=0).stdout)
    assert (run["kind"], run["done"], list(run["versions"])) == ("benchmark", 2, ["lightgbm"])
    boosters_eval("runs", "remove", run["run_id"], "--yes", check=0)
    assert json.loads(boosters_eval("history", "--json", check=0).stdout) == []


def test_neither_a_listing_nor_showing_a_usual_run_loads_a_scientific_package(program, runs):
    """Each takes longer to load than the whole answer may take."""
    program("history", "reindex", check=0)
    code = (
        "import sys; from boosters_eval.cli.app import run; run(['history']); run(['history', '--metric', 'rmse'])\n"
        "run(['history', 'show', 'last', '--json'])\n"
        "print(sorted({'numpy', 'scipy', 'pandas'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
