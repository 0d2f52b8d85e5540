"""Files: written whole or not at all, read with limits, known by their digest; and the home of all runs."""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import re
import stat
import sys
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Literal

from boosters_eval.core.errors import ConfigError, FileFormatError, OtherVersionError, RunError, find_doubled, require
from boosters_eval.core.text import clean_output

if TYPE_CHECKING:
    from collections.abc import Iterator


# Of every file that this program writes and reads again. Versions before 1.0 had numbers below ten, one per kind.
Format = Literal[10]
FORMAT: Final = 10

_DATA = (".json", ".yaml", ".yml")

# JSON of nonsense takes a hundred times its size in memory, so a file is refused by its size before it is read.
MAX_TEXT = 32 * 2**20
MAX_RESULTS = 512 * 2**20
MAX_KEYS = 50_000  # of one JSON object: each that a model does not know costs an error of a kilobyte
_WIDE = 100  # keys: more than any model has
_MAX_WIDE_KEYS = 400_000  # of all wide objects together, and of the objects in them
_MANY_VALUES = 1_000_000  # beyond them, a file must have this many bytes per value:
_BYTES_PER_VALUE = 12  # what this program writes has 18 and more; a list of empty lists has 3, and takes 64
_OWN_FILE = re.compile(r"/dev/(stdout|stderr)|/(?:dev|proc/self)/fd/(\d+)")
_STREAMS = {"stdout": 1, "stderr": 2}
_MOST_LEVELS = 300  # of YAML, which is made by recursion
_HALF_A_CHARACTER = re.compile(r"\\u[dD][89a-fA-F]")


def write_atomically(path: Path, content: str | bytes, *, own: bool = False, synced: bool = True) -> None:
    """Write beside the target, then rename over it: a reader sees the old file or the new one.

    The user may name a pipe or a link; a file of the program's `own` replaces whatever bears its name. One that is not
    `synced` survives the end of this program at once, and of the machine a little later. Whatever a terminal would obey
    is taken out of the user's text files; in data it is escaped by whoever makes them.
    """
    if isinstance(content, str) and not own and path.suffix.lower() not in _DATA:
        content = clean_output(content)
    data = content.encode() if isinstance(content, str) else content
    if not own and _is_device(path):
        with _open_device(path) as device:
            device.write(data)
        return
    path = path if own else resolved(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"Cannot write {path}: {error.strerror}.") from None
    with _replace(path, synced=synced) as file:
        file.write(data)


@contextlib.contextmanager
def open_atomically(path: Path) -> Iterator[IO[str]]:
    """A file that is written in parts, for what is too large to hold; it appears whole, at the end, or not at all."""
    if _is_device(path):
        kept: contextlib.AbstractContextManager[IO[bytes]] = _open_device(path)
    else:
        kept = _replace(resolved(path))
    with kept as binary:
        yield (text := io.TextIOWrapper(binary, encoding="utf-8"))
        text.flush()
        text.detach()  # the file below is closed by whoever opened it


@contextlib.contextmanager
def _replace(path: Path, *, synced: bool = True) -> Iterator[io.BufferedWriter]:
    """A file beside the path, which takes its place once it is on disk; if anything fails, nothing is left of it."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise ConfigError(f"Cannot write {path}: {error.strerror}.") from None
    try:
        with open(handle, "wb") as file:  # noqa: PTH123 (a descriptor)
            yield file
            file.flush()
            if synced:
                os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        Path(name).chmod(path.stat().st_mode & 0o777 if path.is_file() else 0o666 & ~mask)
        Path(name).replace(path)
    except BaseException as error:
        Path(name).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise RunError(f"Cannot write {path}: {error.strerror}.") from None
        raise


def resolved(path: Path) -> Path:
    """Through all links, to the file itself."""
    try:
        return path.resolve()
    except (RuntimeError, OSError):  # Python before 3.13 calls a loop a RuntimeError
        raise ConfigError(f"Cannot use {path}: it is a link that leads to itself.") from None


def _is_device(path: Path) -> bool:
    """Whether a path names a pipe, a terminal or an open file of a process, such as /dev/stdout or /dev/fd/63."""
    special = path.is_relative_to("/dev") or path.is_relative_to("/proc")
    return _own_number(path) is not None or (path.exists() and (special or not path.is_file()))


def _own_number(path: Path) -> int | None:
    """The number of an open file of this program, if the path names one."""
    found = _OWN_FILE.fullmatch(str(path))
    return _STREAMS.get(found[1]) or int(found[2]) if found else None


@contextlib.contextmanager
def _open_device(path: Path) -> Iterator[IO[bytes]]:
    """A pipe or a device, which is written to and never replaced. An own open file goes on where it is."""
    try:
        number = _own_number(path)
        if number is not None:
            sys.stdout.flush()
            _check_open(path, number)
        with path.open("wb") if number is None else open(os.dup(number), "wb") as file:  # noqa: PTH123 (a descriptor)
            yield file
    except BrokenPipeError:
        pass  # whoever reads it has had enough
    except OSError as error:
        raise RunError(f"Cannot write {path}: {error.strerror}.") from None


def _check_open(path: Path, number: int) -> None:
    """A stream that was closed when the program began is open for reading only, or not at all."""
    try:
        access = fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE
    except OSError:
        access = os.O_RDONLY
    if access == os.O_RDONLY:
        raise RunError(f"Cannot write {path}: it is closed.")


def check_writable(path: Path) -> None:
    """Fail before the work, not after it, when the output cannot be written."""
    if path.is_dir():
        raise ConfigError(f"Cannot write {path}: it is a directory.")
    if (number := _own_number(path)) is not None:
        _check_open(path, number)
    if _is_device(path):
        return
    resolved(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise ConfigError(f"Cannot write {path}: {error.strerror}.") from None


def dump_canonical(value: Any) -> str:
    """Write JSON so that equal content gives equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def compute_digest(content: str | bytes | bytearray, length: int = 64) -> str:
    """Compute the SHA-256 of a text or of bytes, cut to `length` hexadecimal digits."""
    from hashlib import sha256  # noqa: PLC0415 (it loads OpenSSL, which --help does not need)

    return sha256(content.encode() if isinstance(content, str) else content).hexdigest()[:length]


def compute_file_digest(path: Path) -> str:
    """Compute the SHA-256 of a file's content without holding it all."""
    from hashlib import file_digest  # noqa: PLC0415 (as above)

    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def check_path(path: str | Path) -> Path:
    """A path that a user passed, or one sentence on what else it is."""
    require("path", path, (str, Path), "a path")
    return Path(path)


def read_text(path: Path, *, limit: int = MAX_TEXT) -> str:
    """A file from outside as text, with one sentence for every way it can fail. Line ends stay as they are."""
    try:
        size = check_regular(path)
        with path.open("rb") as file:
            data = file.read(min(size, limit) + 1)
            if len(data) > size:  # it is still growing, or the system does not know its size
                data += file.read(limit)
        if len(data) > limit:
            raise FileFormatError(f"{path} is larger than {limit // 2**20} MB, more than this program ever writes.")
        return data.decode("utf-8")
    except FileNotFoundError:
        raise ConfigError(f"{path} does not exist.") from None
    except UnicodeDecodeError:
        raise FileFormatError(f"{path} is not a text file.") from None
    except OSError as error:
        raise ConfigError(f"Cannot read {path}: {error.strerror}.") from None


def split_lines(text: str) -> Iterator[str]:
    """The lines of a text with their ends, one at a time: all of them would take many times its memory."""
    start = 0
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        yield text[start:end]
        start = end


def check_regular(path: Path) -> int:
    """The size of a file. A device never ends and a pipe may never begin: only a regular file is read."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        kind = "a directory" if stat.S_ISDIR(found.st_mode) else "no regular file"
        raise ConfigError(f"Cannot read {path}: it is {kind}.")
    return found.st_size


class _Objects:
    """Makes the objects of a JSON document, and refuses those that this program would not write."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._wide = 0  # keys of wide objects so far

    def __call__(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        count = len(pairs)
        if count > MAX_KEYS:
            raise FileFormatError(f"{self._source} has an object of {count} keys, more than this program ever writes.")
        if count > _WIDE:
            self._wide += count + sum(len(value) for _, value in pairs if isinstance(value, dict))
        if self._wide > _MAX_WIDE_KEYS:
            raise FileFormatError(
                f"{self._source} has objects of {self._wide} keys in all, more than this program ever writes."
            )
        found = dict(pairs)
        if len(found) < count:
            doubled = find_doubled(name for name, _ in pairs)[0]
            raise FileFormatError(f"{self._source} has the key '{doubled}' more than once in one object.")
        return found


def load_json(text: str, source: str) -> Any:
    """The JSON of a file from outside. A duplicate key is refused: the last one would silently win."""
    _refuse_dense(text, source)
    try:
        content = json.loads(text, object_pairs_hook=_Objects(source))
        if _HALF_A_CHARACTER.search(text):
            json.dumps(content, ensure_ascii=False).encode()
    except FileFormatError:
        raise
    except UnicodeEncodeError:
        raise FileFormatError(f"{source} has half of a surrogate pair, which is no character.") from None
    except RecursionError:
        raise FileFormatError(f"{source} is not JSON of this program: it is nested too deeply.") from None
    except ValueError as error:
        raise FileFormatError(f"{source} is not JSON: {error}.") from None
    return content


def _refuse_dense(text: str, source: str) -> None:
    """A file of little but brackets is refused before it is parsed: it would take twenty times its size."""
    values = text.count(",") + text.count("[") + text.count("{")
    if values > max(_MANY_VALUES, len(text) // _BYTES_PER_VALUE):
        raise FileFormatError(f"{source} has {values} values in {len(text)} characters: this program never wrote it.")


def compose_yaml(text: str, source: str, *, values: int) -> Any:
    """The root node of a YAML file. What it holds is counted before any of it is made, which takes a hundred times it.

    What is nested too deeply is a RecursionError.
    """
    import yaml  # noqa: PLC0415 (only for whoever reads YAML)

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # of which the one in C is fifty times as fast
    _count_yaml(loader(text), source, values)
    return yaml.compose(text, Loader=loader)


def _count_yaml(parser: Any, source: str, values: int) -> None:
    import yaml  # noqa: PLC0415 (as above)

    count = length = 0  # of characters, with all that aliases repeat
    opened: list[tuple[str | None, int]] = []  # the anchors of the collections around, and the length before each
    lengths: dict[str | None, int] = {}  # of what an anchor names
    try:
        while parser.check_event():
            event = parser.get_event()
            count += isinstance(event, yaml.NodeEvent)
            if isinstance(event, yaml.ScalarEvent):
                length += len(event.value)
                lengths[event.anchor] = len(event.value)
            elif isinstance(event, yaml.AliasEvent):
                length += lengths.get(event.anchor, 0)
            elif isinstance(event, yaml.CollectionStartEvent):
                opened.append((event.anchor, length))
            elif isinstance(event, yaml.CollectionEndEvent):
                anchor, before = opened.pop()
                lengths[anchor] = length - before
            if len(opened) > _MOST_LEVELS:
                raise RecursionError
            if count > values or length > MAX_TEXT:
                many = f"{values} values" if count > values else f"{MAX_TEXT >> 20} MB of text"
                raise FileFormatError(f"{source}, line {event.start_mark.line + 1}: The file has more than {many}.")
    finally:
        parser.dispose()


def check_format(found: object, source: str, what: str, known: int = FORMAT) -> None:
    """Refuse a file of another format than the one that is known: nothing says what its keys mean there."""
    if isinstance(found, bool) or found != known:
        raise OtherVersionError(f"{source} is {what} {describe_format(found)}.")


def describe_format(found: object) -> str:
    """What is wrong with a file of another format, after the noun that says what it is."""
    of = f"of format {found}" if isinstance(found, int) and not isinstance(found, bool) else "of an unknown format"
    return f"{of}, which this version does not read: it was written by another version of boosters-eval"


def refuse_wide(text: str | bytes, source: str) -> None:
    """For text that a model parses: an object of too many keys is refused before it costs an error per key."""
    if len(text) > 4 * MAX_KEYS and text.count(b":" if isinstance(text, bytes) else ":") > MAX_KEYS:  # type: ignore[arg-type]
        load_json(text if isinstance(text, str) else text.decode(errors="replace"), source)


DEFAULT_HOME = ".boosters-eval"


def find_home(given: Path | None = None) -> Path:
    """BOOSTERS_EVAL_HOME, or .boosters-eval in the current directory."""
    path = given or Path(os.environ.get("BOOSTERS_EVAL_HOME") or DEFAULT_HOME)
    if path.exists() and not path.is_dir():
        raise ConfigError(f"The home {path} must be a directory. Got a file instead; set BOOSTERS_EVAL_HOME.")
    return path


def make_home(path: Path) -> None:
    """Create it; one of the default name keeps itself out of the project's git."""
    path.mkdir(parents=True, exist_ok=True)
    note = path / ".gitignore"
    if path.name == DEFAULT_HOME and not note.exists():
        with contextlib.suppress(OSError):
            note.write_text("*\n", encoding="utf-8")


def check_folder() -> None:
    """Refuse to work in a folder that is gone."""
    try:
        Path.cwd()
    except OSError:
        raise ConfigError("The current folder does not exist any more: change to another one.") from None


def check_home(given: str | Path | None) -> Path | None:
    """The home that a caller names, as a path."""
    require("home", given, (str, Path, type(None)), "a path")
    return None if given is None else Path(given)


def open_in_browser(path: Path) -> None:
    """Open a file where there is a display; without one, Python would start a browser inside the terminal."""
    import webbrowser  # noqa: PLC0415 (only for whoever asks for it)

    wanted = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    if not sys.platform.startswith("linux") or any(os.environ.get(name) for name in wanted):
        webbrowser.open(path.resolve().as_uri())
