"""A library may be given by its file or by its class."""

from pathlib import Path

import pytest

from boosters_eval import RUNNERS, BenchmarkConfig, BenchmarkSuite, ConfigError, prepare_comparison
from boosters_eval.core.modules import address_of, named_in
from boosters_eval.datasets import DATASETS
from boosters_eval.programs.benchmark.suites import resolve_suite
from boosters_eval.runners.builds.reference import library_name
from boosters_eval.runners.installed import installed_build

SOURCE = '''
from boosters_eval.runners.sklearn_runner import SklearnRunner

class Mine(SklearnRunner):
    name = "mine"

class Impostor(SklearnRunner):
    name = "xgboost"

class Nothing:
    """Not a runner."""
'''


@pytest.fixture
def file(tmp_path, monkeypatch, home):
    (tmp_path / "mine.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    yield "mine.py"
    if "mine" in RUNNERS:
        RUNNERS.unregister("mine")


def test_the_class_runs_under_its_own_name_and_its_file_is_part_of_the_build(file, tmp_path):
    def build():
        return prepare_comparison("iris", ["sklearn", f"{file}:Mine"], seeds=1).plan.builds["fit"]["mine"]

    before = build()
    assert build() == before
    (tmp_path / file).write_text(SOURCE + "# changed\n")
    assert build().digest != before.digest


def test_another_class_of_the_same_file_that_takes_its_name_is_another_build(file):
    first, second = (named_in(Path(file).absolute(), name, "runner") for name in ("Mine", "Impostor"))
    assert installed_build(first) != installed_build(second)


def test_a_file_that_was_edited_is_run_again_and_one_that_fails_then_changes_nothing(file, tmp_path):
    first = RUNNERS[library_name(f"{file}:Mine")]
    assert RUNNERS[library_name(f"{file}:Mine")] is first
    (tmp_path / file).write_text(SOURCE.replace('name = "mine"', 'name = "mine"; edited = True'))
    assert RUNNERS[library_name(f"{file}:Mine")].edited
    (tmp_path / file).write_text("1 / 0")
    with pytest.raises(ConfigError, match="failed: ZeroDivisionError"):
        library_name(f"{file}:Mine")
    assert address_of(RUNNERS["mine"], "runner")["file"] == str(tmp_path / file)


def test_a_class_is_taken_as_it_is(file):
    runner = RUNNERS[library_name(f"{file}:Mine")]
    assert library_name(runner) == "mine"


def test_a_suite_may_name_one(file):
    data = DATASETS["iris"]
    config = BenchmarkConfig(name="iris/gbdt", dataset=data, task=data.task, libraries=[f"{file}:Mine"])
    suite, _ = resolve_suite(BenchmarkSuite(name="own", configs=[config]))
    assert suite.configs[0].libraries == ("mine",)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("mine.py:Nothing", "The library 'mine.py:Nothing' cannot be registered: it must be a subclass of"),
        ("mine.py:Impostor", "calls itself 'xgboost', which is another library: set another name."),
        ("mine.py:Mien", "has no runner 'Mien'. Did you mean 'Mine'?"),
        ("mine.py", "names no runner: write 'mine.py:Class'."),
        ("nowhere.py:Mine", "nowhere.py does not exist."),
        (3, "must be names, 'path/to/file.py:Class' or Runner classes. Got 3 instead."),
        (int, "The library 'int' cannot be registered: it must be a subclass of"),
    ],
)
def test_what_is_no_library_gets_one_sentence(file, given, told):
    with pytest.raises(ConfigError) as caught:
        prepare_comparison("iris", [given], seeds=1)
    assert told in str(caught.value)


def test_a_class_that_workers_cannot_find_is_refused_and_not_known(file):
    base = RUNNERS[library_name(f"{file}:Mine")]

    class Local(base):
        name = "local"

    with pytest.raises(ConfigError, match="'Local' is defined inside a function"):
        library_name(Local)
    assert "local" not in RUNNERS
