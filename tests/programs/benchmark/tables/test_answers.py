"""The answer of a table says what its verdicts say, and what it advises is true."""

import math
import random

import pytest

import factories
from boosters_eval.metrics import declare_metric
from boosters_eval.programs.benchmark.records import Unavailable
from boosters_eval.programs.benchmark.results import ResultCollection
from boosters_eval.programs.benchmark.tables.build import build_tables
from boosters_eval.runners.parameters import Mark
from boosters_eval.runners.result import SplitFacts
from boosters_eval.stats.sequential import detectable_with

FIVE = ("boosters", "xgboost", "lightgbm", "catboost", "sklearn")
SURE = ", a lead that chance alone gives in at most 5 % of cases"
HOPELESS = ", and probably no practical number of seeds would confirm this lead; more data might."


def scores(gaps=None, spread=0.01, *, libraries=("boosters", "xgboost", "lightgbm"), seeds=5, **changes):
    """RMSE around 0.5, shifted by each library's gap, with noise that is the same in every run of the tests."""

    def value(_, library, index):
        return 0.5 + (gaps or {}).get(library, 0.0) + random.Random(f"{library}{index}").gauss(0, spread)

    return factories.grid(value, libraries=libraries, seeds=seeds, **changes)


def changed(result, **changes):
    return result.model_copy(update=changes)


def table_of(results, errors=(), *, options=None, **changes):
    (table,) = build_tables(factories.collection(results, errors, **changes), **(options or {})).tables
    return table


def answer(*args, **changes):
    return table_of(*args, **changes).answer


def test_a_winner_is_named_with_its_lead_over_the_next():
    assert answer(scores({"xgboost": -0.1}, 0.001)) == (
        f"xgboost is best: RMSE 19.9 % lower than boosters, the next, on 5 splits{SURE}."
    )
    assert answer(scores({"xgboost": -0.1}, 0.001, libraries=FIVE[:2])) == (
        f"xgboost is better than boosters: RMSE 19.9 % lower on 5 splits{SURE}."
    )


def test_of_a_metric_that_is_best_at_1_percentages_are_of_what_is_lacking():
    told = answer(scores({"xgboost": 0.1}, 0.001, metric="r2"))
    assert told.startswith("xgboost is best: 1 \N{MINUS SIGN} R² 20.0 % lower than ")


def test_of_any_other_metric_higher_is_told_as_higher():
    declare_metric("profit", higher_is_better=True)
    told = answer(scores({"xgboost": 0.1}, 0.001, metric="profit"))
    assert told.startswith("xgboost is best: profit 20.")
    assert " % higher than " in told


def test_rows_that_are_equivalent_to_the_best_share_its_place():
    assert answer(scores({"lightgbm": 0.1}, 0.0001)) == (
        "boosters has the best RMSE, but xgboost is as good in practice: within 1 % on 5 splits; boosters is better"
        " than lightgbm."
    )


def test_nobody_is_best_where_all_scores_are_the_same():
    assert answer(factories.grid(lambda *_: 0.5, libraries=FIVE[:3], seeds=5)) == (
        "boosters, xgboost and lightgbm have the same RMSE on 5 splits."
    )


def test_scores_on_both_sides_of_zero_are_not_compared_in_percent():
    gaps = {"boosters": -0.3, "xgboost": -1.6}
    declare_metric("profit", higher_is_better=True)
    told = answer(scores(gaps, 0.001, libraries=FIVE[:2], metric="profit"))
    assert told == f"boosters is better than xgboost: profit 1.3 higher on 5 splits{SURE}."
    told = answer(scores(gaps, 0.001, libraries=FIVE[:2], metric="r2"))  # whose distance from 1 is always positive
    assert told == f"boosters is better than xgboost: 1 \N{MINUS SIGN} R² 61.9 % lower on 5 splits{SURE}."


def advised(table, level):
    """The seeds that would detect one of the leader's gaps, or half of one, computed again."""
    leader = table.answer.partition(": ")[2].partition(" leads")[0]
    pairs = [p for p in table.pairs if leader in (p.a, p.b) and p.verdict == "inconclusive"]
    for share, chance in ((1, "would probably"), (0.5, "might")):
        for seeds in (10, 20, 50, 100):
            shown = (detectable_with(seeds, p.detectable, p.n, level=level, overlap=0.25) for p in pairs)
            if any(share * then <= abs(pair.difference) for pair, then in zip(pairs, shown, strict=True)):
                return f"seeds={seeds} {chance}"
    return None


def test_a_lead_that_may_be_chance_is_no_win_and_comes_with_what_might_decide_it():
    table = table_of(scores({"xgboost": 0.01}, libraries=FIVE[:2]))
    (pair,) = table.pairs
    now = 100 * pair.detectable / abs(100 * pair.difference / pair.percent)
    assert advised(table, 0.05) == "seeds=10 might"
    assert table.answer == (
        "No clear winner in RMSE: boosters leads xgboost by 3.2 %, which may be chance: 5 splits can only detect gaps"
        f" above about {now:.1f} %; seeds=10 might decide it."
    )


def test_advice_in_a_larger_table_is_at_the_level_of_each_test():
    table = table_of(scores(dict.fromkeys(FIVE[1:], 0.03), libraries=FIVE))
    assert advised(table, 0.05 / 10) == "seeds=20 would probably"
    assert "; seeds=20 would probably tell some of them apart; boosters is better than catboost." in table.answer


@pytest.mark.parametrize("seeds", [5, 50])
def test_more_seeds_are_not_advised_where_no_practical_number_would_help(seeds):
    table = table_of(scores(seeds=seeds))
    assert advised(table, 0.05 / 3) is None
    assert table.answer.endswith(HOPELESS)


def test_what_splits_could_detect_is_not_told_where_it_is_absurd():
    assert "3 splits are far too few to detect such gaps" in answer(scores(spread=0.1, seeds=3, libraries=FIVE))


def test_advice_follows_the_kind_of_split_and_the_command():
    folded = [
        changed(r, fold=place % 5, seed=place // 5, split_digest=factories.digest(place))
        for library in FIVE[:2]
        for place, r in enumerate(scores({"xgboost": 0.008}, libraries=(library,), seeds=10))
    ]
    assert "; cv='5x5' might decide it" in answer(folded)
    suite = answer(scores({"xgboost": 0.01}, libraries=FIVE[:2]), suite="quick")
    assert "; 10 seeds might decide it" in suite
    assert "--seeds" not in suite


def test_nothing_is_advised_after_auto_or_where_seeds_share_one_split():
    auto = factories.remember(factories.collection(scores()), seeds_rule="seeds were added at one look")
    assert "--seeds" not in build_tables(auto).tables[0].answer
    shared = [changed(r, split_digest=factories.digest(r.seed % 2)) for r in scores(seeds=6)]
    assert "--seeds" not in answer(shared)
    official = [changed(r, split_digest=factories.digest("official")) for r in scores()]
    told = answer(official)
    assert told.startswith("No clear winner on a single split: ")
    assert "--seeds" not in told


@pytest.mark.parametrize(
    "split",
    [SplitFacts(kind="time", column="t"), SplitFacts(kind="group", column="g", n_train_groups=32, n_valid_groups=8)],
)
def test_seeds_are_not_advised_where_they_add_neither_windows_nor_groups(split):
    told = answer([changed(r, split=split, seed=0, fold=r.seed) for r in scores()])
    assert "which may be chance" in told
    assert "--" not in told


def test_a_single_split_allows_no_verdict():
    assert answer(scores(spread=0.001, seeds=1, libraries=FIVE[:2])) == (
        "No clear winner on a single split: boosters has the best RMSE, 0.11 % lower than xgboost, which may be chance;"
        " seeds=5 would tell more."
    )


def test_one_row_with_results_has_nothing_to_be_compared_with():
    assert answer(scores(libraries=("boosters",), seeds=3)).startswith(
        "Only boosters has results, so there is nothing to compare: RMSE 0.49"
    )


def test_whoever_failed_or_is_absent_is_told():
    failed = [factories.error(library="catboost", seed=seed) for seed in (1, 2)]
    partly = [factories.error(library="lightgbm", seed=99)]
    absent = factories.absence(Unavailable, factories.CONFIG, "sklearn", "it is not installed")
    told = answer(scores({"xgboost": -0.1}, 0.001), [*failed, *partly], unavailable=[absent])
    assert told.endswith(
        f"on 5 splits{SURE}; 1 of 6 cells of lightgbm failed; catboost failed in every cell; sklearn is unavailable."
    )
    assert answer([], failed) == "No result: every cell failed."


def test_flaky_cells_and_an_incomplete_run_are_told():
    assert answer(scores(failed_before=1)).endswith("; 15 cells finished only after failing.")
    missing = factories.remember(factories.collection(scores()), n_missing=2, n_cells=17)
    assert build_tables(missing).tables[0].answer.endswith("; the run is incomplete.")


def test_a_version_that_the_mapping_was_never_verified_for_is_told_beside_the_verdict():
    version = "version 1.7.6 is outside the range 2.1 to 3.1 for which the mapping was verified"
    marks = (Mark(parameter="version", kind="approximated", reason=version),)
    other = (Mark(parameter="min_samples_leaf", kind="approximated", reason="of a node"),)
    results = [
        changed(one, marks=marks if one.library == "xgboost" else other) for one in scores({"xgboost": -0.1}, 0.001)
    ]
    table = table_of(results)
    assert table.answer == (
        f"xgboost is best: RMSE 19.9 % lower than boosters, the next, on 5 splits{SURE}; the mapping of parameters was"
        " never verified for xgboost (see the notes)."
    )
    assert f"xgboost: {version}." in table.notes
    assert not any("of a node" in note for note in table.notes)


def test_a_winner_that_is_no_better_than_a_trivial_rule_has_won_nothing():
    rule = {"trivial": {"mean": {"rmse": 0.39}}}
    assert answer(scores({"xgboost": -0.1}, 0.001, **rule)).startswith(
        "Nothing is better than predicting the mean (0.3900): xgboost comes nearest, with RMSE 0.40"
    )
    rule = {"trivial": {"mean": {"rmse": 0.45}}}
    told = answer(scores({"xgboost": -0.1}, 0.001, **rule))
    assert told.startswith("xgboost is best")
    assert told.endswith("; boosters and lightgbm are not better than predicting the mean (0.4500).")


def test_scores_that_are_not_finite_are_no_verdict():
    assert answer(factories.grid(lambda *_: math.nan)) == (
        "No clear winner in RMSE: no two can be compared (see the notes)."
    )


def test_times_decide_only_if_they_were_taken_in_timing_mode():
    options = {"metrics": ()}
    assert answer(scores(train_time_s=0.3), options=options) == (
        "No verdict: times are indicative only: not taken with 'timing_mode'."
    )
    timed = [
        changed(r, train_time_s=(1 + i / 1000) * (2.0 if r.library == "boosters" else 1.0), timing_mode=True)
        for i, r in enumerate(scores(libraries=FIVE[:2]))
    ]
    best = f"xgboost is better than boosters: training time 49.8 % lower on 5 splits{SURE}."
    assert answer(timed, options=options) == best
    assert answer(timed).endswith("; xgboost has the lowest training time.")


def test_a_metric_without_a_known_direction_has_no_verdict():
    assert answer(scores(metric="mine")) == (
        "No verdict: whether a higher or a lower mine is better is not known here."
    )


@pytest.mark.parametrize("test", ["welch", "wilcoxon", "paired", "corrected"])
@pytest.mark.parametrize("gap", [0.0, 0.002, 0.1])
def test_it_announces_a_winner_exactly_where_one_is_highlighted(test, gap):
    for spread in (0.0005, 0.01):
        table = table_of(scores({"xgboost": -gap}, spread, seeds=8), options={"test": test})
        best = [row.label for row in table.rows if row.cells[0].best]
        assert [name for name in FIVE if table.answer.startswith(f"{name} is best: ")] == best


def test_the_reason_is_told_where_no_test_could_decide():
    assert answer(scores(libraries=FIVE[:2]), options={"test": "wilcoxon"}) == (
        "No clear winner in RMSE: boosters leads xgboost by 1.3 %, which 5 splits cannot settle (n too small: the"
        " smallest p-value of 5 splits is 0.0625); seeds=10 would tell more."
    )


def test_many_rows_are_counted():
    told = answer(scores(libraries=[f"library{i}" for i in range(9)]))
    assert " and 4 others by " in told


def test_variants_have_their_full_names():
    results = [
        changed(r, config_name=f"toy/gbdt/{v}", variant=v, metrics={"rmse": share * r.metrics["rmse"]})
        for v, share in (("deep", 0.8), ("flat", 1.0))
        for r in scores(spread=0.001, libraries=("boosters",))
    ]
    assert answer(results).startswith("boosters deep is better than boosters flat: RMSE 20.0 %")


def test_every_rendering_shows_the_answer():
    report = build_tables(ResultCollection(scores({"xgboost": -0.1}, 0.001)))
    assert "## toy/gbdt (5 seeds)\n\nxgboost is best: RMSE 19.9 % lower" in report.to_markdown()
    assert "<p>xgboost is best: RMSE 19.9\u00a0% lower" in report._repr_html_()
