"""What is spelt alike in all commands: -C for the folder one works in, -o for what is written.

* Where a passphrase comes from: a file, the environment, or somebody at the terminal.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from ..errors import ExchangeError

__all__ = ["OutputArgument", "PassphraseFile", "ask", "at_terminal", "named_once", "passphrase", "passphrase_for"]


OutputArgument = Annotated[Path | None, typer.Argument(metavar="[OUTPUT]", help="The same as --output.")]


def named_once(option: Path | None, argument: Path | None, hint: str) -> Path:
    """A path that is given as an option, or else as an argument.

    Raises
    ------
    BadParameter
        When it is given twice, or not at all.
    """
    if option is not None and argument is not None:
        raise typer.BadParameter("It is given twice, as an option and as an argument.", param_hint=hint)
    given = option or argument
    if given is None:
        raise typer.BadParameter("It is missing.", param_hint=hint)
    return given


VARIABLE = "DATACOLLAB_PASSPHRASE"

PassphraseFile = Annotated[
    Path | None,
    typer.Option(
        exists=True,
        dir_okay=False,
        metavar="FILE",
        help=f"File with the passphrase. Without: {VARIABLE}, or the terminal asks.",
    ),
]


def passphrase(given_file: Path | None) -> str | None:
    """The passphrase from a file, or else from the environment; None where neither holds one.

    Raises
    ------
    ExchangeError
        ``PASSPHRASE_WRONG``, when the file holds none.
    """
    if given_file is None:
        return os.environ.get(VARIABLE) or None
    try:
        text = given_file.read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeError):
        text = ""
    if not text:
        raise ExchangeError(
            "PASSPHRASE_WRONG", f"{given_file} holds no passphrase that can be read; a line of text is wanted."
        )
    return text


def passphrase_for(folder: Path, given_file: Path | None) -> str | None:
    """The passphrase for a folder; asked for at a terminal where its keys are under one and none was given.

    Raises
    ------
    ExchangeError
        ``PASSPHRASE_WRONG``, when the file holds none.
    """
    from ..bundle import KeyFile

    given = passphrase(given_file)
    keys = folder / "keys.json"
    if given is None and at_terminal() and keys.exists() and KeyFile.read(keys).encrypted:
        return ask()
    return given


def at_terminal() -> bool:
    """Whether there is somebody to ask."""
    return sys.stdin.isatty()


def ask(*, twice: bool = False) -> str:
    """Ask at the terminal, without showing what is typed."""
    return str(typer.prompt("Passphrase", hide_input=True, confirmation_prompt=twice, err=True))
