"""Temporary folders have an owner: they go with it, or are cleared by whoever comes next."""

import subprocess
import sys
from pathlib import Path

import pytest

from boosters_eval.core import temporary
from boosters_eval.core.errors import RunError
from boosters_eval.core.temporary import clear_abandoned, find_temporary, own_folder
from processes import environment

HOLDS = """
import sys
from pathlib import Path
from boosters_eval.core.temporary import temporary_environment, temporary_folder
folder = temporary_folder()
(folder / "deep").mkdir()
(folder / "deep" / "file").write_text("x")
assert temporary_folder() == folder == Path(temporary_environment()["TMPDIR"])
print(folder, flush=True)
sys.stdin.readline()
"""


def names_in(folder):
    return {path.name for path in folder.iterdir()}


@pytest.fixture
def start(tmp_path):
    started = []

    def begin(code=HOLDS):
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            env=environment(TMPDIR=str(tmp_path)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def test_folder_goes_with_its_program(start, tmp_path):
    process = start()
    folder = Path(process.stdout.readline().strip())
    assert names_in(tmp_path) == {folder.name}
    process.communicate("\n")
    assert process.returncode == 0
    assert names_in(tmp_path) == set()


def test_folder_of_a_killed_program_is_cleared_and_that_of_a_living_one_is_not(start, tmp_path):
    killed, living = start(), start()
    names = [Path(process.stdout.readline().strip()).name for process in (killed, living)]
    killed.kill()
    killed.wait()
    assert names_in(tmp_path) == set(names)
    with own_folder(tmp_path) as mine:
        assert names_in(tmp_path) == {names[1], mine.name}


def test_fork_of_a_program_does_not_take_its_folder_along(start, tmp_path):
    process = start(
        HOLDS.replace("print(folder", "\nimport os\nif os.fork() == 0:\n    sys.exit()\nos.wait()\nprint(folder")
    )
    folder = Path(process.stdout.readline().strip())
    assert (folder / "deep" / "file").is_file()


def test_nothing_but_own_folders_is_cleared(tmp_path):
    """A link by such a name leads to what somebody else wants to be rid of; a file is none of ours."""
    (tmp_path / "precious").mkdir()
    (tmp_path / "boosters-eval-tmp-link").symlink_to(tmp_path / "precious")
    (tmp_path / "boosters-eval-tmp-file").touch()
    (tmp_path / "boosters-eval-other").mkdir()
    (tmp_path / "boosters-eval-tmp-left").mkdir()
    clear_abandoned(tmp_path)
    left = {"precious", "boosters-eval-tmp-link", "boosters-eval-tmp-file", "boosters-eval-other"}
    assert names_in(tmp_path) == left


def test_a_new_folder_that_another_program_cleared_at_once_is_made_again(tmp_path, monkeypatch):
    make, made = temporary.tempfile.mkdtemp, []

    def make_and_lose(**where):
        made.append(make(**where))
        if len(made) == 1:
            clear_abandoned(tmp_path)
        return made[-1]

    monkeypatch.setattr(temporary.tempfile, "mkdtemp", make_and_lose)
    with own_folder(tmp_path) as path:
        assert [path] == list(tmp_path.iterdir())
    assert len(made) == 2


def test_no_place_for_temporary_files_is_one_sentence(monkeypatch):
    def nowhere():
        raise FileNotFoundError(2, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr("tempfile.gettempdir", nowhere)
    with pytest.raises(RunError, match=r"There is no folder for temporary files .* TMPDIR may name one\."):
        find_temporary()
