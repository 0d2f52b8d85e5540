"""Commands made from requests: each parameter becomes an option, or an argument by its position."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from boosters_eval.core.errors import ConfigError, suggest
from boosters_eval.core.request import COMMANDS, FLAG, PROGRAMS, REQUIRED, list_options, load_request
from boosters_eval.core.terms import speaking_of, the

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from boosters_eval.core.request import Parameter, Request

    Answer = Callable[[type[Request], dict[str, Any]], int]


GROUPS = {
    "": "Evaluate and compare gradient-boosting libraries, with equal capacity and sound statistics.",
    "builds": "Versions and builds of libraries in this home: add, list, show, remove, prune.",
    "datasets": "Show data sets, and download those that are not bundled.",
    "baseline": "Record results, and check later results against them.",
    "paper": "Extract the tables of a paper, reproduce their rows, and compare.",
    "paper results": "Results of one's own, to be compared with a paper.",
    "parity": "Compare a method across bindings, languages and a reference, and time each.",
    "parity oracles": "The stored predictions of oracles.",
    "runs": "The runs in this home: list, show, open, remove, prune.",
    "history": "The history of this home: every run, with its verdict against the run before on the same machine.\n\n"
    "Without a command, the runs are listed, the latest first.",
    "list": "List data sets, libraries, suites and metrics.",
}


_NAMES = {"help_option_names": ["-h", "--help"]}


class _Word(click.ParamType):  # type: ignore[type-arg]  # generic for type checkers since 8.4 only
    """A word of the command line, read as the parameter declares it."""

    def __init__(self, parameter: Parameter) -> None:
        self.parameter = parameter
        self.name = parameter.kind.metavar.lower()

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ARG002 (click's signature)
        return self.parameter.read(value)


class RequestCommand(click.Command):
    """The command of a request. Several values may follow an option, or stand in one word."""

    def __init__(self, request: type[Request], answer: Answer) -> None:
        self.request = request
        self.options = list_options(request)
        super().__init__(
            request.command.split()[-1],
            help=request.help,
            short_help=_first_paragraph(request.help),
            params=[_argument(each) if each.argument else _option(each) for each in self.options],
            context_settings=_NAMES,
        )
        self._answer = answer

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return self.parse_words(args, partial(super().parse_args, ctx))

    def parse_words(self, words: list[str], parse: Callable[[list[str]], list[str]]) -> list[str]:
        """Read the words, in terms of this command's options; say of an option without a value what it takes."""
        several = [each for each in self.options if each.several and each.spread and not each.argument]
        separators = {name: each.separator for each in several for name in (each.option, each.short) if name}
        with speaking_of(self.names):
            try:
                return parse(repeat_options(words, separators))
            except click.BadOptionUsage as error:
                for each in self.options:
                    if error.option_name in (each.option, each.short) and each.kind is not FLAG:
                        raise ConfigError(f"{the(each.name)} must be {each.kind.words}. Got nothing instead.") from None
                raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """What is given by its position stands above the options."""
        arguments = [(each.kind.metavar, each.help) for each in self.options if each.argument]
        if arguments:
            with formatter.section("Arguments"):
                formatter.write_dl(arguments)
        super().format_options(ctx, formatter)

    def invoke(self, ctx: click.Context) -> int:
        with speaking_of(self.names):
            usual = {each.name: each.typed for each in self.options if each.typed is not None}
            given = usual | _given(ctx.params)
            for name in (name for name, value in given.items() if value is REQUIRED):
                raise ConfigError(f"{the(name)} is required.")
            return self._answer(self.request, given)

    @property
    def names(self) -> dict[str, str]:
        return {each.name: each.said for each in self.options}


class RequestGroup(click.Group):
    """Commands by name; each is imported when it is asked for. A group may be a command too, where none is named."""

    def __init__(self, path: str, answer: Answer) -> None:
        self._path, self._answer = path, answer
        self._own = _request_command(path, answer) if path in COMMANDS else None
        told = GROUPS.get(path, "Commands of other packages.")
        super().__init__(
            path.rsplit(maxsplit=1)[-1] if path else "boosters-eval",
            help=told,
            short_help=_first_paragraph(told),
            params=self._own.params if self._own else None,
            callback=self._lead,
            invoke_without_command=self._own is not None,
            no_args_is_help=self._own is None,
            context_settings=_NAMES,
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words as the command that the group is, if it is one."""
        parse = partial(super().parse_args, ctx)
        return parse(args) if self._own is None else self._own.parse_words(args, parse)

    def _lead(self, **options: Any) -> int | None:
        context, own = click.get_current_context(), self._own
        if own is None:
            return None
        if context.invoked_subcommand is None:
            return own.invoke(context)
        if _given(options):
            raise ConfigError(f"Give the options after '{context.invoked_subcommand}', not before it.")
        return None

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        start = f"{self._path} " if self._path else ""
        every = (*COMMANDS, *GROUPS, *(() if self._path and self._path in GROUPS else PROGRAMS))
        below = [name.removeprefix(start) for name in every if name and name.startswith(start)]
        return list(dict.fromkeys(name.split()[0] for name in below))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        return command_at(f"{self._path} {cmd_name}".strip(), self._answer) if cmd_name else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            hint = suggest(name, self.list_commands(ctx))
            raise click.UsageError(f"No such command '{name}'.{hint}", ctx)
        return super().resolve_command(ctx, args)


def command_at(path: str, answer: Answer) -> click.Command | None:
    """The command or group of that name; programs of other packages may have groups of their own."""
    command = None if path in GROUPS else _request_command(path, answer)
    if command is not None:
        return command
    foreign = () if path in GROUPS else (*PROGRAMS, *PROGRAMS.broken)
    is_group = path in GROUPS or any(name.startswith(f"{path} ") for name in foreign)
    return RequestGroup(path, answer) if is_group else None


def _request_command(path: str, answer: Answer) -> RequestCommand | None:
    if path in COMMANDS:
        return RequestCommand(load_request(path), answer)
    is_known = bool(path) and (path in PROGRAMS or path in PROGRAMS.broken)
    return RequestCommand(PROGRAMS[path], answer) if is_known else None


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None and value != ()}


def _first_paragraph(text: str) -> str:
    return " ".join(text.partition("\n\n")[0].split())


def _option(each: Parameter) -> click.Option:
    flag = each.kind is FLAG
    names = [f"{each.option}/{each.negative}" if each.negative else each.option, *([each.short] if each.short else [])]
    kind: dict[str, Any] = {"is_flag": True} if flag else {"type": _Word(each), "metavar": each.kind.metavar}
    return click.Option([each.name, *names], help=describe_option(each), multiple=each.several, default=None, **kind)


def _argument(each: Parameter) -> click.Argument:
    must = each.required or each.typed is REQUIRED
    return click.Argument(
        [each.name],
        nargs=-1 if each.several else 1,
        required=must,
        type=_Word(each),
        metavar=each.kind.metavar if must else f"[{each.kind.metavar}]",
    )


def describe_option(each: Parameter) -> str:
    """The help of an option, with its default unless the sentence says it."""
    must = each.required or each.typed is REQUIRED
    plain = must or each.default in (None, (), "") or isinstance(each.default, bool) or "Default" in each.help
    return each.help if plain else f"{each.help} Default: {each.default}."


def repeat_options(arguments: list[str], separators: Mapping[str, str | None]) -> list[str]:
    """Turn `-d a b,c` into `-d a -d b -d c`, which every option parser understands."""
    out: list[str] = []
    current: str | None = None
    for position, argument in enumerate(arguments):
        if argument == "--":
            return out + arguments[position:]
        if argument.startswith("-") and len(argument) > 1:
            name, equals, value = argument.partition("=")
            current = name if name in separators else None
            if current is None:
                out.append(argument)
            elif equals:
                out += _repeat(current, value, separators[current])
            elif position + 1 == len(arguments) or arguments[position + 1].startswith("-"):
                out.append(current)  # without a value: the parser reports it
        elif current is not None:
            out += _repeat(current, argument, separators[current])
        else:
            out.append(argument)
    return out


def _repeat(option: str, value: str, separator: str | None) -> list[str]:
    parts = [value] if separator is None else [part for part in re.split(separator, value) if part] or [value]
    return [token for part in parts for token in (option, part)]
