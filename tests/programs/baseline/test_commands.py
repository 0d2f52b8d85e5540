from dataclasses import replace

import pytest

import factories
from boosters_eval import Settings
from boosters_eval.core.errors import ConfigError
from boosters_eval.core.terms import speaking_of
from boosters_eval.engine.cell import Build, Installation
from boosters_eval.engine.plan import Exclusion
from boosters_eval.programs.baseline.check import check
from boosters_eval.programs.baseline.commands import _recorded_only, grow_until_decided, plan_run
from boosters_eval.programs.baseline.findings import CheckRules
from boosters_eval.programs.baseline.request import CheckRequest
from boosters_eval.programs.baseline.snapshot import Snapshot, TakenBaseline, make_baseline
from boosters_eval.programs.benchmark.benchmarks import select_benchmarks
from boosters_eval.programs.benchmark.planning import PreparedRun
from boosters_eval.programs.benchmark.seeds import Growth, grow
from boosters_eval.runners import RUNNERS
from boosters_eval.runners.config import derive_seeds

NOISE = (0.04, -0.03, 0.01, -0.01, 0.02, -0.02, 0.03, -0.04, 0.0, 0.0)


def asked(suite, **parameters):
    return CheckRequest(suite=suite, statistical=parameters.get("seeds") == "auto", **parameters)


def run_of(seeds, change, noise=1.0):
    """A run whose scores are changed by so much on average, and by other amounts from seed to seed."""

    def score(config, library, index):
        return 1.0 + change + noise * NOISE[index % len(NOISE)]

    return factories.collection(factories.grid(score, libraries=("boosters",), seeds=seeds))


def looks_at(change, noise=1.0, recorded=20, **rules):
    """The numbers of seeds at which `--seeds auto` looks before it stops, and what it says."""
    baseline = make_baseline(run_of(recorded, 0.0, noise=0.0))
    prepared = PreparedRun(None, None, Settings(), None, growth=Growth.of(max_seeds=recorded))
    taken, how = TakenBaseline(baseline, "b.json"), CheckRules(statistical=True, seeds=5, **rules)
    growth = grow_until_decided(prepared, taken, how).growth
    asked, said = [], []

    def run(seeds):
        asked.append(seeds)
        return factories.remember(run_of(seeds, change, noise), alpha=growth.rule.level)

    grow(run, growth.rule, pairs=growth.pairs, say=said.append)
    return asked, said


@pytest.mark.parametrize(
    ("change", "noise", "looks"),
    [
        (0.0, 0.0, [5]),  # the same scores
        (0.5, 1.0, [5]),  # much worse
        (-0.5, 1.0, [5]),  # much better
        (0.03, 0.1, [5]),  # worse beyond doubt
        (0.005, 0.1, [5]),  # surely within tolerance
        (0.03, 1.0, [5, 10, 20]),  # undecided
        (0.01, 1.0, [5, 10, 20]),  # within tolerance, but not surely
    ],
)
def test_seeds_are_added_until_a_regression_is_sure_or_ruled_out(change, noise, looks):
    assert looks_at(change, noise)[0] == looks


def test_what_cannot_fail_does_not_ask_for_more_seeds():
    rules = {"tolerance_for": {"rmse": 0.5}}
    assert looks_at(0.03, **rules)[0] == [5]


def test_what_it_says_counts_the_pairs_that_are_open():
    assert looks_at(0.03)[1] == [
        "5 seeds: 1 of 1 pair is inconclusive; continuing to 10 seeds",
        "10 seeds: 1 of 1 pair is inconclusive; continuing to 20 seeds",
        "20 seeds: no more are allowed",
    ]


@pytest.mark.parametrize(("recorded", "wish", "schedule"), [(20, None, (5, 10, 20)), (20, 10, (5, 10)), (3, 50, (3,))])
def test_no_more_seeds_are_run_than_the_baseline_has(home, recorded, wish, schedule):
    baseline = make_baseline(run_of(recorded, 0.0))
    prepared, restriction = plan_run(asked("minimal", seeds="auto", max_seeds=wish), baseline)
    assert prepared.growth.rule.schedule == schedule
    assert restriction["seeds"] == schedule[0]


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda b: b.model_copy(update={"config": b.config.model_copy(update={"seeds": derive_seeds(1)})}), "has 1 "),
        (lambda b: factories.baseline(factories.baseline_result(metrics=MEAN)), "has no values per seed"),
        (
            lambda b: b.model_copy(update={"results": (*b.results, factories.baseline_result(metrics=MEAN))}),
            "has no values",
        ),
    ],
)
def test_a_baseline_that_no_seed_can_be_paired_with_says_what_to_record(spoil, told):
    with pytest.raises(ConfigError, match="needs a baseline of at least 2 seeds") as caught:
        plan_run(asked("minimal", seeds="auto"), spoil(make_baseline(run_of(2, 0.0))))
    assert told in str(caught.value)
    assert "boosters-eval baseline record FILE --seeds 20" in str(caught.value)


MEAN = {"rmse": factories.stats({"42": 0.5}).model_copy(update={"per_seed": {}, "n": 5})}


def test_a_maximum_without_auto_is_refused():
    with pytest.raises(ConfigError, match="'max_seeds' parameter needs seeds='auto'"):
        plan_run(asked("minimal", seeds=3, max_seeds=9), make_baseline(run_of(3, 0.0)))


def test_check_runs_only_the_libraries_that_the_baseline_was_recorded_with(home):
    baseline = make_baseline(run_of(3, 0.0))
    prepared, _ = plan_run(asked("quick"), baseline, recorded_only=True)
    assert {cell.target.name for cell in prepared.plan.cells} == {"boosters"}
    assert any(note.startswith("the baseline has no ") and "xgboost" in note for note in prepared.notes)
    prepared, _ = plan_run(asked("quick", libraries=("xgboost",)), baseline, recorded_only=True)
    assert {cell.target.name for cell in prepared.plan.cells} == {"xgboost"}


def test_of_libraries_that_cannot_be_used_only_recorded_ones_are_missed():
    """Those that the baseline does not have are not run, so nobody is told that they are absent."""
    baseline = make_baseline(run_of(3, 0.0))
    found = select_benchmarks("quick")
    absent = tuple(
        Exclusion(spec=found.configs[0].name, target=name, reason="not installed") for name in ("boosters", "xgboost")
    )
    kept = _recorded_only(replace(found, unavailable=absent), baseline)
    assert [item.target for item in kept.unavailable] == ["boosters"]


def test_a_run_that_added_seeds_is_told_of_seeds_at_the_level_of_looks():
    """The more looks there are, the lower is the level of each: what one test needs would not be enough."""
    before = Snapshot.of_baseline(make_baseline(run_of(5, 0.0, noise=0.0)))
    rules = CheckRules(statistical=True, alpha=0.05)
    (once,) = check(before, Snapshot.of_run(run_of(5, 0.036)), rules).undecided
    looked = factories.remember(run_of(5, 0.036), alpha=0.05)
    (added,) = check(before, Snapshot.of_run(looked), CheckRules(statistical=True)).undecided
    assert added.p_value == once.p_value
    # Mean 0.042, spread 0.0270: of 7 seeds t = 2.48 > t(6) = 2.45, of 11 t = 2.66 > t(10) at 0.025 = 2.63.
    assert (once.seeds_needed, added.seeds_needed) == (7, 11)


def test_a_baseline_with_builds_tells_how_something_takes_their_place(home):
    made = make_baseline(run_of(2, 0.0))
    head = Build(version="0.2.0", digest="d", library="boosters")
    baseline = made.model_copy(update={"libraries": {**made.libraries, "head": head}})
    told = "the baseline has builds that no suite has: head (boosters 0.2.0); name what takes their place, as in"
    prepared, _ = plan_run(asked("minimal", seeds=2), baseline)
    assert f"{told} libraries=['head=boosters==VERSION']" in prepared.notes
    with speaking_of({"libraries": "--library"}):
        prepared, _ = plan_run(asked("minimal", seeds=2), baseline)
    assert f"{told} --library head=boosters==VERSION" in prepared.notes
    prepared, _ = plan_run(asked("minimal", libraries=("boosters",), seeds=2), baseline)
    assert not any(note.startswith(told) for note in prepared.notes)
    unnamed = {"boosters==0.2.0": head, "boosters@0.2.0": head}  # such a label cannot be given as a name
    prepared, _ = plan_run(asked("minimal", seeds=2), baseline.model_copy(update={"libraries": unnamed}))
    assert any(note.endswith("libraries=['boosters==0.2.0', 'boosters@PATH']") for note in prepared.notes)


def test_a_build_of_a_recorded_library_is_judged_only_under_its_name(home):
    baseline = make_baseline(run_of(2, 0.0))
    elsewhere = Installation(library="boosters", version="0.2.0", digest="0" * 16, path=("/nowhere",))
    head = RUNNERS["boosters"].at("head", elsewhere)
    prepared, _ = plan_run(asked("minimal", libraries=(head,), seeds=2), baseline)
    told = "the baseline has boosters, but not head, which is not judged by it; to judge it, give it that name, as in"
    assert f"{told} libraries=['boosters=boosters@PATH']" in prepared.notes
    prepared, _ = plan_run(asked("minimal", libraries=("boosters",), seeds=2), baseline)
    assert not any("is not judged by it" in note for note in prepared.notes)


def test_only_another_suite_than_the_recorded_one_excuses_pairs_that_it_lacks(home):
    """What was taken out of the recorded suite is missed, however the suite was named."""
    baseline = make_baseline(factories.remember(run_of(2, 0.0)))
    baseline = baseline.model_copy(update={"config": baseline.config.model_copy(update={"suite": "quick"})})
    for suite, excuses in ((None, False), ("quick", False), ("minimal", True)):
        _, restriction = plan_run(asked(suite, seeds=2), baseline)
        assert (restriction["only_pairs"] is not None) == excuses


def test_nothing_is_said_of_libraries_left_out_where_all_or_none_are_recorded():
    found = select_benchmarks("minimal")
    for libraries in (found.configs[0].libraries, ("another",)):
        recorded = factories.baseline(*(factories.baseline_result(library=name) for name in libraries))
        assert _recorded_only(found, recorded) == found
