"""Whoever is killed and whenever: the run can be continued, and ends equal to one that nobody disturbed."""

import contextlib
import csv
import io
import os
import random
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from boosters_eval.engine.runs import find_run, verify
from processes import PLUGINS, PROGRAM, environment

SEED = int(os.environ.get("CHAOS_SEED") or random.SystemRandom().randrange(10**6))
KILLS = int(os.environ.get("CHAOS_KILLS") or 200)  # over all commands
SHARE = 0.4  # of them are of one run after the other, whose processes are killed by their depth
WAIT = 120  # seconds, for whatever must come to an end
FULL = ("compare", "-d", "diabetes", "-l", "faulty", "sklearn", "-s", "12", "-p", "max_depth=13", "trees=2")
FEW = ("compare", "-d", "diabetes", "-l", "faulty", "-s", "8", "-p", "max_depth=13")
DEPTHS = ("program", "ancestor", "lane", "cell")


class Round:
    """One run that is killed again and again until it is complete."""

    def __init__(self, place, home, rng, command, order=()):
        self.place, self.rng, self.command = place, rng, command
        self.order = [DEPTHS.index(name) for name in order]  # who is killed first
        (place / home / "tmp").mkdir(parents=True)
        self.temporary = place / home / "tmp"
        self.env = environment(
            PLUGINS, BOOSTERS_EVAL_HOME=str(place / home), TMPDIR=str(self.temporary), GITHUB_ACTIONS=None
        )
        self.kills = dict.fromkeys(DEPTHS, 0)

    def disturb(self, most):
        """Start or continue the run, and kill processes of it until it ends or `most` have been killed."""
        arguments = [*PROGRAM, *self.command, "-q", "-f", "csv", "--rerun-failed"]
        with (self.temporary.parent / "stderr").open("w+") as errors:
            process = subprocess.Popen(
                arguments, cwd=self.place, env=self.env, stdout=subprocess.DEVNULL, stderr=errors, text=True
            )
            family = set()
            deadline = time.monotonic() + WAIT
            while process.poll() is None:
                assert time.monotonic() < deadline, "the run hangs"
                pause = time.monotonic() + self.rng.choice((0.02, 0.1, 0.5)) * self.rng.random()
                while time.monotonic() < pause:
                    family |= _family(process.pid)
                    time.sleep(0.005)
                if sum(self.kills.values()) < most and (
                    len(list_generations(process.pid)) >= len(DEPTHS) or self.rng.random() < 0.01
                ):
                    self._kill(process)
            errors.seek(0)
            assert "Traceback" not in errors.read()
        assert_gone(family, process.pid)
        return process.returncode

    def _kill(self, process):
        by_depth = dict(list(list_generations(process.pid).items())[: len(DEPTHS)])
        if not by_depth or len(by_depth) <= max(self.order, default=0):
            return
        weights = [(3, 1, 3, 6)[depth] for depth in by_depth]
        depth = self.order.pop(0) if self.order else self.rng.choices(list(by_depth), weights)[0]
        try:
            self.rng.choice(by_depth[depth]).kill()
        except psutil.Error:
            return  # it was faster
        self.kills[DEPTHS[depth]] += 1

    def result(self):
        """The finished run, without its times. A cell that was killed before it finished is flaky, and says so."""
        arguments = [*PROGRAM, *self.command, "-q", "-f", "csv", "--rerun-failed"]
        done = subprocess.run(
            arguments, cwd=self.place, env=self.env, capture_output=True, text=True, check=False, timeout=WAIT
        )
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
        assert {fault for _, fault in verify(find_run("last", self.temporary.parent))} == {""}
        rows = list(csv.DictReader(io.StringIO(done.stdout)))
        assert {row["status"] for row in rows} <= {"ok", "flaky", "trivial"}
        left_out = ("_s", "status", "reason")
        return [{name: value for name, value in row.items() if not name.endswith(left_out)} for row in rows]


def _family(pid):
    return {process for generation in list(list_generations(pid).values())[1:] for process in generation}


def list_generations(pid):
    """The program and its descendants: the ancestor, lanes, cells, and what those started."""
    found, generation = {}, _processes([pid])
    while generation and len(found) <= len(DEPTHS):
        found[len(found)] = generation
        generation = [child for parent in generation for child in _processes(_children(parent.pid))]
    return found


def _children(pid):
    """As the kernel tells; psutil would look at every process of the system."""
    texts = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            texts.append(path.read_text())
    return map(int, " ".join(texts).split())


def _processes(pids):
    found = []
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            found.append(psutil.Process(pid))
    return found


def assert_gone(family, program):
    """Nothing of a killed program survives it."""
    deadline = time.monotonic() + WAIT
    left = [process for process in family if process.pid != program]
    while left and time.monotonic() < deadline:
        left = [process for process in left if _lives(process)]
        time.sleep(0.01)
    assert not left, left


def _lives(process):
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def torment(place, seed, count, command, order):
    """Rounds of killing until there were enough kills; each round ends as the run that nobody disturbed."""
    rng = random.Random(seed)
    expected = Round(place, "calm", rng, command).result()
    kills = dict.fromkeys(DEPTHS, 0)
    rounds = 0
    while sum(kills.values()) < count:
        rounds += 1
        one = Round(place, f"round-{rounds}", rng, command, order)
        most = min(count - sum(kills.values()), 25)
        while one.disturb(most) != 0 and sum(one.kills.values()) < most:
            pass  # a run that has finished has nothing left to kill: the next round begins anew
        assert one.result() == expected
        assert not list(one.temporary.iterdir()), "the last run cleared what the killed ones had left"
        kills = {name: kills[name] + one.kills[name] for name in DEPTHS}
    return kills, rounds


def check(place, seed, count, command, order=()):
    print(f"chaos: up to {count} kills, seed {seed}")  # noqa: T201 (at once, or a failure could not be repeated)
    kills, rounds = torment(place, seed, count, command, order)
    told = ", ".join(f"{number} of {name}s" for name, number in kills.items())
    print(f"chaos: {sum(kills.values())} kills ({told}) in {rounds} runs, seed {seed}")  # noqa: T201


def test_run_that_is_killed_a_few_times_ends_as_if_nobody_had(tmp_path):
    check(tmp_path, seed=1, count=3, command=FEW, order=("cell", "lane", "program"))


@pytest.mark.chaos
def test_run_that_is_killed_again_and_again_ends_as_if_nobody_had(tmp_path):
    check(tmp_path, SEED, round(SHARE * KILLS), FULL)
