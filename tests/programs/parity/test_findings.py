"""What rows come to: the gate's decision on them, and the report: merging, NR, marks, totals, speed-ups."""

from __future__ import annotations

import json
import shlex
from typing import Any

import numpy as np
import pytest

import parity_rows as given
from boosters_eval.core.errors import ConfigError
from boosters_eval.programs.parity.findings import WORDS, build_parity_report, decide, reproduce_parts
from boosters_eval.programs.parity.rows import ParityRow, merge
from boosters_eval.programs.parity.verdicts import BindingStatus, ParityVerdict

OLD, NEW = "2026-01-01T00:00:00+00:00", "2026-02-01T00:00:00+00:00"


def cells(report):
    return {(c.row.method, c.row.backend, c.row.n, c.row.threads): c for c in report.cells}


# ---- Merging


def test_of_equal_cells_the_one_that_was_measured_last_counts_whatever_the_order_of_the_files():
    old, new = given.parity_row(measured_at=OLD, ms=1.0), given.parity_row(measured_at=NEW, ms=2.0)
    assert merge([old], [new]) == merge([new], [old]) == [new]


def test_without_dates_and_with_equal_ones_the_later_file_counts():
    for at in ("", OLD):
        first, second = given.parity_row(measured_at=at, ms=1.0), given.parity_row(measured_at=at, ms=2.0)
        assert merge([first], [second]) == [second]


def test_a_newer_failure_replaces_a_result_but_an_absent_backend_does_not():
    result = given.parity_row("ikpls", measured_at=OLD)
    crash = given.failed_row("ikpls", "crashed", signal="SIGSEGV", measured_at=NEW)
    absent = given.failed_row("ikpls", "not_available", message="not installed")
    assert merge([result], [crash]) == [crash]
    assert merge([result], [absent]) == merge([absent], [result]) == [result]


def test_rows_on_other_data_are_other_cells_and_only_the_newest_data_are_shown():
    old = [given.parity_row(name, data_digest="old", measured_at=OLD) for name in ("sklearn", "ikpls")]
    report = build_parity_report([*old, given.parity_row("sklearn", data_digest="new", measured_at=NEW)])
    shown = cells(report)
    assert shown["pls", "sklearn", 200, 1].row.data_digest == "new"
    assert shown["pls", "ikpls", 200, 1].mark == "NR"
    assert "only measured on other data" in shown["pls", "ikpls", 200, 1].reason
    assert report.notes[0].startswith("2 older rows were measured on other data")


# ---- The report


def test_what_was_not_run_stays_visible():
    report = build_parity_report(
        [given.parity_row(), given.parity_row("ikpls", n=2000)],
        {"pls": ("sklearn", "ikpls", "octave"), "other": ("x",)},
    )
    marks = {(backend, n): cell.mark for (_, backend, n, _), cell in cells(report).items()}
    assert marks == {
        ("sklearn", 200): "",
        ("sklearn", 2000): "NR",
        ("ikpls", 200): "NR",
        ("ikpls", 2000): "",
        ("octave", 200): "NR",
        ("octave", 2000): "NR",
    }
    assert cells(report)["pls", "octave", 200, 1].reason == "not in the given files"


def test_the_speed_up_is_over_the_oracle_at_the_same_size_and_threads():
    shown = cells(build_parity_report(given.story()))
    assert shown["pls", "pls4all", 200, 1].speedup == pytest.approx(22.7 / 0.526)
    assert shown["pls", "pls4all", 200, 2].speedup == pytest.approx(11.35 / 0.526)
    assert shown["pls", "sklearn", 200, 1].speedup == 1
    assert shown["pls", "hang", 200, 1].speedup is None
    alone = build_parity_report([given.parity_row("ikpls")])
    assert cells(alone)["pls", "ikpls", 200, 1].speedup is None


def test_there_is_no_speed_up_over_an_oracle_on_another_machine():
    oracle = given.parity_row("sklearn", host_json=json.dumps({"processor": "Fast CPU", "commit": "a"}))
    for processor, speedup in (("Fast CPU", 2.0), ("Slow CPU", None)):
        host = json.dumps({"processor": processor, "commit": "b"})
        report = build_parity_report([oracle, given.parity_row("ikpls", ms=5.0, host_json=host)])
        assert cells(report)["pls", "ikpls", 200, 1].speedup == speedup


def test_every_status_and_verdict_has_its_mark_and_is_counted_once():
    report = build_parity_report(given.story())
    assert sum(report.totals.values()) == len(report.cells) == sum(score.n_cells for score in report.scores)
    assert set(WORDS) == {v.value for v in ParityVerdict} | {s.value for s in BindingStatus} - {"ok"}
    marks = {cell.word: cell.mark for cell in report.cells}
    assert {word: mark for word, mark in marks.items() if mark} == {
        "not_available": "NR",
        "deferred": "NR",
        "timeout": "⏳",
        "crashed": "—",
        "refused": "—",
        "failed": "—",
        "stale": "—",
    }


def test_a_score_counts_verdicts_failures_and_the_median_speed_up():
    scores = {score.backend: score for score in build_parity_report(given.story()).scores}
    assert scores["segfault"].n_failed == 4
    assert scores["R.simpls"].n_failed == 0
    assert scores["pls4all.sklearn"].words == {"convention": 4}
    assert scores["pls4all.sklearn"].binding_divergent == 4
    assert scores["pls4all"].median_speedup == pytest.approx(1.5 * 11.35 / 0.526)


def test_methods_that_share_most_of_their_backends_share_a_matrix():
    rows = [given.parity_row(name, method=method) for method in ("pls", "pls2") for name in ("sklearn", "ikpls", "R")]
    rows += [given.parity_row(name, method="trees") for name in ("native", "onnx")]
    rows += [given.parity_row("octave", method="pls2")]
    assert build_parity_report(rows).matrices == (("pls", "pls2"), ("trees",))


def test_a_file_that_spans_too_many_cells_is_refused_before_it_fills_the_memory():
    rows = [given.parity_row(f"b{i}", n=i + 1, threads=i + 1) for i in range(101)]
    with pytest.raises(ConfigError, match="span 1030301 cells"):
        build_parity_report(rows)


def test_the_command_reproduces_the_cell_with_its_oracle_and_its_cap_and_is_quoted():
    row = given.parity_row("a b'c", total_runs=3, stop_reason="max_runs", threads=2)
    assert shlex.split(" ".join(reproduce_parts(row))) == [
        *("boosters-eval", "parity", "run", "--methods", "pls", "--backends", "sklearn,a b'c"),
        *("--sizes", "200x50", "--threads", "2", "--max-runs", "3", "--out-csv", "again.csv"),
    ]
    files = " ".join(reproduce_parts(given.parity_row(registry_json='["my file.py", "a,b.py"]')))
    assert shlex.split(files)[3:7] == ["--registry", "my file.py", "--registry", "a,b.py"]
    for text in ("[", "3", '{"a": 1}', "[1]"):
        assert "--registry" not in " ".join(reproduce_parts(given.parity_row(registry_json=text)))
    whole = " ".join(reproduce_parts(given.parity_row(stop_reason="complete")))
    assert "--max-runs" not in whole
    assert "--backends sklearn " in whole


# ---- Speed-ups


def timed(backend: str, rounds: list[list[float]], **changes: Any) -> ParityRow:
    first, *later = (tuple(round(ms * 1e6) for ms in samples) for samples in rounds)
    return given.parity_row(backend, samples_ns=first, rounds_ns=tuple(later), **changes)


def compared(one: list[list[float]], other: list[list[float]]):
    return cells(build_parity_report([timed("sklearn", one), timed("ikpls", other)]))["pls", "ikpls", 200, 1]


def test_a_speed_up_has_an_interval_where_there_are_several_rounds():
    cell = compared([[9, 4, 4, 4], [9, 4.2, 4.1, 4.3], [9, 3.9, 4, 4.1]], [[5, 2, 2, 2], [5, 2, 2.1, 2], [5, 2, 2, 2]])
    assert cell.speedup == pytest.approx(2.02, abs=0.03)
    assert 1 < cell.speedup_low < cell.speedup < cell.speedup_high < 3
    assert cell.told_apart is True
    assert compared([[9, 4, 4]], [[5, 2, 2]]).told_apart is None


def test_what_may_be_as_fast_is_not_told_apart():
    cell = compared([[9, 4], [9, 5], [9, 3]], [[9, 5], [9, 3], [9, 4]])
    assert cell.told_apart is False
    page = build_parity_report([timed("sklearn", [[9, 4], [9, 5]]), timed("ikpls", [[9, 5], [9, 4]])]).to_markdown()
    assert "not told apart" in page


def test_the_intervals_of_identical_code_cover_one():
    """Machines drift, and each process has its own luck, which its runs share."""
    rng, covered = np.random.default_rng(39), 0
    for _ in range(200):
        drift = np.exp(np.cumsum(rng.normal(0, 0.2, 5)))
        rounds = [
            [
                list(4 * drift[number] * np.exp(rng.normal(0, 0.1)) * np.exp(rng.standard_t(3, 5) * 0.05))
                for number in range(5)
            ]
            for _ in range(2)
        ]
        covered += not compared(*rounds).told_apart
    assert covered >= 180


# ---- The gate


def row(backend: str, verdict: str, data: str, day: int, **changes: Any) -> ParityRow:
    given = {"method": "m", "n": 9, "p": 1, "threads": 1, "own": True, "status": "ok", "data_digest": data}
    at = f"2026-01-0{day}T00:00:00+00:00"
    return ParityRow(**{**given, "backend": backend, "verdict": verdict, "measured_at": at, **changes})


def test_what_was_found_on_older_data_neither_fails_nor_passes_the_gate() -> None:
    mended = [row("a", "divergent", "old", 1), row("a", "rounding", "new", 2)]
    assert decide(mended).exit_code == 0
    assert decide(mended[::-1]).summary == "AGREE: 1 prediction compared, 0 too far apart, 0 without a result"
    broken = [row("a", "rounding", "old", 1), row("a", "divergent", "new", 2)]
    assert decide(broken).exit_code == 1


def test_a_binding_that_has_only_older_data_has_no_result() -> None:
    found = decide([row("a", "rounding", "old", 1), row("b", "rounding", "new", 2)])
    assert found.exit_code == 2
    assert found.without_result[0].startswith("m 9x1 a, 1 thread: only measured on other data")
    assert decide([row("a", "rounding", "old", 1, own=False), row("b", "rounding", "new", 2)]).exit_code == 0


def test_a_binding_that_the_registry_declares_and_that_has_no_row_has_no_result():
    rows = [row("a", "rounding", "new", 1)]
    found = decide(rows, declared=[("m", "a"), ("m", "b")])
    assert found.exit_code == 2
    assert found.without_result == ("m b: it is declared, and has no row",)
    assert decide(rows, declared=[("m", "a")]).exit_code == 0


def test_a_cell_that_diverges_from_both_references_is_one_cell_of_the_gate():
    row = given.parity_row(
        own=True, verdict="divergent", binding_verdict="divergent", divergence=0.5, binding_max_abs=0.25
    )
    found = decide([row])
    told = "differs from the project's main binding by 0.25 and from the reference sklearn 1.9.1 by 0.5"
    assert found.divergent == (f"pls 200x50 sklearn, 1 thread: {told}",)
    assert found.summary == "DIVERGE: 1 prediction compared, 1 too far apart, 0 without a result"
