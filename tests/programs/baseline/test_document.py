import math
from dataclasses import replace
from functools import partial
from xml.etree import ElementTree as ET

import pytest

from boosters_eval.programs.baseline import check as judging
from boosters_eval.programs.baseline import document
from boosters_eval.programs.baseline.findings import CheckDocument, CheckRules, Status
from boosters_eval.programs.baseline.snapshot import Snapshot, make_baseline
from boosters_eval.programs.benchmark.records import RunMetadata

NAME = "tests/baselines/quick.json"
check = partial(judging.check, name=NAME)
CA, BC = "california/gbdt", "breast_cancer/gbdt"


def rows(found, **chosen):
    """The rows of the table of pairs."""
    return document.lay_out_check(found, **chosen).sections[0].blocks[0].rows


@pytest.fixture
def story(make):
    """Everything at once: regressions, a crash, a NaN, something skipped, an upgrade, something new."""
    libraries = ("boosters", "xgboost", "lightgbm", "catboost", "sklearn")
    versions = dict.fromkeys(libraries, "1.0") | {"boosters": "0.1.0", "xgboost": "3.1.2"}
    before = make.run(libraries=libraries, versions=versions)
    before.results = [r for r in before.results if (r.config_name, r.library) != (BC, "sklearn")]
    factors = {(CA, "boosters"): 1.066, (BC, "boosters"): 1.073, (BC, "xgboost"): 1.096, (CA, "sklearn"): 0.9}
    after = make.run(factors, libraries=libraries, versions={**versions, "xgboost": "3.4.1"})
    after.results = [r for r in after.results if r.library not in ("lightgbm", "catboost")]
    after.errors = [make.error(CA, "catboost", index) for index in range(3)]
    after.results += [
        make.result(BC, "catboost", i, metrics={"logloss": math.nan}, library_version="1.0") for i in range(3)
    ]
    return check(Snapshot.of_baseline(make_baseline(before)), Snapshot.of_run(after))


@pytest.fixture
def statistical(make):
    """Drift, an improvement, and two undecided regressions under the paired test."""
    run = make.run({(CA, "boosters"): 1.015, (BC, "boosters"): 0.9})
    noise = {CA: (1.055, 1.005, 1.03), BC: (1.12, 0.95, 1.03)}
    run.results = [
        make.result(r.config_name, r.library, i % 3, noise[r.config_name][i % 3]) if r.library == "xgboost" else r
        for i, r in enumerate(run.results)
    ]
    baseline = make_baseline(make.run())
    return check(Snapshot.of_baseline(baseline), Snapshot.of_run(run), CheckRules(statistical=True))


@pytest.fixture
def flaky(make):
    """Nothing is worse, but two cells of one pair finished only after failing; `allowed` of them may."""

    def checked(allowed=0):
        run = make.run(seeds=5)
        for index, tries in enumerate((2, 1, 0, 7, 1)):
            run.results[index] = run.results[index].model_copy(update={"failed_before": tries})
        return check(Snapshot.of_run(make.run(seeds=5)), Snapshot.of_run(run), CheckRules(allow_flaky=allowed))

    return checked


def test_a_regression_reads_as_in_the_rfc(story):
    lines = document.describe_check(story)
    assert lines[0] == "❌ Regression detected in 2 configs:"
    assert lines[1] == "  california/gbdt boosters: RMSE 0.4819 > baseline 0.4521 (+6.6 %, tolerance 2 %)"


def test_an_upgrade_reads_as_what_it_is(story):
    lines = document.describe_check(story)
    heading = lines.index("Libraries whose version differs from the recorded one:")
    assert (
        lines[heading + 1] == "  breast_cancer/gbdt: xgboost 3.1.2 → 3.4.1 moved log loss by +9.6 %: not your library"
    )


def drifted(make, **changes):
    """One pair that passes although it is shown to be worse, with what moved."""
    base = Snapshot.of_baseline(make_baseline(make.run()))
    found = check(base, Snapshot.of_run(make.run({(CA, "boosters"): 1.015})), CheckRules(statistical=True))
    first = replace(found.findings[0], cause=("trees 50 → 49", "leaves 800 → 780"), **changes)
    return replace(found, findings=(first, *found.findings[1:]))


def test_drift_is_in_the_verdict_line_with_what_moved(make):
    found = drifted(make)
    head = f"⚠ 1 pair shown to be worse, within tolerance; no regression against {NAME}: 4 pairs compared"
    assert document.verdict_line(found) == (
        f"{head} (tolerance 2 %, paired test): {CA} boosters (trees 50 → 49; leaves 800 → 780)"
    )
    lines = document.summarize_check(found)
    assert lines[0].startswith(head)
    assert lines[1].startswith(f"⚠ {CA} boosters: drift: RMSE 0.4589 > baseline 0.4521 (+1.5 %, tolerance 2 %)")
    assert lines[1].endswith("; moved: trees 50 → 49; leaves 800 → 780")
    assert found.exit_code == 0


def test_drift_of_what_is_not_under_test_is_no_warning(make):
    assert document.verdict_line(drifted(make, counts=False)).startswith("✅ No regression")


def test_undecided_that_passes_is_in_the_verdict_line(statistical):
    passing = replace(statistical, findings=tuple(replace(f, lenient=True) for f in statistical.findings))
    assert document.verdict_line(passing).startswith(
        "⚠ 1 pair shown to be worse, within tolerance and 2 pairs beyond tolerance, but undecided; no regression"
    )
    assert passing.exit_code == 0


def test_the_verdict_line_of_a_failure_names_the_pairs_that_fail(statistical):
    line = document.verdict_line(statistical)
    assert line == f"❌ Beyond tolerance, but undecided in 2 configs: {CA} xgboost and {BC} xgboost"
    assert len(document.summarize_check(statistical)) > 6
    first = next(finding for finding in statistical.findings if finding.fails)
    shown = replace(first, status=Status.REGRESSION)
    both = replace(statistical, findings=tuple(shown if one is first else one for one in statistical.findings))
    assert document.verdict_line(both) == (
        f"❌ Regression detected in 1 config: {CA} xgboost and {BC} xgboost (undecided)"
    )


def test_a_check_that_passes_prints_six_lines_at_most(make):
    noted = replace(drifted(make), notes=tuple(f"Note {number}." for number in range(9)))
    lines = document.summarize_check(noted)
    assert len(lines) == 6
    assert lines[-1].endswith("further remarks.")


def test_the_whole_story_reads_well(story, golden):
    golden("baseline-story.txt", "\n".join(document.describe_check(story)) + "\n")
    golden("baseline-story.md", story.to_markdown())
    golden("baseline-story.xml", document.render_junit(story))
    golden("baseline-story.annotations.txt", "\n".join(document.annotate_check(story)) + "\n")


def test_the_statistical_story_reads_well(statistical, golden):
    golden("baseline-statistical.txt", "\n".join(document.describe_check(statistical)) + "\n")
    golden("baseline-statistical.md", statistical.to_markdown())
    golden("baseline-statistical.xml", document.render_junit(statistical))
    golden("baseline-statistical.annotations.txt", "\n".join(document.annotate_check(statistical)) + "\n")
    golden("baseline-statistical.json", statistical.to_json())


FLAKY = "cells 42 after 2 failures, 1379 after 1 failure, 4053 after 7 failures and 1 more"


def test_what_a_heading_says_its_lines_do_not_repeat(story, statistical):
    for found in (story, statistical):
        said = []
        for line in document.describe_check(found):
            if line.startswith("  "):
                assert not any(f": {word}" in line for word in said), line
            else:
                said = [status.value for status in Status if status.value in line.lower()]


def test_a_pair_that_fails_is_not_told_again_for_its_flaky_cells(make):
    run = make.run({"boosters": 1.1}, seeds=5)
    for result in run.results:
        result.__dict__["failed_before"] = 1 if result.library == "boosters" else 0
    found = check(Snapshot.of_run(make.run(seeds=5)), Snapshot.of_run(run))
    told = document.describe_check(found)
    assert len([line for line in told if line.startswith("  california/gbdt boosters")]) == 1
    assert "❌ 10 flaky cells (0 allowed; allow_flaky=10 accepts them)" in told


def test_flaky_cells_are_told_in_every_rendering(flaky):
    found = flaky()
    assert document.describe_check(found) == [
        f"❌ 4 flaky cells; no regression against {NAME}: 4 pairs compared (tolerance 2 %)",
        "❌ 4 flaky cells (0 allowed; allow_flaky=4 accepts them):",
        f"  california/gbdt boosters: {FLAKY}",
    ]
    assert FLAKY in found.to_markdown()
    assert [row[-1].text for row in rows(found, everything=False)] == ["❌ same, flaky"]
    assert [line[:33] for line in document.annotate_check(found)] == ["::error title=boosters-eval Flaky"]
    suite = ET.fromstring(document.render_junit(found)).find("testsuite")
    assert suite.get("errors") == "1"
    assert suite.find("testcase/error").get("type") == "flaky"
    assert suite.find("testcase/error").get("message").endswith(f"; flaky: {FLAKY}")
    data = found.to_model()
    assert (data.exit_code, data.n_flaky) == (2, 4)
    assert data.pairs[0].flaky == {"42": 2, "1379": 1, "4053": 7, "5390": 1}


def test_flaky_cells_that_are_allowed_are_told_too(flaky):
    found = flaky(allowed=4)
    assert document.describe_check(found) == [
        f"✅ No regression against {NAME}: 4 pairs compared (tolerance 2 %)",
        "⚠ 4 flaky cells (4 allowed):",
        f"  california/gbdt boosters: {FLAKY}",
    ]
    assert [row[-1].text for row in rows(found, everything=False)] == ["✅ same, flaky"]
    assert [line[:35] for line in document.annotate_check(found)] == ["::warning title=boosters-eval Flaky"]
    suite = ET.fromstring(document.render_junit(found)).find("testsuite")
    assert suite.get("errors") == "0"
    assert suite.find("testcase/system-out").text.endswith(FLAKY)


def test_a_document_is_read_back_as_it_was_written(story, statistical, flaky):
    for found in (story, statistical, flaky()):
        assert CheckDocument.model_validate_json(found.to_json()) == found.to_model()


def test_recorded_seeds_that_were_not_run_are_the_first_thing_to_try(make):
    run = make.run()
    run.results = [
        make.result(r.config_name, r.library, i % 3, (1.055, 1.005, 1.03)[i % 3]) for i, r in enumerate(run.results)
    ]
    rules = CheckRules(statistical=True, seeds=3)
    lines = document.describe_check(check(Snapshot.of_run(make.run(seeds=5)), Snapshot.of_run(run), rules))
    command = f"boosters-eval baseline check {NAME} --statistical --seeds auto"
    assert lines[-1] == f"Note: '{command}' adds recorded seeds until it is decided."


def test_a_pass_is_one_line(make):
    found = check(Snapshot.of_run(make.run()), Snapshot.of_run(make.run()))
    assert document.describe_check(found) == [f"✅ No regression against {NAME}: 4 pairs compared (tolerance 2 %)"]
    assert document.annotate_check(found) == []


def test_a_check_without_an_answer_does_not_look_like_a_pass(make):
    found = check(Snapshot.of_run(make.run()), Snapshot.of_run(make.run(libraries=("boosters",))))
    assert document.describe_check(found)[0] == f"❌ Not checked against {NAME}: 2 pairs without an answer:"


def test_what_counts_for_nothing_is_not_called_a_pass(make):
    rules = CheckRules(under_test=("xgboost",), only_libraries=("boosters",))
    found = check(Snapshot.of_run(make.run()), Snapshot.of_run(make.run(libraries=("boosters",))), rules)
    assert document.describe_check(found)[0].startswith("❌ Nothing that counts was compared")


@pytest.mark.parametrize(
    ("factor", "said"), [(0.9798, "-2.02 %"), (1.0199, "+1.99 %"), (1.02001, "+2.001 %"), (1.021, "+2.1 %")]
)
def test_a_change_never_looks_like_the_tolerance_that_it_is_not(make, factor, said):
    found = check(Snapshot.of_run(make.run()), Snapshot.of_run(make.run({"boosters": factor})))
    assert f"({said}, tolerance 2 %)" in document.describe_pair(found.findings[0])
    assert rows(found)[0][5].text == said


def test_cells_that_failed_are_told_even_when_nothing_that_counts_is_worse(make):
    run = make.run(libraries=("boosters",), metadata=RunMetadata(n_missing=1))
    run.errors = [make.error(config, "xgboost") for config in (CA, BC)]
    run.results += [make.result(config, "xgboost", i) for config in (CA, BC) for i in (1, 2)]
    found = check(Snapshot.of_run(make.run()), Snapshot.of_run(run), CheckRules(under_test=("boosters",)))
    crash = "cell 42: WorkerDied in fit, SIGSEGV: killed by SIGSEGV"
    assert document.describe_check(found) == [
        f"❌ 3 cells failed or did not run; no regression against {NAME}: 2 pairs compared (tolerance 2 %)",
        f"  california/gbdt xgboost: crashed, {crash} (baseline RMSE 0.4521)",
        f"  breast_cancer/gbdt xgboost: crashed, {crash} (baseline Log loss 0.1150)",
        "  1 cell of the plan without an outcome",
    ]
    assert [line[:34] for line in document.annotate_check(found)] == ["::error title=boosters-eval Failed"] * 2
    suite = ET.fromstring(document.render_junit(found)).find("testsuite")
    assert [case.get("name") for case in suite if case.find("error") is not None] == ["xgboost"] * 2


def test_failed_cells_have_a_heading_of_their_own_beside_a_regression(make):
    run = make.run({"boosters": 1.1})
    run.errors = [make.error(CA, "lightgbm", i) for i in range(3)]
    lines = document.describe_check(check(Snapshot.of_run(make.run()), Snapshot.of_run(run)))
    heading = lines.index("❌ 3 cells failed or did not run:")
    assert lines[heading + 1].startswith("  california/gbdt lightgbm: crashed, cell 42")


def test_a_crash_of_an_upgraded_competitor_is_not_put_at_the_user_s_door(make):
    run = make.run(versions={"xgboost": "3.4.1"})
    run.results = [r for r in run.results if (r.config_name, r.library) != (CA, "xgboost")]
    run.errors = [make.error(CA, "xgboost", i) for i in range(3)]
    lines = document.describe_check(check(Snapshot.of_run(make.run()), Snapshot.of_run(run)))
    assert lines[0].startswith("❌ 3 cells failed")
    assert lines[1].endswith("(xgboost 3.1.2 → 3.4.1: not your library)")


def test_a_remark_is_told_of_pairs_that_hold_too(make):
    rules = CheckRules(seeds=2)
    found = check(Snapshot.of_run(make.run(seeds=3)), Snapshot.of_run(make.run(seeds=2)), rules)
    lines = document.describe_check(found)
    assert lines[1] == "Within tolerance, with a remark:"
    assert all(line.endswith("(over 2 of the 3 recorded seeds)") for line in lines[2:])
    assert len(lines) == 6


def test_a_home_library_of_another_version_is_said_to_count(make):
    found = check(Snapshot.of_run(make.run()), Snapshot.of_run(make.run(versions={"boosters": "0.2.0"})))
    assert document.describe_check(found)[1] == "Note: boosters 0.1.0 → 0.2.0 is under test: every change of it counts."


def test_numbers_that_differ_never_look_alike(make):
    rules = CheckRules(tolerance=0)
    found = check(Snapshot.of_run(make.run()), Snapshot.of_run(make.run({"boosters": 1.000004})), rules)
    line = document.describe_check(found)[1]
    new, old = line.split("RMSE ")[1].split(" (")[0].split(" > baseline ")
    assert new != old
    assert "+0.0004 %" in line


def test_a_change_from_zero_has_no_percentage(make):
    def scored(value):
        run = make.run()
        run.results = [r.model_copy(update={"metrics": {r.primary_metric: value}}) for r in run.results]
        return Snapshot.of_run(run)

    assert (
        "RMSE 0.01000 > baseline 0 (from 0, tolerance 2 %)"
        in document.describe_check(check(scored(0.0), scored(0.01)))[1]
    )


def test_junit_counts_each_pair_once(story):
    suite = ET.fromstring(document.render_junit(story)).find("testsuite")
    cases = suite.findall("testcase")
    assert int(suite.get("tests")) == len(cases) == len(story.findings)
    assert int(suite.get("failures")) == len(suite.findall("testcase/failure")) == len(story.regressions)
    assert int(suite.get("errors")) == len(suite.findall("testcase/error")) == len(story.unanswered)
    assert int(suite.get("skipped")) == len(suite.findall("testcase/skipped")) == 1


def test_names_from_users_are_data_in_every_rendering(make):
    name = 'x<script>|**b**::error::\x1b[31m\n"'

    def renamed(factor):
        run = make.run({"boosters": factor})
        run.results = [r.model_copy(update={"config_name": r.config_name + name}) for r in run.results]
        return Snapshot.of_run(run)

    found = check(renamed(1.0), renamed(1.1))
    assert "\x1b" not in "".join(document.describe_check(found))
    assert all("\n" not in line for line in document.describe_check(found))
    assert "<script>" not in found.to_markdown()
    ET.fromstring(document.render_junit(found))
    assert all(
        line.startswith("::error title=boosters-eval ") and "\n" not in line for line in document.annotate_check(found)
    )


def test_a_flood_of_findings_is_counted_not_annotated(make):
    def many(factor):
        run = make.run({"boosters": factor}, configs=(CA,), libraries=("boosters",))
        run.results = [r.model_copy(update={"config_name": f"{CA}-{i}"}) for r in run.results for i in range(30)]
        return Snapshot.of_run(run)

    commands = document.annotate_check(check(many(1.0), many(1.1)))
    assert len(commands) == 10
    assert "21 further findings are in the job summary" in commands[-1]


def test_a_regression_that_may_pass_is_a_warning_on_github(story):
    passing = replace(story, rules=story.rules.replace(fail_on_regression=False))
    assert next(c for c in document.annotate_check(passing) if "Regression" in c).startswith("::warning")


def test_rows_without_changes_can_be_left_out(story):
    assert len(rows(story)) == len(story.findings)
    assert not any("same" in row[-1].text for row in rows(story, everything=False))


def test_an_upgraded_library_under_test_is_never_called_somebody_else_s(make):
    """A pair that is new does not count, but the library's other pairs do."""
    before = make_baseline(make.run(configs=(CA,)))
    after = make.run({CA: 1.1, BC: 1.1}, versions={"boosters": "0.2.0"})
    found = check(Snapshot.of_baseline(before), Snapshot.of_run(after))
    assert {finding.counts for finding in found.findings if finding.library == "boosters"} == {True, False}
    assert not [
        line for line in document.describe_check(found) if "boosters 0.1.0" in line and "under test" not in line
    ]


def test_advice_names_as_many_seeds_as_the_hardest_pair_needs(make):
    noise = {CA: (1.055, 1.005, 1.03), BC: (1.05, 1.015, 1.03)}
    run = make.run()
    run.results = [
        make.result(r.config_name, r.library, i % 3, noise[r.config_name][i % 3]) if r.library == "xgboost" else r
        for i, r in enumerate(run.results)
    ]
    baseline = Snapshot.of_baseline(make_baseline(make.run()))
    found = check(baseline, Snapshot.of_run(run), CheckRules(statistical=True))
    needed = [finding.seeds_needed for finding in found.undecided]
    assert len(set(needed)) == 2
    (told,) = [line for line in document.describe_check(found) if "would decide; with" in line]
    assert f"and {max(needed)} would decide" in told


def test_what_became_of_each_pair_is_told_to_pytest(story):
    assert story.outcome(CA, "boosters") == ("failed", document.describe_pair(story.regressions[0]))
    assert story.outcome(CA, "nobody") == ("failed", "california/gbdt nobody: it was not run")
    assert story.outcome(BC, "sklearn") == ("skipped", "breast_cancer/gbdt sklearn: new, no baseline")
    passed, told = story.outcome(CA, "xgboost")
    assert (passed, told) == (
        "passed",
        "california/gbdt xgboost: same: RMSE 0.4521 = baseline 0.4521 (0 %, tolerance 2 %)",
    )


def test_a_pair_without_a_value_has_no_cells(story):
    cells = {(pair.config, pair.library): pair.n for pair in story.to_model().pairs}
    assert (cells[CA, "lightgbm"], cells[CA, "catboost"], cells[CA, "boosters"]) == (0, 0, 3)


def test_the_page_sets_the_pairs_as_measurements_not_as_settings(story):
    assert story.to_html().count('class="sortable narrow"') == 1


def test_a_failed_check_names_the_next_step(make):
    before = Snapshot.of_baseline(make_baseline(make.run()))
    worse = check(before, Snapshot.of_run(make.run({"boosters": 1.1}, versions={"boosters": "0.2.0"})))
    record = f"boosters-eval baseline record {NAME} --suite quick"
    assert document.describe_check(worse)[-1].startswith("Note: boosters 0.1.0 → 0.2.0 is under test")
    other = make.run()
    other.results = [one.model_copy(update={"data_digest": "f" * 64}) for one in other.results]
    changed = f"Note: Where data or splits have changed on purpose, record a new baseline: '{record}'."
    assert document.describe_check(check(before, Snapshot.of_run(other)))[-1] == changed
    fewer = document.describe_check(check(before, Snapshot.of_run(make.run(libraries=("boosters",)))))
    assert fewer[-1] == "Note: To check only some libraries, name them with 'libraries'."
    unchanged = document.describe_check(check(before, Snapshot.of_run(make.run())))
    assert not any("Note" in line for line in unchanged)
