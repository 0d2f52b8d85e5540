"""Wheels of installed libraries, written again by a test: builds without a network."""

from __future__ import annotations

import zipfile
from importlib.metadata import distribution
from pathlib import Path

_NOT_PACKED = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}


def repacked(name: str, module: str, folder: Path, note: str) -> Path:
    """The installed distribution as a wheel whose module has one comment more: the same code, another digest."""
    found = distribution(name)
    stem = f"{name.replace('-', '_')}-{found.version}"
    wheel = folder / note / f"{stem}-py3-none-any.whl"
    wheel.parent.mkdir(parents=True)
    with zipfile.ZipFile(wheel, "w") as archive:
        for file in found.files or ():
            if ".." in file.parts or "__pycache__" in file.parts or file.name in _NOT_PACKED:
                continue
            content = Path(str(found.locate_file(file))).read_bytes()
            comment = f"\n# {note}\n".encode() if str(file) == f"{module}/__init__.py" else b""
            archive.writestr(str(file), content + comment)
        archive.writestr(f"{stem}.dist-info/RECORD", "")
    return wheel
