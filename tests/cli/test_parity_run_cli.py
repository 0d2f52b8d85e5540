"""`parity run` and `parity gate` at the command line: kills, interruptions, mistakes, files of the user's own."""

import json
import os
import signal
import subprocess
import time
from collections import Counter

import pytest

from boosters_eval.engine.journal import read
from boosters_eval.programs.parity.backend import BACKENDS
from boosters_eval.programs.parity.data import GENERATORS
from boosters_eval.programs.parity.method import METHODS
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
    return read(path).outcomes


def test_the_guard_is_a_day_unless_given(boosters_eval):
    assert "[default: 86400.0]" in " ".join(boosters_eval("parity", "run", "--help", check=0).stdout.split())


def test_a_killed_run_is_resumed_without_repeating_or_losing_a_cell(place):
    env = environment(BOOSTERS_EVAL_HOME=str(place / "home"), NOTES=str(place / "notes"))
    (place / "notes").touch()
    process = subprocess.Popen([*PROGRAM, *COMMAND], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while len((place / "notes").read_text().splitlines()) < 5:  # two cells are done, the third is at work
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
    assert Counter((place / "later").read_text().split()) == Counter(run_now * 2)
    rows = read_rows(place / "parity.csv")
    assert len({row.key for row in rows}) == len(rows) == 9
    assert {row.prediction for row in rows} == {outcome.prediction for outcome in after.values()}
    assert not [path for path in place.iterdir() if path.name.startswith(".parity.csv")]
    verified = subprocess.run(
        [*PROGRAM, "parity", "oracles", "verify"], env=env, capture_output=True, text=True, check=True
    )
    assert verified.stdout.count(": unchanged\n") == 6  # the oracle's and the canonical binding's, of three sizes


def test_an_interruption_prints_a_command_that_continues(boosters_eval, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("boosters_eval.programs.parity.running.run_parity", interrupted)
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
        (("--timeout", "0"), "The '--timeout' option must be seconds above 0. Got 0 instead."),
        (("--budget", "nan"), "The '--budget' option must be seconds above 0. Got nan instead."),
        (("--max-cells", "0"), "--max-cells"),
        (("--force", "--resume"), "Use --force to run everything again, or --resume"),
        (("--registry", "none.py"), "none.py does not exist."),
        (("--out-csv", "."), "it is a directory"),
    ],
)
def test_a_mistake_gets_one_sentence(boosters_eval, arguments, sentence):
    done = boosters_eval("parity", "run", *arguments, check=3)
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


TAKEN = "from boosters_eval.programs.parity.families.pls import SklearnPls\nclass Mine(SklearnPls): name = 'sklearn'"
NAMELESS = """
from boosters_eval.programs.parity.data import Generator
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


HEADER = "method,backend,n,p,threads,own,status,verdict,binding_verdict,divergence\n"


@pytest.mark.parametrize(
    ("rows", "options", "code", "told"),
    [
        ("m,a,9,1,1,True,ok,rounding,bit_exact,1e-9\n", (), 0, "AGREE: 1 cell judged"),
        ("m,a,9,1,1,True,ok,divergent,bit_exact,0.5\n", (), 1, "m 9x1 a, 1 thread: divergent from the oracle (0.5)"),
        ("m,a,9,1,1,True,ok,rounding,divergent,1e-9\n", (), 1, "divergent from the canonical binding"),
        ("m,a,9,1,1,False,ok,divergent,,0.5\nm,b,9,1,1,True,ok,rounding,,0\n", (), 0, "AGREE"),
        ("m,a,9,1,1,False,ok,divergent,,0.5\n", ("--strict-external",), 1, "DIVERGE"),
        ("m,a,9,1,1,False,ok,divergent,,0.5\n", ("--own", "a"), 1, "DIVERGE"),
        ("m,a,9,1,1,False,ok,divergent,,0.5\n", (), 2, "INCOMPLETE: 0 cells judged"),
        ("m,a,9,1,1,True,ok,oracle_missing,bit_exact,\n", (), 2, "oracle_missing"),
        ("m,a,9,1,1,True,crashed,,,\n", (), 2, "m 9x1 a, 1 thread: crashed"),
        ("m,a,9,1,1,True,deferred,,,\n", (), 2, "deferred"),
        ("m,a,9,1,1,True,ok,,,\n", (), 2, "it has no verdict"),
        ("m,a,9,1,1,True,ok,no_oracle,,\n", (), 2, "INCOMPLETE: 0 cells judged"),
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
    assert "AGREE: 2 cells judged" in told


PLUGIN = """
import numpy as np
from boosters_eval.programs.parity.data import GeneratedData, Generator
from boosters_eval.programs.parity.method import MethodSpec, Size
from boosters_eval.programs.parity.python import PythonBackend

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
    assert json.loads(rows[0].registry_json) == list(map(str, files))


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
