"""The lines of a journal: their form and their chain, for whoever reads them with models or without."""

from __future__ import annotations

import hashlib
import re

SCHEMA_VERSION = 4  # results of version 2 have neither trivial rules nor splits other than random ones
NO_MACHINES = 3  # what a journal says whose outcomes name no machine, so that older programs read it
START = "0" * 32  # what the first line follows
LINE = re.compile(
    rb'\{"prev":"([0-9a-f]{32})",(?:"of":"([\w.-]+)",)?(?:"with":"([0-9a-f]{16})",)?'
    rb'"(begin|common|result|failure|error|end)":(.*)\}\n',
    re.DOTALL,
)


def line_digest(line: bytes) -> str:
    """What the next line must contain."""
    return hashlib.sha256(line).hexdigest()[:32]
