"""The status of one number against another, and the verdict on all of them."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from boosters_eval.core.errors import ConfigError
from boosters_eval.programs.paper.comparison import MetricComparison, PaperComparison, judge
from boosters_eval.programs.paper.judge import compare_results
from boosters_eval.programs.paper.specification import Quantity
from factories import measured, paper, paper_results, paper_table

ORDER = ("match", "close", "within_tolerance", "deviation", "significant_deviation")
VALUES = st.decimals("-1000", "1000", places=3).filter(bool)
SIZES = st.decimals("0", "0.5", places=4)


def judged(printed, ours, absolute=None, relative=5.0, **options):
    return judge(Quantity(value=float(printed), printed=printed), ours, absolute, relative, **options)


@pytest.mark.parametrize(
    ("ours", "status"),
    [
        (100.99, "match"),
        (101.0, "close"),  # 1 % is not below 1 %
        (97.01, "close"),
        (103.0, "within_tolerance"),
        (105.0, "within_tolerance"),
        (105.01, "deviation"),
        (90.01, "deviation"),
        (110.0, "significant_deviation"),
        (-100.0, "significant_deviation"),
    ],
)
def test_the_status_follows_from_the_relative_difference(ours, status):
    assert judged("100.000", ours).status == status


@pytest.mark.parametrize("ours", [None, math.nan, math.inf, -math.inf])
def test_what_is_not_a_number_is_missing_whatever_the_tolerance(ours):
    found = judged("1.0", ours, math.inf if ours == math.inf else 1e300, 1e300)
    assert (found.status, found.within_tolerance) == ("missing", False)


@pytest.mark.parametrize(
    ("printed", "ours", "equal"),
    [
        ("0.874", 0.87379, True),
        ("0.874", 0.8734, False),
        ("0.4", 0.35, True),  # one of the two ways to round it
        ("0.40", 0.35, False),
        ("125", 125.4, True),
        ("1.2e3", 1249.0, True),
        ("0.0", 0.04, True),
        ("-0.5", -0.45, True),
    ],
)
def test_equal_to_all_printed_digits_is_a_match_whatever_the_difference(printed, ours, equal):
    found = judged(printed, ours, 0.0, 0.0)
    assert found.equal_as_printed == equal
    assert found.within_tolerance == equal
    assert found.status == "match" or not equal


def test_a_paper_value_of_zero_has_no_relative_difference():
    assert judged("0.00", 0.3, 0.5).status == "within_tolerance"
    assert judged("0.00", 0.3).status == "significant_deviation"
    assert judged("0.00", 0.3, higher_is_better=True).status == "better"
    assert judged("0.00", 0.3).relative_diff is None
    assert judged("0.00", 0.004).status == "match"


def test_a_negative_metric_is_compared_by_its_size():
    assert judged("-2.000", -2.02).relative_diff == 1.0
    assert judged("-2.000", -2.02).status == "close"
    assert judged("-2.000", -1.6, higher_is_better=True).status == "better"
    assert judged("-2.000", -2.4, higher_is_better=True).status == "significant_deviation"
    assert judged("-0.10", 0.10, higher_is_better=True).status == "better"


def test_better_is_a_label_that_hides_no_tolerance():
    assert judged("100.0", 102.0, higher_is_better=True).status == "close"
    inside, outside = (judged("100.0", ours, higher_is_better=True) for ours in (104.0, 120.0))
    assert (inside.status, inside.within_tolerance) == ("better", True)
    assert (outside.status, outside.within_tolerance) == ("better", False)
    assert judged("100.0", 120.0).status == "significant_deviation"  # no direction, no label
    assert judged("100.0", 80.0, higher_is_better=False).better is True


@given(value=VALUES, sizes=st.lists(SIZES, min_size=2, max_size=2), absolute=st.none() | st.floats(0, 10))
def test_a_larger_difference_never_has_a_better_status(value, sizes, absolute):
    near, far = (judged(str(value), float(value * (1 + size)), absolute) for size in sorted(sizes))
    assert ORDER.index(near.status) <= ORDER.index(far.status)
    assert near.within_tolerance >= far.within_tolerance


@given(value=VALUES, size=SIZES, higher=st.booleans())
def test_both_sides_are_judged_alike_and_only_one_is_better(value, size, higher):
    assume(size)
    above, below = (judged(str(value), float(value + sign * abs(value) * size)) for sign in (1, -1))
    assert above._replace(absolute_diff=0) == below._replace(absolute_diff=0)
    up, down = (
        judged(str(value), float(value + sign * abs(value) * size), higher_is_better=higher) for sign in (1, -1)
    )
    assert (up.better, down.better) == (higher, not higher)
    assert up.within_tolerance == down.within_tolerance == above.within_tolerance
    assert {up.status, down.status} <= {above.status, "better"}


def compared(printed, values, unit=None, our_unit=None, **tables):
    units = {"units": {"accuracy": unit}} if unit else {}
    ours = {"our_units": {"accuracy": our_unit}} if our_unit else {}
    spec = paper([paper_table({"accuracy": printed}, **units, **ours, **tables)])
    return compare_results(spec, paper_results(measured({"accuracy": values}))).targets[0].metrics[0]


@settings(max_examples=20)
@given(points=st.decimals("2", "100", places=1), ours=st.decimals("2", "100", places=3))
def test_percent_and_fractions_are_judged_alike(points, ours):
    fractions, percents = (float(ours / 100),), (float(ours),)
    share = f"{points / 100:.3f}"
    found = [
        compared(str(points), percents, "%", "%"),
        compared(str(points), percents, "%"),
        compared(str(points), percents),
        compared(str(points), fractions, "%", "fraction"),
        compared(str(points), fractions, "percent"),
        compared(str(points), fractions),
        compared(share, fractions, "fraction", "fraction"),
        compared(share, fractions),
        compared(share, percents),
        compared(share, percents, "fraction", "%"),
    ]
    assert len({(each.status, each.within_tolerance, each.equal_as_printed) for each in found}) == 1
    assert len({Decimal(repr(each.relative_diff)).normalize() for each in found}) == 1


def target_of(*pairs, row="XGBoost", **changes):
    """A table with a metric per pair of the paper's value and ours, in the same repeats."""
    metrics = {f"m{i}": printed for i, (printed, _) in enumerate(pairs)}
    values = {f"m{i}": (ours - 1e-5, ours, ours + 1e-5) for i, (_, ours) in enumerate(pairs)}
    return compare_results(paper([paper_table(metrics, row=row)]), paper_results(measured(values, row=row, **changes)))


GOOD, CLOSE, OFF, FAR = ("1.000", 1.001), ("1.000", 1.02), ("1.000", 1.07), ("1.000", 1.5)


@pytest.mark.parametrize(
    ("pairs", "verdict", "confidence", "code"),
    [
        ([GOOD], "reproduced", "medium", 0),
        ([GOOD, GOOD, CLOSE], "reproduced", "high", 0),
        ([GOOD, GOOD, ("1.000", 1.04)], "reproduced", "medium", 0),  # two thirds match or are close
        ([GOOD, OFF], "reproduced with deviations", "medium", 1),
        ([GOOD, OFF, OFF], "not reproduced", "low", 1),
        ([GOOD, GOOD, GOOD, FAR], "not reproduced", "low", 1),
        ([OFF], "not reproduced", "low", 1),
    ],
)
def test_the_verdict_and_the_confidence_follow_from_counts(pairs, verdict, confidence, code):
    found = target_of(*pairs)
    assert (found.verdict, found.confidence, found.exit_code) == (verdict, confidence, code)


def test_few_repeats_lower_the_confidence():
    assert target_of(GOOD, GOOD, GOOD).confidence == "high"
    spec = paper([paper_table({"a": "1.0", "b": "1.0", "c": "1.0"})])
    once = measured(dict.fromkeys("abc", (1.0,)))
    assert compare_results(spec, paper_results(once)).confidence == "medium"


def test_a_run_that_left_targets_out_is_never_of_high_confidence():
    spec = paper([paper_table({"a": "1.0", "b": "1.0", "c": "1.0"})])
    results = paper_results(measured(dict.fromkeys("abc", (0.999, 1.0, 1.001))))
    assert compare_results(spec, results).confidence == "high"
    assert compare_results(spec, results.replace(only=("Table 4",))).confidence == "medium"


@pytest.mark.parametrize("status", ["failed", "not_runnable"])
def test_a_target_that_did_not_run_as_planned_is_never_a_pass(status):
    found = target_of(GOOD, status=status, reason="It crashed.")
    assert (found.verdict, found.confidence, found.exit_code) == ("incomplete", "low", 2)
    assert found.targets[0].metrics[0].status == "missing"
    assert found.targets[0].metrics[0].explanation == "It crashed."
    assert found.targets[0].metrics[0].our_value == 1.001  # shown, but it proves nothing


def test_a_repeat_without_a_value_is_missing():
    found = target_of(GOOD, planned=4)
    assert found.targets[0].metrics[0].explanation == "'m0' has values from 3 of 4 repeats only."
    assert found.exit_code == 2


def test_a_metric_that_was_not_computed_is_missing():
    found = compare_results(paper([paper_table({"accuracy": "0.874", "auc": "0.9"})]), paper_results())
    assert [metric.status for metric in found.targets[0].metrics] == ["match", "missing"]
    assert found.exit_code == 2


def test_a_deviation_takes_precedence_over_what_is_missing():
    spec = paper([paper_table({"a": "1.0", "b": "1.0"})])
    found = compare_results(spec, paper_results(measured({"a": (2.0,)})))
    assert (found.verdict, found.exit_code) == ("not reproduced", 1)
    small = compare_results(paper([paper_table({"a": "1.00", "b": "1.0"})]), paper_results(measured({"a": (1.06,)})))
    assert (small.verdict, small.exit_code) == ("incomplete", 1)  # of the two, at most half may be outside


def test_without_a_primary_target_nothing_is_reproduced():
    found = compare_results(paper(reproduction_targets={"secondary": [{"table": "Table 4"}]}), paper_results())
    assert (found.counts["match"], found.verdict, found.exit_code) == (1, "incomplete", 2)


def test_a_secondary_deviation_decides_nothing_but_a_secondary_failure_is_an_error():
    tables = [paper_table(), paper_table({"rmse": "1.00"}, row="CatBoost") | {"id": "Table 5"}]
    targets = {"primary": [{"table": "Table 4"}], "secondary": [{"table": "Table 5"}]}
    spec = paper(tables, reproduction_targets=targets)
    other = measured({"rmse": (2.0,)}, table="Table 5", row="CatBoost", primary=False)
    assert compare_results(spec, paper_results(measured(), other)).exit_code == 0
    failed = other.replace(status="failed", reason="It crashed.")
    found = compare_results(spec, paper_results(measured(), failed))
    assert (found.verdict, found.exit_code) == ("reproduced", 2)


@pytest.mark.parametrize(
    ("field", "value"),
    [("status", "match"), ("within_tolerance", True), ("relative_diff", 0.1), ("our_value", 1.0), ("z_score", 0.0)],
)
def test_a_metric_whose_judgment_was_edited_is_refused(field, value):
    data = target_of(FAR).targets[0].metrics[0].model_dump()
    with pytest.raises(ConfigError, match="of the metric 'm0' does not follow from its values"):
        MetricComparison.model_validate({**data, field: value})


@pytest.mark.parametrize(("field", "value"), [("verdict", "reproduced"), ("confidence", "high"), ("exit_code", 0)])
def test_a_verdict_that_was_edited_is_refused(field, value):
    data = target_of(FAR).model_dump()
    with pytest.raises(ConfigError, match=f"The '{field}' does not follow from the targets"):
        PaperComparison.model_validate({**data, field: value})
