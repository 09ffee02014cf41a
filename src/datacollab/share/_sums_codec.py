"""Class sums as facts and members of a bundle, and back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._version import __version__
from ..bundle import Bundle, arrays_to_bytes, bytes_to_arrays
from ..errors import ExchangeError, ShareError
from ._sums_fields import SumsFields
from ._targets import check_target_facts, decode_target, encode_targets, too_large

__all__ = ["SUMS_KIND", "decode_sums", "sums_contents"]

SUMS_KIND = "datacollab.sums"

S = TypeVar("S", bound=SumsFields)

_MOST_NAME = 200
_ARRAYS = "sums.safetensors"
_NUMBERS = {"sums": 2, "counts": 1, "anchor_representation": 2}
"""Arrays of double precision, and the axes of each."""
_WANTED = _NUMBERS.keys() | {"classes"}


def sums_contents(sums: SumsFields) -> tuple[dict[str, Any], dict[str, bytes]]:
    """What a `.dcsums` file says and holds of class sums.

    Parameters
    ----------
    sums : ClassSums

    Returns
    -------
    facts : dict of str to object
        For the manifest.
    members : dict of str to bytes

    Raises
    ------
    ExchangeError
        SHARE_MALFORMED, when classes are neither texts nor numbers.
    """
    target_facts, targets = encode_targets(sums.party, sums.classes, sums.anchor_target)
    facts = {
        "party": sums.party,
        "n_classes": len(sums.classes),
        "n_components": sums.sums.shape[1],
        "n_anchors": len(sums.anchor_representation),
        "clip": float(sums.clip),
        "noise": float(sums.noise),
        "epsilon": None if sums.epsilon is None else float(sums.epsilon),
        "delta": None if sums.delta is None else float(sums.delta),
        "target": target_facts,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"datacollab": __version__, "numpy": np.__version__},
    }
    arrays = {name: getattr(sums, name) for name in _NUMBERS} | {"classes": targets.pop("target")} | targets
    return facts, {_ARRAYS: arrays_to_bytes(arrays)}


def decode_sums(bundle: Bundle, make: type[S]) -> S:
    """The sums in a bundle, after checks of every part.

    Parameters
    ----------
    bundle : Bundle
        Unsealed.
    make : type
        `ClassSums`; what holds the fields that were read.

    Raises
    ------
    ExchangeError
        WRONG_KIND, TOO_LARGE, or SHARE_MALFORMED where the parts do not fit together, or the manifest says something
        else of them.
    """
    if bundle.kind != SUMS_KIND:
        raise ExchangeError("WRONG_KIND", f"Class sums are wanted, but this is a bundle of kind {bundle.kind!r}.")
    try:
        return _sums_of(bundle, make)
    except MemoryError:
        raise too_large("arrays take more memory than this machine has") from None


def _sums_of(bundle: Bundle, make: type[S]) -> S:
    party = bundle.facts.get("party")
    if type(party) is not int and not (isinstance(party, str) and len(party) <= _MOST_NAME):
        raise _malformed("they do not say whose they are")
    if bundle.members.keys() != {_ARRAYS}:
        raise _malformed(f"they have the members {sorted(bundle.members)!r}, where {_ARRAYS!r} alone is wanted")
    arrays = _read_arrays(bundle.members[_ARRAYS])
    dtype, names = check_target_facts(bundle.facts.get("target"))
    anchor_target = arrays.get("anchor_target")
    numbers: dict[str, Any] = {name: bundle.facts.get(name) for name in ("clip", "noise", "epsilon", "delta")}
    try:
        sums = make(
            party=party,
            classes=decode_target(arrays["classes"], dtype, names),
            anchor_target=None if anchor_target is None else decode_target(anchor_target, dtype, names),
            sums=arrays["sums"],
            counts=arrays["counts"],
            anchor_representation=arrays["anchor_representation"],
            **numbers,
        )
    except ShareError as error:
        raise ExchangeError("SHARE_MALFORMED", str(error)) from None
    _check_counts(sums, bundle.facts)
    return sums


def _read_arrays(data: bytes) -> dict[str, NDArray[Any]]:
    try:
        arrays = bytes_to_arrays(data, what=_ARRAYS)
    except ExchangeError as error:
        raise ExchangeError("SHARE_MALFORMED", str(error)) from None
    if not _WANTED <= arrays.keys() <= _WANTED | {"anchor_target"}:
        raise _malformed(f"they do not hold the arrays {sorted(_WANTED)!r}")
    for name, n_axes in _NUMBERS.items():
        if arrays[name].dtype != np.float64 or arrays[name].ndim != n_axes:
            raise _malformed(f"their {name} is no array of double precision with {n_axes} axes")
    return arrays


def _check_counts(sums: SumsFields, facts: Mapping[str, Any]) -> None:
    found = {
        "n_classes": len(sums.classes),
        "n_components": sums.sums.shape[1],
        "n_anchors": len(sums.anchor_representation),
    }
    wrong = [name for name, value in found.items() if type(facts.get(name)) is not int or facts[name] != value]
    if wrong:
        raise _malformed(f"their manifest says something else than their arrays of {wrong!r}")


def _malformed(what: str) -> ExchangeError:
    return ExchangeError("SHARE_MALFORMED", f"The class sums cannot be used: {what}. Have them made again.")
