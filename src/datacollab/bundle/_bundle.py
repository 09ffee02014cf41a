"""Bundles: a manifest, its signature, and members, in a ZIP file of a single possible layout.

Nothing is compressed, so equal contents give equal files, and no file can grow when it is opened. A file that deviates
from the layout by a byte is refused, so nothing hides between members, and no reader has to guess.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import struct
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Self

from ..errors import ExchangeError
from ._data import canonical_json, digest, parse_json
from ._files import MOST_BYTES, open_regular, write_atomically
from ._keys import KeyPair, PublicKey, is_encrypted

__all__ = ["Bundle", "Envelope", "Limits", "SignedFile", "is_container", "pack", "peek", "read_envelope", "unpack"]

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
_VERSION = 1
"""The one version of all their formats."""
_SIGNED = b"datacollab bundle 1\n"
"""The beginning of a signed manifest, which makes the signature useless elsewhere."""
_MANIFEST, _SIGNATURE = "manifest.json", "SIGNATURE"
_KEYS = {"format", "format_version", "facts", "members", "signer"}
_SHA256 = re.compile("[0-9a-f]{64}")
_MEMBER_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}", re.ASCII)
_MOST_NAME, _MOST_MEMBERS, _SIGNATURE_BYTES = 64, 62, 64


@dataclass(frozen=True)
class Limits:
    """The most bytes of a bundle, of one member, and of the manifest; larger ones are refused before they are read."""

    total_bytes: int = MOST_BYTES
    member_bytes: int = MOST_BYTES
    manifest_bytes: int = 1024**2


@dataclass(frozen=True)
class Envelope:
    """A bundle that was read and verified as by `unpack`, with the size and SHA-256 of each member.

    ``signer`` is the key whose valid signature it carries. ``digest`` is the SHA-256 of the manifest, which names
    everything else: the identity of the bundle.
    """

    kind: str
    facts: dict[str, Any]
    members: dict[str, tuple[int, str]]
    signer: PublicKey | None
    digest: str


@dataclass(frozen=True)
class Bundle:
    """A bundle that was read and verified: an `Envelope` with the bytes of its members."""

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
        For JSON.
    members : mapping of str to bytes
        Names of small letters, digits, dots, hyphens and underscores.
    key : KeyPair, optional
        The signer's.

    Raises
    ------
    ValueError, TypeError, ExchangeError
        If the kind, a name or the facts cannot be written; TOO_LARGE if no reader would take it.

    Examples
    --------
    >>> key = KeyPair.generate()
    >>> data = pack("datacollab.share", {"party": "north"}, {"rows.bin": b"..."}, key=key)
    >>> unpack(data, signed_by=key.public).facts
    {'party': 'north'}
    """
    if kind not in KINDS:
        raise ValueError(f"Unknown kind {kind!r}; expected one of {', '.join(KINDS)}.")
    wrong = sorted(name for name in members if not _is_member_name(name))
    if wrong or len(members) > _MOST_MEMBERS:
        raise ValueError(f"Not what members of a bundle can be called, or too many: {wrong}.")
    contents = {
        "format": kind,
        "format_version": _VERSION,
        "facts": dict(facts),
        "members": {name: {"bytes": len(data), "sha256": digest(data)} for name, data in members.items()},
        "signer": None if key is None else key.public.text,
    }
    manifest, limits = canonical_json(contents), Limits()
    if len(manifest) > limits.manifest_bytes:
        raise ExchangeError(
            "TOO_LARGE", f"The facts take {len(manifest)} bytes, {limits.manifest_bytes} are allowed. Say less."
        )
    parse_json(manifest, what="The facts")
    if sum(map(len, members.values())) > limits.total_bytes - 2 * limits.manifest_bytes:
        raise ExchangeError("TOO_LARGE", f"The members take more than {limits.total_bytes} bytes. Send fewer rows.")
    signature = {} if key is None else {_SIGNATURE: key.sign(_SIGNED + manifest)}
    parts, entries = [], []
    for name, data in ({_MANIFEST: manifest} | signature | dict(sorted(members.items()))).items():
        entries.append((name, zlib.crc32(data), len(data)))
        parts += [_local(*entries[-1]), data]
    return b"".join([*parts, _directory(entries)])


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
        The kind that is expected.
    signed_by : PublicKey, optional
        The signer that is expected.  Without it, a signature is verified if there is one.
    limits : Limits, optional
    what : str, optional
        Name of the bundle in errors, by default its path.

    Raises
    ------
    ExchangeError
        And nothing else, for any bytes: ``BUNDLE_MALFORMED`` (also a file that cannot be read), ``TOO_LARGE``,
        ``HASH_MISMATCH``, ``WRONG_KIND``, ``FORMAT_TOO_NEW``, ``SIGNATURE_INVALID``, ``SIGNATURE_MISSING``.
    """
    what = what or ("The bundle" if isinstance(source, bytes) else str(source))
    try:
        with io.BytesIO(source) if isinstance(source, bytes) else open_regular(Path(source)) as file:
            size = len(source) if isinstance(source, bytes) else os.fstat(file.fileno()).st_size
            pieces = _walk(file, size, None, limits or Limits(), what)
            envelope, members = _verified(pieces, kind, signed_by, what, keep=True)
    except FileNotFoundError:
        raise ExchangeError("BUNDLE_MALFORMED", f"{what} does not exist. Give the file that was sent.") from None
    except OSError as error:
        raise ExchangeError(
            "BUNDLE_MALFORMED", f"{what} cannot be read ({error.strerror}). Look at the file and its permissions."
        ) from None
    except MemoryError:
        raise ExchangeError("TOO_LARGE", f"{what} does not fit into memory. Check where it comes from.") from None
    return Bundle(envelope.kind, envelope.facts, members, envelope.signer, envelope.digest)


def read_envelope(
    stream: BinaryIO, size: int, *, signed_by: PublicKey | None = None, limits: Limits | None = None, what: str
) -> Envelope:
    """Verify all of a bundle of ``size`` bytes, in memory for its manifest alone; as `unpack`, and with its errors."""
    pieces = _walk(stream, size, _PIECE, limits or Limits(), what)
    return _verified(pieces, None, signed_by, what, keep=False)[0]


def peek(stream: BinaryIO, size: int) -> tuple[str, dict[str, Any], PublicKey] | None:
    """Return kind, facts and signer at the beginning of a bundle, unchecked; None if it has none of these.

    Examples
    --------
    >>> data = pack("datacollab.share", {"party": "a"}, {}, key=KeyPair.generate())
    >>> peek(io.BytesIO(data), len(data))[:2]
    ('datacollab.share', {'party': 'a'})
    """
    try:
        # Nothing but a manifest is read.
        name, manifest = next(_walk(stream, min(size, MOST_BYTES), None, Limits(member_bytes=0), "The bundle"))
        said = parse_json(manifest, what="The manifest")
        kind, facts, signer = said["format"], said["facts"], PublicKey.from_text(said["signer"])
    except (ExchangeError, StopIteration, KeyError, TypeError, AttributeError):
        return None
    return (kind, facts, signer) if name == _MANIFEST and isinstance(kind, str) and isinstance(facts, dict) else None


def _verified(
    pieces: Iterable[tuple[str, bytes]], kind: str | None, signed_by: PublicKey | None, what: str, *, keep: bool
) -> tuple[Envelope, dict[str, bytes]]:
    """Return the envelope of a bundle and, if they are to be kept, its members."""
    kept: dict[str, bytes] = {}
    found: dict[str, tuple[int, Any]] = {}
    for name, piece in pieces:
        size, sha256 = found.get(name) or (0, hashlib.sha256())
        sha256.update(piece)
        found[name] = (size + len(piece), sha256)
        if keep or name in (_MANIFEST, _SIGNATURE):
            kept[name] = kept.get(name, b"") + piece
    order = [name for name in (_MANIFEST, _SIGNATURE) if name in found]
    if list(found) != order + sorted(set(found) - set(order)):
        raise _malformed(what, "has its parts in another order")
    manifest, signature = kept.pop(_MANIFEST, None), kept.pop(_SIGNATURE, None)
    if manifest is None:
        raise _malformed(what, f"has no {_MANIFEST}")
    envelope = _envelope(manifest, kind, what)
    if envelope.members.keys() != found.keys() - {_MANIFEST, _SIGNATURE}:
        raise _malformed(what, "lacks parts, or has others than it lists")
    for name, described in envelope.members.items():
        if described != (found[name][0], found[name][1].hexdigest()):
            raise ExchangeError("HASH_MISMATCH", f"{what}: {name} was changed on its way. Have it sent again.")
    _check_signature(envelope.signer, _SIGNED + manifest, signature, signed_by, what)
    return envelope, kept


def _envelope(manifest: bytes, kind: str | None, what: str) -> Envelope:
    fault = "has a manifest that does not say what it has to say"
    value = parse_json(manifest, what=f"{what}: {_MANIFEST}")
    if not isinstance(value, dict) or not isinstance(value.get("format"), str):
        raise _malformed(what, fault)
    found, version = value["format"], value.get("format_version")
    if found not in KINDS or kind not in (None, found):
        # The kind in a file is the sender's text; only names of this program are repeated.
        is_ = found if found in KINDS else "of a kind that this version does not know"
        raise ExchangeError(
            "WRONG_KIND", f"{what} is {is_}; expected {kind or ' or '.join(KINDS)}. Give the right file."
        )
    if type(version) is int and version > _VERSION:
        raise ExchangeError(
            "FORMAT_TOO_NEW",
            f"{what} has format version {version}; this program reads version {_VERSION} of {found}. Upgrade "
            "datacollab, then read it again.",
        )
    members = _members(value.get("members"))
    if (
        type(version) is not int
        or version != _VERSION
        or value.keys() != _KEYS
        or not isinstance(value["facts"], dict)
        or members is None
        or not isinstance(value["signer"], str | None)
    ):
        raise _malformed(what, fault)
    try:
        key = None if value["signer"] is None else PublicKey.from_text(value["signer"])
    except ExchangeError:
        raise _malformed(what, fault) from None
    return Envelope(found, value["facts"], members, key, digest(manifest))


def _is_member_name(name: str) -> bool:
    return name != _MANIFEST and _MEMBER_NAME.fullmatch(name) is not None


def _members(value: object) -> dict[str, tuple[int, str]] | None:
    """Return the members that a manifest lists; None if it is no such list."""
    if not isinstance(value, dict) or len(value) > _MOST_MEMBERS:
        return None
    members = {}
    for name, entry in value.items():
        if not (_is_member_name(name) and isinstance(entry, dict) and entry.keys() == {"bytes", "sha256"}):
            return None
        size, sha256 = entry["bytes"], entry["sha256"]
        if type(size) is not int or not isinstance(sha256, str) or not _SHA256.fullmatch(sha256):
            return None
        members[name] = (size, sha256)
    return members


def _check_signature(
    signer: PublicKey | None, signed: bytes, signature: bytes | None, signed_by: PublicKey | None, what: str
) -> None:
    """Refuse a signature that is missing, does not fit, or is somebody else's."""
    if signature is None and (signer is not None or signed_by is not None):
        raise ExchangeError("SIGNATURE_MISSING", f"{what} is not signed. Ask the sender for a signed file.")
    if signature is None:
        return
    if signer is None:
        raise _malformed(what, "has a signature but no signer")
    try:
        signer.verify(signature, signed)
    except ExchangeError as error:
        raise ExchangeError(error.code, f"{what}: {error}") from None
    if signed_by is not None and signer != signed_by:
        raise ExchangeError(
            "SIGNATURE_INVALID",
            f"{what} is signed by {signer.fingerprint}; expected {signed_by.fingerprint}. Do not use the file; ask "
            "the sender by another way.",
        )


_LOCAL, _CENTRAL, _END = struct.Struct("<4s5H3I2H"), struct.Struct("<4s6H3I5H2I"), struct.Struct("<4s4H2IH")
_LOCAL_MAGIC, _CENTRAL_MAGIC = b"PK\x03\x04", b"PK\x01\x02"
_PIECE = 2**20
_ZIP_2, _DATE = 20, 33
"""ZIP 2.0; 1 January 1980."""
_UNIX, _MODE = 3 << 8, 0o600 << 16
"""A general program unpacks files that are closed to others."""


def is_container(data: bytes) -> bool:
    """Return whether bytes begin as a bundle begins; `unpack` says whether they are one."""
    return data.startswith(_LOCAL_MAGIC)


def _walk(
    stream: BinaryIO, size: int, piece_bytes: int | None, limits: Limits, what: str
) -> Iterator[tuple[str, bytes]]:
    """Yield the name of each member with its bytes, a piece at a time or, without `piece_bytes`, at once."""
    if size > limits.total_bytes:
        raise _too_large(what, f"{size} bytes, {limits.total_bytes}")
    left = size

    def take(n_bytes: int) -> bytes:
        """Read bytes; nothing is asked for that is not there."""
        nonlocal left
        data = stream.read(n_bytes) if n_bytes <= left else b""
        if len(data) != n_bytes:
            raise _malformed(what)
        left -= n_bytes
        return data

    entries: dict[str, tuple[str, int, int]] = {}
    while not (header := take(_LOCAL.size)).startswith(_CENTRAL_MAGIC):
        if is_encrypted(header):
            raise ExchangeError("BUNDLE_MALFORMED", f"{what} is under a passphrase; nothing in it can be seen without.")
        *_, checksum, _, length, name_length, _ = _LOCAL.unpack(header)
        name = take(min(name_length, _MOST_NAME)).decode("latin-1")
        known = name == _SIGNATURE or _MEMBER_NAME.fullmatch(name)
        # Any other header that says the same is refused.
        if not known or header + name.encode() != _local(name, checksum, length):
            raise _malformed(what)
        if name in entries or len(entries) == _MOST_MEMBERS + 2:
            raise _malformed(what)
        allowed = {_MANIFEST: limits.manifest_bytes, _SIGNATURE: _SIGNATURE_BYTES}.get(name, limits.member_bytes)
        if length > allowed:
            raise _too_large(what, f"{length} bytes in {name}, {allowed}")
        if length > left:
            raise _malformed(what)
        end, found = left - length, 0
        while True:
            piece = take(min(left - end, piece_bytes or length))
            found = zlib.crc32(piece, found)
            yield name, piece
            if left == end:
                break
        if found != checksum:
            raise ExchangeError("HASH_MISMATCH", f"{what}: {name} was changed on its way. Have it sent again.")
        entries[name] = (name, checksum, length)
    directory = _directory(list(entries.values()))
    if len(header) + left != len(directory) or header + take(left) != directory:
        raise _malformed(what)


def _local(name: str, checksum: int, length: int) -> bytes:
    fields = (_LOCAL_MAGIC, _ZIP_2, 0, 0, 0, _DATE, checksum, length, length, len(name), 0)
    return _LOCAL.pack(*fields) + name.encode()


def _directory(entries: list[tuple[str, int, int]]) -> bytes:
    central, offset = b"", 0
    for name, checksum, length in entries:
        fields = (_CENTRAL_MAGIC, _UNIX | _ZIP_2, _ZIP_2, 0, 0, 0, _DATE, checksum, length, length, len(name))
        central += _CENTRAL.pack(*fields, 0, 0, 0, 0, _MODE, offset) + name.encode()
        offset += _LOCAL.size + len(name) + length
    return central + _END.pack(b"PK\x05\x06", 0, 0, len(entries), len(entries), len(central), offset, 0)


def _malformed(what: str, fault: str = "is not a whole bundle of this program") -> ExchangeError:
    return ExchangeError("BUNDLE_MALFORMED", f"{what} {fault}. Have it sent again.")


def _too_large(what: str, found: str) -> ExchangeError:
    return ExchangeError(
        "TOO_LARGE", f"{what} has {found} are allowed. Check where it comes from; raise the limit if it is right."
    )


class SignedFile(ABC):
    """A message with a file of its own: a bundle of one kind, of plain facts and bytes, signed if a key is given."""

    kind: ClassVar[str]

    @abstractmethod
    def _contents(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """Return facts and members of the bundle."""

    @classmethod
    @abstractmethod
    def _from_bundle(cls, bundle: Bundle) -> Self:
        """Return the message in a bundle, after checks of every part."""

    def save(self, path: str | Path, *, key: KeyPair | None = None) -> None:
        """Write the message to a file (no pickle), signed if a key is given; anybody who has the file can read it.

        It raises an ExchangeError if a part has no form in files, such as classes neither texts nor numbers.
        """
        write_atomically(Path(path), self.to_bytes(key=key), mode=0o600)

    def to_bytes(self, *, key: KeyPair | None = None) -> bytes:
        """Return the bytes of the file; see `save`."""
        facts, members = self._contents()
        return pack(self.kind, facts, members, key=key)

    @classmethod
    def load(cls, path: str | Path, *, signed_by: PublicKey | None = None) -> Self:
        """Read a file that `save` wrote, by the signer that is expected if one is given.

        It raises an ExchangeError if the file is damaged, signed by nobody or somebody else, or inconsistent.
        """
        return cls._from_bundle(unpack(Path(path), kind=cls.kind, signed_by=signed_by))

    @classmethod
    def from_bytes(cls, data: bytes, *, signed_by: PublicKey | None = None) -> Self:
        """Read what `to_bytes` gave; see `load`."""
        return cls._from_bundle(unpack(data, kind=cls.kind, signed_by=signed_by))
