"""The versions that a bisection searches (releases, wheels or commits), and which of them it tries next."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from packaging.version import InvalidVersion, Version

from boosters_eval.core.errors import ConfigError, find_doubled
from boosters_eval.core.terms import the
from boosters_eval.runners import RUNNERS
from boosters_eval.runners.builds.install import list_versions, resolve_build
from boosters_eval.runners.builds.reference import library_name, parse_reference, wheel_parts
from boosters_eval.runners.builds.sources import build_commit, list_commits

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from boosters_eval.programs.bisect.request import BisectRequest
    from boosters_eval.runners.base import Runner

    CandidateAnswer = Literal["earlier", "later", "undecided", "unusable"]


@dataclass(frozen=True)
class Candidate:
    """One version of the library: what it is called, and how it becomes a competitor."""

    name: str  # in the answer: "4.5.0", or a commit
    resolve: Callable[[], type[Runner]]  # builds and installs it
    detail: str = ""  # the first line of a commit's message


def list_candidates(request: BisectRequest) -> list[Candidate]:
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
        known = list_versions(library)
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
    if doubled := find_doubled(chosen):
        raise ConfigError(f"The versions of a bisection must differ. Got '{doubled[0]}' twice.")
    return [Candidate(version, partial(install, f"{library}=={version}")) for version in chosen]


def _of_wheels(library: str, wheels: Sequence[Path], install: Callable[[str], type[Runner]]) -> list[Candidate]:
    """The wheels in the order that they are given in; each is called by its version or its file."""
    paths = [wheel.expanduser().absolute() for wheel in wheels]
    for path in paths:
        parse_reference(f"{library}@{path}")  # refuses what is no wheel of this library
    versions = [wheel_parts(path)[1] for path in paths]
    if len(set(versions)) == len(versions):
        references = [f"{library}@{path}" for path in paths]
        return [Candidate(name, partial(install, text)) for name, text in zip(versions, references, strict=True)]
    names = [path.name.removesuffix(".whl") for path in paths]
    if len(set(names)) < len(names):  # they differ in their folders
        names = [f"{number}-{version}" for number, version in enumerate(versions, 1)]
    references = [f"{_label(library, name)}={library}@{path}" for name, path in zip(names, paths, strict=True)]
    return [Candidate(name, partial(install, text)) for name, text in zip(names, references, strict=True)]


def _of_commits(library: str, request: BisectRequest, install: Callable[[str], type[Runner]]) -> list[Candidate]:
    """The commits from GOOD to BAD, each built when it is needed."""
    folder = Path(request.folder or "").expanduser().absolute()

    def resolve(sha: str, short: str) -> type[Runner]:
        wheel = build_commit(folder, sha, request.build_command, home=request.home)
        return install(f"{_label(library, short)}={library}@{wheel}")

    return [
        Candidate(commit.short, partial(resolve, commit.sha, commit.short), commit.subject)
        for commit in list_commits(folder, request.commits or "")
    ]


def _label(library: str, name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", f"{library}-{name}")[:64]


def _ends(text: str) -> tuple[Version, Version]:
    first, _, last = text.partition("..")
    try:
        low, high = Version(first), Version(last)
    except InvalidVersion:
        raise ConfigError(f"{the('versions')} must be A..B, such as 4.3..4.7. Got '{text}' instead.") from None
    if low >= high:
        raise ConfigError(f"{the('versions')} must be A..B with A before B. Got '{text}' instead.")
    return low, high


@dataclass(frozen=True, slots=True)
class Located:
    """The number changed after position `low`, and not later than at position `high`."""

    low: int
    high: int
    unusable: tuple[int, ...] = ()  # of all positions that were tried
    undecided: tuple[int, ...] = ()

    @property
    def between(self) -> range:
        """The positions of which nothing is known."""
        return range(self.low + 1, self.high)


def locate(count: int, judge: Callable[[int, int, int], CandidateAnswer], tries: int) -> Located:
    """Halve the positions 0 to count - 1, whose ends are known to differ.

    `judge(low, candidate, high)` says which of the two the candidate is like. One that is unusable or undecided is
    passed over; `tries` limits how many are judged, not how many turn out to be unusable.
    """
    low, high = 0, count - 1
    unusable: list[int] = []
    undecided: list[int] = []
    while tries > 0 and (candidate := choose(low, high, {*unusable, *undecided})) is not None:
        answer = judge(low, candidate, high)
        tries -= answer != "unusable"
        if answer == "earlier":
            low = candidate
        elif answer == "later":
            high = candidate
        else:
            (unusable if answer == "unusable" else undecided).append(candidate)
    return Located(low, high, tuple(sorted(unusable)), tuple(sorted(undecided)))


def choose(low: int, high: int, passed: Collection[int]) -> int | None:
    """The candidate nearest to the middle; the more are passed over, the farther from it: broken ones are adjacent."""
    inside = range(low + 1, high)
    open_ = [position for position in inside if position not in passed]
    if not open_:
        return None
    middle = (low + high) / 2
    reach = 2 ** sum(position in passed for position in inside) / 2 - 0.5
    far = [position for position in open_ if abs(position - middle) >= reach]
    return min(far or open_, key=lambda position: abs(position - middle))
