"""The commands `paper run` and `paper list`."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from boosters_eval.cli.execution import resumable
from boosters_eval.cli.options import (
    CLUSTER,
    Execution,
    all_but,
    check_cluster,
    executor_of,
    typed,
    with_options,
)
from boosters_eval.cli.output import check_output, note, print_json, print_rows, say
from boosters_eval.core.errors import ExitCode

_RUN = "How to run"
# Shared with every command that runs targets.
PaperSpecOption = Annotated[Path, typer.Option("--spec", help="The specification (benchmarks.yaml).")]
PaperModelOption = Annotated[
    str | None, typer.Option("--model", help="Our model: a file, or the name of a language model. May be anywhere.")
]
PaperOnlyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--only", metavar="TABLE:ROW:DATASET", help="Only these targets; ROW and DATASET may be left out. Default: all."
    ),
]
PaperOutputOption = Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for the results.")]
PaperSeedsOption = Annotated[
    int | None, typer.Option("--seeds", "-s", min=1, help="Repeats. Default: the specification's.")
]
PaperThreadsOption = Annotated[
    int | None,
    typer.Option(
        "--threads",
        help="Threads per cell; -1 for all cores. Default: the specification's, or 1.",
        rich_help_panel=_RUN,
    ),
]
PaperPickleOption = Annotated[
    bool,
    typer.Option("--allow-pickle", help="Open pickled models, which can run any code.", rich_help_panel=_RUN),
]
PaperNameOption = Annotated[
    str | None, typer.Option("--name", help="A name for the run, for 'runs show' and the like.", rich_help_panel=_RUN)
]
PaperQuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]
_TAKEN = ("jobs", "timeout", "resume", "rerun_failed")
PAPER_LEAVES_OUT = all_but(Execution, *_TAKEN, *CLUSTER, "track")


@with_options(execution=Execution, without=PAPER_LEAVES_OUT)
def run(
    *,
    execution: Execution,
    spec: PaperSpecOption,
    model: PaperModelOption = None,
    only: PaperOnlyOption = None,
    output: PaperOutputOption = Path("results"),
    seeds: PaperSeedsOption = None,
    threads: PaperThreadsOption = None,
    allow_pickle: PaperPickleOption = False,
    name: PaperNameOption = None,
    quiet: PaperQuietOption = False,
) -> int:
    """Run the reproduction targets of a specification.

    Functions and programs that the specification names are executed: run only what you trust.
    """
    check_cluster(execution)
    results = run_targets(
        spec,
        output,
        execution,
        quiet=quiet,
        model=model,
        only=only or (),
        seeds=seeds,
        threads=threads,
        allow_pickle=allow_pickle,
        name=name,
    )
    if not quiet:
        rows = [_shown(found) for found in results.targets]
        print_rows(("table", "row", "data set", "status", "measured"), rows, keys=3)
    return complain(results)


def run_targets(spec: Path, output: Path, execution: Execution, *, quiet: bool, **options: Any) -> Any:
    """Run, show the progress, and write DIR/results.json. An interruption prints how to go on."""
    from boosters_eval.engine.observer import ObserverSettings, watching
    from boosters_eval.programs.paper.running import RESULTS, run_specification, write_results
    from boosters_eval.running import progress

    check_output(output / RESULTS)
    tell = (lambda _: None) if quiet else note
    watched = watching([] if quiet else [progress()], ObserverSettings(say=tell, track=execution.track))
    with watched as observer, resumable(), executor_of(execution) as executor:
        results = run_specification(
            spec,
            executor=executor,
            observer=observer,
            command=tuple(typed()),
            say=lambda text: tell(f"Note: {text}."),
            **{name: getattr(execution, name) for name in _TAKEN},
            **options,
        )
    path = write_results(results, output)
    if not quiet:
        note(f"Written: {path}")
    return results


def complain(results: Any) -> int:
    """Say what did not run and what it warned of, even if quiet: 2 if there is any such target, else 0."""
    from boosters_eval.programs.paper.targets import target_name

    bad = [found for found in results.targets if found.status != "ok"]
    for found in results.targets:
        name = target_name(found.table, found.row, found.dataset)
        if found.status != "ok":
            note(f"Error: {name}: {found.status.replace('_', ' ')}: {found.reason}")
        for text in found.warnings:
            note(f"Warning: {name}: {text}")
    return ExitCode.EXECUTION_ERROR if bad else ExitCode.SUCCESS


def _shown(found: Any) -> tuple[str, ...]:
    values = "; ".join(f"{name} {_spread(numbers)}" for name, numbers in found.values.items())
    return found.table, found.row, found.dataset, found.status.replace("_", " "), values or "-"


def _spread(numbers: tuple[float, ...]) -> str:
    from statistics import fmean, stdev

    mean = f"{fmean(numbers):.6g}"
    return f"{mean} ± {stdev(numbers):.2g} (n = {len(numbers)})" if len(numbers) > 1 else mean


def list_targets(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="SPEC...", help="Specifications. Default: those in examples/papers and in the current folder."
        ),
    ] = None,
    *,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """List specifications and their targets: what can run here, and why not."""
    from boosters_eval.programs.paper.reading import read_specification
    from boosters_eval.programs.paper.targets import obstacle, paper_targets, way_of

    records = []
    for file in files or _found():
        spec = read_specification(file)
        for target in paper_targets(spec, file.parent):
            reason = obstacle(target)
            records.append(
                {
                    "specification": str(file),
                    "paper": spec.paper,
                    "kind": "primary" if target.primary else "secondary",
                    "table": target.table.id,
                    "row": target.row,
                    "data set": target.dataset_name,
                    "runs by": way_of(target),
                    "runnable": reason is None,
                    "reason": reason or "",
                }
            )
    if json:
        print_json(records)
    elif records:
        _show_targets(records)
    else:
        note("Note: there is no specification with targets here: name one, or write one with 'paper extract'.")
    return ExitCode.SUCCESS


def _show_targets(records: list[dict[str, Any]]) -> None:
    """In a pipe one table; on a terminal one per specification, whose name and paper would fill its lines."""
    if not sys.stdout.isatty():
        print_rows(list(records[0]), [[_text(value) for value in record.values()] for record in records], keys=6)
        return
    names = ("table", "row", "data set", "kind", "runs by", "runnable", "reason")
    for file in dict.fromkeys(record["specification"] for record in records):
        mine = [record for record in records if record["specification"] == file]
        say(f"{file}: {mine[0]['paper']}")
        print_rows(names, [[_text(record[name]) for name in names] for record in mine], keys=3)


def _text(value: Any) -> str:
    return {True: "yes", False: "no", "": "-"}.get(value, str(value))


def _found() -> list[Path]:
    """Files that look like a specification: other YAML files are passed over without a word."""
    from boosters_eval.core.errors import BoostersEvalError
    from boosters_eval.programs.paper.reading import read_specification

    found = []
    for folder in (Path("examples/papers"), Path()):
        for path in sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")]):
            try:
                read_specification(path)
            except BoostersEvalError:
                continue
            found.append(path)
    return found


def register(paper: typer.Typer) -> None:
    """Add these commands to the group."""
    paper.command()(run)
    paper.command("list")(list_targets)
