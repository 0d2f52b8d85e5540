"""Full reports: files, schema, and the same bytes everywhere."""

import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import jsonschema
import pytest

import factories
from boosters_eval.core.errors import ConfigError, UnknownNameError
from boosters_eval.engine.facts import RunFacts
from boosters_eval.programs.benchmark import tables
from boosters_eval.programs.benchmark.records import RunMetadata
from boosters_eval.programs.benchmark.results import ResultCollection
from boosters_eval.programs.benchmark.tables.build import build_tables
from boosters_eval.programs.benchmark.tables.document import (
    BenchmarkDocument,
    build_document,
    generate_report,
    report_schema,
)
from boosters_eval.programs.benchmark.tables.document import render_files as files_of
from boosters_eval.runners.parameters import TrainingConfig
from boosters_eval.runners.result import SplitFacts

TYPES = ("quality", "performance", "comparison")
SCHEMA = Path(tables.__file__).with_name("report.schema.json")
NOW = datetime(2025, 12, 27, 12, 0, tzinfo=UTC)


def render_files(results, report_type="quality", *, formats, now=None):
    return files_of(build_document(results, report_type, now=now), Path(), formats)


@pytest.mark.parametrize("report_type", TYPES)
def test_markdown_is_as_the_golden_file_says(report_type, sample, timed, recorded, golden):
    results = recorded(timed if report_type == "performance" else sample)
    golden(f"{report_type}-report.md", build_document(results, report_type, now=NOW).to_markdown())


def test_json_and_html_are_as_the_golden_files_say(sample, recorded, golden):
    document = build_document(recorded(sample), "comparison", now=NOW)
    golden("comparison-report.json", document.model_dump_json(indent=1) + "\n")
    golden("comparison-report.html", document.to_html())


def without_prose(node):
    """A schema without the docstrings that it was made from: rewording one is no change of the format."""
    if isinstance(node, dict):
        return {k: without_prose(v) for k, v in node.items() if not (k == "description" and isinstance(v, str))}
    return [without_prose(item) for item in node] if isinstance(node, list) else node


def test_the_packaged_schema_is_that_of_the_model(request):
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **without_prose(BenchmarkDocument.model_json_schema(mode="serialization")),
    }
    if request.config.getoption("--update-golden"):
        SCHEMA.write_text(json.dumps(schema, indent=1) + "\n")
    assert report_schema() == schema


@pytest.mark.parametrize("report_type", TYPES)
@pytest.mark.parametrize("name", ["sample", "ablation", "hostile"])
def test_json_validates_against_the_schema_and_can_be_read_back(report_type, name, request):
    (text,) = render_files(request.getfixturevalue(name), report_type, formats=["json"]).values()
    jsonschema.Draft202012Validator(report_schema()).validate(json.loads(text))
    assert BenchmarkDocument.model_validate_json(text).data.report_type == report_type


def test_the_schema_refuses_what_is_not_declared(sample):
    (text,) = render_files(sample, formats=["json"]).values()
    for spoil in (
        lambda d: d.update(more=1),
        lambda d: d["tables"][0]["rows"][0].update(more=1),
        lambda d: d["data"]["configs"][0].update(more=1),
        lambda d: d.update(schema_version=2),
        lambda d: d.pop("tables"),
    ):
        content = json.loads(text)
        spoil(content)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.Draft202012Validator(report_schema()).validate(content)


def test_files_are_named_by_day_commit_and_type(sample, tmp_path):
    late = datetime(2025, 12, 27, 23, 30, tzinfo=timezone(timedelta(hours=-5)))
    paths = generate_report(sample, "quality", tmp_path / "new" / "dir", ("md", "json", "html"), now=late)
    assert [path.suffix for path in paths] == [".md", ".json", ".html"]
    for path in paths:
        assert re.fullmatch(r"2025-12-28-[0-9a-z]{5,}-sample-quality-report\.(md|json|html)", path.name)
        assert path.is_file()


def test_two_paths_as_in_the_rfc_by_default(sample, tmp_path):
    markdown, data = generate_report(sample, output_dir=tmp_path)
    assert (markdown.suffix, data.suffix) == (".md", ".json")
    assert "quality" in markdown.name


def test_a_report_of_another_run_or_suite_is_kept(sample, recorded, tmp_path):
    def write(**changes):
        run = recorded(sample)
        for name, value in changes.items():
            setattr(run, name, value)
        return generate_report(run, output_dir=tmp_path, now=NOW)[0].name

    first = write(run_id="a" * 16)
    assert first == write(run_id="a" * 16)  # the same run once more
    assert write(run_id="b" * 16) == first.replace(".md", "-2.md")
    assert write(run_id="a" * 16, suite="my suite/1") == first.replace("-sample-", "-my-suite-1-")
    assert len(list(tmp_path.glob("*.md"))) == len(list(tmp_path.glob("*.json"))) == 3


def test_the_commit_is_that_of_the_run(sample, recorded, tmp_path, monkeypatch):
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    monkeypatch.chdir(tmp_path)
    (path,) = render_files(recorded(sample), formats=["md"], now=NOW)
    assert path.name == "2025-12-27-abc1234-sample-quality-report.md"
    rows = dict(build_document(recorded(sample)).environment)
    assert (rows["Commit"], rows["Rust"]) == ("abc1234 (main)", "1.90.0")
    changed = build_document(recorded(sample, git_dirty=True))
    assert dict(changed.environment)["Commit"] == "abc1234 (main, with changes)"


def test_what_a_run_did_not_record_is_said_and_not_looked_up(sample):
    (path,) = render_files(sample, formats=["md"], now=NOW)
    assert path.name == "2025-12-27-nogit-sample-quality-report.md"
    rows = dict(build_document(sample).environment)
    assert (rows["Commit"], rows["Rust"], rows["Machine"]) == ("not recorded", "not recorded", "Test CPU")
    by_hand = dict(build_document(ResultCollection(sample.results)).environment)
    absent = {name for name, value in by_hand.items() if value == "not recorded"}
    assert absent == {"Commit", "Machine", "Rust", "Python", "boosters-eval"}


@pytest.mark.parametrize("sha", ["../../etc/passwd", "HEAD", None, "", "ABCDEF0", "0123abc/../x"])
def test_only_a_commit_becomes_part_of_a_file_name(sample, recorded, sha):
    (path,) = render_files(recorded(sample, git_sha=sha), formats=["md"], now=NOW)
    assert path.name == "2025-12-27-nogit-sample-quality-report.md"


def test_the_machine_of_the_run_is_shown(sample):
    environment = build_document(sample).data.environment
    assert environment.machine.cpu_model == "Test CPU"
    rows = dict(environment.rows({"xgboost": "3.4.1"}))
    assert rows["Measured"] == "2025-12-27 10:30:00 UTC"  # as the date of the report is written
    assert rows["xgboost"] == "3.4.1"


@pytest.mark.parametrize("nonsense", [{"machine": {"gpu": 1}}, {"machine": {"cpu_cores": "many"}}, {}])
def test_an_environment_that_cannot_be_read_is_not_an_error(sample, nonsense):
    document = build_document(
        ResultCollection(sample.results, metadata=RunMetadata(environment=RunFacts.model_validate(nonsense)))
    )
    assert document.data.environment.machine is None


def test_quality_has_no_times_and_performance_no_metrics(sample):
    quality = build_document(sample, "quality")
    assert {column.kind for table in quality.tables for column in table.columns} == {"metric"}
    performance = build_document(sample, "performance")
    assert {column.kind for table in performance.tables for column in table.columns} == {"time"}
    both = build_document(sample, "comparison")
    assert {column.kind for table in both.tables for column in table.columns} == {"metric", "time"}


def test_parameters_that_differ_by_seed_say_so_and_equal_ones_are_told_once(sample):
    results = [r.model_copy(update={"native_params": {"eta": 0.1, "seed": r.seed}}) for r in sample.results]
    found = build_document(ResultCollection(results)).data.parameters
    assert [item.library for item in found] == ["boosters", "catboost", "lightgbm", "xgboost"]
    assert found[0].native == {"eta": "0.1", "seed": "varies by seed"}
    assert found[0].configs == ("california/gbdt", "breast_cancer/gbdt", "iris/linear_trees")


def test_how_to_reproduce_follows_from_the_results(sample):
    command = "boosters-eval run --suite sample --library boosters xgboost lightgbm catboost --seeds 5 --splits random"
    assert build_document(sample).reproduce == (command, "boosters-eval report --run 0123abcd4567ef89")
    changes = {"timing_mode": True, "peak_memory_mb": 1.0, "profile": "defaults"}
    some = [r.model_copy(update=changes) for r in sample.filter(dataset="iris").results]
    assert build_document(ResultCollection(some, suite="compare")).reproduce == (
        (
            "boosters-eval compare --dataset iris --booster linear_trees --library boosters lightgbm --seeds 5"
            " --splits random --timing-mode --measure-memory --profile defaults"
        ),
    )
    folded = [r.model_copy(update={"fold": r.seed % 2}) for r in some]
    assert "--cv 2x5" in build_document(ResultCollection(folded)).reproduce[0]


def test_what_was_typed_is_what_reproduces(sample):
    command = ["compare", "-d", "my data.csv:y", "-p", "n_estimators=5", "--metric", "f1@0.3"]
    typed = ResultCollection(sample.results, metadata=RunMetadata(environment=RunFacts(command=command)))
    assert build_document(typed).reproduce == (
        "boosters-eval compare -d 'my data.csv:y' -p n_estimators=5 --metric f1@0.3",
    )


def test_parameters_that_all_configs_share_are_part_of_how_to_reproduce(sample):
    shared = TrainingConfig(n_estimators=5, l2=0.5, growth_strategy="leafwise", n_threads=2)
    configs = {
        name: shared.replace(max_depth=depth).model_dump(mode="json") for name, depth in (("deep", 9), ("flat", 2))
    }
    some = ResultCollection(
        sample.filter(dataset="iris").results, suite="compare", metadata=RunMetadata(configs=configs)
    )
    line = build_document(some).reproduce[0]
    assert "--param n_estimators=5 --param l2=0.5 --threads 2 --growth leafwise --library" in line
    assert "max_depth" not in line


def test_the_level_and_the_rule_of_the_run_are_used_and_told(sample):
    rule = "seeds were added at up to 4 looks, each at alpha = 0.0125; all pairs are decided"
    run = ResultCollection(sample.results, metadata=RunMetadata(alpha=0.0125, seeds_rule=rule))
    document = build_document(run)
    assert document.alpha == 0.0125
    assert "Seeds were added at up to 4 looks, each at alpha = 0.0125; all pairs are decided." in document.notes
    assert build_document(run, alpha=0.1).alpha == 0.1
    assert run.to_markdown() == run.to_markdown(alpha=0.0125) != run.to_markdown(alpha=1e-9)
    assert run._repr_html_() == build_tables(run, alpha=0.0125)._repr_html_()
    strict = ResultCollection(sample.filter(dataset="breast_cancer").results, metadata=RunMetadata(alpha=1e-9))
    assert strict.best("logloss")["best"].tolist() == ["tie"]
    assert strict.best("logloss", 0.05)["best"].tolist() == ["xgboost"]


def test_a_comparison_is_not_called_a_suite(sample):
    assert build_document(ResultCollection(sample.results, suite="compare")).title.startswith(
        "Quality report: boosters,"
    )


def test_a_number_that_is_not_finite_is_null_in_json_and_left_out_of_pictures(sample):
    results = [r.model_copy(update={"metrics": {**r.metrics, "rmse": float("nan")}}) for r in sample.results[:3]]
    files = render_files(ResultCollection(results), formats=["json", "html"])
    data, page = files.values()
    jsonschema.Draft202012Validator(report_schema()).validate(json.loads(data))
    assert "not finite" in page
    assert ">nan<" not in page.lower()
    assert 'cx="nan"' not in page


def test_a_code_fence_in_a_traceback_cannot_end_the_block(sample):
    error = sample.errors[0].model_copy(update={"traceback": "```\n# not a heading\n````"})
    text = build_document(ResultCollection(sample.results, [error])).to_markdown()
    assert "`````text\n```\n# not a heading\n````" in text


def test_a_report_of_errors_alone_says_that_nothing_finished(sample):
    text = build_document(ResultCollection(errors=sample.errors)).to_markdown()
    assert "Timeout" in text
    assert "## Reproducing" not in text


def test_an_empty_collection_is_a_valid_report():
    document = build_document(ResultCollection())
    assert "No cell finished." in document.to_markdown()
    assert "No cell finished." in document.to_html()


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"report_type": "qualty"}, "Did you mean 'quality'"),
        ({"formats": ["pdf"]}, "Unknown report format 'pdf'"),
        ({"test": "welsh"}, "Did you mean 'welch'"),
    ],
)
def test_unknown_names_are_refused_with_the_nearest(sample, changes, match, tmp_path):
    with pytest.raises(UnknownNameError, match=match):
        generate_report(sample, output_dir=tmp_path, **changes)
    assert not list(tmp_path.iterdir())


def test_no_format_at_all_is_refused(sample):
    with pytest.raises(ConfigError, match="at least one of md, json, html"):
        generate_report(sample, formats=[])


_ENVIRONMENT = {
    ".md": re.compile(r"## Environment\n.*?(?=\n## )", re.DOTALL),
    ".html": re.compile(r'<section id="environment".*?</section>', re.DOTALL),
}


def test_the_same_results_give_the_same_bytes_in_any_time_zone_and_locale(sample, tmp_path):
    source = tmp_path / "results.json"
    sample.to_json(source)
    code = (
        "import sys; from pathlib import Path;"
        "from boosters_eval import generate_report;"
        "from boosters_eval import ResultCollection;"
        "generate_report(ResultCollection.load_partial(sys.argv[1]), 'comparison', '.', ('md', 'json', 'html'))"
    )
    seen = []
    for zone, language, seed in (("Pacific/Kiritimati", "C", "1"), ("America/New_York", "C.UTF-8", "2")):
        place = tmp_path / seed
        place.mkdir()
        environment = {**os.environ, "TZ": zone, "LC_ALL": language, "PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", code, str(source)], cwd=place, env=environment, check=True)
        texts = {}
        for path in place.iterdir():
            text = path.read_bytes().decode()
            if path.suffix == ".json":
                content = json.loads(text)
                del content["environment"], content["data"]["environment"]
                texts[path.suffix] = json.dumps(content)
            else:
                texts[path.suffix], cuts = _ENVIRONMENT[path.suffix].subn("", text)
                assert cuts == 1
        seen.append(texts)
    assert seen[0] == seen[1]
    assert set(seen[0]) == {".md", ".json", ".html"}


def test_timestamps_are_in_utc(sample):
    now = datetime(2025, 1, 1, 1, 0, tzinfo=timezone(timedelta(hours=9)))
    rows = dict(build_document(sample, now=now).environment)
    assert rows["Date"] == "2024-12-31 16:00:00 UTC"
    assert build_document(sample, now=now).data.environment.timestamp.tzinfo == UTC


def test_a_run_that_failed_as_a_whole_still_says_of_what_and_how_to_run_it():
    failed = [factories.error(library=library, seed=seed) for library in ("boosters", "xgboost") for seed in (1, 2)]
    facts = RunFacts(command=("compare", "-d", "toy"))
    found = ResultCollection([], failed, suite="compare", metadata=RunMetadata(environment=facts))
    document = build_document(found)
    shown = {fact.label: fact.value for fact in document.facts}
    assert (shown["Libraries"], shown["Seeds"], shown["Cells failed"]) == ("2", "2", "4")
    assert document.lead == "boosters, xgboost (no results)."
    assert document.tables[0].title == factories.CONFIG
    assert document.reproduce == ("boosters-eval compare -d toy",)


def test_windows_of_time_are_called_so_and_grow():
    split = SplitFacts(kind="time", column="day")
    found = [
        factories.result(seed=1, fold=fold, split=split, n_train=100 * (1 + fold), n_valid=50) for fold in range(3)
    ]
    document = build_document(ResultCollection(found))
    assert ("Seeds x windows", "1 x 3") in [(fact.label, fact.value) for fact in document.facts]
    table = next(section for section in document.document().sections if section.anchor == "benchmarks").blocks[-1]
    assert "Train rows (first window)" in table.headings
    assert "Variant" not in table.headings
