"""A verdict as it is told."""

from types import SimpleNamespace

import pytest

from boosters_eval.programs.baseline.check import check, make_rules
from boosters_eval.programs.baseline.findings import CheckFindings
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
