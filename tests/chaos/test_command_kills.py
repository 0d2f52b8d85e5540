"""Whichever command is killed, whoever of its processes and whenever: run again, it answers as if nobody had."""

import csv
import io
import json
import os
import random
import re
import shutil
import subprocess
import time
from collections import Counter
from typing import NamedTuple

import psutil
import pytest
import world
from test_kills import KILLS, SEED, SHARE, WAIT, assert_gone, list_generations

from dask_clusters import Cluster, until
from processes import PLUGINS, PROGRAM, environment

_DEEPER = 0.6  # the share of kills that wait until the program has a child
MOST = 4  # kills, until the command may come to its end
_NOISE = re.compile(  # what is never the same, which of the attempts it was, and digests of such
    r"_ms$|_ns$|n_runs|total_runs|stop_reason|^digest$|seal|^sources?$|^at$|^facts$|time|_s$|_at$|seconds|date|memory|command|machine|started|host|journal|attempt|flaky|status|reason|failed|outcomes_digest"
)
_BY_ROLE = {"pip install": "pip", "distributed": "dask worker", "multiprocessing": "dask worker"}


class Case(NamedTuple):
    """A command, how it goes on after it was killed, and where its answer is."""

    words: tuple
    again: tuple = ()
    file: str | None = None
    look: tuple | None = None  # the command whose answer tells


RERUN = ("--rerun-failed",)
CASES = {
    "run": Case(world.LINES["run"], RERUN),
    "compare": Case(world.LINES["compare"], RERUN),
    "compare on dask": Case((*world.LINES["compare"], "--executor", "dask", "--workers", "2"), RERUN),
    "importances": Case(world.LINES["importances"], RERUN),
    "bisect": Case(world.LINES["bisect"], RERUN),
    "baseline record": Case(world.LINES["baseline record"], RERUN, file="recorded.json"),
    "baseline check": Case(
        ("baseline", "check", "suite-base.json", "--suite", "suite.py:SUITE", "-q", "-o", "checked.csv"),
        file="checked.csv",  # in a run of its own: it may not continue the one that was recorded
    ),
    "baseline update": Case(
        ("baseline", "update", "suite-base.json", "--suite", "suite.py:SUITE", "-q", "--accept", "it is the same"),
        RERUN,
        file="suite-base.json",
    ),
    "rescore": Case((*world.LINES["rescore"], "-f", "csv")),
    "where": Case(world.LINES["where"]),
    "report": Case(  # the page tells that it was resumed; the numbers must be the same
        ("report", "--suite", "suite.py:SUITE", "-s", "4", "-q", "-f", "json", "-o", "made.json"),
        RERUN,
        look=("rescore", "last", "--metric", "rmse", "-q", "-f", "csv"),
    ),
    "paper run": Case(world.LINES["paper run"], RERUN, file="run-results/results.json"),
    "paper validate": Case(world.LINES["paper validate"], RERUN, file="validated/results.json"),
    "parity run": Case(world.LINES["parity run"], RERUN, file="other-parity.csv"),
    "parity oracles refresh": Case(
        world.LINES["parity oracles refresh"], RERUN, look=world.LINES["parity oracles verify"]
    ),
    "builds add": Case(world.LINES["builds add"], look=world.LINES["builds list"]),
    "history reindex": Case(world.LINES["history reindex"], look=("history", "export", "-f", "csv")),
    "history import": Case(("history", "import", "export.json"), look=("history", "export", "-f", "csv")),
}


class Torment:
    """Copies of one place in which a command is killed again and again."""

    def __init__(self, base, place, case, rng):
        self.place, self.case, self.rng = place, case, rng
        self.kills = Counter()
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(base, place, symlinks=True)
        self.temporary = place / "tmp"
        self.temporary.mkdir()
        self.env = environment(
            PLUGINS,
            BOOSTERS_EVAL_HOME=str(place / "home"),
            BOOSTERS_EVAL_CACHE=str(place / "cache"),
            NOTES=str(place / "notes"),
            TMPDIR=str(self.temporary),
            PIP_NO_INDEX="1",
            PIP_CONFIG_FILE=os.devnull,
            GITHUB_ACTIONS=None,
        )

    def run(self, words, check=True):
        done = subprocess.run(
            [*PROGRAM, *words], cwd=self.place, env=self.env, capture_output=True, text=True, check=False, timeout=WAIT
        )
        assert "Traceback" not in done.stderr, done.stderr
        assert not check or done.returncode == 0, (words, done.returncode, done.stderr)
        return done

    def answer(self, printed):
        """What the command was asked for, without what is never the same."""
        if self.case.look:
            printed = self.run(self.case.look).stdout
        elif self.case.file:
            printed = (self.place / self.case.file).read_text()
        return _without_noise(printed.replace(str(self.place), "PLACE"))

    def disturb(self, patience, expected):
        """Begin or continue the command, kill one of its processes at any time, and see it to its end."""
        with (self.place / "stdout").open("w+") as out, (self.place / "stderr").open("w+") as err:
            words = [*PROGRAM, *self.case.words, *self.case.again]
            process = subprocess.Popen(words, cwd=self.place, env=self.env, stdout=out, stderr=err)
            moment = time.monotonic() + patience * self.rng.random()
            family = set()
            deeper = self.rng.random() < _DEEPER
            while process.poll() is None and (time.monotonic() < moment or (deeper and not family)):
                family |= _family(process.pid)
                time.sleep(0.005)
            self._kill(process, deeper)
            deadline = time.monotonic() + WAIT
            while process.poll() is None:
                assert time.monotonic() < deadline, f"hangs: {' '.join(words)}"
                family |= _family(process.pid)
                time.sleep(0.01)
            assert_gone(family, process.pid)
            out.seek(0), err.seek(0)
            told = err.read()
            assert "Traceback" not in told, told
            assert "Internal error" not in told, told
            assert process.returncode in (0, 1, 2, -9), (words, process.returncode, told)
            if process.returncode == 0:
                assert self.answer(out.read()) == expected, "exit 0 with another answer"
        return process.returncode

    def _kill(self, process, deeper):
        """One of its processes; `deeper` one that it started, as soon as there is one, at any depth of them."""
        generations = list_generations(process.pid)
        while deeper and len(generations) < 2 and process.poll() is None:
            time.sleep(0.002)
            generations = list_generations(process.pid)
        if deeper:
            generations.pop(0, None)
        if process.poll() is not None or not generations:
            return
        depth = self.rng.choice(list(generations))
        victim = self.rng.choice(generations[depth])
        try:
            line = " ".join(victim.cmdline())
            victim.kill()
        except psutil.Error:
            return
        roles = [role for word, role in _BY_ROLE.items() if word in line and depth]
        self.kills[roles[0] if roles else ("program", "ancestor", "lane", "cell", "below")[min(depth, 4)]] += 1

    def finish(self):
        done = self.run((*self.case.words, *self.case.again))
        answer = self.answer(done.stdout)
        for run in sorted((self.place / "home" / "runs").iterdir()):
            self.run(("verify", run.name))
        left = [path.name for path in self.temporary.iterdir()]
        assert not left, f"the last command left {left}"
        return answer


def _family(pid):
    return {process for depth, generation in list_generations(pid).items() if depth for process in generation}


def _without_noise(text):
    """A table or a JSON document without times, dates and how often something was tried."""
    try:
        return _strip(json.loads(text))
    except ValueError:
        pass
    rows = list(csv.DictReader(io.StringIO(text)))
    if rows and len(rows[0]) > 2:
        kept = [{name: value for name, value in row.items() if not _NOISE.search(str(name))} for row in rows]
        return sorted(map(str, kept))
    return text


def _strip(value):
    if isinstance(value, dict):
        return {name: _strip(inner) for name, inner in value.items() if not _NOISE.search(name)}
    return [_strip(inner) for inner in value] if isinstance(value, list) else value


@pytest.fixture
def base(tmp_path):
    """The world, made once."""
    place = tmp_path / "base"
    place.mkdir()
    (tmp_path / "tmp").mkdir()
    server = world.Server(tmp_path / "tmp", place)
    world.prepare(server, place)
    server.close()
    (place / "main").unlink()
    return place


def torment(base, name, rng, count):
    case = CASES[name]
    calm = Torment(base, base.with_name("round"), case, rng)  # where the others are: installed files name their place
    began = time.monotonic()
    expected = calm.answer(calm.run(case.words).stdout)
    patience = time.monotonic() - began
    kills = Counter()
    while kills.total() < count:
        one = Torment(base, base.with_name("round"), case, rng)
        most = min(MOST, count - kills.total())
        while one.kills.total() < most and one.disturb(patience, expected) != 0:
            pass  # what has come to its end has no processes left to kill but itself: the next round begins anew
        assert one.finish() == expected, name
        kills += one.kills
    return kills


@pytest.mark.chaos
def test_every_command_that_is_killed_gives_the_same_answer_when_it_is_run_again(base):
    rng = random.Random(SEED)
    names = (os.environ.get("CHAOS_COMMANDS") or ",".join(CASES)).split(",")
    count = max(1, round((1 - SHARE) * KILLS / len(names)))
    print(f"chaos: {count} kills of each of {len(names)} commands, seed {SEED}")  # noqa: T201 (at once)
    total = Counter()
    for name in names:
        kills = torment(base, name, rng, count)
        total += kills
        print(f"chaos: {name}: {dict(kills)}", flush=True)  # noqa: T201
    print(f"chaos: {total.total()} kills of {len(names)} commands, {dict(total)}, seed {SEED}")  # noqa: T201


ROLES = ("scheduler", "nanny", "worker", "program")


@pytest.mark.chaos
@pytest.mark.parametrize("role", ROLES)
def test_run_on_a_cluster_ends_the_same_whichever_role_is_killed(tmp_path, role):
    """With nannies, as most clusters have them. What needs the scheduler ends in a sentence, and is run again."""
    rng = random.Random(f"{SEED} {role}")
    home = {"BOOSTERS_EVAL_HOME": str(tmp_path / "home"), "GITHUB_ACTIONS": None}
    words = (*PROGRAM, "compare", "-d", "diabetes", "-l", "faulty", "-s", "8", "-q", "-f", "csv", "-p", "max_depth=13")
    env = environment(PLUGINS, **home)
    expected = subprocess.run(words, cwd=tmp_path, env=environment(PLUGINS), capture_output=True, text=True, check=True)
    (tmp_path / "first").mkdir()
    cluster = Cluster(tmp_path / "first", workers=0)
    try:
        nannies = [cluster.add(nanny=True) for _ in range(2)]
        on = ("--executor", "dask", "--address", cluster.address)
        process = subprocess.Popen([*words, *on], cwd=tmp_path, env=env, stdout=-1, stderr=-1, text=True)
        nanny = rng.choice(nannies)
        until((tmp_path / "home" / "runs").is_dir, "the run")
        until(lambda: len(psutil.Process(nanny.pid).children()) > 1, "a worker")
        time.sleep(4 * rng.random())
        victims = {
            "scheduler": cluster.scheduler.pid,
            "nanny": nanny.pid,
            "worker": psutil.Process(nanny.pid).children()[-1].pid,
            "program": process.pid,
        }
        psutil.Process(victims[role]).kill()
        printed, told = process.communicate(timeout=WAIT)
        assert "Traceback" not in told, told
        assert process.returncode in (0, 2, -9), told
    finally:
        cluster.close()
    print(f"chaos: killed the {role}: exit {process.returncode}, seed {SEED}")  # noqa: T201
    done = subprocess.run([*words, "--rerun-failed"], cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    assert _without_noise(done.stdout) == _without_noise(expected.stdout)
    if process.returncode == 0:
        assert _without_noise(printed) == _without_noise(expected.stdout)
