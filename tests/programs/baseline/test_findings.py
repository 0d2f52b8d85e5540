"""A verdict as it is told and written."""

import json
from types import SimpleNamespace

import pytest

from boosters_eval.programs.baseline.check import check, make_rules
from boosters_eval.programs.baseline.document import CheckFindings
from boosters_eval.programs.baseline.request import CheckRequest, DiffRequest
from boosters_eval.programs.baseline.snapshot import Snapshot, make_baseline


def nothing(*_, **__):
    pass


SCREEN = SimpleNamespace(
    quiet=False, verbose=False, is_terminal=False, say=nothing, rows=nothing, annotate=nothing, note=nothing
)


@pytest.mark.parametrize(
    ("options", "times"),
    [
        ({}, 0),  # shown before, as those of any run
        ({"output": "results.json"}, 1),  # written instead
        ({"output": "results.json", "dry_run": True}, 0),
        ({"dry_run": True}, 0),
    ],
)
def test_results_that_went_to_a_file_are_shown_with_the_verdict(make, monkeypatch, options, times):
    shown = []
    monkeypatch.setattr(CheckFindings, "show", lambda *_: shown.append(1))
    run = make.run()
    found = check(Snapshot.of_baseline(make_baseline(run)), Snapshot.of_run(run))
    CheckFindings(found, CheckRequest(suite="quick", **options), run).conclude(SCREEN)
    assert len(shown) == times


def test_what_a_request_cannot_say_is_not_allowed():
    assert not make_rules(DiffRequest(before="a.json", after="b.json")).continue_on_error
    assert make_rules(CheckRequest(suite="quick", continue_on_error=True)).continue_on_error


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_a_report_begins_with_the_verdict_and_goes_on_with_the_results(make, form):
    run = make.run({"boosters": 1.1})
    found = check(Snapshot.of_baseline(make_baseline(make.run())), Snapshot.of_run(run), name="base.json")
    text = CheckFindings(found, CheckRequest(suite="quick"), run).render(form)
    verdict, results = text.index("Regression detected"), text.rindex("xgboost")
    assert text.index("Check against base.json") < verdict < results
    assert "Train time" in text[verdict:]
    assert "✅ same" in text  # a report has every pair, whatever the screen leaves out


def test_a_check_and_a_baseline_have_every_rendering(make):
    baseline = make_baseline(make.run())
    found = check(Snapshot.of_baseline(baseline), Snapshot.of_run(make.run({"boosters": 1.1})))
    assert found.to_markdown().startswith("# Check against the baseline\n\n## Answer\n\n❌ Regression detected")
    assert '<p class="headline">❌ Regression detected in 2 configs:</p>' in found.to_html()
    assert json.loads(found.to_json())["exit_code"] == 1
    assert "4 pairs of config and library, 3 seeds" in baseline.to_markdown()
    assert "Filter pairs" in baseline.to_html()
    assert type(baseline).model_validate_json(baseline.to_json()) == baseline
