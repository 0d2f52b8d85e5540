"""Does a library keep to its own definition? Judged by numbers: the same arrays under any name get the same verdict."""

import numpy as np
import pytest

from boosters_eval.programs.importances.checks import TOLERANCE_DOUBLE, check_library, format_roughly
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
