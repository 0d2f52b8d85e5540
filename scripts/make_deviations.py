"""Write docs/deviations.md: where the program does something else than a specification says, from deviations.yaml."""

from pathlib import Path
from typing import Any

import yaml

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "deviations.md"
DATA = DOCS / "deviations.yaml"
COLUMNS = ("says", "here", "reason", "proof")
_PREFACE = """\
# Deviations

Where this program does something else than the specifications that it implements, why, and the test that shows it.
Made from `docs/deviations.yaml` by `scripts/make_deviations.py`; do not edit. What is only added is not listed.
"""


def load() -> list[dict[str, Any]]:
    """The specifications, each with its title and its deviations."""
    loaded: list[dict[str, Any]] = yaml.safe_load(DATA.read_text(encoding="utf-8"))
    return loaded


def page() -> str:
    """The whole page."""
    return "\n".join([_PREFACE, *map(_section, load())])


def _section(specification: dict[str, Any]) -> str:
    name, title = specification["specification"], specification["title"]
    rows = [
        _row([each["says"], each["here"], each["reason"], f"`{each['proof']}`"]) for each in specification["deviations"]
    ]
    return "\n".join(
        [f"## {name}: {title}\n", _row([name, "Here", "Reason", "Shown by"]), "|---|---|---|---|", *rows, ""]
    )


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
