"""A large text file, parsed in blocks by several threads into exactly what pandas makes of the whole.

Where a block cannot tell what the whole would be, nothing is returned, and the whole is read.
"""

from __future__ import annotations

import io
import os
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Iterator

    _Place = tuple[int, int]  # where a block begins, and its length

BLOCK = 2**22  # bytes: what a thread parses at a time stays in the cache
_THREADS = min(4, os.cpu_count() or 1)
_BY_BYTES = ("utf-8", "utf-8-sig", "cp1252", "latin-1")  # encodings in which the byte of a line's end is nothing else
_INT, _FLOAT, _BOOL = np.dtype(np.int64), np.dtype(np.float64), np.dtype(bool)


class _UnclearError(Exception):
    """Blocks cannot tell what the whole would be."""


def read_blocks(stream: IO[bytes], options: dict[str, Any]) -> pd.DataFrame | None:
    """The frame that `pd.read_csv` makes of a file with these options; None where that takes the whole."""
    header = stream.readline(BLOCK)
    plain = len(options["sep"]) == 1 and options["encoding"] in _BY_BYTES
    if not plain or not header.strip() or not header.endswith(b"\n") or header.count(b'"') % 2:
        return None
    try:
        return _Blocks(stream, header, options).read()
    except (_UnclearError, pd.errors.ParserError, pd.errors.ParserWarning):
        return None  # if something is wrong with the file, the whole tells it with the right line


class _Blocks:
    def __init__(self, stream: IO[bytes], header: bytes, options: dict[str, Any]) -> None:
        self._stream, self._header, self._options = stream, header, options

    def read(self) -> pd.DataFrame:
        with ThreadPoolExecutor(_THREADS) as pool:
            places, frames = self._parse_all(pool)
        if not frames:
            raise _UnclearError
        names = frames[0].columns
        if not names.is_unique or any(not names.equals(frame.columns) for frame in frames):
            raise _UnclearError
        kinds = [frame.dtypes.tolist() for frame in frames]
        wanted = [_find_common(set(column)) for column in zip(*kinds, strict=True)]
        columns = [[frame.iloc[:, at] for at in range(len(names))] for frame in frames]
        for place, own, found in zip(places, kinds, columns, strict=True):
            others = [at for at, kind in enumerate(wanted) if own[at] != kind]
            for at, column in zip(others, self._parse_again(place, others, names, wanted), strict=True):
                found[at] = column
        joined = {name: _join([found[at] for found in columns]) for at, name in enumerate(names)}
        return pd.DataFrame(joined, copy=False)

    def _parse_all(self, pool: ThreadPoolExecutor) -> tuple[list[_Place], list[pd.DataFrame]]:
        """The frames of all blocks; only so many are held at a time that no thread has to wait."""
        places: list[_Place] = []
        frames: list[pd.DataFrame] = []
        waiting: deque[tuple[_Place, Future[pd.DataFrame]]] = deque()
        blocks = self._split()
        while True:
            for place, data in islice(blocks, 2 * _THREADS - len(waiting)):
                waiting.append((place, pool.submit(self._parse, data)))
            if not waiting:
                return places, frames
            place, parsing = waiting.popleft()
            frame = parsing.result()
            if not isinstance(frame.index, pd.RangeIndex):
                raise _UnclearError  # its first row has more fields than the header
            if len(frame):  # of empty lines only, nothing is known
                places.append(place)
                frames.append(frame)

    def _split(self) -> Iterator[tuple[_Place, bytes]]:
        """Blocks that end with a line. A quoted field may hide the end of one, so there must be no quotes."""
        start, rest = len(self._header), b""
        while data := self._stream.read(BLOCK):
            end = data.rfind(b"\n") + 1
            small = start == len(self._header) and len(data) < BLOCK  # not worth it
            if b'"' in data or not end or small:
                raise _UnclearError
            block, rest = rest + data[:end], data[end:]
            yield (start, len(block)), block
            start += len(block)
        if rest:
            yield (start, len(rest)), rest

    def _parse(self, data: bytes, **more: Any) -> pd.DataFrame:
        options = {**self._options, **more}
        found: pd.DataFrame = pd.read_csv(io.BytesIO(self._header + data), low_memory=False, **options)
        for at, kind in enumerate(found.dtypes):
            if isinstance(kind, pd.StringDtype):
                _check_lengths(found.iloc[:, at])
        return found

    def _parse_again(self, place: _Place, others: list[int], names: pd.Index[Any], wanted: list[Any]) -> list[Any]:
        """Columns of a block whose values look like less than the whole column is: whole numbers, or numbers."""
        if not others:
            return []
        self._stream.seek(place[0])
        kinds = {names[at]: str if isinstance(wanted[at], pd.StringDtype) else wanted[at] for at in others}
        found = self._parse(self._stream.read(place[1]), usecols=others, dtype=kinds)
        again = [found.iloc[:, at] for at in range(len(others))]
        if [column.dtype for column in again] != [wanted[at] for at in others]:
            raise _UnclearError  # names that pandas changes, of which it finds no type
        return again


def _find_common(kinds: set[Any]) -> Any:
    """The type of a whole column, from those of its blocks."""
    texts = {kind for kind in kinds if isinstance(kind, pd.StringDtype)}
    if len(kinds) == 1 and np.dtype(object) not in kinds:
        return next(iter(kinds))
    if kinds == {_INT, _FLOAT}:
        return _FLOAT
    if len(texts) == 1 and kinds - texts <= {_INT, _FLOAT, _BOOL}:
        return next(iter(texts))
    raise _UnclearError


_TOO_LONG = 19  # digits from which a whole number may not fit: pandas makes a text of its column, or not, by the order


def _check_lengths(column: pd.Series[Any]) -> None:
    long = column[column.str.len() >= _TOO_LONG]
    if len(long) and long.str.fullmatch(r"\s*[-+]?\d+\s*").any():
        raise _UnclearError


def _join(parts: list[pd.Series[Any]]) -> Any:
    if isinstance(parts[0].dtype, np.dtype):
        return np.concatenate([part.to_numpy() for part in parts])
    return pd.concat(parts, ignore_index=True).array
