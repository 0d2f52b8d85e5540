import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import factories
from boosters_eval.core.errors import ConfigError, ExitCode, UnknownNameError
from boosters_eval.programs.baseline.check import check, is_regression
from boosters_eval.programs.baseline.document import summarize_check
from boosters_eval.programs.baseline.findings import CheckRules, Status
from boosters_eval.programs.baseline.snapshot import Snapshot, make_baseline
from boosters_eval.programs.benchmark.records import RunMetadata, Unsupported
from boosters_eval.runners.result import SplitFacts

V1 = Path(__file__).parents[2] / "fixtures" / "baseline_v1.json"


@pytest.fixture
def against(make):
    """Check a run against the unspoilt one."""

    def compare(run, *, before=None, recorded_seeds=3, **rules):
        recorded = make_baseline(before or make.run(seeds=recorded_seeds))
        return check(Snapshot.of_baseline(recorded), Snapshot.of_run(run), CheckRules(**rules))

    return compare


def code(found, **rules):
    """The exit code by other rules."""
    return replace(found, rules=found.rules.replace(**rules)).exit_code


def status(found, config="california/gbdt", library="boosters"):
    return next(f for f in found.findings if (f.config, f.library) == (config, library)).status


def test_the_same_run_passes(make, against):
    found = against(make.run())
    assert found.passed
    assert {f.status for f in found.findings} == {Status.SAME}
    assert found.exit_code == ExitCode.SUCCESS


def test_a_pair_that_is_worse_than_tolerance_is_a_regression_and_only_it(make, against):
    found = against(make.run({("california/gbdt", "boosters"): 1.03}))
    assert [(f.config, f.library) for f in found.regressions] == [("california/gbdt", "boosters")]
    assert found.regressions[0].change == pytest.approx(0.03)
    assert found.exit_code == ExitCode.REGRESSION
    assert code(found, fail_on_regression=False) == ExitCode.SUCCESS


@pytest.mark.parametrize(
    ("factor", "expected"),
    [(1.019, Status.WITHIN), (1.021, Status.REGRESSION), (0.981, Status.WITHIN), (0.97, Status.IMPROVED)],
)
def test_tolerance_parts_regressions_from_changes(make, against, factor, expected):
    assert status(against(make.run({"boosters": factor}))) is expected


def test_more_is_better_is_turned_around(make, against):
    def scored(value):
        run = make.run()
        run.results = [
            r.model_copy(update={"primary_metric": "accuracy", "metrics": {"accuracy": value}}) for r in run.results
        ]
        return run

    assert status(against(scored(0.9), before=scored(0.95))) is Status.REGRESSION
    assert status(against(scored(0.95), before=scored(0.9))) is Status.IMPROVED


def test_a_tolerance_of_its_own_for_a_config_goes_before_one_for_a_metric(make, against):
    run = make.run({"boosters": 1.05})
    found = against(run, tolerance_for={"rmse": 0.06})
    assert [f.config for f in found.regressions] == ["breast_cancer/gbdt"]
    found = against(run, tolerance_for={"rmse": 0.06, "california/gbdt": 0.01, "breast_cancer/gbdt": 0.1})
    assert [f.config for f in found.regressions] == ["california/gbdt"]


def test_names_in_the_rules_are_known_whatever_their_spelling(make, against):
    run = make.run({"boosters": 1.05, "xgboost": 1.05})
    found = against(run, tolerance_for={"RMSE": 0.06, "Breast-Cancer/GBDT": 0.06}, under_test=("XGBoost",))
    assert found.regressions == []
    assert against(run, tolerance_for={"RMSE": 0.06}, under_test=("XGBoost",)).rules.under_test == ("xgboost",)
    with pytest.raises(ConfigError, match="The 'tolerance_for' parameter of rmse is given twice"):
        against(run, tolerance_for={"RMSE": 0.06, "rmse": 0.01})


def test_a_misspelt_name_in_the_rules_is_refused(make, against):
    with pytest.raises(UnknownNameError, match="Did you mean 'rmse'"):
        against(make.run(), tolerance_for={"rmsee": 0.1})
    with pytest.raises(UnknownNameError, match="Did you mean 'boosters'"):
        against(make.run(), under_test=("booster",))


@given(
    mean=st.floats(1e-6, 1e6),
    factor=st.floats(0.5, 2),
    tolerance=st.floats(0, 0.9),
    lower=st.booleans(),
)
def test_is_regression_is_the_rfc_s_rule_for_positive_means(mean, factor, tolerance, lower):
    current = mean * factor
    expected = current > mean * (1 + tolerance) if lower else current < mean * (1 - tolerance)
    assert is_regression(mean, current, tolerance, lower_is_better=lower) == expected


@given(mean=st.floats(-1e6, 1e6), tolerance=st.floats(0, 0.99), lower=st.booleans())
def test_what_is_unchanged_is_never_a_regression(mean, tolerance, lower):
    assert not is_regression(mean, mean, tolerance, lower_is_better=lower)


@given(mean=st.floats(-1e6, 1e6), worse=st.floats(0.1, 10), tolerance=st.floats(0, 0.09), lower=st.booleans())
def test_what_is_worse_by_more_than_its_tolerance_is_always_a_regression(mean, worse, tolerance, lower):
    assume(abs(mean) > 1e-9)
    current = mean + abs(mean) * worse * (1 if lower else -1)
    assert is_regression(mean, current, tolerance, lower_is_better=lower)


def test_a_metric_that_was_zero_and_is_not_any_more_is_a_regression(make, against):
    def scored(value):
        run = make.run()
        run.results = [r.model_copy(update={"metrics": {r.primary_metric: value}}) for r in run.results]
        return run

    found = against(scored(0.01), before=scored(0.0))
    assert status(found) is Status.REGRESSION
    assert found.regressions[0].change == math.inf
    assert against(scored(0.0), before=scored(0.0)).passed


def test_a_config_that_was_not_run_fails(make, against):
    found = against(make.run(configs=("california/gbdt",)))
    assert status(found, "breast_cancer/gbdt") is Status.SKIPPED
    assert not found.passed
    assert found.exit_code == ExitCode.EXECUTION_ERROR
    assert code(found, fail_on_regression=False, continue_on_error=True) == ExitCode.EXECUTION_ERROR


def test_a_library_that_was_not_run_fails_and_is_named(make, against):
    found = against(make.run(libraries=("boosters",)))
    assert [f.note for f in found.unanswered] == ["in the baseline, but xgboost was not run at all"] * 2


def test_what_the_user_left_out_is_listed_and_does_not_fail(make, against):
    found = against(make.run(libraries=("boosters",)), only_libraries=("boosters",))
    assert found.passed
    assert [f.library for f in found.findings if f.status is Status.SKIPPED] == ["xgboost"] * 2


def test_a_restriction_excuses_only_what_it_left_out(make, against):
    found = against(make.run(libraries=("xgboost",)), only_libraries=("boosters", "xgboost"))
    assert [f.library for f in found.unanswered] == ["boosters"] * 2
    found = against(
        make.run(configs=("california/gbdt",)),
        only_pairs=frozenset({("california/gbdt", "boosters"), ("california/gbdt", "xgboost")}),
    )
    assert found.passed


def test_what_became_unsupported_fails_with_its_reason(make, against):
    run = make.run(configs=("california/gbdt",))
    run.unsupported = [factories.absence(Unsupported, "breast_cancer/gbdt", "boosters", "no binary task")]
    note = next(f.note for f in against(run).unanswered if f.library == "boosters")
    assert note == "in the baseline, but not supported now: no binary task"


def test_a_crash_where_there_is_a_baseline_is_a_regression(make, against):
    run = make.run()
    run.results.remove(run.results[0])
    run.errors.append(make.error())
    found = against(run)
    assert status(found) is Status.CRASHED
    assert found.exit_code == ExitCode.REGRESSION
    assert code(found, continue_on_error=True) == ExitCode.REGRESSION
    assert code(found, fail_on_regression=False) == ExitCode.EXECUTION_ERROR
    assert code(found, fail_on_regression=False, continue_on_error=True) == ExitCode.SUCCESS


def test_a_config_all_of_whose_libraries_crashed_is_a_regression(make, against):
    run = make.run(configs=("california/gbdt",))
    run.errors = [make.error("breast_cancer/gbdt", library) for library in ("boosters", "xgboost")]
    assert status(against(run), "breast_cancer/gbdt") is Status.CRASHED


def test_where_everything_crashed_nothing_is_said_of_how_it_was_compared(make):
    run, whole = make.run(), make.run()
    run.errors = [make.error(one.config_name, one.library) for one in run.results]
    run.results.clear()
    found = check(Snapshot.of_baseline(make_baseline(whole)), Snapshot.of_run(run), name="b.json")
    assert found.exit_code == ExitCode.REGRESSION
    assert not any("were compared" in line for line in summarize_check(found))
    same = check(Snapshot.of_baseline(make_baseline(whole)), Snapshot.of_run(make.run()), name="b.json")
    assert any("Only means were compared" in line for line in summarize_check(same))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_no_number_is_an_error_and_never_a_pass(make, against, bad):
    run = make.run()
    run.results[0] = make.result(metrics={"rmse": bad})
    found = against(run)
    assert status(found) is Status.NOT_FINITE
    assert code(found, fail_on_regression=False, continue_on_error=True) == ExitCode.EXECUTION_ERROR


def test_a_cell_that_did_not_run_fails_its_pair(make, against):
    run = make.run()
    del run.results[0]
    assert status(against(run)) is Status.SKIPPED
    assert not against(run).passed


def test_a_run_without_the_recorded_metric_has_no_answer(make, against):
    run = make.run()
    run.results = [
        r.model_copy(update={"primary_metric": "accuracy", "metrics": {"accuracy": 0.9}}) for r in run.results
    ]
    assert {f.note for f in against(run).unanswered} == {"the run has no rmse", "the run has no logloss"}


def test_a_new_config_is_information(make, against):
    found = against(make.run(), before=make.run(configs=("california/gbdt",)))
    assert status(found, "breast_cancer/gbdt") is Status.NEW
    assert found.passed
    assert found.exit_code == ExitCode.SUCCESS


def test_a_crash_of_a_new_config_is_still_an_error_of_the_run(make, against):
    run = make.run(configs=("california/gbdt",))
    run.errors.append(make.error("breast_cancer/gbdt"))
    found = against(run, before=make.run(configs=("california/gbdt",)))
    assert status(found, "breast_cancer/gbdt") is Status.CRASHED
    assert not found.passed
    assert found.exit_code == ExitCode.EXECUTION_ERROR
    assert code(found, continue_on_error=True) == ExitCode.SUCCESS


def test_nothing_in_common_is_a_configuration_error(make, against):
    with pytest.raises(ConfigError, match="Nothing was compared") as caught:
        against(make.run(configs=("california/gbdt",)), before=make.run(configs=("breast_cancer/gbdt",)))
    assert caught.value.exit_code == 3


def test_an_upgraded_competitor_is_told_apart_and_does_not_fail(make, against):
    found = against(make.run({"xgboost": 1.096}, versions={"xgboost": "3.4.1"}))
    assert found.upgrades == {"xgboost": ("3.1.2", "3.4.1")}
    assert status(found, library="xgboost") is Status.REGRESSION
    assert found.passed
    assert found.exit_code == ExitCode.SUCCESS


def test_a_competitor_of_the_recorded_version_counts(make, against):
    assert [f.library for f in against(make.run({"xgboost": 1.096})).regressions] == ["xgboost"] * 2


def test_boosters_counts_whatever_its_version(make, against):
    found = against(make.run({"boosters": 1.05}, versions={"boosters": "0.2.0"}))
    assert [f.library for f in found.regressions] == ["boosters"] * 2


def test_only_libraries_under_test_fail_when_they_are_named(make, against):
    run = make.run({"boosters": 1.05, "xgboost": 1.05}, versions={"xgboost": "3.4.1"})
    assert {f.library for f in against(run, under_test=("xgboost",)).regressions} == {"xgboost"}
    assert {f.library for f in against(run, under_test=("boosters", "xgboost")).regressions} == {"boosters", "xgboost"}


def test_a_library_that_does_not_count_may_be_missing(make, against):
    assert against(make.run(libraries=("boosters",)), under_test=("boosters",)).passed


def test_a_crash_of_a_library_that_does_not_count_is_an_error_not_a_regression(make, against):
    run = make.run(libraries=("boosters",))
    run.errors = [make.error(config, "xgboost") for config in ("california/gbdt", "breast_cancer/gbdt")]
    found = against(run, under_test=("boosters",))
    assert found.exit_code == ExitCode.EXECUTION_ERROR
    assert code(found, continue_on_error=True) == ExitCode.SUCCESS


def test_other_data_is_not_comparable_even_when_it_scores_better(make, against):
    run = make.run({"boosters": 0.5})
    run.results = [r.model_copy(update={"data_digest": "f" * 64}) for r in run.results]
    found = against(run)
    assert status(found) is Status.UNLIKE
    assert "the data is not the recorded data" in found.unanswered[0].note
    assert found.exit_code == ExitCode.EXECUTION_ERROR


def test_other_splits_are_not_comparable_and_not_tested(make, against):
    run = make.run()
    run.results = [r.model_copy(update={"split_digest": "f" * 64}) for r in run.results]
    found = against(run, statistical=True)
    assert {f.status for f in found.findings} == {Status.UNLIKE}
    assert "the split of cell 42 is not the recorded split" in found.findings[0].note
    assert found.findings[0].p_value is None


def test_other_seeds_alone_are_not_comparable(make, against):
    run = make.run(seeds=5)
    run.results = [r for r in run.results if r.seed > 2716]
    assert {f.note for f in against(run).unanswered} == {"no seed is in both"}


def test_fewer_seeds_are_compared_over_those_that_both_have(make, against):
    found = against(make.run(seeds=2), recorded_seeds=5, seeds=2)
    assert {f.status for f in found.findings} == {Status.SAME}
    assert found.findings[0].note == "over 2 of the 5 recorded seeds"
    assert found.findings[0].baseline.n == 2


def test_fewer_cells_than_recorded_fail_unless_fewer_were_asked_for(make, against):
    found = against(make.run(seeds=2), recorded_seeds=5)
    assert {f.note for f in found.unanswered} == {"only 2 of the 5 recorded cells were run"}
    assert code(found, fail_on_regression=False, continue_on_error=True) == ExitCode.EXECUTION_ERROR
    worse = against(make.run({"boosters": 1.05}, seeds=2), recorded_seeds=5)
    assert [f.library for f in worse.regressions] == ["boosters"] * 2  # what is known to be worse is said as such


@pytest.mark.parametrize(
    ("asked", "run", "passes"), [(2, 2, True), (2, 3, True), (9, 5, True), (3, 2, False), (9, 4, False)]
)
def test_each_pair_needs_as_many_seeds_as_were_asked_for(make, against, asked, run, passes):
    found = against(make.run(seeds=run), recorded_seeds=5, seeds=asked)
    assert found.passed == passes
    asked_for = f"; {asked} seeds were asked for" if asked < 5 else ""
    told = set() if passes else {f"only {run} of the 5 recorded cells were run{asked_for}"}
    assert {f.note for f in found.unanswered} == told


def test_seeds_that_were_asked_for_are_counted_with_all_their_folds(make):
    def snapshot(cells):
        results = [factories.result(seed=seed, fold=fold) for seed, fold in cells]
        return Snapshot.of_run(factories.collection(results))

    recorded = snapshot((seed, fold) for seed in (1, 2, 3) for fold in range(4))
    whole = snapshot((seed, fold) for seed in (1, 2) for fold in range(4))
    torn = snapshot((seed, fold) for seed in (1, 2) for fold in range(3))
    rules = CheckRules(seeds=2)
    assert check(recorded, whole, rules).passed
    assert [f.note for f in check(recorded, torn, rules).unanswered] == [
        "only 6 of the 12 recorded cells were run; 2 seeds were asked for"
    ]


def test_fewer_values_than_a_mean_without_values_per_seed_was_made_of_fail(make):
    from boosters_eval.programs.baseline.model import load_baseline

    recorded = Snapshot.of_baseline(load_baseline(V1))
    run = Snapshot.of_run(make.run(libraries=("boosters",)))
    rules = {"only_libraries": ("boosters",), "tolerance": 0.5}
    found = check(recorded, run, CheckRules(**rules))
    assert "only 3 of the 5 recorded cells were run" in {f.note for f in found.unanswered}
    assert status(check(recorded, run, CheckRules(**rules, seeds=3))) is not Status.SKIPPED


def test_a_cell_of_the_plan_that_nobody_ran_is_an_error(make, against):
    run = make.run(metadata=RunMetadata(n_missing=2))
    found = against(run)
    assert found.errors == 2
    assert not found.passed
    assert found.exit_code == ExitCode.EXECUTION_ERROR
    del run.results[0]  # one of the two, known by its name
    assert against(run).errors == 2


@pytest.mark.parametrize("first", [True, False])
def test_two_results_for_one_cell_are_not_comparable_whichever_comes_last(make, against, first):
    run = make.run()
    run.results.insert(0 if first else len(run.results), make.result(factor=2.0))
    found = against(run)
    assert status(found) is Status.UNLIKE
    assert found.unanswered[0].note == "cell 42: the run has 2 outcomes for it"
    assert code(found, continue_on_error=True) == ExitCode.EXECUTION_ERROR


def test_a_check_of_which_nothing_counts_is_a_configuration_error(make, against):
    run = make.run({"xgboost": 2.0}, libraries=("xgboost",), versions={"xgboost": "3.4.1"})
    found = against(run, only_libraries=("xgboost",))
    assert not found.passed
    assert code(found, fail_on_regression=False, continue_on_error=True) == ExitCode.CONFIGURATION_ERROR


def test_a_library_under_test_that_is_new_in_the_run_has_nothing_to_be_held_against(make, against):
    with pytest.raises(UnknownNameError, match="library of the baseline under test 'xgboost'"):
        against(make.run(), before=make.run(libraries=("boosters",)), under_test=("xgboost",))


def test_changed_parameters_are_named(make, against):
    run = make.run({"boosters": 1.05})
    run.results = [r.model_copy(update={"native_params": {"max_depth": 4, "eta": 0.1, "new": 1}}) for r in run.results]
    (cause,) = against(run).regressions[0].cause
    assert cause.startswith("parameters changed: max_depth 6 → 4, new unset → 1")


def test_another_build_of_the_same_version_is_said(make, against):
    run = make.run()
    builds = {**run.metadata.facts.targets, "boosters": {"version": "0.1.0", "digest": "other"}}
    factories.remember(run, environment={"targets": builds})
    expected = "boosters 0.1.0 has the recorded version, but the library or its adapter is not the recorded build."
    assert against(run).notes == (expected,)


def timed(run, factor=1.0, machine="m1"):
    run.results = [
        r.model_copy(update={"timing_mode": True, "train_time_s": r.train_time_s * factor}) for r in run.results
    ]
    return factories.remember(run, environment={"machine": {**run.metadata.facts.machine, "digest": machine}})


def test_times_are_told_on_the_same_machine_and_never_fail(make):
    before = Snapshot.of_run(timed(make.run()))
    found = check(before, Snapshot.of_run(timed(make.run(), 10)))
    assert found.passed
    (note,) = [note for note in found.notes if "Times" in note]
    assert note.startswith(
        "Times on this machine against the baseline's, which never fail:"
        " california/gbdt boosters train time x 10.00, predict time x 1.00; california/gbdt xgboost"
    )


def test_times_of_another_machine_are_not_compared(make):
    found = check(Snapshot.of_run(timed(make.run())), Snapshot.of_run(timed(make.run(), 10, "m2")))
    assert found.notes == ("Times are not compared: the baseline was recorded on another machine.",)


class TestStatistical:
    def test_a_clear_regression_is_significant(self, make, against):
        found = against(make.run({"boosters": 1.05}), statistical=True)
        assert [f.library for f in found.regressions] == ["boosters"] * 2
        assert found.regressions[0].p_value < 0.01

    def test_a_small_but_steady_change_is_drift_and_passes(self, make, against):
        found = against(make.run({"boosters": 1.015}), statistical=True)
        assert status(found) is Status.DRIFT
        assert found.passed
        assert found.exit_code == ExitCode.SUCCESS

    def test_an_improvement_within_tolerance_is_not_drift(self, make, against):
        assert status(against(make.run({"boosters": 0.985}), statistical=True)) is Status.WITHIN

    def test_a_change_beyond_tolerance_that_may_be_noise_is_undecided_and_fails(self, make, against):
        run = noisy(make, {0: 1.055, 1: 1.005, 2: 1.03})
        assert status(against(run)) is Status.REGRESSION
        found = against(run, statistical=True)
        assert status(found) is Status.UNDECIDED
        assert (found.findings[0].seeds_needed, found.findings[0].n_recorded) == (29, 3)
        assert found.findings[0].note.endswith("; 29 seeds would decide if the change stays as it is")
        assert found.exit_code == ExitCode.REGRESSION
        assert code(found, fail_on_regression=False) == ExitCode.SUCCESS

    def test_what_no_number_of_seeds_would_decide_is_undecided_too(self, make, against):
        found = against(noisy(make, {0: 1.12, 1: 0.95, 2: 1.03}), statistical=True)
        assert status(found) is Status.UNDECIDED
        assert found.findings[0].note.endswith(
            "no number of seeds would make such a change significant, as splits share rows"
        )
        assert found.exit_code == ExitCode.REGRESSION

    def test_seeds_are_not_advised_where_they_add_no_windows_of_time(self):
        def run(*values):
            split = SplitFacts(kind="time", column="day")
            return factories.collection(
                [factories.result(fold=fold, value=value, split=split) for fold, value in enumerate(values)]
            )

        recorded = Snapshot.of_baseline(make_baseline(run(0.5, 0.6, 0.5, 0.6)))
        found = check(recorded, Snapshot.of_run(run(0.56, 0.62, 0.55, 0.63)), CheckRules(statistical=True))
        assert found.findings[0].status is Status.UNDECIDED
        assert found.findings[0].note.endswith("more seeds would not decide, as they add no windows of time")
        assert found.findings[0].seeds_needed is None

    def test_a_run_that_stopped_at_a_look_is_judged_at_the_level_of_that_look(self, make, against):
        run = noisy(make, {0: 1.06, 1: 1.04, 2: 1.05})
        assert status(against(run, statistical=True)) is Status.REGRESSION
        factories.remember(run, alpha=0.0125)
        found = against(run, statistical=True)
        assert status(found) is Status.UNDECIDED
        assert "p = 0.025 by splits with 0.0125 or less needed; 4 seeds would decide" in found.findings[0].note

    def test_too_few_cells_to_test_leave_the_tolerance_to_decide(self, make, against):
        found = against(make.run({"boosters": 1.05}, seeds=1), recorded_seeds=1, statistical=True)
        assert status(found) is Status.REGRESSION
        assert "the tolerance alone decides" in found.regressions[0].note

    def test_a_shift_without_any_variance_does_not_slip_through(self, make, against):
        run = make.run()
        run.results = [
            r.model_copy(update={"metrics": {r.primary_metric: r.metrics[r.primary_metric] + 0.1}}) for r in run.results
        ]
        assert status(against(run, statistical=True)) is Status.REGRESSION

    def test_version_1_without_values_per_seed_is_decided_by_tolerance(self, make):
        from boosters_eval.programs.baseline.model import load_baseline

        recorded = load_baseline(V1)
        run = make.run({"california/gbdt": 1.05}, seeds=3)
        found = check(Snapshot.of_baseline(recorded), Snapshot.of_run(run), CheckRules(statistical=True))
        assert status(found) is Status.REGRESSION
        assert "n is 5 and 3" in found.regressions[0].note

    def test_equal_scores_are_the_same(self, make, against):
        assert {f.status for f in against(make.run(), statistical=True).findings} == {Status.SAME}


def noisy(make, factors):
    """A run whose cells are worse by these factors, in turn."""
    run = make.run()
    run.results = [make.result(r.config_name, r.library, i % 3, factors[i % 3]) for i, r in enumerate(run.results)]
    return run


_scores = st.lists(st.floats(0.05, 20), min_size=2, max_size=8)


@given(
    then=_scores,
    factors=st.lists(st.floats(0.5, 4), min_size=8, max_size=8),
    tolerance=st.sampled_from([0, 0.02, 0.3]),
    metric=st.sampled_from(["rmse", "auc_roc"]),
    ratio=st.sampled_from([None, 0.05, 0.25, 1.0]),
)
def test_statistical_never_passes_what_the_tolerance_fails(then, factors, tolerance, metric, ratio):
    """For an interval around the mean that lies within the tolerance, the mean does too, so there is no exception."""
    now = [value * factor for value, factor in zip(then, factors, strict=False)]
    sizes = {} if ratio is None else {"n_train": 1000, "n_valid": int(1000 * ratio)}
    sides = [
        Snapshot.of_baseline(
            factories.baseline(
                factories.baseline_result(values={str(i): v for i, v in enumerate(side)}, metric=metric, **sizes)
            )
        )
        for side in (then, now)
    ]
    plain, tested = (check(*sides, CheckRules(tolerance=tolerance, statistical=how)) for how in (False, True))
    assert tested.exit_code == plain.exit_code


class TestFlaky:
    @pytest.fixture
    def flaky(self, make):
        """Two cells of boosters and one of xgboost finished only after failing."""
        run = make.run()
        for index, tries in ((0, 2), (1, 1), (3, 4)):
            run.results[index] = run.results[index].model_copy(update={"failed_before": tries})
        return run

    def test_a_cell_that_finished_only_after_failing_is_an_execution_error(self, flaky, against):
        found = against(flaky)
        assert [(f.library, f.flaky) for f in found.flaky] == [
            ("boosters", {"42": 2, "1379": 1}),
            ("xgboost", {"42": 4}),
        ]
        assert {f.status for f in found.findings} == {Status.SAME}
        assert found.exit_code == ExitCode.EXECUTION_ERROR
        assert code(found, fail_on_regression=False, continue_on_error=True) == ExitCode.EXECUTION_ERROR

    @pytest.mark.parametrize(("allowed", "passed"), [(2, False), (3, True)])
    def test_as_many_as_are_allowed_pass(self, flaky, against, allowed, passed):
        assert against(flaky, allow_flaky=allowed).passed is passed

    def test_a_regression_goes_before(self, flaky, against, make):
        assert against(flaky, before=make.run({"boosters": 0.9})).exit_code == ExitCode.REGRESSION

    def test_a_flaky_library_that_does_not_count_may_be_excused_like_its_failures(self, flaky, against):
        flaky.results = [
            r.model_copy(update={"failed_before": 0}) if r.library == "boosters" else r for r in flaky.results
        ]
        found = against(flaky, under_test=("boosters",))
        assert found.exit_code == ExitCode.EXECUTION_ERROR
        assert code(found, continue_on_error=True) == ExitCode.SUCCESS

    def test_a_baseline_with_flaky_cells_says_so(self, flaky, make):
        recorded = Snapshot.of_baseline(make_baseline(flaky, allow_flaky=3))
        found = check(recorded, Snapshot.of_run(make.run()))
        assert found.passed
        assert found.notes == ("Cells of the baseline that finished only after failing, as was allowed: 3.",)


def test_rules_refuse_what_is_no_share():
    for wrong in (-0.1, 1, math.nan):
        with pytest.raises(ConfigError, match="tolerance"):
            CheckRules(tolerance=wrong)
