"""What `paper extract|run|list|compare|report|validate` are asked for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from boosters_eval.core.request import (
    RUN,
    Accepted,
    Declared,
    OutputOptions,
    Request,
    anything,
    choice,
    count,
    format_option,
    parameter,
    path,
    quiet_option,
    read_limit_option,
    text,
)
from boosters_eval.engine.settings import RunSettings
from boosters_eval.programs.benchmark.request import Keeping, seeds_parameter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boosters_eval.programs.paper.comparison import PaperComparison, PaperResults

Role = Literal["datasets", "metrics", "models"]  # what the rows or columns of a table hold
Parentheses = Literal["std", "count"]
Decimal = Literal["point", "comma"]
FORMATS = ("yaml", "json", "markdown", "html", "latex")
_VERDICT = (
    "Exit 0 if every primary target is within tolerance, 1 if one is not, 2 if something could not run, 3 for a bad"
    " file."
)


def _name(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError
    return value


def _stored(words: str, kind: str) -> Accepted:
    """A file of this kind, or what it is read as."""

    def of(value: Any) -> Any:
        if isinstance(value, (str, Path)):
            return Path(value)
        if getattr(value, "kind", None) != f"boosters-eval paper {kind}":
            raise ValueError
        return value

    return Accepted(words, of, Path, "FILE")


_NAME = Accepted("a name", _name, _name, "NAME")
_SPEC = path("a specification", "FILE")


class ExtractPaperRequest(Request):
    command: ClassVar = "paper extract"
    help: ClassVar = """Extract the tables of results of a paper.

    Without --out, show what was found and what could not be read. What is doubtful is listed with its place and
    never guessed.
    """
    program: ClassVar = "boosters_eval.programs.paper.extract:extract"

    document: Path = parameter(
        kind=path("a document", "DOC"),
        argument=True,
        help="A paper as Markdown, HTML, LaTeX or RST, or an archive with its files.",
    )
    tables: Sequence[str] = parameter(
        (),
        option="--table",
        short="-t",
        kind=text("names of tables", "TABLE"),
        spread=False,
        help="Only this table, such as 'Table 4' or 4. May be repeated.",
    )
    out: Path | None = parameter(
        None, short="-o", kind=path(), written=True, help="Write a benchmarks.yaml to be completed."
    )
    force: bool = parameter(False, help="Overwrite the file of --out.")
    columns: Role | None = parameter(
        None, kind=choice(*get_args(Role)), help="What the columns are, where the program gets it wrong."
    )
    parentheses: Parentheses | None = parameter(
        None,
        kind=choice(*get_args(Parentheses)),
        help="What a number in parentheses is, where the caption does not say it.",
    )
    decimal: Decimal = parameter("point", kind=choice(*get_args(Decimal)), help="The decimal sign of the document.")
    metric: str | None = parameter(None, kind=_NAME, help="The metric of tables that do not name theirs.")
    dataset: str | None = parameter(None, kind=_NAME, help="The data set of tables that do not name theirs.")
    model: str | None = parameter(None, kind=_NAME, help="The model of tables that do not name theirs.")
    read_limit: int | None = read_limit_option()


class _OurModel(Declared):
    """What the user runs besides what the specification names."""

    model: str | Path | None = parameter(
        None,
        kind=anything("a file, or the name of a language model", str, Path, metavar="MODEL"),
        help="Our model: a file, or the name of a language model. May be anywhere.",
    )
    allow_pickle: bool = parameter(False, panel=RUN, help="Open pickled models, which can run any code.")


class ListPaperRequest(_OurModel, Request):
    command: ClassVar = "paper list"
    help: ClassVar = "List specifications and their targets: what can run here, and why not."
    program: ClassVar = "boosters_eval.programs.paper.targets:list_targets"
    formats: ClassVar = ("json",)

    files: Sequence[Path] = parameter(
        (),
        kind=path("specifications", "SPEC..."),
        argument=True,
        help="Specifications. Default: those in examples/papers and in the current folder.",
    )
    json: bool = parameter(False, door="options", help="Print JSON.")


class ReproductionRequest(RunSettings, Keeping, _OurModel, Request):
    spec: Path = parameter(kind=_SPEC, help="The specification (benchmarks.yaml).")
    quiet: bool = quiet_option()
    only: Sequence[str] = parameter(
        (),
        kind=text("targets, each as TABLE, TABLE:ROW or TABLE:ROW:DATASET", "TABLE:ROW:DATASET"),
        separator=None,
        help="Only these targets; ROW and DATASET may be left out. Default: all.",
    )
    output: Path = parameter(
        Path("results"), short="-o", kind=path("a folder", "DIR"), door="options", help="Folder for the results."
    )
    seeds: int | None = seeds_parameter("Repeats. Default: the specification's.")
    threads: int | None = parameter(
        None,
        kind=count(1, other=(-1,)),
        panel=RUN,
        help="Threads per cell; -1 for all cores. Default: the specification's, or 1.",
    )
    read_limit: int | None = read_limit_option()


class RunPaperRequest(ReproductionRequest):
    command: ClassVar = "paper run"
    help: ClassVar = """Run the reproduction targets of a specification.

    Functions and programs that the specification names are executed: run only what you trust.
    """
    program: ClassVar = "boosters_eval.programs.paper.run:run"


class ValidatePaperRequest(ReproductionRequest):
    command: ClassVar = "paper validate"
    help: ClassVar = f"""Run the reproduction targets, compare them with the paper, and write the reports.

    Functions and programs that the specification names are executed: run only what you trust.
    {_VERDICT}
    """
    program: ClassVar = "boosters_eval.programs.paper.run:validate"


class ComparePaperRequest(OutputOptions, Request):
    command: ClassVar = "paper compare"
    help: ClassVar = f"""Compare results with the values of a paper.

    {_VERDICT}
    """
    program: ClassVar = "boosters_eval.programs.paper.judge:compare"
    formats: ClassVar = FORMATS

    results: Path | PaperResults = parameter(
        kind=_stored("a file of results, or what run_paper() gives", "results"),
        help="The results that 'paper run' wrote, or a CSV or JSON file of one's own.",
    )
    paper: Path = parameter(kind=_SPEC, help="The paper's specification (benchmarks.yaml).")
    quiet: bool = quiet_option()


class InitResultsRequest(Request):
    command: ClassVar = "paper results init"
    help: ClassVar = """Write a CSV file to be filled in with one's own results.

    It has a row for each value of the targets, or of all tables if the specification names none.
    """
    program: ClassVar = "boosters_eval.programs.paper.own:init_results"

    spec: Path = parameter(kind=_SPEC, argument=True, help="The specification (benchmarks.yaml).")
    out: Path = parameter(
        Path("results.csv"), short="-o", kind=path(), written=True, help="The file to write. Default: results.csv."
    )
    wide: bool = parameter(False, help="A column for each metric instead of a row.")
    seeds: int | None = seeds_parameter("Rows for each value, one per seed. Default: 1.")
    force: bool = parameter(False, help="Overwrite the file of --out.")


class ReportPaperRequest(OutputOptions, Request):
    command: ClassVar = "paper report"
    help: ClassVar = """Write the report of a comparison.

    The same comparison always gives the same bytes. Exit 0 if the report was written, whatever its verdict.
    """
    program: ClassVar = "boosters_eval.programs.paper.judge:report"
    formats: ClassVar = FORMATS

    comparison: Path | PaperComparison = parameter(
        kind=_stored("a file of a comparison, or what compare_paper() gives", "comparison"),
        help="The comparison that 'paper compare' wrote.",
    )
    format: str | None = format_option("both")
    quiet: bool = quiet_option()
