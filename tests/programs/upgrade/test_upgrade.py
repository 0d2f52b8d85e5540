"""Two versions of a library whose differences are planted: each is found, and nothing else is called changed."""

import json

import numpy as np
import pytest
from packaging.requirements import Requirement

from boosters_eval import check_upgrade
from boosters_eval.core.errors import BuildImportError, ConfigError
from boosters_eval.programs.upgrade import plan
from boosters_eval.programs.upgrade.matrix import vary
from boosters_eval.programs.upgrade.request import UpgradeRequest

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


def test_a_cell_whose_parameter_the_library_does_not_have_proves_nothing_and_is_left_out(tmp_path):
    request = UpgradeRequest(library="sklearn", old="installed", new="installed", datasets="iris", home=tmp_path)
    made = plan.prepare_upgrade(request).plan
    trained = {made.specs[ref.spec].name for ref in made.refs}
    assert {"iris", "iris, column sampling"} <= trained
    assert "iris, row sampling" not in trained
    assert [(one.spec, one.reason) for one in made.excluded] == [("iris, row sampling", "there is no row sampling")]


def test_what_fails_in_both_versions_is_no_proof_of_safety(check, shelf):
    found = check(
        shelf.wheel("broken", broken=["multiclass"]),
        old=shelf.wheel("also", "1.2", broken=["multiclass"]),
        datasets="iris",
    )
    assert states(found)["iris"] == "fails in both"
    assert (found.answer, found.exit_code, found.pin) == ("unanswered", 2, "")


def test_what_the_matrix_asks_and_neither_version_can_do_stands_in_nobodys_way(check, shelf, monkeypatch):
    from boosters_eval.datasets.catalog import BUILTIN

    monkeypatch.setattr(plan, "list_matrix", lambda _: [vary(BUILTIN[name])[0] for name in DATA])
    sides = [
        shelf.wheel(name, version, broken=["multiclass"]) for name, version in (("also", "1.2"), ("broken", "1.1"))
    ]
    found = check(sides[1], old=sides[0], datasets=())
    assert states(found) == {"iris": "works in neither", "diabetes": "identical"}
    assert (found.answer, found.exit_code) == ("safe", 0)
    assert "in 1 cell." in found.document().answer[0]


def test_what_is_not_repeatable_is_not_called_changed(check, shelf):
    found = check(shelf.wheel("chance", "1.1", chance=["regression"]), old=shelf.wheel("luck", chance=["regression"]))
    assert states(found)["diabetes"] == "not repeatable"
    assert states(found)["iris"] == "identical"
    assert found.exit_code == 2


def test_a_version_whose_models_chance_decides_is_a_change(check, shelf):
    found = check(shelf.wheel("luck", chance=["regression"]))
    assert states(found)["diabetes"] == "changed"
    assert "another model each time" in next(cell.reason for cell in found.cells if cell.name == "diabetes")
    assert found.exit_code == 1


@pytest.mark.parametrize("side", ["old", "new"])
def test_what_the_machine_ended_says_nothing_of_a_version(check, shelf, side):
    starved = shelf.wheel("starved", starved=["multiclass"])
    found = check(starved, datasets="iris") if side == "new" else check(shelf.old, old=starved, datasets="iris")
    assert set(states(found).values()) == {"did not run"}
    assert "MemoryError: another program had it all" in found.cells[0].reason
    assert (found.answer, found.exit_code) == ("unanswered", 2)


def test_another_default_is_found_and_named_as_the_cause(check, shelf):
    found = check(shelf.wheel("default", "1.4", step=0.25))
    assert {(cell.state, cell.cause) for cell in found.cells} == {("changed", "step")}
    (default,) = found.defaults
    assert (default.name, default.old, default.new, len(default.cells)) == ("step", "0.3", "0.25", len(found.cells))
    assert f"{len(found.cells)} cells change by another default of step" in found.document().answer[0]


def test_another_default_that_does_not_explain_a_change_is_told_beside_it(check, shelf):
    found = check(shelf.wheel("both", "1.5", step=0.25, off=0.1), datasets="diabetes")
    assert {(cell.state, cell.cause) for cell in found.cells} == {("changed", "")}
    assert "other defaults do not explain all of it (step)" in found.document().answer[0]


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


def test_scores_of_one_class_against_the_rest_are_compared(kept_pool, tmp_path):
    about = {"datasets": "iris", "seeds": 2, "home": tmp_path, "params": {"objective": "multiclassova"}}
    assert states(check_upgrade("lightgbm", "installed", "installed", **about)) == {"iris": "identical"}


def test_a_project_is_checked_with_its_data_parameters_and_models(kept_pool, tmp_path):
    import lightgbm
    import xgboost

    x, colours = np.linspace(-1, 1, 80), ["red", "green", "", "blue"] * 20
    lines = [f"{'' if at % 7 == 0 else x[at]},{colours[at]},{x[at] ** 2 + (at % 4)}" for at in range(80)]
    (tmp_path / "own.csv").write_text("\n".join(["size,colour,price", *lines]))
    folder, rows = tmp_path / "models", np.stack([x, np.arange(80) % 4], axis=1)
    folder.mkdir()
    xgboost.train({}, xgboost.DMatrix(rows, label=x), 3).save_model(folder / "own.json")
    lightgbm.train({"verbosity": -1}, lightgbm.Dataset(rows, x), 3).save_model(folder / "other.txt")
    (folder / "params.json").write_text(json.dumps({"eta": 0.1}))
    own = f"{tmp_path / 'own.csv'}:price"
    about = {"datasets": own, "params": {"eta": 0.1, "maxdepth": 3}, "models": folder, "rows": own, "seeds": 2}
    found = check_upgrade("xgboost", "installed", "installed", home=tmp_path / "home", **about)
    assert [cell.state for cell in found.cells] == ["identical"]
    assert [(one.name, one.state) for one in found.models if one.saved_by == "user"] == [("own.json", "identical")]
    assert "Left out as no model of xgboost in a format of its own: other.txt and params.json." in found.notes
    assert found.said_by_both == ('warning: Parameters: { "maxdepth" } are not used.',)
    assert (found.said_by_old, found.said_by_new) == ((), ())


def test_a_version_that_needs_other_dependencies_gets_its_own(check, shelf, monkeypatch):
    install, asked = plan.resolve_build, []

    def refuse(text, *, home, isolated):
        asked.append((text.partition("=")[0], isolated))
        if isolated:
            return install(f"{text.partition('=')[0]}={shelf.library}@{shelf.old}", home=home)
        raise BuildImportError(f"{text} cannot be imported: numpy.dtype size changed.")

    monkeypatch.setattr(plan, "resolve_build", refuse)
    assert set(states(check("1.0", old="0.9", datasets="diabetes")).values()) == {"identical"}
    assert asked == [("old", False), ("old", True), ("new", False), ("new", True)]
    with pytest.raises(BuildImportError):  # nobody needs to be told that a wheel at hand is broken by a second one
        check(shelf.old, datasets="diabetes")


@pytest.mark.parametrize(
    ("old", "new", "answer", "pin"),
    [
        ("3.1.3", "3.4.1", "safe", "xgboost>=3.1.3,<3.5"),
        ("3.1.3", "3.4.1", "changes", "xgboost==3.1.3"),  # a release between may be the one that changes
        ("3.1.3", "3.4.1", "safe but", "xgboost==3.1.3"),
        ("3.4.1+cpu", "3.4.1+cuda", "safe", "xgboost>=3.4.1,<3.5"),
        ("3.4.1+cpu", "3.4.1+cuda", "changes", ""),
        ("1!3.1", "1!3.4", "safe", "xgboost>=1!3.1,<1!3.5"),
        ("3.4.1", "4.0.0.dev1", "safe", "xgboost>=3.4.1,<4.1"),
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
    if pin:
        assert old.partition("+")[0] in Requirement(pin).specifier


def test_a_model_folder_needs_rows(check, shelf, tmp_path):
    with pytest.raises(ConfigError, match="The 'models' parameter needs 'rows' too"):
        check(shelf.old, models=tmp_path)
