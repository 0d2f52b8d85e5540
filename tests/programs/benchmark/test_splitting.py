"""Benchmarks that are split by time or by group, from the plan to the report."""

import numpy as np
import pytest

import factories
from boosters_eval.core.errors import BoostersEvalError, ConfigError
from boosters_eval.datasets import Table, official_split
from boosters_eval.metrics.task import Task
from boosters_eval.programs.baseline.model import load_baseline, save_baseline
from boosters_eval.programs.baseline.snapshot import make_baseline
from boosters_eval.programs.benchmark import fit
from boosters_eval.programs.benchmark.comparisons import observe
from boosters_eval.programs.benchmark.results import ResultCollection
from boosters_eval.programs.benchmark.suites import count_cells
from boosters_eval.programs.benchmark.tables.build import build_tables
from boosters_eval.programs.benchmark.tables.document import build_document
from boosters_eval.runners.base import TrainData
from boosters_eval.runners.measure import hold_out, request_for
from boosters_eval.runners.parameters import TrainingConfig
from boosters_eval.runners.result import SplitFacts
from tiny import plan_of, prepare_tiny, run_tiny, tiny_config

N = 60


def table_of(y=None, shops=12):
    rng = np.random.default_rng(7)
    x = np.column_stack([rng.normal(size=N), np.arange(N) % shops])
    return Table(
        x, x[:, 0] + 2 if y is None else y, feature_names=("a", "shop"), split_by=np.arange(N), split_column="day"
    )


def config(split, table=None, task=Task.REGRESSION, own=None, **changes):
    given = table_of() if table is None else table
    dataset = factories.dataset("shops", task, given, **(own or {}))
    return tiny_config(name=f"shops/{split}").replace(dataset=dataset, task=task, split=split, **changes)


def named(name, one):
    """The same benchmark on a data set of another name: one name stands for one content."""
    return one.replace(dataset=one.dataset.replace(name=name), name=name)


pytestmark = pytest.mark.usefixtures("faulty")


def repeats(*configs, seeds=None, **settings):
    return [tuple(cell.repeat) for cell in prepare_tiny(*configs, seeds=seeds, **settings).plan.cells]


def test_windows_are_the_repeats_and_seeds_only_vary_the_model():
    assert repeats(config("time:day")) == [(42, fold) for fold in range(5)]
    assert repeats(config("time:day", folds=3)) == [(42, fold) for fold in range(3)]
    assert len(repeats(config("time:day"), seeds=2)) == 10
    assert len(repeats(config("time:day", seeds=(1, 2, 3), folds=4))) == 12


def test_groups_have_seeds_or_folds():
    assert len(repeats(config("group:shop"))) == 5
    assert len(repeats(config("group:shop", folds=3), seeds=2)) == 6


def test_a_data_set_may_say_how_it_is_split_and_a_benchmark_otherwise():
    own = {"split_by": "time:day"}
    assert len(repeats(config(None, own=own))) == 5
    assert plan_of(config(None, own=own)).specs[0].split.kind == "time"
    assert plan_of(config("group:shop", own=own)).specs[0].split.column == "shop"
    assert plan_of(config("random", own=own)).specs[0].split.kind == "random"


def test_a_suite_counts_windows():
    suite = factories.suite(config("time:day"), config("group:shop"))
    assert count_cells(suite) == 5 + suite.default_seeds


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: config("time:dya"), "Data set 'shops' has no column 'dya'. Did you mean 'day'?"),
        (lambda: config("time:day", folds=40), "The 60 different times in 'day' cannot be cut into 40 windows"),
        (lambda: config("group:shop", folds=20), "20 folds need at least 20 groups. Got 12 instead"),
        (lambda: config("time:day", validation_fraction=0.3), "must not be set: it is split by time"),
        (lambda: config("time:day", own={"splitter": official_split}), "has its own splitter"),
    ],
)
def test_a_split_that_cannot_be_made_is_refused_once_before_anything_runs(wrong, said):
    with pytest.raises(BoostersEvalError) as caught:
        plan_of(wrong())
    assert said in str(caught.value)


def test_a_class_without_a_training_row_is_refused_before_anything_runs():
    late = np.where(np.arange(N) < 40, 0.0, 1.0)
    with pytest.raises(
        ConfigError, match="class 1 of shops has no training row in window 1 of the split by time 'day'"
    ):
        plan_of(config("time:day", table_of(late), Task.BINARY))
    in_one_shop = (np.arange(N) % 12 == 3).astype(float)
    with pytest.raises(
        ConfigError, match=r"class 1 of shops has no training row in seed .* of the split by group 'shop'"
    ):
        plan_of(config("group:shop", table_of(in_one_shop), Task.BINARY, folds=12))


def test_the_rows_that_are_held_out_for_early_stopping_may_not_take_a_class_away():
    early = np.where((np.arange(N) > 25) & (np.arange(N) < 30), 1.0, 0.0)
    stopping = TrainingConfig(early_stopping_rounds=3)
    assert plan_of(config("time:day", table_of(early), Task.BINARY))
    with pytest.raises(ConfigError, match="class 1 of shops has no training row in window 1"):
        plan_of(config("time:day", table_of(early), Task.BINARY, training=stopping))


def test_the_latest_training_rows_are_held_out_for_early_stopping():
    table = table_of()
    request = request_for(config("time:day", training=TrainingConfig(early_stopping_rounds=3)))
    train = TrainData(x=table.x.astype(np.float32), y=table.y)
    assert hold_out(train, request, 1, "time", np.arange(N)[::-1]).valid.y.tolist() == table.y[:12][::-1].tolist()
    stores = hold_out(train, request, 1, "group", table.x[:, 1])
    assert not set(stores.x[:, 1]) & set(stores.valid.x[:, 1])


def test_a_cell_stops_early_on_rows_that_are_later_than_those_it_learns_from():
    one = config("time:day", training=TrainingConfig(early_stopping_rounds=3))
    (first, *_) = plan_of(one, seeds=None).cells
    data = fit.take_data(first, table_of(), {})
    days = {value: day for day, value in enumerate(table_of().y.tolist())}
    learned, stopped, scored = (
        [days[value] for value in part] for part in (data.train.y, data.train.valid.y, table_of().y[data.split.valid])
    )
    assert max(learned) < min(stopped) <= max(stopped) < min(scored)


def test_seeds_are_not_added_to_windows_nor_to_few_groups():
    with pytest.raises(ConfigError, match="seeds='auto' cannot be used with a split by time"):
        prepare_tiny(config("time:day"), seeds="auto")
    with pytest.raises(
        ConfigError, match=r"seeds='auto' needs at least 20 groups to decide anything\. Got 12 in 'shop'"
    ):
        prepare_tiny(config("group:shop"), seeds="auto")


def test_results_tables_reports_and_baselines_say_how_rows_were_split(tmp_path):
    run = run_tiny(named("days", config("time:day", folds=3)), named("shops", config("group:shop")), seeds=None)
    by_time = [r for r in run.results if r.fold is not None]
    by_group = [r for r in run.results if r.fold is None]
    assert {r.split for r in by_time} == {SplitFacts(kind="time", column="day")}
    assert {r.split for r in by_group} == {
        SplitFacts(kind="group", column="shop", n_train_groups=12 - tested, n_valid_groups=tested) for tested in (2, 3)
    }
    assert [r.n_train for r in by_time] == [30, 40, 50]
    assert ResultCollection.from_json(run.to_json()).results == run.results
    titles = [table.title for table in build_tables(run).tables]
    assert "(3 windows of time by day" in titles[0]
    assert "(5 splits, groups of shop kept whole" in titles[1]
    assert "by time (day): trained on the rows before each window" in dict(build_document(run).configuration)["Split"]
    baseline = make_baseline(run)
    assert [result.split.kind for result in baseline.results] == ["time", "group"]
    save_baseline(baseline, tmp_path / "followed.json")
    assert load_baseline(tmp_path / "followed.json").results == baseline.results
    assert {one.kind for one in observe(by_time, "rmse").values()} == {"time"}


def test_a_table_of_windows_says_what_its_verdicts_do_not_promise():
    split = SplitFacts(kind="time", column="day")
    values = {"a": (0.5, 0.6, 0.5, 0.6), "b": (0.8, 0.9, 0.8, 0.9)}
    rows = [
        factories.result(library=name, value=value, fold=fold, split=split)
        for name, row in values.items()
        for fold, value in enumerate(row)
    ]
    (table,) = build_tables(ResultCollection(rows)).tables
    assert "a verdict is about the period that the data covers" in " ".join(table.notes)
    (alone,) = build_tables(ResultCollection(rows[:4])).tables
    assert not any("period" in note for note in alone.notes)
