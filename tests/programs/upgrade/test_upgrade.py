"""Two versions of a library whose differences are planted: each is found, and nothing else is called changed."""

import pytest

from boosters_eval import check_upgrade
from boosters_eval.core.errors import ConfigError

DATA = ("iris", "diabetes")


@pytest.fixture
def check(shelf, kept_pool):
    def call(new, old=None, datasets=DATA, **options):
        given = {"seeds": 2, "home": shelf.home, "datasets": datasets, **options}
        return check_upgrade(shelf.library, old or shelf.old, new, **given)

    return call


def states(found):
    return {cell.name: cell.state for cell in found.cells}


def test_a_version_against_itself_is_identical_in_every_cell(check, shelf):
    found = check(shelf.old)
    assert set(states(found).values()) == {"identical"}
    assert found.same_code
    assert (found.answer, found.exit_code) == ("safe", 0)


def test_a_planted_change_is_found_and_nothing_else_is_called_changed(check, shelf):
    found = check(shelf.wheel("fewer", fewer={"multiclass": 1}))
    changed = {name for name, state in states(found).items() if state == "changed"}
    assert changed == {name for name in states(found) if name.startswith("iris")}
    assert {state for name, state in states(found).items() if name not in changed} == {"identical"}
    assert found.exit_code == 1
    cell = next(cell for cell in found.cells if cell.name == "iris")
    assert cell.verdict in ("better", "worse", "equivalent", "cannot say")
    assert cell.largest > 0


@pytest.mark.parametrize(
    ("tolerance", "state", "code"), [(1e-6, "drift", 0), (1e-12, "changed", 1), (0.0, "changed", 1)]
)
def test_drift_is_what_the_tolerance_allows(check, shelf, tolerance, state, code):
    found = check(shelf.wheel("drift", off=1e-8), datasets="diabetes", tolerance=tolerance)
    assert set(states(found).values()) == {state}
    assert found.exit_code == code


def test_a_task_that_fails_now_is_a_change_and_one_that_works_now_is_none(check, shelf):
    broken = shelf.wheel("broken", broken=["multiclass"])
    found = check(broken, datasets="iris")
    assert states(found)["iris"] == "fails"
    assert "multiclass is no longer supported" in next(c.reason for c in found.cells if c.name == "iris")
    assert found.exit_code == 1
    back = check(shelf.old, old=broken, datasets="iris")
    assert states(back)["iris"] == "newly works"
    assert back.exit_code == 0


def test_what_fails_in_both_versions_is_no_proof_of_safety(check, shelf):
    found = check(
        shelf.wheel("broken", broken=["multiclass"]),
        old=shelf.wheel("also", "1.2", broken=["multiclass"]),
        datasets="iris",
    )
    assert states(found)["iris"] == "fails in both"
    assert (found.answer, found.exit_code, found.pin) == ("unanswered", 2, "")


def test_what_is_not_repeatable_is_not_called_changed(check, shelf):
    found = check(shelf.wheel("chance", "1.1", chance=["regression"]), old=shelf.wheel("luck", chance=["regression"]))
    assert states(found)["diabetes"] == "not repeatable"
    assert states(found)["iris"] == "identical"
    assert found.exit_code == 2


def test_what_only_one_version_says_of_parameters_is_told(check, shelf):
    found = check(shelf.wheel("says", says="The parameter rounds is deprecated"), datasets="diabetes")
    assert found.said_by_new == ("warning: The parameter rounds is deprecated",)
    assert found.said_by_old == ()
    assert found.exit_code == 0


def test_native_parameters_of_the_user_are_passed_to_both_versions(check, shelf):
    fewer = shelf.wheel("regression", "1.3", fewer={"regression": 1})
    found = check(fewer, datasets="diabetes", params={"rounds": 1, "n_threads": 4})
    assert list(states(found)) == ["diabetes"]
    assert found.cells[0].state == "changed"
    refused = check(shelf.old, datasets="diabetes", params={"depth": 3})
    assert states(refused) == {"diabetes": "fails in both"}
    assert "unexpected keyword argument 'depth'" in refused.cells[0].reason
    assert refused.exit_code == 2


@pytest.mark.parametrize(
    ("old", "new", "answer", "pin"),
    [
        ("3.1.3", "3.4.1", "safe", "xgboost>=3.1.3,<3.5"),
        ("3.1.3", "3.4.1", "changes", "xgboost>=3.1.3,<3.4.1"),
        ("3.4.1", "3.1.3", "safe", "xgboost>=3.1.3,<3.5"),
        ("3.4.1", "3.4.1", "safe", "xgboost>=3.4.1,<3.5"),
        ("3.4.1", "3.4.1", "changes", ""),
        ("3.1.3", "3.4.1", "unanswered", ""),
        ("unknown", "3.4.1", "safe", ""),
    ],
)
def test_the_pin_reaches_as_far_as_was_shown(old, new, answer, pin):
    from types import SimpleNamespace

    from boosters_eval.programs.upgrade.judge import write_pin

    assert write_pin("xgboost", SimpleNamespace(old=old, new=new, answer=answer)) == pin


def test_a_model_folder_needs_rows(check, shelf, tmp_path):
    with pytest.raises(ConfigError, match="The 'models' parameter needs 'rows' too"):
        check(shelf.old, models=tmp_path)
