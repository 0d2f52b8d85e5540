import hashlib
import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import factories
from boosters_eval import decide_gate, load_run
from boosters_eval import verify_decision as verify
from boosters_eval.core.errors import (
    BoostersEvalError,
    ConfigError,
    ExitCode,
    FileFormatError,
    RunError,
    UnknownNameError,
)
from boosters_eval.engine.cell import Build, Failure
from boosters_eval.engine.facts import RunFacts
from boosters_eval.engine.folder import RunFolder
from boosters_eval.engine.plan import CellRef, Plan
from boosters_eval.metrics.task import Task
from boosters_eval.programs.baseline.model import save_baseline
from boosters_eval.programs.baseline.snapshot import make_baseline
from boosters_eval.programs.benchmark.records import Unsupported
from boosters_eval.programs.benchmark.results import ResultCollection
from boosters_eval.programs.gate.cases import measure_retained, read_references, read_scores, score_run
from boosters_eval.programs.gate.decision import (
    _decide_run,
    _decision,
    decide_run,
    decide_scores,
    describe_verification,
    find_default_path,
    is_decision,
    make_report,
    verify_decision,
)
from boosters_eval.programs.gate.model import Case, Coverage, GateError, GateRules, ScoresSource
from boosters_eval.programs.gate.request import TIERS, VOUCHED, GateRequest
from boosters_eval.reports.markdown import render_markdown
from boosters_eval.runners.parameters import TrainingConfig
from boosters_eval.stats.bootstrap import compute_lower_bound_95, vouched_threshold
from written_runs import fit_spec

SEEDS = (42, 1379)
METRIC = {"reg": "rmse", "bin": "auc", **{f"d{index}": "rmse" for index in range(10)}}
FIVE = ["bin", "d0", "d1", "d2", "d3"]
V1 = Path(__file__).parents[2] / "fixtures" / "baseline_v1.json"


def plan(datasets=tuple(METRIC), seeds=SEEDS, tag="digest"):
    configs = tuple(
        fit_spec(
            name,
            data_digest=f"data-{name}",
            task=Task.BINARY if name == "bin" else Task.REGRESSION,
            training=TrainingConfig(),
            primary_metric=METRIC[name],
        )
        for name in datasets
    )
    refs = tuple(
        CellRef(i, library, seed, None)
        for i in range(len(configs))
        for library in ("boosters", "other")
        for seed in seeds
    )
    builds = {name: Build(version="1.0", digest=tag) for name in ("boosters", "other")}
    return Plan(name="toy", specs=configs, refs=refs, builds={"fit": builds})


def outcome(cell, factor=1.0, **fields):
    value = (0.9 if cell.spec.dataset == "bin" else 0.5) * (1 + 0.001 * SEEDS.index(cell.repeat.seed))
    value = value * factor if cell.spec.dataset == "bin" else value / factor
    return factories.result(
        cell.spec.name,
        cell.target.name,
        cell.repeat.seed,
        value,
        metric=cell.spec.primary_metric,
        task=cell.spec.task,
        split_digest=hashlib.sha256(f"{cell.spec.name}{cell.repeat.seed}".encode()).hexdigest(),
        data_digest=hashlib.sha256(cell.spec.data_digest.encode()).hexdigest(),
        **fields,
    )


def error(cell):
    return Failure.of(cell, error_type="Crash", error_message="killed by SIGSEGV.", phase="fit", signal="SIGSEGV")


def record(home, made, judge=outcome, *, seal=True, at="2025-01-01T00:00:00+00:00", facts=None):
    """A journal as the engine writes it."""
    folder = RunFolder.of(made, home)
    journal, attempt = folder.open(new=True)
    folder.write_facts(attempt, facts or RunFacts())
    journal.begin({"run_id": made.run_id, "attempt": attempt, "at": at, **folder.digests(attempt)})
    written = [found for cell in made.cells if (found := judge(cell)) is not None]
    for found in written:
        journal.append(found, "fit")
    if seal:
        journal.seal(len(written))
    journal.close()
    return made.run_id


def loss(factor):
    """boosters keeps this share of its quality, other stays as it was."""
    return lambda cell: outcome(cell, factor if cell.target.name == "boosters" else 1.0)


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
def baseline(home, tmp_path):
    run_id = record(home, plan(tag="old"))
    path = tmp_path / "baseline.json"
    save_baseline(make_baseline(load_run(run_id, home)), path)
    return path


def rules(**changes):
    """Rules that look at the bound alone; a test adds what its story is about."""
    return GateRules(**{"threshold": 0.98, "held_out": False, "low_coverage": True, **changes})


def decide(home, baseline, judge=outcome, changed=None, **options):
    run_id = record(home, changed or plan(), judge)
    return decide_run(run_id, baseline, options.pop("rules", rules()), home=home, **options)


@pytest.mark.parametrize(
    ("before", "now", "higher", "kept"),
    [
        (0.5, 0.5, False, 1.0),
        (0.5, 0.4, False, 1.0),
        (0.5, 1.0, False, 0.5),
        (0.8, 0.4, True, 0.5),
        (0.8, 0.9, True, 1.0),
        (0.0, 0.0, False, 1.0),
        (0.0, 0.1, False, 0.0),
        (0.1, 0.0, False, 1.0),
        (0.5, -0.1, True, 0.0),
        (-0.2, -0.1, True, 1.0),
        (-0.1, -0.2, True, 0.0),
        (-2.0, -1.0, False, 0.0),
        (0.0, 0.0, True, 1.0),
    ],
)
def test_the_score_is_the_quality_retained(before, now, higher, kept):
    assert measure_retained(before, now, higher_is_better=higher) == kept


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.booleans())
def test_the_score_is_in_the_unit_interval_and_1_only_without_loss(before, now, higher):
    score = measure_retained(before, now, higher_is_better=higher)
    assert 0 <= score <= 1
    better = now >= before if higher else now <= before
    assert better <= (score == 1.0)


def test_an_unchanged_run_is_promoted(home, baseline):
    decision = decide(home, baseline)
    assert decision.promoted
    assert (decision.report.n_units, decision.report.n_cases) == (12, 24)
    assert decision.report.lower_bound_95 == 1.0
    assert decision.report.versions["boosters"] == "1.0"


def test_cases_are_cells_of_the_library_under_test_sorted_by_id(home, baseline):
    report = decide(home, baseline, loss(0.97)).report
    ids = [case.case_id for case in report.per_case]
    assert ids == sorted(f"{name}/gbdt|{seed}" for name in METRIC for seed in SEEDS)
    assert [case.score for case in report.per_case] == pytest.approx([0.97] * 24)
    assert report.mean_score == pytest.approx(0.97)


def test_a_loss_beyond_the_threshold_is_held(home, baseline):
    decision = decide(home, baseline, loss(0.97))
    assert not decision.promoted
    assert decision.objections == ("The lower bound 0.9700 is below the threshold 0.98.",)
    assert decide(home, baseline, loss(0.99), plan(tag="b")).promoted


def test_the_bound_is_that_of_the_ordered_scores_and_the_runs_id(home, baseline):
    names = list(METRIC)

    def uneven(cell):
        return outcome(cell, 1 - 0.01 * names.index(cell.spec.dataset) - 0.002 * SEEDS.index(cell.repeat.seed))

    decision = decide(home, baseline, uneven)
    units = decision.report.per_unit
    assert units["d9"] == pytest.approx(1 - 0.11 - 0.001)
    scores = sorted(units.values())
    assert decision.report.lower_bound_95 == compute_lower_bound_95(scores, run_id=decision.source.run_id)
    assert 0 < decision.report.lower_bound_95 < decision.report.mean_score
    assert decision.report.stddev == pytest.approx(
        math.sqrt(sum((s - decision.report.mean_score) ** 2 for s in scores) / 11)
    )


def test_the_mean_does_not_matter_to_the_gate():
    assert "mean" not in GateRules.objections.__code__.co_varnames
    assert "stddev" not in GateRules.objections.__code__.co_varnames
    report = make_report(factories.cases(*[1.0] * 19, 0.6), run_id="deadbeef")
    assert report.mean_score >= 0.98 > report.lower_bound_95


def test_a_failed_cell_scores_zero_with_its_reason(home, baseline):
    def crash(cell):
        return error(cell) if cell.target.name == "boosters" and cell.repeat.seed == 42 else outcome(cell)

    report = decide(home, baseline, crash).report
    zero = [(case.case_id, case.reason) for case in report.per_case if case.score == 0]
    assert zero == [(f"{name}/gbdt|42", "failed: Crash in fit") for name in sorted(METRIC)]
    assert set(report.per_unit.values()) == {0.5}


def test_a_failure_of_another_library_does_not_matter(home, baseline):
    assert decide(home, baseline, lambda cell: error(cell) if cell.target.name == "other" else outcome(cell)).promoted


def test_leaving_out_a_data_set_or_a_seed_does_not_help(home, baseline):
    fewer = decide(home, baseline, changed=plan(datasets=("reg",)))
    assert sum(score == 0 for score in fewer.report.per_unit.values()) == 11
    assert {case.reason for case in fewer.report.per_case if case.score == 0} == {"missing: the run has no such cell"}
    assert not fewer.promoted
    once = decide(home, baseline, changed=plan(seeds=SEEDS[:1])).report
    assert (once.n_cases, set(once.per_unit.values())) == (24, {0.5})


def test_a_score_that_is_no_number_counts_as_zero(baseline):
    def broken(cell):
        result = outcome(cell)
        value = float("nan") if cell.repeat.seed == 42 else float("inf")
        return result if cell.repeat.seed not in (42, 1379) else result.model_copy(update={"metrics": {"rmse": value}})

    references, *_ = read_references(baseline, "boosters")
    cases, _ = score_run(ResultCollection(map(broken, plan(("reg", "bin")).cells)), "boosters", references)
    cases = [case for case in cases if case.dataset in ("reg", "bin")]
    reasons = {case.case_id: case.reason for case in cases if case.score == 0}
    assert reasons == {
        "bin/gbdt|1379": "no score: auc is absent",
        "bin/gbdt|42": "no score: auc is absent",
        "reg/gbdt|1379": "no score: rmse is inf",
        "reg/gbdt|42": "no score: rmse is nan",
    }


def test_an_unsupported_config_scores_zero_with_the_reason(home, baseline):
    run = ResultCollection([outcome(cell) for cell in plan(datasets=[name for name in METRIC if name != "bin"]).cells])
    references, *_ = read_references(baseline, "boosters")
    run.unsupported = [factories.absence(Unsupported, "bin/gbdt", "boosters", "no such objective")]
    cases, _ = score_run(run, "boosters", references)
    assert {case.reason for case in cases if case.score == 0} == {"unsupported: no such objective"}


def test_what_the_baseline_does_not_have_does_not_count_and_is_said(home, tmp_path):
    run_id = record(home, plan(datasets=("reg",), seeds=SEEDS[:1], tag="old"))
    path = tmp_path / "small.json"
    save_baseline(make_baseline(load_run(run_id, home)), path)
    report = decide(home, path).report
    assert report.n_cases == 1
    assert "reg/gbdt: 1 cell(s) of the run are not in the baseline and do not count." in report.notes
    assert "bin/gbdt: it is not in the baseline and does not count." in report.notes


@pytest.mark.parametrize("field", ["split_digest", "data_digest"])
def test_other_splits_or_data_than_the_baselines_decide_nothing(home, baseline, field):
    with pytest.raises(GateError, match="differs from the baseline's") as caught:
        decide(home, baseline, lambda cell: outcome(cell).model_copy(update={field: "f" * 64}))
    assert caught.value.exit_code == ExitCode.EXECUTION_ERROR


def test_a_results_file_serves_as_a_baseline(home, baseline, tmp_path):
    run_id = record(home, plan(tag="results"))
    path = tmp_path / "results.json"
    load_run(run_id, home).to_json(path)
    by_results = decide(home, path, loss(0.97)).report
    by_baseline = decide(home, baseline, loss(0.97)).report
    assert by_results.notes[-2] == "Not checked of the baseline: it is a results file, which names no sealed run."
    assert by_results.replace(notes=()) == by_baseline.replace(notes=())


def test_a_baseline_of_version_1_is_compared_by_its_mean(home):
    made = json.loads(V1.read_text(encoding="utf-8"))["results"]
    ours = [entry for entry in made if entry["library"] == "boosters"]
    results = [
        factories.result(
            ours[0]["config"],
            seed=seed,
            task=Task(ours[0]["task"]),
            metric=ours[0]["primary_metric"],
            value=ours[0]["metrics"][ours[0]["primary_metric"]]["mean"],
        )
        for seed in SEEDS
    ]
    references, *_ = read_references(V1, "boosters")
    cases, notes = score_run(ResultCollection(results), "boosters", references)
    scores = [case.score for case in cases if case.case_id.startswith(f"{ours[0]['config']}|")]
    assert scores == [1.0] * 2
    assert f"{ours[0]['config']}: the baseline has no seeds, each seed is compared with its mean." in notes
    absent = [case for case in cases if case.case_id.endswith("|missing")]
    assert len(absent) == len(ours) - 1
    assert all(case.score == 0 for case in absent)


def test_without_seeds_in_the_baseline_the_planned_cells_count(home, baseline, tmp_path):
    raw = json.loads(baseline.read_text(encoding="utf-8"))
    for entry in raw["results"]:
        for stats in entry["metrics"].values():
            del stats["per_seed"]
        entry["source"] = None
    raw |= {"digest": None, "sources": {}}  # as of a file that another program wrote: no run vouches for it
    path = tmp_path / "means.json"
    path.write_text(json.dumps(raw), encoding="utf-8")
    decision = decide(home, path, changed=plan(datasets=("reg", "bin")))
    assert decision.report.n_cases == 2 * 2 + 10  # the data sets that were not planned are one missing case each
    assert sum(score == 0 for score in decision.report.per_unit.values()) == 10


@pytest.mark.parametrize("first", [True, False])
def test_a_cell_twice_decides_nothing(baseline, first):
    results = [outcome(cell) for cell in plan().cells]
    results.insert(0 if first else len(results), outcome(plan().cells[0], 0.5))
    references, *_ = read_references(baseline, "boosters")
    with pytest.raises(GateError, match="The run has reg/gbdt, cell 42, more than once"):
        score_run(ResultCollection(results), "boosters", references)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda run: run.results.append(run.results[0]), "cell 42: the run has 2 outcomes for it"),
        (lambda run: run.results.pop(0), "cell 42: it was not run"),
        (lambda run: factories.remember(run, n_missing=2), "has no outcome for 2 of its cells"),
    ],
)
def test_results_with_a_hole_are_no_baseline(tmp_path, spoil, message):
    run = ResultCollection([outcome(cell) for cell in plan().cells])
    spoil(run)
    run.to_json(tmp_path / "r.json")
    with pytest.raises(GateError, match=message):
        read_references(tmp_path / "r.json", "boosters")


@pytest.mark.parametrize(
    ("then", "now", "note"),
    [
        ({"native_params": {"eta": 0.1}}, {"native_params": {"eta": 0.3}}, "parameters changed: eta 0.1 → 0.3."),
        (
            {"native_params": {"eta": 0.1}},
            {"native_params": {"eta": 0.1}, "profile": "defaults"},
            "profile parity → defaults.",
        ),
    ],
)
def test_other_parameters_than_the_baselines_hold_unless_allowed(home, tmp_path, then, now, note):
    run_id = record(home, plan(tag="old"), lambda cell: outcome(cell, **then))
    path = tmp_path / "b.json"
    save_baseline(make_baseline(load_run(run_id, home)), path)
    held = decide(home, path, lambda cell: outcome(cell, **now))
    told = "There are 12 configs with other parameters than the baseline's (or say --allow-changed-parameters)."
    assert held.objections == (told,)
    assert f"reg/gbdt: {note}" in held.report.notes
    allowed = decide(home, path, lambda cell: outcome(cell, **now), rules=rules(changed_parameters=True))
    assert allowed.promoted
    assert allowed.report.n_changed == 12
    assert verify_decision(write(home, held, tmp_path), home=home) == ""
    assert decide(home, path, lambda cell: outcome(cell, **then)).promoted


def test_parameters_that_follow_the_seed_are_compared_with_those_of_the_recorded_cell(home, tmp_path):
    def seeded(cell):
        return outcome(cell, native_params={"eta": 0.1, "rows_seed": cell.repeat.seed + 7})

    path = tmp_path / "b.json"
    save_baseline(make_baseline(load_run(record(home, plan(tag="old"), seeded), home)), path)
    backwards = plan().replace(refs=tuple(reversed(plan().refs)))
    assert decide(home, path, seeded, backwards).report.n_changed == 0


def test_only_what_is_below_the_threshold_is_listed_with_its_reason():
    cases = [*factories.cases(*[0.98] * 10), Case(case_id="bad", score=0.0, reason="failed: Crash in fit")]
    report = make_report(cases, run_id="deadbeef")
    source = ScoresSource(file="s.json", file_sha256="0" * 64)
    shown = render_markdown(_decision(report, rules(), source).document())
    (row,) = [
        line for line in shown.partition("## Below")[2].partition("## ")[0].splitlines() if line.startswith("| ")
    ][2:]
    assert "bad" in row
    assert "failed: Crash in fit" in row


def objections(scores, **changes):
    """What the rules say about cases with these scores."""
    report = make_report(factories.cases(*scores, **changes.pop("case", {})), run_id="deadbeef")
    report = report.replace(**changes.pop("report", {}))
    made = rules(**changes)
    return made.objections(report, Coverage.of(report, made.threshold))


def test_one_case_is_a_case():
    told = objections([1.0], held_out=True, threshold=0.5)
    assert told[1] == "There is 1 case; tier bronze needs 10."
    assert told[2].startswith("There are 0 held-out cases;")


def test_a_bound_that_is_just_below_the_threshold_does_not_look_like_it():
    told = objections([1.0] * 10, threshold=0.9, report={"lower_bound_95": 0.8999999})
    assert told == ("The lower bound 0.8999999 is below the threshold 0.9.",)


def test_tiers_want_their_number_of_data_sets(home, baseline):
    silver = decide(home, baseline, rules=rules(tier="silver"))
    assert silver.objections == ("There are 12 data sets; tier silver needs 30.",)
    more = decide(home, baseline, rules=rules(min_cases=13))
    assert more.objections == ("There are 12 data sets; tier bronze needs 13.",)
    assert rules(tier="gold", min_cases=3).needed == TIERS["gold"] == 100  # a file may say so, a request may not
    assert TIERS == {"bronze": 10, "silver": 30, "gold": 100}


def test_the_thresholds_that_are_suggested_are_the_highest_that_a_tier_can_vouch_for():
    vouched = {tier: vouched_threshold([1.0] * count, 0.9) for tier, count in TIERS.items()}
    assert {tier: math.floor(100 * value) / 100 for tier, value in vouched.items()} == VOUCHED
    with pytest.raises(ConfigError, match=r"^The 'threshold' parameter is required: .* 0\.92 for tier silver"):
        decide_gate(scores="s.json", tier="silver")


def test_seeds_of_one_data_set_are_one_unit(home, tmp_path):
    """Ten seeds of one data set satisfied bronze."""
    seeds = tuple(range(1, 11))

    def alike(cell):
        return factories.result(cell.spec.name, cell.target.name, cell.repeat.seed, 0.5)

    path = tmp_path / "one.json"
    run_id = record(home, plan(("reg",), seeds, tag="old"), alike)
    save_baseline(make_baseline(load_run(run_id, home)), path)
    decision = decide(home, path, alike, plan(("reg",), seeds))
    assert (decision.report.n_cases, decision.report.n_units, decision.report.lower_bound_95) == (10, 1, 0.0)
    assert "There is 1 data set; tier bronze needs 10." in decision.objections


def test_one_table_under_two_names_is_one_unit(home, tmp_path):
    def aliased(cell):
        same = {"data_digest": "a" * 64} if cell.spec.dataset in ("d0", "d1") else {}
        return outcome(cell).model_copy(update=same)

    path = tmp_path / "aliased.json"
    save_baseline(make_baseline(load_run(record(home, plan(tag="old"), aliased), home)), path)
    assert decide(home, path, aliased).report.n_units == 11


def test_the_correlation_within_data_sets_is_reported(home, baseline):
    def by_data_set(cell):
        return outcome(cell, 1 - 0.01 * list(METRIC).index(cell.spec.dataset) - 0.001 * SEEDS.index(cell.repeat.seed))

    assert decide(home, baseline, by_data_set).report.intraclass_correlation > 0.99
    assert decide(home, baseline, changed=plan(tag="b")).report.intraclass_correlation is None


def test_held_out_data_sets_are_needed_unless_waived(home, baseline):
    bare = decide(home, baseline, rules=rules(held_out=True))
    assert bare.objections == ("There are 0 held-out data sets; 5 are needed (or say --no-held-out).",)
    apart = decide(home, baseline, rules=rules(held_out=True), held_out=FIVE)
    assert apart.promoted
    assert apart.report.n_held_out == 5
    assert apart.report.lower_bound_95_held_out == 1.0
    assert {case.class_ for case in apart.report.per_case} == {"dev", "held_out"}


def test_held_out_data_sets_must_themselves_hold():
    """95 cases at 1.0 and 5 held-out ones at .75 gave gold."""
    cases = [*factories.cases(*[1.0] * 95, class_="dev")]
    cases += [Case(case_id=f"h{index}", score=0.75, class_="held_out") for index in range(5)]
    report = make_report(cases, run_id="deadbeef")
    made = rules(tier="gold", threshold=0.95, held_out=True)
    told = made.objections(report, Coverage.of(report, 0.95))
    assert told == ("The lower bound 0.7500 of the held-out cases is below the threshold 0.95.",)


def test_both_bounds_are_reported(home, baseline):
    def worse_there(cell):
        return outcome(cell, 0.9 - 0.01 * FIVE.index(cell.spec.dataset) if cell.spec.dataset in FIVE else 1.0)

    report = decide(home, baseline, worse_there, held_out=["bin/gbdt", *FIVE[1:]]).report
    assert report.lower_bound_95_held_out < report.lower_bound_95 < 1
    assert decide(home, baseline, worse_there).report.lower_bound_95_held_out is None


def test_nothing_is_said_to_be_covered_where_the_bound_misses_the_threshold():
    """The mean reaches the threshold, the bound does not: there is no promotion that few units could spoil."""
    report = make_report(factories.cases(*[1.0] * 11, 0.5), run_id="deadbeef")
    assert report.lower_bound_95 < 0.95 < report.mean_score
    coverage = Coverage.of(report, 0.95)
    assert coverage.level is None
    (told,) = rules(threshold=0.95, low_coverage=False).objections(report, coverage)
    assert told.startswith("The lower bound ")
    at_bound = Coverage.of(report, report.lower_bound_95)
    assert at_bound.level == pytest.approx(min(0.95, 1 - (report.lower_bound_95 / report.mean_score) ** 12))


def test_a_promotion_needs_data_sets_that_would_have_shown_a_rare_loss(home, baseline):
    """Twelve perfect scores say little about a crash on every fiftieth data set."""
    held = decide(home, baseline, rules=rules(low_coverage=False))
    assert held.coverage.level == pytest.approx(1 - 0.98**12)
    (told,) = held.objections
    assert told == (
        "The threshold 0.98 is too high for so few data sets: the chance that they would show a rare total loss is"
        " 22 %, and must be 90 %. They vouch for 0.825; 114 would be enough (or say --allow-low-coverage)."
    )
    allowed = decide(home, baseline)
    assert allowed.promoted
    assert allowed.coverage == held.coverage
    assert decide(home, baseline, rules=rules(low_coverage=False, threshold=0.82)).promoted


def test_a_level_that_rounds_to_the_required_one_is_shown_with_a_digit_more():
    told = Coverage(level=0.8996, vouched=0.82, needed=13).sentence(0.825, "data set")
    assert "show a rare total loss is 89.9 %, and must be 90 %." in told


@pytest.mark.parametrize("value", [1.0, 0.97, 0.4])
def test_a_lump_at_any_value_is_noted(tmp_path, value):
    scores = {f"c{index}": value if index else 0.9 for index in range(10)}
    report = decide_scores(scores_file(tmp_path, scores), rules()).report
    assert report.notes == (
        f"9 of 10 cases score {value:g}: scores that are all alike do not show how bad a rare loss is.",
    )
    spread = {f"c{index}": value - index / 100 for index in range(10)}
    assert decide_scores(scores_file(tmp_path, spread), rules()).report.notes == ()


def test_a_cell_that_failed_before_it_finished_holds_the_gate(home, baseline, tmp_path):
    def flaky(cell):
        tries = {("reg", 42): 4, ("reg", 1379): 1}.get((cell.spec.dataset, cell.repeat.seed), 0)
        return outcome(cell).model_copy(update={"failed_before": tries if cell.target.name == "boosters" else 0})

    held = decide(home, baseline, flaky)
    assert held.objections == (
        "There are 2 flaky cells: trying again until it works proves nothing (or say --allow-flaky 2).",
    )
    assert "reg/gbdt: 2 cell(s) failed up to 4 times before they finished." in held.report.notes
    assert not decide(home, baseline, flaky, rules=rules(flaky=1)).promoted
    allowed = decide(home, baseline, flaky, rules=rules(flaky=2))
    assert allowed.promoted
    assert (allowed.rules.flaky, allowed.report.n_flaky) == (2, 2)
    assert verify_decision(write(home, allowed, tmp_path), home=home) == ""
    assert decide(home, baseline, lambda cell: flaky(cell) if cell.target.name == "other" else outcome(cell)).promoted


def test_a_run_is_not_held_against_itself(home, tmp_path):
    path = tmp_path / "own.json"
    run_id = record(home, plan())
    save_baseline(make_baseline(load_run(run_id, home)), path)
    told = ("The baseline was recorded from this very run: there is nothing to compare it with.",)
    assert decide_run(run_id, path, rules(), home=home).objections == told
    load_run(run_id, home).to_json(path)
    assert decide_run(run_id, path, rules(), home=home).objections == told


def test_a_later_attempt_of_the_same_plan_is_another_run(home, tmp_path):
    path = tmp_path / "before.json"
    run_id = record(home, plan(), at="2025-01-01T00:00:00+00:00")
    save_baseline(make_baseline(load_run(run_id, home), now=factories.RECORDED_AT), path)
    record(home, plan(), at="2025-01-03T00:00:00+00:00")
    assert decide_run(run_id, path, rules(), home=home).promoted
    # What --rerun-failed begins is a later attempt, but its outcomes are those of the recorded one.
    taken_over = RunFacts(started_at="2025-01-01T00:00:00+00:00")
    record(home, plan(), at="2025-01-04T00:00:00+00:00", facts=taken_over)
    assert decide_run(run_id, path, rules(), home=home).report.of_itself


def test_a_known_metric_has_one_direction(home, baseline, tmp_path):
    """A baseline that said higher_is_better of rmse made a worse run an improvement."""
    held = decide(home, baseline, loss(0.9))
    turned = tuple(reference.replace(higher_is_better=True) for reference in held.source.references)
    path = write(home, held.replace(source=held.source.replace(references=turned)), tmp_path)
    baseline.unlink()
    with pytest.raises(GateError, match="rmse has another direction than it has: lower is better"):
        verify_decision(path, home=home)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (list(METRIC), "Some data sets must not be held out, to hold the others against. Got all as held out."),
        (["reg/gbdt"], "A data set must be held out whole. Got 'reg', of which only some cases are."),
    ],
)
def test_what_is_held_out_must_make_sense(home, tmp_path, names, message):
    two = plan().replace(specs=(*plan().specs, plan().specs[0].replace(name="reg/gblinear")))
    two = two.replace(refs=(*two.refs, *(CellRef(len(METRIC), "boosters", seed, None) for seed in SEEDS)))
    path = tmp_path / "two.json"
    save_baseline(make_baseline(load_run(record(home, two), home)), path)
    with pytest.raises(ConfigError, match=message):
        decide(home, path, changed=two, held_out=names)


def test_a_held_out_name_must_exist(home, baseline):
    with pytest.raises(UnknownNameError, match="held-out config or data set 'bim'"):
        decide(home, baseline, held_out=["bim"])


def test_names_are_known_whatever_their_case(home, baseline):
    said, exact = (
        decide(home, baseline, library=library, held_out=held_out, rules=rules(held_out=True))
        for library, held_out in (("Boosters", ["BIN", "Reg/Gbdt"]), ("boosters", ["bin", "reg/gbdt"]))
    )
    assert said.report == exact.report
    assert said.source.library == "boosters"


def test_a_baseline_that_is_none_is_told(home, tmp_path):
    path = tmp_path / "broken.json"
    path.write_text("{", encoding="utf-8")
    with pytest.raises(FileFormatError, match="is not JSON"):
        decide(home, path)


def test_unknown_libraries_are_told(home, baseline):
    with pytest.raises(ConfigError, match="has no results for 'xgboost', only for boosters, other"):
        decide(home, baseline, library="xgboost")
    references, *_ = read_references(baseline, "boosters")
    with pytest.raises(UnknownNameError, match="library of the run"):
        score_run(ResultCollection(), "boosters", references)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tier": "silber"}, "'tier' parameter of GateRules must be"),
        ({"threshold": 1.5}, "'threshold' parameter of GateRules must be"),
        ({"threshold": float("nan")}, "'threshold' parameter"),
        ({"threshold": 0}, "'threshold' parameter of GateRules must be greater than 0"),
        ({"flaky": -1}, "'flaky' parameter of GateRules must be"),
    ],
)
def test_rules_that_make_no_sense_are_refused(change, message):
    with pytest.raises(ConfigError, match=message):
        rules(**change)


# Decisions as files.


def write(home, decision, tmp_path, name="decision.json"):
    path = tmp_path / name
    path.write_text(decision.text(), encoding="utf-8")
    return path


def test_verifying_gets_the_same_bytes_from_the_journal(home, baseline, tmp_path):
    path = write(home, decide(home, baseline, loss(0.985), held_out=FIVE), tmp_path)
    assert is_decision(path)
    assert verify_decision(path, home=home) == ""


def test_verifying_does_not_need_the_baseline_any_more_but_says_so(home, baseline, tmp_path):
    path = write(home, decide(home, baseline), tmp_path)
    said = describe_verification(path, home=home)
    rules = "tier bronze, threshold 0.98, held-out data sets not required, low coverage allowed"
    assert said == f"rules ({rules}) and versions of tools as quoted; compared with {baseline}"
    baseline.unlink()
    assert verify_decision(path, home=home) == ""
    assert describe_verification(path).endswith("baseline as quoted, not compared with the file")


def test_a_decision_whose_quoted_baseline_was_edited_is_found_by_the_file_it_names(home, baseline, tmp_path):
    held = decide(home, baseline, loss(0.9))
    easier = [
        r.replace(
            mean=r.mean * 0.9, per_seed={c: v * (0.9 if r.higher_is_better else 1.2) for c, v in r.per_seed.items()}
        )
        for r in held.source.references
    ]
    forged = _decide_run(held.source.replace(references=easier), held.rules, versions=held.report.versions, home=home)
    assert forged.promoted
    path = write(home, forged, tmp_path)
    assert verify_decision(path, home=home) == f"what it quotes is not what {baseline} holds"


def test_the_quoted_baseline_can_be_checked_against_the_file(home, baseline, tmp_path):
    path = write(home, decide(home, baseline), tmp_path)
    assert verify_decision(path, home=home, baseline=baseline) == ""
    other = tmp_path / "other.json"
    other.write_text(baseline.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert "is not what" in verify_decision(path, home=home, baseline=other)


def test_a_later_attempt_does_not_change_an_earlier_decision(home, baseline, tmp_path):
    path = write(home, decide(home, baseline), tmp_path)
    record(home, plan(), loss(0.5))
    assert verify_decision(path, home=home) == ""
    assert not decide_run(plan().run_id, baseline, rules(), home=home).promoted


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda raw: raw["report"].update(lower_bound_95=0.99), "report.lower_bound_95 is not"),
        (lambda raw: raw["report"]["per_case"][0].update(score=1.0), "report.per_case is not"),
        (lambda raw: raw.update(promoted=True), "promoted is not"),
        (lambda raw: raw.update(objections=[]), "objections is not"),
        (lambda raw: raw["rules"].update(threshold=0.5), "objections is not"),
        (lambda raw: raw["source"].update(journal_digest="0" * 32), "source.journal_digest is not"),
        (lambda raw: raw.update(min_cases=3), "min_cases is not"),
    ],
)
def test_an_edited_decision_is_found(home, baseline, tmp_path, edit, message):
    path = write(home, decide(home, baseline, loss(0.97)), tmp_path)
    raw = json.loads(path.read_text(encoding="utf-8"))
    edit(raw)
    path.write_text(json.dumps(raw, indent=1) + "\n", encoding="utf-8")
    assert message in verify_decision(path, home=home)


def test_a_reformatted_decision_is_found(home, baseline, tmp_path):
    path = write(home, decide(home, baseline), tmp_path)
    path.write_text(path.read_text(encoding="utf-8").replace("\n ", "\n  "), encoding="utf-8")
    assert "bytes are not" in verify_decision(path, home=home)


def test_a_damaged_journal_decides_and_verifies_nothing(home, baseline, tmp_path):
    path = write(home, decide(home, baseline), tmp_path)
    journal = RunFolder(home / "runs" / plan().run_id).journal_path(1)
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([*lines[:3], *lines[4:]]))
    with pytest.raises(RunError, match="damaged"):
        verify_decision(path, home=home)
    with pytest.raises(RunError, match="damaged"):
        decide_run(plan().run_id, baseline, rules(), home=home)


def test_a_renamed_run_decides_and_verifies_nothing(home, baseline, tmp_path):
    """The folder's name was the seed of the bound."""
    path = write(home, decide(home, baseline), tmp_path)
    folder = home / "runs" / plan().run_id
    folder.rename(folder.with_name("0" * 16))
    with pytest.raises(RunError, match=r"plan.json: has the digest \w+, so it is not the plan of run 0{16}"):
        decide_run("0" * 16, baseline, rules(), home=home)
    raw = json.loads(path.read_text(encoding="utf-8"))
    raw["source"]["run_id"] = raw["report"]["run_id"] = "0" * 16
    path.write_text(json.dumps(raw, indent=1) + "\n", encoding="utf-8")
    with pytest.raises(RunError, match="cannot be verified"):
        verify_decision(path, home=home)


def test_a_journal_without_its_seal_decides_and_verifies_nothing(home, baseline, tmp_path):
    path = write(home, decide(home, baseline), tmp_path)
    journal = RunFolder(home / "runs" / plan().run_id).journal_path(1)
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([*lines[:-2], lines[-2].replace(b"0.500", b"0.400")]))
    for attempt in (lambda: verify_decision(path, home=home), lambda: decide_again(home, baseline)):
        with pytest.raises(RunError, match="not sealed: the run did not finish, or the end of the file was changed"):
            attempt()


def decide_again(home, baseline):
    return decide_run(plan().run_id, baseline, rules(), home=home)


def test_a_run_that_did_not_finish_decides_nothing(home, baseline):
    record(home, plan(), lambda cell: None if cell.spec.dataset == "bin" else outcome(cell), seal=False)
    with pytest.raises(RunError, match="incomplete: 4 of 48 cells have no outcome"):
        decide_again(home, baseline)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "is not a gate decision"),
        ('{"kind": "boosters-eval gate decision", "schema_version": 2}', "is a gate decision of format 2, which"),
        ('{"kind": "boosters-eval gate decision", "schema_version": 10}', "is not a valid gate decision"),
    ],
)
def test_what_is_no_decision_is_told(tmp_path, text, message):
    path = tmp_path / "x.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FileFormatError, match=message):
        verify_decision(path)
    assert is_decision(path) == ("kind" in text)


def test_unknown_keys_are_refused_in_a_decision(home, baseline, tmp_path):
    path = write(home, decide(home, baseline), tmp_path)
    raw = json.loads(path.read_text(encoding="utf-8"))
    raw["report"]["lower_bound"] = 1
    path.write_text(json.dumps(raw), encoding="utf-8")
    with pytest.raises(FileFormatError, match="has no parameter 'lower_bound'"):
        verify_decision(path, home=home)


def test_the_default_place_is_named_by_run_library_and_tier(home, baseline):
    decision = decide(home, baseline)
    assert find_default_path(decision, home) == home / "gate" / f"{plan().run_id}-boosters-bronze.json"
    strange = decision.replace(report=decision.report.replace(library="../../etc/x"))
    assert find_default_path(strange, home).parent == home / "gate"


# Scores from elsewhere.

ROWS = [{"case_id": f"c{i}", "score": 0.9 + i / 200, "class": "held_out" if i % 2 else "dev"} for i in range(12)]


def scores_file(tmp_path, content, name="scores.json"):
    path = tmp_path / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def test_json_and_csv_of_the_same_cases_give_the_same_report(tmp_path):
    listed = scores_file(tmp_path, ROWS)
    wrapped = scores_file(tmp_path, {"cases": ROWS[::-1]}, "wrapped.json")
    lines = [f"{row['case_id']},{row['score']!r},{row['class']}" for row in ROWS]
    table = scores_file(tmp_path, "\ufeffcase_id,score,class\n" + "\n".join(lines) + "\n", "scores.csv")
    reports = [decide_scores(path, rules(threshold=0.9)).report for path in (listed, wrapped, table)]
    assert reports[0] == reports[1] == reports[2]
    assert reports[0].n_held_out == 6


def test_a_plain_mapping_is_read_too(tmp_path):
    cases, _ = read_scores(scores_file(tmp_path, {"a": 0.5, "b": 1}))
    assert [(case.case_id, case.score, case.class_) for case in cases] == [("a", 0.5, None), ("b", 1.0, None)]


def test_an_empty_class_in_csv_is_none(tmp_path):
    cases, _ = read_scores(scores_file(tmp_path, "case_id,score,class\na,1,\nb,0.5,dev\n", "s.csv"))
    assert [case.class_ for case in cases] == [None, "dev"]


def test_the_seed_of_a_scores_file_is_its_content(tmp_path):
    file = scores_file(tmp_path, ROWS)
    one = decide_scores(file, rules())
    changed = scores_file(tmp_path, [{**ROWS[0], "score": 0.91}, *ROWS[1:]], "changed.json")
    other = decide_scores(changed, rules())
    assert one.report.run_id != other.report.run_id
    path = write(None, one, tmp_path)
    assert verify_decision(path) == ""
    assert describe_verification(path).endswith(f"as quoted; compared with {file}")
    assert verify_decision(path, scores=changed) == f"what it quotes is not what {changed} holds"
    with pytest.raises(ConfigError, match="has nothing to do with it"):
        verify_decision(path, baseline=changed)
    file.unlink()
    assert verify_decision(path) == ""
    assert describe_verification(path).endswith("scores as quoted, not compared with the file")
    raw = json.loads(path.read_text(encoding="utf-8"))
    raw["report"]["per_case"][3]["score"] = 1.0
    path.write_text(json.dumps(raw, indent=1) + "\n", encoding="utf-8")
    assert "report.run_id is not" in verify_decision(path)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
@settings(max_examples=60)
def test_any_scores_verify(tmp_path_factory, scores):
    folder = tmp_path_factory.mktemp("any")
    path = scores_file(folder, [{"case_id": f"{i}", "score": s} for i, s in enumerate(scores)])
    decision = decide_scores(path, rules(threshold=0.5))
    assert verify_decision(write(None, decision, folder)) == ""
    assert decision.promoted == (decision.report.lower_bound_95 >= 0.5 and len(scores) >= 10)


def test_fewer_than_five_cases_bound_nothing_and_say_so(tmp_path):
    decision = decide_scores(scores_file(tmp_path, {"a": 1.0, "b": 0.9}), rules(threshold=0.1))
    assert decision.report.lower_bound_95 == 0.0
    assert not decision.promoted
    assert "5 cases are the fewest that a bound can be computed from; with 2 it is 0." in decision.report.notes
    single = decide_scores(scores_file(tmp_path, {"a": 1.0}), rules(threshold=0.1))
    assert single.report.stddev is None


@pytest.mark.parametrize("change", ["names", "order", "classes"])
def test_names_order_and_classes_of_the_cases_do_not_move_the_bound(tmp_path, change):
    """Renaming the cases moved a bound from .9718 to .9744."""
    scores = [0.9 + (index * 7 % 12) / 120 for index in range(12)]
    rows = [{"case_id": f"c{index:02}", "score": score, "class": "dev"} for index, score in enumerate(scores)]
    other = {
        "names": [{**row, "case_id": f"x{99 - index}"} for index, row in enumerate(rows)],
        "order": [{**row, "case_id": f"c{index:02}"} for index, row in enumerate(rows[::-1])],
        "classes": [{**row, "class": "held_out"} if index < 5 else row for index, row in enumerate(rows)],
    }[change]
    reports = [decide_scores(scores_file(tmp_path, content), rules()).report for content in (rows, other)]
    assert reports[0].lower_bound_95 == reports[1].lower_bound_95
    assert reports[0].run_id == reports[1].run_id


def test_a_scores_file_may_name_data_sets(tmp_path):
    rows = "".join(f"c{index},{0.9 + index / 100},{' ' * (index % 2)}d{index // 2}\n" for index in range(8))
    path = scores_file(tmp_path, f"case_id,score,dataset\n{rows}", "s.csv")
    report = decide_scores(path, rules(threshold=0.5)).report
    assert report.per_unit == pytest.approx({"d0": 0.905, "d1": 0.925, "d2": 0.945, "d3": 0.965})
    assert (report.n_cases, report.n_units) == (8, 4)
    assert report.intraclass_correlation == pytest.approx(0.93, abs=0.01)
    plain = decide_scores(scores_file(tmp_path, {"a": 0.5, "b": 0.9}), rules(threshold=0.5)).report
    assert (plain.n_units, plain.intraclass_correlation, plain.unit_noun) == (2, None, "case")


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        ("", "s.json", "is not JSON"),
        ("3", "s.json", "must hold a list of cases"),
        ("[]", "s.json", "holds no case"),
        ('{"cases": 3}', "s.json", "must hold a list of cases"),
        ('[{"case_id": "a"}]', "s.json", "case 1: The 'score' parameter of Case is required"),
        ('[{"case_id": "a", "score": 1.1}]', "s.json", "case 1: The 'score' parameter of Case must be less than"),
        ('[{"case_id": "a", "score": NaN}]', "s.json", "'score' parameter of Case must be"),
        ('[{"case_id": "a", "score": true}]', "s.json", "'score' parameter of Case must be"),
        ('[{"case_id": "a", "score": "1"}]', "s.json", "'score' parameter of Case must be"),
        ('[{"case_id": "", "score": 1}]', "s.json", "'case_id' parameter of Case must"),
        ('[{"case_id": "a", "score": 1, "class": "test"}]', "s.json", "'class' parameter of Case must be 'dev'"),
        ('[{"case_id": "a", "score": 1, "clas": "dev"}]', "s.json", "has no parameter 'clas'"),
        ('[{"case_id": "a", "score": 1}, {"case_id": "a", "score": 0}]', "s.json", "the case 'a' more than once"),
        ("[1]", "s.json", "case 1"),
        ("a,b\n1,2\n", "s.csv", "optionally class and dataset. Got a, b"),
        ("", "s.csv", "Got none"),
        ("case_id,score\n", "s.csv", "holds no case"),
        ("case_id,score\na,high\n", "s.csv", "'score' parameter of Case must be"),
        ("case_id,score\na,0.5,dev\n", "s.csv", "case 1, has 3 values for 2 columns"),
        ("case_id,score\na\n", "s.csv", "case 1, has 1 value for 2 columns"),
        ('{"cases": [{"case_id": "a", "score": 1}], "note": "x"}', "s.json", "has the unknown key 'note'"),
        ('{"a": 0.1, "b": 0.9, "a": 1}', "s.json", "has the key 'a' more than once"),
        ('[{"case_id": "a", "score": 0, "score": 1}]', "s.json", "has the key 'score' more than once"),
        ('case_id,score\n"a,0.5\n', "s.csv", "is not CSV"),
        ("case_id,score,dataset\na,1,x\nb,1,\n", "s.csv", "the dataset of every case or of none. Got none of 'b'"),
    ],
)
def test_a_bad_scores_file_is_told_in_one_sentence(tmp_path, content, name, message):
    with pytest.raises(FileFormatError, match=message) as caught:
        read_scores(scores_file(tmp_path, content, name))
    assert caught.value.exit_code == ExitCode.CONFIGURATION_ERROR
    assert "\n" not in str(caught.value)


def test_a_decision_calls_the_class_of_a_case_as_a_scores_file_does(tmp_path):
    made = decide_scores(scores_file(tmp_path, "case_id,score,class\na,1,dev\nb,1,held_out\n", "s.csv"), rules())
    cases = json.loads(made.text())["report"]["per_case"]
    assert [(case["case_id"], case["class"]) for case in cases] == [("a", "dev"), ("b", "held_out")]


@pytest.mark.parametrize(("tier", "least"), TIERS.items())
def test_the_number_that_a_tier_needs_may_be_asked_for(tier, least):
    asked = {"scores": Path("s.csv"), "threshold": 0.9, "tier": tier}
    GateRequest(**asked, min_cases=least).check()
    with pytest.raises(ConfigError, match=f"must be at least {least}, which tier {tier} needs"):
        GateRequest(**asked, min_cases=least - 1).check()
    assert rules(tier=tier, min_cases=least).needed == least


def test_a_report_needs_cases():
    with pytest.raises(BoostersEvalError):
        make_report([], run_id="deadbeef")


def test_python_decides_and_verifies_without_writing_anything_itself(home, baseline, tmp_path):
    run_id = record(home, plan(), loss(0.5))
    asked = {"threshold": 0.98, "home": home}
    held = decide_gate(run_id[:8], baseline, **asked, no_held_out=True)
    assert (held.promoted, held.exit_code) == (False, ExitCode.REGRESSION)
    assert not (home / "gate").exists()
    path = tmp_path / "decision.json"
    path.write_text(held.text(), encoding="utf-8")
    assert verify(path, home=home).is_good
    path.write_text(held.text().replace("0.98", "0.4"), encoding="utf-8")
    changed = verify(str(path), home=home)
    assert changed.files == ((str(path), "objections is not what the recorded inputs give"),)
    assert changed.exit_code == ExitCode.EXECUTION_ERROR
    again = record(home, plan())
    good = decide_gate(again, str(baseline), **asked, held_out=FIVE, allow_low_coverage=True)
    assert (good.promoted, good.exit_code) == (True, ExitCode.SUCCESS)


def test_a_decision_has_every_rendering_and_names_parameters_in_python(tmp_path):
    file = tmp_path / "scores.json"
    file.write_text(json.dumps({f"c{i}": 0.5 for i in range(12)}), encoding="utf-8")
    held = decide_gate(scores=file, threshold=0.9)
    text = held.to_markdown()
    assert text.startswith("# Gate: scores\n\n## Answer\n\nHELD: tier bronze, threshold 0.9.\n\n- The lower bound ")
    assert "(or say no_held_out=True)" in text
    assert "and 2 more cases below the threshold" in text
    assert "(or say --no-held-out)" in held.objections[1]  # as the file has it, whoever asks
    assert '<p class="headline">HELD: tier bronze' in held.to_html()
    assert held.to_json() == held.text()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "The gate needs 'run' with 'baseline', or 'scores'."),
        ({"run": "last", "scores": "s"}, "Use either 'scores', or 'run' with 'baseline' (and 'held_out'), not both."),
        ({"scores": "s", "threshold": 2}, "The 'threshold' parameter must be above 0 and at most 1. Got 2 instead."),
        (
            {"scores": "s", "tier": "golt"},
            "The 'tier' parameter must be bronze, silver or gold. Got 'golt' instead. Did",
        ),
        ({"scores": "s", "min_cases": 3}, "The 'min_cases' parameter must be at least 10, which tier bronze needs."),
        ({"held_out": "a", "no_held_out": True}, "Use either 'held_out' or 'no_held_out', not both."),
        ({"scores": "none.csv"}, "none.csv does not exist."),
    ],
)
def test_python_is_told_of_the_parameters_of_the_gate(arguments, told):
    with pytest.raises(ConfigError) as caught:
        decide_gate(**{"threshold": 0.9, **arguments})
    assert str(caught.value).startswith(told)


def test_what_is_no_decision_is_told_in_python_too(tmp_path):
    with pytest.raises(ConfigError, match=r"nothing.json does not exist\."):
        verify(tmp_path / "nothing.json")
    with pytest.raises(ConfigError, match="is not a gate decision"):
        verify(V1)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (["a"] * 500_000, "case 1, has 1 value for 2 columns"),
        ([f"c{number % 199_999},1" for number in range(200_000)], "has the case 'c0' more than once"),
        ([f"c{number},1" for number in range(30)], "has more than 20 cases"),
    ],
)
def test_file_of_endless_scores_is_refused_while_it_is_read(tmp_path, monkeypatch, rows, sentence):
    monkeypatch.setattr("boosters_eval.programs.gate.cases._MOST_CASES", 20 if len(rows) < 100 else 10**6)
    (tmp_path / "s.csv").write_text("\n".join(["case_id,score", *rows]))
    with pytest.raises(FileFormatError, match=sentence):
        read_scores(tmp_path / "s.csv")
