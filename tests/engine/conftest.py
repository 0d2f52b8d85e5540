"""A workload whose targets are shells."""

import sys
from importlib import import_module
from pathlib import Path

import pytest

from boosters_eval import WORKLOADS


@pytest.fixture
def shell(home, monkeypatch):
    """The plug-in, registered as its entry point would register it."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "plugins"))
    module = import_module("shell_workload")
    WORKLOADS.register("shell", module.Shell, replace=True)
    yield module
    WORKLOADS.unregister("shell")
    sys.modules.pop("shell_workload", None)
