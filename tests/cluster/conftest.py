"""Executors and workloads for the tests on a cluster."""

import sys

import pytest

from boosters_eval import WORKLOADS, DaskExecutor
from processes import PLUGINS


@pytest.fixture(scope="session")
def _executor(shared_cluster):
    with DaskExecutor(address=shared_cluster.address) as executor:
        yield executor


@pytest.fixture
def dask(cluster, _executor):
    """One for all tests that do not ask for more, so that its nodes keep their lanes."""
    return _executor


@pytest.fixture
def shell(home, monkeypatch):
    """The workload whose targets are shells, which the workers find by its entry point."""
    yield from _registered("shell_workload", "Shell", monkeypatch)


@pytest.fixture
def storing(home, monkeypatch):
    yield from _registered("storing_workload", "Storing", monkeypatch)


@pytest.fixture
def loading(home, shared_cluster, monkeypatch):
    """The workload whose cells tell what their lanes have loaded of the user's two modules."""
    monkeypatch.syspath_prepend(str(shared_cluster.modules))
    yield from _registered("loading_workload", "Loading", monkeypatch)


def _registered(module, name, monkeypatch):
    monkeypatch.syspath_prepend(str(PLUGINS))
    found = __import__(module)
    workload = getattr(found, name)
    WORKLOADS.register(workload.name, workload, replace=True)
    yield found
    WORKLOADS.unregister(workload.name)
    sys.modules.pop(module, None)
