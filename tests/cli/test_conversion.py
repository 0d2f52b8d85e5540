"""Values that are plain become what the parser's own conversion would make of them, and without loading it."""

import subprocess
import sys
from types import SimpleNamespace

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from boosters_eval import __version__
from boosters_eval.cli import conversion
from boosters_eval.cli.app import parser


def _parameters(command, path="boosters-eval"):
    context = typer.Context(command, info_name=path)
    for parameter in command.get_params(context):
        yield pytest.param(context, parameter, id=f"{path} {parameter.name}")
    for name, each in getattr(command, "commands", {}).items():
        yield from _parameters(each, f"{path} {name}")


PARAMETERS = [one.values for one in _parameters(parser())]
_IMMEDIATE = ("help", "version", "install_completion", "show_completion")  # they print something, and exit


def _outcome(process, value):
    try:
        made = process(value)
    except Exception as error:  # noqa: BLE001 (whatever it is, both must raise it)
        return type(error), getattr(error, "message", str(error))
    return type(made), made


def _both(context, parameter, value):
    own = type(parameter).process_value
    spared = _outcome(lambda value: parameter.process_value(context, value), value)
    return spared, _outcome(lambda value: own(parameter, context, value), value)


def _alike(spared, own):
    if spared[0] in (list, tuple) and own[0] in (list, tuple):  # a command is given a list of either
        return repr(list(spared[1])) == repr(list(own[1]))
    return repr(spared) == repr(own)  # no number is no number


def test_every_default_of_every_command_is_what_the_parser_makes_of_it():
    assert len(PARAMETERS) > 300
    for context, parameter in PARAMETERS:
        spared, own = _both(context, parameter, parameter.get_default(context))
        assert _alike(spared, own), (context.info_name, parameter.name, spared, own)


@given(
    st.sampled_from([one for one in PARAMETERS if one[1].name not in _IMMEDIATE]),
    st.lists(
        st.one_of(
            st.text(max_size=5),
            st.integers(-5, 2**70).map(str),
            st.sampled_from(["", " 7", "007", "+7", "7.0", "1_000", "\u0667", "0", "true", "nan", "9" * 5000]),
        ),
        min_size=1,
        max_size=3,
    ),
)
def test_whatever_is_given_becomes_what_the_parser_makes_of_it(one, texts):
    context, parameter = one
    several = parameter.multiple or parameter.nargs == -1
    spared, own = _both(context, parameter, tuple(texts) if several else texts[0])
    assert _alike(spared, own)


def test_a_number_beyond_its_bounds_is_still_refused_in_the_parsers_words(boosters_eval):
    done = boosters_eval("history", "--limit", "0", check=3)
    assert "--limit" in done.stderr
    assert "greater than or equal to 1" in done.stderr or "x>=1" in done.stderr


def test_no_parameter_has_a_converter_of_its_own_which_would_be_passed_over():
    for _, parameter in PARAMETERS:
        info = getattr(getattr(parameter, "type_descriptor", None), "parameter_info", None)
        assert getattr(info, "parser", None) is None, parameter.name


def test_a_parser_that_does_not_tell_its_types_converts_all_that_is_given():
    silent = SimpleNamespace(required=False, multiple=False, nargs=1)
    assert conversion._plain(silent, None) is None
    assert conversion._plain(silent, "text") is NotImplemented
    assert conversion._plain(SimpleNamespace(required=True), None) is NotImplemented


@pytest.mark.parametrize(
    "words",
    ["--version", "--help", "history", "history --limit 3 --dataset iris", "history --metric mae", "list metrics"],
)
def test_a_usual_question_loads_nothing_that_costs_as_much_as_the_answer(words, place):
    slow = {"pydantic", "logging", "importlib.metadata", "email", "zoneinfo", "statistics", "numpy", "yaml", "psutil"}
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
    loaded = {name for name in done.stdout.split() if name.startswith("boosters_eval.cli.")}
    assert not loaded & {f"boosters_eval.cli.{module}" for module in ("execution", "history", "baseline", "options")}
    assert done.stdout.splitlines()[0] == f"boosters-eval {__version__}"


def test_the_help_has_all_commands_after_the_version_too(boosters_eval):
    assert boosters_eval("--version", "--help", check=0).stdout == boosters_eval("--help", check=0).stdout
