"""A dask cluster of real processes on this machine, whose workers and scheduler a test can kill."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
from distributed import Client

from processes import PLUGINS, environment

PATIENCE = 120  # seconds: only a cluster that hangs takes so long


def until(condition, what):
    """Wait for an event."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.02)


class Cluster:
    """A scheduler and workers without nannies: what is killed stays dead."""

    def __init__(self, folder, workers=2):
        self.folder = folder
        self.file = folder / "scheduler.json"
        self.modules = folder / "modules"  # what its workers can import
        self.modules.mkdir()
        self.workers = []
        self.odd = []  # those of one test alone
        self.scheduler = self._start("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0")
        until(self._written, "the scheduler")
        self.address = json.loads(self.file.read_text())["address"]
        for _ in range(workers):
            self.add()

    def _written(self):
        assert self.scheduler.poll() is None, (self.folder / "log.txt").read_text()
        return self.file.exists() and self.file.read_text().endswith("}")

    def _start(self, module, *arguments, **changes):
        command = [sys.executable, "-W", "ignore", "-m", module, "--scheduler-file", str(self.file), *arguments]
        env = environment(self.modules, PLUGINS, BOOSTERS_EVAL_CACHE=str(self.folder / "cache"), **changes)
        with (self.folder / "log.txt").open("a") as log:
            return subprocess.Popen([*command, "--no-dashboard"], env=env, stdout=log, stderr=log, cwd=self.folder)

    def add(self, threads=1, *, nanny=False, **changes):
        """One more worker; what else its environment has."""
        options = [
            "--nanny" if nanny else "--no-nanny",
            "--nthreads",
            str(threads),
            "--host",
            "127.0.0.1",
            "--memory-limit",
            "0",
        ]
        worker = self._start(
            "distributed.cli.dask_worker", *options, "--local-directory", str(self.folder / "scratch"), **changes
        )
        self.workers.append(worker)
        if changes or threads != 1:
            self.odd.append(worker)
        return worker

    def size(self):
        """How many workers the scheduler knows."""
        with Client(self.address, set_as_default=False) as client:
            return len(client.nthreads())

    def kill(self, worker):
        self.workers.remove(worker)
        worker.send_signal(signal.SIGKILL)
        worker.wait()

    def complete(self, count=2):
        """As many workers as before the last test."""
        for worker in [worker for worker in self.odd if worker in self.workers]:
            self.kill(worker)
        self.workers = [worker for worker in self.workers if worker.poll() is None]
        while len(self.workers) < count:
            self.add()
        for worker in self.workers[count:]:
            self.kill(worker)

    def close(self):
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


def children(worker):
    """The pids of everything that a worker has started."""
    return {process.pid for process in psutil.Process(worker.pid).children(recursive=True)}


def alive(pids):
    return {pid for pid in pids if Path("/proc", str(pid)).exists()}
