"""A user's own file: what is inferred and said, and every mistake in one sentence."""

import gzip
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from boosters_eval.core.errors import ConfigError, DatasetError, UnknownNameError
from boosters_eval.datasets import checks, materialize, open_stored, resolve_dataset
from boosters_eval.metrics.task import Task

pytestmark = pytest.mark.usefixtures("forked_reader")

N = 60


@pytest.fixture
def write(tmp_path, cache):
    """Write a frame, give 'path:target'."""

    def _write(name="data.csv", **columns):
        frame = pd.DataFrame({"a": np.arange(N) * 1.5, **columns})
        path = tmp_path / name
        if name.endswith(".parquet"):
            frame.to_parquet(path)
        else:
            frame.to_csv(path, index=False)
        return f"{path}:target"

    return _write


def loaded(config):
    return open_stored(materialize(config).path)


@pytest.mark.parametrize("name", ["data.csv", "data.csv.gz", "data.parquet"])
def test_a_file_becomes_a_data_set(write, name):
    config = resolve_dataset(write(name, color=["red", "blue", None] * 20, target=np.arange(N) / 7))
    assert config.name == "data.target"
    assert config.task is Task.REGRESSION
    assert config.description == "task inferred: regression (60 distinct values in 'target'); categorical: color"
    table = loaded(config)
    assert table.feature_names == ("a", "color")
    assert table.categorical == (1,)
    assert table.category_names == {"color": ["blue", "red"]}
    assert table.x[:2, 1].tolist() == [1, 0]
    assert np.isnan(table.x[2, 1])
    assert table.y == pytest.approx(np.arange(N) / 7)


@pytest.mark.parametrize(
    ("values", "task", "said"),
    [
        (["yes", "no"] * 30, Task.BINARY, "2 distinct values in 'target', classes no, yes"),
        ([True, False] * 30, Task.BINARY, "2 distinct values in 'target', classes False, True"),
        ([2, 1] * 30, Task.BINARY, "2 distinct values in 'target', classes 1, 2"),
        (["a", "b", "c"] * 20, Task.MULTICLASS, "which are text, classes a, b, c"),
        ([10, 30, 20] * 20, Task.MULTICLASS, "all whole numbers, classes 10, 20, 30"),
        ([0.5, 1.5, 2.0] * 20, Task.REGRESSION, "3 distinct values"),
        (list(range(10)) * 6, Task.REGRESSION, "10 distinct values"),  # six rows a class are too few
        (list(range(N)), Task.REGRESSION, "60 distinct values"),
    ],
)
def test_the_task_is_inferred_and_said_aloud(write, values, task, said):
    config = resolve_dataset(write(target=values))
    assert config.task is task
    assert config.description.startswith(f"task inferred: {task.value} (")
    assert said in config.description
    y = loaded(config).y
    if task.is_classification:
        assert np.unique(y).tolist() == list(range(config.n_classes))
        assert y[:2].tolist() == [sorted(set(values)).index(value) for value in values[:2]]


def test_a_given_task_overrides_what_would_be_inferred(write):
    config = resolve_dataset(write(target=[10, 30, 20] * 20), Task.REGRESSION)
    assert config.task is Task.REGRESSION
    assert config.description.startswith("task given: regression")
    assert loaded(config).y[:3].tolist() == [10, 30, 20]
    assert resolve_dataset(write(target=np.arange(N)), Task.QUANTILE).quantiles == (0.1, 0.5, 0.9)


def test_ranking_takes_its_queries_from_the_column_qid(write):
    config = resolve_dataset(write(qid=["q2", "q1", "q3"] * 20, target=[0, 1, 2, 3] * 15), Task.RANKING)
    table = loaded(config)
    assert table.feature_names == ("a",)
    assert table.groups.tolist() == [0] * 20 + [1] * 20 + [2] * 20
    assert table.x[:2, 0].tolist() == [0, 4.5]
    with pytest.raises(DatasetError, match="needs a column 'qid'"):
        resolve_dataset(write(target=[0, 1, 2, 3] * 15), Task.RANKING)


def test_a_changed_file_is_read_anew(write):
    first = materialize(resolve_dataset(write(target=np.arange(N))))
    second = materialize(resolve_dataset(write(target=np.arange(N) * 2)))
    assert first.digest != second.digest


def test_parquet_categories_and_nullable_numbers_are_understood(write):
    frame = {"kind": pd.Categorical(["x", "y", "z"] * 20), "n": pd.array([1, None, 3] * 20, dtype="Int64")}
    table = loaded(resolve_dataset(write("data.parquet", target=np.arange(N), **frame)))
    assert table.categorical == (1,)
    assert np.isnan(table.x[1, 2])
    assert table.x[2, 2] == 3


def sentence_of(text, task=None):
    with pytest.raises((DatasetError, ConfigError)) as caught:
        resolve_dataset(text, task)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_missing_column_suggests_the_nearest(write):
    with pytest.raises(ConfigError) as caught:
        resolve_dataset(write(target=np.arange(N)).replace(":target", ":tarjet"))
    assert str(caught.value) == "data.csv has no column 'tarjet'. Did you mean 'target'? Its columns: a, target."


def test_an_empty_file_and_a_header_without_rows(tmp_path):
    path = tmp_path / "data.csv"
    path.touch()
    assert sentence_of(f"{path}:y") == "data.csv is empty."
    path.write_text("x,y\n")
    assert sentence_of(f"{path}:y") == "data.csv has a header but no rows."


def test_a_constant_target(write):
    assert "is constant (3): there is nothing to learn" in sentence_of(write(target=[3] * N))
    assert "is constant (yes)" in sentence_of(write(target=["yes"] * N))


def test_text_in_the_target_of_a_numeric_task(write):
    values = ["1.5", *(["2"] * (N - 2)), "many"]
    assert sentence_of(write(target=values), Task.REGRESSION) == (
        "Column 'target' holds numbers, but 'many' in row 60 is not a number: numeric=['target'] with"
        " drop_missing_target=True leaves out such rows, categorical=['target'] keeps the texts."
    )
    assert sentence_of(write(target=[f"t{i % 5}" for i in range(N)]), Task.REGRESSION) == (
        "The target 'target' of data.csv must be finite numbers for regression. Got 't0' in row 1 instead."
    )


def test_a_stray_text_among_numbers(write):
    sentence = sentence_of(write(b=["1"] * 59 + ["oops"], target=np.arange(N)))
    assert sentence == (
        "Column 'b' holds numbers, but 'oops' in row 60 is not a number: numeric=['b'] makes it missing,"
        " categorical=['b'] keeps the texts."
    )


def test_a_stray_text_in_the_target_is_no_class(write):
    sentence = sentence_of(write(target=[*range(57), "n/k", 58, 59]))
    assert sentence.startswith("Column 'target' holds numbers, but 'n/k' in row 58 is not a number")


def test_a_stray_text_late_in_a_long_file_is_one_sentence_and_no_warning(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a,y\n" + "1,2\n3,4\n" * 200_000 + "oops,3\n")
    sentence = sentence_of(f"{path}:y", Task.REGRESSION)
    assert sentence.startswith("Column 'a' holds numbers, but 'oops' in row 400001 is not a number")


def test_a_name_that_two_columns_have(tmp_path):
    for name, content in (
        ("a.csv", b"a,y,y\n" + b"1,2,3\n2,3,4\n" * 9),
        ("b.csv.gz", gzip.compress(b'"y",a,y\n' + b"1,2,3\n2,3,4\n" * 9)),
    ):
        (tmp_path / name).write_bytes(content)
        sentence = sentence_of(f"{tmp_path / name}:y")
        assert sentence == f"Column names must be unique. {name} has 'y' twice: rename one."


def test_objects_that_are_numbers_are_numbers_and_others_are_refused(write):
    price = [Decimal("1.25"), None, Decimal("3.5")] * 20
    table = loaded(resolve_dataset(write("data.parquet", price=price, target=[Decimal(i) for i in range(N)])))
    assert table.categorical == ()
    assert table.x[0, 1] == 1.25
    assert np.isnan(table.x[1, 1])
    assert table.y[:3].tolist() == [0, 1, 2]
    sentence = sentence_of(write("data.parquet", many=[[1, 2], [3]] * 30, target=np.arange(N)))
    assert sentence == (
        "Column 'many' holds values of type ndarray: convert them to numbers or texts first, or use"
        " categorical=['many'], numeric=['many'] or drop=['many']."
    )


def test_a_missing_query_id(write):
    sentence = sentence_of(write(qid=["q1", "q2", None] * 20, target=[0, 1, 2, 3] * 15), Task.RANKING)
    assert sentence == "The query id 'qid' of data.csv is missing in 20 rows."


def test_an_infinite_value_is_found_in_the_column_of_the_user(write):
    assert "target 'target' of data.csv must be finite numbers for regression. Got 'inf' in row 1" in sentence_of(
        write(target=[np.inf, *range(N - 1)])
    )
    sentence = sentence_of(write(b=[np.inf, *range(N - 1)], target=np.arange(N)))
    assert sentence == (
        "Column 'b' must be finite in float32, but row 1 has inf: numeric=['b'] makes it missing, drop=['b'] leaves the"
        " column out."
    )


def test_two_classes_are_no_multiclass_task(write):
    with pytest.raises(DatasetError, match="has 2 classes: its task is binary"):
        materialize(resolve_dataset(write(target=["a", "b"] * 30), Task.MULTICLASS))


def test_grades_beyond_what_the_libraries_take(write):
    ids = np.arange(N) // 10
    with pytest.raises(DatasetError, match=r"must be at most 30: a gain is 2\*\*grade. Got 31 instead"):
        materialize(resolve_dataset(write(qid=ids, target=np.arange(N) % 32), Task.RANKING))
    assert materialize(resolve_dataset(write(qid=ids, target=np.arange(N) % 31), Task.RANKING)).n_groups == 6


def test_a_column_of_free_text_is_no_category(tmp_path, cache):
    path = tmp_path / "data.csv"
    pd.DataFrame({"id": [f"id{i}" for i in range(1200)], "y": np.arange(1200)}).to_csv(path, index=False)
    assert "Column 'id' has 1200 distinct texts in 1200 rows: not a category" in sentence_of(f"{path}:y")


def test_a_date_becomes_those_of_its_parts_that_vary(write):
    config = resolve_dataset(write("data.parquet", when=pd.date_range("2020-01-01", periods=N), target=np.arange(N)))
    assert config.feature_names == ("a", "when.month", "when.day", "when.weekday")
    assert config.categorical == ()
    assert config.notes == ("column 'when' is read as dates (by their type): when.month, when.day, when.weekday",)
    assert loaded(config).x[-1].tolist() == [88.5, 2, 29, 5]


def test_a_missing_target_value(write):
    assert "is missing in 1 row: drop_missing_target=True leaves" in sentence_of(write(target=[None, *range(N - 1)]))


def test_too_many_classes(write):
    assert "has 60 distinct values: too many for classes" in sentence_of(write(target=[f"t{i}" for i in range(N)]))


def test_more_than_two_to_the_31_cells(write, monkeypatch, tmp_path):
    text = write(target=np.arange(N))
    monkeypatch.setattr(checks, "MAX_CELLS", 100)
    assert sentence_of(text) == "data.csv has 60 x 2 cells: more than 2**31."
    monkeypatch.setattr(checks, "MAX_CELLS", (tmp_path / "data.csv").stat().st_size - 1)
    assert resolve_dataset(text).n_samples == N  # many bytes, but few cells
    path = write("data.csv.gz", target=np.arange(N)).removesuffix(":target")
    monkeypatch.setattr(checks, "MAX_CELLS", 119)
    assert sentence_of(f"{path}:target") == "data.csv.gz has 60 x 2 cells: more than 2**31."


def test_a_file_that_is_not_what_it_says(tmp_path):
    for name, content in (("a.csv", b"\xff\xfe\x00\x01x"), ("b.parquet", b"not parquet"), ("c.csv.gz", b"not gzip")):
        (tmp_path / name).write_bytes(content)
        assert f"{name} cannot be read" in sentence_of(f"{tmp_path / name}:y")
    (tmp_path / "d.csv.gz").write_bytes(gzip.compress(b"x,y\n1,2\n")[:-6])
    assert "cannot be read" in sentence_of(f"{tmp_path / 'd.csv.gz'}:y")


def test_only_a_target(tmp_path):
    (tmp_path / "a.csv").write_text("y\n" + "1\n2\n" * 10)
    assert "no column besides the target" in sentence_of(f"{tmp_path / 'a.csv'}:y")


def test_column_names_must_be_unique(tmp_path, cache):
    from boosters_eval.datasets.checks import table_from_frame

    with pytest.raises(DatasetError, match="must be unique"):
        table_from_frame(pd.DataFrame([[1, 2]], columns=["a", "a"]), [1])


def test_files_and_names_that_are_not_there(tmp_path):
    assert "does not exist" in sentence_of(f"{tmp_path}/none.csv:y")
    assert "names no target column: write" in sentence_of(f"{tmp_path}/none.csv")
    assert "must be written 'path:column'" in sentence_of(f"{tmp_path}/none.xlsx:y")
    assert "must be written 'path:column'" in sentence_of(f"{tmp_path}/none")
    directory = tmp_path / "d.csv"
    directory.mkdir()
    assert "it is a directory" in sentence_of(f"{directory}:y")
    with pytest.raises(UnknownNameError, match="Did you mean 'iris'"):
        resolve_dataset("irris")


def test_a_path_that_cannot_even_be_looked_up():
    assert "Cannot read" in sentence_of("x" * 300 + ".csv:y")


def test_a_registered_name_keeps_its_task_or_becomes_a_quantile_task():
    assert resolve_dataset("iris").name == "iris"
    assert resolve_dataset("iris", Task.MULTICLASS).task is Task.MULTICLASS
    assert resolve_dataset("california", Task.QUANTILE).quantiles == (0.1, 0.5, 0.9)
    assert resolve_dataset("synthetic_quantile_small", Task.REGRESSION).quantiles == ()
    assert "has the task multiclass. Got regression instead" in sentence_of("iris", Task.REGRESSION)


@pytest.mark.parametrize("name", ["wide.csv", "wide.csv.gz"])
def test_file_of_a_million_columns_is_refused_before_it_is_read(tmp_path, name):
    data = (",".join(map(str, range(900_000))) + "\n").encode()
    (tmp_path / name).write_bytes(gzip.compress(data, 1) if name.endswith("gz") else data)
    with pytest.raises(DatasetError, match="has 900000 columns, more than the 65536 that can be read"):
        resolve_dataset(f"{tmp_path / name}:1")


def test_first_row_of_millions_of_fields_is_refused_before_it_is_read(tmp_path):
    """Pandas would take each for a level of an index, for minutes. Marks within quotes are text."""
    (tmp_path / "d.csv").write_text("a,y\n" + "," * 2_000_000)
    with pytest.raises(DatasetError, match="has 2000001 columns, more than the 65536 that can be read"):
        resolve_dataset(f"{tmp_path}/d.csv:y")
    text = "a,y\n" + "".join(f'"{"," * 100_000}{i % 9}",{i}.5\n' for i in range(20))
    (tmp_path / "d.csv").write_text(text)
    with pytest.raises(DatasetError) as caught:
        resolve_dataset(f"{tmp_path}/d.csv:nothing")
    assert "65536" not in str(caught.value)


def test_damaged_archive_is_one_sentence(tmp_path):
    data = bytearray(gzip.compress(b"a,target\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(500))))
    for at in range(10, len(data), 40):
        damaged = bytes(data[:at]) + bytes([data[at] ^ 0xFF]) + bytes(data[at + 1 :])
        (tmp_path / "data.csv.gz").write_bytes(damaged)
        with pytest.raises((DatasetError, ConfigError)):
            resolve_dataset(f"{tmp_path / 'data.csv.gz'}:target")


def test_parquet_file_that_claims_more_rows_than_can_be_is_refused(tmp_path, monkeypatch):
    pd.DataFrame({"a": range(N), "target": range(N)}).to_parquet(tmp_path / "data.parquet")
    monkeypatch.setattr(checks, "MAX_CELLS", 100)
    with pytest.raises(DatasetError, match=r"has 60 x 2 cells: more than 2\*\*31"):
        resolve_dataset(f"{tmp_path / 'data.parquet'}:target")
