"""What is carried: kinds of files, whose they are, and what lies at a remote."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..bundle import Envelope, KeyFile, PublicKey, open_regular, read_envelope
from ..errors import ExchangeError
from ..exchange.project import Project, load_project, read_project

__all__ = [
    "AGREEMENT",
    "KINDS",
    "PROJECT_FILE",
    "Addressed",
    "Entry",
    "Folder",
    "Kind",
    "Parcel",
    "RemoteStatus",
    "addressed",
    "kind_of",
    "parcel_of",
    "project_of",
]

AGREEMENT = "agreement"
"""What listings call the project file, which is no bundle."""


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Attributes
    ----------
    name : str
        As the hub and folders of a store call it.
    suffix : str
        Of the file's name.
    bundle : str
        Kind of the bundle in it.
    sender, recipient : str
        Roles: "owner", "analyst", "party" (the one that the bundle names) or "parties" (all of them).
    """

    name: str
    suffix: str
    bundle: str
    sender: str
    recipient: str


KINDS = {
    kind.name: kind
    for kind in (
        Kind("anchor", ".dcanchor", "datacollab.anchor", "owner", "parties"),
        Kind("share", ".dcshare", "datacollab.share", "party", "analyst"),
        Kind("sums", ".dcsum", "datacollab.masked-sum", "party", "analyst"),
        Kind("model", ".dcmodel", "datacollab.model", "analyst", "party"),
        Kind("sums-model", ".dcmodel", "datacollab.sums-model", "analyst", "party"),
        Kind("answers", ".dcanswers", "datacollab.answers", "analyst", "party"),
    )
}
"""By their names."""


def kind_of(bundle: str) -> Kind | None:
    """The kind of file that a bundle is; None where it is none that is carried.

    Examples
    --------
    >>> kind_of("datacollab.model").name, kind_of("datacollab.keys")
    ('model', None)
    """
    return next((kind for kind in KINDS.values() if kind.bundle == bundle), None)


def project_of(text: bytes, what: str) -> Project:
    """Read a project file, and verify that the owner it names has signed it.

    Parameters
    ----------
    text : bytes
    what : str
        Where it came from.

    Raises
    ------
    ExchangeError
        As `load_project`.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder) / "project.toml"
        path.write_bytes(text)
        try:
            return read_project(path)[0]
        except ExchangeError as error:
            raise ExchangeError(error.code, str(error).replace(str(path), what)) from None


_SEALED = "sealed.bin"


@dataclass(frozen=True)
class Addressed:
    """What was found.

    Attributes
    ----------
    kind : Kind
    sender : PublicKey
        Who has signed it, as the project wants it.
    recipients : tuple of PublicKey
    party : str or None
        Whom it is from, or for; None of an anchor.
    created : datetime
        By the sender's clock.
    sealed : bool
        Whether only its recipients can read it.
    """

    kind: Kind
    sender: PublicKey
    recipients: tuple[PublicKey, ...]
    party: str | None
    created: datetime
    sealed: bool

    @property
    def file_name(self) -> str:
        """What it is called in a folder."""
        return f"{self.party or self.kind.name}{self.kind.suffix}"


def addressed(bundle: Envelope, project: Project, what: str) -> Addressed:
    """Check that a bundle belongs to a project, and is signed by the member whose part it is to make it.

    Parameters
    ----------
    bundle : Envelope
        Verified: whole, its signature valid.
    project : Project
    what : str
        What an error calls it.

    Raises
    ------
    ExchangeError
        WRONG_KIND, PROJECT_HASH_MISMATCH, NOT_A_MEMBER, SIGNATURE_MISSING, SIGNATURE_INVALID or BUNDLE_MALFORMED.
    """
    kind = kind_of(bundle.kind)
    if kind is None:
        raise ExchangeError(
            "WRONG_KIND", f"{what} is {bundle.kind}, which is not carried; one of {', '.join(KINDS)} is wanted."
        )
    if bundle.facts.get("project_digest") != project.digest:
        raise ExchangeError(
            "PROJECT_HASH_MISMATCH",
            f"{what} was made for another version of project {project.name!r} than {project.fingerprint}. Compare "
            "`datacollab project show` on both sides, and have it made again.",
        )
    party = None if kind.recipient == "parties" else _party(bundle, project, what)
    sender = _keys(kind.sender, project, party)[0]
    if bundle.signer is None:
        raise ExchangeError("SIGNATURE_MISSING", f"{what} is not signed. Ask the sender for a signed file.")
    if bundle.signer != sender:
        raise ExchangeError(
            "SIGNATURE_INVALID",
            f"{what} is signed by {bundle.signer.fingerprint}; the project wants {sender.fingerprint} for it. Do not "
            "use it, and ask the sender by another way.",
        )
    recipients, sealed = _keys(kind.recipient, project, party), bundle.members.keys() == {_SEALED}
    return Addressed(kind, sender, recipients, party, _created(bundle, what), sealed)


def _party(bundle: Envelope, project: Project, what: str) -> str:
    party = bundle.facts.get("party")
    if not isinstance(party, str) or party not in project.parties:
        raise ExchangeError(
            "NOT_A_MEMBER",
            f"{what} names a party that is not in project {project.name!r}; its parties are "
            f"{', '.join(project.parties)}. Ask the project's owner.",
        )
    return party


def _keys(role: str, project: Project, party: str | None) -> tuple[PublicKey, ...]:
    if role == "parties":
        return tuple(project.parties.values())
    if role == "party" and party is not None:
        return (project.parties[party],)
    return (project.owner if role == "owner" else project.analyst,)


def _created(bundle: Envelope, what: str) -> datetime:
    said = bundle.facts.get("sealed_at" if bundle.kind == KINDS["anchor"].bundle else "created")
    try:
        created = datetime.fromisoformat(said)  # type: ignore[arg-type]
        if created.utcoffset() is None:
            raise ValueError
    except (TypeError, ValueError):
        raise ExchangeError("BUNDLE_MALFORMED", f"{what} does not say when it was made. Have it sent again.") from None
    return created


INBOX, PROJECT_FILE = "inbox", "project.toml"


@dataclass(frozen=True)
class Folder:
    """A folder of a party, an analyst or an owner.

    Attributes
    ----------
    path : Path
    key : PublicKey
        Whose it is.
    project : Project or None
        That it was set up for; or one that came and it has not joined yet; None before that.
    project_file : Path or None
        Where that is.
    coming : Project or None
        A later revision in the inbox that the folder has not joined yet.
    """

    path: Path
    key: PublicKey
    project: Project | None
    project_file: Path | None
    coming: Project | None = None

    @classmethod
    def at(cls, path: Path, files: Sequence[Path] = ()) -> Folder:
        """Look at a folder that holds keys.

        Parameters
        ----------
        path : Path
        files : sequence of Path
            Named besides; a project file among them is the one that counts.

        Raises
        ------
        ExchangeError
            KEY_MISSING, PROJECT_OLDER, and what reading keys and project may raise.
        """
        path = Path(path)
        key = KeyFile.read(path / "keys.json").public
        named = [file for file in files if file.suffix == ".toml"]
        places = named or [place for place in (path / PROJECT_FILE, path / INBOX / PROJECT_FILE) if place.is_file()]
        if not places:
            return cls(path, key, None, None)
        # What came and was not joined counts only where there is nothing else: joining is a decision.
        project = load_project(places[0])
        coming = None if named or len(places) == 1 else load_project(places[1])
        return cls(path, key, project, places[0], coming if _follows(coming, project) else None)

    @property
    def agreed(self) -> Project:
        """The project.

        Raises
        ------
        ExchangeError
            PROJECT_MISSING.
        """
        if self.project is None:
            raise ExchangeError(
                "PROJECT_MISSING",
                f"{self.path} has no project yet. Run `datacollab remote pull` when the owner has sent it; an owner "
                "names the file: datacollab remote push project.toml.",
            )
        return self.project

    def version(self, digest: object) -> Project:
        """The revision of the project that has a digest; the folder's own where none has."""
        return self.coming if self.coming is not None and self.coming.digest == digest else self.agreed

    @property
    def versions(self) -> tuple[Project, ...]:
        """The folder's own revision, and one that is to be joined."""
        return (self.agreed,) if self.coming is None else (self.agreed, self.coming)

    @property
    def party(self) -> str | None:
        """The party that the key is, if it is one."""
        parties = {} if self.project is None else self.project.parties
        return next((name for name, key in parties.items() if key == self.key), None)

    @property
    def is_owner(self) -> bool:
        """Whether the key is the owner's."""
        return self.project is not None and self.project.owner == self.key

    @property
    def is_analyst(self) -> bool:
        """Whether the key is the analyst's."""
        return self.project is not None and self.project.analyst == self.key

    @property
    def inbox(self) -> Path:
        """Where what came lies."""
        return self.path / INBOX


def _follows(coming: Project | None, project: Project) -> bool:
    return coming is not None and coming.owner == project.owner and coming.revision > project.revision


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
