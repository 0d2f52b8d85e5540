"""What there is, from Python."""

import json

from boosters_eval import RUNNERS, SUITES, list_datasets, list_libraries, list_metrics, list_suites


def test_each_list_has_a_record_per_name(home):
    assert [record["library"] for record in list_libraries().records] == list(RUNNERS)
    assert [record["suite"] for record in list_suites(home=home).records] == list(SUITES)
    metrics = {record["metric"]: record["better"] for record in list_metrics().records}
    assert (metrics["rmse"], metrics["r2"]) == ("lower", "higher")


def test_generated_problems_are_listed_if_asked_for():
    usual, every = list_datasets(), list_datasets(every=True)
    assert {record["data set"] for record in usual.records} < {record["data set"] for record in every.records}
    assert usual.more.startswith("And ")
    assert every.more == ""


def test_a_list_has_every_rendering():
    found = list_metrics()
    assert found.to_markdown().startswith("# Metrics\n\n| metric ")
    assert "<h1>Metrics</h1>" in found.to_html()
    assert json.loads(found.to_json())[0] == found.records[0]
