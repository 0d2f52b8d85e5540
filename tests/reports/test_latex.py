"""Tables for papers: whatever a name holds, LaTeX prints it and runs nothing."""

import re
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

import factories
from boosters_eval.programs.benchmark.tables.build import build_tables
from boosters_eval.reports.latex import escape_latex
from boosters_eval.reports.tables import Column, Report, ReportTable, Row, TableCell

HOSTILE = r"\input{/etc/passwd} 100% & $x_1^2$ #{} ~ | <b> --seeds"


def cell(text, **more):
    return TableCell(mean=1.0, std=None, n=3, text=text, **more)


def table(columns=2, name="a/b", **more):
    made = tuple(Column(f"c{i}", f"C{i}", higher_is_better=False) for i in range(columns))
    rows = tuple(Row((who,), tuple(cell(f"{i} ± 0") for i in range(columns)), n=3) for who in ("one", "two"))
    return ReportTable(name, ("Library",), made, rows, **more)


@given(st.text())
def test_no_text_becomes_a_command(text):
    escaped = escape_latex(text)
    known = r"\\(textbackslash|textasciitilde|textasciicircum|ldots)\{\}|\\[&%$#_{}]|\$[^$]*\$|-\{\}-"
    assert not set(re.sub(known, "", escaped)) & set("\\&%$#_{}~^")


def test_hyphens_stay_hyphens():
    assert escape_latex("--seeds 5") == "-{}-seeds 5"
    assert escape_latex("a \N{EN DASH} b") == "a -- b"


def test_table_has_rules_a_caption_and_a_label():
    text = Report((table(answer=("One is best.",)),)).to_latex()
    assert text.startswith("% \\usepackage{booktabs}\n\n\\begin{table}\n")
    assert "\\caption{a/b. One is best.}" in text
    assert "\\label{tab:a-b}" in text
    assert "    Library & C0 $\\downarrow$ & C1 $\\downarrow$ & n \\\\\n    \\midrule\n" in text
    assert "    one & 0 $\\pm$ 0 & 1 $\\pm$ 0 & 3 \\\\\n" in text


def test_best_value_is_bold_and_a_missing_one_is_a_dash():
    made = ReportTable(
        "t", ("Library",), (Column("x", "X", None),), (Row(("a",), (cell("1", best=True),)), Row(("b",), (cell(""),)))
    )
    text = Report((made,)).to_latex()
    assert "a & \\textbf{1} \\\\" in text
    assert "b & -- \\\\" in text


def test_columns_that_do_not_fit_go_below_and_repeats_are_counted_once():
    text = Report((table(columns=6),)).to_latex()
    assert text.count("\\begin{tabular}") == 2
    assert text.count("\\begin{tabular}{lrrrr}") == 1
    assert text.count("& n \\\\") == 1


def test_costs_stand_below_what_is_measured():
    score, seconds = Column("x", "Score", None), Column("t", "Train time (s)", None, kind="time")
    text = Report(
        (ReportTable("t", ("Library",), (seconds, score), (Row(("a",), (cell("1"), cell("2"))),)),)
    ).to_latex()
    assert re.findall(r"\\toprule\n *(.*?) \\\\", text) == ["Library & Score", "Library & Train time (s)"]


def test_letters_that_pdflatex_does_not_know_are_named():
    text = Report((table(name="数据"),)).to_latex()
    assert "% XeLaTeX or LuaLaTeX, and a font with 据 数\n" in text


def test_no_results_are_a_comment():
    assert Report(()).to_latex() == "% No results.\n"


@pytest.mark.latex
@pytest.mark.parametrize(
    "report", [Report((table(6, HOSTILE, notes=(HOSTILE,), answer=(HOSTILE,)),), (HOSTILE,)), None]
)
def test_it_compiles_and_fits_the_page(report, tmp_path):
    assert shutil.which("pdflatex"), "run make test-latex"
    made = report or build_tables(factories.collection())
    (tmp_path / "table.tex").write_text(made.to_latex(), encoding="utf-8")
    main = "\\documentclass{article}\\usepackage{booktabs}\\begin{document}\\input{table.tex}\\end{document}"
    (tmp_path / "main.tex").write_text(main)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "main.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull \\hbox" not in "".join(re.findall(r"Overfull \\hbox[^\n]*alignment[^\n]*", done.stdout))
