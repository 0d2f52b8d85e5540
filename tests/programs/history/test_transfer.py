"""Results of other machines come in as files, and go out as one."""

import json
import os
import shutil

import pytest

from boosters_eval.programs.history import index, query, transfer
from boosters_eval.programs.history.model import HistoryFilter
from written_runs import MACHINE, SEEDS, results_file, written_run

OTHER = {**MACHINE, "digest": "cccc"}


def exported(home, **wanted):
    parts = []
    found = transfer.HistoryExport(HistoryFilter(**wanted), "json", home=home)
    found.pour(parts.append)
    return "".join(parts), found.count, found.left_out


def days(home):
    return [(entry.started_at[8:10], entry.origin, entry.machine) for entry in query.list_runs(home=home)]


def test_a_results_file_is_kept_and_found_again_by_reindexing(tmp_path):
    file = results_file(tmp_path / "ci.json", written_run(tmp_path / "ci", 1, machine=OTHER))
    home = tmp_path / "home"
    assert transfer.import_file(file, home).added == 1
    assert transfer.import_file(file, home) == transfer.Imported(file, known=1)
    file.unlink()
    assert index.reindex(home) == 1
    assert days(home) == [("01", "import", "cccc")]


def test_an_import_changes_what_was_before(tmp_path):
    home = tmp_path / "home"
    written_run(home, 1, 0.5)
    written_run(home, 3, 0.6, version="1.2")
    verdict = lambda: query.list_changes(home=home).runs[0].changes[0].verdict  # noqa: E731
    assert verdict() == "worse"
    between = results_file(tmp_path / "ci.json", written_run(tmp_path / "ci", 2, 0.6, version="1.1"))
    assert transfer.import_file(between, home).added == 1
    assert verdict() == "identical"
    (kept,) = (home / index.IMPORTS).iterdir()
    kept.unlink()
    assert verdict() == "worse"


def test_a_run_of_this_home_is_not_told_twice(tmp_path):
    folder = written_run(tmp_path, 1)
    file = results_file(tmp_path / "same.json", folder)
    assert transfer.import_file(file, tmp_path).added == 1
    assert days(tmp_path) == [("01", "run", MACHINE["digest"])]
    shutil.rmtree(folder.path)
    assert days(tmp_path) == [("01", "import", MACHINE["digest"])]


def test_one_plan_on_two_machines_is_two_runs(tmp_path):
    home = tmp_path / "home"
    folder = written_run(tmp_path / "ci", 1)
    for name, machine in (("a", MACHINE), ("b", OTHER)):
        transfer.import_file(results_file(tmp_path / f"{name}.json", folder, machine=machine), home)
    assert {machine for _, _, machine in days(home)} == {MACHINE["digest"], "cccc"}
    assert query.find_run(f"{folder.run_id}@cccc", home).machine == "cccc"


def test_a_changed_import_is_damaged(tmp_path):
    file = results_file(tmp_path / "ci.json", written_run(tmp_path / "ci", 1))
    transfer.import_file(file, tmp_path)
    (kept,) = (tmp_path / index.IMPORTS).iterdir()
    kept.write_text(kept.read_text().replace("0.501", "0.401"))
    (entry,) = query.list_runs(home=tmp_path)
    assert (entry.state, entry.fault) == ("unreadable", "is not what was imported")


def test_what_is_exported_can_be_imported_and_says_the_same(tmp_path):
    home = tmp_path / "home"
    written_run(home, 1, 0.5, libraries=("boosters", "xgboost"))
    written_run(home, 2, 0.6, version="1.1", failed=SEEDS[:1])
    written_run(home, 3, 0.6, version="1.2", timed=True, timing_mode=True, train_time_s=2.0)
    text, count, left_out = exported(home)
    assert (count, left_out) == (3, [])
    for name, content in (("a", text), ("b", json.dumps(json.loads(text), indent=2))):  # also if it is formatted anew
        file = tmp_path / f"{name}.json"
        file.write_text(content, encoding="utf-8")
        found = transfer.import_file(file, tmp_path / name)
        assert (found.added, found.fault) == (3, "")
        assert [entry.key for entry in query.list_runs(home=tmp_path / name)] == [
            e.key for e in query.list_runs(home=home)
        ]
        numbers = [
            {
                (one.entry.key, one.config, one.target, one.metric, one.settings): one.mean
                for one in query.read_series(home=where)
            }
            for where in (home, tmp_path / name)
        ]
        assert numbers[0].keys() == numbers[1].keys()
        assert numbers[0] == numbers[1]
        assert exported(tmp_path / name)[0] == text


def test_a_damaged_run_is_left_out_of_an_export_and_named(tmp_path):
    folder = written_run(tmp_path, 1)
    written_run(tmp_path, 2, version="1.1")
    (folder.path / "plan.json").write_text("{")
    text, count, left_out = exported(tmp_path)
    assert (len(json.loads(text)["runs"]), count) == (1, 1)
    assert [reason for reason in left_out if folder.run_id in reason]


def test_an_empty_export_can_be_imported(tmp_path):
    file = tmp_path / "none.json"
    file.write_text(exported(tmp_path / "none")[0])
    assert json.loads(file.read_text())["runs"] == []
    assert transfer.import_file(file, tmp_path) == transfer.Imported(file)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("no JSON", "is not JSON"),
        ("{}", "is not a boosters-eval results file."),
        ('{"kind": "boosters-eval results", "schema_version": 99}', "is a results file of format 99, which"),
        ('{"kind": "boosters-eval results", "schema_version": 10}', "has no results."),
        ('{"kind": "boosters-eval history", "schema_version": 2, "runs": []}', "is a history of format 2, which"),
    ],
)
def test_a_file_without_results_is_refused_in_a_sentence(tmp_path, content, sentence):
    file = tmp_path / "file.json"
    file.write_text(content)
    found = transfer.import_file(file, tmp_path)
    assert (found.added, found.known) == (0, 0)
    assert sentence in found.fault
    assert not (tmp_path / index.IMPORTS).exists()


def test_results_without_time_and_machine_are_refused(tmp_path):
    file = results_file(tmp_path / "ci.json", written_run(tmp_path / "ci", 1), machine={})
    assert "does not say when and on which machine it ran" in transfer.import_file(file, tmp_path).fault


def test_a_start_that_is_no_time_is_refused(tmp_path):
    file = results_file(tmp_path / "ci.json", written_run(tmp_path / "ci", 1), started_at="yesterday")
    assert "does not say when" in transfer.import_file(file, tmp_path).fault


def test_a_cell_that_is_there_twice_is_refused(tmp_path):
    file = results_file(tmp_path / "ci.json", written_run(tmp_path / "ci", 1))
    content = json.loads(file.read_text())
    content["results"].append(content["results"][0])
    file.write_text(json.dumps(content))
    assert (
        "more than one result of boosters on diabetes/gbdt for seed 42." in transfer.import_file(file, tmp_path).fault
    )


def test_a_pipe_is_refused_without_waiting_for_it(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert "it is no regular file" in transfer.import_file(tmp_path / "pipe", tmp_path).fault


def test_an_export_that_was_cut_off_is_told_and_what_it_has_is_imported(tmp_path):
    written_run(tmp_path, 1)
    written_run(tmp_path, 2, version="1.1")
    text, _, _ = exported(tmp_path)
    file = tmp_path / "cut.json"
    file.write_text("\n".join(text.split("\n")[:2]) + "\n")
    found = transfer.import_file(file, tmp_path / "home")
    assert found.added == 1
    assert "ends too early" in found.fault


def test_csv_has_a_line_per_number_and_one_for_what_has_none(tmp_path):
    written_run(tmp_path, 1, 0.5)
    written_run(tmp_path, 2, 0.6, version="1.1", failed=(42, 1379, 2716, 4053, 5390, 6727))
    parts = []
    found = transfer.HistoryExport(HistoryFilter(), "csv", home=tmp_path)
    found.pour(parts.append)
    assert found.count == 2
    head, first, second = "".join(parts).splitlines()
    assert head.split(",") == list(transfer.COLUMNS)
    assert ",rmse,True,6,0,0.502" in first
    assert ",,True,0,6,,failed," in second
