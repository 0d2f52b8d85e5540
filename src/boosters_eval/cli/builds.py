"""The builds of libraries in this home: add, list, show, remove and prune."""

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from boosters_eval.cli.output import note, print_json, print_rows, say
from boosters_eval.cli.removing import confirm_removal, sized, span_seconds
from boosters_eval.core.errors import BuildError, ExitCode
from boosters_eval.core.text import counted

if TYPE_CHECKING:
    from boosters_eval.runners.builds.commits import KeptWheel
    from boosters_eval.runners.builds.store import StoredBuild

builds = typer.Typer(
    name="builds",
    help="Versions and builds of libraries in this home: add, list, show, remove, prune.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
_REFERENCE = "A build's id, the beginning of one, or what it was installed from, such as xgboost==3.0.5."


@builds.command()
def add(
    references: Annotated[
        list[str],
        typer.Argument(
            metavar="REFERENCE", help="LIBRARY==VERSION, LIBRARY@path/to/file.whl or LIBRARY@path/to/source."
        ),
    ],
    *,
    isolated: Annotated[
        bool,
        typer.Option("--isolated", help="With dependencies of its own, for one that cannot use those installed here."),
    ] = False,
) -> int:
    """Install builds, so that a later run need not.

    Nothing is installed into this environment. A build that was added with --isolated is used so until it is removed.
    """
    from boosters_eval.runners.builds.install import install_reference
    from boosters_eval.runners.builds.reference import parse_reference
    from boosters_eval.core.saying import tell

    for text, reference in [(text, parse_reference(text)) for text in references]:
        try:
            build = install_reference(reference, isolated=isolated)
        except KeyboardInterrupt:
            tell(f"Stopped. Nothing of {text} is kept.")  # after the line that counts its seconds
            raise typer.Exit(ExitCode.INTERRUPTED) from None
        record = build.record
        say(f"{record.build_id}  {record.reference}  {record.distribution} {record.version}  {sized(record.size)}")
    return ExitCode.SUCCESS


@builds.command("list")
def list_builds(*, json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> int:
    """List the builds in this home, the latest used first."""
    from boosters_eval.runners.builds.commits import kept_wheels, wheels_folder
    from boosters_eval.runners.builds.store import all_builds, builds_folder

    found, wheels = all_builds(), kept_wheels()
    if json:
        print_json([_record(build) for build in found])
    elif not found:
        note(f"Note: there are no builds in {builds_folder()}.")
    else:
        rows = [
            (item.build_id, item.reference, item.version, _kind(build), _when(build.used), sized(item.size))
            for build in found
            for item in (build.record,)
        ]
        print_rows(("build", "of", "version", "kind", "last used", "size"), rows)
    if wheels:
        what = f"{counted(len(wheels), 'wheel')} of commits, {sized(sum(wheel.size for wheel in wheels))}"
        note(f"Note: {what}, in {wheels_folder()}; 'builds prune' removes them too.")
    return ExitCode.SUCCESS


@builds.command()
def show(
    reference: Annotated[str, typer.Argument(metavar="BUILD", help=_REFERENCE)],
    *,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Show what is known of a build, and whether its files are as they were installed."""
    from boosters_eval.runners.builds.store import find_build

    build = find_build(reference)
    record, whole = build.record, build.is_whole()
    if json:
        print_json({**_record(build), "whole": whole})
        return ExitCode.SUCCESS if whole else ExitCode.EXECUTION_ERROR
    lines = {
        "build": record.build_id,
        "of": record.reference,
        "library": record.library,
        "version": f"{record.version} ({record.distribution})",
        "kind": _kind(build),
        "source": record.source,
        "digest": record.digest,
        "files": "as they were installed" if whole else "changed since; it will be installed again when it is used",
        "packages": ", ".join(f"{name} {version}" for name, version in record.packages.items()),
        "python": record.python,
        "installed": f"{_when(datetime.fromisoformat(record.installed_at).timestamp())}, in {record.seconds:.0f} s",
        "last used": _when(build.used),
        "folder": f"{build.folder} ({sized(record.size)})",
    }
    for label, value in lines.items():
        if value:
            say(f"{label:<11}{value}")
    return ExitCode.SUCCESS if whole else ExitCode.EXECUTION_ERROR


@builds.command()
def remove(
    references: Annotated[list[str], typer.Argument(metavar="BUILD", help=_REFERENCE)],
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be removed, but remove nothing.")] = False,
) -> int:
    """Remove builds. Runs and reports that used them stay; the next run that names one installs it again."""
    from boosters_eval.runners.builds.store import find_build

    chosen = {build.folder: build for build in map(find_build, references)}
    return _remove(list(chosen.values()), [], yes=yes, dry_run=dry_run)


@builds.command()
def prune(
    *,
    older_than: Annotated[
        str,
        typer.Option("--older-than", metavar="TIME", help="Builds that were last used before so long: 12h, 30d, 8w."),
    ] = "30d",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be removed, but remove nothing.")] = False,
) -> int:
    """Remove the builds that were not used for a while.

    What interrupted installations have left, builds that can no longer be read, and the wheels of commits that a
    bisection has built go too. Runs and reports need no build any more; a run that is continued installs it again.
    """
    from boosters_eval.runners.builds.commits import kept_wheels
    from boosters_eval.runners.builds.store import all_builds, damaged_folders

    limit = time.time() - span_seconds(older_than)
    chosen = [build for build in all_builds() if build.used < limit]
    damaged = [path for path in damaged_folders() if path.stat().st_mtime < limit]
    wheels = [wheel for wheel in kept_wheels() if wheel.used < limit]
    return _remove(chosen, damaged, wheels, yes=yes, dry_run=dry_run)


def _remove(
    chosen: "list[StoredBuild]",
    damaged: Sequence[Path],
    wheels: "Sequence[KeptWheel]" = (),
    *,
    yes: bool,
    dry_run: bool,
) -> int:
    from boosters_eval.runners.builds.store import remove_build

    for build in chosen:
        record = build.record
        say(f"{record.build_id}  {record.reference}  {_when(build.used)}  {sized(record.size)}")
    for path in damaged:
        say(f"{path.name}  damaged or unfinished")
    for wheel in wheels:
        say(f"{wheel.folder.name}  wheel of a commit  {_when(wheel.used)}  {sized(wheel.size)}")
    removals: list[Callable[[], None]] = [
        partial(remove_build, folder) for folder in (*(build.folder for build in chosen), *damaged)
    ]
    removals += [wheel.remove for wheel in wheels]
    if not removals:
        note("Note: there is nothing to remove.")
    if dry_run or not removals:
        return ExitCode.SUCCESS
    confirm_removal(len(removals), "build", yes=yes)
    failed = 0
    for removal in removals:
        try:
            removal()
        except BuildError as error:
            failed += 1
            note(f"Error: {error}")
    note(f"Removed: {len(removals) - failed} of {len(removals)} builds.")
    return ExitCode.EXECUTION_ERROR if failed else ExitCode.SUCCESS


def _record(build: "StoredBuild") -> dict[str, Any]:
    """A build as plain data, the same in `list` and `show`."""
    used = datetime.fromtimestamp(build.used, UTC).isoformat(timespec="seconds")
    content = build.record.model_dump(mode="json", exclude={"schema_version", "stamp", "content"})
    return {**content, "used_at": used, "path": str(build.folder)}


def _kind(build: "StoredBuild") -> str:
    return f"{build.record.origin}, isolated" if build.record.isolated else build.record.origin


def _when(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC).astimezone():%Y-%m-%d %H:%M}"


def register(app: typer.Typer) -> None:
    """Add these commands to the program."""
    app.add_typer(builds)
