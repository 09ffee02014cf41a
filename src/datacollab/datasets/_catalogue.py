"""The data sets of the paper and two small ones of scikit-learn: the content of each file, and the table it becomes.

Checksums are of the content, never of the container.  Mirrors pack the same content by different gzip and zip programs
and with different line ends, so a checksum of the file as downloaded would reject good copies.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import struct
import tomllib
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes, load_digits

from .._validation import FloatArray
from ..errors import DatasetError


@dataclass(frozen=True, kw_only=True)
class FileSpec:
    """One data file under any of its names; a download gets the first."""

    names: tuple[str, ...]
    url: str
    contents: tuple[IdxContent | TableContent, ...]

    def read(self, path: Path, dataset: str) -> list[NDArray[Any]]:
        """Read the verified contents, or raise a DatasetError that names the file and the way on."""
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
    """One data set as the catalogue has it; `build` makes a `Dataset`'s entries of the arrays in its files, in order.

    An excerpt holds the first rows only, and is used if `files` are not found.
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
        """Return the text for ``DESCR``; it says so if `n_samples` is not all of the data set."""
        rows = f"{n_samples} rows"
        if n_samples != self.n_samples:
            rows = f"EXCERPT: only the first {n_samples} of {self.n_samples} rows"
        paragraphs = (
            f"{self.title}\n{'=' * len(self.title)}",
            f"{rows}, {self.n_features} features, {self.task}.",
            self.columns,
            f"Origin: {self.origin}\nLicence: {self.licence}\nCite as: {self.citation}",
        )
        return "\n\n".join(paragraphs) + "\n"


@dataclass(frozen=True)
class IdxContent:
    """Bytes in idx format, in a member of an archive: type, number of dimensions, dimensions, entries."""

    member: str
    sha256: str

    def parse(self, content: bytes) -> NDArray[np.uint8]:
        """Return an array of the dimensions that the file declares, or raise a ValueError."""
        # Before any parsing, so that a damaged file is never read as data.
        if hashlib.sha256(content).hexdigest() != self.sha256:
            raise ValueError("the SHA-256 of its unpacked content is not the expected one")
        # The fourth byte counts dimensions; their sizes follow, as big-endian numbers of four bytes.
        n_dimensions = content[3]
        shape = struct.unpack_from(f">{n_dimensions}I", content, offset=4)
        return np.frombuffer(content, np.uint8, offset=4 + 4 * n_dimensions).reshape(shape)


@dataclass(frozen=True)
class TableContent:
    """A CSV table of numbers with a header; the digest is of its first `n_hashed` rows as little-endian float64."""

    columns: tuple[str, ...]
    member: str
    n_rows: int
    sha256: str
    n_hashed: int

    def parse(self, content: bytes) -> FloatArray:
        """Return a table of shape (n_rows, n_columns), or raise a ValueError."""
        # Some mirrors begin the file with a byte order mark.
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
        # Of the numbers: line ends and zeros at the end of decimals differ between mirrors.
        if hashlib.sha256(table[: self.n_hashed].astype("<f8").tobytes()).hexdigest() != self.sha256:
            raise ValueError("the SHA-256 of its numbers is not the expected one")
        return table


def read_contents(path: Path, contents: tuple[IdxContent | TableContent, ...]) -> list[NDArray[Any]]:
    """Unpack and parse a file; gzip, zip and plain files differ in their first bytes.

    A ValueError names the fault of "it"; an OSError means that the file cannot be read at all.
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
    """Read a member by base name, in any folder; else the only archive within the archive."""
    # Mirrors put the files into folders, or archives into archives.
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        names = {PurePosixPath(name).name.lower(): name for name in archive.namelist()}
        inner = [name for base, name in names.items() if base.endswith((".zip", ".gz"))]
        if member.lower() in names:
            return archive.read(names[member.lower()])
        if len(inner) == 1:
            return archive.read(inner[0])
    raise ValueError(f"there is no {member} in it")


UJI_COLUMNS = (
    *(f"WAP{number:03d}" for number in range(1, 521)),
    *("LONGITUDE", "LATITUDE", "FLOOR", "BUILDINGID", "SPACEID"),
    *("RELATIVEPOSITION", "USERID", "PHONEID", "TIMESTAMP"),
)
SLICE_COLUMNS = ("patientId", *(f"value{number}" for number in range(384)), "reference")


def _digits(arrays: list[NDArray[Any]]) -> dict[str, Any]:
    X, y = load_digits(return_X_y=True)
    names = {"feature_names": _pixel_names(8, 8), "target_names": list("0123456789")}
    # Grey levels are from 0 to 16.
    return {"X": X / 16, "y": y.astype(np.int64), **names}


def _diabetes(arrays: list[NDArray[Any]]) -> dict[str, Any]:
    data = load_diabetes()
    return {"X": data.data, "y": data.target, "feature_names": list(data.feature_names)}


def _images(target_names: Sequence[str], arrays: list[NDArray[Any]]) -> dict[str, Any]:
    train_images, train_labels, test_images, test_labels = arrays
    n_train, *size = train_images.shape
    pixels = np.concatenate([train_images, test_images]).reshape(n_train + len(test_images), -1)
    return {
        "X": pixels / 255.0,
        "y": np.concatenate([train_labels, test_labels]).astype(np.int64),
        "feature_names": _pixel_names(*size),
        "target_names": list(target_names),
        "n_train": n_train,
    }


def _ujiindoorloc(arrays: list[NDArray[Any]]) -> dict[str, Any]:
    table: FloatArray = np.concatenate(arrays)
    # The last five columns, of the room, the phone and its user, are left out.
    longitude, latitude, floor, building = table[:, 520:524].T
    return {
        "X": np.ascontiguousarray(table[:, :520]),
        "y": latitude.copy(),
        "feature_names": list(UJI_COLUMNS[:520]),
        "n_train": len(arrays[0]),
        "extra": {
            "LONGITUDE": longitude.copy(),
            "FLOOR": floor.astype(np.int64),
            "BUILDINGID": building.astype(np.int64),
        },
    }


def _slices(arrays: list[NDArray[Any]]) -> dict[str, Any]:
    (table,) = arrays
    return {
        "X": np.ascontiguousarray(table[:, 1:-1]),
        "y": table[:, -1].copy(),
        "feature_names": list(SLICE_COLUMNS[1:-1]),
        "groups": table[:, 0].astype(np.int64),
    }


def _pixel_names(n_rows: int, n_columns: int) -> list[str]:
    return [f"pixel_{row}_{column}" for row in range(n_rows) for column in range(n_columns)]


_CLOTHING = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")
_BUILD: dict[str, Callable[[list[NDArray[Any]]], dict[str, Any]]] = {
    "digits": _digits,
    "diabetes": _diabetes,
    "mnist": partial(_images, "0123456789"),
    "fashion-mnist": partial(_images, _CLOTHING),
    "ujiindoorloc": _ujiindoorloc,
    "slice-localization": _slices,
}
_COLUMNS = {"ujiindoorloc": UJI_COLUMNS, "slice-localization": SLICE_COLUMNS}


def _spec(name: str, entry: dict[str, Any]) -> DatasetSpec:
    content: Callable[..., IdxContent | TableContent] = IdxContent
    if name in _COLUMNS:
        content = partial(TableContent, _COLUMNS[name])

    def make_file(of: dict[str, Any]) -> FileSpec:
        contents = tuple(content(**each) for each in of["contents"])
        return FileSpec(names=tuple(of["names"]), url=of["url"], contents=contents)

    files = tuple(map(make_file, entry.pop("files", ())))
    excerpt = entry.pop("excerpt", None)
    return DatasetSpec(name=name, build=_BUILD[name], files=files, excerpt=excerpt and make_file(excerpt), **entry)


CATALOGUE = {
    name: _spec(name, entry)
    for name, entry in tomllib.loads(Path(__file__).with_name("catalogue.toml").read_text(encoding="utf-8")).items()
}


def find_spec(name: str) -> DatasetSpec:
    """Look a data set up by name, or raise a ValueError."""
    if name not in CATALOGUE:
        raise ValueError(f"There is no data set {name!r}; there are {', '.join(map(repr, CATALOGUE))}.")
    return CATALOGUE[name]
