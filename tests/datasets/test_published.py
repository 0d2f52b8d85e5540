"""What is declared of the data sets inside other packages, and how their tables are read."""

import runpy
import zipfile
from pathlib import Path

import numpy as np
import pytest

from boosters_eval.core.errors import DatasetError
from boosters_eval.datasets import DATASETS, published, real
from boosters_eval.datasets.catalog import DOWNLOADS
from boosters_eval.datasets.published import PUBLISHED
from boosters_eval.metrics.task import Task
from boosters_eval.programs.benchmark import suites
from boosters_eval.programs.benchmark.suites import SUITES, BenchmarkSuite, fetch_suite, take_subset


@pytest.mark.parametrize("name", PUBLISHED)
def test_declaration_says_where_from_under_which_license_and_how_large(name):
    one, config = PUBLISHED[name], DATASETS[name]
    assert DOWNLOADS[name] is one.archive
    assert one.archive.megabytes > 0
    assert config.source
    assert config.license
    assert config.table_digest
    assert (config.n_samples, config.n_features) == one.shape
    assert (config.n_classes is not None) == config.task.is_classification


def archive_of(tmp_path, members):
    path = tmp_path / "pack.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in members.items():
            wheel.writestr(name, text)
    return path


def read(monkeypatch, tmp_path, members, **facts):
    one = published.Published(None, tuple(members), "y", Task.REGRESSION, (0, 0), "about", **facts)
    monkeypatch.setitem(PUBLISHED, "made", one)
    return real.load_downloaded("made", archive_of(tmp_path, members | facts.pop("further", {})))


LINES = [f"{number % 7},{'ab'[number % 2]},{number / 3}" for number in range(30)]


def test_parts_with_a_header_are_one_table(monkeypatch, tmp_path):
    members = {name: "\n".join(["x,kind,y", *LINES]) for name in ("train.csv", "test.csv")}
    table = read(monkeypatch, tmp_path, members)
    assert table.x.shape == (60, 2)
    assert table.categorical == (1,)
    assert table.y[29] == pytest.approx(29 / 3)


def test_keel_names_its_columns_and_marks_what_is_missing(monkeypatch, tmp_path):
    head = ["@relation made", "@attribute x real [0, 6]", "@attribute kind{a, b}", "@attribute y real[0,9]", "@data"]
    lines = [LINES[0].replace("0,", "?,", 1), *LINES[1:]]
    table = read(monkeypatch, tmp_path, {"made.dat": "\n".join([*head, *lines])}, layout="keel")
    assert table.feature_names == ("x", "kind")
    assert np.isnan(table.x[0, 0])
    assert np.isnan(table.x).sum() == 1


def test_labels_in_a_file_of_their_own_are_the_target(monkeypatch, tmp_path):
    rows = "\n".join(f"{number % 5} {number % 3} " for number in range(30))
    path = archive_of(tmp_path, {"made.data": rows, "made.labels": "\n".join(str(number) for number in range(30))})
    one = published.Published(
        *(None, ("made.data",), "y", Task.REGRESSION, (30, 2), "about"),
        layout="plain",
        separator=" ",
        labels="made.labels",
    )
    monkeypatch.setitem(PUBLISHED, "made", one)
    table = real.load_downloaded("made", path)
    assert table.feature_names == ("property1", "property2")
    assert table.y.tolist() == list(range(30))


def test_times_in_several_columns_become_one_that_rows_are_split_by(monkeypatch, tmp_path):
    lines = [f"{2010 + number // 12},{number % 12 + 1},{number % 5},{number}" for number in range(36)]
    members = {"made.csv": "\n".join(["year,month,x,y", *lines])}
    table = read(monkeypatch, tmp_path, members, split="time:when", when=("year", "month"), when_format="%Y-%m")
    assert table.split_column == "when"
    assert (np.diff(table.split_by.astype("int64")) > 0).all()
    assert {"when.ordinal", "x"} <= set(table.feature_names)


def test_subset_is_the_first_data_sets_and_has_a_name_of_its_own():
    whole = SUITES["real24"]
    assert len(whole.configs) == 24
    eight = take_subset(whole, 8)
    assert eight.name == "real24-8"
    assert eight.configs == whole.configs[:8]
    assert take_subset(whole, None) is take_subset(whole, 24) is whole
    assert {config.task for config in eight.configs} == {Task.REGRESSION, Task.BINARY, Task.MULTICLASS}


def test_suites_of_real_data_split_as_their_rows_need_it():
    kinds = {name: {c.dataset.split_by.partition(":")[0] for c in SUITES[name].configs} for name in ("time6", "group4")}
    assert kinds == {"time6": {"time"}, "group4": {"group"}}


@pytest.fixture
def unreachable(monkeypatch):
    """One archive cannot be had, all others can."""

    def fetch_archive(archive):
        if archive is published.PUBLISHED["bank"].archive:
            raise DatasetError("There is no index.")

    monkeypatch.setattr(suites, "fetch_archive", fetch_archive)


def test_what_cannot_be_fetched_is_named_with_the_way_on(unreachable):
    with pytest.raises(
        DatasetError, match=r"^3 data sets of real24 cannot be had: bank, spambase, magic\. There is"
    ) as it:
        fetch_suite(SUITES["real24"])
    assert "runs the other 21" in str(it.value)


def test_the_rest_runs_if_told_and_the_note_names_what_is_missing(unreachable):
    suite, notes = fetch_suite(SUITES["real24"], skip_missing=True)
    assert len(suite.configs) == 21
    assert notes == ("3 data sets of real24 cannot be had: bank, spambase, magic; There is no index.",)
    alone = BenchmarkSuite(name="bank", configs=(SUITES["real24"].configs[1],))
    with pytest.raises(DatasetError):
        fetch_suite(alone, skip_missing=True)  # nothing is left to run


def test_page_of_cards_is_what_the_catalog_declares():
    made = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "make_cards.py"))
    assert made["PAGE"].read_text(encoding="utf-8") == made["page"](), "run scripts/make_cards.py"
