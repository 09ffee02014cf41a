"""``datacollab desk``: the party's or the analyst's own pages, on this machine alone."""

from __future__ import annotations

import threading
import webbrowser
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from .._require import require
from ._command import Folder
from ._output import Report

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from ..desk.web import Session

__all__ = ["desk"]


def desk(report: Report, folder: Folder, port: int, no_browser: bool) -> None:
    for package in ("jinja2", "starlette", "python_multipart", "uvicorn"):
        require(package, "desk")
    from ..desk.web import Session, bound_socket, door_page, serve

    passphrase = folder.passphrase
    bound, host = bound_socket(port)
    # Interrupted in order from the first line on: somebody who reads it may press the keys at once.
    with bound, suppress(KeyboardInterrupt), ExitStack() as stack:
        session = Session(host)
        app = _app(folder, passphrase, session)
        report.line(f"The desk of {folder.path.absolute()} is open, on this machine alone. This link works once:")
        report.line(f"  {session.link}")
        report.line("Ctrl-C closes it.")
        if not no_browser:
            page = stack.enter_context(door_page(session, folder.path)).absolute().as_uri()
            # A browser of the terminal ends when its user does, and the desk has to answer it meanwhile.
            threading.Thread(target=webbrowser.open, args=(page,), daemon=True).start()
        serve(app, bound, folder.path)
    report.line("The desk is closed.")


def _app(folder: Folder, passphrase: str | None, session: Session) -> ASGIApp:
    """Return the desk of the role that the folder's key has."""
    from ..bundle import KeyFile
    from ..exchange.project import load_project

    project = folder.path / "project.toml"
    if project.is_file() and KeyFile.read(folder.path / "keys.json").public == load_project(project).analyst:
        from ..desk.analyst import AnalystDesk, analyst_app

        return analyst_app(AnalystDesk(folder.path, passphrase=passphrase), session)
    from ..desk.party import PartyDesk, party_app

    return party_app(PartyDesk(folder.path, passphrase=passphrase), session)
