"""Whatever happens to its output, a command does its work and keeps its exit code."""

import subprocess
import sys

import pytest

import factories
from boosters_eval.runners.config import derive_seeds
from processes import PLUGINS, environment

PYTHON = f"{sys.executable} -P -m boosters_eval"
CHECK = f"{PYTHON} baseline check base.json --results worse.json --junit report.xml"


@pytest.fixture(scope="module")
def regression(tmp_path_factory):
    """A baseline, and results that are 5 % worse."""
    place = tmp_path_factory.mktemp("regression")
    for name, factor in (("base", 1.0), ("worse", 1.05)):
        rows = [factories.result("d/gbdt", "boosters", seed, factor) for seed in derive_seeds(3)]
        factories.collection(rows, suite="quick").to_json(place / f"{name}.results.json")
    record = f"{PYTHON} baseline record base.json --results base.results.json -q"
    subprocess.run(record.split(), cwd=place, env=environment(), check=True)
    (place / "worse.results.json").rename(place / "worse.json")
    return place


def shell(place, command, **changes):
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=place,
        env=environment(PLUGINS, **changes),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("end", ["| true", "| head -1", ">/dev/full", ">&-", "2>/dev/full", "2>&-", ">&- 2>&-"])
def test_regression_stays_a_regression_and_its_files_are_written(regression, end):
    (regression / "report.xml").unlink(missing_ok=True)
    done = shell(regression, f"{CHECK} {end}")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "<failure" in (regression / "report.xml").read_text()
    assert ("No space left on device" in done.stderr) == (end == ">/dev/full")


def test_what_cannot_be_encoded_is_replaced(regression):
    done = shell(regression, CHECK, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 1
    assert "d/gbdt boosters" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize("output", ["-o /dev/stdout | cat", "-o >(cat) | cat"])
def test_result_can_be_written_into_a_pipe(place, output):
    command = f"{PYTHON} compare -d diabetes -l faulty -s 1 -p max_depth=1 -q -f csv {output}"
    done = shell(place, command)
    assert done.returncode == 0
    assert done.stdout.startswith("config,dataset,")
    assert [line.split(",")[4] for line in done.stdout.splitlines()[1:]] == [
        "faulty",
        "predict the mean",
        "predict the median",
    ]


EXITS = "import sys; sys.exit(0)\n"


def test_foreign_code_that_exits_is_an_error(place, boosters_eval):
    (place / "exits.py").write_text(EXITS)
    done = boosters_eval("run", "--suite", "exits.py:SUITE", check=2)
    assert f"The file {place / 'exits.py'} called sys.exit(0) instead of defining something." in done.stderr
    done = boosters_eval("compare", "-d", "iris", "--metric", "exits.py:score", check=2)
    assert "called sys.exit(0)" in done.stderr
    (place / "loads.py").write_text(
        "import sys\n"
        "from boosters_eval import BenchmarkConfig, BenchmarkSuite, DatasetConfig, Task\n"
        "DATA = DatasetConfig(name='d', task=Task.REGRESSION, loader=lambda: sys.exit(0))\n"
        "SUITE = BenchmarkSuite(name='s', configs=[\n"
        "    BenchmarkConfig(name='d/gbdt', dataset=DATA, task=Task.REGRESSION, libraries=['faulty'])])\n"
    )
    done = boosters_eval("run", "--suite", "loads.py:SUITE", check=2)
    assert "The loader of data set 'd' failed: SystemExit: 0." in done.stderr
