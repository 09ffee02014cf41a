"""What an attacker knows beside leaked pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._validation import FloatArray
from ...errors import AgreementError
from ._checks import check_rows
from ._targets import IntArray, TargetCode

__all__ = ["SideInformation", "TargetColumns", "centre", "check_public", "column_scale"]


@dataclass(frozen=True, kw_only=True, eq=False)
class SideInformation:
    """What the attacker knows beside the leaked pairs.

    Attributes
    ----------
    groups : ndarray of shape (n_leaked,) or None
        Class of each leaked row, or its group of similar numeric targets; None without targets.
    public : ndarray of shape (n_public, n_features) or None
        Public rows, less the mean of the leaked originals.
    public_groups : ndarray of shape (n_public,) or None
        Groups of the public rows; None without targets.
    """

    groups: IntArray | None = None
    public: FloatArray | None = None
    public_groups: IntArray | None = None


@dataclass(frozen=True, eq=False)
class TargetColumns:
    """Targets as further columns of a representation.

    Attributes
    ----------
    code : TargetCode
    mean : ndarray of shape (n_columns,)
        Of the leaked rows' columns.
    weight : float
        Makes the columns vary as much, in all, as the representation does.
    """

    code: TargetCode
    mean: FloatArray
    weight: float

    @classmethod
    def learn(cls, code: TargetCode, target: NDArray[Any], Z: FloatArray) -> TargetColumns:
        """Weigh the columns against the leaked representation, which is centred."""
        columns, mean = centre(code.columns(target))
        spread = float((columns**2).sum())
        return cls(code, mean, float(np.sqrt((Z**2).sum() / spread)) if spread > 0 else 0.0)

    def append_to(self, Z: FloatArray, target: NDArray[Any]) -> FloatArray:
        """The representation with the columns beside it, shape (n_rows, n_intermediate + n_columns)."""
        return np.hstack([Z, self.weight * (self.code.columns(target) - self.mean)])


def check_public(public: ArrayLike, n_features: int) -> FloatArray:
    """Public rows with the originals' columns.

    Raises
    ------
    RepresentationError
        When they are not a finite, two-dimensional, numeric table.
    AgreementError
        When they have other columns.
    """
    P = check_rows(public, "The public table")
    if P.shape[1] != n_features:
        raise AgreementError(
            f"The public table has {P.shape[1]} columns but the originals have {n_features}; give the same columns in "
            "the same order."
        )
    return P


def centre(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The rows without their mean, and the mean."""
    # Differences to a row keep the digits that a large offset takes up, and make a constant column exactly zero.
    differences = rows - rows[0]
    mean = differences.mean(axis=0)
    return differences - mean, rows[0] + mean


def column_scale(rows: FloatArray, standardize: bool) -> FloatArray:
    """What columns are multiplied with: one over their standard deviation, or one; nought for one that is constant."""
    if not standardize:
        return np.ones(rows.shape[1])
    # The deviation of a constant column may be a rounding error.
    varying = np.ptp(rows, axis=0) > 0
    scale = np.zeros(rows.shape[1])
    scale[varying] = 1.0 / rows[:, varying].std(axis=0)
    return scale
