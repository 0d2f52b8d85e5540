"""The verdict behind --against: what fails, what passes, and what is no answer."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boosters_eval.cli.output import Terminal
from boosters_eval.core.errors import ExitCode, UnknownNameError
from boosters_eval.metrics.task import Task
from boosters_eval.programs.benchmark.against import RivalFinding
from boosters_eval.programs.benchmark.compare import ComparisonFindings, answer_against
from boosters_eval.programs.benchmark.records import Unavailable, Unsupported
from boosters_eval.programs.benchmark.request import CompareRequest
from boosters_eval.programs.benchmark.tables.against import (
    AgainstDocument,
    annotate_verdict,
    list_findings,
    render_verdict,
    tell_verdict,
)
from boosters_eval.programs.benchmark.tables.build import build_tables
from boosters_eval.stats.significance import Comparison
from factories import absence, collection, error, grid, remember, result
from learners import RATIO, equal_regressions

NOISE = (0.0, 0.002, -0.0015, 0.001, -0.001)


def scores(worse=0.0, *, configs=("toy/gbdt",), seeds=5, noise=1.0, **changes):
    """Two builds; the head's error is higher by `worse`, with a little noise."""

    def value(_config, library, index):
        return 0.5 + 0.01 * index + (worse + noise * NOISE[index] if library == "head" else 0.0)

    return grid(value, configs=configs, libraries=("base", "head"), seeds=seeds, **changes)


def timed(ratio, *, taken=0.0, configs=("toy/gbdt",)):
    """The same scores, and times that differ by a factor."""
    out = []
    for index, item in enumerate(scores(configs=configs)):
        factor = ratio * (1 + NOISE[index % 5]) if item.library == "head" else 1.0
        times = {"train_time_s": 2.0 * factor, "predict_time_s": 0.1}
        same = {"metrics": {"rmse": 0.5 + 0.01 * (index % 5)}, "timing_mode": True, "cpu_taken": taken}
        out.append(item.model_copy(update={**times, **same}))
    return out


@pytest.mark.parametrize("worse", [0.1, 0.0])
def test_first_line_says_what_holds_in_general_from_six_data_sets_on(worse):
    request = CompareRequest(datasets=["toy"], against="base")
    few, many = (
        answer_against(request, collection(scores(worse, configs=[f"{name}/gbdt" for name in "abcdef"[:count]])))
        for count in (5, 6)
    )
    assert "in general" not in tell_verdict(few)
    if worse:
        said = (
            r"❌ head is worse than base in 6 of 6 comparisons \(.*\); in general base: over 6 data sets, .* lower .*:"
        )
        assert re.fullmatch(said, tell_verdict(many))
    else:
        assert "; in general any of " in tell_verdict(many)
    assert "; in general " in AgainstDocument.of(many, None).answer


def test_a_competitor_that_is_worse_fails_and_is_named_with_its_numbers():
    check = collection(scores(0.1)).regressions("base")
    assert check.exit_code is ExitCode.REGRESSION
    assert not check.passed
    first, second = list_findings(check)
    assert first == "❌ head is worse than base in 1 of 1 comparison (at most a 5 % risk of a false alarm):"
    assert second.startswith("  toy/gbdt head: RMSE 0.6201 against 0.5200 (+19.3 %, interval ")
    assert second.endswith(", 5 splits)")


@pytest.mark.parametrize(
    ("change", "noise", "verdict", "told"),
    [(-0.1, 1, "better", "better"), (0.0, 1, "equivalent", "equivalent"), (-0.02, 8, "inconclusive", "not worse")],
)
def test_what_was_shown_not_to_be_worse_passes_and_is_said(change, noise, verdict, told):
    check = collection(scores(change, noise=noise)).regressions("base")
    assert [(finding.verdict, finding.outcome) for finding in check.findings] == [(verdict, "not worse")]
    assert check.passed
    assert check.proven
    assert list_findings(check)[0] == f"✅ Nothing is worse than base by more than 1 % in 1 comparison (1 {told})"
    assert "toy/gbdt head: RMSE" in list_findings(check)[2]


def test_a_loss_that_cannot_be_excluded_passes_without_a_tick_and_fails_where_proof_is_required():
    run = collection(scores(0.01, noise=9))
    check = run.regressions("base")
    assert (check.exit_code, check.proven, check.outcome) == (ExitCode.SUCCESS, False, "cannot say")
    asked = "Cannot say whether head is worse than base by more than 1 % in 1 of 1 comparison"
    first, title, finding = list_findings(check)
    assert first == f"⚠ {asked}: a loss of up to 6.7 % cannot be excluded"
    assert title == "⚠ Cannot say:"
    assert finding.endswith(", 5 splits): a loss of up to 6.7 % cannot be excluded")
    assert "⚠ cannot say" in render_verdict(check)
    assert "✅" not in render_verdict(check)
    assert annotate_verdict(check)[0].startswith("::warning title=boosters-eval Cannot say::toy/gbdt head: RMSE")
    strict = run.regressions("base", require_proof=True)
    assert strict.exit_code is ExitCode.REGRESSION
    assert list_findings(strict)[0].startswith(f"❌ {asked}")
    assert "❌ cannot say" in render_verdict(strict)
    absolute = run.regressions("base", margin="rmse=0.005")
    assert list_findings(absolute)[0].endswith(
        "by more than 0.005 in 1 of 1 comparison: a loss of up to 0.035 cannot be excluded"
    )
    assert [AgainstDocument.of(one, None).comparisons[0].fails for one in (check, strict)] == [False, True]
    assert annotate_verdict(strict)[0].startswith("::error title=boosters-eval Cannot say::")
    wide = run.regressions("base", margin="10%", require_proof=True)
    assert (wide.exit_code, wide.outcome) == (ExitCode.SUCCESS, "not worse")


def test_quiet_leaves_the_verdict_also_where_no_terminal_reads_it(capsys):
    run = collection(scores(0.1))
    found = ComparisonFindings(run, CompareRequest(datasets="iris", quiet=True), run.regressions("base"))
    screen = Terminal(quiet=True)
    found.show(screen)
    found.conclude(screen)
    assert "❌ head is worse than base in 1 of 1 comparison" in capsys.readouterr().out


def test_a_missing_answer_outranks_a_missing_proof():
    check = remember(collection(scores(0.01, noise=9)), n_cells=11, n_missing=1).regressions("base", require_proof=True)
    assert (check.exit_code, check.outcome) == (ExitCode.EXECUTION_ERROR, "unanswered")


@given(
    low=st.floats(-0.5, 0.5),
    width=st.floats(0, 0.5),
    region=st.floats(0, 0.2),
    higher=st.booleans(),
    ratio=st.booleans(),
    missing=st.sampled_from(["", "a cell failed"]),
)
def test_an_interval_that_reaches_beyond_the_margin_is_never_a_proof(low, width, region, higher, ratio, missing):
    """Whatever else is known: the answer is read off the worse end of the interval and the margin alone."""
    high, same = low + width, 1.0 if ratio else 0.0
    inside = -region <= low and high <= region
    verdict = (
        "equivalent" if inside else "inconclusive" if low <= 0 <= high else "better" if higher == (low > 0) else "worse"
    )
    pair = Comparison(
        *(verdict, "corrected", 5, 0.05, 0.01),
        interval=(low + same, high + same),
        region=region,
        ratio=1.0 if ratio else None,
        mean_b=1.0,
    )
    finding = RivalFinding("b", "head", "rmse", "RMSE", higher, pair, missing=missing)
    worst = -low if higher else high
    assert finding.proven is False or (worst <= region + 1e-12 and not missing)
    assert finding.proven or missing or worst > region - 1e-12
    assert finding.loss == pytest.approx(max(worst, 0.0), abs=1e-12)
    assert (finding.outcome == "not worse") == finding.proven


@given(worse=st.floats(-0.05, 0.05), noise=st.floats(0.5, 20), margin=st.sampled_from(["0%", "1%", "5%", "rmse=0.02"]))
@settings(max_examples=60, deadline=None)
def test_a_check_with_a_tick_has_no_interval_beyond_the_margin(worse, noise, margin):
    check = collection(scores(worse, noise=noise)).regressions("base", margin=margin)
    strict = replace(check, require_proof=True)
    (finding,) = check.findings
    region = finding.comparison.region
    beyond = finding.comparison.interval[1] > region
    assert list_findings(check)[0].startswith("❌" if finding.fails else "⚠" if beyond else "✅")
    assert (strict.exit_code is ExitCode.SUCCESS) == (not beyond and not finding.fails)
    assert check.exit_code is (ExitCode.REGRESSION if finding.fails else ExitCode.SUCCESS)


def test_the_direction_of_the_metric_counts():
    higher = collection(scores(0.1, metric="accuracy", task=Task.BINARY)).regressions("base")
    assert higher.passed
    assert collection(scores(-0.1, metric="accuracy", task=Task.BINARY)).regressions("base").regressions


def test_the_verdict_is_the_one_that_the_table_shows():
    for worse in np.linspace(0.0, 0.03, 13):
        run = collection(scores(float(worse)))
        (pair,) = build_tables(run).tables[0].pairs
        flipped = {"better": "worse", "worse": "better"}.get(pair.verdict, pair.verdict)
        assert run.regressions("base").findings[0].verdict == flipped
        assert run.regressions("head").findings[0].verdict == pair.verdict


def test_over_many_benchmarks_a_verdict_must_hold_among_all_of_them():
    """A difference that one benchmark alone would call worse is chance among forty, and is told as such."""
    weak = scores(0.006)
    assert collection(weak).regressions("base").exit_code is ExitCode.REGRESSION
    others = [item for n in range(40) for item in scores(0.001 * (-1) ** n, configs=(f"other{n}/gbdt",))]
    check = collection([*weak, *others]).regressions("base")
    assert check.passed
    assert not check.proven
    alone = [finding for finding in check.findings if finding.alone]
    assert [finding.benchmark for finding in alone] == ["toy/gbdt"]
    assert alone[0].p_family > 0.05 > alone[0].comparison.p_value
    assert "1 worse on its own only" in list_findings(check)[0]
    assert any("worse on its own, but not among 41 comparisons" in line for line in list_findings(check))
    assert [line.partition("::toy")[0] for line in annotate_verdict(check)] == [
        "::warning title=boosters-eval Suspicious"
    ]


def test_a_failed_cell_is_never_a_pass():
    kept = [item for item in scores() if (item.library, item.seed) != ("head", 42)]
    check = collection(kept, [error(library="head")]).regressions("base")
    assert check.exit_code is ExitCode.EXECUTION_ERROR
    assert "1 of 5 cells of head failed" in "\n".join(list_findings(check))


def test_a_regression_outranks_a_failed_cell():
    kept = [item for item in scores(0.1) if (item.library, item.seed) != ("head", 42)]
    check = collection(kept, [error(library="head")]).regressions("base")
    assert check.exit_code is ExitCode.REGRESSION


@pytest.mark.parametrize(
    ("outcomes", "absent", "told"),
    [
        (lambda: [r for r in scores() if r.library == "base"], {}, "nothing was compared"),
        (
            lambda: scores(seeds=1),
            {},
            "One split only",
        ),
        (
            lambda: [r for r in scores() if (r.library == "base") == (r.seed == 42)],
            {},
            "share no split",
        ),
        (
            scores,
            {"unavailable": [absence(Unavailable, "toy/gbdt", "catboost", "not installed.")]},
            "catboost is unavailable: not installed",
        ),
        (
            lambda: scores(configs=("toy/gbdt",)),
            {"unsupported": [absence(Unsupported, "toy/gbdt", "other", "no such booster.")]},
            "other has no cells: no such booster",
        ),
        (
            lambda: [r.model_copy(update={"metrics": {}}) if r == scores()[-1] else r for r in scores()],
            {},
            "head lacks 1 value that the other one has",
        ),
    ],
)
def test_what_was_not_compared_is_never_a_pass(outcomes, absent, told):
    check = collection(outcomes(), **absent).regressions("base")
    assert check.exit_code is ExitCode.EXECUTION_ERROR
    assert told in "\n".join(list_findings(check))
    assert annotate_verdict(check)[0].startswith("::error title=boosters-eval Not checked::")


def test_a_benchmark_that_lacks_the_named_competitor_has_no_answer():
    run = collection([*scores(), *(result("b/gbdt", "head", seed) for seed in (1, 2))])
    assert run.regressions("base").unanswered[0].missing == "base has no cells"


@pytest.mark.parametrize("failed", [("base", "head"), ("base",), ("head",)])
def test_a_benchmark_that_nobody_finished_is_never_a_pass(failed):
    """Not even where the competitor that did not fail cannot do it, so that no row is left to compare."""
    unable = [absence(Unsupported, "b/gbdt", n, "no.") for n in ("base", "head") if n not in failed]
    run = collection(scores(), [error("b/gbdt", name) for name in failed], unsupported=unable)
    check = run.regressions("base")
    assert check.exit_code is ExitCode.EXECUTION_ERROR
    assert [(finding.benchmark, finding.rival) for finding in check.unanswered] == [("b/gbdt", "head")]


def test_a_benchmark_that_no_competitor_supports_passes_but_is_told():
    unable = [absence(Unsupported, "b/gbdt", name, "no trees.") for name in ("base", "head")]
    check = collection(scores(), unsupported=unable).regressions("base")
    assert check.passed
    assert list_findings(check)[-2:] == ["Not compared, because no competitor supports it:", "  b/gbdt: no trees"]
    assert AgainstDocument.of(check, None).skipped == ("b/gbdt: no trees",)


def test_missing_outcomes_and_flaky_cells_are_never_a_pass():
    assert not remember(collection(scores()), n_cells=11, n_missing=1).regressions("base").passed
    flaky = [item.model_copy(update={"failed_before": 1}) for item in scores()]
    assert not collection(flaky).regressions("base").passed


def test_an_unfinished_attempt_is_never_a_pass():
    check = remember(collection(scores()), unfinished_attempt=2).regressions("base")
    assert check.exit_code is ExitCode.EXECUTION_ERROR
    assert check.problems == ("attempt 2 of the run is unfinished",)


def test_in_timing_mode_a_slower_competitor_fails():
    check = collection(timed(1.2)).regressions("base")
    assert [finding.quantity for finding in check.regressions] == ["training time"]
    assert check.exit_code is ExitCode.REGRESSION
    assert collection(timed(0.8)).regressions("base").passed
    assert collection(timed(1.0)).regressions("base").passed


def test_without_timing_mode_times_are_not_judged():
    slow = [item.model_copy(update={"timing_mode": False}) for item in timed(3.0)]
    check = collection(slow).regressions("base")
    assert check.passed
    assert [finding.metric for finding in check.findings] == ["rmse"]


def test_times_of_a_busy_machine_are_no_answer():
    check = collection(timed(1.0, taken=0.5)).regressions("base")
    assert check.exit_code is ExitCode.EXECUTION_ERROR
    assert {finding.missing for finding in check.unanswered} == {"times are not judged: the machine was busy"}


def test_a_name_that_is_no_competitor_is_refused_with_a_suggestion():
    with pytest.raises(UnknownNameError, match=r"Unknown competitor 'bsae'\. Did you mean 'base'"):
        collection(scores()).regressions("bsae")


def test_a_build_against_itself_is_told_by_its_predictions():
    same = [item.model_copy(update={"predictions_digest": f"{item.seed:032x}"}) for item in scores(noise=0.0)]
    check = collection(same).regressions("base")
    assert check.exit_code == 0
    assert tell_verdict(check).endswith("(1 equivalent, all predictions identical)")
    assert "identical" not in tell_verdict(collection(scores(0.0001)).regressions("base"))


def test_variants_are_named_like_their_rows():
    rows = [
        item.model_copy(update={"library": "xgboost", "variant": item.library, "config_name": f"toy/{item.library}"})
        for item in scores(0.1)
    ]
    check = collection(rows).regressions("xgboost base")
    assert [finding.rival for finding in check.regressions] == ["xgboost head"]


def test_the_document_says_what_the_check_says():
    check = collection(timed(1.2)).regressions("base")
    written = json.loads(AgainstDocument.of(check, "abc").to_json())
    assert (written["exit_code"], written["against"], written["n_tests"]) == (1, "base", 1)
    assert [item["fails"] for item in written["comparisons"]] == [False, True, False]
    assert written["answer"].startswith("head is worse than base")
    assert (written["outcome"], written["margin"], written["require_proof"]) == ("worse", ["1%"], False)
    assert [item["outcome"] for item in written["comparisons"]] == ["not worse", "worse", "not worse"]
    assert [item["loss"] > 0.2 for item in written["comparisons"]] == [False, True, False]
    assert "| toy/gbdt  | head       | training time   | +20.0 %" in render_verdict(check)


def family(rng, benchmarks):
    """One A/A pull request: equal learners on several data sets, five splits each."""
    out = []
    for number in range(benchmarks):
        a, b = equal_regressions(rng, 5)["rmse"]
        for index, pair in enumerate(zip(a, b, strict=True)):
            sizes = {"n_train": 400, "n_valid": round(400 * RATIO)}
            out += [
                result(f"d{number}/gbdt", name, index, float(value), **sizes)
                for name, value in zip(("base", "head"), pair, strict=True)
            ]
    return collection(out)


def failures(benchmarks, tries, seed):
    rng = np.random.default_rng(seed)
    checks = [family(rng, benchmarks).regressions("base") for _ in range(tries)]
    plain = sum(any(finding.verdict == "worse" for finding in check.findings) for check in checks)
    return sum(check.exit_code is ExitCode.REGRESSION for check in checks), plain


def test_an_a_a_pull_request_over_ten_benchmarks_seldom_fails():
    held, plain = failures(10, 60, seed=6)
    assert held <= 3
    assert plain >= 6  # as the verdicts of the tables alone would have failed it


@pytest.mark.slow
@pytest.mark.parametrize("benchmarks", [1, 5, 20])
def test_an_a_a_pull_request_fails_in_at_most_five_percent(benchmarks, simulated):
    tries = 1000
    held, plain = failures(benchmarks, tries, seed=100 + benchmarks)
    section = "A pull request that changes nothing fails (--against)"
    of = f"{benchmarks} benchmark{'' if benchmarks == 1 else 's'}, 5 splits"
    simulated(section, f"{of}: any table says worse", plain, tries, "none")
    assert simulated(section, f"{of}: exit code 1", held, tries, "≤ 5 %") <= 0.05
