"""Where runs are kept."""

import subprocess
import sys
from pathlib import Path

import pytest

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.files import find_home
from processes import environment


def test_without_a_name_runs_are_kept_in_the_current_directory():
    assert find_home() == Path(".boosters-eval")


def test_a_named_home_comes_before_that_of_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("BOOSTERS_EVAL_HOME", str(tmp_path / "set"))
    assert find_home() == tmp_path / "set"
    assert find_home(tmp_path / "given") == tmp_path / "given"
    monkeypatch.setenv("BOOSTERS_EVAL_HOME", "")
    assert find_home() == Path(".boosters-eval")


def test_a_home_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="must be a directory"):
        find_home(tmp_path / "file")


def test_the_tests_do_not_see_the_home_of_whoever_runs_them(tmp_path):
    named = f"{__file__}::test_without_a_name_runs_are_kept_in_the_current_directory"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", named]
    env = environment(BOOSTERS_EVAL_HOME=str(tmp_path / "home"))
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert not (tmp_path / "home").exists()
