"""The report in every format: the answer first, every library that fails marked in every table, names escaped."""

import csv
import io
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from boosters_eval.core.errors import ConfigError, UnknownNameError
from boosters_eval.programs.importances.document import build_document
from boosters_eval.reports.terminal import print_document
from explained import LIBRARIES, Cells
from factories import RECORDED_AT, error


@pytest.fixture(scope="module")
def explained(tmp_path_factory):
    return Cells(tmp_path_factory.mktemp("arrays"), n=40).grid(broken=("gamma",), own=0.3, seeds=3)


@pytest.fixture(scope="module")
def document(explained):
    return build_document(explained, now=RECORDED_AT)


def test_markdown(document, golden):
    golden("importances/report.md", document.render("markdown"))


def test_json(document, golden):
    golden("importances/report.json", document.render("json"))


def test_csv(document, golden):
    golden("importances/report.csv", document.render("csv"))


def test_terminal(document, golden):
    console = Console(file=io.StringIO(), width=100, force_terminal=True, color_system=None)
    print_document(replace(document.document(), title=""), console, whole=False)  # as the command does
    text = console.file.getvalue()
    golden("importances/terminal.txt", text)
    lines = [line for line in text.splitlines() if not line.startswith("boosters-eval ")]  # to be copied
    assert max(map(len, lines)) <= 100


def test_the_answer_is_the_first_sentence(document):
    text = document.render("markdown")
    after = text[text.index("## Answer") :].splitlines()[2]
    assert after.startswith("Do they agree for the same reasons? ")
    assert text.index("## Answer") < text.index("## Environment") < text.index("## Checks")


def test_a_library_that_fails_is_marked_in_every_table_in_which_it_is(document):
    for table in document.tables:
        shown = " ".join([*(c.label for c in table.columns), *(name for row in table.rows for name in row.names)])
        assert "gamma" not in shown.replace("gamma *", "")
        assert any(note.startswith("* gamma: attributions do not add up") for note in table.notes)
    text = document.render("markdown")
    assert "| gamma |" not in text


def test_the_tables_are_the_findings(document):
    found = {(one.kind, one.feature, one.library): one for one in document.findings[0].importances}
    for kind, column in (("gain", "share"), ("permutation", "mean")):
        table = next(t for t in document.tables if t.keys.get("kind") == kind and t.keys["about"] == "importance")
        for row in table.rows:
            for cell, name in zip(row.cells, LIBRARIES, strict=True):
                assert cell.mean == getattr(found[kind, row.names[0], name], column)


def test_the_json_holds_all_features_and_the_tables_the_top(explained):
    document = build_document(explained, 2, now=RECORDED_AT)
    table = next(t for t in document.tables if t.keys["about"] == "importance")
    assert len(table.rows) == 2
    assert "The 2 most important of 5 features; the JSON has all." in table.notes
    loaded = json.loads(document.render("json"))
    assert {one["feature"] for one in loaded["findings"][0]["importances"]} == {
        "income", "age", "rooms", "noise", "latitude",
    }  # fmt: skip


def test_csv_has_every_cell_of_every_table(document):
    rows = list(csv.DictReader(io.StringIO(document.render("csv"))))
    assert len(rows) == sum(len(table.rows) * len(table.columns) for table in document.tables)


def test_python_gets_reports_and_frames(explained):
    assert explained.report("markdown").startswith("# Importances")
    frames = {about: explained.frame(about) for about in ("importances", "agreement", "checks", "correlated")}
    assert set(frames["checks"].query("verdict == 'fails'").library) == {"gamma"}
    assert len(frames["importances"]) == 4 * 3 * 5
    assert {"tau", "low", "high", "reading"} <= set(frames["agreement"].columns)
    with pytest.raises(UnknownNameError, match="markdown"):
        explained.report("markdwon")
    with pytest.raises(UnknownNameError, match="checks"):
        explained.frame("check")
    with pytest.raises(ConfigError, match="at least 1"):
        explained.report(top=0)


def test_fifty_features_and_five_libraries_stay_below_two_megabytes(tmp_path):
    names = tuple(f"feature_{i:02}" for i in range(50))
    x = np.random.default_rng(0).normal(size=(400, 50)).astype(np.float32)
    cells = Cells(tmp_path, names=names, weights=np.linspace(0.1, 3, 50), x=x)
    page = cells.grid(("a", "bb", "ccc", "dddd", "eeeee"), seeds=2).to_model(50).render("html")
    assert len(page.encode()) < 2_000_000


def test_the_numbers_of_a_column_have_the_same_decimals(tmp_path):
    run = Cells(tmp_path).grid(("alpha", "beta", "delta_"), own=1.0, seeds=3, spread=0.4)
    for table in run.to_model().tables:
        for place, column in enumerate(table.columns):
            about = table.keys["about"]
            texts = [row.cells[place].text for row in table.rows if row.cells[place].mean is not None]
            if about == "importance":
                texts = [text.rpartition("(")[2].rstrip(")") for text in texts]  # the ranks
            elif about not in ("agreement", "predictions"):
                continue
            decimals = {len(text.partition(" ")[0].partition(".")[2]) for text in texts}
            assert len(decimals) <= 1, (table.name, column.label, texts)


def test_one_tau_has_one_shade_in_every_heat_map(tmp_path):
    page = Cells(tmp_path).grid(own=1.0, seeds=4, spread=0.4).to_model().render("html")
    cells = re.findall(r'class="heat"[^>]*fill-opacity="([\d.]+)"><title>[^<]*: (-?[\d.]+)</title>', page)
    shades = {}
    for shade, tau in cells:
        shades.setdefault(tau, set()).add(shade)
    assert len(cells) > len(shades) > 1
    assert all(max(map(float, found)) - min(map(float, found)) <= 0.03 for found in shades.values())  # tau is rounded
    assert "by the same shades for every kind" in page


def test_a_run_without_results_is_an_empty_report(tmp_path):
    document = build_document(Cells(tmp_path).run(), now=RECORDED_AT)
    assert "No cell finished." in document.render("markdown")
    assert "<html" in document.render("html")


def test_a_report_in_which_every_cell_failed_has_the_reasons(tmp_path):
    failed = [error("toy/gbdt", "alpha", seed, error_message="no memory\nleft") for seed in (1, 2)]
    document = build_document(Cells(tmp_path).run(errors=failed), now=RECORDED_AT)
    assert document.answer == (
        "Do they agree for the same reasons? No answer: no cell finished.",
        "alpha: 2 of 2 cells failed (WorkerDied: no memory).",
    )
    for format_ in ("markdown", "html"):
        text = document.render(format_)
        assert "Errors" in text
        assert "Signal: SIGSEGV" in text


def test_failures_of_a_benchmark_without_results_are_told_beside_the_others(tmp_path):
    cells = Cells(tmp_path)
    document = cells.run(cells.cell("alpha"), cells.cell("beta"), errors=[error("other/gbdt", "alpha")]).to_model()
    assert document.answer[0].startswith("toy/gbdt: Do they agree")
    assert "other/gbdt: alpha: 1 of 1 cells failed (WorkerDied: killed by SIGSEGV)." in document.answer
    (section,) = [one for one in document.document().sections if one.anchor == "errors"]
    assert section.blocks[0].rows[0][0] == "other/gbdt"
