"""What all tests share: golden files, a home of their own, and a library that fails on request."""

import gc
import os
import re
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import browser
import simulations

# Two processes run tests at once: a thread of OpenMP that spins while it waits takes the CPU of the other process.
# The libraries read this when they are loaded; lanes and started programs set or inherit it.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# The home of whoever runs the tests is neither read nor written; a test that needs one makes it.
os.environ.pop("BOOSTERS_EVAL_HOME", None)

GOLDEN = Path(__file__).parent / "golden"
PLUGINS = Path(__file__).parent / "plugins"

# How long an example takes says how busy the machine is, not whether the program is right.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden", action="store_true", help="write the golden files anew instead of checking them"
    )
    parser.addoption(
        "--update-simulations", action="store_true", help="write the simulated rates into docs/statistics.md"
    )


def pytest_collection_modifyitems(items):
    """Tests on the dask cluster come first: one process of several then runs them all, and starts the only cluster."""
    items.sort(key=lambda item: "shared_cluster" not in getattr(item, "fixturenames", ()))


def pytest_collection_finish():
    """As in a lane, collecting garbage need not scan what was imported: with all tests that takes a quarter second."""
    gc.freeze()


@pytest.fixture
def simulated(record_property):
    """Put a rate into the table at the end of the session (and into the docs), and return its value."""

    def keep(section, claim, count, n, promised):
        rate = simulations.Rate(section, claim, int(count), int(n), promised)
        record_property("simulated", [rate.section, rate.claim, rate.count, rate.n, rate.promised])
        return rate.value

    return keep


def pytest_terminal_summary(terminalreporter, config):
    """Print the table of simulated rates. Only a whole run of the simulations may go into the docs."""
    reports = [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]
    rates = [
        simulations.Rate.of(value)
        for report in sorted(reports, key=lambda report: report.location)
        for name, value in report.user_properties
        if name == "simulated" and report.when == "call"
    ]
    if not rates or config.getoption("markexpr") != "slow":
        return
    text = simulations.table(rates)
    terminalreporter.section("simulated rates")
    terminalreporter.write_line(text)
    if config.getoption("--update-simulations") and not terminalreporter.getreports("failed"):
        page = simulations.PAGE.read_text(encoding="utf-8")
        simulations.PAGE.write_text(simulations.written_to_page(text, page), encoding="utf-8")


def _rounded(text):
    """Full numbers to twelve digits: the last ones of a p-value belong to the processor's mathematics."""
    return re.sub(r"-?\d+\.\d{12,}(e-?\d+)?", lambda match: f"{float(match[0]):.12g}", text)


@pytest.fixture
def golden(request):
    """Compare a text with the file of that name, or write it with --update-golden."""

    def check(name, text):
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        expected = path.read_text(encoding="utf-8")
        assert _rounded(text) == _rounded(expected), f"{name} differs: check it, then pytest --update-golden"

    return check


@pytest.fixture(scope="session", autouse=True)
def _known_before_any_test():
    """A registry is filled when it is first read, which must not be while a test has the plug-ins on its path."""
    from boosters_eval import RUNNERS, WORKLOADS

    assert not {"faulty", "shell"} & {*RUNNERS, *WORKLOADS}


@pytest.fixture(scope="session", autouse=True)
def _threads_of_the_tests():
    """The threads that run the tests hold no lock, so that files are read in a fork, as in the program."""
    from boosters_eval.core import reader

    usual = threading.active_count()
    patch = pytest.MonkeyPatch()
    patch.setattr(reader, "_can_fork", lambda: threading.active_count() <= usual)
    yield
    patch.undo()


@pytest.fixture
def forked_reader(monkeypatch):
    """Files are read in a fork whatever threads there are: only that knows what a test has replaced."""
    from boosters_eval.core import reader

    monkeypatch.setattr(reader, "_can_fork", lambda: True)


@pytest.fixture(scope="session", autouse=True)
def _quiet_machine():
    """Tests of times run beside other tests, and must not depend on what else the machine does."""
    from boosters_eval.core import machine

    patch = pytest.MonkeyPatch()
    patch.setattr(machine, "find_disturbances", lambda *_, **__: ())
    yield
    patch.undo()


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Runs of this test, apart from everybody else's; data is cached once for all."""
    monkeypatch.setenv("BOOSTERS_EVAL_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def faulty(home, monkeypatch):
    """The library that fails on request, registered as a third party's would be."""
    from boosters_eval.runners import RUNNERS

    monkeypatch.syspath_prepend(str(PLUGINS))
    import faulty_runner

    runners = (faulty_runner.FaultyRunner, faulty_runner.BrokenImportRunner, faulty_runner.ColdRunner)
    for runner in runners:
        RUNNERS.register(runner.name, runner, replace=True)
    yield faulty_runner
    for runner in runners:
        RUNNERS.unregister(runner.name)
    sys.modules.pop("faulty_runner", None)


@pytest.fixture
def program(home):
    """The environment in which the real command line knows the faulty library too."""
    env = {**os.environ, "PYTHONPATH": str(PLUGINS), "COLUMNS": "120"}
    return [sys.executable, "-m", "boosters_eval"], env


@pytest.fixture
def kept_pool():
    """The command line runs its cells on a pool that stays for the next test."""
    from boosters_eval.engine.execute import EXECUTORS
    from tiny import KeptPool

    local = EXECUTORS["local"]
    EXECUTORS.register("local", KeptPool, replace=True)
    yield
    EXECUTORS.register("local", local, replace=True)


@pytest.fixture(scope="session")
def shared_cluster(tmp_path_factory):
    """A dask cluster of real processes, for all tests that run cells on one."""
    from dask_clusters import Cluster

    running = Cluster(tmp_path_factory.mktemp("cluster"))
    yield running
    running.close()


@pytest.fixture
def cluster(shared_cluster):
    """With two workers of one thread, whatever the last test did to it."""
    shared_cluster.complete()
    return shared_cluster


@pytest.fixture(scope="session")
def chromium():
    """The pages of a browser for all tests of a process."""
    if browser.CHROMIUM is None:
        reason = "Chromium is not installed: apt-get install chromium (or run make chromium)"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=browser.CHROMIUM, args=browser.FLAGS)
        yield browser.Pages(started)
        started.close()


@pytest.fixture
def open_page(chromium):
    """Open a page in the browser as often as a test likes; all are closed after it."""
    opened = []

    def go(path, **options):
        opened.append(browser.Visit(chromium, path, **options))
        return opened[-1]

    yield go
    for one in opened:
        one.close()
