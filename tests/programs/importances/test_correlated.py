"""Columns that tell the same are told, so that nobody reads ranks among them."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from boosters_eval.programs.importances.checks import FEWEST_VARIED, find_correlated_columns

RNG = np.random.default_rng(3)
A, B = RNG.normal(size=(2, 500))


def test_a_duplicated_column_is_told_in_one_sentence():
    near = A + RNG.normal(size=500) * 0.06
    (found,) = find_correlated_columns(np.column_stack([A, B, near]), ("a", "b", "near"))
    assert (found.a, found.b) == ("a", "near")
    assert found.value == pytest.approx(spearmanr(A, near).statistic)
    assert found.text == f"a is {found.value:.3f} correlated with near: ranks among them mean little."


def test_the_order_is_what_counts_and_its_opposite_is_as_good():
    (found,) = find_correlated_columns(np.column_stack([A, -np.exp(A)]), ("a", "b"))
    assert found.value == pytest.approx(-1)
    assert "1.000 correlated" in found.text


def test_independent_and_constant_columns_are_not_told():
    assert find_correlated_columns(np.column_stack([A, B, np.ones(500)]), ("a", "b", "c")) == ()
    assert find_correlated_columns(np.ones((5, 1)), ("a",)) == ()


def test_missing_values_do_not_hide_a_duplicate():
    a = A.copy()
    a[::7] = np.nan
    (found,) = find_correlated_columns(np.column_stack([a, a]), ("a", "b"))
    assert found.value == pytest.approx(1)


def test_categories_are_compared_with_categories_alone():
    codes = RNG.integers(0, 4, 500).astype(float)
    renamed = (3 - codes) * 2
    x = np.column_stack([codes, renamed, codes, RNG.integers(0, 3, 500)])
    found = find_correlated_columns(x, ("c", "d", "number", "e"), categorical=(0, 1, 3))
    assert [(one.a, one.b, one.measure) for one in found] == [("c", "d", "Cramér's V")]
    assert found[0].value == pytest.approx(1)


def test_categories_that_hardly_repeat_say_nothing():
    many = np.arange(100.0)
    assert find_correlated_columns(np.column_stack([many, many]), ("a", "b"), categorical=(0, 1)) == ()


def rare(n_rows, others):
    """A column of zeros but for some rows."""
    column = np.zeros(n_rows)
    column[:others] = np.arange(1, others + 1) % 2 + 1
    return column


@pytest.mark.parametrize("n_rows", [30, 359])
@pytest.mark.parametrize("categorical", [(), (0, 1)])
def test_a_handful_of_rows_tells_nothing_of_two_columns(n_rows, categorical):
    for others, told in ((1, 0), (FEWEST_VARIED - 1, 0), (FEWEST_VARIED, 1)):
        x = np.column_stack([rare(n_rows, others)] * 2)
        assert len(find_correlated_columns(x, ("a", "b"), categorical)) == told


@pytest.mark.parametrize("categorical", [(), (0, 1)])
def test_missing_is_a_value_and_those_present_must_not_be_a_handful(categorical):
    few = np.full(200, np.nan)
    few[: FEWEST_VARIED - 1] = [1, 2, 3] * 3
    assert find_correlated_columns(np.column_stack([few, few]), ("a", "b"), categorical) == ()
    few[: FEWEST_VARIED + 2] = [1, 2, 3] * 4
    assert len(find_correlated_columns(np.column_stack([few, few]), ("a", "b"), categorical)) == 1


def test_duplicates_in_small_data_are_told():
    (found,) = find_correlated_columns(np.column_stack([A[:30], A[:30]]), ("a", "b"))
    assert found.value == pytest.approx(1)
