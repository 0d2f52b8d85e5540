"""What trackers are told of runs that are no benchmarks: of a paper, of bindings, of importances, of anybody's work."""

import json

import pytest
import yaml
from sendings import calls, send

import fake_backends as fakes
from boosters_eval import (
    OBSERVERS,
    WORKLOADS,
    ConfigError,
    Repeat,
    RunError,
    TrainingConfig,
    execute,
    prepare_importances,
    run_importances,
    run_paper,
    run_parity,
    track_run,
)
from boosters_eval.core.terms import listen
from boosters_eval.engine.observer import ObserverSettings, watch
from boosters_eval.engine.plan import Plan
from boosters_eval.engine.runs import RUN_KINDS, RunKind, find_run, read_kind
from boosters_eval.programs.parity.backend import BACKENDS
from boosters_eval.programs.parity.method import GENERATORS, METHODS
from boosters_eval.tracking.observer import WAIT_VARIABLE
from tiny import TINY, prepare_tiny, run_tiny, shared_pool, tiny_config

FUNCTIONS = """
def good(seed): return {"accuracy": 0.9 + seed / 1e6}
def boom(): raise RuntimeError("no luck")
"""


@pytest.fixture
def sums(noting):
    """A method, its backends and their data, known in this process."""
    GENERATORS.register("rows", fakes.Rows)
    backends = (fakes.Sums, fakes.Close, fakes.Wrong, fakes.Refuses)
    for backend in backends:
        BACKENDS.register(backend.name, backend)
    METHODS.register("sum", fakes.method(*backends))
    yield lambda: run_parity("sum", max_runs=2, executor=shared_pool()).rows
    METHODS.unregister("sum")
    for backend in backends:
        BACKENDS.unregister(backend.name)
    GENERATORS.unregister("rows")


@pytest.fixture
def shell(noting):
    """A workload of a third party, found by its entry point in the tracker's process too."""
    import shell_workload

    WORKLOADS.register("shell", shell_workload.Shell, replace=True)
    yield shell_workload
    WORKLOADS.unregister("shell")


def shell_plan(shell, script="echo $SEED"):
    spec = shell.ShellSpec(name="echo", script=script)
    return Plan.grid("shells", [spec], ["sh"], [Repeat(seed, None) for seed in (3, 7)])


def competitors(noting):
    """The last description of each competitor, its metrics by seed, and how it ended, by its key."""
    (end,) = calls(noting, "end")
    described = {call["key"]: call for call in calls(noting, "describe")}
    logged = {call["key"]: {cell["seed"]: cell["metrics"] for cell in call["cells"]} for call in calls(noting, "log")}
    return {key: (described[key], logged.get(key, {}), ended) for key, ended in end["competitors"].items()}, end


def write_specification(folder, *rows):
    names = [{"model": name, "dataset": "D", "metrics": {"accuracy": 0.9}} for name in rows]
    table = {
        "id": "T",
        "datasets": [{"name": "D"}],
        "models": [{"name": name, "run": {"callable": f"functions:{name}"}} for name in rows],
        "results": names,
    }
    content = {"paper": "P", "seeds": 2, "tables": [table]}
    content["reproduction_targets"] = {"primary": [{"table": "T", "rows": list(rows)}]}
    (folder / "functions.py").write_text(FUNCTIONS, encoding="utf-8")
    path = folder / "benchmarks.yaml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


def test_run_of_a_paper_is_sent_with_the_measured_values_of_each_target(noting, tmp_path):
    results = run_paper(write_specification(tmp_path, "good", "boom"), executor=shared_pool())
    send(noting, find_run(results.run_id))
    found, end = competitors(noting)
    told, numbers, ended = found["T:good:D|callable"]
    assert told["parameters"].items() >= {"table": "T", "row": "good", "dataset": "D"}.items()
    assert "functions:good" in told["parameters"]["binding"]
    assert "digest.function" in told["facts"]
    values = results.targets[0].values["accuracy"]
    assert tuple(cell["accuracy"] for cell in numbers.values()) == values
    assert all(cell["seconds"] > 0 for cell in numbers.values())
    assert ended["means"]["accuracy"] == pytest.approx(sum(values) / 2)
    _, none, failed = found["T:boom:D|callable"]
    assert (none, failed["status"]) == ({}, "failed")
    assert all("no luck" in text for text in failed["failures"].values())
    assert end["sizes"].keys() == {"measured.json", "journal.jsonl"}
    folder = find_run(results.run_id)
    measured = json.loads(read_kind(folder.load(), folder).files()["measured.json"])
    assert measured["T:good:D"]["accuracy"] == list(values)


def test_run_of_bindings_is_sent_with_divergences_times_and_verdicts(noting, sums, home):
    rows = {row.backend: row for row in sums()}
    stored = {path: path.stat().st_mtime_ns for path in (home / "parity" / "oracles").rglob("*.*")}
    folder = find_run("last")
    send(noting, folder)
    found, end = competitors(noting)
    for backend, verdict in (("sums", "bit_exact"), ("close", "rounding"), ("wrong", "divergent")):
        told, numbers, ended = found[f"sum/20x3@1|{backend}"]
        assert told["parameters"].items() >= {"method": "sum", "size": "20x3", "tolerance": "1e-12"}.items()
        assert (told["facts"]["verdict"], told["facts"]["oracle"][:5]) == (verdict, "sums ")
        (cell,) = numbers.values()
        assert cell["divergence"] == rows[backend].divergence
        assert cell["reported_ms"] == rows[backend].reported_ms
        assert ended["means"]["fit_ms"] == rows[backend].fit_ms
    assert "It does not do sums" in next(iter(found["sum/20x3@1|refuses"][2]["failures"].values()))
    assert end["sizes"].keys() == {"report.html", "results.json", "rows.csv", "journal.jsonl"}
    assert stored == {path: path.stat().st_mtime_ns for path in (home / "parity" / "oracles").rglob("*.*")}


def test_references_that_the_program_has_not_stored_yet_are_those_of_the_run(noting, sums, home):
    sums()
    for path in (home / "parity" / "oracles").rglob("*.*"):
        path.unlink()
    folder = find_run("last")
    assert [row.verdict.value for row in read_kind(folder.load(), folder).findings if row.verdict] == [
        "bit_exact",
        "rounding",
        "divergent",
    ]
    assert not list((home / "parity" / "oracles").glob("*.json"))


def test_methods_of_a_file_that_only_the_program_knows_are_sent_with_their_times(noting, sums):
    rows = sums()
    GENERATORS.unregister("rows")
    try:
        send(noting, find_run("last"))
    finally:
        GENERATORS.register("rows", fakes.Rows)
    told, numbers, _ = competitors(noting)[0]["sum/20x3@1|sums"]
    assert next(iter(numbers.values()))["reported_ms"] == rows[0].reported_ms
    assert "verdict" not in told["facts"]


def test_importances_are_sent_with_scores_and_the_most_important_features(noting, monkeypatch):
    monkeypatch.setenv(WAIT_VARIABLE, "600")  # the machine may be busy
    few = TrainingConfig(n_estimators=4, max_depth=2)
    prepared = prepare_importances(TINY, "sklearn", seeds=2, training=few, kinds="permutation", permutations=2)
    said = []
    with listen(said.append):
        explained = run_importances(prepared, executor=shared_pool(), track=noting.NotingTracker)
    assert said[-1] == f"NotingTracker: page of importances {explained.run_id[:8]}"
    found, end = competitors(noting)
    ((told, _, ended),) = found.values()
    assert told["parameters"].items() >= {"permutations": "2", "kinds": '["permutation"]', "dataset": "tiny"}.items()
    cells = {cell["seed"]: cell["metrics"] for call in calls(noting, "log") for cell in call["cells"]}
    assert {seed: cell["rmse"] for seed, cell in cells.items()} == {
        result.seed: result.metrics["rmse"] for result in explained.results
    }
    first = [explained.importances(result, "permutation")[0] for result in explained.results]
    means = {name: value for name, value in ended["means"].items() if name.startswith("permutation.")}
    assert next(iter(means)) == f"permutation.{explained.results[0].units[0].name}"
    assert next(iter(means.values())) == pytest.approx(sum(first) / 2)
    assert end["sizes"].keys() == {"report.html", "results.json", "journal.jsonl"}


def test_work_that_nobody_reads_is_sent_with_its_plain_numbers(noting, shell, monkeypatch):
    monkeypatch.setenv(WAIT_VARIABLE, "600")
    run = execute(shell_plan(shell), shared_pool())
    track_run(run.plan.run_id, noting.NotingTracker)
    found, end = competitors(noting)
    ((told, numbers, ended),) = found.values()
    assert told["parameters"].items() >= {"script": "echo $SEED", "workload": "shell"}.items()
    assert {seed: cell["value"] for seed, cell in numbers.items()} == {3: 3.0, 7: 7.0}
    assert all("collects" not in cell for cell in numbers.values())
    assert (ended["means"]["value"], end["sizes"].keys()) == (5.0, {"journal.jsonl"})


def test_work_of_a_kind_that_somebody_reads_is_told_as_they_tell_it(noting, shell):
    class Echoes(RunKind):
        workloads = frozenset({"shell"})

        def numbers(self, result):
            return {"twice": 2 * result.value}

        def files(self):
            return {"echo.md": "# Echoes\n"}

    RUN_KINDS.register("echo", Echoes)
    try:
        run = execute(shell_plan(shell), shared_pool(), facts={"kind": "echo"})
        send(noting, find_run(run.plan.run_id))
    finally:
        RUN_KINDS.unregister("echo")
    found, end = competitors(noting)
    assert found["echo|sh"][2]["means"] == {"twice": 10.0}
    assert end["sizes"] == {"echo.md": 9, "journal.jsonl": end["sizes"]["journal.jsonl"]}


def test_run_that_is_said_to_be_of_another_kind_is_read_as_what_it_is(shell, noting):
    run = execute(shell_plan(shell), shared_pool(), facts={"kind": "parity"})
    assert type(read_kind(run, find_run(run.plan.run_id))) is RunKind


def test_all_kinds_of_this_package_are_entry_points():
    assert {"benchmark", "importances", "paper", "parity"} <= set(RUN_KINDS)


def test_run_that_its_program_cannot_read_is_refused_before_anything_is_sent(noting, tmp_path):
    prepared = prepare_tiny(tiny_config("none"))
    spec = prepared.plan.specs[0]
    from boosters_eval.programs.benchmark.paper_protocol import Protocol

    plan = Plan.of("tiny", [spec.replace(protocol=Protocol())], prepared.plan.refs)
    execute(plan, shared_pool(), locate=prepared.inputs)
    with pytest.raises(RunError, match="has no benchmark results: it follows a paper"):
        track_run("last", noting.NotingTracker)
    assert not noting.noted()


@pytest.mark.parametrize("alone", [False, True])
def test_all_runs_of_one_session_are_sent_to_their_end(noting, monkeypatch, alone):
    """A bisection makes several."""
    monkeypatch.setenv(WAIT_VARIABLE, "600")
    said, settings = [], {"timing_mode": alone, "threads": 1}
    track = ObserverSettings(say=said.append, track=noting.NotingTracker)
    with watch([], track) as observer:
        first = run_tiny(tiny_config("none"), observer=observer, **settings)
        more = prepare_tiny(tiny_config("none"), seeds=2, **settings)
        facts = {"kind": "benchmark", "extends": first.run_id}
        looked = execute(more.plan, shared_pool(), locate=more.inputs, observer=observer, facts=facts)
        second = run_tiny(tiny_config("segfault"), observer=observer, **settings)
    assert said[-1] == f"NotingTracker: page of tiny {second.run_id[:8]}"
    (ended, failed) = calls(noting, "end")
    assert (ended["status"], failed["status"]) == ("finished", "failed")
    assert ended["competitors"]["tiny/none|faulty"]["cells"] == 2
    begun = [call["facts"]["run_id"] for call in calls(noting, "begin")]
    assert [begun[-1], begun[-2]] == [second.run_id, looked.plan.run_id]


def test_runs_that_a_tracker_lacks_are_all_named(noting, monkeypatch):
    monkeypatch.setenv(WAIT_VARIABLE, "600")
    with (
        pytest.warns(match="The tracker 'RefusingTracker' failed|does not have all of runs") as warned,
        watch([], ObserverSettings(track=noting.RefusingTracker)) as observer,
    ):
        ids = [run_tiny(tiny_config(fault), observer=observer).run_id for fault in ("none", "segfault")]
    assert str(warned[-1].message) == (
        f"The tracker 'RefusingTracker' does not have all of runs {ids[0]}, {ids[1]}: PermissionError: 401: who are"
        " you?. Send the rest with 'track_run(\"RUN\", RefusingTracker)'."
    )


def test_observer_of_trackers_needs_some():
    with pytest.raises(ConfigError, match="The observer 'tracking' must have trackers: use 'track' instead"):
        OBSERVERS["tracking"].for_run(ObserverSettings())
