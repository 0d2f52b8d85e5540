"""Every rendering of tables that are no benchmark."""

import ast
import csv
import io
import json
import re
from pathlib import Path
from typing import get_args

import pytest
from boosters_eval.reports.text import escape, markdown_table
from markdown_it import MarkdownIt
from pydantic import TypeAdapter
from rich.console import Console

from boosters_eval import reports
from boosters_eval.core.errors import ConfigError
from boosters_eval.reports import (
    Column,
    Report,
    ReportDocument,
    ReportTable,
    Row,
    Section,
    TableCell,
    print_report,
    render_csv,
    render_fragment,
    render_json,
    render_markdown,
    render_page,
    render_report,
)
from boosters_eval.reports.tables import CellStatus


def printed(report, **options):
    console = Console(file=io.StringIO(), width=120, legacy_windows=False, **options)
    print_report(report, console)
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
    golden("paper.md", render_markdown(paper))
    golden("paper.csv", render_csv(paper))
    golden("paper.json", render_json(paper))
    golden("paper.fragment.html", render_fragment(paper) + "\n")


def test_a_whole_document_is_as_the_golden_files_say(document, golden):
    golden("paper-report.md", render_report(document))
    page = re.sub(r"(?s)<(style|script)>.*?</\1>", "", render_page(document))
    golden("paper-report.html", re.sub(r"sha256-[^']*", "sha256", page))


def test_what_was_written_as_json_can_be_read_back(paper, document):
    assert TypeAdapter(Report).validate_json(render_json(paper)) == paper
    assert ReportDocument.model_validate_json(document.model_dump_json()) == document


@pytest.mark.parametrize("status", [status for status in get_args(CellStatus) if status != "ok"])
@pytest.mark.parametrize("text", ["0.5", "", "\u2013"])
def test_no_rendering_shows_a_status_as_an_ordinary_or_empty_cell(status, text):
    cell = TableCell(mean=None, std=None, n=0, text=text, status=status)
    table = ReportTable("t", ("Who",), (Column("x", "X", None),), (Row(("me",), (cell,)),))
    report = Report((table,))
    shown = status if text != "0.5" else f"0.5 ({status})"
    assert f"| {shown} " in render_markdown(report)
    assert f" {shown} " in printed(report, color_system=None)
    assert f'<span class="status {status}">{status}</span>' in render_fragment(report)
    (line,) = csv.DictReader(io.StringIO(render_csv(report)))
    assert line["status"] == status
    assert json.loads(render_json(report))["tables"][0]["rows"][0]["cells"][0]["status"] == status


def test_an_ordinary_cell_without_text_is_a_dash():
    cell = TableCell(mean=None, std=None, n=0, text="")
    table = ReportTable("t", ("Who",), (Column("x", "X", None),), (Row(("me",), (cell,)),))
    assert "| me  | \u2013   |" in render_markdown(Report((table,)))


def test_a_status_has_a_color_where_the_terminal_has_colors(paper):
    text = printed(paper, force_terminal=True, color_system="standard")
    assert "\x1b[1;31m0.931 (fail)" in text
    assert "\x1b[33m0.902 (warn)" in text
    assert "\x1b[1;32m0.953 (pass)" in text
    assert "**" not in text


def test_keys_and_row_names_of_all_tables_are_columns_of_the_csv(paper):
    lines = list(csv.reader(io.StringIO(render_csv(paper))))
    assert lines[0][:6] == ["table", "page", "model", "model_2", "data_set", "column"]
    assert lines[1][:6] == ["Table 2", "7", "all", "MLP", "iris", "reported"]
    assert lines[-1][:6] == ["Table 3", "8", "", "CNN", "", "seconds"]


def test_a_table_without_repeats_has_neither_a_count_nor_pictures(document):
    assert "n" not in document.tables[0].headings
    page = render_page(document)
    card = page[page.index('data-search="Table 2') : page.index('data-search="Table 3')]
    assert "<svg" not in card
    assert "Time (s): the mean, and each repeat as a dot" in page
    assert "; one run</figcaption>" in page


def test_tables_without_groups_have_no_headings_above_them(document):
    ungrouped = document.replace(group_by=None)
    assert "### Table 2" in render_report(ungrouped).splitlines()
    assert "<h3>" not in render_page(ungrouped)


def test_a_document_with_nothing_but_a_title_is_valid():
    bare = ReportDocument(title="Nothing", tables=())
    assert render_report(bare) == "# Nothing\n\n## Results\n\nNo results.\n"
    assert "<p>No results.</p>" in render_page(bare)


@pytest.mark.parametrize("anchors", [("results",), ("a", "a"), ("A b",), ('x"y',)])
def test_a_section_needs_an_anchor_of_its_own(anchors):
    with pytest.raises(ConfigError):
        ReportDocument(title="t", tables=(), sections=[Section(anchor=a, title=a, blocks=()) for a in anchors])


def test_markdown_of_a_cell_keeps_the_shape_of_its_table():
    cell = TableCell(mean=None, std=None, n=0, text="<b>|**x**")
    table = ReportTable("a|b", ("W|ho",), (Column("x", "X|Y", None),), (Row(("m|e",), (cell,)),))
    html = MarkdownIt("commonmark").enable("table").render(render_markdown(Report((table,))))
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
