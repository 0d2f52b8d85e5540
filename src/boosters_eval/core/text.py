"""Text for people and machines: what came from outside made harmless, and counts and lists in words."""

from __future__ import annotations

import json
import os
import re
import unicodedata
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_MESSAGE = 4_000  # characters; sentences of our own are shorter
_REPLACEMENT = "\ufffd"
# Controls (escape sequences, C1), formats (bidi overrides, zero-width signs), lone surrogates, line separators.
_HARMFUL = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_NONCHARACTERS = "\ufffe\uffff"  # which XML does not allow
_UNUSUAL = re.compile(r"[^\n\x20-\x7e]")
_COLOR = re.compile(r"(\x1b\[[\d;]*m)")
_LONE_RETURN = re.compile(r"\r(?!\n)")  # it lets what follows overwrite the line
_FORMULA = ("=", "+", "-", "@")
_USUAL_WIDTH = 80  # of a terminal that does not tell
_NUMBER = re.compile(r"[+-]?\d[\d.]*(e[+-]?\d+)?( ± \d[\d.]*(e[+-]?\d+)?)?")


def clean(text: str) -> str:
    """One line without anything that a terminal would obey, or that hides what is written."""
    if text.isprintable():
        return text
    return _replace_harmful(text)


def clean_lines(text: str) -> str:
    """The same for text of several lines; a tab becomes spaces."""
    if text.isprintable():
        return text
    return "\n".join(clean(line.replace("\t", "    ")) for line in text.splitlines())


def clean_output(text: str, *, styled: bool = False) -> str:
    """Text as it leaves the program, whoever made it: line ends and tabs stay, and colors where they are `styled`."""
    if text.isprintable():
        return text
    if styled and "\x1b" in text:
        parts = _COLOR.split(text)
        return "".join(part if place % 2 else clean_output(part) for place, part in enumerate(parts))
    return _LONE_RETURN.sub(_REPLACEMENT, _replace_harmful(text, keep="\n\t\r"))


def _replace_harmful(text: str, keep: str = "") -> str:
    harmful = {ord(char): _REPLACEMENT for char in set(text).difference(keep) if _is_harmful(char)}
    return text.translate(harmful) if harmful else text


def clean_message(text: str) -> str:
    """Clean text of one line for an error or a note; the middle of a very long one is left out."""
    line = clean(" ".join(text.splitlines()))
    if len(line) <= MAX_MESSAGE:
        return line
    half = MAX_MESSAGE // 2
    return f"{line[:half]} [...] {line[-half:]}"


def group_digits(value: float) -> str:
    """Write a whole number in groups of three digits: 12,400."""
    return f"{round(value):,}"


def format_share(share: float, decimals: int | None = None) -> str:
    """Write a share in percent: 12.5 %. Without decimals, as many as it takes."""
    return f"{100 * share:.{decimals}f} %" if decimals is not None else f"{100 * share:.4g} %"


def count_of(number: int, noun: str) -> str:
    """Write a number with its noun: "1 cell", "2 cells"."""
    return f"{group_digits(number)} {noun}{'' if number == 1 else 's'}"


def join_words(words: Iterable[str], conjunction: str = "and", *, most: int | None = None) -> str:
    """Join words for a sentence: "a, b and c". Of more than `most`, only those are named: "a, b and 7 others"."""
    names = list(words)
    if most is not None and len(names) > most + 1:
        names = [*names[:most], f"{len(names) - most} others"]
    return f" {conjunction} ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def format_size(count: int) -> str:
    """A number of bytes in the largest unit that it reaches."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} B"


def parse_size(text: str, least: int = 0) -> int:
    """A number of bytes, such as 512MB or 4GB; a ValueError if it is none, or too small."""
    match = re.fullmatch(r"(\d{1,6}(?:\.\d{1,3})?) ?([MGT])B", text.upper())
    size = int(float(match[1]) * {"M": 1e6, "G": 1e9, "T": 1e12}[match[2]]) if match else -1
    if size < least:
        raise ValueError
    return size


def add_article(noun: str) -> str:
    """A noun with its article: "a parity run", "an importances run"."""
    return f"{'an' if noun[:1] in 'aeiou' else 'a'} {noun}"


def lower_initial(label: str) -> str:
    """A label as it stands inside a sentence: "Log loss" becomes "log loss", but "RMSE" and "Brier", a name, stay."""
    kept = label.isupper() or not label[:2].istitle() or label.startswith("Brier")
    return label if kept else label[0].lower() + label[1:]


def make_encodable(text: str) -> str:
    """Text that can be encoded: a lone surrogate, from a file name say, cannot."""
    return text.encode(errors="replace").decode()


def hide_home(text: str) -> str:
    """Text in which the user's home is written as "~", for what is recorded and may be passed on."""
    home = os.path.expanduser("~").rstrip("/")  # noqa: PTH111 (it never fails)
    return re.sub(rf"(?<![\w.~-]){re.escape(home)}(?![\w.-])", "~", text) if home.startswith("/") else text


def shorten_paths(word: str) -> str:
    """A word of a command line whose paths do not lead through the user's home.

    They are relative to the current folder, and names alone where that would lead through the home as well.
    """
    here = os.getcwd()  # noqa: PTH109 (compared as text)

    def show(found: re.Match[str]) -> str:
        path = found[0]
        inside = path == here or path.startswith(f"{here}/")
        if not inside and hide_home(path) == path:
            return path
        return os.path.relpath(path, here) if inside or hide_home(here) != here else os.path.basename(path)  # noqa: PTH119

    return re.sub(r"(?<![\w.~/-])/[^:=@,;'\"]+", show, word)


def clean_csv_cell(value: Any) -> Any:
    """A cell of a CSV file. A spreadsheet would take text that begins like a formula for one; numbers stay numbers."""
    if not isinstance(value, str):
        return value
    text = clean_lines(value)
    return f"'{text}" if text.lstrip().startswith(_FORMULA) and not _NUMBER.fullmatch(text) else text


def dump_json(value: Any) -> str:
    """Plain data as a program reads it; what a terminal would obey is escaped."""
    return json.dumps(value, indent=2) + "\n"


def escape_json(text: str) -> str:
    """JSON with the same content, in which whatever a terminal would obey is escaped."""
    harmful: dict[int, str] = {}
    for char in set(_UNUSUAL.findall(text)):  # few of millions
        if _is_harmful(char):
            units = char.encode("utf-16-be", errors="surrogatepass").hex()
            harmful[ord(char)] = "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
    return text.translate(harmful) if harmful else text


def _is_harmful(char: str) -> bool:
    return unicodedata.category(char) in _HARMFUL or char in _NONCHARACTERS


def terminal_width(stream: TextIO) -> int:
    """As wide as told by the environment or by the terminal itself.

    Rich takes any dumb terminal for 80 columns wide, and shutil would ask a stream that is detached by now.
    """
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return int(given)
    try:
        return os.get_terminal_size(stream.fileno()).columns or _USUAL_WIDTH
    except (OSError, ValueError):
        return _USUAL_WIDTH
