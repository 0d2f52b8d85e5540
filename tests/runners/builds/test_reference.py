"""What names a build, and what does not."""

import pytest

from boosters_eval import ConfigError
from boosters_eval.cli.parser import repeat_options
from boosters_eval.programs.benchmark.request import BEFORE_A_LIBRARY
from boosters_eval.runners.builds.reference import is_reference, label_of, parse_reference
from toys import write_runner, write_source, write_wheel


@pytest.mark.parametrize(
    "text", ["xgboost", "boosters", "path/to/file.py:Class", "some@folder/file.py:Class", "./a=b/file.py:Class", None]
)
def test_a_library_is_not_a_build(text):
    assert not is_reference(text)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("xgboost==3.0.5", "xgboost==3.0.5"),
        ("old=xgboost==3.0.5", "old"),
        ("xgboost=xgboost==3.0.5", "xgboost"),
        ("lightgbm==4.6.0rc1", "lightgbm==4.6.0rc1"),
        ("xgboost==3.0.5+local.1", "xgboost==3.0.5+local.1"),
    ],
)
def test_a_version_is_its_own_label_unless_it_is_named(text, label):
    assert is_reference(text)
    assert parse_reference(text).label == label_of(text) == label


def test_a_wheel_is_labelled_by_its_version_and_a_folder_by_its_name(tmp_path):
    library = write_runner(tmp_path)
    wheel = write_wheel(tmp_path, "1.5")
    folder = write_source(tmp_path / "my | branch")
    assert parse_reference(f"{library}@{wheel}").label == "toy@1.5"
    assert parse_reference(f"{library}@{folder}").label == "toy@my-branch"
    assert parse_reference(f"main={library}@{folder}").label == "main"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("xgboost>=3", "must be exact, such as xgboost==1.2.3. Got 'xgboost>=3' instead."),
        ("xgboost==3.*", "must be exact"),
        ("xgboost==", "must be exact"),
        ("xgbost==3.0.5", "Unknown library 'xgbost'. Did you mean 'xgboost'?"),
        ("new=xgboost", "has neither a version nor a path"),
        ("lightgbm=xgboost==3.0.5", "cannot be named 'lightgbm': that is another library."),
        ("a|b=xgboost==3.0.5", "The name of a build must be letters, digits"),
        ("=xgboost==3.0.5", "The name of a build must be letters, digits"),
        ("boosters@nowhere", "there is no file or folder"),
        ("boosters@", "names no path"),
        ("boosters@empty", "has no pyproject.toml."),
        ("boosters@notes.txt", "must be a wheel (.whl) or a source folder."),
        ("boosters@toybooster-1.0-py3-none-any.whl", "is one of toybooster, not of boosters (boosters)."),
        ("boosters@odd.whl", "does not have a wheel's name"),
    ],
)
def test_what_cannot_be_a_build_is_refused_in_one_sentence(text, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").touch()
    (tmp_path / "odd.whl").touch()
    write_wheel(tmp_path)
    with pytest.raises(ConfigError) as caught:
        parse_reference(text)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_comma_in_the_path_of_a_build_separates_nothing():
    given = ["-l", "xgboost,lightgbm==4.3.0,new=boosters@/a,b/x.whl,boosters@c,d.whl,dir/f.py:C"]
    words = repeat_options(given, {"-l": BEFORE_A_LIBRARY})
    assert words[1::2] == ["xgboost", "lightgbm==4.3.0", "new=boosters@/a,b/x.whl", "boosters@c,d.whl", "dir/f.py:C"]
