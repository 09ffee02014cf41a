"""What a column takes once all its entries are written out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._require import require

__all__ = ["batch_bytes"]

_OBJECT = 8


def batch_bytes(batch: Any) -> int:
    """Bytes of a record batch whose entries each stand for themselves; one more for each row.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        Validated in full.

    Raises
    ------
    ValueError
        Where a column is of a type that writes a run of entries, or lists that overlap, as one.
    """
    return int(batch.num_rows + sum(_n_bytes(column) for column in batch.columns))


def _n_bytes(array: Any) -> int:
    types = require("pyarrow", "tables").types
    kind = array.type
    if isinstance(array, require("pyarrow", "tables").ExtensionArray):
        return _n_bytes(array.storage)
    if types.is_null(kind):
        return len(array) * _OBJECT
    if types.is_dictionary(kind):
        return int(_lengths(array.dictionary)[_positions(array)].sum())
    if types.is_struct(kind):
        return len(array) + sum(_n_bytes(array.field(place)) for place in range(kind.num_fields))
    if types.is_map(kind):
        return len(array) + _n_bytes(array.keys) + _n_bytes(array.items)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return len(array) + _n_bytes(array.flatten())
    return int(_lengths(array).sum())


def _positions(array: Any) -> NDArray[np.int64]:
    """Which entry of the dictionary each one is, of those that are there."""
    return np.asarray(array.indices.drop_null().to_numpy(zero_copy_only=False), dtype=np.int64)


def _lengths(array: Any) -> NDArray[np.int64]:
    """Bytes of each entry of a column that is not nested; a text's, with the reference to it."""
    pyarrow = require("pyarrow", "tables")
    types, kind = pyarrow.types, array.type
    if any(is_(kind) for is_ in (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)):
        lengths = require("pyarrow.compute", "tables").binary_length(array).fill_null(0)
        return np.asarray(lengths.to_numpy(zero_copy_only=False), dtype=np.int64) + _OBJECT
    if types.is_string_view(kind) or types.is_binary_view(kind):
        # Each view is 16 bytes, of which the first four are its text's length.
        views = np.frombuffer(array.buffers()[1] or b"", dtype="<i4").reshape(-1, 4)
        there = array.is_valid().to_numpy(zero_copy_only=False)
        return np.where(there, views[array.offset : array.offset + len(array), 0], 0).astype(np.int64) + _OBJECT
    try:
        width = max(kind.bit_width // 8, 1)
    except ValueError:
        raise ValueError("a column is of a type that tables do not have") from None
    return np.full(len(array), width, dtype=np.int64)
