"""What a data file must hold, however it was packed: images and labels in idx format, and tables of numbers.

Checksums are of the content, never of the container.  Mirrors pack the same content by different gzip and zip programs
and with different line ends, so a checksum of the file as downloaded would reject good copies.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import struct
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray

__all__ = ["Content", "IdxContent", "TableContent", "read_contents"]


class Content(Protocol):
    """One thing inside a data file."""

    @property
    def member(self) -> str:
        """Its base name inside a zip archive."""

    def parse(self, content: bytes) -> NDArray[Any]:
        """Turn unpacked bytes into an array, or raise ValueError where they are not as expected."""


@dataclass(frozen=True)
class IdxContent:
    """Bytes in idx format: the type, the number of dimensions, the dimensions, the entries.

    Parameters
    ----------
    member : str
        Base name inside a zip archive.
    sha256 : str
        Of the unpacked bytes.
    """

    member: str
    sha256: str

    def parse(self, content: bytes) -> NDArray[np.uint8]:
        """Array of the dimensions that the file declares."""
        if hashlib.sha256(content).hexdigest() != self.sha256:
            raise ValueError("the SHA-256 of its unpacked content is not the expected one")
        n_dimensions = content[3]
        shape = struct.unpack_from(f">{n_dimensions}I", content, offset=4)
        return np.frombuffer(content, np.uint8, offset=4 + 4 * n_dimensions).reshape(shape)


@dataclass(frozen=True)
class TableContent:
    """A CSV table of numbers with a header.

    Parameters
    ----------
    member : str
        Base name inside a zip archive.
    columns : tuple of str
        The header.
    n_rows : int
        Number of rows without the header.
    sha256 : str
        Of the first `n_hashed` rows as little-endian float64, row by row.
    n_hashed : int
        All rows where the whole table was at hand to take the checksum from, fewer where only an excerpt was.
    """

    member: str
    columns: tuple[str, ...]
    n_rows: int
    sha256: str
    n_hashed: int

    def parse(self, content: bytes) -> FloatArray:
        """Table of shape (n_rows, n_columns)."""
        stream = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig", errors="replace")
        header = tuple(name.strip().strip('"') for name in stream.readline().split(","))
        if header != self.columns:
            raise ValueError(f"its header is not the expected one of {len(self.columns)} columns")
        if content.strip().count(b"\n") == 0:
            raise ValueError("it has a header but no rows")
        try:
            table = np.loadtxt(stream, delimiter=",", ndmin=2)
        except ValueError:
            # numpy's own message quotes an entry.
            raise ValueError(f"its rows are not {len(self.columns)} numbers each") from None
        if table.shape != (self.n_rows, len(self.columns)):
            raise ValueError(
                f"it has {table.shape[0]} rows and {table.shape[1]} columns, not {self.n_rows} and {len(self.columns)}"
            )
        if hashlib.sha256(table[: self.n_hashed].astype("<f8").tobytes()).hexdigest() != self.sha256:
            raise ValueError("the SHA-256 of its numbers is not the expected one")
        return table


def read_contents(path: Path, contents: tuple[Content, ...]) -> list[NDArray[Any]]:
    """Unpack a file and parse what is wanted of it; gzip, zip and plain files are told apart by their first bytes.

    Raises
    ------
    ValueError
        When the file is damaged or holds something else; the message says what is wrong with "it".
    OSError
        When the file cannot be read at all.
    """
    packed = path.read_bytes()
    return [content.parse(_unpack(packed, content.member)) for content in contents]


def _unpack(packed: bytes, member: str) -> bytes:
    try:
        if packed.startswith(b"\x1f\x8b"):
            return gzip.decompress(packed)
        if packed.startswith(b"PK"):
            return _unpack(_read_member(packed, member), member)
    except (gzip.BadGzipFile, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise ValueError(f"it cannot be unpacked, {type(error).__name__}") from error
    return packed


def _read_member(packed: bytes, member: str) -> bytes:
    """Member by base name, in any folder; else the only archive within the archive."""
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        names = {PurePosixPath(name).name.lower(): name for name in archive.namelist()}
        inner = [name for base, name in names.items() if base.endswith((".zip", ".gz"))]
        if member.lower() in names:
            return archive.read(names[member.lower()])
        if len(inner) == 1:
            return archive.read(inner[0])
    raise ValueError(f"there is no {member} in it")
