"""Two runs compared number by number."""

import pytest

from boosters_eval.core.errors import ConfigError
from boosters_eval.programs.history.difference import compare_entries, compare_runs
from histories import a_history, a_series, an_entry
from written_runs import SEEDS, written_run


def test_a_competitor_whose_cells_all_failed_is_worse_than_before(tmp_path):
    fine = written_run(tmp_path, 1, libraries=("boosters", "xgboost")).run_id
    gone = written_run(tmp_path, 2, libraries=("boosters", "xgboost"), version="1.1", failed=SEEDS).run_id
    found = compare_runs(fine, gone, metrics=["rmse"], home=tmp_path)
    assert [(one.target, one.verdict, one.how, one.after, one.version_after) for one in found.changes] == [
        (name, "worse", f"no number: {len(SEEDS)} cells failed", None, "1.1") for name in ("boosters", "xgboost")
    ]
    back = compare_runs(gone, fine, metrics=["rmse"], home=tmp_path)
    assert {(one.verdict, one.how) for one in back.changes} == {
        ("inconclusive", f"no number: {len(SEEDS)} cells failed before")
    }


def difference(before, after, metrics=()):
    return compare_entries((before[0].entry, before), (after[0].entry, after), metrics)


def test_two_runs_are_compared_number_by_number():
    first, *_, last = ([*run] for run in zip(*[iter(a_history(40))] * 6, strict=True))
    found = difference(first, last)
    changes = {(change.target, change.metric): change for change in found.changes}
    assert next(iter(changes)) == ("boosters", "rmse")
    assert changes["boosters", "rmse"].verdict == "inconclusive"  # the same in five splits: six are needed
    assert changes["boosters", "train_time_s"].verdict == "worse"
    assert changes["lightgbm", "mae"].how == "paired over 5 shared splits"
    assert changes["boosters", "rmse"].alpha == 0.05 / 2  # two competitors
    assert changes["boosters", "mae"].alpha == 0.1 * 0.05 / 4  # all else shares a tenth
    text = found.to_markdown()
    assert "| 4.6.0 → 4.7.0 |" in text
    assert "paired over 5 shared splits" in text
    assert "\n\nWorse: boosters Train time (s).\n\n" in text
    assert difference(first, first).document().tables()[0].answer == "All 6 numbers are identical."
    page = found.to_html()
    assert "<title>run00039 against run00000</title>" in page
    assert '<span class="verdict worse">worse</span>' in page
    assert [change.metric for change in difference(first, last, ["mae"]).changes] == ["mae", "mae"]


def test_numbers_that_cannot_be_compared_are_never_told_as_unchanged():
    before, after = [a_series([0.5, 0.6])], [a_series([0.9, 0.9], settings="other", entry=an_entry(1))]
    (table,) = difference(before, after).document().tables()
    assert table.answer == "Nothing could be compared: the settings differ."
    noisy = difference([a_series([0.5, 0.6])], [a_series([0.51, 0.6], entry=an_entry(1))]).document().tables()[0]
    assert noisy.answer == "No number is clearly better or worse, of 1 that could be compared."


def test_what_only_one_run_has_is_shown_and_no_pass():
    entry = an_entry(1, failed=2)
    before = [a_series([0.5, 0.6]), a_series([0.5, 0.6], target="gone")]
    after = [a_series([0.5, 0.6], entry=entry), a_series([0.5, 0.6], target="new", entry=entry)]
    found = difference(before, after)
    said = {change.target: (change.verdict, change.how) for change in found.changes}
    assert said["gone"] == ("not comparable", "only in the first run")
    assert said["new"] == ("not comparable", "only in the second run")
    assert "Cells of the second run without a result: 2 failed." in found.notes


def test_runs_without_a_common_benchmark_are_refused():
    with pytest.raises(ConfigError, match="The runs 'run00000' and 'run00001' share no benchmark"):
        difference([a_series([0.5])], [a_series([0.5], entry=an_entry(1), config="other")])
    with pytest.raises(ConfigError, match=r"The 'metrics' parameter must name what both runs measured: rmse\. Got"):
        difference([a_series([0.5])], [a_series([0.5], entry=an_entry(1))], ["auc"])
