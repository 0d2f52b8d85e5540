"""The answer of a table says what its verdicts say, in four lines, and what it advises works as it stands."""

import html
import io
import json
import math
import random
import re
import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

import factories
from boosters_eval.cli.parser import command_at
from boosters_eval.datasets.config import AuditFinding, DataAudit
from boosters_eval.metrics import declare_metric
from boosters_eval.metrics.task import Task
from boosters_eval.programs.benchmark.compare import ComparisonFindings
from boosters_eval.programs.benchmark.records import Unavailable
from boosters_eval.programs.benchmark.request import CompareRequest
from boosters_eval.programs.benchmark.results import ResultCollection
from boosters_eval.programs.benchmark.tables.answers import _tell_below
from boosters_eval.programs.benchmark.tables.brief import shorten
from boosters_eval.programs.benchmark.tables.build import build_tables
from boosters_eval.reports.terminal import print_document
from boosters_eval.runners.parameters import Mark
from boosters_eval.runners.result import SplitFacts
from boosters_eval.stats.sequential import detectable_with

FIVE = ("boosters", "xgboost", "lightgbm", "catboost", "sklearn")
SPLITS = "5 splits of 20 test rows"


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


def answer(*args, options=None, **changes):
    """The lines of a run of one table, by label."""
    lines = build_tables(factories.collection(*args, **changes), **(options or {})).answer
    return dict(line.split(": ", 1) for line in lines)


def which(*args, **changes):
    return answer(*args, **changes)["Which"]


def test_a_winner_is_named_with_its_lead_over_the_next():
    told = answer(scores({"xgboost": -0.1}, 0.001))
    assert told["Which"] == "xgboost is best. Its RMSE is 19.9 % lower than that of boosters, the next."
    assert re.fullmatch(
        rf"95 % sure, from {SPLITS}. The lead over boosters is 19\.\d % to 20\.\d %\.", told["How sure"]
    )
    assert which(scores({"xgboost": -0.1}, 0.001, libraries=FIVE[:2])) == (
        "xgboost is better than boosters. Its RMSE is 19.9 % lower."
    )


def test_of_a_metric_that_is_best_at_1_percentages_are_of_what_is_lacking():
    told = which(scores({"xgboost": 0.1}, 0.001, metric="r2"))
    assert told.startswith("xgboost is best. Its 1 \N{MINUS SIGN} R² is 20.0 % lower than ")


def test_of_any_other_metric_higher_is_told_as_higher():
    declare_metric("profit", higher_is_better=True)
    told = which(scores({"xgboost": 0.1}, 0.001, metric="profit"))
    assert told.startswith("xgboost is best. Its profit is 20.")
    assert " % higher than " in told


def test_rows_that_are_equivalent_to_the_best_share_its_place():
    told = answer(scores({"lightgbm": 0.1}, 0.0001))
    assert re.fullmatch(
        r"either of these two: boosters and xgboost\. No difference above 0\.0\d % in RMSE is plausible \(less than"
        r" 1 % counts as equal\)\. Worse than boosters: lightgbm\.",
        told["Which"],
    )
    assert told["How sure"] == f"95 % sure, from {SPLITS}."
    third = answer(scores({"lightgbm": 0.1}, 0.0001), options={"alpha": 0.05 / 3})
    assert third["How sure"] == f"98.33 % sure, from {SPLITS}."


def test_a_margin_in_the_unit_of_the_metric_is_told_with_a_gap_in_the_same_unit():
    told = which(scores(spread=0.0001), options={"margin": "rmse=0.01"})
    assert re.search(
        r" No difference above 0\.000\d+ in RMSE is plausible \(less than 0\.01 counts as equal\)\.$", told
    )


@pytest.mark.parametrize(("fewest", "rows"), [(19, "20"), (11, "11 to 20")])
def test_splits_of_several_sizes_are_told_with_the_fewest_and_the_most_rows(fewest, rows):
    first, *others = scores(spread=0.0001)
    assert answer([changed(first, n_valid=fewest), *others])["How sure"] == (
        f"95 % sure, from 5 splits of {rows} test rows."
    )


def test_the_gap_that_is_plausible_is_that_of_the_widest_interval():
    table = table_of(scores({"sklearn": 0.1}, 0.0002, libraries=FIVE))
    assert table.answer[0].startswith("Which: any of these four: ")
    equal = [pair for pair in table.pairs if pair.metric == "rmse" and "sklearn" not in (pair.a, pair.b)]
    means = {row.label: row.cells[0].mean for row in table.rows}
    widest = max(max(abs(p.low), abs(p.high)) / max(means[p.a], means[p.b]) for p in equal)
    assert f"No difference above {100 * widest:.2f} % in RMSE is plausible" in table.answer[0]


def test_nobody_is_best_where_all_scores_are_the_same():
    assert which(factories.grid(lambda *_: 0.5, libraries=FIVE[:3], seeds=5)) == (
        "any of these three: boosters, xgboost and lightgbm. They have the same RMSE."
    )


def test_one_build_under_two_names_is_told_by_its_predictions():
    same = [changed(one, predictions_digest=f"{one.seed:032x}") for one in factories.grid(lambda *_: 0.5, seeds=5)]
    assert which(same).endswith("Their predictions are identical.")


def test_scores_on_both_sides_of_zero_are_not_compared_in_percent():
    gaps = {"boosters": -0.3, "xgboost": -1.6}
    declare_metric("profit", higher_is_better=True)
    told = answer(scores(gaps, 0.001, libraries=FIVE[:2], metric="profit"))
    assert told["Which"] == "boosters is better than xgboost. Its profit is 1.3 higher."
    assert "%" not in told["How sure"].partition("sure")[2]
    told = which(scores(gaps, 0.001, libraries=FIVE[:2], metric="r2"))  # whose distance from 1 is always positive
    assert told == "boosters is better than xgboost. Its 1 \N{MINUS SIGN} R² is 61.9 % lower."


def test_a_lead_that_may_be_chance_is_no_win_and_comes_with_the_gap_that_is_possible():
    results = scores({"xgboost": 0.01}, libraries=FIVE[:2])
    (pair,) = table_of(results).pairs
    means = [row.cells[0].mean for row in table_of(results).rows]
    better, worse = (100 * max(way * pair.low, way * pair.high) / max(means) for way in (1, -1))
    told = answer(results)
    assert told["Which"] == (
        f"cannot say from {SPLITS}: boosters has the best mean RMSE, but xgboost may be up to {better:.2f} % better or"
        f" {worse:.2f} % worse."
    )
    assert told["How sure"] == "not sure: the best mean may be chance."


@pytest.mark.parametrize(
    ("spread", "words"),
    [
        (0.07, "when one has about half the error of the other"),
        (0.05, "when one has about two thirds of the error of the other"),
        (1.0, "5 splits of 20 test rows can hardly tell any two models apart"),
    ],
)
def test_where_little_can_be_shown_it_is_said_without_impossible_percentages(spread, words):
    told = which(scores(spread=spread, libraries=FIVE[:2]))
    assert told.startswith(f"cannot say: boosters has the best mean RMSE, but {SPLITS} can ")
    assert words in told
    assert "%" not in told


def test_how_little_can_be_shown_is_told_of_the_pair_that_shows_most():
    results = [
        changed(r, metrics={"rmse": r.metrics["rmse"] + (0.3 * (r.seed - 2) if r.library == "lightgbm" else 0.0)})
        for r in scores(spread=0.035)
    ]
    assert which(results).endswith(
        f"but {SPLITS} can only tell models apart when one has about two thirds of the error of the other."
    )


@settings(max_examples=40, deadline=None)
@given(
    gaps=st.lists(st.floats(-0.6, 3.0), min_size=2, max_size=5),
    spread=st.sampled_from([0.0, 0.001, 0.05, 0.5, 5.0]),
    seeds=st.sampled_from([1, 2, 5, 12]),
    metric=st.sampled_from(["rmse", "r2", "accuracy"]),
)
def test_no_answer_has_an_impossible_share_or_a_p_value(gaps, spread, seeds, metric):
    made = scores(dict(zip(FIVE, gaps, strict=False)), spread, libraries=FIVE[: len(gaps)], seeds=seeds, metric=metric)
    bound = (lambda value: max(value, 0.0)) if metric == "rmse" else (lambda value: min(value, 1.0))
    results = [changed(r, metrics={metric: bound(r.metrics[metric])}) for r in made]
    lines = build_tables(factories.collection(results)).answer
    assert len(lines) <= 4
    for line in lines:
        shares = [float(found) for found in re.findall(r"(\d+(?:\.\d+)?) %", line)]
        assert all(share <= 100 for share in shares), line
        assert not re.search(r"p-value|\bp [<=>]|alpha|n too small|nan|inf\b", line), line
    told = " ".join(lines[:2])
    assert not ("annot say" in told and "any of these" in told and "Cannot say about" not in told)


@pytest.mark.parametrize(
    ("gap", "words"),
    [
        (0.01, "{lightgbm[0]:.2f} % better or {lightgbm[1]:.2f} % worse (lightgbm)"),
        (0.02, "{xgboost[0]:.2f} % better (xgboost) or {lightgbm[1]:.1f} % worse (lightgbm)"),
    ],
)
def test_of_several_rows_it_is_told_which_one_may_be_better_or_worse(gap, words):
    results = scores({"xgboost": 0.01, "lightgbm": gap})
    table = table_of(results)
    means = {row.label: row.cells[0].mean for row in table.rows}
    ends = {}
    for pair in table.pairs:
        if "boosters" in (pair.a, pair.b):
            way = 1 if pair.b == "boosters" else -1
            low, high = sorted((way * pair.low, way * pair.high))
            other = pair.a if way == 1 else pair.b
            ends[other] = [100 * end / max(means["boosters"], means[other]) for end in (-low, high)]
    assert which(results) == (
        f"cannot say from {SPLITS}: boosters has the best mean RMSE, but xgboost and lightgbm may be up to"
        f" {words.format_map(ends)}."
    )


def test_what_is_equal_and_what_cannot_be_told_are_different_words():
    gaps = {"catboost": 0.02, "sklearn": 0.3}
    results = [
        changed(r, metrics={"rmse": r.metrics["rmse"] + (0.2 * (r.seed - 2) if r.library == "catboost" else 0.0)})
        for r in scores(gaps, 0.0002, libraries=FIVE)
    ]
    told = which(results)
    assert told.startswith("any of these three: ")
    assert "is plausible (less than 1 % counts as equal). Cannot say about catboost: " in told
    assert answer(results)["How sure"] == f"95 % sure of these three, from {SPLITS}."
    assert told.endswith("Worse than boosters: sklearn.")


def test_the_short_table_tells_why_equal_scores_have_different_verdicts():
    results = [
        changed(
            r, metrics={"rmse": r.metrics["rmse"] + (0.05 * (r.seed % 2 - 0.4) if r.library == "lightgbm" else 0.0)}
        )
        for r in scores({"xgboost": 0.00001}, 0.0002)
    ]
    report = build_tables(factories.collection(results))
    (section, *_) = shorten(report).sections
    table = section.blocks[0].table
    assert table.row_facts == ("RMSE against the best",)
    shown = {row.label: row.facts[-1] for row in table.rows}
    assert shown["boosters"] == "best mean"
    assert re.fullmatch(r"as good: [-+]0\.\d\d to \+0\.\d\d %", shown["xgboost"])
    assert re.fullmatch(r"cannot say: -\d(\.\d\d|\d\.\d) to \+\d(\.\d\d|\d\.\d) %", shown["lightgbm"])
    assert [row.standing for row in report.tables[0].rows] == list(shown.values())


def test_the_short_table_tells_a_gap_that_may_be_all_of_the_error_in_percent_too():
    results = [
        changed(r, metrics={"rmse": r.metrics["rmse"] + (0.9 * (r.seed % 2 - 0.4) if r.library == "xgboost" else 0.0)})
        for r in scores(libraries=FIVE[:2])
    ]
    best, other = sorted(row.standing for row in table_of(results).rows)
    assert best == "best mean"
    assert other == "cannot say: -100 to +100 %"
    single = table_of(scores(spread=0.001, seeds=1, libraries=FIVE[:2]))
    assert [row.standing for row in single.rows] == ["best mean", "cannot say: one split"]


def test_the_short_table_tells_how_many_splits_a_row_has_where_some_failed():
    results = [r for r in scores(spread=0.001) if r.library != "xgboost" or r.seed < 3000]
    errors = [factories.error(results[0].config_name, "xgboost", seed) for seed in (4053, 5390)]
    (section, *_) = shorten(build_tables(factories.collection(results, errors))).sections
    table = section.blocks[0].table
    told = {row.label: row.facts[-1] for row in table.rows}
    assert told["xgboost"].endswith(", 3 of 5 splits")
    assert not any("splits" in said for name, said in told.items() if name != "xgboost")
    assert not table.is_counted


def test_nothing_is_sure_of_suspect_data():
    finding = AuditFinding(kind="leak", text="'x' alone predicts 'y': R² 1.0", option="--drop x")
    audits = {"toy": DataAudit(dataset="toy", task=Task.REGRESSION, rows=100, findings=(finding,))}
    found = factories.remember(factories.collection(scores({"xgboost": -0.1}, 0.001)), audits=audits)
    lines = build_tables(found).answer
    assert lines[0].startswith("Which: no answer yet. The data are suspect: ")
    assert lines[1] == "How sure: not sure: once the data are fixed, the order may change."


@pytest.mark.parametrize(
    ("kind", "text", "option", "added"),
    [
        ("own-treatment", "libraries treat 'city' each in its own way", "--profile both", "--profile both"),
        ("time-order", "'day' rises from row to row", "--split time:day", "--split time:day"),
    ],
)
def test_what_columns_do_to_the_answer_is_told_and_comes_before_more_splits(kind, text, option, added):
    finding = AuditFinding(kind=kind, text=text, option=option)
    audits = {"toy": DataAudit(dataset="toy", task=Task.REGRESSION, rows=100, findings=(finding,))}
    results = scores({"xgboost": 0.01}, libraries=FIVE[:2])
    assert "--seeds" in next_of(results)
    assert next_of(results, audits=audits).endswith(f"boosters-eval {' '.join(COMMAND)} {added}")
    lines = build_tables(factories.remember(factories.collection(results), audits=audits)).answer
    assert lines[1].endswith(f" {text[:1].upper()}{text[1:]} ({option}).")


def test_a_single_split_allows_no_verdict():
    told = answer(scores(spread=0.001, seeds=1, libraries=FIVE[:2]))
    assert told["Which"] == "cannot say from a single split: boosters has the best RMSE."
    assert told["How sure"] == "not sure: one split cannot tell a lead from chance."
    assert told["Next"] == "more splits than one would tell: call compare() again with seeds=5"


def test_one_row_with_results_has_nothing_to_be_compared_with():
    told = which(scores(libraries=("boosters",), seeds=3))
    assert re.fullmatch(
        r"only boosters has results, so there is nothing to compare it with\. Its RMSE is (0\.\d{4}), over 3 splits\.",
        told,
    )
    (section, *_) = shorten(build_tables(factories.collection(scores(libraries=("boosters",), seeds=3)))).sections
    assert f" {section.blocks[0].table.rows[0].cells[0].text}," in told  # the same digits


def test_scores_that_hardly_differ_are_no_range_from_nothing_to_nothing():
    results = [
        changed(r, metrics={"rmse": 0.5 + (1e-6 * (1 + r.seed % 5) if r.library == "xgboost" else 0.0)})
        for r in scores(libraries=FIVE[:2])
    ]
    assert sorted(row.standing for row in table_of(results).rows) == ["as good: within 0.01 %", "best mean"]


def test_the_short_table_names_variants_as_the_answer_does():
    results = [changed(r, variant=name) for name in ("deep", "flat") for r in scores(libraries=("xgboost",))]
    (section, *_) = shorten(build_tables(factories.collection(results))).sections
    table = section.blocks[0].table
    assert table.row_names == ("Library, variant",)
    assert [row.names for row in table.rows] == [("xgboost deep",), ("xgboost flat",)]


def test_whoever_failed_or_is_absent_is_told():
    failed = [factories.error(library="catboost", seed=seed) for seed in (1, 2)]
    partly = [factories.error(library="lightgbm", seed=99)]
    absent = factories.absence(Unavailable, factories.CONFIG, "sklearn", "it is not installed")
    told = which(scores({"xgboost": -0.1}, 0.001), [*failed, *partly], unavailable=[absent])
    assert told.endswith(
        "the next. 1 of 6 cells of lightgbm failed (WorkerDied: killed by SIGSEGV). All cells of catboost failed"
        " (WorkerDied: killed by SIGSEGV). Unavailable: sklearn."
    )
    assert which([], failed) == "no answer: every cell failed (WorkerDied: killed by SIGSEGV)."


def test_flaky_cells_and_an_incomplete_run_are_told():
    assert answer(scores(failed_before=1))["How sure"].endswith(". 15 cells finished only after failing.")
    missing = factories.remember(factories.collection(scores()), n_missing=2, n_cells=17)
    lines = build_tables(missing).answer
    assert lines[1].endswith(". The run is incomplete.")
    assert lines[-1] == "Next: finish the run: call compare() again with resume=True"


def test_a_version_that_the_mapping_was_never_verified_for_is_told_beside_the_verdict():
    version = "version 1.7.6 is outside the range 2.1 to 3.1 for which the mapping was verified"
    marks = (Mark(parameter="version", kind="approximated", reason=version),)
    other = (Mark(parameter="min_samples_leaf", kind="approximated", reason="of a node"),)
    results = [
        changed(one, marks=marks if one.library == "xgboost" else other) for one in scores({"xgboost": -0.1}, 0.001)
    ]
    assert answer(results)["How sure"].endswith(
        ". This version of xgboost was never checked: its settings may not mean what was asked for."
    )
    table = table_of(results)
    assert f"xgboost: {version}." in table.notes
    assert not any("of a node" in note for note in table.notes)


@pytest.mark.parametrize(("leaves", "told"), [(160, "larger 1.6 times"), (50, "smaller 50.0 % of"), (120, "")])
def test_an_approximated_mapping_is_told_where_it_changes_the_size_of_models(leaves, told):
    marks = (Mark(parameter="max_leaves", kind="approximated", reason="symmetric trees"),)
    results = [
        changed(one, marks=marks, n_leaves_total=leaves)
        if one.library == "xgboost"
        else changed(one, n_leaves_total=100)
        for one in scores({"xgboost": -0.1}, 0.001)
    ]
    sure = answer(results)["How sure"]
    size, _, said = told.partition(" ")
    doubt = f"xgboost grows {size} trees than the others ({said} their leaves), as it has no setting like theirs."
    assert (doubt in sure) if told else ("leaves" not in sure)


def test_a_winner_that_is_no_better_than_a_trivial_rule_has_won_nothing():
    rule = {"trivial": {"mean": {"rmse": 0.39}}}
    assert which(scores({"xgboost": -0.1}, 0.001, **rule)).startswith(
        "none. Nothing is better than predicting the mean (0.3900): xgboost comes nearest, with RMSE 0.40"
    )
    rule = {"trivial": {"mean": {"rmse": 0.45}}}
    told = which(scores({"xgboost": -0.1}, 0.001, **rule))
    assert told.startswith("xgboost is best")
    assert told.endswith(". Not better than predicting the mean (0.4500): boosters and lightgbm.")


def test_scores_that_are_not_finite_are_no_verdict():
    assert which(factories.grid(lambda *_: math.nan)) == "cannot say: no two have a value of RMSE that can be compared."


def test_times_decide_only_if_they_were_taken_in_timing_mode():
    options = {"metrics": ()}
    assert which(scores(train_time_s=0.3), options=options) == (
        "no answer: times are indicative only: not taken with 'timing_mode'."
    )
    timed = [
        changed(r, train_time_s=(1 + i / 1000) * (2.0 if r.library == "boosters" else 1.0), timing_mode=True)
        for i, r in enumerate(scores(libraries=FIVE[:2]))
    ]
    assert which(timed, options=options) == "xgboost is better than boosters. Its training time is 49.8 % lower."


def test_what_it_costs_is_told_with_how_it_was_measured():
    rough = [
        changed(r, train_time_s=0.5 if r.library == "boosters" else 2.0, model_size_mb=0.25)
        for r in scores(libraries=FIVE[:2])
    ]
    assert answer(rough)["Cost"] == (
        "to train and store one model: boosters 0.50 s, 0.25 MB; xgboost 2.0 s, 0.25 MB. Rough times, on 1"
        " thread, not alone on the machine."
    )
    timed = [changed(r, timing_mode=True, n_threads=2, cpu_taken=0.0) for r in rough]
    assert answer(timed)["Cost"].endswith(". Timed on 2 threads, alone on the machine.")
    busy = [changed(r, cpu_taken=0.9) for r in timed]
    assert answer(busy)["Cost"].endswith(". Rough times: the machine was busy.")


def test_a_metric_without_a_known_direction_has_no_verdict():
    assert which(scores(metric="mine")) == "no answer: whether a higher or a lower mine is better is not known here."


@pytest.mark.parametrize("test", ["welch", "wilcoxon", "paired", "corrected"])
@pytest.mark.parametrize("gap", [0.0, 0.002, 0.1])
def test_it_announces_a_winner_exactly_where_one_is_highlighted(test, gap):
    for spread in (0.0005, 0.01):
        table = table_of(scores({"xgboost": -gap}, spread, seeds=8), options={"test": test})
        best = [row.label for row in table.rows if row.cells[0].best]
        assert [name for name in FIVE if table.answer[0].startswith(f"Which: {name} is best. ")] == best


def test_many_rows_are_counted():
    told = which(scores(libraries=[f"library{i}" for i in range(9)], spread=0.003))
    assert " and 3 others may be up to " in told


def test_variants_have_their_full_names():
    results = [
        changed(r, config_name=f"toy/gbdt/{v}", variant=v, metrics={"rmse": share * r.metrics["rmse"]})
        for v, share in (("deep", 0.8), ("flat", 1.0))
        for r in scores(spread=0.001, libraries=("boosters",))
    ]
    assert which(results).startswith("boosters deep is better than boosters flat. Its RMSE is 20.0 %")


# What to run next.
COMMAND = ("compare", "-d", "iris", "-l", "boosters", "xgboost")


def next_of(results, errors=(), command=COMMAND, **metadata):
    facts = {"environment": {"command": command}} if command else {}
    found = factories.remember(factories.collection(results, errors, run_id="0123456789abcdef"), **facts, **metadata)
    return dict(line.split(": ", 1) for line in build_tables(found).answer).get("Next", "")


def parse(line):
    """The request that the command of a line makes: it is refused if an option or a value is wrong."""
    _, _, command = line.partition(": boosters-eval ")
    made = []
    path, *words = shlex.split(command)
    command_at(path, lambda kind, given: made.append(kind(**given))).main(words, standalone_mode=False)
    return made[0]


def advised(table, level):
    """The fewest seeds that would probably detect one of the leader's gaps, or half of one, computed again."""
    (pair,) = [p for p in table.pairs if p.metric == "rmse"]
    for share, chance in ((1, "would probably"), (0.5, "might")):
        for seeds in (10, 20, 50, 100):
            if share * detectable_with(seeds, pair.detectable, pair.n, level=level, overlap=0.25) <= abs(
                pair.difference
            ):
                return seeds, chance
    return None


def test_more_seeds_are_advised_where_they_would_show_more():
    results = scores({"xgboost": 0.01}, libraries=FIVE[:2])
    seeds, chance = advised(table_of(results), 0.05)
    line = next_of(results)
    assert line == (
        f"{seeds} seeds (one split each) {chance} show more:"
        f" boosters-eval compare -d iris -l boosters xgboost --seeds {seeds}"
    )
    assert parse(line).seeds == seeds
    assert next_of(results, command=(*COMMAND, "-s", "5")) == line
    assert next_of(results, command=(*COMMAND, "--seeds=5", "--name", "mine", "-o", "x.md", "-q")) == line


@pytest.mark.parametrize("seeds", [5, 50])
def test_more_seeds_are_not_advised_where_no_practical_number_would_help(seeds):
    line = next_of(scores(seeds=seeds))
    assert line.startswith("more rows might decide it, more splits hardly. To choose by the cost, measure it fairly: ")
    assert parse(line).timing_mode


def test_predictions_are_advised_before_more_seeds_where_they_were_left_out():
    results, command = scores({"xgboost": 0.01}, libraries=FIVE[:2]), (*COMMAND, "--no-predictions")
    line = next_of(results, command=command)
    assert line == "rows would tell more than splits alone: boosters-eval compare -d iris -l boosters xgboost"
    assert parse(line).predictions
    won = scores({"xgboost": -0.1}, 0.001)
    windows = [changed(r, split=SplitFacts(kind="time", column="t"), seed=0, fold=r.seed) for r in scores()]
    for decided in (won, windows):
        assert next_of(decided, command=command).endswith("--no-predictions --timing-mode")


def test_folds_are_repeated_where_folds_were_asked_for():
    folded = [
        changed(r, fold=place % 5, seed=place // 5, split_digest=factories.digest(place))
        for library in FIVE[:2]
        for place, r in enumerate(scores({"xgboost": 0.008}, libraries=(library,), seeds=10))
    ]
    line = next_of(folded, command=("compare", "-d", "iris", "--cv", "5x2"))
    assert line.endswith("boosters-eval compare -d iris --cv 5x5")
    assert parse(line).cv == "5x5"


def test_seeds_are_not_advised_after_auto_or_where_they_share_one_split():
    assert "--seeds" not in next_of(scores(), seeds_rule="seeds were added at one look")
    shared = [changed(r, split_digest=factories.digest(r.seed % 2)) for r in scores(seeds=6)]
    assert "--seeds" not in next_of(shared)


@pytest.mark.parametrize(
    "split",
    [SplitFacts(kind="time", column="t"), SplitFacts(kind="group", column="g", n_train_groups=32, n_valid_groups=8)],
)
def test_seeds_are_not_advised_where_they_add_neither_windows_nor_groups(split):
    assert "--seeds" not in next_of([changed(r, split=split, seed=0, fold=r.seed) for r in scores()])


def test_the_next_command_acts_on_a_leak_a_failure_and_an_interruption():
    finding = AuditFinding(kind="leak", text="'x y' alone predicts 'y': R² 1.0", option="--drop 'x y'")
    audits = {"toy": DataAudit(dataset="toy", task=Task.REGRESSION, rows=100, findings=(finding,))}
    typed = ("compare", "-d", "my data.csv:y")
    line = next_of(scores(), command=typed, audits=audits)
    assert line == "leave that column out: boosters-eval compare -d 'my data.csv:y' --drop 'x y'"
    assert parse(line).drop == ("x y",)
    error = factories.error(library="xgboost", seed=77)
    assert next_of(scores(), [error]).endswith("boosters-eval compare -d iris -l boosters xgboost --rerun-failed")
    assert next_of(scores(), n_missing=1, n_cells=20).endswith(" --resume")


def test_one_command_acts_on_all_that_is_suspect():
    found = (
        ("leak", "--drop x; or --split group:x"),
        ("groups", "--split group:'the patient'"),
        ("duplicate-rows", "--split group:z --keep z"),
        ("id", "--drop n"),
    )
    findings = tuple(AuditFinding(kind=kind, text="'x' is suspect", option=option) for kind, option in found)
    audits = {"toy": DataAudit(dataset="toy", task=Task.REGRESSION, rows=100, findings=findings)}
    line = next_of(scores(), command=("compare", "-d", "toy.csv:y", "--split", "random"), audits=audits)
    why = "leave that column out, keep each group on one side of the split and leave out what names rows"
    assert line == f"{why}: boosters-eval compare -d toy.csv:y --drop x --split group:'the patient' --drop n"
    assert parse(line).drop == ("x", "n")


def test_of_several_data_sets_only_the_one_with_the_leak_is_run_again():
    finding = AuditFinding(kind="leak", text="'x' alone predicts 'y': R² 1.0", option="--drop x")
    audits = {"toy.y": DataAudit(dataset="toy.y", task=Task.REGRESSION, rows=100, findings=(finding,))}
    results = [changed(r, dataset_name="toy.y", config_name="toy.y/gbdt") for r in scores()]
    other = [changed(r, dataset_name="iris", config_name="iris/gbdt") for r in scores()]
    line = next_of([*results, *other], command=("compare", "-d", "iris", "a/toy.csv:y", "-s", "5"), audits=audits)
    assert line == "on toy.y, leave that column out: boosters-eval compare -s 5 -d a/toy.csv:y --drop x"


def test_more_splits_are_advised_only_where_they_may_show_more():
    close = [changed(r, dataset_name="iris", config_name="iris/gbdt") for r in scores({"xgboost": 0.01})]
    won = [changed(r, dataset_name="toy.y", config_name="toy.y/gbdt") for r in scores({"xgboost": -0.1}, 0.001)]
    line = next_of([*close, *won], command=("compare", "-d", "a/toy.csv:y", "iris", "-q"))
    whole = r"\d+ seeds \(one split each\) \w+( \w+)? show more on iris: boosters-eval compare -d iris --seeds \d+"
    assert re.fullmatch(whole, line)


def test_a_row_of_which_nothing_is_known_does_not_hide_what_is_known_of_others():
    results = [
        changed(r, metrics={"rmse": r.metrics["rmse"] + (0.3 * (r.seed - 2) if r.library == "lightgbm" else 0.0)})
        for r in scores()
    ]
    told = which(results)
    assert "boosters has the best mean RMSE, but xgboost may be up to " in told
    assert told.endswith(" % worse, and next to nothing is known of lightgbm.")


def test_where_nothing_is_learned_smaller_trees_are_advised_and_not_more_splits():
    rule = {"trivial": {"mean": {"rmse": 0.3}}, "booster_type": "gbdt"}
    results = scores({"xgboost": 0.01}, libraries=FIVE[:2], **rule)
    line = next_of(results)
    assert line.startswith("smaller trees might learn more: boosters-eval compare ")
    assert parse(line).param == ("max_depth=2",)
    for more in (["-p", "max_depth=3"], ["--growth", "leafwise"], ["--profile", "defaults"]):
        assert next_of(results, command=[*COMMAND, *more]) == ""


def test_a_run_that_was_rescored_is_rescored_again():
    results = scores({"xgboost": 0.01}, libraries=FIVE[:2])
    asked = {"rescored": ("--metric", "my own.py:worst")}
    assert next_of(results, **asked).endswith(" && boosters-eval rescore last --metric 'my own.py:worst'")
    assert next_of(results, command=(), **asked).endswith(", then rescore() it")
    asked = {"rescored": ("--metric", "worst"), "user_metrics": {"worst": False}}  # which no command can name
    assert next_of(results, **asked).endswith(", then rescore() it")


@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_command_on_a_terminal_is_the_same_to_a_shell_however_it_is_broken(width):
    facts = {"environment": {"command": (*COMMAND, "--name", "my run")}, "rescored": ("--metric", "my own.py:worst")}
    found = factories.remember(factories.collection(scores({"xgboost": 0.01}, libraries=FIVE[:2])), **facts)
    report, screen = build_tables(found), io.StringIO()
    print_document(report.summary(), Console(file=screen, width=width, force_terminal=True, color_system=None))
    shown = screen.getvalue().partition("Next: ")[2]
    shown = shown[shown.index("boosters-eval") :].replace("\\\n", "")
    said = report.answer[-1]
    read = [list(shlex.shlex(text, posix=True, punctuation_chars=True)) for text in (shown, said)]
    assert "&&" in read[0]
    assert read[0] == read[1][read[1].index("boosters-eval") :]


def test_one_library_is_to_be_compared_with_others():
    line = next_of(scores(libraries=("boosters",)), command=("compare", "-l", "boosters", "-d", "iris"))
    assert line == "compare with all that is installed: boosters-eval compare -d iris"
    assert next_of(scores(libraries=("boosters",)), command=("run", "--suite", "mine.py:ABLATION")) == ""


def test_a_winner_is_weighed_by_its_cost_and_then_read():
    won = scores({"xgboost": -0.1}, 0.001)
    assert next_of(won).startswith("weigh the cost, measured fairly: ")
    assert next_of([changed(r, timing_mode=True, train_time_s=1.0) for r in won]) == ""  # its folder is not here


def test_from_python_the_command_is_made_from_the_results_or_the_parameter_is_named():
    won = scores({"xgboost": -0.1}, 0.001)
    known = [changed(r, dataset_name="iris", config_name="iris/gbdt") for r in won]
    line = next_of(known, command=())
    assert line.startswith("weigh the cost, measured fairly: boosters-eval compare --dataset iris ")
    assert parse(line).timing_mode
    assert parse(next_of(known, command=(), margin=("rmse=0.004",))).margin == ("rmse=0.004",)
    assert next_of(won, command=()) == "weigh the cost, measured fairly: call compare() again with timing_mode=True"


def test_every_rendering_shows_the_same_lines():
    found = ResultCollection(scores({"xgboost": -0.1}, 0.001))
    report = build_tables(found)
    markdown, page, notebook = report.to_markdown(), report.to_html(), report._repr_html_()
    data = json.loads(ComparisonFindings(found, CompareRequest()).render("json"))
    assert tuple(data["answer"]) == report.answer
    assert (
        "# boosters, xgboost and lightgbm on toy\n\n## Answer\n\n- **Which:** xgboost is best. Its RMSE is 19.9 %"
        in markdown
    )
    for line in report.answer:
        label, text = line.split(": ", 1)
        assert f"- **{label}:** {text}" in markdown
        assert text.replace(" %", "\u00a0%") in html.unescape(re.sub(r"</?(?:code|span)[^>]*>", "", page))
        assert text.replace(" %", "\u00a0%") in html.unescape(re.sub(r"</?(?:code|span)[^>]*>", "", notebook))


@pytest.mark.parametrize("words", [("--timeout", "0.5"), ("--timeout=0.5",)])
def test_what_was_stopped_is_given_more_time_since_the_same_limit_would_stop_it_again(words):
    stopped = [factories.error(library="xgboost", seed=seed, error_type="Timeout") for seed in (1, 2)]
    command = ("compare", "-d", "iris", *words, "-s", "2")
    assert next_of(scores(), stopped, command=command) == (
        "give what was stopped ten times as long: boosters-eval compare -d iris -s 2 --timeout 5 --rerun-failed"
    )
    crashed = [*stopped, factories.error(library="xgboost", seed=3)]
    assert next_of(scores(), crashed, command=command).startswith("once the cause is fixed, run what failed again: ")


@pytest.mark.parametrize(("margin", "least"), [("1%", 0.01), ("rmse=0.005", 0.005)])
def test_a_gap_that_counts_as_equal_is_never_rounded_to_what_does_not(margin, least):
    for share in (0.994, 0.996, 0.9996):
        shown = _tell_below(share * least, least, is_share=margin == "1%")
        assert float(shown.removesuffix(" %")) < (1 if margin == "1%" else least)
        assert shown.endswith(" %") == (margin == "1%")
    told = which(scores(spread=0.0001), options={"margin": margin})
    assert f"(less than {'1 %' if margin == '1%' else least} counts as equal)" in told
