"""`boosters-eval importances`: a mistake in its own options is one sentence, and nothing runs."""

import pytest


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["-s", "0"], "The '--seeds' option must be a count from 1 to 10000. Got '0' instead."),
        (["-s", "many"], "The '--seeds' option must be a count from 1 to 10000. Got 'many' instead."),
        (["-s", "auto"], "The '--seeds' option must be a count from 1 to 10000. Got 'auto' instead."),
        (["--kinds", ""], "The '--kinds' option must name one of permutation, gain, split, shap. Got none instead."),
        (["--kinds", ", "], "The '--kinds' option must name one of permutation, gain, split, shap. Got none instead."),
        (
            ["--format", "xml"],
            "The '--format' option must be markdown, json, csv, html, latex or table. Got 'xml' instead.",
        ),
        (
            ["--format", "table", "-o", "a.md"],
            "Use either --format table, which is for a terminal, or --output, not both.",
        ),
        (["--group", "a=bmi", "a=bp"], "The '--group' option must be a new NAME=COLUMN,COLUMN. Got 'a=bp' instead."),
        (["--kinds", "gian"], "Unknown kind 'gian'. Did you mean 'gain'? Known: gain, permutation, shap, split."),
    ],
)
def test_a_mistake_is_told_in_one_sentence(boosters_eval, place, options, told):
    done = boosters_eval("importances", "-d", "diabetes", "-l", "sklearn", *options, check=3)
    assert (done.stdout, done.stderr) == ("", f"Error: {told}\n")
    assert not (place / "home" / "runs").exists()


def test_auto_is_named_where_it_is_offered(boosters_eval):
    done = boosters_eval("compare", "-d", "diabetes", "-l", "sklearn", "-s", "0", check=3)
    assert done.stderr == "Error: The '--seeds' option must be a count from 1 to 10000, or auto. Got '0' instead.\n"


def test_the_help_offers_what_works_and_nothing_else(boosters_eval):
    told = " ".join(boosters_eval("importances", "--help", check=0).stdout.split())
    assert "markdown (or md), json, csv, html, latex or table" in told
    assert "--track" in told
    assert "--highlight-significant" not in told


SMALL = (
    "importances",
    "-d",
    "diabetes",
    "-l",
    "sklearn",
    "-s",
    "1",
    "--kinds",
    "permutation",
    "--permutations",
    "1",
    "-q",
)


def test_several_groups_are_given_as_several_words(boosters_eval):
    groups = ("--group", "blood=s1,s2", "body=bmi,bp")
    done = boosters_eval(*SMALL, "-p", "n_estimators=2", *groups, "--format", "json", check=0)
    assert '"blood"' in done.stdout
    assert '"body"' in done.stdout


def test_the_history_says_that_it_does_not_compare_importances(boosters_eval):
    for name in ("first", "second"):
        boosters_eval(*SMALL, "-p", f"n_estimators={len(name)}", "--name", name, check=0)
    why = "the history compares scores and times of benchmarks, not runs of importances"
    shown = "'boosters-eval report --run RUN' shows one of importances"
    differing = boosters_eval("history", "diff", "first", "second", check=3).stderr
    assert differing.startswith("Error: The runs '")
    assert differing.endswith(f"' cannot be compared: {why}; {shown}.\n")
    assert boosters_eval("history", "report", check=2).stderr == f"Error: There is nothing to report: {why}; {shown}.\n"
    assert boosters_eval("history", "export", check=0).stderr.count(" is an importances run, which") == 2
    assert "importances: importances" not in boosters_eval("history", check=0).stdout
    for command in ("runs", "history"):
        told = [line.split() for line in boosters_eval(command, "show", "second", check=0).stdout.splitlines()]
        assert ["kind", "importances"] in told
        assert ["data", "diabetes"] in told


def test_its_report_goes_to_the_file_that_is_named(boosters_eval, place):
    boosters_eval(*SMALL, "-p", "n_estimators=2", check=0)
    boosters_eval("report", "--run", "last", "-o", "z.html", check=0)
    assert (place / "z.html").read_text().startswith("<!doctype html>")
