import gc
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import factories
from boosters_eval import load_run
from boosters_eval.core.errors import BoostersEvalWarning, ConfigError, FileFormatError, RunError, UnknownNameError
from boosters_eval.engine import journal as journal_module
from boosters_eval.engine.cell import Failure
from boosters_eval.engine.folder import RunFolder
from boosters_eval.engine.journal import read_journal
from boosters_eval.engine.runs import find_run, list_run_folders, load_verified, verify
from tiny import run_tiny, tiny_config


def result(seed, value=0.5, **changes):
    return factories.result("c", "l", seed, value, **changes)


def write(folder, outcomes, *, new=True, seal=False):
    journal, attempt = folder.open(new=new)
    if not journal.found.begin:
        journal.begin({"run_id": folder.run_id})
    for outcome in outcomes:
        journal.append(outcome, "fit")
    if seal:
        journal.seal(len(outcomes))
    journal.close()
    return folder.journal_path(attempt)


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "runs" / "abc"
    path.mkdir(parents=True)
    return RunFolder(path)


def test_outcomes_come_back_as_they_were_written(folder):
    outcomes = [
        result(1, native_params={"a": 1, "b": [1, 2]}, warnings=("w",)),
        Failure(spec="c", target="l", seed=2, error_type="X", error_message="ü\n\u2028", phase="fit"),
    ]
    assert list(read_journal(write(folder, outcomes)).outcomes.values()) == outcomes


@pytest.mark.parametrize("collecting", [True, False])
def test_reading_leaves_the_garbage_collector_as_it_was(folder, collecting):
    path = write(folder, [result(1)])
    if not collecting:
        gc.disable()
    try:
        read_journal(path)
        assert gc.isenabled() == collecting
    finally:
        gc.enable()


@settings(max_examples=25, deadline=None)
@given(cut=st.integers(min_value=1, max_value=400))
def test_cut_last_line_is_left_out_and_repaired_on_appending(tmp_path_factory, cut):
    folder = RunFolder(tmp_path_factory.mktemp("run"))
    path = write(folder, [result(1), result(2)])
    whole = path.read_bytes()
    *before, last = whole.splitlines(keepends=True)
    path.write_bytes(whole[: -min(cut, len(last) - 1)])
    assert read_journal(path).cut
    assert list(read_journal(path).outcomes) == ["c|l|1"]
    write(folder, [result(2), result(3)], new=False)
    assert path.read_bytes().startswith(b"".join(before))
    assert list(read_journal(path).outcomes) == ["c|l|1", "c|l|2", "c|l|3"]
    assert read_journal(path).damage is None


def test_workload_whose_name_was_changed_is_damage_and_one_that_is_not_installed_is_named(tmp_path):
    path = write(RunFolder(tmp_path), [result(seed, seed / 7) for seed in range(2)], seal=True)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b'"of":"fit"', b'"of":"git"')
    path.write_bytes(b"".join(lines))
    assert read_journal(path).damage == "line 2 is not the one that the next line follows"
    path.write_bytes(b"".join(lines[:2]))  # nothing speaks against this one
    with pytest.raises(UnknownNameError, match="Unknown workload 'git'"):
        read_journal(path)


@settings(max_examples=60, deadline=None)
@given(position=st.integers(0, 10**6), change=st.integers(1, 255))
def test_any_changed_byte_of_a_sealed_journal_is_found(tmp_path_factory, position, change):
    path = write(RunFolder(tmp_path_factory.mktemp("run")), [result(seed, seed / 7) for seed in range(4)], seal=True)
    assert read_journal(path).sealed
    content = bytearray(path.read_bytes())
    content[position % len(content)] ^= change
    path.write_bytes(content)
    assert read_journal(path).damage is not None or not read_journal(path).sealed


def test_verify_sees_a_changed_last_outcome_and_text_after_the_end(faulty, home):
    run_tiny(tiny_config("none"), seeds=2)
    folder = find_run("last")
    path = folder.journal_path(1)
    whole = path.read_text()
    path.write_text(whole + "garbage")
    assert "not sealed" in dict(verify(folder))["journal.jsonl"]
    lines = whole.splitlines(keepends=True)
    lines[-2] = lines[-2].replace('"mae":', '"mae":1', 1)
    path.write_text("".join(lines))
    assert "does not follow" in dict(verify(folder))["journal.jsonl"]
    path.write_text("".join(lines[:-1]))
    assert "not sealed" in dict(verify(folder))["journal.jsonl"]


@pytest.mark.parametrize("content", ["[]", '{"schema_version": "x"}', "[" * 200_000, "nonsense", ""])
def test_foreign_plan_is_one_sentence(faulty, home, content):
    run_tiny(tiny_config("none"))
    (find_run("last").path / "plan.json").write_text(content)
    with pytest.raises(FileFormatError):
        load_run("last")


@pytest.mark.parametrize("content", ["[1]", "[" * 200_000, "5"])
def test_journal_with_foreign_content_is_damage(folder, content):
    path = folder.journal_path(1)
    path.write_text(f'{{"prev":"{"0" * 32}","begin":{content}}}\n')
    assert "cannot be read" in read_journal(path).damage


def test_removed_line_is_found(folder):
    path = write(folder, [result(seed) for seed in range(4)])
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2] + lines[3:]))
    assert "does not follow" in read_journal(path).damage


def test_damaged_journal_is_refused_and_left_alone(folder):
    path = write(folder, [result(1), result(2)])
    broken = path.read_bytes().replace(b'"rmse":0.5', b'"rmse":0.4', 1)
    path.write_bytes(broken)
    with pytest.raises(RunError, match="damaged"):
        folder.open(new=False)
    assert path.read_bytes() == broken


def test_last_outcome_of_a_cell_counts(folder):
    path = write(folder, [result(1, 0.1), result(2, 0.2), result(1, 0.3)])
    assert [o.metrics["rmse"] for o in read_journal(path).outcomes.values()] == [0.2, 0.3]


def test_new_attempt_stands_beside_the_old_one(folder):
    first, second = write(folder, [result(1)]), write(folder, [result(2)])
    assert (first.name, second.name) == ("journal.jsonl", "journal-2.jsonl")
    assert list(read_journal(first).outcomes) == ["c|l|1"]


def test_second_process_is_refused(folder):
    journal, _ = folder.open(new=True)
    with pytest.raises(RunError, match="another process"):
        folder.open(new=True)
    journal.close()
    folder.open(new=True)[0].close()


def test_home_that_is_a_file_is_reported(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("BOOSTERS_EVAL_HOME", str(tmp_path / "file"))
    with pytest.raises(ConfigError, match="must be a directory"):
        list_run_folders()


def test_run_is_found_by_the_beginning_of_its_id_and_by_last(faulty, home):
    one = run_tiny(tiny_config("none"))
    two = run_tiny(tiny_config("slow"))
    assert find_run("last").run_id == two.run_id
    assert load_run(one.run_id[:6]).run_id == one.run_id
    with pytest.raises(ConfigError, match="No run 'zzz'"):
        find_run("zzz")
    with pytest.raises(ConfigError, match="No run ''"):
        find_run("")


def test_loaded_run_equals_what_the_run_returned(faulty, home):
    ran = run_tiny(tiny_config("none"), tiny_config("segfault"), seeds=3)
    loaded = load_run("last")
    assert loaded.results == ran.results
    assert loaded.errors == ran.errors
    assert loaded.metadata.facts.machine["digest"]


def test_verify_tells_complete_incomplete_and_foreign(faulty, home):
    run_tiny(tiny_config("none"), seeds=2)
    folder = find_run("last")
    assert list(verify(folder)) == [("journal.jsonl", "")]
    path = folder.journal_path(1)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-2]))
    assert "incomplete: 1 of 2" in dict(verify(folder))["journal.jsonl"]
    write(folder, [result(9)], new=False)
    assert "not in the plan" in dict(verify(folder))["journal.jsonl"]


def test_verify_notices_a_changed_plan(faulty, home):
    run_tiny(tiny_config("none"))
    folder = find_run("last")
    plan = json.loads((folder.path / "plan.json").read_text())
    plan["specs"][0]["training"]["n_estimators"] = 7
    (folder.path / "plan.json").write_text(json.dumps(plan))
    assert "is not the plan" in dict(verify(folder))["plan.json"]


def test_what_verify_objects_to_is_not_decided_on(faulty, home):
    run_tiny(tiny_config("none"), seeds=2)
    folder = find_run("last")
    run = load_verified(folder)
    assert (len(run.results), run.attempt) == (2, 1)
    assert run.digest == read_journal(folder.journal_path(1)).last
    with pytest.raises(RunError, match="has no attempt 2"):
        load_verified(folder, 2)
    path = folder.journal_path(1)
    lines = path.read_bytes().splitlines(keepends=True)
    for kept, fault in ((lines[:-1], "not sealed"), (lines[:-2], "incomplete: 1 of 2"), (lines[1:], "damaged: line 1")):
        path.write_bytes(b"".join(kept))
        with pytest.raises(RunError, match=rf"cannot be verified: .*journal.jsonl: {fault}"):
            load_verified(folder)
    path.write_bytes(b"".join(lines))
    renamed = RunFolder(folder.path.rename(folder.path.with_name("f" * 16)))
    with pytest.raises(RunError, match=r"plan\.json: has the digest"):
        load_verified(renamed)


def test_full_disk_is_reported_and_loses_nothing(folder, monkeypatch):
    journal, _ = folder.open(new=True)
    journal.begin({"run_id": "abc"})
    journal.append(result(1), "fit")

    def no_space(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(journal_module.os, "fsync", no_space)
    with pytest.raises(RunError, match=r"No space left on device.*use resume=True"):
        journal.append(result(2), "fit")
    monkeypatch.undo()
    journal.close()
    assert "c|l|1" in read_journal(folder.journal_path(1)).outcomes


def test_line_without_an_end_is_not_read_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(journal_module, "MAX_TEXT", 1000)
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b"x" * 5000)
    found = read_journal(path)
    assert (found.cut, found.damage) == (False, "line 1 is longer than any line of a journal")


def test_plan_with_cells_taken_out_is_noticed_by_every_reader(faulty, home):
    run_tiny(tiny_config("none"), seeds=2)
    folder = find_run("last")
    path = folder.path / "plan.json"
    plan = json.loads(path.read_text())
    path.write_text(json.dumps({**plan, "refs": plan["refs"][:1]}))
    for load in (load_run, lambda run: load_run(run, verified=True), lambda run: load_verified(find_run(run))):
        with pytest.raises(RunError, match="plan"):
            load("last")


def test_plan_with_cells_taken_out_is_noticed_even_under_its_own_name(faulty, home):
    """Whoever renames the folder and its run id too still has a journal with a cell that is not in the plan."""
    run_tiny(tiny_config("none"), seeds=2)
    folder = find_run("last")
    plan = folder.plan()
    fewer = plan.replace(refs=plan.refs[:1])
    other = RunFolder.of(fewer)
    write(other, read_journal(folder.journal_path(1)).outcomes.values(), seal=True)
    with pytest.raises(RunError, match="do not belong together: has a cell that is not in the plan"):
        other.load()


def test_seal_on_fewer_outcomes_than_the_plan_has_is_refused(faulty, home):
    run_tiny(tiny_config("none"), seeds=2)
    folder = find_run("last")
    write(folder, list(read_journal(folder.journal_path(1)).outcomes.values())[:1], seal=True)
    with pytest.raises(RunError, match="do not belong together: incomplete: 1 of 2 cells have no outcome"):
        folder.load()


def test_whole_run_without_a_seal_is_shown_with_a_warning_and_not_decided_on(faulty, home):
    run_tiny(tiny_config("none"), seeds=2)
    path = find_run("last").journal_path(1)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    with pytest.warns(BoostersEvalWarning, match="has all outcomes but no seal"):
        assert len(load_run("last").results) == 2
    with pytest.raises(RunError, match="not sealed"):
        load_run("last", verified=True)


def test_wide_object_in_any_file_of_a_run_is_refused_before_it_costs_an_error_per_key(faulty, home):
    run_tiny(tiny_config("none"))
    folder = find_run("last")
    wide = json.dumps(dict.fromkeys(map(str, range(60_000)), 0))
    for name, head in (("environment.json", ""), ("plan.json", '{"schema_version": 10, "x": ')):
        path = folder.path / name
        whole = path.read_text()
        path.write_text(head + wide + ("}" if head else ""))
        with pytest.raises(FileFormatError, match="60000 keys"):
            load_run("last")
        path.write_text(whole)
    folder.journal_path(1).write_text(f'{{"prev":"{"0" * 32}","begin":{wide}}}\n')
    assert "60000 keys" in read_journal(folder.journal_path(1)).damage


@pytest.mark.parametrize("change", ["delete", "replace"])
def test_journal_that_vanishes_during_the_run_is_an_error(folder, change):
    journal, _ = folder.open(new=True)
    journal.begin({"run_id": "abc"})
    journal.path.unlink()
    if change == "replace":
        journal.path.write_text("")
    with pytest.raises(RunError, match="was deleted or replaced during the run"):
        journal.append(result(1), "fit")
    journal.close()


@pytest.mark.parametrize(("name", "change"), [("plan.json", ("name", "other")), ("environment.json", ("alpha", 0.5))])
def test_what_the_run_id_does_not_cover_is_covered_by_the_first_line(faulty, home, name, change):
    run_tiny(tiny_config("none"))
    folder = find_run("last")
    path = folder.path / name
    path.write_text(json.dumps({**json.loads(path.read_text()), **dict([change])}))
    assert dict(verify(folder))[name] == "is not what it was when the attempt began"
    for load in (folder.load, lambda: load_verified(folder)):
        with pytest.raises(RunError, match=f"{name}: is not what it was"):
            load()


@settings(max_examples=20)
@given(written=st.integers(0, 3), stated=st.integers(0, 5))
def test_seal_must_count_the_outcomes_before_it(tmp_path_factory, written, stated):
    folder = RunFolder(tmp_path_factory.mktemp("run"))
    path = write(folder, [result(seed) for seed in range(written)])
    journal, _ = folder.open(new=False)
    journal.seal(stated)
    journal.close()
    right = stated == written
    assert read_journal(path).damage == (
        None if right else f"line {written + 3 - (not written)} does not count the outcomes before it"
    )


def test_seal_counts_a_cell_that_ran_twice_once(folder):
    path = write(folder, [result(1, 0.1), result(2), result(1, 0.3)])
    journal, _ = folder.open(new=False)
    journal.seal(2)
    journal.close()
    assert (read_journal(path).sealed, read_journal(path).damage) == (True, None)


def test_run_that_goes_on_after_its_seal_is_complete_only_with_another_one(folder):
    path = write(folder, [result(1)], seal=True)
    assert read_journal(path).sealed
    write(folder, [result(2)], new=False)
    assert (read_journal(path).sealed, read_journal(path).damage, len(read_journal(path).outcomes)) == (False, None, 2)
    journal, _ = folder.open(new=False)
    journal.seal(2)
    journal.close()
    assert (read_journal(path).sealed, read_journal(path).damage) == (True, None)
