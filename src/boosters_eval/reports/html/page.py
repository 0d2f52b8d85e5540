"""The report as one HTML file with embedded style, script and charts; it never requests anything.

The content security policy allows only the style sheet and the script with the given digests, so that even
unescaped text could not run.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from boosters_eval.reports.html import sections
from boosters_eval.reports.html.charts import series_of
from boosters_eval.reports.html.tables import text

if TYPE_CHECKING:
    from boosters_eval.reports.document import ReportDocument


def render_page(document: ReportDocument) -> str:
    """The whole page."""
    style, script = _asset("page.css"), _asset("page.js")
    series = series_of(document)
    over = document.rankings[0].over if document.rankings else "data sets"
    parts = [
        ("results", "Results", sections.results(document, series)),
        ("across", f"Across {over}", sections.across(document, series)),
        ("tests", "Statistical tests", sections.tests(document)),
        ("notes", "Notes", sections.notes(document)),
        *((section.anchor, section.short or section.title, sections.further(section)) for section in document.sections),
        ("environment", "Environment", sections.environment(document)),
        ("reproduce", "Reproduce", sections.reproduce(document)),
    ]
    shown = [(name, title, body) for name, title, body in parts if body]
    links = "".join(f'<a href="#{name}">{text(title)}</a>' for name, title, _ in shown)
    body = "".join(
        f'<section id="{name}" aria-labelledby="{name}-title"><h2 id="{name}-title">{text(title)}</h2>{inner}</section>'
        for name, title, inner in shown
    )
    return _PAGE.format(
        policy=_policy(style, script),
        title=text(document.title),
        style=style,
        lead=text(document.lead),
        links=links,
        facts=sections.facts(document),
        body=body,
        script=script,
    )


def _policy(style: str, script: str) -> str:
    digests = [base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in (style, script)]
    return (
        f"default-src 'none'; style-src 'sha256-{digests[0]}'; script-src 'sha256-{digests[1]}'; "
        "base-uri 'none'; form-action 'none'"
    )


@cache
def _asset(name: str) -> str:
    return resources.files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


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
<script>{script}</script>
</body>
</html>
"""
