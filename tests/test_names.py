"""One name, one meaning: no two modules of the package define a public type of the same name."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import boosters_eval

PACKAGE = Path(boosters_eval.__file__).parent


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
