"""Cells that hold several values."""

from __future__ import annotations

import pytest

from extraction import list_values, read_tables

pytestmark = pytest.mark.usefixtures("forked_reader")

FORMS = {
    "three by their header": (
        "P / R / F1", "0.51 / 0.55 / 0.53", {"precision": "0.51", "recall": "0.55", "f1": "0.53"}
    ),
    "a missing one of three": ("P / R / F1", "0.51 / - / 0.53", {"precision": "0.51", "f1": "0.53"}),
    "by their units": ("Accuracy", "98.7%, 3.9h (A100)", {"accuracy": "98.7 %", "time": "3.9 h"}),
    "a duration": ("Time", "3m 55s", {"time": "235 s"}),
    "a long duration": ("Time", "1h 02m", {"time": "62 min"}),
    "a duration in words": ("Time", "2 min 36.44 sec", {"time": "156.44 s"}),
    "a pair by its header": ("CPU (GPU)", "1.5 (0.3)", {"CPU": "1.5", "GPU": "0.3"}),
    "a pair of a named metric": ("Prec@1 (Err)", "82.2 (17.8)", {"Prec@1": "82.2", "err": "17.8"}),
    "a pair that lost a parenthesis": ("Prec@1 (Err)", "78.9 (21.0", {"Prec@1": "78.9", "err": "21.0"}),
    "a metric before its value": ("Result", "RMSE 0.505", {"rmse": "0.505"}),
    "several metrics before their values": ("Result", "RMSE: 0.505, MAE = 0.4", {"rmse": "0.505", "mae": "0.4"}),
    "a share in parentheses": ("Memory", "4.50 GB (19.05%)", {"memory": "4.50 GB"}),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_every_value_of_a_cell_is_read_under_its_own_name(tmp_path, form):
    header, cell, expected = FORMS[form]
    (table,) = read_tables(tmp_path, f"| Model | {header} |\n|--|--|\n| A | {cell} |\n| B | {cell} |\n")
    found = {metric: shown for (row, _, metric), shown in list_values(table).items() if row == "A"}
    assert found == expected


def test_a_cell_with_another_number_of_values_than_its_header_is_listed(tmp_path):
    (table,) = read_tables(tmp_path, "| Model | Acc / F1 |\n|--|--|\n| A | 0.5 / 0.6 |\n| B | 0.5 |\n")
    assert [(each.line, each.text) for each in table.unread] == [(4, "0.5")]


def test_the_column_decides_what_a_point_is(tmp_path):
    text = "| Model | Rows read | Error |\n|--|--|--|\n| A | 20.000 | 0.125 |\n| B | 11.000.000 | 0.250 |\n"
    (table,) = read_tables(tmp_path, text)
    assert [entry.printed for entry in table.entries] == [
        {"Rows read": "20000", "error": "0.125"},
        {"Rows read": "11000000", "error": "0.250"},
    ]


def test_the_column_decides_what_a_comma_is(tmp_path):
    text = "| Model | Error | Count of things |\n|--|--|--|\n| A | 0,125 | 15,234 |\n| B | 12,5 | 1,015,234 |\n"
    (table,) = read_tables(tmp_path, text)
    assert [list(entry.printed.values()) for entry in table.entries] == [["0.125", "15234"], ["12.5", "1015234"]]


def test_a_sign_that_another_column_makes_doubtful_is_listed(tmp_path):
    text = "| Model | Cost | Loss |\n|--|--|--|\n| A | 11.000.000 | 3.125 |\n| B | 20.000 | 4.250 |\n"
    (table,) = read_tables(tmp_path, text)
    assert [(each.line, each.text) for each in table.doubtful if "thousands" in each.why] == [
        (3, "3.125"),
        (4, "4.250"),
    ]


def test_emphasis_and_marks_are_kept_as_notes(tmp_path):
    rows = "| A | **0.5** |\n| B | <u>0.6</u> |\n| C | 0.7† |\n"
    (table,) = read_tables(tmp_path, f"| Model | Acc |\n|--|--|\n{rows}")
    assert [entry.notes for entry in table.entries] == [
        ("accuracy: bold",), ("accuracy: underline",), ("accuracy: †",)]  # fmt: skip
