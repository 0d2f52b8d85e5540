"""Nothing is ever cut: whatever a table holds, it fits the terminal and is there whole."""

import io
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from boosters_eval.reports.layout import NARROWEST, STACKED_BELOW, Grid, Span, lay_out, wrapped, wrapped_with_indent
from boosters_eval.reports.numbers import estimate
from boosters_eval.reports.tables import Column, Report, ReportTable, Row, TableCell
from boosters_eval.reports.terminal import NOTE_LINES, print_document

NAMES = st.text(st.characters(exclude_categories=["C", "Z", "M"]), min_size=1, max_size=90)
WORDS = st.lists(st.text("abcé中/_-.", min_size=1, max_size=30), min_size=1, max_size=12).map(" ".join)
ROOM = NARROWEST - 4  # for a value on a line of its own; only absurdly precise ones are longer
NUMBERS = st.builds(estimate, st.floats(-1e9, 1e9), st.floats(0, 1e6) | st.none()).filter(lambda t: len(t) <= ROOM)
WIDTHS = st.integers(NARROWEST, 200)
MARKS = "│┌┐└┘├┤┬┴┼─ \n"


def lines_of(grid, width=None):
    return [line.plain for line in lay_out(grid, width)]


def squeezed(lines):
    """All that is written, without frames and spaces: a name that is broken into lines is whole here."""
    return "".join("".join(lines).translate({ord(mark): None for mark in MARKS}))


def pieces(text, lines):
    """Whether the characters of a text appear in this order, however it is broken."""
    found = iter(squeezed(lines))
    return all(char in found for char in squeezed([text]))


@st.composite
def tables(draw):
    columns, keys = draw(st.integers(1, 9)), draw(st.integers(1, 2))
    headings = tuple(draw(st.lists(WORDS, min_size=columns + keys, max_size=columns + keys)))
    cells = st.tuples(*[NAMES.map(Span)] * keys, *[NUMBERS.map(Span)] * columns)
    rows = tuple(draw(st.lists(cells, max_size=5)))
    return Grid(headings, rows, keys=keys, whole=True, framed=draw(st.booleans()))


@settings(max_examples=25)
@given(tables(), WIDTHS)
def test_a_table_of_numbers_fits_any_terminal_with_every_name_and_number_whole(grid, width):
    lines = lines_of(grid, width)
    assert max(map(cell_len, lines), default=0) <= width
    for row in grid.rows:
        assert all(pieces(span.text, lines) for span in row[: grid.keys])
        assert all(any(span.text in line for line in lines) for span in row[grid.keys :])
    assert not any("…" in line for line in lines)


@settings(max_examples=20)
@given(st.lists(st.tuples(NAMES, WORDS, WORDS, WORDS), min_size=1, max_size=4), WIDTHS)
def test_a_table_of_texts_fits_any_terminal_with_every_word(rows, width):
    grid = Grid(("name", "one", "two", "three"), tuple(tuple(map(Span, row)) for row in rows))
    lines = lines_of(grid, width)
    assert max(map(cell_len, lines)) <= width
    assert all(pieces(text, lines) for row in rows for text in row)


@settings(max_examples=30)
@given(WORDS, st.integers(2, 60))
def test_wrapped_lines_keep_every_character(text, width):
    assert squeezed(wrapped(text, width)) == squeezed([text])
    assert max(map(cell_len, wrapped(text, width))) <= width
    assert max(map(cell_len, wrapped_with_indent(f"  label  {text}", width + 20))) <= width + 20


LIBRARIES = ("boosters", "xgboost", "lightgbm")
WIDE = Grid(
    ("Library", *(f"Metric number {i} ↓" for i in range(6)), "n"),
    tuple((Span(name), *[Span("0.4521 ± 0.0044")] * 6, Span("5")) for name in LIBRARIES),
    whole=True,
    framed=True,
)


def test_columns_that_do_not_fit_move_to_further_tables_that_repeat_the_names():
    text = "\n".join(lines_of(WIDE, 80))
    assert text.count("│ Library  │") == text.count("│ lightgbm │") == 2
    assert len(lines_of(WIDE, 80)) < len(lines_of(WIDE, STACKED_BELOW - 1))


@pytest.mark.parametrize("width", [80, 60])
def test_facts_of_a_row_are_told_once_however_many_tables_it_takes(width):
    rows = tuple((row[0], Span(f"fact of {row[0].text}"), *row[1:]) for row in WIDE.rows)
    grid = replace(WIDE, headings=("Library", "What is known", *WIDE.headings[1:]), rows=rows, facts=1)
    text = "\n".join(lines_of(grid, width))
    assert text.count("Metric number") == 6
    assert [text.count(f"fact of {name}") for name in LIBRARIES] == [1, 1, 1]
    assert text.count("What is known") == 1


def test_a_narrow_terminal_gets_one_block_per_column_of_values():
    lines = lines_of(WIDE, 60)
    at = lines.index("Metric number 0 ↓")
    assert lines[at + 1 : at + 4] == [f"  {name:<8}  0.4521 ± 0.0044" for name in LIBRARIES]


def test_a_narrow_terminal_gets_one_block_per_row_of_texts():
    cells = ("a name of its own", "1 000 x 20", "some words " * 8)
    grid = Grid(("name", "its size", "what it is"), (tuple(map(Span, cells)),))
    assert lines_of(grid, 40)[:3] == [cells[0], "  its size    1 000 x 20", "  what it is  some words some words some"]


def test_outside_a_terminal_a_row_is_one_line():
    grid = Grid(("name", "text"), ((Span("a"), Span("word " * 100)),))
    assert len(lines_of(grid)) == 3


def test_a_long_word_is_broken_behind_a_sign():
    assert wrapped("path/to/some_very_long_name", 12) == ["path/to/", "some_very_", "long_name"]
    assert wrapped("数据数据数据", 5) == ["数据", "数据", "数据"]


def report(notes=(), answer=(), table_notes=(), tables=1):
    cell = TableCell(mean=0.5, std=None, n=1, text="0.5", best=True)
    made = ReportTable("t", ("Who",), (Column("x", "X", None),), (Row(("me",), (cell,)),), notes=table_notes)
    return Report(
        tuple(ReportTable(**{**_fields(made), "name": f"t{i}", "answer": answer}) for i in range(tables)), notes
    )


def _fields(table):
    return {name: getattr(table, name) for name in table.__dataclass_fields__}


def printed(made, width=60, *, terminal=True, color_system=None, **options):
    console = Console(
        file=io.StringIO(),
        width=width,
        height=25,
        force_terminal=terminal,
        color_system=color_system,
        legacy_windows=False,
    )
    print_document(made.document(), console, **options)
    return console.file.getvalue()


def test_notes_fit_a_screen_and_the_others_are_counted():
    notes = tuple(f"number {i} of many notes, which is so long that it takes two lines" for i in range(30))
    text = printed(report(notes, table_notes=notes[:3]), every_note=False, how="-v, or later")
    shown = text.count("Note: ")
    lines = text.splitlines()
    assert sum(line.startswith(("Note: ", "  ")) for line in lines) <= NOTE_LINES
    assert f"{33 - shown} more notes with -v, or later" in lines
    assert text.index("Note: number 0") < text.index("Note: number 1 ")
    assert printed(report(notes), every_note=True).count("Note: ") == 30


def test_every_table_shows_its_first_note_before_any_shows_its_second():
    text = printed(report(table_notes=("first", "second " * 60), tables=5), every_note=False)
    assert text.count("Note: first") == 5
    assert "more notes with -v" in text


def test_one_hidden_note_is_no_plural():
    assert "1 more note with -v" in printed(report(("first", "words " * 300)), every_note=False)


def test_the_answers_come_before_the_tables():
    assert printed(report(answer=("I am best.",))).splitlines()[:2] == ["t0", "I am best."]
    several = printed(report(answer=("I am best.",), tables=2)).splitlines()
    assert several[:4] == ["t0: I am best.", "t1: I am best.", "", "t0"]


def test_a_dumb_terminal_has_asterisks_and_another_one_has_bold():
    assert "**0.5**" in printed(report())
    assert "\x1b[1;32m0.5" in printed(report(), color_system="standard")
    assert "**" not in printed(report(), color_system="standard")


def test_no_color_keeps_bold(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[1m0.5" in printed(report(), color_system="standard")


def test_a_number_stays_with_its_sign_and_an_option_with_its_value():
    text = "a difference of 12.5 % with --seeds 20 or --cv 5x10"
    for width in range(14, 40):
        lines = wrapped(text, width)
        assert not any(line.startswith("%") or line.endswith(("--seeds", "--cv")) for line in lines)


def test_a_further_table_begins_with_another_kind_of_column():
    names = ("RMSE", "MAE", "R²", "Train time", "Predict time")
    columns = tuple(Column(n, n, higher_is_better=False, kind="time" if "time" in n else "metric") for n in names)
    cells = tuple(TableCell(0.5, 0.1, 5, "0.500000 ± 0.100") for _ in names)
    made = Report((ReportTable("t", ("Library",), columns, (Row(("boosters",), cells, n=5),)),))
    for width in (80, 90, 100):
        heads = [line.split("│")[2:-1] for line in printed(made, width).splitlines() if "Library" in line]
        assert [[head.strip(" ↓") for head in one] for one in heads] == [["RMSE", "MAE", "R²"], [*names[3:], "n"]], (
            width
        )
