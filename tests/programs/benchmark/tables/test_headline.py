"""The answer over all tables: it counts the verdicts, and says what changes it."""

import dataclasses

import pytest

import factories
from boosters_eval.datasets.config import AuditFinding, DataAudit
from boosters_eval.metrics.task import Task
from boosters_eval.programs.benchmark.records import RunMetadata, Unavailable, Unsupported
from boosters_eval.programs.benchmark.results import ResultCollection
from boosters_eval.programs.benchmark.tables.brief import shorten
from boosters_eval.programs.benchmark.tables.build import build_tables
from boosters_eval.programs.benchmark.tables.document import BenchmarkDocument, build_document
from boosters_eval.programs.benchmark.tables.headline import find_standings

LIBRARIES = ("boosters", "xgboost", "lightgbm")
NOISE = (0.0, 0.0004, -0.0003, 0.0002, -0.0005)


def run(*means, seeds=5, spread=1.0, **options):
    """A data set for each tuple of means, one mean per library."""
    results = [
        factories.result(
            f"d{position}/gbdt",
            library,
            seed,
            mean * (1 + 0.01 * seed) + spread * NOISE[(seed * (rank + 2) + rank) % 5],
            train_time_s=0.1 * (rank + 1),
            model_size_mb=0.5,
        )
        for position, row in enumerate(means)
        for rank, (library, mean) in enumerate(zip(LIBRARIES, row, strict=False))
        for seed in range(seeds)
    ]
    return ResultCollection(results, **options)


CLEAR, SAME, BEHIND = (0.5, 0.8, 0.9), (0.5, 0.5, 0.5), (0.5, 0.5, 0.9)
OPEN = (0.5, 0.51, 0.52)


def unclear(*means):
    """The same with so much noise that nothing is shown."""
    return run(*means, spread=100.0)


def suspect(kind, dataset="d0", option="--drop x"):
    finding = AuditFinding(kind=kind, text="'x' alone predicts 'y': R² 1.0", option=option)
    return {dataset: DataAudit(dataset=dataset, task=Task.REGRESSION, rows=100, findings=(finding,))}


def told(found, label):
    """The line of the answer that begins so."""
    (line,) = [line for line in build_tables(found).answer if line.startswith(f"{label}: ")]
    return line.removeprefix(f"{label}: ")


def test_of_three_tables_or_more_the_answer_counts_who_was_shown_to_be_best_or_as_good():
    assert told(run(CLEAR, CLEAR, CLEAR[::-1], BEHIND), "Which") == (
        "boosters, on 3 of 4 data sets (best on 2, as good as the best on 1). Then lightgbm on 1, xgboost on 1. Shown"
        " to be worse: xgboost on 3, lightgbm on 3, boosters on 1."
    )


def test_equivalent_and_cannot_say_are_never_counted_together():
    found = [*run(BEHIND).results, *(r for r in unclear(SAME, OPEN).results if r.dataset_name == "d1")]
    found += [r.model_copy(update={"config_name": "d2/gbdt", "dataset_name": "d2"}) for r in unclear(OPEN).results]
    report = build_tables(ResultCollection(found))
    assert "Cannot say on 2 (d1 and d2)" in report.answer[0]
    assert "boosters and xgboost, each as good as the best on 1 of 3 data sets" in report.answer[0]
    board = {
        row[0]: dict(zip(report.leaderboard.headings[2:], row[2:], strict=True)) for row in report.leaderboard.rows
    }
    assert board["boosters"] == {"Best": 0, "As good as the best": 1, "Cannot say": 2, "Worse": 0}
    facts = {fact.label: fact.value for fact in build_document(ResultCollection(found)).facts}
    pairs = [pair.verdict for table in report.tables for pair in table.pairs if pair.metric == "rmse"]
    assert facts["Pairs: as good"] == str(pairs.count("equivalent"))
    assert facts["Pairs: cannot say"] == str(pairs.count("inconclusive"))
    assert facts["Pairs: one is better"] == str(pairs.count("better") + pairs.count("worse"))


def test_that_nothing_is_shown_anywhere_is_an_answer_too():
    assert told(unclear(SAME, SAME, SAME), "Which") == (
        "cannot say on any of the 3 data sets: no library is shown to be the best, or as good as the best."
    )
    assert told(unclear(SAME, SAME, SAME), "How sure").startswith("not sure of any order. ")


def test_of_two_tables_both_are_answered():
    lines = build_tables(run(CLEAR, BEHIND)).answer
    assert lines[0].startswith("Which, on d0: boosters is best. Its RMSE is 37.")
    assert lines[1].startswith("Which, on d1: either of these two: boosters and xgboost. No difference above ")
    assert lines[2].startswith("How sure: on d0, 95 % sure, from 5 splits of 20 test rows. The lead over xgboost is ")
    assert lines[2].endswith(" %. On d1, 95 % sure, from 5 splits of 20 test rows.")
    assert lines[3].startswith(
        "Cost: to train and store one model (mean of both data sets): boosters 0.10 s, 0.50 MB; xgboost 0.20 s, "
    )


def test_of_two_tables_what_is_true_of_both_is_told_once():
    found = run(CLEAR, BEHIND)
    found.errors = [factories.error(f"d{place}/gbdt", "catboost", seed) for place in (0, 1) for seed in range(5)]
    found.errors += [factories.error("d0/gbdt", "sklearn", seed) for seed in range(5)]
    lines = build_tables(found).answer
    assert "catboost" not in lines[0]
    assert lines[0].endswith(". All cells of sklearn failed (WorkerDied: killed by SIGSEGV).")
    assert lines[1].endswith(". On both, all cells of catboost failed (WorkerDied: killed by SIGSEGV).")


def test_of_two_tables_suspect_data_are_answered_by_what_is_suspect_alone():
    lines = build_tables(run(CLEAR, BEHIND, metadata=RunMetadata(audits=suspect("leak")))).answer
    assert lines[0] == "Which, on d0: no answer yet. The data are suspect: 'x' alone predicts 'y' (--drop x)."
    assert "suspect" not in lines[1]


@pytest.mark.parametrize("tables", [1, 2, 3, 9])
def test_an_answer_has_at_most_four_lines_for_a_table_and_six_for_a_run(tables):
    found = run(*[CLEAR] * tables, metadata=RunMetadata(audits=suspect("leak"), n_cells=300, n_missing=1))
    found.errors = [factories.error("d0/gbdt", "catboost", seed) for seed in range(5)]
    report = build_tables(found)
    assert len(report.answer) <= (4 if tables == 1 else 6)
    assert all(len(table.answer) <= 4 for table in report.tables)
    assert not any("\n" in line for line in report.answer)


def test_the_answer_of_a_single_table_is_its_own_with_what_to_run_next():
    document = build_document(run(CLEAR))
    assert document.answer[:-1] == document.tables[0].answer
    assert document.leaderboard is None
    said = document.answer[0].removeprefix("Which: ").replace(" %", "\u00a0%")
    assert document.to_html().count(said) == 1


def test_an_option_in_an_answer_is_code_on_the_page():
    document = build_document(run(SAME, suite="compare")).model_copy(update={"answer": ("Try `--seeds 9`, <b>.",)})
    assert '<p class="headline">Try <code>--seeds 9</code>, &lt;b&gt;.</p>' in document.to_html()


def test_failures_absences_and_missing_cells_are_part_of_the_answer():
    found = run(
        CLEAR,
        CLEAR,
        CLEAR,
        unsupported=[factories.absence(Unsupported, "d0/gbdt", "catboost", "it cannot")],
        unavailable=[factories.absence(Unavailable, f"d{i}/gbdt", "sklearn", "not here") for i in range(2)],
        metadata=RunMetadata(n_cells=60, n_missing=1),
    )
    found.errors = [factories.error("d0/gbdt", "catboost", 1), factories.error("d1/gbdt", "catboost", 2)]
    assert told(found, "But").startswith(
        "2 cells of 47 failed (catboost 2); the run is incomplete: 1 cell has no outcome; catboost is not supported on"
        " 1 data set; sklearn is unavailable on 2 data sets"
    )


def test_the_overview_marks_data_that_cannot_be_trusted():
    found = build_tables(run(CLEAR, CLEAR, CLEAR, metadata=RunMetadata(audits=suspect("groups"))))
    (overview,) = shorten(found).sections[0].blocks
    assert [row[0] for row in overview.rows] == ["d0 (suspect data)", "d1", "d2"]


def test_the_cost_of_one_of_two_data_sets_says_of_which_it_is():
    found = run(CLEAR, CLEAR[:2])
    assert told(found, "Cost").startswith("to train and store one model on d0: boosters 0.10 s")


def test_a_leak_is_named_first_and_its_data_set_is_not_counted():
    found = run(CLEAR, CLEAR, CLEAR, CLEAR[::-1], metadata=RunMetadata(audits=suspect("leak")))
    report = build_tables(found)
    assert "boosters, best on 2 of 3 data sets" in report.answer[0]
    assert "d0: 'x' alone predicts 'y' (--drop x) (not counted)" in told(found, "But")
    assert report.leaderboard.name == "Leaderboard over 3 data sets, without d0 (a leak)"
    assert sum(report.leaderboard.rows[0][2:]) == 3
    (ranking,) = report.rankings
    assert ranking.n == 3
    assert ranking.left_out == ("d0",)
    assert "Left out, because a column gives the target away: d0." in ranking.notes
    alone = build_tables(run(CLEAR, metadata=RunMetadata(audits=suspect("leak")))).answer
    assert alone[0] == "Which: no answer yet. The data are suspect: 'x' alone predicts 'y' (--drop x)."


def test_shown_equivalence_is_a_tie_in_ranks():
    (ranking,) = build_tables(run(*[BEHIND] * 8)).rankings
    assert dict(ranking.ranks) == {"boosters": 1.5, "xgboost": 1.5, "lightgbm": 3.0}
    pairs = {(pair.a, pair.b): pair for pair in ranking.pairs}
    assert (pairs["boosters", "xgboost"].wins, pairs["boosters", "xgboost"].ties) == (0, 8)


def test_a_leader_by_rank_is_named_with_those_it_is_not_separated_from():
    assert told(run(*[CLEAR] * 10), "How sure") == (
        "95 % sure of each answer given. By average rank over 10 data sets, boosters (1.00) is ahead of all others."
    )
    close = run(*[(0.5, 0.5 + 0.001 * (-1) ** i, 0.9) for i in range(10)])
    assert told(close, "How sure").endswith(
        "By average rank over 10 data sets, boosters (1.50) is ahead of all others but xgboost."
    )
    rows = build_document(close).leaderboard.rows
    assert [row[1] for row in rows[:2]] == ["1.50, tied", "1.50, tied, not separable from the best"]


def test_times_that_may_not_be_judged_give_no_verdict():
    document = build_document(run(CLEAR, CLEAR, CLEAR), "performance")
    assert document.answer[0] == "Which: no answer: nothing is judged here."
    assert document.leaderboard is None


def test_no_result_is_said():
    assert build_document(ResultCollection()).answer == ("No cell finished, so there is no answer.",)


def with_rule(found, config, rule):
    return ResultCollection(
        [
            r.model_copy(update={"trivial": {"mean": {"rmse": rule}}}) if r.config_name == config else r
            for r in found.results
        ]
    )


def test_where_a_trivial_prediction_wins_nobody_is_best_and_it_is_said():
    found = with_rule(run(CLEAR, CLEAR, CLEAR), "d0/gbdt", 0.1)
    assert told(found, "Which").startswith("boosters, best on 2 of 3 data sets")
    assert "cannot say" not in told(found, "Which")
    assert told(found, "But") == "on d0 even the best is no better than a trivial rule."
    report = build_tables(found)
    assert find_standings(report.tables[0])["boosters"] == "no better than a trivial rule"
    assert dict(zip(report.leaderboard.headings, report.leaderboard.rows[0], strict=True))["No skill"] == 1


def test_the_leaderboard_counts_every_data_set_once_for_each_library():
    found = run(CLEAR, BEHIND, BEHIND)
    found.errors = [factories.error("d0/gbdt", "catboost", seed) for seed in range(5)]
    board = build_document(found).leaderboard
    assert board.name == "Leaderboard over 3 data sets"
    assert board.headings == (
        *("Library", "Average rank ↓", "Best", "As good as the best", "Cannot say", "Worse", "No result"),
        "Failed cells",
    )
    counts = {row[0]: row[2:] for row in board.rows}
    assert counts["boosters"] == (1, 2, 0, 0, 0, 0)
    assert counts["lightgbm"] == (0, 0, 0, 3, 0, 0)
    assert counts["catboost"] == (0, 0, 0, 0, 1, 5)
    assert all(sum(row[:-1]) == 3 for name, row in counts.items() if name != "catboost")


@pytest.mark.parametrize("render", [BenchmarkDocument.to_html, BenchmarkDocument.to_markdown])
def test_answer_and_leaderboard_are_in_the_page_and_in_markdown(render):
    text = render(build_document(run(CLEAR, CLEAR, CLEAR)))
    assert "boosters, best on 3 of 3 data sets" in text
    assert "Leaderboard over 3 data sets" in text


def test_standings_follow_the_verdicts_against_the_leader():
    (table,) = build_tables(run(BEHIND)).tables
    good = "as good as the best"
    assert find_standings(table) == {"boosters": good, "xgboost": good, "lightgbm": "worse"}
    assert find_standings(dataclasses.replace(table, columns=())) == {}
    (table,) = build_tables(unclear(OPEN)).tables
    assert set(find_standings(table).values()) == {"cannot say"}


def test_the_title_names_what_was_compared():
    assert build_tables(run(CLEAR)).title == "boosters, xgboost and lightgbm on d0"
    assert build_tables(run(*[CLEAR] * 4)).title == "boosters, xgboost and lightgbm on 4 data sets"
    assert build_tables(run(CLEAR, suite="quick")).title == "quick suite: boosters, xgboost and lightgbm on d0"
    assert build_document(run(CLEAR)).title == "Quality report: boosters, xgboost and lightgbm on d0"


def test_of_two_tables_what_is_the_same_is_told_once_and_a_table_without_numbers_is_not_shown():
    errors = [
        factories.error(f"{name}/gbdt", "xgboost", seed, dataset_name=name) for name in ("d0", "d1") for seed in (1, 2)
    ]
    report = build_tables(factories.collection([], errors))
    assert report.answer[0] == ("Which, on d0 and d1: no answer: every cell failed (WorkerDied: killed by SIGSEGV).")
    assert [section.anchor for section in shorten(report).sections] == ["notes"]
