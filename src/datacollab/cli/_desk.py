"""``datacollab desk``: the party's or the analyst's own pages, on this machine alone."""

from __future__ import annotations

import threading
import webbrowser
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import BadParameter, Option

from .._require import require
from ._options import PassphraseFile, passphrase_for
from ._output import reported
from ._party_options import HERE

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from ..desk.web import Session

__all__ = ["desk"]


def _known_port(port: int) -> int:
    if not 0 <= port < 2**16:
        raise BadParameter(f"{port} is no port; a number from 0 to 65535 is wanted.")
    return port


def desk(
    folder: Annotated[Path, Option("--folder", "-C", metavar="DIR", help="A party's folder, or the analyst's.")] = HERE,
    port: Annotated[
        int, Option(metavar="N", callback=_known_port, help="Of this machine. Default: one that is free.")
    ] = 0,
    no_browser: Annotated[bool, Option("--no-browser", help="Only print the link; it works once.")] = False,
    passphrase_file: PassphraseFile = None,
) -> None:
    """Open the folder's own pages in a browser: the same steps as by commands.

    They are on loopback alone, for the one browser that opens the link first. Nothing
    is sent from them. Ctrl-C closes them.

    Example: datacollab desk -C hospital-a
    """
    with reported(False) as report:
        for package in ("jinja2", "starlette", "python_multipart", "uvicorn"):
            require(package, "desk")
        from ..desk.web import Session, bound_socket, door_page, serve

        passphrase = passphrase_for(folder, passphrase_file)
        bound, host = bound_socket(port)
        # Interrupted in order from the first line on: who reads it may press the keys at once.
        with bound, suppress(KeyboardInterrupt), ExitStack() as stack:
            session = Session(host)
            app = _app(folder, passphrase, session)
            report.line(f"The desk of {folder.absolute()} is open, on this machine alone. This link works once:")
            report.line(f"  {session.link}")
            report.line("Ctrl-C closes it.")
            if not no_browser:
                page = stack.enter_context(door_page(session, folder)).absolute().as_uri()
                # A browser of the terminal ends when its user does, and the desk has to answer it meanwhile.
                threading.Thread(target=webbrowser.open, args=(page,), daemon=True).start()
            serve(app, bound, folder)
        report.line("The desk is closed.")


def _app(folder: Path, passphrase: str | None, session: Session) -> ASGIApp:
    """The desk of the role that the folder's key has."""
    if _is_analysts(folder):
        from ..desk.analyst import AnalystDesk, analyst_app

        return analyst_app(AnalystDesk(folder, passphrase=passphrase), session)
    from ..desk.party import PartyDesk, party_app

    return party_app(PartyDesk(folder, passphrase=passphrase), session)


def _is_analysts(folder: Path) -> bool:
    from ..bundle import KeyFile
    from ..exchange.project import load_project

    project = folder / "project.toml"
    return project.is_file() and KeyFile.read(folder / "keys.json").public == load_project(project).analyst
