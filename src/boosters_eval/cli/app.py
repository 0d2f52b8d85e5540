"""The program `boosters-eval`: a command line becomes a request, its findings are shown, and errors are sentences."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import shlex
import signal
import sys
import threading
import time
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from boosters_eval.cli.output import Terminal, choose_format, is_agreed, make_steady, note, say
from boosters_eval.cli.parser import RequestGroup, command_at
from boosters_eval.core import __version__
from boosters_eval.core.commands import INTERRUPTIONS
from boosters_eval.core.errors import (
    BoostersEvalError,
    BoostersEvalWarning,
    ConfigError,
    ExitCode,
    InterruptedRunError,
    Interruption,
    RunError,
    describe_error,
    suggest,
)
from boosters_eval.core.files import check_folder, check_writable
from boosters_eval.core.findings import Removal
from boosters_eval.core.temporary import clear_abandoned, find_temporary
from boosters_eval.core.terms import listen
from boosters_eval.core.text import clean_message, make_encodable, shorten_paths, terminal_width

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from boosters_eval.core.request import Request


_CLEAR = "\r\x1b[2K"


class _Progress:
    """Prints what is said. On a terminal, a sentence that ends in dots counts its seconds until the next one."""

    def __init__(self) -> None:
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    def __call__(self, text: str) -> None:
        self.stop()
        if not text.endswith("...") or not sys.stderr.isatty():
            note(text)
            sys.stderr.flush()
            return
        self._done.clear()
        self._thread = threading.Thread(target=self._tick, args=(clean_message(text), time.monotonic()), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        if self._thread is not None:
            self._done.set()
            self._thread.join()
            self._thread = None
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()

    def _tick(self, text: str, start: float) -> None:
        while True:
            seconds = f" {time.monotonic() - start:.0f} s"
            room = max(terminal_width(sys.stderr) - len(seconds) - 1, 10)
            sys.stderr.write(f"{_CLEAR}{text[:room]}{seconds}")
            sys.stderr.flush()
            if self._done.wait(1):
                return


@contextmanager
def show_progress(*, quiet: bool) -> Iterator[None]:
    if quiet:
        yield
        return
    progress = _Progress()
    try:
        with listen(progress):
            yield
    finally:
        progress.stop()


COMPLETE = "_BOOSTERS_EVAL_COMPLETE"  # set by a shell that asks how a command line may go on
_WIDEST_HELP = 78  # columns; longer lines are harder to read
_CONTINUING = ("--resume", "--rerun-failed", "--force")  # they say what is done with an earlier attempt


_SHELL_FILES = {"bash": ".bashrc", "zsh": ".zshrc", "fish": ".config/fish/completions/boosters-eval.fish"}


def parser(first: str = "") -> click.Group:
    """The whole command line; what the program itself offers is not needed where a command comes first."""
    root = command_at("", answer)
    assert isinstance(root, RequestGroup)  # noqa: S101 (for the type checker)
    if not first[:1].isalpha():
        root.params += [
            _eager_option("--version", "Show the version and exit.", _show_version),
            _eager_option("--install-completion", "Install completion for the current shell.", _install_completion),
            _eager_option(
                "--show-completion",
                "Show completion for the current shell, to copy it or customize it.",
                lambda context: say(_make_completion(context)[1].rstrip("\n")),
            ),
        ]
    return root


def _eager_option(name: str, told: str, action: Callable[[click.Context], None]) -> click.Option:
    """An option that ends the program once its action is done."""

    def call(context: click.Context, _: click.Parameter, wanted: bool) -> None:
        if wanted:
            action(context)
            context.exit()

    return click.Option([name], is_flag=True, is_eager=True, expose_value=False, callback=call, help=told)


def _show_version(_: click.Context) -> None:
    say(f"boosters-eval {__version__}")


def _make_completion(context: click.Context) -> tuple[str, str]:
    from click.shell_completion import get_completion_class

    shell = Path(os.environ.get("SHELL", "")).name
    made = get_completion_class(shell) if shell in _SHELL_FILES else None
    if made is None:
        raise ConfigError(f"There is completion for {', '.join(_SHELL_FILES)} only. Got '{shell}' in SHELL instead.")
    return shell, made(context.command, {}, "boosters-eval", COMPLETE).source()


def _install_completion(context: click.Context) -> None:
    """Add the script to what the shell reads; twice is once."""
    shell, script = _make_completion(context)
    place = Path.home() / _SHELL_FILES[shell]
    before = place.read_text(encoding="utf-8") if place.is_file() else ""
    if script not in before:
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("a", encoding="utf-8") as file:
            file.write(f"\n{script}")
    note(f"Completion for {shell} is in {place}. Start a new shell to use it.")


_LEAST_FILES, _LEAST_PROCESSES = 32, 16
_LEAST_MEGABYTES, _PER_CORE = 640, 64  # of addresses: numerical libraries reserve some for each core


def check_surroundings() -> None:
    """Refuse what leaves no room to work: libraries end the program without a word, and sound files look damaged."""
    files, addresses = (resource.getrlimit(which)[0] for which in (resource.RLIMIT_NOFILE, resource.RLIMIT_AS))
    if 0 <= files < _LEAST_FILES:
        raise RunError(f"At least {_LEAST_FILES} files must be allowed to be open at a time: 'ulimit -n' is {files}.")
    least = _LEAST_MEGABYTES + _PER_CORE * (os.cpu_count() or 1)
    if 0 <= addresses < least * 2**20:
        raise RunError(f"At least {least} MB of addresses are needed: 'ulimit -v' is {addresses // 1024} kB.")
    if not _can_start(_LEAST_PROCESSES):
        allowed = resource.getrlimit(resource.RLIMIT_NPROC)[0]
        raise RunError(f"At least {_LEAST_PROCESSES} further processes are needed: 'ulimit -u' is {allowed}.")
    check_folder()


def _can_start(count: int) -> bool:
    """Whether the system allows so many more at a time; it counts threads as processes."""
    done = threading.Event()
    threads = [threading.Thread(target=done.wait) for _ in range(count)]
    try:
        for thread in threads:
            thread.start()
    except RuntimeError:
        return False
    finally:
        done.set()
    return True


def answer(kind: type[Request], given: dict[str, Any]) -> int:
    check_surroundings()
    from boosters_eval import api

    if "command_line" in kind.parameters:
        # A command ends with its run, so nothing stays loaded for the next one.
        given = {"executor": "local", **given, "command_line": tuple(map(shorten_paths, list_typed()))}
    with contextlib.suppress(RunError):  # without such a place nothing was left there
        clear_abandoned(find_temporary())
    request: Any = kind(**given)
    screen = Terminal(verbose=getattr(request, "verbose", False), quiet=getattr(request, "quiet", False))
    form = choose_format(request)
    dry = getattr(request, "dry_run", False)
    if not dry:
        for each in kind.parameters.values():
            if each.written and (file := getattr(request, each.name)) is not None:
                check_writable(file)
    with _interruptible(), listen(None) if screen.quiet else contextlib.nullcontext():
        findings = api.answer(request)
    if form is None or dry:
        findings.show(screen)
    else:
        screen.emit(findings.render(form), form, getattr(request, "output", None))
    if isinstance(findings, Removal) and findings.things and not dry:
        if not (request.yes or is_agreed(findings)):
            return ExitCode.SUCCESS
        findings = findings.remove_things()
    findings.conclude(screen)
    return int(findings.exit_code)


_signals: list[int] = []  # that interrupted the command; the first one decides its exit code


def catch_signals() -> None:
    """Treat a polite request to end, and a terminal that has gone, like Ctrl-C; what nohup ignores stays ignored."""
    for number in INTERRUPTIONS:
        if number == signal.SIGINT or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)


def _interrupt(number: int, _: object) -> NoReturn:
    _signals.append(number)
    raise KeyboardInterrupt


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """On an interruption, by Ctrl-C or a signal, print the command that continues the run, if one had begun."""
    catch_signals()
    try:
        yield
    except InterruptedRunError:
        note("Stopped. Finished cells are kept; continue with:")
        note(f"  boosters-eval {shlex.join([*list_typed(), '--resume'])}")
        raise click.exceptions.Exit(ExitCode.INTERRUPTED) from None
    except KeyboardInterrupt:
        raise Interruption("Error: Interrupted.") from None


def list_typed() -> list[str]:
    """The command line, without the options that only continue an earlier run."""
    return [make_encodable(word) for word in sys.argv[1:] if word not in _CONTINUING]


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code. No mistake of a user ends in a traceback."""
    try:
        with show_progress(quiet=not {"--quiet", "-q"}.isdisjoint(arguments)):
            code = parser(next(iter(arguments), ""))(
                args=list(arguments),
                prog_name="boosters-eval",
                standalone_mode=False,
                complete_var=COMPLETE,
                terminal_width=min(terminal_width(sys.stdout), _WIDEST_HELP),
            )
    except Interruption as error:
        note(str(error))
        return int(error.exit_code)
    except BoostersEvalError as error:
        first, *others = error.lines
        code = _fail(first, error.exit_code)
        for line in others:
            note(line)
        return code
    except click.exceptions.NoArgsIsHelpError as error:
        sys.stdout.write(f"{error.format_message()}\n")
        return int(error.exit_code)
    except click.ClickException as error:
        return _fail(_parser_sentence(error), ExitCode.CONFIGURATION_ERROR)
    except (KeyboardInterrupt, click.Abort):
        return _fail("Interrupted.", ExitCode.INTERRUPTED)
    except (Exception, SystemExit) as error:  # noqa: BLE001 (must not look like a success, or a regression: exit 1)
        if isinstance(error, SystemExit) and COMPLETE in os.environ:  # so the parser ends when a shell has asked it
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
    return f"Internal error: {describe_error(error)}. Details: {_crash_report()}"


def _crash_report() -> str:
    """Write the traceback to a file: the user sees one sentence, the developers get the details."""
    import tempfile
    import traceback

    handle, name = tempfile.mkstemp(prefix="boosters-eval-crash-", suffix=".txt", text=True)
    with os.fdopen(handle, "w") as file:
        traceback.print_exc(file=file)
    return name


_EXTRA_WORDS = re.compile(r"Got unexpected extra arguments? \((.+)\)")


def _parser_sentence(error: click.ClickException) -> str:
    text, context = error.format_message(), getattr(error, "ctx", None)
    if isinstance(error, click.NoSuchOption) and context is not None:
        known = [name for each in context.command.params for name in (*each.opts, *each.secondary_opts)]
        text = f"No such option '{error.option_name}'.{suggest(error.option_name, known)}"
    elif (found := _EXTRA_WORDS.match(text)) and context is not None:
        word = found[1].split()[0]
        options = {name for each in context.command.params for name in each.opts}
        if "-d" in options:
            column = ":COLUMN, with the column to predict" if "." in word and ":" not in word else ""
            text = f"'{word}' stands alone: a data set is given as -d {word}{column}"
        elif "--suite" in options and ("." not in word or ".py" in word):
            text = f"'{word}' stands alone: a suite is given as --suite {word}"
    path = context.command_path if context is not None else "boosters-eval"
    return f"{text.rstrip('.')}{'' if text.endswith('?') else '.'} See '{path} --help'."


def _fail(sentence: str, code: ExitCode) -> int:
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        note(f"Error: {sentence}")
    return int(code)


def _warn(message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: Any, **__: Any) -> None:
    """Our own warnings are sentences for the user; those of others keep the place they come from."""
    if issubclass(category, BoostersEvalWarning):
        note(f"Warning: {message}")
    else:
        note(warnings.formatwarning(message, category, filename, lineno).rstrip())


def main() -> NoReturn:
    """The console script, called by `boosters_eval.__main__`."""
    # What is written to stderr is cleaned line by line: a progress bar moves the cursor there.
    out, err = make_steady(sys.stdout, cleaned=True), make_steady(sys.stderr)
    sys.stdout, sys.stderr = out, err
    warnings.showwarning = _warn
    code = run(sys.argv[1:])
    for number in INTERRUPTIONS:
        signal.signal(number, signal.SIG_IGN)  # the command has ended, and its exit code is known
    if code == ExitCode.INTERRUPTED and _signals:
        code = 128 + _signals[0]
    out.flush()
    sys.exit(max(code, ExitCode.EXECUTION_ERROR) if out.failed else code)
