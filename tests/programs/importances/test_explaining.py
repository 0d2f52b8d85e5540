"""`importances` from the request to the arrays: every library and task, samples, groups, builds, jobs, and resuming."""

import shutil
import subprocess
import time

import numpy as np
import pytest

from boosters_eval import (
    BoostersEvalWarning,
    ConfigError,
    DatasetConfig,
    RunError,
    Table,
    Task,
    TrainingConfig,
    UnknownNameError,
    prepare_comparison,
    prepare_importances,
)
from boosters_eval.api import compare, importances, load_importances, load_run, verify_run
from boosters_eval.cli.app import run
from boosters_eval.programs.benchmark.suites import cost_key, seconds_by_key
from boosters_eval.programs.importances.records import KINDS, Explanation, FeatureUnit, MeasuredKind
from boosters_eval.programs.importances.results import add_up_units
from boosters_eval.programs.importances.workload import limit_rows
from boosters_eval.runners import RUNNERS
from boosters_eval.runners.parameters import BoosterType
from processes import PROGRAM, environment

pytestmark = pytest.mark.usefixtures("kept_pool")

FEW = TrainingConfig(n_estimators=8, max_depth=3, n_leaves=8, min_samples_leaf=1)
LIBRARIES = [name for name in ("boosters", "xgboost", "lightgbm", "catboost", "sklearn") if not RUNNERS[name].missing()]
ROWS = 400


def rows(seed=0, columns=4):
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(ROWS, columns)).astype(np.float32)
    return x, 3.0 * x[:, 0] + 1.5 * x[:, 1] * x[:, 2] + 0.1 * draw.normal(size=ROWS)


def frame(task):
    x, score = rows()
    if task is Task.BINARY:
        return x, (score > 0).astype(np.float64)
    if task in (Task.MULTICLASS, Task.RANKING):
        return x, np.digitize(score, [-1, 1]).astype(np.float64)
    return x, score


def dataset(task, name=None, **changes):
    given = {"quantiles": (0.2, 0.8)} if task is Task.QUANTILE else {}
    return DatasetConfig(
        **{"name": name or f"made-{task.value}", "task": task, "loader": lambda: frame(task), **given, **changes}
    )


def ranking():
    from boosters_eval import Table

    x, y = frame(Task.RANKING)
    return Table(x=x, y=y, groups=np.repeat(np.arange(ROWS // 10), 10))


@pytest.mark.parametrize("task", Task)
def test_every_kind_of_every_library_is_measured_or_has_a_reason(home, task):
    data = dataset(task, loader=ranking) if task is Task.RANKING else dataset(task)
    found = importances(data, LIBRARIES, seeds=1, training=FEW, permutations=2)
    outputs = {Task.MULTICLASS: 3, Task.QUANTILE: 2}.get(task, 1)
    refused = {item.library for item in found.unsupported}
    assert {result.library for result in found.results} == set(LIBRARIES) - refused
    for result in found.results:
        n = result.n_rows
        assert list(result.kinds) == list(KINDS)
        shapes = {"permutation": (2, 4), "gain": (4,), "split": (4,), "shap": (n, 5, outputs)}
        for kind, shape in shapes.items():
            values = found.measured(result, kind)
            if values is None:
                assert (result.library, kind) == ("catboost", "gain")
                assert result.kinds[kind].reason
            else:
                assert values.shape == shape
                assert values.dtype == np.float64
                assert found.importances(result, kind).shape == (4,)
        assert found.array(result.raw).shape == (n, outputs)
        assert found.array(result.x).dtype == np.float32
        assert len(found.array(result.rows)) == len(found.array(result.predictions)) == len(found.array(result.y)) == n
        assert result.probe is not None, result.no_probe
        assert set(result.probe.constant.values()) == {0.0}
        assert (result.interactions is None) == (result.library in ("boosters", "lightgbm"))
        if result.interactions is None:
            assert result.no_interactions
        assert found.importances(result, "permutation").argmax() == 0
        assert 0 < result.library_seconds <= result.cell_seconds


def test_the_model_is_the_very_one_that_compare_scores(home):
    data = dataset(Task.REGRESSION)
    explained = importances(data, LIBRARIES, seeds=2, training=FEW, kinds="split")
    scored = {result.key: result for result in compare(data, LIBRARIES, seeds=2, training=FEW).results}
    assert len(explained.results) == len(scored)
    for result in explained.results:
        assert result.predictions_digest == scored[result.key].predictions_digest
        assert result.metrics == scored[result.key].metrics
        assert result.native_params == scored[result.key].native_params


def test_rows_and_their_values_are_those_of_the_data_and_the_same_for_every_library(home):
    x, y = rows()
    found = importances(dataset(Task.REGRESSION), LIBRARIES, seeds=2, training=FEW, kinds=["shap"], max_rows=30)
    assert len({(result.seed, result.rows, result.x, result.y) for result in found.results}) == 2
    for result in found.results:
        chosen = found.array(result.rows)
        assert len(set(chosen)) == result.n_rows == 30
        assert result.sampled == "measured on 30 of the 80 validation rows, the same for every library"
        assert np.array_equal(found.array(result.x), x[chosen])
        assert np.array_equal(found.array(result.y), y[chosen])


def test_the_names_of_categories_are_stored_once_for_all_cells(home):
    table = Table(
        x=np.column_stack([np.arange(ROWS) % 2, rows()[0][:, 1]]).astype(np.float32),
        y=rows()[1],
        categorical=(0,),
        feature_names=("color", "size"),
        category_names={"color": ["rot", "grün"]},
    )
    data = DatasetConfig(name="made-named", task=Task.REGRESSION, loader=lambda: table)
    found = importances(data, LIBRARIES[:2], seeds=2, kinds="permutation", training=FEW)
    assert len({result.category_names for result in found.results}) == 1
    assert found.category_names(found.results[0]) == {"color": ["rot", "grün"]}
    assert found.results[0].category_names in found.results[0].digests
    assert {row.values["color"] for row in found.to_model().findings[0].disputed} <= {"rot", "grün"}


def test_attributions_are_never_larger_than_may_be_stored(home):
    spec = prepare_importances(dataset(Task.MULTICLASS), "sklearn", seeds=1, max_rows=10**6).plan.specs[0]
    assert limit_rows(spec, n_columns=4) == 10**6
    assert limit_rows(spec, n_columns=100_000) == 2**24 // (100_001 * 3)
    assert limit_rows(spec, n_columns=10**8) == 1


def test_permutations_use_the_same_shuffles_for_every_library(home):
    """Models that predict alike are worse alike."""
    draw = np.random.default_rng(2)
    x = draw.integers(0, 8, size=(ROWS, 3)).astype(np.float32)
    data = DatasetConfig(name="binned", task=Task.REGRESSION, loader=lambda: (x, x @ np.array([3.0, 2.0, 1.0])))
    one = FEW.replace(n_estimators=1, learning_rate=1.0, l2=0.0)
    found = importances(
        data, ["xgboost", "lightgbm", "sklearn"], seeds=1, training=one, kinds="permutation", splits="random"
    )
    first, *others = (found.measured(result, "permutation") for result in found.results)
    assert len(others) == 2
    for other in others:
        assert np.allclose(other, first, atol=1e-5)
    assert np.ptp(first, axis=0).min() > 0


def test_a_column_of_noise_is_last_in_19_of_20_seeds(home):
    draw = np.random.default_rng(5)
    x = draw.normal(size=(600, 4)).astype(np.float32)
    y = 2.0 * x[:, 0] + x[:, 1] - 0.5 * x[:, 3] + 0.2 * draw.normal(size=600)
    data = DatasetConfig(name="noisy", task=Task.REGRESSION, loader=lambda: (x, y))
    found = importances(
        data, ["lightgbm", "sklearn"], seeds=20, training=FEW.replace(n_estimators=30), kinds="permutation"
    )
    for library in ("lightgbm", "sklearn"):
        last = [
            found.importances(result, "permutation").argmin() == 2
            for result in found.results
            if result.library == library
        ]
        assert len(last) == 20
        assert sum(last) >= 19


def test_groups_are_permuted_and_ranked_as_one(home):
    given = {"seeds": 1, "training": FEW, "permutations": 2}
    alone = importances(dataset(Task.REGRESSION), "sklearn", **given).results[0]
    found = importances(dataset(Task.REGRESSION), "sklearn", groups={"pair": [1, 2]}, **given)
    (result,) = found.results
    assert [(unit.name, unit.columns) for unit in result.units][-1] == ("pair", (1, 2))
    assert len(result.units) == 3
    assert found.measured(result, "permutation").shape == (2, 3)
    assert result.kinds["shap"] == alone.kinds["shap"]  # the model and its attributions are the same
    gain, whole = found.measured(result, "gain"), found.importances(result, "gain")
    assert whole.tolist() == [gain[0], gain[3], gain[1] + gain[2]]
    shap = found.measured(result, "shap")
    expected = np.abs(shap[:, 1, 0] + shap[:, 2, 0]).mean()
    assert found.importances(result, "shap")[-1] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"kinds": "gain,shape"}, UnknownNameError, "Unknown kind 'shape'"),
        ({"kinds": []}, ConfigError, "must name one of permutation, gain"),
        ({"permutations": 0}, ConfigError, "'permutations' parameter must be a count of at least 1. Got 0"),
        ({"max_rows": "all"}, ConfigError, "'max_rows' parameter"),
        ({"seeds": "auto"}, ConfigError, "must be a count from 1 to 10000. Got 'auto'"),
        ({"groups": {"g": ["nothing"]}}, UnknownNameError, "column"),
        ({"groups": {"g": []}}, ConfigError, "must have columns"),
        ({"groups": {"g": [0], "h": [0]}}, ConfigError, "is in the groups 'g' and 'h'"),
        ({"groups": ["g"]}, ConfigError, "'groups' parameter"),
        ({"tranining": FEW}, ConfigError, r"importances\(\) has no parameter 'tranining'. Did you mean 'training'"),
    ],
)
def test_a_mistake_is_told_before_anything_runs(home, options, error, words):
    with pytest.raises(error, match=words):
        prepare_importances(dataset(Task.REGRESSION), "sklearn", **options)
    assert not (home / "runs").exists()


def test_what_is_asked_for_is_part_of_the_identity_of_a_run(home):
    def run_id(**options):
        return prepare_importances(dataset(Task.REGRESSION), "sklearn", seeds=1, **options).plan.run_id

    usual = run_id()
    others = [
        run_id(kinds="gain"),
        run_id(permutations=6),
        run_id(max_rows=5),
        run_id(groups={"g": [0, 1]}),
        run_id(groups={"g": [0, 2]}),
    ]
    assert usual == run_id(kinds="shap,split,gain,permutation")
    assert len({usual, *others}) == 6


def test_what_fits_took_says_nothing_of_how_long_explaining_takes(home):
    cells = prepare_importances(dataset(Task.REGRESSION), "sklearn", seeds=1, training=FEW).plan.cells
    costs = {cost_key("made-regression", BoosterType.GBDT, FEW, "sklearn"): 1.0}
    fits = prepare_comparison(dataset(Task.REGRESSION), "sklearn", seeds=1, training=FEW).plan.cells
    assert list(seconds_by_key(fits, costs).values()) == [1.0]
    assert seconds_by_key(cells, costs) == {}


def test_weights_count_in_the_score_and_its_loss(home):
    def weighted(power):
        from boosters_eval import Table

        x, y = rows()
        return Table(x=x, y=y, weights=np.where(x[:, 3] > 0, 10.0**power, 1.0))

    found = {}
    for power in (0, 2):
        data = DatasetConfig(name=f"weighted{power}", task=Task.REGRESSION, loader=lambda power=power: weighted(power))
        result = importances(data, "sklearn", seeds=1, training=FEW, kinds="permutation")
        found[power] = (result.results[0].measured_score, result.importances(result.results[0], "permutation"))
    assert found[0][0] != found[2][0]
    assert not np.allclose(found[0][1], found[2][1])


def test_the_number_of_jobs_changes_nothing(home):
    given = {"seeds": 2, "training": FEW, "permutations": 2}
    libraries = [
        "boosters",
        "catboost",
    ]  # which are imported quickly: of the pool with one job, no other test has lanes
    one = importances(dataset(Task.REGRESSION), libraries, jobs=1, **given)
    two = importances(dataset(Task.REGRESSION), libraries, jobs=2, **given)
    assert len(one.results) == 4
    assert one.run_id == two.run_id
    assert {result.key: result.digests for result in one.results} == {
        result.key: result.digests for result in two.results
    }


def test_a_run_is_found_again_by_its_kind_and_verified_with_its_arrays(home):
    data = dataset(Task.REGRESSION)
    found = importances(data, "sklearn", seeds=1, training=FEW, name="why")
    for reference in ("last", "why", found.run_id[:6]):
        again = load_importances(reference)
        assert again.results == found.results
        assert again.metadata.environment.kind == "importances"
    assert dict(verify_run("why")) == {f"{found.run_id}/journal.jsonl": ""}
    with pytest.raises(RunError, match="it is an importances run, which has reports of its own"):
        load_run("why")
    compare(data, "sklearn", seeds=1, training=FEW, name="scores")
    with pytest.raises(RunError, match="explains no models: it is a benchmark run"):
        load_importances("scores")

    digest = found.results[0].kinds["shap"].array
    path = found.arrays / digest[:2] / f"{digest}.npy"
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    faults = {name: fault for name, fault in verify_run("why") if fault}
    assert list(faults) == [f"{found.run_id}/arrays/{digest}"]
    assert "changed after it was written" in faults[f"{found.run_id}/arrays/{digest}"]
    path.unlink()
    assert any("Cannot read" in fault for _, fault in verify_run("why"))
    with pytest.raises(RunError, match="Cannot read"):
        found.measured(found.results[0], "shap")


def test_a_failed_cell_is_told_and_run_again_on_request(home, faulty):
    data = dataset(Task.REGRESSION)
    with pytest.warns(BoostersEvalWarning, match="cells failed"):
        found = importances(
            data, ["sklearn", "faulty"], seeds=1, training=TrainingConfig(max_depth=faulty.BY_NAME["nan"])
        )
    assert [error.library for error in found.errors] == ["faulty"]
    assert [result.library for result in found.results] == ["sklearn"]


NO_NUMBERS = """
import numpy as np
from boosters_eval.runners.xgboost_runner import XGBoostRunner

class OddInside(XGBoostRunner):
    name = "oddinside"

    @classmethod
    def interactions(cls, translation, model, x):
        return np.full((len(x), x.shape[1], x.shape[1]), np.nan)

    @classmethod
    def importances(cls, translation, model, kind):
        found = super().importances(translation, model, kind)
        return found * np.nan if kind == "gain" else found


class NoNumbers(XGBoostRunner):
    name = "nonumbers"

    @classmethod
    def attributions(cls, translation, model, x):
        return np.full((len(x), x.shape[1] + 1), np.nan)

    @classmethod
    def importances(cls, translation, model, kind):
        return np.zeros(2) if kind == "split" else super().importances(translation, model, kind)
"""


def test_values_that_cannot_be_used_are_a_fault_of_their_kind_and_cost_no_other(home, tmp_path):
    (tmp_path / "odd.py").write_text(NO_NUMBERS, encoding="utf-8")
    data, library = dataset(Task.REGRESSION), f"{tmp_path / 'odd.py'}:NoNumbers"
    found = importances(data, [library, "xgboost"], seeds=2, training=FEW, permutations=2)
    assert not found.errors
    result = found.results[0]
    assert result.kinds["shap"] == MeasuredKind(
        fault=f"An explanation must be finite: {80 * 5} of its 400 values are not."
    )
    assert result.kinds["split"].fault == "An explanation must have the shape (4,). Got (2,) instead."
    assert result.kinds["gain"].array
    assert result.kinds["permutation"].array
    (findings,) = found.to_model().findings
    odd = result.library
    assert {(check.check, check.kind) for check in findings.failed(odd)} == {
        ("local accuracy", "shap"),
        ("constant column", "split"),
    }
    assert [odd in findings.sound(kind) for kind in KINDS] == [True, True, False, False]


def test_a_fault_of_one_kind_cancels_no_check_of_another(home, tmp_path):
    (tmp_path / "odd.py").write_text(NO_NUMBERS, encoding="utf-8")
    found = importances(dataset(Task.REGRESSION), f"{tmp_path / 'odd.py'}:OddInside", seeds=1, training=FEW)
    (result,) = found.results
    assert result.kinds["shap"].array
    assert result.interactions_fault.startswith("An explanation must be finite: ")
    (findings,) = found.to_model().findings
    verdicts = {(check.check, check.kind): check.verdict for check in findings.checks}
    assert verdicts["local accuracy", "shap"] == "holds"
    assert verdicts["interactions", "shap"] == "fails"
    assert [verdicts["constant column", kind] for kind in ("gain", "split", "shap")] == ["fails", "holds", "holds"]


def test_a_third_party_that_offers_nothing_is_permuted_all_the_same(home, faulty):
    data = dataset(Task.REGRESSION)
    (result,) = importances(data, "faulty", seeds=1, training=TrainingConfig(max_depth=faulty.BY_NAME["none"])).results
    assert result.kinds["permutation"].array
    for kind in ("gain", "split", "shap"):
        assert result.kinds[kind] == MeasuredKind(reason=result.kinds[kind].reason)
        assert "the runner of faulty offers no" in result.kinds[kind].reason


def test_constant_columns_are_told(home):
    x, y = rows()
    x = np.hstack([x, np.full((ROWS, 1), 7, dtype=np.float32)])
    data = DatasetConfig(name="constant", task=Task.REGRESSION, loader=lambda: (x, y))
    found = importances(data, LIBRARIES, seeds=1, training=FEW)
    for result in found.results:
        assert result.constant == (4,)
        for kind in KINDS:
            values = found.importances(result, kind)
            assert values is None or values[4] == 0


def test_units_of_columns_add_up():
    shared = {"config_name": "c", "library": "l", "seed": 1, "task": "regression", "metrics": {}, "kinds": {}}
    arrays = dict.fromkeys(("rows", "x", "y", "predictions"), "0")
    result = Explanation(
        **shared,
        **arrays,
        n_rows=2,
        feature_names=("a", "b", "c"),
        units=(FeatureUnit(name="b", columns=(1,)), FeatureUnit(name="ac", columns=(0, 2))),
        permutations=1,
        higher_is_better=False,
    )
    assert add_up_units(result, np.array([1.0, 2.0, 4.0])).tolist() == [2.0, 5.0]
    assert add_up_units(result, np.arange(6.0).reshape(2, 3, 1))[:, :, 0].tolist() == [[1.0, 2.0], [4.0, 8.0]]


def command_of(*libraries):
    asked = ["--kinds", "permutation,split", "-p", "n_estimators=5"]
    return ["importances", "--dataset", "diabetes", "--library", *libraries, "--seeds", "3", *asked]


def test_the_command_prints_every_kind_and_ends_with_2_where_a_cell_failed(home, capsys):
    def call(*more):
        code = run([*command_of("sklearn", "lightgbm"), "--jobs", "2", *more])
        return code, *capsys.readouterr()

    code, printed, told = call("--top", "2", "--group", "blood=s1,s2")
    assert code == 0, told
    assert "diabetes/gbdt: importance by permutation" in printed
    assert "diabetes/gbdt: agreement by split count" in printed
    assert all(word in printed for word in ("diabetes/gbdt", "sklearn", "lightgbm", "bmi"))
    (explained,) = load_importances("last").results[:1]
    assert list(explained.kinds) == ["permutation", "split"]
    assert explained.units[-1].name == "blood"
    code, _, told = call("--group", "s1")
    assert code == 3
    assert "NAME=COLUMN,COLUMN. Got 's1' instead" in told
    code, _, told = call("--timeout", "0.001")
    assert code == 2
    assert "Traceback" not in told


def test_a_killed_run_is_resumed_without_repeating_a_cell(home):
    env = environment(BOOSTERS_EVAL_HOME=str(home))
    command = [*PROGRAM, *command_of("boosters", "catboost"), "--jobs", "1"]
    process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 240

    def lines():
        return [line for path in home.glob("runs/*/journal.jsonl") for line in path.read_text().splitlines()]

    while sum('"result"' in line for line in lines()) < 2:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.kill()
    process.wait()
    before = [line for line in lines() if '"result"' in line]
    done = subprocess.run([*command, "--resume"], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    after = [line for line in lines() if '"result"' in line]
    assert after[: len(before)] == before
    assert len(after) == 6
    assert not any(fault for _, fault in verify_run("last"))
    (folder,) = home.glob("runs/*")
    shutil.rmtree(folder / "arrays")
    assert sum("Cannot read" in fault for _, fault in verify_run("last")) > 6
