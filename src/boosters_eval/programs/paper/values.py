"""What the cells of a printed table say: values with their digits, deviations, units and notes."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal as Exact
from functools import lru_cache
from typing import TYPE_CHECKING

from boosters_eval.core.terms import given
from boosters_eval.programs.paper.documents.latex import MAX_TEXT, find_emphasis, strip_tex
from boosters_eval.programs.paper.specification import Quantity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from boosters_eval.programs.paper.request import Decimal, Parentheses

MAX_CELL = 300  # characters, without markup

NUMBER = r"[-+]?(?:[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?|\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,4})?"
_UNITS = """
    % ‰ pp s sec secs second seconds milliseconds microseconds nanoseconds ms µs us ns m min mins minute minutes h
    hr hrs hour hours d day days B KB MB GB TB KiB MiB GiB kB k K M G T x × bpc bpb bpd bits nats ppl PPL dB W kW
    Wh kWh J kJ Hz MHz GHz USD EUR $ € px ° °C FLOPs FLOPS MFLOPs GFLOPs TFLOPs GFLOPS TFLOPS fps FPS tokens
    tokens/s tokens/sec tok/s it/s img/s images/s samples/s rows/s MB/s GB/s ms/token s/epoch
"""
UNIT = "|".join(re.escape(unit) for unit in sorted(_UNITS.split(), key=len, reverse=True))
_DASHES = "- – — − -- --- n/a na n.a. nan none null tbd ? · ... … * /"
MISSING = frozenset({"", *_DASHES.split()})
_FAILED = ("oom", "oot", "dnf", "timeout", "time out", "out of memory", "out of time", "diverged", "failed", "div.")
_MARKS = "*†‡§¶#✓⋆★◇♠♣△▲▼"
_AT = re.compile(
    rf"(?P<space>\s+)|±\s*(?P<std>{NUMBER})(?![\d.,])"
    rf"|(?:[(\[]|[_^]\{{)\s*±\s*(?P<in_std>{NUMBER})\s*%?\s*[)\]}}]"
    rf"|[(\[]\s*(?:std|sd|s\.d\.|σ)\s*[=:]?\s*(?P<named_std>{NUMBER})\s*[)\]]"
    r"|\(\s*n\s*=\s*(?P<count>\d+)\s*\)"
    rf"|(?P<interval>[(\[]\s*{NUMBER}\s*(?:[,;–—]|--|\s-\s|to)\s*{NUMBER}\s*[)\]])"
    rf"|(?P<difference>[(\[]\s*(?:[↑↓▲▼]\s*[-+]?|[-+])\s*(?:{NUMBER})\s*(?:{UNIT})?\s*[↑↓]?\s*[)\]]"
    rf"|[↑↓▲▼]\s*{NUMBER}\s*%?)"
    rf"|(?P<share>\(\s*{NUMBER}\s*(?:{UNIT})\s*\))"
    rf"|[(\[]\s*(?P<unit_in>{UNIT})\s*[)\]]"
    r"|(?P<reference>\[\^?\d{1,3}\])"
    rf"|(?P<bracket>\(\s*(?P<bracketed>{NUMBER})\s*\)|_\{{\s*\(?\s*(?P<lowered>{NUMBER})\s*\)?\s*\}})"
    rf"|(?P<marks>(?:[{re.escape(_MARKS)}]|\^\{{[^{{}}\d]{{1,8}}\}}|[↑↓](?=\s|$))+)"
    r"|(?P<remark>\([A-Za-z][^()]{0,80}\))"
    rf"|(?P<unit>{UNIT})(?![A-Za-z])"
)  # fmt: skip
_TENS = re.compile(r"\s*[×·x*]\s*10\s*(?:\^\{\s*([-+]?\d+)\s*\}|\^([-+]?\d+))")
_REPEATED = re.compile(r"(?<![\d.])([-+]?(?:\d+\.\d+|\.\d+)(?:e[-+]?\d+)?%?)(?:\1)+(?![\d.])")
_REPEATED_BRACKET = re.compile(rf"\(({NUMBER})\)\1\(\1\)")
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
# Digits and letters of the mathematical alphabets, and of full width.
_VARIANT = re.compile("[\U0001d400-\U0001d7ff\uff01-\uff5e]+")
_SIGNS = {ord("−"): "-", ord("‐"): "-", ord("‑"): "-", ord("μ"): "µ", ord("∼"): "~", 0xFE0F: None}
_ANSWERS = {"decimals or thousands?": ("decimal", "comma"), "a deviation or a count?": ("parentheses", "std|count")}
_RAISED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺]+")


@dataclass(frozen=True, slots=True)
class CellReading:
    """What a cell says. `problem` is why it has no value, or what else in it could not be decided."""

    text: str
    value: Quantity | None = None
    std: Quantity | None = None
    unit: str = ""
    count: int | None = None
    emphasis: str = ""
    notes: tuple[str, ...] = ()
    problem: str = ""
    repeats: int = 1  # how often a conversion has written the number

    @property
    def missing(self) -> bool:
        return self.value is None and not self.problem

    @property
    def why(self) -> str:
        """The problem; where it is a question, with what answers it, in the caller's terms."""
        answer = next((given(*told) for question, told in _ANSWERS.items() if self.problem.endswith(question)), "")
        return f"{self.problem} ({answer})" if answer else self.problem


@lru_cache(maxsize=20_000)
def read_cell(
    raw: str, *, emphasis: str = "", parentheses: Parentheses | None = None, decimal: Decimal = "point"
) -> CellReading:
    """Read a cell. Parentheses after a value are a deviation or a count only if it is said which."""
    emphasis = (
        emphasis or find_emphasis(raw) or ("bold" if any("\U0001d7ce" <= char <= "\U0001d7d7" for char in raw) else "")
    )
    text = normalize(raw) if len(raw) <= MAX_TEXT else raw
    if len(text) > MAX_CELL:
        return CellReading(text[:40] + "…", problem=f"it is longer than {MAX_CELL} characters")
    if text.lower() in MISSING:
        return CellReading(text)
    if text.lower().strip("()") in _FAILED:
        return CellReading(text, notes=(text,))
    shown = text
    if decimal == "comma":
        text = text.translate(str.maketrans(",.", ".,"))
    text, repeats = _once(text)
    if duration := _read_duration(text):
        return CellReading(shown, *duration, emphasis=emphasis, notes=(f"printed as {shown}",))
    found = _Reader(text, parentheses)
    problem = found.read()
    if problem:
        return CellReading(shown, problem=problem)
    return CellReading(
        shown, found.value, found.std, found.unit, found.count, emphasis, tuple(found.notes), found.undecided, repeats
    )


@lru_cache(maxsize=20_000)
def looks_like_result(raw: str) -> bool:
    """Whether a cell begins with a number: enough to tell a row of results from a header."""
    text = normalize(raw)[:MAX_CELL]
    number = re.match(rf"[$€~≈<>]?\s*(?:{NUMBER})", text)
    word = re.match(rf"[\d.,+-]+\s*(?!(?:{UNIT})(?![A-Za-z]))[A-Za-z]{{3}}", text)
    return number is not None and word is None


_PARTS = [(unit, rf"(?:(?P<{unit}>\d+(?:\.\d+)?)\s*(?:{words}))?") for unit, words in (
    ("d", "d|days?"), ("h", "h|hrs?|hours?"), ("min", "m|mins?|minutes?"), ("s", "s|secs?|seconds?"))]  # fmt: skip
_DURATION = re.compile(r"[\s,]*".join(part for _, part in _PARTS))
_SECONDS = {"d": 86400, "h": 3600, "min": 60, "s": 1}


def _read_duration(text: str) -> tuple[Quantity | None, None, str] | None:
    """A time in several units, such as 3m 55s, in the smallest of them."""
    match = _DURATION.fullmatch(text)
    given = {unit: part for unit, part in (match.groupdict() if match else {}).items() if part is not None}
    if len(given) < 2:
        return None
    unit = list(given)[-1]
    total = sum(Exact(part) * _SECONDS[each] for each, part in given.items()) / _SECONDS[unit]
    return Quantity.read(f"{total:f}"), None, unit


def choose_decimal(texts: Iterable[str], said: Decimal = "point") -> tuple[Decimal, bool]:
    """The decimal sign of a column, and whether another column's would leave it in doubt: 20.000 beside 11.000.000."""
    numbers = [number for text in texts for number in re.findall(r"\d[\d.,]*\d", normalize(text)[:MAX_CELL])]
    points = any(re.fullmatch(r"\d{1,3}(?:\.\d{3}){2,}(?:,\d+)?|\d{1,3}(?:\.\d{3})+,\d+", each) for each in numbers)
    commas = any(re.fullmatch(r"\d{1,3}(?:,\d{3}){2,}(?:\.\d+)?|\d{1,3}(?:,\d{3})+\.\d+", each) for each in numbers)
    fractions = any(re.fullmatch(r"0,\d+|\d+,(?:\d{1,2}|\d{4,})", each) for each in numbers)
    pointed = any(re.fullmatch(r"0\.\d+|\d+\.(?:\d{1,2}|\d{4,})", each) for each in numbers)
    if (points or fractions) and not commas and not pointed:
        return "comma", True
    unclear = any(re.fullmatch(r"[1-9]\d{0,2}[.,]\d{3}", each) for each in numbers)
    return said, not unclear or commas or pointed


@lru_cache(maxsize=20_000)
def spell(raw: str) -> str:
    """A name in one spelling, without TeX."""
    return _respell(strip_tex(raw))


def _respell(text: str) -> str:
    """Without wide spaces and the mathematical alphabets, which only say how it is printed."""
    if not text.isascii():
        text = _VARIANT.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)
    return " ".join(text.split())


def normalize(raw: str) -> str:
    """A number in one spelling of its signs. Raised digits are never joined to what is before them."""
    text = strip_tex(raw)
    if not text.isascii():
        text = re.sub("(?<=\\d)[\u2009\u202f](?=\\d{3}(?!\\d))", ",", text)
        text = _RAISED.sub(lambda match: f"^{{{match[0].translate(_SUPERSCRIPTS)}}}", text).translate(_SIGNS)
    return re.sub(r"\+\s?/\s?-|\+-", "±", _respell(text))


def _once(text: str) -> tuple[str, int]:
    """The text as printed, where a conversion has written a formula several times: 0.4620.4620.462."""
    before, found, after = text.partition("plus-or-minus")
    if found:
        spoken = before.replace("±", "").replace(" ", "")
        if after.replace(" ", "") in {f"{spoken}{before}".replace(" ", ""), spoken}:
            return before.strip(), 3
    if "%percent" in text.replace(" ", ""):
        percent = re.fullmatch(rf"({NUMBER})%percent\1\1?%?", text.replace(" ", ""))
        if percent:
            return f"{percent[1]}%", 3
    text = _REPEATED_BRACKET.sub(r"(\1)", text)
    repeats = 1
    for match in _REPEATED.finditer(text):
        repeats = max(repeats, len(match[0]) // len(match[1]))
    return _REPEATED.sub(r"\1", text), repeats


def count_repeats(raw: str) -> int:
    return _once(normalize(raw))[1] if len(raw) <= MAX_TEXT else 1


_REMARKS = ("interval", "difference", "marks", "share", "reference", "remark")


class _Reader:
    """Reads the parts of a cell from left to right; the first must be the value."""

    def __init__(self, text: str, parentheses: Parentheses | None) -> None:
        self.text = text
        self.parentheses = parentheses
        self.value: Quantity | None = None
        self.std: Quantity | None = None
        self.unit = ""
        self.count: int | None = None
        self.notes: list[str] = []
        self.undecided = ""

    def read(self) -> str:
        """What is wrong with the cell, or nothing."""
        start = re.match(rf"([$€]?)\s*({NUMBER})", self.text)
        if start is None:
            bound = re.match(r"[<>≤≥~≈]", self.text)
            return "it is a bound, not a value" if bound else "it does not begin with a number"
        printed, position = start[2], start.end()
        tens = _TENS.match(self.text, position)
        if tens:
            printed, position = f"{printed}e{int(tens[1] or tens[2])}", tens.end()
        if re.match(r"[\d.,]", self.text[position:]):
            comma = re.match(r"[-+]?\d+,\d+(?![\d,.])", self.text)
            return "a comma: decimals or thousands?" if comma else "the digits are not one number"
        self.unit, self.value = start[1], Quantity.read(printed)
        if self.value is None:
            return "the number is too large"
        while position < len(self.text):
            match = _AT.match(self.text, position)
            if match is None:
                return f"'{self.text[position : position + 30]}' after the number is not known"
            if problem := self._read_part(match):
                return problem
            position = match.end()
        return ""

    def _read_part(self, match: re.Match[str]) -> str:
        deviation = match["std"] or match["in_std"] or match["named_std"]
        unit = match["unit"] or match["unit_in"]
        remark = next((match[name] for name in _REMARKS if match[name]), None)
        if match["share"] and not self.unit:
            self.undecided = f"'{match['share']}' after the number: a deviation or a count?"
        if deviation:
            return self._set_std(Quantity.read(deviation))
        if unit:
            if self.unit and self.unit != unit:
                return f"it has two units, '{self.unit}' and '{unit}'"
            self.unit = unit
        elif match["count"]:
            self.count = int(match["count"])
        elif match["bracket"]:
            return self._read_bracket(match["bracketed"] or match["lowered"], match["bracket"])
        elif remark:
            self.notes.append(remark.strip())
        return ""

    def _read_bracket(self, number: str, shown: str) -> str:
        """A number in parentheses. Signed, it is a difference, which is never looked at here."""
        if self.parentheses is None:
            self.undecided = f"'{shown}' after the number: a deviation or a count?"
            return ""
        if self.parentheses == "count":
            if not number.replace(",", "").isdecimal():
                return f"'{shown}' is not a whole number, as a count must be"
            self.count = int(number.replace(",", ""))
            return ""
        assert self.value is not None  # noqa: S101 (for the type checker)
        decimals = self.value.decimals
        if number.isdecimal() and decimals > 0:  # 3.41(69) counts in the last digits
            padded = number.rjust(decimals + 1, "0")
            number = f"{padded[:-decimals]}.{padded[-decimals:]}"
        return self._set_std(Quantity.read(number))

    def _set_std(self, std: Quantity | None) -> str:
        if self.std is not None or std is None or std.value < 0:
            return "it has two deviations" if self.std is not None else "its deviation is not a number"
        self.std = std
        return ""
