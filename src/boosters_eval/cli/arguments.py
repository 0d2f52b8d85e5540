"""How several values of an option are given: with spaces, with commas, or by repeating the option."""

from __future__ import annotations

import re

# Options that take several values.
_SEVERAL = frozenset(
    {
        "--dataset",
        "-d",
        "--library",
        "-l",
        "--booster",
        "-b",
        "--metric",
        "-m",
        "--param",
        "-p",
        "--variants",
        "--libraries-under-test",
        "--tolerance-for",
        "--held-out",
        "--observer",
        "--track",
        "--to",
        "--only",
        "--methods",
        "--backends",
        "--sizes",
        "--threads",
        "--csv",
        "--registry",
        "--own",
        "--versions",
        "--wheels",
        "--drop",
        "--keep",
        "--categorical",
        "--numeric",
        "--date",
        "--group",
    }
)
# Options whose values, file names among them, may contain commas. For metrics, one separates only before what is no
# parameter: in `f1@0.3,mcc`, but not in `pinball@0.1,0.5` or `ndcg@10,gain=linear`.
_NEVER, _BEFORE_A_NAME = "(?!)", r",(?=[A-Za-z_./~][^=,]*(?:,|$))"
# The path of a build may contain commas too: one separates only before what can be a library.
_BEFORE_A_LIBRARY = r",(?=[^,@=/]*(?:[@=]|(?<!\.whl)(?:,|$))|[^,@]*\.py:)"
_SEPARATOR = {
    **dict.fromkeys(("--variants", "--only", "--csv", "--registry", "--wheels"), _NEVER),
    **dict.fromkeys(("--drop", "--keep", "--categorical", "--numeric", "--date", "--group"), _NEVER),
    **dict.fromkeys(("--metric", "-m"), _BEFORE_A_NAME),
    **dict.fromkeys(("--library", "-l"), _BEFORE_A_LIBRARY),
}


def spread(arguments: list[str]) -> list[str]:
    """Turn `-d a b,c` into `-d a -d b -d c`, which every option parser understands."""
    out: list[str] = []
    current: str | None = None
    for position, argument in enumerate(arguments):
        if argument == "--":
            return out + arguments[position:]
        if argument.startswith("-") and len(argument) > 1:
            name, equals, value = argument.partition("=")
            current = name if name in _SEVERAL else None
            if current is None:
                out.append(argument)
            elif equals:
                out += _repeat(current, value)
            elif position + 1 == len(arguments) or arguments[position + 1].startswith("-"):
                out.append(current)  # without a value: the parser reports it
        elif current is not None:
            out += _repeat(current, argument)
        else:
            out.append(argument)
    return out


def _repeat(option: str, value: str) -> list[str]:
    parts = [part for part in re.split(_SEPARATOR.get(option, ","), value) if part] or [value]
    return [token for part in parts for token in (option, part)]
