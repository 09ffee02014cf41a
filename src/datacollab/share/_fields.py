"""What a party sends, as checked fields that know of no file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import FloatArray, PartyName, check_representation, check_single_targets, count_missing
from ..errors import AgreementError, RepresentationError, ShareError
from ..targets import TargetKind, named_target, target_kind

__all__ = ["ShareFields"]


_MOST_ENTRY = 1e30
"""Products of four are finite in double precision, and entries are in single."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ShareFields:
    """The fields and their checks; `Share`, where they are described, is this with its file."""

    party: PartyName
    representation: FloatArray
    anchor_representation: FloatArray
    target: NDArray[Any]
    anchor_target: NDArray[Any] | None = None
    one_to_one: bool = True
    anchor_rows: NDArray[np.intp] | None = None

    def __post_init__(self) -> None:
        try:
            X = check_representation(self.representation, self.party)
            A = check_representation(self.anchor_representation, self.party, what="anchor representation")
        except RepresentationError as error:
            raise ShareError(str(error)) from None
        if X.shape[1] != A.shape[1]:
            raise ShareError(
                f"Party {self.party!r}: its rows have {X.shape[1]} columns but its anchor has {A.shape[1]}; transform "
                "both with the same fitted obfuscator."
            )
        for what, table in (("representation", X), ("anchor representation", A)):
            if np.abs(table).max() > _MOST_ENTRY:
                raise ShareError(
                    f"Party {self.party!r}: the {what} has entries beyond {_MOST_ENTRY:g}, with which nobody's "
                    "could be integrated. Scale the columns before or after the obfuscator."
                )
        self._freeze("representation", X)
        self._freeze("anchor_representation", A)
        self._freeze("target", self._checked_target(self.target, X.shape[0], "target"))
        if self.anchor_target is not None:
            self._freeze("anchor_target", self._checked_target(self.anchor_target, A.shape[0], "anchor_target"))
            if target_kind(self.anchor_target) is not self.target_kind:
                raise ShareError(
                    f"Party {self.party!r}: targets are of kind {self.target_kind}, but the anchor's of kind "
                    f"{target_kind(self.anchor_target)}. Give the anchor targets of the same kind, or none."
                )
        if self.anchor_rows is not None:
            self._freeze("anchor_rows", self._checked_anchor_rows(X.shape[0], A.shape[0]))

    def _freeze(self, name: str, array: NDArray[Any]) -> None:
        copy = array.copy()
        copy.setflags(write=False)
        object.__setattr__(self, name, copy)

    def _checked_target(self, values: ArrayLike, n_rows: int, name: str) -> NDArray[Any]:
        target = np.asarray(values)
        if target.dtype.names is None:
            check_single_targets(target, f"Party {self.party!r}: {name}", ShareError)
        if target.shape != (n_rows,):
            raise ShareError(
                f"Party {self.party!r}: {name} must have one entry per row, shape ({n_rows},); got {target.shape}."
            )
        if count_missing(target) or (target.dtype.kind == "f" and not np.isfinite(target).all()):
            raise ShareError(f"Party {self.party!r}: {name} contains NaN, None or infinity; drop such rows.")
        try:
            return named_target(target)
        except AgreementError as error:
            raise ShareError(f"Party {self.party!r}: {name}: {error}") from None

    def _checked_anchor_rows(self, n_rows: int, n_anchors: int) -> NDArray[np.intp]:
        positions = np.asarray(self.anchor_rows)
        if positions.shape != (n_rows,) or positions.dtype.kind not in "iu" or self.one_to_one:
            raise ShareError(
                f"Party {self.party!r}: anchor_rows must be None, or {n_rows} whole numbers, one per shared row, and "
                f"one_to_one False; got shape {positions.shape} of {positions.dtype} and one_to_one={self.one_to_one}."
            )
        if positions.min() < 0 or positions.max() >= n_anchors:
            raise ShareError(f"Party {self.party!r}: anchor_rows must be positions among the {n_anchors} anchor rows.")
        return positions.astype(np.intp)

    @property
    def target_kind(self) -> TargetKind:
        """What the targets are."""
        return target_kind(self.target)

    @property
    def nbytes(self) -> int:
        """Size of the arrays, in bytes."""
        arrays = (self.representation, self.anchor_representation, self.target, self.anchor_target, self.anchor_rows)
        return sum(array.nbytes for array in arrays if array is not None)
