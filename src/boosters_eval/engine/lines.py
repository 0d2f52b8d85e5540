"""The lines of a journal: their form and their chain, for whoever reads them with models or without."""

from __future__ import annotations

import re

from boosters_eval.core.files import compute_digest

START = "0" * 32  # what the first line follows
LINE = re.compile(
    rb'\{"prev":"([0-9a-f]{32})",(?:"of":"([\w.-]+)",)?(?:"with":"([0-9a-f]{16})",)?'
    rb'"(begin|common|result|failure|end)":(.*)\}\n',
    re.DOTALL,
)


def line_digest(line: bytes) -> str:
    """What the next line must contain."""
    return compute_digest(line, 32)
