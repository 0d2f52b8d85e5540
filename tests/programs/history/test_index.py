"""The index follows the runs: what is new, grown, damaged or gone is noticed at the next question."""

import hashlib
import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from boosters_eval import OBSERVERS, BoostersEvalWarning, Observer, Observers
from boosters_eval.engine.observer import RunEnded, RunStarted
from boosters_eval.engine.plain import LINE, START, digest_line
from boosters_eval.programs.history import index, query, store, transfer
from boosters_eval.programs.history.compare import compare_series
from boosters_eval.programs.history.index import HistoryObserver, record_runs
from boosters_eval.programs.history.model import HistoryFilter
from stamping import FAST, SLOW
from tiny import run_tiny, tiny_config
from written_runs import MACHINE, SEEDS, results_file, written_run


def listed(home, **wanted):
    """The runs and verdicts as (day, state, {(target, metric): verdict}), the latest first."""
    found = [(run.entry, run.changes) for run in query.list_changes(HistoryFilter(**wanted), home).runs]
    return [(e.started_at[8:10], e.state, {(c.target, c.metric): c.verdict for c in changes}) for e, changes in found]


def verdicts(home, **wanted):
    return {day: next(iter(changes.values()), None) for day, _, changes in listed(home, **wanted)}


def test_a_run_is_judged_against_the_run_before_on_the_same_machine(tmp_path):
    written_run(tmp_path, 1, 0.50)
    written_run(tmp_path, 2, 0.40, version="1.1", machine={**MACHINE, "digest": "bbbb"})
    written_run(tmp_path, 3, 0.50, version="1.2")
    written_run(tmp_path, 4, 0.60, version="1.3")
    assert verdicts(tmp_path) == {"04": "worse", "03": "identical", "02": "first", "01": "first"}


def test_a_run_that_comes_late_changes_the_verdict_of_the_one_after_it(tmp_path):
    written_run(tmp_path, 1, 0.50)
    written_run(tmp_path, 5, 0.60, version="1.4")
    assert verdicts(tmp_path) == {"05": "worse", "01": "first"}
    written_run(tmp_path, 3, 0.60, version="1.2")
    assert verdicts(tmp_path) == {"05": "identical", "03": "worse", "01": "first"}


def test_a_removed_run_vanishes_and_the_one_after_it_is_judged_again(tmp_path):
    written_run(tmp_path, 1, 0.50)
    gone = written_run(tmp_path, 2, 0.60, version="1.1")
    written_run(tmp_path, 3, 0.60, version="1.2")
    assert verdicts(tmp_path)["03"] == "identical"
    shutil.rmtree(gone.path)
    assert verdicts(tmp_path) == {"03": "worse", "01": "first"}


def test_other_parameters_or_other_data_are_another_line_or_not_comparable(tmp_path):
    written_run(tmp_path, 1, 0.50)
    written_run(tmp_path, 2, 0.60, version="1.1", data_digest="0" * 64)
    assert verdicts(tmp_path)["02"] == "not comparable"


def test_an_unfinished_run_is_looked_at_again_and_stands_before_nothing(tmp_path):
    written_run(tmp_path, 1, 0.50)
    folder = written_run(tmp_path, 2, 0.60, version="1.1", sealed=False)
    written_run(tmp_path, 3, 0.50, version="1.2")
    assert [(day, state) for day, state, _ in listed(tmp_path)][1] == ("02", "unfinished")
    assert verdicts(tmp_path)["03"] == "identical"
    book, _ = folder.open(new=False)
    book.seal(len(SEEDS))
    book.close()
    assert verdicts(tmp_path) == {"03": "better", "02": "worse", "01": "first"}


def test_a_run_that_is_being_executed_is_running(tmp_path):
    folder = written_run(tmp_path, 1, sealed=False)
    book, _ = folder.open(new=False)
    try:
        assert listed(tmp_path)[0][1] == "running"
    finally:
        book.close()
    assert listed(tmp_path)[0][1] == "unfinished"


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        (
            "journal.jsonl",
            lambda text: text.replace('"rmse":0.5,', '"rmse":0.4,').replace('"rmse":0.5}', '"rmse":0.4}'),
        ),
        ("journal.jsonl", lambda text: text[: len(text) // 2].rsplit("\n", 1)[0] + "\nnonsense\n"),
        ("journal.jsonl", lambda text: text.replace('"outcomes": 6', '"outcomes": 5')),
        ("journal.jsonl", lambda _: "[" * 100_000 + "\n"),
        ("plan.json", lambda text: text.replace('"nightly"', '"other"')),
        ("plan.json", lambda _: "{"),
        ("environment.json", lambda text: text.replace("c0ffee1", "decaf00")),
        ("environment.json", lambda _: "[1]"),
    ],
)
def test_damage_is_never_told_as_fine(tmp_path, name, damage):
    folder = written_run(tmp_path, 1)
    assert listed(tmp_path)[0][1] == "finished"
    path = folder.path / name
    text = path.read_text()
    path.unlink()
    path.write_text(damage(text))
    assert path.read_text() != text
    (entry,) = query.list_runs(home=tmp_path)
    assert entry.state == "unreadable"
    assert entry.fault
    assert list(query.read_series(home=tmp_path)) == []


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("facts", "machine"), "a text"),
        (("facts", "resumed"), 5),
        (("facts", "git_sha"), "\ud800"),
        (("result", "metrics"), ["rmse"]),
        (("result", "metrics"), {"rmse": "much"}),
        (("result", "n_train"), "all"),
        (("result", "n_valid"), 10**30),
    ],
)
def test_values_of_wrong_types_are_damage_of_one_run_and_stop_no_other(tmp_path, where, value):
    """A chain proves that nothing was changed, not that what was written makes sense."""
    written_run(tmp_path, 1)
    folder = written_run(tmp_path, 2, version="1.1")
    written_run(tmp_path, 3, version="1.2")
    rechained(folder.path, {where: value})
    assert [(day, state) for day, state, _ in listed(tmp_path)][-1] == ("01", "finished")
    assert {entry.run_id: entry.state for entry in query.list_runs(home=tmp_path)}[folder.run_id] == "unreadable"
    assert verdicts(tmp_path)["03"] == "identical"


def rechained(path, changes):
    """Write a run anew with other values in its facts or in each of its results, with a chain that holds."""
    facts_path, journal_path = path / "environment.json", path / "journal.jsonl"
    facts = json.loads(facts_path.read_text()) | {
        name: value for (kind, name), value in changes.items() if kind == "facts"
    }
    facts_path.unlink()
    facts_path.write_text(json.dumps(facts))
    own = {name: value for name, value in facts.items() if name != "resumed"}
    begin = {"facts": hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()[:32]}
    previous, lines = START, []
    for line in journal_path.read_bytes().splitlines(keepends=True):
        kind = LINE.fullmatch(line)[4].decode()
        raw = json.loads(line) | {"prev": previous}
        raw[kind] |= begin if kind == "begin" else {}
        raw[kind] |= {name: value for (of, name), value in changes.items() if of == kind}
        lines.append(json.dumps(raw, separators=(",", ":")).encode() + b"\n")
        previous = digest_line(lines[-1])
    journal_path.unlink()
    journal_path.write_bytes(b"".join(lines))


def test_a_lost_journal_is_damage(tmp_path):
    folder = written_run(tmp_path, 1)
    query.list_runs(home=tmp_path)
    (folder.path / "journal.jsonl").unlink()
    (entry,) = query.list_runs(home=tmp_path)
    assert (entry.state, entry.fault) == ("unreadable", "journal.jsonl: the file is missing")


def test_failed_cells_count_and_a_competitor_without_any_number_is_told(tmp_path):
    written_run(tmp_path, 1, libraries=("boosters", "xgboost"), failed=SEEDS)
    (run,) = query.list_changes(home=tmp_path).runs
    assert (run.entry.done, run.entry.failed) == (0, 2 * len(SEEDS))
    assert {change.target: change.verdict for change in run.changes} == {"boosters": "failed", "xgboost": "failed"}


def test_more_failures_than_before_are_not_passed_over(tmp_path):
    written_run(tmp_path, 1, 0.50)
    written_run(tmp_path, 2, 0.50, version="1.1", failed=SEEDS[:2])
    assert verdicts(tmp_path)["02"] == "inconclusive"
    (series,) = [one for one in query.read_series(home=tmp_path) if one.entry.started_at[8:10] == "02"]
    assert (len(series.observations), series.failed) == (len(SEEDS) - 2, 2)


def test_seeds_that_were_added_replace_the_run_that_they_were_added_to(tmp_path):
    written_run(tmp_path, 1, 0.50)
    first = written_run(tmp_path, 2, 0.60, version="1.1", seeds=SEEDS[:3])
    written_run(tmp_path, 3, 0.60, version="1.1", facts={"extends": first.run_id})
    assert verdicts(tmp_path) == {"03": "worse", "02": "", "01": "first"}
    assert [one.entry.started_at[8:10] for one in query.read_series(home=tmp_path)] == ["01", "03"]


def test_series_are_in_the_order_of_time_with_all_that_a_test_needs(tmp_path):
    written_run(tmp_path, 2, 0.50, version="1.1")
    written_run(tmp_path, 1, 0.40)
    early, late = query.read_series(home=tmp_path)
    assert (early.version, late.version) == ("1.0", "1.1")
    assert (early.metric, early.primary, early.higher_is_better) == ("rmse", True, False)
    assert [one.seed for one in early.observations] == list(SEEDS)
    assert early.observations[1].value == pytest.approx(0.401)
    assert {one.n_valid for one in early.observations} == {20}
    assert early.settings == late.settings
    assert [one.split_digest for one in early.observations] == [one.split_digest for one in late.observations]


def test_times_are_judged_only_where_they_are_fair(tmp_path):
    for day, took, timed in ((1, 1.0, True), (2, 2.0, True), (3, 3.0, False)):
        written_run(tmp_path, day, version=f"1.{day}", timed=timed, timing_mode=timed, train_time_s=took)
    metrics = {day: changes.get(("boosters", "train_time_s")) for day, _, changes in listed(tmp_path)}
    assert metrics == {"03": None, "02": "worse", "01": None}
    assert all(
        one.fair
        for series in query.read_series(HistoryFilter(metrics=("rmse",)), tmp_path)
        for one in series.observations
    )


def both(seed):
    return SLOW if seed % 2 else FAST


TIMED = {"timed": True, "timing_mode": True}


def judged(home, metric):
    return {day: changes.get(("boosters", metric)) for day, _, changes in listed(home)}


def test_run_on_several_machines_is_in_no_line_of_times_and_its_scores_in_that_of_the_same_machines(tmp_path):
    for day, value, place in ((1, 0.5, lambda _: SLOW), (2, 0.6, both), (3, 0.7, both), (4, 0.5, lambda _: SLOW)):
        written_run(tmp_path, day, value, version=f"1.{day}", place=place, train_time_s=value, **TIMED)
    assert judged(tmp_path, "rmse") == {"04": "identical", "03": "worse", "02": "first", "01": "first"}
    assert judged(tmp_path, "train_time_s") == {"04": "identical", "03": None, "02": None, "01": None}
    entries = {entry.started_at[8:10]: entry for entry in query.list_runs(home=tmp_path)}
    assert entries["01"].machine == SLOW.digest
    assert entries["02"].machine == "+".join(sorted([SLOW.digest, FAST.digest]))
    assert sorted(entries["02"].machine_label.split(" + ")) == ["Fast CPU, 32 CPUs", "Slow CPU, 8 CPUs"]
    found = query.read_series(HistoryFilter(metrics=("train_time_s",)), tmp_path)
    assert [series.entry.started_at[8:10] for series in found] == ["01", "04"]


def test_run_wholly_on_one_node_stands_in_the_line_of_that_machine(tmp_path):
    written_run(tmp_path, 1, machine=SLOW.recorded(), train_time_s=1.0, **TIMED)
    written_run(tmp_path, 2, version="1.1", machine=FAST.recorded(), place=lambda _: SLOW, train_time_s=2.0, **TIMED)
    assert judged(tmp_path, "train_time_s")["02"] == "worse"


def test_cells_that_name_no_machine_are_of_the_one_where_the_run_began(tmp_path):
    there = lambda seed: SLOW if seed == SEEDS[0] else None  # noqa: E731
    written_run(tmp_path, 1, machine=SLOW.recorded(), place=there, train_time_s=1.0, **TIMED)
    written_run(tmp_path, 2, version="1.1", machine=FAST.recorded(), place=there, train_time_s=1.0, **TIMED)
    machines = {entry.started_at[8:10]: entry.machine for entry in query.list_runs(home=tmp_path)}
    assert machines == {"01": SLOW.digest, "02": "+".join(sorted([SLOW.digest, FAST.digest]))}


def test_results_file_of_several_machines_is_indexed_like_its_run(tmp_path):
    folder = written_run(tmp_path / "elsewhere", 1, place=both, train_time_s=1.0, **TIMED)
    transfer.import_file(results_file(tmp_path / "results.json", folder), tmp_path / "home")
    (entry,) = query.list_runs(home=tmp_path / "home")
    assert entry.machine == "+".join(sorted([SLOW.digest, FAST.digest]))
    assert list(query.read_series(HistoryFilter(metrics=("train_time_s",)), tmp_path / "home")) == []


def test_verdicts_that_are_kept_are_those_of_one_comparison(tmp_path):
    """Values that differ, are the same, and came with failures or other splits."""
    for day, (value, step) in enumerate(((0.5, 0.001), (0.5, 0.001), (0.6, 0.002), (0.55, 0.03), (0.54, 0.001)), 1):
        timed = {"timed": True, "timing_mode": True, "train_time_s": value, "peak_memory_mb": 100.0 + day}
        written_run(tmp_path, day, value, step=step, version=f"1.{day}", failed=SEEDS[:1] if day == 4 else (), **timed)
    told = {
        (run.entry.started_at[8:10], change.metric): change.verdict
        for run in query.list_changes(home=tmp_path).runs
        for change in query.read_changes(run.entry, tmp_path)
    }
    last: dict = {}
    for one in query.read_series(home=tmp_path):
        expected = compare_series(last[one.metric], one).verdict if one.metric in last else "first"
        assert (one.metric, told[one.entry.started_at[8:10], one.metric]) == (one.metric, expected)
        last[one.metric] = one
    assert {"better", "worse", "equivalent", "inconclusive"} <= set(told.values())


def test_filters_choose_runs(tmp_path):
    written_run(tmp_path, 1)
    written_run(tmp_path, 2, version="1.1", libraries=("xgboost",), machine={**MACHINE, "digest": "bbbb"})
    days = lambda **wanted: [day for day, *_ in listed(tmp_path, **wanted)]  # noqa: E731
    assert days(libraries=("xgboost",)) == ["02"]
    assert days(libraries=("xgboost", "boosters"), limit=1) == ["02"]
    assert days(machine="aaaa") == ["01"]
    assert days(machine="test cpu") == ["02", "01"]
    assert days(since="2026-01-02T00:00:00+00:00") == ["02"]
    assert days(since="2026-01-02T20:00:00+09:00") == ["02"]
    assert days(since="2026-01-02T08:00:00-09:00") == []
    assert days(suite="nightly", datasets=("diabetes",), metrics=("rmse",)) == ["02", "01"]
    assert days(metrics=("auc",)) == days(datasets=("iris",)) == days(suite="quick") == []


def test_a_run_is_found_by_id_beginning_name_and_attempt(tmp_path):
    folder = written_run(tmp_path, 1, facts={"name": "mine"})
    written_run(tmp_path, 2)
    assert query.find_run(folder.run_id[:6], tmp_path).attempt == 2
    assert query.find_run(f"{folder.run_id}/1", tmp_path).started_at[8:10] == "01"
    assert query.find_run("mine", tmp_path).attempt == 1
    assert query.find_run("last", tmp_path).attempt == 2
    assert query.find_run("last@aaaa", tmp_path).machine == MACHINE["digest"]
    assert [entry.reference for entry in query.list_runs(home=tmp_path)] == [f"{folder.run_id}/2", f"{folder.run_id}/1"]
    with pytest.raises(ValueError, match=r"No run 'mime' in the history of .* Did you mean 'mine'\?"):
        query.find_run("mime", tmp_path)


def test_costs_are_those_of_this_machine(tmp_path):
    from boosters_eval.core.machine import MachineInfo

    here = {**MACHINE, "digest": MachineInfo.collect().digest}
    written_run(tmp_path, 1, machine=here, train_time_s=2.0, predict_time_s=0.5)
    written_run(tmp_path, 2, version="1.1", train_time_s=200.0)
    ((key, seconds),) = query.read_cell_seconds(tmp_path).items()
    assert key[:3] == ("diabetes", "gbdt", "boosters")
    assert json.loads(key[3])["n_estimators"] >= 1
    assert seconds == pytest.approx(2.55)


def test_nothing_is_written_where_there_is_no_run(tmp_path):
    assert query.list_runs(home=tmp_path / "none") == []
    record_runs(tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_what_is_known_is_not_read_again(tmp_path, monkeypatch):
    written_run(tmp_path, 1)
    record_runs(tmp_path)
    monkeypatch.setattr(index, "_read_rows", lambda *_: pytest.fail("it was read again"))
    assert len(query.list_runs(home=tmp_path)) == 1


def test_the_end_of_a_run_reads_only_the_latest_of_many(tmp_path, monkeypatch):
    monkeypatch.setattr(index, "_AT_MOST", 1)
    for day in (1, 2, 3):
        written_run(tmp_path, day, version=f"1.{day}")
    record_runs(tmp_path)
    read = []
    rows = index._read_rows
    monkeypatch.setattr(index, "_read_rows", lambda home, place: read.append(place) or rows(home, place))
    assert len(query.list_runs(home=tmp_path)) == 3
    assert len(read) == 2


def test_a_first_run_is_indexed_without_scipy(tmp_path):
    """It takes longer to load than the run to read, and there is nothing to compare yet."""
    written_run(tmp_path, 1)
    code = "import pathlib, sys; from boosters_eval.programs.history.query import list_changes"
    code += f"; list_changes(home=pathlib.Path({str(tmp_path)!r})); sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def indexed(home):
    with closing(sqlite3.connect(home / store.FILE)) as connection:
        return dict(connection.execute("SELECT run_id, state FROM runs").fetchall())


def test_run_is_in_the_index_of_its_own_home(faulty, home, tmp_path):
    results = run_tiny(tiny_config("none"), observer=OBSERVERS["history"](), home=tmp_path / "other")
    assert indexed(tmp_path / "other") == {results.run_id: "finished"}
    assert not (home / "runs").exists()


def test_interrupted_run_is_in_the_index(faulty, home):
    class Impatient(Observer):
        def outcome(self, event):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_tiny(tiny_config("none"), seeds=3, observer=Observers(Impatient(), HistoryObserver()))
    assert list(indexed(home).values()) == ["unfinished"]


def test_fault_of_the_index_costs_no_run(faulty, home, monkeypatch):
    monkeypatch.setattr(index, "update", lambda *_, **__: 1 / 0)
    with pytest.warns(BoostersEvalWarning, match="The run is not in the index of the history yet"):
        assert run_tiny(tiny_config("none"), observer=HistoryObserver()).results


def test_run_that_is_not_kept_anywhere_is_not_looked_for(home, tmp_path):
    observer = HistoryObserver()
    observer.begin(RunStarted(plan=None, todo=1, kept=0))
    observer.end(RunEnded(None))
    assert not home.exists()
