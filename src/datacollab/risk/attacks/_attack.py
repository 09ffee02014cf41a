"""Base classes of reconstruction attacks, and the checks and the coding of targets that other attacks share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils.validation import check_is_fitted

from ..._notebooks import FittedUnseen
from ..._validation import FloatArray, check_single_targets, count_missing
from ...anchor._sources import check_table
from ...errors import AgreementError, RepresentationError
from ...linalg import leading_left_singular

IntArray = NDArray[np.intp]
_MAX_GROUPS = 10
_MIN_PER_GROUP = 20
"""Groups into which quantiles of a numeric target cut the rows, at most, and rows in each, at least."""
BLOCK_ENTRIES = 2**22
"""Entries of a matrix of distances or of a kernel in memory at a time (32 MiB)."""


def check_rows(values: ArrayLike, what: str, error: type[ValueError] = RepresentationError) -> FloatArray:
    """Turn an array, a list or a data frame into a finite, two-dimensional float64 array, called `what` in errors."""
    return check_table(values, what, error)


def check_pairs(A: ArrayLike, Z: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Check leaked rows and their representation, one of each."""
    rows = check_rows(A, "The leaked original")
    representation = check_rows(Z, "The leaked representation")
    if len(rows) != len(representation):
        raise AgreementError(
            f"The leaked representation has {len(representation)} rows but the leaked original has {len(rows)}; give "
            "pairs, the same rows in the same order."
        )
    return rows, representation


def check_columns(rows: FloatArray, others: FloatArray, what: str, than: str) -> None:
    """Check that two tables have the same columns; errors begin with `what`, and go on with `than`."""
    if rows.shape[1] != others.shape[1]:
        raise AgreementError(
            f"{what} {rows.shape[1]} columns but {than} {others.shape[1]}; give the same columns in the same order."
        )


def own_generator(random_state: int | np.random.RandomState | None) -> np.random.RandomState:
    """Return the generator; for None one with entropy of its own, whatever was done to NumPy's global one."""
    if random_state is None:
        return np.random.RandomState()
    random: np.random.RandomState = check_random_state(random_state)
    return random


def centre(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the rows without their mean, and the mean."""
    # Differences to a row keep the digits that a large offset takes up, and make a constant column exactly zero.
    differences = rows - rows[0]
    mean = differences.mean(axis=0)
    return differences - mean, rows[0] + mean


def row_blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Cut a matrix into blocks of rows that are in memory at a time."""
    yield from gen_batches(n_rows, max(1, BLOCK_ENTRIES // n_columns))


def least_squares(Z: FloatArray, A: FloatArray) -> FloatArray:
    """Return the coefficients of minimum norm, shape (n_columns, n_outputs), that best map centred rows to others."""
    # The pseudoinverse through singular vectors: products such as Z'Z would square the condition.
    U, singular_values, V = leading_left_singular(Z)
    return np.asarray((V / singular_values) @ (U.T @ A))


def column_scale(rows: FloatArray, standardize: bool) -> FloatArray:
    """Return each column's factor: one over its standard deviation (nought if it is constant), or else one."""
    if not standardize:
        return np.ones(rows.shape[1])
    # The deviation of a constant column may be a rounding error.
    varying = np.ptp(rows, axis=0) > 0
    scale = np.zeros(rows.shape[1])
    scale[varying] = 1.0 / rows[:, varying].std(axis=0)
    return scale


@dataclass(frozen=True, eq=False)
class TargetCode:
    """Targets as columns and groups: one per class, or a column of numbers and groups between quantiles (`edges`).

    `classes` are all known classes, sorted, or None for numbers; those whose numbers are `in_columns` have a column.
    """

    classes: NDArray[Any] | None
    in_columns: IntArray
    edges: FloatArray
    mean: float
    scale: float

    @property
    def n_groups(self) -> int:
        if self.classes is None:
            return len(self.edges) + 1
        return len(self.classes)

    def groups(self, target: NDArray[Any]) -> IntArray:
        """Number each row's group; -1 stands for an unknown class."""
        if self.classes is None:
            return np.searchsorted(self.edges, target, side="right")
        position = {label: number for number, label in enumerate(self.classes.tolist())}
        return np.array([position.get(label, -1) for label in target.tolist()], dtype=np.intp)

    def columns(self, target: NDArray[Any]) -> FloatArray:
        """Code targets as columns of size one, shape (n_rows, n_columns); a class without a column is all zero."""
        if self.classes is None:
            return np.asarray((target - self.mean) / self.scale)[:, np.newaxis]
        return np.asarray(self.groups(target)[:, np.newaxis] == self.in_columns, dtype=np.float64)


def learn_target_code(target: NDArray[Any], public_target: NDArray[Any] | None = None) -> TargetCode:
    """Learn groups and columns from the leaked and the public rows' targets, which are of one kind."""
    known = target
    if public_target is not None:
        known = np.concatenate([target, public_target])
    if target.dtype.kind == "f":
        n_groups = max(1, min(_MAX_GROUPS, len(known) // _MIN_PER_GROUP))
        # Edges are targets that occur ("higher"), so that rows with one target are in one group.
        edges = np.unique(np.quantile(known, np.arange(1, n_groups) / n_groups, method="higher"))
        none: IntArray = np.empty(0, dtype=np.intp)
        # No row lies below the smallest target, so an edge there would make an empty group.
        return TargetCode(None, none, edges[edges > known.min()], float(target.mean()), float(target.std()) or 1.0)
    try:
        classes = np.unique(known)
    except TypeError:
        raise AgreementError(
            f"The class labels (dtype {known.dtype}) cannot be sorted: they mix types. Use labels of one type."
        ) from None
    # A class without a leaked row gets no column: nothing could be learnt for it.
    return TargetCode(classes, np.flatnonzero(np.isin(classes, target)), np.empty(0), 0.0, 1.0)


def check_targets(target: ArrayLike, n_rows: int, what: str, like: NDArray[Any] | None = None) -> NDArray[Any]:
    """Check that there is one target per row, none is missing, and all are of the same kind as `like`."""
    y = np.asarray(target)
    check_single_targets(y, what, AgreementError)
    if y.shape != (n_rows,):
        raise AgreementError(
            f"{what} has shape {y.shape}, but there are {n_rows} rows; give one target per row, shape ({n_rows},)."
        )
    missing = count_missing(y)
    if not missing and y.dtype.kind == "f":
        missing = int(np.isinf(y).sum())
    if missing:
        raise AgreementError(f"{what} is missing or infinite in {missing} of {n_rows} rows. Drop those rows.")
    # Texts and objects have no entry, and are of one kind; whole numbers may code classes.
    kinds = {"f": "number", "i": "code", "u": "code", "b": "code"}
    if like is not None and kinds.get(y.dtype.kind) != kinds.get(like.dtype.kind):
        raise AgreementError(
            f"{what} (dtype {y.dtype}) is of another kind than the leaked rows' target (dtype {like.dtype}); floating-"
            "point numbers are regression targets, all else are class labels. Use one type for all."
        )
    return y


class Reconstructing(FittedUnseen, BaseEstimator):
    """Base of attacks with leaked pairs and without: checks their tables and targets."""

    n_features_in_: int
    n_features_out_: int
    _code: TargetCode | None
    _target_like: NDArray[Any] | None

    def _learn_targets(
        self, target: ArrayLike | None, n_rows: int, public: Any, public_target: ArrayLike | None, what: str
    ) -> tuple[NDArray[Any] | None, NDArray[Any] | None]:
        """Check the rows' targets and, if there are public rows, theirs; keep only groups and kind."""
        self._code = self._target_like = None
        if target is None:
            return None, None
        y = check_targets(target, n_rows, f"The {what}' target")
        y_public = None
        if public is not None:
            if public_target is None:
                raise AgreementError(
                    f"{type(self).__name__} was given targets of the {what} but not of the public ones; pass "
                    "public_target, or leave target out."
                )
            y_public = check_targets(public_target, len(public), "The public rows' target", like=y)
        self._code = learn_target_code(y, y_public)
        # No target is kept: an attack may be stored, and another party's targets are not for that.
        self._target_like = y[:0]
        return y, y_public

    def _groups(self, target: NDArray[Any] | None) -> IntArray | None:
        if self._code is None or target is None:
            return None
        return self._code.groups(target)

    def _check_shared(
        self, representation: ArrayLike, target: ArrayLike | None
    ) -> tuple[FloatArray, NDArray[Any] | None]:
        """Check rows to be reconstructed, and that they have targets exactly if those in `fit` had."""
        check_is_fitted(self)
        Z = check_rows(representation, "The representation")
        if Z.shape[1] != self.n_features_in_:
            raise RepresentationError(
                f"The representation has {Z.shape[1]} columns but the one in fit had {self.n_features_in_}; attack "
                "rows from the same obfuscator."
            )
        if (target is None) != (self._target_like is None):
            found = "a target to reconstruct with, but was fitted without"
            if target is None:
                found = "no target to reconstruct with, but was fitted with"
            raise AgreementError(f"{type(self).__name__} got {found} targets. Give targets to both or to neither.")
        if target is None:
            return Z, None
        return Z, check_targets(target, len(Z), "The target", like=self._target_like)


class ReconstructionAttack(Reconstructing, ABC):
    """Base of the attacks that learn to undo one party's obfuscator.

    The attacker holds leaked pairs: original rows, such as rows of the anchor, and their intermediate representation.
    The attack learns from the pairs, and then reconstructs originals that are unknown.

    A subclass implements `_fit` and `_reconstruct` on centred arrays; ``needs_public`` says whether it needs public
    rows, which other attacks ignore.  With targets an attack is *label-informed*: they become further columns of the
    representation, which vary as much, in all, as the representation does.  If the subclass sets
    ``_targets_as_columns`` to False, they give it the groups of rows instead.

    Attributes
    ----------
    mean_representation_, mean_original_ : ndarray of shape (n_intermediate,) and (n_features,)
        Means of the leaked pairs.
    n_features_in_, n_features_out_ : int
        n_intermediate and n_features.
    """

    needs_public: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, Any]] = {}
    _min_pairs: ClassVar[int] = 2
    _targets_as_columns: ClassVar[bool] = True

    mean_representation_: FloatArray
    mean_original_: FloatArray

    def fit(
        self,
        representation: ArrayLike,
        original: ArrayLike,
        *,
        target: ArrayLike | None = None,
        public: ArrayLike | None = None,
        public_target: ArrayLike | None = None,
    ) -> Self:
        """Learn from leaked pairs: a representation, shape (n_leaked, n_intermediate), and its originals in that order.

        Targets that are floating-point numbers are regression targets, all else are class labels.  Public rows are of
        the same kind, and the attacker does not have their representation.  Raise AgreementError or RepresentationError
        if tables or targets do not fit each other, or are not numeric, finite and of two rows at least.
        """
        self._validate_params()
        A, Z = check_pairs(original, representation)
        if len(Z) < self._min_pairs:
            raise RepresentationError(
                f"{type(self).__name__} learns from at least {self._min_pairs} leaked pairs; got {len(Z)}. Leak more "
                "rows."
            )
        P = None
        if self.needs_public:
            if public is None:
                raise AgreementError(f"{type(self).__name__} needs public rows; pass public.")
            P = check_rows(public, "The public table")
            check_columns(P, A, "The public table has", "the originals have")
        y, y_public = self._learn_targets(target, len(A), P, public_target, "leaked rows")
        Z, self.mean_representation_ = centre(Z)
        A, self.mean_original_ = centre(A)
        self.n_features_in_ = Z.shape[1]
        self.n_features_out_ = A.shape[1]
        if self._code is not None and y is not None:
            columns, self._mean_column = centre(self._code.columns(y))
            spread = float((columns**2).sum())
            # Targets vary as much, in all, as the representation does, so neither drowns the other in a distance.
            self._weight = 0.0
            if spread > 0:
                self._weight = float(np.sqrt((Z**2).sum() / spread))
        if P is not None:
            P = P - self.mean_original_
        self._fit(self._with_columns(Z, y), A, self._groups(y), P, self._groups(y_public))
        return self

    def reconstruct(self, representation: ArrayLike, *, target: ArrayLike | None = None) -> FloatArray:
        """Guess the originals, shape (n_rows, n_features), of rows from the obfuscator of the leaked pairs.

        Targets, shape (n_rows,), are needed if, and only if, `fit` was given some.  A class that `fit` has not seen
        counts as unknown.  Raise AgreementError or RepresentationError if rows or targets are missing, superfluous, not
        finite, or of another kind than those in `fit`.
        """
        Z, y = self._check_shared(representation, target)
        Z = self._with_columns(Z - self.mean_representation_, y)
        return self.mean_original_ + self._reconstruct(Z, self._groups(y))

    def _with_columns(self, Z: FloatArray, target: NDArray[Any] | None) -> FloatArray:
        if self._code is None or target is None or not self._targets_as_columns:
            return Z
        return np.hstack([Z, self._weight * (self._code.columns(target) - self._mean_column)])

    @abstractmethod
    def _fit(self, Z: FloatArray, A: FloatArray, groups: Any, public: Any, public_groups: Any) -> None:
        """Learn from centred pairs, shapes (n_leaked, n_intermediate) and (n_leaked, n_features), and public rows."""

    @abstractmethod
    def _reconstruct(self, Z: FloatArray, groups: IntArray | None) -> FloatArray:
        """Guess originals of centred rows, less their mean; shape (n_rows, n_features)."""
