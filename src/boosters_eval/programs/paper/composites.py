"""Cells that hold several values, taken apart by their header, or by the names and units that they print."""

from __future__ import annotations

import re
from functools import lru_cache

from boosters_eval.programs.paper import labels, values
from boosters_eval.programs.paper.documents.latex import MAX_TEXT


@lru_cache(maxsize=20_000)
def split_cell(raw: str, names: int = 1) -> tuple[tuple[str, str], ...]:
    """The values of a cell, each with the name that is printed before it: `RMSE 0.505`, `98.7%, 3.9h`, `0.51 / 0.55`.

    A cell is taken apart where its header has as many `names`, or where its parts have names or units of their own.
    """
    text = values.normalize(raw) if len(raw) <= MAX_TEXT else raw
    if len(text) > values.MAX_CELL:
        return (("", raw),)
    splits = [re.split(mark, text) for mark in (r"\s*/\s*", r"\s*[|;]\s*", r",\s+", r"\s+&\s+")]
    pair = re.fullmatch(r"([^()]+?)\s*\(\s*([^()]+?)\s*\)?", text)
    if names > 1:
        splits += [[pair[1], pair[2]]] if pair else []
        fitting = [parts for parts in splits if len(parts) == names and all(map(_is_part, parts))]
        return tuple(("", part) for part in fitting[0]) if fitting else (("", raw),)
    for parts in sorted(splits, key=len, reverse=True):
        named = [_split_name(part) for part in parts]
        if all(name for name, _ in named):
            return tuple(named)
        readings = [values.read_cell(part) for part in parts]
        units = [each.unit for each in readings]
        if len(parts) > 1 and all(each.value for each in readings) and all(units) and len(set(units)) == len(units):
            return tuple(("", part) for part in parts)
    return (("", raw),)


def _is_part(text: str) -> bool:
    return values.looks_like_result(text) or text.lower() in values.MISSING


def _split_name(part: str) -> tuple[str, str]:
    """The metric that stands before a value: `RMSE 0.505`, `Acc: 87.4`."""
    match = re.fullmatch(rf"([A-Za-z][\w²@-]*(?: [A-Za-z][\w-]*){{0,2}})(?:\s*[:=]\s*|\s+)({values.NUMBER}.*)", part)
    return (match[1], match[2]) if match and labels.find_metric(match[1]) else ("", part)


def holds_value(text: str) -> bool:
    return values.looks_like_result(text) or any(name for name, _ in split_cell(text))
