import pytest


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache of the test's own."""
    root = tmp_path / "cache"
    monkeypatch.setenv("BOOSTERS_EVAL_CACHE", str(root))
    return root
