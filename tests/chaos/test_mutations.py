"""Whatever is in a file: never a traceback, never a hang, never above 1 GB, never exit 0 with another answer."""

import csv
import io
import json
import os
import random
import sqlite3
import zipfile
import zlib
from typing import NamedTuple

import mutations
import pytest
import world
import yaml

SEED = int(os.environ.get("CHAOS_SEED") or random.SystemRandom().randrange(10**6))
MUTATIONS = int(os.environ.get("CHAOS_MUTATIONS") or 1_000)
MEGABYTES = 1024
FEW = 6  # in `make test`

TABLE = ("compare", *world.ONE, "-f", "csv")


class Kind(NamedTuple):
    """A kind of file, the commands that read it, and what an unchanged answer means for it."""

    files: str  # a pattern below the place
    commands: tuple
    # Without it the program can tell that the file was changed. Otherwise the file is input, for which another content
    # is another answer; but whoever else reads it must find something in it too.
    reads: object = None
    # Whether the command changes the home, which must stay as it is for the others.
    apart: bool = False


def read_json(data):
    json.loads(data)


def read_yaml(data):
    yaml.safe_load(data)


def read_csv(data):
    rows = list(csv.reader(io.StringIO(data.decode().removeprefix("\ufeff")), strict=True))
    if len({len(row) for row in rows if row}) != 1:
        raise ValueError("rows of different lengths")


def read_zip(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if archive.testzip():
            raise ValueError("a member is damaged")


def anything(data):
    """Bytes flipped in a column of numbers, or in the text of a paper, are other ones: nobody can tell."""


CHECK, GATE = world.LINES["baseline check"], (*world.LINES["gate"], "-o", "d.json")
SCORES = ("--threshold", "0.5", "--json", "-o", "d.json")
REPORT, VERIFY, SHOW = (
    ("report", "--run", "again", "--dry-run", "-f", "md"),
    ("verify", "again"),
    ("runs", "show", "main"),
)
OF_RUN, LIST = (REPORT, CHECK, GATE, VERIFY, SHOW), world.LINES["builds list"]
RESCORE, HISTORY = world.LINES["rescore"], world.LINES["history"]
ADD = ("builds", "add", f"{world.TOY}@wheels/toybooster-3.0-py3-none-any.whl")
KINDS = {
    "plan": Kind("main/plan.json", OF_RUN),
    "journal": Kind("main/journal-2.jsonl", OF_RUN),
    "environment": Kind("main/environment-2.json", OF_RUN),
    "predictions": Kind("main/predictions/*/*.npy", (RESCORE, VERIFY, CHECK)),
    "record of predictions": Kind("main/predictions.json", (("runs", "list", "--wide"), RESCORE, VERIFY), anything),
    "cached table": Kind("cache/t*/**/*.*", (TABLE,), apart=True),
    "recipe": Kind("cache/recipes/*", (TABLE,), apart=True),
    "decision": Kind("decision.json", (("verify", "decision.json", "--scores", "scores.json"),)),
    "record of a build": Kind("home/builds/*/build.json", (world.LINES["builds show"], LIST)),
    "oracle": Kind("home/parity/oracles/**/*.*", (world.LINES["parity oracles verify"],)),
    "zipped data": Kind("data.csv.gz", (("datasets", "show", "data.csv.gz:t"),)),
    "history": Kind("home/history.sqlite", (HISTORY, world.LINES["history export"]), anything),
    "export": Kind("export.json", (world.LINES["history import"],), read_json, apart=True),
    "report": Kind(
        "report.json",
        (
            ("report", "--results", "report.json", "--dry-run", "-f", "md"),
            ("baseline", "diff", "report.json", "base.json"),
            ("verify", "report.json"),
        ),
        read_json,
    ),
    "results": Kind(
        "results.json",
        (
            ("report", "--results", "results.json", "--dry-run", "-f", "md"),
            ("baseline", "check", "base.json", "--results", "results.json"),
            ("history", "import", "results.json"),
        ),
        read_json,
        apart=True,
    ),
    "baseline": Kind("base.json", (CHECK, GATE, ("baseline", "diff", "base.json", "same.json")), read_json),
    "predictions of a baseline": Kind("base.predictions.npz", ((*CHECK, "--statistical"),), anything),
    "policy": Kind("policy.json", ((*world.LINES["run"][:3], "--policy", "policy.json", "--dry-run"),), read_json),
    "scores as JSON": Kind("scores.json", (("gate", "--scores", "scores.json", *SCORES),), read_json),
    "scores as CSV": Kind("scores.csv", (("gate", "--scores", "scores.csv", *SCORES),), read_csv),
    "data as CSV": Kind("data.csv", (("datasets", "show", "data.csv:t"),), read_csv),
    "data as parquet": Kind("data.parquet", (("datasets", "show", "data.parquet:t"),), anything),
    "data as Feather": Kind("data.feather", (("datasets", "show", "data.feather:t"),), anything),
    "data as ARFF": Kind("data.arff", (("datasets", "show", "data.arff:t"),), anything),
    "sidecar": Kind("sidecar.csv.yaml", (("datasets", "show", "sidecar.csv:t"),), read_yaml),
    "specification": Kind(
        "benchmarks.yaml",
        (world.LINES["paper list"], world.LINES["paper compare"], (*world.LINES["paper run"], "--dry-run")),
        read_yaml,
    ),
    "results of a paper": Kind("paper/results.json", (world.LINES["paper compare"],), read_json),
    "comparison": Kind("comparison.yaml", (world.LINES["paper report"],), read_yaml),
    "document": Kind("paper.*", tuple(("paper", "extract", f"paper.{end}") for end in ("md", "html", "tex")), anything),
    "parity": Kind("parity.csv", (world.LINES["parity gate"], world.LINES["parity render"]), read_csv),
    "wheel": Kind("wheels/toybooster-3.0-py3-none-any.whl", (ADD,), read_zip, apart=True),
}


def ask(call, kind, command):
    env = {"BOOSTERS_EVAL_HOME": str(call.place / "apart")} if kind.apart and command[0] != "report" else {}
    return {**call(*command, env=env), "shows": command in (SHOW, LIST)}


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
    if kind.reads is None and done["shows"]:  # and only that: what is damaged is called so
        told = done["stdout"] + done["stderr"]
        words = ("damaged", "unreadable", "unfinished")  # the last for a journal that was cut between two lines
        return None if any(word in told for word in words) else "hid the damage"
    if kind.reads is None:
        return "gave another answer"
    try:
        kind.reads(after)
    except (
        ValueError,
        RecursionError,
        csv.Error,
        yaml.YAMLError,
        zipfile.BadZipFile,
        zlib.error,
        sqlite3.Error,
        EOFError,
    ):
        return "gave an answer to what nobody else can read"
    return None


@pytest.fixture
def place(tmp_path):
    (tmp_path / "place").mkdir()
    return tmp_path / "place"


@pytest.fixture
def call(tmp_path, place):
    server = world.Server(tmp_path, place)
    yield server
    server.close()


def torment(call, place, seed, count, names):
    """Damage files, one at a time; each is put back before the next."""
    rng = random.Random(seed)
    sound = {}
    faults = []
    for number in range(count):
        name = names[number % len(names)]
        kind = KINDS[name]
        path = rng.choice(list_files(place, kind))
        command = rng.choice([words for words in kind.commands if name != "document" or path.name in words])
        if command not in sound:
            sound[command] = ask(call, kind, command)
            if count > FEW:
                again = answer_of(ask(call, kind, command))
                assert again == answer_of(sound[command]), "the answer must depend on nothing else"
        kept = path.read_bytes()
        how = mutations.mutate(rng, path)
        after = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        done = ask(call, kind, command)
        fault = fault_of(kind, done, sound[command], after)
        if fault is None and name == "decision" and done["code"] == 0 and decided_on(after) != decided_on(kept):
            fault = "verified another decision"
        if fault:
            faults.append(f"{number}: {name} ({path.name}), {how}: {' '.join(command)}: {fault}: {done}"[:1500])
        put_back(path, kept)
        if (number + 1) % 100 == 0:
            print(f"chaos: {number + 1} mutations, {len(faults)} faults", *faults[-1:], flush=True)  # noqa: T201
    return faults


def list_files(place, kind):
    return sorted(path for path in place.glob(kind.files) if path.is_file())


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
    world.prepare(call, place, world.SETTING_UP[:7])
    quick = [name for name, kind in KINDS.items() if list_files(place, kind) and TABLE not in kind.commands]
    check(call, place, seed=1, count=FEW, names=quick)


@pytest.mark.chaos
def test_many_damaged_files_end_in_a_sentence(call, place):
    world.prepare(call, place)
    assert [name for name, kind in KINDS.items() if not list_files(place, kind)] == []
    names = (os.environ.get("CHAOS_KINDS") or ",".join(KINDS)).split(",")
    check(call, place, SEED, MUTATIONS, names)
