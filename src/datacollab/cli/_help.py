"""Help as plain text, which is wrapped and never cut, however narrow the terminal."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

__all__ = ["WholeHelp", "group", "group_of"]


class WholeHelp(TyperGroup):
    """A group of commands that lists what each does in full, and keeps the lines of their examples."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for command in self.commands.values():
            paragraphs = (command.help or "").split("\n\n")
            command.short_help = " ".join(paragraphs[0].split())
            command.help = "\n\n".join(_KEEP_LINES + each if each.startswith("  ") else each for each in paragraphs)


_KEEP_LINES = "\b\n"
"""Before a paragraph whose lines stay as they are."""


def group(help: str, **settings: Any) -> typer.Typer:
    """What commands are added to.

    Parameters
    ----------
    help : str
        What they are about.
    **settings
        Those of `typer.Typer`.
    """
    return typer.Typer(cls=WholeHelp, help=help, no_args_is_help=True, rich_markup_mode=None, **settings)


def group_of(app: typer.Typer, *words: str) -> typer.Typer:
    """Return a group of commands that was added before, such as the one of ``remote``.

    Parameters
    ----------
    app : typer.Typer
    *words : str
        Names of groups, each within the one before it; without any, ``app`` itself.

    Raises
    ------
    KeyError
        When there is no such group.
    """
    for word in words:
        app = {each.name: each.typer_instance for each in app.registered_groups if each.typer_instance}[word]
    return app
