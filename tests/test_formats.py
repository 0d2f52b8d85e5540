"""A file of another format is refused by one sentence, whatever it is; RFC-0015's baseline is the exception."""

import json
import re
from functools import partial
from pathlib import Path

import pytest

import factories
from boosters_eval import load_baseline, save_baseline
from boosters_eval.core.errors import FileFormatError
from boosters_eval.core.files import FORMAT
from boosters_eval.engine.facts import RunFacts
from boosters_eval.engine.folder import RunFolder
from boosters_eval.engine.journal import read_journal
from boosters_eval.engine.plan import Plan
from boosters_eval.programs.benchmark.results import ResultCollection
from boosters_eval.programs.benchmark.tables.document import build_document
from boosters_eval.programs.gate.decision import decide_scores, verify_decision
from boosters_eval.programs.gate.model import GateRules
from boosters_eval.programs.history import query, transfer
from boosters_eval.programs.paper.comparison import PaperComparison, PaperResults, read_stored
from boosters_eval.programs.paper.judge import compare_results
from boosters_eval.programs.parity.method import Size
from boosters_eval.programs.parity.references import ReferenceStore, StoredReference
from written_runs import written_run

FIXTURES = Path(__file__).parent / "fixtures"
FOREIGN = "of format 99, which this version does not read: it was written by another version of boosters-eval"
OTHER = re.escape(f" {FOREIGN}.")


def written(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def plan(folder):
    return written_run(folder).path / "plan.json", lambda path: Plan.parse(path.read_text(), str(path)), "a plan"


def environment(folder):
    run = written_run(folder)
    return run.facts_path(1), lambda _: run.facts(1), "a record of a run"


def results(folder):
    return written(folder / "r.json", factories.collection().to_json()), ResultCollection.load_partial, "a results file"


def report(folder):
    text = build_document(factories.collection()).model_dump_json()
    return written(folder / "r.json", text), ResultCollection.load_partial, "a report"


def baseline(folder):
    save_baseline(factories.baseline(), folder / "b.json")
    return folder / "b.json", load_baseline, "a baseline"


def decision(folder):
    scores = written(folder / "s.json", json.dumps([{"case_id": f"c{i}", "score": 0.9} for i in range(12)]))
    (folder / "d.json").write_text(decide_scores(scores, GateRules(threshold=0.5)).text())
    return folder / "d.json", verify_decision, "a gate decision"


def history(folder):
    def imported(path):
        raise FileFormatError(transfer.import_file(path, folder).fault)

    raw = {"schema_version": FORMAT, "kind": transfer.KIND, "runs": []}
    return written(folder / "h.json", json.dumps(raw)), imported, "a history"


def paper_results(folder):
    text = factories.paper_results().model_dump_json()
    return (
        written(folder / "p.json", text),
        partial(read_stored, model=PaperResults),
        "a 'boosters-eval paper results' file",
    )


def paper_comparison(folder):
    found = compare_results(factories.paper(), factories.paper_results())
    return (
        written(folder / "c.json", found.model_dump_json()),
        partial(read_stored, model=PaperComparison),
        "a 'boosters-eval paper comparison' file",
    )


def reference(folder):
    stored = StoredReference(
        role="oracle", method="m", backend="b", size=Size(4, 2), parameters_digest="p", data_digest="d",
        predictions=("x",), shape=(4,),
    )  # fmt: skip
    path = written(folder / stored.key.file, stored.model_dump_json())
    return path, lambda _: ReferenceStore(folder).all(), "a stored reference"


FORMATS = [
    plan, environment, results, report, baseline, decision, history, paper_results, paper_comparison, reference,
]  # fmt: skip


@pytest.mark.parametrize("make", FORMATS, ids=lambda make: make.__name__)
def test_file_of_another_format_is_refused(make, tmp_path):
    path, load, what = make(tmp_path)
    text = path.read_text(encoding="utf-8")
    path.write_text(re.sub(r'"schema_version":\s*\d+', '"schema_version": 99', text, count=1), encoding="utf-8")
    with pytest.raises(FileFormatError, match=f"^{re.escape(str(path))} is {what}{OTHER}$"):
        load(path)


@pytest.mark.parametrize("make", [results, report, baseline, decision], ids=lambda make: make.__name__)
@pytest.mark.parametrize("version", [None, "1", True, [1], 0, -1])
def test_what_is_no_format_is_refused_too(make, version, tmp_path):
    path, load, what = make(tmp_path)
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), "schema_version": version}))
    with pytest.raises(FileFormatError, match=rf" is {what} of (an unknown format|format (0|-1)), which this version"):
        load(path)


def test_journal_of_another_format_is_not_read(tmp_path):
    folder = written_run(tmp_path)
    path = folder.journal_path(1)
    path.write_text(path.read_text().replace('"schema_version": 10', '"schema_version": 99', 1))
    assert read_journal(path).damage == f"line 1 begins a journal {FOREIGN}"
    (entry,) = query.list_runs(home=tmp_path)
    assert (entry.state, entry.fault) == ("unreadable", f"journal.jsonl: {read_journal(path).damage}")


@pytest.mark.parametrize("name", ["plan.json", "environment.json"])
def test_history_names_the_file_of_another_format(name, tmp_path):
    path = written_run(tmp_path).path / name
    path.write_text(path.read_text().replace('"schema_version": 10', '"schema_version": 99', 1))
    (entry,) = query.list_runs(home=tmp_path)
    assert entry.state == "unreadable"
    assert re.match(rf"{name} is a (plan|record of a run) of format 99, which", entry.fault)


def test_files_of_a_run_have_one_format():
    assert Plan.model_fields["schema_version"].default == RunFacts().schema_version == FORMAT


def test_baseline_of_the_rfc_is_read():
    assert json.loads((FIXTURES / "baseline_v1.json").read_text())["schema_version"] == 1
    assert load_baseline(FIXTURES / "baseline_v1.json").results


def test_run_of_another_format_is_refused_by_its_plan(tmp_path):
    folder = written_run(tmp_path)
    for path in folder.path.glob("*.json*"):
        path.write_text(path.read_text().replace('"schema_version": 10', '"schema_version": 99', 1))
    with pytest.raises(FileFormatError, match=f"plan.json is a plan{OTHER}$"):
        RunFolder(folder.path).load()
