"""Commands of the hub: ``datacollab hub``, and of ``datacollab remote`` those that only a hub's members need.

Loaded before each command of the program, so nothing heavy is imported here.
"""

from __future__ import annotations

import typer

from datacollab.cli.kit import group_of

from ._hub import app
from ._members import approve, dashboard, invite, join, open_, requests

__all__ = ["register"]


def register(root: typer.Typer) -> None:
    """Add the commands to the program."""
    root.add_typer(app, name="hub")
    remote = group_of(root, "remote")
    remote.command("dashboard")(dashboard)
    remote.command("join")(join)
    remote.command("open")(open_)
    remote.command("invite")(invite)
    remote.command("requests")(requests)
    remote.command("approve")(approve)
