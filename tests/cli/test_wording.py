"""What Python calls a parameter is an option on the command line, if it was typed."""

import pytest

from boosters_eval.cli.output import choose_format
from boosters_eval.core.errors import UnknownNameError
from boosters_eval.core.terms import given, named, speaking_of, the
from boosters_eval.core.text import count_of, lower_initial
from boosters_eval.programs.benchmark.request import CompareRequest


def test_a_parameter_is_named_as_the_caller_knows_it():
    assert the("seeds") == "The 'seeds' parameter"
    assert (named("seeds"), given("seeds", "auto"), given("resume")) == ("'seeds'", "seeds='auto'", "resume=True")
    with speaking_of({"seeds": "--seeds", "resume": "--resume"}):
        assert the("seeds") == "The '--seeds' option"
        assert the("max_depth") == "The 'max_depth' parameter"  # of a file, say, which is no option
        assert (named("seeds"), given("seeds", "auto"), given("resume")) == ("--seeds", "--seeds auto", "--resume")


def test_many_known_names_are_shortened_and_few_are_not():
    many = str(UnknownNameError("data set", "irs", ["iris", *(f"problem_{i:03}" for i in range(99))]))
    assert many.startswith("Unknown data set 'irs'. Did you mean 'iris'? Known: iris, problem_000, ")
    assert many.endswith(" and 88 others; 'boosters-eval list datasets --all' lists them all.")
    assert str(UnknownNameError("tier", "x", ["gold", "bronze"])) == "Unknown tier 'x'. Known: bronze, gold."


@pytest.mark.parametrize(("number", "text"), [(0, "0 cells"), (1, "1 cell"), (2, "2 cells")])
def test_one_of_a_kind_is_no_plural(number, text):
    assert count_of(number, "cell") == text


@pytest.mark.parametrize(
    ("label", "text"),
    [("Log loss", "log loss"), ("RMSE", "RMSE"), ("R²", "R²"), ("mine", "mine"), ("Brier", "Brier")],
)
def test_a_label_inside_a_sentence_begins_small_unless_it_is_an_abbreviation(label, text):
    assert lower_initial(label) == text


@pytest.mark.parametrize("name", ["md", "markdown"])
def test_both_names_of_markdown_are_accepted(name):
    assert choose_format(CompareRequest(format=name)) == "markdown"


def test_every_option_of_compare_that_has_a_default_states_it(boosters_eval):
    text = " ".join(boosters_eval("compare", "--help", check=0).stdout.split())
    for default in ("Default: gbdt", "Default: 5, or", "Default: depthwise", "Default: never", "Default: no limit"):
        assert default in text


@pytest.mark.parametrize("command", ["compare", "run"])
def test_the_help_on_seeds_names_all_that_is_accepted(boosters_eval, command):
    text = " ".join(boosters_eval(command, "--help", check=0).stdout.split())
    assert "Number of splits, or auto to add seeds until every pair has a verdict." in text
