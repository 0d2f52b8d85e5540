"""What the renderings say: merging, NR, marks, totals, speed-ups, and foreign text."""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING

import pytest

import parity_rows as given
from boosters_eval.cli.app import run
from boosters_eval.core.errors import ConfigError
from boosters_eval.programs.parity.dashboard import render_dashboard
from boosters_eval.programs.parity.findings import WORDS, ParityReport, build_parity_report, reproduce_parts
from boosters_eval.programs.parity.markdown import render_parity_markdown
from boosters_eval.programs.parity.rendering import render_parity_json
from boosters_eval.programs.parity.rows import merge, read_rows, write_rows
from boosters_eval.programs.parity.verdicts import BindingStatus, ParityVerdict

if TYPE_CHECKING:
    from pathlib import Path

OLD, NEW = "2026-01-01T00:00:00+00:00", "2026-02-01T00:00:00+00:00"


def cells(report):
    return {(c.row.method, c.row.backend, c.row.n, c.row.threads): c for c in report.cells}


def line(markdown, start):
    return next(text for text in markdown.splitlines() if text.startswith(start))


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


# ---- Markdown


def test_markdown_has_the_header_the_totals_the_marks_and_the_reasons():
    text = render_parity_markdown(build_parity_report(given.story()))
    assert "- **Host**: system Linux 6.1, processor Test CPU, BLAS openblas 0.3.30, Python 3.12.1\n" in text
    assert "- **Run date**: 2026-01-02 03:04 UTC\n" in text
    assert "numpy 2.5.4" in line(text, "- **Versions**")
    assert re.search(r"\| divergent +\| 4 ", text)
    assert re.search(r"\| all +\| 43 ", text)
    assert "200x50, 1 thread " in text
    assert "2000x50, 2 threads" in text
    assert re.search(r"\| pls4all +\| rounding 0\.526 ms, 43\u00d7", text)
    assert "convention (binding divergent) 2.08 ms, 11\u00d7" in text
    for backend, mark in (("R.simpls", "NR"), ("hang", "⏳"), ("segfault", "—"), ("refuses", "—")):
        assert re.search(rf"^\| {re.escape(backend)} +\| {mark} +\| {mark} +\|", text, re.MULTILINE)
    assert "- segfault (200x50 @1, 200x50 @2, 2000x50 @1, 2000x50 @2): — crashed: SIGSEGV: died (in fit)\n" in text
    assert line(text, "- R.simpls").endswith(": NR not_available: Rscript is not installed")
    assert "It scales its columns to unit variance." in line(text, "- pls4all.sklearn (")
    assert line(text, "- other").endswith("divergent 0.200 (relative_rmse), max abs 1.20, 31.0 % of rows off")


def test_an_older_file_without_a_host_says_so_and_an_empty_one_too():
    text = render_parity_markdown(build_parity_report([given.parity_row(host_json="", versions_json="not json")]))
    assert "- **Host**: not recorded\n" in text
    assert "unreadable not json" in line(text, "- **Versions**")
    assert "No results." in render_parity_markdown(build_parity_report([]))
    assert "No results." in render_dashboard(build_parity_report([]))


def test_numbers_that_are_not_finite_are_words():
    row = given.parity_row(verdict="divergent", divergence=float("inf"), reported_ms=float("nan"), max_abs=float("inf"))
    report = build_parity_report([row])
    assert "divergent inf (relative_rmse), max abs inf" in render_parity_markdown(report)
    assert '"divergence":["inf"]' in render_dashboard(report)
    assert json.loads(render_parity_json(report))["cells"][0]["row"]["divergence"] is None


# ---- All renderings


def test_json_is_a_strict_model_that_reads_itself_back():
    report = build_parity_report(given.story())
    text = render_parity_json(report)
    assert ParityReport.model_validate_json(text) == report
    content = json.loads(text)
    assert (content["schema_version"], content["kind"]) == (10, "boosters-eval parity")
    with pytest.raises(ConfigError):
        ParityReport.model_validate({**content, "schema_version": 2})
    with pytest.raises(ConfigError):
        ParityReport.model_validate({**content, "extra": 1})


def test_foreign_text_is_escaped_in_every_rendering():
    report = build_parity_report(given.hostile())
    markdown, page = render_parity_markdown(report), render_dashboard(report)
    assert "<img" not in markdown
    assert "<script>" not in markdown
    assert all(text.count("\u202e") == 0 for text in (markdown, page, render_parity_json(report)))
    assert "<img" not in page
    assert page.count("<script") == page.count("</script>") == 2
    tables = [text for text in markdown.splitlines() if text.startswith("| b ")]
    assert all(len(re.findall(r"(?<!\\)\|", text)) == 6 for text in tables[:1])


def test_the_same_rows_give_the_same_bytes():
    for render in (render_parity_markdown, render_dashboard, render_parity_json):
        assert render(build_parity_report(given.story())) == render(build_parity_report(given.story()))


# ---- The command


def render(*arguments: object) -> int:
    return run(["parity", "render", *map(str, arguments)])


def test_the_command_merges_files_and_writes_what_the_name_asks_for(tmp_path: Path, capsys):
    write_rows(tmp_path / "a.csv", given.story())
    write_rows(tmp_path / "b.csv", [given.parity_row("ikpls", measured_at=NEW, verdict="divergent", ms=77.0)])
    for suffix in ("md", "html", "json"):
        out = tmp_path / f"out.{suffix}"
        assert render("--csv", tmp_path / "a.csv", tmp_path / "b.csv", "--out", out) == 0
        assert "77.0 ms" in out.read_text(encoding="utf-8") or suffix != "md"
    assert read_rows(tmp_path / "a.csv") == given.story()
    report = ParityReport.model_validate_json((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert cells(report)["pls", "ikpls", 200, 1].word == "divergent"
    assert report.totals["divergent"] == 5
    assert "Written" in capsys.readouterr().err


def test_a_wrong_name_or_file_is_one_sentence(tmp_path: Path, capsys):
    write_rows(tmp_path / "a.csv", given.story())
    assert render("--csv", tmp_path / "a.csv", "--out", tmp_path / "out.pdf") == 3
    assert "'--out' option must end in .md, .html or .json. Got" in capsys.readouterr().err
    assert render("--csv", tmp_path / "none.csv", "--out", tmp_path / "out.md") == 3
    assert "none.csv" in capsys.readouterr().err
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    assert render("--csv", tmp_path / "bad.csv", "--out", tmp_path / "out.md") == 3
    assert "is not a file of parity results" in capsys.readouterr().err
    assert not (tmp_path / "out.md").exists()
