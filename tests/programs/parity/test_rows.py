"""The rows of the CSV file: what is written is what is read, and of equal cells the newest counts."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boosters_eval.core.errors import FileFormatError
from boosters_eval.core.text import clean_lines, make_encodable
from boosters_eval.programs.parity.rows import ParityRow, merge, read_rows, render_rows, write_rows
from boosters_eval.programs.parity.verdicts import BindingStatus, ParityVerdict

if TYPE_CHECKING:
    from pathlib import Path

AWKWARD = st.one_of(
    st.text(st.characters(), max_size=60),
    st.sampled_from(
        ["=1+1", "'=1", "''", "'", '"', 'a,"b"\nc', "@x", "-1e-3", "+x", " =x", "\r\n", "\ud800", "\x00,", "'-"]
    ),
)
FLOATS = st.one_of(st.none(), st.floats(allow_nan=False))


def row(**changes: Any) -> ParityRow:
    given = {"method": "pls", "backend": "b", "n": 20, "p": 3, "threads": 1, "status": BindingStatus.OK}
    return ParityRow(**{**given, "data_digest": "d", **changes})


@settings(max_examples=30)  # each writes a file
@given(AWKWARD, AWKWARD, FLOATS, st.lists(st.integers(0, 2**63), max_size=3))
def test_any_text_and_any_number_survives_the_file(
    tmp_path_factory: pytest.TempPathFactory, message: str, name: str, number: float | None, samples: list[int]
) -> None:
    path = tmp_path_factory.getbasetemp() / "rows.csv"
    rows = [
        row(message=message, method=name, convention=message, divergence=number, samples_ns=tuple(samples)),
        row(
            backend=name,
            verdict=ParityVerdict.KNOWN_DEFECT,
            repeatable=True,
            own=True,
            signal="SIGSEGV",
            max_abs=number,
        ),
    ]
    write_rows(path, rows)
    assert read_rows(path) == rows
    assert rows[0].message == clean_lines(make_encodable(message)).rstrip("\n")


def test_a_spreadsheet_calculates_nothing() -> None:
    (_, cells) = csv.reader(io.StringIO(render_rows([row(message="=HYPERLINK(1)", backend="@b", convention="-x")])))
    assert not [cell for cell in cells if cell.startswith(("=", "@", "+", "-"))]


def test_of_rows_with_the_same_key_the_newest_wins_whatever_the_order() -> None:
    old, new = row(measured_at="2026-01-01", max_abs=1.0), row(measured_at="2026-02-01", max_abs=2.0)
    assert merge([old], [new]) == merge([new], [old]) == [new]
    again = row(measured_at="2026-02-01", max_abs=3.0)
    assert merge([new], [again]) == [again]
    assert merge([old, row(backend="c")], [new]) == [new, row(backend="c")]


def test_a_cell_that_was_never_run_replaces_no_measurement() -> None:
    measured = row(measured_at="2026-01-01")
    absent = row(status=BindingStatus.NOT_AVAILABLE, message="R is not installed")
    assert merge([measured], [absent]) == merge([absent], [measured]) == [measured]


def test_a_cell_whose_data_could_not_be_made_gives_way_to_one_whose_data_could() -> None:
    without = row(status=BindingStatus.NOT_AVAILABLE, data_digest="")
    assert merge([without], [row(measured_at="2026-01-01")]) == [row(measured_at="2026-01-01")]
    assert merge([without, row(backend="c")]) == [without, row(backend="c")]


def test_another_digest_is_another_cell() -> None:
    assert len(merge([row(data_digest="a")], [row(data_digest="b")], [row(parameters_digest="c")])) == 3


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "it has no column 'method'"),
        ("method,backend,n,p,threads,status,color\n", "it has an unknown column 'color'"),
        ("method,backend,n,p,threads,status\na,b,1,1\n", "line 2: 6 cells are required. Got 4 instead."),
        ("method,backend,n,p,threads,status\na,b,1,1,1,fine\n", "line 2: The 'status' cell cannot be read."),
        ("method,backend,n,p,threads,status,samples_ns\na,b,1,1,1,ok,[1\n", "line 2: The 'samples_ns' cell"),
        (
            f"method,backend,n,p,threads,status,samples_ns\na,b,1,1,1,ok,{'[' * 99_999}\n",
            "line 2: The 'samples_ns' cell",
        ),
        ("method,backend,n,p,threads,status\n" + "a,b,1,1,1,ok\n" * 100_001, "has more than 100000 rows"),
        (
            "method,backend,n,p,threads,status,schema_version\na,b,1,1,1,ok,2\n",
            "is a file of parity results of format 2, which",
        ),
    ],
)
def test_another_file_is_refused_in_a_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(FileFormatError, match=sentence.replace("'", ".")):
        read_rows(path)
