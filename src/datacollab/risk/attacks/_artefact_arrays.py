"""All arrays inside an object.  Nothing is revived from the bytes it was stored as."""

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
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..._validation import array_library, to_numpy

__all__ = ["UNSEARCHED", "arrays_in"]

UNSEARCHED = object()
"""Stands for something too large to look into."""

MAX_OBJECTS = 200_000
MAX_ENTRIES = 2**27
"""Entries of an array, and bytes in all unpacked from files, that are looked at: 1 GiB in float64."""

_ATOMS = (type(None), bool, int, float, complex, str, type, types.ModuleType, range, np.generic, np.dtype)
_BLOBS = (bytes, bytearray, memoryview)
_SEQUENCES = (list, tuple, set, frozenset, deque)
_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1"}
_UNPACKERS: dict[bytes, Callable[[], Any]] = {
    b"\x1f\x8b": functools.partial(zlib.decompressobj, wbits=47),
    b"\x78": functools.partial(zlib.decompressobj, wbits=47),
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ": lzma.LZMADecompressor,
}

_Children = Iterator[tuple[str, Any]]


def arrays_in(artefact: Any) -> Iterator[tuple[str, Any]]:
    """Walk through an object and all that it holds, each thing once.

    Looks into attributes, mappings, sequences, functions' closures, data frames, sparse matrices, the state that
    extension types give of themselves, and bytes: NumPy and safetensors files, archives of them, and compressed bytes.

    Yields
    ------
    path : str
        How to get there: attributes and names in files by name, all else by number, for keys may be private.
    found : ndarray, bytes or UNSEARCHED
        A numeric array; bytes that are none of the files above; or a mark that here the search was cut short.
    """
    budget = MAX_ENTRIES
    # Kept alive, for an id is free again once its object is gone.
    seen: dict[int, Any] = {}
    waiting: list[tuple[str, Any]] = [(type(artefact).__name__, artefact)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, _ATOMS) or id(value) in seen:
            continue
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
            yield path, array if array.size <= MAX_ENTRIES else UNSEARCHED
        else:
            children = _fields(array) if array is not None else _children(value)
            inner = [(path + step, child) for step, child in children if not isinstance(child, _ATOMS)]
            waiting.extend(reversed(inner))


def _as_array(value: Any) -> NDArray[Any] | None:
    """The value as an array, where it is one in some guise."""
    if isinstance(value, np.ndarray):
        return _numbers(value)
    with suppress(Exception):
        if array_library(value) is not None:
            return to_numpy(value)
        if sparse.issparse(value):
            return np.asarray(value.toarray() if np.prod(value.shape) <= MAX_ENTRIES else value.data)
        # Frames and series; others have methods of this name that return something else, such as a copy of themselves.
        if hasattr(value, "to_numpy") and isinstance(converted := value.to_numpy(), np.ndarray):
            return _numbers(converted)
        if isinstance(value, (list, tuple)) and len(value) and _looks_numeric(value[0]):
            array = np.asarray(value)
            return array if array.dtype.kind in "biuf" else None
    return None


def _looks_numeric(value: Any, depth: int = 3) -> bool:
    if isinstance(value, (list, tuple)):
        return len(value) > 0 and depth > 0 and _looks_numeric(value[0], depth - 1)
    if isinstance(value, np.ndarray):
        return value.ndim <= 1 and value.dtype.kind in "biuf"
    return isinstance(value, (bool, int, float, np.generic))


def _numbers(array: NDArray[Any]) -> NDArray[Any]:
    """An array of objects as numbers: all of it, or at least the columns that can be."""
    if array.dtype != object:
        return array
    with suppress(TypeError, ValueError):
        return array.astype(np.float64)
    columns = []
    for column in array.T if array.ndim == 2 else ():
        with suppress(TypeError, ValueError):
            columns.append(column.astype(np.float64))
    return np.column_stack(columns) if columns else array


def _fields(array: NDArray[Any]) -> _Children:
    if array.dtype.names is not None:
        yield from ((f".{name}", array[name]) for name in array.dtype.names)
    elif array.dtype.kind in "SV":
        yield "", array.tobytes()
    elif array.dtype == object:
        yield from ((f"[{number}]", item) for number, item in enumerate(array.ravel().tolist()))


def _children(value: Any) -> _Children:
    """What an object holds; nothing of it is called except for the state of a type without attributes."""
    if isinstance(value, Mapping):
        with suppress(Exception):
            for number, (key, item) in enumerate(value.items()):
                yield f"[entry {number}]", item
                yield f"[key {number}]", key
    elif isinstance(value, _SEQUENCES):
        yield from ((f"[{number}]", item) for number, item in enumerate(value))
    elif isinstance(value, functools.partial):
        yield from ((".func", value.func), (".args", value.args), (".keywords", value.keywords))
    elif isinstance(value, types.MethodType):
        yield from ((".__self__", value.__self__), (".__func__", value.__func__))
    elif isinstance(value, types.FunctionType):
        yield from ((".__defaults__", value.__defaults__), (".__kwdefaults__", value.__kwdefaults__))
        for number, cell in enumerate(value.__closure__ or ()):
            with suppress(ValueError):
                yield f".__closure__[{number}]", cell.cell_contents
    yield from _attributes(value)


def _attributes(value: Any) -> _Children:
    with suppress(Exception):
        yield from ((f".{name}", item) for name, item in vars(value).items())
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else tuple(slots):
            with suppress(Exception):
                yield f".{name}", getattr(value, name)
    # Trees and the like of extension types show their arrays only this way; what others repeat here is known by then.
    with suppress(Exception):
        if "__getstate__" in {name for kind in type(value).__mro__[:-1] for name in vars(kind)}:
            yield ".state", value.__getstate__()


def _contents(blob: bytes, budget: int) -> _Children:
    """What is in bytes that are a known kind of file; nothing where they are none, or damaged."""
    with suppress(Exception):
        if blob.startswith(b"\x93NUMPY"):
            yield "", np.load(io.BytesIO(blob), allow_pickle=False)
        elif blob.startswith(b"PK\x03\x04"):
            yield from _members(blob, budget)
        elif (header := _safetensors_header(blob)) is not None:
            yield from _tensors(blob, header)
        else:
            for magic, unpacker in _UNPACKERS.items():
                if blob.startswith(magic):
                    unpacked = unpacker().decompress(blob, max_length=budget + 1)
                    yield " unpacked", unpacked if len(unpacked) <= budget else UNSEARCHED
                    break


def _members(blob: bytes, budget: int) -> _Children:
    with zipfile.ZipFile(io.BytesIO(blob)) as archive:
        for info in archive.infolist():
            budget -= info.file_size
            if budget < 0:
                yield f"/{info.filename}", UNSEARCHED
                return
            with archive.open(info) as member:
                yield f"/{info.filename}", member.read(info.file_size)


def _safetensors_header(blob: bytes) -> dict[str, Any] | None:
    size = int.from_bytes(blob[:8], "little")
    if not 2 <= size <= len(blob) - 8 or blob[8:9] != b"{":
        return None
    header = json.loads(blob[8 : 8 + size])
    return header if isinstance(header, dict) else None


def _tensors(blob: bytes, header: dict[str, Any]) -> _Children:
    data = memoryview(blob)[8 + int.from_bytes(blob[:8], "little") :]
    for name, entry in header.items():
        with suppress(Exception):
            start, stop = entry["data_offsets"]
            if entry["dtype"] == "BF16":
                # The upper half of a float32.
                values = (np.frombuffer(data[start:stop], "<u2").astype("<u4") << 16).view("<f4")
            else:
                values = np.frombuffer(data[start:stop], _DTYPES[entry["dtype"]])
            yield f"/{name}", values.reshape(entry["shape"])
