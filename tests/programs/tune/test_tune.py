"""`tune` on real fits: the same trials for all, chosen by training rows alone, and nothing lost by an interruption."""

from itertools import combinations

import numpy as np
import pytest

from boosters_eval import Observer, RunError, TrainingConfig, load_run, tune
from boosters_eval.core.errors import ConfigError
from boosters_eval.core.request import load_request
from boosters_eval.datasets import open_stored
from boosters_eval.engine.runs import find_run
from boosters_eval.programs.benchmark.fit import take_data
from boosters_eval.programs.benchmark.runs import collect_fits
from boosters_eval.programs.tune.judge import _extrapolate
from boosters_eval.programs.tune.plan import Search
from tiny import shared_pool

LIBRARIES = ("boosters", "lightgbm")
FEW = {"trials": 3, "seeds": 2}
# boosters draws columns without a seed, so such a fit is never taken over.
FAST = {"training": TrainingConfig(n_estimators=10, colsample=1.0), **FEW}


class Stopper(Observer):
    """Interrupts a run after so many cells, and counts those that run."""

    def __init__(self, after=None):
        self.after, self.ran = after, 0

    def outcome(self, event):
        self.ran += 1
        if self.ran == self.after:
            raise KeyboardInterrupt


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def found(place):
    return tune("diabetes", LIBRARIES, **FAST, home=place, executor=shared_pool())


@pytest.fixture(scope="module")
def results(place, found):
    return collect_fits(find_run(found.run, place).load())


def search_of(**given):
    return Search.of(load_request("tune")(**given))


def test_every_library_tries_the_same_configurations_on_the_same_rows(results):
    tried = {
        name: {(one.config_name, one.repeat, one.split_digest) for one in results.results if one.library == name}
        for name in LIBRARIES
    }
    assert tried["boosters"] == tried["lightgbm"]
    assert len(tried["boosters"]) == (3 + 1) * 2 * 2  # trials and defaults, splits, inner and outer


@pytest.mark.parametrize(
    ("data", "split"),
    [
        ("diabetes", None),
        ("breast_cancer", None),
        ("synthetic_rank_small", None),
        ("diabetes", "time"),
        ("diabetes", "group:age"),
    ],
)
def test_no_row_that_is_scored_on_is_chosen_by(data, split):
    plan = search_of(datasets=[data], libraries=["lightgbm"], trials=1, seeds=3, split=split, inner=1).prepare(1)
    by = {(cell.spec.name, cell.repeat): cell for cell in plan.plan.cells}
    inner = [cell for cell in plan.plan.cells if cell.spec.inner]
    assert len(inner) == len(plan.plan.cells) / 2
    for cell in inner:
        outer = by[cell.spec.name.partition("~")[0], cell.repeat]
        inputs = plan.inputs(cell, None)
        table = open_stored(plan.inputs.stored[cell.spec.dataset].path)
        mine, whole = (take_data(each, table, inputs).split for each in (cell, outer))
        assert set(mine.train) | set(mine.valid) == set(whole.train)
        assert not set(mine.train) & set(mine.valid)
        assert not (set(mine.train) | set(mine.valid)) & set(whole.valid)
        if split == "time":
            assert mine.train.max() < mine.valid.min()
        if table.groups is not None:
            assert not set(table.groups[mine.train]) & set(table.groups[mine.valid])
        if split == "group:age":
            assert not set(table.split_by[mine.train]) & set(table.split_by[mine.valid])


def test_training_rows_that_cannot_be_split_again_are_refused_before_anything_runs():
    with pytest.raises(ConfigError, match="must be split once more, by group 'sex'"):
        search_of(libraries=["lightgbm"], trials=1, seeds=1, split="group:sex").prepare(1)
    with pytest.raises(ConfigError, match="'inner' parameter must be 1 where rows are split by time"):
        search_of(libraries=["lightgbm"], split="time", inner=2)


def test_several_inner_parts_are_disjoint_and_share_the_training_rows_out():
    plan = search_of(libraries=["lightgbm"], trials=1, seeds=1, inner=5).prepare(1)
    cells = [cell for cell in plan.plan.cells if cell.spec.inner and "-t1" in cell.spec.name]
    table = open_stored(plan.inputs.stored["diabetes"].path)
    tested = [set(take_data(cell, table, plan.inputs(cell, None)).split.valid) for cell in cells]
    assert len(tested) == 5
    assert not any(a & b for a, b in combinations(tested, 2))
    assert sum(map(len, tested)) == pytest.approx(0.8 * 442, abs=1)


def test_what_is_told_is_what_the_cells_say(found, results):
    """The tuned score: on each split, the outer score of the trial with the best inner one."""
    task = found.tasks[0]
    for one in task.libraries:
        mine = [result for result in results.results if result.library == one.library]
        outer = {(r.config_name, r.repeat): r.metrics["rmse"] for r in mine if "~" not in r.config_name}
        inner = {(r.config_name.partition("~")[0], r.repeat): r.metrics["rmse"] for r in mine if "~" in r.config_name}
        names = list(dict.fromkeys(name for name, _ in outer))
        repeats = list(dict.fromkeys(repeat for _, repeat in outer))
        chosen = [min(names, key=lambda name, at=at: inner[name, at]) for at in repeats]
        assert one.tuned == pytest.approx(np.mean([outer[name, at] for name, at in zip(chosen, repeats, strict=True)]))
        assert one.default == pytest.approx(np.mean([outer["diabetes/gbdt", at] for at in repeats]))
        sets = list(combinations(names[1:], 2))
        two = [
            outer[min((names[0], *drawn), key=lambda name, at=at: inner[name, at]), at]
            for drawn in sets
            for at in repeats
        ]
        assert one.curve[2].score == pytest.approx(np.mean(two))
        assert one.percent == pytest.approx(100 * (one.default - one.tuned) / one.default)
        assert sum(each.splits for each in one.chosen) == 2


def test_a_search_costs_its_inner_fits_and_the_outer_one_of_what_it_chooses(found, results):
    for one in found.tasks[0].libraries:
        mine = [result for result in results.results if result.library == one.library]
        inner = [(r.config_name.partition("~")[0], r.repeat, r) for r in mine if "~" in r.config_name]
        outer = {(r.config_name, r.repeat): r.cpu_time_s for r in mine if "~" not in r.config_name}
        repeats = {at for _, at, _ in inner}
        chosen = [min((r.metrics["rmse"], name) for name, at, r in inner if at == repeat)[1] for repeat in repeats]
        paid = sum(r.cpu_time_s for *_, r in inner) + sum(map(outer.get, zip(chosen, repeats, strict=True)))
        assert one.curve[-1].cpu_s == pytest.approx(paid / len(repeats))
        assert one.cpu_s > one.curve[-1].cpu_s > 0


def test_a_notebook_shows_the_answer_and_the_curves(found):
    shown = found._repr_html_()
    assert "Worth it" in shown
    assert "<polyline" in found.to_html()
    names = [figure.name for figure in found.document().figures()]
    assert names == ["diabetes trials", "diabetes CPU time"]


def test_what_is_fixed_is_in_every_trial_and_not_searched(found, results):
    assert "n_estimators" not in found.axes["boosters"]
    trials = [one for one in results.results if "-t" in one.config_name and one.library == "lightgbm"]
    assert {one.native_params["num_iterations"] for one in trials} == {10}


def test_an_interrupted_search_goes_on_and_says_the_same(tmp_path, found):
    stopped, rest = Stopper(after=7), Stopper()
    again = {"home": tmp_path, "executor": shared_pool()}
    with pytest.raises(KeyboardInterrupt):
        tune("diabetes", LIBRARIES, **FAST, **again, observer=stopped)
    resumed = tune("diabetes", LIBRARIES, **FAST, **again, observer=rest, resume=True)
    assert rest.ran == found.cells - 7
    alike = [
        [(one.library, one.tuned, one.default, one.percent) for one in each.tasks[0].libraries]
        for each in (resumed, found)
    ]
    assert alike[0] == alike[1]


def test_an_interrupted_search_with_a_budget_goes_on_with_its_rounds(tmp_path, found):
    stopped, rest = Stopper(after=20), Stopper()
    again = {"home": tmp_path, "executor": shared_pool(), "cpu_budget": 1e6}
    with pytest.raises(KeyboardInterrupt):
        tune("diabetes", LIBRARIES, **FAST, **again, observer=stopped)
    resumed = tune("diabetes", LIBRARIES, **FAST, **again, observer=rest, resume=True)
    assert rest.ran == found.cells - 20
    assert [one.tuned for one in resumed.tasks[0].libraries] == [one.tuned for one in found.tasks[0].libraries]


def test_cells_of_earlier_searches_are_taken_over(place, results, kept_pool):
    watch = Stopper()
    more = tune("diabetes", LIBRARIES, **{**FAST, "trials": 4}, home=place, observer=watch, reuse=True)
    drawn = sum(one.nondeterministic is not None for one in results.results)  # another fit would say something else
    assert watch.ran == 2 * 2 * 2 + drawn < more.cells / 2  # one more trial: libraries, splits, inner and outer
    assert [one.curve[-1].cpu_s for one in more.tasks[0].libraries] == [None, None]  # times are of the moment


def test_a_budget_that_runs_out_leaves_out_whole_rounds_for_all_alike(tmp_path):
    watch = Stopper()
    budget = {"cpu_budget": 0.05, "home": tmp_path, "executor": shared_pool(), "observer": watch}
    some = tune("diabetes", LIBRARIES, **{**FAST, "trials": 200}, **budget)
    assert 1 <= some.trials < 200
    assert {one.trials for one in some.tasks[0].libraries} == {some.trials}
    assert watch.ran == some.cells == (some.trials + 1) * 2 * 2 * 2  # nothing runs twice
    assert some.notes[0].endswith("of 200 trials fit into 0.05 CPU seconds, the same for every library")


@pytest.mark.parametrize(("spent", "limit", "held"), [(2.0, 10.0, 9), (2.0, 1.0, 0), (0.0, 1.0, 2)])
def test_a_budget_holds_as_many_trials_as_those_so_far_took(spent, limit, held):
    assert _extrapolate(1, spent, limit) == held


def test_a_budget_of_time_that_is_over_at_once_leaves_one_trial_for_all(tmp_path):
    some = tune("diabetes", LIBRARIES, **FAST, budget="0.1s", home=tmp_path, executor=shared_pool())
    assert [one.trials for one in some.tasks[0].libraries] == [1, 1]
    assert "only 1 of 3 trials fit into 0.1 s" in " ".join(some.document().answer)


def test_own_spaces_are_each_library_s_own(tmp_path):
    own = tune("diabetes", LIBRARIES, **FEW, space="own", home=tmp_path, executor=shared_pool())
    found = collect_fits(find_run(own.run, tmp_path).load())
    native = {one.library: one.native_params for one in found.results if "-t1" in one.config_name}
    assert native["lightgbm"]["bagging_freq"] == 1
    assert "num_leaves" in own.axes["lightgbm"]
    assert "colsample_bytree" in own.axes["boosters"]
    assert not own.failed


def test_a_library_without_some_trial_takes_no_part_and_it_is_said(tmp_path):
    found = tune("synthetic_rank_small", ("sklearn", "lightgbm"), **FAST, home=tmp_path, executor=shared_pool())
    assert [one.library for one in found.tasks[0].libraries] == ["lightgbm"]
    assert "sklearn" in found.excluded[0]


def test_a_score_that_is_best_when_high_gains_in_percent_of_what_it_lacks(tmp_path):
    found = tune("breast_cancer", LIBRARIES, metric="auc_roc", **FAST, home=tmp_path, executor=shared_pool())
    task = found.tasks[0]
    assert (task.metric, task.higher_is_better) == ("auc_roc", True)
    for one in task.libraries:
        assert one.percent == pytest.approx(100 * (one.tuned - one.default) / (1 - one.default))
        assert one.tuned == pytest.approx(one.curve[-1].score)
    assert task.leader == max(task.libraries, key=lambda one: one.tuned).library


def test_each_data_set_has_an_answer_of_its_own(tmp_path):
    found = tune(["diabetes", "iris"], "lightgbm", trials=1, seeds=2, home=tmp_path, executor=shared_pool())
    answer = found.document().answer
    assert [line.partition(":")[0] for line in answer][:2] == ["Worth it, on diabetes", "Worth it, on iris"]
    assert [task.metric for task in found.tasks] == ["rmse", "mlogloss"]
    assert "Before and after on iris" in found.to_markdown()


def test_a_library_that_fails_is_told_and_is_no_success(faulty, home):
    found = tune("diabetes", ["lightgbm", "faulty"], **FAST, executor=shared_pool(), timeout=20)
    assert [one.library for one in found.tasks[0].libraries] == ["lightgbm"]
    assert found.exit_code == 2
    assert "faulty took no part" in " ".join(found.document().answer)


def test_trials_stop_early_where_that_is_asked_for(tmp_path):
    found = tune(
        "diabetes", "lightgbm", **{**FEW, "trials": 2}, early_stopping=1, home=tmp_path, executor=shared_pool()
    )
    results = collect_fits(find_run(found.run, tmp_path).load()).results
    rounds = [(one.n_trees_trained, one.native_params["num_iterations"]) for one in results if "-t" in one.config_name]
    assert all(trained < asked for trained, asked in rounds)


def test_a_search_is_no_benchmark(place, found):
    with pytest.raises(RunError, match="has no benchmark results: it is a tune run"):
        load_run(found.run, home=place)
