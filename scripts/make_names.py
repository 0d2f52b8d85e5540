"""Make the table of public names from the imports that a type checker sees.

It imports nothing of the package, so that it mends a table that lacks a name, or has the marks of a merge in it.
"""

import ast
import textwrap
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "boosters_eval"
TABLE = PACKAGE / "names.py"
HEAD = '"""Where each public name is, for Python to import it when it is used; made by scripts/make_names.py."""'


def offered() -> list[tuple[ast.alias, str | None]]:
    """Every name in the type checkers' block of `__init__.py`, with its module."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return [(alias, node.module) for node in imports for alias in node.names]


def table() -> str:
    """The module that Python finds the names by."""
    names: dict[str, list[str]] = {}
    for alias, module in offered():
        names.setdefault(str(module), []).append(alias.name)
    lines = []
    for module, found in sorted(names.items()):
        together = " ".join(sorted(found))
        first, *more = [together] if len(module) + len(together) < 108 else textwrap.wrap(together, 108)
        if len(module) + len(together) >= 108:
            lines += [f'    "{module}": (', f'        "{first}"', *(f'        " {line}"' for line in more), "    ),"]
        else:
            lines.append(f'    "{module}": "{first}",')
    find = "HOME = {name: module for module, names in _NAMES.items() for name in names.split()}"
    return "\n".join([HEAD, "", "_NAMES = {", *lines, "}", find, ""])


if __name__ == "__main__":
    TABLE.write_text(table(), encoding="utf-8")
