"""Bundles: a manifest, its signature, and members, in a safetensors file of a single possible layout.

The manifest and its signature imply every byte before the members, and the manifest has their hashes. A file that
deviates by a byte is refused, so nothing hides between members. The container needs json and hashlib alone.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Self

from ..errors import ExchangeError
from ._data import canonical_json, digest, parse_json
from ._files import MOST_BYTES, open_regular, write_atomically
from ._keys import KeyPair, PublicKey, is_encrypted

KINDS = (
    "datacollab.share",
    "datacollab.model",
    "datacollab.answers",
    "datacollab.anchor",
    "datacollab.party-state",
    "datacollab.collaboration",
    "datacollab.masked-sum",
    "datacollab.round",
    "datacollab.sums-model",
    "datacollab.withdrawal",
)
"""Kinds of bundles."""
_VERSION = 1
"""The one version of all their formats."""
_SIGNED = b"datacollab bundle 1\n"
"""The beginning of a signed manifest, which makes the signature useless elsewhere."""
_METADATA = "__metadata__"
_MANIFEST = "manifest"
_SIGNATURE = "signature"
_KEYS = {"format", "format_version", "facts", "members", "signer"}
_SHA256 = re.compile("[0-9a-f]{64}")
_MEMBER_NAME = re.compile(r"[a-z][a-z0-9._-]{0,63}", re.ASCII)
_MOST_MEMBERS = 62
_PIECE = 2**20
"""Bytes that are hashed at a time, where members are not kept."""


@dataclass(frozen=True)
class Limits:
    """The most bytes of a bundle, of one member, and of the header; larger ones are refused before they are read."""

    total_bytes: int = MOST_BYTES
    member_bytes: int = MOST_BYTES
    header_bytes: int = 1024**2


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
        Names of small letters, digits, dots, hyphens and underscores, a letter first.
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
    wrong = sorted(name for name in members if not _MEMBER_NAME.fullmatch(name))
    if wrong or len(members) > _MOST_MEMBERS:
        raise ValueError(f"Not what members of a bundle can be called, or too many: {wrong}.")
    contents = {
        "format": kind,
        "format_version": _VERSION,
        "facts": dict(facts),
        "members": {name: {"bytes": len(data), "sha256": digest(data)} for name, data in members.items()},
        "signer": None if key is None else key.public.text,
    }
    limits = Limits()
    manifest = canonical_json(contents)
    parse_json(manifest, what="The facts")  # refuses facts that no reader would take
    signature = None if key is None else key.sign(_SIGNED + manifest)
    header = _header(manifest, signature, {name: len(data) for name, data in members.items()})
    if len(header) > limits.header_bytes:
        raise ExchangeError(
            "TOO_LARGE", f"The facts take {len(header)} bytes, {limits.header_bytes} are allowed. Say less."
        )
    # Refused by the writer, too: a file that no reader takes should not be sent.
    if sum(map(len, members.values())) > limits.total_bytes - limits.header_bytes:
        raise ExchangeError("TOO_LARGE", f"The members take more than {limits.total_bytes} bytes. Send fewer rows.")
    return b"".join([header, *(members[name] for name in sorted(members))])


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
    limits = limits or Limits()
    try:
        if isinstance(source, bytes):
            what = what or "The bundle"
            stream = io.BytesIO(source)
            envelope = _read_header(stream, len(source), kind, signed_by, limits, what)
            members = _read_members(stream, envelope, what, keep=True)
        else:
            what = what or str(source)
            with open_regular(Path(source)) as file:
                size = os.fstat(file.fileno()).st_size
                envelope = _read_header(file, size, kind, signed_by, limits, what)
                members = _read_members(file, envelope, what, keep=True)
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
    """Verify all of a bundle of ``size`` bytes, in memory for its header alone; as `unpack`, and with its errors."""
    envelope = _read_header(stream, size, None, signed_by, limits or Limits(), what)
    _read_members(stream, envelope, what, keep=False)
    return envelope


def peek(stream: BinaryIO, size: int) -> tuple[str, dict[str, Any], PublicKey] | None:
    """Return kind, facts and signer at the beginning of a bundle, unchecked; None if it has none of these."""
    try:
        _, manifest, _ = _split_header(stream, size, Limits(size), "The bundle")
        contents = parse_json(manifest, what="The manifest")
        kind = contents["format"]
        facts = contents["facts"]
        signer = PublicKey.from_text(contents["signer"])
    except (ExchangeError, KeyError, TypeError, AttributeError):
        return None
    if not isinstance(kind, str) or not isinstance(facts, dict):
        return None
    return kind, facts, signer


def is_container(data: bytes) -> bool:
    """Return whether bytes begin as a bundle begins; `unpack` says whether they are one."""
    # The first eight bytes are the length of the header.
    return data[8:34] == b'{"__metadata__":{"digest":'


def _header(manifest: bytes, signature: bytes | None, sizes: Mapping[str, int]) -> bytes:
    """Return the bytes before the members, the header's length first; spaces fill it up, as safetensors does."""
    tensors = {}
    start = 0
    for name, size in sorted(sizes.items()):
        tensors[name] = {"dtype": "U8", "shape": [size], "data_offsets": [start, start + size]}
        start += size
    # The digest shows an accident in a file that nobody has signed.
    metadata = {_MANIFEST: manifest.decode(), "digest": digest(manifest)}
    if signature is not None:
        metadata[_SIGNATURE] = signature.hex()
    text = canonical_json(tensors | {_METADATA: metadata})
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def _split_header(stream: BinaryIO, size: int, limits: Limits, what: str) -> tuple[bytes, bytes, bytes | None]:
    """Return the bytes before the members, unchecked, and the manifest and the signature in them."""
    if size > limits.total_bytes:
        raise _too_large(what, f"{size} bytes, {limits.total_bytes}")
    start = stream.read(8)
    if is_encrypted(start):
        raise ExchangeError("BUNDLE_MALFORMED", f"{what} is under a passphrase; nothing in it can be seen without.")
    # Checked before anything is read: a file could claim a header of any length.
    length = int.from_bytes(start, "little")
    if length > size - 8:
        raise _bundle_error(what)
    if length + 8 > limits.header_bytes:
        raise _too_large(what, f"{length + 8} bytes in its header, {limits.header_bytes}")
    text = stream.read(length)
    try:
        metadata = parse_json(text, what=what)[_METADATA]
        signature = None
        if _SIGNATURE in metadata:
            signature = bytes.fromhex(metadata[_SIGNATURE])
        return start + text, metadata[_MANIFEST].encode(), signature
    except (KeyError, TypeError, ValueError, AttributeError):
        raise _bundle_error(what) from None


def _read_header(
    stream: BinaryIO, size: int, kind: str | None, signed_by: PublicKey | None, limits: Limits, what: str
) -> Envelope:
    """Read the bytes before the members, and verify them."""
    header, manifest, signature = _split_header(stream, size, limits, what)
    # An accident on the way, which is not to be taken for a file of another program.
    if digest(manifest).encode() not in header:
        raise _hash_error(what, "its manifest")
    value = parse_json(manifest, what=f"{what}: its manifest")
    fault = "has a manifest that does not say what it has to say"
    if not isinstance(value, dict) or not isinstance(value.get("format"), str):
        raise _bundle_error(what, fault)
    found = value["format"]
    version = value.get("format_version")
    if found not in KINDS or kind not in (None, found):
        # The kind in a file is the sender's text; only names of this program are repeated.
        name = found if found in KINDS else "of a kind that this version does not know"
        raise ExchangeError(
            "WRONG_KIND", f"{what} is {name}; expected {kind or ' or '.join(KINDS)}. Give the right file."
        )
    # Before all other checks of the manifest: a later version may have other entries.
    if type(version) is int and version > _VERSION:
        raise ExchangeError(
            "FORMAT_TOO_NEW",
            f"{what} has format version {version}; this program reads version {_VERSION} of {found}. Upgrade "
            "datacollab, then read it again.",
        )
    members = _parse_members(value.get("members"))
    # A truth value is an integer, too, and a manifest in another spelling would have another digest.
    if (
        type(version) is not int
        or version != _VERSION
        or value.keys() != _KEYS
        or not isinstance(value["facts"], dict)
        or members is None
        or not isinstance(value["signer"], str | None)
        or canonical_json(value) != manifest
    ):
        raise _bundle_error(what, fault)
    signer = None
    try:
        if value["signer"] is not None:
            signer = PublicKey.from_text(value["signer"])
    except ExchangeError:
        raise _bundle_error(what, fault) from None
    sizes = {name: n_bytes for name, (n_bytes, _) in members.items()}
    for name, n_bytes in sizes.items():
        if n_bytes > limits.member_bytes:
            raise _too_large(what, f"{n_bytes} bytes in {name}, {limits.member_bytes}")
    # Any other spelling of the same header is refused, and any byte too many.
    if header != _header(manifest, signature, sizes) or size != len(header) + sum(sizes.values()):
        raise _bundle_error(what)
    _check_signature(signer, _SIGNED + manifest, signature, signed_by, what)
    return Envelope(found, value["facts"], members, signer, digest(manifest))


def _parse_members(value: object) -> dict[str, tuple[int, str]] | None:
    """Return the members that a manifest lists; None if it is no such list."""
    if not isinstance(value, dict) or len(value) > _MOST_MEMBERS:
        return None
    members = {}
    for name, entry in value.items():
        if not (_MEMBER_NAME.fullmatch(name) and isinstance(entry, dict) and entry.keys() == {"bytes", "sha256"}):
            return None
        size = entry["bytes"]
        sha256 = entry["sha256"]
        if type(size) is not int or size < 0 or not isinstance(sha256, str) or not _SHA256.fullmatch(sha256):
            return None
        members[name] = (size, sha256)
    return members


def _read_members(stream: BinaryIO, envelope: Envelope, what: str, *, keep: bool) -> dict[str, bytes]:
    """Verify the members, and return them if they are to be kept; else they are read a piece at a time."""
    members = {}
    for name, (n_left, sha256) in envelope.members.items():
        most = n_left if keep else _PIECE
        hashed = hashlib.sha256()
        piece = b""
        while n_left:
            piece = stream.read(min(n_left, most))
            if len(piece) != min(n_left, most):
                raise _bundle_error(what)
            hashed.update(piece)
            n_left -= len(piece)
        if hashed.hexdigest() != sha256:
            raise _hash_error(what, name)
        if keep:
            members[name] = piece  # whole, as it was read in one piece
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
        raise _bundle_error(what, "has a signature but no signer")
    try:
        signer.verify(signature, signed)
    except ExchangeError as error:
        raise ExchangeError(error.code, f"{what}: {error}") from None
    # A valid signature of somebody else is none for this purpose.
    if signed_by is not None and signer != signed_by:
        raise ExchangeError(
            "SIGNATURE_INVALID",
            f"{what} is signed by {signer.fingerprint}; expected {signed_by.fingerprint}. Do not use the file; ask "
            "the sender by another way.",
        )


def _bundle_error(what: str, fault: str = "is not a whole bundle of this program") -> ExchangeError:
    return ExchangeError("BUNDLE_MALFORMED", f"{what} {fault}. Have it sent again.")


def _hash_error(what: str, name: str) -> ExchangeError:
    return ExchangeError("HASH_MISMATCH", f"{what}: {name} was changed on its way. Have it sent again.")


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
        """Read the bytes of `to_bytes`; see `load`."""
        return cls._from_bundle(unpack(data, kind=cls.kind, signed_by=signed_by))
