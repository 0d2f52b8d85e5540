"""Charts outside the page, for notebooks and files: without a style sheet, every element has its own attributes."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from boosters_eval.core.errors import ConfigError, require
from boosters_eval.core.files import write_atomically
from boosters_eval.reports.html.figures import WIDTH
from boosters_eval.reports.html.page import asset
from boosters_eval.reports.html.svg import label, px, short
from boosters_eval.reports.html.tables import text
from boosters_eval.reports.pdf import draw_pdf

if TYPE_CHECKING:
    from boosters_eval.reports.html.figures import Figure

_GAP = 24  # between charts
_TITLE, _LINE = 26, 14  # the heights of a title and of a line of a caption
_LINE_LENGTH = 60  # characters
_FONT = "system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', Arial, sans-serif"
# No wider than the window, but on a narrow one the letters must stay large enough to be read.
_FITTED = (
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    "<style>svg { max-width: 100%; min-width: 600px; height: auto }</style>"
)
_ELEMENT = re.compile(r'<(text|line|path|rect|circle|polygon)( class="([^"]*)")?')


@dataclass(frozen=True)
class Plot:
    """Charts that a notebook shows by themselves, and that `save` writes to a file."""

    figures: tuple[Figure, ...]

    def __repr__(self) -> str:
        """For prompts, which cannot show a drawing: what there is, and how to see it."""
        names = ", ".join(figure.name for figure in self.figures)
        return f"Plot({names}): a notebook shows it, save('plot.svg'), save('plot.pdf') or save('plot.html') writes it"

    def _repr_svg_(self) -> str:
        """All charts in one drawing, in two columns if there are several."""
        columns = min(len(self.figures), 2)
        drawn = [_whole(figure) for figure in self.figures]
        parts, y = [], 0.0
        for start in range(0, len(drawn), columns):
            row = drawn[start : start + columns]
            for column, (content, _) in enumerate(row):
                parts.append(f'<g transform="translate({column * (WIDTH + _GAP) + _GAP / 2:g} {px(y)})">{content}</g>')
            y += max(height for _, height in row) + _GAP
        width = columns * (WIDTH + _GAP)
        said = " ".join(figure.description for figure in self.figures)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {px(y)}" width="{width * 1.5:g}" '
            f'height="{px(y * 1.5)}" font-family="{_FONT}" role="img" aria-label="{text(said)}">'
            f'<rect width="100%" height="100%" fill="{_palette()["card"]}"/>{"".join(parts)}</svg>'
        )

    def _repr_html_(self) -> str:
        return f'<div style="max-width:100%;overflow-x:auto">{self._repr_svg_()}</div>'

    def save(self, path: str | Path) -> Path:
        """Write the charts to an .svg or .pdf file, or to an .html file that any browser opens."""
        require("path", path, (str, Path), "a path")
        path = Path(path)
        if path.suffix.lower() not in (".svg", ".pdf", ".html"):
            raise ConfigError(
                f"The 'path' parameter of save must end in .svg, .pdf or .html. Got {str(path)!r} instead."
            )
        write_atomically(path, self.drawn(path.suffix.lower().removeprefix(".")))
        return path

    def drawn(self, form: str) -> bytes:
        """The content of an svg, pdf or html file."""
        drawing = self._repr_svg_() + "\n"
        if form == "pdf":
            return draw_pdf(drawing)
        if form == "html":
            title = text(", ".join(dict.fromkeys(figure.title for figure in self.figures)))
            head = f'<meta charset="utf-8">{_FITTED}<title>{title}</title>'
            drawing = f'<!doctype html>\n<html lang="en">{head}\n{drawing}</html>\n'
        return drawing.encode()


def _whole(figure: Figure) -> tuple[str, float]:
    """A chart with its title above and its caption below, and its height."""
    lines = textwrap.wrap(figure.caption, _LINE_LENGTH)
    parts = [label(4, 16, short(figure.title, 56), "heading")]
    parts.append(f'<g transform="translate(0 {_TITLE})">{"".join(figure.parts)}</g>')
    y = _TITLE + figure.height
    parts += [label(4, y + _LINE * (index + 1), content, "tick") for index, content in enumerate(lines)]
    return _ELEMENT.sub(_with_attributes, "".join(parts)), y + _LINE * len(lines) + 6


def _with_attributes(found: re.Match[str]) -> str:
    """An element with the attributes that the style sheet gives it."""
    tag, _, names = found.groups()
    classes = set((names or "").split())
    looks: dict[str, str] = {}
    for selector, declared in _rules():
        wanted_tag, *wanted = selector.split(".")
        if wanted_tag in ("", tag) and classes.issuperset(wanted):
            looks |= declared
    color = looks.pop("color", "")
    shown = (f'{name}="{value.replace("currentColor", color)}"' for name, value in looks.items())
    return f"<{tag} {' '.join(shown)}"


@cache
def _rules() -> tuple[tuple[str, dict[str, str]], ...]:
    """The selectors of the charts' style sheet (a tag, classes, or both) and what they declare, in its order."""
    sheet = re.sub(r"/\*.*?\*/", "", asset(__package__, "charts.css"), flags=re.DOTALL)
    out = []
    for selectors, body in re.findall(r"([^{}]+)\{([^}]*)\}", sheet):
        pairs = (item.split(":", 1) for item in body.split(";") if ":" in item)
        declared = {name.strip(): _resolved(value.strip()) for name, value in pairs}
        out += [(selector.strip().removeprefix("svg "), declared) for selector in selectors.split(",")]
    return tuple(out)


def _resolved(value: str) -> str:
    return re.sub(r"var\(--([\w-]+)\)", lambda found: _palette()[found[1]], value)


@cache
def _palette() -> dict[str, str]:
    """The light colors of the page."""
    root = asset(__package__, "page.css").partition("}")[0]
    return dict(re.findall(r"--([\w-]+): ([^;]+);", root))
