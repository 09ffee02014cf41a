"""The container: a ZIP file of a single possible layout, so that nothing hides between its members.

Members are stored as they are, one after the other, with a fixed date; then follows the directory.  Nothing is
compressed: equal contents give equal files with any version of any library, and no file can grow when it is opened.
Whatever deviates from this layout by a byte is refused, so the general reader of such files, which has to guess what
a file means, is not needed.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import BinaryIO

from ..errors import ExchangeError
from ._passphrase import is_encrypted

__all__ = [
    "MANIFEST",
    "MAX_MEMBERS",
    "MEMBER_NAME",
    "SIGNATURE",
    "Limits",
    "Pieces",
    "is_container",
    "read_container",
    "walk_container",
    "write_container",
]


@dataclass(frozen=True)
class Limits:
    """What a bundle is allowed to take; anything larger is refused before it is read.

    Attributes
    ----------
    total_bytes, member_bytes, manifest_bytes : int
        Of the whole file, of one member, and of the manifest.
    """

    total_bytes: int = 2 * 1024**3
    member_bytes: int = 2 * 1024**3
    manifest_bytes: int = 1024**2


MANIFEST, SIGNATURE = "manifest.json", "SIGNATURE"
MEMBER_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}", re.ASCII)
MAX_NAME = 64
MAX_MEMBERS = 62
"""Besides the manifest and the signature."""

SIGNATURE_BYTES = 64

_LOCAL, _CENTRAL, _END = struct.Struct("<4s5H3I2H"), struct.Struct("<4s6H3I5H2I"), struct.Struct("<4s4H2IH")
_LOCAL_MAGIC, _CENTRAL_MAGIC = b"PK\x03\x04", b"PK\x01\x02"
_PIECE = 2**20
_VERSION, _DATE = 20, 33
"""ZIP 2.0; 1 January 1980."""

_UNIX, _MODE = 3 << 8, 0o600 << 16
"""Who unpacks with a general program gets files that are closed to others."""


def is_container(data: bytes) -> bool:
    """Whether bytes begin as a bundle begins; whether they are one is for `unpack` to say."""
    return data.startswith(_LOCAL_MAGIC)


def write_container(members: Mapping[str, bytes]) -> bytes:
    """Members in their order as a file."""
    pieces, entries = [], []
    for name, data in members.items():
        entries.append((name, zlib.crc32(data), len(data)))
        pieces += [_local(*entries[-1]), data]
    return b"".join([*pieces, _directory(entries)])


def read_container(stream: BinaryIO, size: int, *, limits: Limits, what: str) -> dict[str, bytes]:
    """Members of a file, in their order.

    Parameters
    ----------
    stream : binary file
    size : int
        Bytes of the file.
    limits : Limits
    what : str
        What an error calls the file.

    Raises
    ------
    ExchangeError
        ``TOO_LARGE``, ``BUNDLE_MALFORMED``, ``HASH_MISMATCH``.
    """
    members: dict[str, bytes] = {}

    def keep(name: str, pieces: Pieces) -> None:
        members[name] = pieces.whole()

    walk_container(stream, size, keep, limits=limits, what=what)
    return members


def walk_container(
    stream: BinaryIO, size: int, take: Callable[[str, Pieces], None], *, limits: Limits, what: str
) -> None:
    """Hand the members of a file over, one after the other and each in pieces.

    Parameters
    ----------
    stream, size, limits, what
        See `read_container`.
    take : callable
        Is given each member's name and pieces; what it leaves of them is checked all the same.

    Raises
    ------
    ExchangeError
        ``TOO_LARGE``, ``BUNDLE_MALFORMED``, ``HASH_MISMATCH``.
    """
    if size > limits.total_bytes:
        raise _too_large(what, f"{size} bytes, {limits.total_bytes}")
    source = _Source(stream, size, what)
    entries: dict[str, tuple[str, int, int]] = {}
    while not (header := source.take(_LOCAL.size)).startswith(_CENTRAL_MAGIC):
        name, checksum, length = _entry(header, source)
        if name in entries or len(entries) == MAX_MEMBERS + 2:
            raise _malformed(what)
        allowed = {MANIFEST: limits.manifest_bytes, SIGNATURE: SIGNATURE_BYTES}.get(name, limits.member_bytes)
        if length > allowed:
            raise _too_large(what, f"{length} bytes in {name}, {allowed}")
        pieces = Pieces(source, length)
        take(name, pieces)
        if pieces.checksum_of_all() != checksum:
            raise ExchangeError("HASH_MISMATCH", f"{what}: {name} was changed on its way. Have it sent again.")
        entries[name] = (name, checksum, length)
    directory = _directory(list(entries.values()))
    if len(header) + source.left != len(directory) or header + source.take(source.left) != directory:
        raise _malformed(what)


@dataclass
class _Source:
    """A file, and how much of it is left; nothing is asked for that is not there."""

    stream: BinaryIO
    left: int
    what: str

    def take(self, n_bytes: int) -> bytes:
        data = self.stream.read(n_bytes) if n_bytes <= self.left else b""
        if len(data) != n_bytes:
            raise _malformed(self.what)
        self.left -= n_bytes
        return data


class Pieces:
    """A member's bytes, a part at a time, and the checksum of those that were taken."""

    def __init__(self, source: _Source, length: int) -> None:
        if length > source.left:
            raise _malformed(source.what)
        self._source, self._left, self._checksum = source, length, 0

    def __iter__(self) -> Pieces:
        return self

    def __next__(self) -> bytes:
        if self._left == 0:
            raise StopIteration
        return self._take(_PIECE)

    def whole(self) -> bytes:
        """All that is left, at once."""
        return self._take(self._left)

    def _take(self, most: int) -> bytes:
        piece = self._source.take(min(most, self._left))
        self._left -= len(piece)
        self._checksum = zlib.crc32(piece, self._checksum)
        return piece

    def checksum_of_all(self) -> int:
        """Read on to the end."""
        for _ in self:
            pass
        return self._checksum


def _entry(header: bytes, source: _Source) -> tuple[str, int, int]:
    """What a member's header says; any other header that says the same is refused."""
    if is_encrypted(header):
        raise ExchangeError(
            "BUNDLE_MALFORMED", f"{source.what} is under a passphrase; nothing in it can be seen without."
        )
    *_, checksum, _, length, name_length, _ = _LOCAL.unpack(header)
    name = source.take(min(name_length, MAX_NAME)).decode("latin-1")
    known = name == SIGNATURE or MEMBER_NAME.fullmatch(name)
    if not known or header + name.encode() != _local(name, checksum, length):
        raise _malformed(source.what)
    return name, checksum, length


def _local(name: str, checksum: int, length: int) -> bytes:
    fields = (_LOCAL_MAGIC, _VERSION, 0, 0, 0, _DATE, checksum, length, length, len(name), 0)
    return _LOCAL.pack(*fields) + name.encode()


def _directory(entries: list[tuple[str, int, int]]) -> bytes:
    central, offset = b"", 0
    for name, checksum, length in entries:
        fields = (_CENTRAL_MAGIC, _UNIX | _VERSION, _VERSION, 0, 0, 0, _DATE, checksum, length, length, len(name))
        central += _CENTRAL.pack(*fields, 0, 0, 0, 0, _MODE, offset) + name.encode()
        offset += _LOCAL.size + len(name) + length
    return central + _END.pack(b"PK\x05\x06", 0, 0, len(entries), len(entries), len(central), offset, 0)


def _malformed(what: str) -> ExchangeError:
    return ExchangeError("BUNDLE_MALFORMED", f"{what} is not a whole bundle of this program. Have it sent again.")


def _too_large(what: str, found: str) -> ExchangeError:
    return ExchangeError(
        "TOO_LARGE", f"{what} has {found} are allowed. Check where it comes from; raise the limit if it is right."
    )
