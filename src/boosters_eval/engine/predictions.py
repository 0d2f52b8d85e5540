"""The predictions that a home keeps: in each run's folder, up to a size for all runs; those of older runs make room."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from typing import TYPE_CHECKING, NamedTuple, Self

from pydantic import ConfigDict, ValidationError

from boosters_eval.core.errors import BoostersEvalError, ConfigError, FileFormatError
from boosters_eval.core.files import FORMAT, Format, read_text, write_atomically
from boosters_eval.core.model import FileModel
from boosters_eval.core.text import count_of, format_size
from boosters_eval.engine.artifacts import locate_array, sync_arrays

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from boosters_eval.engine.folder import RunFolder

KEPT = "predictions"  # the input that tells a cell where to keep what it predicted
LIMIT = "BOOSTERS_EVAL_PREDICTIONS"  # the variable that says how much a home keeps
_DEFAULT = "2GB"
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([kmgt]?)b?", re.IGNORECASE)
_RECORDED = re.compile(rb'\{"schema_version":%d,"bytes":(\d+),' % FORMAT)
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


class PredictionsRecord(FileModel):
    """The content of predictions.json in a run's folder: how much is there, and what was removed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Format = FORMAT
    bytes: int = 0
    removed: tuple[str, ...] = ()  # digests

    @classmethod
    def read(cls, folder: RunFolder) -> Self | None:
        """What is recorded, or None if nothing is yet: the run has no predictions, or has not ended."""
        path = folder.path / "predictions.json"
        if not path.exists():
            return None
        try:
            return cls.model_validate_json(read_text(path))
        except ValidationError as error:
            raise FileFormatError(f"{path} cannot be read: {error.errors(include_url=False)[0]['msg']}.") from None


def read_limit() -> int:
    """How many bytes of predictions a home keeps."""
    text = os.environ.get(LIMIT) or _DEFAULT
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ConfigError(f"The {LIMIT} variable must be a size such as 500MB or 2GB. Got '{text}' instead.")
    return round(float(match[1]) * _UNITS[match[2].lower()])


def measure_kept(folder: RunFolder) -> int:
    """The bytes of a run's predictions: as recorded at its end, else counted.

    Every run asks this of all runs of its home, so the record is not parsed.
    """
    try:
        with open(f"{folder.path}/predictions.json", "rb") as file:  # noqa: PTH123 (paths are slow)
            recorded = _RECORDED.match(file.read(100))
    except OSError:
        recorded = None
    return int(recorded[1]) if recorded else sum(_list_files(folder).values())


def record_kept(folder: RunFolder, removed: Iterable[str] = ()) -> None:
    """Record how much a run keeps, all of it on disk, and what it has no more; what was made again is there again."""
    sync_arrays(folder.predictions)
    files, known = _list_files(folder), _read_safely(folder)
    gone = {*removed, *known.removed} - files.keys()
    _write(folder, files, gone)


def remove_kept(folder: RunFolder) -> int:
    """Remove the predictions of a run that is not being executed, and return their size.

    They are recorded as removed before they go: whatever a kill leaves, what is missing was not lost.
    """
    with folder.hold():
        files = _list_files(folder)
        if files:
            _write(folder, files, {*files, *_read_safely(folder).removed})
            shutil.rmtree(folder.predictions, ignore_errors=True)
        record_kept(folder)
    return sum(files.values())


class Room(NamedTuple):
    """What was removed to make room."""

    runs: int
    bytes: int
    limit: int

    def __str__(self) -> str:
        runs = count_of(self.runs, "older run")
        return (
            f"The predictions of {runs} were removed ({format_size(self.bytes)}): this home keeps"
            f" {format_size(self.limit)} of them, unless the variable {LIMIT} says otherwise."
        )


def make_room(latest: RunFolder, folders: Iterable[RunFolder]) -> Room | None:
    """Remove the oldest predictions beyond the limit, but never those of the latest run."""
    limit = read_limit()
    sizes = {folder: size for folder in folders if (size := measure_kept(folder))}
    excess, runs, freed = sum(sizes.values()) - limit, 0, 0
    older = [folder for folder in sizes if folder.run_id != latest.run_id and folder.attempts()] if excess > 0 else []
    for folder in sorted(older, key=lambda folder: folder.time()):
        if freed >= excess:
            break
        with contextlib.suppress(BoostersEvalError, OSError):  # it is being executed, or belongs to somebody else
            freed += remove_kept(folder)
            runs += 1
    return Room(runs, freed, limit) if runs else None


def adopt_array(digest: str, folder: Path, sources: Iterable[Path]) -> bool:
    """Bring an array of another run into a folder, as a link where that is possible; False if it is there no more."""
    place = locate_array(folder, digest)
    for found in (place, *(locate_array(source, digest) for source in sources)):
        if found.is_file():
            break
    else:
        return False
    if found != place:
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            place.hardlink_to(found)
        except OSError:
            write_atomically(place, found.read_bytes(), own=True)
    return True


def _list_files(folder: RunFolder) -> dict[str, int]:
    """The digests of a run's predictions, with their sizes."""
    files = folder.predictions.glob("??/*.npy") if os.path.isdir(folder.predictions) else ()  # noqa: PTH112 (as above)
    return {path.stem: path.lstat().st_size for path in files}


def _read_safely(folder: RunFolder) -> PredictionsRecord:
    """What is recorded; a damaged record is written anew."""
    with contextlib.suppress(BoostersEvalError):
        return PredictionsRecord.read(folder) or PredictionsRecord()
    return PredictionsRecord()


def _write(folder: RunFolder, files: Mapping[str, int], removed: Iterable[str]) -> None:
    record = PredictionsRecord(bytes=sum(files.values()), removed=tuple(sorted(removed)))
    if record != _read_safely(folder):
        write_atomically(folder.path / "predictions.json", record.model_dump_json() + "\n", own=True)
