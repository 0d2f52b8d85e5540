import json
import os
import subprocess
import sys

import pytest

from boosters_eval.core.errors import ConfigError, UnknownNameError
from boosters_eval.core.registry import Registry


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


@pytest.fixture
def broken_package(tmp_path):
    info = tmp_path / "bad-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bad\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[boosters_eval.runners]\nbad = nomodule:X\nodd = json:dumps\n"
        "[boosters_eval.datasets]\nodd_data = json:dumps\n[boosters_eval.benchmark.suites]\nodd_suite = json:dumps\n"
    )
    return {**os.environ, "PYTHONPATH": str(tmp_path), "BOOSTERS_EVAL_HOME": str(tmp_path / "home")}


def run(env, *arguments):
    command = [sys.executable, "-m", "boosters_eval", *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def test_broken_package_of_a_third_party_fails_only_when_it_is_asked_for(broken_package):
    listed = run(broken_package, "list", "libraries", "--json")
    assert listed.returncode == 0
    assert {"bad", "odd"} & {record["library"] for record in json.loads(listed.stdout)} == set()
    assert "'bad' of an installed package cannot be loaded: ModuleNotFoundError" in listed.stderr
    assert "'odd' of an installed package is not a library" in listed.stderr
    assert "'odd_data'" in run(broken_package, "list", "datasets", "--json").stderr
    assert "'odd_suite'" in run(broken_package, "list", "suites", "--json").stderr
    assert run(broken_package, "compare", "-d", "iris", "-l", "sklearn", "-s", "1", "--dry-run").returncode == 0
    asked = run(broken_package, "compare", "-d", "iris", "-l", "bad")
    assert asked.returncode == 3
    assert "cannot be loaded" in asked.stderr
