"""The import path of a lane: the program's own, or one on which the files of a build come first, or stand alone."""

from __future__ import annotations

import os
import sys
import sysconfig
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec


_PACKAGE = Path(__file__).parents[1]  # this one
# Of the interpreter: no current folder, where a json.py would be run instead of Python's own; and if folders stand
# alone, nothing that the environment's .pth files and the user's packages would add.
_OPTIONS = ["-P"]
_ALONE = ["-P", "-s", "-S"]


class ImportPath(NamedTuple):
    """The folders that come first, and whether they take the place of the program's environment."""

    first: tuple[str, ...] = ()
    isolated: bool = False

    def setup(self) -> dict[str, Any]:
        """What a lane is told of it. This package is found by its own folder, whatever else the path leads to."""
        others = _standard_library() if self.isolated else program_path()
        return {
            "path": [*self.first, *others],
            "first": self.first,
            "isolated": self.isolated,
            "package": str(_PACKAGE),
            "options": _ALONE if self.isolated else _OPTIONS,
            "environment": self.environment(),
        }

    def environment(self) -> dict[str, str]:
        """The variables by which a Python that a cell starts finds the same build."""
        if not self.first:
            return {}
        known = "" if self.isolated else os.environ.get("PYTHONPATH", "")
        found = {"PYTHONPATH": os.pathsep.join([*self.first, *([known] if known else [])])}
        return {**found, "PYTHONNOUSERSITE": "1"} if self.isolated else found


def program_path() -> list[str]:
    """The program's import path for its workers. The user's folder comes last: it serves only what the user wrote.

    That of a script or a prompt is the first entry; that of a notebook is an empty one, anywhere.
    """
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    own = {str(Path.cwd()), str(Path(script).parent) if script else ""}
    last = [entry for position, entry in enumerate(sys.path) if entry == "" or (position == 0 and entry in own)]
    others = sys.path[1:] if sys.path[:1] == last[:1] else sys.path
    folders = dict.fromkeys(str(Path(entry).absolute()) for entry in last)
    return [entry for entry in others if entry] + list(folders)


def _standard_library() -> list[str]:
    """Python's own part of the path; that of a virtual environment is in the interpreter that made it."""
    base = {"installed_base": sys.base_prefix, "platbase": sys.base_exec_prefix}
    folders = [Path(sysconfig.get_path(name, vars=base)) for name in ("stdlib", "platstdlib")]
    own = dict.fromkeys([*folders, *(folder / "lib-dynload" for folder in folders)])
    return [str(folder) for folder in own if folder.is_dir()]


class FirstFolders:
    """Finds modules in the folders that come first, before any finder that an editable installation has put first."""

    def __init__(self, folders: Sequence[str]) -> None:
        self._folders = list(folders)

    def find_spec(self, name: str, path: Sequence[str] | None = None, _target: object = None) -> ModuleSpec | None:
        """A module of these folders, or one of a package that lies in them."""
        if path is None:
            return PathFinder.find_spec(name, self._folders)
        own = [entry for entry in path if any(Path(entry).is_relative_to(folder) for folder in self._folders)]
        return PathFinder.find_spec(name, own) if own else None


def prefer(folders: Sequence[str]) -> None:
    """Let the folders of a build serve every import that they can, in this process and its forks."""
    if folders:
        sys.meta_path.insert(0, FirstFolders(folders))


def provided(folders: Sequence[str]) -> set[str]:
    """The names of the packages and modules in the folders, except this package, which is always the program's own."""
    entries = (entry for folder in folders if Path(folder).is_dir() for entry in Path(folder).iterdir())
    return {entry.name.partition(".")[0] for entry in entries} - {_PACKAGE.name}


def met(folders: Sequence[str]) -> bool:
    """Whether this process has loaded something, from elsewhere, that the folders provide."""
    return not provided(folders).isdisjoint(name.partition(".")[0] for name in list(sys.modules))


def require(folders: Sequence[str]) -> None:
    """Refuse folders that are gone: what they contained would be imported from elsewhere, if it is there."""
    for folder in folders:
        if not Path(folder).is_dir():
            raise ModuleNotFoundError(f"The folder {folder} of the build does not exist any more.")
