"""From a specification and results to a comparison: which numbers meet, in which unit, and under which conditions."""

from __future__ import annotations

import pytest

from boosters_eval.core.errors import ConfigError
from boosters_eval.programs.paper.comparison import PaperComparison, PaperResults, read_stored
from boosters_eval.programs.paper.document import show_metric
from boosters_eval.programs.paper.judge import compare_results
from factories import measured, paper, paper_results, paper_table


def metric(name, printed, values, *, changes=None, **table):
    spec = paper([paper_table({name: printed}, **table)])
    return compare_results(spec, paper_results(measured({name: values}, **(changes or {})))).targets[0].metrics[0]


def differences(spec, *targets, **changes):
    found = compare_results(spec, paper_results(*targets, **changes)).differences
    return {(each.what, each.paper, each.ours): each.where for each in found}


def test_the_rows_of_the_facts_are_judged_as_they_were_reproduced():
    accuracy = metric("accuracy", "0.874", (0.87379,))
    assert (accuracy.status, accuracy.equal_as_printed) == ("match", True)
    default = metric("rmse", "0.462", (0.4641, 0.4811), std_over=None)
    assert (default.status, default.within_tolerance) == ("close", True)


def test_a_lone_digit_is_not_equal_to_whatever_rounds_to_it():
    assert metric("accuracy", "1", (0.55,)).status == "significant_deviation"
    assert metric("accuracy", "1", (0.996,)).equal_as_printed
    assert metric("accuracy", "1.0", (0.955,)).within_tolerance is False
    assert metric("mistakes", "0.0", (0.04,)).equal_as_printed
    assert metric("auc", "0.9", (0.94,)).within_tolerance is False
    assert metric("mistakes", "0", (0.4,)).status == "significant_deviation"
    assert metric("accuracy", "1e2", (0.6,)).status == "significant_deviation"
    assert metric("rmse", "5e3", (5400,)).within_tolerance is False
    assert metric("rmse", "5e-3", (0.0054,)).equal_as_printed
    assert metric("Params (M)", "125", (125.4,)).equal_as_printed
    table = paper_table({"loss": "2"})
    table["results"] += paper_table({"loss": "1.874"}, row="CatBoost")["results"]
    found = compare_results(paper([table]), paper_results(measured({"loss": (2.3,)}))).targets[0].metrics[0]
    assert (found.paper_decimals, found.status) == (3, "significant_deviation")


def test_a_std_over_seeds_is_told_from_one_over_splits():
    table = paper_table({"rmse": "0.430", "rmse_std": "0.0007"}) | {"std_over": "seeds"}
    spread = (0.4328, 0.4504)  # mean 0.4416, standard deviation 0.0124
    found = compare_results(paper([table]), paper_results(measured({"rmse": spread}))).targets[0].metrics[0]
    assert (found.paper_std_over, found.our_std_over, found.n) == ("seeds", "splits", 2)
    assert found.z_score == pytest.approx((0.4416 - 0.430) / (0.0007**2 + found.our_std**2) ** 0.5)
    assert "the paper: 0.00070 over seeds; ours: 0.012 over splits, n = 2" in found.explanation
    assert (
        "is over seeds only, not over splits of the data; by it alone the difference would be 17" in found.explanation
    )


def test_a_z_score_needs_a_std_on_one_side_only():
    assert metric("rmse", "0.430", (0.44,)).z_score is None
    assert metric("rmse", "0.430", (0.44, 0.44)).z_score is None
    assert metric("rmse", "0.430", (0.43, 0.45)).z_score == pytest.approx(0.01 / 0.0141421356)
    table = paper_table({"rmse": "0.430", "rmse_std": "0.01"})
    lone = compare_results(paper([table]), paper_results(measured({"rmse": (0.44,)}))).targets[0].metrics[0]
    assert lone.z_score == pytest.approx(1.0)
    assert "the paper: 0.010 over what is not stated; ours: none, n = 1" in lone.explanation


def test_a_conversion_that_was_not_stated_is_said():
    found = metric("accuracy", "87.4", (0.874,))
    assert (found.our_value, found.unit) == (87.4, "%")
    assert found.notes == ("Ours is a fraction, because no value is beyond 1; the paper's is in percent.",)
    assert metric("accuracy", "0.874", (87.4,)).our_value == 0.874
    assert metric("accuracy", "87.4", (0.874,), our_units={"accuracy": "fraction"}).notes == ()
    assert metric("accuracy", "87.4", (0.874,), our_units={"accuracy": "%"}).status == "significant_deviation"


def test_a_low_value_among_percents_is_in_percent():
    table = paper_table({"accuracy": "0.9"})
    other = paper_table({"accuracy": "87.4"}, row="CatBoost")
    table["results"] += other["results"]
    found = compare_results(paper([table]), paper_results(measured({"accuracy": (0.9,)}))).targets[0].metrics[0]
    assert (found.unit, found.our_value, found.within_tolerance) == ("%", 90.0, False)


def test_what_may_be_percent_or_a_fraction_is_not_compared():
    found = metric("win rate", "0.5", (0.5,), units={"win rate": "%"})
    assert (found.status, found.within_tolerance) == ("missing", False)
    assert (
        found.explanation == "Whether our 'win rate' is in percent or a fraction is not known: state it in 'our_units'."
    )
    assert metric("win rate", "0.5", (0.5,), units={"win rate": "%"}, our_units={"win rate": "%"}).status == "match"
    assert metric("win rate", "51.5", (51.4,), units={"win rate": "%"}).status == "match"


def test_other_units_are_converted_where_both_are_stated():
    assert metric("latency", "12.5", (0.0125,), units={"latency": "ms"}, our_units={"latency": "s"}).our_value == 12.5
    assert metric("train_time_s", "2", (120.0,), units={"train_time_s": "min"}).our_value == 2.0
    assert metric("latency", "12.5", (12.4,), units={"latency": "ms"}).our_value == 12.4
    with pytest.raises(ConfigError, match=r"'Table 4' has 'latency' in 'ms', but ours is in 'MB': state both units."):
        metric("latency", "12.5", (1.0,), units={"latency": "ms"}, our_units={"latency": "MB"})


def test_a_metric_is_found_by_another_spelling():
    spec = paper([paper_table({"Log loss": "0.280"})])
    found = compare_results(spec, paper_results(measured({"logloss": (0.2801,)}))).targets[0].metrics[0]
    assert (found.status, found.higher_is_better) == ("match", False)


def test_what_a_name_says_besides_its_unit_is_not_another_spelling():
    spec = paper([paper_table({"F1 (macro)": "0.80", "F1 (%)": "90.0"})])
    macro, plain = (
        compare_results(spec, paper_results(measured({"F1 (micro)": (0.8,), "f1": (0.9,)}))).targets[0].metrics
    )
    assert (macro.status, plain.status) == ("missing", "match")
    assert macro.higher_is_better is True


def test_a_direction_is_known_or_said_or_there_is_no_better():
    assert metric("rmse", "1.00", (0.9,)).status == "better"
    assert metric("reward", "1.00", (1.2,)).status == "significant_deviation"
    assert metric("reward", "1.00", (1.2,), directions={"reward": "higher"}).status == "better"
    assert metric("reward", "1.00", (0.8,), primary_metric="reward", lower_is_better=True).status == "better"
    assert metric("reward", "1.00", (0.8,), lower_is_better=True).status == "better"  # it can only be of this one
    assert metric("train_time_s", "1.00", (0.8,)).status == "better"
    with pytest.raises(ConfigError, match="of the metric 'rmse' higher is better, but lower is"):
        metric("rmse", "1.00", (0.9,), directions={"rmse": "higher"})


@pytest.mark.parametrize("values", [(1e308, 1e308), (1e200, -1e200, 1e200)])
def test_values_whose_squares_no_number_can_hold_are_averaged_and_compared(values):
    found = metric("loss", "1.00", values)
    assert found.status == "significant_deviation"
    assert found.our_value == pytest.approx(max(values) if min(values) > 0 else max(values) / 3)


def test_a_difference_that_no_number_can_hold_is_significant():
    assert metric("loss", "1e-300", (1e300,)).status == "significant_deviation"
    assert metric("loss", "-1.7e308", (1.7e308,)).absolute_diff is None


def test_a_target_that_was_measured_twice_is_refused():
    with pytest.raises(ConfigError, match="more than once"):
        compare_results(paper(), paper_results(measured(), measured()))


def test_every_target_of_the_specification_is_compared_or_missing():
    table = paper_table()
    table["results"] += paper_table(row="CatBoost")["results"]
    found = compare_results(paper([table]), paper_results())
    assert [target.metrics[0].status for target in found.targets] == ["match", "missing"]
    assert found.targets[1].reason == "It was not run."
    assert found.exit_code == 2
    only = compare_results(paper([table]), paper_results(only=("Table 4:XGBoost",)))
    assert (only.exit_code, len(only.targets)) == (0, 1)
    assert only.notes == ("The run was restricted to Table 4:XGBoost: nothing else was judged.",)
    with pytest.raises(ConfigError, match="restricted to 'Table 9', which is no target of the specification"):
        compare_results(paper([table]), paper_results(only=("Table 9",)))
    lost = compare_results(paper([table]), paper_results(only=("Table 4",)))
    assert (lost.exit_code, lost.verdict, len(lost.targets)) == (2, "incomplete", len(table["results"]))


def test_targets_whose_names_look_alike_are_refused_rather_than_taken_for_one():
    table = paper_table(row="x:y", dataset="z")
    table["results"] += paper_table(row="x", dataset="y:z")["results"]
    with pytest.raises(ConfigError, match="Two targets would both be called 'Table 4:x:y:z'"):
        compare_results(paper([table]), paper_results(measured(row="x:y", dataset="z")))


def test_a_table_that_was_not_transcribed_is_missing():
    found = compare_results(paper([{"id": "Table 4"}]), paper_results(measured({})))
    assert (found.counts["missing"], found.exit_code) == (1, 2)
    assert "to compare with" in found.targets[0].reason


def test_results_of_another_paper_are_refused_and_of_another_file_noted():
    with pytest.raises(ConfigError, match="The results are of 'B', but the specification is of 'A Paper'"):
        compare_results(paper(), paper_results(paper="B"))
    found = compare_results(paper(), paper_results(), digest="another")
    assert found.notes == (
        "The specification is not the one of the run: it has been changed since, or it is another file.",
    )


def test_what_differs_from_the_papers_conditions_is_listed():
    conditions = {"hardware": "V100", "versions": {"xgboost": "1.3", "Python": "3.7"}, "seeds": 15}
    table = paper_table(conditions={"training_rows": 26048, "early stopping": "none"}) | {"hardware": "A100"}
    ours = measured(
        versions={"xgboost": "3.1.1"}, conditions={"training rows": "100", "early stopping": "none"}, seeds=(1, 2, 3)
    )
    found = differences(paper([table], conditions=conditions), ours)
    assert set(found) == {
        ("hardware", "A100", "Some CPU, 4 cores"),
        ("version of xgboost", "1.3", "3.1.1"),
        ("version of Python", "3.7", "not recorded"),
        ("number of seeds", "15", "3"),
        ("training rows", "26048", "100"),
    }


def test_a_library_that_ran_nothing_here_is_no_difference():
    spec = paper(conditions={"versions": {"catboost": "0.2", "torch": "1.7"}, "seeds": 3})
    found = differences(spec, measured())
    assert ("version of torch", "1.7", "not recorded") in found
    assert not any("catboost" in what for what, _, _ in found)


def test_what_the_paper_says_of_its_conditions_is_kept():
    table = paper_table() | {"notes": ["Means of 15 runs."]}
    conditions = {"hardware": "V100", "versions": {"xgboost": "1.3"}, "seeds": 15, "notes": ["Trained on 80 %."]}
    found = compare_results(paper([table], conditions=conditions), paper_results()).conditions
    assert found == (
        "hardware: V100",
        "version of xgboost: 1.3",
        "seeds: 15",
        "Trained on 80 %.",
        "Table 4: Means of 15 runs.",
    )


def test_a_version_that_the_paper_states_in_part_may_be_any_that_begins_so():
    spec = paper(conditions={"versions": {"xgboost": "1.3"}, "hardware": "Some CPU, 4 cores", "seeds": 3})
    assert differences(spec, measured(versions={"xgboost": "1.3.2"})) == {}
    assert ("version of xgboost", "1.3", "1.30.2") in differences(spec, measured(versions={"xgboost": "1.30.2"}))


def test_a_difference_names_the_rows_that_it_concerns():
    table = paper_table()
    table["results"] += paper_table(row="CatBoost")["results"]
    other = paper_table(dataset="California") | {"id": "Table 5"}
    targets = (
        measured(versions={"xgboost": "3"}),
        measured(row="CatBoost", seeds=(1,)),
        measured(table="Table 5", dataset="California", versions={"xgboost": "3"}),
    )
    found = differences(paper([table, other], conditions={"hardware": "V100", "seeds": 3}), *targets)
    assert found["hardware", "V100", "Some CPU, 4 cores"] == ()
    assert found["version of xgboost", "not stated", "3"] == ("Table 4: XGBoost, Adult", "Table 5")
    assert found["number of seeds", "3", "1"] == ("Table 4: CatBoost, Adult",)


@pytest.mark.parametrize("render", [PaperComparison.to_yaml, PaperComparison.to_json])
def test_a_comparison_is_read_back_as_it_was_written(tmp_path, render):
    names = {"paper": "1e5", "source": "no: - #x\n\u202e\U000e0001", "arxiv_id": "2501.00663"}
    found = compare_results(paper(**names), paper_results(paper="1e5"), files=("a\\b",))
    path = tmp_path / "comparison"
    path.write_text(render(found))
    assert read_stored(path, PaperComparison) == found
    assert render(read_stored(path, PaperComparison)) == path.read_text()
    assert all(char.isprintable() or char == "\n" for char in path.read_text())


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{}", "must be what 'paper compare' writes, of the kind 'boosters-eval paper comparison'. Got no 'kind'"),
        ("[1]", "The file must be a mapping"),
        ("a: !!python/name:os.system", "The tag"),
        ('{"kind": "boosters-eval paper comparison", "schema_version": 9}', "comparison' file of format 9, which"),
        (
            '{"kind": "boosters-eval paper comparison", "schema_version": 10, "papers": 1}',
            "no parameter 'papers'. Did you mean 'paper'",
        ),
    ],
)
def test_a_file_that_is_no_comparison_is_refused(tmp_path, text, sentence):
    path = tmp_path / "comparison.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as error:
        read_stored(path, PaperComparison)
    assert sentence in str(error.value)
    assert str(path) in str(error.value)


def test_results_are_read_back(tmp_path):
    path = tmp_path / "results.json"
    path.write_text(paper_results().model_dump_json())
    assert read_stored(path, PaperResults) == paper_results()


def test_repeats_that_do_not_vary_are_one_observation():
    table = paper_table({"accuracy": "0.874", "auc": "0.9", "f1": "0.8"})
    same = {"accuracy": (0.874,) * 3, "auc": (0.9,) * 3, "f1": (0.8, 0.801, 0.802)}
    found = compare_results(paper([table]), paper_results(measured(same)))
    assert [metric.observations for metric in found.targets[0].metrics] == [1, 1, 3]
    assert "All 3 repeats gave the same: the seed has no effect" in found.targets[0].metrics[0].explanation
    assert (found.verdict, found.confidence) == ("reproduced", "medium")
    assert "only 1 observation of a value, and 3 are needed" in found.to_markdown()


def test_ours_is_shown_with_the_digits_of_the_decision():
    found = compare_results(paper([paper_table({"mae": "0.0"})]), paper_results(measured({"mae": (-0.2, 0.0, 0.215)})))
    assert show_metric(found.targets[0].metrics[0]).ours.startswith("0.005 ± ")
