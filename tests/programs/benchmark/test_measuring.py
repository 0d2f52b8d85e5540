"""Times, memory and threads: one code for all libraries, and what it says is true."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import factories
from boosters_eval import (
    BoostersEvalWarning,
    Clock,
    DatasetConfig,
    Task,
    TrainingConfig,
    compare,
    load_run,
    run_prepared,
)
from boosters_eval.core import machine
from boosters_eval.core.errors import ConfigError
from boosters_eval.core.machine import Disturbance, count_cores, list_cpus
from boosters_eval.engine import limits
from boosters_eval.engine.clock import CpuUse
from boosters_eval.engine.execute import choose_jobs
from boosters_eval.engine.limits import MEMORY_METHOD, ThreadWatch, assign_cpus, make_environment, resolve_threads
from boosters_eval.programs.baseline.snapshot import make_baseline
from boosters_eval.programs.benchmark.planning import count_timing_threads
from boosters_eval.programs.benchmark.results import ResultCollection
from boosters_eval.programs.benchmark.tables.build import build_tables
from boosters_eval.runners import RUNNERS
from boosters_eval.runners.base import FitRequest, TrainData
from boosters_eval.runners.measure import measure
from boosters_eval.runners.result import BUSY_CELL
from tiny import loaded, plan_of, prepare_tiny, run_tiny, shared_pool, tiny_config

FEW = TrainingConfig(n_estimators=2)


def test_timing_mode_warms_up_times_apart_and_takes_the_median_prediction(faulty, home):
    (result,) = run_tiny(tiny_config("slow"), timing_mode=True).results
    assert result.timing_mode
    assert result.n_threads == min(len(list_cpus()), count_cores())
    assert result.train_time_s == pytest.approx(result.build_time_s + result.fit_time_s)
    assert result.fit_time_s >= 0.05
    assert 0 < result.build_time_s < result.fit_time_s
    assert 0 < result.predict_time_s < result.fit_time_s


def test_timing_mode_runs_one_cell_at_a_time(faulty):
    assert choose_jobs(plan_of(tiny_config("none"), timing_mode=True), 7) == 1
    assert choose_jobs(plan_of(tiny_config("none"), seeds=64)) == min(count_cores(), len(list_cpus()))
    assert choose_jobs(plan_of(tiny_config("none"), seeds=2), 99) == 2


def test_warm_up_runs_are_outside_the_clock(home):
    calls = []

    class Counting(loaded("sklearn")):
        @classmethod
        def fit(cls, translation, dataset):
            calls.append("fit")
            return super().fit(translation, dataset)

        @classmethod
        def predict(cls, translation, model, x):
            calls.append("predict")
            return super().predict(translation, model, x)

    x = np.random.default_rng(0).standard_normal((50, 2)).astype(np.float32)
    translation = Counting.translate(FitRequest(task=Task.REGRESSION, training=TrainingConfig(n_estimators=2)))
    phases = []
    measure(
        Counting, translation, TrainData(x=x, y=x[:, 0].astype(float)), x, warmup=2, predict_runs=3, phase=phases.append
    )
    assert calls == ["fit", "predict"] * 2 + ["fit"] + ["predict"] * 3
    assert phases[-3:] == ["build", "fit", "predict"]


def test_peak_of_native_memory_is_seen_and_repeatable(faulty, home):
    first, second = (run_tiny(tiny_config("allocate"), measure_memory=True).results[0] for _ in range(2))
    assert 232 < first.peak_memory_mb < 332
    assert second.peak_memory_mb == pytest.approx(first.peak_memory_mb, rel=0.05)
    assert first.memory_method == MEMORY_METHOD


def test_what_the_first_use_takes_is_told_apart_from_what_a_fit_needs(home):
    (result,) = compare(
        "california", "boosters", seeds=1, training=FEW, measure_memory=True, executor=shared_pool()
    ).results
    assert result.first_use_mb > result.peak_memory_mb > 0
    assert result.memory_method.endswith("after a warm-up")
    collection = ResultCollection([result])
    assert collection.rows()[0]["first_use_mb"] == result.first_use_mb
    (table,) = build_tables(collection).tables
    column = next(column for column in table.columns if column.name == "first_use_mb")
    assert column.indicative
    assert "First use (MB)" in build_tables(collection).to_markdown()


def test_memory_run_that_dies_leaves_the_error_of_the_cell(faulty, home):
    results = run_tiny(tiny_config("segfault"), measure_memory=True)
    assert results.errors[0].signal == "SIGSEGV"


def test_worker_starts_with_all_thread_limits_set():
    variables = make_environment(3)
    for name in ("OMP", "OPENBLAS", "MKL", "BLIS", "RAYON"):
        assert variables[f"{name}_NUM_THREADS"] == "3"
    assert variables["OMP_WAIT_POLICY"] == "PASSIVE"


def test_threads_are_resolved_to_what_the_process_may_use(monkeypatch):
    cpus = len(list_cpus())
    assert resolve_threads(-1) == cpus
    assert resolve_threads(10_000) == cpus
    assert resolve_threads(1) == 1
    monkeypatch.setenv("BOOSTERS_EVAL_THREADS", "1")
    assert count_timing_threads() == 1
    monkeypatch.setenv("BOOSTERS_EVAL_THREADS", "none")
    with pytest.raises(ConfigError, match="BOOSTERS_EVAL_THREADS"):
        count_timing_threads()


def test_thread_variable_that_is_no_count_is_refused_even_where_it_is_not_used(faulty, monkeypatch):
    monkeypatch.setenv("BOOSTERS_EVAL_THREADS", "none")
    with pytest.raises(ConfigError, match="BOOSTERS_EVAL_THREADS"):
        plan_of(tiny_config("none"))


def test_slots_do_not_share_a_processor_while_there_are_enough(monkeypatch):
    monkeypatch.setattr(limits, "list_cpus", lambda: [0, 2, 4, 6])
    assert assign_cpus(2, 2) == [[0, 2], [4, 6]]
    assert assign_cpus(3, 2) == [[0, 2, 4, 6]] * 3


@pytest.mark.parametrize(
    ("samples", "seen"),
    [
        ({}, None),
        ({0: 50}, None),
        ({1: 30, 2: 1}, 1),
        ({1: 20, 2: 20}, 2),
        ({4: 10, 1: 17}, 4),
        ({1: 9, 2: 2}, 1),
        ({2: 1}, None),
        ({1: 12, 2: 12}, 1),
        ({1: 13, 2: 12}, 2),
    ],
)
def test_observed_parallelism_needs_more_than_one_moment(samples, seen):
    assert limits.summarize_samples(Counter(samples)) == seen


def watched(folder, looks):
    """What a watch answers to threads in these states, each with the milliseconds that it computed since then."""
    watch, spent = ThreadWatch(folder), Counter()
    for look in looks:
        for name, (state, ran) in look.items():
            spent[name] += ran
            (folder / name).mkdir(exist_ok=True)
            (folder / name / "stat").write_text(f"1 (a b) {state} 1")
            (folder / name / "schedstat").write_text(f"{spent[name] * 10**6} 0 1")
        watch.look()
    return watch.observed()


@pytest.mark.parametrize(
    ("looks", "seen"),
    [
        ([{"1": ("R", 5), "2": ("R", 5)}] * 30, 2),
        ([{"1": ("R", 0), "2": ("R", 9)}] * 30, 1),  # one waits for a CPU only to go to sleep
        ([{"1": ("S", 5), "2": ("R", 5)}, {"1": ("R", 5), "2": ("S", 5)}] * 15, 1),  # they take turns
        ([{"1": ("R", 0), "2": ("R", 0)}] * 30, 2),  # neither gets a CPU, and nothing speaks for one
        ([{"1": ("S", 0), "2": ("S", 0)}] * 30, None),
    ],
)
def test_thread_that_waits_without_computing_is_not_counted(tmp_path, looks, seen):
    assert watched(tmp_path, looks) == seen


@pytest.fixture(scope="module")
def sixty_rounds(tmp_path_factory):
    """The result of each library, of a fit that is long enough to see its threads."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("BOOSTERS_EVAL_HOME", str(tmp_path_factory.mktemp("home")))
        long = TrainingConfig(n_estimators=60)
        found = compare("synthetic_reg_medium", seeds=1, training=long, executor=shared_pool())
    return {result.library: result for result in found.results}


@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "catboost", "sklearn", "boosters"])
def test_each_library_keeps_to_the_threads_it_was_given(library, sixty_rounds):
    if RUNNERS[library].missing():
        pytest.skip(RUNNERS[library].missing())
    assert sixty_rounds[library].threads_observed == 1
    assert sixty_rounds[library].warnings == ()


def test_no_library_imports_anything_while_it_runs_with_two_threads(home):
    results = compare("iris", seeds=1, training=FEW, threads=2, executor=shared_pool())
    assert not results.errors
    assert [w for r in results.results for w in r.warnings if "imported" in w] == []


def test_user_is_told_when_fewer_threads_are_available(faulty):
    notes = prepare_tiny(tiny_config("none"), threads=4000).notes
    assert any("4000 threads were requested" in note for note in notes)


def test_loader_may_be_a_lambda_and_is_called_once_in_the_parent(home):
    calls = []
    x = np.random.default_rng(1).standard_normal((80, 2)).astype(np.float32)
    dataset = DatasetConfig(name="mine", task=Task.REGRESSION, loader=lambda: (calls.append(1), (x, x.sum(axis=1)))[1])
    from boosters_eval import register_dataset
    from boosters_eval.datasets import DATASETS

    register_dataset(dataset)
    try:
        results = compare("mine", ["sklearn", "lightgbm"], seeds=2, training=FEW, executor=shared_pool())
    finally:
        DATASETS.unregister("mine")
    assert len(results.results) == 4
    assert len(calls) == 1


def test_data_sets_own_splitter_decides_the_rows(home):
    x = np.random.default_rng(1).standard_normal((80, 2)).astype(np.float32)
    dataset = DatasetConfig(
        name="ordered",
        task=Task.REGRESSION,
        loader=lambda: (x, x[:, 0]),
        splitter=lambda table, seed, fold: (np.arange(60), np.arange(60, 80)),
    )
    from boosters_eval import BenchmarkConfig

    config = BenchmarkConfig(
        name="ordered/gbdt",
        dataset=dataset,
        task=Task.REGRESSION,
        training=TrainingConfig(n_estimators=2),
        libraries=("sklearn",),
    )
    results = run_tiny(config, seeds=2).results
    assert {(r.n_train, r.n_valid) for r in results} == {(60, 20)}
    assert len({r.split_digest for r in results}) == 1
    assert len({r.metrics["rmse"] for r in results}) == 1


def test_libraries_of_one_seed_share_the_split(home):
    results = compare("iris", ["sklearn", "lightgbm"], seeds=2, training=FEW, executor=shared_pool()).results
    assert len({r.split_digest for r in results if r.seed == 42}) == 1
    assert len({r.split_digest for r in results}) == 2


@pytest.mark.parametrize("dataset", ["breast_cancer", "synthetic_rank_small"])
def test_early_stopping_works_on_rows_held_out_of_the_training_rows(dataset, home):
    libraries = ["xgboost", "lightgbm", "catboost"]
    few = TrainingConfig(n_estimators=300, learning_rate=0.3, early_stopping_rounds=3)
    results = compare(dataset, libraries, seeds=1, training=few, executor=shared_pool())
    assert not results.errors
    assert all(result.n_trees_trained < 300 for result in results.results)


def test_rows_for_early_stopping_are_the_same_for_every_library_and_no_others():
    from boosters_eval.runners.measure import hold_out

    x = np.arange(100, dtype=np.float32).reshape(-1, 1)
    data = TrainData(x=x, y=x[:, 0].astype(float), weights=np.ones(100))
    request = FitRequest(task=Task.REGRESSION, training=TrainingConfig(early_stopping_rounds=5))
    one, two = hold_out(data, request, 42), hold_out(data, request, 42)
    assert np.array_equal(one.valid.x, two.valid.x)
    assert sorted([*one.x[:, 0], *one.valid.x[:, 0]]) == list(range(100))
    assert len(one.valid.y) == len(one.valid.weights) == 20
    plain = FitRequest(task=Task.REGRESSION, training=TrainingConfig())
    assert hold_out(data, plain, 42) is data


# What getrusage() calls the peak includes that of the process that started this one, the whole of pytest.
GROWTH = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import faulty_runner
from boosters_eval.runners import RUNNERS
RUNNERS.register("faulty", faulty_runner.FaultyRunner, replace=True)
from boosters_eval import LocalPool, TrainingConfig, compare
peaks = []
with LocalPool(2) as pool:
    for seeds in (6, 12, 120):  # the second is the first that the history compares with another, which loads scipy
        compare("diabetes", "faulty", seeds=seeds, training=TrainingConfig(max_depth=1), executor=pool)
        status = Path("/proc/self/status").read_text()
        peaks.append(int(status.partition("VmHWM:")[2].split()[0]) / 1024)
print(peaks[2] - peaks[1])
"""


def test_peak_memory_of_the_parent_stays_flat_while_cells_grow_tenfold(home):
    plugins = Path(__file__).parents[2] / "plugins"
    done = subprocess.run([sys.executable, "-c", GROWTH, str(plugins)], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 4.8


BUSY = "import os, sys; os.sched_setaffinity(0, {int(sys.argv[1])}); print(1, flush=True); n = 0\nwhile True: n += 1"


def test_times_of_a_busy_machine_come_with_a_warning_and_the_number(home):
    alone = {"seeds": 1, "threads": 1, "executor": shared_pool()}
    compare("diabetes", "sklearn", training=FEW, **alone)  # the library is imported before it gets busy
    long = TrainingConfig(n_estimators=100)  # a short fit may have a CPU to itself even now
    commands = [[sys.executable, "-c", BUSY, str(cpu)] for cpu in list_cpus() for _ in range(3)]
    hogs = [subprocess.Popen(command, stdout=subprocess.PIPE) for command in commands]
    try:
        for hog in hogs:
            hog.stdout.readline()  # it is busy from here on
        (result,) = compare("diabetes", "sklearn", training=long, timing_mode=True, **alone).results
    finally:
        for hog in hogs:
            hog.kill()
            hog.communicate()
    assert result.cpu_taken > 0.1
    assert not result.fairly_timed
    assert any("the machine was busy: other programs used about" in warning for warning in result.warnings)


def measured_with(use, n_threads=1, **options):
    """A fit of which each call takes a second, half of it on a CPU."""
    wall, cpu = iter(range(100)), iter(np.arange(0, 50, 0.5))
    clock = Clock(wall=lambda: next(wall), cpu=lambda: next(cpu), use=use)
    x = np.random.default_rng(0).standard_normal((50, 2)).astype(np.float32)
    runner = loaded("sklearn")
    request = FitRequest(task=Task.REGRESSION, training=FEW, n_threads=n_threads)
    data = TrainData(x=x, y=x[:, 0].astype(float))
    return measure(runner, runner.translate(request), data, x, clock=clock, **options)


def test_adaptive_protocol_repeats_building_and_fitting_together_and_keeps_all_samples():
    done = measured_with(lambda: None, adaptive=True)
    assert done.samples_ns == {"train": (2_000_000_000,) * 10, "predict": (1_000_000_000,) * 20}
    assert (done.build_s, done.fit_s, done.train_s, done.predict_s) == (1, 1, 2, 1)
    assert done.cpu_s == 1


def test_adaptive_protocol_is_part_of_what_is_run_and_needs_timing_mode(faulty, home):
    (result,) = run_tiny(tiny_config("none"), timing_mode=True, protocol="adaptive").results
    assert {name: len(times) for name, times in result.samples_ns.items()} == {"train": 40, "predict": 40}
    plain, timed = plan_of(tiny_config("none")), plan_of(tiny_config("none"), timing_mode=True)
    assert plan_of(tiny_config("none"), timing_mode=True, protocol="adaptive").run_id not in (
        plain.run_id,
        timed.run_id,
    )
    with pytest.raises(ConfigError, match="only in timing mode"):
        plan_of(tiny_config("none"), protocol="adaptive")
    with pytest.raises(ConfigError, match="must be fixed or adaptive"):
        plan_of(tiny_config("none"), timing_mode=True, protocol="adaptve")


def test_what_others_took_is_the_kernels_count_or_what_a_single_thread_missed():
    counts = iter([CpuUse(0.0, 0.0, 0.0, 1), CpuUse(10.0, 3.0, 7.0, 1)])
    assert measured_with(lambda: next(counts)).cpu_taken == pytest.approx(0.4)
    assert measured_with(lambda: None).cpu_taken == pytest.approx(0.5)
    assert measured_with(lambda: None, n_threads=2).cpu_taken is None


@pytest.mark.parametrize(("taken", "judged"), [(None, True), (0.1, True), (0.11, False)])
def test_disturbed_times_are_shown_but_neither_judged_nor_recorded(taken, judged):
    busy = {"warnings": (f"{BUSY_CELL}: other programs used about 10 % of the cell's CPUs",)}
    results = [
        factories.result(
            library=library,
            seed=seed,
            timing_mode=True,
            train_time_s=time + seed / 1e4,
            cpu_taken=share,
            **(busy if share and not judged else {}),
        )
        for library, time, share in (("boosters", 1.0, None), ("xgboost", 2.0, taken))
        for seed in range(5)
    ]
    collection = ResultCollection(results)
    report = build_tables(collection)
    (column,) = [column for column in report.tables[0].columns if column.name == "train_time_s"]
    assert column.indicative != judged
    assert any(cell.best for row in report.tables[0].rows for cell in row.cells[1:]) == judged
    assert any("the machine was busy in 5 of 10 cells" in note and "11.0 %" in note for note in report.notes) != judged
    assert sum("busy" in note for note in report.notes) == (not judged)  # once, not once more for every library
    baseline = make_baseline(ResultCollection(results, suite="toy"))
    assert {result.library: bool(result.times) for result in baseline.results} == {"boosters": True, "xgboost": judged}


FOUND = Disturbance(kind="battery", text="the machine ran on its battery (9 %)", remedy="plug it in")


@pytest.mark.parametrize("judged", [True, False])
def test_times_of_a_run_on_a_disturbed_machine_are_shown_but_neither_judged_nor_recorded(judged):
    results = [
        factories.result(library=library, seed=seed, timing_mode=True, train_time_s=time + seed / 1e4)
        for library, time in (("boosters", 1.0), ("xgboost", 2.0))
        for seed in range(5)
    ]
    session = {"disturbances": [FOUND.replace(judged=judged)]}
    collection = factories.remember(ResultCollection(results, suite="toy"), {"resumed": [session]})
    report = build_tables(collection)
    (column,) = [column for column in report.tables[0].columns if column.name == "train_time_s"]
    assert column.caveat == ("" if judged else "times are indicative only: the machine ran on its battery")
    assert any(cell.best for row in report.tables[0].rows for cell in row.cells[1:]) == judged
    start = "Before the run, " if judged else "Times are indicative only: before the run, "
    assert f"{start}the machine ran on its battery (9 %)." in report.notes
    assert all(bool(result.times) == judged for result in make_baseline(collection).results)


def test_disturbances_are_told_before_a_timed_run_and_recorded_with_it(faulty, monkeypatch):
    busy = Disturbance(kind="programs", text="other programs used 40 %", remedy="wait", who="hog (process 7) 40 %")
    monkeypatch.setattr(machine, "find_disturbances", lambda: (busy,))
    with pytest.warns(
        BoostersEvalWarning, match=r"Other programs used 40 % \(hog \(process 7\) 40 %\): wait. Times will"
    ):
        timed = run_tiny(tiny_config("none"), timing_mode=True)
    assert [found.text for found in timed.metadata.facts.disturbances] == ["other programs used 40 %"]
    assert "hog" not in timed.to_json()
    assert [found.text for found in load_run("last").metadata.facts.disturbed] == ["other programs used 40 %"]
    assert not run_tiny(tiny_config("none")).metadata.facts.disturbances  # times that are not judged need no look


def test_runner_that_needs_only_numpy_is_not_accused_of_the_imports_of_others(faulty, home):
    assert [result.warnings for result in run_prepared(prepare_tiny(tiny_config("none"))).results] == [()]
