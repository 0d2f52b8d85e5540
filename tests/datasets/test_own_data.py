"""A user's table with settings: columns as asked, files as they are written, and the sidecar that keeps both."""

import gzip
from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pytest

from boosters_eval import (
    ConfigError,
    DataFileError,
    DatasetError,
    DataSettings,
    FileFormatError,
    prepare_comparison,
)
from boosters_eval.cli.app import run
from boosters_eval.datasets import checks, materialize, open_stored, reading, resolve_dataset
from boosters_eval.datasets.files import config_from_file, config_from_frame
from boosters_eval.datasets.reading import SEPARATORS
from boosters_eval.datasets.texts import parse_numerals
from boosters_eval.metrics.task import Task

pytestmark = pytest.mark.usefixtures("forked_reader")

N = 40
PLAIN = "i,f,colour,flag,big,sci,quoted,mix,target\n" + "".join(
    f"{i},{i / 7!r},{['red', 'blue', ''][i % 3]},{i % 2 == 0},{i * 10**6},{'NA' if i % 9 == 0 else f'{i}e-3'},"
    f"{chr(34) + 'a, b' + chr(34) if i % 4 else 'c'},{['x1', '7', 'y'][i % 3]},{i * i / 3}\n"
    for i in range(60)
)


@pytest.fixture
def place(tmp_path, monkeypatch, cache):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def frame():
    return pd.DataFrame(
        {
            "id": range(N),
            "zip": [7, 10, None, 7] * (N // 4),
            "price": [f"${i},500" for i in range(N)],
            "when": pd.date_range("2020-01-01", periods=N, freq="D", tz="Europe/Berlin"),
            "y": [None, *range(1, N)],
        }
    )


def loaded(config):
    return open_stored(materialize(config).path)


def test_a_plain_file_is_the_table_that_it_always_was(place):
    (place / "plain.csv").write_text(PLAIN)
    digests = {name: materialize(resolve_dataset(f"plain.csv:{name}")).digest[:12] for name in ("target", "mix")}
    assert digests == {"target": "6d46b84e7996", "mix": "7e353afdb66d"}


def test_settings_say_what_the_columns_of_a_frame_are(place):
    settings = DataSettings(drop="id", categorical=("zip",), numeric=["price"], drop_missing_target=True)
    config = config_from_frame(frame(), "y", name="sales", settings=settings)
    assert (config.name, config.source, config.n_samples) == ("sales.y", "data frame:y", N - 1)
    assert config.feature_names == ("zip", "price", "when.month", "when.day", "when.weekday")
    table = loaded(config)
    assert table.category_names == {"zip": ["10", "7"]}
    assert table.x[0].tolist() == [0, 1500, 1, 1, 2]  # in UTC
    assert "1 row without a target left out, 39 kept" in config.notes
    assert "column 'price' is read as numbers: ',' separates thousands, '$' left out" in config.notes


def test_a_polars_frame_is_the_same_data_as_a_pandas_one(place):
    settings = DataSettings(drop=("id", "when"), numeric=("price",), drop_missing_target=True)
    digests = {
        materialize(config_from_frame(each, "y", settings=settings)).digest
        for each in (frame(), pl.from_pandas(frame()))
    }
    assert len(digests) == 1


def test_the_frame_of_the_user_is_not_changed(place):
    given = frame()
    config_from_frame(given, "y", settings=DataSettings(drop="id", numeric=("price",), drop_missing_target=True))
    pd.testing.assert_frame_equal(given, frame())


def test_all_problems_are_told_at_once_each_with_an_option():
    with pytest.raises(DataFileError) as caught:
        config_from_frame(frame(), "y", settings=DataSettings(date=("zipp",)))
    assert caught.value.lines == [
        "data cannot be used as it is, for 3 reasons:",
        "  - 'date': data has no column 'zipp'. Did you mean 'zip'?",
        "  - The target 'y' of data is missing in 1 row: drop_missing_target=True leaves it out.",
        (
            "  - Column 'price' has numbers written as text, such as '$1,500' in row 2 (',' separates thousands,"
            " '$' left out): numeric=['price'] reads them as numbers, categorical=['price'] as categories."
        ),
    ]
    assert str(caught.value) == "\n".join(caught.value.lines)


def test_a_table_of_many_problems_tells_the_first_of_them():
    wide = pd.DataFrame({f"c{i}": ["1%", "2%"] * 10 for i in range(50)} | {"y": range(20)})
    with pytest.raises(DataFileError) as caught:
        config_from_frame(wide, "y")
    assert len(caught.value.lines) == 22
    assert caught.value.lines[-1] == "  - and 30 more of this kind"


@pytest.mark.parametrize(
    ("texts", "marks", "numbers"),
    [
        (["$3750", "€ 12", "12 EUR", "-£1"], {}, [3750, 12, 12, -1]),
        (["1,000", "12,345,678", "5"], {}, [1000, 12345678, 5]),
        (["3,5", "12,25", "7"], {}, [3.5, 12.25, 7]),
        (["1.234,5", "7,25"], {}, [1234.5, 7.25]),
        (["1 234,5", "1\u202f000"], {}, [1234.5, 1000]),
        (["1'234.5", "7"], {}, [1234.5, 7]),
        (["12%", "3.5 %"], {}, [12, 3.5]),
        (["1,000", "2,500"], {"decimal": ","}, [1, 2.5]),
        (["1.000", "2.500"], {"thousands": "."}, [1000, 2500]),
        (["1,00", "12,34,56", "x", "1e5", ""], {"decimal": "."}, [np.nan, np.nan, np.nan, 1e5, np.nan]),
        (["1_000", "٣", "inf", "1e999"], {}, [np.nan] * 4),
    ],
)
def test_numbers_written_as_text(texts, marks, numbers):
    found = parse_numerals(pd.Series(texts), **marks)
    assert found.numbers.tolist() == pytest.approx(numbers, nan_ok=True)


def test_text_that_is_all_numbers_is_told_to_be_categories(place):
    data = pd.DataFrame({"zip": [f"{i % 9:05}" for i in range(N)], "y": [str(i % 4) for i in range(N)]})
    config = config_from_frame(data, "y")
    assert config.task is Task.MULTICLASS
    assert [note.partition(":")[0] for note in config.notes] == [
        "column 'zip' has texts that look like numbers, used as categories",
        "column 'y' has texts that look like numbers, used as classes",
    ]
    assert config_from_frame(data, "y", settings=DataSettings(numeric=("y",))).notes[0].startswith("column 'zip'")
    many = data.assign(y=[str(i) for i in range(N)])
    with pytest.raises(DataFileError, match="The target 'y' has texts that look like numbers"):
        config_from_frame(many, "y")
    assert config_from_frame(many, "y", settings=DataSettings(numeric="y")).task is Task.REGRESSION


def test_rows_without_a_number_in_the_target_can_be_left_out(place):
    data = pd.DataFrame({"a": range(N), "y": ["n/k", *map(str, range(1, N))]})
    settings = DataSettings(numeric="y", drop_missing_target=True)
    assert config_from_frame(data, "y", settings=settings).n_samples == N - 1


def test_objects_of_any_kind_can_be_dropped_or_made_categories(place):
    data = pd.DataFrame({"a": range(N), "many": [[i % 2] for i in range(N)], "y": range(N)})
    assert config_from_frame(data, "y", settings=DataSettings(categorical="many")).categorical == (1,)
    assert config_from_frame(data, "y", settings=DataSettings(drop="many")).n_features == 1
    with pytest.raises(DataFileError, match="most of column 'many' is not a number"):
        config_from_frame(data, "y", settings=DataSettings(numeric="many"))


@pytest.mark.parametrize("kind", ["object", "date32[day][pyarrow]", "datetime64[s]", "timestamp[us, tz=UTC][pyarrow]"])
def test_dates_of_any_type_are_dates(kind):
    days = pd.Series([date(2020, 1, i % 28 + 1) for i in range(N)], dtype=object)
    config = config_from_frame(pd.DataFrame({"d": days.astype(kind), "a": range(N), "y": range(N)}), "y")
    assert config.feature_names == ("d.day", "d.weekday", "a")
    with pytest.raises(DataFileError, match="holds dates: a date cannot be a target"):
        config_from_frame(pd.DataFrame({"d": days.astype(kind), "a": range(N)}), "d")


@pytest.mark.parametrize("values", [pd.to_timedelta(range(N), unit="h"), [1j] * N, [b"a", b"b"] * (N // 2)])
def test_columns_of_other_types_are_refused_with_an_option(values):
    with pytest.raises(DataFileError, match=r"drop=\['c'\]"):
        config_from_frame(pd.DataFrame({"c": values, "a": range(N), "y": range(N)}), "y")


def test_a_query_id_is_a_feature_only_if_it_is_kept(place):
    data = pd.DataFrame({"qid": np.arange(N) // 4, "a": range(N), "y": [0, 1, 2, 3] * (N // 4)})
    assert config_from_frame(data, "y", task=Task.RANKING).feature_names == ("a",)
    kept = config_from_frame(data, "y", task=Task.RANKING, settings=DataSettings(keep="qid"))
    assert kept.feature_names == ("qid", "a")


def test_a_date_whose_parts_have_the_name_of_a_column(place):
    data = pd.DataFrame({"d": pd.date_range("2020", periods=N), "d.day": range(N), "y": range(N)})
    with pytest.raises(DataFileError, match=r"The date 'd' would become 'd.day', but there is such a column"):
        config_from_frame(data, "y")


def test_the_advice_for_a_column_that_is_named_like_an_option_can_be_followed(place, capsys):
    pd.DataFrame({"--x y": ["$1,500", "$2,500"] * 20, "y": np.arange(40) / 3}).to_csv("odd.csv", index=False)
    assert run(["datasets", "show", "odd.csv:y"]) == 3
    assert "--numeric='--x y' reads them as numbers" in capsys.readouterr().err
    assert run(["datasets", "show", "odd.csv:y", "--numeric=--x y"]) == 0


def test_what_a_frame_or_a_setting_cannot_be():
    with pytest.raises(ConfigError, match="The 'sep' parameter is for text files"):
        config_from_frame(frame(), "y", settings=DataSettings(sep=";"))
    with pytest.raises(ConfigError, match=r"must be a pandas or a polars DataFrame. Got list instead"):
        config_from_frame([1], "y")
    with pytest.raises(ConfigError, match=r"must be a valid string. Got 3 instead"):
        DataSettings(drop=(3,))


@pytest.mark.parametrize("sep", SEPARATORS)
def test_a_separator_can_be_given_by_its_name(place, sep):
    char = {"whitespace": "  "}.get(sep, SEPARATORS[sep])
    (place / "a.csv").write_text(
        "".join(char.join(row) + "\n" for row in [("a", "y"), *((str(i), "7" * (i % 5 + 1)) for i in range(N))])
    )
    assert resolve_dataset("a.csv:y", settings=DataSettings(sep=sep)).n_features == 1


def test_bytes_that_are_no_utf_8_are_found_beyond_the_beginning_of_a_file(place, monkeypatch):
    monkeypatch.setattr(reading, "SAMPLE", 1000)
    head = b"a,place,y\n" + b"".join(b"%d,here,%d\n" % (i, i % 7) for i in range(300))
    (place / "late.csv").write_bytes(head + "1,Zürich,3\n".encode("latin-1"))
    config = config_from_file("late.csv", "y", Task.REGRESSION)
    assert config.description.endswith("reading: encoding cp1252")
    assert "Zürich" in config.loader().category_names["place"]
    (place / "damaged.csv").write_bytes("a,place,y\n1,Zürich,2\n".encode() + head[10:] + b"1,Z\xfcrich,3\n")
    with pytest.raises(DataFileError, match="it is not encoded in utf-8"):
        config_from_file("damaged.csv", "y")


def test_a_mark_that_is_other_beyond_the_beginning_of_a_file_is_not_misread(place, monkeypatch):
    monkeypatch.setattr(reading, "SAMPLE", 1000)
    rows = "".join(f"{i},5;{i}\n" for i in range(400))
    (place / "late.csv").write_text(f"a;y\n{rows}1.5;3\n")
    with pytest.raises(DataFileError, match=r"'1.5' in row 401"):
        config_from_file("late.csv", "y")


def test_files_of_more_cells_than_can_be_are_refused_before_they_are_read(place, monkeypatch):
    data = pd.DataFrame({"a": range(60), "y": range(60)})
    data.to_feather("a.feather")
    rows = "".join(f"{i},{i}\n" for i in range(60))
    (place / "a.arff").write_text(f"@relation r\n@attribute a real\n@attribute y real\n@data\n{rows}")
    (place / "a.tsv").write_text(data.to_csv(sep="\t", index=False))
    (place / "a.tsv.gz").write_bytes(gzip.compress(data.to_csv(sep="\t", index=False).encode()))
    monkeypatch.setattr(checks, "MAX_CELLS", 119)
    for name in ("a.feather", "a.arff", "a.tsv", "a.tsv.gz"):
        with pytest.raises(DataFileError, match=rf"{name} has 60 x 2 cells: more than 2\*\*31"):
            config_from_file(name, "y")
    monkeypatch.setattr(reading, "MAX_ARFF", 100)
    with pytest.raises(DataFileError, match=r"a.arff is larger than"):
        config_from_file("a.arff", "y")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,2\n", "has a line '@data'"),
        ("@data\n1\n", "declares no columns"),
        ("@attribute a real\n@attribute b relational\n@data\n1,2\n", "line 2 is not an ARFF declaration"),
        ("@attribute a real\n@data\n{0 1}\n", "sparse ARFF"),
        ("@attribute a real\n@data\n1,2\n", "declares 1 columns, but its rows have 2"),
        ("@attribute a real\n@data\nx\n", "column 'a' has 'x' in row 1, which is not a number"),
        ("@attribute a date\n@data\nx\n", "column 'a' has 'x' in row 1, which is not a date"),
        ("@attribute a {x,'y}\n@data\nx\n", "line 1 is not an ARFF declaration"),
        ("@attribute a real\n@data\n", "has a header but no rows"),
    ],
)
def test_an_arff_file_that_is_none(place, text, said):
    (place / "a.arff").write_text(text)
    with pytest.raises(DataFileError) as caught:
        config_from_file("a.arff", "a")
    assert said in str(caught.value)


def test_arff_values_keep_their_quotes_apart_from_their_spaces(place):
    rows = "".join(f"'no  ', \"it's {i % 2}\", {i}\n" for i in range(N))
    (place / "a.arff").write_text(
        f"@attribute s {{'  yes','no  '}}\n@attribute 'a b' string\n@attribute y real\n@data\n{rows}"
    )
    assert config_from_file("a.arff", "y").loader().category_names == {"s": ["no  "], "a b": ["it's 0", "it's 1"]}


class TestSidecar:
    @pytest.fixture
    def data(self, place):
        rows = "".join(f"{i};{i % 5},5;{'abc'[i % 3]};2020-01-{i % 28 + 1:02};{i * 2}\n" for i in range(N))
        (place / "d.csv").write_text(f"id;a;kind;when;y\n{rows}")
        return place / "d.csv.yaml"

    def test_init_keeps_what_was_found_and_the_data_stays_the_same(self, data, capsys):
        before = materialize(resolve_dataset("d.csv:y", settings=DataSettings(drop="id")))
        assert run(["datasets", "init", "d.csv:y", "--drop", "id"]) == 0
        assert "Wrote d.csv.yaml" in capsys.readouterr().err
        content = data.read_text().splitlines()
        assert content[1:9] == [
            "schema_version: 1",
            "kind: boosters-eval data",
            "target: y",
            "task: regression",
            "sep: ;",
            "decimal: ','",
            "encoding: utf-8",
            "drop:",
        ]
        config = resolve_dataset("d.csv")
        assert materialize(config).digest == before.digest
        assert config.notes[0].startswith("d.csv.yaml is used: drop id, categorical kind, date when, sep ';'")

    def test_init_does_not_overwrite_unless_forced(self, data, capsys):
        assert run(["datasets", "init", "d.csv:y"]) == 0
        data.write_text("mine")
        assert run(["datasets", "init", "d.csv:y"]) == 3
        assert "d.csv.yaml exists already: use --force to replace it." in capsys.readouterr().err
        assert data.read_text() == "mine"
        assert run(["datasets", "init", "d.csv:y", "--force"]) == 0

    def test_options_come_before_the_sidecar_and_say_so(self, data):
        data.write_text("schema_version: 1\nkind: boosters-eval data\ntarget: y\ntask: quantile\ndrop: [id, a]\n")
        config = resolve_dataset("d.csv", settings=DataSettings(drop=("a",)))
        assert config.task is Task.QUANTILE
        assert "id" in config.feature_names
        assert config.notes[:2] == ("d.csv.yaml is used", "The 'drop' parameter overrides 'drop' in d.csv.yaml (id a)")
        other = resolve_dataset("d.csv:kind")
        assert other.task is Task.MULTICLASS  # the task of the sidecar is that of its target
        assert resolve_dataset("d.csv", Task.REGRESSION).task is Task.REGRESSION

    def test_an_option_for_a_column_comes_before_what_the_sidecar_says_of_it(self, data):
        assert run(["datasets", "init", "d.csv:y", "--keep", "id"]) == 0
        config = resolve_dataset("d.csv", settings=DataSettings(drop=("kind", "id"), categorical=("when",)))
        assert config.feature_names == ("a", "when")
        assert (
            "The 'drop' parameter overrides 'categorical' in d.csv.yaml for 'kind'" not in config.notes
        )  # it is replaced
        assert "The 'drop' parameter overrides 'keep' in d.csv.yaml for 'id'" in config.notes
        assert "The 'categorical' parameter overrides 'date' in d.csv.yaml for 'when'" in config.notes
        assert resolve_dataset("d.csv", settings=DataSettings(drop="kind")).feature_names[:2] == ("id", "a")

    def test_a_column_that_the_sidecar_leaves_out_can_be_the_target(self, data):
        data.write_text("schema_version: 1\nkind: boosters-eval data\ntarget: y\ndrop: [kind, id]\nsplit: group:kind\n")
        config = resolve_dataset("d.csv:kind")
        assert config.feature_names[-1] == "y"
        assert config.split_by is None
        assert config.notes[1:3] == (
            "'drop' in d.csv.yaml is ignored for 'kind': it is the target",
            "'split' in d.csv.yaml is ignored: 'kind' is the target",
        )

    def test_the_split_is_kept_so_that_a_comparison_is_repeatable(self, data, capsys):
        assert run(["datasets", "init", "d.csv:y", "--split", "group:kind"]) == 0
        assert "split: group:kind" in data.read_text()
        config = resolve_dataset("d.csv")
        assert config.split_by == "group:kind"
        assert "kind" not in config.feature_names
        assert "split 'group:kind'" in config.notes[0]
        assert prepare_comparison("d.csv", ["sklearn"], seeds=2).plan.cells[0].spec.split.column == "kind"
        given = resolve_dataset("d.csv", split="random")
        assert given.split_by is None
        assert "The 'split' parameter overrides 'split' in d.csv.yaml ('group:kind')" in given.notes
        capsys.readouterr()
        assert run(["datasets", "show", "d.csv", "--split", "time:when"]) == 0
        assert "time: when" in capsys.readouterr().out
        data.write_text("schema_version: 1\nkind: boosters-eval data\ntarget: y\nsplit: sometimes\n")
        with pytest.raises(FileFormatError, match=r"random, time, time:COLUMN or group:COLUMN"):
            resolve_dataset("d.csv")

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            (
                "schema_version: 1\nkind: boosters-eval data\ndorp: [id]\n",
                "It has no key 'dorp'. Did you mean 'drop'?",
            ),
            ("kind: boosters-eval data\ntarget: y\n", "The 'schema_version' key is required"),
            ("schema_version: 2\nkind: boosters-eval data\n", "is a sidecar of format 2, which"),
            ("schema_version: 1\nkind: paper\n", "The 'kind' key must be 'boosters-eval data'"),
            ("schema_version: 1\nkind: boosters-eval data\ndrop: [1]\n", "must be a valid string. Got 1"),
            ("- a\n", "must be a mapping"),
            ("a: [\n", "is not YAML"),
            ("drop: !!python/object/apply:os.system [ls]\n", "is not YAML"),
            ("a: &x [1]\nb: [*x, *x]\n", "must have a text, or a list of texts"),
            ("target: a\ntarget: b\n", "has the key 'target' twice"),
            ("target: 2020-99-99\n", "has a value under 'target' that is none in YAML; put it in quotes"),
            (f"target: {'9' * 5000}\n", "has a value under 'target' that is none in YAML"),
            *((f"drop: [!!{kind} x]\n", "under 'drop' that is none") for kind in ("int", "float", "bool", "timestamp")),
            ("2020-99-99: a\nschema_version: 1\nkind: boosters-eval data\n", "It has no key '2020-99-99'"),
            ("[" * 1200, "is nested too deeply"),
            ("".join(f"k{i}: 1\n" for i in range(200)), "has 200 keys, more than there are settings"),
        ],
    )
    def test_what_is_no_sidecar_is_refused(self, data, text, said):
        data.write_text(text)
        with pytest.raises(FileFormatError) as caught:
            resolve_dataset("d.csv:y")
        assert said in str(caught.value)

    def test_a_file_without_a_target_says_how_to_keep_one(self, data):
        with pytest.raises(
            ConfigError, match=r"or save it in d.csv.yaml with 'boosters-eval datasets init d.csv:column'"
        ):
            resolve_dataset("d.csv")
        data.write_text("schema_version: 1\nkind: boosters-eval data\n")
        with pytest.raises(ConfigError, match="names no target column"):
            resolve_dataset("d.csv")

    @pytest.mark.parametrize("item", ["iris", "d.csv", "d.xlsx:y"])
    def test_init_takes_a_file_and_its_target(self, data, item, capsys):
        assert run(["datasets", "init", item]) == 3
        assert "A data file must be written 'path:column'" in capsys.readouterr().err


def test_missing_pyarrow_is_one_sentence(place, monkeypatch):
    (place / "a.feather").write_bytes(b"x")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(DatasetError, match="Reading Feather needs pyarrow"):
        config_from_file("a.feather", "y")
