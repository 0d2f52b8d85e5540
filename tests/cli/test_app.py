"""The program's parser: that of one command loads only its module, and says the same as that of all."""

import pytest

from boosters_eval.cli.app import COMMANDS, parser, run


def test_each_module_has_the_commands_that_it_is_loaded_for():
    for module, names in COMMANDS.items():
        assert set(parser(names[0]).commands) == set(names), module


def test_anything_but_a_command_gets_the_parser_of_all():
    every = {name for names in COMMANDS.values() for name in names}
    for first in ("", "--help", "--version", "comprae"):
        assert set(parser(first).commands) == every


@pytest.mark.parametrize("name", ["history", "baseline", "compare"])
def test_a_command_is_the_same_in_both(name):
    alone, among = parser(name).commands[name], parser().commands[name]
    assert [option.name for option in alone.params] == [option.name for option in among.params]
    assert getattr(alone, "commands", {}).keys() == getattr(among, "commands", {}).keys()


@pytest.mark.parametrize(("line", "word"), [("boosters-eval hist", "history"), ("boosters-eval history sh", "show")])
def test_a_shell_that_asks_how_a_line_goes_on_gets_nothing_but_that(boosters_eval, monkeypatch, line, word):
    monkeypatch.setenv("_BOOSTERS_EVAL_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
    done = boosters_eval(check=0)
    assert (done.stdout.split(), done.stderr) == ([word], "")


def test_an_interruption_has_a_word_in_commands_that_have_none_of_their_own(home, monkeypatch, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("boosters_eval.programs.history.query.listing", interrupted)
    assert run(["history"]) == 130
    assert capsys.readouterr().err == "Error: Interrupted.\n"
