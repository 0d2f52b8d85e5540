"""From a specification to results: bindings, reasons why something cannot run, failures, and going on after a kill."""

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import yaml

import boosters_eval
from boosters_eval import compare_paper, list_paper_targets, load_run, report_paper, run_paper, validate_paper
from boosters_eval.cli.app import run as command_line
from boosters_eval.core.errors import BuildError, ConfigError, RunError
from boosters_eval.datasets import materialize, open_stored, resolve_dataset
from boosters_eval.engine.runs import find_run, verify
from boosters_eval.metrics.task import Task
from boosters_eval.programs.history.query import read_cell_seconds
from boosters_eval.programs.paper.comparison import PaperResults
from boosters_eval.programs.paper.evaluate import open_model, predict
from boosters_eval.programs.paper.judge import compare_results
from boosters_eval.programs.paper.plan import plan_targets
from boosters_eval.programs.paper.request import ListPaperRequest
from boosters_eval.programs.paper.specification import PaperSpecification, read_specification
from boosters_eval.programs.paper.targets import find_obstacle, find_targets, list_targets, match_metrics
from boosters_eval.runners import RUNNERS
from boosters_eval.runners.base import FitRequest
from boosters_eval.runners.parameters import TrainingConfig
from stamping import SLOW, Stamping, by_seed
from tiny import shared_pool

FIXTURES = Path(__file__).parents[2] / "fixtures"
FUNCTIONS = """
import os, time
def good(seed, dataset, bias=0.0): return {"accuracy": 0.9 + seed / 1e6 + bias, "extra": 1}
def number(): return 0.5
def spelt(): return {"Accuracy (%)": 91.0, "loss": 1}
def other(): return {"loss": 1}
def everything(**request): return {"accuracy": len(request["metrics"])}
def once(seed): return {"accuracy" if seed == 42 else "loss": 0.9}
def nan(): return {"accuracy": float("nan")}
def text(): return "0.9"
def nothing(): return {}
def boom(): raise RuntimeError("no luck")
def leave(): os._exit(3)
def slow(seed, marks):
    with open(os.path.join(marks, f"{seed}"), "a") as file: file.write("x")
    time.sleep(60 if seed == 1379 and not os.path.exists(os.path.join(marks, "go")) else 0)
    return {"accuracy": 1.0}
print("imported", flush=True)
open("imported", "w").close()
"""
PROGRAM = """
import json, sys
request = json.load(sys.stdin)
how = sys.argv[1]
if how != "mute": print("chatter {")
if how == "fine": print(json.dumps({"metrics": {"accuracy": request["seed"] / 1e6}}))
if how == "filled": print(json.dumps({"accuracy": float(sys.argv[2]), "n": len(sys.argv[3])}))
if how == "twice": print('{"accuracy": 0.9, "accuracy": 0.1}')
if how == "nan": print('{"accuracy": NaN}')
if how == "list": print("[1]")
if how == "exit": sys.exit(4)
"""


def write(folder, rows, *, dataset=None, **changes):
    """A specification of one table with one row per binding."""
    names = list(rows)
    content = {
        "paper": "P",
        "seeds": 2,
        "tables": [
            {
                "id": "T",
                "datasets": [dataset or {"name": "D"}],
                "models": [{"name": name, **({"run": rows[name]} if rows[name] else {})} for name in names],
                "results": [
                    {"model": name, "dataset": (dataset or {"name": "D"})["name"], "metrics": {"accuracy": 0.9}}
                    for name in names
                ],
            }
        ],
        "reproduction_targets": {"primary": [{"table": "T", "rows": names}]},
        **changes,
    }
    (folder / "functions.py").write_text(FUNCTIONS, encoding="utf-8")
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    path = folder / "benchmarks.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    return path


def ran(path, **options):
    results = run_paper(path, executor=shared_pool(), **options)
    assert PaperResults.model_validate_json(results.model_dump_json()) == results
    return {found.row: found for found in results.targets}, results


@pytest.mark.parametrize(
    ("place", "processor"),
    [(lambda _: SLOW, "Slow CPU"), (by_seed, "Slow CPU and Fast CPU")],
)
def test_hardware_is_that_of_the_machines_that_ran_the_cells(home, tmp_path, place, processor):
    path = write(tmp_path, {"good": call("good", bias=0.01)})
    with Stamping(place=place) as nodes:
        found = run_paper(path, executor=nodes).environment
    assert found["cpu_model"] == processor
    assert ("cpu_cores" in found) == (place is not by_seed)


def call(name, **arguments):
    return {"callable": f"functions:{name}", "arguments": arguments}


def program(*words):
    return {"command": [sys.executable, "program.py", *words]}


def test_functions_and_programs_are_run_once_per_seed_and_failures_are_kept_apart(home, tmp_path):
    path = write(
        tmp_path,
        {
            "good": call("good", bias=0.01),
            "number": call("number"),
            "everything": call("everything"),
            "nan": call("nan"),
            "text": call("text"),
            "nothing": call("nothing"),
            "boom": call("boom"),
            "leave": call("leave"),
            "no such": call("absent"),
            "needs": call("slow"),
            "fine": program("fine"),
            "spelt": call("spelt"),
            "other": call("other"),
            "filled": program("filled", "{seed}", "{dataset}{other}"),
            "bad number": program("nan"),
            "list": program("list"),
            "once": call("once"),
            "twice": program("twice"),
            "mute": program("mute"),
            "exit": program("exit"),
            "silent": program("silent"),
        },
    )
    found, results = ran(path, command_line=("paper", "run"))
    assert found["good"].values == {"accuracy": (0.910042, 0.911379)}
    assert found["good"].std_over == "seeds"
    assert found["good"].seeds == (42, 1379)
    assert found["number"].values == {"accuracy": (0.5, 0.5)}
    assert found["everything"].values == {"accuracy": (1.0, 1.0)}
    assert found["fine"].values == {"accuracy": (0.000042, 0.001379)}
    assert found["filled"].values == {"accuracy": (42.0, 1379.0)}
    assert found["spelt"].values == {"accuracy": (91.0, 91.0)}
    assert found["once"].values == {"accuracy": (0.9,)}
    once = compare_results(read_specification(path), results)
    assert {"'accuracy' has values from 1 of 2 repeats only."} == {
        each.explanation for target in once.targets if target.row == "once" for each in target.metrics
    }
    assert found["other"].warnings == ("the metric 'accuracy' was not returned, but loss",)
    assert (found["good"].versions, found["fine"].versions) == ({"Python": platform.python_version()}, {})
    for row, sentence in {
        "nan": "The metric 'accuracy' must be finite",
        "text": "Metrics must be numbers by name",
        "nothing": "Metrics must be numbers by name",
        "boom": "RuntimeError: no luck",
        "leave": "exit status 3",
        "no such": "The module 'functions' has no function 'absent'",
        "needs": "missing 1 required positional argument: 'marks'",
        "bad number": "NaN is no number of JSON",
        "list": "Metrics must be numbers by name",
        "twice": "a name is there twice",
        "mute": "It printed nothing",
        "exit": "ended with exit code 4",
        "silent": "must be a JSON object of metrics. Got 'chatter {'",
    }.items():
        assert found[row].status == "failed"
        assert sentence in found[row].reason
        assert found[row].values == {}
    assert results.environment["command"] == "boosters-eval paper run"
    assert not (Path.cwd() / "imported").exists()  # imported by the worker, in the specification's folder
    assert all(not fault for _, fault in verify(find_run(results.run_id)))


def test_a_library_row_follows_the_paper_in_split_preprocessing_parameters_and_stopping(home, tmp_path):
    dataset = {"name": "D", "use": "breast_cancer", "sizes": {"train": 200, "validation": 100, "test": 150}}
    run = {
        "library": "xgboost",
        "profile": "defaults",
        "parameters": {"n_estimators": 30},
        "native": {"learning_rate": 0.2},
        "preprocessing": ["standardize"],
        "early_stopping": {"rounds": 5, "metric": "error"},
    }
    found, results = ran(write(tmp_path, {"row": run, "other": {**run, "library": "sklearn"}}, dataset=dataset))
    row = found["row"]
    assert (row.status, row.reason, row.std_over, row.planned) == ("ok", "", "splits", 2)
    assert all(0.9 < value <= 1 for value in row.values["accuracy"])
    assert row.conditions["rows"] == "200 training, 150 test"
    assert row.conditions["early stopping"] == "5 rounds on error"
    shown = row.conditions["parameters"]
    assert "eta=0.2" in shown
    assert "eval_metric=error" in shown
    assert "max_depth" not in shown  # left to the library
    assert row.versions.keys() == {"xgboost"}
    assert row.warnings == ()
    assert found["other"].reason == "The library 'sklearn' does not stop early on a metric of choice."
    assert "machine" not in results.environment
    assert "cpu_model" in results.environment
    with pytest.raises(RunError, match="it follows a paper; see 'boosters-eval paper compare'"):
        load_run(results.run_id)  # a baseline made of it would forget the paper's way
    assert read_cell_seconds() == {}


def test_a_metric_in_percent_is_computed_by_a_library_if_its_values_tell(tmp_path):
    path = write(tmp_path, {"row": {"library": "xgboost"}})
    path.write_text(path.read_text().replace("accuracy: 0.9", "{'Accuracy (%)': 90.0, 'MAPE (%)': 12.0}"))
    (target,) = find_targets(read_specification(path), tmp_path)
    assert match_metrics(target, Task.BINARY) == {"Accuracy (%)": "accuracy"}


def test_a_version_that_is_not_exact_leaves_the_row_out_and_listing_installs_nothing(home, tmp_path):
    rows = {"about": "xgboost==1.3.*", "unknown": "xgbost==1.3", "exact": "xgboost==1.3.3"}
    bound = {name: {"library": library} for name, library in rows.items()}
    path = write(tmp_path, bound, dataset={"name": "Breast_Cancer"})
    about, unknown, exact = find_targets(read_specification(path), tmp_path)
    assert "must be exact, such as xgboost==1.2.3. Got 'xgboost==1.3.*'" in find_obstacle(about)
    assert "There is no library 'xgbost' here. Did you mean 'xgboost'?" in find_obstacle(unknown)
    assert find_obstacle(exact) is None
    assert not (home / "builds").exists()


def test_a_version_that_cannot_be_installed_leaves_the_row_out(home, tmp_path, monkeypatch):
    def refused(names):
        raise BuildError(f"{names[0]} cannot be installed; pip says:", ["ERROR: no such version"])

    monkeypatch.setattr("boosters_eval.programs.paper.plan.resolve_competitors", refused)
    path = write(tmp_path, {"row": {"library": "xgboost==0.0.0"}}, dataset={"name": "Breast_Cancer"})
    planned = plan_targets("P", list(find_targets(read_specification(path), tmp_path)), seeds=1)
    assert not planned.plan.cells
    assert planned.targets[0].reason == "xgboost==0.0.0 cannot be installed; pip says: ERROR: no such version"


@pytest.mark.slow
def test_a_row_is_trained_with_the_version_that_the_paper_used(home, tmp_path):
    data = {"name": "Breast_Cancer", "sizes": {"train": 300, "test": 100}}
    rows = {"theirs": {"library": "xgboost==3.0.5"}, "ours": {"library": "xgboost"}}
    path = write(tmp_path, rows, dataset=data, conditions={"versions": {"xgboost": "3.0"}})
    found, results = ran(path)
    assert found["theirs"].versions == {"xgboost": "3.0.5"}
    assert found["ours"].versions == {"xgboost": RUNNERS["xgboost"].version()}
    report = compare_results(read_specification(path), results)
    assert [(item.what, item.where) for item in report.differences if "xgboost" in item.what] == [
        ("version of xgboost", ("T: ours, Breast_Cancer",))
    ]


def test_a_saved_model_is_scored_once_on_all_rows(home, tmp_path):
    shutil.copy(FIXTURES / "stump.json", tmp_path / "model.json")
    rows = {"saved": {"model": "model.json"}, "ours": None, "absent": {"model": "other.ubj"}}
    found, _ = ran(write(tmp_path, rows, dataset={"name": "Breast_Cancer"}))
    data = open_stored(materialize(resolve_dataset("breast_cancer")).path)
    expected = float(((data.x[:, 23] < 888.3) == (data.y == 1)).mean())  # the one split of the model in the file
    assert found["saved"].values == {"accuracy": (pytest.approx(expected),)}
    assert found["saved"].conditions["test rows"] == "all 569"
    assert found["saved"].std_over is None
    assert found["ours"].reason.startswith("Nothing is bound to this row")
    assert found["absent"].reason.endswith("other.ubj does not exist.")


def test_a_model_of_the_command_line_stands_for_an_unbound_row_and_is_repeated_over_random_test_rows(tmp_path):
    dataset = {"name": "D", "use": "breast_cancer", "sizes": {"test": 100}}
    path = write(tmp_path, {"ours": None}, dataset=dataset)
    targets = find_targets(read_specification(path), tmp_path, FIXTURES / "stump.json")
    (planned,) = plan_targets("P", targets, seeds=2).targets
    assert (planned.carrier, planned.repeats, planned.std_over) == ("xgboost", 2, "splits")
    assert "may have been trained on" in planned.warnings[0]
    assert str(tmp_path) not in planned.spec.model_dump_json()  # a run does not depend on where its files are


def test_what_cannot_run_here_says_why(home, tmp_path):
    (tmp_path / "model.pkl").write_bytes(b"")
    (tmp_path / "model.onnx").write_bytes(b"")
    (tmp_path / "link.ubj").symlink_to("/etc/hostname")
    reasons = {
        "library": ({"library": "xgbost"}, "There is no library 'xgbost' here. Did you mean 'xgboost'?"),
        "step": ({"library": "xgboost", "preprocessing": ["onehot"]}, "Did you mean 'one-hot'?"),
        "pickle": ({"model": "model.pkl"}, "pass allow_pickle=True."),
        "format": ({"model": "functions.py"}, "name it by 'format' (xgboost,"),
        "link": ({"model": "link.ubj"}, "leads out of the specification's folder: give it with 'model'."),
        "module": ({"callable": "absent_module:f"}, "There is no module 'absent_module'"),
        "program": ({"command": ["no-such-program"]}, "The program 'no-such-program' is not there."),
        "data": ({"library": "xgboost"}, "There is no data set 'd' here: name one by 'use'."),
    }
    found, results = ran(write(tmp_path, {name: run for name, (run, _) in reasons.items()}))
    assert {row.status for row in found.values()} == {"not_runnable"}
    assert results.run_id is None
    for name, (_, sentence) in reasons.items():
        assert sentence in found[name].reason


def test_a_row_on_a_device_that_is_not_here_is_not_run_on_the_cpu(home, tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    rows = {
        "canonical": {"library": "xgboost", "parameters": {"device": "cuda"}},
        "native": {"library": "xgboost", "native": {"device": "cuda"}},
    }
    found, _ = ran(write(tmp_path, rows, dataset={"name": "D", "use": "breast_cancer"}))
    assert {row.status for row in found.values()} == {"not_runnable"}
    assert "xgboost cannot run this: there is no CUDA device here" in found["canonical"].reason
    assert "must be given as the canonical 'device'" in found["native"].reason


@pytest.mark.parametrize(
    ("run", "sentence"),
    [
        ({"model": "/etc/model.ubj"}, "must be relative to it and stay in its folder. Got '/etc/model.ubj' instead."),
        ({"model": "../model.ubj"}, "Got '../model.ubj' instead."),
        ({"callable": "os.system"}, "A callable must be written 'module:function'. Got 'os.system' instead."),
        ({"library": "xgboost", "parameters": {"max_dept": 3}}, "Did you mean 'max_depth'?"),
        ({"library": "xgboost", "parameters": {"early_stopping_rounds": 3}}, "'early_stopping: {rounds: ...}'"),
    ],
)
def test_a_binding_that_is_a_mistake_is_refused_with_its_line(tmp_path, run, sentence):
    path = write(tmp_path, {"row": run})
    with pytest.raises(ConfigError) as error:
        run_paper(path)
    assert sentence in str(error.value)
    assert f"{path}, line " in str(error.value)


def test_a_row_without_a_group_is_not_run_by_that_of_a_group(tmp_path):
    path = write(tmp_path, {"XGBoost": call("number")})
    content = yaml.safe_load(path.read_text())
    content["tables"][0]["models"].insert(0, {"name": "XGBoost", "group": "Tuned", "run": call("boom")})
    path.write_text(yaml.safe_dump(content))
    bindings = {found.row: found.binding.callable for found in find_targets(read_specification(path), tmp_path)}
    assert bindings["XGBoost"] == "functions:number"


def test_only_names_targets_and_suggests_the_nearest(home, tmp_path):
    path = write(tmp_path, {"good": call("good"), "boom": call("boom")})
    found, _ = ran(path, only=["T:good"], seeds=1)
    assert list(found) == ["good"]
    with pytest.raises(ConfigError) as error:
        run_paper(path, only="T:god:D")
    assert str(error.value) == (
        "The 'only' parameter must name a target as TABLE, TABLE:ROW or TABLE:ROW:DATASET. Got 'T:god:D' instead."
        " Did you mean 'T:good:D'?"
    )


def test_python_validates_lists_compares_and_reports_without_a_file(home, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path, {"good": call("number"), "unbound": None})
    before = set(tmp_path.iterdir())
    options = {"seeds": 1, "executor": shared_pool(), "name": "mine"}
    results = run_paper(str(path), only="T:good", **options)
    assert find_run("mine").run_id == results.run_id
    comparison = compare_paper(results, path)
    assert comparison.targets == validate_paper(path, only=["T:good"], **options).targets
    assert (comparison.verdict, comparison.exit_code, comparison.files) == ("not reproduced", 1, ())
    assert report_paper(comparison).startswith("# Benchmark Validation Report\n")
    assert report_paper(comparison, format="html").startswith("<!doctype html>")
    good, unbound = list_paper_targets(path)
    assert (good.runnable, good.runs_by, good.dataset) == (True, "callable functions:number", "D")
    assert unbound.reason == "Nothing is bound to this row: give it a 'run', or its model with 'model'."
    written = set(tmp_path.iterdir()) - before - {tmp_path / "__pycache__"}  # of the functions, where Python keeps it
    assert written == {home, tmp_path / "imported"}


def test_the_targets_are_a_document_too(tmp_path):
    path = write(tmp_path, {"good": call("number"), "unbound": None})
    listed = list_targets(ListPaperRequest(files=[path]))
    assert f"## {path}: " in listed.to_markdown().replace("\\_", "_")
    assert "callable functions:number" in listed.to_html()
    assert [record["runnable"] for record in json.loads(listed.to_json())] == [True, False]


def test_python_is_told_of_parameters(tmp_path):
    path = write(tmp_path, {"good": call("good")})
    for options, sentence in (
        ({"resume": True, "rerun_failed": True}, "Use either 'resume' or 'rerun_failed', not both."),
        ({"jobs": 0}, "The 'jobs' parameter must be a count from 1 to 4096. Got 0 instead."),
        ({"threads": 0}, "The 'threads' parameter must be a count of at least 1, or -1. Got 0 instead."),
        ({"output": "x"}, "run_paper() has no parameter 'output'."),
    ):
        with pytest.raises(ConfigError) as error:
            run_paper(path, **options)
        assert str(error.value) == sentence
    with pytest.raises(
        ConfigError, match=r"The 'results' parameter must be a file of results, or what run_paper\(\) gives"
    ):
        compare_paper(5, path)
    with pytest.raises(ConfigError, match=r"Unknown format 'pdf'\. Known: html, json, latex, markdown, yaml\."):
        report_paper(
            compare_paper(run_paper(path, seeds=1, home=tmp_path / "home", executor=shared_pool()), path), format="pdf"
        )


def test_the_command_exits_2_unless_all_targets_ran(home, tmp_path, kept_pool, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, {"good": call("good"), "other": call("other"), "unbound": None})
    assert command_line(["paper", "run", "--spec", "benchmarks.yaml", "--only", "T:good", "-o", "out", "-q"]) == 0
    written = PaperResults.model_validate_json(Path("out/results.json").read_text(encoding="utf-8"))
    assert [found.status for found in written.targets] == ["ok"]
    assert command_line(["paper", "run", "--spec", "benchmarks.yaml", "--only", "T:other", "-o", "out", "-q"]) == 0
    assert "Warning: T:other:D: the metric 'accuracy' was not returned, but loss\n" in capsys.readouterr().err
    assert command_line(["paper", "run", "--spec", "benchmarks.yaml", "--only", "T:unbound", "-q"]) == 2
    assert "T:unbound:D: not runnable: Nothing is bound to this row" in capsys.readouterr().err
    assert command_line(["paper", "run", "--spec", "benchmarks.yaml", "--threads", "0"]) == 3
    assert "The '--threads' option must be" in capsys.readouterr().err
    assert command_line(["paper", "run", "--spec", "missing.yaml"]) == 3
    assert command_line(["paper", "run", "--spec", "benchmarks.yaml", "--resume", "--rerun-failed"]) == 3
    assert "missing.yaml does not exist" in capsys.readouterr().err


def test_listing_imports_neither_science_nor_what_a_specification_names(tmp_path):
    write(tmp_path, {"good": call("good"), "unbound": None, "library": {"library": "xgboost"}})
    (tmp_path / "other.yaml").write_text("a: 1\n", encoding="utf-8")
    code = (
        "import sys; from boosters_eval.cli.app import run; code = run(['paper', 'list', '--json']);"
        "bad = {'numpy', 'pandas', 'scipy', 'sklearn', 'xgboost', 'functions'} & set(sys.modules);"
        "sys.exit(f'{code} {bad}' if code or bad else 0)"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(boosters_eval.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    listed = {record["row"]: record for record in json.loads(done.stdout)}
    assert listed["good"]["runnable"]
    assert listed["unbound"]["reason"].startswith("Nothing is bound")
    assert "There is no data set 'd'" in listed["library"]["reason"]


def test_a_killed_run_resumes_and_runs_only_what_is_left(home, tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()
    path = write(tmp_path, {"slow": call("slow", marks=str(marks))})
    words = [sys.executable, "-m", "boosters_eval", "paper", "run", "--spec", str(path), "-j", "1", "-o", "out"]
    first = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(1200):
            if (marks / "1379").exists():
                break
            time.sleep(0.05)
        assert (marks / "1379").exists()
    finally:
        first.send_signal(signal.SIGKILL)
        first.wait()
    (marks / "go").touch()
    assert not (tmp_path / "out" / "results.json").exists()
    done = subprocess.run([*words, "--resume"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (marks / "42").read_text() == "x"  # finished before the kill, so it was not run again
    assert (marks / "1379").read_text() == "xx"
    results = PaperResults.model_validate_json((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    assert results.targets[0].values == {"accuracy": (1.0, 1.0)}
    assert results.environment["sessions"] == "2"


def test_an_onnx_model_is_scored_by_onnxruntime(tmp_path):
    pytest.importorskip("onnxruntime")
    onnx = pytest.importorskip("onnx")
    weights = onnx.helper.make_tensor("w", onnx.TensorProto.FLOAT, [2, 1], [1.0, 2.0])
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("MatMul", ["x", "w"], ["y"])],
        "linear",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [None, 2])],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [None, 1])],
        [weights],
    )
    opset = [onnx.helper.make_opsetid("", 13)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opset, ir_version=8), tmp_path / "model.onnx")
    model = open_model("onnx", tmp_path / "model.onnx")
    request = FitRequest(task=Task.REGRESSION, training=TrainingConfig())
    assert predict("onnx", model, request, np.array([[1, 1], [0, 3]], np.float32)).ravel().tolist() == [3.0, 6.0]


def test_an_evaluator_is_told_apart_by_what_it_lacks(tmp_path: Path) -> None:
    text = {"paper": "p"}
    row = {"name": "m", "run": {"evaluator": "perplexity", "model": "weights"}}
    result = {"model": "m", "dataset": "d", "metrics": {"perplexity": 20.0}}
    text["tables"] = [{"id": "T", "datasets": [{"name": "d", "use": "no.txt"}], "models": [row], "results": [result]}]
    text["reproduction_targets"] = {"primary": [{"table": "T", "rows": ["m"]}]}
    spec = PaperSpecification.model_validate(text)
    (tmp_path / "weights").mkdir()
    (target,) = find_targets(spec, tmp_path)
    assert "weights" in (find_obstacle(target) or "")  # a folder without a model
    (tmp_path / "weights" / "config.json").write_text("{}")
    (tmp_path / "weights" / "model.safetensors").write_bytes(b"")
    assert "no.txt" in (find_obstacle(target) or "")
