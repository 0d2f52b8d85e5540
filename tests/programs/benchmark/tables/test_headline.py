"""The answer over all benchmarks: it counts the verdicts, and says what is missing."""

import dataclasses

import pytest

import factories
from boosters_eval.programs.benchmark.records import RunMetadata, Unavailable, Unsupported
from boosters_eval.programs.benchmark.results import ResultCollection
from boosters_eval.programs.benchmark.tables.build import build_tables
from boosters_eval.programs.benchmark.tables.document import BenchmarkDocument, build_document
from boosters_eval.programs.benchmark.tables.headline import find_standings, write_headline

LIBRARIES = ("boosters", "xgboost", "lightgbm")
NOISE = (0.0, 0.0004, -0.0003, 0.0002, -0.0005)


def run(*means, seeds=5, **options):
    """A data set for each tuple of means, one mean per library."""
    results = [
        factories.result(
            f"d{position}/gbdt", library, seed, mean * (1 + 0.01 * seed) + NOISE[(seed * (rank + 2) + rank) % 5]
        )
        for position, row in enumerate(means)
        for rank, (library, mean) in enumerate(zip(LIBRARIES, row, strict=False))
        for seed in range(seeds)
    ]
    return ResultCollection(results, **options)


CLEAR, SAME, BEHIND = (0.5, 0.8, 0.9), (0.5, 0.5, 0.5), (0.5, 0.5, 0.9)


def test_the_libraries_that_are_best_are_counted_and_so_are_the_benchmarks_without_one():
    first, ranks = build_document(run(CLEAR, CLEAR, CLEAR[::-1], SAME)).headline
    assert first == "boosters is best on 2 of 4 benchmarks, lightgbm on 1; on 1 no library is clearly best."
    assert ranks == "The average ranks over 4 data sets (gbdt) are descriptive only: there are too few to test."


def test_that_nobody_can_be_told_apart_is_an_answer_too():
    assert build_document(run(SAME, SAME)).headline[0] == (
        "No library is clearly best on any benchmark: the libraries cannot be told apart."
    )
    assert build_document(run(SAME, BEHIND)).headline[0] == (
        "No library is clearly best on any benchmark: the leaders cannot be told apart, though some libraries"
        " are behind."
    )


def test_libraries_that_differ_behind_an_unsteady_leader_are_not_called_alike():
    unsteady = (0.1, -0.1, 0.08, -0.09, 0.0)
    means = {"boosters": 0.5, "xgboost": 0.6, "lightgbm": 0.49}
    results = [
        factories.result(
            f"{data}/gbdt", name, seed, mean + (unsteady[seed] if name == "lightgbm" else NOISE[seed] / (1 + mean))
        )
        for data in ("a", "b")
        for name, mean in means.items()
        for seed in range(5)
    ]
    document = build_document(ResultCollection(results))
    assert "boosters is better than xgboost" in document.tables[0].notes[0]
    assert document.headline[0] == (
        "No library is clearly best on any benchmark: the leaders cannot be told apart, though some of the others can."
    )


def test_the_answer_on_a_single_benchmark_is_that_of_its_table():
    document = build_document(run(CLEAR))
    assert document.headline == (document.tables[0].answer,)
    assert document.headline[0].startswith("boosters is best: ")
    assert document.leaderboard is None
    assert document.to_html().count(document.headline[0].replace(" %", "\u00a0%")) == 1


def test_an_option_in_an_answer_is_code_on_the_page():
    document = build_document(run(SAME, suite="compare")).model_copy(update={"headline": ("Try `--seeds 9`, <b>.",)})
    assert '<p class="headline">Try <code>--seeds 9</code>, &lt;b&gt;.</p>' in document.to_html()


def test_failures_absences_and_missing_cells_are_part_of_the_headline():
    found = run(
        CLEAR,
        CLEAR,
        unsupported=[factories.absence(Unsupported, "d0/gbdt", "catboost", "it cannot")],
        unavailable=[factories.absence(Unavailable, f"d{i}/gbdt", "sklearn", "not here") for i in range(2)],
        metadata=RunMetadata(n_cells=40, n_missing=1),
    )
    found.errors = [factories.error("d0/gbdt", "catboost", 1), factories.error("d1/gbdt", "catboost", 2)]
    assert build_document(found).headline[2:] == (
        "2 cells of 32 failed (catboost 2).",
        "The run is incomplete: 1 cell has no outcome.",
        "catboost is not supported in 1 benchmark.",
        "sklearn is unavailable in 2 benchmarks.",
    )


def test_a_leader_by_rank_is_named_with_those_it_is_not_separated_from():
    document = build_document(run(*[CLEAR] * 10))
    assert "boosters has the best average rank over 10 data sets (gbdt), 1.00, and is separated from all others." in (
        document.headline
    )
    close = [(0.5, 0.5 + 0.001 * (-1) ** i, 0.9) for i in range(10)]
    (sentence,) = [text for text in build_document(run(*close)).headline if "average rank" in text]
    assert sentence == (
        "boosters has the best average rank over 10 data sets (gbdt), 1.50, but is not separated from xgboost."
    )
    rows = build_document(run(*close)).leaderboard.rows
    assert [row[1] for row in rows[:2]] == ["1.50, tied", "1.50, tied, not separable from the best"]


def test_times_that_may_not_be_judged_give_no_verdict():
    timed = [r.model_copy(update={"train_time_s": 1.0 + r.seed}) for r in run(CLEAR, CLEAR).results]
    document = build_document(ResultCollection(timed), "performance")
    assert document.headline[0].startswith("Nothing is judged here")
    assert document.leaderboard is None


def test_no_result_is_said():
    assert build_document(ResultCollection()).headline == ("No cell finished, so there is no answer.",)


def test_where_a_trivial_prediction_wins_nobody_is_best_and_it_is_said():
    found = run(CLEAR, CLEAR)
    results = [
        r.model_copy(update={"trivial": {"mean": {"rmse": 0.1}}}) if r.config_name == "d0/gbdt" else r
        for r in found.results
    ]
    document = build_document(ResultCollection(results))
    assert document.headline[0] == "boosters is best on 1 of 2 benchmarks; on 1 no library is clearly best."
    assert "On d0/gbdt no library is better than a trivial prediction." in document.headline


@pytest.mark.parametrize("rule", [0.1, 0.4999999])
def test_a_leader_that_loses_to_a_trivial_prediction_is_not_said_to_be_level_with_others(rule):
    results = [
        factories.result(f"d{position}/gbdt", library, seed, value, trivial={"mean": {"rmse": rule}})
        for position in range(2)
        for library, value in (("boosters", 0.4999998), ("xgboost", 0.8))
        for seed in range(6)
    ]
    assert build_document(ResultCollection(results)).headline[:3:2] == (
        "No library is clearly best on any benchmark.",
        "On d0/gbdt and d1/gbdt no library is better than a trivial prediction.",
    )


def test_the_leaderboard_counts_every_benchmark_once_for_each_library():
    found = run(CLEAR, BEHIND, SAME)
    found.errors = [factories.error("d0/gbdt", "catboost", seed) for seed in range(5)]
    board = build_document(found).leaderboard
    assert board.name == "Leaderboard over 3 benchmarks"
    assert board.headings == (
        *("Library", "Average rank (gbdt)", "Best", "Not told apart from the best", "Behind", "No result"),
        "Failed cells",
    )
    counts = {row[0]: row[2:] for row in board.rows}
    assert counts["boosters"] == (1, 2, 0, 0, 0)
    assert counts["lightgbm"] == (0, 1, 2, 0, 0)
    assert counts["catboost"] == (0, 0, 0, 1, 5)
    assert all(sum(row[:-1]) == 3 for name, row in counts.items() if name != "catboost")


@pytest.mark.parametrize("render", [BenchmarkDocument.to_html, BenchmarkDocument.to_markdown])
def test_headline_and_leaderboard_are_in_the_page_and_in_markdown(render):
    text = render(build_document(run(CLEAR, CLEAR)))
    assert "boosters is best on 2 of 2 benchmarks." in text
    assert "Leaderboard over 2 benchmarks" in text


def test_standings_follow_the_verdicts_against_the_leader():
    (table,) = build_tables(run(BEHIND)).tables
    assert find_standings(table) == {"boosters": "leading", "xgboost": "leading", "lightgbm": "behind"}
    assert find_standings(dataclasses.replace(table, columns=())) == {}
    assert write_headline((), (), ResultCollection(), alpha=0.05) == ("No cell finished, so there is no answer.",)
