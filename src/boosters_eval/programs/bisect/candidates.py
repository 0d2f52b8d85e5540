"""The versions that are searched, in order: releases, wheels, or the commits of a folder."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.terms import the
from boosters_eval.programs.bisect.model import Candidate
from boosters_eval.runners import RUNNERS
from boosters_eval.runners.builds.commits import build_commit, commits_between
from boosters_eval.runners.builds.install import released_versions
from boosters_eval.runners.builds.reference import parse_reference, wheel_parts
from boosters_eval.runners.builds.resolve import resolve_build
from boosters_eval.runners.resolve import library_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from boosters_eval.programs.bisect.request import BisectRequest
    from boosters_eval.runners.base import Runner


def candidates_of(request: BisectRequest) -> list[Candidate]:
    """The candidates of the one source that was given."""
    library = RUNNERS[library_name(request.library)].name  # a file is registered, and known by its name from then on

    def install(reference: str) -> type[Runner]:
        return resolve_build(reference, home=request.home, isolated=request.isolated)

    if request.versions:
        return _releases(library, request.versions, install)
    return _of_wheels(library, request.wheels, install) if request.wheels else _of_commits(library, request, install)


def _releases(library: str, versions: str | Sequence[str], install: Callable[[str], type[Runner]]) -> list[Candidate]:
    """The released versions from A to B, both included, or exactly those that are listed."""
    if isinstance(versions, str):
        low, high = _ends(versions)
        known = released_versions(library)
        chosen = [version for version in known if low <= Version(version) <= high]
        if len(chosen) < 2:
            there = f"pip finds {known[0]} to {known[-1]}" if known else "pip finds none"
            raise ConfigError(
                f"{the('versions')} must include at least two released versions of {library}. Got '{versions}' instead;"
                f" {there}."
            )
    else:
        chosen = [str(version) for version in versions]
        for version in chosen:
            parse_reference(f"{library}=={version}")  # refuses what is no exact version
    return [Candidate(version, partial(install, f"{library}=={version}")) for version in _once(chosen)]


def _of_wheels(library: str, wheels: Sequence[Path], install: Callable[[str], type[Runner]]) -> list[Candidate]:
    """The wheels in the order that they are given in; each is called by its version or its file."""
    paths = [wheel.expanduser().absolute() for wheel in wheels]
    for path in paths:
        parse_reference(f"{library}@{path}")  # refuses what is no wheel of this library
    versions = [wheel_parts(path)[1] for path in paths]
    if len(set(versions)) == len(versions):
        return [
            Candidate(version, partial(install, f"{library}@{path}"))
            for version, path in zip(versions, paths, strict=True)
        ]
    return [
        Candidate(name, partial(install, f"{_label(library, name)}={library}@{path}"))
        for name, path in zip(_file_names(paths), paths, strict=True)
    ]


def _of_commits(library: str, request: BisectRequest, install: Callable[[str], type[Runner]]) -> list[Candidate]:
    """The commits from GOOD to BAD, each built when it is needed."""
    folder = Path(request.folder or "").expanduser().absolute()

    def resolve(sha: str, short: str) -> type[Runner]:
        wheel = build_commit(folder, sha, request.build_command, home=request.home)
        return install(f"{_label(library, short)}={library}@{wheel}")

    return [
        Candidate(commit.short, partial(resolve, commit.sha, commit.short), commit.subject)
        for commit in commits_between(folder, request.commits or "")
    ]


def _label(library: str, name: str) -> str:
    """A name that a build may have."""
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", f"{library}-{name}")[:64]


def _file_names(paths: list[Path]) -> list[str]:
    """What tells files apart: their folders, where their names are the same."""
    if len({path.name for path in paths}) == len(paths):
        return [path.name.removesuffix(".whl") for path in paths]
    return [f"{number}-{wheel_parts(path)[1]}" for number, path in enumerate(paths, 1)]


def _once(names: Iterable[str]) -> list[str]:
    found = list(names)
    doubled = next((name for name in found if found.count(name) > 1), None)
    if doubled is not None:
        raise ConfigError(f"The versions of a bisection must differ. Got '{doubled}' twice.")
    return found


def _ends(text: str) -> tuple[Version, Version]:
    first, _, last = text.partition("..")
    try:
        low, high = Version(first), Version(last)
    except InvalidVersion:
        raise ConfigError(f"{the('versions')} must be A..B, such as 4.3..4.7. Got '{text}' instead.") from None
    if low >= high:
        raise ConfigError(f"{the('versions')} must be A..B with A before B. Got '{text}' instead.")
    return low, high
