"""Files that inflate, or crash the library that reads them: one sentence, the exit code of a wrong file."""

import gzip
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import psutil
import pytest

from processes import PROGRAM, environment

pa = pytest.importorskip("pyarrow")

LIMIT = 400  # megabytes
PROGRAM_ITSELF = 300  # megabytes that it takes besides, at most, with all that it imports


# Runs a command and tells its exit code and memory. What a test holds would count, were it started by the test itself.
MEASURE = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:])
print(f"\\n{code} {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss}", flush=True)
"""


class Ended:
    """A command that has ended: its exit code, what it printed, and the most memory of it and its processes."""

    def __init__(self, words, place, **variables):
        env = environment(BOOSTERS_EVAL_CACHE=str(place / "cache"), **variables)
        command = [sys.executable, "-c", MEASURE, *PROGRAM, *words]
        told = subprocess.run(command, check=True, cwd=place, env=env, capture_output=True, text=True)
        printed, _, measured = told.stdout[:-1].rpartition("\n")
        self.said = printed + told.stderr
        self.code, self.megabytes = (int(word) for word in measured.split())
        self.megabytes /= 1000


def show(place, file, *options, **variables):
    return Ended(["datasets", "show", f"{file}:y", *options], place, **variables)


def write_gzip_bomb(path):
    """Three gigabytes of rows in less than four megabytes, as a gzip file of many equal members."""
    member = gzip.compress(b"1,2,3\n" * 3_000_000)
    path.write_bytes(gzip.compress(b"a,b,y\n") + member * 170)


def write_parquet_bomb(path):
    from pyarrow import parquet

    table = pa.table({name: np.zeros(5_000_000) for name in "ay"})
    with parquet.ParquetWriter(path, table.schema, compression="zstd") as writer:
        for _ in range(20):
            writer.write_table(table)


def write_feather_bomb(path):
    from pyarrow import feather

    feather.write_feather(pa.table({name: np.zeros(60_000_000) for name in "ay"}), path, compression="zstd")


BOMBS = {"b.csv.gz": write_gzip_bomb, "b.parquet": write_parquet_bomb, "b.feather": write_feather_bomb}


@pytest.mark.parametrize("name", BOMBS)
def test_file_that_inflates_is_refused_within_the_limit(tmp_path, name):
    BOMBS[name](tmp_path / name)
    assert (tmp_path / name).stat().st_size < 8_000_000
    done = show(tmp_path, name, "--read-limit", f"{LIMIT}MB")
    assert done.said == f"Error: {name} cannot be read within {LIMIT} MB of memory: --read-limit 800MB allows more.\n"
    assert done.code == 3
    assert done.megabytes < LIMIT + PROGRAM_ITSELF


def test_limit_is_raised_by_the_option_or_by_the_environment(tmp_path):
    table = pd.DataFrame({"a": np.arange(9_000_000) % 1000 / 7, "y": np.arange(9_000_000) % 7 / 3})
    table.to_feather(tmp_path / "b.feather")
    refused = show(tmp_path, "b.feather", BOOSTERS_EVAL_READ_LIMIT="200MB")
    assert refused.said.startswith("Error: b.feather cannot be read within 200 MB of memory")
    assert refused.code == 3
    assert show(tmp_path, "b.feather", "--read-limit", "3GB", BOOSTERS_EVAL_READ_LIMIT="200MB").code == 0


def test_limit_that_is_no_size_is_one_sentence(tmp_path):
    (tmp_path / "a.csv").write_text("a,y\n1,2\n")
    done = show(tmp_path, "a.csv", "--read-limit", "lots")
    assert (
        done.said
        == "Error: The '--read-limit' option must be a size of at least 200MB, such as 4GB. Got 'lots' instead.\n"
    )
    assert done.code == 3
    done = show(tmp_path, "a.csv", BOOSTERS_EVAL_READ_LIMIT="20MB")
    assert (
        done.said
        == "Error: BOOSTERS_EVAL_READ_LIMIT must be a size of at least 200MB, such as 4GB. Got '20MB' instead.\n"
    )


# Reads each line's mutation of a file in a fork, and prints the number of the signal that it ended by.
TRY = """
import os, sys
import pandas, pyarrow as pa
data = open(sys.argv[1], "rb").read()
for line in sys.stdin:
    place, mask = map(int, line.split())
    changed = bytearray(data)
    changed[place] ^= mask
    child = os.fork()
    if child == 0:
        try:
            reader = pa.ipc.open_file(pa.BufferReader(bytes(changed)))
            batches = [reader.get_batch(i) for i in range(reader.num_record_batches)]
            pa.Table.from_batches(batches, reader.schema).to_pandas()
        except BaseException:
            pass
        os._exit(0)
    print(place, mask, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def crashing_feather(tmp_path_factory):
    """A Feather file in which one bit is other than it was written, which ends the process of pyarrow."""
    path = tmp_path_factory.mktemp("feather") / "good.feather"
    numbers = np.random.default_rng(0)
    frame = {"a": numbers.normal(size=500), "s": numbers.choice(["x", "yy", "zzz"], 500)}
    frame |= {"c": pd.Categorical(numbers.choice(list("pq"), 500)), "y": numbers.normal(size=500)}
    pd.DataFrame(frame).to_feather(path)
    data = path.read_bytes()
    places = range(len(data) - 1_120, len(data))  # the footer, which says where everything is
    tried = "".join(f"{place} {mask}\n" for place in places for mask in (1, 128, 255))
    command = [sys.executable, "-W", "ignore", "-c", TRY, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as trying:
        trying.stdin.write(tried.encode())
        trying.stdin.close()
        found = next((line.split() for line in trying.stdout if not line.endswith(b" 0\n")), None)
        trying.kill()
    assert found, "no bit of the file made pyarrow crash"
    changed = bytearray(data)
    changed[int(found[0])] ^= int(found[1])
    return bytes(changed), signal.Signals(-int(found[2])).name


def test_feather_file_that_crashes_pyarrow_is_one_sentence(tmp_path, crashing_feather):
    content, name = crashing_feather
    (tmp_path / "d.feather").write_bytes(content)
    done = show(tmp_path, "d.feather")
    what = f"the library that reads it crashed ({name}), so it is damaged."
    assert done.said == f"Error: d.feather cannot be read: {what}\n"
    assert done.code == 3


def test_damaged_columnar_files_are_never_a_crash(tmp_path):
    """Some at random; `make test-chaos` has more."""
    from pyarrow import feather, parquet

    numbers = random.Random(33)
    table = pa.table(
        {"a": [i / 7 for i in range(300)], "s": ["x", "yy", None] * 100, "y": [i % 5 / 3 for i in range(300)]}
    )
    feather.write_feather(table, tmp_path / "w.feather")
    parquet.write_table(table, tmp_path / "w.parquet")
    for number in range(6):
        kind = ("feather", "parquet")[number % 2]
        data = bytearray((tmp_path / f"w.{kind}").read_bytes())
        for _ in range(numbers.choice([1, 3, 20])):
            data[numbers.randrange(len(data))] = numbers.randrange(256)
        (tmp_path / f"d.{kind}").write_bytes(data[: numbers.choice([len(data), len(data) // 2])])
        done = show(tmp_path, f"d.{kind}")
        assert done.code in (0, 3), done.said
        assert "Traceback" not in done.said


@pytest.mark.parametrize("size", [1_000_000, 8_000_000])
def test_specification_of_millions_of_values_is_refused_before_they_are_made(tmp_path, size):
    (tmp_path / "benchmarks.yaml").write_text("a: [" + "1," * (size // 2) + "1]")
    done = Ended(["paper", "list", "benchmarks.yaml"], tmp_path)
    assert "benchmarks.yaml, line 1: The file has more than 200000 values." in done.said
    assert done.code == 3
    assert done.megabytes < PROGRAM_ITSELF


def test_interruption_while_a_file_is_read_leaves_no_process(tmp_path):
    write_gzip_bomb(tmp_path / "b.csv.gz")
    env = environment(BOOSTERS_EVAL_CACHE=str(tmp_path / "cache"))
    command = [*PROGRAM, "datasets", "show", "b.csv.gz:y"]
    with subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as program:
        deadline = time.monotonic() + 60
        while not (children := psutil.Process(program.pid).children()) and time.monotonic() < deadline:
            time.sleep(0.05)
        program.send_signal(signal.SIGINT)
        said = program.stdout.read()
    assert program.returncode == 130
    assert b"Traceback" not in said
    assert not psutil.wait_procs(children, 10)[1]
