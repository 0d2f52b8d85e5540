"""The program `boosters-eval`: its commands, and how errors are reported."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import sys
import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from boosters_eval.cli.arguments import spread
from boosters_eval.cli.conversion import spare
from boosters_eval.cli.installing import shown_installing
from boosters_eval.cli.output import note, say, terminal_width
from boosters_eval.cli.streams import steady
from boosters_eval.cli.wording import as_options
from boosters_eval.core.errors import BoostersEvalError, BoostersEvalWarning, ExitCode, suggest
from boosters_eval.core.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# The option parser's base class; its module differs between versions of typer.
_ParserError: type[Exception] = typer.BadParameter.__mro__[2]

_COMPLETE = "_BOOSTERS_EVAL_COMPLETE"  # set by a shell that asks how a command line may go on
_WIDEST_HELP = 78  # columns; longer lines are harder to read

# The modules with commands, in the order of the help. A command line needs that of its own command, and no other.
COMMANDS = {
    "baseline": ("quick", "full", "baseline"),
    "bisect": ("bisect",),
    "builds": ("builds",),
    "execution": ("compare", "run"),
    "explain": ("explain",),
    "gate": ("gate",),
    "importances": ("importances",),
    "runs": ("verify", "runs"),
    "history_report": ("history",),
    "listing": ("list",),
    "datasets": ("datasets",),
    "report": ("report",),
    "parity": ("parity",),
    "paper": ("paper",),
    "track": ("track",),
}


def _version(*, show: bool) -> None:
    if show:
        say(f"boosters-eval {__version__}")
        raise typer.Exit


def _root(
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=lambda v: _version(show=v))
    ] = False,
) -> None:
    pass


def parser(command: str = "") -> Any:
    """The parser of one command, or of all of them, for which all modules are imported."""
    return _parser(tuple(module for module, names in COMMANDS.items() if command in names) or tuple(COMMANDS))


@functools.cache
def _parser(modules: tuple[str, ...]) -> Any:
    app = typer.Typer(
        name="boosters-eval",
        help="Evaluate and compare gradient-boosting libraries, with equal capacity and sound statistics.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for module in modules:
        import_module(f"boosters_eval.cli.{module}").register(app)
    found = typer.main.get_command(app)
    _tell_whole(found)
    _tell_interruptions(found)
    spare(found)
    return found


def _tell_whole(group: Any) -> None:
    """Give every command its first paragraph for the list of commands: the parser cuts what it finds by itself."""
    for command in getattr(group, "commands", {}).values():
        command.short_help = command.short_help or " ".join((command.help or "").partition("\n\n")[0].split())
        _tell_whole(command)


class _InterruptionError(BoostersEvalError):
    exit_code = ExitCode.INTERRUPTED


def _tell_interruptions(group: Any) -> None:
    """Let Ctrl-C end every command with a word, unless it has one of its own: the parser would end it without."""

    def told(callback: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(callback)
        def call(*given: Any, **named: Any) -> Any:
            try:
                return callback(*given, **named)
            except KeyboardInterrupt:
                raise _InterruptionError("Interrupted.") from None

        return call

    for command in getattr(group, "commands", {}).values():
        command.callback = command.callback and told(command.callback)
        _tell_interruptions(command)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code. No mistake of a user ends in a traceback."""
    try:
        with shown_installing(quiet=not {"--quiet", "-q"}.isdisjoint(arguments)):
            needed = _parser(()) if list(arguments) == ["--version"] else parser(next(iter(arguments), ""))
            code = needed(
                args=spread(list(arguments)),
                prog_name="boosters-eval",
                standalone_mode=False,
                terminal_width=min(terminal_width(sys.stdout), _WIDEST_HELP),
            )
    except BoostersEvalError as error:
        first, *others = error.lines
        code = _fail(as_options(first, arguments), error.exit_code)
        for line in others:
            note(line)
        return code
    except _ParserError as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # its message is the help; its module differs as well
            sys.stdout.write(f"{error}\n")
            return int(getattr(error, "exit_code", ExitCode.CONFIGURATION_ERROR))
        return _fail(_parser_sentence(error), ExitCode.CONFIGURATION_ERROR)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("Interrupted.", ExitCode.INTERRUPTED)
    except (Exception, SystemExit) as error:  # noqa: BLE001 (must not look like a success, or a regression: exit 1)
        if isinstance(error, SystemExit) and _COMPLETE in os.environ:  # so the parser ends when a shell has asked it
            code = error.code
        else:
            code = _fail(_unforeseen(error), ExitCode.EXECUTION_ERROR)
    return int(code or 0)


def _unforeseen(error: BaseException) -> str:
    """What the system refused, foreign code that ended the program, or a mistake of our own."""
    if isinstance(error, OSError):
        return f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}."
    if isinstance(error, SystemExit):  # of a suite, a loader or a plug-in
        return f"Foreign code called sys.exit({error.code!r}), so nothing was done."
    return f"Internal error: {type(error).__name__}: {error}. Details: {_crash_report()}"


def _crash_report() -> str:
    """Write the traceback to a file: the user sees one sentence, the developers get the details."""
    import tempfile
    import traceback

    handle, name = tempfile.mkstemp(prefix="boosters-eval-", suffix=".txt", text=True)
    with os.fdopen(handle, "w") as file:
        traceback.print_exc(file=file)
    return name


def _parser_sentence(error: Exception) -> str:
    text: str = error.format_message() if hasattr(error, "format_message") else str(error)
    context = getattr(error, "ctx", None)
    if text.startswith("No such command") and context is not None:
        got = text.split("'")[1]
        hint = suggest(got, getattr(context.command, "commands", {}))
        text += "" if "Did you mean" in text else hint
    path = context.command_path if context is not None else "boosters-eval"
    return f"{text.rstrip('.')}{'' if text.endswith('?') else '.'} See '{path} --help'."


def _fail(sentence: str, code: ExitCode) -> int:
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        note(f"Error: {sentence}")
    return int(code)


def _warn(message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: Any, **__: Any) -> None:
    """Our own warnings are sentences for the user; those of others keep the place they come from."""
    own = issubclass(category, BoostersEvalWarning)
    text = (
        f"Warning: {as_options(str(message))}"
        if own
        else warnings.formatwarning(message, category, filename, lineno).rstrip()
    )
    note(text)


def main() -> NoReturn:
    """The console script, called by `boosters_eval.__main__`."""
    sys.stdout, sys.stderr = steady(sys.stdout), steady(sys.stderr)
    warnings.showwarning = _warn
    code = run(sys.argv[1:])
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the command has ended, and its exit code is known
    sys.stdout.flush()
    sys.exit(code)
