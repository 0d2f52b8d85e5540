"""Every cell on the page: folded, with what a fold shares said once, and light."""

import re

from boosters_eval.programs.benchmark.results import ResultCollection
from boosters_eval.programs.benchmark.tables import sections as module
from boosters_eval.programs.benchmark.tables.document import build_document
from boosters_eval.programs.benchmark.tables.sections import show_cells
from boosters_eval.reports.document import Code, Details, Document, Paragraph, PlainTable
from boosters_eval.reports.html.page import render_page


def test_a_fold_has_the_cells_of_a_library_in_a_config_with_their_splits_times_and_parameters(sample):
    section = show_cells(sample.document())
    fold = next(block for block in section.blocks if block.title == "breast_cancer/gbdt catboost")
    common, table, parameters = fold.blocks
    assert fold.aside == "5 cells, 2 failed"
    assert common.text.startswith("In all cells that finished: ")
    assert isinstance(parameters, Code)
    assert 'objective = "catboost:binary"' in parameters.text
    headings = table.headings
    assert headings[:2] == ("Seed", "logloss")
    assert {"Train (s)", "Split", "Failure"} <= set(headings)
    rows = {row[0]: dict(zip(headings, row, strict=True)) for row in table.rows}
    assert rows["42"]["Split"] == "split-breast_cancer-0"
    assert rows["4053"]["Failure"] == "Timeout in fit: The cell took longer than 60 s."
    assert rows["4053"]["logloss"] is None
    warned = next(block for block in section.blocks if block.title == "breast_cancer/gbdt boosters")
    assert warned.aside == "5 cells, 5 with warnings"
    assert "2 threads were observed" in warned.blocks[0].text  # the same in all cells


def test_what_all_cells_of_a_fold_share_is_said_once(sample):
    fold = show_cells(sample.document()).blocks[0]
    said, table, _ = fold.blocks
    assert isinstance(said, Paragraph)
    assert isinstance(table, PlainTable)
    assert "Train rows 800, Test rows 200" in said.text
    assert "Train rows" not in table.headings


def test_more_cells_than_a_page_should_hold_are_left_out_with_a_sentence(sample, monkeypatch):
    monkeypatch.setattr(module, "MAX_CELLS", 12)
    blocks = show_cells(sample.document()).blocks
    assert blocks[0].text == "10 of 40 cells are shown here, to keep the page light; the JSON report has all."
    assert sum(isinstance(block, Details) for block in blocks) == 2
    assert show_cells(ResultCollection().document()) is None


def test_cells_are_on_the_page_alone(sample):
    document = build_document(sample)
    assert 'id="cells"' in document.to_html()
    assert "## Cells" not in document.to_markdown()


def test_a_page_of_1215_cells_is_a_few_megabytes(crowd):
    found = crowd(27, seeds=9)
    assert len(found.results) + len(found.errors) == 1215
    section = render_page(
        Document("t", sections=(show_cells(found.document()),))
    )  # the rest of the page depends on the tables alone
    assert len(section.encode()) < 2e6
    assert len(re.findall(r"<tr><th [^>]*>\d+</th>", section)) == 1215
