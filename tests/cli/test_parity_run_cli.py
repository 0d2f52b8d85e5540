"""`parity run` and `parity gate` at the command line: kills, interruptions, mistakes, files of the user's own."""

import json
import os
import signal
import subprocess
import time
from collections import Counter

import pytest

from boosters_eval.core.errors import InterruptedRunError
from boosters_eval.engine.journal import read_journal
from boosters_eval.engine.runs import find_run
from boosters_eval.programs.parity.backend import BACKENDS
from boosters_eval.programs.parity.method import GENERATORS, METHODS
from boosters_eval.programs.parity.rows import read_rows
from processes import PLUGINS, PROGRAM, environment

REGISTRY = str(PLUGINS / "noting_backends.py")
COMMAND = ("parity", "run", "--registry", REGISTRY, "--methods", "my-sum", "--max-runs", "2", "-q")


@pytest.fixture(autouse=True)
def registries():
    """What a file registers in this process is taken out again."""
    known = [(registry, set(registry)) for registry in (METHODS, BACKENDS, GENERATORS)]
    yield
    for registry, names in known:
        for name in set(registry) - names:
            registry.unregister(name)


def outcomes(place):
    (path,) = (place / "home" / "runs").glob("*/journal.jsonl")
    return read_journal(path).outcomes


def test_the_guard_is_a_day_unless_given(boosters_eval):
    assert "Default: 86400, which is a day." in " ".join(
        boosters_eval("parity", "run", "--help", check=0).stdout.split()
    )


def test_a_killed_run_is_resumed_without_repeating_or_losing_a_cell(place):
    env = environment(BOOSTERS_EVAL_HOME=str(place / "home"), NOTES=str(place / "notes"))
    (place / "notes").touch()
    process = subprocess.Popen([*PROGRAM, *COMMAND], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while len((place / "notes").read_text().splitlines()) < 40:  # at least two cells are done, and not all
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (place / "parity.csv").exists()
    before = outcomes(place)
    assert 2 <= len(before) < 9

    env["NOTES"] = str(place / "later")  # whoever survived for a moment still notes in the other one
    done = subprocess.run([*PROGRAM, *COMMAND, "--resume"], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    after = outcomes(place)
    assert {key: after[key] for key in before} == before
    run_now = [after[key].target for key in after.keys() - before.keys()]
    noted = Counter((place / "later").read_text().split())
    for name, times in Counter(run_now).items():
        assert noted[name] >= 4 * times if name == "b0" else noted[name] == 4 * times, "the reference has variants too"
    rows = read_rows(place / "parity.csv")
    assert len({row.key for row in rows}) == len(rows) == 9
    assert {row.predictions for row in rows} == {outcome.predictions for outcome in after.values()}
    assert not [path for path in place.iterdir() if path.name.startswith(".parity.csv")]
    verified = subprocess.run(
        [*PROGRAM, "parity", "oracles", "verify"], env=env, capture_output=True, text=True, check=True
    )
    assert verified.stdout.count(": unchanged\n") == 9  # reference, main binding and conventions, of three sizes


def test_an_interruption_prints_a_command_that_continues(boosters_eval, monkeypatch):
    def interrupted(*_, **__):
        raise InterruptedRunError

    monkeypatch.setattr("boosters_eval.programs.parity.run.run_parity", interrupted)
    done = boosters_eval(*COMMAND, "--force")
    assert done.returncode == 130
    (line,) = [line for line in done.stderr.splitlines() if "boosters-eval parity run" in line]
    assert line.split()[-1] == "--resume"
    assert "--force" not in line


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--methods", "plss"), "Unknown method 'plss'. Did you mean 'pls'"),
        (("--backends", "ikpls.defalt"), "Unknown backend 'ikpls.defalt'. Did you mean 'ikpls.default'"),
        (("--sizes", "10by3"), "The '--sizes' option must be rows x columns, such as 1000x50. Got '10by3' instead."),
        (("--sizes", "0x3"), "The '--sizes' option must be rows x columns"),
        (("--threads", "0"), "--threads"),
        (("--threads", "two"), "--threads"),
        (("--timeout", "0"), "The '--timeout' option must be seconds above 0. Got '0' instead."),
        (("--budget", "nan"), "The '--budget' option must be seconds above 0. Got 'nan' instead."),
        (("--max-cells", "0"), "--max-cells"),
        (
            ("--force", "--resume"),
            "Use --force to run everything again, or --resume or --rerun-failed to keep results.",
        ),
        (("--force", "--rerun-failed"), "Use --force to run everything again, or --resume"),
        (("--resume", "--rerun-failed"), "Use either --resume or --rerun-failed, not both."),
        (("--verbose", "--quiet"), "Use either --verbose or --quiet, not both."),
        (("--jobs", "0"), "The '--jobs' option must be a count from 1 to 4096. Got '0' instead."),
        (("--memory-limit", "0"), "The '--memory-limit' option must be megabytes above 0. Got '0' instead."),
        (("--name", "last"), "The '--name' option must be up to 64 letters"),
        (("--observer", "lnes"), "Unknown observer 'lnes'. Did you mean 'lines'"),
        (("--track", "mlfow"), "Unknown tracker 'mlfow'. Did you mean 'mlflow'"),
        (("--registry", "none.py"), "none.py does not exist."),
        (("--out-csv", "."), "it is a directory"),
    ],
)
def test_a_mistake_gets_one_sentence(boosters_eval, arguments, sentence):
    done = boosters_eval("parity", "run", *arguments, check=3)
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


TAKEN = "from boosters_eval.programs.parity.pls import SklearnPls\nclass Mine(SklearnPls): name = 'sklearn'"
NAMELESS = """
from boosters_eval.programs.parity.method import Generator
class Mine(Generator):
    missing = generate = classmethod(lambda *_: None)
"""


@pytest.mark.parametrize(
    ("number", "content", "sentence"),
    [
        (1, "1 / 0", "failed: ZeroDivisionError: division by zero."),
        (2, "import sys; sys.exit(3)", "called sys.exit(3)"),
        (3, "x = 1", "defines no method, backend or data generator."),
        (4, TAKEN, "defines the backend 'sklearn', but that name is taken."),
        (5, NAMELESS, "defines the data generator Mine, which has no name."),
    ],
)
def test_a_registry_file_that_is_of_no_use_is_refused_in_a_sentence(boosters_eval, place, number, content, sentence):
    file = place / f"useless_{number}.py"
    file.write_text(content)
    done = boosters_eval("parity", "list", "--registry", str(file))
    assert done.returncode in (2, 3)
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_dry_run_shows_what_would_run_and_what_is_known(boosters_eval, place):
    plugin = place / "mine.py"
    plugin.write_text(PLUGIN.format("a"))
    command = (
        "parity",
        "run",
        "--registry",
        str(plugin),
        "--methods",
        "ones-a",
        "--max-runs",
        "1",
        "--sizes",
        "4x2,5x2",
    )
    shown = boosters_eval(*command, "--dry-run", check=0).stdout.splitlines()
    assert shown[0].endswith(": 2 cells, 1 at a time")
    assert [line.split(" (")[0] for line in shown[1:]] == ["  ones-a/4x2@1 ones-a", "  ones-a/5x2@1 ones-a"]
    assert not (place / "parity.csv").exists()
    assert not (place / "home" / "runs").exists()
    boosters_eval(*command, "--max-cells", "1", check=0)
    shown = boosters_eval(*command, "--resume", "--dry-run", check=0).stdout
    assert "  ones-a/4x2@1 ones-a: kept\n" in shown
    assert "  ones-a/5x2@1 ones-a (" in shown
    boosters_eval(*command, "--resume", check=0)
    shown = boosters_eval(*command, "--resume", "--dry-run", check=0).stdout
    assert shown.splitlines()[0].endswith(": 0 cells, 1 at a time")


def test_the_settings_of_every_run_are_those_of_parity(boosters_eval, place):
    plugin = place / "mine.py"
    plugin.write_text(PLUGIN.format("a"))
    command = ("parity", "run", "--registry", str(plugin), "--methods", "ones-a", "--max-runs", "1")
    told = boosters_eval(*command, "--verbose", "--name", "mine", "--memory-limit", "4000", "-j", "3", check=0).stderr
    assert "ones-a/4x2@1 ones-a seed 1234567890: " in told
    assert told.endswith("Written: parity.csv\nTo gate a release on it: boosters-eval parity gate --csv parity.csv\n")
    assert find_run("mine").facts(1).jobs == 1
    told = boosters_eval(*command, "--observer", "lines", check=0).stderr
    assert "1/1 done, 0 failed" in told
    told = boosters_eval(*command, "--sizes", "7x2", "--resume", "--out-csv", "other.csv", check=0).stderr
    assert told.startswith("Note: there is no earlier attempt at this plan, so everything runs.\n")
    told = boosters_eval(*command, "--sizes", "7x2,8x2", "--resume", "--out-csv", "other.csv", check=0).stderr
    assert "Note" not in told, "one row is kept, and the other is not news"
    assert [row.n for row in read_rows(place / "other.csv")] == [7, 8]


FAILING = """

class Twos(Ones{0}):
    name = "twos"

    @classmethod
    def fit(cls, session, prepared):
        if Path(__file__).with_name("broken").exists():
            raise ValueError("broken")
        return prepared["X"]

M = MethodSpec(
    name="ones-{0}", canonical="ones-{0}", backends=("ones-{0}", "twos"), data="rows-{0}", sizes=(Size(4, 2),)
)
"""


def test_failed_cells_run_again_with_those_that_have_no_result(boosters_eval, place):
    plugin = place / "mine.py"
    plugin.write_text((PLUGIN.partition("\nM = ")[0] + FAILING).format("a"))
    command = ("parity", "run", "--registry", str(plugin), "--methods", "ones-a", "--max-runs", "1", "-q")
    (place / "broken").touch()
    boosters_eval(*command, "--sizes", "4x2", check=2)
    boosters_eval(*command, "--sizes", "4x2", "--resume", check=2)
    (place / "broken").unlink()
    first = {row.backend: row for row in read_rows(place / "parity.csv")}
    boosters_eval(*command, "--sizes", "4x2,5x2", "--rerun-failed", check=0)
    rows = {(row.backend, row.n): row for row in read_rows(place / "parity.csv")}
    assert {row.status.value for row in rows.values()} == {"ok"}
    assert rows["ones-a", 4].run_id == first["ones-a"].run_id, "what did not fail is kept"
    assert len(rows) == 4


HEADER = "method,backend,n,p,threads,own,status,verdict,binding_verdict,divergence\n"


@pytest.mark.parametrize(
    ("rows", "options", "code", "told"),
    [
        ("m,a,9,1,1,True,ok,rounding,bit_exact,1e-9\n", (), 0, "AGREE: 1 prediction compared"),
        ("m,a,9,1,1,True,ok,divergent,bit_exact,0.5\n", (), 1, "m 9x1 a, 1 thread: differs from the reference by 0.5"),
        ("m,a,9,1,1,True,ok,rounding,divergent,1e-9\n", (), 1, "differs from the project's main binding"),
        ("m,a,9,1,1,False,ok,divergent,,0.5\nm,b,9,1,1,True,ok,rounding,,0\n", (), 0, "AGREE"),
        ("m,a,9,1,1,False,ok,divergent,,0.5\n", ("--strict-external",), 1, "DIVERGE"),
        ("m,a,9,1,1,False,ok,divergent,,0.5\n", ("--own", "a"), 1, "DIVERGE"),
        ("m,a,9,1,1,False,ok,divergent,,0.5\n", (), 2, "INCOMPLETE: 0 predictions compared"),
        ("m,a,9,1,1,True,ok,oracle_missing,bit_exact,\n", (), 2, "the reference has no stored prediction"),
        ("m,a,9,1,1,True,crashed,,,\n", (), 2, "m 9x1 a, 1 thread: crashed"),
        ("m,a,9,1,1,True,deferred,,,\n", (), 2, "deferred"),
        ("m,a,9,1,1,True,ok,,,\n", (), 2, "it has no verdict"),
        ("m,a,9,1,1,True,ok,no_oracle,,\n", (), 2, "INCOMPLETE: 0 predictions compared"),
        ("m,a,9,1,1,True,not_available,,,\nm,b,9,1,1,True,ok,rounding,,0\n", (), 2, "m 9x1 a, 1 thread: not_available"),
        ("m,a,9,1,1,True,not_available,,,\nm,b,9,1,1,True,ok,rounding,,0\n", ("--allow-absent",), 0, "1 left out"),
    ],
)
def test_the_gate_passes_only_what_was_compared(boosters_eval, place, rows, options, code, told):
    (place / "rows.csv").write_text(HEADER + rows)
    assert told in boosters_eval("parity", "gate", "--csv", "rows.csv", *options, check=code).stdout


def test_a_comma_may_be_part_of_a_file_name(boosters_eval, place):
    (place / "a,b.csv").write_text(HEADER + "m,alpha,9,1,1,True,ok,rounding,,0\n")
    (place / "more.csv").write_text(HEADER + "m,beta,9,1,1,True,ok,rounding,,0\n")
    told = boosters_eval("parity", "gate", "--csv", "a,b.csv", "more.csv", check=0).stdout
    assert "AGREE: 2 predictions compared" in told


PLUGIN = """
from pathlib import Path

import numpy as np
from boosters_eval.programs.parity.method import GeneratedData, Generator
from boosters_eval.programs.parity.method import MethodSpec, Size
from boosters_eval.programs.parity.backend import PythonBackend

class Rows{0}(Generator):
    name, recipe = "rows-{0}", "1"
    missing = classmethod(lambda cls, method: None)
    generate = classmethod(lambda cls, method, size, seed, shared: GeneratedData({{"X": np.ones(size)}}))

class Ones{0}(PythonBackend):
    name, imports, distributions = "ones-{0}", ("numpy",), ("numpy",)
    fit = classmethod(lambda cls, session, prepared: prepared["X"])
    predict = classmethod(lambda cls, session, fitted: fitted[:, 0])

M = MethodSpec(name="ones-{0}", canonical="ones-{0}", backends=("ones-{0}",), data="rows-{0}", sizes=(Size(4, 2),))
"""


def test_two_registry_files_of_one_name_do_not_hide_each_other(boosters_eval, place):
    files = []
    for name in ("a", "b"):
        (place / name).mkdir()
        files.append(place / name / "mine.py")
        files[-1].write_text(PLUGIN.format(name))
    command = ("parity", "run", "--registry", *map(str, files), "--methods", "ones-a,ones-b", "--max-runs", "1", "-q")
    boosters_eval(*command, check=0)
    rows = read_rows(place / "parity.csv")
    assert [(row.backend, row.status.value) for row in rows] == [("ones-a", "ok"), ("ones-b", "ok")]
    assert json.loads(rows[0].registry_json) == ["a/mine.py", "b/mine.py"]  # no path through anybody's home


def test_the_gate_knows_the_backends_that_it_is_told(boosters_eval, place):
    (place / "rows.csv").write_text(HEADER + "m,alpha,9,1,1,True,ok,rounding,,0\n")
    done = boosters_eval("parity", "gate", "--csv", "rows.csv", "--own", "alhpa", check=3)
    assert "Unknown backend 'alhpa'. Did you mean 'alpha'" in done.stderr


def test_references_that_are_not_there_are_no_proof(boosters_eval, place):
    (place / "file").touch()
    for folder in ("nowhere", "file"):
        for command in ("list", "verify"):
            done = boosters_eval("parity", "oracles", command, "--oracles", folder, check=3)
            assert f"'--oracles' option must be a folder that exists. Got '{folder}' instead." in done.stderr
    assert (
        "No reference is stored, so nothing was verified."
        in boosters_eval("parity", "oracles", "verify", check=2).stderr
    )


def test_references_that_were_not_stored_are_counted_with_a_reason(boosters_eval):
    if "pls4all" in BACKENDS and BACKENDS["pls4all"].missing() is None:
        pytest.skip("pls4all is installed, so all are stored")
    done = boosters_eval("parity", "oracles", "refresh", "--methods", "pls", check=2)
    assert " references were not stored, the first of them pls of " in done.stderr
