"""What `builds add|list|show|remove|prune` are asked for."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar

from boosters_eval.core.request import FLAG, SPAN, InHome, JsonOption, RemovalOptions, Request, parameter, text

if TYPE_CHECKING:
    from collections.abc import Sequence


_REFERENCE = "A build's id, the beginning of one, or what it was installed from, such as xgboost==3.0.5."


class AddBuildsRequest(InHome, Request):
    """Builds to install."""

    command: ClassVar = "builds add"
    help: ClassVar = """Install builds, so that a later run need not.

    Nothing is installed into this environment. A build that was added with --isolated is used so until it is removed.
    """
    program: ClassVar = "boosters_eval.programs.builds.keeping:add"

    references: Sequence[str] = parameter(
        kind=text("builds such as xgboost==3.0.5", "REFERENCE..."),
        several=True,
        argument=True,
        help="LIBRARY==VERSION, LIBRARY@path/to/file.whl or LIBRARY@path/to/source.",
    )
    isolated: bool = parameter(
        False, kind=FLAG, help="With dependencies of its own, for one that cannot use those installed here."
    )


class ListBuildsRequest(InHome, JsonOption, Request):
    """All builds."""

    command: ClassVar = "builds list"
    help: ClassVar = "List the builds in this home, the latest used first."
    program: ClassVar = "boosters_eval.programs.builds.keeping:list_all"
    formats: ClassVar = ("json",)


class ShowBuildRequest(InHome, JsonOption, Request):
    """One build."""

    command: ClassVar = "builds show"
    help: ClassVar = "Show what is known of a build, and whether its files are as they were installed."
    program: ClassVar = "boosters_eval.programs.builds.keeping:show"
    formats: ClassVar = ("json",)

    reference: str = parameter(kind=text("a build", "BUILD"), argument=True, help=_REFERENCE)


class RemoveBuildsRequest(InHome, RemovalOptions, Request):
    """Builds to remove."""

    command: ClassVar = "builds remove"
    help: ClassVar = (
        "Remove builds. Runs and reports that used them stay; the next run that names one installs it again."
    )
    program: ClassVar = "boosters_eval.programs.builds.keeping:remove"

    references: Sequence[str] = parameter(kind=text("builds", "BUILD..."), several=True, argument=True, help=_REFERENCE)


class PruneBuildsRequest(InHome, RemovalOptions, Request):
    """Builds that nobody uses."""

    command: ClassVar = "builds prune"
    help: ClassVar = """Remove the builds that were not used for a while.

    What interrupted installations have left, builds that can no longer be read, and the wheels of commits that a
    bisection has built go too. Runs and reports need no build any more; a run that is continued installs it again.
    """
    program: ClassVar = "boosters_eval.programs.builds.keeping:prune"

    older_than: timedelta = parameter(
        timedelta(days=30), kind=SPAN, help="Builds that were last used before so long: 12h, 30d, 8w. Default: 30d."
    )
