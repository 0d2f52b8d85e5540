"""What rows and columns name, by the evidence of labels, headers and the text around a table."""

from __future__ import annotations

import pytest

from extraction import list_values, read_tables

pytestmark = pytest.mark.usefixtures("forked_reader")


def table_of(folder, header, *rows, before=""):
    lines = [header, "|--" * (header.count("|") - 1) + "|", *rows]
    return read_tables(folder, f"{before}\n\n" + "\n".join(lines) + "\n")[0]


def test_a_header_of_model_and_metric_is_split_by_what_varies(tmp_path):
    header = "| Task | Zorb Training Duration | Zorb RMSE | Quux Training Duration | Quux RMSE |"
    table = table_of(tmp_path, header, "| poker | 38 | 0.256 | 41 | 0.722 |")
    assert set(list_values(table)) == {
        (model, "poker", metric) for model in ("Zorb", "Quux") for metric in ("Training Duration", "rmse")
    }
    assert not table.doubtful


def test_hyper_parameters_and_counts_are_conditions_of_their_entries(tmp_path):
    header = "| Model | learning_rate | max_bin | Batch Size | Acc | #Features |"
    table = table_of(tmp_path, header, "| A | 0.1 | 255 | 32 | 0.9 | 28 |", "| B | 0.3 | 64 | 64 | 0.8 | 28 |")
    first, second = table.entries
    assert (first.metrics, first.batch_size) == ({"accuracy": 0.9}, 32)
    assert first.conditions == {"learning_rate": "0.1", "max_bin": "255", "#Features": "28"}
    assert (second.group, second.model_name) == ("", "B")


def test_a_condition_of_one_model_is_that_of_its_entries_alone(tmp_path):
    header = "| Perpetual budget | LightGBM n_estimators | Perpetual mse | LightGBM mse |"
    table = table_of(tmp_path, header, "| 0.76 | 50 | 0.201 | 0.202 |", "| 0.85 | 100 | 0.196 | 0.197 |")
    told = {(entry.model_name, *entry.conditions.items()) for entry in table.entries}
    assert told == {
        ("Perpetual", ("budget", "0.76")),
        ("LightGBM", ("n_estimators", "50")),
        ("Perpetual", ("budget", "0.85")),
        ("LightGBM", ("n_estimators", "100")),
    }


def test_rows_of_conditions_belong_to_the_columns(tmp_path):
    table = table_of(
        tmp_path,
        "| | CatBoost | XGBoost |",
        "| learning_rate | 0.03 | 0.3 |",
        "| max_bin | 128 | 64 |",
        "| NDCG | 0.5 | 0.6 |",
    )
    assert [(entry.model_name, entry.metrics, entry.conditions) for entry in table.entries] == [
        ("CatBoost", {"ndcg": 0.5}, {"learning_rate": "0.03", "max_bin": "128"}),
        ("XGBoost", {"ndcg": 0.6}, {"learning_rate": "0.3", "max_bin": "64"}),
    ]


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("CPU time per iteration, seconds:", ("unnamed", "time", "s")),
        ("## Peak memory on Higgs in GB", ("Higgs", "memory", "GB")),
        ("We report the RMSE on the Pumpkin Seeds dataset.", ("Pumpkin Seeds", "rmse", "")),
    ],
)
def test_the_text_above_a_table_names_its_metric_unit_and_data_set(tmp_path, before, expected):
    table = table_of(tmp_path, "| Setting | XGBoost | CatBoost |", "| wide | 1.5 | 2.5 |", before=before)
    entry = table.entries[0]
    (metric,) = entry.metrics
    assert (entry.dataset, metric, entry.metric_units.get(metric, "")) == expected


def test_names_that_the_text_compares_are_models(tmp_path):
    before = "We compared zorb against quux and frob."
    table = table_of(tmp_path, "| | zorb | quux | frob |", "| small | 1.5 | 2.5 | 3.5 |", before=before)
    assert table.models_compared == ("zorb", "quux", "frob")


def test_what_another_table_names_under_a_header_is_known_here(tmp_path):
    first = "| Model | RMSE |\n|--|--|\n| zorb | 1.5 |\n| quux | 1.6 |\n\n"
    second = read_tables(tmp_path, f"{first}| | zorb | quux |\n|--|--|--|\n| small | 1.5 | 2.5 |\n")[1]
    assert second.models_compared == ("zorb", "quux")


def test_a_role_that_nothing_tells_is_listed_with_its_place(tmp_path):
    table = table_of(tmp_path, "| Model | foo | bar |", "| A | 1.5 | 2.5 |")
    assert [(each.line, each.why) for each in table.doubtful] == [
        (3, "columns: metrics, or data sets? Nothing says otherwise")
    ]


def test_a_metric_that_nothing_names_is_listed(tmp_path):
    table = table_of(tmp_path, "| Dataset | XGBoost | CatBoost |", "| Adult | 1.5 | 2.5 |")
    assert [each.why for each in table.doubtful] == [
        "neither the table nor the text about it names the metric of 2 values ('metric')"
    ]
