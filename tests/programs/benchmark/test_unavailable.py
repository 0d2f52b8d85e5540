"""A library that is not installed is in the results, in every rendering and in the baseline; so is the warning."""

import csv
import io
import json

import pytest
from rich.console import Console

import factories
from boosters_eval import BenchmarkSuite, BoosterType, ResultCollection, compare, load_run
from boosters_eval.core.errors import BoostersEvalWarning
from boosters_eval.programs.baseline.check import check
from boosters_eval.programs.baseline.findings import CheckRules
from boosters_eval.programs.baseline.snapshot import Snapshot, make_baseline
from boosters_eval.programs.benchmark.benchmarks import select_benchmarks
from boosters_eval.programs.benchmark.records import Unavailable, Unsupported
from boosters_eval.programs.benchmark.tables.build import build_tables
from boosters_eval.programs.benchmark.tables.document import BenchmarkDocument, build_document
from boosters_eval.reports.tables import Report
from boosters_eval.reports.terminal import print_document
from boosters_eval.runners import base
from tiny import FEW, shared_pool

REASON = "not installed: pip install catboost"


def absent(library, kind=Unavailable, config=factories.CONFIG, reason=REASON):
    return factories.absence(kind, config, library, reason)


@pytest.fixture
def run():
    return factories.collection(
        factories.grid(lambda config, library, seed: 0.5 + seed / 100),
        unavailable=[absent("catboost")],
        unsupported=[absent("sklearn", Unsupported, reason="it has no linear models")],
    )


@pytest.fixture
def without_catboost(monkeypatch):
    real = base.find_spec
    monkeypatch.setattr(base, "find_spec", lambda name: None if name == "catboost" else real(name))


def test_python_warns_and_the_run_remembers(home, without_catboost):
    with pytest.warns(BoostersEvalWarning, match=f"catboost is left out: {REASON}"):
        results = compare("iris", ["sklearn", "catboost"], seeds=1, training=FEW, executor=shared_pool())
    for found in (results, load_run(), ResultCollection.from_json(results.to_json())):
        assert [(item.library, item.config_name, item.reason) for item in found.unavailable] == [
            ("catboost", "iris/gbdt", REASON)
        ]
    assert json.loads(results.to_json())["unavailable"][0]["library"] == "catboost"


def terminal(report):
    console = Console(file=io.StringIO(), width=200)
    print_document(report.document(), console)
    return console.file.getvalue()


@pytest.mark.parametrize(
    "render", [terminal, Report.to_markdown, Report.to_csv, Report._repr_html_], ids=lambda f: f.__name__
)
def test_every_rendering_of_the_tables_has_a_row_with_the_status(run, render):
    text = render(build_tables(run))
    for library, status in (("catboost", "unavailable"), ("sklearn", "unsupported")):
        assert library in text
        assert status in text


@pytest.mark.parametrize(
    "render", [BenchmarkDocument.to_markdown, BenchmarkDocument.to_html, BenchmarkDocument.to_json]
)
def test_every_form_of_the_report_names_library_and_reason(run, render):
    text = render(build_document(run))
    assert "catboost is unavailable and has no results in 1 config: not installed: pip install catboost." in text
    assert "unavailable" in text.lower()


def test_csv_of_the_results_has_a_line_for_what_did_not_run(run):
    lines = list(csv.DictReader(io.StringIO(run.to_csv())))
    assert [(line["library"], line["status"], line["reason"]) for line in lines[-2:]] == [
        ("sklearn", "unsupported", "it has no linear models"),
        ("catboost", "unavailable", REASON),
    ]


def test_rows_without_results_take_no_part_in_verdicts(run):
    (table,) = build_tables(run).tables
    assert [row.label for row in table.rows] == ["boosters", "xgboost", "sklearn", "catboost"]
    assert {(pair.a, pair.b) for pair in table.pairs} == {("boosters", "xgboost")}


def test_the_baseline_says_what_it_lacks(run):
    recorded = make_baseline(run)
    assert [(item.library, item.config, item.reason) for item in recorded.absent] == [
        ("catboost", factories.CONFIG, REASON)
    ]
    found = check(Snapshot.of_baseline(recorded), Snapshot.of_run(run))
    assert f"The baseline has no values of catboost in 1 config: {REASON}." in found.notes


def test_a_check_without_a_recorded_library_says_how_to_leave_it_out(run):
    whole = factories.collection(
        factories.grid(lambda config, library, seed: 0.5 + seed / 100, libraries=("boosters", "xgboost", "catboost"))
    )
    found = check(Snapshot.of_run(whole), Snapshot.of_run(run), CheckRules())
    (skipped,) = [finding for finding in found.findings if finding.library == "catboost"]
    assert skipped.note == (
        f"in the baseline, but catboost is unavailable ({REASON}); to check only other libraries, name them with"
        " 'libraries'"
    )


def test_a_filtered_collection_lists_only_what_it_contains(run):
    run.unavailable.append(absent("catboost", config="other/gblinear"))
    assert run.filter(library="boosters").unavailable == run.filter(library="boosters").unsupported == []
    assert [item.config_name for item in run.filter(dataset="toy").unavailable] == [factories.CONFIG]
    assert [item.config_name for item in run.filter(booster=BoosterType.GBLINEAR).unavailable] == ["other/gblinear"]
    assert len(run.filter(booster=BoosterType.GBDT).results) == len(run.results)


def test_a_suite_lacks_a_library_only_where_it_is_listed(without_catboost):
    configs = [
        factories.config(name="a/gbdt", libraries=("sklearn", "catboost")),
        factories.config(name="b/gbdt", libraries=("sklearn",)),
    ]
    found = select_benchmarks(BenchmarkSuite("toy", configs))
    assert [(item.spec, item.target) for item in found.unavailable] == [("a/gbdt", "catboost")]
