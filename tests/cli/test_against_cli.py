"""--against on the command line: exit codes, what is printed where, and what is refused."""

import json

import pytest

VARIANTS = ("-l", "boosters", "--variants", "usual:n_estimators=20", "poor:n_estimators=1", "-d", "breast_cancer")


def test_a_worse_competitor_fails_the_command_and_github_is_told(boosters_eval, place, monkeypatch):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(place / "summary.md"))
    found = boosters_eval(
        *("compare", *VARIANTS, "-s", "5", "--against", "boosters usual"),
        *("--verdict", "v.json", "-o", "r.html", "-q"),
        check=1,
    )
    first, second, *rest = found.stdout.splitlines()
    assert (
        first
        == "❌ boosters poor is worse than boosters usual in 1 of 1 comparison (at most a 5 % risk of a false alarm):"
    )
    assert second.startswith("  breast_cancer/gbdt boosters poor: log loss 0.")
    assert rest[-1].startswith("::error title=boosters-eval Worse::breast_cancer/gbdt boosters poor: log loss")
    assert "boosters poor is worse than boosters usual" in (place / "summary.md").read_text()
    assert "boosters poor is worse than boosters usual" in (place / "r.html").read_text()
    assert json.loads((place / "v.json").read_text())["exit_code"] == 1


def test_data_on_stdout_stay_data_and_the_verdict_goes_to_stderr(boosters_eval):
    found = boosters_eval("compare", *VARIANTS, "-s", "3", "--against", "boosters poor", "-f", "json", "-q", check=0)
    assert json.loads(found.stdout)["kind"] == "boosters-eval results"
    assert "Nothing is worse than boosters poor by more than 1 % in 1 comparison (1 better)" in found.stderr


def test_markdown_begins_with_the_verdict(boosters_eval):
    found = boosters_eval("compare", *VARIANTS, "-s", "3", "--against", "boosters poor", "-f", "md", "-q", check=0)
    assert found.stdout.startswith("✅ Nothing is worse than boosters poor")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--against", "boosters usal"), "Unknown competitor 'boosters usal'. Did you mean 'boosters usual'?"),
        (("--against", "boosters usual", "--continue-on-error"), "a failed cell is never a pass"),
        (("--verdict", "v.json"), "The '--verdict' option needs --against NAME"),
    ],
)
def test_what_has_no_answer_is_refused_before_anything_runs(boosters_eval, place, options, told):
    found = boosters_eval("compare", *VARIANTS, "-s", "3", *options, check=3)
    assert told in found.stderr
    assert not (place / "home" / "runs").exists()


def test_a_single_competitor_is_refused(boosters_eval):
    found = boosters_eval("compare", "-l", "boosters", "-d", "breast_cancer", "--against", "boosters", check=3)
    assert "needs a second competitor" in found.stderr


def test_one_split_is_no_answer(boosters_eval):
    found = boosters_eval("compare", *VARIANTS, "-s", "1", "--against", "boosters poor", "-f", "csv", check=2)
    assert "Not checked against boosters poor" in found.stderr
