"""What lies at a remote, and how the project stands there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ._folder import Folder
from ._kinds import KINDS

__all__ = ["Entry", "RemoteStatus"]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A file at a remote, as the remote describes it: nothing of it is checked yet.

    Attributes
    ----------
    sha256 : str
        Of the file's bytes.
    kind : str
        A key of `KINDS`.
    size : int
        In bytes.
    sender : str
        Fingerprint.
    recipient : str or None
        Fingerprint of the party that it is for; None where the kind says it.
    withdrawn : bool
        Whether the sender has taken it back, so that only this entry is left.
    received : str or None
        When the remote got it, if it says so.
    project : str or None
        Digest of the project file that it belongs to, where the remote says so.
    is_current : bool
        Whether that is the one that holds at the remote.
    """

    sha256: str
    kind: str
    size: int
    sender: str
    recipient: str | None = None
    withdrawn: bool = False
    received: str | None = None
    project: str | None = None
    is_current: bool = True

    def is_for(self, folder: Folder) -> bool:
        """Whether somebody who works in the folder is to have it."""
        recipient = KINDS[self.kind].recipient if self.kind in KINDS else ""
        if recipient == "analyst":
            return folder.is_analyst
        if recipient == "parties":
            return folder.party is not None
        return recipient == "party" and folder.party is not None and self.recipient == folder.key.fingerprint


@dataclass(frozen=True, kw_only=True)
class RemoteStatus:
    """How a project stands, as the remote sees it.

    Attributes
    ----------
    project : str or None
        Its name; None before there is an agreement.
    digest : str or None
    revision : int or None
        None where a hub names a project file that the folder has not.
    deadline, quorum
        Likewise; no deadline where none was agreed on, either.
    shared, missing, waiting : tuple of str
        Parties whose share is there; whose is not; and for whom a model lies there that they did not fetch.
    now : str or None
        By the remote's clock, where it has one.
    facts : dict of str to object
        All that the remote said.
    """

    project: str | None = None
    digest: str | None = None
    revision: int | None = None
    deadline: str | None = None
    quorum: int | None = None
    shared: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    now: str | None = None
    facts: dict[str, Any] = field(default_factory=dict, repr=False)
