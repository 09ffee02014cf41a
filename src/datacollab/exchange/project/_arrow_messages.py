"""What the messages of an Arrow file take unpacked, before any of them is.

A compressed buffer says how long it is unpacked, and readers make room for as much.  Only the few entries of a
message's header that tell this are read here, as the Arrow columnar format lays them out in FlatBuffers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import IO

__all__ = ["FIRST_MESSAGE", "unpacked_bytes"]

_MAGIC = b"ARROW1"
FIRST_MESSAGE = 8
"""Where the messages begin, which are those of a stream."""

_CONTINUATION = 0xFFFFFFFF
_MOST_HEADER = 2**24
_DICTIONARY, _RECORDS = 2, 3


def unpacked_bytes(file: IO[bytes]) -> Iterator[int]:
    """Bytes that the buffers of each message take.

    Parameters
    ----------
    file : binary file
        Of the Arrow file format.

    Raises
    ------
    ValueError
        When it is none.
    """
    end = file.seek(0, 2)
    file.seek(max(end - len(_MAGIC), 0))
    if end < 2 * FIRST_MESSAGE or file.read() != _MAGIC:
        raise ValueError("the end is missing")
    place = FIRST_MESSAGE
    try:
        while (header := _header(file, place, end)) is not None:
            data, body = header
            message = _Table.root(data)
            length = message.number(3, "<q")
            if not 0 <= length <= end - body:
                raise ValueError("a message is longer than the file")
            yield _unpacked(file, message, body, length)
            place = body + length
    except struct.error:
        raise ValueError("a message is cut off") from None


def _header(file: IO[bytes], place: int, end: int) -> tuple[bytes, int] | None:
    """A message's header and where its body begins; None after the last one."""
    file.seek(place)
    (length,) = struct.unpack("<I", file.read(4))
    start = place + 4
    if length == _CONTINUATION:
        (length,) = struct.unpack("<I", file.read(4))
        start += 4
    if length == 0:
        return None
    if length > min(_MOST_HEADER, end - start):
        raise ValueError("a header is longer than the file")
    return file.read(length), start + length


def _unpacked(file: IO[bytes], message: _Table, body: int, length: int) -> int:
    kind = message.number(1, "<B")
    if kind not in (_DICTIONARY, _RECORDS):
        return length
    records = message.table(2)
    if records is not None and kind == _DICTIONARY:
        records = records.table(1)
    if records is None or records.table(3) is None:
        return length
    total = 0
    for offset, n_bytes in records.pairs(2):
        if n_bytes == 0:
            continue
        if not 0 <= offset <= offset + n_bytes <= length:
            raise ValueError("a buffer lies outside its message")
        file.seek(body + offset)
        (unpacked,) = struct.unpack("<q", file.read(8))
        # -1: it is as it was, as it would not have become shorter.
        if unpacked < -1:
            raise ValueError("a buffer has less than nothing in it")
        total += n_bytes if unpacked == -1 else unpacked
    return total


class _Table:
    """A table of FlatBuffers, whose fields are found by their number."""

    def __init__(self, data: bytes, place: int) -> None:
        self._data, self._place = data, place

    @classmethod
    def root(cls, data: bytes) -> _Table:
        return cls(data, struct.unpack_from("<I", data)[0])

    def number(self, field: int, form: str) -> int:
        """A number; 0 where it is left out."""
        place = self._find(field)
        return 0 if place is None else self._at(form, place)

    def table(self, field: int) -> _Table | None:
        """A table within; None where it is left out."""
        place = self._find(field)
        return None if place is None else _Table(self._data, place + self._at("<I", place))

    def pairs(self, field: int) -> Iterator[tuple[int, int]]:
        """A list of pairs of 64-bit numbers."""
        place = self._find(field)
        if place is None:
            return
        start = place + self._at("<I", place)
        count = self._at("<I", start)
        for number in range(count):
            yield self._at("<q", start + 4 + 16 * number), self._at("<q", start + 12 + 16 * number)

    def _find(self, field: int) -> int | None:
        fields = self._place - self._at("<i", self._place)
        if 4 + 2 * field >= self._at("<H", fields):
            return None
        offset = self._at("<H", fields + 4 + 2 * field)
        return self._place + offset if offset else None

    def _at(self, form: str, place: int) -> int:
        if place < 0:
            raise ValueError("a header points before its beginning")
        (number,) = struct.unpack_from(form, self._data, place)
        return int(number)
