"""What the pages of a Parquet file take unpacked, before any of them is.

The end of the file says how large columns are, but readers follow the headers of the pages, each of which says how long
the page is unpacked and how many entries it has.  These are read here, in Thrift's compact protocol.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

__all__ = ["Chunk", "Page", "chunks", "pages"]

_FIRST_READ, _MOST_HEADER = 2**10, 2**24
_TRAILER = 8
"""Bytes after the end's own: its length, and what kind of file it is."""
_MOST_LEVELS = 8
_DICTIONARY_PAGE = 2


@dataclass(frozen=True)
class Page:
    """What the header of a page says.

    Attributes
    ----------
    n_bytes : int
        Unpacked.
    n_entries : int
        0 for a dictionary.
    is_dictionary : bool
    encoding : int
        As the Parquet format numbers them.
    """

    n_bytes: int
    n_entries: int
    is_dictionary: bool
    encoding: int


@dataclass(frozen=True)
class Chunk:
    """Where a column of a group of rows is.

    Attributes
    ----------
    num_values : int
    data_page_offset : int
    dictionary_page_offset : int or None
    """

    num_values: int
    data_page_offset: int
    dictionary_page_offset: int | None

    @property
    def has_dictionary_page(self) -> bool:
        """Whether it says where one is."""
        return self.dictionary_page_offset is not None


def chunks(file: IO[bytes]) -> list[list[Chunk]]:
    """Every column of every group of rows, as the end of the file lists them.

    Raises
    ------
    ValueError
        When it lists none.
    """
    end = file.seek(0, 2)
    file.seek(max(end - _TRAILER, 0))
    length = int.from_bytes(file.read(4), "little")
    if not 0 < length <= min(_MOST_HEADER, end - _TRAILER):
        raise ValueError("the file has no end, or a very long one")
    file.seek(end - _TRAILER - length)
    try:
        groups = _Compact(file.read(length)).struct()[4]
        return [[_chunk(column[3]) for column in group[1]] for group in groups]
    except (IndexError, KeyError, TypeError):
        raise ValueError("the end of the file lists no columns") from None


def _chunk(about: dict[int, Any]) -> Chunk:
    start = about.get(11)
    return Chunk(_count(about[5]), _count(about[9]), None if start is None else _count(start))


def pages(file: IO[bytes], column: Chunk) -> Iterator[Page]:
    """The pages of a column in a group of rows, as a reader finds them.

    Parameters
    ----------
    file : binary file
    column : Chunk

    Raises
    ------
    ValueError
        When they are not what the file's end says.
    """
    place, n_seen = _start(column), 0
    end = file.seek(0, 2)
    while n_seen < column.num_values:
        header, length = _header(file, place, end)
        page = _page(header)
        compressed = header.get(3)
        if not isinstance(compressed, int) or not 0 <= compressed <= end - place - length:
            raise ValueError("a page is longer than the file")
        yield page
        n_seen += page.n_entries
        place += length + compressed


def _start(column: Any) -> int:
    start = int(column.data_page_offset)
    dictionary = column.dictionary_page_offset if column.has_dictionary_page else None
    return int(dictionary) if dictionary is not None and 0 < dictionary < start else start


def _header(file: IO[bytes], place: int, end: int) -> tuple[dict[int, Any], int]:
    """A page's header, and its length."""
    if not 0 <= place < end:
        raise ValueError("a page lies outside the file")
    size = _FIRST_READ
    while True:
        file.seek(place)
        reader = _Compact(file.read(size))
        try:
            return reader.struct(), reader.place
        except IndexError:
            if size >= min(_MOST_HEADER, end - place):
                raise ValueError("the header of a page is cut off") from None
            size *= 64


def _page(header: dict[int, Any]) -> Page:
    # Of a page of entries, of a dictionary, of a page of entries in the second version.
    about: dict[int, Any] = next((header[field] for field in (5, 7, 8) if isinstance(header.get(field), dict)), {})
    kind, n_bytes = _count(header.get(1)), _count(header.get(2))
    n_entries, encoding = _count(about.get(1, 0)), _count(about.get(4 if 8 in header else 2, 0))
    is_dictionary = kind == _DICTIONARY_PAGE
    return Page(n_bytes, 0 if is_dictionary else n_entries, is_dictionary, encoding)


def _count(number: Any) -> int:
    if type(number) is not int or number < 0:
        raise ValueError("what should be a number is none")
    return number


class _Compact:
    """Structures of Thrift's compact protocol; of texts only the length counts.

    Raises
    ------
    IndexError
        At the end of the bytes.
    ValueError
        Where there is no such structure.
    """

    def __init__(self, data: bytes) -> None:
        self._data, self.place = data, 0

    def struct(self, level: int = 0) -> dict[int, Any]:
        """Fields by their number."""
        if level > _MOST_LEVELS:
            raise ValueError("too many levels")
        fields: dict[int, Any] = {}
        last = 0
        while kind_and_step := self._byte():
            step, kind = divmod(kind_and_step, 16)
            last = last + step if step else self._zigzag()
            # Truth values are in the kind itself.
            fields[last] = kind == 1 if kind in (1, 2) else self._value(kind, level)
        return fields

    def _value(self, kind: int, level: int) -> Any:
        if kind in (1, 2, 3):
            return self._byte()
        if kind in (4, 5, 6):
            return self._zigzag()
        if kind == 7:
            return self._skip(8)
        if kind == 8:
            return self._skip(self._number())
        if kind in (9, 10):
            count, inner = divmod(self._byte(), 16)
            return [self._value(inner, level + 1) for _ in range(self._number() if count == 15 else count)]
        if kind == 12:
            return self.struct(level + 1)
        raise ValueError("an unknown type")

    def _skip(self, n_bytes: int) -> None:
        if n_bytes > len(self._data) - self.place:
            raise IndexError
        self.place += n_bytes

    def _byte(self) -> int:
        byte = self._data[self.place]
        self.place += 1
        return byte

    def _number(self) -> int:
        number = shift = 0
        while True:
            byte = self._byte()
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
            shift += 7
            if shift > 63:
                raise ValueError("a number is too long")

    def _zigzag(self) -> int:
        number = self._number()
        return (number >> 1) ^ -(number & 1)
