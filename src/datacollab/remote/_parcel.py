"""A file on its way out, checked before it leaves."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from ..bundle import open_regular, read_envelope
from ..errors import ExchangeError
from ..exchange.project import Project
from ._addressed import addressed
from ._folder import Folder
from ._kinds import Kind

__all__ = ["Parcel", "parcel_of"]


@dataclass(frozen=True, kw_only=True)
class Parcel:
    """A file that this folder may send.

    Attributes
    ----------
    path : Path
    sha256 : str
        Of its bytes, as they were checked.
    size : int
    kind : Kind
    project : Project
    sender, recipient : str or None
        Fingerprints; no recipient where the kind says who it is.
    party : str or None
        Whom it is from, or for; None of an anchor.
    sealed : bool
        Whether only its recipients can read it.
    """

    path: Path
    sha256: str
    size: int
    kind: Kind
    project: Project
    sender: str
    recipient: str | None
    party: str | None
    sealed: bool

    def piece(self, offset: int, most: int) -> bytes:
        """Bytes of the file, read anew; who gets all of them sees by the hash that they are those that were checked."""
        with open_regular(self.path) as file:
            file.seek(offset)
            return file.read(most)


def parcel_of(path: Path, folder: Folder) -> Parcel:
    """Read a file, and check that it is whole and of this project, and that this folder's key has signed it.

    Parameters
    ----------
    path : Path
    folder : Folder

    Raises
    ------
    ExchangeError
        Of the kind "verification", NOT_A_MEMBER or TOO_LARGE.
    """
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            envelope = read_envelope(file, size, what=str(path))
            file.seek(0)
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ExchangeError(
            "BUNDLE_MALFORMED", f"{path} cannot be read ({error.strerror}). Look at the file and its permissions."
        ) from None
    found = addressed(envelope, folder.agreed, str(path))
    if found.sender != folder.key:
        raise ExchangeError(
            "NOT_A_MEMBER",
            f"{path} is signed by {found.sender.fingerprint}, and the key of {folder.path} is "
            f"{folder.key.fingerprint}. Send it from the folder that it was made in.",
        )
    return Parcel(
        path=path,
        sha256=sha256,
        size=size,
        kind=found.kind,
        project=folder.agreed,
        sender=found.sender.fingerprint,
        recipient=found.recipients[0].fingerprint if found.kind.recipient == "party" else None,
        party=found.party,
        sealed=found.sealed,
    )
