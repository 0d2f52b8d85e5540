"""The program's parser: each command is loaded when it is asked for, and a group may be a command too."""

import subprocess
import sys

import pytest

from boosters_eval import __version__
from boosters_eval.cli.app import parser, run
from boosters_eval.cli.parser import GROUPS, command_at
from boosters_eval.core.request import COMMANDS


@pytest.mark.parametrize("path", COMMANDS)
def test_a_command_is_found_by_the_words_that_its_request_names(path):
    found = command_at(path, lambda *_: 0)
    assert found.name == path.split()[-1]
    request = found._own.request if path in GROUPS else found.request
    assert request.command == path


def test_the_program_has_the_first_word_of_every_command():
    root = parser()
    assert set(root.list_commands(None)) == {path.split()[0] for path in (*COMMANDS, *GROUPS) if path}


@pytest.mark.parametrize(("line", "word"), [("boosters-eval hist", "history"), ("boosters-eval history sh", "show")])
def test_a_shell_that_asks_how_a_line_goes_on_gets_nothing_but_that(boosters_eval, monkeypatch, line, word):
    monkeypatch.setenv("_BOOSTERS_EVAL_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
    done = boosters_eval(check=0)
    assert (done.stdout.split(), done.stderr) == ([f"plain,{word}"], "")


def test_an_interruption_has_a_word_in_commands_that_have_none_of_their_own(home, monkeypatch, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("boosters_eval.programs.history.query.list_changes", interrupted)
    assert run(["history"]) == 130
    assert capsys.readouterr().err == "Error: Interrupted.\n"


def test_a_number_beyond_its_bounds_is_refused(boosters_eval):
    done = boosters_eval("history", "--limit", "0", check=3)
    assert done.stderr == "Error: The '--limit' option must be a count of at least 1. Got '0' instead.\n"


@pytest.mark.parametrize(
    "words",
    ["--version", "--help", "history", "history --limit 3 --dataset iris", "history --metric mae", "list metrics"],
)
def test_a_usual_question_loads_nothing_that_costs_as_much_as_the_answer(words, place):
    slow = {"pydantic", "logging", "zoneinfo", "statistics", "numpy", "yaml", "psutil"}
    if words != "--help":  # which tells of programs of other packages
        slow |= {"importlib.metadata", "email"}
    code = (
        "import sys; from boosters_eval.cli.app import run\n"
        f"run({words.split()!r})\n"
        f"print(*sorted({slow} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == ""


def test_the_version_needs_no_command():
    code = "import sys; from boosters_eval.cli.app import run; run(['--version']); print(*sys.modules, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0] == f"boosters-eval {__version__}"
    programs = [name for name in done.stdout.split() if name.startswith("boosters_eval.programs.")]
    assert [name for name in programs if name.count(".") > 2 and not name.endswith(".request")] == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([""], "No such command ''."),
        (["track"], "Missing argument 'RUN'."),
        (["compare", "--jobs"], "The '--jobs' option must be a count from 1 to 4096. Got nothing instead."),
        (["history", "-n"], "The '--limit' option must be a count of at least 1. Got nothing instead."),
        (["baseline", "check", ""], "FILE must be a path. Got '' instead."),
        (["track", "last"], "The '--to' option is required."),
        (
            ["compare", "--threads", "0"],
            "The '--threads' option must be a count of at least 1, or -1. Got '0' instead.",
        ),
    ],
)
def test_what_must_be_typed_is_named(arguments, told, capsys):
    assert run(arguments) == 3
    assert capsys.readouterr().err.startswith(f"Error: {told}")
