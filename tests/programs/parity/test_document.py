"""What the renderings of a report say: the answer, the marks, the reasons, and foreign text."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

import parity_rows as given
from boosters_eval.cli.app import run
from boosters_eval.core.errors import ConfigError
from boosters_eval.programs.parity.findings import ParityReport, build_parity_report
from boosters_eval.programs.parity.rows import read_rows, write_rows

if TYPE_CHECKING:
    from pathlib import Path

NEW = "2026-02-01T00:00:00+00:00"


def line(markdown, start):
    return next(text for text in markdown.splitlines() if text.startswith(start))


def rows_of(markdown, section):
    part = markdown.partition(f"## {section}\n")[2].partition("\n## ")[0]
    lines = [text for text in part.splitlines() if text.startswith("| ")]
    return [[cell.strip() for cell in text.strip("|").split("|")] for text in lines[2:]]


# ---- Markdown


def test_markdown_has_the_header_the_totals_the_marks_and_the_reasons():
    text = build_parity_report(given.story()).to_markdown()
    assert text.index("## Answer") < text.index("## Totals") < text.index("## Findings") < text.index("## Methods")
    assert "4 of 25 predictions differ from the reference: other.\n" in text
    assert "4 of 25 predictions differ from the project's main binding: pls4all.sklearn.\n" in text
    assert "1 of 25 predictions could not be compared: the reference has no stored predictions.\n" in text
    assert "17 cells failed.\n" in text
    assert "system Linux 6.1, processor Test CPU, BLAS openblas 0.3.30, Python 3.12.1 |" in line(text, "| Host ")
    assert "2026-01-02 03:04 UTC" in line(text, "| Measured ")
    assert "2.5.4" in line(text, "| numpy ")
    assert re.search(r"\| divergent +\| 4 ", text)
    assert re.search(r"\| all +\| 47 ", text)
    assert "200x50, 1 thread " in text
    assert "2000x50, 2 threads" in text
    assert re.search(r"\| pls4all +\| rounding 0\.526 ms, 43\u00d7", text)
    assert "convention (≠ main binding) 2.08 ms, 11\u00d7" in text
    for backend, mark in (("R.simpls", "NR"), ("hang", "⏳"), ("segfault", "—"), ("refuses", "—")):
        assert re.search(rf"^\| {re.escape(backend)} +\| {mark} +\| {mark} +\|", text, re.MULTILINE)
    found = [row for row in rows_of(text, "Findings") if row[1] == "pls"]
    assert [row[:3] for row in found] == [
        ["convention", "pls", "pls4all.sklearn"],  # off the main binding: this fails the gate
        ["divergent", "pls", "other"],
        ["timeout", "pls", "hang"],
        ["crashed", "pls", "segfault"],
        ["stale", "pls", "frozen"],
        ["refused", "pls", "refuses"],
        ["not_available", "pls", "R.simpls"],
    ]
    reasons = {row[2]: row[4] for row in found}
    assert found[3][3] == "200x50 @1, 200x50 @2, 2000x50 @1 and 2000x50 @2"
    assert reasons["segfault"] == "SIGSEGV: died (in fit)"
    assert reasons["R.simpls"] == "Rscript is not installed"
    assert "It scales its columns to unit variance" in reasons["pls4all.sklearn"]
    assert reasons["other"] == "0.200 (relative_rmse), max abs 1.20, 31.0 % of rows off"


def test_the_answer_says_whether_anything_diverges():
    agreed, alone = given.parity_row(), given.parity_row("other", verdict="divergent")
    assert build_parity_report([agreed]).document().answer == ("None of 1 prediction differs from its reference.",)
    assert build_parity_report([agreed, alone]).document().answer == (
        "1 of 2 predictions differs from the reference: other.",
    )
    absent = given.failed_row("R.simpls", "not_available")
    assert build_parity_report([absent]).document().answer == ("No cell has a result.",)


def test_an_older_file_without_a_host_says_so_and_an_empty_one_too():
    text = build_parity_report([given.parity_row(host_json="", versions_json="not json")]).to_markdown()
    assert "not recorded" in line(text, "| Host ")
    assert "not json" in line(text, "| unreadable ")
    assert "No results." in build_parity_report([]).to_markdown()
    assert "No results." in build_parity_report([]).to_html()


def test_numbers_that_are_not_finite_are_words():
    row = given.parity_row(verdict="divergent", divergence=float("inf"), reported_ms=float("nan"), max_abs=float("inf"))
    report = build_parity_report([row])
    assert "inf (relative_rmse), max abs inf" in report.to_markdown()
    assert '"relative_rmse inf, tolerance 1e-12"' in report.to_html()
    assert json.loads(report.to_json())["cells"][0]["row"]["divergence"] is None


# ---- All renderings


def test_json_is_a_strict_model_that_reads_itself_back():
    report = build_parity_report(given.story())
    text = report.to_json()
    assert ParityReport.model_validate_json(text) == report
    content = json.loads(text)
    assert (content["schema_version"], content["kind"]) == (10, "boosters-eval parity")
    with pytest.raises(ConfigError):
        ParityReport.model_validate({**content, "schema_version": 2})
    with pytest.raises(ConfigError):
        ParityReport.model_validate({**content, "extra": 1})


def test_foreign_text_is_escaped_in_every_rendering():
    report = build_parity_report(given.hostile())
    markdown, page = report.to_markdown(), report.to_html()
    assert "<img" not in markdown
    assert "<script>" not in markdown
    assert all(text.count("\u202e") == 0 for text in (markdown, page, report.to_json()))
    assert "<img" not in page
    assert page.count("<script") == page.count("</script>") == 2
    tables = [text for text in markdown.splitlines() if text.startswith("| b ")]
    assert all(len(re.findall(r"(?<!\\)\|", text)) == 7 for text in tables[:1])


def test_the_same_rows_give_the_same_bytes():
    first, second = build_parity_report(given.story()), build_parity_report(given.story())
    assert first.to_markdown() == second.to_markdown()
    assert first.to_html() == second.to_html()
    assert first.to_json() == second.to_json()


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
    assert {cell.word for cell in report.cells if cell.row.reported_ms == 77.0} == {"divergent"}
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
