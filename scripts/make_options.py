"""Write docs/options.md: every command with its options, from the requests that declare them."""

from pathlib import Path

from boosters_eval.cli.parser import describe_option
from boosters_eval.core.request import COMMANDS, FLAG, Parameter, list_options, load_request
from boosters_eval.engine.settings import RunSettings

PAGE = Path(__file__).parents[1] / "docs" / "options.md"
HEAD = """# Options

Every command with its arguments and options, made from the requests by `scripts/make_options.py`. From Python, a
parameter is spelt like its option with underscores, unless its name is given.
"""


def page() -> str:
    """The whole page."""
    shared = RunSettings.parameters
    parts = [HEAD, "## Every command that runs cells\n", _table(list_options(RunSettings))]
    for command in COMMANDS:
        request = load_request(command)
        own = [each for each in list_options(request) if shared.get(each.name) is not each]
        also = "\nIt has the options of every command that runs cells.\n" if issubclass(request, RunSettings) else ""
        first = " ".join(request.help.partition("\n\n")[0].split())
        parts += [f"## {command}\n", f"{first}\n{also}", *([_table(own)] if own else [])]
    return "\n".join(parts)


def _table(options: list[Parameter]) -> str:
    rows = [f"| {_name(each)} | {_escaped(describe_option(each))} |" for each in options]
    return "\n".join(["| Option | Meaning |", "| --- | --- |", *rows, ""])


def _name(each: Parameter) -> str:
    if each.argument:
        return f"`{each.kind.metavar}`"
    names = ", ".join(f"`{name}`" for name in (each.option, each.short, each.negative) if name)
    value = "" if each.kind is FLAG else f" {_escaped(each.kind.metavar)}"
    spelt = each.option.removeprefix("--").replace("-", "_") != each.name and each.door == "both"
    return names + value + (f" (`{each.name}`)" if spelt else "")


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "\\<").replace("\n", " ")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
