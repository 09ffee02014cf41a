"""Bundles: a manifest, what was signed of it, and members in a container; whole, or read without their members."""

from __future__ import annotations

import hashlib
import io
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Self

from ..errors import ExchangeError
from ._atomic import write_atomically
from ._container import (
    MANIFEST,
    MAX_MEMBERS,
    MEMBER_NAME,
    SIGNATURE,
    Limits,
    Pieces,
    read_container,
    walk_container,
    write_container,
)
from ._json import canonical_json, digest, parse_json
from ._keys import KeyPair, PublicKey
from ._opening import open_regular

__all__ = ["Bundle", "Envelope", "SignedFile", "pack", "read_envelope", "unpack"]

KINDS = (
    "datacollab.share",
    "datacollab.model",
    "datacollab.answers",
    "datacollab.anchor",
    "datacollab.party-state",
    "datacollab.collaboration",
    "datacollab.masked-sum",
    "datacollab.sums-model",
    "datacollab.withdrawal",
)
"""Kinds of bundles."""

FORMAT_VERSION = 1
"""The one version of all their formats."""

_KEYS = {"format", "format_version", "facts", "members", "signer"}
_SHA256 = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class Manifest:
    """See the module.

    Attributes
    ----------
    kind : str
    facts : dict of str to object
    members : dict of str to (int, str)
        Bytes and SHA-256 of each.
    signer : PublicKey or None
    """

    kind: str
    facts: dict[str, Any]
    members: dict[str, tuple[int, str]]
    signer: PublicKey | None

    def to_bytes(self) -> bytes:
        """The one spelling."""
        members = {name: {"bytes": size, "sha256": sha256} for name, (size, sha256) in self.members.items()}
        return canonical_json(
            {
                "format": self.kind,
                "format_version": FORMAT_VERSION,
                "facts": self.facts,
                "members": members,
                "signer": None if self.signer is None else self.signer.text,
            }
        )

    @classmethod
    def describing(
        cls, kind: str, facts: Mapping[str, Any], members: Mapping[str, bytes], signer: PublicKey | None
    ) -> Manifest:
        """Of something about to be written.

        Raises
        ------
        ValueError
            When the kind is unknown, or a member's name is none.
        """
        if kind not in KINDS:
            raise ValueError(f"Unknown kind {kind!r}; one of {', '.join(KINDS)} is wanted.")
        wrong = sorted(name for name in members if not _is_member_name(name))
        if wrong or len(members) > MAX_MEMBERS:
            raise ValueError(f"Not what members of a bundle can be called, or too many: {wrong}.")
        described = {name: (len(members[name]), digest(members[name])) for name in sorted(members)}
        return cls(kind, dict(facts), described, signer)

    @classmethod
    def from_bytes(cls, data: bytes, *, kind: str | None, what: str) -> Manifest:
        """Read a manifest of unknown origin.

        Raises
        ------
        ExchangeError
            ``WRONG_KIND``, ``FORMAT_TOO_NEW``, ``BUNDLE_MALFORMED``.
        """
        value = parse_json(data, what=f"{what}: {MANIFEST}")
        if not isinstance(value, dict) or not isinstance(value.get("format"), str):
            raise _malformed(what)
        _check_format(value["format"], value.get("format_version"), kind, what)
        if value.keys() != _KEYS or not isinstance(value["facts"], dict):
            raise _malformed(what)
        signer = value["signer"]
        if not (signer is None or isinstance(signer, str)):
            raise _malformed(what)
        try:
            key = None if signer is None else PublicKey.from_text(signer)
        except ExchangeError:
            raise _malformed(what) from None
        members = _members(value["members"], what)
        return cls(value["format"], value["facts"], members, key)


def _is_member_name(name: str) -> bool:
    return name != MANIFEST and MEMBER_NAME.fullmatch(name) is not None


def _check_format(found: str, version: object, wanted: str | None, what: str) -> None:
    if found not in KINDS or wanted not in (None, found):
        # What a file calls itself is the sender's text; only names of this program are repeated.
        is_ = found if found in KINDS else "of a kind that this version does not know"
        raise ExchangeError(
            "WRONG_KIND", f"{what} is {is_}; {wanted or ' or '.join(KINDS)} is wanted. Give the right file."
        )
    if type(version) is not int or version < 1:
        raise _malformed(what)
    if version != FORMAT_VERSION:
        raise ExchangeError(
            "FORMAT_TOO_NEW",
            f"{what} has format version {version}; this program reads version {FORMAT_VERSION} of {found}. Upgrade "
            "datacollab, then read it again.",
        )


def _members(value: object, what: str) -> dict[str, tuple[int, str]]:
    if not isinstance(value, dict) or len(value) > MAX_MEMBERS:
        raise _malformed(what)
    members = {}
    for name, entry in value.items():
        if not (_is_member_name(name) and isinstance(entry, dict) and entry.keys() == {"bytes", "sha256"}):
            raise _malformed(what)
        size, sha256 = entry["bytes"], entry["sha256"]
        if type(size) is not int or not isinstance(sha256, str) or not _SHA256.fullmatch(sha256):
            raise _malformed(what)
        members[name] = (size, sha256)
    return members


def _malformed(what: str) -> ExchangeError:
    return ExchangeError(
        "BUNDLE_MALFORMED", f"{what} has a manifest that does not say what it has to say. Have it sent again."
    )


def check_size(manifest: bytes, limits: Limits) -> None:
    """Raise ``TOO_LARGE`` for a manifest that no reader would take."""
    if len(manifest) > limits.manifest_bytes:
        raise ExchangeError(
            "TOO_LARGE", f"The facts take {len(manifest)} bytes, {limits.manifest_bytes} are allowed. Say less."
        )


SIGNED = b"datacollab bundle 1\n"
"""What a signed manifest begins with, so that the signature is of no use elsewhere."""


def check_order(names: Sequence[str], what: str) -> None:
    """Refuse another order than: the manifest, the signature where there is one, and the rest by name."""
    order = [name for name in (MANIFEST, SIGNATURE) if name in names]
    if list(names) != order + sorted(set(names) - set(order)):
        raise ExchangeError("BUNDLE_MALFORMED", f"{what} has its parts in another order. Have it sent again.")


def check_members(manifest: Manifest, members: Mapping[str, tuple[int, str]], what: str) -> None:
    """Refuse members that are not those that the manifest lists, with these sizes and hashes."""
    if manifest.members.keys() != members.keys():
        raise ExchangeError("BUNDLE_MALFORMED", f"{what} lacks parts, or has others than it lists. Have it sent again.")
    for name, described in members.items():
        if manifest.members[name] != described:
            raise ExchangeError("HASH_MISMATCH", f"{what}: {name} was changed on its way. Have it sent again.")


def check_signature(
    manifest: Manifest, data: bytes, signature: bytes | None, signed_by: PublicKey | None, what: str
) -> None:
    """Refuse a signature that is missing, does not fit, or is somebody else's."""
    signer = manifest.signer
    if signature is None and (signer is not None or signed_by is not None):
        raise ExchangeError("SIGNATURE_MISSING", f"{what} is not signed. Ask the sender for a signed file.")
    if signature is None:
        return
    if signer is None:
        raise ExchangeError("BUNDLE_MALFORMED", f"{what} has a signature but no signer. Have it sent again.")
    try:
        signer.verify(signature, SIGNED + data)
    except ExchangeError as error:
        raise ExchangeError(error.code, f"{what}: {error}") from None
    if signed_by is not None and signer != signed_by:
        raise ExchangeError(
            "SIGNATURE_INVALID",
            f"{what} is signed by {signer.fingerprint}; {signed_by.fingerprint} is wanted. Do not use the file; ask "
            "the sender by another way.",
        )


@dataclass(frozen=True)
class Envelope:
    """A bundle that was read and verified as by `unpack`, without its members.

    Attributes
    ----------
    kind : str
    facts : dict of str to object
    members : dict of str to (int, str)
        Bytes and SHA-256 of each.
    signer : PublicKey or None
        Whose valid signature it carries.
    digest : str
        The identity of the bundle.
    """

    kind: str
    facts: dict[str, Any]
    members: dict[str, tuple[int, str]]
    signer: PublicKey | None
    digest: str


def read_envelope(
    stream: BinaryIO, size: int, *, signed_by: PublicKey | None = None, limits: Limits | None = None, what: str
) -> Envelope:
    """Verify all of a bundle of unknown origin, in memory for its manifest alone.

    Parameters
    ----------
    stream : binary file
    size : int
        Bytes of the file.
    signed_by : PublicKey, optional
        Who has to have signed it.
    limits : Limits, optional
    what : str
        What an error calls the bundle.

    Raises
    ------
    ExchangeError
        As `unpack`.
    """
    kept: dict[str, bytes] = {}
    members: dict[str, tuple[int, str]] = {}
    order: list[str] = []

    def take(name: str, pieces: Pieces) -> None:
        order.append(name)
        if name in (MANIFEST, SIGNATURE):
            kept[name] = pieces.whole()
        else:
            members[name] = _described(pieces)

    walk_container(stream, size, take, limits=limits or Limits(), what=what)
    check_order(order, what)
    if MANIFEST not in kept:
        raise ExchangeError("BUNDLE_MALFORMED", f"{what} has no {MANIFEST}. Have it sent again.")
    manifest = Manifest.from_bytes(kept[MANIFEST], kind=None, what=what)
    check_members(manifest, members, what)
    check_signature(manifest, kept[MANIFEST], kept.get(SIGNATURE), signed_by, what)
    return Envelope(manifest.kind, manifest.facts, members, manifest.signer, digest(kept[MANIFEST]))


def _described(pieces: Pieces) -> tuple[int, str]:
    size, sha256 = 0, hashlib.sha256()
    for piece in pieces:
        size += len(piece)
        sha256.update(piece)
    return size, sha256.hexdigest()


@dataclass(frozen=True)
class Bundle:
    """A bundle that was read and verified.

    Attributes
    ----------
    kind : str
    facts : dict of str to object
        What JSON can hold.
    members : dict of str to bytes
    signer : PublicKey or None
        Whose valid signature it carries.
    digest : str
        SHA-256 of the manifest, which names everything else: the identity of the bundle.
    """

    kind: str
    facts: dict[str, Any]
    members: dict[str, bytes] = field(repr=False)
    signer: PublicKey | None
    digest: str


def pack(kind: str, facts: Mapping[str, Any], members: Mapping[str, bytes], *, key: KeyPair | None = None) -> bytes:
    """Put a bundle together; equal contents give equal bytes.

    Parameters
    ----------
    kind : str
        As ``datacollab.share``.
    facts : mapping of str to object
        What JSON can hold.
    members : mapping of str to bytes
        Names of small letters, digits, dots, hyphens and underscores.
    key : KeyPair, optional
        Who signs.

    Raises
    ------
    ValueError, TypeError
        When the kind, a name or the facts cannot be written.
    ExchangeError
        ``TOO_LARGE``, when no reader would take it.

    Examples
    --------
    >>> key = KeyPair.generate()
    >>> data = pack("datacollab.share", {"party": "north"}, {"rows.bin": b"..."}, key=key)
    >>> unpack(data, signed_by=key.public).facts
    {'party': 'north'}
    """
    manifest = Manifest.describing(kind, facts, members, None if key is None else key.public).to_bytes()
    limits = Limits()
    check_size(manifest, limits)
    parse_json(manifest, what="The facts")
    signature = {} if key is None else {SIGNATURE: key.sign(SIGNED + manifest)}
    if sum(map(len, members.values())) > limits.total_bytes - 2 * limits.manifest_bytes:
        raise ExchangeError("TOO_LARGE", f"The members take more than {limits.total_bytes} bytes. Send fewer rows.")
    return write_container({MANIFEST: manifest, **signature, **{name: members[name] for name in sorted(members)}})


def unpack(
    source: bytes | Path,
    *,
    kind: str | None = None,
    signed_by: PublicKey | None = None,
    limits: Limits | None = None,
    what: str | None = None,
) -> Bundle:
    """Read a bundle of unknown origin, and verify all of it.

    Parameters
    ----------
    source : bytes or Path
    kind : str, optional
        The one wanted.
    signed_by : PublicKey, optional
        Who has to have signed it.  Without, a signature is verified where there is one.
    limits : Limits, optional
    what : str, optional
        What an error calls the bundle.  By default its path, where it is read from one.

    Raises
    ------
    ExchangeError
        And nothing else, whatever the bytes: ``BUNDLE_MALFORMED`` (also a file that cannot be read), ``TOO_LARGE``,
        ``HASH_MISMATCH``, ``WRONG_KIND``, ``FORMAT_TOO_NEW``, ``SIGNATURE_INVALID``, ``SIGNATURE_MISSING``.
    """
    what = what or ("The bundle" if isinstance(source, bytes) else str(source))
    members = _read(source if isinstance(source, bytes) else Path(source), limits or Limits(), what)
    manifest_bytes = members.pop(MANIFEST, None)
    if manifest_bytes is None:
        raise ExchangeError("BUNDLE_MALFORMED", f"{what} has no {MANIFEST}. Have it sent again.")
    manifest = Manifest.from_bytes(manifest_bytes, kind=kind, what=what)
    signature = members.pop(SIGNATURE, None)
    check_members(manifest, {name: (len(data), digest(data)) for name, data in members.items()}, what)
    check_signature(manifest, manifest_bytes, signature, signed_by, what)
    return Bundle(manifest.kind, manifest.facts, members, manifest.signer, digest(manifest_bytes))


def _read(source: bytes | Path, limits: Limits, what: str) -> dict[str, bytes]:
    """The members, the manifest first, the signature where there is one second, and the rest by name."""
    try:
        if isinstance(source, bytes):
            members = read_container(io.BytesIO(source), len(source), limits=limits, what=what)
        else:
            with open_regular(source) as file:
                members = read_container(file, os.fstat(file.fileno()).st_size, limits=limits, what=what)
    except FileNotFoundError:
        raise ExchangeError("BUNDLE_MALFORMED", f"{what} does not exist. Give the file that was sent.") from None
    except OSError as error:
        raise ExchangeError(
            "BUNDLE_MALFORMED", f"{what} cannot be read ({error.strerror}). Look at the file and its permissions."
        ) from None
    except MemoryError:
        raise ExchangeError("TOO_LARGE", f"{what} does not fit into memory. Check where it comes from.") from None
    check_order(list(members), what)
    return members


class SignedFile(ABC):
    """What has a file of its own: a bundle of one kind, of plain facts and bytes, signed where a key is given.

    Attributes
    ----------
    kind : str
        Of the bundle.
    """

    kind: ClassVar[str]

    @abstractmethod
    def _contents(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """Facts and members of the bundle."""

    @classmethod
    @abstractmethod
    def _from_bundle(cls, bundle: Bundle) -> Self:
        """What a bundle holds, after checks of every part."""

    def save(self, path: str | Path, *, key: KeyPair | None = None) -> None:
        """Write it to a file; whoever has the file can read it.

        Parameters
        ----------
        path : str or Path
            A file there is replaced.
        key : KeyPair, optional
            Whose signature it gets.

        Raises
        ------
        ExchangeError
            When a part has no form in files, such as classes that are neither texts nor numbers.
        """
        write_atomically(Path(path), self.to_bytes(key=key), mode=0o600)

    def to_bytes(self, *, key: KeyPair | None = None) -> bytes:
        """Return the bytes of its file; see `save`."""
        facts, members = self._contents()
        return pack(self.kind, facts, members, key=key)

    @classmethod
    def load(cls, path: str | Path, *, signed_by: PublicKey | None = None) -> Self:
        """Read what `save` wrote.

        Parameters
        ----------
        path : str or Path
        signed_by : PublicKey, optional
            Who has to have signed it.

        Raises
        ------
        ExchangeError
            When the file is damaged, not signed as wanted, or inconsistent.
        """
        return cls._from_bundle(unpack(Path(path), kind=cls.kind, signed_by=signed_by))

    @classmethod
    def from_bytes(cls, data: bytes, *, signed_by: PublicKey | None = None) -> Self:
        """Read what `to_bytes` gave; see `load`."""
        return cls._from_bundle(unpack(data, kind=cls.kind, signed_by=signed_by))
