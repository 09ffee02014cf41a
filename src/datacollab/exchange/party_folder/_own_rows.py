"""The rows that were shared, on the party's own disk: what it combines its own models with the common one by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._typing import FloatArray
from ...bundle import arrays_to_bytes, bytes_to_arrays
from ...errors import ExchangeError
from ...share import check_target_facts, decode_target, encode_targets, is_named, named_from

__all__ = ["OwnRows", "own_rows_from", "own_rows_to"]

MEMBER = "own-rows.safetensors"


@dataclass(frozen=True, kw_only=True, eq=False)
class OwnRows:
    """Rows of the project's matrix, and which of them each shared row is.  They are the table itself.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features)
    target : ndarray of shape (n_rows,)
    order : ndarray of shape (n_shared,) or None
        Position of each shared row, in the order of the share; None where shared rows stand for none of these.
    n_shared : int
    """

    X: FloatArray
    target: NDArray[Any]
    order: NDArray[np.intp] | None
    n_shared: int

    def __repr__(self) -> str:
        return f"OwnRows({len(self.X)} rows, {self.n_shared} shared)"


def own_rows_to(own: OwnRows) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Facts and members for the state of a party.

    Raises
    ------
    ExchangeError
        SHARE_MALFORMED, when targets are neither texts nor numbers.
    """
    target_facts, targets = encode_targets("of this folder", own.target, None)
    arrays = {"rows": np.asarray(own.X, dtype=np.float64), **targets}
    if own.order is not None:
        arrays["order"] = own.order.astype(np.int64)
    return {"target": target_facts, "n_shared": own.n_shared}, {MEMBER: arrays_to_bytes(arrays)}


def own_rows_from(facts: Any, members: Mapping[str, bytes]) -> OwnRows:
    """Return the rows in the state of a party.

    Raises
    ------
    ExchangeError
        STATE_DAMAGED.
    """
    try:
        arrays = bytes_to_arrays(members[MEMBER], what=MEMBER)
        target = _target_of(facts["target"], arrays)
        order = arrays["order"].astype(np.intp) if "order" in arrays else None
        return OwnRows(X=arrays["rows"], target=target, order=order, n_shared=int(facts["n_shared"]))
    except (ExchangeError, KeyError, TypeError, ValueError) as error:
        raise ExchangeError(
            "STATE_DAMAGED",
            f"The stored rows of this party cannot be read ({type(error).__name__}). Restore the file from a backup, "
            "or share again.",
        ) from None


def _target_of(facts: Any, arrays: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    if not is_named(facts):
        return decode_target(arrays["target"], *check_target_facts(facts))
    fields = {name: array for name, array in arrays.items() if name not in ("rows", "order")}
    return named_from(facts, fields, len(arrays["rows"]), 0)[0]
