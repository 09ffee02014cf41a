"""Reconstruction without a single leaked row: the representation is laid over public rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..._notebooks import FittedUnseen
from ..._validation import FloatArray
from ...errors import AgreementError, RepresentationError
from ._checks import check_rows
from ._components import Components, mean_rest, principal_components
from ._overlay import Overlay, matched_groups, overlay
from ._targets import IntArray, TargetCode, check_targets, learn_target_code

__all__ = ["ProcrustesAttack"]


class ProcrustesAttack(FittedUnseen, BaseEstimator):
    r"""The attack of an analyst to whom no original has leaked: two clouds of points are laid over each other.

    The principal components of public rows are close, up to a rotation, to what a linear obfuscator makes of private
    rows.  The rotation is found class by class: the classes' means and covariances in the representation are matched
    with those of the public scores, and then single rows with single rows, one to one within each class, turn by turn
    with the rotation, as in the iterative closest point algorithm [1]_.  The public components, inverted, turn a
    representation into an original.

    Public columns as they are and standardised ones, and a pure rotation and one of whitened clouds, are all tried.
    The one whose rows end nearest to public rows, by the standard of public rows among themselves, is kept.

    Parameters
    ----------
    random_state : int, RandomState instance or None, default=None
        Determines the starting rotations and which rows of large tables are matched.

    Attributes
    ----------
    misfit_ : float
        Mean squared distance of the private rows from the public ones that they were matched with, over that of public
        rows from other public ones.  About 1 where the clouds coincide.
    standardize_ : bool
        Whether public columns were divided by their standard deviations.
    whiten_ : bool
        Whether the clouds were whitened.
    n_features_in_, n_features_out_ : int
        n_intermediate and n_features.

    Notes
    -----
    Without targets all rows are one group, and little but the shape of the clouds tells how to turn them.  Numeric
    targets (floating-point numbers) make groups between quantiles.

    The anchor's representation helps because it has more rows, provided that anchors look like public rows.  Where its
    targets are not known, its rows are compared with all public ones.

    Of more than 100 directions the leading 100 are used.

    References
    ----------
    .. [1] Besl and McKay (1992). A method for registration of 3-D shapes. IEEE Transactions on Pattern Analysis and
       Machine Intelligence 14(2), 239-256.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.decomposition import PCA
    >>> from datacollab.risk.attacks import ProcrustesAttack
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(400) % 4
    >>> X = rng.normal(size=(4, 3))[y] * 4 + rng.normal(size=(400, 3)) * [1.0, 0.6, 0.3]
    >>> private, public = X[:100], X[100:]
    >>> Z = PCA(3).fit_transform(private) @ np.linalg.qr(rng.normal(size=(3, 3)))[0]
    >>> attack = ProcrustesAttack(random_state=0).fit(Z, y[:100], public=public, public_target=y[100:])
    >>> bool(np.abs(attack.reconstruct(Z, target=y[:100]) - private).mean() < 0.3)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"random_state": ["random_state"]}

    misfit_: float
    standardize_: bool
    whiten_: bool
    n_features_in_: int
    n_features_out_: int
    _overlay: Overlay
    _own: Components
    _public: Components
    _targets: _Targets
    _rest: dict[int, FloatArray]

    def __init__(self, *, random_state: int | np.random.RandomState | None = None) -> None:
        self.random_state = random_state

    def fit(
        self,
        representation: ArrayLike,
        target: ArrayLike | None = None,
        *,
        public: ArrayLike,
        public_target: ArrayLike | None = None,
        anchor_representation: ArrayLike | None = None,
        anchor_target: ArrayLike | None = None,
    ) -> Self:
        """Find out how the representation lies to the public rows.

        Parameters
        ----------
        representation : array-like of shape (n_rows, n_intermediate)
            One party's share.
        target : array-like of shape (n_rows,), optional
            The rows' targets, as shared.
        public : array-like of shape (n_public, n_features)
            Rows of the same kind as the private ones.
        public_target : array-like of shape (n_public,), optional
            Their targets; wanted where there is a `target`.
        anchor_representation : array-like of shape (n_anchors, n_intermediate), optional
            The party's representation of the anchor.
        anchor_target : array-like of shape (n_anchors,), optional
            Targets of the anchor; of no use without a `target`.

        Returns
        -------
        self

        Raises
        ------
        AgreementError
            When numbers of rows or columns differ, or targets are not one per row and of one kind.
        RepresentationError
            When a table is not finite, two-dimensional and numeric, or has a single row.
        """
        self._validate_params()
        Z = check_rows(representation, "The representation")
        P = check_rows(public, "The public table")
        if min(len(Z), len(P)) < 2:
            raise RepresentationError(
                f"ProcrustesAttack wants at least 2 private and 2 public rows; got {len(Z)} and {len(P)}."
            )
        targets = _Targets.read(target, public_target, len(Z), len(P))
        cloud, cloud_groups = Z, targets.groups
        if anchor_representation is not None:
            anchors = check_rows(anchor_representation, "The anchor representation")
            if anchors.shape[1] != Z.shape[1]:
                raise AgreementError(
                    f"The anchor representation has {anchors.shape[1]} columns but the representation has "
                    f"{Z.shape[1]}; give what one obfuscator made of both."
                )
            cloud = np.vstack([Z, anchors])
            cloud_groups = targets.with_anchors(anchor_target, len(anchors))
        groups = matched_groups(cloud_groups, targets.public_groups, len(cloud), len(P))
        random = np.random.RandomState() if self.random_state is None else check_random_state(self.random_state)
        seed = random.randint(2**31)
        tried = []
        for standardize in (False, True):
            others = principal_components(P, Z.shape[1], standardize)
            own = principal_components(cloud, others.directions.shape[1], False)
            others = others.leading(own.directions.shape[1])
            clouds = own.scores(cloud), others.scores(P)
            rough = [
                (overlay(*clouds, groups, whiten=whiten, random=np.random.default_rng(seed)), whiten)
                for whiten in (False, True)
            ]
            found, whiten = min(rough, key=lambda one: one[0].misfit)
            found = overlay(*clouds, groups, whiten=whiten, random=np.random.default_rng(seed), start=found.rotation)
            tried.append((found, whiten, standardize, own, others))
        best = min(tried, key=lambda one: one[0].misfit)
        self._overlay, self.whiten_, self.standardize_, self._own, self._public = best
        self.misfit_ = self._overlay.misfit
        self._targets = targets.without_rows()
        self._rest = mean_rest(self._public, P, targets.public_groups)
        self.n_features_in_ = Z.shape[1]
        self.n_features_out_ = P.shape[1]
        return self

    def reconstruct(self, representation: ArrayLike, *, target: ArrayLike | None = None) -> FloatArray:
        """Guess the original rows.

        Parameters
        ----------
        representation : array-like of shape (n_rows, n_intermediate)
            From the same obfuscator.
        target : array-like of shape (n_rows,), optional
            The rows' targets; wanted if, and only if, `fit` was given targets.  What the directions used do not tell
            is then filled in with the mean of the public rows of the group.

        Returns
        -------
        ndarray of shape (n_rows, n_features)

        Raises
        ------
        RepresentationError
            When the representation is not finite, two-dimensional and numeric, or has other columns.
        AgreementError
            When targets are missing, not wanted, not one per row, or of another kind than those in `fit`.
        """
        check_is_fitted(self)
        Z = check_rows(representation, "The representation")
        if Z.shape[1] != self.n_features_in_:
            raise RepresentationError(
                f"The representation has {Z.shape[1]} columns but the one in fit had {self.n_features_in_}; attack "
                "rows from the same obfuscator."
            )
        groups = self._targets.of_rows(target, len(Z))
        rows = self._public.rows(self._overlay.apply(self._own.scores(Z)))
        if groups is not None:
            rows += np.array([self._rest.get(int(group), np.zeros(rows.shape[1])) for group in groups])
        return rows


@dataclass(frozen=True, eq=False)
class _Targets:
    """The groups that targets make; all None without targets."""

    code: TargetCode | None
    like: NDArray[Any] | None
    groups: IntArray | None
    public_groups: IntArray | None

    @classmethod
    def read(cls, target: ArrayLike | None, public_target: ArrayLike | None, n_rows: int, n_public: int) -> _Targets:
        if target is None:
            return cls(None, None, None, None)
        if public_target is None:
            raise AgreementError(
                "ProcrustesAttack was given targets of the private rows but not of the public ones; pass "
                "public_target, or leave target out."
            )
        y = check_targets(target, n_rows, "The rows' target")
        y_public = check_targets(public_target, n_public, "The public rows' target", like=y)
        code = learn_target_code(y, y_public)
        return cls(code, y[:0], code.groups(y), code.groups(y_public))

    def with_anchors(self, anchor_target: ArrayLike | None, n_anchors: int) -> IntArray | None:
        """Groups of the private rows and the anchor's; -1 for anchors without a target."""
        if self.code is None or self.groups is None:
            return None
        if anchor_target is None:
            return np.append(self.groups, np.full(n_anchors, -1))
        y = check_targets(anchor_target, n_anchors, "The anchor's target", like=self.like)
        return np.append(self.groups, self.code.groups(y))

    def without_rows(self) -> _Targets:
        return replace(self, groups=None, public_groups=None)

    def of_rows(self, target: ArrayLike | None, n_rows: int) -> IntArray | None:
        if (target is None) != (self.code is None):
            given, fitted = ("no", "with") if target is None else ("a", "without")
            raise AgreementError(
                f"ProcrustesAttack got {given} target to reconstruct with, but was fitted {fitted} targets. Give "
                "targets to both or to neither."
            )
        if target is None or self.code is None:
            return None
        return self.code.groups(check_targets(target, n_rows, "The target", like=self.like))
