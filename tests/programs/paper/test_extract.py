"""From documents to tables: layouts, captions, limits, and the file that is written."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boosters_eval import extract_paper
from boosters_eval.core import reader
from boosters_eval.core.errors import ConfigError, FileFormatError, MissingLibraryError
from boosters_eval.programs.paper import documents
from boosters_eval.programs.paper.extract import (
    BenchmarkEntry,
    BenchmarkTable,
    ExtractedPaper,
    extract,
    extract_benchmarks,
    write_specification,
)
from boosters_eval.programs.paper.request import ExtractPaperRequest
from boosters_eval.programs.paper.specification import read_specification
from printed_tables import WRITERS

pytestmark = pytest.mark.usefixtures("forked_reader")

CONVERTED = r"""
# Revisiting models

Table 3: Results for ensembles. Notation: ↓ ~ RMSE, ↑ ~ accuracy.

|  | CA ↓ | rank (std) |
| --- | --- | --- |
| NODE | 0.4610.4610.461 | 7.57.57.5 (2.0)2.0(2.0) |

Text between. [Table 4](#S4.T4 "Table 4 ‣ 4.5") tells more.

Table 4: Results for ensembles of GBDT and the main DL models. See supplementary for standard deviations.
Notation follows [Table 3](#S4.T3 "Table 3").

|  |  |  |
| --- | --- | --- |
|  | CA ↓ | AD ↑ |
| Default hyperparameters | | |
| XGBoost | 0.4620.4620.462 | 0.8740.874\mathbf{0.874} |
| CatBoost | 0.4280.428\mathbf{0.428} | – |
| Tuned hyperparameters | | |
| XGBoost | 0.4310.4310.431 | 313131 |
"""
LINE = CONVERTED[: CONVERTED.index("313131")].count("\n") + 1
README = """
## Comparison results

| | Default CatBoost | Tuned CatBoost
--- | --- | ---
[Adult](https://archive.ics.uci.edu/ml/datasets/Adult) | 0.272978 (±0.0004) (+1.20%) | _**0.269741**_ (±0.0001)

Metric: Logloss (lower is better). In the first brackets - std, in the second - the percentage difference.
"""
PAPER_TEX = r"""
\newcommand{\std}[1]{{\tiny$\pm$#1}}
\title{A \emph{fine} paper on Poincar\'e}
\begin{document}
\begin{table*}[t]
\caption{Results over 5 random seeds. Best in \textbf{bold}.}\label{tab:x}
\begin{tabular}{l cc cc}
\toprule
& \multicolumn{2}{c}{Precision $\uparrow$} & \multicolumn{2}{c}{RMSE $\downarrow$} \\
\cmidrule(lr){2-3} \cmidrule(lr){4-5}
Scene & Ours & ColoR & Ours & ColoR \\
\midrule  % a & that is no cell \\
S1 & \textbf{87.4}\std{0.3} & 86.1 & $0.51_{\pm 0.01}$ & 0.62$^\dagger$ \\
S2 & 12\unheard{3} & -- & 0.5 & 1{,}234.5 \\
\bottomrule
\end{tabular}
\end{table*}
\begin{table}
\begin{tabular}{|l|l|r|}
\hline
Setting & Model & Error \\ \hline
\multirow{2}{*}{Small} & XGBoost & 0.25 \\ \cline{2-3}
 & \begin{tabular}[c]{@{}c@{}}Light\\GBM\end{tabular} & 0.24 \\ \hline
\end{tabular}
\caption{Errors}
\end{table}
\end{document}
"""
PAGE = """<html><head><title>A &amp; B</title></head><body>
<figure><figcaption>Table 2: Results of 10-fold cross-validation</figcaption>
<table><thead><tr><th rowspan="2">Method</th><th colspan="2">Adult</th><th>Bank</th></tr>
<tr><th>Acc &uarr;</th><th>AUC</th><th>Acc</th></tr></thead>
<tbody><tr><td colspan="4"><b>Boosting</b></td></tr>
<tr><td>XGBoost</td><td><b>0.870</b> &plusmn; 0.001</td><td>0.92<sub>±0.01</sub></td><td>0.9<sup>2</sup></td></tr>
</tbody></table></figure></body></html>"""


def extracted(tmp_path, text, name="paper.md", **options) -> ExtractedPaper:
    path = tmp_path / name
    path.write_text(text)
    return extract_benchmarks(ExtractPaperRequest(document=path, **options))


def values(table: BenchmarkTable) -> dict[tuple[str, str, str], str]:
    return {
        (f"{entry.group} / {entry.model_name}".removeprefix(" / "), entry.dataset, name): printed
        for entry in table.entries
        for name, printed in entry.printed.items()
    }


def written(tmp_path, found: ExtractedPaper):
    path = tmp_path / "benchmarks.yaml"
    path.write_text(write_specification(found))
    return read_specification(path)


def test_a_converted_paper_with_groups_arrows_and_repeated_numbers(tmp_path):
    found = extracted(tmp_path, CONVERTED)
    assert [(table.table_id, table.title) for table in found.tables] == [
        ("Table 3", "Results for ensembles"),
        ("Table 4", "Results for ensembles of GBDT and the main DL models"),
    ]
    assert values(found.tables[0]) == {
        ("NODE", "CA", "rmse"): "0.461",
        ("NODE", "all", "rank"): "7.5",
        ("NODE", "all", "rank_std"): "2.0",
    }
    assert values(found.tables[1]) == {
        ("Default hyperparameters / XGBoost", "CA", "rmse"): "0.462",
        ("Default hyperparameters / XGBoost", "AD", "accuracy"): "0.874",
        ("Default hyperparameters / CatBoost", "CA", "rmse"): "0.428",
        ("Tuned hyperparameters / XGBoost", "CA", "rmse"): "0.431",
    }
    assert found.tables[1].directions == {"rmse": "lower", "accuracy": "higher"}
    (unread,) = found.tables[1].unread
    assert str(unread).startswith(f"line {LINE}, row 'Tuned hyperparameters XGBoost', column 'AD ↑': ")
    assert (unread.text, unread.why) == ("313131", "a conversion may have written '31' 3 times")
    spec = written(tmp_path, found)
    assert spec.tables[1].row_keys[2] == "Tuned hyperparameters / XGBoost"


def test_models_in_the_columns_and_the_metric_in_the_text_below(tmp_path):
    table = extracted(tmp_path, README).tables[0]
    assert values(table) == {
        ("Default CatBoost", "Adult", "logloss"): "0.272978",
        ("Default CatBoost", "Adult", "logloss_std"): "0.0004",
        ("Tuned CatBoost", "Adult", "logloss"): "0.269741",
        ("Tuned CatBoost", "Adult", "logloss_std"): "0.0001",
    }
    assert table.directions == {"logloss": "lower"}
    assert table.entries[0].notes == ("logloss: (+1.20%)",)
    assert table.entries[1].emphasized == ("logloss",)


def test_latex_with_spans_rules_macros_and_comments(tmp_path):
    found = extracted(tmp_path, PAPER_TEX, "paper.tex")
    assert found.paper == "A fine paper on Poincaré"
    first, second = found.tables
    assert (first.table_id, second.table_id, first.std_over, first.our_model_row) == (
        "Table 1",
        "Table 2",
        "seeds",
        "Ours",
    )
    assert values(first) == {
        ("Ours", "S1", "precision"): "87.4",
        ("Ours", "S1", "precision_std"): "0.3",
        ("ColoR", "S1", "precision"): "86.1",
        ("Ours", "S1", "rmse"): "0.51",
        ("Ours", "S1", "rmse_std"): "0.01",
        ("ColoR", "S1", "rmse"): "0.62",
        ("Ours", "S2", "rmse"): "0.5",
        ("ColoR", "S2", "rmse"): "1234.5",
    }
    assert [(each.line, each.row, each.column) for each in first.unread] == [(14, "S2", "Precision ↑ / Ours")]
    assert set(values(second)) == {("Small / XGBoost", "unnamed", "error"), ("Small / Light GBM", "unnamed", "error")}


def test_html_with_spans_and_scripts(tmp_path):
    found = extracted(tmp_path, PAGE, "paper.html")
    table = found.tables[0]
    assert (found.paper, table.table_id, table.std_over) == ("A & B", "Table 2", "folds")
    assert values(table) == {
        ("Boosting / XGBoost", "Adult", "accuracy"): "0.870",
        ("Boosting / XGBoost", "Adult", "accuracy_std"): "0.001",
        ("Boosting / XGBoost", "Adult", "auc_roc"): "0.92",
        ("Boosting / XGBoost", "Adult", "auc_roc_std"): "0.01",
    }
    assert table.unread[0].text == "0.9^{2}"


def test_html_and_latex_tables_inside_markdown(tmp_path):
    text = f"# T\n\nTable 7: Page\n\n{PAGE[PAGE.index('<table>') : PAGE.index('</figure>')]}\n\n"
    text += "```\n| a | b |\n|--|--|\n| c | 1 |\n```\n"
    text += PAPER_TEX[PAPER_TEX.index(r"\begin{table}") :].replace(r"\end{document}", "")
    line = text[: text.index("Setting & Model")].count("\n") + 1
    found = extracted(tmp_path, text)
    assert [table.table_id for table in found.tables] == ["Table 7", f"Table at line {line}"]  # code is no table
    assert found.tables[1].title == "Errors"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("### Table 1: On things\n\nAbout it.\n\n", "", ("Table 1", "On things", "About it.")),
        ("Table 4: On things. More.\n\n", "", ("Table 4", "On things", "More.")),
        ("**Table 4.** On things\n\n", "", ("Table 4", "On things", "")),
        ("", "\nTable 4: On things\n", ("Table 4", "On things", "")),
        ("Table 4 (continued): On things\n\n", "", ("Table 4", "On things", "")),
        ("", "\nTable A.1 — On things\n", ("Table A.1", "On things", "")),
        ("## Heading\n\nTable 2 reports nothing.\n\n", "", ("Table at line 5", "Heading", "")),
    ],
)
def test_a_caption_is_found_before_or_after_its_table(tmp_path, before, after, expected):
    table = extracted(tmp_path, f"{before}| Model | RMSE |\n|---|---|\n| A | 1.5 |\n{after}").tables[0]
    assert (table.table_id, table.title, table.description) == expected


def test_a_column_of_deviations_belongs_to_the_metric_to_its_left(tmp_path):
    table = extracted(tmp_path, "| Model | Acc | Std | Loss |\n|--|--|--|--|\n| A | 0.91 | 0.02 | 1.5 |\n").tables[0]
    (entry,) = table.entries
    assert (set(entry.metrics), entry.std_values) == ({"accuracy", "loss"}, {"accuracy": 0.02})


def test_a_metric_of_some_data_sets_is_not_taken_for_all(tmp_path):
    table = "| System | QQP | SST-2 |\n|--|--|--|\n| BERT | 72.1 | 94.9 |\n"
    some = extracted(tmp_path, f"Table 1: GLUE test results. QQP is F1.\n\n{table}").tables[0]
    every = extracted(tmp_path, f"Table 1: GLUE test results. All are F1.\n\n{table}").tables[0]
    assert [set(entry.metrics) for entry in some.entries] == [{"unnamed"}] * 2
    assert [set(entry.metrics) for entry in every.entries] == [{"f1"}] * 2


def test_a_caption_between_two_tables_goes_the_way_of_the_others(tmp_path):
    table = "| Model | RMSE |\n|---|---|\n| A | 1.5 |\n\n"
    above = f"Table 1: a\n\n{table}Table 2: b\n\n{table}"
    below = f"{table}Table 1: a\n\n{table}Table 2: b\n\n"
    for text in (above, below):
        assert [(each.table_id, each.title) for each in extracted(tmp_path, text).tables] == [
            ("Table 1", "a"),
            ("Table 2", "b"),
        ]


LAYOUTS = {
    "metrics in the columns": (
        ("| Model | Acc (%) | Time (s) |", "| XGBoost | 87.4 | 1.5 |"),
        {("XGBoost", "unnamed", "accuracy"), ("XGBoost", "unnamed", "time")},
    ),
    "data sets in the columns": (
        ("| Model | Adult (Acc) | California RMSE |", "| M1 | 0.87 | 0.46 |"),
        {("M1", "Adult", "accuracy"), ("M1", "California", "rmse")},
    ),
    "models in the columns": (
        ("| Dataset | boosters | XGBoost |", "| foo | 0.1 | 0.2 |"),
        {("boosters", "foo", "unnamed"), ("XGBoost", "foo", "unnamed")},
    ),
    "metrics in the rows": (
        ("| Metric | XGBoost | CatBoost |", "| AUC | 0.9 | 0.91 |"),
        {("XGBoost", "unnamed", "auc_roc"), ("CatBoost", "unnamed", "auc_roc")},
    ),
    "one result per row": (("| Model | Dataset | RMSE |", "| M1 | Adult | 0.46 |"), {("M1", "Adult", "rmse")}),
    "numbers as headers": (
        ("| Model | 4096 | 8192 |", "| M1 | 95 | 81 |"),
        {("M1", "unnamed", "4096"), ("M1", "unnamed", "8192")},
    ),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_rows_and_columns_are_told_apart_and_the_rule_is_written_down(tmp_path, name):
    (header, row), expected = LAYOUTS[name]
    found = extracted(tmp_path, f"{header}\n|---|---|---|\n{row}\n")
    assert set(values(found.tables[0])) == expected
    for rule in found.tables[0].layout:
        assert f"# {rule}" in write_specification(found)


def test_a_row_that_names_a_metric_says_its_unit_and_direction(tmp_path):
    text = "| Metric | M1 | M2 |\n|--|--|--|\n| Reward ↑ | 12.1 | 13.2 |\n| Train time (ms) | 120 | 130 s |\n"
    table = extracted(tmp_path, text).tables[0]
    assert table.directions == {"Reward": "higher"}
    assert [entry.metric_units for entry in table.entries] == [{"Train time": "ms"}, {"Train time": "s"}]


def test_a_row_of_data_sets_that_names_a_metric_is_of_that_metric(tmp_path):
    text = (
        "Table 1: RMSE.\n\n| Dataset | M1 |\n|--|--|\n| Boston | 2.9 |\n| Adult (Acc) | 0.87 |\n| Avg. rank | 1.5 |\n"
    )
    found = set(values(extracted(tmp_path, text).tables[0]))
    assert found == {("M1", "Boston", "rmse"), ("M1", "Adult", "accuracy"), ("M1", "all", "Avg. rank")}


def test_a_name_that_is_left_empty_is_that_of_the_row_above(tmp_path):
    rows = ["Adult | XGB | 87.4", " | LGB | 87.5", "Higgs | XGB | 74.1", " | LGB | 74.0"]
    text = "\n".join(["| Dataset | Model | Acc |", "|--|--|--|", *(f"| {row} |" for row in rows)])
    table = extracted(tmp_path, text).tables[0]
    expected = {("XGB", "Adult", 87.4), ("LGB", "Adult", 87.5), ("XGB", "Higgs", 74.1), ("LGB", "Higgs", 74.0)}
    assert {(each.model_name, each.dataset, each.metrics["accuracy"]) for each in table.entries} == expected
    assert not table.unread


@pytest.mark.parametrize(("marks", "units"), [("|  | ↓ | ↑ |", {}), ("| | (ms) | % |", {"Outlay": "ms", "Gain": "%"})])
def test_a_header_row_of_arrows_or_units_belongs_to_the_one_above(tmp_path, marks, units):
    table = extracted(tmp_path, f"| Model | Outlay | Gain |\n|--|--|--|\n{marks}\n| M1 | 3.2 | 9.1 |\n").tables[0]
    assert set(values(table)) == {("M1", "unnamed", "Outlay"), ("M1", "unnamed", "Gain")}
    assert table.entries[0].metric_units == units
    assert table.directions == ({} if units else {"Outlay": "lower", "Gain": "higher"})


def test_numbers_of_a_table_without_values_are_listed(tmp_path):
    text = (
        "| Model | Acc |\n|--|--|\n| A | 0.5 |\n\nx\n\n| Model | Acc, AUC |\n|--|--|\n| A | 87.4 ~ 92.8 |\n| B |no|\n"
    )
    found = extracted(tmp_path, text)
    assert found.without_values == ("Table at line 7 (line 7)",)
    assert [(each.line, each.row, each.text) for each in found.unread] == [(9, "A", "87.4 ~ 92.8")]


def test_the_user_says_what_the_columns_are_and_what_the_table_leaves_out(tmp_path):
    text = "| Model | 4096 | 8192 |\n|---|---|---|\n| M1 | 95 | 81 |\n"
    table = extracted(tmp_path, text, columns="datasets", metric="passkey").tables[0]
    assert set(values(table)) == {("M1", "4096", "passkey"), ("M1", "8192", "passkey")}
    assert extracted(tmp_path, text, dataset="c4").tables[0].datasets_used == ("c4",)


@pytest.mark.parametrize(
    ("caption", "std", "count"),
    [
        ("Table 1: Mean and standard deviation in parentheses.", "0.031", None),
        ("Table 1: Accuracy (number of trees in brackets).", None, 31),
        ("Table 1: Accuracy.", None, None),
        ("Table 1: Standard errors in parentheses.", None, None),
    ],
)
def test_the_caption_decides_what_parentheses_are(tmp_path, caption, std, count):
    table = extracted(tmp_path, f"{caption}\n\n| Model | Acc |\n|--|--|\n| A | 0.437 (31) |\n").tables[0]
    assert (table.entries[0].printed.get("accuracy_std"), table.entries[0].counts.get("accuracy")) == (std, count)
    assert len(table.doubtful) == (std is None and count is None)


def test_a_standard_error_is_not_taken_for_a_deviation(tmp_path):
    entry = (
        extracted(tmp_path, "Table 1: Means and standard errors.\n\n| Model | Acc |\n|--|--|\n| A | 0.4 ± 0.1 |\n")
        .tables[0]
        .entries[0]
    )
    assert not entry.has_std
    assert "does not call a standard deviation" in entry.notes[0]


def test_what_would_be_lost_is_listed(tmp_path):
    text = "| Model | Acc |\n|--|--|\n| A | 0.5 | 0.6 |\n| A | 0.7 |\n| Empty | |\n"
    table = extracted(tmp_path, text).tables[0]
    assert [(each.line, each.why.split(":")[0]) for each in table.unread] == [
        (3, "more cells than columns"),
        (5, "it has no values and no rows below it"),
    ]


def test_one_table_is_chosen_by_its_id_or_its_number(tmp_path):
    for name in ("Table 4", "table 4", "4"):
        assert [table.table_id for table in extracted(tmp_path, CONVERTED, tables=(name,)).tables] == ["Table 4"]
    with pytest.raises(ConfigError, match=r"Unknown table 'Tabel 4'. Did you mean 'Table 4'\?"):
        extracted(tmp_path, CONVERTED, tables=("Tabel 4",))


NAMES = st.text("abcdefgxyzQ0123456789-+. ", min_size=1, max_size=8).map(lambda text: f"Q{text.strip(' .')}q")
NUMBERS = st.decimals(min_value="-9999", max_value="9999", places=3, allow_nan=False, allow_infinity=False)


@st.composite
def generated(draw):
    columns = draw(st.lists(NAMES, min_size=1, max_size=4, unique_by=str.lower))
    rows = draw(st.lists(NAMES, min_size=1, max_size=4, unique_by=str.lower))
    cell = st.tuples(NUMBERS, st.none() | NUMBERS.map(abs))
    return columns, rows, [[draw(cell) for _ in columns] for _ in rows]


@pytest.mark.parametrize("suffix", WRITERS)
@settings(max_examples=25, deadline=None)
@given(table=generated())
def test_what_goes_into_a_table_comes_out_of_the_written_file(tmp_path_factory, suffix, table):
    columns, rows, cells = table
    shown = [[str(value) if std is None else f"{value} ± {std}" for value, std in row] for row in cells]
    text = WRITERS[suffix](["Model", *columns], [[name, *row] for name, row in zip(rows, shown, strict=True)])
    folder = tmp_path_factory.mktemp("paper")
    spec = written(folder, extracted(folder, text, f"paper{suffix}", columns="datasets", metric="score"))
    found = {
        (result.model, result.dataset): (
            result.values["score"].printed,
            result.stds["score"].printed if result.stds else None,
        )
        for result in spec.tables[0].results
    }
    spelt = {name: " ".join(name.split()) for name in (*rows, *columns)}
    assert found == {
        (spelt[row], spelt[column]): (str(value), None if std is None else str(std))
        for row, line in zip(rows, cells, strict=True)
        for column, (value, std) in zip(columns, line, strict=True)
    }


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.text(min_size=1), min_size=5, max_size=5),
    st.from_regex(r"\A-?[0-9]{1,9}(\.[0-9]{0,9})?(e-?[0-9]{1,2})?\Z"),
)
def test_no_name_can_change_the_meaning_of_the_written_file(tmp_path_factory, texts, printed):
    paper, title, model, dataset, metric = texts
    metric = metric.replace("_", " ")
    entry = BenchmarkEntry(
        table_id=title, model_name=model, group=title, dataset=dataset, metrics={metric: float(printed)},
        printed={metric: printed}, metric_units={metric: model}, notes=(dataset,), hardware=paper, line=1,
    )  # fmt: skip
    table = BenchmarkTable(
        table_id=title, title=title, description=paper, columns=(), row_groups={}, entries=(entry,), layout=(paper,),
        datasets_used=(dataset,), models_compared=(model,), primary_metric=metric, line=1, rows=1, cells=1, values=1,
    )  # fmt: skip
    spec = written(tmp_path_factory.mktemp("spec"), ExtractedPaper(paper=paper, source=model, tables=(table,)))
    result = spec.tables[0].results[0]
    assert (spec.paper, spec.source, spec.tables[0].title, result.model, result.dataset) == (
        paper,
        model,
        title,
        model,
        dataset,
    )
    assert (result.values[metric].printed, result.units[metric], result.notes) == (printed, model, (dataset,))


WIDE = 10_000
HOSTILE = {
    "pipes.md": ("|" * 1_000_000, "a line of 1000000 columns: at most 1000 are read"),
    "table.md": (f"|{'a|' * WIDE}\n|{'-|' * WIDE}\n|{'1|' * WIDE}\n", "a line of 10001 columns"),
    "table.html": (f"<table><tr>{'<th>a</th>' * WIDE}</tr><tr>{'<td>1</td>' * WIDE}</tr></table>", "10000 columns"),
    "table.tex": (f"\\begin{{tabular}}{{l}}{'a&' * WIDE}b\\\\\\end{{tabular}}", "more than 20000 rows or 1000 columns"),
    "nested.html": ("<table><tr><td>" * 20_000 + "1", "a table that contains tables"),
    "spans.html": ("<table><tr><td colspan=999999 rowspan=999999>1</td></tr></table>", "1001 columns"),
    "open.tex": ("\\begin{tabular}{ll}" + "{" * 50_000, "a table that does not end"),
    "many.md": ("<table><tr><td>a</td><td>1</td></tr></table>\n" * 1_100, "more than 1000 tables"),
}


BOMB = f"<!DOCTYPE html [<!ENTITY a '{'x' * 99}'><!ENTITY b '{'&a;' * 99}'>]><table><tr><td>{'&b;' * 99}</td></table>"
MACROS = "\\newcommand{\\a}{\\a\\a\\a}\\begin{tabular}{ll}" + "\\a & \\a \\\\" * 500 + "\\end{tabular}"


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_document_ends_with_a_message_and_within_bounds(tmp_path, name):
    text, message = HOSTILE[name]
    found = extracted(tmp_path, text, name)
    assert any(message in fault.why for fault in found.unread)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("entities.html", BOMB),
        ("deep.html", "<div>x" * 20_000),
        ("macros.tex", MACROS),
        ("cell.md", "| a | b |\n|--|--|\n| x | " + "1.5" * 30_000 + " |\n"),
        ("quotes.md", "> " * 100_000),
    ],
)  # fmt: skip
def test_nothing_is_invented_from_a_hostile_document(tmp_path, name, text):
    assert not extracted(tmp_path, text, name).tables


def test_documents_beyond_all_measure_are_refused_in_one_sentence(tmp_path):
    big = tmp_path / "big.md"
    with big.open("wb") as file:
        file.truncate(100_000_000)
    with pytest.raises(ConfigError, match="is larger than 8 MB"):
        extract_benchmarks(ExtractPaperRequest(document=big))
    with pytest.raises(ConfigError, match="more than 100000 lines"):
        extracted(tmp_path, "|\n" * 200_000)
    with pytest.raises(ConfigError, match=r"is a PDF\. Convert it to Markdown"):
        extracted(tmp_path, "%PDF-1.7", "paper.pdf")


@pytest.mark.parametrize(("module", "name", "text"), [("lxml", "a.html", PAGE), ("pylatexenc", "a.tex", PAPER_TEX)])
def test_a_missing_extra_is_one_sentence_and_markdown_does_without_it(tmp_path, monkeypatch, module, name, text):
    import importlib.util
    import sys

    real = importlib.util.find_spec
    for known in [known for known in sys.modules if known.split(".")[0] == module]:
        monkeypatch.delitem(sys.modules, known)
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr(
        "boosters_eval.programs.paper.documents.latex.find_spec",
        lambda what: None if what == module else real(what),
    )
    with pytest.raises(MissingLibraryError, match=rf"needs {module}: pip install 'boosters-eval\[paper\]'"):
        extracted(tmp_path, text, name)
    assert len(extracted(tmp_path, CONVERTED).tables) == 2


def test_a_missing_parser_of_markdown_is_one_sentence(tmp_path, monkeypatch):
    import sys

    from boosters_eval.programs.paper.documents.markdown import _parser

    monkeypatch.setitem(sys.modules, "markdown_it", None)
    _parser.cache_clear()
    with pytest.raises(MissingLibraryError, match=r"needs markdown-it-py: pip install 'boosters-eval\[paper\]'"):
        extracted(tmp_path, CONVERTED)


def test_the_command_shows_writes_and_refuses(tmp_path, monkeypatch, capsys):
    from boosters_eval.cli.app import run

    monkeypatch.chdir(tmp_path)
    Path("paper.md").write_text(CONVERTED)
    Path("empty.md").write_text("# Nothing\n")
    assert run(["paper", "extract", "paper.md"]) == 0
    shown = capsys.readouterr().out
    assert "Table 4" in shown
    assert f"Not read\n- Table 4, line {LINE}, row 'Tuned hyperparameters XGBoost'" in shown
    assert run(["paper", "extract", "--table", "4", "paper.md"]) == 0
    assert "Default hyperparameters / CatBoost" in capsys.readouterr().out
    assert run(["paper", "extract", "paper.md", "--out", "b.yaml"]) == 0
    assert "Written: b.yaml" in capsys.readouterr().err
    assert len(read_specification(Path("b.yaml")).tables) == 2
    assert run(["paper", "extract", "paper.md", "--out", "b.yaml"]) == 3
    assert "must name a new file, or be given with --force" in capsys.readouterr().err
    assert run(["paper", "extract", "paper.md", "--out", "b.yaml", "--force"]) == 0
    assert run(["paper", "extract", "paper.md", "--columns", "rows"]) == 3
    assert "The '--columns' option must be datasets, metrics or models. Got 'rows' instead." in capsys.readouterr().err
    assert run(["paper", "extract", "paper.md", "--metric", " "]) == 3
    assert "The '--metric' option must be a name. Got ' ' instead." in capsys.readouterr().err
    assert run(["paper", "extract", "empty.md", "--out", "c.yaml"]) == 3
    assert "Error: empty.md has no table of results that can be read.\n" in capsys.readouterr().err
    assert not Path("c.yaml").exists()


def test_python_extracts_and_writes_too_and_is_told_of_parameters(tmp_path):
    (tmp_path / "paper.md").write_text(CONVERTED)
    (tmp_path / "empty.md").write_text("# Nothing\n")
    out = tmp_path / "b.yaml"
    found = extract_paper(str(tmp_path / "paper.md"), tables=["4"], columns="datasets", out=out)
    assert [table.table_id for table in found.tables] == ["Table 4"]
    assert "columns: data sets ('columns')" in found.tables[0].layout
    assert len(read_specification(out).tables) == 1
    with pytest.raises(ConfigError, match=r"The 'out' parameter must name a new file, or be given with 'force'\."):
        extract_paper(tmp_path / "paper.md", out=out)
    with pytest.raises(ConfigError, match=r"The 'columns' parameter must be datasets, metrics or models\."):
        extract_paper(tmp_path / "paper.md", columns="rows")
    with pytest.raises(FileFormatError, match=r"empty\.md has no table of results that can be read\."):
        extract_paper(tmp_path / "empty.md")


def test_what_was_extracted_is_a_document_too(tmp_path):
    path = tmp_path / "paper.md"
    path.write_text(CONVERTED)
    found = extract(ExtractPaperRequest(document=path, tables=["4"]))
    assert "# Tables: Revisiting models\n" in found.to_markdown()
    assert "## Not read\n" in found.to_markdown()
    assert "columns: " in found.to_html()
    assert ExtractedPaper.model_validate_json(found.to_json()) == found.paper


@pytest.mark.parametrize(
    ("ending", "function"), [("html", "read_html"), ("md", "read_markdown"), ("tex", "read_latex")]
)
def test_document_that_crashes_its_library_is_one_sentence(tmp_path, monkeypatch, ending, function):
    monkeypatch.setattr(reader, "_can_fork", lambda: True)
    monkeypatch.setattr(documents, function, lambda *_: os.kill(os.getpid(), signal.SIGSEGV))
    path = tmp_path / f"p.{ending}"
    path.write_text("a paragraph")
    with pytest.raises(FileFormatError) as caught:
        documents.read_document(path)
    what = "the library that reads it crashed (SIGSEGV), so it is damaged."
    assert str(caught.value) == f"{path} cannot be read: {what}"


def test_nothing_in_an_extracted_specification_is_invisible(tmp_path):
    hidden = "\u202e\u2066\u200b\x1b"
    text = f"| Model{hidden} | RMSE{hidden} |\n|---|---|\n| A{hidden}B | 0.5 |\n| C{hidden} | 0.75 |\n"
    written = write_specification(extracted(tmp_path, text))
    assert not [char for char in written if char != "\n" and not char.isprintable()]
    assert "\\U0000202e" in written
