"""Worker processes: how they start, find what they import, exchange messages, and leave nothing behind."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import socket
import sys
import sysconfig
import tempfile
from importlib.machinery import PathFinder
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from importlib.machinery import ModuleSpec


# Set in every worker and inherited by whatever it starts: the mark of its ancestor. Without it, a script that runs a
# comparison on import would start it again in a worker.
IN_WORKER = "BOOSTERS_EVAL_IN_WORKER"

_PR_SET_CHILD_SUBREAPER = 36

# How a worker process starts: with the program's own copy of this package, wherever that lies, and the path given.
# What is imported is no garbage: looking for any cost a tenth of an import. Whoever computes enables it again.
_START = """
import gc, importlib.util, json, os, sys
gc.disable()
setup = json.load(os.fdopen(int(sys.argv[1])))
sys.path[:] = setup["path"]
spec = importlib.util.spec_from_file_location("boosters_eval", os.path.join(setup["package"], "__init__.py"))
sys.modules["boosters_eval"] = package = importlib.util.module_from_spec(spec)
spec.loader.exec_module(package)
importlib.import_module(setup.get("main", "boosters_eval.engine.ancestor")).main(setup)
"""


def make_command(setup: dict[str, Any]) -> tuple[list[str], IO[bytes]]:
    """The command of a worker process, and the open file with its set-up, which must be inherited.

    A command line is limited to 128 KB per word, a file is not.
    """
    file = tempfile.TemporaryFile()  # noqa: SIM115 (lives until the process has started)
    file.write(json.dumps(setup).encode())
    file.seek(0)
    return [sys.executable, *setup["options"], "-c", _START, str(file.fileno())], file


def adopt_orphans() -> None:
    """On Linux, let this process become the parent of what its dead children leave behind, wherever that hides."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


ADOPTION = 1.0  # seconds within which a killed process's descendants have become orphans of whoever adopts them


def kill_orphans(known: Collection[int]) -> None:
    """Kill the children of this process that it did not start, with all that they started.

    What one of them leaves behind becomes a child in turn, so this goes on until there are none.
    """
    while orphans := _children() - set(known):
        for pid in orphans:
            kill_group(pid)
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(OSError):
                os.waitpid(pid, 0)


def _children() -> set[int]:
    """The children of the main thread; none where the system does not tell."""
    try:
        text = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii")
    except OSError:
        return set()
    return {int(word) for word in text.split()}


def kill_marked(mark: str) -> None:
    """Kill all processes that inherited this mark, for when the ancestor of them all can no longer do it."""
    wanted = f"{IN_WORKER}={mark}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or belongs to somebody else
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                os.kill(int(entry.name), signal.SIGKILL)


def wake_on_exit() -> int:
    """A descriptor that becomes readable when a child exits."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    return reader


def kill_group(pid: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)


def name_signal(number: int) -> str:
    """The name of a signal such as SIGSEGV, or "signal 35" for a real-time signal without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def name_end(code: int) -> str:
    return name_signal(-code) if code < 0 else f"exit status {code}"


_HEADER = 8  # bytes that hold the length of a message
_MOST_FILES = 4


class LaneEvent(BaseModel):
    """What a lane tells the program: of its own import, or of a cell by its number."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    importing: bool = False  # it has begun
    ready: float | None = None  # the import has ended, after so many seconds
    files: dict[str, tuple[int, int]] = Field(default_factory=dict)  # that were loaded, for a pool that is kept
    failed: str | None = None  # the import has failed with this exception
    message: str = ""
    traceback: str | None = None

    number: int | None = None
    phase: str = "start"
    exit: int | None = None  # the cell has ended
    answer: str | None = None
    ended: str | None = None  # why the lane killed it
    threads: int | None = None
    stderr: str = ""


def send(channel: socket.socket, message: dict[str, Any], files: Sequence[int] = ()) -> None:
    """Send one message, with open files of which the receiver gets copies."""
    body = json.dumps(message).encode()
    socket.send_fds(channel, [len(body).to_bytes(_HEADER)], list(files))
    channel.sendall(body)


def receive(channel: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """The next message and its files, or None when the other side has closed."""
    try:
        header, files, _, _ = socket.recv_fds(channel, _HEADER, _MOST_FILES)
        for file in files:
            os.set_inheritable(file, False)
        while header and len(header) < _HEADER:
            header += _some(channel, _HEADER - len(header))
        if not header:
            return None
        body = b""
        while len(body) < (size := int.from_bytes(header)):
            body += _some(channel, size - len(body))
    except (ConnectionError, EOFError):
        return None
    return json.loads(body), files


def _some(channel: socket.socket, most: int) -> bytes:
    data = channel.recv(most)
    if not data:
        raise EOFError
    return data


class Lines:
    """Lines out of a stream of bytes that arrives in pieces."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []  # pieces of a line that has not ended yet; joined once, when it has

    def feed(self, data: bytes) -> list[bytes]:
        first, *others = data.split(b"\n")
        self._rest.append(first)
        if not others:
            return []
        *whole, rest = [b"".join(self._rest), *others]
        self._rest = [rest]
        return whole


_PACKAGE = Path(__file__).parents[1]  # this one
# Of the interpreter: no current folder, where a json.py would be run instead of Python's own; and if folders stand
# alone, nothing that the environment's .pth files and the user's packages would add.
_OPTIONS = ["-P"]
_ALONE = ["-P", "-s", "-S"]


class ImportPath(NamedTuple):
    """The folders that come first, and whether they take the place of the program's environment."""

    first: tuple[str, ...] = ()
    isolated: bool = False

    def setup(self) -> dict[str, Any]:
        """What a lane is told of it. This package is found by its own folder, whatever else the path leads to."""
        others = _standard_library() if self.isolated else find_program_path()
        return {
            "path": [*self.first, *others],
            "first": self.first,
            "isolated": self.isolated,
            "package": str(_PACKAGE),
            "options": _ALONE if self.isolated else _OPTIONS,
            "environment": self.environment(),
        }

    def environment(self) -> dict[str, str]:
        """The variables by which a Python that a cell starts finds the same build."""
        if not self.first:
            return {}
        known = "" if self.isolated else os.environ.get("PYTHONPATH", "")
        found = {"PYTHONPATH": os.pathsep.join([*self.first, *([known] if known else [])])}
        return {**found, "PYTHONNOUSERSITE": "1"} if self.isolated else found


def find_program_path() -> list[str]:
    """The program's import path for its workers. The user's folder comes last: it serves only what the user wrote.

    That of a script or a prompt is the first entry; that of a notebook is an empty one, anywhere.
    """
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    own = {str(Path.cwd()), str(Path(script).parent) if script else ""}
    last = [entry for position, entry in enumerate(sys.path) if entry == "" or (position == 0 and entry in own)]
    others = sys.path[1:] if sys.path[:1] == last[:1] else sys.path
    folders = dict.fromkeys(str(Path(entry).absolute()) for entry in last)
    return [entry for entry in others if entry] + list(folders)


def _standard_library() -> list[str]:
    """Python's own part of the path; that of a virtual environment is in the interpreter that made it."""
    base = {"installed_base": sys.base_prefix, "platbase": sys.base_exec_prefix}
    folders = [Path(sysconfig.get_path(name, vars=base)) for name in ("stdlib", "platstdlib")]
    own = dict.fromkeys([*folders, *(folder / "lib-dynload" for folder in folders)])
    return [str(folder) for folder in own if folder.is_dir()]


class FirstFolders:
    """Finds modules in the folders that come first, before any finder that an editable installation has put first."""

    def __init__(self, folders: Sequence[str]) -> None:
        self._folders = list(folders)

    def find_spec(self, name: str, path: Sequence[str] | None = None, _target: object = None) -> ModuleSpec | None:
        """A module of these folders, or one of a package that lies in them."""
        if path is None:
            return PathFinder.find_spec(name, self._folders)
        own = [entry for entry in path if any(Path(entry).is_relative_to(folder) for folder in self._folders)]
        return PathFinder.find_spec(name, own) if own else None


def prefer(folders: Sequence[str]) -> None:
    """Let the folders of a build serve every import that they can, in this process and its forks."""
    if folders:
        sys.meta_path.insert(0, FirstFolders(folders))


def list_provided(folders: Sequence[str]) -> set[str]:
    """The names of the packages and modules in the folders, except this package, which is always the program's own."""
    entries = (entry for folder in folders if Path(folder).is_dir() for entry in Path(folder).iterdir())
    return {entry.name.partition(".")[0] for entry in entries} - {_PACKAGE.name}


def has_loaded(folders: Sequence[str]) -> bool:
    """Whether this process has loaded something, from elsewhere, that the folders provide."""
    return not list_provided(folders).isdisjoint(name.partition(".")[0] for name in list(sys.modules))


def check_folders(folders: Sequence[str]) -> None:
    """Refuse folders that are gone: what they contained would be imported from elsewhere, if it is there."""
    for folder in folders:
        if not Path(folder).is_dir():
            raise ModuleNotFoundError(f"The folder {folder} of the build does not exist any more.")
