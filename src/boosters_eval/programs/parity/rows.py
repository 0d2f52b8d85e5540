"""The cells of a parity run as rows of a CSV file: a view of the journal that can be merged by key."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import AfterValidator, ConfigDict, ValidationError, field_validator

from boosters_eval.core.errors import FileFormatError
from boosters_eval.core.files import FORMAT, check_format, read_text, split_lines, write_atomically
from boosters_eval.core.model import FileModel
from boosters_eval.core.text import clean_csv_cell, clean_lines, make_encodable
from boosters_eval.programs.parity.verdicts import BindingStatus, ParityVerdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path


class Place(NamedTuple):
    """Where a cell stands in the tables."""

    method: str
    backend: str
    n: int
    p: int
    threads: int


class RowKey(NamedTuple):
    """What makes two rows the same cell: a row with another digest is another cell, not a newer one."""

    place: Place
    parameters_digest: str
    data_digest: str


def _fit_for_a_cell(given: str) -> str:
    """Text comes from programs of every kind: what no file can hold, or a terminal would obey, goes here."""
    return given if given.isprintable() else clean_lines(make_encodable(given)).rstrip("\n")


CellText = Annotated[str, AfterValidator(_fit_for_a_cell)]


_LISTS = ("samples_ns", "rounds_ns", "predictions")  # written as JSON


class ParityRow(FileModel):
    """One cell: how it ended, how far it is from its two references, and every time that was taken."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=True)

    schema_version: int = FORMAT
    method: CellText
    backend: CellText
    n: int
    p: int
    threads: int
    parameters_digest: CellText = ""
    data_digest: CellText = ""
    language: CellText = ""
    own: bool = False  # a binding of the project under test
    status: BindingStatus
    signal: CellText | None = None
    message: CellText = ""
    # Against the canonical binding at one thread
    binding_verdict: ParityVerdict | None = None  # None: not one of the project's own, or nothing to compare
    binding_max_abs: float | None = None
    # Against the oracle
    verdict: ParityVerdict | None = None  # None: nothing to compare
    oracle: CellText = ""  # the backend, and its version when the reference was made
    divergence_metric: CellText = ""
    divergence: float | None = None
    tolerance: float | None = None
    max_abs: float | None = None
    relative_rmse: float | None = None
    rows_off: float | None = None
    n_compared: int | None = None  # data sets whose predictions were compared; the one that is farthest off is told
    convention: CellText = ""  # the documented sentence, where the verdict rests on it
    cause: CellText = ""  # the name of what the difference looks like
    diagnosis: CellText = ""  # the same as a sentence
    # Times
    reported_ms: float | None = None
    median_ms: float | None = None  # the older name; always equal to reported_ms
    timing_statistic: CellText = ""
    timing_schema: CellText = ""
    n_runs: int | None = None
    total_runs: int | None = None
    stop_reason: CellText = ""
    load_ms: float | None = None
    prepare_ms: float | None = None
    fit_ms: float | None = None
    predict_ms: float | None = None
    samples_ns: tuple[int, ...] = ()
    rounds_ns: tuple[tuple[int, ...], ...] = ()  # of further rounds, each in a process of its own
    threads_observed: int | None = None
    repeatable: bool | None = None
    predictions: tuple[CellText, ...] = ()  # the digests of the stored arrays
    versions_json: CellText = ""
    host_json: CellText = ""  # the machine: system, processor, BLAS, Python
    registry_json: CellText = ""  # the user's files that the run was given
    run_id: CellText = ""
    measured_at: CellText = ""

    @field_validator(*_LISTS, mode="before")
    @classmethod
    def _from_json(cls, given: Any) -> Any:
        try:
            return json.loads(given or "[]") if isinstance(given, str) else given
        except RecursionError:
            raise ValueError("nested too deeply") from None

    @property
    def key(self) -> RowKey:
        return RowKey(self.place, self.parameters_digest, self.data_digest)

    @property
    def spec(self) -> str:
        """The name of its spec in a plan: what is done on how much data, with how many threads."""
        return f"{self.method}/{self.n}x{self.p}@{self.threads}"

    @property
    def place(self) -> Place:
        return Place(self.method, self.backend, self.n, self.p, self.threads)


COLUMNS = tuple(ParityRow.model_fields)
_MOST_BYTES, _MOST_ROWS = 2**26, 100_000  # of a file, in less than a gigabyte of memory
_TEXT = frozenset(name for name, field in ParityRow.model_fields.items() if field.annotation is str)


def merge(*files: Iterable[ParityRow]) -> list[ParityRow]:
    """The rows of several files; of rows with the same key the one measured last wins, in the place of the first.

    A cell that was never run is older than any that was: that R is not installed here unmakes no measurement.
    """
    found: dict[RowKey, ParityRow] = {}
    for rows in files:
        for row in rows:
            if row.key not in found or row.measured_at >= found[row.key].measured_at:
                found[row.key] = row
    known = {key._replace(data_digest="") for key in found if key.data_digest}
    return [row for key, row in found.items() if key.data_digest or key not in known]  # its data could not be made then


def select_current(rows: Sequence[ParityRow]) -> tuple[dict[Place, ParityRow], dict[Place, ParityRow]]:
    """One row per place, and the rows that are left out: on other data or with other parameters than the newest.

    The newest of a method and size decides: what was predicted from other data is compared with nothing of today.
    """
    latest: dict[tuple[str, int, int], ParityRow] = {}
    for row in rows:
        known = latest.get((row.method, row.n, row.p))
        if row.status.started and (known is None or row.measured_at >= known.measured_at):
            latest[row.method, row.n, row.p] = row
    found: dict[Place, ParityRow] = {}
    left_out: dict[Place, ParityRow] = {}
    for row in rows:
        newest = latest.get((row.method, row.n, row.p))
        same = newest is None or row.key[1:] == newest.key[1:]  # the digests
        if row.status.started and not same:
            left_out[row.place] = row
        elif same or row.place not in found:  # an absent backend is absent whatever the data
            found[row.place] = row
    return found, left_out


def render_rows(rows: Iterable[ParityRow]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow([_cell(name, value) for name, value in row.model_dump(mode="json").items()])
    return out.getvalue()


def _cell(name: str, value: Any) -> Any:
    if value is None:
        return ""
    if name in _LISTS:
        return json.dumps(value, separators=(",", ":"))
    if name not in _TEXT:
        return value
    # What a spreadsheet takes for text. Reading takes one apostrophe away, so one that was there is doubled.
    return f"'{value}" if value.startswith("'") else clean_csv_cell(value)


def write_rows(path: Path, rows: Iterable[ParityRow]) -> None:
    write_atomically(path, render_rows(rows))


def read_rows(path: Path) -> list[ParityRow]:
    """A file that `write_rows` wrote; anything else is refused in one sentence with its line."""
    reader = csv.reader(split_lines(read_text(path, limit=_MOST_BYTES)))
    rows: list[ParityRow] = []
    try:
        header = next(reader, [])
        unknown = [name for name in header if name not in COLUMNS]
        lacking = [name for name in ("method", "backend", "n", "p", "threads", "status") if name not in header]
        if unknown or lacking:
            what = f"has no column '{lacking[0]}'" if lacking else f"has an unknown column '{unknown[0]}'"
            raise FileFormatError(f"{path} is not a file of parity results: it {what}.")
        columns = [(name, name in _TEXT) for name in header]
        for values in filter(None, reader):
            rows.append(_row(columns, values, path, reader.line_num))
            if len(rows) > _MOST_ROWS:
                raise FileFormatError(f"{path} has more than {_MOST_ROWS} rows, more than this program ever writes.")
    except csv.Error as error:
        raise FileFormatError(f"{path}, line {reader.line_num}: {error}.") from None
    return rows


def _row(columns: list[tuple[str, bool]], values: list[str], path: Path, line: int) -> ParityRow:
    """A row from its cells; each column is a name, and whether it is of text."""
    if len(values) != len(columns):
        raise FileFormatError(f"{path}, line {line}: {len(columns)} cells are required. Got {len(values)} instead.")
    given = {
        name: value.removeprefix("'") if of_text else value
        for (name, of_text), value in zip(columns, values, strict=True)
        if value or of_text
    }
    try:
        row = ParityRow.model_validate(given)
    except ValidationError as error:
        cell = (*error.errors(include_url=False)[0]["loc"], "row")[0]
        raise FileFormatError(f"{path}, line {line}: The '{cell}' cell cannot be read.") from None
    check_format(row.schema_version, str(path), "a file of parity results")
    return row
