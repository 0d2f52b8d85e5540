"""A large text file is parsed in blocks, into exactly what pandas makes of the whole."""

import gzip
import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boosters_eval.datasets import blocks

FIELDS = (
    "1",
    "-0",
    "0",
    "-7",
    "3.5",
    "1e3",
    "0.1",
    "123456789012345678",
    "99999999999999999999",
    "0.30000000000000004",
)
WORDS = ("x", "text", "True", "False", "", "NA", " 5", "é", "2020-01-31", "inf", "-")


def options(**more):
    return {"sep": ",", "encoding": "utf-8", "dtype": {}, "index_col": None, "decimal": ".", **more}


def read_both(content, monkeypatch, size, **more):
    """What blocks of some bytes make of a file, and what pandas makes of it."""
    monkeypatch.setattr(blocks, "BLOCK", size)
    found = blocks.read_blocks(io.BytesIO(content), options(**more))
    return found, lambda: pd.read_csv(io.BytesIO(content), low_memory=False, **options(**more))


def assert_identical(found, wanted):
    """The same types, and numbers to the last bit: minus zero is not zero."""
    pd.testing.assert_frame_equal(found, wanted, check_exact=True)
    for name in wanted:
        if wanted[name].dtype == np.float64:
            assert (np.signbit(found[name]) == np.signbit(wanted[name])).all()


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_blocks_give_what_the_whole_gives_or_nothing(data):
    width = data.draw(st.integers(1, 4))
    kinds = [data.draw(st.sampled_from([FIELDS, WORDS, FIELDS[:4], FIELDS + WORDS])) for _ in range(width)]
    rows = data.draw(st.lists(st.tuples(*(st.sampled_from(kind) for kind in kinds)), min_size=1, max_size=60))
    ends = data.draw(st.sampled_from(["\n", "\r\n"]))
    names = data.draw(st.lists(st.sampled_from(["a", "b", "c", "", "a.1", "é"]), min_size=width, max_size=width))
    lines = [",".join(names), *(",".join(row) for row in rows)]
    odd = data.draw(st.sampled_from([None, None, '"quo\nted"', "one,too,many,fields,here,now", "", "\r"]))
    if odd is not None:
        lines.insert(data.draw(st.integers(1, len(lines))), odd)
    content = ends.join(lines).encode() + data.draw(st.sampled_from([b"", b"\n"]))
    with pytest.MonkeyPatch.context() as patch:
        found, whole = read_both(content, patch, data.draw(st.integers(8, 100)))
        if found is not None:
            assert_identical(found, whole())


@pytest.mark.parametrize(
    ("first", "later"),
    [("1", "2.5"), ("-0", "0.5"), ("1", ""), ("3", "x"), ("0.5", "x"), ("True", "x"), ("", "x"), ("007", "a7")],
)
def test_column_that_changes_its_kind_is_read_as_in_the_whole(monkeypatch, first, later):
    content = ("a,b\n" + f"{first},1.5\n" * 50 + f"{later},2.5\n" * 50).encode()
    found, whole = read_both(content, monkeypatch, 64)
    assert found is not None
    assert_identical(found, whole())


def test_numbers_of_seventeen_digits_are_those_of_pandas_to_the_last_bit(monkeypatch):
    numbers = np.random.default_rng(1).normal(size=2000)
    content = b"a\n" + b"".join(f"{number:.17g}\n".encode() for number in numbers)
    found, whole = read_both(content, monkeypatch, 1024)
    assert found is not None
    assert_identical(found, whole())


@pytest.mark.parametrize(
    "content",
    [
        b"a,b\n" + b'1,"x"\n' * 100,  # a quoted field may contain the end of a line
        b"a,b\n" + b"1,2,3\n" * 100,  # row names
        b"a,b\n" + b"1,2\n" * 50 + b"1,2,3\n" + b"1,2\n" * 50,  # an error that names the line
        b"a,b\n" + b"True,1\n" * 50 + b",2\n" * 50,  # True and missing
        b"a,b\r" + b"1,2\r" * 100,
        b"\n" + b"a,b\n" + b"1,2\n" * 100,
        b"a,b\n1,2\n",  # one block
    ],
)
def test_where_blocks_cannot_tell_nothing_is_returned(monkeypatch, content):
    assert read_both(content, monkeypatch, 64)[0] is None


def test_bytes_in_another_encoding_are_told_at_once(monkeypatch):
    content = b"a\n" + b"x\n" * 100 + "é\n".encode("latin-1") * 3 + b"x\n" * 100
    with pytest.raises(UnicodeDecodeError):
        read_both(content, monkeypatch, 64)
    found, whole = read_both(content, monkeypatch, 64, encoding="latin-1")
    assert_identical(found, whole())


def test_compressed_files_are_read_in_blocks_too(monkeypatch, tmp_path):
    path = tmp_path / "data.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"1,x\n" * 500 + b"2.5,y\n" * 500))
    monkeypatch.setattr(blocks, "BLOCK", 256)
    with gzip.open(path) as stream:
        found = blocks.read_blocks(stream, options())
    assert_identical(found, pd.read_csv(path, low_memory=False))
