"""Charts outside the page, for notebooks and files: without a style sheet, every element has its own attributes."""

from __future__ import annotations

import math
import re
import textwrap
import zlib
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from boosters_eval.core.errors import ConfigError, require
from boosters_eval.core.files import write_atomically
from boosters_eval.reports.html.markup import text
from boosters_eval.reports.html.page import asset
from boosters_eval.reports.html.svg import WIDTH, Figure, label, px, short

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


_POINT = 0.75  # points per pixel
_KAPPA = 0.5523  # how far the handles of a quarter of a circle reach
_NUMBER = r"-?(?:\d+\.?\d*|\.\d+)"
_STEP = re.compile(rf"([A-Za-z])\s*((?:[\s,]*{_NUMBER})*)")
# The widths of Helvetica's letters from the space on, in thousandths of the font's size.
_WIDTHS = (
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278,
    556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556,
    1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778,
    667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556,
    333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556,
    556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
)  # fmt: skip
_SYMBOLS = {"←": 0xAC, "↑": 0xAD, "→": 0xAE, "↓": 0xAF, "≤": 0xA3, "≥": 0xB3, "δ": 0x64}
_WIDE = 1000  # of a symbol
_OTHER = 556  # of any other letter


def draw_pdf(svg: str) -> bytes:
    """The drawing as a file of one page of its size."""
    root = ET.fromstring(svg)  # noqa: S314 (our own drawing)
    _, _, width, height = (float(value) for value in root.get("viewBox", "0 0 1 1").split())
    states: dict[str, str] = {}  # of opacities, by their names
    drawn = [line for element in root for line in _drawn(element, {}, (width, height), states)]
    up = _matrix(_POINT, 0.0, 0.0, -_POINT, 0.0, height * _POINT)  # PDF counts from the bottom, in points
    return _file("\n".join([f"q {up}", *drawn, "Q"]), width * _POINT, height * _POINT, states)


def _drawn(
    element: ET.Element, around: Mapping[str, str], box: tuple[float, float], states: dict[str, str]
) -> Iterator[str]:
    """What an element looks like, as far as the elements around it do not say."""
    tag, looks = element.tag.rpartition("}")[2], {**around, **element.attrib}
    moved = "".join(
        _move(name, [float(value) for value in re.findall(_NUMBER, values)])
        for name, values in re.findall(r"(\w+)\(([^)]*)\)", element.get("transform", ""))
    )
    if tag == "g":
        yield f"q {moved}"
        for child in element:
            yield from _drawn(child, looks, box, states)
        yield "Q"
    elif tag == "text":
        yield f"q {moved}{_opacity(looks, states)}{_text(element, looks)} Q"
    elif (path := _path(tag, element.attrib, box)) and (paint := _paint(tag, looks)):
        yield f"q {moved}{_opacity(looks, states)}{paint[0]}{path} {paint[1]} Q"


def _matrix(*values: float) -> str:
    return f"{' '.join(map(_figure, values))} cm "


def _move(name: str, values: list[float]) -> str:
    if name == "translate":
        return _matrix(1.0, 0.0, 0.0, 1.0, values[0], values[1] if len(values) > 1 else 0.0)
    angle = math.radians(values[0])
    x, y = values[1:] if len(values) > 1 else (0.0, 0.0)
    cos, sin = math.cos(angle), math.sin(angle)
    return _matrix(cos, sin, -sin, cos, x - cos * x + sin * y, y - sin * x - cos * y)


def _path(tag: str, at: Mapping[str, str], box: tuple[float, float]) -> str:

    def value(name: str, whole: float = 0.0) -> float:
        found = at.get(name, "0")
        return whole * float(found[:-1]) / 100 if found.endswith("%") else float(found)

    if tag == "line":
        return f"{_at(value('x1'), value('y1'))} m {_at(value('x2'), value('y2'))} l"
    if tag == "rect":
        return f"{_at(value('x'), value('y'))} {_at(value('width', box[0]), value('height', box[1]))} re"
    if tag == "circle":
        return _circle(value("cx"), value("cy"), value("r"))
    if tag in ("polygon", "polyline"):
        numbers = [float(found) for found in re.findall(_NUMBER, at.get("points", ""))]
        points = [_at(x, y) for x, y in zip(numbers[::2], numbers[1::2], strict=True)]
        return f"{points[0]} m {' '.join(f'{point} l' for point in points[1:])}{' h' if tag == 'polygon' else ''}"
    return " ".join(_steps(at.get("d", ""))) if tag == "path" else ""


def _steps(path: str) -> Iterator[str]:
    """The steps of a path, as far as our charts have them: lines only."""
    x = y = 0.0
    for name, found in _STEP.findall(path):
        values = [float(value) for value in re.findall(_NUMBER, found)]
        relative = name.islower()
        step = {"H": 1, "V": 1}.get(name.upper(), 2)
        if name.upper() == "Z":
            yield "h"
        for start in range(0, len(values), step):
            part = values[start : start + step]
            here = (0.0, 0.0) if relative else (x, y)
            to = (here[0] if name in "Vv" else part[0], here[1] if name in "Hh" else part[-1])
            x, y = (x + to[0], y + to[1]) if relative else to
            yield f"{_at(x, y)} {'m' if name.upper() == 'M' and start == 0 else 'l'}"


def _circle(x: float, y: float, radius: float) -> str:
    reach = _KAPPA * radius
    turns = [(1, 0), (0, 1), (-1, 0), (0, -1), (1, 0)]
    parts = [f"{_at(x + radius, y)} m"]
    for (ax, ay), (bx, by) in pairwise(turns):
        first = _at(x + radius * ax + reach * bx, y + radius * ay + reach * by)
        second = _at(x + radius * bx + reach * ax, y + radius * by + reach * ay)
        parts.append(f"{first} {second} {_at(x + radius * bx, y + radius * by)} c")
    return " ".join(parts)


def _paint(tag: str, looks: Mapping[str, str]) -> tuple[str, str] | None:
    fill = _color(looks.get("fill", "#000")) if tag not in ("line", "polyline") else None
    stroke = _color(looks.get("stroke", "none"))
    parts = [f"{fill} rg "] if fill else []
    if stroke:
        caps = {"round": 1, "square": 2}.get(looks.get("stroke-linecap", ""), 0)
        dashes = looks.get("stroke-dasharray", "")
        parts.append(f"{stroke} RG {_figure(float(looks.get('stroke-width', '1')))} w {caps} J [{dashes}] 0 d ")
    how = {(True, True): "B", (True, False): "f", (False, True): "S"}.get((fill is not None, stroke is not None))
    return None if how is None else ("".join(parts), how)


def _opacity(looks: Mapping[str, str], states: dict[str, str]) -> str:
    share = float(looks.get("opacity", "1"))
    fill = share * float(looks.get("fill-opacity", "1"))
    if share == fill == 1:
        return ""
    state = f"<< /ca {_figure(fill)} /CA {_figure(share)} >>"
    return f"/{states.setdefault(state, f'G{len(states)}')} gs "


def _color(value: str) -> str | None:
    match = re.fullmatch(r"#([0-9a-fA-F]{3}|[0-9a-fA-F]{6})", value)
    if match is None:
        return None
    digits = match[1] if len(match[1]) == 6 else "".join(2 * digit for digit in match[1])
    return " ".join(_figure(int(digits[i : i + 2], 16) / 255) for i in (0, 2, 4))


def _text(element: ET.Element, looks: Mapping[str, str]) -> str:
    content = "".join(element.itertext())
    size = float(looks.get("font-size", "11").removesuffix("px"))
    font = "B" if looks.get("font-weight", "").isdigit() and int(looks["font-weight"]) >= 600 else "R"
    runs = list(_runs(content))
    width = sum(_width(run, symbols=symbols) for run, symbols in runs) * size / 1000
    x = float(element.get("x", "0")) - width * {"middle": 0.5, "end": 1.0}.get(looks.get("text-anchor", ""), 0.0)
    ink = _color(looks.get("fill", "#000")) or "0 0 0"
    parts = [f"{ink} rg BT 1 0 0 -1 {_at(x, float(element.get('y', '0')))} Tm"]
    for run, symbols in runs:
        parts.append(f"/{'S' if symbols else font} {_figure(size)} Tf <{_encoded(run, symbols=symbols).hex()}> Tj")
    return " ".join([*parts, "ET"])


def _runs(content: str) -> Iterator[tuple[str, bool]]:
    for part in re.split(f"([{''.join(_SYMBOLS)}]+)", content):
        if part:
            yield part, part[0] in _SYMBOLS


def _encoded(run: str, *, symbols: bool) -> bytes:
    return bytes(_SYMBOLS[char] for char in run) if symbols else run.encode("cp1252", errors="replace")


def _width(run: str, *, symbols: bool) -> float:
    if symbols:
        return _WIDE * len(run)
    return sum(_WIDTHS[ord(char) - 32] if 32 <= ord(char) < 32 + len(_WIDTHS) else _OTHER for char in run)


def _at(x: float, y: float) -> str:
    return f"{_figure(x)} {_figure(y)}"


def _figure(value: float) -> str:
    text = f"{value:.4f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _file(drawn: str, width: float, height: float, states: Mapping[str, str]) -> bytes:
    fonts = {"R": "Helvetica", "B": "Helvetica-Bold", "S": "Symbol"}
    encoding = " /Encoding /WinAnsiEncoding"
    listed = " ".join(
        f"/{name} << /Type /Font /Subtype /Type1 /BaseFont /{font}{'' if name == 'S' else encoding} >>"
        for name, font in fonts.items()
    )
    opacities = " ".join(f"/{name} {state}" for state, name in states.items())
    content = zlib.compress(drawn.encode("ascii"), 9)
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {_at(width, height)}] /Contents 4 0 R"
        f" /Resources << /Font << {listed} >> /ExtGState << {opacities} >> >> >>".encode("ascii"),
        f"<< /Length {len(content)} /Filter /FlateDecode >>\nstream\n".encode("ascii") + content + b"\nendstream",
    ]
    return b"".join(_numbered(objects))


def _numbered(objects: Iterable[bytes]) -> Iterator[bytes]:
    """The objects, and the table that says where each begins."""
    begin, starts = b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n", []
    place = len(begin)
    yield begin
    for number, content in enumerate(objects, 1):
        starts.append(place)
        part = b"%d 0 obj\n%b\nendobj\n" % (number, content)
        place += len(part)
        yield part
    count = len(starts) + 1
    yield b"xref\n0 %d\n0000000000 65535 f \n" % count + b"".join(b"%010d 00000 n \n" % start for start in starts)
    yield b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (count, place)


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
    sheet = re.sub(r"/\*.*?\*/", "", asset("charts.css"), flags=re.DOTALL)
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
    root = asset("page.css").partition("}")[0]
    return dict(re.findall(r"--([\w-]+): ([^;]+);", root))
