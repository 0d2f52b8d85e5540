"""Completion in the user's shell: its script is shown, or installed where the shell reads it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import get_completion_class

from boosters_eval.cli.output import note, say
from boosters_eval.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

_PLACES = {"bash": ".bashrc", "zsh": ".zshrc", "fish": ".config/fish/completions/boosters-eval.fish"}


def completion_options() -> list[click.Option]:
    """The two options of the program."""
    return [
        _option("--install-completion", "Install completion for the current shell.", _install),
        _option("--show-completion", "Show completion for the current shell, to copy it or customize it.", _show),
    ]


def _option(name: str, told: str, action: Callable[[str, str], None]) -> click.Option:
    def call(context: click.Context, _: click.Parameter, wanted: bool) -> None:
        if wanted:
            shell = Path(os.environ.get("SHELL", "")).name
            if shell not in _PLACES:
                raise ConfigError(f"There is completion for {', '.join(_PLACES)} only. Got '{shell}' in SHELL instead.")
            action(shell, _script(context, shell))
            context.exit()

    return click.Option([name], is_flag=True, is_eager=True, expose_value=False, callback=call, help=told)


def _script(context: click.Context, shell: str) -> str:
    made = get_completion_class(shell)
    assert made is not None  # noqa: S101 (click has all of these)
    return made(context.command, {}, "boosters-eval", "_BOOSTERS_EVAL_COMPLETE").source()


def _show(_: str, script: str) -> None:
    say(script.rstrip("\n"))


def _install(shell: str, script: str) -> None:
    """Add the script to what the shell reads; twice is once."""
    place = Path.home() / _PLACES[shell]
    before = place.read_text(encoding="utf-8") if place.is_file() else ""
    if script not in before:
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("a", encoding="utf-8") as file:
            file.write(f"\n{script}")
    note(f"Completion for {shell} is in {place}. Start a new shell to use it.")
