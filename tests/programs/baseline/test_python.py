"""The door from Python: what is recorded, checked and compared, and how it speaks of its parameters."""

from pathlib import Path

import pytest

import boosters_eval as be
import tiny
from boosters_eval.core.errors import ConfigError, ExitCode, RunError
from boosters_eval.programs.baseline.snapshot import make_baseline


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("BOOSTERS_EVAL_BASELINE_DIR", "BOOSTERS_EVAL_SEEDS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def suite(faulty):
    return be.BenchmarkSuite("tiny", (tiny.tiny_config(),), default_seeds=2)


def test_a_suite_is_recorded_and_checked_with_the_settings_of_every_run(suite, capsys):
    recorded = be.record_baseline("base.json", suite=suite, name="first", executor=tiny.shared_pool())
    assert recorded == be.load_baseline("base.json")
    assert recorded.config.seeds == (42, 1379)
    assert capsys.readouterr() == ("", "")
    asked = {"suite": suite, "executor": tiny.shared_pool()}
    found = be.check_baseline("base.json", **asked, seeds=1, timeout=60, verbose=True)
    assert (found.passed, found.exit_code) == (True, ExitCode.SUCCESS)
    assert str(found).startswith("✅ No regression against base.json: 1 pair compared (tolerance 2 %)")
    assert found.outcome("tiny/none", "faulty")[0] == "passed"
    assert "tiny/none faulty: " in capsys.readouterr().err  # it is verbose
    assert be.check_baseline(recorded, **asked, observer=[]).name == "the baseline"
    with pytest.raises(ConfigError, match=r"^base\.json was recorded from this very run"):
        be.check_baseline("base.json", run="first")


def test_what_is_in_hand_needs_no_file(make):
    recorded = be.record_baseline(results=make.run())
    assert Path("tests/baselines/baseline.json").is_file()
    worse = make.run({"boosters": 1.05})
    worse.results = [result.model_copy(update={"train_time_s": 1.0}) for result in worse.results]  # another run
    for given in ({}, {"baseline": "tests/baselines/baseline.json"}, {"baseline": recorded}):
        found = be.check_baseline(**given, results=worse)
        assert found.exit_code is ExitCode.REGRESSION
        assert {finding.library for finding in found.regressions} == {"boosters"}
    assert be.check_baseline(recorded, results=worse, tolerance=0.1).passed
    assert be.check_baseline(recorded, results=worse, tolerance_for={"rmse": 0.1, "logloss": 0.1}).passed
    assert be.check_baseline(recorded, results=worse, libraries_under_test="xgboost").passed
    assert be.diff_baselines(recorded, make_baseline(worse)).exit_code is ExitCode.REGRESSION
    assert be.diff_baselines(Path("tests/baselines/baseline.json"), recorded).passed


def test_of_results_in_hand_only_the_libraries_that_are_named_are_checked(make):
    recorded = make_baseline(make.run())
    run = make.run({"xgboost": 1.05})
    run.results = [one.model_copy(update={"train_time_s": 1.0}) for one in run.results if one.library == "xgboost"]
    run.errors = [make.error()]
    found = be.check_baseline(recorded, results=run, libraries="xgboost")
    assert (found.exit_code, found.errors) == (ExitCode.REGRESSION, 0)
    alone = be.check_baseline(recorded, results=run, libraries="boosters", libraries_under_test="boosters")
    assert [finding.note for finding in alone.regressions] == [
        "cell 42: WorkerDied in fit, SIGSEGV: killed by SIGSEGV",
    ]


def test_a_run_with_errors_is_recorded_only_without_what_failed(make):
    run = make.run()
    run.results = [result for result in run.results if result.library == "xgboost"]
    run.errors = [make.error()]
    with pytest.raises(RunError, match="No baseline was recorded"):
        be.record_baseline("base.json", results=run)
    assert not Path("base.json").exists()
    made = be.record_baseline("base.json", results=run, continue_on_error=True)
    assert [item.library for item in made.absent] == ["boosters"]


def test_a_prepared_check_knows_its_pairs_and_finds_failures_without_a_baseline(suite):
    prepared = be.prepare_check(suite=suite, seeds=1, executor=tiny.shared_pool())
    assert prepared.pairs == [("tiny/none", "faulty")]
    assert be.run_check(prepared).outcome("tiny/none", "faulty") == ("passed", "")
    broken = be.BenchmarkSuite("tiny", (tiny.tiny_config("nan"),))
    failed = be.run_check(be.prepare_check(suite=broken, seeds=1, executor=tiny.shared_pool()))
    assert failed.outcome("tiny/nan", "faulty")[0] == "failed"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"seeds": "auto"}, "seeds='auto' needs 'statistical': without a test"),
        ({"max_seeds": 5}, "The 'max_seeds' parameter needs seeds='auto'."),
        ({"run": "last", "results": "r.json"}, "Use either 'run' or 'results', not both."),
        ({"run": "last", "track": "mlflow"}, "Use either 'track' or an earlier run, not both"),
        ({"resume": True, "rerun_failed": True}, "Use either 'resume' or 'rerun_failed', not both."),
        ({"tolerance": 2}, "The 'tolerance' parameter must be a share from 0 to below 1, such as 0.02 for 2 %. Got 2"),
        ({"tolerance_for": {"rmse": 5}}, "The 'tolerance_for' parameter must be METRIC=X or CONFIG=X, X a share"),
        ({"tolerance_for": {7: 0.1}}, "The 'tolerance_for' parameter must be METRIC=X or CONFIG=X, X a share"),
        ({"tolerance_for": {"": 0.1}}, "The 'tolerance_for' parameter must be METRIC=X or CONFIG=X, X a share"),
        ({"tolerance_for": 5}, "The 'tolerance_for' parameter must be METRIC=X or CONFIG=X, X a share"),
        ({"allow_flaky": -1}, "The 'allow_flaky' parameter must be a count of at least 0. Got -1 instead."),
        ({"baseline": 5}, "The 'baseline' parameter must be a file or a Baseline. Got 5 instead."),
        (
            {"baseline": "none.json"},
            "none.json does not exist; record it with 'boosters-eval baseline record",
        ),
        ({"junit": "j.xml"}, "check_baseline() has no parameter 'junit'."),
    ],
)
def test_python_is_told_of_parameters(arguments, told, make):
    be.record_baseline(results=make.run())
    with pytest.raises(ConfigError) as caught:
        be.check_baseline(**arguments)
    assert told in str(caught.value)
    assert "--" not in str(caught.value).replace("RUN --to", "")


def test_results_of_the_wrong_type_are_told_too(make):
    with pytest.raises(ConfigError, match=r"^The 'results' parameter must be a file or a ResultCollection\. Got 5"):
        be.record_baseline(results=5)
    with pytest.raises(ConfigError, match=r"^The 'after' parameter must be a file or a Baseline\. Got 5"):
        be.diff_baselines(make_baseline(make.run()), 5)
    with pytest.raises(ConfigError, match=r"^The 'prepared' parameter must be what prepare_check\(\) gives\. Got 5"):
        be.run_check(5)
    with pytest.raises(ConfigError, match=r"^The 'run' parameter leaves nothing to prepare"):
        be.prepare_check(run="last")
