"""Cells of one run on several machines: scores are judged as ever, times and memory within one machine only."""

import csv
import dataclasses
import io
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from boosters_eval.core.errors import ExitCode
from boosters_eval.metrics.catalog import OF_MACHINE
from boosters_eval.programs.baseline.check import check
from boosters_eval.programs.baseline.findings import CheckRules
from boosters_eval.programs.baseline.snapshot import Snapshot, make_baseline
from boosters_eval.programs.benchmark.comparisons import compare_rows
from boosters_eval.programs.benchmark.results import ResultCollection
from boosters_eval.programs.benchmark.tables.against import list_findings
from boosters_eval.programs.benchmark.tables.build import build_tables
from boosters_eval.programs.benchmark.tables.document import build_document
from boosters_eval.reports.terminal import print_document
from factories import collection, grid, remember
from stamping import FAST, SLOW

ROWS = ("base", "head", "next")
NOISE = (0.0, 0.004, -0.003, 0.002, -0.002, 0.001, -0.001, 0.003)


def timed(place, *, libraries=ROWS, seeds=6, ratio=1.2, timing_mode=True, **changes):
    """A run whose cells are on the machine that `place(library, index of the seed)` gives.

    The slow one takes ten times as long, and each library `ratio` times as long as the one before it.
    """
    results = grid(lambda _, library, index: 0.5 + NOISE[index], libraries=libraries, seeds=seeds)
    out = []
    for number, item in enumerate(results):
        row, index = divmod(number, seeds)
        machine = place(item.library, index)
        took = (10.0 if machine is SLOW else 1.0) * ratio**row * (1 + NOISE[index] + NOISE[row])
        measured = {
            "train_time_s": took,
            "predict_time_s": took / 10,
            "peak_memory_mb": 100 * took,
            "model_size_mb": 1.0,
        }
        stamp = {"machine": machine.digest, "timing_mode": timing_mode, "cpu_taken": 0.0}
        out.append(item.model_copy(update={**measured, **stamp, **changes}))
    return remember(collection(out), machines={one.digest: one.model_dump() for one in (SLOW, FAST)})


def by_seed(_library, index):
    return SLOW if index % 2 else FAST


def by_library(library, _index):
    return SLOW if library == "base" else FAST


def half(library, index):
    """The first two splits of `base` are on another machine than those of the others."""
    return SLOW if library == "base" and index < 2 else FAST


def column(table, name):
    position = next(index for index, one in enumerate(table.columns) if one.name == name)
    return table.columns[position], [row.cells[position] for row in table.rows]


def compared(rows, metric="train_time_s", **options):
    return compare_rows(rows, metric, higher_is_better=False, alpha=0.05, **options)


def by_name(run):
    rows = {}
    for result in run.results:
        rows.setdefault(result.library, []).append(result)
    return rows


PLACES = st.lists(st.lists(st.booleans(), min_size=8, max_size=8), min_size=3, max_size=3)


def placed_by(places):
    return lambda library, index: SLOW if places[ROWS.index(library)][index] else FAST


@settings(deadline=None, max_examples=60)
@given(
    PLACES, st.sampled_from(["corrected", "paired", "wilcoxon"]), st.sampled_from(["train_time_s", "peak_memory_mb"])
)
def test_a_verdict_on_times_is_that_of_the_pairs_on_one_machine_alone(places, test, metric):
    rows = by_name(timed(placed_by(places), libraries=ROWS[:2], seeds=8))
    found = compared(rows, metric, test=test).pairs["base", "head"]
    same = {a.repeat for a, b in zip(rows["base"], rows["head"], strict=True) if a.machine == b.machine}
    assert found.n == len(same)
    if not same:
        assert (found.verdict, found.p_value) == ("inconclusive", None)
        assert found.note == "All pairs were measured on two machines, so none is compared."
        return
    alone = {name: [result for result in row if result.repeat in same] for name, row in rows.items()}
    expected = compared(alone, metric, test=test).pairs["base", "head"]
    assert dataclasses.replace(found, note="") == dataclasses.replace(expected, note="")
    assert ("measured on two machines" in found.note) == (len(same) < 8)


@settings(deadline=None, max_examples=60)
@given(PLACES, st.floats(0.001, 1000))
def test_a_time_that_the_other_measured_on_another_machine_changes_no_verdict_on_the_pair(places, factor):
    rows = by_name(timed(placed_by(places), libraries=ROWS[:2], seeds=8))
    lonely = {a.repeat for a, b in zip(rows["base"], rows["head"], strict=True) if a.machine != b.machine}
    changed = [
        result.model_copy(update={"train_time_s": result.train_time_s * factor}) if result.repeat in lonely else result
        for result in rows["base"]
    ]
    first, second = compared(rows), compared({**rows, "base": changed})
    assert first.pairs == second.pairs
    assert (first.winner, first.leader, first.shared) == (second.winner, second.leader, second.shared)


@pytest.mark.parametrize("test", ["corrected", "paired", "welch", "wilcoxon"])
@pytest.mark.parametrize("metric", ["rmse", "model_size_mb"])
def test_what_depends_on_no_machine_is_judged_whatever_the_machine(metric, test):
    there, here = by_name(timed(half)), by_name(timed(lambda *_: FAST))
    assert compared(there, metric, test=test) == compared(here, metric, test=test)


def test_welchs_test_which_pairs_nothing_has_no_verdict_on_times_of_several_machines():
    table = compared(by_name(timed(by_seed)), test="welch")
    assert {pair.verdict for pair in table.pairs.values()} == {"inconclusive"}
    assert table.winner is None
    assert "Welch's test pairs nothing" in next(iter(table.pairs.values())).note


def test_means_of_times_are_over_the_splits_that_all_ran_on_one_machine():
    (table,) = build_tables(timed(half)).tables
    for name in ("train_time_s", "predict_time_s", "peak_memory_mb"):
        _, cells = column(table, name)
        assert [cell.n for cell in cells] == [4, 4, 4]
        assert all(cell.text.endswith("(n = 4)") for cell in cells)
        assert all(cell.values[:2] == (None, None) for cell in cells)
    assert [cell.n for cell in column(table, "rmse")[1]] == [6, 6, 6]
    assert [cell.n for cell in column(table, "model_size_mb")[1]] == [6, 6, 6]
    note = (
        "4 of 18 pairs of times were measured on two machines and are not compared; the means of times and memory are"
        " over the 4 splits that all ran on one machine."
    )
    assert note in table.notes
    assert "base 1.0 s (shown to be the fastest)" in table.answer[-1]


def test_times_of_splits_that_all_ran_on_one_machine_each_are_judged_like_those_of_one_machine():
    (table,) = build_tables(timed(by_seed)).tables
    times = [pair for pair in table.pairs if pair.metric == "train_time_s"]
    assert {pair.n for pair in times} == {6}
    assert {pair.verdict for pair in times} == {"better"}
    assert not any("pairs of times" in note for note in table.notes)
    assert [cell.best for cell in column(table, "train_time_s")[1]] == [True, False, False]


@pytest.mark.parametrize("highlight", [True, False])
def test_no_pair_on_one_machine_is_no_verdict_on_times_and_says_so(highlight):
    run = timed(by_library, libraries=ROWS[:2])
    (table,) = build_tables(run, require_significance=highlight).tables
    judged, cells = column(table, "train_time_s")
    assert judged.caveat == "times and memory are not judged: every pair was measured on two machines"
    assert [(cell.mean, cell.status, cell.best) for cell in cells] == [(None, "skipped", False)] * 2
    assert {pair.metric for pair in table.pairs} == {"rmse", "model_size_mb"}
    assert (
        "All 6 pairs of times were measured on two machines and are not compared, so there is no verdict on them; the"
        " means of times and memory are left out."
    ) in table.notes
    assert not any("fastest" in line for line in table.answer)


def test_performance_report_of_rows_on_different_machines_has_no_answer_by_times():
    document = build_document(timed(by_library, libraries=ROWS[:2], model_size_mb=None), "performance")
    assert document.answer[0] == (
        "Which: no answer: times and memory are not judged: every pair was measured on two machines."
    )


def test_pairs_on_one_machine_keep_their_verdict_though_nobody_leads():
    (table,) = build_tables(timed(by_library), metrics=()).tables
    verdicts = {(pair.a, pair.b): (pair.verdict, pair.n) for pair in table.pairs if pair.metric == "train_time_s"}
    assert verdicts == {
        ("base", "head"): ("inconclusive", 0),
        ("base", "next"): ("inconclusive", 0),
        ("head", "next"): ("better", 6),
    }
    assert not any(cell.best for cell in column(table, "train_time_s")[1])
    assert table.answer[0].startswith("Which: no answer")


def test_best_by_a_time_of_rows_on_different_machines_is_nobody():
    (row,) = timed(by_library).best("train_time_s").to_dict("records")
    assert (row["best"], row["leader"], row["n"]) == ("not comparable", "", 0)
    assert "measured on two machines" in row["note"]
    (row,) = timed(by_seed).best("train_time_s").to_dict("records")
    assert row["best"] == "base"


def test_against_has_no_answer_about_times_of_different_machines():
    found = timed(by_library, libraries=ROWS[:2]).regressions("base")
    assert found.exit_code is ExitCode.EXECUTION_ERROR
    assert {finding.missing for finding in found.findings if finding.metric.endswith("_time_s")} == {
        "All pairs were measured on two machines, so none is compared"
    }
    assert "measured on two machines" in " ".join(list_findings(found))


def test_against_says_why_splits_of_times_are_missing():
    found = timed(half, libraries=ROWS[:2]).regressions("base")
    times, others = [], []
    for finding in found.findings:
        (times if finding.metric.endswith("_time_s") else others).append(finding)
    assert {finding.apart for finding in times} == {2}
    assert {finding.apart for finding in others} == {0}
    assert " ".join(list_findings(found)).count("4 splits, 2 pairs on two machines left out)") == len(times)


def test_against_judges_times_by_the_pairs_on_one_machine():
    found = timed(by_seed, libraries=ROWS[:2]).regressions("base")
    assert [finding.metric for finding in found.regressions] == ["train_time_s", "predict_time_s"]


@pytest.mark.parametrize("report_type", ["quality", "performance", "comparison"])
def test_every_format_names_the_machines_and_counts_their_cells(report_type):
    document = build_document(timed(half), report_type)
    rows = dict(document.environment)
    assert rows["Machine 1"] == f"16 cells on Fast CPU, 16 cores, 62.8 GB, Linux 6.1, fingerprint {FAST.digest}"
    assert rows["Machine 2"] == f"2 cells on Slow CPU, 4 cores, 15.6 GB, Linux 6.1, fingerprint {SLOW.digest}"
    assert "Machine" not in rows
    for text in (document.to_markdown(), document.to_html(), document.model_dump_json()):
        assert "16 cells on Fast CPU, 16 cores, 62.8 GB" in text
        assert "2 cells on Slow CPU, 4 cores, 15.6 GB" in text
    data = json.loads(document.model_dump_json())["data"]["environment"]
    assert data["machine"] is None
    assert [(share["digest"], share["cells"]) for share in data["machines"]] == [(FAST.digest, 16), (SLOW.digest, 2)]


def test_terminal_and_tables_name_the_machines_in_one_line():
    report = build_tables(timed(half))
    line = (
        "The cells ran on 2 machines: Fast CPU, 16 cores, 62.8 GB (16 cells), Slow CPU, 4 cores, 15.6 GB (2 cells)."
        " Times and memory are compared within one machine only."
    )
    assert line in report.notes
    console = Console(file=io.StringIO(), width=100, force_terminal=True, color_system=None)
    print_document(report.document(), console, every_note=False)
    assert line in " ".join(console.file.getvalue().split())


def test_run_on_one_node_has_the_environment_of_that_node():
    document = build_document(timed(lambda *_: SLOW), "comparison")
    assert dict(document.environment)["Machine"] == "Slow CPU"
    assert document.data.environment.machine_digest == SLOW.digest
    assert any(note == "The cells ran on 1 machine: Slow CPU, 4 cores, 15.6 GB (18 cells)." for note in document.notes)


def test_results_without_machines_say_nothing_of_them():
    run = collection(grid(lambda *_: 0.5))
    assert "machine" not in json.loads(run.to_json())["results"][0]
    assert "machine" not in next(csv.reader(io.StringIO(run.to_csv())))


def test_machines_survive_the_results_file():
    run = timed(half)
    text = run.to_json()
    again = ResultCollection.from_json(text)
    assert again.results == run.results
    assert again.metadata.machines == {machine.digest: machine for machine in (SLOW, FAST)}
    at = datetime(2026, 1, 1, tzinfo=UTC)
    before, after = (build_document(each, "comparison", now=at) for each in (run, again))
    assert after.environment == before.environment


def test_results_without_metadata_still_compare_within_one_machine():
    run = ResultCollection.from_json(timed(half).to_json(include_metadata=False))
    report = build_tables(run)
    assert [cell.n for cell in column(report.tables[0], "train_time_s")[1]] == [4, 4, 4]
    assert any(f"an unknown machine {SLOW.digest} (2 cells)" in note for note in report.notes)


def test_csv_and_cells_name_the_machine_of_each_cell():
    run = timed(half)
    rows = list(csv.DictReader(io.StringIO(run.to_csv())))
    assert [row["machine"] for row in rows] == [result.machine for result in run.results]
    page = build_document(run, "comparison").to_html()
    assert page.count(SLOW.digest) >= 3  # the environment, and two cells


def test_baseline_of_a_run_on_several_machines_has_no_times():
    one, several = (make_baseline(timed(place)) for place in (lambda *_: FAST, by_seed))
    assert all(result.times for result in one.results)
    assert one.machine["digest"] == FAST.digest
    assert not any(result.times for result in several.results)
    assert several.machine == {}
    assert [r.metrics for r in one.results] == [r.metrics for r in several.results]


@pytest.mark.parametrize(
    ("place", "notes"),
    [
        (by_seed, ["Times are not compared: the run was made on several machines."]),
        (lambda *_: SLOW, ["Times are not compared: the baseline was recorded on another machine."]),
    ],
)
def test_times_of_a_check_on_other_machines_are_not_compared(place, notes):
    before = make_baseline(timed(lambda *_: FAST))
    found = check(Snapshot.of_baseline(before), Snapshot.of_run(timed(place)), CheckRules())
    assert [note for note in found.notes if note.startswith("Times")] == notes
    same = check(Snapshot.of_baseline(before), Snapshot.of_run(timed(lambda *_: FAST, ratio=1.3)), CheckRules())
    assert any("train time x 1.0" in note for note in same.notes)


def test_what_is_of_a_machine_is_everything_measured_but_the_size_of_the_model():
    assert set(OF_MACHINE) >= {"train_time_s", "predict_time_s", "cpu_time_s", "peak_memory_mb", "first_use_mb"}
    assert "model_size_mb" not in OF_MACHINE
