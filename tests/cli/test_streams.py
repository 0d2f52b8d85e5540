"""Whatever happens to its output, a command does its work; a result that could not be written is an error."""

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


def look(regression, end):
    """Check the regression with its output sent there. Its files are written whatever happens."""
    (regression / "report.xml").unlink(missing_ok=True)
    done = shell(regression, f"{CHECK} {end}")
    assert "Traceback" not in done.stderr
    assert "<failure" in (regression / "report.xml").read_text()
    return done


@pytest.mark.parametrize("end", ["| true", "| head -1", "2>/dev/full", "2>&-"])
def test_regression_stays_a_regression_when_nobody_reads_on(regression, end):
    done = look(regression, end)
    assert done.returncode == 1
    assert "Cannot write" not in done.stderr


LOST = {">/dev/full": "No space left on device", ">&-": "it is closed"}


@pytest.mark.parametrize("end", [*LOST, ">&- 2>&-"])
def test_verdict_that_could_not_be_written_is_an_error(regression, end):
    done = look(regression, end)
    assert done.returncode == 2
    assert done.stderr.count("Error: Cannot write to standard output") == ("2>" not in end)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A folder with a home in which there is a run."""
    place = tmp_path_factory.mktemp("measured")
    home = {"BOOSTERS_EVAL_HOME": str(place / "home")}
    done = shell(place, f"{PYTHON} compare -d diabetes -l faulty -s 1 -p max_depth=1 -q", **home)
    assert done.returncode == 0, done.stderr
    return place, home


COMMANDS = [
    "compare -d diabetes -l faulty -s 1 -p max_depth=1 -q --resume",
    "history",
    "runs list --json",
    "list datasets",
    "list --help",
]


@pytest.mark.parametrize("end", LOST)
@pytest.mark.parametrize("command", COMMANDS)
def test_result_that_could_not_be_written_is_an_error(measured, command, end):
    place, home = measured
    done = shell(place, f"{PYTHON} {command} {end}", **home)
    assert done.returncode == 2
    assert done.stderr.endswith(f"Error: Cannot write to standard output: {LOST[end]}.\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_reader_who_leaves_is_no_error(measured, command):
    place, home = measured
    done = shell(place, f"{PYTHON} {command} | head -c 1", **home)
    assert (done.returncode, done.stderr) == (0, "")


def test_nothing_is_lost_where_the_result_is_in_a_file(measured):
    place, home = measured
    done = shell(place, f"{PYTHON} {COMMANDS[0]} -o result.md >&-", **home)
    assert (done.returncode, done.stderr) == (0, "")
    assert shell(place, f"{PYTHON} {COMMANDS[0]} -f csv -o /dev/full", **home).returncode == 2


@pytest.mark.parametrize(
    ("output", "end"),
    [("/dev/stdout", ">&-"), ("/proc/self/fd/1", ">&-"), ("/dev/stderr", "2>&-"), ("/dev/fd/9", "9<&-")],
)
def test_stream_that_is_closed_is_no_file_to_write_to(measured, output, end):
    place, home = measured
    done = shell(place, f"{PYTHON} {COMMANDS[0]} -f csv -o {output} {end}", **home)
    assert done.returncode == 2
    told = f"Error: Cannot write {output}: it is closed.\n"
    assert done.stderr == ("" if output == "/dev/stderr" else told)


def test_open_file_goes_on_where_it_is(measured):
    place, home = measured
    command = f"{PYTHON} {COMMANDS[0]} -f csv -o /dev/stdout"
    assert shell(place, f"(echo first; {command}) > kept.csv", **home).returncode == 0
    assert (place / "kept.csv").read_text().startswith("first\nconfig,dataset,")


def test_reader_of_a_named_pipe_who_leaves_is_no_error(measured):
    place, home = measured
    done = shell(place, f"{PYTHON} {COMMANDS[0]} -f csv -o /dev/stdout | true", **home)
    assert (done.returncode, done.stderr) == (0, "")


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
