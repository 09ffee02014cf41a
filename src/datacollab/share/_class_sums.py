"""Noisy sums over a party's classes: what it sends instead of rows, and its file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import FloatArray, PartyName, check_representation, check_single_targets, count_missing
from .._version import __version__
from ..bundle import Bundle, SignedFile, arrays_to_bytes, bytes_to_arrays
from ..errors import ExchangeError, RepresentationError, ShareError
from ._targets import check_target_facts, decode_target, encode_targets, too_large

__all__ = ["SUMS_KIND", "ClassSums", "class_sums_from", "sums_contents"]

_MOST_ENTRY = 1e30
"""As of shares."""


SUMS_KIND = "datacollab.sums"

_MOST_NAME = 200
_ARRAYS = "sums.safetensors"
_NUMBERS = {"sums": 2, "counts": 1, "anchor_representation": 2}
"""Arrays of double precision, and the axes of each."""
_WANTED = _NUMBERS.keys() | {"classes"}


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ClassSums(SignedFile):
    r"""What the analyst gets from one party instead of a `Share`: no row, and no row's label.

    `Party.class_sums` makes it.  The shapes of all arrays, and everything but `sums` and `counts`, are the same
    whatever the party's rows are.  Arrays are copied and made read-only.

    Attributes
    ----------
    party : str or int
        The party's name.
    classes : ndarray of shape (n_classes,)
        Agreed on, and public; also those that the party has no row of.
    sums : ndarray of shape (n_classes, n_intermediate)
        :math:`\sum_{i: y_i = c} v_i` with noise, where :math:`v_i` is the row's representation less the mean of the
        anchor's, moved towards zero until it is no longer than `clip`.
    counts : ndarray of shape (n_classes,)
        How many rows each class has, with noise: fractions, and numbers below zero, among them.
    anchor_representation : ndarray of shape (n_anchors, n_intermediate)
        :math:`\tilde A^{(k)} = f_k(A)`, in the row order of the anchor.
    clip : float
        C, from the anchor's representation alone.
    noise : float
        Standard deviation of the noise in each entry of `sums`; in each entry of `counts` it is ``noise / clip``.
    anchor_target : ndarray of shape (n_anchors,) or None
        Targets of the anchor rows, where assigned.
    epsilon, delta : float or None
        What the party's guarantee states of this message, together with whatever it sent of the same rows before;
        None where it can state nothing, as in an experiment with a `random_state`.  It is the party's word: nothing in
        the message proves it.

    Raises
    ------
    ShareError
        When the parts do not fit together, or are not finite.

    Examples
    --------
    >>> ClassSums(
    ...     party="a", classes=["no", "yes"], sums=[[0.5], [-1.5]], counts=[10.2, 7.9],
    ...     anchor_representation=[[0.0], [1.0], [2.0]], clip=1.0, noise=2.2,
    ... )
    ClassSums(party='a', classes=2, sums=(2, 1), anchor_representation=(3, 1), anchor_target=None, epsilon=None)
    """

    kind = SUMS_KIND

    party: PartyName
    classes: NDArray[Any]
    sums: FloatArray
    counts: FloatArray
    anchor_representation: FloatArray
    clip: float
    noise: float
    anchor_target: NDArray[Any] | None = None
    epsilon: float | None = None
    delta: float | None = None

    def __post_init__(self) -> None:
        classes = self._checked_labels(self.classes, "classes")
        if len(classes) < 2 or len(np.unique(classes)) < len(classes):
            raise self._error(f"classes must be at least two, each once; got {len(classes)} entries")
        try:
            A = check_representation(self.anchor_representation, self.party, what="anchor representation")
            sums = check_representation(self.sums, self.party, what="table of sums", n_features=A.shape[1])
        except RepresentationError as error:
            raise ShareError(str(error)) from None
        counts = np.asarray(self.counts)
        if counts.dtype.kind not in "fiu" or len(sums) != len(classes) or counts.shape != (len(classes),):
            raise self._error(
                f"sums and counts must be numbers, one row and one entry for each of the {len(classes)} classes; got "
                f"shapes {sums.shape} and {counts.shape}"
            )
        counts = counts.astype(np.float64)
        for what, table in (("sums", sums), ("counts", counts), ("anchor_representation", A)):
            if not (np.abs(table) <= _MOST_ENTRY).all():
                raise self._error(f"{what} must be finite, and no entry beyond {_MOST_ENTRY:g}")
        self._check_numbers()
        for name, array in (("classes", classes), ("sums", sums), ("counts", counts), ("anchor_representation", A)):
            self._freeze(name, array)
        if self.anchor_target is not None:
            anchor_target = self._checked_labels(self.anchor_target, "anchor_target")
            if anchor_target.shape != (len(A),):
                raise self._error(
                    f"anchor_target must have one entry per anchor row, shape ({len(A)},); got {anchor_target.shape}"
                )
            self._freeze("anchor_target", anchor_target)

    def _check_numbers(self) -> None:
        if (self.epsilon is None) != (self.delta is None):
            raise self._error("epsilon and delta must both be stated, or neither")
        bounds = {"clip": _MOST_ENTRY, "noise": _MOST_ENTRY}
        if self.epsilon is not None:
            bounds |= {"epsilon": math.inf, "delta": 1.0}
        for name, below in bounds.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, float | int) or not 0 < value < below:
                raise self._error(f"{name} must be a number above 0 and below {below:g}; got {value!r}")

    def _checked_labels(self, values: ArrayLike, name: str) -> NDArray[Any]:
        labels = np.asarray(values)
        check_single_targets(labels, f"Party {self.party!r}: {name}", ShareError)
        if labels.ndim != 1 or count_missing(labels) or (labels.dtype.kind == "f" and not np.isfinite(labels).all()):
            raise self._error(f"{name} must be a list without NaN, None or infinity; got shape {labels.shape}")
        return labels

    def _freeze(self, name: str, array: NDArray[Any]) -> None:
        copy = array.copy()
        copy.setflags(write=False)
        object.__setattr__(self, name, copy)

    def _error(self, what: str) -> ShareError:
        return ShareError(f"Party {self.party!r}: {what}. Have the sums made again by Party.class_sums.")

    @property
    def count_noise(self) -> float:
        """Standard deviation of the noise in each count."""
        return self.noise / self.clip

    @property
    def nbytes(self) -> int:
        """Size of the arrays, in bytes."""
        arrays = (self.classes, self.sums, self.counts, self.anchor_representation, self.anchor_target)
        return sum(array.nbytes for array in arrays if array is not None)

    def _contents(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        return sums_contents(self)

    @classmethod
    def _from_bundle(cls, bundle: Bundle) -> ClassSums:
        return class_sums_from(bundle)

    def __repr__(self) -> str:
        anchor_target = None if self.anchor_target is None else self.anchor_target.shape
        return (
            f"ClassSums(party={self.party!r}, classes={len(self.classes)}, sums={self.sums.shape}, "
            f"anchor_representation={self.anchor_representation.shape}, anchor_target={anchor_target}, "
            f"epsilon={self.epsilon!r})"
        )


def sums_contents(sums: ClassSums) -> tuple[dict[str, Any], dict[str, bytes]]:
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


def class_sums_from(bundle: Bundle) -> ClassSums:
    """The sums in a bundle, after checks of every part.

    Parameters
    ----------
    bundle : Bundle
        Unsealed.

    Raises
    ------
    ExchangeError
        WRONG_KIND, TOO_LARGE, or SHARE_MALFORMED where the parts do not fit together, or the manifest says something
        else of them.
    """
    if bundle.kind != SUMS_KIND:
        raise ExchangeError("WRONG_KIND", f"Class sums are wanted, but this is a bundle of kind {bundle.kind!r}.")
    try:
        return _sums_of(bundle)
    except MemoryError:
        raise too_large("arrays take more memory than this machine has") from None


def _sums_of(bundle: Bundle) -> ClassSums:
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
        sums = ClassSums(
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


def _check_counts(sums: ClassSums, facts: Mapping[str, Any]) -> None:
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
