"""The registries of `parity init`, run as whoever wrote them would run them."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from boosters_eval import init_parity
from boosters_eval.cli.app import run
from boosters_eval.programs.parity.backend import BACKENDS
from boosters_eval.programs.parity.method import GENERATORS, METHODS
from boosters_eval.programs.parity.templates import fill_template

ROOT = Path(__file__).parents[3]
PROGRAMS = {"python": "python3", "c": "cc", "r": "Rscript", "octave": "octave-cli", "command": "perl"}


REGISTERED = {METHODS: ("line",), BACKENDS: ("mine", "numpy.line"), GENERATORS: ("points",)}


@pytest.fixture
def registries():
    """A process that has not seen such a file: other tests, and those before, name theirs alike."""
    forget()
    yield
    forget()


def forget():
    for registry, names in REGISTERED.items():
        for name in names:
            if name in registry:
                registry.unregister(name)


@pytest.mark.parametrize("language", PROGRAMS)
@pytest.mark.usefixtures("registries")
def test_a_registry_runs_as_it_was_written_by_the_commands_that_are_told(language, tmp_path, monkeypatch, capsys):
    if shutil.which(PROGRAMS[language]) is None:
        pytest.skip(f"{PROGRAMS[language]} is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BOOSTERS_EVAL_HOME", str(tmp_path / "home"))
    assert run(["parity", "init", "my own", "--language", language]) == 0
    told = capsys.readouterr().err
    first, second = (shlex.split(line)[1:] for line in told.splitlines() if line.startswith("  boosters-eval "))
    assert run([*first, "--max-runs", "2", "-q"]) == 0
    capsys.readouterr()
    assert run(second) == 0
    assert capsys.readouterr().out == "AGREE: 2 predictions compared, 0 too far apart, 0 without a result\n"


@pytest.mark.usefixtures("registries")
def test_a_fault_in_the_code_that_was_written_fails_the_gate(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BOOSTERS_EVAL_HOME", str(tmp_path / "home"))
    init_parity("mine", language="c")
    code = Path("mine/line.c")
    code.write_text(code.read_text().replace("line[0] + line[1]", "line[1] + line[1]"))
    registry = ["--registry", "mine/registry.py"]
    assert run(["parity", "run", *registry, "--methods", "line", "--max-runs", "2", "-q"]) == 0
    assert run(["parity", "gate", *registry, "--csv", "parity.csv"]) == 1
    assert "\nDIVERGE: 2 predictions compared, 2 too far apart" in capsys.readouterr().out


def test_what_was_changed_by_hand_is_kept_unless_it_may_be_replaced(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    init_parity("mine")
    init_parity("mine")  # the same files
    registry = Path("mine/registry.py")
    registry.write_text("my own work")
    assert run(["parity", "init", "mine"]) == 3
    assert "--force" in capsys.readouterr().err
    assert registry.read_text() == "my own work"
    assert init_parity("mine", force=True).files == (registry,)
    assert registry.read_text() == fill_template("python")["registry.py"]


def test_a_file_is_no_folder(tmp_path, capsys):
    place = tmp_path / "mine"
    place.write_text("")
    assert run(["parity", "init", str(place)]) == 3
    assert "must be a folder" in capsys.readouterr().err


def test_the_page_shows_the_code_of_each_language():
    page = (ROOT / "docs" / "parity-protocol.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r"<!-- template: (\S+) -->\n```\w+\n(.*?)```", page, re.DOTALL))
    written = {name: text for language in PROGRAMS for name, text in fill_template(language).items()}
    assert shown == {name: text for name, text in written.items() if not name.endswith(".py")}
