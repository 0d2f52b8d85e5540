"""Whatever is in a file: never a traceback, never a hang, never above 1 GB, never exit 0 with another answer."""

import csv
import gzip
import io
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import mutations
import pytest

from processes import PLUGINS, environment

SEED = int(os.environ.get("CHAOS_SEED") or random.SystemRandom().randrange(10**6))
MUTATIONS = int(os.environ.get("CHAOS_MUTATIONS") or 1_000)
TIMEOUT = 120  # seconds; a command takes a tenth of one
MEGABYTES = 1024
FEW = 6  # in `make test`

RUN = ("compare", "-d", "diabetes", "-l", "faulty", "-s", "3", "-p", "max_depth=1", "-q")
TABLE = ("compare", "-d", "diabetes", "-l", "faulty", "-s", "1", "-p", "max_depth=1", "-q", "-f", "csv")


class Kind(NamedTuple):
    """A kind of file, the commands that read it, and what an unchanged answer means for it."""

    files: str  # a pattern below the place
    commands: tuple
    # sealed: the program can tell that it was changed. Otherwise it is input, for which another content is another
    # answer; but whoever else reads it must find something in it too.
    sealed: bool = True
    reads: object = None


def read_json(data):
    json.loads(data)


def read_csv(data):
    rows = list(csv.reader(io.StringIO(data.decode().removeprefix("\ufeff")), strict=True))
    if len({len(row) for row in rows if row}) != 1:
        raise ValueError("rows of different lengths")


def anything(data):
    """Bytes flipped in a column of numbers are other numbers: nobody can tell."""


REPORT = ("report", "--run", "last", "--dry-run", "-f", "md")
CHECK = ("baseline", "check", "base.json", "--run", "last")
GATE = (
    "gate",
    "--run",
    "last",
    "--baseline",
    "base.json",
    "-l",
    "faulty",
    "--threshold",
    "0.9",
    "--json",
    "-o",
    "d.json",
)
SCORES = ("--threshold", "0.5", "--json", "-o", "d.json")
OF_RUN = (REPORT, CHECK, GATE, ("verify", "last"))
KINDS = {
    "plan": Kind("home/runs/*/plan.json", OF_RUN),
    "journal": Kind("home/runs/*/journal-2.jsonl", OF_RUN),
    "environment": Kind("home/runs/*/environment-2.json", OF_RUN),
    "cached table": Kind("cache/t*/**/*.*", (TABLE,)),
    "recipe": Kind("cache/recipes/*", (TABLE,)),
    "decision": Kind("decision.json", (("verify", "decision.json", "--scores", "scores.json"),)),
    "report": Kind(
        "report.json",
        (
            ("report", "--results", "report.json", "--dry-run", "-f", "md"),
            ("baseline", "diff", "report.json", "base.json"),
            ("verify", "report.json"),
        ),
        sealed=False,
        reads=read_json,
    ),
    "zipped data": Kind("data.csv.gz", (("datasets", "show", "data.csv.gz:t"),)),
    "results": Kind(
        "results.json",
        (
            ("report", "--results", "results.json", "--dry-run", "-f", "md"),
            ("baseline", "check", "base.json", "--results", "results.json"),
        ),
        sealed=False,
        reads=read_json,
    ),
    "baseline": Kind("base.json", (CHECK, GATE, ("baseline", "diff", "base.json", "same.json")), False, read_json),
    "scores as JSON": Kind("scores.json", (("gate", "--scores", "scores.json", *SCORES),), False, read_json),
    "scores as CSV": Kind("scores.csv", (("gate", "--scores", "scores.csv", *SCORES),), False, read_csv),
    "data as CSV": Kind("data.csv", (("datasets", "show", "data.csv:t"),), False, read_csv),
    "data as parquet": Kind("data.parquet", (("datasets", "show", "data.parquet:t"),), False, anything),
}


class Server:
    """The program, ready to run command lines."""

    def __init__(self, folder, place):
        self.place = place
        script = Path(__file__).with_name("server.py")
        env = environment(
            PLUGINS,
            BOOSTERS_EVAL_CACHE=str(place / "cache"),
            TMPDIR=str(folder),
            OPENBLAS_NUM_THREADS="1",  # a process with threads had better not be forked
            GITHUB_ACTIONS=None,
        )
        self.process = subprocess.Popen(
            [sys.executable, "-P", script, folder], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self, *command):
        home = "other" if command == TABLE else "home"  # so that the last run stays the one that is reported
        env = {"BOOSTERS_EVAL_HOME": str(self.place / home)}
        request = {"command": command, "place": str(self.place), "timeout": TIMEOUT, "env": env}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def prepare(call, place):
    """A place with one file of each kind, all of them sound."""
    import pandas as pd

    frame = pd.DataFrame({"a": range(60), "b": [i % 7 / 3 for i in range(60)], "t": [i % 5 / 4 for i in range(60)]})
    frame.to_csv(place / "data.csv", index=False)
    (place / "data.csv.gz").write_bytes(gzip.compress((place / "data.csv").read_bytes()))
    frame.to_parquet(place / "data.parquet")
    cases = [{"case_id": f"c{i}", "score": 1.0, "class": "held_out" if i % 3 == 0 else "dev"} for i in range(40)]
    (place / "scores.json").write_text(json.dumps(cases, indent=1))
    lines = [f"{case['case_id']},{case['score']},{case['class']}" for case in cases]
    (place / "scores.csv").write_text("\n".join(["case_id,score,class", *lines, ""]))
    for command in (
        RUN,
        ("baseline", "record", "base.json", "--run", "last"),
        (*RUN, "-f", "json", "-o", "results.json"),
        ("report", "--run", "last", "-f", "json", "-o", "reports"),
        ("gate", "--scores", "scores.json", *SCORES[:2], "-o", "decision.json", "-q"),
    ):
        done = call(*command)
        assert done["code"] == 0, done
    shutil.copy(place / "base.json", place / "same.json")
    next((place / "reports").iterdir()).rename(place / "report.json")


def answer_of(done):
    """The exit code and the result, without times, which are never the same."""
    rows = list(csv.DictReader(io.StringIO(done["stdout"]))) if "train_time_s" in done["stdout"][:400] else None
    if rows is None:
        return done["code"], [line for line in done["stdout"].splitlines() if not line.startswith("| Date ")]
    return done["code"], [{k: v for k, v in row.items() if not str(k).endswith("_s")} for row in rows]


def fault_of(kind, done, sound, after):
    """Which rule was broken, if any."""
    if done["hung"]:
        return "hung"
    if done["megabytes"] > MEGABYTES:
        return f"took {done['megabytes']} MB"
    if "Traceback" in done["stderr"] or "Internal error" in done["stderr"] or done["code"] not in (0, 1, 2, 3):
        return "ended in a traceback"
    if done["code"] in (2, 3) and not done["stderr"].strip() and not done["stdout"].strip():
        return "failed without a word"
    if done["code"] not in (0, 1) or answer_of(done) == answer_of(sound):
        return None
    if kind.sealed:
        return "gave another answer"
    try:
        kind.reads(after)
    except (ValueError, RecursionError, csv.Error):
        return "gave an answer to what nobody else can read"
    return None


@pytest.fixture
def place(tmp_path):
    (tmp_path / "place").mkdir()
    return tmp_path / "place"


@pytest.fixture
def call(tmp_path, place):
    server = Server(tmp_path, place)
    yield server
    server.close()


def torment(call, place, seed, count, names):
    """Damage files, one at a time; each is put back before the next."""
    prepare(call, place)
    rng = random.Random(seed)
    sound = {}
    faults = []
    for number in range(count):
        name = names[number % len(names)]
        kind = KINDS[name]
        path = rng.choice(sorted(path for path in place.glob(kind.files) if path.is_file()))
        command = rng.choice(kind.commands)
        if command not in sound:
            sound[command] = call(*command)
            if count > FEW:
                assert answer_of(call(*command)) == answer_of(sound[command]), "the answer must depend on nothing else"
        kept = path.read_bytes()
        how = mutations.mutate(rng, path)
        after = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        done = call(*command)
        fault = fault_of(kind, done, sound[command], after)
        if fault is None and name == "decision" and done["code"] == 0 and decided_on(after) != decided_on(kept):
            fault = "verified another decision"
        if fault:
            faults.append(f"{number}: {name} ({path.name}), {how}: {' '.join(command)}: {fault}: {done}"[:1500])
        put_back(path, kept)
    return faults


def decided_on(data):
    """What a decision rests on. Its rules, versions and the file's name are quotations, for which nothing vouches."""
    document = json.loads(data)
    return {**document["report"], "versions": None}, document["source"]["file_sha256"]


def put_back(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)
    path.write_bytes(data)


def check(call, place, seed, count, names):
    print(f"chaos: {count} mutations, seed {seed}")  # noqa: T201 (at once, or a failure could not be repeated)
    faults = torment(call, place, seed, count, names)
    print(f"chaos: {count} mutations of {len(names)} kinds of files, seed {seed}, {len(faults)} faults")  # noqa: T201
    assert not faults, "\n".join([f"repeat with CHAOS_SEED={seed} CHAOS_MUTATIONS={count}", *faults])


def test_few_damaged_files_end_in_a_sentence(call, place):
    quick = [name for name, kind in KINDS.items() if TABLE not in kind.commands]  # which runs a cell each time
    check(call, place, seed=1, count=FEW, names=quick)


@pytest.mark.chaos
def test_many_damaged_files_end_in_a_sentence(call, place):
    check(call, place, SEED, MUTATIONS, names=list(KINDS))
