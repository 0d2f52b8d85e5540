"""Splits: deterministic, stratified, with queries kept whole."""

import dataclasses
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import factories
import tiny
from boosters_eval.core.errors import ConfigError, DatasetError
from boosters_eval.core.request import Part
from boosters_eval.datasets import Table, hold_out_rows, materialize, official_split, open_stored, split_rows
from boosters_eval.datasets.config import ROW_ORDER, DataSettings, SplitBy, SplitSpec, parse_split
from boosters_eval.datasets.files import config_from_frame
from boosters_eval.datasets.splits import count_parts, number_rows, place_repeats, subsample_rows
from boosters_eval.datasets.texts import spread_times
from boosters_eval.metrics.task import Task

FEW = settings(max_examples=60)
seeds = st.integers(0, 2**31)
fractions = st.floats(0.01, 0.99)


def table_of(y, groups=None):
    return Table(np.zeros((len(y), 1), dtype=np.float32), np.asarray(y, dtype=float), groups=groups)


def numbers(count):
    return table_of(np.arange(count))


def classes(counts):
    return table_of(np.repeat(np.arange(len(counts)), counts))


def queries(sizes):
    groups = np.repeat(np.arange(len(sizes)) * 3 + 5, sizes)
    return table_of(np.zeros(len(groups)), groups)


def both(split):
    return np.concatenate([split.train, split.valid])


@FEW
@given(st.integers(2, 300), fractions, seeds)
def test_a_random_split_uses_every_row_once(count, fraction, seed):
    split = split_rows(numbers(count), Task.REGRESSION, SplitSpec(validation_fraction=fraction), seed, None)
    assert sorted(both(split)) == list(range(count))
    assert abs(len(split.valid) - count * fraction) <= 1
    assert split.train.dtype == split.valid.dtype == np.int64


@FEW
@given(st.lists(st.integers(1, 60), min_size=2, max_size=8), fractions, seeds)
def test_a_stratified_split_keeps_shares_and_never_leaves_a_class_untrained(counts, fraction, seed):
    table = classes([*counts, 2])
    split = split_rows(table, Task.MULTICLASS, SplitSpec(validation_fraction=fraction), seed, None)
    assert sorted(both(split)) == list(range(len(table.y)))
    for label, count in enumerate([*counts, 2]):
        here = int((table.y[split.valid] == label).sum())
        assert count - here >= 1  # a row to learn from
        assert here == 0 if count == 1 else here >= 1
        assert abs(here - count * fraction) <= 1


@FEW
@given(st.lists(st.integers(1, 9), min_size=2, max_size=30), fractions, seeds)
def test_a_ranking_split_keeps_queries_whole_and_adjacent(sizes, fraction, seed):
    table = queries(sizes)
    split = split_rows(table, Task.RANKING, SplitSpec(validation_fraction=fraction), seed, None)
    assert sorted(both(split)) == list(range(len(table.y)))
    assert not set(table.groups[split.train]) & set(table.groups[split.valid])
    for rows in (split.train, split.valid):
        ids = table.groups[rows]
        changes = np.flatnonzero(np.diff(ids)) + 1
        assert len(changes) + 1 == len(set(ids))
        assert all(np.all(np.diff(part) == 1) for part in np.split(rows, changes))


@FEW
@given(st.integers(2, 12), st.lists(st.integers(2, 40), min_size=2, max_size=5), seeds)
def test_folds_are_a_partition_in_which_classes_differ_by_one_row_at_most(folds, counts, seed):
    table = classes([*counts, 12])
    spec = SplitSpec(folds=folds)
    splits = [split_rows(table, Task.MULTICLASS, spec, seed, fold) for fold in range(folds)]
    assert sorted(np.concatenate([split.valid for split in splits])) == list(range(len(table.y)))
    for label in range(len(counts) + 1):
        here = [int((table.y[split.valid] == label).sum()) for split in splits]
        assert max(here) - min(here) <= 1
    sizes = [len(split.valid) for split in splits]
    assert max(sizes) - min(sizes) <= 1
    assert all(len(split.train) + len(split.valid) == len(table.y) for split in splits)


@FEW
@given(st.integers(2, 6), st.lists(st.integers(1, 7), min_size=6, max_size=20), seeds)
def test_folds_of_queries_are_a_partition_of_queries(folds, sizes, seed):
    table = queries(sizes)
    splits = [split_rows(table, Task.RANKING, SplitSpec(folds=folds), seed, fold) for fold in range(folds)]
    assert sorted(np.concatenate([split.valid for split in splits])) == list(range(len(table.y)))
    for split in splits:
        assert not set(table.groups[split.train]) & set(table.groups[split.valid])


def test_folds_of_numbers_are_a_partition_and_a_repeat_is_another_one():
    spec = SplitSpec(folds=5)
    repeats = [[split_rows(numbers(52), Task.REGRESSION, spec, seed, fold) for fold in range(5)] for seed in (42, 1379)]
    for splits in repeats:
        assert sorted(np.concatenate([split.valid for split in splits])) == list(range(52))
    assert {split.digest for split in repeats[0]}.isdisjoint(split.digest for split in repeats[1])


balanced_fractions = st.floats(0.02, 0.5)


def balanced(table, task, fraction, seeds, **fields):
    spec = SplitSpec(validation_fraction=fraction, balanced=True, **fields)
    parts = place_repeats(seeds, fraction)
    return [split_rows(table, task, spec, seed, None, part=part) for seed, part in zip(seeds, parts, strict=True)]


def assert_disjoint(splits):
    tested = np.concatenate([split.valid for split in splits])
    assert len(set(tested)) == len(tested)
    sizes = [len(split.valid) for split in splits]
    assert max(sizes) - min(sizes) <= 1


@FEW
@given(st.integers(50, 300), balanced_fractions, seeds)
def test_balanced_splits_of_a_block_are_disjoint_and_as_large_as_asked(count, fraction, seed):
    splits = balanced(numbers(count), Task.REGRESSION, fraction, list(range(seed, seed + count_parts(fraction))))
    assert_disjoint(splits)
    for split in splits:
        assert sorted(both(split)) == list(range(count))
        assert abs(len(split.valid) - count * fraction) <= 1 + count / 1000  # a fraction is at most that fine


@FEW
@given(st.lists(st.integers(2, 60), min_size=2, max_size=6), balanced_fractions, seeds)
def test_balanced_splits_share_out_every_class_and_always_leave_rows_to_learn_from(counts, fraction, seed):
    table = classes([*counts, 50])
    splits = balanced(table, Task.MULTICLASS, fraction, list(range(seed, seed + count_parts(fraction))))
    assert_disjoint(splits)
    for label in range(len(counts) + 1):
        here = [int((table.y[split.valid] == label).sum()) for split in splits]
        assert max(here) - min(here) <= 1
        assert all((table.y[split.train] == label).any() for split in splits)


@FEW
@given(st.lists(st.integers(1, 7), min_size=6, max_size=20), seeds)
def test_balanced_splits_keep_queries_and_groups_whole(sizes, seed):
    table = queries(sizes)
    table = dataclasses.replace(table, split_by=table.groups)
    for task, fields in ((Task.RANKING, {}), (Task.REGRESSION, {"kind": "group", "column": "g"})):
        splits = balanced(table, task, 0.2, list(range(seed, seed + 5)), **fields)
        assert sorted(np.concatenate([split.valid for split in splits])) == list(range(len(table.y)))
        for split in splits:
            assert not set(table.groups[split.train]) & set(table.groups[split.valid])


def test_a_fifth_puts_five_repeats_into_one_deal_whatever_follows():
    assert place_repeats([42, 7, 8, 9, 10, 11, 12], 0.2) == [*(Part(42, i) for i in range(5)), Part(11, 0), Part(11, 1)]
    assert place_repeats([42, 7], 0.2) == place_repeats([42, 7, 8], 0.2)[:2]
    assert [count_parts(fraction) for fraction in (0.2, 0.25, 0.3, 1 / 3, 0.1, 0.5, 0.6)] == [5, 4, 3, 3, 10, 2, 1]


def test_balanced_splits_of_a_fifth_are_the_folds_of_their_first_seed():
    seeds = [42, 1379, 3, 4, 5]
    folds = [split_rows(numbers(52), Task.REGRESSION, SplitSpec(folds=5), 42, fold) for fold in range(5)]
    assert [split.digest for split in balanced(numbers(52), Task.REGRESSION, 0.2, seeds)] == [f.digest for f in folds]


def test_with_fewer_rows_than_test_sets_balanced_repeats_take_turns():
    splits = balanced(numbers(3), Task.REGRESSION, 0.2, [1, 2, 3, 4, 5])
    assert [len(split.valid) for split in splits] == [1] * 5
    assert splits[0].digest == splits[3].digest != splits[1].digest


def test_a_class_with_one_row_is_always_learned_from():
    table = classes([1, 20])
    for fold in range(4):
        assert 0 in split_rows(table, Task.BINARY, SplitSpec(folds=4), 7, fold).train


def test_splits_are_the_same_on_every_machine_and_forever():
    split = split_rows(numbers(20), Task.REGRESSION, SplitSpec(), 42, None)
    assert split.valid.tolist() == [17, 10, 1, 13]
    assert split.digest[:16] == "febcce4c8768e15c"
    stratified = split_rows(classes([5, 10]), Task.BINARY, SplitSpec(), 1379, None)
    assert stratified.valid.tolist() == [0, 7, 13]
    assert split_rows(queries([2, 3, 4]), Task.RANKING, SplitSpec(), 42, None).valid.tolist() == [2, 3, 4]
    assert split_rows(numbers(10), Task.REGRESSION, SplitSpec(folds=5), 42, 3).valid.tolist() == [3, 8]


def test_seeds_and_folds_change_the_split_and_the_digest():
    digests = {split_rows(numbers(50), Task.REGRESSION, SplitSpec(), seed, None).digest for seed in range(20)}
    assert len(digests) == 20


def test_the_official_split_is_there_through_its_splitter():
    table = Table(np.zeros((4, 1), dtype=np.float32), np.arange(4.0), split=np.array([1, 0, 0, 1], dtype=np.int8))
    split = split_rows(table, Task.REGRESSION, SplitSpec(), 42, None, official_split)
    assert split.train.tolist() == [1, 2]
    assert split.valid.tolist() == [0, 3]
    with pytest.raises(DatasetError, match="no official split"):
        split_rows(numbers(4), Task.REGRESSION, SplitSpec(), 42, None, official_split)


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ("nothing", "must return \\(train, valid\\)"),
        (7, "must return \\(train, valid\\)"),
        (([0.5], [1]), "lists of row numbers"),
        (([[0]], [1]), "lists of row numbers"),
        (([0, 1], [2, 9]), "from 0 to 3"),
        (([0, 1], [1, 2]), "not use a row twice"),
        (([0, 1], np.array([], dtype=int)), "both need some"),
    ],
)
def test_a_splitter_that_is_wrong_is_told_in_one_sentence(parts, sentence):
    with pytest.raises(DatasetError, match=sentence):
        split_rows(numbers(4), Task.REGRESSION, SplitSpec(), 42, None, lambda table, seed, fold: parts)


@pytest.mark.parametrize("parts", [([0], [1, 2, 3]), ([0, 2, 1], [3])])
def test_a_splitter_must_not_tear_a_query(parts):
    with pytest.raises(DatasetError, match="rows of a query together"):
        split_rows(queries([2, 2]), Task.RANKING, SplitSpec(), 42, None, lambda table, seed, fold: parts)


def test_a_splitter_may_leave_rows_out():
    split = split_rows(queries([2, 2, 2]), Task.RANKING, SplitSpec(), 1, 0, lambda table, seed, fold: ([2, 3], [0, 1]))
    assert split.valid.tolist() == [0, 1]


@pytest.mark.parametrize("fold", [None, -1, 5])
def test_a_fold_that_is_not_there_is_an_error(fold):
    with pytest.raises(DatasetError, match="from 0 to 4"):
        split_rows(numbers(10), Task.REGRESSION, SplitSpec(folds=5), 42, fold)


def test_more_folds_than_rows_or_queries_are_an_error():
    with pytest.raises(DatasetError, match="at least 11 rows"):
        split_rows(numbers(10), Task.REGRESSION, SplitSpec(folds=11), 42, 0)
    with pytest.raises(DatasetError, match="at least 3 queries"):
        split_rows(queries([4, 4]), Task.RANKING, SplitSpec(folds=3), 42, 0)


def test_what_cannot_be_split_says_so():
    with pytest.raises(DatasetError, match="at least 2"):
        split_rows(queries([4]), Task.RANKING, SplitSpec(), 42, None)
    with pytest.raises(DatasetError, match="needs groups"):
        split_rows(numbers(4), Task.RANKING, SplitSpec(), 42, None)


def test_a_subsample_keeps_shares_queries_and_the_order_of_rows():
    counts = [500, 300, 4]
    table = classes(counts)
    rows = subsample_rows(table, Task.MULTICLASS, 100)
    here = np.bincount(table.y[rows].astype(int))
    assert np.abs(here - np.array(counts) * 100 / 804).max() <= 1.6
    assert here[2] == 2
    assert (np.diff(rows) > 0).all()
    asked = subsample_rows(queries([5] * 40), Task.RANKING, 52)
    assert len(asked) == 50
    assert len(subsample_rows(numbers(90), Task.REGRESSION, 30)) == 30
    assert np.array_equal(rows, subsample_rows(table, Task.MULTICLASS, 100))


def timed(times, y=None):
    return dataclasses.replace(table_of(np.arange(len(times)) if y is None else y), split_by=np.asarray(times))


def windows_of(table, count):
    spec = SplitSpec(kind="time", column="t", folds=count)
    return [split_rows(table, Task.REGRESSION, spec, 0, fold) for fold in range(count)]


def by_group(table, seed=0, fold=None, **fields):
    return split_rows(table, Task.REGRESSION, SplitSpec(kind="group", column="g", **fields), seed, fold)


@FEW
@given(st.lists(st.integers(0, 40), min_size=4, max_size=200), st.integers(2, 12))
def test_windows_of_time_learn_before_what_they_validate_and_never_part_equal_times(times, count):
    table = timed(times)
    try:
        splits = windows_of(table, count)
    except DatasetError:
        _, rows = np.unique(times, return_counts=True)
        # Only if two windows would begin at the same time, which therefore fills both with the one before or after it.
        assert np.convolve(rows, (1, 1)).max() >= len(times) / count
        return
    for split in splits:
        assert table.split_by[split.train].max() < table.split_by[split.valid].min()
    for before, after in pairwise(splits):
        assert sorted(both(before)) == sorted(after.train)  # the window has been learned from
    assert sorted(both(splits[-1])) == list(range(len(times)))


def test_the_first_half_is_only_learned_from_and_the_windows_are_of_one_size():
    splits = windows_of(timed(np.arange(1000)[::-1]), 5)
    assert [len(split.train) for split in splits] == [500, 600, 700, 800, 900]
    assert {len(split.valid) for split in splits} == {100}


def test_a_seed_does_not_change_a_window():
    table, spec = timed(np.arange(50)), SplitSpec(kind="time", column="t", folds=3)
    assert len({split_rows(table, Task.REGRESSION, spec, seed, 1).digest for seed in range(5)}) == 1


@pytest.mark.parametrize(
    ("times", "count", "said"),
    [
        ([7] * 20, 3, "All rows have the same time in 't'"),
        ([1] * 12 + [2] * 6 + [3] * 2, 5, "The 3 different times in 't' cannot be cut into 5 windows"),
    ],
)
def test_times_that_cannot_be_cut_are_refused(times, count, said):
    with pytest.raises(DatasetError, match=said):
        windows_of(timed(times), count)


@FEW
@given(st.lists(st.integers(0, 9), min_size=12, max_size=120), seeds, fractions)
def test_no_group_is_on_both_sides(groups, seed, fraction):
    groups = [*groups, 0, 1]
    table = timed(groups)
    split = by_group(table, seed, validation_fraction=fraction)
    assert sorted(both(split)) == list(range(len(groups)))
    assert not {groups[row] for row in split.train} & {groups[row] for row in split.valid}


@FEW
@given(st.integers(5, 30), seeds)
def test_each_group_is_in_one_fold(count, seed):
    table = timed(np.repeat(np.arange(count), 3))
    splits = [by_group(table, seed, fold, folds=5) for fold in range(5)]
    assert sorted(np.concatenate([split.valid for split in splits])) == list(range(3 * count))
    assert {len(split.valid) // 3 for split in splits} <= {count // 5, count // 5 + 1}


def test_seeds_that_choose_the_same_groups_make_the_same_split():
    table = timed(np.tile(np.arange(4), 10))
    assert len({by_group(table, seed).digest for seed in range(40)}) == 4


def test_fewer_groups_than_folds_are_refused():
    with pytest.raises(DatasetError, match=r"5 folds need at least 5 groups\. Got 4 instead"):
        by_group(timed(np.arange(40) % 4), 0, 0, folds=5)


def test_the_latest_rows_are_held_out_for_early_stopping():
    table = timed(np.arange(100)[::-1])
    split = hold_out_rows(table, Task.REGRESSION, "time", 3)
    assert sorted(split.valid) == list(range(20))  # the rows are in the reverse order of time


def test_whole_groups_are_held_out_for_early_stopping():
    table = timed(np.tile([5, 7, 11, 13, 17], 8))
    split = hold_out_rows(table, Task.REGRESSION, "group", 3)
    assert len(set(table.split_by[split.valid])) == 1
    assert not set(table.split_by[split.valid]) & set(table.split_by[split.train])


@pytest.mark.parametrize("text", ["time:", "group:", "week:day", "random:x", ":x", "Time:x"])
def test_a_split_that_is_none_is_refused(text):
    with pytest.raises(ConfigError, match=r"must be random, time, time:COLUMN or group:COLUMN\. Got"):
        parse_split(text)


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
    assert table.feature_names[:3] == ("a", "b", "day.ordinal")
    assert (np.diff(table.split_by) > 0).all()


@pytest.mark.parametrize(
    "days", [DAYS, DAYS.strftime("%Y-%m-%d"), DAYS.strftime("%d.%m.%Y"), np.arange(N), np.arange(N) / 2]
)
def test_times_of_a_users_frame_may_be_dates_texts_or_numbers(days):
    config, table = from_frame("time:day", day=days)
    assert (np.diff(table.split_by) > 0).all()
    assert config.split_by == "time:day"
    ordinal = "day" if isinstance(days, np.ndarray) else "day.ordinal"
    assert table.feature_names == config.feature_names
    assert table.feature_names[:3] == ("a", "b", ordinal)
    assert (np.diff(table.x[:, 2]) > 0).all()
    assert any(f"rows are split by 'day', which models see as {ordinal}" in note for note in config.notes)


def test_times_are_no_feature_if_they_are_dropped():
    _, table = from_frame("time:day", DataSettings(drop=("day",)), day=DAYS)
    assert table.feature_names == ("a", "b")
    assert (np.diff(table.split_by) > 0).all()


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


def test_groups_stay_a_feature_if_they_are_kept_and_a_time_of_arrays_stays_one():
    _, table = from_frame("group:day", DataSettings(keep=("day",)), day=np.arange(N))
    assert table.feature_names == ("a", "b", "day")
    assert stored(Table(X, Y, feature_names=("day", "b")), "time:day").feature_names == ("day", "b")


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
        ("group:day", ["x", None, "y", "z"] * 10, "The group column 'day' of data must have a value in every row"),
        ("time:dya", np.arange(N), "'dya' is not a column of data. Did you mean 'day'?"),
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
    with pytest.raises(DatasetError, match="Column 'shop' of data set 'mine' has categories, not times"):
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


def test_a_split_by_time_without_a_column_follows_the_order_of_the_rows_and_keeps_queries_whole():
    assert parse_split("time") == parse_split(f"time:{ROW_ORDER}") == SplitBy("time", ROW_ORDER)
    assert number_rows(3, None).tolist() == [0, 1, 2]
    assert number_rows(4, np.array([7, 7, 2, 2])).tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("column", [[20240131, 20240201], [1_706_659_200, 1_706_745_600]])
def test_days_and_clocks_as_numbers_become_calendar_parts(column):
    parts = spread_times("at", pd.Series(column))
    assert parts["at.ordinal"].tolist() == [0, 1]
    assert parts["at.month"].tolist() == [1, 2]
    assert list(spread_times("at", pd.Series([3, 4]))) == ["at"]
