"""The builds of libraries in a home: installed, listed, shown and removed."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from boosters_eval.core.errors import ExitCode, Interruption
from boosters_eval.core.findings import Findings, Removable, Removal
from boosters_eval.core.text import count_of, format_size, join_words
from boosters_eval.reports.document import Document, PlainTable, Section
from boosters_eval.reports.findings import ReportedFindings
from boosters_eval.runners.builds.install import install_reference
from boosters_eval.runners.builds.reference import parse_reference
from boosters_eval.runners.builds.sources import list_wheels, wheels_folder
from boosters_eval.runners.builds.store import builds_folder, find_build, find_damaged, remove_build, scan_builds

if TYPE_CHECKING:
    from boosters_eval.core.findings import Screen
    from boosters_eval.programs.catalog.request import (
        AddBuildsRequest,
        ListBuildsRequest,
        PruneBuildsRequest,
        RemoveBuildsRequest,
        ShowBuildRequest,
    )
    from boosters_eval.runners.builds.sources import KeptWheel
    from boosters_eval.runners.builds.store import StoredBuild


def add_builds(request: AddBuildsRequest) -> AddedBuilds:
    """Install builds; one that is interrupted leaves nothing."""
    found = []
    for words, reference in [(words, parse_reference(words)) for words in request.references]:
        try:
            found.append(install_reference(reference, home=request.home, isolated=request.isolated))
        except KeyboardInterrupt:
            raise Interruption(f"Stopped. Nothing of {words} is kept.") from None
    return AddedBuilds(tuple(found))


@dataclass(frozen=True)
class AddedBuilds(Findings):
    builds: tuple[StoredBuild, ...]

    def show(self, screen: Screen) -> None:
        for record in (build.record for build in self.builds):
            told = f"{record.distribution} {record.version}  {format_size(record.size)}"
            screen.say(f"{record.build_id}  {record.reference}  {told}")


def list_builds(request: ListBuildsRequest) -> ListedBuilds:
    lost = [path.name for path in find_damaged(request.home) if not path.name.startswith(".")]
    return ListedBuilds(tuple(scan_builds(request.home)), tuple(list_wheels(request.home)), tuple(lost), request)


@dataclass(frozen=True)
class ListedBuilds(ReportedFindings):
    """The builds in a home, and the wheels that bisections have built."""

    plain: ClassVar[bool] = True
    builds: tuple[StoredBuild, ...]
    wheels: tuple[KeptWheel, ...]
    damaged: tuple[str, ...]  # folders whose record cannot be read
    request: ListBuildsRequest

    def document(self) -> Document:
        rows = tuple(
            (item.build_id, item.reference, item.version, _kind(build), _when(build.used), format_size(item.size))
            for build in self.builds
            for item in (build.record,)
        )
        table = PlainTable("Builds", ("build", "of", "version", "kind", "last used", "size"), rows)
        return Document("Builds", sections=(Section("builds", "", (table,)),))

    def to_model(self) -> list[dict[str, Any]]:
        return [_record(build) for build in self.builds]

    def show(self, screen: Screen) -> None:
        if self.builds:
            super().show(screen)
        else:
            screen.note(f"Note: there are no builds in {builds_folder(self.request.home)}.")
        if self.wheels:
            size = format_size(sum(wheel.size for wheel in self.wheels))
            what = f"{count_of(len(self.wheels), 'wheel')} of commits, {size}"
            screen.note(f"Note: {what}, in {wheels_folder(self.request.home)}; 'builds prune' removes them too.")

    def conclude(self, screen: Screen) -> None:
        if self.damaged:
            what = f"{join_words(self.damaged)} cannot be read: {'it is' if len(self.damaged) == 1 else 'they are'}"
            screen.note(f"Warning: {what} damaged or unfinished; 'builds prune' removes what is.")


def show_build(request: ShowBuildRequest) -> ShownBuild:
    build = find_build(request.reference, request.home)
    return ShownBuild(build, build.is_whole())


@dataclass(frozen=True)
class ShownBuild(ReportedFindings):
    """A build, and whether its files are as they were installed."""

    plain: ClassVar[bool] = True
    build: StoredBuild
    whole: bool

    @property
    def exit_code(self) -> int:
        """A build whose files were changed is not as it says."""
        return ExitCode.SUCCESS if self.whole else ExitCode.EXECUTION_ERROR

    def document(self) -> Document:
        build, record = self.build, self.build.record
        facts = {
            "build": record.build_id,
            "of": record.reference,
            "library": record.library,
            "version": f"{record.version} ({record.distribution})",
            "kind": _kind(build),
            "source": record.source,
            "digest": record.digest,
            "files": "as they were installed"
            if self.whole
            else "changed since; it will be installed again when it is used",
            "packages": ", ".join(f"{name} {version}" for name, version in record.packages.items()),
            "python": record.python,
            "installed": f"{_when(datetime.fromisoformat(record.installed_at).timestamp())}, in {record.seconds:.0f} s",
            "last used": _when(build.used),
            "folder": f"{build.folder} ({format_size(record.size)})",
        }
        table = PlainTable.of_facts("Build", facts)
        return Document(f"Build {record.build_id}", sections=(Section("facts", "", (table,)),))

    def to_model(self) -> dict[str, Any]:
        return {**_record(self.build), "whole": self.whole}


def choose_builds(request: RemoveBuildsRequest) -> Removal:
    chosen = {build.folder: build for build in (find_build(name, request.home) for name in request.references)}
    return Removal("build", tuple(map(_removable, chosen.values())))


def choose_unused(request: PruneBuildsRequest) -> Removal:
    """Remove what was not used for a while, what is damaged, and wheels."""
    limit = time.time() - request.older_than.total_seconds()
    things = [_removable(build) for build in scan_builds(request.home) if build.used < limit]
    things += [
        Removable(path.name, f"{path.name}  damaged or unfinished", partial(remove_build, path))
        for path in find_damaged(request.home)
        if path.stat().st_mtime < limit
    ]
    things += [
        Removable(
            wheel.folder.name,
            f"{wheel.folder.name}  wheel of a commit  {_when(wheel.used)}  {format_size(wheel.size)}",
            wheel.remove,
        )
        for wheel in list_wheels(request.home)
        if wheel.used < limit
    ]
    return Removal("build", tuple(things))


def _removable(build: StoredBuild) -> Removable:
    record = build.record
    line = f"{record.build_id}  {record.reference}  {_when(build.used)}  {format_size(record.size)}"
    return Removable(record.build_id, line, partial(remove_build, build.folder))


def _record(build: StoredBuild) -> dict[str, Any]:
    """A build as plain data, the same in `list` and `show`."""
    used = datetime.fromtimestamp(build.used, UTC).isoformat(timespec="seconds")
    content = build.record.model_dump(mode="json", exclude={"schema_version", "stamp", "content"})
    return {**content, "used_at": used, "path": str(build.folder)}


def _kind(build: StoredBuild) -> str:
    return f"{build.record.origin}, isolated" if build.record.isolated else build.record.origin


def _when(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC).astimezone():%Y-%m-%d %H:%M}"
