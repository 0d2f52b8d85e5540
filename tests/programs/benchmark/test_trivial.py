"""What takes no skill: scored in each cell, shown in each table, and never beaten in silence."""

import json

import numpy as np
import pytest

import factories
import tiny
from boosters_eval.datasets import Table, split_rows
from boosters_eval.datasets.config import SplitSpec
from boosters_eval.metrics.task import Task
from boosters_eval.programs.benchmark.results import ResultCollection
from boosters_eval.programs.benchmark.tables.build import build_tables


def test_each_cell_of_a_run_has_them(faulty):
    run = tiny.run_tiny(tiny.tiny_config(metrics=("median_ae",)), seeds=2)
    for result in run.results:
        assert set(result.trivial) == {"mean", "median"}
        assert set(result.trivial["mean"]) == {"rmse", "mae", "r2", "median_ae"}


def test_a_cell_learns_its_rules_from_the_training_rows_and_weighs_the_others(faulty):
    rng = np.random.default_rng(7)
    table = Table(rng.normal(size=(60, 2)), rng.normal(size=60), weights=rng.random(60) + 0.1)
    config = tiny.tiny_config().replace(dataset=factories.dataset("weighted", Task.REGRESSION, table))
    (result,) = tiny.run_tiny(config, seeds=1).results
    split = split_rows(table, Task.REGRESSION, SplitSpec(), result.seed, None, part=result.part)
    assert split.digest == result.split_digest
    mean = np.average(table.y[split.train], weights=table.weights[split.train])
    error = np.average((table.y[split.valid] - mean) ** 2, weights=table.weights[split.valid])
    assert result.trivial["mean"]["rmse"] == pytest.approx(np.sqrt(error), rel=1e-5)


def losing(value=0.2, trivial=0.1, **changes):
    """Two libraries, of which the second is better by far, and a rule that is better than both by default."""
    return [
        factories.result(
            library=library,
            seed=seed,
            value=(value if library == "b" else 2 * value) + seed / 1e4,
            metric="logloss",
            task=Task.BINARY,
            trivial={"priors": {"logloss": trivial + seed / 1e4}},
            **changes,
        )
        for library in ("a", "b")
        for seed in range(6)
    ]


def test_a_winner_that_loses_to_a_constant_is_not_highlighted_and_the_note_says_so():
    (table,) = build_tables(ResultCollection(losing())).tables
    assert not any(cell.best for row in table.rows for cell in row.cells)
    assert any("Log loss: no library is better than predicting the class priors (0.1" in note for note in table.notes)
    assert any("b is better than a" in note for note in table.notes)
    assert table.answer[0].startswith("Which: none. Nothing is better than predicting the class priors (0.1")
    (before,) = build_tables(ResultCollection(losing(trivial=0.9))).tables
    assert before.rows[1].cells[0].best
    assert not any("priors" in note for note in before.notes)


def test_only_those_that_lose_are_named():
    (table,) = build_tables(ResultCollection(losing(trivial=0.3))).tables
    assert table.rows[1].cells[0].best
    assert any(note.startswith("Log loss: a is not better than predicting the class priors") for note in table.notes)


def test_equal_is_not_better_whatever_the_rounding():
    for trivial in (0.2, 0.2000005, 0.1999995):
        (table,) = build_tables(ResultCollection(losing(trivial=trivial)), require_significance=False).tables
        assert not any(cell.best for row in table.rows for cell in row.cells)
        assert table.answer[0].startswith("Which: none. Nothing is better than")


def test_the_only_library_is_told_too():
    only = [result for result in losing() if result.library == "b"]
    (table,) = build_tables(ResultCollection(only)).tables
    assert table.answer[0].endswith(". Not better than predicting the class priors (0.1003): b.")


def test_best_names_no_library_that_loses_to_a_constant():
    (row,) = ResultCollection(losing()).best("logloss").to_dict("records")
    assert row["best"] == "none better than trivial"
    assert row["leader"] == "b"
    assert "b is not better than predicting the class priors (0.1" in row["note"]
    assert ResultCollection(losing(trivial=0.9)).best("logloss")["best"].item() == "b"


def test_the_rule_is_a_row_below_the_libraries_in_every_rendering():
    results = ResultCollection(losing())
    report = build_tables(results)
    assert [row.label for row in report.tables[0].trivial] == ["predict the priors"]
    assert "| *predict the priors* | 0.1" in report.to_markdown()
    assert ",predict the priors,logloss,0.1" in report.to_csv()
    assert "<tfoot><tr><th" in report._repr_html_()
    lines = [line for line in results.to_csv().splitlines() if ",trivial," in line]
    assert len(lines) == 6  # once per split
    assert len(results.to_dataframe()) == 12


def test_a_table_of_times_has_no_such_row():
    (table,) = build_tables(ResultCollection(losing(train_time_s=1.0)), metrics=()).tables
    assert table.columns
    assert table.trivial == ()


def test_older_results_have_none_and_are_written_without():
    text = ResultCollection([factories.result()]).to_json()
    assert "trivial" not in json.loads(text)["results"][0]
    again = ResultCollection.from_json(ResultCollection(losing()).to_json())
    assert again.results[0].trivial == {"priors": {"logloss": 0.1}}
