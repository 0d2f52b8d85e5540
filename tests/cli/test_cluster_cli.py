"""The options that name a cluster: what they refuse, and that an unreachable one costs seconds and leaves nothing."""

import builtins
import json
import os
import re
import runpy
import signal
import socket
import subprocess
import sys

import psutil
import pytest

from boosters_eval import DaskExecutor, MissingLibraryError
from boosters_eval.cluster import link
from boosters_eval.engine.runs import find_run
from boosters_eval.programs.parity.rows import read_rows
from dask_clusters import PATIENCE, until
from processes import PLUGINS, PROGRAM, environment

RUN = ("compare", "-d", "iris", "-l", "boosters", "-s", "2", "-p", "n_estimators=2", "-f", "json", "-q")
DASK = (*RUN, "--executor", "dask")
VALIDATE = ("paper", "validate", "--spec", "benchmarks.yaml", "-q")
PARITY = ("parity", "run", "--methods", "pls", "--backends", "sklearn", "--registry-cells", "--max-runs", "2", "-q")
PAPER = """\
paper: A Paper
seeds: 2
tables:
  - id: T
    datasets: [{name: Iris}]
    models: [{name: Model, run: BINDING}]
    results: [{model: Model, dataset: Iris, metrics: {accuracy: 0.9}}]
reproduction_targets:
  primary: [{table: T}]
"""


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--address", "tcp://h:1"], "The '--address' option needs --executor dask. Got 'local' instead."),
        (["--workers", "2"], "The '--workers' option needs --executor dask. Got 'local' instead."),
        (
            ["--executor", "dask", "--workers", "2", "--address", "tcp://h:1"],
            "Use either --address or --workers, not both: a run has one cluster.",
        ),
        (["--executor", "dask", "--jobs", "2"], "Use either --jobs or --executor dask, not both"),
        (["--executor", "dsk"], "Unknown executor 'dsk'. Did you mean 'dask'?"),
        (["--executor", "dask", "--address", "somewhere"], "such as tcp://host:8786. Got 'somewhere' instead."),
        (["--executor", "dask", "--scheduler-file", "none.json"], "none.json does not exist."),
    ],
)
def test_options_that_name_no_cluster_or_two_are_refused(boosters_eval, place, options, sentence):
    assert sentence in boosters_eval(*RUN, *options, check=3).stderr
    assert not (place / "home" / "runs").exists()


@pytest.mark.parametrize("command", [VALIDATE, ("paper", "run", *VALIDATE[2:]), PARITY], ids=" ".join)
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--workers", "2"], "The '--workers' option needs --executor dask. Got 'local' instead."),
        (
            ["--executor", "dask", "--workers", "2", "--address", "tcp://h:1"],
            "Use either --address or --workers, not both: a run has one cluster.",
        ),
        (["--executor", "dsk"], "Unknown executor 'dsk'. Did you mean 'dask'?"),
        (["--executor", "dask", "--scheduler-file", "none.json"], "none.json does not exist."),
    ],
)
def test_papers_and_parity_refuse_the_same_before_anything_runs(boosters_eval, place, command, options, sentence):
    (place / "benchmarks.yaml").write_text(PAPER.replace("BINDING", "{library: xgboost}"))
    done = boosters_eval(*command, *options, check=3)
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (place / "home" / "runs").exists()
    assert not (place / "parity.csv").exists()


def test_papers_have_jobs_or_a_cluster(boosters_eval, place):
    (place / "benchmarks.yaml").write_text(PAPER.replace("BINDING", "{library: xgboost}"))
    done = boosters_eval(*VALIDATE, "--executor", "dask", "--jobs", "2", check=3)
    assert "Use either --jobs or --executor dask, not both" in done.stderr


def test_file_that_no_scheduler_wrote_is_refused(boosters_eval, place):
    (place / "other.json").write_text('{"a": 1}')
    done = boosters_eval(*DASK, "--scheduler-file", "other.json", check=3)
    assert "The scheduler file other.json is not one that a dask scheduler writes." in done.stderr


def test_nobody_at_the_address_is_one_sentence_and_nothing_is_written(boosters_eval, place, monkeypatch):
    monkeypatch.setattr(link, "CONNECT_S", 0.5)
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # and never listens
        done = boosters_eval(*DASK, "--address", f"tcp://127.0.0.1:{held.getsockname()[1]}", check=2)
    assert re.fullmatch(r"Error: No dask scheduler answers at tcp://127\.0\.0\.1:\d+ within 0\.5 s: .*\n", done.stderr)
    assert not (place / "home" / "runs").exists()


def test_missing_extra_is_one_sentence_with_its_command(monkeypatch):
    real = builtins.__import__

    def without(name, *arguments, **options):
        if name == "boosters_eval.cluster.link":
            raise ModuleNotFoundError("No module named 'distributed'", name="distributed")
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingLibraryError, match=r"not installed: pip install 'boosters-eval\[cluster\]'\.$"):
        DaskExecutor()


def test_cluster_of_its_own_gives_the_same_numbers_and_says_nothing_else(boosters_eval, program):
    here = boosters_eval(*RUN, check=0)
    there = program(*DASK, "--workers", "1", check=0)
    assert there.stderr == here.stderr == ""
    assert _numbers(there.stdout) == _numbers(here.stdout)


def on(cluster):
    return "--executor", "dask", "--address", cluster.address


def test_papers_have_the_same_numbers_on_a_cluster(boosters_eval, cluster, place):
    binding = "{library: xgboost, parameters: {n_estimators: 2}}"
    (place / "benchmarks.yaml").write_text(PAPER.replace("BINDING", binding))
    here = boosters_eval(*VALIDATE, "--output", "here")
    there = boosters_eval(*VALIDATE, "--output", "there", *on(cluster), check=here.returncode)
    assert there.stderr == here.stderr == ""
    found = [json.loads((place / folder / "results.json").read_text()) for folder in ("here", "there")]
    values = [results["targets"][0]["values"]["accuracy"] for results in found]
    assert len(values[0]) == 2
    assert values[0] == values[1]
    assert find_run(found[1]["run_id"]).facts(2).executor == "DaskExecutor"


def test_functions_of_a_paper_are_refused_on_a_cluster(boosters_eval, cluster, place):
    (place / "mine.py").write_text("def score():\n    return {'accuracy': 0.9}\n")
    (place / "benchmarks.yaml").write_text(PAPER.replace("BINDING", "{callable: 'mine:score'}"))
    done = boosters_eval(*VALIDATE, *on(cluster), check=2)
    assert "cannot run on the nodes of a cluster: it runs in the folder " in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (place / "results" / "results.json").exists()


def test_parity_has_the_same_predictions_on_a_cluster(boosters_eval, cluster, place):
    boosters_eval(*PARITY, "--out-csv", "here.csv", check=0)
    boosters_eval(*PARITY, "--out-csv", "there.csv", *on(cluster), check=0)
    ((here,), (there,)) = (read_rows(place / name) for name in ("here.csv", "there.csv"))
    assert len(here.predictions) == 3
    assert (here.predictions, here.verdict, here.status) == (there.predictions, there.verdict, there.status)
    assert find_run(there.run_id).facts(2).executor == "DaskExecutor"


def _numbers(text):
    found = [(item["seed"], item["metrics"], item["predictions_digest"]) for item in json.loads(text)["results"]]
    assert len(found) == 2
    return found


@pytest.mark.deaths
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interruption_names_the_command_that_continues_and_leaves_no_process(place, number):
    """Ctrl-C reaches the whole process group, workers included; SIGTERM only the program."""
    hang = ("compare", "-d", "iris", "-l", "faulty", "-p", f"max_depth={faulty_number('hang')}", "-s", "2", "-q")
    process = subprocess.Popen(
        [*PROGRAM, *hang, "--executor", "dask", "--workers", "1"],
        env=environment(PLUGINS),
        cwd=place,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    program = psutil.Process(process.pid)
    until(lambda: any(_depth(found, program) == CELL for found in program.children(recursive=True)), "a cell")
    started = program.children(recursive=True)
    (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
    _, told = process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + number
    assert told.splitlines()[0] == "Stopped. Finished cells are kept; continue with:"
    assert told.splitlines()[1].endswith("--resume")
    assert len(told.splitlines()) == 2
    _, left = psutil.wait_procs(started, timeout=PATIENCE)
    assert not left


CELL = 4  # of the program's worker, its ancestor of lanes, their lane


def _depth(process, program):
    try:
        return [parent.pid for parent in process.parents()].index(program.pid) + 1
    except (psutil.NoSuchProcess, ValueError):
        return 0


def faulty_number(fault):
    return next(
        number for number, name in runpy.run_path(str(PLUGINS / "faulty_runner.py"))["FAULTS"].items() if name == fault
    )


def test_tracker_of_semaphores_that_is_killed_is_replaced_without_a_word(place):
    """Python starts another one, which knows none of the names that it is then told to forget."""
    slow = ("compare", "-d", "diabetes", "-l", "faulty", "-p", f"max_depth={faulty_number('slow')}", "-s", "2", "-q")
    process = subprocess.Popen(
        [*PROGRAM, *slow, "-f", "csv", "--executor", "dask", "--workers", "1"],
        env=environment(PLUGINS),
        cwd=place,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    program = psutil.Process(process.pid)
    until(lambda: any(_depth(found, program) == CELL for found in program.children(recursive=True)), "a cell")
    (tracker,) = (found for found in program.children() if "resource_tracker" in " ".join(found.cmdline()))
    tracker.kill()
    printed, told = process.communicate(timeout=PATIENCE)
    assert told == ""
    assert process.returncode == 0
    assert printed.count("faulty") >= 2


def test_folder_of_the_name_of_a_module_is_never_executed(place, tmp_path):
    """Dask starts its workers by Python's own module, which would look in the current folder first."""
    for name in ("multiprocessing", "pickle", "distributed"):
        (place / name).mkdir()
        (place / name / "__init__.py").write_text(
            "import pathlib\npathlib.Path(__file__).with_name('executed').touch()\n"
        )
    installed = tmp_path / "bin" / "boosters-eval"  # a script has its own folder on the path, not the current one
    installed.parent.mkdir()
    installed.write_text("from boosters_eval.__main__ import main\n\nif __name__ == '__main__':\n    main()\n")
    words = [sys.executable, str(installed), *DASK, "--workers", "1"]
    done = subprocess.run(words, cwd=place, env=environment(PLUGINS), capture_output=True, text=True, check=False)
    assert not list(place.glob("*/executed"))
    assert (done.stderr, done.returncode) == ("", 0)
