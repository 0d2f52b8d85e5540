"""What the commands on earlier runs are asked for."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from boosters_eval.core.request import FLAG, Request, anything, parameter, path


class VerifyRequest(Request):
    """A run, or a decision on one, that is verified."""

    command: ClassVar = "verify"
    help: ClassVar = (
        "Verify a run's journal, or recompute a gate decision.\n\n"
        "A journal must be complete and unchanged; a decision must be reproduced byte for byte."
    )
    program: ClassVar = "boosters_eval.programs.runs.verify:verify"

    reference: str | Path = parameter(
        kind=anything("a run's id, the beginning of one, its name, 'last', or a path", str, Path, metavar="RUN"),
        argument=True,
        help="A run id, the beginning of one, its name, 'last', a run's folder, or the file of a gate decision.",
    )
    baseline: Path | None = parameter(None, kind=path(), help="The baseline that the decision quotes.")
    scores: Path | None = parameter(None, kind=path(), help="The scores file that the decision quotes.")
    quiet: bool = parameter(False, short="-q", kind=FLAG, door="options", help="Print nothing; only set the exit code.")
    home: Path | None = parameter(None, kind=path(), door="python", help="Where runs are kept.")
