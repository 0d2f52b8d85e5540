"""The lines of a history, their steps, and the renderings of both."""

import json
from dataclasses import replace
from itertools import chain

import pytest

from boosters_eval.core.errors import ConfigError
from boosters_eval.programs.history import report as report_module
from boosters_eval.programs.history.model import HistoryFilter
from boosters_eval.programs.history.report import HistoryReport, build_report, read_report
from histories import a_history, a_series, an_entry
from written_runs import SEEDS, written_run


def lines_of(series):
    return {(line.target, line.metric, line.machine): line for line in build_report(series).lines}


@pytest.fixture(scope="module")
def found():
    return build_report(a_history())


def test_each_benchmark_competitor_and_metric_has_a_line_and_its_steps(found):
    lines = {(line.target, line.metric): line for line in found.lines}
    assert len(found.lines) == len(lines) == 6
    assert (found.n_runs, sum(len(line.steps) for line in found.lines)) == (40, 2)
    for metric in ("rmse", "train_time_s"):
        (step,) = lines["boosters", metric].steps
        assert (step.index, step.first, step.end, step.verdict) == (20, 0, 40, "worse")
        assert step.run == "run00020"
        assert step.commit == an_entry(20).git_sha[:8]
        assert step.last_commit == an_entry(19).git_sha[:8]
    assert lines["boosters", "rmse"].steps[0].percent == pytest.approx(0.8, abs=0.05)
    assert lines["lightgbm", "rmse"].steps == ()
    assert all(point.low < point.value < point.high for point in lines["boosters", "rmse"].points)


def test_a_step_of_a_metric_that_should_rise_is_better_and_of_an_unknown_one_a_change():
    values = [[0.5, 0.6]] * 6 + [[0.7, 0.8]] * 6
    for direction, word in ((True, "better"), (False, "worse"), (None, "changed")):
        series = [a_series(one, "r2", an_entry(i), higher_is_better=direction) for i, one in enumerate(values)]
        (line,) = build_report(series).lines
        assert [step.verdict for step in line.steps] == [word]


def test_machines_data_and_settings_are_never_mixed_in_a_line():
    here, there = a_history(12, targets=("boosters",)), a_history(12, targets=("boosters",), machine="m2")
    lines = lines_of(chain(here, there))
    assert len(lines) == 6
    assert {len(line.points) for line in lines.values()} == {12}
    mixed = [a_series([0.5, 0.6], entry=an_entry(i), settings="a" if i < 6 else "b") for i in range(12)]
    mixed += [a_series([0.5, 0.6], entry=an_entry(12), settings="b", data_digest="other")]
    found = build_report(mixed).lines
    assert [len(line.points) for line in found] == [6, 6, 1]
    assert [line.variant for line in found] == [
        "data 1 of 2, settings 1 of 2",
        "data 1 of 2, settings 2 of 2",
        "data 2 of 2, settings 2 of 2",
    ]
    assert [line.variant for line in build_report(mixed[:12]).lines] == ["settings 1 of 2", "settings 2 of 2"]
    assert not any(line.steps for line in found)


def test_machines_of_the_same_make_are_told_apart_by_their_digests():
    entries = [an_entry(0, machine="abcdef0"), an_entry(1, machine="fedcba0"), an_entry(2, machine_label="Apple M2")]
    found = build_report(a_series([0.5], entry=entry) for entry in entries)
    assert {line.machine_label for line in found.lines} == {
        "AMD EPYC, 8 cores abcdef",
        "AMD EPYC, 8 cores fedcba",
        "Apple M2",
    }


def test_runs_with_other_splits_do_not_look_like_a_step():
    few = [a_series([0.5, 0.6], entry=an_entry(i)) for i in range(10)]
    more = [a_series([0.5, 0.6, 0.9, 0.9], entry=an_entry(10 + i)) for i in range(8)]
    (line,) = build_report([*few, *more]).lines
    assert (line.n_splits, line.steps) == (2, ())
    assert {point.value for point in line.points} == {0.55}
    lacking = [a_series([0.5], entry=an_entry(10 + i), failed=1) for i in range(8)]
    (line,) = build_report([*few, *lacking]).lines
    assert line.steps == ()
    assert [point.searched for point in line.points] == [True] * 10 + [False] * 8
    assert line.notes == ("8 runs are shown but not searched: they lack some of the 2 splits that most runs have.",)


def test_where_runs_with_more_seeds_outnumber_the_earlier_ones_the_page_says_that_those_are_not_searched():
    earlier = [a_series([0.5, 0.6], entry=an_entry(i)) for i in range(8)]
    later = [a_series([0.5, 0.6, 0.9, 0.9], entry=an_entry(10 + i)) for i in range(9)]
    found = build_report([*earlier, *later])
    (line,) = found.lines
    assert [point.searched for point in line.points] == [False] * 8 + [True] * 9
    sentence = "8 runs are shown but not searched: they lack some of the 4 splits that most runs have."
    assert line.notes == (sentence,)
    assert sentence in found.to_html()
    assert sentence in found.to_markdown()


def test_unfair_times_and_values_that_are_not_finite_are_shown_but_not_searched():
    series = []
    for i in range(12):
        one = a_series([1.0 + (i >= 6), 1.1 + (i >= 6)], "train_time_s", an_entry(i))
        series.append(replace(one, observations=tuple(replace(each, fair=False) for each in one.observations)))
    (line,) = build_report(series).lines
    assert line.steps == ()
    assert line.notes == ("Not searched for changes: the times were not measured in timing mode on a quiet machine.",)
    (line,) = build_report([a_series([0.5, float("nan")])]).lines
    assert (line.points[0].value, line.points[0].searched) == (None, False)
    assert "No finite value to draw." in build_report([a_series([0.5, float("nan")])]).to_html()


def test_the_interval_of_a_time_does_not_reach_below_zero():
    (line,) = build_report([a_series([0.01, 0.02, 0.4], "train_time_s")]).lines
    assert line.points[0].low == 0
    (line,) = build_report([a_series([0.01, 0.02, 0.4], "r2")]).lines
    assert line.points[0].low < 0


def test_a_long_line_is_cut_and_says_so(monkeypatch):
    monkeypatch.setattr(report_module, "MOST_POINTS", 15)
    (line,) = build_report(a_series([0.5, 0.6], entry=an_entry(i)) for i in range(40)).lines
    assert (len(line.points), line.hidden) == (15, 25)
    assert line.points[-1].run == "run00039"
    assert line.notes == ("Only the latest 15 runs are searched and shown; 25 earlier ones are left out.",)


def test_the_level_and_the_number_of_lines_are_said(found):
    assert "one is reported in at most 1 % of cases" in found.notes[0]
    assert "of the 6 series that were searched, 0.06 may show a change by chance" in found.notes[0]


def test_a_commit_that_had_changes_is_marked_and_a_run_without_one_is_named_by_its_date():
    entries = [an_entry(0, git_dirty=True), an_entry(1, git_sha=""), an_entry(2, git_sha="ab+cd")]
    (line,) = build_report(a_series([0.5], entry=entry) for entry in entries).lines
    assert [point.name for point in line.points] == [an_entry(0).git_sha[:8] + "*", "2026-01-05", "ab+cd"]


def test_the_json_is_a_strict_model_that_is_read_back(found):
    text = found.model_dump_json()
    assert HistoryReport.model_validate_json(text) == found
    assert json.loads(text)["kind"] == "boosters-eval history report"
    with pytest.raises(ConfigError, match="no parameter 'extra'"):
        HistoryReport.model_validate({**json.loads(text), "extra": 1})


def test_markdown_has_the_steps_first_and_escapes_names():
    series = [a_series([0.5 + (i > 5)], entry=an_entry(i), config="a|b", target="<x>") for i in range(12)]
    text = build_report(series).to_markdown()
    assert text.startswith(
        "# History\n\n## Answer\n\n1 change in 1 of 1 series, 1 for the worse.\n\nThe latest: &lt;x&gt; RMSE on a"
    )
    assert "\nWhat 12 runs measured. From 2026-01-05 to 2026-01-08.\n" in text
    assert text.index("## Changes") < text.index("## a\\|b")
    assert "&lt;x&gt;" in text
    assert "0.5000 → 1.500 (+200 %)" in text
    assert "No change was detected in 1 series." in build_report(series[6:] + series[6:]).to_markdown()


@pytest.mark.parametrize("render", [HistoryReport.to_markdown, HistoryReport.to_html])
def test_too_few_runs_are_not_told_as_no_step(render):
    text = render(build_report(a_history(9)))
    assert "No change can be detected yet: that takes 10 comparable runs, and there are 9 at most." in text
    assert "no change detected" not in text
    assert "may show a change by chance" not in text
    mixed = [a_series([0.5], entry=an_entry(i), target="old" if i < 10 else "new") for i in range(13)]
    text = render(build_report(mixed))
    assert "No change was detected in 2 series. In 1 of them none can be yet: that takes 10 comparable runs." in text


def test_a_value_beyond_all_bounds_does_not_keep_the_others_from_being_searched():
    values = [0.5] * 8 + [1e200] + [0.5001] * 8
    (line,) = build_report(a_series([value], entry=an_entry(i)) for i, value in enumerate(values)).lines
    assert [(step.index, step.verdict) for step in line.steps] == [(9, "worse")]
    assert not line.points[8].searched


def test_runs_in_which_all_cells_failed_are_told(tmp_path):
    for day in range(1, 13):
        failed = SEEDS if day in (4, 7) else ()
        written_run(tmp_path, day, version=f"1.{day}", failed=failed)
    written_run(tmp_path, 13, libraries=("xgboost",), failed=SEEDS)
    found = read_report(home=tmp_path)
    assert [(one.target, one.commit, one.failed) for one in found.failures] == [
        ("boosters", "c0ffee4", len(SEEDS)),
        ("boosters", "c0ffee7", len(SEEDS)),
        ("xgboost", "c0ffee13", len(SEEDS)),
    ]
    note = "All cells failed in 2 runs, which have no point: c0ffee7, c0ffee4."
    assert all(note in line.notes for line in found.lines)
    alone = "xgboost on diabetes/gbdt: All cells failed in one run, which has no point: c0ffee13."
    assert found.notes[-1] == alone
    for text in (found.to_html(), found.to_markdown()):
        assert note in text
        assert alone in text
    assert not read_report(HistoryFilter(libraries=("lightgbm",)), tmp_path).failures


def test_a_tiny_change_is_not_written_as_none():
    series = [a_series([0.5 + 1e-7 * (i > 5)], entry=an_entry(i)) for i in range(12)]
    text = build_report(series).to_markdown()
    assert "0.5 → 0.5000001 (+2.0e-05 %)" in text or "0.5000000 → 0.5000001 (+2.0e-05 %)" in text
