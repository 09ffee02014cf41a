"""The archive that skops writes, an outline in JSON and arrays, with limits on what it may unpack to."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ExchangeError
from ._refusal import malformed, too_large

__all__ = ["MOST_BYTES", "MOST_OUTLINE_BYTES", "Archive", "read_archive", "write_archive"]

OUTLINE = "schema.json"

MOST_BYTES = 2**30
"""Of an archive once unpacked, and of its arrays as often as they are named."""

MOST_OUTLINE_BYTES = 2**24
"""Of the outline alone, which takes about twenty times as much in memory; a forest of 1,000 trees needs 6.5 million."""

_ARRAY_FILE = re.compile(r"[0-9]{1,20}\.npy")
_OLDEST_DATE = (1980, 1, 1, 0, 0, 0)
_MOST_EMPTY = 10**6
_LAST_LETTER = 0x10FFFF


@dataclass(frozen=True)
class Archive:
    """What is in an archive.

    Attributes
    ----------
    outline : dict
        Of the objects, as skops nests them.
    arrays : mapping of str to ndarray
        By name of the file.
    """

    outline: dict[str, Any]
    arrays: Mapping[str, NDArray[Any]]


def read_archive(data: bytes, *, most_bytes: int = MOST_BYTES, most_outline_bytes: int = MOST_OUTLINE_BYTES) -> Archive:
    """Unpack an archive; nothing but JSON and arrays of numbers and texts is read.

    Raises
    ------
    ExchangeError
        TOO_LARGE, before anything is unpacked, or MODEL_MALFORMED.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            entries = file.infolist()
            _check_entries(entries, most_bytes, most_outline_bytes)
            outline = json.loads(file.read(OUTLINE))
            arrays = {entry.filename: _read_array(file.read(entry)) for entry in entries if entry.filename != OUTLINE}
    except ExchangeError:
        raise
    except MemoryError:
        raise too_large("unpacks to more than this machine has memory for") from None
    # The zip, zlib, JSON and NumPy readers raise a dozen kinds of errors for damaged files, and may quote contents.
    except Exception as error:
        raise malformed(f"its archive cannot be read ({type(error).__name__})") from None
    if not isinstance(outline, dict):
        raise malformed("its outline is no object")
    return Archive(outline=outline, arrays=arrays)


def write_archive(archive: Archive) -> bytes:
    """Pack an archive; the same contents give the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, array in archive.arrays.items():
            content = io.BytesIO()
            np.save(content, array, allow_pickle=False)
            file.writestr(_entry(name), content.getbuffer())
        file.writestr(_entry(OUTLINE), json.dumps(archive.outline))
    return buffer.getvalue()


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, date_time=_OLDEST_DATE)
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


def _check_entries(entries: list[zipfile.ZipInfo], most_bytes: int, most_outline_bytes: int) -> None:
    names = [entry.filename for entry in entries]
    if len(set(names)) != len(names) or OUTLINE not in names:
        raise malformed("its archive lists a file twice, or has no outline")
    if any(name != OUTLINE and not _ARRAY_FILE.fullmatch(name) for name in names):
        raise malformed("its archive holds files other than an outline and arrays")
    if any(
        entry.flag_bits & 1 or entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
        for entry in entries
    ):
        raise malformed("its archive is encrypted, or packed in an unusual way")
    total = sum(entry.file_size for entry in entries)
    outline = next(entry.file_size for entry in entries if entry.filename == OUTLINE)
    if total > most_bytes or outline > most_outline_bytes:
        raise too_large(
            f"unpacks to {total} bytes, of which {outline} are its outline; {most_bytes} and {most_outline_bytes} are "
            "allowed"
        )


def _read_array(content: bytes) -> NDArray[Any]:
    """An array, where its header says exactly what follows; NumPy would make room for whatever it says."""
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    elif version == (2, 0):
        shape, fortran, dtype = np.lib.format.read_array_header_2_0(stream)
    else:
        raise malformed("an array in it is of an unknown version")
    n_bytes = dtype.itemsize
    for size in shape:
        n_bytes *= size
    empty = 0 in shape
    fits = n_bytes == len(content) - stream.tell() and (not empty or max(shape) <= _MOST_EMPTY)
    if dtype.hasobject or dtype.itemsize == 0 or min(shape, default=0) < 0 or not fits:
        raise malformed("the header of an array in it does not fit what follows")
    _check_entries_of(dtype, content[stream.tell() :])
    return np.ndarray(shape, dtype, content, stream.tell(), order="F" if fortran else "C")


def _check_entries_of(dtype: np.dtype[Any], raw: bytes) -> None:
    """Texts and logical values are the types of which not every byte sequence is one."""
    if dtype.kind not in "biufUV":
        raise malformed("an array in it is of an unusual type")
    if dtype.kind == "b" and raw.translate(None, b"\x00\x01"):
        raise malformed("an array in it is said to be logical and is not")
    if (
        dtype.kind == "U"
        and (np.frombuffer(raw, np.dtype(np.uint32).newbyteorder(dtype.byteorder)) > _LAST_LETTER).any()
    ):
        raise malformed("an array in it is said to be of texts and is not")
