"""The column that rows are split by: where it comes from, what it becomes, and what cannot be followed."""

import numpy as np
import pandas as pd
import pytest

import factories
import tiny
from boosters_eval.core.errors import DatasetError
from boosters_eval.datasets import Table, materialize, open_stored
from boosters_eval.datasets.config import DataSettings
from boosters_eval.datasets.files import config_from_frame
from boosters_eval.metrics.task import Task

N = 40
DAYS = pd.date_range("2024-01-01", periods=N)
X = np.column_stack([np.arange(N) % 7, np.arange(N)[::-1] % 11]).astype(float)
Y = np.arange(N) / 3


@pytest.fixture(autouse=True)
def _cache(cache):
    """A cache of its own for each test."""


def stored(result, split_by, task=Task.REGRESSION, **facts):
    return open_stored(materialize(factories.dataset("mine", task, result, split_by=split_by, **facts)).path)


def frame_of(**columns):
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], **columns, "target": Y})


def from_frame(split, settings=None, **columns):
    config = config_from_frame(frame_of(**columns), "target", split=split, settings=settings)
    return config, open_stored(materialize(config).path)


def test_a_feature_that_rows_are_split_by_is_no_feature_any_more():
    table = stored(Table(X, Y, feature_names=("shop", "size"), categorical=(0, 1)), "group:shop")
    assert (table.feature_names, table.categorical, table.x.shape[1]) == (("size",), (0,), 1)
    assert table.split_by.tolist() == (np.arange(N) % 7).tolist()


def test_a_loader_gives_times_beside_the_features():
    given = Table(X, Y, feature_names=("a", "b"), split_by=DAYS.to_numpy()[::-1], split_column="day")
    table = stored(given, "time:day")
    assert table.x.shape == (N, 2)
    assert (np.diff(table.split_by) == -86_400_000_000_000).all()
    assert stored(given, None).split_by is None


def test_a_frame_of_a_loader_may_have_a_column_of_dates():
    frame = frame_of(day=DAYS).drop(columns="target")
    table = stored((frame, Y), "time:day")
    assert table.feature_names == ("a", "b")
    assert (np.diff(table.split_by) > 0).all()


@pytest.mark.parametrize(
    "days", [DAYS, DAYS.strftime("%Y-%m-%d"), DAYS.strftime("%d.%m.%Y"), np.arange(N), np.arange(N) / 2]
)
def test_times_of_a_users_frame_may_be_dates_texts_or_numbers(days):
    config, table = from_frame("time:day", day=days)
    assert (np.diff(table.split_by) > 0).all()
    assert table.feature_names == config.feature_names == ("a", "b")
    assert config.split_by == "time:day"


@pytest.mark.parametrize(
    "days",
    [
        np.arange(N, dtype=np.uint64) + np.uint64(2**63 - 5),
        pd.array(np.arange(N), dtype="Int64"),
        np.arange(N).astype("datetime64[Y]") - np.timedelta64(500, "Y"),
    ],
)
def test_times_that_the_usual_types_cannot_hold_keep_their_order(days):
    _, table = from_frame("time:day", day=days)
    assert (np.diff(table.split_by) > 0).all()


def test_groups_that_are_only_written_differently_are_one_group():
    _, table = from_frame("group:shop", shop=["7", "7.0", 7, 7.0, " 7", "x", "x ", "07"] * 5)
    assert table.split_by.tolist() == [0, 0, 0, 0, 0, 1, 1, 2] * 5


def test_the_column_stays_a_feature_if_it_is_kept():
    _, table = from_frame("time:day", DataSettings(keep=("day",)), day=np.arange(N))
    assert table.feature_names == ("a", "b", "day")


def test_groups_of_a_users_frame_become_codes():
    _, table = from_frame("group:shop", shop=["north", "south", "east", "west"] * 10)
    assert table.split_by.tolist() == [0, 1, 2, 3] * 10


@pytest.mark.parametrize(
    ("split", "column", "said"),
    [
        ("time:day", ["2024-01-01", None, None, "2024-01-02"] * 10, "It is missing in 20 rows"),
        ("time:day", ["2024-01-01", "soon"] * 20, "must hold dates or numbers. Got 'soon' and 19 other such rows"),
        ("time:day", ["01/02/2024", "03/04/2024"] * 20, "the day or the month first"),
        ("time:day", [1.0, np.nan] * 20, "It is missing in 20 rows"),
        ("time:day", pd.array([1, None] * 20, dtype="Int64"), "It is missing in 20 rows"),
        ("time:day", pd.array([True, None] * 20, dtype="boolean"), "It is missing in 20 rows"),
        ("group:day", ["x", None, "y", "z"] * 10, "The group column 'day' of data must be known in every row"),
        ("time:dya", np.arange(N), "'dya' is no column of data. Did you mean 'day'?"),
        ("group:target", np.arange(N), "The group column 'target' is the target"),
    ],
)
def test_a_column_that_cannot_be_followed_is_refused_in_one_sentence(split, column, said):
    with pytest.raises(DatasetError) as caught:
        from_frame(split, day=column)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_column_that_a_data_set_lacks_gets_the_nearest_name():
    with pytest.raises(DatasetError, match=r"Data set 'mine' has no column 'shpo'\. Did you mean 'shop'\?"):
        stored(Table(X, Y, feature_names=("shop", "size")), "group:shpo")


def test_categories_are_no_times():
    with pytest.raises(DatasetError, match="Column 'shop' of data set 'mine' has categories, which are no times"):
        stored(Table(X, Y, feature_names=("shop", "size"), categorical=(0,)), "time:shop")


def test_a_query_has_one_time():
    queries = np.repeat(np.arange(8), 5)
    grades = np.arange(N) % 3
    table = stored(Table(X, grades, groups=queries, split_by=queries, split_column="q"), "time:q", Task.RANKING)
    assert table.split_by.tolist() == queries.tolist()
    with pytest.raises(DatasetError, match="All rows of a query of mine must have the same time 't'"):
        stored(Table(X, grades, groups=queries, split_by=np.arange(N), split_column="t"), "time:t", Task.RANKING)


def test_a_subsample_keeps_the_column():
    table = stored(
        Table(X, Y, feature_names=("a", "b"), split_by=np.arange(N), split_column="t"), "time:t", subsample=20
    )
    assert len(table.split_by) == len(table.y) == 20
    assert np.array_equal(table.y, table.split_by / 3)


def test_the_digest_of_a_table_without_the_column_is_as_it_always_was():
    assert materialize(tiny.TINY).digest.startswith("2a1bdb68ebd8804e00be02ba")
