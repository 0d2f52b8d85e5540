"""What pages that are still written by hand use; it goes with the last of them."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from boosters_eval.reports.document import Document, Section
from boosters_eval.reports.html.markup import grid, scroll, text
from boosters_eval.reports.html.page import _PAGE, _fact, _json, _policy, _render_section

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from boosters_eval.reports.document import Fact, Pairs


def plain(value: object) -> str:
    """A text cell."""
    return f"<td>{text(value)}</td>"


def facts(found: Sequence[Fact]) -> str:
    """The size of the evidence, at a glance."""
    return f'<dl class="facts">{"".join(map(_fact, found))}</dl>' if found else ""


def further(section: Section) -> str:
    """A section."""
    return _render_section(section, Document("old"))


def environment(pairs: Pairs) -> str:
    """The environment: the only table that differs between two renderings of the same results."""
    if not pairs:
        return ""
    rows = [[f'<th scope="row">{text(name)}</th>', plain(value)] for name, value in pairs]
    return f'<div class="card">{scroll(grid(["Property", "Value"], rows), "Environment")}</div>'


def page(
    title: str,
    lead: str,
    facts: str,
    parts: Iterable[tuple[str, str, str]],
    *,
    style: str = "",
    script: str = "",
    data: object = None,
) -> str:
    """A page of named sections, each finished HTML; an empty one is left out.

    A program may add a style sheet, a script and data for it, which the script finds as JSON in the element `data`.
    """
    style = asset("boosters_eval.reports.html", "page.css") + asset("boosters_eval.reports.html", "charts.css") + style
    script = asset("boosters_eval.reports.html", "page.js") + script
    shown = [(name, heading, body) for name, heading, body in parts if body]
    links = "".join(f'<a href="#{name}">{text(heading)}</a>' for name, heading, _ in shown)
    body = "".join(
        f'<section id="{name}" aria-labelledby="{name}-title"><h2 id="{name}-title">{text(heading)}</h2>'
        f"{inner}</section>"
        for name, heading, inner in shown
    )
    return _PAGE.format(
        policy=_policy(style, script),
        title=text(title),
        style=style,
        lead=text(lead),
        links=links,
        summary=facts,
        body=body,
        data="" if data is None else f'<script type="application/json" id="matrix">{_json(data)}</script>\n',
        script=script,
    )


@cache
def asset(package: str, name: str) -> str:
    """A style sheet or a script in the folder `assets` of a package."""
    return resources.files(package).joinpath("assets", name).read_text(encoding="utf-8")
