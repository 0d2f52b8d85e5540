"""Registries to start from: a method, its data, a reference, and a backend in a language, which run as they are."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.files import read_text, write_atomically
from boosters_eval.core.findings import Findings
from boosters_eval.core.terms import named, the

if TYPE_CHECKING:
    from boosters_eval.core.findings import Screen
    from boosters_eval.programs.parity.request import ParityInitRequest

_HERE = Path(__file__).parent
_REGISTRY = "registry.py"


class _Template(NamedTuple):
    """A backend in a language: the text of its class, what that imports, and the file of its code."""

    about: str
    imports: tuple[str, ...]
    code: str = ""  # beside the registry
    command: tuple[str, ...] = ()  # of a program that speaks the process protocol
    install: str = ""


_TEMPLATES = {
    "python": _Template("a backend in Python", ()),
    "c": _Template(
        "a library in C", ("ctypes", "hashlib", "shutil", "subprocess", "tempfile", "pathlib.Path"), "line.c"
    ),
    "r": _Template(
        *("a program in R", ("pathlib.Path",), "line.R", ("Rscript", "--vanilla")),
        install="apt-get install r-base-core r-cran-jsonlite",
    ),
    "octave": _Template(
        *("a program in Octave", ("pathlib.Path",), "line.m", ("octave-cli", "--norc", "--quiet")),
        install="apt-get install octave",
    ),
    "command": _Template(
        *("any program, here one in Perl", ("pathlib.Path",), "line.pl", ("perl",)), install="apt-get install perl"
    ),
}


def _read(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def fill_template(language: str) -> dict[str, str]:
    """The files of a registry, by name."""
    one = _TEMPLATES[language]
    if one.command:
        backend = _read("process.py.txt").format(
            language=language,
            program=one.command[0],
            install=one.install,
            command=", ".join(f'"{word}"' for word in one.command),
            file=one.code,
        )
    else:
        backend = _read(f"{language}.py.txt")
    lines = [
        f"import {name}" if "." not in name else "from {} import {}".format(*name.split(".")) for name in one.imports
    ]
    registry = _read("registry.py.txt").replace("{about}", one.about).replace("{backend}", backend)
    registry = registry.replace("{bases}", "ProcessBackend, PythonBackend" if one.command else "PythonBackend")
    registry = registry.replace("{imports}\n\n", "\n".join(lines) + "\n\n" if lines else "")
    return {_REGISTRY: registry, **({one.code: _read(one.code)} if one.code else {})}


@dataclass(frozen=True)
class WrittenRegistry(Findings):
    """A folder with a registry and the code of its backend."""

    folder: Path
    files: tuple[Path, ...]

    def show(self, screen: Screen) -> None:
        place, rows = shlex.quote(str(self.folder / _REGISTRY)), shlex.quote(str(self.folder / "parity.csv"))
        screen.note(f"Wrote {' and '.join(str(file) for file in self.files)}. They run as they are:")
        screen.note(f"  boosters-eval parity run --registry {place} --methods line --out-csv {rows}")
        screen.note(f"  boosters-eval parity gate --registry {place} --csv {rows}")


def write_templates(request: ParityInitRequest) -> WrittenRegistry:
    """Write a registry that runs as it is. Files that are there are kept, unless they may be replaced."""
    files = {request.folder / name: text for name, text in fill_template(request.language).items()}
    if request.folder.exists() and not request.folder.is_dir():
        raise ConfigError(f"{the('folder')} must be a folder. {request.folder} is a file.")
    found = [path for path, text in files.items() if path.exists() and read_text(path) != text]
    if found and not request.force:
        raise ConfigError(
            f"{the('folder')} must name a folder without {found[0].name}, or be given with {named('force')}."
            f" {found[0]} exists."
        )
    for path, text in files.items():
        write_atomically(path, text)
    return WrittenRegistry(request.folder, tuple(files))
