"""The program that docs/programs.md shows runs through the command line and from Python, with all settings of a run."""

import re
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from boosters_eval import ConfigError, answer, import_history, load_run
from boosters_eval.cli.app import run
from boosters_eval.core.registry import _Offer
from boosters_eval.core.request import PROGRAMS, Request
from boosters_eval.engine.runs import find_run
from boosters_eval.engine.workload import WORKLOADS

PAGE = (Path(__file__).parents[1] / "docs" / "programs.md").read_text(encoding="utf-8")
CODE = re.search(r"<!-- program: sorting\.py -->\n```python\n(.*?)```", PAGE, re.DOTALL)[1]
PRINTED = re.search(r"<!-- printed: sorting\.py -->\n```text\n(.*?)```", PAGE, re.DOTALL)[1]


@pytest.fixture
def sorting(home, tmp_path, monkeypatch):
    (tmp_path / "sorting.py").write_text(CODE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    import sorting

    PROGRAMS.register("sorting", sorting.SortingRequest)
    WORKLOADS.register("sorting", sorting.Sorting)
    yield sorting
    PROGRAMS.unregister("sorting")
    WORKLOADS.unregister("sorting")
    sys.modules.pop("sorting")


def test_it_is_a_program_of_about_sixty_lines():
    lines = [line for line in CODE.splitlines() if line.strip() and not line.startswith(("from ", "import ", '"""'))]
    assert len(lines) <= 65


def test_the_command_prints_what_the_page_says(sorting, capsys):
    assert run(["sorting", "--programs", "sort", "perl", "-q"]) == 0
    assert capsys.readouterr().out.split() == PRINTED.split()
    assert run(["sorting", "--programs", "sort,cat", "-q"]) == 1
    assert "They do not sort alike." in capsys.readouterr().out


def test_a_cell_that_failed_is_never_a_pass(sorting, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))  # no program is there
    assert run(["sorting", "--programs", "perl", "-q"]) == 2
    assert "No verdict: 2 cells failed." in capsys.readouterr().out


def test_it_has_the_settings_of_every_run(sorting, capsys):
    assert run(["sorting", "--dry-run"]) == 0
    assert "4 cells" in capsys.readouterr().out
    assert run(["sorting", "--name", "mine", "--jobs", "2", "-q"]) == 0
    assert find_run("mine").facts(1).kind == "sorting"
    assert run(["sorting", "--resume", "--rerun-failed"]) == 3
    assert "Use either --resume or --rerun-failed, not both." in capsys.readouterr().err
    assert run(["sorting", "--help"]) == 0
    told = capsys.readouterr().out
    assert all(option in told for option in ("--programs", "--numbers", "--timeout", "--executor", "--track"))
    assert run(["--help"]) == 0
    assert "Check that programs sort alike." in capsys.readouterr().out


def test_errors_name_options_or_parameters(sorting, capsys):
    assert run(["sorting", "--numbers", "0"]) == 3
    sentence = "The '--numbers' option must be a count from 1 to 10000. Got '0' instead."
    assert sentence in capsys.readouterr().err
    assert sentence in " ".join(PAGE.split())
    with pytest.raises(
        ConfigError, match=r"^The 'numbers' parameter must be a count from 1 to 10000\. Got 0 instead\.$"
    ):
        sorting.SortingRequest(numbers=0)


def test_python_gets_the_findings(sorting):
    found = answer(sorting.SortingRequest(programs=["sort", "cat"]))
    assert found.exit_code == 1
    assert set(found.by_program) == {"sort", "cat"}
    with pytest.raises(ConfigError, match="There is no benchmark run"):
        load_run("last")


def test_a_program_that_cannot_be_loaded_says_why(monkeypatch, capsys):
    broken = EntryPoint("sortng", "no_such_module:Request", "boosters_eval.programs")
    monkeypatch.setitem(PROGRAMS._known(), "sortng", _Offer(broken))
    try:
        assert run(["sortng"]) == 3
    finally:
        PROGRAMS._broken.clear()
    reason = "cannot be loaded: ModuleNotFoundError: No module named 'no_such_module'"
    assert capsys.readouterr().err == f"Error: The program 'sortng' of an installed package {reason}.\n"


class Silent(Request):
    command = "extra silent"
    help = "Finds nothing."
    program = staticmethod(lambda request: None)


def test_a_group_of_another_package_has_its_commands_and_a_program_without_findings_is_an_error(monkeypatch, capsys):
    monkeypatch.setitem(PROGRAMS._known(), "extra silent", Silent)
    assert run(["extra", "--help"]) == 0
    assert "Finds nothing." in capsys.readouterr().out
    assert run(["extra", "silent"]) == 2
    told = "The program of 'extra silent' must return its findings. Got None instead."
    assert capsys.readouterr().err == f"Error: {told}\n"
    assert run(["extra", "silnt"]) == 3
    assert "Did you mean 'silent'?" in capsys.readouterr().err


def test_an_empty_list_is_no_value_of_a_parameter_that_is_required():
    with pytest.raises(ConfigError, match=r"^The '\w+' parameter must be .*, or several\. Got \[\] instead\.$"):
        import_history([])


def test_only_a_request_is_answered():
    with pytest.raises(ConfigError, match="The 'request' parameter must be the request of a program"):
        answer(5)
