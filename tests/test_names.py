"""One name, one meaning: no two modules define a public type of the same name, and the front door offers each once."""

import ast
import re
import runpy
import subprocess
import sys
from collections import defaultdict
from importlib import import_module
from pathlib import Path

import pytest

import boosters_eval

PACKAGE = Path(boosters_eval.__file__).parent
SCRIPT = Path(__file__).parents[1] / "scripts" / "make_names.py"


def names_of(node):
    """The public types that a statement defines: a class, or an alias such as `Pairs = tuple[...]`."""
    if isinstance(node, ast.ClassDef):
        names = [node.name]
    elif isinstance(node, ast.Assign):
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
    else:
        names = []
    return [name for name in names if re.fullmatch(r"[A-Z][a-z]\w*", name)]


def public_types():
    """{name: the modules that define it}, at the top level or within another class."""
    found = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for name in names_of(node):
                found[name].add(path.relative_to(PACKAGE).as_posix())
    return found


def test_a_public_type_has_a_name_of_its_own():
    shared = {name: sorted(modules) for name, modules in public_types().items() if len(modules) > 1}
    assert shared == {}


def test_the_table_of_public_names_is_made_from_the_imports_that_a_type_checker_sees():
    script = runpy.run_path(str(SCRIPT))
    imports = script["offered"]()
    names = [alias.name for alias, _ in imports]
    assert [alias.name for alias, _ in imports if alias.asname != alias.name] == []  # mypy --strict would not see them
    assert len(set(names)) == len(names)
    assert (PACKAGE / "names.py").read_text(encoding="utf-8") == script["table"](), "run scripts/make_names.py"


@pytest.mark.parametrize("name", boosters_eval.__all__)
def test_a_public_name_is_found_and_listed(name):
    home = import_module(boosters_eval._HOME[name])
    assert getattr(boosters_eval, name) is getattr(home, name)
    assert name in dir(boosters_eval)


def test_a_misspelt_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'boosters_eval' has no attribute 'compair'"):
        boosters_eval.compair  # noqa: B018


def test_the_front_door_imports_no_room():
    code = "import sys, boosters_eval; print([name for name in sys.modules if name.startswith('boosters_eval.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ast.literal_eval(done.stdout) == ["boosters_eval.core", "boosters_eval.names"]
