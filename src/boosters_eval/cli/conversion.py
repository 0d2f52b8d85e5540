"""Values that are plain to read are not left to the parser's conversion, which loads pydantic: a third of a start."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, get_args, get_origin

if TYPE_CHECKING:
    from collections.abc import Callable

_PLAIN = (str, int, float, bool)
_DIGITS = 9  # of a number that is surely one to the parser, too


def spare(command: Any) -> None:
    """Let this command, and those below it, convert by the parser's own rules only what is not plain."""
    command.get_params = partial(_spared, command.get_params)
    for each in getattr(command, "commands", {}).values():
        spare(each)


def _spared(parameters: Callable[[Any], list[Any]], context: Any) -> list[Any]:
    found = parameters(context)
    for parameter in found:
        if not isinstance(parameter.process_value, partial):
            parameter.process_value = partial(_processed, parameter, parameter.process_value)
    return found


def _processed(parameter: Any, convert: Callable[[Any, Any], Any], context: Any, value: Any) -> Any:
    plain = _plain(parameter, value)
    if plain is NotImplemented:
        return convert(context, value)
    return plain if parameter.callback is None else parameter.callback(context, parameter, plain)


def _plain(parameter: Any, value: Any) -> Any:
    """What the parser would make of nothing, of text for text, a number in digits, or a default; else NotImplemented.

    That is also the answer of a parser that does not tell the type of a parameter: it converts all that is given.
    """
    if value is None and not parameter.required:
        return () if parameter.multiple or parameter.nargs == -1 else None
    descriptor: Any = getattr(parameter, "type_descriptor", None)
    wanted = getattr(descriptor, "annotation", None)
    if wanted in _PLAIN and type(value) is wanted:
        return value
    if wanted is int and isinstance(value, str):
        return _whole(value, descriptor.parameter_info)
    if get_origin(wanted) is list and isinstance(value, list | tuple) and value:
        (each,) = get_args(wanted)
        return list(value) if each in _PLAIN and all(type(item) is each for item in value) else NotImplemented
    return NotImplemented


def _whole(text: str, bounds: Any) -> Any:
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS):
        return NotImplemented
    low, high = bounds.min, bounds.max
    good = (low is None or low <= int(text)) and (high is None or int(text) <= high)
    return int(text) if good else NotImplemented
