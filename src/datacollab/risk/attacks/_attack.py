"""What every reconstruction attack looks like."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..._notebooks import FittedUnseen
from ..._validation import FloatArray
from ...errors import AgreementError, RepresentationError
from ._checks import check_rows
from ._side import SideInformation, TargetColumns, centre, check_public
from ._targets import IntArray, TargetCode, check_targets, learn_target_code

__all__ = ["ReconstructionAttack"]


class ReconstructionAttack(FittedUnseen, BaseEstimator, ABC):
    """Base of the attacks that learn to undo one party's obfuscator.

    The attacker holds leaked pairs: original rows, such as rows of the anchor, and what the party's obfuscator made of
    them.  The attack learns from the pairs and is then turned on representations whose original it does not have.

    A subclass implements `_fit` and `_reconstruct`.  Both see centred arrays only, with the columns' means over the
    leaked pairs subtracted; the means are taken off and added back here.  It checks its parameters by
    ``_parameter_constraints``, as scikit-learn's estimators do, and raises ``_min_pairs`` if two pairs are too few.

    With targets an attack is *label-informed*: they become further columns of the representation, or, where the
    subclass sets ``_targets_as_columns`` to False, tell it the groups of rows.

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

    needs_public: ClassVar[bool] = False
    """Whether `fit` wants public rows; other attacks ignore them."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {}
    _min_pairs: ClassVar[int] = 2
    _targets_as_columns: ClassVar[bool] = True

    mean_representation_: FloatArray
    mean_original_: FloatArray
    n_features_in_: int
    n_features_out_: int
    _code: TargetCode | None
    _columns: TargetColumns | None
    _target_like: NDArray[Any] | None

    def fit(
        self,
        representation: ArrayLike,
        original: ArrayLike,
        *,
        target: ArrayLike | None = None,
        public: ArrayLike | None = None,
        public_target: ArrayLike | None = None,
    ) -> Self:
        """Learn from leaked pairs.

        Parameters
        ----------
        representation : array-like of shape (n_leaked, n_intermediate)
            One party's intermediate representation of the leaked rows.
        original : array-like of shape (n_leaked, n_features)
            The leaked rows, in the same order.
        target : array-like of shape (n_leaked,), optional
            Their targets: floating-point numbers are regression targets, all else are class labels.  `reconstruct`
            then wants the targets of the rows attacked.
        public : array-like of shape (n_public, n_features), optional
            Rows of the same kind whose representation the attacker does not have.
        public_target : array-like of shape (n_public,), optional
            Their targets; wanted where public rows are and there is a `target`.

        Returns
        -------
        self

        Raises
        ------
        AgreementError
            When numbers of rows or columns differ, targets are not one per row and of one kind, or what is wanted is
            missing.
        RepresentationError
            When a table is not finite, two-dimensional and numeric, or there are too few pairs.
        """
        self._validate_params()
        Z, A = self._check_pairs(representation, original)
        y = None if target is None else check_targets(target, len(A), "The leaked rows' target")
        P, y_public = self._check_side(A.shape[1], y, public, public_target)
        Z, mean_representation = centre(Z)
        A, mean_original = centre(A)
        code = None if y is None else learn_target_code(y, y_public)
        columns = None
        if y is not None and code is not None and self._targets_as_columns:
            columns = TargetColumns.learn(code, y, Z)
        side = SideInformation(
            groups=_groups(code, y),
            public=None if P is None else P - mean_original,
            public_groups=_groups(code, y_public),
        )
        self._fit(Z if columns is None or y is None else columns.append_to(Z, y), A, side)
        # Of the targets only their kind is kept.
        self._code, self._columns, self._target_like = code, columns, None if y is None else y[:0]
        self.mean_representation_ = mean_representation
        self.mean_original_ = mean_original
        self.n_features_in_ = Z.shape[1]
        self.n_features_out_ = A.shape[1]
        return self

    def reconstruct(self, representation: ArrayLike, *, target: ArrayLike | None = None) -> FloatArray:
        """Guess the original rows.

        Parameters
        ----------
        representation : array-like of shape (n_rows, n_intermediate)
            From the obfuscator that the leaked pairs come from.
        target : array-like of shape (n_rows,), optional
            The rows' targets; wanted if, and only if, `fit` was given targets.  A class that none of the rows in `fit`
            had counts as unknown.

        Returns
        -------
        ndarray of shape (n_rows, n_features)

        Raises
        ------
        RepresentationError
            When the representation is not finite, two-dimensional and numeric, or has other columns than the leaked.
        AgreementError
            When targets are missing, not wanted, not one per row, or of another kind than those in `fit`.
        """
        Z = self._check_representation(representation)
        y = self._check_target_wanted(target, len(Z))
        Z = Z - self.mean_representation_
        if self._columns is not None and y is not None:
            Z = self._columns.append_to(Z, y)
        return self.mean_original_ + self._reconstruct(Z, _groups(self._code, y))

    def _check_representation(self, representation: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        Z = check_rows(representation, "The representation")
        if Z.shape[1] != self.n_features_in_:
            raise RepresentationError(
                f"The representation has {Z.shape[1]} columns but the leaked one had {self.n_features_in_}; attack "
                "rows from the same obfuscator as the leaked pairs."
            )
        return Z

    def _check_pairs(self, representation: ArrayLike, original: ArrayLike) -> tuple[FloatArray, FloatArray]:
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
        return Z, A

    def _check_side(
        self, n_features: int, y: NDArray[Any] | None, public: ArrayLike | None, public_target: ArrayLike | None
    ) -> tuple[FloatArray | None, NDArray[Any] | None]:
        """Public rows and their targets, as far as the attack uses them."""
        if not self.needs_public:
            return None, None
        if public is None:
            raise AgreementError(f"{type(self).__name__} wants public rows; pass public.")
        P = check_public(public, n_features)
        if y is None:
            return P, None
        if public_target is None:
            raise AgreementError(
                f"{type(self).__name__} was given targets of the leaked rows but not of the public ones; pass "
                "public_target, or leave target out."
            )
        return P, check_targets(public_target, len(P), "The public rows' target", like=y)

    def _check_target_wanted(self, target: ArrayLike | None, n_rows: int) -> NDArray[Any] | None:
        if (target is None) != (self._target_like is None):
            given, fitted = ("no", "with") if target is None else ("a", "without")
            raise AgreementError(
                f"{type(self).__name__} got {given} target to reconstruct with, but was fitted {fitted} targets. Give "
                "targets to both or to neither."
            )
        return None if target is None else check_targets(target, n_rows, "The target", like=self._target_like)

    @abstractmethod
    def _fit(self, Z: FloatArray, A: FloatArray, side: SideInformation) -> None:
        """Learn from centred pairs of shapes (n_leaked, n_intermediate) and (n_leaked, n_features)."""

    @abstractmethod
    def _reconstruct(self, Z: FloatArray, groups: IntArray | None) -> FloatArray:
        """Guess the originals of centred rows, without the mean; shape (n_rows, n_features)."""


def _groups(code: TargetCode | None, target: NDArray[Any] | None) -> IntArray | None:
    return None if code is None or target is None else code.groups(target)
