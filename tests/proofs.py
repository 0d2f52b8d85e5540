"""Pages that say only what a test shows: `tests/file.py::test_name`, which must exist and be run."""

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROOF = re.compile(r"`(tests/[\w/]*test_\w+\.py)::(test_\w+)`")


_OPTIONS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"]["ini_options"]
DESELECTED = re.compile(rf"\.mark\.({'|'.join(re.findall('not ([a-z]+)', _OPTIONS['addopts']))})\b")


def list_tests(file, *, deselected=True):
    """What pytest collects there: functions of the module and of its test classes, none of them skipped always.

    Without those that are `deselected`, what an ordinary run of the tests runs.
    """
    module = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    marks = [each for each in module.body if isinstance(each, ast.Assign) and "pytestmark" in ast.unparse(each)]
    if not deselected and any(DESELECTED.search(ast.unparse(each)) for each in marks):
        return set()
    bodies = [module.body, *(each.body for each in module.body if isinstance(each, ast.ClassDef))]
    found = [each for body in bodies for each in body if isinstance(each, ast.FunctionDef)]
    return {each.name for each in found if not _is_left_out(each, deselected)}


def _is_left_out(function, deselected):
    """By a decorator of its own; marks of single parameters leave the others."""
    marks = [ast.unparse(by) for by in function.decorator_list]
    return any(".skip" in mark or (not deselected and DESELECTED.match(f".{mark.partition('.')[2]}")) for mark in marks)


def find_unproven(text, *, deselected=True):
    """The proofs in a text that are no tests."""
    return [
        f"{file}::{name}" for file, name in PROOF.findall(text) if name not in list_tests(file, deselected=deselected)
    ]
