"""The audits of a run: recorded when it runs, told wherever its results are."""

import json

import numpy as np
import pytest

from boosters_eval import BoostersEvalWarning, TrainingConfig, compare, load_results, load_run
from boosters_eval.datasets import DATASETS, materialize, store
from boosters_eval.datasets.config import AuditedColumn, AuditFinding, DataAudit
from boosters_eval.datasets.store import load_audit
from boosters_eval.engine.facts import RunFacts
from boosters_eval.engine.runs import find_run
from boosters_eval.metrics.task import Task
from boosters_eval.programs.benchmark.records import RunMetadata
from boosters_eval.programs.benchmark.tables.build import build_tables
from boosters_eval.programs.benchmark.tables.document import build_document
from boosters_eval.programs.benchmark.tables.sections import show_data
from factories import collection, remember, result
from tiny import TINY, run_tiny, shared_pool, tiny_config

LEAK = AuditFinding(
    kind="leak", text="'a' alone predicts 'y': AUC 1.0000, out of sample", column="a", option="--drop a"
)
TOY = DataAudit(
    dataset="toy",
    task=Task.BINARY,
    reason="2 distinct values in 'y'",
    rows=100,
    classes={"no": 90, "yes": 10},
    n_classes=2,
    columns=(
        AuditedColumn(name="y", role="target", used=False),
        AuditedColumn(name="a", role="numeric"),
        AuditedColumn(name="b", role="dropped", used=False),
    ),
    n_columns=2,
    findings=(LEAK, AuditFinding(kind="constant", text="'b' is always 1", column="b")),
)


def with_audit(**audits):
    return remember(
        collection([result(seed=seed) for seed in (1, 2)]), audits={k: v.model_dump() for k, v in audits.items()}
    )


@pytest.fixture
def leaking(faulty, tmp_path):
    """A run on data whose first column is the target but for a constant, and its home."""
    return run_tiny(tiny_config("none"), tiny_config("segfault"), seeds=2)


def test_the_audit_of_a_run_is_recorded_with_it_and_survives_every_form(leaking, tmp_path):
    audit = leaking.audits["tiny"]
    assert [(finding.kind, finding.column) for finding in audit.findings] == [("leak", "column 0")]
    assert (audit.rows, audit.n_columns, audit.sampled) == (60, 3, None)
    folder = find_run(leaking.run_id)
    assert json.loads((folder.path / "environment.json").read_text())["audits"]["tiny"]["rows"] == 60
    assert load_run(leaking.run_id).audits == leaking.audits
    leaking.to_json(tmp_path / "results.json")
    loaded = load_results(tmp_path / "results.json")
    assert loaded.audits == leaking.audits
    assert loaded.metadata == leaking.metadata
    assert "audits" not in json.loads((tmp_path / "results.json").read_text())["metadata"]["environment"]
    assert leaking.filter(dataset="tiny").audits == leaking.audits
    assert repr(leaking) == "ResultCollection(2 results, 2 errors, 1 finding about the data)"


def test_resumed_and_run_again_a_run_keeps_its_audit_once(leaking):
    configs = tiny_config("none"), tiny_config("segfault")
    assert run_tiny(*configs, seeds=2, resume=True).audits == leaking.audits
    assert run_tiny(*configs, seeds=2, rerun_failed=True).audits == leaking.audits
    text = (find_run(leaking.run_id).path / "environment-2.json").read_text()
    assert text.count('"findings"') == 1
    assert "audits" not in json.loads(text)["resumed"][0]


def test_a_run_that_is_continued_keeps_the_audit_of_its_beginning():
    begun, later = (RunFacts(started_at=at, audits={"toy": {"rows": 3}}) for at in ("then", "now"))
    continued = begun.continued(later)
    assert continued.audits == {"toy": {"rows": 3}}
    assert [session.audits for session in continued.resumed] == [{}]
    assert RunFacts.model_validate(continued.recorded()) == continued


def test_results_without_metadata_have_none():
    assert RunMetadata().audits == {}
    assert collection().audits == {}
    assert show_data(collection()) is None
    assert repr(collection()) == "ResultCollection(1 results, 0 errors)"


def test_an_audit_is_made_once_for_a_content_and_a_damaged_one_is_made_again(tmp_path, monkeypatch):
    monkeypatch.setenv("BOOSTERS_EVAL_CACHE", str(tmp_path))
    stored = materialize(DATASETS["iris"])
    first = load_audit(DATASETS["iris"], stored)
    file = stored.path / "audit.json"
    written = file.read_text()
    with monkeypatch.context() as patched:
        patched.setattr("boosters_eval.datasets.auditing.audit_table", None)
        assert load_audit(DATASETS["iris"], stored) == first
        assert load_audit(DATASETS["iris"].replace(name="other"), stored) == first.replace(dataset="other")
    for damage in ("", "{", written.replace(stored.digest, "0" * 64), written.replace('"revision":1', '"revision":0')):
        file.write_text(damage)
        store._kept.cache_clear()
        assert load_audit(DATASETS["iris"], stored) == first
        assert file.read_text() == written


def test_reports_show_the_findings_and_the_columns_that_were_used():
    results = with_audit(toy=TOY, elsewhere=TOY.replace(dataset="elsewhere"))
    document = build_document(results)
    section = next(section for section in document.document().sections if section.anchor == "data")
    table, listing, columns = section.blocks
    assert table.rows == (("toy", "binary", "2 distinct values in 'y'", 100, 2, 2, "all", 2),)
    assert [(item.mark, item.rest) for item in listing.items] == [
        ("leak", ": 'a' alone predicts 'y': AUC 1.0000, out of sample (--drop a)."),
        ("constant", ": 'b' is always 1."),
    ]
    assert columns.title == "Columns of toy"
    assert columns.blocks[0].items[-1].rest == "no (90), yes (10)"
    for text in (document.to_markdown(), document.to_html()):
        assert "alone predicts" in text
        assert "dropped" in text
    assert json.loads(document.model_dump_json())["results"]["metadata"]["audits"]["toy"]["rows"] == 100


def test_findings_that_spoil_the_scores_are_among_the_notes_of_every_table():
    notes = build_tables(with_audit(toy=TOY)).notes
    assert notes[0] == "toy: 'a' alone predicts 'y': AUC 1.0000, out of sample (--drop a)."
    assert not any("always 1" in note for note in notes)


def test_findings_that_spoil_the_scores_are_part_of_the_answer():
    results = with_audit(toy=TOY)
    (table,) = build_tables(results).tables
    assert table.answer[0] == "Which: no answer yet. The data are suspect: 'a' alone predicts 'y' (--drop a)."
    assert build_document(results).answer[0] == table.answer[0]
    two = remember(
        collection([result(config, seed=seed) for seed in (1, 2) for config in ("toy/gbdt", "toy/gblinear")]),
        audits={"toy": TOY.model_dump()},
    )
    assert build_document(two).answer[0] == (
        "Which, on toy/gbdt and toy/gblinear: no answer yet. The data are suspect: 'a' alone predicts 'y' (--drop a)."
    )
    (clean,) = build_tables(with_audit(toy=TOY.replace(findings=TOY.findings[1:]))).tables
    assert "suspect" not in clean.answer[0]


def test_what_no_data_set_has_takes_no_column():
    section = show_data(with_audit(toy=TOY.replace(reason="", n_classes=None, classes={})))
    assert section.blocks[0].headings == ("Data set", "Task", "Rows", "Columns", "Rows looked at", "Findings")


def test_names_from_a_file_are_escaped_in_every_report():
    evil = "<script>alert(1)</script>\x1b[31m|`x`"
    finding = AuditFinding(kind="leak", text=f"'{evil}' alone predicts", column=evil, option=f"--drop '{evil}'")
    column = AuditedColumn(name=evil, role="numeric", note=evil)
    hostile = TOY.replace(reason=evil, reading=evil, columns=(column,), findings=(finding,), classes={evil: 3})
    document = build_document(with_audit(toy=hostile))
    page, text = document.to_html(), document.to_markdown()
    assert "<script>alert(1)" not in page
    assert "\x1b" not in page + text
    assert "<script>" not in text


def test_python_warns_of_a_leak_and_of_nothing_less(faulty):
    options = {"seeds": 1, "training": TrainingConfig(max_depth=1), "executor": shared_pool()}
    with pytest.warns(BoostersEvalWarning, match="tiny: 'column 0' alone predicts the target.*see results.audits"):
        compare(TINY, "faulty", **options)
    results = compare(TINY.replace(name="constant", loader=with_a_constant), "faulty", **options)
    assert [finding.kind for finding in results.audits["constant"].findings] == ["constant"]


def with_a_constant():
    rng = np.random.default_rng(1)
    return np.column_stack([rng.random((60, 2)), np.ones(60)]), rng.random(60)
