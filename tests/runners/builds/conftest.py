import pytest

from boosters_eval.runners import RUNNERS
from toys import write_runner, write_wheel


@pytest.fixture(autouse=True)
def _no_toy_is_left():
    """The toy library is registered by naming its file."""
    yield
    if "toy" in RUNNERS:
        RUNNERS.unregister("toy")


@pytest.fixture(scope="session")
def shelf(tmp_path_factory):
    """Two wheels of the toy library and its runner, in a home where they are installed only once."""
    folder = tmp_path_factory.mktemp("toys")
    return Shelf(folder, write_runner(folder), write_wheel(folder, "1.0"), write_wheel(folder, "1.1", shift=0.5))


class Shelf:
    def __init__(self, folder, library, old, new):
        self.home = folder / "home"
        self.folder = folder
        self.library = library
        self.old, self.new = f"{library}@{old}", f"{library}@{new}"
