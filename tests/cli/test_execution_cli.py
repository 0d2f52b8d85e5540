"""The commands that run cells. What is about processes, signals or streams is tested on the real program."""

import csv
import json
import os
import pty
import re
import signal
import subprocess
import sys

import pytest

from boosters_eval.core.errors import BoostersEvalWarning
from processes import PLUGINS, PROGRAM, environment

SMALL = ["compare", "-d", "diabetes", "-l", "faulty", "-s", "4", "-p", "max_depth=1"]
PAIR = ["compare", "-d", "diabetes", "-l", "faulty", "boosters", "-s", "2", "-p", "n_estimators=5,max_depth=1"]


@pytest.fixture(scope="module")
def real_pair(tmp_path_factory):
    """What the real program wrote about two libraries."""
    place = tmp_path_factory.mktemp("pair")
    env = environment(PLUGINS, BOOSTERS_EVAL_HOME=str(place / "home"), BOOSTERS_EVAL_SEEDS=None)
    command = [*PROGRAM, *PAIR, "-f", "json"]
    return subprocess.run(command, cwd=place, env=env, capture_output=True, text=True, check=True)


def test_values_may_be_separated_by_spaces_commas_or_repetition(boosters_eval):
    plans = [
        boosters_eval("compare", "-s", "1", "--dry-run", *spelling, check=0).stdout
        for spelling in (
            ["--dataset", "iris", "breast_cancer", "--library", "sklearn", "lightgbm"],
            ["--dataset", "iris,breast_cancer", "--library=sklearn,lightgbm"],
            ["-d", "iris", "-d", "breast_cancer", "-l", "sklearn", "-l", "lightgbm"],
        )
    ]
    assert plans[0] == plans[1] == plans[2]
    assert "4 cells" in plans[0]


def test_names_are_taken_in_any_spelling(boosters_eval):
    mine = ["-d", "iris", "-l", "sklearn", "-b", "gbdt", "-s", "1", "--growth", "leafwise", "--device", "cpu"]
    mine += ["-m", "accuracy", "--test", "welch", "--profile", "parity", "-p", "n_estimators=2", "--dry-run"]
    theirs = ["-d", "Iris", "-l", "SkLearn", "-b", "GBDT", "-s", "1", "--growth", "Leaf-wise", "--device", "CPU"]
    theirs += ["-m", "MultiAccuracy", "--test", "Welch", "--profile", "Parity", "-p", "N_Estimators=2", "--dry-run"]
    assert boosters_eval("compare", *theirs).stdout == boosters_eval("compare", *mine).stdout
    variants = boosters_eval("compare", "-d", "iris", "-l", "sklearn", "--variants", "a:growth=LEAFWISE", "--dry-run")
    assert "iris/gbdt-a sklearn" in variants.stdout
    suites = [boosters_eval("run", "--suite", suite, "--dry-run").stdout for suite in ("minimal", "MINIMAL_SUITE")]
    assert suites[0] == suites[1]


def test_compare_writes_the_report_that_was_asked_for(boosters_eval, tmp_path):
    done = boosters_eval(*SMALL, "--output", "out/report.md", "--format", "markdown", check=0)
    assert done.stdout == ""
    text = (tmp_path / "out/report.md").read_text()
    assert "diabetes/gbdt" in text
    assert "faulty" in text
    assert "±" in text


def test_results_go_to_stdout_and_everything_else_to_stderr(real_pair, boosters_eval):
    document = json.loads(real_pair.stdout)
    assert [r["library"] for r in document["results"]] == ["faulty"] * 2 + ["boosters"] * 2
    assert "4/4 done" in real_pair.stderr
    quiet = boosters_eval(*SMALL, "-q", "-f", "csv", check=0)
    assert quiet.stderr == ""
    statuses = [row["status"] for row in csv.DictReader(quiet.stdout.splitlines())]
    assert statuses == ["ok"] * 4 + ["trivial"] * 8  # the mean and the median on each split


def test_metrics_are_the_same_in_two_processes(real_pair, boosters_eval):
    first, second = map(json.loads, (real_pair.stdout, boosters_eval(*PAIR, "-q", "-f", "json", check=0).stdout))
    assert first["run_id"] == second["run_id"]
    assert [r["metrics"] for r in first["results"]] == [r["metrics"] for r in second["results"]]


def test_html_report_is_one_page(boosters_eval, tmp_path):
    boosters_eval(*SMALL, "-o", "page.html", check=0)
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")


def test_dry_run_runs_nothing_and_writes_no_run(boosters_eval, tmp_path):
    done = boosters_eval(*SMALL, "--dry-run", check=0)
    assert "4 cells" in done.stdout
    assert not (tmp_path / "home" / "runs").exists()


def test_variants_are_rows_of_their_own(boosters_eval):
    done = boosters_eval(
        "compare", "-d", "iris", "-l", "boosters", "-s", "2",
        "--variants", "deep:max_depth=8,n_estimators=5", "flat:max_depth=1,n_estimators=5",
        check=0,
    )  # fmt: skip
    assert re.search(r"boosters\s*\|\s*deep", done.stdout)
    assert re.search(r"boosters\s*\|\s*flat", done.stdout)


def test_folds_take_the_place_of_seeds(boosters_eval):
    done = boosters_eval(
        "compare", "-d", "diabetes", "-l", "faulty", "--cv", "3x2", "-p", "max_depth=1", "-q", "-f", "json", check=0
    )
    found = [(r["seed"], r["fold"]) for r in json.loads(done.stdout)["results"]]
    assert found == [(42, 0), (42, 1), (42, 2), (1379, 0), (1379, 1), (1379, 2)]


def test_metric_of_a_users_file_is_computed_with_its_direction(boosters_eval, tmp_path):
    (tmp_path / "mine.py").write_text(
        "def worst(predictions, labels):\n    return float(abs(predictions - labels).max())\n"
    )
    command = ["compare", "-d", "diabetes", "-l", "faulty", "-s", "1", "-p", "max_depth=1", "-q"]
    done = boosters_eval(*command, "--metric", "mine.py:worst:lower", "mape", "-f", "json", check=0)
    metrics = json.loads(done.stdout)["results"][0]["metrics"]
    assert metrics["worst"] > metrics["mae"]
    assert "mape" in metrics
    table = boosters_eval(*command[:-1], "--metric", "mine.py:worst:lower", check=0).stdout
    assert "worst ↓" in table.lower()
    undirected = boosters_eval(*command, "--metric", "mine.py:worst", check=3)
    assert "which way is better" in undirected.stderr
    assert "has no function 'wurst'" in boosters_eval(*command, "-m", "mine.py:wurst:lower", check=3).stderr


def test_run_of_the_same_cells_that_cannot_be_continued_is_named(boosters_eval, tmp_path):
    command = ["compare", "-d", "diabetes", "-l", "faulty", "-s", "1"]
    boosters_eval(*command, "-p", "max_depth=1", check=0)
    (folder,) = (tmp_path / "home" / "runs").iterdir()
    done = boosters_eval(*command, "-p", "max_depth=1,n_estimators=7", "--resume", check=0)
    assert "there is no earlier attempt at this plan" in done.stderr
    assert f"run {folder.name} has the same cells, but it was made by another version" in done.stderr


def test_a_name_that_another_run_has_is_taken_over_with_a_word(boosters_eval, tmp_path):
    command = ["compare", "-d", "diabetes", "-l", "faulty", "-s", "1", "--name", "mine"]
    assert "is named" not in boosters_eval(*command, "-p", "max_depth=1", check=0).stderr
    (folder,) = (tmp_path / "home" / "runs").iterdir()
    done = boosters_eval(*command, "-p", "max_depth=1,n_estimators=7", check=0)
    assert f"Note: run {folder.name} is named 'mine' too; from now on, that means the new run." in done.stderr


def test_metric_that_does_not_fit_the_task_is_refused_before_anything_runs(boosters_eval):
    done = boosters_eval(*SMALL, "--metric", "accuracy", check=3)
    assert "accuracy" in done.stderr


MISTAKES = [
    (["compare", "-d", "californa"], 3, "Did you mean 'california'?"),
    (["compare", "-l", "xgbost"], 3, "Did you mean 'xgboost'?"),
    (["compare", "-b", "gbdd"], 3, "Did you mean 'gbdt'?"),
    (["run", "--suite", "quik"], 3, "Did you mean 'quick'?"),
    (["run", "--suite", "nowhere.py:SUITE"], 3, "does not exist"),
    (["compare", "-s", "0"], 3, "from 1 to 10000, or auto. Got '0'"),
    (["compare", "-s", "-3"], 3, "from 1 to 10000, or auto. Got '-3'"),
    (["compare", "-s", "99999999999"], 3, "from 1 to 10000"),
    (["compare", "-s", "many"], 3, "from 1 to 10000, or auto. Got 'many'"),
    (["compare", "--cv", "1"], 3, "such as 5 or 5x10"),
    (["compare", "-f", "markdwn"], 3, "Did you mean 'markdown'?"),
    (["compare", "-o", "/proc/nothing/report.md"], 3, "Cannot write /proc/nothing/report.md: No such file"),
    (["compare", "-o", "."], 3, "it is a directory"),
    (["compare", "--param", "max_dept=3"], 3, "Did you mean 'max_depth'?"),
    (["compare", "--param", "subsample=7"], 3, "less than or equal to 1"),
    (["compare", "--variants", "a:nope=1"], 3, "unknown parameter 'nope'"),
    (["compare", "--growth", "sideways"], 3, "The '--growth' option must be depthwise or leafwise. Got 'sideways'"),
    (["compare", "--growth", "leafwise", "-p", "growth=depthwise"], 3, "either --growth or --param growth=..."),
    (["compare", "-o", "table.pdf"], 3, "The '--output' option must end in .md, .txt, .json, .csv, .html or .tex"),
    (["compare", "--profile", "parrity"], 3, "Did you mean 'parity'?"),
    (["compare", "--jobs", "0"], 3, "--jobs"),
    (["compare", "--timeout", "0"], 3, "The '--timeout' option must be seconds above 0. Got '0'"),
    (["compare", "--wrong"], 3, "--wrong"),
    (["compare", "-d"], 3, "Got nothing instead"),
    (["compare", "--resume", "--rerun-failed"], 3, "not both"),
    (["compare", "-v", "-q"], 3, "not both"),
    (["compare", "--test", "welsh"], 3, "Did you mean 'welch'?"),
    (["compare", "-d", "iris", "--protocol", "adaptive"], 3, "only in timing mode: use --timing-mode too."),
    (["comapre"], 3, "Did you mean 'compare'? See "),
    (["verify", "nothing"], 3, "No run 'nothing'"),
    (["compare", "-d", "iris", "-b", "gblinear", "-l", "catboost"], 2, "Nothing can run"),
    (["compare", "--seeds", "auto", "--budget", "soon"], 3, "such as 90s, 10m or 1h"),
    (["compare", "--seeds", "3", "--budget", "10m"], 3, "needs --seeds auto"),
    (["compare", "--seeds", "3", "--cv", "5"], 3, "either --cv or --seeds"),
    (["compare", "-d", "iris", "--cv", "200"], 3, "200 folds are more than the 150 rows"),
    (
        ["compare", "--split", "day"],
        3,
        "The '--split' option must be random, time, time:COLUMN or group:COLUMN. Got 'day'",
    ),
    (["compare", "-d", "iris", "--split", "group:petal"], 3, "Data set 'iris' has no column 'petal'"),
    (["compare", "--split", "time:day", "-s", "auto"], 3, "--seeds auto cannot be used with a split by time"),
    (["compare", "--threads", "0"], 3, "at least 1"),
    (["compare", "--jobs", "99999999999"], 3, "4096"),
    (["compare", "--memory-limit", "1e300"], 3, "The '--memory-limit' option must be"),
]


def assert_one_sentence(done, words):
    assert done.stdout == ""
    errors = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    assert len(errors) == 1
    assert words in errors[0]


@pytest.mark.parametrize(("arguments", "code", "words"), MISTAKES)
def test_mistake_gets_one_sentence_and_its_exit_code(boosters_eval, arguments, code, words):
    assert_one_sentence(boosters_eval(*arguments, check=code), words)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["compare", "-d", "californa"], 3, "Did you mean 'california'?"),
        (["compare", "--wrong"], 3, "--wrong"),
        (["compare", "-d", "iris", "-b", "gblinear", "-l", "catboost"], 2, "Nothing can run"),
    ],
)
def test_mistake_ends_the_real_program_alike(program, arguments, code, words):
    assert_one_sentence(program(*arguments, check=code), words)


def test_environment_gives_the_number_of_seeds_and_an_argument_overrides_it(boosters_eval, monkeypatch):
    command = ["compare", "-d", "iris", "-l", "boosters", "--dry-run"]
    monkeypatch.setenv("BOOSTERS_EVAL_SEEDS", "7")
    assert "7 cells" in boosters_eval(*command, check=0).stdout
    assert "2 cells" in boosters_eval(*command, "-s", "2", check=0).stdout
    monkeypatch.setenv("BOOSTERS_EVAL_SEEDS", "x")
    assert "BOOSTERS_EVAL_SEEDS" in boosters_eval(*command, check=3).stderr


def test_home_that_is_a_file_is_told(boosters_eval, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("BOOSTERS_EVAL_HOME", str(tmp_path / "file"))
    assert "must be a directory" in boosters_eval(*SMALL, check=3).stderr


def test_full_disk_stops_the_run_and_what_is_finished_is_kept(program, boosters_eval):
    def small_files():
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (6_000, 6_000))

    command = ["compare", "-d", "diabetes", "-l", "faulty", "-s", "12", "-p", "max_depth=1", "-q"]
    boosters_eval(*command, "--dry-run", check=0)  # the data goes into the cache, which has room
    done = program(*command, preexec_fn=small_files, check=2)
    assert "Cannot write" in done.stderr
    assert "--resume" in done.stderr
    left = boosters_eval(*command, "--resume", "--dry-run", check=0).stdout
    kept, cells = (int(number) for number in re.search(r"; (\d+) of (\d+) kept$", left, re.MULTILINE).groups())
    assert cells == 12
    assert f": {cells - kept} cells, " in left
    resumed = boosters_eval(*command, "--resume", "-f", "json", check=0)
    assert len(json.loads(resumed.stdout)["results"]) == 12


def test_failed_cells_make_the_exit_code_two_unless_allowed(boosters_eval):
    both = [
        "compare",
        "-d",
        "diabetes",
        "-l",
        "faulty",
        "boosters",
        "-s",
        "1",
        "-p",
        "max_depth=2,n_estimators=3",
        "-q",
    ]
    done = boosters_eval(*both, check=2)
    assert "boosters" in done.stdout
    assert "SIGSEGV" in done.stdout
    boosters_eval(*both, "--continue-on-error", check=0)
    only = ["compare", "-d", "diabetes", "-l", "faulty", "-s", "1", "-p", "max_depth=2", "-q", "--continue-on-error"]
    boosters_eval(*only, check=2)


def test_missing_library_is_a_warning_in_compare_and_an_error_in_run(boosters_eval, monkeypatch):
    from boosters_eval.runners import base

    real = base.find_spec
    monkeypatch.setattr(base, "find_spec", lambda name: None if name == "catboost" else real(name))
    with pytest.warns(BoostersEvalWarning, match="catboost is left out: not installed: pip install"):
        boosters_eval("compare", "-d", "iris", "-l", "catboost", "boosters", "-s", "1", "--dry-run", check=0)
    missing = boosters_eval("run", "--suite", "quick", "--library", "catboost", check=2)
    assert "pip install" in missing.stderr
    listed = boosters_eval("list", "libraries", "--json", check=0)
    record = next(r for r in json.loads(listed.stdout) if r["library"] == "catboost")
    assert record["available"] is False
    assert "pip install" in record["note"]


def test_interruption_keeps_what_is_done_and_prints_the_command_that_resumes(boosters_eval, place):
    """Five cells get through the turnstile and the others wait: the run cannot end before the signal comes."""
    command = ["compare", "-d", "diabetes", "-l", "faulty", "-s", "15", "-p", "max_depth=13"]
    turnstile = place / "turnstile"
    turnstile.mkdir()
    env = environment(PLUGINS, FAULTY_TURNSTILE=str(turnstile))
    process = subprocess.Popen([*PROGRAM, *command, "-v"], cwd=place, env=env, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if "5/15 done" in line:
            break
    process.send_signal(signal.SIGINT)
    rest = process.stderr.read()
    process.stderr.close()
    assert process.wait() == 130
    assert "Traceback" not in rest
    assert "boosters-eval compare -d diabetes -l faulty -s 15 -p max_depth=13 -v --resume" in rest
    plan = boosters_eval(*command, "--resume", "-f", "json", check=0)
    assert "5 kept" in plan.stderr
    assert len(json.loads(plan.stdout)["results"]) == 15
    boosters_eval("verify", "last", check=0)


def test_dry_run_counts_what_a_continued_run_would_do(boosters_eval, tmp_path):
    command = [
        "compare",
        "-d",
        "iris",
        "-l",
        "boosters",
        "faulty",
        "-s",
        "1",
        "-p",
        "max_depth=3,n_estimators=7",
        "--jobs",
        "1",
    ]
    new = boosters_eval(*command, "--resume", "--dry-run", check=0)
    assert "there is no earlier attempt at this plan" in new.stderr
    boosters_eval(*command, "-q", check=2)
    header = boosters_eval(*command, "--resume", "--dry-run", check=0).stdout.splitlines()
    assert header[0].endswith(": 0 cells, 1 at a time; 2 of 2 kept")
    assert len(header) == 1
    again = boosters_eval(*command, "--rerun-failed", "--dry-run", check=0).stdout
    assert "; 1 of 2 kept\n  iris/gbdt faulty (" in again
    (journal,) = (tmp_path / "home/runs").glob("*/journal.jsonl")
    journal.write_text(journal.read_text().replace('"result":', '"results":', 1))
    assert "is damaged" in boosters_eval(*command, "--resume", "--dry-run", check=2).stderr


def test_verify_tells_a_touched_journal(boosters_eval, tmp_path):
    boosters_eval(*SMALL, "-q", check=0)
    assert "complete and untouched" in boosters_eval("verify", "last", check=0).stdout
    (journal,) = (tmp_path / "home/runs").glob("*/journal.jsonl")
    journal.write_text(journal.read_text().replace('"rmse":', '"rmse": ', 1))
    assert "damaged" in boosters_eval("verify", "last", check=2).stdout


def test_terminal_shows_a_bar_and_a_table_without_asterisks(place):
    env = environment(PLUGINS, COLUMNS="120", TERM="xterm-256color")
    pid, master = pty.fork()
    if pid == 0:
        os.execve(sys.executable, [*PROGRAM, *SMALL], env)
    chunks = []
    while True:
        try:
            data = os.read(master, 65536)
        except OSError:
            break
        if not data:
            break
        chunks.append(data)
    os.waitpid(pid, 0)
    screen = b"".join(chunks).decode()
    assert "━" in screen
    assert "\nfaulty " in screen
    assert "diabetes (4 splits)" in screen


def test_closed_pipe_is_no_error(tmp_path):
    for reader in ("true", "head -2"):
        command = f"set -o pipefail; {sys.executable} -m boosters_eval list metrics | {reader}"
        done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("closed", "code"), [("2>&-", 0), ("2>&- <&-", 0), (">&- 2>&- <&-", 2)])
def test_closed_streams_are_an_error_only_where_the_result_is_lost(closed, code, tmp_path):
    command = f"{sys.executable} -m boosters_eval list metrics {closed}"
    assert subprocess.run(["bash", "-c", command], cwd=tmp_path, check=False).returncode == code


def test_progress_is_printed_once_however_it_is_asked_for(boosters_eval):
    lines = boosters_eval(*SMALL, "--observer", "lines", check=0).stderr.splitlines()
    assert sum("cells to do" in line for line in lines) == 1


def test_reader_of_progress_that_goes_away_does_not_stop_the_run(place):
    command = f"{sys.executable} -m boosters_eval {' '.join(SMALL)} -v -o out.json 2> >(head -1 >/dev/null)"
    done = subprocess.run(["bash", "-c", command], env=environment(PLUGINS), check=False)
    assert done.returncode == 0
    assert len(json.loads((place / "out.json").read_text())["results"]) == 4


def test_interruption_while_importing_is_silent(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'click':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupt())\n"
    )
    env = environment(tmp_path)
    done = subprocess.run([*PROGRAM, "list", "metrics"], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


@pytest.mark.parametrize("what", ["datasets", "libraries", "suites", "metrics"])
def test_list_shows_a_table_and_json(what, boosters_eval):
    table = boosters_eval("list", what, check=0)
    assert table.stderr == ""
    records = json.loads(boosters_eval("list", what, "--json", check=0).stdout)
    assert len(records) > 3
    assert all(str(next(iter(record.values()))) in table.stdout for record in records)


def test_the_tasks_of_a_metric_are_always_listed_in_one_order(boosters_eval):
    records = json.loads(boosters_eval("list", "metrics", "--json", check=0).stdout)
    assert any(len(record["tasks"]) > 1 for record in records)
    assert all(record["tasks"] == sorted(record["tasks"]) for record in records)


def test_help_and_lists_import_nothing_scientific_and_plans_no_scipy(place):
    code = (
        "import sys; from boosters_eval.cli.app import run\n"
        "heavy = {'numpy', 'pandas', 'scipy', 'sklearn', 'xgboost', 'lightgbm', 'catboost', 'boosters'}\n"
        "for words in '', 'compare', 'run', 'quick', 'list', 'verify', 'baseline check', 'report', 'explain', 'gate':\n"
        "    assert run([*words.split(), '--help']) == 0, words\n"
        "    assert not heavy & set(sys.modules), words\n"
        "for words in 'datasets', 'libraries', 'suites', 'metrics':\n"
        "    assert run(['list', words]) == run(['list', words, '--json']) == 0, words\n"
        "    assert not heavy & set(sys.modules), words\n"
        "import boosters_eval.api, boosters_eval.programs.baseline.commands\n"
        "assert 'scipy' not in sys.modules\n"  # it is loaded when there is something to test
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_suites_estimate_comes_from_the_history_of_runs(boosters_eval):
    def estimate():
        records = json.loads(boosters_eval("list", "suites", "--json", check=0).stdout)
        return next(r["estimate"] for r in records if r["suite"] == "minimal")

    assert estimate() is None
    boosters_eval("run", "--suite", "minimal", "-q", check=0)
    assert estimate().endswith(" s")


def test_seeds_auto_stops_when_every_pair_has_a_verdict(boosters_eval):
    done = boosters_eval(
        "compare", "-d", "california", "-l", "boosters", "-s", "auto", "--max-seeds", "10",
        "--variants", "good:n_estimators=20", "bad:n_estimators=2", "-f", "json", check=0,
    )  # fmt: skip
    document = json.loads(done.stdout)
    assert document["metadata"]["seeds_rule"].startswith("seeds were added at up to")
    assert document["metadata"]["alpha"] == document["metadata"]["environment"]["alpha"] < 0.05
    assert len(document["results"]) == 10
    assert "5 seeds: every pair has a verdict" in done.stderr


def test_version_is_shown(boosters_eval):
    assert re.fullmatch(r"boosters-eval \d+\.\d+\.\d+(\.dev\d+)?\n", boosters_eval("--version", check=0).stdout)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signal_ends_the_run_like_ctrl_c(place, number):
    """One of the two cells hangs: the run cannot end before the signal comes."""
    command = [*PROGRAM, "compare", "-d", "diabetes", "-l", "faulty", "-s", "1", "-v", "--jobs", "2"]
    command += ["--variants", "fine:max_depth=1", "stuck:max_depth=4"]
    process = subprocess.Popen(command, env=environment(PLUGINS), stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if "1/2 done" in line:
            break
    process.send_signal(number)
    assert "--resume" in process.communicate()[1]
    assert process.returncode == 128 + number
