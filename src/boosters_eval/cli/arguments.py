"""How values after an option are read: by spaces, by commas, or by repeating the option."""

from __future__ import annotations

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
        "--variants",
        "--libraries-under-test",
        "--tolerance-for",
        "--held-out",
    }
)
# Of these, the ones whose values may contain commas of their own.
_WHOLE = frozenset({"--variants", "--metric", "-m"})


def spread(arguments: list[str]) -> list[str]:
    """`-d a b,c` becomes `-d a -d b -d c`, which every option parser reads alike."""
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
                out.append(current)  # no value at all: the parser says so
        elif current is not None:
            out += _repeat(current, argument)
        else:
            out.append(argument)
    return out


def _repeat(option: str, value: str) -> list[str]:
    parts = [value] if option in _WHOLE else [part for part in value.split(",") if part] or [value]
    return [token for part in parts for token in (option, part)]
