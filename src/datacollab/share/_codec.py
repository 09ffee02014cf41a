"""A share as facts and members of a bundle, and back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

import numpy as np
import sklearn
from numpy.typing import NDArray

from .._version import __version__
from ..bundle import Bundle, arrays_to_bytes, bytes_to_arrays
from ..errors import ExchangeError, ShareError
from ._fields import ShareFields
from ._targets import check_target_facts, decode_target, encode_targets, is_named, named_from, too_large

__all__ = ["SHARE_KIND", "decode_share", "share_contents"]

SHARE_KIND = "datacollab.share"

S = TypeVar("S", bound=ShareFields)

_MOST_NAME = 200
_ARRAYS = "share.safetensors"
_TABLES = {"representation", "anchor_representation"}


def share_contents(share: ShareFields) -> tuple[dict[str, Any], dict[str, bytes]]:
    """What a `.dcshare` file says and holds of a share.

    Parameters
    ----------
    share : Share

    Returns
    -------
    facts : dict of str to object
        For the manifest; a project adds its own.
    members : dict of str to bytes

    Raises
    ------
    ExchangeError
        SHARE_MALFORMED, when targets are neither texts, numbers nor of a kind of `datacollab.targets`.
    """
    target_facts, targets = encode_targets(share.party, share.target, share.anchor_target)
    facts = {
        "party": share.party,
        "n_rows": share.representation.shape[0],
        "n_components": share.representation.shape[1],
        "n_anchors": share.anchor_representation.shape[0],
        "one_to_one": share.one_to_one,
        "target": target_facts,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"datacollab": __version__, "numpy": np.__version__, "sklearn": sklearn.__version__},
    }
    arrays = {
        "representation": share.representation,
        "anchor_representation": share.anchor_representation,
        **targets,
    }
    if share.anchor_rows is not None:
        arrays["anchor_rows"] = share.anchor_rows.astype(np.int64)
    return facts, {_ARRAYS: arrays_to_bytes(arrays)}


def decode_share(bundle: Bundle, make: type[S]) -> S:
    """The share in a bundle, after checks of every part.

    Parameters
    ----------
    bundle : Bundle
        Unsealed.
    make : type
        `Share`; what holds the fields that were read.

    Raises
    ------
    ExchangeError
        WRONG_KIND, TOO_LARGE, or SHARE_MALFORMED where the arrays do not fit together, or the manifest says something
        else of them.
    """
    if bundle.kind != SHARE_KIND:
        raise ExchangeError("WRONG_KIND", f"A share is wanted, but this is a bundle of kind {bundle.kind!r}.")
    try:
        return _share_of(bundle, make)
    except MemoryError:
        raise too_large("arrays take more memory than this machine has") from None


def _share_of(bundle: Bundle, make: type[S]) -> S:
    party = bundle.facts.get("party")
    if type(party) is not int and not (isinstance(party, str) and len(party) <= _MOST_NAME):
        raise _malformed("it does not say whose it is")
    if bundle.members.keys() != {_ARRAYS}:
        raise _malformed(f"it has the members {sorted(bundle.members)!r}, where {_ARRAYS!r} alone is wanted")
    arrays = _read_arrays(bundle.members[_ARRAYS])
    one_to_one = _one_to_one(bundle)
    target, anchor_target = _targets_of(bundle, arrays)
    try:
        share = make(
            party=party,
            representation=arrays["representation"],
            anchor_representation=arrays["anchor_representation"],
            target=target,
            anchor_target=anchor_target,
            one_to_one=one_to_one,
            anchor_rows=arrays.get("anchor_rows"),
        )
    except ShareError as error:
        raise ExchangeError("SHARE_MALFORMED", f"{error} Have the share made again.") from None
    _check_counts(share, bundle.facts)
    return share


def _read_arrays(data: bytes) -> dict[str, NDArray[Any]]:
    try:
        arrays = bytes_to_arrays(data, what=_ARRAYS)
    except ExchangeError as error:
        raise ExchangeError("SHARE_MALFORMED", str(error)) from None
    if not arrays.keys() >= _TABLES:
        raise _malformed(f"it does not hold the arrays {sorted(_TABLES)!r}")
    for name in sorted(_TABLES):
        if arrays[name].dtype != np.float64 or arrays[name].ndim != 2:
            raise _malformed(f"its {name} is no table of double precision")
    if "anchor_rows" in arrays and arrays["anchor_rows"].dtype not in (np.int32, np.int64):
        raise _malformed("its anchor_rows are no whole numbers")
    return arrays


def _targets_of(bundle: Bundle, arrays: Mapping[str, NDArray[Any]]) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Targets of the rows and of the anchor; no other arrays may be there."""
    facts = bundle.facts.get("target")
    left = {name: array for name, array in arrays.items() if name not in _TABLES | {"anchor_rows"}}
    if isinstance(facts, Mapping) and is_named(facts):
        return named_from(facts, left, *(len(arrays[name]) for name in ("representation", "anchor_representation")))
    if not {"target"} <= left.keys() <= {"target", "anchor_target"}:
        raise _malformed("it does not hold one array of targets")
    dtype, classes = check_target_facts(facts)
    targets = {name: decode_target(values, dtype, classes) for name, values in left.items()}
    return targets["target"], targets.get("anchor_target")


def _one_to_one(bundle: Bundle) -> bool:
    """What the manifest says of it."""
    one_to_one = bundle.facts.get("one_to_one")
    if type(one_to_one) is not bool:
        raise _malformed("it does not say whether its rows are the party's own")
    return one_to_one


def _check_counts(share: ShareFields, facts: Mapping[str, Any]) -> None:
    found = {
        "n_rows": share.representation.shape[0],
        "n_components": share.representation.shape[1],
        "n_anchors": share.anchor_representation.shape[0],
    }
    wrong = [name for name, value in found.items() if type(facts.get(name)) is not int or facts[name] != value]
    if wrong:
        raise _malformed(f"its manifest says something else than its arrays of {wrong!r}")


def _malformed(what: str) -> ExchangeError:
    return ExchangeError("SHARE_MALFORMED", f"The share cannot be used: {what}. Have it made again.")
