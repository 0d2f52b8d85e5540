import json
import subprocess
import sys
import threading
from importlib.metadata import EntryPoint, EntryPoints

import pytest

from boosters_eval.cli.app import run
from boosters_eval.core import registry as registry_module
from boosters_eval.core.errors import ConfigError, UnknownNameError
from boosters_eval.core.registry import Registry
from boosters_eval.datasets import DATASETS
from boosters_eval.engine.execute import EXECUTORS
from boosters_eval.engine.observer import OBSERVERS
from boosters_eval.engine.workload import WORKLOADS
from boosters_eval.programs.benchmark.suites import SUITES
from boosters_eval.runners import RUNNERS, Runner
from processes import PROGRAM, environment


def test_names_are_found_registered_replaced_and_taken_out():
    registry = Registry("thing", builtin=lambda: {"one": 1})
    registry.register("two", 2)
    assert list(registry) == ["one", "two"]
    assert (registry["two"], registry.get("three", 3), len(registry), "one" in registry) == (2, 3, 2, True)
    with pytest.raises(ConfigError, match="already registered"):
        registry.register("two", 4)
    registry.register("two", 4, replace=True)
    assert registry.items() == [("one", 1), ("two", 4)]
    registry.unregister("two")
    assert registry.values() == [1]
    with pytest.raises(UnknownNameError, match=r"Unknown thing .oen.\. Did you mean .one."):
        registry["oen"]


def test_names_are_matched_without_case_and_separators_if_one_is_meant():
    registry = Registry("toy", builtin=lambda: {"log_loss": 1, "Other": 2, "other": 3})
    assert registry["LogLoss"] == registry["log-loss"] == 1
    assert (registry["Other"], registry["other"]) == (2, 3)
    assert "LogLoss" not in registry  # a name of its own may still be registered
    with pytest.raises(UnknownNameError, match="Unknown toy 'OTHER'"):
        registry["OTHER"]  # which of the two?
    with pytest.raises(UnknownNameError, match="Did you mean 'log_loss'"):
        registry["LogLos"]


def test_a_name_may_end_in_what_it_is_a_name_of():
    registry = Registry("toy", builtin=lambda: {"log-loss": 1, "my_toy": 2})
    assert registry["LOG_LOSS_TOY"] == registry["log-loss toy"] == 1
    assert registry["my_toy"] == registry["MyToy"] == 2
    with pytest.raises(UnknownNameError, match="Unknown toy 'toy'"):
        registry["toy"]


def test_threads_that_fill_a_registry_at_the_same_time_see_all_of_it_and_what_was_registered(monkeypatch):
    filling, go_on = threading.Event(), threading.Event()

    def points(_):
        if threading.current_thread() is not threading.main_thread():
            filling.set()
            go_on.wait(10)
        return EntryPoints([EntryPoint("loads", "json:loads", "things")])

    monkeypatch.setattr(registry_module, "_points", points)
    registry = Registry("thing", group="things")
    seen = []
    other = threading.Thread(target=lambda: seen.append(registry["loads"]))
    other.start()
    filling.wait(10)
    assert registry["loads"] is json.loads  # while the other thread has begun, but not ended
    registry.register("mine", len)
    go_on.set()
    other.join()
    assert seen == [json.loads]
    assert list(registry) == ["loads", "mine"]


@pytest.fixture
def broken_package(tmp_path, monkeypatch):
    """A package whose entry points fail, found by registries that are filled anew."""
    info = tmp_path / "bad-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bad\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[boosters_eval.runners]\nbad = nomodule:X\nodd = json:dumps\n"
        "[boosters_eval.datasets]\nodd_data = json:dumps\n[boosters_eval.suites]\nodd_suite = json:dumps\n"
    )
    monkeypatch.setenv("BOOSTERS_EVAL_HOME", str(tmp_path / "home"))
    monkeypatch.syspath_prepend(str(tmp_path))
    for registry in (RUNNERS, DATASETS, SUITES):
        monkeypatch.setattr(registry, "_items", None)
        monkeypatch.setattr(registry, "_broken", {})
    return tmp_path


def test_broken_package_of_a_third_party_fails_only_when_it_is_asked_for(broken_package, capsys):
    assert run(["list", "libraries", "--json"]) == 0
    listed = capsys.readouterr()
    assert {"bad", "odd"} & {record["library"] for record in json.loads(listed.out)} == set()
    assert "'bad' of an installed package cannot be loaded: ModuleNotFoundError" in listed.err
    assert "'odd' of an installed package is not a library" in listed.err
    for kind, name in (("datasets", "odd_data"), ("suites", "odd_suite")):
        assert run(["list", kind, "--json"]) == 0
        assert f"'{name}'" in capsys.readouterr().err
    assert run(["compare", "-d", "iris", "-l", "sklearn", "-s", "1", "--dry-run"]) == 0
    assert run(["compare", "-d", "iris", "-l", "bad"]) == 3
    assert "cannot be loaded" in capsys.readouterr().err


def test_broken_package_of_a_third_party_is_found_by_the_real_program(broken_package):
    command = [*PROGRAM, "compare", "-d", "iris", "-l", "bad"]
    done = subprocess.run(command, env=environment(broken_package), capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "cannot be loaded" in done.stderr


def test_entry_point_of_another_kind_is_named_with_the_right_article(tmp_path, monkeypatch):
    info = tmp_path / "odd-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: odd\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[boosters_eval.odd_things]\nodd = json:dumps\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    registry = Registry("observer", group="boosters_eval.odd_things", fault=lambda _: "it is odd")
    with pytest.raises(ConfigError, match=r"is not an observer \(json:dumps\): it is odd"):
        registry["odd"]


def test_a_runner_that_cannot_work_is_refused_when_it_is_registered():
    """The RFC's three methods would time and score themselves: that is one clock and one scorer per library."""

    class OfTheRfc:
        name = "three"

        @classmethod
        def supports(cls, config):
            return True

        @classmethod
        def run(cls, config, x_train, y_train, x_valid, y_valid, seed):
            return None

    class Half(Runner):
        name = "half"

    for item, told in (
        (OfTheRfc, "must be a subclass of boosters_eval.runners.base.Runner, got the class OfTheRfc, whose run would"),
        (Half, r"Half does not define build, fit, predict, translate, unsupported\.$"),
        (42, "got an object of type int"),
    ):
        with pytest.raises(ConfigError, match=told):
            RUNNERS.register("new", item)
        assert "new" not in RUNNERS


def test_every_registry_refuses_what_is_of_another_kind():
    for registry in (WORKLOADS, EXECUTORS, OBSERVERS, SUITES, DATASETS):
        with pytest.raises(ConfigError, match=f"The {registry.kind} 'odd' cannot be registered: it must be a"):
            registry.register("odd", "a string")


def test_only_what_is_asked_for_is_imported_and_the_order_stays(tmp_path, monkeypatch):
    info = tmp_path / "lazy-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lazy\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[lazy.things]\nfirst = lazy_first:ITEM\nsecond = lazy_second:ITEM\n")
    for name in ("first", "second"):
        (tmp_path / f"lazy_{name}.py").write_text(f"ITEM = {name!r}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    registry = Registry("thing", group="lazy.things", builtin=lambda: {"zero": "zero"})
    registry.register("third", "third")
    assert registry["second"] == "second"
    assert "lazy_second" in sys.modules
    assert "lazy_first" not in sys.modules
    assert "nothing" not in registry
    assert "lazy_first" not in sys.modules
    assert registry.values() == ["zero", "first", "second", "third"]
