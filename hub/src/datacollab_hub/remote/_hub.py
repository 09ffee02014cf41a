"""A hub: a mailbox of signed files for many projects, which opens none of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from datacollab.agreement import Project
from datacollab.bundle import KeyPair
from datacollab.errors import ExchangeError
from datacollab.remote import (
    KINDS,
    Entry,
    Kept,
    MemberFolder,
    Parcel,
    Remote,
    RemoteKind,
    RemoteStatus,
    Tell,
    invalid,
    silent,
)

from ._files import download, upload
from ._http import HubClient, Patience, RefusedByHubError
from ._log import check_given, continue_log

# What a hub says becomes part of addresses and of files' names.
_SHA256 = re.compile(r"[0-9a-f]{64}")
_PROJECT = re.compile(r"[0-9a-f]{32}")
_MOST_OF_LOG = 128 * 2**20
"""Bytes of all the entries since the log was seen last: some hundred thousand."""


class HubRemote(Remote):
    """A project at a hub, for somebody with keys.

    The client does not believe the hub where it matters: files and the agreement are signed by members, and `witness`
    tells when its log does not continue the one that was seen before.

    Parameters
    ----------
    url : str
    key : KeyPair
    project : str, optional
        The hub's name of the project; without, the one is looked for that fits the folder.
    ca : Path, optional
        Certificates that are trusted besides those of the system.
    patience : Patience, optional
    transport : object, optional
        Of httpx, for tests.
    found : callable, optional
        Gets the name of the project once it was looked for.
    """

    has_log = True
    stops = Remote.stops | {"TLS_UNTRUSTED", "CLOCK_SKEW"}

    def __init__(
        self,
        url: str,
        key: KeyPair,
        project: str | None = None,
        *,
        ca: Path | None = None,
        patience: Patience | None = None,
        transport: Any = None,
        found: Callable[[str], None] | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        self.client = HubClient(url, key, ca=ca, patience=patience, transport=transport)
        self._project = project
        self._found = found

    def list(self, folder: MemberFolder) -> Sequence[Entry]:
        """As of `Remote`."""
        answer = self.client.ask("GET", f"{self._at(folder)}/files")
        entries = [_entry(each, folder) for each in answer.field("files", list)]
        found = [each for each in entries if each is not None]
        # Owners and auditors see all files, but a folder is about its own.
        return [each for each in found if each.is_for(folder) or each.sender == folder.key.fingerprint]

    def send(self, parcel: Parcel, *, tell: Tell = silent) -> None:
        """As of `Remote`; an upload that was cut goes on at the byte that the hub has."""
        upload(self.client, self._check_name(parcel.project), parcel, tell=tell)

    def fetch(self, entry: Entry, part: Path, *, folder: MemberFolder, tell: Tell = silent) -> None:
        """As of `Remote`."""
        download(self.client, self._at(folder).rpartition("/")[-1], entry, part, tell=tell)

    def status(self, folder: MemberFolder) -> RemoteStatus:
        """As of `Remote`; nothing of a project file that is not here, as nobody can say whether it is true.

        Raises
        ------
        ExchangeError
            WITHHELD, where it says another deadline, quorum or revision than the project file that it names.
        """
        said = self.client.ask("GET", self._at(folder)).json()

        def names(key: str) -> tuple[str, ...]:
            value = said.get(key)
            if not isinstance(value, list):
                return ()
            return tuple(each for each in value if isinstance(each, str))

        def one(key: str, kind: type) -> Any:
            value = said.get(key)
            # JSON's true is a number to Python.
            if isinstance(value, bool) or not isinstance(value, kind):
                return None
            return value

        status = RemoteStatus(
            project=one("name", str),
            digest=one("digest", str),
            revision=one("revision", int),
            deadline=one("deadline", str),
            quorum=one("quorum", int),
            shared=names("shared"),
            missing=names("missing"),
            waiting=names("waiting"),
            now=one("now", str),
            # Hubs of before there were rounds say nothing of them.
            rounds=one("rounds", int) or 0,
        )
        agreed = None
        if folder.project is not None:
            agreed = next((each for each in folder.versions if each.digest == status.digest), None)
        if agreed is None:
            return replace(status, revision=None, deadline=None, quorum=None)
        _check_told(status, agreed, self.url)
        return status

    def agreement(self, folder: MemberFolder) -> bytes | None:
        """As of `Remote`."""
        try:
            return self.client.ask("GET", f"{self._at(folder)}/agreement").data
        except RefusedByHubError as error:
            # By the hub's own code, as this version may not know it.
            if error.said in ("AGREEMENT_MISSING", "NOT_FOUND"):
                return None
            raise

    def agree(self, project: Project, text: bytes) -> None:
        """As of `Remote`."""
        headers = {"Content-Type": "application/toml"}
        path = f"/v1/projects/{self._check_name(project)}/agreement"
        self.client.ask("PUT", path, body=text, headers=headers, ok=(200, 201, 204))

    def withdraw(self, entry: Entry, *, folder: MemberFolder) -> None:
        """As of `Remote`; that there was a file, and who took it back when, stays."""
        self.client.ask("DELETE", f"{self._at(folder)}/files/{entry.sha256}", ok=(200, 204))

    def witness(self, kept: Kept, folder: MemberFolder) -> Kept:
        """Read the log from the last entry that was seen, and remember its end.

        Raises
        ------
        ExchangeError
            LOG_BROKEN, when it does not go on from there, or does not show a file that it accepted from here.
        """
        project = self._at(folder).rpartition("/")[-1]
        # From the last entry that was seen, which has to be there unchanged.
        start = max(0, kept.seq - 1)
        size = 0
        entries = list[Any]()
        while True:
            answer = self.client.ask("GET", f"/v1/projects/{project}/log?after={start}")
            # Letter for letter, as digests are of the text that the hub has.
            more = answer.field("entries", list, verbatim=True)
            size += len(answer.data)
            # A log without end would fill the memory.
            if not all(isinstance(each, dict) for each in more) or size > _MOST_OF_LOG:
                raise ExchangeError("REMOTE_REFUSED", f"{self.url} shows a log that cannot be. Ask its operator.")
            entries += more
            if not more:
                return continue_log(kept, entries, project, self.url, folder)
            start += len(more)

    def check_given(self, folder: MemberFolder, before: Kept, seen: Kept, refused: Container[str]) -> None:
        """As of `Remote`.

        Raises
        ------
        ExchangeError
            WITHHELD, when the log names a file for this folder that is neither given nor withdrawn, or another project
            file than the one that is given.
        """
        check_given(folder, self, before, seen, refused)

    def close(self) -> None:
        """As of `Remote`."""
        self.client.close()

    def _at(self, folder: MemberFolder) -> str:
        return f"/v1/projects/{self._project or self._find_project(folder.project)}"

    def _check_name(self, project: Project) -> str:
        return self._project or self._find_project(project)

    def _find_project(self, project: Project | None) -> str:
        """The hub's project that fits the folder's, or the only one."""
        answer = self.client.ask("GET", "/v1/projects")
        there = [each for each in answer.field("projects", list) if isinstance(each, dict)]
        # By the project file; before there is one, the only project.
        fitting = [each for each in there if project is not None and each.get("digest") == project.digest] or there
        names = [str(each.get("project")) for each in fitting]
        if len(names) != 1 or not _PROJECT.fullmatch(names[0]):
            raise ExchangeError(
                "REMOTE_INVALID",
                f"{self.url} has {len(names)} projects of this key, and which one is meant cannot be told. Join with "
                "the link that the owner sent: datacollab remote join LINK",
            )
        self._project = names[0]
        if self._found is not None:
            self._found(names[0])
        return names[0]


def _check_told(status: RemoteStatus, project: Project, url: str) -> None:
    """Check that a hub repeats the owner's signed words."""
    deadline = None
    if project.deadline is not None:
        deadline = project.deadline.isoformat()
    agreed = {"deadline": deadline, "quorum": project.fewest_parties, "revision": project.revision}
    others = [name for name, value in agreed.items() if getattr(status, name) != value]
    if others:
        raise ExchangeError(
            "WITHHELD",
            f"{url} says another {' and '.join(others)} than the project file, which its owner signed and which "
            "counts. Ask the hub's operator.",
        )


def _entry(said: Any, folder: MemberFolder) -> Entry | None:
    """An entry of the hub's list; None of kinds that this version does not know."""
    try:
        entry = Entry(
            sha256=said["sha256"],
            kind=said["kind"],
            size=said["size"],
            sender=said["sender"],
            recipient=said.get("recipient"),
            withdrawn=bool(said.get("withdrawn")),
            is_current=said.get("current") is not False,
        )
        texts = all(isinstance(each, str) for each in (entry.sha256, entry.kind, entry.sender, entry.recipient or ""))
        # Its very type, as JSON's true would pass for a size of 1.
        if not texts or not _SHA256.fullmatch(entry.sha256) or type(entry.size) is not int or entry.size < 1:
            raise ValueError
    except (KeyError, TypeError, AttributeError, ValueError):
        raise ExchangeError("REMOTE_REFUSED", "The hub lists a file that cannot be. Ask its operator.") from None
    if entry.kind not in KINDS:
        return None
    # Some hubs name parties as people do.
    named = None
    if folder.project is not None:
        named = folder.project.parties.get(entry.recipient or "")
    if named is None:
        return entry
    return replace(entry, recipient=named.fingerprint)


# What is sent to these leaves no machine, so that nobody reads along.
_HOSTS_OF_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")


class HubKind(RemoteKind):
    """Remotes at ``https://...``; on this machine alone, at ``http://...`` too."""

    def check(self, url: str, project: str | None) -> None:
        """As of `RemoteKind`.

        Raises
        ------
        ExchangeError
            REMOTE_INVALID.
        """
        parts = urlsplit(url)
        if project is not None and not _PROJECT.fullmatch(project):
            raise invalid(f"the project of {url} is no 32 hexadecimal letters")
        # A name or password in the address would end in notes and in errors.
        if not parts.hostname or parts.query or parts.fragment or parts.username:
            raise invalid("a hub's URL is https:// and the name of a machine, perhaps a port and a path")
        if parts.scheme == "http" and parts.hostname not in _HOSTS_OF_THIS_MACHINE:
            raise invalid(f"{url} is not encrypted on its way; https:// is wanted")

    def open(
        self,
        url: str,
        key: Callable[[], KeyPair],
        *,
        project: str | None,
        ca: Path | None,
        found: Callable[[str], None],
        **options: Any,
    ) -> HubRemote:
        """As of `RemoteKind`; further options are those of `HubRemote`."""
        return HubRemote(url, key(), project, ca=ca, found=found, **options)
