"""``datacollab remote join`` and ``dashboard``, and for owners ``open``, ``invite``, ``requests`` and ``approve``."""

from __future__ import annotations

import html
import time
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from datacollab.cli.kit import (
    HERE,
    AsJson,
    Certificates,
    InFolder,
    Named,
    PassphraseFile,
    keys_of,
    opened,
    reported,
    working,
)
from datacollab.errors import ExchangeError

if TYPE_CHECKING:
    from datacollab.remote import RemotePlace

    from ..remote import HubRemote


@contextmanager
def hub_of(folder: Path, name: str | None, passphrase_file: Path | None) -> Iterator[tuple[RemotePlace, HubRemote]]:
    """The remote of a name, or the only one, which has to be a hub: stores have no members.

    Raises
    ------
    ExchangeError
        REMOTE_INVALID, where it is none.
    """
    from ..remote import HubRemote

    with opened(folder, name, passphrase_file) as (place, remote):
        if not isinstance(remote, HubRemote):
            raise ExchangeError(
                "REMOTE_INVALID",
                f"Remote {place.name!r} is a store ({place.url}), which has no members: the project file says who "
                "takes part. Invitations are of hubs.",
            )
        yield place, remote


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


def join(
    link: Annotated[str, typer.Argument(help="The invitation that the owner sent, a secret until used; - to type it.")],
    name: Annotated[str, Option(help="What to call the remote here.")] = "hub",
    ca: Certificates = None,
    folder: InFolder = HERE,
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Ask to join a project at a hub, with an invitation and the folder's public key.

    The owner sees the key's fingerprint, and lets it in or not. Read it to them by telephone.

    Example: datacollab remote join LINK -C hospital-b
    """
    with reported(as_json) as report, working(folder):
        import os

        from datacollab.bundle import mask_card_in
        from datacollab.remote import RemotePlace, read_places, write_places

        from ..remote import HubRemote, Link
        from ..remote import join as ask_to_join

        # Other users of the machine can list a command's words.
        given = link
        if link == "-":
            given = typer.get_text_stream("stdin").readline()
        asked = Link.of(given)
        key = keys_of(folder, passphrase_file)
        places = read_places(folder)
        certificates = None
        if ca is not None:
            # From the folder on, so that both can be moved.
            certificates = os.path.relpath(ca, folder)
        place = RemotePlace(name=name, url=asked.url, project=asked.project, ca=certificates)
        known = places.get(name)
        # The same hub and project once more is no fault: the answer may have been lost.
        if known is not None and (known.url, known.project or asked.project) != (asked.url, asked.project):
            raise ExchangeError(
                "ALREADY_THERE", f"{folder} has another remote {name!r} ({known.url}). Choose another --name."
            )
        if known is not None:
            place = replace(place, ca=place.ca or known.ca)
        remote = HubRemote(place.url, key, place.project, ca=None if place.ca is None else folder / place.ca)
        try:
            public = folder / "public.key"
            card = None
            if public.is_file():
                card = mask_card_in(public)
            ask_to_join(remote.client, asked, key, card)
        finally:
            remote.close()
        # Last: a remote that nobody asked to join would be in the way of the next attempt.
        write_places(folder, places | {name: place})
        report.facts = {"remote": name, "url": place.url, "project": place.project, "key": key.public.fingerprint}
        report.line(f"{folder}: remote {name} is {place.url}. The owner is asked to let you in.")
        report.line(f"Read them your fingerprint by telephone: {key.public.fingerprint}")
        report.line("When they have sent the project: datacollab remote pull")


def open_(
    project: Annotated[str, typer.Argument(help="What people call the project.")],
    remote: Named = None,
    folder: InFolder = HERE,
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Open a room for a project at a hub, as its owner; the hub's operator has to have allowed the key.

    Example: datacollab remote open heart -C hospital-a
    """
    with reported(as_json, unchanged="Whether the room was opened, `datacollab remote status` says.") as report:
        from datacollab.remote import read_places, write_places

        from ..remote import open_project

        with working(folder), hub_of(folder, remote, passphrase_file) as (place, hub):
            if place.project is not None:
                raise ExchangeError(
                    "ALREADY_THERE",
                    f"Remote {place.name!r} has a project already. Add the hub under another name for another project.",
                )
            opened = open_project(hub.client, project)
            write_places(folder, read_places(folder) | {place.name: replace(place, project=opened)})
        report.facts = {"remote": place.name, "project": opened}
        report.line(f"{place.url} has a room for {project}: {opened}. Next: datacollab remote invite NAME")


def invite(
    name: Annotated[str, typer.Argument(help="Name of the member in the project.")],
    role: Annotated[str, Option(help="party, analyst or auditor.")] = "party",
    days: Annotated[int, Option(min=1, max=90, help="How long the link can be used.")] = 7,
    remote: Named = None,
    folder: InFolder = HERE,
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Make a link with which one member can ask to join. Send it to them alone.

    Example: datacollab remote invite hospital-b --days 7 -C hospital-a
    """
    from ..remote import ROLES

    if role not in ROLES:
        raise typer.BadParameter(f"{role!r} is none of {', '.join(ROLES)}.", param_hint="--role")
    with reported(as_json, unchanged="A link that was made and not shown is of no use to anybody.") as report:
        from ..remote import invite as made

        with _room_of(folder, remote, passphrase_file) as (hub, project):
            link = made(hub.client, project, name, role, days)
        report.facts = {"name": name, "role": role, "days": days, "link": link}
        report.line(link)
        report.line(f"For {name} alone, who runs: datacollab remote join LINK. It works once, for {days} days.")


def requests(
    remote: Named = None, folder: InFolder = HERE, passphrase_file: PassphraseFile = None, as_json: AsJson = False
) -> None:
    """Who asks to join; their public keys are put into the folder members, for `project new`.

    Example: datacollab remote requests -C hospital-a
    """
    with reported(as_json) as report:
        from datacollab.bundle import write_atomically

        from ..remote import requests_of

        with _room_of(folder, remote, passphrase_file) as (hub, project):
            asked = requests_of(hub.client, project)
        report.facts = {"requests": []}
        for each in asked:
            # By fingerprint: a name is others' text, and could lead out of the folder.
            file = folder / "members" / f"{each.key.fingerprint}.key"
            file.parent.mkdir(mode=0o700, exist_ok=True)
            write_atomically(file, each.text.encode())
            report.facts["requests"].append(
                {
                    **{"name": each.name, "role": each.role, "state": each.state},
                    **{"fingerprint": each.key.fingerprint, "file": str(file)},
                }
            )
            report.line(f"{each.key.fingerprint}  {each.role:8} {each.name}  {each.state}  {file}")
        report.line("Have each read you their fingerprint by telephone, then: datacollab remote approve FINGERPRINT")


def approve(
    fingerprint: Annotated[str, typer.Argument(help="Of the key, as its owner read it to you.")],
    refuse: Annotated[bool, Option("--refuse", help="Do not let them in.")] = False,
    remote: Named = None,
    folder: InFolder = HERE,
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Let somebody into the project at the hub, or not.

    Example: datacollab remote approve abcd-efgh-ijkl-mnop -C hospital-a
    """
    with reported(as_json, unchanged="Look with `datacollab remote requests`.") as report:
        from ..remote import answer_request, requests_of

        with _room_of(folder, remote, passphrase_file) as (hub, project):
            asked = {each.key.fingerprint: each for each in requests_of(hub.client, project)}
            # Looked for here, among keys whose proofs were checked.
            if fingerprint not in asked:
                raise ExchangeError(
                    "NOT_A_MEMBER",
                    f"Nobody with the fingerprint {fingerprint[:40]!r} asks to join; see `datacollab remote requests`.",
                )
            answer_request(hub.client, project, fingerprint, not refuse)
        report.facts = {"fingerprint": fingerprint, "name": asked[fingerprint].name, "approved": not refuse}
        report.line(f"{asked[fingerprint].name} ({fingerprint}) is {'refused' if refuse else 'in'}.")


@contextmanager
def _room_of(folder: Path, remote: str | None, passphrase_file: Path | None) -> Iterator[tuple[HubRemote, str]]:
    """The hub and its name of the project that was opened there.

    Raises
    ------
    ExchangeError
        PROJECT_MISSING, where none was; and as of `hub_of`.
    """
    with hub_of(folder, remote, passphrase_file) as (place, hub):
        if place.project is None:
            raise ExchangeError(
                "PROJECT_MISSING", f"Remote {place.name!r} has no project yet. Open one: datacollab remote open PROJECT"
            )
        yield hub, place.project
