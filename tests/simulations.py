"""The table of simulated rates: what was promised, what was measured, with how many repetitions."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Self

PAGE = Path(__file__).parents[1] / "docs" / "statistics.md"
BEGIN, END = "<!-- simulations: written by make simulations -->", "<!-- end of simulations -->"


@dataclass(frozen=True, order=True)
class Rate:
    """How often something happened in a simulation, and how often it was allowed to."""

    section: str
    claim: str  # what was counted, and under which conditions
    count: int
    n: int
    promised: str

    @property
    def value(self) -> float:
        return self.count / self.n

    @property
    def error(self) -> float:
        """The standard error; of a rate of 0 or 1, that of half a case."""
        inside = min(max(self.value, 0.5 / self.n), 1 - 0.5 / self.n)
        return math.sqrt(inside * (1 - inside) / self.n)

    @property
    def row(self) -> str:
        return f"| {self.claim} | {self.value:.1%} | {self.error:.1%} | {self.n} | {self.promised} |"

    @classmethod
    def of(cls, raw: tuple[str, str, int, int, str]) -> Self:
        return cls(*raw)


def table(rates: list[Rate]) -> str:
    """All rates as Markdown, one table per section, in the order of their claims: 3 splits before 10."""
    lines: list[str] = []
    for section in dict.fromkeys(rate.section for rate in rates):
        lines += [f"### {section}", "", "| Simulated | Rate | Standard error | n | Promised |", "|---|---|---|---|---|"]
        lines += [rate.row for rate in sorted(rates, key=_natural) if rate.section == section] + [""]
    return "\n".join(lines)


def _natural(rate: Rate) -> list[tuple[bool, float, str]]:
    """Numbers by their value, words by the alphabet."""
    parts = re.split(r"(\d+(?:\.\d+)?)", rate.claim)
    return [(True, float(part), "") if index % 2 else (False, 0.0, part) for index, part in enumerate(parts)]


def written_to_page(text: str, page: str) -> str:
    """The page with its table replaced."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n\n{text}\n{END}{rest.split(END)[1]}"
