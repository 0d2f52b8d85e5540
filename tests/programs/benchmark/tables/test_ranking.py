"""Ranks over data sets: what is ranked together, and what the picture says."""

import pytest

import factories
from boosters_eval.datasets.config import DataAudit
from boosters_eval.metrics.task import Task
from boosters_eval.programs.benchmark.results import ResultCollection
from boosters_eval.programs.benchmark.tables.build import build_tables
from boosters_eval.programs.benchmark.tables.document import build_document

LIBRARIES = ("boosters", "xgboost", "lightgbm")


def collection(datasets, boosters=("gbdt",), skip=(), metric="rmse", timed=False):
    """The first library always leads by 10 %, the other two differ by turns."""
    out = []
    for position in range(datasets):
        for booster in boosters:
            for rank, library in enumerate(LIBRARIES):
                if (position, library) in skip:
                    continue
                mean = 1.0 + 0.1 * (rank > 0) + 0.001 * rank * (-1) ** position
                out += [
                    factories.result(
                        f"d{position}/{booster}",
                        library,
                        seed,
                        mean + seed / 1000,
                        metric=metric,
                        train_time_s=0.1 * (rank + 1) + seed / 1000,
                        timing_mode=timed,
                    )
                    for seed in range(3)
                ]
    return ResultCollection(out)


def test_the_leader_is_apart_and_the_others_are_joined():
    (ranking,) = build_document(collection(10)).rankings
    assert dict(ranking.ranks) == {"boosters": 1.0, "xgboost": 2.5, "lightgbm": 2.5}
    assert ranking.groups == (("xgboost", "lightgbm"),)
    assert (ranking.n, ranking.measure, ranking.notes) == (10, "primary metric", ())


def test_few_data_sets_are_descriptive_only_and_say_so():
    document = build_document(collection(3))
    (ranking,) = document.rankings
    assert ranking.groups == ()
    assert all(pair.p is None for pair in ranking.pairs)
    assert "n too small" in document.to_markdown()
    assert "descriptive only" in document.to_html()


def test_boosters_on_the_same_data_are_ranked_apart():
    found = build_document(collection(6, boosters=("gbdt", "gblinear"))).rankings
    assert [(ranking.name, ranking.n) for ranking in found] == [("gbdt", 6), ("gblinear", 6)]


def test_data_sets_that_a_library_lacks_are_left_out_by_name():
    document = build_document(collection(8, skip={(2, "xgboost")}))
    assert document.rankings[0].left_out == ("d2",)
    assert "no split there has a result of every library: d2." in document.to_markdown()


def test_a_library_that_fails_on_hard_splits_gains_nothing_by_it():
    hard = (1.0, 1.0, 1.0, 5.0, 5.0)
    results = [
        factories.result(f"d{position}/gbdt", library, seed, factor * hardness + 0.01 * seed)
        for position in range(8)
        for seed, hardness in enumerate(hard)
        for library, factor in (("fails", 1.2), ("good", 1.0))
        if library == "good" or hardness == 1.0
    ]
    document = build_document(ResultCollection(results))
    (ranking,) = document.rankings
    assert ranking.ranks == (("good", 1.0), ("fails", 2.0))
    assert "by the splits that every library has: d0 (3 of 5), d1 (3 of 5)," in document.to_markdown()
    (table, *_) = build_tables(ResultCollection(results), require_significance=False).tables
    assert [(row.label, row.cells[0].best) for row in table.rows] == [("fails", False), ("good", True)]
    best = ResultCollection(results).best("rmse").iloc[0]
    assert (best["leader"], best["n"]) == ("good", 3)
    assert "3 of 5 splits" in best["note"]


def test_more_is_better_where_the_metric_says_so():
    (ranking,) = build_document(collection(8, metric="r2")).rankings
    assert ranking.ranks[-1] == ("boosters", 3.0)


def test_performance_is_ranked_by_training_time():
    (ranking,) = build_document(collection(8, timed=True), "performance").rankings
    assert ranking.measure == "Train time (s)"
    assert [name for name, _ in ranking.ranks] == list(LIBRARIES)
    assert build_document(collection(8), "performance").rankings == ()  # indicative times decide nothing


@pytest.mark.parametrize("case", ["one data set", "one library", "nothing in common", "two configs of a data set"])
def test_what_cannot_be_ranked_is_not(case):
    found = collection(1 if case == "one data set" else 6)
    if case == "one library":
        found = found.filter(library="xgboost")
    elif case == "nothing in common":
        found = collection(6, skip={(i, LIBRARIES[i % 3]) for i in range(6)})
    elif case == "two configs of a data set":
        doubled = [r.model_copy(update={"config_name": f"{r.config_name}-again"}) for r in found.results]
        found = ResultCollection([*found.results, *doubled])
    assert build_document(found).rankings == ()


def test_the_picture_names_every_rank():
    page = build_document(collection(10)).to_html()
    assert "Average ranks of gbdt: boosters 1.00; xgboost 2.50; lightgbm 2.50." in page
    assert page.count('class="clique"') == 1


def apart(gaps, seeds=5):
    """A data set for each gap: b's error is larger by that share, on every split alike but for little noise."""
    noise = (0.0, 0.0004, -0.0003, 0.0002, -0.0005)
    results = [
        factories.result(f"d{number}/gbdt", library, seed, value * (1 + noise[(seed + place) % 5]))
        for number, gap in enumerate(gaps)
        for place, (library, value) in enumerate({"a": 1.0, "b": 1.0 + gap}.items())
        for seed in range(seeds)
    ]
    return ResultCollection(results)


def which(found):
    (line,) = [line for line in build_tables(found).answer if line.startswith("Which")]
    return line


def test_answer_begins_with_who_is_better_in_general_and_by_how_much():
    line = which(apart([0.05, 0.03, 0.06, 0.04, 0.05, 0.04, 0.06, 0.05]))
    assert line.startswith(
        "Which: in general a: over 8 data sets, its error is 4.5 % lower (3.7 % to 5.3 %) than that of b"
    )


def test_means_that_cannot_be_told_apart_are_bounded_both_ways():
    line = which(apart([0.05, -0.03, 0.06, -0.04, 0.05, -0.05, 0.02, -0.02]))
    assert line.startswith("Which: cannot say in general, over 8 data sets. ")
    assert "% better or" in line


def test_equivalent_in_general_is_said_of_both():
    assert which(apart([0.002, -0.001] * 4)).startswith("Which: in general any of a and b, over 8 data sets")


def test_below_six_data_sets_nothing_is_said_in_general():
    found = apart([0.05] * 5)
    assert "in general" not in which(found)
    (ranking,) = build_tables(found).rankings
    assert [pair.share for pair in ranking.pairs] == [None]


def test_data_set_that_the_verdict_hangs_on_is_named():
    report = build_tables(apart([0.05, 0.04, 0.05, 0.06, 0.04, 0.05, 0.05, -0.30]))
    (line,) = [line for line in report.answer if line.startswith("How sure")]
    assert "It hangs on d7: without one of them another answer would be given" in line


def test_kinds_of_data_are_ranked_apart_and_only_described():
    audits = {
        f"d{number}": DataAudit(dataset=f"d{number}", task=Task.REGRESSION, rows=500 if number < 4 else 50_000)
        for number in range(8)
    }
    found = apart([0.05] * 4 + [-0.05] * 4)
    found.metadata = found.metadata.model_copy(update={"audits": audits})
    kinds = build_tables(found).kinds
    assert [row[:2] for row in kinds.rows] == [("below 3000 rows", 4), ("20000 rows and more", 4)]
    assert [row[2] for row in kinds.rows] == ["a 1.0, b 2.0", "b 1.0, a 2.0"]
