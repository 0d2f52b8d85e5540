"""The statistics know observations and nothing above them, not even as types."""

import ast
from pathlib import Path

import pytest

import boosters_eval.stats

MODULES = sorted(Path(boosters_eval.stats.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_nothing_above_the_room_is_imported(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    found += [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    ours = [name for name in found if name.startswith("boosters_eval")]
    assert all(name.startswith(("boosters_eval.core", "boosters_eval.stats")) for name in ours)
