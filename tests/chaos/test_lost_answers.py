"""Whatever the command: an answer that could not be written is exit 2 with a word, never exit 0."""

import pytest
import world

from boosters_eval.core.request import COMMANDS, load_request

LOST = {"": "it is closed", "/dev/full": "No space left on device"}
CELLS = {name for name in world.LINES if "command_line" in load_request(name).parameters}
# Files of a command that its request does not mark as written, or that cannot be called so.
FULL = {
    "baseline record": ("baseline", "record", "/dev/full", "--run", "main"),
    "datasets init": ("datasets", "init", "link.csv:t", "--force"),
    "figures": ("figures", "main", "-o", "/dev/full"),
    "history export": ("history", "export", "-o", "/dev/full"),
    "parity run": ("parity", "run", *world.PARITY, "-q", "--out-csv", "/dev/full"),
    "parity render": ("parity", "render", "--csv", "parity.csv", "--registry", world.PARITY[1], "--out", "full.md"),
    "paper run": ("paper", "run", "--spec", "benchmarks.yaml", "--output", "/dev/full", "-q"),
    "paper validate": ("paper", "validate", "--spec", "benchmarks.yaml", "--output", "/dev/full", "-q"),
    "report": ("report", "--run", "main", "-o", "/dev/full", "-f", "md"),
}


@pytest.fixture(scope="module")
def call(tmp_path_factory):
    place = tmp_path_factory.mktemp("world")
    server = world.Server(tmp_path_factory.mktemp("tmp"), place)
    world.prepare(server, place)
    yield server
    server.close()


def test_every_command_has_a_line_here():
    assert set(world.LINES) | set(world.ALIKE) == set(COMMANDS)


def look(call, name, stdout):
    line = world.LINES[name]
    sound = call(*line)
    assert sound["code"] in (0, 1), sound
    lost = call(*line, stdout=stdout)
    if not sound["stdout"]:  # its answer is a file
        assert lost["code"] == sound["code"]
        return
    assert lost["code"] == 2, (name, lost)
    assert f"Error: Cannot write to standard output: {LOST[stdout]}." in lost["stderr"]


@pytest.mark.parametrize("name", sorted(set(world.LINES) - CELLS))
def test_answer_to_a_closed_stdout_is_an_error(call, name):
    look(call, name, "")


@pytest.mark.chaos
@pytest.mark.parametrize("stdout", LOST)
@pytest.mark.parametrize("name", sorted(world.LINES))
def test_answer_of_any_command_to_a_lost_stdout_is_an_error(call, name, stdout):
    look(call, name, stdout)


def written():
    for name in world.LINES:
        for each in load_request(name).parameters.values():
            if each.written and name not in FULL:
                yield name, each.name


@pytest.mark.chaos
@pytest.mark.parametrize(("name", "option"), list(written()))
@pytest.mark.parametrize("path", ["/dev/full", "/dev/stdout", "/dev/fd/1"])
def test_file_that_cannot_be_written_is_an_error(call, name, option, path):
    known = load_request(name).parameters
    flag = f"--{option.replace('_', '-')}"
    line = _without([word for word in world.LINES[name] if word not in ("-f", "csv", "json", "--json")], flag)
    form = ("-f", "json") if option == "output" and "format" in known else ()
    against = ("--against", "faulty") if option == "verdict" and "against" in known else ()
    done = call(*line, *form, *against, flag, path, stdout="/dev/null" if path == "/dev/full" else "")
    assert done["code"] == 2, done
    assert f"Cannot write {path}" in done["stderr"]


def _without(words, option):
    at = words.index(option) if option in words else len(words)
    return [*words[:at], *words[at + 2 :]]


@pytest.mark.parametrize("name", FULL)
def test_other_file_that_cannot_be_written_is_an_error(call, name):
    if name == "datasets init":
        (call.place / "link.csv").write_bytes((call.place / "data.csv").read_bytes())
        (call.place / "link.csv.yaml").unlink(missing_ok=True)
        (call.place / "link.csv.yaml").symlink_to("/dev/full")
    done = call(*FULL[name], stdout="/dev/null")
    assert done["code"] in (2, 3), done
    assert "Cannot" in done["stderr"], done
