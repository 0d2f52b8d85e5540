"""Builds of one library in the lanes of one run: each sees its own files, and nothing of the others."""

import os
import shutil
import sys
import sysconfig
import time
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

import boosters_eval
from boosters_eval import WORKLOADS, LocalPool, Plan, Repeat, execute
from boosters_eval.engine import warm
from processes import PLUGINS

SHARED_OBJECT = next(Path(psutil.__file__).parent.glob("_psutil_*.so"))
SHARED_MODULE = SHARED_OBJECT.name.split(".")[0]  # named after the system
NEEDED = ("pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection", "psutil")


def write_build(folder, value, *, body=""):
    """A package with a shared object of its own."""
    package = folder / "twin"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(f"{body}\nVALUE = {value}\n")
    (package / "part.py").write_text(f"from twin import {SHARED_MODULE}\n")
    shutil.copy(SHARED_OBJECT, package / SHARED_OBJECT.name)
    return folder


@pytest.fixture
def twin(home, tmp_path, monkeypatch):
    """The workload, with two builds beside the package that is installed."""
    installed = write_build(tmp_path / "installed", 0)
    monkeypatch.setenv("PYTHONPATH", str(installed))
    monkeypatch.syspath_prepend(str(PLUGINS))
    monkeypatch.syspath_prepend(str(installed))
    module = import_module("twin_workload")
    WORKLOADS.register("twin", module.Twin, replace=True)
    for value, name in enumerate(("first", "second"), start=1):
        module.FOLDERS[name] = (str(write_build(tmp_path / name, value)),)

    def plan(*targets, seeds=1, **fields):
        return Plan.grid(
            "twins", [module.TwinSpec(name="see", **fields)], targets, [Repeat(seed) for seed in range(1, seeds + 1)]
        )

    def run(*targets, **options):
        with LocalPool(1) as pool:
            return execute(plan(*targets, **options), pool)

    yield SimpleNamespace(module=module, plan=plan, run=run, folder=tmp_path)
    WORKLOADS.unregister("twin")
    sys.modules.pop("twin_workload", None)


def inside(paths, folder):
    return [path for path in paths if Path(path).is_relative_to(folder)]


@pytest.mark.parametrize(("method", "shared"), [("fork", "twin"), ("fork", "carrier"), ("spawn", "twin")])
def test_builds_in_one_run_are_invisible_to_each_other(twin, monkeypatch, method, shared):
    """Even if something that lanes share has loaded the one that is installed."""
    monkeypatch.setenv("BOOSTERS_EVAL_START_METHOD", method)
    monkeypatch.setattr(twin.module, "IMPORTS", [shared])
    (twin.folder / "installed" / "carrier.py").write_text("import twin.part\n")
    done = twin.run("installed", "first", "second", seeds=2 if method == "fork" else 1)
    assert not done.failures
    for seen in done.results:
        own = twin.folder / seen.target
        assert seen.value == ("installed", "first", "second").index(seen.target)
        assert seen.build["digest"] == seen.target
        for found in (inside(seen.files, twin.folder), inside(seen.code, twin.folder)):
            assert found
            assert found == inside(found, own)
        assert bool(inside(seen.ancestor_code, twin.folder)) == (shared == "carrier")
        assert any(path.endswith(SHARED_OBJECT.name) for path in inside(seen.code, own))
        assert inside(seen.path, twin.folder)[0] == str(own)
        assert seen.python_path.split(os.pathsep)[0] == str(own)


def test_builds_have_all_but_their_own_files_at_the_same_place_in_memory(twin):
    """Where things lie changes how fast they are: two equal builds would be told apart by it, in every repeat."""
    first, second = twin.run("first", "second").results
    for name in ("[heap]", "[stack]", *first.ancestor_code):
        assert first.places[name] == second.places[name]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_isolated_build_sees_nothing_of_the_environment(twin, monkeypatch, method):
    monkeypatch.setenv("BOOSTERS_EVAL_START_METHOD", method)
    (twin.folder / "installed" / "sitecustomize.py").write_text("import twin\n")
    own = twin.folder / "first"
    for name in NEEDED:
        origin = Path(find_spec(name).origin)
        source = origin.parent if origin.name == "__init__.py" else origin
        (own / source.name).symlink_to(source)
    (own / "twin_workload.py").symlink_to(PLUGINS / "twin_workload.py")
    monkeypatch.setitem(twin.module.FOLDERS, "first", (str(own),))
    monkeypatch.setattr(twin.module, "ISOLATED", {"first"})
    done = twin.run("first")
    assert not done.failures
    (seen,) = done.results
    assert seen.value == 1
    assert not seen.site
    assert seen.python_path == str(own)
    package = Path(boosters_eval.__file__).parent
    allowed = (own, package, Path(sysconfig.get_path("stdlib")), Path(sys.base_prefix))
    environment = Path(sysconfig.get_path("purelib"))
    for path in (*seen.files, *seen.path):
        assert any(Path(path).is_relative_to(folder) for folder in allowed)
        assert not Path(path).is_relative_to(environment) or Path(path).is_relative_to(package)
    assert not any(path.startswith(str(twin.folder / "installed")) for path in seen.code)


EDITABLE = """
import sys
from importlib.util import spec_from_file_location

class Redirect:  # as editable installations of compiled packages do
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name in ("twin", "twin.part"):
            file = {folder!r} + ("/twin/__init__.py" if name == "twin" else "/twin/part.py")
            return spec_from_file_location(name, file)

sys.meta_path.insert(0, Redirect)
"""


def test_editable_installation_does_not_come_before_a_build(twin):
    installed = twin.folder / "installed"
    (installed / "sitecustomize.py").write_text(EDITABLE.format(folder=str(installed)))
    done = twin.run("installed", "first")
    assert sorted(seen.value for seen in done.results) == [0, 1]
    seen = next(seen for seen in done.results if seen.target == "first")
    assert not inside(seen.files, installed / "twin")


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_build_that_is_gone_fails_instead_of_falling_back_to_what_is_installed(twin, monkeypatch, method):
    monkeypatch.setenv("BOOSTERS_EVAL_START_METHOD", method)
    plan = twin.plan("first", "second")
    shutil.rmtree(twin.folder / "first")
    with LocalPool(1) as pool:
        done = execute(plan, pool)
    assert [seen.value for seen in done.results] == [2]
    (failure,) = done.failures
    assert failure.error_type == "ModuleNotFoundError"
    gone = f"first could not be imported: The folder {twin.folder / 'first'} of the build does not exist any more."
    assert failure.error_message == gone


def test_build_whose_import_dies_harms_no_other(twin):
    shutil.rmtree(twin.folder / "first")
    write_build(twin.folder / "first", 1, body="import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    done = twin.run("first", "second", "installed", seeds=2)
    assert sorted(seen.value for seen in done.results) == [0, 0, 2, 2]
    assert {failure.error_message for failure in done.failures} == {
        "first could not be imported: the import ended with SIGSEGV"
    }


@pytest.mark.parametrize("victim", ["lane", "ancestor"])
def test_process_of_a_build_that_is_killed_again_and_again_costs_one_cell(twin, victim):
    done = twin.run("first", "second", seeds=3, kill=victim)
    (failure,) = done.failures
    assert (failure.target, failure.seed, failure.error_type) == ("first", 1, "WorkerDied")
    assert sorted(seen.value for seen in done.results) == [1, 1, 2, 2, 2]


@pytest.fixture
def kept(twin):
    warm.close_kept()

    def run(*targets):
        with warm.borrow_pool(1) as pool:
            done = execute(twin.plan(*targets), pool)
        assert not done.failures
        return [seen.value for seen in done.results], {seen.target: seen.lane for seen in done.results}

    yield run
    warm.close_kept()


def test_kept_lanes_start_anew_when_a_file_of_a_build_changes(twin, kept):
    package = twin.folder / "first" / "twin"
    library = package / "libtwin.so"  # no module: its package opens it, as most libraries do
    shutil.copy(SHARED_OBJECT, library)
    (package / "part.py").write_text(f"import ctypes\nLIBRARY = ctypes.CDLL({str(library)!r})\n")
    _, before = kept("first")
    assert kept("first")[1] == before
    for file in (package / "__init__.py", library):
        os.utime(file, ns=(1, 1))
        _, after = kept("first")
        assert not set(after.values()) & set(before.values())
        before = after


def test_kept_pool_ends_the_lanes_of_builds_that_the_next_call_does_not_want(twin, kept):
    values, before = kept("first", "second")
    assert sorted(values) == [1, 2]
    values, after = kept("second", "installed")
    assert sorted(values) == [0, 2]
    assert after["second"] == before["second"]
    deadline = time.monotonic() + 30
    while psutil.pid_exists(before["first"]) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not psutil.pid_exists(before["first"])
