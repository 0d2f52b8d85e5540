"""Runners of a test's own files are known in that test alone."""

import pytest

from boosters_eval.runners import RUNNERS


@pytest.fixture(autouse=True)
def _no_runner_is_left():
    before = set(RUNNERS)
    yield
    for name in set(RUNNERS) - before:
        RUNNERS.unregister(name)
