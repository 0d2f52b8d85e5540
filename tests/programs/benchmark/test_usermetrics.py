"""What a user registers or passes works in workers too, or is refused before anything runs."""

import functools
import json
import runpy
import sys
import textwrap

import pytest

import tiny
from boosters_eval import (
    RUNNERS,
    ConfigError,
    metric_from_callable,
    prepare_comparison,
    register_metric,
    run_suite,
)
from boosters_eval.datasets import DATASETS
from boosters_eval.engine import warm
from boosters_eval.engine.processes import find_program_path
from boosters_eval.metrics import METRICS, declare_metric
from boosters_eval.programs.benchmark.spec import find_registered, metric_names

RUNNER = """
import numpy as np
from boosters_eval import Runner
from boosters_eval.runners import Translation

class Constant(Runner):
    name = "constant"
    module = "numpy"
    distributions = ("numpy",)
    install = "numpy"

    @classmethod
    def unsupported(cls, request):
        return None

    @classmethod
    def translate(cls, request):
        return Translation(request, native={})

    @classmethod
    def build(cls, translation, data):
        return data.y

    @classmethod
    def fit(cls, translation, dataset):
        return float(dataset.mean())

    @classmethod
    def predict(cls, translation, model, x):
        return np.full(len(x), model)


class Half(Runner):
    name = "half"


class Impostor(Constant):
    name = "xgboost"
"""
OWN = """
import numpy as np
from boosters_eval import DatasetConfig, RUNNERS, compare, register_dataset, register_metric
from my_runner import Constant

def worst(predictions, labels):
    return float(np.max(abs(predictions - labels)))

def bias(predictions, labels):
    return float(abs(np.mean(predictions - labels)))

bias.higher_is_better = False

def rows():
    x = np.random.default_rng(0).normal(size=(40, 2))
    return x, x.sum(axis=1)
"""
REGISTERED = """
register_metric("worst_error", worst, higher_is_better=False, tasks=["regression"])
OWN = DatasetConfig(name="own", task="regression", loader=lambda: rows(), primary_metric="worst_error")
register_dataset(OWN)
RUNNERS.register("constant", Constant)
"""
SCRIPT = f"""{OWN}
if __name__ == "__main__":
{textwrap.indent(REGISTERED, "    ")}
    done = compare("own", "constant", seeds=1, metrics=[bias, "worst_error"])
    (result,) = done.results
    import json
    print(json.dumps([result.metrics, result.primary_metric, done.metadata.user_metrics]))
"""
SUITE = f"""{OWN}{REGISTERED}
from boosters_eval import BenchmarkConfig, BenchmarkSuite
CONFIG = BenchmarkConfig(
    name="own/gbdt", dataset=OWN, task="regression", libraries=["constant"],
    metrics=["worst_error"],
)
SUITE = BenchmarkSuite(name="own", configs=[CONFIG], default_seeds=1)
"""


@pytest.fixture
def place(tmp_path, monkeypatch, home):
    """A folder with a user's files, on Python's path; what they register is forgotten afterwards."""
    (tmp_path / "my_runner.py").write_text(RUNNER)
    (tmp_path / "my_script.py").write_text(SCRIPT)
    (tmp_path / "my_suite.py").write_text(SUITE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    before = {registry: set(registry) for registry in (METRICS, DATASETS, RUNNERS)}
    yield tmp_path
    for registry, names in before.items():
        for name in set(registry) - names:
            registry.unregister(name)
    for name in ("my_runner", "my_script", "my_metrics"):
        sys.modules.pop(name, None)


def test_a_script_registers_metrics_data_and_a_library_and_passes_functions_to_spawned_workers(
    place, monkeypatch, capsys
):
    monkeypatch.setenv("BOOSTERS_EVAL_START_METHOD", "spawn")
    try:
        runpy.run_path("my_script.py", run_name="__main__")
    finally:
        warm.close_kept()
    metrics, primary, users = json.loads(capsys.readouterr().out)
    assert {"rmse", "worst_error", "bias"} <= metrics.keys()
    assert primary == "worst_error"
    assert users == {"bias": False, "worst_error": False}


def test_a_suite_file_registers_them_for_forked_workers(place):
    done = run_suite(f"{place}/my_suite.py:SUITE", executor=tiny.shared_pool())
    (result,) = done.results
    assert result.library == "constant"
    assert "worst_error" in result.metrics
    assert "worst_error" in result.trivial["mean"]


def nested():
    def inner(predictions, labels):
        return 1.0

    return inner


class Scorer:
    def __call__(self, predictions, labels):
        return 1.0

    def method(self, predictions, labels):
        return 1.0


def undirected(predictions, labels):
    return 1.0


def shadowed(predictions, labels):
    return 1.0


first = shadowed


def shadowed(predictions, labels):
    return 2.0


@pytest.mark.parametrize(
    ("metric", "told"),
    [
        (metric_from_callable(lambda p, y: 1.0, higher_is_better=True, name="anonymous"), "a lambda has none"),
        (metric_from_callable(nested(), higher_is_better=True), "'inner' is defined inside a function"),
        (Scorer(), "by its name, and this is a Scorer"),
        (Scorer().method, "by its name, and this is a method"),
        (functools.partial(undirected), "by its name, and this is a partial"),
        (metric_from_callable(first, higher_is_better=True), "is not this function"),
        (undirected, "must say which way is better: set undirected.higher_is_better to True or False"),
        (3, "The 'metrics' parameter must be names, functions or Metrics. Got 3 instead."),
        (metric_from_callable(max, higher_is_better=True, name="rmse"), "Two different metrics are named 'rmse'"),
    ],
)
def test_what_workers_cannot_find_is_refused_before_anything_is_planned(metric, told):
    known = set(METRICS)
    with pytest.raises(ConfigError) as caught:
        prepare_comparison("no such data", "sklearn", metrics=[metric])
    assert told in str(caught.value)
    assert set(METRICS) == known


def test_what_was_registered_but_cannot_travel_is_refused_too(place):
    register_metric("anonymous", lambda p, y: 1.0, higher_is_better=True)
    declare_metric("from_a_file", higher_is_better=True)
    for name, told in (("anonymous", "a lambda has none"), ("from_a_file", "only known by its values")):
        with pytest.raises(ConfigError, match=told):
            prepare_comparison("iris", "sklearn", metrics=name)


def test_a_function_of_a_prompt_is_refused():
    typed = {"__name__": "__main__"}
    exec(compile("def typed(p, y): return 1.0", "<ipython-input-1>", "exec"), typed)
    with pytest.raises(ConfigError, match="'typed' is defined in a notebook or prompt: put it"):
        metric_names([typed["typed"]])


def test_a_function_of_a_module_that_is_run_as_the_program_travels_by_the_modules_name(place, monkeypatch):
    """As `python -m my_package.program` runs it: relative imports work in workers too."""
    package = place / "my_package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "helper.py").write_text("VALUE = 0.5\n")
    (package / "program.py").write_text(
        "from .helper import VALUE\ndef half(p, y): return VALUE\nhalf.higher_is_better = True\n"
        "from boosters_eval.programs.benchmark.spec import find_registered, metric_names\n"
        "metric = find_registered(metric_names([half])[0]) if __name__ == '__main__' else None\n"
    )
    metric = runpy.run_module("my_package.program", run_name="__main__", alter_sys=True)["metric"]
    assert (metric.module, metric.file) == ("my_package.program", str(package / "program.py"))
    assert metric.find()(1, 2) == 0.5
    for name in [name for name in sys.modules if name.startswith("my_package")]:
        monkeypatch.delitem(sys.modules, name)


def test_workers_find_what_a_notebook_finds_beside_it(tmp_path, monkeypatch):
    """A kernel has an empty entry for the current folder, which is not the first one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["/first", "", "/last"])
    assert find_program_path() == ["/first", "/last", str(tmp_path)]
    monkeypatch.setattr(sys, "path", [str(tmp_path), "", "/last"])
    assert find_program_path() == ["/last", str(tmp_path)]


def test_the_content_of_a_functions_file_is_part_of_the_plan(place):
    file = place / "my_metrics.py"
    file.write_text("def half(p, y): return 0.5\nhalf.higher_is_better = True\n")
    import my_metrics

    assert metric_names([my_metrics.half, "rmse"]) == ["half", "rmse"]
    before = find_registered("half")
    assert (before.module, before.function) == ("my_metrics", None)
    file.write_text(file.read_text() + "# changed\n")
    after = find_registered("half")
    assert before.digest != after.digest
    assert after.model_copy(update={"digest": before.digest}) == before
