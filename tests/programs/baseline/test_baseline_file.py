import json
import tracemalloc
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import factories
from boosters_eval.core.errors import BoostersEvalError, BoostersEvalWarning, FileFormatError, RunError
from boosters_eval.engine.facts import RunFacts
from boosters_eval.programs.baseline.check import check
from boosters_eval.programs.baseline.model import MetricStats, load_baseline, save_baseline
from boosters_eval.programs.baseline.snapshot import Snapshot, are_same_outcomes, make_baseline
from boosters_eval.programs.benchmark.records import RunMetadata

V1 = Path(__file__).parents[2] / "fixtures" / "baseline_v1.json"
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "er" / "b.json"


@pytest.fixture
def document(make):
    return json.loads(make_baseline(make.run(), now=NOW).model_dump_json())


def test_a_recorded_run_reads_back_the_same(make, path):
    baseline = make_baseline(make.run(), now=NOW)
    save_baseline(baseline, path)
    assert load_baseline(path) == baseline


def test_the_commit_and_the_machine_are_those_of_the_run(make):
    run = make.run(metadata=RunMetadata(environment=RunFacts(git_sha="0123abc")))
    assert make_baseline(run, now=NOW).git_sha == "0123abc"
    unknown = make_baseline(make.run(metadata=RunMetadata()), now=NOW)
    assert (unknown.git_sha, unknown.boosters_eval_version, unknown.machine) == (None, None, {})


def test_the_file_has_the_fields_of_the_rfc_and_what_we_add(make, document):
    assert {"schema_version", "boosters_version", "recorded_at", "git_sha", "config", "results"} <= document.keys()
    assert document["schema_version"] == 10
    assert document["config"] == {"suite": "quick", "seeds": [42, 1379, 2716], "splits": "random"}
    known = {"version": "3.1.2", "digest": "build-3.1.2", "library": None, "packages": None}
    assert document["libraries"]["xgboost"] == known
    assert document["machine"]["cpu_model"] == "A"
    assert document["machine"]["digest"]
    first = document["results"][0]
    assert {"config", "library", "task", "primary_metric", "metrics"} <= first.keys()
    values = [0.4521 * 1.011, 0.4521 * 0.992, 0.4521 * 0.997]
    stats = first["metrics"]["rmse"]
    assert list(stats["per_seed"].values()) == pytest.approx(values)
    mean = sum(values) / 3
    assert stats["mean"] == pytest.approx(mean)
    assert stats["std"] == pytest.approx((sum((v - mean) ** 2 for v in values) / 2) ** 0.5)
    assert first["split_digests"]["42"] == make.result().split_digest[:16]
    assert first["parameters"] == {"max_depth": 6, "eta": 0.1}  # the seed is not a parameter of the mapping


def test_folds_are_cells_of_their_own(make):
    run = make.run(seeds=1)
    folded = [result.model_copy(update={"fold": fold}) for fold in (0, 1) for result in run.results]
    run.results = folded
    stats = make_baseline(run).results[0].primary
    assert list(stats.per_seed) == ["42/0", "42/1"]


def test_one_seed_has_no_standard_deviation(make):
    assert make_baseline(make.run(seeds=1)).results[0].primary.std is None


def test_times_are_recorded_only_in_timing_mode(make):
    run = make.run()
    assert make_baseline(run).results[0].times == {}
    run.results = [result.model_copy(update={"timing_mode": True}) for result in run.results]
    assert make_baseline(run).results[0].times["train_time_s"].mean == pytest.approx(0.41)


def test_the_mapping_digest_changes_with_a_parameter_and_not_with_a_seed(make):
    run = make.run()
    before = make_baseline(run).mapping_digest
    assert len(before) == 16
    reseeded = [
        r.model_copy(update={"native_params": {**r.native_params, "seed": 5}, "model_seed": 5}) for r in run.results
    ]
    run.results = reseeded
    assert make_baseline(run).mapping_digest == before
    run.results = [r.model_copy(update={"native_params": {**r.native_params, "max_depth": 5}}) for r in run.results]
    assert make_baseline(run).mapping_digest != before


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda run, make: run.errors.append(make.error()), "WorkerDied in fit, SIGSEGV: killed by SIGSEGV"),
        (lambda run, make: run.results.pop(), "it was not run"),
        (lambda run, make: run.results.clear(), "no results"),
        (lambda run, make: factories.remember(run, n_missing=2), "no results for some"),
        (lambda run, make: run.results.append(make.result(index=4, metrics={"rmse": float("nan")})), "rmse is nan"),
        (
            lambda run, make: run.results.append(make.result(index=4, metrics={"rmse": 1.0, "mae": float("inf")})),
            "mae is inf",
        ),
    ],
)
def test_a_run_with_a_hole_is_no_baseline(make, spoil, told):
    run = make.run()
    spoil(run, make)
    with pytest.raises(RunError, match=told) as caught:
        make_baseline(run)
    assert caught.value.exit_code == 2


def test_baseline_of_a_part_of_a_run_comes_with_a_warning(make):
    run = factories.remember(make.run(), n_missing=0, n_cells=len(make.run().results))
    make_baseline(run)
    part = run.filter(library="boosters")
    with pytest.warns(BoostersEvalWarning, match=f"has {len(part.results)} of the run's {len(run.results)} cells"):
        make_baseline(part)


def test_the_file_of_the_rfc_is_read():
    baseline = load_baseline(V1)
    assert baseline.schema_version == 10
    assert baseline.config.suite == "full"
    assert baseline.boosters_version == "0.1.0"
    assert baseline.results[0].primary == MetricStats(mean=0.4521, std=0.0102, n=5)


def test_a_run_can_be_checked_against_the_file_of_the_rfc(make):
    """It says nothing of parameters, so none of them has changed."""
    worse = make.run({"california/gbdt": 1.066}, seeds=5)
    found = check(Snapshot.of_baseline(load_baseline(V1)), Snapshot.of_run(worse))
    assert [f.config for f in found.regressions] == ["california/gbdt"]
    assert not any("parameters changed" in f.note for f in found.findings)


def _spoilt(document, change):
    change(document)
    return json.dumps(document)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda d: d.update(results=[]), "is an empty baseline"),
        (lambda d: d.update(results={}), "is an empty baseline"),
        (lambda d: d.update(color="red"), "color: Extra inputs are not permitted"),
        (lambda d: d["results"][0].update(extra=1), "results.0.extra"),
        (lambda d: d["results"].append(d["results"][0]), "california/gbdt boosters occurs again"),
        (lambda d: d["results"][0].update(primary_metric="auc"), "primary metric 'auc'"),
        (lambda d: d["results"][0]["metrics"]["rmse"].update(mean=0.1), "those of per_seed"),
        (lambda d: d["results"][0]["metrics"]["rmse"].update(mean=None), "results.0.metrics.rmse.mean"),
        (lambda d: d["results"][0]["metrics"]["rmse"].update(mean=float("nan")), "finite number"),
        (lambda d: d["results"][0]["metrics"]["rmse"]["per_seed"].update(x=1.0), "pattern"),
        (lambda d: d["libraries"].update(z={"version": 1, "digest": ""}), "not a valid baseline"),
        (lambda d: d["results"][0].update(higher_is_better=True), "must be false: less rmse is better"),
        (lambda d: d["results"][0].update(failed_before={"42": 0}), "results.0.failed_before.42"),
        (lambda d: d.pop("schema_version"), "is not a boosters-eval baseline"),
        (lambda d: d.update(kind="boosters-eval results"), "holds results, not a baseline; make one with"),
    ],
)
def test_a_wrong_file_is_one_sentence_and_exit_code_3(document, tmp_path, change, told):
    path = tmp_path / "b.json"
    path.write_text(_spoilt(document, change))
    with pytest.raises(FileFormatError) as caught:
        load_baseline(path)
    assert told in str(caught.value)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("text", ["", "{", "[1, 2]", "null", '"x"', "<html>", '{"a": 1}', "[" * 100_000, "\x00"])
def test_what_is_not_a_baseline_at_all_is_one_sentence(tmp_path, text):
    path = tmp_path / "b.json"
    path.write_text(text)
    with pytest.raises(FileFormatError) as caught:
        load_baseline(path)
    assert "\n" not in str(caught.value)


def test_every_truncation_of_a_baseline_is_refused(make, tmp_path):
    path = tmp_path / "b.json"
    save_baseline(make_baseline(make.run(seeds=1), now=NOW), path)
    whole = path.read_text()
    for length in range(0, len(whole.rstrip()), 97):
        path.write_text(whole[:length])
        with pytest.raises(FileFormatError, match="is not JSON"):
            load_baseline(path)


def test_a_hundred_megabytes_of_nonsense_are_refused_without_being_parsed(tmp_path):
    path = tmp_path / "b.json"
    path.write_text("[" + "1," * 50_000_000 + "1]")
    with pytest.raises(FileFormatError, match="is larger than 32 MB"):
        load_baseline(path)


def test_a_binary_file_is_refused(tmp_path):
    path = tmp_path / "b.json"
    path.write_bytes(bytes(range(256)) * 10)
    with pytest.raises(FileFormatError, match="not a text file"):
        load_baseline(path)


@given(st.binary(max_size=300))
@settings(max_examples=100)
def test_no_bytes_make_load_baseline_fail_in_another_way(data):
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "b.json"
        path.write_bytes(data)
        with pytest.raises(BoostersEvalError):
            load_baseline(path)


_numbers = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e9, max_value=1e9)
_names = st.text(min_size=1, max_size=12)


@given(
    values=st.dictionaries(st.integers(0, 10**9).map(str), _numbers, min_size=1, max_size=6),
    config=_names,
    library=_names,
    parameters=st.dictionaries(_names, st.one_of(_numbers, st.booleans(), _names, st.none()), max_size=5),
)
@settings(max_examples=60)
def test_any_baseline_survives_its_file(values, config, library, parameters):
    import tempfile

    result = factories.baseline_result(config, library, metrics={"rmse": MetricStats.of(values)}, parameters=parameters)
    baseline = factories.baseline(result)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "b.json"
        save_baseline(baseline, path)
        assert load_baseline(path) == baseline


def test_recording_the_same_run_twice_gives_the_same_bytes(make, tmp_path):
    for name in ("a.json", "b.json"):
        save_baseline(make_baseline(make.run(), now=NOW), tmp_path / name)
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


@pytest.mark.parametrize("version", [1, 10])
def test_nonsense_of_the_right_outline_is_refused_at_its_first_entry(tmp_path, version):
    path = tmp_path / "b.json"
    head = {"schema_version": version, "boosters_version": "1", "recorded_at": "2025-01-01T00:00:00Z"}
    path.write_text(json.dumps({**head, "results": [{}] * 50_000}))
    tracemalloc.start()
    try:
        with pytest.raises(FileFormatError, match=r"results\.0\.config: Field required"):
            load_baseline(path)
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()


def test_a_doubled_key_in_a_baseline_is_refused(make, tmp_path):
    path = tmp_path / "b.json"
    save_baseline(make_baseline(make.run(), now=NOW), path)
    path.write_text(path.read_text().replace('"git_sha":', '"run_id": "x", "git_sha":', 1))
    with pytest.raises(FileFormatError, match="has the key 'run_id' more than once"):
        load_baseline(path)


def test_a_run_with_two_results_for_a_cell_is_not_recorded(make):
    run = make.run()
    run.results.append(make.result(factor=0.5))
    with pytest.raises(RunError, match="cell 42: the run has 2 outcomes for it"):
        make_baseline(run)


def test_a_user_s_metric_keeps_the_direction_that_its_run_gave_it(make, tmp_path):
    run = factories.remember(make.run(), user_metrics={"profit": True})
    run.results = [r.model_copy(update={"primary_metric": "profit", "metrics": {"profit": 5.0}}) for r in run.results]
    save_baseline(make_baseline(run, now=NOW), tmp_path / "b.json")
    assert {result.higher_is_better for result in load_baseline(tmp_path / "b.json").results} == {True}


def test_a_run_with_flaky_cells_is_no_baseline_unless_they_are_allowed(make):
    run = make.run()
    run.results[:2] = [r.model_copy(update={"failed_before": 3}) for r in run.results[:2]]
    told = r"boosters on california/gbdt, cell 42 finished only after failing \(2 such cells\); .* allow_flaky=2"
    for allowed in (0, 1):
        with pytest.raises(RunError, match=told) as caught:
            make_baseline(run, allow_flaky=allowed)
        assert caught.value.exit_code == 2
    assert make_baseline(run, allow_flaky=2).results[0].failed_before == {"42": 3, "1379": 3}
    run.results[1] = run.results[1].model_copy(update={"failed_before": 0})
    with pytest.raises(RunError, match="finished only after failing"):
        make_baseline(run)  # none is allowed unless it is said
    assert make_baseline(run, allow_flaky=1)


def test_only_the_very_outcomes_that_were_recorded_are_the_same(make):
    recorded = Snapshot.of_baseline(make_baseline(make.run()))
    assert are_same_outcomes(recorded, Snapshot.of_run(make.run()))
    assert are_same_outcomes(recorded, Snapshot.of_run(make.run(libraries=("boosters",))))
    again = make.run()
    again.results = [r.model_copy(update={"train_time_s": r.train_time_s + 1e-9}) for r in again.results]
    assert not are_same_outcomes(recorded, Snapshot.of_run(again))


def test_outcomes_without_times_are_never_called_the_same(make):
    run = make.run()
    run.results = [r.model_copy(update={"train_time_s": None}) for r in run.results]
    assert not are_same_outcomes(Snapshot.of_run(run), Snapshot.of_run(run))
