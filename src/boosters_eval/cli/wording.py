"""Sentences are written for whoever calls from Python; on the command line, a parameter is an option."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# The options that are not spelt like the parameter that they set, and the short ones.
_SINGULAR = {"datasets": "dataset", "libraries": "library", "metrics": "metric", "formats": "format"}
_SHORT = {
    "dataset": "-d",
    "library": "-l",
    "booster": "-b",
    "metric": "-m",
    "seeds": "-s",
    "jobs": "-j",
    "format": "-f",
}
_GIVEN = re.compile(r"\b(seeds|max_seeds|cv|resume|allow_flaky|timing_mode)=(?:True|'?(\w+)'?)")


def as_options(sentence: str, arguments: Sequence[str] = ()) -> str:
    """The sentence with options instead of parameters. One that was not typed, as in a suite's file, stays as it is."""
    match = re.match(r"The '(\w+)' parameter(?: of \w+)? ", sentence)
    if match and _is_typed(match[1], arguments):
        sentence = f"The '{_option(match[1])}' option {sentence[match.end() :]}"
    sentence = _GIVEN.sub(lambda given: f"{_option(given[1])} {given[2] or ''}".rstrip(), sentence)
    if sentence.startswith("Use either "):
        sentence = re.sub(r"'(\w+)'(?=,? )", lambda name: _option(name[1]), sentence)
    return sentence


def _option(parameter: str) -> str:
    return "--" + _SINGULAR.get(parameter, parameter).replace("_", "-")


def _is_typed(parameter: str, arguments: Sequence[str]) -> bool:
    option = _option(parameter)
    short = _SHORT.get(option[2:], option)
    return any(word.partition("=")[0] == option or word.startswith(short) for word in arguments)
