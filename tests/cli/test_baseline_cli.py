import json
import math
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import factories
from boosters_eval import check_baseline
from boosters_eval.cli.app import run
from boosters_eval.programs.baseline.findings import CheckDocument, Status
from boosters_eval.programs.baseline.model import load_baseline
from boosters_eval.programs.benchmark.results import ResultCollection
from boosters_eval.runners.config import derive_seeds

V1 = Path(__file__).parent.parent / "fixtures" / "baseline_v1.json"


FAULTY_SUITE = """
from boosters_eval import BenchmarkConfig, BenchmarkSuite, DATASETS, Task, TrainingConfig

CONFIG = BenchmarkConfig(
    name="diabetes/gbdt",
    dataset=DATASETS["diabetes"],
    task=Task.REGRESSION,
    training=TrainingConfig(max_depth=13),  # crashes on request
    libraries=("faulty",),
)
SUITE = BenchmarkSuite(name="faulty", configs=(CONFIG,), default_seeds=1)
"""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Each test in a folder of its own, outside any repository and any CI system."""
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "BOOSTERS_EVAL_BASELINE_DIR", "BOOSTERS_EVAL_SEEDS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def collection(factor=1.0, *, version="3.1.2", other=1.0, libraries=("boosters", "xgboost")):
    results = []
    for library in libraries:
        for index, seed in enumerate(derive_seeds(3)):
            score = 0.45 * (1 + 0.01 * index) * (factor if library == "boosters" else other)
            fields = {
                "metrics": {"rmse": score, "mae": score / 2},
                "library_version": "0.1.0" if library == "boosters" else version,
            }
            results.append(factories.result("california/gbdt", library, seed, **fields))
    return factories.collection(results, suite="quick", run_id="0123456789abcdef")


@pytest.fixture
def files(here):
    """A baseline, and results that are unchanged, worse, crashed, and of an upgraded competitor."""
    collection().to_json("same.json")
    collection(1.05).to_json("worse.json")
    collection(version="3.4.1", other=1.096).to_json("upgrade.json")
    crashed = collection(libraries=("xgboost",))
    crashed.errors = [factories.error("california/gbdt")]
    crashed.to_json("crashed.json")
    assert run(["baseline", "record", "base.json", "--results", "same.json", "-q"]) == 0
    return here


def check(*arguments):
    return run(["baseline", "check", *arguments])


def test_record_writes_where_it_is_told_or_to_the_default(here, monkeypatch, capsys):
    collection().to_json("r.json")
    assert run(["baseline", "record", "--results", "r.json"]) == 0
    assert "tests/baselines/baseline.json (2 pairs of config and library, 3 seeds)" in capsys.readouterr().err
    monkeypatch.setenv("BOOSTERS_EVAL_BASELINE_DIR", "elsewhere")
    assert run(["baseline", "record", "--results", "r.json"]) == 0
    assert run(["baseline", "record", "--results", "r.json", "--output", "x/y.json"]) == 0
    for path in ("tests/baselines/baseline.json", "elsewhere/baseline.json", "x/y.json"):
        assert load_baseline(here / path).config.suite == "quick"


def test_record_says_what_it_replaces_and_replaces_nothing_but_a_baseline(files, capsys):
    assert run(["baseline", "record", "base.json", "--results", "same.json"]) == 0
    assert re.search(r"Note: it replaces the one of [\d-]+ [\d:]+ \(2 pairs, 3 seeds\)\.", capsys.readouterr().err)
    before = Path("worse.json").read_bytes()
    assert run(["baseline", "record", "worse.json", "--results", "same.json"]) == 3
    assert "worse.json exists and is no baseline, so it is not replaced" in capsys.readouterr().err
    assert Path("worse.json").read_bytes() == before


def test_record_refuses_a_run_with_errors_and_leaves_the_old_file(files, capsys):
    before = Path("base.json").read_bytes()
    assert run(["baseline", "record", "base.json", "--results", "crashed.json"]) == 2
    assert "No baseline was recorded: boosters on california/gbdt, cell 42: WorkerDied" in capsys.readouterr().err
    assert Path("base.json").read_bytes() == before


def test_check_passes_and_says_so(files, capsys):
    assert check("base.json", "--results", "same.json") == 0
    assert capsys.readouterr().out.splitlines() == [
        "✅ No regression against base.json: 2 pairs compared (tolerance 2 %)",
        "Note: Only means were compared: the baseline and the run have no predictions, so no row could be tested.",
    ]


def test_verbose_adds_the_tables_and_quiet_leaves_the_verdict(files, capsys):
    assert check("base.json", "--results", "worse.json", "-v") == 1
    assert "## california/gbdt (3 splits)" in capsys.readouterr().out  # the comparison itself is shown too
    assert check("base.json", "--results", "worse.json", "-q") == 1
    assert capsys.readouterr().out == "❌ Regression detected in 1 config: california/gbdt boosters\n"


def test_check_fails_on_a_regression_in_the_rfc_s_words(files, capsys):
    assert check("--baseline", "base.json", "--results", "worse.json") == 1
    assert capsys.readouterr().out == (
        "❌ Regression detected in 1 config:\n"
        "  california/gbdt boosters: RMSE 0.4772 > baseline 0.4545 (+5.0 %, tolerance 2 %)\n"
        "Note: Only means were compared: the baseline and the run have no predictions, so no row could be tested.\n"
        "Next: if it is intended: boosters-eval baseline update base.json --library boosters --accept 'WHY'\n"
    )


def test_a_regression_may_be_let_pass_but_is_still_said(files, capsys):
    assert check("base.json", "--results", "worse.json", "--no-fail-on-regression") == 0
    assert "❌ Regression detected" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--tolerance", "0.06"], 0),
        (["--tolerance", "0.04"], 1),
        (["--tolerance-for", "rmse=0.06"], 0),
        (["--tolerance-for", "california/gbdt=0.06"], 0),
        (["--tolerance-for", "rmse=0.06", "california/gbdt=0.01"], 1),
        (["--statistical"], 1),
        (["--libraries-under-test", "xgboost"], 0),
        (["--libraries-under-test", "xgboost", "boosters"], 1),
        (["--fail-on-regression"], 1),
    ],
)
def test_options_decide(files, options, code):
    assert check("base.json", "--results", "worse.json", *options) == code


def test_a_crash_is_a_regression(files, capsys):
    assert check("base.json", "--results", "crashed.json", "--continue-on-error") == 1
    assert "boosters: crashed, cell 42: WorkerDied" in capsys.readouterr().out


def test_an_upgrade_of_a_competitor_is_not_a_regression(files, capsys):
    assert check("base.json", "--results", "upgrade.json") == 0
    assert "xgboost 3.1.2 → 3.4.1 moved RMSE by +9.6 %: not your library" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["none.json"], "none.json does not exist; record it with 'boosters-eval baseline record none.json'"),
        (["base.json", "--baseline", "other.json"], "Give the file once"),
        (["base.json", "--tolerance", "2"], "'--tolerance' option must be a share"),
        (["base.json", "--tolerance", "nan"], "'--tolerance' option must be a share"),
        (["base.json", "--tolerance-for", "rmse"], "'--tolerance-for' option must be"),
        (["base.json", "--tolerance-for", "rmse=5"], "'--tolerance-for' option must be"),
        (["base.json", "--tolerance-for", "=0.1"], "'--tolerance-for' option must be"),
        (["base.json", "--tolerance-for", "rmsle=0.1"], "Did you mean 'rmse'"),
        (["base.json", "--libraries-under-test", "xgbost"], "Did you mean 'xgboost'"),
        (["base.json", "--run", "last"], "either --run or --results"),
        (["base.json", "--quiet", "--verbose"], "either --verbose or --quiet"),
        (["base.json", "--junit", "."], "is a directory"),
        (["base.json", "--tolerances", "1"], "--tolerance"),
        (["base.json", "--seeds", "many"], "'--seeds' option must be a count from 1 to 10000, or auto. Got 'many'"),
        (["base.json", "--seeds", "0"], "'--seeds' option must be a count from 1 to 10000, or auto. Got '0'"),
        (["base.json", "--seeds", "auto"], "--seeds auto needs --statistical"),
        (["base.json", "--seeds", "auto", "--statistical"], "either --seeds auto or the results of an earlier run"),
        (["base.json", "--max-seeds", "9"], "either --seeds auto or the results of an earlier run"),
        (["base.json", "--max-seeds", "1"], "'--max-seeds'"),
        (["base.json", "--allow-flaky", "-1"], "'--allow-flaky'"),
        (["base.json", "--verdict", "."], "is a directory"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_3(files, capsys, arguments, told):
    assert check(*arguments, "--results", "same.json") == 3
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("Error: ")
    assert captured.err.count("\n") == 1
    assert told in captured.err


@pytest.mark.parametrize("text", ["", '{"schema_version": 10, "results"', "<html>", '{"version": 5}', "[" * 100_000])
def test_a_broken_baseline_or_results_file_is_exit_code_3(files, capsys, text):
    Path("broken.json").write_text(text)
    assert check("broken.json", "--results", "same.json") == 3
    assert check("base.json", "--results", "broken.json") == 3
    assert run(["baseline", "diff", "base.json", "broken.json"]) == 3
    assert run(["baseline", "record", "new.json", "--results", "broken.json"]) == 3
    assert capsys.readouterr().err.count("\n") == 4


def test_a_baseline_of_another_format_is_refused(files, capsys):
    document = json.loads(Path("base.json").read_text())
    Path("new.json").write_text(json.dumps({**document, "schema_version": 5}))
    assert check("new.json", "--results", "same.json") == 3
    assert "new.json is a baseline of format 5, which this version does not read" in capsys.readouterr().err


def test_the_rfc_s_version_1_file_is_checked(files, capsys):
    assert check(str(V1), "--results", "same.json", "--library", "boosters", "--seeds", "3") == 0
    assert "1 pair compared" in capsys.readouterr().out


@pytest.fixture
def noisy(files):
    """Results that are worse by 3 % on average, by very different amounts."""
    results = collection()
    for index, factor in enumerate((1.055, 1.005, 1.03)):
        one = results.results[index]
        results.results[index] = one.model_copy(update={"metrics": {"rmse": one.metrics["rmse"] * factor}})
    results.to_json("noisy.json")


def test_what_is_beyond_tolerance_and_undecided_fails_with_the_seeds_that_would_decide(noisy, capsys):
    assert check("base.json", "--results", "noisy.json", "--statistical") == 1
    headline, finding, evidence, advice = capsys.readouterr().out.splitlines()
    lacking = "the baseline and the run have no predictions, so no row could be tested."
    assert evidence == f"Note: Splits were tested: {lacking}"
    assert headline == "❌ Beyond tolerance, but undecided in 1 config:"
    assert finding == (
        "  california/gbdt boosters: RMSE 0.4681 > baseline 0.4545 (+3.0 %, tolerance 2 %)"
        " (p = 0.254 by splits; 23 seeds would decide if the change stays as it is)"
    )
    assert advice == (
        "Note: base.json has 3 seeds, and 23 would decide; with the recorded versions installed, run"
        " 'boosters-eval baseline record base.json --suite quick --seeds 23'."
    )
    assert check("base.json", "--results", "noisy.json", "-q", "--statistical", "--no-fail-on-regression") == 0
    assert check("base.json", "--results", "noisy.json", "-q") == 1


@pytest.fixture
def flaky(files):
    """Unchanged results of which two cells failed before they finished."""
    results = collection()
    results.results[1:3] = [r.model_copy(update={"failed_before": 4}) for r in results.results[1:3]]
    results.to_json("flaky.json")


@pytest.mark.parametrize(("options", "code"), [([], 2), (["--allow-flaky", "1"], 2), (["--allow-flaky", "2"], 0)])
def test_flaky_cells_fail_unless_so_many_are_allowed(flaky, capsys, options, code):
    assert check("base.json", "--results", "flaky.json", *options) == code
    assert "  california/gbdt boosters: cells 1379 after 4 failures, 2716 after 4 failures" in capsys.readouterr().out
    assert run(["baseline", "record", "flaky-base.json", "--results", "flaky.json", "-q", *options]) == code
    assert Path("flaky-base.json").exists() == (code == 0)
    if code == 0:
        assert check("flaky-base.json", "--results", "same.json") == 0
        assert "Cells of the baseline that finished only after failing, as was allowed: 2." in capsys.readouterr().out
        assert run(["baseline", "diff", "base.json", "flaky-base.json", "-q"]) == 2


def test_the_verdict_is_written_for_programs(noisy, capsys):
    assert check("base.json", "--results", "noisy.json", "-q", "--statistical", "--verdict", "out/v.json") == 1
    document = CheckDocument.model_validate_json(Path("out/v.json").read_text())
    assert (document.exit_code, document.pairs[0].status, document.pairs[0].seeds_needed) == (1, Status.UNDECIDED, 23)


def _changed(name, **changes):
    """Results of which each cell of boosters is another one."""
    results = collection()
    results.results = [one.model_copy(update=changes) if one.library == "boosters" else one for one in results.results]
    results.to_json(name)
    return name


def _crash_of_another():
    results = collection(libraries=("boosters",))
    results.errors = [factories.error("california/gbdt", "xgboost", seed) for seed in derive_seeds(3)]
    results.to_json("other.json")
    return "other.json"


def _not_run():
    collection(libraries=("xgboost",)).to_json("part.json")
    return "part.json"


def _recorded_with_times():
    _changed("timed.json", train_time_s=1.0, predict_time_s=0.1)
    assert run(["baseline", "record", "timed-base.json", "--results", "timed.json", "-q"]) == 0
    return "timed.json"


def _turned():
    document = json.loads(Path("base.json").read_text())
    document["results"][0]["higher_is_better"] = True
    Path("turned.json").write_text(json.dumps(document))
    return "same.json"


def _few():
    few = collection()
    few.results = [one for one in few.results if one.seed == 42]
    few.to_json("few.json")
    return "few.json"


# By the beginning of each row of the table on the page: the results, the options, and what the verdict says.
FINDINGS = {
    "regression: the primary metric": (lambda: "worse.json", [], "❌ Regression detected"),
    "undecided: beyond tolerance": (lambda: "noisy.json", ["--statistical"], "but undecided in 1 config"),
    "crashed: a cell failed": (lambda: "crashed.json", ["--continue-on-error"], "crashed, cell 42"),
    "skipped: in the baseline": (_not_run, [], "in the baseline, but boosters was not run at all"),
    "skipped: fewer cells": (_few, [], "only 1 of the 3 recorded cells were run"),
    "not comparable": (lambda: _changed("data.json", data_digest="f" * 64), [], "the data is not the recorded data"),
    "a cell failed or did not run": (_crash_of_another, ["--libraries-under-test", "boosters"], "3 cells failed"),
    "more cells are flaky": (lambda: "flaky.json", ["--allow-flaky", "1"], "2 flaky cells"),
    "nothing that counts": (lambda: "upgrade.json", ["-l", "xgboost"], "Nothing that counts was compared"),
    "the file is not a baseline": (
        lambda: "same.json",
        ["--baseline", "broken.json"],
        "is not a boosters-eval baseline",
    ),
    "the file contradicts": (_turned, ["--baseline", "turned.json"], "higher_is_better must be false"),
    "the baseline was recorded from": (_recorded_with_times, ["--baseline", "timed-base.json"], "from this very run"),
}


def test_each_row_of_the_table_of_exit_codes_is_so(noisy, flaky, capsys):
    Path("broken.json").write_text("{}")
    page = (Path(__file__).parents[2] / "docs" / "baselines.md").read_text().partition("| Finding | Exit code |")[2]
    rows = [line.strip("| ").rsplit(" | ", 1) for line in page.partition("\n\n")[0].splitlines()[2:]]
    (bad,) = [int(code) for finding, code in rows if finding.startswith("not a number")]
    results = collection()
    results.results[0] = results.results[0].model_copy(update={"metrics": {"rmse": math.nan}})
    assert check_baseline("base.json", results=results).exit_code == bad
    for finding, code in rows:
        if finding.startswith("not a number"):  # no file holds such a score
            continue
        (case,) = [case for begin, case in FINDINGS.items() if finding.startswith(begin)]
        results, options, told = case[0](), case[1], case[2]
        asked = [*([] if "--baseline" in options else ["base.json"]), "--results", results, *options]
        capsys.readouterr()
        assert check(*asked) == int(code), finding
        captured = capsys.readouterr()
        assert told in captured.out + captured.err, finding
        assert (check(*asked, "--no-fail-on-regression") == 0) == (code == "1"), finding
    assert len(rows) == len(FINDINGS) + 1


def test_a_baseline_that_turns_a_metric_around_is_refused(files, capsys):
    document = json.loads(Path("base.json").read_text())
    document["results"][0]["higher_is_better"] = True
    Path("turned.json").write_text(json.dumps(document))
    assert check("turned.json", "--results", "worse.json") == 3
    told = "turned.json is not a valid baseline: results.0: higher_is_better must be false: less rmse is better."
    assert told in capsys.readouterr().err


def test_results_of_fewer_seeds_than_recorded_fail_unless_so_many_are_asked_for(files, capsys, monkeypatch):
    few = collection()
    few.results = [r for r in few.results if r.seed == 42]
    few.to_json("few.json")
    assert check("base.json", "--results", "few.json") == 2
    assert "boosters: skipped, only 1 of the 3 recorded cells were run" in capsys.readouterr().out
    assert check("base.json", "--results", "few.json", "-v", "--seeds", "1") == 0
    assert "(over 1 of the 3 recorded seeds)" in capsys.readouterr().out
    assert check("base.json", "--results", "few.json", "-v", "--seeds", "2") == 2
    assert "only 1 of the 3 recorded cells were run; 2 seeds were asked for" in capsys.readouterr().out
    monkeypatch.setenv("BOOSTERS_EVAL_SEEDS", "1")
    assert check("base.json", "--results", "few.json", "-q") == 0
    monkeypatch.setenv("BOOSTERS_EVAL_SEEDS", "")  # as in CI, where a variable may be undefined: nobody asked for fewer
    assert check("base.json", "--results", "few.json", "-q") == 2


def test_results_with_a_cell_twice_fail(files, capsys):
    twice = collection(1.5)
    twice.results += collection().results
    twice.to_json("twice.json")
    assert check("base.json", "--results", "twice.json") == 2
    assert "not comparable, cell 42: the run has 2 outcomes for it (3 cells)" in capsys.readouterr().out


def test_a_check_of_which_nothing_counts_exits_3(files, capsys):
    assert check("base.json", "--results", "upgrade.json", "-q", "--library", "xgboost") == 3
    assert capsys.readouterr().out.startswith("❌ Nothing that counts was compared with base.json")


def test_a_library_named_with_results_is_the_only_one_that_is_compared(files, capsys):
    assert check("base.json", "--results", "worse.json", "-v", "--library", "xgboost") == 0
    out = capsys.readouterr().out
    assert "1 pair compared" in out
    assert "Skipped:\n  california/gbdt boosters: left out on request" in out
    assert check("base.json", "--results", "worse.json", "-q", "--library", "xgbost") == 3
    assert "Unknown library of the results 'xgbost'. Did you mean 'xgboost'?" in capsys.readouterr().err


def test_a_library_named_with_results_is_the_only_one_that_is_recorded(files, capsys):
    assert run(["baseline", "record", "one.json", "--results", "same.json", "-l", "xgboost", "-q"]) == 0
    assert [result.library for result in load_baseline("one.json").results] == ["xgboost"]
    assert run(["baseline", "record", "base.json", "--results", "same.json", "-l", "xgboost"]) == 3
    assert "1 pair would go (california/gbdt boosters)" in capsys.readouterr().err
    assert run(["baseline", "record", "x.json", "--results", "same.json", "-l", "xgbost"]) == 3
    assert "Did you mean 'xgboost'" in capsys.readouterr().err


def test_an_update_of_one_library_does_not_speak_of_the_others(files, capsys):
    assert run(["baseline", "update", "base.json", "--results", "worse.json", "-l", "boosters", "--accept", "why"]) == 0
    said = capsys.readouterr()
    assert "Updated: base.json (1 pair: 1 worse)." in said.out
    assert said.err == ""


def test_a_dry_run_on_results_writes_nothing(files, capsys, monkeypatch):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(files / "summary.md"))
    before = sorted(Path().rglob("*"))
    assert run(["baseline", "record", "--results", "same.json", "-o", "new/x.json", "--dry-run"]) == 0
    assert "Would record: new/x.json (2 pairs" in capsys.readouterr().err
    arguments = ["base.json", "--results", "worse.json", "--dry-run", "-o", "new/r.json", "--junit", "new/j.xml"]
    assert check(*arguments) == 1
    assert sorted(Path().rglob("*")) == before


def test_output_holds_the_results_and_junit_the_verdict(files):
    arguments = ["base.json", "--results", "worse.json", "--output", "out/results.json", "--junit", "out/junit.xml"]
    assert check(*arguments) == 1
    assert len(ResultCollection.load_partial("out/results.json")) == 6
    suite = ET.parse("out/junit.xml").getroot().find("testsuite")
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")


def test_on_github_there_are_annotations_and_a_job_summary(files, capsys, monkeypatch):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(files / "summary.md"))
    Path("summary.md").write_text("before\n")
    assert check("base.json", "--results", "worse.json", "-q") == 1
    assert "::error title=boosters-eval Regression::california/gbdt boosters: RMSE" in capsys.readouterr().out
    summary = Path("summary.md").read_text()
    assert summary.startswith("before\n# Check against base.json\n\n## Answer\n\n❌ Regression detected in 1 config:\n")
    assert "| california/gbdt | boosters | RMSE" in summary


def test_a_job_summary_that_cannot_be_written_does_not_change_the_verdict(files, capsys, monkeypatch):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(files))
    assert check("base.json", "--results", "same.json", "-q") == 0
    assert "job summary" in capsys.readouterr().err


def test_diff_compares_two_files_without_running_anything(files, capsys):
    assert run(["baseline", "record", "worse-base.json", "--results", "worse.json", "-q"]) == 0
    assert run(["baseline", "diff", "base.json", "base.json"]) == 0
    assert run(["baseline", "diff", "base.json", "worse-base.json"]) == 1
    assert run(["baseline", "diff", "base.json", "worse-base.json", "--no-fail-on-regression"]) == 0
    assert run(["baseline", "diff", "worse-base.json", "base.json"]) == 0
    assert "✅ Improved beyond tolerance:" in capsys.readouterr().out
    assert run(["baseline", "diff", "base.json"]) == 3


def test_diff_shows_its_table_if_asked_for_it(files, capsys):
    shown = []
    for shape in (["-v"], ["-q"]):
        assert run(["baseline", "diff", "base.json", "base.json", *shape]) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0].startswith(shown[1])  # the answer comes first
    assert "california/gbdt" in shown[0].removeprefix(shown[1])


def test_diff_starts_without_the_scientific_packages(files):
    code = (
        "import sys; from boosters_eval.cli.app import run; code = run(['baseline', 'diff', 'base.json', 'base.json']);"
        "print(sorted({'numpy', 'scipy', 'pandas', 'sklearn'} & set(sys.modules))); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_pass_is_at_most_six_lines_however_many_pairs_there_are(here, capsys):
    many = collection()
    many.results = [r.model_copy(update={"config_name": f"c{i}/gbdt"}) for r in many.results for i in range(30)]
    many.to_json("many.json")
    assert run(["baseline", "record", "many-base.json", "--results", "many.json", "-q"]) == 0
    capsys.readouterr()
    assert run(["baseline", "diff", "many-base.json", "many-base.json"]) == 0
    assert capsys.readouterr().out.count("\n") <= 6
    changed = [r.model_copy(update={"library_version": "9"}) if r.library == "xgboost" else r for r in many.results]
    many.results = [
        r.model_copy(update={"metrics": {"rmse": r.metrics["rmse"] * 1.5}}) if r.library == "xgboost" else r
        for r in changed
    ]
    many.to_json("many.json")
    assert check("many-base.json", "--results", "many.json") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    assert lines[-1].startswith("--verbose shows 2")


@pytest.fixture
def mine(place):
    """A suite of one pair, of which one cell runs."""
    (place / "suite.py").write_text(FAULTY_SUITE.replace("max_depth=13", "max_depth=1"))
    return ["--suite", "suite.py:SUITE"]


def test_a_check_has_the_settings_of_every_run(boosters_eval, mine):
    done = boosters_eval("baseline", "record", "m.json", *mine, "--name", "first", "--memory-limit", "4000", check=0)
    assert "Recorded: m.json (1 pair of config and library, 1 seed)" in done.stderr
    assert "very run" in boosters_eval("baseline", "check", "m.json", "--run", "first", check=3).stderr
    settings = ["--name", "second", "--timeout", "60", "--observer", "lines", "--verbose", "--jobs", "1", "--fresh"]
    done = boosters_eval("baseline", "check", "m.json", *mine, *settings, check=0)
    assert "diabetes/gbdt faulty: fault=none" in done.stderr  # the native parameters
    assert "1/1 done" in done.stderr
    assert done.stdout.startswith(
        "✅ No regression against m.json: 1 pair compared (tolerance 2 %), all bit-identical\n"
    )
    boosters_eval("baseline", "check", "m.json", "--run", "second", "-q", check=0)
    done = boosters_eval("baseline", "check", "m.json", *mine, "--resume", check=0)
    assert "there is no earlier attempt" not in done.stderr


@pytest.mark.parametrize("command", [("baseline", "record"), ("baseline", "check", "base.json"), ("quick",), ("full",)])
@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--resume", "--rerun-failed"], "Use either --resume or --rerun-failed, not both."),
        (["--jobs", "0"], "The '--jobs' option must be a count from 1 to 4096. Got '0' instead."),
        (["--memory-limit", "-1"], "The '--memory-limit' option must be megabytes above 0. Got '-1' instead."),
        (["--workers", "2"], "The '--workers' option needs --executor dask. Got 'local' instead."),
        (["--executor", "nothing"], "Unknown executor 'nothing'. Known: dask, local."),
        (["--observer", "nobody"], "Unknown observer 'nobody'."),
        (["--name", "last"], "The '--name' option must be up to 64 letters"),
    ],
)
def test_a_mistake_in_them_is_told_as_everywhere(files, capsys, command, options, told):
    assert run([*command, *options]) == 3
    assert capsys.readouterr().err.startswith(f"Error: {told}")


@pytest.mark.parametrize("command", [("baseline", "record"), ("baseline", "check", "base.json")])
def test_an_earlier_run_is_not_tracked(files, capsys, command):
    assert run([*command, "--results", "same.json", "--track", "mlflow"]) == 3
    assert "Use either --track or an earlier run, not both" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command", [["baseline", "record", "new.json"], ["baseline", "check", "base.json"], ["report"]]
)
@pytest.mark.parametrize("option", [["--jobs", "2"], ["--name", "x"], ["--timing-mode"], ["--resume"]])
def test_settings_of_a_run_are_refused_where_nothing_runs(files, capsys, command, option):
    assert run([*command, "--results", "same.json", *option]) == 3
    told = f"Error: The '{option[0]}' option says how to run, but an earlier run is used and nothing runs.\n"
    assert capsys.readouterr().err == told


@pytest.mark.parametrize("option", [["--suite", "quick"], ["--seeds", "3"]])
def test_an_earlier_run_is_recorded_as_it_is(files, capsys, option):
    assert run(["baseline", "record", "--results", "same.json", "-o", "new.json", *option]) == 3
    assert capsys.readouterr().err.startswith(f"Error: Use either {option[0]} or an earlier run, not both")


def test_an_output_of_no_known_format_is_refused_before_the_run(files, capsys):
    assert check("base.json", "--output", "r.foo") == 3
    told = "The '--output' option must end in .md, .txt, .json, .csv or .html. Got 'r.foo' instead."
    assert capsys.readouterr().err == f"Error: {told}\n"


class TestRealRuns:
    """The minimal suite: boosters, two data sets, one seed."""

    @pytest.fixture(autouse=True)
    def own_home(self, here, monkeypatch):
        monkeypatch.setenv("BOOSTERS_EVAL_HOME", str(here / "home"))

    @pytest.mark.usefixtures("kept_pool")
    def test_record_then_check_the_same_suite_and_seeds_by_default(self, here, capsys):
        assert run(["baseline", "record", "m.json", "--suite", "minimal", "--seeds", "2"]) == 0
        recorded = load_baseline(here / "m.json")
        assert recorded.config.seeds == (42, 1379)
        assert set(recorded.libraries) == {"boosters"}
        assert recorded.machine["digest"]
        assert all(result.split_digests and result.data_digest for result in recorded.results)
        assert check("m.json", "--run", "last") == 3
        assert check("m.json", "--rerun-failed", "-q") == 3  # nothing failed, so nothing runs
        assert "m.json was recorded from this very run" in capsys.readouterr().err
        assert check("m.json", "--output", "r.json") == 0
        assert capsys.readouterr().out == (
            "✅ No regression against m.json: 2 pairs compared (tolerance 2 %), all bit-identical\n"
        )
        assert len(ResultCollection.load_partial("r.json")) == 4

    @pytest.mark.usefixtures("kept_pool")
    def test_a_library_that_was_recorded_besides_those_of_the_suite_is_checked_too(self, here, capsys):
        assert run(["baseline", "record", "m.json", "--suite", "minimal", "-l", "boosters", "xgboost", "-q"]) == 0
        assert check("m.json") == 0
        assert "4 pairs compared" in capsys.readouterr().out

    @pytest.mark.usefixtures("kept_pool")
    def test_adding_seeds_stops_when_nothing_is_open(self, here, faulty):
        Path("suite.py").write_text(FAULTY_SUITE)
        suite = ["--suite", "suite.py:SUITE", "-q"]
        assert run(["baseline", "record", "m.json", *suite, "--seeds", "7"]) == 0
        assert check("m.json", *suite, "--statistical", "--seeds", "auto", "--verdict", "v.json") == 0
        document = CheckDocument.model_validate_json(Path("v.json").read_text())
        assert (document.alpha, {pair.n for pair in document.pairs}) == (0.025, {5})

    def test_crashes_still_fail_after_they_were_run_again_until_they_worked(self, here, faulty, monkeypatch, capsys):
        Path("suite.py").write_text(FAULTY_SUITE)
        again = ["run", "--suite", "suite.py:SUITE", "-q"]
        assert run(["baseline", "record", "f.json", "--suite", "suite.py:SUITE", "-q"]) == 0
        monkeypatch.setenv("FAULTY_BROKEN", str(Path("broken").resolve()))
        Path("broken").touch()
        assert run(again) == 2
        assert run([*again, "--rerun-failed"]) == 2
        Path("broken").unlink()
        assert run([*again, "--rerun-failed"]) == 0
        capsys.readouterr()
        assert check("f.json", "--run", "last") == 2
        assert "diabetes/gbdt faulty: cell 42 after 2 failures" in capsys.readouterr().out
        assert check("f.json", "--run", "last", "-q", "--allow-flaky", "1") == 0

    def test_a_misspelt_library_under_test_is_found_before_anything_runs(self, files, capsys):
        assert check("base.json", "--libraries-under-test", "xgbost") == 3
        assert "Did you mean 'xgboost'" in capsys.readouterr().err
        assert not Path("home/runs").exists()

    def test_a_dry_run_shows_the_plan_and_runs_nothing(self, here, capsys):
        assert run(["baseline", "record", "new/m.json", "--suite", "minimal", "--dry-run"]) == 0
        assert re.search(r"run [0-9a-f]{16}: 2 cells", capsys.readouterr().out)
        assert run(["quick", "-o", "new/r.json", "--dry-run"]) == 0
        assert not Path("new").exists()
        assert not Path("home/runs").exists()

    def test_a_baseline_of_a_suite_that_is_not_known_here_asks_for_it(self, files, capsys):
        document = json.loads(Path("base.json").read_text())
        document["config"]["suite"] = "mine"
        Path("mine.json").write_text(json.dumps(document))
        assert check("mine.json") == 3
        assert "The suite 'mine' of the baseline is not known here; name it" in capsys.readouterr().err
        assert check("mine.json", "--suite", "quikc") == 3
        assert "Did you mean 'quick'" in capsys.readouterr().err

    @pytest.mark.usefixtures("kept_pool")
    def test_another_suite_than_the_recorded_one_is_a_restriction(self, files, capsys):
        """The pair that both have is compared; its parameters are not what they were, and that is said."""
        assert check("base.json", "--suite", "minimal", "--dry-run") == 0
        code = check("base.json", "--suite", "minimal", "-v")
        out = capsys.readouterr().out
        assert code == 2
        assert "california/gbdt boosters: not comparable" in out
        assert "Skipped:\n  california/gbdt xgboost: left out on request" in out

    @pytest.mark.usefixtures("kept_pool")
    def test_quick_without_a_baseline_shows_results_and_says_that_nothing_was_checked(self, here, monkeypatch, capsys):
        from boosters_eval.programs.benchmark import suites

        monkeypatch.setitem(suites.SUITES._all(), "quick", suites.MINIMAL_SUITE)
        assert run(["quick", "-o", "r.csv"]) == 3
        captured = capsys.readouterr()
        assert "## california/gbdt (1 split)" in captured.out
        path = str(Path("tests", "baselines", "quick.json"))
        assert captured.err.startswith(f"Note: no baseline at {path}, so nothing will be checked (exit 3); --record")
        assert f"No baseline at {path}: nothing was checked." in captured.err
        assert re.search(f"boosters-eval baseline record --run [0-9a-f]{{16}} {path}", captured.err)
        assert Path("r.csv").read_text().startswith("config,")
        assert run(["quick", "--record", "-q"]) == 0
        assert run(["quick"]) == 0
        captured = capsys.readouterr()
        assert "✅ No regression against" in captured.out
        assert "2 of 2 cells are taken over from earlier runs" in captured.err
        assert run(["quick", "--fresh"]) == 0
        assert "taken over" not in capsys.readouterr().err

    @pytest.mark.usefixtures("kept_pool")
    def test_quick_outside_a_checkout_checks_the_baseline_of_its_wheel(self, here, monkeypatch, capsys):
        from boosters_eval.programs.baseline import commands
        from boosters_eval.programs.benchmark import suites

        monkeypatch.setitem(suites.SUITES._all(), "quick", suites.MINIMAL_SUITE)
        assert run(["baseline", "record", "shipped.json", "--suite", "quick", "-q"]) == 0
        monkeypatch.setattr(commands, "find_shipped", lambda suite: Path("shipped.json") if suite == "quick" else None)
        assert run(["quick", "-q"]) == 0
        assert "✅ No regression against shipped.json" in capsys.readouterr().out
