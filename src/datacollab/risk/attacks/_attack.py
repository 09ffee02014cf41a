"""What every reconstruction attack does: checks, side information, targets as numbers, noise, and the base class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.covariance import ledoit_wolf
from sklearn.utils.validation import check_is_fitted

from ..._notebooks import FittedUnseen
from ..._validation import FloatArray, check_single_targets, count_missing
from ...anchor._base import check_table
from ...errors import AgreementError, AnchorError, RepresentationError

__all__ = [
    "Components",
    "IntArray",
    "ReconstructionAttack",
    "SideInformation",
    "TargetCode",
    "centre",
    "check_rows",
    "check_targets",
    "column_scale",
    "learn_target_code",
    "mean_rest",
    "noise_covariance",
    "principal_components",
]


def check_rows(values: ArrayLike, what: str) -> FloatArray:
    """Turn an array, a list or a data frame into a finite, two-dimensional float64 array.

    Raises
    ------
    RepresentationError
        When it is sparse, not numeric, not two-dimensional, empty or not finite; the message names it by `what`.
    """
    try:
        return check_table(values, what)
    except AnchorError as error:
        raise RepresentationError(str(error)) from None


FLOOR = 1e-10
"""Least variance of the noise, as a part of the representation's."""


def noise_covariance(residuals: FloatArray, Z: FloatArray) -> FloatArray:
    """Covariance of the errors of a forward map, shrunk towards a multiple of the identity, positive definite.

    Parameters
    ----------
    residuals : ndarray of shape (n_rows, n_intermediate)
        Errors for rows that the map was not fitted to.
    Z : ndarray of shape (n_leaked, n_intermediate)
        Centred representations, which give the scale.

    Returns
    -------
    ndarray of shape (n_intermediate, n_intermediate)
    """
    # Ledoit and Wolf's shrinkage turns with the representation, so attacks do not depend on its axes.
    covariance: FloatArray = ledoit_wolf(residuals, assume_centered=True)[0]
    floor = FLOOR * float((Z**2).mean())
    covariance[np.diag_indices_from(covariance)] += floor if floor > 0 else 1.0
    return covariance


MAX_DIRECTIONS = 100
"""Directions, at most, that are computed."""


@dataclass(frozen=True, eq=False)
class Components:
    """Principal components.

    Attributes
    ----------
    mean, scale : ndarray of shape (n_columns,)
        What is taken off the columns, and what they are then divided by.
    directions : ndarray of shape (n_columns, n_directions)
        Orthonormal, by descending variance.
    """

    mean: FloatArray
    scale: FloatArray
    directions: FloatArray

    def scores(self, X: FloatArray) -> FloatArray:
        """Coordinates of rows, shape (n_rows, n_directions)."""
        scores: FloatArray = ((X - self.mean) / self.scale) @ self.directions
        return scores

    def rows(self, scores: FloatArray) -> FloatArray:
        """Rows with these coordinates and without all else, shape (n_rows, n_columns)."""
        rows: FloatArray = self.mean + (scores @ self.directions.T) * self.scale
        return rows

    def leading(self, number: int) -> Components:
        """Without the directions beyond a number."""
        return replace(self, directions=self.directions[:, :number])


def principal_components(X: FloatArray, most: int, standardize: bool) -> Components:
    """Leading components of rows: `most` at most, and none that does not vary but one.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
    most : int
    standardize : bool
        Whether columns are divided by their standard deviations.
    """
    most = min(most, MAX_DIRECTIONS, *X.shape)
    factors = column_scale(X, standardize)
    scale = np.divide(1.0, factors, out=np.ones_like(factors), where=factors > 0)
    centred = (X - X.mean(axis=0)) / scale
    wide = X.shape[1] > X.shape[0]
    gram = centred @ centred.T if wide else centred.T @ centred
    eigenvalues, V = scipy.linalg.eigh(gram, subset_by_index=(len(gram) - most, len(gram) - 1))
    eigenvalues, V = eigenvalues[::-1], V[:, ::-1]
    kept = eigenvalues > len(gram) * np.finfo(np.float64).eps * max(eigenvalues[0], np.finfo(np.float64).tiny)
    kept[0] = True
    V = V[:, kept]
    if wide:
        V, _ = scipy.linalg.qr(centred.T @ V, mode="economic")
    return Components(X.mean(axis=0), scale, V)


def mean_rest(components: Components, public: FloatArray, groups: IntArray | None) -> dict[int, FloatArray]:
    """What the components leave out of the mean public row of each group."""
    if groups is None:
        return {}
    means = {int(group): public[groups == group].mean(axis=0)[np.newaxis] for group in np.unique(groups)}
    return {group: (mean - components.rows(components.scores(mean)))[0] for group, mean in means.items()}


IntArray = NDArray[np.intp]
MAX_GROUPS = 10
"""Groups into which the quantiles of a numeric target cut the rows."""
MIN_PER_GROUP = 20
"""Rows wanted in a group of numeric targets, so that its mean and spread mean something."""


@dataclass(frozen=True, eq=False)
class TargetCode:
    """How targets become columns and groups.

    Floating-point numbers are numeric targets: one column, and groups between quantiles.  All else are classes: a
    column for each class among the leaked rows, and one group per class.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,) or None
        All known classes, sorted; None where targets are numbers.
    in_columns : ndarray of shape (n_columns,)
        Numbers of the classes that have a column.
    edges : ndarray of shape (n_groups - 1,)
        Where a numeric target's next group begins.
    mean, scale : float
        Of the numeric target.
    """

    classes: NDArray[Any] | None
    in_columns: IntArray
    edges: FloatArray
    mean: float
    scale: float

    @property
    def n_groups(self) -> int:
        """Groups there are."""
        return len(self.edges) + 1 if self.classes is None else len(self.classes)

    def groups(self, target: NDArray[Any]) -> IntArray:
        """Number of each row's group; -1 for a class not known."""
        if self.classes is None:
            return np.searchsorted(self.edges, target, side="right")
        position = {label: number for number, label in enumerate(self.classes.tolist())}
        return np.array([position.get(label, -1) for label in target.tolist()], dtype=np.intp)

    def columns(self, target: NDArray[Any]) -> FloatArray:
        """The target as columns about one in size, shape (n_rows, n_columns); a class without a column is all zero."""
        if self.classes is None:
            column: FloatArray = ((target - self.mean) / self.scale)[:, np.newaxis]
            return column
        members: FloatArray = (self.groups(target)[:, np.newaxis] == self.in_columns).astype(np.float64)
        return members


def learn_target_code(target: NDArray[Any], public_target: NDArray[Any] | None = None) -> TargetCode:
    """Read off the leaked and the public rows' targets what groups and columns there are.

    Parameters
    ----------
    target : ndarray of shape (n_leaked,)
    public_target : ndarray of shape (n_public,), optional
        Of the same kind, numbers or classes.

    Returns
    -------
    TargetCode

    Raises
    ------
    AgreementError
        When classes cannot be sorted.
    """
    known = target if public_target is None else np.concatenate([target, public_target])
    if target.dtype.kind == "f":
        n_groups = max(1, min(MAX_GROUPS, len(known) // MIN_PER_GROUP))
        edges = np.unique(np.quantile(known, np.arange(1, n_groups) / n_groups, method="higher"))
        spread = float(target.std())
        none: IntArray = np.empty(0, dtype=np.intp)
        return TargetCode(None, none, edges[edges > known.min()], float(target.mean()), spread if spread > 0 else 1.0)
    try:
        classes = np.unique(known)
    except TypeError:
        raise AgreementError(
            f"The class labels (dtype {known.dtype}) cannot be sorted: they mix types. Use labels of one type."
        ) from None
    in_columns = np.flatnonzero(np.isin(classes, target))
    return TargetCode(classes, in_columns, np.empty(0), 0.0, 1.0)


def check_targets(target: ArrayLike, n_rows: int, what: str, like: NDArray[Any] | None = None) -> NDArray[Any]:
    """One target per row, none missing.

    Parameters
    ----------
    target : array-like of shape (n_rows,)
    n_rows : int
    what : str
        What an error calls it.
    like : ndarray, optional
        Targets of whose kind, numeric, class numbers or other labels, these have to be.

    Returns
    -------
    ndarray of shape (n_rows,)

    Raises
    ------
    AgreementError
        When the shape is another one, entries are missing or not finite, or the kind differs.
    """
    y = np.asarray(target)
    check_single_targets(y, what, AgreementError)
    if y.shape != (n_rows,):
        raise AgreementError(
            f"{what} has shape {y.shape}, but there are {n_rows} rows; one target per row is wanted, shape ({n_rows},)."
        )
    missing = count_missing(y) or (int(np.isinf(y).sum()) if y.dtype.kind == "f" else 0)
    if missing:
        raise AgreementError(f"{what} is missing or infinite in {missing} of {n_rows} rows. Drop those rows.")
    if like is not None and _kind(y) != _kind(like):
        raise AgreementError(
            f"{what} (dtype {y.dtype}) is of another kind than the leaked rows' target (dtype {like.dtype}); floating-"
            "point numbers are regression targets, all else are class labels. Use one type for all."
        )
    return y


def _kind(y: NDArray[Any]) -> str:
    return {"f": "number", "i": "code", "u": "code", "b": "code"}.get(y.dtype.kind, "label")


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
