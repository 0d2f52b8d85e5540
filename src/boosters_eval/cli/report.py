"""The command that writes reports."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from boosters_eval.cli.execution import carry_out, exit_code
from boosters_eval.cli.options import Execution, Presentation, refuse_tracking, settings_of, with_options
from boosters_eval.cli.output import choose_format, console, is_file_name, note
from boosters_eval.core.errors import ConfigError, RunError
from boosters_eval.core.text import counted


@with_options(execution=Execution)
def report(
    execution: Execution,
    suite: Annotated[str | None, typer.Option("--suite", help="Run this suite and report on it.")] = None,
    run: Annotated[
        str | None,
        typer.Option("--run", help="Report on an earlier run: its id, the beginning of it, its name, or 'last'."),
    ] = None,
    results: Annotated[Path | None, typer.Option("--results", help="Report on a results file (JSON).")] = None,
    report_type: Annotated[str, typer.Option("--type", help="quality, performance or comparison.")] = "quality",
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Directory for the files, or one file: .md, .txt, .json or .html.")
    ] = Path("docs/benchmarks"),
    formats: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            help="One or more of md (or markdown), json, html. Default: by the ending of a file, else all.",
        ),
    ] = None,
    test: Annotated[
        str, typer.Option("--test", help="The test behind the highlights: corrected, welch, paired or wilcoxon.")
    ] = "corrected",
    seeds: Annotated[
        int | None, typer.Option("--seeds", "-s", help="With --suite: number of random splits. Default: the suite's.")
    ] = None,
    library: Annotated[
        list[str] | None,
        typer.Option("--library", "-l", help="With --suite: only these libraries. Default: all of it."),
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="Open the report after writing it.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the report instead of writing it. A suite runs all the same.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="With --suite: print parameters, phases and every outcome.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors.")] = False,
) -> int:
    """Write a report on a suite, an earlier run or a results file."""
    from boosters_eval.core.files import check_writable
    from boosters_eval.preparing import prepare_suite
    from boosters_eval.programs.benchmark.tables.generate import check_request, render_files

    _check_sources(execution, suite, run, results)
    wanted = _formats(formats, output)
    check_request(report_type, wanted, test)
    file = _only_file(output, wanted)
    if verbose and quiet:
        raise ConfigError("Use either --verbose or --quiet, not both.")
    if run is not None and _is_explained(run):
        return _report_importances(run, output, file, wanted, dry_run=dry_run, quiet=quiet, open_=open_)
    if suite is None:
        collection = _earlier(run, results)
    else:
        prepared = prepare_suite(suite, seeds, library or None, **settings_of(execution))
        if not dry_run:
            check_writable(
                file or output / "report"
            )  # this may create the directory, so only if a report will be written
        collection = carry_out(prepared, execution, Presentation(verbose=verbose, quiet=quiet))
    if not collection.results and not collection.errors:
        raise RunError("There is nothing to report: no cell has an outcome.")
    checked: dict[str, Any] = {"report_type": report_type, "formats": wanted, "test": test}  # by check_request
    files = _placed(render_files(collection, output_dir=output, **checked), file)
    if dry_run:
        _preview(collection, checked, files)
        for path in () if quiet else files:
            note(f"Would write: {path}")
    else:
        _write(files, quiet=quiet, open_=open_)
    if collection.metadata.n_missing:
        missing = collection.metadata.n_missing
        have = f"{counted(missing, 'cell')} {'has' if missing == 1 else 'have'}"
        note(f"Note: {have} no outcome: this is not a report on the whole run.")
    # What an earlier run failed in is in the report, but what it never ran is not.
    return exit_code(collection, continue_on_error=execution.continue_on_error or suite is None)


def _check_sources(execution: Execution, suite: str | None, run: str | None, results: Path | None) -> None:
    if sum(source is not None for source in (suite, run, results)) != 1:
        raise ConfigError("Use exactly one of --suite, --run and --results to choose what to report on.")
    if suite is None:
        refuse_tracking(execution)


def _formats(given: str | None, output: Path) -> list[str]:
    """What was asked for, or what the name of a file implies, or all."""
    if given is None and is_file_name(output):
        given = choose_format(None, output)
        if given == "csv":
            raise ConfigError(
                "The '--output' option of report must be a folder, or end in .md, .json or .html."
                f" Got '{output}' instead."
            )
    names = ("md,json,html" if given is None else given).replace(",", " ").split()
    return [{"markdown": "md"}.get(name, name) for name in names]


def _only_file(output: Path, wanted: list[str]) -> Path | None:
    """The file for the report, if not a folder was named."""
    if not is_file_name(output):
        return None
    if len(set(wanted)) > 1:
        raise ConfigError(
            f"The '--output' option must be a folder for several formats ({', '.join(wanted)}). Got '{output}' instead."
        )
    return output


def _placed(files: dict[Path, str], file: Path | None) -> dict[Path, str]:
    """The files of a report under their own names, or the only one where it was wanted."""
    return files if file is None else {file: next(iter(files.values()))}


def _earlier(run: str | None, results: Path | None) -> Any:
    from boosters_eval.api import load_results, load_run

    return load_results(results) if results is not None else load_run(run or "last")


def _is_explained(run: str) -> bool:
    from boosters_eval.programs.importances.running import is_explained

    return is_explained(run)


def _report_importances(
    run: str, output: Path, file: Path | None, wanted: list[str], *, dry_run: bool, quiet: bool, open_: bool
) -> int:
    """A run of `importances` has a report of its own, with the same formats."""
    from boosters_eval.api import load_importances
    from boosters_eval.programs.importances.rendering import print_importances, render_files

    found = load_importances(run)
    if not found.results:
        raise RunError("There is nothing to report: no cell has an outcome.")
    files = _placed(render_files(found, output, wanted), file)
    if not dry_run:
        _write(files, quiet=quiet, open_=open_)
    elif sys.stdout.isatty() and wanted[0] == "md":
        print_importances(found.document(), console())
    else:
        sys.stdout.write(next(iter(files.values())))
    return exit_code(found.collection, continue_on_error=True)


def _preview(collection: Any, checked: dict[str, Any], files: dict[Path, str]) -> None:
    """The first of the files; instead of Markdown, a terminal gets what fits it."""
    from boosters_eval.programs.benchmark.tables import build_document
    from boosters_eval.reports import print_document

    if sys.stdout.isatty() and checked["formats"][0] == "md":
        print_document(build_document(collection, checked["report_type"], test=checked["test"]), console())
    else:
        sys.stdout.write(next(iter(files.values())))


def _write(files: dict[Path, str], *, quiet: bool, open_: bool) -> None:
    from boosters_eval.core.files import write_atomically

    for path, text in files.items():
        write_atomically(path, text)
        if not quiet:
            note(f"Written: {path}")
    if open_:
        readable = [path for suffix in (".html", ".md", ".json") for path in files if path.suffix == suffix]
        typer.launch(str(readable[0].resolve()))


def register(app: typer.Typer) -> None:
    """Add this command to the program."""
    app.command()(report)
