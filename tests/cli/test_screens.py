"""What a person sees at 60, 80 and 120 columns: golden files, through the commands and their real renderers."""

import io
import json
import random
import re
import shlex
import sys
import textwrap

import pytest
from rich.cells import cell_len

import factories
from boosters_eval.cli.app import run
from boosters_eval.cli.output import Terminal, note
from boosters_eval.core.registry import Registry
from boosters_eval.datasets.config import AuditFinding, DataAudit
from boosters_eval.metrics.task import Task
from boosters_eval.programs.baseline.model import save_baseline
from boosters_eval.programs.baseline.snapshot import make_baseline
from boosters_eval.programs.benchmark.compare import ComparisonFindings, _audit_lines
from boosters_eval.programs.benchmark.records import Unsupported
from boosters_eval.programs.benchmark.request import CompareRequest
from boosters_eval.programs.catalog import mappings
from boosters_eval.runners.parameters import Mark

WIDTHS = (60, 80, 120)
LIBRARIES = ("boosters", "xgboost", "lightgbm", "catboost", "sklearn")
METRICS = {"rmse": 0.46, "mae": 0.31, "r2": 0.84, "mape": 0.18, "rmsle": 0.12, "median_ae": 0.21}
MARKS = (Mark(parameter="max_bins", kind="approximated", reason="one bin is kept for zero and one for missing values"),)


def show(found, **request):
    """What `compare` shows of results."""
    ComparisonFindings(found, CompareRequest(**request)).show(Terminal())


class Screen(io.StringIO):
    """A terminal that shows text only."""

    encoding = "utf-8"

    def isatty(self):
        return True


@pytest.fixture
def screen(tmp_path, monkeypatch, golden):
    """What is printed at each width is as the golden file says, and never wider than the terminal."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BOOSTERS_EVAL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)

    def check(name, action):
        for width in WIDTHS:
            monkeypatch.setenv("COLUMNS", str(width))
            with monkeypatch.context() as patch:
                patch.setattr(sys, "stdout", Screen())
                action()
                text = sys.stdout.getvalue()
            assert max(map(cell_len, text.splitlines())) <= width
            assert "…" not in text
            golden(f"screens/{name}-{width}.txt", text)

    return check


def score(name, library, index):
    """The same in every run: the split moves all libraries alike, and each a little for itself."""
    split = random.Random(f"{name}{index}").gauss(0, 0.02)
    own = random.Random(f"{name}{library}{index}").gauss(0, 0.004)
    return METRICS[name] * (1 + split + own - 0.04 * (library == "lightgbm"))


def results(config="california/gbdt", libraries=LIBRARIES, metrics=tuple(METRICS), factor=1.0, time=0.4, **changes):
    return [
        factories.result(
            config,
            library,
            seed,
            metrics={name: factor * score(name, library, seed) for name in metrics},
            train_time_s=time + 0.01 * seed,
            predict_time_s=0.012,
            marks=MARKS if library == "lightgbm" else (),
            **changes,
        )
        for library in libraries
        for seed in range(5)
    ]


def test_a_comparison_of_five_libraries_by_six_metrics(screen):
    found = factories.collection(results(), suite="compare", run_id="0123456789abcdef")
    screen("compare", lambda: show(found))


def test_a_comparison_with_failures_and_two_benchmarks(screen):
    rule = {"trivial": {"mean": dict.fromkeys(METRICS, 0.2)}}
    found = factories.collection(
        [*results(libraries=LIBRARIES[:3]), *results("diabetes/gbdt", LIBRARIES[:2], ("rmse", "mae"), **rule)],
        [factories.error("california/gbdt", "catboost", seed) for seed in range(5)]
        + [
            factories.error(
                "diabetes/gbdt", "xgboost", 7, error_message="killed by SIGSEGV in a thread of the library."
            )
        ],
        unsupported=[factories.absence(Unsupported, "diabetes/gbdt", "sklearn", "it has no such booster")],
        suite="compare",
        run_id="0123456789abcdef",
    )
    screen("compare-failures", lambda: show(found))


@pytest.fixture
def two():
    """The default libraries on two data sets, whose names and metrics are those of real ones."""
    rule = {"trivial": {"mean": {"rmse": 1.15, "mae": 0.9, "r2": 0.0}, "median": {"rmse": 1.2, "mae": 0.9, "r2": -0.1}}}
    names = ("rmse", "mae", "r2")
    found = [*results(metrics=names, **rule), *results("breast_cancer/gbdt", metrics=names, factor=0.3, **rule)]
    return factories.collection(found, suite="compare", run_id="0123456789abcdef")


def shown(found, monkeypatch, width, **how):
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "dumb")
    with monkeypatch.context() as patch:
        screen = Screen()
        patch.setattr("sys.stdout", screen)
        findings, terminal = ComparisonFindings(found, CompareRequest()), Terminal(**how)
        findings.show(terminal)
        return screen.getvalue()


@pytest.mark.parametrize("width", [80, 120])
def test_two_data_sets_of_five_libraries_take_at_most_40_lines_of_a_terminal(two, monkeypatch, width):
    text = shown(two, monkeypatch, width)
    assert len(text.splitlines()) <= 38  # beside the bar of the run, and a note
    assert all(text.count(f"\n{name} ") == 2 for name in LIBRARIES)
    assert "Note:" not in text
    assert "predict the" not in text  # since nobody is as bad


def test_so_do_two_suspect_files_with_a_library_that_failed(two, monkeypatch):
    leak = AuditFinding(kind="leak", text="'settled' alone predicts 'price': R² 1.0", option="--drop settled")
    groups = AuditFinding(
        kind="groups", text="'patient' groups rows whose targets are alike: 0.82", option="--split group:patient"
    )
    audits = {
        name: DataAudit(dataset=name, task=Task.REGRESSION, rows=100, findings=(finding,))
        for name, finding in (("california", leak), ("breast_cancer", groups))
    }
    kept = [one for one in two.results if one.library != "catboost"]
    lost = [factories.error(one.config_name, "catboost", one.seed) for one in two.results if one.library == "catboost"]
    found = factories.remember(factories.collection(kept, lost, run_id="0123456789abcdef"), audits=audits)
    text = shown(found, monkeypatch, 80)
    others = sum(len(textwrap.wrap(line, 78)) for line in _audit_lines(audits, verbose=False))
    others += 2 + 1  # the first failure, broken once, and how many there are
    assert len(text.splitlines()) + others <= 40
    assert [line.split()[1] for line in text.splitlines() if line.startswith("catboost ")] == ["error", "error"]


def test_the_run_and_its_first_failure_are_told_beside_what_does_not_tell_them(two, monkeypatch, capsys):
    two.errors = [factories.error("california/gbdt", "catboost", 1)]
    two.metadata = two.metadata.model_copy(update={"n_cells": 51})
    findings = ComparisonFindings(two, CompareRequest())
    findings.conclude(Terminal())  # in a pipe
    said = capsys.readouterr().err
    assert "Run 0123456789abcdef: 50 results, 1 error." in said
    assert "Error: 1 of 51 cells failed; the first, california/gbdt catboost, seed 1: " in said
    monkeypatch.setattr("sys.stdout", Screen())
    terminal = Terminal()
    findings.conclude(terminal)
    assert capsys.readouterr().err == "Error: 1 of 51 cells failed.\n"
    terminal.emit("{}", "json", None)  # data, though on a terminal
    findings.conclude(terminal)
    assert "the first, california/gbdt catboost" in capsys.readouterr().err


def test_verbose_shows_every_column_and_note_and_quiet_neither(two, monkeypatch):
    text = shown(two, monkeypatch, 120, verbose=True)
    assert "Predict time (s) ↓" in text
    assert text.count("Note: lightgbm: max_bins is approximated") == 1
    assert "predict the median" in text
    alone = shown(two, monkeypatch, 120, quiet=True)
    assert "Library" not in alone
    assert alone.startswith("Which, on california: ")
    assert len([line for line in alone.splitlines() if not line.startswith(" ")]) <= 6


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_command_that_is_broken_over_lines_can_be_pasted(two, monkeypatch, width):
    text = shown(two, monkeypatch, width, quiet=True)
    pasted = re.sub(r"\\\n\s*", "", text[text.index("boosters-eval ") :])
    assert shlex.split(pasted) == shlex.split(
        "boosters-eval compare --dataset california breast_cancer --booster gbdt --library boosters xgboost lightgbm"
        " catboost sklearn --seeds 5 --splits random --timing-mode"
    )


def test_many_data_sets_begin_with_the_answer_over_all_and_have_a_row_each(monkeypatch):
    found = [one for place in range(8) for one in results(f"data{place}/gbdt", metrics=("rmse", "mae"))]
    text = shown(factories.collection(found, suite="compare"), monkeypatch, 80)
    first, *others = text.splitlines()
    assert first == "boosters, xgboost, lightgbm, catboost and sklearn on 8 data sets"
    assert others[0].startswith("Which: in general lightgbm: over 8 data sets, its error is ")
    assert "By data set: lightgbm, best on 8 of 8 data sets." in re.sub(r"\n  ", " ", text)
    assert all(len(re.findall(rf"^data{place} .*best: lightgbm", text, re.MULTILINE)) == 1 for place in range(8))
    assert "Leaderboard over 8 data sets" in text


def test_a_comparison_of_variants_with_long_names(screen):
    variants = ("depthwise-with-many-leaves", "leafwise")
    found = factories.collection(
        [
            found
            for variant in variants
            for found in results(
                f"california/gbdt/{variant}", ("boosters", "数据库"), ("rmse", "mae", "r2"), variant=variant
            )
        ],
        suite="compare",
    )
    screen("compare-variants", lambda: show(found))


def builds():
    """A library, a released version of it, and a wheel with a name of its own, which is worse."""
    versions = {"xgboost": ("3.4.1", 1.0), "xgboost==3.0.5": ("3.0.5", 1.0), "head": ("3.5.0.dev0", 1.06)}
    rows = [
        one.model_copy(update={"library": name})
        for name, (version, factor) in versions.items()
        for one in results(libraries=("xgboost",), metrics=("rmse", "mae"), factor=factor, library_version=version)
    ]
    facts = {name: {"version": version, "digest": factories.digest(name)} for name, (version, _) in versions.items()}
    for name in ("xgboost==3.0.5", "head"):
        facts[name]["library"] = "xgboost"
    found = factories.collection(rows, suite="compare", run_id="0123456789abcdef")
    return factories.remember(found, environment={"targets": facts})


def test_a_comparison_of_builds_shows_their_versions(screen):
    screen("compare-builds", lambda: show(builds()))


def test_a_comparison_of_builds_against_one_of_them(screen):
    found, request = builds(), CompareRequest(against="xgboost==3.0.5")
    findings = ComparisonFindings(found, request, found.regressions("xgboost==3.0.5"))
    screen("compare-against", lambda: findings.conclude(Terminal(quiet=True)))


def test_a_check_of_a_baseline(screen, tmp_path):
    kind = {"library_version": "1.0", "native_params": {"max_depth": 6}}
    before = factories.collection(results(libraries=LIBRARIES[:3], metrics=("rmse", "mae"), **kind), run_id="a" * 16)
    after = results(libraries=("boosters",), metrics=("rmse", "mae"), factor=1.04, time=0.5, **kind)
    after += results(libraries=LIBRARIES[1:3], metrics=("rmse", "mae"), time=0.5, **kind)
    save_baseline(make_baseline(before), tmp_path / "recorded.json")
    factories.collection(after, run_id="b" * 16).to_json(tmp_path / "now.json")
    arguments = ["baseline", "check", "recorded.json", "--results", "now.json"]
    screen("baseline-check", lambda: run(arguments))


def test_the_list_of_data_sets(screen, monkeypatch):
    known = Registry("data set")
    known.register(
        "california",
        factories.dataset("california", n_samples=20640, n_features=8, source="StatLib, Pace & Barry (1997)"),
    )
    known.register(
        "synthetic_quantile_medium",
        factories.dataset(
            "synthetic_quantile_medium", Task.QUANTILE, n_samples=10000, n_features=20, source="generated"
        ),
    )
    lacking = "Data set 'casp' is not downloaded (16 MB): run 'boosters-eval datasets fetch casp'."
    known.register("casp", factories.dataset("casp", n_samples=45730, n_features=9, available=lambda: lacking))
    monkeypatch.setattr("boosters_eval.datasets.DATASETS", known)
    screen("list-datasets", lambda: run(["list", "datasets"]))


def test_an_explanation_of_one_library_and_of_all(screen, monkeypatch):
    record = mappings._record
    monkeypatch.setattr(mappings, "_record", lambda *given: {**record(*given), "version": "1.2.3"})
    screen("explain", lambda: run(["explain", "--library", "lightgbm"]))
    screen("explain-all", lambda: run(["explain", "--all"]))


def test_a_decision_of_the_gate(screen, tmp_path):
    scores = [{"case_id": f"case-{i:02}", "score": 0.99 - 0.012 * i} for i in range(12)]
    (tmp_path / "scores.json").write_text(json.dumps(scores))
    screen("gate", lambda: run(["gate", "--scores", "scores.json", "--threshold", "0.95", "--no-held-out"]))


def test_a_pipe_gets_every_row_in_one_line_however_long(boosters_eval):
    lines = boosters_eval("list", "datasets", check=0).stdout.splitlines()
    assert [line.split()[0] for line in lines[2:5]] == ["california", "diamonds", "diabetes"]
    assert sum("boosters-eval datasets fetch" in line for line in lines) == sum(
        "  no         Data" in line for line in lines
    )
    assert boosters_eval("list", "metrics", check=0).stdout.splitlines()[0].startswith("metric ")


def test_what_is_said_besides_the_result_is_broken_at_words_too(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys, "stderr", Screen())
    note("  leak: 'state' alone predicts 'happy': AUC 1.0000, out of sample [--drop state]")
    assert sys.stderr.getvalue() == (
        "  leak: 'state' alone predicts 'happy': AUC 1.0000, out of\n  sample [--drop state]\n"
    )


@pytest.mark.parametrize("command", [(), ("runs",), ("paper",), ("parity",), ("datasets",), ("compare",)])
def test_help_fits_the_terminal_and_is_whole(command, monkeypatch, capsys):
    for width in (60, 80):
        monkeypatch.setenv("COLUMNS", str(width))
        run([*command, "--help"])
        text = capsys.readouterr().out
        assert max(map(cell_len, text.splitlines())) <= width
        assert not [line for line in text.splitlines()[1:] if line.endswith("...")]
    assert command != ("runs",) or "the commands that go on from it." in " ".join(text.split())
