"""--against on the command line: exit codes, what is printed where, and what is refused."""

import json
import re

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
        (("--require-proof",), "The '--require-proof' option needs --against NAME"),
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


NEAR = ("--variants", "usual:n_estimators=20", "near:n_estimators=20,max_bins=64")
CLOSE = ("-l", "boosters", *NEAR, "-d", "breast_cancer", "-s", "3")


def test_exit_codes_by_the_margin(boosters_eval, place):
    """One run, judged four ways: what cannot be said passes without a tick, unless proof is required."""
    asked = ("compare", *CLOSE, "--against", "boosters usual", "-f", "csv", "-q", "--verdict", "v.json")

    def verdict():
        written = json.loads((place / "v.json").read_text())
        return written["exit_code"], written["outcome"], written["margin"], written["require_proof"]

    found = boosters_eval(*asked, "--margin", "0.1%", check=0)
    assert found.stderr.startswith(
        "⚠ Cannot say whether boosters near is worse than boosters usual by more than 0.1 % in"
    )
    assert re.search(r": a loss of up to [\d.]+ % cannot be excluded\n", found.stderr)
    assert "✅" not in found.stderr
    assert verdict() == (0, "cannot say", ["0.1%"], False)
    found = boosters_eval(*asked, "--margin", "0.1%", "--require-proof", check=1)
    assert found.stderr.startswith("❌ Cannot say whether boosters near is worse")
    assert verdict() == (1, "cannot say", ["0.1%"], True)
    found = boosters_eval(*asked, "--margin", "90%", "--require-proof", check=0)
    assert found.stderr.startswith("✅ Nothing is worse than boosters usual by more than 90 % in 1 comparison (1 ")
    assert verdict() == (0, "not worse", ["90%"], True)
    found = boosters_eval(*asked, "--margin", "logloss=0.2", check=0)
    assert found.stderr.startswith("✅ Nothing is worse than boosters usual by more than 0.2 in")
    assert verdict() == (0, "not worse", ["1%", "logloss=0.2"], False)


def test_the_margin_stands_in_the_report_and_in_the_commands_that_repeat_it(boosters_eval, place):
    margin = ("--margin", "5%", "auc_roc=0.002")
    boosters_eval("compare", *CLOSE, *margin, "-q", check=0)
    for given, said in (((), ["5%", "auc_roc=0.002"]), (("--margin", "2%"), ["2%"])):  # the run remembers its own
        boosters_eval("report", "--run", "last", *given, "-o", "r.json", "-q", check=0)
        written = json.loads((place / "r.json").read_text())
        assert written["data"]["margin"] == said
        assert written["reproduce"][0].endswith("--margin 5% auc_roc=0.002 -q")
        assert written["reproduce"][1].endswith(f"--margin {' '.join(said)}")
        shown = {pair["metric"]: pair["margin"] for table in written["tables"] for pair in table["pairs"]}
        assert shown["auc_roc"] == ("2 %" if given else "0.002")
    boosters_eval("report", "--run", "last", "-o", "r.md", "-q", check=0)
    assert "- **Equivalent**: within 5 % of the error; AUC within 0.002\n" in (place / "r.md").read_text()


@pytest.mark.parametrize(
    ("margin", "told"),
    [
        ("abc", "The '--margin' option must be a share of the error such as 1%, or a metric's own"),
        ("-1%", "Got '-1%' instead."),
        ("1", "Got '1' instead."),
        ("auc_roc=-0.1", "Got 'auc_roc=-0.1' instead."),
        ("auc_roc=nan", "Got 'auc_roc=nan' instead."),
        ("=1%", "Got '=1%' instead."),
        ("auc_rok=0.1", "Unknown metric 'auc_rok'. Did you mean 'auc_roc'?"),
        ("train_time_s=0.1", "The '--margin' option of train_time_s must be a share such as 5%."),
    ],
)
def test_a_wrong_margin_is_one_sentence_before_anything_runs(boosters_eval, place, margin, told):
    found = boosters_eval("compare", *CLOSE, f"--margin={margin}", check=3)
    assert told in found.stderr
    assert len(found.stderr.splitlines()) == 1
    assert not (place / "home" / "runs").exists()
