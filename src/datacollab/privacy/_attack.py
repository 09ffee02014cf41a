"""What every reconstruction attack looks like."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._validation import FloatArray
from ..errors import AgreementError, RepresentationError
from ._checks import check_rows

__all__ = ["ReconstructionAttack"]


class ReconstructionAttack(BaseEstimator, ABC):
    """Base of the attacks that learn to undo one party's obfuscator.

    The attacker holds leaked pairs: original rows, such as rows of the anchor, and what the party's obfuscator made of
    them.  The attack learns from the pairs and is then turned on representations whose original it does not have.

    A subclass implements `_fit` and `_reconstruct`.  Both see centred arrays only, with the columns' means over the
    leaked pairs subtracted; the means are taken off and added back here.  It checks its parameters by
    ``_parameter_constraints``, as scikit-learn's estimators do, and raises ``_min_pairs`` if two pairs are too few.

    Attributes
    ----------
    mean_representation_ : ndarray of shape (n_intermediate,)
        Mean of the leaked representations.
    mean_original_ : ndarray of shape (n_features,)
        Mean of the leaked originals: the guess of an attacker that ignores the representation.
    n_features_in_ : int
        n_intermediate.
    n_features_out_ : int
        n_features.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {}
    _min_pairs: ClassVar[int] = 2

    mean_representation_: FloatArray
    mean_original_: FloatArray
    n_features_in_: int
    n_features_out_: int

    def fit(self, representation: ArrayLike, original: ArrayLike) -> Self:
        """Learn from leaked pairs.

        Parameters
        ----------
        representation : array-like of shape (n_leaked, n_intermediate)
            One party's intermediate representation of the leaked rows.
        original : array-like of shape (n_leaked, n_features)
            The leaked rows, in the same order.

        Returns
        -------
        self

        Raises
        ------
        AgreementError
            When the numbers of rows differ.
        RepresentationError
            When a table is not finite, two-dimensional and numeric, or there are too few pairs.
        """
        self._validate_params()
        Z = check_rows(representation, "The leaked representation")
        A = check_rows(original, "The leaked original")
        if Z.shape[0] != A.shape[0]:
            raise AgreementError(
                f"The leaked representation has {Z.shape[0]} rows but the leaked original has {A.shape[0]}; give "
                "pairs, the same rows in the same order."
            )
        if Z.shape[0] < self._min_pairs:
            raise RepresentationError(
                f"{type(self).__name__} learns from at least {self._min_pairs} leaked pairs; got {Z.shape[0]}. "
                "Leak more rows."
            )
        Z, mean_representation = _centre(Z)
        A, mean_original = _centre(A)
        self._fit(Z, A)
        self.mean_representation_ = mean_representation
        self.mean_original_ = mean_original
        self.n_features_in_ = Z.shape[1]
        self.n_features_out_ = A.shape[1]
        return self

    def reconstruct(self, representation: ArrayLike) -> FloatArray:
        """Guess the original rows.

        Parameters
        ----------
        representation : array-like of shape (n_rows, n_intermediate)
            From the obfuscator that the leaked pairs come from.

        Returns
        -------
        ndarray of shape (n_rows, n_features)

        Raises
        ------
        RepresentationError
            When the representation is not finite, two-dimensional and numeric, or has other columns than the leaked.
        """
        check_is_fitted(self)
        Z = check_rows(representation, "The representation")
        if Z.shape[1] != self.n_features_in_:
            raise RepresentationError(
                f"The representation has {Z.shape[1]} columns but the leaked one had {self.n_features_in_}; attack "
                "rows from the same obfuscator as the leaked pairs."
            )
        return self.mean_original_ + self._reconstruct(Z - self.mean_representation_)

    def _get_fitted_attr_html(self, doc_link: str = "") -> Any:
        # A notebook would print what was learnt from the leaked rows, and be shared.
        shown = super()._get_fitted_attr_html(doc_link)
        shown.clear()
        return shown

    @abstractmethod
    def _fit(self, Z: FloatArray, A: FloatArray) -> None:
        """Learn from centred pairs of shapes (n_leaked, n_intermediate) and (n_leaked, n_features)."""

    @abstractmethod
    def _reconstruct(self, Z: FloatArray) -> FloatArray:
        """Guess the originals of centred rows, without the mean; shape (n_rows, n_features)."""


def _centre(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The rows without their mean, and the mean."""
    # Differences to a row keep the digits that a large offset takes up, and make a constant column exactly zero.
    differences = rows - rows[0]
    mean = differences.mean(axis=0)
    return differences - mean, rows[0] + mean
