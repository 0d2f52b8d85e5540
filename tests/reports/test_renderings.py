"""Every rendering of tables that are no benchmark."""

import ast
import csv
import io
import re
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from markdown_it import MarkdownIt
from rich.console import Console

from boosters_eval import reports
from boosters_eval.reports.document import Document, Paragraph, Section
from boosters_eval.reports.html.page import render_fragment, render_page
from boosters_eval.reports.latex import render_latex
from boosters_eval.reports.markdown import escape, markdown_table, render_markdown
from boosters_eval.reports.tables import CellStatus, Column, Report, ReportTable, Row, TableCell
from boosters_eval.reports.terminal import print_document


def printed(report, **options):
    console = Console(file=io.StringIO(), width=120, legacy_windows=False, **options)
    print_document(report.document(), console)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines()) + "\n"


def shown(document, **options):
    console = Console(file=io.StringIO(), width=120, legacy_windows=False)
    print_document(document, console, **options)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines()) + "\n"


def test_reports_import_no_room_that_has_results():
    imported = set()
    for path in Path(reports.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):  # also what is imported for type checkers only
            if isinstance(node, ast.ImportFrom):
                imported.add(node.module or "")
            elif isinstance(node, ast.Import):
                imported.update(name.name for name in node.names)
    rooms = {name.split(".")[1] for name in imported if name.startswith("boosters_eval.")}
    assert rooms <= {"core", "reports", "metrics", "stats"}


def test_every_rendering_is_as_the_golden_file_says(paper, golden):
    golden("paper.terminal.txt", printed(paper, color_system=None))
    golden("paper.md", paper.to_markdown())
    golden("paper.csv", paper.to_csv())
    golden("paper.fragment.html", paper._repr_html_() + "\n")


def test_a_whole_document_is_as_the_golden_files_say(document, golden):
    golden("paper-report.md", render_markdown(document))
    golden("paper-report.terminal.txt", shown(document))
    golden("paper-report.tex", render_latex(document))
    page = re.sub(r"(?s)<(style|script)>.*?</\1>", "", render_page(document))
    golden("paper-report.html", re.sub(r"sha256-[^']*", "sha256", page))


@pytest.mark.parametrize("status", [status for status in get_args(CellStatus) if status != "ok"])
@pytest.mark.parametrize("text", ["0.5", "", "\u2013"])
def test_no_rendering_shows_a_status_as_an_ordinary_or_empty_cell(status, text):
    cell = TableCell(mean=None, std=None, n=0, text=text, status=status)
    table = ReportTable("t", ("Who",), (Column("x", "X", None),), (Row(("me",), (cell,)),))
    report = Report((table,))
    shown = status if text != "0.5" else f"0.5 ({status})"
    assert f"| {shown} " in report.to_markdown()
    assert f" {shown} " in printed(report, color_system=None)
    assert f'<span class="status {status}">{status}</span>' in report._repr_html_()
    (line,) = csv.DictReader(io.StringIO(report.to_csv()))
    assert line["status"] == status


def test_an_ordinary_cell_without_text_is_a_dash():
    cell = TableCell(mean=None, std=None, n=0, text="")
    table = ReportTable("t", ("Who",), (Column("x", "X", None),), (Row(("me",), (cell,)),))
    assert "| me  | \u2013   |" in Report((table,)).to_markdown()


def test_a_status_has_a_color_where_the_terminal_has_colors(paper):
    text = printed(paper, force_terminal=True, color_system="standard")
    assert "\x1b[1;31m0.931 (fail)" in text
    assert "\x1b[33m0.902 (warn)" in text
    assert "\x1b[1;32m0.953 (pass)" in text
    assert "**" not in text


def test_keys_and_row_names_of_all_tables_are_columns_of_the_csv(paper):
    lines = list(csv.reader(io.StringIO(paper.to_csv())))
    assert lines[0][:6] == ["table", "page", "model", "model_2", "data_set", "column"]
    assert lines[1][:6] == ["Table 2", "7", "all", "MLP", "iris", "reported"]
    assert lines[-1][:6] == ["Table 3", "8", "", "CNN", "", "seconds"]


def test_a_table_without_repeats_has_neither_a_count_nor_pictures(document):
    assert "n" not in document.tables()[0].headings
    page = render_page(document)
    card = page[page.index('data-search="Table 2') : page.index('data-search="Table 3')]
    assert "<svg" not in card
    assert "Time (s): the mean, and each repeat as a dot" in page
    assert "; one run</figcaption>" in page


def test_a_group_without_a_title_has_no_heading(document):
    assert "### Table 3 (2 repeats)" in render_markdown(document).splitlines()
    assert render_page(document).count("<h3>") == 1


def test_a_document_with_nothing_but_a_title_is_valid():
    bare = Document("Nothing")
    assert render_markdown(bare) == "# Nothing\n"
    assert "<h1>Nothing</h1>" in render_page(bare)
    assert render_markdown(Document("")) == "No results.\n"


@pytest.mark.parametrize("anchors", [("summary",), ("a", "a"), ("A b",), ('x"y',)])
def test_a_section_needs_an_anchor_of_its_own(anchors):
    with pytest.raises(ValueError, match="anchor"):
        Document("t", sections=tuple(Section(a, a, (Paragraph("x"),)) for a in anchors))


def test_a_terminal_leaves_details_out_unless_everything_is_wanted(document):
    assert "arXiv" in shown(document)
    assert "arXiv" not in shown(document, whole=False)


def test_answers_of_tables_stand_above_all_only_if_the_document_has_none(paper):
    tables = tuple(replace(table, answer=(f"{table.name} holds.",)) for table in paper.tables)
    told = Report(tables).document()
    assert shown(told).startswith("Table 2: Table 2 holds.\nTable 3: Table 3 holds.\n\nTable 2\n")
    answered = shown(replace(told, answer=("Both hold.",)))
    assert answered.startswith("Both hold.\n\nTable 2\nTable 2 holds.\n")
    assert "\n\n\n" not in answered


def test_a_notebook_shows_the_answer_the_tables_and_a_chart(document):
    text = render_fragment(document)
    assert text.startswith("<div><p>It does not: 1 claim of 6 failed.</p><table>")
    assert text.count("<svg") == 1
    assert "<script" not in text


def test_markdown_of_a_cell_keeps_the_shape_of_its_table():
    cell = TableCell(mean=None, std=None, n=0, text="<b>|**x**")
    table = ReportTable("a|b", ("W|ho",), (Column("x", "X|Y", None),), (Row(("m|e",), (cell,)),))
    html = MarkdownIt("commonmark").enable("table").render(Report((table,)).to_markdown())
    assert "<td>&lt;b&gt;|**x**</td>" in html
    assert html.count("<td>") == 2


def test_the_example_of_the_documentation_runs(capsys):
    text = (Path(__file__).parents[2] / "docs" / "reports.md").read_text()
    *_, example = re.findall(r"(?s)```python\n(.*?)```", text)
    exec(example, {})
    assert "| MLP   | iris     | 0.931 (fail) |" in capsys.readouterr().out


def test_escaped_text_reads_as_it_was():
    text = r"a|b *c* [d](e) <f> `g` _h_ i_j & \k"
    html = MarkdownIt("commonmark").enable("table").render(markdown_table(["x"], [[escape(text)]]))
    assert "<td>a|b *c* [d](e) &lt;f&gt; `g` _h_ i_j &amp; \\k</td>" in html
