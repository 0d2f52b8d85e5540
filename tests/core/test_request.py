import pytest
from hypothesis import given
from hypothesis import strategies as st

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.request import Repeat

REPEATS = st.builds(Repeat, st.integers(), st.none() | st.integers(0))


@given(REPEATS)
def test_a_name_is_read_back(repeat):
    assert Repeat.parse(repeat.name) == repeat


@given(REPEATS, REPEATS)
def test_names_and_texts_tell_repeats_apart(first, second):
    assert (first.name == second.name) == (str(first) == str(second)) == (first == second)


@pytest.mark.parametrize(
    ("repeat", "name", "text"),
    [
        (Repeat(42), "42", "seed 42"),
        (Repeat(42, 0), "42/0", "seed 42, fold 0"),
        (Repeat(7, 1), "7/1", "seed 7, fold 1"),
    ],
)
def test_both_spellings(repeat, name, text):
    assert (repeat.name, str(repeat), f"{repeat}") == (name, text, text)


@pytest.mark.parametrize("wrong", ["", "a", "4.2", "42/", "/1", "42/1/2", "42 ", "42\n", "42/-1", "seed 42"])
def test_anything_else_is_refused_in_one_sentence(wrong):
    with pytest.raises(ConfigError, match="such as 42 or 42/1"):
        Repeat.parse(wrong)
