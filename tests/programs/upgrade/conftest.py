import pytest

from boosters_eval.runners import RUNNERS
from upgrades import write_planted, write_planted_runner


@pytest.fixture(autouse=True)
def _no_planted_library_is_left():
    """The library is registered by naming its file."""
    yield
    if "planted" in RUNNERS:
        RUNNERS.unregister("planted")


@pytest.fixture(scope="session")
def shelf(tmp_path_factory):
    """The wheels of a library with planted changes, each installed once in a home of its own."""
    return Shelf(tmp_path_factory.mktemp("planted"))


class Shelf:
    def __init__(self, folder):
        self.folder, self.home = folder, folder / "home"
        self.library = write_planted_runner(folder)
        self.old = str(write_planted(folder / "old", "1.0"))

    def wheel(self, name, version="1.1", **planted):
        """A version with what is planted in it, written once."""
        folder = self.folder / name
        return str(next(folder.glob("*.whl"), None) or write_planted(folder, version, **planted))
