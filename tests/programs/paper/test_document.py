"""The report of a comparison, in every format."""

import re

import pytest
from markdown_it import MarkdownIt

from boosters_eval.programs.paper.comparison import PaperComparison, PaperResults, read_stored
from boosters_eval.programs.paper.document import show_metric
from boosters_eval.programs.paper.judge import compare_results
from factories import measured, paper, paper_results, paper_table


def sections(text, level):
    return re.findall(rf"(?m)^{'#' * level} (.*)$", text)


def test_the_report_is_as_the_golden_files_say(comparison, golden):
    golden("paper-validation.md", comparison.to_markdown())
    golden("paper-validation.yaml", comparison.to_yaml())
    page = re.sub(r"(?s)<(style|script)>.*?</\1>", "", comparison.to_html())
    golden("paper-validation.html", re.sub(r"sha256-[^']*", "sha256", page))


def test_the_markdown_has_the_parts_of_the_specification_in_its_order(comparison):
    text = comparison.to_markdown()
    assert sections(text, 1) == ["Benchmark Validation Report"]
    assert [title.partition(":")[0] for title in sections(text, 2)] == [
        "Answer",
        "Summary",
        "Table 4",
        "About Table 4",
        "Table 5",
        "About Table 5",
        "The Paper's Conditions",
        "Differences from the Paper's Conditions",
        "Deviations Explained",
        "Reproduction Confidence",
        "Files Generated",
        "Environment",
    ]
    assert {"Adult", "California", "Conditions", "Notes"} <= set(sections(text, 3))
    for row in ("✓ Match (&lt;1% diff)", "~ Close (&lt;3% diff)", "○ Within Tolerance", "⚠ Deviation", "✗ Significant"):
        assert re.search(rf"(?m)^\| {re.escape(row)} +\| \d+ +\|$", text)


def test_the_marks_of_the_specification_stand_beside_each_row(comparison):
    text = comparison.to_markdown()
    for shown in ("✓ Match", "~ Close", "⚠ Deviation", "✗ Significant", "▲ Better, outside tolerance", "? Missing"):
        assert f"| {shown} " in text


def test_a_label_never_hides_that_a_value_is_outside_tolerance():
    spec = paper([paper_table({"rmse": "1.000"}, tolerance={"rmse": 0.001})])
    text = compare_results(spec, paper_results(measured({"rmse": (1.005,)}))).to_markdown()
    assert "| ✓ Match, outside tolerance |" in text
    assert "**Overall:** ✗ Not Reproduced" in text


def test_the_report_of_the_same_comparison_is_the_same_bytes(comparison, tmp_path):
    for name, text in (("c.yaml", comparison.to_yaml()), ("c.json", comparison.to_json())):
        path = tmp_path / name
        path.write_text(text)
        again = read_stored(path, PaperComparison)
        assert again.to_markdown() == comparison.to_markdown()
        assert again.to_html() == comparison.to_html()
    assert "**Date:** 2025-01-02" in comparison.to_markdown()  # of the run, not of today


def test_the_spread_of_the_paper_is_explained_where_it_matters(comparison):
    text = comparison.to_markdown()
    assert "The paper's standard deviation is over seeds only, not over splits of the data" in text
    assert "What was not the same: hardware: NVIDIA V100 in the paper, Some CPU, 4 cores here" in text


def test_markup_in_names_stays_text(comparison):
    html = MarkdownIt("commonmark").enable("table").render(comparison.to_markdown())
    assert "<b>" not in html
    assert "<em>" not in html
    assert "Revisiting &lt;b&gt;Models&lt;/b&gt;" in html
    assert "<b>" not in comparison.to_html()


def test_a_group_of_values_shares_an_axis_with_its_tolerance_band(comparison):
    tables = comparison.document().tables()
    assert [table.name for table in tables] == [
        "Adult: Accuracy",
        "California: RMSE",
        "Adult: Train time (s)",
        "Adult: Params (M)",
    ]
    paper_cell, our_cell = tables[1].rows[1].cells[:2]
    assert (paper_cell.low, paper_cell.high) == (0.4214, 0.4386)
    assert (paper_cell.std, our_cell.n) == (0.0007, 3)
    assert comparison.to_html().count('<rect class="band"') == sum(
        row.cells[0].mean is not None for table in tables for row in table.rows
    )


def test_a_comparison_of_nothing_can_be_shown():
    spec = paper([paper_table()], reproduction_targets={})
    found = compare_results(spec, paper_results())
    assert "the specification names no primary target (exit code 2)." in found.to_markdown()
    assert "There is nothing to compare." in found.to_html()


def test_what_was_measured_is_a_document_too():
    results = paper_results(
        measured({"rmse": (1.0, 1.2)}), measured(row="Other", status="failed", reason="It crashed.")
    )
    text = results.to_markdown()
    assert "1 of 2 targets ran." in text
    assert "rmse 1.1 ± 0.14 (n = 2)" in text
    assert "<h1>Results: A Paper</h1>" in results.to_html()
    assert PaperResults.model_validate_json(results.to_json()) == results


def test_a_tex_file_of_the_report_names_its_tables_apart(comparison):
    labels = re.findall(r"\\label\{([^}]*)\}", comparison.to_latex())
    assert len(set(labels)) == len(labels) > 2


def test_nothing_in_the_report_is_invisible():
    found = compare_results(paper(paper="A\x1b[31m\u202ePaper"), paper_results(paper="A\x1b[31m\u202ePaper"))
    assert not [char for char in found.to_markdown() if not char.isprintable() and char != "\n"]


@pytest.mark.parametrize(
    ("printed", "tolerance", "value", "shown", "status"),
    [
        ("0.0", {}, 0.005, "0.005", "✓ Match, rounds to 0.0"),
        ("0.0", {}, 0.0, "0.00", "✓ Match"),
        ("100.0", {"m": 0.5, "m_relative": 0.0}, 100.5004, "100.5004", "✓ Match, outside tolerance"),
        ("100.0", {"m": 0.5, "m_relative": 0.0}, 100.4999, "100.50", "✓ Match"),
        ("0.874", {}, 0.87379, "0.8738", "✓ Match"),
        ("125", {}, 125.4, "125.4", "✓ Match"),
    ],
)
def test_our_value_has_the_digits_that_the_decision_used(printed, tolerance, value, shown, status):
    spec = paper([paper_table({"m": printed}, tolerance=tolerance)])
    (metric,) = compare_results(spec, paper_results(measured({"m": (value,)}))).targets[0].metrics
    assert (show_metric(metric).ours, show_metric(metric).status) == (shown, status)


@pytest.mark.parametrize(
    ("values", "answer"),
    [
        (
            ((0.874,), (0.874,)),
            "✓ Reproduction Successful: 2 of 2 primary values are within tolerance of the paper's (exit code 0).",
        ),
        (
            ((0.874,), (0.830,)),
            (
                "⚠ Reproduced with Deviations, so not fully reproduced: 1 of 2 primary values is within tolerance of"
                " the paper's; 1 is outside tolerance (exit code 1)."
            ),
        ),
        (
            ((0.874,), (0.920,)),
            (
                "⚠ Reproduced with Deviations, so not fully reproduced: 1 of 2 primary values is within tolerance of"
                " the paper's; 1 is outside tolerance, in our favor (exit code 1)."
            ),
        ),
        (
            ((0.830,), (0.5,)),
            "✗ Not Reproduced: 2 of 2 primary values are outside tolerance, 1 of them by 10 % or more (exit code 1).",
        ),
        (((0.874,), ()), "? Incomplete, so nothing is decided: 1 of 2 primary values is within tolerance of the"),
    ],
)
def test_the_answer_says_what_the_verdict_means(values, answer):
    tables = [paper_table(id="Table 1"), paper_table(id="Table 2")]
    rows = [measured({"accuracy": found}, table=f"Table {i + 1}") for i, found in enumerate(values)]
    first, confidence, *_ = compare_results(paper(tables), paper_results(*rows)).document().answer
    assert first.startswith(answer)
    assert confidence.startswith(("Medium confidence: ", "Low confidence: "))
