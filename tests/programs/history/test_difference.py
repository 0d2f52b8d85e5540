"""Two runs compared number by number."""

import pytest

from boosters_eval import compare
from boosters_eval.core.errors import ConfigError
from boosters_eval.programs.history.compare import read_rows
from boosters_eval.programs.history.difference import compare_entries, compare_runs
from boosters_eval.programs.history.query import find_run, read_run
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


def test_the_rows_of_a_run_are_those_of_its_numbers(home):
    compare("iris", "boosters", seeds=2, jobs=1)
    entry = find_run("last")
    series, _ = read_run(entry)
    rows_of = read_rows(entry, None)
    scores = {one.metric: one for one in series if one.metric in ("mlogloss", "accuracy")}
    assert len(scores) == 2
    for one in scores.values():
        found = [rows_of(one, each) for each in one.observations]
        assert [each.value for each in found] == pytest.approx([each.value for each in one.observations])
        assert len({each.rows.tobytes() for each in found}) == 2


def difference(before, after, metrics=()):
    return compare_entries((before[0].entry, before), (after[0].entry, after), metrics)


def test_two_runs_are_compared_number_by_number():
    first, *_, last = ([*run] for run in zip(*[iter(a_history(40))] * 6, strict=True))
    found = difference(first, last)
    changes = {(change.target, change.metric): change for change in found.changes}
    assert next(iter(changes)) == ("boosters", "rmse")
    assert changes["boosters", "rmse"].verdict == "inconclusive"  # the same in five splits: six are needed
    assert changes["boosters", "train_time_s"].verdict == "worse"
    assert changes["lightgbm", "mae"].how == "on the same 5 splits"
    assert changes["boosters", "rmse"].alpha == 0.05 / 2  # two competitors
    assert changes["boosters", "mae"].alpha == 0.1 * 0.05 / 4  # all else shares a tenth
    text = found.to_markdown()
    assert "| 4.6.0 → 4.7.0 |" in text
    assert "on the same 5 splits" in text
    assert "\n\nWorse: boosters Train time (s).\n\n" in text
    assert difference(first, first).document().tables()[0].answer == ("All 6 numbers are identical.",)
    page = found.to_html()
    assert "<title>run00039 against run00000</title>" in page
    assert '<span class="verdict worse">worse</span>' in page
    assert [change.metric for change in difference(first, last, ["mae"]).changes] == ["mae", "mae"]


def test_an_identical_rerun_is_called_identical_whatever_its_times(tmp_path):
    timed = {"timed": True, "timing_mode": True, "peak_memory_mb": 100.0}
    for day, seconds in ((1, 1.0), (2, 1.001)):
        written_run(tmp_path, day, train_time_s=seconds, **timed)
    run = written_run(tmp_path, 3, version="1.1", train_time_s=1.0, **timed)
    again = compare_runs(f"{run.run_id}/1", run.run_id, home=tmp_path)
    assert again.document().tables()[0].answer == ("All 3 numbers are identical.",)
    assert "Both are the same run." in again.notes
    first = next(path.name for path in (tmp_path / "runs").iterdir() if path != run.path)
    rerun = compare_runs(f"{first}/1", first, home=tmp_path)
    assert (rerun.before.run, rerun.after.run) == (f"{first}/1", f"{first}/2")
    (table,) = rerun.document().tables()
    assert table.answer == (
        "The score is identical. No other number is clearly better or worse, of 3 that could be compared.",
    )
    times = [1.0, 1.01, 0.99, 1.02, 0.98, 1.0]
    before = [a_series(times), a_series(times, "train_time_s")]
    after = [
        a_series(times, entry=an_entry(1)),
        a_series([3.1, 2.9, 3.0, 3.2, 2.8, 3.0], "train_time_s", entry=an_entry(1)),
    ]
    slower = difference(before, after).document().tables()[0]
    assert slower.answer == ("Worse: boosters Train time (s). The score is identical.",)
    alone = difference([a_series([0.5])], [a_series([0.5], entry=an_entry(1))]).document().tables()[0]
    assert alone.answer == ("The number is identical.",)


def test_numbers_that_cannot_be_compared_are_never_told_as_unchanged():
    before, after = [a_series([0.5, 0.6])], [a_series([0.9, 0.9], settings="other", entry=an_entry(1))]
    (table,) = difference(before, after).document().tables()
    assert table.answer == ("Nothing could be compared: the settings differ.",)
    noisy = difference([a_series([0.5, 0.6])], [a_series([0.51, 0.6], entry=an_entry(1))]).document().tables()[0]
    assert noisy.answer == ("No number is clearly better or worse, of 1 that could be compared.",)


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
