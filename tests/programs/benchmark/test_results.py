import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import factories
from boosters_eval import ResultCollection, RunMetadata, Task, TrainingConfig
from boosters_eval.core.errors import ConfigError, FileFormatError, UnknownNameError


def result(library="a", seed=42, value=0.5, **changes):
    return factories.result("d/gbdt", library, seed, value, **{"train_time_s": 0.1, **changes})


ERROR = factories.error("d/gbdt", "b", error_type="Crash", error_message="x")


@pytest.fixture
def collection():
    results = [result(library, seed, 0.5 + i / 10) for library in "ab" for i, seed in enumerate((42, 1379))]
    configs = {"d/gbdt": TrainingConfig().model_dump(mode="json")}
    metadata = RunMetadata(n_missing=0, configs=configs)
    return ResultCollection(results, [ERROR], run_id="ab" * 8, suite="s", metadata=metadata)


def test_file_gives_back_what_was_saved(collection, tmp_path):
    collection.save_partial(tmp_path / "r.json")
    again = ResultCollection.load_partial(tmp_path / "r.json")
    assert again.results == collection.results
    assert again.errors == collection.errors
    assert (again.run_id, again.suite, again.metadata) == (collection.run_id, "s", collection.metadata)


@given(value=st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_survives_the_file_to_the_last_bit(value):
    text = ResultCollection([result(value=value)]).to_json()
    assert ResultCollection.from_json(text).results[0].metrics["rmse"] == value


def test_filter_keeps_what_meets_all_criteria(collection):
    assert len(collection.filter(library="a")) == 2
    assert len(collection.filter(library="b").errors) == 1
    assert len(collection.filter(dataset="d", booster="gbdt", task="regression", config="d/gbdt")) == 4
    assert len(collection.filter(task=Task.BINARY)) == 0
    with pytest.raises(UnknownNameError, match="Did you mean 'binary'"):
        collection.filter(task="binery")


def test_summary_has_mean_standard_deviation_and_count(collection):
    summary = collection.summary()
    assert summary.loc[("d", "gbdt", "a"), ("rmse", "mean")] == pytest.approx(0.55)
    assert summary.loc[("d", "gbdt", "a"), ("rmse", "std")] == pytest.approx(0.05 * 2**0.5)
    assert summary.loc[("d", "gbdt", "a"), ("rmse", "count")] == 2
    with pytest.raises(ConfigError, match="'group_by'"):
        collection.summary(["nothing"])
    assert len(ResultCollection().summary()) == 0


def test_times_of_several_machines_have_no_common_mean():
    cells = [result(seed=seed, machine=machine, train_time_s=1.0) for seed, machine in enumerate(["m1", "m1", "m2"])]
    mixed = ResultCollection(cells).summary()
    assert mixed[("train_time_s", "mean")].isna().all()
    assert mixed[("train_time_s", "count")].tolist() == [0]
    assert mixed[("rmse", "count")].tolist() == [3]
    unknown = ResultCollection([*cells[:2], result(seed=9, train_time_s=1.0)]).summary()
    assert unknown[("train_time_s", "mean")].isna().all()  # a cell that names no machine may have run on another
    apart = ResultCollection(cells).summary(["library", "machine"])
    assert apart[("train_time_s", "mean")].tolist() == [1.0, 1.0]
    assert ResultCollection(cells[:2]).summary()[("train_time_s", "mean")].tolist() == [1.0]


def test_variants_are_never_averaged_into_one_row():
    both = ResultCollection([result(variant="x", value=1.0), result(variant="y", value=3.0)])
    assert sorted(both.summary()[("rmse", "mean")]) == [1.0, 3.0]


def test_csv_goes_to_a_string_or_a_file(collection, tmp_path):
    text = collection.to_csv(tmp_path / "r.csv")
    assert (tmp_path / "r.csv").read_text() == text == collection.to_csv()
    assert text.splitlines()[0].startswith("config,dataset,booster,task,library,variant,seed,fold,rmse")
    assert [line["status"] for line in csv.DictReader(io.StringIO(text))] == ["ok"] * 4 + ["error"]
    assert ResultCollection().to_csv().count("\n") == 1


def test_dataframe_has_a_row_a_result(collection):
    assert list(collection.to_dataframe()["library"]) == ["a", "a", "b", "b"]
    assert list(ResultCollection().to_dataframe().columns)[:2] == ["config", "dataset"]


def changed(collection, **changes):
    return json.dumps({**json.loads(collection.to_json()), **changes})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kind": "other"}, "not a boosters-eval results file"),
        ({"nonsense": 1}, "nonsense"),
        ({"results": [{}]}, "results.0"),
        ({"metadata": {"user_metrics": [1]}}, "user_metrics"),
        ({"metadata": {"environment": 5}}, "environment"),
        ({"metadata": {"environment": {"machine": 5}}}, "machine"),
        ({"metadata": {"configs": {"d/gbdt": {"x": 1}}}}, "has no"),
        ({"metadata": {"alpha": 7}}, "alpha"),
    ],
)
def test_file_of_the_wrong_kind_is_one_sentence(collection, changes, words):
    with pytest.raises(FileFormatError, match=words):
        ResultCollection.from_json(changed(collection, **changes))


@pytest.mark.parametrize("text", ["", "{", "[" * 200_000, "5", "[]", "null", '{"a": 1, "a": 2}'])
def test_nonsense_is_one_sentence(text):
    with pytest.raises(FileFormatError):
        ResultCollection.from_json(text)


def test_primary_metric_must_have_been_measured(collection):
    raw = json.loads(collection.to_json())
    raw["results"][0]["primary_metric"] = "bogus"
    with pytest.raises(FileFormatError, match="has no 'bogus'"):
        ResultCollection.from_json(json.dumps(raw))


def test_millions_of_faults_are_refused_at_the_first(collection):
    import time

    start = time.process_time()
    with pytest.raises(FileFormatError):
        ResultCollection.from_json(changed(collection, results=[{}] * 300_000))
    assert time.process_time() - start < 10


def test_large_foreign_file_is_not_even_parsed():
    from boosters_eval.core.files import MAX_TEXT

    with pytest.raises(FileFormatError, match="not a boosters-eval results file"):
        ResultCollection.from_json("[" + "1," * (MAX_TEXT // 2) + "1]")
