"""What is spelt alike in all commands: -C for the folder one works in, -o for what is written."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["OutputArgument", "named_once"]

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
