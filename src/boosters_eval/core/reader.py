"""Files from outside are read in a process of their own, within limits that the kernel holds.

What it found comes back as plain text and arrays. A crash, a limit or a hang of it is one sentence.
"""

from __future__ import annotations

import contextlib
import errno
import faulthandler
import fcntl
import json
import os
import resource
import selectors
import signal
import sys
import tempfile
import threading
import time
import warnings
from contextvars import ContextVar
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, NoReturn

from boosters_eval.core import errors
from boosters_eval.core.commands import INTERRUPTIONS, PATIENCE, die_with_parent, hold_signals
from boosters_eval.core.errors import BoostersEvalError, ConfigError, DataFileError, RunError, describe_error
from boosters_eval.core.request import READ_LIMIT
from boosters_eval.core.terms import get_options, speaking_of
from boosters_eval.core.text import format_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

VARIABLE = "BOOSTERS_EVAL_READ_LIMIT"
DEFAULT = "4GB"
_SECONDS_PER_GB = 150  # of CPU time; a text file of that size takes ten
_LEAST_SECONDS = 60
_PATIENT = 2  # times the CPU time: after so long by the clock, it hangs
_SHORT_OF_MEMORY = 77  # the exit code of a process that has no memory left to say so
_CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)
_MALLOC = {-3: 2**25, -1: 2**30}  # from how many bytes on memory is mapped by itself; how many freed ones are kept
_ALIGNED = 64
_PIECE = 2**24
_KNOWN = ("DataFileError", "FileFormatError", "MissingLibraryError", "RunError", "DatasetError", "ConfigError")

# A new interpreter, for a program that has threads: the question is its standard input, the answer its output.
_START = """
import json, sys
question = json.load(sys.stdin)
sys.path[:] = question["path"]
from boosters_eval.core.reader import serve
serve(question, 1, 3)
"""


class ReaderAnswer(NamedTuple):
    """What was read: a text that whoever asked understands, and arrays of numbers."""

    text: str
    arrays: Mapping[str, NDArray[Any]] = {}


_limit: ContextVar[int | None] = ContextVar("read_limit", default=None)


@contextlib.contextmanager
def reading_within(limit: int | None) -> Iterator[None]:
    """Let files be read within so many bytes of memory meanwhile; None leaves it as it is."""
    token = _limit.set(_limit.get() if limit is None else limit)
    try:
        yield
    finally:
        _limit.reset(token)


def find_limit() -> int:
    """The bytes of memory that reading a file may take: as asked, or as the environment says."""
    told = os.environ.get(VARIABLE) or DEFAULT
    try:
        return _limit.get() or int(READ_LIMIT.read(told))
    except ValueError:
        raise ConfigError(f"{VARIABLE} must be {READ_LIMIT.words}. Got {told!r} instead.") from None


def read_apart(
    function: str, given: Mapping[str, Any], *, source: str, refuse: type[BoostersEvalError] = DataFileError
) -> ReaderAnswer:
    """What a function (`module:name`) answers to plain data, in a process of its own.

    An error of this package is raised here as it was there. Any other end is `refuse`, in one sentence on the source.
    """
    limit = find_limit()
    seconds = max(_LEAST_SECONDS, int(limit * _SECONDS_PER_GB / 1e9))
    question = {
        "source": source,
        "function": function,
        "given": dict(given),
        "options": get_options(),
        "limit": limit,
        "seconds": seconds,
        "parent": os.getpid(),
    }
    with contextlib.ExitStack() as stack:
        try:
            arrays, said = (_high(stack, tempfile.TemporaryFile()) for _ in range(2))  # noqa: SIM115 (without a name)
        except OSError as error:
            raise _cannot_keep(source, error) from None
        code, message = _ask(question, arrays.fileno(), said.fileno(), _PATIENT * seconds)
        if code:
            raise refuse(f"{source} cannot be read{_explain(code, _tail(said), limit, seconds)}")
        head, _, text = message.partition(b"\n")
        found = json.loads(head)
        if "kind" in found:
            raise _revive(**found)
        if "failed" in found:
            raise refuse(f"{source} cannot be read: {found['failed'].rstrip('.')}.")
        return ReaderAnswer(text.decode(), {each["name"]: _map(arrays, **each) for each in found["arrays"]})


def _high(stack: contextlib.ExitStack, file: IO[bytes]) -> IO[bytes]:
    """The file under a number that is no standard stream's, even where some of those are closed."""
    with file:
        number = fcntl.fcntl(file.fileno(), fcntl.F_DUPFD_CLOEXEC, 10)
    return stack.enter_context(open(number, "r+b", buffering=0))  # noqa: PTH123 (a descriptor)


def _ask(question: dict[str, Any], arrays: int, said: int, timeout: float) -> tuple[int, bytes]:
    """How the process ended, as an exit code or the negative number of a signal, and what it said."""
    receiver, sender = os.pipe()
    child, message = 0, b""
    try:
        with hold_signals():  # one that came while it starts would leave it behind
            start = _fork if _can_fork() else _spawn
            child = start(question, sender, arrays, said)
        os.close(sender)
        sender = -1
        message = _listen(receiver, time.monotonic() + timeout, question["limit"])
        return _wait(child, message), message
    except BaseException as error:
        if child:
            with contextlib.suppress(OSError):
                os.kill(child, signal.SIGKILL)
            _wait(child, b"")
        if isinstance(error, TimeoutError):
            return -signal.SIGXCPU, b""
        if isinstance(error, MemoryError):
            return _SHORT_OF_MEMORY, b""
        raise
    finally:
        for end in (receiver, sender):
            with contextlib.suppress(OSError):
                os.close(end)


def _can_fork() -> bool:
    """A fork knows all modules already, but locks that other threads hold would stay locked in it."""
    return sys.platform.startswith("linux") and threading.active_count() == 1


def _fork(question: dict[str, Any], sender: int, arrays: int, said: int) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads of BLAS, which knows how to be forked
        child = os.fork()
    if child == 0:
        try:
            os.setpgid(0, 0)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(said, 1)
            os.dup2(said, 2)
            sys.stdout = sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
            serve(question, sender, arrays)
        finally:
            os._exit(1)
    return child


def _spawn(question: dict[str, Any], sender: int, arrays: int, said: int) -> int:
    """Without the current folder on its path, where a pandas.py would be run instead of the real one."""
    here = {"", str(Path.cwd())}
    path = [entry for entry in sys.path if entry not in here]
    with tempfile.TemporaryFile() as asked:
        asked.write(json.dumps({**question, "path": [*path, str(Path(__file__).parents[2])]}).encode())
        asked.seek(0)
        streams = enumerate((asked.fileno(), sender, said, arrays))
        return os.posix_spawn(
            sys.executable,
            [sys.executable, "-P", "-c", _START],
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, number, place) for place, number in streams],
            setpgroup=0,
        )


def _listen(receiver: int, deadline: float, most: int) -> bytes:
    """All that the process says until it ends. An interruption is noticed meanwhile."""
    parts, size = [], 0
    with selectors.DefaultSelector() as waiting:
        waiting.register(receiver, selectors.EVENT_READ)
        while size <= most:
            left = deadline - time.monotonic()
            if waiting.select(min(PATIENCE, max(left, 0.0))):
                parts.append(os.read(receiver, _PIECE))
                size += len(parts[-1])
                if not parts[-1]:
                    return b"".join(parts)
            elif left <= 0:
                raise TimeoutError
    raise MemoryError


def _wait(child: int, message: bytes) -> int:
    try:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    except ChildProcessError:  # somebody else in this program waits for all children
        return 0 if message else 1


def _explain(code: int, said: str, limit: int, seconds: int) -> str:
    """The rest of the sentence about a process that could not say anything itself."""
    option = "--read-limit" if "read_limit" in (get_options() or {}) else VARIABLE
    sign = " " if option.startswith("-") else "="
    more = f"{option}{sign}{format_size(2 * limit).replace(' ', '')} allows more."
    if code == _SHORT_OF_MEMORY or "bad_alloc" in said:
        allowed = resource.getrlimit(resource.RLIMIT_AS)[0]
        if 0 <= allowed < limit:
            return f" within the {format_size(allowed)} of addresses that 'ulimit -v' allows."
        return f" within {format_size(limit)} of memory: {more}"
    if code == -signal.SIGXCPU:
        return f" within {seconds} s of computing: {more}"
    if -code in _CRASHES:
        return f": the library that reads it crashed ({signal.Signals(-code).name}), so it is damaged."
    if code == -signal.SIGKILL:
        return ": its reader was killed, as happens where memory runs out."
    return f": its reader ended with exit status {code}." if code > 0 else f": its reader was ended by signal {-code}."


def _tail(said: IO[bytes]) -> str:
    said.seek(max(0, os.fstat(said.fileno()).st_size - 4096))
    return said.read(4096).decode(errors="replace")


def _cannot_keep(source: str, error: OSError) -> RunError:
    if error.errno == errno.EFBIG:
        return RunError(f"Cannot keep what {source} holds: 'ulimit -f' allows only smaller files.")
    place = tempfile.gettempdir()
    return RunError(f"Cannot keep what {source} holds in {place}: {error.strerror}. TMPDIR names another folder.")


def _revive(kind: str, sentence: str, problems: list[str]) -> BoostersEvalError:
    found: type[BoostersEvalError] = getattr(errors, kind)
    return DataFileError(sentence, problems) if found is DataFileError else found(sentence)


def _map(file: IO[bytes], name: str, kind: str, shape: list[int], offset: int) -> NDArray[Any]:
    """An array in the file, of which only what is used takes memory."""
    import numpy as np  # noqa: PLC0415 (not needed where only text is read)

    dtype = np.dtype(kind)
    size = int(np.prod(shape, dtype=object)) * dtype.itemsize
    if dtype.kind not in "biuf" or offset + size > os.fstat(file.fileno()).st_size:
        raise RunError(f"The reader of a file answered with an array '{name}' that it did not write.")
    return np.asarray(np.memmap(file, dtype, "r", offset, tuple(shape))) if size else np.empty(shape, dtype)


def serve(question: dict[str, Any], channel: int, arrays: int) -> NoReturn:
    """In the process: answer, and end."""
    if channel == 1:
        channel = os.dup(1)
        os.dup2(2, 1)  # what a library prints is no answer
    faulthandler.disable()  # a crash is told by the program, in a sentence
    for number in INTERRUPTIONS:
        signal.signal(number, signal.SIG_DFL)
    die_with_parent(question["parent"])
    os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"  # its own would reserve a gigabyte at once
    _keep_freed_memory()
    try:
        _confine(question["limit"], question["seconds"])
        head, text = _answer(question, arrays)
        message = json.dumps(head).encode() + b"\n" + text.encode()
        for start in range(0, len(message), _PIECE):
            _write(channel, memoryview(message)[start : start + _PIECE])
    except MemoryError:
        os._exit(_SHORT_OF_MEMORY)
    os._exit(0)


def _keep_freed_memory() -> None:
    """Use what one block of a file took for the next one, in glibc: a third of the time went into new pages."""
    import ctypes  # noqa: PLC0415 (in this process only)

    with contextlib.suppress(AttributeError):
        for option, value in _MALLOC.items():
            ctypes.CDLL(None).mallopt(option, value)


def _confine(limit: int, seconds: int) -> None:
    """Memory of this process's own beyond what it has already, time, what it writes; and no image of a crash."""
    _lower(resource.RLIMIT_DATA, _own_memory() + limit)
    _lower(resource.RLIMIT_CPU, seconds, spare=5)
    _lower(resource.RLIMIT_FSIZE, limit)
    _lower(resource.RLIMIT_CORE, 0)


def _lower(kind: int, value: int, spare: int = 0) -> None:
    hard = resource.getrlimit(kind)[1]
    most = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (most, most + spare if hard == resource.RLIM_INFINITY else hard))


def _own_memory() -> int:
    """The bytes that count for the limit; a fork has those of its parent."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmData:"):
                return int(line.split()[1]) * 1024
    return 0


def _answer(question: dict[str, Any], arrays: int) -> tuple[dict[str, Any], str]:
    options = question["options"]
    try:
        with contextlib.nullcontext() if options is None else speaking_of(options):
            module, _, name = question["function"].partition(":")
            found: ReaderAnswer = getattr(import_module(module), name)(**question["given"])
        try:
            return {"arrays": list(_write_arrays(arrays, found.arrays))}, found.text
        except OSError as error:
            if error.errno == errno.EFBIG and resource.getrlimit(resource.RLIMIT_FSIZE)[0] == question["limit"]:
                raise MemoryError from None
            raise _cannot_keep(question["source"], error) from None
    except BoostersEvalError as error:
        kind = next(base.__name__ for base in type(error).__mro__ if base.__name__ in (*_KNOWN, "BoostersEvalError"))
        sentence = error.sentence if isinstance(error, DataFileError) else str(error)
        return {"kind": kind, "sentence": sentence, "problems": [*getattr(error, "problems", ())]}, ""
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 (a file that is damaged fails in libraries in any way)
        return {"failed": describe_error(error)}, ""


def _write_arrays(file: int, arrays: Mapping[str, NDArray[Any]]) -> Iterator[dict[str, Any]]:
    import numpy as np  # noqa: PLC0415 (not needed where only text is read)

    offset = 0
    for name, array in arrays.items():
        data = memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
        offset += -offset % _ALIGNED
        os.lseek(file, offset, os.SEEK_SET)
        for start in range(0, len(data), _PIECE):
            _write(file, data[start : start + _PIECE])
        yield {"name": name, "kind": array.dtype.str, "shape": array.shape, "offset": offset}
        offset += len(data)


def _write(file: int, data: memoryview) -> None:
    while data:
        data = data[os.write(file, data) :]
