"""One name, one meaning: no two modules of the package define a public class of the same name."""

import ast
from collections import defaultdict
from pathlib import Path

import boosters_eval

PACKAGE = Path(boosters_eval.__file__).parent


def public_classes():
    """{name: the modules that define it}, at the top level or within another class."""
    found = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].add(path.relative_to(PACKAGE).as_posix())
    return found


def test_a_public_class_has_a_name_of_its_own():
    shared = {name: sorted(modules) for name, modules in public_classes().items() if len(modules) > 1}
    assert shared == {}
