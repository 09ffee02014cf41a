"""Files that are carried, the work of every remote on them, and a folder's memory of a remote."""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Container, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from ..agreement import Project, load_project, read_project
from ..bundle import (
    Envelope,
    KeyFile,
    PublicKey,
    canonical_json,
    open_regular,
    parse_json,
    read_envelope,
    write_atomically,
)
from ..errors import ExchangeError

AGREEMENT = "agreement"
"""Name of the project file in listings; it is no bundle."""


@dataclass(frozen=True)
class Kind:
    """A kind of file: its name, its suffix, the kind of its bundle, and who sends it to whom.

    Roles are "owner", "analyst", "party" (the one that the bundle names) or "parties" (all of them).
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
        Kind("round", ".dcround", "datacollab.round", "analyst", "parties"),
        Kind("model", ".dcmodel", "datacollab.model", "analyst", "party"),
        Kind("sums-model", ".dcmodel", "datacollab.sums-model", "analyst", "party"),
        Kind("answers", ".dcanswers", "datacollab.answers", "analyst", "party"),
    )
}
"""Kinds by their names."""


def kind_of(bundle: str) -> Kind | None:
    """Return the kind of file for a bundle; None if it is not carried."""
    return next((kind for kind in KINDS.values() if kind.bundle == bundle), None)


def project_of(text: bytes, what: str) -> Project:
    """Read a project file, and verify that the owner it names has signed it; errors have the name that is given."""
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
    """A bundle's signer, recipients and date (by the sender's clock), checked against the project.

    ``party`` is the party that it is from, or for; None for an anchor.  Only its recipients can read a sealed one.
    """

    kind: Kind
    sender: PublicKey
    recipients: tuple[PublicKey, ...]
    party: str | None
    created: datetime
    sealed: bool

    @property
    def file_name(self) -> str:
        """Return its name in a folder."""
        return f"{self.party or self.kind.name}{self.kind.suffix}"


def read_address(bundle: Envelope, project: Project, what: str) -> Addressed:
    """Check that a verified bundle belongs to a project, and is signed by the member whose part it is to make it.

    It raises WRONG_KIND, PROJECT_HASH_MISMATCH, NOT_A_MEMBER, SIGNATURE_MISSING, SIGNATURE_INVALID or
    BUNDLE_MALFORMED.
    """
    kind = kind_of(bundle.kind)
    if kind is None:
        raise ExchangeError(
            "WRONG_KIND", f"Expected one of {', '.join(KINDS)}; {what} is {bundle.kind}, which is not carried."
        )
    # Files of one version of a project say nothing under the rules of another.
    if bundle.facts.get("project_digest") != project.digest:
        raise ExchangeError(
            "PROJECT_HASH_MISMATCH",
            f"{what} was made for another version of project {project.name!r} than {project.fingerprint}. Compare "
            "`datacollab project show` on both sides, and have it made again.",
        )
    party = None
    if kind.recipient != "parties":
        party = _party(bundle, project, what)
    sender = _keys(kind.sender, project, party)[0]
    if bundle.signer is None:
        raise ExchangeError("SIGNATURE_MISSING", f"{what} is not signed. Ask the sender for a signed file.")
    # The project names who makes each kind of file; a party's share is no other party's.
    if bundle.signer != sender:
        raise ExchangeError(
            "SIGNATURE_INVALID",
            f"{what} is signed by {bundle.signer.fingerprint}; the project wants {sender.fingerprint} for it. Do not "
            "use it, and ask the sender by another way.",
        )
    recipients = _keys(kind.recipient, project, party)
    is_sealed = bundle.members.keys() == {_SEALED}
    return Addressed(kind, sender, recipients, party, _date_of(bundle, what), is_sealed)


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


def _date_of(bundle: Envelope, what: str) -> datetime:
    name = "sealed_at" if bundle.kind == KINDS["anchor"].bundle else "created"
    try:
        date = datetime.fromisoformat(bundle.facts.get(name))  # type: ignore[arg-type]
        if date.utcoffset() is None:  # Times of different places could not be compared.
            raise ValueError
    except (TypeError, ValueError):
        raise ExchangeError("BUNDLE_MALFORMED", f"{what} does not say when it was made. Have it sent again.") from None
    return date


INBOX = "inbox"
PROJECT_FILE = "project.toml"


@dataclass(frozen=True)
class MemberFolder:
    """A folder of a party, an analyst or an owner, and its holder's key.

    ``project`` is its project, or one that came and is not joined yet; None before that.  ``coming`` is a later
    revision in the inbox that the folder has not joined yet.
    """

    path: Path
    key: PublicKey
    project: Project | None
    project_file: Path | None
    coming: Project | None = None

    @classmethod
    def at(cls, path: Path, files: Sequence[Path] = ()) -> MemberFolder:
        """Look at a folder that holds keys; a project file among ``files`` counts before its own."""
        path = Path(path)
        key = KeyFile.read(path / "keys.json").public
        named = [file for file in files if file.suffix == ".toml"]
        places = named or [place for place in (path / PROJECT_FILE, path / INBOX / PROJECT_FILE) if place.is_file()]
        if not places:
            return cls(path, key, None, None)
        # A project that came and was not joined counts only if there is no other: joining is a decision.
        project = load_project(places[0])
        coming = None
        if not named and len(places) > 1:
            later = load_project(places[1])
            if later.owner == project.owner and later.revision > project.revision:
                coming = later
        return cls(path, key, project, places[0], coming)

    @property
    def agreed(self) -> Project:
        """Return the project, or raise PROJECT_MISSING."""
        if self.project is None:
            raise ExchangeError(
                "PROJECT_MISSING",
                f"{self.path} has no project yet. Run `datacollab remote pull` when the owner has sent it; an owner "
                "names the file: datacollab remote push project.toml.",
            )
        return self.project

    def version(self, digest: object) -> Project:
        """Return the revision of the project that has a digest; the folder's own if none has."""
        if self.coming is not None and self.coming.digest == digest:
            return self.coming
        return self.agreed

    @property
    def versions(self) -> tuple[Project, ...]:
        """Return the folder's own revision, and one that is to be joined."""
        if self.coming is None:
            return (self.agreed,)
        return self.agreed, self.coming

    @property
    def party(self) -> str | None:
        """Return the party that has the key, if one has."""
        if self.project is None:
            return None
        return next((name for name, key in self.project.parties.items() if key == self.key), None)

    @property
    def is_owner(self) -> bool:
        """Return whether the key is the owner's."""
        return self.project is not None and self.project.owner == self.key

    @property
    def is_analyst(self) -> bool:
        """Return whether the key is the analyst's."""
        return self.project is not None and self.project.analyst == self.key

    @property
    def inbox(self) -> Path:
        """Return the folder of files that came."""
        return self.path / INBOX


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A file at a remote, as the remote describes it, unchecked.

    Sender and recipient are fingerprints; no recipient if the kind says it.  A withdrawn file has only its entry left.
    ``project`` is the digest of its project file, if the remote says it, and ``is_current`` whether that is the
    remote's current one.
    """

    sha256: str
    kind: str
    size: int
    sender: str
    recipient: str | None = None
    withdrawn: bool = False
    project: str | None = None
    is_current: bool = True

    def is_for(self, folder: MemberFolder) -> bool:
        """Return whether a member working in the folder should have it."""
        if self.kind not in KINDS:
            return False  # of a later version of this program
        recipient = KINDS[self.kind].recipient
        if recipient == "analyst":
            return folder.is_analyst
        if recipient == "parties":
            return folder.party is not None
        return recipient == "party" and folder.party is not None and self.recipient == folder.key.fingerprint


@dataclass(frozen=True, kw_only=True)
class RemoteStatus:
    """The state of a project, as the remote sees it; ``project`` is its name, None before there is an agreement.

    ``revision``, ``deadline`` and ``quorum`` are None if a hub names a project file that the folder has not.
    ``shared``, ``missing`` and ``waiting`` are the parties whose share is there, whose is not, and that did not fetch
    a file for them yet; ``now`` is the remote's clock.  ``rounds`` are further rounds that the analyst has asked for:
    if there are any, ``shared`` and ``missing`` are about answers to the last request.
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
    rounds: int = 0


@dataclass(frozen=True)
class Parcel(Addressed):
    """A file that this folder may send, with its digest and size as they were checked."""

    path: Path
    sha256: str
    size: int
    project: Project

    @property
    def recipient(self) -> str | None:
        """The fingerprint of the one party that it is for; None if its kind says it."""
        if self.kind.recipient != "party":
            return None
        return self.recipients[0].fingerprint

    def piece(self, offset: int, most: int) -> bytes:
        """Read bytes of the file anew; the hash shows the receiver that they are those that were checked."""
        with open_regular(self.path) as file:
            file.seek(offset)
            return file.read(most)


def parcel_of(path: Path, folder: MemberFolder) -> Parcel:
    """Read a file, and check that it is whole and of this project, and that this folder's key has signed it.

    It raises codes of the kind "verification", NOT_A_MEMBER or TOO_LARGE.
    """
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            envelope = read_envelope(file, size, what=str(path))
            file.seek(0)
            # Of the same open file, so that the bytes that were checked are those that are sent.
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ExchangeError(
            "BUNDLE_MALFORMED", f"{path} cannot be read ({error.strerror}). Look at the file and its permissions."
        ) from None
    address = read_address(envelope, folder.agreed, str(path))
    # A remote would refuse it: only who has made a file may send it.
    if address.sender != folder.key:
        raise ExchangeError(
            "NOT_A_MEMBER",
            f"{path} is signed by {address.sender.fingerprint}, and the key of {folder.path} is "
            f"{folder.key.fingerprint}. Send it from the folder that it was made in.",
        )
    return Parcel(**vars(address), path=path, sha256=sha256, size=size, project=folder.agreed)


KEPT = ".remotes"
"""Folder of memories; nothing in it is secret."""

_VERSION = 1


@dataclass(frozen=True)
class Kept:
    """A folder's memory of a remote: files by SHA-256, and the end of the log that it saw last.

    ``fetched`` came before, and do not come again after they were used and removed. ``expected`` are at the remote from
    here though its log has not shown them yet; ``shown`` are those that it has. ``withdrawn`` were taken back, and are
    not sent again without being named. ``owed`` and ``agreed`` are as the log says: files for this folder under the
    current project file, and the digest of that. ``seq`` and ``head`` are number and digest of its last entry.
    """

    fetched: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    withdrawn: tuple[str, ...] = ()
    owed: tuple[str, ...] = ()
    agreed: str = ""
    seq: int = 0
    head: str = ""

    @classmethod
    def read(cls, folder: Path, name: str) -> Kept:
        """Return the memory of the remote of this name, empty if there is no file; raise STATE_DAMAGED."""
        path = _path(folder, name)
        try:
            memory = parse_json(path.read_bytes(), what=str(path))
            if memory.pop("version") != _VERSION or memory.keys() != asdict(cls()).keys():
                raise ValueError
            lists = {name: tuple(memory[name]) for name in ("fetched", "expected", "shown", "withdrawn", "owed")}
            kept = cls(**lists, agreed=memory["agreed"], seq=memory["seq"], head=memory["head"])
            texts = all(isinstance(each, str) for each in (*chain(*lists.values()), kept.agreed, kept.head))
            if not texts or type(kept.seq) is not int:
                raise ValueError
        except FileNotFoundError:
            return cls()
        # Not taken for empty: that would hide a log that was cut.
        except (AttributeError, KeyError, TypeError, ValueError):
            raise ExchangeError(
                "STATE_DAMAGED",
                f"{path} is not as it was written. Restore it from a backup; without it, files come once more, and "
                "nothing shows that the hub's log continues.",
            ) from None
        return kept

    def write(self, folder: Path, name: str) -> Kept:
        """Write it to the folder."""
        path = _path(folder, name)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write_atomically(path, canonical_json({**asdict(self), "version": _VERSION}), mode=0o600)
        return self

    def having(self, sha256: str) -> Kept:
        """Add a file that came."""
        if sha256 in self.fetched:
            return self
        return replace(self, fetched=(*self.fetched, sha256))

    def expecting(self, sha256: str) -> Kept:
        """Add a file that the remote has from here."""
        expected = self.expected
        if sha256 not in (*expected, *self.shown):
            expected = (*expected, sha256)
        # A file that is sent again is no longer taken back.
        return replace(self, expected=expected, withdrawn=tuple(each for each in self.withdrawn if each != sha256))

    def without(self, sha256: str) -> Kept:
        """Add a file that was taken back."""
        if sha256 in self.withdrawn:
            return self
        return replace(self, withdrawn=(*self.withdrawn, sha256))


def forget(folder: Path, name: str) -> None:
    """Remove the memory of a remote."""
    _path(folder, name).unlink(missing_ok=True)


def _path(folder: Path, name: str) -> Path:
    return folder / KEPT / f"{name}.json"


class Tell(Protocol):
    """A callable that takes the current step, and the share of it that is done, from 0 to 1."""

    def __call__(self, step: str, share: float | None = None) -> None: ...


def silent(step: str, share: float | None = None) -> None:
    """Ignore the step."""


class Remote(ABC):
    """A place through which files of one project go; it opens none of them, and nothing it says is trusted."""

    url: str
    """Shown in error messages."""
    has_log: bool = False
    """Whether it keeps a log that `witness` reads."""
    stops: frozenset[str] = frozenset({"REMOTE_UNREACHABLE"})
    """Codes of errors that would meet each of the other files, too."""

    @abstractmethod
    def list(self, folder: MemberFolder) -> Sequence[Entry]:
        """Return the project's files for this folder or from it, the oldest first if that is known."""

    @abstractmethod
    def send(self, parcel: Parcel, *, tell: Tell = silent) -> None:
        """Put a file there, whole or not at all; continue an interrupted transfer if possible.

        It raises ALREADY_SHARED, DEADLINE_PASSED, REMOTE_UNREACHABLE, and other refusals of the remote.
        """

    @abstractmethod
    def fetch(self, entry: Entry, part: Path, *, folder: MemberFolder, tell: Tell = silent) -> None:
        """Write a file's bytes to `part`, after those that it holds already; the caller checks them.

        It raises REMOTE_UNREACHABLE, TOO_LARGE, and other refusals of the remote.
        """

    @abstractmethod
    def status(self, folder: MemberFolder) -> RemoteStatus:
        """Return the state of the project."""

    @abstractmethod
    def agreement(self, folder: MemberFolder) -> bytes | None:
        """Return the project file that lies there, unchecked; None if there is none for this folder."""

    @abstractmethod
    def agree(self, project: Project, text: bytes) -> None:
        """Put the project file there; its owner's signature is checked."""

    @abstractmethod
    def withdraw(self, entry: Entry, *, folder: MemberFolder) -> None:
        """Take back a file of one's own; members who have fetched it keep it."""

    def witness(self, kept: Kept, folder: MemberFolder) -> Kept:
        """Read the remote's log from the last entry seen, and return the memory after it; a store has none.

        It raises LOG_BROKEN if the log does not go on from there.
        """
        return kept

    def check_given(  # noqa: B027
        self, folder: MemberFolder, before: Kept, seen: Kept, refused: Container[str]
    ) -> None:
        """Check the files of a pull against the remote's log; raise if it withholds some that its log has.

        ``folder`` is that after the pull, ``before`` the memory before it, and ``seen`` the one after it and a look
        at the log. ``refused`` has the SHA-256 of refused files, or "agreement": the caller reports these.
        """

    def close(self) -> None:  # noqa: B027
        """Close connections."""
