"""A library as small as can be, in as many versions as a test wants: wheels, source folders, and its runner."""

from __future__ import annotations

import base64
import hashlib
import zipfile

RUNNER = '''
import numpy as np
from boosters_eval.runners.base import Runner, Translation


class ToyRunner(Runner):
    """Predicts the mean, and something that differs by version."""

    name = "toy"
    module = "toybooster"
    distributions = ("toybooster", "toybooster-other")
    install = "toybooster"

    @classmethod
    def unsupported(cls, request):
        return None

    @classmethod
    def translate(cls, request):
        return Translation(request, {"version": cls.version()})

    @classmethod
    def build(cls, translation, data):
        return data

    @classmethod
    def fit(cls, translation, dataset):
        import toybooster

        return float(np.mean(dataset.y)) + toybooster.SHIFT

    @classmethod
    def predict(cls, translation, model, x):
        return np.full(len(x), model)
'''

BACKEND = """
import base64, hashlib, pathlib, zipfile

def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name = "NAME-VERSION-py3-none-any.whl"
    files = {"toybooster/__init__.py": pathlib.Path("toybooster/__init__.py").read_text()}
    info = "NAME-VERSION.dist-info"
    files[f"{info}/METADATA"] = "Metadata-Version: 2.1\\nName: NAME\\nVersion: VERSION\\n"
    files[f"{info}/WHEEL"] = "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
    def line(path, text):
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        return f"{path},sha256={digest},{len(text)}"
    record = [line(path, text) for path, text in files.items()] + [f"{info}/RECORD,,"]
    files[f"{info}/RECORD"] = "\\n".join(record) + "\\n"
    with zipfile.ZipFile(pathlib.Path(wheel_directory, name), "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
    return name
"""


def code(shift=0.0):
    return f"SHIFT = {shift!r}\n"


def write_runner(folder):
    """The library's runner in a file; what it is named by."""
    (folder / "toy_runner.py").write_text(RUNNER)
    return f"{folder}/toy_runner.py:ToyRunner"


def write_wheel(
    folder, version="1.0", shift=0.0, *, name="toybooster", package="toybooster", tag="py3-none-any", text=None
):
    """A wheel, as a build tool would write it."""
    folder.mkdir(exist_ok=True, parents=True)
    info = f"{name}-{version}.dist-info"
    files = {
        f"{package}/__init__.py": text if text is not None else code(shift),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n",
    }
    record = [f"{path},sha256={_hash(content)},{len(content)}" for path, content in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""])
    path = folder / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for inner, content in files.items():
            wheel.writestr(inner, content)
    return path


def write_source(folder, version="1.0", shift=0.0):
    """A source folder that pip builds without downloading anything: its build tool is its own."""
    (folder / "toybooster").mkdir(parents=True, exist_ok=True)
    (folder / "toybooster" / "__init__.py").write_text(code(shift))
    (folder / "backend.py").write_text(BACKEND.replace("NAME", "toybooster").replace("VERSION", version))
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    return folder


def _hash(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content.encode()).digest()).rstrip(b"=").decode()
