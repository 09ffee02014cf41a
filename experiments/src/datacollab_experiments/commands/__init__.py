"""Commands that the program `datacollab` has where this distribution is installed: ``experiment`` and ``compare``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _experiment

if TYPE_CHECKING:
    import typer

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    app.command("compare")(_experiment.compare)
    app.add_typer(_experiment.app, name="experiment")
