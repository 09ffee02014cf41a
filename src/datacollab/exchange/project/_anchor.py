"""The anchor as parties hold it, with the secret that only they share."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._typing import FloatArray
from ...bundle import arrays_to_bytes, bytes_to_arrays, canonical_json, pack, unpack
from ...errors import ExchangeError
from ._project import Project

__all__ = ["SECRET_BYTES", "Anchor", "anchor_arrays", "anchor_from_arrays", "anchor_from_bytes", "anchor_to_bytes"]

SECRET_BYTES = 32
_KIND, _MEMBER = "datacollab.anchor", "anchor.safetensors"
_COMMITMENT = b"datacollab anchor commitment 1\n"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Anchor:
    """The rows that all parties obfuscate alike.

    Known to all parties, and never to the analyst.

    Attributes
    ----------
    rows : ndarray of shape (n_anchors, n_features)
        In the columns of the project's matrix, so that a generated row may lie between categories.
    target : ndarray of shape (n_anchors,) or None
    secret : bytes of length 32
        What the commitment is keyed with; drawn afresh for every anchor.
    sealed_at : str
        When the owner sealed it, in ISO 8601; empty where that is not known.  No part of what parties commit to.
    """

    rows: FloatArray
    target: NDArray[Any] | None = None
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(SECRET_BYTES))
    sealed_at: str = ""

    def __repr__(self) -> str:
        with_target = "with" if self.target is not None else "without"
        return f"Anchor({self.rows.shape[0]} rows, {self.rows.shape[1]} columns, {with_target} targets)"

    def commitment(self, project: Project) -> str:
        """What parties tell the analyst of their anchor: equal where anchor and project are equal to the last bit.

        HMAC-SHA256 under the secret, so that whoever lacks it can test no guess of the rows.

        Parameters
        ----------
        project : Project

        Returns
        -------
        str of 64 hexadecimal digits
        """
        arrays = {name: array for name, array in anchor_arrays(self).items() if name != "secret"}
        keyed = hmac.new(self.secret, _COMMITMENT, sha256)
        shapes = {name: [array.dtype.str, list(array.shape)] for name, array in arrays.items()}
        keyed.update(canonical_json({"project": project.digest, "arrays": shapes}) + b"\n")
        for name in sorted(arrays):
            keyed.update(arrays[name].tobytes())
        return keyed.hexdigest()


def anchor_to_bytes(anchor: Anchor) -> bytes:
    """The anchor for a party's own disk: in the clear, so the file must be readable by its owner alone."""
    return pack(
        _KIND, {"sealed": False, "sealed_at": anchor.sealed_at}, {_MEMBER: arrays_to_bytes(anchor_arrays(anchor))}
    )


def anchor_from_bytes(data: bytes, *, what: str = "anchor.dcstate") -> Anchor:
    """Read what `anchor_to_bytes` wrote.

    Raises
    ------
    ExchangeError
        When a bit of it was changed, or it is something else.
    """
    try:
        bundle = unpack(data, kind=_KIND)
        if list(bundle.members) != [_MEMBER]:
            raise ExchangeError("BUNDLE_MALFORMED", "there are no rows in it")
        anchor = anchor_from_arrays(bytes_to_arrays(bundle.members[_MEMBER], what=what), what=what)
        return replace(anchor, sealed_at=str(bundle.facts.get("sealed_at", "")))
    except ExchangeError as error:
        if error.code == "FORMAT_TOO_NEW":
            raise
        raise ExchangeError(
            "STATE_DAMAGED",
            f"{what} is damaged, or not an anchor. Open the anchor file again with `datacollab anchor open`.",
        ) from None


def anchor_arrays(anchor: Anchor) -> dict[str, NDArray[Any]]:
    """Little-endian arrays that say all of an anchor; text becomes code points."""
    arrays: dict[str, NDArray[Any]] = {
        "rows": np.ascontiguousarray(anchor.rows, dtype="<f8"),
        "secret": np.frombuffer(anchor.secret, dtype="<i4").copy(),
    }
    if anchor.target is None:
        return arrays
    if anchor.target.dtype.kind in "OU":
        text = np.ascontiguousarray(anchor.target.astype(np.str_)).astype("<U")
        arrays["target_text"] = text.view("<i4").reshape(len(text), -1)
    else:
        arrays["target"] = np.ascontiguousarray(
            anchor.target, dtype="<f8" if anchor.target.dtype.kind == "f" else "<i8"
        )
    return arrays


def anchor_from_arrays(arrays: dict[str, NDArray[Any]], *, what: str) -> Anchor:
    """The anchor that `anchor_arrays` described.

    Raises
    ------
    ExchangeError
        When arrays are missing or do not fit together.
    """
    target_names = [name for name in ("target", "target_text") if name in arrays]
    if set(arrays) - set(target_names) != {"rows", "secret"} or len(target_names) > 1:
        raise _malformed(what, "other arrays than an anchor's")
    rows, secret = arrays["rows"], arrays["secret"]
    if rows.ndim != 2 or rows.dtype != np.float64 or 0 in rows.shape or not np.isfinite(rows).all():
        raise _malformed(what, "its rows are no table of finite numbers")
    if secret.dtype != np.int32 or secret.nbytes != SECRET_BYTES or secret.ndim != 1:
        raise _malformed(what, "it has no secret")
    target = _target(target_names[0], arrays[target_names[0]], len(rows), what) if target_names else None
    return Anchor(rows=rows, target=target, secret=secret.astype("<i4").tobytes())


def _target(name: str, array: NDArray[Any], n_rows: int, what: str) -> NDArray[Any]:
    if len(array) != n_rows if array.ndim else True:
        raise _malformed(what, "it has another number of targets than rows")
    if name == "target":
        if array.ndim != 1 or array.dtype not in (np.float64, np.int64) or not np.isfinite(array).all():
            raise _malformed(what, "its targets are no column of finite numbers")
        return array
    is_text = array.ndim == 2 and array.dtype == np.int32 and 0 not in array.shape
    # Surrogates are no characters; a text with one cannot be written.
    if not is_text or ((array < 0) | (array > 0x10FFFF) | ((array >= 0xD800) & (array < 0xE000))).any():
        raise _malformed(what, "its targets are no text")
    return np.ascontiguousarray(array, dtype="<i4").view(f"<U{array.shape[1]}").ravel()


def _malformed(what: str, reason: str) -> ExchangeError:
    return ExchangeError("BUNDLE_MALFORMED", f"{what} cannot be used: {reason}. Have it sent again.")
