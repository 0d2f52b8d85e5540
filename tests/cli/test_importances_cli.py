"""`boosters-eval importances`: a mistake in its own options is one sentence, and nothing runs."""

import pytest


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["-s", "0"], "The '--seeds' option must be a count from 1 to 10000. Got '0' instead."),
        (["-s", "many"], "The '--seeds' option must be a count from 1 to 10000. Got 'many' instead."),
        (["-s", "auto"], "The '--seeds' option must be a count. Got 'auto' instead."),
        (["--kinds", ""], "The '--kinds' option must name one of permutation, gain, split, shap. Got none instead."),
        (["--kinds", ", "], "The '--kinds' option must name one of permutation, gain, split, shap. Got none instead."),
        (
            ["--format", "tabel"],
            "The '--format' option must be markdown, json, csv, html or table. Got 'tabel' instead. Did you mean"
            " 'table'?",
        ),
        (
            ["--format", "table", "-o", "a.md"],
            "Use either --format table, which is for a terminal, or --output, not both.",
        ),
        (["--group", "a=bmi", "a=bp"], "The --group option must be a new NAME=COLUMN,COLUMN. Got 'a=bp' instead."),
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
    assert "markdown (or md), json, csv, html, or table" in told
    assert "--track" not in told


def test_several_groups_are_given_as_several_words(boosters_eval):
    asked = ("-l", "sklearn", "-s", "1", "--kinds", "permutation", "--permutations", "1", "-p", "n_estimators=2", "-q")
    groups = ("--group", "blood=s1,s2", "body=bmi,bp")
    done = boosters_eval("importances", "-d", "diabetes", *asked, *groups, "--format", "json", check=0)
    assert '"blood"' in done.stdout
    assert '"body"' in done.stdout
