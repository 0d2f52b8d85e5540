"""Rows keep their identity: whatever the shape of a table, no number comes to stand under another row."""

from __future__ import annotations

import pytest

from extraction import list_values, read_tables

pytestmark = pytest.mark.usefixtures("forked_reader")


def markdown(*rows):
    return "\n".join(f"| {row} |" for row in (rows[0], " | ".join(["--"] * (rows[0].count("|") + 1)), *rows[1:])) + "\n"


def latex(*rows):
    return "\\begin{tabular}{llrr}\n" + " \\\\\n".join(rows).replace("HLINE \\\\", "\\hline") + "\n\\end{tabular}"


def html(*rows):
    return "<table>" + "".join(f"<tr>{row}</tr>" for row in rows) + "</table>"


def cells(*texts, style=""):
    return f"<td style='{style}'>{texts[0]}</td>" + "".join(f"<td>{text}</td>" for text in texts[1:])


HEADER = "<th>Model</th><th>Adult</th><th>Bank</th>"
TITLES = ("<td colspan=3>Small</td>", "<td colspan=3>Large</td>")
BASES = ("Base-7B | 4.23 | 3.90", "{} | 4.10 | -", "Base-14B | 3.50 | 3.20", "{} | 3.40 | 3.10")
SPANS = (r"\multirow{2}{*}{Base-7B}", r"\multirow{2}{*}{Base-14B}")


def block(variant):
    return markdown("Model | Adult | Bank", *(row.format(variant) for row in BASES))


SHAPES = {
    "variants marked by a plus": (
        block("+ trick"),
        "paper.md",
        ["Base-7B", "Base-7B / + trick", "Base-14B", "Base-14B / + trick"],
    ),
    "variants moved to the right in Markdown": (
        block("&nbsp;&nbsp;tuned"),
        "paper.md",
        ["Base-7B", "Base-7B / tuned", "Base-14B", "Base-14B / tuned"],
    ),
    "variants without something in LaTeX": (
        latex("Model & Adult & Bank", "HLINE", *(row.format(r"\quad w/o norm").replace("|", "&") for row in BASES)),
        "paper.tex",
        ["Base-7B", "Base-7B / w/o norm", "Base-14B", "Base-14B / w/o norm"],
    ),
    "variants moved to the right by a style in HTML": (
        html(
            HEADER,
            cells("Base-7B", "4.23", "3.90"),
            cells("long", "4.10", "", style="padding-left: 1em"),
            cells("Base-14B", "3.50", "3.20"),
            cells("long", "3.40", "3.10", style="padding-left: 1em"),
        ),
        "paper.html",
        ["Base-7B", "Base-7B / long", "Base-14B", "Base-14B / long"],
    ),
    "a name over several rows in LaTeX": (
        latex(
            "Model & Setting & Adult & Bank",
            "HLINE",
            f"{SPANS[0]} & plain & 4.23 & 3.90",
            " & trick & 4.10 & --",
            f"{SPANS[1]} & plain & 3.50 & 3.20",
            " & trick & 3.40 & 3.10",
        ),
        "paper.tex",
        ["plain / Base-7B", "trick / Base-7B", "plain / Base-14B", "trick / Base-14B"],
    ),
    "groups with the same names": (
        markdown(
            "Model | Adult | Bank",
            "**Small** | |",
            "Base | 4.23 | 3.90",
            "+ trick | 4.10 | -",
            "**Large** | |",
            "Base | 3.50 | 3.20",
            "+ trick | 3.40 | 3.10",
        ),
        "paper.md",
        ["Small / Base", "Small / Base / + trick", "Large / Base", "Large / Base / + trick"],
    ),
    "a title over all columns in HTML": (
        html(
            HEADER,
            TITLES[0],
            cells("Base", "4.23", "3.90"),
            cells("Other", "4.10", "-"),
            TITLES[1],
            cells("Base", "3.50", "3.20"),
            cells("Other", "3.40", "3.10"),
        ),
        "paper.html",
        ["Small / Base", "Small / Other", "Large / Base", "Large / Other"],
    ),
    "rows that are the same": (
        block("Again"),
        "paper.md",
        ["Base-7B", "line 4 / Again", "Base-14B", "line 6 / Again"],
    ),
    "rows told apart by numbers": (
        markdown(
            "Model | depth | bins | Adult | Bank",
            "XGB | 6 | 64 | 4.23 | 3.90",
            "XGB | 6 | 128 | 4.10 | -",
            "XGB | 8 | 64 | 3.50 | 3.20",
            "XGB | 8 | 128 | 3.40 | 3.10",
        ),
        "paper.md",
        [f"depth {depth} / bins {bins} / XGB" for depth in (6, 8) for bins in (64, 128)],
    ),
    "rows told apart by numbers behind the values": (
        markdown(
            "Model | Adult | Bank | Resolution",
            "XGB | 4.23 | 3.90 | 64",
            "XGB | 4.10 | - | 128",
            "LGB | 3.50 | 3.20 | 64",
            "LGB | 3.40 | 3.10 | 128",
        ),
        "paper.md",
        [f"Resolution {size} / {name}" for name in ("XGB", "LGB") for size in (64, 128)],
    ),
    "variants of variants": (
        markdown(
            "Model | Adult | Bank",
            "Base | 4.23 | 3.90",
            "&emsp;+ a | 4.10 | -",
            "&emsp;&emsp;+ b | 3.50 | 3.20",
            "Other | 3.40 | 3.10",
        ),
        "paper.md",
        ["Base", "Base / + a", "Base / + a / + b", "Other"],
    ),
    "a name that is left empty": (
        markdown(
            "Model | Kind | Adult | Bank",
            "Base | a | 4.23 | 3.90",
            " | b | 4.10 | -",
            "Other | a | 3.50 | 3.20",
            " | b | 3.40 | 3.10",
        ),
        "paper.md",
        ["a / Base", "b / Base", "a / Other", "b / Other"],
    ),
}
PRINTED = [("4.23", "3.90"), ("4.10", None), ("3.50", "3.20"), ("3.40", "3.10")]


@pytest.mark.parametrize("shape", SHAPES)
def test_no_number_stands_under_another_row(tmp_path, shape):
    text, name, rows = SHAPES[shape]
    (table,) = read_tables(tmp_path, text, name, columns="datasets", metric="score")
    expected = {
        (row, dataset, "score"): value
        for row, printed in zip(rows, PRINTED, strict=True)
        for dataset, value in zip(("Adult", "Bank"), printed, strict=True)
        if value
    }
    assert list_values(table) == expected


def test_a_row_outside_of_a_group_that_is_moved_to_the_right_is_not_in_it(tmp_path):
    text = "| Model | Acc |\n|--|--|\n| Boosting | |\n| &emsp;A | 0.5 |\n| &emsp;B | 0.6 |\n| Forest | 0.7 |\n"
    (table,) = read_tables(tmp_path, text)
    assert [(entry.group, entry.model_name) for entry in table.entries] == [
        ("Boosting", "A"), ("Boosting", "B"), ("", "Forest")]  # fmt: skip


def test_a_header_in_the_middle_names_the_columns_below_it(tmp_path):
    text = "| Model | Acc | AUC |\n|--|--|--|\n| A | 0.5 | 0.6 |\n| Model | RMSE | MAE |\n| A | 1.5 | 1.6 |\n"
    (table,) = read_tables(tmp_path, text)
    assert set(list_values(table)) == {
        ("line 3 / A", "unnamed", "accuracy"),
        ("line 3 / A", "unnamed", "auc_roc"),
        ("line 5 / A", "unnamed", "rmse"),
        ("line 5 / A", "unnamed", "mae"),
    }


def test_rows_of_one_entry_that_differ_in_their_metric_belong_together_though_one_is_missing(tmp_path):
    rows = ["A | RMSE | 1.5", "A | MAE | -", "B | RMSE | 1.7", "B | MAE | 1.8"]
    text = "\n".join(["| Model | Metric | Adult |", "|--|--|--|", *(f"| {row} |" for row in rows)])
    (table,) = read_tables(tmp_path, text)
    assert [(entry.model_name, entry.printed) for entry in table.entries] == [
        ("A", {"rmse": "1.5"}), ("B", {"rmse": "1.7", "mae": "1.8"})]  # fmt: skip
