"""Trackers of a third party."""

import sys

import pytest


@pytest.fixture
def noting(faulty, tmp_path, monkeypatch):
    """The trackers, and what the noting one was told."""
    monkeypatch.setenv("NOTED", str(tmp_path / "noted.jsonl"))
    import noting_tracker

    yield noting_tracker
    sys.modules.pop("noting_tracker", None)
