"""What there is to know about a data set before it is read.

What a data file must hold, however it was packed: images and labels in idx format, and tables of numbers.

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
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from textwrap import dedent
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..errors import DatasetError

__all__ = ["Content", "DatasetSpec", "FileSpec", "IdxContent", "TableContent", "read_contents"]


@dataclass(frozen=True, kw_only=True)
class FileSpec:
    """One data file.

    Parameters
    ----------
    names : tuple of str
        Names that the file may have; the first is the one that a download gets.
    url : str
        Where it can be downloaded.
    contents : tuple of Content
        What it must hold.
    """

    names: tuple[str, ...]
    url: str
    contents: tuple[Content, ...]

    def read(self, path: Path, dataset: str) -> list[NDArray[Any]]:
        """Read the verified contents.

        Raises
        ------
        DatasetError
            When the file cannot be read, is damaged or holds something else; the message names it and says what to do.
        """
        try:
            return read_contents(path, self.contents)
        except ValueError as error:
            raise DatasetError(
                f"{path} cannot be used as a file of {dataset!r}: {error}. It is damaged, incomplete, or of another "
                "data set that uses the same file name. Delete it and load again, or, if it is of another data set, "
                f"keep each data set in a folder of its own, this one in a folder {dataset!r}."
            ) from error
        except OSError as error:
            raise DatasetError(f"{path} cannot be read: {error.strerror or type(error).__name__}.") from error


@dataclass(frozen=True, kw_only=True)
class DatasetSpec:
    """One data set.

    Parameters
    ----------
    name : str
        What `load` calls it, and the folder of its files.
    title : str
        One line that says what it is.
    task : {"classification", "regression"}
    n_samples, n_features : int
        Shape of ``X``.
    megabytes : float
        About how much is downloaded.
    licence : str
    origin : str
        Who made it and where it is published.
    columns : str
        What the columns of ``X`` and the entries of ``y`` mean.
    citation : str
    build : callable
        Makes the entries of a `Dataset` from the arrays that the files hold, in order.
    files : tuple of FileSpec
        All that are needed; none where the data come with scikit-learn.
    excerpt : FileSpec, optional
        Holds the first rows only; used where `files` are not found.
    elsewhere : str
        Other ways to get the files, in words.
    """

    name: str
    title: str
    task: Literal["classification", "regression"]
    n_samples: int
    n_features: int
    megabytes: float
    licence: str
    origin: str
    columns: str
    citation: str
    build: Callable[[list[NDArray[Any]]], Mapping[str, Any]]
    files: tuple[FileSpec, ...] = ()
    excerpt: FileSpec | None = None
    elsewhere: str = ""

    def describe(self, n_samples: int) -> str:
        """Text for ``DESCR``; it says so where `n_samples` is not all of the data set."""
        rows = f"{n_samples} rows"
        if n_samples != self.n_samples:
            rows = f"EXCERPT: only the first {n_samples} of {self.n_samples} rows"
        paragraphs = (
            f"{self.title}\n{'=' * len(self.title)}",
            f"{rows}, {self.n_features} features, {self.task}.",
            dedent(self.columns).strip(),
            f"Origin: {self.origin}\nLicence: {self.licence}\nCite as: {self.citation}",
        )
        return "\n\n".join(paragraphs) + "\n"


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
