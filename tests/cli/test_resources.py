"""Where the system refuses something, a command says so in one sentence, or does its work all the same."""

import json
import os
import subprocess

import pytest

from processes import PLUGINS, PROGRAM, environment

RUN = ("compare", "-d", "diabetes", "-l", "faulty", "-s", "1", "-p", "max_depth=1", "-q", "-f", "csv")


@pytest.fixture
def shell(place):
    """A command line after what a shell does first, in folders of the test's own."""

    def call(first, *words, apart=False, **changes):
        env = environment(PLUGINS, **{"BOOSTERS_EVAL_CACHE": str(place / "cache"), **changes})
        script = f'{first}\nexec "$@"'
        around = ("unshare", "--map-root-user", "--mount") if apart else ()
        command = [*around, "bash", "-e", "-c", script, "bash", *PROGRAM, *words]
        return subprocess.run(command, cwd=place, env=env, capture_output=True, text=True, check=False)

    return call


def assert_refused(done, sentence):
    assert done.returncode in (2, 3), done
    assert "Traceback" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("Error: "), done.stderr
    assert sentence in last


@pytest.mark.parametrize(
    ("limit", "sentence"),
    [
        ("-v 300000", "MB of addresses are needed: 'ulimit -v' is 300000 kB."),
        ("-n 10", "At least 32 files must be allowed to be open at a time: 'ulimit -n' is 10."),
        ("-f 0", "File too large"),
    ],
)
def test_limit_of_the_shell_that_leaves_no_room_is_one_sentence(shell, limit, sentence):
    assert_refused(shell(f"ulimit {limit}", *RUN), sentence)


def test_limit_on_processes_is_one_sentence(shell, place):
    """Root has none, so it becomes somebody else, who may still read Python's files."""
    other = "--reuid 65534 --clear-groups --inh-caps +dac_read_search --ambient-caps +dac_read_search"
    somebody = f"setpriv {other}" if os.getuid() == 0 else ""
    place.chmod(0o777)
    done = shell(f'exec prlimit --nproc=2 {somebody} "$@"', *RUN, HOME=str(place), TMPDIR=str(place))
    assert_refused(done, "At least 16 further processes are needed: 'ulimit -u' is 2.")


def test_deleted_working_folder_is_one_sentence(shell):
    done = shell("mkdir gone; cd gone; rmdir ../gone", *RUN)
    assert_refused(done, "The current folder does not exist any more: change to another one.")


def test_clock_that_was_set_back_changes_no_answer(shell, place):
    """The last attempt stays the last one, and none is thought to be of the future."""
    (place / "later").mkdir()
    (place / "later" / "sitecustomize.py").write_text(
        "import time\nreal = time.time\ntime.time = lambda: real() + 400 * 86400\n"
    )
    before = shell("", *RUN, PYTHONPATH=f"{place / 'later'}:{environment(PLUGINS)['PYTHONPATH']}")
    assert before.returncode == 0, before.stderr
    after = shell("", *RUN)
    assert after.returncode == 0, after.stderr
    assert shell("", "runs", "list").returncode == 0
    assert shell("", "verify", "last").returncode == 0
    assert shell("", "history").returncode == 0
    assert shell("", "runs", "remove", "--older-than", "30d", "--yes").returncode == 0
    assert json.loads(shell("", "runs", "list", "--json").stdout)


SMALL = "mkdir -p small; mount -t tmpfs -o size={size} tmpfs small"
FILL = "dd if=/dev/zero of={path}/filler bs=4k count=99 2>/dev/null || true"


@pytest.mark.chaos
class TestMounts:
    """With file systems of their own, for which a namespace is needed."""

    def test_full_disk_below_the_home_is_one_sentence_and_nothing_is_lost(self, shell, place):
        done = shell(SMALL.format(size="16k"), *RUN, apart=True, BOOSTERS_EVAL_HOME=str(place / "small"))
        assert_refused(done, "No space left on device")

    def test_full_disk_below_the_cache_is_one_sentence(self, shell, place):
        done = shell(SMALL.format(size="8k"), *RUN, apart=True, BOOSTERS_EVAL_CACHE=str(place / "small"))
        assert_refused(done, "No space left on device. BOOSTERS_EVAL_CACHE names another directory.")

    def test_full_disk_below_the_output_is_one_sentence(self, shell):
        full = f"{SMALL.format(size='4k')}; {FILL.format(path='small')}"
        assert_refused(shell(full, *RUN, "-o", "small/a.csv", apart=True), "No space left on device")

    def test_full_disk_for_temporary_files_is_one_sentence_or_another_place_is_found(self, shell, place):
        full = f"{SMALL.format(size='4k')}; {FILL.format(path='small')}"
        done = shell(full, *RUN, apart=True, TMPDIR=str(place / "small"))
        assert done.returncode == 0, done.stderr

    def test_home_that_may_only_be_read_is_one_sentence(self, shell, place):
        assert shell("", *RUN).returncode == 0
        locked = "mount --bind home home; mount -o remount,ro,bind home"
        assert_refused(shell(locked, *RUN, apart=True), "Read-only file system")
        for words in (("runs", "list"), ("history",), ("report", "--run", "last", "--dry-run"), ("verify", "last")):
            done = shell(locked, *words, apart=True)
            assert done.returncode == 0, (words, done.stderr)

    def test_full_shared_memory_changes_nothing(self, shell):
        full = f"mount -t tmpfs -o size=4k tmpfs /dev/shm; {FILL.format(path='/dev/shm')}"
        done = shell(full, *RUN, apart=True)
        assert done.returncode == 0, done.stderr
        done = shell(full, *RUN, "--executor", "dask", "--workers", "1", apart=True)
        assert_refused(done, "The cluster could not be started here: No space left on device")


def at_once(place, count, *words, **changes):
    """Several of the same program at the same time."""
    env = environment(PLUGINS, BOOSTERS_EVAL_CACHE=str(place / "cache"), **changes)
    given = {"cwd": place, "env": env, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    started = [subprocess.Popen([*PROGRAM, *words], **given) for _ in range(count)]
    ended = [(process.communicate(), process.returncode) for process in started]
    assert not any("Traceback" in told or "Internal error" in told for (_, told), _ in ended), ended
    return [(code, out, told) for (out, told), code in ended]


def without_times(text):
    return [line.split(",")[:11] for line in text.splitlines()]


@pytest.mark.chaos
def test_four_processes_on_one_plan_one_history_and_one_cache_agree(place, program):
    done = at_once(place, 4, *RUN)
    good = [out for code, out, _ in done if code == 0]
    assert good, done
    assert len({str(without_times(out)) for out in good}) == 1
    assert all(code in (0, 2, 3) and (code == 0 or told.startswith("Error: ")) for code, _, told in done), done
    env = {"BOOSTERS_EVAL_CACHE": str(place / "cache")}
    program("verify", "last", env=env, check=0)
    (run,) = json.loads(program("runs", "list", "--json", env=env, check=0).stdout)
    listed = program("history", "--json", env=env, check=0).stdout
    assert run["run_id"] in listed
    assert {code for code, _, _ in at_once(place, 4, "history", "reindex")} == {0}
    assert program("history", "--json", env=env, check=0).stdout == listed


@pytest.mark.chaos
def test_four_processes_on_one_baseline_leave_one_whole_file(place, program):
    program(*RUN[:5], "-s", "3", *RUN[7:], check=0)
    assert {code for code, _, _ in at_once(place, 4, "baseline", "record", "base.json", "--run", "last")} == {0}
    program("baseline", "diff", "base.json", "base.json", check=0)
    assert [path.name for path in place.glob("*base.json*")] == ["base.json"]


@pytest.mark.chaos
def test_four_processes_on_one_build_install_it_once(place, program):
    import toys

    toys.write_runner(place)
    wheel = toys.write_wheel(place / "wheels")
    done = at_once(place, 4, "builds", "add", f"toy_runner.py:ToyRunner@{wheel}", PIP_NO_INDEX="1")
    assert {code for code, _, _ in done} == {0}, done
    assert len(json.loads(program("builds", "list", "--json", check=0).stdout)) == 1
    assert sum("Installed" in told for _, _, told in done) == 1


@pytest.mark.chaos
def test_four_processes_on_one_cache_make_one_whole_table(place):
    homes = [
        subprocess.Popen(
            [*PROGRAM, *RUN],
            cwd=place,
            env=environment(PLUGINS, BOOSTERS_EVAL_CACHE=str(place / "cache"), BOOSTERS_EVAL_HOME=str(place / f"h{n}")),
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(4)
    ]
    printed = [process.communicate()[0] for process in homes]
    assert {process.returncode for process in homes} == {0}
    assert len({str(without_times(out)) for out in printed}) == 1
    assert len(list((place / "cache" / "tables").iterdir())) == 1
