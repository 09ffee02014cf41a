"""``datacollab remote dashboard``: the hub's pages, in a browser that the folder's key signs in."""

from __future__ import annotations

import html
import time
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from typer import Option

from datacollab.cli.kit import HERE, AsJson, InFolder, Named, PassphraseFile, reported

from ._options import hub_of

__all__ = ["dashboard"]

_PATIENCE = 10.0
"""Seconds in which a browser has read the page that leads it on."""

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={link}">
<title>datacollab hub</title>
<p><a href="{link}">To the hub's pages</a></p>
"""


def dashboard(
    no_browser: Annotated[bool, Option("--no-browser", help="Only print the link; it works once.")] = False,
    remote: Named = None,
    folder: InFolder = HERE,
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Open the hub's pages in a browser: projects, files, the agreement and the log.

    The folder's key signs the browser in, for four hours. The pages change nothing.

    Example: datacollab remote dashboard -C hospital-a
    """
    with reported(as_json) as report:
        from ..remote import browser_link

        with hub_of(folder, remote, passphrase_file) as (place, hub):
            link = browser_link(hub.client)
        report.facts = {"remote": place.name, "url": place.url}
        if no_browser or as_json:
            report.facts["link"] = link
            report.line(link)
            report.line("It signs a browser in once, within two minutes. Give it to nobody.")
            return
        report.line(f"A browser opens the pages of {place.url}. If none does: datacollab remote dashboard --no-browser")
        with leading_page(link, folder) as page:
            webbrowser.open(page.absolute().as_uri())
            # A browser reads the page after the call has returned.
            time.sleep(_PATIENCE)


@contextmanager
def leading_page(link: str, folder: Path) -> Iterator[Path]:
    """A page on the disk that leads a browser to a secret link.

    Every user of a machine can read programs' arguments: a browser is given this page's name, which tells nothing.

    Parameters
    ----------
    link : str
    folder : Path
        Where files lie that only their owner reads.

    Yields
    ------
    Path
        Of the page, which is removed at the end.
    """
    from datacollab.bundle import write_atomically
    from datacollab.remote import KEPT

    (folder / KEPT).mkdir(mode=0o700, exist_ok=True)
    page = folder / KEPT / "dashboard.html"
    write_atomically(page, _PAGE.format(link=html.escape(link)).encode(), mode=0o600)
    try:
        yield page
    finally:
        # Nobody may have read it, and then its link still works.
        page.unlink(missing_ok=True)
