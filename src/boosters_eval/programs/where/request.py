"""What `where` is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from boosters_eval.core.request import OUTPUT, InHome, OutputOptions, Request, anything, parameter, quiet_option, text
from boosters_eval.engine.settings import RUN_REFERENCE
from boosters_eval.programs.benchmark.request import libraries_parameter

if TYPE_CHECKING:
    from boosters_eval.metrics import Metric


class WhereRequest(OutputOptions, InHome, Request):
    command: ClassVar = "where"
    help: ClassVar = """\
Find the rows on which one library loses to another, from the predictions that a run has kept.

Parts of the data, by one or two columns, are found on one half of the rows and tested on the other half."""
    program: ClassVar = "boosters_eval.programs.where.judge:find_where"

    run: str = parameter(
        "last",
        kind=RUN_REFERENCE,
        argument=True,
        help="A run id, the beginning of one, a name given with --name, or 'last', which is the default.",
    )
    libraries: Any = libraries_parameter(
        "Who loses, and to whom, by their names in the run. Default: the second best, and the best."
    )
    dataset: str | None = parameter(
        None,
        short="-d",
        kind=text("a data set of the run", "NAME"),
        help="A data set of the run. Default: that on which the first library loses most.",
    )
    metric: str | Metric | None = parameter(
        None,
        short="-m",
        kind=anything("a metric", metavar="NAME"),
        help="The metric whose errors are looked at. Default: that of the run.",
    )
    quiet: bool = quiet_option("Print only the answer.")
    verbose: bool = parameter(False, short="-v", panel=OUTPUT, door="options", help="Print every note.")
