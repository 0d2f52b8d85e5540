import os
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import yaml

from boosters_eval.core.errors import ConfigError, FileFormatError
from boosters_eval.core.files import (
    MAX_TEXT,
    check_writable,
    compose_yaml,
    find_home,
    open_atomically,
    read_text,
    resolved,
    write_atomically,
)
from processes import environment


def test_file_is_replaced_whole_and_leaves_nothing_beside_it(tmp_path):
    path = tmp_path / "deep" / "file.txt"
    write_atomically(path, "one")
    write_atomically(path, b"two")
    assert path.read_text() == "two"
    assert list(path.parent.iterdir()) == [path]


def test_mode_follows_the_umask_and_then_stays(tmp_path):
    path = tmp_path / "file"
    before = os.umask(0o077)
    try:
        write_atomically(path, "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o640)
    write_atomically(path, "y")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_link_stays_a_link_and_its_target_is_written(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_atomically(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_pipe_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()
    check_writable(pipe)
    write_atomically(pipe, "through")
    reader.join()
    assert got == ["through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_what_cannot_be_written_is_told_before_the_work(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="it is a directory"):
        check_writable(tmp_path)
    with pytest.raises(ConfigError, match="Cannot write"):
        check_writable(tmp_path / "file" / "below.md")
    with pytest.raises(ConfigError, match="Cannot write"):
        write_atomically(tmp_path / "file" / "below.md", "x")


def test_file_that_cannot_be_read_is_one_sentence(tmp_path):
    with pytest.raises(ConfigError, match="does not exist"):
        read_text(tmp_path / "none")
    with pytest.raises(ConfigError, match="Cannot read"):
        read_text(tmp_path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileFormatError, match="not a text file"):
        read_text(tmp_path / "binary")
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(MAX_TEXT + 1)
    with pytest.raises(FileFormatError, match="larger than 32 MB"):
        read_text(tmp_path / "huge")


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "folder"])
def test_only_a_regular_file_is_read(tmp_path, make):
    path = tmp_path / "input"
    make(path)
    with pytest.raises(ConfigError, match=r"Cannot read .*input: it is (no regular file|a directory)\."):
        read_text(path)


def test_device_that_never_ends_is_refused_at_once():
    with pytest.raises(ConfigError, match=r"Cannot read /dev/zero: it is no regular file\."):
        read_text(Path("/dev/zero"))


def test_line_ends_are_read_as_they_are(tmp_path):
    (tmp_path / "file").write_bytes(b"a\r\nb\n")
    assert read_text(tmp_path / "file") == "a\r\nb\n"


def test_link_that_leads_to_itself_is_one_sentence(tmp_path):
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for use in (resolved, check_writable, lambda path: write_atomically(path, "x")):
        with pytest.raises(ConfigError, match="it is a link that leads to itself"):
            use(loop)
    with pytest.raises(ConfigError, match="Too many levels"):
        read_text(loop)


def test_a_file_written_in_parts_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "out.txt"
    with open_atomically(path) as file:
        file.write("a")
        assert not path.exists()
        file.write("b")
    assert path.read_text() == "ab"
    with pytest.raises(ZeroDivisionError), open_atomically(path) as file:
        file.write(str(1 / 0))
    assert path.read_text() == "ab"
    assert list(tmp_path.iterdir()) == [path]


def test_without_a_name_runs_are_kept_in_the_current_directory():
    assert find_home() == Path(".boosters-eval")


def test_a_named_home_comes_before_that_of_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("BOOSTERS_EVAL_HOME", str(tmp_path / "set"))
    assert find_home() == tmp_path / "set"
    assert find_home(tmp_path / "given") == tmp_path / "given"
    monkeypatch.setenv("BOOSTERS_EVAL_HOME", "")
    assert find_home() == Path(".boosters-eval")


def test_a_home_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="must be a directory"):
        find_home(tmp_path / "file")


def test_the_tests_do_not_see_the_home_of_whoever_runs_them(tmp_path):
    named = f"{__file__}::test_without_a_name_runs_are_kept_in_the_current_directory"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", named]
    env = environment(BOOSTERS_EVAL_HOME=str(tmp_path / "home"))
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    "text", ['a: "' + "\\\n" * 2_000_000, "a: |" + "\n" * 4_000_000 + "b", "[" * 90 + "1," * 90_000]
)
def test_what_is_no_yaml_is_told_within_seconds_of_computing(text):
    started = time.process_time()
    with pytest.raises(yaml.YAMLError):
        compose_yaml(text, "a.yaml", values=200_000)
    assert time.process_time() - started < 3


LONG = f"&a {'x' * 100_000}"


@pytest.mark.parametrize(
    "text",
    [
        f"drop: [{LONG}{', *a' * 1000}]",
        f"first: &b [{LONG}{', *a' * 100}]\nsecond: [*b, *b, *b, *b]",
        f"first: &b {{x: {LONG}}}\nsecond: [*b{', *b' * 1000}]",
    ],
)
def test_yaml_that_repeats_a_text_by_references_is_refused_before_it_is_that_long(text):
    with pytest.raises(FileFormatError, match=r"^a.yaml, line \d: The file has more than 32 MB of text\.$"):
        compose_yaml(text, "a.yaml", values=200_000)


def test_yaml_may_repeat_a_little_by_references():
    root = compose_yaml("a: &a [x, y]\nb: *a\nc: *a\n", "a.yaml", values=100)
    assert [len(value.value) for _, value in root.value] == [2, 2, 2]
