import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boosters_eval.core import files
from boosters_eval.core.errors import FileFormatError
from boosters_eval.core.files import MAX_KEYS, load_json, refuse_wide

leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
documents = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


@given(documents)
def test_what_json_wrote_is_read_as_it_was(document):
    assert load_json(json.dumps(document), "f.json") == document


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1', "f.json is not JSON: Expecting"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": 1, "b": 2, "a": 3}', "f.json has the key 'a' more than once in one object."),
        (
            json.dumps(dict.fromkeys(map(str, range(49_998))))[:-1] + ', "49997": 0}',
            "has the key '49997' more than once",
        ),
        ('[{"x": {"b": 2, "b": 2}}]', "f.json has the key 'b' more than once in one object."),
    ],
)
def test_anything_else_is_one_sentence(text, message):
    with pytest.raises(FileFormatError, match=message):
        load_json(text, "f.json")


@pytest.mark.parametrize("text", ['{"a": "\\ud800"}', '["\\udcffx"]', '{"\\uDEAD": 1}'])
def test_half_a_character_is_refused(text):
    with pytest.raises(FileFormatError, match="half of a surrogate pair"):
        load_json(text, "f")


def test_whole_pair_of_surrogates_is_a_character():
    assert load_json('"\\ud83d\\ude00"', "f") == "\U0001f600"


def test_object_of_too_many_keys_is_refused():
    wide = json.dumps(dict.fromkeys(map(str, range(MAX_KEYS + 1)), 0))
    with pytest.raises(FileFormatError, match="has an object of 50001 keys"):
        load_json(wide, "f")
    for text in (wide, wide.encode()):
        with pytest.raises(FileFormatError, match="50001 keys"):
            refuse_wide(text, "f")
    refuse_wide(json.dumps([{"a": 1, "b": ":"}] * MAX_KEYS), "f")


@pytest.mark.parametrize(("objects", "keys"), [(90, 120), (120, 90)])
def test_many_objects_that_are_each_just_narrow_enough_are_refused_too(monkeypatch, objects, keys):
    """Each key that a model does not know costs an error of a kilobyte, also in an object of objects."""
    monkeypatch.setattr(files, "_MAX_WIDE_KEYS", 10_000)
    text = json.dumps({str(number): dict.fromkeys(map(str, range(keys))) for number in range(objects)})
    with pytest.raises(FileFormatError, match=r"has objects of 10\d+ keys in all"):
        load_json(text, "f")


def test_file_of_little_but_brackets_is_refused_before_it_is_parsed():
    with pytest.raises(FileFormatError, match="has 2000000 values in 3000000 characters"):
        load_json("[" + "[]," * 999_999 + "[]", "f")  # which is not even JSON
