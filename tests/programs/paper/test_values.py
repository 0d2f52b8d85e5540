"""One cell: what it says, and what is never guessed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boosters_eval.core.terms import speaking_of
from boosters_eval.programs.paper.values import read_cell

FINITE = st.decimals(min_value="-99999", max_value="99999", places=4, allow_nan=False, allow_infinity=False)
SPOKEN = r"0.372±2.5e-3plus-or-minus0.3722.5𝑒-30.372\scriptscriptstyle\pm\scriptstyle 2.5e\text{-}3"
COLOURED = (
    r"0.857±1.9𝐞-𝟑plus-or-minus0.8571.9𝐞-3\mathbf{{\color[rgb]{0,0,1}\definecolor[named]{pgfstrokecolor}{rgb}{0,0,1}"
    r"0.857\scriptscriptstyle\pm\scriptstyle 1.9e\text{-}3}}"
)


@pytest.mark.parametrize(
    ("text", "value", "std", "unit"),
    [
        ("0.870", "0.870", None, ""),
        ("0.272978 (±0.0004) (+1.20%)", "0.272978", "0.0004", ""),
        ("0.4620.4620.462", "0.462", None, ""),
        (r"0.4280.428\mathbf{0.428}", "0.428", None, ""),
        (SPOKEN, "0.372", "2.5e-3", ""),
        (COLOURED, "0.857", "1.9e-3", ""),
        ("87.4%percent87.487.4\\%", "87.4", None, "%"),
        ("15,234", "15234", None, ""),
        (r"15\,234", "15234", None, ""),
        ("87.4%", "87.4", None, "%"),
        ("87.4 % ± 0.3 %", "87.4", "0.3", "%"),
        ("130.094 s", "130.094", None, "s"),
        ("18.9 (m)", "18.9", None, "m"),
        (r"\SI{18.9}{ms}", "18.9", None, "ms"),
        ("125M", "125", None, "M"),
        ("$0.13", "0.13", None, "$"),
        (r"$0.510 \pm 7.6e-3$", "0.510", "7.6e-3", ""),
        (r"$\mathbf{0.87}_{\pm .01}$", "0.87", ".01", ""),
        ("1.015405 +/- 0.0698", "1.015405", "0.0698", ""),
        ("0.87 (std=0.01)", "0.87", "0.01", ""),
        (r"$7.6\times10^{-3}$", "7.6e-3", None, ""),
        ("7.6×10⁻³", "7.6e-3", None, ""),
        ("−0.5", "-0.5", None, ""),
        ("𝟎.𝟖𝟕", "0.87", None, ""),
        ("0.87***", "0.87", None, ""),
        (r"\underline{0.87}$^\dagger$", "0.87", None, ""),
        ("0.75 [0.74, 0.76]", "0.75", None, ""),
        ("96.9 (↓ 12.3)", "96.9", None, ""),
    ],
)
def test_every_shape_of_a_printed_value_is_read_with_its_digits(text, value, std, unit):
    found = read_cell(text)
    assert not found.problem
    assert (found.value.printed, found.std and found.std.printed, found.unit) == (value, std, unit)


@pytest.mark.parametrize("text", ["", "-", "–", "—", "--", "---", "n/a", "N/A", "nan", "OOM"])
def test_a_value_that_the_paper_does_not_print_is_missing_not_unread(text):
    assert read_cell(text).missing


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("<0.01", "a bound"),
        ("best", "does not begin with a number"),
        ("(4.11)", "does not begin with a number"),
        ("0.87²", "'^{2}' after the number"),
        ("0.87 foo", "'foo' after the number"),
        ("0.6394/0.6024", "'/0.6024' after the number"),
        ("12 345", "'345' after the number"),
        ("0.4620.4620.46", "not one number"),
        ("0,874", "(decimal='comma')"),
        ("87,4", "(decimal='comma')"),
        ("1e999", "too large"),
        ("0.5 ± 0.1 ± 0.2", "two deviations"),
        ("5 ms %", "two units"),
        (r"12\unheard{3}", "⟨unheard⟩3"),
        ("9" * 301, "longer than 300 characters"),
        (r"\mathbf{" * 5000, "longer than 300 characters"),
    ],
)
def test_what_cannot_be_read_says_why_and_has_no_value(text, why):
    found = read_cell(text)
    assert found.value is None
    assert why in found.why


def test_a_decimal_comma_is_read_where_the_user_says_so():
    assert read_cell("0,874 ± 0,01", decimal="comma").value.printed == "0.874"
    assert read_cell("1.234,5", decimal="comma").value.printed == "1234.5"


@pytest.mark.parametrize(
    ("text", "std", "count"), [("3.41(69)", "0.69", 69), ("0.437 (31)", "0.031", 31), ("87 (2)", "2", 2)]
)
def test_parentheses_are_a_deviation_or_a_count_only_if_it_is_said_which(text, std, count):
    unsaid = read_cell(text)
    assert (unsaid.std, unsaid.count) == (None, None)
    assert unsaid.why.endswith("a deviation or a count? (parentheses='std|count')")
    with speaking_of({"parentheses": "--parentheses"}):  # whoever asked before, and however
        assert read_cell(text).why.endswith("a deviation or a count? (--parentheses std|count)")
    assert unsaid.value is not None  # the value itself is in no doubt
    assert read_cell(text, parentheses="std").std.printed == std
    assert read_cell(text, parentheses="count").count == count


def test_a_fraction_in_parentheses_is_no_count():
    assert read_cell("0.87 (0.01)", parentheses="std").std.printed == "0.01"
    assert "whole number" in read_cell("0.87 (0.01)", parentheses="count").problem


@pytest.mark.parametrize("text", [r"\textbf{0.5}", r"0.50.5\mathbf{0.5}", "𝟎.𝟓", r"\underline{0.5}"])
def test_emphasis_is_seen(text):
    assert read_cell(text).emphasis
    assert not read_cell("0.5").emphasis


@settings(max_examples=60, deadline=None)
@given(
    FINITE,
    FINITE,
    st.sampled_from(["{0} ± {1}", "{0} (±{1})", "**{0}±{1}**", r"${0} \pm {1}$", "{0}_{{±{1}}}", "{0}±{1}%"]),
)
def test_value_and_deviation_come_out_as_they_went_in(value, std, shape):
    std = abs(std)
    found = read_cell(shape.format(value, std).strip("*"))
    assert (found.value.printed, found.std.printed) == (str(value), str(std))
    assert (found.value.value, found.std.value) == (float(value), float(std))


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_read_missing_or_refused_but_never_breaks(text):
    found = read_cell(text)
    assert found.missing or found.problem or found.value.printed
