"""Data from outside stays data: no terminal obeys it, nothing in it is executed, and what is wrong is one sentence."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import unicodedata
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pytest

import factories
from boosters_eval.core.files import write_atomically
from boosters_eval.datasets import DATASETS, Table, materialize, open_stored
from boosters_eval.datasets.catalog import BUILTIN
from boosters_eval.datasets.store import _recipe_file
from boosters_eval.runners.config import derive_seeds
from processes import PLUGINS, PROGRAM, environment

EVIL = "a\x1b[31m\x9b2J\u202eb[/red]"


RESUME = ("-l", "faulty", "-s", "1", "-p", "max_depth=1", "--resume")


def assert_harmless(text):
    found = {unicodedata.category(char) for char in text.replace("\n", "")}
    assert not found & {"Cc", "Cf", "Cs", "Zl", "Zp"}


def write_results(place, name="results.json", factor=1.0, suite="quick", **changes):
    rows = [factories.result(f"{EVIL}/gbdt", EVIL, seed, factor, **changes) for seed in derive_seeds(3)]
    factories.collection(rows, suite=suite, run_id="x; rm -rf ~").to_json(place / name)
    return rows


def test_escapes_in_names_do_not_reach_the_terminal(boosters_eval, place):
    (place / "evil.csv").write_text(
        "a\x1b[31m,b\u202e,t\n" + "".join(f"{i},{i % 7},{EVIL if i % 2 else 'k'}\n" for i in range(60))
    )
    for command in (
        ("datasets", "show", "evil.csv:t"),
        ("datasets", "show", f"evil.csv:{EVIL}"),
        ("compare", "-d", f"evil.csv:{EVIL}"),
        ("compare", "-d", "evil.csv:t", "-l", "faulty", "-s", "1", "-p", "max_depth=1"),
        *(("compare", "-d", "evil.csv:t", *RESUME, "-f", form) for form in ("json", "csv", "html")),
        ("compare", "-d", "evil.csv:t", "-l", "faulty", "-s", "1", "--dry-run"),
        ("compare", "-d", EVIL),
        (EVIL,),
    ):
        done = boosters_eval(*command)
        assert_harmless(done.stdout + done.stderr)


EVIL_SUITE = f"""
from boosters_eval import DATASETS, BenchmarkConfig, BenchmarkSuite, Task, TrainingConfig
SUITE = BenchmarkSuite(name={EVIL!r}, configs=[BenchmarkConfig(
    name={EVIL!r}, dataset=DATASETS["diabetes"], task=Task.REGRESSION, libraries=["faulty"],
    training=TrainingConfig(max_depth=1))])
"""


def test_escapes_in_the_names_of_a_suite_do_not_reach_the_terminal_or_a_baseline(boosters_eval, place):
    (place / "evil.py").write_text(EVIL_SUITE)
    done = boosters_eval("run", "--suite", "evil.py:SUITE", "-s", "1", "-v", check=0)
    assert "�[31m" in done.stderr
    assert_harmless(done.stdout + done.stderr)
    records = list((place / "home" / "runs").glob("*/*.json*"))
    assert len(records) > 2
    for record in records:
        assert_harmless(record.read_text())
    boosters_eval("verify", "last", check=0)
    boosters_eval("baseline", "record", "base.json", "--run", "last", check=0)
    text = (place / "base.json").read_text()
    assert_harmless(text)
    assert json.loads(text)["config"]["suite"] == EVIL


def test_half_a_character_in_a_suite_is_one_sentence(boosters_eval, place):
    (place / "half.py").write_text(SUITE.replace('name="slow", dataset', 'name="slow", variant="\\ud800", dataset'))
    done = boosters_eval("run", "--suite", "half.py:SUITE", "-s", "1", check=3)
    assert "Internal error" not in done.stderr


def test_escapes_in_results_do_not_reach_the_terminal(boosters_eval, place):
    write_results(place)
    write_results(place, "worse.json", 1.1)
    boosters_eval("baseline", "record", "base.json", "--results", "results.json", check=0)
    for command in (
        ("baseline", "check", "base.json", "--results", "worse.json", "-v", "--libraries-under-test", EVIL),
        ("baseline", "check", "base.json", "--results", "worse.json", "-v"),
        ("report", "--results", "results.json", "--dry-run"),
        ("report", "--results", "results.json", "--dry-run", "-f", "json"),
        ("report", "--run", EVIL),
        ("verify", EVIL),
    ):
        done = boosters_eval(*command)
        assert_harmless(done.stdout + done.stderr)


def test_escapes_in_case_ids_do_not_reach_the_terminal(boosters_eval, place):
    cases = [{"case_id": f"{EVIL}{i}", "score": i / 20, "class": "dev"} for i in range(20)]
    (place / "scores.json").write_text(json.dumps(cases))
    done = boosters_eval("gate", "--scores", "scores.json", "--threshold", "0.9", "--no-held-out", check=1)
    assert "�[31m" in done.stdout
    assert_harmless(done.stdout + done.stderr)
    (place / "scores.json").write_text(json.dumps([{"case_id": "a", "score": 1, EVIL * 100_000: 1}]))
    done = boosters_eval("gate", "--scores", "scores.json", "--threshold", "0.9", check=3)
    assert_harmless(done.stderr)
    assert len(done.stderr) < 5_000


def test_names_are_quoted_in_how_to_reproduce(boosters_eval, place):
    write_results(place)
    done = boosters_eval("report", "--results", "results.json", "--dry-run", check=0)
    assert "boosters-eval report --run 'x; rm -rf ~'" in done.stdout


def test_names_that_look_like_formulas_are_guarded_in_csv(boosters_eval, place):
    rows = [factories.result("=1+1/gbdt", "@lib", seed, -1.5, metric="=m") for seed in derive_seeds(2)]
    text = factories.collection(rows).to_csv()
    heading, first, _ = text.splitlines()
    assert "'=m" in heading.split(",")
    assert first.startswith("'=1+1/gbdt,'=1+1,gbdt,regression,'@lib,,")
    assert ",-1.5," in first


def test_junit_is_well_formed_with_any_code_point(boosters_eval, place):
    signs = "".join(map(chr, [*range(1, 0xD800), *range(0xE000, 0x11000)]))
    rows = [factories.result(f"{signs}/gbdt", "boosters", seed) for seed in derive_seeds(2)]
    factories.collection(rows, suite="quick").to_json(place / "results.json")
    boosters_eval("baseline", "record", "base.json", "--results", "results.json", "-q", check=0)
    factories.collection([r.model_copy(update={"train_time_s": 1.0}) for r in rows]).to_json(place / "again.json")
    boosters_eval("baseline", "check", "base.json", "--results", "again.json", "--junit", "j.xml", check=0)
    (case,) = ET.parse(place / "j.xml").iter("testcase")
    assert "日" in case.get("classname")


@pytest.mark.parametrize("path", ["evil.py:SUITE", "evil.py", "./evil.py:SUITE"])
def test_path_in_a_baseline_is_never_executed(boosters_eval, place, path):
    (place / "evil.py").write_text("open('ran', 'w').close()\n")
    write_results(place, suite=path)
    boosters_eval("baseline", "record", "base.json", "--results", "results.json", "-q", check=0)
    for more in ((), ("--dry-run",), ("--seeds", "1")):
        done = boosters_eval("baseline", "check", "base.json", *more, check=3)
        assert "is not known here; name it, as in --suite path/to/file.py:SUITE, or" in done.stderr
    assert not (place / "ran").exists()


def test_cells_on_other_data_than_the_first_are_not_compared(boosters_eval, place):
    rows = [factories.result("d/gbdt", "boosters", seed) for seed in derive_seeds(3)]
    factories.collection(rows, suite="quick").to_json(place / "base.results.json")
    boosters_eval("baseline", "record", "base.json", "--results", "base.results.json", "-q", check=0)
    rows[1] = rows[1].model_copy(update={"data_digest": factories.digest("other")})
    factories.collection(rows, suite="quick").to_json(place / "other.json")
    done = boosters_eval("baseline", "check", "base.json", "--results", "other.json", check=2)
    assert "it was run on other data than the first cell of its config" in done.stdout
    refused = boosters_eval("baseline", "record", "new.json", "--results", "other.json", check=2)
    assert "other data" in refused.stderr


def test_first_cell_that_does_not_know_its_data_does_not_hide_that_the_others_are_on_other_data(boosters_eval, place):
    rows = [factories.result("d/gbdt", "boosters", seed) for seed in derive_seeds(3)]
    factories.collection(rows, suite="quick").to_json(place / "base.results.json")
    boosters_eval("baseline", "record", "base.json", "--results", "base.results.json", "-q", check=0)
    digests = (None, factories.digest("other"), factories.digest("other"))
    rows = [row.model_copy(update={"data_digest": digest}) for row, digest in zip(rows, digests, strict=True)]
    factories.collection(rows, suite="quick").to_json(place / "other.json")
    done = boosters_eval("baseline", "check", "base.json", "--results", "other.json", check=2)
    assert "it was run on perhaps other data than the first cell of its config" in done.stdout


ESCAPES = ("a\x1b]0;title\x07", "\x1b[31mred\u202e", "c\x9b2J")


def show_on_a_terminal(place, *words):
    """What the program prints on a terminal, which the output of a test is not."""
    ours, theirs = os.openpty()
    env = environment(PLUGINS, TERM="xterm-256color", COLUMNS="100")
    with os.fdopen(ours, "rb", buffering=0) as screen:
        process = subprocess.Popen([*PROGRAM, *words], cwd=place, env=env, stdout=theirs, stderr=subprocess.DEVNULL)
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # how a terminal says that nobody writes to it any more
            while part := screen.read(65536):
                shown += part
    assert process.wait() == 0
    return shown.decode().replace("\r\n", "\n")


def test_escapes_in_names_of_columns_reach_nobody(place, boosters_eval):
    """Neither through a pipe, nor on a terminal, nor in a file of any format."""
    pytest.importorskip("pyarrow")
    x = np.random.default_rng(0).random((200, 3))
    pd.DataFrame({**dict(zip(ESCAPES, x.T, strict=True)), "y": x[:, 0] * 2 + x[:, 1]}).to_parquet(place / "d.parquet")
    command = ("importances", "-d", "d.parquet:y", "-l", "sklearn", "-s", "1")
    done = boosters_eval(*command, check=0)
    seen = {"stdout": done.stdout, "stderr": done.stderr}
    for file in ("out.md", "out.html", "out.json", "out.csv", "out.tex"):
        boosters_eval(*command, "-q", "--resume", "-o", file, check=0)
        seen[file] = (place / file).read_text()
    screen = show_on_a_terminal(place, *command, "-q", "--resume")
    assert "\ufffd[31mred\ufffd" in screen
    seen["terminal"] = re.sub(r"\x1b\[[\d;]*m", "", screen)
    for name, text in seen.items():
        assert not set(text) & set("\x1b\x07\x9b\u202e"), name


def test_altered_metadata_of_a_parquet_file_are_one_sentence(boosters_eval, place):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pa.table({"a": [1.0, 2.0] * 20, "t": [0.5, 1.5] * 20})
    for metadata in (
        b"{",
        b"[]",
        b'{"columns": 5, "index_columns": [{}]}',
        b'{"index_columns": ["a", "zz"], "columns": [{}]}',
    ):
        parquet.write_table(table.replace_schema_metadata({b"pandas": metadata}), place / "t.parquet")
        done = boosters_eval("compare", "-d", "t.parquet:t", "-l", "faulty", "-s", "1", "--dry-run")
        assert done.returncode in (0, 2, 3)
        assert "Internal error" not in done.stderr


def test_file_name_that_is_no_text_does_not_spoil_the_run(boosters_eval, place):
    name = os.fsdecode(b"d\xff.csv")
    (place / name).write_text("a,t\n" + "".join(f"{i},{i % 2}\n" for i in range(40)))
    boosters_eval("compare", "-d", f"{name}:t", "-l", "faulty", "-s", "1", "-p", "max_depth=1", "-q", check=0)
    boosters_eval("report", "--run", "last", "-q", check=0)


def test_a_name_that_is_no_text_gets_the_sentence_of_any_other(boosters_eval):
    done = boosters_eval("compare", "-d", "diabetes", "-l", "faulty", "--name", os.fsdecode(b"\xff"), check=3)
    assert done.stderr.startswith("Error: The '--name' option must be up to 64 letters, digits and the signs")
    assert done.stderr.endswith("Got '\\udcff' instead.\n")


SUITE = """
from boosters_eval import DATASETS, BenchmarkConfig, BenchmarkSuite, Task, TrainingConfig
SUITE = BenchmarkSuite(name="slow", configs=[BenchmarkConfig(
    name="slow", dataset=DATASETS["diabetes"], task=Task.REGRESSION, libraries=["faulty"],
    training=TrainingConfig(max_depth=13))])
"""


def test_interrupted_report_on_a_suite_says_how_to_go_on(place):
    (place / "slow.py").write_text(SUITE)
    (place / "turnstile").mkdir()
    env = environment(PLUGINS, FAULTY_TURNSTILE=str(place / "turnstile"))
    command = [*PROGRAM, "report", "--suite", "slow.py:SUITE", "-s", "9"]
    process = subprocess.Popen(command, cwd=place, env=env, stderr=subprocess.PIPE, text=True)
    process.stderr.readline()  # the run has begun
    process.send_signal(signal.SIGTERM)
    rest = process.stderr.read()
    process.stderr.close()
    assert process.wait() == 143
    assert "Traceback" not in rest
    assert "boosters-eval report --suite slow.py:SUITE -s 9 --resume" in rest


def test_home_that_is_deleted_during_a_run_is_an_error(boosters_eval, place):
    (place / "deletes.py").write_text(
        "import shutil\n"
        "def score(y_true, y_pred):\n"
        f"    shutil.rmtree({str(place / 'home')!r}, ignore_errors=True)\n"
        "    return 1.0\n"
    )
    command = (
        "compare",
        "-d",
        "diabetes",
        "-l",
        "faulty",
        "-s",
        "1",
        "-p",
        "max_depth=1",
        "-m",
        "deletes.py:score:higher",
    )
    done = boosters_eval(*command, check=2)
    assert "was deleted or replaced during the run" in done.stderr
    assert done.stdout == ""


def test_files_that_are_none_do_not_keep_the_estimates_of_suites_waiting(boosters_eval, place):
    folder = place / "home" / "runs" / "a"
    folder.mkdir(parents=True)
    os.mkfifo(folder / "plan.json")
    (folder / "journal.jsonl").symlink_to("journal.jsonl")
    boosters_eval("list", "suites", check=0)


def poison(config, cache, labels, n_features):
    """Put somebody else's table into the cache, whole and consistent, with a pointer: each feature is the answer."""
    names = tuple(f"f{position}" for position in range(n_features))
    table = Table(np.tile(np.asarray(labels)[:, None], n_features), labels, feature_names=names)
    shutil.rmtree(cache / "recipes", ignore_errors=True)
    made = config.replace(loader=lambda: table, table_digest=None, available=None, recipe=config.recipe or "any")
    stored = materialize(made, cache)
    write_atomically(_recipe_file(config, cache), f"{stored.digest}\n", own=True)


def scored(program, dataset, cache):
    command = ("compare", "-d", dataset, "-l", "sklearn", "-s", "1", "-p", "trees=2", "-f", "json", "-q")
    done = program(*command, env={"BOOSTERS_EVAL_CACHE": str(cache)}, check=0)
    (found,) = json.loads(done.stdout)["results"]
    return found["metrics"], done.stderr


def test_poisoned_cache_changes_no_result_and_is_told(place, program):
    before, _ = scored(program, "iris", place / "cache")
    labels = open_stored(materialize(DATASETS["iris"], place / "cache").path).y
    poison(DATASETS["iris"], place / "cache", labels, 4)
    again, told = scored(program, "iris", place / "cache")
    assert again == before
    assert "Warning: The cached table of data set 'iris' is not the data set: it is replaced." in told
    assert scored(program, "iris", place / "cache") == (before, "")


def test_poisoned_cache_of_generated_data_is_not_believed(place, program):
    """It is generated by each program anew, as a pointer could lead anywhere."""
    before = scored(program, "synthetic_reg_small", place / "cache")
    labels = open_stored(materialize(DATASETS["synthetic_reg_small"], place / "cache").path).y
    poison(DATASETS["synthetic_reg_small"], place / "cache", labels, 10)
    assert scored(program, "synthetic_reg_small", place / "cache") == before


def test_poisoned_cache_of_data_that_was_never_fetched_is_not_believed(place, program):
    poison(DATASETS["yacht"], place / "cache", np.arange(308) / 7, 6)
    env = {"BOOSTERS_EVAL_CACHE": str(place / "cache")}
    done = program("compare", "-d", "yacht", "-l", "sklearn", "-s", "1", env=env, check=2)
    assert "Data set 'yacht' is not downloaded (16 MB): run 'boosters-eval datasets fetch yacht'." in done.stderr


def test_every_data_set_that_a_cache_is_believed_in_has_a_pinned_digest():
    unpinned = [config.name for config in BUILTIN.values() if config.recipe is not None and not config.table_digest]
    assert unpinned == []
