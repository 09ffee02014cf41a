"""Rows of a table in files that would leave."""

from __future__ import annotations

import bz2
import functools
import io
import json
import lzma
import types
import zipfile
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ..._validation import FloatArray, array_library, to_numpy
from ._attack import check_rows

_LOOSE = 1e-5
_STRICT = 1e-9
"""Difference between entries, relative to the row's largest; with fewer than three columns rows coincide easily."""
_MOST_CANDIDATES = 200
_MOST_COLUMNS = 2000
_MOST_BYTES = 2**32
"""Rows near a row sought, columns of an affine image, and bytes compared in files that are not understood."""


class _Form:
    """Table under one change of units, and which of its rows are not constant, as too much else is."""

    def __init__(self, name: str, rows: FloatArray) -> None:
        self.name = name
        self.rows = rows
        self.usable = np.ptp(rows, axis=1) > 1e-3 * np.abs(rows).max(axis=1, initial=0.0)

    def occurs_in(self, table: FloatArray) -> NDArray[np.bool_]:
        """Return for each row of the form whether it occurs in the table."""
        tolerance = _LOOSE if self.rows.shape[1] >= 3 else _STRICT
        # Sorted along one random direction, near rows are neighbours, so no row need be compared with all others.
        direction = np.random.default_rng(0).normal(size=self.rows.shape[1])
        # Entries near the largest float overflow; the row is then not found, and nothing needs a warning.
        with np.errstate(all="ignore"):
            keys = table @ direction
            sought = self.rows @ direction
        order = np.argsort(keys)
        keys = keys[order]
        allowed = tolerance * np.abs(self.rows).max(axis=1)
        # By the entries' differences, the keys differ by at most this.
        reach = allowed * np.abs(direction).sum()
        first = np.searchsorted(keys, sought - reach)
        last = np.searchsorted(keys, sought + reach, side="right")
        found = np.zeros(len(self.rows), dtype=np.bool_)
        for i in np.flatnonzero((last > first) & self.usable):
            # More rows than this agree along the direction only where most are equal, and a few stand for all.
            candidates = table[order[first[i] : min(last[i], first[i] + _MOST_CANDIDATES)]]
            found[i] = bool((np.abs(candidates - self.rows[i]) <= allowed[i]).all(axis=1).any())
        return found


class _RowSearch:
    """Search for the rows of one table in many arrays, in other units too."""

    def __init__(self, X: FloatArray) -> None:
        self._X = X
        self._forms = [_Form("as they are", X), *_other_forms(X)]
        mean = X.mean(axis=0)[None, :]
        # Of a table in standard units the mean is zero, as much else is.
        self._means: list[_Form] = []
        if np.abs(mean).max() > 1e-9 * np.abs(X).max() and X.shape[1] > 1:
            self._means.append(_Form("mean", mean))
        # Few small whole numbers coincide with others by chance; such rows count only if they come in numbers.
        several = np.array([len(np.unique(row)) for row in X]) >= 3
        fractional = (np.round(X) != X).any(axis=1)
        self._telling = (several | fractional) & (X.shape[1] > 1)

    def look(self, held: Any) -> tuple[Any, str, int] | None:
        """Find the table in an array or bytes: return the kind, the form, and how many rows; or None."""
        if held is UNSEARCHED:
            return "unsearched", "too large to look into", 0
        if isinstance(held, bytes):
            n_found = self._raw(held)
            if not n_found:
                return None
            return "rows", "byte by byte", n_found
        for name, found in self._matches(held):
            # Half of all rows, five of them different, in eight columns: so many zeros and ones meet by no accident.
            many = self._X.shape[1] >= 8 and 2 * found.sum() >= len(found)
            if (found & self._telling).any() or (many and len(np.unique(self._X[found], axis=0)) >= 5):
                kind = "rows"
                if name != "as they are":
                    kind = "transformed rows"
                return kind, name, int(found.sum())
        if any(mean.occurs_in(view).any() for mean in self._means for view in _views(held, self._X.shape[1])):
            return "mean", "mean of all rows", 0
        return None

    def _raw(self, blob: bytes) -> int:
        """Count the rows, of those looked for, that stand byte by byte in a file of an unknown kind."""
        # Each row sought reads the whole file once; a few are sought in files of any size.
        few = max(4, _MOST_BYTES // max(1, 4 * len(blob)))

        def count(rows: FloatArray, dtype: str) -> int:
            chosen = rows[np.linspace(0, len(rows) - 1, min(few, len(rows))).astype(int)]
            return sum(row.astype(dtype).tobytes() in blob for row in chosen)

        # Files may hold a table by columns. One of few values, such as zeros alone, stands in any file.
        columns = self._X.T[[len(np.unique(column)) >= 8 for column in self._X.T]]
        if any(count(columns, dtype) for dtype in ("<f8", "<f4")):
            return len(self._X)
        return max(count(self._X[self._telling & self._forms[0].usable], dtype) for dtype in ("<f8", "<f4"))

    def _matches(self, array: NDArray[np.generic]) -> Iterator[tuple[str, NDArray[np.bool_]]]:
        views = list(_views(array, self._X.shape[1]))
        for form in self._forms:
            for view in views:
                yield form.name, form.occurs_in(view)
        for view in views:
            # In units of each column's own two rows are always plus and minus one.
            if len(view) == len(self._X) > 2:
                yield "each column in units of its own", _Form("", _standard(self._X)).occurs_in(_standard(view))
        if self._is_affine_image(array):
            yield "invertible affine image", np.ones(len(self._X), dtype=np.bool_)

    def _is_affine_image(self, array: NDArray[np.generic]) -> bool:
        """Return whether an affine map takes the array's rows to the table's, in the same order."""
        n = len(self._X)
        # With as many columns as rows, any array could be taken to any other.
        if array.ndim != 2 or len(array) != n or not 2 * (array.shape[1] + 1) < n or array.shape[1] > _MOST_COLUMNS:
            return False
        with np.errstate(all="ignore"):
            B = _finite(array)
            X = self._X - self._X.mean(axis=0)
            B = B - B.mean(axis=0)
            lengths = np.linalg.norm(B, axis=0)
            # Columns of one size, so that the cut-off below drops none for its units.
            B = B / np.where(lengths > 0, lengths, 1.0)
            coefficients, *_ = np.linalg.lstsq(B, X, rcond=1e-10)
            return bool(np.linalg.norm(X - B @ coefficients) < _LOOSE * np.linalg.norm(X))


def _other_forms(X: FloatArray) -> Iterator[_Form]:
    low = X.min(axis=0)
    span = np.ptp(X, axis=0)
    largest = np.abs(X).max(axis=0)
    units = {
        "": X,
        "less their mean": X - X.mean(axis=0),
        "in standard units": _standard(X),
        "between 0 and 1": (X - low) / np.where(span > 0, span, 1.0),
        "over their largest": X / np.where(largest > 0, largest, 1.0),
    }
    for name, rows in units.items():
        if name:
            yield _Form(name, rows)
        # Directions of few columns coincide easily.
        if X.shape[1] >= 5:
            yield _Form(f"{name}, at unit length".lstrip(", "), _directions(rows))
            centred = rows - rows.mean(axis=1, keepdims=True)
            yield _Form(f"{name}, centred and at unit length".lstrip(", "), _directions(centred))


def _standard(X: FloatArray) -> FloatArray:
    centred = X - X.mean(axis=0)
    spread = centred.std(axis=0)
    # A constant column is left with rounding, which must not be blown up.
    return np.asarray(centred / np.where(spread > 1e-12 * np.abs(X).max(axis=0), spread, np.inf))


def _directions(X: FloatArray) -> FloatArray:
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    return np.asarray(X / np.where(lengths > 1e-12 * np.abs(X).max(), lengths, np.inf))


def _views(array: NDArray[np.generic], width: int) -> Iterator[FloatArray]:
    """Yield the array as tables of so many columns, in the ways that rows could lie in it."""
    tables = []
    if array.ndim > 2:
        tables = [array.reshape(array.shape[0], -1), array.reshape(-1, array.shape[-1])]
    elif array.ndim == 2:
        tables = [array]
        # A transposed table has a row for each column, and perhaps one for the targets.
        if array.shape[0] in (width, width + 1):
            tables.append(array.T)
    elif array.ndim == 1 and array.size >= width and array.size % width == 0:
        tables = [array.reshape(-1, width)]
        # Flat arrays may be written by rows or by columns, as Fortran and R do.
        if array.size > width > 1:
            tables.append(array.reshape(width, -1).T)
    for rows in (_finite(table) for table in tables if table.shape[0] > 0 and table.shape[1] >= width):
        yield rows[:, :width]
        # Targets or marks may stand beside the features, on either side.
        if rows.shape[1] > width:
            yield rows[:, -width:]


def _finite(array: NDArray[np.generic]) -> FloatArray:
    return np.nan_to_num(array.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)


UNSEARCHED = object()
"""Stands for something too large to look into."""
MAX_OBJECTS = 200_000
MAX_ENTRIES = 2**27
"""Objects, and entries of an array or bytes in all unpacked from files, that are looked at: 1 GiB in float64."""
_ATOMS = (type(None), bool, int, float, complex, str, type, types.ModuleType, range, np.generic, np.dtype)
_BLOBS = (bytes, bytearray, memoryview)
_SEQUENCES = (list, tuple, set, frozenset, deque)
_PARTS: dict[type, tuple[str, ...]] = {
    functools.partial: ("func", "args", "keywords"),
    types.MethodType: ("__self__", "__func__"),
    types.FunctionType: ("__defaults__", "__kwdefaults__", "__closure__"),
    types.CellType: ("cell_contents",),
}
"""Attributes of callables that `vars` does not show."""
_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1"}
_UNPACKERS: dict[bytes, Callable[[], Any]] = {
    b"\x1f\x8b": functools.partial(zlib.decompressobj, wbits=47),
    b"\x78": functools.partial(zlib.decompressobj, wbits=47),
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ": lzma.LZMADecompressor,
}
_Children = Iterator[tuple[str, Any]]


def _arrays_in(artefact: Any) -> _Children:
    """Walk through an object and all that it holds; yield paths with numeric arrays, bytes or UNSEARCHED.

    A path has attributes and names in files by name, all else by number, for keys may be private.
    """
    budget = MAX_ENTRIES
    # Kept alive, for an id is free again once its object is gone.
    seen: dict[int, Any] = {}
    waiting = [(type(artefact).__name__, artefact)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, _ATOMS) or id(value) in seen:
            continue
        # An artefact made to hide rows could nest without end: the gap is reported, not passed over.
        if len(seen) >= MAX_OBJECTS:
            yield path, UNSEARCHED
            return
        seen[id(value)] = value
        if isinstance(value, _BLOBS):
            contents = list(_contents(bytes(value), budget))
            budget -= sum(len(child) for _, child in contents if isinstance(child, bytes))
            if not contents:
                yield path, bytes(value)
            waiting.extend((path + step, child) for step, child in reversed(contents))
        elif value is UNSEARCHED:
            yield path, UNSEARCHED
        elif (array := _as_array(value)) is not None and array.dtype.kind in "biuf":
            if array.size > MAX_ENTRIES:
                yield path, UNSEARCHED
            else:
                yield path, array
        else:
            children = list(_fields(array) if array is not None else _children(value))
            # The last one waiting comes next, so reversed children come in their own order.
            waiting.extend((path + step, child) for step, child in reversed(children) if not isinstance(child, _ATOMS))


def _as_array(value: Any) -> NDArray[Any] | None:
    """Return the value as an array, if it is one in some guise."""
    if isinstance(value, np.ndarray):
        return _numbers(value)
    with suppress(Exception):
        if array_library(value) is not None:
            return to_numpy(value)
        if sparse.issparse(value):
            if np.prod(value.shape) > MAX_ENTRIES:
                # Filled with zeros it would not fit into memory; its own entries do.
                return np.asarray(value.data)
            return np.asarray(value.toarray())
        # Frames and series; others have methods of this name that return something else, such as a copy of themselves.
        if hasattr(value, "to_numpy") and isinstance(converted := value.to_numpy(), np.ndarray):
            return _numbers(converted)
        if isinstance(value, (list, tuple)) and len(value) and _looks_numeric(value[0]):
            array = np.asarray(value)
            if array.dtype.kind in "biuf":
                return array
    return None


def _looks_numeric(value: Any, depth: int = 3) -> bool:
    if isinstance(value, (list, tuple)):
        return len(value) > 0 and depth > 0 and _looks_numeric(value[0], depth - 1)
    if isinstance(value, np.ndarray):
        return value.ndim <= 1 and value.dtype.kind in "biuf"
    return isinstance(value, (bool, int, float, np.generic))


def _numbers(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array of objects as numbers: all of it, or at least the columns that can be."""
    if array.dtype != object:
        return array
    with suppress(TypeError, ValueError):
        return array.astype(np.float64)
    if array.ndim != 2:
        return array
    columns = []
    for column in array.T:
        with suppress(TypeError, ValueError):
            columns.append(column.astype(np.float64))
    if not columns:
        return array
    return np.column_stack(columns)


def _fields(array: NDArray[Any]) -> _Children:
    if array.dtype.names is not None:
        yield from ((f".{name}", array[name]) for name in array.dtype.names)
    # Texts of bytes and raw records may be a file in a file.
    elif array.dtype.kind in "SV":
        yield "", array.tobytes()
    elif array.dtype == object:
        yield from ((f"[{number}]", item) for number, item in enumerate(array.ravel().tolist()))


def _children(value: Any) -> _Children:
    """Yield all that an object holds; nothing of it is called except for the state of a type without attributes."""
    if isinstance(value, Mapping):
        with suppress(Exception):
            for number, (key, item) in enumerate(value.items()):
                yield f"[entry {number}]", item
                yield f"[key {number}]", key
    elif isinstance(value, _SEQUENCES):
        yield from ((f"[{number}]", item) for number, item in enumerate(value))
    names = [name for kind, parts in _PARTS.items() if isinstance(value, kind) for name in parts]
    with suppress(Exception):
        yield from ((f".{name}", item) for name, item in vars(value).items())
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        # Python takes a single text for one name, not for its letters.
        if isinstance(slots, str):
            slots = (slots,)
        names += slots
    for name in names:
        # Slots may be empty, and descriptors may raise whatever they like.
        with suppress(Exception):
            yield f".{name}", getattr(value, name)
    # Trees and the like of extension types show their arrays only this way; what others repeat here is known by then.
    with suppress(Exception):
        if "__getstate__" in {name for kind in type(value).__mro__[:-1] for name in vars(kind)}:
            yield ".state", value.__getstate__()


def _contents(blob: bytes, budget: int) -> _Children:
    """Yield the contents of bytes that are a known kind of file; nothing if they are none, or damaged."""
    with suppress(Exception):
        if blob.startswith(b"\x93NUMPY"):
            # Arrays of objects would run code of the file's own.
            yield "", np.load(io.BytesIO(blob), allow_pickle=False)
        elif blob.startswith(b"PK\x03\x04"):
            yield from _members(blob, budget)
        # Safetensors have no magic number: the length of a header in JSON comes first.
        elif 2 <= (size := int.from_bytes(blob[:8], "little")) <= len(blob) - 8 and blob[8:9] == b"{":
            yield from _tensors(memoryview(blob)[8 + size :], json.loads(blob[8 : 8 + size]))
        else:
            for magic, unpacker in _UNPACKERS.items():
                if blob.startswith(magic):
                    # A small file may unpack to terabytes; one byte too many tells that it would.
                    unpacked = unpacker().decompress(blob, max_length=budget + 1)
                    if len(unpacked) > budget:
                        unpacked = UNSEARCHED
                    yield " unpacked", unpacked
                    break


def _members(blob: bytes, budget: int) -> _Children:
    with zipfile.ZipFile(io.BytesIO(blob)) as archive:
        for info in archive.infolist():
            budget -= info.file_size
            # The sizes are the archive's own words, so no more than these bytes are read below.
            if budget < 0:
                yield f"/{info.filename}", UNSEARCHED
                return
            with archive.open(info) as member:
                yield f"/{info.filename}", member.read(info.file_size)


def _tensors(data: memoryview, header: dict[str, Any]) -> _Children:
    """Yield the arrays of a file in the format of safetensors."""
    for name, entry in header.items():
        with suppress(Exception):
            start, stop = entry["data_offsets"]
            if entry["dtype"] == "BF16":
                # The upper half of a float32.
                values = (np.frombuffer(data[start:stop], "<u2").astype("<u4") << 16).view("<f4")
            else:
                values = np.frombuffer(data[start:stop], _DTYPES[entry["dtype"]])
            yield f"/{name}", values.reshape(entry["shape"])
            if entry["dtype"] == "U8":
                # A file in a bundle, perhaps.
                yield f"/{name}", values.tobytes()


@dataclass(frozen=True)
class StoredRows:
    """Rows of a table that were found in an artefact, without any of their entries: `n_found` of the table's `n_rows`.

    `path` has attributes and names in files by name, all else by number.  Of the kinds, "transformed rows" equal the
    table's after the change of units that `form` names; "mean" is that of all rows; "unsearched" is a gap, where the
    search was cut short.
    """

    path: str
    kind: Literal["rows", "transformed rows", "mean", "unsearched"]
    form: str
    n_found: int
    n_rows: int


def find_training_rows(artefact: Any, X: ArrayLike) -> list[StoredRows]:
    """Look for rows of a private table, as they are and in other units, in a model, a bundle of arrays, or a file.

    Other units are: less their mean, standardised, scaled to a range or to unit length, each column in units of its
    own, or, with the array's rows in the table's order, any affine map that can be undone.

    Parameters
    ----------
    artefact : object
        A fitted estimator, a `PartyModel`, a `Share`, a mapping of arrays, bytes, or the `pathlib.Path` of a file.
        Nothing is changed, revived from bytes, or called, except for the methods by which data frames, tensors and
        extension types give themselves as arrays.
    X : array-like of shape (n_rows, n_features)
        The party's own rows, or their representation, which the artefact must not contain.

    Returns
    -------
    list of StoredRows
        At most one for each array; empty if there is none, which does not show that nothing is there.

    Raises
    ------
    RepresentationError
        If the table is not finite, two-dimensional and numeric.
    """
    table = check_rows(X, "The private table")
    search = _RowSearch(table)
    if isinstance(artefact, Path):
        artefact = artefact.read_bytes()
    looked = ((path, search.look(each)) for path, each in _arrays_in(artefact))
    return [StoredRows(path, *found, len(table)) for path, found in looked if found is not None]
