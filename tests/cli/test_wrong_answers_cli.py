"""Confident wrong answers that were printed once, each tried again as a user would."""

import html
import json
import re
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import boosters_eval as be


def compare(boosters_eval, *arguments):
    """The results of a comparison, by library: what each scored on every split."""
    done = boosters_eval("compare", *arguments, "-f", "json", "-q", check=0)
    results = json.loads(done.stdout)["results"]
    return {name: [r for r in results if r["library"] == name] for name in {r["library"] for r in results}}


def mean(results, metric="rmse"):
    return float(np.mean([result["metrics"][metric] for result in results]))


def cars(rows=398):
    """Cars whose names hardly ever repeat and say nothing that the weight does not say."""
    rng = np.random.default_rng(0)
    model = rng.integers(0, 600, rows)
    weight = rng.normal(3000, 800, rows).clip(1600, 5200)
    year = rng.integers(70, 83, rows)
    mpg = 46 - 0.0075 * weight + 0.6 * (year - 76) + rng.normal(0, 2.2, rows)
    return pd.DataFrame(
        {
            "Name": [f"maker {m % 26} model {m}" for m in model],
            "Cylinders": np.where(weight < 2500, 4, np.where(weight < 3400, 6, 8)),
            "Horsepower": (weight / 30 + rng.normal(0, 15, rows)).round(),
            "Weight": weight.round(),
            "Year": year,
            "mpg": mpg.round(1),
        }
    )


def test_a_near_unique_text_column_costs_no_library_more_than_its_own_defaults_would(place, boosters_eval):
    cars().to_csv("cars.csv", index=False)
    command = ("-d", "cars.csv:mpg", "-l", "lightgbm", "xgboost", "-s", "5")
    with_names = compare(boosters_eval, *command)
    without = compare(boosters_eval, *command, "--drop", "Name")
    assert mean(with_names["lightgbm"]) < 1.1 * mean(without["lightgbm"])
    marks = {mark["parameter"]: mark for mark in with_names["lightgbm"][0]["marks"]}
    assert marks["categorical"]["kind"] == "own"
    assert "min_data_per_group" in marks["categorical"]["reason"]
    assert "min_data_per_group" not in with_names["lightgbm"][0]["native_params"]


def moments(rows=600, offset=1.7e9):
    """A time in seconds as the target: float32 steps by 128 there, and the target's standard deviation is 140."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(rows, 4))
    y = offset + 100 * x[:, 0] + 80 * x[:, 1] + rng.normal(0, 50, rows)
    return pd.DataFrame({**{f"x{i}": x[:, i] for i in range(4)}, "when": y})


LIBRARIES = ("-l", "xgboost", "lightgbm", "sklearn", "-s", "2")


def test_targets_that_float32_blurs_are_centered_for_all_libraries_alike(place, boosters_eval):
    moments().to_csv("large.csv", index=False)
    moments(offset=0).to_csv("small.csv", index=False)
    large = compare(boosters_eval, "-d", "large.csv:when", *LIBRARIES)
    small = compare(boosters_eval, "-d", "small.csv:when", *LIBRARIES)
    for library, results in large.items():
        assert abs(mean(results) / mean(small[library]) - 1) < 0.03
        assert all(abs(result["target_offset"] - 1.7e9) < 100 for result in results)
        assert not any(result.get("target_offset") for result in small[library])
    told = boosters_eval("compare", "-d", "large.csv:when", *LIBRARIES, check=0).stdout
    assert "all libraries learn it less its mean" in told
    assert "suspect" not in told


def test_a_library_that_is_judged_or_left_to_itself_keeps_its_own_handling_and_the_answer_says_so(place, boosters_eval):
    moments().to_csv("large.csv", index=False)
    for extra in (("--profile", "defaults"), ("--against", "sklearn")):
        done = boosters_eval("compare", "-d", "large.csv:when", *LIBRARIES, *extra, "-f", "json", "-q")
        assert not any(result.get("target_offset") for result in json.loads(done.stdout)["results"])
    command = ("-d", "large.csv:when", *LIBRARIES)
    told = answer(boosters_eval, *command, "--profile", "defaults")
    assert "The data are suspect: 'when' reaches 1.7e+09" in told
    assert told.endswith("-s 2 --profile parity\n")
    judged = boosters_eval("compare", *command, "--against", "sklearn", "-q").stdout
    assert "its standard deviation is 141" in judged
    assert "--profile" not in judged  # where a library is judged, there is nothing to mend


def test_features_that_float32_cannot_tell_apart_are_a_finding(place, boosters_eval):
    frame = moments(offset=0).assign(stamp=lambda f: 1.7e9 + np.arange(len(f)) % 97)
    frame.to_csv("stamps.csv", index=False)
    said = boosters_eval("compare", "-d", "stamps.csv:when", *LIBRARIES, "--dry-run", check=0).stderr
    assert "float32-feature: 'stamp' has 97 distinct values, but only 2 in float32" in said
    assert "[--drop stamp]" in said


def notebook():
    """What a notebook shows of the last run, as text."""
    return html.unescape(re.sub("<[^>]+>", "", be.load_run()._repr_html_()))


def answer(boosters_eval, *arguments):
    """What stands above the first table."""
    return boosters_eval("compare", *arguments, "-q", check=0).stdout.partition("\n| ")[0]


def test_a_near_unique_text_column_is_told_with_what_to_do_in_the_answer_and_everywhere_else(place, boosters_eval):
    cars().to_csv("cars.csv", index=False)
    command = ("-d", "cars.csv:mpg", "-l", "lightgbm", "xgboost", "-s", "2")
    assert "'Name' has 289 distinct texts in 398 rows (--drop Name)" in answer(boosters_eval, *command)
    told = boosters_eval("compare", *command, check=0).stdout
    assert "'Name' has 289 distinct texts in 398 rows: 1.4 rows each (--drop Name; or --split group:Name)" in told
    assert "'Name' has 289 distinct texts in 398 rows (--drop Name)" in notebook()
    found = json.loads(boosters_eval("compare", *command, "-f", "json", "-q", check=0).stdout)
    options = {one["kind"]: one["option"] for one in found["metadata"]["audits"]["cars.mpg"]["findings"]}
    assert options == {"many-categories": "--drop Name; or --split group:Name", "own-treatment": "--profile both"}
    next_ = answer(boosters_eval, *command).partition("\nNext: ")[2]
    assert next_.startswith("see whether that holds with each library's own defaults: ")
    assert next_.endswith("-s 2 --profile both\n")
    assert "distinct texts" not in answer(boosters_eval, *command, "--drop", "Name")


def test_a_text_that_is_next_to_unique_is_in_the_answer_too(place, boosters_eval):
    frame = cars().assign(Name=[f"car {i}" for i in np.r_[np.arange(388), np.arange(10)]])
    frame.to_csv("cars.csv", index=False)
    said = answer(boosters_eval, "-d", "cars.csv:mpg", "-l", "lightgbm", "xgboost", "-s", "2")
    assert "'Name' has 388 distinct texts in 398 rows (--drop Name)" in said
    assert said.endswith(
        "Next: leave out what names rows: boosters-eval compare -d cars.csv:mpg -l lightgbm xgboost -s 2 --drop Name\n"
    )
    assert "'Name' has 388 distinct texts in 398 rows (--drop Name)" in notebook()


def test_both_profiles_have_one_answer_and_who_is_best_in_one_alone_is_not_called_best(place, boosters_eval):
    command = ("-d", "diabetes", "-l", "sklearn", "xgboost", "-p", "n_estimators=20")
    assert "is better than" not in answer(boosters_eval, *command)
    assert "sklearn is better than xgboost" in answer(boosters_eval, *command, "--profile", "defaults")
    done = boosters_eval("compare", *command, "--profile", "both", check=0)
    said = (
        "nobody is best in both profiles. Mapped by meaning, cannot say who is ahead (RMSE: sklearn 61.3, xgboost 61.3)"
    )
    said += ". With each library's own defaults, sklearn is ahead (RMSE: sklearn 60.1, xgboost 64.6)."
    assert done.stdout.count(said) == notebook().count(said) == 1
    assert "is better than" not in done.stdout.partition("\n| ")[0]
    assert "## diabetes/gbdt/defaults (5 splits, library defaults)\n\n| Library" in done.stdout
    assert "no effect" not in done.stderr


def test_a_profile_that_nobody_knows_is_answered_with_those_there_are(place, boosters_eval):
    said = boosters_eval("compare", "-d", "iris", "--profile", "bth", check=3).stderr
    assert "Unknown profile 'bth'. Did you mean 'both'?" in said
    said = boosters_eval("compare", "-d", "iris", "--profile", "both", "--variants", "a:max_depth=2", check=3).stderr
    assert "The '--profile' option cannot be both where variants are compared" in said
    said = boosters_eval("importances", "-d", "iris", "--profile", "both", check=3).stderr
    assert "Unknown profile 'both'. Known: defaults, parity." in said


def patients():
    rng = np.random.default_rng(0)
    who = rng.permutation(np.repeat(np.arange(60), 25))
    of_patient, effect = rng.normal(size=(60, 3)), rng.normal(size=60)
    x = of_patient[who] + 0.1 * rng.normal(size=(1_500, 3))
    y = 2 * effect[who] + 0.6 * rng.normal(size=1_500)
    return pd.DataFrame({"patient_id": who, "a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "y": y})


def test_groups_that_a_random_split_tears_apart_are_in_the_answer_and_following_it_ends_the_doubt(place, boosters_eval):
    patients().to_csv("visits.csv", index=False)
    command = ("-d", "visits.csv:y", "-l", "lightgbm", "xgboost", "-s", "2")
    said = "The data are suspect: 'patient_id' groups rows whose targets are alike (--split group:patient_id)"
    assert said in answer(boosters_eval, *command)
    assert said in notebook()
    told = boosters_eval("compare", *command, check=0)
    assert "falls from 0.8" in told.stdout
    assert "--split group:patient_id" in told.stdout
    found = json.loads(boosters_eval("compare", *command, "-f", "json", "-q", check=0).stdout)
    assert next(iter(found["metadata"]["audits"].values()))["findings"][0]["option"] == "--split group:patient_id"
    assert "suspect" not in answer(boosters_eval, *command, "--split", "group:patient_id")


def test_copies_are_kept_together_by_a_column_that_is_named(place, boosters_eval):
    frame = moments(offset=0).round(3)
    pd.concat([frame, frame[:100]]).to_csv("copies.csv", index=False)
    said = boosters_eval("compare", "-d", "copies.csv:when", "-l", "xgboost", "-s", "1", "--dry-run", check=0).stderr
    assert "duplicate-rows: 100 of 700 rows" in said
    assert "[--split group:x" in said


def test_rows_without_a_target_are_offered_to_be_left_out_in_one_sentence(place, boosters_eval):
    frame = moments(offset=0)
    frame.loc[:4, "when"] = np.nan
    frame.to_csv("gaps.csv", index=False)
    said = boosters_eval("compare", "-d", "gaps.csv:when", "-l", "xgboost", check=3).stderr
    assert "is missing in 5 rows: --drop-missing-target leaves them out." in said


def sales(days=700):
    """A trend and a season: who does not know the date cannot do better than the mean."""
    rng = np.random.default_rng(2)
    day = pd.date_range("2022-01-01", periods=days)
    y = 100 + 40 * np.sin(2 * np.pi * day.day_of_year / 365) + 10 * (day.day_of_week >= 5) + rng.normal(0, 3, days)
    return pd.DataFrame({"date": day.strftime("%Y-%m-%d"), "noise": rng.normal(size=days), "sold": y})


def test_the_hint_to_split_by_time_is_in_the_report_and_following_it_keeps_the_date_as_features(place, boosters_eval):
    sales().to_csv("sales.csv", index=False)
    command = ("-d", "sales.csv:sold", "-l", "lightgbm", "xgboost")
    said = answer(boosters_eval, *command, "-s", "2")
    assert "The data are suspect: 'date' orders rows in time (--split time:date)" in said
    split = ("--split", "time:date")
    kept = compare(boosters_eval, *command, *split)
    dropped = compare(boosters_eval, *command, *split, "--drop", "date")
    assert mean(kept["xgboost"]) < 0.6 * mean(dropped["xgboost"])
    assert kept["xgboost"][0]["data_digest"] != dropped["xgboost"][0]["data_digest"]
    said = boosters_eval("compare", *command, *split, "--dry-run", check=0).stderr
    assert "rows are split by 'date', which models see as date.ordinal, date.year, date.month" in said


def test_a_counter_of_rows_in_the_order_of_time_is_to_be_split_by_and_not_dropped(place, boosters_eval):
    sales().assign(date=np.arange(700)).rename(columns={"date": "t"}).to_csv("sales.csv", index=False)
    command = ("-d", "sales.csv:sold", "-l", "lightgbm", "xgboost", "-s", "2")
    said = answer(boosters_eval, *command)
    assert "The data are suspect: 't' orders rows in time (--split time:t)" in said
    assert said.endswith("--split time:t\n")
    assert "suspect" not in answer(boosters_eval, *command[:-2], "--split", "time:t")


def test_names_with_signs_are_shown_as_given_and_classes_by_their_labels(place, boosters_eval):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"größe/cm²": rng.normal(size=60), "t": np.arange(60), "Preis €": rng.normal(size=60)})
    frame["kind"] = ["red"] * 40 + ["green"] * 15 + ["blue"] * 5
    frame.to_csv("shop.csv", index=False)
    done = boosters_eval("compare", "-d", "shop.csv:Preis €", "-l", "xgboost", "-s", "1", "--drop", "kind", check=0)
    assert "## shop.Preis €/gbdt" in done.stdout
    command = ("compare", "-d", "shop.csv:kind", "-l", "xgboost", "--split", "time:t")
    assert "class 'blue' of shop.kind has no training row in window 1" in boosters_eval(*command, check=3).stderr


def test_a_data_set_without_its_option_is_answered_with_what_to_type(place, boosters_eval):
    said = boosters_eval("compare", "sales.csv", check=3).stderr
    assert "'sales.csv' stands alone: a data set is given as -d sales.csv:COLUMN, with the column to predict." in said
    assert "given as -d iris." in boosters_eval("compare", "iris", check=3).stderr
    assert "'quick' stands alone: a suite is given as --suite quick." in boosters_eval("run", "quick", check=3).stderr


WEIGHTED = """
import numpy as np
from boosters_eval import BenchmarkConfig, BenchmarkSuite, DatasetConfig, Task, TrainingConfig
from boosters_eval.datasets import Table


def load(task):
    rng = np.random.default_rng(5)
    x = rng.integers(0, 16, (600, 4)).astype(np.float32)
    y = x[:, 0] / 4 + np.sin(x[:, 1]) + 0.5 * rng.standard_normal(600)
    y = (y > np.median(y)).astype(float) if task is Task.BINARY else y
    return Table(x, y, weights=10.0 ** rng.uniform(-8, 8 if task is Task.BINARY else 0, 600))


def config(task):
    data = DatasetConfig(name=task.value, task=task, loader=lambda: load(task))
    limits = {} if task is Task.BINARY else {"l2": 0.0, "min_child_weight": 0.0}
    training = TrainingConfig(n_estimators=5, **limits)
    more = {"libraries": ("boosters", "xgboost", "lightgbm"), "metrics": ("mcc",) if task is Task.BINARY else ()}
    return BenchmarkConfig(name=task.value, dataset=data, task=task, training=training, **more)


SUITE = BenchmarkSuite("weighted", (config(Task.REGRESSION), config(Task.BINARY)))
"""


@pytest.fixture
def weighted(place, boosters_eval):
    """A suite whose rows weigh very differently, run with no least weight of a leaf and no penalty."""
    (place / "weighted.py").write_text(WEIGHTED)
    done = boosters_eval("run", "--suite", "weighted.py:SUITE", "-s", "2", "-f", "json", "-q")
    return done, json.loads(done.stdout)["results"]


def test_without_a_least_weight_lightgbm_does_not_abort_and_each_mark_that_weights_break_says_so(weighted):
    done, results = weighted
    assert done.returncode == 0
    assert {(r["config_name"], r["library"]) for r in results} >= {("regression", "lightgbm"), ("binary", "boosters")}
    reasons = {
        (r["library"], mark["parameter"]): mark["reason"]
        for r in results
        for mark in r["marks"]
        if mark["kind"] != "exact"
    }
    assert "rows of little weight" in reasons["xgboost", "min_gain"]
    assert "lost by rounding" in reasons["boosters", "min_child_weight"]
    assert "it aborts" in reasons["lightgbm", "min_child_weight"]
    assert "bundled" in reasons["lightgbm", "max_bins"]


def test_mcc_of_weights_over_sixteen_orders_of_magnitude_is_exact(weighted):
    _, results = weighted
    run = be.load_run()
    binary = [result for result in run.results if result.config_name == "binary"]
    assert [r.metrics["matthews"] for r in binary] == [
        r["metrics"]["matthews"] for r in results if r["config_name"] == "binary"
    ]
    for result in binary:
        fit = run.evidence.of(result)
        sums = dict.fromkeys(((0, 0), (0, 1), (1, 0), (1, 1)), Fraction(0))
        chosen = (fit.predictions.ravel() >= 0.5).astype(int)
        for label, choice, weight in zip(fit.split.y_true, chosen, fit.split.weights, strict=True):
            sums[int(label), int(choice)] += Fraction(float(weight))
        (tn, fp), (fn, tp) = (sums[0, 0], sums[0, 1]), (sums[1, 0], sums[1, 1])
        with localcontext() as context:
            context.prec = 60
            above, below = tp * tn - fp * fn, (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
            root = (Decimal(below.numerator) / Decimal(below.denominator)).sqrt()
            exact = float(Decimal(above.numerator) / Decimal(above.denominator) / root)
        assert abs(result.metrics["matthews"] - exact) < 1e-9


def test_lightgbm_gets_the_layout_that_suits_a_wide_table_and_says_so(place, boosters_eval):
    rng = np.random.default_rng(6)
    frame = pd.DataFrame(rng.normal(size=(120, 300)), columns=[f"x{i}" for i in range(300)])
    frame.assign(y=frame["x0"] + rng.normal(size=120)).to_csv("wide.csv", index=False)
    (results,) = compare(boosters_eval, "-d", "wide.csv:y", "-l", "lightgbm", "-s", "1").values()
    native = results[0]["native_params"]
    assert native["force_col_wise"]
    assert "force_row_wise" not in native
