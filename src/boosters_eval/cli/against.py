"""The option --against of compare and run: checked before the run, told after it."""

import sys
from typing import Any

from boosters_eval.cli.options import AgainstOptions, Execution, Presentation
from boosters_eval.cli.output import check_output, choose_format, note, say
from boosters_eval.cli.workflow import in_workflow, summarise
from boosters_eval.core.errors import ConfigError


def check_options(check: AgainstOptions, execution: Execution, presentation: Presentation) -> None:
    """Refuse before the run what could not be answered after it."""
    if check.verdict is not None and check.against is None:
        raise ConfigError("The '--verdict' option needs --against NAME: without it there is no verdict to write.")
    if check.against is not None and execution.continue_on_error:
        raise ConfigError("Use either --against or --continue-on-error, not both: a failed cell is never a pass.")
    if not presentation.dry_run:
        check_output(check.verdict)


def check_plan(name: str, prepared: Any) -> None:
    """Refuse a name that is no competitor, and a run that has no other."""
    from boosters_eval.programs.benchmark.against import check_competitor

    cells = [(cell.target, getattr(cell.spec, "variant", None)) for cell in prepared.plan.cells]
    running = {target if variant is None else f"{target} {variant}" for target, variant in cells}
    absent = {item.target for item in (*prepared.plan.excluded, *prepared.benchmarks.unavailable)}
    check_competitor(name, [*running, *absent])
    if not running - {name}:
        raise ConfigError(f"The '--against' option needs a second competitor. Got only '{name}' instead.")


def with_answer(document: Any, verdict: Any) -> Any:
    """The page with the verdict, if there is one, as its first sentence; the charts compare with the same one."""
    from boosters_eval.programs.benchmark.tables.against import headline

    if verdict is None:
        return document
    answer = f"{headline(verdict).rstrip(':.')}."
    return document.model_copy(update={"headline": (answer, *document.headline), "reference": verdict.against})


def as_markdown(verdict: Any) -> str:
    """The verdict above the tables; nothing without one."""
    from boosters_eval.programs.benchmark.tables.against import markdown

    return "" if verdict is None else f"{markdown(verdict)}\n"


def tell(verdict: Any, results: Any, check: AgainstOptions, presentation: Presentation) -> None:
    """Print the verdict, unless stdout has it already; write its file; tell GitHub."""
    from boosters_eval.core.files import write_atomically
    from boosters_eval.programs.benchmark.tables import against

    chosen = choose_format(presentation.format, presentation.output)
    data = presentation.output is None and chosen in ("json", "csv", "html")
    told = presentation.output is None and (chosen == "markdown" or (chosen is None and not sys.stdout.isatty()))
    for line in [] if told else against.lines(verdict):
        (note if data else say)(line)
    if check.verdict is not None:
        write_atomically(check.verdict, against.AgainstDocument.of(verdict, results.run_id).to_json())
    if in_workflow():
        stream = sys.stderr if data else sys.stdout
        stream.writelines(f"{line}\n" for line in against.workflow_commands(verdict))
        summarise(against.markdown(verdict))
