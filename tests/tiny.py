"""Small benchmarks of a library that fails on request, and how tests run them."""

from __future__ import annotations

import atexit
import gc
from functools import cache

import numpy as np

from boosters_eval import DatasetConfig, Executor, LocalPool, Settings, Task, TrainingConfig, run_prepared
from boosters_eval.engine.execute import choose_jobs
from boosters_eval.engine.pool import choose_start_method
from boosters_eval.programs.benchmark.benchmarks import Benchmarks
from boosters_eval.programs.benchmark.planning import prepare
from boosters_eval.runners import RUNNERS
from boosters_eval.runners.config import BenchmarkConfig


def tiny_table():
    rng = np.random.default_rng(7)
    x = rng.standard_normal((60, 3)).astype(np.float32)
    return x, x[:, 0].astype(np.float64) + 2.0


FEW = TrainingConfig(n_estimators=2)
TINY = DatasetConfig(name="tiny", task=Task.REGRESSION, loader=tiny_table)


def tiny_config(fault="none", name=None, library="faulty", **changes):
    import faulty_runner

    return BenchmarkConfig(
        name=name or f"tiny/{fault}",
        dataset=TINY,
        task=Task.REGRESSION,
        training=TrainingConfig(max_depth=faulty_runner.BY_NAME[fault]),
        libraries=(library,),
        **changes,
    )


def prepare_tiny(*configs, seeds=1, name="tiny", **settings):
    return prepare(Benchmarks(name, tuple(configs)), seeds, Settings(**settings))


def plan_of(*configs, seeds=2, **settings):
    return prepare_tiny(*configs, seeds=seeds, **settings).plan


def shared_pool(jobs=2):
    """A pool that stays for the next test of this process: each library is imported once."""
    return _pool(jobs, choose_start_method())


def pool_for(cells, jobs):
    """The shared pool with that many jobs. A single cell is alone on any pool, so it shares that of the others."""
    return shared_pool(jobs) if cells > 1 else shared_pool()


@cache
def _pool(jobs, method):
    pool = LocalPool(jobs)
    atexit.register(pool.close)
    return pool


@cache
def loaded(library):
    """A runner to be timed in this process: as in a lane, the clock's collections need not scan what is imported."""
    runner = RUNNERS[library]
    if runner.missing() is None:
        runner.load()
        gc.collect()
        gc.freeze()
    return runner


def run_tiny(*configs, seeds=1, observer=None, jobs=None, **settings):
    prepared = prepare_tiny(*configs, seeds=seeds, **settings)
    executor = pool_for(len(prepared.plan.cells), jobs or choose_jobs(prepared.plan))
    return run_prepared(prepared, observer=observer, executor=executor)


class KeptPool(Executor):
    """The local pool, which stays for the next command: each library is imported once."""

    def run(self, works, started):
        waiting = list(works)
        return pool_for(len(waiting), self.jobs).run(waiting, started)

    def close(self):
        """The pool stays."""
