"""What casts doubt on rankings: libraries that break their own definition, and columns that tell the same.

Numbers decide: the same arrays under any name get the same verdict.
"""

import numpy as np
import pytest
from scipy.stats import spearmanr

from boosters_eval.programs.importances.checks import (
    FEWEST_VARIED,
    TOLERANCE_DOUBLE,
    check_library,
    find_correlated_columns,
    format_roughly,
)
from boosters_eval.programs.importances.records import Additivity, MeasuredKind, Probe
from explained import NAMES, SOUND, Cells


@pytest.fixture
def cells(tmp_path):
    return Cells(tmp_path)


def checks_of(cells, *found):
    checks = check_library(cells.run(*found), list(found))
    return {(check.check, check.kind): check for check in checks}


def local(cells, **changes):
    return checks_of(cells, cells.cell(**changes))["local accuracy", "shap"]


def test_sums_that_are_right_hold_and_the_number_is_told(cells):
    found = local(cells)
    assert found.verdict == "holds"
    assert found.tolerance == pytest.approx(TOLERANCE_DOUBLE, rel=1e-3)
    assert found.error < 1e-12


@pytest.mark.parametrize("name", ["boosters", "xgboost", "anything"])
def test_sums_that_are_wrong_fail_whatever_the_library_is_called(cells, name):
    found = local(cells, library=name, off=83.0)
    assert (found.verdict, found.error) == ("fails", pytest.approx(83))
    assert found.text.startswith("attributions do not add up: off by 83 where raw scores differ by ")


def sums_of(cells, raw, found, **changes):
    """The check on such raw scores and attributions, the base value last."""
    kinds = {"shap": cells.kept(found[:, :, None])}
    return local(cells, kinds=kinds, raw=cells.kept(raw[:, None]).array, **changes)


def added_up(offset=0.0, *, single=False, trees=100):
    """The raw scores of so many small trees, added to an offset one by one, and attributions to them."""
    rng = np.random.default_rng(0)
    kind = np.float32 if single else np.float64
    parts = (rng.normal(size=(40, trees)) / np.sqrt(trees)).astype(kind)
    raw = np.full(40, offset, dtype=kind)
    for tree in range(trees):
        raw = (raw + parts[:, tree]).astype(kind)
    shap = np.column_stack([parts[:, column::5].sum(axis=1, dtype=kind) for column in range(5)])
    return raw.astype(float), np.column_stack([shap.astype(float), np.full(40, float(kind(offset)))])


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("trees", [1, 100, 2000])
@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_rounding_is_no_failure(cells, single, trees, offset):
    assert sums_of(cells, *added_up(offset, single=single, trees=trees), n_trees_trained=trees).verdict == "holds"


@pytest.mark.parametrize("offset", [0.0, 1e6, -1e9])
def test_an_offset_of_the_targets_hides_no_fault(cells, offset):
    raw, found = added_up(offset)
    found[:, 2] = 0
    assert sums_of(cells, raw, found).verdict == "fails"
    assert sums_of(cells, *added_up(offset)).verdict == "holds"


def test_what_rounding_may_have_taken_cannot_be_checked(cells):
    raw, found = added_up(1e6, single=True)
    whole = sums_of(cells, raw, found)
    assert whole.verdict == "not checked"
    assert "cannot be checked: raw scores differ by" in whole.text
    found[:, 0] += 1e3
    assert sums_of(cells, raw, found).verdict == "fails"  # more than rounding can take


@pytest.mark.parametrize(("single", "verdict"), [(True, "holds"), (False, "fails")])
def test_a_fault_of_half_the_tolerance_is_found_in_double_precision_alone(cells, single, verdict):
    raw, found = added_up(single=single)
    found[0, 0] += 5e-5 * np.ptp(raw)
    assert sums_of(cells, raw, found).verdict == verdict


def test_equal_raw_scores_need_no_attributions(cells):
    raw, found = np.full(40, 7.3), np.zeros((40, 6))
    found[:, -1] = 7.3
    assert sums_of(cells, raw, found).verdict == "holds"
    found[:, -1] = 7.4
    assert sums_of(cells, raw, found).verdict == "fails"


@pytest.mark.parametrize("off", [np.nan, np.inf])
def test_what_is_not_a_number_fails(cells, off):
    found = local(cells, off=off)
    assert (found.verdict, found.error) == ("fails", None)
    assert "not numbers" in found.text


def test_values_that_cannot_be_used_fail_by_their_kind_alone(cells):
    fault = MeasuredKind(fault="An explanation must be finite: 3 of its 7 values are not.")
    good, other = cells.cell(seed=1), cells.cell(seed=2)
    for kind, check in (("shap", "local accuracy"), ("gain", "constant column"), ("split", "constant column")):
        found = checks_of(cells, good, other.model_copy(update={"kinds": {**other.kinds, kind: fault}}))
        failed = {(one.check, one.kind) for one in found.values() if one.verdict == "fails"}
        assert failed == {(check, kind)}
        assert found[check, kind].text.endswith(
            "cannot be used. An explanation must be finite: 3 of its 7 values are not"
        )


def test_one_bad_cell_among_good_ones_decides(cells):
    good, bad = cells.cell(seed=1), cells.cell(seed=2, off=7.0)
    assert checks_of(cells, good, bad)["local accuracy", "shap"].verdict == "fails"


def test_the_compared_models_decide_and_a_small_extra_model_is_told_beside(cells):
    probe = Probe(n_rows=10, n_rounds=2, additivity=Additivity(error=1.0, scale=2.0, n_rows=10))
    found = local(cells, probe=probe)
    assert found.verdict == "holds"
    assert found.text.endswith("; those of a small extra model do not: off by 1.0 where raw scores reach 2.0")
    without = {kind: m for kind, m in cells.cell().kinds.items() if kind != "shap"}
    assert local(cells, probe=probe, kinds=without, raw=None).verdict == "fails"  # all that is known of them


def test_what_is_not_offered_has_its_reason_and_what_was_not_asked_for_is_not_checked(cells):
    cell = cells.cell(interactions=None, no_interactions="there are none")
    found = checks_of(cells, cell)["interactions", "shap"]
    assert (found.verdict, found.text, found.error) == ("not offered", "there are none", None)
    without = {kind: m for kind, m in cell.kinds.items() if kind != "shap"}
    alone = cells.cell(kinds=without, raw=None, probe=None, interactions=None)
    assert checks_of(cells, alone)["local accuracy", "shap"].verdict == "not checked"
    refused = cells.cell(kinds={"shap": MeasuredKind(reason="needs shap")}, raw=None, probe=None)
    assert checks_of(cells, refused)["local accuracy", "shap"].verdict == "not offered"


def test_interactions_that_do_not_add_up_fail(cells):
    wrong = Additivity(error=0.5, scale=2.0, n_rows=3)
    assert checks_of(cells, cells.cell(interactions=wrong))["interactions", "shap"].verdict == "fails"
    assert checks_of(cells, cells.cell(interactions=SOUND))["interactions", "shap"].verdict == "holds"


@pytest.mark.parametrize("kind", ["gain", "split", "shap"])
def test_a_constant_column_must_get_exactly_nothing(cells, kind):
    fine = checks_of(cells, cells.cell())["constant column", kind]
    assert (fine.verdict, fine.error, fine.tolerance) == ("holds", 0.0, 0.0)
    probe = Probe(n_rows=10, n_rounds=2, constant={kind: 1e-9})
    assert checks_of(cells, cells.cell(probe=probe))["constant column", kind].verdict == "fails"


@pytest.mark.parametrize("kind", ["permutation", "gain", "split", "shap"])
def test_constant_columns_of_the_data_itself_are_checked(cells, kind):
    unused, used = NAMES.index("noise"), NAMES.index("age")
    assert checks_of(cells, cells.cell(constant=(unused,)))["constant column", kind].verdict == "holds"
    assert checks_of(cells, cells.cell(constant=(used,)))["constant column", kind].verdict == "fails"


@pytest.mark.parametrize(
    ("value", "shown"),
    [(9_500_000.0, "9.5e+06"), (-250_000.0, "-2.5e+05"), (17.3, "17"), (0.41, "0.41"), (1.8e-7, "1.8e-07"), (0.0, "0")],
)
def test_a_large_error_is_written_as_a_small_one_is(value, shown):
    assert format_roughly(value) == shown


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
