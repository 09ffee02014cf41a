"""``datacollab desk``: the party's or the analyst's own pages, on this machine alone."""

from __future__ import annotations

import threading
import webbrowser
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING

from .._require import require
from ..folder.step_table import STEPS
from ._command import COMMANDS, WorkFolder, lines_of
from ._output import Report

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from ..desk.web import Session


def desk(report: Report, folder: WorkFolder, port: int, no_browser: bool) -> None:
    # All are looked for first, so that one sentence names what to install.
    for package in ("jinja2", "starlette", "python_multipart", "uvicorn"):
        require(package, "desk")
    from ..desk.web import Session, bind_socket, door_page, serve

    folder.path.mkdir(mode=0o700, parents=True, exist_ok=True)
    # The passphrase is asked for once, here: pages cannot ask at the terminal.
    folder = WorkFolder(folder.path, known=folder.passphrase)
    bound, host = bind_socket(port)
    # Interrupted in order from the first line on: somebody who reads it may press the keys at once.
    with bound, suppress(KeyboardInterrupt), ExitStack() as stack:
        session = Session(host)
        app = desk_app(folder, session)
        report.line(f"The desk of {folder.path.absolute()} is open, on this machine alone. This link works once:")
        report.line(f"  {session.link}")
        report.line("Ctrl-C closes it.")
        if not no_browser:
            page = stack.enter_context(door_page(session, folder.path)).absolute().as_uri()
            # A browser of the terminal ends when its user does, and the desk has to answer it meanwhile.
            threading.Thread(target=webbrowser.open, args=(page,), daemon=True).start()
        serve(app, bound, folder.path)
    report.line("The desk is closed.")


def desk_app(folder: WorkFolder, session: Session) -> ASGIApp:
    """Return the pages of a folder: the analyst's once it has a project in which its key is the analyst's.

    Until then, and for parties and owners, they are a party's; a folder without keys makes them first.
    """
    from ..desk.analyst import AnalystDesk, analyst_app
    from ..desk.party import PartyDesk, party_app
    from ..desk.web import Commands

    commands = Commands(STEPS | COMMANDS, partial(lines_of, folder))
    apps: dict[bool, ASGIApp] = {}

    # A folder becomes the analyst's while the desk is open: when the project with its key is taken in.
    def choose_app() -> ASGIApp:
        is_analyst = _is_analyst(folder)
        if is_analyst not in apps:
            if is_analyst:
                apps[True] = analyst_app(AnalystDesk(folder.path, passphrase=folder.known), session)
            else:
                apps[False] = party_app(PartyDesk(folder.path, commands, passphrase=folder.known), session)
        return apps[is_analyst]

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await choose_app()(scope, receive, send)

    choose_app()  # A folder that cannot be opened is refused before any page is served.
    return app


def _is_analyst(folder: WorkFolder) -> bool:
    from ..agreement import load_project
    from ..bundle import KeyFile

    keys = folder.path / "keys.json"
    project = folder.path / "project.toml"
    return keys.is_file() and project.is_file() and KeyFile.read(keys).public == load_project(project).analyst
