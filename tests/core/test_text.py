"""Text from outside, made harmless for the terminal, messages, spreadsheets and JSON."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boosters_eval.core.text import (
    MAX_MESSAGE,
    clean,
    clean_csv_cell,
    clean_lines,
    clean_message,
    clean_output,
    escape_json,
    hide_home,
    make_encodable,
    shorten_paths,
)

any_text = st.text(st.characters())  # lone surrogates too


@pytest.mark.parametrize(
    "sign", ["\x1b[31m", "\x9b31m", "\u202e", "\u2066", "\u200b", "\r", "\x00", "\ud800", "\uffff"]
)
def test_nothing_that_a_terminal_obeys_is_left(sign):
    assert clean(f"a{sign}b").isprintable() or "\ufffd" in clean(f"a{sign}b")
    assert sign[0] not in clean(f"a{sign}b")


@given(any_text)
def test_clean_text_can_be_encoded_and_has_no_controls(text):
    for found in (clean(text), clean_lines(text).replace("\n", ""), clean_message(text)):
        found.encode()
        assert not {unicodedata.category(char) for char in found} & {"Cc", "Cf", "Cs", "Zl", "Zp"}


def test_what_leaves_the_program_keeps_its_lines_and_on_a_terminal_its_colors():
    text = "a\tb\r\n\x1b[31mred\x1b[0m\x1b]0;title\x07\rover"
    assert clean_output(text) == "a\tb\r\n\ufffd[31mred\ufffd[0m\ufffd]0;title\ufffd\ufffdover"
    assert clean_output(text, styled=True) == "a\tb\r\n\x1b[31mred\x1b[0m\ufffd]0;title\ufffd\ufffdover"


def test_ordinary_text_stays_as_it_is():
    for text in ("", "iris/gbdt sklearn", "Größe ± 2 → 3", "日本語", "❌ 🆕"):
        assert clean(text) == clean_message(text) == clean_csv_cell(text) == text
    assert clean_lines("a\n\tb\r\nc") == "a\n    b\nc"


def test_very_long_message_loses_its_middle():
    cut = clean_message("begin " + "x" * 1_000_000 + " end")
    assert cut.startswith("begin x")
    assert cut.endswith("x end")
    assert len(cut) < MAX_MESSAGE + 10


@pytest.mark.parametrize(
    "text", ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r\n=1", " =1", "-a", "- 1"]
)
def test_text_that_looks_like_a_formula_is_guarded(text):
    assert clean_csv_cell(text).startswith("'")


@pytest.mark.parametrize("value", [-1.5, 3, None, True, "-1.5", "+2", "-0.5 ± 0.1", "-1e-05", "1.2 ± 0.3"])
def test_numbers_stay_numbers(value):
    assert clean_csv_cell(value) == value


@given(any_text)
def test_escaped_json_has_the_same_content_and_nothing_that_a_terminal_obeys(text):
    whole = json.dumps({"name": text, "list": [1]}, ensure_ascii=False, indent=1)
    escaped = escape_json(whole)
    assert json.loads(escaped) == json.loads(whole)
    assert clean_lines(escaped) == escaped


def test_lone_surrogate_becomes_encodable():
    assert make_encodable("a\udcff") == "a?"


def test_paths_do_not_lead_through_the_home(monkeypatch, tmp_path):
    home = tmp_path / "al"
    (home / "project").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    assert hide_home(f"in {home}/x.py, {home}ice/x.py and {home}") == f"in ~/x.py, {home}ice/x.py and ~"
    monkeypatch.chdir(home / "project")
    for word, shown in (
        (f"{home}/project/d.csv:y", "d.csv:y"),
        (f"head=lib@{home}/lib", "head=lib@../lib"),
        (f"--output={home}/project", "--output=."),
        ("/mnt/d.csv:y", "/mnt/d.csv:y"),
        ("a/b:y", "a/b:y"),
    ):
        assert shorten_paths(word) == shown
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert shorten_paths(f"{home}/data/d.csv:y") == "d.csv:y"
