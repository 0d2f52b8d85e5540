"""The report as one HTML file with embedded style, script and charts; it never requests anything.

The content security policy allows only the style sheet and the script with the given digests, so that even
unescaped text could not run.
"""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from boosters_eval.reports.html import sections
from boosters_eval.reports.html.figures import series_of
from boosters_eval.reports.html.tables import text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from boosters_eval.reports.document import ReportDocument


def render_page(document: ReportDocument) -> str:
    """The whole page."""
    series = series_of(document.tables, document.rankings)
    further = (*document.sections, *document.drill_down())
    over = document.rankings[0].over if document.rankings else "data sets"
    parts = [
        ("results", "Results", sections.results(document, series)),
        ("across", f"Across {over}", sections.across(document, series)),
        ("tests", "Statistical tests", sections.tests(document)),
        ("notes", "Notes", sections.notes(document)),
        *((section.anchor, section.short or section.title, sections.further(section)) for section in further),
        ("environment", "Environment", sections.environment(document.environment)),
        ("reproduce", "Reproduce", sections.reproduce(document)),
    ]
    return page(document.title, document.lead, sections.summary(document), parts)


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
    style = asset(__package__, "page.css") + asset(__package__, "charts.css") + style
    script = asset(__package__, "page.js") + script
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
        facts=facts,
        body=body,
        data="" if data is None else f'<script type="application/json" id="data">{_json(data)}</script>\n',
        script=script,
    )


def _json(data: object) -> str:
    """Compact JSON that cannot end the element that it stands in."""
    content = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    for char in "<>&\u2028\u2029":
        content = content.replace(char, f"\\u{ord(char):04x}")
    return content


def _policy(style: str, script: str) -> str:
    digests = [base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in (style, script)]
    return (
        f"default-src 'none'; style-src 'sha256-{digests[0]}'; script-src 'sha256-{digests[1]}'; "
        "base-uri 'none'; form-action 'none'"
    )


@cache
def asset(package: str, name: str) -> str:
    """A style sheet or a script in the folder `assets` of a package."""
    return resources.files(package).joinpath("assets", name).read_text(encoding="utf-8")


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header><div><div><h1>{title}</h1><p class="lead">{lead}</p></div>
<button id="theme" type="button" hidden></button></div></header>
<nav aria-label="Sections"><div>{links}</div></nav>
<main>
{facts}
{body}
</main>
<footer>Made by boosters-eval. This file is complete: it loads nothing from anywhere.</footer>
{data}<script>{script}</script>
</body>
</html>
"""
