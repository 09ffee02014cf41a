"""A fitted map f_k as bytes for the party's own disk."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import sklearn
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from .._by_name import OBFUSCATORS
from .._encoder import TableEncoder
from .._validation import require
from ..bundle import arrays_to_bytes, bytes_to_arrays
from ..errors import ExchangeError
from ._local_party import LocalParty, TableForm


def gaps(estimator: Any) -> dict[str, list[int]]:
    """Return strides of those arrays in a fitted estimator that have gaps, which a file does not keep.

    Without them the linear algebra below NumPy adds in another order, and the last bits of its results differ.
    """
    strides = {}
    for number, (attributes, name) in enumerate(_arrays(estimator)):
        array = attributes[name]
        if array.dtype.kind == "f" and array.size and not (array.flags.c_contiguous or array.flags.f_contiguous):
            # By number, as names may stand twice in an estimator of several parts.
            strides[str(number)] = list(array.strides)
    return strides


def with_gaps(estimator: Any, strides: dict[str, list[int]]) -> None:
    """Put the gaps back into the arrays of an estimator, in place."""
    places = list(_arrays(estimator))
    for number, distances in strides.items():
        attributes, name = places[int(number)]
        attributes[name] = _spread(attributes[name], distances)


def _spread(array: NDArray[Any], strides: list[int]) -> NDArray[Any]:
    """Return the same entries with the given distances between them."""
    order = sorted(range(array.ndim), key=lambda axis: abs(strides[axis]))
    # Each axis must step over all that the shorter steps reach, or entries would share memory.
    reach = array.itemsize
    for axis in order:
        if strides[axis] % array.itemsize or (array.shape[axis] > 1 and abs(strides[axis]) < reach):
            raise ValueError("entries of an array overlap")
        reach += (array.shape[axis] - 1) * abs(strides[axis])
    # Where steps go backwards, the first entry lies behind the others.
    first = sum((length - 1) * -step for length, step in zip(array.shape, strides, strict=True) if step < 0)
    memory = np.zeros(reach // array.itemsize, dtype=array.dtype)
    spread = as_strided(memory[first // array.itemsize :], array.shape, strides)
    spread[...] = array
    return spread


def _arrays(value: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield where the arrays of an estimator and of its parts are, always in the same order."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from _arrays(item)
    elif isinstance(value, BaseEstimator):
        attributes = vars(value)
        for name in sorted(attributes):
            if isinstance(attributes[name], np.ndarray):
                yield attributes, name
            else:
                yield from _arrays(attributes[name])


OBFUSCATOR = "obfuscator.skops"
ROTATION = "rotation.safetensors"
OWN_TYPES = frozenset(
    [f"{TableEncoder.__module__}.{TableEncoder.__qualname__}", "numpy.dtype"]
    + [entry.home for entry in OBFUSCATORS.values() if entry.home.startswith("datacollab.")]
)
"""Types that may be constructed besides those of scikit-learn and NumPy that skops itself trusts."""


def party_state(party: LocalParty) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return facts and members of a fitted party, for later predictions; `local_party` reads them.

    Neither its rows nor their targets are in it, unless the obfuscator holds them: kernel PCA and UMAP do.  JSON can
    hold the facts.

    Raise NotFittedError if the party has no rows yet, STATE_UNSUPPORTED if the obfuscator cannot be stored, and
    MissingExtraError if skops or safetensors is not installed.
    """
    party._check_fitted()
    form = party._form
    obfuscator = party._obfuscator
    facts = {
        "party": party.name,
        "form": {"n_columns": form.n_columns, "columns": form.columns, "library": form.library},
        "gaps": gaps(obfuscator),
        "sklearn": sklearn.__version__,
    }
    members = {OBFUSCATOR: _dump_obfuscator(obfuscator, party)}
    if party._rotation is not None:
        # Files hold arrays row by row; the last bits of a product depend on how its factors lie in memory.
        facts["rotation_order"] = "C" if party._rotation.flags.c_contiguous else "F"
        members[ROTATION] = arrays_to_bytes({"rotation": party._rotation})
    return facts, members


def local_party(facts: Mapping[str, Any], members: Mapping[str, bytes]) -> LocalParty:
    """Return a party that predicts, from facts and members of `party_state`.

    It transforms every row to the same bits as the party did, on the same machine and versions.

    Raise STATE_DAMAGED if they are not those of `party_state`, VERSION_MISMATCH if they come from another version of
    scikit-learn, and MissingExtraError if skops or safetensors is not installed.
    """
    require("skops.io", "exchange")
    _check_version(facts)
    try:
        obfuscator = from_skops(members[OBFUSCATOR], OWN_TYPES)
        with_gaps(obfuscator, facts["gaps"])
        rotation = None
        if ROTATION in members:
            stored = bytes_to_arrays(members[ROTATION], what="the rotation")["rotation"]
            rotation = np.asarray(stored, dtype=np.float64, order=facts["rotation_order"])
        return LocalParty(facts["party"], obfuscator, rotation=rotation, form=TableForm(**facts["form"]))
    # Skops and NumPy raise many kinds of errors for damaged contents, and may quote them.
    except Exception as error:
        raise _refuse_state(type(error).__name__) from None


def _dump_obfuscator(obfuscator: Any, party: LocalParty) -> bytes:
    require("skops.io", "exchange")
    steps = [obfuscator, *obfuscator.get_params(deep=True).values()]
    # Only `UMAPObfuscator` has this choice.
    if any(getattr(step, "out_of_sample", None) == "umap" for step in steps):
        raise ExchangeError(
            "STATE_UNSUPPORTED",
            f"Party {party.name!r}: umap-learn's own transform cannot be stored, nor does it map a row by itself. "
            "Take out_of_sample='row-wise'. Nothing left the party.",
        )
    reason = None
    try:
        data, untrusted = to_skops(obfuscator, OWN_TYPES)
        if untrusted:
            reason = f"is made of types that would not be read again: {untrusted[:10]}"
    # Transformers of others may fail in any way; their own words may quote data.
    except Exception as error:
        reason = f"{type(party.obfuscator).__name__} cannot be stored ({type(error).__name__})"
    if reason is not None:
        raise ExchangeError(
            "STATE_UNSUPPORTED",
            f"Party {party.name!r}: its obfuscator {reason}. Choose one that datacollab.obfuscator makes. Nothing left "
            "the party.",
        )
    return data


def to_skops(value: Any, types: frozenset[str]) -> tuple[bytes, list[str]]:
    """Return an object as skops writes it, and the types in it that would not be read again."""
    skops_io = require("skops.io", "exchange")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data: bytes = skops_io.dumps(value)
    return data, sorted(set(skops_io.get_untrusted_types(data=data)) - types)


def from_skops(data: bytes, types: frozenset[str]) -> Any:
    """Return the object that `to_skops` wrote; nothing of another type is made."""
    skops_io = require("skops.io", "exchange")
    if unknown := set(skops_io.get_untrusted_types(data=data)) - types:
        raise ValueError(f"{len(unknown)} types are not trusted")
    return skops_io.loads(data, trusted=sorted(types))


def _check_version(facts: Mapping[str, Any]) -> None:
    made_with = facts.get("sklearn")
    installed = sklearn.__version__
    if not isinstance(made_with, str):
        raise _refuse_state("no version")
    # Between releases that change more than the last number, scikit-learn promises no files that can be read.
    if made_with.split(".")[:2] != installed.split(".")[:2]:
        raise ExchangeError(
            "VERSION_MISMATCH",
            f"The stored map f_k of this party was made with another version of scikit-learn than {installed}. Install "
            "the one that it was shared with, or share again.",
        )


def _refuse_state(reason: str) -> ExchangeError:
    return ExchangeError(
        "STATE_DAMAGED",
        f"The stored map f_k of this party cannot be read ({reason}). Restore the file from a backup, or share again.",
    )
