"""A file is read in a process of its own: whatever happens to it there is one sentence here."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from boosters_eval.core import reader
from boosters_eval.core.errors import ConfigError, DataFileError, ExitCode, FileFormatError
from boosters_eval.core.reader import ReaderAnswer, read_apart, reading_within
from boosters_eval.core.terms import speaking_of

HERE = "test_reader:"  # as the process knows this file


@pytest.fixture(params=["fork", "new interpreter"])
def any_start(request, monkeypatch):
    """Both ways in which the process starts: with and without threads in the program."""
    monkeypatch.setattr(reader, "_can_fork", lambda: request.param == "fork")
    monkeypatch.syspath_prepend(Path(__file__).parent)
    return request.param


def answer_with_arrays(rows):
    x = np.arange(3 * rows, dtype=np.float32).reshape(rows, 3)
    return ReaderAnswer('{"é": 1}', {"x": x, "y": np.arange(rows), "none": np.empty((0, 2))})


def print_much():
    print("not an answer", flush=True)  # noqa: T201 (a library might)
    os.write(1, b"nor this\n")
    return ReaderAnswer("well")


def refuse():
    raise DataFileError("It has two faults:", ["this", "that"])


def refuse_format():
    raise FileFormatError("It is no such file.")


def fail():
    raise KeyError("damaged")


def take_memory(size):
    return ReaderAnswer(str(len(bytearray(size))))


def take_memory_in_pieces():
    held = [np.ones(10**6) for _ in range(10**5)]
    return ReaderAnswer(str(len(held)))


def write_much(size):
    return ReaderAnswer("", {"x": np.zeros(size // 8)})


def end_by(number):
    os.kill(os.getpid(), number)


def compute_forever():
    while True:
        pass


def sleep_forever():
    time.sleep(3600)


def tell_limits():
    import resource

    kinds = (resource.RLIMIT_CPU, resource.RLIMIT_FSIZE, resource.RLIMIT_CORE)
    return ReaderAnswer(" ".join(str(resource.getrlimit(kind)[0]) for kind in kinds))


def test_text_and_arrays_come_back_as_they_were(any_start):
    found = read_apart(f"{HERE}answer_with_arrays", {"rows": 1000}, source="f")
    wanted = answer_with_arrays(1000)
    assert found.text == wanted.text
    assert list(found.arrays) == ["x", "y", "none"]
    for name, array in wanted.arrays.items():
        assert found.arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(found.arrays[name], array)


def test_limit_of_the_shell_is_not_called_the_one_of_the_option(tmp_path):
    """Nothing that the program could be asked for would allow more."""
    code = """
        import resource, sys
        from boosters_eval.core.reader import read_apart
        resource.setrlimit(getattr(resource, sys.argv[1]), (int(sys.argv[2]),) * 2)
        try:
            read_apart(sys.argv[3], {"size": 10**9}, source="f")
        except Exception as error:
            print(type(error).__name__, error)
    """
    for kind, most, function, said in (
        (
            "RLIMIT_FSIZE",
            10**6,
            "write_much",
            "RunError Cannot keep what f holds: 'ulimit -f' allows only smaller files.",
        ),
        (
            "RLIMIT_AS",
            8 * 10**8,
            "take_memory",
            "f cannot be read within the 800 MB of addresses that 'ulimit -v' allows.",
        ),
    ):
        words = [sys.executable, "-c", textwrap.dedent(code), kind, str(most), f"{HERE}{function}"]
        env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent), "OPENBLAS_NUM_THREADS": "1"}
        done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path, env=env)
        assert said in done.stdout, done


def test_what_a_library_prints_is_no_answer(any_start, capfd):
    assert read_apart(f"{HERE}print_much", {}, source="f").text == "well"
    assert capfd.readouterr() == ("", "")


def test_error_is_raised_as_it_was_in_the_process(any_start):
    with pytest.raises(DataFileError) as caught:
        read_apart(f"{HERE}refuse", {}, source="f")
    assert caught.value.lines == ["It has two faults:", "  - this", "  - that"]
    with pytest.raises(FileFormatError, match=r"^It is no such file\.$"):
        read_apart(f"{HERE}refuse_format", {}, source="f")


def test_any_other_exception_is_one_sentence(any_start):
    with pytest.raises(DataFileError, match=r"^f cannot be read: KeyError: 'damaged'\.$"):
        read_apart(f"{HERE}fail", {}, source="f")


@pytest.mark.parametrize("function", ["take_memory", "take_memory_in_pieces"])
def test_memory_beyond_the_limit_is_refused_with_the_variable_that_raises_it(any_start, function):
    given = {"size": 10**9} if function == "take_memory" else {}
    with reading_within(300_000_000), pytest.raises(DataFileError) as caught:
        read_apart(f"{HERE}{function}", given, source="f.csv")
    assert str(caught.value) == (
        "f.csv cannot be read within 300 MB of memory: BOOSTERS_EVAL_READ_LIMIT=600MB allows more."
    )
    assert caught.value.exit_code is ExitCode.CONFIGURATION_ERROR


def test_limit_is_that_of_the_option_or_of_the_environment(any_start, monkeypatch):
    asked = f"{HERE}take_memory", {"size": 400_000_000}
    told = pytest.raises(DataFileError, match=r"within 300 MB of memory: --read-limit 600MB allows more\.$")
    with reading_within(300_000_000), speaking_of({"read_limit": "--read-limit"}), told:
        read_apart(*asked, source="f.csv")
    with reading_within(1_000_000_000):
        assert read_apart(*asked, source="f.csv").text == "400000000"
    monkeypatch.setenv(reader.VARIABLE, "300MB")
    with pytest.raises(DataFileError, match="within 300 MB"):
        read_apart(*asked, source="f.csv")
    monkeypatch.setenv(reader.VARIABLE, "lots")
    with pytest.raises(
        ConfigError, match=r"READ_LIMIT must be a size of at least 200MB, such as 4GB. Got 'lots' instead"
    ):
        read_apart(*asked, source="f.csv")


def test_what_the_program_itself_holds_does_not_count(any_start):
    held = np.ones(60_000_000)  # 480 MB, which a fork has too
    with reading_within(400_000_000):
        assert read_apart(f"{HERE}take_memory", {"size": 10**8}, source="f").text == "100000000"
    assert held[-1] == 1


def test_arrays_larger_than_the_limit_are_refused(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parent)
    monkeypatch.setattr(reader, "_can_fork", lambda: True)
    monkeypatch.setattr(reader, "_own_memory", lambda: 2**40)  # so that only what it writes is limited
    with reading_within(10_000_000), pytest.raises(DataFileError, match="within 10 MB of memory"):
        read_apart(f"{HERE}write_much", {"size": 20_000_000}, source="f")


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS])
def test_crash_is_a_sentence_on_the_file(any_start, number):
    with pytest.raises(DataFileError) as caught:
        read_apart(f"{HERE}end_by", {"number": int(number)}, source="f.feather")
    what = f"the library that reads it crashed ({number.name}), so it is damaged."
    assert str(caught.value) == f"f.feather cannot be read: {what}"


def test_kill_from_outside_is_a_sentence(any_start):
    with pytest.raises(DataFileError, match="its reader was killed, as happens where memory runs out"):
        read_apart(f"{HERE}end_by", {"number": int(signal.SIGKILL)}, source="f")


@pytest.fixture
def within_seconds(monkeypatch):
    monkeypatch.setattr(reader, "_LEAST_SECONDS", 2)
    monkeypatch.setattr(reader, "_SECONDS_PER_GB", 0)


@pytest.mark.parametrize("function", ["compute_forever", "sleep_forever"])
def test_endless_computing_and_a_hang_are_ended_and_told(any_start, within_seconds, function):
    before, children = time.monotonic(), psutil.Process().children()
    with pytest.raises(DataFileError) as caught:
        read_apart(f"{HERE}{function}", {}, source="f")
    assert str(caught.value) == "f cannot be read within 2 s of computing: BOOSTERS_EVAL_READ_LIMIT=8GB allows more."
    assert time.monotonic() - before < 60
    assert not {*psutil.Process().children()} - {*children}


def test_limits_are_those_of_the_kernel(any_start):
    with reading_within(2_000_000_000):
        assert read_apart(f"{HERE}tell_limits", {}, source="f").text == "300 2000000000 0"


def test_program_with_threads_starts_a_new_interpreter():
    script = """
        import threading
        from boosters_eval.core import reader
        assert reader._can_fork()
        stop = threading.Event()
        thread = threading.Thread(target=stop.wait)
        thread.start()
        assert not reader._can_fork()
        stop.set()
        """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True)


@pytest.mark.parametrize("way", ["fork", "spawn"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_process_ends_with_its_program(tmp_path, way, number):
    script = tmp_path / "program.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import sys
            sys.path.insert(0, {str(Path(__file__).parent)!r})
            from boosters_eval.core import reader
            reader._can_fork = lambda: {way == "fork"}
            print("begin", flush=True)
            reader.read_apart("test_reader:sleep_forever", {{}}, source="f")
            """
        )
    )
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as program:
        assert program.stdout.readline() == b"begin\n"
        deadline = time.monotonic() + 30
        while not (children := psutil.Process(program.pid).children()) and time.monotonic() < deadline:
            time.sleep(0.02)
        program.send_signal(number)
        program.wait(10)
    gone, alive = psutil.wait_procs(children, 10)
    assert gone
    assert not alive
