"""A user's Python file as a module: suites, metrics and runners may be defined in one."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import BoostersEvalError, ConfigError, RunError, describe_error, suggest
from boosters_eval.core.files import compute_digest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.machinery import ModuleSpec
    from types import FunctionType, ModuleType

_GUARD = "put what starts it under: if __name__ == '__main__'"


_RUNNING = object()  # instead of the content of a file that is being run
_loaded: dict[str, Any] = {}  # what the file of each module that `load_file` made contained


def load_file(file: Path) -> ModuleType:
    """The file, run once per process however often it is asked for, and again once it was edited, in a notebook say.

    It is the user's own code.
    """
    place = compute_digest(os.fsencode(file.absolute()), 12)  # two folders may have files of one name
    name = f"_boosters_eval_file_{re.sub(r'[^A-Za-z0-9_]', '_', file.stem)}_{place}"
    spec = importlib.util.spec_from_file_location(name, file)
    if not file.is_file() or spec is None:
        raise ConfigError(f"The file {file} does not exist.")
    content, known = file.read_bytes(), sys.modules.get(name)
    before = _loaded.get(name)
    if before is _RUNNING:  # it is needed while it runs, by itself
        raise ConfigError(f"The file {file} starts a run that needs the file itself: {_GUARD}.")
    if known is not None and before == content:
        return known
    _loaded[name] = _RUNNING
    try:
        module = _run(spec, file, content)
    except BaseException:
        _loaded[name] = before
        sys.modules.pop(name, None)
        if known is not None:  # what was registered from it still works
            sys.modules[name] = known
        raise
    _loaded[name] = content
    return module


def _run(spec: ModuleSpec, file: Path, content: bytes) -> ModuleType:
    """A new module with what the file contains. Bytecode is not looked at: an edit may leave time and size alone."""
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        exec(compile(content, str(file), "exec"), module.__dict__)  # noqa: S102 (the user's own code)
    except BoostersEvalError:
        raise
    except SystemExit as error:
        raise RunError(f"The file {file} called sys.exit({error.code!r}) instead of defining something.") from None
    except Exception as error:
        text = describe_error(error).rstrip(".")
        raise ConfigError(f"The file {file} failed: {text}.") from error
    return module


def named_in(file: Path, name: str, kind: str) -> Any:
    """Something of that name in the file; the error names what there is."""
    module = load_file(file)
    if not hasattr(module, name):
        names = [key for key in vars(module) if not key.startswith("_")]
        raise ConfigError(f"The file {file} has no {kind} '{name}'.{suggest(name, names)}")
    return getattr(module, name)


def address_of(item: type | FunctionType, kind: str) -> dict[str, Any]:
    """Where another process finds a class or function: its module and name, and the file if that is no module there."""
    if "<locals>" in item.__qualname__:
        raise ConfigError(f"The {kind} '{item.__name__}' is defined inside a function: put it at the top of a module.")
    # With `python -m package.module`, the program has a name besides __main__, by which another process imports it.
    spec = getattr(sys.modules.get("__main__"), "__spec__", None) if item.__module__ == "__main__" else None
    module = item.__module__ if spec is None else spec.name
    file = _file_of(module)
    code = getattr(item, "__code__", None)
    if file == "" or (item.__module__ == "__main__" and code is not None and not Path(code.co_filename).is_file()):
        raise ConfigError(f"The {kind} '{item.__name__}' is defined in a notebook or prompt: put it into a module.")
    return {"module": module, "name": item.__qualname__, "file": file}


def load_address(address: Mapping[str, Any]) -> Any:
    file = address["file"]
    found: Any = importlib.import_module(address["module"]) if file is None else load_file(Path(file))
    for part in address["name"].split("."):
        found = getattr(found, part)
    return found


def _file_of(module: str) -> str | None:
    """The file of a module that another process could not import by its name; None for one that it can."""
    if module in sys.builtin_module_names:
        return None
    if module != "__main__" and PathFinder.find_spec(module.partition(".")[0]) is not None:
        return None
    return getattr(sys.modules.get(module), "__file__", "") or ""
