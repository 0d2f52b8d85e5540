"""The command `paper extract`: the tables of a document, shown or written as a specification to be completed."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from boosters_eval.cli.output import note, print_rows, say
from boosters_eval.core.errors import ConfigError, FileFormatError
from boosters_eval.core.files import check_writable, write_atomically

if TYPE_CHECKING:
    from boosters_eval.programs.paper.extract import BenchmarkTable, ExtractedPaper

_LISTED = 50  # of what was not read; the file has all of it


def extract(
    document: Annotated[Path, typer.Argument(metavar="DOC", help="A paper as Markdown, HTML or LaTeX.")],
    table: Annotated[
        list[str] | None,
        typer.Option("--table", "-t", help="Only this table, such as 'Table 4' or 4. May be repeated."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write a benchmarks.yaml to be completed.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file of --out.")] = False,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="[datasets|metrics|models]", help="What the columns are, where the program gets it wrong."
        ),
    ] = None,
    parentheses: Annotated[
        str | None,
        typer.Option(metavar="[std|count]", help="What a number in parentheses is, where the caption does not say it."),
    ] = None,
    decimal: Annotated[str, typer.Option(metavar="[point|comma]", help="The decimal sign of the document.")] = "point",
    metric: Annotated[str | None, typer.Option(help="The metric of tables that do not name theirs.")] = None,
    dataset: Annotated[str | None, typer.Option(help="The data set of tables that do not name theirs.")] = None,
    model: Annotated[str | None, typer.Option(help="The model of tables that do not name theirs.")] = None,
) -> None:
    """Extract the tables of results of a paper.

    Without --out, show what was found and what could not be read. What is doubtful is listed with its place and
    never guessed.
    """
    from boosters_eval.programs.paper.extract import CHOICES, ExtractionOptions, checked_choice, extract_benchmarks

    for option, given in (("--columns", columns), ("--parentheses", parentheses), ("--decimal", decimal)):
        checked_choice(option, given, CHOICES[option])
    for option, given in (("--metric", metric), ("--dataset", dataset), ("--model", model)):
        if given is not None and not given.strip():
            raise ConfigError(f"The '{option}' option must be a name. Got an empty text instead.")
    if out is not None and out.is_file() and not force:
        raise ConfigError(f"The '--out' option must name a new file, or be given with --force. {out} exists.")
    if out is not None:
        check_writable(out)
    options = ExtractionOptions.model_validate(
        {
            "tables": tuple(table or ()), "columns": columns, "parentheses": parentheses, "decimal": decimal,
            "metric": metric, "dataset": dataset, "model": model,
        }
    )  # fmt: skip
    found = extract_benchmarks(document, options)
    _show(found, with_values=bool(table) and out is None)
    if not found.tables:
        raise FileFormatError(f"{document} has no table of results that can be read.")
    if out is not None:
        from boosters_eval.programs.paper.writing import specification_text

        write_atomically(out, specification_text(found))
        note(f"Written: {out}")


def _show(found: "ExtractedPaper", *, with_values: bool) -> None:
    if found.tables:
        print_rows(
            ("table", "title", "line", "rows x columns", "read", "not read"),
            [
                (
                    each.table_id, each.title, str(each.line), f"{each.rows} x {len(each.columns)}", str(each.values),
                    str(len(each.unread)),
                )
                for each in found.tables
            ],
        )  # fmt: skip
    for each in found.tables:
        for line in each.layout if with_values else ():
            say(f"{each.table_id}: {line}")
        if with_values:
            _show_values(each)
    unread = [(None, each) for each in found.unread]
    unread += [(each.table_id, fault) for each in found.tables for fault in each.unread]  # type: ignore[misc]
    if unread:
        say("Not read:")
    for table, fault in unread[:_LISTED]:
        say(f"  {f'{table}, ' if table else ''}{fault}")
    if len(unread) > _LISTED:
        say(f"  and {len(unread) - _LISTED} more, which the file of --out lists")
    if found.without_values:
        names = ", ".join(found.without_values[:_LISTED])
        say(f"Without values: {names}{' ...' if len(found.without_values) > _LISTED else ''}")


def _show_values(table: "BenchmarkTable") -> None:
    rows = []
    for entry in table.entries:
        for name in entry.metrics:
            std = f" ± {entry.printed[f'{name}_std']}" if name in entry.std_values else ""
            unit = f" {entry.metric_units[name]}" if name in entry.metric_units else ""
            row = f"{entry.group} / {entry.model_name}" if entry.group else entry.model_name
            rows.append((row, entry.dataset, name, f"{entry.printed[name]}{std}{unit}", str(entry.line)))
    print_rows(("row", "data set", "metric", "value", "line"), rows, keys=3)
