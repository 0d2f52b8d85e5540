"""Builds in tables and reports: each is a row of its own, with its version, and its origin is told."""

import csv
import io
import json

import pytest

import factories
from boosters_eval.programs.benchmark.tables.build import build_tables
from boosters_eval.programs.benchmark.tables.document import build_document

VERSIONS = {"boosters": "0.1.0", "boosters==0.0.9": "0.0.9", "head": "0.2.0", "boosters@0.3.0": "0.3.0"}


@pytest.fixture
def run():
    """One library and three builds of it, which score almost alike."""
    rows = [
        factories.result(library=name, seed=seed, value=0.5 + 0.01 * seed + 0.001 * place, library_version=version)
        for place, (name, version) in enumerate(VERSIONS.items())
        for seed in range(3)
    ]
    facts = {name: {"version": version, "digest": factories.digest(name)} for name, version in VERSIONS.items()}
    for name in set(VERSIONS) - {"boosters"}:
        facts[name]["library"] = "boosters"
    return factories.remember(factories.collection(rows), environment={"targets": facts})


def test_each_row_has_its_version_as_soon_as_a_build_takes_part(run):
    (table,) = build_tables(run).tables
    assert table.headings[:2] == ("Library", "Version")
    assert {row.label: row.facts for row in table.rows} == {name: (v,) for name, v in VERSIONS.items()}


def test_without_a_build_there_is_no_version_column(run):
    (table,) = build_tables(run.filter(library="boosters")).tables
    assert table.headings[:2] == ("Library", "RMSE ↓")
    assert table.rows[0].facts == ()


def test_every_rendering_shows_the_versions(run):
    report = build_tables(run)
    assert "| boosters==0.0.9 | 0.0.9   |" in report.to_markdown()
    assert '<th scope="row">head</th><td>0.2.0</td>' in report._repr_html_()
    rows = list(csv.DictReader(io.StringIO(report.to_csv())))
    assert {row["library"]: row["version"] for row in rows} == VERSIONS


def test_a_report_says_what_each_competitor_is_a_build_of(run):
    document = build_document(run)
    assert document.lead == "boosters 0.1.0, boosters==0.0.9, boosters@0.3.0, head (boosters 0.2.0)."
    assert dict(document.environment)["head"] == f"build of boosters 0.2.0, digest {factories.digest('head')[:12]}"
    assert document.data.builds["head"].library == "boosters"
    assert json.loads(document.model_dump_json())["data"]["builds"].keys() == set(VERSIONS) - {"boosters"}


def test_a_build_with_dependencies_of_its_own_is_told(run):
    told = "head has dependencies of its own, so it differs from the others by more than the library."
    assert told not in build_tables(run).notes
    targets = run.metadata.facts.targets
    targets["head"] = targets["head"].replace(packages="numpy 1.26.4, scipy 1.11.4")
    assert told in build_tables(run).notes
    assert dict(build_document(run).environment)["head"].endswith(", with numpy 1.26.4, scipy 1.11.4")


def test_the_command_that_reproduces_a_run_names_the_builds(run):
    words = build_document(run).reproduce[0]
    assert "--library boosters boosters==0.0.9 head=boosters==0.2.0 boosters==0.3.0" in words


def test_each_build_has_a_marker_of_its_own_on_the_page(run):
    page = build_document(run).to_html()
    assert all(f"{name}: " in page for name in VERSIONS)
    assert all(f'class="s{number}' in page or f"s{number} " in page for number in range(1, 5))
